/* scan_make.c: makes loops: of the parts that passes and gradients give, and of a user's nodes (mc_scan).
 *
 * In a user's graph, what stands for elements and states are nodes of the ops scan_element and scan_state.
 * Nodes that depend on one of a loop's are its body.  What the body reads else is computed once, before the
 * loop. */
#include "op/loop.h"

/* ---- from parts ---- */

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY, "%s", mc_last_error());
}

/* The results of the body: the next values, what is collected, the condition.  Returns how many. */
static int results_of(const struct mc_loop_spec *s, mc_node **out)
{
    int n = 0;
    for (int i = 0; i < s->nitem; i++) {
        if (s->item[i].part == LOOP_STATE) {
            out[n++] = s->item[i].next;
        }
    }
    for (int i = 0; i < s->ncollect; i++) {
        out[n++] = s->collect[i];
    }
    if (s->until) {
        out[n++] = s->until;
    }
    return n;
}

/* The items that the loop needs, in the order of its inputs.  Returns how many; -1: no memory. */
static int needed_items(const struct mc_loop_spec *s, int nout, mc_node *const *out,
                        struct mc_loop_item **sorted)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(nout, out, &count);
    bool *used = mc_calloc(s->from->nodes.n + 1, sizeof *used, "scan");
    int n = 0;
    for (size_t i = 0; list && used && i < count; i++) {
        used[list[i]->id] = true;
    }
    for (int part = LOOP_SEQUENCE; part <= LOOP_CONSTANT; part++) {
        for (int i = 0; used && list && i < s->nitem; i++) {
            if ((int)s->item[i].part == part && (part == LOOP_STATE || used[s->item[i].inner->id])) {
                sorted[n++] = &s->item[i];
            }
        }
    }
    n = list && used ? n : -1;
    mc_free(list);
    mc_free(used);
    return n;
}

mc_node *mc_loop_make(mc_graph *g, struct mc_loop_spec *s)
{
    enum { MOST_ITEMS = 1 + MC_MOST_LOOP_INPUTS };
    mc_node *out[MC_MOST_RESULTS], *outer[MOST_ITEMS], *inner[MOST_ITEMS];
    struct mc_loop_item **item = NULL;
    int nstate = 0, nsequence = 0;
    int64_t kept = 0;
    for (int i = 0; i < s->nitem; i++) {
        nstate += s->item[i].part == LOOP_STATE;
    }
    if (nstate > MC_MOST_STATES || nstate + s->ncollect + (s->until != NULL) > MC_MOST_RESULTS) {
        return mc_node_fail(g, MC_EUNSUPPORTED, "scan: more than %d states or %d results", MC_MOST_STATES,
                            MC_MOST_RESULTS);
    }
    const int nout = results_of(s, out);
    item = mc_alloc((size_t)(s->nitem + 1) * sizeof *item, "scan");
    const int n = item ? needed_items(s, nout, out, item) : -1;
    if (n < 0 || n > MC_MOST_LOOP_INPUTS) {
        mc_free(item);
        return n < 0 ? failed(g)
                     : mc_node_fail(g, MC_EUNSUPPORTED, "scan: more than %d sequences, states and constants",
                                    MC_MOST_LOOP_INPUTS);
    }
    outer[0] = s->steps;
    for (int i = 0, state = 0; i < n; i++) {
        outer[1 + i] = item[i]->outer;
        inner[i] = item[i]->inner;
        nsequence += item[i]->part == LOOP_SEQUENCE;
        if (item[i]->part == LOOP_STATE) {
            kept |= (int64_t)item[i]->kept << state++;
        }
    }
    const struct mc_body *body = mc_body_make(s->from, n, inner, nout, out);
    if (!body) {
        mc_free(item);
        return failed(g);
    }
    const int64_t number[MC_LOOP_ATTRS] = { 0, nsequence, nstate, kept, s->until != NULL, s->truncate };
    struct mc_attr attr[MC_LOOP_ATTRS] = { { .kind = ATTR_BODY, .text = body->text, .body = body } };
    for (int i = 1; i < MC_LOOP_ATTRS; i++) {
        attr[i] = (struct mc_attr){ .kind = i == LOOP_UNTIL ? ATTR_BOOL : ATTR_INT,
                                    .n = 1,
                                    .ints = (int64_t *)&number[i] };
    }
    mc_node *made = mc_apply(g, mc_op_named(g, "scan"), 1 + n, outer, attr);
    mc_body_unref(body);
    if (!mc_is_error(made)) {
        const struct mc_loop l = mc_loop_of(made->attr);
        for (int i = 0, state = 0; i < n; i++) {
            if (item[i]->part == LOOP_STATE) {
                item[i]->result = state;
                item[i]->all = mc_loop_kept_result(&l, state++);
            }
        }
        s->collected = mc_loop_collect_result(&l, 0);
    }
    mc_free(item);
    return made;
}

