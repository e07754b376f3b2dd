/* t_cuda_own.c: convolutions on a GPU by solvers of our own, each on problems of the kind that it is for. */
#include "cuda_problems.h"
#include "heavy/gemm/cuda/hopper.h"
#include <math.h>

/* Transforms of 16, 32, 64 and 128, with rows and columns that fill no block; more images than there is room
 * for at once; spectra in float32, and in halves, where operands may lie anywhere but with gaps. */
struct transform_kind { int variant; bool tf32; };
static void transforms(const char *workspace, const struct transform_kind *kinds, size_t n,
                       struct column_sums t[3])
{
    static const char *const shapes[] = { "n3c5f6 i11x12 k3x3 p1x1", "n5c3f7 i27x30 k5x3", "n2c4f9 i50x61 k7x7 p1x0 flip", "n3c2f5 i100x90 k11x5 p2x3",
                                          "n3c7f5 i110x70 k5x5", "n70c33f9 i12x12 k5x5" };
    mc_flag_set("cuda.workspace", workspace);
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = 0; v < n; v++) {
                struct mc_conv_problem p = convolution(shapes[i], (enum mc_conv_pass)pass,
                                                       &variants[kinds[v].variant]);
                p.tf32 = kinds[v].tf32;
                one(&p.base, &mc_conv_cuda_fft, &t[0]);
                one(&p.base, &mc_conv_cuda_fft_tiling, &t[1]);
                one(&p.base, &mc_conv_cuda_fft_fine, &t[2]);
            }
        }
    }
    tell(t, 3);
}

TEST(cuda_transforms_of_every_size)
{
    static const struct transform_kind kinds[] = { { 0 },       { 1 },       { 2 },      { 1, true },
                                                   { 2, true }, { 8, true }, { 9, true } };
    struct column_sums t[3] = { { 0 } };
    GPU_OR_SKIP();
    transforms("1G", kinds, NELEM(kinds), t);
    transforms("2M", kinds, NELEM(kinds), t);
    CHECK(t[0].served >= 200 && t[1].served >= 150 && t[2].served >= 100,
          "whole images %d, tiles %d, in float32 %d", t[0].served, t[1].served, t[2].served);
}

/* Those of two bytes, bf16's on tensor cores. */
static void transforms_of_halves(const char *workspace)
{
    static const struct transform_kind kinds[] = { { 5 }, { 12 } };
    struct column_sums t[3] = { { 0 } };
    GPU_OR_SKIP();
    transforms(workspace, kinds, NELEM(kinds), t);
    CHECK(t[0].served >= 30 && t[1].served >= 20 && t[2].served >= 30,
          "whole images %d, tiles %d, in float32 %d", t[0].served, t[1].served, t[2].served);
}

TEST(cuda_transforms_of_halves) { transforms_of_halves("1G"); }
TEST(cuda_transforms_of_halves_image_by_image) { transforms_of_halves("2M"); }

/* Few channels: whole images and rows of them, several images a tile and several tiles a block, lines that
 * end within a thread's places, sets of taps and groups of filters that are not full, a filter backwards. */
TEST(cuda_few_channels)
{
    static const char *const shapes[] = { "n5c1f32 i28x28 k5x5", "n7c1f9 i13x11 k3x3 p1x1", "n3c3f10 i61x67 k3x3 p1x1", "n2c3f12 i40x43 k7x7 s2x2 p3x3",
                                          "n3c2f5 i31x200 k4x3 s1x2 p2x0 flip", "n4c4f3 i50 k11 p5", "n301c1f3 i6x6 k3x2", "n3c3f64 i17x19 k3x3 p1x1" };
    static const int kinds[] = { 0, 1, 2, 3, 4, 11 }; /* halves are refused */
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass += CONV_WEIGHTS) {
            for (size_t v = 0; v < NELEM(kinds); v++) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                             &variants[kinds[v]]);
                one(&p.base, &mc_conv_cuda_small_channels, &t);
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served == 5 * 2 * NELEM(shapes) && t.failed == 0, "served %d, failed %d", t.served, t.failed);
}

/* The same on tensor cores: lines and filters that can be moved as words and that cannot, taps that fill no
 * product and those of many, filters for several blocks, whole images a tile and rows, strides up to 4,
 * images that lie otherwise than y. */
