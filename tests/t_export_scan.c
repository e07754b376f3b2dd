/* t_export_scan.c: loops (scan) in exported files: the bits of the library, at two sizes, in every kind of
 * file; and what is refused.  tests/export.py has loops in random programs. */
#include "export_formulas.h"
#include <math.h>

TEST(exported_loops)
{
    SAME_AS_LIBRARY(
        { .outputs = "scan(r in x, h from v * 0: h = h * 0.5 + tanh(r) * v; yield h, sum(h), last h)" },
        { .outputs = "scan(r in x.T, h from 0.5f32: h = h + sum(r); yield h, r), x[0]" },
        { .outputs =
              "scan(r in x[::-1], s in d, h from d[0, ::-1], k from 1i64: h = h * 0.5 + s * r; k = k * 2; "
              "yield h, last k)" },
        { .outputs = "scan(steps=7, a from 0i64, b from 1i64: a, b = b, a + b; yield a, b)" },
        { .outputs = "scan(steps=0, a from v: a = a + 1; yield a, last a)" },
        { .outputs = "scan(steps=size(x, 0) * 2, a from x.T: a = a * 0.5 + v[0]; yield last a)" },
        { .outputs = "scan(r in x, h from v * 0: h = maximum(h, r); yield last h)", .mode = "FAST_COMPILE" });
}

TEST(exported_loops_with_products)
{
    SAME_AS_LIBRARY(
        { .lines = "hs = scan(r in x, h from zeros([3], dtype='float32'): h = tanh(dot(r, W) + dot(h, W)))\n"
                   "cost = mean(sqr(hs - 0.1))",
          .outputs = "cost, hs, grad(cost, x)",
          .updates = "W = W - 0.1 * grad(cost, W)" },
        { .lines =
              "z = scan(steps=4, a from x, k from 1.0f32: a = tanh(dot(a, W) * k); k = k * 0.9 + sum(a) * "
              "0.01; yield a, k)\ncost = sum(sqr(z[0])) + sum(z[1])",
          .outputs = "grad(cost, [x, W]), grad(sum(sqr(grad(cost, W))), x)" },
        { .outputs = "scan(steps=3, a from d: a = dot(a, dot(d.T, d)) * 0.1; yield last a), "
                     "scan(steps=2, p from reshape(x[0:2], [1, 1, 2, 3]): p = tanh(conv(p, reshape(W, [1, 1, "
                     "3, 3]), "
                     "border='same') + p); yield last p)" });
}

TEST(exported_loops_that_end_by_themselves)
{
    SAME_AS_LIBRARY(
        { .outputs =
              "scan(steps=100, y from 1.0f32 + abs(v[0]): old = y; y = (y + 2 / y) / 2; yield last y, count; "
              "until abs(y - old) < 1e-5)" },
        { .outputs = "scan(r in x, h from v * 0: h = h + r; yield h, sum(h), count; halt sum(h) > 0.5)" },
        { .outputs = "scan(r in x, k from 0i64: k = k + 1; yield k, last k, count; halt k > 0)" },
        { .outputs = "scan(steps=6, k from 0i64: k = k + scan(steps=9, j from k: j = j + 1; yield count; "
                     "halt j > 4); "
                     "yield k, count; halt k > 12)" });
}

TEST(exported_gradients_of_loops_that_end_by_themselves)
{
    SAME_AS_LIBRARY(
        { .lines =
              "hs = scan(r in x, h from v * 0: h = tanh(dot(h, W) + r); yield h; halt sum(sqr(h)) > 0.9)\n"
              "cost = sum(sqr(hs))",
          .outputs = "cost, hs, grad(cost, [x, v]), grad(sum(sqr(grad(cost, W))), x)",
          .updates = "W = W - 0.1 * grad(cost, W)" },
        { .lines = "z = scan(steps=40, y from 1.0f32 + sqr(v): old = y; y = (y + 2 / y) / 2; yield last y; "
                   "until max(abs(y - old)) < 1e-5)",
          .outputs = "z, grad(sum(z), v)" },
        { .lines = "z = scan(r in x, h from v: h = sin(h) + scan(e in r, k from 0.0f32: k = k + e * e; yield "
                   "k; halt "
                   "k > 0.4)[0]; yield h, sum(h); halt sum(h) > 1)",
          .outputs = "grad(sum(z[0]) + sum(sqr(z[1])), [x, v])" },
        { .lines =
              "z = scan(truncate_gradient=2, r in x, h from v: h = tanh(h * r); yield h; halt h[0] < 0.1)",
          .outputs = "grad(sum(z * z), [x, v])" },
        { .outputs = "grad(sum(scan(r in x, h from v: h = h * r; yield h; halt sum(h) < 9)), [x, v])",
          .mode = "FAST_COMPILE" });
}

