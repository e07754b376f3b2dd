/* ctc.cu: costs of ctc_loss, their gradient and its change in a direction, a block for each example.  It
 * contains the text of op/ctc_sums.h: the threads of the block share the states of a step.
 *
 * KIND is CTC_COST, CTC_GRADIENT or CTC_CHANGE; LABEL and LENGTH are types of integers. */
#include "exec/cuda/ctc_args.h"
typedef mc_ctc_args args;

#define CTC_READ(e, p)     get<double>(*(const T *)(p))
#define CTC_WRITE(e, p, v) *(T *)(p) = put<T>((double)(v))
#define CTC_LABEL(e, k)    (i64)*(const LABEL *)((e)->label + (k) * (e)->label_step)
#define CTC_EACH(i, n)     for (i64 i = threadIdx.x; i < (n); i += blockDim.x)
#define CTC_ONE            (threadIdx.x == 0)
#define CTC_SYNC           __syncthreads()
#define CTC_OWN_NORMS
#define int64_t            i64
#define TARGET             __device__
#undef INFINITY
#define INFINITY           __longlong_as_double(0x7ff0000000000000ll)
struct ctc_sequence;
__device__ void ctc_norms(const ctc_sequence *e);
#include "op/ctc_sums.h"

/* A warp for each step. */
__device__ void ctc_norms(const ctc_sequence *e)
{
    const i64 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (i64 t = threadIdx.x / 32; t < e->steps; t += warps) {
        double most = -INFINITY, sum = 0, mean = 0;
        for (i64 c = lane; c < e->classes; c += 32) {
            const double x = ctc_x(e, t, c);
            most = x > most || x != x ? x : most;
        }
        for (int d = 16; d; d /= 2) {
            const double x = __shfl_xor_sync(~0u, most, d);
            most = x > most || x != x ? x : most;
        }
        for (i64 c = lane; c < e->classes; c += 32) {
            const double p = exp(ctc_x(e, t, c) - most);
            sum += p;
            mean += KIND == CTC_CHANGE ? p * ctc_v(e, t, c) : 0;
        }
        for (int d = 16; d; d /= 2) {
            sum += __shfl_xor_sync(~0u, sum, d);
            mean += __shfl_xor_sync(~0u, mean, d);
        }
        if (lane == 0) {
            e->norm[t] = most + log(sum);
            if (KIND == CTC_CHANGE) {
                e->mean[t] = mean / sum;
            }
        }
    }
    __syncthreads();
}

enum { NEAR = 1024 };           /* numbers of the two last steps that shared memory holds */

__device__ __forceinline__ void place_near(ctc_sequence *e, double *near)
{
    const i64 states = 2 * e->labels + 1;
    if (6 * states <= NEAR) {
        (KIND == CTC_COST ? e->a : e->b) = near;
        (KIND == CTC_COST ? e->ae : e->be) = near + 2 * states;
        if (KIND == CTC_CHANGE) {
            e->db = near + 4 * states;
        }
    }
}

__device__ __forceinline__ void fail(const args &a, const ctc_sequence &e, i64 wrong)
{
    if (threadIdx.x == 0 && a.err[0] == 0) { /* of several that fail any one is named */
        a.err[1] = wrong;
        a.err[2] = wrong < 0 ? e.steps : CTC_LABEL(&e, wrong - 1);
        a.err[3] = a.number;
        a.err[4] = wrong < 0 ? e.rows : e.classes;
        a.err[0] = MC_CUDA_ERR_CTC;
    }
}

extern "C" __global__ void __launch_bounds__(256) ctc(const __grid_constant__ args a)
{
    __shared__ double near[NEAR];
    for (i64 i = blockIdx.x; i < a.examples; i += gridDim.x) {
        ctc_sequence e;
        e.kind = KIND;
        e.dtype = e.label_dtype = 0;
        e.x = a.x + i * a.x_strides[0], e.x_step = a.x_strides[1], e.x_class = a.x_strides[2];
        e.v = a.v + i * a.v_strides[0], e.v_step = a.v_strides[1], e.v_class = a.v_strides[2];
        e.y = a.y + i * a.y_strides[0], e.y_step = a.y_strides[1], e.y_class = a.y_strides[2];
        e.label = a.labels + i * a.label_strides[0], e.label_step = a.label_strides[1];
        e.rows = a.rows, e.classes = a.classes, e.labels = a.most;
        e.steps = (i64)*(const LENGTH *)(a.lengths + i * a.length_stride);
        ctc_place(&e, (double *)(a.work + blockIdx.x * a.stride));
        place_near(&e, near);
        double cost = 0;
        const i64 wrong = ctc_example(&e, &cost);
        if (wrong) {
            fail(a, e, wrong);
        } else if (KIND == CTC_COST && threadIdx.x == 0) {
            *(T *)e.y = put<T>(cost == INFINITY && a.zero_infinity ? 0.0 : cost);
        }
        __syncthreads(); /* the next example has the same memory */
    }
}
