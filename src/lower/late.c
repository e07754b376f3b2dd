/* late.c: groups that only make updates.
 *
 * On a GPU they run after all other steps: then they are beside each other, and one launch makes those of all
 * parameters (schedule/joint.c).  Their gradients are stored until then, so those of large arrays, which gain
 * nothing, are left where they are.  Those that wait for other ranks are late in any case: the steps after
 * them would wait, too.
 *
 * They are no epilogues if they are late, if they read several arrays beside the gradient, or, on the
 * processor, if what they update is larger than its caches: a product whose tiles wait for that much memory
 * runs slower than the product and then the update.
 *
 * Invariant: no group depends on a late one. */
#include "lower/make.h"

enum { LARGE = 1 << 22, CACHED = 1 << 20, SEVERAL = 3 }; /* elements; elements; variables */

/* The number of the update that n is; -1: it is none, or an output too. */
static int update_of(const struct mc_program *p, const mc_node *n)
{
    int found = -1;
    for (int i = 0; i < p->nupdate; i++) {
        found = p->update[i] == (int)n->id ? i : found;
    }
    for (int i = 0; i < p->noutput; i++) {
        found = p->output[i] == (int)n->id ? -1 : found;
    }
    return found;
}

/* Its size now: the type may leave sizes open. */
static int64_t size_of(struct mc_shared *of)
{
    pthread_mutex_lock(&of->lock);
    const int64_t size = mc_array_size(of->value);
    pthread_mutex_unlock(&of->lock);
    return size;
}

/* Variables of the group's whole space that n reads; one that several nodes read counts for each. */
static int variables_read(const struct make *m, const mc_node *n, int group)
{
    int reads = 0;
    for (int k = 0; k < n->nin; k++) {
        const mc_node *x = n->in[k];
        reads += x->op == &mc_op_shared && mc_varies(&x->type) == m->groups.axes[group].varies;
    }
    return reads;
}

static bool is_of_ranks(const mc_node *n)
{
    while (n->op->flags & OP_VIEW && n->nin) {
        n = n->in[0];
    }
    return n->op->form == FORM_RANKS;
}

/* What is found of a group: variables of its space that it reads; elements of the largest that it updates;
 * does it read what ranks made together? */
struct found { int reads; int64_t size; bool ranks; };

/* Node n may keep its group, and those that it reads, from making updates alone. */
static void note(struct make *m, const mc_node *n, int group, struct found *of)
{
    for (int k = 0; k < n->nin; k++) {
        const int from = m->groups.of[n->in[k]->id];
        if (from >= 0 && from != group) {
            m->separate[from] = false;
        }
    }
    if (group >= 0) {
        const bool stored = m->wanted[n->id];
        const int update = stored ? update_of(m->p, n) : -1;
        m->separate[group] = m->separate[group] && mc_is_fusible(n) && !m->early[n->id] &&
                             stored == (update >= 0);
        of[group].size = update < 0 ? of[group].size : MC_MAX(of[group].size, size_of(m->p->shared[update]));
        of[group].reads += variables_read(m, n, group);
        for (int k = 0; k < n->nin; k++) {
            of[group].ranks |= is_of_ranks(n->in[k]);
        }
    }
}

/* requires: p->output and p->update are node ids */
mc_status mc_find_updates(struct make *m, mc_node *const *list, size_t count)
{
    struct found *of = mc_calloc((size_t)m->groups.n + 1, sizeof *of, "lower");
    if (!of) {
        return MC_EMEMORY;
    }
    for (int g = 0; g < m->groups.n && m->p->nupdate; g++) {
        m->separate[g] = !m->groups.axes[g].reduced;
        m->late[g] = m->updates_late;
    }
    for (size_t i = 0; i < count && m->p->nupdate; i++) {
        note(m, list[i], m->groups.of[list[i]->id], of);
    }
    for (int g = 0; g < m->groups.n; g++) {
        m->late[g] = m->late[g] && m->separate[g] && (of[g].size <= LARGE || of[g].ranks);
        const bool past_caches = !m->updates_late && of[g].size > CACHED;
        m->separate[g] = m->separate[g] && (m->late[g] || past_caches || of[g].reads >= SEVERAL);
    }
    mc_free(of);
    return MC_OK;
}
