/* loop.c: the executor of a loop whose body is compiled: a function without a caller, whose steps are run
 * again and again.  Values of the body keep their memory, except inputs and results: these lie in the loop's
 * own inputs and results, at the place of the step.
 *
 * Invariant: a step of the loop allocates nothing and plans nothing. */
#include "exec/heavy/heavy.h"
#include "schedule/band.h"

#ifdef MC_RUNTIME
enum { ALL_AT_ONCE = false };  /* libmonochord-run makes single steps, which takes less code */
#else
enum { ALL_AT_ONCE = true };
#endif

struct loop {
    struct mc_exec exec;
    struct mc_band all;     /* the body, on all rows */
    struct mc_band *band;   /* or on the rows of each band, all at the same time */
    int nband;
    struct mc_loop l;
    char *arena;            /* the body's values, then two buffers for each state that is not kept */
    int64_t steps;
    bool watched;           /* the steps are timed or checked */
    enum mc_repeats repeats; /* how the backend runs all steps but the first at once */
    int64_t *move;          /* by value, for that: bytes from step to step */
    bool *turns;            /* by value: it moves back in the next step */
    int64_t *bytes, *buffer; /* by state: its size; the offset of its buffers in the arena */
    int64_t flag;           /* the condition's offset in the arena */
};

#ifndef MC_RUNTIME

static void free_bands(struct loop *x)
{
    for (int k = 0; k < x->nband; k++) {
        mc_band_unshare(&x->band[k]);
        mc_shape_plan_free(x->band[k].body, x->band[k].plan);
        mc_band_free(&x->band[k]);
        mc_band_body_free(x->band[k].body);
    }
    mc_free(x->band);
    x->band = NULL;
    x->nband = 0;
}

#endif

static void loop_free(struct mc_exec *e)
{
    struct loop *x = (struct loop *)e;
    struct mc_function *b = x->all.body;
    struct mc_device *d = b->code->device;
#ifndef MC_RUNTIME
    free_bands(x);
#endif
    b->body_plan = b->body_plan == x->all.plan ? NULL : b->body_plan;
    mc_shape_plan_free(x->all.body, x->all.plan);
    mc_band_free(&x->all);
    d->ops->free(d, x->arena);
    mc_free(x->move);
    mc_free(x->turns);
    mc_free(x->bytes);
    mc_free(x->buffer);
    mc_free(x);
}

/* ---- running ---- */

/* What solvers prepare of constants, once for all steps. */
static mc_status prepare(const struct loop *x)
{
    mc_status s = MC_OK;
    mc_band_place(&x->all);
    for (int i = 0; i < x->all.nrun && s == MC_OK; i++) {
        const int step = x->all.run[i];
        s = mc_heavy_prepare(x->all.body, x->all.plan, step,
                             x->all.body->arena + x->all.plan->step[step].workspace_at);
    }
    return s;
}

/* Where state i is written by step t: in the result that keeps it, else in its buffers by turns. */
static char *state_at(const struct loop *x, int i, int64_t t, char *all)
{
    return all ? all + t * x->bytes[i] : x->arena + x->buffer[i] + (t & 1) * mc_loop_rounded(x->bytes[i]);
}

static mc_status copy_state(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst)
{
    return src == dst || !dst ? MC_OK : f->code->backend->copy(f, from, src, dst);
}

/* The body's steps, or a note of where its values are in this step of the loop.  *even: they move as the
 * backend can follow. */
static mc_status run_or_note(const struct loop *x, bool noting, bool *even)
{
    if (!noting) {
        return mc_band_run(&x->all, x->watched);
    }
    char *to[MC_MOST_RESULTS];
    int n = 0;
    for (int j = 0; j < x->all.body->code->program.noutput; j++) {
        to[n] = x->all.out[j].at;
        n += x->all.out[j].copied;
    }
    *even = x->all.body->code->backend->note(x->all.body, x->all.plan, to);
    return MC_OK;
}

/* Where the states are after the last step, and how many steps were made. */
struct walk {
    char *state[MC_MOST_STATES], *all[MC_MOST_STATES];
    int64_t t;
    bool last, even;
    bool beyond;            /* the steps have to be made one by one, from the first */
};

