/* agree.h: a compiled function against the reference of its graph: what the tests of kernels, of functions
 * and the fuzzer of graphs stand on. */
#ifndef AGREE_H
#define AGREE_H

#include "check.h"
#include "device/cpu/cpu.h"
#include "exec/function.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { AGREE_MOST = 96 };

/* A graph with the values of its inputs and the nodes that are asked for. */
struct agree {
    mc_graph *g;
    mc_node *in[AGREE_MOST], *out[AGREE_MOST];
    mc_array *value[AGREE_MOST];      /* of in[]; owned */
    int nin, nout;
    double scale;                     /* how many roundings are forgiven; 0: 64 */
};

static inline void agree_free(struct agree *a)
{
    for (int i = 0; i < a->nin; i++) {
        mc_array_unref(&a->value[i]);
    }
    mc_graph_free(a->g);
    *a = (struct agree){ 0 };
}

/* Adds an input; takes value over.  Sizes whose bit is set in sized are promised. */
static inline mc_node *agree_input(struct agree *a, const char *name, mc_array *value, unsigned sized)
{
    int64_t dims[MC_MAX_RANK];
    for (int i = 0; i < value->rank; i++) {
        dims[i] = sized >> i & 1 ? value->dims[i] : -1;
    }
    a->g = a->g ? a->g : mc_graph_new();
    a->value[a->nin] = value;
    return a->in[a->nin++] = mc_input_sized(a->g, name, value->dtype, value->rank, dims);
}

/* Asks for a formula. */
static inline mc_node *agree_output(struct agree *a, const char *formula)
{
    return a->out[a->nout++] = mc_formula(a->g, formula);
}

static inline mc_function *agree_compile(struct agree *a, const char *mode, int threads)
{
    return mc_compile(a->g, &(mc_spec){ .mode = mode,
                                        .threads = threads,
                                        .on_unused = "ignore",
                                        .input = a->in,
                                        .ninput = a->nin,
                                        .output = a->out,
                                        .noutput = a->nout });
}

/* Calls f on the values; have[] gets new arrays, or those it holds are written to. */
static inline mc_status agree_call(struct agree *a, mc_function *f, mc_array **have)
{
    mc_arg in[AGREE_MOST], out[AGREE_MOST];
    for (int i = 0; i < a->nin; i++) {
        in[i] = mc_arg_array(a->value[i]);
    }
    for (int i = 0; i < a->nout; i++) {
        out[i] = mc_arg_slot(&have[i]);
    }
    return mc_call_args(f, a->nin, in, a->nout, out);
}

static inline double agree_largest(const mc_array *x)
{
    mc_array *c = mc_array_copy(x);
    double most = 0;
    for (int64_t i = 0, n = c ? mc_array_size(c) : 0; i < n; i++) {
        double v = fabs(mc_load_f64(c->dtype, c->data + (size_t)i * mc_dtypes[c->dtype].size));
        most = v > most && v < HUGE_VAL ? v : most;
    }
    mc_array_unref(&c);
    return most;
}

/* The coarsest step of any float on the way to the outputs: half types are only rounded in memory. */
static inline double agree_coarsest(const struct agree *a)
{
    size_t n = 0;
    mc_node **list = mc_graph_reach(a->nout, a->out, &n);
    double eps = 0;
    for (size_t i = 0; list && i < n; i++) {
        eps = MC_MAX(eps, mc_is_float(list[i]->type.dtype) ? mc_dtypes[list[i]->type.dtype].eps : 0);
    }
    mc_free(list);
    return eps;
}

