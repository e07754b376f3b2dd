/* one_loop.c: a loop is made smaller.
 *
 *   results that nothing reads go, and with them states, sequences and constants that only they need
 *   a row x[i], where steps change i, is gathered (loop_rows.c)
 *   what depends on no step moves before the loop
 *   a product of elements and a constant becomes one product of the whole sequence, before the loop
 *   a state that sums up products becomes one product of what the loop collects, after the loop; so does a
 *   product by a constant that is collected
 *   a state that sums up what the loop collects, or sums of it, becomes one sum, after the loop
 *
 * Invariant: the new loop has the old one's values, but for the order in which such products are summed. */
#include "rewrite/known.h"
#include "rewrite/rewrite.h"

enum { MOST_TERMS = 32 };
/* What each step adds to a state: a b, or with `turned` a transposed times b; without b: that `sum` of a, or
 * a itself. */
struct term { int state; mc_node *a, *b; bool turned; const mc_node *sum; };
struct work {
    struct mc_loop_known k;     /* its body is a copy, to which nodes may be added */
    mc_node *next[MC_MOST_RESULTS]; /* the body's results */
    const bool *live;           /* by result of the loop */
    bool state[MC_MOST_STATES]; /* the state is computed */
    VEC(struct mc_loop_item) item;
    struct term term[MOST_TERMS];
    int nterm;
    VEC(mc_node *) collect;     /* in the body */
    bool whole;                 /* all rewrites, and not only dead results */
};

/* ---- what is needed ---- */

static int body_results(const struct work *w, mc_node **out, int *of)
{
    int n = 0;
    for (int i = 0; i < w->k.body->nout; i++) {
        const bool state = i < w->k.l.nstate, until = w->k.l.until && i == w->k.body->nout - 1;
        if (until || (state ? w->state[i] : w->live[mc_loop_collect_result(&w->k.l, i - w->k.l.nstate)])) {
            of[n] = i;
            out[n++] = w->next[i];
        }
    }
    return n;
}

/* A state is computed if a result of it is read, or if anything that is computed reads it. */
static mc_status find_states(struct work *w)
{
    for (int i = 0; i < w->k.l.nstate; i++) {
        const int kept = mc_loop_kept_result(&w->k.l, i);
        w->state[i] = w->live[i] || (kept >= 0 && w->live[kept]);
    }
    for (bool more = true; more;) {
        mc_node *out[MC_MOST_RESULTS];
        int of[MC_MOST_RESULTS];
        size_t count = 0;
        mc_node **list = mc_graph_reach(body_results(w, out, of), out, &count);
        if (!list) {
            return MC_EMEMORY;
        }
        more = false;
        for (size_t i = 0; i < count; i++) {
            for (int k = 0; k < w->k.l.nstate; k++) {
                if (list[i] == w->k.body->in[w->k.l.nsequence + k] && !w->state[k]) {
                    w->state[k] = more = true;
                }
            }
        }
        mc_free(list);
    }
    return MC_OK;
}

static mc_node *once(const struct work *w, const mc_node *n)
{
    return mc_known_once(&w->k, n);
}

static mc_node *every(const struct work *w, const mc_node *n)
{
    return mc_known_every(&w->k, n);
}

static bool is_known(const struct work *w, const mc_node *n)
{
    return once(w, n) || every(w, n);
}

static int uses_of(const mc_node *x, mc_node *const *list, size_t count)
{
    int n = 0;
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < list[i]->nin; k++) {
            n += list[i]->in[k] == x;
        }
    }
    return n;
}

static bool is_sum(const mc_node *n)
{
    return n->op->arity == 2 && n->op->flags & OP_COMMUTES && mc_op_linear(n->op, 3);
}

/* ---- sums ---- */

/* The terms of the sum n, whose inner sums have no other reader: first those that are known before the loop.
 * Returns how many; -1: too many. */
enum { MOST_SUMMANDS = 32 };
static int summands(struct work *w, mc_node *n, mc_node *const *list, size_t count, mc_node **term, int have)
{
    for (int k = 0; k < 2 && have >= 0; k++) {
        mc_node *x = n->in[k];
        if (is_sum(x) && !is_known(w, x) && x->op == n->op && uses_of(x, list, count) == 1) {
            have = summands(w, x, list, count, term, have);
        } else if (have == MOST_SUMMANDS) {
            have = -1;
        } else {
            term[have++] = x;
        }
    }
    return have;
}

/* The sum n with the terms that are known before the loop added up first; NULL: there are not two of them, or
 * nothing else. */
