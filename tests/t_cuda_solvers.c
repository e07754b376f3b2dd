/* t_cuda_solvers.c: solvers of pooling and normalisation on a GPU against the host's reference, and what a
 * recorded function needs of every solver.  Products and convolutions are tested in t_cuda_gemm.c and
 * t_cuda_conv.c; that all texts compile, without a GPU, in t_cuda_texts.c. */
#include "cuda_problems.h"
#include "heavy/norm/solver.h"
#include "norm_problems.h"
#include "heavy/pool/solver.h"
#include "pool_problems.h"
#include <stdlib.h>

/* ---- pooling, normalisation ---- */

/* Forward poolings of floats may add a bias along an axis that is not pooled, and apply an activation. */
static void with_epilogue(struct mc_pool_problem *p)
{
    const int axis = (int)below(p->s.rank);
    const bool pooled = axis == p->s.axis[0] || axis == p->s.axis[1] || axis == p->s.axis[2];
    if (p->s.pass == POOL_FORWARD && mc_is_float(p->dtype) && below(3)) {
        p->has_bias = !pooled && below(4);
        p->channel = axis;
        p->act = (enum mc_act)below(ACT_SWISH + 1);
    }
}

TEST(cuda_pool_gives_the_reference)
{
    static const mc_dtype dtypes[] = {
        MC_FLOAT32, MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16, MC_INT32
    };
    struct column_sums t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (int turn = 0; turn < (test_is_full() ? 1500 : 250); turn++) {
        struct mc_pool_problem p;
        if (pool_any(&p, dtypes[below(6)], below(4) ? 9 : 70) &&
            (p.dtype != MC_INT32 || p.s.pass == POOL_FORWARD)) {
            p.base = (struct mc_problem){ &mc_pool_cuda, mc_plan_options_of(&mc_site_cuda) };
            with_epilogue(&p);
            every(&p.base, t);
        }
    }
    CHECK(t[0].served > 50 && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

/* gap: elements between x's images */
struct window { int64_t in[2], w[2], stride[2], pad[2], channels, gap; };

/* Maxima with marks (v < 2) or bits of ties (v >= 4), or sums, forward or back, in a dtype that changes with
 * the row; so many channels innermost, or, 0, planes in front. */
static bool pooling_of(struct mc_pool_problem *p, size_t row, int v, const struct window *r)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_BFLOAT16, MC_FLOAT64 };
    const bool innermost = r->channels > 0;
    bool ok = true;
    *p = (struct mc_pool_problem){ .base = { &mc_pool_cuda, mc_plan_options_of(&mc_site_cuda) },
                                   .dtype = dtypes[(row + (size_t)v / 2) % 3],
                                   .marks = row % 3 != 1 };
    p->s = (struct mc_pool_shape){ .pass = v & 1 ? POOL_SPREAD : POOL_FORWARD,
                                   .mode = v & 2 ? (enum mc_pool_mode)(POOL_SUM + row % 3) : POOL_MAX,
                                   .key = v & 4   ? POOL_KEY_BITS
                                          : v & 2 ? POOL_KEY_NONE
                                                  : POOL_KEY_MARKS,
                                   .whole = row & 1,
                                   .rank = 4,
                                   .nd = 2,
                                   .axis = { -1, -1, -1 },
                                   .in = { 1 },
                                   .out = { 1 },
                                   .w = { 1 },
                                   .stride = { 1 },
                                   .mark = row == 4 && !(v & 4) ? MC_INT32 : MC_UINT8 };
    for (int k = 0; k < 2; k++) {
        ok = ok &&
             pool_slot(&p->s, k + 1, k + (innermost ? 1 : 2), r->in[k], r->w[k], r->stride[k], r->pad[k]);
    }
    const int64_t planes = 70000 / (innermost ? r->channels : 3) / (p->s.out[1] * p->s.out[2]) + 1;
    int64_t y[4] = { innermost ? planes : 3, innermost ? r->channels : planes, p->s.out[1], p->s.out[2] };
    memcpy(p->s.dims, y, sizeof y);
    memcpy(p->s.dims + (innermost ? 1 : 2), r->in, sizeof r->in);
    if (innermost) {
        memcpy(y + 1, (int64_t[3]){ p->s.out[1], p->s.out[2], r->channels }, 3 * sizeof *y);
        p->s.dims[3] = r->channels;
    }
    pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, p->s.dims, true, p->at[POOL_X]);
    pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, y, true, p->at[POOL_Y]);
    pool_lay_out(4, (int[4]){ 0, 1, 2, 3 }, y, true, p->at[POOL_KEY]);
    p->at[POOL_X][0] += r->gap;
    return ok;
}

