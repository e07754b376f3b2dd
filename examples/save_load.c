/* save_load.c: parameters to a file and back: a .npz, which NumPy reads as well. */
#include <monochord.h>
#include <string.h>

/* p = tanh(dot(x, W) + b), the parameters zero. */
static mc_function *build(mc_graph *g)
{
    mc_formula(g,
               "input x float32[?, 3]; shared W float32[3, 2]; shared b float32[2]; p = tanh(dot(x, W) + b)");
    return mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "p" });
}

static mc_status save(mc_graph *g, const char *path)
{
    const char *names[] = { "W", "b" };
    mc_array *W = mc_shared_get(mc_shared_named(g, "W")), *b = mc_shared_get(mc_shared_named(g, "b"));
    mc_status s = mc_archive_save(path, NULL, 2, names, (const mc_array *const[]){ W, b });
    mc_array_unref(&W), mc_array_unref(&b);
    return s;
}

static mc_status load(mc_graph *g, const char *path)
{
    mc_archive *z = mc_archive_open(path);
    mc_status s = z ? MC_OK : MC_EFILE;
    for (int i = 0; i < mc_archive_count(z) && s == MC_OK; i++) {
        mc_array *value = mc_archive_load(z, mc_archive_name(z, i));
        s = value ? mc_shared_set(mc_shared_named(g, mc_archive_name(z, i)), value) : MC_EFORMAT;
        mc_array_unref(&value);
    }
    mc_archive_close(z);
    return s;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "parameters.npz";
    mc_graph *first = mc_graph_new(), *second = mc_graph_new();
    mc_function *f = build(first), *h = build(second);
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 3), (float[]){ 1, 2, 3 }), *p = NULL, *q = NULL;
    mc_array *W = mc_array_from(MC_FLOAT32, MC_SHAPE(3, 2), (float[]){ 0.1f, 0.2f, 0.3f, -0.4f, 0.5f, 0.6f });
    int good = f && h && mc_shared_set(mc_shared_named(first, "W"), W) == MC_OK;
    good = good && save(first, path) == MC_OK && load(second, path) == MC_OK;
    good = good && mc_call(f, MC_IN(x), MC_OUT(&p)) == MC_OK && mc_call(h, MC_IN(x), MC_OUT(&q)) == MC_OK;
    if (good) {
        mc_array_print(p, stdout);
        good = memcmp(mc_array_data(p), mc_array_data(q), 2 * sizeof(float)) == 0;
        printf("the other graph, with the parameters of %s, %s\n", path,
               good ? "agrees in every bit" : "differs");
    } else {
        printf("%s%s %s\n", mc_error(first), mc_error(second), mc_last_error());
    }
    mc_array_unref(&x), mc_array_unref(&p), mc_array_unref(&q), mc_array_unref(&W);
    mc_function_free(f), mc_function_free(h), mc_graph_free(first), mc_graph_free(second);
    return !good;
}
