/* tutorial_device.c: the second program: the result stays where the function made it, and does not come home
 * at every call.  It is brought home once, at the end.  MONOCHORD_FLAGS=device=cuda says where; on the
 * processor, all is home. */
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
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "gpu_from_host(exp(x))" });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    double t0 = now();
    for (int i = 0; i < iters; i++) {
        mc_array_unref(&r);
        if (mc_call(f, MC_NONE, MC_OUT(&r)) < 0) {
            return puts(mc_last_error()), 1;
        }
    }
    mc_synchronize(); /* calls whose results stay return before the GPU is done */
    double t = now() - t0;
    printf("Looping %d times took %f seconds, %.1f us a call\n", iters, t, t / iters * 1e6);
    mc_array *home = mc_array_to(r, "cpu");
    printf("Result lies on the %s: ", mc_array_device(r));
    mc_array_print(home, stdout);
    printf("Used the %s\n", mc_function_step(f, 0).device);

    mc_array_unref(&home), mc_array_unref(&r), mc_array_unref(&start);
    mc_function_free(f), mc_graph_free(g);
    return 0;
}
