/* t_ops_reduce.c: reductions, running sums and sorting against hand-written loops over odd strides. */
#include "op_fixture.h"
#include <math.h>
#include <stdio.h>

static const char *const names[] = { "sum", "prod", "max", "min", "argmax", "argmin", "any", "all" };

/* One result by definition: elements of x whose kept coordinates are `at`, in C order of the axes in
 * `mask`. */
static double by_hand(const char *name, const mc_array *x, const int64_t *at, unsigned mask)
{
    int64_t index[MC_MAX_RANK], count = 1;
    double r = strcmp(name, "prod") == 0 || strcmp(name, "all") == 0, best = 0;
    int64_t where = 0;
    for (int i = 0; i < x->rank; i++) {
        index[i] = mask >> i & 1 ? 0 : at[i];
        count *= mask >> i & 1 ? x->dims[i] : 1;
    }
    for (int64_t i = 0; i < count; i++) {
        double v = mc_array_get(x, index);
        bool low = strcmp(name, "min") == 0 || strcmp(name, "argmin") == 0;
        if (i == 0 || (!isnan(best) && (isnan(v) || (low ? v < best : v > best)))) {
            best = v;
            where = i;
        }
        r = strcmp(name, "sum") == 0    ? r + v
            : strcmp(name, "prod") == 0 ? r * v
            : strcmp(name, "any") == 0  ? r != 0 || v != 0
            : strcmp(name, "all") == 0  ? r != 0 && v != 0
                                        : r;
        for (int k = x->rank; k-- > 0;) {
            if (mask >> k & 1) {
                if (++index[k] < x->dims[k]) {
                    break;
                }
                index[k] = 0;
            }
        }
    }
    return strncmp(name, "arg", 3) == 0                           ? (double)where
           : strcmp(name, "max") == 0 || strcmp(name, "min") == 0 ? best
                                                                  : r;
}

static mc_dtype expected_dtype(const char *name, mc_dtype d)
{
    if (strcmp(name, "any") == 0 || strcmp(name, "all") == 0) {
        return MC_BOOL;
    }
    if (strncmp(name, "arg", 3) == 0) {
        return MC_INT64;
    }
    bool wide = strcmp(name, "sum") == 0 || strcmp(name, "prod") == 0;
    return !wide || mc_is_float(d) ? d : d >= MC_UINT8 ? MC_UINT64 : MC_INT64;
}

/* The axes in mask as text, at random from the front or from behind. */
static void axes_text(char *to, size_t n, int rank, unsigned mask)
{
    size_t at = (size_t)snprintf(to, n, "[");
    for (int i = 0; i < rank; i++) {
        if (mask >> i & 1) {
            at += (size_t)snprintf(to + at, n - at, "%s%d", at > 1 ? ", " : "",
                                   test_random() % 2 ? i : i - rank);
        }
    }
    snprintf(to + at, n - at, "]");
}

