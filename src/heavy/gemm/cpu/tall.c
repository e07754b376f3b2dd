/* tall.c: products of a few rows and columns with long sums whose operands both have their rows or columns
 * adjacent, as gradients of filters and weights are: C = A^T * B, with A as (k, m) and B as (k, n) in memory.
 *
 * k is divided into parts, which are tasks, and these into chunks whose rows stay in the L1 cache while all
 * tiles of C add their products; the next chunk is prefetched meanwhile.  So A and B are read once, in order,
 * and nothing is packed.  If columns of C fill vectors badly and its rows do better, C is computed
 * transposed.
 *
 * Invariant: the parts depend only on the shape, so the bits do not depend on threads. */
#include "heavy/gemm/solver.h"

enum {
    LEAST = 512,        /* k */
    WIDE = 1 << 16,     /* most elements of C */
    PARTS = 16,
    PART_K = 512,       /* least k of a part */
    CHUNK = 128,        /* most products that are summed before the sum is added to C's */
    LINE = 64,
};

struct tall {
    struct mc_plan base;
    const struct mc_gemm_kernel *kernel;
    bool turned;        /* rows of the sums are columns of C */
    int64_t rows, columns;
    int64_t parts, chunk;
    size_t part_bytes;
};
struct call {
    const struct tall *d;
    struct mc_gemm_run r;
};
/* An operand as (k, size): its rows are `row` elements apart. */
struct side {
    const float *at;
    int64_t row, size;
};

/* Cycles for each k, of which each loads two vectors or multiplies two. */
static double cycles(const struct mc_gemm_kernel *kernel, int64_t m, int64_t n)
{
    const double tiles = (double)gemm_ceil(m, kernel->mr), mr = (double)kernel->mr;
    double sum = 0;
    for (int64_t j = 0; j < n; j += kernel->nr) {
        const double nv = (double)gemm_ceil(MC_MIN(n - j, (int64_t)kernel->nr), kernel->lanes);
        sum += tiles * MC_MAX(mr * nv, mr + nv) / 2;
    }
    return sum;
}

static struct side side_of(const struct call *x, bool of_rows)
{
    const struct mc_gemm_problem *p = x->r.p;
    return of_rows != x->d->turned ? (struct side){ (const float *)(const void *)x->r.a, p->as[2], p->m }
                                   : (struct side){ (const float *)(const void *)x->r.b, p->bs[1], p->n };
}

/* Memory that the tiles of a chunk fetch in turn. */
struct ahead {
    const char *at, *end;
};

static struct ahead ahead_of(const struct side *s, int64_t k, int64_t count)
{
    const char *at = (const char *)(s->at + k * s->row);
    /* rows that are far apart are left to the processor */
    return (struct ahead){ at, s->row == s->size ? at + count * s->row * (int64_t)sizeof(float) : at };
}

static void part_task(void *arg, int64_t part, int slot)
{
    const struct call *x = arg;
    const struct tall *d = x->d;
    const struct side rows = side_of(x, true), columns = side_of(x, false);
    const int64_t k0 = gemm_range_begin(x->r.p->k, d->chunk, d->parts, part),
                  end = gemm_range_begin(x->r.p->k, d->chunk, d->parts, part + 1), mr = d->kernel->mr,
                  nr = d->kernel->nr;
    float *sums = (float *)(void *)(x->r.workspace + (size_t)part * d->part_bytes);
    (void)slot;
    for (int64_t k = k0, count; k < end; k += count) {
        count = MC_MIN(end - k, d->chunk);
        const int64_t next = MC_MIN(end - k - count, d->chunk);
        struct ahead fetch[2] = { ahead_of(&columns, k + count, next), ahead_of(&rows, k + count, next) };
        for (int64_t j = 0; j < columns.size; j += nr) {
            struct mc_gemm_tile t = { .k = count,
                                      .n = MC_MIN(columns.size - j, nr),
                                      .b = columns.at + k * columns.row + j,
                                      .b_row = columns.row,
                                      .a_row = 1,
                                      .a_col = rows.row,
                                      .alpha = 1,
                                      .beta = k > k0 ? 1 : 0,
                                      .c_row = d->columns,
                                      .c0_row = d->columns };
            for (int64_t i = 0; i < rows.size; i += mr) {
                struct ahead *from = &fetch[fetch[0].at >= fetch[0].end];
                t.m = MC_MIN(rows.size - i, mr);
                t.a = rows.at + k * rows.row + i;
                t.c = sums + i * d->columns + j;
                t.c0 = t.c;
                t.ahead = from->at;
                t.ahead_step = from->at < from->end ? LINE : 0;
                from->at += count * t.ahead_step;
                d->kernel->direct[gemm_ceil(t.n, d->kernel->lanes)](&t);
            }
        }
    }
}

