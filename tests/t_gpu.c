/* t_gpu.c: functions on a GPU: what comes home and what stays, updates, captured calls, shapes that change, what only
 * the host can do in between.  Without a GPU these are skipped; what the kernels' text is, t_grid.c tests anywhere. */
#include "agree.h"
#include "cuda_test.h"
#include "sample.h"

#include <pthread.h>
#include <string.h>

static bool there(void)
{
    return nvrtc_here() && mc_cuda_count() > 0 && mc_flag_set("device", "cuda") == MC_OK;
}

#define ON_GPU() \
    do { \
        if (!there()) { \
            SKIP("no GPU"); \
        } \
    } while (0)

static mc_array *counting(int64_t n)
{
    mc_array *a = mc_array_new(MC_FLOAT32, 1, &n);
    for (int64_t i = 0; a && i < n; i++) {
        ((float *)a->data)[i] = (float)i;
    }
    return a;
}

static double at(const mc_array *a, int64_t i)
{
    return mc_array_get(a, &i);
}

TEST(far_results_stay_or_come_home)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1, gpu_from_host(x * 2), borrow(gpu_from_host(x * 3)), borrow(x * 4)" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *x = counting(1000), *y[4] = { 0 };
    for (int round = 0; round < 4; round++) { /* the third is replayed */
        mc_status s = mc_call(f, MC_IN(x), MC_OUT(&y[0], &y[1], &y[2], &y[3]));
        REQUIRE(s == MC_OK, "round %d: %s", round, mc_last_error());
        CHECK(strcmp(mc_array_device(y[0]), "cpu") == 0 && strcmp(mc_array_device(y[1]), "cuda0") == 0, "they lie on %s and %s",
              mc_array_device(y[0]), mc_array_device(y[1]));
        for (int i = 0; i < 4; i++) {
            CHECK(at(y[i], 999) == (i == 0 ? 1000 : 999 * (i + 1)), "round %d: result %d ends with %g", round, i, at(y[i], 999));
        }
    }
    CHECK(strcmp(mc_function_step(f, 0).device, "cuda0") == 0, "the first step ran on %s", mc_function_step(f, 0).device);
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&y[i]);
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(far_inputs_may_lie_there)
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
        CHECK(half && mc_array_size(half) == 51 && at(half, 50) == 100, "round %d: every second element", round);
    }
    mc_array_unref(&half);
    mc_array_unref(&far);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A function on each GPU; what one has made and left there goes to the next. */
TEST(far_several_gpus_pass_it_on)
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
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "gpu_from_host(2 * x + sum(x) * 0)" });
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
    CHECK(home && at(home, 4999) == 4999. * (double)(1 << 2 * mc_cuda_count()), "%g", home ? at(home, 4999) : 0);
    mc_array_unref(&home);
    mc_array_unref(&x);
    mc_graph_free(g);
}

/* A shared variable that functions of each GPU change in turn, replayed; and arrays that go from one to the next by hand. */
TEST(far_shared_values_go_from_gpu_to_gpu)
{
    enum { GPUS = 2 };
    ON_GPU();
    if (mc_cuda_count() < GPUS) {
        SKIP("one GPU");
    }
    mc_graph *g = mc_graph_new();
    mc_array *start = counting(3000), *sum = NULL;
    mc_shared *w = mc_shared_new(g, "w", start);
    mc_function *f[GPUS] = { NULL };
    for (int i = 0; i < GPUS; i++) {
        REQUIRE(mc_flag_set("device", i ? "cuda1" : "cuda0") == MC_OK, "%s", mc_last_error());
        f[i] = mc_compile(g, &(mc_spec){ .outputs = "gpu_from_host(w + 0)", .updates = i ? "w = w * 2" : "w = w + 1" });
        REQUIRE(f[i], "%s", mc_error(g));
    }
    double want = 2999;
    for (int round = 0; round < 6; round++) { /* one call on each, then three on the first, so that it replays */
        int which = round < 2 ? round : round == 5;
        mc_array_unref(&sum);
        CHECK(mc_call(f[which], MC_NONE, MC_OUT(&sum)) == MC_OK, "%s", mc_last_error());
        mc_array *moved = sum ? mc_array_to(sum, which ? "cuda0" : "cuda1") : NULL;
        CHECK(moved && strcmp(mc_array_device(moved), which ? "cuda0" : "cuda1") == 0 && at(moved, 2999) == want, "round %d: %s", round, mc_last_error());
        mc_array_unref(&moved);
        want = which ? want * 2 : want + 1;
    }
    mc_array *got = mc_shared_get(w);
    CHECK(got && at(got, 2999) == want, "%g, not %g", got ? at(got, 2999) : 0, want);
    mc_array_unref(&got);
    mc_array_unref(&sum);
    mc_array_unref(&start);
    for (int i = 0; i < GPUS; i++) {
        mc_function_free(f[i]);
    }
    mc_graph_free(g);
}

