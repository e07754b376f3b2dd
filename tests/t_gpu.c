/* t_gpu.c: functions on a GPU: what comes home and what stays, captured calls, several GPUs, what only the
 * host can do in between.  Without a GPU these are skipped; what the kernels' text is, t_grid.c tests
 * anywhere. */
#include "gpu_words.h"

#include <math.h>
#include <pthread.h>

TEST(gpu_results_stay_or_come_home)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(
        g,
        &(mc_spec){ .inputs = "x",
                    .outputs = "x + 1, gpu_from_host(x * 2), borrow(gpu_from_host(x * 3)), borrow(x * 4)" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *x = counting(1000), *y[4] = { 0 };
    for (int round = 0; round < 4; round++) { /* the third is replayed */
        mc_status s = mc_call(f, MC_IN(x), MC_OUT(&y[0], &y[1], &y[2], &y[3]));
        REQUIRE(s == MC_OK, "round %d: %s", round, mc_last_error());
        CHECK(strcmp(mc_array_device(y[0]), "cpu") == 0 && strcmp(mc_array_device(y[1]), "cuda0") == 0,
              "they lie on %s and %s", mc_array_device(y[0]), mc_array_device(y[1]));
        CHECK(strcmp(mc_array_device(y[2]), "cuda0") == 0 && strcmp(mc_array_device(y[3]), "cpu") == 0,
              "the borrowed ones lie on %s and %s", mc_array_device(y[2]), mc_array_device(y[3]));
        for (int i = 0; i < 4; i++) {
            CHECK(at(y[i], 999) == (i == 0 ? 1000 : 999 * (i + 1)), "round %d: result %d ends with %g", round,
                  i, at(y[i], 999));
        }
    }
    CHECK(strcmp(mc_function_step(f, 0).device, "cuda0") == 0, "the first step ran on %s",
          mc_function_step(f, 0).device);
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&y[i]);
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(gpu_inputs_may_lie_there)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sum(x * x), x[::2]" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *x = counting(101), *far = mc_array_to(x, "cuda0"), *half = NULL;
    REQUIRE(far, "%s", mc_last_error());
    for (int round = 0; round < 4; round++) {
        double sum = 0;
        mc_status s = mc_call(f, MC_IN(round % 2 ? far : x), MC_OUT(&sum, &half));
        CHECK(s == MC_OK && sum == 338350, "round %d: %g, %s", round, sum, mc_last_error());
        CHECK(half && mc_array_size(half) == 51 && at(half, 50) == 100, "round %d: every second element",
              round);
    }
    mc_array_unref(&half);
    mc_array_unref(&far);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A function on each GPU; what one has made and left there goes to the next. */
TEST(gpu_several_gpus_pass_it_on)
{
    ON_GPU();
    if (mc_cuda_count() < 2) {
        SKIP("one GPU");
    }
    mc_graph *g = mc_graph_new();
    mc_array *x = counting(5000), *y = NULL;
    mc_input(g, "x", MC_FLOAT32, 1);
    for (int i = 0; i < 2 * mc_cuda_count(); i++) {
        char device[16], lies[16];
        snprintf(device, sizeof device, "cuda%d", i % mc_cuda_count());
        REQUIRE(mc_flag_set("device", device) == MC_OK, "%s", mc_last_error());
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = "gpu_from_host(2 * x + sum(x) * 0)" });
        REQUIRE(f, "%s", mc_error(g));
        for (int turn = 0; turn < 3; turn++) {
            mc_array_unref(&y);
            CHECK(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", device, mc_last_error());
        }
        snprintf(lies, sizeof lies, "%s", y ? mc_array_device(y) : "");
        CHECK(strcmp(lies, device) == 0, "made on %s, lies on %s", device, lies);
        mc_array_unref(&x);
        x = y;
        y = NULL;
        mc_function_free(f);
    }
    mc_array *home = mc_array_to(x, "cpu");
    CHECK(home && at(home, 4999) == 4999. * (double)(1 << 2 * mc_cuda_count()), "%g",
          home ? at(home, 4999) : 0);
    mc_array_unref(&home);
    mc_array_unref(&x);
    mc_graph_free(g);
}

