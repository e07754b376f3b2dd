/* t_ops_conv_names.c: convolution by its other names, each against what it stands for; larger images against
 * loops; the limits that cuda-convnet had. */
#include "op_fixture.h"
#include <math.h>
#include <stdio.h>

static bool close_to(const mc_array *have, const mc_array *want, const char *what)
{
    if (!have || !want || have->dtype != want->dtype ||
        !mc_dims_equal(have->rank, have->dims, want->rank, want->dims)) {
        return check_same(have, want, what);
    }
    int64_t at = mc_array_differs(have, want, 8 * mc_dtypes[have->dtype].eps, 8 * mc_dtypes[have->dtype].eps);
    return CHECK(at < 0, "%s: element %lld differs", what, (long long)at);
}

/* ---- both formulas of a row are the same numbers ---- */

enum { NARRAY = 9 };
static const struct { const char *name; int rank; int64_t dims[6]; } arrays[NARRAY] = {
    { "a", 3, { 2, 4, 9 } },        { "u", 3, { 6, 2, 3 } },       /* two groups */
    { "x", 4, { 2, 4, 8, 9 } },     { "w", 4, { 6, 2, 3, 4 } },
    { "p", 4, { 5, 6, 1, 1 } },     { "v", 4, { 3, 4, 3, 3 } },
    { "z", 5, { 1, 4, 4, 5, 6 } },  { "t", 5, { 2, 4, 2, 3, 3 } },
    { "q", 4, { 4, 3, 3, 16 } },    /* c01b filters */
};

static void setting(struct leaf *leaf, unsigned sized)
{
    for (int i = 0; i < NARRAY; i++) {
        leaf[i] = (struct leaf){ arrays[i].name, sample(MC_FLOAT64, arrays[i].rank, arrays[i].dims, -1, 1),
                                 sized, false };
    }
}

/* Only the arrays that a formula names: there is no room for more inputs than eight. */
static int used(const struct leaf *all, const char *text, struct leaf *leaf)
{
    int n = 0;
    for (int i = 0; i < NARRAY; i++) {
        for (const char *at = strchr(text, all[i].name[0]); at; at = strchr(at + 1, all[i].name[0])) {
            bool word = (at > text && (at[-1] == '_' || (at[-1] >= 'a' && at[-1] <= 'z') ||
                                       (at[-1] >= '0' && at[-1] <= '9'))) ||
                        at[1] == '_' || at[1] == '=' || (at[1] >= 'a' && at[1] <= 'z');
            if (!word) {
                leaf[n++] = all[i];
                break;
            }
        }
    }
    return n;
}

static mc_array *value(const struct leaf *all, const char *text)
{
    struct leaf leaf[NARRAY];
    int n = used(all, text, leaf);
    return run(n, leaf, text);
}

