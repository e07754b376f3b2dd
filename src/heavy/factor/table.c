/* table.c: the family of factorizations: its solvers, operands for timing, and the check against the
 * reference.  A new solver is a file and a row.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/factor/solver.h"

const struct mc_solver *const mc_factor_solvers[] = {
    &mc_factor_direct,       /* small matrices */
    &mc_factor_blocked,      /* large ones */
    &mc_factor_lapack,       /* a library, where there is one */
    &mc_factor_by_reference, /* any, slowly */
    NULL,
};

enum { NOPERAND = FACTOR_MOST_IN + FACTOR_MOST_OUT };

static void discard(const struct mc_problem *p, void *operand[8])
{
    (void)p;
    for (int r = 0; r < NOPERAND; r++) {
        mc_free_pages(operand[r]);
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

/* Symmetric matrices that are positive definite, with which every kind of work succeeds.  Those that are
 * not square have the same numbers. */
static void fill(const struct mc_factor *f, int r, char *at)
{
    const int64_t rows = f->g[0], columns = f->kind == FACTOR_TRIANGULAR || f->kind == FACTOR_SOLVE
                                                ? (r ? f->g[1] : rows)
                                            : f->in[r] && rows ? f->in[r] / rows
                                                               : 0;
    for (int64_t b = 0; b < f->batch; b++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < columns; j++) {
                uint32_t h = (uint32_t)(MC_MIN(i, j) * 65599 + MC_MAX(i, j) + b) * 2654435761u + (uint32_t)r;
                h = (h ^ h >> 15) * 2246822519u;
                h ^= h >> 13;
                const double x = (double)(int32_t)h * 0x1p-31 +
                                 (i == j && r == 0 ? (double)(rows + i % 7) : 0);
                mc_store_f64(f->dtype, at, x);
                at += mc_dtypes[f->dtype].size;
            }
        }
    }
}

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    const struct mc_factor *f = factoring(p);
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int r = 0; r < NOPERAND; r++) {
        size_t size, count = mc_factor_operand(f, r, &size);
        operand[r] = count ? mc_calloc_pages(count * size, "planner") : NULL;
        if (count && !operand[r]) {
            discard(p, operand);
            return MC_EMEMORY;
        }
        if (count && r < FACTOR_OUT) {
            fill(f, r, operand[r]);
        }
    }
    return MC_OK;
}

static mc_status run_with(const struct mc_plan *plan, void *const *operand)
{
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    const mc_status s = plan->workspace && !workspace ? MC_EMEMORY : plan->run(plan, operand, workspace, 0);
    mc_free_pages(workspace);
    return s;
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    void *got[8], *want[8];
    TRY(operands(p, got));
    mc_status s = operands(p, want);
    if (s < 0) {
        discard(p, got);
        return s;
    }
    struct mc_plan *truth = mc_plan_with(p, &mc_factor_by_reference);
    s = truth ? run_with(truth, want) : MC_EMEMORY;
    s = s < 0 ? s : run_with(plan, got);
    s = s < 0 ? s : mc_factor_compare(factoring(p), plan, got, want);
    mc_plan_free(truth);
    discard(p, got);
    discard(p, want);
    return s;
}

static size_t solver_names(const char **names, size_t capacity)
{
    return mc_solver_names(mc_factor_solvers, names, 0, capacity);
}

__attribute__((constructor)) static void install(void)
{
    mc_flag_names_of[FLAG_factor_algo] = solver_names;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_factor_algo);
}

const struct mc_family mc_factor_family = {
    .name         = "factor",
    .solvers      = mc_factor_solvers,
    .problem_size = sizeof(struct mc_factor_problem),
    .key         = mc_factor_key,
    .operands     = TRIED(operands),
    .discard      = TRIED(discard),
    .verify       = TRIED(verify),
    .forced       = forced,
};

struct mc_plan *mc_factor_plan(const struct mc_factor *f, const struct mc_plan_options *o)
{
    const struct mc_factor_problem p = { { &mc_factor_family, *o }, *f };
    return mc_plan_make(&p.base);
}
