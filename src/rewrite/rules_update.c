/* rules_update.c: set_subtensor and inc_subtensor.
 *
 * An update of a whole tensor becomes a value or a sum. Two updates of the same region become one. */
#include "rewrite/index.h"

static bool is_zero(const mc_node *n)
{
    double v;
    return mc_const_number(n->op->form == FORM_ALLOC ? n->in[0] : n, &v) && v >= 0 && v <= 0;
}

static mc_node *remake(const mc_node *n, mc_node *x, mc_node *y, bool set)
{
    mc_node *in[2 + 3 * MC_MAX_RANK];
    int64_t flag = set;
    struct mc_attr a[2] = { n->attr[0], n->attr[1] };
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[0] = x;
    in[1] = y;
    a[1].ints = &flag;
    return mc_apply(n->graph, n->op, n->nin, in, a);
}

/* A value that is a repeated scalar need not be repeated: an update broadcasts its value. */
static mc_node *one_number(const struct mc_match *m)
{
    mc_node *n = m->root, *y = n->in[1], *in[2 + 3 * MC_MAX_RANK];
    int64_t order[MC_MAX_RANK];
    if (y->op->form != FORM_ALLOC || y->in[0]->type.rank) {
        return NULL;
    }
    for (int i = 0; i < y->type.rank; i++) {
        order[i] = -1;
    }
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[1] = mc_shuffle(y->in[0], y->type.rank, order);
    return mc_is_error(in[1]) ? in[1] : mc_node_make(m->g, n->op, n->nin, in, n->attr);
}

/* Does the index take each axis whole, forwards or reversed? */
static bool have_sizes(const mc_node *n)
{
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        if (!index_is_whole(&n->attr[0].ints[i]) && !index_is_reversal(&n->attr[0].ints[i])) {
            return false;
        }
    }
    return true;
}

/* Setting all of x through reversed axes gives the value with those axes reversed. */
static mc_node *set_backwards(mc_node *n)
{
    struct index to = { .nbound = 0 };
    mc_node *y = mc_fit(n, n->in[1]);
    for (int i = 0; y && i < y->type.rank; i++) {
        index_copy(&to, i, n, i);
    }
    return y ? index_part(y, &to) : NULL;
}

/* An update of the whole becomes the value or a sum; adding to zeros becomes setting; two updates of the same
 * region become one. */
static mc_node *update(const struct mc_match *m)
{
    mc_node *n = m->root, *x = n->in[0], *y = n->in[1];
    bool set = mc_attr_int(&n->attr[1]) != 0;
    if (index_all_whole(n)) {
        return set ? y : mc_op2("add", x, y);
    }
    for (int k = 2; k < n->nin; k++) {
        if (mc_is_const(n->in[k])) {
            return remake(n, x, y, set);
        }
    }
    if (set && have_sizes(n)) {
        return set_backwards(n);
    }
    if (!set && is_zero(x)) {
        return remake(n, x, y, true);
    }
    if (x->op->form == FORM_SUBTENSOR_UPDATE && index_same_region(n, x) && (set || mc_used_once(m, x))) {
        return set ? remake(n, x->in[0], y, true)
                   : remake(n, x->in[0], mc_op2("add", x->in[1], y), mc_attr_int(&x->attr[1]));
    }
    return NULL;
}

static const struct mc_rule rows[] = {
    { .op = "subtensor_update", .make = update, .promise = FINITE, .name = "subtensor_update",
      .sample = "inc_subtensor(zeros_like(x)[1:], y[1:]); set_subtensor(set_subtensor(x[1:], y[1:])[1:], 2); "
                "inc_subtensor(inc_subtensor(x[1:], y[1:])[1:], y[1:]); set_subtensor(x[0:], y); inc_subtensor(x[0:], y); set_subtensor(x[::-1], y); inc_subtensor(zeros_like(x)[:, ::-1], y)" },
    { .op = "subtensor_update", .make = one_number, .promise = EXACT, .name = "update by a number", .sample = "set_subtensor(x[1:], alloc(2.0f64, x[1:].shape))" },
    { .op = "gather_update", .make = one_number, .promise = EXACT, .name = "updates by a number",
      .sample = "inc_subtensor(x[[0, 2]], alloc(2.0f64, [2, 5]))" },
};
const struct mc_rule_table mc_rules_update = { rows, (int)NELEM(rows) };
