/* save.c: writes FOLDER/NAME.mcf, a function, and FOLDER/NAME.npz: inputs (in0, ...), the results of a
 * first and a
 * second call (first0, ..., second0, ...).  runtime.c, which has no compiler, loads and calls the same. */
#include <monochord.h>

#include <stdlib.h>
#include <string.h>

enum { MOST = 8, NAMES = 3 * MOST };

/* x: images (4, 3, 20, 18); v: (30, 40); d: the same in float64; i: 7 numbers from 0 to 29; h: (9, 33)
 * float16 */
static const char inputs[] = "x, v, d, i, h";
static const struct { const char *name, *outputs, *updates, *mode; } rows[] = {
    { "maps", "tanh(v) * 2 + exp(-v), where(d > 0, d, log1p(abs(d))), cast(v * 50, 'int8'), h * h + 1, i // 3 + i % 5",
      NULL },
    { "reductions", "sum(v), softmax(v), max(d, axis=0), argmax(v, axis=1), sum(h, axis=1), prod(d, axis=1)", NULL },
    { "products", "dot(v, W), dot(d, d.T), dot(v, u), dot(h, h.T), relu(dot(v, W) + 1)", NULL },
    { "images", "conv(x, K, border=1), conv(x, L), pool(conv(x, K), ws=[2, 2]), lrn(x, n=3), pool(x, ws=[3, 3], "
                "stride=[2, 2], mode='average_exc_pad')", NULL },
    { "training", "mean(sqr(conv(x, K) - 0.1)), sum(K)",
      "K = K - 0.01 * grad(mean(sqr(conv(x, K) - 0.1)), K); W = W * 0.9" },
    { "indexing", "v[i], v[i, i], sort(v, axis=1), argsort(d, axis=0), cumsum(v, axis=0), concatenate(v, v, axis=1), "
                  "set_subtensor(v[2:5], 1), v.T[::-1, 3:]", NULL },
    { "custom", "smooth(v) * 2, softmax(smooth(v)), sum(mixed(d, v), axis=0), smooth(h), dot(smooth(v), W)", NULL },
    { "custom by the reference", "smooth(v), mixed(d, v), smooth(h), smooth(d)", NULL, "FAST_COMPILE" },
    { "loops", "scan(r in v, h from u * 0: h = tanh(h * 0.5 + r * u); yield h, sum(h)), scan(steps=100, y from 1.0f32: "
               "old = y; y = (y + 2 / y) / 2; yield last y, count; until abs(y - old) < 1e-5), scan(r in v, q from "
               "0.5f32: q = q + scan(e in r, k from q: k = k * 0.5 + e; yield last k); yield q)",
      "W = W - 0.01 * grad(sum(sqr(scan(r in v, h from W[0] * 0: h = tanh(dot(r, W) + h)))), W)" },
    { "convolutions", "conv(x, K, algo='fft'), conv(x, L, border='full', algo='fft'), conv(x, K, border=1, "
                      "algo='winograd'), conv(x, L, algo='direct'), conv(reshape(cast(d, 'float32'), [1, 1, 30, 40]), "
                      "L[:, :1], algo='fft'), grad(sum(sqr(conv(x, L, algo='fft'))), x), grad(sum(sqr(conv(x, K, "
                      "algo='direct'))), x)",
      "K = K - 0.01 * grad(sum(sqr(conv(x, K, algo='direct'))), K); L = L - 0.01 * grad(sum(sqr(conv(x, L, algo='fft'))), L)" },
    { "windows", "pool(reshape(d, [1, 1, 30, 40]), ws=[2, 2]), pool(reshape(d, [1, 1, 30, 40]), ws=[3, 3], stride=[1, 1], "
                 "mode='sum'), grad(sum(sqr(pool(x, ws=[2, 2]))), x), grad(sum(sqr(pool(x, ws=[3, 3], stride=[2, 2], "
                 "mode='average_exc_pad'))), x), grad(sum(sqr(lrn(x, n=3))), x), lrn(reshape(d, [2, 15, 5, 8]), beta=0.6), "
                 "pool(x, ws=[5, 3], stride=[1, 2])",
      "K = K - 0.01 * grad(sum(sqr(pool(relu(conv(x, K)), ws=[2, 2]))), K)" },
    { "skinny products", "dot(v, W[:, :3]), dot(v[:2], W), dot(d[:3], d.T), dot(d.T, d), dot(v.T, v), dot(d.T[:, :4], "
                         "d[:4]), dot(W.T[:, :1], v[:1]), dot(v[:, 0], d[:, 1])", NULL },
    { "casts", "cast(d * 300, 'uint8'), cast(h * 9, 'int32'), cast(v * 9, 'float16'), cast(i - 9, 'uint64'), cast(d * 2, "
               "'bool'), cast(h, 'float64'), cast(v.T[1:, ::2], 'int16'), cast(cast(i - 15, 'uint32'), 'float32')", NULL },
    { "choices", "ifelse(i[0] > 9, tanh(v) * 2, dot(v, W)[:, 0:40]), ifelse(i[0] <= 9, [softmax(v), sum(d)], [v * u, max(d)])[0], "
                 "ifelse(i[1] > 9, v[1:], v), scan(r in v, a from u * 0: a = ifelse(sum(r) > 0, a + softmax(r), ifelse(max(a) > 1, a * 0.5, "
                 "smooth(a))); yield a, sum(a))",
      "W = W - 0.01 * grad(ifelse(i[0] > 9, sum(sqr(dot(v, W))), sum(W)), W)" },
    { "random", "uniform(rng, [5, 7]), normal(rng, shape(v)), bernoulli(rng, 0.3), permutation(rng, 12)", NULL },
};

