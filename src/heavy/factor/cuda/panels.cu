/* panels.cu: factors and systems of equations of small matrices, a block of threads for each matrix, in
 * panels of NB columns.
 *
 * The matrix, with its right hand sides as further columns, lies column after column: in shared memory, or
 * with SHARED 0 in the block's part of the scratch.  Thread r, and those that are ROWS apart, have row r: the
 * first ROWS threads keep their rows of a panel in registers, all GROUPS share the columns beside it.
 * Rows do not move: row `order[i]` counts as row i, and place[order[i]] is i.
 *
 * KIND is enum mc_factor_kind: 0 cholesky, 1 triangular, 2 lu, 3 solve, 4 inverse.  Of a triangle, TURNED: it
 * is transposed; FORWARD: it is then the lower one; UNIT: its diagonal is ones. */
enum { WARPS = ROWS / 32, NB = 16, CHUNK = ROWS < 128 ? ROWS : 128, COLUMNS = SHARED ? 4 : 8, SIDE = 16 };
enum { NONE = 1 << 20 };
struct matrix {
    T *at;                      /* (width, ld) */
    int ld, rows, cols, width;
};

/* Column c, whose rows from c on are all that there is of a lower triangle in shared memory. */
__device__ __forceinline__ T *column(const matrix &x, int c)
{
    return x.at + (KIND == 0 && SHARED ? c * x.rows - c * (c + 1) / 2 : c * x.ld);
}

__shared__ __align__(16) T across[(CHUNK + COLUMNS * GROUPS) * NB]; /* rows of a panel of U, a column each */
__shared__ __align__(16) T corner[NB * NB];     /* the panel's rows on the diagonal */
__shared__ __align__(16) T top[2][NB], roots[2][NB]; /* the row of a pivot, or a column of the corner */
__shared__ T most_of[WARPS];
__shared__ int place_of[WARPS], place[ROWS], order[ROWS], first_zero;

/* ---- between C order and columns ---- */

/* Elements that a thread reads before it writes the first: a read takes hundreds of cycles. */
enum { AT_ONCE = 8 };

#if SHARED
/* to (cols, ld) = the transpose of from (rows, cols) */
__device__ static void load(const matrix &x, int to, const T *from, int cols)
{
    const unsigned n = x.rows * cols;
    for (unsigned e = threadIdx.x; e < n; e += THREADS * AT_ONCE) {
        T v[AT_ONCE];
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            v[q] = e + q * THREADS < n ? from[e + q * THREADS] : (T)0;
        }
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            const int i = (e + q * THREADS) / cols, j = (e + q * THREADS) % cols;
            if (e + q * THREADS < n && (KIND || j <= i)) {
                column(x, to + j)[i] = v[q];
            }
        }
    }
}

/* to (rows, cols) = the transpose of from (cols, ld), its rows in order.  lower: zeros above the diagonal */
__device__ static void store(T *to, const matrix &x, int from, int cols, bool lower)
{
    for (unsigned e = threadIdx.x; e < (unsigned)(x.rows * cols); e += THREADS) {
        const int i = e / cols, j = e % cols;
        to[e] = lower && j > i ? (T)0 : column(x, from + j)[order[i]];
    }
}
#else
/* The same by squares of SIDE by SIDE elements, one for each warp at a time. */
#define EACH_SQUARE(i, j, rows, cols)                                                                    \
    for (int square = threadIdx.x / 32, wide = ((cols) + SIDE - 1) / SIDE, i = square / wide * SIDE,     \
             j = square % wide * SIDE;                                                                   \
         i < (rows); square += THREADS / 32, i = square / wide * SIDE, j = square % wide * SIDE)
#define SQUARE (dynamic + threadIdx.x / 32 * SIDE * (SIDE + 1))

