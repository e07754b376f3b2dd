/* t_bundle_loops.c: functions with loops beside what is loaded from their files, bit for bit; and what
 * loading refuses of a loop. */
#include "bundle/bundle.h"
#include "bundle_words.h"
#include <fcntl.h>
#include <unistd.h>

/* ---- the same bits ---- */

struct formulas { const char *inputs, *lines, *outputs, *updates, *mode; };

static mc_function *compiled(mc_graph *g, const struct formulas *row)
{
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 3 }, -1, 1), *one = mc_array_scalar(MC_FLOAT32, 1);
    mc_shared_new(g, "W", w);
    mc_shared_new(g, "c", one);
    mc_random(g, "rng", 17);
    mc_array_unref(&w), mc_array_unref(&one);
    CHECK(mc_register(
              g, &(mc_custom){ .name = "smooth",
                               .nin = 1,
                               .nout = 1,
                               .kernel = "a / (1 + M(exp)(-a))",
                               .kernel_grad = { "g * (sigmoid(a) + a * sigmoid(a) * (1 - sigmoid(a)))" } }) ==
              MC_OK,
          "%s", mc_last_error());
    if (row->lines) {
        mc_formula(g, row->lines);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "loops",
                                               .inputs = row->inputs,
                                               .outputs = row->outputs,
                                               .updates = row->updates,
                                               .mode = row->mode,
                                               .on_unused = "ignore" });
    CHECK(f, "%s: %s", row->outputs, mc_error(g));
    return f;
}

/* Are the bodies of all loops compiled, in f and in the loaded one alike? */
static void same_bodies(const mc_function *f, const mc_function *g)
{
    REQUIRE(f && g && f->code->program.step.n == g->code->program.step.n, "other steps");
    for (size_t i = 0; i < f->code->program.step.n; i++) {
        const struct mc_function *a = f->loop ? f->loop[i] : NULL, *b = g->loop ? g->loop[i] : NULL;
        CHECK(!a == !b, "step %zu has a body in one alone", i);
        if (a && b) {
            same_bodies(a, b);
        }
    }
}

static void same_formulas(const struct formulas *row)
{
    mc_graph *g = given_graph();
    mc_function *f = compiled(g, row), *loaded = f ? reloaded(f) : NULL;
    if (f && loaded) {
        same_bodies(f, loaded);
        CHECK(strcmp(mc_function_graph_text(f), mc_function_graph_text(loaded)) == 0, "another text");
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            const char *a = mc_function_step(f, i).text;
            char *kept = mc_strdup(a);
            CHECK(strcmp(kept, mc_function_step(loaded, i).text) == 0, "step %d: %s", i, kept);
            mc_free(kept);
        }
    }
    same_rounds(f, loaded, row->inputs, row->outputs);
    mc_function *again = loaded ? reloaded(loaded) : NULL; /* with the variables as they are now */
    same_rounds(loaded, again, row->inputs, row->outputs);
    mc_function_free(again);
    mc_function_free(loaded);
    mc_function_free(f);
    mc_graph_free(g);
}

#define SAME_FORMULAS(...)                                                                                   \
    ON_ITS_DEVICE();                                                                                        \
    const struct formulas rows[] = { __VA_ARGS__ };                                                          \
    for (size_t i = 0; i < NELEM(rows); i++) {                                                               \
        same_formulas(&rows[i]);                                                                             \
    }                                                                                                        \
    drop_folder()

TEST(loops_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = h * 0.5 + tanh(r) * v; yield h, sum(h))" },
        { .inputs = "x, v", .outputs = "scan(r in x[::-1], h from v * 0: h = maximum(h, r); yield last h)" },
        { .inputs = "n, s",
          .outputs = "scan(steps=n, a from 0i64, b from 1i64: a, b = b, a + b; yield a), s" },
        { .inputs = "d, u",
          .outputs =
              "scan(r in d, k in u, h from d[0] * 0: h = h + r * cast(k, 'float64'); yield h, last h)" },
        { .inputs = "h", .outputs = "scan(r in h, a from h[0]: a = a * 0.5 + r; yield a)" },
        { .inputs = "x, y",
          .outputs = "scan(r in x, h from zeros([size(y, 1)]): h = tanh(dot(r, y) + h); yield h, max(h))" },
        { .inputs = "img, w",
          .outputs = "scan(steps=3, a from img: a = tanh(a * 0.5 + sum(conv(a, w, border='same'), axis=1, "
                     "keepdims=True)); yield last a)" });
}

