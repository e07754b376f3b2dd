/* t_shared.c: all shared variables of a graph in a file: what is saved comes back, and a file that does not
 * fit changes nothing. */
#include "own_folder.h"
#include "op/op.h"

static mc_graph *new_graph(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared W float32[2, 3]; shared b float64 = 2.5; shared k int32[2] = 7");
    mc_array *rows = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 2));
    mc_shared_sized(g, "rows", rows, (int64_t[]){ -1, 2 });
    mc_random(g, "rng", 11);
    mc_array_unref(&rows);
    return g;
}

static void put(mc_graph *g, const char *name, double v)
{
    mc_array *a = mc_shared_get(mc_shared_named(g, name));
    const int64_t zero[MC_MAX_RANK] = { 0 };
    CHECK(mc_array_set(a, zero, v) == MC_OK && mc_shared_set(mc_shared_named(g, name), a) == MC_OK, "%s",
          mc_last_error());
    mc_array_unref(&a);
}

static double first(mc_graph *g, const char *name)
{
    mc_array *a = mc_shared_get(mc_shared_named(g, name));
    const int64_t zero[MC_MAX_RANK] = { 0 };
    double v = a && mc_array_size(a) ? mc_array_get(a, zero) : -1;
    mc_array_unref(&a);
    return v;
}

TEST(what_is_saved_comes_back)
{
    mc_graph *g = new_graph(), *h = new_graph();
    mc_array *longer = mc_array_new(MC_FLOAT32, MC_SHAPE(9, 2));
    mc_array_set(longer, (int64_t[]){ 8, 1 }, 5);
    CHECK(mc_shared_set(mc_shared_named(g, "rows"), longer) == MC_OK, "%s", mc_last_error());
    put(g, "W", 0.25), put(g, "b", 1e-3), put(g, "k", -4), put(g, "rng", 99);
    const char *path = in_folder("all.npz");
    CHECK(mc_graph_save_shared(g, path) == MC_OK, "%s", mc_last_error());
    mc_archive *z = mc_archive_open(path);
    CHECK(z && mc_archive_count(z) == 5, "%s", mc_last_error());
    mc_archive_close(z);
    CHECK(mc_graph_load_shared(h, path) == MC_OK, "%s", mc_last_error());
    CHECK(first(h, "W") == 0.25 && first(h, "b") == 1e-3 && first(h, "k") == -4 && first(h, "rng") == 99,
          "other values");
    mc_array *rows = mc_shared_get(mc_shared_named(h, "rows"));
    CHECK(rows && mc_array_dims(rows)[0] == 9 && mc_array_get(rows, (int64_t[]){ 8, 1 }) == 5,
          "a size that may change");
    mc_array_unref(&rows);
    mc_array_unref(&longer);
    mc_graph_free(g);
    mc_graph_free(h);
    g = mc_graph_new(), h = mc_graph_new(); /* none at all */
    CHECK(mc_graph_save_shared(g, in_folder("none.npz")) == MC_OK &&
              mc_graph_load_shared(h, in_folder("none.npz")) == MC_OK,
          "%s", mc_last_error());
    mc_graph_free(g);
    mc_graph_free(h);
    drop_folder();
}

/* A compiled function computes with what was loaded. */
TEST(functions_see_what_was_loaded)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared a float64[2] = 1; shared s float64 = 3");
    CHECK(mc_graph_save_shared(g, in_folder("a.npz")) == MC_OK, "%s", mc_last_error());
    mc_function *f = mc_compile(
        g, &(mc_spec){ .outputs = "sum(a) * s", .updates = "a = a + 1; s = 2 * s", .mode = "FAST_COMPILE" });
    double y = 0;
    CHECK(f && mc_call(f, MC_NONE, MC_OUT(&y)) == MC_OK && y == 6, "%s: %g", mc_last_error(), y);
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y)) == MC_OK && y == 24, "%g", y);
    CHECK(mc_graph_load_shared(g, in_folder("a.npz")) == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y)) == MC_OK && y == 6, "%g", y);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* Each file is one of another graph; the mistake is in the last variable that is looked at, or before. */
