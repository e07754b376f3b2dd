/* tile.cu: shared by all kernels for images of few channels: tiles of y, addresses of taps, and the sum of
 * partial sums.
 *
 * A tile is some rows of one image, or some whole images.  The sizes of filters are compiled in: C
 * channels, KD x KH x KW taps, strides SD, SH and SW.  With three axes an image is a plane of the result, or
 * for weights of y: OD planes of y and ID of x make a whole one, PD is the border before x. */
enum { TAPS = C * KD * KH * KW };

struct tile { int image, images, row, rows; };

template <class Args> __device__ __forceinline__ tile tile_at(const Args &p, int t)
{
    const int block = t / p.down;
    tile a;
    a.image = block * p.images;
    a.row = (t - block * p.down) * p.rows;
    a.images = min(p.images, p.n - a.image);
    a.rows = min(p.rows, p.out[0] - a.row);
    return a;
}

/* Address of tap k of filter f; taps are counted over all channels. */
__device__ __forceinline__ i64 weight_at(const i64 (&ws)[4], int f, int k)
{
    return f * ws[0] + k / (KH * KW) * ws[1] + k / KW % KH * ws[2] + k % KW * ws[3];
}

/* Adds the partial sums of each weight; finish(filter, tap, sum) stores the result. */
template <class Args, class Finish> __device__ __forceinline__ void add_blocks(const Args &p, Finish finish)
{
    follow();
    const int count = p.f * TAPS, e = blockIdx.x * 32 + threadIdx.x % 32;
    const float sum = sum_of_parts(p.parts, count, p.blocks, e);
    if (threadIdx.x < 32 && e < count) {
        finish(e / TAPS, e % TAPS, sum);
    }
}
