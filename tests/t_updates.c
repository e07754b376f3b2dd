/* t_updates.c: shared variables and what becomes of them in a call: updates, default updates, givens. */
#include "function_words.h"

/* ---- updates ---- */

TEST(updates_are_made_from_old_values)
{
    mc_graph *g = mc_graph_new();
    mc_shared *a = scalar(g, "a", MC_FLOAT32, 1), *b = scalar(g, "b", MC_FLOAT32, 2),
              *c = scalar(g, "c", MC_FLOAT64, 3);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .outputs = "a + b", .updates = "a = b; b = a; c = c + a" }));
    double y = 0;
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_NONE, MC_OUT(&y)));
        CHECK(y == 3, "%g", y);
    }
    CHECK(shared_at(a, 0) == 2 && shared_at(b, 0) == 1 && shared_at(c, 0) == 3 + 1 + 2 + 1, "%g %g %g",
          shared_at(a, 0), shared_at(b, 0), shared_at(c, 0));
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(updates_of_arrays_swap_and_turn)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(6, 6)), *turned = mc_array_transpose(v, NULL),
             *want = mc_array_copy(turned);
    mc_shared *W = mc_shared_new(g, "W", v), *V = mc_shared_new(g, "V", want);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "W = V; V = W" }));
    fine(mc_call(f, MC_NONE, MC_NONE));
    mc_array *w = mc_shared_get(W), *u = mc_shared_get(V);
    CHECK(mc_array_same_bits(w, want) && mc_array_same_bits(u, v), "swapped");
    mc_array_unref(&w);
    mc_array_unref(&u);
    mc_function *t = made(g, mc_compile(g, &(mc_spec){ .updates = "W = W.T; V = V[::-1] + W" }));
    fine(mc_call(t, MC_NONE, MC_NONE));
    w = mc_shared_get(W);
    u = mc_shared_get(V);
    CHECK(mc_array_same_bits(w, v), "turned in place");
    CHECK(at(u, 0) == 30 + 0 && at(u, 35) == 5 + 35, "%g %g", at(u, 0), at(u, 35));
    mc_array_unref(&w);
    mc_array_unref(&u);
    mc_array_unref(&v);
    mc_array_unref(&turned);
    mc_array_unref(&want);
    mc_function_free(f);
    mc_function_free(t);
    mc_graph_free(g);
}

TEST(two_updates_with_one_value)
{
    mc_graph *g = mc_graph_new();
    mc_shared *a = scalar(g, "a", MC_FLOAT32, 1), *b = scalar(g, "b", MC_FLOAT32, 2);
    mc_function *f = made(g,
                          mc_compile(g, &(mc_spec){ .outputs = "a + b", .updates = "a = a + b; b = a + b" }));
    float y = 0;
    fine(mc_call(f, MC_NONE, MC_OUT(&y)));
    fine(mc_call(f, MC_NONE, MC_OUT(&y)));
    CHECK(y == 6 && shared_at(a, 0) == 6 && shared_at(b, 0) == 6, "%g %g %g", (double)y, shared_at(a, 0),
          shared_at(b, 0));
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(updates_may_change_sizes_that_are_not_promised)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(1, 3));
    mc_shared *W = mc_shared_sized(g, "W", v, (int64_t[]){ -1, 3 });
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "grow",
                                                       .inputs = "x",
                                                       .outputs = "sum(W)",
                                                       .updates = "W = join([W, x], axis=0)" }));
    double y = 0;
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_IN(v), MC_OUT(&y)));
        CHECK(y == 3 * (i + 1), "%g", y);
    }
    mc_array *now = mc_shared_get(W);
    CHECK(now->dims[0] == 4 && now->dims[1] == 3, "(%lld, %lld)", (long long)now->dims[0],
          (long long)now->dims[1]);
    mc_array_unref(&now);
    mc_array *five = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 3)),
             *wrong = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 4));
    fine(mc_shared_set(W, five));
    refused(mc_shared_set(W, wrong), MC_ESHAPE, "W");
    CHECK(mc_call(f, MC_IN(v), MC_OUT(&y)) == MC_OK && y == 0, "%g", y);
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .name = "h", .inputs = "x", .updates = "W = x" }));
    refused(mc_call(h, MC_IN(wrong), MC_NONE), MC_ESHAPE, "the update of W has size 4 on axis 1, not 3");
    now = mc_shared_get(W);
    CHECK(now->dims[0] == 6, "%lld", (long long)now->dims[0]);
    mc_array_unref(&now);
    mc_array_unref(&v);
    mc_array_unref(&five);
    mc_array_unref(&wrong);
    mc_function_free(f);
    mc_function_free(h);
    mc_graph_free(g);
}

