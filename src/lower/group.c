/* group.c: fusion.  Walks the graph upwards and puts each node into the kernel of what feeds it, where
 * the two share an iteration space and no path leads out of the kernel and back into it.
 *
 * Invariant: no group waits for itself, directly or through others. */
#include "lower/group.h"

enum { LONGEST_SEARCH = 1000 };

unsigned mc_varies(const struct mc_type *t)
{
    unsigned v = 0;
    for (int i = 0; i < t->rank; i++) {
        v |= t->dims[i] != 1 ? 1u << i : 0;
    }
    return v;
}

static bool is_op(const mc_node *n, const char *name) { return strcmp(n->op->name, name) == 0; }

static bool counts_from_zero(const mc_node *n)
{
    double start = 1, step = 0;
    return is_op(n, "arange") && n->nin == 3 && n->type.dtype == MC_INT64 && mc_const_number(n->in[0], &start) && start == 0 &&
           mc_const_number(n->in[2], &step) && step == 1;
}

/* A kernel counts the axes of an operand as its own: a value of fewer axes, but for a number, would be repeated along others. */
static bool repeats_alike(const mc_node *n)
{
    return is_op(n, "alloc") && (n->in[0]->type.rank == 0 || n->in[0]->type.rank == n->type.rank);
}

bool mc_is_fusible(const mc_node *n)
{
    return n->op->arity || is_op(n, "cast") || repeats_alike(n) || is_op(n, "check_index") || counts_from_zero(n) ||
           (mc_monoid(n->op) && n->op->flags & OP_REDUCES);
}

static unsigned reduces(const mc_node *n)
{
    int axis[MC_MAX_RANK];
    unsigned r = 0;
    if (!(n->op->flags & OP_REDUCES)) {
        return 0;
    }
    int k = mc_axes_of(n, 0, n->in[0]->type.rank, axis);
    for (int i = 0; i < k; i++) {
        r |= 1u << axis[i];
    }
    return r & mc_varies(&n->in[0]->type);
}

int mc_group_root(const struct fuse *f, int g)
{
    while (f->group.at[g].into >= 0) {
        g = f->group.at[g].into;
    }
    return g;
}

