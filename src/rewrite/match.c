/* match.c: the sides of a rule.  Both are formulas over single letters, read once into a small tree:
 *
 *   k m n     a constant, one number throughout          any other letter   any node
 *   2, 0.5    that number, in the dtype of what it meets True, False        a bool
 *   axis=a    any attribute, bound to a
 *
 * The same letter twice is the same node, or an equal attribute; an attribute not written has its
 * default.  Operands of ops that commute match in either order.
 *
 * Invariant: a pattern is immutable once read, so threads share it. */
#include "rewrite/rewrite.h"
#include "graph/parse.h"
#include <math.h>

enum pattern_kind { ANY, CONSTANT, NUMBER, CALL };
enum { MOST_ARGS = 4, MOST_ATTRS = 8 };

struct pattern_attr {
    int letter;                      /* -1: the attribute must equal `value` */
    struct mc_attr value;
};
struct mc_pattern {
    enum pattern_kind kind;
    int letter;                      /* ANY, CONSTANT */
    double number;                   /* NUMBER */
    bool real, truth;                /* NUMBER: written with a point; as True or False */
    const struct mc_op *op;          /* CALL */
    int nin;
    const struct mc_pattern *in[MOST_ARGS];
    struct pattern_attr attr[MOST_ATTRS];
    int swap;                        /* commutes: number of its choice; -1: does not */
    int nswap;                       /* of the whole, at the root */
    uint32_t nodes, attrs;           /* letters bound, at the root */
};

/* ---- reading ---- */

static const struct infix { const char *text; int level; const char *op; } infixes[] = {
    { "==", 4, "eq" }, { "!=", 4, "neq" }, { "<=", 4, "le" }, { ">=", 4, "ge" }, { "<", 4, "lt" }, { ">", 4, "gt" },
    { "+", 8, "add" }, { "-", 8, "sub" },
    { "*", 9, "mul" }, { "//", 9, "int_div" }, { "/", 9, "true_div" }, { "%", 9, "mod" },
};

struct reader {
    struct parser p;
    const struct mc_pattern *left;   /* NULL while reading a left side */
    struct mc_pattern *root;         /* collects letters and choices */
};

static struct mc_pattern *read_level(struct reader *r, int level);

static struct mc_pattern *fresh(struct reader *r, enum pattern_kind kind)
{
    struct mc_pattern *n = mc_arena_alloc(&r->p.g->arena, sizeof *n);
    if (!n) { /* not the text's mistake */
        mc_node_fail(r->p.g, MC_EMEMORY, "%s", mc_last_error());
        r->p.failed = true;
        r->p.tok.kind = T_END;
        return NULL;
    }
    n->kind = kind;
    n->swap = -1;
    return n;
}

/* The letter under the token; its use on the right side needs a binding on the left. */
static int letter(struct reader *r, const struct tok *t, bool attr)
{
    int c = r->p.text[t->at] - 'a';
    uint32_t bit = c >= 0 && c < 26 && t->n == 1 ? 1u << c : 0;
    if (!bit) {
        mc_parse_fail(&r->p, t->at, "a rule speaks of single small letters, not '%.*s'", (int)t->n, r->p.text + t->at);
        return 0;
    }
    if (r->left && !((attr ? r->left->attrs : r->left->nodes) & bit)) {
        mc_parse_fail(&r->p, t->at, "'%c' does not stand on the left side", 'a' + c);
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

static struct mc_pattern *call(struct reader *r, const char *name, size_t at, int nin, struct mc_pattern *const *in)
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
        mc_parse_fail(&r->p, at, "%s never stands in a graph: it is made of other functions, write those", name);
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
    }
    return n;
}

/* "axis=a", "keepdims=True": the value is a letter or what the formulas allow. */
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
    mc_parse_fail(&r->p, name->at, "%s has no attribute '%.*s'", n->op->name, (int)name->n, r->p.text + name->at);
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
                mc_parse_fail(&r->p, word.at, n ? "tensors come before attributes" : "too many arguments for a rule");
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
    if (mc_parse_is(&r->p, "-") || mc_parse_is(&r->p, "~")) {
        bool minus = mc_parse_is(&r->p, "-");
        mc_parse_next(&r->p);
        if (minus && r->p.tok.kind == T_NUMBER) {
            return read_number(r, -1);
        }
        struct mc_pattern *x = read_unary(r);
        return x ? call(r, minus ? "neg" : "invert", at, 1, &x) : NULL;
    }
    struct mc_pattern *x = read_primary(r);
    at = r->p.tok.at;
    if (x && mc_parse_take(&r->p, "**")) {
        struct mc_pattern *pair[2] = { x, read_unary(r) };
        return pair[1] ? call(r, "pow", at, 2, pair) : NULL;
    }
    return x;
}

