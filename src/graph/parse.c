/* parse.c: expressions of the text form, by precedence climbing.  Python's notation and precedence.
 * Literals stay literals until a node or an attribute is wanted. */
#include "graph/parse.h"
#include <math.h>
#include <stdlib.h>

enum { DEEPEST = 200 };

mc_status (*mc_grad_hook)(mc_node *cost, int n, mc_node *const *wrt, mc_node **grads, const mc_grad_spec *spec);

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

static struct val parse_level(struct parser *p, int level);

/* ---- values ---- */

static struct val val_node(mc_node *n, size_t at)
{
    return (struct val){ .kind = V_NODE, .node = n, .dtype = -1, .at = at };
}

static mc_node *literal(struct parser *p, const struct val *v)
{
    if (v->kind == V_BOOL) {
        return mc_node_number(p->g, MC_BOOL, (double)v->i);
    }
    if (v->kind == V_INT) {
        mc_dtype d = v->dtype >= 0 ? (mc_dtype)v->dtype : mc_literal_dtype(v->i);
        mc_array *a = mc_array_empty(d, 0, NULL);
        if (a && d == MC_UINT64) {
            memcpy(a->data, &v->i, sizeof v->i);
        } else if (a && mc_is_float(d)) {
            mc_store_f64(d, a->data, (double)v->i);
        } else if (a) {
            mc_store_i64(d, a->data, v->i);
        }
        return mc_node_const(p->g, a, v->dtype < 0);
    }
    return mc_node_const(p->g, mc_array_scalar(v->dtype >= 0 ? (mc_dtype)v->dtype : MC_FLOAT64, v->real), v->dtype < 0);
}

/* The shape of a list of lists of literals and the dtype of its elements; false when it is not one. */
static bool list_shape(const struct val *v, int depth, int64_t *dims, int *rank, bool *real, int *dtype)
{
    if (v->kind != V_LIST) {
        if (v->kind != V_INT && v->kind != V_REAL && v->kind != V_BOOL) {
            return false;
        }
        *real |= v->kind == V_REAL;
        int own = v->kind == V_BOOL ? (int)MC_BOOL : v->dtype;
        if (own >= 0) {
            *dtype = *dtype < 0 ? own : (int)mc_dtype_promote((mc_dtype)*dtype, (mc_dtype)own);
        }
        if (*rank < 0) {
            *rank = depth;
        }
        return *rank == depth;
    }
    if (depth >= MC_MAX_RANK) {
        return false;
    }
    if (dims[depth] < 0) {
        dims[depth] = v->n;
    }
    for (int i = 0; i < v->n; i++) {
        if (!list_shape(&v->item[i], depth + 1, dims, rank, real, dtype)) {
            return false;
        }
    }
    if (v->n == 0 && *rank < 0) {
        *rank = depth + 1;
    }
    return dims[depth] == v->n;
}

static char *list_fill(const struct val *v, mc_dtype d, char *to)
{
    if (v->kind == V_LIST) {
        for (int i = 0; i < v->n; i++) {
            to = list_fill(&v->item[i], d, to);
        }
        return to;
    }
    if (v->kind == V_REAL) {
        mc_store_f64(d, to, v->real);
    } else {
        mc_store_i64(d, to, v->i);
    }
    return to + mc_dtypes[d].size;
}

static mc_node *list_node(struct parser *p, const struct val *v)
{
    int64_t dims[MC_MAX_RANK];
    int rank = -1, dtype = -1;
    bool real = false;
    for (int i = 0; i < MC_MAX_RANK; i++) {
        dims[i] = -1;
    }
    if (list_shape(v, 0, dims, &rank, &real, &dtype)) {
        mc_dtype d = dtype >= 0 ? (mc_dtype)dtype : real ? mc_dtype_floatX() : MC_INT64;
        mc_array *a = mc_array_empty(d, rank, dims);
        if (a) {
            list_fill(v, d, a->data);
        }
        return mc_node_const(p->g, a, false);
    }
    mc_node **in = mc_arena_alloc(&p->g->arena, (size_t)(v->n + 1) * sizeof *in);
    for (int i = 0; in && i < v->n; i++) {
        if (!(in[i] = mc_val_node(p, &v->item[i]))) {
            return NULL;
        }
    }
    return in ? mc_call_op(p->g, "stack", v->n, in, NULL) : p->g->error;
}

