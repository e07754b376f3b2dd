/* t_ops_conv_shapes.c: sizes that convolutions have, those that are impossible, and those that no memory
 * holds. */
#include "op_fixture.h"
#include <stdio.h>

static mc_array *zeros(int rank, const int64_t *dims)
{
    return mc_array_new(MC_FLOAT32, rank, dims);
}

static void shape_is(int nd, const int64_t *x, const int64_t *w, const char *call, const int64_t *want)
{
    mc_array *a[2] = { zeros(nd + 2, x), zeros(nd + 2, w) };
    for (unsigned sized = 0; sized < 2; sized++) { /* known while building, or only when run */
        struct leaf leaf[2] = { { "x", a[0], sized ? ~0u : 0, false },
                                { "w", a[1], sized ? ~0u : 0, false } };
        mc_array *y = run(2, leaf, call), *same = zeros(nd + 2, want);
        check_same(y, same, call);
        mc_array_unref(&y);
        mc_array_unref(&same);
    }
    mc_array_unref(&a[0]);
    mc_array_unref(&a[1]);
}

TEST(fixed_shapes)
{
    static const int64_t x[5] = { 3, 2, 12, 9, 7 }, w[5] = { 4, 2, 5, 6, 4 };
    static const struct { const char *border; int64_t flat[5], deep[5]; } row[] = {
        { "'valid'",   { 3, 4, 4, 2 },  { 3, 4, 4, 2, 4 } },   { "'half'", { 3, 4, 12, 5 }, { 3, 4, 12, 5, 8 } },
        { "'full'",    { 3, 4, 20, 7 }, { 3, 4, 20, 7, 10 } },
        { "[1, 2, 3]", { 3, 4, 6, 4 },  { 3, 4, 6, 4, 10 - 4 + 1 } },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        char call[200];
        bool list = row[i].border[0] == '[';
        snprintf(call, sizeof call, "conv(x, w, border=%s, stride=[1, 2], dilation=[2, 1])",
                 list ? "[1, 2]" : row[i].border);
        shape_is(2, x, w, call, row[i].flat);
        snprintf(call, sizeof call, "conv(x, w, border=%s, stride=[1, 2, 1], dilation=[2, 1, 1])",
                 row[i].border);
        int64_t deep[5];
        memcpy(deep, row[i].deep, sizeof deep);
        deep[4] = list ? 7 + 2 * 3 - 4 + 1 : deep[4];
        shape_is(3, x, w, call, deep);
    }
}

/* The numbers of other libraries for one axis: 13 elements, 5 taps, stride 3. */
TEST(lengths_of_one_axis)
{
    static const struct { int64_t i, k, o; const char *how; } row[] = {
        { 13, 5, 3, "stride=3" },
        { 13, 5, 6, "stride=3, border='full'" },
        { 13, 5, 5, "stride=3, border='same'" },
        { 13, 5, 5, "stride=3, border=2" },
        { 12, 4, 13, "border='half'" },          /* even: one more than there were */
        { 12, 4, 12, "border='same'" },
        { 12, 4, 4, "border='same', stride=3" },
        { 12, 5, 12, "border='half'" },
        { 12, 3, 12, "border='causal', dilation=3" },
        { 4, 12, 15, "border='full'" },          /* a filter larger than the image */
        { 12, 5, 4, "stride=3, ceil=True" },     /* 7 / 3 rounded up, and one */
        { 11, 5, 3, "stride=3, ceil=True" },     /* it divides */
        { 12, 5, 3, "stride=3" },
        { 4, 5, 1, "stride=2, ceil=True" },      /* -1 / 2 rounded up */
        { 1, 1, 1, "" },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        int64_t x[3] = { 2, 1, row[i].i }, w[3] = { 3, 1, row[i].k }, y[3] = { 2, 3, row[i].o };
        char call[100];
        snprintf(call, sizeof call, "conv(x, w%s%s)", *row[i].how ? ", " : "", row[i].how);
        shape_is(1, x, w, call, y);
    }
}

TEST(nothing_gives_zeros)
{
    static const struct { int64_t x[4], w[4], y[4]; } row[] = {
        { { 0, 2, 5, 5 }, { 3, 2, 3, 3 }, { 0, 3, 3, 3 } },
        { { 2, 0, 5, 5 }, { 3, 0, 3, 3 }, { 2, 3, 3, 3 } },
        { { 2, 2, 5, 5 }, { 0, 2, 3, 3 }, { 2, 0, 3, 3 } },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        shape_is(2, row[i].x, row[i].w, "conv(x, w)", row[i].y);
        shape_is(2, row[i].x, row[i].w, "conv_inputs(w, conv(x, w), shape(x))", row[i].x);
        shape_is(2, row[i].x, row[i].w, "conv_weights(x, conv(x, w), shape(w))", row[i].w);
    }
}

