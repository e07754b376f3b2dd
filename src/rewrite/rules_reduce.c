/* rules_reduce.c: reductions over axes.
 *
 * Canonical form: axes are counted from the front, in ascending order, None for all of them; scalar factors
 * and signs are outside. Many rules exclude argmax: its result depends on the order of the elements. */
#include "rewrite/rewrite.h"

/* Reduction r applied to x over other axes. */
static mc_node *over(mc_node *r, mc_node *x, int n, const int *axis, bool keep)
{
    struct mc_attr a[8];
    int64_t ints[MC_MAX_RANK], flag = keep;
    memcpy(a, r->attr, (size_t)r->op->sig->nattr * sizeof *a);
    for (int i = 0; i < n; i++) {
        ints[i] = axis[i];
    }
    bool all = n == x->type.rank;
    a[0] = (struct mc_attr){ .kind = ATTR_AXES, .none = all, .n = all ? 0 : n, .ints = ints };
    a[1].n = 1;
    a[1].ints = &flag;
    return mc_node_make(r->graph, r->op, 1, &x, a);
}

static bool keeps(const mc_node *r)
{
    return mc_attr_int(&r->attr[1]) != 0;
}

static bool plain(const mc_node *r) /* no dtype given */
{
    return r->op->sig->nattr < 4 || (r->attr[2].none && r->attr[3].none);
}

static bool is_float_sum(const struct mc_match *m)
{
    return mc_is_float(m->root->type.dtype) && m->root->type.dtype == m->root->in[0]->type.dtype;
}

static bool y_is_number(const struct mc_match *m)
{
    return is_float_sum(m) && mc_letter(m, 'y')->type.rank == 0 && mc_letter_may_wait(m, 'y');
}

static mc_node *one_notation(const struct mc_match *m)
{
    mc_node *n = m->root;
    int axis[MC_MAX_RANK];
    if (!(n->op->flags & OP_REDUCES)) {
        return NULL;
    }
    int count = (int)mc_axes_of(n, 0, n->in[0]->type.rank, axis);
    return count < 0 ? NULL : over(n, n->in[0], count, axis, keeps(n));
}

/* A reduction over no axes, or over axes of size 1, is a shuffle and casts: to acc_dtype if given, then to
 * the dtype of the result. */
static mc_node *nothing_to_add(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0];
    int axis[MC_MAX_RANK], count = (int)mc_axes_of(n, 0, x->type.rank, axis), kept = 0;
    int64_t order[MC_MAX_RANK];
    for (int i = 0; i < count; i++) {
        if (x->type.dims[axis[i]] != 1) {
            return NULL;
        }
    }
    for (int i = 0, next = 0; i < x->type.rank; i++) {
        bool gone = next < count && axis[next] == i;
        next += gone;
        order[kept] = i;
        kept += !gone || keeps(n);
    }
    mc_node *y = mc_shuffle(x, kept, order);
    const bool asked = n->op->sig->nattr > 3 && !n->attr[3].none && mc_is_float(x->type.dtype);
    return mc_cast_to(asked ? mc_cast_to(y, (mc_dtype)mc_attr_int(&n->attr[3])) : y, n->type.dtype);
}

/* sum(sum(x, axis=2), axis=0)  ==>  sum(x, axis=[0, 2]) */
static mc_node *reduction_of_same(const struct mc_match *m)
{
    mc_node *n = m->root, *r = n->op->flags & OP_REDUCES ? n->in[0] : NULL;
    int outer[MC_MAX_RANK], inner[MC_MAX_RANK], both[MC_MAX_RANK], count = 0;
    if (!r || r->op != n->op || n->op->reduction == REDUCE_POSITION || keeps(r) != keeps(n) || !plain(n) ||
        !plain(r) ||
        !(mc_used_once(m, r) ||
          r->in[0]->op->flags & OP_EXPONENTIAL) || /* log must see the whole sum of exponentials */
        (n->op->reduction == REDUCE_PRODUCT && !mc_is_float(n->type.dtype))) {
        return NULL;
    }
    int rank = r->in[0]->type.rank, no = (int)mc_axes_of(n, 0, r->type.rank, outer),
        ni = (int)mc_axes_of(r, 0, rank, inner);
    for (int i = 0, at = 0; i < rank; i++) {
        bool gone = false;
        for (int k = 0; k < ni; k++) {
            gone |= inner[k] == i;
        }
        bool taken = gone;
        for (int k = 0; k < no; k++) {
            taken |= (!gone || keeps(r)) && outer[k] == at;
        }
        at += !gone || keeps(r);
        if (taken) {
            both[count++] = i;
        }
    }
    return over(n, r->in[0], count, both, keeps(n));
}

