/* slope.c: formulas with gradients in a program that never compiles a function: a static archive must bring them. */
#include <monochord.h>

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT64, 0), *slope = mc_formula(g, "grad(x ** 3, x)");
    mc_array *at = mc_array_new(MC_FLOAT64, 0, NULL), *out = NULL;
    *(double *)mc_array_data(at) = 2;
    int good = mc_eval(1, &x, &at, 1, &slope, &out) == MC_OK && *(const double *)mc_array_data(out) == 12;
    if (!good) {
        printf("%s%s\n", mc_error(g), mc_last_error());
    }
    mc_array_unref(&out);
    mc_array_unref(&at);
    mc_graph_free(g);
    return !good;
}
