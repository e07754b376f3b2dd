/* pool_make.c: makes pooling nodes from the arguments of users: selects the axes, fills in defaults, and
 * decides whether marks are kept and in which dtype. */
#include "op/pool_node.h"

struct mc_pool_how mc_pool_how(const struct mc_attr *attr)
{
    return (struct mc_pool_how){ .mode = attr[POOL_MODE].text,
                                 .ties = attr[POOL_TIES].text,
                                 .layout = attr[POOL_LAYOUT].none ? NULL : attr[POOL_LAYOUT].text,
                                 .keep_border = !mc_attr_int(&attr[POOL_IGNORE_BORDER]),
                                 .strict = mc_attr_int(&attr[POOL_STRICT]) != 0,
                                 .start = attr[POOL_START].none ? NULL : &attr[POOL_START],
                                 .axis = attr[POOL_AXIS].none ? NULL : &attr[POOL_AXIS] };
}

/* Digits are the pooled axes, letters the others: 'bc01', 'c01b', 'b012c'. */
static mc_status axes_of_layout(const char *layout, int rank, int64_t axis[3], int *n)
{
    *n = 0;
    if ((int)strlen(layout) != rank) {
        return mc_fail(MC_ESHAPE, "layout '%s' must have %d axes", layout, rank);
    }
    for (int i = 0; i < rank; i++) {
        if (layout[i] >= '0' && layout[i] <= '9') {
            if (*n == 3 || layout[i] != '0' + *n) {
                return mc_fail(MC_EARG,
                               "layout '%s': the pooled axes must be the digits 0, 1, 2, in this order",
                               layout);
            }
            axis[(*n)++] = i;
        }
    }
    return *n ? MC_OK : mc_fail(MC_EARG, "layout '%s' has no axis 0 to pool", layout);
}

static mc_status axes_of(const struct mc_pool_how *how, const mc_node *ws, int rank, int64_t axis[3], int *n)
{
    const struct mc_attr *given = how->axis;
    if (given && how->layout) {
        return mc_fail(MC_EARG, "both axis and layout are given; give only one of them");
    }
    if (how->layout) {
        return axes_of_layout(how->layout, rank, axis, n);
    }
    int64_t count = given ? given->n : how->nd ? how->nd : ws->type.rank == 1 ? ws->type.dims[0] : -1;
    if (count < 1 || count > 3) {
        return mc_fail(MC_ESHAPE,
                       count < 0 ? "the number of pooled axes does not follow from ws; give axis or layout"
                                 : "1 to 3 axes can be pooled, not %lld",
                       (long long)count);
    }
    *n = (int)count;
    if (*n > rank) {
        return mc_fail(MC_ESHAPE, "%d axes cannot be pooled in rank %d", *n, rank);
    }
    for (int i = 0; i < *n; i++) {
        int k;
        TRY(mc_axis_check("pool", given ? given->ints[i] : i - *n, rank, &k));
        axis[i] = k;
        if (i && axis[i] <= axis[i - 1]) {
            return mc_fail(MC_EARG, "axes must be ascending");
        }
    }
    return MC_OK;
}

/* A vector of n int64; a scalar is repeated. */
static mc_node *vector_of(mc_graph *g, mc_node *v, int n, const char *what)
{
    mc_node *all[3];
    int64_t k[3];
    int count;
    if (mc_is_error(v) || v->type.rank > 1 || !mc_is_int(v->type.dtype)) {
        return mc_is_error(v)
                   ? v
                   : mc_node_fail(g, MC_ETYPE, "%s must be a whole number or a vector of them", what);
    }
    if (v->type.rank == 1 && v->type.dims[0] >= 0 && v->type.dims[0] != n) {
        return mc_node_fail(g, MC_ESHAPE, "%s has %lld numbers for %d axes", what, (long long)v->type.dims[0],
                            n);
    }
    if (mc_const_ints(v, k, 3, &count) && count <= n) {
        for (int i = count; i < n; i++) {
            k[i] = k[0];
        }
        return mc_node_ints(g, n, k);
    }
    for (int i = 0; i < 3; i++) {
        all[i] = mc_cast_to(v, MC_INT64);
    }
    return v->type.rank == 1 ? all[0] : mc_call_op(g, "stack", n, all, NULL);
}

/* Prepares what all nodes of one pooling have in common. */
static bool prepare(mc_node *x, mc_node *const vector[POOL_NVECTOR], const struct mc_pool_how *how,
                    struct mc_pool_parts *p)
{
    mc_graph *g = x->graph;
    int n = 0;
    const char *mode = !how->mode ? "max" : strcmp(how->mode, "average") == 0 ? "average_inc_pad" : how->mode;
    if (axes_of(how, vector[POOL_WS], x->type.rank, p->axis, &n) < 0) {
        mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
        return false;
    }
    static const char *const names[POOL_NVECTOR] = {
        [POOL_WS] = "ws", [POOL_STRIDE] = "stride", [POOL_PAD] = "pad"
    };
    mc_node *const usual[POOL_NVECTOR] = { NULL, vector[POOL_WS], mc_node_int(g, 0) };
    for (int i = 0; i < POOL_NVECTOR; i++) {
        p->vector[i] = vector_of(g, vector[i] ? vector[i] : usual[i], n, names[i]);
        if (mc_is_error(p->vector[i])) {
            return false;
        }
    }
    int64_t *v = p->number;
    v[0] = !how->keep_border || how->start; /* `start` fixes the border rule */
    v[1] = how->strict;
    v[2] = MC_UINT8;
    p->attr[POOL_MODE] = (struct mc_attr){ .kind = ATTR_TEXT, .text = mode };
    p->attr[POOL_IGNORE_BORDER] = (struct mc_attr){ .kind = ATTR_BOOL, .n = 1, .ints = &v[0] };
    p->attr[POOL_START] = how->start ? *how->start : (struct mc_attr){ .kind = ATTR_INTS, .none = true };
    p->attr[POOL_START].kind = ATTR_INTS;
    p->attr[POOL_TIES] = (struct mc_attr){ .kind = ATTR_TEXT, .text = how->ties ? how->ties : "first" };
    p->attr[POOL_AXIS] = (struct mc_attr){ .kind = ATTR_INTS, .n = n, .ints = p->axis };
    p->attr[POOL_STRICT] = (struct mc_attr){ .kind = ATTR_BOOL, .n = 1, .ints = &v[1] };
    p->attr[POOL_LAYOUT] = (struct mc_attr){ .kind = ATTR_TEXT, .none = true };
    p->attr[POOL_MARKS] = (struct mc_attr){ .kind = ATTR_DTYPE, .n = 1, .ints = &v[2] };
    return true;
}

