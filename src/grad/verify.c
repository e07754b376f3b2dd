/* verify.c: compares gradients with central differences that the reference computes in float64.
 *
 * The graph is rebuilt with every float as float64 (its twin), so that differences are exact enough for
 * every dtype. The gradient itself is computed in the dtypes of the user's graph. f is projected on
 * weights in [0.5, 1.5], so that the elements of a tensor cannot cancel. */
#include "grad/grad.h"
#include <math.h>

enum { MOST = 400 }; /* at most so many elements of an array are perturbed; of a larger one every k-th */

/* A point: nodes and their values, beginning with those by which f is differentiated. */
struct point { int n, nwrt; mc_node **node; mc_array **value; };
struct twin {
    mc_graph *graph;
    mc_node *f;
    struct point at;   /* floats as float64; one element at a time is perturbed */
    mc_array *weight;  /* of f's shape */
};

/* An error counts only if it exceeds this both absolutely and relatively. */
static double tolerance(mc_dtype d)
{
    return d == MC_FLOAT64 ? 1e-4 : d == MC_FLOAT32 ? 1e-2 : 5e-2;
}

static mc_dtype widened(mc_dtype d)
{
    return mc_is_float(d) ? MC_FLOAT64 : d;
}

/* ---- the twin ---- */

static mc_node *twin_leaf(mc_graph *g, const mc_node *x)
{
    struct mc_type t = x->type;
    mc_array *value = x->value ? mc_array_ref(x->value) : x->shared ? mc_shared_get(x->shared) : NULL;
    t.dtype = widened(t.dtype);
    if (x->op == &mc_op_input) {
        return x->name ? mc_input_sized(g, x->name, t.dtype, t.rank, t.dims) : mc_node_blank(g, &t);
    }
    mc_array *wide = value ? mc_array_cast(value, t.dtype) : NULL;
    mc_array_unref(&value);
    return mc_node_const(g, wide, false);
}

static mc_node *twin_node(mc_graph *g, const mc_node *x, mc_node *const *in)
{
    struct mc_attr attr[16] = { 0 };
    int64_t wide = MC_FLOAT64;
    if (x->op == &mc_op_item) {
        return mc_item(in[0], x->item);
    }
    for (int i = 0; i < x->op->sig->nattr && i < (int)NELEM(attr); i++) {
        attr[i] = x->attr[i];
        if (attr[i].kind == ATTR_DTYPE && attr[i].n && mc_is_float((mc_dtype)attr[i].ints[0])) {
            attr[i].ints = &wide;
        }
    }
    return mc_apply(g, x->op, x->nin, in, attr);
}

static mc_status twin_make(struct twin *t, mc_node *f, const struct point *p)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(1, &f, &count),
            **map = mc_calloc((size_t)f->id + 1, sizeof *map, "verify");
    mc_status s = list && map && (t->graph = mc_graph_new()) ? MC_OK : MC_EMEMORY;

    for (int i = 0; s == MC_OK && i < p->n; i++) {
        struct mc_type type = p->node[i]->type;
        type.dtype = widened(type.dtype);
        t->at.node[i] = mc_node_blank(t->graph, &type);
        s = mc_is_error(t->at.node[i]) ? MC_EMEMORY : MC_OK;
        if (s == MC_OK && p->node[i]->id <= f->id) {
            map[p->node[i]->id] = t->at.node[i];
        }
    }
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        const mc_node *x = list[i];
        mc_node **in = map[x->id] ? NULL : mc_alloc((size_t)(x->nin + 1) * sizeof *in, "verify");
        for (int k = 0; in && k < x->nin; k++) {
            in[k] = map[x->in[k]->id];
        }
        if (!map[x->id]) {
            map[x->id] = in ? x->nin ? twin_node(t->graph, x, in) : twin_leaf(t->graph, x) : NULL;
            s = !in                       ? MC_EMEMORY
                : mc_is_error(map[x->id]) ? mc_fail(t->graph->status < 0 ? t->graph->status : MC_EMEMORY,
                                                    "verify_grad: %s", mc_error(t->graph))
                                          : MC_OK;
        }
        mc_free(in);
    }
    t->f = s == MC_OK ? map[f->id] : NULL;
    mc_free(list);
    mc_free(map);
    return s;
}

/* sum(weight * f) at t->at */
static mc_status project(const struct twin *t, double *out)
{
    mc_array *y = NULL;
    TRY(mc_eval(t->at.n, t->at.node, t->at.value, 1, &t->f, &y));
    const double *v = (const double *)(const void *)y->data,
                 *w = (const double *)(const void *)t->weight->data;
    *out = 0;
    for (int64_t i = 0; i < mc_array_size(y); i++) {
        *out += v[i] * w[i];
    }
    mc_array_unref(&y);
    return MC_OK;
}

/* Weights in [0.5, 1.5], the same in every run. */
static mc_array *weights(int rank, const int64_t *dims)
{
    mc_array *w = mc_array_empty(MC_FLOAT64, rank, dims);
    for (int64_t i = 0; w && i < mc_array_size(w); i++) {
        double v = 0.5 + (double)(mc_hash_mix(1, (uint64_t)i) >> 11) * 0x1p-53;
        memcpy(w->data + i * 8, &v, sizeof v);
    }
    return w;
}

