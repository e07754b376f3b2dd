/* large.cu: what the steps of cusolver.c need beside the library: transposed copies, triangles, signs, orders
 * of rows, and the errors.
 *
 * T: the dtype.  SIDE by SIDE elements are transposed in shared memory. */
#include "heavy/factor/cuda/large_args.h"
typedef mc_large_args args;
enum { SIDE = 32, THREADS = 256 };
#define EACH(e, n) for (i64 e = blockIdx.x * (i64)THREADS + threadIdx.x; e < (n); e += gridDim.x * (i64)THREADS)

__device__ static void fail(const args &a, i64 bad, double pivot)
{
    if (a.err[0] == 0) { /* the first of several */
        a.err[1] = a.matrix;
        a.err[2] = bad;
        a.err[3] = a.number;
        a.err[4] = __double_as_longlong(pivot);
        a.err[0] = MC_CUDA_ERR_MATRIX;
    }
}

__device__ static T size_of(T x)
{
    return x < 0 ? -x : x;
}

/* to[j, i] = from[i, j]; triangle 1: zeros above to's diagonal; 2: below it */
extern "C" __global__ void __launch_bounds__(THREADS) transpose(const __grid_constant__ args a)
{
    __shared__ T s[SIDE][SIDE + 1];
    const i64 across = (a.cols + SIDE - 1) / SIDE, all = across * ((a.rows + SIDE - 1) / SIDE);
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    for (i64 block = blockIdx.x; block < all; block += gridDim.x) {
        const i64 i = block / across * SIDE, j = block % across * SIDE;
        for (int k = y; k < SIDE; k += THREADS / SIDE) {
            if (i + k < a.rows && j + x < a.cols) {
                s[k][x] = a.from[(i + k) * a.ldf + j + x];
            }
        }
        __syncthreads();
        for (int k = y; k < SIDE; k += THREADS / SIDE) {
            if (i + x < a.rows && j + k < a.cols) {
                const i64 down = j + k - (i + x);
                a.to[(j + k) * a.ldt + i + x] = a.triangle == (down < 0 ? 1 : 2) && down ? (T)0 : s[x][k];
            }
        }
        __syncthreads();
    }
}

/* to (rows, cols) = 1 on the diagonal, else 0 */
extern "C" __global__ void __launch_bounds__(THREADS) unit(const __grid_constant__ args a)
{
    EACH (e, a.rows * a.cols) {
        a.to[e] = (T)(e % a.cols == e / a.cols);
    }
}

/* info: is an element of `from` (rows, cols) not finite?  triangle 1: of those up to the diagonal */
extern "C" __global__ void __launch_bounds__(THREADS) infinities(const __grid_constant__ args a)
{
    EACH (e, a.rows * a.cols) {
        const T x = a.from[e];
        if (!(x - x == 0) && (a.triangle != 1 || e % a.cols <= e / a.cols)) {
            *a.info = 1;
        }
    }
}

/* to (rows) = value, if `info` is set */
extern "C" __global__ void __launch_bounds__(THREADS) replace(const __grid_constant__ args a)
{
    EACH (e, *a.info ? a.rows : 0) {
        a.to[e] = (T)a.value;
    }
}

/* An error if `info` is set.  from: numbers that the message shows one of; or NULL */
extern "C" __global__ void __launch_bounds__(1) tell(const __grid_constant__ args a)
{
    const int info = *a.info;
    if (info > 0) {
        fail(a, a.bad ? a.bad : info, a.from ? (double)a.from[info - 1] : 0);
    }
}

/* An error if an element of the diagonal is 0: the first one.  from: rows elements, ldf apart */
extern "C" __global__ void __launch_bounds__(THREADS) zeros(const __grid_constant__ args a)
{
    __shared__ unsigned first;
    if (threadIdx.x == 0) {
        first = 0xffffffffu;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < a.rows; i += THREADS) {
        if (a.from[i * a.ldf] == 0) {
            atomicMin(&first, (unsigned)i);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && first != 0xffffffffu) {
        fail(a, (i64)first + 1, 0);
    }
}

/* order (rows): what `cols` exchanges, of rows i and pivot[i] - 1, leave; to[0]: 1 or -1, their sign */
extern "C" __global__ void __launch_bounds__(THREADS) orders(const __grid_constant__ args a)
{
    const i64 me = blockIdx.x * (i64)THREADS + threadIdx.x;
    i64 at = me;
    int sign = 1;
    for (i64 i = a.cols - 1; i >= 0; i--) {
        const i64 other = a.pivot[i] - 1;
        at = at == i ? other : at == other ? i : at;
        sign = other == i ? sign : -sign;
    }
    if (me < a.rows) {
        a.order[me] = at;
    }
    if (me == 0) {
        a.to[0] = (T)sign;
    }
}

/* A block for each vector of `to` (ldt apart, of `rows` elements): it and that of `beside` (ldf apart, of
 * `cols`) are negated if it counts as negative (points_down in op/matrix/dense.h). */
extern "C" __global__ void __launch_bounds__(THREADS) upright(const __grid_constant__ args a)
{
    __shared__ T most[THREADS];
    __shared__ i64 first[THREADS];
    T *x = a.to + blockIdx.x * a.ldt, *y = a.beside + blockIdx.x * a.ldf;
    T mine = 0;
    for (i64 i = threadIdx.x; i < a.rows; i += THREADS) {
        mine = size_of(x[i]) > mine ? size_of(x[i]) : mine;
    }
    most[threadIdx.x] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if ((int)threadIdx.x < half && most[threadIdx.x + half] > most[threadIdx.x]) {
            most[threadIdx.x] = most[threadIdx.x + half];
        }
        __syncthreads();
    }
    i64 at = a.rows;
    for (i64 i = threadIdx.x; i < a.rows && at == a.rows; i += THREADS) {
        at = 2 * size_of(x[i]) >= most[0] ? i : at;
    }
    first[threadIdx.x] = at;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if ((int)threadIdx.x < half && first[threadIdx.x + half] < first[threadIdx.x]) {
            first[threadIdx.x] = first[threadIdx.x + half];
        }
        __syncthreads();
    }
    const int down = first[0] < a.rows && x[first[0]] < 0;
    __syncthreads();
    for (i64 i = threadIdx.x; i < a.rows && down; i += THREADS) {
        x[i] = -x[i];
    }
    for (i64 i = threadIdx.x; i < a.cols && down; i += THREADS) {
        y[i] = -y[i];
    }
}

/* If the library has met a pivot that is not positive: the factor of `from` (rows, rows) again, as
 * op/matrix/cholesky.h makes it: NaN goes on, any other such pivot is the error. */
extern "C" __global__ void __launch_bounds__(THREADS) again(const __grid_constant__ args a)
{
    const i64 n = a.rows;
    for (i64 k = 0; k < n && *a.info; k++) {
        for (i64 i = k + threadIdx.x; i < n; i += THREADS) {
            T sum = a.from[i * n + k];
            for (i64 j = 0; j < k; j++) {
                sum -= a.to[i * n + j] * a.to[k * n + j];
            }
            a.to[i * n + k] = sum;
        }
        __syncthreads();
        const T pivot = a.to[k * n + k];
        if (pivot <= 0) {
            if (threadIdx.x == 0) {
                fail(a, k + 1, (double)pivot);
            }
            return;
        }
        const T root = (T)sqrt((double)pivot);
        __syncthreads();
        for (i64 i = k + threadIdx.x; i < n; i += THREADS) {
            a.to[i * n + k] = i == k ? root : a.to[i * n + k] / root;
        }
        __syncthreads();
    }
}
