/* t_cuda_device.c: a GPU's memory, its launches and recordings, and its errors. */
#include "cuda_test.h"
#include "heavy/cuda/cuda.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct twice { void *p; long long n; };
static const struct mc_grid one_block = { { 1, 1, 1 }, { 256, 1, 1 }, 0 };

TEST(arrays_go_to_the_gpu_and_back)
{
    static const int64_t size[] = { 0, 1, 3, 16 << 10, (64 << 10) + 1, 1 << 20, (9 << 20) + 5, 40 << 20 };
    NEEDS_GPU(d);
    for (size_t i = 0; i < NELEM(size); i++) {
        mc_array *a = mc_array_new(MC_UINT8, 1, &size[i]);
        REQUIRE(a, "%s", mc_last_error());
        for (int64_t k = 0; k < size[i]; k++) {
            a->data[k] = (char)test_random();
        }
        mc_array *keep = mc_array_copy(a), *there = mc_array_to(a, "cuda0");
        memset(a->data, 0, (size_t)size[i]); /* it may change once the call has returned */
        mc_array *second = mc_cuda_array(d, MC_UINT8, 1, &size[i]);
        REQUIRE(there && second, "%s", mc_last_error());
        CHECK(mc_array_assign(second, there) == MC_OK, "%s", mc_last_error());
        mc_array *home = mc_array_to(second, "cpu");
        CHECK(home && mc_array_same_bits(home, keep), "%lld bytes came back otherwise: %s",
              (long long)size[i], mc_last_error());
        CHECK(mc_cuda_clear(d, second->data, (size_t)size[i]) == MC_OK && mc_array_same_bits(second, a),
              "not cleared");
        mc_array_unref(&home);
        mc_array_unref(&second);
        mc_array_unref(&there);
        mc_array_unref(&keep);
        mc_array_unref(&a);
    }
    CHECK(mc_cuda_held(d) == 0, "%zu bytes are still held", mc_cuda_held(d));
}

TEST(a_kernel_runs_alone_and_recorded)
{
    NEEDS_GPU(d);
    mc_array *ones = mc_array_new(MC_FLOAT32, MC_SHAPE(200));
    for (int64_t i = 0; i < 200; i++) {
        mc_array_set(ones, &i, 1);
    }
    mc_array *a = mc_array_to(ones, "cuda0");
    struct mc_cuda_code *c = mc_cuda_code_load(d, TWICE, ""), *same = mc_cuda_code_load(d, TWICE, "");
    REQUIRE(a && c && same == c, "%s", mc_last_error());
    void *k = mc_cuda_code_kernel(c, "twice"), *graph = NULL;
    REQUIRE(k && !mc_cuda_code_kernel(c, "thrice"), "kernels by name");
    struct twice args = { a->data, 200 };
    CHECK(mc_cuda_launch(d, k, "twice", &one_block, &args, sizeof args) == MC_OK, "%s", mc_last_error());
    CHECK(mc_array_get(a, NULL) == 2, "%g", mc_array_get(a, NULL));

    REQUIRE(mc_cuda_capture_begin(d) == MC_OK, "%s", mc_last_error());
    CHECK(mc_cuda_current() == d, "the device is not entered");
    for (int i = 0; i < 3; i++) {
        CHECK(mc_cuda_launch(d, k, "twice", &one_block, &args, sizeof args) == MC_OK, "%s", mc_last_error());
    }
    CHECK(!mc_cuda_alloc(d, 16, "nothing") && strstr(mc_last_error(), "while work is being recorded"), "%s",
          mc_last_error());
    REQUIRE(mc_cuda_capture_end(d, &graph) == MC_OK && graph, "%s", mc_last_error());
    CHECK(!mc_cuda_current() && mc_array_get(a, NULL) == 2, "recording did the work: %g",
          mc_array_get(a, NULL));
    void *from = mc_cuda_event_record(d);
    CHECK(mc_cuda_replay(d, graph) == MC_OK && mc_cuda_replay(d, graph) == MC_OK, "%s", mc_last_error());
    double s = mc_cuda_event_seconds(d, from, mc_cuda_event_record(d));
    CHECK(s > 0 && s < 1, "%g s", s);
    CHECK(mc_array_get(a, (int64_t[]){ 199 }) == 128, "%g", mc_array_get(a, (int64_t[]){ 199 }));
    struct mc_grid empty = { { 0, 1, 1 }, { 256, 1, 1 }, 0 },
                   greedy = { { 1, 1, 1 }, { 256, 1, 1 }, d->shared };
    CHECK(mc_cuda_launch(d, k, "twice", &empty, &args, sizeof args) == MC_OK, "%s", mc_last_error());
    CHECK(mc_cuda_launch(d, k, "twice", &greedy, &args, sizeof args) == MC_OK && mc_array_get(a, NULL) == 256,
          "%s", mc_last_error());
    greedy.shared++;
    CHECK(mc_cuda_launch(d, k, "twice", &greedy, &args, sizeof args) == MC_EDEVICE &&
              strstr(mc_last_error(), "launch of twice"),
          "%s", mc_last_error());
    mc_cuda_graph_free(d, graph);
    mc_cuda_code_free(same);
    mc_cuda_code_free(c);
    mc_array_unref(&a);
    mc_array_unref(&ones);
}

