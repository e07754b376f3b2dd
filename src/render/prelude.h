/* prelude.h: text before every kernel, in C and CUDA C. */
#ifndef MC_PRELUDE_H
#define MC_PRELUDE_H

#define PRELUDE_TYPES                                                                                                   \
    "typedef unsigned char u8; typedef signed char i8; typedef short i16; typedef unsigned short u16;\n"                \
    "typedef unsigned int u32; typedef long long i64; typedef unsigned long long u64; typedef int i32;\n"

/* The dialect defines INLINE.  The random numbers have the bits of those of src/op/random.c. */
#define PRELUDE_CODE                                                                                                    \
    "INLINE i64 ipow_(i64 a, i64 b) { u64 r = 1, x = (u64)a; if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n" \
    "  for (; b; b >>= 1, x *= x) if (b & 1) r *= x; return (i64)r; }\n"                                                \
    "INLINE u64 mc_random_mix(u64 seed, u64 stream) { u64 z = seed + (stream + 1) * 0x9e3779b97f4a7c15ull;\n"           \
    "  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull; z = (z ^ z >> 27) * 0x94d049bb133111ebull; return z ^ z >> 31; }\n"   \
    "INLINE u64 mc_random_word(u64 i, u64 key, u64 step, int pair) { const u64 n = pair ? i >> 1 : i >> 2;\n"           \
    "  u32 k0 = (u32)key, k1 = (u32)(key >> 32), c0 = (u32)n, c1 = (u32)(n >> 32), c2 = (u32)step, c3 = (u32)(step >> 32);\n" \
    "  for (int r = 0; r < 10; r++) { const u64 a = 0xd2511f53ull * c0, b = 0xcd9e8d57ull * c2;\n"                      \
    "    c0 = (u32)(b >> 32) ^ c1 ^ k0; c1 = (u32)b; c2 = (u32)(a >> 32) ^ c3 ^ k1; c3 = (u32)a; k0 += 0x9e3779b9u; k1 += 0xbb67ae85u; }\n" \
    "  return pair ? i & 1 ? (u64)c3 << 32 | c2 : (u64)c1 << 32 | c0 : i & 2 ? i & 1 ? c3 : c2 : i & 1 ? c1 : c0; }\n"   \
    /* v rounded to odd: truncated, and the last bit set if inexact.  Rounding that to a half rounds v once. */         \
    "INLINE float odd_(double v) { union { float f; u32 u; } r; r.f = (float)v; const double b = (double)r.f;\n"         \
    "  const u32 beyond = v > 0 ? b > v : b < v; r.u = ((b < v) | (b > v)) ? (r.u - beyond) | 1u : r.u; return r.f; }\n"        \
    "INLINE u64 upow_(u64 a, u64 b) { u64 r = 1; for (; b; b >>= 1, a *= a) if (b & 1) r *= a; return r; }\n"           \
    "#define ipow(a, b) ((T)-1 < (T)1 ? (T)ipow_((i64)(a), (i64)(b)) : (T)upow_((u64)(a), (u64)(b)))\n"                \
    /* the integer nearest to a float, 0 for NaN */                                                                    \
    "#define WITHIN(x, I, low, high, below, above) ((x) >= above ? high : (x) <= below ? low : (x) == (x) ? (I)(x) : 0)\n" \
    "#define to_i8(x) WITHIN(x, i32, -128, 127, -128.f, 128.f)\n#define to_u8(x) WITHIN(x, i32, 0, 255, 0.f, 256.f)\n" \
    "#define to_i16(x) WITHIN(x, i32, -32768, 32767, -32768.f, 32768.f)\n#define to_u16(x) WITHIN(x, i32, 0, 65535, 0.f, 65536.f)\n" \
    "#define to_i32(x) WITHIN(x, i32, (-2147483647 - 1), 2147483647, -2147483648.f, 2147483648.f)\n"                   \
    "#define to_u32(x) WITHIN(x, u32, 0u, 0xffffffffu, 0.f, 4294967296.f)\n"                                           \
    "#define to_i64(x) WITHIN(x, i64, (-0x7fffffffffffffffll - 1), 0x7fffffffffffffffll, -9223372036854775808.f, 9223372036854775808.f)\n" \
    "#define to_u64(x) WITHIN(x, u64, 0ull, 0xffffffffffffffffull, 0.f, 18446744073709551616.f)\n"                     \
    "#define CLIP(a, b, c) ((a) < (b) ? (b) : (a) > (c) ? (c) : (a))\n" \
    "#define SEL(c, a, b) ((c) ? (a) : (b))\n#define NOT(c) (IS_BOOL ? !(c) : ~(c))\n#define C(x) ((T)(x))\n"           \
    "#define LT(a, b) ((a) < (b))\n#define LE(a, b) ((a) <= (b))\n#define GT(a, b) ((a) > (b))\n"                       \
    "#ifndef TURN\n#define TURN(f, a) f(C(6.283185307179586477) * (a))\n#endif\n"                                         \
    "#ifndef RAYLEIGH\n#define RAYLEIGH(f, g, a) f(C(-2) * g(C(1) - (a)))\n#endif\n"                             \
    "#define GE(a, b) ((a) >= (b))\n#define EQ(a, b) ((a) == (b))\n#define NE(a, b) ((a) != (b))\n"

extern const char mc_prelude_code[]; /* printed after the dialect's own prelude */

#endif
