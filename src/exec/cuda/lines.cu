/* lines.cu: lines along an axis; included before the texts of running.cu and order.cu. */
#include "exec/cuda/lines_args.h"

__device__ __forceinline__ i64 begin_of(const mc_lines_args &l, i64 line, const i64 *stride)
{
    i64 at = 0;
    _Pragma("unroll 1") for (int d = 0; d < l.axes; d++) {
        at += line % l.size[d] * stride[d];
        line /= l.size[d];
    }
    return at;
}
