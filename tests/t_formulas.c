/* t_formulas.c: ops that are formulas of others, tested from their table: a new row of formulas.def is called
 * with matrices unless a row of `calls` says how. */
#include "plain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Two classes of three outputs over four features. */
#define H_SOFTMAX "m, n[:2].T, u[:2], stack([m.T, n.T]), m[:2, :3]"

/* How to call a formula: over u (4), v (4), m (3, 4), n (3, 4) in [0.2, 0.9], k int (3) in 0..3, and what
 * it must equal, written otherwise.  Without a second formula only the gradient is checked. */
static const struct { const char *call, *same; bool rough; } calls[] = {
    { "inv(m)", "1 / m" },
    { "square(m)", "m * m" },
    { "switch(m > 0.5, m, n)", "where(m > 0.5, m, n)" },
    { "ceil_intdiv(7 * k, 2)", "(7 * k + 1) // 2", true },
    { "item(divmod(k + 5, 3), 0) * 3 + item(divmod(k + 5, 3), 1)", "k + 5", true },
    { "relu(m - 0.5)", "where(m > 0.5, m - 0.5, 0)" },
    { "relu(m - 0.5, alpha=0.1)", "where(m > 0.5, m - 0.5, 0.1 * (m - 0.5))" },
    { "elu(m - 0.5, alpha=2)", "where(m > 0.5, m - 0.5, 2 * (exp(m - 0.5) - 1))" },
    { "selu(m - 0.5)", "1.0507009873554805 * where(m > 0.5, m - 0.5, 1.6732632423543772 * (exp(m - 0.5) - 1))" },
    { "hard_sigmoid(6 * m - 3)", "minimum(maximum(0.2 * (6 * m - 3) + 0.5, 0), 1)" },
    { "ultra_fast_sigmoid(m)", NULL },
    { "abs(ultra_fast_sigmoid(20 * m - 10) - sigmoid(20 * m - 10)) < 0.07", "m < 2", true },
    { "softsign(m)", "m / (1 + m)" },
    { "isclose(m, m + 1e-9)", "m < 2", true },
    { "isclose(m, m + 0.01)", "m > 2", true },
    { "allclose(m, m)", "eq(1, 1)", true },
    { "identity(m)", "m" },
    { "m * second(m, sum(n))", "m * sum(n)" },
    { "m * fill(m, sum(n))", "m * sum(n)" },
    { "zeros_like(m)", "m - m", true },
    { "ones_like(m)", "m / m", true },
    { "zeros([3, 4], dtype=float64)", "m - m", true },
    { "ones([3, 4], dtype=float64)", "m / m", true },
    { "mean(m)", "sum(m) / 12" },
    { "mean(m, axis=1, keepdims=True)", "sum(m, axis=1, keepdims=True) / 4" },
    { "var(m, axis=0)", "mean(m * m, axis=0) - mean(m, axis=0) ** 2" },
    { "var(m, ddof=1)", "(sum(m * m) - 12 * mean(m) ** 2) / 11" },
    { "std(m, axis=1)", "sqrt(var(m, axis=1))" },
    { "ptp(m, axis=1)", "-(min(m, axis=1) - max(m, axis=1))" },
    { "norm(m, axis=1)", "sqrt(sum(m * m, axis=1))" },
    { "norm(m, ord=1)", "sum(abs(m))" },
    { "norm(m, ord=inf)", "max(abs(m))" },
    { "norm(m, ord='inf', axis=1)", "max(abs(m), axis=1)" },
    { "norm(m, -inf, 0)", "min(abs(m), axis=0)" },
    { "norm(m, '-inf')", "min(abs(m))" },
    { "item(max_and_argmax(m, axis=1), 0)", "max(m, axis=1)" },
    { "item(max_and_argmax(m, axis=1), 1)", "argmax(m, axis=1)", true },
    { "argmin(m, axis=1)", "argmax(1 / m, axis=1)", true },
    { "logsumexp(m, axis=1)", "log(sum(exp(m), axis=1))" },
    { "softmax(m)", "exp(m) / sum(exp(m), axis=1, keepdims=True)" },
    { "softmax(m, axis=0)", "exp(m) / sum(exp(m), axis=0, keepdims=True)" },
    { "softmax(u)", "exp(u) / sum(exp(u))" },
    { "logsoftmax(m)", "log(softmax(m))" },
    { "logsoftmax(u)", "log(softmax(u))" },
    { "crossentropy_softmax_1hot(m, k)", "-log(softmax(m))[arange(3), k]" },
    { "categorical_crossentropy(m, n)", "-sum(n * log(m), axis=1)" },
    { "crossentropy_1hot(m, k)", "-log(m[arange(3), k])" },
    { "binary_crossentropy(m, n)", "-n * log(m) - (1 - n) * log(1 - m)" },
    { "sigmoid_binary_crossentropy(m, n)", "binary_crossentropy(sigmoid(m), n)" },
    { "sigmoid_binary_crossentropy(m.T, cast(k % 2, uint8))", "-where(k % 2 == 1, log(sigmoid(m.T)), log(1 - sigmoid(m.T)))" },
    { "softmax_with_bias(m, u)", "softmax(m + expand_dims(u, 0))" },
    { "crossentropy_softmax_1hot_with_bias(m, u, k)", "-log(softmax(m + expand_dims(u, 0)))[arange(3), k]" },
    { "item(crossentropy_softmax_max_and_argmax_1hot(m, k), 0)", "-log(softmax(m))[arange(3), k]" },
    { "item(crossentropy_softmax_max_and_argmax_1hot(m, k), 1)", "max(m, axis=1)" },
    { "item(crossentropy_softmax_max_and_argmax_1hot(m, k), 2)", "argmax(m, axis=1)", true },
    { "item(crossentropy_softmax_max_and_argmax_1hot_with_bias(m, u, k), 0)", "-log(softmax(m + expand_dims(u, 0)))[arange(3), k]" },
    { "item(crossentropy_softmax_max_and_argmax_1hot_with_bias(m, u, k), 2)", "argmax(m + expand_dims(u, 0), axis=1)", true },
    { "crossentropy_categorical_1hot(m, k)", "-log(m[arange(3), k])" },
    { "h_softmax(" H_SOFTMAX ", 5)", "c = softmax(dot(m, n[:2].T) + u[:2]); concatenate([expand_dims(c[:, 0], 1) * softmax(dot(m, m.T) + m[0, :3]), "
      "expand_dims(c[:, 1], 1) * softmax(dot(m, n.T) + m[1, :3])], axis=1)[:, :5]" },
    { "sum(h_softmax(" H_SOFTMAX "), axis=1)", "[1.0, 1.0, 1.0]" },
    { "h_softmax_at(" H_SOFTMAX ", k + 1)", "h_softmax(" H_SOFTMAX ")[arange(3), k + 1]" },
    { "item(confusion_matrix([7, 3, 3, 9], [3, 3, 7, 9]), 0)", "[[1, 1, 0], [1, 0, 0], [0, 0, 1]]", true },
    { "item(confusion_matrix([7, 3, 3, 9], [3, 3, 7, 9]), 1)", "[3, 7, 9]", true },
    { "sum(item(confusion_matrix(k, k), 0) * eye(size(unique(k), 0), dtype=int64))", "size(k, 0)", true },
    { "prepend_scalar_to_each_row(u[0], m)", "concatenate([expand_dims(u[0] + 0 * m[:, 0], 1), m], axis=1)" },
    { "prepend_0_to_each_row(m)", "concatenate([0 * m[:, :1], m], axis=1)" },
    { "prepend_1_to_each_row(m)", "concatenate([0 * m[:, :1] + 1, m], axis=1)" },
    { "unique(m)", "sort(ravel(m))" },
    { "unique([[3, 1], [3, 1], [2, 3]])", "[1, 2, 3]", true },
    { "unique([3.0, nan, 1.0, 3.0, nan])[:2]", "[1.0, 3.0]", true },
    { "size(unique([nan, 1.0, nan]), 0) + size(unique([nan, nan]), 0) + size(unique(m[:0]), 0)", "3", true },
    { "tensor_copy(m) * 2", "m + m" },
    { "identity_like(m)", "cast(eq(reshape(arange(3), [3, 1]), reshape(arange(4), [1, 4])), float64)", true },
    { "bartlett(5)", "[0.0, 0.5, 1.0, 0.5, 0.0]", true },
    { "bartlett(1)", "[1.0]", true },
    { "ravel(m)", "reshape(m, [12])" },
    { "outer(u, v)", "dot(reshape(u, [4, 1]), reshape(v, [1, 4]))" },
    { "eye(3, 4, k=1)", "cast(eq(reshape(arange(3), [3, 1]) + 1, reshape(arange(4), [1, 4])), floatX)", true },
    { "tri(3, 4)", "1 - cast(reshape(arange(3), [3, 1]) < reshape(arange(4), [1, 4]), floatX)", true },
    { "tril(m)", "m * tri(3, 4, dtype=float64)" },
    { "triu(m, k=1)", "m - tril(m)" },
    { "to_one_hot(k, 4, dtype=float64)", "eye(4, dtype=float64)[k]", true },
    { "m * zero_grad(n)", NULL, true },
    { "m * disconnected_grad(n)", NULL, true },
    { "batch_normalization(m, u, v, 0.5, 2.0)", "(m - 0.5) * u / 2 + v" },
    { "item(batch_normalization_train(m, expand_dims(u, 0), expand_dims(v, 0)), 0)",
      "(m - mean(m, axis=0)) / sqrt(var(m, axis=0) + 0.0001) * u + v" },
    { "item(batch_normalization_train(m, expand_dims(u, 0), expand_dims(v, 0), axes=[0, 1]), 2)", "expand_dims(expand_dims(1 / sqrt(var(m) + 0.0001), 0), 0)" },
    { "batch_normalization_test(m, u, v, n, n)", "(m - n) * u / sqrt(n + 0.0001) + v" },
    { "inverse_permutation(argsort(u))", "argsort(argsort(u))", true },
    { "flatnonzero(m > 0.5)", "nonzero(ravel(m) > 0.5)", true },
    { "nonzero_values(where(m > 0.5, m, 0))", "m[m > 0.5]", true },
    { "compress(u > 0.5, v)", "v[u > 0.5]", true },
    { "fill_diagonal(m, 2.0)", "where(eq(reshape(arange(3), [3, 1]), reshape(arange(4), [1, 4])), 2.0, m)" },
    { "layer_norm(m)", "(m - mean(m, axis=1, keepdims=True)) / sqrt(var(m, axis=1, keepdims=True) + 1e-05)" },
    { "layer_norm(m, u, v)", "layer_norm(m) * u + v" },
    { "pool_2d(m, 2, ignore_border=True)", "max(stack([m[:2, ::2], m[:2, 1::2]]), axis=[0, 1], keepdims=True)[0]" },
    { "pool_3d(reshape(m, [1, 3, 4]), [1, 3, 2], mode='sum')", "reshape(sum(m[:, ::2] + m[:, 1::2], axis=0), [1, 1, 2])" },
    { "max_pool_2d(m, [3, 2])", "max(stack([m[:, ::2], m[:, 1::2]]), axis=[0, 1], keepdims=True)[0]" },
    { "max_pool_2d_same_size(m, [3, 4])", "where(eq(m, max(m)), m, 0)" },
    { "max_pool(reshape(m, [3, 4, 1, 1]), ds=4)[:, 0, 0, 0]", "max(m, axis=1)" },
    { "max_pool_grad(reshape(m, [3, 4, 1, 1]), reshape(u[:3], [3, 1, 1, 1]), ds=4)[:, :, 0, 0]",
      "where(eq(m, max(m, axis=1, keepdims=True)), expand_dims(u[:3], 1), 0)" },
    { "max_pool_rop(reshape(m, [3, 4, 1, 1]), reshape(n, [3, 4, 1, 1]), ds=4)[:, 0, 0, 0]", "n[arange(3), argmax(m, axis=1)]" },
    { "max_pool_c01b(reshape(m, [1, 3, 4, 1]), [3, 4])[0, 0, 0, 0]", "max(m)" },
    { "item(prob_max_pool(reshape(m, [3, 4, 1, 1]), ds=4), 0)[:, 0, 0, 0]", "s = sum(exp(m), axis=1); s / (s + 1)" },
    { "weighted_max_pool(reshape(m, [3, 4, 1, 1]), ds=4)[:, 0, 0, 0]", "sum(m * m, axis=1) / sum(m, axis=1)" },
    { "stochastic_max_pool(cast([1, 2], uint64), reshape(m, [12, 1, 1, 1]), ds=1, stream=3)[:, 0, 0, 0]", "ravel(m)" },
    { "as_cuda_ndarray_variable(m)", "m" },
    { "spatial_grid(stack([m[:2, :3], n[:2, :3]]), 2, 3)[1, 0, 2, 0]", "n[0, 0] - n[0, 1] + n[0, 2]" },
    { "spatial_corner(reshape(m, [1, 3, 4, 1]), reshape(0 * u[:1] + 1.25, [1, 1, 1]), reshape(0 * u[:1] + 1, [1, 1, 1]), 1, 0)[0, 0, 0, 0]", "m[1, 2] / 4" },
    { "spatial_sample(reshape(m, [1, 1, 3, 4]), stack([[[2 * u / 3 - 1]], [[0 * u]]], axis=-1))[0, 0, 0]",
      "m[1, 0] * (1 - u) + m[1, 1] * u" },
    { "dnn_spatialtf(reshape(m, [1, 1, 3, 4]), [[[-1., 0, 0], [0, 1., 0]]])[0, 0]", "m[:, ::-1]" },
    { "dnn_ctc_loss(reshape(m, [3, 1, 4]), [[1]])", "ctc_loss(reshape(m, [3, 1, 4]), [[1]])" },
    { "first_of_rising(m, axis=1, k=2)", "argsort(m, axis=1)[:, :2]" },
    { "first_of_falling(m, axis=0, k=3)", "argsort(-m, axis=0)" },
    { "cumsum_behind(m, axis=1)", "cumsum(m[:, ::-1], axis=1)[:, ::-1]" },
    { "cumprod_back(m, n, axis=1)", "grad(sum(cumprod(m, axis=1) * n), m)" },
    { "global_pool(reshape(m, [1, 3, 2, 2]))", "reshape(mean(m, axis=1), [1, 3])" },
    { "bc01_to_c01b(reshape(m, [3, 2, 2, 1]))", "reshape(m.T, [2, 2, 1, 3])" },
    { "c01b_to_bc01(reshape(m, [2, 2, 1, 3]))", "dimshuffle(reshape(m, [2, 2, 1, 3]), [3, 0, 1, 2])" },
    { "r = cross_map_norm(reshape(m, [3, 1, 1, 4]), size_f=3, add_scale=0.2, pow_scale=0.75); "
      "cross_map_norm_undo(reshape(m, [3, 1, 1, 4]), r[0], r[1], reshape(n, [3, 1, 1, 4]), size_f=3, add_scale=0.2, pow_scale=0.75)",
      "grad(sum(cross_map_norm(reshape(m, [3, 1, 1, 4]), size_f=3, add_scale=0.2, pow_scale=0.75)[0] * reshape(n, [3, 1, 1, 4])), m).reshape([3, 1, 1, 4])" },
    { "mT(m)", "m.T" },
    { "dot(tril(lu_factor(m[:, :3])[0], k=-1) + eye(3), triu(lu_factor(m[:, :3])[0]))", "m[lu_factor(m[:, :3])[1], :3]", true },
    { "dot(lu(m)[0], dot(lu(m)[1], lu(m)[2]))", "m", true },
    { "det(m[:2, :2])", "m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]" },
    { "slogdet(m[:2, :2])[1]", "log(abs(det(m[:2, :2])))" },
    { "dot(m, dot(pinv_above(m, 1e-7), m))", "m", true },
    { "dot(m, lstsq_above(m, u[:3], 1e-7))", "u[:3]", true },
    { "diag(expm(diag(u)))", "exp(u)" },
    { "dot(tril(m[:, :3]), solve_lower_triangular(m[:, :3], n))", "n", true },
    { "dot(triu(m[:, :3]), solve_upper_triangular(m[:, :3], n))", "n", true },
    { "cond(diag(u))", "max(u) / min(u)" },
};

