/* fft_plan.h: a convolution as products of spectra, cut into blocks.
 *
 * Three letters: M counts the tiles of all images, C and F channels and filters of one group.  Each operand has two
 * of them; the result's sums run over the third, whichever the pass:
 *
 *     x(M, C)    y(M, F)    w(C, F)
 *
 * Invariant: blocks depend on the problem and the workspace cap, never on the threads. */
#ifndef MC_CONV_FFT_PLAN_H
#define MC_CONV_FFT_PLAN_H

#include "conv/fft.h"
#include "conv/solver.h"

enum { M, C, F, NLETTER };
enum { WINOGRAD = -1 };
/* Spectra of one operand's block: rows by one letter, lanes by the other. */
struct spectra {
    int row, lane;              /* letters */
    int64_t width, step, next;  /* floats from re to im of a row; from a frequency to the next; from a row to the next */
    size_t at;                  /* in the workspace */
};
struct fft {
    struct mc_plan base;
    const struct mc_fft_kernel *kernel;
    int which, size;            /* of the kernel's sizes, or WINOGRAD; places of a tile along one axis */
    int64_t frequencies, numbers;   /* of a tile; floats of each */
    int64_t step[2], tiles[2];  /* along the last two axes: places that a tile gives, and how many tiles */
    int64_t all[NLETTER], block[NLETTER];
    int summed, rows, lanes;    /* letters of the product */
    int a, b, c;                /* roles of the product: c is the result */
    struct spectra s[3];
    size_t tile_at, tile_bytes; /* of each slot */
    int slots;
};

extern const signed char mc_fft_letter[3][2];           /* of each role */
mc_status mc_fft_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
