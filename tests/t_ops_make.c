/* t_ops_make.c: alloc, arange, grids, and what is known of the sizes of things made from a shape. */
#include "sample.h"
#include <math.h>

/* ---- alloc ---- */

TEST(alloc_repeats)
{
    static const struct { int rank; int64_t dims[3], shape[3]; const char *text; } rows[] = {
        { 0, { 0 }, { 2, 3, 4 }, "alloc(x, [2, 3, 4])" },       { 1, { 4 }, { 2, 3, 4 }, "alloc(x, [2, 3, 4])" },
        { 2, { 3, 1 }, { 2, 3, 4 }, "alloc(x, [2, 3, 4])" },    { 3, { 1, 3, 1 }, { 2, 3, 4 }, "alloc(x, [2, 3, 4])" },
        { 3, { 2, 3, 4 }, { 2, 3, 4 }, "alloc(x, shape(x))" },  { 2, { 1, 1 }, { 2, 0, 4 }, "alloc(x, [2, 0, 4])" },
        { 2, { 3, 0 }, { 2, 3, 0 }, "alloc(x, [2, size(x, 0), size(x, 1)])" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
            mc_array *x = sample(d, rows[k].rank, rows[k].dims, 0, 1), *y = run1(rows[k].text, x, 7);
            if (!CHECK(y && y->dtype == d && mc_dims_equal(y->rank, y->dims, 3, rows[k].shape), "%s: %s",
                       rows[k].text, mc_last_error())) {
                mc_array_unref(&x);
                continue;
            }
            int64_t at[3] = { 0 }, from[3] = { 0 };
            for (int64_t i = 0; i < mc_array_size(y); i++) {
                for (int a = 0; a < x->rank; a++) {
                    from[a] = x->dims[a] == 1 ? 0 : at[3 - x->rank + a];
                }
                CHECK(mc_array_get(y, at) == mc_array_get(x, from), "%s of %s, element %lld", rows[k].text,
                      mc_dtype_name(d), (long long)i);
                for (int a = 3; a-- > 0 && ++at[a] == y->dims[a];) {
                    at[a] = 0;
                }
            }
            mc_array_unref(&y);
            mc_array_unref(&x);
        }
    }
}

TEST(alloc_of_one_number_is_a_vector)
{
    mc_array *x = mc_array_scalar(MC_FLOAT32, 3), *y = run1("alloc(x, 5)", x, 0);
    CHECK(y && y->rank == 1 && y->dims[0] == 5 && mc_array_get(y, (int64_t[]){ 4 }) == 3, "%s",
          mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&y);
}

/* Only a promised size of 1 is repeated. */
TEST(alloc_wants_a_promise)
{
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(1, 3));
    mc_array *y = run1("alloc(x, [4, 3])", x, 0), *z = run1("alloc(x, [4, 3])", x, 1),
             *same = run1("alloc(x, [1, 3])", x, 0);
    CHECK(!y && z && same, "an unknown size of 1 was repeated, or a promised one was not");
    y = run1("alloc(x, [4, 3])", x, 2);
    CHECK(!y && strstr(mc_last_error(), "declare a size of 1"), "says '%s'", mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&z);
    mc_array_unref(&same);
}

