/* t_bundle.c: functions beside what is loaded from their files, bit for bit: formulas of every kind, updates,
 * variables, defaults, names, copies, threads.  t_bundle_file.c has the files themselves; tests/bundle.py
 * compares nets and random programs. */
#include "bundle_words.h"
#include <monochord_nn.h>
#include <pthread.h>

/* ---- formulas ---- */

struct formulas { const char *inputs, *outputs, *updates, *mode; };

static mc_shared *variable(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = sample(d, rank, dims, -2, 2);
    mc_shared *s = mc_shared_new(g, name, a);
    mc_array_unref(&a);
    return s;
}

/* Users' ops: "smooth(x)" and "mixed(x, y)". */
static const char smooth_text[] = "a / (1 + M(exp)(-a))";

static void same_formulas(const struct formulas *row)
{
    mc_graph *g = given_graph();
    variable(g, "W", MC_FLOAT32, 2, (int64_t[]){ 3, 5 });
    variable(g, "B", MC_FLOAT16, 1, (int64_t[]){ 5 });
    variable(g, "count", MC_INT64, 0, NULL);
    variable(g, "none", MC_FLOAT64, 2, (int64_t[]){ 0, 4 });
    mc_random(g, "rng", 17);
    CHECK(mc_register(g, &(mc_custom){ .name = "smooth", .nin = 1, .nout = 1, .kernel = smooth_text }) ==
                  MC_OK &&
              mc_register(g, &(mc_custom){ .name = "mixed",
                                           .nin = 2,
                                           .nout = 1,
                                           .kernel = "a * M(tanh)(b) - b",
                                           .kernel_grad = { "g * tanh(b)",
                                                            "g * (a * (1 - sqr(tanh(b))) - 1)" } }) == MC_OK,
          "%s", mc_last_error());
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "formulas",
                                               .inputs = row->inputs,
                                               .outputs = row->outputs,
                                               .updates = row->updates,
                                               .mode = row->mode,
                                               .on_unused = "ignore" });
    CHECK(f, "%s: %s", row->outputs, mc_error(g));
    mc_function *loaded = f ? reloaded(f) : NULL;
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

TEST(maps_and_reductions_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v, s",
          .outputs = "tanh(x) + v * s, x > 0, cast(x * 100, 'int8'), softmax(x), sum(x, axis=0), "
                     "sum(x), max(x, axis=1), argmax(x, axis=1), mean(x * x), logsumexp(x, axis=1)" },
        { .inputs = "d, u, m",
          .outputs = "exp(d), u // 7 + 1, where(m, d, cast(u, 'float64')), prod(d, axis=1), "
                     "any(m, axis=0), all(m), sum(u), d % 0.3, u / u, xor(m, u > 3)" },
        { .inputs = "h, b",
          .outputs = "h * 2 + sqrt(abs(h)), sum(h, axis=1), b - sum(b, axis=1, keepdims=True), max(b), "
                     "cast(h, 'float32') * cast(b, 'float32'), h == h" },
        { .inputs = "x",
          .outputs = "x.T, x[::-1, 1:], reshape(x, [-1]), x, shape(x), size(x, 0) * 2, sum(x.T, axis=1)" },
        { .inputs = "s", .outputs = "s, s * s, exp(s) > 1, 3.0, cast(7, 'int16'), [1, 2, 3] * s" });
}

TEST(ops_of_the_reference_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, i",
          .outputs =
              "sort(x, axis=1), argsort(x, axis=0), cumsum(x, axis=0), cumprod(x), x[:, i % 3], x[i] * 2" },
        { .inputs = "x, v, i",
          .outputs = "set_subtensor(x[1:3], v), inc_subtensor(x[i], 1.5), concatenate(x, x, axis=1), "
                     "gather(v, i % 3, axes=[0]), x[i, i % 3], stack(v, v * 2)" },
        { .inputs = "u", .outputs = "sort(u), cumsum(u, axis=1), u[1:, ::2], u.T[0]" },
        { .inputs = "h", .outputs = "sort(h, axis=0), argmax(h, axis=0), h[:, -1]" });
}

