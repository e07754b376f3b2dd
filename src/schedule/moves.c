/* moves.c: views whose start is a value of the call, such as x[i * b:(i + 1) * b], and parts that are set or
 * added to at such a start.  A plan is good for every i that gives the same sizes: a call with another i
 * moves the views and parts of its plan, and plans nothing.
 *
 * A plan moves if all sizes and strides stay what they are and the values that it depends on otherwise
 * (`pinned`) are the same.  Where a slice is clipped its size is another, so it has its own plan.
 *
 * Where the host cannot address memory, as on a GPU, a captured call has no address that depends on i:
 *
 *   slices of inputs and variables    copied to a fixed place of the arena before the other steps, by one
 *                                     launch of a few microseconds before the replay
 *   slices of computed values         copied there by their steps
 *   parts that are set or added to    written by their steps, in the memory of the old value if nothing else
 *                                     reads that (in_place.c, memory.c)
 *
 * A step reads from memory where its view or part begins: a number that the host finds, clipped and checked
 * as for a new plan, and sends ahead of the call if the plan has moved (mc_remote_start).  So are values of
 * plan time that kernels read.  The alternative costs more: a changed parameter of each kernel that reads the
 * slice is a call of the driver for each, which libraries' kernels do not allow.  A backend whose steps read
 * no such number (`starts` of its row) pins the bounds of slices of computed values.
 *
 * Where a part is may also be a result, or a variable that the call changes.  Then a kernel finds it in the
 * GPU's memory (region.cu), and nothing moves.
 *
 * Invariant: a plan that cannot be moved is left as it was. */
#include "schedule/schedule.h"

struct move {
    int step;
    bool starts;                /* its own bounds depend on the call's values */
    /* where a step's `moving` points: the view, from the start of its source; or the part that is set */
    struct mc_slot view;
    struct mc_slot old_slot, old_view; /* while the plan moves: what a failure restores */
};
struct mc_moves {
    struct mc_exec copy;        /* of every step that is ahead */
    struct move *move;          /* in the order of steps */
    int n;
    /* by value: it follows from inputs' elements; the plan is for these alone; it follows, or views such */
    bool *depends, *pinned, *again;
};

/* ---- what may move ---- */

struct finder { const struct mc_function *f; struct mc_moves *m; };

/* sizes: x determines sizes; else its elements are read, of inputs where each call puts them.  What has no
 * memory of its own follows from its inputs. */
static void pin_under(struct finder *d, const mc_node *x, bool sizes)
{
    const struct mc_program *pr = &d->f->code->program;
    const int v = pr->value_of[x->id];
    if (v >= 0) {
        d->m->pinned[v] |= d->m->depends[v] && (sizes || pr->value.at[v].kind != VALUE_INPUT);
        return;
    }
    for (int i = 0; i < x->nin; i++) {
        pin_under(d, x->in[i], true);
    }
}

static bool computes(const struct mc_step *st, const mc_node *x)
{
    int i = 0;
    while (i < st->nnode && st->node[i] != x) {
        i++;
    }
    return i < st->nnode;
}

/* Pins what node n of the step reads: elements that determine sizes; all elements if `data`. */
static void pin_inputs(struct finder *d, const struct mc_step *st, const mc_node *n, bool data)
{
    for (int i = 0; n && i < n->nin; i++) {
        const int v = d->f->code->program.value_of[n->in[i]->id];
        const bool sizes = mc_is_shape_arg(n, i);
        if (v < 0 ? !computes(st, n->in[i]) : data || sizes) {
            pin_under(d, n->in[i], sizes);
        }
    }
}

static void pin_step(struct finder *d, const struct mc_step *st)
{
    const bool data = !st->kernel; /* kernels read elements where each call puts them; other data is rare */
    for (int i = 0; i < st->nnode; i++) {
        pin_inputs(d, st, st->node[i], data);
    }
    pin_inputs(d, st, st->heavy, data);
}

static bool reads(const struct mc_step *st, const bool *set, int first)
{
    bool so = false;
    for (int i = first; i < st->nsrc; i++) {
        so |= set[st->src[i]];
    }
    return so;
}

