/* lines.cu: pooling of images of one or two axes whose last axis is contiguous. A thread computes POSITIONS
 * adjacent windows of a line of y, or all cells within their strides. X_MANY elements of x, and Y_MANY of y
 * and of key, are moved at a time if operands are aligned. FIXED: see windows.cu. Loads need no branch: a
 * position outside reads the nearest one inside, and the value is not used. EQUALS: all cells equal to the
 * largest receive the gradient of windows that share no cell. */
#define BITS (KEY == POOL_KEY_BITS)
#define LIKE_Y (KEY == POOL_KEY_MARKS || BITS) /* the key has an element for each window */
enum {
    CELLS = POSITIONS * S2,
    LEFT = P2 > 0 ? P2 : 0,
    RIGHT = W2 - P2 - S2 > 0 ? W2 - P2 - S2 : 0,
    LINE = LEFT + CELLS + RIGHT
};
/* SPREAD: the range of windows that contain the thread's cells, relative to its first window. */
enum {
    ROW0 = FIRST(W1, S1, P1),
    ROWS = REACH(W1, S1, P1),
    COL0 = FIRST(W2, S2, P2),
    COLS = FLOOR(CELLS - 1 + P2, S2) - COL0 + 1
};
struct position { starts s; int row, group; unsigned plane; };
__device__ __forceinline__ position position_at(const args &p, unsigned e)
{
    const unsigned rest = quotient(e, p.part[0]), plane = quotient(rest, p.part[1]);
    position a;
    a.plane = plane;
    a.group = (int)(e - rest * p.part[0].by);
    a.row = (int)(rest - plane * p.part[1].by);
    a.s = starts_of(p, plane, (int)p.nfree);
    return a;
}

/* Loads N elements from column `first` on of a line of `size`; those from AT on V at a time. `none` replaces
 * elements outside of the line, or all if the line does not exist (!in). */
template <int N, int AT, int V, class E, class R>
__device__ __forceinline__ void get_line(R (&v)[N], const E *line, int first, int size, bool in, R none)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int begin = (i - AT) / V * V + AT, col = first + i;
        if (i < AT || begin + V > N) {
            const R u = get<R>(line[within(col, size)]);
            v[i] = in && col >= 0 && col < size ? u : none;
        } else if (i == begin) {
            const several<E, V> q = *(const several<E, V> *)(line + (col < size ? col : 0));
#pragma unroll
            for (int k = 0; k < V; k++) {
                v[begin + k < N ? begin + k : 0] = in && col < size ? get<R>(q.v[k]) : none;
            }
        }
    }
}

template <int V, int N, class E, class R>
__device__ __forceinline__ void put_line(const R (&v)[N], E *line, int first, int size)
{
#pragma unroll
    for (int i = 0; i < N; i += V) {
        several<E, V> q;
#pragma unroll
        for (int k = 0; k < V; k++) {
            q.v[k] = put<E>(v[i + k]);
        }
        if (first + i < size) {
            *(several<E, V> *)(line + first + i) = q;
        }
    }
}

