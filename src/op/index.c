/* index.c: numbers and slices between [ and ]: parts of a tensor, and tensors with a part changed.
 *
 * Invariant: the numbers of bounds in a spec (graph.h) count as the inputs of subtensor do: x is 0.  In
 * subtensor_update the value y stands between x and the bounds, so there they are one less than the
 * node's own.  Constants are never inputs: build writes them into the spec. */
#include "op/index.h"

/* ---- specs ---- */

static bool is_whole(const int64_t *s)
{
    return !s[SPEC_INDEX] && !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && s[SPEC_STEP_KIND] != BOUND_INPUT &&
           (s[SPEC_STEP_KIND] == BOUND_NONE || s[SPEC_STEP] == 1);
}

/* The bound at s[0] (its kind) and s[1]; false: not known.  *v stays what it is for an absent one. */
static bool read(const int64_t *s, const mc_array *const *value, int64_t *v)
{
    if (s[0] == BOUND_CONST) {
        *v = s[1];
    } else if (s[0] == BOUND_INPUT) {
        if (!value[s[1]]) {
            return false;
        }
        *v = mc_load_i64(value[s[1]]->dtype, value[s[1]]->data);
    }
    return true;
}

static int64_t clip(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* One axis of n elements under the three bounds, as Python slices. */
static struct mc_cut slice(const int64_t *s, int64_t n, int64_t start, int64_t stop, int64_t step)
{
    struct mc_cut c = { .step = step };
    int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1;
    start = !s[SPEC_START_KIND] ? (step > 0 ? lo : hi) : clip(start < 0 ? start + n : start, lo, hi);
    stop = !s[SPEC_STOP_KIND] ? (step > 0 ? hi : lo) : clip(stop < 0 ? stop + n : stop, lo, hi);
    if (step > 0 && stop > start) {
        c.count = (stop - start - 1) / step + 1;
    } else if (step < 0 && start > stop) {
        c.count = (int64_t)((uint64_t)(start - stop - 1) / (0 - (uint64_t)step) + 1);
    }
    c.start = c.count ? start : 0;
    c.step = c.count > 1 ? step : 1;
    return c;
}

/* value[i]: bound number i, NULL if not known; a cut whose count is not known has count -1. */
static mc_status cuts(const struct mc_attr *spec, int rank, const int64_t *dims, const mc_array *const *value, struct mc_cut *cut)
{
    for (int i = 0; i < rank; i++) {
        const int64_t *s = &spec->ints[i * SPEC_N];
        int64_t n = dims[i], start = 0, stop = 0, step = 1;
        bool known = read(&s[SPEC_START_KIND], value, &start);
        known = read(&s[SPEC_STOP_KIND], value, &stop) && known;
        bool stepped = read(&s[SPEC_STEP_KIND], value, &step);
        if (stepped && step == 0) {
            return mc_fail(MC_EINDEX, "the step of a slice is 0, on axis %d", i);
        }
        if (s[SPEC_INDEX]) {
            if (known && n >= 0 && (start < -n || start >= n)) {
                return mc_fail(MC_EINDEX, "index %lld is out of range for axis %d with size %lld", (long long)start, i, (long long)n);
            }
            cut[i] = (struct mc_cut){ .start = start < 0 ? start + n : start, .count = 1, .step = 1, .index = true };
        } else if (n >= 0 && known && stepped) {
            cut[i] = slice(s, n, start, stop, step);
        } else {
            bool all = !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && stepped && (step == 1 || step == -1);
            cut[i] = (struct mc_cut){ .count = all ? n : -1, .step = 1 };
        }
    }
    return MC_OK;
}

mc_status mc_index_cuts(const mc_node *n, const int64_t *dims, const mc_array *const *in, struct mc_cut *cut)
{
    return cuts(&n->attr[0], n->in[0]->type.rank, dims, in + n->op->sig->ntensor - 1, cut);
}

/* Bounds must be whole numbers; the region's type follows. */
static mc_status region_infer(const struct mc_infer *q, int first, struct mc_type *out)
{
    const struct mc_type *x = &q->in[0];
    struct mc_cut cut[MC_MAX_RANK];
    if (q->attr[0].n != x->rank * SPEC_N) {
        return mc_fail(MC_ESHAPE, "%d numbers for an index into rank %d, not %d", q->attr[0].n, x->rank, x->rank * SPEC_N);
    }
    for (int i = first; i < q->nin; i++) {
        if (q->in[i].rank || !mc_is_int(q->in[i].dtype)) {
            return mc_fail(MC_ETYPE, "the bounds of a slice must be whole numbers");
        }
    }
    for (int i = 0; i < q->attr[0].n; i++) {
        int at = i % SPEC_N;
        bool kind = at == SPEC_START_KIND || at == SPEC_STOP_KIND || at == SPEC_STEP_KIND;
        if (kind && q->attr[0].ints[i] == BOUND_INPUT &&
            (q->attr[0].ints[i + 1] < 1 || q->attr[0].ints[i + 1] + first - 1 >= q->nin)) {
            return mc_fail(MC_EARG, "there is no bound number %lld", (long long)q->attr[0].ints[i + 1]);
        }
    }
    TRY(cuts(&q->attr[0], x->rank, x->dims, q->value + first - 1, cut));
    *out = (struct mc_type){ .dtype = x->dtype };
    for (int i = 0; i < x->rank; i++) {
        if (!cut[i].index) {
            out->dims[out->rank++] = cut[i].count;
        }
    }
    return MC_OK;
}

/* The region as a view of x. */
static mc_array *region_view(const mc_node *n, const mc_array *x, mc_array *const *in)
{
    struct mc_cut cut[MC_MAX_RANK];
    int64_t dims[MC_MAX_RANK], strides[MC_MAX_RANK];
    int rank = 0;
    char *data = x->data;
    if (mc_index_cuts(n, x->dims, (const mc_array *const *)in, cut) < 0) {
        return NULL;
    }
    for (int i = 0; i < x->rank; i++) {
        data += cut[i].start * x->strides[i];
        if (!cut[i].index) {
            dims[rank] = cut[i].count;
            strides[rank++] = x->strides[i] * cut[i].step;
        }
    }
    return mc_array_view(x, rank, dims, strides, data);
}

/* Constant bounds go into the spec; inputs no bound names any more go.  One notation for one region. */
static int fold_bounds(const struct mc_attr *spec, mc_node *const *bound, int64_t *out, mc_node **left)
{
    int n = 0, count;
    int64_t v;
    for (int i = 0; i < spec->n; i++) {
        out[i] = spec->ints[i];
    }
    for (int i = 0; i < spec->n; i += SPEC_N) {
        for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
            int64_t *s = &out[i + k];
            if (s[0] != BOUND_INPUT) {
                s[1] = s[0] == BOUND_NONE ? 0 : s[1];
            } else if (mc_const_ints(bound[s[1]], &v, 1, &count)) {
                s[0] = BOUND_CONST;
                s[1] = v;
            } else {
                left[n] = bound[s[1]];
                s[1] = ++n;
            }
        }
        bool forward = out[i + SPEC_STEP_KIND] == BOUND_NONE || (out[i + SPEC_STEP_KIND] == BOUND_CONST && out[i + SPEC_STEP] > 0);
        if (forward && !out[i + SPEC_INDEX] && out[i + SPEC_START_KIND] == BOUND_CONST && out[i + SPEC_START] == 0) {
            out[i + SPEC_START_KIND] = BOUND_NONE; /* x[0:3] is x[:3] */
        }
        if (!out[i + SPEC_INDEX] && out[i + SPEC_STEP_KIND] == BOUND_NONE) {
            out[i + SPEC_STEP_KIND] = BOUND_CONST;
            out[i + SPEC_STEP] = 1;
        }
    }
    return n;
}

