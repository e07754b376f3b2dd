/* t_cuda_tma.c: convolutions whose tiles of rows are boxes of images and places: results on a Hopper, who
 * makes which tile anywhere. */
#include "cuda_problems.h"
#include "heavy/conv/cuda/implicit/tma.h"
#include "heavy/gemm/cuda/hopper.h"
#include <stdlib.h>

#define HOPPER_OR_SKIP()                   \
    do {                                   \
        GPU_OR_SKIP();                     \
        if (mc_hopper_refuse()) {          \
            SKIP("the GPU is no Hopper");  \
        }                                  \
    } while (0)

/* Boxes of places: rows and columns that fill no tile, several tiles a block, images and channels that end
 * within a box, places that no tap reaches, strides and dilation, filters that lie either way and
 * backwards. */
TEST(cuda_boxes_of_places)
{
    static const char *const shapes[] = { "n5c64f32 i9x8 k3x3 p1x1", "n130c8f72 i5x6 k3x3 p2x2 flip", "n3c40f200 i13x13 k3x3", "n2c16f264 i20x17 k5x4 s2x2 p2x1", "n1c8f8 i40 k7 p3",
                                          "n2c72f24 i15x15 k3x3 d2x2 p2x2", "n2c8f16 i3x3 k1x1 p2x2", "n300c128f64 i3x4 k2x2", "n2c8f8 i12x16 k3x3 p-1x-2 q0x-1", "n2c24f40 i33x70 k1x1",
                                          "n3c24f40 i15x17 k3x3 s2x2 p1x1", "n2c72f24 i19x14 k3x5 s3x2 d2x3 p2x4", "n5c16f32 i10x11 k1x1 s2x3", "n2c8f16 i12x13 k2x1 s4x2 p1x0 flip", "n2c40f64 i6x9x10 k3x3x3 s2x2x2 p1x1x1", "n3c16f72 i5x7x12 k3x2x3 s1x2x1 d2x1x1 p2x1x0 flip", "n2c24f16 i4x5x6 k1x1x1", "n3c128f64 i7x8x9 k3x1x1 s2x1x1 p1x0x0", "n2c8f8 i9x8x17 k2x4x3 s8x5x4 p1x1x1", "n4c16f24 i5x33x9 k1x1x3 p0x0x1",
                                          "n1c264f40 i7x5 k3x3 p1x1", "n2c136f96 i6x7 k3x3 s2x2 p1x1", "n1c64f72 i3x4x5 k3x3x3 p1x1x1" };
    static const struct {
        int variant;
        bool tf32, w_otherwise;
    } kinds[] = {
        { 4 }, { 1, true }, { 14 }, { 11, true }, { 17, false, true }, { 15, true, true }, { 14, false, true }
    };
    struct column_sums t = { 0 };
    int wanted = 0;
    HOPPER_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int pass = CONV_FORWARD; pass <= CONV_INPUTS; pass++) {
            for (size_t v = 0; v < NELEM(kinds); v++) {
                struct mc_conv_problem p = convolution(shapes[s], (enum mc_conv_pass)pass,
                                                       &variants[kinds[v].variant]);
                p.tf32 = kinds[v].tf32;
                if (kinds[v].w_otherwise) {
                    const int64_t *k = p.s.k, f = p.s.f;
                    const int64_t across[] = { 1, k[0] * k[1] * k[2] * f, k[1] * k[2] * f, k[2] * f, f };
                    memcpy(p.at.w, across, sizeof across);
                }
                one(&p.base, &mc_conv_cuda_tma, &t);
                wanted++;
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served == wanted && t.failed == 0, "served %d of %d, failed %d", t.served, wanted, t.failed);
}

