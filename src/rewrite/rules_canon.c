/* rules_canon.c: the algebra of element-wise ops. The rules of an op are tried in order.
 *
 *   x y z   any node; the same letter twice means the same node
 *   k m n   a constant whose elements are all equal; arithmetic among constants folds as it is built
 *
 * Canonical form: signs and constants are outermost, constants are last, x*x is sqr(x), and a product with
 * 1/y is a division by y.
 *
 * Traps: x + 0 is not x for -0; x - x and x / x are NaN at infinity; -(x - y) flips the sign of a zero;
 * an int8 square may be negative; k * m may overflow where x * k * m does not. */
#include "op/collective.h"
#include "rewrite/rewrite.h"
#include <math.h>

static bool whole(const struct mc_match *m) { return !mc_is_float(m->root->type.dtype); }
static bool real(const struct mc_match *m) { return mc_is_float(m->root->type.dtype); }
static bool signed_(const struct mc_match *m) { return mc_dtypes[m->root->type.dtype].kind != KIND_UINT; }

static bool varies(const struct mc_match *m, char c)
{
    double v;
    return !mc_const_number(mc_letter(m, c), &v);
}

static bool k_may_wait(const struct mc_match *m)
{
    return varies(m, 'x') && varies(m, 'y') && mc_letter_may_wait(m, 'k');
}

/* Is v well inside the range of the dtype, far from overflow and underflow? */
static bool tame_constant(double v, mc_dtype d)
{
    double most = d == MC_FLOAT16 ? 6e4 : d == MC_FLOAT64 ? 1e300 : 1e37;
    return !mc_is_float(d) ||
           (fabs(v) <= most && fabs(v) >= 1 / most && (d != MC_FLOAT16 || fabs(v) >= 7e-5));
}

static bool tame_product_constant(const struct mc_match *m)
{
    return tame_constant(mc_letter_number(m, 'k') * mc_letter_number(m, 'm'), m->root->type.dtype);
}

static bool tame_k_over_m(const struct mc_match *m)
{
    return tame_constant(mc_letter_number(m, 'k') / mc_letter_number(m, 'm'), m->root->type.dtype);
}

static bool tame_m_over_k(const struct mc_match *m)
{
    return tame_constant(mc_letter_number(m, 'm') / mc_letter_number(m, 'k'), m->root->type.dtype);
}

/* Is k negative, and -k representable in its dtype? */
static bool k_negative(const struct mc_match *m)
{
    char bits[8] = { 0 };
    double k = mc_letter_number(m, 'k');
    mc_store_f64(m->root->type.dtype, bits, -k);
    return k < 0 && mc_load_f64(m->root->type.dtype, bits) > 0;
}

static mc_node *propagate_constant(const struct mc_match *m) { return m->root->in[0]; }
static mc_node *of_one_rank(const struct mc_match *m) { return mc_collective_alone(m->root); }

