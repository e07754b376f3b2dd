/* factor.cu: small matrices of a stack, each by one thread, by the texts of op/matrix, which precede this
 * one.  CALL is the call of one of them, on the operands in0 to out2 and work. */
#include "heavy/factor/cuda/factor_args.h"
typedef mc_factor_args args;

extern "C" __global__ void __launch_bounds__(64) factor(const __grid_constant__ args a)
{
    const i64 me = blockIdx.x * 64ll + threadIdx.x, i = 0; /* i: operands of a call begin at their matrix */
    char *work = a.work + me * a.stride;
    const int64_t *sizes = (const int64_t *)a.sizes;
    for (i64 m = me; m < a.batch; m += gridDim.x * 64ll) {
        const char *in0 = a.in[0] + m * a.in_bytes[0], *in1 = a.in[1] + m * a.in_bytes[1];
        char *out0 = a.out[0] + m * a.out_bytes[0], *out1 = a.out[1] + m * a.out_bytes[1],
             *out2 = a.out[2] + m * a.out_bytes[2];
        const i64 bad = CALL;
        if (bad && a.err[0] == 0) { /* of several that fail any one is named */
            a.err[1] = m;
            a.err[2] = bad;
            a.err[3] = a.number;
            a.err[4] = __double_as_longlong((double)*(const REAL *)work);
            a.err[0] = MC_CUDA_ERR_MATRIX;
        }
        (void)in1, (void)out1, (void)out2, (void)i;
    }
}