static mc_node *known_first(struct work *w, mc_node *n, mc_node *const *list, size_t count)
{
    mc_node *term[MOST_SUMMANDS], *sum[2] = { NULL, NULL };
    const int have = is_sum(n) && mc_is_float(n->type.dtype) && !is_known(w, n)
                         ? summands(w, n, list, count, term, 0)
                         : 0;
    int known = 0;
    for (int i = 0; i < have; i++) {
        mc_node **to = &sum[!is_known(w, term[i])];
        known += is_known(w, term[i]);
        *to = *to ? mc_call_op(w->k.body->graph, "add", 2, (mc_node *[]){ *to, term[i] }, NULL) : term[i];
    }
    return known < 2 || !sum[1] ? NULL : mc_call_op(w->k.body->graph, "add", 2, sum, NULL);
}

/* Makes such sums of all sums of the body that are no part of another one. */
static mc_status reorder_sums(struct work *w, mc_node *const *list, size_t count, bool *changed)
{
    VEC(mc_node *) from = { 0 }, to = { 0 };
    mc_status s = MC_OK;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        mc_node *n = list[i], *made = NULL;
        bool inner = false;
        for (size_t k = i + 1; k < count && is_sum(n) && !inner; k++) {
            inner = is_sum(list[k]) && list[k]->op == n->op && (list[k]->in[0] == n || list[k]->in[1] == n) &&
                    uses_of(n, list, count) == 1;
        }
        made = inner ? NULL : known_first(w, n, list, count);
        if (made && !mc_is_error(made) && made != n && mc_type_equal(&made->type, &n->type)) {
            s = VEC_PUSH(from, n) && VEC_PUSH(to, made) ? s : MC_EMEMORY;
        }
    }
    *changed = from.n > 0;
    if (s == MC_OK && from.n) {
        s = mc_graph_replace(w->k.body->graph, (int)from.n, from.at, to.at, w->k.body->nout, w->next);
    }
    VEC_FREE(from);
    VEC_FREE(to);
    return s;
}

/* ---- states that sum up products ---- */

static bool add_term(struct work *w, int state, mc_node *product)
{
    mc_node *a = product->in[0];
    const bool turned = a->op->form == FORM_DIMSHUFFLE && a->attr[0].n == 2 && a->attr[0].ints[0] == 1 &&
                        a->attr[0].ints[1] == 0;
    if (w->nterm == MOST_TERMS) {
        return false;
    }
    w->term[w->nterm++] = (struct term){ state, turned ? a->in[0] : a, product->in[1], turned, NULL };
    return true;
}

/* Takes the products out of the sum n.  *rest: what is left of it; NULL: nothing. */
static mc_node *without_products(struct work *w, int state, mc_node *n)
{
    if (mc_known_is_product(n)) {
        return add_term(w, state, n) ? NULL : n;
    }
    if (!is_sum(n) || !mc_type_equal(&n->in[0]->type, &n->in[1]->type)) {
        return n;
    }
    mc_node *a = without_products(w, state, n->in[0]), *b = without_products(w, state, n->in[1]);
    return a == n->in[0] && b == n->in[1] ? n
           : a && b ? mc_call_op(w->k.body->graph, "add", 2, (mc_node *[]){ a, b }, NULL)
           : a      ? a
                    : b;
}

/* What each step adds to state i, if it is only summed up, and only its last value is read; else NULL. */
static mc_node *added_to(const struct work *w, int i, mc_node *const *list, size_t count)
{
    mc_node *own = w->k.body->in[w->k.l.nsequence + i], *next = w->next[i];
    const int kept = mc_loop_kept_result(&w->k.l, i);
    bool other = false;
    for (int k = 0; k < w->k.body->nout; k++) {
        other |= w->next[k] == own;
    }
    if (!w->state[i] || other || (kept >= 0 && w->live[kept]) || !is_sum(next) ||
        uses_of(own, list, count) != 1 || (next->in[0] != own && next->in[1] != own)) {
        return NULL;
    }
    mc_node *added = next->in[next->in[0] == own];
    return mc_type_equal(&added->type, &own->type) ? added : NULL;
}

/* Is n collected anyway? */
static bool is_collected(const struct work *w, const mc_node *n)
{
    bool found = false;
    for (int i = 0; i < w->nterm; i++) {
        found |= w->term[i].a == n || w->term[i].b == n;
    }
    for (int i = 0; i < w->k.l.ncollect; i++) {
        found |= w->live[mc_loop_collect_result(&w->k.l, i)] && w->next[w->k.l.nstate + i] == n;
    }
    return found;
}

