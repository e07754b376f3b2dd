/* t_cuda_conv.c: convolutions on a GPU, every solver against the host's reference, on the grid that the
 * host's solvers are tested on; the flags, the planner, and its doubt. */
#include "cuda_problems.h"
#include <math.h>
#include <stdlib.h>

static bool serves(const struct mc_solver *s, enum mc_conv_pass pass)
{
    return s == &mc_conv_cuda_small_channels || s == &mc_conv_cuda_small_channels_tensor ? pass != CONV_INPUTS
           : s == &mc_conv_cuda_exchange_full          ? pass != CONV_WEIGHTS
           : s == &mc_conv_cuda_col2im                 ? pass == CONV_INPUTS
           : s == &mc_conv_cuda_small_channels_scatter ? pass == CONV_INPUTS
           : s == &mc_conv_cuda_small_filters          ? pass != CONV_WEIGHTS
           : s == &mc_conv_cuda_taps                   ? pass == CONV_WEIGHTS
           : s == &mc_conv_cuda_tma || s == &mc_conv_cuda_tma_weights
               ? false /* t_cuda_tma.c has their problems */
           : s == &mc_conv_cudnn ? mc_nv_found(NV_CUDNN)->present
                                 : true;
}

/* Solvers in three parts, which take about as long and can run side by side. */
enum part { OWN, WRAPPING, LIBRARY };

static bool belongs(const struct mc_solver *s, enum part part)
{
    return part == (s->doubted ? LIBRARY : s->wraps ? WRAPPING : OWN);
}

static void conv_pass(enum mc_conv_pass pass, enum part part)
{
    struct column_sums t[32] = { { 0 } };
    GPU_OR_SKIP();
    const size_t step = test_is_full() ? 1 : 4;
    for (size_t s = 0; s < NELEM(conv_grid); s++) {
        for (size_t v = s % step; v < NELEM(variants); v += step) {
            const struct mc_conv_problem p = convolution(conv_grid[s], pass, &variants[v]);
            for (int k = 0; mc_conv_cuda_solvers[k]; k++) {
                if (belongs(mc_conv_cuda_solvers[k], part)) {
                    one(&p.base, mc_conv_cuda_solvers[k], &t[k]);
                }
            }
        }
    }
    tell(t, (int)NELEM(t));
    for (int k = 0; mc_conv_cuda_solvers[k]; k++) {
        const struct mc_solver *s = mc_conv_cuda_solvers[k];
        CHECK(!belongs(s, part) || !serves(s, pass) || t[k].served > 0, "%s took nothing of the grid",
              s->name);
    }
}

TEST(cuda_conv_forward_by_own_kernels)
{
    conv_pass(CONV_FORWARD, OWN);
}

TEST(cuda_conv_forward_by_other_problems)
{
    conv_pass(CONV_FORWARD, WRAPPING);
}

TEST(cuda_conv_forward_by_a_library)
{
    conv_pass(CONV_FORWARD, LIBRARY);
}

TEST(cuda_conv_inputs_by_own_kernels)
{
    conv_pass(CONV_INPUTS, OWN);
}

TEST(cuda_conv_inputs_by_other_problems)
{
    conv_pass(CONV_INPUTS, WRAPPING);
}

TEST(cuda_conv_inputs_by_a_library)
{
    conv_pass(CONV_INPUTS, LIBRARY);
}

TEST(cuda_conv_weights_by_own_kernels)
{
    conv_pass(CONV_WEIGHTS, OWN);
}

TEST(cuda_conv_weights_by_other_problems)
{
    conv_pass(CONV_WEIGHTS, WRAPPING);
}

TEST(cuda_conv_weights_by_a_library)
{
    conv_pass(CONV_WEIGHTS, LIBRARY);
}

/* Every engine of cuDNN that its search meets and that is let through is as exact as the dtype: TF32 is
 * not. */