static void add_row(void *arg, int64_t i, int slot)
{
    const struct call *x = arg;
    const struct tall *d = x->d;
    const struct mc_gemm_problem *p = x->r.p;
    const int64_t step = d->turned ? d->columns : 1, part = (int64_t)(d->part_bytes / sizeof(float));
    const float *from = (const float *)(const void *)x->r.workspace + (d->turned ? i : i * d->columns);
    const float *c0 = gemm_c0(&x->r, 0, i, 0), alpha = (float)p->alpha, beta = (float)p->beta;
    float *c = gemm_c(&x->r, 0, i, 0);
    (void)slot;
    for (int64_t j = 0; j < p->n; j++) {
        float sum = from[j * step];
        for (int64_t s = 1; s < d->parts; s++) {
            sum += from[s * part + j * step];
        }
        c[j] = alpha * sum + (c0 ? beta * c0[j * p->c0s[2]] : 0);
    }
    gemm_finish(&x->r, 0, i, 0, 1, p->n);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct tall *d = (const struct tall *)(const void *)plan;
    struct call x = { d, mc_gemm_bind(plan, operand, workspace, threads) };
    const struct mc_gemm_problem *p = x.r.p;
    mc_team_tasks(part_task, &x, d->parts, x.r.threads, x.r.threads, mc_gemm_work(p));
    mc_team_tasks(add_row, &x, p->m, x.r.threads, x.r.threads, (double)(p->m * p->n * d->parts) * 0.3e-9);
    return MC_OK;
}

static void measure(struct tall *d, const struct mc_gemm_problem *p)
{
    d->base.run = run;
    d->kernel = mc_gemm_kernel(p->dtype);
    d->turned = cycles(d->kernel, p->n, p->m) < 0.97 * cycles(d->kernel, p->m, p->n);
    d->rows = d->turned ? p->n : p->m;
    d->columns = d->turned ? p->m : p->n;
    d->parts = MC_MAX(MC_MIN(p->k / PART_K, (int64_t)PARTS), (int64_t)1);
    d->chunk = CHUNK;
    d->part_bytes = ((size_t)(p->m * p->n) * sizeof(float) + LINE - 1) / LINE * LINE;
    d->base.workspace = (size_t)d->parts * d->part_bytes;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct tall d = { 0 };
    if (mc_gemm_hollow(p)) {
        return mc_gemm_hollow(p);
    }
    if (p->dtype != MC_FLOAT32) {
        return "takes float32";
    }
    if (p->batch > 1) {
        return "takes no batch";
    }
    if (p->k < LEAST || p->m * p->n > WIDE || p->m > WIDE || p->n > WIDE) {
        return "takes sums of 512 and more, and small results only";
    }
    if ((p->as[1] != 1 && p->m > 1) || (p->bs[2] != 1 && p->n > 1)) {
        return "needs adjacent rows of A and columns of B";
    }
    measure(&d, p);
    return d.base.workspace > p_->options.workspace ? "needs more workspace than the flag workspace allows"
                                                    : NULL;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    struct tall *d = mc_calloc(1, sizeof *d, "plans");
    if (d) {
        measure(d, gemm(p_));
    }
    return d ? &d->base : NULL;
}

/* libmonochord-run does not have this solver: it serves where solvers are timed, so that a function that was
 * planned by estimates has the same bits there. */
static double estimate(const struct mc_problem *p_)
{
    const double never = 1e3;
    if (mc_flag_int(FLAG_plan) == PLAN_ESTIMATE) {
        return never;
    }
    const struct mc_gemm_problem *p = gemm(p_);
    const struct mc_gemm_kernel *kernel = mc_gemm_kernel(p->dtype);
    const double per_k = MC_MIN(cycles(kernel, p->m, p->n), cycles(kernel, p->n, p->m));
    const double peak = mc_gemm_peak(p), each = 4 * (double)kernel->lanes / peak; /* of a cycle */
    const int64_t parts = MC_MAX(MC_MIN(p->k / PART_K, (int64_t)PARTS), (int64_t)1);
    const double seconds = (double)p->k * per_k * each + mc_gemm_traffic(p);
    return 1e-6 + mc_gemm_team_seconds(seconds, (double)parts) + (double)(p->m * p->n * parts) * 0.3e-9;
}

const struct mc_solver mc_gemm_tall = {
    .name = "tall", .refuse = refuse, .estimate = estimate, .plan = plan,
};
