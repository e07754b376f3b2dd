/* t_cuda_solvers.c: the solvers on a GPU, every one of every family against the host's reference, on the grids that the host's
 * solvers are tested on.  Their texts are compiled in t_cuda_texts.c, without a GPU. */
#include "cuda_test.h"
#include "conv/cuda.h"
#include "conv_grid.h"
#include "gemm/split.h"
#include "norm/solver.h"
#include "norm_problems.h"
#include "pool/solver.h"
#include "pool_problems.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Enters the first GPU for the rest of the test. */
static struct mc_cuda *enter(void)
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

struct tally { const char *name; int served, failed; };

/* One solver on one problem: its result is the reference's. */
static void one(const struct mc_problem *p, const struct mc_solver *s, struct tally *t)
{
    struct mc_str word = { 0 };
    t->name = s->name;
    if (s->refuse && s->refuse(p)) {
        return;
    }
    struct mc_plan *plan = mc_plan_with(p, s);
    p->family->word(p, &word);
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

static void every(const struct mc_problem *p, struct tally *t)
{
    for (int k = 0; p->family->solvers[k]; k++) {
        one(p, p->family->solvers[k], &t[k]);
    }
}

/* How often a solver of the family served. */
static int served(const struct mc_family *f, const struct tally *t, const struct mc_solver *s)
{
    int k = 0;
    while (f->solvers[k] != s) {
        k++;
    }
    return t[k].served;
}

static void tell(const struct tally *t, int n)
{
    for (int k = 0; k < n && t[k].name; k++) {
        printf("    %s served %d, had nothing for %d\n", t[k].name, t[k].served, t[k].failed);
    }
}

/* ---- products ---- */

static void strides(int64_t *s, char order, int64_t rows, int64_t cols, int64_t gap, bool shared)
{
    s[1] = order == 'n' ? cols + gap : 1;
    s[2] = order == 'n' ? 1 : rows + gap;
    s[0] = shared ? 0 : (order == 'n' ? rows * s[1] : cols * s[2]) + gap;
}

enum { NO_C0, FULL_C0, ROW_C0, COL_C0, ONE_C0 };
static const struct product { double alpha, beta; int c0; enum mc_act act; int64_t batch, gap; bool share_a, share_b; } products[] = {
    { 1,   0,    NO_C0,   ACT_NONE, 1, 0, false, false },
    { 0.5, 1,    ROW_C0,  ACT_RELU, 1, 3, false, false },
    { -2,  0.25, FULL_C0, ACT_NONE, 3, 1, false, false },
    { 1,   0,    FULL_C0, ACT_GELU, 2, 0, false, false },
    { 2,   -1,   COL_C0,  ACT_NONE, 2, 2, false, true  },
    { 1,   2,    ONE_C0,  ACT_RELU, 5, 0, true,  false },
    { 1,   1,    ROW_C0,  ACT_GELU, 2, 0, false, true  },
};

static struct mc_gemm_problem product(mc_dtype d, int64_t m, int64_t n, int64_t k, const char *order, const struct product *v)
{
    struct mc_gemm_problem p = { .base = { &mc_gemm_cuda }, .dtype = d, .batch = v->batch, .m = m, .n = n, .k = k, .alpha = v->alpha,
                                 .beta = v->c0 == NO_C0 ? 0 : v->beta, .has_c0 = v->c0 != NO_C0, .act = v->act };
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

static const int64_t sizes[][3] = {
    { 1, 1, 1 },     { 0, 3, 4 },    { 3, 4, 0 },      { 2, 3, 4 },     { 7, 5, 9 },      { 8, 48, 16 },    { 9, 49, 17 },
    { 33, 10, 65 },  { 1, 100, 50 }, { 100, 1, 50 },   { 1, 1, 3000 },  { 64, 64, 64 },   { 65, 97, 33 },   { 130, 70, 70 },
    { 5, 300, 40 },  { 16, 16, 16 }, { 20, 24, 2100 }, { 300, 13, 520 }, { 256, 256, 256 },
};
static const char *const orders[] = { "nn", "nt", "tn", "tt" };
static const mc_dtype floats[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16 };

TEST(cuda_gemm_solvers_give_the_reference)
{
    struct tally t[8] = { { 0 } };
    GPU_OR_SKIP();
    const size_t step = test_is_full() ? 1 : 5;
    for (size_t s = 0, turn = 0; s < NELEM(sizes); s++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            for (size_t d = 0; d < NELEM(floats); d++, turn++) {
                for (size_t v = turn % step; v < NELEM(products); v += step) {
                    const struct mc_gemm_problem p = product(floats[d], sizes[s][0], sizes[s][1], sizes[s][2], orders[o], &products[v]);
                    every(&p.base, t);
                }
            }
        }
    }
    tell(t, 8);
    CHECK(served(&mc_gemm_cuda, t, &mc_gemm_cuda_plain) > 100, "our own kernel ran %d times", served(&mc_gemm_cuda, t, &mc_gemm_cuda_plain));
    if (mc_nv_found(NV_CUBLASLT)->there) {
        CHECK(served(&mc_gemm_cuda, t, &mc_gemm_cublaslt) > 100, "cuBLASLt ran %d times", served(&mc_gemm_cuda, t, &mc_gemm_cublaslt));
    }
}

/* Large enough that our kernel takes its large tiles. */
TEST(cuda_gemm_large_tiles)
{
    struct tally t[8] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t o = 0; o < NELEM(orders); o++) {
        const struct mc_gemm_problem p = product(MC_FLOAT32, 1500, 1601, 130, orders[o], &products[o]);
        every(&p.base, t);
    }
    tell(t, 8);
}

