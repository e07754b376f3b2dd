/* t_lines.c: functions of ops on long lines give the bits of the reference, for any number of threads and
 * at every level of instructions. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "op/op.h"
#include "op/special.h"
#include <math.h>
#include <monochord.h>

/* Numbers with many equal ones, zeros of both signs, infinities and NaN; wide: all bits of wide integers. */
static mc_array *rough(mc_dtype d, int rank, const int64_t *dims, bool wide)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        char *at = a->data + i * mc_dtypes[d].size;
        const uint64_t r = test_random();
        const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN };
        if (mc_is_float(d)) {
            mc_store_f64(d, at,
                         r % 16 < 5 ? odd[r % 16]
                         : wide     ? test_uniform(-1, 1)
                                    : (double)(r % 23) - 11);
        } else {
            mc_store_i64(d, at, d == MC_BOOL ? (int64_t)(r & 1) : wide ? (int64_t)r : (int64_t)(r % 50));
        }
    }
    return a;
}

static mc_array *compiled(const char *formula, mc_array *x, mc_array *v, const char *threads)
{
    mc_graph *g = mc_graph_new();
    mc_array *y = NULL;
    mc_input(g, "x", x->dtype, x->rank);
    mc_input(g, "v", v->dtype, v->rank);
    mc_flag_set("threads", threads);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, v", .outputs = formula, .on_unused = "ignore" });
    CHECK(f && mc_call(f, MC_IN(x, v), MC_OUT(&y)) == MC_OK, "%s: %s", formula,
          f ? mc_last_error() : mc_error(g));
    mc_function_free(f);
    mc_graph_free(g);
    mc_flag_set("threads", "0");
    return y;
}

static void check_bits(const char *formula, mc_array *x, mc_array *v)
{
    mc_graph *g = mc_graph_new();
    mc_node *in[2] = { mc_input(g, "x", x->dtype, x->rank), mc_input(g, "v", v->dtype, v->rank) };
    mc_node *y = mc_formula(g, formula);
    mc_array *want = NULL;
    CHECK(mc_eval(2, in, (mc_array *[]){ x, v }, 1, &y, &want) == MC_OK, "%s: %s", formula, mc_last_error());
    for (int threads = 1; threads <= 3 && want; threads++) {
        mc_array *have = compiled(formula, x, v, (const char *[]){ "1", "2", "3" }[threads - 1]);
        CHECK(have && have->dtype == want->dtype &&
                  mc_dims_equal(have->rank, have->dims, want->rank, want->dims) &&
                  (memcmp(have->data, want->data,
                          (size_t)mc_array_size(want) * mc_dtypes[want->dtype].size) == 0 ||
                   (strstr(formula, "cumsum") && mc_array_differs(have, want, 0, 0) < 0)), /* signs of NaN */
              "%s of %lld %s on %d threads", formula, (long long)mc_array_size(x), mc_dtype_name(x->dtype),
              threads);
        mc_array_unref(&have);
    }
    mc_array_unref(&want);
    mc_graph_free(g);
}

TEST(lines_of_every_length)
{
    static const int64_t sizes[] = { 1, 2, 31, 48, 49, 255, 256, 257, 1000, 1025, 5000, 40000 };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_INT8, MC_UINT16, MC_INT32, MC_INT64,
                                       MC_UINT64, MC_BOOL };
    static const char *const formulas[] = { "sort(x)",         "argsort(x)",     "argtopk(x, 1)",
                                            "argtopk(x, -1)",  "cumsum(x)",      "searchsorted(sort(x), v)",
                                            "sort(x[::-1])",   "argsort(x[::2])",
                                            "searchsorted(sort(x), v, side='right')" };
    for (size_t i = 0; i < NELEM(sizes); i++) {
        for (size_t k = 0; k < NELEM(dtypes); k++) {
            mc_array *x = rough(dtypes[k], 1, &sizes[i], i % 2), *v = rough(dtypes[k], 1, &sizes[i], i % 2);
            for (size_t f = 0; f < NELEM(formulas); f++) {
                check_bits(formulas[f], x, v);
            }
            mc_array_unref(&x);
            mc_array_unref(&v);
        }
    }
}

TEST(the_first_of_an_order)
{
    static const char *const formulas[] = { "topk(x, 7)", "argtopk(x, 7)", "argtopk(x, -32)", "argtopk(x, 33)",
                                            "argtopk(x, 400)", "argtopk(x, -9000)" };
    for (int wide = 0; wide < 4; wide++) {
        const int64_t n = 20000;
        mc_array *x = rough(wide & 2 ? MC_FLOAT64 : MC_FLOAT32, 1, &n, wide & 1);
        for (size_t f = 0; f < NELEM(formulas); f++) {
            check_bits(formulas[f], x, x);
        }
        mc_array_unref(&x);
    }
}

