/* cut.cu: float32 products of small matrices on tensor cores, with tiles that blocks cut into pairs of halves themselves.
 *
 * split.cu has the algebra, and for large matrices it packs them first.  Here a block has 64 x 64 of C and a part of the
 * summed axis; 64 terms at a time it takes tiles of A and B into registers, a warp finds the largest of what it has, which sets
 * their scale, and leaves their halves in shared memory, while others multiply the tiles before.  What 16 terms come to is scaled
 * back and added up in float32.  Low halves are not scaled up, so that all three products have one sum; what is lost lies 2^40
 * below a warp's largest.  A step with an infinity or a NaN is multiplied plainly, so that they come out as they should.
 *
 * Four warps have 32 x 32 of C each and the first half of a step's terms, four the same with the rest: the less is read of shared
 * memory.  Their sums are added there, and go from there to C.
 *
 * The text is compiled for what a problem needs, LINES where nothing is a place of an image, A_DENSE and B_DENSE where terms lie side
 * by side, SPLIT where sums are parts, TOGETHER where the blocks that have a tile's parts reach each other's shared memory: a short
 * text is on the GPU's way sooner than a small product takes.
 *
 * A sum may run over several matrices as well, `outer` of them: the places of all images.  Terms and columns of B, and columns of C,
 * may be places of an image: lines that are apart, and places in them; of C every one, or one in so many, with zeros around it.
 *
 * Parts of a sum are added in order, by the blocks that made them if they run together, else by `add`. */
typedef unsigned u32;
typedef unsigned short u16;
enum { TILE = 64, PITCH = TILE + 8, WARPS = 8, MINE = 16 };     /* MINE: elements of a tile that a thread takes, along the summed axis */
enum { LOW = TILE * PITCH, TILES = 4 * LOW };   /* halves of a tile; of both tiles of a step, high and low */
enum { PLANE = TILE * PITCH };                  /* floats of a finished tile, of which there are two in the room of a step's */

struct places {                 /* along an axis: so many across, then the next line */
    i64 down, right;
    int across;
};
struct args {
    const float *a, *b, *c0;
    float *c, *parts;
    i64 as[3], bs, cs[2], c0s[3], outer_step[2];    /* batch, row, column; of B and C the columns, and B's terms, are places */
    int m, n, k, batch, outer, splits, run;     /* run: tiles side by side that a block makes */
    int fours[2];               /* a, b: four neighbours along the summed axis can be read at once */
    float alpha, beta;
    places b_terms, b_cols, c_cols;
    int around[2], size[2];     /* of a column of C: lines and places that are its own, all but the first zeros; lines and places there are */
};
struct side {                   /* rows of A, or columns of B: where this thread reads, and what becomes of it */
    const float *x;
    places all, terms;
    i64 outer, mine_at;
    int from, rows, mine, first;    /* of the tile: its first, how many there are; this thread's, its first term */
    int fours;
};

/* Where a block is: the first of its columns, the matrix it sums over, the first term. */
struct step { int j, matrix, k; };

__device__ __forceinline__ i64 at(const places &p, int i)
{
#if LINES
    return i * p.right;
#else
    const int line = i / p.across;
    return line * p.down + (i - line * p.across) * p.right;
#endif
}

__device__ __forceinline__ places in_line(i64 step)
{
    places p = { 0, step, 0x7fffffff };
    return p;
}

template <bool DENSE> __device__ __forceinline__ side side_of(const float *x, const places &rows, int from, int count, const places &terms, i64 outer, int fours)
{
    const int t = threadIdx.x;
    side s;
    s.x = x;
    s.all = rows;
    s.terms = terms;
    s.outer = outer;
    s.from = from;
    s.rows = count;
    s.mine = DENSE ? t / 4 : t % TILE;
    s.first = DENSE ? t % 4 * MINE : t / TILE * MINE;
    s.mine_at = s.mine < count ? at(rows, from + s.mine) : 0;
    s.fours = fours;
    return s;
}