enum mc_pool_key mc_pool_key_of(const struct mc_attr *attr)
{
    return strcmp(attr[POOL_MODE].text, "max") != 0    ? POOL_KEY_NONE
           : strcmp(attr[POOL_TIES].text, "all") == 0  ? POOL_KEY_X
           : strcmp(attr[POOL_TIES].text, "bits") == 0 ? POOL_KEY_BITS
                                                       : POOL_KEY_MARKS;
}

static bool is_max(const struct mc_pool_parts *p)
{
    return mc_pool_key_of(p->attr) != POOL_KEY_NONE;
}

static bool is_first(const struct mc_pool_parts *p)
{
    return mc_pool_key_of(p->attr) == POOL_KEY_MARKS;
}

/* Casts x for means (floats) and sums (64 bits for small integers). */
static mc_node *as_pooled(mc_node *x, const struct mc_pool_parts *p)
{
    mc_dtype d = x->type.dtype;
    return is_max(p)                                     ? x
           : strcmp(p->attr[POOL_MODE].text, "sum") == 0 ? mc_cast_to(x, mc_sum_dtype(d))
                                                         : mc_cast_to(x, mc_dtype_to_float(d));
}

mc_node *mc_pool_node(mc_graph *g, const char *op, int n, mc_node *const *in, struct mc_pool_parts *p,
                      mc_node *last)
{
    mc_node *all[6];
    memcpy(all, in, (size_t)n * sizeof *all);
    for (int i = 0; i < POOL_NVECTOR; i++) {
        all[n + i] = p->vector[i];
    }
    all[n + POOL_NVECTOR] = last;
    return mc_node_make(g, mc_op_named(g, op), n + POOL_NVECTOR + (last != NULL), all, p->attr);
}

/* The node pool_max: y and marks. A mark has one byte if the window is known to be small enough. */
static mc_node *max_and_marks(mc_node *x, struct mc_pool_parts *p)
{
    int64_t w[3], cells = 1;
    int n = 0;
    bool known = mc_const_ints(p->vector[POOL_WS], w, 3, &n);
    for (int i = 0; i < n && known; i++) {
        known = mc_mul_i64(cells, w[i], &cells);
    }
    p->number[2] = known && cells <= 256 ? MC_UINT8 : MC_INT32;
    return mc_pool_node(x->graph, "pool_max", 1, &x, p, NULL);
}

mc_node *mc_pool_make(mc_node *x, mc_node *const vector[POOL_NVECTOR], const struct mc_pool_how *how)
{
    struct mc_pool_parts p;
    if (!prepare(x, vector, how, &p)) {
        return x->graph->error;
    }
    x = as_pooled(x, &p);
    return is_first(&p) ? mc_item(max_and_marks(x, &p), 0) : mc_pool_node(x->graph, "pool", 1, &x, &p, NULL);
}

static mc_node *scatter(mc_node *x, mc_node *g, struct mc_pool_parts *p)
{
    mc_node *in[2] = { g, mc_shape_of(x) }, *key = NULL;
    if (is_max(p)) {
        key = is_first(p) ? mc_item(max_and_marks(x, p), 1) : x;
    }
    return mc_pool_node(x->graph, "pool_spread", 2, in, p, key);
}

mc_node *mc_pool_grad_make(mc_node *x, mc_node *g, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how)
{
    struct mc_pool_parts p;
    return prepare(x, vector, how, &p) ? scatter(x, mc_cast_to(g, mc_dtype_to_float(g->type.dtype)), &p)
                                       : x->graph->error;
}

mc_node *mc_pool_pick_make(mc_node *x, mc_node *v, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how)
{
    struct mc_pool_parts p;
    if (!prepare(x, vector, how, &p)) {
        return x->graph->error;
    }
    if (!is_max(&p)) { /* sums and means are linear */
        v = as_pooled(v, &p);
        return mc_pool_node(x->graph, "pool", 1, &v, &p, NULL);
    }
    mc_node *in[2] = { v, is_first(&p) ? mc_item(max_and_marks(x, &p), 1) : x };
    return mc_pool_node(x->graph, "pool_gather", 2, in, &p, NULL);
}

mc_node *mc_pool_draw_make(mc_node *x, mc_node *u, mc_node *const vector[POOL_NVECTOR],
                           const struct mc_pool_how *how)
{
    struct mc_pool_parts p;
    mc_node *in[2] = { x, u };
    return prepare(x, vector, how, &p) ? mc_pool_node(x->graph, "pool_draw", 2, in, &p, NULL)
                                       : x->graph->error;
}
