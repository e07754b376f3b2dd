/* t_scan_front.c: what loops offer beside plain sequences and states: taps, blocks of initial values,
 * options, maps and folds, their mistakes, and R-op.  Expected values come from the same formulas without
 * the loop in question: slices, unrolled steps, sums written by hand. */
#include "check.h"
#include "op/op.h"

#include <math.h>

/* ---- pairs of results that must be equal ---- */

static const char declared[] = "input xs float64[?, 3]; input ys float64[?, 3]; input h0 float64[3]\n"
                               "input H float64[?, 3]; input W float64[3, 3]; input V float64[3, 3]; input n int64\n"
                               "none = 0 * (sum(xs) + sum(ys) + sum(h0) + sum(H) + sum(W) + sum(V))\n";

static mc_array *drawn(int rank, const int64_t *dims)
{
    mc_array *a = mc_array_empty(MC_FLOAT64, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        ((double *)(void *)a->data)[i] = test_uniform(-1, 1);
    }
    return a;
}

static double at(const mc_array *a, int64_t i)
{
    return a ? mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size) : NAN;
}

static double furthest(const mc_array *a, const mc_array *b)
{
    double d = a && b && mc_dims_equal(a->rank, a->dims, b->rank, b->dims) ? 0 : INFINITY;
    for (int64_t i = 0; d < INFINITY && i < mc_array_size(a); i++) {
        const double x = at(a, i), y = at(b, i);
        d = x == y ? d : isnan(x) || isnan(y) ? INFINITY : MC_MAX(d, fabs(x - y) / MC_MAX(1, fabs(y)));
    }
    return d;
}

enum { NIN = 7, MOST = 24 };
static mc_function *compiled(const char *text, const char *outputs, const char *mode, mc_graph **g)
{
    *g = mc_graph_new();
    mc_formula(*g, declared);
    mc_node *n = mc_formula(*g, text);
    CHECK(!mc_is_error(n), "%s\n%s", text, mc_error(*g));
    mc_function *f = mc_is_error(n) ? NULL
                                    : mc_compile(*g, &(mc_spec){ .inputs = "xs, ys, h0, H, W, V, n",
                                                                 .outputs = outputs,
                                                                 .mode = mode,
                                                                 .on_unused = "ignore" });
    CHECK(f || mc_is_error(n), "%s\n%s\n%s", text, outputs, mc_last_error());
    return f;
}

/* Calls f with sequences of `steps` and `others` elements and `block` initial values. */
static mc_status call(mc_function *f, int64_t steps, int64_t others, int64_t block, int nout, mc_array **r)
{
    mc_array *a[NIN - 1] = { drawn(2, (int64_t[]){ steps, 3 }), drawn(2, (int64_t[]){ others, 3 }),
                             drawn(1, (int64_t[]){ 3 }),        drawn(2, (int64_t[]){ block, 3 }),
                             drawn(2, (int64_t[]){ 3, 3 }),     drawn(2, (int64_t[]){ 3, 3 }) };
    mc_arg in[NIN], out[MOST];
    for (int i = 0; i < NIN - 1; i++) {
        in[i] = mc_arg_array(a[i]);
    }
    in[NIN - 1] = mc_arg_int((long)steps);
    for (int i = 0; i < nout; i++) {
        out[i] = mc_arg_slot(&r[i]);
    }
    mc_status s = mc_call_args(f, NIN, in, nout, out);
    for (int i = 0; i < NIN - 1; i++) {
        mc_array_unref(&a[i]);
    }
    return s;
}

