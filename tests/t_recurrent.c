/* t_recurrent.c: recurrent layers: results and gradients against PyTorch's modules and Lasagne's formulas,
 * and what is wrong in their lines. */
#include "array_text.h"
#include "nn_words.h"
#include "own_folder.h"
#include "recurrent_values.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 2, STEPS = 4 }; /* where the input does not say */

static mc_array *numbers(mc_node *like, double factor, double step, double start)
{
    int64_t dims[MC_MAX_RANK];
    for (int i = 0; i < mc_node_rank(like); i++) {
        dims[i] = mc_node_dims(like)[i] >= 0 ? mc_node_dims(like)[i] : i ? STEPS : BATCH;
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
    mc_flag_set("floatX", "float64");
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

/* A number of steps that only the call brings gives what a known one gives. */
TEST(any_number_of_steps)
{
    static const char *const rows[] = {
        "lstm 2 backwards=true",
        "gru 2 layers=2 bidirectional=true learn_init=true",
        "custom_recurrent 3 'tanh($x + 0.5 * $h)' only_return_final=true",
    };
    for (int i = 0; i < COUNT(rows); i++) {
        char any[200], known[200];
        double a[500], b[500], worst = 0;
        snprintf(any, sizeof any, "input ?x3\n%s", rows[i]);
        snprintf(known, sizeof known, "input 4x3\n%s", rows[i]);
        const int64_t n = run(any, a, COUNT(a)), m = run(known, b, COUNT(b));
        for (int64_t k = 0; k < n && k < m; k++) {
            worst = fmax(worst, fabs(a[k] - b[k]));
        }
        CHECK(n == m && n > 24 && worst < 1e-12, "%s: %lld and %lld numbers, off by %g", rows[i],
              (long long)n, (long long)m, worst);
    }
}

TEST(recurrent_layers_without_memory)
{
    mc_flag_set("threads", "1");
    mc_flag_set("floatX", "float32");
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 11);
        mc_status s = net ? mc_net_read(net, "model",
                                        "m = input 3\nx = input 3x2\nlstm 2 mask=m layers=2 dropout=0.5 "
                                        "forgetgate=gate(b=1) learn_init=true grad_clipping=1\n"
                                        "custom_recurrent 2 '$x + $h'\n")
                          : MC_EMEMORY;
        CHECK(ALLOC_FAILED || (s == MC_OK && mc_net_nlayers(net) == 4), "%s", g ? mc_error(g) : "no graph");
        CHECK(!ALLOC_FAILED || !g || !net || s < 0 || mc_net_nlayers(net) == 4, "a failure that nobody told");
        mc_net_free(net);
        mc_graph_free(g);
    }
}

/* ---- PyTorch's state dicts ---- */

static mc_array *counted(int rank, const int64_t *dims, double by)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        ((float *)mc_array_data(a))[i] = (float)(by * (double)(i + 1));
    }
    return a;
}

/* The names and shapes are those of nn.LSTM(2, 1, num_layers=2, bidirectional=True).state_dict(). */
TEST(state_dicts_of_recurrent_modules)
{
    static const struct {
        const char *name;
        int rank;
        int64_t dims[2];
    } rows[] = {
        { "r.weight_ih_l0", 2, { 4, 2 } },
        { "r.weight_hh_l0", 2, { 4, 1 } },
        { "r.bias_ih_l0", 1, { 4 } },
        { "r.bias_hh_l0", 1, { 4 } },
        { "r.weight_ih_l0_reverse", 2, { 4, 2 } },
        { "r.weight_hh_l0_reverse", 2, { 4, 1 } },
        { "r.bias_ih_l0_reverse", 1, { 4 } },
        { "r.bias_hh_l0_reverse", 1, { 4 } },
        { "r.weight_ih_l1", 2, { 4, 2 } },
        { "r.weight_hh_l1", 2, { 4, 1 } },
        { "r.bias_ih_l1", 1, { 4 } },
        { "r.bias_hh_l1", 1, { 4 } },
        { "r.weight_ih_l1_reverse", 2, { 4, 2 } },
        { "r.weight_hh_l1_reverse", 2, { 4, 1 } },
        { "r.bias_ih_l1_reverse", 1, { 4 } },
        { "r.bias_hh_l1_reverse", 1, { 4 } },
    };
    static const char model[] = "input 3x2\nr = lstm 1 peepholes=false layers=2 bidirectional=true";
    const char *name[COUNT(rows)], *path = in_folder("r.safetensors"), *saved = in_folder("s.safetensors");
    mc_array *value[COUNT(rows)];
    for (int i = 0; i < COUNT(rows); i++) {
        name[i] = rows[i].name;
        value[i] = counted(rows[i].rank, rows[i].dims, strstr(rows[i].name, "bias_hh") ? 10 : 1);
    }
    CHECK(mc_archive_save(path, NULL, COUNT(rows), name, (const mc_array *const *)value) == MC_OK, "%s",
          mc_last_error());
    mc_flag_set("floatX", "float32");
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    CHECK(mc_net_read(net, "m", model) == MC_OK, "%s", mc_error(g));
    CHECK(mc_net_load_torch(net, path, NULL) == MC_OK, "%s", mc_last_error());
    static const char *const loops[] = { "", "_reverse", "_l1", "_l1_reverse" };
    for (int i = 0; i < COUNT(loops); i++) {
        char W[40], b[40];
        snprintf(W, sizeof W, "r_W_in%s", loops[i]);
        snprintf(b, sizeof b, "r_b%s", loops[i]);
        mc_array *w = mc_shared_get(mc_shared_named(g, W));
        check_text(w, "[[1. 3. 5. 7.]\n [2. 4. 6. 8.]]");
        mc_array_unref(&w);
        w = mc_shared_get(mc_shared_named(g, b));
        check_text(w, "[11. 22. 33. 44.]"); /* the sum of both biases */
        mc_array_unref(&w);
    }
    CHECK(mc_net_save_torch(net, saved, NULL) == MC_OK, "%s", mc_last_error());
    mc_archive *z = mc_archive_open(saved);
    CHECK(z && mc_archive_count(z) == COUNT(rows), "%d arrays", mc_archive_count(z));
    for (int i = 0; i < COUNT(rows); i++) {
        mc_array *a = mc_archive_load(z, rows[i].name);
        if (rows[i].rank == 1) {
            check_text(a, strstr(rows[i].name, "bias_hh") ? "[0. 0. 0. 0.]" : "[11. 22. 33. 44.]");
        } else {
            CHECK(a && mc_array_same_bits(a, value[i]), "%s differs", rows[i].name);
        }
        mc_array_unref(&a);
        mc_array_unref(&value[i]);
    }
    mc_archive_close(z);
    mc_net_free(net);
    mc_graph_free(g);
    drop_folder();
}

