/* t_ops_conv.c: the three nodes of convolution against one loop over the definition, in every rank, border,
 * stride, dilation, group, layout; identities between the passes; gradients of every order. */
#include "op_fixture.h"
#include "op/conv.h"
#include <math.h>
#include <stdio.h>

/* ---- the definition, with indices written out ---- */

struct grid {
    int nd;
    int64_t n, c, f, groups, in[3], k[3], out[3], stride[3], dilation[3], before[3], behind[3];
    bool flip, unshared;
};

enum { X, W, Y };

static int rank_of(const struct grid *q, int role)
{
    return q->nd + 2 + (role == W && q->unshared ? q->nd : 0);
}

static void dims_of(const struct grid *q, int role, int64_t *dims)
{
    const int64_t *spatial = role == X ? q->in : role == W ? q->k : q->out;
    int at = 0;
    dims[at++] = role == W ? q->f : q->n;
    for (int j = 0; role == W && q->unshared && j < q->nd; j++) {
        dims[at++] = q->out[j];
    }
    dims[at++] = role == X ? q->c : role == W ? q->c / q->groups : q->f;
    for (int j = 0; j < q->nd; j++) {
        dims[at++] = spatial[j];
    }
}

/* One array of the three from the two others: every place, filter, channel and tap, asked one by one. */
static mc_array *by_definition(const struct grid *q, int result, mc_array *const *a, mc_dtype d)
{
    int64_t dims[MC_MAX_RANK], n[9] = { q->n, q->f, q->c / q->groups }, at[9] = { 0 }, i[3][MC_MAX_RANK];
    dims_of(q, result, dims);
    mc_array *sum = mc_array_new(MC_FLOAT64, rank_of(q, result), dims), *y = NULL;
    for (int j = 0; j < 3; j++) {
        n[3 + j] = j < q->nd ? q->out[j] : 1;
        n[6 + j] = j < q->nd ? q->k[j] : 1;
    }
    for (bool any = mc_dims_count(9, n) > 0; any; any = next_index(9, n, at)) {
        bool inside = true;
        i[X][0] = i[Y][0] = at[0];
        i[W][0] = i[Y][1] = at[1];
        i[X][1] = at[1] / (q->f / q->groups) * (q->c / q->groups) + at[2];
        int w = 1;
        for (int j = 0; q->unshared && j < q->nd; j++) {
            i[W][w++] = at[3 + j];
        }
        i[W][w++] = at[2];
        for (int j = 0; j < q->nd; j++) {
            int64_t place = at[3 + j] * q->stride[j] - q->before[j] + at[6 + j] * q->dilation[j];
            inside &= place >= 0 && place < q->in[j];
            i[X][2 + j] = place;
            i[Y][2 + j] = at[3 + j];
            i[W][w++] = q->flip ? q->k[j] - 1 - at[6 + j] : at[6 + j];
        }
        if (inside) {
            int u = result == X ? W : X, v = result == Y ? W : Y;
            mc_array_set(sum, i[result],
                         mc_array_get(sum, i[result]) + mc_array_get(a[u], i[u]) * mc_array_get(a[v], i[v]));
        }
    }
    y = mc_array_cast(sum, d);
    mc_array_unref(&sum);
    return y;
}

/* The same numbers, but for the order in which they were added. */
static void close_to(const mc_array *have, const mc_array *want, const char *what)
{
    if (have && want && have->dtype == want->dtype &&
        mc_dims_equal(have->rank, have->dims, want->rank, want->dims)) {
        double eps = mc_dtypes[have->dtype].eps;
        int64_t at = mc_array_differs(have, want, 4 * eps, MC_MAX(eps * 1e-3, 1e-13) * 100);
        CHECK(at < 0, "%s: element %lld differs", what, (long long)at);
    } else {
        check_same(have, want, what);
    }
}

/* ---- random grids ---- */

/* before (a*e + b) / c, behind (.. + d) / c */
static const struct { const char *name; int a, b, c, d; } borders[] = {
    { "'valid'", 0, 0, 1, 0 }, { "'full'", 1, -1, 1, 0 }, { "'half'", 1, 0, 2, 0 }, { "'same'", 1, -1, 2, 1 },
    { "'causal'", 1, -1, 1, 0 },
};

