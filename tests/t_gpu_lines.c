/* t_gpu_lines.c: ops on lines on a GPU beside the processor: results so far, sorting, at lengths where their
 * kernels differ.
 *
 * Invariant: each is called until it is replayed. */
#include "agree.h"
#include "cuda_test.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>

/* The formulas at x of those sizes and dtype, on the GPU and on the CPU; `few` different values: many are
 * equal. */
static void beside_the_processor(mc_dtype d, int rank, const int64_t *dims, int few, int n,
                                 const char *const *formulas, double scale)
{
    struct agree a = { .scale = scale };
    mc_array *strided = sample(d, rank, dims, -1, 1),
             *x = few ? mc_array_copy(strided) : mc_array_ref(strided);
    for (int64_t i = 0; few && x && i < mc_array_size(x); i++) {
        static const double some[] = { -2, -0.0, 0, 1, 2.5, -1, 3, -3 };
        char *at = x->data + i * (int64_t)mc_dtypes[d].size;
        const double v = mc_load_f64(d, at) * 1000;
        const int k = (int)((int64_t)(v < 0 ? -v : v) % few);
        mc_store_f64(d, at, mc_is_float(d) && k == 6 ? (double)NAN : some[k]);
    }
    mc_array_unref(&strided);
    agree_input(&a, "x", x, 0);
    for (int i = 0; i < n; i++) {
        CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
    }
    const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
    CHECK(!wrong, "%s of rank %d, %lld x %lld, %d values: %s", mc_dtype_name(d), rank, (long long)dims[0],
          (long long)(rank > 1 ? dims[1] : 1), few, wrong ? wrong : "");
    agree_free(&a);
}

/* One warp, one block, several tiles, several groups of tiles; lines in the order of memory and across it. */
TEST(gpu_results_so_far)
{
    static const int64_t shapes[][2] = { { 1, 1 },    { 3, 31 },     { 2, 257 },  { 5, 2049 },
                                         { 1, 9000 }, { 2, 70001 },  { 700, 40 }, { 130, 64 },
                                         { 9000, 3 }, { 3000, 100 }, { 0, 4 } };
    static const char *const formulas[] = { "cumsum(x, axis=1)",
                                            "cumsum(x, axis=0)",
                                            "cummax(x, axis=1)",
                                            "cummin(x, axis=0)",
                                            "cumsum(x[::-1, ::2], axis=1)",
                                            "cummax(x.T, axis=0)",
                                            "cumprod(1 + x / 4096, axis=1)" };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_INT32 };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (size_t k = 0; k < NELEM(dtypes); k++) {
            beside_the_processor(dtypes[k], 2, shapes[i], 0, k < 2 ? 7 : 6, formulas, 4096);
        }
        beside_the_processor(MC_FLOAT32, 2, shapes[i], 8, 4, formulas, 4096);
    }
    static const int64_t groups_of_tiles[] = { 2, 300000 };
    beside_the_processor(MC_FLOAT64, 2, groups_of_tiles, 0, 1, formulas, 4096);
    /* tiles enough that their totals are found first; a line ends within a tile */
    static const int64_t many_tiles[] = { 130, 8200 };
    static const char *const along[] = { "cumsum(x, axis=1)", "cummax(x, axis=1)" };
    beside_the_processor(MC_FLOAT32, 2, many_tiles, 0, 1, along, 4096);
    beside_the_processor(MC_FLOAT16, 2, many_tiles, 8, 2, along, 4096);
    mc_flag_set("cuda.host", "True");
}

/* Lines of one tile, lines of several, small and large, and both across memory; each dtype with lines of one
 * tile. */
