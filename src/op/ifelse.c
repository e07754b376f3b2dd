/* ifelse.c: the node of a choice as users make it, ifelse(c, a, b).  The sides are ordinary nodes; what only
 * one side needs is found when a function is compiled (region.c, rewrite/branches.c).
 *
 * Invariant: the condition is a bool scalar.  If the sizes of both sides are not known to be equal, the
 * condition determines sizes (mc_is_shape_arg). */
#include "op/ifelse.h"
#include "op/size.h"

mc_status mc_ifelse_differ(int i, const struct mc_type *yes, const struct mc_type *no)
{
    return mc_types_differ(yes->dtype != no->dtype ? MC_ETYPE : MC_ESHAPE, "ifelse: value", i + 1, yes,
                           "if the condition is true,", no, "if it is false");
}

static mc_status choose_infer(struct mc_infer *q)
{
    const int n = (q->nin - 1) / 2;
    const bool ragged = mc_attr_int(&q->attr[IFELSE_RAGGED]) != 0;
    if (q->nin < 3 || q->nin % 2 == 0 || n > MC_MOST_RESULTS) {
        return mc_fail(MC_EARG, "ifelse: each side needs the same number of values, from 1 to %d",
                       MC_MOST_RESULTS);
    }
    if (q->in[0].rank || q->in[0].dtype != MC_BOOL) {
        return mc_fail(MC_ETYPE, "ifelse: the condition of its node is a bool scalar");
    }
    for (int i = 0; i < n; i++) {
        const struct mc_type *yes = &q->in[1 + i], *no = &q->in[1 + n + i];
        struct mc_type *out = &q->out[i];
        if (yes->dtype != no->dtype || yes->rank != no->rank) {
            return mc_ifelse_differ(i, yes, no);
        }
        if (q->value[0]) {
            *out = *q->value[0]->data ? *yes : *no;
            continue;
        }
        *out = *yes;
        for (int k = 0; k < yes->rank; k++) {
            const int64_t a = yes->dims[k], b = no->dims[k];
            if (!ragged && a >= 0 && b >= 0 && a != b) {
                return mc_ifelse_differ(i, yes, no);
            }
            out->dims[k] = a == b ? a : ragged ? -1 : MC_MAX(a, b);
        }
    }
    q->nout = n;
    return MC_OK;
}

/* Is n a formula over sizes of leaves?  The size of another node would need that node outside of its side. */
static bool over_leaves(const mc_node *n, int depth)
{
    if (mc_reads_type_only(n) || n->nin == 0) {
        return n->nin == 0 || n->in[0]->op->flags & OP_LEAF;
    }
    bool all = depth > 0;
    for (int k = 0; k < n->nin && all; k++) {
        all = over_leaves(n->in[k], depth - 1);
    }
    return all;
}

static mc_node *choose_size(mc_node *n, int item, int axis)
{
    enum { DEEP = 8 };
    const bool ragged = mc_attr_int(&n->attr[IFELSE_RAGGED]) != 0;
    for (int side = 0; side < 2 && !ragged; side++) {
        mc_node *size = mc_source_of_size(mc_size_of(mc_ifelse_value(n, !side, item), axis));
        if (!mc_is_error(size) && over_leaves(size, DEEP)) {
            return size;
        }
    }
    return NULL;
}

static mc_status choose_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const int values = mc_ifelse_values(n), first = *in[0]->data ? 1 : 1 + values;
    for (int i = 0; i < values; i++) {
        TRY(mc_array_assign(out[i], in[first + i]));
    }
    return MC_OK;
}

static bool choose_print(struct mc_str *out, const mc_node *n,
                         void (*arg)(struct mc_str *out, const mc_node *n, int i, void *ctx), void *ctx)
{
    const int values = mc_ifelse_values(n);
    mc_str_add(out, "ifelse(");
    arg(out, n, 0, ctx);
    const size_t start = out->n;
    bool lists = values > 1;
    for (int side = 0; side < 2; side++) {
        mc_str_add(out, lists ? ", [" : ", ");
        const size_t at = out->n;
        for (int i = 0; i < values; i++) {
            mc_str_add(out, i ? ", " : "");
            arg(out, n, 1 + side * values + i, ctx);
        }
        mc_str_add(out, lists ? "]" : "");
        if (!lists && !out->bad && out->s[at] == '[') { /* the one value of a side would be read as a list */
            out->s[out->n = start] = '\0';
            lists = true;
            side = -1;
        }
    }
    mc_str_add(out, ")");
    return true;
}

/* ---- making ---- */

/* Do a and b have the same sizes in every call? */
static bool same_sizes(mc_node *a, mc_node *b)
{
    bool same = true;
    for (int k = 0; k < a->type.rank && same && a != b; k++) {
        mc_node *x = mc_source_of_size(mc_size_of(a, k)), *y = mc_source_of_size(mc_size_of(b, k));
        same = !mc_is_error(x) && x == y;
    }
    return same;
}

