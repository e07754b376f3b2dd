/* t_nn_text.c: models as text: every mistake has its message, with the line and a caret under it; the models
 * that come along are read, and have as many parameters as their inventors say.
 *
 * Invariant: a row's `says` is the whole message but for the line of this file, so a message that changes is
 * seen here. */
#include "check.h"
#include "nn/nn.h"
#include <stdio.h>
#include <stdlib.h>

#define X "input 3x8x8\n"
static const struct {
    const char *model, *says;
} mistakes[] = {
    { X "cov 32 5x5", "m.txt:2: there is no layer 'cov'; did you mean 'conv'?\n    cov 32 5x5\n    ^" },
    { X "conv 32 5y5",
      "m.txt:2: conv: size takes sizes, as in 5x5, not '5y5'\n    conv 32 5y5\n            ^" },
    { X "conv many 5x5",
      "m.txt:2: conv: filters takes a whole number of at least 1, not 'many'\n    conv many 5x5\n         ^" },
    { X "  conv 32    # and nothing else",
      "m.txt:2: conv needs size: sizes, as in 5x5\n    conv 32\n           ^" },
    { X "conv 32 5x5 tahn", "m.txt:2: there is no nonlinearity 'tahn'; did you mean 'tanh'?\n    conv 32 5x5 "
                            "tahn\n                ^" },
    { X "conv 32 5x5 strid=2", "m.txt:2: conv has no setting 'strid'; did you mean 'stride'?\n    conv 32 "
                               "5x5 strid=2\n                ^" },
    { X "conv 32 5x5 stride=0",
      "m.txt:2: conv: stride is 0; expected at least 1\n    conv 32 5x5 stride=0\n                       ^" },
    { X "conv 32 5x5x5", "m.txt:2: conv: size has 3 sizes for 2 axes\n    conv 32 5x5x5\n            ^" },
    { X "conv 32 5x5 stride=2 stride=2", "m.txt:2: conv: 'stride' is given twice\n    conv 32 5x5 stride=2 "
                                         "stride=2\n                                ^" },
    { X "conv 32 5x5 pad=outside", "m.txt:2: conv: pad takes sizes, as in 5x5 or valid|full|same|half, not "
                                   "'outside'\n    conv 32 5x5 pad=outside\n                    ^" },
    { X "conv 0 5x5",
      "m.txt:2: conv: filters takes a whole number of at least 1, not '0'\n    conv 0 5x5\n         ^" },
    { X "nervana_conv -1 3", "m.txt:2: nervana_conv: filters takes a whole number of at least 1, not '-1'\n    "
                             "nervana_conv -1 3\n                 ^" },
    { X "dense 99999999999999999999", "m.txt:2: dense: units takes a whole number of at least 1, not "
                                      "'99999999999999999999'\n    dense 99999999999999999999\n          ^" },
    { X "conv 32 5x5 groups=2", "m.txt:2: conv: 32 filters and 3 channels cannot be divided into 2 groups\n    conv 32 "
                                "5x5 groups=2\n                       ^" },
    { X "conv 32 5x5 W=glorrot_normal",
      "m.txt:2: there is no initial value and no variable 'glorrot_normal'; did you mean 'glorot_normal'?\n"
      "    conv 32 5x5 W=glorrot_normal\n                  ^" },
    { X "conv 32 5x5 W=normal(0.1, 2, 3)",
      "m.txt:2: normal has too many settings: '3' is one too many\n    conv 32 5x5 W=normal(0.1, 2, 3)\n   "
      "                              ^" },
    { X "conv 32 5x5 W=normal(0.1",
      "m.txt:2: a bracket in the word is not closed\n    conv 32 5x5 W=normal(0.1\n                ^" },
    { X "expression 'sqr($x)",
      "m.txt:2: the quote is not closed\n    expression 'sqr($x)\n               ^" },
    { X "pool 2x2 middle", "m.txt:2: pool: mode takes one of max|sum|mean|average_inc_pad|average_exc_pad, "
                           "not 'middle'\n    pool 2x2 middle\n             ^" },
    { X "dense 10 from=y", "m.txt:2: there is no layer 'y'\n    dense 10 from=y\n                  ^" },
    { X "x = dense 10", "m.txt:2: there is already a layer 'x'\n    x = dense 10\n    ^" },
    { X "a(b) = dense 4",
      "m.txt:2: 'a(b)' is not a valid name: use letters, digits and _, and no digit first\n    a(b) = dense 4\n    ^" },
    { X "2a = dense 4",
      "m.txt:2: '2a' is not a valid name: use letters, digits and _, and no digit first\n    2a = dense 4\n    ^" },
    { X "y =", "m.txt:2: a kind of layer is missing\n    y =\n       ^" },
    { X "sum x", "m.txt:2: sum needs the names of two or more layers\n    sum x\n    ^" },
    { X "a = dense 4\nb = dense 5\nsum a b",
      "m.txt:4: sum: on axis 1 'a' has size 4, 'b' has 5\n    sum a b\n    ^" },
    { X "a = dense 4\nexcite x a",
      "m.txt:3: excite: 'x' has 3 channels, 'a' has 4 numbers\n    excite x a\n    ^" },
    { X "a = dense 3\nexcite a x",
      "m.txt:3: excite: 'a' has rank 2, 'x' has 4; expected 3 or more, and 2\n    excite a x\n    ^" },
    { X "excite x", "m.txt:2: excite needs the names of two layers\n    excite x\n    ^" },
    { X "a = dense 4\nconcat a x", "m.txt:3: concat: 'a' has rank 2, 'x' has 4\n    concat a x\n    ^" },
    { X "a = dense 4\nsum a a coeffs=1,2,3",
      "m.txt:3: sum: 3 coefficients for 2 layers\n    sum a a coeffs=1,2,3\n                   ^" },
    { "dense 10", "m.txt:1: dense needs a layer before it; a model begins with its input, as in 'input "
                  "1x28x28'\n    dense 10\n    ^" },
    { "input 3x?x8\ndense 10",
      "m.txt:2: dense: size 2 of the input must be known for its weights\n    dense 10\n    ^" },
    { X "dropout 1.5",
      "m.txt:2: dropout: p is 1.5; expected a probability less than 1\n    dropout 1.5\n            ^" },
    { X "lrn 4", "m.txt:2: lrn: n is 4; it must be odd\n    lrn 4\n        ^" },
    { X "batch_norm inv_std=none", "m.txt:2: batch_norm: the deterministic pass needs both averages\n    "
                                   "batch_norm inv_std=none\n                       ^" },
    { X "feature_pool 2",
      "m.txt:2: feature_pool: 3 channels cannot be divided into groups of 2\n    feature_pool 2\n                 ^" },
    { X "reshape 0,8",
      "m.txt:2: reshape: '0' is not a size; expected a number, [axis] or -1\n    reshape 0,8\n            ^" },
    { X "reshape 1,1,1,1,1,1,1,1,1",
      "m.txt:2: reshape: more than 8 sizes\n    reshape 1,1,1,1,1,1,1,1,1\n            ^" },
    { X "reshape [7],8", "m.txt:2: reshape: [7] is out of range for an input of rank 4\n    reshape [7],8\n            ^" },
    { X "slice 0 axis=4",
      "m.txt:2: slice: axis 4 is out of range for rank 4\n    slice 0 axis=4\n                 ^" },
    { X "inverse of=y", "m.txt:2: inverse: there is no layer 'y'\n    inverse of=y\n               ^" },
    { X "conv_cc 20 3",
      "m.txt:2: conv_cc: 20 filters; expected a multiple of 16\n    conv_cc 20 3\n            ^" },
    { X "conv_cc 16 3x2",
      "m.txt:2: conv_cc: size is 3x2; it must be square\n    conv_cc 16 3x2\n               ^" },
    { X "pool_cc 2 stride=3", "m.txt:2: pool_cc: stride 3 is larger than the window, 2\n    pool_cc 2 "
                              "stride=3\n                     ^" },
    { X "nervana_conv 8 3 border_mode=same pad=1",
      "m.txt:2: nervana_conv: border_mode and pad are both given; give only one of them\n    nervana_conv 8 3 border_mode=same "
      "pad=1\n                                 ^" },
    { X "batch 0", "m.txt:2: batch is 0; expected at least 1\n    batch 0\n          ^" },
    { X "batch", "m.txt:2: batch needs batch: a whole number\n    batch\n         ^" },
    { X "rule momentun 0.1",
      "m.txt:2: there is no rule 'momentun'; did you mean 'momentum'?\n    rule momentun 0.1\n         ^" },
    { X "rule adam speed=3", "m.txt:2: adam has no setting 'speed'\n    rule adam speed=3\n              ^" },
    { X "rule nesterov 0.1 base=momentum", "m.txt:2: momentum cannot be the base of nesterov\n    rule nesterov 0.1 "
                                           "base=momentum\n                           ^" },
    { X "loss hubert",
      "m.txt:2: there is no loss 'hubert'; did you mean 'huber'?\n    loss hubert\n         ^" },
    { X "also l2 0.1", "m.txt:2: there is no other loss 'l2'\n    also l2 0.1\n         ^" },
    { X "also formula 'x' weight=2",
      "m.txt:2: formula: weight takes a number in [0, 1], not '2'\n    also formula 'x' weight=2\n                            ^" },
    { X "penalty l3 0.1",
      "m.txt:2: there is no penalty 'l3'; did you mean 'l1'?\n    penalty l3 0.1\n            ^" },
    { X "schedule stepp 3",
      "m.txt:2: there is no schedule 'stepp'; did you mean 'step'?\n    schedule stepp 3\n             ^" },
    { X "schedule step", "m.txt:2: step needs every: a number\n    schedule step\n                 ^" },
    { X "schedule step every=0", "m.txt:2: step: every takes a number in (0, inf), not '0'\n    schedule "
                                 "step every=0\n                        ^" },
    { X "rule adam rate=-1", "m.txt:2: adam: rate takes a number in [0, inf), not '-1'\n    rule adam "
                             "rate=-1\n                   ^" },
    { X "rule adam beta1=1", "m.txt:2: adam: beta1 takes a number in [0, 1), not '1'\n    rule adam "
                             "beta1=1\n                    ^" },
    { X "rule momentum momentum=1.1", "m.txt:2: momentum: momentum takes a number in [0, 1], not '1.1'\n    "
                                      "rule momentum momentum=1.1\n                           ^" },
    { X "rule sgd rate=inf", "m.txt:2: sgd: rate takes a number in [0, inf), not 'inf'\n    rule sgd "
                             "rate=inf\n                  ^" },
    { X "noise nan", "m.txt:2: noise: sigma takes a number, not 'nan'\n    noise nan\n          ^" },
    { X "maxpool 2x2", "m.txt:2: there is no layer 'maxpool'; did you mean 'pool'?\n    maxpool 2x2\n    ^" },
    { X "softmax", "m.txt:2: there is no layer 'softmax'; a layer that is only a nonlinearity is 'nonlinearity softmax'\n   "
                   " softmax\n    ^" },
    { X "loss crossentropy", "m.txt:2: there is no loss 'crossentropy'; did you mean "
                             "'categorical_crossentropy'?\n    loss crossentropy\n         ^" },
    { X "augment shift=far",
      "m.txt:2: augment: shift takes a whole number, not 'far'\n    augment shift=far\n                  ^" },
    { "# nothing\n\n", "m.txt: the model has no layers" },
};