static void check_reduction(const char *name, const mc_array *x, unsigned mask, bool keep)
{
    char axes[64], text[128];
    axes_text(axes, sizeof axes, x->rank, mask);
    snprintf(text, sizeof text, "%s(x, axis=%s, keepdims=%s)", name, axes, keep ? "True" : "False");
    mc_array *y = run1(text, x, (unsigned)test_random());
    if (!CHECK(y != NULL, "%s of %s: %s", text, mc_dtype_name(x->dtype), mc_last_error())) {
        return;
    }
    CHECK(y->dtype == expected_dtype(name, x->dtype), "%s of %s is %s", text, mc_dtype_name(x->dtype),
          mc_dtype_name(y->dtype));
    int64_t at[MC_MAX_RANK] = { 0 }, in_y[MC_MAX_RANK] = { 0 }, total = 1;
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool gone = mask >> i & 1;
        if (!gone || keep) {
            CHECK(y->rank > rank && y->dims[rank] == (gone ? 1 : x->dims[i]), "%s: size of axis %d", text,
                  rank);
            rank++;
        }
        total *= gone ? 1 : x->dims[i];
    }
    CHECK(y->rank == rank, "%s has rank %d, not %d", text, y->rank, rank);
    for (int64_t i = 0; i < total; i++) {
        for (int k = 0, to = 0; k < x->rank; k++) {
            if (!(mask >> k & 1) || keep) {
                in_y[to++] = mask >> k & 1 ? 0 : at[k];
            }
        }
        double want = by_hand(name, x, at, mask), have = mc_array_get(y, in_y),
               eps = mc_dtypes[y->dtype].eps * 4;
        bool same = fabs(have - want) <= eps * (1 + fabs(want)) || (isnan(have) && isnan(want)) ||
                    (isinf(have) && have * want > 0 && isinf(want));
        CHECK(same, "%s of %s: element %lld is %g, not %g", text, mc_dtype_name(x->dtype), (long long)i, have,
              want);
        for (int k = x->rank; k-- > 0;) {
            if (!(mask >> k & 1)) {
                if (++at[k] < x->dims[k]) {
                    break;
                }
                at[k] = 0;
            }
        }
    }
    mc_array_unref(&y);
}

TEST(reductions_of_every_dtype_and_axes)
{
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = { { 0, { 0 } }, { 1, { 5 } }, { 2, { 3, 4 } }, { 3, { 2, 3, 4 } }, { 3, { 2, 1, 3 } } };
    for (size_t k = 0; k < NELEM(names); k++) {
        for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
            for (size_t s = 0; s < NELEM(shapes); s++) {
                double lo = mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL ? 0 : -2;
                mc_array *x = sample(d, shapes[s].rank, shapes[s].dims, lo, d == MC_BOOL ? 1 : 2);
                for (unsigned mask = 0; mask < 1u << shapes[s].rank; mask++) {
                    check_reduction(names[k], x, mask, test_random() % 2);
                }
                mc_array_unref(&x);
            }
        }
    }
}

TEST(reductions_of_nothing)
{
    int64_t dims[3] = { 2, 0, 3 };
    for (size_t k = 0; k < NELEM(names); k++) {
        mc_array *x = sample(MC_FLOAT32, 3, dims, 0, 1);
        bool needs_some = strstr(names[k], "max") || strstr(names[k], "min");
        for (unsigned mask = 0; mask < 8; mask++) {
            bool gone = mask & 2;
            if (!needs_some || !gone) {
                check_reduction(names[k], x, mask, mask & 1);
                continue;
            }
            char axes[64], text[128];
            axes_text(axes, sizeof axes, 3, mask);
            snprintf(text, sizeof text, "%s(x, axis=%s)", names[k], axes);
            for (unsigned sized = 0; sized < 8; sized += 7) {
                mc_array *y = run1(text, x, sized);
                CHECK(!y && strstr(mc_last_error(), "of an empty array"), "%s of nothing: %s", text,
                      mc_last_error());
                mc_array_unref(&y);
            }
        }
        mc_array_unref(&x);
    }
    mc_array *none = mc_array_new(MC_FLOAT32, MC_SHAPE(0, 0)); /* nothing asked of nothing */
    mc_array *y = run1("max(x, axis=0)", none, 3);
    CHECK(y && y->rank == 1 && y->dims[0] == 0, "max of (0, 0) along axis 0: %s", mc_last_error());
    mc_array_unref(&y);
    mc_array_unref(&none);
}

TEST(extremes_of_nan_and_infinity)
{
    double v[6] = { 1, INFINITY, NAN, -INFINITY, NAN, 3 };
    for (mc_dtype d = MC_FLOAT16; d <= MC_FLOAT64; d++) {
        mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 3), v), *x = mc_array_cast(a, d);
        for (size_t k = 0; k < NELEM(names); k++) {
            for (unsigned mask = 0; mask < 4; mask++) {
                check_reduction(names[k], x, mask, false);
            }
        }
        mc_array_unref(&a);
        mc_array_unref(&x);
    }
}

