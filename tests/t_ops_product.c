/* t_ops_product.c: products of every rank against one loop over NumPy's definition: the sum over paired
 * axes. */
#include "op_fixture.h"
#include <math.h>

/* A sum of products: batch axes first, then a's free axes, then b's. */
struct pairing {
    int batch, n;
    int64_t a[4], b[4];
};

static mc_array *contract(const mc_array *a, const mc_array *b, const struct pairing *p, mc_dtype d)
{
    int free_a[MC_MAX_RANK], free_b[MC_MAX_RANK], na = 0, nb = 0, rank = 0;
    int64_t dims[MC_MAX_RANK], inner[4], at[MC_MAX_RANK] = { 0 };
    for (int i = 0; i < a->rank; i++) {
        bool taken = i < p->batch;
        for (int k = 0; k < p->n; k++) {
            taken |= p->a[k] == i;
        }
        free_a[na] = i;
        na += !taken;
    }
    for (int i = 0; i < b->rank; i++) {
        bool taken = i < p->batch;
        for (int k = 0; k < p->n; k++) {
            taken |= p->b[k] == i;
        }
        free_b[nb] = i;
        nb += !taken;
    }
    for (int i = 0; i < p->batch; i++) {
        dims[rank++] = a->dims[i];
    }
    for (int i = 0; i < na; i++) {
        dims[rank++] = a->dims[free_a[i]];
    }
    for (int i = 0; i < nb; i++) {
        dims[rank++] = b->dims[free_b[i]];
    }
    for (int k = 0; k < p->n; k++) {
        inner[k] = a->dims[p->a[k]];
    }
    mc_array *y = mc_array_new(d, rank, dims);
    while (mc_array_size(y)) {
        int64_t ia[MC_MAX_RANK] = { 0 }, ib[MC_MAX_RANK] = { 0 }, k[4] = { 0 };
        double real = 0;
        uint64_t whole = 0;
        for (int i = 0; i < p->batch; i++) {
            ia[i] = ib[i] = at[i];
        }
        for (int i = 0; i < na; i++) {
            ia[free_a[i]] = at[p->batch + i];
        }
        for (int i = 0; i < nb; i++) {
            ib[free_b[i]] = at[p->batch + na + i];
        }
        bool any = mc_dims_count(p->n, inner) > 0;
        while (any) {
            for (int i = 0; i < p->n; i++) {
                ia[p->a[i]] = ib[p->b[i]] = k[i];
            }
            real += mc_array_get(a, ia) * mc_array_get(b, ib);
            whole += (uint64_t)(int64_t)mc_array_get(a, ia) * (uint64_t)(int64_t)mc_array_get(b, ib);
            any = next_index(p->n, inner, k);
        }
        char *to = y->data;
        for (int i = 0; i < rank; i++) {
            to += at[i] * y->strides[i];
        }
        if (mc_is_float(d)) {
            mc_store_f64(d, to, real);
        } else {
            mc_store_i64(d, to, (int64_t)whole);
        }
        if (!next_index(rank, dims, at)) {
            break;
        }
    }
    return y;
}

/* Sums in another order differ in their last digits. */
static void check_close(const mc_array *have, const mc_array *want, const char *what)
{
    if (have && mc_is_float(have->dtype) && have->dtype == want->dtype &&
        mc_dims_equal(have->rank, have->dims, want->rank, want->dims)) {
        double eps = mc_dtypes[have->dtype].eps;
        int64_t at = mc_array_differs(have, want, 4 * eps, 1e-12);
        CHECK(at < 0, "%s: element %lld differs", what, (long long)at);
    } else {
        check_same(have, want, what);
    }
}

static void try_product(const char *text, int ra, const int64_t *da, int rb, const int64_t *db,
                        const struct pairing *p)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_dtype e = test_random() % 3 ? d : (mc_dtype)(test_random() % MC_NDTYPE),
                 to = mc_dtype_promote(d, e);
        mc_array *a = sample(d, ra, da, 0, 12), *b = sample(e, rb, db, 0, 12);
        struct leaf leaf[] = { { "a", a, (unsigned)test_random(), false },
                               { "b", b, (unsigned)test_random(), false } };
        mc_array *y = run(2, leaf, text), *want = contract(a, b, p, to);
        check_close(y, want, text);
        mc_array *all[] = { a, b, y, want };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
    }
}

