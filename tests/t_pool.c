/* t_pool.c: every solver of pooling against the reference, on one grid of problems; the family's words and
 * errors. */
#include "check.h"
#include "op/op.h"
#include "heavy/pool/solver.h"
#include "pool_problems.h"
#include <math.h>
#include <stdio.h>

static void check_solvers(const struct mc_pool_problem *p, int *ran)
{
    struct mc_str text = { 0 };
    mc_pool_family.key(&p->base, &text);
    for (int k = 0; mc_pool_solvers[k]; k++) {
        const struct mc_solver *s = mc_pool_solvers[k];
        if (s->refuse && s->refuse(&p->base)) {
            continue;
        }
        struct mc_plan *plan = mc_plan_with(&p->base, s);
        if (CHECK(plan, "%s: %s: %s", s->name, text.s, mc_last_error())) {
            CHECK(mc_pool_family.verify(&p->base, plan) == MC_OK, "%s: %s: %s", s->name, text.s,
                  mc_last_error());
            CHECK(s->estimate(&p->base) > 0, "%s: %s", s->name, text.s);
        }
        ran[k]++;
        mc_plan_free(plan);
    }
    mc_str_free(&text);
}

TEST(every_pool_solver_gives_the_reference)
{
    static const char *const kernels[] = { NULL, "plain", "avx2", "avx512" };
    int ran[8] = { 0 };
    for (size_t k = 0; k < NELEM(kernels); k++) {
        if (!mc_isa_only(kernels[k])) {
            continue;
        }
        for (int turn = 0; turn < (test_is_full() ? 1500 : 250); turn++) {
            struct mc_pool_problem p;
            static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16 };
            if (pool_any(&p, dtypes[below(5)], below(4) ? 9 : 70)) {
                check_solvers(&p, ran);
            }
        }
    }
    mc_isa_only(NULL);
    /* whole, lanes, rows, slide, ties, packed, reference */
    CHECK(ran[1] > 50 && ran[2] > 50 && ran[5] > ran[1] && ran[6] > ran[5], "ran %d, %d, %d, %d times",
          ran[1], ran[2], ran[5], ran[6]);
}

/* bc01, as a convolutional net has it. */
static struct mc_pool_problem plain_problem(enum mc_pool_mode mode, enum mc_pool_pass pass, int64_t in,
                                            int64_t w, int64_t st)
{
    const int64_t out = (in - w) / st + 1;
    struct mc_pool_problem p = {
        .base = { &mc_pool_family, mc_plan_options_of(NULL) }, .dtype = MC_FLOAT32, .marks = true,
        .s = { .pass = pass, .mode = mode, .key = mode == POOL_MAX ? POOL_KEY_MARKS : POOL_KEY_NONE, .whole = true, .rank = 4, .nd = 2,
               .axis = { -1, 2, 3 }, .dims = { 2, 3, in, in }, .in = { 1, in, in }, .out = { 1, out, out }, .w = { 1, w, w },
               .stride = { 1, st, st }, .mark = MC_UINT8 },
        .at = { { 3 * in * in, in * in, in, 1 }, { 3 * out * out, out * out, out, 1 }, { 3 * out * out, out * out, out, 1 } },
    };
    return p;
}

/* One window over the plane: planned without being named, and right for every number of cells around whole
 * vectors. */
