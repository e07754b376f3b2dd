/* Choices: values and gradients against mathematics and against the same graph with switch, which computes
 * both sides; which side is computed, by ops that count. */
#include "check.h"
#include "exec/function.h"
#include "graph/graph.h"
#include "own_folder.h"
#include <monochord_ops.h>

#include <math.h>

static double at(const mc_array *a, int64_t i)
{
    return a ? mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size) : NAN;
}

static mc_array *vector(int n, const double *v)
{
    mc_array *a = mc_array_new(MC_FLOAT64, MC_SHAPE(n));
    for (int i = 0; i < n; i++) {
        ((double *)mc_array_data(a))[i] = v[i];
    }
    return a;
}

/* ---- an op that counts how often it runs: x -> 2 x ---- */

struct counter { int runs; };

static mc_status twice_run(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    (void)nin, (void)nout;
    ((struct counter *)arg)->runs++;
    mc_array *sum = mc_array_copy(in[0]);
    const double *x = (const double *)mc_array_data(sum);
    double *y = (double *)mc_array_data(out[0]);
    for (int64_t i = 0; i < mc_array_size(sum); i++) {
        y[i] = 2 * x[i];
    }
    mc_array_unref(&sum);
    return MC_OK;
}

static mc_node *twice_grad(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                           mc_node *const *g, int wrt)
{
    (void)arg, (void)nin, (void)in, (void)nout, (void)out, (void)wrt;
    return mc_call_op(g[0]->graph, "back", 1, &g[0], NULL);
}

/* Registers p, q and back, which count. */
static mc_graph *counting(struct counter *p, struct counter *q, struct counter *back)
{
    mc_graph *g = mc_graph_new();
    struct counter *const c[] = { p, q, back };
    static const char *const name[] = { "p", "q", "back" };
    for (int i = 0; i < 3; i++) {
        const mc_custom op = { .name = name[i], .nin = 1, .nout = 1, .run = twice_run,
                               .grad = twice_grad, .arg = c[i] };
        CHECK(mc_register(g, &op) == MC_OK, "%s", mc_error(g));
    }
    return g;
}

/* ---- calls ---- */

/* The results of a program over inputs c (a scalar) and x (a vector of float64). */
static bool run(mc_graph *g, const char *outputs, const char *mode, double c, const mc_array *x, int n,
                mc_array **r)
{
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "c, x", .outputs = outputs, .mode = mode, .on_unused = "ignore" });
    mc_status s = f ? MC_OK : MC_ECOMPILE;
    if (CHECK(f, "%s: %s", outputs, mc_error(g))) {
        mc_arg in[2] = { mc_arg_real(c), mc_arg_array(x) }, out[8];
        for (int i = 0; i < n; i++) {
            mc_array_unref(&r[i]);
            out[i] = mc_arg_slot(&r[i]);
        }
        s = mc_call_args(f, 2, in, n, out);
    }
    mc_function_free(f);
    return s == MC_OK;
}

static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG", "NANGUARD" };

/* ---- which side is computed ---- */

TEST(only_one_side_is_computed)
{
    for (size_t m = 0; m < NELEM(modes); m++) {
        struct counter p = { 0 }, q = { 0 }, back = { 0 };
        mc_graph *g = counting(&p, &q, &back);
        mc_formula(g, "input c float64; input x float64[?]\ny = ifelse(c, p(x) + 1, q(q(x)))");
        mc_array *x = vector(2, (double[]){ 1, 5 }), *y = NULL;
        CHECK(run(g, "y", modes[m], 1, x, 1, &y) && at(y, 0) == 3 && at(y, 1) == 11, "%s", mc_last_error());
        CHECK(p.runs == 1 && q.runs == 0, "%s: %d and %d", modes[m], p.runs, q.runs);
        CHECK(run(g, "y", modes[m], 0, x, 1, &y) && at(y, 0) == 4 && at(y, 1) == 20, "%s", mc_last_error());
        CHECK(p.runs == 1 && q.runs == 2, "%s: %d and %d", modes[m], p.runs, q.runs);
        mc_array_unref(&x), mc_array_unref(&y);
        mc_graph_free(g);
    }
}

