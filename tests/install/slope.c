/* slope.c: a gradient in a program that compiles no function: a static archive must bring what makes it. */
#include <monochord.h>

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 0);
    char *text = mc_node_text(mc_formula(g, "grad(x ** 3, x)"));
    const int good = text && *mc_error(g) == '\0';
    if (!good) {
        printf("%s%s\n", mc_error(g), mc_last_error());
    }
    mc_text_free(text);
    mc_graph_free(g);
    return !good;
}
