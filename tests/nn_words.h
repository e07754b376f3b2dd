/* nn_words.h: what tests of networks share. */
#ifndef NN_WORDS_H
#define NN_WORDS_H

#include "check.h"
#include "nn/nn.h"

static inline double first(mc_shared *s, int64_t i)
{
    mc_array *a = mc_shared_get(s);
    double v = mc_array_get(a, &i);
    mc_array_unref(&a);
    return v;
}

#endif
