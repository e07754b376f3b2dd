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

static void look(struct findings *f, const mc_batches *b, const mc_array *t, const mc_array *p)
{
    int64_t n = mc_array_dims(p)[0], classes = mc_array_dims(p)[1];
    mc_array *y = mc_array_cast(p, MC_FLOAT64), *whole = must(mc_array_copy(must(y))),
             *labels = must(mc_array_to(t, "cpu"));
    for (int64_t i = 0; i < n; i++) {
        const double *row = (const double *)mc_array_data(whole) + i * classes;
        int32_t label = ((const int32_t *)mc_array_data(labels))[i], answer = 0;
        for (int32_t k = 1; k < classes; k++) {
            answer = row[k] > row[answer] ? k : answer;
        }
        f->confusion[label * classes + answer]++;
        if (answer != label) {
            keep(f, (struct mistake){ mc_batches_example(b, i), label, answer, row[answer] });
        }
    }
    mc_array_unref(&y);
    mc_array_unref(&whole);
    mc_array_unref(&labels);
}

/* Numbers, and what they should be: (n, classes) each, one batch after another. */
static void note(struct findings *f, const mc_array *t, const mc_array *p)
{
    const mc_array *const from[] = { t, p };
    double **const to[] = { &f->truth, &f->guess };
    int64_t n = mc_array_dims(p)[0], size = n * f->classes;
    for (int k = 0; k < COUNT(from); k++) {
        mc_array *here = must(mc_array_to(from[k], "cpu")), *cast = must(mc_array_cast(here, MC_FLOAT64)),
                 *whole = must(mc_array_copy(cast));
        *to[k] = must(realloc(*to[k], (size_t)((f->n + n) * f->classes) * sizeof **to[k]));
        memcpy(*to[k] + f->n * f->classes, mc_array_data(whole), (size_t)size * sizeof **to[k]);
        mc_array_unref(&here);
        mc_array_unref(&cast);
        mc_array_unref(&whole);
    }
    f->n += n;
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

bool test_run(struct model *m, mc_batches *b, struct findings *f)
{
    const mc_array *x, *t;
    double seen = 0, cost = 0, wrong = 0;
    int more;
    m->test = m->test ? m->test : mc_net_tester(m->net);
    if (!m->test) {
        return complain_library("cannot compile the test"), false;
    }
    mc_batches_start(b, 0, 0);
    while ((more = mc_batches_next(b, &x, &t)) == 1) {
        double one_cost = 0, one_wrong = 0, n = (double)mc_array_dims(t)[0];
        mc_array *p = NULL, *in = model_input(m, x);
        mc_status s = call(m, in, t, &one_cost, &one_wrong, f->confusion ? &p : NULL);
        mc_array_unref(&in);
        if (s < 0) {
            return complain_library("test"), false;
        }
        if (f->confusion && m->numbers) {
            note(f, t, p);
        } else if (f->confusion) {
            look(f, b, t, p);
        }
        mc_array_unref(&p);
        cost += one_cost * n;
        wrong += one_wrong * n;
        seen += n;
    }
    f->loss = cost / seen;
    f->error = wrong / seen;
    return more == 0 || (complain_library("test"), false);
}
