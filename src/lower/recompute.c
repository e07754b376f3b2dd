/* recompute.c: which stored values each kernel that reads them recomputes instead.  Such a value is made by a
 * few cheap ops from values that are stored anyway, such as 1 - sqr(y) beside y = tanh(x), or x - m beside x
 * and its mean; or from one value of fewer bytes that is stored in its place, such as a float made from a
 * byte.  Most kernels are bound by memory bandwidth.
 *
 * Invariant: a recomputed value is made from stored values that exist before its readers run. */
#include "lower/make.h"
#include <stdlib.h>

enum { MOST_OPS = 8, MOST_LEAVES = 8, MOST_GROUPS = 16, DIVISION = 3 }; /* of a division */

/* The readers of a node: reader[first[id]] to reader[first[id + 1] - 1]. */
struct readers { int *first; mc_node **reader; };

static mc_status find_readers(struct readers *r, mc_node *const *list, size_t count, size_t nodes)
{
    size_t edges = 0;
    for (size_t i = 0; i < count; i++) {
        edges += (size_t)list[i]->nin;
    }
    r->first = mc_calloc(nodes + 2, sizeof *r->first, "lower");
    r->reader = mc_alloc((edges + 1) * sizeof *r->reader, "lower");
    if (!r->first || !r->reader) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < list[i]->nin; k++) {
            r->first[list[i]->in[k]->id + 2]++;
        }
    }
    for (size_t i = 2; i < nodes + 2; i++) {
        r->first[i] += r->first[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < list[i]->nin; k++) {
            r->reader[r->first[list[i]->in[k]->id + 1]++] = list[i];
        }
    }
    return MC_OK;
}

/* ---- what a node is recomputed from ---- */

struct again {
    struct make *m;
    struct readers readers;
    bool *done;                 /* by node id: it is recomputed */
    const mc_node *narrower;    /* values of fewer bytes than this one may be stored in its place; or NULL */
    mc_node *leaf[MOST_LEAVES];
    int nleaf, ops;
};

static bool cheap(const mc_node *n)
{
    return (n->op->arity && !(n->op->flags & OP_COSTLY)) || n->op->form == FORM_CAST;
}

static bool divides(const mc_node *n)
{
    return n->op->flags & OP_DIVIDES;
}

/* Do only kernels read n, and read its elements rather than its sizes? */
static bool read_by_kernels(const struct again *a, const mc_node *n)
{
    for (int i = a->readers.first[n->id]; i < a->readers.first[n->id + 1]; i++) {
        const mc_node *r = a->readers.reader[i];
        if (!a->m->needed[r->id] || a->m->early[r->id] || mc_reads_type_only(r) || !mc_is_fusible(r)) {
            return false;
        }
        for (int k = 1; k < r->nin; k++) {
            if (r->in[k] == n && (r->op->form == FORM_ALLOC || r->op->form == FORM_ARANGE)) {
                return false;
            }
        }
    }
    return true;
}

static bool add_leaf(struct again *a, mc_node *n)
{
    for (int i = 0; i < a->nleaf; i++) {
        if (a->leaf[i] == n) {
            return true;
        }
    }
    if (a->nleaf == MOST_LEAVES) {
        return false;
    }
    a->leaf[a->nleaf++] = n;
    return true;
}

/* Is x stored, or cheap to store because it is a row value of the kernel that computes n? */
static bool is_stored(const struct again *a, const mc_node *x, const mc_node *n)
{
    const int group = a->m->groups.of[n->id];
    const unsigned reduced = group < 0 ? 0 : a->m->groups.axes[group].reduced;
    const bool row = reduced && !(mc_varies(&x->type) & reduced) && mc_varies(&n->type) & reduced &&
                     mc_is_fusible(x) && mc_inside(a->m, x, group);
    return x->op->flags & OP_LEAF || a->m->early[x->id] || a->m->wanted[x->id] || row;
}

static size_t bytes(const mc_node *n)
{
    return mc_dtypes[n->type.dtype].size;
}

/* May x be stored in place of a value made from it?  Not if x is made from one such value alone. */
static bool is_narrower(const struct again *a, const mc_node *x)
{
    const mc_node *than = a->narrower;
    const mc_node *only = NULL;
    int of = 0;
    if (!than || bytes(x) >= bytes(than) || !mc_is_fusible(x) ||
        !mc_inside(a->m, x, a->m->groups.of[than->id]) || mc_varies(&x->type) != mc_varies(&than->type) ||
        !read_by_kernels(a, x)) {
        return false;
    }
    for (int i = 0; i < x->nin; i++) {
        only = mc_is_inline_operand(x->in[i]) ? only : x->in[i];
        of += !mc_is_inline_operand(x->in[i]);
    }
    return of != 1 || !is_narrower(a, only);
}

/* Finds the stored values that n is made from, through at most MOST_OPS ops. */
static bool expand_operands(struct again *a, const mc_node *n)
{
    a->ops += divides(n) ? DIVISION : 1;
    bool good = a->ops <= MOST_OPS && cheap(n) && !a->m->early[n->id] && read_by_kernels(a, n);
    for (int i = 0; i < n->nin && good; i++) {
        mc_node *x = n->in[i];
        if (!mc_is_inline_operand(x)) {
            good = is_stored(a, x, n) || is_narrower(a, x) ? add_leaf(a, x) : expand_operands(a, x);
        }
    }
    return good;
}

/* ---- does it pay? ---- */

