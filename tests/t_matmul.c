/* t_matmul.c: matmul, dot and batched_dot of every pair of ranks, with their gradients, as NumPy and PyTorch
 * have them. */
#include "function_words.h"

/* Operands are (i * 3 + 1) % 7 - 3 and (i * 5 + 2) % 7 - 3; gradients are of sum(y * c), c being (i * 2 + 3)
 * % 7 - 3.  Of y and of the gradients by a and b: the first element, the last, and the sum of i * element i,
 * counted from 1. */
static const struct known {
    const char *text;
    int ra, rb, ry;
    int64_t a[4], b[4], y[4];
    double is[3][3];
} knowns[] = {
    { "a @ b",
      4,
      4,
      4,
      { 2, 2, 2, 3 },
      { 2, 2, 3, 2 },
      { 2, 2, 2, 2 },
      { { 10, -13, 27 }, { -6, 4, -98 }, { 0, -10, -135 } } },
    { "a @ b",
      4,
      4,
      4,
      { 2, 1, 2, 3 },
      { 1, 3, 3, 2 },
      { 2, 3, 2, 2 },
      { { 10, -3, -61 }, { -5, 4, 98 }, { 6, -1, -170 } } },
    { "a @ b",
      2,
      3,
      3,
      { 2, 3 },
      { 2, 3, 2 },
      { 2, 2, 2 },
      { { 10, 8, 52 }, { -8, 3, 32 }, { 0, -9, -250 } } },
    { "a @ b", 1, 3, 2, { 3 }, { 2, 3, 2 }, { 2, 2 }, { { 10, 10, 29 }, { -8, 8, 30 }, { 0, 3, 120 } } },
    { "a @ b", 3, 1, 2, { 2, 2, 3 }, { 3 }, { 2, 2 }, { { -7, 9, 25 }, { 0, -2, 44 }, { -3, -8, -3 } } },
    { "a @ b",
      3,
      2,
      3,
      { 2, 2, 3 },
      { 3, 2 },
      { 2, 2, 2 },
      { { 10, 18, 81 }, { -6, 4, 57 }, { 8, -2, -71 } } },
    { "a @ b",
      3,
      3,
      3,
      { 2, 2, 3 },
      { 1, 3, 2 },
      { 2, 2, 2 },
      { { 10, 18, 81 }, { -6, 4, 57 }, { 8, -2, -71 } } },
    { "a @ b",
      3,
      3,
      3,
      { 1, 2, 3 },
      { 2, 3, 2 },
      { 2, 2, 2 },
      { { 10, 8, 52 }, { -8, 3, 32 }, { 0, -9, -250 } } },
    { "a @ b", 1, 1, 0, { 3 }, { 3 }, { 0 }, { { -7, -7, -7 }, { 0, 0, 0 }, { 0, 0, 0 } } },
    { "a @ b", 2, 1, 1, { 2, 3 }, { 3 }, { 2 }, { { -7, -11, -29 }, { 0, 4, -14 }, { 0, -2, 6 } } },
    { "a @ b",
      4,
      4,
      4,
      { 1, 1, 2, 3 },
      { 2, 2, 3, 1 },
      { 2, 2, 2, 1 },
      { { -7, 2, -38 }, { -3, -8, -96 }, { 0, 6, 162 } } },
    { "a @ b",
      4,
      3,
      4,
      { 2, 2, 2, 3 },
      { 2, 3, 2 },
      { 2, 2, 2, 2 },
      { { 10, 10, -62 }, { -6, -4, -127 }, { -3, -7, -99 } } },
    { "a @ b",
      2,
      4,
      4,
      { 2, 3 },
      { 1, 1, 3, 2 },
      { 1, 1, 2, 2 },
      { { 10, -3, 16 }, { -6, 3, 24 }, { 0, -5, -54 } } },
    { "a @ b",
      4,
      3,
      4,
      { 2, 1, 1, 3 },
      { 2, 3, 2 },
      { 2, 2, 1, 2 },
      { { 10, 8, 52 }, { -8, 7, 64 }, { 0, 3, 110 } } },
    { "dot(a, b)",
      3,
      3,
      4,
      { 2, 2, 3 },
      { 2, 3, 2 },
      { 2, 2, 2, 2 },
      { { 10, -3, 62 }, { -8, -16, -36 }, { -5, 10, 143 } } },
    { "batched_dot(a, b)",
      3,
      3,
      3,
      { 2, 2, 3 },
      { 1, 3, 2 },
      { 2, 2, 2 },
      { { 10, 18, 81 }, { -6, 4, 57 }, { 8, -2, -71 } } },
    { "batched_dot(a, b)",
      3,
      3,
      3,
      { 1, 2, 3 },
      { 2, 3, 2 },
      { 2, 2, 2 },
      { { 10, 8, 52 }, { -8, 3, 32 }, { 0, -9, -250 } } },
    { "batched_dot(a, b)",
      2,
      3,
      2,
      { 1, 3 },
      { 2, 3, 2 },
      { 2, 2 },
      { { 10, 10, 29 }, { -8, 8, 30 }, { 0, 3, 120 } } },
};

