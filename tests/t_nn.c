/* t_nn.c: layers: every kind's shape while building is its shape when it runs, its gradient agrees with
 * differences, what it computes agrees with a formula said another way.
 *
 * Invariant: every kind of the tables has a row here; a kind without one fails. */
#include "check.h"
#include "nn/nn.h"
#include <math.h>
#include <stdio.h>

#define IMAGES "input 4x6x6 batch=3"
#define ROWS "input 8 batch=3"
#define STEPS "input 3x2 batch=2"

/* Lines before and the line itself; what it computes said another way, or NULL; tolerance of the gradient: 0
 * for those that have none to speak of. */
static const struct row {
    const char *before, *line, *text;
} rows[] = {
    { NULL, IMAGES, NULL },
    { IMAGES, "dense 5 tanh", "tanh(dot(flatten(x, ndim=2), dense1_W) + dense1_b)" },
    { IMAGES, "dense 5 softplus axes=3 b=none", "softplus(dot(x, dense1_W))" },
    { IMAGES, "nin 5 linear",
      "dimshuffle(tensordot(nin1_W, x, axes=[0], axes_b=[1]), [1, 0, 2, 3]) + dimshuffle(nin1_b, [-1, 0, -1, "
      "-1])" },
    { IMAGES, "nin 5 linear untie=true b=normal",
      "dimshuffle(tensordot(nin1_W, x, axes=[0], axes_b=[1]), [1, 0, 2, 3]) + expand_dims(nin1_b, 0)" },
    { "input 7 batch=3 dtype=int64", "embedding 9 4", "embedding1_W[x]" },
    { "input 3 batch=2", "embedding 2 4", "embedding1_W[cast(x, 'int32')]" },
    { ROWS, "nonlinearity scaled_tanh(0.5,2.4)", "2.4 * tanh(0.5 * x)" },
    { ROWS "\nexpression '9 * $x'", "nonlinearity relu6", "where(x > 0, where(x < 6 / 9., 9 * x, 6), 0)" },
    { ROWS, "nonlinearity leaky_rectify(0.2)", "where(x > 0, x, 0.2 * x)" },
    { ROWS, "nonlinearity elu", "where(x > 0, x, exp(x) - 1)" },
    { ROWS, "expression 'sqr($x) + 1'", "x * x + 1" },
    { IMAGES, "conv 8 3x3 tanh pad=1 b=normal(0.1)",
      "tanh(conv2d(x, conv1_W, border_mode=1) + dimshuffle(conv1_b, [-1, 0, -1, -1]))" },
    { IMAGES, "conv 8 3x2 linear stride=2x1 pad=full b=none",
      "conv2d(x, conv1_W, border_mode='full', subsample=[2, 1])" },
    { IMAGES, "conv 8 3 linear groups=2 dilation=2 untie=true b=normal",
      "conv2d(x, conv1_W, num_groups=2, filter_dilation=2) + conv1_b" },
    { "input 4x9 batch=3", "conv 8 3 linear flip=false", "conv1d(x, conv1_W, filter_flip=False)" },
    { "input 2x4x5x3 batch=2", "conv 4 2 linear", "conv3d(x, conv1_W)" },
    { IMAGES, "conv_mm 8 3 linear pad=same", "corrmm(x, conv_mm1_W, 'half')" },
    { IMAGES, "conv_dnn 8 3 linear", "dnn_conv(x, conv_dnn1_W, conv_mode='cross')" },
    { IMAGES, "dilated_conv 5 2 linear dilation=2",
      "conv2d(x, swapaxes(dilated_conv1_W, 0, 1), filter_dilation=2, filter_flip=False)" },
    { IMAGES, "deconv 5 3 linear stride=2 crop=1",
      "conv2d_grad_wrt_inputs(x, deconv1_W, [3, 5, 11, 11], border_mode=1, subsample=2)" },
    { IMAGES, "deconv 5 3 linear stride=2 output=14x13 flip=true",
      "conv2d_grad_wrt_inputs(x, deconv1_W, [3, 5, 14, 13], subsample=2, filter_flip=False)" },
    { IMAGES, "local 5 3 linear",
      "conv(x, dimshuffle(local1_W, [0, 4, 5, 1, 2, 3]), border='half', unshared=True)" },
    { IMAGES, "local 4 3 linear channelwise=true flip=false",
      "stack(conv(x[:, 0:1], local1_W[0:1, :, :].dimshuffle([0, 3, 4, -1, 1, 2]), border='half', "
      "unshared=True, flip=False)[:, 0], "
      "conv(x[:, 1:2], local1_W[1:2, :, :].dimshuffle([0, 3, 4, -1, 1, 2]), border='half', unshared=True, "
      "flip=False)[:, 0], "
      "conv(x[:, 2:3], local1_W[2:3, :, :].dimshuffle([0, 3, 4, -1, 1, 2]), border='half', unshared=True, "
      "flip=False)[:, 0], "
      "conv(x[:, 3:4], local1_W[3:4, :, :].dimshuffle([0, 3, 4, -1, 1, 2]), border='half', unshared=True, "
      "flip=False)[:, 0], axis=1)" },
    { IMAGES, "pool 2x2", "max(reshape(x, [3, 4, 3, 2, 3, 2]), axis=[3, 5])" },
    { IMAGES, "pool 3 mean stride=2 pad=1", "pool(x, [3, 3], [2, 2], [1, 1], mode='average_exc_pad')" },
    { IMAGES, "pool 4x3 sum ignore_border=false", "pool_2d(x, [4, 3], mode='sum')" },
    { "input 4x9 batch=3", "pool 3", "max(reshape(x, [3, 4, 3, 3]), axis=3)" },
    { IMAGES, "upscale 2", "repeat(repeat(x, 2, axis=2), 2, axis=3)" },
    { IMAGES, "upscale 2x3", "repeat(repeat(x, 2, axis=2), 3, axis=3)" },
    { IMAGES, "upscale 2x3 dilate", "set_subtensor(zeros([3, 4, 12, 18])[:, :, ::2, ::3], x)" },
    { IMAGES, "feature_pool 2", "maximum(x[:, ::2], x[:, 1::2])" },
    { IMAGES, "feature_wta 2",
      "reshape(stack(where(x[:, ::2] >= x[:, 1::2], x[:, ::2], 0), where(x[:, 1::2] > x[:, ::2], x[:, 1::2], "
      "0), axis=2), [3, 4, 6, 6])" },
    { IMAGES, "global_pool", "mean(mean(x, axis=3), axis=2)" },
    { IMAGES, "nonlinearity selu", "selu(x)" },
    { IMAGES, "nonlinearity selu(2,3)", "2 * elu(x, alpha=3)" },
    { IMAGES, "spatial_pyramid 4 implementation=kaiming",
      "reshape(stack(max(x[:, :, :2, :2], axis=[2, 3]), max(x[:, :, :2, 1:3], axis=[2, 3]), max(x[:, :, :2, "
      "3:5], axis=[2, 3]), max(x[:, :, :2, 4:], axis=[2, 3]), "
      "max(x[:, :, 1:3, :2], axis=[2, 3]), max(x[:, :, 1:3, 1:3], axis=[2, 3]), max(x[:, :, 1:3, 3:5], "
      "axis=[2, 3]), max(x[:, :, 1:3, 4:], axis=[2, 3]), "
      "max(x[:, :, 3:5, :2], axis=[2, 3]), max(x[:, :, 3:5, 1:3], axis=[2, 3]), max(x[:, :, 3:5, 3:5], "
      "axis=[2, 3]), max(x[:, :, 3:5, 4:], axis=[2, 3]), "
      "max(x[:, :, 4:, :2], axis=[2, 3]), max(x[:, :, 4:, 1:3], axis=[2, 3]), max(x[:, :, 4:, 3:5], axis=[2, "
      "3]), max(x[:, :, 4:, 4:], axis=[2, 3]), axis=2), [3, 4, 16])" },
    { IMAGES, "spatial_pyramid 2,1",
      "concatenate(flatten(pool(x, [3, 3]), ndim=3), dimshuffle(max(x, axis=[2, 3]), [0, 1, -1]), axis=2)" },
    { IMAGES "\na = conv 3 1 linear", "concat x a", "join(x, a, axis=1)" },
    { IMAGES "\na = conv 3 3 linear", "concat x a crop=none,none,center,lower",
      "join(x[:, :, 1:5, :4], a, axis=1)" },
    { IMAGES "\na = conv 4 1 linear", "sum x a", "x + a" },
    { IMAGES "\na = conv 4 1 linear", "sum x a coeffs=2,-0.5", "2 * x - 0.5 * a" },
    { IMAGES "\na = conv 4 3 linear", "sum x a crop=none,none,upper,upper act=tanh",
      "tanh(x[:, :, 2:, 2:] + a)" },
    { IMAGES "\na = conv 4 1 linear", "merge x a op=maximum", "maximum(x, a)" },
    { IMAGES "\na = dense 4 sigmoid", "excite x a act=tanh",
      "tanh(stack(x[:, 0] * a[:, 0:1, None], x[:, 1] * a[:, 1:2, None], x[:, 2] * a[:, 2:3, None], "
      "x[:, 3] * a[:, 3:4, None], axis=1))" },
    { IMAGES, "dropout 0.5", NULL },
    { IMAGES, "dropout 0.3 shared=0,2", NULL },
    { IMAGES, "dropout_channels", NULL },
    { IMAGES, "dropout_locations", NULL },
    { IMAGES, "noise 0.2", NULL },
    { IMAGES, "rrelu", NULL },
    { IMAGES, "lrn 3 alpha=0.1", "x / (2 + 0.1 * channel_sum(sqr(x), 3)) ** 0.75" },
    { IMAGES, "batch_norm tanh gamma=normal(1) beta=normal(1)",
      "tanh((x - mean(x, axis=[0, 2, 3], keepdims=True)) / sqrt(var(x, axis=[0, 2, 3], keepdims=True) + "
      "0.0001) * "
      "dimshuffle(batch_norm1_gamma, [-1, 0, -1, -1]) + dimshuffle(batch_norm1_beta, [-1, 0, -1, -1]))" },
    { ROWS "\nbatch_norm", "batch_norm mean=batch_norm1_mean from=x", "batch_norm1" },
    { ROWS, "batch_norm gamma=none beta=none", "(x - mean(x, axis=0)) / sqrt(var(x, axis=0) + 0.0001)" },
    { IMAGES, "standardize",
      "(x - mean(x, axis=[2, 3], keepdims=True)) / sqrt(var(x, axis=[2, 3], keepdims=True) + 0.0001)" },
    { ROWS, "standardize",
      "(x - mean(x, axis=1, keepdims=True)) / sqrt(var(x, axis=1, keepdims=True) + 0.0001)" },
    { IMAGES, "instance_norm scale=normal(1)",
      "(x - mean(x, axis=[2, 3], keepdims=True)) / sqrt(var(x, axis=[2, 3], keepdims=True) + 0.0001) * "
      "dimshuffle(instance_norm1_scale, [-1, 0, -1, -1])" },
    { IMAGES, "layer_norm bias=normal(1)",
      "(x - mean(x, axis=[1, 2, 3], keepdims=True)) / sqrt(var(x, axis=[1, 2, 3], keepdims=True) + 0.0001) + "
      "dimshuffle(layer_norm1_bias, [-1, 0, -1, -1])" },
    { IMAGES, "layer_norm scale=normal(1) bias=normal(1) epsilon=1e-6 axes=channels",
      "(x - mean(x, axis=1, keepdims=True)) / sqrt(var(x, axis=1, keepdims=True) + 1e-6) * "
      "dimshuffle(layer_norm1_scale, [-1, 0, -1, -1]) + dimshuffle(layer_norm1_bias, [-1, 0, -1, -1])" },
    { IMAGES, "bias normal(1)", "x + dimshuffle(bias1_b, [-1, 0, -1, -1])" },
    { IMAGES, "scale normal(1) shared=0,1", "x * scale1_scales" },
    { IMAGES, "prelu shared=all", "where(x > 0, x, prelu1_alpha * x)" },
    { IMAGES, "flatten", "reshape(x, [3, 144])" },
    { IMAGES, "flatten 3", "reshape(x, [3, 4, 36])" },
    { IMAGES, "reshape [0],2,-1", "reshape(x, [3, 2, 72])" },
    { ROWS, "dimshuffle 1,x,0", "expand_dims(x.T, 1)" },
    { IMAGES, "pad 1,0:2 value=3",
      "join(join(3 * ones([3, 4, 1, 8]), join(x, 3 * ones([3, 4, 6, 2]), axis=3), 3 * ones([3, 4, 1, 8]), "
      "axis=2), axis=2)" },
    { IMAGES, "slice 2 axis=1", "x[:, 2]" },
    { IMAGES, "slice 1:6:2", "x[..., 1:6:2]" },
    { IMAGES "\np = pool 2\ne = expression 'sqr($x)'", "inverse of=p", "Lop(p, x, e)" },
    { IMAGES "\nmove = dense 6 tanh", "transformer x move", NULL },
    { IMAGES "\nmove = dense 6 linear W=0 b=0", "transformer x move downsample=2x3 border=mirror",
      "zeros([3, 4, 3, 2]) + mean(x[:, :, 2:4, 2:4], axis=[2, 3], keepdims=True)" },
    { IMAGES "\nmove = expression 'alloc([-1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [3, 6])'", "transformer x move",
      "x[:, :, :, ::-1]" },
    { IMAGES "\nmove = dense 8 linear W=0", "tps_transformer x move points=4", "x + zeros_like(x)" },
    { IMAGES "\nmove = dense 32 linear W=0", "tps_transformer x move", "x + zeros_like(x)" },
    { IMAGES "\nmove = dense 8 tanh W=normal(0.001)", "tps_transformer x move points=4 border=wrap", NULL },
    { IMAGES, "conv_cc 16 3 linear pad=1", "conv(x, conv_cc1_W, border=1, flip=False)" },
    { IMAGES, "conv_cc 16 3 linear stride=2 flip=true", "conv(x, conv_cc1_W, stride=2)" },
    { "input 6x6x2 batch=4", "conv_cc 16 3 tanh dimshuffle=false b=normal",
      "tanh(filter_acts(x, conv_cc1_W) + dimshuffle(conv_cc1_b, [0, -1, -1, -1]))" },
    { IMAGES, "pool_cc 3 stride=2", "c01b_to_bc01(max_pool(bc01_to_c01b(x), 3, 2))" },
    { "input 6x6x2 batch=4", "pool_cc 2 dimshuffle=false", "max_pool(x, 2)" },
    { IMAGES, "bc01_to_c01b", "dimshuffle(x, [1, 2, 3, 0])" },
    { IMAGES, "c01b_to_bc01", "dimshuffle(x, [3, 0, 1, 2])" },
    { "input 6x6x2 batch=4", "nin_c01b 5 linear b=normal",
      "tensordot(nin_c01b1_W, x, axes=[1], axes_b=[0]) + dimshuffle(nin_c01b1_b, [0, -1, -1, -1])" },
    { IMAGES, "nervana_conv 8 3 linear border_mode=same stride=2",
      "nervana_conv(x, nervana_conv1_W, padding=1, strides=2)" },
    { IMAGES, "nervana_conv 8 2 linear pad=1", "conv(x, nervana_conv1_W, border=1, flip=False)" },
    { "input 6x6x2 batch=4", "nervana_conv 8 3 linear dimshuffle=false b=normal",
      "nervana_conv(x, nervana_conv1_W, dimshuffle=False, padding=0) + dimshuffle(nervana_conv1_b, [0, -1, "
      "-1, -1])" },
    { STEPS, "recurrent 2 tanh b=normal(1)",
      "dimshuffle(scan(a in dimshuffle(x, [1, 0, 2]), h from zeros([2, 2]): h = tanh(dot(a, recurrent1_W_in) + "
      "dot(h, recurrent1_W_hid) + recurrent1_b)), [1, 0, 2])" },
    { STEPS, "lstm 2 b=normal(1) only_return_final=true",
      "s = zeros([2, 2]); c = s; "
      "o, c = scan(a in dimshuffle(x, [1, 0, 2]), h from s, c from s: z = dot(a, lstm1_W_in) + dot(h, lstm1_W_hid) + "
      "lstm1_b; P = lstm1_W_cell; c = sigmoid(z[:, 2:4] + c * P[2:4]) * c + sigmoid(z[:, :2] + c * P[:2]) * "
      "tanh(z[:, 4:6]); h = sigmoid(z[:, 6:] + c * P[4:]) * tanh(c)); o[-1]" },
    { STEPS, "gru 2 b=normal(1) learn_init=true",
      "dimshuffle(scan(a in dimshuffle(x, [1, 0, 2]), h from zeros([2, 2]) + gru1_hid_init: z = dot(a, gru1_W_in) + "
      "gru1_b; y = dot(h, gru1_W_hid); u = sigmoid(z[:, 2:4] + y[:, 2:4]); n = tanh(z[:, 4:] + sigmoid(z[:, :2] + "
      "y[:, :2]) * y[:, 4:]); h = (1 - u) * h + u * n), [1, 0, 2])" },
    { STEPS, "gru_dnn 2 b=normal(1) b_hid=normal(1)",
      "dimshuffle(scan(a in dimshuffle(x, [1, 0, 2]), h from zeros([2, 2]): z = dot(a, gru_dnn1_W_in) + gru_dnn1_b; "
      "y = dot(h, gru_dnn1_W_hid) + gru_dnn1_b_hid; u = sigmoid(z[:, 2:4] + y[:, 2:4]); n = tanh(z[:, 4:] + "
      "sigmoid(z[:, :2] + y[:, :2]) * y[:, 4:]); h = u * h + (1 - u) * n), [1, 0, 2])" },
    { STEPS "\nd = dense 2 linear", "custom_recurrent 2 '$x + dot($h, d_W[:2])' tanh from=x",
      "dimshuffle(scan(a in dimshuffle(x, [1, 0, 2]), h from zeros([2, 2]): h = tanh(a + dot(h, d_W[:2]))), [1, 0, "
      "2])" },
};