/* Does the group's kernel read n, perhaps to recompute a value from it? */
static bool reads(const struct again *a, int group, const mc_node *n)
{
    for (int i = a->readers.first[n->id]; i < a->readers.first[n->id + 1]; i++) {
        const mc_node *r = a->readers.reader[i];
        if (a->m->groups.of[r->id] == group || (a->done[r->id] && reads(a, group, r))) {
            return true;
        }
    }
    return false;
}

/* Might a kernel be the epilogue of the solver step that makes n?  Only if it is a map and no other reads
 * n. */
static bool may_be_epilogue(const struct again *a, const mc_node *n)
{
    int group = -1;
    if (!mc_is_heavy(n->op == &mc_op_item && n->item == 0 ? n->in[0] : n)) {
        return false;
    }
    for (int i = a->readers.first[n->id]; i < a->readers.first[n->id + 1]; i++) {
        const mc_node *r = a->readers.reader[i];
        int of = a->m->groups.of[r->id];
        if (a->m->needed[r->id] && (of < 0 || a->m->groups.axes[of].reduced || (group >= 0 && of != group))) {
            return false;
        }
        group = a->m->needed[r->id] ? of : group;
    }
    return true;
}

/* Are fewer bytes read and written, for each element? */
static bool is_worthwhile(const struct again *a, const mc_node *n)
{
    int seen[MOST_GROUPS], nseen = 0;
    size_t before = bytes(n), after = 0;
    seen[nseen++] = a->m->groups.of[n->id];
    for (int k = 0; k < a->nleaf; k++) {
        after += !a->m->wanted[a->leaf[k]->id] && is_narrower(a, a->leaf[k]) ? bytes(a->leaf[k]) : 0;
    }
    for (int i = a->readers.first[n->id]; i < a->readers.first[n->id + 1]; i++) {
        int group = a->m->groups.of[a->readers.reader[i]->id], k = 0;
        while (k < nseen && seen[k] != group) {
            k++;
        }
        if (k < nseen) {
            continue;
        }
        if (nseen == MOST_GROUPS) {
            return false;
        }
        seen[nseen++] = group;
        before += bytes(n);
        for (k = 0; k < a->nleaf; k++) {
            bool reads_leaf = reads(a, group, a->leaf[k]);
            if (!reads_leaf && may_be_epilogue(a, a->leaf[k])) {
                return false;
            }
            after += !reads_leaf && mc_varies(&a->leaf[k]->type) == mc_varies(&n->type) ? bytes(a->leaf[k])
                                                                                        : 0;
        }
    }
    return after < before;
}

static bool is_recomputed(struct again *a, const mc_node *n, const mc_node *narrower)
{
    a->narrower = narrower;
    a->nleaf = a->ops = 0;
    return expand_operands(a, n) && is_worthwhile(a, n);
}

static bool is_output(const struct make *m, const mc_node *n)
{
    for (int k = 0; k < m->p->noutput + m->p->nupdate; k++) {
        if ((k < m->p->noutput ? m->p->output[k] : m->p->update[k - m->p->noutput]) == (int)n->id) {
            return true;
        }
    }
    return false;
}

mc_status mc_find_recomputed(struct make *m, mc_node *const *list, size_t count)
{
    struct again a = { .m = m };
    mc_status s = find_readers(&a.readers, list, count, m->p->graph->nodes.n);
    a.done = mc_calloc(m->p->graph->nodes.n + 1, sizeof *a.done, "lower");
    s = a.done ? s : MC_EMEMORY;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        const mc_node *n = list[i];
        if (!m->wanted[n->id] || !m->needed[n->id] || n->op->flags & OP_LEAF || is_output(m, n)) {
            continue;
        }
        if (is_recomputed(&a, n, NULL) || is_recomputed(&a, n, n)) {
            m->wanted[n->id] = 0;
            a.done[n->id] = true;
            for (int k = 0; k < a.nleaf; k++) {
                m->wanted[a.leaf[k]->id] = 1;
            }
        } else {
            m->coded[n->id] = mc_fits_in_byte(n) && !m->early[n->id] && read_by_kernels(&a, n);
        }
    }
    mc_free(a.done);
    mc_free(a.readers.first);
    mc_free(a.readers.reader);
    return s;
}

/* ---- the nodes of a kernel ---- */

static int by_id(const void *a, const void *b)
{
    const mc_node *const *x = a, *const *y = b;
    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* The group's stored nodes, and all nodes that the kernel computes for them, recomputed ones included. */
mc_status mc_kernel_nodes(struct make *m, int group, mc_node *const *node, int n, struct mc_node_list *to)
{
    to->n = 0;
    for (int i = 0; i < n; i++) {
        if (m->wanted[node[i]->id]) {
            m->within[node[i]->id] = group + 1;
            if (!VEC_PUSH(*to, node[i])) {
                return MC_EMEMORY;
            }
        }
    }
    for (size_t i = 0; i < to->n; i++) {
        mc_node *x = to->at[i];
        for (int k = 0; k < x->nin; k++) {
            mc_node *in = x->in[k];
            bool size = k >= 1 && (x->op->form == FORM_ALLOC || x->op->form == FORM_ARANGE);
            bool inside = mc_inside(m, in, group) || !m->wanted[in->id];
            if (m->within[in->id] == group + 1 || size || !inside || mc_is_inline_operand(in) ||
                in->op->flags & OP_LEAF || m->early[in->id]) {
                continue;
            }
            m->within[in->id] = group + 1;
            if (!VEC_PUSH(*to, in)) {
                return MC_EMEMORY;
            }
        }
    }
    qsort(to->at, to->n, sizeof *to->at, by_id);
    return MC_OK;
}
