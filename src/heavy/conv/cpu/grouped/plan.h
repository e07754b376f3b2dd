/* plan.h: a plan of grouped convolutions (grouped.c), as it is run (run.c).
 *
 * Along an axis, position I of a phase r of the result is element I * phases + r - start of it, and tap `a`
 * reads element I * step + off(a) - before of the source:
 *
 *   forward, weights   phases 1, start 0, step: the stride, off(a) = a * dilation, before: the border
 *   inputs             phases: the stride, start: the border, step 1; tap a is of phase
 *                      a * dilation % stride,
 *                      e = a * dilation / stride, off = reach - e, before = reach, the largest e
 *
 * Columns of the copy are apart by their phase of `step`, so that the kernel never sees a stride. */
#ifndef MC_CONV_GROUPED_PLAN_H
#define MC_CONV_GROUPED_PLAN_H

#include "heavy/conv/cpu/depthwise/depthwise.h"
#include "heavy/conv/cpu/grouped/grouped.h"
#include "heavy/conv/solver.h"

enum {
    GROUPED_SLOTS = 1024,
    GROUPED_TOGETHER = 4,   /* units: so many cache lines that are adjacent */
};

struct grouped_side {
    /* count: positions of a phase; reach: the largest off */
    int64_t step, phases, before, start, count, reach;
};
struct grouped {
    struct mc_plan base;
    const struct mc_grouped_kernel *kernel;
    const struct mc_depth_kernel *turns; /* of the same vectors */
    int64_t each, units, width; /* channels of a group; units of `weave` groups, of so many channels */
    int weave;
    bool last;                  /* the source has its channels innermost */
    int64_t together;           /* units whose copies are made at the same time, if channels are innermost */
    struct grouped_side side[2];
    int64_t len, pitch;         /* positions of a phase of columns in the copy; floats of a line */
    int64_t bands, rows, lines; /* rows: positions of a phase of the result in a band */
    int *place;                 /* of each source element of the lines in the copy, as positions */
    int *place_y;               /* weights: the same of y */
    struct grouped_run *run;    /* by phase of the result */
    int64_t *first, *tap;       /* first run of each phase; w's offset of each tap, in the order of runs */
    int32_t in[GROUPED_WIDTH], out[GROUPED_WIDTH];     /* lanes of the woven and of the unwoven position */
    bool pairs;                 /* they are indices of pairs of vectors */
    int32_t w_lane[2][GROUPED_WIDTH];                  /* where in w each lane is; [1]: in the last unit */
    int64_t parts;              /* weights: of images and bands */
    int64_t copy, sums, filter; /* floats; filter: numbers of the filters of a unit */
    size_t w_bytes, slot_bytes;
    int slots;
};

static inline const int64_t *result_size(const struct mc_conv_shape *s)
{
    return s->pass == CONV_INPUTS ? s->in : s->out;
}

/* run.c */
mc_status mc_grouped_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);
void mc_grouped_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                        int threads);

#endif
