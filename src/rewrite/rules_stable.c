/* rules_stable.c: stable forms: formulas for the same real function that keep its digits. tests/stable.py has
 * a formula for each row.
 *
 * Trap: a rule must not match its own result. The branch of log(erfc(x)) that keeps log(erfc) caps its
 * argument by a minimum, and the rule does not match a capped argument. */
#include "rewrite/rewrite.h"
#include <math.h>

enum { VIEWS_DEEP = 8 };

enum {
    SUM,
    DIFFERENCE,
    PRODUCT,
    QUOTIENT,
    SQUARE,
    ROOT,
    NEGATIVE,
    MULTIPLE,
    PART,
    CAPPED,
    SIGMOID,
    ONE_PLUS_EXP,
    CHOSEN,
    HELD
};
static struct mc_probe looks[] = {
    [SUM]      = { "x + y" },          [DIFFERENCE]   = { "x - y" },
    [PRODUCT]  = { "x * y" },          [QUOTIENT]     = { "x / y" },
    [SQUARE]   = { "sqr(x)" },         [ROOT]         = { "sqrt(x)" },
    [NEGATIVE] = { "-x" },             [CAPPED]       = { "minimum(x, k)" },
    [MULTIPLE] = { "x * k" },          [PART]         = { "x / k" },
    [SIGMOID]  = { "sigmoid(x)" },     [ONE_PLUS_EXP] = { "1 + exp(x)" },
    [CHOSEN]   = { "where(y, z, x)" }, [HELD]         = { "consider_constant(x)" },
};

/* Are the elements of n elements of input 0, in another order or repeated? */
static bool is_view(const mc_node *n)
{
    static const unsigned views = 1u << FORM_DIMSHUFFLE | 1u << FORM_RESHAPE | 1u << FORM_SUBTENSOR |
                                  1u << FORM_GATHER | 1u << FORM_ALLOC | 1u << FORM_SPECIFY;
    return views >> n->op->form & 1 && n->nin <= MC_MAX_RANK * 3 + 1;
}

static bool is_exponential(const mc_node *n)
{
    return n->op->flags & OP_EXPONENTIAL;
}

static const mc_node *below_views(const mc_node *n)
{
    for (int deep = 0; deep < VIEWS_DEEP && is_view(n); deep++) {
        n = n->in[0];
    }
    return n;
}

/* The views of n applied to the log of the node below them. `exponent`: if that node is exp(x), x is taken
 * for its log. */
static mc_node *views_of(mc_node *n, bool exponent)
{
    mc_node *in[MC_MAX_RANK * 3 + 1];
    if (!is_view(n)) {
        return exponent && is_exponential(n) ? n->in[0] : mc_op1("log", n);
    }
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[0] = views_of(n->in[0], exponent);
    return mc_is_error(in[0]) ? in[0] : mc_node_make(n->graph, n->op, n->nin, in, n->attr);
}

static bool is_exp(const mc_node *n);
static bool is_sum_of_exp(const mc_node *n) { return n->op->reduction == REDUCE_SUM && is_exp(n->in[0]); }

/* Is n a view of an exponential or of a sum of exponentials? */
static bool is_exp(const mc_node *n)
{
    return is_exponential(below_views(n)) || is_sum_of_exp(below_views(n));
}

static bool k_is_minus_m(const struct mc_match *m)
{
    const double sum = mc_letter_number(m, 'k') + mc_letter_number(m, 'm');
    return sum >= 0 && sum <= 0;
}

/* Is m the maximum of x, written directly or as largest() makes it? */
static bool is_largest(const mc_node *m, const mc_node *x)
{
    struct mc_match of;
    while (m->op->form == FORM_DIMSHUFFLE || mc_matches(&looks[HELD], m, &of) ||
           mc_matches(&looks[CHOSEN], m, &of)) {
        m = m->op->form == FORM_DIMSHUFFLE ? m->in[0] : mc_letter(&of, 'x');
    }
    return m->op->reduction == REDUCE_MOST && m->in[0] == x;
}