/* Sizes that depend on data, and sizes that inputs say. */
TEST(dynamic_sizes_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v",
          .outputs = "nonzero(x > 0.5), unique(v), v[nonzero(v > 0)[0]] * 2, sum(x[nonzero(x[:, 0] > 0)[0]], "
                     "axis=0)" },
        { .inputs = "n, s",
          .outputs = "arange(n), alloc(s, [n, 3]), sum(arange(n) * s), zeros([n])",
          .updates = "count = count + n" },
        { .inputs = "x, n", .outputs = "x[:n], reshape(alloc(1.0, n), [1, -1]), x * cast(n, 'float32')" });
}

TEST(products_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, y, v",
          .outputs = "dot(x, y), dot(x, x.T), tanh(dot(x, v)), dot(x, y) + dot(x, y)[0], batched_dot([x, x], "
                     "[y, y])" },
        { .inputs = "x, y",
          .outputs = "clip(dot(x, y) + 1, 0, 1) * 2, sum(exp(dot(x, y)), axis=0), dot(x, y) * dot(x, y), "
                     "softmax(dot(x, y))" },
        { .inputs = "h, b, u",
          .outputs = "dot(h, h.T), dot(b.T, b) + 1, dot(u, u.T), dot(cast(u, 'int64'), cast(u.T, 'int64'))" },
        { .inputs = "d, x",
          .outputs = "dot(d, x.T), dot(d.T, d) * 0.5, tensordot(x, x, axes=[1], axes_b=[1])" });
}

TEST(convolutions_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "img, w",
          .outputs = "conv(img, w), tanh(conv(img, w, border='same') + 1), conv(img, w, border='full', "
                     "flip=False), conv(img, w, stride=2)" },
        { .inputs = "img, w",
          .outputs = "conv(img, w, dilation=2), conv(img, w, border=1, stride=[1, 2]), maximum(conv(img, w), "
                     "0) + conv(img, w)" },
        { .inputs = "img, w", .outputs = "grad(sum(sqr(conv(img, w, border='same'))), [img, w])" },
        { .inputs = "img, w",
          .outputs = "conv(dimshuffle(img, [0, 2, 3, 1]), dimshuffle(w, [0, 2, 3, 1]), layout='b01c')" });
}

TEST(pooling_and_normalisation_after_loading)
{
    SAME_FORMULAS({ .inputs = "img",
                    .outputs = "pool(img, [2, 2]), pool(img, [3, 3], stride=[2, 2], mode='average_exc_pad', "
                               "pad=[1, 1]), lrn(img), global_pool(img)" },
                  { .inputs = "img",
                    .outputs = "grad(sum(sqr(pool(img, [2, 2], ignore_border=False))), img), "
                               "grad(sum(sqr(lrn(img))), img), channel_sum(img, 3)" },
                  { .inputs = "img, w",
                    .outputs = "pool(conv(img, w), [2, 2], ties='all'), "
                               "grad(sum(sqr(pool(conv(img, w), [2, 2], ties='all'))), [img, w])" },
                  { .inputs = "img, w",
                    .outputs = "pool(maximum(conv(img, w) + 0.5, 0), [2, 2]), spatial_pyramid_pool(img)" });
}

/* Epilogues, column sums, sums of signs: what a gradient of layers is made of. */
TEST(gradients_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, y, v", .outputs = "grad(mean(softplus(dot(x * v, y))), [x, y, v])" },
        { .inputs = "x, y", .outputs = "grad(sum(sqr(maximum(dot(x, y) + sum(y, axis=0), 0))), [x, y])" },
        { .inputs = "x, v", .outputs = "layer_norm(x, v), grad(sum(layer_norm(x, v) * x), [x, v])" });
}

TEST(updates_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "s", .outputs = "sum(W)", .updates = "W = W * 0.5 + s; B = B + 1; count = count + 1" },
        { .outputs = "W", .updates = "W = W[::-1]; none = none * 2" },
        { .inputs = "n", .updates = "count = count * 2 + n" });
}

/* Fused with others, in reductions, beside solvers, with gradients; and by the reference. */
TEST(ops_of_the_users_own_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v, s",
          .outputs = "smooth(x) * 2 + v, softmax(mixed(x, v)), sum(smooth(x), axis=0), mixed(s, v), "
                     "sort(smooth(x), axis=0), smooth(smooth(x.T))" },
        { .inputs = "d, x, h",
          .outputs = "mixed(d, x), smooth(h), max(mixed(x, d), axis=1), cast(smooth(d), 'int8')" },
        { .inputs = "x, y",
          .outputs = "smooth(dot(x, y)), grad(sum(mixed(x, x * 2)), x)",
          .updates = "W = smooth(W)" },
        { .inputs = "x, v, d",
          .outputs = "smooth(x), mixed(x, v), mixed(d, d), smooth(sort(v))",
          .mode = "FAST_COMPILE" },
        { .inputs = "x, v", .outputs = "smooth(x[nonzero(v > 0)[0] % 1])", .updates = "W = smooth(W)" });
}