TEST(extremes_of_the_widest_integers)
{
    uint64_t u[3] = { 0, UINT64_MAX, UINT64_MAX - 1 };
    int64_t s[3] = { INT64_MIN, INT64_MAX, INT64_MAX - 1 };
    mc_array *x = mc_array_from(MC_UINT64, MC_SHAPE(3), u), *z = mc_array_from(MC_INT64, MC_SHAPE(3), s);
    static const struct { const char *text; int64_t u, s; } rows[] = {
        { "max(x)", -1, INT64_MAX }, { "min(x)", 0, INT64_MIN }, { "argmax(x)", 1, 1 }, { "argmin(x)", 0, 0 },
        { "argmin(x[1:])", 1, 1 },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *a = run1(rows[k].text, x, 1), *b = run1(rows[k].text, z, 1);
        CHECK(a && b && mc_load_i64(a->dtype, a->data) == rows[k].u &&
                  mc_load_i64(b->dtype, b->data) == rows[k].s,
              "%s: %s", rows[k].text, mc_last_error());
        mc_array_unref(&a);
        mc_array_unref(&b);
    }
    mc_array_unref(&x);
    mc_array_unref(&z);
}

/* 60000 times 0.1 in the given precision, rounded to it once, unless the accumulator is chosen. */
TEST(sums_accumulate_in_more_than_they_hold)
{
    int64_t dims[1] = { 60000 };
    static const struct { const char *text; mc_dtype d; double want, tol; } rows[] = {
        { "sum(x)", MC_FLOAT32, 60000 * (double)0.1f, 4e-4 },
        { "sum(x)", MC_FLOAT16, 60000 * 0.0999755859375, 2 },
        { "sum(x)", MC_BFLOAT16, 60000 * 0.10009765625, 16 },
        { "sum(x, dtype=float64)", MC_FLOAT16, 60000 * 0.0999755859375, 1e-9 },
        { "sum(x, dtype=int64)", MC_FLOAT32, 0, 0 },
        { "cumsum(x)[-1]", MC_FLOAT32, 60000 * (double)0.1f, 4e-4 },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *x = mc_array_new(rows[k].d, 1, dims);
        for (int64_t i = 0; i < dims[0]; i++) {
            mc_array_set(x, &i, 0.1);
        }
        mc_array *y = run1(rows[k].text, x, 0);
        CHECK(y && fabs(mc_array_get(y, NULL) - rows[k].want) <= rows[k].tol,
              "%s of %s is %.9g, not %.9g: %s", rows[k].text, mc_dtype_name(rows[k].d),
              y ? mc_array_get(y, NULL) : (double)NAN, rows[k].want, mc_last_error());
        mc_array_unref(&y);
        mc_array_unref(&x);
    }
    mc_array *small = mc_array_from(
        MC_FLOAT32, MC_SHAPE(3),
        (float[]){ 16777216, 1, 1 }); /* a float32 accumulator loses what float64 keeps */
    mc_array *wide = run1("sum(x)", small, 0), *narrow = run1("sum(x, acc_dtype=float32)", small, 0);
    CHECK(wide && narrow && mc_array_get(wide, NULL) == 16777218 && mc_array_get(narrow, NULL) == 16777216,
          "accumulators: %s", mc_last_error());
    mc_array_unref(&wide);
    mc_array_unref(&narrow);
    mc_array_unref(&small);
}

