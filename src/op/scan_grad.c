/* scan_grad.c: the gradient of a loop is a loop that runs backwards.  It reads the sequences and the states
 * before each step from the end.  Its states are the gradients of the states, and the sums over the steps of
 * the gradients of the constants; it collects the gradients of the elements. */
#include "op/loop.h"

struct backward {
    mc_graph *g, *b;        /* the loop's graph; that of the body of its gradient */
    mc_node *n;
    struct mc_loop l;
    mc_node *const *given;  /* gradients of the results; NULL: none */
    mc_node *in[MC_MOST_LOOP_INPUTS], *out[MC_MOST_RESULTS];  /* the body's, in b */
    mc_node *wrt[MC_MOST_LOOP_INPUTS], *grad[MC_MOST_LOOP_INPUTS];
    int of[MC_MOST_LOOP_INPUTS]; /* wrt[k] is input of[k] */
    int nwrt;
    VEC(struct mc_loop_item) item;
};

static bool good(const mc_node *n)
{
    return !mc_is_error(n);
}

static mc_node *call(mc_graph *g, const char *op, mc_node *a, mc_node *b)
{
    return good(a) && good(b) ? mc_call_op(g, op, 2, (mc_node *[]){ a, b }, NULL) : g->error;
}

/* x from its end; with `until` without the steps that were not made. */
static mc_node *reversed(const struct backward *w, mc_node *x)
{
    struct mc_bind b[2] = { { "x", x, NULL },
                            { "n", w->l.until ? mc_item(w->n, w->n->nout - 1) : NULL, NULL } };
    b[0].node = w->l.until ? mc_expr(w->g, "x[:n]", b, 2) : x;
    return mc_expr(w->g, "x[::-1]", b, 1);
}

static bool add(struct backward *w, enum mc_loop_part part, mc_node *outer, mc_node *inner, mc_node *next)
{
    return good(outer) && good(inner) && (part != LOOP_STATE || good(next)) &&
           VEC_PUSH(w->item,
                    ((struct mc_loop_item){ .part = part, .outer = outer, .inner = inner, .next = next }));
}

static mc_node *zeros_like(mc_node *x)
{
    return mc_apply_plain(x->graph, "zeros_like", 1, &x);
}

/* The sum of all results, each times its gradient: what the body's inputs are differentiated by.  seed[i]:
 * the gradient of the state after the step. */
static mc_node *weighted_sum(struct backward *w, mc_node **seed)
{
    mc_node *sum = NULL;
    for (int i = 0; i < w->l.nstate + w->l.ncollect; i++) {
        const bool state = i < w->l.nstate;
        const int all = state ? mc_loop_kept_result(&w->l, i)
                              : mc_loop_collect_result(&w->l, i - w->l.nstate);
        mc_node *each = all >= 0 ? w->given[all] : NULL, *weight = NULL;
        const struct mc_type *t = state ? &w->in[w->l.nsequence + i]->type : &w->out[i]->type;
        if (!mc_is_float(t->dtype)) {
            continue;
        }
        if (state) {
            weight = seed[i] = mc_node_blank(w->b, t);
        }
        if (each) {
            mc_node *g = mc_node_blank(w->b, t);
            if (!add(w, LOOP_SEQUENCE, reversed(w, each), g, NULL)) {
                return w->b->error;
            }
            weight = weight ? call(w->b, "add", weight, g) : g;
        }
        if (weight) {
            mc_node *part = call(w->b, "mul", w->out[i], weight);
            part = good(part) ? mc_call_op(w->b, "sum", 1, &part, NULL) : part;
            sum = sum ? call(w->b, "add", sum, part) : part;
        }
    }
    return sum ? sum : mc_node_number(w->b, MC_FLOAT32, 0);
}

/* The values of state i before each step: those of the loop, or of a loop that keeps all. */
static mc_node *before_steps(const struct backward *w, int i)
{
    int64_t all = ((int64_t)1 << w->l.nstate) - 1;
    struct mc_attr attr[MC_LOOP_ATTRS];
    memcpy(attr, w->n->attr, sizeof attr);
    attr[LOOP_KEPT].ints = &all;
    mc_node *n = w->l.kept >> i & 1 ? w->n : mc_node_make(w->g, w->n->op, w->n->nin, w->n->in, attr);
    if (!good(n)) {
        return n;
    }
    const struct mc_loop l = mc_loop_of(n->attr);
    struct mc_bind b[2] = { { "h", n->in[1 + l.nsequence + i], NULL },
                            { "s", mc_item(n, mc_loop_kept_result(&l, i)), NULL } };
    if (w->l.until) {
        b[1].node = mc_expr(w->g, "s[:n]",
                            (struct mc_bind[]){ b[1], { "n", mc_item(w->n, w->n->nout - 1), NULL } }, 2);
    }
    return mc_expr(w->g, "concatenate(h[None], s, axis=0)[:-1][::-1]", b, 2);
}

