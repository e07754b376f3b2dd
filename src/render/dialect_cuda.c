/* dialect_cuda.c: kernels as CUDA C for NVRTC. */
#include "render/kernel.h"
#include "render/prelude.h"

#define EACH(b, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64)                                   \
    { [MC_BOOL] = b, [MC_INT8] = i8, [MC_INT16] = i16, [MC_INT32] = i32, [MC_INT64] = i64,                   \
      [MC_UINT8] = u8, [MC_UINT16] = u16, [MC_UINT32] = u32, [MC_UINT64] = u64,                              \
      [MC_FLOAT16] = f16, [MC_BFLOAT16] = bf16, [MC_FLOAT32] = f32, [MC_FLOAT64] = f64 }

static const char prelude[] = PRELUDE_TYPES
    "#define inline __device__ __forceinline__\n#define INLINE static inline\n#define ENTRY extern \"C\" "
    "__global__ void\n"
    "#define MINUS(x) ((T)(0 - (u64)(x)))\n"
    /* first in each kernel: the next kernel may start its blocks; this one waits for the kernels before it */
    "#if __CUDA_ARCH__ >= 900\n#define BEGIN asm volatile(\"griddepcontrol.launch_dependents; "
    "griddepcontrol.wait;\" ::: \"memory\");\n#else\n#define BEGIN\n#endif\n"
    "#ifndef ELEMENTS\n#define ELEMENTS(t, n) for (u32 t = blockIdx.x * blockDim.x + threadIdx.x; t < (n); t += "
    "gridDim.x * blockDim.x)\n#endif\n"
    "#define __builtin_fmaf fmaf\n#define __builtin_fma fma\n#define __builtin_sqrtf sqrtf\n#define "
    "__builtin_sqrt sqrt\n"
    "#define __builtin_fabsf fabsf\n#define __builtin_fabs fabs\n#define __builtin_rintf rintf\n#define "
    "__builtin_rint rint\n"
    "#define __builtin_floorf floorf\n#define __builtin_floor floor\n#define __builtin_copysignf "
    "copysignf\n#define __builtin_copysign copysign\n"
    "#define __builtin_inff() __int_as_float(0x7f800000)\n#define __builtin_inf() "
    "__longlong_as_double(0x7ff0000000000000ll)\n"
    "#define __builtin_nanf(x) __int_as_float(0x7fc00000)\n#define __builtin_nan(x) "
    "__longlong_as_double(0x7ff8000000000000ll)\n"
    "INLINE float bf2f(u16 h) { return __int_as_float((int)((u32)h << 16)); }\n"
    "#if __CUDA_ARCH__ >= 800\nINLINE u16 f2bf(float x) { u16 h; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) "
    ": \"f\"(x)); return h; }\n#else\n"
    "INLINE u16 f2bf(float x) { u32 u = (u32)__float_as_int(x), r = (u + 0x7fffu + (u >> 16 & 1)) >> 16; "
    "return (u16)(x != x ? (u >> 16 | 0x40) : r); }\n#endif\n"
    "INLINE float h2f(u16 h) { float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h)); return f; }\n"
    "INLINE u16 f2h(float x) { u16 h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x)); return h; }\n"
    /* copies V elements in the fewest words; a single element may be unaligned */
    "template <class W, class T, int V> INLINE void words_(T *to, const T *from) {\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < (int)(V * sizeof(T) / sizeof(W)); i++) ((W *)to)[i] = ((const "
    "W *)from)[i]; }\n"
    "template <class T, int V> INLINE void copy_(T *to, const T *from) { const int n = V * (int)sizeof(T);\n"
    "  if (V == 1) *to = *from; else if (n % 16 == 0) words_<uint4, T, V>(to, from); else if (n % 8 == 0) "
    "words_<uint2, T, V>(to, from);\n"
    "  else if (n % 4 == 0) words_<u32, T, V>(to, from); else words_<u16, T, V>(to, from); }\n"
    "template <class T, int V> INLINE void load_(T *to, const T *from) { copy_<T, V>(to, from); }\n"
    "template <class T, int V> INLINE void store_(T *to, const T *from) { copy_<T, V>(to, from); }\n"
    /* reduces within a warp; the first lane has the result.  Z: 1 with flags, which all lanes get, 2 with
     * positions */
    "template <int Z, class T, class F> INLINE void warp_(T &c, i64 &z, F merge) {\n"
    "  _Pragma(\"unroll\") for (u32 d = 16; d; d /= 2) { const T l = __shfl_down_sync(~0u, c, d); const i64 "
    "q = Z == 2 ? __shfl_down_sync(~0u, z, d) : 0; merge(c, z, l, q); }\n"
    "  if (Z == 1) z = __any_sync(~0u, z != 0); }\n"
    /* n / d by a multiplication, for n below 2^31 */
    "INLINE u32 over_(u32 n, u32 magic, u32 shift) { return ((u32)((u64)n * magic >> 32) + n) >> shift; }\n"
    /* adds to a float64 that is passed as its bits */
    "INLINE i64 both_(i64 a, double b) { return __double_as_longlong(__longlong_as_double(a) + b); }\n"
    /* loops that run once a row are not unrolled: that would take longer to compile than to run */
    "#define ONCE _Pragma(\"unroll 1\")\n"
    /* reduces over the lanes of a point.  Adjacent lanes: by shuffles in each warp, then warps in order;
     * lanes of a column: in order */
    "template <class T, class F> INLINE void across(u32 column, u32 lanes, T &c, i64 &z, F merge) {\n"
    "  extern __shared__ i64 shared_[]; T *const cs = (T *)shared_; i64 *const zs = shared_ + blockDim.x * "
    "blockDim.y;\n"
    "  if (!column) { const u32 w = lanes < 32 ? lanes : 32;\n"
    "    ONCE for (u32 d = w / 2; d; d /= 2) { const T l = __shfl_down_sync(~0u, c, d, w); const i64 q = "
    "__shfl_down_sync(~0u, z, d, w); merge(c, z, l, q); }\n"
    "    if (lanes <= 32) { c = __shfl_sync(~0u, c, 0, w); z = __shfl_sync(~0u, z, 0, w); return; } }\n"
    "  const u32 n = column ? lanes : lanes / 32, me = column ? threadIdx.y : threadIdx.x / 32;\n"
    "  const u32 stride = column ? blockDim.x : 1, first = column ? threadIdx.x : threadIdx.y * n;\n"
    "  __syncthreads();\n"
    "  if (column || threadIdx.x % 32 == 0) { cs[first + me * stride] = c; zs[first + me * stride] = z; }\n"
    "  __syncthreads();\n"
    "  c = cs[first]; z = zs[first];\n"
    "  ONCE for (u32 i = 1; i < n; i++) merge(c, z, cs[first + i * stride], zs[first + i * stride]); }\n";

