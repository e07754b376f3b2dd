/* eval.c: evaluates graphs by the reference, node by node. It is slow and plain. All else is compared with
 * it, and it runs where there is no compiler. */
#include "op/op.h"

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

mc_status mc_eval(int nfrom, mc_node *const *from, mc_array *const *value, int nout, mc_node *const *output,
                  mc_array **out)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(nout, output, &count);
    size_t top = count ? (size_t)list[count - 1]->id + 1 : 1;
    mc_array **at = mc_calloc(top, sizeof *at, "eval"), *(*tuple)[MC_MOST_RESULTS] = NULL, **in = NULL;
    size_t widest = 1;
    for (size_t i = 0; i < count; i++) {
        widest = MC_MAX(widest, (size_t)list[i]->nin);
    }
    in = mc_alloc(widest * sizeof *in, "eval");
    struct mc_map tuples = { 0 };
    mc_status s = list && at && in ? MC_OK : MC_EMEMORY;

    for (int i = 0; s == MC_OK && i < nfrom; i++) {
        if (from[i]->id < top) {
            at[from[i]->id] = mc_array_ref(value[i]);
        }
    }
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        const mc_node *n = list[i];
        if (at[n->id]) {
            continue;
        }
        if (n->op == &mc_op_item) {
            tuple = mc_map_get(&tuples, n->in[0]->id, NULL);
            at[n->id] = mc_array_ref((*tuple)[n->item]);
            continue;
        }
        if (n->op->flags & OP_LEAF) {
            at[n->id] = leaf_value(n);
            s = at[n->id] ? MC_OK : mc_last_status();
            continue;
        }
        for (int k = 0; k < n->nin; k++) {
            in[k] = at[n->in[k]->id];
        }
        mc_array *made[MC_MOST_RESULTS] = { 0 };
        s = mc_eval_node(n, in, made);
        if (s == MC_OK && n->nout > 1) {
            tuple = mc_calloc(1, sizeof *tuple, "eval");
            if (!tuple || !mc_map_put(&tuples, n->id, tuple)) {
                s = MC_EMEMORY;
                mc_free(tuple);
            } else {
                memcpy(*tuple, made, sizeof made);
                memset(made, 0, sizeof made);
                at[n->id] = mc_array_ref((*tuple)[0]);
            }
            for (int k = 0; k < n->nout; k++) {
                mc_array_unref(&made[k]);
            }
        } else if (s == MC_OK) {
            at[n->id] = made[0];
        }
    }
    for (int i = 0; i < nout; i++) {
        out[i] = s == MC_OK ? mc_array_ref(at[output[i]->id]) : NULL;
    }
    for (size_t i = 0; i < count && at; i++) {
        if (list[i]->nout > 1 && (tuple = mc_map_get(&tuples, list[i]->id, NULL))) {
            for (int k = 0; k < MC_MOST_RESULTS; k++) {
                mc_array_unref(&(*tuple)[k]);
            }
            mc_free(tuple);
        }
        mc_array_unref(&at[list[i]->id]);
    }
    for (int i = 0; i < nfrom && at; i++) {
        if (from[i]->id < top) {
            mc_array_unref(&at[from[i]->id]);
        }
    }
    mc_map_free(&tuples);
    mc_free(list);
    mc_free(at);
    mc_free(in);
    return s;
}
