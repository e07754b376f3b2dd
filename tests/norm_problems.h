/* norm_problems.h: normalisations across channels of every kind, to test every solver on every device. */
#ifndef NORM_PROBLEMS_H
#define NORM_PROBLEMS_H

#include "check.h"
#include "heavy/norm/norm.h"
#include "plan_options.h"
#include <string.h>

static inline int64_t norm_below(int64_t n)
{
    return (int64_t)(test_random() % (uint64_t)n);
}

/* Images of rank 4: batch, channels, rows, columns, laid out in one of the usual orders. */
static inline void norm_any(struct mc_norm_problem *p, mc_dtype d)
{
    static const int orders[3][4] = { { 0, 1, 2, 3 }, { 0, 2, 3, 1 }, { 1, 2, 3, 0 } };
    static const double betas[] = { 0.75, 0.5, 1, 0.6, 2 };
    const int *order = orders[norm_below(3)];
    const bool plain = norm_below(2);
    *p = (struct mc_norm_problem){ .base = { &mc_norm_family, mc_plan_options_of(NULL) }, .dtype = d };
    p->s = (struct mc_norm_shape){ .backward = norm_below(2),
                                   .blocked = norm_below(4) == 0,
                                   .rank = 4,
                                   .axis = 1,
                                   .n = 1 + norm_below(12),
                                   .alpha = 0.3,
                                   .beta = betas[norm_below(5)],
                                   .k = 1 + (double)norm_below(2) };
    for (int i = 0; i < 4; i++) {
        p->s.dims[i] = norm_below(12) == 0 ? 1
                                           : 1 + norm_below(i == 1                    ? 40
                                                            : i == 0 && order[3] == 0 ? 50
                                                                                      : 9);
    }
    for (int r = 0; r < 3; r++) {
        int64_t next = 1;
        for (int i = 3; i >= 0; i--) {
            p->at[r][order[i]] = !plain && i < 3 && norm_below(5) == 0 ? -next : next;
            next *= p->s.dims[order[i]] + (plain || i == 3 || norm_below(4) ? 0 : 1);
        }
    }
}

#endif