TEST(gpu_sorts)
{
    static const struct {
        mc_dtype dtype;
        int64_t dims[2];
    } cases[] = {
        { MC_FLOAT32, { 70, 5 } },   { MC_FLOAT32, { 2, 1000 } }, { MC_FLOAT32, { 3, 5000 } },
        { MC_FLOAT32, { 4500, 2 } }, { MC_FLOAT32, { 4, 0 } },    { MC_FLOAT64, { 3, 100 } },
        { MC_FLOAT64, { 2, 5000 } }, { MC_FLOAT16, { 3, 100 } },  { MC_BFLOAT16, { 3, 100 } },
        { MC_INT8, { 3, 100 } },     { MC_INT16, { 1, 5000 } },   { MC_UINT64, { 3, 100 } },
        { MC_INT32, { 3, 100 } },
    };
    static const char *const formulas[] = { "sort(x)", "argsort(x)", "sort(x[::-1, ::2], axis=0)",
                                            "argsort(x.T, axis=0)" };
    /* bytes in which all elements of a line are equal: the upper ones, all, all but one in the middle; those
     * of one line */
    static const char *const alike[] = { "sort(x % 5)",
                                         "argsort(x % 200)",
                                         "argsort(x % 1)",
                                         "sort(x % 3 * 65536)",
                                         "argsort(x % 3 * 65536)",
                                         "argsort(x * cast(arange(x.shape[0]), int64)[:, None])" };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    beside_the_processor(MC_INT64, 2, (const int64_t[]){ 3, 5000 }, 0, NELEM(alike), alike, 0);
    if (!getenv("FAKE_GPUS")) { /* where a processor is the GPU, this takes minutes */
        beside_the_processor(MC_INT8, 1, (const int64_t[]){ 1050001 }, 0, 2, formulas, 0);
    }
    for (size_t i = 0; i < NELEM(cases); i++) {
        beside_the_processor(cases[i].dtype, 2, cases[i].dims, 0, 4, formulas, 0);
        if (mc_is_float(cases[i].dtype)) {
            beside_the_processor(cases[i].dtype, 2, cases[i].dims, 8, 4, formulas, 0);
        }
    }
    mc_flag_set("cuda.host", "True");
}

/* Gradients that equal maxima share, of so many cells that windows have kernels of their own: windows beside
 * each other, with gaps between them, cut by the border. */
TEST(gpu_equal_maxima_share)
{
    static const int64_t dims[][4] = { { 2, 3, 121, 96 }, { 1, 4, 130, 131 }, { 3, 2, 61, 200 } };
    static const char *const formulas[] = {
        "pool(x, [2, 2], ties='all')",
        "pool_grad(x, pool(x * 2, [2, 2], ties='all'), [2, 2], ties='all')",
        "pool_grad(x, pool(x * 2, [3, 2], [4, 3], ties='all'), [3, 2], [4, 3], ties='all')",
        ("pool_grad(x, pool(x * 2, [2, 3], ties='all', ignore_border=False), [2, 3], ties='all', "
         "ignore_border=False)"),
        "pool_grad(x, pool(x * 2, [1, 4], ties='all'), [1, 4], ties='all')",
        "pool_grad(x, pool(x * 2, [3, 3], [2, 2], ties='all'), [3, 3], [2, 2], ties='all')",
    };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(dims); i++) {
        beside_the_processor(MC_FLOAT32, 4, dims[i], 0, NELEM(formulas), formulas, 0);
        beside_the_processor(MC_FLOAT32, 4, dims[i], 8, NELEM(formulas), formulas, 0);
    }
    beside_the_processor(MC_FLOAT16, 4, dims[0], 8, NELEM(formulas), formulas, 0);
    beside_the_processor(MC_FLOAT64, 4, dims[1], 6, NELEM(formulas), formulas, 0);
    mc_flag_set("cuda.host", "True");
}

/* The first of lines of one tile, of lines from which they are selected, and more than are selected; ties,
 * NaN. */
