/* array_text.h: arrays of 0, 1, 2, ..., and that an array shows as this text. */
#ifndef ARRAY_TEXT_H
#define ARRAY_TEXT_H

#include "check.h"
#include "value/value.h"
#include <string.h>

static inline mc_array *iota(mc_dtype d, int rank, const int64_t *dims) /* 0, 1, 2, ... in C order */
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        mc_store_i64(d, a->data + i * mc_dtypes[d].size, i);
    }
    return a;
}

static inline void check_text(const mc_array *a, const char *want)
{
    char *have = a ? mc_array_text(a) : NULL;
    CHECK(have && strcmp(have, want) == 0, "\n%s\n    and not\n%s", have ? have : mc_last_error(), want);
    mc_text_free(have);
}

#endif
