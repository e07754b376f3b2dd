/* t_ops_sort.c: sort, argsort and permutations against counting by hand, over odd strides. */
#include "sample.h"
#include <math.h>

/* Does a stand before b?  NaN stands last. */
static bool before(double a, double b)
{
    return a < b || (isnan(b) && !isnan(a));
}

/* An element's place is the number of elements that stand before it, equal ones counted if they come
 * earlier. */
static void check_sorted(const mc_array *x, const char *axis_text, int axis)
{
    char sort[64], argsort[64];
    snprintf(sort, sizeof sort, "sort(x%s)", axis_text);
    snprintf(argsort, sizeof argsort, "argsort(x%s)", axis_text);
    mc_array *y = run1(sort, x, 0), *p = run1(argsort, x, 0);
    int64_t at[MC_MAX_RANK] = { 0 };
    bool ran = CHECK(y && p && y->dtype == x->dtype && p->dtype == MC_INT64 &&
                         mc_dims_equal(x->rank, x->dims, y->rank, y->dims) &&
                         mc_dims_equal(x->rank, x->dims, p->rank, p->dims),
                     "%s of %s: %s", sort, mc_dtype_name(x->dtype), mc_last_error());
    for (int64_t i = 0; ran && i < mc_array_size(x); i++) {
        int64_t other[MC_MAX_RANK], place = 0, own = at[axis];
        double v = mc_array_get(x, at);
        memcpy(other, at, sizeof other);
        for (other[axis] = 0; other[axis] < x->dims[axis]; other[axis]++) {
            double w = mc_array_get(x, other);
            place += before(w, v) || (!before(v, w) && other[axis] < own);
        }
        other[axis] = place;
        double have = mc_array_get(y, other);
        CHECK(have == v || (isnan(have) && isnan(v)), "%s of %s: %g stands where %g should", sort,
              mc_dtype_name(x->dtype), have, v);
        CHECK(mc_array_get(p, other) == (double)own, "%s of %s: place %g, not %lld", argsort,
              mc_dtype_name(x->dtype), mc_array_get(p, other), (long long)own);
        for (int a = x->rank; a-- > 0 && ++at[a] == x->dims[a];) {
            at[a] = 0;
        }
    }
    mc_array_unref(&y);
    mc_array_unref(&p);
}

TEST(sorting_every_dtype)
{
    int64_t dims[3] = { 3, 7, 2 }, none[2] = { 0, 3 }, line[1] = { 700 };
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        double lo = mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL ? 0 : -3;
        mc_array *x = sample(d, 3, dims, lo, d == MC_BOOL ? 1 : 3), *e = sample(d, 2, none, 0, 1),
                 *l = sample(d, 1, line, lo, d == MC_BOOL ? 1 : 60);
        check_sorted(x, "", 2);
        check_sorted(x, ", axis=0", 0);
        check_sorted(x, ", axis=-2", 1);
        check_sorted(e, ", axis=0", 0);
        check_sorted(e, ", axis=1", 1);
        check_sorted(l, "", 0);
        mc_array_unref(&x);
        mc_array_unref(&e);
        mc_array_unref(&l);
    }
}

TEST(sorting_special_values)
{
    double v[9] = { 1, NAN, -INFINITY, 0., -0., INFINITY, NAN, -1, 5e-324 };
    uint64_t u[3] = { UINT64_MAX, 0, UINT64_MAX - 1 };
    int64_t s[3] = { INT64_MAX, INT64_MIN, INT64_MAX - 1 };
    for (mc_dtype d = MC_FLOAT16; d <= MC_FLOAT64; d++) {
        mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(9), v), *x = mc_array_cast(a, d),
                 *many = mc_array_new(d, MC_SHAPE(135));
        for (int64_t i = 0; i < 135; i++) {
            mc_array_set(many, &i, v[test_random() % 9]);
        }
        check_sorted(x, "", 0);
        check_sorted(many, "", 0);
        mc_array_unref(&many);
        mc_array_unref(&a);
        mc_array_unref(&x);
    }
    mc_array *x = mc_array_from(MC_UINT64, MC_SHAPE(3), u), *z = mc_array_from(MC_INT64, MC_SHAPE(3), s);
    mc_array *p = run1("argsort(x)", x, 0), *q = run1("argsort(x)", z, 0);
    int64_t want[3] = { 1, 2, 0 };
    CHECK(p && q && memcmp(p->data, want, sizeof want) == 0 && memcmp(q->data, want, sizeof want) == 0,
          "the widest integers");
    mc_array_unref(&x);
    mc_array_unref(&z);
    mc_array_unref(&p);
    mc_array_unref(&q);
}