static const struct { const char *name, *is; } rows[] = {
    { "conv1d(a, u, num_groups=2, border_mode='half', subsample=2)", "conv(a, u, groups=2, border='half', stride=2)" },
    { "conv2d(x, w, num_groups=2)", "conv(x, w, groups=2)" },
    { "conv2d(x, v, [2, 4, -1, -1], [3, 4, 3, 3], 'full', [2, 1], False, [1, 2])", "conv(x, v, 'full', [2, 1], [1, 2], flip=False)" },
    { "corr2d(x, v, image_shape=(-1, 4, -1, -1), border_mode=(1, 2))", "conv(x, v, border=[1, 2], flip=False)" },
    { "conv2d(x, v, border_mode=[[1, 2], 0])", "conv(x, v, border=[[1, 2], [0, 0]])" },
    { "conv3d(z, t, border_mode=[1, 0, 2], filter_dilation=[1, 2, 2])", "conv(z, t, border=[1, 0, 2], dilation=[1, 2, 2])" },
    { "conv2d_grad_wrt_inputs(conv(x, v, stride=2), v, [-1 + 3, 4, 8, 9], subsample=2)", "conv_inputs(v, conv(x, v, stride=2), shape(x), stride=2)" },
    { "conv2d_grad_wrt_inputs(conv(x, v, stride=2), v, [-1, -1, 8, 9], subsample=2)", "conv_inputs(v, conv(x, v, stride=2), shape(x), stride=2)" },
    { "conv2d_grad_wrt_inputs(conv(x, v, 'full'), v, [-1, 4, -1, -1], border_mode='full')", "conv_inputs(v, conv(x, v, 'full'), shape(x), 'full')" },
    { "conv2d_grad_wrt_inputs(conv(x, v), v, stack([-1, x.shape[1], -1, x.shape[3]]))", "conv_inputs(v, conv(x, v), shape(x))" },
    { "conv2d_grad_wrt_weights(x, conv(x, v, stride=2), [-1, -1, 3, 3], subsample=2)", "conv_weights(x, conv(x, v, stride=2), shape(v), stride=2)" },
    { "conv2d_grad_wrt_weights(x, conv(x, w, groups=2), [-1, -1, -1, -1], num_groups=2)", "conv_weights(x, conv(x, w, groups=2), shape(w), groups=2)" },
    { "conv2d_grad_wrt_weights(x, conv(x, v), [-1, 3])", "conv_weights(x, conv(x, v), shape(v))" },
    { "conv2d_grad_wrt_inputs(conv(x, v), v)", "conv_inputs(v, conv(x, v))" },
    { "conv2d_grad_wrt_weights(x, conv(x, v, stride=2), [3, 3], subsample=2)", "conv_weights(x, conv(x, v, stride=2), shape(v), stride=2)" },
    { "conv3d_grad_wrt_inputs(conv(z, t), t, shape(z))", "conv_inputs(t, conv(z, t))" },
    { "conv3d_grad_wrt_weights(z, conv(z, t))", "conv_weights(z, conv(z, t))" },
    { "conv2d_transpose(conv(x, v, stride=2), v, shape(x), input_dilation=2)", "conv_inputs(v, conv(x, v, stride=2), shape(x), stride=2)" },
    { "conv3d_transpose(conv(z, t), t)", "conv_inputs(t, conv(z, t))" },
    { "separable_conv2d(x, dimshuffle(w[:4, 0], [0, -1, 1, 2]), p[:, :4], num_channels=4, subsample=2)",
      "conv(conv(x, dimshuffle(w[:4, 0], [0, -1, 1, 2]), groups=4, stride=2), p[:, :4])" },
    { "separable_conv3d(z, t[:, :1, :, :, :][[0, 1, 0, 1]], t[:, :, :1, :1, :1], 4)",
      "conv(conv(z, t[:, :1, :, :, :][[0, 1, 0, 1]], groups=4), t[:, :, :1, :1, :1])" },
    { "causal_conv1d(a, u, num_groups=2, filter_dilation=3)", "conv(a, u, groups=2, dilation=3, border=[[6, 0]])" },
    { "causal_conv1d(a, u, num_groups=2)[:, :, :4]", "conv1d(a[:, :, :4], u, num_groups=2, border_mode='full')[:, :, :4]" },
    { "corrmm(x, v, 'half', subsample=2)", "conv(x, v[:, :, ::-1, ::-1], 'half', 2)" },
    { "corrmm_grad_weights(x, corrmm(x, v, 'half', 2), [3, 3], 'half', 2)", "conv_weights(x, conv(x, v, 'half', 2, flip=False), [3, 3], 'half', 2, flip=False)" },
    { "corrmm_grad_inputs(v, corrmm(x, v, 'half', 2), [8, 9], 'half', 2)", "conv_inputs(v, conv(x, v, 'half', 2, flip=False), [8, 9], 'half', 2, flip=False)" },
    { "corrmm(x, v, pad=[1, 2])", "conv(x, v, [1, 2], flip=False)" },
    { "corrmm(x, v, 'full', pad='auto')", "conv(x, v, 'full', flip=False)" },
    { "corrmm(x, v, pad='auto')", "conv(x, v, 'full', flip=False)" },
    { "corrmm(x, v, 'valid', 2, pad='auto')", "conv(x, v, 'full', 2, flip=False)" },
    { "corrmm_grad_weights(x, corrmm(x, v, pad='auto'), pad='auto')", "conv_weights(x, conv(x, v, 'full', flip=False), border='full', flip=False)" },
    { "corrmm_grad_inputs(v, corrmm(x, v, pad='auto'), pad='auto')", "conv_inputs(v, conv(x, v, 'full', flip=False), border='full', flip=False)" },
    { "dnn_conv(x, v)", "conv(x, v)" },
    { "dnn_conv(x, v, 'full', 2, conv_mode='cross')", "conv(x, v, 'full', 2, flip=False)" },
    { "dnn_gradinput(v, dnn_conv(x, v, subsample=2), shape(x), subsample=2)", "conv_inputs(v, conv(x, v, stride=2), shape(x), stride=2)" },
    { "dnn_gradweight(x, dnn_conv(x, v, 1, conv_mode='cross'), shape(v), 1, conv_mode='cross')", "conv_weights(x, conv(x, v, 1, flip=False), border=1, flip=False)" },
    { "dnn_conv3d(z, t, dilation=[1, 2, 1])", "conv(z, t, dilation=[1, 2, 1])" },
    { "dnn_gradinput3d(t, conv(z, t), shape(z))", "conv_inputs(t, conv(z, t))" },
    { "dnn_gradweight3d(z, conv(z, t), shape(t))", "conv_weights(z, conv(z, t))" },
    { "get_out_shape(shape(x), shape(v), 'half', 2) + 0.", "shape(conv(x, v, 'half', 2)) + 0." },
    { "conv_transpose(conv(x, v, stride=2), v, stride=2)", "conv_inputs(v, conv(x, v, stride=2), [7, 9], stride=2)" },
    { "conv_transpose(conv(x, v, stride=2), v, stride=2, output_padding=[1, 0])", "conv_inputs(v, conv(x, v, stride=2), [8, 9], stride=2)" },
    { "conv_transpose(conv(x, v, stride=2), v, shape(x), stride=2)", "conv_inputs(v, conv(x, v, stride=2), [8, 9], stride=2)" },
    { "conv_transpose(conv(x, v, 'half'), v, border='half', flip=False)", "conv_inputs(v, conv(x, v, 'half'), border='half', flip=False)" },
    { "conv_transpose(conv(a, u, stride=3, groups=2), u, stride=3, groups=2)", "conv_inputs(u, conv(a, u, stride=3, groups=2), [9], stride=3, groups=2)" },
    { "filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, pad=1, stride=2)",
      "dimshuffle(conv(x, dimshuffle(q, [3, 0, 1, 2]), border=[[1, 2], [1, 1]], stride=2, flip=False), [1, 2, 3, 0])" },
    { "image_acts(filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, stride=2), q, [8, 9], stride=2)",
      "c01b = dimshuffle(x, [1, 2, 3, 0]); grad(sum(sqr(filter_acts(c01b, q, stride=2))), c01b) / 2" },
    { "weight_acts(dimshuffle(x, [1, 2, 3, 0]), filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, stride=2), [3, 3], stride=2, partial_sum=1)",
      "c01b = dimshuffle(x, [1, 2, 3, 0]); grad(sum(sqr(filter_acts(c01b, q, stride=2))), q) / 2" },
    { "weight_acts(dimshuffle(x, [1, 2, 3, 0]), filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, stride=2), [3, 3], stride=2, partial_sum=0)",
      "c01b = dimshuffle(x, [1, 2, 3, 0]); grad(sum(sqr(filter_acts(c01b, q, stride=2))), q) / 2" },
    { "nervana_conv(x, v)", "conv(x, v, flip=False)" },
    { "nervana_conv(x, v, 'same', 2)", "conv(x, v, border=1, stride=2, flip=False)" },
    { "nervana_conv(x, v[:, :, :2], 'half')", "conv(x, v[:, :, :2], border=[1, 1], flip=False)" },
    { "nervana_conv(a, v[:, :, 0], 'full', relu=True)", "maximum(conv(a, v[:, :, 0], 'full', flip=False), 0)" },
    { "nervana_conv(z, t, [1, 0, 1], [1, 2, 1])", "conv(z, t, [1, 0, 1], [1, 2, 1], flip=False)" },
    { "nervana_conv(dimshuffle(x, [1, 2, 3, 0]), q, 1, dimshuffle=False)", "filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, pad=1)" },
    { "nervana_dot(a[0], a[1].T)", "dot(a[0], a[1].T)" },
    { "nervana_dot(a[0], a[1].T, relu=True)", "maximum(dot(a[0], a[1].T), 0)" },
};