/* A literal takes the dtype of the other side. */
static void adapt(mc_node **a, mc_node **b)
{
    if ((*a)->weak || (*b)->weak) {
        mc_node *const both[2] = { *a, *b };
        const mc_dtype d = mc_meet(2, both, 0);
        for (int i = 0; i < 2; i++) {
            mc_node **x = i ? b : a;
            if ((*x)->weak) {
                *x = (*x)->type.dtype == d ? mc_node_const((*x)->graph, mc_array_ref((*x)->value), false)
                                           : mc_cast_to(*x, d);
            }
        }
    }
}

mc_node *mc_ifelse_make(mc_graph *g, mc_node *condition, int n, mc_node *const *yes, mc_node *const *no,
                        bool proven)
{
    mc_node *in[1 + 2 * MC_MOST_RESULTS];
    if (n < 1 || n > MC_MOST_RESULTS) {
        return mc_node_fail(g, MC_EARG, "ifelse: it chooses between 1 to %d values, not %d", MC_MOST_RESULTS,
                            n);
    }
    if (mc_is_error(condition)) {
        return g->error;
    }
    if (condition->nout != 1 || condition->type.rank) {
        struct mc_str text = { 0 };
        mc_type_text(&text, &condition->type);
        mc_node *e = mc_node_fail(g, MC_ESHAPE, "ifelse: the condition must be a scalar, not %s",
                                  condition->nout != 1 ? "several values"
                                  : text.s             ? text.s
                                                       : "");
        mc_str_free(&text);
        return e;
    }
    in[0] = condition->type.dtype == MC_BOOL
                ? condition
                : mc_call_op(g, "neq", 2, (mc_node *[]){ condition, mc_node_like(condition, 0) }, NULL);
    for (int i = 0; i < n; i++) {
        mc_node *a = yes[i], *b = no[i];
        if (mc_is_error(a) || mc_is_error(b)) {
            return g->error;
        }
        if (a->nout != 1 || b->nout != 1) {
            return mc_node_fail(g, MC_EARG, "ifelse: value %d is a tuple; take one of its items", i + 1);
        }
        adapt(&a, &b);
        in[1 + i] = a;
        in[1 + n + i] = b;
    }
    bool ragged = false;
    for (int i = 0; i < n && !proven; i++) {
        const mc_node *a = in[1 + i], *b = in[1 + n + i];
        ragged |= !mc_is_error(a) && !mc_is_error(b) && a->type.rank == b->type.rank &&
                  !same_sizes(in[1 + i], in[1 + n + i]);
    }
    const int64_t flag = ragged;
    struct mc_attr attr = { .kind = ATTR_BOOL, .n = 1, .ints = (int64_t *)&flag };
    return mc_node_make(g, mc_op_named(g, "ifelse_node"), 1 + 2 * n, in, &attr);
}

/* Inputs: the condition, the values if it is true, the values if it is false. */
static mc_node *build(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const int n = (nin - 1) / 2;
    (void)attr;
    if (nin % 2 == 0) {
        return mc_node_fail(g, MC_EARG, "ifelse: each side needs the same number of values");
    }
    return mc_ifelse_make(g, in[0], n, in + 1, in + 1 + n, false);
}

mc_node *mc_ifelse_list(mc_node *condition, int n, mc_node *const *yes, mc_node *const *no)
{
    mc_graph *g = condition ? condition->graph : n > 0 && yes ? mc_graph_of(n, yes) : NULL;
    if (!g) {
        mc_fail(MC_EARG, "ifelse: the condition is NULL");
        return NULL;
    }
    if (!condition || !yes || !no) {
        return mc_node_fail(g, MC_EARG, "ifelse: the %s NULL", condition ? "values are" : "condition is");
    }
    for (int i = 0; i < 2 * n; i++) {
        const mc_node *x = i < n ? yes[i] : no[i - n];
        if (!x || x->graph != g) {
            return mc_node_fail(g, MC_EARG, "ifelse: value %d %s", i % n + 1,
                                x ? "belongs to another graph" : "is missing (NULL)");
        }
    }
    return mc_ifelse_make(g, condition, n, yes, no, false);
}

const struct mc_op mc_ops_ifelse[] = {
    BUILT({ .name = "ifelse", .params = "c, a, b", .nout = 1, .build = build,
      .doc = MANUAL("a if the scalar c is not 0, else b; only what the chosen one needs is computed. Lists of values are chosen as a whole: ifelse(c, [a, b], [d, e]). See docs/text-form.md"),
      .example = MANUAL("x = [4.0, 9.0]; ifelse(x[0] > 3, sqrt(x), -x)") })
    BUILT({ .name = "ifelse_list", .flags = OP_HIDDEN, .params = "c, *values", .nout = 1, .build = build, .doc = MANUAL("ifelse of lists of values") })
    { .name = "ifelse_node", .params = "c, *values, ragged=False:bool", .flags = OP_HIDDEN | OP_NOFOLD, .form = FORM_IFELSE, .nout = 1,
      .infer = choose_infer, .size = choose_size, .eval = choose_eval, .print = choose_print, .disconnected = 1,
      .doc = MANUAL("a choice; ifelse makes it") },
};
const int mc_nops_ifelse = (int)NELEM(mc_ops_ifelse);
