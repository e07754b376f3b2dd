/* sample.h: what tests of ops work with: random arrays of odd strides, and formulas run by the reference. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "check.h"
#include "op/op.h"

/* Random elements within lo..hi (whole for integers) behind random strides: axes turned round, gaps between
 * elements, axes in another order.  The caller drops it. */
static inline mc_array *sample(mc_dtype d, int rank, const int64_t *dims, double lo, double hi)
{
    int64_t wide[MC_MAX_RANK] = { 0 };
    int order[MC_MAX_RANK] = { 0 }, back[MC_MAX_RANK] = { 0 };
    for (int i = 0; i < rank; i++) {
        order[i] = i;
    }
    for (int i = rank - 1; i > 0; i--) {
        int k = (int)(test_random() % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < rank; i++) {
        back[order[i]] = i;
        wide[i] = dims[order[i]] * 2 + 1;
    }
    mc_array *a = mc_array_new(d, rank, wide);
    mc_array *t = rank ? mc_array_transpose(a, back) : mc_array_ref(a);
    mc_array_unref(&a);
    for (int i = 0; t && i < rank; i++) {
        int64_t step = test_random() % 2 ? -1 : 1;
        step *= (int64_t)(1 + test_random() % 2);
        int64_t start = step < 0 ? MC_MAX(dims[i] - 1, 0) * -step : (int64_t)(test_random() % 2);
        mc_array *s = mc_array_slice(t, i, start, dims[i], step);
        mc_array_unref(&t);
        t = s;
    }
    int64_t index[MC_MAX_RANK] = { 0 };
    for (int64_t i = 0, n = t ? mc_array_size(t) : 0; i < n; i++) {
        double v = test_uniform(lo, mc_is_float(d) ? hi : hi + 1);
        mc_array_set(t, index, mc_is_float(d) ? v : (double)(int64_t)(v + 100) - 100);
        for (int k = rank; k-- > 0 && ++index[k] == dims[k];) {
            index[k] = 0;
        }
    }
    return t;
}

/* The value of a formula over x, by the reference; static sizes are given for the bits of `sized` only.
 * NULL: it failed. */
static inline mc_array *run1(const char *formula, const mc_array *x, unsigned sized)
{
    int64_t dims[MC_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        dims[i] = sized >> i & 1 ? x->dims[i] : -1;
    }
    mc_graph *g = mc_graph_new();
    mc_node *in = mc_input_sized(g, "x", x->dtype, x->rank, dims), *y = mc_formula(g, formula);
    mc_array *out = NULL;
    if (!mc_is_error(y)) {
        mc_array *value = mc_array_ref(x);
        mc_eval(1, &in, &value, 1, &y, &out);
        mc_array_unref(&value);
    }
    mc_graph_free(g);
    return out;
}

/* The formula's gradient by x, checked with finite differences; the verdict's text is the last error. */
static inline mc_status check_grad(const char *formula, const mc_array *x, unsigned sized, double *worst)
{
    int64_t dims[MC_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        dims[i] = sized >> i & 1 ? x->dims[i] : -1;
    }
    mc_graph *g = mc_graph_new();
    mc_node *in = mc_input_sized(g, "x", x->dtype, x->rank, dims), *y = mc_formula(g, formula);
    mc_array *at = mc_array_ref(x);
    mc_status s = mc_is_error(y) ? mc_graph_status(g) : mc_verify_grad(y, 1, &in, &at, worst);
    mc_array_unref(&at);
    mc_graph_free(g);
    return s;
}

/* What building a formula over x (of this dtype and rank) says against it; static text. */
static inline const char *complaint(const char *formula, mc_dtype d, int rank)
{
    static char text[600];
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", d, rank);
    mc_formula(g, formula);
    snprintf(text, sizeof text, "%s", mc_error(g));
    mc_graph_free(g);
    return text;
}

static inline void drop(mc_array **a, int n)
{
    for (int i = 0; i < n; i++) {
        mc_array_unref(&a[i]);
    }
}

#endif
