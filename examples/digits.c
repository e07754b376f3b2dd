/* digits.c: a small network learns generated digits: data, batches and the loop in C.
 *
 *     digits [EPOCHS [WHERE]]    WHERE: digits, or files as for monochord train */
#include <monochord_nn.h>
#include <stdlib.h>

/* The mean of what is wrong over an epoch; below 0: it failed. */
static double epoch(mc_function *f, mc_batches *b, int64_t e)
{
    const mc_array *x, *t;
    double cost, wrong, sum = 0, seen = 0;
    mc_batches_start(b, e, 0); /* what comes follows from the seed and e alone */
    while (mc_batches_next(b, &x, &t) == 1) {
        if (mc_call(f, MC_IN(x, t), MC_OUT(&cost, &wrong)) < 0) {
            return -1;
        }
        sum += wrong * (double)mc_array_size(t);
        seen += (double)mc_array_size(t);
    }
    return sum / seen;
}

int main(int argc, char **argv)
{
    const char *where = argc > 2 ? argv[2] : "digits:6000";
    int64_t epochs = argc > 1 ? atoi(argv[1]) : 5;
    if (epochs < 1) {
        return puts("digits [EPOCHS [WHERE]]"), 1;
    }
    mc_flag_set("floatX", "float32");

    mc_data *data = mc_data_open(where, MC_TRAIN), *held = data ? mc_data_open(where, MC_TEST) : NULL;
    if (!held) {
        return puts(mc_last_error()), 1;
    }
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "digits.c",
                "input 1x28x28\n"
                "dense 100 rectify\n"
                "dropout 0.2\n"
                "dense 10 softmax\n"
                "rule adam rate=0.002");
    mc_batches *b = mc_batches_new(
        data, &(mc_batch_spec){ .size = 100, .shuffle = 1, .seed = 1, .augment = "shift=1" });
    mc_batches *test = mc_batches_new(held, &(mc_batch_spec){ .size = 500 });
    mc_function *learn = mc_net_trainer(net), *look = mc_net_tester(net);
    double train_wrong = 0, wrong = -1;
    for (int64_t e = 0; b && test && learn && look && train_wrong >= 0 && e < epochs; e++) {
        train_wrong = epoch(learn, b, e);
        wrong = epoch(look, test, 0);
        printf("epoch %lld  wrong %.1f%%  of the test set %.1f%%\n", (long long)e + 1, 100 * train_wrong,
               100 * wrong);
    }
    if (wrong < 0) {
        puts(mc_last_error());
    }
    mc_function_free(learn), mc_function_free(look);
    mc_batches_free(b), mc_batches_free(test);
    mc_net_free(net), mc_graph_free(g);
    mc_data_free(data), mc_data_free(held);
    return wrong < 0;
}
