/* t_conv_plan.c: how a convolution gets its solver: words, errors, what the flags and a node's algorithm ask
 * for, estimates, two runs that choose the same, and no memory. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "heavy/conv/solver.h"
#include "conv_grid.h"
#include "plan_options.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct mc_conv_problem problem(const char *shape, enum mc_conv_pass pass)
{
    struct mc_conv_problem p = { .dtype = MC_FLOAT32, .s = conv_parse(shape), .alpha = 1 };
    p.s.pass = pass;
    int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(&p, role);
        mc_conv_dense_strides(&a, strides[role]);
    }
    return p;
}

TEST(conv_words)
{
    static const struct {
        const char *shape;
        enum mc_conv_pass pass;
        const char *word;
    } rows[] = {
        { "n128c64f128 i64x64 k9x9", CONV_FORWARD, "conv f32 fwd n128c64i64x64 f128k9x9o56x56" },
        { "n2c4f6 i9 k3 s2 d2 p1 g2 flip", CONV_INPUTS, "conv f32 inputs n2c4i9 f6k3o4 s2 d2 p1 g2 flip" },
        { "n2c3f4 i6x7 k3x3 unshared", CONV_WEIGHTS, "conv f32 weights n2c3i6x7 f4k3x3o4x5 unshared" },
        { "n2c3f4 i9x9 k1x1 d2x2 flip", CONV_FORWARD, "conv f32 fwd n2c3i9x9 f4k1x1o9x9" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        const struct mc_conv_problem p = problem(rows[i].shape, rows[i].pass);
        struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
        struct mc_str text = { 0 };
        REQUIRE(plan, "%s", mc_last_error());
        mc_conv_family.key(plan->problem, &text);
        CHECK(strcmp(text.s, rows[i].word) == 0, "%s, not %s", text.s, rows[i].word);
        mc_str_free(&text);
        mc_plan_free(plan);
    }
}

TEST(conv_layout_words)
{
    struct mc_conv_problem p = problem("n2c3f4 i6x7 k3x3", CONV_FORWARD);
    p.base.family = &mc_conv_family;
    p.beta = 1;
    p.alpha = 2;
    p.has_epilogue = true;
    memcpy(p.at.x, (int64_t[]){ 126, 1, 126, 21, 3 }, sizeof p.at.x);
    memcpy(p.at.w, (int64_t[]){ 1, 36, 36, 12, 4 }, 5 * sizeof(int64_t));
    p.at.y[0] = 90;
    struct mc_str text = { 0 };
    mc_conv_family.key(&p.base, &text);
    CHECK(strcmp(text.s, "conv f32 fwd n2c3i6x7 f4k3x3o4x5 x:b01c w:c01f y:90,20,,5,1 a c0 e") == 0, "%s",
          text.s);
    mc_str_free(&text);
}

TEST(conv_errors)
{
    static const struct {
        const char *flags, *shape;
        enum mc_conv_pass pass;
        const char *says;
    } rows[] = {
        { "conv.algo_fwd=cudnn", "n2c3f4 i6x7 k3x3", CONV_FORWARD,
          "conv has no solver 'cudnn'; there are: auto" },
        { "conv.algo_fwd=auto", "n2c3f4 i6x7 k3x3 g2", CONV_FORWARD, "these sizes are impossible" },
        { "conv.algo_fwd=auto", "n2c3f4 i6x7 k3x3 s0x1", CONV_FORWARD, "these sizes are impossible" },
        { "conv.algo_fwd=auto", "n-1c3f4 i6x7 k3x3", CONV_WEIGHTS, "these sizes are impossible" },
        { "conv.algo_fwd=auto", "n4000000000c4000000000f4 i6x7 k3x3", CONV_FORWARD,
          "these sizes are impossible" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_conv_problem p = { .dtype = MC_FLOAT32, .alpha = 1 };
        const bool zero = strstr(rows[i].shape, "s0") != NULL;
        p.s = zero ? conv_parse("n2c3f4 i6x7 k3x3") : conv_parse(rows[i].shape);
        p.s.stride[1] = zero ? 0 : p.s.stride[1];
        p.s.pass = rows[i].pass;
        mc_flags_parse(rows[i].flags);
        struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
        CHECK(!plan && strstr(mc_last_error(), rows[i].says), "%s: %s", rows[i].shape, mc_last_error());
        mc_plan_free(plan);
    }
    struct mc_conv_problem p = problem("n2c3f4 i6x7 k3x3", CONV_FORWARD);
    p.dtype = MC_INT32;
    CHECK(!mc_conv_plan(&p, AS_FLAGS(NULL)) && strstr(mc_last_error(), "must be a float"), "%s",
          mc_last_error());
}

/* Theano's words plan whatever the problem is. */
TEST(conv_algo_words)
{
    static const char *const words[] = { "none", "small", "large", "fft", "fft_tiling", "winograd", "winograd_non_fused", "deterministic",
                                         "guess_once", "guess_on_shape_change", "time_once", "time_on_shape_change", "auto" };
    for (size_t i = 0; i < NELEM(words); i++) {
        name_solver(words[i]);
        for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
            const struct mc_conv_problem p = problem("n2c3f4 i6x7 k3x3 s2x2 d1x2 flip",
                                                     (enum mc_conv_pass)pass);
            struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
            CHECK(plan, "%s: %s", words[i], mc_last_error());
            CHECK(!plan || plan->measured == (strncmp(words[i], "time", 4) == 0), "%s: measured %d", words[i],
                  plan ? plan->measured : -1);
            mc_plan_free(plan);
        }
    }
    name_solver("auto");
}

