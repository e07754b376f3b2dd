/* random_graph.h: random graphs with values for their inputs, for the fuzzer and for t_kernel.c.
 *
 * All arrays are cut from one space of up to four axes: a node has the full size or 1 along each, so most
 * pairs broadcast.  Jumps (comparisons, floor, argmax, division of integers) are only taken from exact
 * values: inputs and what keeps them exact, so that rounding cannot change which side of a jump is taken. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include "agree.h"
#include "sample.h"

struct random_graph {
    struct agree a;
    int64_t size[4];                     /* of the space */
    int rank;
    /* full: axes of the space; nodes of the space's rank */
    struct { mc_node *n; unsigned full; bool exact; } pool[400];
    int npool;
    bool structured;                     /* joins, slices, gathers, reshapes, products too */
    unsigned (*random)(void *arg);
    void *arg;
};

static inline int rg_below(struct random_graph *r, int n)
{
    return (int)(r->random(r->arg) % (unsigned)n);
}

static inline void rg_add(struct random_graph *r, mc_node *n, unsigned full, bool exact)
{
    /* the largest of a promised size 0, an index beyond a promised size: no such node */
    if (mc_is_error(n)) {
        mc_graph_clear_error(r->a.g);
    } else if (r->npool < (int)NELEM(r->pool)) {
        r->pool[r->npool].n = n;
        r->pool[r->npool].full = full;
        r->pool[r->npool++].exact = exact;
    }
}

static inline mc_array *rg_array(struct random_graph *r, mc_dtype d, int rank, const int64_t *dims)
{
    bool whole = !mc_is_float(d) || rg_below(r, 8) == 0;
    double lo = mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL ? 0 : -3, hi = d == MC_BOOL ? 1 : 3;
    mc_array *a = sample(d, rank, dims, lo, hi);
    if (whole && mc_is_float(d)) { /* ties and zeros */
        mc_array *i = mc_array_cast(a, MC_INT8), *back = mc_array_cast(i, d);
        mc_array_assign(a, back);
        mc_array_unref(&i);
        mc_array_unref(&back);
    }
    return a;
}

