/* tma.h: convolutions whose tiles of rows are boxes of images and places (tma.cu): what their solver,
 * cuda_box.c, and who cuts and hands out tiles, cuda_box_cut.c, share. */
#ifndef MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_H
#define MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_H

#include "heavy/conv/cuda/implicit/tma_args.h"
#include "heavy/conv/cuda/cuda.h"

struct mc_conv_tma_cut {             /* of rows and columns into tiles */
    int mi, tn, box[3];         /* 128 mi rows, tn columns */
    int64_t tiles;
    double seconds;             /* that all of them take on the current GPU */
};
struct mc_conv_tma_cut mc_conv_tma_best_cut(const struct mc_conv_tma_args *a);     /* tn is 0: there are too many places */
/* The cut's tiles, those of a block one after the other; first[blocks + 1].  False: no memory. */
bool mc_conv_tma_hand_out(const struct mc_conv_tma_args *a, const struct mc_conv_tma_cut *c, int blocks,
                     struct mc_conv_tma_tile *tile, int *first);

/* What tma.cu is compiled for.  adds: something is added to sums; down: filters lie with what is summed
 * running down. */
struct mc_conv_tma_kind {
    mc_dtype dtype;
    enum mc_act act;
    bool adds, down;
    int mi, tn, slots;
};
void mc_conv_tma_defines(struct mc_str *out, const struct mc_conv_tma_kind *k);

#endif
