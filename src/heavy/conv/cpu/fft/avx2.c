/* avx2.c: transforms and spectral products in 16 registers of 256 bits: product tiles of 5 rows by 1 vector.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/conv/cpu/fft/fft.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include "heavy/gemm/cpu/x86.h"

#define TARGET      __attribute__((target("avx2,fma")))
#define L           8
#define MR          5
#define NV          1
#define EACH_ROWS(F) F(1) F(2) F(3) F(4) F(5)
#define REAL_MR     10
#define EACH_REAL_ROWS(F) F(6) F(7) F(8) F(9) F(10)
#define MATH        0.55
#define TURN_CYCLES { 24, 16, 18, 35, 18 }
#define WINOGRAD_CYCLES { 25, 18 }
#define TURN_SIZE   8
#define TURN        x86_turn8_f32
#include "heavy/conv/cpu/fft/rows.h"
#include "heavy/conv/cpu/fft/body.h"

const struct mc_fft_kernel *const mc_fft_avx2 = &kernel;
#else
const struct mc_fft_kernel *const mc_fft_avx2 = NULL;
#endif
