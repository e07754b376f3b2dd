/* plan_time.c: which values are computed at plan time, before anything runs: sizes, small values that follow
 * from them, and values that sizes depend on. */
#include "lower/make.h"

static bool small(const struct mc_type *t)
{
    return t->rank == 0 || (t->rank == 1 && t->dims[0] >= 0 && t->dims[0] <= 64);
}

/* Marks sizes, and all small values that follow from sizes and constants alone. */
void mc_find_shape_work(struct make *m, mc_node *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const mc_node *n = list[i];
        bool all = small(&n->type) && n->nout == 1 && n->nin > 0 &&
                   !(n->op->flags & (OP_IMPURE | OP_RANDOM | OP_LEAF)) && n->op != &mc_op_item &&
                   !n->op->custom;
        for (int k = 0; k < n->nin; k++) {
            all &= mc_reads_type_only(n) || mc_is_const(n->in[k]) || m->early[n->in[k]->id];
        }
        m->early[n->id] = all;
    }
}

/* Where parts begin that are set or added to is known at plan time if it follows from inputs, constants and
 * sizes alone. */
static void find_starts(struct make *m, mc_node *const *list, size_t count, unsigned char *required)
{
    unsigned char *known = m->needed; /* not in use yet */
    for (size_t i = 0; i < count && m->starts; i++) {
        const mc_node *n = list[i];
        bool all = small(&n->type) && n->nout == 1 && !n->op->custom &&
                   !(n->op->flags & (OP_IMPURE | OP_RANDOM)) && n->op != &mc_op_item;
        for (int k = 0; k < n->nin; k++) {
            all &= mc_reads_type_only(n) || known[n->in[k]->id];
        }
        known[n->id] = n->op->flags & OP_LEAF ? mc_is_const(n) || (n->op == &mc_op_input && all) : all;
        for (int k = 2; k < n->nin && n->op->form == FORM_SUBTENSOR_UPDATE; k++) {
            required[n->in[k]->id] |= known[n->in[k]->id];
        }
    }
    memset(known, 0, m->p->graph->nodes.n);
}

/* Values that sizes depend on must be known at plan time.  They are marked from the ops that need them down
 * to the leaves. */
void mc_find_required(struct make *m, mc_node *const *list, size_t count)
{
    unsigned char *required = m->wanted; /* not in use yet */
    find_starts(m, list, count, required);
    for (size_t i = count; i-- > 0;) {
        mc_node *n = list[i];
        for (int k = 0; k < n->nin; k++) {
            if (mc_is_shape_arg(n, k) || (required[n->id] && !mc_reads_type_only(n))) {
                required[n->in[k]->id] = 1;
            }
        }
        if (!required[n->id] || m->early[n->id] || mc_is_const(n)) {
            continue;
        }
        if (n->op == &mc_op_input && small(&n->type)) {
            for (int k = 0; k < m->p->ninput; k++) {
                m->p->key_input[k] |= m->p->input[k] == n;
            }
        } else if ((n->op->flags & OP_LEAF) || !small(&n->type) || n->nout != 1 ||
                   (n->op->flags & (OP_IMPURE | OP_RANDOM))) {
            m->p->dynamic = true;
        } else {
            m->early[n->id] = 2;
        }
    }
    memset(m->wanted, 0, m->p->graph->nodes.n);
    for (size_t i = 0; i < count; i++) { /* what reads a step's result is no plan-time value */
        const mc_node *n = list[i];
        for (int k = 0; m->early[n->id] == 2 && k < n->nin; k++) {
            bool known = mc_reads_type_only(n) || n->in[k]->op->flags & OP_LEAF || m->early[n->in[k]->id];
            m->early[n->id] = known ? 2 : 0;
            m->p->dynamic |= !known;
        }
    }
}
