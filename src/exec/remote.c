/* remote.c: values in memory that the host cannot address.  Constants are copied once for each shape plan,
 * inputs that the device reads at every call, and when a plan has moved (schedule/moves.c) the values of plan
 * time that have changed, with the numbers that say where parts begin; results are copied back when they are
 * asked for.  The device is used through its functions alone.
 *
 * Invariant: values in that memory are contiguous, except views of them. */
#include "exec/remote.h"

enum { LINE = 256 };

/* ---- planning ---- */

static size_t rounded(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

static void note_offsets(const struct mc_shape_plan *p, struct mc_remote *q)
{
    for (int i = 0; i < q->nmoving; i++) {
        q->offset[i] = p->step[q->moving[i]].moving->offset;
    }
}

/* Copies constants and values computed at plan time to one block of device memory, each contiguous, and the
 * offsets of parts that move. */
static mc_status upload_constants(struct mc_function *f, struct mc_shape_plan *p, struct mc_remote *q)
{
    const struct mc_program *pr = &f->code->program;
    size_t total = 0;
    for (size_t v = 0; v < pr->value.n; v++) {
        struct mc_slot *at = &p->slot[v];
        q->at[v] = -1;
        if (at->base == BASE_FIXED && at->fixed) {
            q->at[v] = (int64_t)total;
            total += rounded(mc_slot_bytes(at));
        }
    }
    const size_t starts = total;
    total += rounded((size_t)q->nmoving * sizeof *q->offset);
    char *host = total ? mc_calloc(1, total, "constants") : NULL;
    q->fixed = host ? f->code->device->ops->alloc(f->code->device, total, "constants") : NULL;
    mc_status s = !total || q->fixed ? MC_OK : mc_last_status();
    for (size_t v = 0; v < pr->value.n && s == MC_OK && total; v++) {
        struct mc_slot *at = &p->slot[v];
        if (q->at[v] < 0) {
            continue;
        }
        mc_array *dense = mc_array_wrap(at->type.dtype, at->type.rank, at->type.dims, NULL, host + q->at[v],
                                        NULL, NULL);
        s = dense ? mc_array_assign(dense, at->fixed) : mc_last_status();
        mc_array_unref(&dense);
        mc_contiguous_strides(at->type.dtype, at->type.rank, at->type.dims, at->strides);
        at->offset = 0;
    }
    if (q->nmoving && s == MC_OK) {
        memcpy(host + starts, q->offset, (size_t)q->nmoving * sizeof *q->offset);
        q->starts = q->fixed + starts;
    }
    s = s == MC_OK && total ? mc_remote_put(f, q->fixed, host, total) : s;
    mc_free(host);
    return s;
}

static int64_t input_bytes(const struct mc_function *f, int i)
{
    return (int64_t)rounded((size_t)mc_array_size(f->arg[i]) * mc_dtypes[f->arg[i]->dtype].size);
}

size_t mc_remote_inputs(const struct mc_function *f)
{
    int64_t bytes = 0;
    for (int i = 0; i < f->code->program.ninput; i++) {
        bytes += input_bytes(f, i);
    }
    return (size_t)bytes;
}

/* Is v the value `from`, or is that a view of it? */
static bool leads_to(const struct mc_program *pr, int from, int v)
{
    while (from >= 0 && from != v) {
        from = pr->value.at[from].view_of;
    }
    return from >= 0;
}

/* Does the device read value v?  Not if it only says what sizes are, or where slices begin. */
static bool device_reads(const struct mc_program *pr, const struct mc_shape_plan *p, int v)
{
    bool reads = false;
    for (int i = 0; i < pr->noutput + pr->nupdate && !reads; i++) {
        reads = leads_to(pr, i < pr->noutput ? pr->output[i] : pr->update[i - pr->noutput], v);
    }
    for (size_t i = 0; i < pr->step.n && !reads; i++) {
        const struct mc_step *st = &pr->step.at[i];
        const bool works = st->kind == STEP_KERNEL || st->kind == STEP_HEAVY || st->kind == STEP_HOST,
                   copies = st->kind == STEP_VIEW && p->slot[st->dst[0]].own,
                   sets = mc_step_sets_part(st) && mc_part_is_known(pr, st);
        for (int k = 0; k < (sets ? 2 : works ? st->nsrc : copies) && !reads; k++) {
            reads = leads_to(pr, st->src[k], v);
        }
    }
    return reads;
}

static mc_status find_moving(const struct mc_program *pr, const struct mc_shape_plan *p, struct mc_remote *q)
{
    q->moving = mc_calloc(pr->step.n + 1, sizeof *q->moving, "plan");
    q->offset = mc_calloc(pr->step.n + 1, sizeof *q->offset, "plan");
    q->renewed = mc_calloc(pr->value.n + 1, sizeof *q->renewed, "plan");
    if (!q->moving || !q->offset || !q->renewed) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < (int)pr->step.n; i++) {
        if (p->step[i].moving && !mc_step_is_ahead(p, i)) {
            q->moving[q->nmoving++] = i;
        }
    }
    for (int v = 0; v < (int)pr->value.n && p->again; v++) {
        q->renewed[v] = p->again[v] && p->slot[v].base == BASE_FIXED && device_reads(pr, p, v);
    }
    note_offsets(p, q);
    q->sent = p->moved;
    return MC_OK;
}

