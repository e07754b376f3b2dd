/* norm.c: normalisation across channels (norm.h has the formulas).
 *
 * Invariant: the nodes have float operands and a non-negative axis. */
#include "op/norm.h"
#include "op/op.h"
#include <math.h>

enum { NORM_N, NORM_ALPHA, NORM_BETA, NORM_K, NORM_AXIS, NORM_BLOCKED, NORM_STRICT, NORM_NATTR };
#define NORM_ATTRS                                                                                 \
    "n=5:int, alpha=0.0001:real, beta=0.75:real, k=2:real, axis=1:int, blocked=False:bool, strict=False:bool"

/* ---- across channels: types ---- */

static void read_attrs(const struct mc_attr *attr, const struct mc_type *x, struct mc_norm_shape *s)
{
    *s = (struct mc_norm_shape){ .rank = x->rank,
                                 .axis = (int)mc_attr_int(&attr[NORM_AXIS]),
                                 .n = mc_attr_int(&attr[NORM_N]),
                                 .alpha = attr[NORM_ALPHA].real,
                                 .beta = attr[NORM_BETA].real,
                                 .k = attr[NORM_K].real,
                                 .blocked = mc_attr_int(&attr[NORM_BLOCKED]) != 0 };
    memcpy(s->dims, x->dims, sizeof s->dims);
}

bool mc_norm_shape_of(const mc_node *n, const struct mc_type *x, struct mc_norm_shape *s)
{
    bool backward = mc_is_op(n, "map_norm_grad");
    if (!backward && !mc_is_op(n, "map_norm")) {
        return false;
    }
    read_attrs(n->attr, x, s);
    s->backward = backward;
    return true;
}

static mc_status check_channels(const struct mc_infer *q, int64_t n, int64_t axis)
{
    int at;
    TRY(mc_axis_check(q->op->name, axis, q->in[0].rank, &at));
    if (n < 1 || n > INT32_MAX) {
        return mc_fail(MC_EARG, "%s: a window of %lld channels is out of range", q->op->name, (long long)n);
    }
    return mc_is_float(q->in[0].dtype) ? MC_OK
                                       : mc_fail(MC_ETYPE, "%s: x must be floats, not %s", q->op->name,
                                                 mc_dtype_name(q->in[0].dtype));
}

/* The limits of cuda-convnet's kernels, for strict=True: images are c01b. */
static mc_status strict(const struct mc_infer *q, int64_t n)
{
    const struct mc_type *x = &q->in[0];
    const int64_t *d = x->dims;
    bool known = x->rank == 4 && d[0] >= 0 && d[1] >= 0 && d[2] >= 0;
    if (x->rank != 4 || (known && (d[0] % 16 != 0 || d[1] != d[2] || n > d[0]))) {
        return mc_fail(
            MC_ESHAPE,
            "%s: strict: images are (channels, size, size, batch), channels a multiple of 16 and at "
            "least the window",
            q->op->name);
    }
    return MC_OK;
}

static mc_status norm_infer(struct mc_infer *q)
{
    struct mc_norm_shape s;
    read_attrs(q->attr, &q->in[0], &s);
    TRY(check_channels(q, s.n, s.axis));
    TRY(mc_attr_int(&q->attr[NORM_STRICT]) ? strict(q, s.n) : MC_OK);
    q->out[0] = q->in[0];
    for (int i = 0; i < q->in[0].rank && q->nin > 1; i++) {
        int64_t a = q->in[0].dims[i], b = q->in[1].rank == q->in[0].rank ? q->in[1].dims[i] : -2;
        if (b == -2 || (a >= 0 && b >= 0 && a != b) || q->in[1].dtype != q->in[0].dtype) {
            return mc_fail(MC_ESHAPE, "%s: the gradient must have the shape and dtype of x", q->op->name);
        }
        q->out[0].dims[i] = MC_MAX(a, b);
    }
    return MC_OK;
}

static mc_status sum_infer(struct mc_infer *q)
{
    TRY(check_channels(q, mc_attr_int(&q->attr[0]), mc_attr_int(&q->attr[1])));
    q->out[0] = q->in[0];
    return MC_OK;
}

static mc_node *same_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[0], axis);
}

/* ---- across channels: the reference ---- */