static const struct mc_rule rows[] = {
    /* identities */
    { "x + 0",                      "x",                        FINITE },          /* -0 + 0 is +0 */
    { "x - 0",                      "x",                        EXACT  },
    { "0 - x",                      "-x",                       FINITE },
    { "x * 1",                      "x",                        EXACT  },
    { "x / 1",                      "x",                        EXACT  },
    { "x // 1",                     "x",                        EXACT,  .when = whole },
    { "x % 1",                      "0",                        EXACT,  .when = whole },
    { "x ** 1",                     "x",                        EXACT  },
    { "x * 0",                      "0",                        FINITE },
    { "0 / x",                      "0",                        FINITE },
    { "x ** 0",                     "1",                        EXACT  },          /* also for NaN */
    { "1 ** x",                     "1",                        EXACT  },
    { "x - x",                      "0",                        FINITE, .tags = "mends" },
    { "x / x",                      "1",                        FINITE, .tags = "mends" },
    { "maximum(x, x)",              "x",                        EXACT  },
    { "minimum(x, x)",              "x",                        EXACT  },
    { "maximum(maximum(x, k), m)",  "maximum(x, maximum(k, m))", FINITE },
    { "minimum(minimum(x, k), m)",  "minimum(x, minimum(k, m))", FINITE },
    { "maximum(maximum(x, y), y)",  "maximum(x, y)",            FINITE },
    { "minimum(minimum(x, y), y)",  "minimum(x, y)",            FINITE },
    { "floor(floor(x))",            "floor(x)",                 EXACT  },
    { "ceil(ceil(x))",              "ceil(x)",                  EXACT  },
    { "trunc(trunc(x))",            "trunc(x)",                 EXACT  },
    { "round(round(x))",            "round(x)",                 EXACT  },
    { "floor(x)",                   "x",                        EXACT,  .when = whole },
    { "ceil(x)",                    "x",                        EXACT,  .when = whole },
    { "trunc(x)",                   "x",                        EXACT,  .when = whole },
    { "round(x)",                   "x",                        EXACT,  .when = whole },
    { "abs(abs(x))",                "abs(x)",                   EXACT  },
    { "abs(-x)",                    "abs(x)",                   EXACT,  .when = signed_ },
    { "abs(sqr(x))",                "sqr(x)",                   EXACT,  .when = real },
    { "sqr(abs(x))",                "sqr(x)",                   EXACT  },
    { "sqr(-x)",                    "sqr(x)",                   EXACT  },
    { "sgn(sgn(x))",                "sgn(x)",                   EXACT  },

    /* conditions */
    { "where(x, y, y)",             "y",                        EXACT  },
    { "where(True, x, y)",          "x",                        EXACT  },
    { "where(False, x, y)",         "y",                        EXACT  },
    { "where(~c, x, y)",            "where(c, y, x)",           EXACT  },
    { "where(c, x, 0) + where(c, 0, y)", "where(c, x, y)",      FINITE },
    { "where(c, where(c, x, y), z)", "where(c, x, z)",          EXACT  },
    { "where(c, x, where(c, y, z))", "where(c, x, z)",          EXACT  },
    { "x == x",                     "1",                        FINITE },
    { "x != x",                     "0",                        FINITE },
    { "x <= x",                     "1",                        FINITE },
    { "x >= x",                     "1",                        FINITE },
    { "x < x",                      "0",                        EXACT  },
    { "x > x",                      "0",                        EXACT  },
    { "~(x == y)",                  "x != y",                   EXACT  },
    { "~(x != y)",                  "x == y",                   EXACT  },
    { "~(x < y)",                   "x >= y",                   FINITE },
    { "~(x <= y)",                  "x > y",                    FINITE },
    { "~(x > y)",                   "x <= y",                   FINITE },
    { "~(x >= y)",                  "x < y",                    FINITE },
    { "~~x",                        "x",                        EXACT  },
    { "and_(x, x)",                 "x",                        EXACT  },
    { "or_(x, x)",                  "x",                        EXACT  },
    { "xor(x, x)",                  "0",                        EXACT  },
    { "and_(x, 0)",                 "0",                        EXACT  },
    { "or_(x, 0)",                  "x",                        EXACT  },
    { "xor(x, 0)",                  "x",                        EXACT  },
    { "and_(x, True)",              "x",                        EXACT  },
    { "or_(x, True)",               "True",                     EXACT  },

    /* signs move outwards */
    { "-(-x)",                      "x",                        EXACT  },
    { "x * -1",                     "-x",                       EXACT  },
    { "x / -1",                     "-x",                       EXACT  },
    { "x + (-y)",                   "x - y",                    EXACT  },
    { "x - (-y)",                   "x + y",                    EXACT  },
    { "(-x) - y",                   "-(x + y)",                 FINITE, .once = true },
    { "-(x - y)",                   "y - x",                    FINITE, .once = true },
    { "-((x - y) * z)",             "(y - x) * z",              FINITE, .once = true },
    { "-((x - y) / z)",             "(y - x) / z",              FINITE, .once = true },
    { "(-x) * y",                   "-(x * y)",                 EXACT  },
    { "(-x) / y",                   "-(x / y)",                 EXACT  },
    { "x / (-y)",                   "-(x / y)",                 EXACT  },
    { "-(x * k)",                   "x * (-k)",                 EXACT,  .once = true },
    { "-(x / k)",                   "x / (-k)",                 EXACT,  .once = true },
    { "-(k / x)",                   "(-k) / x",                 EXACT,  .once = true },
    { "-(x + k)",                   "(-k) - x",                 FINITE, .once = true },

    /* constants move outwards and combine; negative ones are not added or subtracted */
    { "x + k",                      "x - (-k)",                 EXACT,  .when = k_negative },
    { "x - k",                      "x + (-k)",                 EXACT,  .when = k_negative },
    { "(x + k) + m",                "x + (k + m)",              ROUND  },
    { "(x + k) - m",                "x + (k - m)",              ROUND  },
    { "(x - k) + m",                "x + (m - k)",              ROUND  },
    { "(x - k) - m",                "x - (k + m)",              ROUND  },
    { "(k - x) + m",                "(k + m) - x",              ROUND  },
    { "(k - x) - m",                "(k - m) - x",              ROUND  },
    { "k - (x + m)",                "(k - m) - x",              ROUND  },
    { "k - (x - m)",                "(k + m) - x",              ROUND  },
    { "k - (m - x)",                "x + (k - m)",              ROUND  },
    { "(x + k) + y",                "(x + y) + k",              ROUND,  .when = k_may_wait, .once = true },
    { "(x * k) * m",                "x * (k * m)",              ROUND,  .when = tame_product_constant },
    { "(x * k) / m",                "x * (k / m)",              ROUND,  .when = tame_k_over_m },
    { "(x / k) * m",                "x * (m / k)",              ROUND,  .when = tame_m_over_k },
    { "(x / k) / m",                "x / (k * m)",              ROUND,  .when = tame_product_constant },
    { "(k / x) * m",                "(k * m) / x",              ROUND,  .when = tame_product_constant },
    { "(k / x) / m",                "(k / m) / x",              ROUND,  .when = tame_k_over_m },
    { "k / (x * m)",                "(k / m) / x",              ROUND,  .when = tame_k_over_m },
    { "k / (x / m)",                "(k * m) / x",              ROUND,  .when = tame_product_constant },
    { "k / (m / x)",                "x * (k / m)",              ROUND,  .when = tame_k_over_m },
    { "(x * k) * y",                "(x * y) * k",              ROUND,  .when = k_may_wait, .once = true },
    { "x + x",                      "x * 2",                    EXACT,  .when = real },
    { "x * k + x",                  "x * (k + 1)",              ROUND,  .when = real, .once = true },
    { "x * k + x * m",              "x * (k + m)",              ROUND,  .when = real, .once = true },
    { "x * k + abs(x) * k",         "maximum(x, 0) * (k + k)",  FINITE, .tags = "derivative", .when = real }, /* relu */

    /* cancellation */
    { "(x + y) - y",                "x",                        FINITE, .tags = "mends" },
    { "(x - y) + y",                "x",                        FINITE, .tags = "mends" },
    { "x - (x - y)",                "y",                        FINITE, .tags = "mends" },
    { "x - (x + y)",                "-y",                       FINITE, .tags = "mends" },
    { "(x - y) - x",                "-y",                       FINITE, .tags = "mends" },
    { "(x * y) / y",                "x",                        FINITE, .tags = "mends" },
    { "(x / y) * y",                "x",                        FINITE, .tags = "mends" },
    { "x / (x * y)",                "1 / y",                    FINITE, .tags = "mends" },
    { "x * (y * (z / x))",          "y * z",                    FINITE, .tags = "mends" },
    { "(x * y) / (x * z)",          "y / z",                    FINITE, .tags = "mends" },
    { "x / (x / y)",                "y",                        FINITE, .tags = "mends" },
    { "(x / y) / x",                "1 / y",                    FINITE, .tags = "mends" },

    /* products and powers */
    { "reciprocal(x)",              "1 / x",                    EXACT  },
    { "x * (1 / y)",                "x / y",                    ROUND  },
    { "x / (1 / y)",                "x * y",                    ROUND  },
    { "1 / (x / y)",                "y / x",                    ROUND  },
    { "x * x",                      "sqr(x)",                   EXACT  },
    { "x ** 2",                     "sqr(x)",                   ROUND  },
    { "abs(x) * abs(y)",            "abs(x * y)",               EXACT,  .when = real, .once = true },
    { "abs(x) / abs(y)",            "abs(x / y)",               EXACT,  .when = real, .once = true },

    /* a function of its inverse, where the inverse loses nothing (FINITE: outside its domain it is NaN) */
    { "log(exp(x))",                "x",                        ROUND, .tags = "mends" },
    { "exp(log(x))",                "x",                        FINITE, .tags = "mends" },          /* NaN below 0 */
    { "log1p(expm1(x))",            "x",                        ROUND, .tags = "mends" },
    { "expm1(log1p(x))",            "x",                        FINITE, .tags = "mends" },
    { "sqrt(sqr(x))",               "abs(x)",                   ROUND, .tags = "mends" },
    { "sqr(sqrt(x))",               "x",                        FINITE, .tags = "mends" },
    { "sinh(arcsinh(x))",           "x",                        ROUND, .tags = "mends" },
    { "arcsinh(sinh(x))",           "x",                        ROUND, .tags = "mends" },
    { "arctanh(tanh(x))",           "x",                        ROUND, .tags = "mends" },
    { "tanh(arctanh(x))",           "x",                        FINITE, .tags = "mends" },
    { "deg2rad(rad2deg(x))",        "x",                        ROUND  },
    { "rad2deg(deg2rad(x))",        "x",                        ROUND  },
    { "cos(-x)",                    "cos(x)",                   EXACT  },
    { "cosh(-x)",                   "cosh(x)",                  EXACT  },

    /* ops that only gradients read: no gradient is taken after this */
    { .op = "consider_constant", .make = propagate_constant, .promise = EXACT, .name = "constant to gradients", .tags = "derivative", .sample = "consider_constant(x)" },
    { .op = "grad_clip",  .make = propagate_constant, .promise = EXACT, .name = "clipped gradient", .tags = "derivative", .sample = "grad_clip(x, lo=-1, hi=1)" },
    { .op = "grad_scale", .make = propagate_constant, .promise = EXACT, .name = "scaled gradient",  .tags = "derivative", .sample = "grad_scale(x, by=2)" },

    /* a rank that is alone: the ranks of a user's graph may be named later */
    { .op = "all_reduce", .make = of_one_rank, .promise = EXACT, .name = "all_reduce of one rank", .tags = "derivative", .sample = "all_reduce(x)" },
    { .op = "broadcast",  .make = of_one_rank, .promise = EXACT, .name = "broadcast of one rank", .tags = "derivative", .sample = "broadcast(x)" },
    { .op = "gather_ranks", .make = of_one_rank, .promise = EXACT, .name = "gather of one rank", .tags = "derivative", .sample = "all_gather(x)" },
    { .op = "scatter_ranks", .make = of_one_rank, .promise = EXACT, .name = "scatter of one rank", .tags = "derivative", .sample = "reduce_scatter(x)" },
};
const struct mc_rule_table mc_rules_canon = { rows, (int)NELEM(rows) };
