/* rules_stable.c: the same real function by a formula that keeps its digits.
 *
 * Trap: a rule must not undo itself or run into its own result: the branch of log(erfc(x)) that keeps
 * log(erfc) caps its argument, and the rule does not touch a capped one. */
#include "rewrite/rewrite.h"
#include <math.h>

static bool k_positive(const struct mc_match *m) { return mc_letter_number(m, 'k') > 0; }

static bool is_largest(const mc_node *m, const mc_node *x)
{
    return m->nin && (mc_is_op(m, "max") ? m->in[0] == x : mc_is_op(m, "where") && is_largest(m->in[2], x));
}

/* log(sum(exp(x)))  ==>  m + log(sum(exp(x - m))), m the maximum; an infinite m is not subtracted. */
static mc_node *log_sum_exp(const struct mc_match *m)
{
    mc_node *x = mc_letter(m, 'x');
    int axis[MC_MAX_RANK], rank = x->type.rank, n;
    int64_t order[MC_MAX_RANK];
    struct mc_attr a[2] = { *m->attr[0], *m->attr[1] };
    struct mc_attr yes = *m->attr[1];
    const mc_node *sum = m->root->in[0];
    if ((n = (int)mc_axes_of(sum, 0, rank, axis)) <= 0 || (mc_is_op(x, "sub") && is_largest(x->in[1], x->in[0]))) {
        return NULL; /* nothing to sum, or x - m already */
    }
    int64_t one = 1;
    yes.ints = &one;
    mc_node *most = mc_apply(m->g, mc_op_find("max"), 1, &x, (struct mc_attr[]){ a[0], yes });
    struct mc_bind b[] = { { "x", x, NULL }, { "m", most, NULL }, { "a", NULL, &a[0] }, { "k", NULL, &a[1] }, { "r", NULL, NULL } };
    b[1].node = mc_expr(m->g, "where(isinf(m), 0, m)", b, 2);
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
    return mc_expr(m->g, "r + log(sum(exp(x - m), axis=a, keepdims=k))", b, 5);
}

/* Where erfc has underflown: log(erfc(x)) and exp(-x*x)/erfc(x) by the asymptotic series. */
static bool is_capped(const mc_node *x)
{
    double v;
    return mc_is_op(x, "minimum") && (mc_const_number(x->in[0], &v) || mc_const_number(x->in[1], &v));
}

static bool not_capped(const struct mc_match *m)
{
    return !is_capped(mc_letter(m, 'x'));
}

static double erfc_limit(mc_dtype d)
{
    return d == MC_FLOAT64 ? 26.641747557 : d == MC_FLOAT16 ? 3.5 : 10.0541949; /* beyond, erfc is not normal */
}

#define SERIES "1 - 1 / (2 * s) + 3 / (4 * sqr(s)) - 15 / (8 * sqr(s) * s)"
static mc_node *by_series(const struct mc_match *m, const char *text)
{
    mc_node *x = mc_letter(m, 'x'), *c = mc_node_like(x, erfc_limit(x->type.dtype)), *y = mc_letter(m, 'y');
    struct mc_bind b[] = { { "x", x, NULL }, { "c", c, NULL }, { "y", y, NULL }, { "s", NULL, NULL } };
    b[3].node = mc_expr(m->g, "sqr(maximum(x, c))", b, 2); /* the other branch stays away from 0 */
    return mc_expr(m->g, text, b, 4);
}

static mc_node *log_erfc(const struct mc_match *m)
{
    return by_series(m, "where(x < c, log(erfc(minimum(x, c))), log(" SERIES ") - s - log(maximum(x, c)) - 0.572364942924700087071714)");
}

static mc_node *erfc_ratio(const struct mc_match *m)
{
    return by_series(m, "where(x < c, exp(-sqr(minimum(x, c))) / erfc(minimum(x, c)), maximum(x, c) * 1.77245385090551602729817 / (" SERIES "))");
}

static mc_node *erfc_ratio_times(const struct mc_match *m)
{
    mc_node *r = erfc_ratio(m);
    return mc_op2("mul", r, mc_letter(m, 'y'));
}

/* exp(x) * sigmoid(-x) is sigmoid(x), wherever the two stand in a product. */
enum { MOST_FACTORS = 32 };

static int factors(const struct mc_match *m, mc_node **f)
{
    int n = 1;
    f[0] = m->root;
    for (int i = 0; i < n; ) {
        mc_node *x = f[i];
        if (mc_is_op(x, "mul") && n < MOST_FACTORS && (x == m->root || mc_used_once(m, x))) {
            f[i] = x->in[0];
            f[n++] = x->in[1];
        } else {
            i++;
        }
    }
    return n;
}

static bool is_negative_of(const mc_node *a, const mc_node *b)
{
    double x, y;
    return (mc_is_op(a, "neg") && a->in[0] == b) || (mc_is_op(b, "neg") && b->in[0] == a) ||
           (mc_is_op(a, "sub") && mc_is_op(b, "sub") && a->in[0] == b->in[1] && a->in[1] == b->in[0]) ||
           (mc_is_op(a, "mul") && mc_is_op(b, "mul") && a->in[0] == b->in[0] && mc_const_number(a->in[1], &x) &&
            mc_const_number(b->in[1], &y) && x >= -y && x <= -y);
}