TEST(random_streams_go_on_after_loading)
{
    SAME_FORMULAS({ .inputs = "x",
                    .outputs = "uniform(rng, shape(x)), normal(rng, shape(x)) * x, permutation(rng, 5)" },
                  { .outputs = "bernoulli(rng, W * 0 + 0.5), multinomial(rng, softmax(W))" });
}

TEST(modes_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, y",
          .outputs = "softmax(dot(x, y)), sum(x)",
          .mode = "FAST_COMPILE",
          .updates = "W = W + 1" },
        { .inputs = "x, y",
          .outputs = "softmax(dot(x, y)), log(x * x + 1)",
          .mode = "NANGUARD",
          .updates = "W = W + 1" },
        { .inputs = "img, w", .outputs = "conv(img, w), sort(img, axis=3)", .mode = "FAST_COMPILE" });
}

/* ---- functions ---- */

/* The message has the step and the formula; the update is not made. */
TEST(an_error_of_a_step_after_loading)
{
    ON_ITS_DEVICE();
    mc_graph *g = given_graph();
    variable(g, "W", MC_FLOAT32, 1, (int64_t[]){ 2 });
    static const struct { const char *inputs, *outputs, *mode; double s; } rows[] = {
        { "s", "log(s)", "NANGUARD", -1 },
        { "s", "assert_(s, s > 0, msg='too small')", NULL, -1 },
        { "s", "W[cast(s, 'int64')]", NULL, 2 },
        { "s, x", "dot(x, x) + s", NULL, 1 },
        { "x", "reshape(x, [4]) * 2", NULL, 1 },
    };
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 2, 3 }, -1, 1);
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = rows[i].inputs,
                                                   .outputs = rows[i].outputs,
                                                   .updates = "W = W + 1",
                                                   .mode = rows[i].mode });
        mc_function *loaded = reloaded(f);
        const mc_arg in[] = { mc_arg_real(rows[i].s), mc_arg_array(x) };
        const mc_status s = same_call(f, loaded, mc_function_ninputs(f), in, rows[i].outputs);
        CHECK(s < 0, "%s is no error", rows[i].outputs);
        same_variables(f, loaded, rows[i].outputs);
        mc_function_free(loaded);
        mc_function_free(f);
    }
    mc_array_unref(&x);
    mc_graph_free(g);
    drop_folder();
}

static mc_shared *number(mc_graph *g, const char *name, mc_dtype d, double v)
{
    mc_array *a = mc_array_scalar(d, v);
    mc_shared *s = mc_shared_new(g, name, a);
    mc_array_unref(&a);
    return s;
}

static double number_of(mc_function *f, const char *name)
{
    double v = -1;
    mc_array *a = mc_shared_get(mc_function_shared_named(f, name));
    if (CHECK(a && a->rank == 0, "no number %s", name)) {
        v = mc_array_get(a, NULL);
    }
    mc_array_unref(&a);
    return v;
}