static void check_running(const char *name, const mc_array *x, int axis)
{
    char text[64];
    bool prod = strcmp(name, "cumprod") == 0;
    snprintf(text, sizeof text, "%s(x, axis=%d)", name, test_random() % 2 ? axis : axis - x->rank);
    mc_array *y = run1(text, x, (unsigned)test_random());
    if (!CHECK(y && mc_dims_equal(y->rank, y->dims, x->rank, x->dims), "%s: %s", text, mc_last_error())) {
        mc_array_unref(&y);
        return;
    }
    CHECK(y->dtype == expected_dtype("sum", x->dtype), "%s of %s is %s", text, mc_dtype_name(x->dtype),
          mc_dtype_name(y->dtype));
    int64_t at[MC_MAX_RANK] = { 0 };
    for (int64_t i = 0, n = mc_array_size(x); i < n; i++) {
        int64_t index[MC_MAX_RANK];
        double r = prod;
        memcpy(index, at, sizeof index);
        for (index[axis] = 0; index[axis] <= at[axis]; index[axis]++) {
            r = prod ? r * mc_array_get(x, index) : r + mc_array_get(x, index);
        }
        double have = mc_array_get(y, at), eps = mc_dtypes[y->dtype].eps * 4;
        CHECK(fabs(have - r) <= eps * (1 + fabs(r)), "%s of %s: element %lld is %g, not %g", text,
              mc_dtype_name(x->dtype), (long long)i, have, r);
        for (int k = x->rank; k-- > 0 && ++at[k] == x->dims[k];) {
            at[k] = 0;
        }
    }
    mc_array_unref(&y);
}

TEST(running_sums_and_products)
{
    int64_t dims[3] = { 3, 4, 2 }, none[2] = { 3, 0 };
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        double lo = mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL ? 0 : -2;
        mc_array *x = sample(d, 3, dims, lo, d == MC_BOOL ? 1 : 2), *e = sample(d, 2, none, 0, 1);
        mc_array *wide = sample(d, 2, (int64_t[]){ 3, 300 }, lo,
                                d == MC_BOOL ? 1 : 2); /* more lines than go side by side at once */
        check_running("cumsum", wide, 0);
        check_running("cumprod", wide, 0);
        mc_array_unref(&wide);
        for (int axis = 0; axis < 3; axis++) {
            check_running("cumsum", x, axis);
            check_running("cumprod", x, axis);
        }
        check_running("cumsum", e, 0);
        check_running("cumsum", e, 1);
        mc_array *flat = run1("cumsum(x) - cumsum(ravel(x), axis=0)", x, 0),
                 *last = run1("cumsum(x)[-1] - sum(x)", x, 0);
        CHECK(flat && flat->rank == 1 && flat->dims[0] == 24, "cumsum flattens: %s", mc_last_error());
        CHECK(last && fabs(mc_array_get(last, NULL)) <= 64 * mc_dtypes[last->dtype].eps,
              "the last is the sum: %s", mc_last_error());
        mc_array_unref(&flat);
        mc_array_unref(&last);
        mc_array_unref(&x);
        mc_array_unref(&e);
    }
}

TEST(reduction_gradients)
{
    static const char *const rows[] = {
        "sum(x)", "sum(x, axis=1)", "sum(x, axis=[0, 2], keepdims=True)", "sum(x, axis=[])", "sum(x, dtype=float64, axis=-1)",
        "prod(x)", "prod(x, axis=[0, -1])", "prod(x, axis=1, keepdims=True)", "max(x)", "max(x, axis=[0, 1])", "min(x, axis=-1, keepdims=True)",
        "cumsum(x)", "cumsum(x, axis=0)", "cumsum(x, axis=-1)", "cumprod(x, axis=1)", "cumprod(x)", "mean(x, axis=1)", "var(x, axis=0)",
        "sum(sqr(grad(sum(prod(x, axis=1) ** 2), x)))",
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        int64_t dims[3] = { 2, 3, 2 };
        mc_array *x = sample(MC_FLOAT64, 3, dims, .5, 1.5);
        double worst = 0;
        mc_status s = check_grad(rows[k], x, (unsigned)test_random(), &worst);
        CHECK(s == MC_OK, "%s: %g: %s", rows[k], worst, mc_last_error());
        mc_array_unref(&x);
    }
}

