/* loop_rows.c: x[i] in a loop's body, where steps change i, becomes x[[i]][0].  Which part of x a subtensor
 * is depends on i, so a plan has to know i, and no step of the loop makes a plan.  A gather reads i while it
 * runs.
 *
 * Invariant: the body's results keep their values and types. */
#include "op/loop.h"
#include "rewrite/rewrite.h"

/* Is element i of axis `axis` taken, where i is a number that steps change? */
static bool is_row(const mc_node *n, int axis, const bool *varies)
{
    const int64_t *s = &n->attr[0].ints[(int64_t)axis * SPEC_N];
    return s[SPEC_INDEX] && s[SPEC_START_KIND] == BOUND_INPUT && varies[n->in[s[SPEC_START]]->id];
}

/* The first axis of which there is one; -1: none */
static int first_row(const mc_node *n, const bool *varies)
{
    int axis = 0;
    if (n->op->form != FORM_SUBTENSOR) {
        return -1;
    }
    while (axis < n->in[0]->type.rank && !is_row(n, axis, varies)) {
        axis++;
    }
    return axis < n->in[0]->type.rank ? axis : -1;
}

/* n, with such rows gathered. */
static mc_node *gathered(const mc_node *n, const bool *varies)
{
    int64_t spec[MC_MAX_RANK * SPEC_N];
    const int rank = n->in[0]->type.rank;
    mc_node *x = n->in[0];
    memcpy(spec, n->attr[0].ints, (size_t)rank * SPEC_N * sizeof *spec);
    for (int axis = first_row(n, varies); axis < rank && !mc_is_error(x); axis++) {
        int64_t *s = &spec[(int64_t)axis * SPEC_N], at = axis;
        if (is_row(n, axis, varies)) {
            const struct mc_attr axes = { .kind = ATTR_INTS, .n = 1, .ints = &at };
            x = mc_expr(n->graph, "gather(x, dimshuffle(i, [-1]), axes=a)",
                        (struct mc_bind[]){
                            { "x", x, NULL }, { "i", n->in[s[SPEC_START]], NULL }, { "a", NULL, &axes } },
                        3);
            s[SPEC_START_KIND] = BOUND_CONST;
            s[SPEC_START] = 0;
        }
    }
    mc_node *in[1 + 3 * MC_MAX_RANK] = { x };
    memcpy(in + 1, n->in + 1, (size_t)(n->nin - 1) * sizeof *in);
    int nin = 1; /* bounds that are left have the numbers of their inputs anew */
    for (int axis = 0; axis < rank; axis++) {
        for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
            int64_t *s = &spec[(int64_t)axis * SPEC_N + k];
            if (s[0] == BOUND_INPUT) {
                in[nin] = n->in[s[1]];
                s[1] = nin++;
            }
        }
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank * SPEC_N, .ints = spec };
    return mc_is_error(x) ? x : mc_node_make(n->graph, n->op, nin, in, &a);
}

/* Replaces rows; a row of a row still reads the old one. */
static mc_status pass(const struct mc_loop *l, const struct mc_body *b, mc_node **result, bool *more)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(b->nout, result, &count);
    bool *varies = mc_calloc(b->graph->nodes.n + 1, sizeof *varies, "loops");
    VEC(mc_node *) from = { 0 }, to = { 0 };
    mc_status s = list && varies ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < l->nsequence + l->nstate && s == MC_OK; i++) {
        varies[b->in[i]->id] = true;
    }
    s = s < 0 ? s : mc_marks_spread(list, count, varies);
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        if (first_row(list[i], varies) >= 0) {
            mc_node *made = gathered(list[i], varies);
            s = mc_is_error(made)                               ? MC_EMEMORY
                : VEC_PUSH(from, list[i]) && VEC_PUSH(to, made) ? MC_OK
                                                                : MC_EMEMORY;
        }
    }
    *more = from.n > 0;
    if (s == MC_OK && from.n) {
        s = mc_graph_replace(b->graph, (int)from.n, from.at, to.at, b->nout, result);
    }
    VEC_FREE(from);
    VEC_FREE(to);
    mc_free(list);
    mc_free(varies);
    return s;
}

mc_status mc_loop_rows(const struct mc_loop *l, const struct mc_body *b, mc_node **result)
{
    mc_status s = MC_OK;
    for (bool more = true; more && s == MC_OK;) { /* again for a row of a row */
        s = pass(l, b, result, &more);
    }
    return s;
}