struct made {
    mc_graph *g;
    mc_net *net;
    mc_layer *l;
};

static struct made make(const struct row *r)
{
    struct made m = { mc_graph_new(), NULL, NULL };
    m.net = mc_net_new(m.g, NULL, 7);
    if (r->before) {
        mc_net_read(m.net, "test", r->before);
    }
    m.l = mc_net_add(m.net, "%s", r->line);
    return m;
}

static void free_made(struct made *m)
{
    mc_net_free(m->net);
    mc_graph_free(m->g);
}

static mc_array *random_like(mc_node *n)
{
    mc_array *a = mc_array_new(mc_node_dtype(n), mc_node_rank(n), mc_node_dims(n));
    for (int64_t i = 0, size = mc_array_size(a); i < size; i++) {
        double v = mc_array_dtype(a) == MC_FLOAT64 ? test_uniform(-1, 1) : floor(test_uniform(0, 9));
        mc_array *flat = mc_array_reshape(a, 1, &size);
        mc_array_set(flat, &i, v);
        mc_array_unref(&flat);
    }
    return a;
}

static double apart(const mc_array *a, const mc_array *b)
{
    double worst = mc_array_rank(a) == mc_array_rank(b) ? 0 : INFINITY;
    for (int i = 0; worst == 0 && i < mc_array_rank(a); i++) {
        worst = mc_array_dims(a)[i] == mc_array_dims(b)[i] ? 0 : INFINITY;
    }
    mc_array *p = mc_array_copy(a), *q = mc_array_copy(b);
    for (int64_t i = 0; worst < 1 && i < mc_array_size(a); i++) {
        worst = fmax(worst, fabs(((double *)mc_array_data(p))[i] - ((double *)mc_array_data(q))[i]));
    }
    mc_array_unref(&p);
    mc_array_unref(&q);
    return worst;
}