TEST(dot_of_every_rank)
{
    static const int64_t sizes[4] = { 2, 3, 1, 4 };
    for (int ra = 1; ra <= 4; ra++) {
        for (int rb = 1; rb <= 4; rb++) {
            for (int k = 0; k <= 5; k += 5) { /* nothing to sum, and something */
                int64_t da[4], db[4];
                struct pairing p = { .n = 1, .a = { ra - 1 }, .b = { rb == 1 ? 0 : rb - 2 } };
                for (int i = 0; i < 4; i++) {
                    da[i] = i == ra - 1 ? k : sizes[i];
                    db[i] = i == p.b[0] ? k : sizes[3 - i];
                }
                try_product("dot(a, b)", ra, da, rb, db, &p);
            }
        }
    }
    try_product("a @ b", 2, (int64_t[]){ 0, 3 }, 2, (int64_t[]){ 3, 0 },
                &(struct pairing){ .n = 1, .a = { 1 }, .b = { 0 } });
    try_product("dot(a, b)", 0, NULL, 3, (int64_t[]){ 3, 2, 2 }, &(struct pairing){ .n = 0 });
    try_product("dot(a, b)", 2, (int64_t[]){ 3, 2 }, 0, NULL, &(struct pairing){ .n = 0 });
}

TEST(tensordot_pairs_axes)
{
    static const struct { const char *text; int ra, rb; int64_t da[4], db[4]; struct pairing p; } rows[] = {
        { "tensordot(a, b)", 3, 3, { 2, 3, 4 }, { 3, 4, 5 }, { 0, 2, { 1, 2 }, { 0, 1 } } },
        { "tensordot(a, b, axes=1)", 3, 2, { 2, 3, 4 }, { 4, 5 }, { 0, 1, { 2 }, { 0 } } },
        { "tensordot(a, b, axes=0)", 2, 1, { 2, 3 }, { 4 }, { 0, 0, { 0 }, { 0 } } },
        { "tensordot(a, b, axes=[0, 2], axes_b=[1, 0])", 3, 3, { 2, 3, 4 }, { 4, 2, 5 }, { 0, 2, { 0, 2 }, { 1, 0 } } },
        { "tensordot(a, b, axes=[-1], axes_b=[-1])", 2, 4, { 3, 4 }, { 2, 2, 3, 4 }, { 0, 1, { 1 }, { 3 } } },
        { "tensordot(a, b, axes=3)", 3, 3, { 2, 3, 4 }, { 2, 3, 4 }, { 0, 3, { 0, 1, 2 }, { 0, 1, 2 } } },
        { "tensordot(a, b, axes=[1, 0], axes_b=[0, 1])", 2, 2, { 2, 3 }, { 3, 2 }, { 0, 2, { 1, 0 }, { 0, 1 } } },
        { "tensordot(a, b, axes=2)", 4, 3, { 2, 0, 3, 1 }, { 3, 1, 2 }, { 0, 2, { 2, 3 }, { 0, 1 } } },
        { "tensordot(a, b, axes=2)", 3, 3, { 2, 3, 0 }, { 3, 0, 2 }, { 0, 2, { 1, 2 }, { 0, 1 } } },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        try_product(rows[i].text, rows[i].ra, rows[i].da, rows[i].rb, rows[i].db, &rows[i].p);
    }
}

