/* function_words.h: a small language for tests of functions: arrays of rising numbers, checks that tell the
 * error. */
#ifndef FUNCTION_WORDS_H
#define FUNCTION_WORDS_H

#include "random_graph.h"
#include <pthread.h>
#include <string.h>

static inline mc_array *ramp(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0, n = a ? mc_array_size(a) : 0; i < n; i++) {
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size, (double)(i % 50));
    }
    return a;
}

static inline double at(const mc_array *a, int64_t i)
{
    int64_t index[MC_MAX_RANK] = { 0 };
    for (int k = a->rank; k-- > 0;) {
        index[k] = i % a->dims[k];
        i /= a->dims[k];
    }
    return mc_array_get(a, index);
}

/* f, or the graph's mistake as a failed check. */
static inline mc_function *made(mc_graph *g, mc_function *f)
{
    CHECK(f != NULL, "%s", mc_error(g));
    return f;
}

static inline bool fine(mc_status s)
{
    return CHECK(s == MC_OK, "%s: %s", mc_status_name(s), mc_last_error());
}

static inline bool refused(mc_status s, mc_status want, const char *part)
{
    return CHECK(s == want && strstr(mc_last_error(), part), "%s: %s; not %s with '%s'", mc_status_name(s),
                 mc_last_error(), mc_status_name(want), part);
}

static inline double shared_at(mc_shared *s, int64_t i)
{
    mc_array *a = mc_shared_get(s);
    double v = a ? at(a, i) : NAN;
    mc_array_unref(&a);
    return v;
}

static inline mc_shared *scalar(mc_graph *g, const char *name, mc_dtype d, double v)
{
    mc_array *a = mc_array_scalar(d, v);
    mc_shared *s = mc_shared_new(g, name, a);
    mc_array_unref(&a);
    return s;
}

#endif