/* All steps behind the first one, by the backend at once. */
static mc_status repeat(const struct loop *x, struct walk *w)
{
    const struct mc_loop *l = &x->l;
    const bool in_place = x->repeats == REPEATS_IN_PLACE;
    const struct mc_repeat how = { x->steps - 1, x->move, in_place ? NULL : x->turns };
    for (int i = 0; i < l->nstate; i++) {
        x->all.in[l->nsequence + i].at = w->state[i];
        x->all.out[i].at = in_place && !w->all[i] ? w->state[i] : state_at(x, i, 1, w->all[i]);
    }
    mc_band_place(&x->all);
    TRY(x->all.body->code->backend->repeat(x->all.body, x->all.plan, x->all.run[0], &how, &w->beyond));
    w->t = x->steps - 1;
    for (int i = 0; i < l->nstate; i++) {
        w->state[i] = in_place && !w->all[i] ? w->state[i] : state_at(x, i, w->t, w->all[i]);
    }
    for (int i = 0; i < l->ncollect; i++) {
        struct mc_port *o = &x->all.out[l->nstate + i];
        o->at = mc_moved(o->at, how.times * o->stride);
    }
    return MC_OK;
}

/* Inputs, states and results where they are before the first step. */
static mc_status begin(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                       struct loop *x, struct walk *w)
{
    const struct mc_loop *l = &x->l;
    *w = (struct walk){ .even = true };
    for (int i = 0; i < l->body->nin; i++) {
        x->all.in[i].at = f->ptr[st->src[1 + i]];
    }
    for (int i = 0; i < l->nstate; i++) {
        const int kept = mc_loop_kept_result(l, i), v = st->src[1 + l->nsequence + i];
        const struct mc_slot *slot = &p->slot[v];
        w->all[i] = kept >= 0 ? f->ptr[st->dst[kept]] : NULL;
        w->state[i] = f->ptr[v];
        if (!mc_slot_contiguous(slot)) { /* the body reads states that are */
            w->state[i] = state_at(x, i, 1, NULL);
            TRY(copy_state(f, slot, f->ptr[v], w->state[i]));
        }
    }
    for (int i = 0; i < l->ncollect; i++) {
        x->all.out[l->nstate + i].at = f->ptr[st->dst[mc_loop_collect_result(l, i)]];
    }
    return MC_OK;
}

/* single: each step is run by itself */
static mc_status walk(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                      struct loop *x, bool noting, bool single, struct walk *w)
{
    const struct mc_loop *l = &x->l;
    const struct mc_space *remote = f->code->device->space;
    TRY(begin(f, p, st, x, w));
    if (l->until) {
        x->all.out[x->all.body->code->program.noutput - 1].at = remote ? x->arena + x->flag
                                                                       : (char *)&w->last;
    }
    TRY(x->steps > 0 && !noting ? prepare(x) : MC_OK);
    for (; w->t < x->steps && !w->last && w->even; w->t++) {
        for (int i = 0; i < l->nstate; i++) {
            x->all.in[l->nsequence + i].at = w->state[i];
            x->all.out[i].at = state_at(x, i, w->t, w->all[i]);
        }
        mc_band_place(&x->all);
        const mc_status s = run_or_note(x, noting, &w->even);
        if (s < 0) {
            return s == MC_EMEMORY ? s : mc_fail_again("t = %lld: ", (long long)w->t);
        }
        for (int i = 0; i < l->nstate; i++) {
            w->state[i] = x->all.out[i].at;
        }
        mc_band_advance(&x->all);
        if (l->until && remote) {
            TRY(remote->get(remote, &w->last, x->arena + x->flag, sizeof w->last));
        }
        if (ALL_AT_ONCE && x->repeats && !single && !noting && !x->watched && x->steps > 1) {
            TRY(repeat(x, w));
        }
    }
    return MC_OK;
}

#ifndef MC_RUNTIME

/* ---- bands ---- */

struct banded {             /* a loop, and where its states are before the first step */
    const struct loop *x;
    const struct walk *w;
};

