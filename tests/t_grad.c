/* t_grad.c: what a gradient is asked for and how: known gradients, constants, disconnected and whole-number
 * variables, and the check by differences itself.  `formulas` brings every op that has a
 * gradient before the differences. */
#include "grad_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* y with constants in place of whole-number inputs, and the floats it needs. */
static mc_node *only_floats(struct grad_case *w, mc_node *y, mc_node **wrt, mc_array **value, int *n)
{
    mc_node *from[NLEAF], *to[NLEAF];
    size_t count, nfrom = 0;
    *n = 0;
    for (int i = 0; i < NLEAF; i++) {
        if (!mc_is_float(w->leaf[i]->type.dtype)) {
            from[nfrom] = w->leaf[i];
            to[nfrom++] = mc_constant(w->g, w->value[i]);
        }
    }
    mc_graph_replace(w->g, (int)nfrom, from, to, 1, &y);
    mc_node **list = mc_graph_reach(1, &y, &count);
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < NLEAF; k++) {
            if (list[i] == w->leaf[k]) {
                wrt[*n] = list[i];
                value[(*n)++] = w->value[k];
            }
        }
    }
    mc_free(list);
    return y;
}

/* ---- every op that has a gradient ---- */

static const char *const formulas[] = {
    "m + r", "m * c", "r * c", "m / s", "s * u + v", "where(b, m, s)", "u * r", "(r + c) ** 2", "n + m * n", "maximum(r, c)",
    "cast(cast(m, float32), float64) * m", "m.T * 2", "dimshuffle(t, [2, -1, 0, 1])", "squeeze(r * 2)", "expand_dims(u, 0) * c",
    "reshape(t, [4, -1])", "reshape(m, n.shape) * n", "flatten(t, ndim=2)", "swapaxes(t, 0, 2)", "transpose(t, axes=[1, 2, 0])",
    "specify_shape(n, [3, -1])", "scan_taps(n, least=2)", "shape_padleft(u, 2)", "ravel(m) * 3",
    "sum(m)", "sum(t, axis=[0, 2])", "sum(t, axis=1, keepdims=True)", "sum(n * n, axis=0)", "prod(m)", "prod(t, axis=1)", "max(m)",
    "max(t, axis=[1, 2])", "min(m, axis=0)", "min(t, axis=-1, keepdims=True)", "sup(t, axis=1)", "mean(t, axis=0)", "var(m, axis=1)", "std(u)",
    "norm(m)", "logsumexp(t, axis=1)", "cumsum(t, axis=1)", "cumsum(m)", "cumprod(m, axis=0)", "cumprod(u)", "cummax(m, axis=1)", "cummin(u)",
    "put_along_axis(m, [[0, 1], [1, 3], [2, 2]], n[:, :2], axis=1, mode='max')", "rfft(m)", "irfft(reshape(m, [2, 3, 2]))",
    "grad(prod(u), u)", "grad(sum(prod(t, axis=[0, 2])), t)", "grad(sum(cumprod(m, axis=1) * n), m)", "grad(sum(sqr(grad(prod(u), u))), u)",
    "dot(u, v)", "dot(m, u)", "dot(u, m.T)", "dot(m, n.T)", "dot(s, m)", "dot(m.T, n)", "batched_dot(t, swapaxes(t, 1, 2))",
    "tensordot(t, m, axes=2)", "outer(u, v)",
    "stack([u, v, u * v])", "stack([s, s * 2, 1])", "stack([m, n], axis=1)", "join([m, n, r * 2], axis=0)", "concatenate([m, n], axis=1)",
    "u[1:3]", "u[::-1]", "t[:, 1]", "t[1, ::2, -1]", "m[k]", "m[[0, 2, 2]]", "m[k, :2]", "m[k, k]", "t[:, k, 1]", "u[i]", "m[b]", "m[i, k]",
    "set_subtensor(u[1:3], v[:2])", "inc_subtensor(m[:, 1], u[:3])", "set_subtensor(m[k], n)", "inc_subtensor(m[[0, 2, 2]], n)", "inc_subtensor(u[[1, 1, 1]], s)",
    "set_subtensor(m[1], s)", "inc_subtensor(u[k], s)",
    "alloc(s, [3, 4]) * m", "alloc(u, [3, 4]) * m", "fill(m, s) * m", "softmax(m)", "softmax(t, axis=1)", "logsoftmax(m)", "crossentropy_softmax_1hot(m, k)",
    "ctc_loss(t, [[1, -1], [2, 3], [3, -1]], [2, 2, 1])", "ctc_costs_grad(t, [[1, -1], [2, 3]], [3, 1])", "ctc_costs_hessian(alloc(cast(0.3, t.dtype), [2, 3, 4]), [[1, -1], [2, 3]], [3, 3], t)",
    "layer_norm(m, u, v)", "sort(u)", "sort(m, axis=0)", "u[argsort(u)]", "permute_row_elements(m, argsort(n)) * n",
    "grad_clip(m, -100, 100) ** 2", "grad_scale(m, 1) ** 2", "assert_(m, b | ~b) ** 2", "grad_assert(m, b | ~b) ** 2", "clip(m, 0.4, 0.6)", "triu(m)", "tril(n)",
    "pool(m, [2, 2])", "pool(m, [2, 2], mode='sum')", "pool(m, [2, 2], ties='all')", "pool_pick(m, n, [2, 2], [1, 1])", "pool_grad(m, m[1:, 1:], [2, 2], [1, 1])",
    "bincount([0, 2, 1, 2], weights=u)", "lrn(m, n=3, alpha=0.3)", "lrn_grad(m, n, n=3, alpha=0.3)", "channel_sum(m, 2)",
    "all_reduce(m) ** 2", "all_reduce(m, op='max') ** 2", "broadcast(m) ** 2", "all_gather(m) ** 2", "reduce_scatter(m, op='mean') ** 2", /* a rank alone */
    "conv(t, t[:, :, :2])", "conv_inputs(t, swapaxes(t, 0, 1))", "conv_weights(t, t[:, :, 1:])",
};

