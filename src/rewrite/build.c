/* build.c: functions with which rules written in C build their right sides. */
#include "rewrite/rewrite.h"

mc_node *mc_op1(const char *op, mc_node *a)
{
    return mc_call_op(a->graph, op, 1, &a, NULL);
}

mc_node *mc_op2(const char *op, mc_node *a, mc_node *b)
{
    return mc_call_op(a->graph, op, 2, (mc_node *[]){ a, b }, NULL);
}

mc_node *mc_shuffle(mc_node *x, int rank, const int64_t *order)
{
    bool same = rank == x->type.rank;
    for (int i = 0; same && i < rank; i++) {
        same = order[i] == i;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = (int64_t *)(uintptr_t)order };
    return same ? x : mc_apply(x->graph, mc_op_find("dimshuffle"), 1, &x, &a);
}

bool mc_size_is(mc_node *size, mc_node *x, int axis)
{
    int64_t v;
    int n;
    if (mc_const_ints(size, &v, 1, &n)) {
        /* -1: in a shape, all that remains; in a type, not known */
        return v >= 0 && v == x->type.dims[axis];
    }
    return mc_source_of_size(size) == mc_source_of_size(mc_size_of(x, axis));
}

mc_node *mc_shape_vector(mc_node *n)
{
    mc_node *size[MC_MAX_RANK];
    for (int i = 0; i < n->type.rank; i++) {
        size[i] = mc_lifted_size(n, 0, i);
        size[i] = size[i] ? size[i] : mc_size_of(n, i);
    }
    return mc_shape_stack(n->graph, n->type.rank, size);
}

/* x with a check, at run time, of the sizes that are known for n but not for x. They came from an operand
 * that the rule dropped. */
static mc_node *promised(const mc_node *n, mc_node *x)
{
    int64_t size[MC_MAX_RANK];
    bool more = false;
    for (int i = 0; i < n->type.rank; i++) {
        const bool news = x->type.dims[i] < 0 && n->type.dims[i] >= 0;
        size[i] = news ? n->type.dims[i] : -1;
        more |= news;
    }
    struct mc_attr sizes = { .kind = ATTR_INTS, .n = n->type.rank, .ints = size };
    return more ? mc_apply(x->graph, mc_op_find("specify_shape"), 1, &x, &sizes) : x;
}

/* Sizes known on both sides must agree, and an axis whose size is 1 in n must have size 1 in x. Where x has
 * size 1 and n may be larger, x is repeated by an alloc. */
mc_node *mc_fit(mc_node *n, mc_node *x)
{
    if (mc_is_const(x) && x->weak) {
        x = x->type.dtype == n->type.dtype ? mc_node_const(n->graph, mc_array_ref(x->value), false)
                                           : mc_cast_to(x, n->type.dtype);
    }
    if (mc_is_error(x) || x->nout != 1 || x->type.dtype != n->type.dtype ||
        (x->type.rank != n->type.rank && x->type.rank)) {
        return NULL;
    }
    bool small = x->type.rank < n->type.rank;
    for (int i = 0; !small && i < x->type.rank; i++) {
        int64_t have = x->type.dims[i], want = n->type.dims[i];
        if ((want == 1 && have != 1) || (have >= 0 && want >= 0 && have != want && have != 1)) {
            return NULL;
        }
        small = have == 1 && want != 1;
    }
    mc_node *y = small ? mc_op2("alloc", x, mc_shape_vector(n)) : promised(n, x);
    return mc_is_error(y) ? NULL : y;
}