/* Does the spec fit x and name bounds that are there?  What does not is left to infer to explain. */
static bool is_sound(const struct mc_attr *spec, const mc_node *x, int nbound)
{
    bool ok = spec->n == x->type.rank * SPEC_N;
    for (int i = 0; ok && i < spec->n; i += SPEC_N) {
        for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
            const int64_t *s = &spec->ints[i + k];
            ok &= s[0] >= BOUND_NONE && s[0] <= BOUND_INPUT && (s[0] != BOUND_INPUT || (s[1] >= 1 && s[1] <= nbound));
        }
    }
    return ok;
}

/* ---- subtensor ---- */

static mc_status subtensor_infer(struct mc_infer *q)
{
    return region_infer(q, 1, &q->out[0]);
}

static mc_status subtensor_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_array *view = region_view(n, in[0], in);
    mc_status s = view ? mc_array_assign(out[0], view) : mc_last_status();
    mc_array_unref(&view);
    return s;
}

/* Which axis of x the result's axis is. */
static int axis_of_x(const struct mc_attr *spec, int axis)
{
    int i = 0;
    while (spec->ints[i * SPEC_N + SPEC_INDEX] || axis-- > 0) {
        i++;
    }
    return i;
}

/* Constant bounds and steps forward have a formula; min and max stay out where a bound is absent. */
static mc_node *subtensor_size(mc_node *n, int item, int axis)
{
    (void)item;
    int from = axis_of_x(&n->attr[0], axis);
    const int64_t *s = &n->attr[0].ints[from * SPEC_N];
    mc_node *size = mc_size_of(n->in[0], from);
    int64_t step = s[SPEC_STEP_KIND] ? s[SPEC_STEP] : 1;
    struct mc_bind b[4] = { { "n", size, NULL }, { "a", mc_node_int(n->graph, s[SPEC_START]), NULL },
                            { "b", mc_node_int(n->graph, s[SPEC_STOP]), NULL }, { "s", mc_node_int(n->graph, step), NULL } };
    bool starts = s[SPEC_START_KIND] != BOUND_NONE, stops = s[SPEC_STOP_KIND] != BOUND_NONE;
    if (s[SPEC_START_KIND] == BOUND_INPUT || s[SPEC_STOP_KIND] == BOUND_INPUT || s[SPEC_STEP_KIND] == BOUND_INPUT) {
        return NULL;
    }
    if (step < 0) {
        b[3].node = mc_node_int(n->graph, -step);
        return s[SPEC_START_KIND] || s[SPEC_STOP_KIND] ? NULL : step == -1 ? size : mc_expr(n->graph, "-((-n) // s)", b, 4);
    }
    const char *text = !starts && !stops ? "n"
                       : !starts ? (s[SPEC_STOP] < 0 ? "maximum(n + b, 0)" : "minimum(n, b)")
                       : !stops ? (s[SPEC_START] < 0 ? "minimum(n, -a)" : "maximum(n - a, 0)")
                       : s[SPEC_START] < 0 ? (s[SPEC_STOP] < 0 ? "maximum(maximum(n + b, 0) - maximum(n + a, 0), 0)"
                                                               : "maximum(minimum(n, b) - maximum(n + a, 0), 0)")
                       : s[SPEC_STOP] < 0 ? "maximum(n + b - a, 0)" : "maximum(minimum(n, b) - a, 0)";
    mc_node *length = mc_expr(n->graph, text, b, 4);
    b[0].node = length;
    return step == 1 ? length : mc_expr(n->graph, "-((-n) // s)", b, 4);
}

