/* t_pooled.c: convolutions whose y is pooled to its maxima: every solver against the reference; functions
 * with and without them. */
#include "check.h"
#include "heavy/conv_pool/solver.h"
#include "pooled_problems.h"
#include "op/op.h"
#include <monochord.h>
#include <stdio.h>

TEST(pooled_solvers_give_the_reference)
{
    static const char *const kernels[] = { NULL, "plain", "avx2", "avx512" };
    int ran[2] = { 0 };
    for (size_t k = 0; k < NELEM(kernels); k++) {
        if (!mc_isa_only(kernels[k])) {
            continue;
        }
        for (int turn = 0; turn < (test_is_full() ? 2000 : 400); turn++) {
            struct mc_pooled_problem p;
            if (!pooled_any(&p, turn & 1 ? CONV_INPUTS : CONV_WEIGHTS, 5, below(2) ? 4 : 40, 14)) {
                continue;
            }
            p.base = (struct mc_problem){ &mc_pooled_family, mc_plan_options_of(NULL) };
            p.conv.has_epilogue = below(2);
            struct mc_plan *plan = mc_pooled_plan(&p, AS_FLAGS(NULL));
            struct mc_str word = { 0 };
            mc_pooled_key(&p.base, &word);
            CHECK(!plan || mc_pooled_family.verify(&p.base, plan) == MC_OK, "%s: %s: %s",
                  kernels[k] ? kernels[k] : "the best", word.s, mc_last_error());
            CHECK(!plan || plan->cost > 0, "%s", word.s);
            ran[turn & 1] += plan != NULL;
            mc_str_free(&word);
            mc_plan_free(plan);
        }
    }
    mc_isa_only(NULL);
    CHECK(ran[0] > 200 && ran[1] > 20, "ran %d and %d times", ran[0], ran[1]);
}

/* With blocks of several images, of one size and of two, and one block; marks that nothing reads. */
TEST(pooled_blocks_of_images_give_the_reference)
{
    static const char *const kernels[] = { NULL, "plain", "avx2", "avx512" };
    int ran = 0;
    for (size_t k = 0; k < NELEM(kernels); k++) {
        if (!mc_isa_only(kernels[k])) {
            continue;
        }
        for (int turn = 0; turn < (test_is_full() ? 400 : 80); turn++) {
            struct mc_pooled_problem p;
            const bool forward = turn & 1;
            if (!pooled_any(&p, forward ? CONV_FORWARD : CONV_WEIGHTS, below(3) ? 12 : 200, 4, 24)) {
                continue;
            }
            p.base = (struct mc_problem){ &mc_pooled_family, mc_plan_options_of(NULL) };
            const struct mc_conv_array w = mc_conv_array(&p.conv, CONV_W);
            mc_conv_dense_strides(&w, p.conv.at.w);
            p.conv.has_epilogue = below(2);
            p.unmarked = forward && below(3) == 0;
            p.bits = p.w[1] * p.w[2] <= POOL_BITS && below(2);
            struct mc_str word = { 0 };
            mc_pooled_key(&p.base, &word);
            struct mc_plan *plan = mc_plan_with(&p.base, &mc_pooled_image_blocks);
            REQUIRE(plan, "%s: %s", word.s, mc_last_error());
            CHECK(mc_pooled_family.verify(&p.base, plan) == MC_OK, "%s: %s: %s",
                  kernels[k] ? kernels[k] : "the best", word.s, mc_last_error());
            CHECK(plan->cost > 0, "%s", word.s);
            ran++;
            mc_str_free(&word);
            mc_plan_free(plan);
        }
    }
    mc_isa_only(NULL);
    CHECK(ran > 100, "ran %d times", ran);
}