TEST(out_of_memory_names_who_holds_it)
{
    NEEDS_GPU(d);
    void *small = mc_cuda_alloc(d, 1 << 20, "weights"), *large = mc_cuda_alloc(d, 3 << 20, "activations");
    REQUIRE(small && large, "%s", mc_last_error());
    CHECK(!mc_cuda_alloc(d, (size_t)1 << 46, "conv1") && mc_last_status() == MC_EMEMORY, "64 TiB were had");
    char want[200];
    snprintf(want, sizeof want, "out of memory on cuda0: %.1f MiB asked for conv1, ",
             (double)((size_t)1 << 26));
    CHECK(strstr(mc_last_error(), want) == mc_last_error() &&
              strstr(mc_last_error(),
                     "holds 4.0 MiB: 3.0 MiB for activations in 1 block, 1.0 MiB for weights in 1 block"),
          "%s", mc_last_error());
    CHECK(mc_flag_set("cuda.memory", "5M") == MC_OK, "%s", mc_last_error());
    CHECK(!mc_cuda_alloc(d, 2 << 20, "more") && strstr(mc_last_error(), "cuda.memory allows 5.0 MiB"), "%s",
          mc_last_error());
    mc_cuda_free(d, large);
    large = mc_cuda_alloc(d, 2 << 20, "more");
    CHECK(large, "%s", mc_last_error());
    mc_cuda_free(d, large);
    mc_cuda_free(d, small);
    CHECK(mc_cuda_held(d) == 0, "%zu bytes are still held", mc_cuda_held(d));
}

TEST(a_kernel_that_writes_where_it_must_not_is_named_ever_after)
{
    NEEDS_GPU(d);
    struct mc_cuda_code *c = mc_cuda_code_load(d, TWICE, "");
    void *k = c ? mc_cuda_code_kernel(c, "twice") : NULL;
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(4)), *there = mc_array_to(a, "cuda0");
    REQUIRE(k && there, "%s", mc_last_error());
    struct twice wild = { (void *)(uintptr_t)0x123456789000, 200 };
    mc_status s = mc_cuda_launch(d, k, "wild", &one_block, &wild, sizeof wild);
    s = s == MC_OK ? mc_cuda_wait(d) : s;
    CHECK(s == MC_EDEVICE && strstr(mc_last_error(), "wild") &&
              strstr(mc_last_error(), "illegal memory access"),
          "%s", mc_last_error());
    CHECK(mc_cuda_lost(d), "the device is said to be well");
    CHECK(!mc_cuda_alloc(d, 16, "more") && strstr(mc_last_error(), "wild") &&
              strstr(mc_last_error(), "cuda0 is lost to this process, since an earlier error: "),
          "%s", mc_last_error());
    CHECK(!mc_array_on_host(there) && strstr(mc_last_error(), "wild"), "%s", mc_last_error());
    mc_array_unref(&there);
    mc_cuda_code_free(c);
    CHECK(mc_array_get(a, NULL) == 0 && mc_array_set(a, NULL, 1) == MC_OK,
          "the host is not usable afterwards");
    mc_array_unref(&a);
}

static void launch_wildly(struct mc_cuda *d)
{
    struct mc_cuda_code *c = mc_cuda_code_load(d, TWICE, "");
    void *k = c ? mc_cuda_code_kernel(c, "twice") : NULL;
    REQUIRE(k, "%s", mc_last_error());
    struct twice wild = { (void *)(uintptr_t)0x123456789000, 200 };
    CHECK(mc_cuda_launch(d, k, "wild", &one_block, &wild, sizeof wild) == MC_EDEVICE, "it returned well");
    CHECK(strstr(mc_last_error(), "cuda0: launch of wild: ") == mc_last_error(), "%s", mc_last_error());
}

TEST(a_blocking_launch_names_itself)
{
    NEEDS_GPU(d);
    REQUIRE(mc_flag_set("cuda.blocking", "True") == MC_OK, "%s", mc_last_error());
    launch_wildly(d);
}