TEST(cudnn_planned_by_time)
{
    static const char *const shapes[] = { "n16c64f64 i28x28 k3x3 p1x1", "n8c3f32 i64x64 k11x11 s2x2",
                                          "n4c32f32 i32x32 k5x5 p2x2 g4" };
    GPU_OR_SKIP();
    if (!mc_nv_found(NV_CUDNN)->present) {
        SKIP("%s", mc_nv_found(NV_CUDNN)->why);
    }
    mc_flag_set("plan", "measure");
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            struct column_sums t = { 0 };
            const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[0]);
            one(&p.base, &mc_conv_cudnn, &t);
            CHECK(t.served == 1 || mc_dnn_refuse(&p), "%s, pass %d: %s", shapes[s], pass, mc_last_error());
        }
    }
}

/* dnn.enabled: required and not there is an error before anything of a GPU is touched; left alone, it
 * declines. */
TEST(cudnn_is_enabled_or_not)
{
    struct mc_conv_problem p = convolution("n2c3f5 i7x9 k3x3", CONV_FORWARD, &variants[0]);
    struct mc_str with = { 0 }, without = { 0 };
    mc_flag_set("dnn.enabled", "True");
    if (!mc_nv_found(NV_CUDNN)->present) {
        CHECK(!mc_conv_cuda_plan(&p, AS_FLAGS(&mc_site_cuda)) &&
                  strstr(mc_last_error(), "dnn.enabled is True"),
              "%s", mc_last_error());
    }
    mc_conv_cuda.key(&p.base, &with);
    mc_flag_set("dnn.enabled", "False");
    const char *no = mc_conv_cudnn.refuse(&p.base);
    CHECK(no && strstr(no, "dnn.enabled"), "%s", no ? no : "takes it");
    mc_conv_cuda.key(&p.base, &without);
    CHECK(strcmp(with.s, without.s) != 0, "wisdom cannot tell: %s", with.s);
    mc_str_free(&with);
    mc_str_free(&without);
    if (mc_cuda_count() > 0) {
        REQUIRE(enter(), "%s", mc_last_error());
        struct mc_plan *plan = mc_conv_cuda_plan(&p, AS_FLAGS(&mc_site_cuda));
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
        CHECK(mode == (strstr(words[i][0], "guess")  ? PLAN_ESTIMATE
                       : strstr(words[i][0], "time") ? PLAN_MEASURE
                                                     : PLAN_EXHAUSTIVE),
              "%s: %d", words[i][0], (int)mode);
    }
    p.algo = "none";
    int64_t mode = PLAN_ESTIMATE;
    const char *name = mc_conv_forced(&p.base, &mode);
    CHECK(name && strcmp(name, mc_nv_found(NV_CUDNN)->present ? "cudnn" : "im2col") == 0, "none: %s", name);
}

/* The planner as a whole: times, remembers, and gives the same plan from wisdom. */
TEST(cuda_conv_planner_remembers)
{
    GPU_OR_SKIP();
    mc_flag_set("plan", "measure");
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = convolution("n32c16f32 i24x24 k5x5 p2x2", (enum mc_conv_pass)pass,
                                                     &variants[0]);
        struct mc_plan *first = mc_conv_cuda_plan(&p, AS_FLAGS(&mc_site_cuda));
        REQUIRE(first && first->measured, "%s", mc_last_error());
        const double start = mc_now();
        struct mc_plan *again = mc_conv_cuda_plan(&p, AS_FLAGS(&mc_site_cuda));
        const double seconds = mc_now() - start;
        REQUIRE(again, "%s", mc_last_error());
        CHECK(again->solver == first->solver && again->measured, "%s, then %s", first->solver->name,
              again->solver->name);
        CHECK(mc_conv_cuda.verify(&p.base, again) >= 0, "%s", mc_last_error());
        printf("    %s takes %.1f us; from wisdom in %.1f ms\n", first->solver->name, first->cost * 1e6,
               seconds * 1e3);
        mc_plan_free(first);
        mc_plan_free(again);
    }
}

/* Strides as channels: pads of every kind, flips, windows that leave a rest, images that no window reaches
 * the end of. */
