/* parse.c: expressions of the text form, by precedence climbing, in Python's notation and precedence.
 * Literals stay literals until a node or an attribute is needed. */
#include "graph/parse.h"
#include <math.h>

enum { DEEPEST = 200, LEVEL_COMPARE = 4 };

static const struct infix {
    const char *text;
    int level;            /* higher binds tighter */
    const char *op;
} infixes[] = {
    { "or", 1, "or_" }, { "and", 2, "and_" }, { "==", 4, "eq" },      { "!=", 4, "neq" },
    { "<=", 4, "le" },  { ">=", 4, "ge" },    { "<", 4, "lt" },       { ">", 4, "gt" },
    { "|", 5, "or_" },  { "^", 6, "xor" },    { "&", 7, "and_" },     { "+", 8, "add" },
    { "-", 8, "sub" },  { "*", 9, "mul" },    { "//", 9, "int_div" }, { "/", 9, "true_div" },
    { "%", 9, "mod" },  { "@", 9, "matmul" },
};

static double real_add(double x, double y) { return x + y; }
static double real_sub(double x, double y) { return x - y; }
static double real_mul(double x, double y) { return x * y; }
static double real_div(double x, double y) { return x / y; }

static const struct { const char *op; double (*make)(double x, double y); } reals[] = {
    { "add", real_add }, { "sub", real_sub }, { "mul", real_mul }, { "true_div", real_div }, { "pow", pow },
};

static int64_t bits_and(int64_t x, int64_t y) { return x & y; }
static int64_t bits_or(int64_t x, int64_t y) { return x | y; }
static int64_t bits_xor(int64_t x, int64_t y) { return x ^ y; }

static const struct { const char *op; int64_t (*make)(int64_t x, int64_t y); } bits[] = {
    { "and_", bits_and }, { "or_", bits_or }, { "xor", bits_xor },
};

/* Arithmetic on literals gives a literal: exact for whole numbers, in float64 for others. */
static struct val fold_numbers(struct parser *p, const char *op, const struct val *a, const struct val *b,
                               size_t at, bool *done)
{
    struct val v = { .kind = V_REAL, .dtype = -1, .at = a->at };
    struct whole x, y, r;
    const char *fault;
    *done = false;
    if (mc_val_bigint(a, &x) && mc_val_bigint(b, &y)) {
        enum whole_result made = mc_bigint_op(op, &x, &y, &r, &fault);
        *done = made != WHOLE_NOT;
        if (made == WHOLE_FAULT) {
            mc_parse_fail(p, at, "%s", fault);
            return mc_val_of(p->g->error, at);
        }
        if (made == WHOLE_MADE || made == WHOLE_BOOL) {
            v = mc_val_of_bigint(p, &r, a->at);
            v.kind = made == WHOLE_BOOL ? V_BOOL : v.kind;
            return v;
        }
    }
    for (size_t i = 0;
         i < NELEM(bits) && a->kind == V_INT && b->kind == V_INT && a->dtype < 0 && b->dtype < 0; i++) {
        if (strcmp(op, bits[i].op) == 0) {
            v.kind = V_INT;
            v.i = bits[i].make(a->i, b->i);
            v.real = (double)v.i;
            *done = true;
        }
    }
    for (size_t i = 0; i < NELEM(reals) && mc_val_is_number(a) && mc_val_is_number(b); i++) {
        if (strcmp(op, reals[i].op) == 0) {
            v.real = reals[i].make(a->real, b->real);
            *done = true;
        }
    }
    return v;
}