/* Is n of the form x - m with m the maximum of x? */
static bool is_less_largest(const mc_node *n)
{
    struct mc_match less;
    return mc_matches(&looks[DIFFERENCE], n, &less) &&
           is_largest(mc_letter(&less, 'y'), mc_letter(&less, 'x'));
}

/* The maximum of x over axes, with keepdims; 0 where it is infinite. The formulas subtract it and add it
 * back, so their results do not depend on it: gradients take it as a constant. */
static mc_node *largest(mc_node *x, struct mc_attr axes)
{
    int64_t one = 1;
    struct mc_attr a[2] = { axes, { .kind = ATTR_BOOL, .n = 1, .ints = &one } };
    mc_node *most = mc_apply(x->graph, mc_op_find("sup"), 1, &x, a); /* also of nothing */
    struct mc_bind b[] = { { "m", most, NULL } };
    return mc_expr(x->graph, "consider_constant(where(isinf(m), 0, m))", b, 1);
}

/* Does n reduce only axes of size 1, or none? */
static bool sums_one(const mc_node *n)
{
    int axis[MC_MAX_RANK];
    const int naxis = (int)mc_axes_of(n, 0, n->in[0]->type.rank, axis);
    bool one = true;
    for (int i = 0; i < naxis; i++) {
        one &= n->in[0]->type.dims[axis[i]] == 1;
    }
    return one;
}

/* log(sum(exp(x))) ==> m + log(sum(exp(x - m))), m the maximum; an infinite m is not subtracted. For a sum of
 * one element the result is x. */
static mc_node *log_sum_exp(const struct mc_match *m)
{
    const mc_node *sum = m->root->in[0];
    if (!is_sum_of_exp(sum) || !sum->attr[2].none || !sum->attr[3].none) {
        return NULL;
    }
    mc_node *x = views_of(sum->in[0], true);
    int axis[MC_MAX_RANK], rank = sum->in[0]->type.rank, n;
    int64_t order[MC_MAX_RANK];
    struct mc_attr a[2] = { sum->attr[0], sum->attr[1] };
    if (mc_is_error(x) || (n = (int)mc_axes_of(sum, 0, rank, axis)) < 0 || is_less_largest(x)) {
        return NULL; /* nothing to sum, or x - m already */
    }
    struct mc_bind b[] = { { "x", x, NULL },
                           { "m", largest(x, a[0]), NULL },
                           { "a", NULL, &a[0] },
                           { "k", NULL, &a[1] },
                           { "r", NULL, NULL } };
    b[4].node = b[1].node;
    if (!mc_attr_int(&a[1]) && !mc_is_error(b[1].node)) {
        int kept = 0;
        for (int i = 0, next = 0; i < rank; i++) {
            bool gone = next < n && axis[next] == i;
            next += gone;
            order[kept] = i;
            kept += !gone;
        }
        b[4].node = mc_shuffle(b[1].node, kept, order);
    }
    return mc_expr(
        m->g, sums_one(sum) ? "max(x, axis=a, keepdims=k)" : "r + log(sum(exp(x - m), axis=a, keepdims=k))",
        b, 5);
}

/* The denominator without the dimshuffles and allocs that broadcast it. */
static mc_node *without_broadcast(mc_node *n)
{
    while (n->op->form == FORM_DIMSHUFFLE || n->op->form == FORM_ALLOC) {
        n = n->in[0];
    }
    return n;
}