/* A formula of the list may use an op that is not there; then it is named, unless no op has a gradient by
 * it. */
TEST(every_gradient_against_differences)
{
    for (size_t f = 0; f < NELEM(formulas); f++) {
        struct grad_case w = grad_case_new();
        mc_node *wrt[NLEAF], *y = mc_formula(w.g, formulas[f]);
        mc_array *value[NLEAF];
        double worst;
        int n;
        if (CHECK(!mc_is_error(y), "%s: %s", formulas[f], mc_error(w.g))) {
            y = only_floats(&w, y, wrt, value, &n);
            CHECK(mc_verify_grad(y, n, wrt, value, &worst) == MC_OK, "%s: %s", formulas[f], mc_last_error());
        }
        grad_case_free(&w);
    }
}

TEST(no_gradient_goes_untested)
{
    struct grad_case w = grad_case_new();
    static bool seen[512];
    for (size_t f = 0; f < NELEM(formulas); f++) {
        mc_node *y = mc_formula(w.g, formulas[f]);
        size_t count;
        mc_node **list = mc_graph_reach(1, &y, &count);
        for (size_t i = 0; i < count; i++) {
            seen[list[i]->op->flags & OP_LEAF || list[i]->op == &mc_op_item ? 511 : list[i]->op->index] =
                true;
        }
        mc_free(list);
    }
    for (int i = 0; mc_op_at(i); i++) {
        const struct mc_op *op = mc_op_at(i);
        bool elsewhere = strcmp(op->name, "print_") == 0; /* not asked for a thousand values: see below */
        elsewhere |= op->form == FORM_LOOP;               /* t_scan.c */
        elsewhere |= strcmp(mc_op_family(op), "Linear algebra") == 0; /* t_linalg_grad.c */
        CHECK(seen[i] || !op->grad || elsewhere, "%s has a gradient, and no formula of this file uses it",
              op->name);
    }
    grad_case_free(&w);
}

TEST(gradients_pass_what_is_printed)
{
    struct grad_case w = grad_case_new();
    CHECK(eval1(&w, mc_formula(w.g, "grad(print_(s) * 2, s)")) == 2, "%s", mc_error(w.g));
    grad_case_free(&w);
}

/* Second derivatives of a few shapes of graphs: the gradient's own ops must have gradients. */
TEST(gradients_of_gradients)
{
    static const char *const twice[] = {
        "sum(softmax(m) * n)", "sum(dot(m, n.T) ** 2)", "sum(exp(r * c))", "sum(tanh(dot(m, u)))", "mean(sqr(m[1:, ::2]))",
        "sum(logsoftmax(m) * n)", "sum(max(m * m, axis=1))", "sum(reshape(t, [6, 4]) ** 3)", "sum(join([m, n]) ** 3)", "sum(m[k] ** 3)",
        "sum(crossentropy_softmax_1hot(m, k))", "sum(var(m, axis=0))", "prod(u)", "sum(cumsum(u ** 2) ** 2)",
    };
    for (size_t f = 0; f < NELEM(twice); f++) {
        struct grad_case w = grad_case_new();
        mc_node *wrt[NLEAF], *grad[NLEAF], *y = mc_formula(w.g, twice[f]), *sum = NULL;
        mc_array *value[NLEAF];
        double worst;
        int n;
        if (CHECK(!mc_is_error(y), "%s: %s", twice[f], mc_error(w.g))) {
            y = only_floats(&w, y, wrt, value, &n);
            mc_status s = mc_grads(y, n, wrt, grad, NULL);
            /* the sum of all elements of all gradients, squared */
            for (int i = 0; s == MC_OK && i < n; i++) {
                mc_node *one = mc_op(w.g, "sqr", 1, &grad[i], NULL);
                one = mc_op(w.g, "sum", 1, &one, NULL);
                sum = sum ? mc_op(w.g, "add", 2, (mc_node *[]){ sum, one }, NULL) : one;
            }
            CHECK(s == MC_OK && mc_verify_grad(sum, n, wrt, value, &worst) == MC_OK, "%s twice: %s", twice[f],
                  mc_last_error());
        }
        grad_case_free(&w);
    }
}