/* A NaN among a row's elements is its greatest, also where the row is walked in parts and written element by
 * element. */
TEST(gpu_maxima_of_nan)
{
    ON_GPU();
    const int64_t dims[2] = { 3, 20001 };
    mc_graph *g = mc_graph_new();
    mc_array *x = mc_array_new(MC_FLOAT32, 2, dims), *y = NULL;
    ((float *)x->data)[dims[1] + 7] = NAN;
    mc_formula(g, "input x float32[?, ?]");
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .inputs = "x", .outputs = "x - max(x, axis=1, keepdims=True)" });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    for (int64_t i = 0; i < 3 && y; i++) {
        const float first = ((const float *)y->data)[i * dims[1]],
                    last = ((const float *)y->data)[(i + 1) * dims[1] - 1];
        CHECK(isnan(first) == (i == 1) && isnan(last) == (i == 1), "row %d: %g ... %g", (int)i, (double)first,
              (double)last);
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Rows whose bytes are whole words and others, as they lie and turned, of places that repeat and count from
 * the end. */
TEST(gpu_rows_are_taken)
{
    ON_GPU();
    static const char *const takes[] = { "x[i]",
                                         "x[i][:, 1]",
                                         "x[:, :, i]",
                                         "x[:, i]",
                                         "x[i].T",
                                         "dimshuffle(x, [1, 0, 2])[i]",
                                         "cast(x, dtype=float16)[i]",
                                         "x[i, i]",
                                         "x[:, :, :3][i]" };
    const int64_t n = 5;
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(6, 5, 8)), *i = mc_array_new(MC_INT32, 1, &n);
    for (int k = 0; k < 6 * 5 * 8; k++) {
        ((float *)x->data)[k] = (float)(k % 83) - 40;
    }
    memcpy(i->data, (int32_t[]){ 4, 0, -1, 4, 2 }, 5 * sizeof(int32_t));
    for (size_t k = 0; k < NELEM(takes); k++) {
        mc_array *y[2] = { NULL, NULL };
        for (int d = 0; d < 2; d++) {
            mc_flag_set("device", d ? "cuda" : "cpu");
            mc_graph *g = mc_graph_new();
            mc_formula(g, "input x float32[?, ?, ?]; input i int32[?]");
            mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, i", .outputs = takes[k] });
            REQUIRE(f, "%s: %s", takes[k], mc_error(g));
            CHECK(mc_call(f, MC_IN(x, i), MC_OUT(&y[d])) == MC_OK, "%s: %s", takes[k], mc_last_error());
            mc_function_free(f);
            mc_graph_free(g);
        }
        CHECK(y[0] && y[1] && mc_array_differs(y[0], y[1], 0, 0) < 0, "%s differs", takes[k]);
        mc_array_unref(&y[0]);
        mc_array_unref(&y[1]);
    }
    mc_array_unref(&x);
    mc_array_unref(&i);
}