/* n is a broadcast sum of x. Does a quotient by n divide each element of x by the sum that contains it? */
static bool is_normalised_by_own_sum(const mc_node *n, const mc_node *x)
{
    int axis[MC_MAX_RANK], rank = x->type.rank, next = 0;
    const mc_node *sum = without_broadcast((mc_node *)(uintptr_t)n);
    const int count = (int)mc_axes_of(sum, 0, rank, axis);
    if (count == rank && n->type.rank == 0) {
        return true;
    }
    /* each reduced axis must be kept with size 1 or restored by one dimshuffle */
    for (int i = 0; i < rank; i++) {
        const bool gone = next < count && axis[next] == i;
        int64_t from = i;
        next += gone;
        if (n->type.rank != rank || (sum != n && n->op->form != FORM_DIMSHUFFLE)) {
            return false;
        }
        from = sum == n ? i : n->attr[0].ints[i];
        if (sum != n && n->in[0] != sum) {
            return false;
        }
        if (gone ? n->type.dims[i] != 1 : from != (mc_attr_int(&sum->attr[1]) ? i : i - next)) {
            return false;
        }
    }
    return true;
}

/* exp(x) / sum(exp(x)) over any axes ==> e / sum(e), e = exp(x - m), m the maximum. For a sum of one element
 * the quotient is 1 if x is finite. y: a factor of exp(x), or NULL. */
static mc_node *exp_over_sum(const struct mc_match *m)
{
    mc_node *x = mc_letter(m, 'x'), *y = mc_letter(m, 'y'), *below = mc_letter(m, 'z'),
            *sum = without_broadcast(below);
    if (sum->op->reduction != REDUCE_SUM || !is_exponential(sum->in[0]) || sum->in[0]->in[0] != x ||
        !is_normalised_by_own_sum(below, x) || is_less_largest(x)) {
        return NULL;
    }
    struct mc_bind b[] = { { "x", x, NULL },
                           { "m", largest(x, sum->attr[0]), NULL },
                           { "a", NULL, &sum->attr[0] } };
    mc_node *p = mc_expr(
        m->g, sums_one(sum) ? "x - x + 1" : "e = exp(x - m); e / sum(e, axis=a, keepdims=True)", b, 3);
    return y ? mc_op2("mul", p, y) : p;
}

/* sum(exp(x) * y) / sum(exp(x)), the mean of y with weights exp(x)  ==>  sum(e * y) / sum(e) */
static mc_node *mean_by_exp(const struct mc_match *m)
{
    const mc_node *above = m->root->in[0], *below = m->root->in[1];
    mc_node *x = mc_letter(m, 'x');
    if (above->in[0]->type.rank != x->type.rank || is_less_largest(x)) {
        return NULL;
    }
    struct mc_bind v[] = { { "x", x, NULL },
                           { "m", largest(x, below->attr[0]), NULL },
                           { "y", mc_letter(m, 'y'), NULL },
                           { "a", NULL, &below->attr[0] },
                           { "k", NULL, &below->attr[1] } };
    return mc_expr(m->g,
                   sums_one(below)
                       ? "sum((x - x + 1) * y, axis=a, keepdims=k)"
                       : "e = exp(x - m); sum(e * y, axis=a, keepdims=k) / sum(e, axis=a, keepdims=k)",
                   v, 5);
}

/* Is there a stable formula for log(f(...))? */
static bool has_log(const mc_node *f)
{
    return f->op->flags & OP_HAS_LOG || is_sum_of_exp(f);
}

/* log of a product or quotient with such an f, or of its square or root. */
static mc_node *log_of_product(const struct mc_match *m)
{
    static const struct { int look; const char *log; } forms[] = {
        { PRODUCT, "log(x) + log(y)" }, { QUOTIENT, "log(x) - log(y)" }, { SQUARE, "log(x) * 2" }, { ROOT, "log(x) * 0.5" },
    };
    for (size_t i = 0; i < NELEM(forms); i++) {
        struct mc_match p;
        if (mc_matches(&looks[forms[i].look], m->root->in[0], &p)) {
            mc_node *x = mc_letter(&p, 'x'), *y = mc_letter(&p, 'y');
            return has_log(x) || (y && has_log(y))
                       ? mc_expr(m->g, forms[i].log, (struct mc_bind[]){ { "x", x, NULL }, { "y", y, NULL } },
                                 y ? 2 : 1)
                       : NULL;
        }
    }
    return NULL;
}