/* All steps of a band, on one thread. */
static void walk_band(void *arg, int at)
{
    const struct banded *r = arg;
    const struct loop *x = r->x;
    const struct mc_loop *l = &x->l;
    struct mc_band *b = &x->band[at];
    mc_status s = MC_OK;
    for (int i = 0; i < l->body->nin; i++) {
        const int state = i - l->nsequence;
        b->in[i].at = (state >= 0 && state < l->nstate ? r->w->state[state] : x->all.in[i].at) +
                      b->in[i].first;
    }
    for (int i = l->nstate; i < l->nstate + l->ncollect; i++) {
        b->out[i].at = x->all.out[i].at + b->out[i].first;
    }
    for (int64_t t = 0; t < x->steps && s == MC_OK; t++) {
        for (int i = 0; i < l->nstate; i++) {
            b->out[i].at = state_at(x, i, t, r->w->all[i]) + b->out[i].first;
        }
        mc_band_place(b);
        s = mc_band_run(b, false);
        for (int i = 0; i < l->nstate; i++) {
            b->in[l->nsequence + i].at = b->out[i].at;
        }
        mc_band_advance(b);
    }
    b->status = s; /* once: bands are neighbours in memory */
}

static mc_status walk_bands(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                            struct loop *x, struct walk *w)
{
    TRY(begin(f, p, st, x, w));
    TRY(prepare(x));
    for (int k = 0; k < x->nband; k++) {
        mc_band_share(&x->band[k], &x->all);
    }
    f->code->backend->each(walk_band, &(struct banded){ x, w }, x->nband);
    for (int k = 0; k < x->nband; k++) {
        TRY(x->band[k].status < 0 ? mc_fail(x->band[k].status, "scan: out of memory") : MC_OK);
    }
    w->t = x->steps;
    for (int i = 0; i < x->l.nstate; i++) {
        w->state[i] = state_at(x, i, x->steps - 1, w->all[i]);
    }
    for (int i = x->l.nstate; i < x->l.nstate + x->l.ncollect; i++) {
        x->all.out[i].at = mc_moved(x->all.out[i].at, x->steps * x->all.out[i].stride);
    }
    return MC_OK;
}

#endif

/* May all steps be one piece of work of the device? */
static bool may_note(const struct loop *x)
{
    const struct mc_backend *b = x->all.body->code->backend;
    const struct mc_program *pr = &x->all.body->code->program;
    int copied[MC_MOST_RESULTS], n = 0;
    for (int j = 0; j < pr->noutput; j++) {
        copied[n] = pr->output[j];
        n += x->all.out[j].copied;
    }
    return b->resident && !x->watched && !x->l.until &&
           b->resident(x->all.body, x->all.plan,
                       &(struct mc_body_steps){ x->all.run, copied, x->all.nrun, n, x->steps });
}

static mc_status run_steps(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                           struct loop *x)
{
    const struct mc_loop *l = &x->l;
    const struct mc_backend *backend = f->code->backend;
    const struct mc_space *remote = f->code->device->space;
    struct walk w = { .even = false };
    if (may_note(x)) {
        TRY(walk(f, p, st, x, true, true, &w));
    }
#ifndef MC_RUNTIME
    if (x->nband && !x->watched) {
        TRY(walk_bands(f, p, st, x, &w));
    } else
#endif
    {
        TRY(w.even ? backend->run_noted(x->all.body, x->all.plan) : walk(f, p, st, x, false, false, &w));
    }
    TRY(w.beyond ? walk(f, p, st, x, false, true, &w) : MC_OK);
    for (int i = 0; i < l->nstate; i++) {
        const struct mc_slot *to = &p->slot[st->dst[i]];
        TRY(copy_state(f, to, w.state[i], f->ptr[st->dst[i]]));
        if (w.all[i]) {
            TRY(backend->zero(f, w.all[i] + w.t * x->bytes[i], (size_t)((x->steps - w.t) * x->bytes[i])));
        }
    }
    for (int i = 0; i < l->ncollect; i++) {
        const struct mc_port *o = &x->all.out[l->nstate + i];
        TRY(backend->zero(f, o->at, (size_t)((x->steps - w.t) * o->stride)));
    }
    if (l->until) {
        char *count = f->ptr[st->dst[st->ndst - 1]];
        if (remote) {
            return remote->put(remote, count, &w.t, sizeof w.t);
        }
        memcpy(count, &w.t, sizeof w.t);
    }
    return MC_OK;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    struct loop *x = (struct loop *)e;
    struct mc_function *b = x->all.body;
    const struct mc_backend *backend = b->code->backend;
    (void)scratch;
    b->arena = x->arena;
    b->body_plan = x->all.plan;
    x->watched = mc_steps_watched(b);
    if (backend->body) {
        backend->body(f, b);
    }
    memcpy(b->arg, x->all.arg, (size_t)x->l.body->nin * sizeof *b->arg);
    for (size_t v = 0; v < b->code->program.value.n; v++) {
        const enum mc_base base = x->all.plan->slot[v].base;
        b->ptr[v] = base == BASE_INPUT || base == BASE_OUTPUT ? NULL : backend->address(b, x->all.plan, v);
    }
    mc_status s = run_steps(f, p, &f->code->program.step.at[step], x);
    b->arena = NULL;
    memset(b->arg, 0, (size_t)x->l.body->nin * sizeof *b->arg);
    return s;
}