/* ---- what is asked for ---- */

TEST(shapes_and_dtypes_of_gradients)
{
    static const struct { const char *cost, *wrt; } row[] = {
        { "sum(m + r)", "r" }, { "sum(m * c)", "c" }, { "sum(m) * s", "s" }, { "sum(cast(m, float32))", "m" }, { "sum(u * r)", "u" },
        { "sum(m * 2)", "m" }, { "max(t)", "t" }, { "sum(r * r)", "r" }, { "sum(c.T * 1)", "c" }, { "mean(r)", "r" },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        struct grad_case w = grad_case_new();
        mc_node *x = mc_var(w.g, row[i].wrt), *d = mc_grad(mc_formula(w.g, row[i].cost), x);
        CHECK(d->type.dtype == x->type.dtype && d->type.rank == x->type.rank, "%s by %s: %s", row[i].cost,
              row[i].wrt, mc_error(w.g));
        for (int k = 0; k < x->type.rank; k++) {
            CHECK(x->type.dims[k] != 1 || d->type.dims[k] == 1, "%s by %s: axis %d no longer broadcasts",
                  row[i].cost, row[i].wrt, k);
        }
        grad_case_free(&w);
    }
}

TEST(an_intermediate_node_can_be_asked_for)
{
    struct grad_case w = grad_case_new();
    mc_formula(w.g, "h = tanh(u); cost = sum(h * h * v); dh = grad(cost, h); want = 2 * h * v");
    CHECK(fabs(eval1(&w, mc_formula(w.g, "sum(abs(dh - want))"))) < 1e-14, "%s", mc_error(w.g));
    CHECK(eval1(&w, mc_formula(w.g, "grad(cost, cost)")) == 1, "a cost by itself");
    mc_formula(w.g, "both = grad(cost, [u, h])[0] - grad(cost, u)");
    CHECK(eval1(&w, mc_formula(w.g, "sum(abs(both))")) == 0, "%s", mc_error(w.g));
    grad_case_free(&w);
}

/* Three functions, as layers are timed: forward, to the inputs, to the weights. */
TEST(known_gradients_in_place_of_a_cost)
{
    struct grad_case w = grad_case_new();
    mc_node *y = mc_formula(w.g, "y = dot(m, n.T)"), *g = mc_formula(w.g, "m[:, 0:3] * 2"),
            *wrt[2] = { mc_var(w.g, "m"), mc_var(w.g, "n") };
    mc_node *d[2];
    mc_grad_spec spec = { .known = &y, .known_grad = &g, .nknown = 1 };
    CHECK(mc_grads(NULL, 2, wrt, d, &spec) == MC_OK, "%s", mc_last_error());
    mc_name(d[0], "dm");
    mc_name(d[1], "dn");
    CHECK(eval1(&w, mc_formula(w.g, "sum(abs(dm - dot(m[:, 0:3] * 2, n)))")) < 1e-13, "%s", mc_error(w.g));
    CHECK(eval1(&w, mc_formula(w.g, "sum(abs(dn - dot((m[:, 0:3] * 2).T, m)))")) < 1e-13, "%s",
          mc_error(w.g));

    /* with a cost as well, a known gradient replaces what the cost would send */
    mc_node *cost = mc_formula(w.g, "h = u * 3; cost = sum(h * v) + sum(u)"), *h = mc_var(w.g, "h"),
            *u = mc_var(w.g, "u"), *ten = mc_formula(w.g, "10 + 0 * u");
    CHECK(mc_grads(cost, 1, &u, d, &(mc_grad_spec){ .known = &h, .known_grad = &ten, .nknown = 1 }) == MC_OK,
          "%s", mc_last_error());
    CHECK(fabs(eval1(&w, d[0]) - 31) < 1e-13, "%g", eval1(&w, d[0]));
    grad_case_free(&w);
}

