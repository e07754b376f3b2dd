/* eigh.cu: eigenvalues and eigenvectors of small symmetric matrices by Jacobi's rotations, a block of threads
 * for each matrix, in shared memory.
 *
 * Both triangles are kept.  A step finds all rotations, then each thread rotates squares of two rows by two
 * columns, and pairs of vectors.  A size that is odd gets a row and a column of zeros. */
struct matrix {
    T *a, *v, *c, *s, *t, *tau; /* tau: later the signs of vectors */
    int *p, *q, *from, n, even, ld;
};

/* The rotations of a step.  Returns: does this thread have one? */
__device__ __forceinline__ int find(const matrix &x, int step, T least)
{
    int turns = 0;
    for (int k = threadIdx.x; k < x.even / 2; k += THREADS) {
        int p, q;
        T c = 1, s = 0, t = 0;
        pair_of(k, step, x.even, &p, &q);
        const T xy = x.a[p * x.ld + q];
        if (magnitude(xy) > least) {
            t = tangent(x.a[q * x.ld + q] - x.a[p * x.ld + p], xy, &c, &s);
            turns = 1;
        }
        x.p[k] = p;
        x.q[k] = q;
        x.c[k] = c;
        x.s[k] = s;
        x.t[k] = t;
        x.tau[k] = s / (1 + c);
    }
    return turns;
}

/* The square of the rows of pair i and the columns of pair j, and what mirrors it. */
__device__ __forceinline__ void rotate_square(const matrix &x, int i, int j)
{
    const int p = x.p[i], q = x.q[i], u = x.p[j], v = x.q[j], ld = x.ld;
    const T ci = x.c[i], si = x.s[i], cj = x.c[j], sj = x.s[j];
    if (i == j) {
        const T part = x.t[i] * x.a[p * ld + q];
        if (si != 0) {
            x.a[p * ld + p] -= part;
            x.a[q * ld + q] += part;
            x.a[p * ld + q] = x.a[q * ld + p] = 0;
        }
        return;
    }
    if (si == 0 && sj == 0) {
        return;
    }
    const T pu = x.a[p * ld + u], pv = x.a[p * ld + v], qu = x.a[q * ld + u], qv = x.a[q * ld + v];
    const T pu1 = ci * pu - si * qu, pv1 = ci * pv - si * qv;
    const T qu1 = si * pu + ci * qu, qv1 = si * pv + ci * qv;
    x.a[p * ld + u] = x.a[u * ld + p] = cj * pu1 - sj * pv1;
    x.a[p * ld + v] = x.a[v * ld + p] = sj * pu1 + cj * pv1;
    x.a[q * ld + u] = x.a[u * ld + q] = cj * qu1 - sj * qv1;
    x.a[q * ld + v] = x.a[v * ld + q] = sj * qu1 + cj * qv1;
}

__device__ __forceinline__ void rotate_all(const matrix &x)
{
    const unsigned half = x.even / 2, squares = half * (half + 1) / 2;
    for (unsigned e = threadIdx.x; e < squares; e += THREADS) {
        /* a row of the triangle, and the one that makes it half + 1 long */
        const unsigned row = e / (half + 1), at = e % (half + 1), i = at < half - row ? row : half - 1 - row;
        rotate_square(x, i, at < half - row ? row + at : i + at - (half - row));
    }
#if VECTORS
    for (unsigned e = threadIdx.x; e < half * x.n; e += THREADS) {
        const unsigned k = e / x.n, r = e % x.n;
        if (x.s[k] != 0) {
            rotate(x.v + x.p[k] * x.ld + r, x.v + x.q[k] * x.ld + r, x.s[k], x.tau[k]);
        }
    }
#endif
}

/* The matrix from its lower triangle.  *most: its largest magnitude.  Returns: are all elements finite? */
__device__ static int load(const matrix &x, const T *from, T *most)
{
    int good = 1;
    T mine = 0;
    for (unsigned e = threadIdx.x; e < (unsigned)(x.even * x.even); e += THREADS) {
        const int i = e / x.even, j = e % x.even;
        const T u = i < x.n && j <= i ? from[i * x.n + j] : (T)0;
        if (j <= i) {
            x.a[i * x.ld + j] = x.a[j * x.ld + i] = u;
        }
#if VECTORS
        x.v[i * x.ld + j] = (T)(i == j);
#endif
        good &= u - u == 0;
        mine = magnitude(u) > mine ? magnitude(u) : mine;
    }
    good = !__syncthreads_or(!good);
    *most = largest(mine);
    return good;
}

__device__ static void scale(const matrix &x, T by)
{
    for (int i = threadIdx.x; i < x.even * x.ld; i += THREADS) {
        x.a[i] *= by;
    }
    __syncthreads();
}

/* Returns 0, or 1: no end after SWEEPS sweeps */
__device__ static int diagonalize(const matrix &x, T least)
{
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int turns = 0;
        for (int step = 0; step < x.even - 1; step++) {
            turns |= find(x, step, least);
            __syncthreads();
            rotate_all(x);
            __syncthreads();
        }
        if (!__syncthreads_or(turns)) {
            return 0;
        }
    }
    return 1;
}

__device__ static void store(const matrix &x, T by, T *w, T *v)
{
    sorted(x.from, x.a, x.ld + 1, x.n, false);
    __syncthreads();
    for (int k = threadIdx.x; k < x.n; k += THREADS) {
        w[k] = x.a[x.from[k] * (x.ld + 1)] / by;
#if VECTORS
        x.tau[k] = sign_of(x.v + x.from[k] * x.ld, x.n);
#endif
    }
    __syncthreads();
#if VECTORS
    for (unsigned e = threadIdx.x; e < (unsigned)(x.n * x.n); e += THREADS) {
        const int k = e % x.n;
        v[e] = x.tau[k] * x.v[x.from[k] * x.ld + e / x.n];
    }
#endif
}

__device__ static void fill(T *to, int n, T value)
{
    for (int i = threadIdx.x; i < n; i += THREADS) {
        to[i] = value;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) spectrum(const __grid_constant__ args a)
{
    const int n = (int)a.sizes[0], even = n + n % 2, ld = even + 1;
    matrix x;
    x.n = n;
    x.even = even;
    x.ld = ld;
    x.a = dynamic;
    x.v = x.a + even * ld;
    x.c = x.v + VECTORS * even * ld;
    x.s = x.c + even;
    x.t = x.s + even;
    x.tau = x.t + even;
    x.p = (int *)(x.tau + even);
    x.q = x.p + even;
    x.from = x.q + even;
    for (i64 m = blockIdx.x; m < a.batch; m += gridDim.x) {
        T *const w = (T *)(a.out[0] + m * a.out_bytes[0]), *const v = (T *)(a.out[1] + m * a.out_bytes[1]);
        T most;
        if (!load(x, (const T *)(a.in[0] + m * a.in_bytes[0]), &most)) {
            const T nan = (T)__longlong_as_double(0x7ff8000000000000ll);
            fill(w, n, nan);
            fill(v, VECTORS * n * n, nan);
            continue;
        }
        const T by = power_for(most);
        if (by != 1) {
            scale(x, by);
        }
        const int bad = diagonalize(x, roundoff() / 8 * (most * by));
        store(x, by, w, v);
        if (bad) {
            fail(a, m, bad, w[0]);
        }
        __syncthreads();
    }
}
