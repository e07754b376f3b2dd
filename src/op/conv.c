/* conv.c: the three nodes that every convolution is made of.
 *
 * Invariant: each node is the derivative of the others. The arrays x, w and y take part in one sum; a node
 * computes one of them from the other two. The gradient with respect to an operand is the node that
 * computes this operand, with the incoming gradient in place of the result. So gradients of every order
 * consist of these three nodes. */
#include "op/conv_node.h"

/* ---- types ---- */

/* The least precision of the accumulators. None: set by the flag conv.precision. */
static mc_status check_precision(const struct mc_attr *a)
{
    static const char *const words[] = { "as_input_f32", "as_input", "float16", "float32", "float64" };
    bool known = a->none;
    for (size_t i = 0; i < NELEM(words) && !known; i++) {
        known = strcmp(a->text, words[i]) == 0;
    }
    return known ? MC_OK
                 : mc_fail(MC_EARG,
                           "unknown precision '%s'; expected as_input_f32, as_input, float16, float32 or "
                           "float64",
                           a->text);
}

static mc_status result_type(struct mc_infer *q)
{
    struct mc_conv_form f;
    struct mc_conv_shape s;
    int64_t dims[MC_MAX_RANK], known = 1;
    enum mc_conv_pass pass = (enum mc_conv_pass)mc_conv_pass_of(q->op);
    int role = pass == CONV_FORWARD  ? CONV_Y
               : pass == CONV_INPUTS ? CONV_X
                                     : CONV_W,
        nd = q->in[pass == CONV_INPUTS].rank - 2;
    if (nd < 1 || nd > 3) {
        return mc_fail(MC_ESHAPE, "%s has rank %d; expected 3 to 5, for 1 to 3 spatial axes",
                       pass == CONV_INPUTS ? "y" : "x", nd + 2);
    }
    TRY(mc_conv_form_read(pass, nd, q->attr, &f));
    for (int r = 0; r < 3; r++) {
        int i = mc_conv_operand[pass][r];
        if (i >= 0 && q->in[i].rank != mc_conv_rank(&f, r)) {
            return mc_fail(MC_ESHAPE, "%c has rank %d; expected %d", "xwy"[r], q -> in[i].rank,
                           mc_conv_rank(&f, r));
        }
    }
    if (!mc_is_float(q->in[0].dtype) || q->in[0].dtype != q->in[1].dtype) {
        return mc_fail(MC_ETYPE, "the operands must be floats of one dtype, not %s and %s",
                       mc_dtype_name(q->in[0].dtype), mc_dtype_name(q->in[1].dtype));
    }
    TRY(check_precision(&q->attr[CONV_PRECISION]));
    TRY(mc_conv_solve(q, &f, NULL, &s));
    mc_conv_dims(&f, &s, role, dims);
    q->out[0] = mc_type_make(q->in[0].dtype, mc_conv_rank(&f, role), dims);
    for (int i = 0; i < q->out[0].rank; i++) {
        if (dims[i] > 0 && !mc_mul_i64(known, dims[i], &known)) {
            return mc_fail(MC_ESHAPE, "the result's sizes overflow");
        }
    }
    return MC_OK;
}

static mc_status conv_infer(struct mc_infer *q)
{
    mc_status s = result_type(q);
    return s == MC_OK ? MC_OK : mc_fail_again("%s: ", q->op->name);
}

/* ---- gradients ---- */

static mc_node *conv_grad(mc_node *n, int wrt, mc_node *const *g)
{
    static const enum mc_conv_pass makes[3] = {
        [CONV_X] = CONV_INPUTS, [CONV_W] = CONV_WEIGHTS, [CONV_Y] = CONV_FORWARD
    };
    const signed char *from = mc_conv_operand[mc_conv_pass_of(n->op)];
    int role = 0, nin = 2;
    while (role < 3 && from[role] != wrt) {
        role++;
    }
    if (role == 3 || !g[0]) {
        return NULL;
    }
    mc_node *in[3];
    struct mc_attr attr[CONV_NATTR];
    for (int r = 0; r < 3; r++) {
        int to = mc_conv_operand[makes[role]][r];
        if (to >= 0) {
            in[to] = from[r] < 0 ? g[0] : n->in[(int)from[r]];
        }
    }
    if (role != CONV_Y) {
        in[nin++] = mc_shape_of(n->in[wrt]);
    }
    memcpy(attr, n->attr, sizeof attr);
    attr[CONV_ALGO] = (struct mc_attr){ .kind = ATTR_TEXT,
                                        .none = true }; /* the user's algorithm applies to one pass only */
    return mc_apply(n->graph, mc_op_named(n->graph, mc_conv_name(makes[role])), nin, in, attr);
}

