/* body.c: makes the body of a loop of nodes of any graph. */
#include "graph/graph.h"

/* ---- copies between graphs ---- */

static mc_node *copy_node(mc_graph *to, const mc_node *x, mc_node **in)
{
    mc_node *n = NULL;
    mc_here(x->file, x->line);
    if (mc_is_const(x)) {
        n = mc_node_const(to, mc_array_ref(x->value), x->weak);
    } else if (x->op == &mc_op_item) {
        n = mc_item(in[0], x->item);
    } else if (x->op->flags & OP_LEAF) {
        n = mc_node_fail(to, MC_EARG, "the body of a loop reads '%s', which is none of its inputs",
                         x->name ? x->name : x->op->name);
    } else {
        n = mc_node_make(to, x->op, x->nin, in, x->attr);
    }
    if (!mc_is_error(n) && x->label && !n->label) {
        n->label = mc_label_copy(to, x->label);
    }
    return n;
}

mc_status mc_graph_copy(mc_graph *to, int n, mc_node *const *from, mc_node *const *into, int nout,
                        mc_node **out)
{
    size_t count = 0, widest = 1;
    mc_node **list = mc_graph_reach(nout, out, &count), **in = NULL;
    const uint32_t top = count ? list[count - 1]->id : 0;
    mc_node **map = mc_calloc((size_t)top + 1, sizeof *map, "nodes");
    for (size_t i = 0; list && i < count; i++) {
        widest = MC_MAX(widest, (size_t)list[i]->nin);
    }
    in = mc_alloc(widest * sizeof *in, "nodes");
    bool *needed = mc_calloc((size_t)top + 1, sizeof *needed, "nodes");
    mc_status s = list && map && in && needed ? MC_OK : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < n; i++) {
        if (from[i]->id <= top) {
            map[from[i]->id] = into[i];
        }
    }
    for (int i = 0; s == MC_OK && i < nout; i++) {
        needed[out[i]->id] = true;
    }
    for (size_t i = count; s == MC_OK && i-- > 0;) { /* what only the nodes from[] need is not copied */
        for (int k = 0; needed[list[i]->id] && !map[list[i]->id] && k < list[i]->nin; k++) {
            needed[list[i]->in[k]->id] = true;
        }
    }
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        const mc_node *x = list[i];
        if (map[x->id] || !needed[x->id]) {
            continue;
        }
        for (int k = 0; k < x->nin; k++) {
            in[k] = map[x->in[k]->id];
        }
        map[x->id] = copy_node(to, x, in);
        s = mc_is_error(map[x->id]) ? mc_last_status() : MC_OK;
    }
    for (int i = 0; s == MC_OK && i < nout; i++) {
        out[i] = map[out[i]->id];
    }
    mc_free(list);
    mc_free(map);
    mc_free(in);
    mc_free(needed);
    return s;
}

/* ---- bodies ---- */

/* Marks the inputs whose values determine sizes, from the ops that need them down to the leaves. */
static mc_status find_keys(struct mc_body *b)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(b->nout, b->out, &count);
    bool *wanted = mc_calloc(b->graph->nodes.n + 1, sizeof *wanted, "nodes");
    mc_status s = list && wanted ? MC_OK : MC_EMEMORY;
    for (size_t i = count; s == MC_OK && i-- > 0;) {
        const mc_node *n = list[i];
        for (int k = 0; k < n->nin; k++) {
            if (mc_is_shape_arg(n, k) || (wanted[n->id] && !mc_reads_type_only(n))) {
                wanted[n->in[k]->id] = true;
            }
        }
    }
    for (int i = 0; s == MC_OK && i < b->nin; i++) {
        b->key[i] = wanted[b->in[i]->id];
    }
    mc_free(list);
    mc_free(wanted);
    return s;
}

/* Takes the graph.  The lists are those of b, in its arena. */
static const struct mc_body *finish(struct mc_body *b)
{
    char *text = mc_body_text(b);
    b->text = text ? mc_arena_str(&b->graph->arena, text, strlen(text)) : NULL;
    b->key = mc_arena_alloc(&b->graph->arena, (size_t)(b->nin + 1) * sizeof *b->key);
    mc_free(text);
    if (!b->text || !b->key || find_keys(b) < 0) {
        mc_body_unref(b);
        return NULL;
    }
    return b;
}

