/* shim.h: what CUDA C kernels need to be C++ for the processor. */
#include "fake.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
extern "C" {
extern shim *shim_now;
}
#define threadIdx (shim_now->tid)
#define blockIdx (shim_now->bid)
#define blockDim (shim_now->bdim)
#define gridDim (shim_now->gdim)
#define __syncthreads() shim_now->block()
#define __syncwarp(...) ((void)shim_warp(0))
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define warpSize 32
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline float2 make_float2(float x, float y)
{
    return { x, y };
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return { x, y, z, w };
}
static inline void sincospif(float x, float *s, float *c)
{
    *s = (float)sin(3.14159265358979323846 * x);
    *c = (float)cos(3.14159265358979323846 * x);
}
static inline float cospif(float x)
{
    return (float)cos(3.14159265358979323846 * x);
}
static inline double cospi(double x)
{
    return cos(3.14159265358979323846 * x);
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return { x, y, z, w };
}
struct alignas(16) double2 {
    double x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
template <class A, class B> static inline A shim_as(B b)
{
    A a;
    memcpy(&a, &b, sizeof a);
    return a;
}
static inline float __int_as_float(int i)
{
    return shim_as<float>(i);
}
static inline int __float_as_int(float f)
{
    return shim_as<int>(f);
}
static inline float __uint_as_float(unsigned i)
{
    return shim_as<float>(i);
}
static inline unsigned __float_as_uint(float f)
{
    return shim_as<unsigned>(f);
}
static inline double __longlong_as_double(long long i)
{
    return shim_as<double>(i);
}
static inline int __double2hiint(double d)
{
    long long i;
    memcpy(&i, &d, 8);
    return (int)(i >> 32);
}
static inline int __double2loint(double d)
{
    long long i;
    memcpy(&i, &d, 8);
    return (int)i;
}
static inline double __hiloint2double(int h, int l)
{
    const unsigned long long i = (unsigned long long)(unsigned)h << 32 | (unsigned)l;
    double d;
    memcpy(&d, &i, 8);
    return d;
}
static inline long long __double_as_longlong(double d)
{
    return shim_as<long long>(d);
}
static inline float __double2float_rz(double d)
{
    float f = (float)d;
    if (fabs((double)f) > fabs(d))
        f = nextafterf(f, 0);
    return f;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline void __stcs(T *p, T v)
{
    *p = v;
}
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
static inline float __frcp_rn(float x)
{
    return 1 / x;
}
static inline float shim_h2f(unsigned short h)
{
    _Float16 x;
    memcpy(&x, &h, 2);
    return (float)x;
}
template <class F> static inline unsigned short shim_f2h(F f)
{
    _Float16 x = (_Float16)f;
    unsigned short h;
    memcpy(&h, &x, 2);
    return h;
}
struct shim_lane {
    char at[16];
};
template <class T> static inline const T *shim_warp(T v)
{
    static shim_lane all[32];
    static T out[32];
    shim_lane mine;
    memset(&mine, 0, sizeof mine);
    memcpy(&mine, &v, sizeof v);
    shim_now->warp(&mine, sizeof mine, all);
    for (int i = 0; i < 32; i++)
        memcpy(&out[i], &all[i], sizeof(T));
    return out;
}
template <class T> static inline T __shfl_sync(unsigned, T v, int from, int w = 32)
{
    const unsigned l = shim_now->lane;
    return shim_warp(v)[(l & ~(w - 1)) + (from & (w - 1))];
}
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned d, int w = 32)
{
    const unsigned l = shim_now->lane;
    const T *a = shim_warp(v);
    return (l & (w - 1)) + d < (unsigned)w ? a[l + d] : v;
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned d, int w = 32)
{
    const unsigned l = shim_now->lane;
    const T *a = shim_warp(v);
    return (l & (w - 1)) >= d ? a[l - d] : v;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int d, int w = 32)
{
    const unsigned l = shim_now->lane;
    return shim_warp(v)[l ^ d];
}
static inline unsigned __ballot_sync(unsigned, int p)
{
    const int *a = shim_warp((int)(p != 0));
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= a[i] ? 1u << i : 0;
    return r;
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    const unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        r |= (unsigned)(both >> (which >> 4 * i & 7) * 8 & 255) << 8 * i;
    }
    return r;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __syncthreads_or(int p)
{
    static int of_block[8]; /* that run together, along y */
    int &any = of_block[blockIdx.y % 8];
    any |= p != 0;
    __syncthreads();
    const int all = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return all;
}
static inline int __any_sync(unsigned m, int p)
{
    return __ballot_sync(m, p) != 0;
}
template <class T> static inline T atomicAdd(T *p, T v)
{
    T o = *p;
    *p = o + v;
    return o;
}
template <class T, class V> static inline T atomicOr(T *p, V v)
{
    T o = *p;
    *p = o | v;
    return o;
}
template <class T> static inline T atomicCAS(T *p, T c, T v)
{
    T o = *p;
    if (o == c)
        *p = v;
    return o;
}
template <class T> static inline T atomicMin(T *p, T v)
{
    T o = *p;
    if (v < o)
        *p = v;
    return o;
}
template <class T> static inline T atomicMax(T *p, T v)
{
    T o = *p;
    if (v > o)
        *p = v;
    return o;
}
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
static inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y)
{
    return { x, y };
}
template <class T> static inline T __ldcv(const T *p)
{
    return *p;
}
template <class T> static inline void __stcg(T *p, T v)
{
    *p = v;
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __reduce_max_sync(unsigned, unsigned v)
{
    const unsigned *a = shim_warp(v);
    for (int i = 0; i < 32; i++)
        v = a[i] > v ? a[i] : v;
    return v;
}
static inline unsigned __reduce_or_sync(unsigned, unsigned v)
{
    const unsigned *a = shim_warp(v);
    for (int i = 0; i < 32; i++)
        v |= a[i];
    return v;
}
static inline unsigned __vadd2(unsigned a, unsigned b)
{
    return (a & 0xffff0000) + (b & 0xffff0000) | (a + b & 0xffff);
}
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return { x, y };
}
static inline int2 make_int2(int x, int y)
{
    return { x, y };
}
static inline void __nanosleep(unsigned)
{
}
static inline void __threadfence()
{
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b)
{
    return a < b ? a : b;
}
template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b)
{
    return a > b ? a : b;
}
#define __fmaf_rn fmaf
#define __fadd_rn(a, b) ((a) + (b))
#define __fmul_rn(a, b) ((a) * (b))
#define __fdividef(a, b) ((a) / (b))
#define __expf expf