/* for special functions (src/op/special.def): their own kind, and what they call */
static const char builtins[] =
    "#define CALLED static __device__ __noinline__\n"
    "#define __builtin_exp exp\n#define __builtin_expm1 expm1\n#define __builtin_log log\n"
    "#define __builtin_log1p log1p\n#define __builtin_pow pow\n#define __builtin_sin sin\n#define __builtin_cos cos\n"
    "#define __builtin_erfc erfc\n#define __builtin_tgamma tgamma\n#define __builtin_lgamma lgamma\n"
    /* the cosine of a part of a turn, whose reduction is exact */
    "#define TURN(f, a) turn_(a)\nINLINE float turn_(float a) { return cospif(2 * a); }\n"
    "#define RAYLEIGH(f, g, a) rayleigh_(a)\n"
    "INLINE float rayleigh_(float a) { return sqrtf(-2 * logf(1 - a)); }\n"
    /* in float64 without branches, by coefficients that are operands in constant memory: the library's
     * functions take more instructions, most of them to load constants.
     * cos(2 pi a) = sin(2 pi t) = t p(t^2) for t = abs(a - 1/2) - 1/4, which is exact; within 3 ulp */
    "static __constant__ double turn_p_[] = { 0x1.9d1b8585e59b7p-4, -0x1.6f797703e284dp-1, "
    "0x1.e8f35e9d2300ap+1, -0x1.e3074ddd1cb96p+3, 0x1.50783485190b6p+5, -0x1.32d2cce627542p+6, "
    "0x1.466bc6775aa6ep+6, -0x1.4abbce625be52p+5, 0x1.921fb54442d18p+2 };\n"
    "INLINE double turn_(double a) {\n"
    "  const double t = fabs(a - 0.5) - 0.25, z = t * t; double p = turn_p_[0];\n"
    "  _Pragma(\"unroll\") for (int i = 1; i < 9; i++) p = fma(p, z, turn_p_[i]);\n"
    "  return t * p; }\n"
    /* -2 log(w) = -2 log(2) e - s (4 - z p(z)), w = 2^e m, sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1),
     * z = s^2; a quotient and a root from 20 bits by a step of order three; within 3 ulp */
    "static __constant__ double rayleigh_p_[] = { -0x1.2f05625a35532p-2, -0x1.39a1bad95e77bp-2, "
    "-0x1.74663ee6f1bd2p-2, -0x1.c71c520965641p-2, -0x1.24924941f1180p-1, -0x1.999999997fdb9p-1, "
    "-0x1.5555555555592p+0, -0x1.62e42fefa39efp+0 };\n"
    "INLINE double rayleigh_(double a) { const double w = 1 - a; const int h = __double2hiint(w), e = (h - "
    "0x3fe6a09e) >> 20;\n"
    "  const double m = __hiloint2double(h - (e << 20), __double2loint(w)), f = m - 1, d = m + 1;\n"
    "  double r, y;\n"
    "  asm(\"rcp.approx.ftz.f64 %0, %1;\" : \"=d\"(r) : \"d\"(d)); double q = fma(-d, r, 1.0); r = fma(r, "
    "fma(q, q, q), r);\n"
    "  const double s = f * r, z = s * s; double p = rayleigh_p_[0];\n"
    "  _Pragma(\"unroll\") for (int i = 1; i < 7; i++) p = fma(p, z, rayleigh_p_[i]);\n"
    "  const double v = fma(s, fma(z, p, -4.0), e * rayleigh_p_[7]);\n"
    "  asm(\"rsqrt.approx.ftz.f64 %0, %1;\" : \"=d\"(y) : \"d\"(v)); q = fma(v * y, -y, 1.0);\n"
    "  return v > 0 ? v * fma(y * q, fma(q, 0.375, 0.5), y) : 0; }\n";

