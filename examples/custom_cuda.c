/* custom_cuda.c: ops of your own in CUDA C: the tutorial's doubling op, and what its exercises ask for: two inputs, two
 * results, inputs that do not lie in C order.  Needs a GPU. */
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

int main(void)
{
    if (mc_flag_set("device", "cuda") < 0) {
        return puts(mc_last_error()), 1;
    }
    mc_graph *g = mc_graph_new();
    mc_register(g, &doubling), mc_register(g, &product), mc_register(g, &both);
    mc_formula(g, "input x float32[4, 5]; input y float32[4, 5]");
    mc_function *f = mc_compile(g, &(mc_spec){
        .inputs = "x, y",
        .outputs = "doubling(x), product(x, y), both(x, y)[0], both(x, y)[1], doubling(x.T[::-1])", /* the last one is no copy: x as it lies */
    });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    float ones[20], counted[20];
    for (int i = 0; i < 20; i++) {
        ones[i] = 1;
        counted[i] = (float)i;
    }
    mc_array *x = mc_array_wrap(MC_FLOAT32, MC_SHAPE(4, 5), NULL, counted, NULL, NULL), *y = mc_array_wrap(MC_FLOAT32, MC_SHAPE(4, 5), NULL, ones, NULL, NULL);
    mc_array *out[5] = { 0 };
    int bad = mc_call(f, MC_IN(x, y), MC_OUT(&out[0], &out[1], &out[2], &out[3], &out[4])) < 0;
    if (bad) {
        puts(mc_last_error());
    }
    for (int i = 0; i < 5; i++) {
        if (out[i]) {
            mc_array_print(out[i], stdout);
        }
        mc_array_unref(&out[i]);
    }
    mc_array_unref(&x), mc_array_unref(&y), mc_function_free(f), mc_graph_free(g);
    return bad;
}