struct world { mc_graph *g; mc_node *leaf[5]; mc_array *value[5]; };

static struct world world_new(mc_dtype d)
{
    static const struct { const char *name; int rank; int64_t dims[2]; } floats[] = {
        { "u", 1, { 4 } }, { "v", 1, { 4 } }, { "m", 2, { 3, 4 } }, { "n", 2, { 3, 4 } },
    };
    struct world w = { .g = mc_graph_new() };
    for (int i = 0; i < 4; i++) {
        w.leaf[i] = mc_input(w.g, floats[i].name, d, floats[i].rank);
        w.value[i] = sample(d, floats[i].rank, floats[i].dims, .2, .9);
    }
    w.leaf[4] = mc_input(w.g, "k", MC_INT64, 1);
    w.value[4] = sample(MC_INT64, MC_SHAPE(3), 0, 3);
    return w;
}

static void world_free(struct world *w)
{
    drop(w->value, 5);
    mc_graph_free(w->g);
}

/* The gradient by the floats that y depends on; the whole numbers become constants of the graph. */
static void check_gradient(struct world *w, mc_node *y, const char *text)
{
    mc_node *wrt[4], *with[1] = { mc_constant(w->g, w->value[4]) };
    mc_array *value[4];
    double worst;
    int n = 0;
    size_t count;
    if (CHECK(mc_graph_replace(w->g, 1, &w->leaf[4], with, 1, &y) == MC_OK, "%s: %s", text, mc_error(w->g))) {
        mc_node **list = mc_graph_reach(1, &y, &count);
        for (size_t i = 0; i < count; i++) {
            for (int k = 0; k < 4; k++) {
                if (list[i] == w->leaf[k]) {
                    wrt[n] = w->leaf[k];
                    value[n++] = w->value[k];
                }
            }
        }
        mc_free(list);
        CHECK(n && mc_verify_grad(y, n, wrt, value, &worst) == MC_OK, "%s: %s", text,
              n ? mc_last_error() : "depends on nothing");
    }
}

