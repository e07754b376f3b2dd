/* timer.c: measures how long a call takes.
 *
 * Invariant: the time of the first call, with cold caches and lazy initialization, is not in the result,
 * unless that call is so slow that no other is made. */
#include "plan/plan.h"
#include <stdlib.h>

enum { SAMPLES = 25, COLD = 2 }; /* COLD: the first call may take this many times longer */
static const double grain = 20e-6; /* seconds; the clock cannot measure a shorter batch */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one of `n` calls in a row; negative: a call failed. */
static double batch(void (*before)(void *arg), mc_status (*run)(void *arg), void *arg, int n)
{
    double start = mc_now(), before_takes = 0;
    for (int i = 0; i < n; i++) {
        if (before) {
            const double now = mc_now();
            before(arg);
            before_takes += mc_now() - now;
        }
        if (run(arg) < 0) {
            return -1;
        }
    }
    return (mc_now() - start - before_takes) / n;
}

struct mc_timing mc_time(mc_status (*run)(void *arg), void *arg, double budget, double hopeless)
{
    return mc_time_each(NULL, run, arg, budget, hopeless);
}

struct mc_timing mc_time_each(void (*before)(void *arg), mc_status (*run)(void *arg), void *arg,
                              double budget, double hopeless)
{
    struct mc_timing t = { 0 };
    double sample[SAMPLES];
    const double end = mc_now() + budget;
    double each = batch(before, run, arg, 1);
    int repeat = 1;
    t.first = each;
    if (each < 0) {
        return t;
    }
    if (hopeless > 0 && each > COLD * hopeless) {
        return (struct mc_timing){ each, each, each, 1, each };
    }
    do {
        each = batch(before, run, arg, repeat);
        if (each < 0) {
            return (struct mc_timing){ 0 };
        }
        if (each * repeat < grain && t.n == 0 && repeat < 1 << 20) {
            repeat *= 2;
            continue;
        }
        sample[t.n++] = each;
    } while (t.n < SAMPLES && mc_now() < end && !(hopeless > 0 && each > hopeless));
    if (t.n == 0) {
        sample[t.n++] = each; /* the budget ended while doubling */
    }
    qsort(sample, (size_t)t.n, sizeof sample[0], by_value);
    t.median = sample[t.n / 2];
    t.least = sample[0];
    t.most = sample[t.n - 1];
    return t;
}
