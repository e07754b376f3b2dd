/* t_epilogue.c: the epilogue of a product or a convolution is recognised when a program is made, whatever
 * the device. A GPU's solver computes it where it can, else a kernel behind it; the results are the
 * reference's. */
#include "exec/heavy/heavy.h"
#include "agree.h"
#include "cuda_problems.h"

#include <math.h>

#define CONV "conv(x, w, border='half')"
#define LAST "conv(dimshuffle(x, order=[0, 2, 3, 1]), dimshuffle(w, order=[0, 2, 3, 1]), border='half', layout='b01c')"
#define BIAS "dimshuffle(b, order=[-1, 0, -1, -1])"

/* fused: of how many steps the solver computes the epilogue. */
static const struct row { const char *formula, *algo; int fused; } rows[] = {
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
    { "relu(" CONV " + " BIAS ")",                       "im2col",      0 }, /* this solver computes no epilogue */
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

static int fused_of(const mc_function *f)
{
    int n = 0;
    for (int i = 0; f->plans && i < f->code->nstep; i++) {
        n += f->plans->step[i].heavy && f->plans->step[i].heavy->epilogue.by_solver;
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

static void row_is_fused(const struct row *r, mc_dtype d)
{
    struct agree a = inputs(d);
    mc_flag_set("conv.algo_fwd", r->algo);
    agree_output(&a, r->formula);
    mc_function *f = agree_compile(&a, "FAST_RUN", 1);
    if (CHECK(f, "%s: %s", r->formula, mc_error(a.g))) {
        const char *wrong = agree_calls(&a, f, r->formula);
        CHECK(!wrong, "%s by %s: %s", mc_dtype_name(d), r->algo, wrong);
        CHECK(fused_of(f) == r->fused, "%s in %s by %s: %d fused, not %d", r->formula, mc_dtype_name(d),
              r->algo, fused_of(f), r->fused);
    }
    mc_function_free(f);
    agree_free(&a);
}

/* Everyday each row in one dtype, in turn. */
TEST(solvers_compute_epilogues_where_they_can)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT16, MC_BFLOAT16, MC_FLOAT64 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (size_t d = 0; d < NELEM(dtypes); d++) {
            if (test_is_full() || i % NELEM(dtypes) == d) {
                row_is_fused(&rows[i], dtypes[d]);
            }
        }
    }
    mc_flag_set("conv.algo_fwd", "auto");
}

/* ---- every spelling of every activation, behind every sum ---- */

/* @ stands for the sum. */
static const struct spelling { enum mc_act act; const char *formula; } spellings[] = {
    { ACT_NONE,     "@" },
    { ACT_RELU,     "relu(@)" },
    { ACT_RELU,     "maximum(@, 0)" },
    { ACT_RELU,     "maximum(0, @)" },
    { ACT_RELU,     "where(@ > 0, @, 0)" },
    { ACT_TANH,     "tanh(@)" },
    { ACT_SIGMOID,  "sigmoid(@)" },
    { ACT_SIGMOID,  "1 / (1 + exp(-@))" },
    { ACT_ELU,      "elu(@)" },
    { ACT_ELU,      "where(@ > 0, @, expm1(@))" },
    { ACT_GELU,     "0.5 * @ * (1 + tanh(0.7978845608028654 * (@ + 0.044715 * @ ** 3)))" },
    { ACT_GELU,     "@ * 0.5 * (tanh((@ + @ * @ * @ * 0.044715) * sqrt(2 / 3.141592653589793)) + 1)" },
    { ACT_GELU_ERF, "0.5 * @ * (1 + erf(@ / sqrt(2)))" },
    { ACT_GELU_ERF, "@ * 0.5 * (1 + erf(@ * 0.7071067811865476))" },
    { ACT_SWISH,    "@ * sigmoid(@)" },
    { ACT_SWISH,    "sigmoid(@) * @" },
};

/* products take one term, convolutions a bias and a residual */
static const struct sum { const char *formula; int terms; bool fused; } sums[] = {
    { CONV,                             0, true  },
    { CONV " + " BIAS,                  1, true  },
    { "r + " CONV,                      1, true  },
    { CONV " + " BIAS " + r",           2, true  },
    { "r + (" BIAS " + " CONV ")",      2, true  },
    { "dot(m, n)",                      0, true  },
    { "c + dot(m, n)",                  1, true  },
    { "dot(m, n) + d",                  1, true  },
    { "dot(m, n) + c + d",              2, false },
};

static void write_over(char *to, size_t size, const char *formula, const char *sum)
{
    size_t n = 0;
    for (const char *s = formula; *s && n + 1 < size; s++) {
        n += (size_t)(*s == '@' ? snprintf(to + n, size - n, "(%s)", sum)
                                : snprintf(to + n, size - n, "%c", *s));
    }
}

/* The one step of heavy work with an epilogue; NULL: there is none. */
static const struct mc_step *step_of(const mc_function *f)
{
    const struct mc_program *p = &f->code->program;
    for (size_t i = 0; i < p->step.n; i++) {
        if (p->step.at[i].heavy && p->step.at[i].kernel) {
            return &p->step.at[i];
        }
    }
    return NULL;
}

static bool kernel_runs(const mc_function *f)
{
    bool runs = false;
    for (int i = 0; i < f->code->nstep; i++) {
        runs |= f->plans->step[i].heavy && f->plans->step[i].epilogue;
    }
    return runs;
}

static void spelling_is_known(const struct spelling *w, const struct sum *s, mc_dtype d, bool run)
{
    char text[2000];
    struct agree a = inputs(d);
    write_over(text, sizeof text, w->formula, s->formula);
    agree_output(&a, text);
    mc_function *f = agree_compile(&a, "FAST_RUN", 1);
    const struct mc_step *st = f ? step_of(f) : NULL;
    const bool bare = w->act == ACT_NONE && s->terms == 0;
    if (CHECK(f && (st || bare), "%s in %s: %s", text, mc_dtype_name(d), f ? "no epilogue" : mc_error(a.g)) &&
        st) {
        const struct mc_epilogue *e = &st->epilogue;
        CHECK(e->known && e->act == w->act && e->nterm == s->terms, "%s in %s: %s, activation%s, %d terms",
              text, mc_dtype_name(d), e->known ? "known" : "unknown", mc_act_names[e->act], e->nterm);
    }
    if (f && run) {
        const char *wrong = agree_calls(&a, f, text);
        CHECK(!wrong, "%s in %s: %s", text, mc_dtype_name(d), wrong);
        CHECK(bare || fused_of(f) == s->fused, "%s in %s: %d fused", text, mc_dtype_name(d), fused_of(f));
        CHECK(!s->fused || !kernel_runs(f), "%s in %s: a kernel runs", text, mc_dtype_name(d));
    }
    mc_function_free(f);
    agree_free(&a);
}

/* Everyday each spelling with each sum in one dtype, in turn: on a GPU one pair of three. */
static void every_spelling(bool run)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT16, MC_BFLOAT16 };
    for (size_t i = 0; i < NELEM(spellings); i++) {
        for (size_t k = 0; k < NELEM(sums); k++) {
            for (size_t d = 0; d < NELEM(dtypes); d++) {
                if (test_is_full() || ((i + k) % NELEM(dtypes) == d && (!run || (i + 2 * k) % 3 == 0))) {
                    spelling_is_known(&spellings[i], &sums[k], dtypes[d], run);
                }
            }
        }
    }
}