TEST(kinds_compute)
{
    for (int i = 0; i < COUNT(rows); i++) {
        struct made m = make(&rows[i]);
        if (!CHECK(!*mc_error(m.g), "%s: %s", rows[i].line, mc_error(m.g))) {
            free_made(&m);
            continue;
        }
        mc_node *y = mc_layer_node(m.l, MC_TRAINING), *x = mc_layer_node(mc_net_layer(m.net, 0), MC_TRAINING),
                *in[] = { x };
        mc_node *want = rows[i].text ? mc_formula(m.g, rows[i].text) : y, *out[] = { y, want };
        CHECK(!*mc_error(m.g), "%s: %s", rows[i].line, mc_error(m.g));
        mc_function *f = mc_compile(m.g, &(mc_spec){ .input = in,
                                                     .ninput = 1,
                                                     .output = out,
                                                     .noutput = 2,
                                                     .on_unused = "ignore",
                                                     .mode = "FAST_COMPILE" });
        mc_array *at = random_like(x), *got = NULL, *other = NULL;
        CHECK(f && mc_call(f, MC_IN(at), MC_OUT(&got, &other)) == MC_OK, "%s: %s", rows[i].line,
              mc_last_error());
        if (got) {
            bool same = mc_array_rank(got) == mc_layer_rank(m.l) && mc_array_dtype(got) == mc_node_dtype(y);
            for (int k = 0; same && k < mc_array_rank(got); k++) {
                same = mc_array_dims(got)[k] == mc_layer_dims(m.l)[k];
            }
            CHECK(same, "%s: another shape when it runs", rows[i].line);
            CHECK(mc_array_dtype(got) != MC_FLOAT64 || apart(got, other) < 1e-9, "%s: off by %g; %s",
                  rows[i].line, apart(got, other), mc_layer_text(m.l, 0));
        }
        mc_array_unref(&at);
        mc_array_unref(&got);
        mc_array_unref(&other);
        mc_function_free(f);
        free_made(&m);
    }
}

