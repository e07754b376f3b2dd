/* t_numbers.c: what numbers become at the edges of their types: floor division and its remainder, powers,
 * order, casts. What is expected is NumPy's and SciPy's, but for casts of what an integer cannot hold, which
 * docs/limits.md defines. */
#include "function_words.h"
#include <stdint.h>

#define TINY 4.9406564584124654e-324
#define LEAST64 ((double)INT64_MIN)

struct row {
    const char *formula;
    mc_dtype d;
    double a, b;
    double want;        /* -0 is not 0; NaN is NaN */
    uint64_t bits;      /* instead: of an integer that double has not */
};

/* a and b as arrays of one element, and of so many that vectors and threads take part, compiled and by the
 * reference. */
static void check_row(const struct row *r, const char *mode, int n)
{
    mc_graph *g = mc_graph_new();
    mc_array *in[2] = { mc_array_new(r->d, MC_SHAPE(n)), mc_array_new(r->d, MC_SHAPE(n)) }, *y = NULL;
    const size_t size = mc_dtypes[r->d].size;
    for (int i = 0; i < n; i++) {
        mc_store_f64(r->d, in[0]->data + (size_t)i * size, r->a);
        mc_store_f64(r->d, in[1]->data + (size_t)i * size, r->b);
    }
    mc_input(g, "a", r->d, 1);
    mc_input(g, "b", r->d, 1);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){
                             .inputs = "a, b", .outputs = r->formula, .mode = mode, .on_unused = "ignore" }));
    if (f && fine(mc_call(f, MC_IN(in[0], in[1]), MC_OUT(&y))) &&
        CHECK(mc_array_size(y) > 0, "%s is empty", r->formula)) {
        const char *last = y->data + (size_t)(mc_array_size(y) - 1) * mc_dtypes[y->dtype].size;
        const double have = mc_load_f64(y->dtype, last);
        double want = r->want;
        char rounded[8];
        mc_store_f64(y->dtype, rounded, want);
        want = mc_load_f64(y->dtype, rounded);
        uint64_t whole;
        mc_convert(MC_UINT64, &whole, 8, y->dtype, last, 0, 1);
        const bool same = r->bits        ? whole == r->bits
                          : have == want ? signbit(have) == signbit(want)
                                         : isnan(have) && isnan(want);
        CHECK(same, "%s, %s: %s of %.17g and %.17g is %.17g, not %.17g", mode, mc_dtype_name(r->d),
              r->formula, r->a, r->b, have, r->bits ? (double)r->bits : want);
    }
    mc_array_unref(&in[0]);
    mc_array_unref(&in[1]);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

static void check_rows(const struct row *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_row(&r[i], "FAST_RUN", i % 2 ? 1 : 37);
        check_row(&r[i], "FAST_COMPILE", 1);
    }
}