static int fail(const char *what, const char *why)
{
    printf("save: %s: %s\n", what, why);
    return 1;
}

/* Numbers from -1 to 1, by a linear congruence. */
static mc_array *numbers(mc_dtype d, int rank, const int64_t *dims, double scale, double shift)
{
    static uint64_t state = 7;
    mc_array *a = mc_array_new(MC_FLOAT64, rank, dims);
    double *p = a ? mc_array_data(a) : NULL;
    for (int64_t i = 0; p && i < mc_array_size(a); i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        p[i] = ((double)(state >> 11) * 0x1p-52 - 1) * scale + shift;
    }
    mc_array *b = a ? mc_array_cast(a, d) : NULL;
    mc_array_unref(&a);
    return b;
}

static void variable(mc_graph *g, const char *name, int rank, const int64_t *dims)
{
    mc_array *a = numbers(MC_FLOAT32, rank, dims, 0.5, 0);
    mc_shared_new(g, name, a);
    mc_array_unref(&a);
}

static mc_status call(mc_function *f, mc_array *const *in, mc_array **out, int n)
{
    mc_arg to[MOST];
    for (int i = 0; i < n; i++) {
        to[i] = mc_arg_slot(&out[i]);
    }
    return mc_call_args(f, 5,
                        (mc_arg[]){ mc_arg_array(in[0]), mc_arg_array(in[1]), mc_arg_array(in[2]),
                                    mc_arg_array(in[3]), mc_arg_array(in[4]) },
                        n, to);
}

static int save(const char *folder, size_t row)
{
    char path[1000];
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 4);
    mc_input(g, "v", MC_FLOAT32, 2);
    mc_input(g, "d", MC_FLOAT64, 2);
    mc_input(g, "i", MC_INT64, 1);
    mc_input(g, "h", MC_FLOAT16, 2);
    variable(g, "K", MC_SHAPE(6, 3, 3, 3));
    variable(g, "L", MC_SHAPE(4, 3, 7, 7));
    variable(g, "W", MC_SHAPE(40, 50));
    variable(g, "u", MC_SHAPE(40));
    mc_random(g, "rng", 17);
    mc_register(g, &(mc_custom){ .name = "smooth", .nin = 1, .nout = 1, .kernel = "a / (1 + M(exp)(-a))" });
    mc_register(g, &(mc_custom){ .name = "mixed", .nin = 2, .nout = 1, .kernel = "a * M(tanh)(b) - b" });
    mc_array *in[5] = { numbers(MC_FLOAT32, MC_SHAPE(4, 3, 20, 18), 1, 0), numbers(MC_FLOAT32, MC_SHAPE(30, 40), 1, 0),
                        numbers(MC_FLOAT64, MC_SHAPE(30, 40), 1, 0), numbers(MC_INT64, MC_SHAPE(7), 14, 15),
                        numbers(MC_FLOAT16, MC_SHAPE(9, 33), 1, 0) };
    mc_function *f = mc_compile(g, &(mc_spec){ .name = rows[row].name,
                                               .inputs = inputs,
                                               .outputs = rows[row].outputs,
                                               .updates = rows[row].updates,
                                               .mode = rows[row].mode,
                                               .on_unused = "ignore" });
    if (!f) {
        return fail(rows[row].name, mc_error(g));
    }
    mc_snprintf(path, sizeof path, "%s/%s.mcf", folder, rows[row].name);
    if (mc_function_save(f, path) < 0) {
        return fail(path, mc_last_error());
    }
    const int n = mc_function_noutputs(f);
    mc_array *first[MOST] = { 0 }, *second[MOST] = { 0 };
    if (n > MOST || call(f, in, first, n) < 0 || call(f, in, second, n) < 0) {
        return fail(rows[row].name, mc_last_error());
    }
    char name[NAMES][16];
    const char *names[NAMES];
    const mc_array *arrays[NAMES];
    int k = 0;
    for (int i = 0; i < 5; i++, k++) {
        mc_snprintf(name[k], sizeof name[k], "in%d", i);
        arrays[k] = in[i];
    }
    for (int i = 0; i < n; i++, k++) {
        mc_snprintf(name[k], sizeof name[k], "first%d", i);
        arrays[k] = first[i];
    }
    for (int i = 0; i < n; i++, k++) {
        mc_snprintf(name[k], sizeof name[k], "second%d", i);
        arrays[k] = second[i];
    }
    for (int i = 0; i < k; i++) {
        names[i] = name[i];
    }
    mc_snprintf(path, sizeof path, "%s/%s.npz", folder, rows[row].name);
    if (mc_archive_save(path, NULL, k, names, arrays) < 0) {
        return fail(path, mc_last_error());
    }
    for (int i = 0; i < n; i++) {
        mc_array_unref(&first[i]);
        mc_array_unref(&second[i]);
    }
    for (int i = 0; i < 5; i++) {
        mc_array_unref(&in[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
    return 0;
}

int main(int argc, char **argv)
{
    int bad = argc != 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !bad; i++) {
        bad = save(argv[1], i);
    }
    return bad;
}
