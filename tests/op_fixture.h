/* op_fixture.h: formulas over several named arrays, run by the reference.  Every run also checks what must
 * hold of any node: its text parses back to it, sizes it promises come true, and its formulas of sizes say
 * the same. */
#ifndef OP_FIXTURE_H
#define OP_FIXTURE_H

#include "sample.h"

struct leaf {
    const char *name;
    mc_array *a;
    unsigned sized;   /* bit k: the size of axis k is promised */
    bool constant;    /* a constant of that name, not an input */
};

struct world {
    mc_graph *g;
    int nin;
    mc_node *in[8], *wrt[8];
    mc_array *value[8], *at[8];
    int nwrt;
    mc_node *y;       /* of the formula */
};

static inline struct world world_new(int n, const struct leaf *leaf, const char *formula)
{
    struct world w = { .g = mc_graph_new() };
    for (int i = 0; i < n; i++) {
        const mc_array *a = leaf[i].a;
        int64_t dims[MC_MAX_RANK];
        for (int k = 0; k < a->rank; k++) {
            dims[k] = leaf[i].sized >> k & 1 ? a->dims[k] : -1;
        }
        if (leaf[i].constant) {
            mc_name(mc_constant(w.g, a), leaf[i].name);
            continue;
        }
        w.value[w.nin] = leaf[i].a;
        w.in[w.nin++] = mc_input_sized(w.g, leaf[i].name, a->dtype, a->rank, dims);
        if (mc_is_float(a->dtype)) {
            w.at[w.nwrt] = leaf[i].a;
            w.wrt[w.nwrt++] = w.in[w.nin - 1];
        }
    }
    w.y = mc_formula(w.g, formula);
    return w;
}

/* mc_eval leaves text and place of a mistake to the caller. */
static inline mc_array *world_eval(const struct world *w, mc_node *n)
{
    mc_array *out = NULL;
    return !mc_is_error(n) && mc_eval(w->nin, w->in, w->value, 1, &n, &out) == MC_OK ? out : NULL;
}

static inline void check_text(const struct world *w, const char *formula)
{
    char *text = mc_node_text(w->y);
    mc_node *back = text ? mc_formula(w->g, text) : NULL;
    CHECK(back == w->y, "%s prints as %s, which is another node  %s", formula, text ? text : "nothing",
          mc_error(w->g));
    mc_text_free(text);
}

static inline void check_sizes(const struct world *w, const char *formula, const mc_array *y)
{
    for (int k = 0; k < y->rank; k++) {
        int64_t said = w->y->type.dims[k];
        CHECK(said < 0 || said == y->dims[k], "%s: axis %d has %lld, promised %lld", formula, k,
              (long long)y->dims[k], (long long)said);
        mc_node *size = said < 0 && w->y->op->size && w->y->op != &mc_op_item ? w->y->op->size(w->y, 0, k)
                                                                              : NULL;
        mc_array *v = size ? world_eval(w, size) : NULL;
        CHECK(!size || (v && v->rank == 0 && mc_load_i64(v->dtype, v->data) == y->dims[k]),
              "%s: axis %d has %lld, its formula says %g  %s", formula, k, (long long)y->dims[k],
              v ? mc_array_get(v, NULL) : -1, v ? "" : mc_error(w->g));
        mc_array_unref(&v);
    }
}

/* The formula's value; NULL: it failed, and mc_last_error says why.  The caller drops it. */
static inline mc_array *run(int n, const struct leaf *leaf, const char *formula)
{
    struct world w = world_new(n, leaf, formula);
    mc_array *y = world_eval(&w, w.y);
    if (y && w.y->nout == 1) {
        check_text(&w, formula);
        check_sizes(&w, formula, y);
    } else if (mc_is_error(w.y)) {
        mc_fail(mc_graph_status(w.g), "%s", mc_error(w.g));
    }
    mc_graph_free(w.g);
    return y;
}

/* The gradients by all float inputs that take part, against differences. */
static inline void check_slopes(int n, const struct leaf *leaf, const char *formula)
{
    double worst = 0;
    struct world w = world_new(n, leaf, formula);
    size_t count = 0;
    mc_node **list = mc_graph_reach(1, &w.y, &count);
    int kept = 0;
    for (int i = 0; i < w.nwrt; i++) {
        bool takes_part = false;
        for (size_t k = 0; k < count; k++) {
            takes_part |= list[k] == w.wrt[i];
        }
        if (takes_part) {
            w.wrt[kept] = w.wrt[i];
            w.at[kept++] = w.at[i];
        }
    }
    w.nwrt = kept;
    mc_free(list);
    CHECK(!mc_is_error(w.y) && mc_verify_grad(w.y, w.nwrt, w.wrt, w.at, &worst) == MC_OK,
          "%s: worst %g: %s  %s", formula, worst, mc_last_error(), mc_error(w.g));
    mc_graph_free(w.g);
}

/* The same elements, exactly; `what` says which case. */
static inline bool check_same(const mc_array *have, const mc_array *want, const char *what)
{
    bool ok = have && want && have->dtype == want->dtype &&
              mc_dims_equal(have->rank, have->dims, want->rank, want->dims);
    if (!ok) {
        struct mc_str a = { 0 }, b = { 0 };
        if (have) {
            mc_dims_text(&a, have->rank, have->dims);
        }
        if (want) {
            mc_dims_text(&b, want->rank, want->dims);
        }
        CHECK(ok, "%s: is %s %s, not %s %s  %s", what, have ? mc_dtype_name(have->dtype) : "nothing",
              a.s ? a.s : "", want ? mc_dtype_name(want->dtype) : "nothing", b.s ? b.s : "",
              have ? "" : mc_last_error());
        mc_str_free(&a);
        mc_str_free(&b);
        return false;
    }
    int64_t at = mc_array_differs(have, want, 0, 0);
    return CHECK(at < 0, "%s: element %lld differs", what, (long long)at);
}

/* Steps an index through a shape in C order; false after the last. */
static inline bool next_index(int rank, const int64_t *dims, int64_t *at)
{
    for (int k = rank; k-- > 0;) {
        if (++at[k] < dims[k]) {
            return true;
        }
        at[k] = 0;
    }
    return false;
}

/* As run, for graphs with checks in them: the node of a check is never shared, so it has no text to come back
 * from. */
static inline mc_array *checked(int n, const struct leaf *leaf, const char *text)
{
    struct world u = world_new(n, leaf, text);
    mc_array *y = world_eval(&u, u.y);
    if (y) {
        check_sizes(&u, text, y);
    } else if (mc_is_error(u.y)) {
        mc_fail(mc_graph_status(u.g), "%s", mc_error(u.g));
    }
    mc_graph_free(u.g);
    return y;
}

#endif
