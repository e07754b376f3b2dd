/* skinny.c: products with at most 16 columns or at most 16 rows.  The large operand x (p, k) is read once, in
 * place.  The small operand s (q, k) is first packed in the order in which the kernel reads it:
 *
 *     n <= 16:  x = A,   s = B^T,  C[p, q]          m <= 16:  x = B^T,  s = A,  C[q, p]
 *     k of x has stride 1: sums across lanes ("dot").  p has stride 1: lanes are rows of x ("outer").
 *
 * Invariant: the order of a sum depends only on the sizes and the layout of x. */
#include "heavy/gemm/solver.h"
#include "device/cpu/cpu.h"

enum { THIN = 16, STEP_K = 32, LINE = 128, FAR = 4096, FAR_ROWS = 16 };

struct thin {
    struct mc_plan base;
    const struct mc_gemm_kernel *kernel;
    bool tall, dot;             /* tall: x is A; dot: k of x has stride 1 */
    bool by_matrix;             /* each matrix of the batch is one thread's task */
    bool narrow;                /* p is at most two vectors: the sums stay in registers */
    int64_t p, q, k, size;
    int64_t xs[3], ss[3], os[3], c0s[3];  /* batch, p or q, k;  of C and C0: batch, p, q */
    int64_t k_pad;
    int64_t far;                /* prefetch distance in x, in bytes; 0: no prefetch */
    int groups, slots;          /* groups: calls of the kernel among which the columns of s are divided */
    int64_t chunk;              /* elements of p in one task */
    size_t s_bytes, sum_bytes;  /* of one slot */
};
struct call {
    struct mc_gemm_run r;
    const struct thin *d;
};
struct product {                /* one matrix of the batch */
    const struct call *x;
    int64_t batch;
    const char *big;
    char *s;
    int threads, slot;          /* slot: the buffers to use if one thread does the whole matrix; else -1 */
};

static int64_t row_group(const struct thin *d, int g)
{
    return d->q * g / d->groups;
}

static char *buffers(const struct call *x, int slot)
{
    return x->r.workspace + (size_t)slot * (x->d->s_bytes + x->d->sum_bytes);
}

static char *sums(const struct product *m, int slot)
{
    return buffers(m->x, m->slot < 0 ? slot : m->slot) + m->x->d->s_bytes;
}

/* ---- the small operand ---- */

static void pack(const struct product *m)
{
    const struct thin *d = m->x->d;
    const struct mc_gemm_kernel *kernel = d->kernel;
    const char *src = (d->tall ? m->x->r.b : m->x->r.a) + m->batch * d->ss[0] * d->size;
    if (d->q == 1 && d->ss[2] == 1) { /* in order already, except for the padding */
        memcpy(m->s, src, (size_t)(d->k * d->size));
        memset(m->s + d->k * d->size, 0, (size_t)((d->k_pad - d->k) * d->size));
        return;
    }
    for (int g = 0; g < d->groups; g++) {
        const int64_t q0 = row_group(d, g), nq = row_group(d, g + 1) - q0;
        const char *from = src + q0 * d->ss[1] * d->size;
        char *to = m->s + q0 * d->k_pad * d->size;
        if (!d->dot) {
            kernel->pack(to, from, d->ss[1], d->ss[2], nq, d->k, nq);
            continue;
        }
        for (int64_t k = 0; k < d->k; k += kernel->lanes) {
            kernel->pack(to + k * nq * d->size, from + k * d->ss[2] * d->size, d->ss[2], d->ss[1],
                         MC_MIN(d->k - k, (int64_t)kernel->lanes), nq, kernel->lanes);
        }
    }
}

/* ---- results: out[p, q] = alpha * sum[q][p] + beta * c0[p, q] ---- */

struct patch {
    int64_t p0, np, q0, nq, row; /* row: row stride of sum */
    const void *sum;
};

