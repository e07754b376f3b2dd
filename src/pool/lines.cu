/* lines.cu: images of two axes, the last dense: a thread has PLACES windows beside each other in a line of y, and all that
 * they reach.  FIXED (windows.cu). */
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
