/* t_spelled.c: names and forms of Theano's documents and of cuDNN: in flags and in formulas. */
#include "check.h"
#include "op/op.h"
#include <monochord.h>

TEST(flags_of_theano)
{
    static const struct { const char *name, *value, *flag, *is; } rows[] = {
        { "dnn.conv.algo_fwd",        "fft",           "conv.algo_fwd",        "fft"           },
        { "dnn.conv.algo_bwd",        "deterministic", "conv.algo_bwd_data",   "deterministic" },
        { "dnn.conv.algo_bwd",        "deterministic", "conv.algo_bwd_filter", "deterministic" },
        { "dnn.conv.algo_bwd_data",   "none",          "conv.algo_bwd_data",   "none"          },
        { "dnn.conv.algo_bwd_filter", "none",          "conv.algo_bwd_filter", "none"          },
        { "dnn.conv.precision",       "float64",       "conv.precision",       "float64"       },
        { "optimizer",                "fast_compile",  "mode",                 "FAST_COMPILE"  },
        { "optimizer",                "fast_run",      "mode",                 "FAST_RUN"      },
        { "optimizer",                "None",          "mode",                 "FAST_COMPILE"  },
        { "device",                   "gpu",           "device",               "cuda"          },
        { "device",                   "gpu0",          "device",               "cuda0"         },
        { "optimizer_including",      "cudnn",         "rewrite.including",    ""              },
        { "linker",                   "cvm",           "mode",                 "FAST_RUN"      },
        { "force_device",             "True",          "device",               NULL            }, /* as before */
        { "exception_verbosity",      "high",          "mode",                 "FAST_RUN"      },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        char *before = mc_strdup(mc_flag_get(rows[i].flag));
        const char *is = rows[i].is ? rows[i].is : before;
        CHECK(mc_flag_set(rows[i].name, rows[i].value) == MC_OK && strcmp(mc_flag_get(rows[i].flag), is) == 0,
              "%s=%s: %s is %s, not %s: %s", rows[i].name, rows[i].value, rows[i].flag,
              mc_flag_get(rows[i].flag), is, mc_last_error());
        mc_flag_set("conv.algo_bwd_data", "auto");
        mc_flag_set("conv.algo_bwd_filter", "auto");
        mc_flag_set(rows[i].flag, before);
        mc_free(before);
    }
    CHECK(mc_flag_set("dnn.conv.precision", "float12") < 0, "an unknown precision is accepted");
}

