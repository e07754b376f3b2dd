/* picture.c: selects the nodes of a picture and makes their texts; prints Graphviz.
 *
 * Invariant: nodes are in the order of ids, so every arrow points from an earlier node to a later one.  The
 * body of a loop is a picture of its own. */
#include "graph/picture.h"

const char *const mc_role_name[MC_NROLE] = { "op", "input", "shared", "constant", "output" };
static const char *const dot_style[MC_NROLE] = {
    [ROLE_OP]       = "fillcolor=\"#ffffff\", color=\"#8b949e\"",
    [ROLE_INPUT]    = "fillcolor=\"#dceaff\", color=\"#3b7dd8\"",
    [ROLE_SHARED]   = "fillcolor=\"#dff3e4\", color=\"#2f9e5b\"",
    [ROLE_CONSTANT] = "fillcolor=\"#f1f2f4\", color=\"#b4bac1\"",
    [ROLE_OUTPUT]   = "fillcolor=\"#ffe9d1\", color=\"#d97706\"",
};
enum { HEAD_COLUMNS = 30, TIP_COLUMNS = 400, TIP_DEPTH = 4, FEW_ELEMENTS = 8 };

/* ---- texts ---- */

int mc_text_columns(const char *s)
{
    int n = 0;
    for (; *s; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

static char *line(struct mc_arena *a, struct mc_str *text, int columns)
{
    struct mc_str out = { 0 };
    mc_str_line(&out, text->s ? text->s : "", columns);
    char *s = out.bad || text->bad ? NULL : mc_arena_str(a, out.s ? out.s : "", out.n);
    mc_str_free(&out);
    mc_str_free(text);
    return s;
}

/* The op and its attributes that differ from their defaults: "sum axis=1". */
static void op_text(struct mc_str *out, const mc_node *n)
{
    mc_str_add(out, n->op->name);
    if (n->op == &mc_op_item) {
        mc_str_addf(out, " %d", n->item);
    }
    int k = 0;
    for (int i = 0; n->op->sig && n->attr && i < n->op->sig->nparam; i++) {
        const struct mc_param *p = &n->op->sig->param[i];
        if (p->kind <= ATTR_TENSORS) {
            continue;
        }
        const struct mc_attr *a = &n->attr[k++], *d = &p->dflt;
        if (n->op->form == FORM_LOOP) { /* its picture shows what they say */
            continue;
        }
        bool same = p->optional && a->none == d->none && a->n == d->n && !(a->real < d->real) &&
                    !(a->real > d->real) &&
                    (!a->n || memcmp(a->ints, d->ints, (size_t)a->n * sizeof *a->ints) == 0) &&
                    (a->text == d->text || (a->text && d->text && strcmp(a->text, d->text) == 0));
        if (!same && strcmp(p->name, "spec") != 0) { /* the numbers of an index are not readable */
            mc_str_addf(out, " %s=", p->name);
            mc_attr_text(out, a);
        }
    }
}

static enum mc_role role_of(const mc_node *n, int nout, mc_node *const *outputs)
{
    if (n->op == &mc_op_input || n->op == &mc_op_shared || mc_is_const(n)) {
        return n->op == &mc_op_input ? ROLE_INPUT : mc_is_const(n) ? ROLE_CONSTANT : ROLE_SHARED;
    }
    for (int i = 0; i < nout; i++) {
        if (outputs[i] == n) {
            return ROLE_OUTPUT;
        }
    }
    return ROLE_OP;
}

/* The names of this output, joined: one node may be several outputs. */
static void output_text(struct mc_str *out, const mc_node *n, int nout, mc_node *const *outputs,
                        const struct mc_picture_says *says)
{
    for (int i = 0; says && says->output && i < nout; i++) {
        if (outputs[i] == n && says->output[i] && *says->output[i]) {
            mc_str_addf(out, "%s%s", out->n ? ", " : "", says->output[i]);
        }
    }
}

static mc_status describe(struct mc_picture *p, struct mc_pictured *to, int nout, mc_node *const *outputs,
                          const struct mc_picture_says *says)
{
    const mc_node *n = to->node;
    struct mc_str head = { 0 }, sub = { 0 }, type = { 0 }, tip = { 0 };
    to->role = role_of(n, nout, outputs);
    output_text(&head, n, nout, outputs, says);
    const bool result = head.n > 0;
    if (!result && n->name &&
        /* the name may since belong to another node */
        (!n->nin || mc_dict_get(&n->graph->names, n->name) == n)) {
        mc_str_add(&head, n->name);
    }
    bool named = head.n > 0;
    const char *below = says && says->sub ? says->sub[n->id] : NULL;
    if (below) {
        mc_str_add(&sub, result && n->name ? n->name : "");
        mc_str_addf(&sub, "%s%s", sub.n ? ", " : "", below);
    } else if (to->role == ROLE_CONSTANT && !named) {
        mc_node_print(&head, n, 1);
    } else {
        op_text(named ? &sub : &head, n);
    }
    if (n->nout > 1) {
        mc_str_addf(&type, "%d results", n->nout);
    } else {
        mc_type_text(&type, &n->type);
    }
    mc_node_print(&tip, n, TIP_DEPTH);
    if (n->file) {
        mc_str_addf(&tip, "  (%s:%d)", n->file, n->line);
    }
    to->head = line(&p->arena, &head, HEAD_COLUMNS);
    to->sub = line(&p->arena, &sub, HEAD_COLUMNS);
    to->type = line(&p->arena, &type, HEAD_COLUMNS + 10);
    to->tip = line(&p->arena, &tip, TIP_COLUMNS);
    to->badge = says && says->badge && says->badge[n->id] ? says->badge[n->id] : "";
    return to->head && to->sub && to->type && to->tip ? MC_OK : MC_EMEMORY;
}

/* ---- bodies ---- */

static mc_status make(struct mc_picture *p, int n, mc_node *const *outputs,
                      const struct mc_picture_says *says, int nested);

static const char *word(struct mc_arena *a, const char *before, const mc_node *x, int number)
{
    struct mc_str text = { 0 };
    mc_str_add(&text, before);
    if (x) {
        mc_node_print(&text, x, 1);
    } else if (number) {
        mc_str_addf(&text, "%d", number);
    }
    return line(a, &text, HEAD_COLUMNS);
}

/* The picture of the body of loop n: below its inputs what they are outside, on its outputs what they are to
 * the loop. */
static mc_status add_body(struct mc_picture *p, const mc_node *n, const struct mc_picture_body *given,
                          int nested, struct mc_picture **made)
{
    const struct mc_body *b = n->attr[LOOP_BODY].body;
    const struct mc_picture_body own = { .nin = b->nin, .nout = b->nout, .in = b->in, .out = b->out };
    const struct mc_picture_body *body = given ? given : &own;
    const int nsequence = (int)n->attr[LOOP_SEQUENCES].ints[0], nstate = (int)n->attr[LOOP_STATES].ints[0],
              until = n->attr[LOOP_UNTIL].ints[0] != 0;
    mc_graph *g = mc_graph_of(body->nout, body->out);
    const char **sub = g ? mc_arena_alloc(&p->arena, (g->nodes.n + 1) * sizeof *sub) : NULL;
    const char **output = mc_arena_alloc(&p->arena, (size_t)(body->nout + 1) * sizeof *output);
    bool good = sub && output;
    for (int i = 0; good && i < body->nin; i++) {
        const bool state = i >= nsequence && i < nsequence + nstate;
        const char *what = i < nsequence ? "element of " : state ? "state, from " : "is ";
        good = (sub[body->in[i]->id] = word(&p->arena, what, n->in[1 + i], 0)) != NULL;
    }
    for (int i = 0; good && i < body->nout; i++) {
        const bool state = i < nstate, stop = until && i == body->nout - 1;
        output[i] = state  ? word(&p->arena, "next ", body->in[nsequence + i], 0)
                    : stop ? "until"
                           : word(&p->arena, "yield ", NULL, i - nstate + 1);
        good = output[i] != NULL;
    }
    *made = good ? mc_calloc(1, sizeof **made, "picture") : NULL;
    const struct mc_picture_says says = { output, body->says.badge, sub, body->says.body };
    return *made ? make(*made, body->nout, body->out, &says, nested + 1) : MC_EMEMORY;
}

/* ---- which nodes ---- */

/* Selects nodes breadth first from the outputs, so the nodes that are left out are the farthest. */
static mc_status nearest(int n, mc_node *const *outputs, unsigned char *shown, size_t most)
{
    VEC(mc_node *) queue = { 0 };
    bool good = true;
    size_t head = 0;
    for (int i = 0; i < n && queue.n < most; i++) {
        if (!shown[outputs[i]->id]) {
            shown[outputs[i]->id] = 1;
            good &= VEC_PUSH(queue, outputs[i]);
        }
    }
    while (good && head < queue.n) {
        const mc_node *x = queue.at[head++];
        for (int i = 0; i < x->nin && good && queue.n < most; i++) {
            if (!shown[x->in[i]->id]) {
                shown[x->in[i]->id] = 1;
                good = VEC_PUSH(queue, x->in[i]);
            }
        }
    }
    VEC_FREE(queue);
    return good ? MC_OK : MC_EMEMORY;
}

static bool is_small_constant(const mc_node *n)
{
    return mc_is_const(n) && mc_array_size(n->value) <= FEW_ELEMENTS;
}

static mc_status add_node(struct mc_picture *p, const mc_node *x, int n, mc_node *const *outputs,
                          const struct mc_picture_says *says)
{
    struct mc_pictured one = { .node = x };
    TRY(describe(p, &one, n, outputs, says));
    return VEC_PUSH(p->node, one) ? MC_OK : MC_EMEMORY;
}

static mc_status add_bodies(struct mc_picture *p, const struct mc_picture_says *says, int nested)
{
    for (size_t i = 0; i < p->node.n; i++) {
        struct mc_pictured *x = &p->node.at[i];
        if (x->node->op->form == FORM_LOOP && x->node->attr[LOOP_BODY].body->nout &&
            nested < PICTURE_NESTED) {
            TRY(add_body(p, x->node, says && says->body ? says->body[x->node->id] : NULL, nested, &x->body));
        }
    }
    return MC_OK;
}

/* Adds x, which comes after its inputs.  Small constants are added anew for each reader. */
static mc_status add_reader(struct mc_picture *p, const mc_node *x, const unsigned char *shown, int *at,
                            int n, mc_node *const *outputs, const struct mc_picture_says *says)
{
    VEC(struct mc_arrow) in = { 0 };
    mc_status s = MC_OK;
    int hidden = 0;
    for (int i = 0; i < x->nin && s == MC_OK; i++) {
        const mc_node *from = x->in[i];
        struct mc_arrow a = { at[from->id], 0, i };
        if (!shown[from->id]) {
            hidden++;
            continue;
        }
        if (is_small_constant(from) && a.from < 0) {
            a.from = (int)p->node.n;
            s = add_node(p, from, n, outputs, says);
        }
        s = s == MC_OK && !VEC_PUSH(in, a) ? MC_EMEMORY : s;
    }
    s = s < 0 ? s : add_node(p, x, n, outputs, says);
    for (size_t i = 0; i < in.n && s == MC_OK; i++) {
        in.at[i].to = (int)p->node.n - 1;
        s = VEC_PUSH(p->arrow, in.at[i]) ? MC_OK : MC_EMEMORY;
    }
    if (s == MC_OK) {
        p->node.at[p->node.n - 1].hidden = hidden;
        at[x->id] = (int)p->node.n - 1;
    }
    VEC_FREE(in);
    return s;
}

static mc_status make(struct mc_picture *p, int n, mc_node *const *outputs,
                      const struct mc_picture_says *says, int nested)
{
    *p = (struct mc_picture){ 0 };
    if (n > 0 && !outputs) {
        return mc_fail(MC_EARG, "picture: the list of nodes is NULL");
    }
    mc_graph *g = mc_graph_of(n, outputs);
    for (int i = 0; i < n; i++) {
        if (mc_is_error(outputs[i])) {
            return mc_fail(MC_EARG, "picture: node %d is not valid: %s", i + 1, g ? mc_error(g) : "NULL");
        }
    }
    if (!g) {
        return mc_fail(MC_EARG, "picture: the list of nodes is empty");
    }
    mc_node **list = mc_graph_reach(n, outputs, &p->total);
    unsigned char *shown = mc_calloc(g->nodes.n, 1, "picture");
    int *at = mc_alloc(g->nodes.n * sizeof *at, "picture");
    mc_status s = list && shown && at ? nearest(n, outputs, shown, PICTURE_MOST) : MC_EMEMORY;
    for (size_t i = 0; s == MC_OK && i < g->nodes.n; i++) {
        at[i] = -1;
    }
    for (int i = 0; i < n && s == MC_OK; i++) { /* a constant that is an output is drawn once, as an output */
        if (is_small_constant(outputs[i]) && at[outputs[i]->id] < 0) {
            s = add_reader(p, outputs[i], shown, at, n, outputs, says);
        }
    }
    for (size_t i = 0; i < p->total && s == MC_OK; i++) {
        if (shown[list[i]->id] && !is_small_constant(list[i])) {
            s = add_reader(p, list[i], shown, at, n, outputs, says);
        }
    }
    s = s < 0 ? s : add_bodies(p, says, nested);
    mc_free(list);
    mc_free(shown);
    mc_free(at);
    if (s < 0) {
        mc_picture_free(p);
    }
    return s;
}

mc_status mc_picture_make(struct mc_picture *p, int n, mc_node *const *outputs,
                          const struct mc_picture_says *says)
{
    return make(p, n, outputs, says, 0);
}

void mc_picture_free(struct mc_picture *p)
{
    for (size_t i = 0; i < p->node.n; i++) {
        if (p->node.at[i].body) {
            mc_picture_free(p->node.at[i].body);
            mc_free(p->node.at[i].body);
        }
    }
    mc_arena_free(&p->arena);
    VEC_FREE(p->node);
    VEC_FREE(p->arrow);
}

/* ---- Graphviz ---- */

static void quoted(struct mc_str *out, const char *s)
{
    for (; *s; s++) {
        mc_str_addf(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    }
}

/* The nodes and arrows of p; names begin with `prefix`.  A body is a cluster, which its loop's node is in. */
static void dot_nodes(struct mc_str *out, const struct mc_picture *p, const char *prefix)
{
    for (size_t i = 0; i < p->node.n; i++) {
        const struct mc_pictured *x = &p->node.at[i];
        if (x->body) {
            mc_str_addf(out, "    subgraph cluster_%s%zu {\n    style=rounded; color=\"#8b949e\";\n", prefix,
                        i);
        }
        mc_str_addf(out, "    %s%zu [label=\"", prefix, i);
        quoted(out, x->head);
        mc_str_add(out, *x->sub ? "\\n" : "");
        quoted(out, x->sub);
        mc_str_add(out, "\\n");
        quoted(out, x->type);
        mc_str_addf(out, "\", %s];\n", dot_style[x->role]);
        if (x->body) {
            struct mc_str inner = { 0 };
            mc_str_addf(&inner, "%s%zu_", prefix, i);
            out->bad |= inner.bad;
            dot_nodes(out, x->body, inner.bad ? "" : inner.s);
            for (size_t k = 0; k < x->body->node.n && !inner.bad; k++) {
                if (x->body->node.at[k].role == ROLE_INPUT) {
                    mc_str_addf(out, "    %s%zu -> %s%zu [style=dashed];\n", prefix, i, inner.s, k);
                }
            }
            mc_str_free(&inner);
            mc_str_add(out, "    }\n");
        }
    }
    for (size_t i = 0; i < p->arrow.n; i++) {
        mc_str_addf(out, "    %s%d -> %s%d;\n", prefix, p->arrow.at[i].from, prefix, p->arrow.at[i].to);
    }
}

static void dot(struct mc_str *out, const struct mc_picture *p)
{
    mc_str_add(out, "digraph monochord {\n    rankdir=TB;\n    node [shape=box, style=\"rounded,filled\", "
                    "fontname=\"monospace\", "
                    "fontsize=10];\n    edge [color=\"#8b949e\", arrowsize=0.6];\n");
    if (p->total > PICTURE_MOST) {
        mc_str_addf(out, "    label=\"%d of %zu nodes: those nearest the outputs\";\n", PICTURE_MOST,
                    p->total);
    }
    dot_nodes(out, p, "n");
    mc_str_add(out, "}\n");
}

mc_status mc_graph_dot(const mc_graph *g, int n, mc_node *const *outputs, FILE *to)
{
    struct mc_picture p;
    struct mc_str out = { 0 };
    (void)g;
    TRY(mc_picture_make(&p, n, outputs, NULL));
    dot(&out, &p);
    mc_picture_free(&p);
    return mc_str_write(&out, to, "graph");
}
