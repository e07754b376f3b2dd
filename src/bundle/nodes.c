/* nodes.c: variables, and the nodes of one function's graph.
 *
 * Nodes are made again by mc_node_make, which infers their types: what comes from a file is a graph like any
 * other.  A node's inputs precede it.
 *
 * Invariant: each node of the file is a new node of the graph, so that numbers of nodes stand for nodes. */
#include "bundle/bundle.h"
#include "op/ifelse.h"
#include "op/loop.h"
#include <stdlib.h>

/* ---- variables ---- */

/* What calls may change of a variable. */
struct state { mc_array *value; int streams; };

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (struct mc_shared *const *)a,
                    y = (uintptr_t) * (struct mc_shared *const *)b;
    return x < y ? -1 : x > y;
}

/* The states of all variables at one moment: after a call, or before it.  Locks them as calls do. */
static mc_status states_of(const struct mc_bundle_shared *s, struct state *state)
{
    struct mc_shared **sorted = mc_alloc(((size_t)s->n + 1) * sizeof *sorted, "bundle");
    mc_status status = sorted ? MC_OK : MC_EMEMORY;
    if (sorted && s->n) {
        memcpy(sorted, s->at, (size_t)s->n * sizeof *sorted);
        qsort(sorted, (size_t)s->n, sizeof *sorted, by_address);
    }
    for (int i = 0; sorted && i < s->n; i++) {
        pthread_mutex_lock(&sorted[i]->lock);
    }
    for (int i = 0; i < s->n && status == MC_OK; i++) {
        state[i] = (struct state){ mc_array_copy(s->at[i]->value), s->at[i]->random };
        status = state[i].value ? MC_OK : mc_last_status();
    }
    for (int i = s->n; sorted && i-- > 0;) {
        pthread_mutex_unlock(&sorted[i]->lock);
    }
    mc_free(sorted);
    return status;
}

static void variable(struct mc_wire *w, struct mc_shared **at, const struct state *state)
{
    struct mc_shared *s = *at;
    const char *name = w->reading ? NULL : s->name;
    struct mc_type type = w->reading ? (struct mc_type){ 0 } : s->type;
    mc_array *value = state->value;
    mc_wire_text(w, &name);
    mc_wire_type(w, &type);
    mc_wire_array(w, &value);
    const bool random = mc_wire_bool(w, !w->reading && s->is_random);
    const int streams = mc_wire_int(w, state->streams, 0, INT32_MAX);
    if (!w->reading) {
        return;
    }
    bool fits = mc_wire_good(w) && value && name && value->dtype == type.dtype && value->rank == type.rank;
    for (int i = 0; fits && i < type.rank; i++) {
        fits = type.dims[i] < 0 || type.dims[i] == value->dims[i];
    }
    if (!fits) {
        mc_wire_fail(w, "a variable has a value of another type");
        mc_array_unref(&value);
        return;
    }
    s = *at = mc_calloc(1, sizeof *s, "shared");
    if (!s || !(s->name = mc_strdup(name))) {
        w->status = MC_EMEMORY;
        mc_array_unref(&value);
        mc_free(s);
        *at = NULL;
        return;
    }
    s->refs = 1;
    s->type = type;
    s->value = value;
    s->is_random = random;
    s->random = streams;
    pthread_mutex_init(&s->lock, NULL);
}

void mc_wire_shared(struct mc_wire *w, struct mc_bundle_shared *s)
{
    s->n = mc_wire_int(w, s->n, 0, INT32_MAX);
    s->at = mc_wire_list(w, s->at, s->n, sizeof *s->at);
    struct state *state = mc_wire_good(w) ? mc_calloc((size_t)s->n + 1, sizeof *state, "bundle") : NULL;
    if (mc_wire_good(w)) {
        w->status = !state ? MC_EMEMORY : w->reading ? MC_OK : states_of(s, state);
    }
    for (int i = 0; i < s->n && mc_wire_good(w); i++) {
        variable(w, &s->at[i], &state[i]);
    }
    for (int i = 0; i < s->n && state; i++) {
        mc_array_unref(&state[i].value);
    }
    mc_free(state);
}

/* ---- users' ops ---- */