/* The gradient reads what the side has computed, and the other side is not differentiated. */
TEST(gradients_compute_one_side)
{
    struct counter p = { 0 }, q = { 0 }, back = { 0 };
    mc_graph *g = counting(&p, &q, &back);
    mc_formula(g, "input c float64; input x float64[?]\n"
                  "y = ifelse(c, p(exp(x)), q(x ** 3) ** 2)\ncost = sum(y)\ng = grad(cost, x)");
    mc_array *x = vector(2, (double[]){ 1, 2 }), *r[2] = { NULL };
    CHECK(run(g, "g, y", NULL, 1, x, 2, r), "%s", mc_last_error());
    CHECK(fabs(at(r[0], 0) - 2 * exp(1)) < 1e-12 && fabs(at(r[0], 1) - 2 * exp(2)) < 1e-12, "%.17g",
          at(r[0], 0));
    CHECK(p.runs == 1 && q.runs == 0 && back.runs == 1, "%d, %d, %d", p.runs, q.runs, back.runs);
    CHECK(run(g, "g, y", NULL, 0, x, 2, r), "%s", mc_last_error());
    /* 4 x^6, of which the gradient is 24 x^5 */
    CHECK(fabs(at(r[0], 0) - 24) < 1e-10 && fabs(at(r[0], 1) - 24 * 32) < 1e-10, "%.17g", at(r[0], 1));
    CHECK(p.runs == 1 && q.runs == 1 && back.runs == 2, "%d, %d, %d", p.runs, q.runs, back.runs);
    mc_array_unref(&x), mc_array_unref(&r[0]), mc_array_unref(&r[1]);
    mc_graph_free(g);
}

/* What others read as well is computed once, in any case. */
TEST(what_others_read_is_outside)
{
    struct counter p = { 0 }, q = { 0 }, back = { 0 };
    mc_graph *g = counting(&p, &q, &back);
    mc_formula(g, "input c float64; input x float64[?]\n"
                  "h = p(x)\ny = ifelse(c, exp(h), q(x))\nz = ifelse(c, h, -q(x))");
    mc_array *x = vector(1, (double[]){ 3 }), *r[3] = { NULL };
    CHECK(run(g, "y, z", NULL, 1, x, 2, r) && at(r[1], 0) == 6 && fabs(at(r[0], 0) - exp(6)) < 1e-9, "%s",
          mc_last_error());
    CHECK(p.runs == 1 && q.runs == 0, "two choices with one condition: %d, %d", p.runs, q.runs);
    CHECK(run(g, "y, z", NULL, 0, x, 2, r) && at(r[0], 0) == 6 && at(r[1], 0) == -6, "%s", mc_last_error());
    CHECK(p.runs == 1 && q.runs == 1, "two choices with one condition: %d, %d", p.runs, q.runs);
    CHECK(run(g, "y, h", NULL, 0, x, 2, r) && at(r[1], 0) == 6, "%s", mc_last_error());
    CHECK(p.runs == 2, "an output reads h: %d", p.runs);
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&r[i]);
    }
    mc_array_unref(&x);
    mc_graph_free(g);
}

TEST(checks_of_the_other_side_do_not_fail)
{
    for (size_t m = 0; m < NELEM(modes); m++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input c float64; input x float64[?]\n"
                      "y = ifelse(c, assert_(x, all(x > 0), msg='not positive') + 1, x)\n"
                      "z = ifelse(c, x[cast(x[0], 'int64')], 7.0)\n"
                      "w = ifelse(c, dot(x[:-1], x), 1.5)");
        mc_array *x = vector(2, (double[]){ -9, 5 }), *y = NULL;
        CHECK(run(g, "y", modes[m], 0, x, 1, &y) && at(y, 0) == -9, "%s", mc_last_error());
        CHECK(!run(g, "y", modes[m], 1, x, 1, &y) && strstr(mc_last_error(), "not positive"), "%s",
              mc_last_error());
        CHECK(run(g, "z", modes[m], 0, x, 1, &y) && at(y, 0) == 7, "%s", mc_last_error());
        CHECK(!run(g, "z", modes[m], 1, x, 1, &y) && strstr(mc_last_error(), "out of range"), "%s",
              mc_last_error());
        CHECK(run(g, "w", modes[m], 0, x, 1, &y) && at(y, 0) == 1.5, "%s", mc_last_error());
        CHECK(!run(g, "w", modes[m], 1, x, 1, &y), "sizes that do not fit");
        mc_array_unref(&x), mc_array_unref(&y);
        mc_graph_free(g);
    }
}