TEST(functions_of_a_bundle_share_variables)
{
    ON_ITS_DEVICE();
    mc_graph *g = mc_graph_new(), *other = mc_graph_new();
    number(g, "a", MC_FLOAT32, 3);
    number(g, "b", MC_FLOAT64, 5);
    number(other, "a", MC_FLOAT32, 8); /* the same name, another variable */
    mc_function *f[] = {
        mc_compile(g, &(mc_spec){ .outputs = "old = a", .updates = "a = a + 1" }),
        mc_compile(g, &(mc_spec){ .outputs = "a * 2 + b", .updates = "b = b + 10" }),
        mc_compile(other, &(mc_spec){ .outputs = "a", .updates = "a = a - 1" }),
        mc_compile(g, &(mc_spec){ .outputs = "a" }),
    };
    for (size_t i = 0; i < NELEM(f); i++) {
        REQUIRE(f[i], "%s", mc_last_error());
    }
    mc_function *h[NELEM(f)], *two[2] = { f[0], f[0] };
    const char *path = in_folder("several.mcf");
    CHECK(mc_bundle_save(&(mc_bundle_spec){ path, NELEM(f), f, NULL }) == MC_OK, "%s", mc_last_error());
    CHECK(mc_bundle_load(path, NELEM(f), h) == NELEM(f), "%s", mc_last_error());
    CHECK(mc_bundle_load(path, 0, NULL) == NELEM(f), "%s", mc_last_error());
    CHECK(mc_bundle_load(path, 2, two) == NELEM(f) && two[0] && two[1] && two[0] != f[0], "%s",
          mc_last_error());
    CHECK(mc_function_shared_named(h[0], "a") == mc_function_shared_named(h[1], "a") &&
              mc_function_shared_named(h[0], "a") == mc_function_shared_named(h[3], "a") &&
              mc_function_shared_named(h[0], "a") != mc_function_shared_named(h[2], "a") &&
              mc_function_shared_named(h[0], "a") != mc_function_shared_named(two[0], "a") &&
              mc_function_shared_named(h[0], "a") != mc_function_shared_named(f[0], "a"),
          "not the variables that are shared");
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < NELEM(f); k++) {
            CHECK(mc_call(h[k], MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
        }
    }
    CHECK(number_of(h[1], "a") == 6 && number_of(h[1], "b") == 35 && number_of(h[2], "a") == 5, "%g, %g, %g",
          number_of(h[1], "a"), number_of(h[1], "b"), number_of(h[2], "a"));
    CHECK(number_of(f[0], "a") == 3 && number_of(two[1], "a") == 3, "others changed");
    for (size_t i = 0; i < NELEM(f); i++) {
        mc_function_free(f[i]);
        mc_function_free(h[i]);
    }
    mc_function_free(two[0]);
    mc_function_free(two[1]);
    mc_graph_free(g);
    mc_graph_free(other);
    drop_folder();
}

TEST(names_and_defaults_after_loading)
{
    ON_ITS_DEVICE();
    mc_graph *g = given_graph();
    variable(g, "zebra", MC_FLOAT32, 0, NULL);
    variable(g, "ant", MC_FLOAT32, 0, NULL);
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .name = "a name",
                                            .inputs = "x, s = 2.5, n = 3, m",
                                            .outputs = "first = x * s + zebra, ant, last = where(m, x, n)" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 2, 3 }, -1, 1),
             *m = sample(MC_BOOL, 2, (int64_t[]){ 2, 3 }, 0, 1);
    CHECK(mc_function_set(f, "m", mc_arg_array(m)) == MC_OK, "%s", mc_last_error());
    mc_function *h = reloaded(f);
    REQUIRE(h, "not loaded");
    static const char *const inputs[] = { "x", "s", "n", "m" }, *const outputs[] = { "first", "ant", "last" };
    for (int i = -1; i < 5; i++) {
        CHECK(strcmp(mc_function_input_name(h, i), i >= 0 && i < 4 ? inputs[i] : "") == 0, "input %d", i);
        CHECK(strcmp(mc_function_output_name(h, i), i >= 0 && i < 3 ? outputs[i] : "") == 0, "output %d", i);
    }
    CHECK(mc_function_nshared(h) == 2 && strcmp(mc_shared_name(mc_function_shared(h, 0)), "ant") == 0 &&
              strcmp(mc_shared_name(mc_function_shared(h, 1)), "zebra") == 0 && !mc_function_shared(h, 2) &&
              !mc_function_shared_named(h, "x") && !mc_function_shared_named(h, NULL),
          "variables");
    const mc_arg in[] = { mc_arg_array(x), mc_arg_none(NULL), mc_arg_int(-7) };
    CHECK(same_call(f, h, 1, in, "one input") == MC_OK, "%s", mc_last_error());
    CHECK(same_call(f, h, 3, in, "three inputs") == MC_OK, "%s", mc_last_error());
    CHECK(same_call(f, h, 0, in, "no input") == MC_EARG, "%s", mc_last_error());
    CHECK(same_call(f, h, 1, in + 2, "a number") == MC_ESHAPE, "%s", mc_last_error());
    CHECK(strstr(mc_last_error(), "a name: input 0 ('x')"), "%s", mc_last_error());
    CHECK(mc_function_set(h, "s", mc_arg_real(9)) == MC_OK, "%s", mc_last_error()); /* of h alone */
    mc_array *a = NULL, *b = NULL;
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&a)) == MC_OK && mc_call(h, MC_IN(x), MC_OUT(&b)) == MC_OK, "%s",
          mc_last_error());
    CHECK(a && b && !mc_array_same_bits(a, b), "the default is shared");
    mc_array_unref(&a), mc_array_unref(&b), mc_array_unref(&x), mc_array_unref(&m);
    mc_function_free(f);
    mc_function_free(h);
    mc_graph_free(g);
    drop_folder();
}

