/* column_sums.c: sums over the rows of what a row kernel computes or reads are added up by that kernel,
 * such as the gradients of a normalisation's gain and of a bias before a softmax.  Their elements are
 * then not stored and not read a second time.
 *
 * Invariant: merging does not create a cycle. */
#include "lower/group.h"

static bool column_sums(struct fuse *f, int a, int b)
{
    const struct group *x = &f->group.at[a], *y = &f->group.at[b];
    unsigned kept = x->varies & ~x->reduced;
    if (a == b || !x->fusible || !y->fusible || !x->reduced || !kept || y->reduced != kept ||
        x->rank != y->rank || x->varies != y->varies || x->reduced < kept ||
        x->nnode + y->nnode > MOST_NODES || x->nsource + y->nsource > MOST_SOURCES ||
        !mc_group_same_space(f, x, y->space, x->varies) || mc_group_depends_on(f, a, b)) {
        return false;
    }
    for (size_t i = 0; i < y->from.n; i++) {
        int h = mc_group_root(f, y->from.at[i]);
        if (h != a && mc_group_depends_on(f, h, a)) {
            return false;
        }
    }
    return true;
}

/* By group: does it consist of maps and of sums of them that no node of the group reads? */
static void find_plain(const struct fuse *f, mc_node *const *list, size_t count, bool *plain)
{
    for (size_t i = 0; i < f->group.n; i++) {
        plain[i] = true;
    }
    for (size_t i = 0; i < count; i++) {
        const mc_node *n = list[i];
        int h = f->of[n->id] < 0 ? -1 : mc_group_root(f, f->of[n->id]);
        if (h < 0) {
            continue;
        }
        bool sum = n->op->reduction == REDUCE_SUM && mc_attr_named(n, "acc_dtype")->none &&
                   n->type.dtype == n->in[0]->type.dtype &&
                   (n->type.dtype == MC_FLOAT32 || n->type.dtype == MC_FLOAT64);
        plain[h] &= n->op->flags & OP_REDUCES ? sum : mc_varies(&n->type) == f->group.at[h].varies;
        for (int k = 0; k < n->nin; k++) {
            int from = f->of[n->in[k]->id];
            plain[h] &= !(from >= 0 && mc_group_root(f, from) == h && n->in[k]->op->flags & OP_REDUCES);
        }
    }
}

static bool over_rows(const struct group *g)
{
    unsigned kept = g->varies & ~g->reduced;
    return g->into < 0 && g->fusible && g->reduced && kept && g->reduced > kept;
}

/* A group that sums over the rows of a value is merged into a row kernel that computes or reads the value. */
mc_status mc_group_add_column_sums(struct fuse *f, mc_node *const *list, size_t count, size_t nodes)
{
    bool *plain = mc_calloc(f->group.n + 1, sizeof *plain, "lower");
    int *reader = mc_alloc((nodes + 1) * sizeof *reader,
                           "lower"); /* by node id: the first row kernel that reads it */
    mc_status s = plain && reader ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < nodes && s == MC_OK; i++) {
        reader[i] = -1;
    }
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        int h = f->of[list[i]->id] < 0 ? -1 : mc_group_root(f, f->of[list[i]->id]);
        for (int k = 0; h >= 0 && over_rows(&f->group.at[h]) && k < list[i]->nin; k++) {
            int *r = &reader[list[i]->in[k]->id];
            *r = *r < 0 ? h : *r;
        }
    }
    if (s == MC_OK) {
        find_plain(f, list, count, plain);
    }
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        int b = f->of[list[i]->id];
        for (int k = 0; b >= 0 && k < list[i]->nin && s == MC_OK; k++) {
            const mc_node *x = list[i]->in[k];
            int candidate[2] = { f->of[x->id], reader[x->id] };
            for (int c = 0; c < 2 && s == MC_OK; c++) {
                int a = candidate[c] < 0 ? -1 : mc_group_root(f, candidate[c]), to = mc_group_root(f, b);
                if (a >= 0 && plain[to] && f->group.at[to].reduced && over_rows(&f->group.at[a]) &&
                    mc_varies(&x->type) == f->group.at[to].varies && column_sums(f, a, to)) {
                    s = mc_group_merge_into(f, a, to);
                }
            }
        }
    }
    mc_free(reader);
    mc_free(plain);
    return s;
}
