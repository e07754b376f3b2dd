/* pattern.c: reads the sides of a rule. Both are formulas over single letters:
 *
 *   k m n     a constant whose elements are all equal      any other letter   any node
 *   2, 0.5    that number, in the dtype of the other operand   True, False    a bool
 *   axis=a    any value of the attribute, bound to a
 *
 * A letter that occurs twice is the same node, or an equal attribute. An attribute that is not written must
 * have its default. */
#include "rewrite/pattern.h"
#include "graph/parse.h"

static const struct infix { const char *text; int level; const char *op; } infixes[] = {
    { "==", 4, "eq" }, { "!=", 4, "neq" }, { "<=", 4, "le" }, { ">=", 4, "ge" }, { "<", 4, "lt" }, { ">", 4, "gt" },
    { "+", 8, "add" }, { "-", 8, "sub" },
    { "*", 9, "mul" }, { "//", 9, "int_div" }, { "/", 9, "true_div" }, { "%", 9, "mod" },
};

struct reader {
    struct parser p;
    const struct mc_pattern *left;   /* NULL while reading a left side */
    struct mc_pattern *root;         /* collects the letters and the number of commutative nodes */
    int depth;
};

static struct mc_pattern *read_level(struct reader *r, int level);

static struct mc_pattern *fresh(struct reader *r, enum pattern_kind kind)
{
    struct mc_pattern *n = mc_arena_alloc(&r->p.g->arena, sizeof *n);
    if (!n) { /* not an error of the text */
        mc_node_fail(r->p.g, MC_EMEMORY, "%s", mc_last_error());
        r->p.failed = true;
        r->p.tok.kind = T_END;
        return NULL;
    }
    n->kind = kind;
    n->swap = -1;
    return n;
}

/* The letter of the token. A letter on the right side must be bound on the left. */
static int letter(struct reader *r, const struct tok *t, bool attr)
{
    int c = r->p.text[t->at] - 'a';
    uint32_t bit = c >= 0 && c < 26 && t->n == 1 ? 1u << c : 0;
    if (!bit) {
        mc_parse_fail(&r->p, t->at, "letters in a rule are single and lower case, not '%.*s'", (int)t->n,
                      r->p.text + t->at);
        return 0;
    }
    if (r->left && !((attr ? r->left->attrs : r->left->nodes) & bit)) {
        mc_parse_fail(&r->p, t->at, "'%c' does not occur on the left side", 'a' + c);
    }
    *(attr ? &r->root->attrs : &r->root->nodes) |= bit;
    return c;
}

static struct mc_pattern *read_number(struct reader *r, double sign)
{
    struct val v = mc_parse_number(&r->p);
    struct mc_pattern *n = fresh(r, NUMBER);
    if (n) {
        n->real = v.kind == V_REAL;
        n->number = sign * (n->real ? v.real : (double)v.i);
    }
    return n;
}

static struct mc_pattern *call(struct reader *r, const char *name, size_t at, int nin,
                               struct mc_pattern *const *in)
{
    const struct mc_op *op = mc_op_find(name);
    if (r->p.failed) {
        return NULL;
    }
    if (!op || op->flags & OP_LEAF) {
        mc_parse_fail(&r->p, at, "there is no function '%s'", name);
        return NULL;
    }
    bool stands = op->formula ? op->flags & OP_EXPANDS : op->eval != NULL;
    if (!r->left && !stands) {
        mc_parse_fail(&r->p, at, "%s never occurs in a graph: it expands to other functions, match those",
                      name);
        return NULL;
    }
    struct mc_pattern *n = fresh(r, CALL);
    if (!n) {
        return NULL;
    }
    n->op = op;
    n->nin = nin;
    struct mc_attr dflt[16];
    mc_attr_defaults(op, dflt);
    for (int i = 0; i < op->sig->nattr && i < MOST_ATTRS; i++) {
        n->attr[i] = (struct pattern_attr){ -1, dflt[i] };
    }
    for (int i = 0; i < nin; i++) {
        n->in[i] = in[i];
    }
    if (!r->left && op->flags & OP_COMMUTES) {
        n->swap = r->root->nswap++;
        if (r->root->nswap > MOST_SWAPS) {
            mc_parse_fail(&r->p, at, "more than %d ops that commute", MOST_SWAPS);
        }
    }
    return n;
}

/* "axis=a", "keepdims=True": the value is a letter or any value that formulas allow. */
static void read_attr(struct reader *r, struct mc_pattern *n, const struct tok *name)
{
    int k = 0;
    for (int i = 0; i < n->op->sig->nparam; i++) {
        const struct mc_param *q = &n->op->sig->param[i];
        if (q->kind <= ATTR_TENSORS) {
            continue;
        }
        if (strlen(q->name) == name->n && strncmp(q->name, r->p.text + name->at, name->n) == 0) {
            struct tok t = r->p.tok;
            if (t.kind == T_NAME && t.n == 1) {
                mc_parse_next(&r->p);
                n->attr[k].letter = letter(r, &t, true);
            } else {
                struct val v = mc_parse_expr(&r->p);
                mc_val_attr(&r->p, n->op, q, &v, &n->attr[k].value);
            }
            return;
        }
        k++;
    }
    mc_parse_fail(&r->p, name->at, "%s has no attribute '%.*s'", n->op->name, (int)name->n,
                  r->p.text + name->at);
}