TEST(floor_division_and_its_remainder_are_pythons)
{
    static const struct row rows[] = {
        { "a % b", MC_FLOAT32, 90.6, 0.1, 0.0999971255660057 }, { "a // b", MC_FLOAT32, 90.6, 0.1, 905 },
        { "a % b", MC_FLOAT32, 1e9, 3, 1 },          { "a // b", MC_FLOAT32, 1e9, 3, 333333344 },
        { "a % b", MC_FLOAT32, 5, INFINITY, 5 },     { "a // b", MC_FLOAT32, 5, INFINITY, 0 },
        { "a % b", MC_FLOAT32, -5, INFINITY, INFINITY }, { "a // b", MC_FLOAT32, -5, INFINITY, -1 },
        { "a // b", MC_FLOAT32, 1, 0.1, 9 },         { "a // b", MC_FLOAT64, 1, 0.1, 9 },
        { "a % b", MC_FLOAT64, 1, 0.1, 0.09999999999999995 }, { "a % b", MC_FLOAT64, -1, 0.1, 5.5511151231257827e-17 },
        { "a % b", MC_FLOAT64, 6, -3, -0.0 },        { "a % b", MC_FLOAT64, -6, 3, 0 },
        { "a // b", MC_FLOAT64, -0.0, 3, -0.0 },     { "a // b", MC_FLOAT64, 7.5, -2, -4 },
        { "a % b", MC_FLOAT64, 7.5, -2, -0.5 },      { "a % b", MC_FLOAT64, 1.7976931348623157e308, TINY, 0 },
        { "a % b", MC_FLOAT64, 1e300, 3e-300, 9.626317689605992e-301 }, { "a % b", MC_FLOAT64, 5, 0, NAN },
        { "a // b", MC_FLOAT64, 5, 0, INFINITY },    { "a // b", MC_FLOAT64, -5, 0, -INFINITY },
        { "a // b", MC_FLOAT64, 0, 0, NAN },         { "a // b", MC_FLOAT64, INFINITY, 3, NAN },
        { "a % b", MC_FLOAT64, INFINITY, 3, NAN },   { "a % b", MC_FLOAT64, NAN, 3, NAN },
        { "a % b", MC_FLOAT16, 7.5, -2, -0.5 },      { "a // b", MC_FLOAT16, 1, 0.1, 10 },
        { "a % b", MC_BFLOAT16, 7.5, -2, -0.5 },     { "a // b", MC_BFLOAT16, -7.5, 2, -4 },
        { "a // b", MC_INT32, 7, 0, 0 },             { "a % b", MC_INT32, 7, 0, 0 },
        { "a // b", MC_INT32, INT32_MIN, -1, INT32_MIN }, { "a % b", MC_INT32, INT32_MIN, -1, 0 },
        { "a // b", MC_INT64, LEAST64, -1, LEAST64 }, { "a // b", MC_INT8, -128, -1, -128 },
        { "a // b", MC_INT8, -7, 2, -4 },            { "a % b", MC_INT8, -7, 2, 1 },
        { "a // b", MC_UINT32, 4294967295., 2, 2147483647 }, { "a % b", MC_UINT64, 18446744073709549568., 1000, 568 },
    };
    check_rows(rows, NELEM(rows));
}

TEST(integer_powers_wrap)
{
    static const struct row rows[] = {
        { "a ** b", MC_UINT64, 3, 9223372036854775808., 0, .bits = 1 },         /* 3^(2^63) = 1 modulo 2^64 */
        { "a ** (b + 1)", MC_UINT64, 3, 9223372036854775808., 0, .bits = 3 },
        { "a ** b", MC_UINT64, 3, 40, 0, .bits = 12157665459056928801u },
        { "a ** b", MC_INT64, 3, 41, 0, .bits = 18026252303461234787u },
        { "a ** b", MC_INT32, -2, 31, INT32_MIN },     { "a ** b", MC_INT32, 0, 0, 1 },
        { "a ** b", MC_UINT8, 3, 6, 217 },             { "a ** b", MC_UINT32, 4294967295., 3, 4294967295. },
        { "a ** b", MC_INT32, -1, -3, -1 },            { "a ** b", MC_INT32, 2, -3, 0 },
    };
    check_rows(rows, NELEM(rows));
}