TEST(alloc_gradients)
{
    static const struct { int rank; int64_t dims[3]; unsigned sized; const char *text; } rows[] = {
        { 0, { 0 }, 0, "alloc(x, [2, 3])" },          { 1, { 3 }, 0, "alloc(x, [2, 3])" },
        { 2, { 2, 1 }, 2, "alloc(x, [4, 2, 3])" },    { 2, { 1, 1 }, 3, "alloc(x, [1, 3])" },
        { 2, { 2, 3 }, 0, "alloc(x, shape(x))" },     { 1, { 1 }, 1, "alloc(x, [1])" },
        { 2, { 2, 3 }, 0, "sqr(fill(x, 2.0) * x)" },  { 2, { 2, 3 }, 0, "second(x, sum(x, axis=0))" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *x = sample(MC_FLOAT64, rows[k].rank, rows[k].dims, .5, 1.5);
        double worst = 0;
        CHECK(check_grad(rows[k].text, x, rows[k].sized, &worst) == MC_OK, "%s: %g: %s", rows[k].text, worst,
              mc_last_error());
        mc_array_unref(&x);
    }
}

/* ---- arange ---- */

static int64_t stepped(double start, double stop, double step)
{
    int64_t n = 0;
    while (step > 0 ? start + (double)n * step < stop : start + (double)n * step > stop) {
        n++;
    }
    return n;
}

TEST(arange_counts)
{
    static const struct { const char *text; mc_dtype d; double start, stop, step; } rows[] = {
        { "arange(5)", MC_INT64, 0, 5, 1 },           { "arange(0)", MC_INT64, 0, 0, 1 },
        { "arange(-3)", MC_INT64, 0, -3, 1 },         { "arange(2, 7)", MC_INT64, 2, 7, 1 },
        { "arange(7, 2)", MC_INT64, 7, 2, 1 },        { "arange(1, 10, 3)", MC_INT64, 1, 10, 3 },
        { "arange(1, 11, 3)", MC_INT64, 1, 11, 3 },   { "arange(10, 0, -4)", MC_INT64, 10, 0, -4 },
        { "arange(10, 2, -4)", MC_INT64, 10, 2, -4 }, { "arange(0, 10, -1)", MC_INT64, 0, 10, -1 },
        { "arange(5, dtype=int8)", MC_INT8, 0, 5, 1 }, { "arange(5, dtype=float32)", MC_FLOAT32, 0, 5, 1 },
        { "arange(0, 1, 0.25)", MC_FLOAT64, 0, 1, .25 }, { "arange(0.5, 3)", MC_FLOAT64, .5, 3, 1 },
        { "arange(0, -1, -0.125)", MC_FLOAT64, 0, -1, -.125 }, { "arange(4.0f32)", MC_FLOAT32, 0, 4, 1 },
        { "arange(1, 4.0f32)", MC_FLOAT32, 1, 4, 1 }, { "arange(3i32)", MC_INT64, 0, 3, 1 },
        { "arange(3u8, 6)", MC_INT64, 3, 6, 1 },      { "arange(stop=4, start=1)", MC_INT64, 1, 4, 1 },
        { "arange(x)", MC_INT64, 0, 6, 1 },           { "arange(1, x, x // 3)", MC_INT64, 1, 6, 2 },
        { "arange(x * 0.5f32)", MC_FLOAT64, 0, 3, 1 }, { "arange(0, x * 0.5, 0.75)", MC_FLOAT64, 0, 3, .75 },
    };
    mc_array *x = mc_array_scalar(MC_INT64, 6);
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *y = run1(rows[k].text, x, 0);
        int64_t n = stepped(rows[k].start, rows[k].stop, rows[k].step);
        if (CHECK(y && y->rank == 1 && y->dtype == rows[k].d && y->dims[0] == n,
                  "%s: %s, %lld elements, not %lld: %s", rows[k].text, y ? mc_dtype_name(y->dtype) : "",
                  y ? (long long)y->dims[0] : -1, (long long)n, mc_last_error())) {
            for (int64_t i = 0; i < n; i++) {
                CHECK(mc_array_get(y, &i) == rows[k].start + (double)i * rows[k].step, "%s[%lld] is %g",
                      rows[k].text, (long long)i, mc_array_get(y, &i));
            }
        }
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

/* The position of each point of a box, as one formula with the numbers written out. */
TEST(grids_say_where_points_lie)
{
    static const char *const same[][2] = {
        { "mgrid(2, 3)[0]", "[[0, 0, 0], [1, 1, 1]]" },
        { "mgrid(2, 3)[1]", "[[0, 1, 2], [0, 1, 2]]" },
        { "mgrid(x, arange(5, 8, 2))[0]", "[[0, 0], [1, 1], [2, 2]]" },
        { "mgrid(x, arange(5, 8, 2))[1]", "[[5, 7], [5, 7], [5, 7]]" },
        { "mgrid(4)", "[0, 1, 2, 3]" },
        { "mgrid(2, 2, arange(1, 2, 0.5))[2]", "[[[1.0, 1.5], [1.0, 1.5]], [[1.0, 1.5], [1.0, 1.5]]]" },
        { "ogrid(2, x)[0]", "[[0], [1]]" },
        { "ogrid(2, x)[1]", "[[0, 1, 2]]" },
        { "ogrid(2, x)[0] * 10 + ogrid(2, x)[1]", "[[0, 1, 2], [10, 11, 12]]" },
        { "meshgrid(arange(x), arange(4, 6))[0]", "[[0, 1, 2], [0, 1, 2]]" },
        { "meshgrid(arange(x), arange(4, 6))[1]", "[[4, 4, 4], [5, 5, 5]]" },
        { "meshgrid(arange(2), arange(4, 6), arange(6, 6 + x))[2][0]", "[[6, 7, 8], [6, 7, 8]]" },
        { "meshgrid(arange(x), arange(4, 6), indexing='ij')[1]", "[[4, 5], [4, 5], [4, 5]]" },
        { "meshgrid(arange(x), arange(4, 6), sparse=True)[0]", "[[0, 1, 2]]" },
        { "meshgrid(x, arange(4, 6))[0]", "[[3], [3]]" },
        { "meshgrid(arange(x))", "[0, 1, 2]" },
        { "size(mgrid(0, x)[1], 0)", "0" },
    };
    mc_array *x = mc_array_scalar(MC_INT64, 3);
    for (size_t k = 0; k < NELEM(same); k++) {
        mc_array *y = run1(same[k][0], x, 0), *z = run1(same[k][1], x, 0);
        CHECK(y && z && mc_array_differs(y, z, 0, 0) < 0, "%s is not %s: %s", same[k][0], same[k][1],
              mc_last_error());
        mc_array_unref(&y);
        mc_array_unref(&z);
    }
    mc_array_unref(&x);
}

TEST(gradients_through_grids)
{
    static const char *const formulas[] = { "meshgrid(x, x * 2)[0] * meshgrid(x, sqr(x))[1]",
                                            "sqr(ogrid(x, 3)[0] + mgrid(3, x)[1])" };
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(3), .5, 1.5);
    for (size_t k = 0; k < NELEM(formulas); k++) {
        double worst = 0;
        CHECK(check_grad(formulas[k], x, 0, &worst) == MC_OK, "%s: %g: %s", formulas[k], worst,
              mc_last_error());
    }
    mc_array_unref(&x);
}

TEST(arange_follows_floatX)
{
    mc_array *x = mc_array_scalar(MC_INT64, 6);
    mc_flag_set("floatX", "float32");
    mc_array *y = run1("arange(0, 1, 0.1)", x, 0);
    CHECK(y && y->dtype == MC_FLOAT32 && y->dims[0] == 10, "%s", mc_last_error());
    mc_array_unref(&y);
    mc_array_unref(&x);
}

/* ---- what is known while building ---- */

/* As NumPy has it: the zeros beside a triangle have the dtype of x, also where that is bool. */
TEST(triangles_keep_the_dtype)
{
    for (mc_dtype d = MC_BOOL; d < MC_NDTYPE; d++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", d, 2);
        mc_node *n[] = { mc_formula(g, "tril(x)"), mc_formula(g, "triu(x, k=1)") };
        for (size_t i = 0; i < NELEM(n); i++) {
            CHECK(mc_node_dtype(n[i]) == d, "%s of %s: %s", i ? "triu" : "tril", mc_dtype_name(d),
                  mc_dtype_name(mc_node_dtype(n[i])));
        }
        mc_graph_free(g);
    }
}

TEST(sizes_known_while_building)
{
    static const struct { const char *text; int rank; int64_t dims[3]; } rows[] = {
        { "alloc(0, [2, 3])", 2, { 2, 3 } },                     { "alloc(0, shape(x))", 2, { -1, 5 } },
        { "alloc(0, [size(x, 0), 7, size(x, 1)])", 3, { -1, 7, 5 } }, { "zeros_like(x)", 2, { -1, 5 } },
        { "alloc(x, [size(x, 0), size(x, 1)])", 2, { -1, 5 } },  { "arange(size(x, 0))", 1, { -1 } },
        { "arange(size(x, 1))", 1, { 5 } },                      { "arange(2, 9, 3)", 1, { 3 } },
        { "alloc(v, [n, n])", 2, { -1, 4 } },                    { "zeros([n, 1])", 2, { -1, 1 } },
    };
    mc_graph *g = mc_graph_new();
    mc_input_sized(g, "x", MC_FLOAT32, MC_SHAPE(-1, 5));
    mc_input_sized(g, "v", MC_FLOAT32, MC_SHAPE(4));
    mc_input(g, "n", MC_INT64, 0);
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_node *n = mc_formula(g, rows[k].text);
        CHECK(!mc_is_error(n) && mc_dims_equal(n->type.rank, n->type.dims, rows[k].rank, rows[k].dims),
              "%s: %s", rows[k].text, mc_error(g));
    }
    mc_graph_free(g);
}

