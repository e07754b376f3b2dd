/* epilogue.c: recognises epilogues that solvers can compute, by the formulas of activations below.
 *
 * Invariant: an epilogue is `known` only if the step's kernel computes nothing else. */
#include "lower/make.h"
#include "rewrite/rewrite.h"

/* ---- activations ---- */

/* s is the sum that the activation is applied to. Commutative ops match in either order, numbers within two
 * roundings. There is a row for each form that rewriting leaves, in any dtype: in float16 the factors of gelu
 * stay where they were written, since products could overflow elsewhere. */
static const struct { enum mc_act act; const char *formula; } acts[] = {
    { ACT_RELU,     "maximum(s, 0)" },
    { ACT_RELU,     "where(s > 0, s, 0)" },
    { ACT_TANH,     "tanh(s)" },
    { ACT_SIGMOID,  "sigmoid(s)" },
    { ACT_ELU,      "where(s > 0, s, expm1(s))" },
    { ACT_GELU,     "s * (tanh((s + s * sqr(s) * 0.044715) * 0.7978845608028654) + 1) * 0.5" },
    { ACT_GELU,     "s * sigmoid((s + s * sqr(s) * 0.044715) * 1.5957691216057308)" },
    { ACT_GELU_ERF, "s * erfc(s / -1.4142135623730951) * 0.5" },
    { ACT_GELU_ERF, "s * erfc(s * -0.7071067811865476) * 0.5" },
    { ACT_GELU,     "s * 0.5 * (sigmoid((s + s * sqr(s) * 0.044715) * 1.5957691216057308) * 2)" },
    { ACT_GELU_ERF, "s * 0.5 * erfc(s / -1.4142135623730951)" },
    { ACT_GELU_ERF, "s * 0.5 * erfc(s * -0.7071067811865476)" },
    { ACT_SWISH,    "s * sigmoid(s)" },
};

static struct {
    pthread_mutex_t lock;
    mc_graph *graph;            /* its arena holds the patterns; NULL until the formulas are read */
    const struct mc_pattern *act[NELEM(acts)];
} forms = { .lock = PTHREAD_MUTEX_INITIALIZER };

static mc_status read_formulas(void)
{
    mc_graph *g = mc_graph_make(&mc_op_language);
    mc_status s = g ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < NELEM(acts) && s == MC_OK; i++) {
        forms.act[i] = mc_pattern_parse(g, acts[i].formula, NULL);
        s = forms.act[i] ? MC_OK : mc_fail(g->status, "activation '%s': %s", acts[i].formula, mc_error(g));
    }
    if (s == MC_OK) {
        forms.graph = g;
    } else {
        mc_graph_free(g);
    }
    return s;
}

/* Reads the table at first use; tries again after a failure. */
static mc_status formulas(void)
{
    pthread_mutex_lock(&forms.lock);
    mc_status s = forms.graph ? MC_OK : read_formulas();
    pthread_mutex_unlock(&forms.lock);
    return s;
}

/* The sum that n is an activation of; n itself if it is not an activation. */
static mc_node *activation(mc_node *n, enum mc_act *act)
{
    static const struct mc_rule rounded = { .near = true };
    *act = ACT_NONE;
    for (size_t i = 0; i < NELEM(acts); i++) {
        struct mc_match m = { 0 };
        if (mc_pattern_may_match(forms.act[i], n) && mc_pattern_match(forms.act[i], &rounded, n, &m)) {
            *act = acts[i].act;
            return mc_letter(&m, 's');
        }
    }
    return n;
}

/* ---- the sum ---- */

struct sum {
    const struct make *m;
    int group, adds;            /* adds: number of additions so far */
    int products;               /* how often the solver's result is added */
    mc_dtype dtype;
    struct mc_epilogue *e;
};

bool mc_joins_terms(const mc_node *n)
{
    return mc_is_op(n, "add");
}

/* Collects the terms of the sum n. False if n is not a sum of the solver's result and at most EPILOGUE_TERMS
 * arrays of its dtype. */
static bool add_terms(struct sum *s, const mc_node *n)
{
    if ((int)n->id == s->m->epilogue[s->group]) {
        return ++s->products == 1;
    }
    if (s->m->within[n->id] == s->group + 1) {
        return mc_joins_terms(n) && ++s->adds <= EPILOGUE_TERMS && add_terms(s, n->in[0]) &&
               add_terms(s, n->in[1]);
    }
    const int value = s->m->p->value_of[n->id]; /* -1: a constant number or a position has no memory */
    if (s->e->nterm == EPILOGUE_TERMS || value < 0 || n->type.dtype != s->dtype) {
        return false;
    }
    s->e->term[s->e->nterm++] = value;
    return true;
}

/* Does k have no operands but the product, the terms and one result? A term that is added twice is one
 * operand, a number is none. */
static bool is_all(const struct mc_kernel *k, const struct mc_epilogue *e)
{
    bool all = k->mode == KERNEL_MAP && (int)k->operand.n == e->nterm + 2;
    for (size_t i = 0; i < k->operand.n; i++) {
        all = all && !k->operand.at[i].index && !k->operand.at[i].column_sums;
    }
    return all;
}

mc_status mc_find_epilogue(const struct make *m, int group, mc_node *result, const struct mc_kernel *k,
                           struct mc_epilogue *e)
{
    const mc_node *product = m->p->graph->nodes.at[m->epilogue[group]];
    const bool half = mc_dtypes[product->type.dtype].size == 2;
    *e = (struct mc_epilogue){ .result = m->p->value_of[result->id], .cast = result->type.dtype };
    /* strict_math: a solver's maximum may drop a NaN. rounds: halves must be rounded after each operation,
     * but a solver rounds once at the end. */
    if (mc_flag_int(FLAG_strict_math) || m->p->dynamic || (m->rounds && half)) {
        return MC_OK;
    }
    TRY(formulas());
    struct sum s = { .m = m, .group = group, .dtype = product->type.dtype, .e = e };
    mc_node *y = result->op->form == FORM_CAST ? result->in[0] : result;
    const mc_node *sum = activation(y, &e->act);
    e->known = y->type.dtype == s.dtype && sum->type.dtype == s.dtype && add_terms(&s, sum) &&
               s.products == 1 && is_all(k, e);
    return MC_OK;
}
