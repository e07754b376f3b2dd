/* stack.c: runs a factorization on each matrix of a stack.
 *
 * Invariant: of several matrices that fail, the error names the first one. */
#include "heavy/factor/solver.h"

struct running {
    const struct mc_factor_stack *s;
    void *const *operand;
    char *workspace;
    int threads;
    pthread_mutex_t lock;
    int64_t failed, bad;        /* the first matrix that failed, and how */
    double pivot;
};

/* Addresses of matrix i. */
static void find(const struct running *r, int64_t i, const void **in, void **out)
{
    const struct mc_factor *f = r->s->f;
    const size_t size = mc_dtypes[f->dtype].size;
    for (int k = 0; k < f->nin; k++) {
        in[k] = (const char *)r->operand[k] + (size_t)(i * f->in[k]) * size;
    }
    for (int k = 0; k < f->nout; k++) {
        out[k] = (char *)r->operand[FACTOR_OUT + k] + (size_t)(i * f->out[k]) * f->out_size[k];
    }
}

static void matrix(void *arg, int64_t i, int slot)
{
    struct running *r = arg;
    const struct mc_factor *f = r->s->f;
    const void *in[FACTOR_MOST_IN] = { NULL };
    void *out[FACTOR_MOST_OUT] = { NULL };
    char *work = r->workspace + (size_t)slot * r->s->bytes;
    find(r, i, in, out);
    const int64_t bad = r->s->one(f, in, out, work, r->threads, r->s->arg);
    if (bad) {
        pthread_mutex_lock(&r->lock);
        if (!r->bad || i < r->failed) {
            r->bad = bad;
            r->failed = i;
            r->pivot = mc_load_f64(f->dtype, work);
        }
        pthread_mutex_unlock(&r->lock);
    }
}

static void group(void *arg, int64_t task, int slot)
{
    const struct running *r = arg;
    const int64_t from = task * r->s->group, to = MC_MIN(from + r->s->group, r->s->f->batch);
    const void *in[FACTOR_MOST_IN] = { NULL };
    void *out[FACTOR_MOST_OUT] = { NULL };
    find(r, from, in, out);
    if (to - from < r->s->group ||
        !r->s->some(r->s->f->g, in, out, r->workspace + (size_t)slot * r->s->bytes)) {
        for (int64_t i = from; i < to; i++) {
            matrix(arg, i, slot);
        }
    }
}

mc_status mc_factor_stack_run(const struct mc_factor_stack *s, void *const *operand, char *workspace,
                              int threads)
{
    struct running r = { .s = s, .operand = operand, .workspace = workspace,
        .threads = s->slots > 1 ? 1 : threads,
                         .lock = PTHREAD_MUTEX_INITIALIZER };
    if (s->some) {
        mc_team_tasks(group, &r, (s->f->batch + s->group - 1) / s->group, s->slots, threads, s->seconds);
    } else if (s->slots > 1) {
        mc_team_tasks(matrix, &r, s->f->batch, s->slots, threads, s->seconds);
    } else {
        for (int64_t i = 0; i < s->f->batch && !r.bad; i++) {
            matrix(&r, i, 0);
        }
    }
    pthread_mutex_destroy(&r.lock);
    char pivot[sizeof(double)];
    mc_store_f64(s->f->dtype, pivot, r.pivot);
    return r.bad ? mc_factor_failed(s->f, r.failed, r.bad, pivot) : MC_OK;
}