TEST(names_are_what_they_stand_for)
{
    for (unsigned sized = 0; sized < 2; sized++) {
        struct leaf all[NARRAY];
        setting(all, sized ? ~0u : 0);
        for (size_t i = 0; i < NELEM(rows); i++) {
            mc_array *have = value(all, rows[i].name), *want = have ? value(all, rows[i].is) : NULL;
            CHECK(have && want, "%s, %s: %s", rows[i].name, rows[i].is, mc_last_error());
            if (have && want) {
                close_to(have, want, rows[i].name);
            }
            mc_array_unref(&have);
            mc_array_unref(&want);
        }
        for (int i = 0; i < NARRAY; i++) {
            mc_array_unref(&all[i].a);
        }
    }
}

/* Every row of the three families stands above, or in a test of its own below. */
TEST(no_name_is_left_out)
{
    static const char *const elsewhere[] = { "images2neibs", "neibs2images", "bilinear_kernel_1D",
                                             "bilinear_kernel_2D", "bilinear_upsampling" };
    for (int i = 0; mc_op_at(i); i++) {
        const struct mc_op *op = mc_op_at(i);
        const char *family = mc_op_family(op);
        bool ours = strcmp(family, "Convolution under other names") == 0 ||
                    strcmp(family, "cuda-convnet and Nervana") == 0 || strcmp(family, "Images") == 0;
        bool seen = !ours || (op->flags & OP_HIDDEN);
        for (size_t k = 0; k < NELEM(rows); k++) {
            size_t n = strlen(op->name);
            seen |= strncmp(rows[k].name, op->name, n) == 0 && rows[k].name[n] == '(';
        }
        for (size_t k = 0; k < NELEM(elsewhere); k++) {
            seen |= strcmp(elsewhere[k], op->name) == 0;
        }
        CHECK(seen, "%s is in no row of this file", op->name);
    }
}