static void each_window(const struct window *rows, size_t n)
{
    struct column_sums t[2] = { { 0 } };
    int tried = 0;
    GPU_OR_SKIP();
    for (size_t i = 0; i < n; i++) {
        for (int v = 0; v < (rows[i].w[0] * rows[i].w[1] <= POOL_BITS ? 6 : 4); v++, tried++) {
            struct mc_pool_problem p;
            REQUIRE(pooling_of(&p, i, v, &rows[i]), "row %zu", i);
            with_epilogue(&p);
            every(&p.base, t);
        }
    }
    CHECK(t[0].served == tried && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

/* Enough of it that threads have several windows: lines of whole fours and others, windows apart and over
 * each other. */
TEST(cuda_pool_in_lines)
{
    static const struct window rows[] = {
        { { 24, 24 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, 0, 0 }, { { 13, 16 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, 0, 0 }, { { 27, 29 }, { 3, 3 }, { 2, 2 }, { 0, 0 }, 0, 0 },
        { { 10, 12 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, 0, 0 }, { { 9, 20 }, { 2, 5 }, { 3, 4 }, { 1, 2 }, 0, 0 }, { { 7, 7 }, { 2, 3 }, { 2, 1 }, { 0, 2 }, 0, 0 },
        { { 6, 28 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, 0, 0 }, { { 9, 14 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, 0, 0 }, { { 6, 32 }, { 3, 2 }, { 2, 1 }, { 0, 0 }, 0, 2 },
        { { 7, 14 }, { 7, 7 }, { 7, 7 }, { 0, 0 }, 0, 0 },      /* one cell a thread, of windows that the text knows */
    };
    each_window(rows, NELEM(rows));
}

/* Channels innermost: as many as threads take at once, and others; arrays whose images do not begin where
 * several can be moved. */
TEST(cuda_pool_of_lanes)
{
    static const struct window rows[] = {
        { { 24, 24 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, 64, 0 }, { { 13, 16 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, 40, 0 }, { { 27, 29 }, { 3, 3 }, { 2, 2 }, { 0, 0 }, 24, 3 },
        { { 10, 12 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, 72, 0 }, { { 9, 20 }, { 2, 5 }, { 3, 4 }, { 1, 2 }, 50, 0 }, { { 7, 7 }, { 2, 3 }, { 2, 1 }, { 0, 2 }, 16, 0 },
        { { 25, 17 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, 32, 0 }, { { 11, 10 }, { 2, 1 }, { 3, 2 }, { 0, 0 }, 24, 3 }, { { 14, 15 }, { 3, 2 }, { 3, 4 }, { 0, 0 }, 16, 0 },
        { { 12, 13 }, { 4, 5 }, { 4, 4 }, { 2, 0 }, 16, 0 },    /* so many sums that a thread takes fewer lanes */
    };
    each_window(rows, NELEM(rows));
}

TEST(cuda_norm_gives_the_reference)
{
    struct column_sums t[2] = { { 0 } };
    GPU_OR_SKIP();
    for (int turn = 0; turn < (test_is_full() ? 1000 : 150); turn++) {
        struct mc_norm_problem p;
        norm_any(&p, floats[norm_below(4)]);
        p.base = (struct mc_problem){ &mc_norm_cuda, mc_plan_options_of(&mc_site_cuda) };
        every(&p.base, t);
    }
    CHECK(t[0].served > 100 && t[0].failed == 0, "served %d, failed %d", t[0].served, t[0].failed);
}

/* ---- what a recorded function needs of every plan ---- */

static void *downloaded(const struct mc_extent *e, const void *there)
{
    const size_t size = mc_dtypes[e->dtype].size;
    void *here = malloc((size_t)e->count * size);
    CHECK(mc_cuda_copy_to_host(mc_cuda_current(), here, (const char *)there - (size_t)e->before * size,
                               (size_t)e->count * size) >= 0,
          "%s", mc_last_error());
    return here;
}

/* Run, and recorded and replayed twice: the same bits. */
static void replays(const struct mc_problem *p, const struct mc_extent *result, int role,
                    const struct mc_solver *only)
{
    struct mc_cuda *d = mc_cuda_current();
    for (int k = 0; p->family->solvers[k]; k++) {
        const struct mc_solver *s = p->family->solvers[k];
        void *operand[8], *work = NULL, *graph = NULL;
        struct mc_plan *plan = (only && s != only) || (s->refuse && s->refuse(p)) ? NULL : mc_plan_with(p, s);
        if (!plan) {
            continue;
        }
        REQUIRE(p->family->operands(p, operand) >= 0, "%s", mc_last_error());
        work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
        CHECK(plan->run(plan, operand, work, 0) >= 0, "%s: %s", s->name, mc_last_error());
        void *want = downloaded(result, operand[role]);
        CHECK(mc_cuda_clear(d, (char *)operand[role] - (size_t)result->before * mc_dtypes[result->dtype].size,
                            (size_t)result->count * mc_dtypes[result->dtype].size) >= 0,
              "%s", mc_last_error());
        CHECK(mc_cuda_capture_begin(d) >= 0, "%s: %s", s->name, mc_last_error());
        const mc_status ran = plan->run(plan, operand, work, 0);
        CHECK(ran >= 0 && mc_cuda_capture_end(d, &graph) >= 0 && graph, "%s cannot be recorded: %s", s->name,
              mc_last_error());
        for (int i = 0; i < 2 && graph; i++) {
            CHECK(mc_cuda_replay(d, graph) >= 0, "%s: %s", s->name, mc_last_error());
        }
        void *have = downloaded(result, operand[role]);
        CHECK(memcmp(want, have, (size_t)result->count * mc_dtypes[result->dtype].size) == 0,
              "%s: replayed, other bits come out", s->name);
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
        const struct mc_conv_problem p = convolution("n8c16f24 i20x21 k3x3 p1x1", (enum mc_conv_pass)pass,
                                                     &variants[0]);
        struct mc_extent e[5];
        mc_conv_extents(&p, e);
        replays(&p.base, &e[mc_conv_result(p.s.pass)], mc_conv_result(p.s.pass), NULL);
    }
    const struct mc_conv_problem last = convolution("n8c16f24 i20x21 k3x3 p1x1", CONV_FORWARD,
                                                    &variants[4]); /* channels innermost */
    struct mc_extent of[5];
    mc_conv_extents(&last, of);
    replays(&last.base, &of[CONV_Y], CONV_Y, &mc_conv_cuda_tma);
    const struct mc_gemm_problem g = product(MC_FLOAT32, 65, 97, 333, "nt", &products[0]);
    struct mc_extent e[4];
    mc_gemm_extents(&g, e);
    replays(&g.base, &e[GEMM_C], GEMM_C, NULL);
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
        struct mc_plan *plan = s->refuse && s->refuse(&in_place.base) ? NULL
                                                                      : mc_plan_with(&in_place.base, s);
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
            const int64_t row = i / in_place.n, at = row / in_place.m * in_place.cs[0] +
                                                     row % in_place.m * in_place.cs[1] + i % in_place.n;
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
