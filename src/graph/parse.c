/* parse.c: expressions of the text form, by precedence climbing.  Python's notation and precedence.
 * Literals stay literals until a node or an attribute is wanted. */
#include "graph/parse.h"

enum { DEEPEST = 200 };

static const struct infix {
    const char *text;
    int level;            /* higher binds tighter */
    const char *op;
} infixes[] = {
    { "or", 1, "or_" },   { "and", 2, "and_" },
    { "==", 4, "eq" },    { "!=", 4, "neq" },  { "<=", 4, "le" }, { ">=", 4, "ge" }, { "<", 4, "lt" }, { ">", 4, "gt" },
    { "|", 5, "or_" },    { "^", 6, "xor" },   { "&", 7, "and_" },
    { "+", 8, "add" },    { "-", 8, "sub" },
    { "*", 9, "mul" },    { "//", 9, "int_div" }, { "/", 9, "true_div" }, { "%", 9, "mod" }, { "@", 9, "dot" },
};

static struct val fold_numbers(const char *op, const struct val *a, const struct val *b, bool *done)
{
    struct val v = { .kind = V_INT, .dtype = -1, .at = a->at };
    bool numbers = (a->kind == V_INT || a->kind == V_REAL) && (b->kind == V_INT || b->kind == V_REAL) && a->dtype < 0 &&
                   b->dtype < 0;
    bool whole = a->kind == V_INT && b->kind == V_INT;
    double x = a->kind == V_INT ? (double)a->i : a->real, y = b->kind == V_INT ? (double)b->i : b->real;
    *done = numbers;
    if (strcmp(op, "add") == 0 && (!whole || mc_add_i64(a->i, b->i, &v.i))) {
        v.real = x + y;
    } else if (strcmp(op, "sub") == 0 && b->i != INT64_MIN && (!whole || mc_add_i64(a->i, -b->i, &v.i))) {
        v.real = x - y;
    } else if (strcmp(op, "mul") == 0 && (!whole || mc_mul_i64(a->i, b->i, &v.i))) {
        v.real = x * y;
    } else if (strcmp(op, "true_div") == 0 && y != 0) {
        v.real = x / y;
        whole = false;
    } else {
        *done = false;
    }
    v.kind = whole ? V_INT : V_REAL;
    return v;
}

struct val mc_parse_apply(struct parser *p, const char *name, const struct val *arg, int n, size_t at)
{
    mc_node *in[4];
    bool done = false;
    if (n == 2) {
        struct val folded = fold_numbers(name, &arg[0], &arg[1], &done);
        if (done) {
            return folded;
        }
    }
    for (int i = 0; i < n; i++) {
        in[i] = mc_val_node(p, &arg[i]);
    }
    if (p->failed) {
        return mc_val_of(p->g->error, at);
    }
    p->place.at = at;
    const struct mc_op *op = mc_op_find(name);
    struct mc_attr attr[16] = { 0 };
    mc_attr_defaults(op, attr);
    mc_node *r = mc_apply(p->g, op, n, in, attr);
    if (mc_is_error(r)) {
        p->failed = true;
        p->tok.kind = T_END;
    }
    return mc_val_of(r, arg[0].at);
}

static const struct infix *infix_here(const struct parser *p)
{
    for (size_t i = 0; i < NELEM(infixes); i++) {
        if (mc_parse_is(p, infixes[i].text) || mc_parse_word(p, infixes[i].text)) {
            return &infixes[i];
        }
    }
    return NULL;
}

static struct val parse_unary(struct parser *p)
{
    size_t at = p->tok.at;
    struct val v;
    if (++p->depth > DEEPEST) {
        mc_parse_fail(p, at, "this formula is nested more than %d deep", DEEPEST);
    }
    if (mc_parse_take(p, "+")) {
        v = parse_unary(p);
    } else if (mc_parse_take(p, "-")) {
        v = parse_unary(p);
        if ((v.kind == V_INT || v.kind == V_REAL) && (v.dtype < 0 || mc_dtypes[v.dtype].kind != KIND_UINT)) {
            v.i = v.i == INT64_MIN ? v.i : -v.i;
            v.real = -v.real;
        } else {
            v = mc_parse_apply(p, "neg", &v, 1, at);
        }
    } else if (mc_parse_take(p, "~")) {
        v = parse_unary(p);
        v = mc_parse_apply(p, "invert", &v, 1, at);
    } else {
        v = mc_parse_primary(p);
        size_t power = p->tok.at;
        if (mc_parse_take(p, "**")) {
            struct val pair[2] = { v, parse_unary(p) };
            v = mc_parse_apply(p, "pow", pair, 2, power);
        }
    }
    p->depth--;
    return v;
}

static struct val parse_level(struct parser *p, int level)
{
    size_t at = p->tok.at;
    struct val v;
    if (++p->depth > DEEPEST) {
        mc_parse_fail(p, at, "this formula is nested more than %d deep", DEEPEST);
    }
    if (level <= 3 && mc_parse_word(p, "not")) {
        mc_parse_next(p);
        v = parse_level(p, 3);
        v = mc_parse_apply(p, "invert", &v, 1, at);
    } else {
        v = parse_unary(p);
    }
    for (const struct infix *o; !p->failed && (o = infix_here(p)) && o->level >= level;) {
        at = p->tok.at;
        mc_parse_next(p);
        struct val pair[2] = { v, parse_level(p, o->level + 1) };
        v = mc_parse_apply(p, o->op, pair, 2, at);
    }
    p->depth--;
    return v;
}

struct val mc_parse_expr(struct parser *p)
{
    return parse_level(p, 0);
}

bool mc_parse_skip(struct parser *p)
{
    bool any = false;
    while (mc_parse_is(p, ";") || mc_parse_is(p, "\n")) {
        mc_parse_next(p);
        any = true;
    }
    return any;
}

/* Templates may name parts: "e = exp(x); e / sum(e)".  The names live as long as the template. */
static bool local_name(struct parser *p, struct tok *name)
{
    struct parser back = *p;
    *name = p->tok;
    if (p->tok.kind == T_NAME) {
        mc_parse_next(p);
        if (mc_parse_take(p, "=")) {
            return true;
        }
    }
    *p = back;
    return false;
}

mc_node *mc_expr(mc_graph *g, const char *text, const struct mc_bind *bind, int nbind)
{
    struct mc_bind local[48];
    struct parser p;
    mc_node *n = g->error;
    memcpy(local, bind, (size_t)nbind * sizeof *bind);
    mc_parse_begin(&p, g, text, local, nbind);
    do {
        struct tok name;
        bool named = local_name(&p, &name);
        struct val v = mc_parse_expr(&p);
        if (v.kind == V_LIST && !named) { /* several results */
            mc_node *item[16];
            for (int i = 0; i < v.n && i < 16; i++) {
                item[i] = mc_val_node(&p, &v.item[i]);
            }
            n = p.failed ? g->error : mc_node_make(g, &mc_op_tuple, v.n, item, NULL);
        } else {
            n = mc_val_node(&p, &v);
        }
        if (named && p.nbind < (int)NELEM(local)) {
            local[p.nbind++] = (struct mc_bind){ mc_parse_copy(&p, &name), n, NULL };
        }
    } while (mc_parse_skip(&p) && p.tok.kind != T_END);
    if (!p.failed && p.tok.kind != T_END) {
        mc_parse_fail(&p, p.tok.at, "this is left over");
    }
    n = p.failed ? g->error : n;
    mc_parse_end(&p);
    return n;
}