TEST(formulas_of_theano)
{
    static const struct { const char *said, *means; } rows[] = {
        { "pool(x, (2, 2))",                          "pool(x, [2, 2])"                                     },
        { "s.dimshuffle('x', 0)",                     "reshape(s, [1, 3])"                                  },
        { "x[0, 0].dimshuffle('x', 0, 1)",            "expand_dims(x[0, 0], 0)"                             },
        { "x.dimshuffle(1, 2, 3, 0)",                 "dimshuffle(x, [1, 2, 3, 0])"                         },
        { "dimshuffle(x, (1, 2, 3, 0))",              "dimshuffle(x, [1, 2, 3, 0])"                         },
        { "x.reshape((2, -1))",                       "reshape(x, [2, 192])"                                },
        { "x.sum(axis=(0, 1))",                       "sum(sum(x, axis=0), axis=0)"                         },
        { "conv2d(x, w, image_shape=(2, 3, 8, 8), filter_shape=(2, 3, 3, 3))", "conv(x, w)"                 },
        { "corr2d(x, w, border_mode=(1, 1), subsample=(1, 1))", "conv(x, w, border=[1, 1], flip=False)"      },
        { "dnn_conv(x, w, border_mode=(1, 1), conv_mode='cross')", "conv(x, w, border=[1, 1], flip=False)"   },
        { "dnn_pool(x, (2, 2), stride=(2, 2), pad=(0, 0))", "pool(x, [2, 2])"                               },
        { "conv2d(x, w, image_shape=(2, None, 8, 8), filter_shape=(None, 3, 3, None))", "conv(x, w)"          },
        { "d = dnn_conv_desc((1, 1), conv_mode='cross'); dnn_conv(x, w, desc=d)", "conv(x, w, border=[1, 1], flip=False)" },
        { "dnn_conv(x, w, desc=dnn_conv_desc(border_mode='full', subsample=2))", "conv(x, w, border='full', stride=2)" },
        { "d = dnn_conv_desc('half', (2, 2)); dnn_gradinput(w, dnn_conv(x, w, desc=d), shape(x), desc=d)",
          "dnn_gradinput(w, dnn_conv(x, w, border_mode='half', subsample=2), shape(x), border_mode='half', subsample=2)" },
        { "dnn_pool(x, dnn_pool_desc((2, 2), (2, 2), 'max', (0, 0)))", "pool(x, [2, 2])"                     },
        { "dnn_pool(img=x, ws=(2, 2))",               "pool(x, [2, 2], stride=[1, 1])"                      },
        { "gpu_contiguous(as_cuda_ndarray_variable(x))", "x"                                               },
        { "clone(exp(x) + sum(s), s, s * 2)",         "exp(x) + 2 * sum(s)"                                 },
        { "clone(x * s[0], x, x + 1, s, s * s)",      "(x + 1) * s[0] ** 2"                                 },
        { "clone(x)",                                 "x"                                                   },
    };
    const int64_t dims[3][4] = { { 2, 3, 8, 8 }, { 2, 3, 3, 3 }, { 3 } };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *value[3], *out[2] = { NULL };
        mc_node *in[3];
        for (int k = 0; k < 3; k++) {
            in[k] = mc_input(g, (const char *[]){ "x", "w", "s" }[k], MC_FLOAT64, k == 2 ? 1 : 4);
            value[k] = mc_array_new(MC_FLOAT64, k == 2 ? 1 : 4, dims[k]);
            for (int64_t j = 0; j < mc_array_size(value[k]); j++) {
                ((double *)(void *)value[k]->data)[j] = test_uniform(-1, 1);
            }
        }
        mc_node *y[2] = { mc_formula(g, rows[i].said), mc_formula(g, rows[i].means) };
        CHECK(mc_graph_status(g) == MC_OK && mc_eval(3, in, value, 2, y, out) == MC_OK &&
                  mc_array_differs(out[0], out[1], 1e-12, 1e-12) < 0,
              "%s: %s", rows[i].said, mc_graph_status(g) < 0 ? mc_error(g) : mc_last_error());
        for (int k = 0; k < 3; k++) {
            mc_array_unref(&value[k]);
        }
        mc_array_unref(&out[0]);
        mc_array_unref(&out[1]);
        mc_graph_free(g);
    }
}

/* floor((i + 2 p - ((k - 1) d + 1)) / s) + 1 positions along an axis */
TEST(descriptors_that_do_not_fit)
{
    static const struct { const char *formula, *says; } rows[] = {
        { "dnn_conv_desc('half') + 1",                                          "expected a tensor, not a descriptor" },
        { "d = dnn_conv_desc('half')",                                          "a descriptor is no result" },
        { "d = dnn_conv_desc('half'); d = x + 1",                               "'d' is a descriptor and cannot be assigned" },
        { "conv(x, w, desc=dnn_conv_desc('half'))",                             "conv takes no descriptor of dnn_conv_desc" },
        { "dnn_conv(x, w, desc=dnn_pool_desc((2, 2)))",                         "dnn_conv takes no descriptor of dnn_pool_desc" },
        { "dnn_conv(x, w, border_mode=dnn_conv_desc('half'))",                  "as border_mode" },
        { "dnn_conv(x, w, border_mode='full', desc=dnn_conv_desc('half'))",     "'border_mode' is given twice" },
        { "dnn_conv(x, w, desc=dnn_conv_desc(boder_mode='half'))",              "did you mean 'border_mode'?" },
        { "dnn_conv(x, w, desc=dnn_conv_desc('half', 1, 'conv', 'float32', 1))", "takes 4 arguments without a name" },
        { "dnn_conv(x, w, desc='half')",                                        "dnn_conv has no parameter 'desc'" },
    };
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 4);
    mc_input(g, "w", MC_FLOAT32, 4);
    for (size_t i = 0; i < NELEM(rows); i++) {
        CHECK(mc_is_error(mc_formula(g, rows[i].formula)) && strstr(mc_last_error(), rows[i].says), "%s: %s",
              rows[i].formula, mc_last_error());
    }
    ALLOC_FAIL_LOOP {
        mc_node *y = mc_formula(g, "d = dnn_conv_desc(border_mode='half'); dnn_conv(x, w, desc=d)");
        CHECK(!mc_is_error(y) || ALLOC_FAILED, "an error, yet memory: %s", mc_last_error());
    }
    mc_graph_free(g);
}