TEST(mistakes_in_models)
{
    for (int i = 0; i < COUNT(mistakes); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        CHECK(mc_net_read(net, "m.txt", mistakes[i].model) < 0, "this is no mistake:\n%s", mistakes[i].model);
        size_t n = strlen(mistakes[i].says);
        CHECK(strncmp(mc_error(g), mistakes[i].says, n) == 0 &&
                  (!mc_error(g)[n] || strncmp(mc_error(g) + n, "\n    at ", 8) == 0),
              "wanted\n%s\nnot\n%s", mistakes[i].says, mc_error(g));
        CHECK(mc_net_add(net, "dense 3") && !mc_layer_node(mc_net_add(net, "dense 3"), MC_TRAINING),
              "a layer after a mistake");
        mc_net_free(net);
        mc_graph_free(g);
    }
}

/* What the graph finds wrong is told under the line, too. */
TEST(mistakes_that_the_graph_finds)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "m.txt", X "conv 16 9x9");
    CHECK(strncmp(mc_error(g), "m.txt:2: conv: conv: ", 21) == 0 &&
              strstr(mc_error(g), "\n    conv 16 9x9\n    ^"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    mc_net_add(net, "expression 'sqrr($x)'");
    CHECK(strstr(mc_error(g), "there is no function 'sqrr'; did you mean 'sqr'?"), "%s", mc_error(g));
    mc_net_free(net);
    mc_graph_free(g);
}

static const struct {
    const char *file;
    int64_t parameters; /* weights and biases, or scales and shifts; statistics are left out */
    int layers;
    bool large;
} models[] = {
    { "lenet",     569606,    7,   false },  /* 32*25+32 + 64*32*25+64 + 1024*500+500 + 500*10+10 */
    { "mlp",       1276810,   7,   false },  /* 784*800+800 + 800*800+800 + 800*10+10 */
    { "charnn",    332928,    6,   false },  /* 128*32 + (32+256)*4*256+4*256 + 256*128+128 */
    { "resnet-50", 25557032,  126, true },   /* He et al. 2015, as torchvision counts */
    { "alexnet",   61100840,  14,  true },   /* Krizhevsky 2014, the same */
    { "vgg-a",     132863336, 19,  true },   /* Simonyan and Zisserman 2014, the same */
    { "mobilenet-v2", 3504872, 118, true },    /* Sandler et al. 2018, the same */
    { "convnext-t", 28589128,  137, true },    /* Liu et al. 2022, the same */
    { "regnet-y",  4344144,   189, true },    /* Radosavovic et al. 2020, 400MF, the same */
    { "u-net",     31030658,  34, true },    /* Ronneberger et al. 2015: weights and biases of its figure 1, one channel, two classes */
};

static void read_models(bool large)
{
    mc_flag_set("floatX", "float32");
    for (int i = 0; i < COUNT(models); i++) {
        char path[400];
        if (models[i].large != large) {
            continue;
        }
        snprintf(path, sizeof path, "%s/../models/%s.txt", TEST_ROOT, models[i].file);
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        CHECK(mc_net_load(net, path) == MC_OK, "%s", mc_error(g));
        CHECK(mc_net_count(net, "trainable") == models[i].parameters, "%s: %lld parameters", models[i].file,
              (long long)mc_net_count(net, "trainable"));
        CHECK(mc_net_nlayers(net) == models[i].layers, "%s: %d layers", models[i].file, mc_net_nlayers(net));
        mc_node *cost = mc_net_cost(net, MC_TRAINING);
        mc_updates u = mc_net_updates(net, cost, NULL);
        CHECK(u.n > 0 && !*mc_error(g), "%s: %s", models[i].file, mc_error(g));
        mc_net_free(net);
        mc_graph_free(g);
    }
}

TEST(models_are_read) { read_models(false); }
TEST_FULL(large_models_are_read) { read_models(true); }

/* What Lasagne's documentation prints: shapes of layers, -1 for None; a parameter's shape, or how many
 * numbers there are in all. */
static const struct {
    const char *lines;
    int rank;
    int64_t dims[5];
    const char *param;
    int param_rank;
    int64_t param_dims[2], count;
} printed[] = {
    { "input 20 batch=100\ndense 50", 2, { 100, 50 }, "dense1_W", 2, { 20, 50 }, 1050 },
    { "input 10x20x30\ndense 50", 2, { -1, 50 }, NULL },
    { "input 10x20x30\ndense 50 axes=2", 3, { -1, 10, 50 }, NULL },
    { "input 10x20x30\ndense 50 axes=-1", 4, { -1, 10, 20, 50 }, NULL },
    { "input 100x20 batch=32\nreshape 32,50,40", 3, { 32, 50, 40 }, NULL },
    { "input 100x20\nreshape [0],[1],5,-1", 4, { -1, 100, 5, 4 }, NULL },
    { "input 3x5x7 batch=2\ndimshuffle 3,2,1,x,0", 5, { 7, 5, 3, 1, 2 }, NULL },
    { "input 3x5x7 batch=2\ndimshuffle 3,2,1,x,0\ndimshuffle 4,2,1,0", 4, { 2, 3, 5, 7 }, NULL },
    { "input 3x4 batch=2\nslice 0 axis=1", 2, { 2, 4 }, NULL },
    { "input 3x4 batch=2\nslice 0:1 axis=1", 3, { 2, 1, 4 }, NULL },
    { "input 3x4 batch=2\nslice -2: axis=-1", 3, { 2, 3, 2 }, NULL },
    { "input 100x20 batch=32\nexpression 'mean($x, axis=-1)'", 2, { 32, 100 }, NULL },
    { "input 30x40x50 batch=20\nbias shared=0,2", 4, { 20, 30, 40, 50 }, "bias1_b", 2, { 30, 50 }, 1500 },
    { "input 30x40x50 batch=20\nscale shared=0,2",
      4,
      { 20, 30, 40, 50 },
      "scale1_scales",
      2,
      { 30, 50 },
      1500 },
    { "input 3x28x28 batch=20\nprelu shared=0,3", 4, { 20, 3, 28, 28 }, "prelu1_alpha", 2, { 3, 28 }, 84 },
    /* three cropped to (1, 1, 3, 2), (5, 1, 3, 2), (7, 1, 3, 2), one behind the other */
    { "a = input 2x3x4 batch=1\nb = input 4x4x2 batch=5\nc = input 1x8x9 batch=7\nconcat a b c axis=0 "
      "crop=none,lower,center,upper",
      4,
      { 13, 1, 3, 2 },
      NULL },
};

TEST(layers_give_lasagnes_shapes)
{
    for (int i = 0; i < COUNT(printed); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_net_read(net, "printed", printed[i].lines);
        const mc_layer *l = mc_net_layer(net, -1);
        bool same = CHECK(!*mc_error(g), "%s", mc_error(g)) && mc_layer_rank(l) == printed[i].rank &&
                    memcmp(mc_layer_dims(l), printed[i].dims, (size_t)printed[i].rank * sizeof(int64_t)) == 0;
        CHECK(same, "%s: another shape", printed[i].lines);
        const mc_node *w = printed[i].param ? mc_var(g, printed[i].param) : NULL;
        CHECK(!printed[i].param ||
                  (mc_node_rank(w) == printed[i].param_rank && mc_net_count(net, NULL) == printed[i].count &&
                   memcmp(mc_node_dims(w), printed[i].param_dims,
                          (size_t)printed[i].param_rank * sizeof(int64_t)) == 0),
              "%s: %s has another shape, or there are not %lld numbers", printed[i].lines, printed[i].param,
              (long long)printed[i].count);
        mc_net_free(net);
        mc_graph_free(g);
    }
}

/* The same for values: rows of a matrix that counts. */
TEST(an_embedding_gives_lasagnes_rows)
{
    static const int32_t at[] = { 0, 2, 1, 2 };
    float counting[15], want[4][5];
    for (int i = 0; i < 15; i++) {
        counting[i] = (float)i;
    }
    for (int i = 0; i < 20; i++) {
        want[i / 5][i % 5] = (float)(at[i / 5] * 5 + i % 5);
    }
    mc_flag_set("floatX", "float32");
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "rows", "input 2 dtype=int32\nembedding 3 5");
    mc_array *w = mc_array_from(MC_FLOAT32, MC_SHAPE(3, 5), counting),
             *x = mc_array_from(MC_INT32, MC_SHAPE(2, 2), at), *got = NULL;
    CHECK(!*mc_error(g) && mc_shared_set(mc_net_param(net, NULL, 0).shared, w) == MC_OK, "%s", mc_error(g));
    mc_function *f = mc_net_predictor(net);
    CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&got)) == MC_OK, "%s", mc_last_error());
    CHECK(got && mc_array_rank(got) == 3 && mc_array_size(got) == 20 &&
              memcmp(mc_array_data(got), want, sizeof want) == 0,
          "other rows");
    mc_array_unref(&w), mc_array_unref(&x), mc_array_unref(&got);
    mc_function_free(f);
    mc_net_free(net);
    mc_graph_free(g);
}

