/* t_torch.c: parameters under PyTorch's names and in its layouts, with values worked out by hand.
 * bench/state_dict.py compares with PyTorch itself. */
#include "array_text.h"
#include "nn_words.h"
#include "own_folder.h"
#include "value/value.h"

#include <math.h>

static mc_graph *g;

static mc_net *net_of(const char *model)
{
    mc_flag_set("floatX", "float32");
    g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    CHECK(mc_net_read(net, "m", model) == MC_OK, "%s", mc_error(g));
    return net;
}

static void end(mc_net *net)
{
    mc_net_free(net);
    mc_graph_free(g);
}

/* 1, 2, 3, ... in the order of its elements */
static void count_up(const char *name)
{
    mc_array *a = mc_shared_get(mc_shared_named(g, name));
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        ((float *)mc_array_data(a))[i] = (float)(i + 1);
    }
    CHECK(a && mc_shared_set(mc_shared_named(g, name), a) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&a);
}

struct stored { const char *name, *want; };

/* A file has these arrays and no others. */
static void check_file(const char *path, const struct stored *rows, int n)
{
    mc_archive *z = mc_archive_open(path);
    CHECK(z && mc_archive_count(z) == n, "%d arrays: %s", mc_archive_count(z), mc_last_error());
    for (int i = 0; i < n; i++) {
        mc_array *a = mc_archive_load(z, rows[i].name);
        check_text(a, rows[i].want);
        mc_array_unref(&a);
    }
    mc_archive_close(z);
}

static const char model[] = "input 1x2x3\nconv 1 2x2 linear\nbatch_norm\nprelu\n"
                            "conv 1 1x2 linear flip=false\ndense 2 linear\n";

TEST(layouts_are_those_of_pytorch)
{
    static const struct stored rows[] = {
        { "conv1.weight", "[[[[4. 3.]\n   [2. 1.]]]]" },
        { "conv1.bias", "[1.]" },
        { "bn.weight", "[1.]" },
        { "bn.bias", "[1.]" },
        { "bn.running_mean", "[1.]" },
        { "bn.running_var", "[0.9375]" }, /* 1 - 1/16 */
        { "bn.num_batches_tracked", "0" },
        { "prelu1.weight", "[1.]" },
        { "conv2.weight", "[[[[1. 2.]]]]" },
        { "conv2.bias", "[1.]" },
        { "dense1.weight", "[[1.]\n [2.]]" },
        { "dense1.bias", "[1. 2.]" },
    };
    mc_net *net = net_of(model);
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        count_up(mc_net_param(net, NULL, i).name);
    }
    const char *path = in_folder("a.safetensors"),
               *names = " # all others have their own\nbatch_norm1=bn epsilon=0.0625";
    CHECK(mc_net_save_torch(net, path, names) == MC_OK, "%s", mc_last_error());
    check_file(path, rows, COUNT(rows));
    mc_net *copy;
    mc_graph *first_graph = g;
    copy = net_of(model);
    CHECK(mc_net_load_torch(copy, path, names) == MC_OK, "%s", mc_last_error());
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        mc_array *a = mc_shared_get(mc_net_param(net, NULL, i).shared),
                 *b = mc_shared_get(mc_net_param(copy, NULL, i).shared);
        CHECK(mc_array_same_bits(a, b), "%s differs", mc_net_param(net, NULL, i).name);
        mc_array_unref(&a);
        mc_array_unref(&b);
    }
    end(copy);
    g = first_graph;
    end(net);
}

