/* index_step.c: reads or writes a part of a value on a GPU: the positions that index tensors name, or slices
 * (heavy/cuda/region.cu).
 *
 * Invariant: x is the indexed array; y is contiguous or broadcast.  Both have the positions, in the order of
 * the index tensors' axes, and the axes that are not indexed. */
#include "exec/cuda/copy_step.h"
#include "op/index.h"

static const char text[] = {
#include "heavy/cuda/region_text.h"
    , 0 };
const struct mc_cuda_text mc_index_step_text = { "heavy/cuda/region.cu", text };

/* Are these axes contiguous, with stride n along the innermost one? */
static bool is_contiguous(int rank, const int64_t *size, const int64_t *stride, int64_t n)
{
    bool dense = true;
    for (int a = rank; a-- > 0;) {
        dense = dense && (size[a] == 1 || stride[a] == n);
        n *= size[a];
    }
    return dense;
}

/* Does each index position copy whole aligned words between x and y, with y in the order of positions? */
static bool can_move_words(const struct mc_region_args *a, mc_dtype d)
{
    const int64_t size = (int64_t)mc_dtypes[d].size, words = a->each * size / REGION_WORD;
    bool good = a->each * size % REGION_WORD == 0 && words > 0 && a->indices <= UINT32_MAX / 2 / words &&
                is_contiguous(a->nfree, a->free, a->xfree, 1) &&
                is_contiguous(a->nfree, a->free, a->yfree, 1) &&
                is_contiguous(a->nspan, a->span, a->yspan, a->each);
    for (int i = 0; i < a->nindex; i++) {
        good = good && a->step[i] * size % REGION_WORD == 0;
    }
    return good;
}

static mc_status load(struct mc_copy_step *w, mc_dtype d, const char *move)
{
    struct mc_str defines = { 0 };
    w->dtype = d;
    mc_cuda_types(&defines, d, false);
    const bool puts = strcmp(move, "put_") == 0 && w->args.nindex,
               /* sums of integers do not depend on the order, so no chain of equal indices is needed */
        adds = puts && !w->args.set && !mc_is_float(d) && d != MC_BOOL;
    w->few = adds && w->args.whole && w->args.each == 1;
    move = w->few ? "add_few" : adds ? "add_" : move;
    bool repeats = puts && !adds, rows = strcmp(move, "take") == 0 && can_move_words(&w->args, d);
    const struct mc_cuda_kernel_ref kernels[] = { { &w->move, move },
                                                  { &w->rows, rows ? "take_rows" : NULL },
                                                  { &w->targets, w->args.nindex ? "targets" : NULL },
                                                  { &w->chain, repeats ? "chain" : NULL },
                                                  { &w->find, w->bounds.rank ? "find" : NULL } };
    return mc_cuda_kernels(&mc_index_step_text, &defines, kernels, NELEM(kernels)) ? MC_OK : mc_last_status();
}

/* Strides of a value in elements; 0 along axes of size 1. */
static void strides_of(const struct mc_slot *at, int64_t *out)
{
    for (int a = 0; a < at->type.rank; a++) {
        out[a] = at->type.dims[a] == 1 ? 0 : at->strides[a] / (int64_t)mc_dtypes[at->type.dtype].size;
    }
}

/* Bytes of an index; negative: it has a sign. */
static int index_kind(mc_dtype d)
{
    const int bytes = (int)mc_dtypes[d].size;
    return mc_dtypes[d].kind == KIND_UINT ? bytes : -bytes;
}

static void index_tensors(struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n, int first,
                          struct mc_copy_step *w)
{
    struct mc_region_args *a = &w->args;
    a->nindex = n->nin - first;
    for (int i = 0; i < a->nindex; i++) {
        a->nspan = MC_MAX(a->nspan, n->in[first + i]->type.rank);
    }
    for (int k = 0; k < a->nspan; k++) {
        a->span[k] = 1;
    }
    for (int i = 0; i < a->nindex; i++) {
        w->index[i] = mc_copy_step_value(f, n->in[first + i]);
        const struct mc_slot *at = &p->slot[w->index[i]];
        int64_t stride[MC_MAX_RANK];
        int more = a->nspan - at->type.rank;
        strides_of(at, stride);
        a->kind[i] = index_kind(at->type.dtype);
        for (int k = 0; k < at->type.rank; k++) {
            a->span[more + k] = at->type.dims[k] == 1 ? a->span[more + k] : at->type.dims[k];
            a->istride[i][more + k] = stride[k];
        }
    }
    a->indices = mc_dims_count(a->nspan, a->span);
}