/* What a node asks for counts, not the flag; and it need not live longer than the planning. */
TEST(conv_algo_of_a_problem)
{
    struct mc_conv_problem p = problem("n2c3f4 i9x7 k3x3 p1x1", CONV_FORWARD);
    char algo[] = "im2col", precision[] = "float64";
    name_solver("reference");
    p.algo = algo;
    struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
    memset(algo, 'x', sizeof algo - 1);
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(strcmp(plan->solver->name, "im2col") == 0, "%s", plan->solver->name);
    CHECK(strcmp(((const struct mc_conv_problem *)(const void *)plan->problem)->algo, "im2col") == 0,
          "the text was the caller's");
    mc_plan_free(plan);
    CHECK(!mc_conv_plan(&p, AS_FLAGS(NULL)) && strstr(mc_last_error(), "conv has no solver 'xxxxxx'"), "%s",
          mc_last_error());
    p.algo = "fft_tiling";
    p.precision = precision;
    plan = mc_conv_plan(&p, AS_FLAGS(NULL));
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(strcmp(plan->solver->name, "relayout") == 0, "float64 by %s", plan->solver->name);
    mc_plan_free(plan);
    p.algo = "one";
    p.precision = NULL;
    CHECK(!mc_conv_plan(&p, AS_FLAGS(NULL)) &&
              strstr(mc_last_error(), "solver one, which was asked for, takes filters of one tap"),
          "%s", mc_last_error());
    name_solver("auto");
}

/* Through a function: the node's word, then the flag. */
TEST(conv_algo_of_a_node)
{
    mc_flag_set("device", "cpu"); /* the solvers named here are the processor's */
    static const struct {
        const char *formula, *solver;
    } rows[] = {
        { "dnn_conv(x, w, algo='im2col')", "im2col" },
        { "dnn_conv(x, w, algo='none')", "im2col" },
        { "dnn_conv(x, w)", "reference" },
        { "conv(x, w, precision='float64', algo='relayout')", "relayout" },
    };
    name_solver("reference");
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[2, 3, 8, 9]; input w float32[4, 3, 3, 3]");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w", .outputs = rows[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3, 8, 9)),
                 *w = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 3, 3, 3)), *y = NULL;
        memset(mc_array_data(x), 0, (size_t)mc_array_size(x) * 4);
        memset(mc_array_data(w), 0, (size_t)mc_array_size(w) * 4);
        CHECK(mc_call(f, MC_IN(x, w), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].formula, mc_last_error());
        bool met = false;
        for (int k = 0; k < mc_function_nsteps(f); k++) {
            const mc_step_info step = mc_function_step(f, k);
            met |= step.solver && strcmp(step.solver, rows[i].solver) == 0;
        }
        CHECK(met, "%s is not served by %s", rows[i].formula, rows[i].solver);
        mc_array_unref(&x);
        mc_array_unref(&w);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    name_solver("auto");
}

/* The solver of the convolution in the function's last call. */
static const char *solver_at(mc_function *f, int64_t n, int64_t c, int64_t size, int64_t k)
{
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(n, c, size, size)),
             *w = mc_array_new(MC_FLOAT64, MC_SHAPE(16, c, k, k)), *y = NULL;
    const char *solver = "none";
    memset(mc_array_data(x), 0, (size_t)mc_array_size(x) * 8);
    memset(mc_array_data(w), 0, (size_t)mc_array_size(w) * 8);
    CHECK(mc_call(f, MC_IN(x, w), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const mc_step_info step = mc_function_step(f, i);
        solver = step.solver && *step.solver ? step.solver : solver;
    }
    mc_array_unref(&x);
    mc_array_unref(&w);
    mc_array_unref(&y);
    return solver;
}

