/* split.cu: float32 numbers as sums of two that fit TF32's 11 bits, three parts of each side by side, so that one product
 * with TF32's speed has float32's accuracy:
 *
 *   left    high, high, low           a b = (ah + al)(bh + bl), less al bl, which is below float32's rounding
 *   right   high, low, high
 *
 * Both parts are rounded to nearest.  Infinity and NaN stand in the first part alone, or they would meet zeros of the
 * low parts and turn into NaN. */
struct args {
    float *to;
    const float *from;
    i64 count, part;    /* part: how far apart the three are */
    i64 size[8], ts[8], fs[8];
};

/* To 11 bits; what would overflow is cut off. */
__device__ __forceinline__ float narrow(float v)
{
    const unsigned u = __float_as_uint(v), r = (u + 0xfffu + (u >> 13 & 1)) & 0xffffe000u;
    return __uint_as_float((r & 0x7f800000u) == 0x7f800000u ? u & 0xffffe000u : r);
}

extern "C" __global__ void __launch_bounds__(256) split(const __grid_constant__ args a)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.count; e += gridDim.x * 256ll) {
        INDEX rest = (INDEX)e;
        i64 to = 0, from = 0;
#pragma unroll
        for (int i = RANK - 1; i > 0; i--) {
            const INDEX next = rest / (INDEX)a.size[i], at = rest - next * (INDEX)a.size[i];
            rest = next;
            to += at * a.ts[i];
            from += at * a.fs[i];
        }
        to += rest * a.ts[0];
        const float v = a.from[from + rest * a.fs[0]];
        const bool finite = (__float_as_uint(v) & 0x7f800000u) != 0x7f800000u;
        const float high = finite ? narrow(v) : 0, low = finite ? narrow(v - high) : 0;
        a.to[to] = finite ? high : v;
        a.to[to + a.part] = RIGHT ? low : high;
        a.to[to + 2 * a.part] = RIGHT ? high : low;
    }
}