#define STORE(name, T)                                                                             \
    static void name(const struct product *m, const struct patch *t)                               \
    {                                                                                              \
        const struct thin *d = m->x->d;                                                            \
        const int64_t op = d->os[1], oq = d->os[2], zp = d->c0s[1], zq = d->c0s[2];                \
        const T *sum = t->sum, alpha = (T)m->x->r.p->alpha, beta = (T)m->x->r.p->beta;             \
        T *c = (T *)(void *)m->x->r.c + m->batch * d->os[0] + t->p0 * op + t->q0 * oq;             \
        const T *c0 = (const T *)(const void *)m->x->r.c0;                                         \
        if (c0) {                                                                                  \
            c0 += m->batch * d->c0s[0] + t->p0 * zp + t->q0 * zq;                                  \
            for (int64_t q = 0; q < t->nq; q++) {                                                  \
                for (int64_t p = 0; p < t->np; p++) {                                              \
                    c[p * op + q * oq] = alpha * sum[q * t->row + p] + beta * c0[p * zp + q * zq]; \
                }                                                                                  \
            }                                                                                      \
        } else if (op == 1) {                                                                      \
            for (int64_t q = 0; q < t->nq; q++) {                                                  \
                for (int64_t p = 0; p < t->np; p++) {                                              \
                    c[p + q * oq] = alpha * sum[q * t->row + p];                                   \
                }                                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t p = 0; p < t->np; p++) {                                                  \
                for (int64_t q = 0; q < t->nq; q++) {                                              \
                    c[p * op + q * oq] = alpha * sum[q * t->row + p];                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
STORE(store_f32, float)
STORE(store_f64, double)

static void store(const struct product *m, const struct patch *t)
{
    (m->x->d->size == sizeof(double) ? store_f64 : store_f32)(m, t);
}

/* ---- tasks: rows [p0, p1) of x ---- */

static void dot_products(const struct product *m, int64_t p0, int64_t p1)
{
    const struct thin *d = m->x->d;
    _Alignas(64) char sum[GEMM_MAX_Q * GEMM_DOT_ROWS * sizeof(double)];
    for (int64_t p = p0; p < p1; p += GEMM_DOT_ROWS) {
        const int64_t np = MC_MIN(p1 - p, (int64_t)GEMM_DOT_ROWS);
        const char *x = m->big + p * d->xs[1] * d->size;
        for (int g = 0; g < d->groups; g++) {
            const int64_t q0 = row_group(d, g), nq = row_group(d, g + 1) - q0;
            d->kernel->dot[nq](&(struct mc_gemm_dot){ .k = d->k,
                                                      .x_row = d->xs[1],
                                                      .far = g ? 0 : d->far,
                                                      .rows = (int)np,
                                                      .x = x,
                                                      .s = m->s + q0 * d->k_pad * d->size,
                                                      .out = sum });
            store(m, &(struct patch){ p, np, q0, nq, GEMM_DOT_ROWS, sum });
        }
    }
}

/* STEP_K values of k at a time: each is a stream in its own page, and a CPU prefetches only so many. */
static void outer_products(const struct product *m, int64_t p0, int64_t p1, char *sum)
{
    const struct thin *d = m->x->d;
    struct mc_gemm_outer t = { .x_col = d->xs[2], .out_row = d->chunk, .narrow = d->narrow };
    const int64_t step = d->narrow ? d->k : STEP_K;
    for (int64_t k = 0; k < d->k; k += step) {
        t.k = MC_MIN(d->k - k, step);
        t.add = k > 0;
        for (int g = 0; g < d->groups; g++) {
            const int64_t q0 = row_group(d, g), nq = row_group(d, g + 1) - q0, wide = d->kernel->outer_p[nq];
            t.s = m->s + (q0 * d->k_pad + k * nq) * d->size;
            t.far = g ? 0 : d->far;
            for (int64_t p = p0; p < p1; p += wide) {
                t.np = MC_MIN(p1 - p, wide);
                t.x = m->big + (p * d->xs[1] + k * d->xs[2]) * d->size;
                t.out = sum + (q0 * d->chunk + p - p0) * d->size;
                d->kernel->outer[nq](&t);
            }
        }
    }
    store(m, &(struct patch){ p0, p1 - p0, 0, d->q, d->chunk, sum });
}

static void task(void *arg, int64_t at, int slot)
{
    const struct product *m = arg;
    const struct thin *d = m->x->d;
    const int64_t p0 = at * d->chunk, p1 = MC_MIN(p0 + d->chunk, d->p);
    if (d->dot) {
        dot_products(m, p0, p1);
    } else {
        outer_products(m, p0, p1, sums(m, slot));
    }
    if (d->tall) {
        gemm_finish(&m->x->r, m->batch, p0, 0, p1 - p0, d->q);
    } else {
        gemm_finish(&m->x->r, m->batch, 0, p0, d->q, p1 - p0);
    }
}

static void multiply(const struct call *x, int64_t batch, int slot, int threads)
{
    const struct thin *d = x->d;
    struct product m = { .x = x, .batch = batch, .threads = threads, .slot = slot };
    m.big = (d->tall ? x->r.a : x->r.b) + batch * d->xs[0] * d->size;
    m.s = buffers(x, slot < 0 ? 0 : slot);
    pack(&m);
    mc_team_tasks(task, &m, gemm_ceil(d->p, d->chunk), d->slots, threads,
                  mc_gemm_work(x->r.p) / (double)x->r.p->batch);
}

static void matrix_task(void *arg, int64_t at, int slot)
{
    multiply(arg, at, slot, 1);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct thin *d = (const struct thin *)(const void *)plan;
    struct call x = { mc_gemm_bind(plan, operand, workspace, threads), d };
    if (d->by_matrix) {
        mc_team_tasks(matrix_task, &x, x.r.p->batch, d->slots, x.r.threads, mc_gemm_work(x.r.p));
    } else {
        for (int64_t i = 0; i < x.r.p->batch; i++) {
            multiply(&x, i, -1, x.r.threads);
        }
    }
    return MC_OK;
}

/* ---- planning ---- */

static void set3(int64_t *to, int64_t a, int64_t b, int64_t c)
{
    to[0] = a;
    to[1] = b;
    to[2] = c;
}

/* The problem seen as x times s. */
static struct thin looks_skinny(const struct mc_gemm_problem *p)
{
    struct thin d = { .kernel = mc_gemm_kernel(p->dtype), .k = p->k, .size = mc_dtypes[p->dtype].size };
    d.tall = p->n <= p->m;
    if (d.tall) {
        d.p = p->m;
        d.q = p->n;
        set3(d.xs, p->as[0], p->as[1], p->as[2]);
        set3(d.ss, p->bs[0], p->bs[2], p->bs[1]);
        set3(d.os, p->cs[0], p->cs[1], p->cs[2]);
        set3(d.c0s, p->c0s[0], p->c0s[1], p->c0s[2]);
    } else {
        d.p = p->n;
        d.q = p->m;
        set3(d.xs, p->bs[0], p->bs[2], p->bs[1]);
        set3(d.ss, p->as[0], p->as[1], p->as[2]);
        set3(d.os, p->cs[0], p->cs[2], p->cs[1]);
        set3(d.c0s, p->c0s[0], p->c0s[2], p->c0s[1]);
    }
    d.dot = d.xs[2] == 1 || d.k == 1;
    d.narrow = !d.dot && d.p <= 2 * d.kernel->lanes;
    const int64_t most = d.dot ? d.kernel->dot_q : d.kernel->outer_q;
    d.groups = (int)gemm_ceil(d.q, most);
    if (d.p * d.k * d.size * p->batch > (int64_t)mc_cpu()->l2) {
        d.far = d.q < 4 ? 0
                : d.dot ? FAR
                        : FAR_ROWS * d.xs[2] * d.size; /* q < 4: long streams, prefetched by hardware */
    }
    d.k_pad = gemm_ceil(d.k, d.kernel->lanes) * d.kernel->lanes;
    return d;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    if (mc_gemm_hollow(p)) {
        return mc_gemm_hollow(p);
    }
    if (mc_dtypes[p->dtype].size < 4) {
        return "takes float32 and float64 only";
    }
    return MC_MIN(p->m, p->n) > THIN ? "takes at most 16 rows or columns" : NULL;
}

/* The constants of estimates here, in direct.c and in packed.c were fitted to 260 shapes, timed with two
 * threads on a processor with AVX-512.  Only the order of the estimates matters. */

/* Seconds of one thread to pack s. */
static double packing(const struct thin *d)
{
    const bool adjacent = d->ss[2] == 1;
    const double each = d->dot ? (adjacent ? 0.15e-9 : 0.45e-9) : 0.2e-9;
    return d->q == 1 && adjacent ? 0 : each * (double)d->q * (double)d->k_pad * (double)d->size / 4;
}

/* Seconds of one thread for the sums of one matrix whose operands are in caches. */
static double dots_cost(const struct thin *d, double flops)
{
    const double fours = (double)gemm_ceil(d->p, GEMM_DOT_ROWS), q = (double)d->q,
                 s = q * (double)(d->k_pad * d->size);
    const double again = s > (double)mc_cpu()->l1d / 2 ? fours * s / 150e9 : 0; /* s is read from L2 */
    return 2 * 4 * fours * q * (double)d->k_pad * 0.9 / flops +
           fours * ((double)d->groups * 20e-9 + q * 2e-9) + again;
}

static double outers_cost(const struct thin *d, double flops)
{
    const int64_t lanes = d->kernel->lanes, wide = d->kernel->outer_p[gemm_ceil(d->q, d->groups)];
    const int64_t rest = d->p % wide, piece = MC_MIN(wide, 2 * lanes),
                  ragged = gemm_ceil(rest, piece) * piece;
    const double q = (double)d->q, k = (double)d->k, rows = (double)(d->p - rest + ragged);
    if (d->q == 1) {
        return (d->narrow ? 0.4e-9 : 0.6e-9) * k * (double)gemm_ceil(d->p, lanes);
    }
    const double steps = d->narrow ? 1 : (double)gemm_ceil(d->k, STEP_K);
    return (0.9 * rows + 0.5 * (double)ragged) * 2 * q * k / flops + 0.12e-9 * steps * q * rows;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct thin d = looks_skinny(p);
    const double b = (double)p->batch, flops = mc_gemm_peak(p);
    const double sums = d.dot ? dots_cost(&d, flops) : outers_cost(&d, flops);
    const double stores = d.tall ? 0.2e-9 * (double)d.p * (double)d.q : 0;
    const double seconds = b * (sums + stores) + mc_gemm_traffic(p);
    return 1e-7 + b * packing(&d) + mc_gemm_team_seconds(seconds, b * (double)d.p / 64);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct thin *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    *d = looks_skinny(p);
    d->base.run = run;
    d->slots = mc_team_size();
    const double matrix = estimate(p_) / (double)p->batch;
    d->by_matrix = p->batch > 1 && d->slots > 1 && (matrix < 20e-6 || p->batch >= 4 * d->slots);
    /* Whole register tiles, and several tasks for each thread, so that no thread waits long at the end. */
    const int64_t most = d->kernel->outer_p[gemm_ceil(d->q, d->groups)], wide = 16 * d->kernel->lanes;
    const int64_t unit = d->dot ? GEMM_DOT_ROWS : MC_MIN(most, wide);
    const int64_t parts = d->by_matrix ? 1 : (d->q == 1 && !d->dot ? 1 : 6) * d->slots;
    d->chunk = MC_MIN(gemm_ceil(gemm_ceil(d->p, parts), unit), MC_MAX(GEMM_ROW / unit, 1)) * unit;
    d->s_bytes = ((size_t)(d->q * d->k_pad * d->size) + LINE - 1) / LINE * LINE;
    d->sum_bytes = d->dot ? 0 : ((size_t)(d->q * d->chunk * d->size) + LINE - 1) / LINE * LINE;
    d->base.workspace = (d->s_bytes + d->sum_bytes) * (size_t)d->slots;
    return &d->base;
}

const struct mc_solver mc_gemm_skinny = {
    .name = "thin", .refuse = refuse, .estimate = estimate, .plan = plan,
};
