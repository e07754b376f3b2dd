/* print.c: prints nodes in the text form.  The text parses to the same nodes: constants have their dtype,
 * operators their brackets, shared sub-expressions a name. */
#include "graph/graph.h"
#include <math.h>
#include <stdlib.h>

static const struct { char op[9], text[3]; char level; } operators[] = {
    { "or_", "|", 5 }, { "xor", "^", 6 }, { "and_", "&", 7 },
    { "eq", "==", 4 }, { "neq", "!=", 4 }, { "le", "<=", 4 }, { "ge", ">=", 4 }, { "lt", "<", 4 }, { "gt", ">", 4 },
    { "add", "+", 8 }, { "sub", "-", 8 }, { "mul", "*", 9 }, { "int_div", "//", 9 }, { "true_div", "/", 9 }, { "mod", "%", 9 },
    { "pow", "**", 11 },
};
static const char suffix[MC_NDTYPE][5] = { "", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64" };

enum { INDENT = 4, MOST_INDENT = 32 };

struct printer {
    struct mc_str *out;
    int depth;                   /* levels still to print; negative: all */
    const char *const *label;    /* by node id: the name that a statement gives it; NULL: none */
    const mc_node *top;          /* printed in full even if it has a label */
    int indent;                  /* of the statements of bodies, each on its own line; 0: all on one line */
};

static void print(struct printer *p, const mc_node *n, int level);
static void loop(struct printer *p, const mc_node *n);

static void element(struct mc_str *out, mc_dtype d, const char *at)
{
    if (d == MC_BOOL) {
        mc_str_add(out, *at ? "True" : "False");
    } else if (d == MC_UINT64) {
        uint64_t u;
        memcpy(&u, at, sizeof u);
        mc_str_addf(out, "%llu", (unsigned long long)u);
    } else if (!mc_is_float(d)) {
        mc_str_addf(out, "%lld", (long long)mc_load_i64(d, at));
    } else {
        double v = mc_load_f64(d, at);
        if (isnan(v)) {
            mc_str_add(out, signbit(v) ? "-nan" : "nan");
        } else if (isinf(v)) {
            mc_str_add(out, v < 0 ? "-inf" : "inf");
        } else {
            char word[40], back[8];
            for (int digits = 1; digits <= 17; digits++) {
                mc_snprintf(word, sizeof word, "%.*g", digits, v);
                mc_store_f64(d, back, mc_strtod(word, NULL));
                if (memcmp(back, at, mc_dtypes[d].size) == 0) {
                    break;
                }
            }
            mc_str_add(out, word);
            if (!strpbrk(word, ".e")) {
                mc_str_add(out, ".0");
            }
        }
    }
    mc_str_add(out, suffix[d]);
}

static void elements(struct mc_str *out, const mc_array *a, int axis, const char *at)
{
    if (axis == a->rank) {
        element(out, a->dtype, at);
        return;
    }
    for (int64_t i = 0; i < a->dims[axis]; i++) {
        mc_str_add(out, i ? ", " : "[");
        elements(out, a, axis + 1, at + i * a->strides[axis]);
    }
    mc_str_add(out, a->dims[axis] ? "]" : "[]");
}

/* NaNs with another payload than the text form's nan are printed as bytes. */
static bool plain_nan(const mc_array *a)
{
    for (int64_t i = 0; mc_is_float(a->dtype) && i < mc_array_size(a); i++) {
        const char *at = a->data + (size_t)i * mc_dtypes[a->dtype].size;
        char back[8] = { 0 };
        double v = mc_load_f64(a->dtype, at);
        mc_store_f64(a->dtype, back, signbit(v) ? -(double)NAN : (double)NAN);
        if (isnan(v) && memcmp(back, at, mc_dtypes[a->dtype].size) != 0) {
            return false;
        }
    }
    return true;
}

static void constant(struct printer *p, const mc_node *n)
{
    const mc_array *a = n->value;
    int64_t size = mc_array_size(a);
    bool empty_axes = size == 0 && a->rank != 1;
    if (p->depth >= 0 && size > 8) {
        mc_type_text(p->out, &n->type);
        return;
    }
    if (size <= 64 && !empty_axes && !(size == 0 && a->dtype != MC_INT64) && plain_nan(a)) {
        if (n->weak && size == 1 && a->rank == 0) {
            struct mc_str word = { 0 };
            element(&word, a->dtype, a->data);
            if (word.s && !word.bad) { /* print the literal without its suffix */
                mc_str_addn(p->out, word.s, word.n - strlen(suffix[a->dtype]));
            }
            mc_str_free(&word);
        } else {
            elements(p->out, a, 0, a->data);
        }
        return;
    }
    mc_str_addf(p->out, "array(%s, [", mc_dtype_name(a->dtype));
    for (int i = 0; i < a->rank; i++) {
        mc_str_addf(p->out, "%s%lld", i ? ", " : "", (long long)a->dims[i]);
    }
    mc_str_add(p->out, "], \"");
    for (size_t i = 0; i < (size_t)size * mc_dtypes[a->dtype].size; i++) {
        mc_str_addf(p->out, "%02x", (unsigned char)a->data[i]);
    }
    mc_str_add(p->out, "\")");
}

static void print_arg(struct mc_str *out, const mc_node *n, int i, void *ctx)
{
    struct printer *p = ctx;
    (void)out;
    print(p, n->in[i], 0);
}

static bool attr_is_default(const struct mc_attr *a, const struct mc_attr *d)
{
    return a->none == d->none && a->n == d->n &&
           (a->n == 0 || memcmp(a->ints, d->ints, (size_t)a->n * sizeof *a->ints) == 0) &&
           memcmp(&a->real, &d->real, sizeof a->real) == 0 &&
           (a->text == d->text || (a->text && d->text && strcmp(a->text, d->text) == 0));
}

static void call(struct printer *p, const mc_node *n)
{
    const struct mc_signature *s = n->op->sig;
    bool list = s->variadic, first = true;
    int k = 0;
    mc_str_addf(p->out, "%s(", n->op->name);
    for (int i = 0; i < n->nin; i++) {
        mc_str_add(p->out, i ? ", " : "");
        mc_str_add(p->out, list && i == s->ntensor ? "[" : "");
        print(p, n->in[i], 0);
        first = false;
    }
    if (list) {
        mc_str_add(p->out, n->nin > s->ntensor ? "]" : first ? "[]" : ", []");
        first = false;
    }
    for (int i = 0; i < s->nparam; i++) {
        if (s->param[i].kind > ATTR_TENSORS) {
            const struct mc_attr *a = &n->attr[k++];
            if (!s->param[i].optional || !attr_is_default(a, &s->param[i].dflt)) {
                mc_str_addf(p->out, "%s%s=", first ? "" : ", ", s->param[i].name);
                mc_attr_text(p->out, a);
                first = false;
            }
        }
    }
    mc_str_add(p->out, ")");
}

static const char *sign_of(const mc_node *n)
{
    static const struct {
        const char *op, *text;
    } signs[] = { { "neg", "-" }, { "invert", "~" } };
    for (size_t i = 0; i < NELEM(signs); i++) {
        if (strcmp(signs[i].op, n->op->name) == 0) {
            return signs[i].text;
        }
    }
    return NULL;
}

static void print(struct printer *p, const mc_node *n, int level)
{
    if (n != p->top && p->label && p->label[n->id]) {
        mc_str_add(p->out, p->label[n->id]);
        return;
    }
    if (n->op == &mc_op_error) {
        mc_str_add(p->out, "error");
        return;
    }
    bool named = n->name &&
                 mc_dict_get(&n->graph->names, n->name) == n; /* the name may since belong to another node */
    if (named && (n != p->top || !n->nin) && (p->depth >= 0 || !n->nin) && !p->label) {
        mc_str_add(p->out, n->name); /* outside statements, the name is the shortest description */
        return;
    }
    if (mc_is_const(n)) {
        double v = 0;
        bool wrap = level > 10 && n->type.rank == 0 && mc_const_number(n, &v) && signbit(v);
        mc_str_add(p->out, wrap ? "(" : "");
        constant(p, n);
        mc_str_add(p->out, wrap ? ")" : "");
        return;
    }
    if (n->op == &mc_op_item) {
        mc_str_add(p->out, "item(");
        print(p, n->in[0], 0);
        mc_str_addf(p->out, ", %d)", n->item);
        return;
    }
    if (!n->nin && (n->op->flags & OP_LEAF)) {
        mc_str_add(p->out, n->name ? n->name : n->op->name);
        return;
    }
    if (p->depth == 0) {
        mc_str_addf(p->out, "%s(...)", n->op->name);
        return;
    }
    p->depth--;
    if (n->op->form == FORM_LOOP) {
        loop(p, n);
        p->depth++;
        return;
    }
    if (n->op->form == FORM_BRANCH && p->depth >= 0) {
        mc_str_add(p->out, "ifelse(");
        for (int i = 0; i < n->nin; i++) {
            mc_str_add(p->out, i ? ", " : "");
            print(p, n->in[i], 0);
        }
        mc_str_add(p->out, ": ...)");
        p->depth++;
        return;
    }
    if (n->op->print && n->op->print(p->out, n, print_arg, p)) {
        p->depth++;
        return;
    }
    for (size_t i = 0; i < NELEM(operators); i++) {
        if (strcmp(operators[i].op, n->op->name) == 0) {
            int own = operators[i].level;
            mc_str_add(p->out, own < level ? "(" : "");
            print(p, n->in[0],
                  own == 11  ? 12
                  : own == 4 ? 5
                             : own); /* a < b < c means something else than (a < b) < c */
            mc_str_addf(p->out, " %s ", operators[i].text);
            print(p, n->in[1], own == 11 ? 10 : own + 1);
            mc_str_add(p->out, own < level ? ")" : "");
            p->depth++;
            return;
        }
    }
    /* -(2) is parsed as a number, neg(2) as a node */
    const char *sign = n->nin == 1 && !mc_is_const(n->in[0]) ? sign_of(n) : NULL;
    if (sign) {
        mc_str_add(p->out, level > 10 ? "(" : "");
        mc_str_add(p->out, sign);
        print(p, n->in[0], 10);
        mc_str_add(p->out, level > 10 ? ")" : "");
    } else {
        call(p, n);
    }
    p->depth++;
}

void mc_node_print(struct mc_str *out, const mc_node *n, int depth)
{
    struct printer p = { .out = out, .depth = depth };
    print(&p, n, 0);
}

/* Is the output readable as one expression?  There a shared node is printed at each use. */
static bool is_short(mc_node *const *list, size_t count)
{
    enum { MOST_TEXT = 200, MOST_WRITTEN = 1000 };
    uint32_t top = count ? list[count - 1]->id : 0;
    size_t *size = count && count < MOST_TEXT ? mc_calloc((size_t)top + 1, sizeof *size, "text") : NULL,
           whole = 0;
    for (size_t i = 0; i < count && size; i++) {
        whole = 1;
        for (int k = 0; k < list[i]->nin; k++) {
            whole = MC_MIN(whole + size[list[i]->in[k]->id], MOST_WRITTEN);
        }
        size[list[i]->id] = whole;
    }
    bool is = size && whole < MOST_WRITTEN;
    mc_free(size);
    return is;
}

char *mc_node_text(const mc_node *n)
{
    struct mc_str out = { 0 };
    if (!n) {
        return mc_strdup("");
    }
    mc_node *one = (mc_node *)n;
    size_t count;
    mc_node **list = mc_graph_reach(1, &one, &count);
    bool formula = list &&
                   is_short(list, count); /* otherwise statements are printed: one for each shared node */
    mc_free(list);
    if (!formula) {
        return mc_graph_text(n->graph, 1, &one);
    }
    struct printer p = { .out = &out, .depth = -1, .top = n };
    print(&p, n, 0);
    return mc_str_take(&out);
}

/* ---- whole graphs ---- */

static void declare(struct mc_str *out, const mc_node *n)
{
    mc_str_addf(out, "%s %s ", n->op->name, n->name ? n->name : "");
    mc_type_text(out, &n->type);
    if (n->shared && n->shared->initial) {
        mc_str_addf(out, " = %s", n->shared->initial);
    }
    mc_str_add(out, "\n");
}

/* The text of the nodes of a list, by statements: labels by node, names of labels, uses and depths. */
struct statements {
    const mc_graph *g;
    mc_node **list;
    size_t count;
    const char **label;
    uint16_t *uses, *deep;
    struct mc_arena names;
    int indent;                 /* as in the printer */
};

static void statements_free(struct statements *s)
{
    mc_free(s->list);
    mc_free(s->label);
    mc_free(s->uses);
    mc_free(s->deep);
    mc_arena_free(&s->names);
}

/* Nodes used more than once, tuples, named nodes and outputs become statements.  Other nodes are printed
 * inside their user, up to the nesting depth that the parser accepts. */
static bool find_statements(struct statements *s, const mc_graph *g, int n, mc_node *const *outputs)
{
    *s = (struct statements){ .g = g };
    s->list = mc_graph_reach(n, outputs, &s->count);
    s->label = mc_calloc(g->nodes.n + 1, sizeof *s->label, "text");
    s->uses = mc_calloc(g->nodes.n + 1, sizeof *s->uses, "text");
    s->deep = mc_calloc(g->nodes.n + 1, sizeof *s->deep, "text");
    if (!s->list || !s->label || !s->uses || !s->deep) {
        s->count = 0;
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        const mc_node *x = s->list[i];
        for (int k = 0; k < x->nin; k++) {
            uint32_t id = x->in[k]->id;
            s->uses[id] = (uint16_t)MC_MIN(s->uses[id] + 1, 9);
            s->deep[x->id] = (uint16_t)MC_MAX(s->deep[x->id], s->deep[id] + 1);
        }
        bool split = s->deep[x->id] >= 12;
        for (int k = 0; k < n; k++) {
            split |= outputs[k] == x;
        }
        if (split) {
            s->uses[x->id] = 9;
            s->deep[x->id] = 0;
        }
    }
    return true;
}

static void statement(struct mc_str *out, struct statements *s, const mc_node *x, size_t *temp,
                      const char *end)
{
    char word[24];
    do {
        mc_snprintf(word, sizeof word, "t%zu", ++*temp);
    } while (!x->name && mc_dict_get(&s->g->names, word));
    s->label[x->id] = x->name && mc_dict_get(&s->g->names, x->name) == x
                          ? x->name
                          : mc_arena_str(&s->names, word, strlen(word));
    struct printer p = { .out = out, .depth = -1, .label = s->label, .top = x, .indent = s->indent };
    mc_str_addf(out, "%s = ", s->label[x->id] ? s->label[x->id] : "t");
    print(&p, x, 0);
    mc_str_add(out, end);
}

static bool is_statement(const struct statements *s, const mc_node *x)
{
    return x->op != &mc_op_item && x->op != &mc_op_tuple && x->nin &&
           (s->uses[x->id] > 1 || x->nout > 1 || x->name);
}

char *mc_graph_text(const mc_graph *g, int n, mc_node *const *outputs)
{
    struct mc_str out = { 0 };
    size_t temp = 0;
    bool given = g && (n < 1 || outputs);
    for (int i = 0; given && i < n; i++) {
        given = outputs[i];
    }
    if (!given) {
        mc_fail(MC_EARG, g ? "text of a graph: a node is NULL" : "text of a graph: the graph is NULL");
        return NULL;
    }
    struct statements s;
    out.bad = !find_statements(&s, g, n, outputs);
    s.indent = INDENT;
    for (size_t i = 0; i < s.count; i++) {
        const mc_node *x = s.list[i];
        if (x->op == &mc_op_input || x->op == &mc_op_shared) {
            declare(&out, x);
            s.label[x->id] = x->name;
        } else if (is_statement(&s, x)) {
            statement(&out, &s, x, &temp, "\n");
        } else if (mc_is_const(x) && s.uses[x->id] == 9 && n == 1 && outputs[0] == x) {
            struct printer p = { .out = &out, .depth = -1 };
            print(&p, x, 0);
            mc_str_add(&out, "\n");
        }
    }
    statements_free(&s);
    return mc_str_take(&out);
}

/* Declares labels for the inputs and prints the statements of a body, each with `end` behind it. */
static void body_statements(struct mc_str *out, struct statements *s, const struct mc_body *b,
                            const char *end, int indent)
{
    size_t temp = 0;
    out->bad |= !find_statements(s, b->graph, b->nout, b->out);
    s->indent = indent;
    for (int i = 0; i < b->nin && !out->bad; i++) {
        s->label[b->in[i]->id] = b->in[i]->name;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (is_statement(s, s->list[i])) {
            statement(out, s, s->list[i], &temp, end);
        }
    }
}

char *mc_body_text(const struct mc_body *b)
{
    struct mc_str out = { 0 };
    struct statements s;
    for (int i = 0; i < b->nin; i++) {
        declare(&out, b->in[i]);
    }
    body_statements(&out, &s, b, "\n", 0);
    mc_str_add(&out, "yield ");
    struct printer p = { .out = &out, .depth = -1, .label = s.label };
    for (int i = 0; i < b->nout && !out.bad; i++) {
        mc_str_add(&out, i ? ", " : "");
        print(&p, b->out[i], 0);
    }
    statements_free(&s);
    return mc_str_take(&out);
}

/* A loop as parse_scan.c reads it.  States are assigned at the end, all at once; a result that is an input of
 * the body has a name of its own, as the name of a state is then that of its next value. */
static void loop(struct printer *p, const mc_node *n)
{
    const struct mc_body *b = n->attr[LOOP_BODY].body;
    const int nsequence = (int)n->attr[LOOP_SEQUENCES].ints[0], nstate = (int)n->attr[LOOP_STATES].ints[0];
    const int64_t kept = n->attr[LOOP_KEPT].ints[0], until = n->attr[LOOP_UNTIL].ints[0];
    struct statements s;
    char word[24], gap[40] = " ", end[48];
    if (p->indent) {
        mc_snprintf(gap, sizeof gap, "\n%*s", MC_MIN(p->indent, MOST_INDENT), "");
    }
    mc_snprintf(end, sizeof end, ";%s", gap);
    mc_str_add(p->out, "scan(steps = ");
    print(p, n->in[0], 0);
    for (int i = 0; i < b->nin; i++) {
        mc_str_addf(p->out, ", %s %s ", b->in[i]->name,
                    i < nsequence            ? "in"
                    : i < nsequence + nstate ? "from"
                                             : "=");
        print(p, n->in[1 + i], 0);
    }
    if (n->attr[LOOP_TRUNCATE].ints[0]) {
        mc_str_addf(p->out, ", truncate_gradient = %lld", (long long)n->attr[LOOP_TRUNCATE].ints[0]);
    }
    if (p->depth >= 0) {
        mc_str_add(p->out, ": ...)");
        return;
    }
    mc_str_addf(p->out, ":%s", gap);
    body_statements(p->out, &s, b, end, p->indent ? p->indent + INDENT : 0);
    struct printer in = { .out = p->out, .depth = -1, .label = s.label, .indent = s.indent };
    for (int i = nstate; i < b->nout && !p->out->bad; i++) {
        if (b->out[i]->op == &mc_op_input) {
            mc_str_addf(p->out, "u%d = %s%s", i, b->out[i]->name, end);
        }
    }
    for (int pass = 0; pass < 2 && nstate && !p->out->bad; pass++) {
        for (int i = 0; i < nstate; i++) {
            mc_str_add(p->out, i ? ", " : "");
            if (pass) {
                print(&in, b->out[i], 0);
            } else {
                mc_str_add(p->out, b->in[nsequence + i]->name);
            }
        }
        mc_str_add(p->out, pass ? end : " = ");
    }
    for (int i = nstate; i < b->nout && !p->out->bad; i++) {
        mc_snprintf(word, sizeof word, "u%d", i);
        if (b->out[i]->op == &mc_op_input) {
            s.label[b->out[i]->id] = mc_arena_str(&s.names, word, strlen(word));
        }
    }
    const char *comma = "yield ";
    for (int i = 0; i < nstate; i++, comma = ", ") {
        mc_str_addf(p->out, "%slast %s", comma, b->in[nsequence + i]->name);
    }
    for (int i = 0; i < nstate; i++) {
        if (kept >> i & 1) {
            mc_str_addf(p->out, ", %s", b->in[nsequence + i]->name);
        }
    }
    for (int i = nstate; i < b->nout - until && !p->out->bad; i++, comma = ", ") {
        mc_str_add(p->out, comma);
        print(&in, b->out[i], 0);
    }
    if (until && !p->out->bad) {
        mc_str_addf(p->out, ", count%shalt ", end);
        print(&in, b->out[b->nout - 1], 0);
    }
    mc_str_add(p->out, ")");
    statements_free(&s);
}