/* Operands that begin where the copy engine cannot. */
static void unaligned(enum mc_conv_pass pass, const struct mc_solver *solver)
{
    const struct mc_conv_problem p = convolution("n4c16f24 i9x8 k3x3 p1x1", pass, &variants[4]);
    struct mc_extent e[5];
    void *operand[8];
    struct mc_plan *plan = mc_plan_with(&p.base, solver);
    REQUIRE(plan, "%s", mc_last_error());
    mc_conv_extents(&p, e);
    for (int i = 0; i < 5; i++) { /* what is there has room for one element more */
        e[i].count += e[i].count > 0;
    }
    for (int shifted = CONV_X; shifted <= CONV_Y; shifted++) {
        REQUIRE(mc_cuda_operands(e, 5, operand) >= 0, "%s", mc_last_error());
        void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
        operand[shifted] = (uint16_t *)operand[shifted] + 1;
        CHECK(plan->run(plan, operand, work, 0) >= 0, "%s", mc_last_error());
        const double off = mc_conv_cuda_error(&p.base, operand);
        CHECK(off >= 0 && off <= mc_conv_cuda_allows(&p.base), "operand %d shifted: off by %g", shifted, off);
        operand[shifted] = (uint16_t *)operand[shifted] - 1;
        mc_site_cuda.give(work);
        mc_cuda_discard(e, 5, operand);
    }
    mc_plan_free(plan);
}

TEST(cuda_boxes_of_unaligned_operands)
{
    HOPPER_OR_SKIP();
    unaligned(CONV_FORWARD, &mc_conv_cuda_tma);
    unaligned(CONV_WEIGHTS, &mc_conv_cuda_tma_weights);
}

/* ---- gradients of filters ---- */

/* Filters whose contiguous axis is `axis`: filters (0) or channels (1). */
static void lay_filters(struct mc_conv_problem *p, int axis)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t other = axis == 0 ? s->c : s->f, own = axis == 0 ? s->f : s->c;
    const int64_t tap = axis == 0 ? own * other : own, line = tap * s->k[2];
    p->at.w[axis] = 1;
    p->at.w[1 - axis] = axis == 0 ? own : line * s->k[1] * s->k[0];
    p->at.w[2] = line * s->k[1];
    p->at.w[3] = line;
    p->at.w[4] = tap;
}

/* Boxes that end outside of y, taps that read inside from few boxes or none, strides and dilation, units that
 * end within a tile, tiles that one block sums and others that many share, results that lie either way and
 * backwards, added to others. */
