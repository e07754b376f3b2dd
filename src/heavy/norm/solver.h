/* solver.h: what the solvers of normalisation across channels share.
 *
 * Invariant: a result depends on the problem alone: one thread computes all channels of a position. */
#ifndef MC_NORM_SOLVER_H
#define MC_NORM_SOLVER_H

#include "device/cpu/cpu.h"
#include "heavy/norm/cpu/kernel.h"
#include "heavy/norm/norm.h"
#include "value/value.h"

/* ---- table.c ---- */
extern const struct mc_solver *const mc_norm_solvers[];
extern const struct mc_solver mc_norm_lanes, mc_norm_lines, mc_norm_reference;

/* ---- problem.c ---- */
void mc_norm_key(const struct mc_problem *p, struct mc_str *out);
bool mc_norm_uses(const struct mc_norm_problem *p, int r);   /* true: the problem has an array of role r */
/* Elements from the lowest to the highest address; *low: index of the first element, counted from the
 * lowest. */
int64_t mc_norm_extent(const struct mc_norm_problem *p, int r, int64_t *low);
void mc_norm_extents(const struct mc_norm_problem *p, struct mc_extent e[3]);   /* x, g, y */
mc_status mc_norm_compare(const struct mc_norm_problem *p, const struct mc_plan *plan, const char *got,
                          const char *want);
struct mc_plan *mc_norm_plan_in(const struct mc_family *family, const struct mc_norm_problem *asked,
                                const struct mc_plan_options *o);

/* The iteration space: axes of size 1 are dropped and neighbours joined. An axis with stride 1 in all arrays,
 * if there is one, becomes the lanes. The others span the planes. */
struct mc_norm_grid {
    int64_t c, far[3];      /* number of channels, and their stride in each array */
    int nfree;
    int64_t size[MC_MAX_RANK], at[3][MC_MAX_RANK];
    int64_t planes, lanes;  /* lanes 1: no axis has stride 1 in all arrays */
};
void mc_norm_grid(const struct mc_norm_problem *p, struct mc_norm_grid *g);
/* The offset of plane number `plane` in each array, in elements. */
void mc_norm_plane(const struct mc_norm_grid *g, int64_t plane, int64_t at[3]);
double mc_norm_seconds(const struct mc_norm_problem *p);     /* of one thread */

static inline const struct mc_norm_problem *norming(const struct mc_problem *p)
{
    return (const struct mc_norm_problem *)(const void *)p;
}

static inline const char *norm_refuse(const struct mc_norm_problem *p)
{
    return p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64 ? "takes float32 and float64 only" : NULL;
}

#endif
