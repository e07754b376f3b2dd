/* convert.c: converts elements of one dtype to another.
 *
 * `get` and `put` define every conversion.  `pair` is one loop over them; both dtypes are constants once the
 * two switches around it are inlined, so each pair becomes a plain loop that vectorises.
 *
 * Invariant: every conversion is defined for every value: a float beyond the range of an integer dtype
 * becomes the nearest end of the range, NaN becomes 0, integers wrap, and halves are rounded once. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(MC_RUNTIME)
#pragma GCC optimize("O3") /* the loops here are worth vectorising at every -O level */
#endif
#include "value/value.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

enum { CHUNK = 512 }; /* elements that a strided conversion gathers at a time */

/* ---- half precision, rounding to nearest even; branchless, so that loops vectorise ---- */

union bits32 {
    uint32_t u;
    float f;
};

/* Adding 0.5 shifts the last bit of the float to 2^-24, that of subnormal halves, so the addition rounds. */
INLINE uint16_t to_f16(float x)
{
    union bits32 v = { .f = x };
    uint32_t sign = v.u >> 16 & 0x8000u, u = v.u & 0x7fffffffu;
    union bits32 a = { .u = u }, small = { .f = a.f + 0.5f };
    uint32_t normal = ((u + 0xfff + (u >> 13 & 1)) >> 13) - (112u << 10);
    uint32_t h = u < 0x38800000u ? small.u - 0x3f000000u : normal; /* below 2^-14 */
    h = u >= 0x477ff000u ? 0x7c00u : h;                            /* 65520 and up: infinity */
    h = u > 0x7f800000u ? 0x7e00u | (u >> 13 & 0x3ffu) : h;        /* NaN stays NaN */
    return (uint16_t)(sign | h);
}

INLINE float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, u = (uint32_t)(h & 0x7fffu);
    union bits32 small = { .u = (u & 0x3ffu) | 0x3f000000u };
    small.f -= 0.5f;
    uint32_t normal = (u << 13) + (112u << 23);
    uint32_t special = u << 13 | 0x7f800000u;
    union bits32 r = { .u = u < 0x400u ? small.u : u >= 0x7c00u ? special : normal };
    r.u |= sign;
    return r.f;
}

INLINE uint16_t to_bf16(float x)
{
    union bits32 v = { .f = x };
    uint32_t rounded = (v.u + 0x7fff + (v.u >> 16 & 1)) >> 16;
    return (uint16_t)((v.u & 0x7fffffffu) > 0x7f800000u ? v.u >> 16 | 0x40u : rounded);
}

uint16_t mc_f32_to_f16(float x)
{
    return to_f16(x);
}

float mc_f16_to_f32(uint16_t h)
{
    return from_f16(h);
}

uint16_t mc_f32_to_bf16(float x)
{
    return to_bf16(x);
}

/* v rounded to odd: truncated towards zero, with the last bit set if v is inexact.  Rounding the result to a
 * half then gives the same as rounding v directly. */
INLINE float to_odd(double v)
{
    union bits32 r = { .f = (float)v };
    double back = (double)r.f;
    bool inexact = back < v || back > v;
    bool beyond = v > 0 ? back > v : back < v;
    r.u = inexact ? (r.u - beyond) | 1u : r.u;
    return r.f;
}

/* ---- floats to integers: the nearest integer in range, 0 for NaN ---- */

#define WITHIN(v, I, low, high, below, above) \
    ((v) >= (above) ? (high) : (v) <= (below) ? (low) : (v) == (v) ? (I)(v) : 0)

/* low and high fit into 32 bits. */
INLINE int32_t f32_to_i32(float v, int32_t low, int32_t high)
{
    return WITHIN(v, int32_t, low, high, (float)low, (float)((double)high + 1));
}

INLINE int32_t f64_to_i32(double v, int32_t low, int32_t high)
{
    return WITHIN(v, int32_t, low, high, (double)low, (double)high + 1);
}

INLINE int64_t f64_to_i64(double v)
{
    return WITHIN(v, int64_t, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63);
}

INLINE uint32_t f64_to_u32(double v)
{
    return (uint32_t)WITHIN(v, int64_t, 0, (int64_t)UINT32_MAX, 0., 0x1p32);
}

INLINE uint64_t f64_to_u64(double v)
{
    return WITHIN(v, uint64_t, 0, UINT64_MAX, 0., 0x1p64);
}

/* ---- one element ---- */

struct num { /* a value, in the field of its class */
    enum mc_class cls;
    int64_t i;
    uint64_t u;
    float f;
    double d;
};