static mc_node *update(mc_node *x, mc_node *y, int nbound, mc_node *const *bound, const struct mc_attr *spec, bool set)
{
    int64_t flag = set;
    mc_node *in[2 + 3 * MC_MAX_RANK] = { x, y };
    struct mc_attr a[2] = { *spec, { .kind = ATTR_BOOL, .n = 1, .ints = &flag } };
    if (mc_is_error(x) || mc_is_error(y)) {
        return x->graph->error;
    }
    memcpy(in + 2, bound, (size_t)nbound * sizeof *bound);
    return mc_apply(x->graph, mc_op_find("subtensor_update"), 2 + nbound, in, a);
}

static mc_node *subtensor_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt || !g[0]) {
        return NULL;
    }
    mc_node *zeros = mc_call_op(n->graph, "zeros_like", 1, n->in, NULL);
    return update(zeros, g[0], n->nin - 1, n->in + 1, &n->attr[0], false);
}

/* x.shape[0], [n, 10][1] and numbers out of constant vectors are there already. */
static mc_node *known_element(mc_node *x, const int64_t *s)
{
    int64_t size = x->type.dims[0], at = s[SPEC_START] < 0 ? s[SPEC_START] + size : s[SPEC_START];
    if (x->type.rank != 1 || !s[SPEC_INDEX] || s[SPEC_START_KIND] != BOUND_CONST || size < 0 || at < 0 || at >= size) {
        return NULL;
    }
    if (strcmp(x->op->name, "shape") == 0) {
        return mc_size_of(x->in[0], (int)at);
    }
    if (strcmp(x->op->name, "stack") == 0) {
        return x->in[at];
    }
    if (mc_is_const(x)) {
        return mc_node_const(x->graph, mc_array_from(x->type.dtype, 0, NULL, x->value->data + at * x->value->strides[0]), false);
    }
    return NULL;
}

