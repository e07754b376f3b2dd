/* table.c: the solvers of pooling. A new solver is a file and a row.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/pool/solver.h"

const struct mc_solver *const mc_pool_solvers[] = {
    &mc_pool_global,     /* one window that covers the plane */
    &mc_pool_lanes,     /* images or channels contiguous: c01b, b01c */
    &mc_pool_rows,      /* columns contiguous: bc01 */
    &mc_pool_slide,     /* gradients of sums, columns contiguous, stride 1 */
    &mc_pool_ties,      /* gradients of maxima that ties share, columns contiguous */
    &mc_pool_packed,    /* floats in any layout, copied plane by plane */
    &mc_pool_reference, /* any problem, slowly */
    NULL,
};