/* Without a shape, where there is only one. */
TEST(shapes_that_follow)
{
    static const struct { const char *from, *call; } row[] = {
        { "x", "conv_inputs(w, conv(x, w, border='full'), border='full')" },
        { "x", "conv_inputs(w, conv(x, w, border='half'), border='half')" },
        { "x", "conv_inputs(w, conv(x, w, border=[[2, 0], [1, 3]]), border=[[2, 0], [1, 3]])" },
        { "x", "conv_inputs(w, conv(x, w, dilation=2), dilation=2)" },
        { "w", "conv_weights(x, conv(x, w, dilation=2), dilation=2)" },
        { "w", "conv_weights(x, conv(x, w, dilation=[1, 2], border='full'), dilation=[1, 2], border='full')" },
        { "w", "conv_weights(x, conv(x, w, border=[1, 2]), border=[1, 2])" },
    };
    static const int64_t x[4] = { 2, 2, 9, 8 }, w[4] = { 3, 2, 3, 2 };
    for (size_t i = 0; i < NELEM(row); i++) {
        shape_is(2, x, w, row[i].call, row[i].from[0] == 'x' ? x : w);
    }
}

/* ---- what is wrong is said ---- */

TEST(impossible_convolutions_say_the_formula)
{
    static const struct { const char *call, *says; } row[] = {
        { "conv(x, w)", "conv: axis 1: (i + p - ((k - 1)*d + 1))//s + 1 = (4 + 0 - ((5 - 1)*1 + 1))//1 + 1 = 0: the filter is larger" },
        { "conv(x, w, stride=2, ceil=True, dilation=2)", "axis 0: ceil((i + p - ((k - 1)*d + 1))/s) + 1 = ceil((4 + 0 - ((5 - 1)*2 + 1))/2) + 1 = -1" },
        { "conv(x, w, border=[1, 0])", "axis 1: " },
        { "conv(x, w[:, :, :, :0], border=3)", "the filter has size 0" },
        { "conv(x, w[:, :1], border='full')", "x has 2 channels, and w takes 1" },
        { "conv(x, w, border='full', groups=2)", "x has 2 channels, and w takes 2 in each of 2 groups" },
        { "conv(x, w[:, :1], border='full', groups=2)", "3 filters cannot be divided into 2 groups" },
        { "conv(x, w, border='full', groups=0)", "the number of groups is 0, and must be at least 1" },
        { "conv(x, w, border='full', stride=0)", "the stride is 0, and must be at least 1" },
        { "conv(x, w, border='full', stride=[1, -2])", "the stride is -2, and must be at least 1" },
        { "conv(x, w, border='full', stride=[1, 2, 3])", "the stride has 3 numbers; expected 1 or 2" },
        { "conv(x, w, border='full', dilation=0)", "the dilation is 0" },
        { "conv(x, w, border=-1)", "the border is -1, and must be at least 0" },
        { "conv(x, w, border=[1, 2, 3])", "the border has 3 numbers; expected 1, 2 or 2 pairs" },
        { "conv(x, w, border='Full')", "unknown border 'Full'; expected valid, full, half, same, causal or numbers" },
        { "conv(x, w, border=True * 1.5)", "border must be a word, a number" },
        { "conv(x, w, border='full', layout='bc02')", "layout 'bc02' is not a permutation of 'bc01'" },
        { "conv(x, w, border='full', layout='bc0')", "layout 'bc0' is not a permutation of 'bc01'" },
        { "conv(x, w[0], border='full')", "w has rank 3; expected 4" },
        { "conv(x, w, unshared=True)", "w has rank 4; expected 6" },
        { "conv(x[0, 0], w)", "x has rank 2; expected 3 to 5" },
        { "conv(cast(x, int32), cast(w, int32))", "the operands must be floats of one dtype" },
        { "conv_inputs(w, y, stride=2)", "with stride 2 several sizes of x give the same size of y; give the shape" },
        { "conv_inputs(w, y, [3, 3])", "conv_inputs: axis 0: (i + p" },
        { "conv_inputs(w, y, [9, 6], stride=2)", "axis 0: (i + p - ((k - 1)*d + 1))//s + 1 = (9 + 0 - ((5 - 1)*1 + 1))//2 + 1 = 3: y has 2" },
        { "conv_inputs(w, y, [9, 6, 4], stride=2)", "the shape has 3 sizes; expected the 2 spatial ones or all 4" },
        { "conv_inputs(w, y, [2, 5, 6, 6])", "x has 5 channels, and w takes 2" },
        { "conv_inputs(w, y, [7, 2, 6, 6])", "x has 7 images, and y has 2" },
        { "conv_inputs(w, y, x)", "the shape must be a vector of integers" },
        { "conv_inputs(w, y, border=4)", "axis 0: o + (k - 1)*d - p = 2 + (5 - 1)*1 - 8 = -2, which is negative" },
        { "conv_weights(x, y, stride=2)", "with stride 2 several sizes of w give the same size of y; give the shape" },
        { "conv_weights(x, y, border='half')", "with border 'half' several sizes of w give the same size of y; give the shape" },
        { "conv_weights(x, y, dilation=3)", "axis 0: i + p - o = 2 is not (k - 1)*d with d = 3 for any k" },
        { "conv_weights(x, conv(x, w, border=5))", "axis 0: i + p - o = -6 is not" },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        for (int late = 0; late < 2; late++) { /* sizes known while building, or when it runs */
            static const int64_t x[4] = { 2, 2, 4, 4 }, w[4] = { 3, 2, 5, 5 }, y[4] = { 2, 3, 2, 2 };
            int64_t tall[4] = { 2, 2, 5, 4 };
            bool first = i == 0;
            mc_array *a[3] = { zeros(4, first ? tall : x), zeros(4, w), zeros(4, y) };
            struct leaf leaf[3] = { { "x", a[0], late ? 0 : ~0u, false },
                                    { "w", a[1], late ? 0 : ~0u, false },
                                    { "y", a[2], late ? 0 : ~0u, false } };
            mc_array *got = run(3, leaf, row[i].call);
            CHECK(!got && strstr(mc_last_error(), row[i].says), "%s, %s: says '%s', not '%s'", row[i].call,
                  late ? "late" : "early", got ? "nothing" : mc_last_error(), row[i].says);
            mc_array_unref(&got);
            for (int k = 0; k < 3; k++) {
                mc_array_unref(&a[k]);
            }
        }
    }
}

