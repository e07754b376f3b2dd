/* t_ladder.c: formulas that lose digits as they are written, their first and their second derivatives, on a
 * ladder of magnitudes: against tests/stable.txt, which tests/stable.py has computed by mpmath.  STABLE_TABLE
 * names another table.
 *
 * A result is right within a few roundings of itself and of the inputs: FEW * eps * (|number| + slack). */
#include "check.h"
#include "rewrite/rewrite.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEW = 32, MOST_INPUTS = 8, MOST_INPUT_SETS = 16, LINE = 1 << 16 };

struct input { char name[8]; int rank; int64_t dims[4]; int n; double *at; };
struct input_set { char name[8]; struct input in[MOST_INPUTS]; int nin; };
struct wanted { int n; double *number, *slack; };
struct formula { char text[256]; const struct input_set *input_set; struct wanted want[3]; }; /* V, G and H */
struct table {
    struct input_set input_set[MOST_INPUT_SETS];
    int ninput_set;
    struct formula *formula;
    size_t nformula;
};

static const char *const kinds = "VGH";

/* ---- the table ---- */

static void read_input(struct input *in, char *line)
{
    int used = 0, n = 1;
    (void)!sscanf(line, " %7s %d%n", in->name, &in->rank, &used);
    for (int i = 0; i < in->rank; i++) {
        in->dims[i] = strtol(line + used, &line, 10);
        used = 0;
        n *= (int)in->dims[i];
    }
    line += used;
    in->n = n;
    in->at = malloc((size_t)n * sizeof *in->at);
    for (int i = 0; in->at && i < n; i++) {
        in->at[i] = strtod(line, &line);
    }
}

static void read_wanted(struct wanted *w, char *line)
{
    for (char *s = line; *s; s++) {
        w->n += *s == '~';
    }
    w->number = malloc((size_t)w->n * sizeof *w->number);
    w->slack = malloc((size_t)w->n * sizeof *w->slack);
    for (int i = 0; w->number && w->slack && i < w->n; i++) {
        w->number[i] = strtod(line, &line);
        w->slack[i] = strtod(line + 1, &line);
    }
}

static const struct input_set *set_named(const struct table *t, const char *name)
{
    for (int i = 0; i < t->ninput_set; i++) {
        if (strcmp(t->input_set[i].name, name) == 0) {
            return &t->input_set[i];
        }
    }
    return NULL;
}

static bool read_table(struct table *t)
{
    const char *named = getenv("STABLE_TABLE");
    char path[1024];
    snprintf(path, sizeof path, "%s/stable.txt", TEST_ROOT);
    FILE *f = fopen(named ? named : path, "r");
    char *line = malloc(LINE);
    struct formula *last = NULL;
    while (f && line && fgets(line, LINE, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "input_set ", 10) == 0 && t->ninput_set < MOST_INPUT_SETS) {
            snprintf(t->input_set[t->ninput_set++].name, sizeof t->input_set[0].name, "%s", line + 10);
        } else if (strncmp(line, "formula ", 8) == 0) {
            char name[8] = "";
            int used = 0;
            (void)!sscanf(line + 8, "%7s %n", name, &used);
            t->formula = realloc(t->formula, (t->nformula + 1) * sizeof *t->formula);
            last = &t->formula[t->nformula++];
            *last = (struct formula){ .input_set = NULL };
            snprintf(last->text, sizeof last->text, "%s", line + 8 + used);
            last->input_set = set_named(t, name);
        } else if (line[0] == ' ' && last && strchr(kinds, line[2])) {
            read_wanted(&last->want[strchr(kinds, line[2]) - kinds], line + 3);
        } else if (line[0] == ' ' && !last) {
            struct input_set *s = &t->input_set[t->ninput_set - 1];
            read_input(&s->in[s->nin++], line);
        }
    }
    free(line);
    if (f) {
        fclose(f);
    }
    return t->nformula > 0;
}

static void free_table(struct table *t)
{
    for (size_t i = 0; i < t->nformula; i++) {
        for (int k = 0; k < 3; k++) {
            free(t->formula[i].want[k].number);
            free(t->formula[i].want[k].slack);
        }
    }
    for (int i = 0; i < t->ninput_set; i++) {
        for (int k = 0; k < t->input_set[i].nin; k++) {
            free(t->input_set[i].in[k].at);
        }
    }
    free(t->formula);
}

/* ---- one formula ---- */

static mc_dtype dtype_of(const struct input *in, mc_dtype d)
{
    return strcmp(in->name, "t") == 0 ? MC_INT32 : d;
}