TEST(pooled_words_and_refusals)
{
    struct mc_pooled_problem p = {
        .base = { &mc_pooled_family, mc_plan_options_of(NULL) },
        .conv = { .dtype = MC_FLOAT32, .alpha = 1,
                  .s = { .pass = CONV_WEIGHTS, .nd = 2, .n = 2, .c = 3, .f = 4, .groups = 1, .in = { 1, 8, 8 }, .out = { 1, 6, 6 }, .k = { 1, 3, 3 },
                         .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 } },
                  .at = { { 192, 64, 64, 8, 1 }, { 27, 9, 9, 3, 1 }, { 144, 36, 36, 6, 1 } } },
        .w = { 1, 2, 2 }, .stride = { 1, 2, 2 }, .out = { 1, 3, 3 }, .g = { 36, 9, 9, 3, 1 }, .mark = { 36, 9, 9, 3, 1 }, .marks = MC_UINT8,
    };
    struct mc_str word = { 0 };
    mc_pooled_key(&p.base, &word);
    CHECK(word.s &&
              strcmp(word.s, "pooled conv f32 weights n2c3i8x8 f4k3x3o6x6 w1x2x2 s1x2x2 p0x0x0 o1x3x3") == 0,
          "%s", word.s);
    mc_str_free(&word);
    CHECK(strstr(mc_pooled_image_blocks.refuse(&p.base), "larger than the L2 cache"), "takes y in the cache");
    p.conv.s.n = 1 << 20;
    CHECK(!mc_pooled_image_blocks.refuse(&p.base), "%s", mc_pooled_image_blocks.refuse(&p.base));
    p.conv.s.c = 8;
    CHECK(strstr(mc_pooled_image_blocks.refuse(&p.base), "contiguous filters"), "takes gaps between filters");
    p.conv.s.pass = CONV_FORWARD;
    CHECK(strstr(mc_pooled_image_blocks.refuse(&p.base), "few terms"), "takes long sums");
    p.conv.s.pass = CONV_WEIGHTS;
    p.conv.s.c = 3;
    p.conv.s.n = 2;
    p.bits = true;
    CHECK(strstr(mc_pooled_window_grad.refuse(&p.base), "no bits"), "takes bits");
    p.bits = false;
    p.marks = MC_INT32;
    CHECK(strstr(mc_pooled_window_grad.refuse(&p.base), "marks of one byte"), "takes wide marks");
    p.marks = MC_UINT8;
    p.g[3] = 4;
    CHECK(strstr(mc_pooled_window_grad.refuse(&p.base), "contiguous"), "takes gaps");
    p.g[3] = 3;
    mc_flag_set("conv.algo_bwd_filter", "im2col");
    CHECK(!mc_pooled_plan(&p, AS_FLAGS(NULL)), "a named solver does the work");
    mc_flag_set("conv.algo_bwd_filter", "auto");
    ALLOC_FAIL_LOOP {
        struct mc_plan *plan = mc_pooled_plan(&p, AS_FLAGS(NULL));
        CHECK(plan ? mc_pooled_family.verify(&p.base, plan) == MC_OK || ALLOC_FAILED : ALLOC_FAILED, "%s",
              mc_last_error());
        mc_plan_free(plan);
    }
}

/* ---- functions ---- */

/* What two modes make of the gradients of a convolution under a pooling; how many steps of the first had
 * these solvers. */
static void compare_modes(const char *net, const char *outputs, const char *const solver[2], int found[2],
                          double *most)
{
    mc_array *y[2][3] = { { 0 } };
    *most = 0;
    for (int mode = 0; mode < 2; mode++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, net);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = outputs, .mode = mode ? "FAST_COMPILE" : NULL });
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(40, 4, 20, 20));
        REQUIRE(f && x, "%s", mc_last_error());
        for (int64_t i = 0; i < mc_array_size(x); i++) {
            ((float *)mc_array_data(x))[i] = (float)((i * 7919) % 4093) / 4093 - 0.5f;
        }
        for (int call = 0; call < 2; call++) {
            REQUIRE(mc_call(f, MC_IN(x), MC_OUT(&y[mode][0], &y[mode][1], &y[mode][2])) == MC_OK, "%s",
                    mc_last_error());
        }
        for (int i = 0; i < mc_function_nsteps(f) && mode == 0; i++) {
            const char *s = mc_function_step(f, i).solver;
            for (int k = 0; k < 2; k++) {
                found[k] += s && strcmp(s, solver[k]) == 0;
            }
        }
        mc_array_unref(&x);
        mc_function_free(f);
        mc_graph_free(g);
    }
    for (int k = 0; k < 3; k++) {
        double sum[2] = { 0 };
        for (int64_t i = 0; i < mc_array_size(y[0][k]); i++) {
            const double a = (double)((const float *)mc_array_data(y[0][k]))[i],
                         b = (double)((const float *)mc_array_data(y[1][k]))[i];
            sum[0] += (a - b) * (a - b);
            sum[1] += b * b;
        }
        *most = MC_MAX(*most, sum[0] / MC_MAX(sum[1], 1e-30));
        mc_array_unref(&y[0][k]);
        mc_array_unref(&y[1][k]);
    }
}

