/* t_custom_cuda.c: users' ops given as CUDA C: results, inputs as they lie, the compiler's words, indices out
 * of range. */
#include "cuda_test.h"
#include "sample.h"
#include <string.h>

#define HEAD(name, args) "extern \"C\" __global__ void " name "(" args ")\n{\n    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"

static mc_status shared_shape(void *arg, int nin, const mc_dtype *dtype, const int *rank,
                              const int64_t *const *dims, int i, mc_dtype *out_dtype, int *out_rank,
                              int64_t *out_dims)
{
    (void)arg, (void)i, (void)nin;
    *out_dtype = dtype[0];
    *out_rank = rank[0];
    memcpy(out_dims, dims[0], (size_t)rank[0] * sizeof *dims[0]);
    return MC_OK;
}

static const mc_custom twice = { .name = "twice", .nin = 1, .nout = 1, .threads = 512,
                                 .cuda = HEAD("twice", "view<const float> x, view<float> y") "    if (i < y.n) y[i] = 2 * x[i];\n}\n" };
static const mc_custom both = { .name = "both", .nin = 2, .nout = 2, .infer = shared_shape,
                                .cuda = HEAD("both", "view<const float> x, view<const float> y, view<float> sum, view<float> difference")
                                    "    if (i < sum.n) {\n        sum[i] = x[i] + y[i];\n        difference[i] = x[i] - y[i];\n    }\n}\n" };
static const mc_custom beyond = { .name = "beyond", .nin = 1, .nout = 1,
                                  .cuda = HEAD("beyond", "view<const float> x, view<float> y") "    if (i < y.n) y[i + (i > 17)] = x[i];\n}\n" };
static const mc_custom wrong = { .name = "wrong", .nin = 1, .nout = 1,
                                 .cuda = HEAD("wrong", "view<const float> x, view<float> y") "    y[i] = nothing_there;\n}\n" };

static const mc_custom astray = { .name = "astray", .nin = 1, .nout = 1,
                                  .cuda = HEAD("astray", "view<const float> x, view<float> y") "    if (i < y.n) y.data[i + (1ll << 44)] = x[i];\n}\n" };

static mc_graph *new_graph(void)
{
    mc_graph *g = mc_graph_new();
    const mc_custom *const ops[] = { &twice, &both, &beyond, &wrong, &astray };
    for (size_t i = 0; g && i < NELEM(ops); i++) {
        CHECK(mc_register(g, ops[i]) == MC_OK, "%s", mc_error(g));
    }
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "y", MC_FLOAT32, 2);
    mc_input(g, "d", MC_FLOAT64, 2);
    return g;
}

TEST(cuda_ops_take_what_lies_there)
{
    static const char *const formulas[] = { "twice(x)", "twice(x.T)", "twice(x[::-1, ::2])", "twice(x + 1) * 3", "both(x, y)[0]", "both(x, y)[1]",
                                            "both(x, twice(y))[1] + both(y[::-1], x)[0]", "sum(both(x, y)[1], axis=0)" };
    static const char *const want[] = { "2 * x", "2 * x.T", "2 * x[::-1, ::2]",        "6 * (x + 1)",
                                        "x + y", "x - y",   "x - 2 * y + y[::-1] + x", "sum(x - y, axis=0)" };
    ON_GPU();
    mc_graph *g = new_graph();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 20, 10 }, -1, 1),
             *y = sample(MC_FLOAT32, 2, (int64_t[]){ 20, 10 }, 1, 1);
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_array *a = NULL, *b = NULL;
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, y", .outputs = formulas[i], .on_unused = "ignore" });
        mc_function *h = mc_compile(
            g, &(mc_spec){ .inputs = "x, y", .outputs = want[i], .on_unused = "ignore" });
        CHECK(f && h, "%s: %s", formulas[i], mc_error(g));
        for (int turn = 0; f && h && turn < 3; turn++) { /* the third is replayed */
            bool ran = mc_call(f, MC_IN(x, y), MC_OUT(&a)) == MC_OK &&
                       mc_call(h, MC_IN(x, y), MC_OUT(&b)) == MC_OK;
            CHECK(ran, "%s: %s", formulas[i], mc_last_error());
            CHECK(ran && mc_array_differs(a, b, 1e-6, 1e-6) < 0, "%s", formulas[i]);
            mc_array_unref(&a);
            mc_array_unref(&b);
        }
        mc_function_free(f);
        mc_function_free(h);
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_graph_free(g);
}

TEST(cuda_ops_of_wrong_text_are_refused_with_its_lines)
{
    static const struct { const char *formula, *says[3]; } rows[] = {
        { "wrong(x)", { "nothing_there", "wrong(4)", "wrong:4" } },
        { "twice(d)", { "twice takes (view<const double>, view<double>)", "twice(", "twice:" } },
    };
    ON_GPU();
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = new_graph();
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, d", .outputs = rows[i].formula, .on_unused = "ignore" });
        CHECK(!f, "%s compiles", rows[i].formula);
        CHECK(strstr(mc_last_error(), rows[i].says[0]), "%s: %s", rows[i].formula, mc_last_error());
        CHECK(strstr(mc_last_error(), rows[i].says[1]) || strstr(mc_last_error(), rows[i].says[2]), "%s: %s",
              rows[i].formula, mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(cuda_ops_that_reach_beyond_are_an_error_of_the_call)
{
    ON_GPU();
    mc_graph *g = new_graph();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 4, 5 }, -1, 1), *a = NULL;
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "step", .inputs = "x", .outputs = "beyond(x)" }),
                *h = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "twice(x)" });
    REQUIRE(f && h, "%s", mc_error(g));
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&a)) == MC_EINDEX &&
              strstr(mc_last_error(), "index 20 is out of range for size 20") &&
              strstr(mc_last_error(), "beyond(x)"),
          "%s", mc_last_error());
    CHECK(mc_call(h, MC_IN(x), MC_OUT(&a)) == MC_OK, "afterwards: %s", mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_function_free(h);
    mc_graph_free(g);
}

/* Past the views, by an address: the driver gives the GPU up, and says so for ever; the op is named, and the
 * processor goes on. */
TEST(cuda_ops_that_go_astray_lose_the_gpu_alone)
{
    ON_GPU();
    mc_graph *g = new_graph();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 4, 5 }, -1, 1), *a = NULL;
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "astray(x)" }),
                *h = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "twice(x)" });
    REQUIRE(f && h && mc_flag_set("device", "cpu") == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&a)) == MC_EDEVICE &&
              strstr(mc_last_error(), "illegal memory access") && strstr(mc_last_error(), "astray"),
          "%s", mc_last_error());
    CHECK(mc_call(h, MC_IN(x), MC_OUT(&a)) == MC_EDEVICE &&
              strstr(mc_last_error(), "cuda0 is lost to this process, since an earlier error: ") &&
              strstr(mc_last_error(), "astray"),
          "%s", mc_last_error());
    mc_function *near = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "2 * x" });
    CHECK(near && mc_call(near, MC_IN(x), MC_OUT(&a)) == MC_OK, "the processor: %s", mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&x);
    mc_function_free(near);
    mc_function_free(f);
    mc_function_free(h);
    mc_graph_free(g);
}

TEST(cuda_ops_need_a_gpu)
{
    REQUIRE(mc_flag_set("device", "cpu") == MC_OK, "%s", mc_last_error());
    mc_graph *g = new_graph();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 4, 5 }, -1, 1), *a = NULL;
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "twice(x)" });
    CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&a)) == MC_EUNSUPPORTED &&
              strstr(mc_last_error(), "twice: has only CUDA C code"),
          "%s", mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}