/* The symbolic size of a result equals the size it then has. */
TEST(symbolic_sizes_come_true)
{
    static const char *const rows[] = {
        "alloc(0, [n, 3])",   "alloc(0.5, n)",           "arange(n)",                  "arange(2, n)",        "arange(n, 2, -3)",
        "arange(0, n, 2)",    "arange(0, n * 0.5, 0.3)", "arange(n * -1.0, 4, 2.5)",   "arange(n - 20)",      "alloc(0, shape(arange(n)))",
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        for (int64_t v = 0; v < 12; v += 1 + v / 4) {
            mc_graph *g = mc_graph_new();
            mc_node *n = mc_input(g, "n", MC_INT64, 0), *out[2] = { mc_formula(g, rows[k]), NULL };
            out[1] = mc_is_error(out[0]) ? NULL : out[0]->op->size(out[0], 0, 0);
            if (CHECK(out[1] && !mc_is_error(out[1]) && out[1]->type.dtype == MC_INT64, "%s: %s", rows[k],
                      mc_error(g))) {
                mc_array *at = mc_array_from(MC_INT64, MC_NOSHAPE, &v), *y[2] = { NULL };
                mc_status s = mc_eval(1, &n, &at, 2, out, y);
                CHECK(s == MC_OK && y[0]->dims[0] == mc_load_i64(MC_INT64, y[1]->data), "%s for n = %lld: %s",
                      rows[k], (long long)v, mc_last_error());
                mc_array_unref(&y[0]);
                mc_array_unref(&y[1]);
                mc_array_unref(&at);
            }
            mc_graph_free(g);
        }
    }
}

