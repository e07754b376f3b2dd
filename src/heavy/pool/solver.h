/* solver.h: what the solvers of pooling share.
 *
 * Invariant: a result depends on the problem alone: one thread computes a plane, in a fixed order. */
#ifndef MC_POOL_SOLVER_H
#define MC_POOL_SOLVER_H

#include "device/cpu/cpu.h"
#include "heavy/pool/cpu/kernel.h"
#include "heavy/pool/pool.h"
#include "value/value.h"

/* ---- table.c ---- */
extern const struct mc_solver *const mc_pool_solvers[];
extern const struct mc_solver mc_pool_global, mc_pool_rows, mc_pool_slide, mc_pool_lanes, mc_pool_packed,
    mc_pool_ties, mc_pool_reference;

/* ---- problem.c ---- */
void mc_pool_key(const struct mc_problem *p, struct mc_str *out);
void mc_pool_extents(const struct mc_pool_problem *p, struct mc_extent e[POOL_NEXTENT]);
mc_status mc_pool_compare(const struct mc_pool_problem *p, const struct mc_plan *plan, void *const *got,
                          void *const *want);
struct mc_plan *mc_pool_plan_in(const struct mc_family *family, const struct mc_pool_problem *asked,
                                const struct mc_plan_options *o);

/* ---- cpu/run.c: the iteration space of a problem ---- */
/* Axes that are not pooled, without those of size 1 and with neighbours joined. One that has stride 1 in all
 * arrays becomes the lanes. The others span the planes. */
struct mc_pool_grid {
    const struct mc_pool_shape *s;
    int64_t slot[POOL_NARRAY][3];   /* strides of the pooled axes */
    int nfree;
    int64_t size[MC_MAX_RANK], at[POOL_NARRAY][MC_MAX_RANK];
    int64_t planes, lanes;          /* lanes 1: no axis has stride 1 in all arrays */
    int lane_axis;                  /* its axis in x; -1: none */
};
void mc_pool_grid(const struct mc_pool_problem *p, struct mc_pool_grid *g);

/* ---- cpu/run.c ---- */
/* A plane: the addresses of its arrays. */
struct mc_pool_plane {
    const struct mc_pool_grid *g;
    char *at[POOL_NARRAY];          /* KEY may be NULL */
    int64_t lanes;                  /* number of lanes from these addresses on */
    int64_t planes;                 /* number of planes from these addresses on: 1 unless planes are joint */
    void *scratch;                  /* of this thread */
};
typedef void mc_pool_work(const struct mc_plan *plan, const struct mc_pool_plane *at);
/* The base of a plan that runs plane by plane on the thread team. */
struct mc_pool_planes {
    struct mc_plan base;
    struct mc_pool_grid grid;
    mc_pool_work *work;
    int64_t lane_parts; /* parts that the lanes of a plane are divided into; 1 unless the plan sets it */
    bool joint; /* work takes several planes at once: their windows are rows of one tall plane */
    int slots;                      /* most threads */
    size_t bytes;                   /* of scratch for each thread */
};
/* Allocates a plan of `size` bytes that begins with struct mc_pool_planes and is otherwise zero. NULL: out of
 * memory. */
void *mc_pool_planes(size_t size, const struct mc_pool_problem *p, mc_pool_work *work);
/* Do windows along axis 1 cover it without overlap, and does each plane begin where the one before ends? */
bool mc_pool_planes_follow(const struct mc_pool_planes *d, const struct mc_pool_problem *p);
void mc_pool_scratch(struct mc_pool_planes *d, size_t bytes); /* sets the bytes of scratch for each thread */
bool mc_pool_keyed(const struct mc_pool_problem *p);  /* true: the problem has a third array */
/* Runs the epilogue on planes [from, to) of the result, lanes [lane, lane + lanes) of each. */
void mc_pool_finish(void *const *operand, const struct mc_pool_grid *g, int64_t from, int64_t to,
                    int64_t lane, int64_t lanes);
double mc_pool_seconds(const struct mc_pool_problem *p);    /* of one thread, limited by memory */
const char *mc_pool_hollow(const struct mc_pool_problem *p); /* refuses empty arrays */
/* refuses also columns that are not contiguous */
const char *mc_pool_hollow_columns(const struct mc_pool_problem *p);

static inline const struct mc_pool_problem *pooling(const struct mc_problem *p)
{
    return (const struct mc_pool_problem *)(const void *)p;
}

/* One window along one pooled axis: cells [lo, hi) of the image. Cell lo is cell `skip` of the window. */
struct mc_pool_clip { int64_t lo, hi, skip; };
static inline struct mc_pool_clip pool_clip(const struct mc_pool_shape *s, int slot, int64_t u)
{
    const int64_t first = u * s->stride[slot] - s->pad[slot], lo = first > 0 ? first : 0;
    return (struct mc_pool_clip){ lo, MC_MIN(first + s->w[slot], s->in[slot]), lo - first };
}

/* The windows [from, to) of a pooled axis lie inside the image. */
struct mc_pool_span { int64_t from, to; };
struct mc_pool_span mc_pool_windows_inside(const struct mc_pool_shape *s, int slot); /* cpu/run.c */

/* The factor of the sum over `cells` cells of a window. */
static inline double pool_scale(const struct mc_pool_shape *s, int64_t cells)
{
    const int64_t whole = s->w[0] * s->w[1] * s->w[2];
    return s->mode == POOL_AVERAGE_INC   ? 1 / (double)(s->whole ? whole : cells)
           : s->mode == POOL_AVERAGE_EXC ? 1 / (double)cells
                                         : 1;
}

#endif