/* Divides x's axes into indexed and free ones. y's axes are in the order that op/gather.c defines. */
static void axes_of(const mc_node *n, const int64_t *dims, const int64_t *xs, const int64_t *ys, int rank,
                    struct mc_region_args *a)
{
    int at = mc_gather_axis(n), k = 0;
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

mc_status mc_region_take(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                         struct mc_copy_step *w)
{
    const mc_node *n = st->node[0];
    int64_t xs[MC_MAX_RANK], ys[MC_MAX_RANK];
    w->x = mc_copy_step_value(f, n->in[0]);
    w->y = st->dst[0];
    const struct mc_slot *x = &p->slot[w->x], *y = &p->slot[w->y];
    index_tensors(f, p, n, 1, w);
    strides_of(x, xs);
    mc_copy_step_strides(y->type.rank, y->type.dims, ys);
    axes_of(n, x->type.dims, xs, ys, x->type.rank, &w->args);
    return load(w, x->type.dtype, "take");
}

/* Copies all of x, then writes y to the positions that the index tensors name. */
mc_status mc_region_set(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                        struct mc_copy_step *w)
{
    const mc_node *n = st->node[0];
    int64_t xs[MC_MAX_RANK], ys[MC_MAX_RANK], all[MC_MAX_RANK] = { 0 };
    w->x = st->dst[0];
    w->y = mc_copy_step_value(f, n->in[1]);
    const struct mc_slot *x = &p->slot[w->x], *y = &p->slot[w->y];
    TRY(mc_copy_step_whole(w, p, mc_copy_step_value(f, n->in[0]), st->dst[0]));
    index_tensors(f, p, n, 2, w);
    mc_copy_step_strides(x->type.rank, x->type.dims, xs);
    strides_of(y, ys);
    int rank = x->type.rank - w->args.nindex + w->args.nspan; /* y may have fewer axes than the region */
    memcpy(all + rank - y->type.rank, ys, (size_t)y->type.rank * sizeof *ys);
    axes_of(n, x->type.dims, xs, all, x->type.rank, &w->args);
    w->args.set = (int32_t)mc_attr_int(&n->attr[1]);
    const int64_t whole = mc_dims_count(x->type.rank, x->type.dims);
    w->args.whole = whole <= REGION_FEW ? (int32_t)whole : 0;
    return load(w, x->type.dtype, "put_");
}

/* The axes of a slice of x and of y, with y's strides in elements. */
static void slice_axes(struct mc_copy_step *w, const struct mc_slot *part, const int64_t *ys)
{
    struct mc_region_args *a = &w->args;
    a->indices = 1;
    a->nfree = part->type.rank;
    for (int k = 0; k < a->nfree; k++) {
        a->free[k] = part->type.dims[k];
        a->xfree[k] = part->strides[k] / (int64_t)mc_dtypes[part->type.dtype].size;
        a->yfree[k] = ys[k];
    }
    struct mc_cuda_axes axes = { a->nfree, 2, a->free, { a->xfree, a->yfree } };
    mc_cuda_axes_collapse(&axes);
    a->nfree = axes.rank;
    a->each = mc_dims_count(a->nfree, a->free);
}

/* The strides in elements with which y fills the part. */
static mc_status fill_strides(const mc_node *n, const struct mc_slot *y, const struct mc_slot *part,
                              int64_t *out)
{
    static char nowhere[16];
    mc_array *like = mc_array_wrap(y->type.dtype, y->type.rank, y->type.dims, y->strides, nowhere, NULL,
                                   NULL);
    mc_status s = like ? mc_region_strides(n, like, part->type.rank, part->type.dims, out) : mc_last_status();
    for (int k = 0; k < part->type.rank && s == MC_OK; k++) {
        out[k] /= (int64_t)mc_dtypes[y->type.dtype].size;
    }
    mc_array_unref(&like);
    return s;
}

/* A slice whose bounds the GPU finds in its memory: each axis of x with what is known of it. */
static void note_bounds(const struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n,
                        struct mc_copy_step *w)
{
    const struct mc_slot *x = &p->slot[w->x], *y = &p->slot[w->y];
    struct mc_region_bounds *b = &w->bounds;
    struct mc_region_args *a = &w->args;
    b->rank = x->type.rank;
    b->bytes = (int)mc_dtypes[x->type.dtype].size;
    a->indices = a->each = 1;
    for (int i = 0; i < b->rank; i++) {
        const int64_t *spec = &n->attr[0].ints[i * SPEC_N];
        b->size[i] = x->type.dims[i];
        b->stride[i] = x->strides[i] / b->bytes;
        b->index[i] = spec[SPEC_INDEX] != 0;
        for (int k = 0; k < 3; k++) {
            const int64_t *bound = &spec[SPEC_START_KIND + 2 * k];
            w->bound[i][k] = bound[0] == BOUND_INPUT ? mc_copy_step_value(f, n->in[bound[1] + 1]) : -1;
            b->number[i][k] = bound[1];
            b->kind[i][k] = bound[0] == BOUND_NONE    ? GIVEN_NOT
                            : bound[0] == BOUND_CONST ? GIVEN_NUMBER
                                                      : index_kind(p->slot[w->bound[i][k]].type.dtype);
        }
        if (!b->index[i]) {
            const int k = a->nfree++;
            const bool any = y->type.dims[k] == 1 && n->in[1]->type.dims[k] == 1;
            b->fill[k] = any ? -1 : y->type.dims[k];
            a->yfree[k] = any ? 0 : y->strides[k] / b->bytes;
            a->each *= any ? b->size[i] : b->fill[k];
        }
    }
}

/* Copies all of x, unless the result has its memory, then sets or adds to a slice of it. */
mc_status mc_region_part(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                         struct mc_copy_step *w)
{
    const mc_node *n = st->node[0];
    const int step = (int)(st - f->code->program.step.at), from = mc_copy_step_value(f, n->in[0]);
    int64_t ys[MC_MAX_RANK];
    struct mc_slot part;
    w->x = st->dst[0];
    w->y = mc_copy_step_value(f, n->in[1]);
    const struct mc_slot *x = &p->slot[w->x], *old = &p->slot[from];
    if (mc_part_is_known(&f->code->program, st)) {
        TRY(mc_part_of(f, p, step, &part));
        const mc_status s = fill_strides(n, &p->slot[w->y], &part, ys);
        TRY(s == MC_OK ? s : mc_step_error(f, step, s));
        slice_axes(w, &part, ys);
        w->start = mc_remote_start(p, step);
        w->x_at = w->start ? 0 : part.offset;
    } else {
        note_bounds(f, p, n, w);
    }
    w->args.set = (int32_t)mc_attr_int(&n->attr[1]);
    w->args.held = x->base == BASE_SHARED;
    const bool same = old->base == x->base && old->index == x->index && old->offset == x->offset;
    TRY(same ? MC_OK : mc_copy_step_whole(w, p, from, w->x));
    return load(w, x->type.dtype, "part");
}

mc_status mc_region_slice(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                          struct mc_copy_step *w)
{
    const int step = (int)(st - f->code->program.step.at);
    const struct mc_slot *part = p->step[step].moving;
    int64_t ys[MC_MAX_RANK];
    w->x = st->src[0];
    w->y = st->dst[0];
    w->start = mc_remote_start(p, step);
    mc_copy_step_strides(part->type.rank, part->type.dims, ys);
    slice_axes(w, part, ys);
    return load(w, part->type.dtype, "slice");
}
