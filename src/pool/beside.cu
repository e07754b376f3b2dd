/* beside.cu: channels, or images, that lie innermost in all arrays: a thread has a spot of BESIDE of them, or, going
 * back through windows that stand APART, a window with the cells up to the next.  FIXED (windows.cu). */
template <class R, class E> __device__ __forceinline__ void take(R (&v)[BESIDE], const E *from, bool together)
{
    several<E, BESIDE> q;
    if (together) {
        q = *(const several<E, BESIDE> *)from;
    } else {
#pragma unroll
        for (int k = 0; k < BESIDE; k++) {
            q.v[k] = from[k];
        }
    }
#pragma unroll
    for (int k = 0; k < BESIDE; k++) {
        v[k] = get<R>(q.v[k]);
    }
}

template <class E, class R> __device__ __forceinline__ void give(const R (&v)[BESIDE], E *to, bool together)
{
    several<E, BESIDE> q;
#pragma unroll
    for (int k = 0; k < BESIDE; k++) {
        q.v[k] = put<E>(v[k]);
    }
    if (together) {
        *(several<E, BESIDE> *)to = q;
    } else {
#pragma unroll
        for (int k = 0; k < BESIDE; k++) {
            to[k] = q.v[k];
        }
    }
}

struct spot { INDEX plane; int u[3]; };
/* Lanes go fastest, then places of an image. */
__device__ __forceinline__ spot spot_at(const args &p, INDEX e, const i64 *n)
{
    spot s;
    INDEX rest = e / (INDEX)p.across;
    const INDEX lane = (e - rest * (INDEX)p.across) * BESIDE;
#pragma unroll
    for (int i = 2; i >= 0; i--) {
        const INDEX more = rest / (INDEX)n[i];
        s.u[i] = (int)(rest - more * (INDEX)n[i]);
        rest = more;
    }
    s.plane = rest * (INDEX)p.across * BESIDE + lane;
    return s;
}

#if PASS == FORWARD
extern "C" __global__ void __launch_bounds__(256) beside(const __grid_constant__ args p)
{
    const i64 count = p.planes / BESIDE * p.out[0] * p.out[1] * p.out[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const spot s = spot_at(p, (INDEX)e, p.out);
        const window w = window_at(p, s.u[0], s.u[1], s.u[2]);
        const T *const x = p.x + line(p, s.plane, 0);
        A most[BESIDE] = {};
        int number[BESIDE] = {};
        bool any = false;
        EACH_CELL(w, a, b, c) {
            A v[BESIDE];
            take(v, x + cell(p.slot[0], a, b, c), p.together[0]);
            const int n = ((a - w.first[0]) * W1 + b - w.first[1]) * W2 + c - w.first[2];
#pragma unroll
            for (int k = 0; k < BESIDE; k++) {
                if (MODE != MAX) {
                    most[k] += v[k];
                } else if (!any || more(v[k], most[k])) {
                    most[k] = v[k];
                    number[k] = n;
                }
            }
            any = true;
        }
#pragma unroll
        for (int k = 0; k < BESIDE && MODE != MAX; k++) {
            most[k] /= (A)share(p, w);
        }
        give(most, p.y + line(p, s.plane, 1) + cell(p.slot[1], s.u[0], s.u[1], s.u[2]), p.together[1]);
        if (KEY == MARKS) {
            give(number, (MARK *)p.key + line(p, s.plane, 2) + cell(p.slot[2], s.u[0], s.u[1], s.u[2]), p.together[2]);
        }
    }
}
#else
/* What a window has for a cell of it, of one lane. */
__device__ __forceinline__ A part(const args &p, const window &w, const int (&cell)[3], A g, int number)
{
    if (KEY == NONE) {
        return g / (A)share(p, w);
    }
    const int want = ((cell[0] - w.first[0]) * W1 + cell[1] - w.first[1]) * W2 + cell[2] - w.first[2];
    const bool cut = w.hi[0] - w.lo[0] < W0 || w.hi[1] - w.lo[1] < W1 || w.hi[2] - w.lo[2] < W2;
    bool mine = number == want;
    if (cut || (unsigned)number >= W0 * W1 * W2) {
        int at[3];
        marked(p, w, (MARK)number, at);
        mine = at[0] == cell[0] && at[1] == cell[1] && at[2] == cell[2];
    }
    return mine ? g : (A)0;
}

__device__ __forceinline__ void window_of(A (&g)[BESIDE], int (&number)[BESIDE], const args &p, INDEX plane, int u0, int u1, int u2)
{
    take(g, p.y + line(p, plane, 1) + cell(p.slot[1], u0, u1, u2), p.together[1]);
    if (KEY == MARKS) {
        take(number, (const MARK *)p.key + line(p, plane, 2) + cell(p.slot[2], u0, u1, u2), p.together[2]);
    }
}

#if APART
/* Windows stand apart: a thread has a window and the cells up to the next one. */
extern "C" __global__ void __launch_bounds__(256) beside(const __grid_constant__ args p)
{
    const i64 n[3] = { (p.in[0] + S0 - 1) / S0, (p.in[1] + S1 - 1) / S1, (p.in[2] + S2 - 1) / S2 };
    const i64 count = p.planes / BESIDE * n[0] * n[1] * n[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const spot s = spot_at(p, (INDEX)e, n);
        const window w = window_at(p, s.u[0], s.u[1], s.u[2]);
        const bool there = s.u[0] < p.out[0] && s.u[1] < p.out[1] && s.u[2] < p.out[2];
        T *const x = p.x + line(p, s.plane, 0);
        A g[BESIDE] = {};
        int number[BESIDE] = {};
        if (there) {
            window_of(g, number, p, s.plane, s.u[0], s.u[1], s.u[2]);
        }
#pragma unroll
        for (int i = 0; i < S0 * S1 * S2; i++) {
            const int at[3] = { w.first[0] + i / S2 / S1, w.first[1] + i / S2 % S1, w.first[2] + i % S2 };
            const bool in = there && at[0] < w.hi[0] && at[1] < w.hi[1] && at[2] < w.hi[2];
            A sum[BESIDE];
#pragma unroll
            for (int k = 0; k < BESIDE; k++) {
                sum[k] = in ? part(p, w, at, g[k], number[k]) : (A)0;
            }
            if (at[0] < p.in[0] && at[1] < p.in[1] && at[2] < p.in[2]) {
                give(sum, x + cell(p.slot[0], at[0], at[1], at[2]), p.together[0]);
            }
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(256) beside(const __grid_constant__ args p)
{
    const i64 count = p.planes / BESIDE * p.in[0] * p.in[1] * p.in[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const spot s = spot_at(p, (INDEX)e, p.in);
        int from[3], to[3];
        A sum[BESIDE] = {};
#pragma unroll
        for (int i = 0; i < 3; i++) {
            holding(p, i, s.u[i], &from[i], &to[i]);
        }
        for (int u0 = from[0]; u0 < to[0]; u0++) {
            for (int u1 = from[1]; u1 < to[1]; u1++) {
                for (int u2 = from[2]; u2 < to[2]; u2++) {
                    const window w = window_at(p, u0, u1, u2);
                    A g[BESIDE];
                    int number[BESIDE] = {};
                    window_of(g, number, p, s.plane, u0, u1, u2);
#pragma unroll
                    for (int k = 0; k < BESIDE; k++) {
                        sum[k] += part(p, w, s.u, g[k], number[k]);
                    }
                }
            }
        }
        give(sum, p.x + line(p, s.plane, 0) + cell(p.slot[0], s.u[0], s.u[1], s.u[2]), p.together[0]);
    }
}
#endif
#endif
