/* scan_grad.c: the gradient of a loop is a loop that runs backwards.  It reads the sequences and the states
 * before each step from the end.  Its states are the gradients of the states, and the sums over the steps of
 * the gradients of the constants; it collects the gradients of the elements.
 *
 * Values of the loop that the gradient reads, and that are expensive, are not computed again: a second loop
 * over the same inputs collects them too.  rewrite/merge_loops.c makes one of both. */
#include "op/loop.h"

struct backward {
    mc_graph *g, *b;        /* the loop's graph; that of the body of its gradient */
    mc_node *n;             /* the loop, or the one that saves what the gradient reads */
    struct mc_loop l;       /* of the loop; the one that saves has more results */
    mc_node **original, **copy; /* all nodes of the body; their copies in b */
    size_t count;
    size_t *number, top;    /* by id in b, below top: number of the copy + 1 */
    bool *varies;           /* by id in the body: the node depends on elements or states */
    VEC(mc_node *) save;    /* nodes of the body whose values are saved */
    VEC(mc_node *) saved;   /* what stands for them in b */
    unsigned kept;          /* states whose values are kept */
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

/* How many steps the gradient makes of n; n is an integer. */
static mc_node *truncated(const struct backward *w, mc_node *n)
{
    const struct mc_attr k = { .kind = ATTR_INT, .n = 1, .ints = (int64_t *)&w->l.truncate };
    return w->l.truncate && good(n)
               ? mc_expr(w->g, "minimum(n, k)", (struct mc_bind[]){ { "n", n, NULL }, { "k", NULL, &k } }, 2)
               : n;
}

/* The number of steps that the loop may make, and that which it has made. */
static mc_node *most_steps(const struct backward *w)
{
    return mc_cast_to(w->n->in[0], MC_INT64);
}

static mc_node *steps_made(const struct backward *w)
{
    return w->l.until ? mc_item(w->n, w->n->nout - 1) : most_steps(w);
}

/* x from its end, as far as the gradient goes back.  With `until` the steps that were made come first, and
 * any others behind them, so that no size depends on data. */
static mc_node *reversed(const struct backward *w, mc_node *x)
{
    struct mc_bind b[3] = { { "x", x, NULL },
                            { "n", steps_made(w), NULL },
                            { "m", truncated(w, most_steps(w)), NULL } };
    return !good(x) || !good(b[1].node) || !good(b[2].node) ? w->g->error
           : w->l.until    ? mc_expr(w->g, "x[maximum(n - 1 - arange(m), 0)]", b, 3)
           : w->l.truncate ? mc_expr(w->g, "x[::-1][:m]", b, 3)
                           : mc_expr(w->g, "x[::-1]", b, 1);
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

/* ---- saved values ---- */

/* Is n the same in all steps, or made from values at hand by few cheap ops? */
static bool at_hand(const struct backward *w, const mc_node *n, int ops)
{
    if (!w->varies[n->id]) {
        return true;
    }
    for (size_t i = 0; i < w->saved.n; i++) {
        if (w->save.at[i] == n) {
            return true;
        }
    }
    for (int i = 0; i < w->l.body->nin; i++) {
        if (w->l.body->in[i] == n) {
            return true;
        }
    }
    if (n->op->form == FORM_ALLOC && ops > 0) { /* a number and a size */
        return at_hand(w, n->in[0], ops - 1);
    }
    const bool cheap = (n->op->arity && !(n->op->flags & OP_COSTLY)) || n->op->form == FORM_CAST ||
                       n->op->flags & OP_VIEW || mc_reads_type_only(n);
    bool all = cheap && ops > 0;
    for (int k = 0; k < n->nin && all && !mc_reads_type_only(n); k++) {
        all = at_hand(w, n->in[k], ops - 1);
    }
    return all;
}

/* Does n need results of a loop in the body?  Those are computed again, as they may be long. */
static bool is_inner_loop(const mc_node *n)
{
    return n->op->form == FORM_LOOP || (n->op == &mc_op_item && n->in[0]->op->form == FORM_LOOP);
}

/* 0: n is no copy of a node of the body; else the number of the copy + 1 */
static size_t copy_number(const struct backward *w, const mc_node *n)
{
    return n->id < w->top ? w->number[n->id] : 0;
}

/* Marks the nodes of the body whose values nodes of the gradient read. */
static mc_status mark_read(struct backward *w, bool *read)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(w->nwrt, w->grad, &count);
    for (size_t i = 0; list && i < count; i++) {
        const mc_node *n = list[i];
        for (int k = 0; k < n->nin && !copy_number(w, n) && !mc_reads_type_only(n); k++) {
            if (copy_number(w, n->in[k])) {
                read[copy_number(w, n->in[k]) - 1] = true;
            }
        }
    }
    for (int k = 0; k < w->nwrt; k++) {
        if (copy_number(w, w->grad[k])) {
            read[copy_number(w, w->grad[k]) - 1] = true;
        }
    }
    mc_free(list);
    return list ? MC_OK : MC_EMEMORY;
}

/* The size of x, from sizes of the inputs if the ops tell. */
static mc_node *size_from_inputs(mc_node *x, int axis)
{
    if (x->type.dims[axis] >= 0) {
        return mc_node_int(x->graph, x->type.dims[axis]);
    }
    mc_node *s = x->op->size && x->nout == 1 ? x->op->size(x, 0, axis) : NULL;
    return !s                                    ? mc_size_of(x, axis)
           : good(s) && s->op->form == FORM_SIZE ? size_from_inputs(s->in[0], (int)mc_attr_int(&s->attr[0]))
                                                 : s;
}

/* Sizes of the body's nodes that the gradient reads become sizes of the inputs, so that no node is computed
 * for its size alone. */
static mc_status lift_sizes(struct backward *w)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(w->nwrt, w->grad, &count);
    VEC(mc_node *) from = { 0 }, to = { 0 };
    mc_status s = list ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        mc_node *n = list[i], *x = n->nin ? n->in[0] : NULL, *size[MC_MAX_RANK];
        if (!mc_reads_type_only(n) || !copy_number(w, x) || !x->nin || !x->type.rank) {
            continue;
        }
        const bool whole = n->op->form == FORM_SHAPE;
        for (int a = 0; whole && a < x->type.rank; a++) {
            size[a] = size_from_inputs(x, a);
            s = good(size[a]) ? s : MC_EMEMORY;
        }
        mc_node *lifted = s < 0   ? NULL
                          : whole ? mc_call_op(w->b, "stack", x->type.rank, size, NULL)
                                  : size_from_inputs(x, (int)mc_attr_int(&n->attr[0]));
        s = lifted && good(lifted) && VEC_PUSH(from, n) && VEC_PUSH(to, lifted) ? s : MC_EMEMORY;
    }
    if (s == MC_OK && from.n) {
        mc_node *before[MC_MOST_LOOP_INPUTS];
        memcpy(before, w->grad, (size_t)w->nwrt * sizeof *before);
        s = mc_graph_replace(w->b, (int)from.n, from.at, to.at, w->nwrt, w->grad);
        for (int k = 0; k < w->nwrt && s == MC_OK; k++) { /* less may be known of sums of sizes */
            w->grad[k] = mc_type_equal(&w->grad[k]->type, &before[k]->type) ? w->grad[k] : before[k];
        }
    }
    VEC_FREE(from);
    VEC_FREE(to);
    mc_free(list);
    return s;
}

