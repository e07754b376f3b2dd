/* ctc.c: connectionist temporal classification (Graves et al. 2006): minus the logarithm of the probability
 * that the steps of a sequence spell its labels, summed over all alignments.
 *
 * An alignment goes through the states blank, label 1, blank, label 2, ..., blank.  In each step it
 * stays, goes on by one state, or skips the blank between two labels that differ.  With
 * y[t, c] = softmax(x[t])[c]:
 *
 *   a[t, s] = y[t, c_s] * (a[t-1, s] + a[t-1, s-1] + a[t-1, s-2])      the beginnings that end in state s
 *   b[t, s] = sum over the next states r of b[t+1, r] * y[t+1, c_r]     the ends that go on from state s
 *   d cost / d x[t, c] = y[t, c] - sum over s with c_s = c of a[t, s] * b[t, s] / (sum of a * b over all s)
 *
 * The Hessian times a direction v is the change of that gradient along v: each number has the change of
 * its logarithm beside it.
 *
 * Invariant: all of this is computed in double, with exponents beside the numbers so that none is too small,
 * each example by itself (ctc_sums.h). */
#include "op/ctc.h"
#include "op/op.h"
#include <math.h>

/* ---- one example ---- */

#define CTC_READ(e, p)     (e->dtype == MC_FLOAT32 ? *(const float *)(const void *)(p) : mc_load_f64((mc_dtype)e->dtype, p))
#define CTC_WRITE(e, p, v) mc_store_f64((mc_dtype)e->dtype, p, v)
#define CTC_LABEL(e, k)    mc_load_i64((mc_dtype)e->label_dtype, e->label + (k) * e->label_step)
#define CTC_EACH(i, n)     for (int64_t i = 0; i < (n); i++)
#define CTC_ONE            1
#define CTC_SYNC           (void)0
#define TARGET
#include "op/ctc_sums.h"

static const char text[] = {
#include "op/ctc_sums_text.h"
    , 0
};

const char *mc_ctc_text(void)
{
    return strstr(text, "*/\n") + 3; /* behind the comment at its head */
}

/* ---- nodes ---- */

static const struct { const char *op; int kind; } kinds[] = {
    { "ctc_costs", CTC_COST }, { "ctc_costs_grad", CTC_GRADIENT }, { "ctc_costs_hessian", CTC_CHANGE }
};

int mc_ctc_kind(const struct mc_op *op)
{
    int kind = -1;
    for (size_t i = 0; i < NELEM(kinds); i++) {
        kind = strcmp(op->name, kinds[i].op) == 0 ? kinds[i].kind : kind;
    }
    return kind;
}

mc_status mc_ctc_work(int kind, int64_t steps, int64_t labels, size_t *bytes)
{
    const size_t states = 2 * (size_t)labels + 1, moves = kind == CTC_CHANGE;
    size_t each = 0, words = 0;
    const bool fits = mc_mul_size(kind == CTC_COST ? 2 : (size_t)steps + 2, 2 + moves, &each) &&
                      mc_mul_size(each + 3, states, &words) &&
                      mc_mul_size(words + (size_t)steps * (1 + moves), sizeof(double), bytes);
    return fits ? MC_OK : mc_fail(MC_EMEMORY, "ctc_loss: too many steps and labels");
}

mc_status mc_ctc_failed(int64_t wrong, int64_t value, int64_t limit)
{
    if (wrong < 0) {
        return mc_fail(MC_EINDEX, "ctc_loss: the length %lld, but there are %lld steps", (long long)value,
                       (long long)limit);
    }
    return value == 0 ? mc_fail(MC_EINDEX, "ctc_loss: 0 is a label; it is the blank, and labels count from 1")
                      : mc_fail(MC_EINDEX, "ctc_loss: the label %lld, but there are %lld classes",
                                (long long)value, (long long)limit);
}

static bool zero_infinity(const mc_node *n)
{
    return mc_attr_int(&n->attr[0]) != 0;
}

