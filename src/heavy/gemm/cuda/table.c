/* table.c: the family of matrix products on a GPU: the same problems as on the CPU, other solvers.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/gemm/cuda/cuda.h"
#include <math.h>

const struct mc_solver *const mc_gemm_cuda_solvers[] = {
    &mc_gemm_cublaslt,          /* the library, if there is one */
    &mc_gemm_cuda_split,        /* float32 as pairs of halves on tensor cores */
    &mc_gemm_cuda_split_large,  /* the same in larger tiles */
    &mc_gemm_cuda_split_inline, /* the same for small matrices */
    &mc_gemm_cuda_skinny,       /* few columns or rows */
    &mc_gemm_cuda_unfused,      /* the bare product, then an epilogue kernel */
    &mc_gemm_cuda_plain,        /* any dtype, any strides */
    NULL,
};

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[4];
    mc_gemm_extents(gemm(p), e);
    return mc_cuda_operands(e, 4, operand);
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[4];
    mc_gemm_extents(gemm(p), e);
    mc_cuda_discard(e, 4, operand);
}

/* ---- verification ---- */

static void act(const struct mc_problem *p_, void *const *operand)
{
    const struct mc_gemm_problem *p = gemm(p_);
    for (int64_t e = 0; p->act != ACT_NONE && e < p->batch * p->m * p->n; e++) {
        const int64_t b = e / (p->m * p->n), i = e / p->n % p->m, j = e % p->n;
        char *at = (char *)operand[GEMM_C] +
                   (b * p->cs[0] + i * p->cs[1] + j * p->cs[2]) * mc_dtypes[p->dtype].size;
        mc_store_f64(p->dtype, at, mc_cuda_acted(p->act, mc_load_f64(p->dtype, at)));
    }
}

static mc_status compare(const struct mc_problem *p, const struct mc_plan *plan, void *const *got,
                         void *const *want)
{
    return mc_gemm_compare(gemm(p), plan, got[GEMM_C], want[GEMM_C]);
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    static const struct mc_cuda_check check = { &mc_gemm_family, &mc_gemm_reference, act, compare };
    struct mc_extent e[4];
    mc_gemm_extents(gemm(p), e);
    return e[GEMM_C].count ? mc_cuda_verify(&check, p, plan, e, 4) : MC_OK;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_gemm_algo);
}

const struct mc_family mc_gemm_cuda = {
    .name         = "gemm",
    .solvers      = mc_gemm_cuda_solvers,
    .problem_size = sizeof(struct mc_gemm_problem),
    .site         = &mc_site_cuda,
    .key         = mc_gemm_key,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
    .forced       = forced,
};

/* ---- planning ---- */

struct mc_plan *mc_gemm_cuda_plan(const struct mc_gemm_problem *asked, const struct mc_plan_options *o)
{
    struct mc_gemm_problem p = *asked;
    p.tf32 = p.dtype == MC_FLOAT32 && strcmp(mc_flag_text(FLAG_gemm_precision), "tf32") == 0;
    return mc_gemm_cuda_inner(&p, o);
}

struct mc_plan *mc_gemm_cuda_inner(const struct mc_gemm_problem *asked, const struct mc_plan_options *o)
{
    struct mc_gemm_problem p = *asked;
    p.base = (struct mc_problem){ &mc_gemm_cuda, *o };
    if (p.dtype <= MC_BOOL || p.dtype >= MC_NDTYPE) {
        mc_fail(MC_ETYPE, "gemm: the dtype must be a float or an integer");
        return NULL;
    }
    if (p.has_epilogue) {
        mc_fail(MC_EUNSUPPORTED, "gemm: a GPU cannot call an epilogue function");
        return NULL;
    }
    if (!mc_gemm_possible(&p)) {
        return NULL;
    }
    mc_gemm_stack(&p);
    return mc_plan_make(&p.base);
}
