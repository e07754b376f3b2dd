/* t_tail.c: on a GPU, what follows a product or a convolution is its solver's where it can be, and a kernel's
 * where not; either way the results are the reference's. */
#include "exec/heavy/heavy.h"
#include "agree.h"
#include "cuda_problems.h"

#include <math.h>

#define CONV "conv(x, w, border='half')"
#define LAST "conv(dimshuffle(x, order=[0, 2, 3, 1]), dimshuffle(w, order=[0, 2, 3, 1]), border='half', layout='b01c')"
#define BIAS "dimshuffle(b, order=[-1, 0, -1, -1])"

/* tails: of how many steps the solver makes what would be a kernel's. */
static const struct row { const char *formula, *algo; int tails; } rows[] = {
    { "relu(" CONV " + " BIAS ")",                       "auto",        1 },
    { "relu(" CONV " + " BIAS ")",                       "apart",       1 },
    { "relu(" CONV " + " BIAS " + r)",                   "cuda_direct", 1 },
    { "relu(" CONV " + " BIAS " + r)",                   "apart",       1 },
    { "tanh(r + " CONV ")",                              "apart",       1 },
    { "elu(" CONV " + " BIAS ")",                        "cuda_direct", 1 },
    { "elu(" CONV " + " BIAS ")",                        "apart",       1 },
    { "sigmoid(" CONV ")",                               "cuda_direct", 1 },
    { "sigmoid(" CONV ")",                               "apart",       1 },
    { CONV " + " BIAS,                                   "auto",        1 },
    { CONV " + r",                                       "auto",        1 },
    { "relu(" LAST " + dimshuffle(b, order=[-1, -1, -1, 0]))", "apart", 1 },
    { "tanh(" LAST " + dimshuffle(r, order=[0, 2, 3, 1]))", "auto",     0 }, /* it lies otherwise */
    { "relu(" CONV " + " BIAS ")",                       "im2col",      0 }, /* its solver does nothing of that */
    { "conv_inputs(w, r, [2, 4, 7, 6], border='half') + x", "auto",     1 },
    { "relu(" CONV " + b[0])",                           "auto",        0 }, /* the same for all: no bias */
    { "relu(" CONV " * " BIAS ")",                       "auto",        0 },
    { "relu(" CONV " + r + 2 * r)",                      "auto",        0 },
    { "relu(" CONV " + " CONV " * r)",                   "auto",        0 },
    { "cos(" CONV " + " BIAS ")",                        "auto",        0 },
    { "maximum(" CONV " + " BIAS ", 1)",                 "auto",        0 },
    { "relu(dot(m, n) + c)",                             "auto",        1 },
    { "tanh(dot(m, n) + c)",                             "auto",        1 },
    { "sigmoid(dot(m, n) + d)",                          "auto",        1 },
    { "elu(dot(m, n) + e)",                              "auto",        1 },
    { "dot(m, n) + c",                                   "auto",        1 },
    { "relu(dot(m, n) + c + d)",                         "auto",        0 }, /* products take one */
    { "0.5 * (dot(m, n) + c) * (1 + tanh(0.7978845608028654 * (dot(m, n) + c + 0.044715 * (dot(m, n) + c) ** 3)))", "auto", 1 },
    { "0.5 * (dot(m, n) + c) * (1 + erf((dot(m, n) + c) / sqrt(2)))", "auto", 1 },
    { "(dot(m, n) + c) * 0.5 * (1 + erf((dot(m, n) + c) * 0.7071067811865476))", "auto", 1 },
    { "(" CONV " + " BIAS ") * sigmoid(" CONV " + " BIAS ")", "apart",  1 },
};

static int tails_of(const mc_function *f)
{
    int n = 0;
    for (int i = 0; f->plans && i < f->code->nstep; i++) {
        n += f->plans->step[i].heavy && f->plans->step[i].heavy->tail.there;
    }
    return n;
}

static mc_array *uniform(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        mc_store_f64(d, a->data + i * mc_dtypes[d].size, test_uniform(-1, 1));
    }
    return a;
}

static struct agree inputs(mc_dtype d)
{
    struct agree a = { 0 };
    agree_input(&a, "x", uniform(d, MC_SHAPE(2, 4, 7, 6)), 0);
    agree_input(&a, "w", uniform(d, MC_SHAPE(8, 4, 3, 3)), 15);
    agree_input(&a, "b", uniform(d, MC_SHAPE(8)), 0);
    agree_input(&a, "r", uniform(d, MC_SHAPE(2, 8, 7, 6)), 0);
    agree_input(&a, "m", uniform(d, MC_SHAPE(9, 5)), 0);
    agree_input(&a, "n", uniform(d, MC_SHAPE(5, 8)), 0);
    agree_input(&a, "c", uniform(d, MC_SHAPE(8)), 0);
    agree_input(&a, "d", uniform(d, MC_SHAPE(9, 8)), 0);
    agree_input(&a, "e", uniform(d, MC_SHAPE(9, 1)), 2);
    return a;
}