/* Zeros beyond the matrix. */
template <bool DENSE> __device__ __forceinline__ void take(float (&v)[MINE], const side &s, int matrix, int from, int end)
{
    const int have = s.mine < s.rows ? end - from - s.first : 0;
    const float *const row = s.x + matrix * s.outer + s.mine_at;
    if (DENSE && s.fours && have >= MINE) {
#pragma unroll
        for (int e = 0; e < MINE; e += 4) {
            const float4 q = *(const float4 *)(row + from + s.first + e);
            v[e] = q.x;
            v[e + 1] = q.y;
            v[e + 2] = q.z;
            v[e + 3] = q.w;
        }
        return;
    }
#if LINES
    const int step = DENSE ? 1 : (int)s.terms.right;
    const float *const term = row + (i64)step * (from + s.first);
#pragma unroll
    for (int e = 0; e < MINE; e++) {
        v[e] = e < have ? term[(i64)step * e] : 0.f;
    }
#else
    const int line = s.terms.across < 0x7fffffff ? (from + s.first) / s.terms.across : 0;   /* a division that most have no use for */
    int col = from + s.first - line * s.terms.across;
    const float *term = row + line * s.terms.down + col * s.terms.right;
#pragma unroll
    for (int e = 0; e < MINE; e++, col++, term += s.terms.right) {
        if (col == s.terms.across) {
            col = 0;
            term += s.terms.down - s.terms.across * s.terms.right;
        }
        v[e] = e < have ? *term : 0.f;
    }
#endif
}

/* The larger; NaN if either is. */
__device__ __forceinline__ float larger(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

/* Of a warp's elements: the bits of the largest |x|; what is no number is larger than all. */
__device__ __forceinline__ u32 largest(const float (&v)[MINE])
{
    float most = 0;
#pragma unroll
    for (int e = 0; e < MINE; e++) {
        most = larger(most, fabsf(v[e]));
    }
    return over_warp(__float_as_uint(most));
}

/* The halves of what this thread has, and what undoes its warp's scale.  True: there is an infinity or a NaN. */
__device__ __forceinline__ bool cut(u16 *to, float *unscaled, const side &s, const float (&v)[MINE])
{
    const u32 most = largest(v);
    const int e = min(exponent(most), 126);     /* a smaller one needs no more: half has 2^24 to spare */
    const float f = __uint_as_float((u32)(127 + e) << 23);
    u32 h[MINE / 2], l[MINE / 2];
    if (threadIdx.x % 32 == 0) {
        unscaled[threadIdx.x / 32] = __uint_as_float((u32)(127 - e) << 23);
    }
#pragma unroll
    for (int i = 0; i < MINE / 2; i++) {
        halve2(v[2 * i] * f, v[2 * i + 1] * f, &h[i], &l[i]);
    }
    uint4 *const at = (uint4 *)(to + s.mine * PITCH + s.first), *const below = (uint4 *)(to + LOW + s.mine * PITCH + s.first);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        at[i] = { h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3] };
        below[i] = { l[4 * i], l[4 * i + 1], l[4 * i + 2], l[4 * i + 3] };
    }
    return most >= 0x7f800000;
}

/* Which warp has cut rows [8 i, 8 i + 8) and terms [16 k, 16 k + 16): it has either all terms or all rows of a half. */
template <bool DENSE> __device__ __forceinline__ int who(int i, int k)
{
    return DENSE ? i : k * 2 + i / 4;
}

/* Where element e of a thread's sums stands in the tile: two by four matrices of 16 x 8 a warp. */
__device__ __forceinline__ int first_row() { return threadIdx.x / 32 % 2 * 32; }
__device__ __forceinline__ int first_col() { return threadIdx.x / 64 % 2 * 32; }
__device__ __forceinline__ int row_of(int e) { return first_row() + e / 8 % 2 * 16 + threadIdx.x % 32 / 4 + e % 4 / 2 * 8; }
__device__ __forceinline__ int col_of(int e) { return first_col() + e / 16 * 16 + e / 4 % 2 * 8 + threadIdx.x % 4 * 2 + e % 2; }

