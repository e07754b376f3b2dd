/* tail.c: on a GPU, a kernel that finishes a product or a convolution as part of the problem that solvers are
 * given: a bias, something of the result's own shape, an activation.  Then the step has no kernel, and the
 * bare result no memory.
 *
 * Invariant: what is taken over is the whole kernel; anything else stays a kernel behind the solver. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include <math.h>
#include <stdlib.h>

enum { TERMS = 3 };             /* of a sum: the solver's, and what is added to it */

/* A kernel's value as it must be, operator by operator: s is the sum that the activation gets, the same
 * wherever it stands. */
static const struct { enum mc_act act; const char *form; } acts[] = {
    { ACT_RELU,     "maximum s 0" },
    { ACT_RELU,     "where gt s 0 s 0" },
    { ACT_TANH,     "tanh s" },
    { ACT_SIGMOID,  "sigmoid s" },
    { ACT_ELU,      "where gt s 0 s expm1 s" },
    { ACT_GELU,     "mul mul s add tanh mul add s mul mul s sqr s 0.044715 0.7978845608028654 1 0.5" },
    { ACT_GELU,     "mul s sigmoid mul add s mul mul s sqr s 0.044715 1.5957691216057308" },
    { ACT_GELU_ERF, "mul mul s erfc true_div s -1.4142135623730951 0.5" },
    { ACT_GELU_ERF, "mul mul s erfc mul s -0.7071067811865476 0.5" },
    /* in float16 factors stay where they are */
    { ACT_GELU,     "mul mul s 0.5 mul sigmoid mul add s mul mul s sqr s 0.044715 1.5957691216057308 2" },
    { ACT_GELU_ERF, "mul mul s 0.5 erfc true_div s -1.4142135623730951" },
    { ACT_GELU_ERF, "mul mul s 0.5 erfc mul s -0.7071067811865476" },
    { ACT_SWISH,    "mul s sigmoid s" },
    { ACT_NONE,     "s" },
};

/* ---- the form ---- */

static bool is_number(const struct mc_kval *v, const char *word)
{
    const double want = mc_strtod(word, NULL),
                 got = v->kind == K_CONST ? mc_load_f64(v->dtype, v->bits) : NAN;
    return fabs(got - want) <= 2 * mc_dtypes[v->dtype].eps * fabs(want);
}

/* Reads one value's form from *at; *sum is bound where s first stands. */
static bool matches(const struct mc_kernel *k, int val, const char **at, int *sum)
{
    const struct mc_kval *v = &k->val.at[val];
    char word[24];
    size_t n = strcspn(*at, " ");
    mc_snprintf(word, sizeof word, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] != '\0');
    if (strcmp(word, "s") == 0) {
        *sum = *sum < 0 ? val : *sum;
        return *sum == val;
    }
    if (word[0] == '-' || (word[0] >= '0' && word[0] <= '9')) {
        return is_number(v, word);
    }
    bool all = v->kind == K_OP && strcmp(v->op->name, word) == 0;
    for (int i = 0; all && i < v->narg; i++) {
        all = matches(k, v->arg[i], at, sum);
    }
    return all;
}

/* The value that the activation is made of; -1: it is none that solvers know. */
static int activation(const struct mc_kernel *k, int val, enum mc_act *act)
{
    for (size_t i = 0; i < NELEM(acts); i++) {
        const char *at = acts[i].form;
        int sum = -1;
        if (matches(k, val, &at, &sum)) {
            *act = acts[i].act;
            return sum;
        }
    }
    return -1;
}

/* ---- the sum ---- */

/* Operands that are added up, the solver's own among them; false: it is no plain sum of so few. */
static bool terms(const struct mc_kernel *k, int val, int *term, int *n)
{
    const struct mc_kval *v = &k->val.at[val];
    if (v->kind == K_OP && strcmp(v->op->name, "add") == 0) {
        return terms(k, v->arg[0], term, n) && terms(k, v->arg[1], term, n);
    }
    if (v->kind != K_LOAD || *n == TERMS) {
        return false;
    }
    term[(*n)++] = v->operand;
    return true;
}

/* Is it a map over one dtype, and what that is compared to? */
static bool is_plain(const struct mc_kernel *k, mc_dtype t)
{
    bool all = k->mode == KERNEL_MAP;
    for (size_t i = 0; i < k->val.n; i++) {
        all = all && (k->val.at[i].dtype == t || k->val.at[i].dtype == MC_BOOL);
    }
    return all;
}

/* The one operand that is written, where there are none but that and what is read; -1: there are others. */
static int only_result(const struct mc_kernel *k)
{
    int dst = -1;
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->index || o->tally || (o->dst && dst >= 0)) {
            return -1;
        }
        dst = o->dst ? (int)i : dst;
    }
    return dst;
}

bool mc_tail_is_whole(const struct mc_slot *y, const struct mc_slot *added)
{
    bool all = mc_dims_equal(y->type.rank, y->type.dims, added->type.rank, added->type.dims);
    for (int a = 0; all && a < y->type.rank; a++) {
        all = y->type.dims[a] == 1 || y->strides[a] == added->strides[a];
    }
    return all;
}

bool mc_tail_of(const struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_tail *t)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_kernel *k = st->kernel;
    int term[TERMS], n = 0, dst = -1;
    *t = (struct mc_tail){ .bias = -1, .c0 = -1 };
    if (f->code->backend->epilogues != EPILOGUE_SOLVER || !k || st->before >= 0 ||
        f->code->mode != MODE_FAST_RUN || f->code->program.dynamic || mc_flag_int(FLAG_strict_math) ||
        (dst = only_result(k)) < 0) {
        return false;
    }
    const struct mc_slot *y = &p->slot[st->operand[st->product]], *to = &p->slot[st->operand[dst]];
    const int sum = is_plain(k, y->type.dtype) ? activation(k, k->operand.at[dst].val, &t->act) : -1;
    if (sum < 0 || !terms(k, sum, term, &n) || n + 1 != (int)k->operand.n || !mc_tail_is_whole(y, to)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (term[i] != st->product) {
            t->added[t->nadded++] = st->operand[term[i]];
        }
    }
    t->to = st->operand[dst];
    return t->nadded == n - 1;
}
