/* norm.cu: normalisation across channels, an element a thread; op/norm.h has the formulas.
 *
 * Backward is two kernels: `parts` leaves g x d^(-beta-1) of every element, which `normalise` then sums over the windows that
 * an element lies in. */
struct args {
    const T *x, *g;
    T *y;
    A *parts;
    i64 c, far[3], nfree, size[8], at[3][8], planes, lanes, n;
    double alpha, beta, k;
    int blocked;
};
struct spot { i64 plane, c, lane, at[3]; };

__device__ __forceinline__ spot spot_of(const args &p, i64 e)
{
    spot s;
    const INDEX line = (INDEX)e / (INDEX)p.lanes;
    INDEX rest = line / (INDEX)p.c;
    s.lane = (INDEX)e - line * (INDEX)p.lanes;
    s.c = line - rest * (INDEX)p.c;
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
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < p.planes * p.c * p.lanes; e += gridDim.x * 256ll) {
        const spot s = spot_of(p, e);
        const A x = get<A>(p.x[s.at[0] + s.c * p.far[0]]), g = get<A>(p.g[s.at[1] + s.c * p.far[1]]);
        p.parts[e] = g * x * (A)pow(divisor(p, s), (A)(-p.beta - 1));
    }
}

extern "C" __global__ void __launch_bounds__(256) normalise(const __grid_constant__ args p)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < p.planes * p.c * p.lanes; e += gridDim.x * 256ll) {
        const spot s = spot_of(p, e);
        const A x = get<A>(p.x[s.at[0] + s.c * p.far[0]]), d = (A)pow(divisor(p, s), (A)-p.beta);
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
