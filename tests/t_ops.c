/* t_ops.c: the tables of ops, tested from the tables.  A new row of ops.def is tested by being there:
 * every dtype against the widest, special values; layouts and derivatives have files of their own.
 *
 * `oracles` holds each scalar op a second time, in long double, written independently. */
#include "scalar_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a second opinion ---- */

typedef long double real;
static real psi(real x)
{
    real s = 0;
    for (int k = 0; k < 60; k++) {
        s -= 1 / (x + k);
    }
    x += 60;
    real q = 1 / (x * x);
    return s + logl(x) - 1 / (2 * x) - q / 12 + q * q / 120 - q * q * q / 252;
}
static real tri_gamma(real x)
{
    real s = 0;
    for (int k = 0; k < 60; k++) {
        s += 1 / ((x + k) * (x + k));
    }
    x += 60;
    real q = 1 / (x * x);
    return s + 1 / x + q / 2 + q / (6 * x) - q * q / (30 * x) + q * q * q / (42 * x);
}
/* As NumPy has them: what fmod leaves, with b's sign; a less that, divided. */
static real left(real a, real b)
{
    real r = fmodl(a, b);
    return r == 0 ? copysignl(0, b) : (r < 0) != (b < 0) ? r + b : r;
}
static real floored(real a, real b)
{
    real r = fmodl(a, b), q = (a - r) / b;
    return b == 0 ? a / b : rintl(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
}
static real sign(real a) { return isnan(a) ? a : (real)((a > 0) - (a < 0)); }

#define ORACLES(X)                                                                                 \
    X(add, a + b) X(sub, a - b) X(mul, a * b) X(true_div, a / b)                                   \
    X(int_div, floored(a, b)) X(mod, left(a, b)) X(pow, powl(a, b))                     \
    X(neg, -a) X(abs, fabsl(a)) X(sqr, a * a) X(sqrt, sqrtl(a)) X(reciprocal, 1 / a)               \
    X(maximum, isnan(a) || isnan(b) ? (real)NAN : fmaxl(a, b))                                     \
    X(minimum, isnan(a) || isnan(b) ? (real)NAN : fminl(a, b))                                     \
    X(clip, a < b ? b : a > c ? c : a) X(sgn, sign(a))                                             \
    X(lt, a < b) X(le, a <= b) X(gt, a > b) X(ge, a >= b) X(eq, a == b) X(neq, a != b)             \
    X(isnan, isnan(a) != 0) X(isinf, isinf(a) != 0) X(where, a != 0 ? b : c)                       \
    X(exp, expl(a)) X(exp2, exp2l(a)) X(expm1, expm1l(a)) X(log, logl(a)) X(log2, log2l(a))        \
    X(log10, log10l(a)) X(log1p, log1pl(a))                                                        \
    X(floor, floorl(a)) X(ceil, ceill(a)) X(trunc, truncl(a)) X(round, rintl(a))                   \
    X(round_half_away, roundl(a))                                                                  \
    X(sin, sinl(a)) X(cos, cosl(a)) X(tan, tanl(a)) X(arcsin, asinl(a)) X(arccos, acosl(a))        \
    X(arctan, atanl(a)) X(arctan2, atan2l(a, b)) X(sinh, sinhl(a)) X(cosh, coshl(a))               \
    X(tanh, tanhl(a)) X(arcsinh, asinhl(a)) X(arccosh, acoshl(a)) X(arctanh, atanhl(a))            \
    X(deg2rad, a * 3.14159265358979323846264338L / 180)                                            \
    X(rad2deg, a * 180 / 3.14159265358979323846264338L)                                            \
    X(erf, erfl(a)) X(erfc, erfcl(a)) X(gammaln, lgammal(a))                                       \
    X(sigmoid, a < 0 ? expl(a) / (1 + expl(a)) : 1 / (1 + expl(-a)))                               \
    X(softplus, isnan(a) ? a : fmaxl(a, 0) + log1pl(expl(-fabsl(a))))                              \
    X(xlogx, a == 0 ? 0 : a * logl(a)) X(xlogy0, a == 0 ? 0 : a * logl(b))
#define ORACLE(name, e)                                                                            \
    static real oracle_##name(real a, real b, real c)                                              \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return e;                                                                                  \
    }