mc_node *mc_val_node(struct parser *p, const struct val *v)
{
    mc_node *n = NULL;
    if (p->failed) {
        return p->g->error;
    }
    p->place.at = v->at;
    switch (v->kind) {
    case V_NODE: n = v->node; break;
    case V_INT: case V_REAL: case V_BOOL: n = literal(p, v); break;
    case V_LIST: n = list_node(p, v); break;
    case V_ATTR:
        if (v->attr->kind == ATTR_REAL) {
            n = mc_node_const(p->g, mc_array_scalar(MC_FLOAT64, v->attr->real), true);
        } else if (v->attr->kind == ATTR_INT && v->attr->n == 1) {
            n = mc_node_int(p->g, v->attr->ints[0]);
        } else if (v->attr->kind == ATTR_BOOL) {
            n = mc_node_number(p->g, MC_BOOL, (double)v->attr->ints[0]);
        } else if (v->attr->kind == ATTR_INTS || v->attr->kind == ATTR_AXES) {
            n = mc_node_ints(p->g, v->attr->n, v->attr->ints);
        }
        break;
    default: break;
    }
    if (!n) {
        mc_parse_fail(p, v->at, "a tensor is needed here");
        return p->g->error;
    }
    if (mc_is_error(n)) {
        p->failed = true;
        p->tok.kind = T_END;
    }
    return n;
}

/* ---- operators ---- */

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

static struct val apply_named(struct parser *p, const char *name, const struct val *arg, int n, size_t at)
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
        return val_node(p->g->error, at);
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
    return val_node(r, arg[0].at);
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

/* ---- calls ---- */

struct args {
    struct val value[64];
    const char *name[64]; /* NULL: positional */
    size_t at[64];        /* where the name, or else the value, begins */
    int n;
};

static void parse_args(struct parser *p, struct args *a)
{
    while (!p->failed && !mc_parse_is(p, ")")) {
        if (a->n == (int)NELEM(a->value)) {
            mc_parse_fail(p, p->tok.at, "too many arguments; give a list");
            return;
        }
        struct tok name = p->tok;
        size_t behind = p->at;
        a->name[a->n] = NULL;
        a->at[a->n] = p->tok.at;
        if (p->tok.kind == T_NAME) {
            mc_parse_next(p);
            if (mc_parse_take(p, "=")) {
                a->name[a->n] = mc_parse_copy(p, &name);
            } else {
                if (mc_parse_is(p, "(") || mc_parse_is(p, "[")) {
                    p->brackets--;
                } else if (mc_parse_is(p, ")") || mc_parse_is(p, "]")) {
                    p->brackets++;
                }
                p->tok = name;
                p->at = behind;
            }
        }
        a->value[a->n++] = mc_parse_expr(p);
        mc_parse_separator(p, ")");
    }
    mc_parse_expect(p, ")");
}

static struct val make_list(struct parser *p, const struct val *item, int n, size_t at)
{
    struct val v = { .kind = V_LIST, .n = n, .dtype = -1, .at = at };
    v.item = mc_arena_copy(&p->g->arena, item, (size_t)(n ? n : 1) * sizeof *item);
    if (!v.item) {
        mc_parse_fail(p, at, "out of memory");
        v.n = 0;
    }
    return v;
}

static struct val node_val(struct parser *p, mc_node *n, size_t at)
{
    if (mc_is_error(n)) {
        p->failed = true;
        p->tok.kind = T_END;
    }
    return val_node(n, at);
}

