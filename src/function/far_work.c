/* far_work.c: steps on a GPU that are neither a kernel of the function nor a family's: views that must be copied, joins,
 * indexing by arrays, parts that are set or added to.  Each is a list of copies, and then perhaps a region (region.cu).
 *
 * Invariant: all is made once a shape; running it only enqueues, so it can be recorded.  A step without work is done by
 * the reference. */
#include "function/far.h"
#include "op/index.h"

static const char text[] = {
#include "plan/region_text.h"
    , 0 };
const struct mc_cuda_text mc_far_region_text = { "plan/region.cu", text };

enum { MOST_PLACES = 1 << 17 };  /* that may be the same: finding out takes a look at each, for each */
enum { WORD = 16 };              /* bytes that a thread moves at once */

struct part {                   /* one copy; both are dense: only bytes */
    struct mc_cuda_copy *copy;
    size_t bytes;
    int src, dst;
    int64_t at;                 /* bytes into the result */
};
struct args {                   /* region.cu's */
    char *x, *y;
    int64_t *target;
    int32_t *next, *first;
    void *err;
    const void *index[8];
    int32_t kind[8];
    int64_t limit[8], step[8], istride[8][8], span[8], yspan[8], free[8], xfree[8], yfree[8], places, each;
    int32_t nindex, nspan, nfree, set, number, axis[8];
};
struct mc_far_work {
    VEC(struct part) part;
    void *targets, *chain, *move; /* NULL: not launched */
    void *rows;                 /* NULL, or what moves where words of x and y are aligned */
    struct args args;
    mc_dtype dtype;             /* of both */
    int x, y, index[8];         /* values */
    int64_t x_at;               /* bytes to where the region begins */
};

void mc_work_free(struct mc_far_work *w)
{
    for (size_t i = 0; w && i < w->part.n; i++) {
        mc_cuda_copy_free(w->part.at[i].copy);
    }
    if (w) {
        VEC_FREE(w->part);
        mc_free(w);
    }
}

/* ---- copies ---- */

/* The value at src, of these strides in bytes, into `at` bytes behind dst's begin, under strides in elements. */
static mc_status add_copy(struct mc_far_work *w, const struct mc_spot *from, const int64_t *from_strides, int src, int dst, int64_t at, int rank, const int64_t *size,
                          const int64_t *to_stride)
{
    struct mc_cuda_layout l = { .to = from->type.dtype, .from = from->type.dtype, .rank = rank };
    struct part p = { .src = src, .dst = dst, .at = at };
    int64_t bytes = (int64_t)mc_dtypes[l.from].size, dense = 1;
    bool plain = true;
    for (int a = rank; a-- > 0;) {
        l.size[a] = size[a];
        l.to_stride[a] = to_stride[a];
        l.from_stride[a] = from_strides[a] / bytes;
        plain &= size[a] == 1 || (l.to_stride[a] == dense && l.from_stride[a] == dense);
        dense *= size[a];
    }
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

static void dense_strides(int rank, const int64_t *dims, int64_t *stride)
{
    int64_t n = 1;
    for (int a = rank; a-- > 0;) {
        stride[a] = n;
        n *= dims[a];
    }
}

static int value_of(const struct mc_function *f, const mc_node *n)
{
    return f->code->program.value_of[n->id];
}

static bool lies_there(const struct mc_shape_plan *p, int v)
{
    return v >= 0 && p->place[v].base != BASE_NONE && p->place[v].base != BASE_TYPE;
}

/* All of a value, dense; what it is copied to may have the same elements in another shape. */
static mc_status whole(struct mc_far_work *w, const struct mc_shape_plan *p, int src, int dst)
{
    const struct mc_spot *from = &p->place[src];
    int64_t stride[MC_MAX_RANK];
    dense_strides(from->type.rank, from->type.dims, stride);
    return add_copy(w, from, from->strides, src, dst, 0, from->type.rank, from->type.dims, stride);
}

/* Operands one behind the other; stack: along an axis that they do not have. */
static mc_status join(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st, struct mc_far_work *w)
{
    const mc_node *n = st->node[0];
    const struct mc_type *to = &p->place[st->dst[0]].type;
    bool stack = mc_is_op(n, "stack");
    int64_t stride[MC_MAX_RANK], at = 0;
    int axis;
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), to->rank, &axis));
    dense_strides(to->rank, to->dims, stride);
    for (int i = 0; i < n->nin; i++) {
        int v = value_of(f, n->in[i]);
        const struct mc_type *x = &p->place[v].type;
        int64_t mine[MC_MAX_RANK];
        for (int a = 0; a < x->rank; a++) {
            mine[a] = stride[a + (stack && a >= axis)];
        }
        TRY(add_copy(w, &p->place[v], p->place[v].strides, v, st->dst[0], at * stride[axis] * (int64_t)mc_dtypes[to->dtype].size, x->rank, x->dims, mine));
        at += stack ? 1 : x->dims[axis];
    }
    return MC_OK;
}