static mc_graph *graph_of(const struct input_set *s, mc_dtype d)
{
    static const int64_t open[4] = { -1, -1, -1, -1 };
    mc_graph *g = mc_graph_new();
    for (int i = 0; i < s->nin; i++) {
        mc_input_sized(g, s->in[i].name, dtype_of(&s->in[i], d), s->in[i].rank, open);
    }
    return g;
}

static mc_array *value_of(const struct input *in, mc_dtype d)
{
    mc_array *a = mc_array_new(dtype_of(in, d), in->rank, in->dims);
    for (int64_t i = 0; a && i < in->n; i++) {
        mc_store_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size, in->at[i]);
    }
    return a;
}

/* V, G = grad(sum(V), x) and H = grad(sum(G * v), x); what does not depend on x any more has derivative 0. */
static bool results(mc_graph *g, const char *text, mc_node **out)
{
    const mc_grad_spec zero = { .disconnected = MC_DISCONNECTED_ZERO };
    mc_node *x = mc_var(g, "x");
    out[0] = mc_formula(g, text);
    bool fine = !mc_is_error(out[0]);
    for (int i = 1; i < 3 && fine; i++) {
        mc_node *c = i == 1 ? out[0] : mc_op2("mul", out[1], mc_var(g, "v"));
        c = c->type.rank ? mc_call_op(g, "sum", 1, &c, NULL) : c;
        fine = mc_grads(c, 1, &x, &out[i], &zero) == MC_OK;
    }
    return CHECK(fine, "%s: %s", text, mc_error(g));
}

static bool is_right(double got, double want, double slack, mc_dtype d)
{
    const double eps = d == MC_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON,
                 most = d == MC_FLOAT64 ? DBL_MAX : (double)FLT_MAX;
    const double least =
        d == MC_FLOAT64 ? 1e-58
                        : 1e-36; /* what underflows on the way, or is too small for differences to tell */
    if (fabs(want) > most / 8) {
        return fabs(got - want) <= 1e-3 * fabs(want) || (isinf(got) && (got > 0) == (want > 0));
    }
    const double printed = d == MC_FLOAT64 ? 1e-11 * fabs(want) : 0;
    return fabs(got - want) <= FEW * eps * (fabs(want) + slack) + FEW * eps * 1e-60 + least + printed;
}

/* Of a formula composed at random: where its value overflows, or the derivative itself, it is made of
 * infinities of either sign. */
static bool is_beyond(const struct formula *f, int kind, int at, mc_dtype d)
{
    const double most = (d == MC_FLOAT64 ? DBL_MAX : (double)FLT_MAX) / 8;
    bool beyond = fabs(f->want[kind].number[at]) > most;
    for (int i = 0; i < f->want[0].n; i++) {
        beyond |= fabs(f->want[0].number[i]) > most;
    }
    return beyond && kind > 0 && getenv("STABLE_TABLE");
}

static void compare(const struct formula *f, int kind, const mc_array *a, const char *how)
{
    const struct wanted *w = &f->want[kind];
    const struct input *x = &f->input_set->in[0];
    if (!CHECK(mc_array_size(a) == w->n, "%s: %c has %lld elements, not %d", f->text, kinds[kind],
               (long long)mc_array_size(a), w->n)) {
        return;
    }
    int wrong = 0, first = -1;
    double got = 0;
    for (int i = 0; i < w->n; i++) {
        double v = mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size);
        if (!is_right(v, w->number[i], w->slack[i], a->dtype) &&
            !(isnan(v) && is_beyond(f, kind, i, a->dtype))) {
            got = wrong++ ? got : v;
            first = first < 0 ? i : first;
        }
    }
    CHECK(!wrong, "%s, %s%s, inputs %s: %c[%d] (x %g) is %.9g, not %.9g; %d of %d are wrong", f->text,
          mc_dtype_name(a->dtype), how, f->input_set->name, kinds[kind], first,
          w->n == x->n ? x->at[first] : NAN, got, w->number[first], wrong, w->n);
}