TEST(cuda_conv_strides_as_channels)
{
    static const char *const shapes[] = {
        "n2c3f8 i23x20 k5x4 s2x2 p2x1", "n3c1f4 i19x22 k11x7 s4x3 p2x2 flip", "n2c5f6 i12x17 k3x3 s3x2", "n2c3f4 i8x9 k3x3 s2x2 p-1x-2 q0x-1",
        "n2c2f3 i11x8 k4x5 s1x4 p1x3 q5x2", "n2c16f16 i16x16 k4x4 s4x4 flip", "n2c3f4 i9x9 k2x3 s2x3 p4x4",
    };
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            for (size_t v = (s + (size_t)pass) % 3; v < NELEM(variants); v += test_is_full() ? 1 : 3) {
                const struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                             &variants[v]);
                one(&p.base, &mc_conv_cuda_space_to_depth, &t);
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

/* Every pass, with strides, flips, groups, c0, bias and activation: what is exact is held to be, what is cut
 * is not. */
TEST(cuda_conv_rounding_is_noticed)
{
    static const struct mc_solver *const rows[] = { &shrinking, &mc_conv_cuda_direct, NULL };
    static const char *const shapes[] = { "n3c8f12 i14x13 k5x3 p2x1", "n2c6f8 i11x9 k3x2 s2x1 d1x2 flip",
                                          "n2c8f16 i9x9 k3x3 p1x1 g2", "n4c3f4 i60 k9" };
    struct mc_family liars = mc_conv_cuda;
    GPU_OR_SKIP();
    liars.solvers = rows;
    mc_flag_set("plan", "measure");
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            /* two texts each */
            for (size_t v = (3 * s + (size_t)pass) % 12; v < NELEM(variants); v += test_is_full() ? 3 : 12) {
                struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass, &variants[v]);
                struct mc_str word = { 0 };
                p.base.family = &liars;
                mc_conv_key(&p.base, &word);
                for (int cut = 0; cut < 2; cut++) {
                    shrinks = !cut ? 1 : mc_dtypes[p.dtype].size == 2 ? 0.9 : 1 - 7e-4;
                    mc_wisdom_clear();
                    struct mc_plan *plan = mc_plan_make(&p.base);
                    const bool taken = plan && plan->solver == &shrinking;
                    CHECK(plan && (cut ? !taken : true), "%s: %s", word.s,
                          plan ? "is taken" : mc_last_error());
                    CHECK(!cut || strstr(mc_last_error(), "shrinking is off by"), "%s: %s", word.s,
                          mc_last_error());
                    CHECK(cut || !strstr(mc_last_error(), "is off by"), "%s: %s", word.s, mc_last_error());
                    mc_plan_free(plan);
                }
                mc_str_free(&word);
            }
        }
    }
}

/* Taps as places make filters as large as images: who looks at every tap says so, and what its operations
 * alone take. */
TEST(cuda_conv_estimates_of_exchanged_sizes)
{
    const struct mc_conv_problem p = convolution("n4c3f64 i224x224 k3x3 p1x1", CONV_INPUTS, &variants[0]);
    const struct mc_conv_problem c = mc_conv_taps_as_positions(&p);
    CHECK(mc_conv_cuda_direct.estimate(&c.base) > 1 && mc_conv_cuda_direct.least(&c.base) > 0.01,
          "%g, at least %g s", mc_conv_cuda_direct.estimate(&c.base), mc_conv_cuda_direct.least(&c.base));
    CHECK(mc_conv_cudnn.estimate(&c.base) > 1e-3, "%g s by cuDNN", mc_conv_cudnn.estimate(&c.base));
    CHECK(mc_conv_cudnn.estimate(&p.base) < 1e-3, "%g s as it is", mc_conv_cudnn.estimate(&p.base));
    const struct mc_conv_problem first = convolution("n128c3f64 i224x224 k11x11 s4x4 p2x2", CONV_FORWARD,
                                                     &variants[12]); /* float16 */
    CHECK(mc_conv_cuda_space_to_depth.estimate(&first.base) < 0.5 * mc_conv_cudnn.estimate(&first.base),
          "%g s as it is, %g s by strides as channels", mc_conv_cudnn.estimate(&first.base),
          mc_conv_cuda_space_to_depth.estimate(&first.base));
}
