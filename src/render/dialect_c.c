/* dialect_c.c: kernels as C for the system's compiler.  No headers: they would take longer to compile than
 * all the rest. */
#include "render/kernel.h"
#include "render/prelude.h"

#define EACH(b, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64)                                   \
    { [MC_BOOL] = b, [MC_INT8] = i8, [MC_INT16] = i16, [MC_INT32] = i32, [MC_INT64] = i64,                   \
      [MC_UINT8] = u8, [MC_UINT16] = u16, [MC_UINT32] = u32, [MC_UINT64] = u64,                              \
      [MC_FLOAT16] = f16, [MC_BFLOAT16] = bf16, [MC_FLOAT32] = f32, [MC_FLOAT64] = f64 }

#define HALVES                                                                                               \
    "#define MINUS(x) (0 - (x))\n"                                                                           \
    "INLINE float bf2f(u16 h) { union { u32 u; float f; } v; v.u = (u32)h << 16; return v.f; }\n"            \
    "INLINE u16 f2bf(float x) { union { u32 u; float f; } v; v.f = x;\n"                                     \
    "  u32 r = (v.u + 0x7fffu + (v.u >> 16 & 1)) >> 16; return (u16)(x != x ? (v.u >> 16 | 0x40) : r); }\n"  \
    "INLINE float h2f(u16 h) { union { u32 u; float f; } v, m; u32 e = (u32)h & 0x7fffu;\n"                  \
    "  v.u = (e << 13) + 0x38000000u; m.u = (e << 13) + 0x38800000u; m.f -= 6.103515625e-05f;\n"             \
    "  v.u = e >= 0x7c00u ? v.u + 0x38000000u : e < 0x400u ? m.u : v.u; v.u |= ((u32)h & 0x8000u) << 16; "   \
    "return v.f; }\n"                                                                                        \
    "INLINE u16 f2h(float x) { union { u32 u; float f; } v, d; v.f = x; u32 s = v.u >> 16 & 0x8000u; v.u &= " \
    "0x7fffffffu;\n"                                                                                         \
    "  u32 big = v.u > 0x7f800000u ? 0x7e00u : 0x7c00u; d.u = v.u; d.f += 0.5f; u32 sub = d.u - "            \
    "0x3f000000u;\n"                                                                                         \
    "  u32 n = (v.u + 0xc8000fffu + (v.u >> 13 & 1)) >> 13;\n"                                               \
    "  return (u16)(s | (v.u >= 0x47800000u ? big : v.u < 0x38800000u ? sub : n)); }\n"
static const char prelude[] = PRELUDE_TYPES
    "#define inline __inline__ __attribute__((always_inline))\n#define INLINE static inline\n" HALVES;
static const char standard[] = PRELUDE_TYPES
    "#ifdef __GNUC__\n#define INLINE static __inline__ __attribute__((always_inline))\n#else\n"
    "#define INLINE static inline\n#endif\n"
    "#if defined(__GNUC__) && !defined(__clang__)\n#define INDEPENDENT _Pragma(\"GCC ivdep\")\n"
    /* not unrolled before the compiler looks for vectors */
    "#define SIXTEEN_LANES _Pragma(\"GCC unroll 1\")\n#else\n"
    "#define INDEPENDENT\n#define SIXTEEN_LANES\n#endif\n" HALVES;
const char mc_prelude_code[] = PRELUDE_CODE;

#define EXACT                                                                                                \
    "#define EXACT_KERNELS\n#ifdef __clang__\n#pragma clang fp contract(off)\n#else\n"                       \
    "#pragma GCC optimize(\"fp-contract=off\")\n#endif\n"
#define FIELDS \
    .head = "void %s(char *const *p, const i64 *s, const i64 *n, i64 *err)\n{\n", \
    .reduce_fn = "void %s_join(char *const *p, const i64 *s, const i64 *n, i64 *err)\n{\n", \
    .store = EACH("u8", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "u16", "u16", \
                   "float", "double"), \
    .calc = EACH("i32", "i32", "i32", "i32", "i64", "i32", "i32", "u32", "u64", "float", "float", \
                  "float", "double"), \
    .suffix = EACH("b", "i", "i", "i", "l", "i", "i", "u", "ul", "f", "f", "f", "d"), \
    .load_as = EACH("", "", "", "", "", "", "", "", "", "h2f", "bf2f", "", ""), \
    .store_as = EACH("", "", "", "", "", "", "", "", "", "f2h", "f2bf", "", "")

const struct mc_dialect mc_dialect_c = {
    .name = "c",
    .vectors = true,
    .prelude = prelude,
    .builtins = "#define CALLED static __attribute__((noinline))\n",
    .exact = EXACT,
    FIELDS,
    .loop = "_Pragma(\"GCC ivdep\")\n",
    .reduce_loop = "_Pragma(\"omp simd %s\")\n",
};
/* Compiled with any flags: gcc is told that integers wrap and that memory holds several types in turn. */
static const char exact_standard[] =
    "#if defined(__clang__)\n#pragma clang fp contract(off)\n#elif defined(__GNUC__)\n"
    "#pragma GCC optimize(\"fp-contract=off\", \"wrapv\", \"no-strict-aliasing\")\n#else\n"
    "#pragma STDC FP_CONTRACT OFF\n#endif\n";
/* without warnings of any compiler, as C99 and as C++11 */
const struct mc_dialect mc_dialect_standard_c = {
    .name = "c",
    .vectors = true,
    .standard = true,
    .prelude = standard,
    .builtins = "#ifdef __GNUC__\n#define CALLED static __attribute__((noinline))\n#else\n"
                "#define CALLED static\n#endif\n",
    .exact = exact_standard,
    FIELDS,
    .loop = "INDEPENDENT\n",
    .reduce_loop = "SIXTEEN_LANES\n",
};