/* ---- tensor cores: a warp's matrices, whose elements lie among its lanes as the PTX manual says ---- */

struct shim_u4 {
    unsigned u[4];
};
static inline float shim_half(const unsigned *pair, int i)
{
    return shim_h2f((unsigned short)(pair[0] >> 16 * i));
}
static inline float shim_bfloat(const unsigned *pair, int i)
{
    return __uint_as_float(pair[0] >> 16 * i << 16);
}
/* To nearest, halves away from zero; NaN stays. */
static inline unsigned shim_tf32(float f)
{
    return f != f ? 0x7fffe000 : (__float_as_uint(f) + 0x1000) & 0xffffe000;
}
/* d (16 x 8) += a (16 x 16) b (16 x 8) */
template <float part(const unsigned *pair, int i)>
static inline void shim_mma(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    shim_u4 all[32], right[32];
    memcpy(all, shim_warp(shim_u4{ { a[0], a[1], a[2], a[3] } }), sizeof all);
    memcpy(right, shim_warp(shim_u4{ { b0, b1, 0, 0 } }), sizeof right);
    const int lane = (int)shim_now->lane;
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 16; k++) {
            const int in = k % 8 / 2, half = k / 8;
            d[e] += part(&all[row % 8 * 4 + in].u[row / 8 + 2 * half], k % 2) *
                    part(&right[col * 4 + in].u[half], k % 2);
        }
    }
}
/* d (16 x 8) += a (16 x 8) b (8 x 8), floats of 10 bits, as they are handed over */
static inline void shim_mma_floats(float *d, const unsigned *a, const unsigned *b)
{
    shim_u4 all[32], right[32];
    memcpy(all, shim_warp(shim_u4{ { a[0], a[1], a[2], a[3] } }), sizeof all);
    memcpy(right, shim_warp(shim_u4{ { b[0], b[1], 0, 0 } }), sizeof right);
    const int lane = (int)shim_now->lane;
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 8; k++) {
            d[e] += __uint_as_float(all[row % 8 * 4 + k % 4].u[row / 8 + 2 * (k / 4)] & 0xffffe000) *
                    __uint_as_float(right[col * 4 + k % 4].u[k / 4] & 0xffffe000);
        }
    }
}
static inline void shim_ldmatrix(unsigned *r, const unsigned short *row, bool turned)
{
    const unsigned short *rows[32];
    memcpy(rows, shim_warp(row), sizeof rows);
    const int lane = (int)shim_now->lane;
    for (int i = 0; i < 4; i++) {
        const unsigned short *const *m = rows + 8 * i;
        r[i] = turned ? m[lane % 4 * 2][lane / 4] | (unsigned)m[lane % 4 * 2 + 1][lane / 4] << 16
                      : m[lane / 4][lane % 4 * 2] | (unsigned)m[lane / 4][lane % 4 * 2 + 1] << 16;
    }
}

/* ---- Hopper: addresses in shared memory, barriers, products of tiles in shared memory ---- */