/* The host takes part in each step: it reads the condition, or runs a step of the body. */
static const struct mc_exec_ops ops = { .run = run, .free = loop_free },
                                on_host = { .run = run, .free = loop_free, .host = true };

/* ---- planning ---- */

/* Are there steps in which the body's input i begins at no multiple of MC_ALIGNED? */
static bool is_loose(const struct mc_slot *at, const struct mc_loop *l, int i)
{
    const bool state = i >= l->nsequence && i < l->nsequence + l->nstate;
    return at->loose || at->offset % MC_ALIGNED || (i < l->nsequence && at->strides[0] % MC_ALIGNED) ||
           (state && mc_slot_bytes(at) % MC_ALIGNED);
}

/* An array in place of the body's input i.  Elements of sequences and states must not determine sizes. */
static mc_array *argument(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                          const struct mc_loop *l, int i)
{
    const bool element = i < l->nsequence, changes = i < l->nsequence + l->nstate;
    if (l->body->key[i] && changes) {
        mc_fail(MC_EUNSUPPORTED, "sizes in the body depend on what the loop computes");
        return NULL;
    }
    return mc_body_input(f, p,
                         &(struct mc_body_input){ .value = st->src[1 + i],
                                                  .key = l->body->key[i],
                                                  .dense = changes && !element,
                                                  .loose = is_loose(&p->slot[st->src[1 + i]], l, i),
                                                  .skip = element });
}

static mc_status plan_band(struct mc_band *b, const struct mc_plan_options *o, mc_shape_plan_one *work)
{
    const size_t bytes = (size_t)b->l->body->nin * sizeof *b->arg;
    memcpy(b->body->arg, b->arg, bytes);
    b->plan = b->plan ? b->plan : mc_shape_plan_make(b->body, o, work);
    memset(b->body->arg, 0, bytes);
    return b->plan ? mc_band_read_plan(b) : mc_last_status();
}

/* The body's plan at the sizes of this loop; the body does not keep it. */
static mc_status plan_body(struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st,
                           struct loop *x, mc_shape_plan_one *work)
{
    x->all.arg = mc_calloc((size_t)x->l.body->nin + 1, sizeof *x->all.arg, "loop");
    mc_status s = x->all.arg ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < x->l.body->nin && s == MC_OK; i++) {
        x->all.arg[i] = argument(f, p, st, &x->l, i);
        s = x->all.arg[i] ? MC_OK : mc_last_status();
    }
    return s < 0 ? s : plan_band(&x->all, &p->options, work);
}

