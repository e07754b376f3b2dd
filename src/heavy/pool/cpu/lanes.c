/* lanes.c: pooling where images or channels are contiguous: every cell of a window is a row of lanes.
 *
 * Invariant: no arithmetic mixes lanes, so each lane is summed in scan order. */
#include "heavy/pool/solver.h"

/* Calls kernel with the cells of window u as rows, at most POOL_ROWS at a time. */
static void each_cell(const struct mc_pool_problem *p, const struct mc_pool_plane *at, const int64_t u[3],
                      mc_pool_row_kernel *kernel)
{
    const struct mc_pool_shape *s = &p->s;
    const int64_t size = mc_dtypes[p->dtype].size, *xs = at->g->slot[POOL_X], *ys = at->g->slot[POOL_Y],
                  *ks = at->g->slot[POOL_KEY];
    const struct mc_pool_clip c0 = pool_clip(s, 0, u[0]), c1 = pool_clip(s, 1, u[1]),
                              c2 = pool_clip(s, 2, u[2]);
    const int64_t cells = (c0.hi - c0.lo) * (c1.hi - c1.lo) * (c2.hi - c2.lo);
    const int64_t mark_size = mc_dtypes[s->mark].size;
    const double scale = pool_scale(s, cells);
    struct mc_pool_row r; /* not cleared, because most of its rows are unused */
    int64_t left = cells;
    r.n = at->lanes;
    r.s = r.w = 1;
    r.bands = 1;
    r.x_band = r.y_band = r.key_band = 0;
    r.nrow = 0;
    r.wide = s->mark != MC_UINT8;
    r.bits = false;
    r.more = false;
    r.y = at->at[POOL_Y] + (u[0] * ys[0] + u[1] * ys[1] + u[2] * ys[2]) * size;
    r.key = at->at[POOL_KEY] ? at->at[POOL_KEY] + (u[0] * ks[0] + u[1] * ks[1] + u[2] * ks[2]) * mark_size
                             : NULL;
    for (int64_t a = c0.lo; a < c0.hi; a++) {
        for (int64_t b = c1.lo; b < c1.hi; b++) {
            for (int64_t c = c2.lo; c < c2.hi; c++) {
                r.x[r.nrow] = at->at[POOL_X] + (a * xs[0] + b * xs[1] + c * xs[2]) * size;
                r.mark[r.nrow++] = (int32_t)(((a - c0.lo + c0.skip) * s->w[1] + b - c1.lo + c1.skip) *
                                                 s->w[2] +
                                             c - c2.lo + c2.skip);
                left--;
                if (r.nrow == POOL_ROWS || left == 0) {
                    r.scale = s->pass == POOL_FORWARD && left ? 1 : scale; /* scales the whole sum, once */
                    kernel(&r);
                    r.more = true;
                    r.nrow = 0;
                }
            }
        }
    }
}

static void clear(const struct mc_pool_problem *p, const struct mc_pool_plane *at)
{
    const int64_t size = mc_dtypes[p->dtype].size, *xs = at->g->slot[POOL_X];
    for (int64_t a = 0; a < p->s.in[0]; a++) {
        for (int64_t b = 0; b < p->s.in[1]; b++) {
            for (int64_t c = 0; c < p->s.in[2]; c++) {
                memset(at->at[POOL_X] + (a * xs[0] + b * xs[1] + c * xs[2]) * size, 0,
                       (size_t)(at->lanes * size));
            }
        }
    }
}

static void work(const struct mc_plan *plan, const struct mc_pool_plane *at)
{
    const struct mc_pool_problem *p = pooling(plan->problem);
    const struct mc_pool_kernel *k = mc_pool_kernel(p->dtype == MC_FLOAT64, at->lanes);
    const bool max = p->s.mode == POOL_MAX;
    mc_pool_row_kernel *kernel = p->s.pass == POOL_FORWARD ? (max ? k->max : k->sum)
                                 : max                     ? k->send
                                                           : k->share;
    int64_t u[3];
    if (p->s.pass == POOL_SPREAD) {
        clear(p, at);
    }
    for (u[0] = 0; u[0] < p->s.out[0]; u[0]++) {
        for (u[1] = 0; u[1] < p->s.out[1]; u[1]++) {
            for (u[2] = 0; u[2] < p->s.out[2]; u[2]++) {
                each_cell(p, at, u, kernel);
            }
        }
    }
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    struct mc_pool_grid g;
    if (p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64) {
        return "takes float32 and float64 only";
    }
    if (p->s.pass == POOL_GATHER || (p->s.pass == POOL_SPREAD && p->s.key == POOL_KEY_X)) {
        return p->s.pass == POOL_GATHER ? "does not gather"
                                        : "takes argmax marks, but not a gradient shared by ties";
    }
    if (p->s.key == POOL_KEY_BITS && mc_pool_keyed(p)) {
        return "takes argmax marks, but no bits of ties";
    }
    mc_pool_grid(p, &g);
    return g.lanes < 2 ? "needs contiguous images or channels" : mc_pool_hollow(p);
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    return 1e-6 + mc_pool_seconds(p) * (1 + 0.02 * (double)(p->s.w[0] * p->s.w[1] * p->s.w[2]));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    struct mc_pool_planes *l = mc_pool_planes(sizeof *l, pooling(p), work);
    if (!l) {
        return NULL;
    }
    /* Enough parts to keep all threads busy. A part has at least 64 lanes. */
    const int64_t want = 8 * (int64_t)l->slots, blocks = (l->grid.lanes + 63) / 64;
    l->lane_parts = MC_MAX(1, MC_MIN(blocks, (want + l->grid.planes - 1) / l->grid.planes));
    return &l->base;
}

const struct mc_solver mc_pool_lanes = {
    .name = "lanes", .refuse = refuse, .estimate = estimate, .plan = plan,
};
