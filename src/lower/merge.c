/* merge.c: merges groups that feed the same node, groups that reduce the same elements, a group of little
 * work with its only reader, and maps of the same elements.
 *
 * Invariant: two groups are merged only if neither depends on the other, or if one is the only reader of the
 * other.  So no cycle results. */
#include "lower/group.h"

bool mc_group_can_merge(struct fuse *f, int a, int b)
{
    const struct group *x = &f->group.at[a], *y = &f->group.at[b];
    return x->fusible && y->fusible && x->rank == y->rank && x->varies == y->varies &&
           mc_group_same_space(f, x, y->space, x->varies) &&
           (x->reduced == y->reduced || !x->reduced || !y->reduced) && x->nnode + y->nnode <= MOST_NODES &&
           x->nsource + y->nsource <= MOST_SOURCES && !mc_group_depends_on(f, a, b) &&
           !mc_group_depends_on(f, b, a);
}

mc_status mc_group_merge(struct fuse *f, int a, int b)
{
    struct group *x = &f->group.at[a], *y = &f->group.at[b];
    x->nnode += y->nnode;
    x->nsource += y->nsource;
    x->reduced |= y->reduced;
    x->newest = MC_MAX(x->newest, y->newest);
    y->into = a;
    for (size_t i = 0; i < y->from.n; i++) {
        int h = mc_group_root(f, y->from.at[i]);
        if (h != a && !VEC_PUSH(x->from, h)) {
            return MC_EMEMORY;
        }
    }
    for (size_t i = 0; i < y->to.n; i++) {
        int h = mc_group_root(f, y->to.at[i]);
        if (h != a && !VEC_PUSH(x->to, h)) {
            return MC_EMEMORY;
        }
    }
    VEC_FREE(y->from);
    VEC_FREE(y->to);
    return mc_group_update_newest(f, a);
}

/* a is the only reader of b: no other group depends on b, so no cycle results. */
mc_status mc_group_merge_into(struct fuse *f, int a, int b)
{
    unsigned varies = f->group.at[a].varies, reduced = f->group.at[a].reduced;
    TRY(mc_group_merge(f, a, b));
    f->group.at[a].varies = varies;
    f->group.at[a].reduced = reduced;
    return MC_OK;
}

/* The spaces are equal.  A full reduction makes a single pass, so both sides must reduce the same axes. */
bool mc_group_keeps_full_reduction(const struct fuse *f, int a, int b)
{
    const struct group *x = &f->group.at[a], *y = &f->group.at[b];
    unsigned r = x->reduced | y->reduced;
    return !r || (x->varies & ~r) != 0 || (x->reduced == y->reduced);
}

/* ---- reductions of the same elements share the pass over them ---- */

/* Group h reads x along all axes of its space.  It is merged with an earlier group that does the same. */
static mc_status have_common_reader(struct fuse *f, int *reader, const mc_node *x, int h)
{
    const struct group *b = &f->group.at[h];
    if (!b->reduced || x->type.rank != b->rank || mc_varies(&x->type) != b->varies) {
        return MC_OK;
    }
    int a = reader[x->id] < 0 ? -1 : mc_group_root(f, reader[x->id]);
    if (a >= 0 && a != h && f->group.at[a].reduced == b->reduced && mc_group_can_merge(f, a, h)) {
        return mc_group_merge(f, a, h);
    }
    reader[x->id] = a < 0 ? h : a;
    return MC_OK;
}

mc_status mc_group_merge_siblings(struct fuse *f, mc_node *const *list, size_t count, size_t nodes)
{
    int *reader = mc_alloc((nodes + 1) * sizeof *reader,
                           "lower"); /* by node: the first group that reads it so */
    mc_status s = reader ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < nodes && s == MC_OK; i++) {
        reader[i] = -1;
    }
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < list[i]->nin && f->of[list[i]->id] >= 0 && s == MC_OK; k++) {
            int h = mc_group_root(f, f->of[list[i]->id]), from = f->of[list[i]->in[k]->id];
            if (from < 0 || mc_group_root(f, from) != h) {
                s = have_common_reader(f, reader, list[i]->in[k], h);
            }
        }
    }
    mc_free(reader);
    return s;
}

/* ---- little work is merged into its only reader ---- */

enum { CHEAP = 4 };

/* By group: the only group that reads it; -1: none; -2: several, or it makes an output. */
static void find_readers(const struct fuse *f, mc_node *const *list, size_t count, int n, mc_node *const *out,
                         int *reader)
{
    for (size_t i = 0; i < f->group.n; i++) {
        reader[i] = -1;
    }
    for (size_t i = 0; i < count; i++) {
        int to = f->of[list[i]->id];
        for (int k = 0; to >= 0 && k < list[i]->nin; k++) {
            int from = f->of[list[i]->in[k]->id];
            from = from < 0 ? from : mc_group_root(f, from);
            if (from >= 0 && from != mc_group_root(f, to)) {
                reader[from] = reader[from] == -1 || reader[from] == mc_group_root(f, to)
                                   ? mc_group_root(f, to)
                                   : -2;
            }
        }
    }
    for (int i = 0; i < n; i++) {
        int from = f->of[out[i]->id];
        if (from >= 0) {
            reader[mc_group_root(f, from)] = -2;
        }
    }
}

/* A few cheap operations over some axes of the reader's space cost less than a kernel of their own and the
 * memory between: they become row values of a row kernel, or are recomputed for each element. */