/* Why an op cannot be in a file; NULL: its code is text, and is compiled. */
static const char *code_missing(const struct mc_custom *c, bool on_host)
{
    return c->kernel            ? NULL
           : c->infer           ? "finds its sizes by a function of the program (infer)"
           : c->run && !c->cuda ? "computes by a function of the program (run)"
           : on_host && c->run  ? "computes by a function of the program (run) on the CPU"
           : on_host            ? "has code for a GPU alone (cuda)"
                                : NULL;
}

static void custom_op(struct mc_wire *w, mc_graph *g, const struct mc_op *op, bool on_host)
{
    struct mc_custom row = op ? *op->custom : (struct mc_custom){ 0 };
    const char *why = op ? code_missing(&row, on_host) : NULL;
    if (why) {
        w->status = mc_fail(MC_EUNSUPPORTED,
                            "%s: the op '%s' %s, which no file can hold; give it as C text (kernel)%s",
                            w->what, row.name, why, on_host ? "" : ", or as CUDA C (cuda) without infer");
        return;
    }
    mc_wire_text(w, &row.name);
    mc_wire_text(w, &row.kernel);
    mc_wire_text(w, &row.cuda);
    MC_WIRE_INT(w, row.nin, 0, INT32_MAX);
    MC_WIRE_INT(w, row.nout, 1, INT32_MAX);
    MC_WIRE_INT(w, row.threads, 0, INT32_MAX);
    if (w->reading && mc_wire_good(w) && mc_register(g, &row) < 0) {
        w->status = mc_last_status() == MC_EMEMORY ? MC_EMEMORY : MC_OK;
        mc_wire_fail(w, mc_last_error());
    }
}

typedef VEC(const struct mc_op *) op_list;

/* Those that nodes apply, the nodes of bodies too, each once. */
static bool find_custom_ops(op_list *list, int64_t n, mc_node *const *node)
{
    bool good = true;
    for (int64_t i = 0; i < n && good; i++) {
        const struct mc_op *op = node[i]->op;
        size_t k = 0;
        while (k < list->n && list->at[k] != op) {
            k++;
        }
        good = !op->custom || k < list->n || VEC_PUSH(*list, op);
        for (int b = 0; b < mc_bodies_of(op) && good; b++) {
            const struct mc_graph *body = node[i]->attr[b].body->graph;
            good = find_custom_ops(list, (int64_t)body->nodes.n, body->nodes.at);
        }
    }
    return good;
}

static void custom_ops(struct mc_wire *w, mc_graph *g, const struct mc_bundle_nodes *nodes, bool on_host)
{
    op_list list = { 0 };
    if (!w->reading && !find_custom_ops(&list, nodes->n, nodes->at)) {
        w->status = MC_EMEMORY;
    }
    const int n = mc_wire_int(w, (int)list.n, 0, INT32_MAX);
    for (int i = 0; i < n && mc_wire_good(w); i++) {
        custom_op(w, g, w->reading ? NULL : list.at[i], on_host);
    }
    VEC_FREE(list);
}

const struct mc_op *mc_wire_op(const mc_graph *g, const char *name)
{
    for (size_t i = 0; i < g->custom.n; i++) {
        if (strcmp(g->custom.at[i]->name, name) == 0) {
            return g->custom.at[i];
        }
    }
    return mc_op_find(name);
}

/* ---- nodes ---- */

void mc_wire_node(struct mc_wire *w, const struct mc_bundle_nodes *nodes, mc_node **n)
{
    int64_t i = w->reading ? 0 : nodes->number[(*n)->id];
    mc_wire_number(w, &i, 0, nodes->n - 1);
    if (w->reading) {
        *n = mc_wire_good(w) ? nodes->at[i] : NULL;
    }
}

/* The nodes of one graph, in their order. */
struct listing {
    mc_graph *g;
    const struct mc_bundle_shared *s;
    bool is_body;               /* the graph is a body */
    const char *file;           /* the source file of the node before; most nodes have the same one */
    VEC(const struct mc_body *) body; /* those that were written or read, by number; reading: counted */
};

static void body(struct mc_wire *w, struct listing *l, struct mc_attr *a, bool loop);