TEST(lines_of_matrices)
{
    static const char *const formulas[] = {
        "sort(x)",          "sort(x, axis=0)",        "argsort(x, axis=0)", "argsort(x.T)", "cumsum(x, axis=1)",
        "cumsum(x, axis=0)", "cumsum(x.T, axis=1)",   "topk(x, 5)",         "argtopk(x, 5, axis=0)",
        "searchsorted(sort(ravel(x)), v.T)",
    };
    for (int few = 0; few < 2; few++) {
        const int64_t dims[2] = { few ? 2 : 70, few ? 20000 : 300 };
        mc_array *x = rough(MC_FLOAT32, 2, dims, false), *y = rough(MC_INT64, 2, dims, true);
        for (size_t f = 0; f < NELEM(formulas) - 2 * (size_t)few; f++) {
            if (!few || !strstr(formulas[f], "axis=0")) {
                check_bits(formulas[f], x, x);
                check_bits(formulas[f], y, y);
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
    }
}

TEST(counts)
{
    static const int64_t sizes[] = { 1, 50, 5000, 70000 };
    for (size_t i = 0; i < NELEM(sizes); i++) {
        mc_array *x = rough(MC_INT64, 1, &sizes[i], false), *w = mc_array_new(MC_FLOAT32, 1, &sizes[i]),
                 *y = rough(MC_UINT16, 1, &sizes[i], true);
        for (int64_t k = 0; k < sizes[i]; k++) {
            ((float *)(void *)w->data)[k] = (float)test_uniform(-1, 1);
        }
        check_bits("bincount(x)", x, w);
        check_bits("bincount(x, v)", x, w);
        check_bits("bincount(x, minlength=90)", x, w);
        check_bits("bincount(x)", y, w);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&w);
    }
}

TEST(counts_of_negative_numbers_are_refused)
{
    for (int64_t n = 1; n < 40; n++) {
        const int64_t at = (int64_t)(test_random() % (uint64_t)n);
        mc_graph *g = mc_graph_new();
        mc_array *x = rough(MC_INT64, 1, &n, false), *y = NULL;
        ((int64_t *)(void *)x->data)[at] = -1;
        mc_input(g, "x", MC_INT64, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "bincount(x)" });
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_EINDEX, "element %lld of %lld", (long long)at,
              (long long)n);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Lines that sorts and selections find hard: few values, in order, in falling order, one far away from all
 * others, which agree in the upper bits of their keys. */
static mc_array *hard(mc_dtype d, int64_t n, int kind)
{
    mc_array *a = mc_array_new(d, 1, &n);
    for (int64_t i = 0; a && i < n; i++) {
        const int64_t r = (int64_t)(test_random() % 1000),
                      v = kind == 0    ? r % 2
                          : kind == 1  ? i
                          : kind == 2  ? n - i
                          : kind == 3  ? 7
                          : i == n / 2 ? INT64_C(1) << (mc_dtypes[d].size == 8 ? 62 : 30)
                                       : r;
        char *at = a->data + i * mc_dtypes[d].size;
        if (mc_is_float(d)) {
            mc_store_f64(d, at, (double)v);
        } else {
            mc_store_i64(d, at, v);
        }
    }
    return a;
}

static void check_levels(const char *formula, mc_array *x)
{
    static const char *const levels[] = { "avx512", "avx2", "plain" };
    for (size_t l = 0; l < NELEM(levels); l++) {
        if (mc_isa_only(levels[l])) {
            check_bits(formula, x, x);
        }
        mc_isa_only(NULL);
    }
}

TEST(hard_lines_at_every_level)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_INT32, MC_INT64 };
    static const char *const formulas[] = { "sort(x)", "argsort(x)", "argtopk(x, 20)", "argtopk(x, -20)",
                                            "cumsum(x)" };
    mc_flag_set("device", "cpu"); /* levels are the processor's */
    for (size_t k = 0; k < NELEM(dtypes); k++) {
        for (int kind = 0; kind < 7; kind++) {
            const int64_t n = 34000, short_n = 700;
            mc_array *x = kind < 5 ? hard(dtypes[k], n, kind) : rough(dtypes[k], 1, &n, kind == 6),
                     *y = kind < 5 ? hard(dtypes[k], short_n, kind)
                                   : rough(dtypes[k], 1, &short_n, kind == 6);
            for (size_t f = 0; f < NELEM(formulas); f++) {
                check_levels(formulas[f], x);
                check_levels(formulas[f], y);
            }
            mc_array_unref(&x);
            mc_array_unref(&y);
        }
    }
}

/* So many elements that one thread sorts them in buckets, too. */
TEST(a_long_line)
{
    static const char *const formulas[] = { "sort(x)", "argsort(x)", "argtopk(x, 3000)",
                                            "argtopk(x, -200000)" };
    const int64_t n = 270001;
    for (int wide = 0; wide < 2; wide++) {
        mc_array *x = rough(wide ? MC_FLOAT64 : MC_FLOAT32, 1, &n, true);
        for (size_t f = 0; f < NELEM(formulas); f++) {
            check_bits(formulas[f], x, x);
        }
        mc_array_unref(&x);
    }
}

/* Draws of each length at each level of instructions, against the words one by one. */
TEST(draws_at_every_level)
{
    static const char *const levels[] = { "avx512", "avx2", "plain" };
    for (size_t l = 0; l < NELEM(levels); l++) {
        for (int64_t n = 1; n < 10000 && mc_isa_only(levels[l]); n = n * 3 + 1) {
            for (int wide = 0; wide < 2; wide++) {
                char formula[120];
                mc_array *x = rough(MC_FLOAT32, 1, &n, true);
                mc_snprintf(formula, sizeof formula,
                            "uniform(cast([77, 5], uint64), [%lld], dtype=%s, stream=9)", (long long)n,
                            wide ? "float64" : "float32");
                mc_array *y = compiled(formula, x, x, "2");
                const uint64_t key = mc_random_mix(77, 9);
                bool same = y != NULL;
                for (int64_t i = 0; i < n && same; i++) {
                    const uint64_t word = mc_random_word((uint64_t)i, key, 5, wide);
                    const double want = wide ? (double)(word >> 11) * 0x1p-53 : (double)(word >> 8) * 0x1p-24;
                    const double have = mc_load_f64(y->dtype, y->data + i * mc_dtypes[y->dtype].size);
                    same = have >= want && have <= want;
                }
                CHECK(same, "%s at %s", formula, levels[l]);
                mc_array_unref(&x);
                mc_array_unref(&y);
            }
        }
        mc_isa_only(NULL);
    }
}
