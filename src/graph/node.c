/* node.c: makes nodes.  Equal nodes are one node; every node passes through mc_node_make or mc_node_leaf.
 *
 * Invariant: nodes[i]->id == i, inputs have smaller ids, and no two nodes of a graph are equal (same op,
 * inputs, attributes), except inputs, impure ops and the error node. */
#include "graph/graph.h"

static mc_status leaf_infer(struct mc_infer *in)
{
    (void)in;
    return MC_OK;
}

static mc_status item_infer(struct mc_infer *in)
{
    (void)in;
    return MC_OK;
}

static mc_status tuple_infer(struct mc_infer *in)
{
    if (in->nin > (int)NELEM(in->out)) {
        return mc_fail(MC_EARG, "tuple: more than %d results", (int)NELEM(in->out));
    }
    in->nout = in->nin;
    memcpy(in->out, in->in, (size_t)in->nin * sizeof in->in[0]);
    return MC_OK;
}

static const struct mc_signature no_params;
const struct mc_op mc_op_error    = { .name = "error",    .nout = 1, .flags = OP_LEAF | OP_HIDDEN, .infer = leaf_infer, .sig = &no_params };
const struct mc_op mc_op_input    = { .name = "input",    .nout = 1, .flags = OP_LEAF | OP_HIDDEN, .infer = leaf_infer, .sig = &no_params };
const struct mc_op mc_op_constant = { .name = "constant", .nout = 1, .flags = OP_LEAF | OP_HIDDEN, .infer = leaf_infer, .sig = &no_params };
const struct mc_op mc_op_shared   = { .name = "shared",   .nout = 1, .flags = OP_LEAF | OP_HIDDEN, .infer = leaf_infer, .sig = &no_params };
const struct mc_op mc_op_item     = { .name = "item",     .nout = 1, .flags = OP_HIDDEN,           .infer = item_infer, .sig = &no_params };
const struct mc_op mc_op_tuple    = { .name = "tuple",    .nout = 1, .flags = OP_HIDDEN,           .infer = tuple_infer, .sig = &no_params };

static _Thread_local const char *node_file;
static _Thread_local int node_line;

void mc_here(const char *file, int line)
{
    node_file = file;
    node_line = line;
}

void mc_user_line_text(char *text, size_t n)
{
    *text = 0;
    if (node_file) {
        mc_snprintf(text, n, "\n    at %s:%d", node_file, node_line);
    }
}

/* ---- equality ---- */

static uint64_t attr_hash(uint64_t h, const struct mc_attr *a)
{
    h = mc_hash_mix(h, (uint64_t)a->kind * 2 + a->none);
    h = mc_hash_mix(h, (uint64_t)a->n);
    if (a->n) {
        h = mc_hash(a->ints, (size_t)a->n * sizeof *a->ints, h);
    }
    h = mc_hash(&a->real, sizeof a->real, h);
    return a->text ? mc_hash(a->text, strlen(a->text), h) : h;
}

bool mc_attr_equal(const struct mc_attr *a, const struct mc_attr *b)
{
    return a->kind == b->kind && a->none == b->none && a->n == b->n &&
           (a->n == 0 || memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints) == 0) &&
           memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
           (a->text == b->text || (a->text && b->text && strcmp(a->text, b->text) == 0));
}

static uint64_t node_hash(const struct mc_node *n)
{
    uint64_t h = (uint64_t)(uintptr_t)n->op;
    for (int i = 0; i < n->nin; i++) {
        h = mc_hash_mix(h, n->in[i]->id);
    }
    for (int i = 0; i < n->op->sig->nattr; i++) {
        h = attr_hash(h, &n->attr[i]);
    }
    h = mc_hash_mix(h, (uint64_t)n->item * 2 + n->weak);
    if (n->value) {
        h = mc_hash_mix(h, n->value->dtype);
        h = mc_hash(n->value->dims, (size_t)n->value->rank * sizeof(int64_t), h);
        h = mc_hash(n->value->data, (size_t)mc_array_size(n->value) * mc_dtypes[n->value->dtype].size, h);
    }
    return mc_hash_mix(h, (uint64_t)(uintptr_t)n->shared);
}

