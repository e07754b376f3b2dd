/* tutorial_borrow.c: the third program: the same function with and without borrow; on a GPU, the result stays
 * there.
 *
 * borrow(...) hands out the function's own memory.  That saves an allocation and its page faults at
 * every call; the price is that the next call writes over the result. */
#include <monochord.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int loop(mc_graph *g, const char *outputs, int iters)
{
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = outputs });
    mc_array *r = NULL;
    double t0 = now();
    for (int i = 0; i < iters && f; i++) {
        mc_array_unref(&r);
        if (mc_call(f, MC_NONE, MC_OUT(&r)) < 0) {
            return puts(mc_last_error()), 1;
        }
    }
    mc_synchronize();
    double t = now() - t0;
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    printf("%s: looping %d times took %f seconds, %.1f us a call\nResult is ", outputs, iters, t,
           t / iters * 1e6);
    mc_array *home = r ? mc_array_to(r, "cpu") : NULL;
    if (home) {
        mc_array_print(home, stdout);
    }
    mc_array_unref(&home);
    mc_array_unref(&r);
    mc_function_free(f);
    return 0;
}

int main(int argc, char **argv)
{
    int vlen = 10 * 30 * 768, iters = argc > 1 ? atoi(argv[1]) : 1000;
    mc_graph *g = mc_graph_new();
    mc_array *start = mc_array_new(MC_FLOAT32, MC_SHAPE(vlen));
    for (int i = 0; i < vlen; i++) {
        ((float *)mc_array_data(start))[i] = (float)rand() / (float)RAND_MAX;
    }
    mc_shared_new(g, "x", start);
    int bad = loop(g, "gpu_from_host(exp(x))", iters) || loop(g, "borrow(gpu_from_host(exp(x)))", iters);
    mc_array_unref(&start), mc_graph_free(g);
    return bad;
}
