/* eval.c: evaluates graphs by the reference, node by node. It is slow and plain. All else is compared with
 * it, and it runs where there is no compiler. */
#include "op/ifelse.h"

/* Can a result of type t be written to a? */
static bool takes(const mc_array *a, const struct mc_type *t)
{
    return a->dtype == t->dtype && mc_dims_equal(a->rank, a->dims, t->rank, t->dims) &&
           mc_array_is_contiguous(a);
}

mc_status mc_eval_node(const mc_node *n, mc_array *const *in, mc_array **out)
{
    struct mc_type on_stack[8],
        *type = n->nin <= 8 ? on_stack : mc_alloc((size_t)n->nin * sizeof *type, "eval");
    struct mc_infer q = { .op = n->op, .nin = n->nin, .in = type, .value = (const mc_array *const *)in, .attr = n->attr,
                          .nout = n->op->nout };
    mc_status s = type ? MC_OK : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < n->nin; i++) {
        type[i] = mc_type_make(in[i]->dtype, in[i]->rank, in[i]->dims);
        const struct mc_type *known = &n->in[i]->type;
        for (int k = 0; k < in[i]->rank; k++) {
            if (n->op->arity && in[i]->dims[k] == 1 && known->dims[k] != 1) {
                for (int j = 0; j < n->nin; j++) { /* only a promised size of 1 broadcasts */
                    if (in[j]->rank == in[i]->rank && in[j]->dims[k] != 1) {
                        s = mc_fail(MC_ESHAPE,
                                    "%s: axis %d has size 1 in argument %d and %lld in argument %d; declare "
                                    "the size 1 to broadcast it",
                                    n->op->name, k, i + 1, (long long)in[j]->dims[k], j + 1);
                    }
                }
            }
        }
    }
    if (s == MC_OK && n->op == &mc_op_item) {
        s = mc_fail(MC_EARG, "item: it is evaluated with its tuple"); /* mc_eval handles items itself */
    }
    s = s < 0 ? s : n->op->infer(&q);
    for (int i = 0; s == MC_OK && i < q.nout; i++) {
        if (out[i] && !takes(out[i], &q.out[i])) {
            mc_array_unref(&out[i]);
        }
        out[i] = out[i] ? out[i] : mc_array_empty(q.out[i].dtype, q.out[i].rank, q.out[i].dims);
        s = out[i] ? MC_OK : mc_last_status();
    }
    if (s == MC_OK) {
        s = n->op->eval ? n->op->eval(n, in, out)
                        : mc_fail(MC_EUNSUPPORTED, "%s: the op has no reference", n->op->name);
    }
    for (int i = 0; s < 0 && i < q.nout; i++) {
        mc_array_unref(&out[i]);
    }
    if (type != on_stack) {
        mc_free(type);
    }
    return s;
}

/* The value of a leaf for which none was given. */
static mc_array *leaf_value(const mc_node *n)
{
    if (n->value) {
        return mc_array_ref(n->value);
    }
    if (n->shared) {
        return mc_shared_get(n->shared);
    }
    mc_fail(MC_EARG, "eval: no value for the input '%s'", n->name ? n->name : "");
    return NULL;
}

/* ---- graphs ---- */

struct evaluation {
    mc_array **at;          /* by id; of a tuple its first result */
    mc_array **in;          /* room for the inputs of one node */
    struct mc_map tuples;   /* by id: all results of a tuple */
};

static mc_status eval_one(struct evaluation *e, const mc_node *n)
{
    mc_array *made[MC_MOST_RESULTS] = { 0 }, *(*tuple)[MC_MOST_RESULTS] = NULL;
    if (n->op == &mc_op_item) {
        tuple = mc_map_get(&e->tuples, n->in[0]->id, NULL);
        e->at[n->id] = mc_array_ref((*tuple)[n->item]);
        return MC_OK;
    }
    if (n->op->flags & OP_LEAF) {
        e->at[n->id] = leaf_value(n);
        return e->at[n->id] ? MC_OK : mc_last_status();
    }
    for (int k = 0; k < n->nin; k++) {
        e->in[k] = e->at[n->in[k]->id];
    }
    mc_status s = MC_OK;
    if (n->op->form == FORM_IFELSE) {
        for (int i = 0; i < n->nout; i++) {
            made[i] = mc_array_ref(e->at[mc_ifelse_value(n, *e->in[0]->data != 0, i)->id]);
        }
    } else {
        s = mc_eval_node(n, e->in, made);
    }
    if (s == MC_OK && n->nout > 1) {
        tuple = mc_calloc(1, sizeof *tuple, "eval");
        if (!tuple || !mc_map_put(&e->tuples, n->id, tuple)) {
            s = MC_EMEMORY;
            mc_free(tuple);
        } else {
            memcpy(*tuple, made, sizeof made);
            memset(made, 0, sizeof made);
            e->at[n->id] = mc_array_ref((*tuple)[0]);
        }
        for (int k = 0; k < n->nout; k++) {
            mc_array_unref(&made[k]);
        }
    } else if (s == MC_OK) {
        e->at[n->id] = made[0];
    }
    return s;
}