TEST(choices_nest)
{
    struct counter p = { 0 }, q = { 0 }, back = { 0 };
    mc_graph *g = counting(&p, &q, &back);
    mc_formula(
        g, "input c float64; input x float64[?]\n"
           "y = ifelse(c > 0, ifelse(c > 1, p(x), q(x) * x), ifelse(c < -1, p(p(2 * x)), q(q(q(3 * x)))))\n"
           "g = grad(sum(y), x)");
    static const struct { double c, y, g; int p, q; } rows[] = {
        { 2, 6, 2, 1, 0 }, { 1, 18, 12, 0, 2 }, /* q(x) is computed again for the gradient */
         { -2, 24, 8, 2, 0 }, { 0, 72, 24, 0, 3 },
    };
    mc_array *x = vector(1, (double[]){ 3 }), *r[2] = { NULL };
    for (size_t i = 0; i < NELEM(rows); i++) {
        p.runs = q.runs = 0;
        CHECK(run(g, "y, g", NULL, rows[i].c, x, 2, r) && at(r[0], 0) == rows[i].y &&
                  at(r[1], 0) == rows[i].g,
              "%g: %g, %g; %s", rows[i].c, at(r[0], 0), at(r[1], 0), mc_last_error());
        CHECK(p.runs == rows[i].p && q.runs == rows[i].q, "%g: %d, %d", rows[i].c, p.runs, q.runs);
    }
    mc_array_unref(&x), mc_array_unref(&r[0]), mc_array_unref(&r[1]);
    mc_graph_free(g);
}

/* ---- values ---- */

TEST(conditions_of_every_dtype)
{
    static const struct { const char *c; bool yes; } rows[] = {
        { "cast(1, 'bool')", true }, { "cast(0, 'bool')", false }, { "cast(-1, 'int8')", true },
        { "cast(0, 'int64')", false }, { "cast(200, 'uint8')", true }, { "cast(0.25, 'float16')", true },
        { "cast(0, 'bfloat16')", false }, { "cast(-0.0, 'float32')", false }, { "cast(x[1], 'float32')", true },
        { "x[2]", false }, { "x[0] > 3", true }, { "1", true }, { "0", false },
    };
    mc_array *x = vector(3, (double[]){ 4, NAN, 0 }), *y = NULL;
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input c float64; input x float64[3]");
        CHECK(!mc_is_error(mc_formulaf(g, "y = ifelse(%s, x[0], -x[0])", rows[i].c)), "%s", mc_error(g));
        CHECK(run(g, "y", NULL, 0, x, 1, &y) && at(y, 0) == (rows[i].yes ? 4 : -4), "%s: %g", rows[i].c,
              at(y, 0));
        mc_graph_free(g);
    }
    mc_array_unref(&x), mc_array_unref(&y);
}

TEST(several_values)
{
    mc_graph *g = mc_graph_new();
    mc_node *made = mc_formula(
        g, "input c float64; input x float64[?]\n"
           "a, b, n = ifelse(c, [x, sum(x), 3], [2 * x, prod(x), 4])\ng = grad(sum(a) * b, x)");
    CHECK(!mc_is_error(made), "%s", mc_error(g));
    mc_array *x = vector(2, (double[]){ 3, 5 }), *r[4] = { NULL };
    CHECK(run(g, "a, b, n, g", NULL, 1, x, 4, r), "%s", mc_last_error());
    /* (3 + 5)^2: the gradient is 16, 16 */
    CHECK(at(r[0], 1) == 5 && at(r[1], 0) == 8 && at(r[2], 0) == 3 && at(r[3], 0) == 16 && at(r[3], 1) == 16,
          "%g", at(r[3], 0));
    CHECK(run(g, "a, b, n, g", NULL, 0, x, 4, r), "%s", mc_last_error());
    /* 2 (a + b) a b: the gradient by a is 4 a b + 2 b^2 */
    CHECK(at(r[0], 1) == 10 && at(r[1], 0) == 15 && at(r[2], 0) == 4 && at(r[3], 0) == 110 &&
              at(r[3], 1) == 78,
          "%g", at(r[3], 0));
    CHECK(run(g, "b", NULL, 0, x, 1, r) && at(r[0], 0) == 15, "%s", mc_last_error());

    mc_node *c = mc_formula(g, "c"), *v = mc_formula(g, "x"), *w = mc_formula(g, "x * x");
    mc_node *pair = mc_ifelse_list(c, 2, (mc_node *[]){ v, w }, (mc_node *[]){ w, v });
    CHECK(pair == mc_formula(g, "ifelse(c, [x, x * x], [x * x, x])"), "%s", mc_error(g));
    CHECK(mc_ifelse_list(c, 1, &v, &w) == mc_ifelse(c, v, w), "%s", mc_error(g));
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&r[i]);
    }
    mc_array_unref(&x);
    mc_graph_free(g);
}

