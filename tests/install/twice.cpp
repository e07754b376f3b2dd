// twice.cpp: the same from C++, where a call lists its arguments as arrays.
#include <monochord.h>

int main()
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 0);
    mc_spec spec = mc_spec();
    spec.inputs = "x";
    spec.outputs = "x + x";
    mc_function *f = mc_compile(g, &spec);
    double y = 0;
    mc_arg in = mc_arg_real(21.0), out = mc_arg_f64(&y);
    bool good = f && mc_call_args(f, 1, &in, 1, &out) == MC_OK && y == 42;
    mc_function_free(f);
    mc_graph_free(g);
    return !good;
}