/* The derivative of a product is a product, whatever is zero. */
TEST(product_gradients_at_zeros)
{
    static const double rows[][4] = { { 2, 0, 3, 4 }, { 0, 2, 0, 3 }, { 0, 0, 0, 0 },
                                      { 5, 2, 3, 0 }, { 0, 7, 2, 3 }, { 1, 2, 3, 4 } };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(4), rows[k]);
        mc_array *p = run1("grad(prod(x), x)", x, 0), *c = run1("grad(sum(cumprod(x)), x)", x, 0);
        REQUIRE(p && c, "%s", mc_last_error());
        for (int64_t j = 0; j < 4; j++) {
            double want = 1, cum = 0, part = 1;
            for (int64_t i = 0; i < 4; i++) {
                want *= i == j ? 1 : rows[k][i];
                part *= i == j ? 1 : rows[k][i];
                cum += i >= j ? part : 0;
            }
            CHECK(fabs(mc_array_get(p, &j) - want) < 1e-12, "row %zu, prod: %g, not %g", k,
                  mc_array_get(p, &j), want);
            CHECK(fabs(mc_array_get(c, &j) - cum) < 1e-12, "row %zu, cumprod: %g, not %g", k,
                  mc_array_get(c, &j), cum);
        }
        mc_array_unref(&p);
        mc_array_unref(&c);
        mc_array_unref(&x);
    }
}

/* Of prod and of sum(cumprod) alike: the second derivative by x[j] and x[k] is the product of the others, 0
 * where j = k. */
static double hessian_by_hand(const double *x, int n, int j, int k, bool running)
{
    double part = 1, sum = 0;
    for (int i = 0; i < n; i++) {
        part *= i == j || i == k ? 1 : x[i];
        sum += i >= j && i >= k ? part : 0;
    }
    return j == k ? 0 : running ? sum : part;
}

static double third_by_hand(const double *x, int n, int j, int k, int l)
{
    double part = 1;
    for (int i = 0; i < n; i++) {
        part *= i == j || i == k || i == l ? 1 : x[i];
    }
    return j == k || k == l || j == l ? 0 : part;
}

TEST(product_hessians_at_zeros)
{
    static const double rows[][4] = { { 2, 0, 3, 4 }, { 0, 2, 0, 3 }, { 0, 0, 0, 0 }, { 5, 2, 3, 0 },
                                      { 0, 0, 2, 3 }, { 1, 2, 3, 4 }, { 0, 0, 0, 7 } };
    static const struct { const char *text; bool running; } costs[] = {
        { "prod(x)", false }, { "sum(cumprod(x))", true }, { "prod(reshape(x, [2, 2]))", false },
        { "sum(prod(reshape(x, [2, 1, 2]), axis=[0, 2]))", false }, { "prod(x, keepdims=True)[0]", false },
        { "sum(cumprod(expand_dims(x, 1), axis=0))", true },
    };
    /* by the reference and in kernels, all elements of a column at once */
    for (size_t i = 0; i < NELEM(costs) * 4; i++) {
        char text[200], third[200];
        snprintf(text, sizeof text, "grad(grad(%s, x)[%d], x)", costs[i / 4].text, (int)i % 4);
        snprintf(third, sizeof third, "grad(grad(grad(%s, x)[%d], x)[1], x)", costs[i / 4].text, (int)i % 4);
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT64, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = text });
        CHECK(f, "%s: %s", text, mc_error(g));
        for (size_t r = 0; r < NELEM(rows) && f; r++) {
            mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(4), rows[r]), *y = run1(text, x, 0), *z = NULL,
                     *t = run1(third, x, 0);
            REQUIRE(y && t && mc_call(f, MC_IN(x), MC_OUT(&z)) == MC_OK, "%s: %s", text, mc_last_error());
            for (int64_t j = 0; j < 4; j++) {
                const double want = hessian_by_hand(rows[r], 4, (int)i % 4, (int)j, costs[i / 4].running);
                CHECK(fabs(mc_array_get(y, &j) - want) < 1e-12 && fabs(mc_array_get(z, &j) - want) < 1e-12,
                      "%s, row %zu [%d]: %g by the reference, %g compiled, not %g", text, r, (int)j,
                      mc_array_get(y, &j), mc_array_get(z, &j), want);
                const double cube = third_by_hand(rows[r], 4, (int)i % 4, (int)j, 1);
                CHECK(costs[i / 4].running || fabs(mc_array_get(t, &j) - cube) < 1e-12,
                      "%s, row %zu [%d]: %g, not %g", third, r, (int)j, mc_array_get(t, &j), cube);
            }
            mc_array_unref(&x);
            mc_array_unref(&y);
            mc_array_unref(&z);
            mc_array_unref(&t);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* By mathematics: of norm(x) at (3, 0, 4) the entries (1 - x[i] * x[j] / 25) / 5; of x ** 0 and x ** 1
 * nothing, of x ** 2 it is 2. */