TEST(cuda_few_channels_on_tensor_cores)
{
    static const char *const shapes[] = { "n5c1f32 i28x28 k5x5", "n7c1f9 i13x11 k3x3 p1x1", "n3c3f64 i18x32 k3x3 p1x1 flip", "n2c3f20 i40x43 k7x7 s2x2 p3x3",
                                          "n3c2f5 i31x200 k4x3 s1x2 p2x0 flip", "n2c4f130 i50 k11 p5", "n301c1f3 i6x6 k3x2", "n2c3f96 i35x38 k11x11 s4x4 p2x2 flip",
                                          "n3c3f12 i9x30 k11x11 p7x5", "n9c2f16 i16x16 k3x3 p1x1",
                                          "n2c3f20 i5x20x23 k3x5x5 s1x2x2 p1x2x2", "n2c2f9 i6x9x16 k2x3x3 s2x1x1 p1x1x1 flip", "n1c3f64 i6x24x28 k3x7x7 s1x2x2 p1x3x3" };
    static const struct {
        int variant;
        bool tf32, x_otherwise;
    } kinds[] = { { 4 },       { 1, true }, { 5 },       { 3, true }, { 14, false, true },
                  { 12 },      { 2, true }, { 17 },      { 8, true }, { 5, false, true },
                  { 9, true }, { 0 },       { 11, true } };
    struct column_sums t = { 0 };
    int wanted = 0;
    GPU_OR_SKIP();
    const size_t step = test_is_full() ? 1 : 4;
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass += CONV_WEIGHTS) {
            for (size_t v = s % step; v < NELEM(kinds); v += step) {
                struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                       &variants[kinds[v].variant]);
                p.tf32 = kinds[v].tf32;
                if (kinds[v].x_otherwise) {
                    lay_out(&p, CONV_X, p.at.x, p.at.y[1] == 1 ? BC01 : B01C);
                }
                one(&p.base, &mc_conv_cuda_small_channels_tensor, &t);
                wanted++;
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served == wanted && t.failed == 0, "served %d of %d, failed %d", t.served, wanted, t.failed);
}

/* Gradients of inputs on tensor cores: lines of several images a block, and of whole blocks, that can be
 * fetched in words and that cannot; filters in chunks; lines and places of x that nothing reaches; strides
 * beyond the filter; images that lie otherwise. */
TEST(cuda_few_channels_spread)
{
    static const char *const shapes[] = { "n5c1f32 i28x28 k5x5", "n3c3f40 i20x41 k11x11", "n7c1f9 i13x11 k3x3 p1x1", "n2c3f96 i35x38 k11x11 s4x4 p2x2 flip", "n2c4f130 i50 k11 p5",
                                          "n3c2f5 i31x200 k4x3 s1x2 p2x0 flip", "n2c3f20 i17x300 k3x3 p1x1", "n2c1f200 i40x43 k9x8 p3x3", "n3c1f4 i9x11 k2x1 s3x4",
                                          "n2c3f17 i12x16 k3x3 p-1x-2 q0x-1", "n3c3f12 i9x30 k11x11 p7x5", "n2c4f8 i6x40 k2x20 p0x3",
                                          "n2c3f20 i5x20x23 k3x5x5 s1x2x2 p1x2x2", "n2c2f9 i6x9x16 k2x3x3 s2x1x1 p1x1x1 flip", "n1c3f64 i6x24x28 k3x7x7 s1x2x2 p1x3x3" };
    static const struct {
        int variant;
        bool tf32, x_otherwise;
    } kinds[] = { { 12 },      { 0, true }, { 5 }, { 2, true }, { 5, false, true },
                  { 8, true }, { 9, true }, { 0 }, { 2 },       { 8 },
                  { 9 },       { 1 } };
    struct column_sums t = { 0 };
    int wanted = 0;
    GPU_OR_SKIP();
    const size_t step = test_is_full() ? 1 : 4;
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (size_t v = s % step; v < NELEM(kinds); v += step, wanted++) {
            struct mc_conv_problem p = convolution(shapes[s], CONV_INPUTS, &variants[kinds[v].variant]);
            p.tf32 = kinds[v].tf32;
            if (kinds[v].x_otherwise) {
                lay_out(&p, CONV_X, p.at.x, B01C);
            }
            one(&p.base, &mc_conv_cuda_small_channels_scatter, &t);
        }
    }
    tell(&t, 1);
    CHECK(t.served == wanted && t.failed == 0, "served %d of %d, failed %d", t.served, wanted, t.failed);
}