/* 16 terms of 16 columns from `col` on. */
__device__ __forceinline__ void multiply_columns(float *sum, const u32 (&h)[2][4], const u32 (&l)[2][4], const u16 *b, const float (&scale_a)[4], const float *unscaled_b,
                                                 int col, int k)
{
    const int lane = threadIdx.x % 32;
    const u16 *const at = b + (col + lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8 + k * 16;
    u32 bh[4], bl[4];
    float part[4][4] = {};
    read_rows(bh, at);
    read_rows(bl, at + LOW);
#pragma unroll
    for (int e = 0; e < 4; e++) {
        multiply(part[e], h[e / 2], bl[e % 2 * 2], bl[e % 2 * 2 + 1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        multiply(part[e], l[e / 2], bh[e % 2 * 2], bh[e % 2 * 2 + 1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        multiply(part[e], h[e / 2], bh[e % 2 * 2], bh[e % 2 * 2 + 1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const float scale_b = unscaled_b[who<B_DENSE>(col / 8 + e % 2, k)];
#pragma unroll
        for (int i = 0; i < 4; i++) {   /* 0 times what is too large for a float would be no number */
            sum[e * 4 + i] += part[e][i] * fminf(scale_a[e / 2 * 2 + i / 2] * scale_b, 0x1p127f);
        }
    }
}

/* This warp's terms of a step. */
__device__ __forceinline__ void multiply_tiles(float (&sum)[32], const u16 *tiles, const float (*unscaled)[WARPS])
{
    const int lane = threadIdx.x % 32;
    const u16 *const row = tiles + (first_row() + lane % 16) * PITCH + lane / 16 * 8, *const b = tiles + 2 * LOW;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int k = threadIdx.x / 128 * 2 + i;
        u32 h[2][4], l[2][4];
        float scale[4];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            read_rows(h[m], row + m * 16 * PITCH + k * 16);
            read_rows(l[m], row + m * 16 * PITCH + k * 16 + LOW);
        }
#pragma unroll
        for (int m = 0; m < 4; m++) {
            scale[m] = unscaled[0][who<A_DENSE>(first_row() / 8 + m, k)];
        }
        multiply_columns(sum, h, l, b, scale, unscaled[1], first_col(), k);
        multiply_columns(sum + 16, h, l, b, scale, unscaled[1], first_col() + 16, k);
    }
}

/* Of a row of A and a column of B. */
__device__ __noinline__ float plain_sum(const float *a, const float *b, places a_terms, places b_terms, int from, int end)
{
    float sum = 0;
    for (int k = from; k < end; k++) {
        sum = fmaf(a[at(a_terms, k)], b[at(b_terms, k)], sum);
    }
    return sum;
}

/* By those who have a step's first terms, all of them. */
__device__ __forceinline__ void multiply_plainly(float (&sum)[32], const side &a, const side &b, const step &s, const args &p)
{
    const int end = min(s.k + TILE, p.k), cols = min(p.n - s.j, TILE);
    float more[32];
#pragma unroll 1
    for (int e = 0; e < 32; e++) {
        const int row = row_of(e), col = col_of(e);
        more[e] = threadIdx.x < 128 && row < a.rows && col < cols
                      ? plain_sum(a.x + s.matrix * a.outer + at(a.all, a.from + row), b.x + s.matrix * b.outer + at(b.all, s.j + col), a.terms, b.terms, s.k, end)
                      : 0;
    }
#pragma unroll
    for (int e = 0; e < 32; e++) {
        sum[e] += more[e];
    }
}

/* What strides leave out beside a place of C: so many lines, so many places of each. */
__device__ __noinline__ void zeros_around(float *to, i64 down, i64 right, int lines, int across)
{
    for (int i = 0; i < lines; i++) {
        for (int j = i == 0; j < across; j++) {
            to[i * down + j * right] = 0;
        }
    }
}

/* An element of C, whose row begins at c, and that of C0 at c0. */
__device__ __forceinline__ void finished(const args &p, float *c, const float *c0, int col, i64 col_at, float sum)
{
    const float v = p.alpha * sum;
    c[col_at] = finish(c0 ? v + p.beta * c0[col * p.c0s[2]] : v, ACT);
#if !LINES
    if (p.around[0] * p.around[1] > 1) {
        const int line = col / p.c_cols.across, place = col - line * p.c_cols.across;
        zeros_around(c + col_at, p.c_cols.down / p.around[0], p.c_cols.right / p.around[1], min(p.around[0], p.size[0] - line * p.around[0]),
                     min(p.around[1], p.size[1] - place * p.around[1]));
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

/* What this warp has of a tile goes to its half's plane. */
__device__ __forceinline__ void lay_down(float (&sum)[32], float *planes)
{
    float *const mine = planes + threadIdx.x / 128 * PLANE;
    __syncthreads();            /* nobody multiplies what was there */
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
/* The barrier of the blocks that run together, for shared memory; none ends before others have read its parts; what lies at p in
 * another's shared memory. */
__device__ __forceinline__ void meet()
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 13
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
#else                           /* that would wait for memory, too, which nothing is passed through */
    asm volatile("fence.release.sync_restrict::shared::cta.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait; "
                 "fence.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
#endif
#endif
}
__device__ __forceinline__ void leave()
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ const float *of_block(const float *p, unsigned block)
{
    u64 a = (u64)p;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(a) : "l"(p), "r"(block));
#endif
    return (const float *)a;
}

/* A finished tile, of which each of the blocks has a part: some rows each, block by block, plane by plane. */
__device__ __forceinline__ void put(const args &p, float (&sum)[32], float *planes, int i, int j, int batch)
{
    lay_down(sum, planes);
    meet();
    const int c = threadIdx.x % TILE, col = j + c, rows = col < p.n ? min(p.m - i, TILE) : 0, each = (TILE + p.splits - 1) / p.splits;
    const i64 col_at = at(p.c_cols, col);
    for (int r = blockIdx.y * each + threadIdx.x / TILE; r < min((int)(blockIdx.y + 1) * each, rows); r += 256 / TILE) {
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
/* A finished tile: both planes of it, one for each half of terms, are added where they meet. */
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
            finished(p, p.c + batch * p.cs[0] + (i + r) * p.cs[1], row_of_c0(p, batch, i + r), col, col_at, v);
        }
    }
    __syncthreads();
}
#endif

/* While a step is multiplied, the next one's operands are cut, and those behind them on their way. */
extern "C" __global__ void __launch_bounds__(256, 2) product(const __grid_constant__ args p)
{
    extern __shared__ uint4 room[];
    float (*const unscaled)[2][WARPS] = (float (*)[2][WARPS])((u16 *)room + 2 * TILES); /* of two steps, A and B */
    const int down = (p.m + TILE - 1) / TILE, across = (p.n + TILE - 1) / TILE, i = blockIdx.x % down * TILE, first = blockIdx.x / down * p.run, batch = blockIdx.z;
    const int each = (p.k + TILE - 1) / TILE, chunks = each * p.outer, from = SPLIT ? chunks * blockIdx.y / p.splits : 0;
    const int steps = ((SPLIT ? (int)(chunks * (blockIdx.y + 1) / p.splits) : chunks) - from) * min(p.run, across - first);
    const side sa = side_of<A_DENSE>(p.a + batch * p.as[0], in_line(p.as[1]), i, min(p.m - i, TILE), in_line(p.as[2]), p.outer_step[0], p.fours[0]);
    side sb = side_of<B_DENSE>(p.b + batch * p.bs, p.b_cols, first * TILE, min(p.n - first * TILE, TILE), p.b_terms, p.outer_step[1], p.fours[1]);
    float sum[32] = {}, va[MINE], vb[MINE];
    step now = { first * TILE, from / each, from % each * TILE }, ahead = now;
    bool plain = false;
    follow();
#pragma unroll 1
    for (int q = -2; q < steps; q++) {          /* ahead: step q + 2 */
        u16 *const here = (u16 *)room + (q & 1) * TILES, *const there = (u16 *)room + (q + 1 & 1) * TILES;
        bool odd = false;
        if (q >= -1 && q + 1 < steps) {
            odd = cut(there, unscaled[q + 1 & 1][0], sa, va) | cut(there + 2 * LOW, unscaled[q + 1 & 1][1], sb, vb);
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
                multiply_tiles(sum, here, unscaled[q & 1]);
            }
            advance(p, now);
            if (q + 1 == steps || now.j != j) {
                put(p, sum, (float *)(TOGETHER ? (u16 *)room : here), i, j, batch);   /* there for all of those that run together */
            }
        }
        plain = __syncthreads_or(odd);
    }
}

/* What the parts of sums come to: a thread an element where they are few, else a warp some parts of it. */
__device__ __forceinline__ void added(const args &p, int e, float sum)
{
    const int each = p.m * p.n, batch = e / each, row = e % each / p.n;
    finished(p, p.c + batch * p.cs[0] + row * p.cs[1], row_of_c0(p, batch, row), e % p.n, at(p.c_cols, e % p.n), sum);
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

extern "C" __global__ void __launch_bounds__(256) add_few(const __grid_constant__ args p)
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
