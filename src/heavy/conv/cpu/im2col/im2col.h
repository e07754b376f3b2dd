/* im2col.h: the plan that im2col.c makes and run.c runs.
 *
 * Invariant: tiles, blocks and parts depend on the problem and the workspace cap, never on the threads. */
#ifndef MC_CONV_IM2COL_H
#define MC_CONV_IM2COL_H

#include "heavy/conv/solver.h"
#include "heavy/gemm/gemm.h"

enum kind { FIRST, REST, FRESH, NKIND };   /* beta: the problem's, 1, 0 */
struct im2col {
    struct mc_plan base;
    int64_t tile, tiles, last_tile;     /* in positions */
    int64_t block, blocks, last_block;  /* in channels of a group */
    int64_t parts;                      /* of the images, for weights; each has sums of its own */
    bool together;                      /* forward with few tiles: all threads work at one tile */
    int slots;
    size_t column_bytes, slot_bytes, part_bytes;
    struct mc_plan *gemm[NKIND][2][2];  /* [kind][last tile][last block]; NULL where not needed */
    int shown; /* index of the product that is also child[0] and freed as that; -1: none yet */
};
mc_status mc_im2col_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