/* ---- building: attributes are brought to canonical form, so that equal convolutions are equal nodes ---- */

/* If all numbers are equal, one number is stored. */
static void shorten(struct mc_attr *a, int n, int64_t *v)
{
    bool same = true;
    for (int i = 1; i < n; i++) {
        same &= v[i] == v[0];
    }
    a->n = same ? 1 : n;
    a->ints = v;
    a->text = NULL;
}

struct canon {
    struct mc_attr attr[CONV_NATTR];
    int64_t border[6], stride[3], dilation[3];
};

/* Canonical border: a named border becomes numbers once the size of the filter is known; if both sides are
 * equal on every axis, one number stands for the pair; all zeros become 'valid'. */
static void canon_border(struct canon *c, const struct mc_conv_form *f, const struct mc_conv_shape *s)
{
    struct mc_attr *a = &c->attr[CONV_BORDER];
    bool even = true, zero = true;
    int64_t side[3][2];
    for (int j = 3 - f->nd; j < 3; j++) {
        int64_t e = s->k[j] < 0 ? -1 : (s->k[j] - 1) * f->dilation[j] + 1;
        if (f->border && e < 0) {
            return;
        }
        side[j][0] = f->border ? f->border->before(e) : f->before[j];
        side[j][1] = f->border ? f->border->behind(e) : f->behind[j];
        even &= side[j][0] == side[j][1];
        zero &= side[j][0] == 0 && side[j][1] == 0;
    }
    for (int j = 3 - f->nd; j < 3; j++) {
        int at = j - (3 - f->nd);
        c->border[even ? at : 2 * at] = side[j][0];
        c->border[even ? at : 2 * at + 1] = side[j][1];
    }
    if (zero) {
        *a = (struct mc_attr){ .kind = ATTR_BORDER, .text = "valid" };
    } else if (even) {
        shorten(a, f->nd, c->border);
    } else {
        a->n = 2 * f->nd; /* pairs are never shortened to one number: it would stand for both sides */
        a->ints = c->border;
        a->text = NULL;
    }
}

/* Canonical attributes. If they are invalid they stay as they are, and infer reports the error. */
static void canon(struct canon *c, const struct mc_op *op, int nin, mc_node *const *in,
                  const struct mc_attr *attr)
{
    const mc_array *value[3] = { NULL };
    struct mc_type type[3];
    struct mc_conv_form f;
    struct mc_conv_shape s;
    enum mc_conv_pass pass = (enum mc_conv_pass)mc_conv_pass_of(op);
    memcpy(c->attr, attr, sizeof c->attr);
    for (int i = 0; i < nin; i++) {
        type[i] = in[i]->type;
        value[i] = in[i]->value;
    }
    struct mc_infer q = { .op = op,
                          .graph = in[0]->graph,
                          .nin = nin,
                          .in = type,
                          .value = value,
                          .node = in,
                          .attr = c->attr,
                          .nout = 1 };
    int nd = type[pass == CONV_INPUTS].rank - 2;
    if (conv_infer(&q) < 0 || mc_conv_form_read(pass, nd, attr, &f) < 0 ||
        mc_conv_solve(&q, &f, NULL, &s) < 0) {
        mc_clear_error();
        return;
    }
    memcpy(c->stride, f.stride + 3 - nd, (size_t)nd * sizeof *c->stride);
    memcpy(c->dilation, f.dilation + 3 - nd, (size_t)nd * sizeof *c->dilation);
    shorten(&c->attr[CONV_STRIDE], nd, c->stride);
    shorten(&c->attr[CONV_DILATION], nd, c->dilation);
    canon_border(c, &f, &s);
    bool plain = !attr[CONV_LAYOUT].none && strncmp(attr[CONV_LAYOUT].text, "bc012", (size_t)nd + 2) == 0;
    if (plain) {
        c->attr[CONV_LAYOUT] = (struct mc_attr){ .kind = ATTR_TEXT, .none = true };
    }
    if (c->attr[CONV_STRIDE].n == 1 && c->stride[0] == 1) {
        c->attr[CONV_CEIL] = op->sig->param[op->sig->ntensor + CONV_CEIL].dflt; /* ceil has no effect */
    }
    if (s.k[0] == 1 && s.k[1] == 1 && s.k[2] == 1) {
        c->attr[CONV_FLIP] = op->sig->param[op->sig->ntensor + CONV_FLIP].dflt; /* flip has no effect */
    }
}