/* The driver's own word for the same, which programs know. */
TEST(launches_block_where_the_environment_says_so)
{
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    NEEDS_GPU(d);
    CHECK(mc_cuda_blocking() && !mc_flag_int(FLAG_cuda_blocking), "the environment is not read");
    launch_wildly(d);
}

TEST(a_forked_child_is_told)
{
    NEEDS_GPU(d);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        bool told = !mc_cuda_alloc(d, 16, "x") && strstr(mc_last_error(), "CUDA does not survive a fork") &&
                    !mc_cuda_start(0) && mc_cuda_count() == 0;
        _exit(told ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child's status is %d", status);
}

TEST(every_gpu_answers)
{
    NEEDS_GPU(d);
    for (int i = 0; i < mc_cuda_count(); i++) {
        struct mc_cuda *e = mc_cuda_start(i);
        REQUIRE(e && e == mc_cuda_start(i), "cuda%d: %s", i, mc_last_error());
        void *p = mc_cuda_alloc(e, 100, "x");
        CHECK(p && (uintptr_t)p % 256 == 0, "%s: %s", e->id, mc_last_error());
        CHECK(mc_cuda_enter(e) == MC_OK && mc_cuda_enter(d) == MC_OK && mc_cuda_current() == d, "%s",
              mc_last_error());
        mc_cuda_leave(d);
        CHECK(mc_cuda_current() == e, "not back in %s", e->id);
        mc_cuda_leave(e);
        mc_cuda_free(e, p);
    }
    CHECK(!mc_cuda_start(mc_cuda_count()) && strstr(mc_last_error(), "this machine has "), "%s",
          mc_last_error());
}

/* Solvers' texts cast as kernels do, and as docs/limits.md says: the nearest number that there is, NaN to
 * 0. */
TEST(texts_of_solvers_cast_to_the_nearest_integer)
{
    static const float x[] = { 3.9f,  -3.9f, 127.5f, -128.7f, 300,   -300,     70000,     -70000, 3e9f,
                               -3e9f, 5e9f,  1e19f,  -1e19f,  1e30f, INFINITY, -INFINITY, NAN };
    static const struct { mc_dtype to; double low, high; } rows[] = {
        { MC_INT8, -128, 127 }, { MC_INT16, -32768, 32767 }, { MC_INT32, -2147483648.0, 2147483647.0 }, { MC_INT64, -0x1p63, 0x1p63 },
        { MC_UINT8, 0, 255 },   { MC_UINT16, 0, 65535 },     { MC_UINT32, 0, 4294967295.0 },           { MC_UINT64, 0, 0x1p64 },
    };
    static const mc_dtype from[] = { MC_FLOAT32, MC_FLOAT64 };
    enum { N = sizeof x / sizeof *x };
    NEEDS_GPU(d);
    REQUIRE(mc_cuda_enter(d) == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < sizeof rows / sizeof *rows * 2; i++) {
        const mc_dtype to = rows[i / 2].to;
        mc_array *floats = mc_array_from(MC_FLOAT32, MC_SHAPE(N), x),
                 *wide = mc_array_cast(floats, from[i % 2]), *zeros = mc_array_new(to, MC_SHAPE(N));
        mc_array *a = mc_array_to(wide, "cuda0"), *b = mc_array_to(zeros, "cuda0"), *home = NULL;
        struct mc_cuda_copy *c = mc_cuda_copy_new(
            &(struct mc_cuda_layout){ to, from[i % 2], 1, { N }, { 1 }, { 1 }, { false } });
        if (CHECK(a && b && c && mc_cuda_copy_run(c, b->data, a->data) == MC_OK &&
                      (home = mc_array_to(b, "cpu")),
                  "%s", mc_last_error())) {
            for (int64_t k = 0; k < N; k++) {
                const double v = (double)x[k],
                             want = isnan(v) ? 0 : fmin(fmax(trunc(v), rows[i / 2].low), rows[i / 2].high);
                CHECK(fabs(mc_array_get(home, &k) - want) <= 0, "%s to %s: %g is %.20g, not %.20g",
                      mc_dtype_name(from[i % 2]), mc_dtype_name(to), v, mc_array_get(home, &k), want);
            }
        }
        mc_cuda_copy_free(c);
        mc_array_unref(&floats);
        mc_array_unref(&wide);
        mc_array_unref(&zeros);
        mc_array_unref(&a);
        mc_array_unref(&b);
        mc_array_unref(&home);
    }
    mc_cuda_leave(d);
}