/* A number of threads that the spec gives, more than there are or fewer; else what there are when loading. */
TEST(threads_of_a_loaded_function)
{
    ON_ITS_DEVICE();
    static const struct { int given; const char *saving, *loading; int threads; } rows[] = {
        { 1, "3", "2", 1 }, { 7, "3", "2", 7 }, { 0, "3", "2", 2 }, { 0, "2", "5", 5 },
    };
    mc_graph *g = given_graph();
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_flag_set("threads", rows[i].saving);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = "x * 2", .threads = rows[i].given });
        CHECK(mc_function_save(f, in_folder("threads.mcf")) == MC_OK, "%s", mc_last_error());
        mc_flag_set("threads", rows[i].loading);
        mc_function *h = mc_function_load(in_folder("threads.mcf"));
        CHECK(h && h->threads == rows[i].threads, "row %zu: %d threads", i, h ? h->threads : -1);
        mc_function_free(f), mc_function_free(h);
    }
    mc_graph_free(g);
    drop_folder();
}

TEST(borrowed_outputs_after_loading)
{
    ON_ITS_DEVICE();
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "borrow(exp(x)), x * 2" });
    REQUIRE(f, "%s", mc_error(g));
    if (f->code->device->space) { /* results are copied from its memory */
        mc_function_free(f);
        mc_graph_free(g);
        SKIP("the host cannot read the device's memory");
    }
    mc_function *h = reloaded(f);
    REQUIRE(h, "not loaded");
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 40, 30 }, -1, 1), *y = NULL, *z = NULL, *own = NULL;
    CHECK(mc_call(h, MC_IN(x), MC_OUT(&y, &own)) == MC_OK, "%s", mc_last_error());
    const char *first = y ? y->data : NULL, *other = own ? own->data : NULL;
    mc_array_unref(&y);
    CHECK(mc_call(h, MC_IN(x), MC_OUT(&z, NULL)) == MC_OK && z && z->data == first, "not borrowed");
    CHECK(own && own->data == other, "borrowed");
    mc_array_unref(&z), mc_array_unref(&own), mc_array_unref(&x);
    mc_function_free(f);
    mc_function_free(h);
    mc_graph_free(g);
    drop_folder();
}

