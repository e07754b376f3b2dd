/* element.cu: shared by the tensor-core kernels for images of few channels: cells, which are halves or
 * floats rounded to TF32, and their products, STEP terms at a time. */
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
__device__ __forceinline__ u32 cell_of(float v)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
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
__device__ __forceinline__ void multiply_as(float, float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    const u32 b[2] = { b0, b1 };
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
