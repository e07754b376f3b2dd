/* cut.cu: float32 products of small matrices on tensor cores, with tiles that blocks cut into pairs of halves themselves.
 *
 * split.cu has the algebra, and for large matrices it packs them first.  Here a block has 64 x 64 of C and a part of the
 * summed axis; 64 terms at a time it takes tiles of A and B into registers, finds the largest of each, which sets their
 * scale, leaves their halves in shared memory and multiplies.  What 64 terms come to is scaled back and added up in float32.
 * Low halves are not scaled up, so that all three products have one sum; what is lost lies 2^40 below a tile's largest.
 * A tile with an infinity or a NaN is multiplied plainly, so that they come out as they should.
 * A sum may run over several matrices as well, `outer` of them: the places of all images.  Terms and columns of B, and columns of C,
 * may be places of an image: lines that are apart, and places in them; of C every one, or one in so many, with zeros around it.
 *
 * Parts of a sum are added by `add`, in order. */
typedef unsigned u32;
typedef unsigned short u16;
enum { TILE = 64, PITCH = TILE + 8, WARPS = 8, MINE = 16 };     /* MINE: elements of a tile that a thread takes, along the summed axis */

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
    const int line = i / p.across;
    return line * p.down + (i - line * p.across) * p.right;
}

__device__ __forceinline__ places in_line(i64 step)
{
    places p = { 0, step, 0x7fffffff };
    return p;
}

__device__ __forceinline__ side side_of(const float *x, const places &rows, int from, int count, const places &terms, i64 outer, int fours)
{
    const int t = threadIdx.x;
    side s;
    s.x = x;
    s.all = rows;
    s.terms = terms;
    s.outer = outer;
    s.from = from;
    s.rows = count;
    s.mine = terms.right == 1 ? t / 4 : t % TILE;
    s.first = terms.right == 1 ? t % 4 * MINE : t / TILE * MINE;
    s.mine_at = s.mine < count ? at(rows, from + s.mine) : 0;
    s.fours = fours;
    return s;
}

/* Zeros beyond the matrix. */
__device__ __forceinline__ void take(float (&v)[MINE], const side &s, int matrix, int from, int end)
{
    const int line = s.terms.across < 0x7fffffff ? (from + s.first) / s.terms.across : 0;   /* a division that most have no use for */
    int col = from + s.first - line * s.terms.across;
    const float *const x = s.x + matrix * s.outer + s.mine_at + line * s.terms.down + col * s.terms.right;
    const int have = s.mine < s.rows ? end - from - s.first : 0;
    if (s.fours && have >= MINE) {
#pragma unroll
        for (int e = 0; e < MINE; e += 4) {
            const float4 q = *(const float4 *)(x + e);
            v[e] = q.x;
            v[e + 1] = q.y;
            v[e + 2] = q.z;
            v[e + 3] = q.w;
        }
    } else if (have >= MINE && col <= s.terms.across - MINE) {
        const float *term = x;
#pragma unroll
        for (int e = 0; e < MINE; e++, term += s.terms.right) {
            v[e] = *term;
        }
    } else {
        const float *term = x;
#pragma unroll
        for (int e = 0; e < MINE; e++, col++, term += s.terms.right) {
            if (col == s.terms.across) {
                col = 0;
                term += s.terms.down - s.terms.across * s.terms.right;
            }
            v[e] = e < have ? *term : 0.f;
        }
    }
}