/* Is n a sum of exponentials and positive numbers? A term may be a view, and may have a positive number as
 * factor or divisor. */
static bool is_exps(const mc_node *n, int deep)
{
    struct mc_match p;
    double k;
    n = below_views(n);
    if (is_exp(n) || (mc_const_number(n, &k) && k > 0)) {
        return true;
    }
    if (deep == 0 || n->nin != 2) {
        return false;
    }
    if (mc_matches(&looks[SUM], n, &p)) {
        return is_exps(mc_letter(&p, 'x'), deep - 1) && is_exps(mc_letter(&p, 'y'), deep - 1);
    }
    return (mc_matches(&looks[MULTIPLE], n, &p) || mc_matches(&looks[PART], n, &p)) &&
           mc_letter_number(&p, 'k') > 0 && is_exps(mc_letter(&p, 'x'), deep - 1);
}

/* A number has no exponential that could overflow. */
static bool is_number(const mc_node *n)
{
    double k;
    return mc_const_number(below_views(n), &k);
}

enum { TERMS_DEEP = 8 };

static mc_node *log1p_of_exps(const struct mc_match *m)
{
    mc_node *s = m->root->in[0];
    return is_exps(s, TERMS_DEEP) && !is_number(s) ? mc_op1("softplus", mc_op1("log", s)) : NULL;
}

static bool adds_exps(const mc_node *s)
{
    return mc_matches(&looks[SUM], s, NULL) && is_exps(s, TERMS_DEEP) &&
           !(is_number(s->in[0]) && is_number(s->in[1]));
}

static mc_node *log_of_exps(const struct mc_match *m)
{
    mc_node *s = m->root->in[0];
    return adds_exps(s) ? mc_op2("logaddexp", mc_op1("log", s->in[0]), mc_op1("log", s->in[1])) : NULL;
}

/* log of a view of f ==> the view of log(f) */
static mc_node *log_of_view(const struct mc_match *m)
{
    mc_node *v = m->root->in[0];
    return is_view(v) && (has_log(below_views(v)) || (is_exps(below_views(v), TERMS_DEEP) && !is_number(v)))
               ? views_of(v, false)
               : NULL;
}

/* log(1 - exp(x)) is computed by log1p where exp(x) is small, else by expm1. The argument of each branch is
 * clamped to the branch's own range; this recognises a clamped argument. */
static bool is_clamped(const mc_node *x)
{
    double v;
    return x->op->flags & OP_PICKS && mc_const_number(x->in[1], &v) && v >= -1 && v <= -1;
}

#define ONE_LESS_EXP "where(x > -1, log(-expm1(maximum(x, -1))), log1p(-exp(minimum(x, -1))))"
static bool not_held(const struct mc_match *m) { return !is_clamped(mc_letter(m, 'x')); }

/* Where erfc underflows, log(erfc(x)) and exp(-x*x)/erfc(x) are computed by the asymptotic series. */
static bool has_upper_bound(const mc_node *x)
{
    return mc_matches(&looks[CAPPED], x, NULL);
}

static bool not_capped(const struct mc_match *m)
{
    return !has_upper_bound(mc_letter(m, 'x'));
}

/* From this x on the series is accurate to the last digits. The square of erfc does not underflow here. */
static double erfc_limit(mc_dtype d)
{
    return d == MC_FLOAT64 ? 18 : d == MC_FLOAT16 ? 3 : 5;
}

