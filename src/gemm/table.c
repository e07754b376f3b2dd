/* table.c: the solvers of matrix products; a new one is a file and a row.
 *
 * Invariant: the last takes every problem. */
#include "gemm/solver.h"

const struct mc_solver *const mc_gemm_solvers[] = {
    &mc_gemm_direct,    /* small: operands where they lie */
    &mc_gemm_thin,      /* m or n at most 16: the big operand read once */
    &mc_gemm_packed,    /* the rest */
    &mc_gemm_splitk,    /* small m and n, huge k */
    &mc_gemm_onednn,    /* libraries, where there are any */
    &mc_gemm_blas,
    &mc_gemm_reference, /* any, slowly */
    NULL,
};