/* ---- regions ---- */

/* Are these axes n elements that lie side by side? */
static bool side_by_side(int rank, const int64_t *size, const int64_t *stride, int64_t n)
{
    bool dense = true;
    for (int a = rank; a-- > 0;) {
        dense = dense && (size[a] == 1 || stride[a] == n);
        n *= size[a];
    }
    return dense;
}

/* Does each place take words of x, which are y's in the order of the places? */
static bool takes_words(const struct args *a, mc_dtype d)
{
    const int64_t size = (int64_t)mc_dtypes[d].size, words = a->each * size / WORD;
    bool good = a->each * size % WORD == 0 && words > 0 && a->places <= UINT32_MAX / 2 / words && side_by_side(a->nfree, a->free, a->xfree, 1) &&
                side_by_side(a->nfree, a->free, a->yfree, 1) && side_by_side(a->nspan, a->span, a->yspan, a->each);
    for (int i = 0; i < a->nindex; i++) {
        good = good && a->step[i] * size % WORD == 0;
    }
    return good;
}

static mc_status load(struct mc_far_work *w, mc_dtype d, const char *move)
{
    struct mc_str defines = { 0 };
    w->dtype = d;
    mc_cuda_types(&defines, d, false);
    bool repeats = strcmp(move, "put_") == 0 && w->args.nindex, rows = strcmp(move, "take") == 0 && takes_words(&w->args, d);
    const struct mc_cuda_named kernels[] = { { &w->move, move }, { &w->rows, rows ? "take_rows" : NULL }, { &w->targets, w->args.nindex ? "targets" : NULL }, { &w->chain, repeats ? "chain" : NULL } };
    return mc_cuda_kernels(&mc_far_region_text, &defines, kernels, NELEM(kernels)) ? MC_OK : mc_last_status();
}

/* Strides of a value in elements; 0 along axes of size 1. */
static void strides_of(const struct mc_spot *at, int64_t *out)
{
    for (int a = 0; a < at->type.rank; a++) {
        out[a] = at->type.dims[a] == 1 ? 0 : at->strides[a] / (int64_t)mc_dtypes[at->type.dtype].size;
    }
}

static void index_tensors(struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n, int first, struct mc_far_work *w)
{
    struct args *a = &w->args;
    a->nindex = n->nin - first;
    for (int i = 0; i < a->nindex; i++) {
        a->nspan = MC_MAX(a->nspan, n->in[first + i]->type.rank);
    }
    for (int k = 0; k < a->nspan; k++) {
        a->span[k] = 1;
    }
    for (int i = 0; i < a->nindex; i++) {
        w->index[i] = value_of(f, n->in[first + i]);
        const struct mc_spot *at = &p->place[w->index[i]];
        int64_t stride[MC_MAX_RANK];
        int more = a->nspan - at->type.rank, bytes = (int)mc_dtypes[at->type.dtype].size;
        strides_of(at, stride);
        a->kind[i] = mc_dtypes[at->type.dtype].kind == KIND_UINT ? bytes : -bytes;
        for (int k = 0; k < at->type.rank; k++) {
            a->span[more + k] = at->type.dims[k] == 1 ? a->span[more + k] : at->type.dims[k];
            a->istride[i][more + k] = stride[k];
        }
    }
    a->places = mc_dims_count(a->nspan, a->span);
}

/* x's axes: those that are indexed, the others; y's: in the order that gather.c says. */
static void axes_of(const mc_node *n, const int64_t *dims, const int64_t *xs, const int64_t *ys, int rank, struct args *a)
{
    int at = mc_gather_place(n), k = 0;
    for (int i = 0; i < rank; i++) {
        if (k < a->nindex && n->attr[0].ints[k] == i) {
            a->limit[k] = dims[i];
            a->axis[k] = i;
            a->step[k++] = xs[i];
        } else {
            int to = a->nfree++;
            a->free[to] = dims[i];
            a->xfree[to] = xs[i];
            a->yfree[to] = ys[to + (to >= at ? a->nspan : 0)];
        }
    }
    memcpy(a->yspan, ys + at, (size_t)a->nspan * sizeof *ys);
    a->each = mc_dims_count(a->nfree, a->free);
}

