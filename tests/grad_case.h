/* grad_case.h: a graph with inputs of every rank, whole numbers among them, and values for them: what tests
 * of gradients share. */
#ifndef GRAD_CASE_H
#define GRAD_CASE_H

#include "check.h"
#include "grad/grad.h"
#include <math.h>

static const char *const world =
    "input u float64[?]; input v float64[?]; input m float64[3, 4]; input n float64[?, ?]; "
    "input r float64[1, ?]; input c float64[?, 1]; input t float64[2, 3, 4]; input s float64; "
    "input k int64[?]; input b bool[?, ?]; input i int32";
static const struct { const char *name; int64_t dims[3]; } shapes[] = {
    { "u", { 4 } }, { "v", { 4 } }, { "m", { 3, 4 } }, { "n", { 3, 4 } }, { "r", { 1, 4 } }, { "c", { 3, 1 } }, { "t", { 2, 3, 4 } },
    { "s", { 0 } }, { "k", { 3 } }, { "b", { 3, 4 } }, { "i", { 0 } },
};
enum { NLEAF = (int)NELEM(shapes) };

struct grad_case { mc_graph *g; mc_node *leaf[NLEAF]; mc_array *value[NLEAF]; };

static inline struct grad_case grad_case_new(void)
{
    struct grad_case w = { .g = mc_graph_new() };
    mc_flag_set("floatX", "float64");
    mc_formula(w.g, world);
    for (int i = 0; i < NLEAF; i++) {
        w.leaf[i] = mc_var(w.g, shapes[i].name);
        w.value[i] = mc_array_new(mc_node_dtype(w.leaf[i]), mc_node_rank(w.leaf[i]), shapes[i].dims);
        mc_array *a = w.value[i];
        for (int64_t k = 0; k < mc_array_size(a); k++) {
            char *to = a->data + k * mc_dtypes[a->dtype].size;
            mc_is_float(a->dtype) ? mc_store_f64(a->dtype, to, test_uniform(.2, .9))
                                  : mc_store_i64(a->dtype, to, (int64_t)(test_random() % 2));
        }
    }
    for (int64_t k = 0; k < 3; k++) { /* k = 2, 0, 1 */
        mc_store_i64(MC_INT64, w.value[8]->data + k * 8, (k + 2) % 3);
    }
    return w;
}

static inline void grad_case_free(struct grad_case *w)
{
    for (int i = 0; i < NLEAF; i++) {
        mc_array_unref(&w->value[i]);
    }
    mc_graph_free(w->g);
}

static inline double eval1(struct grad_case *w, mc_node *y)
{
    mc_array *out = NULL;
    mc_status s = mc_eval(NLEAF, w->leaf, w->value, 1, &y, &out);
    double v = CHECK(s == MC_OK, "%s %s", mc_last_error(), mc_error(w->g)) ? mc_array_get(out, NULL) : 0;
    mc_array_unref(&out);
    return v;
}

#endif