TEST(copies_of_a_loaded_function)
{
    ON_ITS_DEVICE();
    mc_graph *g = given_graph();
    variable(g, "W", MC_FLOAT32, 1, (int64_t[]){ 4 });
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .inputs = "s = 2", .outputs = "W * s", .updates = "W = W + s" });
    mc_function *quiet = f ? mc_function_copy(f, false) : NULL;
    mc_function *h = reloaded(f), *silent = reloaded(quiet);
    REQUIRE(h && silent, "not loaded");
    mc_function *same = mc_function_copy(h, true), *still = mc_function_copy(h, false);
    mc_shared *w = mc_function_shared_named(h, "W");
    CHECK(mc_function_shared_named(same, "W") == w && mc_function_shared_named(still, "W") == w,
          "other variables");
    mc_function *const all[] = { h, same, still };
    for (size_t i = 0; i < NELEM(all); i++) {
        CHECK(same_call(f, all[i], 0, NULL, "a copy") == MC_OK, "%s", mc_last_error());
        if (i == 2) { /* f has made the update */
            CHECK(mc_call(h, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
        }
        same_variables(f, all[i], "a copy");
    }
    mc_array *before = mc_shared_get(mc_function_shared_named(silent, "W")), *after;
    CHECK(mc_call(silent, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    after = mc_shared_get(mc_function_shared_named(silent, "W"));
    CHECK(before && after && mc_array_same_bits(before, after),
          "a copy without updates updates after loading");
    mc_array_unref(&before), mc_array_unref(&after);
    mc_function_free(h); /* the copies live on */
    CHECK(mc_call(same, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    mc_function_free(same), mc_function_free(still), mc_function_free(silent);
    mc_function_free(f), mc_function_free(quiet);
    mc_graph_free(g);
    drop_folder();
}

/* ---- steps ---- */

static const char model[] =
    "input 2x9x9\nconv1 = conv 6 3x3 tanh\npool 2x2\nconv2 = conv 5 2x2 rectify pad=1\nbatch_norm\n"
    "branch = conv 4 1x1 linear\nglobal_pool\ndense 7 tanh from=branch\ndropout 0.5\n"
    "concat dropout1 global_pool1\n"
    "dense 3 softmax\nrule adam rate=0.01\n";

static void same_steps(mc_function *f, mc_function *h)
{
    CHECK(mc_function_nsteps(f) == mc_function_nsteps(h), "other steps");
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const mc_step_info a = mc_function_step(f, i), b = mc_function_step(h, i);
        CHECK(strcmp(a.kind, b.kind) == 0 && strcmp(a.name, b.name) == 0 && strcmp(a.text, b.text) == 0 &&
                  strcmp(a.device, b.device) == 0 && strcmp(a.solver, b.solver) == 0 &&
                  strcmp(a.reason, b.reason) == 0 && a.calls == b.calls && a.flops == b.flops &&
                  a.bytes == b.bytes,
              "step %d is %s '%s' %s by %s (%s), then %s '%s' %s by %s (%s)", i, a.kind, a.name, a.text,
              a.solver, a.reason, b.kind, b.name, b.text, b.solver, b.reason);
    }
}

TEST(a_net_after_loading)
{
    ON_ITS_DEVICE();
    mc_flag_set("floatX", "float32");
    mc_flag_set("profile", "True");
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    REQUIRE(mc_net_read(net, "net", model) == MC_OK, "%s", mc_error(g));
    mc_function *f[] = { mc_net_trainer(net), mc_net_predictor(net), mc_net_learner(net) }, *h[NELEM(f)];
    REQUIRE(f[0] && f[1] && f[2], "%s", mc_error(g));
    const char *path = in_folder("net.mcf");
    REQUIRE(mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 3, .function = f }) == MC_OK, "%s",
            mc_last_error());
    REQUIRE(mc_bundle_load(path, 3, h) == 3, "%s", mc_last_error());
    for (int round = 0; round < 4; round++) {
        const int64_t n = round + 1;
        mc_array *x = sample(MC_FLOAT32, 4, (int64_t[]){ n, 2, 9, 9 }, -1, 1),
                 *t = sample(MC_INT32, 1, &n, 0, 2);
        const mc_arg in[] = { mc_arg_array(x), mc_arg_array(t) };
        for (int k = 0; k < 3; k++) {
            CHECK(same_call(f[k], h[k], k == 1 ? 1 : 2, in, "a net") == MC_OK, "%s", mc_last_error());
        }
        same_variables(f[0], h[0], "a net");
        mc_array_unref(&x), mc_array_unref(&t);
    }
    for (int k = 0; k < 3; k++) {
        same_steps(f[k], h[k]);
        CHECK(mc_function_memory(f[k]) == mc_function_memory(h[k]) &&
                  strcmp(mc_function_graph_text(f[k]), mc_function_graph_text(h[k])) == 0,
              "function %d", k);
        mc_function_free(f[k]);
        mc_function_free(h[k]);
    }
    mc_net_free(net);
    mc_graph_free(g);
    drop_folder();
}

/* The text of a file that is written for f. */
static char *text_for(mc_function *f, mc_status (*write)(mc_function *f, const char *path), const char *name)
{
    char *text = NULL;
    size_t n;
    CHECK(write(f, in_folder(name)) == MC_OK, "%s", mc_last_error());
    CHECK(mc_file_read(in_folder(name), &text, &n) == MC_OK && n > 100, "%s", mc_last_error());
    return text;
}

static mc_status exported(mc_function *f, const char *path)
{
    return mc_export_c(path, 1, &(mc_export_function){ f, "run", "x[3, 4], img[2, 3, 9, 9], w[4, 3, 3, 3]" });
}

static mc_status reported(mc_function *f, const char *path)
{
    FILE *to = fopen(path, "w");
    const mc_status s = to ? mc_function_report(f, to) : MC_EFILE;
    return to && fclose(to) == 0 ? s : MC_EFILE;
}

static mc_status profiled(mc_function *f, const char *path)
{
    FILE *to = fopen(path, "w");
    const mc_status s = to ? mc_function_profile(f, to) : MC_EFILE;
    return to && fclose(to) == 0 ? s : MC_EFILE;
}

/* A loaded function is exported as C as the first one is; its report and its profile have the same steps. */
TEST(what_is_written_of_a_loaded_function)
{
    NEEDS_COMPILER();
    mc_flag_set("portable", "True");
    mc_graph *g = given_graph();
    number(g, "W", MC_FLOAT32, 2);
    mc_function *f = mc_compile(
        g,
        &(mc_spec){ .name = "f",
                    .inputs = "x, img, w",
                    .profile = 1,
                    .outputs = "y = softmax(dot(x, x.T)) + W, conv(img, w), z = sort(x), pool(img, [2, 2])",
                    .updates = "W = W * 0.5" });
    mc_function *h = reloaded(f);
    REQUIRE(h, "not loaded");
    char *a = text_for(f, exported, "one.c"), *b = text_for(h, exported, "one.c");
    CHECK(a && b && strcmp(a, b) == 0, "another C file:\n%s", b);
    mc_free(a), mc_free(b);
    h->profile = true;
    same_rounds(f, h, "x, img, w", "profiled");
    a = text_for(h, profiled, "profile.txt"), b = text_for(h, reported, "report.html");
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        const mc_step_info s = mc_function_step(f, i);
        CHECK(!s.calls || *s.kind == 's' || *s.kind == 'v' || (strstr(a, s.name) && strstr(b, s.name)),
              "no step '%s' in the profile, or in the report", s.name);
    }
    mc_free(a), mc_free(b);
    mc_function_free(f), mc_function_free(h);
    mc_graph_free(g);
    drop_folder();
}

/* A message names the line of the user's formula, as before. */
TEST(lines_of_formulas_after_loading)
{
    ON_ITS_DEVICE();
    mc_graph *g = given_graph();
    mc_input(g, "other", MC_FLOAT32, 2);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, other", .outputs = "dot(x, other)" });
    const int line = __LINE__ - 1;
    CHECK(mc_function_save(f, in_folder("lines.mcf")) == MC_OK, "%s", mc_last_error());
    mc_function *last = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1" });
    mc_function *h = mc_function_load(in_folder("lines.mcf"));
    REQUIRE(h && last, "%s", mc_last_error());
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 2, 3 }, -1, 1);
    char where[64];
    snprintf(where, sizeof where, "t_bundle.c:%d", line);
    CHECK(mc_call(f, MC_IN(x, x), MC_NONE) < 0 && strstr(mc_last_error(), where), "%s", mc_last_error());
    same_call(f, h, 2, (mc_arg[]){ mc_arg_array(x), mc_arg_array(x) }, "a wrong size");
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(h), mc_function_free(last);
    mc_graph_free(g);
    drop_folder();
}

