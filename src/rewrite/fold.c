/* fold.c: constant folding, and one order for the operands of commutative ops.
 *
 * Invariant: folding makes no constant of more than MOST elements. */
#include "rewrite/rewrite.h"

enum { MOST = 1 << 16 };

static bool is_small(const struct mc_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] >= 0 && !mc_mul_i64(n, t->dims[i], &n)) {
            return false;
        }
    }
    return n <= MOST;
}

static bool all_known(const mc_node *n)
{
    for (int i = 0; i < n->nin; i++) {
        if (!mc_is_const(n->in[i]) || !is_small(&n->in[i]->type)) {
            return false;
        }
    }
    return n->nin > 0 && !(n->op->flags & (OP_NOFOLD | OP_IMPURE | OP_RANDOM)) && !n->op->custom &&
           is_small(&n->type);
}

/* Folds by the reference. An op that fails (an index out of range) is not folded and fails at run time. */
static mc_node *fold(const struct mc_match *m)
{
    mc_node *n = m->root->op == &mc_op_item ? m->root->in[0] : m->root;
    mc_array *in[16], *out[MC_MOST_RESULTS] = { 0 };
    if (!all_known(n) || n->nin > (int)NELEM(in) || n->op == &mc_op_tuple) {
        return NULL;
    }
    for (int i = 0; i < n->nin; i++) {
        in[i] = n->in[i]->value;
    }
    mc_node *made = NULL;
    mc_status s = mc_eval_node(n, in, out);
    if (s == MC_OK) {
        mc_array *y = out[m->root->item];
        made = mc_array_size(y) <= MOST ? mc_node_const(m->g, mc_array_ref(y), false) : NULL;
    } else if (s == MC_EMEMORY) {
        made = mc_node_fail(m->g, s, "%s", mc_last_error());
    } else {
        mc_clear_error();
    }
    for (int i = 0; i < (int)NELEM(out); i++) {
        mc_array_unref(&out[i]);
    }
    return made;
}

/* a + b and b + a become one node. Operands are ordered: expressions, leaves, constants; among equals the
 * smaller id first. */
static int operand_rank(const mc_node *n)
{
    return mc_is_const(n) ? 2 : n->op->flags & OP_LEAF ? 1 : 0;
}

static mc_node *in_order(const struct mc_match *m)
{
    mc_node *n = m->root;
    if (!(n->op->flags & OP_COMMUTES) || n->nin != 2) {
        return NULL;
    }
    int a = operand_rank(n->in[0]), b = operand_rank(n->in[1]);
    bool fine = a != b ? a < b : n->in[0]->id <= n->in[1]->id;
    return fine ? NULL : mc_node_make(m->g, n->op, 2, (mc_node *[]){ n->in[1], n->in[0] }, n->attr);
}

/* The order of operands matters to maximum and minimum: the maximum of 0 and -0 is the last of them. */
static bool picks_one(const struct mc_match *m) { return m->root->op->flags & OP_PICKS; }
static bool computes(const struct mc_match *m) { return !picks_one(m); }

static const struct mc_rule rows[] = {
    { .op = "*", .make = fold,     .promise = EXACT,  .name = "fold",  .sample = "x + (2.0 * 3.0f64 + [1.0f64, 2.0f64, 3.0f64, 4.0f64, 5.0f64])" },
    { .op = "*", .make = in_order, .promise = EXACT,  .name = "order", .when = computes, .sample = "x + exp(y); x * exp(y)" },
    { .op = "*", .make = in_order, .promise = FINITE, .name = "order of extremes", .tags = "derivative", .when = picks_one, .sample = "maximum(x, exp(y))" },
};
const struct mc_rule_table mc_rules_fold = { rows, (int)NELEM(rows) };