TEST(activations_are_known_on_every_device)
{
    every_spelling(false);
}

TEST(solvers_compute_every_activation)
{
    ON_GPU();
    every_spelling(true);
}

/* Close to an epilogue that solvers know, and none. */
TEST(near_misses_stay_kernels)
{
    static const char *const formulas[] = {
        "maximum(" CONV " + " BIAS ", 0.001)", "minimum(" CONV " + " BIAS ", 0)", "where(dot(m, n) > 0.5, dot(m, n), 0)",
        "where(dot(m, n) < 0, dot(m, n), 0)", "where(dot(m, n) > 0, dot(m, n), 0.1)", "where(dot(m, n) > 0, dot(m, n), 2 * expm1(dot(m, n)))",
        "where(dot(m, n) > 0, dot(m, n), d)", "2 * tanh(dot(m, n))", "dot(m, n) * sigmoid(1.702 * dot(m, n))", "d * sigmoid(dot(m, n))",
        "0.5 * dot(m, n) * (1 + tanh(0.79 * (dot(m, n) + 0.044715 * dot(m, n) ** 3)))",
        "0.5 * dot(m, n) * (1 + tanh(0.7978845608028654 * (dot(m, n) + 0.0448 * dot(m, n) ** 3)))", "0.5 * dot(m, n) * (1 + erf(0.71 * dot(m, n)))",
        "0.4 * dot(m, n) * (1 + erf(dot(m, n) / sqrt(2)))", "tanh(dot(m, n) + c) + d", "relu(dot(m, n) + c + 0.5)", "relu(dot(m, n) - c)",
        "relu(dot(m, n) + tanh(d))", "relu(dot(m, n) + dot(m, n))", "relu(" CONV " + " BIAS " + r + b[0])", "relu(" CONV " + " BIAS " + 2 * r)",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct agree a = inputs(MC_FLOAT32);
        agree_output(&a, formulas[i]);
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        if (CHECK(f, "%s: %s", formulas[i], mc_error(a.g))) {
            const char *wrong = agree_calls(&a, f, formulas[i]);
            const struct mc_step *st = step_of(f);
            CHECK(!wrong, "%s: %s", formulas[i], wrong);
            CHECK((!st || !st->epilogue.known) && fused_of(f) == 0, "%s: an epilogue is known", formulas[i]);
        }
        mc_function_free(f);
        agree_free(&a);
    }
}