/* What is asked of a solver stays with the node it is asked for, and is not asked of its gradients. */
TEST(algorithms_are_attributes)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 2, 8, 8]; input w float32[3, 2, 3, 3]");
    mc_node *y = mc_formula(g, "dnn_conv(x, w, algo='winograd', precision='float32')"),
            *d = mc_formula(g, "grad(sum(dnn_conv(x, w, workmem='small', precision='float64')), w)");
    REQUIRE(!mc_is_error(y) && !mc_is_error(d), "%s", mc_error(g));
    CHECK(strcmp(mc_attr_named(y, "algo")->text, "winograd") == 0 &&
              strcmp(mc_attr_named(y, "precision")->text, "float32") == 0,
          "they are lost");
    CHECK(strcmp(d->op->name, "conv_weights") == 0 && mc_attr_named(d, "algo")->none,
          "the gradient asks for %s",
          mc_attr_named(d, "algo")->none ? "nothing" : mc_attr_named(d, "algo")->text);
    CHECK(strcmp(mc_attr_named(d, "precision")->text, "float64") == 0, "the gradient forgets the precision");
    mc_graph_free(g);
}

/* -1 where strides or the border leave several sizes, and algorithms that there are not, are refused while
 * building. */
TEST(convolutions_refused_while_building)
{
    static const char *const refused[][2] = {
        { "conv2d_grad_wrt_inputs(conv(x, w, stride=2), w, [-1, -1, -1, 8], subsample=2)", "conv_inputs: size 2 of the shape is -1 and does not follow from the other sizes" },
        { "conv2d_grad_wrt_weights(x, conv(x, w, 'half'), [-1, -1, 3, -1], border_mode='half')", "conv_weights: size 3 of the shape is -1" },
        { "dnn_conv(x, w, algo='fastest')", "there is no algo 'fastest'" },
        { "dnn_conv(x, w, workmem='winogrd')", "there is no algo 'winogrd'; did you mean 'winograd'?" },
        { "conv(x, w, algo='')", "there is no algo ''" },
        { "weight_acts(x, x, [1, 1], partial_sum=-1)", "partial_sum is -1; expected a number of positions, or 0 or None for all of them" },
    };
    for (size_t i = 0; i < NELEM(refused); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?, 2, 8, 8]; input w float32[3, 2, 3, 3]");
        CHECK(mc_is_error(mc_formula(g, refused[i][0])) && strstr(mc_error(g), refused[i][1]), "%s says %s",
              refused[i][0], mc_error(g));
        mc_graph_free(g);
    }
}