static mc_node *build_subtensor(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_op *op = mc_op_find("subtensor");
    int64_t ints[MC_MAX_RANK * SPEC_N];
    mc_node *arg[1 + 3 * MC_MAX_RANK] = { in[0] };
    bool whole = true;
    if (!is_sound(attr, in[0], nin - 1)) {
        return mc_node_make(g, op, nin, in, attr);
    }
    struct mc_attr spec = { .kind = ATTR_INTS, .n = attr->n, .ints = ints };
    int n = 1 + fold_bounds(attr, in, ints, arg + 1);
    for (int i = 0; i < spec.n; i += SPEC_N) {
        whole &= is_whole(&ints[i]);
    }
    mc_node *known = whole ? in[0] : known_element(in[0], ints);
    return known ? known : mc_node_make(g, op, n, arg, &spec);
}

/* ---- printing ---- */

/* Operators print with spaces around them, and everything else keeps its spaces within brackets. */
void mc_print_indexed(struct mc_str *out, const mc_node *n, void (*arg)(struct mc_str *, const mc_node *, int, void *), void *ctx)
{
    size_t from = out->n, depth = 0;
    bool operates = false;
    arg(out, n, 0, ctx);
    for (size_t i = from; i < out->n; i++) {
        char c = out->s[i];
        depth += c == '(' || c == '[';
        depth -= (c == ')' || c == ']') && depth;
        operates |= !depth && (c == ' ' || (i == from && (c == '-' || c == '~')));
    }
    if (operates) {
        size_t size = out->n - from;
        mc_str_add(out, "()");
        if (!out->bad) {
            memmove(out->s + from + 1, out->s + from, size);
            out->s[from] = '(';
        }
    }
}

static void print_bound(struct mc_str *out, const mc_node *n, const int64_t *s, int shift,
                        void (*arg)(struct mc_str *, const mc_node *, int, void *), void *ctx)
{
    if (s[0] == BOUND_CONST) {
        mc_str_addf(out, "%lld", (long long)s[1]);
    } else if (s[0] == BOUND_INPUT) {
        arg(out, n, (int)s[1] + shift, ctx);
    }
}

