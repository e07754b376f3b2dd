/* parse_attr.c: applies an op by name, with attributes given as text: "axis=1, keepdims=True". */
#include "graph/parse.h"

static mc_status parse_all(mc_graph *g, const struct mc_op *op, const char *text, struct mc_attr *out)
{
    bool given[24] = { 0 };
    const struct mc_param *missing = mc_attr_missing(op, given);
    mc_attr_defaults(op, out);
    if (!missing && (!text || !*text)) {
        return MC_OK;
    }
    struct parser p;
    mc_parse_begin(&p, g, text ? text : "", NULL, 0);
    int position = 0;
    while (p.tok.kind != T_END) {
        const struct mc_param *q = NULL;
        struct tok name = p.tok;
        size_t behind = p.at;
        int k = -1, found = -1;
        bool named = false;
        if (p.tok.kind == T_NAME) { /* "axis=0", or a value by position */
            mc_parse_next(&p);
            named = mc_parse_take(&p, "=");
            if (!named) {
                p.at = behind;
                p.tok = name;
            }
        }
        for (int i = 0; i < op->sig->nparam; i++) {
            const struct mc_param *r = &op->sig->param[i];
            if (r->kind <= ATTR_TENSORS) {
                continue;
            }
            k++;
            if (named ? strlen(r->name) == name.n && strncmp(r->name, p.text + name.at, name.n) == 0
                      : k == position) {
                q = r;
                found = k;
                given[i] = true;
            }
        }
        if (!q) {
            mc_parse_fail(&p, name.at, "%s has no parameter '%.*s': %s(%s)", op->name, (int)name.n,
                          p.text + name.at, op->name, op->params);
            break;
        }
        position = found + 1;
        struct val v = mc_parse_expr(&p);
        if (p.failed || !mc_val_attr(&p, op, q, &v, &out[found])) {
            break;
        }
        if (p.tok.kind != T_END) {
            mc_parse_expect(&p, ",");
        }
    }
    bool failed = p.failed;
    mc_parse_end(&p);
    missing = mc_attr_missing(op, given);
    if (missing && !failed) {
        mc_node_fail(g, MC_EARG, "%s needs the argument '%s': %s(%s)", op->name, missing->name, op->name,
                     op->params);
        failed = true;
    }
    return failed ? g->status : MC_OK;
}

mc_node *mc_call_op(mc_graph *g, const char *name, int nin, mc_node *const *in, const char *attrs, ...)
{
    if (!g) {
        return NULL;
    }
    const struct mc_op *op = NULL;
    for (size_t i = 0; i < g->custom.n && !op; i++) {
        op = strcmp(g->custom.at[i]->name, name) == 0 ? g->custom.at[i] : NULL;
    }
    op = op ? op : mc_op_named(g, name);
    if (!op) {
        return mc_node_fail(g, MC_EARG, "there is no op '%s'", name);
    }
    struct mc_attr attr[16] = { 0 };
    struct mc_str text = { 0 };
    if (attrs) {
        va_list ap;
        va_start(ap, attrs);
        mc_str_addv(&text, attrs, ap);
        va_end(ap);
    }
    const bool lost = text.bad; /* an op without its attributes would be a different op */
    mc_status s = lost ? MC_EMEMORY
                       : parse_all(g, op, text.s, attr); /* in the graph's arena: a few bytes a call */
    mc_str_free(&text);
    if (s < 0) {
        return lost ? mc_node_fail(g, MC_EMEMORY, "out of memory") : g->error;
    }
    return mc_apply(g, op, nin, in, attr);
}

mc_node *mc_op(mc_graph *g, const char *op, int n, mc_node *const *args, const char *attrs)
{
    if (!g || !op) {
        return g ? mc_node_fail(g, MC_EARG, "op: no name") : NULL;
    }
    return mc_call_op(g, op, n, args, attrs ? "%s" : NULL, attrs);
}

mc_node *mc_opf(mc_graph *g, const char *op, int n, mc_node *const *args, const char *attrs, ...)
{
    struct mc_str text = { 0 };
    va_list ap;
    if (!attrs) {
        return mc_op(g, op, n, args, NULL);
    }
    va_start(ap, attrs);
    mc_str_addv(&text, attrs, ap);
    va_end(ap);
    mc_node *y = g && text.bad ? mc_node_no_memory(g) : mc_op(g, op, n, args, text.s);
    mc_str_free(&text);
    return y;
}