/* grad(cost, wrt): wrt may be a list. */
static struct val call_grad(struct parser *p, struct args *a, size_t at)
{
    if (a->n != 2 || !mc_grad_hook) {
        mc_parse_fail(p, at, "grad takes a cost and what to differentiate by");
        return val_node(p->g->error, at);
    }
    mc_node *cost = mc_val_node(p, &a->value[0]);
    const struct val *by = &a->value[1];
    bool list = by->kind == V_LIST;
    int n = list ? by->n : 1;
    mc_node **wrt = mc_arena_alloc(&p->g->arena, (size_t)n * 2 * sizeof *wrt + 1);
    struct val *one = mc_arena_alloc(&p->g->arena, (size_t)n * sizeof *one + 1);
    if (!wrt || !one) {
        mc_parse_fail(p, at, "out of memory");
        return val_node(p->g->error, at);
    }
    for (int i = 0; i < n; i++) {
        wrt[i] = mc_val_node(p, list ? &by->item[i] : by);
    }
    p->place.at = at;
    if (p->failed || mc_grad_hook(cost, n, wrt, wrt + n, NULL) < 0) {
        return node_val(p, p->g->error, at);
    }
    for (int i = 0; i < n; i++) {
        one[i] = val_node(wrt[n + i], at);
    }
    return list ? make_list(p, one, n, at) : one[0];
}

/* tuple(a, b): how the printer writes a formula with several results */
static struct val call_tuple(struct parser *p, struct args *a, size_t at)
{
    mc_node *in[NELEM(a->value)];
    for (int i = 0; i < a->n; i++) {
        in[i] = mc_val_node(p, &a->value[i]);
    }
    if (a->n < 2) {
        mc_parse_fail(p, at, "a tuple has two values or more");
    }
    p->place.at = at;
    return p->failed ? val_node(p->g->error, at) : node_val(p, mc_node_make(p->g, &mc_op_tuple, a->n, in, NULL), at);
}

static struct val call_update(struct parser *p, struct args *a, size_t at, bool set)
{
    mc_node *x = a->n == 2 ? mc_val_node(p, &a->value[0]) : NULL, *y = a->n == 2 ? mc_val_node(p, &a->value[1]) : NULL;
    if (a->n != 2) {
        mc_parse_fail(p, at, "%s takes an indexed tensor and a value: %s(x[2:4], y)", set ? "set_subtensor" : "inc_subtensor",
                      set ? "set_subtensor" : "inc_subtensor");
    }
    p->place.at = at;
    return p->failed ? val_node(p->g->error, at) : node_val(p, mc_index_update(x, y, set), at);
}

/* array(dtype, [2, 3], "hex digits"): how the printer writes a large constant */
static struct val call_array(struct parser *p, struct args *a, size_t at)
{
    mc_dtype d;
    int64_t dims[MC_MAX_RANK];
    bool ok = a->n == 3 && a->value[0].kind == V_TEXT && mc_dtype_parse(a->value[0].text, &d) >= 0 &&
              a->value[1].kind == V_LIST && a->value[1].n <= MC_MAX_RANK && a->value[2].kind == V_TEXT;
    for (int i = 0; ok && i < a->value[1].n; i++) {
        ok = a->value[1].item[i].kind == V_INT;
        dims[i] = a->value[1].item[i].i;
    }
    mc_array *v = ok ? mc_array_new(d, a->value[1].n, dims) : NULL;
    size_t bytes = v ? (size_t)mc_array_size(v) * mc_dtypes[v->dtype].size : 0;
    const char *hex = ok ? a->value[2].text : "";
    if (!v || strlen(hex) != 2 * bytes || strspn(hex, "0123456789abcdef") != 2 * bytes) {
        mc_array_unref(&v);
        mc_parse_fail(p, at, "array takes a dtype, a list of sizes and as many hexadecimal bytes");
        return val_node(p->g->error, at);
    }
    for (size_t i = 0; i < bytes; i++) {
        char pair[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        v->data[i] = (char)strtol(pair, NULL, 16);
    }
    return node_val(p, mc_node_const(p->g, v, false), at);
}

static const struct mc_op *find_op(struct parser *p, const char *name)
{
    for (size_t i = 0; i < p->g->custom.n; i++) {
        if (strcmp(p->g->custom.at[i]->name, name) == 0) {
            return p->g->custom.at[i];
        }
    }
    const struct mc_op *op = mc_op_find(name);
    return op && !(op->flags & OP_LEAF) ? op : NULL;
}

static void unknown_function(struct parser *p, const char *name, size_t at)
{
    const char *list[512];
    size_t n = 0;
    for (int i = 0; i < (int)NELEM(list) && mc_op_at(i); i++) {
        if (!(mc_op_at(i)->flags & OP_HIDDEN)) {
            list[n++] = mc_op_at(i)->name;
        }
    }
    const char *near = mc_near_miss(name, list, n);
    if (near) {
        mc_parse_fail(p, at, "there is no function '%s'; did you mean '%s'?", name, near);
    } else {
        mc_parse_fail(p, at, "there is no function '%s'", name);
    }
}

/* Sorts the arguments into the signature's tensors and attributes. */
static struct val call_op(struct parser *p, const struct mc_op *op, struct args *a, size_t at)
{
    const struct mc_signature *s = op->sig;
    struct mc_attr attr[16] = { 0 };
    mc_node *in[64 + 24], **arg = in;
    bool given[24] = { 0 };
    int nin = 0, position = 0;

