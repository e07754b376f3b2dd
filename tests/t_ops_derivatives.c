/* t_ops_derivatives.c: first and second derivatives of scalar ops against differences. */
#include "scalar_ops.h"

static bool has_none(const struct mc_op *op, int i)
{
    return op->dx[i] && strcmp(op->dx[i], "!") == 0;
}

/* y = op(a, b, c) over float inputs; wrt are the operands that can have a gradient, or with `all` those that
 * say that they have none, too. */
static mc_node *op_over_inputs(mc_graph *g, const struct mc_op *op, mc_dtype d, const int *pattern, bool all,
                               mc_node **wrt, mc_array **value, int *n)
{
    mc_node *in[3];
    *n = 0;
    for (int i = 0; i < op->arity; i++) {
        char name[2] = { (char)('a' + i), 0 };
        int rank = patterns[pattern[i]].rank;
        mc_array *v = sample(operand(op, i, d), rank, patterns[pattern[i]].dims, op->lo, op->hi);
        if (mc_is_float(v->dtype) && (all || !has_none(op, i))) {
            in[i] = wrt[*n] = mc_input_sized(g, name, d, rank, v->dims);
            value[(*n)++] = v;
        } else {
            in[i] = mc_constant(g, v);
            mc_array_unref(&v);
        }
    }
    return mc_op(g, op->name, op->arity, in, NULL);
}

static bool has_derivative(const struct mc_op *op)
{
    for (int i = 0; i < op->arity; i++) {
        if (op->dx[i] && !has_none(op, i)) {
            return true;
        }
    }
    return false;
}

TEST(every_derivative_against_differences)
{
    static const int grid[][3] = { { 0, 0, 0 }, { 1, 2, 0 }, { 6, 0, 1 },
                                   { 0, 4, 6 }, { 3, 2, 2 }, { 2, 6, 6 } };
    EACH_SCALAR(op)
    {
        for (size_t p = 0; has_derivative(op) && p < NELEM(grid); p++) {
            for (mc_dtype d = MC_FLOAT32; d <= MC_FLOAT64; d++) {
                mc_graph *g = mc_graph_new();
                mc_node *wrt[3];
                mc_array *value[3];
                double worst = 0;
                int n;
                mc_node *y = op_over_inputs(g, op, d, grid[p], false, wrt, value, &n);
                CHECK(mc_verify_grad(y, n, wrt, value, &worst) == MC_OK, "%s, pattern %d: %s", op->name,
                      (int)p, mc_last_error());
                drop(value, n);
                mc_graph_free(g);
            }
        }
    }
}

/* The derivative is an expression like any other, so it has derivatives: those of sums of squares of
 * gradients, where all parts have one. */
TEST(second_derivatives_against_differences)
{
    int done = 0;
    EACH_SCALAR(op)
    {
        mc_graph *g = mc_graph_new();
        mc_node *wrt[3], *grad[3], *f;
        mc_array *value[3];
        double worst = 0;
        int n;
        mc_node *y = op_over_inputs(g, op, MC_FLOAT64, (int[]){ 0, 0, 0 }, false, wrt, value, &n);
        mc_array *w = sample(MC_FLOAT64, 2, patterns[0].dims, .5, 1.5);
        mc_node *r = mc_constant(g, w);
        mc_grad_spec spec = {
            .known = &y, .known_grad = &r, .nknown = 1, .disconnected = MC_DISCONNECTED_ZERO
        };
        if (has_derivative(op) && mc_grads(NULL, n, wrt, grad, &spec) == MC_OK) {
            f = grad[0];
            for (int i = 1; i < n; i++) {
                f = mc_op(g, "add", 2, (mc_node *[]){ f, grad[i] }, NULL);
            }
            if (mc_grads(NULL, n, wrt, grad,
                         &(mc_grad_spec){ .known = &f,
                                          .known_grad = &r,
                                          .nknown = 1,
                                          .disconnected = MC_DISCONNECTED_RAISE }) == MC_OK) {
                CHECK(mc_verify_grad(f, n, wrt, value, &worst) == MC_OK, "%s twice: %s", op->name,
                      mc_last_error());
                done++;
            }
        }
        drop(value, n);
        mc_array_unref(&w);
        mc_graph_free(g);
    }
    CHECK(done > 25, "only %d ops have second derivatives", done);
}

TEST(an_op_without_derivative_says_so)
{
    EACH_SCALAR(op)
    {
        for (int i = 0; i < op->arity; i++) {
            if (!op->dx[i] || strcmp(op->dx[i], "!") != 0) {
                continue;
            }
            mc_graph *g = mc_graph_new();
            mc_node *wrt[3];
            mc_array *value[3];
            int n;
            mc_node *y = op_over_inputs(g, op, MC_FLOAT32, (int[]){ 6, 6, 6 }, true, wrt, value, &n);
            CHECK(mc_is_error(mc_grad(y, wrt[i])) && mc_graph_status(g) == MC_EGRAD, "%s has a gradient",
                  op->name);
            CHECK(strstr(mc_error(g), op->name), "%s", mc_error(g));
            drop(value, n);
            mc_graph_free(g);
        }
    }
    CHECK(mc_op_scalar("tri_gamma")->dx[0][0] == '!',
          "tri_gamma has a derivative; another op is to be named here");
}

/* x ** 0 is 1 for every x: its derivatives are 0, also where those of x ** -1 overflow. */
TEST(powers_of_nothing_have_no_slope)
{
    static const double at[] = { 0, 1e-310, 1e-45, 1e-40, 1e-20, 0.5, 3 };
    static const char *const exponents[] = { "n", "0", "0.0", "v", "0 * v" };
    for (size_t i = 0; i < 4 * NELEM(exponents); i++) {
        const mc_dtype d = i & 1 ? MC_FLOAT32 : MC_FLOAT64;
        const char *exponent = exponents[i / 4];
        char outputs[200];
        mc_flag_set("strict_math", i & 2 ? "True" : "False");
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", d, 1);
        mc_input(g, "n", d, 0);
        mc_input(g, "v", d, 1);
        snprintf(outputs, sizeof outputs, "grad(sum(x ** (%s)), x), grad(sum(grad(sum(x ** (%s)), x)), x)",
                 exponent, exponent);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, n, v", .outputs = outputs, .on_unused = "ignore" });
        mc_array *x = mc_array_new(d, MC_SHAPE(NELEM(at))), *v = mc_array_new(d, MC_SHAPE(NELEM(at))),
                 *y[2] = { NULL };
        for (size_t k = 0; k < NELEM(at); k++) {
            mc_store_f64(d, x->data + k * mc_dtypes[d].size, at[k]);
        }
        CHECK(f && mc_call(f, MC_IN(x, 0.0, v), MC_OUT(&y[0], &y[1])) == MC_OK, "%s: %s", exponent,
              f ? mc_last_error() : mc_error(g));
        for (size_t k = 0; k < 2 * NELEM(at) && y[1]; k++) {
            const double have = mc_load_f64(d, y[k & 1]->data + k / 2 * mc_dtypes[d].size);
            CHECK(have == 0, "%s derivative of x ** %s of %s at %g: %g", k & 1 ? "second" : "first", exponent,
                  mc_dtype_name(d), at[k / 2], have);
        }
        mc_array_unref(&x);
        mc_array_unref(&v);
        mc_array_unref(&y[0]);
        mc_array_unref(&y[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_flag_set("strict_math", "False");
}
