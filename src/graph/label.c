/* label.c: labels say what a node was made for, as text for people.  Profiles, reports and traces name steps
 * by them.
 *
 * Invariant: labels do not affect what is computed, and equal nodes stay one node, with the label of the
 * first.  Labels are interned: a graph has one struct for each text, variable and direction. */
#include "graph/graph.h"

static struct mc_label *interned(mc_graph *g, const char *text, const char *of, bool gradient)
{
    struct mc_str key = { 0 };
    mc_str_addf(&key, "%c%s\n%s", gradient ? 'g' : 'f', text ? text : "", of ? of : "");
    struct mc_label *l = key.bad ? NULL : mc_dict_get(&g->labels, key.s);
    if (!l && !key.bad && (l = mc_arena_alloc(&g->arena, sizeof *l))) {
        *l = (struct mc_label){ .gradient = gradient };
        l->text = text ? mc_arena_str(&g->arena, text, strlen(text)) : NULL;
        l->of = of ? mc_arena_str(&g->arena, of, strlen(of)) : NULL;
        l = (!text || l->text) && (!of || l->of) && mc_dict_put(&g->labels, key.s, l) ? l : NULL;
    }
    mc_str_free(&key);
    return l;
}

const struct mc_label *mc_label_of(mc_graph *g, const char *text, const char *of, bool gradient)
{
    struct mc_label *plain = text ? interned(g, text, NULL, false) : NULL;
    if (plain && gradient) {
        plain->differentiated = true;
    }
    return gradient || (text && of) ? interned(g, text, of, gradient) : plain;
}

const struct mc_label *mc_label_copy(mc_graph *g, const struct mc_label *l)
{
    return l ? mc_label_of(g, l->text, l->of, l->gradient) : NULL;
}

/* The variable, or the variable below views, such as a bias that broadcasts. */
static const struct mc_shared *variable(const mc_node *x)
{
    while (!x->shared && x->nin &&
           (x->op->form == FORM_DIMSHUFFLE || x->op->form == FORM_RESHAPE || x->op->form == FORM_CAST)) {
        x = x->in[0];
    }
    return x->shared;
}

const struct mc_label *mc_label_gradient(const mc_node *n, int wrt)
{
    const struct mc_shared *s = variable(n->in[wrt]);
    return mc_label_of(n->graph, n->label ? n->label->text : NULL,
                       s          ? s->name
                       : n->label ? n->label->of
                                  : NULL,
                       true);
}

void mc_label_since(mc_graph *g, size_t first, const struct mc_label *label)
{
    for (size_t id = first; label && id < g->nodes.n; id++) {
        if (!g->nodes.at[id]->label) {
            g->nodes.at[id]->label = label;
        }
    }
}

const char *mc_label(mc_graph *g, const char *label)
{
    const char *before = g && g->label ? g->label->text : NULL;
    if (g) {
        g->label = label && *label ? mc_label_of(g, label, NULL, false) : NULL;
    }
    return before;
}