/* A recurrent layer that ends after a step whose state is large; by PyTorch, at several ends. */
static const struct {
    double limit, cost, xs[10], h0[2], W[4], second[4]; /* second: of sum(sqr(gradient of xs)) by W */
} ends[] = {
    { .limit = 0.05, .cost = -0.13888953372461282,
      .xs = { 1.0302099629177859, 1.1129669022675408 },
      .h0 = { 0.23686325589200774, 0.8839541624150935 },
      .W = { 0.10302099629177859, 0.11129669022675409, -0.30906298887533573, -0.33389007068026222 },
      .second = { 0.096221935975660644, -0.16944686641119885, -0.28866580792698193, 0.50834059923359654 } },
    { .limit = 0.3, .cost = 0.9651747316971537,
      .xs = { -0.15385677333982395, 0.23488521031367401, -0.018413739775861342, 0.77382987877899789, 0.56025139477869434,
              1.2017207142432769, 1.3331001976284669, 1.0655164957203478 },
      .h0 = { -0.13564968924833049, -0.091904058973500555 },
      .W = { -0.37601017403054171, -0.18556134625458193, 0.54932594905619647, 0.38442291549882734 },
      .second = { 2.6139818285878844, 1.7159827124784497, 3.9938531622172344, 6.1009867546328911 } },
    { .limit = 9, .cost = -0.053836094389158956,
      .xs = { -0.12924748164822208, 0.18803311393221803, -0.060484198473228452, 0.58970568634210851, 0.32486424455894841,
              0.89933372639466735, 0.89001664873846709, 1.1881965886677579, 1.3312521771893522, 1.2863106552240975 },
      .h0 = { -0.11163201930716554, -0.078132299842944758 },
      .W = { 0.49991732703612796, 0.49550521037335415, 0.61789974869528352, 0.61225450703458939 },
      .second = { 4.3001169771261516, 4.9510180129137948, 5.7021938765204494, 8.0383119428728893 } },
};

typedef int ending(void *model, void *memory, const double *xs, const double *h0, const double *W,
                   double limit, double *cost, double *gxs, double *gh0, double *gW, double *second);

static void near(const double *got, const double *want, int n, const char *what, double limit)
{
    for (int i = 0; i < n; i++) {
        CHECK(fabs(got[i] - want[i]) <= 1e-14 * (1 + fabs(want[i])), "limit %g: %s[%d] is %.17g, not %.17g",
              limit, what, i, got[i], want[i]);
    }
}

TEST(gradients_of_a_loop_that_ends_by_itself_equal_those_of_pytorch)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input xs float64[?, 2]; input h0 float64[2]; input W float64[2, 2]; input limit float64\n"
                  "hs, h = scan(x in xs, h from h0: h = tanh(dot(h, W) + x); yield h, last h; halt "
                  "sum(sqr(h)) > limit)\n"
                  "cost = sum(hs * hs * hs) + sum(h); first = grad(cost, xs)");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "xs, h0, W, limit",
                       .outputs = "cost, first, grad(cost, h0), grad(cost, W), grad(sum(sqr(first)), W)" });
    REQUIRE(f, "%s", mc_error(g));
    mc_export_function at = { f, "run", "xs[5, 2]" };
    REQUIRE(mc_export_c(in_folder("ends.c"), 1, &at) == MC_OK, "%s", mc_last_error());
    mc_status s = MC_OK;
    char *text = text_of("ends.c"), flags[256];
    snprintf(flags, sizeof flags, "-std=c99 -I%s", in_folder(""));
    struct mc_code *code = mc_code_load(text, flags, &s);
    REQUIRE(code, "%s", mc_last_error());
    double xs[] = { .3, -.2, .1, .4, -.5, .2, .6, .1, .2, -.7 }, h0[] = { .1, -.3 },
           W[] = { .5, -.25, .75, .1 };
    for (size_t i = 0; i < NELEM(ends); i++) {
        double cost, gxs[10], gh0[2], gW[4], second[4];
        CHECK(((ending *)function_of(code, "ends_run"))(NULL, NULL, xs, h0, W, ends[i].limit, &cost, gxs, gh0,
                                                        gW, second) == 0,
              "an error");
        near(&cost, &ends[i].cost, 1, "cost", ends[i].limit);
        near(gxs, ends[i].xs, 10, "xs", ends[i].limit);
        near(gh0, ends[i].h0, 2, "h0", ends[i].limit);
        near(gW, ends[i].W, 4, "W", ends[i].limit);
        near(second, ends[i].second, 4, "second", ends[i].limit);
    }
    mc_code_unref(&code);
    free(text);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(exported_nested_loops)
{
    SAME_AS_LIBRARY(
        { .lines = "o = scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = tanh(k + e); yield "
                   "last k))",
          .outputs = "o, grad(sum(o), x)" },
        { .outputs =
              "scan(r in x, h from v: q = scan(e in r, k from h: k = k * 0.5 + e); h = h + sum(q, axis=0); "
              "yield h, q)" },
        { .outputs = "scan(steps=2, a from 0i64: b = scan(steps=3, k from a: k = k + scan(steps=2, j from k: "
                     "j = j + 1; yield last j); yield last k); a = a + b; yield a)" });
}