static mc_status gather(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st, struct mc_far_work *w)
{
    const mc_node *n = st->node[0];
    int64_t xs[MC_MAX_RANK], ys[MC_MAX_RANK];
    w->x = value_of(f, n->in[0]);
    w->y = st->dst[0];
    const struct mc_spot *x = &p->place[w->x], *y = &p->place[w->y];
    index_tensors(f, p, n, 1, w);
    strides_of(x, xs);
    dense_strides(y->type.rank, y->type.dims, ys);
    axes_of(n, x->type.dims, xs, ys, x->type.rank, &w->args);
    return load(w, x->type.dtype, "take");
}

/* x is copied whole, then y goes where the index tensors say. */
static mc_status gather_update(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st, struct mc_far_work *w)
{
    const mc_node *n = st->node[0];
    int64_t xs[MC_MAX_RANK], ys[MC_MAX_RANK], all[MC_MAX_RANK] = { 0 };
    w->x = st->dst[0];
    w->y = value_of(f, n->in[1]);
    const struct mc_spot *x = &p->place[w->x], *y = &p->place[w->y];
    TRY(whole(w, p, value_of(f, n->in[0]), st->dst[0]));
    index_tensors(f, p, n, 2, w);
    dense_strides(x->type.rank, x->type.dims, xs);
    strides_of(y, ys);
    int rank = x->type.rank - w->args.nindex + w->args.nspan; /* y may have fewer axes than the region */
    memcpy(all + rank - y->type.rank, ys, (size_t)y->type.rank * sizeof *ys);
    axes_of(n, x->type.dims, xs, all, x->type.rank, &w->args);
    w->args.set = (int32_t)mc_attr_int(&n->attr[1]);
    return load(w, x->type.dtype, "put_");
}

static mc_array *known_now(const struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n)
{
    int v = value_of(f, n);
    return n->value ? n->value : v >= 0 && p->place[v].base == BASE_FIXED ? p->place[v].fixed : NULL;
}

/* The region as a view of x; no element is looked at. */
static mc_array *region_of(const struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n, const struct mc_type *t)
{
    mc_array *in[2 + 3 * MC_MAX_RANK] = { 0 }, *view = NULL;
    static char nowhere[16];
    for (int i = 2; i < n->nin; i++) {
        in[i] = mc_array_ref(known_now(f, p, n->in[i]));
    }
    in[0] = mc_array_wrap(t->dtype, t->rank, t->dims, NULL, nowhere, NULL, NULL);
    view = in[0] ? mc_spec_view(n, in[0], in) : NULL;
    if (view) {
        view->data = (char *)((uintptr_t)view->data - (uintptr_t)nowhere); /* an offset */
    }
    for (int i = 0; i < n->nin; i++) {
        mc_array_unref(&in[i]);
    }
    return view;
}

static mc_status part_update(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st, struct mc_far_work *w)
{
    const mc_node *n = st->node[0];
    struct args *a = &w->args;
    int64_t ys[MC_MAX_RANK];
    w->x = st->dst[0];
    w->y = value_of(f, n->in[1]);
    const struct mc_spot *x = &p->place[w->x], *y = &p->place[w->y];
    for (int i = 2; i < n->nin; i++) {
        if (!known_now(f, p, n->in[i])) {
            return MC_EUNSUPPORTED; /* a bound that only running tells */
        }
    }
    mc_array *view = region_of(f, p, n, &x->type);
    if (!view) {
        return mc_last_status();
    }
    int64_t size = (int64_t)mc_dtypes[x->type.dtype].size;
    w->x_at = (int64_t)(intptr_t)view->data;
    a->nfree = view->rank;
    strides_of(y, ys);
    for (int k = 0; k < view->rank; k++) {
        int mine = k - (view->rank - y->type.rank);
        a->free[k] = view->dims[k];
        a->xfree[k] = view->strides[k] / size;
        a->yfree[k] = mine < 0 ? 0 : ys[mine];
    }
    mc_array_unref(&view);
    a->places = 1;
    a->each = mc_dims_count(a->nfree, a->free);
    a->set = (int32_t)mc_attr_int(&n->attr[1]);
    TRY(whole(w, p, value_of(f, n->in[0]), st->dst[0]));
    return load(w, x->type.dtype, "put_");
}

