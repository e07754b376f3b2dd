/* t_null_check.c: what a maker returns that failed may be handed on: nothing crashes, and the error says what
 * is missing. */
#include "base/base.h"
#include "check.h"
#include <monochord_nn.h>
#include <string.h>

static bool told(const char *part)
{
    bool good = strstr(mc_last_error(), part) != NULL;
    mc_clear_error();
    return good;
}

TEST(no_array_has_nothing)
{
    CHECK(mc_array_rank(NULL) == 0 && mc_array_size(NULL) == 0 && !mc_array_dims(NULL) &&
              !mc_array_strides(NULL) && !mc_array_data(NULL),
          "an array");
    CHECK(mc_array_dtype(NULL) == MC_BOOL && strcmp(mc_array_device(NULL), "cpu") == 0 &&
              mc_archive_count(NULL) == 0 && !mc_archive_name(NULL, 0),
          "an array");
    mc_dtype d;
    CHECK(mc_dtype_parse(NULL, &d) == MC_ETYPE && told("unknown dtype"), "a dtype");
}

TEST(no_net_is_told)
{
    double sums[2];
    CHECK(!mc_net_new(NULL, NULL, 1) && told("the graph is NULL"), "%s", mc_last_error());
    CHECK(!mc_net_graph(NULL) && mc_net_nlayers(NULL) == 0 && !mc_net_layer(NULL, -1) &&
              !mc_net_find(NULL, "x") && !mc_net_training(NULL),
          "a net");
    CHECK(!mc_net_param(NULL, NULL, 0).name && mc_net_count(NULL, NULL) == 0 &&
              !mc_net_add(NULL, "dense %d", 3),
          "a net");
    CHECK(mc_net_read(NULL, "m", "input 3") == MC_EARG && told("the net is NULL"), "%s", mc_last_error());
    CHECK(mc_net_load(NULL, "m") == MC_EARG && mc_net_print(NULL, stdout) == MC_EARG &&
              mc_net_set_rate(NULL, 1) == MC_EARG,
          "a net");
    CHECK(mc_net_save_params(NULL, "m", NULL) == MC_EARG && mc_net_load_params(NULL, "m", NULL) == MC_EARG,
          "a net");
    CHECK(mc_net_sums(NULL, sums) == MC_EARG && mc_net_set_sums(NULL, sums) == MC_EARG &&
              mc_net_rate(NULL, 0) == 0,
          "a net");
    CHECK(!mc_net_target(NULL) && !mc_net_cost(NULL, MC_TRAINING) && !mc_net_wrong(NULL, MC_TRAINING),
          "a net");
    CHECK(!mc_net_trainer(NULL) && !mc_net_tester(NULL) && !mc_net_predictor(NULL) && !mc_net_learner(NULL),
          "a net");
    CHECK(mc_net_updates(NULL, NULL, NULL).n == 0 && !mc_norm_constraint(NULL, NULL, 1, NULL), "a net");
    CHECK(!mc_loss(NULL, "squared_error", NULL, NULL) && !mc_accuracy(NULL, "binary", NULL, NULL) &&
              !mc_aggregate(NULL, "mean", NULL, NULL),
          "a net");
    CHECK(mc_rule_updates(NULL, NULL, "sgd", NULL, 0, NULL, NULL).n == 0 && told("the graph is NULL"), "%s",
          mc_last_error());
    CHECK(!mc_penalty(NULL, "l2 1", NULL, NULL) && !mc_init(NULL, "0", 0, NULL), "a net");
}

TEST(no_layer_and_no_line)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    const mc_layer *l = mc_net_find(net, "nobody");
    CHECK(!l && !*mc_layer_name(l) && !*mc_layer_kind(l) && !*mc_layer_text(l, MC_TRAINING) &&
              mc_layer_ninputs(l) == 0 && !mc_layer_input(l, 0),
          "a layer");
    CHECK(!mc_layer_node(l, MC_TRAINING) && mc_layer_rank(l) == 0 && !mc_layer_dims(l) &&
              !mc_net_find(net, NULL),
          "a layer");
    CHECK(!mc_loss(net, NULL, NULL, NULL) && told("the loss is NULL") && !mc_init(net, NULL, 0, NULL) &&
              told("the initial value is NULL"),
          "%s", mc_last_error());
    CHECK(mc_updates_of(net, NULL, 0, NULL, NULL, NULL).n == 0, "updates of nothing by the model's own rule");
    CHECK(strstr(mc_error(g), "neither a cost"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_net_read(net, NULL, "conf 3") < 0 && strstr(mc_error(g), "model:1:"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_net_read(net, "m", NULL) == MC_EARG && strstr(mc_error(g), "the text of the model is NULL"),
          "%s", mc_error(g));
    mc_net_free(net);
    mc_graph_free(g);
}

TEST(no_data_keep_their_reason)
{
    mc_data *d = mc_data_open("/nowhere/at/all", MC_TRAIN);
    mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 3 });
    const mc_array *x, *t;
    CHECK(!b && told("the data is NULL"), "%s", mc_last_error());
    CHECK(!mc_data_open(NULL, MC_TRAIN) && !mc_data_new(NULL, NULL, 0), "data");
    CHECK(!*mc_data_text(d) && mc_data_count(d) == 0 && mc_data_rank(d) == 0 && !mc_data_dims(d) &&
              mc_data_classes(d) == 0 && mc_data_label(d, 0) == -1,
          "data");
    CHECK(strcmp(mc_data_class(d, 7), "7") == 0, "%s", mc_data_class(d, 7));
    mc_data_example(d, 0, NULL);
    mc_batches_start(b, 0, 0);
    CHECK(mc_batches_next(b, &x, &t) == 0 && mc_batches_count(b) == 0 && !mc_batches_dims(b) &&
              mc_batches_example(b, 0) == -1,
          "batches");
    d = mc_data_digits(10, 1);
    CHECK(!mc_batches_new(d, NULL) && told("the spec of batches is NULL"), "%s", mc_last_error());
    mc_data_free(d);
}
