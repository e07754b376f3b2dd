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
 * Invariant: all of this is computed as logarithms in double, each example by itself. */
#include "op/op.h"
#include <math.h>

enum { BLANK = 0 };

/* ---- one example ---- */

struct example {
    mc_dtype dtype;
    const char *x;              /* (steps, classes) */
    int64_t step, class_;       /* strides of x in bytes */
    int64_t steps, classes;
    int64_t states;
    int64_t *c;                 /* (states): the class of each state */
    double *row;                /* (classes): a step of x, then its probabilities */
    double *norm;               /* (steps): log of the sum of exp of each step */
    double *a;                  /* (steps or 2, states) */
    double *b, *next;           /* (states) */
};

static double log_add(double a, double b)
{
    const double most = a > b ? a : b, least = a > b ? b : a;
    return most == -INFINITY ? most : most + log1p(exp(least - most));
}

/* Reads step t, and the logarithm of the sum of its exponentials. */
static void read_step(const struct example *e, int64_t t)
{
    double most = -INFINITY, sum = 0;
    mc_convert(MC_FLOAT64, e->row, sizeof *e->row, e->dtype, e->x + t * e->step, e->class_, e->classes);
    for (int64_t c = 0; c < e->classes; c++) {
        most = e->row[c] > most || isnan(e->row[c]) ? e->row[c] : most;
    }
    for (int64_t c = 0; c < e->classes; c++) {
        sum += exp(e->row[c] - most);
    }
    e->norm[t] = most + log(sum);
}

static bool may_skip(const struct example *e, int64_t s)
{
    return s >= 2 && e->c[s] != BLANK && e->c[s] != e->c[s - 2];
}

/* The logarithms a[t, s]; kept: for all steps, else for the last two. */
static void forward(struct example *e, bool kept)
{
    for (int64_t t = 0; t < e->steps; t++) {
        double *now = e->a + (kept ? t : t & 1) * e->states;
        const double *last = t ? e->a + (kept ? t - 1 : (t - 1) & 1) * e->states : NULL;
        read_step(e, t);
        for (int64_t s = 0; s < e->states; s++) {
            double sum = t ? last[s] : s < 2 ? 0 : -INFINITY;
            sum = t && s >= 1 ? log_add(sum, last[s - 1]) : sum;
            sum = t && may_skip(e, s) ? log_add(sum, last[s - 2]) : sum;
            now[s] = sum + (e->row[e->c[s]] - e->norm[t]);
        }
    }
}

static double cost_of(const struct example *e, bool kept)
{
    if (!e->steps) {
        return e->states == 1 ? 0 : INFINITY; /* nothing spells no labels */
    }
    const double *last = e->a + (kept ? e->steps - 1 : (e->steps - 1) & 1) * e->states + e->states;
    return -(e->states > 1 ? log_add(last[-1], last[-2]) : last[-1]);
}

/* The logarithms b[t, s] from those of step t + 1, whose x is in e->row. */
static void step_back(struct example *e, int64_t t)
{
    double *swap = e->next;
    e->next = e->b;
    e->b = swap;
    for (int64_t s = 0; s < e->states; s++) { /* next: b * y of step t + 1 */
        e->next[s] += e->row[e->c[s]] - e->norm[t + 1];
    }
    for (int64_t s = 0; s < e->states; s++) {
        double sum = e->next[s];
        sum = s + 1 < e->states ? log_add(sum, e->next[s + 1]) : sum;
        e->b[s] = s + 2 < e->states && may_skip(e, s + 2) ? log_add(sum, e->next[s + 2]) : sum;
    }
}

/* Writes the gradient of the cost.  requires: forward, with all steps kept; the cost is no infinity. */
static void backward(struct example *e, char *to, int64_t step, int64_t class_)
{
    for (int64_t s = 0; s < e->states; s++) {
        e->b[s] = s + 2 < e->states ? -INFINITY : 0;
    }
    for (int64_t t = e->steps; t-- > 0;) {
        const double *a = e->a + t * e->states;
        double all = -INFINITY;
        if (t + 1 < e->steps) {
            step_back(e, t);
        }
        for (int64_t s = 0; s < e->states; s++) {
            all = log_add(all, a[s] + e->b[s]);
        }
        read_step(e, t); /* step_back reads these again */
        double *p = e->row + e->classes;
        for (int64_t c = 0; c < e->classes; c++) {
            p[c] = exp(e->row[c] - e->norm[t]);
        }
        for (int64_t s = 0; s < e->states; s++) {
            p[e->c[s]] -= exp(a[s] + e->b[s] - all);
        }
        mc_convert(e->dtype, to + t * step, class_, MC_FLOAT64, p, sizeof *p, e->classes);
    }
}

/* ---- nodes ---- */

static mc_status check_label(int64_t label, int64_t classes)
{
    if (label == BLANK) {
        return mc_fail(MC_EINDEX, "ctc_loss: 0 is a label; it is the blank, and labels count from 1");
    }
    if (label >= classes) {
        return mc_fail(MC_EINDEX, "ctc_loss: the label %lld, but there are %lld classes", (long long)label,
                       (long long)classes);
    }
    return MC_OK;
}

