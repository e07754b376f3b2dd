/* t_ops_norm.c: normalisation across channels, over batches, and dnn's softmax. */
#include "op/norm.h"
#include "sample.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Have two formulas over x the same value? */
static void same(const char *a, const char *b, const mc_array *x, double tol)
{
    for (unsigned sized = 0; sized < 16; sized += 15) {
        mc_array *y = run1(a, x, sized), *z = run1(b, x, sized);
        CHECK(y && z && mc_array_differs(y, z, tol, tol) < 0, "%s is not %s: %s", a, b,
              y && z ? "" : mc_last_error());
        drop((mc_array *[]){ y, z }, 2);
    }
}

/* ---- across channels ---- */

/* Sums of windows as a product with a band of ones: entry (c, e) is 1 if e is in W(c). */
TEST(channel_sums_are_products_with_a_band)
{
    static const char *const aligned =
        "c = arange(7) // %d; b = cast(eq(expand_dims(c, 1), c), float64); dot(b%s, x)";
    static const char *const around =
        "e = arange(7) - expand_dims(arange(7), 1); b = cast((e >= %d) & (e < %d), float64); dot(b%s, x)";
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(7, 3), -1, 1);
    for (int n = 1; n < 9; n++) {
        for (int way = 0; way < 4; way++) {
            char have[200], want[300];
            const char *turned = way & 1 ? ".T" : "";
            snprintf(have, sizeof have, "channel_sum(x, n=%d, axis=-2, blocked=%s, back=%s)", n,
                     way & 2 ? "True" : "False", way & 1 ? "True" : "False");
            if (way & 2) {
                snprintf(want, sizeof want, aligned, n, turned);
            } else {
                snprintf(want, sizeof want, around, -(n / 2), n - n / 2, turned);
            }
            same(have, want, x, 1e-14);
        }
    }
    mc_array_unref(&x);
}

static const char *const maps[] = {
    "size_f=3, add_scale=0.4, pow_scale=0.75", "size_f=4, add_scale=0.4, pow_scale=0.75", "size_f=5, add_scale=1.5, pow_scale=1, axis=1",
    "size_f=4, add_scale=0.7, pow_scale=0.5, blocked=True", "size_f=9, add_scale=0.2, pow_scale=2", "size_f=2, add_scale=0.3, pow_scale=0.75, axis=-1",
};

TEST(cross_map_norm_by_its_formula)
{
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(6, 3, 2, 4), -2, 2);
    for (size_t i = 0; i < NELEM(maps); i++) {
        char have[300], want[400];
        snprintf(have, sizeof have, "r = cross_map_norm(x, %s); r[0]", maps[i]);
        snprintf(want, sizeof want, "r = cross_map_norm(x, %s); x * r[1] ** -%g", maps[i],
                 atof(strstr(maps[i], "pow_scale=") + strlen("pow_scale=")));
        same(have, want, x, 1e-13);
    }
    mc_array_unref(&x);
    x = mc_array_new(MC_FLOAT64, MC_SHAPE(16, 2, 2, 2));
    same("cross_map_norm(x + 1, size_f=16, add_scale=0.9375, pow_scale=1, blocked=True)[0]", "x + 0.0625", x,
         1e-15);
    same("cross_map_norm(x + 1, size_f=16, add_scale=0.9375, pow_scale=1, blocked=True, strict=True)[1]",
         "x + 16", x, 1e-15);
    same("lrn(x + 2, n=1, alpha=0.5, beta=1, k=3)", "x + 2 / 5.", x, 1e-15);
    mc_array_unref(&x);
}

TEST(norm_gradients_of_every_order)
{
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(5, 2, 2, 2), -1, 1);
    for (size_t i = 0; i < NELEM(maps); i++) {
        char text[600];
        double worst;
        snprintf(text, sizeof text, "r = cross_map_norm(x, %s); sum(r[0] ** 3) + sum(r[1] ** 2)", maps[i]);
        CHECK(check_grad(text, x, 0, &worst) == MC_OK, "%s: %s", text, mc_last_error());
        snprintf(text, sizeof text, "y = cross_map_norm(x, %s)[0]; d = grad(sum(y ** 3), x); sum(d * d)",
                 maps[i]);
        CHECK(check_grad(text, x, 15, &worst) == MC_OK, "second: %s: %s", text, mc_last_error());
        snprintf(
            text, sizeof text,
            "y = cross_map_norm(x, %s)[0]; d = grad(sum(y ** 3), x); e = grad(sum(d * d), x); sum(e * x)",
            maps[i]);
        CHECK(check_grad(text, x, 15, &worst) == MC_OK, "third: %s: %s", text, mc_last_error());
    }
    for (size_t i = 0; i < NELEM(maps); i++) { /* the same two ways */
        char undo[400], grad[400];
        snprintf(undo, sizeof undo,
                 "r = cross_map_norm(x, %s); cross_map_norm_undo(x, r[0], r[1], cos(x), %s)", maps[i],
                 maps[i]);
        snprintf(grad, sizeof grad,
                 "r = cross_map_norm(x, %s); grad(sum(r[0] * consider_constant(cos(x))), x)", maps[i]);
        same(undo, grad, x, 1e-13);
    }
    same("lrn_grad(x, cos(x), alpha=0.5)", "grad(sum(lrn(x, alpha=0.5) * consider_constant(cos(x))), x)", x,
         1e-15);
    mc_array_unref(&x);
}