static void check_formula(const struct formula *f, mc_dtype d, unsigned *fired)
{
    mc_graph *g = graph_of(f->input_set, d);
    mc_node *out[3], *leaf[MOST_INPUTS];
    mc_array *value[MOST_INPUTS], *result[3] = { NULL };
    if (results(g, f->text, out) &&
        CHECK(mc_rewrite(g, 3, out, &(struct mc_rewrite){ .fired = fired }) == MC_OK, "%s: %s", f->text,
              mc_last_error())) {
        for (int i = 0; i < f->input_set->nin; i++) {
            leaf[i] = mc_var(g, f->input_set->in[i].name);
            value[i] = value_of(&f->input_set->in[i], d);
        }
        if (CHECK(mc_eval(f->input_set->nin, leaf, value, 3, out, result) == MC_OK, "%s: %s", f->text,
                  mc_last_error())) {
            for (int k = 0; k < 3; k++) {
                compare(f, k, result[k], "");
                mc_array_unref(&result[k]);
            }
        }
        for (int i = 0; i < f->input_set->nin; i++) {
            mc_array_unref(&value[i]);
        }
    }
    mc_graph_free(g);
}

/* Each formula by itself, rewritten and evaluated by the reference. */
static void check_all(mc_dtype d)
{
    struct table t = { .ninput_set = 0 };
    REQUIRE(read_table(&t), "there is no table");
    for (size_t i = 0; i < t.nformula; i++) {
        check_formula(&t.formula[i], d, NULL);
    }
    free_table(&t);
}

TEST(formulas_keep_their_digits_in_float32) { check_all(MC_FLOAT32); }
TEST(formulas_keep_their_digits_in_float64) { check_all(MC_FLOAT64); }

/* ---- compiled: formulas of one set of inputs, many to a program; some of them in the everyday tier ---- */

enum { TOGETHER = 24 };

static void check_program(const struct formula *const *f, int n, mc_dtype d, const char *mode)
{
    const struct input_set *s = f[0]->input_set;
    mc_graph *g = graph_of(s, d);
    mc_node *out[3 * TOGETHER], *in[MOST_INPUTS];
    mc_array *value[MOST_INPUTS], *result[3 * TOGETHER] = { NULL };
    mc_arg src[MOST_INPUTS], dst[3 * TOGETHER];
    bool fine = true;
    for (int i = 0; i < n && fine; i++) {
        fine = results(g, f[i]->text, out + 3 * i);
    }
    for (int i = 0; i < s->nin; i++) {
        in[i] = mc_var(g, s->in[i].name);
        value[i] = value_of(&s->in[i], d);
        src[i] = MC_ARG(value[i]);
    }
    for (int i = 0; i < 3 * n; i++) {
        dst[i] = MC_RES(&result[i]);
    }
    mc_function *fn = fine ? mc_compile(g, &(mc_spec){ .input = in,
                                                       .ninput = s->nin,
                                                       .output = out,
                                                       .noutput = 3 * n,
                                                       .on_unused = "ignore",
                                                       .mode = mode })
                           : NULL;
    if (CHECK(fn, "%s ...: %s", f[0]->text, mc_error(g)) &&
        CHECK(mc_call_args(fn, s->nin, src, 3 * n, dst) == MC_OK, "%s ...: %s", f[0]->text,
              mc_last_error())) {
        for (int i = 0; i < 3 * n; i++) {
            mc_array *home = mc_array_to(result[i], "cpu");
            compare(f[i / 3], i % 3, home, mode ? " in FAST_COMPILE" : " in kernels");
            mc_array_unref(&home);
        }
    }
    for (int i = 0; i < s->nin; i++) {
        mc_array_unref(&value[i]);
    }
    for (int i = 0; i < 3 * n; i++) {
        mc_array_unref(&result[i]);
    }
    mc_function_free(fn);
    mc_graph_free(g);
}

static void check_kernels(mc_dtype d, const char *mode)
{
    struct table t = { .ninput_set = 0 };
    const struct formula *some[TOGETHER];
    const size_t step = mode || test_is_full() ? 1 : 16;
    REQUIRE(read_table(&t), "there is no table");
    for (int s = 0; s < t.ninput_set; s++) {
        int n = 0;
        for (size_t i = 0; i <= t.nformula; i++) {
            if (i < t.nformula && i % step == 0 && t.formula[i].input_set == &t.input_set[s]) {
                some[n++] = &t.formula[i];
            }
            if (n && (n == TOGETHER || i == t.nformula)) {
                check_program(some, n, d, mode);
                n = 0;
            }
        }
    }
    free_table(&t);
}

TEST(kernels_keep_their_digits_in_float32) { check_kernels(MC_FLOAT32, NULL); }
TEST(fast_compile_keeps_digits) { check_kernels(MC_FLOAT32, "FAST_COMPILE"); }
TEST_FULL(kernels_keep_their_digits_in_float64) { check_kernels(MC_FLOAT64, NULL); }