/* ---- larger images: u[t] is x at (t - (r - 1) // 2) / r, its edges beyond ---- */

static double between(const mc_array *x, int64_t *at, const double *place)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double part = 1;
        for (int j = 0; j < 2; j++) {
            double low = floor(place[j]), far = place[j] - low;
            int64_t k = (int64_t)low + (i >> j & 1);
            at[2 + j] = k < 0 ? 0 : k >= x->dims[2 + j] ? x->dims[2 + j] - 1 : k;
            part *= i >> j & 1 ? far : 1 - far;
        }
        sum += part * mc_array_get(x, at);
    }
    return sum;
}

TEST(larger_images)
{
    static const struct { const char *how; int64_t r[2], each[2]; } row[] = {
        { "ratio=2", { 2, 2 }, { 1, 1 } }, { "ratio=3", { 3, 3 }, { 1, 1 } }, { "ratio=4, use_1D_kernel=False", { 4, 4 }, { 1, 1 } },
        { "ratio=1", { 1, 1 }, { 1, 1 } }, { "3, batch_size=2, num_input_channels=3", { 3, 3 }, { 1, 1 } },
        { "frac_ratio=[3, 2], use_1D_kernel=False", { 3, 3 }, { 2, 2 } }, { "frac_ratio=[[4, 2], [5, 3]]", { 2, 5 }, { 1, 3 } },
    };
    static const int64_t dims[4] = { 2, 3, 4, 5 };
    for (size_t i = 0; i < NELEM(row); i++) {
        for (unsigned sized = 0; sized < 2; sized++) {
            mc_array *x = sample(MC_FLOAT64, 4, dims, -1, 1);
            int64_t size[4] = { 2, 3, (4 * row[i].r[0] + row[i].each[0] - 1) / row[i].each[0],
                                (5 * row[i].r[1] + row[i].each[1] - 1) / row[i].each[1] },
                    at[4] = { 0 };
            struct leaf leaf = { "x", x, sized ? ~0u : 0, false };
            mc_array *want = mc_array_new(MC_FLOAT64, 4, size);
            do {
                int64_t from[4] = { at[0], at[1], 0, 0 };
                double place[2];
                for (int j = 0; j < 2; j++) {
                    place[j] = (double)(at[2 + j] * row[i].each[j] - (row[i].r[j] - 1) / 2) /
                               (double)row[i].r[j];
                }
                mc_array_set(want, at, between(x, from, place));
            } while (next_index(4, size, at));
            char text[120];
            mc_flag_set("floatX", "float64");
            snprintf(text, sizeof text, "bilinear_upsampling(x, %s)", row[i].how);
            mc_array *have = run(1, &leaf, text);
            close_to(have, want, text);
            if (i == 0 || i == 5) {
                check_slopes(1, &leaf, text);
            }
            mc_array_unref(&have);
            mc_array_unref(&want);
            mc_array_unref(&x);
        }
    }
}

TEST(rising_and_falling_kernels)
{
    static const double want[2][5] = { { 1, 2, 3, 2, 1 }, { 1. / 3, 2. / 3, 1, 2. / 3, 1. / 3 } };
    mc_flag_set("floatX", "float64");
    for (int n = 0; n < 2; n++) {
        mc_array *k = run(0, NULL, n ? "bilinear_kernel_1D(3)" : "bilinear_kernel_1D(3, normalize=False)"),
                 *m = run(0, NULL, n ? "bilinear_kernel_2D(3)" : "bilinear_kernel_2D(3, False)");
        REQUIRE(k && m, "%s", mc_last_error());
        CHECK(k->rank == 1 && k->dims[0] == 5 && m->rank == 2 && m->dims[0] == 5 && m->dims[1] == 5,
              "the sizes are wrong");
        for (int64_t i = 0; i < 25; i++) {
            double one = mc_array_get(k, &(int64_t){ i / 5 }),
                   two = mc_array_get(m, (int64_t[]){ i / 5, i % 5 });
            CHECK(fabs(one - want[n][i / 5]) < 1e-15 && fabs(two - want[n][i / 5] * want[n][i % 5]) < 1e-15,
                  "element %d is %g, %g", (int)i, one, two);
        }
        mc_array_unref(&k);
        mc_array_unref(&m);
    }
}

