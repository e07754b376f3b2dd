/* rules_recognise.c: finds softmax, its logarithm and cross-entropy in formulas that spell them out. These
 * rules run before those of rules_stable.c, which would make the parts stable one by one and hide the
 * whole.
 *
 * Gradients arrive unrewritten: the gradient of -log(softmax(x))[i, t] is (s/y - sum(s/y * y)) * y, where
 * y is the softmax and s is zero except at the targets. The division by y must go, since y may have
 * underflowed:
 *
 *     (s/y - z) * y  ==>  s - z*y        s - y*sum(s)  ==>  v * (onehot(t) - y),  v: s at the targets */
#include "rewrite/rewrite.h"

static bool is_zero(const mc_node *n)
{
    double v;
    return mc_const_number(n->op->form == FORM_ALLOC ? n->in[0] : n, &v) && v >= 0 && v <= 0;
}

/* The axis that letter a is bound to; -1 if it is not exactly one axis. */
static int axis_a(const struct mc_match *m)
{
    const struct mc_attr *a = m->attr[0];
    int rank = m->rank[0];
    return a->none     ? (rank == 1 ? 0 : -1)
           : a->n != 1 ? -1
                       : (int)(a->ints[0] < 0 ? a->ints[0] + rank : a->ints[0]);
}

static bool x_is_real(const struct mc_match *m)
{
    return mc_is_float(mc_letter(m, 'x')->type.dtype); /* small integers wrap in x - y */
}

/* Is y constant along the axis of a? */
static bool y_is_flat(const struct mc_match *m)
{
    const struct mc_type *y = &mc_letter(m, 'y')->type;
    int axis = axis_a(m);
    return x_is_real(m) && axis >= 0 && (y->rank == 0 || (y->rank == m->rank[0] && y->dims[axis] == 1));
}

static bool y_is_distribution(const struct mc_match *m)
{
    return mc_letter(m, 'y')->op->flags & OP_DISTRIBUTION;
}

/* Is i the vector 0, 1, 2, ... with one entry for each row of x? */
static bool counts_rows(const mc_node *i, mc_node *x)
{
    double start, step;
    if (i->op->form != FORM_ARANGE || !mc_const_number(i->in[0], &start) ||
        !mc_const_number(i->in[2], &step) || start < 0 || start > 0 || step < 1 || step > 1) {
        return false;
    }
    return i->type.dims[0] >= 0 ? i->type.dims[0] == x->type.dims[0] : mc_size_is(i->in[1], x, 0);
}

/* Do the indices select one element per row of the matrix x, as in x[arange(n), t]? */
static bool picks_targets(mc_node *x, const struct mc_attr *axes, mc_node *const *index, int n)
{
    return n == 2 && x->type.rank == 2 && axes->ints[0] == 0 && axes->ints[1] == 1 &&
           index[1]->type.rank == 1 && (index[1]->type.dims[0] != 1 || x->type.dims[0] == 1) &&
           counts_rows(index[0], x);
}

/* The targets t with n added to those that are negative. */
static mc_node *from_front(mc_node *t, mc_node *n)
{
    struct mc_bind b[] = { { "t", t, NULL }, { "n", n, NULL } };
    return mc_dtypes[t->type.dtype].kind == KIND_UINT ? t : mc_expr(t->graph, "where(t < 0, t + n, t)", b, 2);
}

/* log(softmax(x)[i, t]) or logsoftmax(x)[i, t] ==> -crossentropy_softmax_1hot(x, t), for a matrix x and
 * i = arange(number of rows) */
static mc_node *crossentropy(const struct mc_match *m)
{
    mc_node *x = mc_letter(m, 'x'), *index[2] = { mc_letter(m, 'i'), mc_letter(m, 't') };
    if (axis_a(m) != x->type.rank - 1 || !picks_targets(x, m->attr['b' - 'a'], index, 2)) {
        return NULL;
    }
    mc_node *t = from_front(index[1], mc_size_of(x, 1));
    return mc_is_error(t) ? t : mc_op1("neg", mc_op2("crossentropy_softmax_1hot", x, t));
}