TEST(permutations_and_their_inverse)
{
    int64_t dims[2] = { 4, 5 };
    for (int axis = -2; axis < 2; axis++) {
        char text[160];
        mc_array *x = sample(MC_FLOAT32, 2, dims, -1, 1);
        snprintf(
            text, sizeof text,
            "permute_row_elements(permute_row_elements(x, argsort(x, axis=%d), axis=%d), argsort(argsort(x, "
            "axis=%d), axis=%d), axis=%d)",
            axis, axis, axis, axis, axis);
        mc_array *y = run1(text, x, 0), *z = run1("inverse_permutation([2, 0, 3, 1])", x, 0);
        int64_t back[4] = { 1, 3, 0, 2 };
        CHECK(y && mc_array_differs(y, x, 0, 0) < 0, "axis %d: %s", axis, mc_last_error());
        CHECK(z && memcmp(z->data, back, sizeof back) == 0, "inverse: %s", mc_last_error());
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&z);
    }
}

TEST(sort_gradients)
{
    static const char *const rows[] = {
        "sort(x)", "sort(x, axis=0)", "sqr(sort(x)) * arange(3)", "permute_row_elements(x, argsort(-x))", "permute_row_elements(x, [2, 0, 1]) * x", "permute_row_elements(x[1], [[2, 0, 1], [1, 2, 0]]) * x", "sum(sqr(grad(sum(sort(x) ** 3), x)))",
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        double v[6] = { .3, .9, .1, 1.7, 1.2, .6 }, worst = 0;
        mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 3), v);
        CHECK(check_grad(rows[k], x, 0, &worst) == MC_OK, "%s: %g: %s", rows[k], worst, mc_last_error());
        mc_array_unref(&x);
    }
}

TEST(sorting_complaints)
{
    static const struct { const char *text; int rank; const char *says; } rows[] = {
        { "sort(x, axis=2)", 2, "sort: axis 2 is out of range for rank 2" },
        { "argsort(x)", 0, "argsort: axis -1 is out of range for rank 0" },
        { "permute_row_elements(x, x)", 2, "permute_row_elements: the indices must be integers, not float32" },
        { "permute_row_elements(zeros_like(x) + alloc(1f32, [2, 3]), [0, 1])", 2, "permute_row_elements: there must be an index for each element" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        const char *said = complaint(rows[k].text, MC_FLOAT32, rows[k].rank);
        CHECK(strstr(said, rows[k].says), "%s says '%s'", rows[k].text, said);
    }
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(3)),
             *y = run1("permute_row_elements(x, [0, 1, 3])", x, 0);
    CHECK(!y && strstr(mc_last_error(), "index 3 is out of range for a row of size 3"), "says '%s'",
          mc_last_error());
    mc_array_unref(&x);
}

TEST(sorting_without_memory)
{
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3));
    mc_op_count(); /* the table of ops is there */
    ALLOC_FAIL_LOOP {
        mc_array *y = run1("sort(x)", x, 0);
        CHECK(y || ALLOC_FAILED, "no result, yet memory: %s", mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

/* numpy.take_along_axis, after numpy.broadcast_to; x is 0 1 2 / 3 4 5. */
TEST(permutations_broadcast)
{
    static const struct { const char *text; double y[6]; } rows[] = {
        { "permute_row_elements(x, [2, 0, 1])", { 2, 0, 1, 5, 3, 4 } },
        { "permute_row_elements(x, [1, 0], axis=0)", { 3, 4, 5, 0, 1, 2 } },
        { "permute_row_elements(x[1], [[2, 0, 1], [1, 2, 0]])", { 5, 3, 4, 4, 5, 3 } },
        { "permute_row_elements(x, [[2, 1, 0]])", { 2, 1, 0, 5, 4, 3 } },
    };
    double v[6] = { 0, 1, 2, 3, 4, 5 };
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 3), v);
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *y = run1(rows[k].text, x, 0);
        REQUIRE(y && mc_array_size(y) == 6, "%s: %s", rows[k].text, mc_last_error());
        for (int64_t i = 0; i < 6; i++) {
            CHECK(mc_array_get(y, (int64_t[]){ i / 3, i % 3 }) == rows[k].y[i], "%s, element %d",
                  rows[k].text, (int)i);
        }
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}
