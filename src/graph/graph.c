/* graph.c: a graph's life, its mistakes, its shared variables, and reading it from outside. */
#include "graph/graph.h"

mc_graph *mc_graph_new(void)
{
    mc_graph *g = mc_calloc(1, sizeof *g, "graph");
    if (!g) {
        return NULL;
    }
    struct mc_node *e = mc_arena_alloc(&g->arena, sizeof *e);
    if (!e || !VEC_PUSH(g->nodes, e) || !mc_op_find("add")) { /* where there is a graph there is the table of ops */
        mc_graph_free(g);
        return NULL;
    }
    *e = (struct mc_node){ .op = &mc_op_error, .graph = g, .nout = 1, .type = { .dtype = MC_FLOAT32 } };
    e->types = &e->type;
    g->error = e;
    return g;
}

void mc_graph_free(mc_graph *g)
{
    if (!g) {
        return;
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        mc_array_unref(&g->nodes.at[i]->value);
    }
    for (size_t i = 0; i < g->shareds.n; i++) {
        mc_shared_unref(&g->shareds.at[i]);
    }
    for (size_t i = 0; i < g->custom.n; i++) {
        mc_custom_unref(g->custom.at[i]);
    }
    VEC_FREE(g->nodes);
    VEC_FREE(g->shareds);
    VEC_FREE(g->custom);
    VEC_FREE(g->defaults);
    mc_map_free(&g->sent);
    mc_free(g->cons.slot);
    mc_dict_free(&g->names);
    mc_free(g->message);
    mc_arena_free(&g->arena);
    mc_free(g);
}

/* ---- mistakes ---- */

/* The line of text that holds byte `at`, and under it a caret. */
static void caret(struct mc_str *out, const struct mc_place *p)
{
    size_t from = p->at, to = p->at;
    while (from > 0 && p->text[from - 1] != '\n') {
        from--;
    }
    while (p->text[to] && p->text[to] != '\n') {
        to++;
    }
    mc_str_add(out, "\n    ");
    mc_str_addn(out, p->text + from, to - from);
    mc_str_add(out, "\n    ");
    for (size_t i = from; i < p->at; i++) {
        mc_str_add(out, p->text[i] == '\t' ? "\t" : ((unsigned char)p->text[i] & 0xc0) == 0x80 ? "" : " ");
    }
    mc_str_add(out, "^");
}

static void take_out(struct mc_str *text, const char *part)
{
    char *at = text->s && *part ? strstr(text->s, part) : NULL;
    if (at) {
        size_t n = strlen(part);
        memmove(at, at + n, strlen(at + n) + 1);
        text->n -= n;
    }
}

/* The user's line comes last, once, however often a message is completed. */
mc_node *mc_node_fail(mc_graph *g, mc_status code, const char *fmt, ...)
{
    struct mc_str text = { 0 };
    char where[300];
    mc_here_text(where, sizeof where);
    va_list ap;
    va_start(ap, fmt);
    mc_str_addv(&text, fmt, ap);
    va_end(ap);
    take_out(&text, where);
    if (g->place) {
        caret(&text, g->place);
    }
    mc_str_add(&text, where);
    mc_fail(code, "%s", text.s ? text.s : "out of memory");
    if (g->status == MC_OK) {
        g->status = code;
        g->message = mc_str_take(&text);
    }
    mc_str_free(&text);
    return g->error;
}

mc_node *mc_mistake(mc_graph *g, mc_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mc_failv(code, fmt, ap);
    va_end(ap);
    return mc_node_fail(g, code, "%s", mc_last_error());
}

const char *mc_error(const mc_graph *g)
{
    if (!g) {
        return mc_last_error();
    }
    return g->message ? g->message : g->status ? "out of memory" : "";
}

mc_status mc_graph_status(const mc_graph *g)
{
    return g ? g->status : mc_last_status();
}

void mc_graph_clear_error(mc_graph *g)
{
    if (g) {
        mc_free(g->message);
        g->message = NULL;
        g->status = MC_OK;
    }
}

mc_graph *mc_graph_of(int n, mc_node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        if (nodes[i]) {
            return nodes[i]->graph;
        }
    }
    return NULL;
}

/* ---- shared variables ---- */

