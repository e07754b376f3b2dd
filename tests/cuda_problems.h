/* cuda_problems.h: what the tests of solvers on a GPU share: how often each of a family serves, and products
 * and convolutions of every kind of operand. */
#ifndef CUDA_PROBLEMS_H
#define CUDA_PROBLEMS_H

#include "cuda_test.h"
#include "heavy/conv/cuda/cuda.h"
#include "conv_grid.h"
#include "heavy/gemm/cuda/cuda.h"
#include "plan_options.h"
#include <stdio.h>

/* Enters the first GPU for the rest of the test. */
static inline struct mc_cuda *enter(void)
{
    struct mc_cuda *d = mc_cuda_count() > 0 ? mc_cuda_start(0) : NULL;
    return d && mc_cuda_enter(d) >= 0 ? d : NULL;
}

#define GPU_OR_SKIP()                                  \
    do {                                               \
        if (mc_cuda_count() == 0) {                    \
            SKIP("there is no GPU");                   \
        }                                              \
        REQUIRE(enter(), "%s", mc_last_error());       \
    } while (0)

struct column_sums { const char *name; int served, failed; };

/* One solver on one problem: its result is the reference's. */
static inline void one(const struct mc_problem *p, const struct mc_solver *s, struct column_sums *t)
{
    struct mc_str word = { 0 };
    t->name = s->name;
    if (s->refuse && s->refuse(p)) {
        return;
    }
    struct mc_plan *plan = mc_plan_with(p, s);
    p->family->key(p, &word);
    if (!plan && mc_last_status() == MC_EUNSUPPORTED) { /* a library may find out late that it has nothing */
        t->failed++;
    } else if (CHECK(plan, "%s: %s: %s", s->name, word.s, mc_last_error())) {
        CHECK(p->family->verify(p, plan) >= 0, "%s: %s: %s", s->name, word.s, mc_last_error());
        CHECK(s->estimate(p) > 0, "%s: %s", s->name, word.s);
        t->served++;
    }
    mc_plan_free(plan);
    mc_str_free(&word);
}

static inline void every(const struct mc_problem *p, struct column_sums *t)
{
    for (int k = 0; p->family->solvers[k]; k++) {
        one(p, p->family->solvers[k], &t[k]);
    }
}

/* How often a solver of the family served. */
static inline int served(const struct mc_family *f, const struct column_sums *t, const struct mc_solver *s)
{
    int k = 0;
    while (f->solvers[k] != s) {
        k++;
    }
    return t[k].served;
}

static inline void tell(const struct column_sums *t, int n)
{
    for (int k = 0; k < n; k++) {
        if (t[k].name) {
            printf("    %s served %d, had nothing for %d\n", t[k].name, t[k].served, t[k].failed);
        }
    }
}

static const mc_dtype floats[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16 };

/* ---- products ---- */

static inline void strides(int64_t *s, char order, int64_t rows, int64_t cols, int64_t gap, bool shared)
{
    s[1] = order == 'n' ? cols + gap : 1;
    s[2] = order == 'n' ? 1 : rows + gap;
    s[0] = shared ? 0 : (order == 'n' ? rows * s[1] : cols * s[2]) + gap;
}

enum { NO_C0, FULL_C0, ROW_C0, COL_C0, ONE_C0 };
static const struct product { double alpha, beta; int c0; enum mc_act act; int64_t batch, gap; bool share_a, share_b, apart; } products[] = {
    { 1,   0,    NO_C0,   ACT_NONE, 1, 0, false, false },
    { 0.5, 1,    ROW_C0,  ACT_RELU, 1, 3, false, false },
    { -2,  0.25, FULL_C0, ACT_NONE, 3, 1, false, false },
    { 1,   0,    FULL_C0, ACT_GELU, 2, 0, false, false },
    { 2,   -1,   COL_C0,  ACT_NONE, 2, 2, false, true  },
    { 1,   2,    ONE_C0,  ACT_RELU, 5, 0, true,  false },
    { 1,   1,    ROW_C0,  ACT_GELU, 2, 0, false, true  },
    { 1,   1,    FULL_C0, ACT_TANH, 1, 0, false, false, .apart = true },
    { 1,   1,    ROW_C0,  ACT_ELU,  1, 1, false, false },
    { 1,   0,    NO_C0,   ACT_SIGMOID, 2, 0, false, false },
    { 1,   1,    ROW_C0,  ACT_GELU_ERF, 1, 0, false, false },
};