/* ---- gradients through names ---- */

TEST(gradients_through_names)
{
    static const int64_t dx[4] = { 2, 5, 6, 2 }, dw[4] = { 2, 3, 2, 2 }, db[4] = { 2, 2, 5, 6 },
                         dv[4] = { 2, 2, 2, 3 };
    mc_array *x = sample(MC_FLOAT64, 4, dx, .2, 1), *w = sample(MC_FLOAT64, 4, dw, .2, 1),
             *b = sample(MC_FLOAT64, 4, db, .2, 1), *v = sample(MC_FLOAT64, 4, dv, .2, 1);
    struct leaf kin[2] = { { "x", x, 0, false }, { "w", w, 0, false } },
                plain[2] = { { "x", b, 0, false }, { "w", v, 0, false } };
    check_slopes(2, kin, "filter_acts(x, w, pad=1, stride=2)");
    check_slopes(2, kin, "grad(sum(sqr(filter_acts(x, w, pad=1, stride=2))), w)");
    check_slopes(2, kin, "image_acts(filter_acts(x, w, stride=2), w, [5, 6], stride=2)");
    check_slopes(2, kin, "weight_acts(x, filter_acts(x, w, stride=2), [3, 2], stride=2)");
    check_slopes(2, plain, "nervana_conv(x, w, 'half', 2, relu=True)");
    check_slopes(2, plain, "grad(sum(sqr(nervana_conv(x, w))), x)");
    check_slopes(2, plain, "nervana_dot(x[0, 0], x[1, 1].T, relu=True) * sum(w)");
    check_slopes(2, plain, "conv_transpose(x, w, stride=[2, 3], output_padding=1)");
    check_slopes(2, plain, "causal_conv1d(x[:, :, 0], w[:, :, 0])");
    mc_array *all[] = { x, w, b, v };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
}

/* ---- what is wrong is said ---- */