static mc_node *exp_times_sigmoid(const struct mc_match *m)
{
    mc_node *f[MOST_FACTORS + 1], *product = NULL;
    int n = factors(m, f);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n && mc_is_op(f[i], "exp"); k++) {
            if (mc_is_op(f[k], "sigmoid") && is_negative_of(f[i]->in[0], f[k]->in[0])) {
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

static const struct mc_rule rows[] = {
    /* near 0 */
    { "log(1 + x)",                 "log1p(x)",                  ROUND  },
    { "log(1 - x)",                 "log1p(-x)",                 ROUND  },
    { "exp(x) - 1",                 "expm1(x)",                  ROUND  },
    { "1 - exp(x)",                 "-expm1(x)",                 ROUND  },
    { "expm1(x) + 1",               "exp(x)",                    ROUND  },

    /* sums of exponentials */
    { "log(exp(x) + exp(y))",       "where(x == y, x + 0.693147180559945309417232, maximum(x, y) + softplus(-abs(x - y)))", ROUND },
    { "log(exp(x) * k)",            "x + log(k)",                ROUND,  .when = k_positive },
    { "log(sum(exp(x), axis=a, keepdims=b))", NULL, ROUND, .make = log_sum_exp, .name = "log sum exp",
      .sample = "log(sum(exp(x), axis=1)); log(sum(exp(x))); log(sum(exp(x), axis=0, keepdims=True))" },

    /* sigmoid and softplus */
    { "log(sigmoid(x))",            "-softplus(-x)",             ROUND  },
    { "log1p(exp(x))",              "softplus(x)",               ROUND  },
    { "log1p(-sigmoid(x))",         "-softplus(x)",              ROUND  },
    { "1 - sigmoid(x)",             "sigmoid(-x)",               ROUND  },
    { "sigmoid(x) - 1",             "-sigmoid(-x)",              ROUND  },
    { "softplus(x) - x",            "softplus(-x)",              FINITE },
    { "softplus(-x) + x",           "softplus(x)",               FINITE },
    { "exp(x) / (1 + exp(x))",      "sigmoid(x)",                ROUND  },          /* inf / inf */
    { "(exp(x) * y) / (1 + exp(x))", "sigmoid(x) * y",           ROUND  },
    { "x / (1 + exp(y))",           "x * sigmoid(-y)",           ROUND  },
    { "exp(x) * (y / (1 + exp(x)))", "sigmoid(x) * y",           ROUND  },
    { "exp(x) / (exp(x) + exp(y))", "sigmoid(x - y)",            ROUND  },
    { "(exp(x) * z) / (exp(x) + exp(y))", "sigmoid(x - y) * z",  ROUND  },
    { "exp(x) * (z / (exp(x) + exp(y)))", "sigmoid(x - y) * z",  ROUND  },
    { "sigmoid(x) - sigmoid(x) * sigmoid(-x)", "sqr(sigmoid(x))", ROUND },
    { "sigmoid(-x) - sigmoid(-x) * sigmoid(x)", "sqr(sigmoid(-x))", ROUND },
    { "exp(x) * sqr(sigmoid(-x))",  "sigmoid(x) * sigmoid(-x)",  ROUND  },
    { "exp(-x) * sqr(sigmoid(x))",  "sigmoid(x) * sigmoid(-x)",  ROUND  },
    { .op = "mul", .make = exp_times_sigmoid, .promise = ROUND, .name = "exp times sigmoid",
      .sample = "exp(x) * sigmoid(-x); (y * exp(-x)) * (sigmoid(x) * y)" },

    /* the error function */
    { "1 - erf(x)",                 "erfc(x)",                   ROUND  },
    { "1 + erf(x)",                 "erfc(-x)",                  ROUND  },
    { "erf(x) - 1",                 "-erfc(x)",                  ROUND  },
    { "1 - erfc(x)",                "erf(x)",                    ROUND  },
    { "erfc(x) - 1",                "-erf(x)",                   ROUND  },
    { "log(erfc(x))",               NULL, ROUND, .when = not_capped, .make = log_erfc, .name = "log erfc",
      .sample = "log(erfc(x)); log(erfc(x * 20))" },
    { "exp(-sqr(x)) / erfc(x)",     NULL, ROUND, .when = not_capped, .make = erfc_ratio, .name = "ratio to erfc",
      .sample = "exp(-sqr(x)) / erfc(x)" },
    { "exp(-sqr(x)) * (y / erfc(x))", NULL, ROUND, .when = not_capped, .make = erfc_ratio_times, .name = "ratio to erfc in a product",
      .sample = "exp(-sqr(x)) * (y / erfc(x))" },
    { "(exp(-sqr(x)) * y) / erfc(x)", NULL, ROUND, .when = not_capped, .make = erfc_ratio_times, .name = "product over erfc",
      .sample = "(exp(-sqr(x)) * y) / erfc(x)" },
};
const struct mc_rule_table mc_rules_stable = { rows, (int)NELEM(rows) };