static struct mc_body *start(const mc_graph *from, int nin, int nout)
{
    struct mc_body *b = mc_calloc(1, sizeof *b, "body");
    if (!b) {
        return NULL;
    }
    b->refs = 1;
    b->nin = nin;
    b->nout = nout;
    b->graph = mc_graph_make(from->language);
    if (b->graph) {
        b->graph->of_body = true;
    }
    b->in = b->graph ? mc_arena_alloc(&b->graph->arena, (size_t)(nin + 1) * sizeof *b->in) : NULL;
    b->out = b->in ? mc_arena_alloc(&b->graph->arena, (size_t)(nout + 1) * sizeof *b->out) : NULL;
    if (!b->out || from->language->share(b->graph, from) < 0) {
        mc_body_unref(b);
        return NULL;
    }
    return b;
}

/* Is it a letter and a number, as the printer and mc_body_make name things? */
static bool is_made_up(const char *name)
{
    const size_t digits = strspn(name + 1, "0123456789");
    return strchr("tuv", name[0]) && digits && !name[1 + digits];
}

/* Has the name a meaning of its own in the text of a loop, or another input? */
static bool is_taken(const struct mc_body *b, int i, const char *name)
{
    static const char words[][18] = { "yield", "last", "until", "halt", "count", "steps", "in", "from",
                                      "taps", "go_backwards", "truncate_gradient", "checkpoint" };
    bool taken = !*name || is_made_up(name);
    for (size_t k = 0; k < NELEM(words) && !taken; k++) {
        taken = strcmp(name, words[k]) == 0;
    }
    for (int k = 0; k < i && !taken; k++) {
        taken = strcmp(name, b->in[k]->name) == 0;
    }
    return taken;
}

/* An input is named as what it stands for; v and its number if that has no name of its own. */
static void name_input(const struct mc_body *b, int i, const mc_node *of, char *name, size_t size)
{
    if (of->name && strlen(of->name) < size && !is_taken(b, i, of->name)) {
        mc_snprintf(name, size, "%s", of->name);
    } else {
        mc_snprintf(name, size, "v%d", i);
    }
}

const char *mc_body_name(const struct mc_body *b, int i)
{
    return is_made_up(b->in[i]->name) ? NULL : b->in[i]->name;
}

const struct mc_body *mc_body_make(mc_graph *from, int nin, mc_node *const *in, int nout,
                                   mc_node *const *out)
{
    struct mc_body *b = start(from, nin, nout);
    for (int i = 0; b && i < nin; i++) {
        char name[64];
        name_input(b, i, in[i], name, sizeof name);
        b->in[i] = mc_input_sized(b->graph, name, in[i]->type.dtype, in[i]->type.rank, in[i]->type.dims);
        if (mc_is_error(b->in[i])) {
            mc_body_unref(b);
            return NULL;
        }
    }
    if (b && nout) {
        memcpy(b->out, out, (size_t)nout * sizeof *out);
    }
    if (b && mc_graph_copy(b->graph, nin, in, b->in, nout, b->out) < 0) {
        mc_body_unref(b);
        return NULL;
    }
    return b ? finish(b) : NULL;
}

const struct mc_body *mc_body_of(mc_graph *g, int nin, mc_node *const *in, int nout, mc_node *const *out,
                                 const char *text)
{
    struct mc_body *b = mc_calloc(1, sizeof *b, "body");
    if (!b) {
        mc_graph_free(g);
        return NULL;
    }
    *b = (struct mc_body){ .refs = 1, .graph = g, .nin = nin, .nout = nout };
    b->in = mc_arena_copy(&g->arena, in, (size_t)nin * sizeof *in);
    b->out = mc_arena_copy(&g->arena, out, (size_t)nout * sizeof *out);
    b->text = mc_arena_str(&g->arena, text, strlen(text));
    b->key = mc_arena_alloc(&g->arena, (size_t)(nin + 1) * sizeof *b->key);
    if ((nin && !b->in) || (nout && !b->out) || !b->text || !b->key || find_keys(b) < 0) {
        mc_body_unref(b);
        return NULL;
    }
    return b;
}