static void check_call(const char *call, const char *same, bool rough, mc_dtype d)
{
    struct world w = world_new(d);
    mc_node *y[2] = { mc_formula(w.g, call), same ? mc_formula(w.g, same) : NULL };
    mc_array *out[2] = { 0 };
    if (CHECK(mc_graph_status(w.g) == MC_OK, "%s: %s", call, mc_error(w.g)) &&
        CHECK(mc_eval(5, w.leaf, w.value, same ? 2 : 1, y, out) == MC_OK, "%s: %s", call, mc_last_error())) {
        mc_array *b = same ? mc_array_cast(out[1], out[0]->dtype) : NULL;
        double tol = d == MC_FLOAT64 ? 1e-12 : 2e-5;
        CHECK(!same || mc_array_differs(out[0], b, tol, tol) < 0, "%s is not %s", call, same);
        mc_array_unref(&b);
        if (!rough && y[0]->nout == 1 && mc_is_float(y[0]->type.dtype)) {
            check_gradient(&w, y[0], call);
        }
    }
    drop(out, 2);
    world_free(&w);
}

TEST(every_formula_is_what_it_says)
{
    mc_flag_set("floatX", "float64");
    for (size_t i = 0; i < NELEM(calls); i++) {
        check_call(calls[i].call, calls[i].same, calls[i].rough, MC_FLOAT64);
        if (!strstr(calls[i].call, "float64") && !(calls[i].same && strstr(calls[i].same, "float64"))) {
            check_call(calls[i].call, calls[i].same, calls[i].rough, MC_FLOAT32);
        }
    }
}

