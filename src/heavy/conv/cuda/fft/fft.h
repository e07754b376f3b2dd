/* fft.h: a convolution by Fourier transforms on a GPU: the sizes that planning selects (fft.c) and a call
 * (run.c).
 *
 * Invariant: the summed index is in the rows of the operands' spectra.  Of the result's two indices the
 * longer one is in the columns. */
#ifndef MC_CONV_CUDA_FFT_H
#define MC_CONV_CUDA_FFT_H

#include "heavy/conv/cuda/cuda.h"

/* FFT_PAIRED: the size whose spectra interleave FFT_BESIDE frequencies */
enum { FFT_PAIRED = 128, FFT_BESIDE = 2 };
enum { FFT_PEAKS = 256 };       /* for one operand */

/* The tiles and threads of a block of a transform kernel. */
struct mc_cuda_fft_grid {
    int tiles, threads;
    size_t shared;
};
struct mc_cuda_fft {
    struct mc_plan base;
    const struct mc_cuda_fft_size *size;
    int n;                      /* elements of a tile along one axis */
    bool tiled, half_spectra;         /* half_spectra: the operands' spectra are stored as halves */
    bool tensor;                /* operands are transformed on tensor cores */
    struct mc_cuda_fft_grid forth, behind;
    int64_t images;             /* at a time */
    void *peaks, *spectra, *back, *product[4];  /* product: by mc_cuda_fft_ways */
};
/* Names of the product kernels.  From FFT_FIRST_PAIRED on they take pairs of frequencies. */
extern const char *const mc_cuda_fft_ways[4];
enum { FFT_FIRST_PAIRED = 2 };

/* ---- indices of arrays and spectra ---- */
enum mc_fft_index { IMAGES, CHANNELS, FILTERS };
extern const enum mc_fft_index mc_fft_of_role[3][2], mc_fft_summed[3];

int64_t mc_cuda_fft_tiles(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int axis);
int64_t mc_cuda_fft_count(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, enum mc_fft_index i,
                          int64_t images);
/* Which of a role's two indices is in the rows of its spectra; the other one is in the columns. */
int mc_cuda_fft_in_rows(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role,
                        int64_t images);
void mc_cuda_fft_shape(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role, int64_t images,
                       int64_t *rows, int64_t *cols);
/* The bytes of a role's spectra. */
size_t mc_cuda_fft_bytes(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role,
                         int64_t images);

static inline int64_t fft_lead(int64_t cols)
{
    return (cols + 3) / 4 * 4;
}
static inline int64_t fft_frequencies_of(const struct mc_cuda_fft *d)
{
    return (int64_t)d->n * (d->n / 2 + 1);
}
mc_status mc_cuda_fft_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