TEST(cuda_boxes_of_weights)
{
    static const char *const shapes[] = {
        "n5c64f32 i9x8 k3x3 p1x1", "n33c8f72 i5x6 k3x3 p2x2 flip", "n3c40f200 i13x13 k3x3",
        "n2c16f264 i20x17 k5x4 s2x2 p2x1", "n1c8f8 i40 k7 p3", "n2c72f24 i15x15 k3x3 d2x2 p2x2",
        "n2c8f16 i3x3 k1x1 p2x2", "n2c8f8 i12x16 k3x3 p-1x-2 q0x-1", "n2c24f40 i33x70 k1x1",
        "n3c136f520 i9x11 k1x1", "n2c32f64 i300 k2 d16", "n1c256f32 i65x65 k1x2 p0x1", "n1c520f264 i8x8 k2x2 p3x0 d5x1",
        "n2c64f64 i31x29 k3x3 s3x8 p1x1", "n17c320f160 i7x7 k1x1", "n1c64f64 i24x24 k3x3 d12x12 p12x12 flip",
        "n2c24f40 i5x9x7 k3x3x3 p1x1x1", "n1c72f16 i6x7x8 k2x1x3 s2x1x3 p0x0x1 d3x1x1",
    };
    static const int kinds[] = { 4, 14, 12, 5 };
    struct column_sums t = { 0 };
    int wanted = 0;
    HOPPER_OR_SKIP();
    for (size_t s = 0; s < NELEM(shapes); s++) {
        for (int axis = 0; axis < 2; axis++) {
            for (size_t v = 0; v < NELEM(kinds); v++) {
                struct variant kind = variants[kinds[v]];
                kind.layout = B01C;
                struct mc_conv_problem p = convolution(shapes[s], CONV_WEIGHTS, &kind);
                lay_filters(&p, axis);
                p.alpha = v == 3 ? -0.5 : 1;
                p.beta = v == 1 ? 1 : v == 3 ? 0.25 : 0;
                one(&p.base, &mc_conv_cuda_tma_weights, &t);
                wanted++;
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served == wanted && t.failed == 0, "served %d of %d, failed %d", t.served, wanted, t.failed);
}

/* ---- who makes which tile ---- */

/* Where position u of a phase lies in the result. */
static int place(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tile *t, int axis, int u)
{
    return u * a->phases[axis] + t->phase[axis];
}

/* In how many tiles each place of each image is, and each column; a tile beyond all of them is none. */
static void every_position_once(const struct mc_conv_tma_args *a, const int64_t size[3],
                                const struct mc_conv_tma_tiling *c, const struct mc_conv_tma_tile *tile,
                                const char *what)
{
    const int64_t places = size[0] * size[1] * size[2] * a->images;
    int *seen = calloc((size_t)places, sizeof *seen);
    int64_t wrong = 0;
    REQUIRE(seen, "no memory");
    for (int64_t i = 0; i < c->tiles; i++) {
        const struct mc_conv_tma_tile *t = &tile[i];
        int end[3];
        for (int axis = 0; axis < 3; axis++) {
            end[axis] = MC_MIN(t->at[axis] + c->box[axis + 1], a->phase[axis][t->phase[axis]].out);
        }
        for (int n = t->image; n < MC_MIN(t->image + c->box[0], a->images); n++) {
            for (int z = t->at[0]; z < end[0]; z++) {
                for (int y = t->at[1]; y < end[1]; y++) {
                    for (int x = t->at[2]; x < end[2]; x++) {
                        const int64_t line = (n * size[0] + place(a, t, 0, z)) * size[1] + place(a, t, 1, y);
                        seen[line * size[2] + place(a, t, 2, x)] += MC_MIN(c->tn, a->results - t->column);
                    }
                }
            }
        }
    }
    for (int64_t i = 0; i < places; i++) {
        wrong += seen[i] != a->results;
    }
    CHECK(wrong == 0, "%s: %lld places are not made once", what, (long long)wrong);
    free(seen);
}

/* Taps of the convolution through which some place of a tile meets an element, one by one. */
static int taps_of(const struct mc_conv_problem *p, const struct mc_conv_tma_args *a,
                   const struct mc_conv_tma_tiling *c, const struct mc_conv_tma_tile *t)
{
    const bool forward = p->s.pass == CONV_FORWARD;
    int n = 1;
    for (int axis = 0; axis < 3; axis++) {
        int met = 0;
        const int64_t out = forward ? p->s.out[axis] : p->s.in[axis];
        for (int k = 0; k < p->s.k[axis]; k++) {
            bool meets = false;
            for (int u = t->at[axis]; u < t->at[axis] + c->box[axis + 1]; u++) {
                const int64_t i = place(a, t, axis, u), stride = p->s.stride[axis];
                const int64_t at = forward ? i * stride - p->s.pad[axis] + k * p->s.dilation[axis]
                                           : i + p->s.pad[axis] - k * p->s.dilation[axis];
                meets = meets ||
                        (i < out && at >= 0 &&
                         (forward ? at < p->s.in[axis] : at % stride == 0 && at / stride < p->s.out[axis]));
            }
            met += meets;
        }
        n *= met;
    }
    return n;
}

TEST(boxes_are_handed_out_evenly)
{
    static const struct { const char *name, *shape; enum mc_conv_pass pass; bool merged; } rows[] = {
        { "edges of two taps",   "n128c384f384 i11x11 k3x3 p2x2",                 CONV_FORWARD },
        { "few images",          "n3c64f72 i28x30 k5x3 d1x2 p2x2",                CONV_FORWARD },
        { "places without taps", "n40c128f64 i3x3 k1x1 p3x3",                     CONV_FORWARD },
        { "strides",             "n32c256f200 i56x57 k3x3 s2x2 p1x1",             CONV_FORWARD },
        { "three axes",          "n3c64f72 i9x28x30 k3x5x3 s2x1x2 p1x2x1",        CONV_FORWARD },
        { "phases",              "n8c200f256 i56x57 k3x3 s2x2 p1x1",              CONV_INPUTS  },
        { "phases without taps", "n40c128f64 i29x31 k1x2 s3x4",                   CONV_INPUTS  },
        { "dilated phases",      "n3c72f64 i40x41 k5x3 s4x6 d2x4 p2x3",           CONV_INPUTS  },
        { "phases of three axes", "n2c64f128 i15x28x28 k3x3x3 s2x2x2 p1x1x1",     CONV_INPUTS  },
        { "pointwise",           "n5c64f256 i65x65 k1x1",                         CONV_FORWARD, .merged = true },
    };
    enum { BLOCKS = 132 };
    for (size_t r = 0; r < NELEM(rows); r++) {
        const struct mc_conv_problem p = convolution(rows[r].shape, rows[r].pass, &variants[4]);
        const int64_t *size = rows[r].merged                 ? (int64_t[]){ 1, 1, 1 }
                              : rows[r].pass == CONV_FORWARD ? p.s.out
                                                             : p.s.in;
        struct mc_conv_tma_args of, *a = &of;
        mc_conv_tma_shape(&p, a);
        const struct mc_conv_tma_tiling c = mc_conv_tma_best_tiling(a);
        int first[BLOCKS + 1], least = INT32_MAX,
                               late = 0; /* late: taps of a block before it got its last tile, at most */
        CHECK(c.tn > 0 && c.seconds > 0 && c.box[0] * c.box[1] * c.box[2] * c.box[3] <= 128 * c.mi,
              "%s: %d x %d x %d x %d", rows[r].name, c.box[0], c.box[1], c.box[2], c.box[3]);
        CHECK(a->images == p.s.n * (rows[r].merged ? p.s.out[1] * p.s.out[2] : 1), "%s: %d images",
              rows[r].name, a->images);
        struct mc_conv_tma_tile *tile = malloc((size_t)c.tiles * sizeof *tile);
        REQUIRE(tile && mc_conv_tma_hand_out(a, &c, BLOCKS, tile, first), "%s", mc_last_error());
        CHECK(first[0] == 0 && first[BLOCKS] == c.tiles, "%s: %d to %d of %lld", rows[r].name, first[0],
              first[BLOCKS], (long long)c.tiles);
        every_position_once(a, size, &c, tile, rows[r].name);
        for (int b = 0; b < BLOCKS; b++) {
            int own = 0, last = 0;
            for (int i = first[b]; i < first[b + 1]; i++) {
                own += last = taps_of(&p, a, &c, &tile[i]);
            }
            least = MC_MIN(least, own);
            late = MC_MAX(late, own - last);
        }
        /* a tile's results count for less than a tap */
        CHECK(late <= least + c.tiles / BLOCKS + 1,
              "%s: a block with %d taps got one more tile, another has %d in all", rows[r].name, late, least);
        free(tile);
    }
}

/* ---- who sums which steps of a tile ---- */

static int by_tile(const void *a, const void *b)
{
    const struct mc_conv_tma_weights_job *x = a, *y = b;
    return x->column != y->column ? x->column - y->column
           : x->row != y->row     ? x->row - y->row
                                  : x->first - y->first;
}

/* Jobs of a tile begin where others end; each of several has the next part of its sum, and no other sum has
 * it. */
static void every_step_once(const struct mc_conv_tma_weights_lists *l, int64_t tiles, const char *what)
{
    const int n = l->first[l->blocks];
    int64_t ended = 0;
    int parts = 0;
    qsort(l->jobs, (size_t)n, sizeof *l->jobs, by_tile);
    for (int i = 0, end = 0; i < n; i = end, ended++) {
        const struct mc_conv_tma_weights_job *j = &l->jobs[i];
        const struct mc_conv_tma_weights_sum *sum = NULL;
        int at = 0;
        for (end = i; end < n && l->jobs[end].row == j->row && l->jobs[end].column == j->column; end++) {
            CHECK(l->jobs[end].first == at, "%s: a job begins at step %d, not %d", what, l->jobs[end].first,
                  at);
            CHECK(l->jobs[end].count > 0 || end == i, "%s: a job of no steps", what);
            at += l->jobs[end].count;
        }
        for (int s = 0; s < l->nsums; s++) {
            sum = l->sums[s].row == j->row && l->sums[s].column == j->column ? &l->sums[s] : sum;
        }
        CHECK((sum != NULL) == (end - i > 1) && (!sum || sum->parts == end - i), "%s: %d jobs of a tile",
              what, end - i);
        for (int k = i; k < end; k++) {
            CHECK(l->jobs[k].part == (sum ? sum->first + k - i : -1), "%s: part %d", what, l->jobs[k].part);
        }
        parts += sum ? sum->parts : 0;
    }
    for (int s = 1; s < l->nsums; s++) {
        CHECK(l->sums[s].first == l->sums[s - 1].first + l->sums[s - 1].parts, "%s: sum %d", what, s);
    }
    CHECK(parts == l->parts && ended == tiles, "%s: %d of %d parts, %lld of %lld tiles", what, parts,
          l->parts, (long long)ended, (long long)tiles);
}

/* The steps of a tile are the boxes that one of its taps reaches, counted one by one. */
static int64_t steps_of(const struct mc_conv_tma_weights_args *a, const struct mc_conv_tma_weights_tiling *c,
                        int unit)
{
    const int units = c->taps_down ? c->down * c->mi : c->across * c->q;
    int from[3] = { 1 << 20, 1 << 20, 1 << 20 }, to[3] = { -1, -1, -1 };
    for (int u = unit; u < MC_MIN(unit + units, a->k[0] * a->k[1] * a->k[2] * a->chunks); u++) {
        const int tap = u / a->chunks,
                  k[3] = { tap / a->k[2] / a->k[1], tap / a->k[2] % a->k[1], tap % a->k[2] };
        int first[3] = { -1, -1, -1 }, last[3] = { -1, -1, -1 };
        for (int axis = 0; axis < 3; axis++) {
            for (int o = 0; o < a->out[axis]; o++) {
                const int at = o * a->stride[axis] - a->pad[axis] + k[axis] * a->dilation[axis];
                if (at >= 0 && at < a->in[axis]) {
                    first[axis] = first[axis] < 0 ? o / c->box[axis + 1] : first[axis];
                    last[axis] = o / c->box[axis + 1];
                }
            }
        }
        for (int axis = 0; axis < 3 && last[0] >= 0 && last[1] >= 0 && last[2] >= 0; axis++) {
            from[axis] = MC_MIN(from[axis], first[axis]);
            to[axis] = MC_MAX(to[axis], last[axis]);
        }
    }
    return to[0] < 0 ? 0
                     : (int64_t)(to[0] - from[0] + 1) * (to[1] - from[1] + 1) * (to[2] - from[2] + 1) *
                           ((a->images + c->box[0] - 1) / c->box[0]);
}

TEST(steps_of_weights_are_handed_out_once)
{
    static const struct { const char *name; struct mc_conv_tma_weights_args a; } rows[] = {
        { "many terms",      { .in = { 1, 1, 16000 }, .out = { 1, 1, 15968 }, .k = { 1, 1, 2 }, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 32 }, .images = 16, .filters = 64, .channels = 32, .chunks = 1 } },
        { "many tiles",      { .in = { 1, 8, 8 }, .out = { 1, 8, 8 }, .k = { 1, 3, 3 }, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 }, .pad = { 0, 1, 1 }, .images = 2, .filters = 2048, .channels = 1024, .chunks = 16 } },
        { "wide dilation",   { .in = { 1, 65, 65 }, .out = { 1, 65, 65 }, .k = { 1, 3, 3 }, .stride = { 1, 1, 1 }, .dilation = { 1, 36, 36 }, .pad = { 0, 36, 36 }, .images = 3, .filters = 256, .channels = 2048, .chunks = 32 } },
        { "taps of nothing", { .in = { 1, 3, 3 }, .out = { 1, 9, 9 }, .k = { 1, 3, 3 }, .stride = { 1, 1, 1 }, .dilation = { 1, 9, 9 }, .pad = { 0, 12, 12 }, .images = 5, .filters = 72, .channels = 200, .chunks = 4 } },
        { "strides",         { .in = { 1, 129, 131 }, .out = { 1, 65, 44 }, .k = { 1, 3, 3 }, .stride = { 1, 2, 3 }, .dilation = { 1, 1, 1 }, .pad = { 0, 1, 1 }, .images = 1, .filters = 128, .channels = 128, .chunks = 2 } },
        { "planes",          { .in = { 8, 28, 29 }, .out = { 4, 14, 15 }, .k = { 3, 3, 3 }, .stride = { 2, 2, 2 }, .dilation = { 1, 1, 1 }, .pad = { 1, 1, 1 }, .images = 3, .filters = 128, .channels = 72, .chunks = 2 } },
    };
    GPU_OR_SKIP();
    for (size_t r = 0; r < NELEM(rows); r++) {
        const struct mc_conv_tma_weights_args *a = &rows[r].a;
        for (int taps_down = 0; taps_down < 2; taps_down++) {
            struct mc_conv_tma_weights_tiling c = mc_conv_tma_weights_best_tiling(a, taps_down != 0);
            const int terms = c.box[0] * c.box[1] * c.box[2] * c.box[3];
            REQUIRE(c.mi > 0 && c.seconds > 0, "%s: no tiling", rows[r].name);
            CHECK(terms <= 16 * c.ks && mc_conv_tma_weights_slots(&c) >= 2, "%s: %d terms, %d steps",
                  rows[r].name, terms, c.ks);
            for (int way = 0; way < 4;
                 way++) { /* as chosen; shared evenly; a tile a block; three parts each */
                struct mc_conv_tma_weights_lists l;
                c.splits = way == 0 ? c.splits : way == 1 ? 0 : way == 2 ? 1 : 3;
                struct mc_conv_tma_weights_args boxed = *a;
                memcpy(boxed.box, c.box, sizeof c.box);
                REQUIRE(mc_conv_tma_weights_hand_out(&boxed, &c, &l), "%s", mc_last_error());
                int64_t all = 0, most = 0, least = INT64_MAX, wanted = 0;
                for (int b = 0; b < l.blocks; b++) {
                    int64_t own = 0;
                    for (int i = l.first[b]; i < l.first[b + 1]; i++) {
                        own += l.jobs[i].count;
                    }
                    all += own;
                    most = MC_MAX(most, own);
                    least = MC_MIN(least, own);
                }
                const int along = taps_down ? c.down * c.mi : c.across * c.q;
                const int64_t units = (int64_t)a->k[0] * a->k[1] * a->k[2] * a->chunks,
                              tiles = c.tiles / ((units + along - 1) / along);
                for (int u = 0; u < units; u += along) {
                    wanted += tiles * steps_of(&boxed, &c, u);
                }
                CHECK(all == wanted, "%s: %lld steps of %lld", rows[r].name, (long long)all,
                      (long long)wanted);
                CHECK(c.splits != 0 || most - least <= 1, "%s: blocks have %lld to %lld steps", rows[r].name,
                      (long long)least, (long long)most);
                every_step_once(&l, c.tiles, rows[r].name);
                mc_conv_tma_weights_lists_free(&l);
            }
        }
    }
}
