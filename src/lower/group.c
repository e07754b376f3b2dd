/* group.c: decides which nodes are computed by one kernel.  Nodes are visited in id order.  Each joins the
 * group of one of its inputs if both have the same iteration space and no cycle of groups results.  Otherwise
 * it begins a group.
 *
 * Lowering runs these steps.  Only expand.c, copies.c and sign_byte.c make nodes, apart from the items of
 * tuples.
 *
 *   file            needs                  leaves
 *   expand.c        a rewritten graph      a graph without formula ops; reductions keep their axes
 *   copies.c        that graph             copies of values that kernels are to store where they are wanted
 *   group.c         that graph             groups, each with an iteration space and the axes it reduces
 *   merge.c         groups                 fewer groups: siblings that reduce the same values, small work
 *                                          with its only reader, maps of the same elements
 *   column_sums.c   groups                 sums over the rows of a row kernel are in the row kernel's group
 *   plan_time.c     the graph              which values are computed at plan time
 *   program.c       groups                 which values are stored
 *   recompute.c     groups, stored values  which of these values each reader recomputes; which signs of the
 *                                          others fit in a byte
 *   sign_byte.c     these decisions        if there are such signs: a graph in which they are bytes
 *   order.c         groups, stored values  epilogues, and an order of groups in which none reads a later one
 *   fused.c         one group              its kernel and its step
 *
 * After sign_byte.c has made a graph, the steps from copies.c to recompute.c run on it once more.  Carrying
 * the groups over to the new nodes is not enough: grouping is greedy in id order, the new nodes and all that
 * depend on them have new ids, and groups of the new order may differ from those of the old one.
 *
 * Invariant: no group depends on itself, directly or through others. */
#include "lower/group.h"

enum { LONGEST_SEARCH = 1000, MOST_RAISED = 1000 }; /* steps; steps a node */

unsigned mc_varies(const struct mc_type *t)
{
    unsigned v = 0;
    for (int i = 0; i < t->rank; i++) {
        v |= t->dims[i] != 1 ? 1u << i : 0;
    }
    return v;
}

/* A kernel counts the axes of an operand as its own: a value of fewer axes, but for a number, would be
 * repeated along others. */
static bool repeats_alike(const mc_node *n)
{
    return n->op->form == FORM_ALLOC && (n->in[0]->type.rank == 0 || n->in[0]->type.rank == n->type.rank);
}