/* Zero but for v at [arange(n), t]; the gradient of having picked targets. */
static bool is_scatter(const mc_node *s)
{
    return s->op->form == FORM_GATHER_UPDATE && is_zero(s->in[0]) &&
           picks_targets((mc_node *)(uintptr_t)s, &s->attr[0], s->in + 2, s->nin - 2);
}

static bool x_is_scatter(const struct mc_match *m)
{
    return is_scatter(mc_letter(m, 'x')) && y_is_distribution(m);
}

/* s * y, with s a scatter of v ==> a scatter of v * y[arange(n), t] */
static mc_node *scatter_times(const struct mc_match *m)
{
    for (int i = 0; i < 2; i++) {
        mc_node *s = m->root->in[i], *y = m->root->in[1 - i];
        if (is_scatter(s) && y->type.rank == 2 && y->type.dims[0] != 1 && y->type.dims[1] != 1) {
            mc_node *pick[3] = { y, s->in[2], s->in[3] };
            mc_node *at = mc_apply(m->g, mc_op_find("gather"), 3, pick, &s->attr[0]);
            mc_node *in[4] = { s->in[0], mc_op2("mul", s->in[1], at), s->in[2], s->in[3] };
            return mc_apply(m->g, s->op, 4, in, s->attr);
        }
    }
    return NULL;
}

enum { SOFTMAX };
static struct mc_probe looks[] = { [SOFTMAX] = { "softmax(x, axis=a)" } };

/* s - y * sum(s, axis=1, keepdims=True), y a softmax along that axis ==> v * (onehot(t) - y). A target out of
 * range stays an error. */
static mc_node *softmax_gradient(const struct mc_match *m)
{
    struct mc_match of;
    mc_node *s = mc_letter(m, 'x'), *y = mc_letter(m, 'y');
    if (!is_scatter(s) || !mc_matches(&looks[SOFTMAX], y, &of) || axis_a(&of) != y->type.rank - 1 ||
        axis_a(m) != 1) {
        return NULL;
    }
    struct mc_bind b[] = {
        { "v", s->in[1], NULL }, { "t", NULL, NULL }, { "y", y, NULL }, { "n", mc_size_of(y, 1), NULL }
    };
    b[1].node = from_front(s->in[3], b[3].node);
    return mc_is_error(b[1].node)
               ? b[1].node
               : mc_expr(m->g, "expand_dims(v, 1) * (eq(arange(n), check_index(expand_dims(t, 1), n)) - y)",
                         b, 4);
}

/* sum(s, axis=1) is v. In the last pass, since softmax_gradient needs the sum. */
static mc_node *sum_of_scatter(const struct mc_match *m)
{
    int axis[MC_MAX_RANK];
    mc_node *s = m->root->in[0];
    if (!is_scatter(s) || mc_axes_of(m->root, 0, 2, axis) != 1 || axis[0] != 1) {
        return NULL;
    }
    return mc_attr_int(&m->root->attr[1]) ? mc_call_op(m->g, "expand_dims", 1, &s->in[1], "axis=1")
                                          : s->in[1];
}

/* exp(x) / sum(exp(x), axis=1)[:, None] ==> softmax(x, axis=1), for any axis that was dropped by the sum and
 * restored by a dimshuffle. */
static mc_node *softmax_with_axis_restored(const struct mc_match *m)
{
    mc_node *x = mc_letter(m, 'x');
    const struct mc_attr *order = m->attr['b' - 'a'];
    const int axis = axis_a(m), rank = x->type.rank;
    if (axis < 0 || order->n != rank) {
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        if (order->ints[i] != (i == axis ? -1 : i - (i > axis))) {
            return NULL;
        }
    }
    return mc_call_op(m->g, "softmax", 1, &x, "axis=%d", axis);
}