/* Chooses what is saved, and lets the gradients read that. */
static mc_status choose_saved(struct backward *w)
{
    enum { CHEAP_OPS = 4 };
    w->top = w->b->nodes.n;
    w->number = mc_calloc(w->top + 1, sizeof *w->number, "scan");
    bool *read = mc_calloc(w->count + 1, sizeof *read, "scan");
    VEC(mc_node *) from = { 0 };
    mc_status s = w->number && read ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < w->count && s == MC_OK; i++) {
        w->number[w->copy[i]->id] = i + 1;
    }
    s = s < 0 ? s : lift_sizes(w);
    s = s < 0 ? s : mark_read(w, read);
    for (size_t i = 0; i < w->count && s == MC_OK; i++) {
        mc_node *n = w->original[i];
        const int most = MC_MOST_RESULTS - w->l.body->nout;
        if (!read[i] || (int)w->save.n >= most || n->nout != 1 || n->type.rank >= MC_MAX_RANK ||
            is_inner_loop(n) || at_hand(w, n, CHEAP_OPS)) {
            continue;
        }
        mc_node *stands = mc_node_blank(w->b, &w->copy[i]->type);
        s = good(stands) && VEC_PUSH(w->save, n) && VEC_PUSH(w->saved, stands) && VEC_PUSH(from, w->copy[i])
                ? MC_OK
                : MC_EMEMORY;
    }
    if (s == MC_OK && from.n) {
        s = mc_graph_replace(w->b, (int)from.n, from.at, w->saved.at, w->nwrt, w->grad);
    }
    VEC_FREE(from);
    mc_free(read);
    return s;
}

static int next_of_state(const struct backward *w, const mc_node *n)
{
    int i = w->l.nstate;
    while (i-- > 0 && w->l.body->out[i] != n) {
    }
    return i;
}

