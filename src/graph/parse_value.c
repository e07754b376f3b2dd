/* parse_value.c: converts values of expressions to nodes and numbers. */
#include "graph/parse.h"

struct val mc_val_of(mc_node *n, size_t at)
{
    return (struct val){ .kind = V_NODE, .node = n, .dtype = -1, .at = at };
}

bool mc_val_bigint(const struct val *v, struct whole *out)
{
    if (v->dtype >= 0 || (v->kind != V_INT && v->kind != V_WIDE)) {
        return false;
    }
    *out = v->kind == V_INT ? mc_bigint_of(v->i) : *v->wide;
    return true;
}

bool mc_val_is_number(const struct val *v)
{
    return v->dtype < 0 && (v->kind == V_INT || v->kind == V_WIDE || v->kind == V_REAL);
}

struct val mc_val_of_bigint(struct parser *p, const struct whole *w, size_t at)
{
    struct val v = { .kind = V_INT, .dtype = -1, .at = at, .real = mc_bigint_real(w) };
    if (!mc_bigint_i64(w, &v.i)) {
        v.kind = V_WIDE;
        v.i = 0;
        v.wide = mc_arena_copy(&p->g->arena, w, sizeof *w);
        if (!v.wide) {
            mc_parse_memory(p);
            v.kind = V_INT;
        }
    }
    return v;
}

/* A whole literal beyond 64 bits becomes a float. */
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
    uint64_t u;
    if (v->kind == V_WIDE && mc_bigint_u64(v->wide, &u)) {
        return mc_node_const(p->g, mc_array_from(MC_UINT64, 0, NULL, &u), true);
    }
    return mc_node_const(p->g, mc_array_scalar(v->dtype >= 0 ? (mc_dtype)v->dtype : MC_FLOAT64, v->real),
                         v->dtype < 0);
}

/* What the literals of a list require of its dtype. */
struct element {
    int dtype;            /* of elements with a suffix; -1: none */
    bool real, whole;     /* of elements without a suffix: some are real, some are whole */
    int64_t lo, hi;       /* least and largest whole element that int64 holds, and 0 */
    const struct val *wide; /* the last element that int64 does not hold; NULL: all fit */
};

