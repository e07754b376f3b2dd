/* t_gpu_updates.c: shared values on a GPU, and their updates. */
#include "gpu_words.h"
#include "exec/backend.h"

/* A shared variable that functions of each GPU change in turn, replayed; and arrays that go from one to the
 * next by hand. */
TEST(gpu_shared_values_go_from_gpu_to_gpu)
{
    enum { GPUS = 2 };
    ON_GPU();
    if (mc_cuda_count() < GPUS) {
        SKIP("one GPU");
    }
    mc_graph *g = mc_graph_new();
    mc_array *start = counting(3000), *sum = NULL;
    mc_shared *w = mc_shared_new(g, "w", start);
    mc_function *f[GPUS] = { NULL };
    for (int i = 0; i < GPUS; i++) {
        REQUIRE(mc_flag_set("device", i ? "cuda1" : "cuda0") == MC_OK, "%s", mc_last_error());
        f[i] = mc_compile(
            g, &(mc_spec){ .outputs = "gpu_from_host(w + 0)", .updates = i ? "w = w * 2" : "w = w + 1" });
        REQUIRE(f[i], "%s", mc_error(g));
    }
    double want = 2999;
    /* one call on each, then three on the first, so that it replays */
    for (int round = 0; round < 6; round++) {
        int which = round < 2 ? round : round == 5;
        mc_array_unref(&sum);
        CHECK(mc_call(f[which], MC_NONE, MC_OUT(&sum)) == MC_OK, "%s", mc_last_error());
        mc_array *moved = sum ? mc_array_to(sum, which ? "cuda0" : "cuda1") : NULL;
        CHECK(moved && strcmp(mc_array_device(moved), which ? "cuda0" : "cuda1") == 0 &&
                  at(moved, 2999) == want,
              "round %d: %s", round, mc_last_error());
        mc_array_unref(&moved);
        want = which ? want * 2 : want + 1;
    }
    mc_array *got = mc_shared_get(w);
    CHECK(got && at(got, 2999) == want, "%g, not %g", got ? at(got, 2999) : 0, want);
    mc_array_unref(&got);
    mc_array_unref(&sum);
    mc_array_unref(&start);
    for (int i = 0; i < GPUS; i++) {
        mc_function_free(f[i]);
    }
    mc_graph_free(g);
}