static void attribute(struct mc_wire *w, struct listing *l, const struct mc_op *op, struct mc_attr *a,
                      const struct mc_param *p)
{
    MC_WIRE_FIELD(w, a->kind, p->kind);
    MC_WIRE_BOOL(w, a->none);
    MC_WIRE_INT(w, a->n, 0, INT32_MAX);
    MC_WIRE_LIST(w, a->ints, a->n);
    for (int i = 0; i < a->n && mc_wire_good(w); i++) {
        mc_wire_number(w, &a->ints[i], INT64_MIN, INT64_MAX);
    }
    mc_wire_bytes(w, &a->real, sizeof a->real);
    mc_wire_text(w, &a->text);
    /* ops read these without a test */
    const bool one = p->kind == ATTR_INT || p->kind == ATTR_BOOL || p->kind == ATTR_DTYPE;
    if (w->reading && !a->none &&
        ((one && a->n != 1) || ((p->kind == ATTR_TEXT || p->kind == ATTR_BODY) && !a->text) ||
         (p->kind == ATTR_DTYPE && a->n == 1 && a->ints && (uint64_t)a->ints[0] >= MC_NDTYPE))) {
        mc_wire_fail(w, "an attribute has no value");
    }
    if (p->kind == ATTR_BODY && mc_wire_good(w)) {
        body(w, l, a, op->form == FORM_LOOP);
    }
}

static bool is_number(const struct mc_attr *a, int64_t most)
{
    return !a->none && a->n == 1 && a->ints[0] >= 0 && a->ints[0] <= most;
}

/* What passes read of loops and branches without a test. */
static bool has_meaning(const struct mc_op *op, const struct mc_attr *a)
{
    bool good = true;
    for (int i = 0; i < mc_bodies_of(op); i++) {
        good = good && !a[i].none && a[i].body;
    }
    if (op->form == FORM_LOOP) {
        for (int i = LOOP_BODY + 1; i < MC_LOOP_ATTRS; i++) {
            good = good && is_number(&a[i], i == LOOP_KEPT ? (INT64_C(1) << MC_MOST_STATES) - 1
                                                           : MC_MOST_LOOP_INPUTS);
        }
    } else if (op->form == FORM_BRANCH) {
        good = good && is_number(&a[BRANCH_VALUES], MC_MOST_RESULTS) && is_number(&a[BRANCH_RAGGED], 1);
    } else if (op->form == FORM_IFELSE) {
        good = is_number(&a[IFELSE_RAGGED], 1);
    }
    return good;
}

enum kind { NODE_INPUT, NODE_CONSTANT, NODE_SHARED, NODE_ITEM, NODE_OP, NODE_KINDS };

static enum kind kind_of(const mc_node *n)
{
    return n->op == &mc_op_input      ? NODE_INPUT
           : n->op == &mc_op_constant ? NODE_CONSTANT
           : n->op == &mc_op_shared   ? NODE_SHARED
           : n->op == &mc_op_item     ? NODE_ITEM
                                      : NODE_OP;
}

static mc_node *input(struct mc_wire *w, mc_graph *g, mc_node *n)
{
    struct mc_type type = n ? n->type : (struct mc_type){ 0 };
    mc_wire_type(w, &type);
    return w->reading && mc_wire_good(w) ? mc_node_blank(g, &type) : n;
}

static mc_node *constant(struct mc_wire *w, mc_graph *g, mc_node *n)
{
    mc_array *value = n ? n->value : NULL;
    const bool weak = mc_wire_bool(w, n && n->weak);
    mc_wire_array(w, &value);
    if (!w->reading) {
        return n;
    }
    return value ? mc_node_const(g, value, weak) : NULL;
}

static bool accepts(const struct mc_type *t, const struct mc_type *sizes)
{
    bool good = t->dtype == sizes->dtype && t->rank == sizes->rank;
    for (int i = 0; good && i < t->rank; i++) {
        good = t->dims[i] < 0 || t->dims[i] == sizes->dims[i];
    }
    return good;
}

static mc_node *shared(struct mc_wire *w, const struct listing *l, mc_node *n)
{
    int at = 0;
    while (n && l->s->at[at] != n->shared) {
        at++;
    }
    at = mc_wire_int(w, at, 0, l->is_body ? -1 : l->s->n - 1);
    struct mc_type type = n ? n->type : (struct mc_type){ 0 };
    mc_wire_type(w, &type);
    if (w->reading && mc_wire_good(w)) {
        n = mc_shared_node(l->g, l->s->at[at]);
        if (!mc_is_error(n) && !accepts(&l->s->at[at]->type, &type)) {
            mc_wire_fail(w, "a shared variable has another type than before");
        } else if (!mc_is_error(n)) {
            n->type = type; /* with the sizes that the function was compiled for */
        }
    }
    return n;
}

