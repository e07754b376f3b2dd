/* splitk.c: split-K for few results with long sums.  k is divided into equal chunks; a child plan computes
 * them as a batch, and the partial results are added in order.
 *
 * Invariant: the number of chunks depends only on the shape, so the bits do not depend on threads. */
#include "heavy/gemm/solver.h"

enum { SHORT = 1024, MOST = 64, WIDE = 256 * 256 }; /* k of a chunk, chunks, elements of C */
enum { FAR = 2 }; /* the greatest ratio of estimates that timing may still turn */

struct splitk {
    struct mc_plan base;        /* child[0]: the chunks; child[1]: the remainder of k, or NULL */
    int64_t chunks, each;       /* each: k of a chunk */
    size_t part_bytes;          /* of all partial results; the children's workspace follows them */
};

static int64_t chunks_of(const struct mc_gemm_problem *p)
{
    const int64_t n = p->k / SHORT;
    return MC_MIN(n, (int64_t)MOST);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    if (mc_gemm_hollow(p)) {
        return mc_gemm_hollow(p);
    }
    if (mc_dtypes[p->dtype].size < 4) {
        return "would round halves more than once";
    }
    if (p->batch > 1) {
        return "takes no batch";
    }
    return p->k < 2 * SHORT     ? "takes sums of 2048 and more"
           : p->m * p->n > WIDE ? "takes small results only"
                                : NULL;
}

/* C[b] = alpha * A[:, b*k:(b+1)*k] * B[b*k:(b+1)*k, :], for b below batch. */
static struct mc_gemm_problem part(const struct mc_gemm_problem *p, int64_t batch, int64_t k)
{
    struct mc_gemm_problem c = *p;
    c.batch = batch;
    c.k = k;
    c.as[0] = k * p->as[2];
    c.bs[0] = k * p->bs[1];
    c.cs[0] = p->m * p->n;
    c.cs[1] = p->n;
    c.cs[2] = 1;
    c.beta = 0;
    c.has_epilogue = c.b_stays = false;
    return c;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t n = MC_MAX(chunks_of(p), (int64_t)1);
    const struct mc_gemm_problem c = part(p, n, p->k / n);
    return 1.1 * mc_gemm_own(&c)->estimate(&c.base) + 3e-6 + (double)(p->m * p->n * n) * 0.3e-9;
}

/* ---- sums of the parts ---- */

#define ADD(name, T)                                                                               \
    static void name(const struct mc_gemm_run *r, int64_t i, const char *parts_, int64_t n)        \
    {                                                                                              \
        const int64_t width = r->p->n, part_size = r->p->m * width, z = r->p->c0s[2];                  \
        const T *parts = (const T *)(const void *)parts_ + i * width;                              \
        const T *c0 = gemm_c0(r, 0, i, 0);                                                         \
        T *c = gemm_c(r, 0, i, 0);                                                                 \
        for (int64_t j = 0; j < width; j++) {                                                      \
            T sum = parts[j];                                                                      \
            for (int64_t s = 1; s < n; s++) {                                                      \
                sum += parts[s * part_size + j];                                                       \
            }                                                                                      \
            c[j] = c0 ? sum + (T)r->p->beta * c0[j * z] : sum;                                     \
        }                                                                                          \
    }
ADD(add_f32, float)
ADD(add_f64, double)

struct sum {
    struct mc_gemm_run r;
    int64_t parts;
};

static void add_row(void *arg, int64_t i, int slot)
{
    const struct sum *s = arg;
    (void)slot;
    (s->r.size == sizeof(double) ? add_f64 : add_f32)(&s->r, i, s->r.workspace, s->parts);
    gemm_finish(&s->r, 0, i, 0, 1, s->r.p->n);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct splitk *d = (const struct splitk *)(const void *)plan;
    struct sum s = { mc_gemm_bind(plan, operand, workspace, threads), d->chunks + (plan->child[1] != NULL) };
    const struct mc_gemm_problem *p = s.r.p;
    char *work = s.r.workspace + d->part_bytes;
    void *with[8] = { operand[GEMM_A], operand[GEMM_B], workspace };
    TRY(plan->child[0]->run(plan->child[0], with, work, threads));
    if (plan->child[1]) {
        const int64_t k = d->chunks * d->each;
        with[GEMM_A] = (char *)operand[GEMM_A] + k * p->as[2] * s.r.size;
        with[GEMM_B] = (char *)operand[GEMM_B] + k * p->bs[1] * s.r.size;
        with[GEMM_C] = s.r.workspace + d->chunks * p->m * p->n * s.r.size;
        TRY(plan->child[1]->run(plan->child[1], with, work, threads));
    }
    mc_team_tasks(add_row, &s, p->m, s.r.threads, s.r.threads, (double)(p->m * p->n * s.parts) * 0.3e-9);
    return MC_OK;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct splitk *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->chunks = chunks_of(p);
    d->each = p->k / d->chunks;
    const int64_t rest = p->k - d->chunks * d->each;
    const struct mc_gemm_problem c = part(p, d->chunks, d->each), left = part(p, 1, rest);
    d->base.child[0] = mc_plan_with(&c.base, mc_gemm_own(&c));
    d->base.child[1] = rest && d->base.child[0] ? mc_plan_with(&left.base, mc_gemm_own(&left)) : NULL;
    if (!d->base.child[0] || (rest && !d->base.child[1])) {
        mc_plan_free(d->base.child[0]);
        mc_free(d);
        return NULL;
    }
    const size_t first = d->base.child[0]->workspace, second = rest ? d->base.child[1]->workspace : 0;
    d->part_bytes = (size_t)((d->chunks + 1) * p->m * p->n) * mc_dtypes[p->dtype].size;
    d->part_bytes = (d->part_bytes + 127) / 128 * 128;
    d->base.workspace = d->part_bytes + MC_MAX(first, second);
    return &d->base;
}

const struct mc_solver *mc_gemm_own(const struct mc_gemm_problem *p)
{
    static const struct mc_solver *const own[] = { &mc_gemm_direct, &mc_gemm_skinny, &mc_gemm_packed };
    const struct mc_solver *found = &mc_gemm_packed;
    for (size_t i = 0; i < NELEM(own); i++) {
        if (!own[i]->refuse(&p->base) && own[i]->estimate(&p->base) < found->estimate(&p->base)) {
            found = own[i];
        }
    }
    return found;
}

#ifndef MC_RUNTIME
const struct mc_solver *mc_gemm_next(const struct mc_gemm_problem *p)
{
    static const struct mc_solver *const own[] = { &mc_gemm_direct, &mc_gemm_packed, &mc_gemm_splitk };
    const struct mc_solver *best = NULL, *next = NULL;
    double least = 0, second = 0;
    if (!mc_gemm_tall.refuse(&p->base)) {
        return &mc_gemm_tall;
    }
    for (size_t i = 0; i < NELEM(own); i++) {
        const double seconds = own[i]->refuse(&p->base) ? -1 : own[i]->estimate(&p->base);
        if (seconds >= 0 && (!best || seconds < least)) {
            next = best, second = least;
            best = own[i], least = seconds;
        } else if (seconds >= 0 && (!next || seconds < second)) {
            next = own[i], second = seconds;
        }
    }
    return next && second < FAR * least ? next : NULL;
}
#endif

const struct mc_solver mc_gemm_splitk = {
    .name = "splitk", .refuse = refuse, .estimate = estimate, .plan = plan,
};
