/* cuda.h: the interface among the solvers of matrix products on a GPU. */
#ifndef MC_GEMM_CUDA_H
#define MC_GEMM_CUDA_H

#include "heavy/gemm/solver.h"
#include "heavy/cuda/cuda.h"

extern const struct mc_solver *const mc_gemm_cuda_solvers[];
extern const struct mc_solver mc_gemm_cublaslt, mc_gemm_cuda_split, mc_gemm_cuda_split_large,
    mc_gemm_cuda_split_inline, mc_gemm_cuda_skinny, mc_gemm_cuda_unfused, mc_gemm_cuda_plain;
extern const struct mc_cuda_text mc_gemm_plain_text, mc_gemm_skinny_text;

/* seconds at this fraction of the peak */
double mc_gemm_cuda_seconds(const struct mc_gemm_problem *p, double part);

#endif