/* One line of channels: x, g and y are c numbers each; d and t are scratch of the same size. */
static void norm_line(const struct mc_norm_shape *s, int64_t c, const double *x, const double *g, double *y,
                      double *d, double *t)
{
    int64_t from, to;
    for (int64_t i = 0; i < c; i++) {
        double sum = 0;
        mc_norm_window(s, false, c, i, &from, &to);
        for (int64_t e = from; e < to; e++) {
            sum += x[e] * x[e];
        }
        d[i] = s->k + s->alpha * sum;
        y[i] = (g ? g[i] : x[i]) * pow(d[i], -s->beta);
        t[i] = g ? g[i] * x[i] * pow(d[i], -s->beta - 1) : 0;
    }
    for (int64_t i = 0; i < c && g; i++) {
        double sum = 0;
        mc_norm_window(s, true, c, i, &from, &to);
        for (int64_t e = from; e < to; e++) {
            sum += t[e];
        }
        y[i] -= 2 * s->alpha * s->beta * x[i] * sum;
    }
}

static void sum_line(const struct mc_norm_shape *s, int64_t c, const double *x, double *y)
{
    int64_t from, to;
    for (int64_t i = 0; i < c; i++) {
        mc_norm_window(s, s->backward, c, i, &from, &to);
        y[i] = 0;
        for (int64_t e = from; e < to; e++) {
            y[i] += x[e];
        }
    }
}

/* Computes each line of channels in float64; sums: only the sums over windows. */
static mc_status each_line(const struct mc_norm_shape *s, const struct mc_norm_arrays *a, bool sums)
{
    const int64_t c = s->dims[s->axis];
    int64_t dims[MC_MAX_RANK], strides[3][MC_MAX_RANK];
    const int64_t *from[3] = { a->xs, a->gs ? a->gs : a->xs, a->ys };
    double *scratch = mc_alloc((size_t)c * 5 * sizeof *scratch + 1, "norm");
    double *x = scratch, *g = a->g ? scratch + c : NULL, *y = scratch + 2 * c;
    struct mc_walk w;
    int rank = 0;
    if (!scratch) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < s->rank; i++) {
        for (int r = 0; r < 3; r++) {
            strides[r][rank] = from[r][i];
        }
        dims[rank] = s->dims[i];
        rank += i != s->axis;
    }
    bool any = mc_walk_begin(&w, rank, dims, 0, 3, (char *[]){ a->x, a->g ? a->g : a->x, a->y },
                             (const int64_t *[]){ strides[0], strides[1], strides[2] });
    for (bool more = any; more; more = mc_walk_next(&w)) {
        mc_convert(MC_FLOAT64, x, sizeof *x, a->dtype, w.p[0], from[0][s->axis], c);
        if (g) {
            mc_convert(MC_FLOAT64, g, sizeof *g, a->dtype, w.p[1], from[1][s->axis], c);
        }
        if (sums) {
            sum_line(s, c, x, y);
        } else {
            norm_line(s, c, x, g, y, scratch + 3 * c, scratch + 4 * c);
        }
        mc_convert(a->dtype, w.p[2], from[2][s->axis], MC_FLOAT64, y, sizeof *y, c);
    }
    mc_free(scratch);
    return MC_OK;
}

mc_status mc_norm_loops(const struct mc_norm_shape *s, const struct mc_norm_arrays *a)
{
    return each_line(s, a, false);
}

static mc_status norm_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_norm_shape s;
    struct mc_type x = mc_type_make(in[0]->dtype, in[0]->rank, in[0]->dims);
    struct mc_norm_arrays a = {
        .dtype = x.dtype, .x = in[0]->data, .xs = in[0]->strides, .y = out[0]->data, .ys = out[0]->strides
    };
    mc_norm_shape_of(n, &x, &s);
    if (s.backward) {
        a.g = in[1]->data;
        a.gs = in[1]->strides;
    }
    return mc_norm_loops(&s, &a);
}

static mc_status sum_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_norm_shape s = { .rank = in[0]->rank, .n = mc_attr_int(&n->attr[0]), .axis = (int)mc_attr_int(&n->attr[1]),
                               .blocked = mc_attr_int(&n->attr[2]) != 0, .backward = mc_attr_int(&n->attr[3]) != 0 };
    memcpy(s.dims, in[0]->dims, sizeof s.dims);
    return each_line(&s,
                     &(struct mc_norm_arrays){ .dtype = in[0]->dtype,
                                               .x = in[0]->data,
                                               .xs = in[0]->strides,
                                               .y = out[0]->data,
                                               .ys = out[0]->strides },
                     true);
}

/* ---- across channels: gradients ---- */

