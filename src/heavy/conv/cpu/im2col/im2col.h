/* im2col.h: what im2col.c plans and im2col_run.c runs.
 *
 * Invariant: tiles, blocks and parts depend on the problem and the workspace cap, never on the threads. */
#ifndef MC_CONV_IM2COL_H
#define MC_CONV_IM2COL_H

#include "heavy/conv/solver.h"
#include "heavy/gemm/gemm.h"

enum kind { FIRST, REST, FRESH, NKIND };   /* beta as the problem's, 1, 0 */
struct im2col {
    struct mc_plan base;
    int64_t tile, tiles, last_tile;     /* places */
    int64_t block, blocks, last_block;  /* channels of a group */
    int64_t parts;                      /* of the images, for weights */
    bool together;                      /* forward: all threads at one tile, because there are few */
    int slots;
    size_t column_bytes, slot_bytes, part_bytes;
    struct mc_plan *gemm[NKIND][2][2];  /* [kind][last tile][last block]; those not needed are NULL */
    int shown;                          /* the one that is child[0] too, and freed as such; -1: none yet */
};
mc_status mc_im2col_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
