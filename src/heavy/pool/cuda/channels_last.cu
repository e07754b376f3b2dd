/* channels_last.cu: pooling where channels, or images, are innermost in all arrays. A thread computes BESIDE
 * adjacent ones. FORWARD: of one window. SPREAD: of the cells within one stride, from all windows that
 * contain them. TOGETHER: it moves them at once if operands are aligned. FIXED: see windows.cu.
 *
 * Loads need no branch: a position outside reads the nearest one inside, and the value is not used. */
template <bool AT_ONCE, class R, class E> __device__ __forceinline__ void take(R (&v)[BESIDE], const E *from)
{
    several<E, BESIDE> q;
    if (AT_ONCE) {
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

template <bool AT_ONCE, class E, class R> __device__ __forceinline__ void give(const R (&v)[BESIDE], E *to)
{
    several<E, BESIDE> q;
#pragma unroll
    for (int k = 0; k < BESIDE; k++) {
        q.v[k] = put<E>(v[k]);
    }
    if (AT_ONCE) {
        *(several<E, BESIDE> *)to = q;
    } else {
#pragma unroll
        for (int k = 0; k < BESIDE; k++) {
            to[k] = q.v[k];
        }
    }
}

struct spot { int u[3]; starts s; unsigned plane; };
/* Lanes vary fastest, then positions of an image. */
__device__ __forceinline__ spot spot_at(const args &p, unsigned e)
{
    spot s;
    unsigned rest = quotient(e, p.part[3]);
    const int lane = (int)(e - rest * p.part[3].by) * BESIDE;
#pragma unroll
    for (int i = 2; i >= 0; i--) {
        const unsigned more = quotient(rest, p.part[i]);
        s.u[i] = (int)(rest - more * p.part[i].by);
        rest = more;
    }
    s.s = starts_of(p, rest, (int)p.nfree - 1);
    s.plane = rest * (unsigned)p.size[p.nfree - 1] + lane;
#pragma unroll
    for (int r = 0; r < 3; r++) {
        s.s.at[r] += lane;
    }
    return s;
}

/* Loops over the cells of a box with indices known at compile time. */
#define EACH_OF(N0, N1, N2, a, b, c)                            \
    _Pragma("unroll") for (int a = 0; a < (N0); a++)            \
        _Pragma("unroll") for (int b = 0; b < (N1); b++)        \
            _Pragma("unroll") for (int c = 0; c < (N2); c++)

#if FORWARD
template <bool AT_ONCE> __device__ __forceinline__ void spot_of(const args &p, unsigned e)
{
    const spot s = spot_at(p, e);
    const window w = window_at(p, s.u[0], s.u[1], s.u[2]);
    const T *const x = p.x + s.s.at[0];
    const int y = s.s.at[1] + cell(p.slot[1], s.u[0], s.u[1], s.u[2]);
    A most[BESIDE] = {};
    int number[BESIDE] = {};
    bool any = false;
    EACH_OF(W0, W1, W2, a, b, c) {
        const int i = w.first[0] + a, j = w.first[1] + b, k = w.first[2] + c;
        const bool in = WHOLE || (i >= w.lo[0] && i < w.hi[0] && j >= w.lo[1] && j < w.hi[1] &&
                                  k >= w.lo[2] && k < w.hi[2]);
        A v[BESIDE];
        take<AT_ONCE>(v, x + (WHOLE ? cell(p.slot[0], i, j, k)
                                    : cell(p.slot[0], within(i, (int)p.in[0]), within(j, (int)p.in[1]),
                                           within(k, (int)p.in[2]))));
#pragma unroll
        for (int l = 0; l < BESIDE; l++) {
            const bool counts = in && (MODE != POOL_MAX || !any || more(v[l], most[l]));
            most[l] = MODE != POOL_MAX ? most[l] + (counts ? v[l] : (A)0) : counts ? v[l] : most[l];
            number[l] = counts ? (a * W1 + b) * W2 + c : number[l];
        }
        any = any || in;
    }
#pragma unroll
    for (int l = 0; l < BESIDE && MODE != POOL_MAX; l++) {
        most[l] /= (A)share(p, w);
    }
#pragma unroll
    for (int l = 0; l < BESIDE && EPILOGUE; l++) {
        most[l] = finished(p, s.plane + l, most[l]);
    }
    give<AT_ONCE>(most, p.y + y);
    if (KEY == POOL_KEY_MARKS) {
        give<AT_ONCE>(number, (MARK *)p.key + s.s.at[2] + cell(p.slot[2], s.u[0], s.u[1], s.u[2]));
    }
}
#else
/* The gradient of a window, and the number of the cell that receives it; -1 if there is no such window. */
template <bool AT_ONCE>
__device__ __forceinline__ void window_of(A (&g)[BESIDE], int (&number)[BESIDE], const args &p, const spot &s,
                                          int u0, int u1, int u2)
{
    const bool valid = u0 >= 0 && u0 < (int)p.out[0] && u1 >= 0 && u1 < (int)p.out[1] && u2 >= 0 &&
                       u2 < (int)p.out[2];
    const int a = within(u0, (int)p.out[0]), b = within(u1, (int)p.out[1]), c = within(u2, (int)p.out[2]);
    const window w = window_at(p, a, b, c);
    take<AT_ONCE>(g, p.y + s.s.at[1] + cell(p.slot[1], a, b, c));
    if (KEY == POOL_KEY_MARKS) {
        bool odd = is_clipped(w);
        take<AT_ONCE>(number, (const MARK *)p.key + s.s.at[2] + cell(p.slot[2], a, b, c));
#pragma unroll
        for (int l = 0; l < BESIDE; l++) {
            odd = odd || (unsigned)number[l] >= W0 * W1 * W2;
        }
        if (odd) {
#pragma unroll
            for (int l = 0; l < BESIDE; l++) {
                number[l] = numbered(p, w, number[l]);
            }
        }
    }
#pragma unroll
    for (int l = 0; l < BESIDE; l++) {
        number[l] = valid ? number[l] : -1;
        g[l] = KEY == POOL_KEY_NONE ? (valid ? g[l] / (A)share(p, w) : (A)0) : g[l];
    }
}

template <bool AT_ONCE> __device__ __forceinline__ void spot_of(const args &p, unsigned e)
{
    enum { F0 = FIRST(W0, S0, P0), F1 = FIRST(W1, S1, P1), F2 = FIRST(W2, S2, P2) };
    const spot s = spot_at(p, e);
    A sum[S0 * S1 * S2][BESIDE] = {};
    EACH_OF(REACH(W0, S0, P0), REACH(W1, S1, P1), REACH(W2, S2, P2), q, r, t) {
        A g[BESIDE];
        int number[BESIDE] = {};
        window_of<AT_ONCE>(g, number, p, s, s.u[0] + F0 + q, s.u[1] + F1 + r, s.u[2] + F2 + t);
        EACH_OF(S0, S1, S2, i, j, k) {
            /* the cell's index in that window */
            const int a = i + P0 - (F0 + q) * S0, b = j + P1 - (F1 + r) * S1, c = k + P2 - (F2 + t) * S2;
            if (a >= 0 && a < W0 && b >= 0 && b < W1 && c >= 0 && c < W2) {
#pragma unroll
                for (int l = 0; l < BESIDE; l++) {
                    const bool adds = KEY == POOL_KEY_NONE || number[l] == (a * W1 + b) * W2 + c;
                    sum[(i * S1 + j) * S2 + k][l] += adds ? g[l] : (A)0;
                }
            }
        }
    }
    T *const x = p.x + s.s.at[0] + cell(p.slot[0], s.u[0] * S0, s.u[1] * S1, s.u[2] * S2);
    EACH_OF(S0, S1, S2, i, j, k) {
        if (s.u[0] * S0 + i < (int)p.in[0] && s.u[1] * S1 + j < (int)p.in[1] &&
            s.u[2] * S2 + k < (int)p.in[2]) {
            give<AT_ONCE>(sum[(i * S1 + j) * S2 + k], x + cell(p.slot[0], i, j, k));
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(256) beside(const __grid_constant__ args p)
{
    follow();
    for (unsigned e = blockIdx.x * 256 + threadIdx.x; e < p.count; e += gridDim.x * 256) {
        if (TOGETHER && p.together) {
            spot_of<true>(p, e);
        } else {
            spot_of<false>(p, e);
        }
    }
}
