/* rules_shape.c: casts, axes and sizes.
 *
 * Sizes are expressed by sizes of the inputs, so that no value is computed only for its size. Dimshuffles
 * move towards the inputs and combine there. An alloc moves towards the outputs, until a node takes the whole
 * shape from another operand and broadcasts the value at no cost. */
#include "rewrite/rewrite.h"

/* ---- casts ---- */

/* Does dtype a hold every number of dtype x, so that a cast of x to a loses nothing? */
static bool holds(mc_dtype a, mc_dtype x)
{
    static const struct { int digits, range; bool sign; } held[MC_NDTYPE] = {
        [MC_BOOL] = { 1, 1, false },
        [MC_INT8] = { 7, 7, true },   [MC_INT16] = { 15, 15, true },   [MC_INT32] = { 31, 31, true },   [MC_INT64] = { 63, 63, true },
        [MC_UINT8] = { 8, 8, false }, [MC_UINT16] = { 16, 16, false }, [MC_UINT32] = { 32, 32, false }, [MC_UINT64] = { 64, 64, false },
        [MC_FLOAT16] = { 11, 15, true }, [MC_BFLOAT16] = { 8, 127, true }, [MC_FLOAT32] = { 24, 127, true }, [MC_FLOAT64] = { 53, 1023, true },
    };
    return a != MC_BOOL && held[a].digits >= held[x].digits && held[a].range >= held[x].range &&
           held[a].sign >= held[x].sign && mc_is_float(a) >= mc_is_float(x);
}

/* An integer cast to a narrower integer wraps, and a float does not: integer to float to integer is kept. */
static mc_node *cast_of_cast(const struct mc_match *m)
{
    mc_node *n = m->root, *inner = n->in[0];
    if (inner->type.dtype == n->type.dtype) {
        return inner;
    }
    if (inner->op->form != FORM_CAST) {
        return NULL;
    }
    mc_dtype x = inner->in[0]->type.dtype, via = inner->type.dtype;
    bool plain = mc_is_float(via) == mc_is_float(x) || mc_is_float(n->type.dtype);
    return holds(via, x) && plain ? mc_cast_to(inner->in[0], n->type.dtype) : NULL;
}

/* ---- sizes ---- */

static mc_node *size_lifted(const struct mc_match *m)
{
    mc_node *x = m->root->in[0];
    int64_t axis = mc_attr_int(&m->root->attr[0]);
    if (x->op == &mc_op_item) {
        return mc_lifted_size(x->in[0], x->item, (int)(axis < 0 ? axis + x->type.rank : axis));
    }
    return mc_lifted_size(x, 0, (int)(axis < 0 ? axis + x->type.rank : axis));
}

static mc_node *shape_as_sizes(const struct mc_match *m)
{
    return m->root->in[0]->type.rank ? mc_shape_vector(m->root->in[0]) : mc_node_ints(m->g, 0, NULL);
}

/* ---- dimshuffle ---- */

/* A dimshuffle of an element-wise op f becomes f of dimshuffles: its operands have the axes of the result,
 * each of the result's size or 1. */
static mc_node *through_scalar(const struct mc_match *m, mc_node *f)
{
    mc_node *in[4];
    const struct mc_attr *order = &m->root->attr[0];
    for (int i = 0; i < f->nin; i++) {
        in[i] = f->in[i]->type.rank ? mc_shuffle(f->in[i], order->n, order->ints) : f->in[i];
        if (mc_is_error(in[i])) {
            return in[i];
        }
    }
    return mc_node_make(m->g, f->op, f->nin, in, NULL);
}

static bool makes_axes(const mc_node *shuffle)
{
    for (int i = 0; i < shuffle->attr[0].n; i++) {
        if (shuffle->attr[0].ints[i] < 0) {
            return true;
        }
    }
    return false;
}

/* A dimshuffle that adds axes moves through f only if it then meets another dimshuffle, a reduction, an alloc
 * or a constant at every operand. Elsewhere it would only add work. */
