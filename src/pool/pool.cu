/* pool.cu: pooling in all passes; the definition is op/pool_loops.c.  A thread has an element of the result, or, in `lines`,
 * PLACES windows beside each other in a line of y and all that they reach, or, in `beside`, a spot of BESIDE lanes.
 *
 * The first maximum in scan order counts, a NaN is larger than anything.  SPREAD asks of each cell which windows it
 * lies in, in their order, so nothing is added by two threads.
 *
 * FIXED: windows, strides and pads are W0.., S0.., P0.., so that loops over a window are unrolled, and arrays reach no farther
 * than an int counts; else they are the arguments'. */
#define FORWARD 0
#define SPREAD 1
#define GATHER 2
enum { MAX, SUM, AVERAGE_INC, AVERAGE_EXC };
enum { NONE, MARKS, TIES };

struct args {
    T *x, *y;
    void *key;
    i64 planes, nfree, size[8], at[3][8];   /* axes that are not pooled, and each array's strides along them */
    i64 slot[3][3];                         /* strides along the pooled axes: of x, y, key */
    i64 in[3], out[3], w[3], stride[3], pad[3];
    int whole;
    int across;                 /* lines: threads for a line of y (FORWARD), of x (SPREAD); beside: for the lanes of a spot */
    int together[3];            /* elements of x, y, key can be moved at a time: lines: four, or PLACES; beside: BESIDE */
};
struct window { int lo[3], hi[3], first[3]; };

#if FIXED
typedef int reach;
__device__ __forceinline__ int wide(const args &, int i) { return i == 0 ? W0 : i == 1 ? W1 : W2; }
__device__ __forceinline__ int stride(const args &, int i) { return i == 0 ? S0 : i == 1 ? S1 : S2; }
__device__ __forceinline__ int pad(const args &, int i) { return i == 0 ? P0 : i == 1 ? P1 : P2; }
#else
typedef i64 reach;
__device__ __forceinline__ int wide(const args &p, int i) { return (int)p.w[i]; }
__device__ __forceinline__ int stride(const args &p, int i) { return (int)p.stride[i]; }
__device__ __forceinline__ int pad(const args &p, int i) { return (int)p.pad[i]; }
#endif

__device__ __forceinline__ i64 line(const args &p, INDEX plane, int role)
{
    i64 at = 0;
    for (int i = (int)p.nfree - 1; i > 0; i--) {
        at += plane % (INDEX)p.size[i] * p.at[role][i];
        plane /= (INDEX)p.size[i];
    }
    return p.nfree ? at + plane * p.at[role][0] : 0;
}

__device__ __forceinline__ window window_at(const args &p, int u0, int u1, int u2)
{
    window w;
    const int u[3] = { u0, u1, u2 };
#pragma unroll
    for (int i = 0; i < 3; i++) {
        w.first[i] = u[i] * stride(p, i) - pad(p, i);
        w.lo[i] = w.first[i] > 0 ? w.first[i] : 0;
        w.hi[i] = w.first[i] + wide(p, i) < (int)p.in[i] ? w.first[i] + wide(p, i) : (int)p.in[i];
    }
    return w;
}

__device__ __forceinline__ reach cell(const i64 *s, reach a, reach b, reach c)
{
    return a * (reach)s[0] + b * (reach)s[1] + c * (reach)s[2];
}

#if FIXED
#define ALONG(w, a, i, n) _Pragma("unroll") for (int a = (w).first[i]; a < (w).first[i] + n; a++) if (a >= (w).lo[i] && a < (w).hi[i])
#define EACH_CELL(w, a, b, c) ALONG(w, a, 0, W0) ALONG(w, b, 1, W1) ALONG(w, c, 2, W2)
#else
#define EACH_CELL(w, a, b, c)                         \
    for (int a = (w).lo[0]; a < (w).hi[0]; a++)       \
        for (int b = (w).lo[1]; b < (w).hi[1]; b++)   \
            for (int c = (w).lo[2]; c < (w).hi[2]; c++)
#endif

/* How values are compared: floats as they are summed, integers as they are. */
#if FLOAT
typedef A V;
__device__ __forceinline__ bool more(V v, V most) { return most == most && !(v <= most); }
#else
typedef T V;
__device__ __forceinline__ bool more(V v, V most) { return v > most; }
#endif

__device__ __forceinline__ V largest(const window &w, const T *from, const i64 *s, int *number, const args &p)
{
    bool any = false;
    V most = (V)0;
    EACH_CELL(w, a, b, c) {
        const V v = get<V>(from[cell(s, a, b, c)]);
        if (!any || more(v, most)) {
            any = true;
            most = v;
            *number = ((a - w.first[0]) * wide(p, 1) + b - w.first[1]) * wide(p, 2) + c - w.first[2];
        }
    }
    return most;
}