#if FORWARD
template <int X, int Y> __device__ __forceinline__ void windows_of(const args &p, unsigned e)
{
    const position a = position_at(p, e);
    const T *const x = p.x + a.s.at[0];
    const int first = a.group * POSITIONS;
    /* never taken as a maximum: more() is false for it */
    const A none = MODE == POOL_MAX ? -(A)__uint_as_float(0x7f800000u) : (A)0;
    A most[POSITIONS], v[BITS ? W1 : 1][LINE];
    int number[POSITIONS];
#pragma unroll
    for (int k = 0; k < POSITIONS; k++) {
        const window w = window_at(p, 0, a.row, first + k);
        number[k] = WHOLE ? 0 : (w.lo[1] - w.first[1]) * W2 + w.lo[2] - w.first[2];
        most[k] = none;
    }
#pragma unroll
    for (int b = 0; b < W1; b++) {
        const int row = a.row * S1 - P1 + b;
        const bool in = WHOLE || (row >= 0 && row < (int)p.in[1]);
        A(&line)[LINE] = v[BITS ? b : 0];
        get_line<LINE, LEFT, X>(line, x + (WHOLE ? row : within(row, (int)p.in[1])) * (int)p.slot[0][1],
                                first * S2 - LEFT, (int)p.in[2], in, none);
#pragma unroll
        for (int k = 0; k < POSITIONS; k++) {
#pragma unroll
            for (int c = 0; c < W2; c++) {
                const A u = line[LEFT - P2 + k * S2 + c];
                const bool counts = MODE != POOL_MAX || more(u, most[k]);
                most[k] = MODE != POOL_MAX ? most[k] + u : counts ? u : most[k];
                number[k] = counts ? b * W2 + c : number[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < POSITIONS && MODE != POOL_MAX; k++) {
        most[k] /= (A)share(p, window_at(p, 0, a.row, first + k));
    }
#pragma unroll
    for (int k = 0; k < POSITIONS && BITS; k++) {
        const window w = window_at(p, 0, a.row, first + k);
        number[k] = 0;
#pragma unroll
        for (int i = 0; i < W1 * W2; i++) {
            const int row = w.first[1] + i / W2, col = w.first[2] + i % W2;
            const bool in = WHOLE || (row >= w.lo[1] && row < w.hi[1] && col >= w.lo[2] && col < w.hi[2]);
            number[k] |= (in && v[BITS ? i / W2 : 0][LEFT - P2 + k * S2 + i % W2] == most[k])
                         << (i & (POOL_BITS - 1));
        }
    }
#pragma unroll
    for (int k = 0; k < POSITIONS && EPILOGUE; k++) {
        most[k] = finished(p, a.plane, most[k]);
    }
    put_line<Y>(most, p.y + a.s.at[1] + a.row * (int)p.slot[1][1], first, (int)p.out[2]);
    if (LIKE_Y) {
        put_line<Y>(number, (MARK *)p.key + a.s.at[2] + a.row * (int)p.slot[2][1], first, (int)p.out[2]);
    }
}
#else
/* The windows of one line of y: the gradient of each, and the number of the cell that receives it. */
template <int Y>
__device__ __forceinline__ void windows(const args &p, const position &a, int row, int first, A (&g)[COLS],
                                        int (&number)[COLS])
{
    const bool in = row >= 0 && row < (int)p.out[1];
    const int at = within(row, (int)p.out[1]);
    bool odd = false;
    get_line<COLS, -COL0, Y>(g, p.y + a.s.at[1] + at * (int)p.slot[1][1], first, (int)p.out[2], in, (A)0);
    if (LIKE_Y) {
        get_line<COLS, -COL0, Y>(number, (const MARK *)p.key + a.s.at[2] + at * (int)p.slot[2][1], first,
                                 (int)p.out[2], in, 0);
    }
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        const window w = window_at(p, 0, row, first + k);
        odd = odd || is_clipped(w) || (unsigned)number[k] >= W1 * W2;
        if (!LIKE_Y && in && first + k >= 0 && first + k < (int)p.out[2]) {
            g[k] /= (A)share(p, w);
        }
    }
    if (KEY == POOL_KEY_MARKS && odd) {
#pragma unroll
        for (int k = 0; k < COLS; k++) {
            number[k] = numbered(p, window_at(p, 0, row, first + k), number[k]);
        }
    }
}

#if EQUALS
/* Windows that share no cell, those of the thread's cells alone: all cells equal to the largest receive the
 * gradient. */
template <int X, int Y>
__device__ __forceinline__ void to_equals(const args &p, const position &a, A (&sum)[S1][CELLS])
{
    const A none = -(A)__uint_as_float(0x7f800000u);
    A g[COLS], most[COLS], v[W1][CELLS];
    int number[COLS] = {};
    windows<Y>(p, a, a.row, a.group * POSITIONS, g, number);
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        most[k] = none;
    }
#pragma unroll
    for (int b = 0; b < W1; b++) {
        const int row = a.row * S1 + b;
        const T *const from = (const T *)p.key + a.s.at[2] + within(row, (int)p.in[1]) * (int)p.slot[2][1];
        get_line<CELLS, 0, X>(v[b], from, a.group * CELLS, (int)p.in[2], row < (int)p.in[1], none);
#pragma unroll
        for (int j = 0; j < CELLS; j++) {
            if (j % S2 < W2) {
                most[j / S2] = more(v[b][j], most[j / S2]) ? v[b][j] : most[j / S2];
            }
        }
    }
#pragma unroll
    for (int b = 0; b < W1; b++) {
#pragma unroll
        for (int j = 0; j < CELLS; j++) {
            sum[b][j] = j % S2 < W2 && v[b][j] == most[j / S2] ? g[j / S2] : (A)0;
        }
    }
}

#else
template <int Y>
__device__ __forceinline__ void to_marks(const args &p, const position &a, A (&sum)[S1][CELLS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        A g[COLS];
        int number[COLS] = {};
        windows<Y>(p, a, a.row + ROW0 + r, a.group * POSITIONS + COL0, g, number);
#pragma unroll
        for (int k = 0; k < COLS; k++) {
#pragma unroll
            for (int i = 0; i < S1; i++) {
#pragma unroll
                for (int j = 0; j < CELLS; j++) {
                    /* the cell's index in that window */
                    const int b = i + P1 - (ROW0 + r) * S1, c = j + P2 - (COL0 + k) * S2;
                    if (b >= 0 && b < W1 && c >= 0 && c < W2) {
                        const bool mine = BITS ? number[k] >> (b * W2 + c & (POOL_BITS - 1)) & 1
                                               : KEY == POOL_KEY_NONE || number[k] == b * W2 + c;
                        sum[i][j] += mine ? g[k] : (A)0;
                    }
                }
            }
        }
    }
}
#endif

template <int X, int Y> __device__ __forceinline__ void windows_of(const args &p, unsigned e)
{
    const position a = position_at(p, e);
    A sum[S1][CELLS] = {};
#if EQUALS
    to_equals<X, Y>(p, a, sum);
#else
    to_marks<Y>(p, a, sum);
#endif
    T *const x = p.x + a.s.at[0];
#pragma unroll
    for (int i = 0; i < S1; i++) {
        const int row = a.row * S1 + i;
        if (row < (int)p.in[1]) {
            put_line<X>(sum[i], x + row * (int)p.slot[0][1], a.group * CELLS, (int)p.in[2]);
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(256) lines(const __grid_constant__ args p)
{
    follow();
    for (unsigned e = blockIdx.x * 256 + threadIdx.x; e < p.count; e += gridDim.x * 256) {
        if (p.together) {
            windows_of<X_MANY, Y_MANY>(p, e);
        } else {
            windows_of<1, 1>(p, e);
        }
    }
}