TEST(gpu_index_out_of_range_is_an_error)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "p", MC_FLOAT32, 2);
    mc_input(g, "t", MC_INT32, 1);
    mc_array *zero = mc_array_scalar(MC_FLOAT32, 0);
    mc_shared *n = mc_shared_new(g, "n", zero);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "p, t",
                                               .outputs = "mean(crossentropy_softmax_1hot(p, t))",
                                               .updates = "n = n + 1" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *p = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 5)), *good = mc_array_new(MC_INT32, MC_SHAPE(2)),
             *bad = mc_array_new(MC_INT32, MC_SHAPE(2));
    mc_array_set(bad, (int64_t[]){ 1 }, 9);
    for (int i = 0; i < 4; i++) {
        float y = 0;
        CHECK(mc_call(f, MC_IN(p, bad), MC_OUT(&y)) == MC_EINDEX && strstr(mc_last_error(), "9"), "%s",
              mc_last_error());
        CHECK(mc_call(f, MC_IN(p, good), MC_OUT(&y)) == MC_OK && fabsf(y - logf(5)) < 1e-6f, "%g, %s",
              (double)y, mc_last_error());
    }
    mc_array *count = mc_shared_get(n);
    CHECK(mc_array_get(count, NULL) == 4, "only calls that succeed update: %g", mc_array_get(count, NULL));
    mc_function *quiet = mc_function_copy(
        f, 1); /* nobody waits for its results: the error comes late, and nothing is updated before it has */
    for (int round = 0; round < 3 && quiet; round++) {
        for (int i = 0; i < 3; i++) {
            mc_status s = mc_call(quiet, MC_IN(p, i ? good : bad), MC_NONE);
            CHECK(s == MC_OK || s == MC_EINDEX, "%s", mc_last_error());
            s = i == 0 && s == MC_OK ? mc_synchronize() : s;
            CHECK(s == (i ? MC_OK : MC_EINDEX) && (i || strstr(mc_last_error(), "index 9")),
                  "round %d, call %d: %s", round, i, mc_last_error());
        }
    }
    CHECK(mc_synchronize() == MC_OK, "told once");
    mc_array *later = mc_shared_get(n);
    CHECK(mc_array_get(later, NULL) == 4 + 6, "%g calls that succeed", mc_array_get(later, NULL));
    mc_array *all[] = { zero, p, good, bad, count, later };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(quiet);
    mc_function_free(f);
    mc_graph_free(g);
}

/* What the host would do is refused, with the step and the reason, where the flag says so. */
TEST(gpu_host_steps_can_be_refused)
{
    static const struct { const char *formula, *why; } cases[] = {
        { "print_(x)", "no kernel on the GPU" }, { "x[nonzero(x > 0)]", "sizes depend on data" }, { "join(x, x)", NULL } };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    mc_array *x = counting(10), *y = NULL;
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        mc_status s = f ? mc_call(f, MC_IN(x), MC_OUT(&y)) : MC_EUNSUPPORTED;
        const char *said = f ? mc_last_error() : mc_error(g);
        CHECK(cases[i].why ? s == MC_EUNSUPPORTED && strstr(said, cases[i].why) && strstr(said, "cuda.host")
                           : s == MC_OK,
              "%s: %s", cases[i].formula, said);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_flag_set("cuda.host", "True");
    mc_array_unref(&x);
}

struct caller { mc_function *f; double sum; mc_status s; };

static void *call_often(void *arg)
{
    struct caller *c = arg;
    mc_array *x = counting(5000);
    for (int i = 0; i < 50 && c->s == MC_OK; i++) {
        c->s = mc_call(c->f, MC_IN(x), MC_OUT(&c->sum));
    }
    mc_array_unref(&x);
    return NULL;
}

TEST(gpu_functions_of_several_threads)
{
    ON_GPU();
    enum { N = 4 };
    struct caller c[N] = { 0 };
    pthread_t thread[N];
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    for (int i = 0; i < N; i++) {
        c[i].f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sum(sqrt(x * x))" });
        REQUIRE(c[i].f && pthread_create(&thread[i], NULL, call_often, &c[i]) == 0, "%s", mc_error(g));
    }
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        CHECK(c[i].s == MC_OK && c[i].sum == 12497500, "thread %d: %g", i, c[i].sum);
        mc_function_free(c[i].f);
    }
    mc_graph_free(g);
}

TEST(gpu_times_add_up)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x", .outputs = "gpu_from_host(exp(x))", .profile = 1 });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *x = counting(100000), *y = NULL;
    double before = 0;
    for (int i = 1; i <= 10; i++) {
        REQUIRE(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
        mc_step_info step = mc_function_step(f, 0);
        CHECK(step.calls == i && step.seconds > before, "call %d: %g s after %g", i, step.seconds, before);
        before = step.seconds;
    }
    mc_array_unref(&y);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Draws are work of kernels there: none goes to the host, not even where the shape is known only to a
 * call. */
TEST(gpu_draws_stay)
{
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_random(g, "rng", 7);
    mc_formula(g, "h = dot(x, x.T); m = uniform(rng, shape(h), dtype='float32') < 0.5");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x", .outputs = "dot(h * m, h) * m, normal(rng, [3, 5])" });
    CHECK(f, "%s", mc_error(g));
    mc_flag_set("cuda.host", "True");
    mc_function_free(f);
    mc_graph_free(g);
}

/* Draws on that device, of one seed. */
static mc_array *normals(const char *device)
{
    mc_array *y = NULL;
    mc_flag_set("device", device);
    mc_graph *g = mc_graph_new();
    mc_random(g, "rng", 7);
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "normal(rng, [100001], dtype='float64')" });
    CHECK(f && mc_call(f, MC_NONE, MC_OUT(&y)) == MC_OK, "%s: %s", device, mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
    return y;
}

