/* prelude.cu: included before every kernel text of a solver: dtypes, and how they are read and rounded.
 *
 * A text is compiled for one dtype T and a dtype of sums A.  get<A>(x) widens, put<T>(a) rounds once, to
 * nearest even. */
#include "device/cuda/args.h"
#include "plan/act.h"

struct half { unsigned short bits; };
struct bf16 { unsigned short bits; };

template <class A, class S> struct convert {
    static __device__ A of(S s) { return (A)s; }
};
template <class A> struct convert<A, half> {
    static __device__ A of(half s)
    {
        float f;
        asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(s.bits));
        return (A)f;
    }
};
template <class A> struct convert<A, bf16> {
    static __device__ A of(bf16 s) { return (A)__uint_as_float((unsigned)s.bits << 16); }
};
template <> struct convert<half, half> {
    static __device__ half of(half s) { return s; }
};
template <> struct convert<bf16, bf16> {
    static __device__ bf16 of(bf16 s) { return s; }
};
template <> struct convert<half, float> {
    static __device__ half of(float f)
    {
        half h;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
        return h;
    }
};
template <> struct convert<half, double> {
    static __device__ half of(double f)
    {
        half h;
        asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h.bits) : "d"(f));
        return h;
    }
};
template <> struct convert<bf16, float> {
    static __device__ bf16 of(float f)
    {
        bf16 b;
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
#else
        unsigned u = __float_as_uint(f);
        b.bits = f != f ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
#endif
        return b;
    }
};
template <> struct convert<bf16, double> {
    static __device__ bf16 of(double d)
    {
        float f = __double2float_rz(d); /* round to odd, so that the result is rounded once */
        if ((double)f != d && d == d) {
            f = __uint_as_float(__float_as_uint(f) | 1);
        }
        return convert<bf16, float>::of(f);
    }
};
template <> struct convert<half, bf16> {
    static __device__ half of(bf16 s) { return convert<half, float>::of(convert<float, bf16>::of(s)); }
};
template <> struct convert<bf16, half> {
    static __device__ bf16 of(half s) { return convert<bf16, float>::of(convert<float, half>::of(s)); }
};

/* Converts a float to an integer with saturation, NaN to 0, as in kernels (render/prelude.h). */
template <class I, class F> __device__ __forceinline__ I saturated(F x, I low, I high, F below, F above)
{
    return x >= above ? high : x <= below ? low : x == x ? (I)x : (I)0;
}
#define WITHIN(I, low, high, below, above)                                                                   \
    template <> struct convert<I, float> {                                                                   \
        static __device__ I of(float f)                                                                      \
        {                                                                                                    \
            return saturated<I, float>(f, low, high, below, above);                                          \
        }                                                                                                    \
    };                                                                                                       \
    template <> struct convert<I, double> {                                                                  \
        static __device__ I of(double f)                                                                     \
        {                                                                                                    \
            return saturated<I, double>(f, low, high, below, above);                                         \
        }                                                                                                    \
    };                                                                                                       \
    template <> struct convert<I, half> {                                                                    \
        static __device__ I of(half s)                                                                       \
        {                                                                                                    \
            return convert<I, float>::of(convert<float, half>::of(s));                                       \
        }                                                                                                    \
    };                                                                                                       \
    template <> struct convert<I, bf16> {                                                                    \
        static __device__ I of(bf16 s)                                                                       \
        {                                                                                                    \
            return convert<I, float>::of(convert<float, bf16>::of(s));                                       \
        }                                                                                                    \
    };
WITHIN(signed char, -128, 127, -128.f, 128.f)
WITHIN(short, -32768, 32767, -32768.f, 32768.f)
WITHIN(int, -2147483647 - 1, 2147483647, -2147483648.f, 2147483648.f)
WITHIN(i64, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll, -9223372036854775808.f, 9223372036854775808.f)
WITHIN(unsigned char, 0, 255, 0.f, 256.f)
WITHIN(unsigned short, 0, 65535, 0.f, 65536.f)
WITHIN(unsigned, 0, 0xffffffffu, 0.f, 4294967296.f)
WITHIN(u64, 0, 0xffffffffffffffffull, 0.f, 18446744073709551616.f)
#undef WITHIN

template <class A, class S> __device__ __forceinline__ A get(S s) { return convert<A, S>::of(s); }
template <class S, class A> __device__ __forceinline__ S put(A a) { return convert<S, A>::of(a); }

/* n / by, for n below 2^31. */
typedef mc_cuda_divider divider;
__device__ __forceinline__ unsigned quotient(unsigned n, const divider &d)
{
    return ((unsigned)((u64)n * d.times >> 32) + n) >> d.shift;
}

/* The activation of a finished element: act is an enum mc_act. */
template <class A> __device__ __forceinline__ A finish(A v, int act)
{
    if (act == ACT_RELU) {
        return v < (A)0 ? (A)0 : v;
    }
    if (act == ACT_GELU) {
        const A u = (A)0.7978845608028654 * (v + (A)0.044715 * v * v * v);
        return (A)0.5 * v * ((A)1 + (A)tanh(u));
    }
    if (act == ACT_TANH) {
        return (A)tanh(v);
    }
    if (act == ACT_SIGMOID) {
        return (A)1 / ((A)1 + (A)exp(-v));
    }
    if (act == ACT_ELU) {
        return v > (A)0 ? v : (A)expm1(v);
    }
    if (act == ACT_GELU_ERF) {
        return (A)0.5 * v * (A)erfc((A)-0.7071067811865476 * v);
    }
    if (act == ACT_SWISH) {
        return v / ((A)1 + (A)exp(-v));
    }
    return v;
}