static inline void rg_leaf(struct random_graph *r)
{
    static const mc_dtype some[] = { MC_FLOAT32, MC_FLOAT32, MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_INT32, MC_INT64, MC_INT8,
                                     MC_UINT8, MC_BOOL, MC_BFLOAT16, MC_UINT32, MC_INT16, MC_UINT16, MC_UINT64 };
    int64_t dims[4];
    char name[16];
    unsigned full = 0, sized = 0;
    mc_dtype d = some[rg_below(r, rg_below(r, 2) ? 4 : (int)NELEM(some))];
    for (int i = 0; i < r->rank; i++) {
        bool whole = rg_below(r, 4) != 0;
        dims[i] = whole ? r->size[i] : 1;
        full |= whole ? 1u << i : 0;
        sized |= !whole || rg_below(r, 5) == 0 ? 1u << i : 0;
    }
    snprintf(name, sizeof name, "x%d", r->a.nin);
    if (r->rank > 1 && rg_below(r, 3) == 0) { /* a transposed one */
        int64_t turned[4];
        int order[4], back[4];
        char attrs[64];
        for (int i = 0; i < r->rank; i++) {
            order[i] = i;
        }
        for (int i = r->rank - 1; i > 0; i--) {
            int k = rg_below(r, i + 1), t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
        unsigned s = 0;
        for (int i = 0; i < r->rank; i++) {
            back[order[i]] = i;
            turned[i] = dims[order[i]];
            s |= sized >> order[i] & 1 ? 1u << i : 0;
        }
        mc_node *x = agree_input(&r->a, name, rg_array(r, d, r->rank, turned), s);
        int at = snprintf(attrs, sizeof attrs, "order=[");
        for (int i = 0; i < r->rank; i++) {
            at += snprintf(attrs + at, sizeof attrs - (size_t)at, "%s%d", i ? ", " : "", back[i]);
        }
        snprintf(attrs + at, sizeof attrs - (size_t)at, "]");
        rg_add(r, mc_op(r->a.g, "dimshuffle", 1, &x, attrs), full, true);
    } else {
        rg_add(r, agree_input(&r->a, name, rg_array(r, d, r->rank, dims), sized), full, true);
    }
}

static inline mc_node *rg_expr(struct random_graph *r, const char *text, mc_node *x, mc_node *y, mc_node *z)
{
    struct mc_bind b[] = { { "x", x, NULL }, { "y", y, NULL }, { "z", z, NULL } };
    return mc_expr(r->a.g, text, b, z ? 3 : y ? 2 : 1);
}

/* An array that is longer along one axis, which is reduced: what fits the space afterwards must not share its
 * loops. */
static inline void rg_other(struct random_graph *r)
{
    static const char *const rows[] = { "sum(tanh(x), axis=%d, keepdims=True)",
                                        "max(x, axis=%d, keepdims=True)", "mean(x, axis=%d, keepdims=True)" };
    static const char *const also[] = { "tanh(x) - y", "softmax(x + y, axis=-1)", "sum(x * y, axis=0)" };
    if (!r->rank || r->a.nout + 1 >= AGREE_MOST || r->a.nin + 1 >= AGREE_MOST) {
        return;
    }
    int64_t dims[4];
    char name[16], text[80];
    int axis = rg_below(r, r->rank);
    for (int i = 0; i < r->rank; i++) {
        dims[i] = r->size[i] + (i == axis);
    }
    snprintf(name, sizeof name, "x%d", r->a.nin);
    mc_node *x = agree_input(&r->a, name, rg_array(r, MC_FLOAT32, r->rank, dims), 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, rows[rg_below(r, (int)NELEM(rows))], axis);
#pragma GCC diagnostic pop
    mc_node *y = rg_expr(r, text, x, NULL, NULL);
    if (rg_below(r, 2)) {
        r->a.out[r->a.nout++] = rg_expr(r, also[rg_below(r, (int)NELEM(also))], x, y, NULL);
    }
    rg_add(r, y, ((1u << r->rank) - 1) & ~(1u << axis), false);
}

/* One more elementwise node. */
static inline void rg_scalar(struct random_graph *r)
{
    static const struct { const char *text; int n; bool exact, jumps; } rows[] = {
        { "tanh(x)", 1, false, false },      { "sigmoid(x)", 1, false, false },     { "exp(tanh(x))", 1, false, false },
        { "abs(x)", 1, true, false },       { "sqr(tanh(x))", 1, false, false },   { "cos(x)", 1, false, false },
        { "softplus(x)", 1, false, false },  { "x * 0.5", 1, false, false },        { "1 + x", 1, false, false },
        { "log1p(abs(x))", 1, false, false },{ "sqrt(abs(x) + 1)", 1, false, false },
        { "tanh(x + y)", 2, false, false },  { "tanh(x) * tanh(y)", 2, false, false }, { "x - 2 * tanh(y)", 2, false, false },
        { "maximum(x, y)", 2, true, false }, { "minimum(x, y)", 2, true, false },   { "tanh(x) / (1 + abs(y))", 2, false, false },
        { "where(x > 0, y, z)", 3, true, true }, { "clip(x, -1, 2)", 1, true, false }, { "x < y", 2, true, true },
        { "eq(x, y)", 2, true, true },       { "floor(x)", 1, true, true },         { "sgn(x)", 1, true, true },
        { "cast(x, 'int8')", 1, true, true },{ "cast(x, 'float32')", 1, false, false }, { "cast(x, 'int64')", 1, true, true },
        { "cast(x, 'float16')", 1, false, false }, { "cast(x, 'float64')", 1, false, false }, { "cast(x, 'bool')", 1, true, true },
        { "cast(x, 'uint8')", 1, true, true }, { "x // 2", 1, true, true },         { "cast(x, 'int32') % 3", 1, true, true },
        { "tanh(x) + arange(size(x, -1))", 1, false, false }, { "zeros_like(x) + y", 2, true, false }, { "relu(x)", 1, false, false },
    };
    int i = rg_below(r, (int)NELEM(rows)), a = rg_below(r, r->npool), b = rg_below(r, r->npool),
        c = rg_below(r, r->npool);
    bool exact = r->pool[a].exact && (rows[i].n < 2 || r->pool[b].exact) &&
                 (rows[i].n < 3 || r->pool[c].exact);
    if (rows[i].jumps && !(rows[i].n == 3 ? r->pool[a].exact : exact)) {
        return;
    }
    unsigned full = r->pool[a].full | (rows[i].n > 1 ? r->pool[b].full : 0) |
                    (rows[i].n > 2 ? r->pool[c].full : 0);
    if (strstr(rows[i].text, "arange") && r->rank == 0) {
        return;
    }
    mc_node *n = rg_expr(r, rows[i].text, r->pool[a].n, r->pool[b].n, r->pool[c].n);
    rg_add(r, n, full, rows[i].exact && exact);
}

/* A reduction over random axes, with the axes kept or put back; now and then left off as an output. */
static inline void rg_reduce(struct random_graph *r)
{
    static const char *const names[] = { "sum", "sum", "mean",   "max",    "min", "prod",
                                         "any", "all", "argmax", "argmin", "var", "sum" };
    int i = rg_below(r, (int)NELEM(names)), a = rg_below(r, r->npool), at = 0;
    mc_node *x = r->pool[a].n, *y;
    bool position = strncmp(names[i], "arg", 3) == 0, logic = i == 6 || i == 7;
    char attrs[64];
    unsigned axes = 0;
    if ((position || logic) && !r->pool[a].exact) {
        return;
    }
    if (strcmp(names[i], "prod") == 0) {
        x = rg_expr(r, "1 + 0.01 * tanh(x)", x, NULL, NULL);
    }
    at = snprintf(attrs, sizeof attrs, "axis=[");
    for (int k = 0; k < r->rank; k++) {
        if (rg_below(r, 2)) {
            at += snprintf(attrs + at, sizeof attrs - (size_t)at, "%s%d", axes ? ", " : "", k);
            axes |= 1u << k;
        }
    }
    if (!axes) {
        return;
    }
    bool keep = rg_below(r, 3) != 0;
    snprintf(attrs + at, sizeof attrs - (size_t)at, "], keepdims=%s", keep ? "True" : "False");
    y = mc_op(r->a.g, names[i], 1, &x, attrs);
    if (mc_is_error(y)) {
        rg_add(r, y, 0, false);
        return;
    }
    if (!keep && rg_below(r, 2)) {
        if (r->a.nout < AGREE_MOST) {
            r->a.out[r->a.nout++] = y;
        }
        return;
    }
    if (!keep) {
        at = snprintf(attrs, sizeof attrs, "order=[");
        for (int k = 0, next = 0; k < r->rank; k++) {
            at += axes >> k & 1
                      ? snprintf(attrs + at, sizeof attrs - (size_t)at, "%s-1", k ? ", " : "")
                      : snprintf(attrs + at, sizeof attrs - (size_t)at, "%s%d", k ? ", " : "", next++);
        }
        snprintf(attrs + at, sizeof attrs - (size_t)at, "]");
        y = mc_op(r->a.g, "dimshuffle", 1, &y, attrs);
    }
    bool exact = r->pool[a].exact && i != 0 && i != 1 && i != 2 && i != 5 && i < 10;
    rg_add(r, y, r->pool[a].full & ~axes, exact);
}

/* Rows in several stages. */
static inline void rg_row(struct random_graph *r)
{
    static const char *const rows[] = {
        "softmax(1.0 * x, axis=%d)", "logsoftmax(1.0 * x, axis=%d)", "1.5 * x - mean(x, axis=%d, keepdims=True)",
        "tanh(x) / (1 + sqrt(sum(sqr(x), axis=%d, keepdims=True)))", "exp(1.0 * x - max(x, axis=%d, keepdims=True))",
        "(x - mean(x, axis=%d, keepdims=True)) / sqrt(var(x, axis=%d, keepdims=True) + 1)",
        "alloc(sum(x, axis=%d, keepdims=True), shape(x))", "cumsum(x, axis=%d)",
    };
    if (!r->rank) {
        return;
    }
    int a = rg_below(r, r->npool), axis = rg_below(r, r->rank);
    char text[160];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
    snprintf(text, sizeof text, rows[rg_below(r, (int)NELEM(rows))], axis, axis);
#pragma GCC diagnostic pop
    rg_add(r, rg_expr(r, text, r->pool[a].n, NULL, NULL), r->pool[a].full, false);
}

/* Views, joins, gathers, products: nodes of any shape become outputs, those that keep the shape stay. */
static inline void rg_structured(struct random_graph *r)
{
    static const struct { const char *text; int least; bool same, two; } rows[] = {
        { "x[::-1]", 1, true, false },                 { "x[..., ::-1]", 1, true, false },
        { "x[1:]", 1, false, false },                  { "x[..., :-1]", 1, false, false },
        { "x[::2]", 1, false, false },                 { "x[:, ::3]", 2, false, false },
        { "reshape(x, [-1])", 0, false, false },       { "sum(reshape(x, [-1]))", 0, false, false },
        { "reshape(x.T, [-1])", 2, false, false },     { "join([x, y], axis=0)", 1, false, true },
        { "join([x, tanh(x)], axis=1)", 2, false, false },    { "sort(x, axis=-1)", 1, true, false },
        { "x[[0, -1, 0]]", 1, false, false },          { "x.T", 2, false, false },
        { "dot(x, x.T)", 2, false, false },            { "tanh(dot(x, x.T) + 1)", 2, false, false },
        { "dot(x.T, x) * 2 - 1", 2, false, false },    { "set_subtensor(x[0], 1)", 1, true, false },
        { "inc_subtensor(x[::2], 2)", 1, true, false },{ "tile(x, [2])", 1, false, false },
        { "roll(x, 1, axis=0)", 1, true, false },      { "repeat(x, 2, axis=0)", 1, false, false },
        { "reshape(x, shape(x))", 1, true, false },    { "reshape(x[::-1], shape(x))", 1, true, false },
        { "x[0]", 1, false, false },                   { "x[..., -1]", 1, false, false },
    };
    int i = rg_below(r, (int)NELEM(rows)), a = rg_below(r, r->npool), b = rg_below(r, r->npool);
    mc_node *x = r->pool[a].n, *y = r->pool[b].n;
    if (r->rank < rows[i].least || (strstr(rows[i].text, "dot") && r->rank != 2) ||
        (strstr(rows[i].text, "sort") && !r->pool[a].exact) ||
        (rows[i].two && r->pool[a].full != r->pool[b].full)) {
        return;
    }
    mc_node *n = rg_expr(r, rows[i].text, x, y, NULL);
    if (mc_is_error(n) || rows[i].same) {
        rg_add(r, n, r->pool[a].full, r->pool[a].exact && !strstr(rows[i].text, "inc"));
    } else if (r->a.nout < AGREE_MOST) {
        r->a.out[r->a.nout++] = rg_below(r, 2) && n->type.rank
                                    ? rg_expr(r, "tanh(x) + sum(tanh(x), axis=0, keepdims=True)", n, NULL,
                                              NULL)
                                    : n;
    }
}

/* Makes a graph of about `steps` nodes into r->a. */
static inline void rg_make(struct random_graph *r, int steps)
{
    static const int64_t small[] = { 1, 2, 3, 5, 8, 17, 4, 0, 33, 130 };
    r->rank = rg_below(r, 8) == 0 ? 0 : 1 + rg_below(r, 4);
    r->a = (struct agree){ .g = mc_graph_new(), .scale = 400 };
    r->npool = 0;
    for (int i = 0; i < r->rank; i++) {
        r->size[i] = small[rg_below(r, rg_below(r, 3) ? 5 : r->rank > 2 ? 9 : (int)NELEM(small))];
    }
    for (int i = 0, n = 1 + rg_below(r, 5); i < n; i++) {
        rg_leaf(r);
    }
    for (int i = 0; i < steps && r->a.g->status == MC_OK; i++) {
        int what = rg_below(r, 10);
        if (what < 5) {
            rg_scalar(r);
        } else if (what == 5 && rg_below(r, 2)) {
            rg_other(r);
        } else if (what < 8) {
            rg_reduce(r);
        } else if (what < 9 || !r->structured) {
            rg_row(r);
        } else {
            rg_structured(r);
        }
    }
    for (int i = 0, n = 1 + rg_below(r, 4); i < n && r->a.nout < AGREE_MOST; i++) {
        r->a.out[r->a.nout++] = r->pool[r->npool - 1 - rg_below(r, (r->npool + 1) / 2)].n;
    }
}

#endif