/* Small matrices on tensor cores: sums shared by blocks, tiles that are not full, every order, lines that cannot be read by fours;
 * what is no number comes out as float32 has it. */
TEST(cuda_gemm_cut_tiles)
{
    static const int64_t small[][3] = { { 64, 64, 64 }, { 1, 1, 1 }, { 100, 130, 200 }, { 65, 10, 333 }, { 7, 70, 1000 } };
    struct tally t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(small); s++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            const struct mc_gemm_problem p = product(MC_FLOAT32, small[s][0], small[s][1], small[s][2], orders[o], &products[(s + o) % NELEM(products)]);
            one(&p.base, &mc_gemm_cuda_cut, &t);
        }
    }
    tell(&t, 1);
    CHECK(t.served == (int)(NELEM(small) * NELEM(orders)) && t.failed == 0, "served %d, failed %d", t.served, t.failed);
}

TEST(cuda_gemm_cut_infinities)
{
    enum { M = 70, N = 66, K = 130 };
    GPU_OR_SKIP();
    const struct mc_gemm_problem p = product(MC_FLOAT32, M, N, K, "nn", &products[0]);
    struct mc_plan *plan = mc_plan_with(&p.base, &mc_gemm_cuda_cut);
    REQUIRE(plan, "%s", mc_last_error());
    static float a[M * K], b[K * N], c[M * N];
    void *operand[8];
    for (int i = 0; i < M * K; i++) {
        a[i] = 1.0f / (float)(1 + i % 17);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(i % 13) - 6.5f;
    }
    a[3 * K + 5] = INFINITY;
    b[70 * N + 7] = NAN;
    b[2 * N + 9] = -INFINITY;
    struct mc_extent e[4];
    mc_gemm_extents(&p, e);
    struct mc_cuda *d = mc_cuda_current();
    REQUIRE(mc_cuda_operands(e, 4, operand) >= 0, "%s", mc_last_error());
    void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
    CHECK(mc_cuda_put(d, operand[GEMM_A], a, sizeof a) >= 0 && mc_cuda_put(d, operand[GEMM_B], b, sizeof b) >= 0 && plan->run(plan, operand, work, 0) >= 0 &&
          mc_cuda_get(d, c, operand[GEMM_C], sizeof c) >= 0, "%s", mc_last_error());
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double want = 0;
            for (int k = 0; k < K; k++) {
                want += (double)a[i * K + k] * b[k * N + j];
            }
            const double got = c[i * N + j], off = got - want;
            CHECK(isnan(want) ? isnan(got) : isinf(want) ? isinf(got) && (got > 0) == (want > 0) : off < 1e-4 && off > -1e-4, "(%d, %d): %g, not %g", i, j, got, want);
        }
    }
    mc_site_cuda.give(work);
    mc_cuda_discard(e, 4, operand);
    mc_plan_free(plan);
}

/* Strides that no library takes, backwards and with gaps in both directions; integers that stay within int16. */
TEST(cuda_gemm_any_strides_and_integers)
{
    static const mc_dtype all[] = { MC_INT32, MC_INT64, MC_FLOAT32, MC_FLOAT64, MC_INT16 };
    struct tally t[8] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t d = 0; d < NELEM(all); d++) {
        struct mc_gemm_problem p = product(all[d], 37, 41, 50, "nn", &products[0]);
        every(&p.base, t);
        memcpy(p.as, (int64_t[3]){ 0, 301, 3 }, sizeof p.as);
        memcpy(p.bs, (int64_t[3]){ 0, -90, 2 }, sizeof p.bs);
        memcpy(p.cs, (int64_t[3]){ 0, 2, -100 }, sizeof p.cs);
        one(&p.base, &mc_gemm_cuda_plain, &t[7]);
    }
    tell(t, 8);
    CHECK(t[7].served == NELEM(all), "our own kernel ran %d times", t[7].served);
}