TEST(sides_of_different_sizes)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input c float64; input x float64[?]\n"
                  "y = ifelse(c, x[1:], concatenate(x, x))\n" /* an input determines the sizes */
                  "z = ifelse(sum(x) > 10, x[:1], x * x)\n"   /* what is computed does */
                  "g = grad(sum(sqr(y)), x)\ns = size(z, 0)");
    mc_array *x = vector(3, (double[]){ 1, 2, 3 }), *big = vector(3, (double[]){ 10, 20, 30 }),
             *r[4] = { NULL };
    CHECK(run(g, "y, g, z, s", NULL, 1, x, 4, r), "%s", mc_last_error());
    CHECK(mc_array_size(r[0]) == 2 && at(r[0], 0) == 2, "%g", at(r[0], 0));
    CHECK(at(r[1], 0) == 0 && at(r[1], 1) == 4 && at(r[1], 2) == 6, "%g", at(r[1], 0));
    CHECK(mc_array_size(r[2]) == 3 && at(r[2], 2) == 9 && at(r[3], 0) == 3, "%g", at(r[2], 2));
    CHECK(run(g, "y, g, z, s", NULL, 0, big, 4, r), "%s", mc_last_error());
    CHECK(mc_array_size(r[0]) == 6 && at(r[0], 5) == 30, "%g", at(r[0], 0));
    CHECK(at(r[1], 0) == 40 && at(r[1], 1) == 80 && at(r[1], 2) == 120, "%g", at(r[1], 0));
    CHECK(mc_array_size(r[2]) == 1 && at(r[2], 0) == 10 && at(r[3], 0) == 1, "%g", at(r[2], 0));
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&r[i]);
    }
    mc_array_unref(&x), mc_array_unref(&big);
    mc_graph_free(g);
}

TEST(derivatives_of_every_order)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input c float64; input x float64[?]\n"
                  "y = sum(ifelse(c, x ** 3, sqrt(-x)))\nd1 = grad(y, x); d2 = grad(sum(d1), x); d3 = "
                  "grad(sum(d2), x)\n"
                  "r = Rop(ifelse(c, x ** 3, sqrt(-x)), x, x)");
    mc_array *x = vector(1, (double[]){ 2 }), *m = vector(1, (double[]){ -4 }), *r[4] = { NULL };
    CHECK(run(g, "d1, d2, d3, r", NULL, 1, x, 4, r), "%s", mc_last_error());
    CHECK(at(r[0], 0) == 12 && at(r[1], 0) == 12 && at(r[2], 0) == 6 && at(r[3], 0) == 24, "%g %g %g %g",
          at(r[0], 0), at(r[1], 0), at(r[2], 0), at(r[3], 0));
    CHECK(run(g, "d1, d2, d3, r", NULL, 0, m, 4, r), "%s", mc_last_error());
    /* -1/2 u^-1/2, -1/4 u^-3/2, -3/8 u^-5/2 at u = 4 */
    const double want[] = { -.25, -.03125, -3. / 256, 1 };
    for (int i = 0; i < 4; i++) {
        CHECK(fabs(at(r[i], 0) - want[i]) < 1e-14, "%d: %.17g", i, at(r[i], 0));
        mc_array_unref(&r[i]);
    }
    double worst;
    mc_node *wrt = mc_formula(g, "x"), *given = mc_formula(g, "c");
    for (int c = 0; c < 2; c++) {
        mc_array *value = mc_array_scalar(MC_FLOAT64, c);
        CHECK(mc_verify_grad_given(mc_formula(g, "d1"), 1, &wrt, c ? &x : &m, 1, &given, &value, &worst) ==
                  MC_OK,
              "%s", mc_last_error());
        mc_array_unref(&value);
    }
    mc_array_unref(&x), mc_array_unref(&m);
    mc_graph_free(g);
}

