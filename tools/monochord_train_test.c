/* monochord_train_test.c: what a model makes of data it has not learned from.
 *
 * Invariant: nothing here changes a parameter. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool findings_make(struct findings *f, const struct model *m)
{
    f->classes = m->classes;
    if (m->places > 1) {
        return true;
    }
    f->confusion = must(
        calloc(m->numbers ? 1 : (size_t)m->classes * (size_t)m->classes, sizeof *f->confusion));
    f->worst = must(calloc(MOST_MISTAKES, sizeof *f->worst));
    return true;
}

void findings_free(struct findings *f)
{
    free(f->confusion);
    free(f->worst);
    free(f->truth);
    free(f->guess);
}

/* Kept in order, the surest first; what falls off the end is forgotten. */
static void keep(struct findings *f, struct mistake m)
{
    int at = f->nworst;
    while (at > 0 && f->worst[at - 1].sure < m.sure) {
        at--;
    }
    if (at == MOST_MISTAKES) {
        return;
    }
    int n = f->nworst < MOST_MISTAKES ? f->nworst : MOST_MISTAKES - 1;
    memmove(f->worst + at + 1, f->worst + at, (size_t)(n - at) * sizeof *f->worst);
    f->worst[at] = m;
    f->nworst = n + 1;
}

/* ---- what is found, batch by batch ---- */

/* Of each batch its cost and what is wrong, times its examples, and these; of each example a row: its label,
 * the answer, how sure, its number in the data; of numbers, what they should be, and what they are. Zeros
 * where another rank looks: the sum over ranks has all. */
enum { OF_BATCH = 3, OF_EXAMPLE = 4 };
struct record {
    int64_t batches, each, width; /* each: room for the examples of a batch */
    double *batch, *row;          /* (batches, OF_BATCH); (batches * each, width), or NULL */
    size_t n;                     /* numbers of both, which follow each other */
};

static void record_make(struct record *c, const struct model *m, const mc_batches *b,
                        const struct findings *f)
{
    c->batches = mc_batches_count(b);
    c->width = !f->confusion ? 0 : m->numbers ? 2 * f->classes : OF_EXAMPLE;
    c->n = (size_t)(c->batches * (OF_BATCH + c->each * c->width));
    c->batch = must(calloc(c->n + 1, sizeof *c->batch));
    c->row = c->width ? c->batch + c->batches * OF_BATCH : NULL;
}

/* Rows of the k-th batch. */
static void look(struct record *c, int64_t k, const mc_batches *b, const mc_array *t, const mc_array *p)
{
    int64_t n = mc_array_dims(p)[0], classes = mc_array_dims(p)[1];
    mc_array *y = mc_array_cast(p, MC_FLOAT64), *whole = must(mc_array_copy(must(y))),
             *labels = must(mc_array_to(t, "cpu"));
    for (int64_t i = 0; i < n; i++) {
        const double *row = (const double *)mc_array_data(whole) + i * classes;
        double *to = c->row + (k * c->each + i) * c->width;
        int32_t answer = 0;
        for (int32_t j = 1; j < classes; j++) {
            answer = row[j] > row[answer] ? j : answer;
        }
        to[0] = ((const int32_t *)mc_array_data(labels))[i];
        to[1] = answer;
        to[2] = row[answer];
        to[3] = (double)mc_batches_example(b, i);
    }
    mc_array_unref(&y);
    mc_array_unref(&whole);
    mc_array_unref(&labels);
}

static void note(struct record *c, int64_t k, const mc_array *t, const mc_array *p)
{
    const mc_array *const from[] = { t, p };
    const int64_t n = mc_array_dims(p)[0], classes = c->width / 2;
    for (int j = 0; j < COUNT(from); j++) {
        mc_array *here = must(mc_array_to(from[j], "cpu")), *cast = must(mc_array_cast(here, MC_FLOAT64)),
                 *whole = must(mc_array_copy(cast));
        for (int64_t i = 0; i < n; i++) {
            memcpy(c->row + (k * c->each + i) * c->width + j * classes,
                   (const double *)mc_array_data(whole) + i * classes, (size_t)classes * sizeof(double));
        }
        mc_array_unref(&here);
        mc_array_unref(&cast);
        mc_array_unref(&whole);
    }
}