/* ---- from a user's nodes ---- */

static mc_node *stand_in(const char *op, mc_node *x)
{
    return x ? mc_apply_plain(x->graph, op, 1, &x) : NULL;
}

mc_node *mc_scan_element(mc_node *sequence)
{
    return stand_in("scan_element", sequence);
}

mc_node *mc_scan_state(mc_node *initial)
{
    mc_node *strong = initial && initial->weak
                          ? mc_node_const(initial->graph, mc_array_ref(initial->value), false)
                          : initial;
    return stand_in("scan_state", strong);
}

struct scan {
    mc_graph *g;
    const mc_scan_spec *spec;
    mc_node *steps;
    bool *body;             /* by id: does the node depend on a step? */
    mc_node **list;         /* what the results need */
    size_t count;
    VEC(struct mc_loop_item) item;
};

static mc_status wrong(mc_graph *g, const char *text, int i)
{
    mc_node_fail(g, MC_EARG, text, i + 1);
    return MC_EARG;
}

static mc_status check(mc_graph *g, const mc_scan_spec *spec)
{
    for (int i = 0; i < spec->nelement; i++) {
        if (mc_is_error(spec->element[i]) || !mc_is_op(spec->element[i], "scan_element")) {
            return wrong(g, "scan: element %d was not made by mc_scan_element", i);
        }
    }
    for (int i = 0; i < spec->nstate; i++) {
        if (mc_is_error(spec->state[i]) || !mc_is_op(spec->state[i], "scan_state")) {
            return wrong(g, "scan: state %d was not made by mc_scan_state", i);
        }
        if (mc_is_error(spec->next[i])) {
            return wrong(g, "scan: the next value of state %d is missing", i);
        }
    }
    for (int i = 0; i < spec->ncollect; i++) {
        if (mc_is_error(spec->collect[i])) {
            return wrong(g, "scan: the value %d to collect is missing", i);
        }
    }
    if (!spec->nelement && !spec->steps) {
        mc_node_fail(g, MC_EARG, "scan: there is neither a sequence nor a number of steps");
        return MC_EARG;
    }
    if (spec->truncate_gradient < 0 || spec->checkpoint < 0) {
        const bool checkpoint = spec->checkpoint < 0;
        mc_node_fail(g, MC_EARG, "scan: %s is %d", checkpoint ? "checkpoint" : "truncate_gradient",
                     checkpoint ? spec->checkpoint : spec->truncate_gradient);
        return MC_EARG;
    }
    if (spec->nstate + spec->ncollect == 0) {
        mc_node_fail(g, MC_EARG, "scan: there is neither a state nor a value to collect");
        return MC_EARG;
    }
    return MC_OK;
}

static mc_status node_status(const mc_node *n)
{
    return !mc_is_error(n) ? MC_OK : mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY;
}

static mc_status add_item(struct scan *s, struct mc_loop_item item)
{
    TRY(node_status(item.outer));
    return VEC_PUSH(s->item, item) ? MC_OK : MC_EMEMORY;
}

/* The sequence as a loop reads it that may run backwards. */
static mc_node *sequence_of(struct scan *s, mc_node *x)
{
    return s->spec->backwards ? mc_expr(s->g, "x[::-1]", (struct mc_bind[]){ { "x", x, NULL } }, 1) : x;
}

