/* t_ops_pool_sizes.c: sizes of pooling by counting windows, those that cannot be, and what a plan is told of
 * them. */
#include "op/pool.h"
#include "pool_words.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- sizes ---- */

static void check_size(int64_t i, int64_t w, int64_t s, int64_t p, char border, int64_t b)
{
    char how[64], formula[200];
    snprintf(how, sizeof how,
             border == 'i'   ? "ignore_border=True"
             : border == 'k' ? "ignore_border=False"
                             : "start=%d",
             (int)b);
    snprintf(formula, sizeof formula, "shape(pool(x, %d, %d, %d, axis=1, %s))", (int)w, (int)s, (int)p, how);
    int64_t want = count_windows(i, w, s, p, border, b);
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(2, i), 0, 1);
    for (unsigned sized = 0; sized < 4; sized += 3) {
        mc_array *shape = run1(formula, x, sized);
        CHECK(shape && at(shape, 0) == 2 && at(shape, 1) == (double)want, "size %d: %s has %g, not %d (%s)",
              (int)i, formula, shape ? at(shape, 1) : -1, (int)want, shape ? "" : mc_last_error());
        mc_array_unref(&shape);
    }
    snprintf(formula, sizeof formula, "pool(x, %d, %d, %d, axis=1, %s)", (int)w, (int)s, (int)p, how);
    mc_array *y = run1(formula, x, 0);
    CHECK(y && y->dims[1] == want, "size %d: %s: %s", (int)i, formula, mc_last_error());
    drop((mc_array *[]){ x, y }, 2);
}

TEST(pool_sizes_by_counting)
{
    for (int64_t i = 1; i <= 12; i += test_is_full() ? 1 : 2) {
        for (int64_t w = 1; w <= 5; w++) {
            for (int64_t s = 1; s <= 4; s++) {
                check_size(i, w, s, (int64_t)(test_random() % (uint64_t)w), 'i', 0);
                check_size(i, w, s, 0, 'k', 0);
                check_size(i, w, s, 0, 'c', (int64_t)(test_random() % (uint64_t)i));
            }
        }
    }
    check_size(8, 9, 9, 0, 'i', 0); /* no window fits: none, and no error */
    check_size(0, 2, 2, 0, 'i', 0);
}