/* ---- over batches ---- */

TEST(batch_normalization_over_named_axes)
{
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(4, 3, 2, 5), -1, 1);
    static const char *const pairs[][2] = {
        { "batch_normalization_train(x, 2, 1)[0]", "2 * (x - mean(x, axis=0)) / sqrt(var(x, axis=0) + 0.0001) + 1" },
        { "batch_normalization_train(x, 2, 1, axes='per-activation')[1]", "mean(x, axis=0, keepdims=True)" },
        { "batch_normalization_train(x, arange(3), 1, axes='spatial', epsilon=0.5)[0]",
          "(x - mean(x, axis=[0, 2, 3], keepdims=True)) / sqrt(var(x, axis=[0, 2, 3], keepdims=True) + 0.5) * reshape(arange(3), [1, 3, 1, 1]) + 1" },
        { "batch_normalization_train(x, 2, 1, axes='spatial')[2]", "1 / sqrt(var(x, axis=[0, 2, 3], keepdims=True) + 0.0001)" },
        { "batch_normalization_train(x, 2, 1, x[0, :, 0, 0], x[1, :, 0, 0], axes='spatial')[3]", "0.9 * x[0, :, 0, 0] + 0.1 * mean(x, axis=[0, 2, 3])" },
        { "batch_normalization_train(x, 2, 1, x[0, :, 0, 0], x[1, :, 0, 0], axes='spatial', running_average_factor=0.25)[4]",
          "0.75 * x[1, :, 0, 0] + 0.25 * var(x, axis=[0, 2, 3]) * 40 / 39" },
        { "batch_normalization_train(x, 2, 1, x[:1], x[1:2])[4]", "0.9 * x[1:2] + 0.1 * var(x, axis=0, keepdims=True) * 4 / 3" },
        { "batch_normalization_train(x, x[0, 0, 0], 1, axes=[0, 1, 2])[0]", "x[0, 0, 0] * batch_normalization_train(x, 1, 0, axes=[-2, 1, 0])[0] + 1" },
        { "batch_normalization_test(x, x[0, :, 0, 0], 1, x[1, :, 0, 0], x[2, :, 0, 0] ** 2, axes='spatial')",
          "r = reshape(x[:, :, 0, 0], [4, 1, 3, 1, 1]); (x - r[1]) * r[0] / sqrt(r[2] ** 2 + 0.0001) + 1" },
    };
    for (size_t i = 0; i < NELEM(pairs); i++) {
        same(pairs[i][0], pairs[i][1], x, 1e-13);
    }
    double worst;
    CHECK(check_grad("r = batch_normalization_train(x, x[0, :, 0, 0], x[1, :, 0, 1], axes='spatial'); "
                     "sum(r[0] ** 3) + sum(r[2])",
                     x, 0, &worst) == MC_OK,
          "%s", mc_last_error());
    mc_array_unref(&x);
}

/* ---- dnn's softmax ---- */

TEST(dnn_softmax_has_modes)
{
    mc_array *x = sample(MC_FLOAT64, MC_SHAPE(2, 3, 4, 5), -2, 2);
    static const char *const modes[] = { "channel", "instance" }, *const algos[] = { "accurate", "fast",
                                                                                     "log" };
    same("dnn_softmax(x)", "exp(x) / sum(exp(x), axis=1, keepdims=True)", x, 1e-14);
    same("dnn_softmax(x, mode='instance')", "exp(x) / sum(exp(x), axis=[1, 2, 3], keepdims=True)", x, 1e-14);
    same("dnn_softmax(x, algo='log', layout='b01c')", "log(dnn_softmax(x, algo='fast', layout='b01c'))", x,
         1e-13);
    same("dnn_softmax(x, mode='instance', layout='c01b')",
         "exp(x) / sum(exp(x), axis=[0, 1, 2], keepdims=True)", x, 1e-14);
    same("dnn_softmax(x[0, 0])", "softmax(x[0, 0], axis=1)", x, 1e-14);
    for (int i = 0; i < 6; i++) {
        char text[400], want[400];
        double worst;
        snprintf(text, sizeof text, "y = dnn_softmax(x, mode='%s', algo='%s'); sum(y * cos(9 * x))",
                 modes[i % 2], algos[i / 2]);
        CHECK(check_grad(text, x, 0, &worst) == MC_OK, "%s: %s", text, mc_last_error());
        snprintf(
            text, sizeof text,
            "y = dnn_softmax(x, mode='%s', algo='%s'); dnn_softmax_grad(cos(9 * x), y, mode='%s', algo='%s')",
            modes[i % 2], algos[i / 2], modes[i % 2], algos[i / 2]);
        snprintf(want, sizeof want,
                 "y = dnn_softmax(x, mode='%s', algo='%s'); grad(sum(y * consider_constant(cos(9 * x))), x)",
                 modes[i % 2], algos[i / 2]);
        same(text, want, x, 1e-13);
    }
    mc_array_unref(&x);
}

