/* hopper.h: what texts share whose products are made by Hopper's tensor cores from shared memory
 * (hopper.cu). */
#ifndef MC_GEMM_HOPPER_H
#define MC_GEMM_HOPPER_H

#include "heavy/cuda/cuda.h"

extern const struct mc_cuda_text mc_gemm_hopper_text;
const char *mc_hopper_refuse(void);     /* NULL: the current GPU can */
/* Prints wgmma(d, a, b, keep): d (+)= 64 rows of a tile times n columns of another, 32 bytes of k; of float32
 * as TF32.  down: k does not run along a tile's rows but down, which halves alone may. */
void mc_hopper_instruction(struct mc_str *out, int n, mc_dtype t, bool a_down, bool b_down);

#endif