/* requires: the products are taken, so that it is known what is collected */
static void take_sum(struct work *w, int i, mc_node *const *list, size_t count)
{
    mc_node *added = added_to(w, i, list, count);
    const mc_node *sum = added && added->op->reduction == REDUCE_SUM ? added : NULL;
    mc_node *of = sum ? added->in[0] : added;
    if (!added || !is_collected(w, of) || w->nterm == MOST_TERMS) {
        return;
    }
    w->term[w->nterm++] = (struct term){ .state = i, .a = of, .sum = sum };
    w->state[i] = false;
}

static void take_products(struct work *w, int i, mc_node *const *list, size_t count)
{
    mc_node *own = w->k.body->in[w->k.l.nsequence + i], *added = added_to(w, i, list, count);
    if (!added) {
        return;
    }
    mc_node *rest = without_products(w, i, added);
    if (rest == added) {
        return;
    }
    if (rest) {
        w->next[i] = mc_call_op(w->k.body->graph, "add", 2, (mc_node *[]){ own, rest }, NULL);
    } else {
        w->state[i] = false;
    }
}

/* ---- the new loop ---- */

/* The position of n among what is collected; -1: no memory. */
static int collected(struct work *w, mc_node *n)
{
    for (size_t i = 0; i < w->collect.n; i++) {
        if (w->collect.at[i] == n) {
            return (int)i;
        }
    }
    return VEC_PUSH(w->collect, n) ? (int)w->collect.n - 1 : -1;
}

static mc_status add_item(struct work *w, mc_node *n, enum mc_loop_part part, mc_node *outer)
{
    const struct mc_loop_item item = { .part = part, .inner = n, .outer = outer };
    return VEC_PUSH(w->item, item) ? MC_OK : MC_EMEMORY;
}

/* Sizes of tensors, or a shape made of them. */
static bool is_size(const mc_node *n)
{
    bool all = n->op->form == FORM_STACK;
    for (int k = 0; k < n->nin && all; k++) {
        all = mc_is_const(n->in[k]) || is_size(n->in[k]);
    }
    return all || mc_reads_type_only(n);
}

/* One number in all elements: a kernel knows it, and the loop need not read it from memory. */
static bool is_fill(const mc_node *n)
{
    return n->op->form == FORM_ALLOC && mc_is_const(n->in[0]);
}

/* Is n to be computed before the loop for all steps?  A product is, and so is what element-wise ops make of
 * it: they are its epilogue there. */
static bool leaves(struct work *w, const mc_node *n, mc_node *const *list, size_t count)
{
    bool so = mc_known_is_product(n) && every(w, n);
    for (int k = 0; k < n->nin && !so && every(w, n) && mc_is_elementwise(n); k++) {
        so = mc_type_equal(&n->in[k]->type, &n->type) && uses_of(n->in[k], list, count) == 1 &&
             leaves(w, n->in[k], list, count);
    }
    return so;
}

/* Chooses the inputs of the new body: inputs of the old one in their order, then nodes that are known before
 * the loop. */
static mc_status choose_items(struct work *w, int nout, mc_node *const *out)
{
    enum { NEEDED = 1, INSIDE, CHOSEN }; /* INSIDE: needed, and not to be an input */
    size_t count = 0;
    mc_node **list = mc_graph_reach(nout, out, &count);
    char *mark = mc_calloc(w->k.body->graph->nodes.n + 1, 1, "loops");
    mc_status s = list && mark ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < nout && s == MC_OK; i++) {
        mark[out[i]->id] = NEEDED;
    }
    for (size_t i = count; i-- > 0 && s == MC_OK;) {
        const mc_node *n = list[i];
        if (!mark[n->id] || mc_is_const(n) || mc_known_input(&w->k, n) >= 0) {
            continue;
        }
        const bool fill = is_fill(n);
        if (w->whole && mark[n->id] == NEEDED && ((once(w, n) && !fill) || leaves(w, n, list, count))) {
            mark[n->id] = CHOSEN;
            continue;
        }
        for (int j = 0; j < n->nin; j++) { /* types are made from the numbers of a shape */
            const bool stack = n->in[j]->op->form == FORM_STACK && n->op->form != FORM_STACK,
                       size = (stack && mc_is_shape_arg(n, j)) ||
                              ((fill || stack || mark[n->id] == INSIDE) && is_size(n->in[j]));
            char *m = &mark[n->in[j]->id];
            *m = size || *m == INSIDE ? INSIDE : NEEDED;
        }
    }
    for (int i = 0; i < w->k.body->nin && s == MC_OK; i++) {
        const bool sequence = i < w->k.l.nsequence;
        if (mark[w->k.body->in[i]->id] &&
            (sequence || mc_known_is_constant(&w->k, i))) { /* states are there */
            s = add_item(w, w->k.body->in[i], sequence ? LOOP_SEQUENCE : LOOP_CONSTANT, w->k.outer[1 + i]);
        }
    }
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        mc_node *n = list[i];
        if (mark[n->id] == CHOSEN) {
            s = once(w, n) ? add_item(w, n, LOOP_CONSTANT, once(w, n))
                           : add_item(w, n, LOOP_SEQUENCE, every(w, n));
        }
    }
    mc_free(list);
    mc_free(mark);
    return s;
}