/* Does group a wait for b?  A search among what a reads, backwards and not beyond b's age; yes if it takes long. */
bool mc_group_waits(struct fuse *f, int a, int b)
{
    uint32_t oldest = f->group.at[b].oldest;
    int steps = 0;
    f->stack.n = 0;
    f->search++;
    if (f->group.at[a].newest < oldest) {
        return false;
    }
    if (!VEC_PUSH(f->stack, a)) {
        return true;
    }
    while (f->stack.n) {
        struct group *g = &f->group.at[f->stack.at[--f->stack.n]];
        for (size_t i = 0; i < g->from.n; i++) {
            int h = mc_group_root(f, g->from.at[i]);
            struct group *x = &f->group.at[h];
            if (h == b || ++steps > LONGEST_SEARCH) {
                return true;
            }
            if (x->seen != f->search && x->newest >= oldest) {
                x->seen = f->search;
                if (!VEC_PUSH(f->stack, h)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Does n, an element, read a row value of g? */
static bool reads_row(const struct fuse *f, const struct group *g, const mc_node *n)
{
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        if (h >= 0 && &f->group.at[mc_group_root(f, h)] == g && mc_varies(&n->in[i]->type) != g->varies) {
            return true;
        }
    }
    return false;
}

/* Is x, along all axes of v, as large as the group's space? */
bool mc_group_same_space(const struct fuse *f, const struct group *g, const mc_node *x, unsigned v)
{
    for (int a = 0; a < x->type.rank; a++) {
        if (v >> a & 1 && !mc_sizes_equal(&f->sizes, g->space, x, a)) {
            return false;
        }
    }
    return true;
}

/* Can node n join group g?  in: n's operand that lives in g. */
static bool joins(const struct fuse *f, const struct group *g, const mc_node *n, const mc_node *in)
{
    unsigned v = mc_varies(&n->type), r = reduces(n), from = mc_varies(&in->type);
    if (!g->fusible || g->nnode >= MOST_NODES || g->nsource + n->nin - 1 > MOST_SOURCES) {
        return false;
    }
    if (is_op(n, "alloc") || n->type.rank != g->rank || in->type.rank != g->rank) {
        return false;
    }
    if (n->op->flags & OP_REDUCES) {
        return from == g->varies && (g->reduced ? r == g->reduced : r != 0);
    }
    if (!mc_group_same_space(f, g, n, v & g->varies)) {
        return false;
    }
    if (g->reduced) {
        unsigned kept = g->varies & ~g->reduced;
        if (kept == 0) {
            return v == 0 || (v == g->varies && !reads_row(f, g, n)); /* a fold's rows are scalars; no second walk */
        }
        return v == g->varies || v == kept || v == 0;
    }
    return v == g->varies;
}

static mc_status add_group(struct fuse *f, const mc_node *n, bool fusible)
{
    unsigned r = fusible ? reduces(n) : 0;
    const mc_node *space = r ? n->in[0] : n;
    struct group g = { .rank = n->type.rank, .nnode = 1, .nsource = n->nin, .varies = mc_varies(&space->type), .reduced = r,
                       .space = space, .fusible = fusible, .into = -1, .oldest = n->id, .newest = n->id };
    f->of[n->id] = (int)f->group.n;
    return VEC_PUSH(f->group, g) ? MC_OK : MC_EMEMORY;
}

/* Group g reads what n's inputs outside g are in. */
static mc_status wait_for_inputs(struct fuse *f, int g, const mc_node *n)
{
    struct group *x = &f->group.at[g];
    x->newest = MC_MAX(x->newest, n->id);
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        h = h < 0 ? h : mc_group_root(f, h);
        if (h >= 0 && h != g && !(x->from.n && x->from.at[x->from.n - 1] == h) && !VEC_PUSH(x->from, h)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

/* Would putting n into g make g wait for itself? */
static bool makes_cycle(struct fuse *f, int g, const mc_node *n)
{
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        h = h < 0 ? h : mc_group_root(f, h);
        if (h >= 0 && h != g && mc_group_waits(f, h, g)) {
            return true;
        }
    }
    return false;
}

static bool can_merge(struct fuse *f, int a, int b)
{
    const struct group *x = &f->group.at[a], *y = &f->group.at[b];
    return x->fusible && y->fusible && x->rank == y->rank && x->varies == y->varies && mc_group_same_space(f, x, y->space, x->varies) &&
           (x->reduced == y->reduced || !x->reduced || !y->reduced) && x->nnode + y->nnode <= MOST_NODES &&
           x->nsource + y->nsource <= MOST_SOURCES && !mc_group_waits(f, a, b) && !mc_group_waits(f, b, a);
}

static mc_status merge(struct fuse *f, int a, int b)
{
    struct group *x = &f->group.at[a], *y = &f->group.at[b];
    x->nnode += y->nnode;
    x->nsource += y->nsource;
    x->reduced |= y->reduced;
    x->oldest = MC_MIN(x->oldest, y->oldest);
    x->newest = MC_MAX(x->newest, y->newest);
    y->into = a;
    for (size_t i = 0; i < y->from.n; i++) {
        int h = mc_group_root(f, y->from.at[i]);
        if (h != a && !VEC_PUSH(x->from, h)) {
            return MC_EMEMORY;
        }
    }
    VEC_FREE(y->from);
    return MC_OK;
}

/* b's work goes into its only reader a: nothing else waits for b, so no cycle can come of it. */
mc_status mc_group_merge_into(struct fuse *f, int a, int b)
{
    unsigned varies = f->group.at[a].varies, reduced = f->group.at[a].reduced;
    TRY(merge(f, a, b));
    f->group.at[a].varies = varies;
    f->group.at[a].reduced = reduced;
    return MC_OK;
}

/* After a merge row values of one side could be elements the other side walks twice; the spaces agree, so
 * what remains is that a fold has no second walk. */
static bool merge_keeps_fold(const struct fuse *f, int a, int b)
{
    const struct group *x = &f->group.at[a], *y = &f->group.at[b];
    unsigned r = x->reduced | y->reduced;
    return !r || (x->varies & ~r) != 0 || (x->reduced == y->reduced);
}

/* The group that n joins: one that reduces before others, for small work beside its sums can be put into it later. -1: none. */
static int find_home(struct fuse *f, const mc_node *n)
{
    for (int any = 0; any < 2; any++) {
        for (int i = 0; i < n->nin; i++) {
            int h = f->of[n->in[i]->id];
            h = h < 0 ? h : mc_group_root(f, h);
            if (h >= 0 && (any || f->group.at[h].reduced) && joins(f, &f->group.at[h], n, n->in[i]) && !makes_cycle(f, h, n)) {
                return h;
            }
        }
    }
    return -1;
}

static mc_status place(struct fuse *f, const mc_node *n, bool fuse)
{
    if (!fuse) { /* nothing joins anything, so it does not matter who waits for whom */
        return add_group(f, n, false);
    }
    if (!mc_is_fusible(n)) {
        TRY(add_group(f, n, false));
        return wait_for_inputs(f, f->of[n->id], n);
    }
    int home = find_home(f, n), inside = 0;
    for (int i = 0; i < n->nin && home >= 0; i++) {
        int h = f->of[n->in[i]->id];
        h = h < 0 ? h : mc_group_root(f, h);
        if (h >= 0 && h != home && joins(f, &f->group.at[h], n, n->in[i]) && !makes_cycle(f, h, n) && can_merge(f, home, h) &&
            merge_keeps_fold(f, home, h)) {
            TRY(merge(f, home, h));
        }
    }
    if (home < 0) {
        TRY(add_group(f, n, true));
        return wait_for_inputs(f, f->of[n->id], n);
    }
    struct group *g = &f->group.at[home];
    f->of[n->id] = home;
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        inside += h >= 0 && mc_group_root(f, h) == home;
    }
    g->nnode++;
    g->nsource += n->nin - inside;
    g->reduced |= reduces(n);
    g->varies |= mc_varies(&n->type);
    return wait_for_inputs(f, home, n);
}

/* ---- reductions of the same elements share the walk over them ---- */

/* x is read by group h as elements: along all axes of its space. */
static mc_status read_together(struct fuse *f, int *reader, const mc_node *x, int h)
{
    const struct group *b = &f->group.at[h];
    if (!b->reduced || x->type.rank != b->rank || mc_varies(&x->type) != b->varies) {
        return MC_OK;
    }
    int a = reader[x->id] < 0 ? -1 : mc_group_root(f, reader[x->id]);
    if (a >= 0 && a != h && f->group.at[a].reduced == b->reduced && can_merge(f, a, h)) {
        return merge(f, a, h);
    }
    reader[x->id] = a < 0 ? h : a;
    return MC_OK;
}

static mc_status merge_siblings(struct fuse *f, mc_node *const *list, size_t count, size_t nodes)
{
    int *reader = mc_alloc((nodes + 1) * sizeof *reader, "lower"); /* by node: the first group that reads it so */
    mc_status s = reader ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < nodes && s == MC_OK; i++) {
        reader[i] = -1;
    }
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < list[i]->nin && f->of[list[i]->id] >= 0 && s == MC_OK; k++) {
            int h = mc_group_root(f, f->of[list[i]->id]), from = f->of[list[i]->in[k]->id];
            if (from < 0 || mc_group_root(f, from) != h) {
                s = read_together(f, reader, list[i]->in[k], h);
            }
        }
    }
    mc_free(reader);
    return s;
}

/* ---- small work goes along with its only reader ---- */

enum { CHEAP = 4 };

/* By group: the one group that reads it, -1 none yet, -2 several or the world outside. */
static void find_readers(const struct fuse *f, mc_node *const *list, size_t count, int n, mc_node *const *out, int *reader)
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
                reader[from] = reader[from] == -1 || reader[from] == mc_group_root(f, to) ? mc_group_root(f, to) : -2;
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

/* A few cheap operations over a part of the reader's space cost less than memory and a kernel of their own:
 * row values of a row kernel, or values computed again for each element. */
static bool goes_along(const struct group *a, const struct group *b, bool costly)
{
    bool rows = b->reduced && !(a->varies & b->reduced);
    return a->fusible && b->fusible && !a->reduced && a->rank == b->rank && (a->varies & ~b->varies) == 0 && b->varies &&
           (rows || (a->nnode <= CHEAP && !costly)) && a->nnode + b->nnode <= MOST_NODES && a->nsource + b->nsource <= MOST_SOURCES;
}

static mc_status absorb(struct fuse *f, mc_node *const *list, size_t count, int n, mc_node *const *out)
{
    int *reader = mc_alloc((f->group.n + 1) * sizeof *reader, "lower");
    bool *costly = mc_calloc(f->group.n + 1, sizeof *costly, "lower");
    mc_status s = reader && costly ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        int h = f->of[list[i]->id];
        if (h >= 0 && (list[i]->op->flags & OP_COSTLY || is_op(list[i], "true_div") || is_op(list[i], "alloc"))) {
            costly[mc_group_root(f, h)] = true;
        }
    }
    if (s == MC_OK) {
        find_readers(f, list, count, n, out, reader);
    }
    for (size_t i = f->group.n; i-- > 0 && s == MC_OK;) {
        int to = reader[i] < 0 ? -1 : mc_group_root(f, reader[i]);
        if (to >= 0 && f->group.at[i].into < 0 && to != (int)i && goes_along(&f->group.at[i], &f->group.at[to], costly[i]) &&
            !(f->group.at[to].reduced && !(f->group.at[to].varies & ~f->group.at[to].reduced) && f->group.at[i].varies)) {
            s = mc_group_merge_into(f, to, (int)i);
        }
    }
    mc_free(reader);
    mc_free(costly);
    return s;
}

