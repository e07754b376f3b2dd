/* loops.c: the loops of a graph are made smaller before all other rewrites (one_loop.c).
 *
 * Invariant: a loop that nothing reads, and what only such loops read, is not made again. */
#include "op/loop.h"
#include "rewrite/rewrite.h"

struct sweep {
    mc_graph *g;
    mc_node **list;
    size_t count;
    bool *live;             /* by id: a result needs the node */
    bool *needed;           /* by input of a loop: it needs that one */
    mc_node **map;          /* by id: what became of a node */
    size_t *loop;           /* by id: number of a loop */
    bool (*result)[MC_MOST_RESULTS]; /* by number of a loop: the results that are read */
    mc_node *(*made)[MC_MOST_RESULTS]; /* what became of them */
};

/* From the results down: which nodes are needed, and which results of each loop. */
static mc_status find_live(struct sweep *s, int n, mc_node *const *out)
{
    for (int i = 0; i < n; i++) {
        s->live[out[i]->id] = true;
    }
    for (size_t i = s->count; i-- > 0;) {
        const mc_node *x = s->list[i];
        if (!s->live[x->id]) {
            continue;
        }
        bool *own = s->result[s->loop[x->id]];
        if (x->op == &mc_op_item && x->in[0]->op->form == FORM_LOOP) {
            s->result[s->loop[x->in[0]->id]][x->item] = true;
        }
        if (x->op->form == FORM_LOOP && x->nout == 1) {
            own[0] = true;
        }
        if (x->op->form != FORM_LOOP) {
            for (int k = 0; k < x->nin; k++) {
                s->live[x->in[k]->id] = true;
            }
            continue;
        }
        memset(s->needed, 0, (size_t)x->nin * sizeof *s->needed);
        TRY(mc_loop_needs(x, own, s->needed));
        for (int k = 0; k < x->nin; k++) {
            s->live[x->in[k]->id] |= s->needed[k];
        }
    }
    return MC_OK;
}

static mc_status remake(struct sweep *s, mc_node *x, bool whole)
{
    mc_node **in = mc_alloc((size_t)(x->nin + 1) * sizeof *in, "loops");
    bool changed = false;
    mc_status st = in ? MC_OK : MC_EMEMORY;
    for (int k = 0; k < x->nin && in; k++) { /* what a loop does not need may have no new form */
        in[k] = s->map[x->in[k]->id] ? s->map[x->in[k]->id] : x->in[k];
        changed |= in[k] != x->in[k];
    }
    const size_t first = s->g->nodes.n;
    if (st == MC_OK && x->op->form == FORM_LOOP) {
        mc_node **new = s->made[s->loop[x->id]];
        st = mc_loop_simplify(s->g, x, in, s->result[s->loop[x->id]], whole, new);
        s->map[x->id] = x->nout == 1 ? new[0] : x;
    } else if (st == MC_OK && x->op == &mc_op_item && x->in[0]->op->form == FORM_LOOP) {
        s->map[x->id] = s->made[s->loop[x->in[0]->id]][x->item];
    } else if (st == MC_OK) {
        s->map[x->id] = !changed               ? x
                        : x->op == &mc_op_item ? mc_item(in[0], x->item)
                                               : mc_node_make(s->g, x->op, x->nin, in, x->attr);
    }
    if (st == MC_OK && mc_is_error(s->map[x->id])) {
        st = mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY;
    } else if (st == MC_OK && x->name && s->map[x->id]->nin && !s->map[x->id]->name) {
        s->map[x->id]->name = x->name; /* steps are named by it */
    }
    mc_label_since(s->g, first, x->label);
    mc_free(in);
    return st;
}

mc_status mc_loops_simplify(mc_graph *g, int n, mc_node **out, bool whole)
{
    TRY(mc_loops_merge(n, out));
    struct sweep s = { .g = g, .list = mc_graph_reach(n, out, &s.count) };
    size_t loops = 0, widest = 1;
    for (size_t i = 0; s.list && i < s.count; i++) {
        loops += s.list[i]->op->form == FORM_LOOP;
        widest = MC_MAX(widest, (size_t)s.list[i]->nin);
    }
    if (!s.list || !loops) {
        mc_free(s.list);
        return s.list ? MC_OK : MC_EMEMORY;
    }
    mc_status st = MC_EMEMORY;
    const size_t top = g->nodes.n + 1;
    s.live = mc_calloc(top, sizeof *s.live, "loops");
    s.needed = mc_calloc(widest, sizeof *s.needed, "loops");
    s.loop = mc_calloc(top, sizeof *s.loop, "loops");
    s.result = mc_calloc(loops, sizeof *s.result, "loops");
    s.map = mc_calloc(top, sizeof *s.map, "loops");
    s.made = mc_calloc(loops, sizeof *s.made, "loops");
    if (s.live && s.needed && s.loop && s.result && s.map && s.made) {
        for (size_t i = s.count, k = 0; i-- > 0;) {
            s.loop[s.list[i]->id] = s.list[i]->op->form == FORM_LOOP ? k++ : 0;
        }
        st = find_live(&s, n, out);
    }
    for (size_t i = 0; i < s.count && st == MC_OK; i++) {
        st = s.live[s.list[i]->id] ? remake(&s, s.list[i], whole) : MC_OK;
    }
    for (int i = 0; i < n && st == MC_OK; i++) {
        out[i] = s.map[out[i]->id];
    }
    mc_free(s.list);
    mc_free(s.live);
    mc_free(s.needed);
    mc_free(s.loop);
    mc_free(s.result);
    mc_free(s.map);
    mc_free(s.made);
    return st;
}
