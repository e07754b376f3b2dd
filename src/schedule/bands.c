/* bands.c: divides the rows of a loop into bands, if its body is row-wise and the backend says that it pays.
 *
 * Each band has a plan of its own, for as many rows: the same steps, by the same solvers.  Bands of the same
 * size share one.
 *
 * Invariant: the plan of a band differs from that of all rows in the size of the rows alone; else there are
 * no bands. */
#include "exec/heavy/heavy.h"
#include "schedule/band.h"

/* ---- does the plan of a band do what that of all rows does? ---- */

static bool same_numbers(const mc_array *a, const mc_array *b)
{
    return a == b || (a && b && mc_array_same_bits(a, b));
}

/* Sizes, which follow from those of the inputs; and numbers that were computed from sizes. */
static bool same_values(const struct mc_band *all, const struct mc_band *b, const int *axis, int64_t rows)
{
    const struct mc_program *pr = &all->body->code->program;
    bool same = true;
    for (size_t v = 0; v < pr->value.n && same; v++) {
        const struct mc_slot *x = &all->plan->slot[v], *y = &b->plan->slot[v];
        const bool stored = x->base != BASE_NONE && x->base != BASE_TYPE && x->base != BASE_FIXED;
        const int of = pr->value.at[v].view_of;
        same = x->base == y->base && x->index == y->index && x->own == y->own && x->inside == y->inside &&
               (of < 0 || x->own || !stored ||
                x->offset - all->plan->slot[of].offset == y->offset - b->plan->slot[of].offset);
        for (int i = 0; i < x->type.rank && stored; i++) {
            same &= y->type.rank == x->type.rank &&
                    y->type.dims[i] == (i == axis[v] ? rows : x->type.dims[i]);
        }
    }
    for (int i = 0; i < all->nrun && same; i++) {
        const struct mc_step *st = &pr->step.at[all->run[i]];
        for (int k = 0; k < st->nsrc && same; k++) {
            same = same_numbers(all->plan->slot[st->src[k]].fixed, b->plan->slot[st->src[k]].fixed);
        }
    }
    return same;
}

static bool same_steps(const struct mc_band *all, const struct mc_band *b)
{
    bool same = all->nrun == b->nrun;
    for (int i = 0; i < all->nrun && same; i++) {
        const struct mc_step_plan *x = &all->plan->step[all->run[i]], *y = &b->plan->step[all->run[i]];
        same = all->run[i] == b->run[i] && !x->epilogue && !y->epilogue && x->exec->ops == y->exec->ops;
        if (same && x->heavy) {
            const struct mc_plan *p = x->heavy->plan, *q = y->heavy->plan;
            same = p->solver == q->solver && p->solver->same_rows &&
                   p->solver->same_rows(p->problem, q->problem) && p->prepared == q->prepared &&
                   x->heavy->epilogue.by_solver == y->heavy->epilogue.by_solver;
        }
    }
    return same;
}

/* ---- planning ---- */

static struct mc_function *body_of(const struct mc_band *all)
{
    const struct mc_function *f = all->body;
    const struct mc_program *pr = &f->code->program;
    struct mc_function *b = mc_alloc(sizeof *b, "loop");
    if (!b) {
        return NULL;
    }
    *b = (struct mc_function){ .code = f->code,
                               .name = f->name,
                               .input = f->input,
                               .output = f->output,
                               .shared = f->shared,
                               .nshared = f->nshared,
                               .key = f->key,
                               .threads = 1,
                               .is_body = true,
                               .first_constant = f->first_constant,
                               .like = all->plan };
    b->ptr = mc_calloc(pr->value.n + 1, sizeof *b->ptr, "loop");
    b->arg = mc_calloc((size_t)pr->ninput + 1, sizeof *b->arg, "loop");
    return b;
}

/* Inputs like those of all rows, with the rows of the band. */
static mc_status arguments(const struct mc_band *all, struct mc_band *b, const int *axis, int64_t rows)
{
    const struct mc_program *pr = &b->body->code->program;
    b->arg = mc_calloc((size_t)b->l->body->nin + 1, sizeof *b->arg, "loop");
    if (!b->arg) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < b->l->body->nin; i++) {
        const mc_array *a = all->arg[i];
        int64_t dims[MC_MAX_RANK];
        memcpy(dims, a->dims, (size_t)a->rank * sizeof *dims);
        for (size_t v = 0; v < pr->value.n; v++) {
            if (pr->value.at[v].kind == VALUE_INPUT && pr->value.at[v].input == i && axis[v] >= 0) {
                dims[axis[v]] = rows;
            }
        }
        b->arg[i] = b->l->body->key[i]
                        ? mc_array_ref(all->arg[i])
                        : mc_array_wrap(a->dtype, a->rank, dims, a->strides, a->data, NULL, NULL);
        if (!b->arg[i]) {
            return mc_last_status();
        }
    }
    return MC_OK;
}