/* Returns whether the step is to be done again when the plan moves. */
static bool follows(struct finder *d, const struct mc_step *st)
{
    const mc_node *n = st->node[0];
    bool *depends = d->m->depends, *again = d->m->again;
    if (st->kind == STEP_PLAN_TIME) {
        return again[st->dst[0]] = depends[st->dst[0]] = !mc_reads_type_only(n) && reads(st, depends, 0);
    }
    if (st->kind == STEP_VIEW) {
        return again[st->dst[0]] = again[st->src[0]] || reads(st, depends, 1);
    }
    if (mc_step_sets_part(st)) {
        return reads(st, depends, 2); /* the reference reads the bounds at every call */
    }
    pin_step(d, st);
    return false;
}

static void find_leaves(struct finder *d)
{
    const struct mc_program *pr = &d->f->code->program;
    for (size_t v = 0; v < pr->value.n; v++) {
        const struct mc_value *x = &pr->value.at[v];
        d->m->depends[v] = x->kind == VALUE_INPUT && pr->key_input[x->input];
    }
}

#ifndef MC_RUNTIME /* the host addresses all memory there */
static mc_status copy_ahead(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                            char *scratch);
static const struct mc_exec_ops ahead = { .run = copy_ahead, .ahead = true };
#endif

static bool has_key(const struct mc_program *pr)
{
    bool any = false;
    for (int i = 0; i < pr->ninput; i++) {
        any |= pr->key_input[i];
    }
    return any && !pr->dynamic;
}

mc_status mc_moves_find(const struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    if (!has_key(pr)) {
        return MC_OK;
    }
    struct mc_moves *m = p->moves = mc_calloc(1, sizeof *m, "plan");
    struct finder d = { f, m };
    if (m) {
#ifndef MC_RUNTIME
        m->copy.ops = &ahead;
#endif
        m->move = mc_calloc(pr->step.n + 1, sizeof *m->move, "plan");
        m->depends = mc_calloc(pr->value.n + 1, sizeof *m->depends, "plan");
        m->pinned = mc_calloc(pr->value.n + 1, sizeof *m->pinned, "plan");
        p->again = m->again = mc_calloc(pr->value.n + 1, sizeof *m->again, "plan");
    }
    const bool good = m && m->move && m->depends && m->pinned && m->again;
    if (good) {
        find_leaves(&d);
    }
    for (size_t i = 0; i < pr->step.n && good; i++) {
        const struct mc_step *st = &pr->step.at[i];
        if (follows(&d, st)) {
            m->move[m->n++] = (struct move){ .step = (int)i,
                                             .starts = st->kind == STEP_VIEW && reads(st, m->depends, 1) };
        }
    }
    return good ? MC_OK : MC_EMEMORY;
}

void mc_moves_free(struct mc_shape_plan *p)
{
    if (p->moves) {
        mc_free(p->moves->move);
        mc_free(p->moves->depends);
        mc_free(p->moves->pinned);
        mc_free(p->moves->again);
        mc_free(p->moves);
    }
}

#ifndef MC_RUNTIME
static struct move *move_of(const struct mc_shape_plan *p, int step)
{
    for (int i = 0; p->moves && i < p->moves->n; i++) {
        if (p->moves->move[i].step == step) {
            return &p->moves->move[i];
        }
    }
    return NULL;
}

/* ---- copies before the other steps ---- */

static mc_status copy_ahead(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                            char *scratch)
{
    const struct mc_slot *view = p->step[step].moving;
    const struct mc_step *st = &f->code->program.step.at[step];
    (void)e;
    (void)scratch;
    return mc_slot_bytes(view) == 0
               ? MC_OK
               : f->code->backend->copy(f, view, f->ptr[st->src[0]] + view->offset, f->ptr[st->dst[0]]);
}

/* Is value v in memory before the first step, at a place that is known by then? */
static bool known_before(const struct mc_function *f, const struct mc_shape_plan *p, int v)
{
    const struct mc_program *pr = &f->code->program;
    v = mc_memory_of(pr, p, v);
    return pr->value.at[v].kind == VALUE_INPUT || pr->value.at[v].kind == VALUE_SHARED ||
           (p->slot[v].own && mc_step_is_ahead(p, pr->value.at[v].step));
}