static bool meets_something(const struct mc_match *m, const mc_node *f, int depth)
{
    for (int i = 0; i < f->nin; i++) {
        const mc_node *x = f->in[i];
        bool ends = !x->type.rank || mc_is_const(x) || x->op->flags & OP_REDUCES ||
                    x->op->form == FORM_DIMSHUFFLE || x->op->form == FORM_ALLOC;
        if (!ends && !(x->op->arity && depth > 0 && mc_used_once(m, x) && meets_something(m, x, depth - 1))) {
            return false;
        }
    }
    return true;
}

/* A dimshuffle of alloc(v, shape) is an alloc of the shuffled v to the shuffled shape. */
static mc_node *through_alloc(const struct mc_match *m, mc_node *a)
{
    const struct mc_attr *order = &m->root->attr[0];
    mc_node *size[MC_MAX_RANK], *v = a->in[0];
    int64_t own[MC_MAX_RANK];
    int more = a->type.rank - v->type.rank;
    for (int i = 0; i < order->n; i++) {
        int64_t from = order->ints[i];
        size[i] = from < 0 ? mc_node_int(m->g, 1) : mc_shape_entry_node(a->in[1], (int)from);
        own[i] = from < more ? -1 : from - more;
        if (!size[i]) {
            return NULL;
        }
    }
    v = v->type.rank ? mc_shuffle(v, order->n, own) : v;
    return mc_is_error(v) ? NULL : mc_op2("alloc", v, mc_shape_stack(m->g, order->n, size));
}

/* A dimshuffle that restores the axes that a reduction dropped gives the reduction with keepdims; one that
 * drops the axes that it kept gives the reduction without. */
static mc_node *restores_axes(const struct mc_match *m, mc_node *r)
{
    const struct mc_attr *order = &m->root->attr[0];
    int axis[MC_MAX_RANK], rank = r->in[0]->type.rank, n = (int)mc_axes_of(r, 0, rank, axis), next = 0,
                           from = 0, at = 0;
    struct mc_attr a[8];
    int64_t keep = !mc_attr_int(&r->attr[1]);
    if (order->n != (keep ? rank : rank - n) || n < 1) {
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        bool gone = next < n && axis[next] == i;
        next += gone;
        if ((keep || !gone) && order->ints[at++] != (!keep ? i : gone ? -1 : from++)) {
            return NULL;
        }
    }
    memcpy(a, r->attr, (size_t)r->op->sig->nattr * sizeof *a);
    a[1].ints = &keep;
    return mc_node_make(m->g, r->op, 1, r->in, a);
}

static mc_node *shuffle(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0];
    const struct mc_attr *order = &n->attr[0];
    int64_t both[MC_MAX_RANK];
    if (x->op->form == FORM_DIMSHUFFLE) {
        for (int i = 0; i < order->n; i++) {
            both[i] = order->ints[i] < 0 ? -1 : x->attr[0].ints[order->ints[i]];
        }
        return mc_shuffle(x->in[0], order->n, both);
    }
    bool same = order->n == x->type.rank; /* axes of size 1 are interchangeable */
    for (int i = 0; same && i < order->n; i++) {
        same = order->ints[i] == i || (x->type.dims[i] == 1 && n->type.dims[i] == 1);
    }
    if (same) {
        return x;
    }
    if (x->op->arity && x->type.rank && mc_used_once(m, x) && (!makes_axes(n) || meets_something(m, x, 4))) {
        return through_scalar(m, x);
    }
    if (x->op->form == FORM_CAST && x->type.rank) {
        mc_node *y = mc_shuffle(x->in[0], order->n, order->ints);
        return mc_is_error(y) ? NULL : mc_cast_to(y, n->type.dtype);
    }
    const bool turned = order->n == 2 && order->ints[0] == 1 && order->ints[1] == 0;
    if (x->op->flags & OP_MATMUL && x->type.rank == 2 && turned && mc_used_once(m, x)) { /* (a b)' = b' a' */
        return mc_node_make(
            m->g, x->op, 2,
            (mc_node *[]){ mc_shuffle(x->in[1], 2, order->ints), mc_shuffle(x->in[0], 2, order->ints) },
            NULL);
    }
    return x->op->form == FORM_ALLOC   ? through_alloc(m, x)
           : x->op->flags & OP_REDUCES ? restores_axes(m, x)
                                       : NULL;
}

