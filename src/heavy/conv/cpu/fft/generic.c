/* generic.c: transforms and spectral products in vectors of four numbers, which the compiler lowers to any
 * target.
 *
 * Invariant: runs on every processor. */
#include "heavy/conv/cpu/fft/fft.h"
#include "heavy/gemm/cpu/kernel.h"
#include "base/small.h"

#define TARGET
#define L           4
#define MR          4
#define NV          1
#define EACH_ROWS(F) F(1) F(2) F(3) F(4)
#define REAL_MR     8
#define EACH_REAL_ROWS(F) F(5) F(6) F(7) F(8)
#define MATH        0.6
#define TURN_CYCLES { 60, 60, 70, 100, 60 }
#define WINOGRAD_CYCLES { 120, 100 }
#define TURN_SIZE   4
#define TURN        turn4

static inline void turn4(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            to[j * to_row + i] = from[i * from_row + j];
        }
    }
}
#include "heavy/conv/cpu/fft/rows.h"
#include "heavy/conv/cpu/fft/body.h"

const struct mc_fft_kernel *const mc_fft_plain = &kernel;