/* The loop, with the results that the gradient reads: w->kept, and the saved values that are no state. */
static mc_node *saving_loop(struct backward *w)
{
    const struct mc_body *b = w->l.body;
    mc_node *out[MC_MOST_RESULTS];
    struct mc_attr attr[MC_LOOP_ATTRS];
    const int fixed = b->nout - w->l.until;
    int n = fixed;
    int64_t kept = (int64_t)(w->l.kept | w->kept);
    memcpy(out, b->out, (size_t)fixed * sizeof *out);
    for (size_t i = 0; i < w->save.n; i++) {
        if (next_of_state(w, w->save.at[i]) < 0) {
            out[n++] = w->save.at[i];
        }
    }
    if (n == fixed && kept == (int64_t)w->l.kept) {
        return w->n;
    }
    if (w->l.until) {
        out[n++] = b->out[b->nout - 1];
    }
    const struct mc_body *own = mc_body_make(b->graph, b->nin, b->in, n, out);
    if (!own) {
        return w->g->error;
    }
    memcpy(attr, w->n->attr, sizeof attr);
    attr[LOOP_BODY] = (struct mc_attr){ .kind = ATTR_BODY, .text = own->text, .body = own };
    attr[LOOP_KEPT].ints = &kept;
    mc_node *made = mc_node_make(w->g, w->n->op, w->n->nin, w->n->in, attr);
    mc_body_unref(own);
    return made;
}

/* Adds the saved values as sequences. */
static bool add_saved(struct backward *w)
{
    const struct mc_loop l = mc_loop_of(w->n->attr);
    int more = mc_loop_collect_result(&l, w->l.ncollect);
    bool fine = true;
    for (size_t i = 0; i < w->save.n && fine; i++) {
        const int state = next_of_state(w, w->save.at[i]);
        mc_node *all = mc_item(w->n, state >= 0 ? mc_loop_kept_result(&l, state) : more++);
        fine = add(w, LOOP_SEQUENCE, reversed(w, all), w->saved.at[i], NULL);
    }
    return fine;
}

/* The values of state i before each step. */
static mc_node *before_steps(const struct backward *w, int i)
{
    const struct mc_loop l = mc_loop_of(w->n->attr);
    struct mc_bind b[2] = { { "h", w->n->in[1 + l.nsequence + i], NULL },
                            { "s", mc_item(w->n, mc_loop_kept_result(&l, i)), NULL } };
    return reversed(w, mc_expr(w->g, "concatenate(h[None], s, axis=0)[:-1]", b, 2));
}

/* The inputs of the body, for a body that runs from the last step to the first. */
static bool add_inputs(struct backward *w)
{
    const int first = w->l.nsequence;
    size_t count = 0;
    bool *used = NULL, fine = true;
    mc_node **list = mc_graph_reach(w->nwrt, w->grad, &count);
    used = mc_calloc(w->b->nodes.n + 1, sizeof *used, "scan");
    for (size_t i = 0; list && used && i < count; i++) {
        used[list[i]->id] = true;
    }
    for (int i = 0; i < w->l.nstate && used; i++) {
        w->kept |= (unsigned)used[w->in[first + i]->id] << i;
    }
    for (size_t i = 0; i < w->save.n; i++) {
        const int state = next_of_state(w, w->save.at[i]);
        w->kept |= state >= 0 ? 1u << state : 0;
    }
    w->n = used && list ? saving_loop(w) : w->n;
    fine = good(w->n) && add_saved(w);
    for (int i = 0; i < w->l.body->nin && used && list && fine; i++) {
        mc_node *outer = w->n->in[1 + i];
        if (!used[w->in[i]->id]) {
            continue;
        }
        if (i < first) {
            fine = add(w, LOOP_SEQUENCE, reversed(w, outer), w->in[i], NULL);
        } else if (i < first + w->l.nstate) {
            fine = add(w, LOOP_SEQUENCE, before_steps(w, i - first), w->in[i], NULL);
        } else {
            fine = add(w, LOOP_CONSTANT, outer, w->in[i], NULL);
        }
    }
    fine = fine && list && used;
    mc_free(list);
    mc_free(used);
    return fine;
}