static struct mc_pattern *read_call(struct reader *r, const struct tok *t)
{
    struct mc_pattern *in[MOST_ARGS], *n = NULL;
    char name[64] = { 0 };
    int nin = 0;
    memcpy(name, r->p.text + t->at, MC_MIN(t->n, sizeof name - 1));
    mc_parse_next(&r->p);
    while (!r->p.failed && !mc_parse_is(&r->p, ")")) {
        struct parser back = r->p;
        struct tok word = r->p.tok;
        if (word.kind == T_NAME) {
            mc_parse_next(&r->p);
        }
        if (word.kind == T_NAME && mc_parse_take(&r->p, "=")) {
            n = n ? n : call(r, name, t->at, nin, in);
            if (n) {
                read_attr(r, n, &word);
            }
        } else {
            r->p = back;
            if (n || nin == MOST_ARGS) {
                mc_parse_fail(&r->p, word.at,
                              n ? "tensors come before attributes" : "too many arguments for a rule");
                break;
            }
            in[nin++] = read_level(r, 0);
        }
        if (!mc_parse_is(&r->p, ")")) {
            mc_parse_expect(&r->p, ",");
        }
    }
    mc_parse_expect(&r->p, ")");
    return r->p.failed ? NULL : n ? n : call(r, name, t->at, nin, in);
}

static struct mc_pattern *read_primary(struct reader *r)
{
    struct tok t = r->p.tok;
    if (t.kind == T_NUMBER) {
        return read_number(r, 1);
    }
    if (mc_parse_take(&r->p, "(")) {
        struct mc_pattern *n = read_level(r, 0);
        mc_parse_expect(&r->p, ")");
        return n;
    }
    if (t.kind != T_NAME) {
        mc_parse_fail(&r->p, t.at, "expected a letter, a number or a function");
        return NULL;
    }
    mc_parse_next(&r->p);
    if (mc_parse_is(&r->p, "(")) {
        return read_call(r, &t);
    }
    bool yes = t.n == 4 && strncmp(r->p.text + t.at, "True", 4) == 0;
    if (yes || (t.n == 5 && strncmp(r->p.text + t.at, "False", 5) == 0)) {
        struct mc_pattern *b = fresh(r, NUMBER);
        if (b) {
            b->truth = true;
            b->number = yes;
        }
        return b;
    }
    struct mc_pattern *n = fresh(r, strchr("kmn", r->p.text[t.at]) ? CONSTANT : ANY);
    if (n) {
        n->letter = letter(r, &t, false);
    }
    return n;
}

static struct mc_pattern *read_unary(struct reader *r)
{
    size_t at = r->p.tok.at;
    if (++r->depth > DEEPEST) {
        mc_parse_fail(&r->p, at, "this rule is nested more than %d deep", DEEPEST);
        return NULL;
    }
    if (mc_parse_is(&r->p, "-") || mc_parse_is(&r->p, "~")) {
        bool minus = mc_parse_is(&r->p, "-");
        mc_parse_next(&r->p);
        if (minus && r->p.tok.kind == T_NUMBER) {
            r->depth--;
            return read_number(r, -1);
        }
        struct mc_pattern *x = read_unary(r);
        r->depth--;
        return x ? call(r, minus ? "neg" : "invert", at, 1, &x) : NULL;
    }
    struct mc_pattern *x = read_primary(r);
    at = r->p.tok.at;
    if (x && mc_parse_take(&r->p, "**")) {
        struct mc_pattern *pair[2] = { x, read_unary(r) };
        x = pair[1] ? call(r, "pow", at, 2, pair) : NULL;
    }
    r->depth--;
    return x;
}

static const struct infix *next_infix(const struct parser *p)
{
    for (size_t i = 0; i < NELEM(infixes); i++) {
        if (mc_parse_is(p, infixes[i].text)) {
            return &infixes[i];
        }
    }
    return NULL;
}

static struct mc_pattern *read_level(struct reader *r, int level)
{
    struct mc_pattern *x = read_unary(r);
    for (const struct infix *o; !r->p.failed && x && (o = next_infix(&r->p)) && o->level >= level;) {
        size_t at = r->p.tok.at;
        mc_parse_next(&r->p);
        struct mc_pattern *pair[2] = { x, read_level(r, o->level + 1) };
        x = pair[1] ? call(r, o->op, at, 2, pair) : NULL;
    }
    return x;
}

const struct mc_pattern *mc_pattern_parse(mc_graph *g, const char *text, const struct mc_pattern *left)
{
    struct reader r = { .left = left };
    struct mc_pattern whole = { 0 };
    r.root = &whole;
    mc_parse_begin(&r.p, g, text, NULL, 0);
    struct mc_pattern *n = read_level(&r, 0);
    if (!r.p.failed && r.p.tok.kind != T_END) {
        mc_parse_fail(&r.p, r.p.tok.at, "this is left over");
    }
    if (!r.p.failed && !left && (!n || n->kind != CALL)) {
        mc_parse_fail(&r.p, 0, "the left side of a rule must be a function of something");
    }
    mc_parse_end(&r.p);
    if (r.p.failed || !n) {
        return NULL;
    }
    n->nswap = whole.nswap;
    n->nodes = whole.nodes;
    n->attrs = whole.attrs;
    return n;
}
