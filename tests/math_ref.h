/* math_ref.h: what the functions of kernels should give, and how far off a result is.
 *
 * Invariant: a reference is computed in a wider precision than what it judges. */
#ifndef MATH_REF_H
#define MATH_REF_H

#include "render/math.h"
#include <math.h>

/* ---- references in long double ---- */

typedef long double real;

static real sigmoidl(real x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static real softplusl(real x)
{
    return fmaxl(x, 0) + log1pl(expl(-fabsl(x)));
}

/* Of numbers outside the domain, and of signs, mathematics decides: musl's libm errs there. */
static double acosh_narrow(double x)
{
    return x < 1 ? NAN : acosh(x);
}

static real acosh_wide(real x)
{
    return x < 1 ? NAN : acoshl(x);
}

static real pow_wide(real x, real y)
{
    const real z = powl(x, y);
    /* negative: y is odd */
    return x < 0 && isfinite(y) && rintl(y) == y ? copysignl(z, fabsl(fmodl(y, 2)) == 1 ? -1 : 1) : z;
}

static const real pi = 3.141592653589793238462643383279502884L;

static real psil(real x)
{
    if (x == 0 || (x < 0 && rintl(x) == x)) {
        return x == 0 ? copysignl(INFINITY, -x) : NAN;
    }
    if (x < 0) {
        return psil(1 - x) - pi / tanl(pi * (x - rintl(x)));
    }
    real sum = 0;
    for (; x < 40; x++) {
        sum -= 1 / x;
    }
    real w = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x)
         - w * (1 / 12.0L - w * (1 / 120.0L - w * (1 / 252.0L - w * (1 / 240.0L - w / 132.0L))));
}

static real tri_gammal(real x)
{
    if (isinf(x)) {
        return x < 0 ? -x : 0; /* as SciPy's polygamma(1, x): at every negative whole number */
    }
    if (x <= 0) {
        real s = sinl(pi * (x - rintl(x)));
        return pi * pi / (s * s) - tri_gammal(1 - x);
    }
    real sum = 0;
    for (; x < 40; x++) {
        sum += 1 / (x * x);
    }
    real w = 1 / (x * x);
    return sum + 1 / x + w / 2
         + w / x * (1 / 6.0L - w * (1 / 30.0L - w * (1 / 42.0L - w * (1 / 30.0L - w * 5 / 66.0L))));
}

/* of float32 the reference in double, where libm has one, is good enough and much faster */
static const struct ref {
    const char *name;
    double (*narrow)(double);
    real (*wide)(real);
    real (*wide2)(real, real);
    double lo, hi; /* of float64 only numbers between these: close to a zero the relative error is large */
    double lo32;   /* the same of float32, from here on */
} refs[] = {
    { "exp", exp, expl },       { "exp2", exp2, exp2l },    { "expm1", expm1, expm1l },
    { "log", log, logl },       { "log2", log2, log2l },    { "log10", log10, log10l },
    { "log1p", log1p, log1pl }, { "sin", sin, sinl },       { "cos", cos, cosl },
    { "tan", tan, tanl },       { "asin", asin, asinl },    { "acos", acos, acosl },
    { "atan", atan, atanl },    { "sinh", sinh, sinhl },    { "cosh", cosh, coshl },
    { "tanh", tanh, tanhl },    { "asinh", asinh, asinhl }, { "acosh", acosh_narrow, acosh_wide },
    { "atanh", atanh, atanhl }, { "erf", erf, erfl },       { "erfc", erfc, erfcl },
    { "sigmoid", NULL, sigmoidl },
    { "softplus", NULL, softplusl },
    { "psi", NULL, psil, .lo = 2, .hi = 1e300 },
    { "tri_gamma", NULL, tri_gammal, .lo = 1e-150, .hi = 1e150 },
    { "lgamma", lgamma, lgammal, .lo = 3, .hi = 1e300, .lo32 = 3 },
    { "pow", .wide2 = pow_wide },
    { "atan2", .wide2 = atan2l },
    { "hypot", .wide2 = hypotl },
};

static inline const struct ref *ref_of(const struct mc_math_row *row)
{
    for (size_t i = 0; i < NELEM(refs); i++) {
        if (strcmp(refs[i].name, row->name + 4) == 0) {
            return &refs[i];
        }
    }
    return NULL;
}

/* ---- errors ---- */

/* |y - r| in units in the last place of a number with so many digits and that exponent range; what
 * both overflow to counts as the first power of two out of range */
static inline double ulps(real y, real r, int digits, int emax)
{
    if (isnan(y) || isnan(r)) {
        return isnan(y) && isnan(r) ? 0 : INFINITY;
    }
    real top = ldexpl(1, emax);
    y = fminl(fmaxl(y, -top), top);
    r = fminl(fmaxl(r, -top), top);
    int e = 0;
    (void)frexpl(r, &e);
    e = r == 0 || e < 3 - emax ? 3 - emax : e > emax ? emax : e;
    return (double)fabsl(ldexpl(y - r, digits - e));
}

static inline double ulps_of(const struct mc_math_row *row, real y, real r)
{
    return row->dtype == MC_FLOAT64 ? ulps(y, r, 53, 1024) : ulps(y, r, 24, 128);
}

static inline bool beyond(const struct mc_math_row *row, double x)
{
    return row->range > 0 && fabs(x) >= row->range;
}

#endif
