/* primary.c: parses the operands of operators (names, numbers, lists, calls) and what follows one: x[...],
 * x.T.
 *
 * Invariant: a name bound by a template hides the same name of the graph, which hides a constant. */
#include "graph/parse_desc.h"
#include <math.h>

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
    const struct mc_op *op = mc_parse_op(p, name);
    const char *near = mc_near_miss(name, list, count);
    if (op) {
        mc_parse_fail(p, at, "'%s' is a function: %s(%s)", name, name, op->params);
    } else {
        mc_parse_fail(p, at,
                      near ? "there is no variable '%s'; did you mean '%s'?" : "there is no variable '%s'",
                      name, near);
    }
}

/* inf, nan, also with a suffix: inff32 */
static bool nonfinite(const char *name, struct val *v)
{
    static const struct { const char *suffix; int dtype; } rows[] = {
        { "", -1 }, { "f16", MC_FLOAT16 }, { "bf16", MC_BFLOAT16 }, { "f32", MC_FLOAT32 }, { "f64", MC_FLOAT64 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        if ((strncmp(name, "inf", 3) == 0 || strncmp(name, "nan", 3) == 0) &&
            strcmp(name + 3, rows[i].suffix) == 0) {
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
            v.kind = v.attr   ? (v.attr->none   ? V_NONE
                                 : v.attr->text ? V_TEXT
                                                : V_ATTR)
                     : v.node ? V_NODE
                              : V_NONE;
            v.text = v.attr ? v.attr->text : NULL;
            return v;
        }
    }
    mc_node *n = mc_dict_get(&p->g->names, name);
    const struct val *desc = mc_parse_desc_named(p, name);
    if (desc) {
        v = *desc;
        v.at = t->at;
    } else if (n) {
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

/* A list, or a tuple, the same in round brackets; there one value without a comma is that value. */
static struct val parse_list(struct parser *p, const char *close)
{
    struct val small[16], *item = small;
    size_t at = p->tok.at, cap = NELEM(small);
    int n = 0;
    bool comma = *close == ']';
    mc_parse_next(p);
    while (!p->failed && !mc_parse_is(p, close)) {
        if ((size_t)n == cap) {
            struct val *more = mc_arena_alloc(&p->g->arena, cap * 2 * sizeof *more);
            if (!more) {
                mc_parse_memory(p);
                break;
            }
            memcpy(more, item, cap * sizeof *item);
            item = more;
            cap *= 2;
        }
        item[n++] = mc_parse_expr(p);
        comma |= mc_parse_is(p, ",");
        if (!comma) {
            break;
        }
        mc_parse_separator(p, close);
    }
    mc_parse_expect(p, close);
    return n == 1 && !comma ? item[0] : mc_val_list(p, item, n, at);
}

/* Parses one entry between [ and ]: an index, a slice, ..., None. */
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
    struct val v = mc_val_list(p, part, 3, at);
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
        p->location.at = at;
        return mc_val_made(p, mc_item(x.node, (int)item[0].i), at);
    }
    mc_node *node = mc_val_node(p, &x);
    if (p->failed) {
        return mc_val_of(p->g->error, at);
    }
    p->location.at = at;
    return mc_val_made(p, mc_index_apply(p, node, item, n), x.at);
}

static struct val parse_member(struct parser *p, struct val x)
{
    mc_parse_next(p);
    struct tok name = p->tok;
    if (name.kind != T_NAME) {
        mc_parse_fail(p, name.at, "expected a name after '.'");
        return x;
    }
    char *word = mc_parse_copy(p, &name);
    mc_parse_next(p);
    if (p->failed) {
        return x;
    }
    if (mc_parse_is(p, "(")) {
        mc_parse_next(p);
        return mc_parse_call(p, word, &x, name.at);
    }
    mc_node *n = mc_val_node(p, &x);
    if (strcmp(word, "T") == 0) {
        return mc_parse_apply(
            p, "transpose", &(struct val){ .kind = V_NODE, .node = n, .at = x.at, .dtype = -1 }, 1, name.at);
    }
    if (strcmp(word, "shape") == 0) {
        return p->failed ? x : mc_val_made(p, mc_shape_of(n), x.at);
    }
    if (strcmp(word, "ndim") == 0) {
        return (
            struct val){ .kind = V_INT, .i = n->type.rank, .real = n->type.rank, .dtype = -1, .at = x.at };
    }
    if (strcmp(word, "dtype") == 0) {
        return (struct val){ .kind = V_TEXT, .text = mc_dtype_name(n->type.dtype), .dtype = -1, .at = x.at };
    }
    mc_parse_fail(p, name.at,
                  "a tensor has no attribute '.%s'; expected .T, .shape, .ndim, .dtype or a function", word);
    return x;
}

struct val mc_parse_primary(struct parser *p)
{
    struct val v = { .kind = V_NONE, .at = p->tok.at, .dtype = -1 };
    struct tok t = p->tok;
    if (t.kind == T_NUMBER) {
        v = mc_parse_number(p);
    } else if (t.kind == T_STRING) {
        v = mc_parse_string(p);
    } else if (mc_parse_is(p, "[") || mc_parse_is(p, "(")) {
        v = parse_list(p, mc_parse_is(p, "[") ? "]" : ")");
    } else if (t.kind == T_NAME) {
        mc_parse_next(p);
        if (mc_parse_is(p, "(")) {
            char *name = mc_parse_copy(p, &t);
            mc_parse_next(p);
            v = !name                    ? v
                : mc_parse_is_loop(name) ? mc_parse_scan(p, name, t.at)
                                         : mc_parse_call(p, name, NULL, t.at);
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