/* erfc(x) = exp(-s) / (x sqrt(pi)) * (1 - 1/(2s) + 3/(2s)^2 - 15/(2s)^3 ...), s = x*x and h = 1/(2s). */
#define SERIES "(1 - h * (1 - 3 * h * (1 - 5 * h * (1 - 7 * h * (1 - 9 * h * (1 - 11 * h * (1 - 13 * h * (1 - 15 * h))))))))"
static mc_node *by_series(mc_node *x, const char *text)
{
    mc_node *c = mc_node_like(x, erfc_limit(x->type.dtype));
    struct mc_bind b[] = {
        { "x", x, NULL }, { "c", c, NULL }, { "b", NULL, NULL }, { "s", NULL, NULL }, { "h", NULL, NULL }
    };
    b[2].node = mc_expr(x->graph, "maximum(x, c)", b, 2); /* no division by 0 in the branch not taken */
    b[3].node = mc_expr(x->graph, "sqr(b)", b, 3);
    b[4].node = mc_expr(x->graph, "0.5 / s", b, 4);
    return mc_expr(x->graph, text, b, 5);
}

static mc_node *log_erfc(const struct mc_match *m)
{
    return by_series(mc_letter(m, 'x'),
                     "where(x < 0.5, log1p(-erf(minimum(x, 0.5))), where(x < c, log(erfc(minimum(x, c))), "
                     "log(" SERIES ") - s - log(b) - 0.572364942924700087071714))");
}

static bool is_negative_of(const mc_node *a, const mc_node *b)
{
    struct mc_match p, q;
    if (mc_matches(&looks[NEGATIVE], a, &p) && mc_letter(&p, 'x') == b) {
        return true;
    }
    if (mc_matches(&looks[NEGATIVE], b, &q) && mc_letter(&q, 'x') == a) {
        return true;
    }
    if (mc_matches(&looks[DIFFERENCE], a, &p)) {
        return mc_matches(&looks[DIFFERENCE], b, &q) && mc_letter(&p, 'x') == mc_letter(&q, 'y') &&
               mc_letter(&p, 'y') == mc_letter(&q, 'x');
    }
    return mc_matches(&looks[MULTIPLE], a, &p) && mc_matches(&looks[MULTIPLE], b, &q) &&
           mc_letter(&p, 'x') == mc_letter(&q, 'x') &&
           mc_letter_number(&p, 'k') + mc_letter_number(&q, 'k') == 0;
}

/* exp(-sqr(z)) / erfc(x), where z is x or -x: the square has lost the sign. */
static bool is_ratio(const struct mc_match *m)
{
    const mc_node *x = mc_letter(m, 'x'), *z = mc_letter(m, 'z');
    return !has_upper_bound(x) && (x == z || is_negative_of(x, z));
}

static mc_node *erfc_ratio(const struct mc_match *m)
{
    mc_node *y = mc_letter(m, 'y');
    mc_node *r = by_series(mc_letter(m, 'x'), "where(x < c, exp(-sqr(minimum(x, c))) / erfc(minimum(x, c)), "
                                              "b * 1.77245385090551602729817 / " SERIES ")");
    return y ? mc_op2("mul", r, y) : r;
}

/* exp(x) * sigmoid(-x) is sigmoid(x), wherever the two are in a product. */
enum { MOST_FACTORS = 32 };

static int factors(const struct mc_match *m, mc_node **f)
{
    struct mc_match p;
    int n = 1;
    f[0] = m->root;
    for (int i = 0; i < n;) {
        if (n < MOST_FACTORS &&
            mc_matches(&looks[PRODUCT], f[i], &p)) { /* also a product that has other users */
            f[i] = mc_letter(&p, 'x');
            f[n++] = mc_letter(&p, 'y');
        } else {
            i++;
        }
    }
    return n;
}

static mc_node *exp_times_sigmoid(const struct mc_match *m)
{
    mc_node *f[MOST_FACTORS + 1], *product = NULL;
    int n = factors(m, f);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n && is_exponential(f[i]); k++) {
            if (mc_matches(&looks[SIGMOID], f[k], NULL) && is_negative_of(f[i]->in[0], f[k]->in[0])) {
                f[k] = mc_op1("sigmoid", f[i]->in[0]);
                for (int j = 0; j < n; j++) {
                    product = j == i ? product : product ? mc_op2("mul", product, f[j]) : f[j];
                }
                return product;
            }
        }
    }
    return NULL;
}