/* In full float32, by the error of a result of some solver; -1: it refuses. */
static double error_by(const struct mc_conv_problem *p, const struct mc_solver *solver)
{
    void *operand[8];
    double error = -1;
    struct mc_plan *plan = solver->refuse && solver->refuse(&p->base) ? NULL : mc_plan_with(&p->base, solver);
    if (plan && p->base.family->operands(&p->base, operand) >= 0) {
        void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
        CHECK(plan->run(plan, operand, work, 0) >= 0, "%s: %s", solver->name, mc_last_error());
        error = mc_conv_cuda_error(&p->base, operand);
        mc_site_cuda.give(work);
        p->base.family->discard(&p->base, operand);
    }
    mc_plan_free(plan);
    return error;
}

/* Products of split operands are as exact as sums of float32 products in blocks. */
TEST(cuda_few_channels_split_are_as_exact_as_float32)
{
    static const char *const shapes[] = { "n2c3f16 i40x44 k7x7 s2x2 p3x3", "n4c1f8 i48x40 k3x3 p1x1",
                                          "n2c3f24 i6x24x20 k3x7x7 s1x2x2 p1x3x3" };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const struct mc_conv_problem p = convolution(shapes[i], (enum mc_conv_pass)pass, &variants[0]);
            const double plain = error_by(&p, &mc_conv_cuda_direct),
                         split = error_by(&p, pass == CONV_INPUTS ? &mc_conv_cuda_small_channels_scatter
                                                                  : &mc_conv_cuda_small_channels_tensor);
            CHECK(plain >= 0 && split >= 0 && split <= 1.5 * plain + 0x1p-24,
                  "%s, pass %d: split operands are off by %.2e, a plain sum by %.2e", shapes[i], pass, split,
                  plain);
        }
    }
}

/* Infinities and NaN among operands: results are those of float32. */
TEST(cuda_few_channels_split_infinities)
{
    enum { N = 2, F = 9, IN = 11, OUT = 6, K = 3 };
    static float x[N][IN][IN], w[F][K][K], y[N][F][OUT][OUT];
    static double want[3][N * F * IN * IN];
    static float got[N * F * IN * IN];
    const size_t bytes[] = { sizeof x, sizeof w, sizeof y };
    const int counts[] = { N * IN * IN, F * K * K, N * F * OUT * OUT };
    void *host[] = { x, w, y };
    static const struct {
        int pass;
        const struct mc_solver *solver;
    } by[] = { { CONV_FORWARD, &mc_conv_cuda_small_channels_tensor },
               { CONV_INPUTS, &mc_conv_cuda_small_channels_scatter },
               { CONV_WEIGHTS, &mc_conv_cuda_small_channels_tensor } };
    GPU_OR_SKIP();
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < counts[r]; i++) {
            ((float *)host[r])[i] = (float)((i * 37 + r) % 23) / 7 - 1.5f;
        }
    }
    x[0][4][5] = INFINITY;
    x[1][9][2] = 1e5f;
    w[2][1][1] = -INFINITY;
    y[0][3][2][4] = INFINITY;
    y[1][5][0][0] = NAN;
    for (int n = 0; n < N; n++) {
        for (int f = 0; f < F; f++) {
            for (int e = 0; e < OUT * OUT * K * K; e++) {
                const int u = e / (K * K) / OUT, v = e / (K * K) % OUT, a = e / K % K, b = e % K,
                          r = 2 * u - 1 + a, q = 2 * v - 1 + b;
                if (r >= 0 && r < IN && q >= 0 && q < IN) {
                    want[CONV_Y][((n * F + f) * OUT + u) * OUT + v] += (double)x[n][r][q] * w[f][a][b];
                    want[CONV_X][(n * IN + r) * IN + q] += (double)y[n][f][u][v] * w[f][a][b];
                    want[CONV_W][(f * K + a) * K + b] += (double)x[n][r][q] * y[n][f][u][v];
                }
            }
        }
    }
    for (size_t s = 0; s < NELEM(by); s++) {
        const int pass = by[s].pass;
        const struct mc_conv_problem p = convolution("n2c1f9 i11x11 k3x3 s2x2 p1x1", (enum mc_conv_pass)pass,
                                                     &variants[0]);
        const int result = mc_conv_result((enum mc_conv_pass)pass);
        struct mc_cuda *d = mc_cuda_current();
        void *operand[8];
        struct mc_plan *plan = mc_plan_with(&p.base, by[s].solver);
        REQUIRE(plan && p.base.family->operands(&p.base, operand) >= 0, "%s", mc_last_error());
        void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
        for (int r = 0; r < 3; r++) {
            CHECK(mc_cuda_copy_to_device(d, operand[r], host[r], bytes[r]) >= 0, "%s", mc_last_error());
        }
        CHECK(plan->run(plan, operand, work, 0) >= 0 &&
                  mc_cuda_copy_to_host(d, got, operand[result], bytes[result]) >= 0,
              "%s", mc_last_error());
        for (int i = 0; i < counts[result]; i++) {
            const double to = want[result][i], off = fabs(got[i] - to);
            CHECK(isnan(to)          ? isnan(got[i])
                  : isinf((float)to) ? isinf(got[i]) && (got[i] > 0) == (to > 0)
                                     : off <= 1e-5 * MC_MAX(fabs(to), 10),
                  "pass %d, element %d: %g, not %g", pass, i, got[i], to);
        }
        mc_site_cuda.give(work);
        p.base.family->discard(&p.base, operand);
        mc_plan_free(plan);
    }
}