TEST(constants_on_demand)
{
    struct grad_case w = grad_case_new();
    mc_node *cost = mc_formula(w.g, "h = u * 3; cost = sum(h * u)"), *h = mc_var(w.g, "h"),
            *u = mc_var(w.g, "u"), *d;
    CHECK(mc_grads(cost, 1, &u, &d, &(mc_grad_spec){ .consider_constant = &h, .nconstant = 1 }) == MC_OK,
          "%s", mc_last_error());
    mc_name(d, "d");
    CHECK(eval1(&w, mc_formula(w.g, "sum(abs(d - 3 * u))")) < 1e-14, "h was not constant");
    CHECK(eval1(&w, mc_formula(w.g, "sum(abs(grad(sum(consider_constant(u) * u), u) - u))")) < 1e-14, "%s",
          mc_error(w.g));
    CHECK(mc_grads(cost, 1, &h, &d, &(mc_grad_spec){ .consider_constant = &h, .nconstant = 1 }) == MC_EGRAD,
          "a constant has a gradient");
    grad_case_free(&w);
}

TEST(disconnected_variables)
{
    static const struct { const char *cost, *wrt; bool connected; } row[] = {
        { "sum(u)", "v", false },
        { "sum(u * v.shape[0])", "v", false },       /* the size is no matter of the elements */
        { "sum(m[k])", "k", false },                 /* neither is an index */
        { "sum(where(b, m, n))", "b", false },
        { "sum(u * (v > 0.5))", "v", false },
        { "sum(consider_constant(u) * 2)", "u", false },
        { "sum(u) * i", "i", true },                 /* a whole number takes part, but has gradient zero */
        { "sum(cast(k, float64))", "k", true },
        { "sum(floor(u))", "u", true },
        { "sum(m * sgn(u))", "u", true },
        { "sum(cast(cast(u, int64), float64))", "u", true },
    };
    for (size_t r = 0; r < NELEM(row); r++) {
        struct grad_case w = grad_case_new();
        mc_node *cost = mc_formula(w.g, row[r].cost), *x = mc_var(w.g, row[r].wrt), *d = mc_grad(cost, x);
        struct mc_str want = { 0 };
        mc_str_addf(&want, "the cost does not depend on %s", row[r].wrt);
        CHECK(mc_is_error(d) == !row[r].connected, "%s by %s: %s", row[r].cost, row[r].wrt, mc_error(w.g));
        CHECK(row[r].connected || (mc_graph_status(w.g) == MC_EGRAD && strstr(mc_error(w.g), want.s)), "%s",
              mc_error(w.g));
        mc_graph_clear_error(w.g);
        mc_str_free(&want);
        CHECK(mc_grads(cost, 1, &x, &d, &(mc_grad_spec){ .disconnected = MC_DISCONNECTED_ZERO }) == MC_OK,
              "%s", mc_last_error());
        CHECK(mc_is_float(d->type.dtype) && d->type.rank == x->type.rank, "the zeros are %s",
              mc_dtype_name(d->type.dtype));
        mc_node *sum = mc_op(w.g, "sum", 1, (mc_node *[]){ mc_op(w.g, "abs", 1, &d, NULL) }, NULL);
        CHECK(eval1(&w, sum) == 0, "%s by %s is not zero", row[r].cost, row[r].wrt);
        grad_case_free(&w);
    }
}

/* A gradient depends on what its cost depends on, also where its formula is constant. */
TEST(constant_gradients_have_gradients)
{
    static const struct { const char *cost, *wrt; bool connected; } row[] = {
        { "sum(grad(sum(log(exp(u) * 3)), u))", "u", true },
        { "sum(grad(sum(log(exp(u) * 3) + v), u))", "v", true },
        { "sum(grad(sum(u - u), u))", "u", true },
        { "sum(grad(sum(u * 0), u))", "u", true },
        { "sum(grad(sum(u / u), u))", "u", true },
        { "sum(grad(sum(where(b, m, m * 2)), m) * n)", "m", true },
        { "sum(grad(sum(floor(m)), m))", "m", true },
        { "sum(grad(min(m), m) + u)", "m", true },
        { "sum(exp(grad(sum(dot(m, u)), u)))", "u", true },
        { "grad(s * 2, s)", "s", true },
        { "grad(s, s) + u[0]", "s", true },
        { "grad(floor(s), s) * s.shape.shape[0]", "s", true },
        { "sum(grad(sum(grad(sum(r * c), r)), c))", "r", true },
        { "sum(grad(sum(grad(sum(u * 2), u)), u))", "u", true },
        { "sum(grad(sum(u * 2), u))", "v", false },
        { "sum(grad(sum(u * v.shape[0]), u))", "v", false },
        { "sum(grad(sum(m[k]), m))", "k", false },
        { "sum(consider_constant(grad(sum(u * 2), u)))", "u", false },
        { "sum(u) * 2 + 1", "s", false },
    };
    for (size_t r = 0; r < NELEM(row); r++) {
        struct grad_case w = grad_case_new();
        mc_node *x = mc_var(w.g, row[r].wrt), *d;
        mc_grad(mc_formula(w.g, "s * 2"), mc_var(w.g, "s")); /* 2 is no function of s */
        d = mc_grad(mc_formula(w.g, row[r].cost), x);
        mc_array *out = NULL, *shape = NULL;
        CHECK(mc_is_error(d) == !row[r].connected, "%s by %s: %s", row[r].cost, row[r].wrt, mc_error(w.g));
        CHECK(row[r].connected || strstr(mc_error(w.g), "the cost does not depend on"), "%s by %s: %s",
              row[r].cost, row[r].wrt, mc_error(w.g));
        if (row[r].connected && !mc_is_error(d)) {
            mc_node *both[2] = { d, x };
            mc_array *made[2] = { NULL };
            CHECK(mc_eval(NLEAF, w.leaf, w.value, 2, both, made) == MC_OK, "%s: %s", row[r].cost,
                  mc_last_error());
            out = made[0];
            shape = made[1];
            CHECK(out && shape && mc_dims_equal(out->rank, out->dims, shape->rank, shape->dims),
                  "%s: another shape", row[r].cost);
            mc_node *sum = mc_op(w.g, "sum", 1, (mc_node *[]){ mc_op(w.g, "abs", 1, &d, NULL) }, NULL);
            CHECK(eval1(&w, sum) == 0, "%s by %s is not zero", row[r].cost, row[r].wrt);
        }
        mc_array_unref(&out);
        mc_array_unref(&shape);
        grad_case_free(&w);
    }
}