TEST(pool_of_whole_planes)
{
    static const enum mc_pool_mode modes[] = { POOL_SUM, POOL_AVERAGE_INC, POOL_AVERAGE_EXC };
    for (int64_t in = 1; in <= 13; in++) {
        for (size_t m = 0; m < 4 * NELEM(modes); m++) {
            struct mc_pool_problem p = plain_problem(modes[m / 4], m & 1 ? POOL_SPREAD : POOL_FORWARD, in, in,
                                                     2);
            p.dtype = m & 2 ? MC_FLOAT64 : MC_FLOAT32;
            struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
            REQUIRE(plan, "%s", mc_last_error());
            CHECK(in == 1 || strcmp(plan->solver->name, "whole") == 0, "%s", plan->solver->name);
            CHECK(mc_pool_family.verify(&p.base, plan) == MC_OK, "%s", mc_last_error());
            mc_plan_free(plan);
        }
    }
    struct mc_pool_problem p = plain_problem(POOL_MAX, POOL_FORWARD, 7, 7, 7);
    CHECK(strstr(mc_pool_global.refuse(&p.base), "only sums"), "takes maxima");
    p = plain_problem(POOL_SUM, POOL_FORWARD, 7, 6, 7);
    CHECK(strstr(mc_pool_global.refuse(&p.base), "covers the plane"), "takes less than a plane");
}

/* Windows that move by one: planned without being named, and right whatever the border cuts off, at lines of
 * cells around whole vectors, in every mode. */
TEST(pool_of_sliding_windows)
{
    static const enum mc_pool_mode modes[] = { POOL_SUM, POOL_AVERAGE_INC, POOL_AVERAGE_EXC };
    static const struct {
        int64_t w, pad, beyond;
    } cases[] = { { 3, 1, 0 }, { 3, 0, 0 }, { 5, 4, 0 }, { 2, 1, 0 }, { 8, 0, 3 }, { 4, -1, 2 } };
    for (int64_t in = 8; in <= 34; in++) {
        for (size_t m = 0; m < 2 * NELEM(modes) * NELEM(cases); m++) {
            const size_t c = m % NELEM(cases), mode = m / NELEM(cases) / 2;
            struct mc_pool_problem p = plain_problem(modes[mode], POOL_SPREAD, in, cases[c].w, 1);
            const int64_t out = in + 2 * cases[c].pad - cases[c].w + 1 + cases[c].beyond;
            p.dtype = m / NELEM(cases) % 2 ? MC_FLOAT64 : MC_FLOAT32;
            p.s.whole = in % 2;
            for (int i = 1; i < 3; i++) {
                p.s.pad[i] = cases[c].pad;
                p.s.out[i] = out;
            }
            memcpy(p.at[POOL_Y], (int64_t[]){ 3 * out * out, out * out, out, 1 }, 4 * sizeof(int64_t));
            struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
            REQUIRE(plan, "%s", mc_last_error());
            CHECK(strcmp(plan->solver->name, "slide") == 0, "%s", plan->solver->name);
            CHECK(mc_pool_family.verify(&p.base, plan) == MC_OK, "in %d, case %zu: %s", (int)in, m,
                  mc_last_error());
            mc_plan_free(plan);
        }
    }
    struct mc_pool_problem p = plain_problem(POOL_SUM, POOL_SPREAD, 9, 3, 2);
    CHECK(strstr(mc_pool_slide.refuse(&p.base), "stride 1"), "takes windows that jump");
    p = plain_problem(POOL_SUM, POOL_FORWARD, 9, 3, 1);
    CHECK(strstr(mc_pool_slide.refuse(&p.base), "gradients of sums"), "takes sums");
}

/* Every equal cell receives the gradient: planned without being named, with each instruction set, at lines of
 * windows around whole vectors, with windows that the border cuts and cells that are in none. */