TEST(casts_of_floats_to_integers_end_at_what_there_is)
{
    static const struct { mc_dtype d; double low, high; } ends[] = {
        { MC_INT8, -128, 127 }, { MC_UINT8, 0, 255 }, { MC_INT16, -32768, 32767 }, { MC_UINT16, 0, 65535 },
        { MC_INT32, INT32_MIN, INT32_MAX }, { MC_UINT32, 0, UINT32_MAX }, { MC_INT64, LEAST64, 0 }, { MC_UINT64, 0, 0 },
    };
    for (size_t i = 0; i < NELEM(ends); i++) {
        char text[40];
        snprintf(text, sizeof text, "cast(a, %s)", mc_dtype_name(ends[i].d));
        const bool wide = ends[i].d == MC_INT64 || ends[i].d == MC_UINT64;
        const uint64_t top = ends[i].d == MC_INT64 ? INT64_MAX : ends[i].d == MC_UINT64 ? UINT64_MAX : 0;
        const struct row rows[] = {
            { text, MC_FLOAT64, NAN, 0, 0 },                           { text, MC_FLOAT32, NAN, 0, 0 },
            { text, MC_FLOAT64, INFINITY, 0, ends[i].high, top },      { text, MC_FLOAT32, 1e30, 0, ends[i].high, top },
            { text, MC_FLOAT64, -INFINITY, 0, ends[i].low },           { text, MC_FLOAT32, -1e30, 0, ends[i].low },
            { text, MC_FLOAT64, wide ? 1e20 : ends[i].high + 1, 0, ends[i].high, top }, { text, MC_FLOAT64, -1.5, 0, ends[i].low < 0 ? -1 : 0 },
            { text, MC_FLOAT64, wide ? 7.9 : ends[i].high + .75, 0, wide ? 7 : ends[i].high }, { text, MC_BFLOAT16, 3.5, 0, 3 },
            { text, MC_FLOAT16, 100.75, 0, 100 },                      { text, MC_FLOAT64, 100.75, 0, 100 },
        };
        check_rows(rows, NELEM(rows));
    }
    static const struct row more[] = {
        { "iround(a)", MC_FLOAT64, NAN, 0, 0 },              { "iround(a)", MC_FLOAT32, 1e30, 0, 0, .bits = INT64_MAX },
        { "iround(a)", MC_FLOAT64, -1e30, 0, LEAST64 },      { "iround(a)", MC_FLOAT16, 2.5, 0, 2 },
        { "cast(a, bool)", MC_FLOAT32, NAN, 0, 1 },          { "cast(a, uint8)", MC_INT32, 300, 0, 44 }, /* of integers the low bits */
        { "cast(a, int8)", MC_INT64, -129, 0, 127 },         { "sum(a, dtype=int64)", MC_FLOAT32, NAN, 0, 0 },
    };
    check_rows(more, NELEM(more));
}

/* Just above a tie of halves, nearer to it than float32 can tell: by way of float32 it would be rounded to
 * even. */
TEST(halves_are_rounded_once)
{
    static const struct row rows[] = {
        { "cast(a, float16)", MC_FLOAT64, 0.7712402086820612, 0, 0.77099609375 },
        { "cast(a, float16)", MC_FLOAT64, 1 + 0x1p-11 + 0x1p-40, 0, 1 + 0x1p-10 },
        { "cast(a, float16)", MC_FLOAT64, -1 - 0x1p-11 - 0x1p-40, 0, -1 - 0x1p-10 },
        { "cast(a, float16)", MC_FLOAT64, 1 + 0x1p-11, 0, 1 },
        { "cast(a, bfloat16)", MC_FLOAT64, 1 + 0x1p-8 + 0x1p-40, 0, 1 + 0x1p-7 },
        { "cast(a, bfloat16)", MC_INT32, 0x40800001, 0, 0x1.02p30 },
        { "cast(a, float16)", MC_FLOAT64, 1e300, 0, INFINITY },
        { "cast(a, float16)", MC_FLOAT64, NAN, 0, NAN },
        { "sum(expand_dims(a, 0), axis=0, acc_dtype=float32)", MC_FLOAT64, 1 + 0x1p-40, 0, 1 },
    };
    check_rows(rows, NELEM(rows));
}