static int64_t pick(int64_t least, int64_t most)
{
    return least + (int64_t)(test_random() % (uint64_t)(most - least + 1));
}

/* A grid that is possible, and what its node is called with. */
static void draw(struct grid *q, char *how, size_t size)
{
    char border[80], stride[40], dilation[40];
    for (bool fits = false; !fits;) {
        *q = (struct grid){ .nd = (int)pick(1, 3),
                            .n = pick(1, 2),
                            .groups = pick(1, 2),
                            .flip = pick(0, 1),
                            .unshared = pick(0, 4) == 0 };
        q->c = q->groups * pick(1, 2);
        q->f = q->groups * pick(1, 3);
        int kind = (int)pick(0, 7), at = 0;
        fits = true;
        at = snprintf(border, sizeof border, "%s", kind < 5 ? borders[kind].name : "[");
        for (int j = 0; j < q->nd; j++) {
            q->in[j] = pick(1, q->nd == 3 ? 5 : 9);
            q->k[j] = pick(1, q->nd == 3 ? 3 : 5);
            q->stride[j] = pick(1, 3);
            q->dilation[j] = pick(1, 2);
            int64_t e = (q->k[j] - 1) * q->dilation[j] + 1;
            if (kind < 5) {
                q->before[j] = (borders[kind].a * e + borders[kind].b) / borders[kind].c;
                q->behind[j] = kind == 4 ? 0
                                         : (borders[kind].a * e + borders[kind].b + borders[kind].d) /
                                               borders[kind].c;
            } else {
                q->before[j] = pick(0, 3);
                q->behind[j] = kind == 5 ? q->before[j] : pick(0, 3);
                at += kind == 5 ? snprintf(border + at, sizeof border - (size_t)at, "%s%d", j ? ", " : "",
                                           (int)q->before[j])
                                : snprintf(border + at, sizeof border - (size_t)at, "%s[%d, %d]",
                                           j ? ", " : "", (int)q->before[j], (int)q->behind[j]);
            }
            int64_t over = q->in[j] + q->before[j] + q->behind[j] - e;
            q->out[j] = over < 0 ? 0 : over / q->stride[j] + 1;
            fits &= over >= 0;
        }
        snprintf(border + at, sizeof border - (size_t)at, "%s", kind < 5 ? "" : "]");
    }
    int s = 0, d = 0;
    for (int j = 0; j < q->nd; j++) {
        s += snprintf(stride + s, sizeof stride - (size_t)s, "%s%d", j ? ", " : "", (int)q->stride[j]);
        d += snprintf(dilation + d, sizeof dilation - (size_t)d, "%s%d", j ? ", " : "", (int)q->dilation[j]);
    }
    snprintf(how, size, "border=%s, stride=[%s], dilation=[%s], groups=%d, flip=%s, unshared=%s", border,
             stride, dilation, (int)q->groups, q->flip ? "True" : "False", q->unshared ? "True" : "False");
}

static const char *const called[3] = { "conv_inputs(w, y, shape(x)", "conv_weights(x, y, shape(w)", "conv(x, w" };

static void try_grid(const struct grid *q, const char *how, mc_dtype d)
{
    mc_array *a[3];
    struct leaf leaf[3] = { { .name = "x" }, { .name = "w" }, { .name = "y" } };
    for (int r = 0; r < 3; r++) {
        int64_t dims[MC_MAX_RANK];
        dims_of(q, r, dims);
        leaf[r].a = a[r] = sample(d, rank_of(q, r), dims, -1, 1);
        leaf[r].sized = (unsigned)test_random();
    }
    for (int r = 0; r < 3; r++) {
        char text[400];
        snprintf(text, sizeof text, "%s, %s)", called[r], how);
        mc_array *have = run(3, leaf, text), *want = by_definition(q, r, a, d);
        close_to(have, want, text);
        mc_array_unref(&have);
        mc_array_unref(&want);
    }
    for (int r = 0; r < 3; r++) {
        mc_array_unref(&a[r]);
    }
}