TEST(pool_of_ties)
{
    static const char *const kernels[] = { "plain", "avx2", "avx512" };
    static const struct {
        int64_t w, st, pad;
    } cases[] = { { 2, 2, 0 }, { 2, 2, 1 }, { 2, 3, 0 }, { 3, 3, 0 }, { 3, 4, 2 }, { 1, 1, 0 } };
    for (size_t k = 0; k < NELEM(kernels); k++) {
        if (!mc_isa_only(kernels[k])) {
            continue;
        }
        for (int64_t in = 4; in <= 70; in += 1 + in / 20) {
            for (size_t m = 0; m < 2 * NELEM(cases); m++) {
                const size_t c = m / 2;
                struct mc_pool_problem p = plain_problem(POOL_MAX, POOL_SPREAD, in, cases[c].w, cases[c].st);
                const int64_t out = (in + 2 * cases[c].pad - cases[c].w) / cases[c].st + 1;
                p.dtype = m % 2 ? MC_FLOAT64 : MC_FLOAT32;
                p.s.key = POOL_KEY_X;
                for (int i = 1; i < 3; i++) {
                    p.s.pad[i] = cases[c].pad;
                    p.s.out[i] = out;
                }
                memcpy(p.at[POOL_Y], (int64_t[]){ 3 * out * out, out * out, out, 1 }, 4 * sizeof(int64_t));
                memcpy(p.at[POOL_KEY], p.at[POOL_X], sizeof p.at[POOL_X]);
                struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
                REQUIRE(plan, "%s", mc_last_error());
                CHECK(strcmp(plan->solver->name, "ties") == 0, "%s", plan->solver->name);
                CHECK(mc_pool_family.verify(&p.base, plan) == MC_OK, "%s: in %d, case %zu: %s", kernels[k],
                      (int)in, m, mc_last_error());
                mc_plan_free(plan);
            }
        }
    }
    mc_isa_only(NULL);
    struct mc_pool_problem p = plain_problem(POOL_MAX, POOL_SPREAD, 9, 3, 3);
    CHECK(strstr(mc_pool_ties.refuse(&p.base), "ties share"), "takes marks");
    p.s.key = POOL_KEY_X;
    p.s.stride[2] = 2;
    CHECK(strstr(mc_pool_ties.refuse(&p.base), "overlap"), "takes windows that overlap");
    p = plain_problem(POOL_MAX, POOL_SPREAD, 5, 3, 3); /* one window, where columns of results do not count */
    p.s.key = POOL_KEY_X;
    memcpy(p.at[POOL_KEY], p.at[POOL_X], sizeof p.at[POOL_X]);
    CHECK(!mc_pool_ties.refuse(&p.base), "%s", mc_pool_ties.refuse(&p.base));
    for (int step = -1; step < 1; step++) {
        p.at[POOL_KEY][3] = step;
        CHECK(mc_pool_ties.refuse(&p.base), "takes columns %d apart", step);
    }
}

/* Runs a plan, the reference if `truth`. */
static void run_pool(struct mc_pool_problem *p, bool truth, void *x, void *y, void *key)
{
    struct mc_plan *plan = truth ? mc_plan_with(&p->base, &mc_pool_reference)
                                 : mc_pool_plan(p, AS_FLAGS(NULL));
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(truth || strcmp(plan->solver->name, "rows") == 0, "%s", plan->solver->name);
    void *work = mc_alloc(plan->workspace + 64, "test");
    CHECK(plan->run(plan, (void *[POOL_NOPERAND]){ x, y, key }, work, 0) == MC_OK, "%s", mc_last_error());
    mc_free(work);
    mc_plan_free(plan);
}

/* Bits in place of x give the gradient that x gives: at lines of windows around whole vectors, with windows
 * that the border cuts, cells in no window, ties and NaN. */