/* All shapes in these variants, in all passes up to `last`; the solver serves at least so many of them. */
static void serve_all(const struct mc_solver *solver, const char *const *shapes, size_t nshape,
                      const int *kinds, size_t nkind, enum mc_conv_pass last, int least)
{
    struct column_sums t = { 0 };
    for (size_t i = 0; i < nshape * nkind; i++) {
        for (int pass = CONV_FORWARD; pass <= (int)last; pass++) {
            const struct mc_conv_problem p = convolution(shapes[i / nkind], (enum mc_conv_pass)pass,
                                                         &variants[kinds[i % nkind]]);
            one(&p.base, solver, &t);
        }
    }
    tell(&t, 1);
    CHECK(t.served >= least && t.failed == 0, "served %d, failed %d", t.served, t.failed);
}

/* Filters of one tap: matrices that fill no tile, sums over more images than there are blocks for, places
 * whose number is odd. */
TEST(cuda_filters_of_one_tap)
{
    static const char *const shapes[] = { "n3c70f33 i9x8 k1x1", "n5c5f130 i7x7 k1x1", "n41c64f20 i12 k1", "n2c200f64 i30x20 k1x1", "n2c3f4 i3x4x5 k1x1x1", "n9c5f130 i20x20 k1x1",
                                          "n3c70f33 i10x9 k1x1 s2x2", "n2c20f70 i14x15 k1x1 s3x2", "n9c9f3 i13 k1 s2" };
    static const int kinds[] = { 0, 1, 2, 3, 7, 9, 11 };
    GPU_OR_SKIP();
    serve_all(&mc_conv_cuda_split_pointwise, shapes, NELEM(shapes), kinds, NELEM(kinds), CONV_WEIGHTS, 140);
}

/* Filters of several taps along one axis, without borders: either axis of images, strides, filters backwards,
 * positions that no window reads, sums over more images than there are blocks for. */
TEST(cuda_filters_along_one_axis)
{
    static const char *const shapes[] = {
        "n3c12f20 i200 k2 d64", "n2c33f70 i90 k3",         "n5c8f9 i77 k4 s3 d2 flip", "n2c20f16 i9x30 k1x5",
        "n3c6f12 i17x8 k3x1 d2x1", "n2c16f33 i12x21 k1x3 s2x2 flip", "n40c1f3 i50 k7", "n1c64f64 i2000 k2 d8",
    };
    static const int kinds[] = { 0, 1, 2, 3, 7, 9, 11, 13 };
    struct column_sums t[3] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = s % 2; v < NELEM(kinds); v += test_is_full() ? 1 : 2) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                             &variants[kinds[v]]);
                one(&p.base, &mc_conv_cuda_split_pointwise, &t[pass]);
            }
        }
    }
    tell(t, 3);
    CHECK(t[0].served >= 20 && t[1].served == 0 && t[2].served >= 20, "served %d, %d and %d", t[0].served,
          t[1].served, t[2].served);
    CHECK(t[0].failed + t[2].failed == 0, "failed %d and %d", t[0].failed, t[2].failed);
}