static void tails_of_row(const struct row *r, mc_dtype d)
{
    struct agree a = inputs(d);
    mc_flag_set("conv.algo_fwd", r->algo);
    agree_output(&a, r->formula);
    mc_function *f = agree_compile(&a, "FAST_RUN", 1);
    if (CHECK(f, "%s: %s", r->formula, mc_error(a.g))) {
        const char *wrong = agree_calls(&a, f, r->formula);
        CHECK(!wrong, "%s by %s: %s", mc_dtype_name(d), r->algo, wrong);
        CHECK(tails_of(f) == r->tails, "%s in %s by %s: %d tails, not %d", r->formula, mc_dtype_name(d),
              r->algo, tails_of(f), r->tails);
    }
    mc_function_free(f);
    agree_free(&a);
}

/* Everyday each row in one dtype, in turn. */
TEST(tails_are_the_solvers_where_they_can_be)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT16, MC_BFLOAT16, MC_FLOAT64 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (size_t d = 0; d < NELEM(dtypes); d++) {
            if (test_is_full() || i % NELEM(dtypes) == d) {
                tails_of_row(&rows[i], dtypes[d]);
            }
        }
    }
    mc_flag_set("conv.algo_fwd", "auto");
}

/* DEBUG compares the bare result, strict_math keeps a NaN that a library's maximum might drop: a kernel
 * there. */
TEST(tails_are_kernels_where_the_bare_result_counts)
{
    static const char *const modes[] = { "FAST_RUN", "DEBUG", "NANGUARD", "FAST_RUN" };
    ON_GPU();
    for (size_t i = 0; i < NELEM(modes); i++) {
        struct agree a = inputs(MC_FLOAT32);
        mc_flag_set("strict_math", i == 3 ? "True" : "False");
        agree_output(&a, rows[0].formula);
        mc_function *f = agree_compile(&a, modes[i], 1);
        REQUIRE(f, "%s", mc_error(a.g));
        const char *wrong = agree_calls(&a, f, modes[i]);
        CHECK(!wrong, "%s", wrong);
        CHECK(tails_of(f) == (i == 0), "%s: %d tails", modes[i], tails_of(f));
        mc_function_free(f);
        agree_free(&a);
    }
    mc_flag_set("strict_math", "False");
}

/* The sum, the bias and the activation are rounded together: no further off than half of the last place. */
TEST(tails_of_halves_are_rounded_once)
{
    ON_GPU();
    struct agree a = inputs(MC_FLOAT16);
    mc_array *y = NULL;
    agree_output(&a, "relu(dot(m, n) + c)");
    mc_function *f = agree_compile(&a, "FAST_RUN", 1);
    REQUIRE(f && agree_call(&a, f, &y) == MC_OK, "%s", mc_last_error());
    CHECK(tails_of(f) == 1, "%d tails", tails_of(f));
    for (int64_t i = 0; i < 9; i++) {
        for (int64_t j = 0; j < 8; j++) {
            double sum = mc_array_get(a.value[6], &j), got = mc_array_get(y, (int64_t[]){ i, j });
            for (int64_t k = 0; k < 5; k++) {
                sum += mc_array_get(a.value[4], (int64_t[]){ i, k }) *
                       mc_array_get(a.value[5], (int64_t[]){ k, j });
            }
            const double want = MC_MAX(sum, 0.0), place = ldexp(1, ilogb(MC_MAX(want, 0x1p-14)) - 10);
            CHECK(fabs(got - want) <= 0.501 * place, "[%lld, %lld] is %.9g, not %.9g", (long long)i,
                  (long long)j, got, want);
        }
    }
    mc_array_unref(&y);
    mc_function_free(f);
    agree_free(&a);
}

/* The bare one and its kernel, or neither. */
TEST(tails_survive_every_failed_allocation)
{
    GPU_OR_SKIP();
    ALLOC_FAIL_LOOP {
        struct mc_conv_problem p = convolution("n2c3f5 i7x9 k3x3", CONV_FORWARD, &variants[3]);
        struct mc_plan *plan = mc_plan_with(&p.base, &mc_conv_cuda_apart);
        CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
        mc_plan_free(plan);
    }
}