/* Reads example i; its memory is one block, which e->norm begins. */
static mc_status example_make(struct example *e, mc_array *const *in, int64_t i, bool kept)
{
    const mc_array *x = in[0], *labels = in[1], *lengths = in[2];
    const int64_t most = labels->dims[1];
    *e = (struct example){ .dtype = x->dtype,
                           .x = x->data + i * x->strides[0],
                           .step = x->strides[1],
                           .class_ = x->strides[2],
                           .classes = x->dims[2],
                           .states = 1 };
    e->steps = mc_load_i64(lengths->dtype, lengths->data + i * lengths->strides[0]);
    if (e->steps < 0 || e->steps > x->dims[1]) {
        return mc_fail(MC_EINDEX, "ctc_loss: the length %lld, but there are %lld steps", (long long)e->steps,
                       (long long)x->dims[1]);
    }
    if (e->classes < 1) {
        return mc_fail(MC_ESHAPE, "ctc_loss: there are no classes; class 0 is the blank");
    }
    for (int64_t k = 0; k < most; k++) {
        const int64_t label = mc_load_i64(labels->dtype,
                                          labels->data + i * labels->strides[0] + k * labels->strides[1]);
        TRY(label >= 0 ? check_label(label, e->classes) : MC_OK);
        e->states += 2 * (label >= 0);
    }
    const int64_t tables[] = { e->states, (kept ? e->steps : 2) + 2 }, cells = mc_dims_count(2, tables),
                  numbers[] = { cells < 0 ? 0 : cells + e->steps + 2 * e->classes + e->states, sizeof *e->a },
                  size = cells < 0 ? -1 : mc_dims_count(2, numbers);
    e->norm = size < 0 ? NULL : mc_alloc((size_t)size, "ctc_loss");
    if (!e->norm) {
        return size < 0 ? mc_fail(MC_EMEMORY, "ctc_loss: too many steps and labels") : MC_EMEMORY;
    }
    e->row = e->norm + e->steps;
    e->b = e->row + 2 * e->classes;
    e->next = e->b + e->states;
    e->a = e->next + e->states;
    e->c = (int64_t *)(void *)(e->b + cells);
    e->c[0] = BLANK;
    for (int64_t k = 0, s = 1; k < most; k++) {
        const int64_t label = mc_load_i64(labels->dtype,
                                          labels->data + i * labels->strides[0] + k * labels->strides[1]);
        if (label >= 0) {
            e->c[s++] = label;
            e->c[s++] = BLANK;
        }
    }
    return MC_OK;
}

static bool zero_infinity(const mc_node *n)
{
    return mc_attr_int(&n->attr[0]) != 0;
}

static mc_status costs_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_status s = MC_OK;
    for (int64_t i = 0; i < in[0]->dims[0] && s == MC_OK; i++) {
        struct example e;
        s = example_make(&e, in, i, false);
        if (s == MC_OK) {
            forward(&e, false);
            const double cost = cost_of(&e, false);
            mc_store_f64(out[0]->dtype, out[0]->data + i * out[0]->strides[0],
                         cost == INFINITY && zero_infinity(n) ? 0 : cost);
        }
        mc_free(e.norm);
    }
    return s;
}

/* Zeros behind the steps of an example, and for one without an alignment. */
static mc_status grad_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_array *y = out[0];
    mc_status s = MC_OK;
    (void)n;
    for (int64_t i = 0; i < in[0]->dims[0] && s == MC_OK; i++) {
        struct example e;
        char *to = y->data + i * y->strides[0];
        s = example_make(&e, in, i, true);
        for (int64_t t = 0; s == MC_OK && t < y->dims[1]; t++) {
            memset(to + t * y->strides[1], 0, (size_t)y->dims[2] * mc_dtypes[y->dtype].size);
        }
        if (s == MC_OK) {
            forward(&e, true);
            if (cost_of(&e, true) != INFINITY) {
                backward(&e, to, y->strides[1], y->strides[2]);
            }
        }
        mc_free(e.norm);
    }
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
             "For labels that no alignment spells the cost is inf, with zero_infinity it is 0, and the gradient is 0"),
      .example = MANUAL("x = [[[1., 2, 3]], [[3, 1, 2]], [[2, 2, 1]]]; ctc_loss(x, [[2, -1]])") })
    { .name = "ctc_costs", .flags = OP_HIDDEN | OP_ROWS, .params = "x, labels, lengths, zero_infinity=False:bool", .nout = 1,
      .infer = costs_infer, .size = mc_same_size, .eval = costs_eval, .grad = costs_grad, .disconnected = 6,
      .doc = MANUAL("ctc_loss of x: (examples, steps, classes)") },
    { .name = "ctc_costs_grad", .flags = OP_HIDDEN | OP_ROWS, .params = "x, labels, lengths", .nout = 1,
      .infer = grad_infer, .size = mc_same_size, .eval = grad_eval, .disconnected = 6,
      .doc = MANUAL("the gradient of ctc_costs with respect to x") },
};
const int mc_nops_ctc = (int)NELEM(mc_ops_ctc);