/* ---- reshape ---- */

static bool is_open(const mc_node *size)
{
    int64_t v;
    int n;
    return mc_const_ints(size, &v, 1, &n) && v < 0;
}

/* A reshape that only adds or drops axes of size 1, or changes nothing, is a dimshuffle. */
static mc_node *as_shuffle(const struct mc_match *m, mc_node *x, mc_node *shape)
{
    int64_t order[MC_MAX_RANK], v;
    int rank = m->root->type.rank, from = 0, open = 0, n;
    for (int i = 0; i < rank; i++) {
        mc_node *size = mc_shape_entry_node(shape, i);
        if (!size) {
            return NULL;
        }
        if (mc_const_ints(size, &v, 1, &n) && v == 1 && (from == x->type.rank || x->type.dims[from] != 1)) {
            order[i] = -1;
            continue;
        }
        while (from < x->type.rank && x->type.dims[from] == 1 &&
               !(mc_const_ints(size, &v, 1, &n) && v == 1)) {
            from++;
        }
        open += is_open(size);
        if (from == x->type.rank ||
            (is_open(size) ? open > 1 || x->type.dims[from] == 0 : !mc_size_is(size, x, from))) {
            return NULL;
        }
        order[i] = from++;
    }
    while (from < x->type.rank && x->type.dims[from] == 1) {
        from++;
    }
    return from == x->type.rank ? mc_shuffle(x, rank, order) : NULL;
}

static bool keeps_order(const mc_node *shuffle)
{
    int64_t last = -1;
    for (int i = 0; i < shuffle->attr[0].n; i++) {
        int64_t k = shuffle->attr[0].ints[i];
        if (k >= 0 && k < last) {
            return false;
        }
        last = k >= 0 ? k : last;
    }
    return true;
}

static mc_node *reshape(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0], *size[MC_MAX_RANK];
    if (x->op->form == FORM_RESHAPE || (x->op->form == FORM_DIMSHUFFLE && keeps_order(x))) {
        return mc_node_make(m->g, n->op, 2, (mc_node *[]){ x->in[0], n->in[1] }, n->attr);
    }
    if (x->op->form == FORM_ALLOC && x->in[0]->type.rank == 0) {
        for (int i = 0; i < n->type.rank; i++) {
            size[i] = mc_shape_entry_node(n->in[1], i);
            if (!size[i] || is_open(size[i]) || !(mc_is_const(size[i]) || size[i]->op->form == FORM_SIZE)) {
                return NULL;
            }
        }
        return mc_op2("alloc", x->in[0], mc_shape_stack(m->g, n->type.rank, size));
    }
    return as_shuffle(m, x, n->in[1]);
}

/* specify_shape is dropped where the sizes are known, or where it only undoes an unbroadcast. */
static mc_node *specified(const struct mc_match *m)
{
    mc_node *x = m->root->in[0];
    if (x->op->form == FORM_UNBROADCAST && mc_type_equal(&x->in[0]->type, &m->root->type)) {
        return x->in[0];
    }
    for (int i = 0; i < x->type.rank; i++) {
        if (m->root->attr[0].ints[i] >= 0 && x->type.dims[i] < 0) {
            return NULL; /* this size has to be checked at run time */
        }
    }
    return x;
}

/* ---- alloc ---- */

/* The scalar in x if all axes of x have size 1 and x is a constant or a dimshuffle of a scalar; else NULL. */
static mc_node *number_itself(mc_node *x)
{
    for (int i = 0; i < x->type.rank; i++) {
        if (x->type.dims[i] != 1) {
            return NULL;
        }
    }
    if (x->type.rank && mc_is_const(x)) {
        return mc_node_const(x->graph, mc_array_reshape(x->value, 0, NULL), false);
    }
    return x->type.rank && x->op->form == FORM_DIMSHUFFLE && x->in[0]->type.rank == 0 ? x->in[0] : NULL;
}