__device__ static void load(const matrix &x, int to, const T *from, int cols)
{
    T *const s = SQUARE, v[AT_ONCE];
    const int lane = threadIdx.x % SIDE, y = threadIdx.x % 32 / SIDE;
    EACH_SQUARE (i, j, x.rows, cols) {
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            const int k = y + 2 * q;
            v[q] = i + k < x.rows && j + lane < cols ? from[(i + k) * cols + j + lane] : (T)0;
        }
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            s[(y + 2 * q) * (SIDE + 1) + lane] = v[q];
        }
        __syncwarp();
        for (int k = y; k < SIDE; k += 2) {
            if (i + lane < x.rows && j + k < cols) {
                column(x, to + j + k)[i + lane] = s[lane * (SIDE + 1) + k];
            }
        }
        __syncwarp();
    }
}

__device__ static void store(T *to, const matrix &x, int from, int cols, bool lower)
{
    T *const s = SQUARE, v[AT_ONCE];
    const int lane = threadIdx.x % SIDE, y = threadIdx.x % 32 / SIDE;
    EACH_SQUARE (i, j, x.rows, cols) {
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            const int k = y + 2 * q;
            const bool there = i + lane < x.rows && j + k < cols && !(lower && j + k > i + lane);
            v[q] = there ? column(x, from + j + k)[order[i + lane]] : (T)0;
        }
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            s[lane * (SIDE + 1) + y + 2 * q] = v[q];
        }
        __syncwarp();
        for (int k = y; k < SIDE; k += 2) {
            if (i + k < x.rows && j + lane < cols) {
                to[(i + k) * cols + j + lane] = s[k * (SIDE + 1) + lane];
            }
        }
        __syncwarp();
    }
}
#endif

/* ---- beside a panel ---- */

/* The columns c0 .. c0 + n lose, in the rows whose places are from low to high, what the columns k0 .. k0 +
 * nb and `across` give.  Of a lower triangle only what is in it. */
__device__ __forceinline__ void update(const matrix &x, int k0, int nb, int c0, int n, int low, int high)
{
    const int r = threadIdx.x % ROWS, group = threadIdx.x / ROWS;
    if (r >= x.rows || place[r] < low || place[r] >= high) {
        return;
    }
    T l[NB];
#pragma unroll
    for (int j = 0; j < NB; j++) {
        l[j] = j < nb ? column(x, k0 + j)[r] : (T)0;
    }
    const int end = KIND == 0 && r + 1 - c0 < n ? r + 1 - c0 : n;
    for (int c = group; c < end; c += COLUMNS * GROUPS) {
        T sum[COLUMNS];
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) {
            sum[q] = c + q * GROUPS < end ? column(x, c0 + c + q * GROUPS)[r] : (T)0;
        }
#pragma unroll
        for (int j = 0; j < NB; j++) {
#pragma unroll
            for (int q = 0; q < COLUMNS; q++) {
                sum[q] -= l[j] * across[(c + q * GROUPS) * NB + j];
            }
        }
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) {
            if (c + q * GROUPS < end) {
                column(x, c0 + c + q * GROUPS)[r] = sum[q];
            }
        }
    }
}

/* Columns from .. to: their rows in the panel are divided by the triangle in `corner`, and rows whose places
 * are from low to high are updated.  forward: the triangle is the lower one; divides: its diagonal is not 1
 */
template <bool forward, bool divides>
__device__ __forceinline__ void pass(const matrix &x, int k0, int nb, int from, int to, int low, int high)
{
    for (int c0 = from; c0 < to; c0 += CHUNK) {
        const int n = to - c0 < CHUNK ? to - c0 : CHUNK;
        for (int c = threadIdx.x; c < n; c += THREADS) {
            T *const rows = column(x, c0 + c), u[NB];
#pragma unroll
            for (int j = 0; j < NB; j++) {
                u[j] = j < nb ? rows[order[k0 + j]] : (T)0;
            }
#pragma unroll
            for (int s = 0; s < NB; s++) {
                const int j = forward ? s : NB - 1 - s;
                asm volatile("" ::: "memory"); /* or the corner is loaded as a whole, and spilled */
                if (divides) {
                    u[j] /= corner[j * NB + j];
                }
#pragma unroll
                for (int i = forward ? j + 1 : 0; i < (forward ? NB : j); i++) {
                    u[i] -= corner[i * NB + j] * u[j];
                }
            }
#pragma unroll
            for (int j = 0; j < NB; j++) {
                across[c * NB + j] = j < nb ? u[j] : (T)0; /* not NaN */
                if (j < nb) {
                    rows[order[k0 + j]] = u[j];
                }
            }
        }
        __syncthreads();
        update(x, k0, nb, c0, n, low, high);
        __syncthreads();
    }
}

