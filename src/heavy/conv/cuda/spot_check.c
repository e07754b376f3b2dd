/* spot_check.c: the error of a result on a GPU: some of its elements are computed again on the GPU with
 * sums in float64 (`sampled` in direct.cu).
 *
 *   error = |got - want| / |want|, over the samples
 *
 * Rounding of operands shows at once: TF32 gives 3e-4 to 1e-3 for sums of any length. float32 gives 1e-7,
 * times the square root of the length where long sums run in one order.
 *
 * Invariant: the choice of samples depends on the problem alone. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/gemm/cuda/cuda.h"
#include <math.h>

enum { FEWEST = 24, MOST = 256, PART = 8192 };  /* numbers of samples; terms that a block sums */
static const double terms = 1 << 25;            /* terms that are computed in half a millisecond */

/* The element with the problem's bias and activation. */
static double finished(const struct mc_conv_problem *p, double sum, double more)
{
    return mc_cuda_acted(p->act, p->alpha * sum + more);
}

static double compared(const struct mc_conv_problem *p, const struct mc_direct_args *a, const double *parts)
{
    const double *more = parts + a->samples * a->splits;
    double off = 0, size = 0;
    for (int64_t i = 0; i < a->samples; i++) {
        double sum = 0;
        for (int64_t k = 0; k < a->splits; k++) {
            sum += parts[i * a->splits + k];
        }
        const double d = more[2 * i] - finished(p, sum, more[2 * i + 1]);
        off += d * d;
        size += p->alpha * p->alpha * sum * sum + more[2 * i + 1] * more[2 * i + 1];
    }
    return off == 0 ? 0 : isnan(off) || size == 0 ? INFINITY : sqrt(off / size);
}

double mc_conv_cuda_error(const struct mc_problem *p_, void *const *operand)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_cuda *d = mc_cuda_current();
    struct mc_direct_args a;
    if (p->s.unshared || mc_conv_hollow(p)) {
        return -1;
    }
    mc_direct_shape(&a, p);
    mc_direct_bind(&a, p, operand);
    a.samples = MC_MAX(MC_MIN((int64_t)(terms / (double)a.depth), (int64_t)MOST), (int64_t)FEWEST);
    a.splits = conv_ceil(a.depth, PART);
    const size_t bytes = (size_t)(a.samples * (a.splits + 2)) * sizeof(double);
    const struct mc_grid grid = { .blocks = { (unsigned)(a.samples * a.splits), 1, 1 },
                                  .threads = { 256, 1, 1 } };
    void *kernel = mc_direct_kernel(&a, p, true, "sampled");
    double *host = mc_alloc(bytes, "planner"), error = -1;
    a.parts = kernel && host ? mc_cuda_alloc(d, bytes, "planner") : NULL;
    if (a.parts && mc_cuda_launch(d, kernel, "sampled", &grid, &a, sizeof a) >= 0 &&
        mc_cuda_copy_to_host(d, host, a.parts, bytes) >= 0) {
        error = compared(p, &a, host);
    }
    mc_cuda_free(d, a.parts);
    mc_free(host);
    return error;
}

/* float32: ten times the likely error of a sum of as many terms in one order, and what transforms may
 * lose. */
double mc_conv_cuda_allows(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_direct_args a;
    mc_direct_shape(&a, p);
    if (p->tf32 || mc_dtypes[p->dtype].size == 2) {
        return 4 * (p->tf32 ? 0x1p-10 : mc_dtypes[p->dtype].eps);
    }
    return mc_dtypes[p->dtype].eps * (16 + sqrt((double)a.depth));
}