/* Flags at the time of loading: one that types depended on, one that says what is written of calls. */
TEST(flags_when_loading)
{
    ON_ITS_DEVICE();
    mc_flag_set("floatX", "float32");
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "i, u",
                       .outputs = "i / 2, mean(u), u / 3.5, zeros([2]), to_one_hot(i, 5), sqrt(i)" });
    CHECK(f && mc_function_save(f, in_folder("flags.mcf")) == MC_OK, "%s", mc_last_error());
    mc_flag_set("floatX", "float64");
    CHECK(mc_flag_set("trace", in_folder("trace.json")) == MC_OK, "%s", mc_last_error());
    mc_function *h = mc_function_load(in_folder("flags.mcf"));
    CHECK(h, "%s", mc_last_error());
    same_rounds(f, h, "i, u", "floatX");
    char *text = NULL;
    size_t n;
    CHECK(mc_file_read(in_folder("trace.json"), &text, &n) == MC_OK && strstr(text, "\"call\":3"),
          "no calls in the trace: %s", text ? text : mc_last_error());
    mc_free(text);
    mc_flag_set("trace", "/nonexistent/trace");
    mc_function *none = mc_function_load(in_folder("flags.mcf"));
    CHECK(!none && mc_last_status() == MC_EFILE && strstr(mc_last_error(), "trace: cannot write"), "%s",
          mc_last_error());
    mc_function_free(none), mc_function_free(h), mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- threads ---- */

struct caller {
    mc_function *f;
    mc_array *x[3];
    _Atomic bool *stop;
    const char *path;
    char wrong[200];
};

