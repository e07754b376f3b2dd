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
                                                  { &w->chain, repeats ? "chain" : NULL } };
    return mc_cuda_kernels(&mc_index_step_text, &defines, kernels, NELEM(kernels)) ? MC_OK : mc_last_status();
}

/* Strides of a value in elements; 0 along axes of size 1. */
static void strides_of(const struct mc_slot *at, int64_t *out)
{
    for (int a = 0; a < at->type.rank; a++) {
        out[a] = at->type.dims[a] == 1 ? 0 : at->strides[a] / (int64_t)mc_dtypes[at->type.dtype].size;
    }
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
        int more = a->nspan - at->type.rank, bytes = (int)mc_dtypes[at->type.dtype].size;
        strides_of(at, stride);
        a->kind[i] = mc_dtypes[at->type.dtype].kind == KIND_UINT ? bytes : -bytes;
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

static mc_array *value_at_plan_time(const struct mc_function *f, const struct mc_shape_plan *p,
                                    const mc_node *n)
{
    int v = mc_copy_step_value(f, n);
    return n->value ? n->value : v >= 0 && p->slot[v].base == BASE_FIXED ? p->slot[v].fixed : NULL;
}

/* The region as a view of x, at an offset in place of an address.  No element is read. */
static mc_array *region_of(const struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n,
                           const struct mc_type *t)
{
    mc_array *in[2 + 3 * MC_MAX_RANK] = { 0 }, *view = NULL;
    static char nowhere[16];
    for (int i = 2; i < n->nin; i++) {
        in[i] = mc_array_ref(value_at_plan_time(f, p, n->in[i]));
    }
    in[0] = mc_array_wrap(t->dtype, t->rank, t->dims, NULL, nowhere, NULL, NULL);
    view = in[0] ? mc_spec_view(n, in[0], in) : NULL;
    if (view) {
        view->data = (char *)((uintptr_t)view->data - (uintptr_t)nowhere);
    }
    for (int i = 0; i < n->nin; i++) {
        mc_array_unref(&in[i]);
    }
    return view;
}

mc_status mc_region_part(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                         struct mc_copy_step *w)
{
    const mc_node *n = st->node[0];
    struct mc_region_args *a = &w->args;
    int64_t ys[MC_MAX_RANK];
    w->x = st->dst[0];
    w->y = mc_copy_step_value(f, n->in[1]);
    const struct mc_slot *x = &p->slot[w->x], *y = &p->slot[w->y];
    for (int i = 2; i < n->nin; i++) {
        if (!value_at_plan_time(f, p, n->in[i])) {
            return MC_EUNSUPPORTED; /* a bound that depends on data */
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
    a->indices = 1;
    a->each = mc_dims_count(a->nfree, a->free);
    a->set = (int32_t)mc_attr_int(&n->attr[1]);
    TRY(mc_copy_step_whole(w, p, mc_copy_step_value(f, n->in[0]), st->dst[0]));
    return load(w, x->type.dtype, "put_");
}