/* Formulas of the GPU's own: the bits of a draw are those of the processor, its logarithm and cosine within a
 * few ulp, of angles whose last bit is 4.4e-16. */
TEST(gpu_normals_are_those_of_the_processor)
{
    ON_GPU();
    mc_array *want = normals("cpu"), *got = normals("cuda");
    REQUIRE(want && got, "no draws");
    double most = 0;
    for (int64_t i = 0; i < 100001; i++) {
        most = fmax(most, fabs(((double *)(void *)got->data)[i] - ((double *)(void *)want->data)[i]));
    }
    CHECK(most < 2e-14, "%g", most);
    mc_array_unref(&want);
    mc_array_unref(&got);
}

/* Where memory is short a solver that needs less takes over; where nothing helps, one error says who wanted
 * how much. */
TEST(gpu_memory_that_is_short)
{
    ON_GPU();
    struct agree a = { .g = mc_graph_new(), .scale = 4096 };
    mc_input(a.g, "x", MC_FLOAT32, 4);
    mc_input(a.g, "w", MC_FLOAT32, 4);
    mc_array *x = sample(MC_FLOAT32, 4, (int64_t[]){ 16, 16, 40, 40 }, -1, 1),
             *w = sample(MC_FLOAT32, 4, (int64_t[]){ 16, 16, 5, 5 }, -1, 1), *y[2] = { 0 };
    size_t memory[2] = { 0 };
    for (int small = 0; small < 2; small++) {
        mc_flag_set("conv.algo_fwd", "im2col");
        mc_function *f = mc_compile(a.g,
                                    &(mc_spec){ .name = "short", .inputs = "x, w", .outputs = "conv(x, w)" });
        REQUIRE(f, "%s", mc_error(a.g));
        char most[32];
        snprintf(most, sizeof most, "%zu", mc_cuda_held(mc_cuda_running(0)) + memory[0] * 3 / 4);
        mc_flag_set("cuda.memory", small ? most : "0");
        mc_status s = mc_call(f, MC_IN(x, w), MC_OUT(&y[small]));
        CHECK(s == MC_OK, "%s", mc_last_error());
        memory[small] = mc_function_memory(f);
        if (small) {
            mc_array *large = sample(MC_FLOAT32, 4, (int64_t[]){ 400, 16, 40, 40 }, -1, 1), *none = NULL;
            s = mc_call(f, MC_IN(large, w), MC_OUT(&none));
            CHECK(s == MC_EMEMORY && strstr(mc_last_error(), "short: ") &&
                      strstr(mc_last_error(), "for step ") && strstr(mc_last_error(), "bytes of values") &&
                      strstr(mc_last_error(), "out of memory on cuda0"),
                  "%s", mc_last_error());
            mc_array_unref(&large);
            CHECK(mc_call(f, MC_IN(x, w), MC_OUT(&y[1])) == MC_OK, "usable afterwards: %s", mc_last_error());
        }
        mc_function_free(f);
        mc_flag_set("cuda.memory", "0");
    }
    CHECK(memory[1] < memory[0], "%zu bytes, then %zu", memory[0], memory[1]);
    CHECK(y[0] && y[1] && mc_array_differs(y[0], y[1], 1e-5, 3e-4) < 0, "the same result");
    mc_array *all[] = { x, w, y[0], y[1] };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    agree_free(&a);
}
