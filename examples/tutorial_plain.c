/* tutorial_plain.c: exp of many numbers, a thousand times: the first program of a GPU tutorial.
 * x is a shared variable: it lives with the function, no call has to bring it. */
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
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "exp(x)" });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    puts(mc_function_graph_text(f));

    double t0 = now();
    for (int i = 0; i < iters; i++) {
        mc_array_unref(&r); /* each call makes a new array */
        if (mc_call(f, MC_NONE, MC_OUT(&r)) < 0) {
            return puts(mc_last_error()), 1;
        }
    }
    double t = now() - t0;
    printf("Looping %d times took %f seconds, %.1f us a call\nResult is ", iters, t, t / iters * 1e6);
    mc_array_print(r, stdout);
    printf("Used the %s\n", mc_function_step(f, 0).device);

    mc_array_unref(&r), mc_array_unref(&start);
    mc_function_free(f), mc_graph_free(g);
    return 0;
}