static const struct infix *infix_here(const struct parser *p)
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
    for (const struct infix *o; !r->p.failed && x && (o = infix_here(&r->p)) && o->level >= level;) {
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

const struct mc_op *mc_pattern_root(const struct mc_pattern *p)
{
    return p->kind == CALL ? p->op : NULL;
}

/* ---- matching ---- */

struct trial {
    struct mc_match *m;
    bool once;
    unsigned choice;                 /* bit nswap-1-i set: choice i takes its operands the other way round */
    int nswap, used;                 /* choices met so far: what fails early fails for all later ones */
};

/* Is every element of n the number, in n's own dtype?  0 and -0 differ. */
static bool is_number(const mc_node *n, double number)
{
    char want[8] = { 0 }, have[8] = { 0 };
    double v;
    if (!mc_const_number(n, &v) || (n->type.dtype == MC_BOOL && number != 0 && number != 1)) {
        return false;
    }
    mc_store_f64(n->type.dtype, want, number);
    mc_store_f64(n->type.dtype, have, v);
    return memcmp(want, have, sizeof want) == 0 && (mc_is_float(n->type.dtype) || mc_load_f64(n->type.dtype, want) == number);
}

static bool is_axes(const struct mc_attr *a)
{
    return a->kind == ATTR_AXES || a->kind == ATTR_INT;
}

/* A set of axes as bits; whole numbers that are no axes of this rank compare as they are. */
static uint64_t axes_bits(const struct mc_attr *a, int rank)
{
    uint64_t bits = a->none ? (UINT64_C(1) << rank) - 1 : 0;
    for (int i = 0; i < a->n; i++) {
        int64_t k = a->ints[i] < 0 ? a->ints[i] + rank : a->ints[i];
        bits |= UINT64_C(1) << (k & 63);
    }
    return bits;
}

static bool attr_equal(const struct mc_attr *a, int ra, const struct mc_attr *b, int rb)
{
    if (is_axes(a) && is_axes(b)) {
        return axes_bits(a, ra) == axes_bits(b, rb);
    }
    return a->kind == b->kind && a->none == b->none && a->n == b->n &&
           (a->n == 0 || memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints) == 0) &&
           memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
           (a->text == b->text || (a->text && b->text && strcmp(a->text, b->text) == 0));
}

static bool match_attrs(const struct mc_pattern *p, const mc_node *n, struct mc_match *m)
{
    int rank = n->nin ? n->in[0]->type.rank : 0;
    for (int i = 0; i < n->op->sig->nattr; i++) {
        int c = p->attr[i].letter;
        if (c < 0 ? !attr_equal(&p->attr[i].value, rank, &n->attr[i], rank)
                  : m->attr[c] && !attr_equal(m->attr[c], m->rank[c], &n->attr[i], rank)) {
            return false;
        }
        if (c >= 0) {
            m->attr[c] = &n->attr[i];
            m->rank[c] = rank;
        }
    }
    return true;
}

static bool match(struct trial *t, const struct mc_pattern *p, mc_node *n)
{
    double v;
    if (p->kind == NUMBER) {
        return (!p->truth || n->type.dtype == MC_BOOL) && is_number(n, p->number);
    }
    if (p->kind == CALL) {
        if (n->op != p->op || n->nin != p->nin || (t->once && n != t->m->root && !mc_used_once(t->m, n))) {
            return false;
        }
        bool swap = p->swap >= 0 && t->choice >> (t->nswap - 1 - p->swap) & 1;
        t->used = p->swap >= 0 ? p->swap + 1 : t->used;
        if (!match_attrs(p, n, t->m)) {
            return false;
        }
        for (int i = 0; i < p->nin; i++) {
            if (!match(t, p->in[i], n->in[swap ? p->nin - 1 - i : i])) {
                return false;
            }
        }
        return true;
    }
    if (p->kind == CONSTANT && !mc_const_number(n, &v)) {
        return false;
    }
    mc_node **b = &t->m->bound[p->letter];
    if (*b) {
        return *b == n;
    }
    *b = n;
    return true;
}

