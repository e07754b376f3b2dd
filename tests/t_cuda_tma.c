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
TEST(cuda_boxes_of_unaligned_operands)
{
    const struct mc_conv_problem p = convolution("n4c16f24 i9x8 k3x3 p1x1", CONV_FORWARD, &variants[4]);
    struct mc_extent e[5];
    void *operand[8];
    HOPPER_OR_SKIP();
    struct mc_plan *plan = mc_plan_with(&p.base, &mc_conv_cuda_tma);
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