#define NET                                                                                                  \
    "input x float32[?, 4, 20, 20]; V = 0.3 * sin(reshape(cast(arange(48 * 4 * 9), float32), [48, 4, 3, 3]));" \
    "W = 0.3 * cos(reshape(cast(arange(48 * 48 * 25), float32), [48, 48, 5, 5]));"                           \
    "p = tanh(pool(conv(x, V), [2, 2])); q = pool(conv(p, W), [2, 2]); cost = sum(sqr(q))"

/* The gradients of both convolutions read maxima and marks; y of neither has a gradient as large as
 * itself. */
TEST(functions_join_convolutions_and_poolings)
{
    static const char *const solvers[] = { "marked", "idle" };
    int found[2] = { 0 };
    double d;
    compare_modes(NET, "grad(cost, V), grad(cost, W), grad(cost, x)", solvers, found, &d);
    CHECK(d < 1e-10, "off by %g", d);
    CHECK((found[0] >= 3 && found[1] >= 1) || strcmp(mc_flag_get("device"), "cpu") != 0,
          "%d steps joined, %d idle", found[0], found[1]);
}

/* A gradient that something else reads is made as ever. Only conv(x, V) may be idle: its pooling alone reads
 * it. */
TEST(what_others_read_is_not_left_out)
{
    static const char *const solvers[] = { "marked", "idle" };
    int found[2] = { 0 };
    double d;
    compare_modes(NET "; c = conv(p, W); r = sum(sqr(pool(c, [2, 2])))", "grad(r, W), grad(r, c), grad(r, p)",
                  solvers, found, &d);
    CHECK(d < 1e-10 && ((found[0] == 0 && found[1] <= 1) || strcmp(mc_flag_get("device"), "cpu") != 0),
          "off by %g, %d steps joined, %d idle", d, found[0], found[1]);
}

TEST(strict_math_keeps_the_parts_apart)
{
    static const char *const solvers[] = { "marked", "idle" };
    int found[2] = { 0 };
    double d;
    mc_flag_set("strict_math", "True");
    compare_modes(NET, "grad(cost, V), grad(cost, W), grad(cost, x)", solvers, found, &d);
    mc_flag_set("strict_math", "False");
    CHECK(d < 1e-10 && found[0] == 0 && found[1] == 0, "off by %g, %d steps joined, %d idle", d, found[0],
          found[1]);
}

/* ---- ties ---- */

enum { TIED = 500, TAPS = 3, SIDE = 18, FILTERS = 8, OUT = 16, HALF = 8 };

/* pool(conv(x, V), [2, 2], ties='all') of one image and filter, and V's gradient where each window has c. */
static void pool_by_hand(const float *x, const float *v, const float *c, double *p, double *dv)
{
    double y[OUT][OUT];
    for (int a = 0; a < OUT * OUT; a++) {
        y[a / OUT][a % OUT] = 0;
        for (int t = 0; t < TAPS * TAPS; t++) { /* taps are applied from last to first */
            y[a / OUT][a % OUT] += (double)v[TAPS * TAPS - 1 - t] *
                                   (double)x[(a / OUT + t / TAPS) * SIDE + a % OUT + t % TAPS];
        }
    }
    for (int w = 0; w < HALF * HALF; w++) {
        const int r = w / HALF * 2, s = w % HALF * 2;
        p[w] = MC_MAX(MC_MAX(y[r][s], y[r][s + 1]), MC_MAX(y[r + 1][s], y[r + 1][s + 1]));
        for (int i = 0; i < 4; i++) {
            const int a = r + i / 2, b = s + i % 2;
            for (int t = 0; t < TAPS * TAPS && y[a][b] >= p[w]; t++) {
                dv[TAPS * TAPS - 1 - t] += (double)c[w] * (double)x[(a + t / TAPS) * SIDE + b + t % TAPS];
            }
        }
    }
}

/* Small whole numbers, so that sums are exact and most windows have ties. */
static mc_array *whole_numbers(int rank, const int64_t *dims, int64_t below_this)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        ((float *)mc_array_data(a))[i] = (float)(below(below_this) - below_this / 2);
    }
    return a;
}

static const float *data_of(const mc_array *a)
{
    return mc_array_data(a);
}