static const char keeps[] =
    "struct philox_ { u64 n; u32 c[4]; bool again; __device__ philox_() : n(~0ull), again(false) {}\n"
    "  __device__ __forceinline__ void step(u32 &k0, u32 &k1) { const u64 a = 0xd2511f53ull * c[0], b = "
    "0xcd9e8d57ull * c[2];\n"
    "    c[0] = (u32)(b >> 32) ^ c[1] ^ k0; c[1] = (u32)b; c[2] = (u32)(a >> 32) ^ c[3] ^ k1; c[3] = (u32)a;\n"
    "    k0 += 0x9e3779b9u; k1 += 0xbb67ae85u; }\n"
    "  __device__ __forceinline__ u64 operator()(u64 i, u64 key, u64 count, int pair) { const u64 k = pair ? i >> "
    "1 : i >> 2;\n"
    "    if (!again || k != n) { u32 k0 = (u32)key, k1 = (u32)(key >> 32);\n"
    "      c[0] = (u32)k; c[1] = (u32)(k >> 32); c[2] = (u32)count; c[3] = (u32)(count >> 32);\n"
    /* the first block in a straight line; another one, where elements begin within a block, in a loop */
    "      if (again) { ONCE for (int r = 0; r < 10; r++) step(k0, k1); }\n"
    "      else { _Pragma(\"unroll\") for (int r = 0; r < 10; r++) step(k0, k1); }\n"
    "      n = k; again = true; }\n"
    "    return pair ? i & 1 ? (u64)c[3] << 32 | c[2] : (u64)c[1] << 32 | c[0]\n"
    "                : i & 2 ? i & 1 ? c[3] : c[2] : i & 1 ? c[1] : c[0]; } };\n";

const struct mc_dialect mc_dialect_cuda = {
    .name = "cuda",
    .keeps = keeps,
    .prelude = prelude,
    .builtins = builtins,
    .exact = "// --fmad=false\n",
    .store = EACH("u8", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "u16", "u16",
                   "float", "double"),
    .calc = EACH("i32", "i32", "i32", "i32", "i64", "i32", "i32", "u32", "u64", "float", "float",
                  "float", "double"),
    .suffix = EACH("b", "i", "i", "i", "l", "i", "i", "u", "ul", "f", "f", "f", "d"),
    .load_as = EACH("", "", "", "", "", "", "", "", "", "h2f", "bf2f", "", ""),
    .store_as = EACH("", "", "", "", "", "", "", "", "", "f2h", "f2bf", "", ""),
    .loop = "",
    .reduce_loop = "",
    .native = " acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp exp2 expm1 "
              "fabs floor fmod hypot lgamma log log10 log1p log2 pow rint sin sinh sqrt tan tanh tgamma trunc ",
};