TEST(far_updates_use_old_values)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_array *zero = counting(3), *three = mc_array_scalar(MC_FLOAT32, 3);
    mc_shared *a = mc_shared_new(g, "a", zero), *b = mc_shared_new(g, "b", zero), *c = mc_shared_new(g, "c", three);
    mc_function *swap = mc_compile(g, &(mc_spec){ .outputs = "a", .updates = "a = b + 1; b = a; c = c * 2" });
    mc_function *plain = mc_compile(g, &(mc_spec){ .updates = "a = a + 10; c = c + 1" });
    REQUIRE(swap && plain, "%s", mc_error(g));
    mc_array *before = NULL;
    for (int i = 0; i < 4; i++) {
        REQUIRE(mc_call(swap, MC_NONE, MC_OUT(&before)) == MC_OK, "%s", mc_last_error());
        REQUIRE(mc_call(plain, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    mc_array *got = mc_shared_get(a), *other = mc_shared_get(b), *scale = mc_shared_get(c);
    /* (a, b) -> (b + 1, a), then a + 10: starting from (2, 2) at the last element */
    double x = 2, y = 2, z = 3, last = 0;
    for (int i = 0; i < 4; i++) {
        double t = x;
        last = x;
        x = y + 1 + 10;
        y = t;
        z = z * 2 + 1;
    }
    CHECK(at(got, 2) == x && at(other, 2) == y && mc_array_get(scale, NULL) == z, "a %g, b %g, c %g instead of %g, %g, %g", at(got, 2), at(other, 2),
          mc_array_get(scale, NULL), x, y, z);
    CHECK(at(before, 2) == last, "the result is the old value %g, not %g", last, at(before, 2));
    mc_array *five = mc_array_scalar(MC_FLOAT32, 5);
    CHECK(mc_shared_set(c, five) == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(plain, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&scale);
    scale = mc_shared_get(c);
    CHECK(mc_array_get(scale, NULL) == 6, "set to 5, one added: %g", mc_array_get(scale, NULL));
    mc_array *all[] = { zero, three, before, got, other, scale, five };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(swap);
    mc_function_free(plain);
    mc_graph_free(g);
}

/* Shared variables follow the function that uses them. */
TEST(far_shared_values_go_where_they_are_used)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_array *start = counting(4);
    mc_shared *w = mc_shared_new(g, "w", start);
    mc_function *far = mc_compile(g, &(mc_spec){ .updates = "w = w * 2" });
    REQUIRE(far && mc_flag_set("device", "cpu") == MC_OK, "%s", mc_error(g));
    mc_function *near = mc_compile(g, &(mc_spec){ .updates = "w = w + 1" });
    REQUIRE(near, "%s", mc_error(g));
    for (int i = 0; i < 3; i++) {
        CHECK(mc_call(far, MC_NONE, MC_NONE) == MC_OK && mc_call(near, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    mc_array *got = mc_shared_get(w);
    CHECK(at(got, 3) == 31, "((3 * 2 + 1) * 2 + 1) * 2 + 1 is not %g", at(got, 3));
    mc_array *mine = mc_shared_borrow(w);
    CHECK(mine && mc_array_data(mine), "what is borrowed has an address");
    mc_array_unref(&mine);
    mc_array_unref(&got);
    mc_array_unref(&start);
    mc_function_free(far);
    mc_function_free(near);
    mc_graph_free(g);
}

TEST(far_index_out_of_range_is_an_error)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "p", MC_FLOAT32, 2);
    mc_input(g, "t", MC_INT32, 1);
    mc_array *zero = mc_array_scalar(MC_FLOAT32, 0);
    mc_shared *n = mc_shared_new(g, "n", zero);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "p, t", .outputs = "mean(crossentropy_softmax_1hot(p, t))", .updates = "n = n + 1" });
    REQUIRE(f, "%s", mc_error(g));
    mc_array *p = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 5)), *good = mc_array_new(MC_INT32, MC_SHAPE(2)), *bad = mc_array_new(MC_INT32, MC_SHAPE(2));
    mc_array_set(bad, (int64_t[]){ 1 }, 9);
    for (int i = 0; i < 4; i++) {
        float y = 0;
        CHECK(mc_call(f, MC_IN(p, bad), MC_OUT(&y)) == MC_EINDEX && strstr(mc_last_error(), "9"), "%s", mc_last_error());
        CHECK(mc_call(f, MC_IN(p, good), MC_OUT(&y)) == MC_OK && fabsf(y - logf(5)) < 1e-6f, "%g, %s", (double)y, mc_last_error());
    }
    mc_array *count = mc_shared_get(n);
    CHECK(mc_array_get(count, NULL) == 4, "only calls that succeed update: %g", mc_array_get(count, NULL));
    mc_function *quiet = mc_function_copy(f, 1); /* nobody waits for its results: the error comes late, and nothing is updated before it has */
    for (int round = 0; round < 3 && quiet; round++) {
        for (int i = 0; i < 3; i++) {
            mc_status s = mc_call(quiet, MC_IN(p, i ? good : bad), MC_NONE);
            CHECK(s == MC_OK || s == MC_EINDEX, "%s", mc_last_error());
            s = i == 0 && s == MC_OK ? mc_synchronize() : s;
            CHECK(s == (i ? MC_OK : MC_EINDEX) && (i || strstr(mc_last_error(), "index 9")), "round %d, call %d: %s", round, i, mc_last_error());
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

/* More updates than one launch takes. */
TEST(far_many_updates)
{
    ON_GPU();
    struct mc_str updates = { 0 };
    mc_graph *g = mc_graph_new();
    mc_shared *s[130];
    for (int i = 0; i < 130; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        mc_array *start = counting(i);
        s[i] = mc_shared_new(g, name, start);
        mc_array_unref(&start);
        mc_str_addf(&updates, "%ss%d = s%d + %d", i ? ", " : "", i, i, i + 1);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .updates = updates.s });
    REQUIRE(f, "%s", mc_error(g));
    for (int i = 0; i < 3; i++) {
        CHECK(mc_call(f, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    for (int i = 1; i < 130; i++) {
        mc_array *got = mc_shared_get(s[i]);
        CHECK(at(got, i - 1) == i - 1 + 3 * (i + 1), "s%d: %g", i, at(got, i - 1));
        mc_array_unref(&got);
    }
    mc_str_free(&updates);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Shapes at which grids differ: nothing, one, a ragged vector, long rows, long columns, split sums. */
TEST(far_shapes)
{
    static const int64_t shapes[][2] = { { 0, 5 }, { 1, 1 }, { 3, 7 }, { 64, 64 }, { 2, 40000 }, { 40000, 3 }, { 700, 1025 }, { 1, 300000 } };
    ON_GPU();
    struct agree a = { .g = mc_graph_new(), .scale = 4096 };
    mc_node *x = mc_input(a.g, "x", MC_FLOAT32, 2);
    mc_function *f = mc_compile(a.g, &(mc_spec){ .inputs = "x", .outputs = "sum(x), sum(x, axis=0), sum(x, axis=1), tanh(x) + x[::-1, ::-1], "
                                                            "softmax(x), exp(x.T) * 2, mean(x * x, axis=0), sum(abs(x), axis=1)" });
    REQUIRE(f && x, "%s", mc_error(a.g));
    REQUIRE(mc_flag_set("device", "cpu") == MC_OK, "%s", mc_last_error());
    mc_function *h = mc_compile(a.g, &(mc_spec){ .inputs = "x", .outputs = "sum(x), sum(x, axis=0), sum(x, axis=1), tanh(x) + x[::-1, ::-1], "
                                                            "softmax(x), exp(x.T) * 2, mean(x * x, axis=0), sum(abs(x), axis=1)" });
    REQUIRE(h, "%s", mc_error(a.g));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < NELEM(shapes); i++) {
            mc_array *v = sample(MC_FLOAT32, 2, shapes[i], -1, 1), *y[8] = { 0 }, *z[8] = { 0 };
            mc_status s = mc_call(f, MC_IN(v), MC_OUT(&y[0], &y[1], &y[2], &y[3], &y[4], &y[5], &y[6], &y[7]));
            mc_status t = mc_call(h, MC_IN(v), MC_OUT(&z[0], &z[1], &z[2], &z[3], &z[4], &z[5], &z[6], &z[7]));
            CHECK(s == MC_OK && t == MC_OK, "%lld x %lld: %s", (long long)shapes[i][0], (long long)shapes[i][1], mc_last_error());
            for (int k = 0; k < 8 && s == MC_OK && t == MC_OK; k++) {
                int64_t bad = mc_array_differs(y[k], z[k], 1e-5, 3e-4);
                CHECK(bad < 0, "%lld x %lld, round %d: result %d differs at %lld: %g, %g", (long long)shapes[i][0], (long long)shapes[i][1], round, k,
                      (long long)bad, mc_load_f64(MC_FLOAT32, y[k]->data + 4 * bad), mc_load_f64(MC_FLOAT32, z[k]->data + 4 * bad));
            }
            for (int k = 0; k < 8; k++) {
                mc_array_unref(&y[k]);
                mc_array_unref(&z[k]);
            }
            mc_array_unref(&v);
        }
    }
    mc_function_free(f);
    mc_function_free(h);
    agree_free(&a);
}

/* Rows that lanes keep in registers: a warp each, blocks full and ragged, too long for that; whole vectors and not. */
TEST(far_rows)
{
    static const int64_t shapes[][2] = { { 3, 64 }, { 130, 128 }, { 37, 300 }, { 9, 1024 }, { 2, 1026 }, { 1100, 260 }, { 5, 4096 }, { 3, 9000 }, { 0, 256 } };
    static const char *const formulas[] = { "softmax(x)", "max(x, axis=1)", "argmax(x, axis=1)", "grad(sum(softmax(x) * v), x)", "layer_norm(x)",
                                            "grad(sum(layer_norm(x) * v), x)", "sum(layer_norm(x) * v, axis=0)", "sum(v, axis=0)", "logsumexp(x, axis=1)",
                                            "x - min(x, axis=1, keepdims=True)", "x * arange(0, x.shape[1])" };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(shapes) * NELEM(dtypes); i++) {
        const int64_t *dims = shapes[i / NELEM(dtypes)];
        mc_dtype d = dtypes[i % NELEM(dtypes)];
        struct agree a = { .scale = 4096 };
        agree_input(&a, "x", sample(d, 2, dims, -1, 1), 0);
        agree_input(&a, "v", sample(d, 2, dims, .5, 1), 0);
        for (size_t k = 0; k < NELEM(formulas); k++) {
            bool half = d == MC_FLOAT16 && k == 5; /* a difference of two that are almost one */
            CHECK(half || !mc_is_error(agree_output(&a, formulas[k])), "%s", mc_error(a.g));
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%s of %lld rows of %lld: %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1], wrong);
        agree_free(&a);
    }
}

/* Reductions around an axis that is kept: few points, each long enough for many blocks; whole vectors and not. */
TEST(far_channels)
{
    static const int64_t shapes[][4] = { { 4, 3, 64, 64 }, { 2, 5, 70, 71 }, { 3, 1, 90, 100 }, { 2, 40, 9, 4 }, { 1, 2, 100, 100 } };
    static const char *const formulas[] = { "batch_normalization_train(x, g, g, axes='spatial')[0]", "grad(sum(batch_normalization_train(x, g, g, axes='spatial')[0] * v), x)",
                                            "max(x, axis=[0, 2, 3])", "sum(x * v, axis=[0, 2, 3])", "x / max(abs(x), axis=[0, 2, 3], keepdims=True)",
                                            "var(x, axis=[0, 2, 3])" };
    ON_GPU();
    for (size_t i = 0; i < NELEM(shapes); i++) {
        struct agree a = { .scale = 16384 };
        agree_input(&a, "x", sample(MC_FLOAT32, 4, shapes[i], -1, 1), 0);
        agree_input(&a, "v", sample(MC_FLOAT32, 4, shapes[i], .5, 1), 0);
        agree_input(&a, "g", sample(MC_FLOAT32, 1, &shapes[i][1], .5, 1), 0);
        for (size_t k = 0; k < NELEM(formulas); k++) {
            CHECK(!mc_is_error(agree_output(&a, formulas[k])), "%s", mc_error(a.g));
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%lld images, %lld channels: %s", (long long)shapes[i][0], (long long)shapes[i][1], wrong);
        agree_free(&a);
    }
}

/* What one stage has stored the next one reads, rather than all that it was made of: blocks of their own for each, or not. */
TEST(far_stages_read_back)
{
    static const int64_t shapes[][4] = { { 4, 3, 64, 64 }, { 2, 5, 70, 71 }, { 2, 40, 9, 4 } };
    ON_GPU();
    for (size_t i = 0; i < 2 * NELEM(shapes); i++) {
        struct agree a = { .scale = 16384 };
        const int64_t *dims = shapes[i / 2];
        const mc_dtype d = i % 2 ? MC_FLOAT16 : MC_FLOAT32;
        agree_input(&a, "x", sample(d, 4, dims, -1, 1), 0);
        agree_input(&a, "v", sample(d, 4, dims, .5, 1), 0);
        agree_input(&a, "u", sample(d, 4, dims, .5, 1), 0);
        agree_output(&a, "x * v + u");
        agree_output(&a, "s = x * v + u; s - mean(s, axis=[0, 2, 3], keepdims=True)");
        const char *wrong = agree_in(&a, "FAST_RUN", 1);
        CHECK(!wrong, "%s, %lld images, %lld channels: %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1], wrong);
        agree_free(&a);
    }
}

/* Sums that run and lines in order: short, longer than a block's shared memory, cut into chunks; NaN, equal ones; every dtype. */
TEST(far_lines)
{
    static const struct { int64_t dims[2]; const char *axis; } shapes[] = { { { 3, 1 }, "0" }, { { 7, 5 }, "1" }, { { 6, 200 }, "0" }, { { 2, 5000 }, "1" }, { { 20000, 2 }, "0" } };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_INT8, MC_UINT64, MC_FLOAT16 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(shapes) * NELEM(dtypes); i++) {
        const int64_t *dims = shapes[i / NELEM(dtypes)].dims;
        const char *axis = shapes[i / NELEM(dtypes)].axis;
        mc_dtype d = dtypes[i % NELEM(dtypes)];
        struct agree a = { .scale = mc_is_float(d) ? 65536 : 1 };
        mc_array *x = sample(d, 2, dims, 0, 9);
        if (mc_is_float(d)) {
            mc_array_set(x, (int64_t[]){ dims[0] / 2, 0 }, NAN);
        }
        agree_input(&a, "x", x, 0);
        agree_input(&a, "v", sample(d, 2, dims, 1, 1), 0);
        const char *const ops[] = { "sort(x, axis=%s)", "argsort(x, axis=%s)", "argsort(x[::-1], axis=%s)", "cumsum(v, axis=%s)", "cumprod(v, axis=%s)" };
        for (size_t k = 0; k < NELEM(ops); k++) {
            char formula[64];
            snprintf(formula, sizeof formula, ops[k], axis);
            CHECK((d == MC_FLOAT16 && k == 3 && dims[0] + dims[1] > 1000) || !mc_is_error(agree_output(&a, formula)), "%s", mc_error(a.g)); /* sums beyond its range */
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%s of %lld x %lld: %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1], wrong);
        agree_free(&a);
    }
}

/* Kernels come in the forms that some shape may need. */
TEST(far_forms_that_sizes_rule_out)
{
    static const struct { const char *input, *formula; bool vector, row; } cases[] = {
        { "input x float32[?, ?]", "softmax(x)", true, true },     { "input x float32[?, 10]", "softmax(x)", false, false }, { "input x float32[?, 16]", "softmax(x)", true, false },
        { "input x float32[?, 512]", "softmax(x)", true, true },   { "input x float32[?, 999]", "softmax(x)", false, false }, { "input x float32[5, 3]", "tanh(x)", false, false },
        { "input x float32[4, 3]", "tanh(x)", true, false },       { "input x float32[?, 3]", "tanh(x)", true, false },
    };
    ON_GPU();
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, cases[i].input);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        const char *text = mc_function_source(f);
        CHECK(f && (strstr(text, "_v(const") != NULL) == cases[i].vector && (strstr(text, "_r(const") != NULL) == cases[i].row, "%s of %s: %s", cases[i].formula, cases[i].input, mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Joins, indices, parts that are set: there, in one recording with the kernels; repeated places are settled in their order. */
TEST(far_work)
{
    static const struct { const char *formula, *here; } cases[] = { /* here: the step that nothing there can do */
        { "join(x, v, axis=0) * 2", NULL },           { "join(x[::-1], v.T[:6].T, axis=1)", NULL },     { "stack(x, v + 1, axis=1)", NULL },
        { "x[i]", NULL },                             { "x[:, j] + 1", NULL },                            { "x[i, i]", NULL },
        { "x.T[j]", NULL },                           { "set_subtensor(x[i], v[:7])", NULL },             { "inc_subtensor(x[:, j], 2)", NULL },
        { "inc_subtensor(x[i], v[0])", NULL },        { "set_subtensor(x[1:9:3, ::-1], v[:3])", NULL },   { "inc_subtensor(x[2], 3)", NULL },
        { "grad(sum(x[i] * x[i]), x)", NULL },        { "reshape(x.T, [66])", NULL },                     { "sort(x, axis=1)", NULL },
        { "permute_row_elements(x, argsort(v))", "permute_row_elements" },
    };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT16, MC_INT64, MC_UINT8 };
    ON_GPU();
    for (size_t c = 0; c < NELEM(cases) * NELEM(dtypes); c++) {
        mc_dtype d = dtypes[c % NELEM(dtypes)];
        const char *formula = cases[c / NELEM(dtypes)].formula;
        if (!mc_is_float(d) && strstr(formula, "grad")) {
            continue;
        }
        struct agree a = { .scale = 64 };
        agree_input(&a, "x", sample(d, 2, (const int64_t[]){ 11, 6 }, 0, 9), 0);
        agree_input(&a, "v", sample(d, 2, (const int64_t[]){ 11, 6 }, 0, 9), 0);
        agree_input(&a, "i", sample(MC_INT16, 1, (const int64_t[]){ 7 }, -5, 5), 0);
        agree_input(&a, "j", sample(MC_INT64, 1, (const int64_t[]){ 9 }, -6, 5), 0);
        CHECK(!mc_is_error(agree_output(&a, formula)), "%s: %s", formula, mc_error(a.g));
        const char *wrong = agree_in(&a, "FAST_RUN", 1);
        CHECK(!wrong, "%s of %s: %s", formula, mc_dtype_name(d), wrong);
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        mc_array *y[1] = { 0 };
        for (int round = 0; f && round < 3; round++) { /* the third is replayed */
            CHECK(agree_call(&a, f, y) == MC_OK, "%s: %s", formula, mc_last_error());
        }
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            mc_step_info s = mc_function_step(f, i);
            const char *here = cases[c / NELEM(dtypes)].here;
            CHECK(strcmp(s.kind, "host") != 0 || (strcmp(s.device, "cpu") == 0) == (here && strstr(s.text, here) == s.text), "%s: %s ran on %s: %s", formula, s.text,
                  s.device, s.reason);
        }
        mc_array_unref(&y[0]);
        mc_function_free(f);
        agree_free(&a);
    }
}