static bool may_be(const struct mc_pattern *p, const mc_node *n)
{
    return p->kind == ANY || (p->kind == CALL ? n->op == p->op : mc_is_const(n) || n->op->flags & OP_VIEW);
}

bool mc_pattern_may_match(const struct mc_pattern *p, const mc_node *n)
{
    if (n->op != p->op || n->nin != p->nin) {
        return false;
    }
    bool as_is = true, swapped = p->swap >= 0;
    for (int i = 0; i < p->nin; i++) {
        as_is = as_is && may_be(p->in[i], n->in[i]);
        swapped = swapped && may_be(p->in[i], n->in[p->nin - 1 - i]);
    }
    return as_is || swapped;
}

bool mc_pattern_match(const struct mc_pattern *p, const struct mc_rule *r, mc_node *n, struct mc_match *m)
{
    struct trial t = { .m = m, .once = r->once, .nswap = p->nswap };
    m->root = n;
    m->g = n->graph;
    while (t.choice < 1u << t.nswap) {
        memset(m->bound, 0, sizeof m->bound);
        memset(m->attr, 0, sizeof m->attr);
        t.used = 0;
        bool fits = match(&t, p, n);
        if (fits && (!r->when || r->when(m))) {
            return true;
        }
        unsigned step = fits ? 1 : 1u << (t.nswap - t.used); /* the choices not met cannot help */
        t.choice = (t.choice / step + 1) * step;
    }
    return false;
}

/* ---- building ---- */

/* A bound attribute as a parameter wants it: an axis as a list of one, a list of one as an axis. */
static bool give_attr(const struct mc_param *q, const struct mc_attr *a, int rank, int64_t *room, struct mc_attr *out)
{
    *out = *a;
    out->kind = q->kind;
    if (a->kind == q->kind || (a->kind == ATTR_INT && q->kind == ATTR_AXES)) {
        return true;
    }
    if (a->kind != ATTR_AXES || q->kind != ATTR_INT || (a->none ? rank : a->n) != 1) {
        return false;
    }
    *room = a->none ? 0 : a->ints[0];
    out->none = false;
    out->n = 1;
    out->ints = room;
    return true;
}

static mc_node *build(const struct mc_pattern *p, const struct mc_match *m)
{
    mc_node *in[MOST_ARGS];
    struct mc_attr attr[MOST_ATTRS];
    int64_t room[MOST_ATTRS];
    if (p->kind == NUMBER && p->truth) {
        return mc_node_number(m->g, MC_BOOL, p->number);
    }
    if (p->kind == NUMBER) {
        mc_dtype d = p->real || p->number != floor(p->number) ? MC_FLOAT64 : fabs(p->number) < 128 ? MC_INT8 : MC_INT64;
        return mc_node_const(m->g, mc_array_scalar(d, p->number), true);
    }
    if (p->kind != CALL) {
        return m->bound[p->letter];
    }
    for (int i = 0; i < p->nin; i++) {
        if (!(in[i] = build(p->in[i], m)) || mc_is_error(in[i])) {
            return in[i];
        }
    }
    for (int i = 0, k = 0; i < p->op->sig->nparam; i++) {
        const struct mc_param *q = &p->op->sig->param[i];
        if (q->kind <= ATTR_TENSORS) {
            continue;
        }
        int c = p->attr[k].letter;
        if (c < 0) {
            attr[k] = p->attr[k].value;
        } else if (!m->attr[c] || !give_attr(q, m->attr[c], m->rank[c], &room[k], &attr[k])) {
            return NULL;
        }
        k++;
    }
    return mc_apply(m->g, p->op, p->nin, in, attr);
}

mc_node *mc_pattern_build(const struct mc_pattern *p, const struct mc_match *m)
{
    return build(p, m);
}

double mc_letter_number(const struct mc_match *m, char c)
{
    double v = NAN;
    mc_const_number(m->bound[c - 'a'], &v);
    return v;
}