TEST(batched_dot_of_every_rank)
{
    static const struct { int ra, rb; int64_t da[4], db[4]; struct pairing p; } rows[] = {
        { 3, 3, { 2, 3, 4 }, { 2, 4, 5 }, { 1, 1, { 2 }, { 1 } } },
        { 2, 2, { 3, 4 }, { 3, 4 }, { 1, 1, { 1 }, { 1 } } },
        { 3, 2, { 2, 3, 4 }, { 2, 4 }, { 1, 1, { 2 }, { 1 } } },
        { 2, 3, { 2, 4 }, { 2, 4, 3 }, { 1, 1, { 1 }, { 1 } } },
        { 1, 1, { 3 }, { 3 }, { 1, 0, { 0 }, { 0 } } },
        { 1, 3, { 3 }, { 3, 2, 2 }, { 1, 0, { 0 }, { 0 } } },
        { 3, 1, { 3, 2, 2 }, { 3 }, { 1, 0, { 0 }, { 0 } } },
        { 4, 3, { 2, 3, 2, 4 }, { 2, 4, 5 }, { 1, 1, { 3 }, { 1 } } },
        { 3, 4, { 2, 3, 4 }, { 2, 3, 4, 2 }, { 1, 1, { 2 }, { 2 } } },
        { 3, 3, { 0, 3, 4 }, { 0, 4, 5 }, { 1, 1, { 2 }, { 1 } } },
        { 3, 3, { 2, 3, 0 }, { 2, 0, 5 }, { 1, 1, { 2 }, { 1 } } },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        try_product("batched_dot(a, b)", rows[i].ra, rows[i].da, rows[i].rb, rows[i].db, &rows[i].p);
    }
}

TEST(products_in_text)
{
    static const char *const rows[][2] = {
        { "dot(x, W)", "dot(x, W)" }, { "x @ W", "dot(x, W)" }, { "batched_dot(t, t)", "batched_dot(t, t)" },
        { "tensordot(x, W, axes=1)", "dot(x, W)" }, { "tensordot(x, W, axes=[1], axes_b=[0])", "dot(x, W)" },
    };
    mc_graph *g = mc_graph_new();
    mc_formula(
        g,
        "input x float32[?, 784]; input W float32[784, 10]; input t float32[?, ?, ?]; input v float32[784]");
    for (size_t i = 0; i < NELEM(rows); i++) {
        char *text = mc_node_text(mc_formula(g, rows[i][0]));
        CHECK(text && strcmp(text, rows[i][1]) == 0, "%s prints as %s  %s", rows[i][0], text, mc_error(g));
        mc_text_free(text);
    }
    mc_node *y = mc_formula(g, "dot(dot(x, W), transpose(W))"), *s = mc_formula(g, "dot(v, v)");
    CHECK(y->type.dims[0] == -1 && y->type.dims[1] == 784, "dims %lld", (long long)y->type.dims[1]);
    CHECK(s->type.rank == 0, "rank %d", s->type.rank);
    CHECK(mc_formula(g, "size(dot(x, W), 0)") != NULL &&
              mc_formula(g, "dot(x, W)")->op->size(mc_formula(g, "dot(x, W)"), 0, 0) ==
                  mc_formula(g, "size(x, 0)"),
          "the size of a product is that of its operand");
    mc_graph_free(g);
}

TEST(mistakes_in_products)
{
    static const char *const rows[][2] = {
        { "dot(x, V)", "dot: inner sizes 784 and 512 differ  [x: float32[?, 784], V: float32[512, 10]]" },
        { "dot(x, v)", "dot: inner sizes 784 and 512 differ" },
        { "dot(v, t)", "dot: inner sizes 512 and 4 differ" },
        { "batched_dot(t, s)", "batched_dot: batch sizes 2 and 3 differ" },
        { "batched_dot(1.5, t)", "batched_dot: expected a batch axis, got a scalar" },
        { "tensordot(t, t, axes=1)", "tensordot: inner sizes 5 and 2 differ" },
        { "tensordot(t, t, axes=4)", "tensordot: cannot sum over 4 axes of ranks 3 and 3" },
        { "tensordot(t, t, axes=[0, 0], axes_b=[0, 1])", "tensordot: axis 0 is given twice" },
        { "tensordot(t, t, axes=[0, 1])", "tensordot: axes must be a count unless axes_b is given" },
        { "tensordot(t, t, axes=[0], axes_b=[0, 1])", "tensordot: axes has 1 entries, but axes_b has 2" },
        { "tensordot(t, t, axes=[3], axes_b=[0])", "tensordot: axis 3 is out of range for rank 3" },
        { "tensordot(tensordot(t, t, axes=0), tensordot(t, t, axes=0), axes=0)", "tensordot: the result would have more than 8 axes" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(
            g, "input x float32[?, 784]; input V float32[512, 10]; input v float32[512]; input t float32[2, "
               "4, 5]; input s float32[3, 5, 1]");
        mc_formula(g, rows[i][0]);
        CHECK(strstr(mc_error(g), rows[i][1]), "%s says %s", rows[i][0], mc_error(g));
        mc_graph_free(g);
    }
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)), *b = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 5));
    struct leaf leaf[] = { { "a", a, 0, false }, { "b", b, 0, false } };
    CHECK(!run(2, leaf, "dot(a, b)") && strstr(mc_last_error(), "dot: inner sizes 3 and 4 differ"), "%s",
          mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&b);
}