TEST(pool_bits_of_ties)
{
    static const char *const kernels[] = { "plain", "avx2", "avx512" };
    static const struct {
        int64_t w, v, st, pad;
    } cases[] = { { 2, 2, 2, 0 }, { 2, 2, 2, 1 }, { 2, 2, 3, 0 },
                  { 2, 3, 3, 0 }, { 4, 2, 4, 1 }, { 1, 2, 2, 0 } };
    enum { MOST = 6 * 72 * 72 };
    static float x[MOST], got[MOST], want[MOST], y[MOST], g[MOST];
    static uint8_t key[MOST];
    for (size_t turn = 0; turn < NELEM(kernels) * NELEM(cases) * 60; turn++) {
        const size_t k = turn % NELEM(kernels), c = turn / NELEM(kernels) % NELEM(cases);
        const int64_t in = 4 + below(68);
        if (!mc_isa_only(kernels[k])) {
            continue;
        }
        struct mc_pool_problem p = plain_problem(POOL_MAX, POOL_FORWARD, in, cases[c].w, cases[c].st);
        const int64_t pad[2] = { MC_MIN(cases[c].pad, cases[c].w - 1), MC_MIN(cases[c].pad, cases[c].v - 1) };
        p.s.key = POOL_KEY_BITS;
        for (int i = 1; i < 3; i++) {
            p.s.w[i] = i == 1 ? cases[c].w : cases[c].v;
            p.s.pad[i] = pad[i - 1];
            p.s.out[i] = (in + 2 * pad[i - 1] - p.s.w[i]) / cases[c].st + 1;
        }
        const int64_t u = p.s.out[1], v = p.s.out[2];
        memcpy(p.at[POOL_Y], (int64_t[]){ 3 * u * v, u * v, v, 1 }, 4 * sizeof(int64_t));
        memcpy(p.at[POOL_KEY], p.at[POOL_Y], sizeof p.at[POOL_Y]);
        for (int64_t i = 0; i < 6 * in * in; i++) {
            x[i] = below(50) ? (float)below(4) - 1 : NAN;
            g[i] = (float)(1 + below(1000));
        }
        run_pool(&p, false, x, y, key);
        p.s.pass = POOL_SPREAD;
        run_pool(&p, false, got, g, key);
        p.s.key = POOL_KEY_X;
        memcpy(p.at[POOL_KEY], p.at[POOL_X], sizeof p.at[POOL_X]);
        run_pool(&p, true, want, g, x);
        CHECK(memcmp(got, want, (size_t)(6 * in * in) * sizeof *got) == 0, "%s: in %d, case %zu", kernels[k],
              (int)in, c);
    }
    mc_isa_only(NULL);
}

/* The largest is not a number, or many are equal. */
TEST(ties_of_nan_and_of_equal_cells)
{
    struct mc_pool_problem p = plain_problem(POOL_MAX, POOL_SPREAD, 34, 2, 2);
    p.s.key = POOL_KEY_X;
    p.s.dims[0] = p.s.dims[1] = 1;
    memcpy(p.at[POOL_KEY], p.at[POOL_X], sizeof p.at[POOL_X]);
    static float x[34 * 34], g[17 * 17], key[34 * 34];
    for (int i = 0; i < 34 * 34; i++) {
        const int window = i / 68 * 17 + i % 34 / 2;
        key[i] = window % 3 == 0 ? 5 : window % 3 == 1 && i % 2 ? (float)NAN : (float)(i % 2);
        x[i] = 9;
        g[window] = (float)(1 + window);
    }
    struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
    REQUIRE(plan && strcmp(plan->solver->name, "ties") == 0, "%s", mc_last_error());
    CHECK(plan->run(plan, (void *[]){ x, g, key, NULL, NULL }, NULL, 1) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < 34 * 34; i++) {
        const int window = i / 68 * 17 + i % 34 / 2;
        const float want = window % 3 == 0 ? g[window] : window % 3 == 1 ? 0 : i % 2 ? g[window] : 0;
        CHECK(x[i] >= want && x[i] <= want, "cell %d: %g, not %g", i, (double)x[i], (double)want);
    }
    mc_plan_free(plan);
}

/* The number of the first maximum among four cells; NaN is larger than all. */
static int first_most(const float *v)
{
    int best = 0;
    for (int i = 1; i < 4; i++) {
        best = !isnan(v[best]) && (isnan(v[i]) || v[i] > v[best]) ? i : best;
    }
    return best;
}

/* Rows of 1 to 17 windows of 2 x 2 cells in planes that follow each other: maxima, their marks, and gradients
 * that ties share, with equal cells and NaN. */