/* corner = the rows of the panel on the diagonal; of the unit matrix, where the panel has less than NB */
__device__ __forceinline__ void take_corner(const matrix &x, int k0, int nb)
{
    for (int e = threadIdx.x; e < NB * NB; e += THREADS) {
        const int i = e / NB, j = e % NB;
        corner[e] = i < nb && j < nb ? column(x, k0 + j)[order[k0 + i]] : (T)(i == j);
    }
    __syncthreads();
}

/* x / y by z, which is 1 / y: in less time, unless that is too large */
__device__ __forceinline__ T quotient(T x, T y, T z)
{
    return z - z == 0 ? x * z : x / y;
}

__device__ __forceinline__ void rows_in_order(int rows)
{
    for (int r = threadIdx.x; r < ROWS; r += THREADS) {
        place[r] = order[r] = r;
    }
    if (threadIdx.x == 0) {
        first_zero = NONE;
    }
}

#if KIND == 0
/* ---- cholesky ---- */

/* The lower triangle becomes L.  Returns 1 + the row of the first pivot that is 0 or negative, or 0. */
__device__ static int factors(const matrix &x, T *bad)
{
    const int n = x.rows, r = threadIdx.x;
    for (int k0 = 0; k0 < n; k0 += NB) {
        const int nb = n - k0 < NB ? n - k0 : NB;
        T row[NB], own = 1;
#pragma unroll
        for (int j = 0; j < NB; j++) {
            row[j] = r >= k0 + j && r < n && j < nb ? column(x, k0 + j)[r] : (T)0;
        }
        /* elimination, whose pivots are the squares of L's diagonal */
#pragma unroll
        for (int j = 0; j < NB; j++) {
            if (j < nb) {
                T *const beside = top[j % 2];
                if (r >= k0 + j && r < k0 + nb) {
                    beside[r - k0] = row[j];
                }
                __syncthreads();
                const T pivot = beside[j], part = quotient(row[j], pivot, 1 / pivot);
                if (pivot <= 0) { /* NaN goes on, as in NumPy */
                    *bad = pivot;
                    return k0 + j + 1;
                }
#pragma unroll
                for (int c = j + 1; c < NB; c++) {
                    row[c] -= part * beside[c];
                }
                own = r == k0 + j ? pivot : own;
            }
        }
        if (r >= k0 && r < k0 + nb) {
            roots[0][r - k0] = root(own);
            roots[1][r - k0] = 1 / root(own);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < NB; j++) {
            if (r >= k0 + j && r < n && j < nb) {
                row[j] = r == k0 + j ? roots[0][j] : quotient(row[j], roots[0][j], roots[1][j]);
                column(x, k0 + j)[r] = row[j];
            }
        }
        for (int c0 = k0 + nb; c0 < n; c0 += CHUNK) {
            if (r >= c0 && r < c0 + CHUNK && r < n) {
#pragma unroll
                for (int j = 0; j < NB; j++) {
                    across[(r - c0) * NB + j] = j < nb ? row[j] : (T)0;
                }
            }
            __syncthreads();
            update(x, k0, nb, c0, n - c0 < CHUNK ? n - c0 : CHUNK, c0, n);
            __syncthreads();
        }
    }
    return 0;
}