/* The body is a net: products of states with weights, an update by its gradient. */
TEST(recurrent_training_after_loading)
{
    SAME_FORMULAS({ .inputs = "x",
                    .lines = "hs = scan(r in x[:, 0:3], h from zeros([3], dtype='float32'): h = tanh(dot(r, "
                             "W) + dot(h, W)))\n"
                             "cost = mean(sqr(hs - 0.1))",
                    .outputs = "cost, sum(hs)",
                    .updates = "W = W - 0.1 * grad(cost, W)" },
                  { .inputs = "x, y, v",
                    .lines = "z = scan(r in x, h from zeros([size(y, 1)], dtype='float32'), k from 1.0f32: "
                             "h = tanh(dot(r, y) + h * k); k = k * 0.9 + sum(h) * 0.01; yield h, k)\ncost = "
                             "sum(sqr(z[0])) + sum(z[1])",
                    .outputs = "grad(cost, [x, y]), grad(sum(sqr(grad(cost, y))), x)" });
}

TEST(loops_that_end_by_themselves_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "s",
          .outputs =
              "scan(steps=100, x from 1.0f32 + abs(s): old = x; x = (x + 2 / x) / 2; yield last x, count; "
              "until abs(x - old) < 1e-5)" },
        { .inputs = "x, v", .outputs = "scan(r in x, h from v * 0: h = h + r; yield h; until sum(h) > 3)" },
        { .inputs = "x, v", .outputs = "scan(r in x, h from v * 0: h = h + r; yield h; halt sum(h) > 3)" });
}

TEST(nested_loops_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, n",
          .outputs =
              "scan(r in x, h from zeros([size(x, 1)]): q = scan(e in r, k from 0.0f32: k = k * 0.5 + e); "
              "h = h + q; yield h)" },
        { .inputs = "x, n",
          .lines = "o = scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = tanh(k + e); yield "
                   "last k))",
          .outputs =
              "o, grad(sum(o), x), scan(steps=n, a from 0i64: b = scan(steps=3, k from a: k = k + scan("
              "steps=2, j from k: j = j + 1; yield last j); yield last k); a = a + b; yield a)" });
}

TEST(what_bodies_may_have_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = h * 0.5 + smooth(r); yield h, sum(smooth(h)))" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = sort(h + r) + cumsum(r, axis=0); yield h, argmax(h))" },
        { .inputs = "x, i",
          .outputs = "scan(r in x, h from r0: h = h + r[i % 3]; yield h)",
          .lines = "r0 = i * 0.0f32" },
        { .inputs = "v",
          .outputs = "scan(steps=4, h from v: h = h + uniform(rng, shape(v), dtype='float32'); yield h)" },
        { .inputs = "x, n",
          .outputs = "scan(steps=n, h from 0.0f32: h = h + sum(x) * c; yield h), c",
          .updates = "c = c + 1" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = tanh(h + r)), scan(r in x, h from v * 0: "
                     "h = tanh(h + r); yield last h)" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = smooth(h + r); yield h)",
          .mode = "FAST_COMPILE" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = h + r / 2; yield h)",
          .mode = "NANGUARD" });
}

