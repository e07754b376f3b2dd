/* beside.cu: channels, or images, that lie innermost in all arrays: a thread has a spot of BESIDE of them.  FIXED (windows.cu). */
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
extern "C" __global__ void __launch_bounds__(256) beside(const __grid_constant__ args p)
{
    const i64 count = p.planes / BESIDE * p.in[0] * p.in[1] * p.in[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const spot s = spot_at(p, (INDEX)e, p.in);
        const T *const y = p.y + line(p, s.plane, 1);
        const MARK *const key = (const MARK *)p.key + (KEY == MARKS ? line(p, s.plane, 2) : 0);
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
                    take(g, y + cell(p.slot[1], u0, u1, u2), p.together[1]);
                    if (KEY == MARKS) {
                        take(number, key + cell(p.slot[2], u0, u1, u2), p.together[2]);
                    }
                    const int want = ((s.u[0] - w.first[0]) * W1 + s.u[1] - w.first[1]) * W2 + s.u[2] - w.first[2];
                    const bool cut = w.hi[0] - w.lo[0] < W0 || w.hi[1] - w.lo[1] < W1 || w.hi[2] - w.lo[2] < W2;
#pragma unroll
                    for (int k = 0; k < BESIDE; k++) {
                        bool mine = number[k] == want;
                        if (KEY == MARKS && (cut || (unsigned)number[k] >= W0 * W1 * W2)) {
                            int at[3];
                            marked(p, w, (MARK)number[k], at);
                            mine = at[0] == s.u[0] && at[1] == s.u[1] && at[2] == s.u[2];
                        }
                        sum[k] += KEY == NONE ? g[k] / (A)share(p, w) : mine ? g[k] : (A)0;
                    }
                }
            }
        }
        give(sum, p.x + line(p, s.plane, 0) + cell(p.slot[0], s.u[0], s.u[1], s.u[2]), p.together[0]);
    }
}
#endif
