/* bundle_words.h: a function beside the one that is loaded from its file: equal results, equal variables. */
#ifndef BUNDLE_WORDS_H
#define BUNDLE_WORDS_H

#include "check.h"
#include "cuda_test.h"
#include "device/cpu/cpu.h"
#include "exec/function.h"
#include "own_folder.h"
#include "sample.h"
#include <monochord.h>
#include <stdlib.h>
#include <string.h>

#define ON_CPU() mc_flag_set("device", "cpu")
#define NEEDS_COMPILER()                                                                                     \
    ON_CPU();                                                                                                \
    if (!mc_cc_present()) {                                                                                  \
        SKIP("no C compiler");                                                                               \
    }

/* On the device that the environment's flags name. */
#define ON_ITS_DEVICE()                                                                                      \
    if (strncmp(mc_flag_get("device"), "cuda", 4) == 0) {                                                    \
        ON_GPU();                                                                                            \
    } else {                                                                                                 \
        NEEDS_COMPILER();                                                                                    \
    }

/* f by way of a file. */
static inline mc_function *reloaded(mc_function *f)
{
    const char *path = in_folder("one.mcf");
    mc_function *g = NULL;
    if (CHECK(f, "no function: %s", mc_last_error()) &&
        CHECK(mc_function_save(f, path) == MC_OK, "not saved: %s", mc_last_error())) {
        g = mc_function_load(path);
        CHECK(g, "not loaded: %s", mc_last_error());
    }
    return g;
}

/* Calls both with the same arguments: the same results, or the same error.  Its status. */
static inline mc_status same_call(mc_function *f, mc_function *g, int nin, const mc_arg *in, const char *what)
{
    enum { MOST = 32 };
    mc_array *a[MOST] = { 0 }, *b[MOST] = { 0 };
    mc_arg to[MOST], also[MOST];
    char said[1000];
    const int n = mc_function_noutputs(f);
    if (!CHECK(g && n <= MOST && mc_function_noutputs(g) == n, "%s: other results", what)) {
        return MC_EARG;
    }
    for (int i = 0; i < n; i++) {
        to[i] = mc_arg_slot(&a[i]), also[i] = mc_arg_slot(&b[i]);
    }
    const mc_status s = mc_call_args(f, nin, in, n, to);
    snprintf(said, sizeof said, "%s", s < 0 ? mc_last_error() : "");
    const mc_status t = mc_call_args(g, nin, in, n, also);
    CHECK(s == t && (s >= 0 || strcmp(said, mc_last_error()) == 0), "%s: '%s' before, '%s' after", what, said,
          t < 0 ? mc_last_error() : "");
    for (int i = 0; i < n; i++) {
        CHECK(s < 0 || t < 0 || mc_array_same_bits(a[i], b[i]), "%s: result %d differs", what, i);
        mc_array_unref(&a[i]);
        mc_array_unref(&b[i]);
    }
    return s;
}

static inline void same_variables(mc_function *f, mc_function *g, const char *what)
{
    CHECK(mc_function_nshared(f) == mc_function_nshared(g), "%s: other variables", what);
    for (int i = 0; i < mc_function_nshared(f); i++) {
        mc_shared *s = mc_function_shared(f, i), *t = mc_function_shared(g, i);
        mc_array *a = mc_shared_get(s), *b = mc_shared_get(t);
        CHECK(strcmp(mc_shared_name(s), mc_shared_name(t)) == 0, "%s: %s is %s", what, mc_shared_name(s),
              mc_shared_name(t));
        CHECK(s != t && a && b && mc_array_same_bits(a, b), "%s: variable %s differs", what,
              mc_shared_name(s));
        mc_array_unref(&a);
        mc_array_unref(&b);
    }
}

