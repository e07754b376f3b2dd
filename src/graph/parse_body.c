/* parse_body.c: reads the body of a loop: declarations of the inputs, statements, and "yield" with the
 * results. */
#include "graph/graph.h"

static int by_id(const mc_graph *g, mc_node **in)
{
    int n = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        if (g->nodes.at[i]->op == &mc_op_input) {
            if (in) {
                in[n] = g->nodes.at[i];
            }
            n++;
        }
    }
    return n;
}

static const struct mc_body *refuse(mc_graph *scratch, const char *why)
{
    mc_fail(MC_EARG, "the body of a loop: %s", why ? why : mc_error(scratch));
    mc_graph_free(scratch);
    return NULL;
}

const struct mc_body *mc_body_read(const mc_graph *of, const char *text)
{
    static const char word[] = "yield ";
    const char *last = strrchr(text, '\n');
    mc_graph *g = mc_graph_make(of->language);
    struct mc_named *named = NULL;
    int nout = 0;
    if (!g || of->language->share(g, of) < 0) {
        mc_graph_free(g);
        return NULL;
    }
    last = last ? last + 1 : text;
    if (strncmp(last, word, strlen(word)) != 0) {
        return refuse(g, "its last line must begin with 'yield'");
    }
    char *head = mc_strdup(text);
    if (!head) {
        mc_graph_free(g);
        return NULL;
    }
    head[last - text] = 0;
    bool good = !*head || !mc_is_error(mc_formula(g, head));
    mc_free(head);
    if (!good || mc_parse_list(g, last + strlen(word), false, &named, &nout) < 0) {
        return refuse(g, NULL);
    }
    const int nin = by_id(g, NULL);
    mc_node **list = mc_alloc((size_t)(nin + nout + 1) * sizeof *list, "body");
    const struct mc_body *b = NULL;
    if (list) {
        by_id(g, list);
        for (int i = 0; i < nout; i++) {
            list[nin + i] = named[i].node;
        }
        b = mc_body_make(g, nin, list, nout, list + nin);
    }
    mc_free(list);
    mc_named_free(named, nout);
    mc_graph_free(g);
    return b;
}