TEST(zero_gradients_have_the_shape_of_their_variable)
{
    struct grad_case w = grad_case_new();
    mc_node *n = mc_var(w.g, "n"), *d;
    mc_grads(mc_formula(w.g, "sum(floor(n))"), 1, &n, &d, NULL);
    mc_array *out = NULL;
    CHECK(mc_eval(NLEAF, w.leaf, w.value, 1, &d, &out) == MC_OK, "%s", mc_last_error());
    CHECK(out && out->rank == 2 && out->dims[0] == 3 && out->dims[1] == 4, "another shape");
    mc_array_unref(&out);
    grad_case_free(&w);
}

TEST(wrong_demands)
{
    static const struct { const char *cost, *wrt; mc_status status; const char *says; } row[] = {
        { "m", "m", MC_EGRAD, "the cost must be a float scalar, not float64[3, 4]; take its sum or mean" },
        { "sum(k)", "k", MC_EGRAD, "the cost must be a float scalar, not int64" },
        { "s > 0", "s", MC_EGRAD, "the cost must be a float scalar, not bool" },
        { "sum(tri_gamma(u))", "u", MC_EGRAD, "tri_gamma has no gradient with respect to argument 1: tri_gamma(u)" },
        { "sum(max_and_argmax(m, axis=0)[0])", "max_and_argmax", MC_ESYNTAX, "'max_and_argmax' is a function: max_and_argmax(" },
    };
    for (size_t r = 0; r < NELEM(row); r++) {
        struct grad_case w = grad_case_new();
        struct mc_str text = { 0 };
        mc_str_addf(&text, "grad(%s, %s)", row[r].cost, row[r].wrt);
        CHECK(mc_is_error(mc_formula(w.g, text.s)) && mc_graph_status(w.g) == row[r].status, "%s: %d", text.s,
              (int)mc_graph_status(w.g));
        CHECK(strstr(mc_error(w.g), row[r].says), "%s says: %s", text.s, mc_error(w.g));
        CHECK(strchr(mc_error(w.g), '^'), "no caret: %s", mc_error(w.g));
        mc_str_free(&text);
        grad_case_free(&w);
    }
    struct grad_case w = grad_case_new();
    mc_node *m = mc_var(w.g, "m"), *u = mc_var(w.g, "u"), *k = mc_var(w.g, "k"), *d;
    CHECK(mc_grads(NULL, 1, &m, &d, NULL) == MC_EARG && strstr(mc_last_error(), "neither a cost nor"), "%s",
          mc_last_error());
    CHECK(mc_grads(NULL, 1, &m, &d, &(mc_grad_spec){ .known = &m, .known_grad = &u, .nknown = 1 }) ==
                  MC_EGRAD &&
              strstr(mc_last_error(), "rank 1"),
          "%s", mc_last_error());
    CHECK(mc_grads(NULL, 1, &m, &d, &(mc_grad_spec){ .known = &k, .known_grad = &k, .nknown = 1 }) ==
              MC_EGRAD,
          "%s", mc_last_error());
    mc_node *pair = mc_formula(w.g, "max_and_argmax(m, axis=0)"), *cost = mc_formula(w.g, "sum(m)");
    CHECK(mc_grads(cost, 1, &pair, &d, NULL) == MC_EARG && strstr(mc_last_error(), "is a tuple"), "%s",
          mc_last_error());
    CHECK(mc_is_error(d), "an error gives a gradient");
    grad_case_free(&w);
}

/* ---- the check itself must be able to fail ---- */