/* The largest error of a solver, in units of float32's rounding of sqrt(k): what sums of that many products come to. */
static double error_of(const struct mc_gemm_problem *p, const struct mc_solver *s, void *const *host, const float *truth)
{
    struct mc_extent e[4];
    void *there[8];
    double worst = -1;
    mc_gemm_extents(p, e);
    struct mc_plan *plan = s->refuse && s->refuse(&p->base) ? NULL : mc_plan_with(&p->base, s);
    if (!plan || mc_cuda_operands(e, 4, there) < 0) {
        mc_plan_free(plan);
        return -1;
    }
    struct mc_cuda *d = mc_cuda_current();
    float *got = malloc((size_t)e[GEMM_C].count * sizeof *got);
    void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
    CHECK(mc_cuda_put(d, there[GEMM_A], host[GEMM_A], (size_t)e[GEMM_A].count * sizeof(float)) >= 0 &&
          mc_cuda_put(d, there[GEMM_B], host[GEMM_B], (size_t)e[GEMM_B].count * sizeof(float)) >= 0 &&
          plan->run(plan, there, work, 0) >= 0 && mc_cuda_get(d, got, there[GEMM_C], (size_t)e[GEMM_C].count * sizeof *got) >= 0,
          "%s: %s", s->name, mc_last_error());
    for (int64_t i = 0; i < e[GEMM_C].count; i++) {
        const double off = got[i] - truth[i];
        worst = MC_MAX(worst, off < 0 ? -off : off);
    }
    free(got);
    mc_site_cuda.give(work);
    mc_cuda_discard(e, 4, there);
    mc_plan_free(plan);
    return worst / (0x1p-24 * sqrt((double)p->k));
}

TEST(cuda_products_are_as_exact_as_float32)
{
    static const int64_t ks[] = { 8, 64, 1024, 8192 };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(ks); i++) {
        const struct mc_gemm_problem p = product(MC_FLOAT32, 96, 128, ks[i], "nn", &products[0]);
        struct mc_gemm_problem near = p;
        void *host[8];
        near.base.family = &mc_gemm_family;
        struct mc_plan *truth = mc_plan_with(&near.base, &mc_gemm_reference);
        REQUIRE(truth && mc_gemm_family.operands(&near.base, host) >= 0 && truth->run(truth, host, NULL, 0) >= 0, "%s", mc_last_error());
        const double plain = error_of(&p, &mc_gemm_cuda_plain, host, host[GEMM_C]);
        const double library = error_of(&p, &mc_gemm_cublaslt, host, host[GEMM_C]);
        const double split = mc_gemm_cuda_split.refuse(&p.base) ? 0 : error_of(&p, &mc_gemm_cuda_split, host, host[GEMM_C]);
        const double cut = error_of(&p, &mc_gemm_cuda_cut, host, host[GEMM_C]);
        const double most = 8 + sqrt((double)ks[i]);
        CHECK(split >= 0 && split <= 2 * plain + 2, "k %lld: in units of rounding, split operands are off by %.2f, our plain kernel by %.2f",
              (long long)ks[i], split, plain);
        CHECK(cut >= 0 && cut <= 2 * plain + 2, "k %lld: in units of rounding, tiles cut in halves are off by %.2f, our plain kernel by %.2f", (long long)ks[i],
              cut, plain);
        CHECK(plain >= 0 && plain <= most && library <= most, "k %lld: in units of rounding, our own kernel is off by %.2f, cuBLASLt by %.2f", (long long)ks[i],
              plain, library);
        mc_gemm_family.discard(&near.base, host);
        mc_plan_free(truth);
    }
}

/* ---- convolutions ---- */

enum { BC01, B01C, C01B, GAPS, MIRROR };
static const struct variant {
    mc_dtype dtype;
    double alpha, beta;
    int layout;
    bool wide, bias;
    enum mc_act act;
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
};

static void lay_out(const struct mc_conv_problem *p, int role, int64_t *stride, int layout)
{
    static const int order[][5] = { [BC01] = { 0, 1, 2, 3, 4 }, [B01C] = { 0, 2, 3, 4, 1 }, [C01B] = { 1, 2, 3, 4, 0 },
                                    [GAPS] = { 0, 1, 2, 3, 4 }, [MIRROR] = { 0, 1, 2, 3, 4 } };
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

static struct mc_conv_problem convolution(const char *shape, enum mc_conv_pass pass, const struct variant *v)
{
    struct mc_conv_problem p = { .base = { &mc_conv_cuda }, .dtype = v->dtype, .s = conv_parse(shape), .alpha = v->alpha, .beta = v->beta,
                                 .wide = v->wide, .has_bias = v->bias && pass == CONV_FORWARD,
                                 .act = pass == CONV_FORWARD ? v->act : ACT_NONE };
    p.s.pass = pass;
    lay_out(&p, CONV_X, p.at.x, v->layout);
    lay_out(&p, CONV_W, p.at.w, v->layout);
    lay_out(&p, CONV_Y, p.at.y, v->layout);
    return p;
}

static bool serves(const struct mc_solver *s, enum mc_conv_pass pass)
{
    return s == &mc_conv_cuda_few             ? pass != CONV_INPUTS
           : s == &mc_conv_cuda_exchange_full ? pass != CONV_WEIGHTS
           : s == &mc_conv_cuda_spread        ? pass == CONV_INPUTS
           : s == &mc_conv_cudnn              ? mc_nv_found(NV_CUDNN)->there
                                              : true;
}

static void conv_pass(enum mc_conv_pass pass)
{
    struct tally t[16] = { { 0 } };
    GPU_OR_SKIP();
    const size_t step = test_is_full() ? 1 : 4;
    for (size_t s = 0; s < NELEM(conv_grid); s++) {
        for (size_t v = s % step; v < NELEM(variants); v += step) {
            const struct mc_conv_problem p = convolution(conv_grid[s], pass, &variants[v]);
            every(&p.base, t);
        }
    }
    tell(t, 16);
    for (int k = 0; mc_conv_cuda_solvers[k]; k++) {
        CHECK(!serves(mc_conv_cuda_solvers[k], pass) || t[k].served > 0, "%s took nothing of the grid", mc_conv_cuda_solvers[k]->name);
    }
}

TEST(cuda_conv_forward_solvers_give_the_reference)
{
    conv_pass(CONV_FORWARD);
}

TEST(cuda_conv_inputs_solvers_give_the_reference)
{
    conv_pass(CONV_INPUTS);
}

TEST(cuda_conv_weights_solvers_give_the_reference)
{
    conv_pass(CONV_WEIGHTS);
}

/* Transforms of 16, 32, 64 and 128, with rows and columns that fill no block; more images than there is room for at once. */
TEST(cuda_transforms_of_every_size)
{
    static const char *const shapes[] = { "n3c5f6 i11x12 k3x3 p1x1", "n5c3f7 i27x30 k5x3", "n2c4f9 i50x61 k7x7 p1x0 flip", "n3c2f5 i100x90 k11x5 p2x3",
                                          "n3c7f5 i110x70 k5x5" };
    struct tally t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (int few = 0; few < 2; few++) {
        mc_flag_set("cuda.workspace", few ? "2M" : "1G");
        for (size_t s = 0; s < NELEM(shapes); s++) {
            for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
                for (size_t v = 0; v < 6; v++) {
                    const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                    one(&p.base, &mc_conv_cuda_fft, &t[0]);
                    one(&p.base, &mc_conv_cuda_fft_tiling, &t[1]);
                }
            }
        }
    }
    tell(t, 2);
    CHECK(t[0].served >= 60 && t[1].served >= 60, "whole images %d, tiles %d", t[0].served, t[1].served);
}

