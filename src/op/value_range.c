/* value_range.c: bounds of values that follow from the formula. */
#include "op/op.h"
#include <math.h>

static bool same_lines(const struct mc_type *a, const struct mc_type *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; i < a->rank && same; i++) {
        same = (a->dims[i] == 1) == (b->dims[i] == 1);
    }
    return same;
}

/* Is n sum(exp(x - max(x))), as in softmax? It is at least 1, because one summand is 1. */
static bool sums_softmax(const mc_node *n)
{
    const mc_node *e = mc_is_op(n, "sum") ? n->in[0] : NULL;
    if (!e || !mc_is_op(e, "exp") || !mc_is_op(e->in[0], "sub")) {
        return false;
    }
    const mc_node *x = e->in[0]->in[0], *most = e->in[0]->in[1];
    return (mc_is_op(most, "sup") || mc_is_op(most, "max")) && most->in[0] == x &&
           same_lines(&most->type, &n->type);
}

double mc_lower_bound(const mc_node *n, int depth)
{
    static const char *const two[] = { "add", "maximum", "mul", "true_div" };
    static const char *const one[] = { "sqrt", "sum", "dimshuffle", "cast" };
    static const char *const never_negative[] = { "size", "sqr", "abs", "exp" };
    bool reads[2] = { false }, from_0 = false;
    double v;
    if (mc_is_const(n) || depth == 0) {
        return mc_is_const(n) && mc_const_number(n, &v) ? v : -INFINITY;
    }
    for (size_t i = 0; i < NELEM(two); i++) {
        reads[1] |= mc_is_op(n, two[i]);
        reads[0] |= mc_is_op(n, two[i]) || mc_is_op(n, one[i]);
        from_0 |= mc_is_op(n, never_negative[i]);
    }
    const double a = reads[0] ? mc_lower_bound(n->in[0], depth - 1) : from_0 ? 0 : -INFINITY;
    const double b = reads[1] ? mc_lower_bound(n->in[1], depth - 1) : 0;
    if (mc_is_op(n, "mul") || mc_is_op(n, "true_div") || mc_is_op(n, "sum")) {
        return sums_softmax(n) ? 1 : a >= 0 && b >= 0 ? 0 : -INFINITY;
    }
    return mc_is_op(n, "maximum") ? fmax(a, b) : mc_is_op(n, "sqrt") ? sqrt(fmax(a, 0)) : a + b;
}
