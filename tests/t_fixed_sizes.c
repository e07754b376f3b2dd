/* t_fixed_sizes.c: functions for the sizes that shared variables have when they are compiled: results are
 * those of functions for any size, other sizes are an error that changes nothing, and what is compiled
 * after that leaves them open. */
#include "own_folder.h"

static mc_shared *sized(mc_graph *g, const char *name, int64_t rows, int64_t columns)
{
    mc_array *a = mc_array_new(MC_FLOAT64, MC_SHAPE(rows, columns));
    for (int64_t i = 0; i < rows * columns; i++) {
        mc_array_set(a, (int64_t[]){ i / columns, i % columns }, (double)i);
    }
    mc_shared *s = mc_shared_sized(g, name, a, (int64_t[]){ -1, -1 });
    mc_array_unref(&a);
    return s;
}

static void resize(mc_shared *s, int64_t rows, int64_t columns)
{
    mc_array *a = mc_array_new(MC_FLOAT64, MC_SHAPE(rows, columns));
    CHECK(mc_shared_set(s, a) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&a);
}

static mc_function *compile(mc_graph *g, int fixed)
{
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "sum(W, axis=0), size(W, 0), size(W, 1)",
                                               .updates = "n = n + 1",
                                               .fixed_sizes = fixed });
    CHECK(f, "%s", mc_error(g));
    return f;
}

static void sums(mc_function *f, double first, int64_t rows, int64_t columns)
{
    mc_array *y = NULL;
    int64_t n = 0, m = 0;
    CHECK(f && mc_call(f, MC_NONE, MC_OUT(&y, &n, &m)) == MC_OK, "%s", mc_last_error());
    CHECK(y && mc_array_get(y, (int64_t[]){ 0 }) == first && n == rows && m == columns, "%lld %lld",
          (long long)n, (long long)m);
    mc_array_unref(&y);
}

static double count(mc_graph *g)
{
    mc_array *a = mc_shared_get(mc_shared_named(g, "n"));
    const double n = a ? mc_array_get(a, NULL) : -1;
    mc_array_unref(&a);
    return n;
}

TEST(other_sizes_are_an_error_that_changes_nothing)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared n float64 = 0");
    mc_shared *w = sized(g, "W", 3, 4);
    mc_function *fixed = compile(g, 1), *any = compile(g, 0);
    sums(fixed, 12, 3, 4), sums(any, 12, 3, 4);
    resize(w, 5, 4);
    CHECK(mc_call(fixed, MC_NONE, MC_NONE) == MC_ESHAPE && strstr(mc_last_error(), "compile it again"), "%s",
          mc_last_error());
    CHECK(count(g) == 2, "a call that failed updated a variable");
    sums(any, 0, 5, 4);
    mc_function *later = compile(g, 1); /* W is known to vary */
    sums(later, 0, 5, 4);
    resize(w, 7, 2);
    sums(later, 0, 7, 2);
    resize(w, 3, 4); /* the sizes that the first one knows */
    sums(fixed, 0, 3, 4);
    mc_function_free(fixed);
    mc_function_free(later);
    mc_function_free(any);
    mc_graph_free(g);
}

/* A size of 1 does not become one that broadcasts, and a variable that is yet to be set keeps sizes open. */
TEST(sizes_of_0_and_1_stay_open)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared n float64 = 0; input x float64[?, ?]");
    mc_shared *w = sized(g, "W", 0, 3);
    mc_function *f = compile(g, 1);
    sums(f, 0, 0, 3);
    resize(w, 2, 3);
    sums(f, 0, 2, 3);
    resize(w, 1, 3);
    mc_function *add = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + W", .fixed_sizes = 1 });
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(4, 3)), *y = NULL;
    CHECK(mc_call(add, MC_IN(x), MC_OUT(&y)) == MC_ESHAPE, "a size of 1 broadcast");
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_function_free(add);
    mc_graph_free(g);
}

TEST(saved_functions_know_their_sizes)
{
    mc_flag_set("device", "cpu"); /* the tests' own device has no bundles */
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared n float64 = 0");
    sized(g, "W", 3, 4);
    mc_function *f = compile(g, 1);
    CHECK(mc_function_save(f, in_folder("fixed.mcf")) == MC_OK, "%s", mc_last_error());
    mc_function *loaded = mc_function_load(in_folder("fixed.mcf"));
    REQUIRE(loaded, "%s", mc_last_error());
    sums(loaded, 12, 3, 4);
    resize(mc_function_shared_named(loaded, "W"), 5, 4);
    CHECK(mc_call(loaded, MC_NONE, MC_NONE) == MC_ESHAPE, "other sizes");
    mc_function_free(loaded);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}