/* Numbers that are known: the loaded function counts, adds and multiplies. */
TEST(values_of_a_loaded_loop)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input n int64; input x float64[?, 2]\n"
                  "f = scan(steps=n, a from 0i64, b from 1i64: a, b = b, a + b; yield a)\n"
                  "p, k = scan(steps=50, p from 1i64: p = p * 3; yield last p, count; until p > n * n)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "n, x",
                                               .outputs = "f, p, k, scan(r in x, h from [0.0, 0]: "
                                                          "h = h * 10 + r; yield last h)" }),
                *loaded = f ? reloaded(f) : NULL;
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(3, 2), (double[]){ 1, 4, 2, 5, 3, 6 }), *y[4] = { 0 };
    REQUIRE(loaded && mc_call(loaded, MC_IN(9, x), MC_OUT(&y[0], &y[1], &y[2], &y[3])) == MC_OK, "%s%s",
            mc_error(g), mc_last_error());
    static const int64_t fibonacci[] = { 1, 1, 2, 3, 5, 8, 13, 21, 34 };
    CHECK(mc_array_size(y[0]) == 9 && memcmp(y[0]->data, fibonacci, sizeof fibonacci) == 0,
          "not Fibonacci's");
    CHECK(mc_load_i64(MC_INT64, y[1]->data) == 243 && mc_load_i64(MC_INT64, y[2]->data) == 5, "not 3^5");
    CHECK(((double *)(void *)y[3]->data)[0] == 123 && ((double *)(void *)y[3]->data)[1] == 456,
          "not 123, 456");
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&y[i]);
    }
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(loaded);
    mc_graph_free(g);
    drop_folder();
}

/* Solvers of products in a body, and in the body of a body, are in the file. */
TEST(measured_solvers_of_a_body)
{
    NEEDS_COMPILER();
    mc_flag_set("plan", "measure");
    mc_graph *g = mc_graph_new();
    mc_formula(
        g, "input x float32[?, ?, 16]; input w float32[16, 16]\n"
           "y = scan(r in x, h from x[0]: h = tanh(dot(h, w) + r); yield h)\n"
           "z = scan(steps=2, a from x[0]: a = scan(steps=3, b from a: b = tanh(dot(b, w)); yield last b); "
           "yield last a)");
    for (int nested = 0; nested < 2; nested++) {
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, w", .outputs = nested ? "z" : "y", .on_unused = "ignore" });
        mc_array *x = sample(MC_FLOAT32, 3, (int64_t[]){ 4, 7, 16 }, -1, 1),
                 *w = sample(MC_FLOAT32, 2, (int64_t[]){ 16, 16 }, -1, 1), *y = NULL;
        REQUIRE(f && mc_call(f, MC_IN(x, w), MC_OUT(&y)) == MC_OK, "%s%s", mc_error(g), mc_last_error());
        mc_function *loaded = reloaded(f);
        REQUIRE(loaded, "not loaded");
        CHECK(loaded->code->chosen && loaded->code->chosen->n > 0, "no solver of the body is in the file");
        mc_function_free(loaded), mc_function_free(f);
        mc_array_unref(&x), mc_array_unref(&w), mc_array_unref(&y);
    }
    mc_graph_free(g);
    drop_folder();
}

/* ---- what is refused ---- */

/* scan(...) inside of scan(...), so many times */
static char *nested(int depth)
{
    struct mc_str text = { 0 };
    for (int i = 0; i < depth; i++) {
        mc_str_addf(&text, "scan(steps=2, a%d from ", i);
        mc_str_addf(&text, i ? "a%d" : "s", i - 1);
        mc_str_addf(&text, ": a%d = a%d * 0.5 + ", i, i);
    }
    mc_str_addf(&text, "sin(a%d)", depth - 1);
    for (int i = depth; i-- > 0;) {
        mc_str_addf(&text, "; yield last a%d)", i);
    }
    return mc_str_take(&text);
}

TEST(how_deep_loops_may_be)
{
    ON_CPU();
    for (int depth = MC_BUNDLE_LOOPS; depth <= MC_BUNDLE_LOOPS + 1; depth++) {
        mc_graph *g = given_graph();
        char *text = nested(depth);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "s", .outputs = text, .mode = "FAST_COMPILE", .excluding = "loops" });
        REQUIRE(f, "%s", mc_error(g));
        if (depth == MC_BUNDLE_LOOPS) {
            mc_function *loaded = reloaded(f);
            same_call(f, loaded, 1, (mc_arg[]){ mc_arg_real(0.75) }, "nested");
            mc_function_free(loaded);
        } else {
            CHECK(mc_function_save(f, in_folder("deep.mcf")) == MC_EUNSUPPORTED, "saved");
            CHECK(strstr(mc_last_error(), "at most 16 loops can be inside of each other"), "%s",
                  mc_last_error());
            CHECK(access(in_folder("deep.mcf"), F_OK) != 0, "a file is there");
        }
        mc_free(text);
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

