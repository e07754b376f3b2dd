/* graph.c: makes and frees graphs, reports mistakes, reads a graph from outside.
 *
 * Invariant: every graph has its error node, and the first mistake is kept until it is cleared. */
#include "graph/graph.h"

mc_graph *mc_graph_make(const struct mc_language *language)
{
    mc_graph *g = mc_calloc(1, sizeof *g, "graph");
    if (!g) {
        return NULL;
    }
    g->language = language;
    struct mc_node *e = mc_arena_alloc(&g->arena, sizeof *e);
    if (!e || !VEC_PUSH(g->nodes, e) ||
        !mc_op_named(g, "add")) { /* a graph exists only if the table of ops does */
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
        g->language->forget(g->custom.at[i]);
    }
    VEC_FREE(g->nodes);
    VEC_FREE(g->shareds);
    VEC_FREE(g->custom);
#ifndef MC_RUNTIME /* which has no ranks */
    for (size_t i = 0; i < g->groups.n; i++) {
        mc_comm_drop(g->groups.at[i].comm);
    }
    VEC_FREE(g->groups);
#endif
    VEC_FREE(g->defaults);
    for (size_t i = 0; i < g->bodies.n; i++) {
        mc_body_unref(g->bodies.at[i]);
    }
    VEC_FREE(g->bodies);
    mc_map_free(&g->sent);
    mc_map_free(&g->taken);
    mc_free(g->cons.slot);
    mc_dict_free(&g->names);
    mc_dict_free(&g->labels);
    mc_free(g->message);
    mc_arena_free(&g->arena);
    mc_free(g);
}

void mc_body_unref(const struct mc_body *b)
{
    struct mc_body *own = (struct mc_body *)b;
    if (own && atomic_fetch_sub(&own->refs, 1) == 1) {
        mc_graph_free(own->graph);
        mc_free(own);
    }
}

void *mc_graph_keep(mc_graph *g, size_t n)
{
    void *p = g ? mc_arena_alloc(&g->arena, n) : NULL;
    if (g && !p) {
        mc_node_no_memory(g);
    }
    return p;
}

/* ---- errors ---- */

/* Adds the line of text that holds byte `at`, and a caret under it.  If the text ends too early, the caret is
 * after the last word. */
static void caret(struct mc_str *out, const struct mc_source_location *p)
{
    size_t at = p->at;
    while (at > 0 && !p->text[p->at + strspn(p->text + p->at, " \t\r\n")] &&
           strchr(" \t\r\n", p->text[at - 1])) {
        at--;
    }
    size_t from = at, to = at;
    while (from > 0 && p->text[from - 1] != '\n') {
        from--;
    }
    while (p->text[to] && p->text[to] != '\n') {
        to++;
    }
    mc_str_add(out, "\n    ");
    mc_str_addn(out, p->text + from, to - from);
    mc_str_add(out, "\n    ");
    for (size_t i = from; i < at; i++) {
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

/* The user's source line is at the end of the message and appears once, however often the message is
 * extended. */
mc_node *mc_node_fail(mc_graph *g, mc_status code, const char *fmt, ...)
{
    struct mc_str text = { 0 };
    char where[300];
    mc_user_line_text(where, sizeof where);
    va_list ap;
    va_start(ap, fmt);
    mc_str_addv(&text, fmt, ap);
    va_end(ap);
    take_out(&text, where);
    if (g->location) {
        caret(&text, g->location);
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
    for (uint32_t id = top + 1; id-- > 0;) { /* inputs have smaller ids, so one sweep is enough */
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