/* Few channels: whole images and rows of them, several images a tile and several tiles a block, lines that end within a
 * thread's places, sets of taps and groups of filters that are not full, a filter backwards. */
TEST(cuda_few_channels)
{
    static const char *const shapes[] = { "n5c1f32 i28x28 k5x5", "n7c1f9 i13x11 k3x3 p1x1", "n3c3f10 i61x67 k3x3 p1x1", "n2c3f12 i40x43 k7x7 s2x2 p3x3",
                                          "n3c2f5 i31x200 k4x3 s1x2 p2x0 flip", "n4c4f3 i50 k11 p5", "n301c1f3 i6x6 k3x2" };
    struct tally t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass += CONV_WEIGHTS) {
            for (size_t v = 0; v < 4; v++) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                one(&p.base, &mc_conv_cuda_few, &t);
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served == 3 * 2 * NELEM(shapes) && t.failed == 0, "served %d, failed %d", t.served, t.failed);
}

/* Small images on tensor cores: several a block and several blocks of channels, places and filters that fill no tile, zeros
 * around, strides, a filter backwards; by windows, and by places that are spread. */
TEST(cuda_whole_images)
{
    static const struct mc_solver *const solvers[] = { &mc_conv_cuda_whole, &mc_conv_cuda_spread };
    static const char *const shapes[] = { "n5c32f64 i12x12 k5x5", "n3c70f20 i9x8 k3x3 p1x1", "n37c5f33 i4x5 k2x3 p1x0", "n2c16f100 i13x13 k3x3 p1x1",
                                          "n4c20f12 i15x14 k5x4 s2x3 p2x1 d1x2 flip", "n2c130f8 i7 k3 p1" };
    struct tally t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = 0; v < 4; v += 1 + s % 2) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                for (size_t i = 0; i < NELEM(solvers); i++) {
                    one(&p.base, solvers[i], &t[i]);
                }
            }
        }
    }
    tell(t, 2);
    CHECK(t[0].served >= 35 && t[1].served >= 10 && t[0].failed + t[1].failed == 0, "served %d and %d, failed %d and %d", t[0].served, t[1].served, t[0].failed, t[1].failed);
}

/* Every engine of cuDNN that its search meets and that is let through is as exact as the dtype: TF32 is not. */
TEST(cudnn_planned_by_time)
{
    static const char *const shapes[] = { "n16c64f64 i28x28 k3x3 p1x1", "n8c3f32 i64x64 k11x11 s2x2", "n4c32f32 i32x32 k5x5 p2x2 g4" };
    GPU_OR_SKIP();
    if (!mc_nv_found(NV_CUDNN)->there) {
        SKIP("%s", mc_nv_found(NV_CUDNN)->why);
    }
    mc_flag_set("plan", "measure");
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            struct tally t = { 0 };
            const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[0]);
            one(&p.base, &mc_conv_cudnn, &t);
            CHECK(t.served == 1 || mc_dnn_refuse(&p), "%s, pass %d: %s", shapes[s], pass, mc_last_error());
        }
    }
}

