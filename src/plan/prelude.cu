/* prelude.cu: in front of every text of a solver: dtypes, and how they are read and rounded.
 *
 * A text is compiled for one dtype T, summed in A.  get<A>(x) widens, put<T>(a) rounds once, to nearest even. */
typedef long long i64;
typedef unsigned long long u64;
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
        unsigned u = __float_as_uint(f);
        bf16 b;
        b.bits = f != f ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
        return b;
    }
};
template <> struct convert<bf16, double> {
    static __device__ bf16 of(double d)
    {
        float f = __double2float_rz(d); /* what was cut off stays visible in the last bit: one rounding, not two */
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

template <class A, class S> __device__ __forceinline__ A get(S s) { return convert<A, S>::of(s); }
template <class S, class A> __device__ __forceinline__ S put(A a) { return convert<S, A>::of(a); }

/* What is done to a finished element: 0 nothing, 1 max(v, 0) where a NaN stays, 2 gelu by tanh. */
template <class A> __device__ __forceinline__ A finish(A v, int act)
{
    if (act == 1) {
        return v < (A)0 ? (A)0 : v;
    }
    if (act == 2) {
        const A u = (A)0.7978845608028654 * (v + (A)0.044715 * v * v * v);
        return (A)0.5 * v * ((A)1 + (A)tanh(u));
    }
    return v;
}
