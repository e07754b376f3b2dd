/* pool_words.h: what tests of pooling share: arrays of given numbers, and windows counted one by one. */
#ifndef POOL_WORDS_H
#define POOL_WORDS_H

#include "sample.h"
#include "value/value.h"

static inline mc_array *numbers(int rank, const int64_t *dims, const double *v)
{
    return mc_array_from(MC_FLOAT64, rank, dims, v);
}

static inline double at(const mc_array *a, int64_t i)
{
    int64_t index[MC_MAX_RANK];
    for (int k = a->rank - 1; k >= 0; k--) {
        index[k] = i % a->dims[k];
        i /= a->dims[k];
    }
    return mc_array_get(a, index);
}

/* By counting: windows are placed one after the other until the rule says stop. */
static inline int64_t count_windows(int64_t i, int64_t w, int64_t s, int64_t p, char border, int64_t b)
{
    int64_t n = 0;
    if (border == 'i') {
        for (int64_t first = 0; first + w <= i + 2 * p; first += s) {
            n++;
        }
        return n;
    }
    for (int64_t first = b; first < i; first += s) { /* until one reaches the end */
        if (border == 'c' ? first + w - s >= i : first > 0 && s < w && first + w - s >= i) {
            break;
        }
        n++;
    }
    return n;
}

#endif
