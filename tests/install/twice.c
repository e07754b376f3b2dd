/* twice.c: the least program that needs the whole library: a formula compiled and called. */
#include <monochord.h>
#include <string.h>

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 0);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + x" });
    double y = 0;
    int good = f && mc_call(f, MC_IN(21.0), MC_OUT(&y)) == MC_OK && y == 42;
    if (!good) {
        printf("%s%s y = %g\n", mc_error(g), mc_last_error(), y);
    }
    mc_function_free(f);
    mc_graph_free(g);
    return !good || strcmp(mc_version(), MC_VERSION) != 0;
}