/* ---- loops ---- */

TEST(choices_in_loops_and_loops_in_choices)
{
    for (size_t m = 0; m < NELEM(modes); m++) {
        struct counter p = { 0 }, q = { 0 }, back = { 0 };
        mc_graph *g = counting(&p, &q, &back);
        mc_node *made = mc_formula(
            g, "input c float64; input x float64[?]\n"
               "y = scan(e in x, h from 1.0f64: h = ifelse(e > c, stack([h * e])[0], sum(q(stack([h])))); "
               "yield h)\n"
               "gy = grad(y[-1], x)\n"
               "z = ifelse(c, scan(e in x, h from 0.0f64: h = h + e * e; yield last h), sum(p(x)))\n"
               "gz = grad(z, x)");
        CHECK(!mc_is_error(made), "%s", mc_error(g));
        mc_array *x = vector(3, (double[]){ 5, 1, 7 }), *r[4] = { NULL };
        CHECK(run(g, "y, gy, z, gz", modes[m], 2, x, 4, r), "%s", mc_last_error());
        CHECK(at(r[0], 0) == 5 && at(r[0], 1) == 10 && at(r[0], 2) == 70, "%g", at(r[0], 2));
        CHECK(at(r[1], 0) == 14 && at(r[1], 1) == 0 && at(r[1], 2) == 10, "%g %g", at(r[1], 0), at(r[1], 2));
        CHECK(at(r[2], 0) == 75 && at(r[3], 0) == 10 && at(r[3], 2) == 14, "%g", at(r[2], 0));
        CHECK(p.runs == 0, "%d", p.runs);
        q.runs = 0;
        CHECK(run(g, "y, z, gz", modes[m], 0, x, 3, r), "%s", mc_last_error());
        CHECK(at(r[0], 2) == 35 && at(r[1], 0) == 26 && at(r[2], 1) == 2, "%g", at(r[1], 0));
        CHECK(p.runs == 1 && q.runs == 0, "%d, %d", p.runs, q.runs);
        for (int i = 0; i < 4; i++) {
            mc_array_unref(&r[i]);
        }
        mc_array_unref(&x);
        mc_graph_free(g);
    }
}

/* ---- against switch ---- */

/* A random formula of a vector over names that exist. */
static const char *const made_of[] = { "tanh(%s)", "%s * %s", "%s + 2 * %s", "sin(%s) - %s", "dot(%s, W)", "%s - mean(%s)",
                                       "CHOOSE(k%d > 0, %s, %s)", "CHOOSE(k%d > 0, dot(%s, W), %s * %s)" };

static void random_body(bool lazy, uint64_t seed, struct mc_str *out)
{
    char name[4][8], word[80];
    uint64_t s = seed;
#define NEXT(n) (s = s * 6364136223846793005u + 1442695040888963407u, (int)(s >> 33) % (n))
    mc_str_add(out,
               "input x float64[4]; input W float64[4, 4]; input k0 float64; input k1 float64\nv0 = x * 1\n");
    for (int i = 1; i < 9; i++) {
        for (int k = 0; k < 4; k++) {
            snprintf(name[k], sizeof name[k], "v%d", NEXT(i));
        }
        const int which = i == 8 ? 7 : NEXT((int)NELEM(made_of)), key = NEXT(2);
        const char *form = made_of[which];
        mc_str_addf(out, "v%d = ", i);
        for (int k = 0; *form; form++) {
            if (strncmp(form, "CHOOSE", 6) == 0) {
                mc_str_add(out, lazy ? "ifelse" : "switch");
                form += 5;
            } else if (strncmp(form, "%s", 2) == 0) {
                mc_str_add(out, name[k++]);
                form++;
            } else if (strncmp(form, "%d", 2) == 0) {
                snprintf(word, sizeof word, "%d", key);
                mc_str_add(out, word);
                form++;
            } else {
                mc_str_addn(out, form, 1);
            }
        }
        mc_str_add(out, "\n");
    }
#undef NEXT
    mc_str_add(out,
               "gx, gW = grad(sum(v8 * v8), [x, W])\nhx, hW = grad(sum(gx * v3) + sum(gW * W), [x, W])\n");
}