TEST(pool_sizes_of_the_known_table)
{
    static const int ws[4][2] = { { 1, 1 }, { 3, 3 }, { 5, 3 }, { 16, 16 } },
                     st[3][2] = { { 1, 1 }, { 3, 3 }, { 5, 7 } };
    static const int out[24][2] = {
        { 16, 16 }, { 6, 6 }, { 4, 3 }, { 16, 16 }, { 6, 6 }, { 4, 3 }, { 14, 14 }, { 5, 5 }, { 3, 2 }, { 14, 14 }, { 6, 6 }, { 4, 3 },
        { 12, 14 }, { 4, 5 }, { 3, 2 }, { 12, 14 }, { 5, 6 }, { 4, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 },
    };
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(1, 2, 16, 16), 0, 1);
    for (int k = 0; k < 24; k++) {
        char formula[200];
        snprintf(formula, sizeof formula, "pool_2d(x, [%d, %d], [%d, %d], ignore_border=%s)", ws[k / 6][0],
                 ws[k / 6][1], st[k % 3][0], st[k % 3][1], k / 3 % 2 ? "False" : "True");
        mc_array *y = run1(formula, x, 0);
        CHECK(y && y->dims[2] == out[k][0] && y->dims[3] == out[k][1], "%s: (%d, %d), not (%d, %d)", formula,
              y ? (int)y->dims[2] : -1, y ? (int)y->dims[3] : -1, out[k][0], out[k][1]);
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

TEST(windows_that_are_values)
{
    const int64_t dims[2] = { 3, 13 };
    mc_array *value[4] = { sample(MC_FLOAT64, 2, dims, -1, 1), mc_array_scalar(MC_INT64, 4), mc_array_scalar(MC_INT64, 3),
                           mc_array_scalar(MC_INT64, 1) };
    static const char *const how[] = { "ignore_border=True", "mode='average_exc_pad', ties='all'" };
    for (size_t k = 0; k < NELEM(how); k++) {
        mc_graph *g = mc_graph_new();
        mc_node *in[4] = { mc_input(g, "x", MC_FLOAT64, 2), mc_input(g, "w", MC_INT64, 0), mc_input(g, "s", MC_INT64, 0),
                           mc_input(g, "p", MC_INT64, 0) };
        char text[200];
        snprintf(text, sizeof text, "y = pool(x, w, s, p, axis=1, %s)", how[k]);
        mc_node *y[3] = { mc_formula(g, text), mc_formula(g, "grad(sum(y * y), x)"),
                          mc_formula(g, "size(y, 1)") };
        mc_array *out[3] = { 0 }, *want;
        snprintf(text, sizeof text, "y = pool(x, 4, 3, 1, axis=1, %s); grad(sum(y * y), x)", how[k]);
        want = run1(text, value[0], 3);
        if (CHECK(mc_eval(4, in, value, 3, y, out) == MC_OK && want, "%s: %s %s", text, mc_last_error(),
                  mc_error(g))) {
            CHECK(out[0]->dims[1] == 4 && at(out[2], 0) == 4, "%d windows", (int)out[0]->dims[1]);
            CHECK(mc_array_differs(out[1], want, 1e-14, 1e-14) < 0, "%s: the gradient differs", how[k]);
        }
        drop(out, 3);
        mc_array_unref(&value[1]);
        value[1] = mc_array_scalar(MC_INT64, 0); /* checked when it is known */
        CHECK(mc_eval(4, in, value, 1, y, out) == MC_ESHAPE && strstr(mc_last_error(), "window 0"), "%s",
              mc_last_error());
        mc_array_unref(&value[1]);
        value[1] = mc_array_scalar(MC_INT64, 4);
        mc_array_unref(&want);
        mc_graph_free(g);
    }
    drop(value, 4);
}

/* ---- what cannot be ---- */

static const struct { const char *formula; int rank; const char *says; } wrong[] = {
    { "pool(x, 0)", 2, "the number of pooled axes does not follow from ws" },
    { "pool(x, [2, 0])", 2, "window 0 of axis 1 is less than 1" },
    { "pool(x, [2, 2], [1, 0])", 2, "stride 0 of axis 1 is less than 1" },
    { "pool(x, [2, 2], [1, 1], [0, -1])", 2, "pad -1 of axis 1 is negative" },
    { "pool(x, [2, 2], [1, 1], [0, 2])", 2, "is not less than the window 2" },
    { "pool(x, [3, 3], pad=[1, 1], ignore_border=False)", 2, "needs ignore_border=True" },
    { "pool(x, [3, 3], pad=[1, 1], start=0)", 2, "needs ignore_border=True and no start" },
    { "pool(x, [2, 2, 2])", 2, "3 axes cannot be pooled in rank 2" },
    { "pool(x, [2, 2, 2, 2])", 4, "1 to 3 axes" },
    { "pool(x, [2, 2], [1, 1, 1])", 2, "stride has 3 numbers for 2 axes" },
    { "pool(x, 2.5, axis=0)", 2, "ws must be a whole number" },
    { "pool(x, 2, axis=5)", 2, "axis 5 is out of range for rank 2" },
    { "pool(x, [2, 2], axis=[1, 0])", 2, "axes must be ascending" },
    { "pool(x, 2, layout='b01')", 4, "layout 'b01' must have 4 axes" },
    { "pool(x, 2, layout='b10c')", 4, "in this order" },
    { "pool(x, 2, layout='bc01', axis=1)", 4, "both axis and layout" },
    { "pool(x, [2, 2], mode='maximum')", 2, "unknown mode 'maximum'" },
    { "pool(x, [2, 2], mode='average_inc_pat')", 2, "did you mean 'average_inc_pad'?" },
    { "pool(x, [2, 2], ties='last')", 2, "unknown value of ties 'last'" },
    { "pool(x, [2, 2], start=[1, 2, 3])", 2, "start has 3 numbers for 2 axes" },
    { "pool(specify_shape(x, [4, 4]), [2, 2], start=4)", 2, "start 4 of axis 0 is not less than its size 4" },
    { "pool(specify_shape(x, [0, 4]), [2, 2], [1, 1], [1, 0])", 2, "axis 0 has size 0, but (size + 2 * pad - window) // stride + 1 = 1" },
    { "pool_grad(specify_shape(x, [4, 4]), specify_shape(x, [3, 2]), [2, 2])", 2, "pool_spread: the gradient has shape (3, 2), but the windows give (2, 2)" },
    { "dnn_pool(x, [2, 2])", 3, "images must have rank 4 or 5, not 3" },
    { "max_pool(specify_shape(x, [3, 4, 5, 1]), ds=2, strict=True)", 4, "strict: images and windows must be square" },
    { "max_pool(specify_shape(x, [3, 4, 4, 1]), ds=2, stride=3, strict=True)", 4, "0 < stride <= window" },
    { "max_pool_grad(specify_shape(x, [3, 4, 4, 1]), x, ds=2, strict=True)", 4, "3 channels are not a multiple of 16" },
    { "grad(sum(max_pool(specify_shape(x, [3, 4, 4, 1]), ds=2, strict=True)), x)", 4, "3 channels are not a multiple of 16" },
    { "upscale(x, factor=0)", 2, "factor 0" },
    { "upscale(x, factor=2, mode='bilinear')", 2, "unknown mode 'bilinear'" },
    { "spatial_pyramid_pool(specify_shape(x, [1, 1, 3, 3]), pool_dims=[4])", 4, "size 3 of axis 2 is less than 4 windows" },
    { "spatial_pyramid_pool(specify_shape(x, [1, 1, 3, 3]), implementation='exact')", 4, "unknown implementation 'exact'; expected fast or kaiming" },
    { "spatial_pyramid_pool(specify_shape(x, [1, 1, 3, 3]), pool_dims=[65], implementation='kaiming')", 4, "a level has 65 windows" },
};

TEST(poolings_that_cannot_be)
{
    for (size_t i = 0; i < NELEM(wrong); i++) {
        const char *said = complaint(wrong[i].formula, MC_FLOAT32, wrong[i].rank);
        CHECK(strstr(said, wrong[i].says), "%s: %s", wrong[i].formula, said);
    }
}

TEST(pool_when_memory_runs_out)
{
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(2, 6, 6), -1, 1);
    ALLOC_FAIL_LOOP {
        mc_array *y = run1("y = pool_2d(x, [3, 3], [2, 2], ignore_border=True); grad(sum(y * y), x)", x, 7);
        CHECK(y || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

/* ---- what a plan needs to know ---- */

TEST(geometry_of_a_node)
{
    mc_graph *g = mc_graph_new();
    const int64_t dims[4] = { 96, 13, 13, 128 };
    mc_node *x = mc_input_sized(g, "x", MC_FLOAT32, 4, dims),
            *y = mc_formula(g, "y = max_pool(x, ds=3, stride=2, start=1)");
    mc_node *dx = mc_formula(g, "grad(sum(y), x)");
    struct mc_pool_shape s;
    int role[POOL_NARRAY];
    struct mc_type type[8];
    REQUIRE(!mc_is_error(dx) && y->op == &mc_op_item && !mc_pool_roles(x, role), "%s", mc_error(g));
    REQUIRE(mc_pool_roles(y->in[0], role) && role[POOL_KEY] == POOL_RESULT + 1, "%s", y->in[0]->op->name);
    for (int i = 0; i < y->in[0]->nin; i++) {
        type[i] = y->in[0]->in[i]->type;
    }
    REQUIRE(mc_pool_shape_of(y->in[0], type, NULL, &s) == MC_OK, "%s", mc_last_error());
    CHECK(s.axis[0] == -1 && s.axis[1] == 1 && s.axis[2] == 2 && s.out[1] == 6 && s.pad[2] == -1 &&
              s.w[0] == 1 && s.w[1] == 3 && s.key == POOL_KEY_MARKS && s.mark == MC_UINT8 &&
              s.pass == POOL_FORWARD,
          "axes %d %d %d", s.axis[0], s.axis[1], s.axis[2]);
    for (int i = 0; i < dx->nin; i++) {
        type[i] = dx->in[i]->type;
    }
    REQUIRE(mc_pool_roles(dx, role) && role[POOL_X] == POOL_RESULT && role[POOL_Y] == 0 &&
                role[POOL_KEY] == 5,
            "%s", dx->op->name);
    REQUIRE(mc_pool_shape_of(dx, type, NULL, &s) == MC_OK, "%s", mc_last_error());
    CHECK(s.pass == POOL_SPREAD && s.in[1] == 13 && s.dims[3] == 128 && s.mark == MC_UINT8, "%d",
          (int)s.in[1]);
    mc_graph_free(g);
}
