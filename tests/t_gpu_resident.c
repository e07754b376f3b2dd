/* t_gpu_resident.c: loops that one kernel runs on a GPU: the numbers of the processor, for cells, batches and
 * widths that kernels divide in other ways, captured and replayed. */
#include "gpu_words.h"

enum { STEPS = 11, MOST_OUTPUTS = 5 };

static const char *const cells[] = {
    /* states, slices and a product with an epilogue */
    "y = scan(x in xs, h from h0: h = tanh(dot(x, W[:, :N]) + dot(h, U[:, :N])))",
    ("y = scan(x in xs, c from h0, h from h0: p = dot(x, W) + dot(h, U) + b; i = sigmoid(p[:, :N]);"
    " f = sigmoid(p[:, N:2 * N]); c = f * c + i * tanh(p[:, 2 * N:3 * N]); h = sigmoid(p[:, 3 * N:]) * tanh(c);"
    " yield h)"),
    /* results that are copied, and two joins of the same parts in the gradient */
    ("y = scan(x in xs, h from h0: p = dot(x, W) + b; q = dot(h, U); r = sigmoid(p[:, :N] + q[:, :N]);"
    " z = sigmoid(p[:, N:2 * N] + q[:, N:2 * N]); m = tanh(p[:, 2 * N:3 * N] + r * q[:, 2 * N:3 * N]);"
    " h = (1 - z) * m + z * h; yield h)"),
    /* two equal maps */
    "y = scan(x in xs, h from h0: h = sin(dot(sin(dot(h + x, U[:, :N])), W[:, N:2 * N])))",
    /* no products: one block */
    "y = scan(x in xs, h from h0: h = sin(h * 2 + x) * W[0, 0] - U[0, 0] * h[:, ::-1])",
    ("y = scan(x in xs, v from h0, h from h0 * 2: v = v - h * W[0, 0] + x; h = h + v * U[0, 0]; yield h)"),
    /* two products, the second of what the first made */
    ("y = scan(x in xs, h from h0: f = sigmoid(dot(x, W[:, :N]) + dot(h, U[:, :N]));"
    " h = (1 - f) * h + f * tanh(dot(f * h, U[:, N:2 * N])); yield h)"),
};

static mc_array *drawn(unsigned *seed, int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        *seed = *seed * 1664525u + 1013904223u;
        ((float *)a->data)[i] = ((float)(*seed >> 8) / 16777216.0f - 0.5f) * 0.8f;
    }
    return a;
}

/* The cell with a number in place of each N. */
static void with_width(char *out, const char *cell, int64_t n)
{
    for (; *cell; cell++) {
        out += *cell == 'N' ? sprintf(out, "%lld", (long long)n) : (*out = *cell, 1);
    }
    *out = '\0';
}

/* The outputs of three calls, of which the later ones are replayed on a GPU; the last are kept. */
static bool results(const char *cell, const char *device, int64_t batch, int64_t n,
                    mc_array **out)
{
    char text[1200], own[1000];
    unsigned seed = 7;
    mc_graph *g = mc_graph_new();
    with_width(own, cell, n);
    snprintf(
        text, sizeof text,
        "input xs float32[?, ?, ?]; input h0 float32[?, ?]; input W float32[?, ?]; input U float32[?, ?];"
        "input b float32[?]\n%s",
        own);
    bool good = mc_flag_set("device", device) == MC_OK && mc_flag_set("cuda.resident", "True") == MC_OK &&
                !mc_is_error(mc_formula(g, text));
    mc_function *f = good ? mc_compile(
                                g, &(mc_spec){ .inputs = "xs, h0, W, U, b",
                                               .outputs = "y, grad(sum(sin(y)), xs), grad(sum(sin(y)), W), "
                                                          "grad(sum(sin(y)), U), grad(sum(sin(y)), h0)",
                                               .on_unused = "ignore" })
                          : NULL;
    mc_array *in[] = { drawn(&seed, MC_SHAPE(STEPS, batch, n)), drawn(&seed, MC_SHAPE(batch, n)),
                       drawn(&seed, MC_SHAPE(n, 4 * n)), drawn(&seed, MC_SHAPE(n, 4 * n)),
                       drawn(&seed, MC_SHAPE(4 * n)) };
    good = f != NULL;
    for (int call = 0; call < 3 && good; call++) {
        for (int i = 0; i < MOST_OUTPUTS; i++) {
            mc_array_unref(&out[i]);
        }
        good = mc_call(f, MC_IN(in[0], in[1], in[2], in[3], in[4]),
                       MC_OUT(&out[0], &out[1], &out[2], &out[3], &out[4])) == MC_OK;
    }
    CHECK(good, "%s\n%s: %s", cell, device, f ? mc_last_error() : mc_error(g));
    for (int i = 0; i < (int)NELEM(in); i++) {
        mc_array_unref(&in[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
    return good;
}

static double furthest(const mc_array *a, const mc_array *b)
{
    double most = 0, size = 1e-30;
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        const double x = ((const float *)a->data)[i], y = ((const float *)b->data)[i];
        most = fmax(most, fabs(x - y));
        size = fmax(size, fabs(y));
    }
    return most / size;
}

TEST(gpu_resident_loops_equal_the_processor)
{
    static const struct {
        int64_t batch, n;
    } sizes[] = { { 2, 4 }, { 5, 12 }, { 70, 8 }, { 1, 8 }, { 3, 6 }, { 16, 8 }, { 40, 12 }, { 32, 8 } };
    ON_GPU();
    for (size_t c = 0; c < NELEM(cells); c++) {
        for (size_t s = 0; s < NELEM(sizes); s++) {
            mc_array *want[MOST_OUTPUTS] = { 0 }, *got[MOST_OUTPUTS] = { 0 };
            const bool both = results(cells[c], "cpu", sizes[s].batch, sizes[s].n, want) &&
                              results(cells[c], "cuda", sizes[s].batch, sizes[s].n, got);
            for (int i = 0; i < MOST_OUTPUTS && both; i++) {
                const double d = furthest(got[i], want[i]);
                CHECK(d < 2e-5, "cell %zu, batch %lld, %lld units: output %d is %g away", c,
                      (long long)sizes[s].batch, (long long)sizes[s].n, i, d);
            }
            for (int i = 0; i < MOST_OUTPUTS; i++) {
                mc_array_unref(&want[i]);
                mc_array_unref(&got[i]);
            }
        }
    }
    mc_flag_set("device", "cpu");
}