/* A term of another size or order is a kernel's; a result in another dtype is recorded, and a kernel's. */
TEST(terms_and_casts_are_told_apart)
{
    static const struct { const char *formula; bool known, fused; mc_dtype cast; } cases[] = {
        { "relu(" CONV " + " BIAS ")",                                  true,  true,  MC_FLOAT32 },
        { "relu(" CONV " + dimshuffle(b[:7], order=[-1, -1, 0, -1]))",  true,  false, MC_FLOAT32 },
        { "relu(" CONV " + dimshuffle(r, order=[0, 1, 2, 3])[:, :, ::-1])", true, false, MC_FLOAT32 },
        { "relu(dot(m, n) + e)",                                        true,  true,  MC_FLOAT32 },
        { "cast(relu(dot(m, n) + c), dtype='float16')",                 true,  false, MC_FLOAT16 },
        { "cast(relu(dot(m, n) + c), dtype='float64')",                 true,  false, MC_FLOAT64 },
    };
    for (size_t i = 0; i < NELEM(cases); i++) {
        struct agree a = inputs(MC_FLOAT32);
        agree_output(&a, cases[i].formula);
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        if (CHECK(f, "%s: %s", cases[i].formula, mc_error(a.g))) {
            const char *wrong = agree_calls(&a, f, cases[i].formula);
            const struct mc_step *st = step_of(f);
            CHECK(!wrong, "%s: %s", cases[i].formula, wrong);
            CHECK(st && st->epilogue.known == cases[i].known &&
                      (!cases[i].known || st->epilogue.cast == cases[i].cast),
                  "%s: %s", cases[i].formula, st ? "another epilogue" : "none");
            CHECK(fused_of(f) == (cases[i].fused && gpu_is_the_device()), "%s: %d fused", cases[i].formula,
                  fused_of(f));
        }
        mc_function_free(f);
        agree_free(&a);
    }
}

/* DEBUG compares the bare result, strict_math keeps a NaN that a library's maximum might drop: a kernel
 * there. */
TEST(epilogues_are_kernels_where_the_bare_result_counts)
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
        CHECK(fused_of(f) == (i == 0), "%s: %d fused", modes[i], fused_of(f));
        mc_function_free(f);
        agree_free(&a);
    }
    mc_flag_set("strict_math", "False");
}

/* The sum, the bias and the activation are rounded together: no further off than half of the last place. */
TEST(epilogues_of_halves_are_rounded_once)
{
    ON_GPU();
    struct agree a = inputs(MC_FLOAT16);
    mc_array *y = NULL;
    agree_output(&a, "relu(dot(m, n) + c)");
    mc_function *f = agree_compile(&a, "FAST_RUN", 1);
    REQUIRE(f && agree_call(&a, f, &y) == MC_OK, "%s", mc_last_error());
    CHECK(fused_of(f) == 1, "%d fused", fused_of(f));
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
/* Whole numbers, whose products and sums are exact. */
static mc_array *whole(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = uniform(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        char *at = a->data + i * mc_dtypes[d].size;
        mc_store_f64(d, at, floor(4 * mc_load_f64(d, at)));
    }
    return a;
}

/* How many elements of y are not the sum of products and c, whose strides are by[0] and by[1]. */
static int64_t wrong_sums(const mc_array *y, const mc_array *x, const mc_array *w, const mc_array *c,
                          const int64_t by[2])
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < y->dims[0]; i++) {
        for (int64_t j = 0; j < y->dims[1]; j++) {
            double want = mc_load_f64(c->dtype, c->data + (i * by[0] + j * by[1]) * mc_dtypes[c->dtype].size);
            for (int64_t k = 0; k < x->dims[1]; k++) {
                want += mc_array_get(x, (int64_t[]){ i, k }) * mc_array_get(w, (int64_t[]){ k, j });
            }
            const double have = mc_array_get(y, (int64_t[]){ i, j });
            wrong += have < want || have > want;
        }
    }
    return wrong;
}