static const struct { const char *graph; mc_status status; const char *says; } wrongs[] = {
    { "shared W float32[2, 3] = 9; shared b float64 = 9",                              MC_EARG,   "the file has no 'k'" },
    { "shared W float32[2, 3] = 9; shared b float64 = 9; shared k int32[2] = 9; shared extra float32", MC_EARG, "the file has 'extra', but the graph has not" },
    { "shared W float32[3, 2] = 9; shared b float64 = 9; shared k int32[2] = 9",       MC_ESHAPE, "W has shape (2, 3), not (3, 2)" },
    { "shared W float32[2, 3] = 9; shared b float64[1] = 9; shared k int32[2] = 9",    MC_ESHAPE, "b has shape (), not (1,)" },
    { "shared W float32[2, 3] = 9; shared b float64 = 9; shared k int64[2] = 9",       MC_ETYPE,  "k has dtype int32; a value of dtype int64 would lose digits; cast it first" },
};

TEST(what_does_not_fit_changes_nothing)
{
    for (size_t i = 0; i < NELEM(wrongs); i++) {
        mc_graph *g = mc_graph_new(), *h = mc_graph_new();
        mc_formula(g, wrongs[i].graph);
        mc_formula(h, "shared W float32[2, 3] = 1; shared b float64 = 2; shared k int32[2] = 3");
        const char *path = in_folder("other.npz");
        CHECK(mc_graph_save_shared(g, path) == MC_OK, "%s", mc_last_error());
        mc_status s = mc_graph_load_shared(h, path);
        CHECK(s == wrongs[i].status && strstr(mc_last_error(), wrongs[i].says) &&
                  strstr(mc_last_error(), path),
              "%s: %s", mc_status_name(s), mc_last_error());
        CHECK(first(h, "W") == 1 && first(h, "b") == 2 && first(h, "k") == 3, "something has changed: %s",
              wrongs[i].says);
        mc_graph_free(g);
        mc_graph_free(h);
    }
    mc_graph *g = new_graph();
    put(g, "W", 4);
    CHECK(mc_graph_save_shared(NULL, "x") == MC_EARG && strstr(mc_last_error(), "the graph is NULL"), "%s",
          mc_last_error());
    CHECK(mc_graph_load_shared(NULL, "x") == MC_EARG && strstr(mc_last_error(), "the graph is NULL"), "%s",
          mc_last_error());
    CHECK(mc_graph_save_shared(g, NULL) == MC_EARG && strstr(mc_last_error(), "the path is NULL"), "%s",
          mc_last_error());
    CHECK(mc_graph_load_shared(g, NULL) == MC_EARG && strstr(mc_last_error(), "the path is NULL"), "%s",
          mc_last_error());
    CHECK(mc_graph_load_shared(g, in_folder("nowhere.npz")) == MC_EFILE, "%s", mc_last_error());
    put_file("damaged.npz", "PK\3\4 and no more", 17);
    CHECK(mc_graph_load_shared(g, in_folder("damaged.npz")) == MC_EFORMAT && first(g, "W") == 4, "%s",
          mc_last_error());
    CHECK(mc_graph_save_shared(g, "/nowhere/at/all.npz") == MC_EFILE, "%s", mc_last_error());
    mc_graph_free(g);
    drop_folder();
}

TEST(every_failed_allocation_changes_nothing)
{
    mc_op_find("add");
    mc_graph *g = new_graph(), *h = new_graph();
    mc_array *longer = mc_array_new(MC_FLOAT32, MC_SHAPE(9, 2));
    CHECK(mc_shared_set(mc_shared_named(g, "rows"), longer) == MC_OK, "%s", mc_last_error());
    put(g, "W", 8), put(g, "k", 8);
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("all.npz"));
    ALLOC_FAIL_LOOP {
        mc_status s = mc_graph_save_shared(g, path);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
    }
    CHECK(mc_graph_save_shared(g, path) == MC_OK, "%s", mc_last_error());
    float *w = mc_array_data(mc_shared_named(h, "W")->value);
    int32_t *k = mc_array_data(mc_shared_named(h, "k")->value);
    ALLOC_FAIL_LOOP {
        *w = 1, *k = 2;
        mc_status s = mc_graph_load_shared(h, path);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        CHECK(s == MC_OK ? *w == 8 && *k == 8 : *w == 1 && *k == 2, "half of the variables: %g %d", *w, *k);
    }
    mc_array_unref(&longer);
    mc_graph_free(g);
    mc_graph_free(h);
    drop_folder();
}