static void print_region(struct mc_str *out, const mc_node *n, void (*arg)(struct mc_str *, const mc_node *, int, void *), void *ctx)
{
    int rank = n->in[0]->type.rank, shift = n->op->sig->ntensor - 1;
    while (rank > 1 && is_whole(&n->attr[0].ints[(rank - 1) * SPEC_N])) {
        rank--;
    }
    mc_print_indexed(out, n, arg, ctx);
    for (int i = 0; i < rank; i++) {
        const int64_t *s = &n->attr[0].ints[i * SPEC_N];
        mc_str_add(out, i ? ", " : "[");
        print_bound(out, n, &s[SPEC_START_KIND], shift, arg, ctx);
        if (!s[SPEC_INDEX]) {
            mc_str_add(out, ":");
            print_bound(out, n, &s[SPEC_STOP_KIND], shift, arg, ctx);
            if (s[SPEC_STEP_KIND] == BOUND_INPUT || (s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] != 1)) {
                mc_str_add(out, ":");
                print_bound(out, n, &s[SPEC_STEP_KIND], shift, arg, ctx);
            }
        }
    }
    mc_str_add(out, "]");
}

/* An element of a literal list reads as the literal itself, so constants go as a call. */
static bool subtensor_print(struct mc_str *out, const mc_node *n, void (*arg)(struct mc_str *, const mc_node *, int, void *), void *ctx)
{
    if (mc_is_const(n->in[0]) || n->in[0]->type.rank == 0) {
        return false;
    }
    print_region(out, n, arg, ctx);
    return true;
}

/* ---- subtensor_update ---- */

mc_node *mc_region_value(const char *op, mc_node *x, mc_node *y, int rank)
{
    int64_t order[MC_MAX_RANK];
    int more = rank - y->type.rank;
    if (more < 0) {
        return mc_node_fail(x->graph, MC_ESHAPE, "%s: a value of rank %d for a region of rank %d", op, y->type.rank, rank);
    }
    bool rounds = y->weak ? mc_is_float(y->type.dtype) && !mc_is_float(x->type.dtype)
                          : mc_dtype_promote(x->type.dtype, y->type.dtype) != x->type.dtype;
    if (rounds) {
        return mc_node_fail(x->graph, MC_ETYPE, "%s: %s would be rounded to %s; cast it", op, mc_dtype_name(y->type.dtype),
                            mc_dtype_name(x->type.dtype));
    }
    y = mc_cast_to(y, x->type.dtype);
    if (!mc_is_error(y) && y->weak) {
        y = mc_node_const(x->graph, mc_array_ref(y->value), false);
    }
    if (!more || mc_is_error(y)) {
        return y;
    }
    for (int i = 0; i < rank; i++) {
        order[i] = i < more ? -1 : i - more;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = order };
    return mc_apply(x->graph, mc_op_find("dimshuffle"), 1, &y, &a);
}

mc_status mc_region_fits(const char *op, const struct mc_type *y, const struct mc_type *region)
{
    bool fits = y->rank == region->rank;
    for (int i = 0; fits && i < y->rank; i++) {
        fits = y->dims[i] == 1 || y->dims[i] < 0 || region->dims[i] < 0 || y->dims[i] == region->dims[i];
    }
    if (fits) {
        return MC_OK;
    }
    struct mc_str a = { 0 }, b = { 0 };
    mc_dims_text(&a, y->rank, y->dims);
    mc_dims_text(&b, region->rank, region->dims);
    mc_status s = mc_fail(MC_ESHAPE, "%s: a value of shape %s does not fit a region of shape %s", op, a.s ? a.s : "", b.s ? b.s : "");
    mc_str_free(&a);
    mc_str_free(&b);
    return s;
}

