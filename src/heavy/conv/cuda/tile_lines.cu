/* tile_lines.cu: tiles of a plane in registers, and the lines that they read, for convolutions that keep
 * their sums there (depthwise/depthwise.cu, grouped/grouped.cu).
 *
 * The text that includes this defines `args`, the filter (KH taps, stride SH, dilation DH, pad PH; W for the
 * other axis), the tile (TH x TW), V channels and G positions of the source that are loaded at once, LAST
 * where channels are innermost, and what a finished number takes: HAS_C0, HAS_BIAS, ACT.  Sizes are
 * constants, so every loop over a tile is unrolled.
 *
 * Invariant: elements outside of an array read as 0. */
#define SPREAD (PASS == CONV_INPUTS)

/* ---- N adjacent numbers ---- */

/* The numbers in the lower and the upper half of a word. */
template <class S> struct word;
template <> struct word<bf16> {
    static __device__ __forceinline__ float low(unsigned u) { return __uint_as_float(u << 16); }
    static __device__ __forceinline__ float high(unsigned u) { return __uint_as_float(u & 0xffff0000u); }
};
template <> struct word<half> {
    static __device__ __forceinline__ float low(unsigned u) { return get<float>(half{ (unsigned short)u }); }
    static __device__ __forceinline__ float high(unsigned u) { return low(u >> 16); }
};

template <class S, int N> struct alignas(N * sizeof(S)) several { S v[N]; };

/* Stores words by one instruction: the compiler stores the members of a structure one by one. */
__device__ __forceinline__ void store(void *to, const several<unsigned, 1> &w)
{
    *(unsigned *)to = w.v[0];
}
__device__ __forceinline__ void store(void *to, const several<unsigned, 2> &w)
{
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w.v[0]), "r"(w.v[1]) : "memory");
}
__device__ __forceinline__ void store(void *to, const several<unsigned, 4> &w)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w.v[0]), "r"(w.v[1]),
                 "r"(w.v[2]), "r"(w.v[3])
                 : "memory");
}

/* Zeros unless `in`. */
template <int N> __device__ __forceinline__ void take(float *to, const T *from, bool in)
{
#if HALVES
    typedef several<unsigned, N / 2 ? N / 2 : 1> words;
    if (N == 1) {
        unsigned one = 0;
        if (in) {
            one = *(const unsigned short *)from;
        }
        to[0] = word<T>::low(one);
    } else {
        words q = {};
        if (in) {
            q = *(const words *)from;
        }
#pragma unroll
        for (int k = 0; k + 1 < N; k += 2) {
            to[k] = word<T>::low(q.v[k / 2]);
            to[k + 1] = word<T>::high(q.v[k / 2]);
        }
    }
#else
    several<T, N> q = {};
    if (in) {
        q = *(const several<T, N> *)from;
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        to[k] = q.v[k];
    }
#endif
}

/* ---- along one axis: lines of a tile and lines that they read ----
 *
 * A tile begins at a multiple of its length, which with gradients is one of the stride. Lines of the source
 * are counted from `base`. */
struct high { enum { taps = KH, stride = SH, dilation = DH, pad = PH, tile = TH }; };
struct wide { enum { taps = KW, stride = SW, dilation = DW, pad = PW, tile = TW }; };