TEST(all_passes_by_definition)
{
    static const mc_dtype dtypes[] = { MC_FLOAT64, MC_FLOAT32, MC_FLOAT16, MC_BFLOAT16 };
    for (int i = 0; i < (test_is_full() ? 1200 : 160); i++) {
        struct grid q;
        char how[300];
        draw(&q, how, sizeof how);
        try_grid(&q, how, dtypes[i % 8 < 4 ? i % 4 : 0]);
    }
}

/* ---- shapes ---- */

/* One size of y belongs to several of x where the stride is not 1: the shape decides, and every one is
 * right. */
TEST(shapes_that_are_given)
{
    static const int64_t w[4] = { 3, 2, 3, 3 }, y[4] = { 2, 3, 4, 5 };
    mc_array *a[2] = { sample(MC_FLOAT64, 4, w, -1, 1), sample(MC_FLOAT64, 4, y, -1, 1) };
    for (int64_t rows = 9; rows <= 10; rows++) {
        for (int full = 0; full < 2; full++) {
            struct grid q = { .nd = 2,
                              .n = 2,
                              .c = 2,
                              .f = 3,
                              .groups = 1,
                              .in = { rows, 11 },
                              .k = { 3, 3 },
                              .out = { 4, 5 },
                              .stride = { 2, 2 },
                              .dilation = { 1, 1 },
                              .flip = true };
            struct leaf leaf[2] = { { "w", a[0], 0, false }, { "y", a[1], 0, false } };
            char call[100];
            snprintf(call, sizeof call, "conv_inputs(w, y, [%s%d, 11], stride=2)", full ? "2, 2, " : "",
                     (int)rows);
            mc_array *have = run(2, leaf, call),
                     *want = by_definition(&q, X, (mc_array *[]){ NULL, a[0], a[1] }, MC_FLOAT64);
            close_to(have, want, call);
            mc_array_unref(&have);
            mc_array_unref(&want);
        }
    }
    mc_array_unref(&a[0]);
    mc_array_unref(&a[1]);
}

/* ---- layouts ---- */

/* Axes in another order, and back: the same numbers. */
TEST(layouts_are_orders_of_axes)
{
    static const struct { int nd; const char *layout, *x, *w, *y, *xb, *wb; } row[] = { /* w, y: to the layout and from it */
        { 2, "b01c", "[0, 2, 3, 1]", "[0, 2, 3, 1]", "[0, 3, 1, 2]", "[0, 3, 1, 2]", "[0, 3, 1, 2]" },
        { 2, "c01b", "[1, 2, 3, 0]", "[1, 2, 3, 0]", "[3, 0, 1, 2]", "[3, 0, 1, 2]", "[3, 0, 1, 2]" },
        { 2, "cb10", "[1, 0, 3, 2]", "[1, 0, 3, 2]", "[1, 0, 3, 2]", "[1, 0, 3, 2]", "[1, 0, 3, 2]" },
        { 1, "c0b", "[1, 2, 0]", "[1, 2, 0]", "[2, 0, 1]", "[2, 0, 1]", "[2, 0, 1]" },
        { 3, "b012c", "[0, 2, 3, 4, 1]", "[0, 2, 3, 4, 1]", "[0, 4, 1, 2, 3]", "[0, 4, 1, 2, 3]", "[0, 4, 1, 2, 3]" },
    };
    static const int64_t dx[5] = { 2, 4, 5, 6, 4 }, dw[5] = { 6, 2, 2, 3, 2 };
    for (size_t i = 0; i < NELEM(row); i++) {
        static const char *const how = "stride=2, groups=2, border='half'";
        mc_array *x = sample(MC_FLOAT64, row[i].nd + 2, dx, -1, 1),
                 *w = sample(MC_FLOAT64, row[i].nd + 2, dw, -1, 1);
        struct leaf leaf[2] = { { "x", x, (unsigned)test_random(), false },
                                { "w", w, (unsigned)test_random(), false } };
        char text[3][600], there[400];
        mc_array *have, *want;
        snprintf(there, sizeof there,
                 "u = dimshuffle(x, %s); v = dimshuffle(w, %s); z = conv(u, v, layout='%s', %s); ", row[i].x,
                 row[i].w, row[i].layout, how);
        snprintf(text[0], sizeof text[0], "%sdimshuffle(z, %s)", there, row[i].y);
        snprintf(text[1], sizeof text[1], "%sdimshuffle(conv_inputs(v, z, shape(u), layout='%s', %s), %s)",
                 there, row[i].layout, how, row[i].xb);
        snprintf(text[2], sizeof text[2], "%sdimshuffle(conv_weights(u, z, shape(v), layout='%s', %s), %s)",
                 there, row[i].layout, how, row[i].wb);
        static const char *const plain[3] = { "conv(x, w, %s)", "conv_inputs(w, conv(x, w, %s), shape(x), %s)",
                                              "conv_weights(x, conv(x, w, %s), shape(w), %s)" };
        for (int k = 0; k < 3; k++) {
            char same[300];
            snprintf(same, sizeof same, plain[k], how, how);
            have = run(2, leaf, text[k]);
            want = run(2, leaf, same);
            close_to(have, want, text[k]);
            mc_array_unref(&have);
            mc_array_unref(&want);
        }
        mc_array_unref(&x);
        mc_array_unref(&w);
    }
}

