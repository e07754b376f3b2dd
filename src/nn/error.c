/* error.c: errors in formulas of a layer, a loss or a rule, shown with the line of the model. */
#include "nn/nn.h"

void mc_nn_set_error(mc_graph *g, const struct mc_nn_line *line, const char *where)
{
    struct mc_nn_text t = { 0 };
    mc_status s = mc_graph_status(g);
    mc_nn_add(&t, mc_error(g));
    if (s != MC_EMEMORY && !t.bad) {
        mc_graph_clear_error(g);
        if (line) {
            mc_nn_wrong(line, line->text, s, "%s: %s", where, t.s);
        } else {
            mc_mistake(g, s, "%s: %s", where, t.s);
        }
    }
    mc_nn_free(&t);
}

mc_node *mc_nn_formula(mc_net *net, const struct mc_nn_line *line, const char *where, const char *text)
{
    bool fresh = mc_graph_status(net->g) == MC_OK;
    mc_node *n = mc_formula(net->g, text);
    if (fresh && mc_graph_status(net->g) < 0) {
        mc_nn_set_error(net->g, line, where);
    }
    return n;
}

bool mc_nn_refuse(struct mc_nn_build *b, const char *field, const char *fmt, ...)
{
    struct mc_nn_text t = { 0 };
    va_list ap;
    va_start(ap, fmt);
    mc_nn_addv(&t, fmt, ap);
    va_end(ap);
    if (!b->failed) {
        mc_nn_wrong(b->set.line, field ? mc_nn_get(&b->set, field).s : b->set.line->text,
                    t.bad ? MC_EMEMORY : MC_ESHAPE, "%s: %s", b->layer->kind->name,
                    t.s ? t.s : "out of memory");
    }
    mc_nn_free(&t);
    b->failed = true;
    return false;
}