static char shim_static;        /* variables in shared memory are static: they are near this one */
enum : unsigned { SHIM_STATIC = 0xc0000000 };
static inline unsigned __cvta_generic_to_shared(const void *p)
{
    const long long in = (const char *)p - (const char *)shim_now->dynamic;
    return in >= 0 && in < 1 << 18 ? (unsigned)in : SHIM_STATIC + (int)((const char *)p - &shim_static);
}
static inline char *shim_shared(unsigned at)
{
    return at < SHIM_STATIC / 2 ? (char *)shim_now->dynamic + at : &shim_static + (int)(at - SHIM_STATIC);
}
static inline void shim_copy(unsigned to, const void *from, unsigned n, bool valid)
{
    valid ? memcpy(shim_shared(to), from, n) : memset(shim_shared(to), 0, n);
}
struct shim_barrier { /* an mbarrier */
    unsigned short all, missing;
    int bytes : 31;
    unsigned phase : 1;
};
static inline shim_barrier *shim_barrier_at(unsigned at)
{
    return (shim_barrier *)shim_shared(at);
}
static inline void shim_barrier_change(unsigned at, int arrived, int bytes)
{
    shim_barrier *b = shim_barrier_at(at);
    b->missing -= arrived;
    b->bytes += bytes;
    if (b->missing == 0 && b->bytes == 0) {
        b->missing = b->all;
        b->phase ^= 1;
        shim_now->pause(true);
    }
}
static inline void shim_barrier_wait(unsigned at, unsigned phase)
{
    while (shim_barrier_at(at)->phase == phase)
        shim_now->pause(false);
}
/* Barrier `id` of the block, for n of its threads. */
static inline void shim_bar(int id, int n)
{
    static int arrived[8 * 16];
    static unsigned gen[8 * 16];
    id += 16 * (shim_now->bid.y % 8); /* the blocks of a cluster run together */
    const unsigned g = gen[id];
    if (++arrived[id] == n) {
        arrived[id] = 0;
        gen[id]++;
        shim_now->pause(true);
    }
    while (gen[id] == g)
        shim_now->pause(false);
}
/* A box of an array, with zeros outside of it, and the bytes that a barrier waits for. */
template <int N>
static inline void shim_copy_box(unsigned to, const void *map, const int (&at)[N], unsigned barrier)
{
    const fake_map &m = *(const fake_map *)map;
    int all = 1;
    for (int i = 0; i < N; i++)
        all *= m.box[i];
    for (int i = 0; i < all; i++) {
        int rest = i;
        bool inside = true;
        const char *from = m.array;
        for (int j = 0; j < N; j++) {
            const int u = at[j] + rest % m.box[j] * m.step[j];
            inside = inside && u >= 0 && u < (int)m.size[j];
            from += u * (long long)(j ? m.stride[j - 1] : m.element);
            rest /= m.box[j];
        }
        unsigned in = to + i / m.box[0] * m.row + i % m.box[0] * m.element;
        in ^= (in >> 7 & (m.row / 16 - 1)) << 4;
        if (!inside)
            memset(shim_shared(in), 0, m.element);
        else
            memcpy(shim_shared(in), from, m.element);
        if (inside && m.tf32) {
            const unsigned bits = shim_tf32(*(float *)from);
            memcpy(shim_shared(in), &bits, 4);
        }
    }
    shim_barrier_change(barrier, 0, -all * m.element);
}
enum shim_type { SHIM_F16, SHIM_BF16, SHIM_TF32 };
/* Element (row, k) of the tile that a descriptor names, in rows of `wide` bytes, by its swizzle.  down: k
 * runs down the columns. */
template <shim_type T> static inline float shim_tile(unsigned long long tile, int row, int k, bool down)
{
    const unsigned at = (tile & 0x3fff) << 4, block = (tile >> 16 & 0x3fff) << 4,
                   eight = (tile >> 32 & 0x3fff) << 4, wide = 256 >> (tile >> 62);
    const unsigned in = at + (down ? row / (wide / 2) * block + k / 8 * eight + k % 8 * wide +
                                         row % (wide / 2) * 2
                                   : row / 8 * eight + row % 8 * wide + k * (T == SHIM_TF32 ? 4 : 2));
    const void *p = shim_shared(in ^ (in >> 7 & (wide / 16 - 1)) << 4);
    const unsigned bits = T == SHIM_TF32 ? *(unsigned *)p : (unsigned)*(unsigned short *)p << 16;
    float f;
    memcpy(&f, &bits, 4);
    return T == SHIM_F16 ? shim_h2f(*(unsigned short *)p) : f;
}
/* d (64 x N) = (keep) d + a (64 x K) b (N x K)' */
template <shim_type T, int R>
static inline void shim_wgmma(float (&d)[R], unsigned long long a, unsigned long long b, int keep,
                              bool a_down, bool b_down)
{
    enum { K = T == SHIM_TF32 ? 8 : 16 };
    const int lane = (int)shim_now->lane, first = (int)(threadIdx.x & 127) / 32 * 16 + lane / 4;
    float left[2][K];
    for (int k = 0; k < K; k++) {
        left[0][k] = shim_tile<T>(a, first, k, a_down);
        left[1][k] = shim_tile<T>(a, first + 8, k, a_down);
    }
    for (int i = 0; i < R; i += 4) {
        for (int j = 0; j < 2; j++) {
            float v[2] = { keep ? d[i + j] : 0, keep ? d[i + 2 + j] : 0 };
            for (int k = 0; k < K; k++) {
                const float right = shim_tile<T>(b, i / 4 * 8 + lane % 4 * 2 + j, k, b_down);
                v[0] += left[0][k] * right;
                v[1] += left[1][k] * right;
            }
            d[i + j] = v[0];
            d[i + 2 + j] = v[1];
        }
    }
}