TEST(gradients_of_products)
{
    static const char *const rows[] = {
        "dot(m, n)", "dot(m, u)", "dot(v, m)", "dot(u, u)", "dot(3, m)", "dot(sum(u), m)", "dot(t, n)", "dot(n, t)", "dot(t, u)",
        "dot(m, dot(n, m))", "batched_dot(t, dimshuffle(t, [0, 2, 1]))", "batched_dot(m, m)", "batched_dot(v, m)", "batched_dot(t, dimshuffle(m, [0, 1])[:2])",
        "tensordot(t, t, axes=[0, 1], axes_b=[0, 1])", "tensordot(m, v, axes=0)", "tensordot(t, t, axes=3)", "outer(u, v)", "m @ m.T @ v",
    };
    mc_array *m = sample(MC_FLOAT64, 2, (int64_t[]){ 3, 4 }, -1, 1),
             *n = sample(MC_FLOAT64, 2, (int64_t[]){ 4, 3 }, -1, 1);
    mc_array *t = sample(MC_FLOAT64, 3, (int64_t[]){ 2, 3, 4 }, -1, 1),
             *u = sample(MC_FLOAT64, 1, (int64_t[]){ 4 }, -1, 1);
    mc_array *v = sample(MC_FLOAT64, 1, (int64_t[]){ 3 }, -1, 1);
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct leaf leaf[] = { { "m", m, (unsigned)test_random(), false },
                               { "n", n, (unsigned)test_random(), false },
                               { "t", t, (unsigned)test_random(), false },
                               { "u", u, (unsigned)test_random(), false },
                               { "v", v, (unsigned)test_random(), false } };
        check_slopes(5, leaf, rows[i]);
    }
    mc_array *all[] = { m, n, t, u, v };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
}

TEST(products_without_memory)
{
    mc_array *a = sample(MC_FLOAT32, 3, (int64_t[]){ 2, 3, 4 }, -1, 1), *out = NULL;
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        if (g) {
            mc_node *x = mc_input(g, "x", MC_FLOAT32, 3),
                    *y = mc_formula(g, "tensordot(x, x, axes=[0, 1], axes_b=[0, 1])");
            mc_status s = mc_is_error(y) ? mc_graph_status(g) : mc_eval(1, &x, &a, 1, &y, &out);
            CHECK(s == MC_OK || ALLOC_FAILED, "failed with memory: %s", mc_last_error());
            mc_array_unref(&out);
        }
        mc_graph_free(g);
    }
    mc_array_unref(&a);
}

/* Where the processor can fuse a product with a sum, kernels may, and the reference does not: -1 + (1 -
 * 2^-54) is 0. */
TEST(the_reference_rounds_every_product)
{
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(2), (double[]){ 1, 1 + 0x1p-27 });
    mc_array *b = mc_array_from(MC_FLOAT64, MC_SHAPE(2), (double[]){ -1, 1 - 0x1p-27 });
    struct leaf leaf[] = { { "a", a, 0, false }, { "b", b, 0, false } };
    mc_array *y = run(2, leaf, "dot(a, b)");
    CHECK(y && mc_array_get(y, NULL) == 0, "%g, not 0", y ? mc_array_get(y, NULL) : NAN);
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_array_unref(&y);
}