/* What a term adds to its state, after the loop. */
static mc_node *term_value(struct work *w, const struct term *t, mc_node *loop, int first)
{
    mc_node *x[2] = { t->a, t->b }, *all[2];
    for (int i = 0; i < 2 && x[i]; i++) {
        all[i] = every(w, x[i]) ? every(w, x[i]) : mc_item(loop, first + collected(w, x[i]));
    }
    const struct mc_bind b[2] = { { "a", all[0], NULL }, { "b", all[1], NULL } };
    if (!t->b) {
        mc_node *steps = mc_expr(w->k.g, "sum(a, axis=0)", b, 1);
        return mc_is_error(steps) || !t->sum ? steps : mc_apply(w->k.g, t->sum->op, 1, &steps, t->sum->attr);
    }
    return mc_expr(w->k.g,
                   t->turned ? "tensordot(a, b, axes=[0, 1], axes_b=[0, 1])"
                             : "tensordot(a, b, axes=[0, 2], axes_b=[0, 1])",
                   b, 2);
}

/* Is n, which is collected, a product by a constant?  Then its first operand is collected, and there is one
 * product after the loop. */
static bool late_product(struct work *w, const mc_node *n)
{
    return w->whole && mc_known_is_product(n) && once(w, n->in[1]);
}

static mc_node *collected_value(struct work *w, mc_node *n, mc_node *loop, int first)
{
    if (!late_product(w, n)) {
        return mc_item(loop, first + collected(w, n));
    }
    const struct mc_bind b[2] = { { "a", mc_item(loop, first + collected(w, n->in[0])), NULL },
                                  { "b", once(w, n->in[1]), NULL } };
    return mc_expr(w->k.g, "dot(a, b)", b, 2);
}

/* new[]: what becomes of the results that are live */
static mc_status build(struct work *w, mc_node **new)
{
    mc_node *out[MC_MOST_RESULTS];
    int of[MC_MOST_RESULTS], at[MC_MOST_STATES];
    const int n = body_results(w, out, of);
    for (int i = 0; i < n; i++) {
        const bool until = w->k.l.until && of[i] == w->k.body->nout - 1;
        if (of[i] >= w->k.l.nstate && !until &&
            collected(w, late_product(w, out[i]) ? out[i]->in[0] : out[i]) < 0) {
            return MC_EMEMORY;
        }
    }
    for (int i = 0; i < w->nterm; i++) {
        mc_node *x[2] = { w->term[i].a, w->term[i].b };
        for (int k = 0; k < 2; k++) {
            if (x[k] && !every(w, x[k]) && collected(w, x[k]) < 0) {
                return MC_EMEMORY;
            }
        }
    }
    for (int i = 0; i < w->k.l.nstate; i++) {
        const int kept = mc_loop_kept_result(&w->k.l, i);
        at[i] = (int)w->item.n;
        if (w->state[i] &&
            !VEC_PUSH(w->item, ((struct mc_loop_item){ .part = LOOP_STATE,
                                                       .outer = w->k.outer[1 + w->k.l.nsequence + i],
                                                       .inner = w->k.body->in[w->k.l.nsequence + i],
                                                       .next = w->next[i],
                                                       .kept = kept >= 0 && w->live[kept] }))) {
            return MC_EMEMORY;
        }
    }
    mc_node *need[3 * MC_MOST_RESULTS];
    int nneed = 0;
    for (size_t i = 0; i < w->item.n; i++) {
        need[nneed++] = w->item.at[i].next;
    }
    for (size_t i = 0; i < w->collect.n && nneed < (int)NELEM(need) - 1; i++) {
        need[nneed++] = w->collect.at[i];
    }
    if (w->k.l.until) {
        need[nneed++] = w->next[w->k.body->nout - 1];
    }
    TRY(choose_items(w, nneed, need));
    struct mc_loop_spec s = { .from = w->k.body->graph, .steps = w->k.outer[0], .item = w->item.at, .nitem = (int)w->item.n,
                              .collect = w->collect.at, .ncollect = (int)w->collect.n,
                              .until = w->k.l.until ? w->next[w->k.body->nout - 1] : NULL };
    mc_node *loop = nneed ? mc_loop_make(w->k.g, &s) : NULL;
    if (loop && mc_is_error(loop)) {
        return mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY;
    }
    for (int i = 0; i < w->k.l.nstate; i++) {
        const int kept = mc_loop_kept_result(&w->k.l, i);
        new[i] = w->state[i] ? mc_item(loop, s.item[at[i]].result) : w->k.outer[1 + w->k.l.nsequence + i];
        for (int k = 0; k < w->nterm; k++) {
            if (w->term[k].state == i) {
                new[i] = mc_call_op(w->k.g, "add", 2,
                                    (mc_node *[]){ new[i], term_value(w, &w->term[k], loop, s.collected) },
                                    NULL);
            }
        }
        if (kept >= 0 && w->live[kept]) {
            new[kept] = mc_item(loop, s.item[at[i]].all);
        }
    }
    for (int i = 0; i < w->k.l.ncollect; i++) {
        const int r = mc_loop_collect_result(&w->k.l, i);
        new[r] = w->live[r] ? collected_value(w, w->next[w->k.l.nstate + i], loop, s.collected) : NULL;
    }
    if (w->k.l.until) {
        new[w->k.l.nstate + w->k.l.nkept + w->k.l.ncollect] = mc_item(loop, loop->nout - 1);
    }
    return MC_OK;
}

