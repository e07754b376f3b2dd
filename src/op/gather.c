/* gather.c: index tensors between [ and ], as in NumPy: x[idx], x[:, rows, cols], masks.
 *
 * Invariant: the indexed axes of a node ascend. The index tensors broadcast together. In the result, the
 * axes that they span replace the first indexed axis if the indexed axes are adjacent; otherwise they come
 * first. */
#include "op/index.h"

/* ---- shapes ---- */

static int first_axis(const struct mc_attr *axes)
{
    for (int i = 1; i < axes->n; i++) {
        if (axes->ints[i] != axes->ints[i - 1] + 1) {
            return 0;
        }
    }
    return axes->n ? (int)axes->ints[0] : 0;
}

int mc_gather_axis(const mc_node *n)
{
    return first_axis(&n->attr[0]);
}

static bool is_indexed(const struct mc_attr *axes, int axis)
{
    for (int i = 0; i < axes->n; i++) {
        if (axes->ints[i] == axis) {
            return true;
        }
    }
    return false;
}

/* The type of the region: the free axes of x before the index tensors, the axes that the index tensors
 * span, the other free axes. */
static mc_status region_type(const struct mc_infer *q, int first, struct mc_type *out)
{
    const struct mc_attr *axes = &q->attr[0];
    const struct mc_type *x = &q->in[0];
    struct mc_type span;
    int n = q->nin - first, at = first_axis(axes), nfree = 0;
    if (n != axes->n || n == 0) {
        return mc_fail(MC_EARG, "%d index tensors are given for %d axes", n, axes->n);
    }
    for (int i = 0; i < n; i++) {
        if (axes->ints[i] < 0 || axes->ints[i] >= x->rank || (i && axes->ints[i] <= axes->ints[i - 1])) {
            return mc_fail(MC_ESHAPE, "the axes must be ascending and less than the rank, %d", x->rank);
        }
        if (!mc_is_int(q->in[first + i].dtype)) {
            return mc_fail(MC_ETYPE, "an index tensor must hold integers, not %s",
                           mc_dtype_name(q->in[first + i].dtype));
        }
    }
    TRY(mc_broadcast_types(q->op, n, q->in + first, &span));
    if (x->rank - n + span.rank > MC_MAX_RANK) {
        return mc_fail(MC_ESHAPE, "the result would have more than %d axes", MC_MAX_RANK);
    }
    *out = (struct mc_type){ .dtype = x->dtype };
    for (int i = 0; i <= x->rank; i++) {
        bool free = i < x->rank && !is_indexed(axes, i);
        if (nfree == at && (free || i == x->rank)) {
            memcpy(out->dims + out->rank, span.dims, (size_t)span.rank * sizeof *span.dims);
            out->rank += span.rank;
            at = -1;
        }
        if (free) {
            out->dims[out->rank++] = x->dims[i];
            nfree++;
        }
    }
    return MC_OK;
}

/* ---- the loop of both reference functions ---- */

/* The elements of x at the index tensors, paired with those of a tensor y that has the shape of the
 * region. */
struct region {
    int n, nspan, nfree, at;
    int64_t axis[MC_MAX_RANK];                               /* by index tensor */
    int64_t span[MC_MAX_RANK], istride[MC_MAX_RANK][MC_MAX_RANK], yspan[MC_MAX_RANK];
    int64_t free[MC_MAX_RANK], xfree[MC_MAX_RANK], yfree[MC_MAX_RANK];
};

static struct region region_of(const mc_node *n, const mc_array *x, int nindex, mc_array *const *index)
{
    struct region r = { .n = nindex, .at = first_axis(&n->attr[0]) };
    for (int i = 0; i < nindex; i++) {
        r.axis[i] = n->attr[0].ints[i];
        r.nspan = MC_MAX(r.nspan, index[i]->rank);
    }
    for (int k = 0; k < r.nspan; k++) {
        r.span[k] = 1;
    }
    for (int i = 0; i < nindex; i++) {
        int more = r.nspan - index[i]->rank;
        for (int k = more; k < r.nspan; k++) {
            int64_t d = index[i]->dims[k - more];
            r.span[k] = d == 1 ? r.span[k] : d;
            r.istride[i][k] = d == 1 ? 0 : index[i]->strides[k - more];
        }
    }
    for (int i = 0; i < x->rank; i++) {
        if (!is_indexed(&n->attr[0], i)) {
            r.free[r.nfree] = x->dims[i];
            r.xfree[r.nfree++] = x->strides[i];
        }
    }
    return r;
}

