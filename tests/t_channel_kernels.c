/* t_channel_kernels.c: kernels over the channels of images, which lie in pieces, or side by side: kept in
 * registers where they are short, split over blocks where they are long, against the reference; and the sums
 * of squares that take no walk of their own. */
#include "agree.h"
#include "sample.h"

/* By axes that are kept, lengths and pieces: what a block has room for and what it has not, whole vectors and
 * single elements. */
static const struct {
    int rank;
    int64_t dims[5];
    const char *axes;
} shapes[] = {
    { 4, { 2, 70, 6, 10 },    "[0, 2, 3]" },
    { 4, { 3, 65, 7, 7 },     "[0, 2, 3]" },
    { 4, { 32, 2, 7, 7 },     "[0, 2, 3]" },
    { 4, { 5, 3, 50, 52 },    "[0, 2, 3]" },
    { 4, { 3, 2, 81, 81 },    "[0, 2, 3]" },
    { 4, { 1, 9, 12, 12 },    "[0, 2, 3]" },
    { 4, { 0, 3, 4, 4 },      "[0, 2, 3]" },
    { 4, { 3, 12, 13, 40 },   "[0, 1, 2]" },
    { 4, { 5, 30, 31, 64 },   "[0, 1, 2]" },
    { 4, { 40, 3, 7, 100 },   "[0, 1, 2]" },
    { 4, { 5, 1, 1, 4 },      "[0, 1, 2]" },
    { 4, { 9, 10, 10, 6 },    "[0, 1, 2]" },
    { 5, { 4, 3, 6, 5, 8 },   "[0, 2, 4]" },
};
/* What is asked for together, and may become one kernel: sums alone, and what is none. */
static const char *const formulas[][4] = {
    { "batch_normalization_train(x, g, b, axes=%s)[0]", "sum(x * v, axis=%s)", "x[::-1] - mean(x, axis=%s, keepdims=True)" },
    { "relu(batch_normalization_train(x, g, b, axes=%s)[0] + v)" },
    { "grad(sum(batch_normalization_train(x, g, b, axes=%s)[0] * v), x)", "grad(sum(batch_normalization_train(x, g, b, axes=%s)[0] * v), b)" },
    { "argmax(x[::-1], axis=1)", "x - max(x * v, axis=%s, keepdims=True)", "mean(x, axis=%s)" },
};

static mc_array *input(mc_dtype d, int rank, const int64_t *dims, double lo, bool dense)
{
    mc_array *odd = sample(d, rank, dims, lo, 1), *x = dense ? mc_array_copy(odd) : mc_array_ref(odd);
    mc_array_unref(&odd);
    return x;
}

static void agrees(size_t c, size_t set, mc_dtype d, bool dense)
{
    int64_t kept[5] = { 1, 1, 1, 1, 1 };
    const int rank = shapes[c].rank;
    for (int i = 0; i < rank; i++) {
        kept[i] = strchr(shapes[c].axes, '0' + i) ? 1 : shapes[c].dims[i];
    }
    struct agree a = { .scale = 400 };
    agree_input(&a, "x", input(d, rank, shapes[c].dims, -1, dense), 0);
    agree_input(&a, "v", input(d, rank, shapes[c].dims, .5, dense), 0);
    agree_input(&a, "g", sample(d, rank, kept, .5, 1), 0);
    agree_input(&a, "b", sample(d, rank, kept, -1, 1), 0);
    for (size_t k = 0; k < NELEM(formulas[0]) && formulas[set][k]; k++) {
        char formula[160];
        snprintf(formula, sizeof formula, formulas[set][k], shapes[c].axes);
        CHECK(!mc_is_error(agree_output(&a, formula)), "%s", mc_error(a.g));
    }
    const char *wrong = agree_in(&a, "FAST_RUN", 2);
    CHECK(!wrong, "case %zu, %s, in %s: %s", c, formulas[set][0], mc_dtype_name(d), wrong);
    agree_free(&a);
}

