/* cuda.c: normalisation across channels on a GPU: the family, and its solver (norm.cu).
 *
 * Invariant: the solver refuses nothing. */
#include "norm/solver.h"
#include "plan/cuda.h"

static const char text[] = {
#include "norm/norm_text.h"
    , 0 };
const struct mc_cuda_text mc_norm_text = { "norm/norm.cu", text };

struct args {
    const void *x, *g;
    void *y, *parts;
    int64_t c, far[3], nfree, size[8], at[3][8], planes, lanes, n;
    double alpha, beta, k;
    int blocked;
};
struct norm {
    struct mc_plan base;
    void *norm, *parts;
    struct mc_grid grid;
    struct args args;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct norm *d = (const struct norm *)(const void *)plan;
    struct args a = d->args;
    (void)threads;
    a.x = operand[NORM_X];
    a.g = operand[NORM_G];
    a.y = operand[NORM_Y];
    a.parts = workspace;
    if (d->parts) {
        TRY(mc_cuda_launch(mc_cuda_current(), d->parts, "norm parts", &d->grid, &a, sizeof a));
    }
    return d->norm ? mc_cuda_launch(mc_cuda_current(), d->norm, "normalise", &d->grid, &a, sizeof a) : MC_OK;
}

static void shape(struct args *a, const struct mc_norm_problem *p)
{
    struct mc_norm_grid g;
    mc_norm_grid(p, &g);
    *a = (struct args){ .c = g.c, .nfree = g.nfree, .planes = g.planes, .lanes = g.lanes, .n = p->s.n, .alpha = p->s.alpha,
                        .beta = p->s.beta, .k = p->s.k, .blocked = p->s.blocked };
    for (int i = 0; i < g.nfree; i++) {
        a->size[i] = g.size[i];
    }
    for (int r = 0; r < 3; r++) {
        a->far[r] = g.far[r];
        for (int i = 0; i < g.nfree; i++) {
            a->at[r][i] = g.at[r][i];
        }
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_norm_problem *p = norming(p_);
    struct mc_str defines = { 0 };
    struct norm *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    shape(&d->args, p);
    const int64_t count = d->args.planes * d->args.c * d->args.lanes;
    if (count == 0) {
        return &d->base;
    }
    d->grid = mc_cuda_line(count, 256);
    d->base.workspace = p->s.backward ? (size_t)count * (p->dtype == MC_FLOAT64 ? 8 : 4) : 0;
    mc_cuda_types(&defines, p->dtype, false);
    mc_cuda_index(&defines, count);
    mc_str_addf(&defines, "#define BACKWARD %d\n", p->s.backward);
    const struct mc_cuda_named kernels[] = { { &d->norm, "normalise" }, { &d->parts, p->s.backward ? "parts" : NULL } };
    if (!mc_cuda_kernels(&mc_norm_text, &defines, kernels, NELEM(kernels))) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

static double count_of(const struct mc_norm_problem *p)
{
    double count = 1;
    for (int i = 0; i < p->s.rank; i++) {
        count *= (double)p->s.dims[i];
    }
    return count;
}

static double estimate(const struct mc_problem *p)
{
    return mc_cuda_seconds(norming(p)->dtype, false, 0, (norming(p)->s.backward ? 6 : 2) * count_of(norming(p)) * 4, 0.5);
}

static const struct mc_solver cuda_norm = { .name = "cuda", .estimate = estimate, .plan = plan };
static const struct mc_solver *const solvers[] = { &cuda_norm, NULL };

/* ---- the family ---- */

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[3];
    mc_norm_extents(norming(p), e);
    return mc_cuda_operands(e, 3, operand);
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[3];
    mc_norm_extents(norming(p), e);
    mc_cuda_discard(e, 3, operand);
}

static mc_status compare(const struct mc_problem *p, const struct mc_plan *plan_, void *const *got, void *const *want)
{
    return got[NORM_Y] ? mc_norm_compare(norming(p), plan_, got[NORM_Y], want[NORM_Y]) : MC_OK;
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan_)
{
    static const struct mc_cuda_check check = { &mc_norm_family, &mc_norm_reference, NULL, compare };
    struct mc_extent e[3];
    mc_norm_extents(norming(p), e);
    return mc_cuda_verify(&check, p, plan_, e, 3);
}

const struct mc_family mc_norm_cuda = {
    .name         = "norm",
    .solvers      = solvers,
    .problem_size = sizeof(struct mc_norm_problem),
    .site         = &mc_site_cuda,
    .word         = mc_norm_word,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
};

struct mc_plan *mc_norm_cuda_plan(const struct mc_norm_problem *asked)
{
    return mc_norm_plan_in(&mc_norm_cuda, asked);
}