/* Windows gathered during the product, in every direction: 4 channels and 8 at once, tiles that are not full,
 * sums that are split, long lines, filters that fill shared memory.  Gradients of inputs by phases of the
 * stride: phases that no tap reaches, of other sizes, or of none; positions behind the last window; dilations
 * that share a factor with the stride. */
TEST(cuda_split_windows)
{
    static const char *const shapes[] = {
        "n2c5f12 i9x8 k3x3 p1x1",        "n2c20f70 i14x15 k3x3 s2x2 p1x1",       "n3c100f9 i11x13 k3x2 s2x3 p0x1 flip", "n1c8f3 i12x10 k5x4 s3x2 p2x1 q0x3",
        "n2c12f16 i9x12 k1x1 s2x2",      "n2c6f10 i17x14 k2x3 s4x3 d2x1 p1x0",   "n2c9f20 i15x16 k3x3 s4x2 d2x2 p2x2 flip", "n2c12f24 i13x11 k3x5 s2x1 d1x2 p1x2 g3",
        "n2c7f6 i13x11 k3x3 s2x2 p-1x-2 q0x-1", "n5c4f8 i31 k4 s3 p2",           "n1c3f5 i2x20 k2x3 s3x8 p1x1",         "n1c96f200 i6x6 k3x3 s2x2 p1x1",
        "n1c5f6 i9000 k3 s2 d700 p900",  "n1c800f20 i4x5 k3x3 s2x1 p1x1",
    };
    static const int kinds[] = { 0, 1, 2, 3, 7, 9, 11 };
    struct column_sums t[3] = { { 0 } };
    GPU_OR_SKIP();
    if (mc_hopper_refuse()) {
        SKIP("%s", mc_hopper_refuse());
    }
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const size_t step = test_is_full() ? 1 : pass == CONV_INPUTS ? 2 : 4;
            for (size_t v = s % step; v < NELEM(kinds); v += step) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                             &variants[kinds[v]]);
                one(&p.base, &mc_conv_cuda_split, &t[pass]);
            }
        }
    }
    tell(t, 3);
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        CHECK(t[pass].served >= 14 && t[pass].failed == 0, "pass %d: served %d, failed %d", pass,
              t[pass].served, t[pass].failed);
    }
}

/* Small images on tensor cores: several a block and several blocks of channels, places and filters that fill
 * no tile, zeros around, strides, a filter backwards; by windows, and by places that are spread. */
TEST(cuda_whole_images)
{
    static const struct mc_solver *const solvers[] = { &mc_conv_cuda_shared_image, &mc_conv_cuda_col2im,
                                                       &mc_conv_cuda_taps };
    static const char *const shapes[] = { "n5c32f64 i12x12 k5x5", "n3c70f20 i9x8 k3x3 p1x1", "n37c5f33 i4x5 k2x3 p1x0", "n2c16f100 i13x13 k3x3 p1x1",
                                          "n4c20f12 i15x14 k5x4 s2x3 p2x1 d1x2 flip", "n2c130f8 i7 k3 p1", "n11c9f70 i10x8 k4x3 p1x0" };
    struct column_sums t[3] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = 0; v < 4; v += 1 + s % 2) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                             &variants[v]);
                for (size_t i = 0; i < NELEM(solvers); i++) {
                    one(&p.base, solvers[i], &t[i]);
                }
            }
        }
    }
    tell(t, 3);
    CHECK(t[0].served >= 35 && t[1].served >= 10 && t[2].served >= 10, "served %d, %d and %d", t[0].served,
          t[1].served, t[2].served);
    CHECK(t[0].failed + t[1].failed + t[2].failed == 0, "failed %d, %d and %d", t[0].failed, t[1].failed,
          t[2].failed);
}

static int drawn_below(unsigned n) { return (int)(test_random() % n); }

/* Groups of one channel: small planes and wide ones, channels that fill no vector and no block, more tiles
 * than a thread has, several filters a channel; random sizes, strides, dilations and pads. */