TEST(rows_in_pieces_agree_with_the_reference)
{
    for (size_t i = 0; i < NELEM(shapes) * NELEM(formulas); i++) {
        agrees(i / NELEM(formulas), i % NELEM(formulas), MC_FLOAT32, true);
        agrees(i / NELEM(formulas), i % NELEM(formulas), MC_FLOAT32, false);
    }
}

TEST(rows_in_pieces_of_halves_agree_with_the_reference)
{
    for (size_t i = 0; i < NELEM(shapes) * NELEM(formulas); i++) {
        agrees(i / NELEM(formulas), i % NELEM(formulas), i % 3 ? MC_BFLOAT16 : MC_FLOAT16, true);
    }
}

/* Squares about a mean that is summed beside them: of elements far from zero nothing is lost. */
TEST(variances_far_from_zero_are_exact)
{
    static const int64_t dims[][4] = { { 4, 3, 60, 64 }, { 2, 2, 81, 83 }, { 2, 64, 14, 14 } };
    for (size_t c = 0; c < NELEM(dims); c++) {
        mc_array *odd = sample(MC_FLOAT32, 4, dims[c], 3000, 3001), *x = mc_array_copy(odd), *v = NULL;
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?, ?, ?, ?]");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "var(x, axis=[0, 2, 3])" });
        REQUIRE(f && mc_call(f, MC_IN(x), MC_OUT(&v)) == MC_OK, "%s", mc_last_error());
        for (int64_t k = 0; k < dims[c][1]; k++) {
            const double n = (double)(dims[c][0] * dims[c][2] * dims[c][3]);
            double mean = 0, sum = 0;
            for (int pass = 0; pass < 2; pass++) {
                for (int64_t i = 0; i < dims[c][0] * dims[c][2] * dims[c][3]; i++) {
                    const int64_t at = dims[c][2] * dims[c][3], image = i / at;
                    const double e = ((const float *)x->data)[(image * dims[c][1] + k) * at + i % at];
                    mean += pass ? 0 : e / n;
                    sum += pass ? (e - mean) * (e - mean) / n : 0;
                }
            }
            const double have = mc_array_get(v, &k);
            CHECK(fabs(have - sum) < 1e-5 * sum, "case %zu, channel %d: %.9g, not %.9g", c, (int)k, have,
                  sum);
        }
        mc_function_free(f);
        mc_graph_free(g);
        mc_array_unref(&odd);
        mc_array_unref(&x);
        mc_array_unref(&v);
    }
}

/* Factors of a channel are loaded once a row, and up to four elements at its end are computed one by one. */
TEST(rows_of_every_length_by_factors_of_their_channel)
{
    static const char *const maps[] = { "clip(b + g * b * (x - g), 0.0f32, 0.5f32)", "v + g * x",
                                        "where(x < b, g * g, v * b)" };
    for (int i = 0; i < 40 * (int)NELEM(maps); i++) {
        const int64_t n = i / (int)NELEM(maps) + 1;
        const char *map = maps[i % (int)NELEM(maps)];
        struct agree a = { .scale = 40 };
        agree_input(&a, "x", input(MC_FLOAT32, MC_SHAPE(3, 5, n), -1, true), 0);
        agree_input(&a, "v", input(MC_FLOAT32, MC_SHAPE(3, 5, n), -1, true), 0);
        agree_input(&a, "g1", sample(MC_FLOAT32, MC_SHAPE(5), .5, 1), 0);
        agree_input(&a, "b1", sample(MC_FLOAT32, MC_SHAPE(5), -1, 1), 0);
        mc_formula(a.g, "g = dimshuffle(g1, order=[-1, 0, -1])");
        mc_formula(a.g, "b = dimshuffle(b1, order=[-1, 0, -1])");
        CHECK(!mc_is_error(agree_output(&a, map)), "%s", mc_error(a.g));
        const char *wrong = agree_in(&a, "FAST_RUN", 2);
        CHECK(!wrong, "%s, rows of %d: %s", map, (int)n, wrong);
        agree_free(&a);
    }
}