__device__ static int matrix_of(const args &a, i64 m, const matrix &x, T *bad)
{
    load(x, 0, (const T *)(a.in[0] + m * a.in_bytes[0]), x.rows);
    rows_in_order(x.rows);
    __syncthreads();
    const int failed = factors(x, bad);
    __syncthreads();
    if (!failed) {
        store((T *)(a.out[0] + m * a.out_bytes[0]), x, 0, x.rows, true);
    }
    return failed;
}

#elif KIND == 1
/* ---- a triangle ---- */

__device__ static int matrix_of(const args &a, i64 m, const matrix &x, T *)
{
    const int n = x.rows, k = x.width - n;
    const T *const t = (const T *)(a.in[0] + m * a.in_bytes[0]);
    for (unsigned e = threadIdx.x; TURNED && e < (unsigned)(n * n); e += THREADS) {
        x.at[e / n * x.ld + e % n] = t[e];
    }
    if (!TURNED) {
        load(x, 0, t, n);
    }
    load(x, n, (const T *)(a.in[1] + m * a.in_bytes[1]), k);
    rows_in_order(n);
    __syncthreads();
    for (int r = threadIdx.x; !UNIT && r < n; r += THREADS) {
        if (x.at[r * x.ld + r] == 0) {
            atomicMin(&first_zero, r);
        }
    }
    __syncthreads();
    if (first_zero != NONE) {
        return first_zero + 1;
    }
    for (int s = 0; s < n; s += NB) {
        const int k0 = FORWARD ? s : (n - 1 - s) / NB * NB, nb = n - k0 < NB ? n - k0 : NB;
        take_corner(x, k0, nb);
        pass<FORWARD, !UNIT>(x, k0, nb, n, n + k, FORWARD ? k0 + nb : 0, FORWARD ? n : k0);
    }
    store((T *)(a.out[0] + m * a.out_bytes[0]), x, n, k, false);
    return 0;
}

#else
/* ---- elimination with partial pivoting ---- */

/* The first ROWS threads: the largest of each warp among the rows from place k on, the first of several.
 * That of place k is selected if it is NaN; another one is not. */
__device__ __forceinline__ void candidates(int mine, int k, T v)
{
    T most = magnitude(v);
    int at = mine >= k ? mine : NONE;
    most = mine < k ? (T)-1
           : v == v ? most
           : mine == k ? (T)__longlong_as_double(0x7ff0000000000000ll) : (T)-1;
#pragma unroll
    for (int d = 16; d; d /= 2) {
        const T other = __shfl_xor_sync(0xffffffff, most, d);
        const int there = __shfl_xor_sync(0xffffffff, at, d);
        const bool better = other > most || (other == most && there < at);
        most = better ? other : most;
        at = better ? there : at;
    }
    if (threadIdx.x % 32 == 0) {
        most_of[threadIdx.x / 32] = most;
        place_of[threadIdx.x / 32] = at;
    }
}

__device__ __forceinline__ int selected()
{
    T most = most_of[0];
    int at = place_of[0];
#pragma unroll
    for (int w = 1; w < WARPS; w++) {
        const bool better = most_of[w] > most || (most_of[w] == most && place_of[w] < at);
        most = better ? most_of[w] : most;
        at = better ? place_of[w] : at;
    }
    return at;
}

