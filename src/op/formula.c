/* formula.c: ops that are formulas over other ops (formulas.def). */
#include "op/op.h"

const struct mc_language *mc_formula_language;

mc_node *mc_formula_expand(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                           const struct mc_attr *attr)
{
    struct mc_bind bind[32];
    int n = 0, tensor = 0, k = 0;
    for (int i = 0; i < op->sig->nparam; i++) {
        const struct mc_param *p = &op->sig->param[i];
        if (p->kind == ATTR_TENSOR) {
            bind[n++] = (struct mc_bind){ p->name, tensor < nin ? in[tensor] : NULL, NULL };
            tensor++;
        } else {
            bind[n++] = (struct mc_bind){ p->name, NULL, &attr[k++] };
        }
    }
    return mc_expr(g, op->formula, bind, n);
}

/* Makes a separate graph with inputs of the given types and the formula over them. */
static mc_graph *scratch(const struct mc_op *op, int nin, const struct mc_type *in,
                         const struct mc_attr *attr, mc_node **arg, mc_node **result)
{
    mc_graph *g = mc_graph_make(mc_formula_language);
    for (int i = 0; g && i < nin; i++) {
        char name[16];
        mc_snprintf(name, sizeof name, "arg%d", i);
        arg[i] = mc_input_sized(g, name, in[i].dtype, in[i].rank, in[i].dims);
    }
    *result = g ? mc_formula_expand(g, op, nin, arg, attr) : NULL;
    return g;
}

mc_status mc_formula_infer(struct mc_infer *q)
{
    mc_node *arg[16], *result;
    mc_graph *g = scratch(q->op, q->nin, q->in, q->attr, arg, &result);
    mc_status s = !g ? MC_EMEMORY : mc_is_error(result) ? mc_fail(g->status, "%s", mc_error(g)) : MC_OK;
    if (s == MC_OK) {
        q->nout = result->nout;
        for (int i = 0; i < q->nout; i++) {
            q->out[i] = result->types[i];
        }
    }
    mc_graph_free(g);
    return s;
}

mc_status mc_formula_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_type type[16];
    mc_node *arg[16], *result, *item[16];
    mc_array *value[16] = { 0 };
    for (int i = 0; i < n->nin; i++) {
        type[i] = mc_type_make(in[i]->dtype, in[i]->rank, in[i]->dims);
        /* an axis broadcasts if the graph says so, not because its size happens to be 1 */
        for (int k = 0; k < in[i]->rank; k++) {
            type[i].dims[k] = n->in[i]->type.dims[k] == 1 ? 1 : in[i]->dims[k];
        }
    }
    mc_graph *g = scratch(n->op, n->nin, type, n->attr, arg, &result);
    mc_status s = !g ? MC_EMEMORY : mc_is_error(result) ? mc_fail(g->status, "%s", mc_error(g)) : MC_OK;
    if (s == MC_OK) {
        for (int i = 0; i < n->nout; i++) {
            item[i] = mc_item(result, i);
        }
        s = mc_eval(n->nin, arg, in, n->nout, item, value);
    }
    for (int i = 0; i < n->nout; i++) {
        if (s == MC_OK) {
            s = mc_array_assign(out[i], value[i]);
        }
        mc_array_unref(&value[i]);
    }
    mc_graph_free(g);
    return s;
}