/* In the order of the data, whoever looked at them. */
static void conclude(struct findings *f, const struct record *c, bool numbers)
{
    double sum[OF_BATCH] = { 0 };
    for (int64_t k = 0; k < c->batches; k++) {
        for (int j = 0; j < OF_BATCH; j++) {
            sum[j] += c->batch[k * OF_BATCH + j];
        }
    }
    const int64_t n = (int64_t)sum[2], classes = f->classes;
    f->loss = sum[0] / sum[2];
    f->error = sum[1] / sum[2];
    if (c->row && numbers) {
        f->truth = must(malloc((size_t)(n * classes + 1) * sizeof *f->truth));
        f->guess = must(malloc((size_t)(n * classes + 1) * sizeof *f->guess));
    }
    for (int64_t k = 0; c->row && k < c->batches; k++) {
        for (int64_t i = 0; i < (int64_t)c->batch[k * OF_BATCH + 2]; i++) {
            const double *row = c->row + (k * c->each + i) * c->width;
            if (numbers) {
                memcpy(f->truth + f->n * classes, row, (size_t)classes * sizeof *row);
                memcpy(f->guess + f->n++ * classes, row + classes, (size_t)classes * sizeof *row);
                continue;
            }
            const int32_t label = (int32_t)row[0], answer = (int32_t)row[1];
            f->confusion[label * classes + answer]++;
            if (answer != label) {
                keep(f, (struct mistake){ (int64_t)row[3], label, answer, row[2] });
            }
        }
    }
}

struct fit fit_of(const struct findings *f, int target)
{
    struct fit fit = { .least = INFINITY, .most = -INFINITY, .worst_error = -1 };
    double mean = 0, rest = 0, all = 0;
    for (int64_t i = 0; i < f->n; i++) {
        mean += f->truth[i * f->classes + target] / (double)f->n;
    }
    for (int64_t i = 0; i < f->n; i++) {
        double t = f->truth[i * f->classes + target], y = f->guess[i * f->classes + target], e = fabs(t - y);
        rest += e * e;
        all += (t - mean) * (t - mean);
        fit.mean_error += e / (double)f->n;
        fit.worst = e > fit.worst_error ? i : fit.worst;
        fit.worst_error = fmax(fit.worst_error, e);
        fit.least = fmin(fit.least, fmin(t, y));
        fit.most = fmax(fit.most, fmax(t, y));
    }
    fit.r2 = all > 0 ? 1 - rest / all : NAN;
    return fit;
}

/* The results that the tester has: without errors, one less. */
static mc_status call(struct model *m, const mc_array *in, const mc_array *t, double *cost, double *wrong,
                      mc_array **p)
{
    if (m->errors) {
        return p ? mc_call(m->test, MC_IN(in, t), MC_OUT(cost, wrong, p))
                 : mc_call(m->test, MC_IN(in, t), MC_OUT(cost, wrong));
    }
    mc_status s = p ? mc_call(m->test, MC_IN(in, t), MC_OUT(cost, p))
                    : mc_call(m->test, MC_IN(in, t), MC_OUT(cost));
    *wrong = *cost;
    return s;
}

/* Batches from ... to - 1 into the record. */
static bool measure(struct model *m, mc_batches *b, struct record *c, int64_t from, int64_t to)
{
    const mc_array *x, *t;
    int more = 1;
    m->test = m->test ? m->test : mc_net_tester(m->net);
    if (!m->test) {
        return complain_library("cannot compile the test"), false;
    }
    mc_batches_start(b, 0, from);
    for (int64_t k = from; k < to && (more = mc_batches_next(b, &x, &t)) == 1; k++) {
        double one_cost = 0, one_wrong = 0, n = (double)mc_array_dims(t)[0];
        mc_array *p = NULL, *in = model_input(m, x);
        mc_status s = call(m, in, t, &one_cost, &one_wrong, c->row ? &p : NULL);
        mc_array_unref(&in);
        if (s < 0) {
            return complain_library("test"), false;
        }
        if (c->row && m->numbers) {
            note(c, k, t, p);
        } else if (c->row) {
            look(c, k, b, t, p);
        }
        mc_array_unref(&p);
        memcpy(c->batch + k * OF_BATCH, (double[OF_BATCH]){ one_cost * n, one_wrong * n, n },
               OF_BATCH * sizeof n);
    }
    return more == 1 || (complain_library("test"), false);
}

bool test_run(struct model *m, mc_batches *b, struct findings *f)
{
    struct record c = { .each = mc_net_training(m->net)->batch };
    record_make(&c, m, b, f);
    const bool good = measure(m, b, &c, 0, c.batches);
    if (good) {
        conclude(f, &c, m->numbers);
    }
    free(c.batch);
    return good;
}

bool test_divided(struct run *r, struct findings *f)
{
    struct record c = { .each = mc_net_training(r->m.net)->batch };
    const int64_t ranks = r->comm ? mc_comm_size(r->comm) : 1, rank = r->comm ? mc_comm_rank(r->comm) : 0;
    record_make(&c, &r->m, r->test_batches, f);
    bool good = measure(&r->m, r->test_batches, &c, c.batches * rank / ranks, c.batches * (rank + 1) / ranks);
    good = ranks_all(r, good);
    if (good && r->comm && mc_comm_reduce(r->comm, "sum", MC_FLOAT64, c.batch, (int64_t)c.n) < 0) {
        good = (complain_library("test"), false);
    }
    if (good) {
        conclude(f, &c, r->m.numbers);
    }
    free(c.batch);
    return good;
}