static const struct formulas small = {
    .inputs = "x, v",
    .outputs = "scan(r in x, h from v * 0: h = h + scan(e in r, k from 0.5f32: k = k + e; yield last k); yield h; "
               "halt sum(h) > 9)",
    .mode = "FAST_COMPILE"
};

TEST(damaged_loops)
{
    ON_CPU();
    mc_graph *g = given_graph();
    mc_function *f = compiled(g, &small), *h = NULL;
    char *data = NULL;
    size_t n = 0, taken = 0, at = 0;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    const int fd = open(in_folder("flipped.mcf"), O_RDWR | O_CREAT, 0666);
    REQUIRE(fd >= 0 && write(fd, data, n) == (ssize_t)n, "not written");
    const char *path = in_folder("flipped.mcf");
    for (size_t i = 0; i < n; i++) {
        const char wrong = (char)(data[i] ^ (1 << i % 8));
        REQUIRE(pwrite(fd, &wrong, 1, (off_t)i) == 1, "not written");
        if (mc_bundle_load(path, 1, &h) != MC_EFORMAT) {
            taken++, at = i;
        }
        mc_function_free(h);
        REQUIRE(pwrite(fd, &data[i], 1, (off_t)i) == 1, "not written");
    }
    CHECK(!taken, "%zu of %zu changed bytes are no error; the last is byte %zu", taken, n, at);
    CHECK(mc_bundle_load(path, 1, &h) == 1, "%s", mc_last_error());
    mc_function_free(h);
    close(fd);
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* Each byte of the description is changed, and the checksum fits: loading ends in a function, which has the
 * bodies that its loops need, or in an error. */
TEST(numbers_of_a_loop_that_are_wrong)
{
    ON_CPU();
    mc_graph *g = given_graph();
    mc_function *f = compiled(g, &small), *h = NULL;
    char *data = NULL;
    size_t n = 0;
    int loaded = 0, refused = 0;
    struct mc_bundle_header head;
    REQUIRE(f && mc_function_save(f, in_folder("a.mcf")) == MC_OK, "%s", mc_last_error());
    REQUIRE(mc_file_read(in_folder("a.mcf"), &data, &n) == MC_OK, "%s", mc_last_error());
    memcpy(&head, data, sizeof head);
    for (size_t i = sizeof head; i < sizeof head + head.description; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct mc_bundle_header now = head;
            data[i] ^= (char)(1 << bit);
            now.sums[0] = mc_bundle_checksum(data + sizeof head, (size_t)head.description);
            memcpy(data, &now, sizeof now);
            REQUIRE(mc_file_write(in_folder("wrong.mcf"), data, n) == MC_OK, "%s", mc_last_error());
            const int have = mc_bundle_load(in_folder("wrong.mcf"), 1, &h);
            CHECK(have >= 1 ? h != NULL : have < 0 && !h && *mc_last_error(), "%d after byte %zu", have, i);
            *(have >= 1 ? &loaded : &refused) += 1;
            mc_function_free(h);
            data[i] ^= (char)(1 << bit);
        }
    }
    CHECK(refused > 1000 && loaded > 100, "%d loaded, %d refused", loaded, refused);
    mc_free(data);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(loops_survive_every_failed_allocation)
{
    NEEDS_COMPILER();
    mc_graph *g = given_graph();
    struct formulas row = small;
    row.mode = NULL;
    mc_function *f = compiled(g, &row), *h = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("a.mcf"));
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 2 }, -1, 1),
             *v = sample(MC_FLOAT32, 1, (int64_t[]){ 2 }, -1, 1);
    REQUIRE(f, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_function_save(f, path);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        remove(path);
    }
    REQUIRE(mc_function_save(f, path) == MC_OK, "%s", mc_last_error());
    ALLOC_FAIL_LOOP {
        const int n = mc_bundle_load(path, 1, &h);
        CHECK(n == 1 || (ALLOC_FAILED && n == MC_EMEMORY), "%d: %s", n, mc_last_error());
        if (n == 1 && ALLOC_FAILED) { /* what failed is not missed */
            same_call(f, h, 2, (mc_arg[]){ mc_arg_array(x), mc_arg_array(v) }, "loaded");
        }
        mc_function_free(h);
    }
    mc_array_unref(&x), mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}