TEST(second_derivatives_at_zeros)
{
    static const struct { const char *text; double want[3]; } rows[] = {
        { "grad(grad(norm(x), x)[0], x)", { 0.128, 0, -0.096 } },
        { "grad(grad(norm(x), x)[1], x)", { 0, 0.2, 0 } },
        { "grad(grad(norm(x, ord=2, axis=0), x)[2], x)", { -0.096, 0, 0.072 } },
        { "grad(grad(norm(x, ord=4), x)[1], x)", { 0, 0, 0 } },
        { "grad(sum(x ** 0), x)", { 0, 0, 0 } },
        { "grad(sum(grad(sum(x ** 0), x)), x)", { 0, 0, 0 } },
        { "grad(sum(grad(sum(x ** cast(x * 0, float64)), x)), x)", { 0, 0, 0 } },
        { "b = consider_constant(x * 0); grad(sum(grad(sum(x ** b), x)), x)", { 0, 0, 0 } },
        { "b = consider_constant(x * 0 + 1); grad(sum(x ** b), x)", { 1, 1, 1 } },
        { "b = consider_constant(x * 0 + 1); grad(sum(grad(sum(x ** b), x)), x)", { 0, 0, 0 } },
        { "b = consider_constant(x * 0 + 2); grad(sum(grad(sum(x ** b), x)), x)", { 2, 2, 2 } },
        { "b = consider_constant(x * 0 + 2); grad(sum(grad(sum(grad(sum(x ** b), x)), x)), x)", { 0, 0, 0 } },
        { "grad(sum(grad(sum(x ** 2), x)), x)", { 2, 2, 2 } },
        { "grad(sum(grad(sum(x ** 1), x)), x)", { 0, 0, 0 } },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(3), (double[]){ 3, 0, 4 }),
                 *y = run1(rows[i].text, x, 0);
        REQUIRE(y, "%s: %s", rows[i].text, mc_last_error());
        for (int64_t j = 0; j < 3; j++) {
            CHECK(fabs(mc_array_get(y, &j) - rows[i].want[j]) < 1e-12, "%s [%d]: %g, not %g", rows[i].text,
                  (int)j, mc_array_get(y, &j), rows[i].want[j]);
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
    }
}

TEST(all_ties_receive_the_gradient)
{
    double v[6] = { 1, 3, 3, 2, 0, 2 }, want[6] = { 0, 1, 1, 1, 0, 1 };
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 3), v),
             *g = run1("grad(sum(max(x, axis=1)), x)", x, 0);
    REQUIRE(g, "%s", mc_last_error());
    CHECK(memcmp(g->data, want, sizeof want) == 0, "ties");
    mc_array_unref(&g);
    mc_array_unref(&x);
}