/* Two nets in one graph, one of them upon a variable of the other: names do not meet. */
TEST(two_nets_in_one_graph)
{
    mc_graph *g = mc_graph_new();
    mc_net *a = mc_net_new(g, NULL, 1), *b = mc_net_new(g, "other", 1);
    mc_net_read(a, "a", "input 5\ndense 4 tanh");
    mc_net_read(b, "b", "input 5\ndense 4 tanh W=dense1_W");
    CHECK(!*mc_error(g), "%s", mc_error(g));
    mc_node *x = mc_var(g, "x"), *y = mc_var(g, "other_x"), *in[] = { x, y };
    mc_node *out[] = { mc_layer_node(mc_net_layer(a, -1), MC_TRAINING),
                       mc_layer_node(mc_net_layer(b, -1), MC_TRAINING) };
    mc_function *f = mc_compile(
        g, &(mc_spec){ .input = in, .ninput = 2, .output = out, .noutput = 2, .mode = "FAST_COMPILE" });
    mc_array *v = mc_array_new(MC_FLOAT64, MC_SHAPE(2, 5)), *p = NULL, *q = NULL;
    for (int i = 0; i < 10; i++) {
        ((double *)mc_array_data(v))[i] = 0.3 * i - 1;
    }
    CHECK(f && mc_call(f, MC_IN(v, v), MC_OUT(&p, &q)) == MC_OK, "%s", mc_last_error());
    CHECK(p && q && memcmp(mc_array_data(p), mc_array_data(q), 8 * sizeof(double)) == 0,
          "a shared weight gives another result");
    mc_array_unref(&v);
    mc_array_unref(&p);
    mc_array_unref(&q);
    mc_function_free(f);
    mc_net_free(a);
    mc_net_free(b);
    mc_graph_free(g);
}

