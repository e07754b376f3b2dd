/* copy_step.c: GPU steps that are neither kernels nor solver steps: views that must be copied, joins,
 * indexing by arrays, subtensors that are set or added to.  Each is a list of copies, optionally followed by
 * a region (index_step.c).
 *
 * Invariant: everything is prepared once for each shape plan.  Running only launches, so it can be captured.
 * A step that is not prepared here runs by the reference. */
#include "exec/cuda/copy_step.h"

/* index positions that may be equal: finding equal ones compares each with each */
enum { MOST_INDICES = 1 << 17 };

/* ---- copies ---- */

/* Adds a copy of value src, with strides in bytes, to dst from byte `at` on, with strides in elements. */
static mc_status add_copy(struct mc_copy_step *w, const struct mc_slot *from, const int64_t *from_strides,
                          int src, int dst, int64_t at, int rank, const int64_t *size,
                          const int64_t *to_stride)
{
    struct mc_cuda_layout l = { .to = from->type.dtype, .from = from->type.dtype, .rank = rank };
    struct mc_copy_step_part p = { .src = src, .dst = dst, .at = at };
    int64_t bytes = (int64_t)mc_dtypes[l.from].size, dense = 1;
    bool plain = true;
    for (int a = rank; a-- > 0;) {
        l.size[a] = size[a];
        l.to_stride[a] = to_stride[a];
        l.from_stride[a] = from_strides[a] / bytes;
        plain &= size[a] == 1 || (l.to_stride[a] == dense && l.from_stride[a] == dense);
        dense *= size[a];
    }
    p.layout = l;
    if (plain) {
        p.bytes = (size_t)(dense * bytes);
    } else {
        p.copy = mc_cuda_copy_new(&l);
        if (!p.copy) {
            return mc_last_status();
        }
    }
    if (!VEC_PUSH(w->part, p)) {
        mc_cuda_copy_free(p.copy);
        return MC_EMEMORY;
    }
    return MC_OK;
}

void mc_copy_step_strides(int rank, const int64_t *dims, int64_t *stride)
{
    int64_t n = 1;
    for (int a = rank; a-- > 0;) {
        stride[a] = n;
        n *= dims[a];
    }
}

int mc_copy_step_value(const struct mc_function *f, const mc_node *n)
{
    return f->code->program.value_of[n->id];
}

static bool is_on_device(const struct mc_shape_plan *p, int v)
{
    return v >= 0 && p->slot[v].base != BASE_NONE && p->slot[v].base != BASE_TYPE;
}

/* A copy of a whole value to contiguous memory; dst may have another shape with as many elements. */
mc_status mc_copy_step_whole(struct mc_copy_step *w, const struct mc_shape_plan *p, int src, int dst)
{
    const struct mc_slot *from = &p->slot[src];
    int64_t stride[MC_MAX_RANK];
    mc_copy_step_strides(from->type.rank, from->type.dims, stride);
    return add_copy(w, from, from->strides, src, dst, 0, from->type.rank, from->type.dims, stride);
}

/* Copies operands one after the other along the axis; stack: along an axis that they do not have. */
static mc_status plan_concatenation(struct mc_function *f, const struct mc_shape_plan *p,
                                    const struct mc_step *st,
                                    struct mc_copy_step *w)
{
    const mc_node *n = st->node[0];
    const struct mc_type *to = &p->slot[st->dst[0]].type;
    bool stack = n->op->form == FORM_STACK;
    int64_t stride[MC_MAX_RANK], at = 0;
    int axis;
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), to->rank, &axis));
    mc_copy_step_strides(to->rank, to->dims, stride);
    for (int i = 0; i < n->nin; i++) {
        int v = mc_copy_step_value(f, n->in[i]);
        const struct mc_type *x = &p->slot[v].type;
        int64_t mine[MC_MAX_RANK];
        for (int a = 0; a < x->rank; a++) {
            mine[a] = stride[a + (stack && a >= axis)];
        }
        TRY(add_copy(w, &p->slot[v], p->slot[v].strides, v, st->dst[0],
                     at * stride[axis] * (int64_t)mc_dtypes[to->dtype].size, x->rank, x->dims, mine));
        at += stack ? 1 : x->dims[axis];
    }
    return MC_OK;
}

/* ---- the table ---- */

static const struct way {
    enum mc_op_form form;
    mc_copy_step_make *make;
    bool checks;                /* checks indices */
} ways[] = {
    { FORM_JOIN,             plan_concatenation },
    { FORM_STACK,            plan_concatenation },
    { FORM_GATHER,           mc_region_take, true },
    { FORM_GATHER_UPDATE,    mc_region_set,  true },
    { FORM_SUBTENSOR_UPDATE, mc_region_part },
};

static const struct way *find_method(const struct mc_step *st)
{
    for (size_t i = 0; i < NELEM(ways) && st->kind == STEP_HOST && st->nnode == 1; i++) {
        if (st->node[0]->op->form == ways[i].form) {
            return &ways[i];
        }
    }
    return NULL;
}

bool mc_copy_step_can(const struct mc_program *pr, const struct mc_step *st, bool *checks)
{
    const struct way *y = find_method(st);
    *checks |= y && (y->checks || (mc_step_sets_part(st) && !mc_part_is_known(pr, st)));
    return y != NULL;
}

/* The host runs the step, unless the flag cuda.host forbids that. */
static mc_status refuse_step(const struct mc_function *f, int step)
{
    if (mc_flag_int(FLAG_cuda_host)) {
        return MC_OK;
    }
    const char *why = f->code->program.step.at[step].reason;
    return mc_fail(MC_EUNSUPPORTED,
                   "%s: step %d would run on the host, which the flag cuda.host forbids: %s\n    in %.400s",
                   f->name, step, *why ? why : "not at this shape", mc_step_text(f->code, step));
}