const int64_t *mc_remote_start(const struct mc_shape_plan *p, int step)
{
    const struct mc_remote *q = mc_remote_of(p);
    int i = 0;
    while (i < q->nmoving && q->moving[i] != step) {
        i++;
    }
    return i < q->nmoving ? (const int64_t *)(const void *)q->starts + i : NULL;
}

mc_status mc_remote_plan(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    struct mc_remote *q = p->own ? p->own : mc_calloc(1, sizeof *q, "plan");
    p->own = q;
    if (!q) {
        return MC_EMEMORY;
    }
    q->at = mc_calloc(pr->value.n + 1, sizeof *q->at, "plan");
    q->slot = mc_calloc((size_t)pr->ninput + 1, sizeof *q->slot, "plan");
    q->read = mc_calloc((size_t)pr->ninput + 1, sizeof *q->read, "plan");
    if (!q->at || !q->slot || !q->read) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < pr->ninput; i++) {
        const int v = pr->value_of[pr->input[i]->id];
        q->read[i] = pr->dynamic || v < 0 || device_reads(pr, p, v);
        q->slot[i + 1] = q->slot[i] + input_bytes(f, i);
    }
    TRY(find_moving(pr, p, q));
    return upload_constants(f, p, q);
}

void mc_remote_forget(struct mc_function *f, struct mc_shape_plan *p)
{
    struct mc_remote *q = p->own;
    if (q) {
        f->code->device->ops->free(f->code->device, q->fixed);
        mc_free(q->at);
        mc_free(q->slot);
        mc_free(q->read);
        mc_free(q->moving);
        mc_free(q->offset);
        mc_free(q->renewed);
        mc_free(q);
    }
}

/* ---- copying ---- */

bool mc_remote_is(const struct mc_function *f, const mc_array *a)
{
    return mc_array_space(a) == f->code->device->space;
}

static mc_status send_value(const struct mc_function *f, const struct mc_shape_plan *p, int v)
{
    const struct mc_remote *q = mc_remote_of(p);
    mc_array *dense = mc_array_is_contiguous(p->slot[v].fixed) ? mc_array_ref(p->slot[v].fixed)
                                                               : mc_array_copy(p->slot[v].fixed);
    const size_t bytes = mc_slot_bytes(&p->slot[v]);
    mc_status s = !dense  ? mc_last_status()
                  : bytes ? mc_remote_put(f, q->fixed + q->at[v], dense->data, bytes)
                          : MC_OK;
    mc_array_unref(&dense);
    return s;
}

/* What has changed since the plan moved. */
static mc_status send_moved(const struct mc_function *f, const struct mc_shape_plan *p)
{
    struct mc_remote *q = mc_remote_of(p);
    if (q->sent == p->moved) {
        return MC_OK;
    }
    note_offsets(p, q);
    TRY(q->nmoving ? mc_remote_put(f, q->starts, q->offset, (size_t)q->nmoving * sizeof *q->offset) : MC_OK);
    for (int v = 0; v < (int)f->code->program.value.n; v++) {
        TRY(q->renewed[v] ? send_value(f, p, v) : MC_OK);
    }
    q->sent = p->moved;
    return MC_OK;
}

mc_status mc_remote_upload_inputs(struct mc_function *f, const struct mc_shape_plan *p)
{
    TRY(send_moved(f, p));
    for (int i = 0; i < f->code->program.ninput; i++) {
        const mc_array *a = f->arg[i];
        size_t n = (size_t)mc_array_size(a) * mc_dtypes[a->dtype].size;
        if (!mc_remote_is(f, a) && n && mc_remote_of(p)->read[i]) {
            TRY(mc_remote_put(f, f->arena + mc_remote_of(p)->slot[i], a->data, n));
        }
    }
    return MC_OK;
}

char *mc_remote_address(const struct mc_function *f, const struct mc_shape_plan *p, size_t v)
{
    const struct mc_slot *at = &p->slot[v];
    switch (at->base) {
    case BASE_ARENA: return f->arena + at->offset;
    case BASE_INPUT:
        return (mc_remote_is(f, f->arg[at->index]) ? f->arg[at->index]->data
                                                   : f->arena + mc_remote_of(p)->slot[at->index]) +
               at->offset;
    case BASE_SHARED: return f->shared[at->index]->value->data + at->offset;
    case BASE_FIXED: return mc_remote_of(p)->fixed + mc_remote_of(p)->at[v];
    case BASE_OUTPUT: return f->result[at->index]->data + at->offset;
    case BASE_NONE:
    case BASE_TYPE: break;
    }
    return NULL;
}