TEST(verify_grad_finds_a_wrong_gradient)
{
    struct grad_case w = grad_case_new();
    mc_node *m = mc_var(w.g, "m");
    double worst = 0;
    /* consider_constant makes the gradient wrong on purpose: d(m * const(m)) = m, where differences say 2
     * m */
    mc_node *y = mc_formula(w.g, "m * consider_constant(m)");
    CHECK(mc_verify_grad(y, 1, &m, &w.value[2], &worst) == MC_ECHECK, "not found");
    CHECK(worst > 0.2 && strstr(mc_last_error(), "by m[") && strstr(mc_last_error(), "(wrt 1)"), "%g: %s",
          worst, mc_last_error());
    y = mc_formula(w.g, "m * m + floor(m * 3 - 7)");
    CHECK(mc_verify_grad(y, 1, &m, &w.value[2], &worst) == MC_OK && worst < 1e-6, "%g: %s", worst,
          mc_last_error());
    CHECK(mc_verify_grad(mc_formula(w.g, "2 * consider_constant(m)"), 1, &m, &w.value[2], &worst) == MC_EGRAD,
          "%s", mc_last_error());
    CHECK(mc_verify_grad(y, 1, &m, &w.value[0], &worst) == MC_ETYPE, "%s", mc_last_error());
    CHECK(mc_verify_grad(mc_formula(w.g, "m * u"), 1, &m, &w.value[2], &worst) == MC_EARG &&
              strstr(mc_last_error(), "'u'"),
          "%s", mc_last_error());
    grad_case_free(&w);
}

/* Inputs that f is not differentiated by: an index, a mask, a float. */
TEST(verify_grad_of_functions_of_more)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input_sized(g, "x", MC_FLOAT32, 2, (int64_t[]){ -1, 3 }),
            *k = mc_input(g, "k", MC_INT64, 1), *b = mc_input(g, "b", MC_BOOL, 1),
            *w = mc_input_sized(g, "w", MC_FLOAT32, 1, (int64_t[]){ 3 });
    mc_array *ax = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 3), (float[]){ .5f, -.5f, 1, 2, 3, -1 }),
             *ak = mc_array_from(MC_INT64, MC_SHAPE(3), (int64_t[]){ 1, 0, 1 }),
             *ab = mc_array_from(MC_BOOL, MC_SHAPE(3), (bool[]){ true, false, true }),
             *aw = mc_array_from(MC_FLOAT32, MC_SHAPE(3), (float[]){ 2, 3, 4 }),
             *small = mc_array_from(MC_INT32, MC_SHAPE(3), (int32_t[]){ 1, 0, 1 });
    mc_node *y = mc_formula(g, "where(b, tanh(x[k] * w), w)"),
            *bad = mc_formula(g, "x[k] * consider_constant(x)[k] * w"), *all[] = { k, b, w };
    mc_array *values[] = { ak, ab, aw };
    double worst = 0;
    CHECK(mc_verify_grad_given(y, 1, &x, &ax, 3, all, values, &worst) == MC_OK && worst < 1e-4, "%g: %s",
          worst, mc_last_error());
    CHECK(mc_verify_grad_given(y, 2, (mc_node *[]){ w, x }, (mc_array *[]){ aw, ax }, 2, all, values,
                               &worst) == MC_OK,
          "%s", mc_last_error());
    CHECK(mc_verify_grad_given(y, 1, &x, &ax, 3, all, (mc_array *[]){ small, ab, aw }, &worst) == MC_OK, "%s",
          mc_last_error());
    CHECK(mc_verify_grad_given(bad, 1, &x, &ax, 3, all, values, &worst) == MC_ECHECK &&
              strstr(mc_last_error(), "by x["),
          "%s", mc_last_error());
    CHECK(mc_verify_grad_given(mc_formula(g, "x * 2"), 1, &x, &ax, 3, all, values, &worst) == MC_OK,
          "values that nobody needs: %s", mc_last_error());
    CHECK(mc_verify_grad_given(mc_formula(g, "x * 2"), 1, &x, &ax, 0, NULL, NULL, NULL) == MC_OK, "%s",
          mc_last_error());
    const struct { int n; mc_node *given[3]; mc_array *value[3]; mc_status status; const char *says; } rows[] = {
        { 2, { k, b },    { ak, ab },     MC_EARG,   "'w'" },
        { 3, { k, b, w }, { ak, ab, ak }, MC_OK,     NULL }, /* integers may stand for floats */
        { 3, { k, b, w }, { aw, ab, aw }, MC_ETYPE,  "verify_grad: given 1, k is int64[?], and its array float32[3]" },
        { 3, { k, b, w }, { ak, ab, ax }, MC_ETYPE,  "verify_grad: given 3, w is float32[3], and its array float32[2, 3]" },
        { 3, { k, b, w }, { ak, NULL, aw }, MC_EARG, "verify_grad: given 2 or its array is missing or of another graph" },
        { 3, { k, b, NULL }, { ak, ab, aw }, MC_EARG, "verify_grad: given 3 or its array is missing or of another graph" },
        { 3, { k, b, x }, { ak, ab, ax }, MC_EARG,   "verify_grad: given 3 has a value already" },
        { 3, { k, k, w }, { ak, ak, aw }, MC_EARG,   "verify_grad: given 2 has a value already" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mc_status s = mc_verify_grad_given(y, 1, &x, &ax, rows[i].n, rows[i].given, rows[i].value, &worst);
        CHECK(rows[i].says ? s == rows[i].status && strstr(mc_last_error(), rows[i].says) : s == MC_OK,
              "row %zu: status %d, %s", i, s, mc_last_error());
    }
    mc_array *two = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 2, 3 }),
             *wide = mc_array_from(MC_FLOAT32, MC_SHAPE(3, 2), (float[]){ 1, 2, 3, 4, 5, 6 });
    CHECK(mc_verify_grad_given(y, 1, &x, &ax, 3, all, (mc_array *[]){ ak, ab, two }, &worst) == MC_ESHAPE &&
              strstr(mc_last_error(), "verify_grad: given 3, w is float32[3], and its array float32[2]"),
          "%s", mc_last_error());
    CHECK(mc_verify_grad_given(y, 1, &x, &wide, 3, all, values, &worst) == MC_ESHAPE &&
              strstr(mc_last_error(), "verify_grad: wrt 1, x is float32[?, 3], and its array float32[3, 2]"),
          "%s", mc_last_error());
    CHECK(mc_verify_grad_given(y, 1, &k, &ak, 0, NULL, NULL, &worst) == MC_ETYPE &&
              strstr(mc_last_error(), "wrt 1 is int64, and must be a float"),
          "%s", mc_last_error());
    CHECK(mc_verify_grad_given(y, 1, &x, &ax, 1, NULL, NULL, &worst) == MC_EARG, "%s", mc_last_error());
    for (size_t i = 0; i < 7; i++) {
        mc_array_unref(&(mc_array *[]){ ax, ak, ab, aw, small, two, wide }[i]);
    }
    mc_graph_free(g);
}

