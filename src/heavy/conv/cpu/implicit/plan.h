/* plan.h: a convolution as matrix products whose left matrix is never stored. Its rows are windows; element
 * (r, k) is at rows[r] + at[k] of the source, where the kernel `gathered` of matrix products reads it.
 *
 *   forward   y(u, f)     = sum over (tap, c) of x[u + (tap, c)] * w(tap, c, f)
 *   inputs    x(u, c)     = sum over (tap, f) of y[u + (tap, f)] * w(tap, f, c), for each phase of the stride
 *   weights   w(tap c, f) = sum over u of x[(tap, c) + u] * y(u, f)
 *
 * The source is a copy of x (inputs: of y) with the zeros around it, in the order of its own axes, or the
 * array itself where nothing is padded. The right matrix is packed in panels of at most three vectors.
 *
 * Invariant: blocks and their order depend on the problem and the workspace cap, never on the threads. */
#ifndef MC_CONV_IMPLICIT_PLAN_H
#define MC_CONV_IMPLICIT_PLAN_H

#include "heavy/conv/solver.h"
#include "heavy/gemm/cpu/kernel.h"

/* Position i along an axis is element first + i * step of the result. Tap t reads element
 * from + i * stride + at[t] of the source, and is w[t] in w. */
struct implicit_axis {
    int64_t count, first, step, from, stride;
    int64_t taps, *at, *w;
};
/* The positions of the result that are computed by the same taps: one phase of the stride for inputs, else
 * all. */
struct implicit_phase {
    struct implicit_axis axis[3];
    int64_t taps, positions;
    int32_t *at[2]; /* (taps, channels of a block): offsets in the source; [1]: of the last block */
    int64_t w_at;   /* floats in front of this phase in the packed filters of a group */
};
struct implicit {
    struct mc_plan base;
    const struct mc_gemm_kernel *kernel;
    int64_t from, to;                  /* channels of a group: of the source, and of the right matrix */
    int64_t block, blocks, last_block; /* of `from` */
    int64_t vectors, panels;           /* of `to` */
    int64_t phases;
    struct implicit_phase *phase;
    int64_t *numbers; /* at[] and w[] of all axes */
    int32_t *offsets; /* at[] of all phases; position[] */
    /* the source: zeros before, sizes, strides of channels and axes, floats of an image */
    bool copies, channels_last;
    int64_t before[3], size[3], stride[4], image;
    int64_t images;      /* in a chunk */
    int64_t cell, cells; /* positions in a block; blocks of an image (weights: of `grouped` images) */
    int64_t parts;       /* forward and inputs: of the panels; weights: of a chunk's positions */
    bool cuts[3];        /* tiles leave out taps of the axis that read zeros */
    bool direct;         /* the result is stored by the kernel, its rows in order */
    bool by_line;        /* the same, but for tiles whose positions are in several lines of the result */
    /* weights: images whose positions are summed as if of one; floats of the sums of one part; the offset of
     * each position in the source; where each row of a block is in w; are rows in the order (channel, tap of
     * w)? else (tap, channel) */
    int64_t grouped, sums;
    int32_t *position;
    int64_t *in_w[2]; /* [1]: of the last block */
    bool by_channel;
    size_t source_at, w_at, sums_at, slot_at, slot_bytes;
    int slots;
};
/* One call. */
struct implicit_call {
    const struct implicit *d;
    struct mc_conv_run r;
    int64_t first, n; /* images of the chunk */
};

/* most positions of a block; channels of the result that are turned at a time */
enum { IMPLICIT_CELL = 480, IMPLICIT_TURNED = 16 };

static inline const int64_t *implicit_source_strides(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_INPUTS ? p->at.y : p->at.x;
}
/* Vectors in front of panel i. */
static inline int64_t implicit_panel(const struct implicit *d, int64_t i)
{
    return d->vectors * i / d->panels;
}
static inline int64_t implicit_block(const struct implicit *d, int64_t block)
{
    return block == d->blocks - 1 ? d->last_block : d->block;
}
static inline float *implicit_floats(const struct implicit_call *x, size_t offset)
{
    return (float *)(void *)(x->r.workspace + offset);
}
/* The packed filters: those that were prepared, or this call's. */
static inline float *implicit_filters(const struct implicit_call *x)
{
    return x->r.prepared ? (float *)(void *)x->r.prepared : implicit_floats(x, x->d->w_at);
}
/* The first element of image `n` of the chunk and group g of the source. */
static inline const float *implicit_source(const struct implicit_call *x, int64_t n, int64_t g)
{
    const struct implicit *d = x->d;
    const int64_t *stride = implicit_source_strides(x->r.p);
    if (d->copies) {
        return implicit_floats(x, d->source_at) + n * d->image + g * d->from * d->stride[0];
    }
    const char *at = x->r.at[x->r.p->s.pass == CONV_INPUTS ? CONV_Y : CONV_X];
    return (const float *)(const void *)at + (x->first + n) * stride[0] + g * d->from * stride[1];
}

/* ---- implicit.c ---- */
/* the indices of position u */
void mc_implicit_position(const struct implicit_phase *f, int64_t u, int64_t p[3]);
/* Where tap 0 at channel 0 and offset 0 reads from that position. */
int64_t mc_implicit_window(const struct implicit *d, const struct implicit_phase *f, const int64_t p[3]);
/* ---- copy.c: the source with zeros around it ---- */
void mc_implicit_copy(struct implicit_call *x);
/* ---- run.c: forward and inputs; weights.c ---- */
mc_status mc_implicit_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);
void mc_implicit_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                         int threads);
mc_status mc_implicit_weights(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
