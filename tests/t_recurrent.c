/* t_recurrent.c: recurrent layers: results and gradients against PyTorch's modules and Lasagne's formulas,
 * and what is wrong in their lines. */
#include "nn_words.h"
#include "recurrent_values.h"

#include <math.h>

enum { BATCH = 2 };

static mc_array *numbers(mc_node *like, double factor, double step, double start)
{
    int64_t dims[MC_MAX_RANK];
    for (int i = 0; i < mc_node_rank(like); i++) {
        dims[i] = mc_node_dims(like)[i] < 0 ? BATCH : mc_node_dims(like)[i];
    }
    mc_array *a = mc_array_new(MC_FLOAT64, mc_node_rank(like), dims);
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        ((double *)mc_array_data(a))[i] = factor * sin(step * (double)i + start);
    }
    return a;
}

/* The result, the gradient of the input and those of all parameters, of the sum of y[i] cos(0.9 i), end to
 * end. */
static int64_t run(const char *model, double *out, int64_t most)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_node *in[2], *output[40];
    mc_array *at[2] = { 0 }, *made[40] = { 0 };
    mc_arg arg[2], res[40];
    int64_t n = 0;
    int nin = 0, nout = 0;
    CHECK(mc_net_read(net, "m", model) == MC_OK, "%s", mc_error(g));
    mc_layer *l = mc_net_layer(net, -1);
    output[nout++] = mc_layer_node(l, MC_TRAINING);
    mc_name(output[0], "y");
    mc_node *cost = mc_formula(g,
                               "sum(flatten(y, ndim=1) * cos(0.9 * cast(arange(size(flatten(y, ndim=1), 0)), "
                               "'float64')))");
    for (int i = 0; i < mc_net_nlayers(net); i++) {
        mc_layer *k = mc_net_layer(net, i);
        if (mc_layer_ninputs(k) == 0) {
            in[nin] = mc_layer_node(k, MC_TRAINING);
            const bool mask = strcmp(mc_layer_name(k), "m") == 0;
            at[nin] = numbers(in[nin], 1, 0.7, nin ? 0.1 : 0.3);
            static const double keep[] = { 1, 1, 0, 1, 1, 0, 0, 0 };
            if (mask) {
                memcpy(mc_array_data(at[nin]), keep, sizeof keep);
            }
            arg[nin] = mc_arg_array(at[nin]);
            nin++;
        }
    }
    output[nout++] = mc_grad(cost, in[0]);
    for (int i = 0; mc_net_param(net, NULL, i).name && nout < 40; i++) {
        mc_node *p = mc_shared_node(g, mc_net_param(net, NULL, i).shared);
        mc_array *v = numbers(p, 0.5, 1.3, i + 1);
        mc_shared_set(mc_net_param(net, NULL, i).shared, v);
        mc_array_unref(&v);
        output[nout++] = mc_grad(cost, p);
    }
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .input = in, .ninput = nin, .output = output, .noutput = nout });
    for (int i = 0; i < nout; i++) {
        res[i] = mc_arg_slot(&made[i]);
    }
    CHECK(f && mc_call_args(f, nin, arg, nout, res) == MC_OK, "%s: %s", model, mc_last_error());
    for (int i = 0; i < nout; i++) {
        mc_array *whole = made[i] ? mc_array_copy(made[i]) : NULL;
        for (int64_t k = 0; whole && k < mc_array_size(whole) && n < most; k++) {
            out[n++] = ((const double *)mc_array_data(whole))[k];
        }
        mc_array_unref(&whole);
        mc_array_unref(&made[i]);
    }
    for (int i = 0; i < nin; i++) {
        mc_array_unref(&at[i]);
    }
    mc_function_free(f);
    mc_net_free(net);
    mc_graph_free(g);
    return n;
}

TEST(recurrent_layers_give_the_numbers_of_pytorch_and_lasagne)
{
    for (int i = 0; i < COUNT(layers); i++) {
        double got[COUNT(layers[0].want)];
        const int64_t n = run(layers[i].model, got, COUNT(got));
        double worst = n > 8 ? 0 : INFINITY;
        int64_t at = 0;
        for (int64_t k = 0; k < n; k++) {
            const double off = fabs(got[k] - layers[i].want[k]) / (1 + fabs(layers[i].want[k]));
            at = off > worst ? k : at;
            worst = off > worst || isnan(off) ? off : worst;
        }
        for (int64_t k = n; k < COUNT(layers[i].want); k++) {
            worst = layers[i].want[k] != 0 ? INFINITY
                                           : worst; /* there are more numbers than the layer gave */
        }
        CHECK(worst < 1e-7, "%s: number %lld of %lld is %.9g; expected %.9g", layers[i].model, (long long)at,
              (long long)n, got[at], layers[i].want[at]);
    }
}
