/* svd.cu: singular values and vectors of small matrices by rotations of their columns (Hestenes), a block of
 * threads for each matrix, in shared memory.
 *
 * The tall one of the matrix and its transpose is treated: its columns are rotated until each two are
 * orthogonal, and LANES adjacent threads share a pair.  Their lengths are then the singular values.  Columns
 * that are shorter than rounding makes them count as zeros; vectors in their place, and further ones that are
 * wanted, complete the basis.
 *
 * p, q: rows and columns of the tall matrix; side: left vectors of it. */
struct matrix {
    T *a, *v, *s, *spare, *flip;    /* a: a column of the tall matrix in each row */
    int *from, *whole, p, q, even, side, lda, ldv;
    bool wide;
};

/* *most: the largest magnitude.  Returns: are all elements finite? */
__device__ static int load(const matrix &x, const T *from, T *most)
{
    const int cols = x.wide ? x.p : x.q;
    int good = 1;
    T mine = 0;
    for (int e = x.q * x.lda + threadIdx.x; e < x.even * x.lda; e += THREADS) {
        x.a[e] = 0;
    }
    for (unsigned e = threadIdx.x; e < (unsigned)(x.p * x.q); e += THREADS) {
        const int i = e / cols, j = e % cols;
        const T u = from[e];
        x.a[x.wide ? i * x.lda + j : j * x.lda + i] = u;
        good &= u - u == 0;
        mine = magnitude(u) > mine ? magnitude(u) : mine;
    }
    for (unsigned e = threadIdx.x; VECTORS && e < (unsigned)(x.even * x.ldv); e += THREADS) {
        x.v[e] = (T)(e / x.ldv == e % x.ldv);
    }
    good = !__syncthreads_or(!good);
    *most = largest(mine);
    return good;
}

__device__ __forceinline__ T of_lanes(T v)
{
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) {
        v += __shfl_xor_sync(0xffffffff, v, d);
    }
    return v;
}

__device__ __forceinline__ void rotate_columns(T *f, T *g, int n, T s, T tau)
{
    for (int i = threadIdx.x % LANES; i < n; i += LANES) {
        rotate(f + i, g + i, s, tau);
    }
}

/* Pair k of a step, by LANES threads; there may be none.  null: the square of a length that counts as 0.
 * Returns: was it rotated? */
__device__ __forceinline__ int orthogonalize(const matrix &x, int k, int step, T null, T close)
{
    int p = 0, q = 0;
    const bool there = k < x.even / 2;
    T pp = 0, qq = 0, pq = 0, c, s;
    if (there) {
        pair_of(k, step, x.even, &p, &q);
    }
    T *const f = x.a + p * x.lda, *const g = x.a + q * x.lda;
    for (int i = threadIdx.x % LANES; i < x.p; i += LANES) {
        const T u = f[i], w = g[i];
        pp += u * u;
        qq += w * w;
        pq += u * w;
    }
    pp = of_lanes(pp);
    qq = of_lanes(qq);
    pq = of_lanes(pq);
    if (!there || !(pp > null && qq > null && magnitude(pq) > close * (root(pp) * root(qq)))) {
        return 0;
    }
    tangent(qq - pp, pq, &c, &s);
    rotate_columns(f, g, x.p, s, s / (1 + c));
    if (VECTORS) {
        rotate_columns(x.v + p * x.ldv, x.v + q * x.ldv, x.q, s, s / (1 + c));
    }
    return 1;
}

/* Returns 0, or 1: no end after SWEEPS sweeps */
__device__ static int iterate(const matrix &x, T null)
{
    const T close = roundoff() * root((T)x.p);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int turns = 0;
        for (int step = 0; step < x.even - 1; step++) {
            for (int k0 = 0; k0 < x.even / 2; k0 += THREADS / LANES) {
                turns |= orthogonalize(x, k0 + threadIdx.x / LANES, step, null, close);
            }
            __syncthreads();
        }
        if (!__syncthreads_or(turns)) {
            return 0;
        }
    }
    return 1;
}

/* Lengths of the columns, which become vectors of length 1 where they are not null. */
__device__ static void lengths(const matrix &x, T null)
{
    for (int k = threadIdx.x; k < x.q; k += THREADS) {
        const T *const f = x.a + k * x.lda;
        T sum = 0;
        for (int i = 0; i < x.p; i++) {
            sum += f[i] * f[i];
        }
        x.s[k] = root(sum);
        x.whole[k] = sum > null;
    }
    for (int k = x.q + threadIdx.x; k < x.side; k += THREADS) {
        x.whole[k] = 0;
        x.from[k] = k;
    }
    __syncthreads();
    for (unsigned e = threadIdx.x; VECTORS && e < (unsigned)(x.p * x.q); e += THREADS) {
        const int k = e / x.p;
        if (x.whole[k]) {
            x.a[k * x.lda + e % x.p] /= x.s[k];
        }
    }
    __syncthreads();
}

