/* t_export_scan.c: loops (scan) in exported files: the bits of the library, at two sizes, in every kind of
 * file; and what is refused.  tests/export.py has loops in random programs. */
#include "export_formulas.h"

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

TEST(loops_that_are_not_exported)
{
    NEEDS_COMPILER();
    static const struct { const char *outputs, *says; } rows[] = {
        { "scan(r in x, h from v: h = h + r; yield h; until sum(h) > 3)", "sizes of f depend on data" },
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