/* Inputs by name, in three shapes each, the last of which is empty. */
enum { ROUNDS = 3 };
struct given { const char *name; mc_dtype dtype; int rank; int64_t dims[ROUNDS][4]; double lo, hi; };
static const struct given givens[] = {
    { "x",   MC_FLOAT32,  2, { { 5, 7 }, { 33, 19 }, { 0, 3 } },                         -2, 2 },
    { "y",   MC_FLOAT32,  2, { { 7, 4 }, { 19, 17 }, { 3, 6 } },                         -2, 2 },
    { "v",   MC_FLOAT32,  1, { { 7 }, { 19 }, { 3 } },                                   -2, 2 },
    { "s",   MC_FLOAT32,  0, { { 0 } },                                                  -2, 2 },
    { "d",   MC_FLOAT64,  2, { { 5, 7 }, { 33, 19 }, { 0, 3 } },                         -2, 2 },
    { "h",   MC_FLOAT16,  2, { { 5, 7 }, { 33, 19 }, { 0, 3 } },                         -2, 2 },
    { "b",   MC_BFLOAT16, 2, { { 5, 7 }, { 33, 19 }, { 0, 3 } },                         -2, 2 },
    { "u",   MC_UINT8,    2, { { 5, 7 }, { 33, 19 }, { 0, 3 } },                          0, 200 },
    { "m",   MC_BOOL,     2, { { 5, 7 }, { 33, 19 }, { 0, 3 } },                          0, 1 },
    { "i",   MC_INT64,    1, { { 4 }, { 9 }, { 0 } },                                     0, 4 },
    { "n",   MC_INT64,    0, { { 0 } },                                                   1, 6 },
    { "img", MC_FLOAT32,  4, { { 2, 3, 9, 9 }, { 3, 4, 12, 11 }, { 0, 3, 9, 9 } },       -2, 2 },
    { "w",   MC_FLOAT32,  4, { { 4, 3, 3, 3 }, { 6, 4, 3, 3 }, { 4, 3, 3, 3 } },         -2, 2 },
};

static inline const struct given *given_named(const char *name, size_t n)
{
    for (size_t i = 0; i < NELEM(givens); i++) {
        if (strlen(givens[i].name) == n && strncmp(givens[i].name, name, n) == 0) {
            return &givens[i];
        }
    }
    return NULL;
}

/* The next name of "x, v = 2": without spaces; moves on. */
static inline const struct given *next_given(const char **list)
{
    *list += strspn(*list, ", ");
    const struct given *g = given_named(*list, strcspn(*list, ", ="));
    *list += strcspn(*list, ",");
    return g;
}

/* A graph with all givens as inputs of open sizes. */
static inline mc_graph *given_graph(void)
{
    mc_graph *g = mc_graph_new();
    for (size_t i = 0; i < NELEM(givens); i++) {
        mc_input(g, givens[i].name, givens[i].dtype, givens[i].rank);
    }
    return g;
}

/* Values for a list of names; the caller drops them.  How many. */
static inline int given_values(const char *list, int round, mc_array **value)
{
    int n = 0;
    while (list && *(list += strspn(list, ", "))) {
        const struct given *g = next_given(&list);
        value[n++] = sample(g->dtype, g->rank, g->dims[round], g->lo, g->hi);
    }
    return n;
}

/* Calls both in every round, with inputs of random strides. */
static inline void same_rounds(mc_function *f, mc_function *g, const char *inputs, const char *what)
{
    for (int round = 0; round < ROUNDS && f && g; round++) {
        mc_array *value[8];
        mc_arg in[8];
        const int n = given_values(inputs, round, value);
        for (int i = 0; i < n; i++) {
            in[i] = mc_arg_array(value[i]);
        }
        const mc_status s = same_call(f, g, n, in, what);
        CHECK(s == MC_OK || round == ROUNDS - 1, "%s: %s", what, mc_last_error());
        same_variables(f, g, what);
        for (int i = 0; i < n; i++) {
            mc_array_unref(&value[i]);
        }
    }
}

#endif