static mc_node *item(struct mc_wire *w, const struct mc_bundle_nodes *before, mc_node *n)
{
    mc_node *of = n ? n->in[0] : NULL;
    mc_wire_node(w, before, &of);
    const int i = mc_wire_int(w, n ? n->item : 0, 0, INT32_MAX);
    return w->reading && mc_wire_good(w) ? mc_item(of, i) : n;
}

/* Ops that are other names of ops are never nodes.  An op whose inputs are not as many as its signature says
 * would read beyond them. */
static bool takes(const struct mc_op *op, int nin)
{
    int least = 0;
    for (int i = 0; i < op->sig->ntensor; i++) {
        least += !op->sig->param[i].optional;
    }
    return op->infer && !(op->flags & OP_LEAF) && nin >= least &&
           (op->sig->variadic || nin <= op->sig->ntensor);
}

static mc_node *of_op(struct mc_wire *w, struct listing *l, const struct mc_bundle_nodes *before, mc_node *n)
{
    const char *name = n ? n->op->name : NULL;
    mc_wire_text(w, &name);
    const struct mc_op *op = n ? n->op : mc_wire_good(w) && name ? mc_wire_op(l->g, name) : NULL;
    const int nin = mc_wire_int(w, n ? n->nin : 0, 0, INT32_MAX);
    if (mc_wire_good(w) && (!op || (w->reading && !takes(op, nin)))) {
        mc_wire_fail(w, "it has an op that there is not");
    }
    mc_node **in = mc_wire_list(w, n ? n->in : NULL, nin, sizeof *in);
    for (int i = 0; i < nin && mc_wire_good(w); i++) {
        mc_wire_node(w, before, &in[i]);
    }
    const int nattr = op ? op->sig->nattr : 0;
    struct mc_attr *attr = mc_wire_list(w, n ? (struct mc_attr *)n->attr : NULL, nattr, sizeof *attr);
    for (int i = 0; i < nattr && mc_wire_good(w); i++) {
        attribute(w, l, op, &attr[i], &op->sig->param[op->sig->nparam - nattr + i]);
    }
    if (w->reading && mc_wire_good(w) && !has_meaning(op, attr)) {
        mc_wire_fail(w, "a loop or an ifelse has no meaning");
    }
    return w->reading && mc_wire_good(w) ? mc_node_make(l->g, op, nin, in, attr) : n;
}

static void label(struct mc_wire *w, mc_graph *g, mc_node *n)
{
    const struct mc_label *have = w->reading ? NULL : n->label;
    if (!mc_wire_bool(w, have)) {
        return;
    }
    const char *text = have ? have->text : NULL, *of = have ? have->of : NULL;
    mc_wire_text(w, &text);
    mc_wire_text(w, &of);
    const bool gradient = mc_wire_bool(w, have && have->gradient);
    const bool differentiated = mc_wire_bool(w, have && have->differentiated);
    if (w->reading && mc_wire_good(w)) {
        n->label = mc_label_of(g, text, of, gradient);
        if (differentiated) { /* by a gradient whose nodes may be in no step */
            mc_label_of(g, text, NULL, true);
        }
    }
}

/* The user's line, for messages. */
static void place(struct mc_wire *w, struct listing *l, mc_node *n)
{
    const char *last = l->file ? l->file : "", *own = w->reading ? NULL : n->file;
    if (mc_wire_bool(w, strcmp(own ? own : "", last) != 0)) {
        mc_wire_text(w, &own);
        l->file = own;
    }
    const int line = mc_wire_int(w, w->reading ? 0 : n->line, INT32_MIN, INT32_MAX);
    if (w->reading && mc_wire_good(w)) {
        n->file = l->file;
        n->line = line;
    }
}

