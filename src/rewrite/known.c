/* known.c: which nodes of a loop's body are known before the loop, and what they are there.
 *
 * Invariant: nothing of the loop changes. */
#include "rewrite/known.h"

int mc_known_input(const struct mc_loop_known *w, const mc_node *n)
{
    int i = w->body->nin;
    while (i-- > 0 && w->body->in[i] != n) {
    }
    return i;
}

mc_node *mc_known_once(const struct mc_loop_known *w, const mc_node *n)
{
    return mc_map_get(&w->once, n->id, NULL);
}

mc_node *mc_known_every(const struct mc_loop_known *w, const mc_node *n)
{
    return mc_map_get(&w->every, n->id, NULL);
}

/* dimshuffle with the axis of the steps in front */
static mc_node *shuffled(struct mc_loop_known *w, const mc_node *n, mc_node *x)
{
    int64_t order[MC_MAX_RANK + 1] = { 0 };
    struct mc_attr a = n->attr[0];
    for (int i = 0; i < a.n; i++) {
        order[1 + i] = a.ints[i] < 0 ? -1 : a.ints[i] + 1;
    }
    a.ints = order;
    a.n++;
    return a.n > MC_MAX_RANK ? NULL : mc_apply(w->g, n->op, 1, &x, &a);
}

/* The values of n at all steps, if they follow from sequences and constants. */
static mc_node *lift(struct mc_loop_known *w, const mc_node *n)
{
    mc_node *in[3];
    bool any = false, all = mc_is_elementwise(n) && n->nin <= 3 && n->type.rank < MC_MAX_RANK;
    for (int k = 0; k < n->nin && all; k++) {
        in[k] = mc_known_every(w, n->in[k]);
        any |= in[k] != NULL;
        in[k] = in[k] ? in[k] : mc_known_once(w, n->in[k]);
        all = in[k] && n->in[k]->type.rank == n->type.rank;
        all = all || (in[k] && n->in[k]->type.rank == 0 && !mc_known_every(w, n->in[k]));
    }
    if (all && any) {
        return mc_apply(w->g, n->op, n->nin, in, n->attr);
    }
    if (n->op->form == FORM_DIMSHUFFLE && mc_known_every(w, n->in[0])) {
        return shuffled(w, n, mc_known_every(w, n->in[0]));
    }
    if (mc_known_is_product(n) && mc_known_every(w, n->in[0]) && mc_known_once(w, n->in[1])) {
        return mc_expr(w->g, "dot(a, b)",
                       (struct mc_bind[]){ { "a", mc_known_every(w, n->in[0]), NULL },
                                           { "b", mc_known_once(w, n->in[1]), NULL } },
                       2);
    }
    return NULL;
}

/* n itself before the loop, if it depends on no step. */
static mc_node *hoist(struct mc_loop_known *w, const mc_node *n)
{
    mc_node *in[16];
    if (mc_is_const(n)) {
        return mc_node_const(w->g, mc_array_ref(n->value), n->weak);
    }
    bool all = n->nin <= (int)NELEM(in) && n->nin > 0 && n->nout == 1 && n->op != &mc_op_item &&
               !(n->op->flags & (OP_IMPURE | OP_LEAF)) && n->op->form != FORM_LOOP;
    for (int k = 0; k < n->nin && all; k++) {
        in[k] = mc_known_once(w, n->in[k]);
        all = in[k] != NULL;
    }
    return all ? mc_node_make(w->g, n->op, n->nin, in, n->attr) : NULL;
}

mc_status mc_known_find(struct mc_loop_known *w, mc_node *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const mc_node *n = list[i];
        const int k = mc_known_input(w, n);
        mc_node *o = k < 0 ? hoist(w, n) : mc_known_is_constant(w, k) ? w->outer[1 + k] : NULL;
        mc_node *e = k < 0 && !o ? lift(w, n) : k >= 0 && k < w->l.nsequence ? w->outer[1 + k] : NULL;
        if ((o && mc_is_error(o)) || (e && mc_is_error(e))) {
            return mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY;
        }
        if ((o && !mc_map_put(&w->once, n->id, o)) || (e && !mc_map_put(&w->every, n->id, e))) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

void mc_known_free(struct mc_loop_known *w)
{
    mc_map_free(&w->every);
    mc_map_free(&w->once);
}