static void region_dims(const struct region *r, int64_t *dims)
{
    memcpy(dims, r->free, (size_t)r->at * sizeof *dims);
    memcpy(dims + r->at, r->span, (size_t)r->nspan * sizeof *dims);
    memcpy(dims + r->at + r->nspan, r->free + r->at, (size_t)(r->nfree - r->at) * sizeof *dims);
}

static void region_y(struct region *r, const int64_t *strides)
{
    memcpy(r->yfree, strides, (size_t)r->at * sizeof *strides);
    memcpy(r->yspan, strides + r->at, (size_t)r->nspan * sizeof *strides);
    memcpy(r->yfree + r->at, strides + r->at + r->nspan, (size_t)(r->nfree - r->at) * sizeof *strides);
}

enum way { GET, SET, INC };

/* Moves all elements along the free axes for one position of the index tensors. */
static void move(const struct region *r, mc_dtype d, enum way way, char *x, char *y)
{
    struct mc_walk w;
    int last = r->nfree - 1;
    if (!mc_walk_begin(&w, r->nfree, r->free, 1, 2, (char *[]){ x, y },
                       (const int64_t *[]){ r->xfree, r->yfree })) {
        return;
    }
    int64_t count = last < 0 ? 1 : r->free[last], xs = last < 0 ? 0 : r->xfree[last],
            ys = last < 0 ? 0 : r->yfree[last];
    do {
        if (way == GET) {
            mc_convert(d, w.p[1], ys, d, w.p[0], xs, count);
        } else {
            mc_region_row(d, way == SET, w.p[0], xs, w.p[1], ys, count);
        }
    } while (mc_walk_next(&w));
}

enum { CHUNK = 256 };

/* Adds to m offsets in bytes what the positions k on an axis give. False: one is out of range. */
static bool add_offsets(int64_t *offset, int64_t m, const char *k, int64_t kstride, int64_t size,
                        int64_t stride)
{
    bool good = true;
    for (int64_t j = 0; j < m; j++) {
        int64_t at;
        memcpy(&at, k + j * kstride, sizeof at);
        good &= at >= -size && at < size;
        offset[j] += (at < 0 ? at + size : at) * stride;
    }
    return good;
}

static void get_elements(char *y, int64_t ys, const char *x, const int64_t *offset, int64_t m, size_t size)
{
    for (int64_t j = 0; size == 4 && j < m; j++) {
        memcpy(y + j * ys, x + offset[j], 4);
    }
    for (int64_t j = 0; size == 8 && j < m; j++) {
        memcpy(y + j * ys, x + offset[j], 8);
    }
    for (int64_t j = 0; size != 4 && size != 8 && j < m; j++) {
        memcpy(y + j * ys, x + offset[j], size);
    }
}

/* Gets regions of one element, chunks of the last axis at a time.  False: they are larger, or some index is
 * out of range. */
static bool run_elements(const struct region *r, const mc_array *x, mc_array *const *index, char *const *data,
                         const int64_t *const *strides)
{
    struct mc_walk w;
    const int last = r->nspan - 1;
    bool good = !r->nfree && last >= 0;
    for (int i = 0; i < r->n; i++) {
        good = good && index[i]->dtype == MC_INT64;
    }
    if (!good || !mc_walk_begin(&w, r->nspan, r->span, 1, r->n + 1, data, strides)) {
        return false;
    }
    do {
        for (int64_t from = 0; good && from < r->span[last]; from += CHUNK) {
            const int64_t m = MC_MIN(r->span[last] - from, (int64_t)CHUNK);
            int64_t offset[CHUNK] = { 0 };
            for (int i = 0; i < r->n; i++) {
                const int64_t step = r->istride[i][last];
                good &= add_offsets(offset, m, w.p[i] + from * step, step, x->dims[r->axis[i]],
                                    x->strides[r->axis[i]]);
            }
            if (good) {
                get_elements(w.p[r->n] + from * r->yspan[last], r->yspan[last], x->data, offset, m,
                             mc_dtypes[x->dtype].size);
            }
        }
    } while (good && mc_walk_next(&w));
    return good;
}