static void node(struct mc_wire *w, struct listing *l, const struct mc_bundle_nodes *before, mc_node **at)
{
    mc_graph *g = l->g;
    const size_t had = g->nodes.n;
    mc_node *n = w->reading ? NULL : *at;
    const char *name = n ? n->name : NULL;
    switch (mc_wire_int(w, n ? (int)kind_of(n) : 0, 0, NODE_KINDS - 1)) {
    case NODE_INPUT: n = input(w, g, n); break;
    case NODE_CONSTANT: n = constant(w, g, n); break;
    case NODE_SHARED: n = shared(w, l, n); break;
    case NODE_ITEM: n = item(w, before, n); break;
    default: n = of_op(w, l, before, n); break;
    }
    if (w->reading && mc_wire_good(w) && (mc_is_error(n) || n->id != had)) {
        w->status = g->status == MC_EMEMORY ? MC_EMEMORY : MC_OK;
        mc_wire_fail(w, g->status < 0 ? mc_error(g) : "a node is there twice");
    }
    mc_wire_text(w, &name);
    if (mc_wire_good(w)) {
        label(w, g, n);
        place(w, l, n);
    }
    if (w->reading && mc_wire_good(w)) {
        n->name = n->name || !name ? n->name : mc_arena_str(&g->arena, name, strlen(name));
        w->status = name && !n->name ? MC_EMEMORY : w->status;
        *at = n;
    }
}

/* Kernels were compiled for the types that nodes had: those that are inferred now must be the same. */
static void types(struct mc_wire *w, const struct mc_bundle_nodes *nodes)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < nodes->n && mc_wire_good(w); i++) {
        for (int k = 0; k < nodes->at[i]->nout; k++) {
            const struct mc_type *t = &nodes->at[i]->types[k];
            sum = mc_hash_mix(mc_hash_mix(sum, (uint64_t)t->dtype), (uint64_t)t->rank);
            sum = mc_hash(t->dims, (size_t)t->rank * sizeof *t->dims, sum);
        }
    }
    const uint64_t here = sum;
    mc_wire_bytes(w, &sum, sizeof sum);
    if (w->reading && mc_wire_good(w) && sum != here) {
        mc_wire_fail(w, "a node has another type than before");
    }
}

static void list_nodes(struct mc_wire *w, struct listing *l, struct mc_bundle_nodes *nodes)
{
    struct mc_bundle_nodes before = *nodes;
    for (int64_t i = 0; i < nodes->n && mc_wire_good(w); i++) {
        before.n = i;
        node(w, l, &before, &nodes->at[i]);
    }
    types(w, nodes);
    for (size_t i = 0; i < l->body.n && w->reading; i++) {
        mc_body_unref(l->body.at[i]);
    }
    VEC_FREE(l->body);
}

void mc_wire_nodes(struct mc_wire *w, mc_graph *g, const struct mc_bundle_shared *s,
                   struct mc_bundle_nodes *nodes, bool on_host)
{
    struct listing l = { .g = g, .s = s };
    mc_wire_number(w, &nodes->n, 0, INT32_MAX);
    nodes->at = mc_wire_list(w, nodes->at, nodes->n, sizeof *nodes->at);
    if (mc_wire_good(w)) {
        custom_ops(w, g, nodes, on_host);
    }
    list_nodes(w, &l, nodes);
}

/* ---- bodies ---- */

/* Replaces formula ops by their formulas, which may have others.  How many there were; negative: error. */
static int expand_once(mc_graph *g, int nout, mc_node **out)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(nout, out, &count);
    mc_node **from = mc_alloc((count + 1) * sizeof *from, "bundle"),
            **to = mc_alloc((count + 1) * sizeof *to, "bundle");
    mc_status s = list && from && to ? MC_OK : MC_EMEMORY;
    int n = 0;
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        mc_node *x = list[i];
        if (x->op->flags & OP_EXPANDS) {
            from[n] = x;
            to[n] = mc_formula_expand(g, x->op, x->nin, x->in, x->attr);
            s = mc_is_error(to[n++]) ? g->status : s;
        }
    }
    s = s == MC_OK && n ? mc_graph_replace(g, n, from, to, nout, out) : s;
    mc_free(list), mc_free(from), mc_free(to);
    return s < 0 ? (int)s : n;
}

/* A copy without formula ops, which the runtime library does not have.  out: its results.  NULL: error */
static const struct mc_body *expanded(const struct mc_body *b, mc_node **out)
{
    const struct mc_body *own = mc_body_make(b->graph, b->nin, b->in, b->nout, b->out);
    int n = own ? 1 : -1;
    for (int i = 0; i < b->nout && own; i++) {
        out[i] = own->out[i];
    }
    while (n > 0) {
        n = expand_once(own->graph, own->nout, out);
    }
    if (n < 0) {
        mc_body_unref(own);
    }
    return n < 0 ? NULL : own;
}

