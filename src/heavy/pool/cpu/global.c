/* global.c: sums and means of whole planes, and their gradients: one window whose cells are contiguous.
 *
 * Invariant: a sum is the total of sixteen sums, each of every sixteenth cell, and of the sum of the
 * remaining cells. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/pool/solver.h"

struct whole {
    struct mc_plan base;
    struct mc_pool_grid grid;
    int64_t cells;
    double scale;
};
enum { SUMS = 16, TASKS = 64 };

#define SUM(type)                                                                                            \
    static type sum_##type(const type *x, int64_t n)                                                         \
    {                                                                                                        \
        type sum[SUMS] = { 0 }, left = 0;                                                                    \
        int64_t i = 0;                                                                                       \
        for (; i + SUMS <= n; i += SUMS) {                                                                   \
            for (int k = 0; k < SUMS; k++) {                                                                 \
                sum[k] += x[i + k];                                                                          \
            }                                                                                                \
        }                                                                                                    \
        for (; i < n; i++) { /* not into the sums, which are in registers */                                 \
            left += x[i];                                                                                    \
        }                                                                                                    \
        for (int half = SUMS / 2; half > 0; half /= 2) {                                                     \
            for (int k = 0; k < half; k++) {                                                                 \
                sum[k] += sum[k + half];                                                                     \
            }                                                                                                \
        }                                                                                                    \
        return sum[0] + left;                                                                                \
    }
SUM(float)
SUM(double)

struct call {
    const struct whole *k;
    void *const *operand;
    char *x, *y;
    int64_t chunk;  /* planes of a task */
};
#define PLANES(type)                                                                                         \
    static void planes_##type(const struct call *c, bool forward, int64_t from, int64_t to)                  \
    {                                                                                                        \
        const int64_t n = c->k->cells, x_step = c->k->grid.at[POOL_X][0], y_step = c->k->grid.at[POOL_Y][0]; \
        const type scale = (type)c->k->scale;                                                                \
        for (int64_t i = from; i < to; i++) {                                                                \
            type *x = (type *)(void *)c->x + i * x_step, *y = (type *)(void *)c->y + i * y_step;             \
            const type each = forward ? 0 : *y * scale;                                                      \
            if (forward) {                                                                                   \
                *y = sum_##type(x, n) * scale;                                                               \
            }                                                                                                \
            for (int64_t j = 0; j < n && !forward; j++) {                                                    \
                x[j] = each;                                                                                 \
            }                                                                                                \
        }                                                                                                    \
    }
PLANES(float)
PLANES(double)

static void task(void *arg, int64_t number, int slot)
{
    const struct call *c = arg;
    const struct mc_pool_problem *p = pooling(c->k->base.problem);
    const int64_t from = number * c->chunk, to = MC_MIN(from + c->chunk, c->k->grid.planes);
    (void)slot;
    (p->dtype == MC_FLOAT64 ? planes_double : planes_float)(c, p->s.pass == POOL_FORWARD, from, to);
    mc_pool_finish(c->operand, &c->k->grid, from, to, 0, 1);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct whole *k = (const struct whole *)(const void *)plan;
    struct call c = { k, operand, operand[POOL_X], operand[POOL_Y], (k->grid.planes + TASKS - 1) / TASKS };
    (void)workspace;
    threads = threads > 0 ? threads : mc_team_size();
    mc_team_tasks(task, &c, (k->grid.planes + c.chunk - 1) / c.chunk, threads, threads,
                  mc_pool_seconds(pooling(plan->problem)));
    return MC_OK;
}

/* True if the pooled axes of x are contiguous. */
static bool side_by_side(const struct mc_pool_grid *g)
{
    int64_t step = 1;
    for (int i = 2; i >= 0; i--) {
        if (g->s->in[i] > 1 && g->slot[POOL_X][i] != step) {
            return false;
        }
        step *= g->s->in[i];
    }
    return true;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    struct mc_pool_grid g;
    if (p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64) {
        return "takes float32 and float64";
    }
    if (p->s.mode == POOL_MAX || p->s.key != POOL_KEY_NONE || p->s.pass == POOL_GATHER) {
        return "computes only sums and means";
    }
    if (mc_pool_hollow(p)) {
        return mc_pool_hollow(p);
    }
    for (int i = 0; i < 3; i++) {
        const struct mc_pool_clip c = pool_clip(&p->s, i, 0);
        if (p->s.out[i] != 1 || c.lo != 0 || c.hi != p->s.in[i]) {
            return "needs one window that covers the plane";
        }
    }
    mc_pool_grid(p, &g);
    return g.lanes == 1 && g.nfree <= 1 && side_by_side(&g)
               ? NULL
               : "needs equally spaced planes with contiguous cells";
}

static double estimate(const struct mc_problem *p)
{
    return 0.5e-6 + mc_pool_seconds(pooling(p));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    struct whole *k = mc_calloc(1, sizeof *k, "plans");
    if (!k) {
        return NULL;
    }
    k->base.run = run;
    k->cells = p->s.in[0] * p->s.in[1] * p->s.in[2];
    k->scale = pool_scale(&p->s, k->cells);
    mc_pool_grid(p, &k->grid);
    return &k->base;
}

const struct mc_solver mc_pool_global = {
    .name = "whole", .refuse = refuse, .estimate = estimate, .plan = plan,
};