/* The cost of example i, or its part of the result y. */
static mc_status example(int kind, mc_array *const *in, const mc_array *y, int64_t i, double *work,
                         double *cost)
{
    const mc_array *x = in[0], *labels = in[1], *lengths = in[2], *v = kind == CTC_CHANGE ? in[3] : x;
    struct ctc_sequence e = { .kind = kind,
                     .dtype = (int)x->dtype,
                     .x = x->data + i * x->strides[0],
                     .x_step = x->strides[1],
                     .x_class = x->strides[2],
                     .v = v->data + i * v->strides[0],
                     .v_step = v->strides[1],
                     .v_class = v->strides[2],
                     .label = labels->data + i * labels->strides[0],
                     .label_step = labels->strides[1],
                     .label_dtype = (int)labels->dtype,
                     .rows = x->dims[1],
                     .classes = x->dims[2],
                     .labels = labels->dims[1],
                     .steps = mc_load_i64(lengths->dtype, lengths->data + i * lengths->strides[0]) };
    if (kind != CTC_COST) {
        e.y = y->data + i * y->strides[0];
        e.y_step = y->strides[1];
        e.y_class = y->strides[2];
    }
    ctc_place(&e, work);
    const int64_t wrong = ctc_example(&e, cost);
    return !wrong ? MC_OK
                  : mc_ctc_failed(wrong, wrong < 0 ? e.steps : CTC_LABEL((&e), wrong - 1),
                                  wrong < 0 ? e.rows : e.classes);
}

static mc_status eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const int kind = mc_ctc_kind(n->op);
    size_t bytes = 0;
    if (in[0]->dims[2] < 1) {
        return mc_fail(MC_ESHAPE, "ctc_loss: there are no classes; class 0 is the blank");
    }
    TRY(mc_ctc_work(kind, in[0]->dims[1], in[1]->dims[1], &bytes));
    double *work = mc_alloc(bytes, "ctc_loss");
    mc_status s = work ? MC_OK : MC_EMEMORY;
    for (int64_t i = 0; i < in[0]->dims[0] && s == MC_OK; i++) {
        double cost = 0;
        s = example(kind, in, out[0], i, work, &cost);
        if (s == MC_OK && kind == CTC_COST) {
            mc_store_f64(out[0]->dtype, out[0]->data + i * out[0]->strides[0],
                         cost == INFINITY && zero_infinity(n) ? 0 : cost);
        }
    }
    mc_free(work);
    return s;
}

static bool differ(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a != b;
}

/* x: (examples, steps, classes), labels: (examples, most labels), lengths: (examples) */
static mc_status check(const struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0], *labels = &q->in[1], *lengths = &q->in[2];
    if (!mc_is_float(x->dtype)) {
        return mc_fail(MC_ETYPE, "ctc_loss: the activations are %s, not floats", mc_dtype_name(x->dtype));
    }
    if (mc_is_float(labels->dtype) || labels->rank != 2) {
        return mc_fail(mc_is_float(labels->dtype) ? MC_ETYPE : MC_ESHAPE,
                       "ctc_loss: the labels are %s of rank %d, not integers of rank 2 (examples, labels)",
                       mc_dtype_name(labels->dtype), labels->rank);
    }
    if (mc_is_float(lengths->dtype) || lengths->rank != 1) {
        return mc_fail(mc_is_float(lengths->dtype) ? MC_ETYPE : MC_ESHAPE,
                       "ctc_loss: the lengths are %s of rank %d, not integers of rank 1 (examples)",
                       mc_dtype_name(lengths->dtype), lengths->rank);
    }
    if (differ(x->dims[0], labels->dims[0]) || differ(x->dims[0], lengths->dims[0]) ||
        differ(labels->dims[0], lengths->dims[0])) {
        return mc_fail(
            MC_ESHAPE,
            "ctc_loss: activations of %lld examples, labels of %lld and lengths of %lld (-1: unknown)",
            (long long)x->dims[0], (long long)labels->dims[0], (long long)lengths->dims[0]);
    }
    return MC_OK;
}

static mc_status costs_infer(struct mc_infer *q)
{
    TRY(check(q));
    q->out[0] = mc_type_make(q->in[0].dtype, 1, q->in[0].dims);
    return MC_OK;
}

static mc_status grad_infer(struct mc_infer *q)
{
    TRY(check(q));
    q->out[0] = q->in[0];
    return MC_OK;
}