/* dnn.enabled: required and not there is an error before anything of a GPU is touched; left alone, it declines. */
TEST(cudnn_is_enabled_or_not)
{
    struct mc_conv_problem p = convolution("n2c3f5 i7x9 k3x3", CONV_FORWARD, &variants[0]);
    struct mc_str with = { 0 }, without = { 0 };
    mc_flag_set("dnn.enabled", "True");
    if (!mc_nv_found(NV_CUDNN)->there) {
        CHECK(!mc_conv_cuda_plan(&p) && strstr(mc_last_error(), "dnn.enabled is True"), "%s", mc_last_error());
    }
    mc_conv_cuda.word(&p.base, &with);
    mc_flag_set("dnn.enabled", "False");
    const char *no = mc_conv_cudnn.refuse(&p.base);
    CHECK(no && strstr(no, "dnn.enabled"), "%s", no ? no : "takes it");
    mc_conv_cuda.word(&p.base, &without);
    CHECK(strcmp(with.s, without.s) != 0, "wisdom cannot tell: %s", with.s);
    mc_str_free(&with);
    mc_str_free(&without);
    if (mc_cuda_count() > 0) {
        REQUIRE(enter(), "%s", mc_last_error());
        struct mc_plan *plan = mc_conv_cuda_plan(&p);
        CHECK(plan && plan->solver != &mc_conv_cudnn, "%s", plan ? plan->solver->name : mc_last_error());
        mc_plan_free(plan);
    }
}

/* Theano's words for algorithms name solvers of a GPU there. */
TEST(cuda_conv_knows_the_words_of_flags)
{
    static const char *const words[][2] = {
        { "fft", "fft" }, { "fft_tiling", "fft_tiling" }, { "large", "im2col" }, { "deterministic", "auto" }, { "guess_once", "auto" },
        { "time_on_shape_change", "auto" }, { "exchange", "exchange" },
    };
    struct mc_conv_problem p = convolution("n2c3f5 i40x40 k3x3", CONV_FORWARD, &variants[0]);
    for (size_t i = 0; i < NELEM(words); i++) {
        int64_t mode = PLAN_EXHAUSTIVE;
        p.algo = words[i][0];
        const char *name = mc_conv_forced(&p.base, &mode);
        CHECK(name && strcmp(name, words[i][1]) == 0, "%s: %s", words[i][0], name);
        CHECK(mode == (strstr(words[i][0], "guess") ? PLAN_ESTIMATE : strstr(words[i][0], "time") ? PLAN_MEASURE : PLAN_EXHAUSTIVE), "%s: %d", words[i][0],
              (int)mode);
    }
    p.algo = "none";
    int64_t mode = PLAN_ESTIMATE;
    const char *name = mc_conv_forced(&p.base, &mode);
    CHECK(name && strcmp(name, mc_nv_found(NV_CUDNN)->there ? "cudnn" : "im2col") == 0, "none: %s", name);
}

/* The planner as a whole: times, remembers, and gives the same plan from wisdom. */
TEST(cuda_conv_planner_remembers)
{
    GPU_OR_SKIP();
    mc_flag_set("plan", "measure");
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = convolution("n32c16f32 i24x24 k5x5 p2x2", (enum mc_conv_pass)pass, &variants[0]);
        struct mc_plan *first = mc_conv_cuda_plan(&p);
        REQUIRE(first && first->measured, "%s", mc_last_error());
        const double start = mc_now();
        struct mc_plan *again = mc_conv_cuda_plan(&p);
        const double seconds = mc_now() - start;
        REQUIRE(again, "%s", mc_last_error());
        CHECK(again->solver == first->solver && again->measured, "%s, then %s", first->solver->name, again->solver->name);
        CHECK(mc_conv_cuda.verify(&p.base, again) >= 0, "%s", mc_last_error());
        printf("    %s takes %.1f us; from wisdom in %.1f ms\n", first->solver->name, first->cost * 1e6, seconds * 1e3);
        mc_plan_free(first);
        mc_plan_free(again);
    }
}

/* Strides as channels: pads of every kind, flips, windows that leave a rest, images that no window reaches the end of. */
TEST(cuda_conv_strides_as_channels)
{
    static const char *const shapes[] = {
        "n2c3f8 i23x20 k5x4 s2x2 p2x1", "n3c1f4 i19x22 k11x7 s4x3 p2x2 flip", "n2c5f6 i12x17 k3x3 s3x2", "n2c3f4 i8x9 k3x3 s2x2 p-1x-2 q0x-1",
        "n2c2f3 i11x8 k4x5 s1x4 p1x3 q5x2", "n2c16f16 i16x16 k4x4 s4x4 flip", "n2c3f4 i9x9 k2x3 s2x3 p4x4",
    };
    struct tally t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = (s + (size_t)pass) % 3; v < NELEM(variants); v += test_is_full() ? 1 : 3) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                one(&p.base, &mc_conv_cuda_fold, &t);
            }
        }
    }
    CHECK(t.served > 30 && t.failed == 0, "served %d, had nothing for %d", t.served, t.failed);
}

/* ---- doubt ---- */

/* Sums shrink as they do when operands are cut to 10 bits; else as exact as any. */
static double shrinks = 1;

static struct mc_plan *plan_shrinking(const struct mc_problem *p)
{
    struct mc_conv_problem c = *conv(p);
    struct mc_plan *plan;
    c.alpha *= shrinks;
    plan = mc_conv_cuda_direct.plan(&c.base);
    return plan;
}

static double at_once(const struct mc_problem *p) { (void)p; return 1e-9; }

