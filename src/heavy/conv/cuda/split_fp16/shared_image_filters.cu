/* shared_image_filters.cu: filters as pairs of halves in the fragment layout of a warp, and their loads. */
__device__ __forceinline__ float filter(const args &p, int chunk, int k, int result)
{
    const int tap = k / CC, c = chunk * CC + k - tap * CC;
    const bool is = tap < p.k[0] * p.k[1] && c < p.channels && result < p.results;
    return is ? p.w[result * p.ws[0] + c * p.ws[1] + tap / p.k[1] * p.ws[2] + tap % p.k[1] * p.ws[3]] : 0.f;
}

/* A result a block. */
extern "C" __global__ void __launch_bounds__(256) pack(const __grid_constant__ args p)
{
    follow();
    __shared__ u32 seen[MOST_WARPS];
    const int result = blockIdx.x, terms = p.steps * 16, all = p.chunks * terms;
    u32 most = 0;
    float f[2];
    for (int e = threadIdx.x; e < all; e += blockDim.x) {
        const u32 size = size_of(filter(p, e / terms, e % terms, result));
        most = size < 0x7f800000 && size > most ? size : most;
    }
    most = over_block(most, seen);
    factors(most, f);
    if (threadIdx.x == 0) {
        p.scale[result] = unscaled(most);
    }
    /* a column's lanes have k = 2 i, 2 i + 1, and those 8 further on */
    for (int e = threadIdx.x; e < all / 2; e += blockDim.x) {
        const int chunk = e / (terms / 2), pair = e - chunk * (terms / 2), step = pair / 8,
                  which = pair % 8 / 4, lane = result % 8 * 4 + pair % 4;
        u16 *const at = (u16 *)(p.filters + ((i64)(chunk * p.steps + step) * p.tiles + result / 8) * 32 +
                                lane) +
                        which * 2;
        const int k = step * 16 + which * 8 + pair % 4 * 2;
        put2(at, at + 4, filter(p, chunk, k, result), filter(p, chunk, k + 1, result), f);
    }
}

/* Loads a slot of filters: so many steps of the block's results. */
template <int Steps> __device__ __forceinline__ void bring_filters(const args &p, uint4 *slot, int step)
{
    const int each = p.right * NT * 32;
    const uint4 *const from = p.filters + ((i64)step * p.tiles + blockIdx.y * p.right * NT) * 32;
    for (int e = threadIdx.x; e < each; e += blockDim.x) {
#pragma unroll
        for (int s = 0; s < Steps; s++) {
            fetch16((float *)(slot + s * each + e), (const float *)(from + s * p.tiles * 32 + e));
        }
    }
}