TEST(verify_grad_in_narrow_floats)
{
    for (mc_dtype d = MC_FLOAT16; d <= MC_FLOAT32; d++) {
        mc_graph *g = mc_graph_new();
        mc_node *x = mc_input(g, "x", d, 2), *y = mc_formula(g, "softmax(tanh(x) * 2)"),
                *bad = mc_formula(g, "exp(x) * consider_constant(x)");
        mc_array *a = mc_array_new(d, MC_SHAPE(3, 3));
        double worst;
        for (int64_t i = 0; i < 9; i++) {
            mc_array_set(a, (int64_t[]){ i / 3, i % 3 }, test_uniform(-1, 1));
        }
        CHECK(mc_verify_grad(y, 1, &x, &a, &worst) == MC_OK, "%s: %s", mc_dtype_name(d), mc_last_error());
        CHECK(mc_verify_grad(bad, 1, &x, &a, &worst) == MC_ECHECK, "%s: %g", mc_dtype_name(d), worst);
        mc_array_unref(&a);
        mc_graph_free(g);
    }
}

TEST(a_failed_allocation_while_verifying)
{
    mc_op_find("add"); /* the table of ops is made once, before */
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ .5f, -.5f });
        if (g && a) {
            mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *z = mc_input(g, "z", MC_FLOAT32, 1),
                    *y = mc_formula(g, "softmax(x) * z");
            double worst;
            mc_status s = mc_verify_grad_given(y, 1, &x, &a, 1, &z, &a, &worst);
            CHECK(s == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        }
        CHECK((g && a) || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&a);
        mc_graph_free(g);
    }
}

/* x == max(x) holds for one element of each line, also where x is computed once more for the comparison, next
 * to other work. */
