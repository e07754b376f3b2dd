/* plan.h: a convolution as products of spectra, cut into blocks.
 *
 * Three letters name the axes: M counts the tiles of all images, C and F channels and filters of one group.
 * Each operand has two of them. In every direction the sums of the result run over the third:
 *
 *     x(M, C)    y(M, F)    w(C, F)
 *
 * A block of an operand is transformed again each time another block has replaced it, so the order of the
 * loops is part of the plan. If workspace is short, or few rows of a tile have taps, filters may be slim: all
 * filters of a group are kept with only their rows transformed, in taps / size of the memory of their
 * spectra. Each product then transforms their columns in the cache, one column of frequencies at a time.
 *
 * Invariant: blocks depend on the problem and the workspace cap, never on the threads. */
#ifndef MC_CONV_FFT_PLAN_H
#define MC_CONV_FFT_PLAN_H

#include "heavy/conv/cpu/fft/fft.h"
#include "heavy/conv/solver.h"

enum { M, C, F, NLETTER };
enum { FFT = 0, WINOGRAD2 = -1, WINOGRAD4 = -2 }; /* 0 and above: an index of the kernel's FFT sizes */
/* Spectra of one operand's block: one letter is the row, the other is in the lanes. */
struct spectra {
    int row, lane;              /* letters */
    /* floats from re to im of a row; from a frequency to the next; from a row to the next; between panels of
     * columns, in which a product reads filters in order; 0: there is but one */
    int64_t width, step, next, panel;
    size_t at, bytes;           /* offset in the workspace */
    bool far;                   /* larger than the caches */
};
struct fft {
    struct mc_plan base;
    const struct mc_fft_kernel *kernel;
    /* which: index of the kernel's sizes, or WINOGRAD2, WINOGRAD4; size: elements of a tile along an axis */
    int which, size;
    int64_t frequencies, numbers;   /* frequencies of a tile; floats of each */
    int64_t step[2], tiles[2];  /* along the last two axes: positions that a tile yields, number of tiles */
    int64_t all[NLETTER], block[NLETTER];
    int64_t block_most;         /* most tiles of a block */
    bool ahead;                 /* products prefetch, because no cache holds the blocks */
    int summed, rows, lanes;    /* letters of the product */
    int order[NLETTER];         /* of the loops over blocks, the outermost first */
    bool slim;                  /* filters are slim: operand b or c of the product */
    bool stays;                 /* w's spectra are computed once for many runs, unless filters are slim */
    int64_t taps, near; /* rows of a filter; rows of w's spectra whose columns are transformed at once */
    /* each block of the summed letter is added to the result in memory */
    bool partial;
    int a, b, c;                /* roles of the operands of the product; c is the result */
    struct spectra s[3];
    size_t tile_at, tile_bytes; /* of each slot: a tile, or spectra of some slim filters */
    int slots;
};

extern const signed char mc_fft_letter[3][2];           /* of each role */
static inline int fft_winograd(const struct fft *d) /* index of the kernel's Winograd sizes; negative: FFT */
{
    return -1 - d->which;
}
static inline int64_t fft_wide(const struct mc_conv_shape *s, int axis)
{
    return (s->k[axis] - 1) * s->dilation[axis];
}
/* Slim filters that a task transforms: the width of the products' tiles. */
static inline int64_t fft_slim_width(const struct fft *d)
{
    return 2 * d->kernel->lanes;
}
/* Floats from a frequency of `near` such rows to the next: no multiple of the distance at which sets of the
 * cache repeat. */
static inline int64_t fft_slim_step(const struct fft *d)
{
    return d->near * 2 * fft_slim_width(d) + 16;
}
/* Sets the order of the loops, with the blocks of `outer` outermost. */
void mc_fft_order(struct fft *d, int outer);
/* Chooses the size of tiles and the blocks of least cost. False: none fits. */
bool mc_fft_choose(struct fft *d, const struct mc_conv_problem *p, int which);
size_t mc_fft_lay_out(struct fft *d, int slots);        /* bytes of the workspace */
double mc_fft_blocks(const struct fft *d, int letter);  /* number of blocks */
double mc_fft_cycles(const struct fft *d, const struct mc_conv_shape *s); /* of one thread */
size_t mc_fft_prepared(const struct fft *d, int64_t groups);    /* bytes of the spectra of all filters */
void mc_fft_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                    int threads);
mc_status mc_fft_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

/* ---- one call ---- */
struct mc_fft_call {
    const struct fft *d;
    struct mc_conv_run r;
    int64_t group, at[NLETTER], n[NLETTER]; /* of this block: first index and size */
    bool add;                               /* add to the sums in the workspace */
    /* more: the result has sums of other blocks; done: it is complete with this one */
    bool more, done;
    int role;                               /* role of the operand that the tasks transform */
};
static inline int64_t fft_lanes_of(const struct mc_fft_call *x, const struct spectra *s)
{
    return conv_ceil(x->n[s->lane], x->d->kernel->lanes);
}
/* The number of a block of w among those of all groups. */
static inline int64_t fft_filter_block(const struct mc_fft_call *x)
{
    const struct fft *d = x->d;
    const int64_t c = conv_ceil(d->all[C], d->block[C]), f = conv_ceil(d->all[F], d->block[F]);
    return (x->group * c + x->at[C] / d->block[C]) * f + x->at[F] / d->block[F];
}
/* of this block */
static inline float *fft_spectra(const struct mc_fft_call *x, int role)
{
    const struct spectra *s = &x->d->s[role];
    char *const at = role == CONV_W && x->r.prepared
                         ? x->r.prepared + (size_t)fft_filter_block(x) * s->bytes
                         : x->r.workspace + s->at;
    return (float *)(void *)at;
}
/* row i, lanes from j on */
static inline float *fft_place(const struct mc_fft_call *x, int role, int64_t i, int64_t j)
{
    const struct spectra *s = &x->d->s[role];
    const bool panels = FFT_PANELS && s->panel;
    return fft_spectra(x, role) + i * s->next + (panels ? j / s->width * s->panel + j % s->width : j);
}
static inline float *fft_slot(const struct mc_fft_call *x, int slot)
{
    return (float *)(void *)(x->r.workspace + x->d->tile_at + (size_t)slot * x->d->tile_bytes);
}
/* Fills the window for a task: row i and the lanes from j on of x->role. Returns the number of lanes. box:
 * image, channel, first row and column of the first lane. */
int mc_fft_lanes(const struct mc_fft_call *x, int64_t i, int64_t j, struct mc_fft_window *w, int64_t box[4]);
void mc_fft_finish(const struct mc_fft_call *x, const struct mc_fft_window *w, int count, int64_t j,
                   const int64_t box[4]);
/* The product of this block, without the addresses of its operands. */
struct mc_fft_product mc_fft_product_of(const struct mc_fft_call *x);
static inline float fft_scale(const struct mc_fft_call *x)
{
    return (float)(x->r.p->alpha / (4.0 * x->d->size * x->d->size));
}
/* ---- row_spectra.c: transforms the rows of a group's slim filters; computes the products of a block with
 * the transforms of columns; transforms rows back ---- */
void mc_fft_slim_rows(const struct mc_fft_call *x, double seconds);
void mc_fft_slim_products(struct mc_fft_call *x, double seconds);
void mc_fft_slim_back(const struct mc_fft_call *x, double seconds);

#endif
