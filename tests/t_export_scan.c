/* t_export_scan.c: loops (scan) in exported files: the bits of the library, at two sizes, in every kind of
 * file; and what is refused.  tests/export.py has loops in random programs. */
#include "export_words.h"
#include "sample.h"
#include <unistd.h>

#define NEEDS_COMPILER()                                                                                     \
    if (!mc_cc_present()) {                                                                                  \
        SKIP("no C compiler");                                                                               \
    }                                                                                                        \
    mc_flag_set("device", "cpu");                                                                            \
    mc_flag_set("portable", "True")

/* ---- a function beside its exported file ---- */

/* x and d: the same sizes, float32 and float64; v: the last of these sizes; n: a number of an int64 */
static const char inputs[] = "x, d, v";
enum { SIZES = 2, MOST = 16 };
static const char *const sizes[SIZES] = { "x[5, 3], d[5, 3], v[3]", "x[2, 3], d[2, 3], v[3]" };

static mc_function *compiled(mc_graph *g, const char *lines, const char *outputs, const char *updates,
                             const char *mode)
{
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 3 }, -1, 1);
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "d", MC_FLOAT64, 2);
    mc_input(g, "v", MC_FLOAT32, 1);
    mc_input(g, "i", MC_INT64, 1);
    mc_shared_new(g, "W", w);
    mc_array_unref(&w);
    mc_random(g, "rng", 17);
    if (lines) {
        mc_formula(g, lines);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f",
                                               .inputs = inputs,
                                               .outputs = outputs,
                                               .updates = updates,
                                               .mode = mode,
                                               .on_unused = "ignore" });
    CHECK(f, "%s: %s", outputs, mc_error(g));
    return f;
}

/* The text of a file in the folder; the caller frees it. */
static char *text_of(const char *name)
{
    char *text = NULL;
    size_t n = 0;
    CHECK(mc_file_read(in_folder(name), &text, &n) == MC_OK, "%s", mc_last_error());
    char *ended = calloc(1, n + 1);
    memcpy(ended, text ? text : "", text ? n : 0);
    mc_free(text);
    return ended;
}

/* The file, and functions that pass arrays on from a list.  Code is found in the cache by its whole text. */
static struct mc_code *code_around(int noutputs, const char *flags)
{
    struct mc_str text = { 0 };
    mc_status s = MC_OK;
    char all[256];
    char *file = text_of("f.c");
    mc_str_addf(&text, "%s\nvoid set(void *m) { f_init(m); }\n", file);
    free(file);
    for (int k = 0; k < SIZES; k++) {
        mc_str_addf(&text, "int call_%d(void *m, void *memory, void **p) { return f_at_%d(m, memory", k, k);
        for (int i = 0; i < 3 + noutputs; i++) {
            mc_str_addf(&text, ", p[%d]", i);
        }
        mc_str_add(&text, "); }\n");
    }
    snprintf(all, sizeof all, "-std=c99 %s -I%s", flags, in_folder(""));
    struct mc_code *code = mc_code_load(text.s, all, &s);
    CHECK(code, "%s: %s", flags, mc_last_error());
    mc_str_free(&text);
    return code;
}

typedef void setting(void *model);
typedef int calling(void *model, void *memory, void **array);

