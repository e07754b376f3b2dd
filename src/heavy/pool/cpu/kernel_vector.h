/* kernel_vector.h: what kernel_body.h needs, in the compiler's own vectors. The including file defines T, its
 * integer IT, L, and the indices of EVEN and BOTH. NAME(v) and NAME(i) become the vector types.
 *
 * Invariant: no instruction beyond what TARGET allows. */
typedef T NAME(v) __attribute__((vector_size(L * sizeof(T))));
typedef IT NAME(i) __attribute__((vector_size(L * sizeof(T))));
typedef uint8_t NAME(u8) __attribute__((vector_size(L)));
typedef int32_t NAME(i32) __attribute__((vector_size(L * 4)));
#define V NAME(v)
#define I NAME(i)
#define M NAME(i)
#define INLINE static inline TARGET __attribute__((always_inline, unused))

INLINE V NAME(load)(const T *p)
{
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void NAME(store)(T *p, V v)
{
    memcpy(p, &v, sizeof v);
}

INLINE V NAME(set1)(T x)
{
    return x - (V){ 0 };
}

INLINE I NAME(seti)(int32_t x)
{
    return (IT)x - (I){ 0 };
}

INLINE M NAME(beats)(V v, V m)
{
    return ~(v <= m) & (m == m);
}

INLINE V NAME(pick)(M k, V a, V b)
{
    return (V)((k & (I)a) | (~k & (I)b));
}

INLINE I NAME(picki)(M k, I a, I b)
{
    return (k & a) | (~k & b);
}

INLINE void NAME(store8)(uint8_t *p, I v)
{
    const NAME(u8) k = __builtin_convertvector(v, NAME(u8));
    memcpy(p, &k, sizeof k);
}

INLINE I NAME(load8)(const uint8_t *p)
{
    NAME(u8) k;
    memcpy(&k, p, sizeof k);
    return __builtin_convertvector(k, I);
}

INLINE void NAME(store32)(int32_t *p, I v)
{
    const NAME(i32) k = __builtin_convertvector(v, NAME(i32));
    memcpy(p, &k, sizeof k);
}

INLINE I NAME(load32)(const int32_t *p)
{
    NAME(i32) k;
    memcpy(&k, p, sizeof k);
    return __builtin_convertvector(k, I);
}

INLINE V NAME(even)(const T *p)
{
    return __builtin_shufflevector(NAME(load)(p), NAME(load)(p + L - 1), EVENS);
}

INLINE void NAME(both)(T *p, V a, V b)
{
    NAME(store)(p, __builtin_shufflevector(a, b, LOWER));
    NAME(store)(p + L, __builtin_shufflevector(a, b, UPPER));
}

#define LOAD NAME(load)
#define STORE NAME(store)
#define SET1 NAME(set1)
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define BEATS NAME(beats)
#define EQUAL(v, m) ((v) == (m))
#define PICK NAME(pick)
#define PICKI NAME(picki)
#define SETI NAME(seti)
#define STORE8 NAME(store8)
#define STORE32 NAME(store32)
#define LOAD8 NAME(load8)
#define LOAD32 NAME(load32)
#define IS(i, j) ((i) == (j))
#define EVEN NAME(even)
#define BOTH NAME(both)
#include "heavy/pool/cpu/kernel_body.h"
#undef INLINE
#undef IT
#undef EVENS
#undef LOWER
#undef UPPER