/* Copies a value to a contiguous array on the host or the device. */
static mc_status fill(struct mc_function *f, const struct mc_shape_plan *p, int value, mc_array *to)
{
    const struct mc_slot *at = &p->slot[value];
    const struct mc_type *t = &at->type;
    if (mc_array_size(to) == 0 || to->data == f->ptr[value]) {
        return MC_OK; /* empty, or made there */
    }
    if (mc_remote_is(f, to)) {
        return f->code->backend->copy(f, at, f->ptr[value], to->data);
    }
    if (mc_slot_contiguous(at)) {
        return mc_remote_get(f, to->data, f->ptr[value], mc_slot_bytes(at));
    }
    mc_array *view = mc_array_wrap(t->dtype, t->rank, t->dims, at->strides, f->ptr[value], NULL, NULL),
             *near = NULL;
    if (view) {
        view->storage->space = f->code->device->space;
        near = mc_array_on_host(view);
    }
    mc_status s = near ? mc_array_assign(to, near) : mc_last_status();
    mc_array_unref(&view);
    mc_array_unref(&near);
    return s;
}

mc_array *mc_remote_fetch(struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    const struct mc_type *t = &p->slot[value].type;
    mc_array *a = mc_array_empty(t->dtype, t->rank, t->dims);
    if (a && fill(f, p, value, a) < 0) {
        mc_array_unref(&a);
    }
    return a;
}

mc_status mc_remote_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a)
{
    const struct mc_slot *at = &p->slot[value];
    mc_array *dense = a->dtype != at->type.dtype  ? mc_array_cast(a, at->type.dtype)
                      : mc_array_is_contiguous(a) ? mc_array_ref(a)
                                                  : mc_array_copy(a);
    mc_status s = dense ? MC_OK : mc_last_status();
    size_t n = dense ? (size_t)mc_array_size(dense) * mc_dtypes[dense->dtype].size : 0;
    if (n) { /* results of steps are contiguous */
        s = mc_remote_put(f, f->ptr[value], dense->data, n);
    }
    mc_array_unref(&dense);
    return s;
}

mc_array *mc_remote_copy_on_device(struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    const struct mc_slot *at = &p->slot[value];
    mc_array *a = f->code->device->ops->array(f->code->device, at->type.dtype, at->type.rank, at->type.dims);
    mc_status s = !a                 ? mc_last_status()
                  : mc_array_size(a) ? f->code->backend->copy(f, at, f->ptr[value], a->data)
                                     : MC_OK;
    if (s < 0) {
        mc_array_unref(&a);
    }
    return a;
}

static void free_nothing(void *arg)
{
    (void)arg;
}

static bool may_borrow(const struct mc_function *f, const struct mc_shape_plan *p, int output)
{
    const struct mc_slot *at = &p->slot[f->code->program.output[output]];
    return f->output[output].borrow && f->output[output].on_device && at->base == BASE_ARENA &&
           mc_slot_contiguous(at) && !mc_flag_int(FLAG_allow_gc);
}

/* A view of the arena, valid until the next call.  The last call's array is reused if it is the same. */
static mc_array *borrow_view(struct mc_function *f, const struct mc_shape_plan *p, int output)
{
    int value = f->code->program.output[output];
    const struct mc_slot *at = &p->slot[value];
    mc_array *old = f->borrowed[output];
    if (!old || old->data != f->ptr[value] || old->dtype != at->type.dtype ||
        !mc_dims_equal(old->rank, old->dims, at->type.rank, at->type.dims)) {
        mc_array_unref(&f->borrowed[output]);
        f->borrowed[output] = mc_array_wrap(at->type.dtype, at->type.rank, at->type.dims, NULL, f->ptr[value],
                                            free_nothing, NULL);
        if (f->borrowed[output]) {
            f->borrowed[output]->storage->space = f->code->device->space;
        }
    }
    return f->borrowed[output] ? mc_array_ref(f->borrowed[output]) : NULL;
}

/* Makes or checks the destination of a result before anything runs. */
mc_status mc_remote_result_make(struct mc_function *f, const struct mc_shape_plan *p, int i,
                                const mc_arg *out)
{
    const struct mc_type *t = &p->slot[f->code->program.output[i]].type;
    const bool wanted = mc_result_wanted(out),
               direct = p->slot[f->code->program.output[i]].base == BASE_OUTPUT;
    TRY(wanted ? mc_result_given(f, i, out, t->dtype, t->rank, t->dims) : MC_OK);
    return direct || (wanted && !may_borrow(f, p, i)) ? mc_result_array(f, p, i, out) : MC_OK;
}

mc_status mc_remote_result_take(struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    if (f->result[i]) {
        return fill(f, p, f->code->program.output[i], f->result[i]);
    }
    f->result[i] = borrow_view(f, p, i);
    return f->result[i] ? MC_OK : mc_last_status();
}
