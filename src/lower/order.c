/* order.c: in which order groups run, which of their nodes need memory, which finish a product. */
#include "lower/make.h"

/* ---- which values have memory, which products get an epilogue ---- */

bool mc_takes_no_memory(const mc_node *n)
{
    return mc_position_axis(n) >= 0 || (mc_is_const(n) && mc_array_size(n->value) == 1);
}

/* The nodes outside the kernel that n reads from memory. */
void mc_want_inputs(struct make *m, mc_node *n)
{
    int group = m->groups.of[n->id];
    bool kernel = mc_is_fusible(n);
    for (int i = 0; i < n->nin && (mc_position_axis(n) < 0 || m->wanted[n->id]); i++) {
        mc_node *x = n->in[i];
        if (mc_reads_type_only(n) || (kernel && i >= 1 && (mc_is_op(n, "alloc") || mc_is_op(n, "arange"))) || (kernel && mc_inside(m, x, group)) ||
            (kernel && mc_takes_no_memory(x))) {
            continue;
        }
        m->wanted[x->id] = 1;
    }
}

/* Which heavy work can be followed by a kernel, block by block. */
static bool finishes(const mc_node *n)
{
    return (mc_is_op(n, "dot") && mc_varies(&n->type) == 3) || strncmp(n->op->name, "conv", 4) == 0 || strncmp(n->op->name, "pool", 4) == 0;
}

mc_node *mc_main_result(mc_node *n)
{
    return n->nout == 1 ? n : mc_item(n, 0);
}

/* A map over all that heavy work makes, and its only reader, finishes it block by block. */
void mc_find_epilogues(struct make *m, mc_node *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mc_node *n = list[i];
        if (!m->needed[n->id] || !mc_is_heavy(n) || !finishes(n)) {
            continue;
        }
        const mc_node *y = mc_main_result(n);
        int group = -1;
        bool only = true;
        for (size_t k = i + 1; k < count && only; k++) {
            for (int j = 0; j < list[k]->nin; j++) {
                if (list[k]->in[j] == y && m->needed[list[k]->id]) {
                    int h = mc_is_fusible(list[k]) && !m->early[list[k]->id] ? m->groups.of[list[k]->id] : -1;
                    only &= h >= 0 && (group < 0 || group == h) && list[k]->type.rank == y->type.rank && mc_varies(&list[k]->type) == mc_varies(&y->type);
                    group = h;
                }
            }
        }
        for (int k = 0; k < m->p->noutput + m->p->nupdate; k++) {
            only &= (k < m->p->noutput ? m->p->output[k] : m->p->update[k - m->p->noutput]) != (int)y->id;
        }
        if (only && group >= 0 && m->groups.reduced[group] == 0 && m->epilogue[group] < 0) {
            m->epilogue[group] = (int)y->id;
        }
    }
}

/* ---- order ---- */

/* Groups in an order in which each stands behind what it reads; lists the nodes group by group. */
mc_status mc_order_groups(struct make *m, mc_node *const *list, size_t count, mc_node **sorted)
{
    size_t ng = (size_t)m->groups.n;
    int *waiting = mc_calloc(ng + 1, sizeof *waiting, "lower"), *ready = mc_alloc((ng + 1) * sizeof *ready, "lower");
    VEC(int) *users = mc_calloc(ng + 1, sizeof *users, "lower"), *members = mc_calloc(ng + 1, sizeof *members, "lower");
    size_t head = 0, tail = 0, k = 0;
    mc_status st = waiting && ready && users && members ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && st == MC_OK; i++) {
        int h = m->groups.of[list[i]->id];
        if (h < 0) {
            continue;
        }
        st = VEC_PUSH(members[h], (int)i) ? MC_OK : MC_EMEMORY;
        for (int j = 0; j < list[i]->nin && st == MC_OK; j++) {
            int from = m->groups.of[list[i]->in[j]->id];
            if (from >= 0 && from != h) {
                st = VEC_PUSH(users[from], h) ? MC_OK : MC_EMEMORY;
                waiting[h]++;
            }
        }
    }
    for (size_t i = 0; i < ng && st == MC_OK; i++) {
        if (!waiting[i] && members[i].n) {
            ready[tail++] = (int)i;
        }
    }
    while (head < tail && st == MC_OK) {
        int h = ready[head++];
        for (size_t i = 0; i < members[h].n; i++) {
            sorted[k++] = list[members[h].at[i]];
        }
        for (size_t i = 0; i < users[h].n; i++) {
            if (--waiting[users[h].at[i]] == 0) {
                ready[tail++] = users[h].at[i];
            }
        }
    }
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
