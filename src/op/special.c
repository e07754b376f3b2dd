/* special.c: see special.h. */
#include "base/base.h"
#include "op/special.h"
#include <math.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"
#define CALLED(kind, id, needs, ...) static inline __VA_ARGS__
#include "op/special.def"
#undef CALLED
#pragma GCC diagnostic pop
#define EXPORT_1(id) double mc_ref_##id(double x) { return mcd_##id(x); }
#define EXPORT_2(id) double mc_ref_##id(double x, double y) { return mcd_##id(x, y); }
#define EXPORT_3(id) double mc_ref_##id(double x, double y, double z) { return mcd_##id(x, y, z); }
MC_SPECIAL_1(EXPORT_1)
MC_SPECIAL_2(EXPORT_2)
MC_SPECIAL_3(EXPORT_3)

double mc_ref_sigmoid(double x)
{
    if (x >= 0) {
        return 1 / (1 + exp(-x));
    }
    double e = exp(x); /* small, so 1 + e loses no significant digits */
    return e / (1 + e);
}

double mc_ref_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Recurrence psi(x) = psi(x + 1) - 1/x until x is large, then the asymptotic series; reflection below
 * zero. */
double mc_ref_psi(double x)
{
    double r = 0;
    if (x == 0) {
        return copysign((double)INFINITY, -x);
    }
    if (x < 0 && x == floor(x)) {
        return (double)NAN;
    }
    if (x < 0) {
        return mc_ref_psi(1 - x) - 3.14159265358979323846 / tan(3.14159265358979323846 * x);
    }
    for (; x < 10; x += 1) {
        r -= 1 / x;
    }
    double f = 1 / (x * x);
    return r + log(x) - .5 / x -
           f * (1. / 12 -
                f * (1. / 120 -
                     f * (1. / 252 - f * (1. / 240 - f * (1. / 132 - f * (691. / 32760 - f / 12))))));
}

double mc_ref_tri_gamma(double x)
{
    double r = 0;
    if (x <= 0 && x == floor(x)) {
        return (double)INFINITY;
    }
    if (x < 0) {
        double s = 3.14159265358979323846 / sin(3.14159265358979323846 * x);
        return s * s - mc_ref_tri_gamma(1 - x);
    }
    for (; x < 10; x += 1) {
        r += 1 / (x * x);
    }
    double f = 1 / (x * x);
    return r + 1 / x + f / 2 +
           f / x *
               (1. / 6 - f * (1. / 30 -
                              f * (1. / 42 - f * (1. / 30 - f * (5. / 66 - f * (691. / 2730 - f * 7 / 6))))));
}

/* The result of fmod is exact. b is added where the signs differ, so that the result has the sign of b, as
 * in NumPy and Python. */
#define FLOORS(T, f)                                                                               \
    T mc_ref_floormod##f(T a, T b)                                                                 \
    {                                                                                              \
        T r = fmod##f(a, b);                                                                       \
        if (r == 0) {                                                                              \
            return copysign##f(0, b);                                                              \
        }                                                                                          \
        return (r < 0) != (b < 0) ? r + b : r; /* NaN (if b is NaN or 0) stays NaN */              \
    }                                                                                              \
    T mc_ref_floordiv##f(T a, T b)                                                                 \
    {                                                                                              \
        T r = fmod##f(a, b), q = (a - r) / b;                                                      \
        if (b == 0) {                                                                              \
            return a / b;                                                                          \
        }                                                                                          \
        q = r != 0 && (r < 0) != (b < 0) ? q - 1 : q;                                              \
        if (q == 0) {                                                                              \
            return copysign##f(0, a / b);                                                          \
        }                                                                                          \
        T whole = floor##f(q);                                                                     \
        return q - whole > (T).5 ? whole + 1 : whole; /* q is a whole number but for its rounding */ \
    }
FLOORS(double, )
FLOORS(float, f)

uint64_t mc_ref_upow(uint64_t a, uint64_t b)
{
    uint64_t r = 1;
    for (; b; b >>= 1, a *= a) {
        r *= b & 1 ? a : 1;
    }
    return r;
}

int64_t mc_ref_ipow(int64_t a, int64_t b)
{
    if (b < 0) { /* only 1 and -1 have integer inverses */
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    }
    return (int64_t)mc_ref_upow((uint64_t)a, (uint64_t)b);
}