/* Runs in C order of the index tensors, so the result for repeated indices is always the same: the last
 * one sets. */
static mc_status run(const struct region *r, const mc_array *x, mc_array *const *index, char *y, enum way way)
{
    struct mc_walk w;
    char *data[MC_MAX_RANK + 1];
    const int64_t *strides[MC_MAX_RANK + 1];
    for (int i = 0; i < r->n; i++) {
        data[i] = index[i]->data;
        strides[i] = r->istride[i];
    }
    data[r->n] = y;
    strides[r->n] = r->yspan;
    if (way == GET && run_elements(r, x, index, data, strides)) {
        return MC_OK;
    }
    if (!mc_walk_begin(&w, r->nspan, r->span, 0, r->n + 1, data, strides)) {
        return MC_OK;
    }
    do {
        char *at = x->data;
        for (int i = 0; i < r->n; i++) {
            int64_t k = mc_load_i64(index[i]->dtype, w.p[i]), size = x->dims[r->axis[i]];
            if (k < -size || k >= size) {
                return mc_fail(MC_EINDEX, "index %lld is out of range for axis %d with size %lld",
                               (long long)k, (int)r->axis[i], (long long)size);
            }
            at += (k < 0 ? k + size : k) * x->strides[r->axis[i]];
        }
        move(r, x->dtype, way, at, w.p[r->n]);
    } while (mc_walk_next(&w));
    return MC_OK;
}

/* ---- gather ---- */

static mc_status gather_infer(struct mc_infer *q)
{
    return region_type(q, 1, &q->out[0]);
}

static mc_node *gather_size(mc_node *n, int item, int axis)
{
    (void)item;
    int at = first_axis(&n->attr[0]), nspan = n->type.rank - (n->in[0]->type.rank - n->attr[0].n);
    if (axis >= at && axis < at + nspan) {
        for (int i = 1; i < n->nin; i++) {
            int k = axis - at - (nspan - n->in[i]->type.rank);
            if (k >= 0 && n->in[i]->type.dims[k] != 1) {
                return mc_size_of(n->in[i], k);
            }
        }
        return mc_node_int(n->graph, 1);
    }
    int free = axis < at ? axis : axis - nspan, i = 0;
    while (is_indexed(&n->attr[0], i) || free-- > 0) {
        i++;
    }
    return mc_size_of(n->in[0], i);
}

static mc_status gather_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct region r = region_of(n, in[0], n->nin - 1, in + 1);
    region_y(&r, out[0]->strides);
    return run(&r, in[0], in + 1, out[0]->data, GET);
}

static mc_node *gather_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt || !g[0]) {
        return NULL;
    }
    mc_node *zeros = mc_call_op(n->graph, "zeros_like", 1, n->in, NULL);
    return mc_region_put("gather_update", zeros, g[0], n->nin - 1, n->in + 1, &n->attr[0], false);
}

/* Sorts the axes, as non-negative numbers, together with their index tensors; literals become tensors. */
static bool order(mc_graph *g, const char *op, mc_node *x, int n, mc_node *const *index,
                  const struct mc_attr *axes, mc_node **to, int64_t *axis)
{
    if (n != axes->n || n == 0 || n > x->type.rank) {
        mc_node_fail(g, MC_EARG, "%s: %d index tensors are given for %d axes of rank %d", op, n, axes->n,
                     x->type.rank);
        return false;
    }
    for (int i = 0; i < n; i++) {
        int k, at = i;
        if (mc_axis_check(op, axes->ints[i], x->type.rank, &k) < 0) {
            mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
            return false;
        }
        for (; at > 0 && axis[at - 1] > k; at--) {
            axis[at] = axis[at - 1];
            to[at] = to[at - 1];
        }
        axis[at] = k;
        to[at] = index[i]->weak ? mc_node_const(g, mc_array_ref(index[i]->value), false) : index[i];
    }
    return true;
}