/* Outputs 0 and 1 are equal; the others are two lists of equal ones. */
static void pairs(const char *text, const char *outputs, int nout, int64_t steps, double within,
                  const char *mode)
{
    mc_graph *g;
    mc_array *r[MOST] = { 0 };
    mc_function *f = compiled(text, outputs, mode, &g);
    if (f) {
        CHECK(call(f, steps, steps, 4, nout, r) == MC_OK, "%s\n%s", text, mc_last_error());
        for (int i = 0; i < nout; i++) { /* the values, then the gradients of both */
            const int other = i < 2 ? 1 : i + (nout - 2) / 2;
            if (i == 1 || other >= nout) {
                continue;
            }
            const double d = furthest(r[i], r[other]);
            CHECK(d <= within, "%s\nresults %d and %d differ by %g with %lld steps in mode %s", text, i,
                  other, d, (long long)steps, mode ? mode : "");
        }
        for (int i = 0; i < nout; i++) {
            mc_array_unref(&r[i]);
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
}

static const struct { const char *text; int64_t steps; } equals[] = {
    /* taps of sequences are slices */
    { "a = scan(l, m, r in xs taps [-1, 0, 1]: yield l * m + sin(r)); b = xs[:-2] * xs[1:-1] + sin(xs[2:])", 6 },
    { "a = scan(l, m, r in xs taps [-1, 0, 1]: yield l * m + sin(r)); b = xs[:-2] * xs[1:-1] + sin(xs[2:])", 2 },
    { "a = scan(r, l in xs taps [2, -1]: yield r - 2 * l); b = xs[3:] - 2 * xs[:-3]", 5 },
    { "a = scan(p in xs taps [-2]: yield p * 1); b = xs[:-2]", 5 },
    { "a = scan(q in xs taps [2]: yield q * 1); b = xs[2:]", 5 },
    { "a = scan(q in xs taps [0]: yield q * 1); b = xs", 5 },
    { "a = scan(p, q in xs taps [0, 1], y in ys[1:]: yield p * q + y); b = xs[:-1] * xs[1:] + ys[1:]", 5 },
    { "a = scan(go_backwards=True, p, q in xs taps [0, 1]: yield p - q); b = (xs[:-1] - xs[1:])[::-1]", 5 },
    /* states with taps are several states; blocks of initial values */
    { "a = scan(x in xs, p, h from H[:2] taps [-2, -1]: h = 0.5 * p + x * h);"
      "b, c = scan(x in xs, p from H[0], h from H[1]: p, h = h, 0.5 * p + x * h; yield h, p)", 5 },
    { "a = scan(x in xs, h, p from H taps [-1, -3]: h = tanh(dot(p, W)) + x * h);"
      "b, c, d = scan(x in xs, q from H[0], p from H[1], h from H[2]: q, p, h = p, h, tanh(dot(q, W)) + x * h;"
      "yield h, p, q)", 5 },
    { "a = scan(x in xs, h from H taps [-2]: h = h * 2 + x);"
      "b, c = scan(x in xs, p from H[0], h from H[1]: p, h = h, p * 2 + x; yield h, p)", 5 },
    { "a = scan(x in xs, h from h0 taps [-1]: h = h * 2 + x); b = scan(x in xs, h from h0: h = h * 2 + x)", 5 },
    { "a = scan(x in xs, p, h from H taps [-2, -1]: h = p + x * h; yield last h);"
      "b = scan(x in xs, p from H[0], h from H[1]: p, h = h, p + x * h; yield last h)", 5 },
    /* backwards */
    { "a = scan(go_backwards=True, x in xs, h from h0: h = tanh(dot(h, W) + x));"
      "b = scan(x in xs[::-1], h from h0: h = tanh(dot(h, W) + x))", 5 },
    { "a = scan(go_backwards=False, x in xs, h from h0: h = h + x); b = scan(x in xs, h from h0: h = h + x)", 5 },
    /* maps and folds */
    { "a = map(x in xs, y in ys: z = x * y; sqr(z) + dot(z, W)); b = sqr(xs * ys) + dot(xs * ys, W)", 5 },
    { "a, c = map(x in xs: x * 2, sum(x)); b = xs * 2", 5 },
    { "c, a = map(x in xs: x * 2, sum(x)); b = sum(xs, axis=1)", 5 },
    { "a = reduce(x in xs, s from h0: s + x); b = h0 + sum(xs, axis=0)", 5 },
    { "a = foldl(x in xs, s from h0: s / 2 + x); b = scan(x in xs, s from h0: s = s / 2 + x; yield last s)", 5 },
    { "a = foldr(x in xs, s from h0: s / 2 + x); b = scan(x in xs[::-1], s from h0: s = s / 2 + x; yield last s)", 5 },
    { "a, c = foldl(x in xs, s from h0, p from h0: q = s * p; q + x, s); b = scan(x in xs, s from h0, p from h0:"
      " s, p = s * p + x, s; yield last s)", 5 },
    { "a = foldl(steps=n, s from h0: s * 1.5); b = h0 * 1.5 ** cast(n, 'float64')", 5 },
    /* a shape of one size that is known before the loop, and one that is written: the state keeps that one */
    { "a = scan(steps=n, p from h0[:1], q from h0[1:2]: u = scan(e in arange(cast(n, 'float64')): yield p + 0);"
      "q = q + 0.1 * sum(0.7 * q + u * 0.1); p = p + 0; yield q);"
      "b = scan(steps=n, p from h0[:1], q from h0[1:2]: q = q + 0.1 * cast(n, 'float64') * (0.7 * q + p * 0.1);"
      "p = p + 0; yield q)", 3 },
    /* a state that sums up what is collected */
    { "c, d = scan(x in xs, h from h0, s from ys[0]: h = tanh(dot(h, W) + x); s = s + h; yield h, last s);"
      "a = d + 2 * sum(c, axis=0); b = ys[0] + 3 * sum(scan(x in xs, h from h0: h = tanh(dot(h, W) + x)), axis=0)", 5 },
    /* checkpoints */
    { "a = scan(checkpoint=3, x in xs, h from h0: h = tanh(dot(h, W) + x));"
      "b = scan(x in xs, h from h0: h = tanh(dot(h, W) + x))", 7 },
    { "a = scan(checkpoint=1, x in xs, h from h0: h = tanh(dot(h, W) + x)); b = scan(x in xs, h from h0: h = tanh(dot(h, W) + x))", 4 },
    { "a = scan(checkpoint=9, x in xs, h from h0: h = tanh(dot(h, W) + x)); b = scan(x in xs, h from h0: h = tanh(dot(h, W) + x))", 4 },
    { "c, a = scan(checkpoint=2, steps=n, h from h0: h = sin(dot(h, W)); yield last h, sum(h)); d, b = "
      "scan(steps=n, h from h0: h = sin(dot(h, W)); yield last h, sum(h))", 5 },
    { "a = scan(checkpoint=2, x in xs, p, h from H taps [-2, -1]: h = p * h + x; yield last h);"
      "b = scan(x in xs, p, h from H taps [-2, -1]: h = p * h + x; yield last h)", 5 },
};

TEST(values_and_gradients_equal_those_of_other_formulas)
{
    static const char *const modes[] = { NULL, "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < NELEM(equals); i++) {
        for (size_t m = 0; m < (test_is_full() || i % 4 == 0 ? NELEM(modes) : 1); m++) {
            pairs(equals[i].text,
                  "a, b, grad(sum(sin(a)) + none, [xs, W, h0, H]), grad(sum(sin(b)) + none, [xs, W, h0, H])",
                  10, equals[i].steps, 1e-13, modes[m]);
        }
    }
}

/* Checkpoints keep the bits of all values, for any number of steps; gradients may add in another order. */
TEST(checkpoints_keep_the_bits)
{
    static const char text[] =
        "a, c, e = scan(checkpoint=3, x in xs, h from h0: h = tanh(dot(h, W) + x); yield h, sum(h), last h)\n"
        "b, d, f = scan(x in xs, h from h0: h = tanh(dot(h, W) + x); yield h, sum(h), last h)";
    mc_graph *g;
    mc_function *f = compiled(text, "a, b, c, d, e, f", NULL, &g);
    for (int64_t steps = 0; steps <= 10 && f; steps++) {
        mc_array *r[6] = { 0 };
        CHECK(call(f, steps, steps, 4, 6, r) == MC_OK, "%s", mc_last_error());
        for (int i = 0; i < 6; i += 2) {
            CHECK(r[i] && r[i + 1] && mc_array_same_bits(r[i], r[i + 1]), "result %d, %lld steps", i,
                  (long long)steps);
        }
        for (int i = 0; i < 6; i++) {
            mc_array_unref(&r[i]);
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
    for (int64_t steps = 0; steps <= 8; steps++) {
        pairs(text,
              "e, f, grad(sum(sin(e)) + sum(a) + none, [xs, W, h0]), grad(sum(sin(f)) + sum(b) + none, [xs, "
              "W, h0])",
              8, steps, 1e-13, NULL);
    }
}

/* The gradient with checkpoints needs less memory: of 400 steps, 20 states and the values of 20 steps. */
TEST(checkpoints_save_memory)
{
    static const char *const options[] = { "", "checkpoint=20, " };
    size_t memory[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "c = scan(%sx in xs, h from h0: a = tanh(dot(h, W) + x); b = sin(dot(a, V)); h = "
                 "exp(-sqr(dot(b, W))); yield last h)",
                 options[i]);
        mc_graph *g;
        mc_array *r[2] = { 0 };
        mc_function *f = compiled(text, "grad(sum(c), W), grad(sum(c), h0)", NULL, &g);
        CHECK(f && call(f, 400, 1, 4, 2, r) == MC_OK, "%s", mc_last_error());
        memory[i] = mc_function_memory(f);
        mc_array_unref(&r[0]), mc_array_unref(&r[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
    CHECK(memory[1] > 0 && memory[1] < memory[0] / 2, "%zu bytes with checkpoints, %zu without", memory[1],
          memory[0]);
}

/* Gradients flow through the last k steps: the steps before are a loop whose last state is a constant. */
TEST(truncated_gradients)
{
    static const char text[] =
        "a, e = scan(truncate_gradient=3, x in xs, h from h0: h = tanh(dot(h, W) + x); yield h, last h)\n"
        "before = consider_constant(scan(x in xs[:-3], h from h0: h = tanh(dot(h, W) + x)))\n"
        "p = concatenate(h0[None], before, axis=0)[-1]\n"
        "late, f = scan(x in xs[-3:], h from consider_constant(p): h = tanh(dot(h, W) + x); yield h, last "
        "h)\n"
        "b = concatenate(before, late, axis=0)";
    static const char whole[] =
        "a, e = scan(truncate_gradient=6, x in xs, h from h0: h = tanh(dot(h, W) + x); yield h, last h)\n"
        "b, f = scan(truncate_gradient=-1, x in xs, h from h0: h = tanh(dot(h, W) + x); yield h, last h)";
    static const char *const costs[] = { "sum(sin(%s))", "sum(%s[-1])" };
    for (size_t i = 0; i < NELEM(costs); i++) {
        char of_a[40], of_b[40], outputs[200];
        snprintf(of_a, sizeof of_a, costs[i], "a");
        snprintf(of_b, sizeof of_b, costs[i], "b");
        snprintf(
            outputs, sizeof outputs,
            "a, b, grad(%s + sqr(sum(e)) + none, [xs, W, h0]), grad(%s + sqr(sum(f)) + none, [xs, W, h0])",
            of_a, of_b);
        pairs(text, outputs, 8, 7, 1e-13, NULL);
        pairs(text, outputs, 8, 4, 1e-13, NULL);
        pairs(whole, outputs, 8, 6, 1e-13, NULL);
        pairs(whole, outputs, 8, 4, 1e-13, NULL);
    }
}

/* ---- the same in C ---- */

TEST(taps_and_folds_in_c)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, declared);
    mc_node *xs = mc_formula(g, "xs"), *h0 = mc_formula(g, "h0"), *H = mc_formula(g, "H[:2]"), *e[2], *h[2],
            *x, *s;
    CHECK(mc_scan_taps(xs, 2, (int[]){ 1, -1 }, e) == MC_OK && mc_scan_states(H, 2, h) == MC_OK, "%s",
          mc_error(g));
    const struct mc_bind b[] = {
        { "r", e[0], NULL }, { "l", e[1], NULL }, { "h", h[0], NULL }, { "p", h[1], NULL }
    };
    mc_node *next[2] = { mc_expr(g, "p * 0.5 + r * h - l", b, 4), h[0] },
            *r = mc_scan(
                g, &(mc_scan_spec){ .element = e, .nelement = 2, .state = h, .next = next, .nstate = 2 });
    mc_name(mc_item(r, 0), "a");
    mc_formula(g, "b, c = scan(r in xs[2:], l in xs[:-2], p from H[0], h from H[1]: p, h = h, p * 0.5 + r * "
                  "h - l; yield h, p)");
    x = mc_scan_element(xs);
    mc_name(mc_scan_map(g, 1, &x, mc_expr(g, "x * 2", (struct mc_bind[]){ { "x", x, NULL } }, 1)), "m");
    x = mc_scan_element(xs), s = mc_scan_state(h0);
    const struct mc_bind fold[] = { { "x", x, NULL }, { "s", s, NULL } };
    mc_node *sum = mc_expr(g, "s / 2 + x", fold, 2);
    mc_name(mc_scan_foldl(g, 1, &x, s, sum), "fl");
    mc_name(mc_scan_reduce(g, 1, &x, s, sum), "fd");
    mc_name(mc_scan_foldr(g, 1, &x, s, sum), "fr");
    mc_formula(g, "el = foldl(x in xs, s from h0: s / 2 + x); er = foldr(x in xs, s from h0: s / 2 + x)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "xs, ys, h0, H, W, V, n",
                                               .outputs = "a, b, m, 2 * xs, fl, el, fd, el, fr, er",
                                               .on_unused = "ignore" });
    mc_array *out[10] = { 0 };
    if (CHECK(f, "%s", mc_last_error()) && CHECK(call(f, 6, 6, 4, 10, out) == MC_OK, "%s", mc_last_error())) {
        for (int i = 0; i < 10; i += 2) {
            CHECK(furthest(out[i], out[i + 1]) < 1e-14, "results %d and %d", i, i + 1);
        }
    }
    for (int i = 0; i < 10; i++) {
        mc_array_unref(&out[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- mistakes ---- */

TEST(wrong_loops_name_their_parts)
{
    static const struct { const char *text, *says; } rows[] = {
        { "scan(x in f, h from g: h = concatenate(h, x[None], axis=0))", "state 'h' is float64[2, 3] before a step and after it float64[3, 3]" },
        { "scan(x in f, h from g: h = sum(h))", "state 'h' is float64[2, 3] before a step and after it float64" },
        { "scan(x in f, h from g: h = cast(h, 'float32'))", "state 'h' is float64[2, 3] before a step and after it float32[2, 3]" },
        { "scan(x in f, y in g: yield x, y)", "sequence 'y' has 2 elements, but sequence 'x' has 4" },
        { "scan(u in xs, x in f, y in g: yield x, y)", "sequence 'y' has 2 elements, but sequence 'x' has 4" },
        { "scan(steps=3, x in f: yield x)", "sequence 'x' has 4 elements, but there are 3 steps" },
        { "scan(steps=-1, h from g: h = h + 1)", "the number of steps is -1" },
        { "scan(x, y in g taps [0, 3]: yield x * y)", "sequence 'y' is float64[2, 3], but its taps need at least 3 elements" },
        { "scan(steps=3, p, h from g taps [-3, -1]: h = h + p)", "the block of initial values of state 'h' is float64[2, 3], but its taps need at least 3 values" },
        { "scan(steps=3, p, h from 1.0 taps [-2, -1]: h = h + p)", "the block of initial values of state 'h' is float64, but its taps need at least 2 values" },
        { "scan(p, q in g: yield p)", "expected 'taps'" },
        { "scan(p, q in g taps [0]: yield p)", "a list with 2 different whole numbers" },
        { "scan(p, q in g taps [0, 0]: yield p)", "a list with 2 different whole numbers" },
        { "scan(p, q in g taps [0, 1.5]: yield p)", "a list with 2 different whole numbers" },
        { "scan(steps=2, h from g taps [0]: h = h)", "a tap of the state 'h' is not from -30 to -1" },
        { "scan(steps=2, h from g taps [-31]: h = h)", "a tap of the state 'h' is not from -30 to -1" },
        { "scan(checkpoint=0, x in f: yield x)", "checkpoint is a positive number of steps" },
        { "scan(truncate_gradient=-2, x in f: yield x)", "truncate_gradient is a positive number of steps" },
        { "scan(go_backwards=1, x in f: yield x)", "go_backwards is True or False" },
        { "scan(checkpoint=2, x in f, h from 0.0f64: h = h + sum(x); until h > 1)", "'checkpoint' has no 'until'" },
        { "scan(checkpoint=2, truncate_gradient=2, x in f, h from 0.0f64: h = h + sum(x))", "'checkpoint' has no 'truncate_gradient'" },
        { "map(x in f, h from g: x)", "a map has no states" },
        { "reduce(x in f: x)", "there is no state" },
        { "reduce(x in f, a from 0.0f64, b from 0.0f64: a + sum(x))", "the state 'b' is given no value" },
        { "reduce(x in f, a from 0.0f64: a + sum(x), a)", "more values than the 1 states" },
        { "foldl(x in f, a from 0.0f64: b = a + sum(x))", "expected" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input f float64[4, 3]; input g float64[2, 3]; input xs float64[?, 3]");
        mc_node *n = mc_formula(g, rows[i].text);
        CHECK(mc_is_error(n) && strstr(mc_error(g), rows[i].says), "%s: %s", rows[i].text,
              mc_is_error(n) ? mc_error(g) : "is no error");
        mc_graph_free(g);
    }
}

/* What only a call shows. */
TEST(wrong_calls_name_their_parts)
{
    static const struct { const char *text, *says; int64_t steps, others, block; bool compiled; } rows[] = {
        { "a = scan(x in xs, y in ys: yield x * y)", "sequence 'y' has 4 elements, but sequence 'x' has 3", 3, 4, 2, true },
        { "a = scan(steps=n, y in ys: yield y * 2)", "sequence 'y' has 4 elements, but there are 3 steps", 3, 4, 2, true },
        { "a = scan(steps=n - 5, h from h0: h = h * 2)", "the number of steps is -2", 3, 3, 2, true },
        { "a = scan(x, y in xs taps [-1, 1]: yield x * y)", "sequence 'y' is float64[1, 3], but its taps need at least 2 elements", 1, 1, 2, true },
        { "a = scan(x in xs, p, h from H taps [-2, -1]: h = p * h + x)", "the block of initial values of state 'h' is float64[1, 3], but its taps need at least 2 values", 3, 3, 1, true },
        { "a = scan(x in xs, m from H: m = concatenate(m, m, axis=0))", "state 'm' is float64[2, 3] before a step and after it float64[4, 3]", 3, 3, 2, true },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g;
        mc_array *r[1] = { 0 };
        mc_function *f = compiled(rows[i].text, "a", NULL, &g);
        CHECK(!f || (call(f, rows[i].steps, rows[i].others, rows[i].block, 1, r) < 0 &&
                     strstr(mc_last_error(), rows[i].says)),
              "%s: %s", rows[i].text, mc_last_error());
        mc_array_unref(&r[0]);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(wrong_specs_in_c)
{
    mc_graph *g = mc_graph_new();
    mc_node *xs = mc_formula(g, "input xs float32[2, 3]"), *e[2];
    CHECK(mc_scan_taps(xs, 2, (int[]){ -2, 1 }, e) < 0 &&
              strstr(mc_error(g), "sequence 'xs' is float32[2, 3], but its taps need at least 3 elements"),
          "%s", mc_error(g));
    CHECK(mc_scan_taps(NULL, 1, (int[]){ 0 }, e) == MC_EARG && mc_scan_states(NULL, 1, e) == MC_EARG,
          "no error");
    mc_graph_free(g);
    g = mc_graph_new();
    xs = mc_formula(g, "input xs float32[2, 3]");
    CHECK(mc_scan_states(xs, 3, e) < 0 &&
              strstr(mc_error(g), "state 'xs' is float32[2, 3], but its taps need at least 3 values"),
          "%s", mc_error(g));
    mc_graph_free(g);
    g = mc_graph_new();
    xs = mc_formula(g, "input xs float32[2, 3]");
    mc_node *x = mc_name(mc_scan_element(xs), "x");
    CHECK(mc_is_error(
              mc_scan(g,
                      &(mc_scan_spec){
                          .element = &x, .nelement = 1, .collect = &x, .ncollect = 1, .checkpoint = -3 })) &&
              strstr(mc_error(g), "checkpoint is -3"),
          "%s", mc_error(g));
    mc_graph_free(g);
}

/* ---- text ---- */

/* A loop is printed with the names of its parts, and what is printed is the same node. */
TEST(printed_loops_keep_their_names)
{
    static const struct { const char *text, *has; } rows[] = {
        { "scan(x in xs, h from h0: h = tanh(dot(x, W) + h); yield last h)", "x in xs, h from h0, W = W: " },
        { "scan(truncate_gradient=4, x in xs, h from h0: h = tanh(x + h); yield last h)", "truncate_gradient = 4" },
        { "scan(p, q in xs taps [-1, 0], h from h0: h = tanh(p + q + h); yield last h)", "p in scan_taps(xs" },
        { "scan(steps=n, t1 from h0, v1 from h0: t1, v1 = v1 * 2, t1; yield last t1)", "v0 from h0" },
        { "scan(x in xs, W from h0: W = W + x; yield last W)", "W from h0" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, declared);
        mc_node *n = mc_formula(g, rows[i].text);
        REQUIRE(!mc_is_error(n), "%s: %s", rows[i].text, mc_error(g));
        mc_node *loop = n->op->form == FORM_LOOP ? n : n->in[0];
        char *text = mc_node_text(loop);
        CHECK(text && strstr(text, rows[i].has), "%s has no '%s'", text, rows[i].has);
        mc_node *again = mc_formula(g, text);
        again = again->op->form == FORM_LOOP ? again : again->nin ? again->in[0] : again;
        again = again->op->form == FORM_LOOP ? again : again->nin ? again->in[0] : again;
        CHECK(again == loop, "%s\n%s\n%s", text, mc_error(g), mc_is_error(again) ? "" : mc_node_text(again));
        mc_text_free(text);
        mc_graph_free(g);
    }
}

/* ---- R-op, memory ---- */

TEST(r_op_of_loops)
{
    static const char *const rows[] = {
        "a = scan(x in xs, h from h0: h = tanh(dot(h, W) + x))\n"
        "b1 = tanh(dot(h0, W) + xs[0]); b2 = tanh(dot(b1, W) + xs[1]); b3 = tanh(dot(b2, W) + xs[2]); b = stack([b1, b2, b3])",
        "a = scan(x, y in xs taps [0, 1], h from h0: h = sin(dot(h, W) * x + y) ; yield h * x)\n"
        "b1 = sin(dot(h0, W) * xs[0] + xs[1]); b2 = sin(dot(b1, W) * xs[1] + xs[2]); b = stack([b1 * xs[0], b2 * xs[1]])",
        "a = scan(checkpoint=2, x in xs, h from h0: h = tanh(dot(h, W) + x); yield last h)\n"
        "b1 = tanh(dot(h0, W) + xs[0]); b2 = tanh(dot(b1, W) + xs[1]); b = tanh(dot(b2, W) + xs[2])",
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        pairs(rows[i],
              "a, b, Rop(a, W, V), Rop(a, h0, H[0]), Rop(a, xs, ys), Rop(b, W, V), Rop(b, h0, H[0]), Rop(b, "
              "xs, ys)",
              8, 3, 1e-13, NULL);
        char text[600]; /* central differences along V and ys */
        snprintf(text, sizeof text, "%s\nr = Rop(a, W, V) + Rop(a, xs, ys)", rows[i]);
        mc_graph *g;
        mc_function *f = compiled(text, "r, a", NULL, &g);
        mc_array *in[6] = { drawn(2, (int64_t[]){ 3, 3 }), drawn(2, (int64_t[]){ 3, 3 }),
                            drawn(1, (int64_t[]){ 3 }),    drawn(2, (int64_t[]){ 2, 3 }),
                            drawn(2, (int64_t[]){ 3, 3 }), drawn(2, (int64_t[]){ 3, 3 }) };
        mc_array *r[3][2] = { { 0 } };
        const double step = 1e-5;
        for (int k = 0; k < 3 && f; k++) {
            const double by = k == 0 ? 0 : k == 1 ? step : -2 * step;
            for (int j = 0; j < 9; j++) {
                ((double *)(void *)in[0]->data)[j] += by * at(in[1], j);
                ((double *)(void *)in[4]->data)[j] += by * at(in[5], j);
            }
            mc_arg arg[NIN], out[2] = { mc_arg_slot(&r[k][0]), mc_arg_slot(&r[k][1]) };
            for (int j = 0; j < 6; j++) {
                arg[j] = mc_arg_array(in[j]);
            }
            arg[6] = mc_arg_int(3);
            CHECK(mc_call_args(f, NIN, arg, 2, out) == MC_OK, "%s", mc_last_error());
        }
        for (int64_t j = 0; r[2][1] && j < mc_array_size(r[0][0]); j++) {
            const double d = (at(r[1][1], j) - at(r[2][1], j)) / (2 * step);
            CHECK(fabs(d - at(r[0][0], j)) < 1e-8, "%s: element %lld is %g, differences give %g", rows[i],
                  (long long)j, at(r[0][0], j), d);
        }
        for (int k = 0; k < 6; k++) {
            mc_array_unref(&in[k]);
            mc_array_unref(&r[k / 2][k % 2]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(every_failed_allocation_of_a_loop)
{
    static const char *const rows[] = {
        "c = scan(x, y in xs taps [0, 1], p, h from H taps [-2, -1]: h = tanh(p * h + x * y); yield last h)",
        "c = scan(checkpoint=2, x in xs, h from h0: h = tanh(h + x); yield last h)",
        "c = foldr(x in xs, h from h0: tanh(h + x))",
    };
    mc_op_find("add");
    for (size_t i = 0; i < NELEM(rows); i++) {
        ALLOC_FAIL_LOOP {
            mc_graph *g = mc_graph_new();
            if (g) {
                mc_formula(g, "input xs float64[?, 3]; input h0 float64[3]; input H float64[2, 3]");
                mc_formula(g, rows[i]);
                mc_node *d = mc_formula(g, "grad(sum(c), xs)");
                CHECK(!mc_is_error(d) || (ALLOC_FAILED && mc_graph_status(g) < 0 && *mc_error(g)), "%s: %s",
                      rows[i], mc_error(g));
            }
            mc_graph_free(g);
        }
    }
}

/* A function with a loop, made and called: each failed allocation is an error, and nothing is lost. */
TEST(every_failed_allocation_of_a_call_with_a_loop)
{
    mc_array *x = drawn(2, (int64_t[]){ 5, 3 }), *h = drawn(1, (int64_t[]){ 3 });
    ALLOC_FAIL_LOOP {
        mc_array *r = NULL;
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input xs float64[?, 3]; input h0 float64[3]\n"
                      "c = scan(x in xs, h from h0: h = tanh(h * h0 + x); yield last h)");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "xs, h0", .outputs = "c" });
        CHECK(f || ALLOC_FAILED, "%s", mc_last_error());
        mc_status s = f ? mc_call(f, MC_IN(x, h), MC_OUT(&r)) : MC_EMEMORY;
        CHECK(s == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&r);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x), mc_array_unref(&h);
}

/* A shared variable that a loop changes: a state stands for it, and an update stores the state. */
TEST(an_update_stores_a_state)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input xs float64[?]; shared W float64 = 0\nw = scan(x in xs, w from W: w = w / 2 + x; "
                  "yield last w)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "xs", .updates = "W = w" });
    mc_array *x = mc_array_from(MC_FLOAT64, 1, (int64_t[]){ 3 }, (double[]){ 1, 2, 4 });
    REQUIRE(f && x, "%s", mc_last_error());
    for (int i = 0; i < 2; i++) {
        CHECK(mc_call(f, MC_IN(x), MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    mc_array *now = mc_shared_get(mc_shared_named(g, "W"));
    CHECK(at(now, 0) == 5.25 / 8 + 5.25, "W is %g", at(now, 0)); /* 5.25 after each call from 0 */
    mc_array_unref(&now), mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}
