/* gpu_words.h: what tests of functions on a GPU share. */
#ifndef GPU_WORDS_H
#define GPU_WORDS_H

#include "agree.h"
#include "cuda_test.h"
#include "sample.h"
#include <string.h>

static inline mc_array *counting(int64_t n)
{
    mc_array *a = mc_array_new(MC_FLOAT32, 1, &n);
    for (int64_t i = 0; a && i < n; i++) {
        ((float *)a->data)[i] = (float)i;
    }
    return a;
}

static inline double at(const mc_array *a, int64_t i)
{
    return mc_array_get(a, &i);
}

#endif