static mc_array *values(mc_dtype d, int rank, const int64_t *dims, int by, int from)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0, n = mc_array_size(a); i < n; i++) {
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size, (double)((i * by + from) % 7 - 3));
    }
    return a;
}

static void check_known(const struct known *k, mc_dtype d, const mc_array *have, int part, const char *how)
{
    double sum = 0;
    const int64_t n = mc_array_size(have);
    for (int64_t i = 0; i < n; i++) {
        sum += at(have, i) * (double)(i + 1);
    }
    const double *want = k->is[part];
    CHECK(at(have, 0) == want[0] && at(have, n - 1) == want[1] && sum == want[2],
          "%s of ranks %d and %d, %s, %s, part %d: %g, ..., %g; %g", k->text, k->ra, k->rb, mc_dtype_name(d),
          how, part, at(have, 0), at(have, n - 1), sum);
}

/* promised: every size is known while building; otherwise those of 1 alone. */
static void try_known(const struct known *k, mc_dtype d, bool promised, const char *mode)
{
    mc_graph *g = mc_graph_new();
    const struct { const char *name; int rank, by, from; const int64_t *dims; } in[3] = {
        { "a", k->ra, 3, 1, k->a }, { "b", k->rb, 5, 2, k->b }, { "c", k->ry, 2, 3, k->y },
    };
    mc_array *v[3], *out[3] = { 0 };
    for (int i = 0; i < 3; i++) {
        int64_t dims[4];
        for (int r = 0; r < in[i].rank; r++) {
            dims[r] = promised || in[i].dims[r] == 1 ? in[i].dims[r] : -1;
        }
        mc_input_sized(g, in[i].name, d, in[i].rank, dims);
        v[i] = values(d, in[i].rank, in[i].dims, in[i].by, in[i].from);
    }
    mc_name(mc_formula(g, k->text), "y");
    mc_function *f = made(g,
                          mc_compile(g, &(mc_spec){ .inputs = "a, b, c",
                                                    .outputs = "y, grad(sum(y * c), a), grad(sum(y * c), b)",
                                                    .mode = mode }));
    if (f && fine(mc_call(f, MC_IN(v[0], v[1], v[2]), MC_OUT(&out[0], &out[1], &out[2])))) {
        CHECK(mc_dims_equal(out[0]->rank, out[0]->dims, k->ry, k->y), "%s: rank %d, not %d, or other sizes",
              k->text, out[0]->rank, k->ry);
        for (int i = 0; i < 3; i++) {
            check_known(k, d, out[i], i, mode);
        }
        int products = 0;
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            products += strcmp(mc_function_step(f, i).kind, "gemm") == 0;
        }
        bool numbers = k->ra == 1 && k->rb == 1;
        CHECK(products > 0 || numbers, "%s of ranks %d and %d: no solver multiplies", k->text, k->ra, k->rb);
    }
    mc_function_free(f);
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&v[i]);
        mc_array_unref(&out[i]);
    }
    mc_graph_free(g);
}

TEST(products_and_their_gradients_are_numpys)
{
    for (size_t i = 0; i < NELEM(knowns); i++) {
        try_known(&knowns[i], MC_FLOAT32, false, "FAST_RUN");
        try_known(&knowns[i], MC_FLOAT64, true, "FAST_RUN");
        try_known(&knowns[i], MC_FLOAT32, i % 2, "FAST_COMPILE");
        try_known(&knowns[i], MC_FLOAT32, !(i % 2), "DEBUG");
    }
}

TEST(matmul_and_the_operator_are_one)
{
    static const char *const rows[][2] = {
        { "matmul(m, n)", "dot(m, n)" },
        { "m @ v", "dot(m, v)" },
        { "t @ u", "batched_dot(t, u)" },
        { "t @ dimshuffle(t, [0, 2, 1])", "batched_dot(t, dimshuffle(t, order=[0, 2, 1]))" },
        { "m @ u", "batched_dot(dimshuffle(m, order=[-1, 0, 1]), u)" },
        { "dot(t, n)", "t @ n" },
    };
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input m float32[3, 4]; input n float32[4, 3]; input v float32[4]; input t float32[?, 3, "
                  "4]; input u float32[?, 4, 5]");
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_node *one = mc_formula(g, rows[i][0]), *other = mc_formula(g, rows[i][1]);
        CHECK(!mc_is_error(one) && one == other, "%s is not %s %s", rows[i][0], rows[i][1], mc_error(g));
    }
    mc_node *m = mc_var(g, "m"), *n = mc_var(g, "n");
    CHECK(mc_matmul(m, n) == mc_formula(g, "m @ n"), "mc_matmul");
    mc_graph_free(g);
}