TEST(recurrent_layers_without_a_counterpart)
{
    static const struct {
        const char *model, *says;
    } rows[] = {
        { "input 3x2\nlstm 2", "'lstm1_W_cell' has no counterpart in PyTorch" },
        { "input 3x2\ngru 2", "'gru1_W_in' has no counterpart in PyTorch" },
        { "input 3x2\nrecurrent 2 learn_init=true", "'recurrent1_hid_init' has no counterpart in PyTorch" },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        CHECK(mc_net_read(net, "m", rows[i].model) == MC_OK, "%s", mc_error(g));
        CHECK(mc_net_save_torch(net, in_folder("w.safetensors"), NULL) == MC_EUNSUPPORTED &&
                  strstr(mc_last_error(), rows[i].says),
              "%s", mc_last_error());
        mc_net_free(net);
        mc_graph_free(g);
    }
    drop_folder();
}

/* ---- mistakes ---- */

TEST(wrong_lines_of_recurrent_layers)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        { "lstm 4 mask=q", "lstm: there is no layer 'q'" },
        { "lstm 4 mask=x", "a mask has an axis of examples and one of steps, but 'x' has rank 3" },
        { "lstm 4 forgetgate=3", "forgetgate takes gate(...)" },
        { "lstm 4 forgetgate=gate(c=1)", "gate has no setting 'c'" },
        { "lstm 4 ingate=gate(act=tanhh)", "there is no nonlinearity 'tanhh'" },
        { "lstm 4 dropout=1", "dropout takes a number in [0, 1)" },
        { "gru 4 bidirectional=true backwards=true", "a layer in both directions is not backwards" },
        { "gru 4 layers=2 hid_init=h from=x", "a layer gives the initial state of a single loop" },
        { "gru 4 learn_init=true hid_init=h from=x", "a layer gives the initial state of a single loop" },
        { "gru 5 hid_init=h from=x", "state" },
        { "gru 4 hid_init=q", "there is no initial value and no variable 'q'" },
        { "recurrent 4 from=h", "the input has rank 2; expected 3: examples, steps, features" },
        { "custom_recurrent 2 '$x + $y'", "the formula has a name that is neither $x nor $h" },
        { "custom_recurrent 3 '$x + $h'", "do not broadcast" },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_net_read(net, "m", "h = input 4\nx = input 5x2");
        mc_net_add(net, "%s", rows[i].line);
        CHECK(strstr(mc_error(g), rows[i].says), "%s: %s", rows[i].line, mc_error(g));
        mc_net_free(net);
        mc_graph_free(g);
    }
}

/* The presets of a gate are those of its own block alone. */
TEST(presets_of_a_gate)
{
    mc_flag_set("floatX", "float32");
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "m", "input 5x1\nlstm 2 b=0.5 W_in=2 forgetgate=gate(b=1,W_in=3,W_cell=4) W_cell=0");
    mc_array *b = mc_shared_get(mc_shared_named(g, "lstm1_b")),
             *W = mc_shared_get(mc_shared_named(g, "lstm1_W_in")),
             *P = mc_shared_get(mc_shared_named(g, "lstm1_W_cell"));
    check_text(b, "[0.5 0.5 1.  1.  0.5 0.5 0.5 0.5]");
    check_text(W, "[[2. 2. 3. 3. 2. 2. 2. 2.]]");
    check_text(P, "[0. 0. 4. 4. 0. 0.]");
    mc_array_unref(&b), mc_array_unref(&W), mc_array_unref(&P);
    mc_net_free(net);
    mc_graph_free(g);
}