mc_status mc_loop_needs(const mc_node *n, const bool *live, bool *needed)
{
    struct work w = { .k = { .l = mc_loop_of(n->attr), .body = mc_loop_of(n->attr).body }, .live = live };
    mc_node *need[MC_MOST_RESULTS];
    int of[MC_MOST_RESULTS];
    size_t count = 0;
    memcpy(w.next, w.k.body->out, (size_t)w.k.body->nout * sizeof *w.next);
    TRY(find_states(&w));
    mc_node **list = mc_graph_reach(body_results(&w, need, of), need, &count);
    if (!list) {
        return MC_EMEMORY;
    }
    needed[0] = true;
    for (size_t k = 0; k < count; k++) {
        const int at = mc_known_input(&w.k, list[k]);
        if (at >= 0) {
            needed[1 + at] = true;
        }
    }
    for (int k = 0; k < w.k.l.nstate; k++) {
        needed[1 + w.k.l.nsequence + k] |= w.state[k];
    }
    mc_free(list);
    return MC_OK;
}

mc_status mc_loop_simplify(mc_graph *g, const mc_node *n, mc_node *const *in, const bool *live, bool whole,
                           mc_node **new)
{
    const struct mc_loop l = mc_loop_of(n->attr);
    struct work w = { .live = live, .whole = whole && !l.until };
    w.k = (struct mc_loop_known){ .g = g,
                                  .outer = in,
                                  .l = l,
                                  .body = mc_body_make(l.body->graph, l.body->nin, l.body->in, l.body->nout,
                                                       l.body->out) };
    mc_status s = w.k.body ? MC_OK : mc_last_status();
    size_t count = 0;
    mc_node *out[MC_MOST_RESULTS], **list = NULL;
    int of[MC_MOST_RESULTS];
    if (s == MC_OK) {
        memcpy(w.next, w.k.body->out, (size_t)w.k.body->nout * sizeof *w.next);
        s = mc_loop_rows(&l, w.k.body, w.next);
        s = s < 0 ? s : find_states(&w);
    }
    if (s == MC_OK && w.whole) {
        list = mc_graph_reach(body_results(&w, out, of), out, &count);
        s = list ? mc_known_find(&w.k, list, count) : MC_EMEMORY;
        bool reordered = false;
        s = s < 0 ? s : reorder_sums(&w, list, count, &reordered);
        if (s == MC_OK && reordered) {
            mc_free(list);
            list = mc_graph_reach(body_results(&w, out, of), out, &count);
            s = list ? mc_known_find(&w.k, list, count) : MC_EMEMORY;
        }
        for (int i = 0; i < l.nstate && s == MC_OK; i++) {
            take_products(&w, i, list, count);
        }
        for (int i = 0; i < l.nstate && s == MC_OK; i++) {
            take_sum(&w, i, list, count);
        }
    }
    s = s < 0 ? s : build(&w, new);
    mc_free(list);
    mc_known_free(&w.k);
    VEC_FREE(w.item);
    VEC_FREE(w.collect);
    mc_body_unref(w.k.body);
    return s;
}