/* Two calls of both at each size.  The function's variable has the same values again afterwards. */
static void same_calls(mc_function *f, struct mc_code *code, const char *what)
{
    any_function *set = function_of(code, "set");
    const int n = mc_function_noutputs(f);
    mc_shared *w = mc_function_nshared(f) ? mc_function_shared(f, 0) : NULL;
    mc_array *before = w ? mc_shared_get(w) : NULL;
    float *model = calloc(64, sizeof *model);
    ((setting *)set)(model);
    for (int k = 0; k < 2 * SIZES; k++) {
        char name[16];
        const int64_t rows = k % SIZES ? 2 : 5;
        mc_array *in[3] = { sample(MC_FLOAT32, 2, (int64_t[]){ rows, 3 }, -1, 1),
                            sample(MC_FLOAT64, 2, (int64_t[]){ rows, 3 }, -1, 1),
                            sample(MC_FLOAT32, 1, (int64_t[]){ 3 }, -1, 1) };
        mc_array *out[MOST] = { 0 }, *own[3], *now[MOST];
        mc_arg to[MOST];
        void *p[3 + MOST];
        for (int i = 0; i < n; i++) {
            to[i] = mc_arg_slot(&out[i]);
        }
        snprintf(name, sizeof name, "call_%d", k % SIZES);
        mc_arg from[3];
        for (int i = 0; i < 3; i++) { /* contiguous: the order of a sum may depend on strides */
            own[i] = mc_array_copy(in[i]);
            from[i] = mc_arg_array(own[i]);
            p[i] = own[i]->data;
        }
        CHECK(mc_call_args(f, 3, from, n, to) == MC_OK, "%s: %s", what, mc_last_error());
        for (int i = 0; i < n && out[i]; i++) {
            now[i] = mc_array_new(out[i]->dtype, out[i]->rank, out[i]->dims);
            memset(now[i]->data, 0x5a, (size_t)mc_array_size(now[i]) * mc_dtypes[now[i]->dtype].size);
            p[3 + i] = now[i]->data;
        }
        any_function *at = function_of(code, name);
        CHECK(at && ((calling *)at)(model, NULL, p) == 0, "%s: an error", what);
        for (int i = 0; i < n && out[i]; i++) {
            CHECK(mc_array_same_bits(out[i], now[i]), "%s: result %d differs at size %d", what, i, k % SIZES);
            mc_array_unref(&out[i]), mc_array_unref(&now[i]);
        }
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&in[i]), mc_array_unref(&own[i]);
        }
        mc_array *value = w ? mc_shared_get(w) : NULL;
        CHECK(!w || memcmp(model, value->data, (size_t)mc_array_size(value) * mc_dtypes[value->dtype].size) ==
                        0,
              "%s: the variable differs", what);
        mc_array_unref(&value);
    }
    CHECK(!w || mc_shared_set(w, before) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&before);
    free(model);
}

static bool exported(mc_function *f, const char *isa, bool freestanding)
{
    mc_export_function at[SIZES] = { { f, "at_0", sizes[0] }, { f, "at_1", sizes[1] } };
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("f.c"));
    const mc_export_spec spec = {
        .path = path, .nfunction = SIZES, .function = at, .isa = isa, .freestanding = freestanding
    };
    return CHECK(mc_export(&spec) == MC_OK, "%s", mc_last_error());
}

struct row { const char *lines, *outputs, *updates, *mode; };

static void same_as_library(const struct row *row)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, row->lines, row->outputs, row->updates, row->mode);
    if (f && exported(f, NULL, false)) {
        struct mc_code *code = code_around(mc_function_noutputs(f), "");
        same_calls(f, code, row->outputs);
        mc_code_unref(&code);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

#define SAME_AS_LIBRARY(...)                                                                                 \
    NEEDS_COMPILER();                                                                                        \
    const struct row rows[] = { __VA_ARGS__ };                                                               \
    for (size_t i = 0; i < NELEM(rows); i++) {                                                               \
        same_as_library(&rows[i]);                                                                           \
    }                                                                                                        \
    drop_folder()

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

/* Every kind of file: of the same loop, the same bits; and no warnings. */
TEST(kinds_of_files_with_loops)
{
    NEEDS_COMPILER();
    mc_flag_set("cpu.isa", "native");
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(
        g,
        "hs = scan(r in x, h from zeros([3], dtype='float32'): h = tanh(dot(r, W) + dot(h, W)))\n"
        "cost = mean(sqr(hs - 0.1))",
        "cost, scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = k * 0.5 + e; yield last k); "
        "yield h, "
        "count; halt h > 1)",
        "W = W - 0.1 * grad(cost, W)", NULL);
    static const struct { const char *isa, *flags; bool freestanding; } rows[] = {
        { NULL, "-O3", false }, { NULL, "-DF_PLAIN", false }, { "all", "", false }, { "avx2", "-O1", false },
        { NULL, "-fopenmp -DF_PARALLEL_WORK=0", false }, { NULL, "-O2 -ffreestanding", true },
    };
    for (size_t i = 0; f && i < NELEM(rows); i++) {
        if (exported(f, rows[i].isa, rows[i].freestanding)) {
            struct mc_code *code = code_around(mc_function_noutputs(f), rows[i].flags);
            same_calls(f, code, rows[i].flags);
            mc_code_unref(&code);
        }
        if (i == 0 || i == NELEM(rows) - 1) {
            compiles("f.c");
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
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
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL,
                              "scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = k * 0.5 + e; "
                              "yield last k); yield h, count; halt h > 1)",
                              NULL, NULL);
    mc_export_function at = { f, "run", sizes[0] };
    REQUIRE(f, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_export_c(in_folder("f.c"), 1, &at);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "status %d: %s", (int)s, mc_last_error());
        CHECK((s == MC_OK) == (access(in_folder("f.c"), F_OK) == 0), "a file after status %d", (int)s);
        remove(in_folder("f.c"));
        remove(in_folder("f.h"));
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}