TEST(reduction_complaints)
{
    static const struct { const char *text; mc_dtype d; int rank; const char *says; } rows[] = {
        { "sum(x, axis=2)", MC_FLOAT32, 2, "sum: axis 2 is out of range for rank 2" },
        { "max(x, axis=[0, -2])", MC_FLOAT32, 2, "max: axis 0 is given twice" },
        { "cumsum(x, axis=-3)", MC_FLOAT32, 2, "cumsum: axis -3 is out of range for rank 2" },
        { "argmax(x, keepdims=2)", MC_FLOAT32, 2, "keepdims must be True or False" },
        { "max(arange(0))", MC_FLOAT32, 0, "max: the max of an empty array is not defined" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        const char *said = complaint(rows[k].text, rows[k].d, rows[k].rank);
        CHECK(strstr(said, rows[k].says), "%s says '%s'", rows[k].text, said);
    }
}

/* Sizes that were not given are formulas over sizes that were. */
TEST(sizes_of_reductions)
{
    static const struct { const char *text, *size0, *size1; } rows[] = {
        { "sum(x, axis=1)", "size(x, 0)", "size(x, 2)" },
        { "max(x, axis=[0, -1], keepdims=True)", "1", "size(x, 1)" },
        { "any(x, axis=0)", "size(x, 1)", "size(x, 2)" },
        { "cumsum(x, axis=0)", "size(x, 0)", "size(x, 1)" },
    };
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 3);
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_node *n = mc_formula(g, rows[k].text);
        for (int axis = 0; axis < 2; axis++) {
            mc_node *want = mc_formula(g, axis ? rows[k].size1 : rows[k].size0),
                    *have = n->op->size(n, 0, axis);
            CHECK(have == want || mc_cast_to(want, MC_INT64)->id == have->id ||
                      (mc_is_const(have) && mc_is_const(want)),
                  "%s, axis %d: %s", rows[k].text, axis, mc_node_op(have));
        }
    }
    CHECK(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(reductions_without_memory)
{
    int64_t dims[2] = { 2, 3 };
    mc_array *x = mc_array_new(MC_FLOAT32, 2, dims);
    mc_op_count(); /* the table of ops is there */
    ALLOC_FAIL_LOOP {
        mc_array *y = run1("grad(sum(prod(x, axis=1)) + sum(cumprod(x, axis=1)), x)", x, 0);
        CHECK(y || ALLOC_FAILED, "no result, yet memory: %s", mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

/* numpy.linalg.norm of [3, -4, 0, 0.5, -0.25, -7], to 16 digits; its gradient at order inf and -inf by
 * torch.linalg.vector_norm. */
TEST(norms_of_every_order)
{
    static const struct { const char *text; double y; } rows[] = {
        { "norm(x, inf)", 7 }, { "norm(x, 'inf')", 7 }, { "norm(x, -inf)", 0 }, { "norm(x, '-inf')", 0 }, { "norm(x, 0)", 5 }, { "norm(x, 1)", 14.75 },
        { "norm(x)", 8.620469824783333 }, { "norm(x, 3)", 7.571991929042617 }, { "norm(x, 0.5)", 57.53084301856887 }, { "norm(x[3:], -1)", 0.1627906976744186 },
        { "norm(x[3:], -inf)", 0.25 }, { "norm(cast(x, int32), inf)", 7 }, { "norm(cast(x, int32), 0)", 3 }, { "grad(norm(x, inf), x)[5]", -1 },
        { "sum(abs(grad(norm(x, inf), x)))", 1 }, { "grad(norm(x[3:], -inf), x)[4]", -1 }, { "norm(x / 0 * x, 0)", 6 },
    };
    double x[] = { 3, -4, 0, .5, -.25, -7 };
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(6), x);
    mc_flag_set("floatX", "float64");
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct leaf leaf[] = { { "x", a, 0, false } };
        mc_array *y = run(1, leaf, rows[i].text);
        double have = y ? mc_load_f64(y->dtype, y->data) : NAN;
        CHECK(fabs(have - rows[i].y) <= 1e-12 * fabs(rows[i].y), "%s is %.17g, not %.17g: %s", rows[i].text,
              have, rows[i].y, mc_last_error());
        mc_array_unref(&y);
    }
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?]; norm(x, 'fro')");
    CHECK(strstr(mc_error(g), "norm: ord must be a number"), "%s", mc_error(g));
    mc_graph_free(g);
    mc_array_unref(&a);
}
