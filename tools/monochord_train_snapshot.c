/* monochord_train_snapshot.c: a run as it is at a moment: parameters, what the rule remembers, how far it is.
 *
 * Invariant: what snapshot_take gives has finite numbers only, and all that a run goes on from. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool snapshot_finite(const mc_array *a)
{
    int64_t n = mc_array_size(a), flat = n;
    if (mc_array_dtype(a) != MC_FLOAT32 && mc_array_dtype(a) != MC_FLOAT64) {
        return true;
    }
    mc_array *row = must(mc_array_reshape(a, 1, &flat));
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++) {
        ok = mc_array_dtype(a) == MC_FLOAT32 ? isfinite(((const float *)mc_array_data(row))[i])
                                             : isfinite(((const double *)mc_array_data(row))[i]);
    }
    mc_array_unref(&row);
    return ok;
}

void snapshot_add(struct snapshot *s, const char *name, mc_array *value)
{
    s->name = must(realloc(s->name, (size_t)(s->n + 1) * sizeof *s->name));
    s->value = must(realloc(s->value, (size_t)(s->n + 1) * sizeof *s->value));
    s->name[s->n] = must(strdup(name));
    s->value[s->n++] = must(value);
}

static mc_array *text_array(const char *s)
{
    return mc_array_from(MC_UINT8, MC_SHAPE((int64_t)strlen(s)), s);
}

static void add_progress(struct snapshot *s, const struct run *r)
{
    const struct progress *p = &r->p;
    double numbers[PROGRESS_NUMBERS] = { (double)p->epoch, (double)p->batch, (double)p->step, p->cost, p->wrong, p->seen,
                                p->seconds + (p->batch ? seconds_now() - r->began : 0), (double)p->best };
    struct text classes = { 0 }, columns = { 0 };
    text_addf(&classes, "%s", "");
    text_addf(&columns, "%s", "");
    for (int k = 0; k < (r->m.numbers ? r->m.classes : mc_data_classes(r->train)); k++) {
        text_addf(&classes, "%s\n", mc_data_class(r->train, k));
    }
    for (int k = 0; mc_data_column(r->train, k); k++) {
        text_addf(&columns, "%s\n", mc_data_column(r->train, k));
    }
    snapshot_add(s, "train/progress", mc_array_from(MC_FLOAT64, MC_SHAPE(PROGRESS_NUMBERS), numbers));
    snapshot_add(s, "train/history",
                 mc_array_from(MC_FLOAT64, MC_SHAPE(p->nhistory, EPOCH_NUMBERS),
                               p->history ? (const void *)p->history : (const void *)numbers));
    snapshot_add(s, "train/seed", mc_array_from(MC_INT64, MC_NOSHAPE, &(int64_t){ r->o.seed }));
    snapshot_add(s, "train/model", text_array(r->m.text.s));
    snapshot_add(s, "train/data", text_array(r->o.data));
    snapshot_add(s, "train/classes", text_array(classes.s));
    snapshot_add(s, "train/columns", text_array(columns.s));
    text_free(&columns);
    text_free(&classes);
}

/* Of a learner: whole, though ranks may have shares of them. */
static void add_states(struct snapshot *s, const struct run *r)
{
    mc_param p;
    for (int i = 0; !r->learner && (p = mc_net_param(r->m.net, "state", i)).name; i++) {
        snapshot_add(s, p.name, mc_shared_get(p.shared));
    }
    for (int i = 0; r->learner && (p = mc_learner_state_like(r->learner, i)).name; i++) {
        mc_array *value = mc_learner_state(r->learner, i); /* all ranks take part */
        if (ranks_first(r)) {
            snapshot_add(s, p.name, value);
        } else {
            mc_array_unref(&value);
        }
    }
}

static void add_params(struct snapshot *s, const struct run *r)
{
    mc_param p;
    for (int i = 0; (p = mc_net_param(r->m.net, NULL, i)).name; i++) {
        snapshot_add(s, p.name, mc_shared_get(p.shared));
    }
}

struct snapshot *snapshot_like(const struct run *r)
{
    struct snapshot *s = must(calloc(1, sizeof *s));
    mc_param p;
    add_params(s, r);
    for (int i = 0;
         (p = r->learner ? mc_learner_state_like(r->learner, i) : mc_net_param(r->m.net, "state", i)).name;
         i++) {
        snapshot_add(s, p.name, mc_shared_get(p.shared));
    }
    s->nparam = s->n;
    return s;
}

struct snapshot *snapshot_params(const struct run *r)
{
    struct snapshot *s = must(calloc(1, sizeof *s));
    add_params(s, r);
    add_states(s, r);
    s->nparam = s->n;
    s->p = r->p;
    return s;
}

struct snapshot *snapshot_take(const struct run *r, struct text *ill)
{
    struct snapshot *s = snapshot_params(r);
    for (int i = 0; i < s->nparam; i++) {
        if (!snapshot_finite(s->value[i])) {
            text_addf(ill, "%s", s->name[i]);
            snapshot_free(s);
            return NULL;
        }
    }
    for (int i = 0; r->best && i < r->best->n; i++) {
        struct text name = { 0 };
        text_addf(&name, BEST "%s", r->best->name[i]);
        snapshot_add(s, name.s, mc_array_ref(r->best->value[i]));
        text_free(&name);
    }
    add_progress(s, r);
    return s;
}

void snapshot_free(struct snapshot *s)
{
    for (int i = 0; s && i < s->n; i++) {
        free(s->name[i]);
        mc_array_unref(&s->value[i]);
    }
    if (s) {
        free(s->name);
        free(s->value);
        free(s);
    }
}

bool snapshot_put(struct run *r, const struct snapshot *s)
{
    for (int i = 0; i < s->nparam; i++) {
        mc_shared *whole = mc_shared_named(r->m.g, s->name[i]);
        const mc_status put = whole ? mc_shared_set(whole, s->value[i])
                                    : mc_learner_set_state(r->learner, s->name[i], s->value[i]);
        if (put < 0) {
            return complain_library(s->name[i]), false;
        }
    }
    return true;
}

bool snapshot_return(struct run *r, const struct snapshot *s)
{
    struct progress now = r->p;
    r->p = s->p;
    r->p.history = now.history; /* epochs that ended stay */
    r->p.nhistory = now.nhistory;
    r->p.cap = now.cap;
    return snapshot_put(r, s);
}