TEST(wrong_calls_by_name)
{
    static const struct { const char *call, *says; } row[] = {
        { "conv2d(a, u)", "an argument has rank 3; expected 4" },
        { "conv3d(x, v)", "an argument has rank 4; expected 5" },
        { "conv2d(x, v, [2, 5, -1, -1])", "specify_shape: axis 1 has size 4, not 5" },
        { "conv2d(x, v, boarder_mode='full')", "did you mean 'border_mode'?" },
        { "conv2d(x, v, subsample=0)", "the stride is 0" },
        { "conv2d_transpose(x, v[:, :, :, :], input_dilation=2)", "y has 4" },
        { "conv2d_transpose(x[:, :3], v, input_dilation=2)", "with stride 2 several sizes of x give the same size of y; give the shape" },
        { "conv_transpose(x[:, :3], v, stride=2, output_padding=2)", "axis 0: (i + p" },
        { "conv_transpose(x[:, :3], v, [17, 19], stride=2, output_padding=1)", "shape and output_padding are both given; give only one of them" },
        { "conv_transpose(x[:, :3], v, output_padding=[1, 1, 1])", "output_padding has 3 numbers; expected 1 or 2" },
        { "conv_transpose(x[:, :3], v, border=9)", "is negative" },
        { "conv_transpose(a, v)", "x and w have ranks 3 and 4" },
        { "corrmm(x, v, 'full', pad=2)", "pad is the old name of border_mode" },
        { "dnn_conv(x, v, conv_mode='Cross')", "unknown conv_mode 'Cross'; expected conv or cross" },
        { "dnn_conv(x, v, direction_hint='back')", "unknown direction_hint 'back'" },
        { "dnn_conv(x, v, precision='float8')", "unknown precision 'float8'" },
        { "dnn_conv(x, v, workmem='small', algo='none')", "workmem is the old name of algo" },
        { "dnn_gradweight(x, x)", "needs the argument 'kerns_shp'" },
        { "dnn_conv3d(x, v)", "an argument has rank 4; expected 5" },
        { "filter_acts(a, u)", "the ranks are 3 and 3; both must be 4" },
        { "filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, pad=-1)", "the border is -1" },
        { "filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, stride=0)", "the stride is 0" },
        { "filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, partial_sum=-1)", "partial_sum is -1; expected a number of positions" },
        { "filter_acts(dimshuffle(x, [1, 2, 3, 0]), q, strict=True)", "strict: float32 is needed, not float64" },
        { "nervana_conv(a, v)", "images and filters have ranks 3 and 4" },
        { "nervana_conv(x, v, 'around')", "unknown border 'around'" },
        { "nervana_dot(a, u)", "the ranks are 3 and 3; both must be 2" },
        { "nervana_dot(a[0], a[1])", "inner sizes 9 and 4 differ" },
        { "images2neibs(x, [3, 3])", "the steps do not divide the image" },
        { "images2neibs(x, [9, 9], mode='ignore_borders')", "the patches are larger than the image" },
        { "images2neibs(x, [2, 3], mode='wrap_centered')", "wrap_centered needs patches of odd size, not 2 x 3" },
        { "images2neibs(x, [2, 3], mode='same')", "unknown mode 'same'" },
        { "images2neibs(x, [0, 3])", "neib_shape is 0" },
        { "images2neibs(x, [2, 3, 4])", "neib_shape has 3 numbers" },
        { "images2neibs(a, [2, 3])", "x has rank 3; expected 4" },
        { "neibs2images(a[0], [2, 2], [1, 1, 4, 9], mode='full')", "unknown mode 'full'" },
        { "neibs2images(a, [2, 2], [1, 1, 4, 9])", "neibs must be a matrix" },
        { "neibs2images(a[0], [2, 5], [1, 1, 4, 9])", "do not fit shape" },
        { "bilinear_upsampling(x)", "give either ratio or frac_ratio" },
        { "bilinear_upsampling(x, 2, frac_ratio=[2, 3])", "give either ratio or frac_ratio" },
        { "bilinear_upsampling(x, 0)", "the ratio is 0/1" },
        { "bilinear_upsampling(a, 2)", "x has rank 3" },
        { "bilinear_upsampling(x, 2, batch_size=3)", "axis 0 has size 2, not 3" },
    };
    struct leaf all[NARRAY];
    setting(all, ~0u);
    for (size_t i = 0; i < NELEM(row); i++) {
        mc_array *y = value(all, row[i].call);
        CHECK(!y && strstr(mc_last_error(), row[i].says), "%s: says '%s', not '%s'", row[i].call,
              y ? "nothing" : mc_last_error(), row[i].says);
        mc_array_unref(&y);
    }
    for (int i = 0; i < NARRAY; i++) {
        mc_array_unref(&all[i].a);
    }
}

/* cuda-convnet's limits, when strict asks for them: while building where sizes are known, else when it
 * runs. */