static bool node_equal(const struct mc_node *a, const struct mc_node *b)
{
    if (a->op != b->op || a->nin != b->nin || a->item != b->item || a->weak != b->weak ||
        a->shared != b->shared) {
        return false;
    }
    for (int i = 0; i < a->nin; i++) {
        if (a->in[i] != b->in[i]) {
            return false;
        }
    }
    for (int i = 0; i < a->op->sig->nattr; i++) {
        if (!mc_attr_equal(&a->attr[i], &b->attr[i])) {
            return false;
        }
    }
    return a->value == b->value || (a->value && b->value && mc_array_same_bits(a->value, b->value));
}

/* Inputs with equal types are different nodes, and an op with an effect runs as often as it was written. */
static bool is_shareable(const struct mc_node *n)
{
    return n->op != &mc_op_input && n->op != &mc_op_error && !(n->op->flags & OP_IMPURE);
}

static bool cons_grow(mc_graph *g)
{
    size_t cap = g->cons.cap ? g->cons.cap * 2 : 256;
    uint32_t *slot = mc_calloc(cap, sizeof *slot, "nodes");
    if (!slot) {
        return false;
    }
    for (size_t i = 0; i < g->cons.cap; i++) {
        if (g->cons.slot[i]) {
            size_t at = g->nodes.at[g->cons.slot[i] - 1]->hash & (cap - 1);
            while (slot[at]) {
                at = (at + 1) & (cap - 1);
            }
            slot[at] = g->cons.slot[i];
        }
    }
    mc_free(g->cons.slot);
    g->cons.slot = slot;
    g->cons.cap = cap;
    return true;
}

/* Returns the node equal to n, or adds n to the graph; NULL: no memory. */
static mc_node *intern(mc_graph *g, struct mc_node *n)
{
    bool share = is_shareable(n);
    size_t at = 0;

    if (share) {
        if ((g->cons.n + 1) * 2 > g->cons.cap && !cons_grow(g)) {
            return NULL;
        }
        n->hash = node_hash(n);
        for (at = n->hash & (g->cons.cap - 1); g->cons.slot[at]; at = (at + 1) & (g->cons.cap - 1)) {
            mc_node *old = g->nodes.at[g->cons.slot[at] - 1];
            if (old->hash == n->hash && node_equal(old, n)) {
                return old;
            }
        }
    }
    n->id = (uint32_t)g->nodes.n;
    if (!VEC_PUSH(g->nodes, n)) {
        return NULL;
    }
    if (share) {
        g->cons.slot[at] = n->id + 1;
        g->cons.n++;
    }
    return n;
}

/* ---- making ---- */

mc_node *mc_node_no_memory(mc_graph *g)
{
    return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
}

static struct mc_attr *copy_attrs(struct mc_arena *a, const struct mc_op *op, const struct mc_attr *attr)
{
    int n = op->sig->nattr;
    struct mc_attr *copy = mc_arena_copy(a, attr, (size_t)n * sizeof *attr);
    for (int i = 0; copy && i < n; i++) {
        if (attr[i].n &&
            !(copy[i].ints = mc_arena_copy(a, attr[i].ints, (size_t)attr[i].n * sizeof(int64_t)))) {
            return NULL;
        }
        if (attr[i].text && !(copy[i].text = mc_arena_str(a, attr[i].text, strlen(attr[i].text)))) {
            return NULL;
        }
    }
    return copy;
}

/* Runs op->infer on the types of the inputs and the values of constants. */
static mc_status infer_types(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                             const struct mc_attr *attr, struct mc_infer *q)
{
    struct mc_type on_stack[8], *type = nin <= 8 ? on_stack : mc_alloc((size_t)nin * sizeof *type, "nodes");
    const mc_array *some[8], **value = nin <= 8 ? some : mc_alloc((size_t)nin * sizeof *value, "nodes");
    mc_status s = MC_EMEMORY;

    if (type && value) {
        for (int i = 0; i < nin; i++) {
            type[i] = in[i]->type;
            value[i] = in[i]->value;
        }
        q->op = op; /* field by field: clearing all of out takes longer than most infer functions */
        q->graph = g;
        q->nin = nin;
        q->in = type;
        q->value = value;
        q->node = in;
        q->attr = attr;
        q->nout = op->nout;
        memset(q->out, 0, (size_t)MC_MAX(op->nout, 1) * sizeof *q->out);
        s = op->infer(q);
    }
    if (type != on_stack) {
        mc_free(type);
    }
    if (value != some) {
        mc_free(value);
    }
    return s;
}