/* What is wrong with have, where want is right; NULL: nothing.  Static text. */
static inline const char *agree_wrong(const mc_array *have, const mc_array *want, double scale,
                                      double coarsest)
{
    static char text[300];
    if (have->dtype != want->dtype || !mc_dims_equal(have->rank, have->dims, want->rank, want->dims)) {
        struct mc_str h = { 0 }, w = { 0 };
        mc_dims_text(&h, have->rank, have->dims);
        mc_dims_text(&w, want->rank, want->dims);
        snprintf(text, sizeof text, "%s%s, not %s%s", mc_dtype_name(have->dtype), h.s,
                 mc_dtype_name(want->dtype), w.s);
        mc_str_free(&h);
        mc_str_free(&w);
        return text;
    }
    double eps = mc_dtypes[want->dtype].eps, tol = (scale > 0 ? scale : 64) * eps;
    tol = !mc_is_float(want->dtype) ? 0 : MC_MAX(tol < 0.01 ? tol : 0, 16 * coarsest);
    int64_t bad = mc_array_differs(have, want, tol, tol * MC_MAX(agree_largest(want), 1));
    if (bad < 0) {
        return NULL;
    }
    mc_array *h = mc_array_copy(have), *w = mc_array_copy(want);
    size_t size = mc_dtypes[want->dtype].size;
    snprintf(text, sizeof text, "element %lld of %lld is %.10g, not %.10g", (long long)bad,
             (long long)mc_array_size(want), mc_load_f64(h->dtype, h->data + (size_t)bad * size),
             mc_load_f64(w->dtype, w->data + (size_t)bad * size));
    mc_array_unref(&h);
    mc_array_unref(&w);
    return text;
}

/* Calls f twice, the second time into the arrays of the first, and compares with the reference.  The text
 * says what is wrong, NULL: nothing; where the reference fails, the call has to fail as well.  Static
 * text. */
static inline const char *agree_calls(struct agree *a, mc_function *f, const char *what)
{
    static char text[1200];
    mc_array *want[AGREE_MOST] = { 0 }, *have[AGREE_MOST] = { 0 };
    const char *wrong = NULL;
    double coarsest = agree_coarsest(a);
    mc_status s = mc_eval(a->nin, a->in, a->value, a->nout, a->out, want);
    for (int turn = 0; turn < 2 && !wrong; turn++) {
        mc_status c = agree_call(a, f, have);
        if (s < 0 || c < 0) {
            if (s >= 0 || c >= 0) {
                snprintf(text, sizeof text, "%s: reference %s, call %s: %s", what, mc_status_name(s),
                         mc_status_name(c), mc_last_error());
                wrong = text;
            }
            break;
        }
        for (int i = 0; i < a->nout && !wrong; i++) {
            const char *w = agree_wrong(have[i], want[i], a->scale, coarsest);
            if (w) {
                char *t = mc_node_text(a->out[i]);
                snprintf(text, sizeof text, "%s, call %d, output %d: %s: %s", what, turn + 1, i, w, t);
                mc_text_free(t);
                wrong = text;
            }
        }
    }
    for (int i = 0; i < a->nout; i++) {
        mc_array_unref(&want[i]);
        mc_array_unref(&have[i]);
    }
    return wrong;
}

/* The same with a function compiled in this mode. */
static inline const char *agree_in(struct agree *a, const char *mode, int threads)
{
    static char text[1200];
    mc_function *f = a->g->status < 0 ? NULL : agree_compile(a, mode, threads);
    const char *wrong = f ? agree_calls(a, f, mode) : text;
    if (!f) {
        snprintf(text, sizeof text, "%s: does not compile: %s", mode, mc_error(a->g));
    }
    if (wrong && f && getenv("MC_SHOW")) { /* for whoever looks for the reason */
        fputs(mc_function_graph_text(f), stdout);
        fputs(mc_function_source(f), stdout);
    }
    mc_function_free(f);
    return wrong;
}

/* The same in FAST_RUN and in DEBUG, where every kernel is compared with its nodes too; frees a. */
static inline bool agree(struct agree *a, const char *what)
{
    static const char *const modes[] = { "FAST_RUN", "DEBUG" };
    bool ok = true;
    for (size_t i = 0; i < NELEM(modes) && ok; i++) {
        const char *wrong = agree_in(a, modes[i], 2);
        ok = CHECK(!wrong, "%s: %s", what, wrong ? wrong : "");
    }
    agree_free(a);
    return ok;
}

#endif