/* The panel k0 .. k0 + nb becomes its factors.  *turns: exchanges; *zero: 1 + the first pivot that is 0 */
__device__ __forceinline__ void panel(const matrix &x, int k0, int nb, int *turns, int *zero)
{
    const int r = threadIdx.x;
    int mine = r < x.rows ? place[r] : -1;
    T row[NB];
#pragma unroll
    for (int j = 0; j < NB; j++) {
        row[j] = r < x.rows && j < nb ? column(x, k0 + j)[r] : (T)0;
    }
#pragma unroll
    for (int j = 0; j < NB; j++) {
        if (j < nb) {
            const int k = k0 + j;
            if (r < ROWS) {
                candidates(mine, k, row[j]);
            }
            __syncthreads();
            const int at = selected();
            if (mine == at) {
#pragma unroll
                for (int c = 0; c < NB; c++) {
                    top[0][c] = row[c];
                }
            }
            mine = mine == at ? k : mine == k ? at : mine;
            *turns += at != k;
            __syncthreads();
            const T pivot = top[0][j], by = 1 / pivot;
            *zero = pivot == 0 && !*zero ? k + 1 : *zero;
            if (mine > k && pivot != 0) {
                row[j] = quotient(row[j], pivot, by);
#pragma unroll
                for (int c = j + 1; c < NB; c++) {
                    row[c] -= row[j] * top[0][c];
                }
            }
        }
    }
    if (r < x.rows) {
        place[r] = mine;
        order[mine] = r;
#pragma unroll
        for (int j = 0; j < NB; j++) {
            if (j < nb) {
                column(x, k0 + j)[r] = row[j];
            }
        }
    }
    __syncthreads();
}

__device__ static int matrix_of(const args &a, i64 m, const matrix &x, T *)
{
    const int right = x.width - x.cols, steps = x.rows < x.cols ? x.rows : x.cols;
    T *const out = (T *)(a.out[0] + m * a.out_bytes[0]), *const b = column(x, x.cols);
    int turns = 0, zero = 0;
    load(x, 0, (const T *)(a.in[0] + m * a.in_bytes[0]), x.cols);
    if (KIND == 3) {
        load(x, x.cols, (const T *)(a.in[1] + m * a.in_bytes[1]), right);
    }
    for (unsigned e = threadIdx.x; KIND == 4 && e < (unsigned)(x.rows * right); e += THREADS) {
        b[e / x.rows * x.ld + e % x.rows] = (T)(e / x.rows == e % x.rows);
    }
    rows_in_order(x.rows);
    __syncthreads();
    for (int k0 = 0; k0 < steps; k0 += NB) {
        const int nb = steps - k0 < NB ? steps - k0 : NB;
        panel(x, k0, nb, &turns, &zero);
        take_corner(x, k0, nb);
        pass<true, false>(x, k0, nb, k0 + nb, x.width, k0 + nb, x.rows);
    }
    if (KIND == 2) {
        for (int r = threadIdx.x; r < x.rows; r += THREADS) {
            ((i64 *)(a.out[1] + m * a.out_bytes[1]))[r] = order[r];
        }
        if (threadIdx.x == 0) {
            *(T *)(a.out[2] + m * a.out_bytes[2]) = (T)(turns % 2 ? -1 : 1);
        }
        store(out, x, 0, x.cols, false);
        return 0;
    }
    for (int k0 = (steps - 1) / NB * NB; k0 >= 0 && !zero; k0 -= NB) {
        const int nb = steps - k0 < NB ? steps - k0 : NB;
        take_corner(x, k0, nb);
        pass<false, true>(x, k0, nb, x.cols, x.width, 0, k0);
    }
    if (!zero) {
        store(out, x, x.cols, right, false);
    }
    return zero;
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS) panels(const __grid_constant__ args a)
{
    matrix x;
    x.rows = (int)a.sizes[0];
    x.cols = KIND == 2 ? (int)a.sizes[1] : x.rows;
    x.width = x.cols + (KIND == 1 || KIND == 3 ? (int)a.sizes[1] : KIND == 4 ? x.rows : 0);
    x.ld = x.rows | 1;
#if SHARED
    x.at = dynamic;
#else
    x.at = (T *)(a.work + blockIdx.x * a.stride);
#endif
    for (i64 m = blockIdx.x; m < a.batch; m += gridDim.x) {
        T pivot = 0;
        const int bad = matrix_of(a, m, x, &pivot);
        if (bad) {
            fail(a, m, bad, pivot);
        }
        __syncthreads();
    }
}