ORACLES(ORACLE)
#define SERIES(X) X(psi, psi(a)) X(tri_gamma, tri_gamma(a)) /* for positive arguments only */
SERIES(ORACLE)
#define ORACLE_ROW(name, e) { #name, oracle_##name, true },
#define SERIES_ROW(name, e) { #name, oracle_##name, false },
static const struct oracle { const char *name; real (*f)(real, real, real); bool everywhere; } oracles[] = {
    ORACLES(ORACLE_ROW) SERIES(SERIES_ROW)
};

static const struct oracle *oracle_of(const struct mc_op *op)
{
    for (size_t i = 0; i < NELEM(oracles); i++) {
        if (strcmp(oracles[i].name, op->name) == 0) {
            return &oracles[i];
        }
    }
    return NULL;
}

TEST(every_oracle_is_of_an_op)
{
    for (size_t i = 0; i < NELEM(oracles); i++) {
        CHECK(mc_op_scalar(oracles[i].name), "there is no scalar op %s", oracles[i].name);
    }
}

TEST(scalar_ops_agree_with_the_oracles)
{
    EACH_SCALAR(op)
    {
        const struct oracle *o = oracle_of(op);
        mc_array *in[3], *y;
        for (int i = 0; i < op->arity; i++) {
            in[i] = sample(operand(op, i, MC_FLOAT64), MC_SHAPE(300), op->lo, op->hi);
        }
        if (o && (y = apply(op, in))) {
            for (int64_t i = 0; i < 300; i++) {
                double a = at(in[0], i), b = op->arity > 1 ? at(in[1], i) : 0,
                       c = op->arity > 2 ? at(in[2], i) : 0;
                double want = (double)o->f(a, b, c);
                CHECK(near(at(y, i), want, 1e-14), "%s(%.17g, %.17g, %.17g) is %.17g, not %.17g", op->name, a,
                      b, c, at(y, i), want);
            }
            mc_array_unref(&y);
        }
        drop(in, op->arity);
    }
    CHECK(NELEM(oracles) > 50, "%d", (int)NELEM(oracles));
}

/* ---- special values ---- */

static const double odd[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 1e30, -1e30, 1e-30 };
enum { NODD = (int)NELEM(odd) };

/* All pairs and triples of odd values, one operand after the other. */
static void odd_operands(const struct mc_op *op, mc_dtype d, mc_array **in)
{
    int64_t n = NODD * NODD * NODD;
    for (int k = 0; k < op->arity; k++) {
        in[k] = mc_array_new(operand(op, k, d), 1, &n);
        for (int64_t i = 0; i < n; i++) {
            double v = odd[k == 0 ? i % NODD : k == 1 ? i / NODD % NODD : i / NODD / NODD];
            mc_store_f64(in[k]->dtype, in[k]->data + i * mc_dtypes[in[k]->dtype].size, v);
        }
    }
}

TEST(special_values)
{
    EACH_SCALAR(op)
    {
        const struct oracle *o = oracle_of(op);
        mc_array *in[3], *y;
        if (op->typing == TYPE_BITS || !o || !o->everywhere || op->typing == TYPE_INT64) {
            continue;
        }
        odd_operands(op, MC_FLOAT64, in);
        y = apply(op, in);
        for (int64_t i = 0; y && i < mc_array_size(y); i++) {
            double a = at(in[0], i), b = op->arity > 1 ? at(in[1], i) : 0,
                   c = op->arity > 2 ? at(in[2], i) : 0;
            double want = (double)o->f(a, b, c), have = at(y, i);
            bool ok = near(have, want, 1e-13) || fabs(have - want) <= 1e-13 * fabs(want);
            CHECK(ok || fabs(a) == 1e30, "%s(%g, %g, %g) is %g, not %g", op->name, a, b, c, have, want);
        }
        mc_array_unref(&y);
        drop(in, op->arity);
    }
}