TEST(functions_at_their_poles_and_next_to_zero)
{
    static const struct row rows[] = {
        { "psi(a)", MC_FLOAT64, 0.0, 0, -INFINITY },  { "psi(a)", MC_FLOAT64, -0.0, 0, INFINITY }, { "psi(a)", MC_FLOAT32, -2, 0, NAN },
        { "psi(a)", MC_FLOAT32, 0.0, 0, -INFINITY },  { "psi(a)", MC_FLOAT64, -INFINITY, 0, NAN }, { "psi(a)", MC_FLOAT64, INFINITY, 0, INFINITY },
        { "tri_gamma(a)", MC_FLOAT64, -INFINITY, 0, INFINITY }, { "tri_gamma(a)", MC_FLOAT32, -INFINITY, 0, INFINITY },
        { "tri_gamma(a)", MC_FLOAT64, -3, 0, INFINITY }, { "tri_gamma(a)", MC_FLOAT64, INFINITY, 0, 0 },
        { "expm1(a)", MC_FLOAT64, TINY, 0, TINY },    { "expm1(a)", MC_FLOAT64, -TINY, 0, -TINY }, { "expm1(a)", MC_FLOAT64, 3 * TINY, 0, 3 * TINY },
        { "expm1(a)", MC_FLOAT32, 1.401298464324817e-45, 0, 1.401298464324817e-45 }, { "expm1(a)", MC_FLOAT32, -0.0, 0, -0.0 },
        { "arccosh(a)", MC_FLOAT64, -0x1.97aaeep+12, 0, NAN }, { "arccosh(a)", MC_FLOAT64, -0x1.a74dab86d9fc2p+17, 0, NAN },
        { "arccosh(a)", MC_FLOAT32, -0x1.97aaeep+12, 0, NAN }, { "arccosh(a)", MC_FLOAT64, 0.5, 0, NAN }, { "arccosh(a)", MC_FLOAT64, 1, 0, 0 },
        { "arccosh(a)", MC_FLOAT16, -6500, 0, NAN },  { "arccosh(a)", MC_FLOAT64, NAN, 0, NAN }, { "arccosh(a)", MC_FLOAT64, INFINITY, 0, INFINITY },
        { "softmax_with_bias(stack(a, b), stack(b, a))[0, 0]", MC_FLOAT32, NAN, 1, NAN },
        { "softmax_with_bias(stack(b, b), a)[0, 0]", MC_FLOAT32, NAN, 1, NAN },
    };
    check_rows(rows, NELEM(rows));
}

/* What docs/limits.md says of numbers, and no other test shows. */
TEST(what_differs_from_numpy)
{
    static const struct row rows[] = {
        { "a // b", MC_INT32, 7, 0, 0 },                 { "a % b", MC_INT32, 7, 0, 0 },
        { "a // b", MC_UINT8, 7, 0, 0 },                 { "a % b", MC_INT64, -7, 0, 0 },
        { "a // b", MC_INT32, INT32_MIN, -1, INT32_MIN }, { "a // b", MC_INT8, INT8_MIN, -1, INT8_MIN },
        { "a ** b", MC_INT32, 3, -2, 0 },                { "a ** b", MC_INT32, 1, -2, 1 },
        { "a ** b", MC_INT32, -1, -3, -1 },              { "a ** b", MC_INT64, -1, -2, 1 },
        { "sgn(a)", MC_FLOAT32, -0.0, 0, -0.0 },         { "sgn(a)", MC_FLOAT64, -0.0, 0, -0.0 },
        { "clip(a, b, 1)", MC_FLOAT32, 0.5, NAN, 0.5 },  { "clip(a, b, 1)", MC_FLOAT32, 3, NAN, 1 },
        { "clip(a, 0, b)", MC_FLOAT64, 3, NAN, 3 },      { "gammaln(a)", MC_FLOAT64, -INFINITY, 0, INFINITY },
        { "gammaln(a)", MC_FLOAT32, -INFINITY, 0, INFINITY },
        { "sum(a[:0])", MC_FLOAT32, 1, 0, 0 },           { "sum(a)", MC_FLOAT32, -0.0, 0, 0 },
        { "1 / 0 + 0 * a", MC_FLOAT64, 1, 0, INFINITY },  { "a + 2 ** 100", MC_FLOAT64, 0, 0, 0x1p100 },
        { "cast(a, int8)", MC_INT32, 300, 0, 44 },       { "cast(a, uint8)", MC_FLOAT64, 300, 0, 255 },
        { "cast(a, uint8)", MC_FLOAT64, -1, 0, 0 },      { "cast(a, int32)", MC_FLOAT32, NAN, 0, 0 },
        { "dot(a, 2)", MC_FLOAT32, 3, 0, 6 },            { "norm(stack(a[:1], 2 * a[:1]))", MC_FLOAT64, 3, 0, 6.708203932499369 },
    };
    static const struct { const char *formula; mc_dtype is; } types[] = {
        { "cast(1, bool) + 1", MC_INT8 }, { "j + 300", MC_INT16 }, { "t + 1", MC_INT8 }, { "t & True", MC_BOOL },
    };
    static const char *const refused[] = { "1 // 0",       "1 % 0",          "j ** -1",
                                           "j and t",      "u + (-1)",       "x @ 2",
                                           "matmul(2, x)", "norm(x, 'fro')", "norm(x, 'nuc')" };
    check_rows(rows, NELEM(rows));
    for (size_t i = 0; i < NELEM(types) + NELEM(refused); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input j int8[?]; input t bool[?]; input u uint64[?]; input x float32[3, 3]");
        const char *text = i < NELEM(types) ? types[i].formula : refused[i - NELEM(types)];
        mc_node *n = mc_formula(g, text);
        if (i < NELEM(types)) {
            CHECK(!mc_is_error(n) && mc_node_dtype(n) == types[i].is, "%s is %s: %s", text,
                  mc_dtype_name(mc_node_dtype(n)), mc_error(g));
        } else {
            CHECK(mc_is_error(n) && *mc_error(g), "%s is accepted", text);
        }
        mc_graph_free(g);
    }
}