/* The shape of a nested list of literals, and the kinds of its elements; false: not a regular list. */
static bool list_shape(const struct val *v, int depth, int64_t *dims, int *rank, struct element *e)
{
    if (v->kind != V_LIST) {
        if (v->kind != V_INT && v->kind != V_WIDE && v->kind != V_REAL && v->kind != V_BOOL) {
            return false;
        }
        e->real |= v->kind == V_REAL && v->dtype < 0;
        e->wide = v->kind == V_WIDE ? v : e->wide;
        if (v->kind == V_INT && v->dtype < 0) {
            e->whole = true;
            e->lo = MC_MIN(e->lo, v->i);
            e->hi = MC_MAX(e->hi, v->i);
        }
        int own = v->kind == V_BOOL ? (int)MC_BOOL : v->dtype;
        if (own >= 0) {
            e->dtype = e->dtype < 0 ? own : (int)mc_dtype_promote((mc_dtype)e->dtype, (mc_dtype)own);
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
        if (!list_shape(&v->item[i], depth + 1, dims, rank, e)) {
            return false;
        }
    }
    if (v->n == 0 && *rank < 0) {
        *rank = depth + 1;
    }
    return dims[depth] == v->n;
}

/* The dtype of a list: that of the elements with a suffix, if it holds the others.  False: none. */
static bool list_dtype(const struct element *e, mc_dtype *d)
{
    uint64_t u;
    *d = e->dtype >= 0 ? (mc_dtype)e->dtype : e->wide && !e->real ? MC_UINT64 : MC_INT64;
    if (e->real && !mc_is_float(*d)) {
        *d = mc_dtype_floatX();
    }
    if (e->whole && *d == MC_BOOL) {
        *d = MC_INT64;
    }
    if (e->whole && !mc_is_float(*d) && e->dtype >= 0) {
        *d = mc_literal_fits(e->lo, *d) ? *d : mc_dtype_promote(*d, mc_literal_dtype(e->lo));
        *d = mc_literal_fits(e->hi, *d) ? *d : mc_dtype_promote(*d, mc_literal_dtype(e->hi));
        return !mc_is_float(*d);
    }
    return mc_is_float(*d) || !e->wide || (*d == MC_UINT64 && e->lo >= 0 && mc_bigint_u64(e->wide->wide, &u));
}

static char *list_fill(const struct val *v, mc_dtype d, char *to)
{
    if (v->kind == V_LIST) {
        for (int i = 0; i < v->n; i++) {
            to = list_fill(&v->item[i], d, to);
        }
        return to;
    }
    uint64_t u;
    if (v->kind == V_REAL || (v->kind == V_WIDE && mc_is_float(d))) {
        mc_store_f64(d, to, v->real);
    } else if (v->kind == V_WIDE && mc_bigint_u64(v->wide, &u)) {
        memcpy(to, &u, sizeof u);
    } else if (v->dtype == MC_UINT64 && mc_is_float(d)) {
        mc_store_f64(d, to, (double)(uint64_t)v->i);
    } else {
        mc_store_i64(d, to, v->i);
    }
    return to + mc_dtypes[d].size;
}

static mc_node *list_node(struct parser *p, const struct val *v)
{
    int64_t dims[MC_MAX_RANK];
    int rank = -1;
    struct element e = { .dtype = -1 };
    for (int i = 0; i < MC_MAX_RANK; i++) {
        dims[i] = -1;
    }
    if (list_shape(v, 0, dims, &rank, &e)) {
        mc_dtype d;
        if (!list_dtype(&e, &d)) {
            mc_parse_fail(p, e.wide ? e.wide->at : v->at, "no integer dtype holds all numbers of this list");
            return p->g->error;
        }
        mc_array *a = mc_array_empty(d, rank, dims);
        if (a) {
            list_fill(v, d, a->data);
        }
        return mc_node_const(p->g, a, false);
    }
    mc_node **in = mc_arena_alloc(&p->g->arena, (size_t)(v->n + 1) * sizeof *in);
    const bool tuple = v->several && v->n > 1;
    for (int i = 0; in && i < v->n; i++) {
        if (!(in[i] = mc_val_node(p, &v->item[i]))) {
            return NULL;
        }
    }
    if (in && tuple) {
        return mc_node_make(p->g, &mc_op_tuple, v->n, in, NULL);
    }
    return in ? mc_apply_plain(p->g, "stack", v->n, in) : p->g->error;
}

mc_node *mc_val_node(struct parser *p, const struct val *v)
{
    mc_node *n = NULL;
    if (p->failed) {
        return p->g->error;
    }
    p->location.at = v->at;
    switch (v->kind) {
    case V_NODE: n = v->node; break;
    case V_INT:
    case V_WIDE:
    case V_REAL:
    case V_BOOL: n = literal(p, v); break;
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
        mc_parse_fail(p, v->at,
                      v->kind == V_DESC ? "expected a tensor, not a descriptor" : "expected a tensor");
        return p->g->error;
    }
    if (mc_is_error(n)) {
        p->failed = true;
        p->tok.kind = T_END;
    }
    return n;
}

struct val mc_val_list(struct parser *p, const struct val *item, int n, size_t at)
{
    struct val v = { .kind = V_LIST, .n = n, .dtype = -1, .at = at };
    v.item = mc_arena_copy(&p->g->arena, item, (size_t)(n ? n : 1) * sizeof *item);
    if (!v.item) {
        mc_parse_memory(p);
        v.n = 0;
    }
    return v;
}

struct val mc_val_made(struct parser *p, mc_node *n, size_t at)
{
    if (mc_is_error(n)) {
        p->failed = true;
        p->tok.kind = T_END;
    }
    return mc_val_of(n, at);
}
