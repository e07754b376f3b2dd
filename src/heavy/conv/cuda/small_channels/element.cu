/* element.cu: shared by the tensor-core kernels for images of few channels: cells, which are halves, floats
 * rounded to TF32, or floats, and their products, STEP terms at a time.
 *
 * FINE: cells are floats.  A product splits each into two TF32 numbers, x = high + low, and adds three
 * products, low high + high low + high high; low low is below the last bit of float32.  Tensor cores truncate
 * their sums, so each product begins at 0 and is added in float32.  An infinity has no low part: such sums
 * become NaN, and are computed again in float32 (broken). */
typedef unsigned u32;
enum { HALVES = sizeof(T) == 2, LANE = HALVES ? 4 : 2, STEP = 4 * LANE, EACH = 16 / sizeof(T) };

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

/* ---- products of STEP terms ---- */

__device__ __forceinline__ void multiply_as(half, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    multiply(d, a, b0, b1);
}
__device__ __forceinline__ void multiply_as(bf16, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int N> __device__ __forceinline__ void split_cells(u32 (&high)[N], u32 (&low)[N], const u32 (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        high[i] = tf32_of(__uint_as_float(v[i]));
        low[i] = tf32_of(__uint_as_float(v[i]) - __uint_as_float(high[i]));
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
    float c[4] = {};
    split_cells(a_high, a_low, a);
    split_cells(b_high, b_low, b);
    multiply_tf32(c, a_low, b_high);
    multiply_tf32(c, a_high, b_low);
    multiply_tf32(c, a_high, b_high);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        d[i] += c[i];
    }
}