static inline struct mc_gemm_problem product(mc_dtype d, int64_t m, int64_t n, int64_t k, const char *order,
                                             const struct product *v)
{
    struct mc_gemm_problem p = { .base = { &mc_gemm_cuda, mc_plan_options_of(&mc_site_cuda) },
                                 .dtype = d,
                                 .batch = v->batch,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .alpha = v->alpha,
                                 .beta = v->c0 == NO_C0 ? 0 : v->beta,
                                 .residual = v->apart,
                                 .act = v->act };
    strides(p.as, order[0], m, k, v->gap, v->share_a);
    strides(p.bs, order[1], k, n, v->gap, v->share_b);
    strides(p.cs, 'n', m, n, v->gap, false);
    strides(p.c0s, 'n', m, n, 1, false);
    if (v->c0 >= ROW_C0) {
        p.c0s[0] = 0;
        p.c0s[1] = v->c0 == COL_C0;
        p.c0s[2] = v->c0 == ROW_C0;
    }
    return p;
}

/* ---- convolutions ---- */

enum { BC01, B01C, C01B, GAPS, MIRROR };
static const struct variant {
    mc_dtype dtype;
    double alpha, beta;
    int layout;
    bool wide, bias;
    enum mc_act act;
    bool apart;
} variants[] = {
    { MC_FLOAT32,  1,   0,   BC01,   false, false, ACT_NONE },
    { MC_FLOAT32,  1,   0,   B01C,   false, false, ACT_NONE },
    { MC_FLOAT32,  0.5, 1,   BC01,   false, false, ACT_NONE },
    { MC_FLOAT32,  1,   0,   BC01,   false, true,  ACT_RELU },
    { MC_FLOAT16,  1,   0,   B01C,   false, true,  ACT_RELU },
    { MC_BFLOAT16, 1,   1,   BC01,   false, false, ACT_NONE },
    { MC_FLOAT64,  -2,  0.5, BC01,   false, false, ACT_NONE },
    { MC_FLOAT32,  1,   0,   C01B,   false, false, ACT_NONE },
    { MC_FLOAT32,  1,   1,   GAPS,   false, false, ACT_NONE },
    { MC_FLOAT32,  2,   -1,  MIRROR, false, false, ACT_NONE },
    { MC_FLOAT32,  1,   0,   BC01,   true,  false, ACT_NONE },
    { MC_FLOAT32,  1,   1,   B01C,   false, true,  ACT_GELU },
    { MC_FLOAT16,  1,   0,   BC01,   false, false, ACT_NONE },
    { MC_FLOAT32,  1,   1,   BC01,   false, true,  ACT_RELU, .apart = true },
    { MC_BFLOAT16, 1,   1,   B01C,   false, true,  ACT_TANH, .apart = true },
    { MC_FLOAT32,  1,   0,   B01C,   false, false, ACT_ELU },
    { MC_FLOAT64,  1,   1,   GAPS,   false, false, ACT_SIGMOID, .apart = true },
    { MC_FLOAT16,  1,   0,   B01C,   false, true,  ACT_SWISH },
};

static inline void lay_out(const struct mc_conv_problem *p, int role, int64_t *stride, int layout)
{
    static const int order[][5] = { [BC01] = { 0, 1, 2, 3, 4 },
                                    [B01C] = { 0, 2, 3, 4, 1 },
                                    [C01B] = { 1, 2, 3, 4, 0 },
                                    [GAPS] = { 0, 1, 2, 3, 4 },
                                    [MIRROR] = { 0, 1, 2, 3, 4 } };
    const struct mc_conv_array a = mc_conv_array(p, role);
    int64_t step = 1;
    mc_conv_dense_strides(&a, stride);
    for (int i = 4; i >= 0 && a.rank == 5; i--) {
        const int axis = order[layout][i];
        stride[axis] = layout == MIRROR && i == 1 ? -step : step;
        step *= MC_MAX(a.size[axis], (int64_t)1);
        step += layout == GAPS && i >= 3;
    }
}

static inline struct mc_conv_problem convolution(const char *shape, enum mc_conv_pass pass,
                                                 const struct variant *v)
{
    struct mc_conv_problem p = { .base = { &mc_conv_cuda, mc_plan_options_of(&mc_site_cuda) },
                                 .dtype = v->dtype,
                                 .s = conv_parse(shape),
                                 .alpha = v->alpha,
                                 .beta = v->beta,
                                 .wide = v->wide,
                                 .residual = v->apart,
                                 .has_bias = v->bias && pass == CONV_FORWARD,
                                 .act = pass == CONV_FORWARD ? v->act : ACT_NONE };
    p.s.pass = pass;
    lay_out(&p, CONV_X, p.at.x, v->layout);
    lay_out(&p, CONV_W, p.at.w, v->layout);
    lay_out(&p, CONV_Y, p.at.y, v->layout);
    return p;
}

#endif
