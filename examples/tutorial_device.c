/* tutorial_device.c: the second program: the result stays where the function made it, and is not copied
 * out at every call.  It is looked at once, at the end.  MONOCHORD_FLAGS=device=... says where. */
#include <monochord.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    int vlen = 10 * 30 * 768, iters = argc > 1 ? atoi(argv[1]) : 1000;
    mc_graph *g = mc_graph_new();
    mc_array *start = mc_array_new(MC_FLOAT32, MC_SHAPE(vlen)), *r = NULL;
    for (int i = 0; i < vlen; i++) {
        ((float *)mc_array_data(start))[i] = (float)rand() / (float)RAND_MAX;
    }
    mc_shared_new(g, "x", start);
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "borrow(exp(x))" });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    double t0 = now();
    for (int i = 0; i < iters; i++) {
        if (mc_call(f, MC_NONE, MC_OUT(NULL)) < 0) { /* computed, and left where it is */
            return puts(mc_last_error()), 1;
        }
    }
    double t = now() - t0;
    printf("Looping %d times took %f seconds, %.1f us a call\n", iters, t, t / iters * 1e6);
    if (mc_call(f, MC_NONE, MC_OUT(&r)) < 0) {
        return puts(mc_last_error()), 1;
    }
    printf("Result is ");
    mc_array_print(r, stdout);
    printf("Used the %s\n", mc_function_step(f, 0).device);

    mc_array_unref(&r), mc_array_unref(&start);
    mc_function_free(f), mc_graph_free(g);
    return 0;
}