/* ---- what cannot be ---- */

static const struct { const char *formula; mc_dtype d; const char *says; } wrong[] = {
    { "lrn(x, n=4)", MC_FLOAT32, "n must be odd, not 4" },
    { "lrn(x, n=-1)", MC_FLOAT32, "n must be odd" },
    { "lrn(x, axis=4)", MC_FLOAT32, "axis 4 is out of range for rank 4" },
    { "lrn_grad(specify_shape(x, [2, 3, 1, 1]), specify_shape(x, [2, 4, 1, 1]))", MC_FLOAT32, "must have the shape and dtype of x" },
    { "channel_sum(x, n=0)", MC_FLOAT32, "a window of 0 channels is out of range" },
    { "cross_map_norm(specify_shape(x, [15, 2, 2, 1]), size_f=3, add_scale=1, pow_scale=1, strict=True)", MC_FLOAT32, "a multiple of 16" },
    { "cross_map_norm(specify_shape(x, [16, 2, 3, 1]), size_f=3, add_scale=1, pow_scale=1, strict=True)", MC_FLOAT32, "(channels, size, size, batch)" },
    { "cross_map_norm(specify_shape(x, [16, 2, 2, 1]), size_f=17, add_scale=1, pow_scale=1, strict=True)", MC_FLOAT32, "at least the window" },
    { "batch_normalization_train(x, 1, 0, axes='channel')", MC_FLOAT32, "axes must be 'per-activation', 'spatial' or a list" },
    { "batch_normalization_train(x, x[0, 0], 0, axes='spatial')", MC_FLOAT32, "a parameter has rank 2, which does not fit x of rank 4" },
    { "batch_normalization_train(x, 1, 0, axes=[7])", MC_FLOAT32, "axis 7 is out of range" },
    { "dnn_softmax(x, mode='row')", MC_FLOAT32, "mode must be channel or instance" },
    { "dnn_softmax(x, algo='exact')", MC_FLOAT32, "fast, accurate or log" },
    { "dnn_softmax(x, layout='bc0')", MC_FLOAT32, "layout 'bc0' must name 4 axes" },
};

TEST(normalisations_that_cannot_be)
{
    for (size_t i = 0; i < NELEM(wrong); i++) {
        const char *said = complaint(wrong[i].formula, wrong[i].d, 4);
        CHECK(strstr(said, wrong[i].says), "%s: %s", wrong[i].formula, said);
    }
}

TEST(norms_when_memory_runs_out)
{
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(2, 6, 2, 2), -1, 1);
    ALLOC_FAIL_LOOP {
        mc_array *y = run1(
            "y = lrn(x); z = batch_normalization_train(y, 1, 0, axes='spatial')[0]; grad(sum(z * z * y), x)",
            x, 7);
        CHECK(y || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

/* torch: (x - mean) / sqrt(var + 1e-4) * 2 + 1 of 1 2 4 9, running values from 0.5 and 2, and the gradient of
 * a sum weighted 1 -1 2 0.5. */
TEST(batch_normalisation_of_a_vector)
{
    static const struct { const char *text; int n; double y[4]; } rows[] = {
        { "b[0]", 4, { -0.946646808086596, -0.29776453872439723, 1, 4.244411346810994 } },
        { "b[1]", 1, { 4 } },
        { "b[2]", 1, { 0.3244411346810993 } },
        { "b[3]", 1, { 0.85 } },
        { "b[4]", 1, { 3.066666666666667 } },
        { "grad(sum(b[0] * [1, -1, 2, 0.5f64]), x)", 4, { 0.32017136353516357, -1.0032066793640133, 0.892213120373023, -0.20917780454417326 } },
    };
    static const char *const how[] = { "", ", axes='spatial'", ", axes=[0]" };
    double v[4] = { 1, 2, 4, 9 };
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(4), v);
    for (size_t i = 0; i < NELEM(rows) * NELEM(how); i++) {
        const size_t k = i / NELEM(how);
        char text[300];
        snprintf(text, sizeof text, "b = batch_normalization_train(x, 2.0, 1.0, 0.5, 2.0%s); %s",
                 how[i % NELEM(how)], rows[k].text);
        mc_array *y = run1(text, x, 0);
        REQUIRE(y && mc_array_size(y) == rows[k].n, "%s: %s", text, mc_last_error());
        for (int64_t e = 0; e < rows[k].n; e++) {
            CHECK(fabs(mc_load_f64(MC_FLOAT64, y->data + e * 8) - rows[k].y[e]) < 1e-12,
                  "%s, element %d: %.17g", text, (int)e, mc_load_f64(MC_FLOAT64, y->data + e * 8));
        }
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}