/* Where the first row of the band is, in inputs and results. */
static void set_ports(const struct mc_band *all, struct mc_band *b, int64_t first)
{
    const struct mc_program *pr = &b->body->code->program;
    for (int i = 0; i < b->l->body->nin; i++) {
        const mc_array *a = b->arg[i];
        const bool cut = a->rank && a->dims[0] != all->arg[i]->dims[0];
        b->in[i].first = cut ? first * a->strides[0] : 0;
        b->in[i].stride = all->in[i].stride;
    }
    for (int j = 0; j < pr->noutput; j++) {
        const struct mc_slot *at = &all->plan->slot[pr->output[j]];
        b->out[j].first = first * ((int64_t)mc_slot_bytes(at) / at->type.dims[0]);
        b->out[j].stride = all->out[j].stride;
    }
}

/* A band of rows [first, first + rows).  like: a band of as many rows, whose plan it shares; or NULL. */
static mc_status plan_band(const struct mc_band *all, struct mc_band *b, const int *axis,
                           const struct mc_band *like, int64_t first, int64_t rows, mc_band_planner *plan,
                           const void *arg)
{
    struct mc_device *d = all->body->code->device;
    b->l = all->l;
    b->body = body_of(all);
    if (!b->body || !b->body->ptr || !b->body->arg) {
        return MC_EMEMORY;
    }
    b->plan = like ? like->plan : NULL;
    b->shares = like != NULL;
    TRY(arguments(all, b, axis, rows));
    TRY(plan(b, arg));
    memcpy(b->body->arg, b->arg, (size_t)b->l->body->nin * sizeof *b->arg);
    set_ports(all, b, first);
    b->body->arena = d->ops->alloc(d, b->plan->memory + 64, "loop");
    if (!b->body->arena) {
        return mc_last_status();
    }
    for (size_t v = 0; v < b->body->code->program.value.n; v++) {
        const enum mc_base base = b->plan->slot[v].base;
        b->body->ptr[v] = base == BASE_INPUT || base == BASE_OUTPUT
                              ? NULL
                              : b->body->code->backend->address(b->body, b->plan, v);
    }
    return MC_OK;
}

/* n bands, or none: *good says which. */
static mc_status plan_bands(const struct mc_band *all, const int *axis, mc_band_planner *plan,
                            const void *arg, struct mc_band *list, int n, bool *good)
{
    const int64_t all_rows = all->plan->slot[all->body->code->program.output[0]].type.dims[0];
    *good = true;
    for (int k = 0; k < n && *good; k++) {
        const int64_t first = all_rows * k / n, rows = all_rows * (k + 1) / n - first;
        const struct mc_band *like = NULL;
        for (int j = 0; j < k && !like; j++) {
            like = all_rows * (j + 1) / n - all_rows * j / n == rows ? &list[j] : NULL;
        }
        const mc_status s = plan_band(all, &list[k], axis, like, first, rows, plan, arg);
        if (s == MC_EMEMORY) {
            return s;
        }
        *good = s == MC_OK && (like || (same_values(all, &list[k], axis, rows) && same_steps(all, &list[k])));
    }
    return MC_OK;
}

mc_status mc_bands_plan(const struct mc_band *all, int64_t steps, mc_band_planner *plan, const void *arg,
                        struct mc_band **list, int *n, bool *good)
{
    const struct mc_program *pr = &all->body->code->program;
    const struct mc_backend *backend = all->body->code->backend;
    *good = backend->bands && steps > 1 && all->nrun > 0;
    if (!*good) {
        return MC_OK;
    }
    int *axis = mc_alloc((pr->value.n + 1) * sizeof *axis, "loop");
    mc_status s = axis ? mc_row_axes(all, axis, good) : MC_EMEMORY;
    const int most = s == MC_OK && *good
                         ? backend->bands(all->body, all->plan,
                                          &(struct mc_body_steps){ all->run, NULL, all->nrun, 0, steps },
                                          all->plan->slot[pr->output[0]].type.dims[0])
                         : 0;
    *good = most > 1;
    if (*good) {
        *list = mc_calloc((size_t)most, sizeof **list, "loop");
        *n = *list ? most : 0;
        s = *list ? plan_bands(all, axis, plan, arg, *list, most, good) : MC_EMEMORY;
    }
    mc_free(axis);
    return s;
}

/* ---- for the loop ---- */

/* What solvers prepare does not depend on the rows (struct mc_solver, same_rows). */
void mc_band_share(const struct mc_band *b, const struct mc_band *all)
{
    for (int i = 0; i < b->nrun; i++) {
        struct mc_heavy *h = b->plan->step[b->run[i]].heavy;
        if (h) {
            h->prepared = all->plan->step[b->run[i]].heavy->prepared;
        }
    }
}

void mc_band_unshare(struct mc_band *b)
{
    for (int i = 0; b->plan && !b->shares && i < b->nrun; i++) {
        struct mc_heavy *h = b->plan->step[b->run[i]].heavy;
        if (h) {
            h->prepared = NULL;
        }
    }
    b->plan = b->shares ? NULL : b->plan;
}

void mc_band_body_free(struct mc_function *body)
{
    if (body) {
        body->code->device->ops->free(body->code->device, body->arena);
        mc_free(body->ptr);
        mc_free(body->arg);
        mc_free(body);
    }
}

size_t mc_bands_memory(const struct mc_band *list, int n)
{
    size_t bytes = 0;
    for (int k = 0; k < n; k++) {
        bytes += list[k].plan->memory + 64;
    }
    return bytes;
}
