/* export.c: a network learns for some steps and is written as a C file.  exported_main.c and
 * exported_main.cpp go on learning with that file, without the library, and end with the same cost:
 *
 *     export FOLDER
 *     cc -O2 -march=native -I FOLDER exported_main.c FOLDER/ring.c -lm -o ring && ./ring */
#include "points.h"
#include <monochord_nn.h>
#include <stdio.h>

enum { STEPS_HERE = 100, STEPS_THERE = 1900 };

static mc_status learn(mc_function *train, mc_array *x, mc_array *t, int steps, unsigned *state, float *cost)
{
    mc_status s = MC_OK;
    for (int i = 0; i < steps && s == MC_OK; i++) {
        draw_points(mc_array_data(x), mc_array_data(t), state);
        s = mc_call(train, MC_IN(x, t), MC_OUT(cost, NULL));
    }
    return s;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return puts("export FOLDER"), 1;
    }
    mc_flag_set("floatX", "float32");
    mc_flag_set("device", "cpu"); /* functions for a GPU are not exported */
    mc_flag_set("portable",
                "True"); /* the library's bits are those of the file too: to compare, not to export */

    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "ring", "input 2\ndense 24 tanh\ndense 24 tanh\nclass = dense 2 softmax\n");
    mc_input(g, "t", MC_INT32, 1);
    mc_node *cost = mc_formula(g, "cost = mean(crossentropy_1hot(class, t))");
    mc_formula(g, "wrong = mean(cast(neq(argmax(class, axis=1), t), floatX))");
    mc_updates u = mc_net_updates(net, cost, "adam rate=0.05");
    mc_function *train = mc_compile(g, &(mc_spec){ .name = "train",
                                                   .inputs = "x, t",
                                                   .outputs = "cost, wrong",
                                                   .update_of = u.of,
                                                   .update = u.to,
                                                   .nupdate = u.n });
    mc_function *predict = mc_compile(g, &(mc_spec){ .name = "predict", .inputs = "x", .outputs = "class" });
    if (!train || !predict) {
        return puts(mc_error(g)), 1;
    }
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(POINTS, 2)),
             *t = mc_array_new(MC_INT32, MC_SHAPE(POINTS));
    unsigned state = 1;
    float now = 0;
    char path[1024];
    snprintf(path, sizeof path, "%s/ring.c", argv[1]);

    mc_status s = learn(train, x, t, STEPS_HERE, &state, &now);
    printf("step %d  cost %.9g\n", STEPS_HERE, (double)now);
    /* sizes are a part of the exported functions: learning takes 32 points, an answer is for one */
    s = s < 0 ? s
              : mc_export_c(path, 2,
                            (mc_export_function[]){ { train, "train", "x[32, 2], t[32]" },
                                                    { predict, "predict", "x[1, 2]" } });
    if (s == MC_OK) {
        printf("wrote %s\n", path);
        s = learn(train, x, t, STEPS_THERE, &state, &now); /* as the exported program will */
        printf("step %d  cost %.9g\n", STEPS_HERE + STEPS_THERE, (double)now);
    }
    if (s < 0) {
        puts(mc_last_error());
    }
    mc_array_unref(&x), mc_array_unref(&t);
    mc_function_free(train), mc_function_free(predict), mc_net_free(net), mc_graph_free(g);
    return s < 0;
}