/* 1x1 convolutions are Linear in some modules, dense layers Conv2d in others; factors have more axes. */
TEST(weights_have_the_axes_that_names_say)
{
    static const char lines[] = "input 2x3x3\nconv 2 1x1 linear\nscale\nglobal_pool\ndense 2 linear\n",
                      names[] = "conv1 = linear axes=2\nscale1 = block\ndense1 = conv axes=4 epsilon=0.5";
    static const struct stored rows[] = {
        { "linear.weight", "[[1. 2.]\n [3. 4.]]" },
        { "linear.bias", "[1. 2.]" },
        { "block.layer_scale", "[[[1.]]\n\n [[2.]]]" },
        { "conv.weight", "[[[[1.]]\n\n  [[3.]]]\n\n\n [[[2.]]\n\n  [[4.]]]]" },
        { "conv.bias", "[1. 2.]" },
    };
    mc_net *net = net_of(lines);
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        count_up(mc_net_param(net, NULL, i).name);
    }
    const char *path = in_folder("x.safetensors");
    CHECK(mc_net_save_torch(net, path, names) == MC_OK, "%s", mc_last_error());
    check_file(path, rows, COUNT(rows));
    end(net);
    net = net_of(lines);
    CHECK(mc_net_load_torch(net, path, names) == MC_OK, "%s", mc_last_error());
    static const struct {
        const char *name;
        float last;
    } lasts[] = { { "conv1_W", 4 }, { "scale1_scales", 2 }, { "dense1_W", 4 } };
    for (int i = 0; i < COUNT(lasts); i++) {
        mc_array *a = mc_shared_get(mc_shared_named(g, lasts[i].name));
        const float *v = mc_array_data(a);
        for (int k = 0; k < (int)lasts[i].last; k++) {
            CHECK(v[k] == (float)(k + 1), "%s[%d] is %g", lasts[i].name, k, v[k]);
        }
        mc_array_unref(&a);
    }
    end(net);
}

TEST(files_that_do_not_fit_change_nothing)
{
    static const struct {
        const char *names, *says;
        mc_status status;
    } rows[] = {
        { "", "", MC_OK },
        { "dense1 = none\nnone = dense1\n", "", MC_OK },
        { "dense1 = none", "t.safetensors: the file has 'dense1.weight', but the net has not", MC_EARG },
        { "dense1 = fc", "t.safetensors: the file has 'dense1.weight', but the net has not", MC_EARG },
        { "dense1 = fc\nnone = dense1", "t.safetensors: the file has no 'fc.weight' for 'dense1_W'",
          MC_EARG },
        { "dense1 = conv1", "two layers have the name 'conv1.weight' in PyTorch", MC_EARG },
        { "dense1 = conv2\nconv2 = dense1", "'dense1.weight' has shape (2, 1); the net's has (1, 1, 1, 2)",
          MC_ESHAPE },
        { "\ndens1 = fc", "names, line 2: there is no layer 'dens1'", MC_EARG },
        { "dense1 fc",
          "names, line 1: expected 'layer = module', and epsilon=0.001 or axes=2 behind it if PyTorch's "
          "differ",
          MC_ESYNTAX },
        { "dense1 = ", "names, line 1: expected ", MC_ESYNTAX },
        { "= fc", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc more", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc epsilon=x", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc epsilon=-1", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc eps=0.1", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc axes=0", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc axes=2.5", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc axes=9", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = fc axes=2 more", "names, line 1: expected ", MC_ESYNTAX },
        { "dense1 = dense1 axes=4", "'dense1.weight' has shape (2, 1); the net's has (2, 1, 1, 1)",
          MC_ESHAPE },
        { "conv2 = conv2 axes=3", "'conv2_W' cannot have 3 axes in PyTorch: it has 4", MC_EUNSUPPORTED },
    };
    mc_net *net = net_of(model);
    const char *path = in_folder("t.safetensors");
    CHECK(mc_net_save_torch(net, path, NULL) == MC_OK, "%s", mc_last_error());
    mc_shared *bias = mc_shared_named(g, "dense1_b");
    for (int i = 0; i < COUNT(rows); i++) {
        count_up("conv1_b");
        count_up("dense1_b");
        mc_clear_error();
        mc_status s = mc_net_load_torch(net, path, rows[i].names);
        CHECK(s == rows[i].status && strstr(mc_last_error(), rows[i].says), "row %d: %s", i, mc_last_error());
        CHECK(first(mc_shared_named(g, "conv1_b"), 0) == (s == MC_OK ? 0 : 1), "row %d: conv1_b", i);
        CHECK(first(bias, 1) == (i == 0 ? 0 : 2), "row %d: dense1_b", i);
    }
    end(net);
}