/* Where a part is may be known at plan time alone. */
static bool all_on_device(const struct mc_function *f, const struct mc_shape_plan *p,
                          const struct mc_step *st)
{
    const bool known = mc_step_sets_part(st) && mc_part_is_known(&f->code->program, st);
    for (int i = 0; i < (known ? 2 : st->node[0]->nin); i++) {
        if (!is_on_device(p, mc_copy_step_value(f, st->node[0]->in[i]))) {
            return false;
        }
    }
    return true;
}

static mc_status find_slice(const struct mc_function *f, const struct mc_copy_step *w, char *scratch)
{
    const struct mc_grid one = { { 1, 1, 1 }, { 1, 1, 1 }, 0 };
    struct mc_region_bounds b = w->bounds;
    b.to = (int64_t *)(void *)scratch;
    b.err = mc_cuda_fn_of(f)->failed;
    for (int i = 0; i < b.rank; i++) {
        for (int k = 0; k < 3; k++) {
            b.at[i][k] = w->bound[i][k] < 0 ? NULL : f->ptr[w->bound[i][k]];
        }
    }
    return mc_cuda_launch(mc_cuda_of(f->code), w->find, "bounds of a slice", &one, &b, sizeof b);
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    const struct mc_copy_step *w = (struct mc_copy_step *)e;
    struct mc_cuda *d = mc_cuda_of(f->code);
    for (size_t i = 0; i < w->part.n; i++) {
        const struct mc_copy_step_part *c = &w->part.at[i];
        char *to = f->ptr[c->dst] + c->at, *from = f->ptr[c->src];
        TRY(c->copy ? mc_cuda_copy_run(c->copy, to, from) : mc_cuda_copy(d, to, from, c->bytes));
    }
    struct mc_region_args a = w->args;
    if (!w->move || a.indices * a.each == 0) {
        return MC_OK;
    }
    a.x = f->ptr[w->x] + w->x_at;
    a.y = f->ptr[w->y];
    a.err = mc_cuda_fn_of(f)->failed;
    a.start = w->start;
    if (w->find) {
        a.start = a.found = (const int64_t *)(const void *)scratch;
        TRY(find_slice(f, w, scratch));
    }
    a.target = (int64_t *)(void *)scratch;
    a.next = (int32_t *)(void *)(scratch + 8 * a.indices);
    a.first = a.next + a.indices;
    for (int i = 0; i < a.nindex; i++) {
        a.index[i] = f->ptr[w->index[i]];
    }
    const bool words = w->rows && ((uintptr_t)a.x | (uintptr_t)a.y) % REGION_WORD == 0;
    const int64_t elements = a.indices * a.each,
                  moves = words ? elements * (int64_t)mc_dtypes[w->dtype].size / REGION_WORD : elements;
    struct mc_grid indices = mc_cuda_grid_1d(a.indices, 256), line = mc_cuda_grid_1d(moves, 256);
    line.blocks[0] = w->few ? MC_MIN(line.blocks[0], 4 * (unsigned)d->processors) : line.blocks[0];
    mc_status s = w->targets ? mc_cuda_launch(d, w->targets, "targets of indices", &indices, &a, sizeof a)
                             : MC_OK;
    s = s == MC_OK && w->chain ? mc_cuda_launch(d, w->chain, "equal indices", &indices, &a, sizeof a) : s;
    return s < 0 ? s
                 : mc_cuda_launch(d, words ? w->rows : w->move, w->chain ? "a region set" : "a region", &line,
                                  &a, sizeof a);
}

static void release(struct mc_exec *e)
{
    struct mc_copy_step *w = (struct mc_copy_step *)e;
    for (size_t i = 0; i < w->part.n; i++) {
        mc_cuda_copy_free(w->part.at[i].copy);
    }
    VEC_FREE(w->part);
    mc_free(w);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

const struct mc_copy_step *mc_copy_step_of(const struct mc_exec *e)
{
    const struct mc_copy_step *w = e && e->ops == &ops ? (const struct mc_copy_step *)e : NULL;
    return w && !w->move ? w : NULL;
}

mc_status mc_copy_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct way *y = find_method(st);
    bool copied = st->kind == STEP_VIEW && p->slot[st->dst[0]].own;
    if ((!y && !copied) || (y && !all_on_device(f, p, st))) {
        return st->kind == STEP_HOST ? refuse_step(f, step) : MC_OK;
    }
    struct mc_copy_step *w = mc_calloc(1, sizeof *w, "plan");
    if (!w) {
        return MC_EMEMORY;
    }
    w->exec.ops = &ops;
    *made = &w->exec;
    mc_status s = !copied                ? y->make(f, p, st, w)
                  : p->step[step].moving ? mc_region_slice(f, p, st, w)
                                         : mc_copy_step_whole(w, p, st->src[0], st->dst[0]);
    if (s == MC_EUNSUPPORTED || (s == MC_OK && w->chain && w->args.indices > MOST_INDICES)) {
        release(*made);
        *made = NULL;
        return refuse_step(f, step);
    }
    if (s == MC_OK && w->find) {
        w->bounds.step = mc_cuda_fn_number(f, step);
        p->step[step].workspace = MC_MAX(p->step[step].workspace, FOUND_WORDS * sizeof(int64_t));
    }
    if (s == MC_OK && w->targets) {
        w->args.number = mc_cuda_fn_number(f, step);
        p->step[step].workspace = MC_MAX(p->step[step].workspace, (size_t)w->args.indices * 16);
    }
    return s;
}