TEST(every_kind_has_a_row)
{
    for (int t = 0; mc_nn_kinds[t]; t++) {
        for (const struct mc_nn_kind *k = mc_nn_kinds[t]; k->name; k++) {
            bool found = false;
            for (int i = 0; i < COUNT(rows) && !found; i++) {
                struct made m = make(&rows[i]);
                found = strcmp(mc_layer_kind(m.l), k->name) == 0;
                free_made(&m);
            }
            CHECK(found, "no row for %s", k->name);
        }
    }
}

/* By the input and all parameters; what is random stays as it is drawn once, so those that draw are left to
 * the deterministic pass, where they are the identity or close to it. */
TEST(kinds_have_gradients)
{
    for (int i = 0; i < COUNT(rows); i++) {
        struct made m = make(&rows[i]);
        mc_node *y = mc_layer_node(m.l, MC_DETERMINISTIC), *wrt[8];
        mc_array *at[8];
        int n = 0;
        double worst = 0;
        mc_node *x = mc_layer_node(mc_net_layer(m.net, 0), MC_TRAINING);
        if (*mc_error(m.g) || m.l->kind->nin == 0 || strcmp(m.l->kind->name, "embedding") == 0) {
            free_made(&m);
            continue;
        }
        wrt[n++] = x;
        for (int k = 0; n < 8 && mc_net_param(m.net, "trainable", k).name; k++) {
            if (mc_net_param(m.net, "trainable", k).layer == m.l) {
                wrt[n++] = mc_shared_node(m.g, mc_net_param(m.net, "trainable", k).shared);
            }
        }
        for (int k = 0; k < n; k++) {
            at[k] = random_like(wrt[k]);
        }
        mc_status s = mc_verify_grad(y, n, wrt, at, &worst);
        CHECK(s == MC_OK, "%s: %s", rows[i].line, mc_last_error());
        for (int k = 0; k < n; k++) {
            mc_array_unref(&at[k]);
        }
        free_made(&m);
    }
}