/* Is the value of a node that stands for an element or a state needed for n, and not only its sizes? */
static bool needs_values(const struct scan *s, const mc_node *n, int depth)
{
    if (mc_is_op(n, "scan_element") || mc_is_op(n, "scan_state") || depth == 0) {
        return true;
    }
    for (int k = 0; k < n->nin && !mc_reads_type_only(n); k++) {
        if (s->body[n->in[k]->id] && needs_values(s, n->in[k], depth - 1)) {
            return true;
        }
    }
    return false;
}

/* Random numbers of the body are drawn before the loop, those of all steps at once. */
static mc_status add_draw(struct scan *s, mc_node *draw)
{
    enum { DEEP = 20, MOST = 1 + MC_MOST_LOOP_INPUTS };
    mc_node *from[MOST], *to[MOST], *shape = draw->in[1];
    int n = 0;
    if (s->body[shape->id] && needs_values(s, shape, DEEP)) {
        mc_node_fail(s->g, MC_EUNSUPPORTED,
                     "scan: the shape of random numbers depends on values that the loop computes");
        return MC_EUNSUPPORTED;
    }
    for (int i = 0; i < s->spec->nelement + s->spec->nstate && i < MOST; i++) {
        const bool first = i < s->spec->nelement;
        from[n] = first ? s->spec->element[i] : s->spec->state[i - s->spec->nelement];
        to[n] = first ? mc_pick(from[n]->in[0], 0, mc_node_int(s->g, 0)) : from[n]->in[0];
        TRY(node_status(to[n++]));
    }
    TRY(mc_graph_replace(s->g, n, from, to, 1, &shape));
    struct mc_bind b[2] = { { "n", s->steps, NULL }, { "shape", shape, NULL } };
    mc_node *whole = draw->in[1]->type.rank == 0
                         ? mc_expr(s->g, "stack([cast(n, 'int64'), cast(shape, 'int64')])", b, 2)
                         : mc_expr(s->g, "concatenate(stack([cast(n, 'int64')]), cast(shape, 'int64'))", b,
                                   2);
    TRY(node_status(whole));
    mc_node *in[2] = { draw->in[0], whole };
    return add_item(s, (struct mc_loop_item){ .part = LOOP_SEQUENCE,
                                              .inner = draw,
                                              .outer = mc_apply(s->g, draw->op, 2, in, draw->attr) });
}

/* Marks the nodes of the body.  Draws that were made after the first element or state belong to it. */
static mc_status find_body(struct scan *s)
{
    uint32_t first = UINT32_MAX;
    s->body = mc_calloc(s->g->nodes.n + 1, sizeof *s->body, "scan");
    if (!s->body) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < s->spec->nelement + s->spec->nstate; i++) {
        const mc_node *x = i < s->spec->nelement ? s->spec->element[i]
                                                 : s->spec->state[i - s->spec->nelement];
        first = MC_MIN(first, x->id);
        s->body[x->id] = true;
    }
    for (size_t i = 0; i < s->count; i++) {
        mc_node *n = s->list[i];
        const bool given = s->body[n->id];
        for (int k = 0; k < n->nin && !given; k++) {
            s->body[n->id] |= s->body[n->in[k]->id];
        }
        if (!given && n->id > first && mc_is_op(n, "random_uniform")) {
            TRY(add_draw(s, n));
            s->body[n->id] = true;
        }
    }
    return MC_OK;
}

static bool is_constant(const struct scan *s, const mc_node *n)
{
    return !s->body[n->id] && !mc_is_const(n);
}

/* Is n an input of the body already? */
static bool is_item(const struct scan *s, const mc_node *n)
{
    for (size_t i = 0; i < s->item.n; i++) {
        if (s->item.at[i].inner == n) {
            return true;
        }
    }
    return false;
}

static mc_status add_constant(struct scan *s, mc_node *n)
{
    return is_item(s, n)
               ? MC_OK
               : add_item(s, (struct mc_loop_item){ .part = LOOP_CONSTANT, .outer = n, .inner = n });
}

