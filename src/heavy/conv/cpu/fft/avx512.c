/* avx512.c: transforms and spectral products in 32 registers of 512 bits: complex product tiles of 6 rows by
 * 2 vectors (24 accumulators, 4 registers for b, the rest for a).
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/conv/cpu/fft/fft.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include "heavy/gemm/cpu/x86.h"

#define TARGET      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define L           16
#define MR          6
#define NV          2
#define EACH_ROWS(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define REAL_MR     12
#define EACH_REAL_ROWS(F) F(7) F(8) F(9) F(10) F(11) F(12)
#define MATH        0.7
#define TURN_CYCLES { 43, 29, 30, 55, 34 }
#define WINOGRAD_CYCLES { 61, 38 }
#define TURN_SIZE   8
#define TURN        x86_turn8_f32
#define READ_ROW    read_piece
#define WRITE_ROW   write_piece
#define STREAM(p, v) _mm512_stream_ps(p, (__m512)(v))
#define FENCE       _mm_sfence

/* A mask of the 16 lanes from column j that are in [c0, c1). */
static inline TARGET __attribute__((always_inline)) __mmask16 mask(int j, int c0, int c1)
{
    const unsigned below = c1 - j >= 16 ? 0xffffu : c1 > j ? (1u << (c1 - j)) - 1 : 0;
    return (__mmask16)(c0 <= j ? below : c0 - j >= 16 ? 0 : below & ~((1u << (c0 - j)) - 1));
}

static inline TARGET __attribute__((always_inline)) void read_piece(float *to, const float *from, int c0,
                                                                    int c1, const int size)
{
    for (int j = 0; j < size; j += 16) {
        _mm512_storeu_ps(to + j, _mm512_maskz_loadu_ps(mask(j, c0, c1), from + j));
    }
}

static inline TARGET __attribute__((always_inline)) void write_piece(float *to, const float *from,
                                                                     float alpha, int c1, const int size)
{
    for (int j = 0; j < size; j += 16) {
        /* what is beyond a row of 12 may be subnormal, which would be slow to multiply */
        const __mmask16 in = mask(j, 0, c1);
        _mm512_mask_storeu_ps(to + j, in,
                              _mm512_mul_ps(_mm512_maskz_loadu_ps(in, from + j), _mm512_set1_ps(alpha)));
    }
}
#include "heavy/conv/cpu/fft/body.h"

const struct mc_fft_kernel *const mc_fft_avx512 = &kernel;
#else
const struct mc_fft_kernel *const mc_fft_avx512 = NULL;
#endif