/* Left vector k becomes orthogonal to those that are whole: from the unit vector that is the least theirs. */
__device__ static void complete(const matrix &x, int k)
{
    T *const f = x.a + k * x.lda;
    for (int r = threadIdx.x; r < x.p; r += THREADS) {
        T sum = 0;
        for (int j = 0; j < x.side; j++) {
            sum += x.whole[j] ? x.a[j * x.lda + r] * x.a[j * x.lda + r] : (T)0;
        }
        x.spare[r] = sum;
    }
    __syncthreads();
    int least = 0;
    for (int r = 1; r < x.p; r++) {
        least = x.spare[r] < x.spare[least] ? r : least;
    }
    for (int r = threadIdx.x; r < x.p; r += THREADS) {
        f[r] = (T)(r == least);
    }
    __syncthreads();
    for (int turn = 0; turn < 2; turn++) {
        for (int j = threadIdx.x; j < x.side; j += THREADS) {
            T sum = 0;
            for (int r = 0; r < x.p; r++) {
                sum += x.whole[j] ? x.a[j * x.lda + r] * f[r] : (T)0;
            }
            x.spare[j] = sum;
        }
        __syncthreads();
        for (int r = threadIdx.x; r < x.p; r += THREADS) {
            T sum = 0;
            for (int j = 0; j < x.side; j++) {
                sum += x.whole[j] ? x.spare[j] * x.a[j * x.lda + r] : (T)0;
            }
            f[r] -= sum;
        }
        __syncthreads();
    }
    T sum = 0;
    for (int r = 0; r < x.p; r++) {
        sum += f[r] * f[r];
    }
    __syncthreads();
    for (int r = threadIdx.x; r < x.p; r += THREADS) {
        f[r] /= root(sum);
    }
    if (threadIdx.x == 0) {
        x.whole[k] = 1;
    }
    __syncthreads();
}

/* `count` vectors of n elements each, in order and with their signs: in columns or in rows of `to` */
__device__ static void put(const matrix &x, T *to, const T *from, int ld, int count, int n, bool columns)
{
    for (unsigned e = threadIdx.x; e < (unsigned)(count * n); e += THREADS) {
        const int k = columns ? e % count : e / n, i = columns ? e / count : e % n;
        to[e] = (k < x.q ? x.flip[k] : (T)1) * from[x.from[k] * ld + i];
    }
}

__device__ static void vectors(const matrix &x, T *u, T *vh)
{
    for (int k = 0; k < x.side; k++) {
        if (!x.whole[k]) {
            complete(x, k);
        }
    }
    for (int k = threadIdx.x; k < x.q; k += THREADS) {
        x.flip[k] = x.wide ? sign_of(x.v + x.from[k] * x.ldv, x.q) : sign_of(x.a + x.from[k] * x.lda, x.p);
    }
    __syncthreads();
    put(x, x.wide ? vh : u, x.a, x.lda, x.side, x.p, !x.wide);
    put(x, x.wide ? u : vh, x.v, x.ldv, x.q, x.q, x.wide);
}

extern "C" __global__ void __launch_bounds__(THREADS) singular(const __grid_constant__ args a)
{
    const int rows = (int)a.sizes[0], cols = (int)a.sizes[1];
    matrix x;
    x.wide = rows < cols;
    x.p = x.wide ? cols : rows;
    x.q = x.wide ? rows : cols;
    x.even = x.q + x.q % 2;
    x.side = VECTORS ? (int)a.sizes[2] : x.q;
    x.lda = x.p | 1;
    x.ldv = x.even + 1;
    x.a = dynamic;
    x.v = x.a + (x.side > x.even ? x.side : x.even) * x.lda;
    x.s = x.v + VECTORS * x.even * x.ldv;
    x.flip = x.s + x.even;
    x.spare = x.flip + x.even;
    x.from = (int *)(x.spare + x.p);
    x.whole = x.from + x.p;
    for (i64 m = blockIdx.x; m < a.batch; m += gridDim.x) {
        T most;
        if (!load(x, (const T *)(a.in[0] + m * a.in_bytes[0]), &most)) {
            fail(a, m, -1, 0);
            continue;
        }
        const T by = power_for(most), null = roundoff() * most * by;
        for (int e = threadIdx.x; by != 1 && e < x.q * x.lda; e += THREADS) {
            x.a[e] *= by;
        }
        __syncthreads();
        const int bad = iterate(x, null * null * x.p);
        lengths(x, null * null * x.p);
        sorted(x.from, x.s, 1, x.q, true);
        __syncthreads();
        T *const s = (T *)(a.out[VECTORS] + m * a.out_bytes[VECTORS]);
        for (int k = threadIdx.x; k < x.q; k += THREADS) {
            s[k] = x.s[x.from[k]] / by;
        }
        if (VECTORS) {
            vectors(x, (T *)(a.out[0] + m * a.out_bytes[0]), (T *)(a.out[2] + m * a.out_bytes[2]));
        }
        if (bad) {
            fail(a, m, bad, 0);
        }
        __syncthreads();
    }
}