TEST(cuda_depthwise)
{
    static const char *const shapes[] = {
        "n3c12f12 i7x7 k3x3 p1x1 g12", "n2c24f24 i30x29 k3x3 p1x1 g24 flip", "n2c40f40 i28x28 k5x5 s2x2 p2x2 g40", "n1c7f7 i33x33 k3x3 d2x2 p2x2 g7",
        "n2c96f96 i14x15 k7x7 p3x3 g96", "n1c9f9 i70 k9 p4 g9", "n2c16f16 i40x41 k9x9 s3x3 p4x4 g16", "n1c33f33 i20x17 k2x5 s2x1 d1x3 p0x5 g33",
        "n33c2f2 i65x63 k3x3 p1x1 g2", "n1c8f8 i9x9 k3x3 p-1x-1 g8", "n1c1f1 i130x140 k5x5 p2x2", "n2c132f132 i3x3 k3x3 s2x2 p1x1 g132",
        "n2c6f12 i14x15 k3x3 p1x1 g6", "n3c5f15 i9x20 k3x5 s2x2 p1x2 g5 flip", "n1c33f66 i7x7 k5x5 p2x2 g33",
    };
    static const int kinds[] = { 0, 1, 2, 3, 4, 5, 8, 11, 12, 13, 14, 17 };
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(shapes) + 24; i++) {
        char drawn[128];
        const int64_t c = 1 + drawn_below(40), f = c * (1 + (drawn_below(4) == 0)), k0 = 1 + drawn_below(5),
                      k1 = 1 + drawn_below(5);
        snprintf(drawn, sizeof drawn, "n%dc%df%d i%dx%d k%dx%d s%dx%d d%dx%d p%dx%d g%d%s",
                 1 + drawn_below(4), (int)c, (int)f, 9 + drawn_below(30), 9 + drawn_below(30), (int)k0,
                 (int)k1, 1 + drawn_below(3), 1 + drawn_below(3), 1 + drawn_below(2), 1 + drawn_below(2),
                 drawn_below(4), drawn_below(4), (int)c, drawn_below(2) ? " flip" : "");
        const char *shape = i < NELEM(shapes) ? shapes[i] : drawn;
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = i % 3; v < NELEM(kinds); v += 3) {
                const struct mc_conv_problem p = convolution(shape, (enum mc_conv_pass)pass,
                                                             &variants[kinds[v]]);
                one(&p.base, &mc_conv_cuda_depthwise, &t);
            }
        }
    }
    /* one channel, whose stride says nothing of where positions are */
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        struct mc_conv_problem p = convolution("n2c1f1 i9x12 k3x3 p1x1", (enum mc_conv_pass)pass,
                                               &variants[0]);
        for (int i = 0; i < 5; i++) {
            p.at.x[i] = p.at.y[i] = i == 1 ? 1 : 2 * p.at.x[i];
        }
        one(&p.base, &mc_conv_cuda_depthwise, &t);
    }
    tell(&t, 1);
    CHECK(t.served >= 300, "%d problems", t.served);
}

/* Groups of several channels: fewer and more filters than channels, numbers of them that no vector fills,
 * small planes and wide ones, rows of tiles that are not full; random sizes, strides, dilations and pads. */
