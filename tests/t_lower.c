/* t_lower.c: programs whose steps are hard to put in order, against values from PyTorch in float64. */
#include "function_words.h"

#include <math.h>

enum { MOST = 16, MOST_OUTPUTS = 2 };
struct program {
    const char *formulas, *outputs;
    double want[MOST_OUTPUTS][MOST]; /* of each output; NAN ends a row before MOST */
};

/* x: (i * 7 % 16 - 8) / 4, v: (i * 5 % 16 - 7) / 8, both of shape (1, 1, 4, 4) */
static const struct program pools[] = {
    { "r = Rop(sqr(pool(x, [2, 2])), x, v)", "r", { { -0.75, 1.125, 2.625, 0, NAN } } },
    { "g = grad(sum(exp(pool(x, [3, 3], [1, 1]))), x); h = grad(sum(g * v), x)", "g, h",
      { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 23.0184107040229 }, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 17.2638080280172 } } },
    { "g = grad(sum(exp(pool(x, [3, 3], [1, 1]))), x); h = Rop(g, x, v)", "h", { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 17.2638080280172 } } },
    { "p = pool(x * 2 + 1, [2, 2])", "p, grad(sum(p), x)", { { 3, 4, 4.5, 3.5, NAN }, { 0, 0, 2, 0, 2, 0, 0, 0, 0, 2, 0, 2 } } },
    { "p = pool(batch_normalization_train(x, gamma, beta, axes='spatial')[0], [2, 2])", "p, grad(sum(p), x)",
      { { 1.56422546753121, 2.21499234198952, 2.54037577921868, 1.88960890476036, NAN },
        { 0.363611964308236, -0.279450410459998, 0.379020963688397, -0.0957183033833593, 0.562753070765035, 0.088013803693279, -0.555048571074955,
          0.271745910769917, -0.371316463998317, 0.287154910150078, -0.187584356921678, 0.470887017226716, -0.00385224984504012,
          -0.646914624613274, 0.179879857231598, -0.463182517536636 } } },
    { "a = pool(x, [2, 2], [1, 1]); y = exp(pool(sin(a), [2, 2], [1, 1])) + cos(pool(tanh(a), [2, 2], [1, 1])); r = Rop(y, x, v)", "r",
      { { 0.00292437304985552, 0.00292437304985552, -0.426620820087783, -0.426620820087783, NAN } } },
};

/* x of shape (3, 4): (i * 7 % 16 - 8) / 8.  Two kernels of which each could take in what reads the other:
 * then both waited. */
static const struct program cycles[] = {
    { "e = exp(x); s = sort(e, axis=0); b = tanh(x * 2); n = e * sort(b, axis=1); m = b * s", "n, m",
      { { -0.354645927432149, -0.560516983161632, -0.518492812377406, 0.622098690446488, -1.55206587403727, -0.454053512912947, 0.593370175409339,
          0.317479678027069, -0.46211715726001, 0, 0.660643963065573, 1.75872104422314, NAN },
        { -0.354645927432149, -0.13109551310917, 0.704930168734337, -0.264769475088853, 0.761594155955765, -0.748607684775691, 0.593370175409339,
          -0.646997314925264, 0, 2.25824252164612, -0.978302029596443, 1.58480248110651, NAN } } },
    { "e = exp(x); s = sort(e, axis=0); b = tanh(x * 2); t = sort(b, axis=1); m = b * s; n = e * t", "m, n",
      { { -0.354645927432149, -0.13109551310917, 0.704930168734337, -0.264769475088853, 0.761594155955765, -0.748607684775691, 0.593370175409339,
          -0.646997314925264, 0, 2.25824252164612, -0.978302029596443, 1.58480248110651, NAN },
        { -0.354645927432149, -0.560516983161632, -0.518492812377406, 0.622098690446488, -1.55206587403727, -0.454053512912947, 0.593370175409339,
          0.317479678027069, -0.46211715726001, 0, 0.660643963065573, 1.75872104422314, NAN } } },
};

static mc_array *numbers(mc_dtype d, int rank, const int64_t *dims, int times, int less, double over)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0, n = a ? mc_array_size(a) : 0; i < n; i++) {
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size, (double)((int)i * times % 16 - less) / over);
    }
    return a;
}

