/* table.c: the family of matrix products: its solvers, operands for timing, and the check against the
 * reference.  A new solver is a file and a row.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/solver.h"
#include <inttypes.h>

const struct mc_solver *const mc_gemm_solvers[] = {
    &mc_gemm_direct,    /* small: operands are not copied */
    &mc_gemm_skinny,    /* m or n at most 16: the large operand is read once */
    &mc_gemm_packed,    /* the rest */
    &mc_gemm_splitk,    /* small m and n, huge k */
    &mc_gemm_tall,      /* the same where both operands are read in the order of k */
    &mc_gemm_onednn,    /* libraries, where there are any */
    &mc_gemm_blas,
    &mc_gemm_portable,  /* sums in a fixed order, as in exported files */
    &mc_gemm_portable_columns, /* the same where both operands are contiguous along k; B is copied */
    &mc_gemm_reference, /* any, slowly */
    NULL,
};

/* ---- operands ---- */

/* The elements that the strides span. */
static struct mc_extent extent(mc_dtype d, const int64_t *s, int64_t batch, int64_t rows, int64_t cols)
{
    const int64_t last[] = { (batch - 1) * s[0], (rows - 1) * s[1], (cols - 1) * s[2] };
    struct mc_extent e = { d, 0, 1 };
    for (int i = 0; i < 3; i++) {
        e.before -= MC_MIN(last[i], (int64_t)0);
        e.count += last[i] < 0 ? -last[i] : last[i];
    }
    return batch && rows && cols ? e : (struct mc_extent){ d, 0, 0 };
}

void mc_gemm_extents(const struct mc_gemm_problem *p, struct mc_extent e[4])
{
    e[GEMM_A] = extent(p->dtype, p->as, p->batch, p->m, p->k);
    e[GEMM_B] = extent(p->dtype, p->bs, p->batch, p->k, p->n);
    e[GEMM_C] = extent(p->dtype, p->cs, p->batch, p->m, p->n);
    e[GEMM_C0] = p->beta != 0 ? extent(p->dtype, p->c0s, p->batch, p->m, p->n)
                              : (struct mc_extent){ p->dtype, 0, 0 };
}

/* Random numbers in [-1, 1).  Zeros or numbers of one sign would run faster than real data. */
static void fill(mc_dtype d, void *at, int64_t n, uint32_t salt)
{
    for (int64_t i = 0; i < n; i++) {
        /* salt: A and B must differ, or products could be squares */
        uint32_t h = ((uint32_t)i + salt * 977u) * 2654435761u + salt;
        h = (h ^ h >> 15) * 2246822519u;
        h = (h ^ h >> 13) * 3266489917u;
        h ^= h >> 16;
        mc_store_f64(d, (char *)at + i * mc_dtypes[d].size,
                     (double)(int32_t)h * (mc_is_float(d) ? 0x1p-31 : 0x1p-28));
    }
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[4];
    mc_gemm_extents(gemm(p), e);
    for (int i = 0; i < 4; i++) {
        mc_free_pages(operand[i] ? (char *)operand[i] - e[i].before * mc_dtypes[e[i].dtype].size : NULL);
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_extent e[4];
    mc_gemm_extents(p, e);
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int i = 0; i < 4; i++) {
        if (e[i].count > 0) {
            char *at = mc_alloc_pages((size_t)e[i].count * mc_dtypes[p->dtype].size, "planner");
            if (!at) {
                discard(p_, operand);
                return MC_EMEMORY;
            }
            fill(p->dtype, at, e[i].count, (uint32_t)i);
            operand[i] = at + e[i].before * mc_dtypes[p->dtype].size;
        }
    }
    return MC_OK;
}

/* ---- check ---- */

static mc_status run_into(const struct mc_plan *plan, void *const *operand, void *c)
{
    void *with[8];
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    if (plan->workspace && !workspace) {
        return MC_EMEMORY;
    }
    memcpy(with, operand, sizeof with);
    with[GEMM_C] = c;
    const mc_status s = plan->run(plan, with, workspace, 0);
    mc_free_pages(workspace);
    return s;
}

static mc_status verify(const struct mc_problem *p_, const struct mc_plan *plan)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_plan *truth = NULL;
    void *operand[8], *want = NULL;
    TRY(operands(p_, operand));
    mc_status s = MC_EMEMORY;
    struct mc_extent e[4];
    mc_gemm_extents(p, e);
    const size_t bytes = (size_t)e[GEMM_C].count * mc_dtypes[p->dtype].size;
    if (!bytes) {
        s = MC_OK;
        goto done;
    }
    truth = mc_plan_with(p_, &mc_gemm_reference);
    want = mc_alloc_pages(bytes, "planner");
    if (!truth || !want) {
        goto done;
    }
    s = run_into(truth, operand, want);
    if (s >= 0) {
        s = run_into(plan, operand, operand[GEMM_C]);
    }
    if (s >= 0) {
        s = mc_gemm_compare(p, plan, operand[GEMM_C], want);
    }
done:
    mc_plan_free(truth);
    mc_free_pages(want);
    discard(p_, operand);
    return s;
}

static size_t solver_names(const char **names, size_t capacity)
{
    return mc_solver_names(mc_gemm_cuda_solvers, names, mc_solver_names(mc_gemm_solvers, names, 0, capacity),
                           capacity);
}

__attribute__((constructor)) static void install(void)
{
    mc_flag_names_of[FLAG_gemm_algo] = solver_names;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_gemm_algo);
}

const struct mc_family mc_gemm_family = {
    .name         = "gemm",
    .solvers      = mc_gemm_solvers,
    .problem_size = sizeof(struct mc_gemm_problem),
    .key         = mc_gemm_key,
    .operands     = TRIED(operands),
    .discard      = TRIED(discard),
    .verify       = TRIED(verify),
    .forced       = forced,
};

/* ---- planning ---- */

struct mc_plan *mc_gemm_plan(const struct mc_gemm_problem *asked, const struct mc_plan_options *o)
{
    struct mc_gemm_problem p = *asked;
    p.base = (struct mc_problem){ &mc_gemm_family, *o };
    if (p.dtype < 0 || p.dtype >= MC_NDTYPE || !mc_is_float(p.dtype)) {
        mc_fail(MC_ETYPE, "gemm: the dtype must be a float");
        return NULL;
    }
    if (!mc_gemm_possible(&p)) {
        return NULL;
    }
    if (mc_gemm_order(p.as, p.m, p.k) == 'x' || mc_gemm_order(p.bs, p.k, p.n) == 'x' ||
        (p.cs[2] != 1 && p.n > 1)) {
        mc_fail(MC_EUNSUPPORTED, "gemm: A and B need one stride of 1, C adjacent columns");
        return NULL;
    }
    mc_gemm_stack(&p);
    return mc_plan_make(&p.base);
}