/* ---- identities: both sides of each line are the same numbers ---- */

static void agree(int n, const struct leaf *leaf, const char *a, const char *b)
{
    mc_array *have = run(n, leaf, a), *want = run(n, leaf, b);
    CHECK(have && want, "%s, %s: %s", a, b, mc_last_error());
    if (have && want) {
        close_to(have, want, a);
    }
    mc_array_unref(&have);
    mc_array_unref(&want);
}

TEST(passes_answer_for_each_other)
{
    static const int64_t dx[4] = { 2, 3, 9, 11 }, dw[4] = { 4, 3, 3, 5 };
    mc_array *x = sample(MC_FLOAT64, 4, dx, -1, 1), *w = sample(MC_FLOAT64, 4, dw, -1, 1);
    struct leaf leaf[2] = { { "x", x, 0, false }, { "w", w, 0, false } };
    static const char *const T =
        "dimshuffle(conv_weights(dimshuffle(x, [1, 0, 2, 3]), dimshuffle(%s, [1, 0, 2, 3])%s), [1, 0, 2, 3])";
    char text[300];
    agree(2, leaf, "conv(x, w)", "conv(x, w[:, :, ::-1, ::-1], flip=False)");
    agree(2, leaf, "conv(x, w, border='full')", "conv_inputs(dimshuffle(w, [1, 0, 2, 3]), x, flip=False)");
    snprintf(text, sizeof text, T, "w[:, :, ::-1, ::-1]", ", flip=False");
    agree(2, leaf, "conv(x, w)", text);
    snprintf(text, sizeof text, T, "w", ", flip=False, border=[1, 2]"); /* with a border */
    agree(2, leaf, "conv(x, w, border=[1, 2], flip=False)", text);
    snprintf(text, sizeof text, T, "w",
             ", flip=False, dilation=2, shape=[4, 4]"); /* stride and dilation exchanged */
    agree(2, leaf, "conv(x, w, stride=2, flip=False)", text);
    snprintf(text, sizeof text, T, "w", ", flip=False, stride=2, shape=[5, 3]");
    agree(2, leaf, "conv(x, w, dilation=2, flip=False)", text);
    mc_array_unref(&x);
    mc_array_unref(&w);
}

/* <conv(x, w), y> = <x, conv_inputs(w, y)> = <w, conv_weights(x, y)> */
TEST(adjoints)
{
    for (int i = 0; i < 40; i++) {
        struct grid q;
        char how[300], text[3][420];
        mc_array *a[3];
        struct leaf leaf[3] = { { .name = "x" }, { .name = "w" }, { .name = "y" } };
        draw(&q, how, sizeof how);
        for (int r = 0; r < 3; r++) {
            int64_t dims[MC_MAX_RANK];
            dims_of(&q, r, dims);
            leaf[r].a = a[r] = sample(MC_FLOAT64, rank_of(&q, r), dims, -1, 1);
            snprintf(text[r], sizeof text[r], "sum(%c * %s, %s))", "xwy"[r], called[r], how);
        }
        agree(3, leaf, text[Y], text[X]);
        agree(3, leaf, text[Y], text[W]);
        for (int r = 0; r < 3; r++) {
            mc_array_unref(&a[r]);
        }
    }
}