static void has(const mc_array *y, const double *want, double tol, const char *what)
{
    for (int i = 0; i < MOST && !isnan(want[i]); i++) {
        if (!CHECK(i < mc_array_size(y) && fabs(at(y, i) - want[i]) <= tol * (1 + fabs(want[i])),
                   "%s: element %d is %.9g, not %.9g", what, i, i < mc_array_size(y) ? at(y, i) : NAN,
                   want[i])) {
            return;
        }
    }
}

/* What else a pooling makes is there only when the map behind it has run, which may not wait for it. */
TEST(derivatives_of_poolings_that_maps_finish)
{
    for (size_t c = 0; c < NELEM(pools) * 2; c++) {
        const struct program *p = &pools[c / 2];
        mc_dtype d = c % 2 ? MC_FLOAT64 : MC_FLOAT32;
        mc_graph *g = mc_graph_new();
        mc_node *in[] = { mc_input(g, "x", d, 4), mc_input(g, "v", d, 4), mc_input(g, "gamma", d, 1),
                          mc_input(g, "beta", d, 1) };
        CHECK(!mc_is_error(mc_formula(g, p->formulas)), "%s", mc_error(g));
        mc_function *f = made(
            g, mc_compile(
                   g, &(mc_spec){ .input = in, .ninput = 4, .outputs = p->outputs, .on_unused = "ignore" }));
        mc_array *x = numbers(d, MC_SHAPE(1, 1, 4, 4), 7, 8, 4),
                 *v = numbers(d, MC_SHAPE(1, 1, 4, 4), 5, 7, 8);
        mc_array *gamma = mc_array_new(d, MC_SHAPE(1)), *beta = mc_array_new(d, MC_SHAPE(1)),
                 *y[2] = { NULL, NULL };
        mc_array_set(gamma, NULL, 1.5);
        mc_array_set(beta, NULL, 0.1);
        mc_arg arg[] = { mc_arg_array(x), mc_arg_array(v), mc_arg_array(gamma), mc_arg_array(beta) };
        mc_arg out[] = { mc_arg_slot(&y[0]), mc_arg_slot(&y[1]) };
        int nout = f ? mc_function_noutputs(f) : 0;
        if (f && fine(mc_call_args(f, 4, arg, nout, out))) {
            for (int i = 0; i < nout; i++) {
                has(y[i], p->want[i], d == MC_FLOAT64 ? 1e-12 : 1e-5, p->formulas);
            }
        }
        mc_array *all[] = { x, v, gamma, beta, y[0], y[1] };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Sizes of what a kernel makes while it finishes heavy work: asked for behind it, and by what it waits for
 * itself.  The rules would take the sizes from the operands, so they are off. */
TEST(sizes_of_what_maps_finish)
{
    static const struct { const char *formulas, *outputs; double want[2][4]; } rows[] = {
        { "h = dot(x, w); a = tanh(h) * zeros_like(cast(h, float64))", "a", { { 0, 0, 0, 0 } } },
        { "h = dot(x, w); a = exp(h * 0) * (zeros_like(sort(cast(h, float64), axis=0)) + 3)", "a", { { 3, 3, 3, 3 } } },
        { "h = dot(x, w); a = exp(h * 0) * b; g = grad(sum(cast(h, float64)), w)", "a, g", { { 5, 7, 5, 7 }, { 4, 4, 6, 6 } } },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *in[] = { mc_input(g, "x", MC_FLOAT32, 2), mc_input_sized(g, "w", MC_FLOAT32, MC_SHAPE(2, 2)),
                          mc_input_sized(g, "b", MC_FLOAT32, MC_SHAPE(2)) };
        CHECK(!mc_is_error(mc_formula(g, rows[i].formulas)), "%s", mc_error(g));
        mc_function *f = made(
            g, mc_compile(g, &(mc_spec){ .input = in,
                                         .ninput = 3,
                                         .outputs = rows[i].outputs,
                                         .on_unused = "ignore",
                                         .excluding = "canonicalize:recognise:stabilize:specialize" }));
        mc_array *x = numbers(MC_FLOAT32, MC_SHAPE(2, 2), 1, -1, 1),
                 *w = numbers(MC_FLOAT32, MC_SHAPE(2, 2), 3, 4, 8);
        mc_array *b = numbers(MC_FLOAT32, MC_SHAPE(2), 2, -5, 1), *y[2] = { NULL, NULL };
        if (f && fine(mc_call_args(f, 3, (mc_arg[]){ mc_arg_array(x), mc_arg_array(w), mc_arg_array(b) },
                                   mc_function_noutputs(f),
                                   (mc_arg[]){ mc_arg_slot(&y[0]), mc_arg_slot(&y[1]) }))) {
            for (int k = 0; k < mc_function_noutputs(f); k++) {
                for (int j = 0; j < 4; j++) {
                    CHECK(mc_array_size(y[k]) == 4 && at(y[k], j) == rows[i].want[k][j],
                          "%s: output %d, element %d is %g", rows[i].formulas, k, j, at(y[k], j));
                }
            }
        }
        mc_array *all[] = { x, w, b, y[0], y[1] };
        for (size_t k = 0; k < NELEM(all); k++) {
            mc_array_unref(&all[k]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(fusion_can_be_excluded)
{
    mc_array *x = numbers(MC_FLOAT32, 1, (const int64_t[]){ 6 }, 1, 0, 1);
    for (int i = 0; i < 2; i++) {
        mc_array *y = NULL;
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x",
                                                   .outputs = "exp(x) * x - 1",
                                                   .mode = "FAST_RUN",
                                                   .excluding = i ? "fusion" : "" });
        CHECK(f && mc_function_nsteps(f) == (i ? 3 : 1), "%s: %d steps", i ? "without fusion" : "fused",
              f ? mc_function_nsteps(f) : -1);
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK && fabs(at(y, 2) - 13.7781122) < 1e-5, "%s",
              mc_last_error());
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}

TEST(kernels_do_not_wait_for_each_other)
{
    for (size_t c = 0; c < NELEM(cycles); c++) {
        const struct program *p = &cycles[c];
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT64, 2);
        CHECK(!mc_is_error(mc_formula(g, p->formulas)), "%s", mc_error(g));
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = p->outputs }));
        mc_array *x = numbers(MC_FLOAT64, MC_SHAPE(3, 4), 7, 8, 8), *y[MOST_OUTPUTS] = { NULL };
        if (f && fine(mc_call(f, MC_IN(x), MC_OUT(&y[0], &y[1])))) {
            has(y[0], p->want[0], 1e-13, p->formulas);
            has(y[1], p->want[1], 1e-13, p->formulas);
        }
        mc_array_unref(&x);
        mc_array_unref(&y[0]);
        mc_array_unref(&y[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Maps that read the same arrays are one kernel; those that would read more, or that depend on each other
 * by way of another step, are not. */
TEST(maps_of_the_same_arrays_are_one_kernel)
{
    static const struct { const char *inputs, *outputs; int steps; } rows[] = {
        { "input x float32[?, ?]; input y float32[?, ?]", "x + y, x - y", 1 },
        { "input x float32[?, ?]; input y float32[?, ?]", "x * y, tanh(x), exp(y)", 1 },
        { "input x float32[?, ?]; input y float32[?, ?]", "exp(x), exp(y)", 2 },
        { "input x float32[?, ?]; input y float32[?, ?]", "x * y, x + y[:, ::-1]", 3 },
        { "input x float32[?, ?]; input y float32[?, ?]", "exp(x), x * sort(exp(x) * y, axis=1)", 3 },
        { "input x float32[?, ?]; input y float32[?]",    "x + y, x * 2", 2 }, /* with a view */
        { "input x float32[?]; input y float64[?]",       "x * 2, cast(x, float64) + y", 2 },
        { "input x float32[]; input y float32[]",         "x + y, x * 2, y * 3", 1 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        CHECK(!mc_is_error(mc_formula(g, rows[i].inputs)), "%s", mc_error(g));
        mc_function *f = made(
            g,
            mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = rows[i].outputs, .on_unused = "ignore" }));
        CHECK(f && mc_function_nsteps(f) == rows[i].steps, "%s: %d steps, not %d", rows[i].outputs,
              f ? mc_function_nsteps(f) : -1, rows[i].steps);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* 2 ** k in x and 3 in y: every result is exact. */
TEST(results_of_one_kernel_go_where_they_belong)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "y", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = "x + y, x - y" }));
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 7)), *y = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 7)),
             *sum = NULL, *difference = NULL;
    for (int i = 0; i < 35; i++) {
        ((float *)x->data)[i] = ldexpf(1, i % 16);
        ((float *)y->data)[i] = 3;
    }
    if (f && fine(mc_call(f, MC_IN(x, y), MC_OUT(&sum, &difference)))) {
        for (int i = 0; i < 35; i++) {
            CHECK(at(sum, i) == ldexp(1, i % 16) + 3 && at(difference, i) == ldexp(1, i % 16) - 3,
                  "element %d: %g, %g", i, at(sum, i), at(difference, i));
        }
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_array_unref(&sum);
    mc_array_unref(&difference);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Element (i, j, k, l) of the copy, of (b, a, c, d) as it lies there. */
TEST(reshaped_views_are_copied_in_order)
{
    static const int64_t sizes[][4] = { { 4, 256, 4, 64 }, { 1, 3, 500, 7 }, { 5, 1, 2, 3 },
                                        { 3, 2, 1, 700 },  { 0, 3, 2, 2 },   { 2, 1, 1, 1 } };
    for (size_t c = 0; c < NELEM(sizes); c++) {
        for (int threads = 1; threads < 8; threads += 2) {
            mc_graph *g = mc_graph_new();
            const int64_t *d = sizes[c];
            int64_t wrong = 0;
            mc_input(g, "x", MC_INT32, 4);
            mc_function *f = made(
                g, mc_compile(g, &(mc_spec){ .inputs = "x",
                                             .outputs = "reshape(transpose(x, [0, 2, 1, 3]), [-1])",
                                             .threads = threads }));
            mc_array *x = mc_array_new(MC_INT32, 4, d), *y = NULL;
            int32_t *from = mc_array_data(x);
            for (int32_t i = 0; i < mc_array_size(x); i++) {
                from[i] = i;
            }
            REQUIRE(f, "no function");
            fine(mc_call(f, MC_IN(x), MC_OUT(&y)));
            for (int64_t i = 0; y && i < mc_array_size(y); i++) {
                const int64_t l = i % d[3], j = i / d[3] % d[1], k = i / d[3] / d[1] % d[2],
                              b = i / d[3] / d[1] / d[2];
                wrong += at(y, i) != (double)(((b * d[1] + j) * d[2] + k) * d[3] + l);
            }
            CHECK(y && mc_array_size(y) == mc_array_size(x) && !wrong, "case %zu, %d threads: %lld wrong", c,
                  threads, (long long)wrong);
            mc_array_unref(&x);
            mc_array_unref(&y);
            mc_function_free(f);
            mc_graph_free(g);
        }
    }
}

/* Large arrays are updated behind the product that their gradient is, small ones by it. */
TEST(updates_of_large_arrays_are_kernels)
{
    static const struct {
        int64_t n;
        bool kernel;
    } rows[] = { { 64, false }, { 1000, false }, { 1100, true } };
    mc_flag_set("device", "cpu"); /* a GPU makes all updates at the end */
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        const int64_t n = rows[i].n;
        int kernels = 0;
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_shared *w = mc_shared_zeros(g, "w", MC_FLOAT32, MC_SHAPE(n, n));
        mc_function *f = made(
            g, mc_compile(g, &(mc_spec){ .inputs = "x", .updates = "w = w - 2 * dot(x.T, x)" }));
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(3, n));
        REQUIRE(f, "no function");
        for (int k = 0; k < mc_function_nsteps(f); k++) {
            kernels += strcmp(mc_function_step(f, k).kind, "kernel") == 0;
        }
        CHECK(kernels == rows[i].kernel, "%lld: %d kernels", (long long)n, kernels);
        for (int64_t k = 0; k < 3 * n; k++) {
            ((float *)mc_array_data(x))[k] = (float)(k % 5);
        }
        fine(mc_call(f, MC_IN(x), 0, NULL));
        const double a = (double)(1 % 5), b = (double)((n + 1) % 5), c = (double)((2 * n + 1) % 5);
        CHECK(shared_at(w, n + 1) == -2 * (a * a + b * b + c * c), "%g", shared_at(w, n + 1));
        mc_array_unref(&x);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