static double furthest(const mc_array *a, const mc_array *b)
{
    double most = mc_array_size(a) == mc_array_size(b) ? 0 : INFINITY;
    for (int64_t i = 0; i < mc_array_size(a) && most < INFINITY; i++) {
        const double d = fabs(at(a, i) - at(b, i)) / (1 + fabs(at(b, i)));
        most = d > most || d != d ? d : most;
    }
    return most;
}

TEST(choices_equal_switch)
{
    static const char *const outputs = "v8, gx, gW, hx, hW";
    for (int round = 0, n = test_is_full() ? 2000 : 60; round < n; round++) {
        const uint64_t seed = test_random();
        mc_function *f[2];
        for (int lazy = 0; lazy < 2; lazy++) {
            struct mc_str text = { 0 };
            mc_graph *g = mc_graph_new();
            random_body(lazy, seed, &text);
            CHECK(!mc_is_error(mc_formula(g, text.s)), "%s\n%s", text.s, mc_error(g));
            f[lazy] = mc_compile(g, &(mc_spec){ .inputs = "x, W, k0, k1",
                                                .outputs = outputs,
                                                .mode = round % 3 ? "FAST_COMPILE" : modes[round / 3 % 4],
                                                .on_unused = "ignore" });
            CHECK(f[lazy], "%s\n%s", text.s, mc_error(g));
            mc_graph_free(g);
            mc_str_free(&text);
        }
        mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(4)), *W = mc_array_new(MC_FLOAT64, MC_SHAPE(4, 4));
        for (int i = 0; i < 16; i++) {
            ((double *)mc_array_data(W))[i] = test_uniform(-.5, .5);
            ((double *)mc_array_data(x))[i % 4] = test_uniform(-1, 1);
        }
        for (int key = 0; key < 4 && f[0] && f[1]; key++) {
            mc_array *r[2][5] = { { NULL } };
            for (int lazy = 0; lazy < 2; lazy++) {
                mc_arg in[4] = { mc_arg_array(x), mc_arg_array(W), mc_arg_real(key & 1),
                                 mc_arg_real(key >> 1) },
                       out[5];
                for (int i = 0; i < 5; i++) {
                    out[i] = mc_arg_slot(&r[lazy][i]);
                }
                CHECK(mc_call_args(f[lazy], 4, in, 5, out) == MC_OK, "%s", mc_last_error());
            }
            for (int i = 0; i < 5; i++) {
                const double off = r[0][i] && r[1][i] ? furthest(r[1][i], r[0][i]) : INFINITY;
                CHECK(off < 1e-9, "seed %llu, key %d, result %d: %g", (unsigned long long)seed, key, i, off);
                mc_array_unref(&r[0][i]), mc_array_unref(&r[1][i]);
            }
        }
        mc_array_unref(&x), mc_array_unref(&W);
        mc_function_free(f[0]), mc_function_free(f[1]);
    }
}

/* ---- text ---- */

