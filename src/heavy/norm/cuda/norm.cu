/* norm.cu: normalisation across channels; op/norm.h has the formulas. `chunks`, for windows of a few
 * channels: a thread holds CHUNK channels of one position in registers, with all channels that their windows
 * need. Memory is read once, except for what chunks share, and nothing is stored between kernels. For other
 * windows there is a thread for each element. Their backward pass is two kernels: `parts` stores g x
 * d^(-beta-1) of every element, and `normalise` sums it over the windows that contain an element. */
#include "heavy/norm/cuda/norm_args.h"
typedef mc_norm_args args;

struct spot { i64 plane, c, lane, at[3]; };

/* Splits number e into plane, line and lane. A plane has `lines` lines, one for each channel or chunk. */
__device__ __forceinline__ spot spot_of(const args &p, i64 e, i64 lines)
{
    spot s;
    const INDEX line = (INDEX)e / (INDEX)p.lanes;
    INDEX rest = line / (INDEX)lines;
    s.lane = (INDEX)e - line * (INDEX)p.lanes;
    s.c = line - rest * (INDEX)lines;
    s.plane = rest;
    s.at[0] = s.at[1] = s.at[2] = s.lane;
    for (int i = (int)p.nfree - 1; i >= 0; i--) {
        const INDEX next = rest / (INDEX)p.size[i];
        const i64 k = rest - next * (INDEX)p.size[i];
        rest = next;
        s.at[0] += k * p.at[0][i];
        s.at[1] += k * p.at[1][i];
        s.at[2] += k * p.at[2][i];
    }
    return s;
}

/* d^-beta, by square roots for the values of beta that networks use. */
__device__ __forceinline__ A power(const args &p, A d)
{
#if QUARTERS == 2
    return rsqrt(d);
#elif QUARTERS == 3
    const A r = rsqrt(d);
    return r * sqrt(r);
#elif QUARTERS == 4
    return 1 / d;
#else
    return pow(d, (A)-p.beta);
#endif
}

#if CHUNK
#define BEFORE (BLOCKED ? 0 : N / 2)            /* channels of the window of c before c, and after it: */
#define AFTER (BLOCKED ? 0 : N - 1 - N / 2)
#define EARLY (BACKWARD ? AFTER : 0)            /* divisors that are needed before a chunk, and after it */
#define LATE (BACKWARD ? BEFORE : 0)
#define DIVISORS (EARLY + CHUNK + LATE)
#define ALL (BEFORE + DIVISORS + AFTER)

/* Sums v over a window. Window i begins at element i of v, or at its block. */
__device__ __forceinline__ A over(const A *v, int i)
{
    A sum = 0;
#pragma unroll
    for (int e = 0; e < N; e++) {
        sum += v[(BLOCKED ? i / N * N : i) + e];
    }
    return sum;
}

/* Loads n channels from `first` on, with zeros for those that do not exist. */
template <int n>
__device__ __forceinline__ void take(A (&v)[n], const T *from, i64 first, i64 far, i64 channels)
{
#pragma unroll
    for (int i = 0; i < n; i++) {
        const bool valid = first + i >= 0 && first + i < channels;
        v[i] = valid ? get<A>(from[(first + i) * far]) : 0;
    }
}

extern "C" __global__ void __launch_bounds__(256) chunks(const __grid_constant__ args p)
{
    follow();
    const i64 lines = (p.c + CHUNK - 1) / CHUNK;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < p.planes * lines * p.lanes; e += gridDim.x * 256ll) {
        const spot s = spot_of(p, e, lines);
        const i64 c = s.c * CHUNK;
        A x[ALL], g[DIVISORS], square[ALL], root[DIVISORS], part[DIVISORS];
        take(x, p.x + s.at[0], c - EARLY - BEFORE, p.far[0], p.c);
        if (BACKWARD) {
            take(g, p.g + s.at[1], c - EARLY, p.far[1], p.c);
        }
#pragma unroll
        for (int i = 0; i < ALL; i++) {
            square[i] = x[i] * x[i];
        }
#pragma unroll
        for (int i = 0; i < DIVISORS; i++) {
            const A d = (A)p.k + (A)p.alpha * over(square, i);
            root[i] = power(p, d);
            if (BACKWARD) {
                const bool valid = c - EARLY + i >= 0 && c - EARLY + i < p.c;
                part[i] = valid ? g[i] * x[BEFORE + i] * (root[i] / d) : 0;
            }
        }
        T *to = p.y + s.at[2] + c * p.far[2];
#pragma unroll
        for (int i = 0; i < CHUNK; i++) {
            const A v = x[BEFORE + EARLY + i], r = root[EARLY + i];
            const A y = BACKWARD ? g[EARLY + i] * r - (A)(2 * p.alpha * p.beta) * v * over(part, i) : v * r;
            if (c + i < p.c) {
                to[i * p.far[2]] = put<T>(y);
            }
        }
    }
}
#else
__device__ __forceinline__ void window(const args &p, bool back, i64 c, i64 *from, i64 *to)
{
    const i64 first = p.blocked ? c / p.n * p.n : back ? c - p.n + p.n / 2 + 1 : c - p.n / 2;
    *from = first > 0 ? first : 0;
    *to = first + p.n < p.c ? first + p.n : p.c;
}

__device__ __forceinline__ A divisor(const args &p, const spot &s)
{
    i64 from, to;
    A sum = 0;
    window(p, false, s.c, &from, &to);
    for (i64 c = from; c < to; c++) {
        const A v = get<A>(p.x[s.at[0] + c * p.far[0]]);
        sum += v * v;
    }
    return (A)p.k + (A)p.alpha * sum;
}

extern "C" __global__ void __launch_bounds__(256) parts(const __grid_constant__ args p)
{
    follow();
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < p.planes * p.c * p.lanes; e += gridDim.x * 256ll) {
        const spot s = spot_of(p, e, p.c);
        const A x = get<A>(p.x[s.at[0] + s.c * p.far[0]]), g = get<A>(p.g[s.at[1] + s.c * p.far[1]]);
        const A d = divisor(p, s);
        p.parts[e] = g * x * (power(p, d) / d);
    }
}

extern "C" __global__ void __launch_bounds__(256) normalise(const __grid_constant__ args p)
{
    follow();
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < p.planes * p.c * p.lanes; e += gridDim.x * 256ll) {
        const spot s = spot_of(p, e, p.c);
        const A x = get<A>(p.x[s.at[0] + s.c * p.far[0]]), d = power(p, divisor(p, s));
        A v = x * d;
        if (BACKWARD) {
            i64 from, to;
            A sum = 0;
            window(p, true, s.c, &from, &to);
            for (i64 c = from; c < to; c++) {
                sum += p.parts[e + (c - s.c) * p.lanes];
            }
            v = get<A>(p.g[s.at[1] + s.c * p.far[1]]) * d - (A)(2 * p.alpha * p.beta) * x * sum;
        }
        p.y[s.at[2] + s.c * p.far[2]] = put<T>(v);
    }
}
#endif