mc_status (*mc_conv_algo_hook)(const char *algo);

static mc_node *build(mc_graph *g, const char *name, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_op *op = mc_op_named(g, name);
    mc_node *arg[3] = { NULL, NULL, nin > 2 ? in[2] : NULL };
    mc_dtype d = mc_meet(2, in, 0);
    struct canon c;
    for (int i = 0; i < 2; i++) {
        arg[i] = mc_cast_to(in[i], d);
        if (mc_is_error(arg[i])) {
            return g->error;
        }
    }
    if (attr[CONV_ALGO].text && mc_conv_algo_hook && mc_conv_algo_hook(attr[CONV_ALGO].text) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    arg[2] = arg[2] ? mc_conv_full_shape(op, arg, attr) : NULL;
    if (arg[2] && mc_is_error(arg[2])) {
        return arg[2];
    }
    nin = arg[2] ? 3 : 2;
    canon(&c, op, nin, arg, attr);
    return mc_node_make(g, op, nin, arg, c.attr);
}

static mc_node *build_conv(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return build(g, "conv", nin, in, attr);
}

static mc_node *build_inputs(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return build(g, "conv_inputs", nin, in, attr);
}

static mc_node *build_weights(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return build(g, "conv_weights", nin, in, attr);
}

void mc_conv_attrs(const struct mc_op *op, const struct mc_attr *const *given, struct mc_attr *attr)
{
    for (int k = 0; k < CONV_NATTR; k++) {
        const struct mc_param *p = &op->sig->param[op->sig->ntensor + k];
        attr[k] = given[k] ? *given[k] : p->dflt;
        attr[k].kind = p->kind;
    }
}

mc_node *mc_conv_make(mc_graph *g, enum mc_conv_pass pass, int nin, mc_node *const *in,
                      const struct mc_attr *const *given)
{
    const struct mc_op *op = mc_op_named(g, mc_conv_name(pass));
    struct mc_attr attr[CONV_NATTR];
    mc_conv_attrs(op, given, attr);
    return mc_apply(g, op, nin > 2 && in[2] ? 3 : 2, in, attr);
}

#define CONV_ATTRS                                                                                           \
    "border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int, flip=True:bool, unshared=False:bool, " \
    "layout=None:text, ceil=False:bool, algo=None:text, precision=None:text"
#define CONV .flags = OP_HEAVY | OP_BLOCKS, .solvers = SOLVERS_CONV, .nout = 1, .infer = conv_infer, .size = mc_conv_size, .eval = mc_conv_eval, .grad = conv_grad
const struct mc_op mc_ops_conv[] = {
    { .name = "conv", .params = "x, w, " CONV_ATTRS, CONV, .build = build_conv,
      .doc = MANUAL("convolution along 1 to 3 axes of x (images, channels, axes) with w (filters, channels / groups, "
             "axes); the result has (i + p - (k - 1)*d - 1)//s + 1 positions along an axis; ceil rounds the "
             "quotient up. border: valid, full, half, same, causal, or zeros on each side: one number, one "
             "for each axis, or a pair (before, after) for each axis; flip: taps are applied from the last to "
             "the first; unshared: w has a filter for each position, whose axes follow its first one; layout: "
             "the order of x's axes, such as bc01, b01c, c01b; w has its filters where x has b") },
    { .name = "conv_inputs", .params = "w, y, shape=None, " CONV_ATTRS, CONV, .shape_args = 4, .disconnected = 4, .build = build_inputs,
      .doc = MANUAL("the gradient of conv(x, w) with respect to x, from the gradient y of its result; shape: the shape of x or its spatial sizes, required if the stride is not 1") },
    { .name = "conv_weights", .params = "x, y, shape=None, " CONV_ATTRS, CONV, .shape_args = 4, .disconnected = 4, .build = build_weights,
      .doc = MANUAL("the gradient of conv(x, w) with respect to w, from the gradient y of its result; shape: the "
             "shape of w or its spatial sizes, required if the stride is not 1 or the border is half, same or "
             "causal") },
};
const int mc_nops_conv = (int)NELEM(mc_ops_conv);