void mc_moves_slice(const struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_slot *to = &p->slot[st->dst[0]];
    struct move *m = f->code->device->space ? move_of(p, step) : NULL;
    if (!m || !m->starts || to->base == BASE_FIXED) {
        return;
    }
    const bool early = f->code->backend->copy && known_before(f, p, st->src[0]);
    if (!early && !f->code->backend->starts) {
        for (int i = 1; i < st->nsrc; i++) {
            p->moves->pinned[st->src[i]] |= p->moves->depends[st->src[i]];
        }
        return;
    }
    m->view = *to;
    m->view.offset = to->offset - p->slot[st->src[0]].offset;
    p->step[step].moving = &m->view;
    p->step[step].exec = early ? &p->moves->copy : p->step[step].exec;
    mc_slot_set(to, &m->view.type);
    to->own = true;
    to->offset = 0;
}

mc_status mc_moves_part(const struct mc_function *f, struct mc_shape_plan *p, int step)
{
    struct move *m = f->code->backend->starts ? move_of(p, step) : NULL;
    const mc_status s = m ? mc_part_of(f, p, step, &m->view) : MC_EUNSUPPORTED;
    p->step[step].moving = s == MC_EUNSUPPORTED ? NULL : &m->view;
    return s == MC_EUNSUPPORTED ? MC_OK : s;
}
#endif

/* ---- moving ---- */

static bool same_contents(const struct mc_array *a, const struct mc_array *b)
{
    const size_t bytes = (size_t)mc_array_size(a) * mc_dtypes[a->dtype].size;
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0; /* made at plan time: contiguous */
}

static bool same_view(const struct mc_slot *a, const struct mc_slot *b)
{
    return mc_type_equal(&a->type, &b->type) &&
           mc_dims_equal(a->type.rank, a->strides, b->type.rank, b->strides);
}

/* The step again, for the values in f->arg.  Of a view only the place may change. */
static bool again(struct mc_function *f, struct mc_shape_plan *p, struct move *m)
{
    const struct mc_step *st = &f->code->program.step.at[m->step];
    struct mc_slot *slot = &p->slot[st->dst[0]], *old = &m->old_slot;
    *old = *slot;
    m->old_view = m->view;
    slot->fixed = NULL;
    if (mc_shape_plan_step(f, p, m->step) < 0) {
        return false;
    }
    if (st->kind == STEP_PLAN_TIME) {
        return mc_type_equal(&slot->type, &old->type) &&
               (!p->moves->pinned[st->dst[0]] || same_contents(slot->fixed, old->fixed));
    }
    const bool sent = slot->base == BASE_FIXED && f->code->device->space; /* contiguous there */
    if (st->kind == STEP_VIEW && !(sent ? mc_type_equal(&slot->type, &old->type) : same_view(slot, old))) {
        return false;
    }
    const struct mc_slot now = *slot;
    *slot = *old;
    if (st->kind == STEP_VIEW && !old->own) {
        slot->offset = now.offset;
        slot->fixed = now.fixed;
    }
    return !p->step[m->step].moving || same_view(&m->view, &m->old_view);
}

static void drop(struct mc_array *a, const struct mc_array *kept)
{
    if (a != kept) {
        mc_array_unref(&a);
    }
}

/* Ends the moves before move n: the new places are kept or given up. */
static void finish(const struct mc_function *f, struct mc_shape_plan *p, int n, bool keep)
{
    for (int i = n; i-- > 0;) {
        struct move *m = &p->moves->move[i];
        struct mc_slot *slot = &p->slot[f->code->program.step.at[m->step].dst[0]];
        drop(keep ? m->old_slot.fixed : slot->fixed, keep ? slot->fixed : m->old_slot.fixed);
        if (!keep) {
            *slot = m->old_slot;
            m->view = m->old_view;
        }
        m->old_slot.fixed = NULL;
    }
}

bool mc_moves_pin(const struct mc_function *f, const struct mc_shape_plan *p, int input)
{
    const int v = f->code->program.value_of[f->code->program.input[input]->id];
    return !p->moves || v < 0 || p->moves->pinned[v];
}

bool mc_moves_make(struct mc_function *f, struct mc_shape_plan *p)
{
    bool good = p->moves != NULL;
    int n = 0;
    while (good && n < p->moves->n) {
        good = again(f, p, &p->moves->move[n++]);
    }
    if (p->moves) {
        finish(f, p, n, good);
    }
    p->moved += good;
    return good;
}