TEST(cuda_grouped)
{
    static const char *const shapes[] = {
        "n2c32f32 i28x28 k3x3 p1x1 g8", "n3c48f48 i14x14 k3x3 p1x1 g2", "n2c16f48 i9x11 k3x3 s2x2 p1x1 g4 flip", "n1c64f32 i7x7 k3x3 p1x1 g4",
        "n2c15f21 i12x13 k5x5 p2x2 g3", "n33c8f8 i31x30 k3x3 p1x1 g2", "n2c96f96 i8x8 k1x1 g4", "n1c26f22 i10x10 k3x3 d2x2 p2x2 g2",
        "n2c12f24 i20x17 k2x4 s2x1 d1x3 p0x4 g4", "n1c8f8 i50 k9 p4 g2", "n2c6f12 i5x6 k7x7 p3x3 g3", "n1c130f130 i3x3 k3x3 p1x1 g2",
        "n2c8f4 i16x16 k3x3 p1x1 g4", "n2c32f32 i28x28 k3x3 s2x2 p1x1 g8",
    };
    static const int kinds[] = { 0, 1, 2, 3, 4, 5, 8, 11, 12, 13, 14, 17 };
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(shapes) + 8; i++) {
        char drawn[128];
        const int g = 2 + drawn_below(4), cg = 1 + drawn_below(9), fg = 1 + drawn_below(9);
        snprintf(drawn, sizeof drawn, "n%dc%df%d i%dx%d k%dx%d s%dx%d d%dx%d p%dx%d g%d%s",
                 1 + drawn_below(4), g * cg, g * fg, 9 + drawn_below(20), 9 + drawn_below(20),
                 1 + drawn_below(4), 1 + drawn_below(4), 1 + drawn_below(3), 1 + drawn_below(3),
                 1 + drawn_below(2), 1 + drawn_below(2), drawn_below(4), drawn_below(4), g,
                 drawn_below(2) ? " flip" : "");
        const char *shape = i < NELEM(shapes) ? shapes[i] : drawn;
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = i % 3; v < NELEM(kinds); v += 3) {
                const struct mc_conv_problem p = convolution(shape, (enum mc_conv_pass)pass,
                                                             &variants[kinds[v]]);
                one(&p.base, &mc_conv_cuda_grouped, &t);
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served >= 160, "%d problems", t.served);
}

/* The same on tensor cores: halves with channels innermost, forward and gradients of inputs with stride 1. */
TEST(cuda_grouped_on_tensor_cores)
{
    static const char *const shapes[] = { "n2c48f48 i14x14 k3x3 p1x1 g2", "n3c32f64 i9x11 k3x3 p1x1 g2 flip", "n1c64f32 i7x7 k3x3 p1x1 g4", "n2c24f16 i12x13 k5x5 p2x2 g2",
                                          "n1c64f64 i10x10 k3x3 d2x2 p2x2 g2", "n1c16f16 i50 k9 p4 g2", "n2c96f96 i8x8 k1x1 g4", "n90c16f24 i30x31 k2x3 p0x2 g2" };
    static const char *const strided[] = { "n3c48f96 i15x14 k3x3 s2x2 p1x1 g4",
                                           "n2c32f20 i20x17 k2x4 s2x1 d1x3 p0x4 g2" };
    static const int kinds[] = { 4, 14, 17 };
    struct column_sums t = { 0 };
    int wanted = 0;
    GPU_OR_SKIP();
    for (size_t v = 0; v < NELEM(kinds); v++) {
        for (size_t i = 0; i < NELEM(shapes); i++, wanted += 2) {
            for (int pass = CONV_FORWARD; pass <= CONV_INPUTS; pass++) {
                const struct mc_conv_problem p = convolution(shapes[i], (enum mc_conv_pass)pass,
                                                             &variants[kinds[v]]);
                one(&p.base, &mc_conv_cuda_grouped_tensor, &t);
            }
        }
        for (size_t i = 0; i < NELEM(strided); i++, wanted++) {
            const struct mc_conv_problem p = convolution(strided[i], CONV_FORWARD, &variants[kinds[v]]);
            one(&p.base, &mc_conv_cuda_grouped_tensor, &t);
        }
    }
    tell(&t, 1);
    CHECK(t.served == wanted && t.failed == 0, "served %d of %d, failed %d", t.served, wanted, t.failed);
}

/* So are those with filters in shared memory. */
TEST(cuda_small_filters_are_as_exact_as_float32)
{
    static const char *const shapes[] = { "n2c32f64 i300 k2 d8", "n1c256f32 i200 k2",
                                          "n2c24f40 i20x23 k1x1" };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (int pass = CONV_FORWARD; pass <= CONV_INPUTS; pass++) {
            const struct mc_conv_problem p = convolution(shapes[i], (enum mc_conv_pass)pass, &variants[0]);
            const double plain = error_by(&p, &mc_conv_cuda_direct),
                         split = error_by(&p, &mc_conv_cuda_small_filters);
            CHECK(plain >= 0 && split >= 0 && split <= 1.5 * plain + 0x1p-24,
                  "%s, pass %d: split operands are off by %.2e, a plain sum by %.2e", shapes[i], pass, split,
                  plain);
        }
    }
}