static mc_node *with_attrs(mc_node *n, const char *formula, mc_node *g)
{
    static const char *const names[] = { "n", "alpha", "beta", "k", "axis", "blocked" };
    struct mc_bind b[3 + NELEM(names)] = { { "x", n->in[0], NULL },
                                           { "g", n->nin > 1 ? n->in[1] : g, NULL },
                                           { "h", g, NULL } };
    for (size_t i = 0; i < NELEM(names); i++) {
        b[3 + i] = (struct mc_bind){ names[i], NULL, &n->attr[i] };
    }
    return mc_expr(n->graph, formula, b, (int)NELEM(b));
}

static mc_node *norm_grad(mc_node *n, int wrt, mc_node *const *g)
{
    mc_node *in[2] = { n->in[0], g[0] };
    (void)wrt;
    return mc_node_make(n->graph, mc_op_named(n->graph, "map_norm_grad"), 2, in, n->attr);
}

/* With S and T the sums over W and T, and p = S(x h), the directional derivative along h of x ->
 * norm_grad(x, g) is the gradient of
 *     L = sum(h g d^-beta) - 2 alpha beta sum(p g x d^(-beta-1))
 * x occurs in L directly, in p, and in d. */
static mc_node *grad_grad(mc_node *n, int wrt, mc_node *const *g)
{
    static const char *const by_g = "d = k + alpha * channel_sum(x * x, n, axis=axis, blocked=blocked); "
                                    "h * d ** (-beta) - 2 * alpha * beta * channel_sum(x * h, n, axis=axis, "
                                    "blocked=blocked) * x * d ** (-beta - 1)";
    static const char *const by_x =
        "d = k + alpha * channel_sum(x * x, n, axis=axis, blocked=blocked); p = channel_sum(x * h, n, "
        "axis=axis, blocked=blocked); "
        "e = g * d ** (-beta - 1); r = 2 * alpha * beta * (beta + 1) * p * x * e / d - beta * h * e; "
        "2 * alpha * x * channel_sum(r, n, axis=axis, blocked=blocked, back=True) - 2 * alpha * beta * p * e"
        " - 2 * alpha * beta * h * channel_sum(x * e, n, axis=axis, blocked=blocked, back=True)";
    return with_attrs(n, wrt ? by_g : by_x, g[0]);
}

static mc_node *sum_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_attr attr[4];
    int64_t back = !mc_attr_int(&n->attr[3]);
    mc_node *x = g[0];
    (void)wrt;
    memcpy(attr, n->attr, sizeof attr);
    attr[3].ints = &back;
    return mc_node_make(n->graph, n->op, 1, &x, attr);
}

/* ---- across channels: what users write ---- */

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

/* Makes the axis non-negative and casts integers to floats. */
static mc_node *make_norm(mc_graph *g, const char *op, int nin, mc_node *const *in,
                          const struct mc_attr *attr)
{
    struct mc_attr own[NORM_NATTR];
    mc_node *x[2] = { mc_cast_to(in[0], mc_dtype_to_float(in[0]->type.dtype)), NULL };
    int at;
    if (mc_is_error(x[0]) || mc_axis_check(op, mc_attr_int(&attr[NORM_AXIS]), x[0]->type.rank, &at) < 0) {
        return mc_is_error(x[0]) ? x[0] : failed(g);
    }
    int64_t axis = at;
    memcpy(own, attr, sizeof own);
    own[NORM_AXIS].ints = &axis;
    x[1] = nin > 1 ? mc_cast_to(in[1], x[0]->type.dtype) : NULL;
    return mc_node_make(g, mc_op_named(g, op), nin, x, own);
}

static mc_node *build_lrn(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t n = mc_attr_int(&attr[NORM_N]);
    if (n < 1 || n % 2 == 0) {
        return mc_node_fail(g, MC_EARG, "lrn: n must be odd, not %lld; cross_map_norm accepts even windows",
                            (long long)n);
    }
    return make_norm(g, nin > 1 ? "map_norm_grad" : "map_norm", nin, in, attr);
}

/* Translates size_f, add_scale, pow_scale, blocked, strict and axis to the attributes of map_norm. */
static void as_norm(const struct mc_attr *attr, struct mc_attr own[NORM_NATTR])
{
    own[NORM_N] = attr[0];
    own[NORM_ALPHA] = attr[1];
    own[NORM_BETA] = attr[2];
    own[NORM_K] = (struct mc_attr){ .kind = ATTR_REAL, .real = 1 };
    own[NORM_AXIS] = attr[5];
    own[NORM_BLOCKED] = attr[3];
    own[NORM_STRICT] = attr[4];
}