TEST(gpu_first_of_an_order)
{
    static const struct {
        mc_dtype dtype;
        int64_t dims[2];
    } cases[] = {
        { MC_FLOAT32, { 5, 300 } }, { MC_FLOAT32, { 2, 9000 } }, { MC_FLOAT16, { 3, 6000 } },
        { MC_INT32, { 2, 6000 } },  { MC_FLOAT64, { 2, 5000 } }, { MC_FLOAT32, { 1, 30000 } },
        { MC_INT8, { 2, 20000 } },  { MC_INT64, { 2, 9000 } },   { MC_UINT64, { 1, 5000 } },
    };
    static const char *const formulas[] = {
        "argtopk(x, 7)",        "topk(x, -5, axis=-1)", "argtopk(x, 1)",
        "topk(x.T, 2, axis=0)", "argtopk(x, -200)",     "argtopk(x, 2500)"
    };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(cases); i++) {
        const int64_t count = cases[i].dims[1];
        const int n = count >= 2500 ? 6 : count >= 200 ? 5 : 0;
        beside_the_processor(cases[i].dtype, 2, cases[i].dims, 0, n, formulas, 0);
        if (mc_is_float(cases[i].dtype)) {
            beside_the_processor(cases[i].dtype, 2, cases[i].dims, 8, n, formulas, 0);
        }
    }
    /* the first are beside each other, far from each other, one in 8192; most are equal; none is smaller */
    static const char *const orders[] = {
        "argtopk(x, 2000)",
        "argtopk(sort(x), -2000)",
        "argtopk(sort(x)[::-1], -900)",
        "argtopk(where(arange(200000) % 8192 == 5, 1e6 + x, x), 20)",
        "argtopk(maximum(x, 1000.), -30)",
        "argtopk(where(x > 0, inf, nan), 9)",
        "topk(where(x > 0, -inf, x), 9)",
    };
    beside_the_processor(MC_FLOAT32, 1, (const int64_t[]){ 200000 }, 0, NELEM(orders), orders, 0);
    beside_the_processor(MC_FLOAT64, 1, (const int64_t[]){ 200000 }, 0, NELEM(orders), orders, 0);
    mc_flag_set("cuda.host", "True");
}

/* Searches, permutations, replacements at positions, recurrences: the gradient of the gradient of cumprod. */
TEST(gpu_positions)
{
    static const struct {
        mc_dtype dtype;
        int64_t dims[2];
    } cases[] = {
        { MC_FLOAT32, { 7, 300 } }, { MC_FLOAT64, { 3, 40 } }, { MC_FLOAT16, { 5, 60 } },
        { MC_INT8, { 6, 50 } },     { MC_UINT64, { 4, 9 } },
    };
    static const char *const formulas[] = {
        "searchsorted(sort(ravel(x))[::2], x)",
        "searchsorted(sort(x[0]), x.T, side='right')",
        "permute_row_elements(x, argsort(x))",
        "permute_row_elements(x, argsort(x, axis=0), axis=0)",
        "put_along_axis(x, argsort(x) // 3, x[:, ::-1], axis=1, mode='max')",
        "put_along_axis(x, -1 - argsort(x, axis=0) // 2, x, axis=0, mode='min')",
        "grad(sum(sqr(grad(sum(cumprod(1 + x / 64, axis=1)), x))), x)",
    };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(cases); i++) {
        const bool real = mc_is_float(cases[i].dtype) && cases[i].dtype != MC_FLOAT16;
        beside_the_processor(cases[i].dtype, 2, cases[i].dims, 0, real ? 7 : 6, formulas, 4096);
        if (mc_is_float(cases[i].dtype)) {
            beside_the_processor(cases[i].dtype, 2, cases[i].dims, 8, 4, formulas, 0);
        }
    }
    mc_flag_set("cuda.host", "True");
}

TEST(gpu_position_out_of_range)
{
    static const struct {
        const char *formula, *says;
    } cases[] = {
        { "permute_row_elements(x, p)", "index 9 is out of range for size 3" },
        { "put_along_axis(x, p, 1., axis=1, mode='max')", "index 9 is out of range for axis 1 with size 3" },
    };
    const int64_t dims[2] = { 1, 3 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_from(MC_FLOAT32, 2, dims, (float[]){ 1, 2, 3 }),
                 *p = mc_array_from(MC_INT32, 2, dims, (int32_t[]){ 0, 9, 1 }), *y = NULL;
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_input(g, "p", MC_INT32, 2);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, p", .outputs = cases[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        for (int call = 0; call < 3; call++) {
            const mc_status s = mc_call(f, MC_IN(x, p), MC_OUT(&y));
            CHECK(s == MC_EINDEX && strstr(mc_last_error(), cases[i].says), "%s: %s", cases[i].formula,
                  mc_last_error());
        }
        mc_function_free(f);
        mc_array_unref(&x);
        mc_array_unref(&p);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
}