/* A reduction of a dimshuffle becomes a dimshuffle of a reduction. */
static mc_node *reduction_of_shuffle(const struct mc_match *m)
{
    mc_node *n = m->root, *s = n->op->flags & OP_REDUCES ? n->in[0] : NULL, *x;
    int axis[MC_MAX_RANK], from[MC_MAX_RANK], nfrom = 0, kept = 0, left[MC_MAX_RANK];
    int64_t order[MC_MAX_RANK];
    if (!s || s->op->form != FORM_DIMSHUFFLE) {
        return NULL;
    }
    x = s->in[0];
    int count = (int)mc_axes_of(n, 0, s->type.rank, axis);
    bool gone[MC_MAX_RANK] = { 0 }, used[MC_MAX_RANK] = { 0 };
    for (int i = 0; i < count; i++) {
        gone[axis[i]] = true;
    }
    for (int i = 0; i < s->type.rank; i++) {
        int64_t k = s->attr[0].ints[i];
        used[k < 0 ? 0 : k] |= k >= 0;
        if (gone[i] && k >= 0) {
            int at = nfrom++;
            for (; at > 0 && from[at - 1] > (int)k; at--) {
                from[at] = from[at - 1];
            }
            from[at] = (int)k;
        }
    }
    for (int k = 0; k < x->type.rank; k++) {
        if (!used[k]) {
            return NULL; /* a dropped axis of size 1: rare */
        }
    }
    if ((n->op->reduction == REDUCE_POSITION && count != 1) || nfrom == 0) {
        return NULL;
    }
    for (int k = 0, next = 0, at = 0; k < x->type.rank; k++) { /* place of x's axes in the reduction of x */
        bool is_gone = next < nfrom && from[next] == k;
        next += is_gone;
        left[k] = is_gone ? -1 : at++;
    }
    for (int i = 0; i < s->type.rank; i++) {
        int64_t k = s->attr[0].ints[i];
        if (!gone[i] || keeps(n)) {
            order[kept++] = gone[i] || k < 0 ? -1 : left[k];
        }
    }
    mc_node *y = over(n, x, nfrom, from, false);
    return mc_is_error(y) ? y : mc_shuffle(y, kept, order);
}

/* The sum of a repeated scalar is its product with the number of elements. */
static mc_node *sum_of_alloc(const struct mc_match *m)
{
    mc_node *n = m->root, *a = n->in[0], *y, *times = NULL, *size[MC_MAX_RANK];
    int axis[MC_MAX_RANK], kept = 0;
    if (a->op->form != FORM_ALLOC || a->in[0]->type.rank || !plain(n)) {
        return NULL;
    }
    int count = (int)mc_axes_of(n, 0, a->type.rank, axis);
    for (int i = 0, next = 0; i < a->type.rank; i++) {
        mc_node *s = mc_shape_entry_node(a->in[1], i);
        bool gone = next < count && axis[next] == i;
        next += gone;
        if (!s) {
            return NULL;
        }
        times = !gone ? times : times ? mc_op2("mul", times, s) : s;
        size[kept] = gone ? mc_node_int(m->g, 1) : s;
        kept += !gone || keeps(n);
    }
    if (!times) {
        return NULL;
    }
    y = mc_op2("mul", mc_cast_to(a->in[0], n->type.dtype), mc_cast_to(times, n->type.dtype));
    return mc_is_error(y) || !kept ? y : mc_op2("alloc", y, mc_shape_stack(m->g, kept, size));
}

static const struct mc_rule rows[] = {
    { .op = "*",    .make = one_notation,         .promise = EXACT,  .name = "axes", .sample = "sum(x, axis=-1); max(x, axis=[1, 0])" },
    { .op = "*",    .make = reduction_of_shuffle, .promise = ROUND,  .name = "reduction of dimshuffle",
      .sample = "sum(transpose(x), axis=0); max(transpose(x), axis=1, keepdims=True); sum(transpose(x)); argmax(transpose(x), axis=0)" },
    { .op = "sum",  .make = nothing_to_add,       .promise = FINITE, .name = "sum of one",  .sample = "sum(expand_dims(x, 1), axis=1); sum(x, axis=[])" },
    { .op = "prod", .make = nothing_to_add,       .promise = EXACT,  .name = "prod of one", .sample = "prod(expand_dims(x, 1), axis=1, keepdims=True)" },
    { .op = "max",  .make = nothing_to_add,       .promise = EXACT,  .name = "max of one",  .sample = "max(expand_dims(x, 1), axis=1)" },
    { .op = "sup",  .make = nothing_to_add,       .promise = EXACT,  .name = "sup of one",  .sample = "sup(expand_dims(x, 1), axis=1)" },
    { .op = "min",  .make = nothing_to_add,       .promise = EXACT,  .name = "min of one",  .sample = "min(expand_dims(x, 1), axis=1)" },
    { .op = "*",    .make = reduction_of_same,    .promise = ROUND,  .name = "reduction of reduction",
      .sample = "sum(sum(x, axis=1)); max(max(x, axis=0), axis=0); sum(sum(x, axis=1, keepdims=True), axis=0, keepdims=True)" },
    { .op = "sum",  .make = sum_of_alloc,         .promise = ROUND,  .name = "sum of alloc",
      .sample = "sum(alloc(2.0f64, x.shape), axis=0); sum(alloc(0.5f64, x.shape)); sum(alloc(2.0f64, x.shape), axis=1, keepdims=True)" },
    { "sum(x * y, axis=a, keepdims=b)", "y * sum(x, axis=a, keepdims=b)", ROUND,  .when = y_is_number, .once = true },
    { "sum(x / y, axis=a, keepdims=b)", "sum(x, axis=a, keepdims=b) / y", ROUND,  .when = y_is_number, .once = true },
    { "sum(-x, axis=a, keepdims=b)",    "-sum(x, axis=a, keepdims=b)",    FINITE, .when = is_float_sum, .once = true },
};
const struct mc_rule_table mc_rules_reduce = { rows, (int)NELEM(rows) };