/* States must keep their sizes.  What the body computes has the types that the loop's results were given. */
static mc_status check_results(const struct mc_shape_plan *p, const struct mc_step *st, const struct loop *x)
{
    const struct mc_loop *l = &x->l;
    const struct mc_program *pr = &x->all.body->code->program;
    for (int i = 0; i < pr->noutput; i++) {
        const struct mc_type *made = &x->all.plan->slot[pr->output[i]].type;
        if (i < l->nstate) {
            const struct mc_type *before = &p->slot[st->src[1 + l->nsequence + i]].type;
            TRY(mc_type_equal(before, made) ? MC_OK
                                            : mc_types_differ(MC_ESHAPE, "scan: state", i + 1, before,
                                                              "before a step", made, "after it"));
        } else if (i < l->nstate + l->ncollect) {
            const struct mc_type *all = &p->slot[st->dst[mc_loop_collect_result(l, i - l->nstate)]].type;
            if (all->dtype != made->dtype || all->rank != made->rank + 1 ||
                !mc_dims_equal(made->rank, made->dims, made->rank, all->dims + 1)) {
                return mc_fail(MC_EINTERNAL,
                               "scan: result %d of the body has another type than that of the loop", i + 1);
            }
        } else if (made->rank || made->dtype != MC_BOOL) {
            return mc_fail(MC_EINTERNAL, "scan: the condition that ends the loop is no bool");
        }
    }
    return MC_OK;
}

static mc_status plan_ports(const struct mc_shape_plan *p, const struct mc_step *st, struct loop *x)
{
    const struct mc_loop *l = &x->l;
    const struct mc_slot *slot = p->slot;
    int64_t size = (int64_t)x->all.plan->memory;
    x->bytes = mc_calloc((size_t)l->nstate + 1, sizeof *x->bytes, "loop");
    x->buffer = mc_calloc((size_t)l->nstate + 1, sizeof *x->buffer, "loop");
    if (!x->bytes || !x->buffer) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < l->nsequence; i++) {
        x->all.in[i].stride = slot[st->src[1 + i]].strides[0];
    }
    for (int i = 0; i < l->nstate; i++) {
        x->bytes[i] = (int64_t)mc_slot_bytes(&slot[st->src[1 + l->nsequence + i]]);
        x->buffer[i] = mc_loop_rounded(size);
        size = x->buffer[i] + 2 * mc_loop_rounded(x->bytes[i]);
    }
    for (int i = 0; i < l->ncollect; i++) {
        x->all.out[l->nstate + i].stride = (int64_t)mc_slot_bytes(
            &x->all.plan->slot[x->all.body->code->program.output[l->nstate + i]]);
    }
    x->flag = mc_loop_rounded(size);
    struct mc_device *d = x->all.body->code->device;
    x->arena = d->ops->alloc(d, (size_t)(x->flag + 64), "loop");
    return x->arena ? MC_OK : mc_last_status();
}

/* Finds out how the backend can run all steps at once, and how the body's values move then. */
static mc_status plan_repeats(struct loop *x)
{
    const struct mc_backend *b = x->all.body->code->backend;
    const size_t n = x->all.body->code->program.value.n + 1;
    bool can = b->repeats && x->all.nrun == 1 && !x->l.until;
    for (int j = 0; j < x->all.body->code->program.noutput; j++) {
        can &= !x->all.out[j].copied;
    }
    if (!can) {
        return MC_OK;
    }
    int *state = mc_calloc(n, sizeof *state, "loop"); /* by value: of which state it is, plus one */
    x->move = mc_calloc(n, sizeof *x->move, "loop");
    x->turns = mc_calloc(n, sizeof *x->turns, "loop");
    if (!state || !x->move || !x->turns) {
        mc_free(state);
        return MC_EMEMORY;
    }
    for (int k = 0; k < x->all.nmoving; k++) {
        const struct mc_moving *m = &x->all.moving[k];
        const int i = m->input ? m->of - x->l.nsequence : m->of;
        const bool is_state = i >= 0 && i < x->l.nstate,
                   kept = is_state && mc_loop_kept_result(&x->l, i) >= 0;
        state[m->value] = is_state ? i + 1 : 0;
        x->move[m->value] = kept       ? x->bytes[i]
                            : is_state ? 0
                                       : (m->input ? x->all.in : x->all.out)[m->of].stride;
    }
    x->repeats = b->repeats(x->all.body, x->all.plan, x->all.run[0], state);
    for (int k = 0; k < x->all.nmoving && x->repeats == REPEATS_BY_TURNS; k++) {
        const struct mc_moving *m = &x->all.moving[k];
        const int i = state[m->value] - 1;
        if (i >= 0 && mc_loop_kept_result(&x->l, i) < 0) {
            const int64_t by = mc_loop_rounded(x->bytes[i]);
            x->move[m->value] = m->input ? by : -by;
            x->turns[m->value] = true;
        }
    }
    mc_free(state);
    return MC_OK;
}