static const struct mc_solver shrinking = { .name = "shrinking", .estimate = at_once, .plan = plan_shrinking, .doubted = true };

/* Every pass, with strides, flips, groups, c0, bias and activation: what is exact is held to be, what is cut is not. */
TEST(cuda_conv_rounding_is_noticed)
{
    static const struct mc_solver *const rows[] = { &shrinking, &mc_conv_cuda_direct, NULL };
    static const char *const shapes[] = { "n3c8f12 i14x13 k5x3 p2x1", "n2c6f8 i11x9 k3x2 s2x1 d1x2 flip", "n2c8f16 i9x9 k3x3 p1x1 g2", "n4c3f4 i60 k9" };
    struct mc_family liars = mc_conv_cuda;
    GPU_OR_SKIP();
    liars.solvers = rows;
    mc_flag_set("plan", "measure");
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = (3 * s + (size_t)pass) % 12; v < NELEM(variants); v += test_is_full() ? 3 : 12) { /* two texts each */
                struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                struct mc_str word = { 0 };
                p.base.family = &liars;
                mc_conv_word(&p.base, &word);
                for (int cut = 0; cut < 2; cut++) {
                    shrinks = !cut ? 1 : mc_dtypes[p.dtype].size == 2 ? 0.9 : 1 - 7e-4;
                    mc_wisdom_clear();
                    struct mc_plan *plan = mc_plan_make(&p.base);
                    const bool taken = plan && plan->solver == &shrinking;
                    CHECK(plan && (cut ? !taken : true), "%s: %s", word.s, plan ? "is taken" : mc_last_error());
                    CHECK(!cut || strstr(mc_last_error(), "shrinking is off by"), "%s: %s", word.s, mc_last_error());
                    CHECK(cut || !strstr(mc_last_error(), "is off by"), "%s: %s", word.s, mc_last_error());
                    mc_plan_free(plan);
                }
                mc_str_free(&word);
            }
        }
    }
}

/* Taps as places make filters as large as images: who looks at every tap says so, and what its operations alone take. */
TEST(cuda_conv_estimates_of_exchanged_sizes)
{
    const struct mc_conv_problem p = convolution("n4c3f64 i224x224 k3x3 p1x1", CONV_INPUTS, &variants[0]);
    const struct mc_conv_problem c = mc_conv_taps_as_places(&p);
    CHECK(mc_conv_cuda_direct.estimate(&c.base) > 1 && mc_conv_cuda_direct.least(&c.base) > 0.01, "%g, at least %g s", mc_conv_cuda_direct.estimate(&c.base),
          mc_conv_cuda_direct.least(&c.base));
    CHECK(mc_conv_cudnn.estimate(&c.base) > 1e-3, "%g s by cuDNN", mc_conv_cudnn.estimate(&c.base));
    CHECK(mc_conv_cudnn.estimate(&p.base) < 1e-3, "%g s as it is", mc_conv_cudnn.estimate(&p.base));
    const struct mc_conv_problem first = convolution("n128c3f64 i224x224 k11x11 s4x4 p2x2", CONV_FORWARD, &variants[12]); /* float16 */
    CHECK(mc_conv_cuda_fold.estimate(&first.base) < 0.5 * mc_conv_cudnn.estimate(&first.base), "%g s as it is, %g s by strides as channels",
          mc_conv_cudnn.estimate(&first.base), mc_conv_cuda_fold.estimate(&first.base));
}

/* ---- pooling, normalisation ---- */

