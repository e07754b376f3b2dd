/* table.c: the solvers of pooling; a new one is a file and a row.
 *
 * Invariant: the last takes every problem. */
#include "heavy/pool/solver.h"

const struct mc_solver *const mc_pool_solvers[] = {
    &mc_pool_global,     /* one window, which is the plane */
    &mc_pool_lanes,     /* images or channels side by side: c01b, b01c */
    &mc_pool_rows,      /* columns side by side: bc01 */
    &mc_pool_slide,     /* gradients of sums, columns side by side, windows that move by one */
    &mc_pool_packed,    /* floats in any layout, a plane at a time */
    &mc_pool_reference, /* any, slowly */
    NULL,
};
