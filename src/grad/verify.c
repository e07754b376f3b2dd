/* verify.c: gradients compared with central differences, by the reference, in float64.
 *
 * The graph is rebuilt with every float as float64 (its twin), so that differences are exact enough
 * whatever the dtype; the gradient itself is computed as the user's graph says.  f is projected on
 * weights in [0.5, 1.5], so that the parts of a tensor cannot cancel. */
#include "grad/grad.h"
#include <math.h>

enum { MOST = 400 }; /* elements perturbed of one array; of larger ones every k-th */

struct twin {
    mc_graph *graph;
    mc_node *f;
    mc_node **wrt;
    mc_array **at;     /* float64; the differences move one element at a time */
    mc_array *weight;  /* of f's shape */
    int n;
};

/* Errors below this pass: an error counts only if it is large both absolutely and relatively. */
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

static mc_status twin_make(struct twin *t, mc_node *f, mc_node *const *wrt)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(1, &f, &count), **map = mc_calloc((size_t)f->id + 1, sizeof *map, "verify");
    mc_status s = list && map && (t->graph = mc_graph_new()) ? MC_OK : MC_EMEMORY;

    for (int i = 0; s == MC_OK && i < t->n; i++) {
        struct mc_type type = wrt[i]->type;
        type.dtype = MC_FLOAT64;
        t->wrt[i] = mc_node_blank(t->graph, &type);
        s = mc_is_error(t->wrt[i]) ? MC_EMEMORY : MC_OK;
        if (s == MC_OK && wrt[i]->id <= f->id) {
            map[wrt[i]->id] = t->wrt[i];
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
            s = !in ? MC_EMEMORY : mc_is_error(map[x->id]) ? mc_fail(t->graph->status < 0 ? t->graph->status : MC_EMEMORY,
                                                                     "verify_grad: %s", mc_error(t->graph)) : MC_OK;
        }
        mc_free(in);
    }
    t->f = s == MC_OK ? map[f->id] : NULL;
    mc_free(list);
    mc_free(map);
    return s;
}

static void twin_free(struct twin *t)
{
    for (int i = 0; t->at && i < t->n; i++) {
        mc_array_unref(&t->at[i]);
    }
    mc_array_unref(&t->weight);
    mc_free(t->at);
    mc_free(t->wrt);
    mc_graph_free(t->graph);
}

/* sum(weight * f) at t->at */
static mc_status project(const struct twin *t, double *out)
{
    mc_array *y = NULL;
    TRY(mc_eval(t->n, t->wrt, t->at, 1, &t->f, &y));
    const double *v = (const double *)(const void *)y->data, *w = (const double *)(const void *)t->weight->data;
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

static mc_status too_far(const mc_node *wrt, int which, const mc_array *a, int64_t flat, double have, double want)
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
    mc_status s = mc_fail(MC_ECHECK, "verify_grad: by %s%s (wrt %d) the gradient is %.9g, differences say %.9g",
                          text.s ? text.s : "", a->rank ? "]" : "", which + 1, have, want);
    mc_str_free(&text);
    return s;
}

/* Each element of wrt number k against (f(x + h) - f(x - h)) / 2h. */
static mc_status compare(const struct twin *t, int k, const mc_node *wrt, const mc_array *grad, double tol, double *worst)
{
    double *x = (double *)(void *)t->at[k]->data;
    const double *g = (const double *)(const void *)grad->data;
    int64_t n = mc_array_size(t->at[k]), step = (n + MOST - 1) / MOST;
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
    return found > tol ? too_far(wrt, k, t->at[k], where, g[where], should) : MC_OK;
}