TEST(pool_of_short_rows)
{
    static const char *const kernels[] = { "plain", "avx2", "avx512" };
    enum { PLANES = 6, MOST = 34, WINDOWS = PLANES * MOST * MOST / 4 };
    static float x[PLANES * MOST * MOST], y[WINDOWS], g[WINDOWS], dx[PLANES * MOST * MOST];
    static uint8_t mark[WINDOWS];
    for (int turn = 0; turn < 17 * (int)NELEM(kernels); turn++) {
        const int in = 2 + turn % 17 * 2, out = in / 2, all = PLANES * out * out;
        if (!mc_isa_only(kernels[turn / 17])) {
            continue;
        }
        struct mc_pool_problem forward = plain_problem(POOL_MAX, POOL_FORWARD, in, 2, 2),
                               spread = plain_problem(POOL_MAX, POOL_SPREAD, in, 2, 2);
        spread.s.key = POOL_KEY_X;
        memcpy(spread.at[POOL_KEY], spread.at[POOL_X], sizeof spread.at[POOL_X]);
        for (int i = 0; i < 4 * all; i++) {
            x[i] = below(20) ? (float)below(4) : (float)NAN;
            g[i / 4] = (float)(1 + i / 4 % 100);
        }
        struct mc_plan *const plans[] = { mc_pool_plan(&forward, AS_FLAGS(NULL)),
                                          mc_pool_plan(&spread, AS_FLAGS(NULL)) };
        REQUIRE(plans[0] && plans[1], "%s", mc_last_error());
        CHECK(plans[0]->run(plans[0], (void *[]){ x, y, mark, NULL, NULL }, NULL, 1) == MC_OK &&
                  plans[1]->run(plans[1], (void *[]){ dx, g, x, NULL, NULL }, NULL, 1) == MC_OK,
              "%s", mc_last_error());
        int wrong = 0;
        for (int w = 0; w < all; w++) {
            const int corner = w / out * 2 * in + w % out * 2, at[] = { 0, 1, in, in + 1 };
            float cell[4];
            for (int i = 0; i < 4; i++) {
                cell[i] = x[corner + at[i]];
            }
            const int best = first_most(cell);
            wrong += mark[w] != best || memcmp(&y[w], &cell[best], sizeof y[w]) != 0;
            for (int i = 0; i < 4; i++) {
                const float want = cell[i] >= cell[best] ? g[w] : 0;
                wrong += !(dx[corner + at[i]] >= want && dx[corner + at[i]] <= want);
            }
        }
        CHECK(wrong == 0, "%s, rows of %d windows: %d numbers are wrong", kernels[turn / 17], out, wrong);
        mc_plan_free(plans[0]);
        mc_plan_free(plans[1]);
    }
    mc_isa_only(NULL);
}

TEST(pool_words_and_plans)
{
    static const struct { enum mc_pool_mode mode; enum mc_pool_pass pass; const char *word; } cases[] = {
        { POOL_MAX, POOL_FORWARD, "pool f32 max forward marks i13x13 w3x3 s2x2 p0x0 o6x6 planes 6" },
        { POOL_MAX, POOL_SPREAD, "pool f32 max spread marks i13x13 w3x3 s2x2 p0x0 o6x6 planes 6" },
        { POOL_AVERAGE_EXC, POOL_SPREAD, "pool f32 average_exc_pad spread i13x13 w3x3 s2x2 p0x0 o6x6 planes 6" },
    };
    for (size_t i = 0; i < NELEM(cases); i++) {
        struct mc_pool_problem p = plain_problem(cases[i].mode, cases[i].pass, 13, 3, 2);
        struct mc_str word = { 0 };
        mc_pool_family.key(&p.base, &word);
        CHECK(word.s && strcmp(word.s, cases[i].word) == 0, "%s", word.s);
        struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
        CHECK(plan && strcmp(plan->solver->name, "rows") == 0, "%s",
              plan ? plan->solver->name : mc_last_error());
        mc_plan_free(plan);
        mc_str_free(&word);
    }
    struct mc_pool_problem p = plain_problem(POOL_MAX, POOL_FORWARD, 13, 3, 2);
    mc_flag_set("pool.algo", "reference");
    struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
    CHECK(plan && strcmp(plan->solver->name, "reference") == 0, "%s",
          plan ? plan->solver->name : mc_last_error());
    mc_plan_free(plan);
    mc_flag_set("pool.algo", "lanes"); /* declines, and says why */
    CHECK(!mc_pool_plan(&p, AS_FLAGS(NULL)) && strstr(mc_last_error(), "contiguous"), "%s", mc_last_error());
    mc_flag_set("pool.algo", "auto");
    p.s.dims[1] = INT64_MAX / 2;
    CHECK(!mc_pool_plan(&p, AS_FLAGS(NULL)) && mc_last_status() == MC_ESHAPE, "%s", mc_last_error());
}