bool mc_is_fusible(const mc_node *n)
{
    return mc_is_elementwise(n) || repeats_alike(n) || n->op->form == FORM_CHECK || mc_counts(n) ||
           n->op->reduction != REDUCE_NONE;
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

/* Group g, which other groups read, has a new `newest`: those that depend on g get it as well. */
mc_status mc_group_update_newest(struct fuse *f, int g)
{
    f->later.n = 0;
    if (f->raised > f->most || !VEC_PUSH(f->later, g)) {
        return f->raised > f->most ? MC_OK : MC_EMEMORY;
    }
    while (f->later.n && f->raised <= f->most) {
        const int of = f->later.at[--f->later.n];
        for (size_t i = 0; i < f->group.at[of].to.n; i++) {
            const int h = mc_group_root(f, f->group.at[of].to.at[i]);
            f->raised++;
            if (h != of && f->group.at[h].newest < f->group.at[of].newest) {
                f->group.at[h].newest = f->group.at[of].newest;
                if (!VEC_PUSH(f->later, h)) {
                    return MC_EMEMORY;
                }
            }
        }
    }
    return MC_OK;
}

/* Does group a depend on b?  Searches what a reads, and leaves out groups that are older than b.  A search
 * that takes too long answers yes. */
bool mc_group_depends_on(struct fuse *f, int a, int b)
{
    const uint32_t newest = f->raised > f->most ? 0 : f->group.at[b].newest;
    int steps = 0;
    f->stack.n = 0;
    f->search++;
    if (f->group.at[a].newest < newest) {
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
            if (x->seen != f->search && x->newest >= newest) {
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

/* Does x have the sizes of the group's space along the axes of v? */
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
    if (n->op->form == FORM_ALLOC || n->type.rank != g->rank || in->type.rank != g->rank) {
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
            return v == 0 ||
                   (v == g->varies &&
                    !reads_row(
                        f, g, n)); /* a full reduction has no second pass for elements that read its result */
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
                       .space = space, .fusible = fusible, .into = -1, .newest = n->id };
    f->of[n->id] = (int)f->group.n;
    return VEC_PUSH(f->group, g) ? MC_OK : MC_EMEMORY;
}

/* Records that group g reads the groups of n's inputs. */
static mc_status add_dependencies(struct fuse *f, int g, const mc_node *n)
{
    struct group *x = &f->group.at[g];
    x->newest = MC_MAX(x->newest, n->id);
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        h = h < 0 ? h : mc_group_root(f, h);
        if (h < 0 || h == g || (x->from.n && x->from.at[x->from.n - 1] == h)) {
            continue;
        }
        if (!VEC_PUSH(x->from, h) || !VEC_PUSH(f->group.at[h].to, g)) {
            return MC_EMEMORY;
        }
        x->newest = MC_MAX(x->newest, f->group.at[h].newest);
    }
    return mc_group_update_newest(f, g);
}

/* Would g depend on itself if n joined it? */
static bool creates_cycle(struct fuse *f, int g, const mc_node *n)
{
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        h = h < 0 ? h : mc_group_root(f, h);
        if (h >= 0 && h != g && mc_group_depends_on(f, h, g)) {
            return true;
        }
    }
    return false;
}

/* The group that n joins; -1: none.  Groups that reduce come first: small work beside their sums can be
 * merged into them later. */
static int choose_group(struct fuse *f, const mc_node *n)
{
    for (int any = 0; any < 2; any++) {
        for (int i = 0; i < n->nin; i++) {
            int h = f->of[n->in[i]->id];
            h = h < 0 ? h : mc_group_root(f, h);
            if (h >= 0 && (any || f->group.at[h].reduced) && joins(f, &f->group.at[h], n, n->in[i]) &&
                !creates_cycle(f, h, n)) {
                return h;
            }
        }
    }
    return -1;
}

static mc_status assign_group(struct fuse *f, const mc_node *n, bool fuse)
{
    if (!fuse) { /* no group grows, so dependences need not be recorded */
        return add_group(f, n, false);
    }
    if (!mc_is_fusible(n)) {
        TRY(add_group(f, n, false));
        return add_dependencies(f, f->of[n->id], n);
    }
    int target = choose_group(f, n), inside = 0;
    for (int i = 0; i < n->nin && target >= 0; i++) {
        int h = f->of[n->in[i]->id];
        h = h < 0 ? h : mc_group_root(f, h);
        if (h >= 0 && h != target && joins(f, &f->group.at[h], n, n->in[i]) && !creates_cycle(f, h, n) &&
            mc_group_can_merge(f, target, h) && mc_group_keeps_full_reduction(f, target, h)) {
            TRY(mc_group_merge(f, target, h));
        }
    }
    if (target < 0) {
        TRY(add_group(f, n, true));
        return add_dependencies(f, f->of[n->id], n);
    }
    struct group *g = &f->group.at[target];
    f->of[n->id] = target;
    for (int i = 0; i < n->nin; i++) {
        int h = f->of[n->in[i]->id];
        inside += h >= 0 && mc_group_root(f, h) == target;
    }
    g->nnode++;
    g->nsource += n->nin - inside;
    g->reduced |= reduces(n);
    g->varies |= mc_varies(&n->type);
    return add_dependencies(f, target, n);
}

static mc_status merge(struct fuse *f, mc_node *const *list, size_t count, size_t nodes, int n,
                       mc_node *const *out, enum mc_fusing fuse)
{
    TRY(mc_group_merge_siblings(f, list, count, nodes));
    TRY(mc_group_merge_into_only_reader(f, list, count, n, out));
    TRY(fuse < FUSE_COLUMN_SUMS ? MC_OK : mc_group_add_column_sums(f, list, count, nodes));
    return mc_group_merge_maps(f, list, count, nodes);
}

mc_status mc_group(mc_graph *g, int n, mc_node *const *out, enum mc_fusing fuse, struct mc_groups *groups)
{
    struct fuse f = { 0 };
    size_t count = 0;
    mc_node **list = mc_graph_reach(n, out, &count);
    f.most = MOST_RAISED * count;
    mc_status s = list ? MC_OK : MC_EMEMORY;
    f.of = mc_alloc((g->nodes.n + 1) * sizeof *f.of, "lower");
    s = s < 0 || !f.of ? MC_EMEMORY : mc_sizes_find(&f.sizes, g, list, count);
    for (size_t i = 0; s == MC_OK && i < g->nodes.n; i++) {
        f.of[i] = -1;
    }
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        if (!(list[i]->op->flags & OP_LEAF)) {
            s = assign_group(&f, list[i], fuse != FUSE_NOTHING);
        }
    }
    if (s == MC_OK && fuse) {
        s = merge(&f, list, count, g->nodes.n, n, out, fuse);
    }
    *groups = (struct mc_groups){ .of = f.of, .n = (int)f.group.n, .list = list, .count = count };
    groups->axes = mc_calloc(f.group.n + 1, sizeof *groups->axes, "lower");
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        int h = f.of[list[i]->id];
        f.of[list[i]->id] = h < 0 ? h : mc_group_root(&f, h);
    }
    for (size_t i = 0; i < f.group.n; i++) {
        if (groups->axes) {
            groups->axes[i] = (struct mc_group_axes){ f.group.at[i].varies, f.group.at[i].reduced };
        }
        VEC_FREE(f.group.at[i].from);
        VEC_FREE(f.group.at[i].to);
    }
    s = groups->axes ? s : MC_EMEMORY;
    VEC_FREE(f.group);
    VEC_FREE(f.stack);
    VEC_FREE(f.later);
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
    mc_free(groups->axes);
    *groups = (struct mc_groups){ 0 };
}