/* Two shapes whose estimates differ: once keeps the first one's solver, on_shape_change does not; a solver
 * that declines the next shape is not kept. */
TEST(conv_algo_chosen_once)
{
    mc_flag_set("device", "cpu"); /* the solvers named here are the processor's */
    static const struct {
        const char *algo;
        int64_t first[4], second[4]; /* images, channels, size, taps */
        bool kept;
    } rows[] = {
        { "guess_once", { 1, 64, 20, 3 }, { 64, 2, 12, 9 }, true },
        { "guess_on_shape_change", { 1, 64, 20, 3 }, { 64, 2, 12, 9 }, false },
        { "auto", { 1, 64, 20, 3 }, { 64, 2, 12, 9 }, false },
        { "guess_once", { 4, 64, 20, 1 }, { 64, 2, 12, 9 }, false }, /* one declines nine taps */
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        char formula[80];
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float64[?, ?, ?, ?]; input w float64[?, ?, ?, ?]");
        snprintf(formula, sizeof formula, "conv(x, w, flip=False, algo='%s')", rows[i].algo);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w", .outputs = formula });
        REQUIRE(f, "%s", mc_error(g));
        const int64_t *a = rows[i].first, *b = rows[i].second;
        const char *first = solver_at(f, a[0], a[1], a[2], a[3]),
                   *second = solver_at(f, b[0], b[1], b[2], b[3]);
        CHECK(strcmp(first, "exchange") != 0, "%s: the first shape is too much like the second",
              rows[i].algo);
        CHECK(strcmp(second, rows[i].kept ? first : "exchange") == 0, "%s: %s, then %s", rows[i].algo, first,
              second);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* In float64, where products of matrices are all there is, the rule of the two ways: by forward if n * taps <
 * c * places. */
TEST(conv_forward_by_the_better_product)
{
    static const struct {
        const char *shape, *solver;
    } rows[] = {
        { "n32c64f128 i32x32 k5x5", "im2col" }, { "n32c64f128 i32x32 k28x28", "exchange" },
        { "n1c64f64 i40x40 k3x3", "im2col" },   { "n64c2f16 i12x12 k9x9", "exchange" },
        { "n1c2f4 i28x28 k15x15", "im2col" }, /* by the other, the products alone would take less */
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_conv_problem p = problem(rows[i].shape, CONV_FORWARD);
        p.dtype = MC_FLOAT64;
        struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
        REQUIRE(plan, "%s", mc_last_error());
        CHECK(strcmp(plan->solver->name, rows[i].solver) == 0, "%s: %s", rows[i].shape, plan->solver->name);
        mc_plan_free(plan);
    }
}

/* ---- estimates ---- */

/* Offsets in padded images fit in 31 bits: the axes that are not there add nothing to an image. */
TEST(conv_implicit_takes_large_images)
{
    static const struct { const char *shape; bool taken; } rows[] = {
        { "n1c2048f256 i65x65 k3x3 d36x36 p36x36", true }, { "n1c512f256 i1x16000 k1x1", true },
        { "n1c2048f2048 i1500x1500 k3x3 p1x1", false },
    };
    for (size_t i = 0; i < NELEM(rows) * 3; i++) {
        struct mc_conv_problem p = problem(rows[i / 3].shape, (enum mc_conv_pass)(CONV_FORWARD + i % 3));
        p.base.family = &mc_conv_family;
        plan_as_flags(&p.base);
        const char *no = mc_conv_implicit.refuse(&p.base);
        CHECK(!no == rows[i / 3].taken, "%s, pass %zu: %s", rows[i / 3].shape, i % 3, no ? no : "taken");
    }
}

/* Pairs of solvers of which the second took more than three times the first's time, on one thread of Zen 4
 * with AVX-512 and with AVX2, and more than twice with SSE2.  Estimates must know that, whatever the caches
 * are. */
static void check_order(const char *level)
{
    static const struct {
        const char *shape;
        enum mc_conv_pass pass;
        const struct mc_solver *fast, *slow;
    } rows[] = {
        { "n1c221f384 i7x7 k3x3 s3x3 p1x1", CONV_FORWARD, &mc_conv_im2col, &mc_conv_direct },
        { "n16c64f2 i256x256 k1x1", CONV_INPUTS, &mc_conv_one, &mc_conv_col2im },
        { "n4c768f160 i17x39 k1x1 g32", CONV_INPUTS, &mc_conv_one, &mc_conv_col2im },
        { "n4c1024f768 i7x7 k7x7 s4x4", CONV_INPUTS, &mc_conv_im2col, &mc_conv_col2im },
        { "n16c144f144 i56x56 k3x3 p1x1 g144", CONV_INPUTS, &mc_conv_depth, &mc_conv_col2im },
        { "n16c192f192 i28x28 k3x3 s2x2 p1x1 g192", CONV_INPUTS, &mc_conv_depth, &mc_conv_col2im },
        { "n2c1f512 i25x25 k11x11 s2x2 d3x3 p15x15", CONV_WEIGHTS, &mc_conv_direct, &mc_conv_depth },
        { "n32c1f1024 i9x9 k7x7 s2x2 d3x3 p9x9", CONV_WEIGHTS, &mc_conv_direct, &mc_conv_depth },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_conv_problem p = problem(rows[i].shape, rows[i].pass);
        p.base.family = &mc_conv_family;
        plan_as_flags(&p.base);
        const double fast = rows[i].fast->estimate(&p.base), slow = rows[i].slow->estimate(&p.base);
        CHECK(slow > 1.5 * fast, "%s, second cache %zu KiB: %s: %s %.3g us, %s %.3g us", level,
              mc_cpu()->l2 >> 10, rows[i].shape, rows[i].fast->name, fast * 1e6, rows[i].slow->name,
              slow * 1e6);
    }
}

TEST(conv_estimates_order_clear_cases)
{
    static const char *const levels[] = { "native", "avx2", "sse2" };
    static const struct mc_cpu caches[] = {
        { .l1d = 32 << 10, .l2 = 512 << 10, .l3 = 32 << 20, .shared = 32 << 20 },   /* Zen 2, Zen 3 */
        { .l1d = 32 << 10, .l2 = 1 << 20, .l3 = 16 << 20, .shared = 16 << 20 },     /* Zen 4, Skylake SP */
        { .l1d = 48 << 10, .l2 = 2 << 20, .l3 = 32 << 20, .shared = 260 << 20 },    /* Sapphire Rapids */
        { .l1d = 32 << 10, .l2 = 256 << 10, .l3 = 8 << 20, .shared = 8 << 20 },     /* Haswell */
    };
    for (size_t i = 0; i < NELEM(levels); i++) {
        mc_flag_set("cpu.isa", levels[i]);
        struct mc_cpu *cpu = (struct mc_cpu *)mc_cpu(); /* of this process, which is the test's alone */
        const struct mc_cpu here = *cpu;
        check_order(levels[i]);
        for (size_t j = 0; j < NELEM(caches); j++) {
            cpu->l1d = caches[j].l1d, cpu->l2 = caches[j].l2, cpu->l3 = caches[j].l3,
            cpu->shared = caches[j].shared;
            check_order(levels[i]);
        }
        *cpu = here;
    }
}

/* Gradients of many small images by transforms: with images and channels exchanged, filters are the many
 * small planes, and their spectra do not fit the caches.  That took 1.2 to 1.7 times as long, on one thread
 * of an Intel Xeon with AVX-512 and with AVX2. */
TEST(conv_estimates_keep_images_in_tiles)
{
    static const char *const levels[] = { "native", "avx2" };
    static const char *const shapes[] = { "n500c20f50 i12x12 k5x5", "n256c16f32 i14x14 k3x3",
                                          "n400c30f60 i10x10 k3x3", "n300c24f64 i14x14 k5x5" };
    for (size_t i = 0; i < 2 * NELEM(shapes); i++) {
        struct mc_conv_problem p = problem(shapes[i / 2], CONV_INPUTS);
        mc_flag_set("cpu.isa", levels[i % 2]);
        struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
        REQUIRE(plan, "%s", mc_last_error());
        CHECK(strcmp(plan->solver->name, "exchange") != 0, "%s: %s", levels[i % 2], shapes[i / 2]);
        mc_plan_free(plan);
    }
    mc_flag_set("cpu.isa", "native");
}

/* ---- two runs ---- */

static char *bits_of(const struct mc_plan *plan, size_t *bytes)
{
    const struct mc_conv_array a = mc_conv_array(conv(plan->problem),
                                                 mc_conv_result(conv(plan->problem)->s.pass));
    void *operand[8];
    if (!CHECK(mc_conv_family.operands(plan->problem, operand) == MC_OK, "%s", mc_last_error())) {
        return NULL;
    }
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "test") : NULL;
    CHECK(plan->run(plan, operand, workspace, 0) == MC_OK, "%s", mc_last_error());
    *bytes = (size_t)mc_conv_count(&a) * mc_dtypes[conv(plan->problem)->dtype].size;
    char *copy = malloc(*bytes);
    memcpy(copy, operand[mc_conv_result(conv(plan->problem)->s.pass)], *bytes);
    mc_free_pages(workspace);
    mc_conv_family.discard(plan->problem, operand);
    return copy;
}

/* What the first run timed, a second one reads from the file: the same plan to the letter, the same bits. */
TEST(conv_two_runs_choose_the_same)
{
#ifdef __SANITIZE_ADDRESS__
    mc_flag_set("onednn", "none"); /* the leak checker of gcc 12 dies of the threads it leaves behind */
#endif
    static const char *const shapes[] = { "n4c16f24 i20x21 k3x3 p1x1", "n3c4f20 i28x28 k5x5",
                                          "n2c8f8 i9x9 k1x1", "n2c3f8 i23x23 k7x7 s2x2 p3x3" };
    static const char *const modes[] = { "plan=estimate", "plan=measure" };
    char here[] = "/tmp/monochord-conv-XXXXXX", there[] = "/tmp/monochord-conv-XXXXXX";
    REQUIRE(mkdtemp(here) && mkdtemp(there), "no folders");
    for (size_t i = 0; i < NELEM(shapes) * 3 * NELEM(modes); i++) {
        const struct mc_conv_problem p = problem(shapes[i / 6], (enum mc_conv_pass)(i / 2 % 3));
        struct mc_str text[2] = { { 0 } };
        char *bits[2] = { NULL };
        size_t bytes = 0;
        mc_flags_parse(modes[i % 2]);
        for (int run = 0; run < 2; run++) {
            mc_flag_set("cache", here);
            mc_flag_set("threads", i % 2 ? "0"
                                   : run ? "1"
                                         : "2"); /* wisdom is for one number of threads, estimates for any */
            struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
            REQUIRE(plan, "%s", mc_last_error());
            mc_plan_text(plan, &text[run]);
            bits[run] = bits_of(plan, &bytes);
            mc_plan_free(plan);
            mc_flag_set("cache", there); /* forgets what is in memory, */
            struct mc_plan *other = mc_conv_plan(&p, AS_FLAGS(NULL));
            mc_plan_free(other);
            mc_wisdom_clear();
        }
        CHECK(strcmp(text[0].s, text[1].s) == 0, "%s, then %s", text[0].s, text[1].s);
        CHECK(bits[0] && bits[1] && memcmp(bits[0], bits[1], bytes) == 0, "%s: other bits", text[0].s);
        mc_str_free(&text[0]);
        mc_str_free(&text[1]);
        free(bits[0]);
        free(bits[1]);
    }
    mc_flag_set("cache", here);
    mc_wisdom_clear();
    rmdir(mc_cache_dir());
    rmdir(here);
    mc_flag_set("cache", there);
    rmdir(mc_cache_dir());
    rmdir(there);
}

TEST(conv_verify)
{
    mc_flags_parse("check=3");
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = problem("n2c3f4 i9x7 k3x3 p1x1", (enum mc_conv_pass)pass);
        struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
        CHECK(plan, "%s", mc_last_error());
        mc_plan_free(plan);
    }
    mc_flags_parse("check=0");
}

TEST(conv_plans_without_memory)
{
    for (int pass = CONV_FORWARD; pass <= CONV_WEIGHTS; pass++) {
        const struct mc_conv_problem p = problem("n2c3f4 i9x7 k3x3 p1x1", (enum mc_conv_pass)pass);
        for (const struct mc_solver *const *s = mc_conv_solvers; *s; s++) {
            struct mc_conv_problem with = p;
            with.base = (struct mc_problem){ &mc_conv_family, mc_plan_options_of(NULL) };
            name_solver((*s)->name);
            if (mc_plan_declines(&with.base, *s)) {
                continue;
            }
            ALLOC_FAIL_LOOP {
                struct mc_plan *plan = mc_plan_with(&with.base, *s);
                CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
                mc_plan_free(plan);
            }
        }
        name_solver("auto");
        ALLOC_FAIL_LOOP {
            struct mc_plan *plan = mc_conv_plan(&p, AS_FLAGS(NULL));
            CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
            mc_plan_free(plan);
        }
    }
}
