/* table.c: normalisation across channels on a GPU: the family and its solver (norm.cu).
 *
 * For windows of a few channels, as in all usual networks, a thread computes a chunk of channels in
 * registers. For other windows there is a thread for each element.
 *
 * Invariant: the solver refuses nothing. */
#include "heavy/norm/cuda/norm_args.h"
#include "heavy/norm/solver.h"
#include "heavy/cuda/cuda.h"

static const char text[] = {
#include "heavy/norm/cuda/norm_text.h"
    , 0 };
const struct mc_cuda_text mc_norm_text = { "heavy/norm/cuda/norm.cu", text };

struct norm {
    struct mc_plan base;
    void *norm, *parts;
    struct mc_grid grid;
    struct mc_norm_args args;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct norm *d = (const struct norm *)(const void *)plan;
    struct mc_norm_args a = d->args;
    (void)threads;
    a.x = operand[NORM_X];
    a.g = operand[NORM_G];
    a.y = operand[NORM_Y];
    a.parts = workspace;
    if (d->parts) {
        TRY(mc_cuda_launch_dependent(mc_cuda_current(), d->parts, "norm parts", &d->grid, &a, sizeof a));
    }
    return d->norm ? mc_cuda_launch_dependent(mc_cuda_current(), d->norm, "normalise", &d->grid, &a, sizeof a)
                   : MC_OK;
}

static void shape(struct mc_norm_args *a, const struct mc_norm_problem *p)
{
    struct mc_norm_grid g;
    mc_norm_grid(p, &g);
    *a = (struct mc_norm_args){ .c = g.c,
                                .nfree = g.nfree,
                                .planes = g.planes,
                                .lanes = g.lanes,
                                .n = p->s.n,
                                .alpha = p->s.alpha,
                                .beta = p->s.beta,
                                .k = p->s.k,
                                .blocked = p->s.blocked };
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

/* largest window held in registers; channels of a thread if they are contiguous, and if not */
enum { WIDEST = 9, LINE = 8, STRIDED = 16 };

/* Channels of a thread, in whole blocks; 0: a thread for each element. */
static int64_t chunk(const struct mc_norm_args *a)
{
    const int64_t each = MC_MIN(a->far[NORM_X] == 1 ? LINE : STRIDED, a->c);
    return a->n > WIDEST ? 0 : a->blocked ? (each + a->n - 1) / a->n * a->n : each;
}

/* Defines the constants of a kernel. QUARTERS: 4 * beta if there is a shortcut for it, else 0. */
static void define(struct mc_str *out, const struct mc_norm_problem *p, int64_t chunk, int64_t count)
{
    const double quarters = 4 * p->s.beta;
    const bool roots = quarters >= 2 && quarters <= 4 && quarters <= (double)(int)quarters;
    mc_cuda_types(out, p->dtype, false);
    mc_cuda_index(out, count);
    mc_str_addf(out, "#define BACKWARD %d\n#define QUARTERS %d\n#define CHUNK %d\n", p->s.backward,
                roots ? (int)quarters : 0, (int)chunk);
    if (chunk) {
        mc_str_addf(out, "#define BLOCKED %d\n#define N %d\n", p->s.blocked, (int)p->s.n);
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
    const struct mc_norm_args *a = &d->args;
    const int64_t count = a->planes * a->c * a->lanes, each = chunk(a);
    if (count == 0) {
        return &d->base;
    }
    const bool parts = p->s.backward && !each;
    d->grid = mc_cuda_grid_1d(each ? a->planes * ((a->c + each - 1) / each) * a->lanes : count, 256);
    d->base.workspace = parts ? (size_t)count * (p->dtype == MC_FLOAT64 ? 8 : 4) : 0;
    define(&defines, p, each, count);
    const struct mc_cuda_kernel_ref kernels[] = { { &d->norm, each ? "chunks" : "normalise" },
                                                  { &d->parts, parts ? "parts" : NULL } };
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
    return mc_cuda_seconds(norming(p)->dtype, false, 0,
                           (norming(p)->s.backward ? 3 : 2) * count_of(norming(p)) * 4, 0.5);
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

static mc_status compare(const struct mc_problem *p, const struct mc_plan *plan_, void *const *got,
                         void *const *want)
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
    .key         = mc_norm_key,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
};

struct mc_plan *mc_norm_cuda_plan(const struct mc_norm_problem *asked, const struct mc_plan_options *o)
{
    return mc_norm_plan_in(&mc_norm_cuda, asked, o);
}