TEST(each_line_has_its_maximum)
{
    static const char *const others[] = { "(x - a) * b", "softmax((x - a) * b + a)", "x" };
    for (int i = 0; i < (int)NELEM(others) * 4; i++) {
        const mc_dtype d = i & 1 ? MC_FLOAT64 : MC_FLOAT32;
        const int axis = i >> 1 & 1;
        char outputs[120];
        snprintf(outputs, sizeof outputs, "%s, sum(grad(sum(max((x - a) * b + a, axis=%d)), x))",
                 others[i >> 2], axis);
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", d, 2);
        mc_input_sized(g, "a", d, 2, (int64_t[]){ 1, 1 });
        mc_input_sized(g, "b", d, 2, (int64_t[]){ 1, 1 });
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, a, b", .outputs = outputs });
        mc_array *x = mc_array_new(d, MC_SHAPE(37, 41)), *a = mc_array_new(d, MC_SHAPE(1, 1)),
                 *b = mc_array_new(d, MC_SHAPE(1, 1));
        mc_array *y = NULL, *sum = NULL;
        for (int k = 0; k < 37 * 41; k++) {
            mc_store_f64(d, x->data + (size_t)k * mc_dtypes[d].size, test_uniform(-2, 2));
        }
        mc_store_f64(d, a->data, 0.4);
        mc_store_f64(d, b->data, 1.36);
        if (CHECK(f, "%s: %s", outputs, mc_error(g)) &&
            CHECK(mc_call(f, MC_IN(x, a, b), MC_OUT(&y, &sum)) == MC_OK, "%s", mc_last_error())) {
            const double have = mc_load_f64(d, sum->data), want = 1.36 * (axis ? 37 : 41);
            CHECK(fabs(have - want) < 1e-4, "%s of %s: %g, not %g", outputs, mc_dtype_name(d), have, want);
        }
        mc_array *all[] = { x, a, b, y, sum };
        for (size_t k = 0; k < NELEM(all); k++) {
            mc_array_unref(&all[k]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* There the largest is the element itself, in whatever form either is computed. */
TEST(maxima_over_axes_of_size_1)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { -1, 1 }, { 3, 1 }, { 1, -1 }, { -1, -1 } };
    static const char *const costs[] = { "sqr(max(t, axis=1))", "sqr(min(t, axis=[1]))", "sqr(max(t, axis=1, keepdims=True))", "sqr(t.T)", "sqr(prod(t, axis=1))",
                                         "t[:, 0] * max(t, axis=1)", "sqr(max(t.T, axis=0))" };
    for (size_t i = 0; i < NELEM(sizes) * NELEM(costs); i++) {
        const int64_t *size = sizes[i / NELEM(costs)], rows = size[0] == 3 ? 3 : 1;
        char outputs[200];
        snprintf(outputs, sizeof outputs, "grad(sum(grad(sum(%s), x)), x)", costs[i % NELEM(costs)]);
        mc_graph *g = mc_graph_new();
        mc_input_sized(g, "x", MC_FLOAT32, 2, size);
        mc_formula(g, "t = exp(x) / (1 + exp(x))");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = outputs });
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(rows, 1)), *y = NULL;
        for (int64_t k = 0; k < rows; k++) {
            ((float *)mc_array_data(x))[k] = 1.3565979f - (float)k;
        }
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", outputs,
              f ? mc_last_error() : mc_error(g));
        for (int64_t k = 0; y && k < rows; k++) {
            const double s = 1 / (1 + exp((double)k - 1.3565979)), want = s * (1 - s) * s * (4 - 6 * s),
                         have = ((float *)mc_array_data(y))[k];
            CHECK(fabs(have - want) < 1e-6, "%s of (%lld, %lld): %g, not %g", outputs, (long long)size[0],
                  (long long)size[1], have, want);
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* x == max(x) computes x twice, in kernels that may round otherwise. */
TEST(each_column_has_its_maximum)
{
    static const struct { mc_dtype dtype; const char *formula; } rows[] = {
        { MC_FLOAT32, "layer_norm(x)" }, { MC_FLOAT32, "x / sum(x, axis=1, keepdims=True)" },
        { MC_FLOAT32, "(x - 0.3) / std(x, axis=1, keepdims=True)" }, { MC_FLOAT32, "softmax(x) / max(x, axis=1, keepdims=True)" },
        { MC_FLOAT16, "sqr(x) * 0.3" }, { MC_FLOAT16, "x / sum(x, axis=1, keepdims=True)" }, { MC_FLOAT16, "exp(x) * tanh(x)" },
        { MC_BFLOAT16, "sqr(x) * 0.3" }, { MC_BFLOAT16, "sqrt(x) + sin(x)" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        const char *formula = rows[i].formula;
        char outputs[300];
        snprintf(outputs, sizeof outputs,
                 "sum(where(%s == max(%s, axis=0, keepdims=True), 1.0, 0.0), axis=1)", formula, formula);
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", rows[i].dtype, 2);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = outputs });
        mc_array *x = mc_array_new(rows[i].dtype, MC_SHAPE(37, 41)), *y = NULL;
        double found = 0;
        for (int k = 0; k < 37 * 41; k++) {
            mc_store_f64(x->dtype, x->data + (size_t)k * mc_dtypes[x->dtype].size, test_uniform(0.1, 2));
        }
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", formula,
              f ? mc_last_error() : mc_error(g));
        for (int k = 0; y && k < 37; k++) {
            found += mc_load_f64(y->dtype, y->data + (size_t)k * mc_dtypes[y->dtype].size);
        }
        CHECK(found >= 41, "%s of %s: %g of 41 columns have a largest element", formula,
              mc_dtype_name(rows[i].dtype), found);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