/* Order of what is in a's dtype the largest, and of floats, where NaN is last. */
TEST(order_is_that_of_the_numbers)
{
    static const double whole[] = { 1, 4294967295., 0, 2147483648., 2147483647 },
                        sorted[] = { 0, 1, 2147483647, 2147483648., 4294967295. };
    static const double small[] = { 1, -128, 127, 0, -1 }, small_sorted[] = { -128, -1, 0, 1, 127 };
    static const double bytes[] = { 1, 255, 128, 0, 127 }, bytes_sorted[] = { 0, 1, 127, 128, 255 };
    static const double real[] = { NAN, -INFINITY, 1, INFINITY, -1 },
                        real_sorted[] = { -INFINITY, -1, 1, INFINITY, NAN };
    static const struct { mc_dtype d; const double *x, *want; } rows[] = {
        { MC_UINT32, whole, sorted }, { MC_UINT64, whole, sorted }, { MC_INT64, whole, sorted }, { MC_INT8, small, small_sorted },
        { MC_INT16, small, small_sorted }, { MC_INT32, small, small_sorted }, { MC_UINT8, bytes, bytes_sorted }, { MC_UINT16, bytes, bytes_sorted },
        { MC_FLOAT16, real, real_sorted }, { MC_BFLOAT16, real, real_sorted }, { MC_FLOAT32, real, real_sorted }, { MC_FLOAT64, real, real_sorted },
    };
    for (size_t i = 0; i < 2 * NELEM(rows); i++) {
        const mc_dtype d = rows[i / 2].d;
        const int n = i % 2 ? 5 : 500; /* few are sorted otherwise than many */
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(d, MC_SHAPE(n)), *y = NULL, *z = NULL;
        for (int k = 0; k < n; k++) {
            mc_store_f64(d, x->data + (size_t)k * mc_dtypes[d].size, rows[i / 2].x[k % 5]);
        }
        mc_input(g, "x", d, 1);
        mc_function *f = made(
            g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sort(x), x[argsort(x)]" }));
        if (f && fine(mc_call(f, MC_IN(x), MC_OUT(&y, &z)))) {
            for (int k = 0; k < n; k++) {
                const double want = rows[i / 2].want[k / (n / 5)], have = at(y, k), by = at(z, k);
                CHECK((have == want && by == want) || (isnan(have) && isnan(by) && isnan(want)),
                      "%s, %d: %g and %g at %d, not %g", mc_dtype_name(d), n, have, by, k, want);
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&z);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