/* ---- comparing ---- */

static mc_status too_far(const mc_node *wrt, int which, const mc_array *a, int64_t flat, double have,
                         double want)
{
    struct mc_str text = { 0 };
    int64_t index[MC_MAX_RANK];
    mc_node_print(&text, wrt, 1);
    for (int k = a->rank; k-- > 0;) {
        index[k] = flat % a->dims[k];
        flat /= a->dims[k];
    }
    for (int k = 0; k < a->rank; k++) {
        mc_str_addf(&text, k ? ", %lld" : "[%lld", (long long)index[k]);
    }
    mc_status s = mc_fail(MC_ECHECK,
                          "verify_grad: by %s%s (wrt %d) the gradient is %.9g, differences say %.9g",
                          text.s ? text.s : "", a->rank ? "]" : "", which + 1, have, want);
    mc_str_free(&text);
    return s;
}

/* Compares the gradient by wrt number k, element by element, with (f(x + h) - f(x - h)) / 2h. */
static mc_status compare(const struct twin *t, int k, const mc_node *wrt, const mc_array *grad, double tol,
                         double *worst)
{
    double *x = (double *)(void *)t->at.value[k]->data;
    const double *g = (const double *)(const void *)grad->data;
    int64_t n = mc_array_size(t->at.value[k]), step = (n + MOST - 1) / MOST;
    double found = 0, should = 0;
    int64_t where = -1;
    for (int64_t i = 0; i < n; i += step) {
        double old = x[i], h = 1e-6 * MC_MAX(1, fabs(old)), up, down;
        x[i] = old + h;
        TRY(project(t, &up));
        x[i] = old - h;
        TRY(project(t, &down));
        x[i] = old;
        double want = (up - down) / (2 * h), off = fabs(g[i] - want), size = fabs(g[i]) + fabs(want);
        double error = isnan(off) ? (double)INFINITY : MC_MIN(off, off / MC_MAX(size, 1e-8));
        if (error > found) {
            found = error;
            should = want;
            where = i;
        }
    }
    *worst = MC_MAX(*worst, found);
    return found > tol ? too_far(wrt, k, t->at.value[k], where, g[where], should) : MC_OK;
}

/* The gradients in the user's own graph at the point, as float64. */
static mc_status own_gradients(mc_node *f, const struct point *p, const mc_array *weight, mc_array **out)
{
    const int n = p->nwrt;
    mc_node **grad = mc_alloc((size_t)n * sizeof *grad, "verify"), *r;
    mc_array *w = grad ? mc_array_cast(weight, f->type.dtype) : NULL;
    mc_status s = w ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        r = mc_node_const(f->graph, w, false);
        s = mc_grads(NULL, n, p->node, grad, &(mc_grad_spec){ .known = &f, .known_grad = &r, .nknown = 1 });
    }
    s = s < 0 ? s : mc_eval(p->n, p->node, p->value, n, grad, out);
    for (int i = 0; i < n; i++) {
        mc_array *wide = s == MC_OK ? mc_array_cast(out[i], MC_FLOAT64) : NULL;
        s = s == MC_OK && !wide ? mc_last_status() : s;
        mc_array_unref(&out[i]);
        out[i] = wide;
        if (s == MC_OK && !mc_dims_equal(wide->rank, wide->dims, p->value[i]->rank, p->value[i]->dims)) {
            s = mc_fail(MC_ECHECK, "verify_grad: the gradient by wrt %d has not the shape of its wrt", i + 1);
        }
    }
    mc_free(grad);
    return s;
}

/* ---- the point ---- */

/* The array must have the rank of the node and its known sizes, and an integer takes no float values. */
static mc_status check_value(const mc_node *x, const mc_array *a, const char *what, int which)
{
    bool fits = a->rank == x->type.rank;
    for (int i = 0; fits && i < a->rank; i++) {
        fits = x->type.dims[i] < 0 || x->type.dims[i] == a->dims[i];
    }
    if (fits && (mc_is_float(x->type.dtype) || !mc_is_float(a->dtype))) {
        return MC_OK;
    }
    struct mc_str want = { 0 }, have = { 0 };
    struct mc_type type = mc_type_make(a->dtype, a->rank, a->dims);
    mc_type_text(&want, &x->type);
    mc_type_text(&have, &type);
    mc_status s = mc_fail(fits || a->rank != x->type.rank ? MC_ETYPE : MC_ESHAPE,
                          "verify_grad: %s %d%s%s is %s, and its array %s", what, which + 1,
                          x->name ? ", " : "", x->name ? x->name : "", want.s ? want.s : "",
                          have.s ? have.s : "");
    mc_str_free(&want);
    mc_str_free(&have);
    return s;
}

