/* monochord_train_test.c: what a model makes of data it has not learned from.
 *
 * Invariant: nothing here changes a parameter. */
#include "train.h"
#include <stdlib.h>
#include <string.h>

bool findings_make(struct findings *f, int classes)
{
    f->classes = classes;
    f->confusion = must(calloc((size_t)classes * (size_t)classes, sizeof *f->confusion));
    f->worst = must(calloc(MOST_MISTAKES, sizeof *f->worst));
    return true;
}

void findings_free(struct findings *f)
{
    free(f->confusion);
    free(f->worst);
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
        double one_cost = 0, one_wrong = 0, n = (double)mc_array_size(t);
        mc_array *p = NULL, *in = model_input(m, x);
        mc_status s = f->confusion ? mc_call(m->test, MC_IN(in, t), MC_OUT(&one_cost, &one_wrong, &p))
                                   : mc_call(m->test, MC_IN(in, t), MC_OUT(&one_cost, &one_wrong));
        mc_array_unref(&in);
        if (s < 0) {
            return complain_library("test"), false;
        }
        if (f->confusion) {
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
