/* draw.c: a random draw as element-wise ops: the Philox word at each element's position, scaled. A draw in
 * this form fuses with the ops that read it, and runs on any device.
 *
 * Invariant: every element equals, bit for bit, the one that the reference in random.c draws. */
#include "lower/lower.h"

/* The op that makes a word, the divisor that drops its low bits, and the factor that scales the rest to
 * [0, 1). */
static const struct unit { const char *word; double drop, unit; } units[MC_NDTYPE] = {
    [MC_FLOAT64]  = { "random_pair", 0x1p11, 0x1p-53 },
    [MC_FLOAT32]  = { "random_word", 0x1p8,  0x1p-24 },
    [MC_FLOAT16]  = { "random_word", 0x1p21, 0x1p-11 },
    [MC_BFLOAT16] = { "random_word", 0x1p24, 0x1p-8 },
};

static mc_node *number(mc_graph *g, mc_dtype d, uint64_t v)
{
    mc_array *a = mc_array_empty(d, MC_NOSHAPE);
    if (a) {
        memcpy(a->data, &v, sizeof v);
    }
    return a ? mc_node_const(g, a, false) : mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
}

/* Element numbers in C order: the sum over axes of the position times the product of the sizes after it. */
static mc_node *positions(mc_node *shape, int rank)
{
    mc_graph *g = shape->graph;
    mc_node *sum = number(g, MC_INT64, 0);
    for (int a = 0; a < rank; a++) {
        mc_node *size = mc_shape_entry_node(shape, a);
        if (!size) {
            return NULL;
        }
        int64_t order[MC_MAX_RANK];
        for (int i = 0; i < rank; i++) {
            order[i] = i == a ? 0 : -1;
        }
        struct mc_bind b[] = { { "n", size, NULL },
                               { "zero", number(g, MC_INT64, 0), NULL },
                               { "one", number(g, MC_INT64, 1), NULL },
                               { "sum", sum, NULL } };
        mc_node *along = mc_expr(g, "arange(zero, n, one)", b, 3);
        struct mc_attr attr = { .kind = ATTR_INTS, .n = rank, .ints = order };
        mc_node *x = mc_is_error(along) ? along : mc_apply(g, mc_op_find("dimshuffle"), 1, &along, &attr);
        b[2] = (struct mc_bind){ "x", x, NULL };
        sum = mc_expr(g, "sum * n + x", b, 4);
    }
    return sum;
}

mc_node *mc_lower_draw(mc_node *n, mc_node **in)
{
    mc_graph *g = n->graph;
    mc_dtype d = n->type.dtype;
    mc_node *at = positions(in[1], n->type.rank);
    if (!at) { /* sizes that depend on data */
        return mc_apply(g, n->op, n->nin, in, n->attr);
    }
    struct mc_bind b[] = { { "at", mc_cast_to(at, MC_UINT64), NULL },
                           { "rng", in[0], NULL },
                           { "stream", number(g, MC_UINT64, (uint64_t)mc_attr_int(&n->attr[0])), NULL } };
    mc_node *key = mc_expr(g, "random_key(rng[0], stream)", b, 3), *step = mc_expr(g, "rng[1]", b, 3);
    mc_node *arg[3] = { b[0].node, key, step };
    mc_node *word = mc_op(g, units[d].word, 3, arg, NULL);
    struct mc_bind w[] = { { "w", word, NULL },
                           { "drop", number(g, MC_UINT64, (uint64_t)units[d].drop), NULL },
                           { "unit", NULL, NULL } };
    w[2].node = mc_node_number(g, d, units[d].unit);
    mc_node *top = mc_cast_to(mc_expr(g, "w // drop", w, 2), d);
    struct mc_bind u[] = { { "top", top, NULL }, w[2] };
    return mc_expr(g, "top * unit", u, 2);
}