    mc_attr_defaults(op, attr);
    for (int i = 0; i < (int)NELEM(in); i++) {
        in[i] = NULL;
    }
    for (int i = 0; i < a->n && !p->failed; i++) {
        const struct val *v = &a->value[i];
        int k = -1;
        if (a->name[i]) {
            for (int j = 0; j < s->nparam; j++) {
                k = strcmp(s->param[j].name, a->name[i]) == 0 ? j : k;
            }
            if (k < 0) {
                const char *list[24];
                for (int j = 0; j < s->nparam; j++) {
                    list[j] = s->param[j].name;
                }
                const char *near = mc_near_miss(a->name[i], list, (size_t)s->nparam);
                mc_parse_fail(p, a->at[i], "%s has no parameter '%s'%s%s%s: %s(%s)", op->name, a->name[i],
                              near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", op->name, op->params);
                break;
            }
        } else {
            k = position;
            if (k < s->nparam && s->param[k].kind != ATTR_TENSORS) {
                position++;
            }
        }
        if (k >= s->nparam) {
            mc_parse_fail(p, v->at, "%s takes %d argument%s: %s(%s)", op->name, s->nparam, s->nparam == 1 ? "" : "s", op->name,
                          op->params);
            break;
        }
        if (given[k] && s->param[k].kind != ATTR_TENSORS) {
            mc_parse_fail(p, a->at[i], "%s: '%s' is given twice", op->name, s->param[k].name);
            break;
        }
        given[k] = true;
        int slot = 0;
        for (int j = 0; j < k; j++) {
            slot += s->param[j].kind > ATTR_TENSORS;
        }
        if (s->param[k].kind == ATTR_TENSOR) {
            if (!(v->kind == V_NONE && s->param[k].optional)) {
                in[k] = mc_val_node(p, v);
                nin = MC_MAX(nin, k + 1);
            }
        } else if (s->param[k].kind == ATTR_TENSORS) {
            int n = v->kind == V_LIST ? v->n : 1;
            if (nin < s->ntensor) {
                nin = s->ntensor;
            }
            if (nin + n > (int)NELEM(in) && arg == in) { /* a long list: room for all of it */
                arg = mc_arena_alloc(&p->g->arena, (size_t)(nin + n + 64) * sizeof *arg);
                if (!arg) {
                    mc_parse_fail(p, at, "out of memory");
                    break;
                }
                memcpy(arg, in, (size_t)nin * sizeof *in);
            }
            for (int j = 0; j < n && !p->failed; j++) {
                arg[nin++] = mc_val_node(p, v->kind == V_LIST ? &v->item[j] : v);
            }
        } else {
            mc_val_attr(p, op, &s->param[k], v, &attr[slot]);
        }
    }
    for (int i = 0; i < nin && !p->failed; i++) {
        if (!arg[i] && !(s->param[i].optional && (op->build || op->formula))) {
            mc_parse_fail(p, at, "%s needs the argument '%s': %s(%s)", op->name, s->param[i].name, op->name, op->params);
        }
    }
    if (p->failed) {
        return val_node(p->g->error, at);
    }
    p->place.at = at;
    return node_val(p, mc_apply(p->g, op, nin, arg, attr), at);
}

static struct val call(struct parser *p, const char *name, const struct val *self, size_t at)
{
    struct args *a = mc_calloc(1, sizeof *a, "parse");
    struct val v = val_node(p->g->error, at);
    if (!a) {
        mc_parse_fail(p, at, "out of memory");
        return v;
    }
    if (self) {
        a->value[a->n++] = *self;
    }
    parse_args(p, a);
    const struct mc_op *op = p->failed ? NULL : find_op(p, name);
    if (p->failed) {
        v = val_node(p->g->error, at);
    } else if (strcmp(name, "grad") == 0) {
        v = call_grad(p, a, at);
    } else if (strcmp(name, "set_subtensor") == 0 || strcmp(name, "inc_subtensor") == 0) {
        v = call_update(p, a, at, name[0] == 's');
    } else if (strcmp(name, "array") == 0) {
        v = call_array(p, a, at);
    } else if (strcmp(name, "tuple") == 0) {
        v = call_tuple(p, a, at);
    } else if (strcmp(name, "item") == 0 && a->n == 2 && a->value[0].kind == V_NODE && a->value[1].kind == V_INT) {
        v = node_val(p, mc_item(a->value[0].node, (int)a->value[1].i), at);
    } else if (op) {
        v = call_op(p, op, a, at);
    } else {
        unknown_function(p, name, at);
    }
    mc_free(a);
    return v;
}

/* ---- primaries and what follows them ---- */

static void unknown_name(struct parser *p, const char *name, size_t at)
{
    const char *list[256];
    size_t count = 0;
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        list[count++] = mc_dtype_name(d);
    }
    for (size_t i = p->g->nodes.n; i-- > 0 && count < NELEM(list);) {
        if (p->g->nodes.at[i]->name) {
            list[count++] = p->g->nodes.at[i]->name;
        }
    }
    const struct mc_op *op = find_op(p, name);
    const char *near = mc_near_miss(name, list, count);
    if (op) {
        mc_parse_fail(p, at, "'%s' is a function: %s(%s)", name, name, op->params);
    } else {
        mc_parse_fail(p, at, near ? "there is no variable '%s'; did you mean '%s'?" : "there is no variable '%s'", name, near);
    }
}

/* inf, nan, and with a suffix: inff32 */
static bool nonfinite(const char *name, struct val *v)
{
    static const struct { const char *suffix; int dtype; } rows[] = {
        { "", -1 }, { "f16", MC_FLOAT16 }, { "bf16", MC_BFLOAT16 }, { "f32", MC_FLOAT32 }, { "f64", MC_FLOAT64 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        if ((strncmp(name, "inf", 3) == 0 || strncmp(name, "nan", 3) == 0) && strcmp(name + 3, rows[i].suffix) == 0) {
            v->real = name[0] == 'i' ? (double)INFINITY : (double)NAN;
            v->dtype = rows[i].dtype;
            return true;
        }
    }
    return false;
}

static struct val name_value(struct parser *p, const struct tok *t)
{
    struct val v = { .kind = V_NODE, .dtype = -1, .at = t->at };
    char *name = mc_parse_copy(p, t);
    mc_dtype d;
    if (!name) {
        return v;
    }
    for (int i = p->nbind; i-- > 0;) {
        if (strcmp(p->bind[i].name, name) == 0) {
            v.node = p->bind[i].node;
            v.attr = p->bind[i].attr;
            v.kind = v.attr ? (v.attr->none ? V_NONE : v.attr->text ? V_TEXT : V_ATTR) : v.node ? V_NODE : V_NONE;
            v.text = v.attr ? v.attr->text : NULL;
            return v;
        }
    }
    mc_node *n = mc_dict_get(&p->g->names, name);
    if (n) {
        v.node = n;
    } else if (strcmp(name, "True") == 0 || strcmp(name, "False") == 0) {
        v.kind = V_BOOL;
        v.i = name[0] == 'T';
        v.real = (double)v.i;
    } else if (strcmp(name, "None") == 0 || strcmp(name, "newaxis") == 0) {
        v.kind = V_NONE;
    } else if (mc_dtype_parse(name, &d) >= 0 || strcmp(name, "floatX") == 0) {
        v.kind = V_TEXT;
        v.text = strcmp(name, "floatX") == 0 ? mc_dtype_name(mc_dtype_floatX()) : name;
    } else if (nonfinite(name, &v)) {
        v.kind = V_REAL;
    } else if (strcmp(name, "pi") == 0) {
        v.kind = V_REAL;
        v.real = 3.14159265358979323846;
    } else {
        unknown_name(p, name, t->at);
    }
    return v;
}

static struct val parse_list(struct parser *p, const char *close)
{
    struct val small[16], *item = small;
    size_t at = p->tok.at, cap = NELEM(small);
    int n = 0;
    mc_parse_next(p);
    while (!p->failed && !mc_parse_is(p, close)) {
        if ((size_t)n == cap) {
            struct val *more = mc_arena_alloc(&p->g->arena, cap * 2 * sizeof *more);
            if (!more) {
                mc_parse_fail(p, at, "out of memory");
                break;
            }
            memcpy(more, item, cap * sizeof *item);
            item = more;
            cap *= 2;
        }
        item[n++] = mc_parse_expr(p);
        mc_parse_separator(p, close);
    }
    mc_parse_expect(p, close);
    return make_list(p, item, n, at);
}

/* One entry between [ and ]: an index, a slice, ..., None. */
static struct val parse_index(struct parser *p)
{
    struct val part[3] = { { .kind = V_NONE }, { .kind = V_NONE }, { .kind = V_NONE } };
    size_t at = p->tok.at;
    int n = 0;
    if (mc_parse_take(p, "...")) {
        return (struct val){ .kind = V_ELLIPSIS, .at = at };
    }
    for (;;) {
        if (!mc_parse_is(p, ":") && !mc_parse_is(p, ",") && !mc_parse_is(p, "]")) {
            part[n] = mc_parse_expr(p);
        }
        if (n < 2 && mc_parse_take(p, ":")) {
            n++;
        } else {
            break;
        }
    }
    if (n == 0) {
        part[0].at = at;
        return part[0];
    }
    struct val v = make_list(p, part, 3, at);
    v.kind = V_SLICE;
    return v;
}

static struct val parse_subscript(struct parser *p, struct val x)
{
    struct val item[MC_MAX_RANK * 2 + 1];
    size_t at = p->tok.at;
    int n = 0;
    mc_parse_next(p);
    while (!p->failed && !mc_parse_is(p, "]")) {
        if (n == (int)NELEM(item)) {
            mc_parse_fail(p, p->tok.at, "too many indices");
            break;
        }
        item[n++] = parse_index(p);
        mc_parse_separator(p, "]");
    }
    mc_parse_expect(p, "]");
    if (x.kind == V_LIST && n == 1 && item[0].kind == V_INT && item[0].i >= 0 && item[0].i < x.n) {
        return x.item[item[0].i];
    }
    if (x.kind == V_NODE && x.node && x.node->nout > 1 && n == 1 && item[0].kind == V_INT) {
        p->place.at = at;
        return node_val(p, mc_item(x.node, (int)item[0].i), at);
    }
    mc_node *node = mc_val_node(p, &x);
    if (p->failed) {
        return val_node(p->g->error, at);
    }
    p->place.at = at;
    return node_val(p, mc_index_apply(p, node, item, n), x.at);
}

static struct val parse_member(struct parser *p, struct val x)
{
    mc_parse_next(p);
    struct tok name = p->tok;
    if (name.kind != T_NAME) {
        mc_parse_fail(p, name.at, "expected a name behind '.'");
        return x;
    }
    char *word = mc_parse_copy(p, &name);
    mc_parse_next(p);
    if (p->failed) {
        return x;
    }
    if (mc_parse_is(p, "(")) {
        mc_parse_next(p);
        return call(p, word, &x, name.at);
    }
    mc_node *n = mc_val_node(p, &x);
    if (strcmp(word, "T") == 0) {
        return apply_named(p, "transpose", &(struct val){ .kind = V_NODE, .node = n, .at = x.at, .dtype = -1 }, 1, name.at);
    }
    if (strcmp(word, "shape") == 0) {
        return p->failed ? x : node_val(p, mc_shape_of(n), x.at);
    }
    if (strcmp(word, "ndim") == 0) {
        return (struct val){ .kind = V_INT, .i = n->type.rank, .real = n->type.rank, .dtype = -1, .at = x.at };
    }
    if (strcmp(word, "dtype") == 0) {
        return (struct val){ .kind = V_TEXT, .text = mc_dtype_name(n->type.dtype), .dtype = -1, .at = x.at };
    }
    mc_parse_fail(p, name.at, "a tensor has no '.%s'; there are .T, .shape, .ndim, .dtype and every function", word);
    return x;
}

static struct val parse_primary(struct parser *p)
{
    struct val v = { .kind = V_NONE, .at = p->tok.at, .dtype = -1 };
    struct tok t = p->tok;
    if (t.kind == T_NUMBER) {
        v = mc_parse_number(p);
    } else if (t.kind == T_STRING) {
        v = mc_parse_string(p);
    } else if (mc_parse_is(p, "[")) {
        v = parse_list(p, "]");
    } else if (mc_parse_take(p, "(")) {
        v = mc_parse_expr(p);
        mc_parse_expect(p, ")");
    } else if (t.kind == T_NAME) {
        mc_parse_next(p);
        if (mc_parse_is(p, "(")) {
            char *name = mc_parse_copy(p, &t);
            mc_parse_next(p);
            v = name ? call(p, name, NULL, t.at) : v;
        } else {
            v = name_value(p, &t);
        }
    } else if (t.kind == T_END || mc_parse_is(p, "\n")) {
        mc_parse_fail(p, t.at, "the formula ends where a value is expected");
    } else {
        mc_parse_fail(p, t.at, "expected a value, not '%.*s'", (int)t.n, p->text + t.at);
    }
    while (!p->failed) {
        if (mc_parse_is(p, "[")) {
            v = parse_subscript(p, v);
        } else if (mc_parse_is(p, ".")) {
            v = parse_member(p, v);
        } else {
            break;
        }
    }
    return v;
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
            v = apply_named(p, "neg", &v, 1, at);
        }
    } else if (mc_parse_take(p, "~")) {
        v = parse_unary(p);
        v = apply_named(p, "invert", &v, 1, at);
    } else {
        v = parse_primary(p);
        size_t power = p->tok.at;
        if (mc_parse_take(p, "**")) {
            struct val pair[2] = { v, parse_unary(p) };
            v = apply_named(p, "pow", pair, 2, power);
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
        v = apply_named(p, "invert", &v, 1, at);
    } else {
        v = parse_unary(p);
    }
    for (const struct infix *o; !p->failed && (o = infix_here(p)) && o->level >= level;) {
        at = p->tok.at;
        mc_parse_next(p);
        struct val pair[2] = { v, parse_level(p, o->level + 1) };
        v = apply_named(p, o->op, pair, 2, at);
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