/* x with a check that its axes have size 1 where the alloc's have. The axes of x are the last ones of the
 * alloc. */
static mc_node *promised(mc_node *x, const struct mc_type *t)
{
    int64_t sizes[MC_MAX_RANK];
    bool any = false;
    for (int i = 0; i < x->type.rank; i++) {
        bool one = x->type.dims[i] < 0 && t->dims[t->rank - x->type.rank + i] == 1;
        sizes[i] = one ? 1 : -1;
        any |= one;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank, .ints = sizes };
    return any ? mc_apply(x->graph, mc_op_find("specify_shape"), 1, &x, &a) : x;
}

static mc_node *alloc(const struct mc_match *m)
{
    mc_node *n = m->root, *x = promised(n->in[0], &n->type);
    if (x != n->in[0]) {
        return mc_op2("alloc", x, n->in[1]);
    }
    bool same = x->type.rank == n->type.rank;
    for (int i = 0; same && i < n->type.rank; i++) {
        mc_node *size = mc_shape_entry_node(n->in[1], i);
        same = x->type.dims[i] == 1 ? n->type.dims[i] == 1 : size && mc_size_is(size, x, i);
    }
    if (same) {
        return x;
    }
    mc_node *bare = number_itself(x);
    return x->op->form == FORM_ALLOC ? mc_op2("alloc", x->in[0], n->in[1])
           : bare                    ? mc_op2("alloc", bare, n->in[1])
                                     : NULL;
}

/* Does another operand have the full size of every axis along which operand k is repeated? */
static bool others_cover(const mc_node *n, int k)
{
    for (int axis = 0; axis < n->type.rank; axis++) {
        bool covered = n->in[k]->type.dims[axis] == 1;
        for (int i = 0; i < n->nin && !covered; i++) {
            covered = i != k && n->in[i]->type.rank == n->type.rank && n->in[i]->type.dims[axis] != 1;
        }
        if (!covered) {
            return false;
        }
    }
    return true;
}

/* An alloc among the operands of a scalar op is dropped if broadcasting does the same. If the other operands
 * are scalars, the op is applied before the alloc. */
static mc_node *scalar_of_alloc(const struct mc_match *m)
{
    mc_node *n = m->root, *in[4];
    int k = 0, numbers = 0;
    if (!n->op->arity || n->type.rank == 0) {
        return NULL;
    }
    while (k < n->nin && !(n->in[k]->op->form == FORM_ALLOC && (others_cover(n, k) || n->nin == 1))) {
        numbers += n->in[k]->type.rank == 0;
        k++;
    }
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    if (k < n->nin && n->nin > 1) {
        in[k] = n->in[k]->in[0];
        return mc_apply(m->g, n->op, n->nin, in, NULL);
    }
    int which = -1;
    for (int i = 0; i < n->nin; i++) {
        which = n->in[i]->op->form == FORM_ALLOC ? i : which;
    }
    if (which < 0 || numbers + 1 < (n->nin == 1 ? 1 : n->nin)) {
        return NULL;
    }
    in[which] = n->in[which]->in[0];
    mc_node *y = mc_apply(m->g, n->op, n->nin, in, NULL);
    return mc_is_error(y) ? y : mc_op2("alloc", y, n->in[which]->in[1]);
}

/* An operand that is a scalar with axes of size 1 loses its axes. One operand with all axes must remain. */
static mc_node *scalar_of_number(const struct mc_match *m)
{
    mc_node *n = m->root, *in[4], *bare;
    int full = 0;
    if (!n->op->arity || n->type.rank == 0) {
        return NULL;
    }
    for (int i = 0; i < n->nin; i++) {
        full += n->in[i]->type.rank > 0;
    }
    for (int k = 0; k < n->nin && full > 1; k++) {
        if ((bare = number_itself(n->in[k]))) {
            memcpy(in, n->in, (size_t)n->nin * sizeof *in);
            in[k] = bare;
            return mc_is_error(bare) ? bare : mc_node_make(m->g, n->op, n->nin, in, NULL);
        }
    }
    return NULL;
}

