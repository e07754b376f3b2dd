/* tma.h: convolutions whose tiles of rows are boxes of images and positions (tma.cu): shared by their
 * solver (tma.c) and the tiling (tma_tiling.c). */
#ifndef MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_H
#define MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_H

#include "heavy/conv/cuda/implicit/tma_args.h"
#include "heavy/conv/cuda/implicit/tma_weights_args.h"
#include "heavy/conv/cuda/cuda.h"

struct mc_conv_tma_tiling {             /* a tiling of rows and columns */
    int mi, tn, box[4];         /* TMA_ROWS mi rows, tn columns */
    /* parts: of the terms, each is a block of a cluster.  Beyond 1 a block has one tile.  alone: the two
     * groups of a block take tiles in turn: one stores its results while the other multiplies */
    int parts;
    bool alone;
    int64_t tiles;
    /* taps: of the tiles of the busiest block; seconds: the time of all tiles on the current GPU */
    double taps, seconds;
};
/* All but the addresses, the tensor maps and the tiling.  Returns the stride of images in what taps read. */
int64_t mc_conv_tma_shape(const struct mc_conv_problem *p, struct mc_conv_tma_args *a);
/* tn is 0: too many positions */
struct mc_conv_tma_tiling mc_conv_tma_best_tiling(const struct mc_conv_tma_args *a);
/* The tiles of a tiling, sorted by block; first[blocks + 1].  False: no memory. */
bool mc_conv_tma_hand_out(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c, int blocks,
                     struct mc_conv_tma_tile *tile, int *first);

/* What tma.cu is compiled for. adds: sums have addends; down: results are the contiguous axis of filters;
 * axes: of images, 2 or 3; row: bytes of a row of a tile, 128, 64 or 32; parts: blocks of a
 * cluster, which divide the terms of a tile; alone: each of the two groups has its own tiles. */
struct mc_conv_tma_kind {
    mc_dtype dtype;
    enum mc_act act;
    bool adds, down, alone;
    int mi, tn, slots, axes, row, parts;
};
size_t mc_conv_tma_slot(int mi, int tn, int row);  /* bytes of the operands of one step of a tile */
int mc_conv_tma_slots(int mi, int tn, int row);    /* how many are in shared memory */
void mc_conv_tma_defines(struct mc_str *out, const struct mc_conv_tma_kind *k);

/* tma.c: reasons to refuse a problem of any pass */
const char *mc_conv_tma_limits(const struct mc_conv_problem *p);
/* of filters, whose taps are evenly spaced */
int64_t mc_conv_tma_tap_stride(const struct mc_conv_problem *p);
extern const struct mc_cuda_text mc_conv_tma_box_text;

/* ---- gradients of filters (tma_weights.cu) ---- */

/* A tiling of filters, and of channels times taps. */
struct mc_conv_tma_weights_tiling {
    bool taps_down;             /* rows are channels of taps */
    /* groups of warps, and units of each: along rows, along columns; ks: 16 ks terms of a step */
    int down, mi, across, q, ks, box[4];
    int64_t tiles;
    int splits;                 /* of each tile's steps; 0: blocks share the steps of all tiles evenly */
    double seconds;
};
/* mi is 0: too many positions */
struct mc_conv_tma_weights_tiling mc_conv_tma_weights_best_tiling(const struct mc_conv_tma_weights_args *a,
                                                                  bool taps_down);
int mc_conv_tma_weights_slots(const struct mc_conv_tma_weights_tiling *c);

/* The jobs of a tiling, sorted by block, and the tiles whose sums are in parts. */
struct mc_conv_tma_weights_lists {
    struct mc_conv_tma_weights_job *jobs;
    int *first;                 /* [blocks + 1] */
    struct mc_conv_tma_weights_sum *sums;
    int blocks, nsums, parts, most; /* most: parts of a sum */
};
/* False: no memory. */
bool mc_conv_tma_weights_hand_out(const struct mc_conv_tma_weights_args *a,
                                  const struct mc_conv_tma_weights_tiling *c,
                                  struct mc_conv_tma_weights_lists *l);
void mc_conv_tma_weights_lists_free(struct mc_conv_tma_weights_lists *l);

/* What tma_weights.cu is compiled for. */
struct mc_conv_tma_weights_kind {
    mc_dtype dtype;
    bool adds, clear;
    int slots, slices;
};
void mc_conv_tma_weights_defines(struct mc_str *out, const struct mc_conv_tma_weights_kind *k,
                                 const struct mc_conv_tma_weights_tiling *c);

#endif