/* Does n wait for its input k?  An ifelse waits for its condition, and then for the side that it chooses. */
static bool waits_for(const struct evaluation *e, const mc_node *n, int k)
{
    const mc_array *c = n->op->form == FORM_IFELSE ? e->at[n->in[0]->id] : NULL;
    const bool needed = n->op->form != FORM_IFELSE || k == 0 ||
                        (c && (*c->data != 0) == (k <= mc_ifelse_values(n)));
    return needed && !e->at[n->in[k]->id];
}

/* With choices: a node is evaluated when another one waits for it. */
static mc_status eval_on_demand(struct evaluation *e, int nout, mc_node *const *output)
{
    VEC(const mc_node *) open = { 0 };
    mc_status s = MC_OK;
    for (int i = 0; i < nout && s == MC_OK; i++) {
        s = VEC_PUSH(open, output[i]) ? MC_OK : MC_EMEMORY;
        while (s == MC_OK && open.n) {
            const mc_node *n = open.at[open.n - 1];
            const size_t before = open.n;
            for (int k = n->nin; k-- > 0 && s == MC_OK && !e->at[n->id];) {
                s = !waits_for(e, n, k) || VEC_PUSH(open, n->in[k]) ? MC_OK : MC_EMEMORY;
            }
            if (s == MC_OK && open.n == before) {
                s = e->at[n->id] ? MC_OK : eval_one(e, n);
                open.n--;
            }
        }
    }
    VEC_FREE(open);
    return s;
}

mc_status mc_eval(int nfrom, mc_node *const *from, mc_array *const *value, int nout, mc_node *const *output,
                  mc_array **out)
{
    size_t count = 0, widest = 1;
    mc_node **list = mc_graph_reach(nout, output, &count);
    size_t top = count ? (size_t)list[count - 1]->id + 1 : 1;
    struct evaluation e = { .at = mc_calloc(top, sizeof *e.at, "eval") };
    bool choices = false;
    for (size_t i = 0; i < count; i++) {
        widest = MC_MAX(widest, (size_t)list[i]->nin);
        choices |= list[i]->op->form == FORM_IFELSE;
    }
    e.in = mc_alloc(widest * sizeof *e.in, "eval");
    mc_status s = list && e.at && e.in ? MC_OK : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < nfrom; i++) {
        if (from[i]->id < top) {
            e.at[from[i]->id] = mc_array_ref(value[i]);
        }
    }
    for (size_t i = 0; s == MC_OK && i < count && !choices; i++) {
        s = e.at[list[i]->id] ? MC_OK : eval_one(&e, list[i]);
    }
    s = s < 0 || !choices ? s : eval_on_demand(&e, nout, output);
    for (int i = 0; i < nout; i++) {
        out[i] = s == MC_OK ? mc_array_ref(e.at[output[i]->id]) : NULL;
    }
    for (size_t i = 0; i < count && e.at; i++) {
        mc_array *(*tuple)[MC_MOST_RESULTS] = NULL;
        if (list[i]->nout > 1 && (tuple = mc_map_get(&e.tuples, list[i]->id, NULL))) {
            for (int k = 0; k < MC_MOST_RESULTS; k++) {
                mc_array_unref(&(*tuple)[k]);
            }
            mc_free(tuple);
        }
        mc_array_unref(&e.at[list[i]->id]);
    }
    for (int i = 0; i < nfrom && e.at; i++) {
        if (from[i]->id < top) {
            mc_array_unref(&e.at[from[i]->id]);
        }
    }
    mc_map_free(&e.tuples);
    mc_free(list);
    mc_free(e.at);
    mc_free(e.in);
    return s;
}
