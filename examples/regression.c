/* regression.c: a small network learns a number from the other columns of a table.
 *
 *     regression [FILE.csv [TARGET]]    the target's column by name or by number; unless it is said, the last
 *
 * Without a file it writes one, of houses whose price follows from area, rooms and age, and removes it
 * again. */
#include <math.h>
#include <monochord_nn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* 400 lines; false: the file cannot be written. */
static bool write_houses(const char *path)
{
    FILE *to = fopen(path, "w");
    if (!to) {
        return false;
    }
    fprintf(to, "area,rooms,age,price\n");
    for (int i = 0; i < 400; i++) {
        int area = 40 + i * 67 % 180, rooms = 1 + i * 13 % 7, age = i * 29 % 90;
        double price = 60 + 2.1 * area + 14 * rooms - 0.8 * age + 15 * sin(i * 12.9898);
        fprintf(to, "%d,%d,%d,%.1f\n", area, rooms, age, price);
    }
    return fclose(to) == 0;
}

/* The share of the variance that is explained, over the only batch of b; NaN: it failed. */
static double r_squared(mc_function *test, mc_batches *b)
{
    const mc_array *x, *t;
    mc_array *y = NULL;
    double cost, mean = 0, rest = 0, all = 0;
    mc_batches_start(b, 0, 0);
    if (mc_batches_next(b, &x, &t) != 1 || mc_call(test, MC_IN(x, t), MC_OUT(&cost, &y)) < 0) {
        return NAN;
    }
    int64_t n = mc_array_dims(t)[0];
    for (int64_t i = 0; i < n; i++) {
        mean += mc_array_get(t, (int64_t[]){ i, 0 }) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double truth = mc_array_get(t, (int64_t[]){ i, 0 }), guess = mc_array_get(y, (int64_t[]){ i, 0 });
        rest += (truth - guess) * (truth - guess);
        all += (truth - mean) * (truth - mean);
    }
    mc_array_unref(&y);
    return 1 - rest / all;
}

int main(int argc, char **argv)
{
    char own[] = "/tmp/houses-XXXXXX", where[4096];
    int file = argc > 1 ? -1 : mkstemp(own);
    if (argc < 2 && (file < 0 || close(file) != 0 || !write_houses(own))) {
        return puts("cannot write a table"), 1;
    }
    const char *path = argc > 1 ? argv[1] : own, *target = argc > 2 ? argv[2] : "";
    snprintf(where, sizeof where, "csv:%s:target%s%s", path, *target ? "=" : "", target);
    mc_flag_set("floatX", "float32");

    mc_data *data = mc_data_open(where, MC_TRAIN);
    mc_data *held = data ? mc_data_open(where, MC_TEST) : NULL; /* a tenth is held out */
    if (argc < 2) {
        remove(own);
    }
    if (!held) {
        return puts(mc_last_error()), 1;
    }
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_add(net, "input %lld", (long long)mc_data_dims(data)[0]);
    mc_net_add(net, "batch_norm"); /* columns in units of their own: each gets mean 0 and variance 1 */
    mc_net_add(net, "dense 32 rectify");
    mc_net_add(net, "dense %d linear", mc_data_targets(data));
    mc_net_add(net, "loss squared_error");
    mc_net_add(net, "rule adam rate=0.03");
    mc_batches *b = mc_batches_new(data, &(mc_batch_spec){ .size = 20, .shuffle = 1, .seed = 1 });
    mc_batches *all = mc_batches_new(held, &(mc_batch_spec){ .size = mc_data_count(held) });
    mc_function *learn = mc_net_trainer(net), *test = mc_net_tester(net);
    const mc_array *x, *t;
    double cost, r2 = NAN;
    for (int64_t e = 0; b && all && learn && test && e < 60; e++) {
        mc_batches_start(b, e, 0);
        while (mc_batches_next(b, &x, &t) == 1 && mc_call(learn, MC_IN(x, t), MC_OUT(&cost)) == MC_OK) {
        }
        r2 = r_squared(test, all);
    }
    if (isnan(r2)) {
        puts(mc_last_error());
    } else {
        printf("%s from %lld columns: R^2 %.3f on %lld examples held out\n", mc_data_class(data, 0),
               (long long)mc_data_dims(data)[0], r2, (long long)mc_data_count(held));
    }
    mc_function_free(learn), mc_function_free(test);
    mc_batches_free(b), mc_batches_free(all);
    mc_net_free(net), mc_graph_free(g);
    mc_data_free(data), mc_data_free(held);
    return isnan(r2);
}