TEST(limits_come_back_when_asked)
{
    static const struct { int64_t x[4], w[4]; const char *call, *says; } row[] = {
        { { 3, 8, 8, 2 }, { 3, 3, 3, 16 }, "filter_acts(x, w, strict=True)", NULL },
        { { 3, 8, 8, 2 }, { 3, 3, 4, 16 }, "filter_acts(x, w, strict=True)", "must be square" },
        { { 3, 8, 8, 2 }, { 3, 3, 3, 17 }, "filter_acts(x, w, strict=True)", "multiple of 16" },
        { { 5, 8, 8, 2 }, { 5, 3, 3, 16 }, "filter_acts(x, w, strict=True)", "even number of channels" },
        { { 3, 8, 8, 2 }, { 3, 2, 2, 16 }, "filter_acts(x, w, strict=True, stride=3)", "stride must not be larger" },
        { { 5, 8, 8, 2 }, { 5, 3, 3, 16 }, "image_acts(filter_acts(x, w), w, strict=True)", "even number of channels" },
        { { 6, 8, 8, 2 }, { 6, 3, 3, 16 }, "weight_acts(x, filter_acts(x, w), strict=True)", "multiple of 4 channels" },
        { { 8, 8, 8, 2 }, { 8, 3, 3, 12 }, "weight_acts(x, filter_acts(x, w), strict=True)", "multiple of 16" },
        { { 8, 8, 8, 2 }, { 8, 3, 3, 16 }, "weight_acts(x, filter_acts(x, w), strict=True, partial_sum=5)", "partial_sum must divide" },
        { { 8, 8, 8, 2 }, { 8, 3, 3, 16 }, "weight_acts(x, filter_acts(x, w), strict=True, partial_sum=6)", NULL },
        { { 6, 8, 8, 2 }, { 6, 3, 3, 16 }, "filter_acts(x, w, strict=True, partial_sum=5)", NULL },
        { { 6, 8, 8, 2 }, { 6, 3, 3, 16 }, "grad(sum(sqr(filter_acts(x, w, strict=True))), x)", NULL },
        { { 6, 8, 8, 2 }, { 6, 3, 3, 16 }, "grad(sum(sqr(filter_acts(x, w, strict=True))), w)", "multiple of 4 channels" },
        { { 8, 8, 8, 2 }, { 8, 3, 3, 16 }, "grad(sum(sqr(filter_acts(x, w, strict=True, partial_sum=5))), w)", "partial_sum must divide" },
        { { 8, 8, 8, 2 }, { 8, 3, 3, 16 }, "grad(sum(sqr(filter_acts(x, w, strict=True, partial_sum=6))), w)", NULL },
        { { 3, 8, 8, 2 }, { 3, 3, 3, 16 }, "grad(sum(sqr(filter_acts(x, w, strict=True))), w)", NULL },
        { { 6, 8, 8, 2 }, { 6, 3, 3, 16 }, "grad(sum(sqr(image_acts(filter_acts(x, w), w, strict=True))), w)", "multiple of 4 channels" },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        for (unsigned sized = 0; sized < 2; sized++) {
            mc_array *x = sample(MC_FLOAT32, 4, row[i].x, -1, 1), *w = sample(MC_FLOAT32, 4, row[i].w, -1, 1);
            struct leaf leaf[2] = { { "x", x, sized ? ~0u : 0, false }, { "w", w, sized ? ~0u : 0, false } };
            mc_array *y = checked(2, leaf, row[i].call);
            const char *said = y ? "nothing" : mc_last_error();
            CHECK(row[i].says ? !y && strstr(said, row[i].says) : y != NULL, "%s: says '%s', not '%s'",
                  row[i].call, said, row[i].says ? row[i].says : "nothing");
            mc_array_unref(&y);
            mc_array_unref(&x);
            mc_array_unref(&w);
        }
    }
}

TEST(names_without_memory)
{
    static const int64_t dims[4] = { 1, 2, 4, 6 };
    static const char *const calls[] = { "bilinear_upsampling(x, frac_ratio=[3, 2])", "images2neibs(x, [2, 3], mode='half', neib_step=[1, 1])",
                                         "neibs2images(images2neibs(x, [2, 3]), [2, 3], shape(x))", "dnn_conv(x, x[:, :, :2, :2])",
                                         "conv_transpose(x, x, stride=2)" };
    for (size_t i = 0; i < NELEM(calls); i++) {
        ALLOC_FAIL_LOOP {
            mc_array *x = mc_array_new(MC_FLOAT32, 4, dims), *y = NULL;
            mc_graph *g = x ? mc_graph_new() : NULL;
            mc_node *in = g ? mc_input(g, "x", MC_FLOAT32, 4) : NULL, *c = g ? mc_formula(g, calls[i]) : NULL;
            mc_status s = c && !mc_is_error(c) ? mc_eval(1, &in, &x, 1, &c, &y) : MC_EMEMORY;
            bool impossible = strstr(calls[i], "transpose") !=
                              NULL; /* its channels do not match: an error, and clean */
            CHECK((s == MC_OK && y) || ALLOC_FAILED || impossible, "%s: nothing, yet memory: %s %s", calls[i],
                  mc_last_error(), g ? mc_error(g) : "");
            mc_array_unref(&y);
            mc_graph_free(g);
            mc_array_unref(&x);
        }
    }
}