struct val mc_parse_apply(struct parser *p, const char *name, const struct val *arg, int n, size_t at)
{
    mc_node *in[4];
    bool done = false;
    if (n == 2) {
        struct val folded = fold_numbers(p, name, &arg[0], &arg[1], at, &done);
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
    p->location.at = at;
    const struct mc_op *op = mc_op_named(p->g, name);
    struct mc_attr attr[16] = { 0 };
    mc_attr_defaults(op, attr);
    mc_node *r = mc_apply(p->g, op, n, in, attr);
    if (mc_is_error(r)) {
        p->failed = true;
        p->tok.kind = T_END;
    }
    return mc_val_of(r, arg[0].at);
}

static const struct infix *next_infix(const struct parser *p)
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
        mc_parse_fail(p, at, "the formula is nested more than %d levels deep", DEEPEST);
    }
    if (mc_parse_take(p, "+")) {
        v = parse_unary(p);
    } else if (mc_parse_take(p, "-")) {
        v = parse_unary(p);
        struct whole w;
        if (mc_val_bigint(&v, &w)) {
            w = mc_bigint_neg(&w);
            v = mc_val_of_bigint(p, &w, v.at);
        } else if ((v.kind == V_INT || v.kind == V_REAL) &&
                   (v.dtype < 0 || mc_dtypes[v.dtype].kind != KIND_UINT)) {
            v.i = v.i == INT64_MIN ? v.i : -v.i;
            v.real = -v.real;
        } else {
            v = mc_parse_apply(p, "neg", &v, 1, at);
        }
    } else if (mc_parse_take(p, "~")) {
        v = parse_unary(p);
        if (v.kind == V_INT && v.dtype < 0) {
            v.i = ~v.i;
            v.real = (double)v.i;
        } else {
            v = mc_parse_apply(p, "invert", &v, 1, at);
        }
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

/* and, or, not take bool only: Python's meaning for other operands differs from that of the bit operators. */
static void need_bool(struct parser *p, const struct val *v, const char *word, const char *instead)
{
    bool is = v->kind == V_BOOL || (v->kind == V_NODE && v->node && v->node->nout == 1 &&
                                    (mc_is_error(v->node) || v->node->type.dtype == MC_BOOL));
    if (!is && !p->failed) {
        const char *have = v->kind == V_NODE && v->node && v->node->nout == 1
                               ? mc_dtype_name(v->node->type.dtype)
                               : "this value";
        mc_parse_fail(p, v->at, "'%s' needs bool, not %s; '%s' works on the bits of integers", word, have,
                      instead);
    }
}

/* x < y < z means x < y and y < z, as in Python. */
static struct val parse_comparison(struct parser *p, const struct infix *o, struct val left,
                                   const struct val *before, const struct val *right, size_t at)
{
    struct val v = mc_parse_apply(p, o->op, (struct val[]){ before ? *before : left, *right }, 2, at);
    return before && !p->failed ? mc_parse_apply(p, "and_", (struct val[]){ left, v }, 2, at) : v;
}

static struct val parse_level(struct parser *p, int level)
{
    size_t at = p->tok.at;
    struct val v;
    if (++p->depth > DEEPEST) {
        mc_parse_fail(p, at, "the formula is nested more than %d levels deep", DEEPEST);
    }
    if (level <= 3 && mc_parse_word(p, "not")) {
        mc_parse_next(p);
        v = parse_level(p, 3);
        need_bool(p, &v, "not", "~");
        v = mc_parse_apply(p, "invert", &v, 1, at);
    } else {
        v = parse_unary(p);
    }
    struct val before = { 0 };
    bool compared = false;
    for (const struct infix *o; !p->failed && (o = next_infix(p)) && o->level >= level;) {
        at = p->tok.at;
        mc_parse_next(p);
        struct val right = parse_level(p, o->level + 1);
        if (o->level == LEVEL_COMPARE) {
            v = parse_comparison(p, o, v, compared ? &before : NULL, &right, at);
        } else {
            if (o->level < LEVEL_COMPARE) {
                need_bool(p, &v, o->text, o->level == 1 ? "|" : "&");
                need_bool(p, &right, o->text, o->level == 1 ? "|" : "&");
            }
            v = mc_parse_apply(p, o->op, (struct val[]){ v, right }, 2, at);
        }
        compared = o->level == LEVEL_COMPARE;
        before = right;
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

/* Formulas of templates may name intermediate values: "e = exp(x); e / sum(e)".  The names are local to the
 * template. */
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
        mc_parse_fail(&p, p.tok.at, "unexpected text after the formula");
    }
    n = p.failed ? g->error : n;
    mc_parse_end(&p);
    return n;
}