TEST(sizes_that_no_memory_holds)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[1, 1, 4611686018427387904, 4]; input w float32[4, 1, 1, 1]; input v "
                  "float32[1, 1, 1, 4611686018427387904]");
    mc_formula(g, "conv(x, w)");
    CHECK(strstr(mc_error(g), "overflow"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    mc_formula(g, "conv(x, v, border='full', dilation=1000)");
    CHECK(strstr(mc_error(g), "overflow"), "%s", mc_error(g));
    mc_graph_free(g);
}

/* ---- where memory runs out ---- */

TEST(convolutions_without_memory)
{
    static const int64_t dx[4] = { 1, 2, 5, 5 }, dw[4] = { 2, 2, 3, 3 };
    ALLOC_FAIL_LOOP {
        mc_array *x = mc_array_new(MC_FLOAT32, 4, dx), *w = mc_array_new(MC_FLOAT32, 4, dw), *y = NULL;
        mc_graph *g = x && w ? mc_graph_new() : NULL;
        mc_node *in[2] = { g ? mc_input(g, "x", MC_FLOAT32, 4) : NULL,
                           g ? mc_input(g, "w", MC_FLOAT32, 4) : NULL };
        mc_node *c = g ? mc_formula(g, "conv(x, w, border='half', stride=2)") : NULL;
        mc_node *d = g && !mc_is_error(c) ? mc_formula(g, "grad(sum(conv(x, w, border='half', stride=2)), w)")
                                          : NULL;
        mc_status s = d && !mc_is_error(d) ? mc_eval(2, in, (mc_array *[]){ x, w }, 1, &d, &y) : MC_EMEMORY;
        CHECK((s == MC_OK && y) || ALLOC_FAILED, "no gradient, yet memory: %s %s", mc_last_error(),
              g ? mc_error(g) : "");
        mc_array_unref(&y);
        mc_graph_free(g);
        mc_array_unref(&x);
        mc_array_unref(&w);
    }
}