/* The bits of the largest |x|; what is no number is larger than all. */
__device__ __forceinline__ u32 largest(const float (&v)[MINE])
{
    u32 most = 0;
#pragma unroll
    for (int e = 0; e < MINE; e++) {
        const u32 bits = __float_as_uint(v[e]) & 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return over_warp(most);
}

__device__ __forceinline__ void cut(u16 *to, int low, const side &s, const float (&v)[MINE], u32 most)
{
    float f[2];
    u32 h[MINE / 2], l[MINE / 2];
    factors(most, f);
#pragma unroll
    for (int e = 0; e < MINE / 2; e++) {
        halve2(v[2 * e], v[2 * e + 1], f, &h[e], &l[e]);
    }
    uint4 *const at = (uint4 *)(to + s.mine * PITCH + s.first), *const below = (uint4 *)(to + low + s.mine * PITCH + s.first);
#pragma unroll
    for (int e = 0; e < 2; e++) {
        at[e] = { h[4 * e], h[4 * e + 1], h[4 * e + 2], h[4 * e + 3] };
        below[e] = { l[4 * e], l[4 * e + 1], l[4 * e + 2], l[4 * e + 3] };
    }
}

/* Where element e of a thread's sums stands in the tile: two by two matrices of 16 x 8 a warp. */
__device__ __forceinline__ int row_of(int e) { return threadIdx.x / 32 % 2 * 32 + e / 8 * 16 + threadIdx.x % 32 / 4 + e % 4 / 2 * 8; }
__device__ __forceinline__ int col_of(int e) { return threadIdx.x / 64 * 16 + e / 4 % 2 * 8 + threadIdx.x % 4 * 2 + e % 2; }

__device__ __forceinline__ void multiply_tiles(float (&sum)[16], const u16 *a, const u16 *b, float scale_a, float scale_b)
{
    const int lane = threadIdx.x % 32, low = TILE * PITCH;
    const u16 *const row = a + (threadIdx.x / 32 % 2 * 32 + lane % 16) * PITCH + lane / 16 * 8;
    const u16 *const col = b + (threadIdx.x / 64 * 16 + lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8;
    float part[4][4] = {};
#pragma unroll
    for (int k = 0; k < TILE; k += 16) {
        u32 h[2][4], l[2][4], bh[4], bl[4];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            read_rows(h[m], row + m * 16 * PITCH + k);
            read_rows(l[m], row + m * 16 * PITCH + k + low);
        }
        read_rows(bh, col + k);
        read_rows(bl, col + k + low);
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
    }
#pragma unroll
    for (int e = 0; e < 16; e++) {
        sum[e] += part[e / 4][e % 4] * scale_a * scale_b;
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

__device__ __forceinline__ void multiply_plainly(float (&sum)[16], const side &a, const side &b, const step &s, const args &p)
{
    const int end = min(s.k + TILE, p.k), cols = min(p.n - s.j, TILE);
    float more[16];
#pragma unroll 1
    for (int e = 0; e < 16; e++) {
        const int row = row_of(e), col = col_of(e);
        more[e] = row < a.rows && col < cols ? plain_sum(a.x + s.matrix * a.outer + at(a.all, a.from + row), b.x + s.matrix * b.outer + at(b.all, s.j + col),
                                                         a.terms, b.terms, s.k, end) : 0;
    }
#pragma unroll
    for (int e = 0; e < 16; e++) {
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
    if (p.around[0] * p.around[1] > 1) {
        const int line = col / p.c_cols.across, place = col - line * p.c_cols.across;
        zeros_around(c + col_at, p.c_cols.down / p.around[0], p.c_cols.right / p.around[1], min(p.around[0], p.size[0] - line * p.around[0]),
                     min(p.around[1], p.size[1] - place * p.around[1]));
    }
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
    if (s.matrix == p.outer && p.splits == 1) {
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

/* seen: what the warps have found largest, A's and then B's. */
__device__ __forceinline__ void tell(u32 (*seen)[WARPS], const float (&va)[MINE], const float (&vb)[MINE])
{
    const u32 most_a = largest(va), most_b = largest(vb);
    if (threadIdx.x % 32 == 0) {
        seen[0][threadIdx.x / 32] = most_a;
        seen[1][threadIdx.x / 32] = most_b;
    }
}

__device__ __forceinline__ u32 found(const u32 *seen)
{
    u32 most = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        most = seen[w] > most ? seen[w] : most;
    }
    return most;
}

__device__ __forceinline__ void put(const args &p, const float (&sum)[16], int i, int j, int batch)
{
#pragma unroll
    for (int e = 0; e < 6; e += e % 2 == 0 ? 1 : 3) {       /* a thread has four columns of four */
        const int col = j + col_of(e);
        const i64 col_at = p.splits > 1 ? col : at(p.c_cols, col);
#pragma unroll
        for (int r = 0; r < 16; r += r % 8 == 0 ? 2 : 6) {
            const int row = i + row_of(r);
            if (row >= p.m || col >= p.n) {
                continue;
            }
            if (p.splits > 1) {
                p.parts[((i64)(blockIdx.y * p.batch + batch) * p.m + row) * p.n + col_at] = sum[r + e];
            } else {
                finished(p, p.c + batch * p.cs[0] + row * p.cs[1], row_of_c0(p, batch, row), col, col_at, sum[r + e]);
            }
        }
    }
}

/* While a step is multiplied, the next one's operands are on their way. */
extern "C" __global__ void __launch_bounds__(256, 2) product(const __grid_constant__ args p)
{
    __shared__ uint4 room[2][2 * TILE * PITCH / 8];
    __shared__ u32 seen[2][WARPS];
    const int down = (p.m + TILE - 1) / TILE, across = (p.n + TILE - 1) / TILE, i = blockIdx.x % down * TILE, first = blockIdx.x / down * p.run, batch = blockIdx.z;
    const int each = (p.k + TILE - 1) / TILE, chunks = each * p.outer, from = (int)((i64)chunks * blockIdx.y / p.splits);
    const int steps = ((int)((i64)chunks * (blockIdx.y + 1) / p.splits) - from) * min(p.run, across - first);
    u16 *const a = (u16 *)room[0], *const b = (u16 *)room[1];
    const side sa = side_of(p.a + batch * p.as[0], in_line(p.as[1]), i, min(p.m - i, TILE), in_line(p.as[2]), p.outer_step[0], p.fours[0]);
    side sb = side_of(p.b + batch * p.bs, p.b_cols, first * TILE, min(p.n - first * TILE, TILE), p.b_terms, p.outer_step[1], p.fours[1]);
    float sum[16] = {}, va[MINE], vb[MINE];
    step now, next = { first * TILE, from / each, from % each * TILE };
    take(va, sa, next.matrix, next.k, p.k);
    take(vb, sb, next.matrix, next.k, p.k);
    for (int q = 0; q < steps; q++) {
        tell(seen, va, vb);
        __syncthreads();        /* and nobody multiplies the tiles before */
        const u32 most_a = found(seen[0]), most_b = found(seen[1]);
        cut(a, TILE * PITCH, sa, va, most_a);
        cut(b, TILE * PITCH, sb, vb, most_b);
        __syncthreads();
        now = next;
        advance(p, next);
        if (next.j != now.j) {
            turn_to(p, sb, next.j);
        }
        take(va, sa, next.matrix, next.k, q + 1 < steps ? p.k : 0);
        take(vb, sb, next.matrix, next.k, q + 1 < steps ? p.k : 0);
        if (most_a < 0x7f800000 && most_b < 0x7f800000) {
            multiply_tiles(sum, a, b, unscaled(most_a), unscaled(most_b));
        } else {
            multiply_plainly(sum, sa, sb, now, p);
        }
        if (q + 1 == steps || next.j != now.j) {
            put(p, sum, i, now.j, batch);
#pragma unroll
            for (int e = 0; e < 16; e++) {
                sum[e] = 0;
            }
        }
    }
}

/* What the parts of sums come to. */
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    const int each = p.m * p.n, count = each * p.batch, e = blockIdx.x * 32 + threadIdx.x % 32;
    const float sum = sum_of_parts(p.parts, count, p.splits, e);
    if (threadIdx.x < 32 && e < count) {
        const int batch = e / each, row = e % each / p.n;
        finished(p, p.c + batch * p.cs[0] + row * p.cs[1], row_of_c0(p, batch, row), e % p.n, at(p.c_cols, e % p.n), sum);
    }
}