#define FROM_FLOAT16(x) from_f16(x)
#define FROM_BFLOAT16(x) mc_bf16_to_f32(x)
#define FROM_FLOAT32(x) (x)
#define GET_I64(id, kind) v.i = KIND_##kind == KIND_BOOL ? x != 0 : (int64_t)x
#define GET_U64(id, kind) v.u = x
#define GET_F32(id, kind) v.f = FROM_##id(x)
#define GET_F64(id, kind) v.d = x

INLINE struct num get(mc_dtype d, const void *p)
{
    struct num v = { 0 };
    switch (d) {
#define DTYPE(id, name, storage, kind, class, npy, tensors, c, eps, dl)                                      \
    case MC_##id: {                                                                                          \
        storage x;                                                                                           \
        memcpy(&x, p, sizeof x);                                                                             \
        v.cls = CLASS_##class;                                                                               \
        GET_##class(id, kind);                                                                               \
        break;                                                                                               \
    }
#include "value/dtypes.def"
#undef DTYPE
    case MC_NDTYPE: break;
    }
    return v;
}

INLINE double as_f64(struct num v)
{
    switch (v.cls) {
    case CLASS_I64: return (double)v.i;
    case CLASS_U64: return (double)v.u;
    case CLASS_F32: return (double)v.f;
    default: return v.d;
    }
}

INLINE float as_f32(struct num v)
{
    switch (v.cls) {
    case CLASS_I64: return (float)v.i;
    case CLASS_U64: return (float)v.u;
    case CLASS_F32: return v.f;
    default: return (float)v.d;
    }
}

INLINE float for_half(struct num v)
{
    return v.cls == CLASS_F32 ? v.f : to_odd(as_f64(v));
}

/* The low 32 bits of an integer; a float is limited to low..high. */
INLINE int32_t as_i32(struct num v, int32_t low, int32_t high)
{
    switch (v.cls) {
    case CLASS_I64: return (int32_t)v.i;
    case CLASS_U64: return (int32_t)v.u;
    case CLASS_F32: return f32_to_i32(v.f, low, high);
    default: return f64_to_i32(v.d, low, high);
    }
}

INLINE uint32_t as_u32(struct num v)
{
    switch (v.cls) {
    case CLASS_I64: return (uint32_t)v.i;
    case CLASS_U64: return (uint32_t)v.u;
    default: return f64_to_u32(as_f64(v));
    }
}

INLINE int64_t as_i64(struct num v)
{
    switch (v.cls) {
    case CLASS_I64: return v.i;
    case CLASS_U64: return (int64_t)v.u;
    default: return f64_to_i64(as_f64(v));
    }
}

INLINE uint64_t as_u64(struct num v)
{
    switch (v.cls) {
    case CLASS_I64: return (uint64_t)v.i;
    case CLASS_U64: return v.u;
    default: return f64_to_u64(as_f64(v));
    }
}

INLINE bool as_bool(struct num v)
{
    switch (v.cls) {
    case CLASS_I64: return v.i != 0;
    case CLASS_U64: return v.u != 0;
    case CLASS_F32: return v.f != 0;
    default: return v.d != 0;
    }
}

#define PUT_BOOL(v) as_bool(v)
#define PUT_INT8(v) (int8_t)as_i32(v, INT8_MIN, INT8_MAX)
#define PUT_INT16(v) (int16_t)as_i32(v, INT16_MIN, INT16_MAX)
#define PUT_INT32(v) as_i32(v, INT32_MIN, INT32_MAX)
#define PUT_INT64(v) as_i64(v)
#define PUT_UINT8(v) (uint8_t)as_i32(v, 0, UINT8_MAX)
#define PUT_UINT16(v) (uint16_t)as_i32(v, 0, UINT16_MAX)
#define PUT_UINT32(v) as_u32(v)
#define PUT_UINT64(v) as_u64(v)
#define PUT_FLOAT16(v) to_f16(for_half(v))
#define PUT_BFLOAT16(v) to_bf16(for_half(v))
#define PUT_FLOAT32(v) as_f32(v)
#define PUT_FLOAT64(v) as_f64(v)

INLINE void put(mc_dtype d, void *p, struct num v)
{
    switch (d) {
#define DTYPE(id, name, storage, kind, class, npy, tensors, c, eps, dl)                                      \
    case MC_##id: {                                                                                          \
        storage x = PUT_##id(v);                                                                             \
        memcpy(p, &x, sizeof x);                                                                             \
        break;                                                                                               \
    }
#include "value/dtypes.def"
#undef DTYPE
    case MC_NDTYPE: break;
    }
}

INLINE int64_t size_of(mc_dtype d)
{
    switch (d) {
#define DTYPE(id, name, storage, kind, class, npy, tensors, c, eps, dl)                                      \
    case MC_##id:                                                                                            \
        return (int64_t)sizeof(storage);
#include "value/dtypes.def"
#undef DTYPE
    default: return 0;
    }
}