/* y / ((1 + exp(x)) * z)  ==>  y * sigmoid(-x) / z, for each such factor and for squares of it. */
static mc_node *over_one_plus_exp(const struct mc_match *m)
{
    mc_node *f[MOST_FACTORS + 1] = { m->root->in[1] }, *above = m->root->in[0], *below = NULL;
    int times[MOST_FACTORS + 1] = { 1 }, n = 1;
    struct mc_match p;
    bool found = false;
    for (int i = 0; i < n;) {
        if (n < MOST_FACTORS && mc_matches(&looks[PRODUCT], f[i], &p)) {
            f[i] = mc_letter(&p, 'x');
            f[n] = mc_letter(&p, 'y');
            times[n++] = times[i];
        } else if (times[i] < MOST_FACTORS && mc_matches(&looks[SQUARE], f[i], &p)) {
            f[i] = mc_letter(&p, 'x');
            times[i] *= 2;
        } else {
            i++;
        }
    }
    for (int i = 0; i < n; i++) {
        const bool plus = mc_matches(&looks[ONE_PLUS_EXP], f[i], &p);
        mc_node *by = plus ? mc_op1("sigmoid", mc_op1("neg", mc_letter(&p, 'x'))) : f[i];
        found |= plus;
        for (int k = 0; k < times[i]; k++) {
            mc_node **side = plus ? &above : &below;
            *side = *side ? mc_op2("mul", *side, by) : by;
        }
    }
    return !found ? NULL : below ? mc_op2("true_div", above, below) : above;
}

