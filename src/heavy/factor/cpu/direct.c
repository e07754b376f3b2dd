/* direct.c: the texts of op/matrix over the vectors of this processor; threads share the stack. */
#include "heavy/factor/solver.h"

enum { LANES_MOST = 32 };

static const struct mc_factor_level *const *const table[] = {
    [ISA_AVX512] = &mc_factor_avx512, [ISA_AVX2] = &mc_factor_avx2, [ISA_PLAIN] = &mc_factor_generic,
};

const struct mc_factor_level *mc_factor_level(void)
{
    int lanes[ISA_COUNT];
    for (int i = 0; i < ISA_COUNT; i++) {
        lanes[i] = *table[i] ? 1 : 0;
    }
    return *table[mc_isa_fitting(lanes, 1)];
}

struct direct {
    struct mc_plan base;
    struct mc_factor_stack stack;
};

static int64_t one(const struct mc_factor *f, const void *const *in, void *const *out, char *work,
                   int threads, void *arg)
{
    const struct mc_factor_level *level = arg;
    (void)threads;
    return level->run[f->dtype == MC_FLOAT64][f->kind](f->g, in, out, work);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    struct mc_factor_stack stack = ((const struct direct *)(const void *)plan)->stack;
    stack.f = factoring(plan->problem);
    return mc_factor_stack_run(&stack, operand, workspace, threads > 0 ? threads : mc_team_size());
}

/* As measured on a Zen 5: seconds of an operation of float32 and float64, and of an element of the matrix. */
static double estimate(const struct mc_problem *p)
{
    static const struct { double flop[2], element; } costs[FACTOR_NKIND] = {
        [FACTOR_CHOLESKY] = { { 1.3e-11, 3.2e-11 }, 1.1e-9 },   [FACTOR_TRIANGULAR] = { { 2.4e-11, 4.6e-11 }, 1e-9 },
        [FACTOR_LU] = { { 2.4e-11, 4.6e-11 }, 1e-9 },           [FACTOR_SOLVE] = { { 2.4e-11, 4.6e-11 }, 1e-9 },
        [FACTOR_INVERSE] = { { 2.4e-11, 4.6e-11 }, 1e-9 },      [FACTOR_QR] = { { 3.7e-11, 5e-11 }, 0 },
        [FACTOR_R] = { { 3.7e-11, 5e-11 }, 0 },                 [FACTOR_EIGH] = { { 6e-11, 7.5e-11 }, 0 },
        [FACTOR_EIGVALSH] = { { 6e-11, 7.5e-11 }, 0 },          [FACTOR_SVD] = { { 6e-11, 7.5e-11 }, 0 },
        [FACTOR_SVDVALS] = { { 6e-11, 7.5e-11 }, 0 },           [FACTOR_EIG] = { { 1.5e-10, 2.5e-10 }, 0 },
        [FACTOR_EIGVALS] = { { 1.5e-10, 2.5e-10 }, 0 },
    };
    const struct mc_factor *f = factoring(p);
    return (double)f->batch * (2e-7 + costs[f->kind].element * (double)f->g[0] * (double)f->g[0]) +
           mc_factor_flops(f) * costs[f->kind].flop[f->dtype == MC_FLOAT64];
}

/* Small matrices of a stack are computed in the lanes of vectors. */
static void use_lanes(const struct mc_factor *f, const struct mc_factor_level *level,
                      struct mc_factor_stack *s)
{
    const int f64 = f->dtype == MC_FLOAT64;
    const int64_t n = f->g[0], width = f->kind == FACTOR_SOLVE ? n + f->g[1] + 1 : n;
    if (n <= LANES_MOST && width <= 2 * LANES_MOST && f->batch >= level->width[f64]) {
        s->some = level->lanes[f64][f->kind];
        s->group = level->width[f64];
        s->bytes = MC_MAX(s->bytes, (size_t)(n * width * s->group) * mc_dtypes[f->dtype].size);
    }
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const struct mc_factor *f = factoring(p);
    struct direct *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    const struct mc_factor_level *level = mc_factor_level();
    d->base.run = run;
    d->stack = (struct mc_factor_stack){ .one = one,
                                         .arg = (void *)(uintptr_t)level,
                                         .bytes = (mc_factor_work(f) + 63) / 64 * 64,
                                         .slots = f->batch > 1 ? mc_team_size() : 1,
                                         .seconds = estimate(p) };
    use_lanes(f, level, &d->stack);
    d->base.workspace = d->stack.bytes * (size_t)d->stack.slots;
    return &d->base;
}

const struct mc_solver mc_factor_direct = { .name = "direct", .estimate = estimate, .plan = plan };
