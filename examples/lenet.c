/* lenet.c: LeNet in C: the lines of models/lenet.txt as calls, a cost of one's own, and a few steps of
 * training on pictures of bars, upright and lying.
 *
 *     lenet [STEPS] */
#include <monochord_nn.h>
#include <stdlib.h>

enum { BATCH = 64, SIDE = 28 };

/* Bars of one of ten places and two directions, in noise: what a label says is the place and direction. */
static void draw(float *x, int32_t *t, unsigned *state)
{
    for (int i = 0; i < BATCH; i++) {
        *state = *state * 1664525u + 1013904223u;
        int label = (int)(*state >> 16) % 10, place = 4 + 4 * (label / 2);
        t[i] = label;
        for (int p = 0; p < SIDE * SIDE; p++) {
            int at = label % 2 ? p / SIDE : p % SIDE;
            *state = *state * 1664525u + 1013904223u;
            x[i * SIDE * SIDE + p] = (float)(*state >> 8) * 0x1p-25f +
                                     (at >= place && at < place + 3 ? 0.7f : 0);
        }
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 60;
    mc_flag_set("floatX", "float32");

    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_add(net, "input 1x%dx%d", SIDE, SIDE);
    mc_net_add(net, "conv %d 5x5 tanh", 32);
    mc_net_add(net, "pool 2x2");
    mc_net_add(net, "conv %d 5x5 tanh", 64);
    mc_net_add(net, "pool 2x2");
    mc_net_add(net, "dense 500 tanh");
    mc_layer *p = mc_net_add(net, "dense 10 softmax");
    mc_net_print(net, stdout);
    printf("%s\n", mc_layer_text(p, MC_TRAINING));

    /* mc_net_trainer(net) makes all of this of the lines `loss` and `rule`; by hand it is: */
    mc_input(g, "t", MC_INT32, 1);
    mc_node *cost = mc_formula(g, "cost = mean(crossentropy_1hot(dense2, t))");
    mc_updates u = mc_net_updates(net, cost, "momentum rate=0.02 momentum=0.9");
    mc_function *train = mc_compile(
        g, &(mc_spec){ .inputs = "x, t",
                       .outputs = "cost, mean(cast(neq(argmax(dense2, axis=1), t), floatX))",
                       .update_of = u.of,
                       .update = u.to,
                       .nupdate = u.n });
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(BATCH, 1, SIDE, SIDE)),
             *t = mc_array_new(MC_INT32, MC_SHAPE(BATCH));
    unsigned state = 1;
    float now = 0, wrong = 0;
    for (int i = 1; train && i <= steps; i++) {
        draw(mc_array_data(x), mc_array_data(t), &state);
        if (mc_call(train, MC_IN(x, t), MC_OUT(&now, &wrong)) < 0) {
            break;
        }
        if (i % 20 == 0) {
            printf("step %d  cost %.3f  wrong %.1f%%\n", i, now, 100 * wrong);
        }
    }
    mc_status s = !train ? MC_EARG : mc_net_save_params(net, argc > 2 ? argv[2] : "/dev/null", NULL);
    if (!train || (argc > 2 && s < 0)) {
        printf("%s\n", mc_last_error());
    }
    mc_function_free(train);
    mc_array_unref(&x);
    mc_array_unref(&t);
    mc_net_free(net);
    mc_graph_free(g);
    return !train || (argc > 2 && s < 0);
}