/* Infinities and NaN: only what reads them has them. */
TEST(cuda_small_filters_infinities)
{
    enum { C = 3, F = 5, IN = 200, OUT = IN - 1 };
    static float x[C][IN], w[F][C][2], y[F][OUT];
    const size_t bytes[] = { sizeof x, sizeof w, sizeof y };
    void *host[] = { x, w, y }, *operand[8];
    GPU_OR_SKIP();
    for (int i = 0; i < C * IN; i++) {
        (&x[0][0])[i] = (float)(i * 37 % 23) / 7 - 1.5f;
    }
    for (int i = 0; i < F * C * 2; i++) {
        (&w[0][0][0])[i] = (float)(i * 11 % 13) / 5 - 1.1f;
    }
    x[1][40] = INFINITY;
    x[2][150] = NAN;
    x[0][90] = 1e5f;
    const struct mc_conv_problem p = convolution("n1c3f5 i200 k2", CONV_FORWARD, &variants[0]);
    struct mc_cuda *d = mc_cuda_current();
    struct mc_plan *plan = mc_plan_with(&p.base, &mc_conv_cuda_small_filters);
    REQUIRE(plan && p.base.family->operands(&p.base, operand) >= 0, "%s", mc_last_error());
    for (int r = 0; r < 2; r++) {
        CHECK(mc_cuda_copy_to_device(d, operand[r], host[r], bytes[r]) >= 0, "%s", mc_last_error());
    }
    CHECK(plan->run(plan, operand, NULL, 0) >= 0 &&
              mc_cuda_copy_to_host(d, y, operand[CONV_Y], bytes[2]) >= 0,
          "%s", mc_last_error());
    for (int i = 0; i < F * OUT; i++) {
        const int f = i / OUT, u = i % OUT;
        double to = 0, size = 0;
        for (int e = 0; e < C * 2; e++) {
            const double term = (double)w[f][e / 2][e % 2] * x[e / 2][u + e % 2];
            to += term;
            size += fabs(term);
        }
        CHECK(isnan(to)          ? isnan(y[f][u])
              : isinf((float)to) ? isinf(y[f][u]) && (y[f][u] > 0) == (to > 0)
                                 : fabs(y[f][u] - to) <= 1e-6 * MC_MAX(size, 1),
              "element %d: %g, not %g", i, y[f][u], to);
    }
    p.base.family->discard(&p.base, operand);
    mc_plan_free(plan);
}

/* Filters in shared memory: taps along a line, with and without a border, pointwise filters; lines
 * and results that can be moved by sixteen bytes and that cannot, results and terms that fill no product and many. */
TEST(cuda_small_filters)
{
    static const char *const shapes[] = { "n3c5f12 i50 k2", "n2c32f64 i200 k2 d8", "n2c7f9 i40 k2 d13 flip", "n1c4f3 i9 k2 d3", "n2c16f70 i64 k3 p1",
                                          "n1c70f33 i97 k5 p4 d2", "n5c3f130 i33 k1", "n2c24f40 i8x12 k1x1", "n1c12f8 i3x5x8 k1x1x1 flip", "n1c128f32 i1000 k2 p3 d4 flip" };
    static const int kinds[] = { 0, 2, 3, 8, 13 };
    GPU_OR_SKIP();
    serve_all(&mc_conv_cuda_small_filters, shapes, NELEM(shapes), kinds, NELEM(kinds), CONV_INPUTS, 60);
}

/* Three axes, plane by plane: planes of one image, and one plane of many; strides, whose planes are reached
 * by some taps only; taps that reach a part of the planes. */
TEST(cuda_three_axes_by_planes)
{
    static const char *const shapes[] = { "n1c5f12 i6x9x10 k3x3x3 p1x1x1", "n2c4f7 i8x8x9 k3x3x3 s2x2x2 p1x1x1", "n5c3f6 i3x7x8 k3x2x3 p1x0x1 flip",
                                          "n1c8f9 i7x6x6 k2x3x3 d2x1x1", "n3c6f4 i5x9x7 k3x1x3 s2x1x2 p1x0x1", "n1c4f5 i4x12x9 k4x3x3 p2x1x1 flip" };
    static const int kinds[] = { 0, 1, 2, 8, 9, 6 };
    GPU_OR_SKIP();
    serve_all(&mc_conv_cuda_planes, shapes, NELEM(shapes), kinds, NELEM(kinds), CONV_WEIGHTS, 80);
}
