/* leaf.c: makes nodes without inputs (numbers, constants, inputs, shared variables), and names nodes.
 *
 * Invariant: within a graph a name belongs to one node, and the text form can read it. */
#include "graph/graph.h"

mc_node *mc_node_const(mc_graph *g, mc_array *value, bool weak)
{
    if (!value) {
        return mc_node_no_memory(g);
    }
    if (!mc_array_is_contiguous(value)) {
        mc_array *copy = mc_array_copy(value);
        mc_array_unref(&value);
        if (!(value = copy)) {
            return mc_node_no_memory(g);
        }
    }
    struct mc_node c = { .op = &mc_op_constant, .value = value, .weak = weak,
                         .type = mc_type_make(value->dtype, value->rank, value->dims) };
    size_t before = g->nodes.n;
    mc_node *n = mc_node_leaf(g, c);
    if (g->nodes.n == before) { /* an equal node existed (perhaps with this array), or no memory */
        mc_array_unref(&value);
    }
    return n;
}

mc_node *mc_node_number(mc_graph *g, mc_dtype d, double v)
{
    return mc_node_const(g, mc_array_scalar(d, v), false);
}

mc_node *mc_node_int(mc_graph *g, int64_t v)
{
    return mc_node_const(g, mc_array_from(MC_INT64, 0, NULL, &v), false);
}

mc_node *mc_node_ints(mc_graph *g, int n, const int64_t *v)
{
    int64_t dims[1] = { n };
    return mc_node_const(g, mc_array_from(MC_INT64, 1, dims, v), false);
}

mc_node *mc_node_like(mc_node *like, double v)
{
    return mc_node_number(like->graph, like->type.dtype, v);
}

static bool valid_sizes(mc_graph *g, const char *what, const char *name, mc_dtype d, int rank,
                        const int64_t *dims)
{
    if ((unsigned)d >= MC_NDTYPE) {
        mc_node_fail(g, MC_ETYPE, "%s %s: %d is not a dtype", what, name, (int)d);
        return false;
    }
    if (rank < 0 || rank > MC_MAX_RANK) {
        mc_node_fail(g, MC_ESHAPE, "%s %s: rank %d is not between 0 and %d", what, name, rank, MC_MAX_RANK);
        return false;
    }
    for (int i = 0; dims && i < rank; i++) {
        if (dims[i] < -1) {
            mc_node_fail(g, MC_ESHAPE, "%s %s: size %lld of axis %d is negative", what, name,
                         (long long)dims[i], i);
            return false;
        }
    }
    return true;
}

/* Why s is not allowed as a name; NULL: it is.  A word of the text form would hide itself in printed text. */
static const char *name_fault(const char *s)
{
    static const char words[][8] = { "True", "False", "None", "newaxis", "inf", "nan", "pi", "and", "or",
                                     "not", "input", "shared", "borrow", "floatX" };
    mc_dtype d;
    if (!s || !*s ||
        strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != strlen(s) ||
        (*s >= '0' && *s <= '9')) {
        return "is not a valid name";
    }
    for (size_t i = 0; i < NELEM(words); i++) {
        if (strcmp(s, words[i]) == 0) {
            return "is a reserved word of the text form";
        }
    }
    for (d = 0; d < MC_NDTYPE; d++) {
        if (strcmp(s, mc_dtype_name(d)) == 0) {
            return "is the name of a dtype";
        }
    }
    return NULL;
}

mc_node *mc_input_sized(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims)
{
    if (!g) {
        return NULL;
    }
    if (name_fault(name)) {
        return mc_node_fail(g, MC_EARG, "input: '%s' %s", name ? name : "", name_fault(name));
    }
    if (!valid_sizes(g, "input", name, d, rank, dims)) {
        return g->error;
    }
    if (mc_dict_get(&g->names, name)) {
        return mc_node_fail(g, MC_EARG, "input: the name '%s' is already in use", name);
    }
    struct mc_node n = { .op = &mc_op_input, .type = mc_type_make(d, rank, dims) };
    mc_node *made = mc_node_leaf(g, n);
    return mc_is_error(made) ? made : mc_name(made, name);
}

mc_node *mc_input(mc_graph *g, const char *name, mc_dtype d, int rank)
{
    return mc_input_sized(g, name, d, rank, NULL);
}

mc_node *mc_constant(mc_graph *g, const mc_array *value)
{
    if (!g) {
        return NULL;
    }
    if (!value) {
        return mc_node_fail(g, MC_EARG, "constant: the array is NULL");
    }
    return mc_node_const(g, mc_array_copy(value), false);
}

mc_node *mc_number(mc_graph *g, mc_dtype d, double value)
{
    return g ? mc_node_number(g, d, value) : NULL;
}

mc_node *mc_shared_leaf(mc_graph *g, struct mc_shared *s)
{
    struct mc_node n = { .op = &mc_op_shared, .type = s->type, .shared = s };
    return mc_node_leaf(g, n);
}

mc_node *mc_node_blank(mc_graph *g, const struct mc_type *t)
{
    struct mc_node n = { .op = &mc_op_input, .type = *t };
    return mc_node_leaf(g, n);
}

bool mc_node_can_be_called(const char *name)
{
    return !name_fault(name);
}

mc_node *mc_name(mc_node *n, const char *name)
{
    if (!n || mc_is_error(n)) {
        return n;
    }
    mc_graph *g = n->graph;
    if (name_fault(name)) {
        return mc_node_fail(g, MC_EARG, "'%s' %s", name ? name : "", name_fault(name));
    }
    mc_node *old = mc_dict_get(&g->names, name);
    if (old && old != n && (old->op == &mc_op_input || old->op == &mc_op_shared) &&
        strcmp(old->name, name) == 0) {
        return mc_node_fail(g, MC_EARG, "the name '%s' is already in use by %s", name,
                            old->op == &mc_op_input ? "an input" : "a shared variable");
    }
    if (!n->name && !(n->name = mc_arena_str(&g->arena, name, strlen(name)))) {
        return mc_node_no_memory(g);
    }
    return mc_dict_put(&g->names, name, n) ? n : mc_node_no_memory(g);
}

bool mc_const_number(const mc_node *n, double *v)
{
    while (n->op->flags & OP_VIEW && n->nin && n->type.dtype == n->in[0]->type.dtype) {
        n = n->in[0]; /* dimshuffle and reshape of a constant */
    }
    if (!mc_is_const(n) || mc_array_size(n->value) < 1) {
        return false;
    }
    const char *p = n->value->data;
    size_t size = mc_dtypes[n->type.dtype].size;
    int64_t count = mc_array_size(n->value);
    for (int64_t i = 1; i < count; i++) {
        if (memcmp(p, p + (size_t)i * size, size) != 0) {
            return false;
        }
    }
    *v = mc_load_f64(n->type.dtype, p);
    return true;
}

bool mc_const_ints(const mc_node *n, int64_t *v, int max, int *count)
{
    if (!mc_is_const(n) || n->type.rank > 1 || mc_is_float(n->type.dtype) || mc_array_size(n->value) > max) {
        return false;
    }
    *count = (int)mc_array_size(n->value);
    for (int i = 0; i < *count; i++) {
        v[i] = mc_load_i64(n->type.dtype, n->value->data + (size_t)i * mc_dtypes[n->type.dtype].size);
    }
    return true;
}
