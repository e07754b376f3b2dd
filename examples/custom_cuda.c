/* custom_cuda.c: ops of your own in CUDA C: a GPU tutorial's product of two vectors and its doubling op, and
 * what the exercises ask for: matrices, two inputs, two results, inputs that do not lie in C order.  Needs a
 * GPU. */
#include <monochord.h>

/* What each kernel begins with: the thread's number. */
#define THREAD "    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"

static const mc_custom doubling = {
    .name = "doubling", .nin = 1, .nout = 1, .threads = 512,
    .cuda = "extern \"C\" __global__ void doubling(view<const float> x, view<float> y)\n{\n" THREAD
            "    if (i < y.n) y[i] = 2 * x[i];\n}\n",
};
static const mc_custom product = {
    .name = "product", .nin = 2, .nout = 1,
    .cuda = "extern \"C\" __global__ void product(view<const float> x, view<const float> y, view<float> z)\n{\n" THREAD
            "    if (i < z.n) z[i] = x[i] * y[i];\n}\n",
};
static const mc_custom both = {
    .name = "both", .nin = 2, .nout = 2,
    .cuda = "extern \"C\" __global__ void both(view<const float> x, view<const float> y, view<float> sum, view<float> difference)\n{\n" THREAD
            "    if (i < sum.n) {\n        sum[i] = x[i] + y[i];\n        difference[i] = x[i] - y[i];\n    }\n}\n",
};

static const struct step {
    const char *what;
    int rows, columns;
    const char *formula, *plain; /* the same without ops of our own */
} steps[] = {
    /* no copy: x as it lies */
    { "a product of 400 numbers", 1,  400, "product(x, y)",       "x * y"         },
    { "exercise: of a matrix",    20, 10,  "product(x, y)",       "x * y"         },
    { "the doubling op",          4,  5,   "doubling(x)",         "2 * x"         },
    { "exercise: two matrices",   4,  5,   "product(x, y)",       "x * y"         },
    { "exercise: two results",    4,  5,   "both(x, y)[0]",       "x + y"         },
    { "and the second of them",   4,  5,   "both(x, y)[1]",       "x - y"         },
    { "exercise: strides",        4,  5,   "doubling(x.T[::-1])", "2 * x.T[::-1]" },
};

static int failed(const char *why)
{
    return puts(why), 1;
}

static int run(mc_graph *g, const struct step *s, float *counted, float *others)
{
    char outputs[128];
    snprintf(outputs, sizeof outputs, "%s, max(abs(%s - (%s)))", s->formula, s->formula, s->plain);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = outputs, .on_unused = "ignore" });
    if (!f) {
        return failed(mc_error(g));
    }
    mc_array *x = mc_array_wrap(MC_FLOAT32, MC_SHAPE(s->rows, s->columns), NULL, counted, NULL, NULL);
    mc_array *y = mc_array_wrap(MC_FLOAT32, MC_SHAPE(s->rows, s->columns), NULL, others, NULL, NULL),
             *out = NULL;
    float off = 1;
    int bad = mc_call(f, MC_IN(x, y), MC_OUT(&out, &off)) < 0 ? failed(mc_last_error()) : off != 0;
    if (out) {
        printf("%-25s %s, off by %g from %s\n", s->what, s->formula, (double)off, s->plain);
    }
    if (out && s->rows == 4) {
        mc_array_print(out, stdout);
    }
    mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&out), mc_function_free(f);
    return bad;
}

int main(void)
{
    float counted[400], others[400];
    if (mc_flag_set("device", "cuda") < 0) {
        return failed(mc_last_error());
    }
    for (int i = 0; i < 400; i++) {
        counted[i] = (float)i;
        others[i] = 1 + (float)(i % 3);
    }
    mc_graph *g = mc_graph_new();
    mc_register(g, &doubling), mc_register(g, &product), mc_register(g, &both);
    mc_formula(g, "input x float32[?, ?]; input y float32[?, ?]");
    int bad = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !bad; i++) {
        bad = run(g, &steps[i], counted, others);
    }
    mc_graph_free(g);
    return bad;
}
