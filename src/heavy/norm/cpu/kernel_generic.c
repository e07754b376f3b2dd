/* kernel_generic.c: normalisation kernels one element at a time, for every processor.
 *
 * Invariant: no instruction beyond the library's build target. */
#include "heavy/norm/cpu/kernel.h"
#include "base/base.h"
#include "base/small.h"
#include <math.h>

#define TARGET
#define ISA "plain"

#define SCALAR(T)                                                                                  \
    static inline T load_##T(const T *p) { return *p; }                                            \
    static inline void store_##T(T *p, T v) { *p = v; }
SCALAR(float)
SCALAR(double)

#define T float
#define V float
#define L 1
#define NAME(x) f32_##x
#define LOAD load_float
#define STORE store_float
#define SET1(x) (x)
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#define DIV(a, b) ((a) / (b))
#define SQRT sqrtf
#define POW powf
#include "heavy/norm/cpu/kernel_body.h"

#define T double
#define V double
#define L 1
#define NAME(x) f64_##x
#define LOAD load_double
#define STORE store_double
#define SET1(x) (x)
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#define DIV(a, b) ((a) / (b))
#define SQRT sqrt
#define POW pow
#include "heavy/norm/cpu/kernel_body.h"

const struct mc_norm_kernel *const mc_norm_plain[2] = { &f32_kernel, &f64_kernel };