/* ---- the tables of rules ---- */

TEST(each_rule_that_mends_has_its_formula)
{
    struct table t = { .ninput_set = 0 };
    const int n = mc_rule_count();
    unsigned *fired = calloc((size_t)n, sizeof *fired);
    REQUIRE(fired && read_table(&t), "there is no table");
    for (size_t i = 0; i < t.nformula; i++) {
        check_formula(&t.formula[i], MC_FLOAT64, fired);
    }
    for (int i = 0; i < mc_rules_stable.n; i++) {
        int at = 0;
        while (at < n && mc_rule_at(at) != &mc_rules_stable.row[i]) {
            at++;
        }
        CHECK(at < n && fired[at], "no formula of tests/stable.py meets '%s'",
              mc_rule_name(&mc_rules_stable.row[i]));
    }
    free(fired);
    free_table(&t);
}

/* ---- what gradients keep of a cost that is written anew ---- */

/* x is (0, 1), y (1, 1); softmax(x) is (0.26894, 0.73106), softmax(2 * x) (0.11920, 0.88080). */
TEST(gradients_of_stable_forms_are_those_of_the_cost)
{
    static const struct { const char *formula; double want[2]; } cases[] = {
        { "grad(sum(log(softmax(x)) * y) + sum(relu(x)), x)",             { 1 - 2 * 0.2689414213699951 + 0.5, 2 - 2 * 0.7310585786300049 } }, /* half at 0 */
        { "grad(sum(log(softmax(x))[:, 0]) + sum(maximum(0, x)), x)",     { 0.7310585786300049, 0.2689414213699951 } },  /* the first has the tie */
        { "grad(sum(log(softmax(x))[:, 0]) + sum(maximum(x, 0)), x)",     { 1.7310585786300049, 0.2689414213699951 } },
        { "z = x * 2; grad(sum(log(softmax(z))[:, 0]), z)",               { 0.8807970779778823, -0.8807970779778823 } },
        { "s = softmax(x); grad(-sum(log(s)[:, 0]), s)",                  { -3.718281828459045, 0 } },
        { "z = exp(x); grad(sum(log(1 + z)), z)",                         { 0.5, 0.2689414213699951 } },
        { "grad(sum(log(softmax(consider_constant(x) + x))[:, 0]), x)",   { 0.8807970779778823, -0.8807970779778823 } },
        { "grad(sum(softmax(x + expand_dims(y[:, 0], 1))[:, 0]), y)",                    { 0, 0 } },
        { "grad(sum(log(exp(x))), x)",                                    { 1, 1 } },
        { "grad(sum(grad(sum(log(exp(x) * 3 + exp(y))), x)), y)",         { -3 / 1.0 * 2.718281828459045 / (5.718281828459045 * 5.718281828459045), -0.1875 } },
        { "grad(sum(grad_scale(log(1 + exp(x)), 3)), x)",                 { 1.5, 2.193175735890015 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mc_graph *g = mc_graph_new();
        mc_array *value[2] = { mc_array_from(MC_FLOAT64, MC_SHAPE(1, 2), (double[]){ 0, 1 }),
                               mc_array_from(MC_FLOAT64, MC_SHAPE(1, 2), (double[]){ 1, 1 }) };
        mc_node *leaf[2] = { mc_input(g, "x", MC_FLOAT64, 2), mc_input(g, "y", MC_FLOAT64, 2) },
                *n = mc_formula(g, cases[i].formula);
        mc_array *r = NULL;
        if (CHECK(!mc_is_error(n), "%s: %s", cases[i].formula, mc_error(g)) &&
            CHECK(mc_rewrite(g, 1, &n, NULL) == MC_OK, "%s", mc_last_error()) &&
            CHECK(mc_eval(2, leaf, value, 1, &n, &r) == MC_OK, "%s: %s", cases[i].formula, mc_last_error())) {
            for (int k = 0; k < 2; k++) {
                double got = mc_array_get(r, (int64_t[]){ 0, k });
                CHECK(fabs(got - cases[i].want[k]) < 1e-12, "%s: [%d] is %.15g, not %.15g", cases[i].formula,
                      k, got, cases[i].want[k]);
            }
        }
        mc_array_unref(&r);
        mc_array_unref(&value[0]);
        mc_array_unref(&value[1]);
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 2);
    mc_input(g, "y", MC_FLOAT64, 2);
    CHECK(mc_is_error(mc_formula(g, "grad(sum(log(softmax(x))), y)")) &&
              strstr(mc_error(g), "does not depend on y"),
          "it says '%s'", mc_error(g));
    mc_graph_free(g);
}

/* ---- constants ---- */

/* A factor that waits may let overflow what comes before it: float16 ends at 65504, float32 at 3.4e38. */
TEST(factors_do_not_wait_where_that_overflows)
{
    static const struct { float x; const char *formula; double want; } rows[] = {
        { 100, "h = cast(x, float16); y = dot(h * 0.1, h.T)",         4000 },
        { 100, "h = cast(x, float16); y = dot(h, h.T * 0.1)",         4000 },
        { 200, "h = cast(x, float16); y = dot(h / 10, h.T)",         16000 },
        { 200, "h = cast(x, float16); y = dot(h, h.T / 10)",         16000 },
        { 200, "h = cast(x, float16); y = expand_dims(h, 0) * 0.1; y = batched_dot(y, expand_dims(h.T, 0))[0]", 16000 },
        { 60000, "h = cast(x, float16); y = sum(h * 0.01) * [[1, 1]]", 4800 },
        { 300, "h = cast(x, float16); y = h * 0.1 * exp(log(h))",     9000 },
        { 60000, "h = cast(x, float16); y = (h - 60000) + exp(log(h) * 0.9)", 19973 },
        { 1e25f, "y = x * 1e-20 * exp(log(x))",                       1e30 },
        { 1e25f, "y = dot(x * 1e-20, x.T)",                           4e30 },
        { 300, "h = cast(x, float16); y = h ** -2",              1 / 9e4 },
        { 8, "h = cast(x, float16); y = h ** -6",           1 / 262144.0 },
        { 1e20f, "y = x ** -2 * 1e20",                             1e-20 },
        { 1e13f, "y = x ** -3 * 1e20",                             1e-19 },
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < 3 * (sizeof rows / sizeof *rows); i++) {
        float x[8], out;
        mc_graph *g = mc_graph_new();
        for (int k = 0; k < 8; k++) {
            x[k] = rows[i / 3].x;
        }
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_formula(g, rows[i / 3].formula);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = "cast(y, float32)[0, 0]", .mode = modes[i % 3] });
        mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 4), x);
        if (CHECK(f, "%s", mc_error(g)) &&
            CHECK(mc_call(f, MC_IN(a), MC_OUT(&out)) == MC_OK, "%s", mc_last_error())) {
            CHECK(fabs(out / rows[i / 3].want - 1) < 0.02, "%s of %g is %g, not %g, in %s",
                  rows[i / 3].formula, rows[i / 3].x, out, rows[i / 3].want, modes[i % 3]);
        }
        mc_array_unref(&a);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* ---- an axis of no elements ---- */

