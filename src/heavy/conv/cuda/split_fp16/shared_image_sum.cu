/* shared_image_sum.cu: adds the gradients of filters that blocks have computed for parts of the images, in
 * order. */
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    follow();
    const int each = p.results * p.channels, count = each * p.k[0] * p.k[1],
              e = blockIdx.x * 32 + threadIdx.x % 32;
    const float sum = sum_of_parts(p.parts, count, p.blocks, e);
    if (threadIdx.x < 32 && e < count) {
        const int tap = e / each, f = e % each / p.channels, c = e % p.channels;
        const i64 at = f * p.ws[0] + c * p.ws[1] + tap / p.k[1] * p.ws[2] + tap % p.k[1] * p.ws[3];
        p.to[at] = p.alpha * sum + (p.c0 ? p.beta * p.c0[at] : 0.f);
    }
}
