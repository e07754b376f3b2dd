/* plan.h: a convolution as products of spectra, cut into blocks.
 *
 * Three letters: M counts the tiles of all images, C and F channels and filters of one group.  Each operand
 * has two of them; the result's sums run over the third, whichever the pass:
 *
 *     x(M, C)    y(M, F)    w(C, F)
 *
 * An operand's block is transformed as often as another takes its place; the order of the loops is part of
 * the plan. Where room is short, or few of a tile's rows have taps, filters may be kept slim: all of a group,
 * with only their rows transformed, which takes taps / size of their spectra.  Their columns are transformed
 * in the cache, column by column of frequencies, for each product.
 *
 * Invariant: blocks depend on the problem and the workspace cap, never on the threads. */
#ifndef MC_CONV_FFT_PLAN_H
#define MC_CONV_FFT_PLAN_H

#include "heavy/conv/cpu/fft/fft.h"
#include "heavy/conv/solver.h"

enum { M, C, F, NLETTER };
enum { FFT = 0, WINOGRAD2 = -1, WINOGRAD4 = -2 }; /* FFT: any of its sizes */
/* Spectra of one operand's block: rows by one letter, lanes by the other. */
struct spectra {
    int row, lane;              /* letters */
    /* floats from re to im of a row; from a frequency to the next; from a row to the next */
    int64_t width, step, next;
    size_t at;                  /* in the workspace */
    bool far;                   /* more than the caches hold */
};
struct fft {
    struct mc_plan base;
    const struct mc_fft_kernel *kernel;
    /* of the kernel's sizes, or WINOGRAD2, WINOGRAD4; places of a tile along one axis */
    int which, size;
    int64_t frequencies, numbers;   /* of a tile; floats of each */
    int64_t step[2], tiles[2];  /* along the last two axes: places that a tile gives, and how many tiles */
    int64_t all[NLETTER], block[NLETTER];
    int64_t block_most;         /* tiles that are worth having at once */
    bool ahead;                 /* products fetch: no cache holds the blocks */
    int summed, rows, lanes;    /* letters of the product */
    int order[NLETTER];         /* of the loops over blocks, the outermost first */
    bool slim;                  /* filters are kept so: they are b or c of the product */
    int64_t taps, near;         /* rows of a filter; how many rows of w's spectra are whole at once */
    /* sums over a block of the summed letter go into the result, to what the others left there */
    bool partial;
    int a, b, c;                /* roles of the product: c is the result */
    struct spectra s[3];
    size_t tile_at, tile_bytes; /* of each slot: a tile, or the spectra of some slim filters */
    int slots;
};

extern const signed char mc_fft_letter[3][2];           /* of each role */
static inline int fft_winograd(const struct fft *d)    /* of the kernel's winograds; negative: none of them */
{
    return -1 - d->which;
}
static inline int64_t fft_wide(const struct mc_conv_shape *s, int axis)
{
    return (s->k[axis] - 1) * s->dilation[axis];
}
/* Slim filters of which a task makes the spectra: as many as the products' tiles are wide. */
static inline int64_t fft_slim_width(const struct fft *d)
{
    return 2 * d->kernel->lanes;
}
/* Floats from a frequency of `near` rows of them to the next: not a multiple of what caches repeat at. */
static inline int64_t fft_slim_step(const struct fft *d)
{
    return d->near * 2 * fft_slim_width(d) + 16;
}
/* Where loops are nested otherwise: first the blocks of this letter. */
void mc_fft_order(struct fft *d, int outer);
/* The size of tile and the blocks that cost least; false: none fits. */
bool mc_fft_choose(struct fft *d, const struct mc_conv_problem *p, int which);
size_t mc_fft_lay_out(struct fft *d, int slots);        /* bytes */
double mc_fft_blocks(const struct fft *d, int letter);  /* how many */
double mc_fft_cycles(const struct fft *d, const struct mc_conv_shape *s); /* of one thread */
mc_status mc_fft_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

/* ---- one call ---- */
struct mc_fft_call {
    const struct fft *d;
    struct mc_conv_run r;
    int64_t group, at[NLETTER], n[NLETTER]; /* this block: where it begins, how much it is */
    bool add;                               /* to the sums that are there */
    /* the result has sums of other blocks; it has all when these are added */
    bool more, done;
    int role;                               /* whose transforms these tasks are */
};
static inline int64_t fft_lanes_of(const struct mc_fft_call *x, const struct spectra *s)
{
    return conv_ceil(x->n[s->lane], x->d->kernel->lanes);
}
static inline float *fft_spectra(const struct mc_fft_call *x, int role)
{
    return (float *)(void *)(x->r.workspace + x->d->s[role].at);
}
static inline float *fft_slot(const struct mc_fft_call *x, int slot)
{
    return (float *)(void *)(x->r.workspace + x->d->tile_at + (size_t)slot * x->d->tile_bytes);
}
/* The lanes of task (row i, lanes from j on) of this call's role; returns how many.  box: the first one's
 * image, channel, first row and column. */
int mc_fft_lanes(const struct mc_fft_call *x, int64_t i, int64_t j, struct mc_fft_window *w, int64_t box[4]);
void mc_fft_finish(const struct mc_fft_call *x, const struct mc_fft_window *w, int count, int64_t j,
                   const int64_t box[4]);
/* The products of this block, but for where their operands lie. */
struct mc_fft_product mc_fft_product_of(const struct mc_fft_call *x);
static inline float fft_scale(const struct mc_fft_call *x)
{
    return (float)(x->r.p->alpha / (4.0 * x->d->size * x->d->size));
}
/* ---- fft_slim.c: the rows of a group's slim filters; the products of a block, which make or take their
 * columns; and back ---- */
void mc_fft_slim_rows(const struct mc_fft_call *x, double seconds);
void mc_fft_slim_products(struct mc_fft_call *x, double seconds);
void mc_fft_slim_back(const struct mc_fft_call *x, double seconds);

#endif
