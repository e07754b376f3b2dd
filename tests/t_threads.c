/* t_threads.c: more than one function, more than one thread: what is shared, and what is not. */
#include "function_words.h"

static void *call_often(void *f)
{
    for (int i = 0; i < 500; i++) {
        if (mc_call((mc_function *)f, MC_NONE, MC_NONE) < 0) {
            return "failed";
        }
    }
    return NULL;
}

TEST(two_threads_share_a_variable)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = scalar(g, "n", MC_INT64, 0), *m = scalar(g, "m", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "n = n + 1; m = m - n" }));
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .updates = "m = m + n; n = n + 2" }));
    mc_graph_free(g); /* the functions keep what they need */
    n = mc_shared_ref(f->shared[0]->name[0] == 'n' ? f->shared[0] : f->shared[1]);
    pthread_t t;
    pthread_create(&t, NULL, call_often, f);
    void *mine = call_often(h), *his = NULL;
    pthread_join(t, &his);
    CHECK(!mine && !his && shared_at(n, 0) == 1500, "%g", shared_at(n, 0));
    (void)m;
    mc_shared_unref(&n);
    mc_function_free(f);
    mc_function_free(h);
}

TEST(one_function_from_two_threads)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = mc_shared_ref(scalar(g, "n", MC_INT64, 0));
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "n = n + 1" }));
    mc_graph_free(g);
    pthread_t t;
    pthread_create(&t, NULL, call_often, f);
    call_often(f);
    pthread_join(t, NULL);
    CHECK(shared_at(n, 0) == 1000, "%g", shared_at(n, 0));
    mc_shared_unref(&n);
    mc_function_free(f);
}

TEST(copies_share_kernels_but_not_memory)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_input(g, "k", MC_FLOAT32, 0);
    mc_shared *n = scalar(g, "n", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x, k=2", .outputs = "borrow(x * k + n)", .updates = "n = n + 1" }));
    mc_function *looks = mc_function_copy(f, 0), *works = mc_function_copy(f, 1);
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5)), *y = NULL, *z = NULL;
    fine(mc_call(looks, MC_IN(x), MC_OUT(&y)));
    CHECK(shared_at(n, 0) == 0 && at(y, 4) == 8, "%g", at(y, 4));
    fine(mc_call(works, MC_IN(x), MC_OUT(&z)));
    CHECK(shared_at(n, 0) == 1 && at(y, 4) == 8 && mc_array_data(y) != mc_array_data(z), "%g", shared_at(n, 0));
    fine(mc_function_set(works, "k", mc_arg_real(5)));
    mc_array_unref(&y);
    mc_array_unref(&z);
    fine(mc_call(looks, MC_IN(x), MC_OUT(&y)));
    CHECK(at(y, 4) == 9, "%g", at(y, 4));
    mc_function_free(f);
    CHECK(strcmp(mc_function_source(looks), mc_function_source(works)) == 0, "one source");
    fine(mc_call(works, MC_IN(x), MC_OUT(&z)));
    CHECK(at(z, 4) == 21, "%g", at(z, 4));
    mc_array_unref(&y);
    mc_array_unref(&z);
    mc_array_unref(&x);
    mc_function_free(looks);
    mc_function_free(works);
    mc_graph_free(g);
}