static mc_node *build_cross_map_norm(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_attr own[NORM_NATTR];
    as_norm(attr, own);
    mc_node *y = make_norm(g, "map_norm", nin, in, own);
    if (mc_is_error(y)) {
        return y;
    }
    return mc_expr(g, "[y, 1 + a * channel_sum(x * x, n, axis=axis, blocked=blocked)]",
                   (struct mc_bind[]){ { "x", y->in[0], NULL },
                                       { "y", y, NULL },
                                       { "a", NULL, &attr[1] },
                                       { "n", NULL, &attr[0] },
                                       { "axis", NULL, &y->attr[NORM_AXIS] },
                                       { "blocked", NULL, &attr[3] } },
                   6);
}

static mc_node *build_channel_sum(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_attr own[4];
    mc_node *x = mc_cast_to(in[0], mc_dtype_to_float(in[0]->type.dtype));
    int at;
    (void)nin;
    if (mc_is_error(x) || mc_axis_check("channel_sum", mc_attr_int(&attr[1]), x->type.rank, &at) < 0) {
        return mc_is_error(x) ? x : failed(g);
    }
    int64_t axis = at;
    memcpy(own, attr, sizeof own);
    own[1].ints = &axis;
    return mc_node_make(g, mc_op_named(g, "channel_sum"), 1, &x, own);
}

#define CROSS "size_f:int, add_scale:real, pow_scale:real, blocked=False:bool, strict=False:bool, axis=0:int"
const struct mc_op mc_ops_norm[] = {
    BUILT({ .name = "lrn", .params = "x, " NORM_ATTRS, .nout = 1, .build = build_lrn,
      .doc = MANUAL("local response normalisation: x / (k + alpha * s) ** beta, s the sum of squares of the n neighbouring channels; "
             "alpha is not divided by n") })
    BUILT({ .name = "lrn_grad", .params = "x, g, " NORM_ATTRS, .nout = 1, .build = build_lrn,
      .doc = MANUAL("the gradient of lrn(x) with respect to x, from the gradient of its result") })
    BUILT({ .name = "cross_map_norm", .params = "x, " CROSS, .nout = 2, .build = build_cross_map_norm,
      .doc = MANUAL("cuda-convnet's normalisation of c01b images: x / d ** pow_scale and d = 1 + add_scale * s, s "
             "the sum of squares of the size_f neighbouring channels, or with blocked of the aligned block of "
             "size_f; strict: shapes beyond the limits of cuda-convnet's kernels are errors") })
    { .name = "cross_map_norm_undo", .params = "x, y, d, g, " CROSS, .nout = 1, .formula =
          "g * d ** (-pow_scale) - 2 * add_scale * pow_scale * x * "
          "channel_sum(g * y / d, size_f, axis=axis, blocked=blocked, back=True)",
      .infer = mc_formula_infer, .eval = mc_formula_eval,
      .example = MANUAL("x = [1., 2, 3]; y = [0.5, 1, 1]; d = [2., 2, 3]; g = [1., 0, 0]; cross_map_norm_undo(x, y, d, g, size_f=3, add_scale=0.5, pow_scale=0.75)"),
      .doc = MANUAL("the gradient of cross_map_norm with respect to its images x, from its results y and d and the gradient g of y") },
    { .name = "channel_sum", .params = "x, n:int, axis=1:int, blocked=False:bool, back=False:bool", .nout = 1,
      .build = build_channel_sum, .infer = sum_infer, .size = same_size, .eval = sum_eval, .grad = sum_grad,
      .doc = MANUAL("for each channel c the sum of n channels from c - n // 2 on; blocked: of its aligned block of "
             "n; back: of the channels whose window contains c") },
    { .name = "map_norm", .flags = OP_HIDDEN | OP_HEAVY, .solvers = SOLVERS_NORM, .params = "x, " NORM_ATTRS, .nout = 1, .infer = norm_infer, .size = same_size,
      .eval = norm_eval, .grad = norm_grad, .doc = MANUAL("x / (k + alpha * channel_sum(x * x)) ** beta") },
    { .name = "map_norm_grad", .flags = OP_HIDDEN | OP_HEAVY, .solvers = SOLVERS_NORM, .params = "x, g, " NORM_ATTRS, .nout = 1, .infer = norm_infer, .size = same_size,
      .eval = norm_eval, .grad = grad_grad, .doc = MANUAL("the gradient of map_norm(x) with respect to x, from the gradient of its result") },
};
const int mc_nops_norm = (int)NELEM(mc_ops_norm);
