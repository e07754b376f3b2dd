/* sample_moments.h: mean and spread of many numbers, for tests of what is drawn. */
#ifndef SAMPLE_MOMENTS_H
#define SAMPLE_MOMENTS_H

#include "check.h"
#include <math.h>
#include <monochord.h>

/* mean and std are what they should be, within what so many numbers allow; most: no number is larger; 0: some
 * may be. */
static inline void check_moments(const char *what, const mc_array *a, double want_mean, double want_std,
                                 double want_most)
{
    int64_t n = mc_array_size(a);
    mc_array *flat = mc_array_reshape(a, 1, &n);
    double sum = 0, squares = 0, most = 0;
    for (int64_t k = 0; k < n; k++) {
        double v = mc_array_get(flat, &k);
        sum += v;
        squares += (v - want_mean) * (v - want_mean);
        most = fmax(most, fabs(v));
    }
    double mean = sum / (double)n, std = sqrt(squares / (double)n), five = 5 * want_std / sqrt((double)n);
    CHECK(fabs(mean - want_mean) <= five && fabs(std - want_std) <= 2 * five, "%s: mean %g, spread %g", what,
          mean, std);
    CHECK(want_most == 0 || most <= want_most, "%s: %g is above %g", what, most, want_most);
    mc_array_unref(&flat);
}

#endif