/* The batch is not known, nor are the places of a convolution: shapes say so, and what runs fits them. */
TEST(sizes_that_only_the_call_brings)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_net_read(net, "m",
                "input 3x?x?\na = conv 4 3x3 pad=same\nb = conv 6 5x5\nconcat a b "
                "crop=none,none,center,center\nbatch_norm\ndropout 0.5 shared=2,3\n"
                "pool 2x2\nupscale 2\npad 1\ndeconv 2 3x3 stride=2\nprelu\nspatial_pyramid 2,1\nflatten\n");
    CHECK(!*mc_error(g), "%s", mc_error(g));
    mc_layer *l = mc_net_layer(net, -1);
    CHECK(mc_layer_rank(l) == 2 && mc_layer_dims(l)[0] == -1 && mc_layer_dims(l)[1] == 10, "%d, %d",
          (int)mc_layer_dims(l)[0], (int)mc_layer_dims(l)[1]);
    mc_node *x = mc_var(g, "x");
    for (int pass = 0; pass < 2; pass++) {
        mc_node *y = mc_layer_node(l, (enum mc_pass)pass);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .input = &x, .ninput = 1, .output = &y, .noutput = 1, .mode = "FAST_COMPILE" });
        mc_array *v = mc_array_new(MC_FLOAT64, MC_SHAPE(2, 3, 9, 12)), *got = NULL;
        CHECK(f && mc_call(f, MC_IN(v), MC_OUT(&got)) == MC_OK, "%s", mc_last_error());
        CHECK(got && mc_array_dims(got)[0] == 2 && mc_array_dims(got)[1] == 10, "another shape");
        mc_array_unref(&v);
        mc_array_unref(&got);
        mc_function_free(f);
    }
    mc_net_free(net);
    mc_graph_free(g);
}
