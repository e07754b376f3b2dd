/* spec.c: reads a spec over the user's graph: inputs, outputs, updates, givens.  Errors use the words of the
 * spec. */
#include "compile/compiling.h"

mc_status mc_spec_inputs(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    if (c->spec->inputs) {
        TRY(mc_parse_list(c->user, c->spec->inputs, false, &v, &n));
    }
    if (!VEC_RESERVE(c->inputs, (size_t)n)) {
        mc_named_free(v, n);
        return MC_EMEMORY;
    }
    for (int i = 0; i < n; i++) {
        if (v[i].has_default && v[i].name) {
            v[i].node = mc_dict_get(&c->user->names, v[i].name);
        }
        c->inputs.at[c->inputs.n++] = v[i];
    }
    mc_free(v);
    for (int i = 0; i < c->spec->ninput; i++) {
        struct mc_named one = { .node = c->spec->input[i] };
        one.name = mc_strdup(mc_node_name(one.node));
        if (!one.name || !VEC_PUSH(c->inputs, one)) {
            mc_free(one.name);
            return MC_EMEMORY;
        }
    }
    for (size_t i = 0; i < c->inputs.n; i++) {
        mc_node *x = c->inputs.at[i].node;
        if (!x || x->graph != c->user || x->op != &mc_op_input) {
            return mc_fail(MC_EARG, "compile: inputs: '%s' is not an input of this graph",
                           c->inputs.at[i].name ? c->inputs.at[i].name : "");
        }
        for (size_t k = 0; k < i; k++) {
            if (c->inputs.at[k].node == x) {
                return mc_fail(MC_EARG, "compile: inputs: '%s' is given twice", mc_node_name(x));
            }
        }
        if (!VEC_PUSH(c->in, x)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

/* name: the one that the spec gives it; NULL: the node's own */
static mc_status add_output(struct compiling *c, mc_node *n, const char *name, bool borrow)
{
    if (!n || n->graph != c->user) {
        return mc_fail(MC_EARG, "compile: an output is missing or belongs to another graph");
    }
    if (mc_is_error(n)) {
        return c->user->status < 0 ? c->user->status
                                   : mc_fail(MC_EARG, "compile: an output is the error node");
    }
    bool stays = n->op->flags & OP_STAYS;
    for (int i = 0; i < n->nout; i++) { /* for a tuple, all of its items */
        if (!VEC_PUSH(c->out, mc_item(n, i)) || !VEC_PUSH(c->borrow, borrow) || !VEC_PUSH(c->stays, stays) ||
            !VEC_PUSH(c->out_name, name && n->nout == 1 ? name : mc_item(n, i)->name)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

mc_status mc_spec_outputs(struct compiling *c)
{
    mc_status s = c->spec->outputs
                      ? mc_parse_list(c->user, c->spec->outputs, false, &c->outputs, &c->noutputs)
                      : MC_OK;
    for (int i = 0; i < c->noutputs && s == MC_OK; i++) {
        s = add_output(c, c->outputs[i].node, c->outputs[i].name, c->outputs[i].borrow);
    }
    for (int i = 0; i < c->spec->noutput && s == MC_OK; i++) {
        s = add_output(c, c->spec->output[i], NULL, false);
    }
    return s;
}

/* Adds an update, with the new value cast to the variable's dtype; the ranks must agree. */
static mc_status add_update(struct compiling *c, struct mc_shared *t, mc_node *value)
{
    for (size_t i = 0; i < c->target.n; i++) {
        if (c->target.at[i] == t) {
            return mc_fail(MC_EARG, "compile: updates: '%s' is updated twice", t->name);
        }
    }
    if (!value || mc_is_error(value)) {
        return c->user->status < 0
                   ? c->user->status
                   : mc_fail(MC_EARG, "compile: updates: the value of '%s' is missing", t->name);
    }
    if (value->nout != 1) {
        return mc_fail(MC_EARG, "compile: updates: the new value of '%s' is %d values; take one of them",
                       t->name, value->nout);
    }
    if (value->type.rank != t->type.rank) {
        return mc_fail(MC_ESHAPE, "compile: updates: '%s' has rank %d, its new value rank %d", t->name,
                       t->type.rank, value->type.rank);
    }
    for (int i = 0; i < t->type.rank; i++) {
        if (t->type.dims[i] >= 0 && value->type.dims[i] >= 0 && t->type.dims[i] != value->type.dims[i]) {
            return mc_fail(MC_ESHAPE, "compile: updates: '%s' has size %lld on axis %d, its new value %lld",
                           t->name, (long long)t->type.dims[i], i, (long long)value->type.dims[i]);
        }
    }
    if (value->type.dtype != t->type.dtype) {
        if (mc_is_float(value->type.dtype) && !mc_is_float(t->type.dtype)) {
            return mc_fail(
                MC_ETYPE,
                "compile: updates: '%s' has dtype %s, its new value %s; cast it if digits may be lost",
                t->name, mc_dtype_name(t->type.dtype), mc_dtype_name(value->type.dtype));
        }
        value = mc_cast_to(value, t->type.dtype);
    }
    return VEC_PUSH(c->target, t) && VEC_PUSH(c->update, value) ? MC_OK : MC_EMEMORY;
}

mc_status mc_spec_updates(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    mc_status s = c->spec->updates ? mc_parse_list(c->user, c->spec->updates, true, &v, &n) : MC_OK;
    for (int i = 0; i < n && s == MC_OK; i++) {
        mc_node *t = mc_dict_get(&c->user->names, v[i].name);
        s = t && t->shared ? add_update(c, t->shared, v[i].node)
                           : mc_fail(MC_EARG, "compile: updates: '%s' is not a shared variable", v[i].name);
    }
    mc_named_free(v, n);
    for (int i = 0; i < c->spec->nupdate && s == MC_OK; i++) {
        mc_node *t = c->spec->update_of[i];
        s = t && t->shared ? add_update(c, t->shared, c->spec->update[i])
                           : mc_fail(MC_EARG, "compile: updates: target %d is not a shared variable", i);
    }
    return s;
}

mc_node **mc_spec_results(const struct compiling *c, size_t *n)
{
    *n = c->out.n + c->update.n;
    mc_node **all = mc_alloc((*n + 1) * sizeof *all, "compile");
    for (size_t i = 0; all && i < *n; i++) {
        all[i] = i < c->out.n ? c->out.at[i] : c->update.at[i - c->out.n];
    }
    return all;
}

void mc_spec_put_results(struct compiling *c, mc_node *const *all)
{
    for (size_t i = 0; i < c->out.n + c->update.n; i++) {
        *(i < c->out.n ? &c->out.at[i] : &c->update.at[i - c->out.n]) = all[i];
    }
}

/* Adds the default updates of variables that the function uses, such as random streams and running
 * averages. */
mc_status mc_spec_default_updates(struct compiling *c)
{
    bool more = !c->spec->no_default_updates;
    while (more) { /* an update may use a variable that has a default update */
        size_t n, count = 0;
        mc_node **all = mc_spec_results(c, &n), **list = all ? mc_graph_reach((int)n, all, &count) : NULL;
        mc_status s = list || !n ? MC_OK : MC_EMEMORY;
        more = false;
        for (size_t i = 0; i < count && s == MC_OK; i++) {
            for (size_t k = 0; list[i]->shared && k < c->user->defaults.n && s == MC_OK; k++) {
                bool has = c->user->defaults.at[k].shared != list[i]->shared;
                for (size_t j = 0; j < c->target.n; j++) {
                    has |= c->target.at[j] == list[i]->shared;
                }
                if (!has) {
                    s = add_update(c, list[i]->shared, c->user->defaults.at[k].value);
                    more = true;
                }
            }
        }
        mc_free(all);
        mc_free(list);
        TRY(s);
    }
    return MC_OK;
}

/* In all results.  Where a replacement reads a variable with a default update, that update is one more. */
static mc_status replace_given(struct compiling *c, int n, mc_node *const *from, mc_node *const *to)
{
    size_t nall = 1;
    for (size_t done = 0; done < nall;) {
        mc_node **all = mc_spec_results(c, &nall);
        mc_status s = all ? mc_graph_replace(c->user, n, from, to, (int)(nall - done), all + done)
                          : MC_EMEMORY;
        if (s == MC_OK) {
            mc_spec_put_results(c, all);
        }
        mc_free(all);
        TRY(s);
        done = nall;
        TRY(mc_spec_default_updates(c));
        nall = c->out.n + c->update.n;
    }
    return MC_OK;
}

mc_status mc_spec_givens(struct compiling *c)
{
    struct mc_named *v = NULL;
    int n = 0;
    mc_status s = c->spec->givens ? mc_parse_list(c->user, c->spec->givens, true, &v, &n) : MC_OK;
    mc_node **from = mc_alloc((size_t)(n + 1) * sizeof *from, "compile"),
            **to = mc_alloc((size_t)(n + 1) * sizeof *to, "compile");
    s = from && to ? s : MC_EMEMORY;
    for (int i = 0; i < n && s == MC_OK; i++) {
        from[i] = mc_dict_get(&c->user->names, v[i].name);
        to[i] = v[i].node;
        if (!from[i]) {
            s = mc_fail(MC_EARG, "compile: givens: there is no variable '%s'", v[i].name);
        } else if (from[i]->type.rank != to[i]->type.rank) {
            s = mc_fail(MC_ESHAPE, "compile: givens: '%s' has rank %d, its replacement rank %d", v[i].name,
                        from[i]->type.rank, to[i]->type.rank);
        } else {
            to[i] = mc_cast_to(to[i], from[i]->type.dtype);
        }
    }
    s = n && s == MC_OK ? replace_given(c, n, from, to) : s;
    mc_named_free(v, n);
    mc_free(from);
    mc_free(to);
    return s;
}

mc_status mc_spec_unused(struct compiling *c)
{
    static const char *const words[] = { "raise", "warn", "ignore" };
    const char *what = c->spec->on_unused ? c->spec->on_unused : mc_flag_text(FLAG_on_unused);
    bool known = false;
    for (size_t i = 0; i < NELEM(words); i++) {
        known |= strcmp(what, words[i]) == 0;
    }
    if (!known) {
        return mc_fail(MC_EARG, "compile: on_unused is '%s'; expected raise, warn or ignore", what);
    }
    size_t n, count = 0;
    mc_node **all = mc_spec_results(c, &n), **list = all ? mc_graph_reach((int)n, all, &count) : NULL;
    mc_status s = list || !n ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        bool given = list[i]->op != &mc_op_input;
        for (size_t k = 0; k < c->in.n; k++) {
            given |= c->in.at[k] == list[i];
        }
        if (!given) {
            s = mc_fail(MC_EARG, "compile: '%s' is needed but is not among the inputs",
                        mc_node_name(list[i]));
        }
    }
    for (size_t k = 0; k < c->in.n && s == MC_OK && strcmp(what, "ignore") != 0; k++) {
        bool used = false;
        for (size_t i = 0; i < count; i++) {
            used |= list[i] == c->in.at[k];
        }
        if (!used && strcmp(what, "warn") == 0) {
            LOG(LOG_PLAN, "compile: input '%s' is not used", mc_node_name(c->in.at[k]));
        } else if (!used) {
            s = mc_fail(MC_EARG,
                        "compile: input '%s' is not used; leave it out, or set on_unused to warn or ignore",
                        mc_node_name(c->in.at[k]));
        }
    }
    mc_free(all);
    mc_free(list);
    return s;
}