TEST(exported_loops_with_other_ops)
{
    SAME_AS_LIBRARY(
        { .outputs = "scan(r in x, h from v * 0: h = sort(h + r) + cumsum(r, axis=0); yield h, argmax(h))" },
        { .outputs = "scan(r in x, h from x: h = concatenate(h[1:], dimshuffle(r, [-1, 0]), axis=0); yield "
                     "last h)" },
        { .outputs = "scan(steps=4, h from v: h = h + uniform(rng, shape(v), dtype='float32'); yield h)" },
        { .outputs = "scan(r in cast(x, 'float16'), h from cast(v, 'float16'): h = h * 0.5 + r; yield h)" },
        { .outputs = "scan(r in x, h from softmax(v): h = softmax(h + r); yield h)" });
}

TEST(kinds_of_files_with_loops)
{
    NEEDS_COMPILER();
    same_in_every_kind(&(struct row){
        .lines = "hs = scan(r in x, h from zeros([3], dtype='float32'): h = tanh(dot(r, W) + dot(h, W)))\n"
                 "cost = mean(sqr(hs - 0.1))",
        .outputs =
            "cost, scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = k * 0.5 + e; yield last "
            "k); yield h, count; halt h > 1)",
        .updates = "W = W - 0.1 * grad(cost, W)" });
}

TEST(text_of_an_exported_loop)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, "scan(r in x, h from v: h = h * 0.5 + r; yield h; halt sum(h) > 9)",
                              NULL, NULL);
    REQUIRE(f && exported(f, NULL, false), "%s", mc_last_error());
    char *text = text_of("f.c");
    static const char *const words[] = { "for (; step1 < 5 && !last1; step1++) {", "for (; step1 < 2 && !last1; step1++) {",
                                         "/*     t1 = h * 0.5f32 + r */", "const void *const in1[] = {" };
    for (size_t i = 0; i < NELEM(words); i++) {
        CHECK(strstr(text, words[i]), "no '%s' in\n%s", words[i], strstr(text, "AT_LEVEL") ? "" : text);
    }
    free(text);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

#define CUT "Write halt in place of until, which leaves zeros behind the last step, or yield last values"

TEST(loops_that_are_not_exported)
{
    NEEDS_COMPILER();
    static const struct { const char *outputs, *says; } rows[] = {
        { "scan(r in x, h from v: h = h + r; yield h; until sum(h) > 3)", CUT },
        { "sum(scan(r in x, h from v: h = h + r; until sum(h) > 3)[::-1], axis=0)", CUT },
        { "scan(steps=9, h from v: h = h + 1; yield h * 2; until sum(h) > 3)[1:]", CUT },
        { "scan(r in x, h from v: h = h + r; yield last h, count; until sum(h) > 3)[0] + sum(x[x > 0])",
          "sizes of f depend on data" },
        { "scan(k in arange(3), h from 0.0f32: h = h + sum(v[:k]); yield h)",
          "scan: a size in its body depends on what the loop computes" },
        { "scan(r in x, h from v: h = print_(h + r); yield h)", "print_" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_function *f = compiled(g, NULL, rows[i].outputs, NULL, NULL);
        mc_export_function at = { f, "run", sizes[0] };
        CHECK(f && mc_export_c(in_folder("f.c"), 1, &at) == MC_EUNSUPPORTED &&
                  strstr(mc_last_error(), rows[i].says),
              "%s: %s", rows[i].outputs, mc_last_error());
        CHECK(access(in_folder("f.c"), F_OK) != 0 && access(in_folder("f.h"), F_OK) != 0, "a file is there");
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

TEST(loops_are_exported_without_memory)
{
    NEEDS_COMPILER();
    exported_without_memory("scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = k * 0.5 + e; "
                            "yield last k); yield h, count; halt h > 1)");
}