static void *call_often(void *arg)
{
    struct caller *c = arg;
    for (int i = 0; !atomic_load(c->stop); i++) {
        if (mc_call(c->f, MC_IN(c->x[i % 3]), MC_NONE) < 0) {
            snprintf(c->wrong, sizeof c->wrong, "%s", mc_last_error());
            return NULL;
        }
    }
    return NULL;
}

/* Two variables that every call raises by one: a file has both of them before a call, or after it. */
TEST(saving_while_other_threads_call)
{
    ON_ITS_DEVICE();
    enum { CALLERS = 3, SAVES = 30, SIZE = 5000 };
    mc_graph *g = given_graph();
    mc_array *zeros = mc_array_new(MC_FLOAT32, MC_SHAPE(SIZE));
    mc_shared_new(g, "a", zeros);
    mc_shared_new(g, "z", zeros);
    mc_array_unref(&zeros);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x",
                                               .outputs = "softmax(dot(x, x.T))",
                                               .updates = "a = a + 1; z = z + 1",
                                               .threads = 1 });
    REQUIRE(f, "%s", mc_error(g));
    _Atomic bool stop = false;
    struct caller c[CALLERS] = { { 0 } };
    pthread_t thread[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        c[i] = (struct caller){ .f = i ? mc_function_copy(f, true) : f, .stop = &stop };
        for (int k = 0; k < 3; k++) { /* shapes in turn, so that plans come */
            c[i].x[k] = sample(MC_FLOAT32, 2, (int64_t[]){ 3 + 4 * i + k, 4 }, -1, 1);
        }
        REQUIRE(pthread_create(&thread[i], NULL, call_often, &c[i]) == 0, "no thread");
    }
    for (int i = 0; i < SAVES; i++) {
        mc_function *h = reloaded(f);
        mc_array *a = h ? mc_shared_get(mc_function_shared_named(h, "a")) : NULL;
        mc_array *z = h ? mc_shared_get(mc_function_shared_named(h, "z")) : NULL;
        CHECK(a && z && mc_array_same_bits(a, z), "the file has one variable before a call, one after it");
        for (int64_t k = 1; a && k < SIZE; k++) {
            if (mc_array_get(a, &k) != mc_array_get(a, (int64_t[]){ 0 })) {
                CHECK(false, "the file has a part of a variable before a call, a part after it");
                break;
            }
        }
        mc_array_unref(&a), mc_array_unref(&z);
        mc_function_free(h);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        CHECK(!*c[i].wrong, "%s", c[i].wrong);
        for (int k = 0; k < 3; k++) {
            mc_array_unref(&c[i].x[k]);
        }
        if (i) {
            mc_function_free(c[i].f);
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

static void *load_and_call(void *arg)
{
    struct caller *c = arg;
    for (int i = 0; i < 10 && !*c->wrong; i++) {
        mc_function *f = mc_function_load(c->path);
        mc_array *y = NULL;
        if (!f || mc_call(f, MC_IN(c->x[0]), MC_OUT(&y)) < 0 || !mc_array_same_bits(y, c->x[1])) {
            snprintf(c->wrong, sizeof c->wrong, "%s", mc_last_error());
        }
        mc_array_unref(&y);
        mc_function_free(f);
    }
    return NULL;
}

TEST(threads_load_the_same_file)
{
    ON_ITS_DEVICE();
    enum { LOADERS = 4 };
    mc_graph *g = given_graph();
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(x) + sum(x)" });
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 9, 5 }, -1, 1), *y = NULL;
    REQUIRE(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    const char *path = in_folder("shared.mcf");
    REQUIRE(mc_function_save(f, path) == MC_OK, "%s", mc_last_error());
    mc_function_free(f);
    struct caller c[LOADERS] = { { 0 } };
    pthread_t thread[LOADERS];
    for (int i = 0; i < LOADERS; i++) {
        c[i] = (struct caller){ .x = { x, y }, .path = path };
        REQUIRE(pthread_create(&thread[i], NULL, load_and_call, &c[i]) == 0, "no thread");
    }
    for (int i = 0; i < LOADERS; i++) {
        pthread_join(thread[i], NULL);
        CHECK(!*c[i].wrong, "%s", c[i].wrong);
    }
    mc_array_unref(&x), mc_array_unref(&y);
    mc_graph_free(g);
    drop_folder();
}
