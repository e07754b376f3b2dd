/* loops.c: loops: differences by taps, a fold, and a state that a shared variable keeps from call to call. */
#include <monochord.h>

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input xs float64[?]; shared level float64 = 0");
    mc_formula(g, "rises = scan(old, new in xs taps [-1, 0]: yield new - old)");
    mc_formula(g, "highest = foldl(x in xs, m from xs[0]: maximum(m, x))");
    mc_formula(g, "smooth, end = scan(x in xs, s from level: s = 0.5 * s + 0.5 * x; yield s, last s)");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "xs", .outputs = "rises, highest, smooth", .updates = "level = end" });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    const double part[2][4] = { { 8, 4, 2, 6 }, { 0, 16, 8, 8 } };
    for (int i = 0; i < 2; i++) {
        mc_array *xs = mc_array_from(MC_FLOAT64, MC_SHAPE(4), part[i]), *r[3] = { 0 };
        if (!xs || mc_call(f, MC_IN(xs), MC_OUT(&r[0], &r[1], &r[2])) < 0) {
            return puts(mc_last_error()), 1;
        }
        for (int k = 0; k < 3; k++) {
            printf("%s ", k == 0 ? "rises" : k == 1 ? "highest" : "smooth");
            mc_array_print(r[k], stdout);
            mc_array_unref(&r[k]);
        }
        mc_array_unref(&xs);
    }
    mc_function_free(f);
    mc_graph_free(g);
    return 0;
}