/* Integers added at indices that repeat: more of them than a chain of equal ones is made for; few and many
 * places. */
TEST(gpu_counts)
{
    static const char *const formulas[] = {
        "histogram(x, 7)[0]",
        "inc_subtensor(zeros([9000], dtype=int64)[cast(abs(x) * 4000, int32)], 3)",
        "inc_subtensor(zeros([50], dtype=int8)[cast(abs(x) * 20, int32)], 1)",
        "inc_subtensor(zeros([300, 2], dtype=uint16)[cast(abs(x) * 100, int64)], cast([1, 2], uint16))",
        "inc_subtensor(arange(40)[cast(-1 - abs(x) * 10, int16)], arange(size(x, 0)))",
    };
    const int64_t few[] = { 700 }, many[] = { 140000 };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    beside_the_processor(MC_FLOAT32, 1, few, 0, 5, formulas, 0);
    beside_the_processor(MC_FLOAT32, 1, many, 0, 5, formulas, 0);
    mc_flag_set("cuda.host", "True");
}

/* Counts of numbers in a GPU's memory, whose size depends on them: few bins, many, a minimum, none; the
 * numbers are counted where they are, others are copied.  Each is called twice. */
TEST(gpu_counts_where_the_numbers_are)
{
    static const struct {
        int64_t n, most;
        const char *formula;
    } cases[] = {
        { 1, 0, "bincount(x)" },
        { 1000, 7, "bincount(x)" },
        { 100000, 999, "bincount(x)" },
        { 30000, 9000, "bincount(x)" },
        { 500, 30, "bincount(x, minlength=90)" },
        { 0, 0, "bincount(x, minlength=3)" },
        { 3000, 20, "bincount(x) * 2 + bincount(x, minlength=21)" },
        { 3000, 20, "sum(x) + bincount(x)" },
        { 3000, 20, "bincount(x, weights=x)" },
    };
    ON_GPU();
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(MC_INT64, 1, &cases[i].n), *there, *got[2] = { NULL }, *want = NULL;
        int64_t *v = (int64_t *)(void *)x->data;
        uint64_t state = 7;
        for (int64_t k = 0; k < cases[i].n; k++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            v[k] = (int64_t)(state >> 33) % (cases[i].most + 1);
        }
        mc_input(g, "x", MC_INT64, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        REQUIRE(f && (there = mc_array_to(x, "cuda0")), "%s: %s %s", cases[i].formula, mc_error(g),
                mc_last_error());
        for (int k = 0; k < 2; k++) {
            CHECK(mc_call(f, MC_IN(there), MC_OUT(&got[k])) == MC_OK, "%s: %s", cases[i].formula,
                  mc_last_error());
        }
        CHECK(mc_call(f, MC_IN(x), MC_OUT(&want)) == MC_OK, "%s: %s", cases[i].formula, mc_last_error());
        for (int k = 0; k < 2 && want && got[k]; k++) {
            mc_array *home = mc_array_to(got[k], "cpu");
            CHECK(home && mc_array_differs(home, want, 0, 0) < 0, "%s of %lld differs", cases[i].formula,
                  (long long)cases[i].n);
            mc_array_unref(&home);
        }
        if (cases[i].n) {
            v[cases[i].n / 2] = -4;
            mc_array *wrong = mc_array_to(x, "cuda0"), *none = NULL;
            CHECK(mc_call(f, MC_IN(wrong), MC_OUT(&none)) == MC_EINDEX &&
                      strstr(mc_last_error(), "an element is negative"),
                  "%s: %s", cases[i].formula, mc_last_error());
            mc_array_unref(&wrong);
            mc_array_unref(&none);
        }
        mc_array_unref(&got[0]);
        mc_array_unref(&got[1]);
        mc_array_unref(&want);
        mc_array_unref(&there);
        mc_array_unref(&x);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