/* dims: what may be put in; NULL: arrays of value's shape. */
static mc_shared *shared_make(mc_graph *g, const char *name, mc_array *value, const int64_t *dims)
{
    if (!g || !value) {
        mc_array_unref(&value);
        return NULL;
    }
    mc_shared *s = NULL;
    if (mc_dict_get(&g->names, name)) {
        mc_node_fail(g, MC_EARG, "shared: the name '%s' is taken", name);
    } else if ((s = mc_calloc(1, sizeof *s, "shared")) && (s->name = mc_strdup(name))) {
        s->refs = 1;
        s->type = mc_type_make(value->dtype, value->rank, dims ? dims : value->dims);
        s->value = value;
        value = NULL;
        pthread_mutex_init(&s->lock, NULL);
        if (mc_is_error(mc_shared_node(g, s))) {
            mc_shared_unref(&s);
        } else {
            s->refs--; /* the graph's own count is enough: the pointer lives as long as the graph or a ref */
        }
    } else {
        mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
        mc_free(s);
        s = NULL;
    }
    mc_array_unref(&value);
    return s;
}

mc_shared *mc_shared_new(mc_graph *g, const char *name, const mc_array *value)
{
    if (!value) {
        if (g) {
            mc_node_fail(g, MC_EARG, "shared %s: there is no value%s%s", name ? name : "", *mc_last_error() ? ": " : "",
                         mc_last_error());
        }
        return NULL;
    }
    return shared_make(g, name ? name : "", mc_array_copy(value), NULL);
}

mc_shared *mc_shared_sized(mc_graph *g, const char *name, const mc_array *value, const int64_t *dims)
{
    int64_t any[MC_MAX_RANK];
    for (int i = 0; i < MC_MAX_RANK; i++) {
        any[i] = -1;
    }
    dims = dims ? dims : any;
    for (int i = 0; value && i < value->rank; i++) {
        if (dims[i] >= 0 && dims[i] != value->dims[i]) {
            mc_node_fail(g, MC_ESHAPE, "shared %s: its size on axis %d is promised to be %lld; the value has %lld", name ? name : "", i,
                         (long long)dims[i], (long long)value->dims[i]);
            return NULL;
        }
    }
    return value ? shared_make(g, name ? name : "", mc_array_copy(value), dims) : mc_shared_new(g, name, NULL);
}

mc_shared *mc_shared_zeros(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims)
{
    if (!g) {
        return NULL;
    }
    mc_array *value = mc_array_new(d, rank, dims);
    if (!value) {
        mc_node_fail(g, mc_last_status(), "shared %s: %s", name ? name : "", mc_last_error());
    }
    return shared_make(g, name ? name : "", value, NULL);
}

mc_shared *mc_shared_ref(mc_shared *s)
{
    if (s) {
        atomic_fetch_add(&s->refs, 1);
    }
    return s;
}

void mc_shared_unref(mc_shared **ps)
{
    mc_shared *s = ps ? *ps : NULL;
    if (s && atomic_fetch_sub(&s->refs, 1) == 1) {
        mc_array_unref(&s->value);
        pthread_mutex_destroy(&s->lock);
        mc_free(s->name);
        mc_free(s);
    }
    if (ps) {
        *ps = NULL;
    }
}

mc_node *mc_shared_node(mc_graph *g, mc_shared *s)
{
    if (!g || !s) {
        return g ? g->error : NULL;
    }
    mc_node *n = mc_dict_get(&g->names, s->name);
    if (n && n->shared == s) {
        return n;
    }
    if (n) {
        return mc_node_fail(g, MC_EARG, "shared: the name '%s' is taken", s->name);
    }
    n = mc_shared_leaf(g, s);
    if (!mc_is_error(n)) {
        if (!VEC_PUSH(g->shareds, s)) {
            return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
        }
        mc_shared_ref(s);
        n = mc_name(n, s->name);
    }
    return n;
}

mc_shared *mc_shared_named(mc_graph *g, const char *name)
{
    mc_node *n = g && name ? mc_dict_get(&g->names, name) : NULL;
    return n ? n->shared : NULL;
}

const char *mc_shared_name(const mc_shared *s)
{
    return s ? s->name : "";
}

mc_array *mc_shared_get(const mc_shared *s)
{
    if (!s) {
        mc_fail(MC_EARG, "shared_get: no shared variable");
        return NULL;
    }
    mc_shared *w = (mc_shared *)s; /* the lock is not part of the value */
    pthread_mutex_lock(&w->lock);
    mc_array *copy = mc_array_copy(s->value);
    pthread_mutex_unlock(&w->lock);
    return copy;
}

mc_array *mc_shared_borrow(mc_shared *s)
{
    if (!s) {
        mc_fail(MC_EARG, "shared_borrow: no shared variable");
        return NULL;
    }
    return mc_array_ref(s->value);
}