__device__ __forceinline__ i64 share(const args &p, const window &w)
{
    const i64 left = (i64)(w.hi[0] - w.lo[0]) * (w.hi[1] - w.lo[1]) * (w.hi[2] - w.lo[2]);
    return MODE == AVERAGE_INC && p.whole ? (i64)wide(p, 0) * wide(p, 1) * wide(p, 2) : MODE == AVERAGE_INC || MODE == AVERAGE_EXC ? left : 1;
}

/* The cell that a mark means; where it cannot be one of the window, the window's first. */
__device__ __forceinline__ void marked(const args &p, const window &w, MARK mark, int at[3])
{
    at[2] = w.first[2] + (int)(mark % (MARK)wide(p, 2));
    at[1] = w.first[1] + (int)(mark / (MARK)wide(p, 2) % (MARK)wide(p, 1));
    at[0] = w.first[0] + (int)(mark / (MARK)wide(p, 2) / (MARK)wide(p, 1));
    for (int i = 0; i < 3; i++) {
        at[i] = at[i] < w.lo[i] || at[i] >= w.hi[i] ? w.lo[i] : at[i];
    }
}

/* Windows [*from, *to) of one axis that hold cell i. */
__device__ __forceinline__ void holding(const args &p, int axis, int i, int *from, int *to)
{
    const int far = i + pad(p, axis), s = stride(p, axis), first = far - wide(p, axis) + 1;
    *from = first > 0 ? (first + s - 1) / s : 0;
    *to = far < 0 ? 0 : far / s + 1 < (int)p.out[axis] ? far / s + 1 : (int)p.out[axis];
}

template <class E, int V> struct alignas(V * sizeof(E)) several { E v[V]; };

#if LINES
/* ---- PLACES windows of a line a thread: images of two axes, the last dense ---- */

/* SPREAD: windows from FIRST on, seen from the thread's first cell, reach its STRIDE cells of an axis. */
#define CEIL(a, b) ((a) > 0 ? ((a) + (b) - 1) / (b) : -(-(a) / (b)))
enum { CELLS = PLACES * S2, LEFT = P2 > 0 ? P2 : 0, RIGHT = W2 - P2 - S2 > 0 ? W2 - P2 - S2 : 0, LINE = LEFT + CELLS + RIGHT };
enum { ROW0 = CEIL(P1 - W1 + 1, S1), ROWS = (S1 - 1 + P1) / S1 - ROW0 + 1, COL0 = CEIL(P2 - W2 + 1, S2), COLS = (CELLS - 1 + P2) / S2 - COL0 + 1 };
struct place { INDEX plane; int row, group; };
__device__ __forceinline__ place place_at(INDEX e, int across, int rows)
{
    const INDEX rest = e / (INDEX)across;
    place a;
    a.group = (int)(e - rest * (INDEX)across);
    a.plane = rest / (INDEX)rows;
    a.row = (int)(rest - a.plane * (INDEX)rows);
    return a;
}

/* N elements from column `first` on of a line of `size`, of which those from AT on may come V at a time; `none` where there
 * are none. */
template <int N, int AT, int V, class E, class R> __device__ __forceinline__ void get_line(R (&v)[N], const E *line, int first, int size, bool together, bool in, R none)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int begin = (i - AT) / V * V + AT, col = first + i;
        if (i >= AT && begin + V <= N && together) {
            if (i == begin && in && col < size) {
                const several<E, V> q = *(const several<E, V> *)(line + col);
#pragma unroll
                for (int k = 0; k < V; k++) {
                    v[begin + k < N ? begin + k : 0] = get<R>(q.v[k]);
                }
            } else if (i == begin) {
#pragma unroll
                for (int k = 0; k < V; k++) {
                    v[begin + k < N ? begin + k : 0] = none;
                }
            }
        } else {
            v[i] = in && col >= 0 && col < size ? get<R>(line[col]) : none;
        }
    }
}

template <int V, int N, class E, class R> __device__ __forceinline__ void put_line(const R (&v)[N], E *line, int first, int size, bool together)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (N % V == 0 && together) {
            if (i % V == 0 && first + i < size) {
                several<E, V> q;
#pragma unroll
                for (int k = 0; k < V; k++) {
                    q.v[k] = put<E>(v[i + k < N ? i + k : 0]);
                }
                *(several<E, V> *)(line + first + i) = q;
            }
        } else if (first + i < size) {
            line[first + i] = put<E>(v[i]);
        }
    }
}