/* A later step fails: nothing has changed. */
TEST(updates_are_all_or_none)
{
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t m = 0; m < NELEM(modes); m++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "i", MC_INT64, 1);
        mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(4)), *out = mc_array_new(MC_FLOAT32, MC_SHAPE(4));
        mc_shared *a = mc_shared_new(g, "a", v), *b = mc_shared_new(g, "b", v),
                  *n = scalar(g, "n", MC_INT32, 0);
        mc_function *f = made(
            g, mc_compile(g, &(mc_spec){ .name = "f",
                                         .mode = modes[m],
                                         .inputs = "i",
                                         .outputs = "a * 2, sum(b[i])",
                                         .updates = "a = a + 1; b = b * 2 + sum(a[i]); n = n + 1" }));
        mc_array *good = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 3, -4 }),
                 *bad = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 3, 4 });
        double s = 0, number = 0;
        fine(mc_call(f, MC_IN(good), MC_OUT(&out, &s)));
        CHECK(s == 3 && shared_at(a, 3) == 4 && shared_at(b, 1) == 5 && shared_at(n, 0) == 1, "%s: %g %g %g",
              modes[m], s, shared_at(a, 3), shared_at(b, 1));
        refused(mc_call(f, MC_IN(bad), MC_OUT(&out, &s)), MC_EINDEX, "4");
        CHECK(shared_at(a, 3) == 4 && shared_at(b, 1) == 5 && shared_at(n, 0) == 1, "%s: %g %g %g", modes[m],
              shared_at(a, 3), shared_at(b, 1), shared_at(n, 0));
        refused(mc_call(f, MC_IN(good), MC_OUT(&number)), MC_ESHAPE,
                "4 elements"); /* seen when results are handed over */
        CHECK(shared_at(n, 0) == 1, "%g", shared_at(n, 0));
        fine(mc_call(f, MC_IN(good), MC_OUT(&out, &s)));
        CHECK(shared_at(n, 0) == 2, "%g", shared_at(n, 0));
        mc_array_unref(&good);
        mc_array_unref(&bad);
        mc_array_unref(&out);
        mc_array_unref(&v);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(default_updates_are_made_unless_told_otherwise)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = scalar(g, "n", MC_INT64, 0), *m = scalar(g, "m", MC_INT64, 10);
    fine(mc_shared_default_update(g, n, mc_formula(g, "n + m")));
    fine(mc_shared_default_update(g, m, mc_formula(g, "m + 1")));
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "n" }));
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .outputs = "n", .no_default_updates = 1 }));
    mc_function *own = made(g, mc_compile(g, &(mc_spec){ .outputs = "n", .updates = "n = n * 0" }));
    int64_t y = 0;
    fine(mc_call(f, MC_NONE, MC_OUT(&y)));
    CHECK(y == 0 && shared_at(n, 0) == 10 && shared_at(m, 0) == 11, "%lld %g %g", (long long)y,
          shared_at(n, 0), shared_at(m, 0));
    fine(mc_call(h, MC_NONE, MC_OUT(&y)));
    CHECK(y == 10 && shared_at(n, 0) == 10, "%lld", (long long)y);
    fine(mc_call(own, MC_NONE, MC_OUT(&y)));
    CHECK(y == 10 && shared_at(n, 0) == 0 && shared_at(m, 0) == 11, "%lld %g", (long long)y, shared_at(n, 0));
    mc_function_free(f);
    mc_function_free(h);
    mc_function_free(own);
    mc_graph_free(g);
}

/* What only a replacement draws from, or reads, is updated by its default like the rest. */
TEST(givens_bring_default_updates)
{
    mc_graph *g = mc_graph_new();
    double first[3], second[3];
    mc_shared *r = mc_random(g, "r", 5);
    mc_input(g, "x", MC_FLOAT64, 1);
    mc_input(g, "d", MC_FLOAT64, 0);
    mc_array *zero = mc_array_from(MC_FLOAT64, 0, NULL, &(double){ 0 });
    mc_shared *n = mc_shared_new(g, "n", zero);
    REQUIRE(r && n, "%s", mc_error(g));
    CHECK(mc_shared_default_update(g, n, mc_formula(g, "n + d")) == MC_OK, "%s", mc_error(g));
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .outputs = "x + 0 * n",
                                     .givens = "x = random_uniform(r, [3], dtype=float64); d = 2" }));
    for (int k = 0; k < 2; k++) {
        mc_array *y = NULL;
        CHECK(mc_call(f, MC_NONE, MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
        memcpy(k ? second : first, mc_array_data(y), sizeof first);
        mc_array_unref(&y);
    }
    CHECK(first[0] != second[0] && first[2] != second[2], "the same numbers twice: %g %g", first[0],
          first[2]);
    mc_array *now = mc_shared_get(n);
    CHECK(*(double *)mc_array_data(now) == 4, "n is %g after two steps of 2", *(double *)mc_array_data(now));
    mc_array_unref(&now);
    mc_array_unref(&zero);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(givens_stand_in_for_inputs)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT64, MC_SHAPE(20, 3));
    mc_shared_new(g, "data", v);
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "i", MC_INT32, 0);
    mc_formula(g, "y = sum(x * x)");
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "i", .outputs = "y, x", .givens = "x = data[i*4:(i+1)*4]" }));
    for (int i = 0; i < 5; i++) {
        double y = 0, want = 0;
        mc_array *x = NULL;
        fine(mc_call(f, MC_IN(i), MC_OUT(&y, &x)));
        for (int k = 12 * i; k < 12 * i + 12; k++) {
            want += at(v, k) * at(v, k);
        }
        CHECK(y == want && x->dims[0] == 4 && x->dtype == MC_FLOAT32 && at(x, 0) == at(v, 12 * i),
              "%g, not %g", y, want);
        mc_array_unref(&x);
    }
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(shared_variables_set_between_calls)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(3)), *w = mc_array_new(MC_FLOAT32, MC_SHAPE(3)),
             *long_ = ramp(MC_FLOAT32, MC_SHAPE(7));
    mc_shared *W = mc_shared_sized(g, "W", v, NULL);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "sum(W * W), W.shape[0]" }));
    double y = 0;
    int64_t n = 0;
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 5 && n == 3, "%g", y);
    fine(mc_shared_set(W, w));
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 0 && n == 3, "%g", y);
    fine(mc_shared_set(W, long_));
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 91 && n == 7, "%g", y);
    mc_array *inside = mc_shared_borrow(W);
    mc_array_set(inside, (int64_t[]){ 0 }, 10);
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 191, "%g", y);
    mc_array_unref(&inside);
    mc_array_unref(&v);
    mc_array_unref(&w);
    mc_array_unref(&long_);
    mc_function_free(f);
    mc_graph_free(g);
}
