/* statement.c: whole formulas: declarations, assignments, lists of results, updates.
 *
 *     input x float32[?, 784]            a declaration; sizes: number, ? or _
 *     shared W float32[784, 10]          zeros; or a value: = normal(std=0.02), = 0.5
 *     y = tanh(dot(x, W)); a, b = split(y, [3, 7], axis=1)
 */
#include "graph/parse_desc.h"

static bool declaration_follows(struct parser *p)
{
    return mc_parse_word(p, "input") || mc_parse_word(p, "shared");
}

static void no_dtype(struct parser *p, const char *word, size_t at)
{
    struct mc_str known = { 0 };
    const char *names[MC_NDTYPE + 1] = { [MC_NDTYPE] = "floatX" };
    for (int d = 0; d < MC_NDTYPE; d++) {
        names[d] = mc_dtypes[d].name;
        mc_str_addf(&known, "%s, ", names[d]);
    }
    const char *near = mc_near_miss(word, names, NELEM(names));
    if (near) {
        mc_parse_fail(p, at, "unknown dtype '%s'; did you mean '%s'?", word, near);
    } else {
        mc_parse_fail(p, at, "unknown dtype '%s'; expected one of %sfloatX", word, known.s ? known.s : "");
    }
    mc_str_free(&known);
}

static bool parse_type(struct parser *p, struct mc_type *t)
{
    char word[16] = { 0 };
    size_t at = p->tok.at;
    *t = (struct mc_type){ .dtype = mc_dtype_floatX() };
    if (p->tok.kind == T_NAME) {
        memcpy(word, p->text + at, MC_MIN(p->tok.n, sizeof word - 1));
        if (strcmp(word, "floatX") != 0 && mc_dtype_parse(word, &t->dtype) < 0) {
            no_dtype(p, word, at);
        }
        mc_parse_next(p);
    }
    if (mc_parse_is(p, "[")) {
        mc_parse_next(p);
        while (!p->failed && !mc_parse_is(p, "]")) {
            if (t->rank == MC_MAX_RANK) {
                mc_parse_fail(p, p->tok.at, "a tensor has at most %d axes", MC_MAX_RANK);
            } else if (p->tok.kind == T_NUMBER) {
                struct val v = mc_parse_number(p);
                t->dims[t->rank++] = v.i;
                if (v.kind != V_INT || v.i < 0) {
                    mc_parse_fail(p, v.at, "a size must be a whole number");
                }
            } else if (mc_parse_is(p, "?") || mc_parse_word(p, "_")) {
                t->dims[t->rank++] = -1;
                mc_parse_next(p);
            } else {
                mc_parse_fail(p, p->tok.at, "expected a size, ? or _");
            }
            if (!mc_parse_is(p, "]")) {
                mc_parse_expect(p, ",");
            }
        }
        mc_parse_expect(p, "]");
    }
    return !p->failed;
}

static mc_node *parse_declaration(struct parser *p)
{
    bool shared = mc_parse_word(p, "shared");
    struct mc_type t;
    mc_parse_next(p);
    struct tok name = p->tok;
    if (name.kind != T_NAME) {
        mc_parse_fail(p, name.at, "expected the name of %s", shared ? "a shared variable" : "an input");
        return p->g->error;
    }
    char *word = mc_parse_copy(p, &name);
    mc_parse_next(p);
    mc_parse_take(p, ":");
    if (p->failed || !parse_type(p, &t)) {
        return p->g->error;
    }
    p->location.at = name.at;
    if (!shared) {
        return mc_input_sized(p->g, word, t.dtype, t.rank, t.dims);
    }
    for (int i = 0; i < t.rank; i++) {
        if (t.dims[i] < 0) {
            return mc_node_fail(p->g, MC_ESHAPE, "shared %s: all sizes must be given", word);
        }
    }
    char *rule = NULL;
    bool given = mc_parse_take(p, "=");
    mc_array *value = given ? mc_parse_initial(p, word, &t, &rule) : NULL;
    p->location.at = p->failed ? p->location.at : name.at;
    mc_shared *s = p->failed ? NULL
                   : given   ? mc_shared_new(p->g, word, value)
                             : mc_shared_zeros(p->g, word, t.dtype, t.rank, t.dims);
    mc_array_unref(&value);
    if (s) {
        s->initial = rule;
    } else {
        mc_free(rule);
    }
    return s ? mc_shared_node(p->g, s) : p->g->error;
}

/* Reads "name =" or "name, name =" and returns the number of names; 0: something else follows, and nothing is
 * consumed. */