/* The inputs first, then the others in the order of ids.  out: the results */
static bool collect_body(const struct mc_body *b, mc_node *const *out, struct mc_bundle_nodes *nodes)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(b->nout, out, &count);
    nodes->at = mc_alloc((count + (size_t)b->nin + 1) * sizeof *nodes->at, "bundle");
    nodes->number = mc_alloc((b->graph->nodes.n + 1) * sizeof *nodes->number, "bundle");
    const bool good = list && nodes->at && nodes->number;
    nodes->n = 0;
    for (int i = 0; i < b->nin && good; i++) {
        nodes->number[b->in[i]->id] = nodes->n;
        nodes->at[nodes->n++] = b->in[i];
    }
    for (size_t i = 0; i < count && good; i++) {
        if (list[i]->op != &mc_op_input) {
            nodes->number[list[i]->id] = nodes->n;
            nodes->at[nodes->n++] = list[i];
        }
    }
    mc_free(list);
    return good;
}

/* Are the first nin nodes inputs, and no others? */
static bool is_closed(const struct mc_bundle_nodes *nodes, int nin)
{
    bool good = nodes->n >= nin;
    for (int64_t i = 0; i < nodes->n && good; i++) {
        good = (nodes->at[i]->op == &mc_op_input) == (i < nin);
    }
    return good;
}

/* b NULL: reading.  The caller owns the reference that is returned; NULL: error, which w has. */
static const struct mc_body *body_nodes(struct mc_wire *w, const struct listing *outer,
                                        const struct mc_body *b, const char *text)
{
    struct mc_bundle_nodes nodes = { 0 };
    mc_node *out[MC_MOST_RESULTS];
    const struct mc_body *own = b ? expanded(b, out) : NULL;
    struct listing l = { .g = own ? own->graph : b ? b->graph : mc_graph_make(outer->g->language),
                         .s = outer->s,
                         .is_body = true };
    if (b ? !own || !collect_body(own, out, &nodes) : !l.g || l.g->language->share(l.g, outer->g) < 0) {
        w->status = MC_EMEMORY;
    }
    const int nin = mc_wire_int(w, b ? b->nin : 0, 0, INT32_MAX - 1),
              nout = mc_wire_int(w, b ? b->nout : 0, 0, MC_MOST_RESULTS);
    mc_wire_number(w, &nodes.n, 0, INT32_MAX);
    nodes.at = mc_wire_list(w, nodes.at, nodes.n, sizeof *nodes.at);
    if (mc_wire_good(w)) {
        list_nodes(w, &l, &nodes);
    }
    for (int i = 0; i < nout && mc_wire_good(w); i++) {
        mc_wire_node(w, &nodes, &out[i]);
    }
    if (b) {
        mc_body_unref(own);
        mc_free(nodes.at);
        mc_free(nodes.number);
        return b;
    }
    if (mc_wire_good(w) && !is_closed(&nodes, nin)) {
        mc_wire_fail(w, "a body has a value of elsewhere");
    }
    if (!mc_wire_good(w)) {
        mc_graph_free(l.g);
        return NULL;
    }
    b = mc_body_of(l.g, nin, nodes.at, nout, out, text);
    w->status = b ? w->status : MC_EMEMORY;
    return b;
}

/* A body that was there before is its number. */
static void body(struct mc_wire *w, struct listing *l, struct mc_attr *a, bool loop)
{
    size_t at = 0;
    while (at < l->body.n && (w->reading || l->body.at[at] != a->body)) {
        at++;
    }
    at = (size_t)mc_wire_int(w, (int)at, 0, (int64_t)l->body.n);
    if (at == l->body.n && mc_wire_enter(w, loop)) {
        const struct mc_body *b = body_nodes(w, l, w->reading ? NULL : a->body, a->text);
        mc_wire_leave(w, loop);
        if (b && !VEC_PUSH(l->body, b)) {
            w->status = MC_EMEMORY;
            if (w->reading) {
                mc_body_unref(b);
            }
        }
    }
    if (w->reading) {
        a->body = mc_wire_good(w) ? l->body.at[at] : NULL;
    }
}