mc_status mc_shared_set(mc_shared *s, const mc_array *value)
{
    if (!s || !value) {
        return mc_fail(MC_EARG, "shared_set: no %s", s ? "value" : "shared variable");
    }
    bool fits = value->rank == s->type.rank;
    for (int i = 0; fits && i < value->rank; i++) {
        fits = s->type.dims[i] < 0 || s->type.dims[i] == value->dims[i];
    }
    if (!fits) {
        struct mc_str have = { 0 };
        struct mc_str want = { 0 };
        mc_dims_text(&have, value->rank, value->dims);
        mc_dims_text(&want, s->type.rank, s->type.dims);
        mc_status st = mc_fail(MC_ESHAPE, "shared_set: %s has shape %s, not %s", s->name, want.s ? want.s : "",
                               have.s ? have.s : "");
        mc_str_free(&have);
        mc_str_free(&want);
        return st;
    }
    if (value->dtype != s->type.dtype && mc_dtype_promote(value->dtype, s->type.dtype) != s->type.dtype) {
        return mc_fail(MC_ETYPE, "shared_set: %s holds %s; %s would lose digits: cast it first", s->name,
                       mc_dtype_name(s->type.dtype), mc_dtype_name(value->dtype));
    }
    pthread_mutex_lock(&s->lock);
    mc_status st = MC_OK;
    if (mc_dims_equal(s->value->rank, s->value->dims, value->rank, value->dims)) {
        st = mc_array_assign(s->value, value);
    } else {
        mc_array *copy = mc_array_cast(value, s->type.dtype);
        if (copy) {
            mc_array_unref(&s->value);
            s->value = copy;
        }
        st = copy ? MC_OK : mc_last_status();
    }
    s->version++;
    pthread_mutex_unlock(&s->lock);
    return st;
}

mc_status mc_shared_default_update(mc_graph *g, mc_shared *s, mc_node *value)
{
    if (!g || !s || !value) {
        return mc_fail(MC_EARG, "default_update: an argument is missing");
    }
    if (mc_is_error(value)) {
        return g->status;
    }
    for (size_t i = 0; i < g->defaults.n; i++) {
        if (g->defaults.at[i].shared == s) {
            g->defaults.at[i].value = value;
            return MC_OK;
        }
    }
    struct mc_default_update u = { s, value };
    return VEC_PUSH(g->defaults, u) ? MC_OK : mc_last_status();
}

/* ---- reading ---- */

mc_node **mc_graph_reach(int n, mc_node *const *outputs, size_t *count)
{
    *count = 0;
    mc_graph *g = mc_graph_of(n, outputs);
    if (!g) {
        return mc_alloc(sizeof(mc_node *), "nodes");
    }
    unsigned char *mark = mc_calloc(g->nodes.n, 1, "nodes");
    if (!mark) {
        return NULL;
    }
    uint32_t top = 0;
    for (int i = 0; i < n; i++) {
        mark[outputs[i]->id] = 1;
        top = MC_MAX(top, outputs[i]->id);
    }
    for (uint32_t id = top + 1; id-- > 0;) { /* inputs are older, so one sweep down is enough */
        if (mark[id]) {
            ++*count;
            for (int i = 0; i < g->nodes.at[id]->nin; i++) {
                mark[g->nodes.at[id]->in[i]->id] = 1;
            }
        }
    }
    mc_node **list = mc_alloc((*count + 1) * sizeof *list, "nodes");
    if (!list) {
        *count = 0;
    } else {
        size_t k = 0;
        for (uint32_t id = 0; id <= top; id++) {
            if (mark[id]) {
                list[k++] = g->nodes.at[id];
            }
        }
    }
    mc_free(mark);
    return list;
}

mc_node *mc_var(mc_graph *g, const char *name)
{
    if (!g) {
        return NULL;
    }
    mc_node *n = name ? mc_dict_get(&g->names, name) : NULL;
    return n ? n : mc_node_fail(g, MC_EARG, "there is no variable '%s'", name ? name : "");
}

const char *mc_node_op(const mc_node *n) { return n ? n->op->name : ""; }
const char *mc_node_name(const mc_node *n) { return n && n->name ? n->name : ""; }
mc_dtype mc_node_dtype(const mc_node *n) { return n ? n->type.dtype : MC_BOOL; }
int mc_node_rank(const mc_node *n) { return n ? n->type.rank : 0; }
const int64_t *mc_node_dims(const mc_node *n) { return n ? n->type.dims : NULL; }
int mc_node_ninputs(const mc_node *n) { return n ? n->nin : 0; }
mc_node *mc_node_input(const mc_node *n, int i) { return n && i >= 0 && i < n->nin ? n->in[i] : NULL; }
const mc_array *mc_node_value(const mc_node *n) { return n ? n->value : NULL; }
uint32_t mc_node_id(const mc_node *n) { return n ? n->id : 0; }
