/* lines.c: normalisation where channels are contiguous: line by line.
 *
 * Invariant: one thread computes a line. */
#include "heavy/norm/solver.h"

struct lines {
    struct mc_plan base;
    struct mc_norm_grid grid;
    size_t bytes;           /* of scratch for each thread */
    int slots;
};
struct call { const struct lines *l; const struct mc_norm_problem *p; void *const *operand; char *scratch; };
enum { CHUNK = 64 }; /* lines of a task */

static void some(void *arg, int64_t task, int slot)
{
    const struct call *call = arg;
    const struct lines *l = call->l;
    const int64_t size = mc_dtypes[call->p->dtype].size, end = MC_MIN((task + 1) * CHUNK, l->grid.planes);
    const struct mc_norm_kernel *kernel = mc_norm_kernel(call->p->dtype == MC_FLOAT64, l->grid.c);
    for (int64_t i = task * CHUNK; i < end; i++) {
        int64_t at[3];
        mc_norm_plane(&l->grid, i, at);
        kernel->line(&(struct mc_norm_block){
            .s = &call->p->s,
            .c = l->grid.c,
            .n = 1,
            .x_far = 1,
            .g_far = 1,
            .y_far = 1,
            .x = (char *)call->operand[NORM_X] + at[NORM_X] * size,
            .g = call->p->s.backward ? (char *)call->operand[NORM_G] + at[NORM_G] * size : NULL,
            .y = (char *)call->operand[NORM_Y] + at[NORM_Y] * size,
            .scratch = call->scratch + (size_t)slot * l->bytes });
    }
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct lines *l = (const struct lines *)(const void *)plan;
    struct call call = { .l = l, .p = norming(plan->problem), .operand = operand, .scratch = workspace };
    if (l->grid.c > 0) {
        mc_team_tasks(some, &call, (l->grid.planes + CHUNK - 1) / CHUNK, l->slots,
                      threads > 0 ? threads : l->slots, mc_norm_seconds(call.p));
    }
    return MC_OK;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_norm_problem *p = norming(p_);
    struct mc_norm_grid g;
    mc_norm_grid(p, &g);
    if (p->s.blocked || p->s.n > 64) {
        return "takes windows of up to 64 channels around each channel, not blocks";
    }
    const bool far = g.far[NORM_X] != 1 || g.far[NORM_Y] != 1 || (p->s.backward && g.far[NORM_G] != 1);
    return g.lanes > 1 || (g.c > 1 && far) ? "needs contiguous channels" : norm_refuse(p);
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + 1.5 * mc_norm_seconds(norming(p));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_norm_problem *p = norming(p_);
    struct lines *l = mc_calloc(1, sizeof *l, "plans");
    if (!l) {
        return NULL;
    }
    l->base.run = run;
    mc_norm_grid(p, &l->grid);
    l->slots = mc_team_size();
    l->bytes = ((size_t)(4 * (l->grid.c + 2 * p->s.n + 32)) * mc_dtypes[p->dtype].size + 127) / 128 * 128;
    l->base.workspace = l->bytes * (size_t)l->slots;
    return &l->base;
}

const struct mc_solver mc_norm_lines = {
    .name = "lines", .refuse = refuse, .estimate = estimate, .plan = plan,
};
