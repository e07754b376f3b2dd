/* logistic.c: logistic regression on two clouds of points: the program with which every tutorial of
 * this family begins. */
#include <monochord.h>
#include <stdlib.h>

enum { POINTS = 400, FEATURES = 784, STEPS = 300 };

static double uniform(void) { return (double)rand() / RAND_MAX - 0.5; }

/* Points around +d and -d, for a direction d of its own; t says which. */
static void make_points(mc_array *x, mc_array *t)
{
    float d[FEATURES], *X = mc_array_data(x);
    for (int k = 0; k < FEATURES; k++) {
        d[k] = (float)(0.1 * uniform());
    }
    for (int64_t i = 0; i < POINTS; i++) {
        int one = rand() % 2;
        mc_array_set(t, &i, one);
        for (int k = 0; k < FEATURES; k++) {
            *X++ = (float)uniform() + (one ? d[k] : -d[k]);
        }
    }
}

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2); /* rows are points */
    mc_input(g, "t", MC_FLOAT32, 1);
    mc_shared_zeros(g, "w", MC_FLOAT32, MC_SHAPE(FEATURES));
    mc_shared_zeros(g, "b", MC_FLOAT32, MC_NOSHAPE);
    mc_formula(g, "p = sigmoid(dot(x, w) + b)"); /* how probable is 1 */
    mc_formula(g, "xent = -t * log(p) - (1 - t) * log(1 - p)");
    mc_formula(g, "cost = mean(xent) + 0.01 * sum(w ** 2)");
    mc_formula(g, "wrong = mean(neq(p > 0.5, t > 0.5))");

    mc_function *train = mc_compile(g,
                                    &(mc_spec){
                                        .inputs = "x, t",
                                        .outputs = "cost, wrong",
                                        .updates = "w = w - 0.1 * grad(cost, w); b = b - 0.1 * grad(cost, b)",
                                    });
    mc_function *predict = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "p > 0.5" });
    if (!train || !predict) {
        return puts(mc_error(g)), 1;
    }

    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(POINTS, FEATURES)),
             *t = mc_array_new(MC_FLOAT32, MC_SHAPE(POINTS));
    make_points(x, t);
    double cost = 0, wrong = 1;
    for (int step = 0; step <= STEPS; step++) {
        if (mc_call(train, MC_IN(x, t), MC_OUT(&cost, &wrong)) < 0) {
            return puts(mc_last_error()), 1;
        }
        if (step % 50 == 0) {
            printf("step %3d  cost %.4f  wrong %4.1f%%\n", step, cost, 100 * wrong);
        }
    }
    mc_array *some = mc_array_slice(x, 0, 0, 8, 1), *p = NULL;
    int good = mc_call(predict, MC_IN(some), MC_OUT(&p)) == MC_OK && wrong < 0.01;
    printf("predictions: ");
    mc_array_print(p, stdout);

    mc_array_unref(&x), mc_array_unref(&t), mc_array_unref(&some), mc_array_unref(&p);
    mc_function_free(train), mc_function_free(predict), mc_graph_free(g);
    return !good;
}
