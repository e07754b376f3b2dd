/* problem.c: functions of a problem that the solvers on a GPU share: address of the result, copy of c0,
 * cost. */
#include "heavy/conv/cuda/cuda.h"

void *mc_conv_cuda_result(const struct mc_conv_problem *p, void *const *operand)
{
    return operand[mc_conv_result(p->s.pass)];
}

struct mc_cuda_copy *mc_conv_cuda_c0_copy(const struct mc_conv_problem *p)
{
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    struct mc_cuda_layout l = { .to = p->dtype, .from = p->dtype, .rank = a.rank };
    memcpy(l.size, a.size, sizeof l.size);
    for (int i = 0; i < a.rank; i++) {
        l.to_stride[i] = l.from_stride[i] = a.stride[i];
    }
    return mc_cuda_copy_new(&l);
}

double mc_conv_cuda_seconds(const struct mc_conv_problem *p, double part)
{
    return mc_cuda_seconds(p->wide ? MC_FLOAT64 : p->dtype, p->tf32, mc_conv_flops(p), mc_conv_bytes(p),
                           part);
}