/* What is NaN or infinite in float64 is so in float32. */
TEST(special_values_are_the_same_in_every_float)
{
    EACH_SCALAR(op)
    {
        mc_array *in[3], *wide[3], *y, *w;
        if (op->typing == TYPE_BITS || op->typing == TYPE_INT64) {
            continue;
        }
        odd_operands(op, MC_FLOAT32, in);
        odd_operands(op, MC_FLOAT64, wide);
        y = apply(op, in);
        w = apply(op, wide);
        for (int64_t i = 0; y && w && i < mc_array_size(y); i++) {
            bool huge = false;
            for (int k = 0; k < op->arity; k++) {
                double v = fabs(at(wide[k], i));
                huge |= v == 1e30 || v == 1e-30;
            }
            CHECK(huge || near(at(y, i), at(w, i), 1e-5), "%s: %g in float32, %g in float64 of %g, %g",
                  op->name, at(y, i), at(w, i), at(wide[0], i), op->arity > 1 ? at(wide[1], i) : 0);
        }
        mc_array_unref(&y);
        mc_array_unref(&w);
        drop(in, op->arity);
        drop(wide, op->arity);
    }
}

/* ---- dtypes ---- */

/* Each dtype computes what the widest of its class computes, rounded or wrapped. */
TEST(every_op_in_every_dtype)
{
    EACH_SCALAR(op)
    {
        for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
            mc_dtype wide = mc_is_float(d) || op->typing == TYPE_FLOAT || op->typing == TYPE_DIV ? MC_FLOAT64
                            : mc_dtypes[d].kind == KIND_UINT                                     ? MC_UINT64
                            : d == MC_BOOL                                                       ? MC_BOOL
                                                                                                 : MC_INT64;
            mc_array *in[3], *big[3], *y, *w;
            if (!takes(op, d)) {
                continue;
            }
            for (int i = 0; i < op->arity; i++) {
                in[i] = sample(operand(op, i, d), MC_SHAPE(60), op->lo, op->hi);
                big[i] = mc_array_cast(in[i], operand(op, i, wide));
            }
            y = apply(op, in);
            w = apply(op, big);
            mc_dtype want = result_dtype(op, d);
            if (y && w &&
                CHECK(y->dtype == want, "%s of %s is %s", op->name, mc_dtype_name(d),
                      mc_dtype_name(y->dtype))) {
                mc_array *r = mc_array_cast(w, want);
                double eps = mc_dtypes[want].eps;
                for (int64_t i = 0; i < 60; i++) {
                    bool ok = eps > 0 ? near(at(y, i), at(w, i), 4 * eps)
                                      : memcmp(y->data + i * mc_dtypes[want].size,
                                               r->data + i * mc_dtypes[want].size, mc_dtypes[want].size) == 0;
                    CHECK(ok, "%s(%g, %g) in %s is %.9g, not %.9g", op->name, at(in[0], i),
                          op->arity > 1 ? at(in[1], i) : 0, mc_dtype_name(d), at(y, i), at(w, i));
                }
                mc_array_unref(&r);
            }
            mc_array_unref(&y);
            mc_array_unref(&w);
            drop(in, op->arity);
            drop(big, op->arity);
        }
    }
}