TEST(cuda_pool_gives_the_reference)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16, MC_INT32 };
    struct tally t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (int turn = 0; turn < (test_is_full() ? 1500 : 250); turn++) {
        struct mc_pool_problem p;
        if (pool_any(&p, dtypes[below(6)], below(4) ? 9 : 70) && (p.dtype != MC_INT32 || p.s.pass == POOL_FORWARD)) {
            p.base.family = &mc_pool_cuda;
            every(&p.base, t);
        }
    }
    CHECK(t[0].served > 50 && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

/* Enough of it that threads have several windows: lines of whole fours and others, windows apart and over each other. */
TEST(cuda_pool_in_lines)
{
    static const struct { int64_t in[2], w[2], stride[2], pad[2]; } rows[] = {
        { { 24, 24 }, { 2, 2 }, { 2, 2 }, { 0, 0 } }, { { 13, 16 }, { 3, 3 }, { 2, 2 }, { 1, 1 } }, { { 27, 29 }, { 3, 3 }, { 2, 2 }, { 0, 0 } },
        { { 10, 12 }, { 3, 3 }, { 1, 1 }, { 1, 1 } }, { { 9, 20 }, { 2, 5 }, { 3, 4 }, { 1, 2 } }, { { 7, 7 }, { 2, 3 }, { 2, 1 }, { 0, 2 } },
    };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_BFLOAT16, MC_FLOAT64 };
    struct tally t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (int v = 0; v < 4; v++) {
            struct mc_pool_problem p = { .base = { &mc_pool_cuda }, .dtype = dtypes[(i + (size_t)v / 2) % 3], .marks = i % 3 != 1 };
            p.s = (struct mc_pool_shape){ .pass = v & 1 ? POOL_SPREAD : POOL_FORWARD, .mode = v & 2 ? (enum mc_pool_mode)(POOL_SUM + i % 3) : POOL_MAX,
                                          .key = v & 2 ? POOL_KEY_NONE : POOL_KEY_MARKS, .whole = i & 1, .rank = 4, .nd = 2, .axis = { -1, -1, -1 },
                                          .in = { 1 }, .out = { 1 }, .w = { 1 }, .stride = { 1 }, .mark = i == 4 ? MC_INT32 : MC_UINT8 };
            for (int k = 0; k < 2; k++) {
                REQUIRE(pool_slot(&p.s, k + 1, k + 2, rows[i].in[k], rows[i].w[k], rows[i].stride[k], rows[i].pad[k]), "row %zu", i);
            }
            memcpy(p.s.dims, (int64_t[4]){ 3, 70000 / 3 / (p.s.out[1] * p.s.out[2]) + 1, rows[i].in[0], rows[i].in[1] }, 4 * sizeof(int64_t));
            int64_t y[4] = { 3, p.s.dims[1], p.s.out[1], p.s.out[2] };
            pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, p.s.dims, true, p.at[POOL_X]);
            pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, y, true, p.at[POOL_Y]);
            pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, y, true, p.at[POOL_KEY]);
            every(&p.base, t);
        }
    }
    CHECK(t[0].served == 4 * (int)NELEM(rows) && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

/* Channels innermost: as many as threads take at once, and others; arrays whose images do not begin where several can be moved. */
TEST(cuda_pool_of_lanes)
{
    static const struct { int64_t in[2], w[2], stride[2], pad[2], channels, gap; } rows[] = {
        { { 24, 24 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, 64, 0 }, { { 13, 16 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, 40, 0 }, { { 27, 29 }, { 3, 3 }, { 2, 2 }, { 0, 0 }, 24, 3 },
        { { 10, 12 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, 72, 0 }, { { 9, 20 }, { 2, 5 }, { 3, 4 }, { 1, 2 }, 50, 0 }, { { 7, 7 }, { 2, 3 }, { 2, 1 }, { 0, 2 }, 16, 0 },
    };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_BFLOAT16, MC_FLOAT64 };
    struct tally t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (int v = 0; v < 4; v++) {
            struct mc_pool_problem p = { .base = { &mc_pool_cuda }, .dtype = dtypes[(i + (size_t)v / 2) % 3], .marks = i % 3 != 1 };
            p.s = (struct mc_pool_shape){ .pass = v & 1 ? POOL_SPREAD : POOL_FORWARD, .mode = v & 2 ? (enum mc_pool_mode)(POOL_SUM + i % 3) : POOL_MAX,
                                          .key = v & 2 ? POOL_KEY_NONE : POOL_KEY_MARKS, .whole = i & 1, .rank = 4, .nd = 2, .axis = { -1, -1, -1 },
                                          .in = { 1 }, .out = { 1 }, .w = { 1 }, .stride = { 1 }, .mark = i == 4 ? MC_INT32 : MC_UINT8 };
            for (int k = 0; k < 2; k++) {
                REQUIRE(pool_slot(&p.s, k + 1, k + 1, rows[i].in[k], rows[i].w[k], rows[i].stride[k], rows[i].pad[k]), "row %zu", i);
            }
            const int64_t images = 70000 / rows[i].channels / (p.s.out[1] * p.s.out[2]) + 1;
            memcpy(p.s.dims, (int64_t[4]){ images, rows[i].in[0], rows[i].in[1], rows[i].channels }, 4 * sizeof(int64_t));
            int64_t y[4] = { images, p.s.out[1], p.s.out[2], rows[i].channels };
            pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, p.s.dims, true, p.at[POOL_X]);
            pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, y, true, p.at[POOL_Y]);
            pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, y, true, p.at[POOL_KEY]);
            p.at[POOL_X][0] += rows[i].gap;
            every(&p.base, t);
        }
    }
    CHECK(t[0].served == 4 * (int)NELEM(rows) && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

TEST(cuda_norm_gives_the_reference)
{
    struct tally t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (int turn = 0; turn < (test_is_full() ? 1000 : 150); turn++) {
        struct mc_norm_problem p;
        norm_any(&p, floats[norm_below(4)]);
        p.base.family = &mc_norm_cuda;
        every(&p.base, t);
    }
    CHECK(t[0].served > 100 && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

/* ---- what a recorded function needs of every plan ---- */

static void *downloaded(const struct mc_extent *e, const void *there)
{
    const size_t size = mc_dtypes[e->dtype].size;
    void *here = malloc((size_t)e->count * size);
    CHECK(mc_cuda_get(mc_cuda_current(), here, (const char *)there - (size_t)e->before * size, (size_t)e->count * size) >= 0, "%s", mc_last_error());
    return here;
}

/* Run, and recorded and replayed twice: the same bits. */
static void replays(const struct mc_problem *p, const struct mc_extent *result, int role)
{
    struct mc_cuda *d = mc_cuda_current();
    for (int k = 0; p->family->solvers[k]; k++) {
        const struct mc_solver *s = p->family->solvers[k];
        void *operand[8], *work = NULL, *graph = NULL;
        struct mc_plan *plan = s->refuse && s->refuse(p) ? NULL : mc_plan_with(p, s);
        if (!plan) {
            continue;
        }
        REQUIRE(p->family->operands(p, operand) >= 0, "%s", mc_last_error());
        work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
        CHECK(plan->run(plan, operand, work, 0) >= 0, "%s: %s", s->name, mc_last_error());
        void *want = downloaded(result, operand[role]);
        CHECK(mc_cuda_clear(d, (char *)operand[role] - (size_t)result->before * mc_dtypes[result->dtype].size,
                            (size_t)result->count * mc_dtypes[result->dtype].size) >= 0, "%s", mc_last_error());
        CHECK(mc_cuda_capture(d) >= 0, "%s: %s", s->name, mc_last_error());
        const mc_status ran = plan->run(plan, operand, work, 0);
        CHECK(ran >= 0 && mc_cuda_captured(d, &graph) >= 0 && graph, "%s cannot be recorded: %s", s->name, mc_last_error());
        for (int i = 0; i < 2 && graph; i++) {
            CHECK(mc_cuda_replay(d, graph) >= 0, "%s: %s", s->name, mc_last_error());
        }
        void *have = downloaded(result, operand[role]);
        CHECK(memcmp(want, have, (size_t)result->count * mc_dtypes[result->dtype].size) == 0, "%s: replayed, other bits come out", s->name);
        free(want);
        free(have);
        mc_cuda_graph_free(d, graph);
        mc_site_cuda.give(work);
        p->family->discard(p, operand);
        mc_plan_free(plan);
    }
}

TEST(cuda_plans_can_be_recorded)
{
    GPU_OR_SKIP();
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = convolution("n8c16f24 i20x21 k3x3 p1x1", (enum mc_conv_pass)pass, &variants[0]);
        struct mc_extent e[5];
        mc_conv_extents(&p, e);
        replays(&p.base, &e[mc_conv_result(p.s.pass)], mc_conv_result(p.s.pass));
    }
    const struct mc_gemm_problem g = product(MC_FLOAT32, 65, 97, 333, "nt", &products[0]);
    struct mc_extent e[4];
    mc_gemm_extents(&g, e);
    replays(&g.base, &e[GEMM_C], GEMM_C);
}

/* C0 that is C itself; operands that are aligned to an element only. */
TEST(cuda_plans_in_place_and_unaligned)
{
    GPU_OR_SKIP();
    const struct mc_gemm_problem p = product(MC_FLOAT32, 64, 48, 32, "nn", &products[2]);
    struct mc_gemm_problem in_place = p;
    memcpy(in_place.c0s, in_place.cs, sizeof in_place.cs);
    struct mc_extent e[4];
    mc_gemm_extents(&in_place, e);
    for (int k = 0; mc_gemm_cuda_solvers[k]; k++) {
        const struct mc_solver *s = mc_gemm_cuda_solvers[k];
        void *operand[8], *other[8];
        struct mc_plan *plan = s->refuse && s->refuse(&in_place.base) ? NULL : mc_plan_with(&in_place.base, s);
        if (!plan) {
            continue;
        }
        for (int i = 0; i < 4; i++) { /* room for one element more */
            e[i].count++;
        }
        REQUIRE(mc_cuda_operands(e, 4, operand) >= 0, "%s", mc_last_error());
        REQUIRE(mc_cuda_operands(e, 4, other) >= 0, "%s", mc_last_error()); /* the same numbers */
        void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
        for (int i = 0; i < 4; i++) {
            operand[i] = (float *)operand[i] + 1;
            other[i] = (float *)other[i] + 1;
        }
        CHECK(plan->run(plan, operand, work, 0) >= 0, "%s: %s", s->name, mc_last_error());
        void *spare = other[GEMM_C0];
        other[GEMM_C0] = other[GEMM_C]; /* random as C0 is: fill() depends on the place alone */
        CHECK(plan->run(plan, other, work, 0) >= 0, "%s: %s", s->name, mc_last_error());
        struct mc_extent c = e[GEMM_C];
        c.count--;
        float *a = downloaded(&c, operand[GEMM_C]), *b = downloaded(&c, other[GEMM_C]);
        int64_t differ = 0;
        for (int64_t i = 0; i < in_place.m * in_place.n * in_place.batch; i++) {
            const int64_t row = i / in_place.n, at = row / in_place.m * in_place.cs[0] + row % in_place.m * in_place.cs[1] + i % in_place.n;
            differ += !(a[at] == b[at]);
        }
        CHECK(differ == 0, "%s: %lld elements differ in place", s->name, (long long)differ);
        free(a);
        free(b);
        mc_site_cuda.give(work);
        other[GEMM_C0] = spare;
        for (int i = 0; i < 4; i++) {
            operand[i] = (float *)operand[i] - 1;
            other[i] = (float *)other[i] - 1;
        }
        mc_cuda_discard(e, 4, operand);
        mc_cuda_discard(e, 4, other);
        for (int i = 0; i < 4; i++) {
            e[i].count--;
        }
        mc_plan_free(plan);
    }
}