TEST(mistakes_in_matmul)
{
    static const struct { const char *text, *says; } rows[] = {
        { "s @ m", "matmul: expected a matrix, got a scalar; multiply by a scalar with *" },
        { "m @ m", "matmul: inner sizes 4 and 3 differ" },
        { "t @ u", "matmul: sizes 2 and 3 of a batch axis differ" },
        { "batched_dot(p, q)", "batched_dot: batch sizes 2 and 3 differ" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input s float32; input m float32[3, 4]; input t float32[2, 3, 4]; input u float32[6, "
                      "3, 4, 5]; input p float32[2, 3, 4]; input q float32[3, 4, 5]");
        mc_formula(g, rows[i].text);
        CHECK(strstr(mc_error(g), rows[i].says), "%s says %s", rows[i].text, mc_error(g));
        mc_graph_free(g);
    }
}

/* Six products each, but of batches (2, 3) and (3, 2); and a size of 1 that nothing promises. */
TEST(batches_that_differ_when_called)
{
    static const struct { const char *declared, *text; int rank; int64_t a[4], b[4]; const char *says; } rows[] = {
        { "input a float32[?, ?, 2, 4]; input b float32[?, ?, 4, 5]", "a @ b", 4, { 2, 3, 2, 4 }, { 3, 2, 4, 5 }, "sizes 2 and 3 of a batch axis differ" },
        { "input a float32[?, ?, 2, 4]; input b float32[?, ?, 4, 5]", "a @ b", 4, { 1, 6, 2, 4 }, { 2, 3, 4, 5 }, "only a size known to be 1 broadcasts" },
        { "input a float32[?, 3, 2, 4]; input b float32[2, ?, 4, 5]", "a @ b", 4, { 3, 3, 2, 4 }, { 2, 3, 4, 5 }, "has size 3, not 2" },
        { "input a float32[?, 2, 4]; input b float32[?, 4, 5]", "a @ b", 3, { 2, 2, 4 }, { 3, 4, 5 }, "batch sizes 2 and 3 differ" },
        { "input a float32[?, 2, 4]; input b float32[?, 4, 5]", "a @ b", 3, { 1, 2, 4 }, { 3, 4, 5 }, "batch sizes 1 and 3 differ; only a size known to be 1 broadcasts" },
        { "input a float32[?, 2, 4]; input b float32[?, 4, 5]", "batched_dot(a, b)", 3, { 3, 2, 4 }, { 1, 4, 5 }, "batch sizes 3 and 1 differ; only a size known to be 1 broadcasts" },
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };
    for (size_t i = 0; i < 2 * NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, rows[i / 2].declared);
        mc_function *f = made(
            g,
            mc_compile(g, &(mc_spec){ .inputs = "a, b", .outputs = rows[i / 2].text, .mode = modes[i % 2] }));
        mc_array *a = values(MC_FLOAT32, rows[i / 2].rank, rows[i / 2].a, 3, 1),
                 *b = values(MC_FLOAT32, rows[i / 2].rank, rows[i / 2].b, 3, 1), *y = NULL;
        CHECK(f && mc_call(f, MC_IN(a, b), MC_OUT(&y)) < 0 && strstr(mc_last_error(), rows[i / 2].says),
              "%s in %s: %s", rows[i / 2].declared, modes[i % 2], mc_last_error());
        mc_array_unref(&a);
        mc_array_unref(&b);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* [1, 1, -1] does not say that rows stay rows, even where their size is not known either. */
TEST(products_whose_rows_become_one)
{
    static const double rows[6] = { 1, 2, 3, 4, 5, 6 }, one[4] = { 1, 0, 0, 1 }, by[6] = { 7, 1, 2, 3, 5, 4 };
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input a float64[3, ?]; input b float64[?, ?]; input v float64[1, 1, ?]");
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "a, b, v", .outputs = "reshape(dot(a, b), [1, 1, -1]) * v" }));
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(3, 2), rows),
             *b = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 2), one),
             *v = mc_array_from(MC_FLOAT64, MC_SHAPE(1, 1, 6), by), *y = NULL;
    CHECK(f && mc_call(f, MC_IN(a, b, v), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    for (int i = 0; y && i < 6; i++) {
        CHECK(at(y, i) == rows[i] * by[i], "element %d: %g, and not %g", i, at(y, i), rows[i] * by[i]);
    }
    mc_array_unref(&a), mc_array_unref(&b), mc_array_unref(&v), mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}