/* log(0) = -inf and softmax of nothing is empty, as in SciPy and PyTorch; 0 / 0 is NaN.  The maximum that a
 * stable form takes off must not refuse what the formula as written has a value for. */
/* Rows of 1000 and 3, and of 4 and -1000: what has not become softmax is inf / inf. */
TEST(softmax_is_found_behind_views)
{
#define S "(exp(x) / sum(exp(x), axis=1, keepdims=True))"
    static const struct { const char *formula; double sum; } rows[] = {
        { S ".T", 2 }, { S "[:, 0]", 2 }, { S "[::-1] * 3", 6 }, { "reshape(" S ", [4])", 2 }, { "concatenate([" S ", " S "], axis=0)", 4 },
        { "flatten(" S ") + 1", 6 }, { S "[[1, 0, 1]]", 3 }, { "expand_dims(" S ", 1)", 2 }, { "tile(" S ", [2, 1])", 4 },
        { "exp(x).T / sum(exp(x).T, axis=0, keepdims=True)", 2 }, { "(exp(x) / sum(exp(x), axis=1)[:, None]).T", 2 },
        { "(x - log(sum(exp(x), axis=1, keepdims=True))).T", -2001 }, { "logsumexp(logsumexp(x, axis=1), keepdims=True)", 1000 },
        { "log(sum(sum(exp(x), axis=0, keepdims=True)[:, ::-1], axis=1))", 1000 }, { "(exp(x) / sum(exp(x), axis=1, keepdims=True) * 2).T", 4 },
    };
#undef S
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        char outputs[400];
        snprintf(outputs, sizeof outputs, "sum(%s), grad(sum(sqr(%s)), x)", rows[i].formula, rows[i].formula);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = outputs });
        mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 2), (float[]){ 1000, 3, 4, -1000 }), *y = NULL,
                 *slope = NULL;
        if (CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y, &slope)) == MC_OK, "%s: %s", rows[i].formula,
                  f ? mc_last_error() : mc_error(g))) {
            const double have = mc_load_f64(MC_FLOAT32, y->data);
            CHECK(fabs(have - rows[i].sum) < 1e-3, "%s adds up to %g, not %g", rows[i].formula, have,
                  rows[i].sum);
            for (int k = 0; k < 4; k++) {
                CHECK(isfinite(mc_load_f64(MC_FLOAT32, slope->data + k * 4)),
                      "element %d of the gradient of %s is not finite", k, rows[i].formula);
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&slope);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(stable_forms_of_no_elements)
{
    static const struct { const char *text; int rank; int64_t dims[3]; double want; } rows[] = {
        { "softmax(x)",                                          3, { 3, 1, 0 }, 0 },
        { "exp(x) / sum(exp(x), axis=-1, keepdims=True)",        3, { 3, 1, 0 }, 0 },
        { "log(exp(x) / sum(exp(x), axis=-1, keepdims=True))",   3, { 3, 1, 0 }, 0 },
        { "logsoftmax(x)",                                       3, { 3, 1, 0 }, 0 },
        { "log(softmax(x))",                                     3, { 3, 1, 0 }, 0 },
        { "softmax(x, axis=1)",                                  3, { 3, 1, 0 }, 0 },
        { "-log(softmax(x))[:, 0]",                              2, { 3, 0 },    0 },
        { "logsumexp(x)",                                        0, { 0 },       -INFINITY },
        { "logsumexp(x, axis=-1)",                               2, { 3, 1 },    -INFINITY },
        { "logsumexp(x, axis=[0, 2])",                           1, { 1 },       -INFINITY },
        { "logsumexp(x, axis=2, keepdims=True)",                 3, { 3, 1, 1 }, -INFINITY },
        { "logsumexp(x, axis=0)",                                2, { 1, 0 },    0 },
        { "log(sum(exp(x), axis=-1) + sum(exp(x * 2), axis=-1))", 2, { 3, 1 },   -INFINITY },
        { "log(1 + sum(exp(x), axis=-1))",                       2, { 3, 1 },    0 },
        { "sum(x * softmax(x), axis=-1)",                        2, { 3, 1 },    0 },
        { "sum(exp(x) * x, axis=-1) / sum(exp(x), axis=-1)",     2, { 3, 1 },    NAN },
        { "softmax(cast(x, int32), axis=2)",                     3, { 3, 1, 0 }, 0 },
        { "grad(sum(logsumexp(x, axis=-1) * 2), x)",             3, { 3, 1, 0 }, 0 },
        { "grad(sum(softmax(x) * x), x)",                        3, { 3, 1, 0 }, 0 },
        { "grad(sum(logsoftmax(x) * x), x)",                     3, { 3, 1, 0 }, 0 },
        { "grad(sum(grad(logsumexp(x), x) * x), x)",             3, { 3, 1, 0 }, 0 },
    };
    static const int64_t sizes[][3] = { { 3, 1, 0 }, { 3, -1, 0 }, { -1, -1, -1 } };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows * 9; i++) {
        const char *text = rows[i / 9].text;
        const int64_t *dims = sizes[i % 3];
        mc_graph *g = mc_graph_new();
        mc_input_sized(g, "x", MC_FLOAT32, 3, dims);
        mc_function *f = mc_compile(g,
                                    &(mc_spec){ .inputs = "x", .outputs = text, .mode = modes[i % 9 / 3] });
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 1, 0)), *r = NULL, *y = NULL;
        if (CHECK(f, "%s: %s", text, mc_error(g)) &&
            CHECK(mc_call(f, MC_IN(x), MC_OUT(&r)) == MC_OK, "%s: %s", text, mc_last_error())) {
            y = mc_array_to(r, "cpu");
            CHECK(mc_array_rank(y) == rows[i / 9].rank &&
                      memcmp(mc_array_dims(y), rows[i / 9].dims,
                             (size_t)rows[i / 9].rank * sizeof(int64_t)) == 0,
                  "%s has another shape", text);
            for (int64_t k = 0; k < mc_array_size(y); k++) {
                const double got = (double)((const float *)mc_array_data(y))[k], want = rows[i / 9].want;
                CHECK(isnan(want) ? isnan(got) : got >= want && got <= want, "%s, %s [%d]: %g, not %g", text,
                      modes[i % 9 / 3], (int)k, got, want);
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&r);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
