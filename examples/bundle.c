/* bundle.c: a network learns for some steps and is saved as a bundle; another process goes on where it
 * stopped:
 *
 *     bundle save ring.mcf
 *     bundle load ring.mcf
 *
 * What `load` does needs libmonochord-run alone. */
#include "points.h"
#include <monochord_nn.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_SAVED = 100, STEPS_LOADED = 1900 };

static mc_status learn(mc_function *train, mc_array *x, mc_array *t, int steps, unsigned *state, float *cost)
{
    mc_status s = MC_OK;
    for (int i = 0; i < steps && s == MC_OK; i++) {
        draw_points(mc_array_data(x), mc_array_data(t), state);
        s = mc_call(train, MC_IN(x, t), MC_OUT(cost, NULL));
    }
    return s;
}

static mc_status save(const char *path, mc_array *x, mc_array *t)
{
    unsigned state = 1;
    float cost = 0;
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "ring", "input 2\ndense 24 tanh\ndense 24 tanh\ndense 2 softmax\nrule adam rate=0.05\n");
    mc_function *f[] = { mc_net_trainer(net), mc_net_predictor(net) };
    if (!f[0] || !f[1]) {
        return mc_graph_status(g);
    }
    mc_status s = learn(f[0], x, t, STEPS_SAVED, &state, &cost);
    printf("step %d  cost %.9g\n", STEPS_SAVED, (double)cost);
    s = s < 0 ? s : mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 2, .function = f });
    mc_function_free(f[0]), mc_function_free(f[1]), mc_net_free(net), mc_graph_free(g);
    return s;
}

/* The two functions share their variables, so the one answers as the other has learned. */
static mc_status load(const char *path, mc_array *x, mc_array *t)
{
    unsigned state = 7;
    float cost = 0;
    int right = 0;
    mc_function *f[2];
    mc_array *y = NULL;
    if (mc_bundle_load(path, 2, f) < 0) {
        return mc_last_status();
    }
    mc_status s = learn(f[0], x, t, STEPS_LOADED, &state, &cost);
    printf("step %d  cost %.9g\n", STEPS_SAVED + STEPS_LOADED, (double)cost);
    draw_points(mc_array_data(x), mc_array_data(t), &state);
    s = s < 0 ? s : mc_call(f[1], MC_IN(x), MC_OUT(&y));
    for (int i = 0; i < POINTS && s == MC_OK; i++) {
        const float *p = (float *)mc_array_data(y) + 2 * i;
        right += (p[1] > p[0]) == ((int32_t *)mc_array_data(t))[i];
    }
    printf("%d of %d new points are right\n", right, POINTS);
    mc_array_unref(&y);
    mc_function_free(f[0]), mc_function_free(f[1]);
    return s;
}

int main(int argc, char **argv)
{
    const int saves = argc == 3 && strcmp(argv[1], "save") == 0;
    if (argc != 3 || (!saves && strcmp(argv[1], "load") != 0)) {
        return puts("bundle save|load FILE"), 1;
    }
    mc_flag_set("floatX", "float32");
    mc_flag_set("device", "cpu"); /* functions for a GPU are not saved */
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(POINTS, 2)),
             *t = mc_array_new(MC_INT32, MC_SHAPE(POINTS));
    const mc_status s = (saves ? save : load)(argv[2], x, t);
    if (s < 0) {
        puts(mc_last_error());
    }
    mc_array_unref(&x), mc_array_unref(&t);
    return s < 0;
}
