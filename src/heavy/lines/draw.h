/* draw.h: n uniform numbers from the first of a Philox block on, by instruction set. */
#ifndef MC_HEAVY_LINES_DRAW_H
#define MC_HEAVY_LINES_DRAW_H

#include "heavy/lines/lines.h"
#include "op/special.h"

void mc_draw_floats_avx2(uint64_t key, uint64_t step, uint64_t block, int64_t n, float *y);
void mc_draw_doubles_avx2(uint64_t key, uint64_t step, uint64_t block, int64_t n, double *y);
void mc_draw_floats_avx512(uint64_t key, uint64_t step, uint64_t block, int64_t n, float *y);
void mc_draw_doubles_avx512(uint64_t key, uint64_t step, uint64_t block, int64_t n, double *y);

#endif