/* Finds the body that an attribute says in the graph, or reads it from the text.  false: error */
static bool attach_body(mc_graph *g, struct mc_attr *attr)
{
    for (size_t i = 0; i < g->bodies.n; i++) {
        const struct mc_body *b = g->bodies.at[i];
        if (b == attr->body || (attr->text && strcmp(b->text, attr->text) == 0)) {
            attr->body = b;
            attr->text = b->text;
            return true;
        }
    }
    if (!attr->body && !attr->text) {
        mc_fail(MC_EARG, "a loop or a branch needs a body");
        return false;
    }
    const struct mc_body *b = attr->body ? attr->body : g->language->read_body(g, attr->text);
    if (!b) {
        return false;
    }
    if (attr->body) {
        atomic_fetch_add(&((struct mc_body *)b)->refs, 1);
    }
    if (!VEC_PUSH(g->bodies, b)) {
        mc_body_unref(b);
        return false;
    }
    attr->body = b;
    attr->text = b->text;
    return true;
}

mc_node *mc_node_make(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                      const struct mc_attr *attr)
{
    struct mc_infer q;
    if (!op) {
        return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
    }
    for (int i = 0; i < nin; i++) {
        if (mc_is_error(in[i])) {
            return g->error;
        }
    }
    enum { MOST_ATTRS = MC_MAX((int)MC_LOOP_ATTRS, (int)MC_BRANCH_ATTRS) };
    struct mc_attr own[MOST_ATTRS];
    const int nbody = mc_bodies_of(op);
    if (nbody) {
        memcpy(own, attr, (size_t)op->sig->nattr * sizeof *own);
        attr = own;
    }
    for (int i = 0; i < nbody; i++) { /* the first attributes */
        if (!attach_body(g, &own[i])) {
            return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
        }
    }
    if (infer_types(g, op, nin, in, attr, &q) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    struct mc_arena_mark mark = mc_arena_mark(&g->arena);
    struct mc_node *n = mc_arena_alloc(&g->arena, sizeof *n);
    if (!n) {
        return mc_node_no_memory(g);
    }
    *n = (struct mc_node){ .op = op,
                           .graph = g,
                           .nin = nin,
                           .type = q.out[0],
                           .nout = q.nout,
                           .file = node_file,
                           .line = node_line,
                           .label = g->label };
    n->in = mc_arena_copy(&g->arena, in, (size_t)nin * sizeof *in);
    n->attr = op->sig->nattr ? copy_attrs(&g->arena, op, attr) : NULL;
    n->types = n->nout == 1 ? &n->type : mc_arena_copy(&g->arena, q.out, (size_t)n->nout * sizeof q.out[0]);
    if ((nin && !n->in) || (op->sig->nattr && !n->attr) || !n->types) {
        return mc_node_no_memory(g);
    }
    mc_node *made = intern(g, n);
    if (made != n) {
        mc_arena_release(&g->arena, mark);
    }
    return made ? made : mc_node_no_memory(g);
}

mc_node *mc_node_leaf(mc_graph *g, struct mc_node leaf_node)
{
    struct mc_node *n = mc_arena_copy(&g->arena, &leaf_node, sizeof leaf_node);
    if (!n) {
        return mc_node_no_memory(g);
    }
    n->graph = g;
    n->nout = 1;
    n->types = &n->type;
    n->file = node_file;
    n->line = node_line;
    n->label = n->nin ? g->label : NULL;
    mc_node *made = intern(g, n);
    return made ? made : mc_node_no_memory(g);
}

mc_node *mc_item(mc_node *tuple, int i)
{
    if (!tuple || mc_is_error(tuple)) {
        return tuple;
    }
    mc_graph *g = tuple->graph;
    if (i < 0 || i >= tuple->nout) {
        return mc_node_fail(g, MC_EARG, "item: %s has %d results, asked for number %d", tuple->op->name,
                            tuple->nout, i);
    }
    if (tuple->nout == 1) {
        return tuple;
    }
    if (tuple->op == &mc_op_tuple) {
        return tuple->in[i];
    }
    mc_node **in = mc_arena_copy(&g->arena, &tuple, sizeof tuple);
    struct mc_node n = { .op = &mc_op_item, .nin = 1, .in = in, .item = i, .type = tuple->types[i] };
    return in ? mc_node_leaf(g, n) : mc_node_no_memory(g);
}
