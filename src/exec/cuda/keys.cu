/* keys.cu: elements in the order that sort and topk give them; after lines.cu.
 *
 * An element is the bits of x, U.  Its key rises with the values: NaN is last, -0 equals 0.  FLIP: it falls.
 */
#define SIGN ((U)1 << (8 * sizeof(U) - 1))

__device__ __forceinline__ U bits_of(T v) { return *(const U *)&v; }

__device__ __forceinline__ U rising(U u)
{
#if FLOAT
    const U big = u & (U)~SIGN;
    return big > (U)INFINITE ? (U)~(U)0 : big == 0 ? SIGN : u & SIGN ? (U)~u : (U)(u | SIGN);
#else
    return SIGNED ? u ^ SIGN : u;
#endif
}

__device__ __forceinline__ U key_of(U u) { return FLIP ? (U)~rising(u) : rising(u); }

/* An element that is behind all others. */
__device__ __forceinline__ U last_bits()
{
#if FLOAT
    return FLIP ? (U)(SIGN | (U)INFINITE) : (U)~(U)0;
#else
    return SIGNED ? (FLIP ? SIGN : (U)~SIGN) : FLIP ? (U)0 : (U)~(U)0;
#endif
}

/* Adds one to count[d] for each lane that is asked: lanes that agree add together. */
template <int bits> __device__ __forceinline__ void tally(unsigned *count, unsigned d, bool asked)
{
    unsigned same = __ballot_sync(0xffffffff, asked);
    if (same == 0) {
        return;
    }
#pragma unroll
    for (int b = 0; b < bits; b++) {
        const unsigned set = __ballot_sync(0xffffffff, d >> b & 1);
        same &= d >> b & 1 ? set : ~set;
    }
    if (asked && (int)(threadIdx.x % 32) == __ffs(same) - 1) {
        atomicAdd(&count[d], (unsigned)__popc(same));
    }
}