TEST(shape_of_a_convolution)
{
    static const struct { const char *said; int64_t is[5]; int n; } rows[] = {
        { "get_out_shape((2, 3, 8, 9), (4, 3, 3, 2), 'valid', (1, 1))",     { 2, 4, 6, 8 },       4 },
        { "get_out_shape((2, 3, 8, 9), (4, 3, 3, 2), 'full', (1, 1))",      { 2, 4, 10, 10 },     4 },
        { "get_out_shape((2, 3, 8, 9), (4, 3, 3, 2), 'half', (2, 3))",      { 2, 4, 4, 4 },       4 },
        { "get_out_shape((2, 3, 8, 9), (4, 3, 3, 2), (1, 0), subsample=2)", { 2, 4, 4, 4 },       4 },
        { "get_out_shape((2, 3, 8, 9), (4, 3, 3, 2), dilation=(2, 1))",     { 2, 4, 4, 8 },       4 },
        { "get_out_shape((2, 3, 8, 9, 5), (4, 3, 3, 2, 1))",                { 2, 4, 6, 8, 5 },    5 },
        { "get_out_shape(shape(x), s, 2, 2)",                               { 2, 4, 5, 5 },       4 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *in[2] = { mc_input(g, "x", MC_FLOAT32, 4), mc_input(g, "s", MC_INT64, 1) };
        mc_array *value[2] = { mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3, 8, 8)),
                               mc_array_from(MC_INT64, MC_SHAPE(4), (int64_t[]){ 4, 3, 3, 3 }) },
                 *out = NULL;
        mc_node *y = mc_formula(g, rows[i].said);
        const bool ok = mc_graph_status(g) == MC_OK && mc_eval(2, in, value, 1, &y, &out) == MC_OK;
        CHECK(ok && mc_array_size(out) == rows[i].n &&
                  memcmp(out->data, rows[i].is, (size_t)rows[i].n * sizeof rows[i].is[0]) == 0,
              "%s: %s", rows[i].said, mc_graph_status(g) < 0 ? mc_error(g) : mc_last_error());
        mc_array_unref(&out);
        mc_array_unref(&value[0]);
        mc_array_unref(&value[1]);
        mc_graph_free(g);
    }
}

TEST(libraries_by_name)
{
    static const char *const names[] = { "cuda", "nvrtc", "cublaslt", "cublas", "cudnn", "cufft", "cusolver",
                                         "onednn", "blas", "lapack", "openmp" };
    for (size_t i = 0; i < NELEM(names); i++) {
        const int has = mc_has(names[i]);
        CHECK(has == 0 || has == 1, "%s: %d", names[i], has);
    }
    CHECK(!mc_has("openmp"), "a library that is never used");
    CHECK(mc_has("cudn") == MC_EARG && strstr(mc_last_error(), "there is no library 'cudn'"), "%s",
          mc_last_error());
    CHECK(mc_has(NULL) == MC_EARG, "NULL is a name");
    static const struct {
        const char *name, *flag;
    } rows[] = { { "onednn", "onednn" }, { "blas", "blas" }, { "lapack", "lapack" } };
    for (size_t i = 0; i < NELEM(rows); i++) { /* what its flag forbids is not there */
        char *before = mc_strdup(mc_flag_get(rows[i].flag));
        mc_flag_set(rows[i].flag, "none");
        CHECK(mc_has(rows[i].name) == 0, "%s=none, and it is there", rows[i].flag);
        mc_flag_set(rows[i].flag, before);
        mc_free(before);
    }
}