/* The inputs of the body, for a body that runs from the last step to the first. */
static bool add_inputs(struct backward *w)
{
    size_t count = 0;
    bool *used = NULL, fine = true;
    mc_node **list = mc_graph_reach(w->nwrt, w->grad, &count);
    used = mc_calloc(w->b->nodes.n + 1, sizeof *used, "scan");
    for (size_t i = 0; list && used && i < count; i++) {
        used[list[i]->id] = true;
    }
    for (int i = 0; i < w->l.body->nin && used && list && fine; i++) {
        mc_node *outer = w->n->in[1 + i];
        if (!used[w->in[i]->id]) {
            continue;
        }
        if (i < w->l.nsequence) {
            fine = add(w, LOOP_SEQUENCE, reversed(w, outer), w->in[i], NULL);
        } else if (i < w->l.nsequence + w->l.nstate) {
            fine = add(w, LOOP_SEQUENCE, before_steps(w, i - w->l.nsequence), w->in[i], NULL);
        } else {
            fine = add(w, LOOP_CONSTANT, outer, w->in[i], NULL);
        }
    }
    fine = fine && list && used;
    mc_free(list);
    mc_free(used);
    return fine;
}

/* The body of the gradient: grad[k] of wrt[k].  at[i]: the item that has the gradient of input i as its
 * state; collected[i]: the position of that of a sequence among what is collected. */
static bool make_body(struct backward *w, int *at, int *collected, mc_node **collect, int *ncollect)
{
    const struct mc_body *b = w->l.body;
    mc_node *seed[MC_MOST_STATES] = { 0 };
    for (int i = 0; i < b->nin; i++) {
        w->in[i] = mc_node_blank(w->b, &b->in[i]->type);
        if (!good(w->in[i])) {
            return false;
        }
        if (mc_is_float(b->in[i]->type.dtype)) {
            w->of[w->nwrt] = i;
            w->wrt[w->nwrt++] = w->in[i];
        }
    }
    memcpy(w->out, b->out, (size_t)b->nout * sizeof *b->out);
    if (mc_graph_copy(w->b, b->nin, b->in, w->in, b->nout, w->out) < 0) {
        return false;
    }
    mc_node *cost = weighted_sum(w, seed);
    const mc_grad_spec spec = { .disconnected = MC_DISCONNECTED_ZERO };
    if (!good(cost) || w->g->language->grads(cost, w->nwrt, w->wrt, w->grad, &spec) < 0 || !add_inputs(w)) {
        return false;
    }
    for (int k = 0; k < w->nwrt; k++) {
        const int i = w->of[k], state = i - w->l.nsequence;
        mc_node *outer = w->n->in[1 + i];
        at[i] = (int)w->item.n;
        if (state < 0) {
            collected[i] = *ncollect;
            collect[(*ncollect)++] = w->grad[k];
        } else if (state < w->l.nstate) {
            mc_node *last = w->given[state] ? w->given[state] : zeros_like(outer);
            if (!add(w, LOOP_STATE, last, seed[state], w->grad[k])) {
                return false;
            }
        } else {
            mc_node *sum = mc_node_blank(w->b, &w->in[i]->type);
            if (!add(w, LOOP_STATE, zeros_like(outer), sum, call(w->b, "add", sum, w->grad[k]))) {
                return false;
            }
        }
    }
    return true;
}

static mc_node *gradient(struct backward *w, int wrt)
{
    int at[MC_MOST_LOOP_INPUTS] = { 0 }, collected[MC_MOST_LOOP_INPUTS] = { 0 }, ncollect = 0;
    mc_node *collect[MC_MOST_LOOP_INPUTS];
    if (!make_body(w, at, collected, collect, &ncollect)) {
        return mc_node_fail(w->g, mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY,
                            "the gradient of a loop: %s", mc_last_error());
    }
    mc_node *steps = w->l.until ? mc_item(w->n, w->n->nout - 1) : w->n->in[0];
    struct mc_loop_spec s = { .from = w->b, .steps = steps, .item = w->item.at, .nitem = (int)w->item.n, .collect = collect,
                              .ncollect = ncollect };
    mc_node *loop = mc_loop_make(w->g, &s);
    if (!good(loop)) {
        return loop;
    }
    if (wrt >= w->l.nsequence) {
        return mc_item(loop, s.item[at[wrt]].result);
    }
    struct mc_bind b[] = { { "d", mc_item(loop, s.collected + collected[wrt]), NULL },
                           { "x", w->n->in[1 + wrt], NULL },
                           { "n", steps, NULL } };
    return w->l.until ? mc_expr(w->g, "set_subtensor(zeros_like(x)[:n], d[::-1])", b, 3)
                      : mc_expr(w->g, "d[::-1]", b, 1);
}

mc_node *mc_loop_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (!mc_is_float(n->in[wrt]->type.dtype)) {
        return NULL;
    }
    struct backward w = { .g = n->graph, .n = n, .l = mc_loop_of(n->attr), .given = g };
    w.b = mc_graph_make(n->graph->language);
    if (!w.b || n->graph->language->share(w.b, n->graph) < 0 || !w.b->language->grads) {
        const bool no = w.b && !w.b->language->grads;
        mc_graph_free(w.b);
        return no ? mc_node_fail(n->graph, MC_EGRAD, "scan: this graph has no gradients")
                  : mc_node_no_memory(n->graph);
    }
    mc_node *made = gradient(&w, wrt - 1);
    VEC_FREE(w.item);
    mc_graph_free(w.b);
    return made;
}