/* ---- the table ---- */

typedef mc_status make(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st, struct mc_far_work *w);
static const struct way {
    const char *op;
    make *make;
    bool checks;                /* indices */
} ways[] = {
    { "join",             join },
    { "stack",            join },
    { "gather",           gather,        true },
    { "gather_update",    gather_update, true },
    { "subtensor_update", part_update },
};

static const struct way *way_of(const struct mc_step *st)
{
    for (size_t i = 0; i < NELEM(ways) && st->kind == STEP_HOST && st->nnode == 1; i++) {
        if (mc_is_op(st->node[0], ways[i].op)) {
            return &ways[i];
        }
    }
    return NULL;
}

bool mc_work_there(const struct mc_step *st, bool *checks)
{
    const struct way *y = way_of(st);
    *checks |= y && y->checks;
    return y != NULL;
}

/* The host does it, unless the flag forbids that. */
static mc_status refuse(const struct mc_function *f, int step)
{
    if (mc_flag_int(FLAG_cuda_host)) {
        return MC_OK;
    }
    const char *why = f->code->program.step.at[step].reason;
    return mc_fail(MC_EUNSUPPORTED, "%s: step %d would run on the host, which the flag cuda.host forbids: %s\n    in %.400s", f->name, step,
                   *why ? why : "not at this shape", mc_step_name(f, step));
}

static bool all_there(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st)
{
    bool part = mc_is_op(st->node[0], "subtensor_update");
    for (int i = 0; i < (part ? 2 : st->node[0]->nin); i++) {
        if (!lies_there(p, value_of(f, st->node[0]->in[i]))) {
            return false;
        }
    }
    return true;
}

mc_status mc_work_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct way *y = way_of(st);
    bool copied = st->kind == STEP_VIEW && p->place[st->dst[0]].own;
    if ((!y && !copied) || (y && !all_there(f, p, st))) {
        return st->kind == STEP_HOST ? refuse(f, step) : MC_OK;
    }
    struct mc_far_work *w = p->step[step].work = mc_calloc(1, sizeof *w, "plan");
    mc_status s = !w ? MC_EMEMORY : copied ? whole(w, p, st->src[0], st->dst[0]) : y->make(f, p, st, w);
    if (s == MC_EUNSUPPORTED || (s == MC_OK && w->chain && w->args.places > MOST_PLACES)) {
        mc_work_free(w);
        p->step[step].work = NULL;
        return refuse(f, step);
    }
    if (s == MC_OK && w->targets) {
        w->args.number = step;
        p->step[step].workspace = MC_MAX(p->step[step].workspace, (size_t)w->args.places * 16);
    }
    return s;
}

mc_status mc_work_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_far_work *w = p->step[step].work;
    struct mc_cuda *d = f->code->cuda;
    for (size_t i = 0; i < w->part.n; i++) {
        const struct part *c = &w->part.at[i];
        char *to = f->ptr[c->dst] + c->at, *from = f->ptr[c->src];
        TRY(c->copy ? mc_cuda_copy_run(c->copy, to, from) : mc_cuda_copy(d, to, from, c->bytes));
    }
    struct args a = w->args;
    if (!w->move || a.places * a.each == 0) {
        return MC_OK;
    }
    a.x = f->ptr[w->x] + w->x_at;
    a.y = f->ptr[w->y];
    a.err = f->failed;
    a.target = (int64_t *)(void *)scratch;
    a.next = (int32_t *)(void *)(scratch + 8 * a.places);
    a.first = a.next + a.places;
    for (int i = 0; i < a.nindex; i++) {
        a.index[i] = f->ptr[w->index[i]];
    }
    const bool words = w->rows && ((uintptr_t)a.x | (uintptr_t)a.y) % WORD == 0;
    const int64_t elements = a.places * a.each, moves = words ? elements * (int64_t)mc_dtypes[w->dtype].size / WORD : elements;
    struct mc_grid places = mc_cuda_line(a.places, 256), line = mc_cuda_line(moves, 256);
    mc_status s = w->targets ? mc_cuda_launch(d, w->targets, "targets of indices", &places, &a, sizeof a) : MC_OK;
    s = s == MC_OK && w->chain ? mc_cuda_launch(d, w->chain, "equal indices", &places, &a, sizeof a) : s;
    return s < 0 ? s : mc_cuda_launch(d, words ? w->rows : w->move, w->chain ? "a region set" : "a region", &line, &a, sizeof a);
}