TEST(choices_are_printed_and_read_back)
{
    static const char *const rows[] = {
        "ifelse(c, x, 2 * x)", "ifelse(c > 1, [x, sum(x)], [x + 1, x[0]])", "ifelse(c, ifelse(c < 3, x, x[:1]), x[1:])",
        "ifelse(True, x, -x)", "ifelse(c, [[1.0, 2.0]], [[3.0, 4.0]])", "ifelse(c, [x], [[3.0, 4.0]])",
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input c float64; input x float64[?]");
        mc_node *n = mc_formula(g, rows[i]);
        char *text = mc_node_text(n);
        CHECK(!mc_is_error(n) && mc_formula(g, text) == n, "%s: %s %s", rows[i], text, mc_error(g));
        CHECK(strncmp(text, "ifelse(", 7) == 0, "%s", text);
        mc_text_free(text);
        mc_graph_free(g);
    }
    /* what is compiled can be read back as well */
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    mc_formula(g, "input c float64; input x float64[?]\ny = ifelse(c, exp(x), x * x); g = grad(sum(y), x)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "c, x", .outputs = "y, g" });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(!mc_is_error(mc_formula(h, mc_function_graph_text(f))), "%s\n%s", mc_function_graph_text(f),
          mc_error(h));
    CHECK(strstr(mc_function_graph_text(f), "exp(") && !strstr(mc_function_graph_text(f), "ifelse_node"),
          "%s", mc_function_graph_text(f));
    mc_function_free(f);
    mc_graph_free(g), mc_graph_free(h);
}

TEST(wrong_choices)
{
    static const struct { const char *text, *says; } rows[] = {
        { "ifelse(x, x, x)", "the condition must be a scalar, not float64[?]" },
        { "ifelse(c, x, sum(x))", "value 1 is float64[?] if the condition is true, and float64 if it is false" },
        { "ifelse(c, x, cast(x, 'float32'))", "value 1 is float64[?] if the condition is true, and float32[?] if it is false" },
        { "ifelse(c, [x, c], [x, x])", "value 2 is float64 if the condition is true, and float64[?] if it is false" },
        { "ifelse(c, [x, x], x)", "two lists of the same length" },
        { "ifelse(c, [x, x, x], [x])", "two lists of the same length" },
        { "ifelse(c, x)", "needs the argument 'b'" },
        { "ifelse(c, [], [])", "two lists of the same length" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input c float64; input x float64[?]");
        mc_node *n = mc_formula(g, rows[i].text);
        CHECK(mc_is_error(n) && strstr(mc_error(g), rows[i].says), "%s: %s", rows[i].text, mc_error(g));
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_node *c = mc_formula(g, "input c float64"), *none = NULL;
    CHECK(mc_is_error(mc_ifelse_list(c, 1, &none, &c)) && strstr(mc_error(g), "value 1 is missing"), "%s",
          mc_error(g));
    CHECK(!mc_ifelse_list(NULL, 0, NULL, NULL), "made of nothing");
    mc_graph_free(g);
}

/* The gradient of the choices on a side is a tuple, whose items are read on different sides. */
TEST(items_that_different_sides_read)
{
    static const char given[] = "input x float64[4]; input W float64[4, 4]; input k float64\n";
    static const char *const text[] = {
        "o, p = ifelse(sum(k) < 3, [dot(dot(x, W), W), ifelse(k > 0, ifelse(k > 1, dot(x, W), dot(x, W) * 0.5), x * "
        "0.5)], [dot(dot(x, W), W), x])",
        "o = dot(dot(x, W), W)\n"
        "p = switch(k < 3, switch(k > 0, switch(k > 1, dot(x, W), dot(x, W) * 0.5), x * 0.5), x)" };
    mc_function *f[2];
    for (int lazy = 0; lazy < 2; lazy++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, given);
        CHECK(!mc_is_error(mc_formula(g, text[!lazy])), "%s", mc_error(g));
        f[lazy] = mc_compile(
            g, &(mc_spec){ .inputs = "x, W, k", .outputs = "grad(sum(sqr(o)) + sum(sqr(p)), W)" });
        CHECK(f[lazy], "%s", mc_error(g));
        mc_graph_free(g);
    }
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(4)), *W = mc_array_new(MC_FLOAT64, MC_SHAPE(4, 4));
    for (int i = 0; i < 16; i++) {
        ((double *)mc_array_data(W))[i] = test_uniform(-.5, .5);
        ((double *)mc_array_data(x))[i % 4] = test_uniform(-1, 1);
    }
    for (double k = -0.5; k < 4 && f[0] && f[1]; k++) {
        mc_array *a = NULL, *b = NULL;
        CHECK(mc_call(f[0], MC_IN(x, W, k), MC_OUT(&a)) == MC_OK, "%s", mc_last_error());
        CHECK(mc_call(f[1], MC_IN(x, W, k), MC_OUT(&b)) == MC_OK, "%s", mc_last_error());
        CHECK(a && b && furthest(a, b) < 1e-12, "k = %g", k);
        mc_array_unref(&a), mc_array_unref(&b);
    }
    mc_array_unref(&x), mc_array_unref(&W);
    mc_function_free(f[0]), mc_function_free(f[1]);
}

