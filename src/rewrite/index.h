/* index.h: reading the index of a subtensor or of an update axis by axis, and building a new one.
 *
 * Invariant: bounds that are inputs of the node are numbered in the order in which they are copied. */
#ifndef MC_REWRITE_INDEX_H
#define MC_REWRITE_INDEX_H

#include "rewrite/rewrite.h"

struct index {
    int64_t spec[MC_MAX_RANK * SPEC_N];
    mc_node *bound[3 * MC_MAX_RANK]; /* bounds of the spec that are nodes */
    int nbound;
};

static inline const int64_t *index_entry(const mc_node *n, int axis)
{
    return &n->attr[0].ints[axis * SPEC_N];
}

/* The node that is bound number k of a subtensor or an update. */
static inline mc_node *index_bound(const mc_node *n, int64_t k)
{
    return n->in[n->op->sig->ntensor - 1 + k];
}

/* Does the index take the whole axis with this step (1 or -1)? */
static inline bool index_walks(const int64_t *s, int64_t step)
{
    return !s[SPEC_INDEX] && !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && s[SPEC_STEP_KIND] == BOUND_CONST &&
           s[SPEC_STEP] == step;
}

static inline bool index_is_whole(const int64_t *s)
{
    return index_walks(s, 1);
}

static inline bool index_is_reversal(const int64_t *s)
{
    return index_walks(s, -1);
}

static inline bool index_all_whole(const mc_node *n)
{
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        if (!index_is_whole(&n->attr[0].ints[i])) {
            return false;
        }
    }
    return true;
}

static inline void index_set_whole(struct index *to, int axis)
{
    static const int64_t whole[SPEC_N] = { [SPEC_STEP_KIND] = BOUND_CONST, [SPEC_STEP] = 1 };
    memcpy(&to->spec[axis * SPEC_N], whole, sizeof whole);
}

static inline void index_set_first(struct index *to, int axis)
{
    static const int64_t first[SPEC_N] = { [SPEC_INDEX] = 1, [SPEC_START_KIND] = BOUND_CONST };
    memcpy(&to->spec[axis * SPEC_N], first, sizeof first);
}

/* Copies the entry for axis `from` of n's index to axis `axis` of `to`. */
static inline void index_copy(struct index *to, int axis, const mc_node *n, int from)
{
    int64_t *s = &to->spec[axis * SPEC_N];
    memcpy(s, index_entry(n, from), SPEC_N * sizeof *s);
    for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
        if (s[k] == BOUND_INPUT) {
            to->bound[to->nbound++] = index_bound(n, s[k + 1]);
            s[k + 1] = to->nbound;
        }
    }
}

static inline mc_node *index_part(mc_node *x, struct index *i)
{
    mc_node *in[1 + 3 * MC_MAX_RANK] = { x };
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = i->spec };
    memcpy(in + 1, i->bound, (size_t)i->nbound * sizeof *in);
    return mc_apply(x->graph, mc_op_find("subtensor"), 1 + i->nbound, in, &a);
}

static inline bool index_same_region(const mc_node *a, const mc_node *b)
{
    if (a->attr[0].n != b->attr[0].n ||
        memcmp(a->attr[0].ints, b->attr[0].ints, (size_t)a->attr[0].n * sizeof(int64_t)) != 0) {
        return false;
    }
    int na = a->nin - a->op->sig->ntensor, nb = b->nin - b->op->sig->ntensor;
    for (int k = 1; na == nb && k <= na; k++) {
        if (index_bound(a, k) != index_bound(b, k)) {
            return false;
        }
    }
    return na == nb;
}

#endif
