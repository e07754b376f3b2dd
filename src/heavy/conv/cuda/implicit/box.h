/* box.h: convolutions whose tiles of rows are boxes of images and places (box.cu): what their solver,
 * cuda_box.c, and who cuts and hands out tiles, cuda_box_cut.c, share. */
#ifndef MC_CONV_BOX_H
#define MC_CONV_BOX_H

#include "heavy/conv/cuda/implicit/box_args.h"
#include "heavy/conv/cuda/cuda.h"

struct mc_box_cut {             /* of rows and columns into tiles */
    int mi, tn, box[3];         /* 128 mi rows, tn columns */
    int64_t tiles;
    double seconds;             /* that all of them take on the current GPU */
};
struct mc_box_cut mc_box_best_cut(const struct mc_box_args *a);     /* tn is 0: there are too many places */
/* The cut's tiles, those of a block one after the other; first[blocks + 1].  False: no memory. */
bool mc_box_hand_out(const struct mc_box_args *a, const struct mc_box_cut *c, int blocks,
                     struct mc_box_tile *tile, int *first);

/* What box.cu is compiled for.  adds: something is added to sums; down: filters lie with what is summed
 * running down. */
struct mc_box_kind {
    mc_dtype dtype;
    enum mc_act act;
    bool adds, down;
    int mi, tn, slots;
};
void mc_box_defines(struct mc_str *out, const struct mc_box_kind *k);

#endif