#define E "sum(exp(x), axis=a, keepdims=True)"
static const struct mc_rule rows[] = {
    { "exp(x) / " E,                           "softmax(x, axis=a)",         ROUND  },
    { "exp(x) / dimshuffle(sum(exp(x), axis=a, dtype=d), order=b)", NULL, ROUND, .make = softmax_with_axis_restored,
      .name = "softmax with its axis restored",
      .sample = "exp(x) / sum(exp(x), axis=1)[:, None]; exp(x) / sum(exp(x), axis=0)" },
    { "(exp(x) * y) / " E,                     "softmax(x, axis=a) * y",     ROUND  },
    { "exp(x) * (y / " E ")",                  "softmax(x, axis=a) * y",     ROUND  },
    { "x - log(" E ")",                        "logsoftmax(x, axis=a)",      ROUND  },
    { "softmax(x - y, axis=a)",                "softmax(x, axis=a)",         FINITE, .when = y_is_flat },
    { "softmax(x + y, axis=a)",                "softmax(x, axis=a)",         FINITE, .when = y_is_flat },
    { "logsoftmax(x - y, axis=a)",             "logsoftmax(x, axis=a)",      FINITE, .when = y_is_flat },
    { "logsoftmax(x + y, axis=a)",             "logsoftmax(x, axis=a)",      FINITE, .when = y_is_flat },
    { "log(softmax(x, axis=a))",               "logsoftmax(x, axis=a)",      ROUND  },
    { "exp(logsoftmax(x, axis=a))",            "softmax(x, axis=a)",         ROUND,  .when = x_is_real },

    /* gradients */
    { "(x / y - z) * y",                       "x - z * y",                  FINITE, .when = y_is_distribution },
    { "(x / y + z) * y",                       "x + z * y",                  FINITE, .when = y_is_distribution },
    { "(z - x / y) * y",                       "z * y - x",                  FINITE, .when = y_is_distribution },
    { "(z + (w / y) * v) * y",                 "z * y + w * v",              FINITE, .when = y_is_distribution },
    { "(z - (w / y) * v) * y",                 "z * y - w * v",              FINITE, .when = y_is_distribution },
    { "((w / y) * v - z) * y",                 "w * v - z * y",              FINITE, .when = y_is_distribution },
    { "(x - z) * y",                           "x * y - z * y",              ROUND,  .when = x_is_scatter },
    { .op = "mul", .make = scatter_times, .promise = FINITE, .name = "scatter times",
      .sample = "inc_subtensor(zeros_like(x)[arange(x.shape[0]), [0, 1, 2, 0]], y[:, 0]) * y" },
    { "x - y * sum(x, axis=a, keepdims=True)", NULL, FINITE, .make = softmax_gradient, .name = "softmax gradient",
      .sample = "inc_subtensor(zeros_like(x)[arange(x.shape[0]), [0, 1, 2, 0]], y[:, 0]) - softmax(x) * "
                "sum(inc_subtensor(zeros_like(x)[arange(x.shape[0]), [0, 1, 2, 0]], y[:, 0]), axis=1, keepdims=True)" },
    { "gather(logsoftmax(x, axis=a), i, t, axes=b)", NULL, ROUND, .make = crossentropy, .name = "cross-entropy",
      .sample = "logsoftmax(x)[arange(x.shape[0]), [0, 1, 2, 0]]" },
    { "log(gather(softmax(x, axis=a), i, t, axes=b))", NULL, ROUND, .make = crossentropy, .name = "log of a target",
      .sample = "log(softmax(x)[arange(x.shape[0]), [0, 1, 2, 0]])" },
};
const struct mc_rule_table mc_rules_recognise = { rows, (int)NELEM(rows), .mends = true, .probe = looks, .nprobe = (int)NELEM(looks) };

static const struct mc_rule late[] = {
    { .op = "sum", .make = sum_of_scatter, .promise = ROUND, .name = "sum of a scatter",
      .sample = "sum(inc_subtensor(zeros_like(x)[arange(x.shape[0]), [0, 1, 2, 0]], y[:, 0]), axis=1)" },
};
const struct mc_rule_table mc_rules_late = { late, (int)NELEM(late) };