/* What the body reads and does not compute. */
static mc_status find_constants(struct scan *s, int nout, mc_node *const *out)
{
    for (int i = 0; i < nout; i++) {
        TRY(is_constant(s, out[i]) ? add_constant(s, out[i]) : MC_OK);
    }
    for (size_t i = 0; i < s->count; i++) {
        mc_node *n = s->list[i];
        const bool edge = is_item(s, n);
        for (int k = 0; k < n->nin && s->body[n->id] && !edge; k++) {
            TRY(is_constant(s, n->in[k]) ? add_constant(s, n->in[k]) : MC_OK);
        }
    }
    return MC_OK;
}

static mc_status find_parts(struct scan *s)
{
    const mc_scan_spec *spec = s->spec;
    mc_node *out[MC_MOST_RESULTS];
    int nout = 0;
    if (spec->nstate + spec->ncollect + (spec->until != NULL) > MC_MOST_RESULTS ||
        spec->nelement + spec->nstate > MC_MOST_LOOP_INPUTS) {
        mc_node_fail(s->g, MC_EUNSUPPORTED, "scan: more than %d results", MC_MOST_RESULTS);
        return MC_EUNSUPPORTED;
    }
    for (int i = 0; i < spec->nstate; i++) {
        out[nout++] = spec->next[i];
    }
    for (int i = 0; i < spec->ncollect; i++) {
        out[nout++] = spec->collect[i];
    }
    if (spec->until) {
        out[nout++] = spec->until;
    }
    s->list = mc_graph_reach(nout, out, &s->count);
    if (!s->list) {
        return MC_EMEMORY;
    }
    s->steps = spec->steps ? spec->steps : mc_size_of(spec->element[0]->in[0], 0);
    TRY(node_status(s->steps));
    for (int i = 0; i < spec->nelement; i++) {
        TRY(add_item(s, (struct mc_loop_item){ .part = LOOP_SEQUENCE,
                                               .inner = spec->element[i],
                                               .outer = sequence_of(s, spec->element[i]->in[0]) }));
    }
    for (int i = 0; i < spec->nstate; i++) {
        TRY(add_item(s, (struct mc_loop_item){ .part = LOOP_STATE,
                                               .inner = spec->state[i],
                                               .kept = true,
                                               .outer = spec->state[i]->in[0],
                                               .next = spec->next[i] }));
    }
    TRY(find_body(s));
    return find_constants(s, nout, out);
}

/* *made, if not NULL: how the loop was made; its items are freed by the caller. */
static mc_node *loop_of(mc_graph *g, const mc_scan_spec *spec, const bool *kept, struct mc_loop_spec *made)
{
    struct scan s = { .g = g, .spec = spec };
    mc_node *loop = g->error;
    mc_status st = check(g, spec);
    st = st < 0 ? st : find_parts(&s);
    for (int i = 0; st == MC_OK && i < spec->nstate; i++) {
        s.item.at[spec->nelement + i].kept = !kept || kept[i];
    }
    *made = (struct mc_loop_spec){ .from = g,
                                   .steps = s.steps,
                                   .item = s.item.at,
                                   .nitem = (int)s.item.n,
                                   .collect = spec->collect,
                                   .ncollect = spec->ncollect,
                                   .until = spec->until,
                                   .truncate = spec->truncate_gradient };
    if (st == MC_OK) {
        loop = mc_loop_make(g, made);
        loop = spec->checkpoint && !mc_is_error(loop) ? mc_loop_checkpointed(loop, spec->checkpoint) : loop;
    } else if (st == MC_EMEMORY) {
        loop = mc_node_no_memory(g);
    }
    mc_free(s.list);
    mc_free(s.body);
    return loop;
}

mc_node *mc_loop_of_nodes(mc_graph *g, const mc_scan_spec *spec, const bool *kept)
{
    struct mc_loop_spec made;
    mc_node *loop = loop_of(g, spec, kept, &made);
    mc_free(made.item);
    return loop;
}

