/* order.c: which nodes a group reads from memory, which groups are epilogues of solver steps, and the
 * order in which groups run. */
#include "lower/make.h"

/* ---- which values are stored, which solver steps get an epilogue ---- */

/* Marks the inputs that n reads from memory: those that its own kernel does not compute. */
void mc_mark_stored_inputs(struct make *m, mc_node *n)
{
    int group = m->groups.of[n->id];
    bool kernel = mc_is_fusible(n);
    for (int i = 0; i < n->nin && (mc_position_axis(n) < 0 || m->wanted[n->id]); i++) {
        mc_node *x = n->in[i];
        if (mc_reads_type_only(n) ||
            (kernel && i >= 1 && (n->op->form == FORM_ALLOC || n->op->form == FORM_ARANGE)) ||
            (kernel && mc_inside(m, x, group)) || (kernel && mc_is_inline_operand(x))) {
            continue;
        }
        m->wanted[x->id] = 1;
    }
}

/* Can a kernel run on the blocks of n's result as they are computed? */
static bool is_epilogue(const mc_node *n)
{
    return n->op->flags & OP_BLOCKS &&
           (!(n->op->flags & OP_MATMUL) || (n->type.rank == 2 && mc_varies(&n->type)));
}

mc_node *mc_main_result(mc_node *n)
{
    return n->nout == 1 ? n : mc_item(n, 0);
}

/* The group that n depends on besides the groups of its inputs: a solver's results other than the first exist
 * after its epilogue has run. -1: none. */
static int producer_of(const struct make *m, const mc_node *n)
{
    return n->op == &mc_op_item && n->item > 0 ? m->finisher[n->in[0]->id] - 1 : -1;
}

/* The epilogue group in whose step the solver's result x is made; -1: none. */
static int epilogue_of(const struct make *m, const mc_node *x)
{
    return x->nout == 1 ? m->finisher[(x->op == &mc_op_item ? x->in[0] : x)->id] - 1 : -1;
}

/* The nodes of each group as linked lists (index + 1; 0 ends a list). A search marks groups with its
 * number. */
struct members { int *first, *next, *seen, *stack, search; };

static mc_status find_members(struct members *s, const struct make *m, mc_node *const *list, size_t count)
{
    size_t ng = (size_t)m->groups.n + 1;
    *s = (struct members){ mc_calloc(ng, sizeof *s->first, "lower"),
                           mc_calloc(count + 1, sizeof *s->next, "lower"),
                           mc_calloc(ng, sizeof *s->seen, "lower"), mc_alloc(ng * sizeof *s->stack, "lower"),
                           0 };
    if (!s->first || !s->next || !s->seen || !s->stack) {
        return MC_EMEMORY;
    }
    for (size_t i = count; i-- > 0;) {
        int h = m->groups.of[list[i]->id];
        if (h >= 0) {
            s->next[i] = s->first[h];
            s->first[h] = (int)i + 1;
        }
    }
    return MC_OK;
}

static void free_members(struct members *s)
{
    mc_free(s->first);
    mc_free(s->next);
    mc_free(s->seen);
    mc_free(s->stack);
}

/* Pushes a group that this search has not seen yet to stack[n]. Returns whether it did. */
static bool visit(struct members *s, int group, int n)
{
    if (group < 0 || s->seen[group] == s->search) {
        return false;
    }
    s->seen[group] = s->search;
    s->stack[n] = group;
    return true;
}

/* Would a group depend on itself if it were the epilogue of the solver step?  It would if it depends on a
 * result other than the main one, or on another group that reads the main one's sizes. */
static bool has_cycle(struct members *s, const struct make *m, mc_node *const *list, int group,
                             mc_node *heavy)
{
    const mc_node *y = mc_main_result(heavy);
    int n = 0;
    s->seen[group] = ++s->search;
    s->stack[n++] = group;
    while (n) {
        for (int i = s->first[s->stack[--n]]; i; i = s->next[i - 1]) {
            const mc_node *x = list[i - 1];
            if (x->op == &mc_op_item && x->item > 0 && x->in[0] == heavy) {
                return true;
            }
            n += visit(s, producer_of(m, x), n);
            for (int k = 0; k < x->nin; k++) {
                if (x->in[k] == y && m->groups.of[x->id] != group) {
                    return true;
                }
                n += visit(s, m->groups.of[x->in[k]->id], n);
                n += visit(s, epilogue_of(m, x->in[k]), n);
            }
        }
    }
    return false;
}

/* Does the group only add to its operands?  A solver may do that. */
static bool adds_only(const struct make *m, mc_node *const *list, size_t count, int group)
{
    bool adds = true;
    for (size_t i = 0; i < count && adds; i++) {
        adds = m->groups.of[list[i]->id] != group || mc_joins_terms(list[i]);
    }
    return adds;
}

/* A map group becomes the epilogue of a solver step if it is the only reader of the step's main result and
 * has the same axes, so that the result is not broadcast. It must not depend on itself: no result of the
 * step exists before the epilogue has run. */