/* The gradients of the user's own graph at the point, as float64. */
static mc_status own_gradients(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, const mc_array *weight,
                               mc_array **out)
{
    mc_node **grad = mc_alloc((size_t)n * sizeof *grad, "verify"), *r;
    mc_array *w = grad ? mc_array_cast(weight, f->type.dtype) : NULL, **value = mc_calloc((size_t)n, sizeof *value, "verify");
    mc_status s = w && value ? MC_OK : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < n; i++) {
        s = (value[i] = mc_array_cast(at[i], wrt[i]->type.dtype)) ? MC_OK : mc_last_status();
    }
    if (s == MC_OK) {
        r = mc_node_const(f->graph, w, false);
        w = NULL;
        s = mc_grads(NULL, n, wrt, grad, &(mc_grad_spec){ .known = &f, .known_grad = &r, .nknown = 1 });
    }
    s = s < 0 ? s : mc_eval(n, wrt, value, n, grad, out);
    for (int i = 0; i < n; i++) {
        mc_array *wide = s == MC_OK ? mc_array_cast(out[i], MC_FLOAT64) : NULL;
        s = s == MC_OK && !wide ? mc_last_status() : s;
        mc_array_unref(&out[i]);
        out[i] = wide;
        if (s == MC_OK && !mc_dims_equal(wide->rank, wide->dims, at[i]->rank, at[i]->dims)) {
            s = mc_fail(MC_ECHECK, "verify_grad: the gradient by wrt %d has not the shape of its wrt", i + 1);
        }
        if (value) {
            mc_array_unref(&value[i]);
        }
    }
    mc_array_unref(&w);
    mc_free(value);
    mc_free(grad);
    return s;
}

static mc_status check_point(const mc_node *f, int n, mc_node *const *wrt, mc_array *const *at)
{
    if (!f || n < 1 || !wrt || !at) {
        return mc_fail(MC_EARG, "verify_grad: an argument is missing");
    }
    if (mc_is_error(f)) {
        return mc_fail(MC_EARG, "verify_grad: %s", mc_error(f->graph));
    }
    if (f->nout != 1 || !mc_is_float(f->type.dtype)) {
        return mc_fail(MC_EGRAD, "verify_grad: f must be one float tensor");
    }
    for (int i = 0; i < n; i++) {
        if (mc_is_error(wrt[i]) || !at[i] || wrt[i]->graph != f->graph) {
            return mc_fail(MC_EARG, "verify_grad: wrt %d or its array is missing or of another graph", i + 1);
        }
        if (!mc_is_float(wrt[i]->type.dtype) || at[i]->rank != wrt[i]->type.rank) {
            return mc_fail(MC_ETYPE, "verify_grad: wrt %d must be a float and its array have rank %d", i + 1, wrt[i]->type.rank);
        }
    }
    return MC_OK;
}

mc_status mc_verify_grad(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, double *worst)
{
    struct twin t = { .n = n };
    mc_array *y = NULL, **grad = NULL;
    double most = 0, tol = 0;
    mc_status s = check_point(f, n, wrt, at);
    if (s < 0) {
        return s;
    }
    t.wrt = mc_calloc((size_t)n, sizeof *t.wrt, "verify");
    t.at = mc_calloc((size_t)n, sizeof *t.at, "verify");
    grad = mc_calloc((size_t)n, sizeof *grad, "verify");
    s = t.wrt && t.at && grad ? twin_make(&t, f, wrt) : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < n; i++) {
        mc_array *own = mc_array_cast(at[i], wrt[i]->type.dtype); /* the point as the user's graph sees it */
        t.at[i] = own ? mc_array_cast(own, MC_FLOAT64) : NULL;
        mc_array *mine = t.at[i] ? mc_array_copy(t.at[i]) : NULL;
        mc_array_unref(&own);
        mc_array_unref(&t.at[i]);
        t.at[i] = mine;
        s = mine ? MC_OK : mc_last_status();
        tol = MC_MAX(tol, tolerance(wrt[i]->type.dtype));
    }
    tol = MC_MAX(tol, tolerance(f->type.dtype));
    s = s < 0 ? s : mc_eval(n, t.wrt, t.at, 1, &t.f, &y);
    if (s == MC_OK) {
        t.weight = weights(y->rank, y->dims);
        s = t.weight ? own_gradients(f, n, wrt, t.at, t.weight, grad) : mc_last_status();
    }
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = compare(&t, i, wrt[i], grad[i], tol, &most);
    }
    if (worst) {
        *worst = most;
    }
    for (int i = 0; grad && i < n; i++) {
        mc_array_unref(&grad[i]);
    }
    mc_array_unref(&y);
    mc_free(grad);
    twin_free(&t);
    return s;
}