static mc_status check_nodes(const mc_node *f, int n, mc_node *const *node, mc_array *const *value,
                             const char *what)
{
    for (int i = 0; i < n; i++) {
        if (!node[i] || mc_is_error(node[i]) || !value[i] || node[i]->graph != f->graph) {
            return mc_fail(MC_EARG, "verify_grad: %s %d or its array is missing or of another graph", what,
                           i + 1);
        }
        TRY(check_value(node[i], value[i], what, i));
    }
    return MC_OK;
}

static mc_status check_function(const mc_node *f)
{
    if (!f || mc_is_error(f)) {
        return mc_fail(MC_EARG, "verify_grad: %s", f ? mc_error(f->graph) : "an argument is missing");
    }
    return f->nout == 1 && mc_is_float(f->type.dtype)
               ? MC_OK
               : mc_fail(MC_EGRAD, "verify_grad: f must be one float tensor");
}

static void point_free(struct point *p)
{
    for (int i = 0; p->value && i < p->n; i++) {
        mc_array_unref(&p->value[i]);
    }
    mc_free(p->value);
    mc_free(p->node);
}

static mc_status point_new(struct point *p, int nwrt, int n)
{
    *p = (struct point){ n, nwrt, mc_calloc((size_t)n, sizeof *p->node, "verify"),
                         mc_calloc((size_t)n, sizeof *p->value, "verify") };
    return p->node && p->value ? MC_OK : MC_EMEMORY;
}

/* The point for the user's graph, and in float64 for the twin. */
static mc_status read_point(const struct point *from, struct point *own, struct point *wide)
{
    TRY(point_new(own, from->nwrt, from->n));
    TRY(point_new(wide, from->nwrt, from->n));
    for (int i = 0; i < from->n; i++) {
        const mc_dtype d = from->node[i]->type.dtype;
        own->node[i] = from->node[i];
        own->value[i] = mc_array_cast(from->value[i], d);
        mc_array *cast = own->value[i] ? mc_array_cast(own->value[i], widened(d)) : NULL;
        wide->value[i] = cast ? mc_array_copy(cast) : NULL;
        mc_array_unref(&cast);
        if (!wide->value[i]) {
            return mc_last_status();
        }
    }
    return MC_OK;
}

static mc_status verify(mc_node *f, const struct point *from, double *worst)
{
    struct twin t = { .graph = NULL };
    struct point own = { .n = 0 };
    mc_array *y = NULL, **grad = mc_calloc((size_t)from->nwrt, sizeof *grad, "verify");
    double tol = tolerance(f->type.dtype);
    mc_status s = grad ? read_point(from, &own, &t.at) : MC_EMEMORY;
    s = s < 0 ? s : twin_make(&t, f, &own);
    s = s < 0 ? s : mc_eval(t.at.n, t.at.node, t.at.value, 1, &t.f, &y);
    if (s == MC_OK) {
        t.weight = weights(y->rank, y->dims);
        s = t.weight ? own_gradients(f, &own, t.weight, grad) : mc_last_status();
    }
    for (int i = 0; i < from->nwrt; i++) {
        tol = MC_MAX(tol, tolerance(from->node[i]->type.dtype));
    }
    for (int i = 0; i < from->nwrt && s == MC_OK; i++) {
        s = compare(&t, i, from->node[i], grad[i], tol, worst);
    }
    for (int i = 0; grad && i < from->nwrt; i++) {
        mc_array_unref(&grad[i]);
    }
    mc_array_unref(&y);
    mc_free(grad);
    mc_array_unref(&t.weight);
    point_free(&own);
    point_free(&t.at);
    mc_graph_free(t.graph);
    return s;
}

mc_status mc_verify_grad_given(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, int ngiven,
                               mc_node *const *given, mc_array *const *value, double *worst)
{
    struct point p = { .n = 0 };
    double most = 0;
    if (n < 1 || !wrt || !at || ngiven < 0 || (ngiven && (!given || !value))) {
        return mc_fail(MC_EARG, "verify_grad: an argument is missing");
    }
    TRY(check_function(f));
    TRY(check_nodes(f, n, wrt, at, "wrt"));
    TRY(check_nodes(f, ngiven, given, value, "given"));
    mc_status s = point_new(&p, n, n + ngiven);
    for (int i = 0; i < n + ngiven && s == MC_OK; i++) {
        p.node[i] = i < n ? wrt[i] : given[i - n];
        p.value[i] = mc_array_ref(i < n ? at[i] : value[i - n]);
        s = i >= n || mc_is_float(p.node[i]->type.dtype)
                ? s
                : mc_fail(MC_ETYPE, "verify_grad: wrt %d is %s, and must be a float", i + 1,
                          mc_dtype_name(p.node[i]->type.dtype));
        for (int k = 0; k < i && s == MC_OK; k++) {
            s = i < n || p.node[k] != p.node[i]
                    ? s
                    : mc_fail(MC_EARG, "verify_grad: given %d has a value already", i - n + 1);
        }
    }
    s = s < 0 ? s : verify(f, &p, &most);
    if (worst) {
        *worst = most;
    }
    point_free(&p);
    return s;
}

mc_status mc_verify_grad(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, double *worst)
{
    return mc_verify_grad_given(f, n, wrt, at, 0, NULL, NULL, worst);
}