#ifndef MC_RUNTIME

struct planning {
    const struct mc_plan_options *options;
    mc_shape_plan_one *work;
};

static mc_status plan_as(struct mc_band *b, const void *arg)
{
    const struct planning *as = arg;
    return plan_band(b, as->options, as->work);
}

/* The rows in bands, where the body allows it and it pays. */
static mc_status divide(struct loop *x, const struct mc_plan_options *o, mc_shape_plan_one *work)
{
    bool good;
    const mc_status s = mc_bands_plan(&x->all, x->steps, plan_as, &(struct planning){ o, work }, &x->band,
                                      &x->nband, &good);
    if (s == MC_OK && !good) {
        free_bands(x);
        mc_clear_error(); /* of a band that could not be planned */
    }
    return s;
}

#endif

/* with that of loops in the body, of what its solvers prepare, and of bands */
static size_t memory_of(const struct loop *x)
{
    size_t bytes = (size_t)(x->flag + 64);
#ifndef MC_RUNTIME
    bytes += mc_bands_memory(x->band, x->nband);
#endif
    for (int i = 0; i < x->all.nrun; i++) {
        const struct mc_heavy *h = x->all.plan->step[x->all.run[i]].heavy;
        bytes += x->all.plan->step[x->all.run[i]].memory +
                 (h && h->plan && h->plan->prepare ? h->plan->prepared : 0);
    }
    return bytes;
}

static bool needs_host(const struct loop *x)
{
    bool host = x->l.until;
    for (int i = 0; i < x->all.nrun; i++) {
        const struct mc_exec *e = x->all.plan->step[x->all.run[i]].exec;
        host |= e && (e->ops->host || e->ops->eager);
    }
    return host;
}

mc_status mc_loop_plan(struct mc_function *f, struct mc_shape_plan *p, int step, mc_shape_plan_one *work)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct loop *x = mc_calloc(1, sizeof *x, "loop");
    if (!x) {
        return MC_EMEMORY;
    }
    x->exec.ops = &ops;
    x->l = mc_loop_of(st->node[0]->attr);
    x->all.body = f->loop[step];
    x->all.l = &x->l;
    mc_array *steps = mc_value_array(f, p, st->src[0]);
    mc_status s = steps ? MC_OK : mc_last_status();
    if (steps) {
        x->steps = mc_load_i64(steps->dtype, steps->data);
        mc_array_unref(&steps);
    }
    s = s < 0 ? s : plan_body(f, p, st, x, work);
    s = s < 0 ? s : check_results(p, st, x);
    s = s < 0 ? s : plan_ports(p, st, x);
    s = s < 0 || !ALL_AT_ONCE ? s : plan_repeats(x);
#ifndef MC_RUNTIME
    s = s < 0 || x->repeats || f->code->program.dynamic ? s : divide(x, &p->options, work);
#endif
    if (s < 0) {
        loop_free(&x->exec);
        return s;
    }
    if (f->code->device->space && needs_host(x)) {
        x->exec.ops = &on_host;
    }
    p->step[step].exec = &x->exec;
    p->step[step].memory = memory_of(x);
    return MC_OK;
}

bool mc_loop_planned(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                     struct mc_loop_planned *out)
{
    const struct loop *x = (const struct loop *)p->step[step].exec;
    if (!x || !f->loop || !f->loop[step]) {
        return false;
    }
    *out = (struct mc_loop_planned){ .l = x->l,
                                     .body = x->all.body,
                                     .plan = x->all.plan,
                                     .steps = x->steps,
                                     .bytes = x->bytes,
                                     .buffer = x->buffer,
                                     .memory = (size_t)x->flag,
                                     .bands = x->nband };
    return true;
}