TEST(pool_plans_when_memory_runs_out)
{
    struct mc_pool_problem p = plain_problem(POOL_SUM, POOL_SPREAD, 8, 2, 2);
    ALLOC_FAIL_LOOP {
        struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
        CHECK(plan ? mc_pool_family.verify(&p.base, plan) == MC_OK || ALLOC_FAILED : ALLOC_FAILED, "%s",
              mc_last_error());
        mc_plan_free(plan);
    }
}

/* Threads divide planes, never sums: the bits are the same. */
TEST(pool_bits_do_not_depend_on_threads)
{
    for (int turn = 0; turn < 40; turn++) {
        struct mc_pool_problem p;
        if (!pool_any(&p, MC_FLOAT32, 40) || p.s.key == POOL_KEY_X) {
            continue;
        }
        void *a[8], *b[8];
        struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
        REQUIRE(plan && mc_pool_family.operands(&p.base, a) == MC_OK &&
                    mc_pool_family.operands(&p.base, b) == MC_OK,
                "%s", mc_last_error());
        void *work = mc_alloc_pages(plan->workspace + 1, "tests");
        CHECK(plan->run(plan, a, work, 1) == MC_OK && plan->run(plan, b, work, 2) == MC_OK, "%s",
              mc_last_error());
        const int role = p.s.pass == POOL_SPREAD ? POOL_X : POOL_Y;
        int64_t far = 0, low = 0;
        for (int i = 0; i < 4; i++) {
            int64_t n = p.s.dims[i];
            for (int k = 0; k < 3 && role == POOL_Y; k++) {
                n = p.s.axis[k] == i ? p.s.out[k] : n;
            }
            far += (n - 1) * (p.at[role][i] > 0 ? p.at[role][i] : -p.at[role][i]);
            low += p.at[role][i] < 0 ? (n - 1) * p.at[role][i] : 0;
        }
        CHECK(memcmp((float *)a[role] + low, (float *)b[role] + low, (size_t)(far + 1) * 4) == 0,
              "the bits differ");
        mc_free_pages(work);
        mc_pool_family.discard(&p.base, a);
        mc_pool_family.discard(&p.base, b);
        mc_plan_free(plan);
    }
}

/* ---- from nodes ---- */

