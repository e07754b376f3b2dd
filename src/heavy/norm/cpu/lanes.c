/* lanes.c: normalisation where positions of an image, or images, are contiguous. It works on blocks of lanes
 * that fit in the L2 cache with all their channels.
 *
 * Invariant: no arithmetic mixes lanes, so the size of blocks does not change the result. */
#include "heavy/norm/solver.h"

struct lanes {
    struct mc_plan base;
    struct mc_norm_grid grid;
    int64_t block, blocks;  /* lanes of a block; blocks of a plane */
    size_t bytes;           /* of scratch for each thread */
    int slots;
};
struct call { const struct lanes *l; const struct mc_norm_problem *p; void *const *operand; char *scratch; };

static void one(void *arg, int64_t task, int slot)
{
    const struct call *call = arg;
    const struct lanes *l = call->l;
    const struct mc_norm_grid *g = &l->grid;
    const int64_t size = mc_dtypes[call->p->dtype].size, from = task % l->blocks * l->block;
    int64_t at[3];
    mc_norm_plane(g, task / l->blocks, at);
    const struct mc_norm_block b = {
        .s = &call->p->s, .c = g->c, .n = MC_MIN(l->block, g->lanes - from), .x_far = g->far[NORM_X],
        .g_far = g->far[NORM_G],
        .y_far = g->far[NORM_Y], .x = (char *)call->operand[NORM_X] + (at[NORM_X] + from) * size,
        .g = call->p->s.backward ? (char *)call->operand[NORM_G] + (at[NORM_G] + from) * size : NULL,
        .y = (char *)call->operand[NORM_Y] + (at[NORM_Y] + from) * size,
        .scratch = call->scratch + (size_t)slot * l->bytes,
    };
    mc_norm_kernel(call->p->dtype == MC_FLOAT64, b.n)->block(&b);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct lanes *l = (const struct lanes *)(const void *)plan;
    struct call call = { l, norming(plan->problem), operand, workspace };
    if (l->grid.c > 0 && l->grid.lanes > 0) {
        mc_team_tasks(one, &call, l->grid.planes * l->blocks, l->slots, threads > 0 ? threads : l->slots,
                      mc_norm_seconds(call.p));
    }
    return MC_OK;
}

static const char *refuse(const struct mc_problem *p)
{
    struct mc_norm_grid g;
    mc_norm_grid(norming(p), &g);
    return g.lanes < 2 ? "needs contiguous positions or images" : norm_refuse(norming(p));
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + mc_norm_seconds(norming(p));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_norm_problem *p = norming(p_);
    const int64_t size = mc_dtypes[p->dtype].size;
    struct lanes *l = mc_calloc(1, sizeof *l, "plans");
    if (!l) {
        return NULL;
    }
    l->base.run = run;
    mc_norm_grid(p, &l->grid);
    l->slots = mc_team_size();
    const int64_t arrays = p->s.backward ? 5 : 2,
                  most = (int64_t)mc_cpu()->l2 / 2 / MC_MAX(l->grid.c * size * arrays, 1);
    const int64_t blocks = (l->grid.lanes + MC_MAX(most, 64) - 1) / MC_MAX(most, 64);
    l->block = ((l->grid.lanes + blocks - 1) / MC_MAX(blocks, 1) + 15) / 16 * 16;
    l->blocks = (l->grid.lanes + l->block - 1) / l->block;
    if (p->s.backward) {
        l->bytes = ((size_t)(2 * l->grid.c * l->block * size) + 127) / 128 * 128;
        l->base.workspace = l->bytes * (size_t)l->slots;
    }
    return &l->base;
}

const struct mc_solver mc_norm_lanes = {
    .name = "lanes", .refuse = refuse, .estimate = estimate, .plan = plan,
};