/* Copies the body to b. */
static mc_status copy_body(struct backward *w)
{
    const struct mc_body *b = w->l.body;
    w->original = mc_graph_reach(b->nout, b->out, &w->count);
    w->copy = mc_alloc((w->count + 1) * sizeof *w->copy, "scan");
    w->varies = mc_calloc(b->graph->nodes.n + 1, sizeof *w->varies, "scan");
    if (!w->original || !w->copy || !w->varies) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < w->l.nsequence + w->l.nstate; i++) {
        w->varies[b->in[i]->id] = true;
    }
    for (size_t i = 0; i < w->count; i++) {
        for (int k = 0; k < w->original[i]->nin && !mc_reads_type_only(w->original[i]); k++) {
            w->varies[w->original[i]->id] |= w->varies[w->original[i]->in[k]->id];
        }
    }
    memcpy(w->copy, w->original, w->count * sizeof *w->copy);
    TRY(mc_graph_copy(w->b, b->nin, b->in, w->in, (int)w->count, w->copy));
    for (size_t i = 0; i < w->count; i++) {
        for (int k = 0; k < b->nout; k++) {
            w->out[k] = b->out[k] == w->original[i] ? w->copy[i] : w->out[k];
        }
    }
    return MC_OK;
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
    if (copy_body(w) < 0) {
        return false;
    }
    mc_node *cost = weighted_sum(w, seed);
    const mc_grad_spec spec = { .disconnected = MC_DISCONNECTED_ZERO };
    if (!good(cost) || w->g->language->grads(cost, w->nwrt, w->wrt, w->grad, &spec) < 0 ||
        choose_saved(w) < 0 || !add_inputs(w)) {
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

/* Ends the loop that goes back after as many steps as were made: the number of its step is a state. */
static mc_node *add_end(struct backward *w, mc_node *back)
{
    const struct mc_type number = mc_type_make(MC_INT64, 0, NULL);
    mc_node *k = mc_node_blank(w->b, &number), *m = mc_node_blank(w->b, &number);
    const struct mc_bind b[] = { { "k", k, NULL }, { "m", m, NULL } };
    mc_node *next = good(k) && good(m) ? mc_expr(w->b, "k + 1", b, 2) : w->b->error;
    const bool fine = add(w, LOOP_STATE, mc_node_int(w->g, 0), k, next) &&
                      add(w, LOOP_CONSTANT, back, m, NULL);
    return fine ? mc_expr(w->b, "k + 1 >= m", b, 2) : w->b->error;
}

/* The gradient of input wrt from that of the loop that goes back through `back` of the `steps` steps. */
static mc_node *whole_gradient(const struct backward *w, int wrt, mc_node *d, mc_node *steps, mc_node *back)
{
    struct mc_bind b[] = { { "d", d, NULL },
                           { "x", w->n->in[1 + wrt], NULL },
                           { "n", steps, NULL },
                           { "m", back, NULL },
                           { "i", NULL, NULL } };
    const bool whole = !w->l.truncate;
    if (wrt >= w->l.nsequence + w->l.nstate || (wrt >= w->l.nsequence && whole)) {
        return d;
    }
    if (wrt >= w->l.nsequence) { /* an initial value that the gradient does not reach */
        return mc_expr(w->g, "where(n == m, d, zeros_like(d))", b, 4);
    }
    if (!w->l.until) {
        return whole ? mc_expr(w->g, "d[::-1]", b, 1)
                     : mc_expr(w->g, "set_subtensor(zeros_like(x)[n-m:n], d[::-1])", b, 4);
    }
    b[4].node = mc_expr(w->g, "arange(size(x, 0))", b, 2);
    return !good(b[4].node) ? b[4].node
           : whole ? mc_expr(w->g, "d[where(i < n, n - 1 - i, size(x, 0) - 1)]", b, 5) /* zeros, if i >= n */
                   : mc_expr(w->g,
                             "concatenate(d, zeros_like(x[:1]), axis=0)"
                             "[where((i < n) & (i >= n - m), n - 1 - i, size(d, 0))]",
                             b, 5);
}

static mc_node *gradient(struct backward *w, int wrt)
{
    int at[MC_MOST_LOOP_INPUTS] = { 0 }, collected[MC_MOST_LOOP_INPUTS] = { 0 }, ncollect = 0;
    mc_node *collect[MC_MOST_LOOP_INPUTS];
    if (!make_body(w, at, collected, collect, &ncollect)) {
        return mc_node_fail(w->g, mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY,
                            "the gradient of a loop: %s", mc_last_error());
    }
    mc_node *steps = steps_made(w), *back = truncated(w, steps), *end = NULL;
    end = w->l.until && good(back) ? add_end(w, back) : NULL;
    if (!good(back) || (end && !good(end))) {
        return w->g->error;
    }
    struct mc_loop_spec s = { .from = w->b,
                              .steps = w->l.until ? truncated(w, most_steps(w)) : back,
                              .item = w->item.at,
                              .nitem = (int)w->item.n,
                              .collect = collect,
                              .ncollect = ncollect,
                              .until = end };
    mc_node *loop = good(s.steps) ? mc_loop_make(w->g, &s) : s.steps;
    if (!good(loop)) {
        return loop;
    }
    mc_node *d = mc_item(loop, wrt >= w->l.nsequence ? s.item[at[wrt]].result : s.collected + collected[wrt]);
    return whole_gradient(w, wrt, d, steps, back);
}

mc_node *mc_loop_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (!mc_is_float(n->in[wrt]->type.dtype)) {
        return n->in[wrt]; /* of an integer only that it is connected counts */
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
    VEC_FREE(w.save);
    VEC_FREE(w.saved);
    mc_free(w.original);
    mc_free(w.copy);
    mc_free(w.varies);
    mc_free(w.number);
    mc_graph_free(w.b);
    return made;
}