/* One node of a graph by its plan: in[] are its inputs' values, out[] its results, made here. */
static mc_status run_planned(const mc_node *n, mc_array *const *in, mc_array **out)
{
    struct mc_type type[8];
    struct mc_pool_problem p;
    const int64_t *strides[POOL_NARRAY] = { NULL };
    void *operand[POOL_NOPERAND] = { NULL };
    int role[POOL_NARRAY];
    struct mc_infer q = { .op = n->op,
                          .nin = n->nin,
                          .in = type,
                          .value = (const mc_array *const *)in,
                          .attr = n->attr,
                          .nout = n->op->nout };
    for (int i = 0; i < n->nin; i++) {
        type[i] = mc_type_make(in[i]->dtype, in[i]->rank, in[i]->dims);
    }
    TRY(n->op->infer(&q));
    for (int i = 0; i < q.nout; i++) {
        out[i] = mc_array_empty(q.out[i].dtype, q.out[i].rank, q.out[i].dims);
    }
    if (!mc_pool_roles(n, role)) {
        return mc_fail(MC_EARG, "%s has no roles", n->op->name);
    }
    for (int r = 0; r < POOL_NARRAY; r++) {
        const mc_array *a = role[r] < 0             ? NULL
                            : role[r] < POOL_RESULT ? in[role[r]]
                                                    : out[role[r] - POOL_RESULT];
        strides[r] = a ? a->strides : NULL;
        operand[r] = a ? a->data : NULL;
    }
    TRY(mc_pool_problem_of(n, type, (const mc_array *const *)in, strides, &p));
    struct mc_plan *plan = mc_pool_plan(&p, AS_FLAGS(NULL));
    void *work = plan ? mc_alloc_pages(plan->workspace + 1, "tests") : NULL;
    const mc_status s = plan ? plan->run(plan, operand, work, 0) : mc_last_status();
    mc_free_pages(work);
    mc_plan_free(plan);
    return s;
}

TEST(plans_of_nodes_do_what_nodes_do)
{
    static const char *const formulas[] = {
        "pool_2d(x, 2)", "grad(sum(pool_2d(x, [3, 2], [2, 2], [1, 0], ignore_border=True) ** 2), x)", "pool_pick(x, x * x, 3, 1, 1, layout='bc01')",
        "grad(sum(max_pool(x, ds=3, stride=2) ** 2), x)", "pool_3d(x, 2, mode='average_exc_pad')", "pool_grad(x, pool(x, 2, axis=1), 2, axis=1, mode='sum')",
        "pool(x, [2, 2], ties='all', axis=[0, 2])", "pool(x[::2, :, ::-1], [2, 2], axis=[1, 3])", "pool(dimshuffle(x, [1, 2, 3, 0]), 2, layout='c01b')", "pool_grad(x, pool(x, [2, 2], ties='all'), [2, 2], ties='all')",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        const int64_t dims[4] = { 4, 5, 6, 7 };
        mc_array *x = mc_array_new(MC_FLOAT32, 4, dims);
        for (int64_t k = 0; k < 4 * 5 * 6 * 7; k++) {
            ((float *)(void *)x->data)[k] = (float)below(9);
        }
        mc_graph *g = mc_graph_new();
        mc_node *in = mc_input_sized(g, "x", MC_FLOAT32, 4, dims), *y = mc_formula(g, formulas[i]);
        size_t count = 0, planned = 0;
        mc_node **list = mc_graph_reach(1, &y, &count);
        CHECK(!mc_is_error(y), "%s: %s", formulas[i], mc_error(g));
        for (size_t k = 0; k < count; k++) {
            int role[POOL_NARRAY];
            mc_array *value[8] = { 0 }, *want[2] = { 0 }, *have[2] = { 0 };
            if (!mc_pool_roles(list[k], role)) {
                continue;
            }
            planned++;
            mc_status s = mc_eval(1, &in, &x, list[k]->nin, list[k]->in, value);
            s = s < 0 ? s : mc_eval_node(list[k], value, want);
            CHECK(s == MC_OK && run_planned(list[k], value, have) == MC_OK, "%s: %s", formulas[i],
                  mc_last_error());
            for (int r = 0; r < list[k]->nout && have[r] && want[r]; r++) {
                CHECK(mc_array_differs(have[r], want[r], 1e-5, 1e-5) < 0, "%s: result %d of %s differs",
                      formulas[i], r, list[k]->op->name);
            }
            for (int r = 0; r < 8; r++) {
                mc_array_unref(&value[r]);
            }
            for (int r = 0; r < 2; r++) {
                mc_array_unref(&want[r]);
                mc_array_unref(&have[r]);
            }
        }
        CHECK(planned > 0, "%s has no pooling", formulas[i]);
        mc_free(list);
        mc_array_unref(&x);
        mc_graph_free(g);
    }
}