/* ---- gradients ---- */

TEST(gradients_of_every_order)
{
    static const struct { int64_t x[6], w[6]; int nd; const char *how; } row[] = {
        { { 2, 2, 6 }, { 2, 2, 3 }, 1, "" },
        { { 1, 2, 7 }, { 2, 2, 2 }, 1, ", stride=2, border='same', dilation=2" },
        { { 1, 2, 5, 6 }, { 3, 2, 2, 3 }, 2, ", border='full'" },
        { { 1, 2, 5, 6 }, { 3, 2, 2, 3 }, 2, ", border=[[1, 0], [2, 1]], stride=[2, 3], flip=False" },
        { { 1, 4, 5, 5 }, { 2, 2, 2, 3 }, 2, ", groups=2, border='half', dilation=[2, 1]" },
        { { 1, 2, 4, 5 }, { 2, 2, 3, 2, 2, 3 }, 2, ", unshared=True, stride=[2, 1]" },
        { { 2, 3, 4, 2 }, { 2, 2, 2, 3 }, 2, ", layout='c01b', stride=2, ceil=True" },
        { { 1, 1, 3, 4, 3 }, { 2, 1, 2, 2, 3 }, 3, ", stride=[1, 2, 1], border=1" },
    };
    static const char *const orders[] = {
        "conv(x, w%s)",
        "grad(sum(sqr(conv(x, w%s))), x)",
        "grad(sum(sqr(conv(x, w%s))), w)",
        "grad(sum(sqr(grad(sum(sqr(conv(x, w%s))), w))), x)",
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        bool unshared = strstr(row[i].how, "unshared") != NULL;
        mc_array *x = sample(MC_FLOAT64, row[i].nd + 2, row[i].x, .2, 1),
                 *w = sample(MC_FLOAT64, row[i].nd * (unshared ? 2 : 1) + 2, row[i].w, .2, 1);
        for (size_t k = 0; k < NELEM(orders); k++) {
            struct leaf leaf[2] = { { "x", x, (unsigned)test_random(), false },
                                    { "w", w, (unsigned)test_random(), false } };
            char text[300];
            snprintf(text, sizeof text, orders[k], row[i].how);
            check_slopes(2, leaf, text);
        }
        mc_array_unref(&x);
        mc_array_unref(&w);
    }
}

/* ---- one node for one convolution ---- */

TEST(equal_convolutions_are_one_node)
{
    static const struct { const char *a, *b; } row[] = {
        { "conv(x, w)", "conv(x, w, border=0)" },
        { "conv(x, w)", "conv(x, w, border=[[0, 0], [0, 0]], stride=[1, 1], dilation=[1, 1], layout='bc01')" },
        { "conv(x, w, border='half')", "conv(x, w, border=1)" },
        { "conv(x, w, border='full')", "conv(x, w, border=[2, 2])" },
        { "conv(x, w, border=[[1, 1], [2, 2]])", "conv(x, w, border=[1, 2])" },
        { "conv(x, w, ceil=True)", "conv(x, w)" },
        { "conv(x, w[:, :, :1, :1], flip=False)", "conv(x, w[:, :, :1, :1])" },
    };
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 2, ?, ?]; input w float32[?, 2, 3, 3]");
    for (size_t i = 0; i < NELEM(row); i++) {
        mc_node *a = mc_formula(g, row[i].a), *b = mc_formula(g, row[i].b);
        CHECK(a == b && !mc_is_error(a), "%s and %s differ  %s", row[i].a, row[i].b, mc_error(g));
    }
    CHECK(mc_formula(g, "conv(x, w)") != mc_formula(g, "conv(x, w, flip=False)"), "flip is forgotten");
    mc_graph_free(g);
}