template <class X> __device__ __forceinline__ int base(int first)
{
    return SPREAD ? first / X::stride : first * X::stride;
}
__device__ constexpr int up(int a, int b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }
__device__ constexpr int down(int a, int b) { return -up(-a, b); }
template <class X> __device__ constexpr int lowest()
{
    return SPREAD ? up(X::pad - (X::taps - 1) * X::dilation, X::stride) : -X::pad;
}
template <class X> __device__ constexpr int highest()
{
    return SPREAD ? down(X::tile - 1 + X::pad, X::stride)
                  : (X::tile - 1) * X::stride + (X::taps - 1) * X::dilation - X::pad;
}
/* The line of the tile that reads line i by tap a; -1: none. */
template <class X> __device__ constexpr int reader(int i, int a)
{
    const int far = SPREAD ? i * X::stride - X::pad + a * X::dilation : i + X::pad - a * X::dilation,
              r = SPREAD || far < 0 || far % X::stride == 0 ? far : -1,
              line = SPREAD || r < 0 ? r : r / X::stride;
    return line >= 0 && line < X::tile ? line : -1;
}
template <class X> __device__ constexpr bool is_read(int i)
{
    for (int a = 0; a < X::taps; a++) {
        if (reader<X>(i, a) >= 0) {
            return true;
        }
    }
    return false;
}
__device__ constexpr bool is_any_read(int first)
{
    for (int j = first; j < first + G; j++) {
        if (is_read<wide>(j)) {
            return true;
        }
    }
    return false;
}
enum { LOW_H = lowest<high>(), HIGH_H = highest<high>(), LOW_W = down(lowest<wide>(), G) * G,
       COLUMNS = (down(highest<wide>(), G) + 1) * G - LOW_W };

/* ---- a tile and what it reads ---- */

struct spot { int image, line, position; };     /* the first of a tile */
struct plane { i64 at; int lines, positions, between_lines, between; };

__device__ __forceinline__ spot spot_of(const args &p, unsigned e)
{
    const unsigned rest = quotient(e, p.across), image = quotient(rest, p.down);
    return { (int)image, (int)(rest - image * p.down.by) * TH, (int)(e - rest * p.across.by) * TW };
}

__device__ __forceinline__ plane x_plane(const args &p, int image, int channel)
{
    return { image * p.xs[0] + channel * p.xs[1], p.in[0], p.in[1], p.xl[0], LAST ? p.xl[1] : 1 };
}

__device__ __forceinline__ plane y_plane(const args &p, int image, int channel)
{
    return { image * p.ys[0] + channel * p.ys[1], p.out[0], p.out[1], p.yl[0], LAST ? p.yl[1] : 1 };
}

/* A line of the source, from a position: `from` is the first element of its plane. */
__device__ __forceinline__ void read_line(float (&v)[COLUMNS * V], const T *from, const plane &s, int line,
                                          int position)
{
    const T *const at = from + line * s.between_lines + position * s.between;
    const bool in = (unsigned)line < (unsigned)s.lines;
#pragma unroll
    for (int j = LOW_W; j < LOW_W + COLUMNS; j += G) {
        if (is_any_read(j)) {
            take<G * V>(v + (j - LOW_W) * V, at + j * s.between,
                        in && (unsigned)(position + j) < (unsigned)s.positions);
        }
    }
}

#if !FILTERS

/* ---- results ---- */

/* N adjacent results from sums. */
template <int N>
__device__ __forceinline__ void give(const args &p, T *to, i64 at, const float *sum, int channel)
{
    float old[N] = {};
    several<T, N> q;
    if (HAS_C0) {
        take<N>(old, p.c0 + at, true);
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        float v = p.alpha * sum[k];
        if (HAS_C0) {
            v += p.beta * old[k];
        }
        if (HAS_BIAS) {
            v += get<float>(p.bias[channel + (LAST ? k : 0)]);
        }
        q.v[k] = put<T>(finish(v, ACT));
    }
#if HALVES
    if (N > 1) {
        several<unsigned, N / 2 ? N / 2 : 1> words;
#pragma unroll
        for (int k = 0; k + 1 < N; k += 2) {
            words.v[k / 2] = q.v[k].bits | (unsigned)q.v[k + 1].bits << 16;
        }
        store(to + at, words);
        return;
    }
    to[at] = q.v[0];
#else
    several<unsigned, N> words;
#pragma unroll
    for (int k = 0; k < N; k++) {
        words.v[k] = __float_as_uint(q.v[k]);
    }
    store(to + at, words);
#endif
}

#endif