static int targets(struct parser *p, struct tok *out, int most)
{
    struct parser back = *p;
    int n = 0;
    while (p->tok.kind == T_NAME && n < most) {
        out[n++] = p->tok;
        mc_parse_next(p);
        if (mc_parse_is(p, "=")) {
            mc_parse_next(p);
            return n;
        }
        if (!mc_parse_take(p, ",")) {
            break;
        }
    }
    bool failed = p->failed;
    *p = back;
    p->failed = failed;
    if (failed) {
        p->tok.kind = T_END;
    }
    return 0;
}

/* A name may be assigned again; the last assignment counts. */
static mc_node *assign(struct parser *p, const struct tok *t, mc_node *n)
{
    char *name = mc_parse_copy(p, t);
    mc_node *old = name ? mc_dict_get(&p->g->names, name) : NULL;
    p->location.at = t->at;
    if (name && mc_parse_desc_named(p, name)) {
        return mc_node_fail(p->g, MC_EARG, "'%s' is a descriptor and cannot be assigned; use another name",
                            name);
    }
    bool leaf = old && (old->op == &mc_op_input || old->op == &mc_op_shared);
    if (leaf && old != n && old->name && strcmp(old->name, name) == 0) { /* an input may get a second name */
        return mc_node_fail(p->g, MC_EARG,
                            "'%s' is %s and cannot be assigned; use another name, or an update", name,
                            old->op == &mc_op_input ? "an input" : "a shared variable");
    }
    return name ? mc_name(n, name) : p->g->error;
}

/* NULL, and no error, where the statement gives a descriptor a name. */
static mc_node *parse_statement(struct parser *p)
{
    struct tok name[16];
    if (declaration_follows(p)) {
        return parse_declaration(p);
    }
    int n = targets(p, name, (int)NELEM(name));
    struct val v = mc_parse_expr(p);
    if (p->failed) {
        return p->g->error;
    }
    if (n == 1 && v.kind == V_DESC) {
        mc_parse_desc_keep(p, mc_parse_copy(p, &name[0]), &v);
        return p->failed ? p->g->error : NULL;
    }
    if (n <= 1) {
        mc_node *r = v.kind == V_NODE && v.node && v.node->nout > 1 ? v.node : mc_val_node(p, &v);
        return n && !mc_is_error(r) ? assign(p, &name[0], r) : r;
    }
    mc_node *r = p->g->error;
    int have = v.kind == V_LIST ? v.n : v.kind == V_NODE ? v.node->nout : 1;
    if (have != n) {
        mc_parse_fail(p, name[0].at, "%d names are assigned %d values", n, have);
        return r;
    }
    for (int i = 0; i < n && !p->failed; i++) {
        mc_node *one = v.kind == V_LIST ? mc_val_node(p, &v.item[i]) : mc_item(v.node, i);
        r = mc_is_error(one) ? one : assign(p, &name[i], one);
    }
    return r;
}

mc_node *mc_formula(mc_graph *g, const char *text)
{
    if (!g) {
        return NULL;
    }
    if (!text) {
        return mc_node_fail(g, MC_EARG, "formula: the text is NULL");
    }
    struct parser p;
    mc_node *last = NULL;
    mc_parse_begin(&p, g, text, NULL, 0);
    mc_parse_skip(&p);
    while (!p.failed && p.tok.kind != T_END) {
        const struct mc_desc *before = p.desc;
        mc_node *made = parse_statement(&p);
        last = p.desc == before ? made : last;
        if (p.desc == before && mc_is_error(made)) {
            p.failed = true;
        } else if (!mc_parse_skip(&p) && p.tok.kind != T_END) {
            mc_parse_fail(&p, p.tok.at, "expected the end of the statement, not '%.*s'", (int)p.tok.n,
                          p.text + p.tok.at);
        }
    }
    if (!p.failed && !last) {
        p.location.at = 0;
        last = mc_node_fail(g, MC_ESYNTAX, p.desc ? "a descriptor is no result" : "the formula is empty");
    }
    last = p.failed ? g->error : last;
    mc_parse_end(&p);
    return last;
}

mc_node *mc_formulaf(mc_graph *g, const char *fmt, ...)
{
    struct mc_str text = { 0 };
    va_list ap;
    if (!g || !fmt) {
        return mc_formula(g, fmt);
    }
    va_start(ap, fmt);
    mc_str_addv(&text, fmt, ap);
    va_end(ap);
    mc_node *n = text.bad ? mc_node_no_memory(g) : mc_formula(g, text.s ? text.s : "");
    mc_str_free(&text);
    return n;
}

