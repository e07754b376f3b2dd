/* portable.h: what the solvers of convolutions by portable sums share (heavy/portable). */
#ifndef CONV_PORTABLE_H
#define CONV_PORTABLE_H

#include "heavy/conv/solver.h"
#include "heavy/portable/portable.h"

/* WEIGHTS: positions of one sum, at least; longer sums lose digits, shorter ones time */
enum { CONV_CHAIN = 2048 };
/* Planes in memory: the rows of positions have sizes size[1] * size[2] and size[2]. */
struct mc_conv_planes {
    struct mc_portable_at at;
    int64_t size[3], channel; /* channel: elements between two channels */
};

static inline int64_t conv_pitch(const struct mc_conv_planes *q, int axis)
{
    return axis == 2 ? 1 : axis == 1 ? q->size[2] : q->size[1] * q->size[2];
}

/* A program that is being made. */
struct mc_conv_making {
    const struct mc_conv_problem *p;
    struct mc_portable_program *to;
    int64_t c, f; /* of one group */
    int64_t most; /* elements of the workspace, at most, so far */
};
static inline struct mc_portable_at conv_operand(int role, int64_t image, int64_t group)
{
    return (struct mc_portable_at){ role, 0, image, group, 0 };
}

/* Memory of the workspace; image: elements for each image of a run. */
struct mc_portable_at mc_conv_portable_take(struct mc_conv_making *k, int64_t elements);
/* Copies a box of `channels` channels.  to and from: strides of the channel and three axes; first elements
 * are in the addresses.  False: out of memory, as below. */
bool mc_conv_portable_copy(struct mc_conv_making *k, struct mc_portable_at to, const int64_t *to_stride,
                           struct mc_portable_at from, const int64_t *from_stride, int64_t channels,
                           const int64_t n[3]);
/* Are boxes of n elements at these strides rows of the planes' pitch? */
bool mc_conv_portable_has_pitch(const struct mc_conv_planes *q, const int64_t *stride, const int64_t n[3]);
/* The planes of x, with zeros around it if there are any, and the offset of each tap in them. */
bool mc_conv_portable_planes(struct mc_conv_making *k, struct mc_conv_planes *q, int64_t *tap);
/* Offsets of the taps in w, in the same order. */
void mc_conv_portable_taps(const struct mc_conv_problem *p, int64_t *tap);
const char *mc_conv_portable_refuses(const struct mc_problem *p); /* what none of them can do */
/* Seconds.  They run in one thread, and under the flag portable come before the reference, in the order of
 * their ranks. */
double mc_conv_portable_estimate(const struct mc_problem *p, int rank);
/* The plan for the program that `make` makes. */
struct mc_plan *mc_conv_portable_plan(const struct mc_problem *p, bool (*make)(struct mc_conv_making *k));

#endif