/* A scalar index is a slice of x, not a gather. */
static mc_node *pick_all(mc_node *x, int n, mc_node *const *index, const int64_t *axis)
{
    for (int i = n; i-- > 0;) {
        x = mc_pick(x, (int)axis[i], index[i]);
    }
    return x;
}

static mc_node *build_gather(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *arg[1 + MC_MAX_RANK] = { in[0] };
    int64_t axis[MC_MAX_RANK];
    bool numbers = true;
    if (!order(g, "gather", in[0], nin - 1, in + 1, &attr[0], arg + 1, axis)) {
        return g->error;
    }
    for (int i = 1; i < nin; i++) {
        numbers &= arg[i]->type.rank == 0 && mc_is_int(arg[i]->type.dtype) &&
                   (i == 1 || axis[i - 1] > axis[i - 2]);
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = nin - 1, .ints = axis };
    return numbers ? pick_all(in[0], nin - 1, arg + 1, axis)
                   : mc_node_make(g, mc_op_named(g, "gather"), nin, arg, &a);
}

/* ---- gather_update ---- */

static mc_status update_infer(struct mc_infer *q)
{
    struct mc_type region;
    TRY(region_type(q, 2, &region));
    return mc_region_update(q, &region);
}

static mc_status update_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int64_t dims[MC_MAX_RANK], strides[MC_MAX_RANK];
    TRY(mc_array_assign(out[0], in[0]));
    struct region r = region_of(n, out[0], n->nin - 2, in + 2);
    region_dims(&r, dims);
    TRY(mc_region_strides(n, in[1], r.nfree + r.nspan, dims, strides));
    region_y(&r, strides);
    return run(&r, out[0], in + 2, in[1]->data, mc_attr_int(&n->attr[1]) ? SET : INC);
}

/* Where an index repeats, set keeps one value, but every value gets the gradient, as in Theano. */
static mc_node *update_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt > 1 || !g[0]) {
        return NULL;
    }
    if (wrt == 0) {
        return mc_attr_int(&n->attr[1]) ? mc_region_put("gather_update", g[0], mc_node_like(g[0], 0),
                                                        n->nin - 2, n->in + 2, &n->attr[0], true)
                                        : g[0];
    }
    mc_node *in[1 + MC_MAX_RANK] = { g[0] };
    memcpy(in + 1, n->in + 2, (size_t)(n->nin - 2) * sizeof *in);
    return mc_region_grad(mc_apply(n->graph, mc_op_named(n->graph, "gather"), n->nin - 1, in, &n->attr[0]),
                          n->in[1]);
}

static mc_node *build_update(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const char *name = mc_attr_int(&attr[1]) ? "set_subtensor" : "inc_subtensor";
    mc_node *arg[2 + MC_MAX_RANK] = { in[0], in[1] };
    int64_t axis[MC_MAX_RANK];
    int span = 0;
    if (!order(g, name, in[0], nin - 2, in + 2, &attr[0], arg + 2, axis)) {
        return g->error;
    }
    for (int i = 2; i < nin; i++) {
        span = MC_MAX(span, arg[i]->type.rank);
    }
    struct mc_attr a[2] = { { .kind = ATTR_INTS, .n = nin - 2, .ints = axis }, attr[1] };
    int rank = in[0]->type.rank - (nin - 2) + span;
    arg[1] = mc_region_value(name, in[0], in[1], MC_MIN(rank, MC_MAX_RANK));
    return mc_is_error(arg[1]) ? arg[1] : mc_node_make(g, mc_op_named(g, "gather_update"), nin, arg, a);
}

/* ---- take: gather along one axis, with a mode for indices out of range ---- */