/* ---- sizes ---- */

/* Sizes that the ops tell to be equal: the condition determines none, and the call has one plan. */
TEST(sizes_that_are_known_to_be_equal)
{
    static const struct { const char *text; bool equal; } rows[] = {
        { "ifelse(c, exp(x), -x)", true },
        { "ifelse(c, exp(x[1:]), -x[1:])", true },
        { "ifelse(c, softmax(y), y.T.T * 2)", true },
        { "ifelse(c, sum(y, axis=0), y[0])", true },
        { "ifelse(c, dot(y, y.T), zeros([size(y, 0), size(y, 0)]))", true },
        { "ifelse(c, exp(x), ifelse(sum(x) > 0, x + 1, -x))", true },
        { "ifelse(c, scan(r in y, h from y[0]: h = h + r; yield h), y)", true },
        { "ifelse(c, x[1:], x)", false },
        { "ifelse(c, x, y[0])", false },
        { "ifelse(c, y, y.T)", false },
        { "ifelse(c, x[x > 0], x)", false },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input c bool; input x float64[?]; input y float64[?, ?]");
        mc_node *n = mc_formula(g, rows[i].text);
        REQUIRE(!mc_is_error(n) && n->op->form == FORM_IFELSE, "%s: %s", rows[i].text, mc_error(g));
        CHECK(mc_is_shape_arg(n, 0) == !rows[i].equal, "%s", rows[i].text);
        mc_graph_free(g);
    }
}

/* ---- the rest of the library ---- */

TEST(the_profile_counts_sides)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input c float64; input x float64[?]\ny = ifelse(c, exp(x), x)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "c, x", .outputs = "y", .profile = 1 });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *x = vector(2, (double[]){ 1, 2 }), *y = NULL;
    for (int i = 0; i < 5; i++) {
        CHECK(mc_call(f, MC_IN(i < 2, x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    }
    char text[4000] = { 0 };
    FILE *to = tmpfile();
    REQUIRE(to, "no temporary file");
    CHECK(mc_function_profile(f, to) == MC_OK, "%s", mc_last_error());
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = 0;
    fclose(to);
    CHECK(strstr(text, f->branch ? "ifelse: true 2, false 3" : "host "), "%s", text);
    mc_array_unref(&x), mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Updates of a variable on one side; many calls of copies of one function. */
TEST(updates_by_choice)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input c int32\nshared s float64[2] = ones()");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "c", .updates = "s = ifelse(c, s * 3, s - 1)" });
    REQUIRE(f, "%s", mc_error(g));
    double want = 1;
    for (int i = 0; i < 9; i++) {
        CHECK(mc_call_args(f, 1, (mc_arg[]){ mc_arg_int(i % 3) }, 0, NULL) == MC_OK, "%s", mc_last_error());
        want = i % 3 ? want * 3 : want - 1;
    }
    mc_array *s = mc_shared_get(mc_formula(g, "s")->shared);
    CHECK(at(s, 0) == want && at(s, 1) == want, "%g, not %g", at(s, 0), want);
    mc_array_unref(&s);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(choices_give_back_memory)
{
    mc_array *x = vector(2, (double[]){ 1, 2 });
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_node *n = g ? mc_formula(g, "input c float64; input x float64[?]\n"
                                       "y, z = ifelse(c, [exp(x), x], [x * x, x + 1]); g = grad(sum(y), x)")
                       : NULL;
        mc_function *f = n && !mc_is_error(n)
                             ? mc_compile(
                                   g, &(mc_spec){ .inputs = "c, x", .outputs = "g", .mode = "FAST_COMPILE" })
                             : NULL;
        mc_array *y = NULL;
        const mc_status s = f ? mc_call(f, MC_IN(1, x), MC_OUT(&y)) : MC_EMEMORY;
        CHECK(s == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}