mc_node *mc_index(mc_node *x, const char *index, ...)
{
    struct mc_str text = { 0 };
    va_list ap;
    if (!x || !index || mc_is_error(x)) {
        return x && !index ? mc_node_fail(x->graph, MC_EARG, "index: the text is NULL") : x;
    }
    mc_str_add(&text, "x_[");
    va_start(ap, index);
    mc_str_addv(&text, index, ap);
    va_end(ap);
    mc_str_add(&text, "]");
    mc_node *y = text.bad ? mc_node_fail(x->graph, MC_EMEMORY, "%s", mc_last_error())
                          : mc_expr(x->graph, text.s, (struct mc_bind[]){ { "x_", x, NULL } }, 1);
    mc_str_free(&text);
    return y;
}

/* ---- lists in specs ---- */

void mc_named_free(struct mc_named *v, int n)
{
    for (int i = 0; v && i < n; i++) {
        mc_free(v[i].name);
    }
    mc_free(v);
}

/* Parses an entry of a list in a spec: "W = e" of updates and givens; "x, lr=0.1" of inputs; "cost,
 * borrow(p), y = e" of outputs.  all: the value as parsed. */
static bool parse_named(struct parser *p, bool statement, struct mc_named *out, struct val *all)
{
    struct tok name;
    *out = (struct mc_named){ 0 };
    int n = targets(p, &name, 1);
    if (statement && !n) {
        mc_parse_fail(p, p->tok.at, "expected 'name = value'");
        return false;
    }
    if (n) {
        char *word = mc_parse_copy(p, &name);
        out->name = word ? mc_strdup(word) : NULL;
        if (!out->name) {
            mc_parse_memory(p);
            return false;
        }
    }
    bool paren = false;
    if (mc_parse_word(p, "borrow")) {
        out->borrow = true;
        mc_parse_next(p);
        paren = true;
        mc_parse_expect(p, "(");
    }
    struct val v = mc_parse_expr(p);
    if (paren) {
        mc_parse_expect(p, ")");
    }
    if (p->failed) {
        return false;
    }
    if (v.kind == V_INT || v.kind == V_WIDE || v.kind == V_REAL || v.kind == V_BOOL) {
        out->has_default = true;
        out->dflt = v.kind == V_INT ? (double)v.i : v.kind == V_BOOL ? (double)v.i : v.real;
    }
    if (v.several && v.n > 1 && out->name) {
        mc_parse_fail(p, name.at, "one name is assigned %d values", v.n);
        return false;
    }
    out->node = mc_val_node(p, v.several && v.n ? &v.item[0] : &v);
    *all = v;
    if (p->failed) {
        return false;
    }
    if (!out->name && out->node->name && !(out->name = mc_strdup(out->node->name))) {
        mc_parse_memory(p);
    }
    return !p->failed;
}

mc_status mc_parse_list(mc_graph *g, const char *text, bool statements, struct mc_named **out, int *n)
{
    VEC(struct mc_named) list = { 0 };
    struct parser p;
    mc_parse_begin(&p, g, text, NULL, 0);
    mc_parse_skip(&p);
    while (!p.failed && p.tok.kind != T_END) {
        struct mc_named one;
        struct val all = { .kind = V_NONE };
        bool ok = parse_named(&p, statements, &one, &all);
        if (!ok || !VEC_PUSH(list, one)) {
            mc_free(one.name);
            p.failed = true;
            break;
        }
        /* grad(cost, [x, w]) gives several values */
        for (int i = 1; all.several && i < all.n && !p.failed; i++) {
            struct mc_named more = { .borrow = one.borrow, .node = mc_val_node(&p, &all.item[i]) };
            if (!p.failed && !VEC_PUSH(list, more)) {
                mc_parse_memory(&p);
            }
        }
        if (!mc_parse_skip(&p) && !mc_parse_take(&p, ",") && p.tok.kind != T_END) {
            mc_parse_fail(&p, p.tok.at, "expected ',' or ';', not '%.*s'", (int)p.tok.n, p.text + p.tok.at);
        }
        mc_parse_skip(&p);
    }
    bool failed = p.failed;
    mc_parse_end(&p);
    *out = list.at;
    *n = (int)list.n;
    if (failed) {
        mc_named_free(list.at, (int)list.n);
        *out = NULL;
        *n = 0;
        return g->status < 0 ? g->status : MC_EMEMORY;
    }
    return MC_OK;
}