mc_status mc_region_strides(const mc_node *n, const mc_array *y, int rank, const int64_t *dims, int64_t *strides)
{
    struct mc_type have = mc_type_make(y->dtype, y->rank, y->dims), want = mc_type_make(y->dtype, rank, dims);
    TRY(mc_region_fits(n->op->name, &have, &want));
    for (int i = 0; i < rank; i++) {
        strides[i] = y->dims[i] == 1 ? 0 : y->strides[i];
        if (y->dims[i] == 1 && dims[i] != 1 && n->in[1]->type.dims[i] != 1) {
            return mc_fail(MC_ESHAPE, "%s: axis %d of the value has size 1 and the region %lld; declare the size 1 to broadcast it",
                           n->op->name, i, (long long)dims[i]);
        }
    }
    return MC_OK;
}

mc_node *mc_region_grad(mc_node *g, mc_node *y)
{
    for (int i = 0; i < y->type.rank && !mc_is_error(g); i++) {
        if (y->type.dims[i] == 1 && g->type.dims[i] != 1) {
            g = mc_call_op(g->graph, "sum", 1, &g, "axis=%d, keepdims=True", i);
        }
    }
    return g;
}

void mc_region_row(mc_dtype d, bool set, char *x, int64_t xstep, const char *y, int64_t ystep, int64_t n)
{
    if (set) {
        mc_convert(d, x, xstep, d, y, ystep, n);
        return;
    }
    for (int64_t i = 0; i < n; i++, x += xstep, y += ystep) {
        if (mc_is_float(d)) { /* the sum of two floats of half its digits is rounded in double but once */
            mc_store_f64(d, x, mc_load_f64(d, x) + mc_load_f64(d, y));
        } else {
            mc_store_i64(d, x, (int64_t)((uint64_t)mc_load_i64(d, x) + (uint64_t)mc_load_i64(d, y)));
        }
    }
}

static mc_status update_infer(struct mc_infer *q)
{
    struct mc_type region;
    TRY(region_infer(q, 2, &region));
    q->out[0] = q->in[0];
    if (q->in[1].dtype != q->in[0].dtype) {
        return mc_fail(MC_ETYPE, "subtensor_update: a value of dtype %s for %s", mc_dtype_name(q->in[1].dtype),
                       mc_dtype_name(q->in[0].dtype));
    }
    return mc_region_fits("subtensor_update", &q->in[1], &region);
}

static mc_node *update_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[0], axis);
}

static mc_status update_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_walk w;
    int64_t strides[MC_MAX_RANK];
    TRY(mc_array_assign(out[0], in[0]));
    mc_array *x = region_view(n, out[0], in);
    mc_status s = x ? mc_region_strides(n, in[1], x->rank, x->dims, strides) : mc_last_status();
    if (s == MC_OK && mc_walk_begin(&w, x->rank, x->dims, 1, 2, (char *[]){ x->data, in[1]->data },
                                    (const int64_t *[]){ x->strides, strides })) {
        int last = x->rank - 1;
        do {
            mc_region_row(x->dtype, mc_attr_int(&n->attr[1]), w.p[0], last < 0 ? 0 : x->strides[last], w.p[1],
                          last < 0 ? 0 : strides[last], last < 0 ? 1 : x->dims[last]);
        } while (mc_walk_next(&w));
    }
    mc_array_unref(&x);
    return s;
}

static mc_node *update_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt > 1 || !g[0]) {
        return NULL;
    }
    if (wrt == 0) {
        return mc_attr_int(&n->attr[1]) ? update(g[0], mc_node_like(g[0], 0), n->nin - 2, n->in + 2, &n->attr[0], true) : g[0];
    }
    mc_node *in[1 + 3 * MC_MAX_RANK] = { g[0] };
    memcpy(in + 1, n->in + 2, (size_t)(n->nin - 2) * sizeof *in);
    return mc_region_grad(mc_apply(n->graph, mc_op_find("subtensor"), n->nin - 1, in, &n->attr[0]), n->in[1]);
}