/* A kernel that is launched by mc_cuda_launch_dependent may start while the previous one ends; here it
 * waits for that one's end. */
__device__ __forceinline__ void follow()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- asynchronous copies to shared memory ---- */

__device__ __forceinline__ void fetch4(float *to, const float *from, bool valid) /* stores 0 unless `valid` */
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(valid ? 4 : 0)
                 : "memory");
}
__device__ __forceinline__ void fetch16(float *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
}
/* fetched: waits for all copies of this thread.
 * fetched_before: waits for all but those of the last `Marks` groups; fetch_mark ends a group. */
__device__ __forceinline__ void fetched()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}
__device__ __forceinline__ void fetch_mark()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Marks> __device__ __forceinline__ void fetched_before()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Marks) : "memory");
}

/* ---- a float as two halves (heavy/gemm/cuda/split.cu has the algebra) ---- */

/* The exponent of the scale for numbers whose largest |x| has the bits `most`: scaled by 2^exponent it is
 * below 2^15. */
__device__ __forceinline__ int exponent(unsigned most)
{
    const int e = (int)(most >> 23);
    return most ? 14 + 127 - (e ? e : 1) : 0;
}

/* The scale as two factors, neither of which overflows. */
__device__ __forceinline__ void factors(unsigned most, float f[2])
{
    const int e = exponent(most), half_e = e / 2;
    f[0] = __uint_as_float((unsigned)(127 + half_e) << 23);
    f[1] = __uint_as_float((unsigned)(127 + e - half_e) << 23);
}

/* The factor that undoes the scale. */
__device__ __forceinline__ float unscaled(unsigned most)
{
    return ldexpf(1.0f, -exponent(most));
}

__device__ __forceinline__ void halve(float x, const float f[2], float up, unsigned *high, unsigned *low)
{
    const float scaled = x * f[0] * f[1];
    const half h = put<half>(scaled);
    *high = h.bits;
    *low = (h.bits & 0x7c00) == 0x7c00 ? 0 : put<half>((scaled - get<float>(h)) * up).bits;
}

__device__ __forceinline__ unsigned halves_of(float a, float b)
{
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
}

/* Splits two scaled, finite numbers; each result holds two halves.  Low halves are not scaled up, so that
 * all products have one scale. */
__device__ __forceinline__ void halve2(float a, float b, unsigned *high, unsigned *low)
{
    half t[2];
    *high = halves_of(a, b);
    t[0].bits = (unsigned short)*high;
    t[1].bits = (unsigned short)(*high >> 16);
    *low = halves_of(a - get<float>(t[0]), b - get<float>(t[1]));
}

/* The largest value in the warp. */
__device__ __forceinline__ unsigned over_warp(unsigned most)
{
    unsigned r;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(most));
    return r;
}

/* ---- matrices of halves on tensor cores, a warp at a time ---- */

/* (16 x 8) += (16 x 16) (16 x 8), with elements distributed over the lanes as the tensor cores require. */
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* The same for either type of halves. */
__device__ __forceinline__ void multiply_halves(half, float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                unsigned b1)
{
    multiply(d, a, b0, b1);
}
__device__ __forceinline__ void multiply_halves(bf16, float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* Four matrices of 8 x 8; lane l has the address of row l % 8 of matrix l / 8. */
__device__ __forceinline__ void read_rows(unsigned (&r)[4], const unsigned short *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ __forceinline__ void read_columns(unsigned (&r)[4], const unsigned short *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

/* ---- clusters of blocks (compute capability 9.0) ---- */

/* meet: the barrier of a cluster, for shared memory.  leave: no block ends before the others have read its
 *       part.  of_block: the address of p in another block's shared memory. */
__device__ __forceinline__ void meet()
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 13
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
#else                           /* the form above would also wait for global memory, which is not needed */
    asm volatile("fence.release.sync_restrict::shared::cta.cluster; barrier.cluster.arrive.relaxed; "
                 "barrier.cluster.wait; "
                 "fence.acquire.sync_restrict::shared::cluster.cluster;" ::
                     : "memory");
#endif
#endif
}
__device__ __forceinline__ void leave()
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
#endif
}
template <class S> __device__ __forceinline__ const S *of_block(const S *p, unsigned block)
{
    u64 a = (u64)p;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(a) : "l"(p), "r"(block));
#endif
    return (const S *)a;
}

/* ---- sums of the partial sums of blocks, in order ---- */

/* The sum of the parts of element e of `count`.  A block of eight warps has 32 elements; its first warp
 * receives the sums. */
template <class A> __device__ __forceinline__ A sum_of_parts(const A *parts, int count, int blocks, int e)
{
    __shared__ A some[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    A sum = 0;
    if (e < count) {
#pragma unroll 8
        for (int part = warp; part < blocks; part += 8) {
            sum += parts[(i64)part * count + e];
        }
    }
    some[warp][lane] = sum;
    __syncthreads();
    for (int i = 1; warp == 0 && i < 8; i++) {
        sum += some[i][lane];
    }
    return sum;
}