mc_status mc_group(mc_graph *g, int n, mc_node *const *out, enum mc_fusing fuse, struct mc_groups *groups)
{
    struct fuse f = { 0 };
    size_t count = 0;
    mc_node **list = mc_graph_reach(n, out, &count);
    mc_status s = list ? MC_OK : MC_EMEMORY;
    f.of = mc_alloc((g->nodes.n + 1) * sizeof *f.of, "lower");
    s = s < 0 || !f.of ? MC_EMEMORY : mc_sizes_find(&f.sizes, g, list, count);
    for (size_t i = 0; s == MC_OK && i < g->nodes.n; i++) {
        f.of[i] = -1;
    }
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        if (!(list[i]->op->flags & OP_LEAF)) {
            s = place(&f, list[i], fuse != FUSE_NOTHING);
        }
    }
    if (s == MC_OK && fuse) {
        s = merge_siblings(&f, list, count, g->nodes.n);
        s = s < 0 ? s : absorb(&f, list, count, n, out);
        s = s < 0 || fuse < FUSE_TALLIES ? s : mc_group_add_tallies(&f, list, count, g->nodes.n);
    }
    *groups = (struct mc_groups){ .of = f.of, .n = (int)f.group.n, .list = list, .count = count };
    groups->reduced = mc_calloc(f.group.n + 1, sizeof *groups->reduced, "lower");
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        int h = f.of[list[i]->id];
        f.of[list[i]->id] = h < 0 ? h : mc_group_root(&f, h);
    }
    for (size_t i = 0; i < f.group.n; i++) {
        if (groups->reduced) {
            groups->reduced[i] = f.group.at[i].reduced;
        }
        VEC_FREE(f.group.at[i].from);
    }
    s = groups->reduced ? s : MC_EMEMORY;
    VEC_FREE(f.group);
    VEC_FREE(f.stack);
    mc_sizes_free(&f.sizes);
    if (s < 0) {
        mc_groups_free(groups);
    }
    return s;
}

void mc_groups_free(struct mc_groups *groups)
{
    mc_free(groups->of);
    mc_free(groups->list);
    mc_free(groups->reduced);
    *groups = (struct mc_groups){ 0 };
}