static mc_node *cast_of_alloc(const struct mc_match *m)
{
    mc_node *a = m->root->in[0];
    return a->op->form == FORM_ALLOC ? mc_op2("alloc", mc_cast_to(a->in[0], m->root->type.dtype), a->in[1])
                                     : NULL;
}

/* ---- axes as attributes: one notation ---- */

static mc_node *last_axis(const struct mc_match *m)
{
    mc_node *n = m->root;
    int64_t axis = mc_attr_int(&n->attr[0]), rank = n->in[0]->type.rank;
    int64_t want = axis == rank - 1 ? -1 : axis < -1 ? axis + rank : axis;
    struct mc_attr a = n->attr[0];
    a.ints = &want;
    return want == axis ? NULL : mc_node_make(m->g, n->op, n->nin, n->in, &a);
}

static const struct mc_rule rows[] = {
    { .op = "cast",          .make = cast_of_cast,    .promise = EXACT, .name = "cast of cast",    .sample = "cast(cast(cast(x, float32), float64), float32)" },
    { .op = "cast",          .make = cast_of_alloc,   .promise = EXACT, .name = "cast of alloc",   .sample = "cast(alloc(2.0f64, x.shape), float32)" },
    { .op = "size",          .make = size_lifted,     .promise = EXACT, .name = "size",            .sample = "size(exp(x), 0); size(dot(x, y.T), 1); size(softmax(x), 1)" },
    { .op = "shape",         .make = shape_as_sizes,  .promise = EXACT, .name = "shape",           .sample = "shape(exp(x))" },
    { .op = "dimshuffle",    .make = shuffle,         .promise = ROUND, .name = "dimshuffle",
      .sample = "transpose(dot(x, transpose(y))); transpose(transpose(x)); transpose(exp(transpose(x))); transpose(x * 2 + y); expand_dims(sum(x, axis=1), 1); transpose(alloc(x[0], [4, 5]))" },
    { .op = "reshape",       .make = reshape,         .promise = EXACT, .name = "reshape",
      .sample = "reshape(reshape(x, [-1]), [2, -1]); reshape(x, x.shape); reshape(expand_dims(x, 1), [-1]); reshape(x[0], [-1, 1]); reshape(alloc(3.0f64, x.shape), [5, 4])" },
    { .op = "specify_shape", .make = specified,       .promise = EXACT, .name = "specify_shape",   .sample = "specify_shape(expand_dims(x, 0), [1, -1, -1]); addbroadcast(unbroadcast(expand_dims(x, 0), 0), 0)" },
    { .op = "alloc",         .make = alloc,           .promise = EXACT, .name = "alloc",           .sample = "alloc(x, x.shape); alloc(alloc(2.0f64, [5]), x.shape)" },
    { .op = "*",             .make = scalar_of_alloc, .promise = EXACT, .name = "scalar of alloc", .sample = "x * alloc(2.0f64, x.shape); exp(alloc(2.0f64, x.shape)); alloc(x[0], x.shape) + y" },
    { .op = "*",             .make = scalar_of_number, .promise = EXACT, .name = "scalar of number", .sample = "x * [[2.0f64]]; x + expand_dims(expand_dims(x[0, 0], 0), 0)" },
    { .op = "softmax",       .make = last_axis,       .promise = EXACT, .name = "softmax axis",    .sample = "softmax(x, axis=1); softmax(x, axis=-2)" },
    { .op = "logsoftmax",    .make = last_axis,       .promise = EXACT, .name = "logsoftmax axis", .sample = "logsoftmax(x, axis=1)" },
};
const struct mc_rule_table mc_rules_shape = { rows, (int)NELEM(rows) };