TEST(layers_without_a_counterpart_are_told)
{
    static const struct {
        const char *model, *says;
    } rows[] = {
        { "input 1x3x3\nlocal 1 3x3", "'local1_W' has no counterpart in PyTorch" },
        { "input 1x3x3\nconv 1 2x2 untie=true", "'conv1_b' has no counterpart in PyTorch" },
        { "input 3x3\nbias", "'bias1_b' has no counterpart in PyTorch" },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        mc_net *net = net_of(rows[i].model);
        CHECK(mc_net_save_torch(net, in_folder("u.safetensors"), NULL) == MC_EUNSUPPORTED &&
                  strcmp(mc_last_error(), rows[i].says) == 0,
              "row %d: %s", i, mc_last_error());
        end(net);
    }
    CHECK(mc_net_save_torch(NULL, "x", NULL) == MC_EARG && mc_net_load_torch(NULL, "x", NULL) == MC_EARG,
          "no net");
}

TEST_FULL(models_have_the_names_of_torchvision)
{
    static const struct {
        const char *model;
        int arrays;
        const char *has[3];
    } rows[] = {
        { "resnet-50", 320, { "layer4.2.bn3.running_var", "layer2.0.downsample.0.weight", "fc.bias" } },
        { "mobilenet-v2",
          314,
          { "features.1.conv.1.weight", "features.17.conv.1.1.running_var", "classifier.1.bias" } },
        { "convnext-t",
          182,
          { "features.1.0.layer_scale", "features.5.8.block.3.weight", "classifier.2.bias" } },
        { "regnet-y",
          384,
          { "trunk_output.block1.block1-0.f.se.fc1.weight", "trunk_output.block4.block4-5.f.c.1.running_var",
            "fc.bias" } },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        char *lines = NULL, *names = NULL, path[400];
        size_t n;
        mc_snprintf(path, sizeof path, "%s/../models/%s.txt", TEST_ROOT, rows[i].model);
        CHECK(mc_file_read(path, &lines, &n) == MC_OK, "%s", mc_last_error());
        mc_snprintf(path, sizeof path, "%s/../models/%s.names", TEST_ROOT, rows[i].model);
        CHECK(mc_file_read(path, &names, &n) == MC_OK, "%s", mc_last_error());
        mc_net *net = net_of(lines ? lines : "");
        CHECK(mc_net_save_torch(net, in_folder("r.safetensors"), names) == MC_OK, "%s", mc_last_error());
        mc_archive *z = mc_archive_open(in_folder("r.safetensors"));
        CHECK(mc_archive_count(z) == rows[i].arrays, "%s: %d arrays: %s", rows[i].model, mc_archive_count(z),
              mc_last_error());
        for (int k = 0; k < COUNT(rows[i].has); k++) {
            CHECK(mc_archive_has(z, rows[i].has[k]), "%s: no %s", rows[i].model, rows[i].has[k]);
        }
        mc_archive_close(z);
        mc_free(lines);
        mc_free(names);
        end(net);
    }
}

TEST(state_dicts_survive_every_failed_allocation)
{
    mc_net *net = net_of(model);
    const char *path = in_folder("n.safetensors");
    ALLOC_FAIL_LOOP {
        mc_clear_error();
        bool good = mc_net_save_torch(net, path, "conv1 = a.b") == MC_OK &&
                    mc_net_load_torch(net, path, "conv1 = a.b") == MC_OK;
        CHECK(good == !ALLOC_FAILED && (good || mc_last_status() == MC_EMEMORY), "%s", mc_last_error());
    }
    end(net);
}