/* The results as the user sees them: with `until`, only the steps that were made. */
static mc_node *results(mc_graph *g, const mc_scan_spec *spec, mc_node *loop, const struct mc_loop_spec *made)
{
    mc_node *out[2 * MC_MOST_RESULTS], *count = spec->until ? mc_item(loop, loop->nout - 1) : NULL;
    int n = 0;
    for (int i = 0; i < spec->nstate; i++) {
        out[n++] = mc_item(loop, made->item[spec->nelement + i].all);
    }
    for (int i = 0; i < spec->ncollect; i++) {
        out[n++] = mc_item(loop, made->collected + i);
    }
    for (int i = 0; i < n && count; i++) {
        out[i] = mc_expr(g, "x[:n]", (struct mc_bind[]){ { "x", out[i], NULL }, { "n", count, NULL } }, 2);
    }
    for (int i = 0; i < spec->nstate; i++) {
        out[n++] = mc_item(loop, made->item[spec->nelement + i].result);
    }
    return n == 1 ? out[0] : mc_node_make(g, &mc_op_tuple, n, out, NULL);
}

mc_node *mc_scan(mc_graph *g, const mc_scan_spec *spec)
{
    struct mc_loop_spec made;
    if (!g || !spec) {
        mc_fail(MC_EARG, "scan: the %s is NULL", g ? "spec" : "graph");
        return g ? g->error : NULL;
    }
    mc_node *loop = loop_of(g, spec, NULL, &made);
    loop = mc_is_error(loop) ? loop : results(g, spec, loop, &made);
    mc_free(made.item);
    return loop;
}

/* ---- taps, maps and folds ---- */

static const char *name_of(const mc_node *n)
{
    return n->name ? n->name : "";
}

mc_status mc_scan_taps(mc_node *sequence, int n, const int *tap, mc_node **element)
{
    int first = 0, last = 0;
    if (mc_is_error(sequence) || n < 1 || !tap || !element) {
        return mc_fail(MC_EARG, "scan: taps need a sequence, and room for at least one element");
    }
    for (int i = 0; i < n; i++) {
        first = MC_MIN(first, tap[i]);
        last = MC_MAX(last, tap[i]);
    }
    mc_node *x = mc_tap_checked(sequence, name_of(sequence), false, last - first);
    for (int i = 0; i < n; i++) {
        element[i] = mc_is_error(x) ? x : mc_scan_element(mc_tap_slice(x, tap[i], first, last));
        TRY(node_status(element[i]));
    }
    return MC_OK;
}

mc_status mc_scan_states(mc_node *initial, int n, mc_node **state)
{
    if (mc_is_error(initial) || n < 1 || n > MC_MOST_STATES || !state) {
        return mc_fail(MC_EARG, "scan: a block of initial values is for 1 to %d states", MC_MOST_STATES);
    }
    mc_node *x = mc_tap_checked(initial, name_of(initial), true, n);
    for (int i = 0; i < n; i++) {
        state[i] = mc_is_error(x) ? x : mc_scan_state(mc_tap_initial(x, n, i + 1));
        TRY(node_status(state[i]));
    }
    return MC_OK;
}

mc_node *mc_scan_map(mc_graph *g, int nelement, mc_node *const *element, mc_node *value)
{
    return mc_item(
        mc_scan(
            g, &(mc_scan_spec){ .element = element, .nelement = nelement, .collect = &value, .ncollect = 1 }),
        0);
}

static mc_node *fold(mc_graph *g, int nelement, mc_node *const *element, mc_node *state, mc_node *next,
                     bool backwards)
{
    return mc_item(mc_scan(g, &(mc_scan_spec){ .element = element,
                                               .nelement = nelement,
                                               .state = &state,
                                               .next = &next,
                                               .nstate = 1,
                                               .backwards = backwards }),
                   1);
}

mc_node *mc_scan_foldl(mc_graph *g, int nelement, mc_node *const *element, mc_node *state, mc_node *next)
{
    return fold(g, nelement, element, state, next, false);
}

mc_node *mc_scan_foldr(mc_graph *g, int nelement, mc_node *const *element, mc_node *state, mc_node *next)
{
    return fold(g, nelement, element, state, next, true);
}

mc_node *mc_scan_reduce(mc_graph *g, int nelement, mc_node *const *element, mc_node *state, mc_node *next)
{
    return fold(g, nelement, element, state, next, false);
}