/* Does a row of tests/tables.txt call the op? */
static bool in_tables(const struct mc_op *op)
{
    static char text[1 << 18];
    char path[1024], call[64];
    if (!text[0]) {
        snprintf(path, sizeof path, "%s/tables.txt", TEST_ROOT);
        FILE *f = fopen(path, "r");
        text[f ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
        if (f) {
            fclose(f);
        }
    }
    snprintf(call, sizeof call, " %s(", op->name);
    return strstr(text, call) != NULL;
}

/* Families whose own tests see to it that no row is left out, and rows of t_tables.c. */
static bool tested_elsewhere(const struct mc_op *op)
{
    static const char *const families[] = { "Convolution under other names", "cuda-convnet and Nervana",
                                            "Images", "Random" };
    bool found = in_tables(op);
    for (size_t i = 0; i < NELEM(families); i++) {
        found |= strcmp(mc_op_family(op), families[i]) == 0;
    }
    return found;
}

TEST(no_formula_goes_untested)
{
    mc_flag_set("floatX", "float64");
    for (int row = 0; mc_op_at(row); row++) {
        const struct mc_op *op = mc_op_at(row);
        struct mc_str call = { 0 };
        bool told = !op->formula || tested_elsewhere(op);
        for (size_t i = 0; i < NELEM(calls); i++) {
            const char *at_name = strstr(calls[i].call, op->name);
            told |= at_name && at_name[strlen(op->name)] == '(';
        }
        if (!told) { /* nobody said how: with matrices */
            mc_str_addf(&call, "%s(", op->name);
            for (int i = 0; i < op->sig->ntensor; i++) {
                mc_str_add(&call, i ? ", n" : "m");
            }
            mc_str_add(&call, ")");
            check_call(call.s, NULL, false, MC_FLOAT64);
            mc_str_free(&call);
        }
    }
    CHECK(mc_op_find("softmax") && mc_op_find("softmax")->formula, "the formulas are gone");
}

TEST(softmax_of_unsigned_numbers)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = mc_array_from(MC_UINT8, MC_SHAPE(3), (uint8_t[]){ 1, 3, 2 }), *y = NULL;
    mc_node *in = mc_input(g, "x", MC_UINT8, 1), *out = mc_formula(g, "softmax(x)[0] / softmax(x)[2]");
    CHECK(mc_eval(1, &in, &x, 1, &out, &y) == MC_OK, "%s", mc_last_error());
    CHECK(y && fabs(mc_load_f64(y->dtype, y->data) - exp(-1)) < 1e-12, "%g",
          y ? mc_load_f64(y->dtype, y->data) : 0);
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_graph_free(g);
}