TEST(making_complaints)
{
    static const struct { const char *text; int rank; const char *says; } rows[] = {
        { "alloc(x, [2.0, 3.0])", 0, "alloc: the shape must be a vector of integers" },
        { "alloc(0, x)", 1, "alloc: the shape must be a vector of integers" },
        { "alloc(x, [2, -3])", 0, "alloc: size -3 of axis 1 is negative" },
        { "alloc(x, [5])", 2, "alloc: a value of rank 2 does not broadcast to 1 axes" },
        { "alloc([1, 2], [2, 3])", 0, "alloc: size 2 of axis 0 of the value does not broadcast to size 3" },
        { "alloc(0, [1, 2, 3, 4, 5, 6, 7, 8, 9])", 0, "alloc: the result would have more than 8 axes" },
        { "alloc(0, [4294967296, 4294967296])", 0, "alloc: the sizes overflow" },
        { "alloc(0, arange(cast(x, int64)))", 0, "alloc: the length of the shape must be known" },
        { "arange(0, 5, 0)", 0, "arange: the step is 0" },
        { "arange(0, 5, 0.0)", 0, "arange: the step is 0" },
        { "arange(0, inf)", 0, "arange: the length is too large or not finite" },
        { "arange(0, 1, nan)", 0, "arange: the step is 0" },
        { "meshgrid(x, arange(2))", 2, "meshgrid: argument 1 has rank 2; expected a vector" },
        { "meshgrid(x, indexing='yx')", 1, "meshgrid: indexing must be 'xy' or 'ij', not 'yx'" },
        { "mgrid(1, 2, 3, 4, 5, 6, 7, 8, 9)", 0, "mgrid: expected 1 to 8 arguments, got 9" },
        { "ogrid()", 0, "ogrid: expected 1 to 8 arguments, got 0" },
        { "arange(x)", 1, "arange: start, stop and step must be scalars" },
        { "arange(-9223372036854775807, 9223372036854775807)", 0, "arange: the length is too large or not finite" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        const char *said = complaint(rows[k].text, MC_FLOAT32, rows[k].rank);
        CHECK(strstr(said, rows[k].says), "%s says '%s'", rows[k].text, said);
    }
    mc_array *x = mc_array_scalar(MC_INT64, -4);
    static const struct { const char *text, *says; } late[] = {
        { "alloc(0, [x, 2])", "size -4 of axis 0 is negative" }, { "arange(0, 5, x + 4)", "arange: the step is 0" },
        { "alloc([1, 2], [x + 7])", "alloc: size 2 of axis 0 of the value does not broadcast to size 3" },
    };
    for (size_t k = 0; k < NELEM(late); k++) {
        mc_array *y = run1(late[k].text, x, 0);
        CHECK(!y && strstr(mc_last_error(), late[k].says), "%s says '%s'", late[k].text, mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

TEST(making_without_memory)
{
    mc_array *x = mc_array_scalar(MC_INT64, 3);
    mc_op_count(); /* the table of ops is there */
    ALLOC_FAIL_LOOP {
        mc_array *y = run1("alloc(arange(x), [2, x])", x, 0);
        CHECK(y || ALLOC_FAILED, "no result, yet memory: %s", mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}
