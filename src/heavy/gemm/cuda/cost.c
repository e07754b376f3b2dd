/* cost.c: an estimate of a matrix product's time on the current GPU. */
#include "heavy/gemm/cuda/cuda.h"

double mc_gemm_cuda_seconds(const struct mc_gemm_problem *p, double part)
{
    const double b = (double)p->batch, m = (double)p->m, n = (double)p->n, k = (double)p->k;
    return mc_cuda_seconds(p->dtype, p->tf32, 2 * b * m * n * k,
                           b * (m * k + k * n + 2 * m * n) * mc_dtypes[p->dtype].size, part);
}
