/* split_inline.cu: float32 products of small matrices on tensor cores, whose blocks split their tiles into
 * pairs of halves themselves.
 *
 * split.cu has the algebra; it packs large matrices in a separate kernel.  Here a block has a 64 x 64 tile
 * of C and a part of the summed axis.  For 64 terms at a time it loads tiles of A and B into registers.
 * Each warp finds the largest of its elements, which sets their scale, and stores their halves in shared
 * memory, while the previous tiles are multiplied.  The sum of 16 terms is scaled back and added in
 * float32.  Low halves are not scaled up, so that all three products have one accumulator; the loss is
 * 2^40 below a warp's largest element.  A step with an infinity or a NaN is multiplied in plain float32,
 * so that they give float32's results.
 *
 * Four warps compute 32 x 32 of C each over the first half of a step's terms, four others the same over
 * the second half.  That reads shared memory less.  Their sums are added in shared memory and stored to C
 * from there.
 *
 * The text is compiled for the problem: LINES if no axis consists of positions of an image, A_DENSE and
 * B_DENSE if terms are contiguous, SPLIT with split-K, TOGETHER if the blocks that share a tile form a
 * cluster.  A small product is so short that the time to load a long kernel would count.
 *
 * A sum may also run over `outer` matrices: the positions of all images.  Terms and columns of B, and
 * columns of C, may be positions of an image: rows with a stride of their own, and positions in a row.  C
 * may have only every n-th position, with zeros between.
 *
 * Partial sums are added in order: by the blocks that computed them if they form a cluster, else by `add`. */
/* Stores the zeros that belong to a position of C when its stride exceeds 1: `lines` rows of `across`
 * positions, except the first. */
__device__ __noinline__ void zeros_around(float *to, i64 down, i64 right, int lines, int across)
{
    for (int i = 0; i < lines; i++) {
        for (int j = i == 0; j < across; j++) {
            to[i * down + j * right] = 0;
        }
    }
}

/* Stores an element of C.  c, c0: the beginning of its row in C and C0. */
__device__ __forceinline__ void finished(const args &p, float *c, const float *c0, int col, i64 col_at,
                                         float sum)
{
    const float v = p.alpha * sum;
    c[col_at] = finish(c0 ? v + p.beta * c0[col * p.c0s[2]] : v, ACT);
#if !LINES
    if (p.around[0] * p.around[1] > 1) {
        const int line = col / p.c_cols.across, column = col - line * p.c_cols.across;
        zeros_around(c + col_at, p.c_cols.down / p.around[0], p.c_cols.right / p.around[1],
                     min(p.around[0], p.size[0] - line * p.around[0]),
                     min(p.around[1], p.size[1] - column * p.around[1]));
    }
#endif
}

__device__ __forceinline__ const float *row_of_c0(const args &p, int batch, int row)
{
    return p.c0 ? p.c0 + batch * p.c0s[0] + row * p.c0s[1] : 0;
}

/* splits > 1: a part of one tile's sum; else all of some tiles', one after another. */
__device__ __forceinline__ void advance(const args &p, step &s)
{
    s.k += TILE;
    if (s.k >= p.k) {
        s.k = 0;
        s.matrix++;
    }
    if (s.matrix == p.outer && !SPLIT) {
        s.matrix = 0;
        s.j += TILE;
    }
}

__device__ __forceinline__ void turn_to(const args &p, side &b, int j)
{
    b.from = j;
    b.rows = min(p.n - j, TILE);
    b.mine_at = b.mine < b.rows ? at(p.b_cols, j + b.mine) : 0;
}

/* Stores this warp's sums in the plane of its half of the terms, and zeros them. */
__device__ __forceinline__ void lay_down(float (&sum)[32], float *planes)
{
    float *const mine = planes + threadIdx.x / 128 * PLANE;
    __syncthreads();            /* all warps have finished reading this memory */
#pragma unroll
    for (int e = 0; e < 32; e += 2) {
        *(float2 *)&mine[row_of(e) * PITCH + col_of(e)] = make_float2(sum[e], sum[e + 1]);
        sum[e] = sum[e + 1] = 0;
    }
}

__device__ __forceinline__ float of_planes(const float *planes, int r, int c)
{
    const float *const at = planes + r * PITCH + c;
    return at[0] + at[PLANE];
}

#if TOGETHER
/* Stores a finished tile: each block of the cluster adds the parts of some rows, block by block, plane by
 * plane. */