static mc_status hessian_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0], *v = &q->in[3];
    bool same = x->dtype == v->dtype && x->rank == v->rank;
    for (int a = 0; same && a < x->rank; a++) {
        same = !differ(x->dims[a], v->dims[a]);
    }
    TRY(grad_infer(q));
    return same ? MC_OK
                : mc_fail(MC_ESHAPE, "ctc_costs_hessian: the direction is not of the activations' type");
}

static mc_node *costs_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return mc_expr(n->graph, "ctc_costs_grad(x, labels, lengths) * dimshuffle(g, [0, -1, -1])",
                   (struct mc_bind[]){ { "x", n->in[0], NULL },
                                       { "labels", n->in[1], NULL },
                                       { "lengths", n->in[2], NULL },
                                       { "g", g[0], NULL } },
                   4);
}

/* g: (examples, steps, classes); the Hessian is symmetric. */
static mc_node *times_hessian(const mc_node *n, mc_node *g)
{
    return mc_expr(n->graph, "ctc_costs_hessian(x, labels, lengths, v)",
                   (struct mc_bind[]){ { "x", n->in[0], NULL },
                                       { "labels", n->in[1], NULL },
                                       { "lengths", n->in[2], NULL },
                                       { "v", g, NULL } },
                   4);
}

static mc_node *grad_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return times_hessian(n, g[0]);
}

static mc_node *hessian_grad(mc_node *n, int wrt, mc_node *const *g)
{
    return wrt == 3 ? times_hessian(n, g[0])
                    : mc_node_fail(n->graph, MC_EUNSUPPORTED, "ctc_loss has no third derivative");
}

static mc_node *build(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    if (in[0]->type.rank != 3) {
        return mc_node_fail(g, MC_ESHAPE,
                            "ctc_loss: the activations have rank %d, not 3 (steps, examples, classes)",
                            in[0]->type.rank);
    }
    struct mc_bind b[] = { { "x", in[0], NULL },
                           { "labels", in[1], NULL },
                           { "lengths", in[2], NULL },
                           { "zero", NULL, &attr[0] } };
    if (!in[2]) {
        b[2].node = mc_expr(g, "alloc(size(x, 0), [size(x, 1)])", b, 1);
    }
    return mc_expr(g, "ctc_costs(dimshuffle(x, [1, 0, 2]), labels, lengths, zero_infinity=zero)", b, 4);
}

const struct mc_op mc_ops_ctc[] = {
    BUILT({ .name = "ctc_loss", .params = "activations, labels, lengths=None, zero_infinity=False:bool", .nout = 1, .build = build,
      .doc = MANUAL("minus the logarithm of the probability of each example's labels, summed over all alignments (CTC). "
             "activations: (steps, examples, classes), before softmax, class 0 is the blank; labels: (examples, labels), "
             "from 1 on, negative ones are padding; lengths: (examples), the steps of each example, None: all. "
             "For labels that no alignment spells the cost is inf, with zero_infinity it is 0, and the gradient is 0. "
             "There are second derivatives, no third ones"),
      .example = MANUAL("x = [[[1., 2, 3]], [[3, 1, 2]], [[2, 2, 1]]]; ctc_loss(x, [[2, -1]])") })
    { .name = "ctc_costs", .flags = OP_HIDDEN | OP_ROWS, .params = "x, labels, lengths, zero_infinity=False:bool", .nout = 1,
      .infer = costs_infer, .size = mc_same_size, .eval = eval, .grad = costs_grad, .disconnected = 6,
      .doc = MANUAL("ctc_loss of x: (examples, steps, classes)") },
    { .name = "ctc_costs_grad", .flags = OP_HIDDEN | OP_ROWS, .params = "x, labels, lengths", .nout = 1,
      .infer = grad_infer, .size = mc_same_size, .eval = eval, .grad = grad_grad, .disconnected = 6,
      .doc = MANUAL("the gradient of ctc_costs with respect to x") },
    { .name = "ctc_costs_hessian", .flags = OP_HIDDEN | OP_ROWS, .params = "x, labels, lengths, v", .nout = 1,
      .infer = hessian_infer, .size = mc_same_size, .eval = eval, .grad = hessian_grad, .disconnected = 6,
      .doc = MANUAL("the change of ctc_costs_grad along v: the Hessian times v") },
};
const int mc_nops_ctc = (int)NELEM(mc_ops_ctc);