/* What the host would do is refused, with the step and the reason, where the flag says so. */
TEST(far_host_steps_can_be_refused)
{
    static const struct { const char *formula, *why; } cases[] = {
        { "permute_row_elements(x, cast(x, 'int64'))", "no kernel on the GPU" }, { "x[nonzero(x > 0)]", "sizes that only running tells" }, { "join(x, x)", NULL } };
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    mc_array *x = counting(10), *y = NULL;
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        mc_status s = f ? mc_call(f, MC_IN(x), MC_OUT(&y)) : MC_EUNSUPPORTED;
        const char *said = f ? mc_last_error() : mc_error(g);
        CHECK(cases[i].why ? s == MC_EUNSUPPORTED && strstr(said, cases[i].why) && strstr(said, "cuda.host") : s == MC_OK, "%s: %s", cases[i].formula, said);
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

TEST(far_functions_of_several_threads)
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

TEST(far_times_add_up)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "gpu_from_host(exp(x))", .profile = 1 });
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

/* Draws are work of kernels there: none goes to the host, not even where the shape is known only to a call. */
TEST(far_draws_stay)
{
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_random(g, "rng", 7);
    mc_formula(g, "h = dot(x, x.T); m = uniform(rng, shape(h), dtype='float32') < 0.5");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "dot(h * m, h) * m, normal(rng, [3, 5])" });
    CHECK(f, "%s", mc_error(g));
    mc_flag_set("cuda.host", "True");
    mc_function_free(f);
    mc_graph_free(g);
}

/* Where memory is short a solver that needs less takes over; where nothing helps, one error says who wanted how much. */
TEST(far_memory_that_is_short)
{
    ON_GPU();
    struct agree a = { .g = mc_graph_new(), .scale = 4096 };
    mc_input(a.g, "x", MC_FLOAT32, 4);
    mc_input(a.g, "w", MC_FLOAT32, 4);
    mc_array *x = sample(MC_FLOAT32, 4, (int64_t[]){ 16, 16, 40, 40 }, -1, 1), *w = sample(MC_FLOAT32, 4, (int64_t[]){ 16, 16, 5, 5 }, -1, 1), *y[2] = { 0 };
    size_t memory[2] = { 0 };
    for (int small = 0; small < 2; small++) {
        mc_flag_set("conv.algo_fwd", "im2col");
        mc_function *f = mc_compile(a.g, &(mc_spec){ .name = "short", .inputs = "x, w", .outputs = "conv(x, w)" });
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
            CHECK(s == MC_EMEMORY && strstr(mc_last_error(), "short: ") && strstr(mc_last_error(), "for step ") && strstr(mc_last_error(), "bytes of values") &&
                  strstr(mc_last_error(), "out of memory on cuda0"), "%s", mc_last_error());
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
