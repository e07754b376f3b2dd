/* rewrite_words.h: graphs with the usual variables, and nodes compared by their values. */
#ifndef REWRITE_WORDS_H
#define REWRITE_WORDS_H

#include "check.h"
#include "rewrite/rewrite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline mc_graph *variables(mc_dtype d)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", d, 2);
    mc_input(g, "y", d, 2);
    mc_input(g, "W", d, 2);
    mc_input(g, "b", d, 1);
    mc_input(g, "s", d, 0);
    mc_input(g, "t", MC_INT32, 1);
    mc_input(g, "i", MC_INT64, 0);
    mc_input(g, "c", MC_BOOL, 2);
    mc_input(g, "X", d, 3);
    return g;
}

/* Values for the leaves that n needs, rows x columns 4 x 5; the caller frees value[]. */
static inline int bind_all(mc_graph *g, double lo, double hi, mc_node **leaf, mc_array **value)
{
    static const char *const names[] = { "x", "y", "W", "b", "s", "t", "i", "c", "X" };
    static const int64_t dims[][3] = { { 4, 5 }, { 4, 5 }, { 5, 3 }, { 3 },      { 0 },
                                       { 4 },    { 0 },    { 4, 5 }, { 2, 4, 5 } };
    for (int i = 0; i < 9; i++) {
        leaf[i] = mc_var(g, names[i]);
        value[i] = mc_array_new(leaf[i]->type.dtype, leaf[i]->type.rank, dims[i]);
        for (int64_t k = 0; value[i] && k < mc_array_size(value[i]); k++) {
            char *at = value[i]->data + (size_t)k * mc_dtypes[value[i]->dtype].size;
            double v = i == 5   ? (double)(k % 3)
                       : i == 6 ? 2
                       : i == 7 ? (double)(test_random() & 1)
                                : test_uniform(lo, hi);
            mc_store_f64(value[i]->dtype, at, v);
        }
    }
    return 9;
}

/* Compares a and b where a is finite. */
static inline bool close(const mc_array *a, const mc_array *b, double tol)
{
    size_t size = mc_dtypes[a->dtype].size;
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        double x = mc_load_f64(a->dtype, a->data + (size_t)i * size),
               y = mc_load_f64(b->dtype, b->data + (size_t)i * size);
        if (isfinite(x) && !(fabs(x - y) <= tol * (1 + fabs(x)))) {
            return false;
        }
    }
    return a->dtype == b->dtype && mc_dims_equal(a->rank, a->dims, b->rank, b->dims);
}

static inline void same_value(mc_graph *g, mc_node *before, mc_node *after, const char *what)
{
    mc_node *leaf[16], *side[2] = { before, after };
    mc_array *value[16], *v[2] = { NULL, NULL };
    int n = bind_all(g, 0.1, 0.9, leaf, value);
    if (CHECK(mc_eval(n, leaf, value, 2, side, v) == MC_OK, "%s: %s", what, mc_last_error())) {
        CHECK(close(v[0], v[1], mc_is_float(before->type.dtype) ? 1e-8 : 0), "%s: another value", what);
    }
    for (int i = 0; i < n; i++) {
        mc_array_unref(&value[i]);
    }
    mc_array_unref(&v[0]);
    mc_array_unref(&v[1]);
}

#endif
