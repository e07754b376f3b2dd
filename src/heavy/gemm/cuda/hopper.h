/* hopper.h: shared by kernels that multiply tiles in shared memory with Hopper's tensor cores (hopper.cu). */
#ifndef MC_GEMM_HOPPER_H
#define MC_GEMM_HOPPER_H

#include "heavy/cuda/cuda.h"

extern const struct mc_cuda_text mc_gemm_hopper_text;
const char *mc_hopper_refuse(void);     /* NULL: the current GPU has them */
/* Prints the function wgmma(d, a, b, keep): d (+)= 64 rows of one tile times n columns of another, over 32
 * bytes of k; float32 as TF32.  down: k runs down the columns of the tile, not along its rows (halves
 * only). */
void mc_hopper_instruction(struct mc_str *out, int n, mc_dtype t, bool a_down, bool b_down);

#endif