TEST(dtypes_that_do_not_fit)
{
    static const struct { const char *op; mc_dtype d; } wrong[] = {
        { "and_", MC_FLOAT32 }, { "invert", MC_FLOAT64 }, { "xor", MC_FLOAT16 }, { "sub", MC_BOOL }, { "neg", MC_BOOL },
    };
    for (size_t i = 0; i < NELEM(wrong); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *in[2] = { mc_input(g, "a", wrong[i].d, 1), mc_input(g, "b", wrong[i].d, 1) };
        mc_node *y = mc_op(g, wrong[i].op, mc_op_scalar(wrong[i].op)->arity, in, NULL);
        CHECK(mc_is_error(y) && mc_graph_status(g) == MC_ETYPE, "%s of %s is allowed", wrong[i].op,
              mc_dtype_name(wrong[i].d));
        CHECK(strncmp(mc_error(g), wrong[i].op, strlen(wrong[i].op)) == 0, "%s", mc_error(g));
        mc_graph_free(g);
    }
}

/* Whole numbers at the ends of their range: what C leaves undefined is defined here. */
TEST(whole_numbers_at_the_edge)
{
    static const struct { const char *op; int64_t a, b, want; } row[] = {
        { "add", INT64_MAX, 1, INT64_MIN },  { "sub", INT64_MIN, 1, INT64_MAX },  { "mul", INT64_MAX, 2, -2 },
        { "int_div", 7, 0, 0 },              { "mod", 7, 0, 0 },                  { "int_div", INT64_MIN, -1, INT64_MIN },
        { "mod", INT64_MIN, -1, 0 },         { "int_div", -7, 2, -4 },            { "mod", -7, 2, 1 },
        { "int_div", 7, -2, -4 },            { "mod", 7, -2, -1 },                { "int_div", -6, 3, -2 },
        { "mod", -6, 3, 0 },                 { "pow", -3, 3, -27 },               { "pow", 2, 62, INT64_C(1) << 62 },
        { "pow", 0, 0, 1 },                  { "maximum", INT64_MIN, -1, -1 },    { "minimum", INT64_MAX, 1, 1 },
        { "abs", INT64_MIN, 0, INT64_MIN },  { "neg", INT64_MIN, 0, INT64_MIN },  { "xor", -1, 1, -2 },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        mc_array *in[2] = { mc_array_from(MC_INT64, 0, NULL, &row[i].a),
                            mc_array_from(MC_INT64, 0, NULL, &row[i].b) };
        mc_array *y = apply(mc_op_scalar(row[i].op), in);
        if (y) {
            int64_t have = mc_load_i64(MC_INT64, y->data);
            CHECK(have == row[i].want, "%s(%lld, %lld) is %lld", row[i].op, (long long)row[i].a,
                  (long long)row[i].b, (long long)have);
        }
        mc_array_unref(&y);
        drop(in, 2);
    }
}

/* ---- the table itself ---- */

TEST(rows_are_whole)
{
    for (int i = 0; mc_op_at(i); i++) {
        const struct mc_op *op = mc_op_at(i);
        CHECK(mc_op_find(op->name) == op && op->index == i, "%s stands twice", op->name);
        CHECK(op->doc && *op->doc, "%s is not documented", op->name);
        CHECK(strlen(op->doc) > 0 && op->doc[strlen(op->doc) - 1] != '.',
              "%s: its line ends with a full stop", op->name);
        CHECK(op->infer || op->build || op->formula, "%s has no types", op->name);
        CHECK(op->build || op->eval || (op->formula && !(op->flags & OP_EXPANDS)),
              "%s the op has no reference", op->name);
        CHECK(!(op->flags & OP_EXPANDS) || op->formula, "%s expands to nothing", op->name);
        CHECK(op->sig->nparam < 16, "%s has %d parameters", op->name, op->sig->nparam);
    }
    CHECK(mc_op_count() > 100 && strcmp(mc_op_name(0), mc_op_at(0)->name) == 0 &&
              mc_op_doc(0) == mc_op_at(0)->doc,
          "%d", mc_op_count());
    CHECK(!mc_op_name(-1) && !mc_op_doc(mc_op_count()) && !mc_op_find(NULL) && !mc_op_find("no such op"),
          "found");
}

/* Unsigned numbers do not wrap below their maximum. */