#if PASS == FORWARD
extern "C" __global__ void __launch_bounds__(256) lines(const __grid_constant__ args p)
{
    const i64 count = (i64)p.across * p.out[1] * p.planes;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const place a = place_at((INDEX)e, p.across, (int)p.out[1]);
        const T *const x = p.x + line(p, a.plane, 0);
        const int first = a.group * PLACES;
        const A none = MODE == MAX ? -(A)__uint_as_float(0x7f800000u) : (A)0;  /* an infinity is never more than the first cell */
        A most[PLACES];
        int number[PLACES];
#pragma unroll
        for (int k = 0; k < PLACES; k++) {
            const window w = window_at(p, 0, a.row, first + k);
            number[k] = (w.lo[1] - w.first[1]) * W2 + w.lo[2] - w.first[2];
            most[k] = none;
        }
#pragma unroll
        for (int b = 0; b < W1; b++) {
            const int row = a.row * S1 - P1 + b;
            A v[LINE];
            get_line<LINE, LEFT, 4>(v, x + (i64)row * p.slot[0][1], first * S2 - LEFT, (int)p.in[2], p.together[0], row >= 0 && row < (int)p.in[1], none);
#pragma unroll
            for (int k = 0; k < PLACES; k++) {
#pragma unroll
                for (int c = 0; c < W2; c++) {
                    const A u = v[LEFT - P2 + k * S2 + c];
                    if (MODE != MAX) {
                        most[k] += u;
                    } else if (more(u, most[k])) {
                        most[k] = u;
                        number[k] = b * W2 + c;
                    }
                }
            }
        }
#pragma unroll
        for (int k = 0; k < PLACES && MODE != MAX; k++) {
            most[k] /= (A)share(p, window_at(p, 0, a.row, first + k));
        }
        put_line<4>(most, p.y + line(p, a.plane, 1) + a.row * p.slot[1][1], first, (int)p.out[2], p.together[1]);
        if (KEY == MARKS) {
            put_line<4>(number, (MARK *)p.key + line(p, a.plane, 2) + a.row * p.slot[2][1], first, (int)p.out[2], p.together[2]);
        }
    }
}
#else
/* The windows of one line of y: what each gives, and the number of the cell that gets it. */
__device__ __forceinline__ void windows(const args &p, const place &a, int row, int first, A (&g)[COLS], int (&number)[COLS])
{
    const bool in = row >= 0 && row < (int)p.out[1];
    get_line<COLS, -COL0, PLACES>(g, p.y + line(p, a.plane, 1) + row * p.slot[1][1], first, (int)p.out[2], p.together[1], in, (A)0);
    if (KEY == MARKS) {
        get_line<COLS, -COL0, PLACES>(number, (const MARK *)p.key + line(p, a.plane, 2) + row * p.slot[2][1], first, (int)p.out[2], p.together[2], in, 0);
    }
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        const window w = window_at(p, 0, row, first + k);
        if (KEY == MARKS) {
            int at[3];
            marked(p, w, (MARK)number[k], at);
            number[k] = (at[1] - w.first[1]) * W2 + at[2] - w.first[2];
        } else if (in && first + k >= 0 && first + k < (int)p.out[2]) {
            g[k] /= (A)share(p, w);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) lines(const __grid_constant__ args p)
{
    const int down = ((int)p.in[1] + S1 - 1) / S1;
    const i64 count = (i64)p.across * down * p.planes;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const place a = place_at((INDEX)e, p.across, down);
        A sum[S1][CELLS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            A g[COLS];
            int number[COLS];
            windows(p, a, a.row + ROW0 + r, a.group * PLACES + COL0, g, number);
#pragma unroll
            for (int k = 0; k < COLS; k++) {
#pragma unroll
                for (int i = 0; i < S1; i++) {
#pragma unroll
                    for (int j = 0; j < CELLS; j++) {
                        const int b = i + P1 - (ROW0 + r) * S1, c = j + P2 - (COL0 + k) * S2;   /* the cell in that window */
                        if (b >= 0 && b < W1 && c >= 0 && c < W2) {
                            sum[i][j] += KEY == NONE || number[k] == b * W2 + c ? g[k] : (A)0;
                        }
                    }
                }
            }
        }
        T *const x = p.x + line(p, a.plane, 0);
#pragma unroll
        for (int i = 0; i < S1; i++) {
            const int row = a.row * S1 + i;
            if (row < (int)p.in[1]) {
                put_line<4>(sum[i], x + row * p.slot[0][1], a.group * CELLS, (int)p.in[2], p.together[0]);
            }
        }
    }
}
#endif
#elif BESIDE
/* ---- BESIDE lanes a thread: channels, or images, that lie innermost in all arrays ---- */

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
#elif PASS == FORWARD || PASS == GATHER
extern "C" __global__ void __launch_bounds__(256) pool(const __grid_constant__ args p)
{
    const i64 spots = p.out[0] * p.out[1] * p.out[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < spots * p.planes; e += gridDim.x * 256ll) {
        const INDEX outer = (INDEX)e / (INDEX)(PLANES_INSIDE ? p.planes : spots), inner = (INDEX)e - outer * (INDEX)(PLANES_INSIDE ? p.planes : spots);
        const INDEX spot = PLANES_INSIDE ? outer : inner, plane = PLANES_INSIDE ? inner : outer, row = spot / (INDEX)p.out[2];
        const int u2 = (int)(spot - row * (INDEX)p.out[2]), u1 = (int)(row % (INDEX)p.out[1]), u0 = (int)(row / (INDEX)p.out[1]);
        const window w = window_at(p, u0, u1, u2);
        const T *x = p.x + line(p, plane, 0);
        T *y = p.y + line(p, plane, 1) + cell(p.slot[1], u0, u1, u2);
        const i64 key = KEY == MARKS ? line(p, plane, 2) + cell(p.slot[2], u0, u1, u2) : KEY == TIES ? line(p, plane, 2) : 0;
        int number = 0;
        if (PASS == FORWARD && MODE == MAX) {
            *y = put<T>(largest(w, x, p.slot[0], &number, p));
            if (KEY == MARKS) {
                ((MARK *)p.key)[key] = (MARK)number;
            }
        } else if (PASS == FORWARD) {
            A sum = 0;
            EACH_CELL(w, a, b, c) {
                sum += get<A>(x[cell(p.slot[0], a, b, c)]);
            }
#if FLOAT
            *y = put<T>(sum / (A)share(p, w));
#else
            *y = SIGNED ? (T)((i64)sum / share(p, w)) : (T)(sum / (u64)share(p, w));
#endif
        } else if (KEY == MARKS) {
            int at[3];
            marked(p, w, ((const MARK *)p.key)[key], at);
            *y = x[cell(p.slot[0], at[0], at[1], at[2])];
        } else {
            const T *k = (const T *)p.key + key;
            const V most = largest(w, k, p.slot[2], &number, p);
            A sum = 0;
            EACH_CELL(w, a, b, c) {
                sum += get<V>(k[cell(p.slot[2], a, b, c)]) == most ? get<A>(x[cell(p.slot[0], a, b, c)]) : (A)0;
            }
            *y = put<T>(sum);
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(256) pool(const __grid_constant__ args p)
{
    const i64 cells = p.in[0] * p.in[1] * p.in[2];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < cells * p.planes; e += gridDim.x * 256ll) {
        const INDEX outer = (INDEX)e / (INDEX)(PLANES_INSIDE ? p.planes : cells), inner = (INDEX)e - outer * (INDEX)(PLANES_INSIDE ? p.planes : cells);
        const INDEX spot = PLANES_INSIDE ? outer : inner, plane = PLANES_INSIDE ? inner : outer, row = spot / (INDEX)p.in[2];
        const int i2 = (int)(spot - row * (INDEX)p.in[2]), i1 = (int)(row % (INDEX)p.in[1]), i0 = (int)(row / (INDEX)p.in[1]);
        const T *y = p.y + line(p, plane, 1);
        const i64 key = KEY == NONE ? 0 : line(p, plane, 2);
        int f0, t0, f1, t1, f2, t2, number;
        A sum = 0;
        holding(p, 0, i0, &f0, &t0);
        holding(p, 1, i1, &f1, &t1);
        holding(p, 2, i2, &f2, &t2);
        for (int u0 = f0; u0 < t0; u0++) {
            for (int u1 = f1; u1 < t1; u1++) {
                for (int u2 = f2; u2 < t2; u2++) {
                    const window w = window_at(p, u0, u1, u2);
                    const A g = get<A>(y[cell(p.slot[1], u0, u1, u2)]);
                    if (KEY == MARKS) {
                        int at[3];
                        marked(p, w, ((const MARK *)p.key)[key + cell(p.slot[2], u0, u1, u2)], at);
                        sum += at[0] == i0 && at[1] == i1 && at[2] == i2 ? g : (A)0;
                    } else if (KEY == TIES) {
                        const T *k = (const T *)p.key + key;
                        sum += get<V>(k[cell(p.slot[2], i0, i1, i2)]) == largest(w, k, p.slot[2], &number, p) ? g : (A)0;
                    } else {
                        sum += g / (A)share(p, w);
                    }
                }
            }
        }
        p.x[line(p, plane, 0) + cell(p.slot[0], i0, i1, i2)] = put<T>(sum);
    }
}
#endif