/* ---- contiguous runs ---- */

INLINE void pair(mc_dtype dd, char *restrict dst, mc_dtype sd, const char *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        put(dd, dst + i * size_of(dd), get(sd, src + i * size_of(sd)));
    }
}

/* The library has a loop for each pair of dtypes.  libmonochord-run, which is small, has loops from the
 * widest dtype of each class, and from each dtype to the widest of its class, which changes no value. */
#ifdef MC_RUNTIME
#define FROM(id, class) (MC_##id == WIDEST_##class)
#else
#define FROM(id, class) true
#endif
#define WIDEST_I64 MC_INT64
#define WIDEST_U64 MC_UINT64
#define WIDEST_F32 MC_FLOAT32
#define WIDEST_F64 MC_FLOAT64

INLINE void from(mc_dtype dd, char *dst, mc_dtype sd, const char *src, int64_t n)
{
    switch (sd) {
#define DTYPE(id, name, storage, kind, class, npy, tensors, c, eps, dl)                                      \
    case MC_##id:                                                                                            \
        if (FROM(id, class)) {                                                                               \
            pair(dd, dst, MC_##id, src, n);                                                                  \
        }                                                                                                    \
        break;
#include "value/dtypes.def"
#undef DTYPE
    case MC_NDTYPE: break;
    }
}

static void run_from(mc_dtype dd, char *dst, mc_dtype sd, const char *src, int64_t n)
{
    switch (dd) {
#define DTYPE(id, name, storage, kind, class, npy, tensors, c, eps, dl)                                      \
    case MC_##id:                                                                                            \
        from(MC_##id, dst, sd, src, n);                                                                      \
        break;
#include "value/dtypes.def"
#undef DTYPE
    case MC_NDTYPE: break;
    }
}

#ifdef MC_RUNTIME
/* Converts to the widest dtype of the class and returns that dtype. */
static mc_dtype widen(char *dst, mc_dtype sd, const char *src, int64_t n)
{
    switch (sd) {
#define DTYPE(id, name, storage, kind, class, npy, tensors, c, eps, dl)                                      \
    case MC_##id:                                                                                            \
        pair(WIDEST_##class, dst, MC_##id, src, n);                                                          \
        return WIDEST_##class;
#include "value/dtypes.def"
#undef DTYPE
    default: return sd;
    }
}

static void run(mc_dtype dd, char *dst, mc_dtype sd, const char *src, int64_t n)
{
    _Alignas(64) char wide[CHUNK * 8];
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = MC_MIN(n - i, (int64_t)CHUNK);
        const mc_dtype class = widen(wide, sd, src + i * size_of(sd), m);
        char *const to = dst + i * size_of(dd);
        if (class == dd) {
            memcpy(to, wide, (size_t)(m * size_of(dd)));
        } else {
            run_from(dd, to, class, wide, m);
        }
    }
}
#else
#define run run_from
#endif

/* ---- strided runs ---- */

INLINE void move_size(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(dst + i * ds, src + i * ss, size);
    }
}

static void move(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n, int64_t size)
{
    switch (size) {
    case 1: move_size(dst, ds, src, ss, n, 1); break;
    case 2: move_size(dst, ds, src, ss, n, 2); break;
    case 4: move_size(dst, ds, src, ss, n, 4); break;
    default: move_size(dst, ds, src, ss, n, 8); break;
    }
}

void mc_convert(mc_dtype dd, void *dst, int64_t dstride, mc_dtype sd, const void *src, int64_t sstride,
                int64_t n)
{
    char *to = dst;
    const char *at = src;
    int64_t dsize = size_of(dd), ssize = size_of(sd);
    bool dflat = dstride == dsize || n == 1, sflat = sstride == ssize || n == 1;
    if (n <= 0) {
        return;
    }
    if (dd == sd && dd != MC_BOOL) {
        if (dflat && sflat) {
            memmove(to, at, (size_t)(n * dsize));
        } else {
            move(to, dstride, at, sstride, n, dsize);
        }
        return;
    }
    if (dflat && sflat) {
        run(dd, to, sd, at, n);
        return;
    }
    _Alignas(64) char in[CHUNK * 8], out[CHUNK * 8];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = MC_MIN(n - i, (int64_t)CHUNK);
        const char *s = at + i * sstride;
        char *d = to + i * dstride;
        if (!sflat) {
            move(in, ssize, s, sstride, m, ssize);
            s = in;
        }
        run(dd, dflat ? d : out, sd, s, m);
        if (!dflat) {
            move(d, dstride, out, dsize, m, dsize);
        }
    }
}