static const struct mc_rule rows[] = {
    /* near 0 */
    { "log1p(exp(x))",              "softplus(x)",               ROUND  },
    { "log(1 + x)",                 "log1p(x)",                  ROUND  },
    { "log(1 - x)",                 "log1p(-x)",                 ROUND  },
    { "exp(x) - 1",                 "expm1(x)",                  ROUND  },
    { "1 - exp(x)",                 "-expm1(x)",                 ROUND  },
    { "expm1(x) + 1",               "exp(x)",                    ROUND  },
    { "-1 - expm1(x)",              "-exp(x)",                   ROUND  },
    { "log(-expm1(x))",             ONE_LESS_EXP,                ROUND,  .when = not_held },
    { "log1p(-exp(x))",             ONE_LESS_EXP,                ROUND,  .when = not_held },
    { "log(expm1(x))",              "x + log(-expm1(-x))",       ROUND  },

    /* sums of exponentials */
    { "log(exp(x) + exp(y))",       "logaddexp(x, y)",           ROUND  },
    { .op = "log", .make = log_of_exps, .promise = ROUND, .name = "log of exps",
      .sample = "log(exp(x) + exp(y) + exp(x * y)); log(exp(x) * 2 + exp(y)); log(exp(x) + sum(exp(y), axis=1, keepdims=True)); "
                "log(exp(x) + exp(y[0])); log(exp(x) + alloc(1.0f64, x.shape))" },
    { "sum(exp(x) * y, axis=a, keepdims=b, dtype=c, acc_dtype=d) / sum(exp(x), axis=a, keepdims=b, dtype=e, acc_dtype=f)", NULL,
      ROUND, .make = mean_by_exp, .name = "mean by exp",
      .sample = "sum(exp(x) * y) / sum(exp(x)); sum(y * exp(x), axis=1) / sum(exp(x), axis=1)" },
    { .op = "log", .make = log_sum_exp, .promise = ROUND, .name = "log sum exp",
      .sample = "log(sum(exp(x), axis=1)); log(sum(exp(x))); log(sum(exp(x), axis=0, keepdims=True)); log(sum(reshape(exp(x), [-1]))); "
                "log(sum(alloc(exp(x), [2, x.shape[0], x.shape[1]]), axis=0)); log(sum(exp(x)[[0, 1, 1]], axis=1)); "
                "log(sum(sum(exp(x), axis=1), keepdims=True))" },
    { "exp(x) / z",                 NULL, ROUND, .make = exp_over_sum, .name = "exp over its sum",
      .sample = "exp(x) / sum(exp(x)); exp(x) / sum(exp(x), axis=[0, 1], keepdims=True)" },
    { "(exp(x) * y) / z",           NULL, ROUND, .make = exp_over_sum, .name = "product with exp over its sum",
      .sample = "(exp(x) * y) / sum(exp(x))" },
    { "exp(x) * (y / z)",           NULL, ROUND, .make = exp_over_sum, .name = "exp times a quotient by its sum",
      .sample = "exp(x) * (y / sum(exp(x)))" },

    /* logarithms of formulas whose logarithm has a stable form */
    { "log(erfc(x) * 0.5)",         "where(x < 0, log1p(erfc(-minimum(x, 0)) * -0.5), log(erfc(maximum(x, 0))) - 0.693147180559945309417232)", ROUND },
    { "log(erfc(x) / 2)",           "log(erfc(x) * 0.5)",        ROUND  },
    { .op = "log", .make = log_of_product, .promise = ROUND, .name = "log of a product",
      .sample = "log(exp(x) * y); log(softmax(x) / y); log(y / softmax(x)); log(sqr(sigmoid(x))); log(sqrt(erfc(x)))" },
    { .op = "log1p", .make = log1p_of_exps, .promise = ROUND, .name = "log1p of sum exp",
      .sample = "log1p(sum(exp(x), axis=1)); log1p(exp(x) * 2); log1p(exp(x) + exp(y)); log1p(sum(exp(x)) / 3)" },
    { .op = "log", .make = log_of_view, .promise = ROUND, .name = "log of a view",
      .sample = "log(softmax(x)[1]); log(transpose(softmax(x))); log(softmax(x)[[0, 1], [1, 0]]); log(reshape(exp(x) + exp(y), [-1])); log(specify_shape(exp(x) + 1, [-1, -1])); log(sum(exp(x), axis=1)[None][:, ::-1])" },

    /* sigmoid and softplus */
    { "log(sigmoid(x))",            "-softplus(-x)",             ROUND  },
    { "log1p(-sigmoid(x))",         "-softplus(x)",              ROUND  },
    { "1 - sigmoid(x)",             "sigmoid(-x)",               ROUND  },
    { "sigmoid(x) - 1",             "-sigmoid(-x)",              ROUND  },
    { "softplus(x) - x",            "softplus(-x)",              FINITE },
    { "x - softplus(x)",            "-softplus(-x)",             FINITE },
    { "softplus(-x) + x",           "softplus(x)",               FINITE },
    { "exp(x) / (1 + exp(x))",      "sigmoid(x)",                ROUND  },          /* inf / inf */
    { "(exp(x) * y) / (1 + exp(x))", "sigmoid(x) * y",           ROUND  },
    { "x / (1 + exp(y))",           "x * sigmoid(-y)",           ROUND  },
    { .op = "true_div", .make = over_one_plus_exp, .promise = ROUND, .name = "over one plus exp",
      .sample = "x / ((1 + exp(x)) * (1 + exp(-x))); y / sqr(1 + exp(x))" },
    { "exp(x) / (exp(x) + exp(y))", "sigmoid(x - y)",            ROUND  },
    { "(exp(x) * z) / (exp(x) + exp(y))", "sigmoid(x - y) * z",  ROUND  },
    { "exp(x) * (z / (exp(x) + exp(y)))", "sigmoid(x - y) * z",  ROUND  },
    { "sigmoid(x) - sigmoid(x) * sigmoid(-x)", "sqr(sigmoid(x))", ROUND },
    { "sigmoid(-x) - sigmoid(-x) * sigmoid(x)", "sqr(sigmoid(-x))", ROUND },
    { "y - sigmoid(x) * y",         "sigmoid(-x) * y",           ROUND  },
    { "sigmoid(x) * y - y",         "-(sigmoid(-x) * y)",        ROUND  },
    { "exp(x) * sqr(sigmoid(-x))",  "sigmoid(x) * sigmoid(-x)",  ROUND  },
    { "exp(-x) * sqr(sigmoid(x))",  "sigmoid(x) * sigmoid(-x)",  ROUND  },
    { .op = "mul", .make = exp_times_sigmoid, .promise = ROUND, .name = "exp times sigmoid",
      .sample = "exp(x) * sigmoid(-x); (y * exp(-x)) * (sigmoid(x) * y)" },
    { "1 + tanh(x)",                "sigmoid(x * 2) * 2",        ROUND  },
    { "1 - tanh(x)",                "sigmoid(x * -2) * 2",       ROUND  },
    { "tanh(x) - 1",                "sigmoid(x * -2) * -2",      ROUND  },
    { "-1 - tanh(x)",               "sigmoid(x * 2) * -2",       ROUND  },

    /* the error function */
    { "1 - erf(x)",                 "erfc(x)",                   ROUND  },
    { "1 + erf(x)",                 "erfc(-x)",                  ROUND  },
    { "erf(x) - 1",                 "-erfc(x)",                  ROUND  },
    { "-1 - erf(x)",                "-erfc(-x)",                 ROUND  },
    { "y - erf(x) * y",             "erfc(x) * y",               ROUND  },
    { "y + erf(x) * y",             "erfc(-x) * y",              ROUND  },
    { "erf(x) * y - y",             "-(erfc(x) * y)",            ROUND  },
    { "k - erf(x) * m",             "erfc(-x) * k",              ROUND,  .when = k_is_minus_m },
    { "erf(x) * m - k",             "erfc(-x) * m",              ROUND,  .when = k_is_minus_m },
    { "erf(x) * m + k",             "erfc(x) * k",               ROUND,  .when = k_is_minus_m },
    { "1 - erfc(x)",                "erf(x)",                    ROUND  },
    { "erfc(x) - 1",                "-erf(x)",                   ROUND  },
    { "2 - erfc(x)",                "erfc(-x)",                  ROUND  },
    { "erfc(x) - 2",                "-erfc(-x)",                 ROUND  },
    { "log1p(-erf(x))",             "log(erfc(x))",              ROUND,  .when = not_capped },
    { "log1p(erf(x))",              "log(erfc(-x))",             ROUND  },
    { "log(erfc(x))",               NULL, ROUND, .when = not_capped, .make = log_erfc, .name = "log erfc",
      .sample = "log(erfc(x)); log(erfc(x * 20))" },
    { "exp(-sqr(z)) / erfc(x)",     NULL, ROUND, .when = is_ratio, .make = erfc_ratio, .name = "ratio to erfc",
      .sample = "exp(-sqr(x)) / erfc(x); exp(-sqr(x)) / erfc(-x)" },
    { "exp(-sqr(z)) * (y / erfc(x))", NULL, ROUND, .when = is_ratio, .make = erfc_ratio, .name = "ratio to erfc in a product",
      .sample = "exp(-sqr(x)) * (y / erfc(x))" },
    { "(exp(-sqr(z)) * y) / erfc(x)", NULL, ROUND, .when = is_ratio, .make = erfc_ratio, .name = "product over erfc",
      .sample = "(exp(-sqr(x)) * y) / erfc(x)" },
};
const struct mc_rule_table mc_rules_stable = { rows, (int)NELEM(rows), .mends = true, .probe = looks, .nprobe = (int)NELEM(looks) };
