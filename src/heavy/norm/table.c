/* table.c: the family of normalisation across channels: its solvers, operands for timing, and the check
 * against the reference. A new solver is a file and a row.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/norm/solver.h"

const struct mc_solver *const mc_norm_solvers[] = {
    &mc_norm_lanes,     /* positions or images contiguous: bc01, c01b */
    &mc_norm_lines,     /* channels contiguous: b01c */
    &mc_norm_reference, /* any problem, slowly */
    NULL,
};

/* ---- operands ---- */

static void discard(const struct mc_problem *p, void *operand[8])
{
    for (int r = 0; r < 3; r++) {
        int64_t low;
        mc_norm_extent(norming(p), r, &low);
        if (operand[r]) {
            mc_free_pages((char *)operand[r] - low * (int64_t)mc_dtypes[norming(p)->dtype].size);
        }
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_norm_problem *p = norming(p_);
    const int64_t size = mc_dtypes[p->dtype].size;
    uint32_t seed = 12345;
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int r = 0; r < 3; r++) {
        int64_t low;
        const int64_t count = mc_norm_uses(p, r) ? mc_norm_extent(p, r, &low) : 0;
        if (count == 0) {
            continue;
        }
        char *data = mc_alloc_pages((size_t)(count * size), "planner");
        if (!data) {
            discard(p_, operand);
            return MC_EMEMORY;
        }
        operand[r] = data + low * size;
        for (int64_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            mc_store_f64(p->dtype, data + i * size, (double)(int32_t)seed * 0x1p-31);
        }
    }
    return MC_OK;
}

/* ---- verification ---- */

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    void *operand[8], *truth_operand[8], *workspace = NULL;
    struct mc_plan *truth = NULL;
    TRY(operands(p, operand));
    mc_status s = operands(p, truth_operand);
    if (s < 0) {
        discard(p, operand);
        return s;
    }
    truth = mc_plan_with(p, &mc_norm_reference);
    workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    s = !truth || (plan->workspace && !workspace) ? MC_EMEMORY : truth->run(truth, truth_operand, NULL, 0);
    s = s < 0 ? s : plan->run(plan, operand, workspace, 0);
    s = s < 0 || !operand[NORM_Y] ? s
                                  : mc_norm_compare(norming(p), plan, operand[NORM_Y], truth_operand[NORM_Y]);
    mc_plan_free(truth);
    mc_free_pages(workspace);
    discard(p, operand);
    discard(p, truth_operand);
    return s;
}

static size_t solver_names(const char **names, size_t capacity)
{
    return mc_solver_names(mc_norm_solvers, names, 0, capacity);
}

__attribute__((constructor)) static void install(void)
{
    mc_flag_names_of[FLAG_norm_algo] = solver_names;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_norm_algo);
}

const struct mc_family mc_norm_family = {
    .name         = "norm",
    .solvers      = mc_norm_solvers,
    .problem_size = sizeof(struct mc_norm_problem),
    .key         = mc_norm_key,
    .operands     = TRIED(operands),
    .discard      = TRIED(discard),
    .verify       = TRIED(verify),
    .forced       = forced,
};

struct mc_plan *mc_norm_plan(const struct mc_norm_problem *p, const struct mc_plan_options *o)
{
    return mc_norm_plan_in(&mc_norm_family, p, o);
}

mc_status mc_norm_problem_of(const mc_node *n, const struct mc_type *x, const int64_t *const strides[3],
                             struct mc_norm_problem *p)
{
    *p = (struct mc_norm_problem){ .base.family = &mc_norm_family, .dtype = x->dtype };
    if (!mc_norm_shape_of(n, x, &p->s)) {
        return mc_fail(MC_EARG, "%s does not normalise across channels", n->op->name);
    }
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < x->rank && strides[r]; i++) {
            p->at[r][i] = strides[r][i] / (int64_t)mc_dtypes[x->dtype].size;
        }
    }
    return MC_OK;
}