mc_status mc_find_epilogues(struct make *m, mc_node *const *list, size_t count)
{
    struct members members;
    mc_status st = find_members(&members, m, list, count);
    for (size_t i = 0; i < count && st == MC_OK; i++) {
        mc_node *n = list[i];
        if (!m->needed[n->id] || !mc_is_heavy(n) || !is_epilogue(n)) {
            continue;
        }
        const mc_node *y = mc_main_result(n);
        int group = -1;
        bool only = true, asked = false; /* asked: a node reads only the sizes of y */
        for (size_t k = i + 1; k < count && only; k++) {
            for (int j = 0; j < list[k]->nin; j++) {
                asked |= list[k]->in[j] == y && !m->needed[list[k]->id];
                if (list[k]->in[j] == y && (m->needed[list[k]->id] || mc_is_shape_arg(list[k], j))) {
                    int h = mc_is_fusible(list[k]) && !m->early[list[k]->id] ? m->groups.of[list[k]->id] : -1;
                    only &= h >= 0 && (group < 0 || group == h) && list[k]->type.rank == y->type.rank &&
                            mc_varies(&list[k]->type) == mc_varies(&y->type);
                    group = h;
                }
            }
        }
        for (int k = 0; k < m->p->noutput + m->p->nupdate; k++) {
            only &= (k < m->p->noutput ? m->p->output[k] : m->p->update[k - m->p->noutput]) != (int)y->id;
        }
        if (only && group >= 0 && m->groups.axes[group].reduced == 0 &&
            m->groups.axes[group].varies == mc_varies(&y->type) && m->epilogue[group] < 0 &&
            (!m->separate[group] || adds_only(m, list, count, group)) &&
            ((n->nout == 1 && !asked) || !has_cycle(&members, m, list, group, n))) {
            m->late[group] = false;
            m->epilogue[group] = (int)y->id;
            m->finisher[n->id] = group + 1;
        }
    }
    free_members(&members);
    return st;
}

/* ---- order ---- */

/* The next group whose inputs are ready, late ones last; -1: none. */
static int next_ready(const struct make *m, const int *ready, size_t tail, size_t head[2])
{
    for (int late = 0; late < 2; late++) {
        while (head[late] < tail) {
            const int h = ready[head[late]++];
            if (m->late[h] == (bool)late) {
                return h;
            }
        }
    }
    return -1;
}

/* Sorts the groups topologically and lists the nodes group by group. */
mc_status mc_order_groups(struct make *m, mc_node *const *list, size_t count, mc_node **sorted)
{
    size_t ng = (size_t)m->groups.n;
    int *waiting = mc_calloc(ng + 1, sizeof *waiting, "lower"),
        *ready = mc_alloc((ng + 1) * sizeof *ready, "lower");
    VEC(int) *users = mc_calloc(ng + 1, sizeof *users, "lower"),
             *members = mc_calloc(ng + 1, sizeof *members, "lower");
    size_t head[2] = { 0, 0 }, tail = 0, k = 0, all = 0;
    mc_status st = waiting && ready && users && members ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && st == MC_OK; i++) {
        int h = m->groups.of[list[i]->id];
        if (h < 0) {
            continue;
        }
        all++;
        st = VEC_PUSH(members[h], (int)i) ? MC_OK : MC_EMEMORY;
        for (int j = -1; j < list[i]->nin && st == MC_OK; j++) {
            const mc_node *x = j < 0 ? NULL : list[i]->in[j];
            const int from[2] = { x ? m->groups.of[x->id] : producer_of(m, list[i]),
                                  x ? epilogue_of(m, x) : -1 };
            for (int w = 0; w < 2 && st == MC_OK; w++) {
                if (from[w] >= 0 && from[w] != h) {
                    st = VEC_PUSH(users[from[w]], h) ? MC_OK : MC_EMEMORY;
                    waiting[h]++;
                }
            }
        }
    }
    for (size_t i = 0; i < ng && st == MC_OK; i++) {
        if (!waiting[i] && members[i].n) {
            ready[tail++] = (int)i;
        }
    }
    for (int h; st == MC_OK && (h = next_ready(m, ready, tail, head)) >= 0;) {
        for (size_t i = 0; i < members[h].n; i++) {
            sorted[k++] = list[members[h].at[i]];
        }
        for (size_t i = 0; i < users[h].n; i++) {
            if (--waiting[users[h].at[i]] == 0) {
                ready[tail++] = users[h].at[i];
            }
        }
    }
    st = st == MC_OK && k < all ? mc_fail(MC_EINTERNAL, "lower: kernels depend on each other in a cycle")
                                : st;
    for (size_t i = 0; i < ng && users && members; i++) {
        VEC_FREE(users[i]);
        VEC_FREE(members[i]);
    }
    mc_free(waiting);
    mc_free(ready);
    mc_free(users);
    mc_free(members);
    sorted[k] = NULL;
    return st;
}
