/* rules_special.c: the last pass: forms that run faster, after all other rules have been applied. */
#include "rewrite/rewrite.h"
#include <math.h>

enum { LARGEST_POWER = 512 };

static bool real(const struct mc_match *m) { return mc_is_float(m->root->type.dtype); }

static bool small_power(const struct mc_match *m)
{
    double k = mc_letter_number(m, 'k');
    return k >= floor(k) && k <= floor(k) && fabs(k) >= 3 && fabs(k) <= LARGEST_POWER && (k > 0 || real(m));
}

static bool minus_two(const struct mc_match *m)
{
    double k = mc_letter_number(m, 'k');
    return real(m) && k >= -2 && k <= -2;
}

/* x ** k by repeated squaring: x ** 13 = x * x**4 * x**8. For a negative power the reciprocal is taken first:
 * in float16 sqr(480) is infinite, but sqr(1 / 480) is only small. */
static mc_node *unroll(const struct mc_match *m)
{
    mc_node *square = mc_letter(m, 'x'), *y = NULL;
    double k = mc_letter_number(m, 'k');
    square = k < 0 ? mc_op2("true_div", mc_node_like(square, 1), square) : square;
    for (unsigned left = (unsigned)fabs(k); left; left >>= 1) {
        if (left & 1) {
            y = y ? mc_op2("mul", y, square) : square;
        }
        square = left > 1 ? mc_op1("sqr", square) : square;
    }
    return y;
}

/* A quotient by a power of two equals the product with its inverse bit for bit. For other numbers it does not
 * (49 / 49 must be 1, and so must the mean of 49 ones), so that rule is off by default. Little is lost:
 * kernels are bound by memory, not by division. */
static bool has_reciprocal(const struct mc_match *m)
{
    double r = 1 / mc_letter_number(m, 'k');
    mc_dtype d = m->root->type.dtype;
    char bits[8] = { 0 };
    mc_store_f64(d, bits, r);
    return mc_is_float(d) && isfinite(r) &&
           fabs(mc_load_f64(d, bits)) > (d == MC_FLOAT16   ? 7e-5
                                         : d == MC_FLOAT64 ? 1e-300
                                                           : 1e-37);
}

static bool power_of_two(const struct mc_match *m)
{
    int e;
    double half = frexp(fabs(mc_letter_number(m, 'k')), &e);
    return has_reciprocal(m) && half >= 0.5 && half <= 0.5;
}

/* argmax of a strictly increasing function of x is argmax of x. This runs only after formulas are stable:
 * log(exp(x) + 1) must not become exp(x) + 1, which overflows. */
static mc_node *argmax_through(const struct mc_match *m)
{
    mc_node *f = m->root->in[0];
    bool grows = f->op->flags & OP_MONOTONE && f->nin == 1 &&
                 (!f->op->arity || f->in[0]->type.dtype == f->type.dtype);
    if (grows && !f->op->arity) { /* increasing along one axis only: softmax */
        int axis[MC_MAX_RANK], rank = f->type.rank;
        int64_t along = mc_attr_int(mc_attr_named(f, "axis"));
        grows = mc_axes_of(m->root, 0, rank, axis) == 1 && axis[0] == (along < 0 ? along + rank : along);
    }
    return grows ? mc_apply(m->g, m->root->op, 1, f->in, m->root->attr) : NULL;
}

/* ---- elementwise ops on the rows of a product ---- */

/* Is n a matrix product, or a few elementwise ops on one? */
static bool is_product(const mc_node *n)
{
    for (int depth = 0; depth < 4 && mc_is_elementwise(n); depth++) {
        n = n->in[0];
    }
    return n->op->flags & OP_MATMUL;
}

/* The matrix whose rows reshape n only divides among several axes; NULL: n is something else */
static mc_node *divided_rows(mc_node *n)
{
    mc_node *x = n->op->form == FORM_RESHAPE ? n->in[0] : NULL;
    const int rank = n->type.rank;
    if (!x || rank < 3 || x->type.rank != 2 || n->type.dims[rank - 1] == 1 || !is_product(x)) {
        return NULL;
    }
    mc_node *width = mc_shape_entry_node(n->in[1], rank - 1);
    return width && mc_size_is(width, x, 1) ? x : NULL;
}

/* x as one row of such a matrix, if it varies along the last axis at most; else NULL */
static mc_node *as_row(mc_node *x, int rank)
{
    for (int i = 0; i < x->type.rank - 1; i++) {
        if (x->type.dims[i] != 1) {
            return NULL;
        }
    }
    return x->type.rank == 0      ? x
           : x->type.rank == rank ? mc_shuffle(x, 2, (int64_t[]){ -1, rank - 1 })
                                  : NULL;
}

/* An elementwise op on a product whose rows were divided comes before that reshape, as an epilogue. */
static mc_node *before_reshape(const struct mc_match *m)
{
    mc_node *n = m->root, *in[4], *divided = NULL;
    if (!mc_is_elementwise(n) || n->nin > (int)NELEM(in)) {
        return NULL;
    }
    for (int i = 0; i < n->nin; i++) {
        mc_node *x = divided_rows(n->in[i]);
        if (x && divided && divided->in[1] != n->in[i]->in[1]) {
            return NULL;
        }
        divided = x ? n->in[i] : divided;
        in[i] = x ? x : as_row(n->in[i], n->type.rank);
        if (!in[i]) {
            return NULL;
        }
    }
    mc_node *y = divided ? mc_apply(m->g, n->op, n->nin, in, n->attr) : NULL;
    return !y || mc_is_error(y)
               ? y
               : mc_node_make(m->g, divided->op, 2, (mc_node *[]){ y, divided->in[1] }, divided->attr);
}

static const struct mc_rule rows[] = {
    { "x ** 0.5",            "sqrt(x)",           FINITE },     /* they differ at -0 and -inf */
    { "x ** -0.5",           "1 / sqrt(x)",       FINITE },
    { "x ** -1",             "1 / x",             ROUND,  .when = real },
    { "x ** k",              "sqr(1 / x)",        ROUND,  .when = minus_two },
    { "x ** k",              NULL,                ROUND,  .when = small_power, .make = unroll, .name = "pow by squares",
      .sample = "x ** 3; x ** 13; x ** -5" },
    { "x / k",               "x * (1 / k)",       EXACT,  .when = power_of_two },
    { "x / k",               "x * (1 / k)",       ROUND,  .when = has_reciprocal, .name = "reciprocal", .tags = "off" },
    { "x / sqrt(x)",         "sqrt(x)",           FINITE },
    { "exp(x) * exp(y)",     "exp(x + y)",        ROUND,  .once = true },
    { "exp(x) / exp(y)",     "exp(x - y)",        ROUND,  .once = true },
    { "1 / exp(x)",          "exp(-x)",           ROUND,  .once = true },
    { .op = "argmax", .make = argmax_through, .promise = FINITE, .name = "argmax through",
      .sample = "argmax(exp(x), axis=1); argmax(softmax(x), axis=1); argmax(tanh(x))" },
    { .op = "*", .make = before_reshape, .promise = EXACT, .name = "before reshape",
      .sample = "reshape(dot(x, transpose(y)), [2, 2, size(y, 0)]) + y[:, 0]; tanh(reshape(dot(x, transpose(y)), [2, 2, size(y, 0)])); "
                "tanh(reshape(dot(x, transpose(y)), [2, 2, size(y, 0)]) * 2 + y[:, 0])" },
};
const struct mc_rule_table mc_rules_special = { rows, (int)NELEM(rows) };