static bool is_small_for(const struct group *a, const struct group *b, bool costly)
{
    bool rows = b->reduced && !(a->varies & b->reduced);
    return a->fusible && b->fusible && !a->reduced && a->rank == b->rank && (a->varies & ~b->varies) == 0 &&
           b->varies && (rows || (a->nnode <= CHEAP && !costly)) && a->nnode + b->nnode <= MOST_NODES &&
           a->nsource + b->nsource <= MOST_SOURCES;
}

static bool is_expensive(const mc_node *n)
{
    const bool quotient = n->op->flags & OP_DIVIDES && n->nin == 2;
    return quotient || n->op->flags & OP_COSTLY || n->op->form == FORM_ALLOC;
}

mc_status mc_group_merge_into_only_reader(struct fuse *f, mc_node *const *list, size_t count, int n,
                                          mc_node *const *out)
{
    int *reader = mc_alloc((f->group.n + 1) * sizeof *reader, "lower");
    bool *costly = mc_calloc(f->group.n + 1, sizeof *costly, "lower");
    mc_status s = reader && costly ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        int h = f->of[list[i]->id];
        if (h >= 0 && (is_expensive(list[i]))) {
            costly[mc_group_root(f, h)] = true;
        }
    }
    if (s == MC_OK) {
        find_readers(f, list, count, n, out, reader);
    }
    for (size_t i = f->group.n; i-- > 0 && s == MC_OK;) {
        int to = reader[i] < 0 ? -1 : mc_group_root(f, reader[i]);
        if (to >= 0 && f->group.at[i].into < 0 && to != (int)i &&
            is_small_for(&f->group.at[i], &f->group.at[to], costly[i]) &&
            !(f->group.at[to].reduced && !(f->group.at[to].varies & ~f->group.at[to].reduced) &&
              f->group.at[i].varies)) {
            s = mc_group_merge_into(f, to, (int)i);
        }
    }
    mc_free(reader);
    mc_free(costly);
    return s;
}

/* ---- maps that read the same elements ---- */

enum { MOST_READ = 6 };         /* arrays of the whole space that a merged map reads, at most */

/* What a map reads along all axes of its space, by node id; the smallest and the largest dtype of what it
 * computes. */
struct map { VEC(int) read; size_t least, most; };

static bool is_map(const struct group *g)
{
    return g->fusible && !g->reduced && g->into < 0;
}

static bool reads(const struct map *m, int id)
{
    bool found = false;
    for (size_t i = 0; i < m->read.n && !found; i++) {
        found = m->read.at[i] == id;
    }
    return found;
}

/* Adds what node n of map g reads of others. */
static bool note_reads(const struct fuse *f, int g, const mc_node *n, struct map *m)
{
    const size_t size = mc_dtypes[n->type.dtype].size;
    bool good = true;
    m->least = n->type.dtype == MC_BOOL || (m->least && m->least < size) ? m->least : size;
    m->most = MC_MAX(m->most, size);
    for (int k = 0; k < n->nin && good; k++) {
        const mc_node *x = n->in[k];
        const int from = f->of[x->id];
        const bool own = (from >= 0 && mc_group_root(f, from) == g) || mc_is_inline_operand(x);
        const bool whole = x->type.rank == f->group.at[g].rank &&
                           mc_varies(&x->type) == f->group.at[g].varies;
        good = own || !whole || reads(m, (int)x->id) || VEC_PUSH(m->read, (int)x->id);
    }
    return good;
}

/* One map reads all that the other reads, so a kernel for both has no more to read than that one. */
static bool reads_no_more(const struct map *a, const struct map *b)
{
    const struct map *less = a->read.n < b->read.n ? a : b, *more = less == a ? b : a;
    bool all = less->read.n > 0 && more->read.n <= MOST_READ && a->least == b->least && a->most == b->most;
    for (size_t i = 0; i < less->read.n && all; i++) {
        all = reads(more, less->read.at[i]);
    }
    return all;
}

/* reader: by node, the first map that reads it. */
static mc_status merge_map(struct fuse *f, struct map *map, int *reader, int h)
{
    for (size_t i = 0; i < map[h].read.n; i++) {
        int *first = &reader[map[h].read.at[i]];
        const int a = *first < 0 ? -1 : mc_group_root(f, *first);
        *first = a < 0 ? h : a;
        if (a < 0 || a == h || !reads_no_more(&map[a], &map[h]) || !mc_group_can_merge(f, a, h)) {
            continue;
        }
        TRY(mc_group_merge(f, a, h));
        for (size_t k = 0; k < map[h].read.n; k++) {
            if (!reads(&map[a], map[h].read.at[k]) && !VEC_PUSH(map[a].read, map[h].read.at[k])) {
                return MC_EMEMORY;
            }
        }
        return MC_OK;
    }
    return MC_OK;
}

mc_status mc_group_merge_maps(struct fuse *f, mc_node *const *list, size_t count, size_t nodes)
{
    struct map *map = mc_calloc(f->group.n + 1, sizeof *map, "lower");
    int *reader = mc_alloc((nodes + 1) * sizeof *reader, "lower");
    mc_status s = map && reader ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < nodes && s == MC_OK; i++) {
        reader[i] = -1;
    }
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        const int g = f->of[list[i]->id] < 0 ? -1 : mc_group_root(f, f->of[list[i]->id]);
        if (g >= 0 && is_map(&f->group.at[g])) {
            s = note_reads(f, g, list[i], &map[g]) ? MC_OK : MC_EMEMORY;
        }
    }
    for (size_t g = 0; g < f->group.n && s == MC_OK; g++) {
        if (is_map(&f->group.at[g])) {
            s = merge_map(f, map, reader, (int)g);
        }
    }
    for (size_t g = 0; g < f->group.n && map; g++) {
        VEC_FREE(map[g].read);
    }
    mc_free(map);
    mc_free(reader);
    return s;
}