__device__ __forceinline__ void put(const args &p, float (&sum)[32], float *planes, int i, int j, int batch)
{
    lay_down(sum, planes);
    meet();
    const int c = threadIdx.x % TILE, col = j + c, rows = col < p.n ? min(p.m - i, TILE) : 0,
              each = (TILE + p.splits - 1) / p.splits;
    const i64 col_at = at(p.c_cols, col);
    for (int r = blockIdx.y * each + threadIdx.x / TILE; r < min((int)(blockIdx.y + 1) * each, rows);
         r += 256 / TILE) {
        float v = 0;
#pragma unroll 4
        for (int s = 0; s < p.splits; s++) {
            v += of_planes(of_block(planes, s), r, c);
        }
        finished(p, p.c + batch * p.cs[0] + (i + r) * p.cs[1], row_of_c0(p, batch, i + r), col, col_at, v);
    }
    leave();
}
#else
/* Stores a finished tile: adds its two planes, one for each half of the terms. */
__device__ __forceinline__ void put(const args &p, float (&sum)[32], float *planes, int i, int j, int batch)
{
    lay_down(sum, planes);
    __syncthreads();
    const int c = threadIdx.x % TILE, col = j + c, rows = col < p.n ? min(p.m - i, TILE) : 0;
    const i64 col_at = SPLIT ? col : at(p.c_cols, col);
#pragma unroll 4
    for (int r = threadIdx.x / TILE; r < rows; r += 256 / TILE) {
        const float v = of_planes(planes, r, c);
        if (SPLIT) {
            p.parts[((i64)(blockIdx.y * p.batch + batch) * p.m + i + r) * p.n + col_at] = v;
        } else {
            finished(p, p.c + batch * p.cs[0] + (i + r) * p.cs[1], row_of_c0(p, batch, i + r), col, col_at,
                     v);
        }
    }
    __syncthreads();
}
#endif

/* While a step is multiplied, the operands of the next step are split into halves and those of the one
 * after it are loaded. */
extern "C" __global__ void __launch_bounds__(256, 2) product(const __grid_constant__ args p)
{
    extern __shared__ uint4 shared[];
    float(*const unscaled)[2][WARPS] = (float(*)[2][WARPS])((u16 *)shared +
                                                            2 * TILES); /* of two steps, A and B */
    const int down = (p.m + TILE - 1) / TILE, across = (p.n + TILE - 1) / TILE, i = blockIdx.x % down * TILE,
              first = blockIdx.x / down * p.run, batch = blockIdx.z;
    const int each = (p.k + TILE - 1) / TILE, chunks = each * p.outer,
              from = SPLIT ? chunks * blockIdx.y / p.splits : 0;
    const int steps = ((SPLIT ? (int)(chunks * (blockIdx.y + 1) / p.splits) : chunks) - from) *
                      min(p.run, across - first);
    const side sa = side_of<A_DENSE>(p.a + batch * p.as[0], in_line(p.as[1]), i, min(p.m - i, TILE),
                                     in_line(p.as[2]), p.outer_step[0], p.fours[0]);
    side sb = side_of<B_DENSE>(p.b + batch * p.bs, p.b_cols, first * TILE, min(p.n - first * TILE, TILE),
                               p.b_terms, p.outer_step[1], p.fours[1]);
    float sum[32] = {}, va[MINE], vb[MINE];
    step now = { first * TILE, from / each, from % each * TILE }, ahead = now;
    bool plain = false;
    follow();
#pragma unroll 1
    for (int q = -2; q < steps; q++) {          /* ahead: step q + 2 */
        u16 *const tile = (u16 *)shared + (q & 1) * TILES, *const next_tile = (u16 *)shared + (q + 1 & 1) * TILES;
        bool odd = false;
        if (q >= -1 && q + 1 < steps) {
            odd = split_values(next_tile, unscaled[q + 1 & 1][0], sa, va) |
                  split_values(next_tile + 2 * LOW, unscaled[q + 1 & 1][1], sb, vb);
            const int j = ahead.j;
            advance(p, ahead);
            if (ahead.j != j) {
                turn_to(p, sb, ahead.j);
            }
        }
        if (q + 2 < steps) {
            take<A_DENSE>(va, sa, ahead.matrix, ahead.k, p.k);
            take<B_DENSE>(vb, sb, ahead.matrix, ahead.k, p.k);
        }
        if (q >= 0) {
            const int j = now.j;
            if (plain) {
                multiply_plainly(sum, sa, sb, now, p);
            } else {
                multiply_tiles(sum, tile, unscaled[q & 1]);
            }
            advance(p, now);
            if (q + 1 == steps || now.j != j) {
                put(p, sum, (float *)(TOGETHER ? (u16 *)shared : tile), i, j,
                    batch); /* the same place in all blocks of a cluster */
            }
        }
        plain = __syncthreads_or(odd);
    }
}

/* The partial sums: add_by_thread has a thread for each element, add has eight warps that share the parts of 32
 * elements. */
__device__ __forceinline__ void added(const args &p, int e, float sum)
{
    const int each = p.m * p.n, batch = e / each, row = e % each / p.n;
    finished(p, p.c + batch * p.cs[0] + row * p.cs[1], row_of_c0(p, batch, row), e % p.n,
             at(p.c_cols, e % p.n), sum);
}

extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    const int count = p.m * p.n * p.batch, e = blockIdx.x * 32 + threadIdx.x % 32;
    follow();
    const float sum = sum_of_parts(p.parts, count, p.splits, e);
    if (threadIdx.x < 32 && e < count) {
        added(p, e, sum);
    }
}

extern "C" __global__ void __launch_bounds__(256) add_by_thread(const __grid_constant__ args p)
{
    const int count = p.m * p.n * p.batch, e = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
    follow();
#pragma unroll 4
    for (int s = 0; e < count && s < p.splits; s++) {
        sum += p.parts[(i64)s * count + e];
    }
    if (e < count) {
        added(p, e, sum);
    }
}
