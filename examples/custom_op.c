/* custom_op.c: ops of your own: one as the text of a kernel, fused with all around it; one as a C
 * function.  Both have gradients, which are compared with differences here. */
#include <math.h>
#include <monochord.h>

/* hypot(a, b); y is the result, g the gradient that comes back. */
static const mc_custom hypotenuse = {
    .name = "hypotenuse", .nin = 2, .nout = 1,
    .kernel = "sqrt(a * a + b * b)",
    .kernel_grad = { "g * a / y", "g * b / y" },
};

/* Twice its input, in C. */
static mc_status twice_run(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    const double *x = mc_array_data(in[0]);
    double *y = mc_array_data(out[0]);
    (void)arg, (void)nin, (void)nout;
    for (int64_t i = 0; i < mc_array_size(in[0]); i++) {
        y[i] = 2 * x[i];
    }
    return MC_OK;
}

static mc_node *twice_grad(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                           mc_node *const *out_grad, int wrt)
{
    (void)arg, (void)nin, (void)in, (void)nout, (void)out, (void)wrt;
    return mc_add(out_grad[0], out_grad[0]);
}

static const mc_custom twice = { .name = "twice", .nin = 1, .nout = 1, .run = twice_run, .grad = twice_grad };

int main(void)
{
    mc_graph *g = mc_graph_new();
    mc_register(g, &hypotenuse);
    mc_register(g, &twice);
    mc_input(g, "x", MC_FLOAT64, 1);
    mc_formula(g, "y = sum(hypotenuse(twice(x), x + 1) * x)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y, grad(y, x)" });
    if (!f) {
        return puts(mc_error(g)), 1;
    }
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        printf("%-7s %s\n", mc_function_step(f, i).kind, mc_function_step(f, i).text);
    }
    double at[] = { 1, 2, 3 }, value, more, less, worst = 0;
    mc_array *p = mc_array_wrap(MC_FLOAT64, MC_SHAPE(3), NULL, at, NULL, NULL), *dx = NULL;
    int good = mc_call(f, MC_IN(p), MC_OUT(&value, &dx)) == MC_OK;
    for (int64_t i = 0; i < 3 && good; i++) {
        double here = at[i], h = 1e-5;
        at[i] = here + h;
        good = mc_call(f, MC_IN(p), MC_OUT(&more, NULL)) == MC_OK;
        at[i] = here - h;
        good = good && mc_call(f, MC_IN(p), MC_OUT(&less, NULL)) == MC_OK;
        at[i] = here;
        worst = fmax(worst, fabs((more - less) / (2 * h) - mc_array_get(dx, &i)));
    }
    if (!good) {
        return puts(mc_last_error()), 1;
    }
    printf("y = %g, its gradient ", value);
    mc_array_print(dx, stdout);
    printf("differs from differences by %.1e\n", worst);
    mc_array_unref(&p), mc_array_unref(&dx), mc_function_free(f), mc_graph_free(g);
    return worst > 1e-6;
}