/* On a processor one term without an activation is C0 of the product, whatever solver computes it. */
TEST(products_add_a_term_on_a_processor)
{
    enum { TERM_C = 2, TERM_E, TERM_D, TERM_T }; /* inputs */
    static const struct { const char *formula; int term, fused; } cases[] = {
        { "dot(m, n) + c", TERM_C, 1 }, { "e + dot(m, n)", TERM_E, 1 },   { "dot(m, n) + d", TERM_D, 1 },
        { "t.T + dot(m, n)", TERM_T, 1 }, { "maximum(dot(m, n) + c, -1e9)", TERM_C, 0 },
    };
    static const char *const solvers[] = { "auto",   "packed",    "direct", "skinny",
                                           "splitk", "reference", "blas",   "onednn" };
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    for (size_t k = 0; k < NELEM(solvers) * NELEM(cases); k++) {
        const char *formula = cases[k % NELEM(cases)].formula;
        const mc_dtype d = k / NELEM(cases) % 2 ? MC_FLOAT64 : MC_FLOAT32;
        const int64_t nrow = 1 + (int64_t)(test_random() % 90), ncol = 1 + (int64_t)(test_random() % 90),
                      inner = 1 + (int64_t)(test_random() % 300);
        const int64_t by[][2] = {
            [TERM_C] = { 0, 1 }, [TERM_E] = { 1, 0 }, [TERM_D] = { ncol, 1 }, [TERM_T] = { 1, nrow }
        };
        const int term = cases[k % NELEM(cases)].term, fused = cases[k % NELEM(cases)].fused;
        struct agree a = { 0 };
        agree_input(&a, "m", whole(d, 2, (const int64_t[]){ nrow, inner }), 0);
        agree_input(&a, "n", whole(d, 2, (const int64_t[]){ inner, ncol }), 0);
        agree_input(&a, "c", whole(d, 1, &ncol), 0);
        agree_input(&a, "e", whole(d, 2, (const int64_t[]){ nrow, 1 }), 2);
        agree_input(&a, "d", whole(d, 2, (const int64_t[]){ nrow, ncol }), 0);
        agree_input(&a, "t", whole(d, 2, (const int64_t[]){ ncol, nrow }), 0);
        agree_output(&a, formula);
        mc_flag_set("gemm.algo", solvers[k / NELEM(cases)]);
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        mc_array *y = NULL;
        REQUIRE(f, "%s: %s", formula, mc_error(a.g));
        mc_arg in[6];
        for (int i = 0; i < a.nin; i++) {
            in[i] = mc_arg_array(a.value[i]);
        }
        mc_arg out = mc_arg_slot(&y);
        const bool ran = mc_call(f, a.nin, in, 1, &out) == MC_OK;
        if (CHECK(ran || strstr(mc_last_error(), "no solver for gemm") ||
                      strstr(mc_last_error(), "which was asked for"),
                  "%s: %s", formula, mc_last_error()) &&
            ran) {
            CHECK(wrong_sums(y, a.value[0], a.value[1], a.value[term], by[term]) == 0, "%s by %s is wrong",
                  formula, solvers[k / NELEM(cases)]);
            CHECK(fused_of(f) == fused, "%s by %s: %d fused", formula, solvers[k / NELEM(cases)],
                  fused_of(f));
        }
        mc_array_unref(&y);
        mc_function_free(f);
        agree_free(&a);
    }
}

TEST(epilogues_survive_every_failed_allocation)
{
    GPU_OR_SKIP();
    ALLOC_FAIL_LOOP {
        struct mc_conv_problem p = convolution("n2c3f5 i7x9 k3x3", CONV_FORWARD, &variants[3]);
        struct mc_plan *plan = mc_plan_with(&p.base, &mc_conv_cuda_unfused);
        CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
        mc_plan_free(plan);
    }
}