static mc_node *build_take(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    const char *mode = attr[1].text;
    mc_node *x = attr[0].none ? mc_call_op(g, "ravel", 1, in, NULL) : in[0], *idx = in[1];
    int axis = 0;
    if (mc_is_error(x)) {
        return x;
    }
    if (!attr[0].none && mc_axis_check("take", mc_attr_int(&attr[0]), x->type.rank, &axis) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    if (idx->type.dtype == MC_BOOL || mc_is_float(idx->type.dtype)) {
        return mc_node_fail(g, MC_ETYPE, "take: the indices must be integers, not %s",
                            mc_dtype_name(idx->type.dtype));
    }
    struct mc_bind b[2] = { { "i", mc_cast_to(idx, MC_INT64), NULL }, { "n", mc_size_of(x, axis), NULL } };
    if (strcmp(mode, "wrap") == 0 || strcmp(mode, "clip") == 0) {
        idx = mc_expr(g, *mode == 'w' ? "i % n" : "clip(i, 0, n - 1)", b, 2);
    } else if (strcmp(mode, "raise") != 0) {
        return mc_node_fail(g, MC_EARG, "take: unknown mode '%s'; expected raise, wrap or clip", mode);
    }
    return mc_call_op(g, "gather", 2, (mc_node *[]){ x, idx }, "axes=[%d]", axis);
}

const struct mc_op mc_ops_gather[] = {
    { .name = "gather", .form = FORM_GATHER, .params = "x, *index, axes:ints", .nout = 1, .infer = gather_infer, .size = gather_size,
      .eval = gather_eval, .grad = gather_grad, .build = build_gather, .print = mc_gather_print,
      .example = MANUAL("x = [[1., 2, 3], [4, 5, 6]]; i = [1, 0]; gather(x, i, i, axes=[0, 1])"),
      .doc = MANUAL("x[idx]: elements of x at index tensors for these axes") },
    { .name = "gather_update", .form = FORM_GATHER_UPDATE, .params = "x, y, *index, axes:ints, set:bool", .flags = OP_HIDDEN, .nout = 1,
      .infer = update_infer, .size = mc_same_size, .eval = update_eval, .grad = update_grad, .build = build_update,
      .print = mc_gather_update_print, .doc = MANUAL("x with the elements at index tensors set to y, or increased by y; a repeated index adds each time") },
    { .name = "nonzero", .params = "x", .nout = 1, .shape_args = 1, .infer = mc_nonzero_infer, .eval = mc_nonzero_eval,
      .disconnected = 1, .doc = MANUAL("the indices of the nonzero elements of x: a vector for each axis") },
    { .name = "mask_where", .flags = OP_HIDDEN, .params = "x, *sizes", .nout = 1, .shape_args = 1, .infer = mc_nonzero_infer, .eval = mc_nonzero_eval,
      .disconnected = 3, .doc = MANUAL("nonzero of a mask, which must have these sizes") },
    BUILT({ .name = "take", .params = "x, index, axis=None:int, mode=raise:text", .nout = 1, .build = build_take,
      .doc = MANUAL("the elements of x at index along an axis, or of flattened x; mode: an index out of range is an error (raise), wraps around (wrap) or is clipped (clip)") })
    BUILT({ .name = "flatnonzero", .params = "x", .nout = 1, .formula = "nonzero(ravel(x))",
      .doc = MANUAL("the indices of the nonzero elements of flattened x") })
    BUILT({ .name = "nonzero_values", .params = "x", .nout = 1, .formula = "v = ravel(x); v[nonzero(v)]",
      .doc = MANUAL("the nonzero elements of x as a vector") })
    BUILT({ .name = "compress", .params = "c, x, axis=None:int", .nout = 1, .formula = "take(x, nonzero(c), axis=axis)",
      .doc = MANUAL("the slices of x along an axis where the vector c is nonzero") })
    BUILT({ .name = "fill_diagonal", .params = "x, v", .nout = 1,
      .formula = "where(eq(expand_dims(arange(size(x, 0)), 1), arange(size(x, 1))), cast(v, x.dtype), x)",
      .doc = MANUAL("the matrix x with v on its diagonal") })
    BUILT({ .name = "fill_diagonal_offset", .params = "x, v, offset", .nout = 1,
      .formula = "where(eq(expand_dims(arange(size(x, 0)), 1) + offset, arange(size(x, 1))), cast(v, x.dtype), x)",
      .example = MANUAL("fill_diagonal_offset(x, 9., 1)"), .doc = MANUAL("the matrix x with v on its diagonal above the main one, or below it if offset is negative") })
};
const int mc_nops_gather = (int)NELEM(mc_ops_gather);
