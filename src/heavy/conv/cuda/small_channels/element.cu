/* element.cu: shared by the tensor-core kernels for images of few channels: cells, which are halves, floats
 * rounded to TF32, or floats, and their products, STEP terms at a time.
 *
 * FINE: cells are floats.  A product splits each into two TF32 numbers, x = high + low, and adds three
 * products, low high + high low + high high; low low is below the last bit of float32.  Tensor cores truncate
 * their sums, so each product begins at 0 and is added in float32.  An infinity has no low part: such sums
 * become NaN, and are computed again in float32 (broken).
 *
 * PAIRS: FINE, forward: a cell is a float times a power of two, as two halves in one word, high and low, so
 * that a product has twice the terms. */
typedef unsigned u32;
enum { HALVES = sizeof(T) == 2, LANE = HALVES || PAIRS ? 4 : 2, STEP = 4 * LANE, EACH = 16 / sizeof(T) };

/* ---- cells ---- */

template <bool Halves> struct cells { typedef unsigned short type; };
template <> struct cells<false> { typedef u32 type; };
typedef cells<HALVES>::type cell;

__device__ __forceinline__ cell cell_of(half v)
{
    return v.bits;
}
__device__ __forceinline__ cell cell_of(bf16 v)
{
    return v.bits;
}
__device__ __forceinline__ u32 tf32_of(float v)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ u32 cell_of(float v)
{
    return FINE ? __float_as_uint(v) : tf32_of(v);
}

/* Has an operand of this sum no halves? */
__device__ __forceinline__ bool broken(float sum)
{
    return FINE && !(sum - sum == 0);
}

/* ---- three axes: images are planes; with one or two axes OD, ID and KD are 1 ---- */

template <class Args> __device__ __forceinline__ i64 x_plane(const Args &p, int i)
{
    return i / ID * p.xs[0] + i % ID * p.deep[0];
}
template <class Args> __device__ __forceinline__ i64 y_plane(const Args &p, int i)
{
    return i / OD * p.ys[0] + i % OD * p.deep[2];
}

/* The plane of x that tap kd of plane i of y reads; -1: none. */
__device__ __forceinline__ int read_by(int i, int kd)
{
    const int d = i % OD * SD - PD + kd;
    return KD == 1 && ID == 1 && PD == 0 ? i : d >= 0 && d < ID ? i / OD * ID + d : -1;
}
/* The plane of y whose tap kd reads plane i of x; -1: none. */
__device__ __forceinline__ int read_from(int i, int kd)
{
    const int far = i % ID + PD - kd, d = far / SD;
    return far >= 0 && d * SD == far && d < OD ? i / ID * OD + d : -1;
}

/* Address of tap k of filter f; taps are counted over all channels.  TAPS_DENSE: they are contiguous. */
template <class Args> __device__ __forceinline__ i64 filter_at(const Args &p, int f, int k)
{
    if (TAPS_DENSE) {
        return f * p.ws[0] + k;
    }
    return f * p.ws[0] + k / (KD * KH * KW) * p.ws[1] + k / (KH * KW) % KD * p.deep[1] +
           k / KW % KH * p.ws[2] + k % KW * p.ws[3];
}

/* ---- products of STEP terms ---- */

__device__ __forceinline__ void multiply_as(half, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    multiply(d, a, b0, b1);
}
__device__ __forceinline__ void multiply_as(bf16, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    multiply_halves(bf16(), d, a, b0, b1);
}
__device__ __forceinline__ void multiply_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* The same from 0, without instructions that set c. */
__device__ __forceinline__ void multiply_tf32_first(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    c[0] = c[1] = c[2] = c[3] = 0;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.f));
}

template <int N> __device__ __forceinline__ void split_cells(u32 (&high)[N], u32 (&low)[N], const u32 (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        high[i] = (v[i] + 0x1000) & 0xffffe000; /* NaN may become 0, and then low is NaN */
        low[i] = __float_as_uint(__uint_as_float(v[i]) - __uint_as_float(high[i]));
    }
}

__device__ __forceinline__ void multiply_as(float, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    const u32 b[2] = { b0, b1 };
    if (!FINE) {
        multiply_tf32(d, a, b);
        return;
    }
    u32 a_high[4], a_low[4], b_high[2], b_low[2];
    float c[4];
    split_cells(a_high, a_low, a);
    split_cells(b_high, b_low, b);
    multiply_tf32_first(c, a_low, b_high);
    multiply_tf32(c, a_high, b_low);
    multiply_tf32(c, a_high, b_high);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        d[i] += c[i];
    }
}