static mc_node *build_update(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_op *op = mc_op_find("subtensor_update");
    int64_t ints[MC_MAX_RANK * SPEC_N];
    mc_node *arg[2 + 3 * MC_MAX_RANK] = { in[0], in[1] };
    int rank = 0;
    if (!is_sound(&attr[0], in[0], nin - 2)) {
        return mc_node_make(g, op, nin, in, attr);
    }
    struct mc_attr a[2] = { { .kind = ATTR_INTS, .n = attr[0].n, .ints = ints }, attr[1] };
    int n = 2 + fold_bounds(&attr[0], in + 1, ints, arg + 2);
    for (int i = 0; i < a[0].n; i += SPEC_N) {
        rank += !ints[i + SPEC_INDEX];
    }
    arg[1] = mc_region_value(mc_attr_int(&attr[1]) ? "set_subtensor" : "inc_subtensor", in[0], in[1], rank);
    return mc_is_error(arg[1]) ? arg[1] : mc_node_make(g, op, n, arg, a);
}

/* Of a part of a part, the text would change the whole; such goes as a call. */
static bool update_print(struct mc_str *out, const mc_node *n, void (*arg)(struct mc_str *, const mc_node *, int, void *), void *ctx)
{
    const mc_node *x = n->in[0];
    bool whole = true;
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        whole &= is_whole(&n->attr[0].ints[i]);
    }
    if (whole || mc_is_const(x) || strcmp(x->op->name, "subtensor") == 0 || strcmp(x->op->name, "gather") == 0) {
        return false;
    }
    mc_str_add(out, mc_attr_int(&n->attr[1]) ? "set_subtensor(" : "inc_subtensor(");
    print_region(out, n, arg, ctx);
    mc_str_add(out, ", ");
    arg(out, n, 1, ctx);
    mc_str_add(out, ")");
    return true;
}

/* ---- one axis, for other ops' gradients and builds ---- */

static mc_node *along(mc_node *x, int axis, mc_node *start, mc_node *stop, bool pick)
{
    int64_t ints[MC_MAX_RANK * SPEC_N] = { 0 };
    mc_node *in[3] = { x };
    int nin = 1;
    if (mc_is_error(x) || (start && mc_is_error(start)) || (stop && mc_is_error(stop))) {
        return x->graph->error;
    }
    for (int i = 0; i < x->type.rank; i++) {
        ints[i * SPEC_N + SPEC_STEP_KIND] = BOUND_CONST;
        ints[i * SPEC_N + SPEC_STEP] = 1;
    }
    int64_t *s = &ints[axis * SPEC_N];
    s[SPEC_INDEX] = pick;
    if (start) {
        s[SPEC_START_KIND] = BOUND_INPUT;
        s[SPEC_START] = nin;
        in[nin++] = start;
    }
    if (stop) {
        s[SPEC_STOP_KIND] = BOUND_INPUT;
        s[SPEC_STOP] = nin;
        in[nin++] = stop;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = ints };
    return mc_apply(x->graph, mc_op_find("subtensor"), nin, in, &a);
}

mc_node *mc_part(mc_node *x, int axis, mc_node *start, mc_node *stop)
{
    return along(x, axis, start, stop, false);
}

mc_node *mc_pick(mc_node *x, int axis, mc_node *i)
{
    return along(x, axis, i, NULL, true);
}

const struct mc_op mc_ops_index[] = {
    { .name = "subtensor", .params = "x, *bounds, spec:ints", .flags = OP_VIEW | OP_HIDDEN, .nout = 1, .shape_args = 1u << 31,
      .infer = subtensor_infer, .size = subtensor_size, .eval = subtensor_eval, .grad = subtensor_grad,
      .build = build_subtensor, .print = subtensor_print, .doc = "x[1:3, ::-1, i]" },
    { .name = "subtensor_update", .params = "x, y, *bounds, spec:ints, set:bool", .flags = OP_HIDDEN, .nout = 1,
      .infer = update_infer, .size = update_size, .eval = update_eval, .grad = update_grad, .build = build_update,
      .print = update_print, .doc = "x with a region set to y, or increased by y" },
};
const int mc_nops_index = (int)NELEM(mc_ops_index);
