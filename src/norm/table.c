/* table.c: the solvers of normalisation across channels; a new one is a file and a row.
 *
 * Invariant: the last takes every problem. */
#include "norm/solver.h"

const struct mc_solver *const mc_norm_solvers[] = {
    &mc_norm_lanes,     /* places or images side by side: bc01, c01b */
    &mc_norm_lines,     /* channels side by side: b01c */
    &mc_norm_reference, /* any, slowly */
    NULL,
};