TEST(gpu_updates_use_old_values)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_array *zero = counting(3), *three = mc_array_scalar(MC_FLOAT32, 3);
    mc_shared *a = mc_shared_new(g, "a", zero), *b = mc_shared_new(g, "b", zero),
              *c = mc_shared_new(g, "c", three);
    mc_function *swap = mc_compile(g, &(mc_spec){ .outputs = "a", .updates = "a = b + 1; b = a; c = c * 2" });
    mc_function *plain = mc_compile(g, &(mc_spec){ .updates = "a = a + 10; c = c + 1" });
    REQUIRE(swap && plain, "%s", mc_error(g));
    mc_array *before = NULL;
    for (int i = 0; i < 4; i++) {
        REQUIRE(mc_call(swap, MC_NONE, MC_OUT(&before)) == MC_OK, "%s", mc_last_error());
        REQUIRE(mc_call(plain, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    mc_array *got = mc_shared_get(a), *other = mc_shared_get(b), *scale = mc_shared_get(c);
    /* (a, b) -> (b + 1, a), then a + 10: starting from (2, 2) at the last element */
    double x = 2, y = 2, z = 3, last = 0;
    for (int i = 0; i < 4; i++) {
        double t = x;
        last = x;
        x = y + 1 + 10;
        y = t;
        z = z * 2 + 1;
    }
    CHECK(at(got, 2) == x && at(other, 2) == y && mc_array_get(scale, NULL) == z,
          "a %g, b %g, c %g instead of %g, %g, %g", at(got, 2), at(other, 2), mc_array_get(scale, NULL), x, y,
          z);
    CHECK(at(before, 2) == last, "the result is the old value %g, not %g", last, at(before, 2));
    mc_array *five = mc_array_scalar(MC_FLOAT32, 5);
    CHECK(mc_shared_set(c, five) == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(plain, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&scale);
    scale = mc_shared_get(c);
    CHECK(mc_array_get(scale, NULL) == 6, "set to 5, one added: %g", mc_array_get(scale, NULL));
    mc_array *all[] = { zero, three, before, got, other, scale, five };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(swap);
    mc_function_free(plain);
    mc_graph_free(g);
}

/* Shared variables follow the function that uses them. */
TEST(gpu_shared_values_go_where_they_are_used)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_array *start = counting(4);
    mc_shared *w = mc_shared_new(g, "w", start);
    mc_function *far = mc_compile(g, &(mc_spec){ .updates = "w = w * 2" });
    REQUIRE(far && mc_flag_set("device", "cpu") == MC_OK, "%s", mc_error(g));
    mc_function *near = mc_compile(g, &(mc_spec){ .updates = "w = w + 1" });
    REQUIRE(near, "%s", mc_error(g));
    for (int i = 0; i < 3; i++) {
        CHECK(mc_call(far, MC_NONE, MC_NONE) == MC_OK && mc_call(near, MC_NONE, MC_NONE) == MC_OK, "%s",
              mc_last_error());
    }
    mc_array *got = mc_shared_get(w);
    CHECK(at(got, 3) == 31, "((3 * 2 + 1) * 2 + 1) * 2 + 1 is not %g", at(got, 3));
    mc_array *mine = mc_shared_borrow(w);
    CHECK(mine && mc_array_data(mine), "what is borrowed has an address");
    mc_array_unref(&mine);
    mc_array_unref(&got);
    mc_array_unref(&start);
    mc_function_free(far);
    mc_function_free(near);
    mc_graph_free(g);
}

/* Where new values are made, and that they are right wherever that is: the old ones of W are read first, at
 * their own elements alone. */
TEST(gpu_updates_are_made_where_the_old_values_lie)
{
    ON_GPU();
    static const struct { const char *updates; bool in_place; } cases[] = {
        { "W = W - 0.5 * W", true },
        { "W = W - 0.1 * dot(W, x)", true },                         /* runs after the product that reads it */
        { "W = W - 0.1 * dot(x, V); V = V - dot(x, W)", true },      /* runs after both products */
        { "W = W + dot(W, x)", false },                              /* finishes the product that reads it */
        { "W = W + W[:, ::-1]", false },                             /* other elements */
        { "W = W * sum(W)", true },                                  /* summed before */
        { "W = W + 1; V = W", false },                               /* V gets the old one */
        { "W = W + x[t]", true },                                    /* what may fail is in front */
        { "W = x + 1", false },                                      /* nothing knows how the old one lies */
    };
    const int64_t n = 4;
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_array *got[2][2] = { { NULL } };
        for (int d = 0; d < 2; d++) {
            mc_flag_set("device", d ? "cuda" : "cpu");
            mc_graph *g = mc_graph_new();
            mc_array *w = mc_array_new(MC_FLOAT32, 2, (int64_t[]){ n, n }),
                     *x = mc_array_new(MC_FLOAT32, 2, (int64_t[]){ n, n }),
                     *t = mc_array_new(MC_INT64, 1, &n);
            for (int k = 0; k < n * n; k++) {
                ((float *)w->data)[k] = (float)(k % 7) - 2;
                ((float *)x->data)[k] = (float)(k % 5) / 4;
            }
            mc_shared *W = mc_shared_new(g, "W", w), *V = mc_shared_new(g, "V", x);
            mc_formula(g, "input x float32[?, ?]; input t int64[?]");
            mc_function *f = mc_compile(
                g, &(mc_spec){ .inputs = "x, t", .updates = cases[i].updates, .on_unused = "ignore" });
            REQUIRE(f, "%s: %s", cases[i].updates, mc_error(g));
            for (int k = 0; k < 3; k++) {
                CHECK(mc_call(f, MC_IN(x, t), MC_NONE) == MC_OK, "%s: %s", cases[i].updates, mc_last_error());
            }
            CHECK(!d || mc_is_in_place(f, f->plans, 0) == cases[i].in_place, "%s is%s made in place",
                  cases[i].updates, cases[i].in_place ? " not" : "");
            got[d][0] = mc_shared_get(W);
            got[d][1] = mc_shared_get(V);
            mc_array_unref(&w);
            mc_array_unref(&x);
            mc_array_unref(&t);
            mc_function_free(f);
            mc_graph_free(g);
        }
        for (int k = 0; k < 2; k++) {
            CHECK(mc_array_differs(got[0][k], got[1][k], 1e-5, 1e-5) < 0, "%s: %s differs", cases[i].updates,
                  k ? "V" : "W");
            mc_array_unref(&got[0][k]);
            mc_array_unref(&got[1][k]);
        }
    }
}

/* A shared variable's own memory as an input is read as it was when the call began. */
TEST(gpu_updates_do_not_reach_an_input)
{
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_array *start = counting(5);
    mc_shared *w = mc_shared_new(g, "w", start), *v = mc_shared_new(g, "v", start);
    mc_formula(g, "input x float32[?]");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .updates = "w = w + 1; v = v + cumsum(x)" });
    REQUIRE(f, "%s", mc_error(g));
    for (int i = 0; i < 3; i++) {
        mc_array *own = mc_shared_borrow(w);
        CHECK(mc_call(f, MC_IN(own), MC_NONE) == MC_OK, "%s", mc_last_error());
        mc_array_unref(&own);
    }
    mc_array *got = mc_shared_get(v); /* 1 + the last of 0+1+2+3+4, of the same and 5, and 10 */
    CHECK(at(got, 4) == 4 + 10 + 15 + 20, "%g", at(got, 4));
    mc_array_unref(&got);
    mc_array_unref(&start);
    mc_function_free(f);
    mc_graph_free(g);
}

/* More updates than one launch takes. */
TEST(gpu_many_updates)
{
    ON_GPU();
    struct mc_str updates = { 0 };
    mc_graph *g = mc_graph_new();
    mc_shared *s[130];
    for (int i = 0; i < 130; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        mc_array *start = counting(i);
        s[i] = mc_shared_new(g, name, start);
        mc_array_unref(&start);
        mc_str_addf(&updates, "%ss%d = s%d + %d", i ? ", " : "", i, i, i + 1);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .updates = updates.s });
    REQUIRE(f, "%s", mc_error(g));
    for (int i = 0; i < 3; i++) {
        CHECK(mc_call(f, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    for (int i = 1; i < 130; i++) {
        mc_array *got = mc_shared_get(s[i]);
        CHECK(at(got, i - 1) == i - 1 + 3 * (i + 1), "s%d: %g", i, at(got, i - 1));
        mc_array_unref(&got);
    }
    mc_str_free(&updates);
    mc_function_free(f);
    mc_graph_free(g);
}