/* Bits take the place of y, which is not stored where blocks of images are faster. */
TEST(ties_are_kept_as_bits)
{
    static const char *const isa[] = { NULL, "plain", "avx2", "avx512" };
    mc_array *x = whole_numbers(MC_SHAPE(TIED, 1, SIDE, SIDE), 3),
             *v = whole_numbers(MC_SHAPE(FILTERS, 1, TAPS, TAPS), 3),
             *c = whole_numbers(MC_SHAPE(TIED, FILTERS, HALF, HALF), 5);
    static double p[TIED * FILTERS * HALF * HALF], dv[FILTERS * TAPS * TAPS];
    REQUIRE(x && v && c, "%s", mc_last_error());
    for (int i = 0; i < TIED * FILTERS; i++) {
        pool_by_hand(data_of(x) + i / FILTERS * SIDE * SIDE, data_of(v) + i % FILTERS * TAPS * TAPS,
                     data_of(c) + i * HALF * HALF, p + i * HALF * HALF, dv + i % FILTERS * TAPS * TAPS);
    }
    for (size_t k = 0; k < NELEM(isa); k++) {
        if (!mc_isa_only(isa[k])) {
            continue;
        }
        mc_graph *g = mc_graph_new();
        mc_array *got[2] = { NULL, NULL };
        mc_formula(g,
                   "input x float32[?, 1, 18, 18]; input V float32[8, 1, 3, 3]; input c float32[?, 8, 8, 8];"
                   "p = pool(conv(x, V), [2, 2], ties='all')");
        mc_function *f = mc_compile(g,
                                    &(mc_spec){ .inputs = "x, V, c", .outputs = "p, grad(sum(p * c), V)" });
        REQUIRE(f && mc_call(f, MC_IN(x, v, c), MC_OUT(&got[0], &got[1])) == MC_OK, "%s", mc_last_error());
        int wrong = 0;
        for (int64_t i = 0; i < (int64_t)NELEM(p); i++) {
            wrong += (double)data_of(got[0])[i] != p[i];
        }
        for (int64_t i = 0; i < (int64_t)NELEM(dv); i++) {
            wrong += (double)data_of(got[1])[i] != dv[i];
        }
        CHECK(wrong == 0, "%s: %d numbers are wrong", isa[k] ? isa[k] : "the best", wrong);
        bool by_cells = false;
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            const char *s = mc_function_step(f, i).solver;
            by_cells |= s && strcmp(s, "ties") == 0;
        }
        CHECK(!by_cells || strcmp(mc_flag_get("device"), "cpu") != 0, "a step reads y");
        mc_array_unref(&got[0]);
        mc_array_unref(&got[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_isa_only(NULL);
    mc_array_unref(&x);
    mc_array_unref(&v);
    mc_array_unref(&c);
}

/* Windows that overlap, or have more cells than a byte has bits, are told ties by y. */
TEST(ties_of_large_windows_read_y)
{
    static const struct {
        const char *pool, *solver;
    } cases[] = { { "pool(conv(x, V), [3, 3], ties='all')", "ties" },
                  { "pool(conv(x, V), [2, 2], stride=[1, 1], ties='all')", NULL } };
    for (size_t k = 0; k < NELEM(cases); k++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = whole_numbers(MC_SHAPE(7, 1, 18, 18), 3), *v = whole_numbers(MC_SHAPE(8, 1, 3, 3), 3);
        mc_array *y[2] = { NULL, NULL };
        mc_formula(g, "input x float32[?, 1, 18, 18]; input V float32[8, 1, 3, 3]");
        mc_node *p = mc_formula(g, cases[k].pool);
        mc_name(p, "p");
        bool found = cases[k].solver == NULL;
        for (int mode = 0; mode < 2; mode++) {
            mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, V",
                                                       .outputs = "grad(sum(sqr(p)), V)",
                                                       .mode = mode ? "FAST_COMPILE" : NULL });
            REQUIRE(f && mc_call(f, MC_IN(x, v), MC_OUT(&y[mode])) == MC_OK, "%s", mc_last_error());
            for (int i = 0; i < mc_function_nsteps(f) && !found; i++) {
                const char *s = mc_function_step(f, i).solver;
                found = s && strcmp(s, cases[k].solver) == 0;
            }
            mc_function_free(f);
        }
        CHECK(memcmp(data_of(y[0]), data_of(y[1]), 8 * 9 * sizeof(float)) == 0, "%s", cases[k].pool);
        CHECK(found || strcmp(mc_flag_get("device"), "cpu") != 0, "%s: no step is %s", cases[k].pool,
              cases[k].solver);
        mc_array_unref(&x);
        mc_array_unref(&v);
        mc_array_unref(&y[0]);
        mc_array_unref(&y[1]);
        mc_graph_free(g);
    }
}
