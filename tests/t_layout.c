/* t_layout.c: images with channels innermost between convolutions: the same values, and no copies inside of
 * a region; and the sides that cost least.  For src/lower/layout.c and src/lower/min_cut.c. */
#include "heavy/conv/conv.h"
#include "agree.h"
#include "device/cuda/cuda.h"
#include "lower/layout.h"
#include "lower/min_cut.h"
#include "sample.h"

static const char *const formulas[] = {
    "relu(conv(x, w, border=1) + dimshuffle(b, [-1, 0, -1, -1]))",
    "h = relu(conv(x, w, border=1) + dimshuffle(b, [-1, 0, -1, -1])); grad(sum(sqr(conv(pool(h, [2, 2]), v))), w)",
    "h = pool(conv(x, w, border=1, flip=False), [3, 3], stride=[2, 2], pad=[1, 1]); grad(sum(sqr(relu(h))), x)",
    "h = pool(conv(x, w), [2, 2], mode='average_exc_pad'); c = sum(conv(h, v, stride=[2, 1])); grad(c, v)",
    "h = conv(x, w, stride=2, border=1); grad(sum(tanh(conv(h, v, border='half', dilation=2))), w)",
    ("h = conv(x, w, border=1); d = h - mean(h, axis=[0, 2, 3], keepdims=True); s = mean(sqr(d), axis=[0, 2, 3], keepdims=True); "
     "y = relu(d / sqrt(s + 0.1)); grad(sum(conv(y, v) * 0.1), w)"),
    "h = conv(x, w, border=1); max(h, axis=1) + sum(h, axis=[1])",
    "h = conv(x, w, border=1); tuple(h + 1, sum(h, axis=[0, 2, 3]), argmax(h, axis=1), flatten(relu(h), ndim=2))",
    "h = conv(x, w, border=1); pool(h, [2, 2], ties='all') * 2 + sum(h[:, :, ::2, ::2][:, :, :3, :3], axis=[2, 3], keepdims=True)",
    "h = relu(conv(x, w, border=1)); conv(h, reshape(v[:2, :4], [4, 2, 2, 2]), groups=4)",
    "h = relu(conv(x, w, border=1)); cumsum(conv(h, v), axis=2)",
};

static mc_function *compile_with(struct agree *a, const char *layout)
{
    mc_flag_set("layout", layout);
    return agree_compile(a, "FAST_RUN", 2);
}

static void inputs(struct agree *a, unsigned known)
{
    agree_input(a, "x", sample(MC_FLOAT32, MC_SHAPE(2, 3, 7, 8), -1, 1), known);
    agree_input(a, "w", sample(MC_FLOAT32, MC_SHAPE(8, 3, 3, 3), -1, 1), ~0u);
    agree_input(a, "v", sample(MC_FLOAT32, MC_SHAPE(5, 8, 2, 2), -1, 1), ~0u);
    agree_input(a, "b", sample(MC_FLOAT32, MC_SHAPE(8), -1, 1), ~0u);
}

TEST(turned_images_hold_the_same_values)
{
    for (size_t i = 0; i < 2 * NELEM(formulas); i++) {
        struct agree a = { .scale = 4000 };
        inputs(&a, i % 2 ? ~0u : ~1u); /* images: only the call tells how many */
        mc_node *n = mc_formula(a.g, formulas[i / 2]);
        REQUIRE(!mc_is_error(n), "%s", mc_error(a.g));
        for (int k = 0; k < n->nout; k++) {
            a.out[a.nout++] = n->nout > 1 ? mc_item(n, k) : n;
        }
        mc_function *f = compile_with(&a, "b01c");
        REQUIRE(f, "%s: %s", formulas[i / 2], mc_last_error());
        CHECK(strstr(mc_function_graph_text(f), "b01c"), "%s: nothing was turned\n%s", formulas[i / 2],
              mc_function_graph_text(f));
        mc_function_free(f);
        agree(&a, formulas[i / 2]);
    }
}

/* The stage is excluded for one function, by its spec, or for all, by the flag. */
TEST(layout_can_be_excluded)
{
    static const struct { const char *spec, *flag, *mode; bool turned; } rows[] = {
        { "", "", "FAST_RUN", true },
        { "layout", "", "FAST_RUN", false },
        { NULL, "layout", "FAST_RUN", false },
        { "fusion", "layout", "FAST_RUN", true },
        { "", "", "FAST_COMPILE", false },
    };
    mc_flag_set("layout", "b01c");
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_flag_set("rewrite.excluding", rows[i].flag);
        mc_graph *g = mc_graph_new();
        mc_input_sized(g, "x", MC_FLOAT32, MC_SHAPE(2, 3, 7, 8));
        mc_input_sized(g, "w", MC_FLOAT32, MC_SHAPE(8, 3, 3, 3));
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w",
                                                   .outputs = "relu(conv(x, w, border=1))",
                                                   .mode = rows[i].mode,
                                                   .excluding = rows[i].spec });
        CHECK(f && !strstr(mc_function_graph_text(f), "b01c") == !rows[i].turned, "row %zu: %s", i,
              f ? mc_function_graph_text(f) : mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *s = text; (s = strstr(s, word)); s++) {
        n++;
    }
    return n;
}

/* Between two convolutions stand a map and a pooling: what is turned is what comes in and what goes out. */
TEST(a_region_is_turned_at_its_borders_alone)
{
    static const struct { const char *layout; int turns, poolings; } rows[] = {
        { "written", 0, 0 },
        { "auto",    0, 0 }, /* here nothing is gained by it */
        { "b01c",    3, 1 }, /* x and both filters */
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct agree a = { 0 };
        inputs(&a, ~0u);
        agree_output(&a, "sum(conv(relu(pool(conv(x, w, border=1), [2, 2])), v), axis=1)");
        mc_function *f = compile_with(&a, rows[i].layout);
        REQUIRE(f, "%s", mc_error(a.g));
        const char *text = mc_function_graph_text(f);
        CHECK(count(text, "dimshuffle") == rows[i].turns && count(text, "axis=[1, 2]") == rows[i].poolings,
              "%s\n%s", rows[i].layout, text);
        mc_function_free(f);
        agree_free(&a);
    }
}

#define CHAIN "sum(conv(pool(conv(relu(conv(x, w, border=2, dilation=2)), w, border=2, dilation=2), [2, 2]), w, border=1), axis=[0, 2, 3])"
/* Where cuDNN multiplies halves or TF32 (nobody transforms what is dilated): three convolutions gain more
 * than what stands around them costs, one alone does not. */
TEST(what_tensor_cores_take_is_turned_where_that_gains)
{
    static const struct { const char *dtype, *formula; bool turned; const char *precision; } rows[] = {
        { "bfloat16", CHAIN, true, "as_input" },
        { "bfloat16", "cumsum(conv(cumsum(x, axis=3), w[:1], border=1), axis=3)",                                            false, "as_input" },
        { "float32", CHAIN, false, "as_input" },
        { "float32", CHAIN, true, "tf32" },
    };
    if (mc_cuda_count() < 1 || mc_flag_set("device", "cuda") < 0 || !mc_nv_found(NV_CUDNN)->present) {
        SKIP("no GPU with cuDNN");
    }
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_flag_set("conv.precision", rows[i].precision);
        const mc_dtype d = strcmp(rows[i].dtype, "float32") == 0 ? MC_FLOAT32 : MC_BFLOAT16;
        mc_input_sized(g, "x", d, 4, (int64_t[]){ -1, 256, 56, 56 });
        mc_input_sized(g, "w", d, 4, (int64_t[]){ 256, 256, 3, 3 });
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w", .outputs = rows[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        CHECK((strstr(mc_function_graph_text(f), "b01c") != NULL) == rows[i].turned, "%s, %s, %s:\n%s",
              rows[i].dtype, rows[i].precision, rows[i].formula, mc_function_graph_text(f));
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Against all ways to share out a few things. */
TEST(sides_that_cost_least)
{
    enum { THINGS = 9, PAIRS = 14 };
    for (int round = 0; round < 200; round++) {
        struct mc_min_cut s;
        int64_t first[THINGS], second[THINGS], apart[PAIRS], least = INT64_MAX, have = 0;
        int a[PAIRS], b[PAIRS];
        bool there[THINGS];
        REQUIRE(mc_min_cut_begin(&s, THINGS) == MC_OK, "no memory");
        for (int i = 0; i < THINGS; i++) {
            first[i] = (int64_t)(test_random() % 20);
            second[i] = (int64_t)(test_random() % 20);
            CHECK(mc_min_cut_side_cost(&s, i, first[i], second[i] / 2) == MC_OK &&
                      mc_min_cut_side_cost(&s, i, 0, second[i] - second[i] / 2) == MC_OK,
                  "no memory");
        }
        for (int k = 0; k < PAIRS; k++) {
            a[k] = (int)(test_random() % THINGS);
            b[k] = (a[k] + 1 + (int)(test_random() % (THINGS - 1))) % THINGS;
            apart[k] = (int64_t)(test_random() % 12);
            CHECK(mc_min_cut_edge(&s, a[k], b[k], apart[k]) == MC_OK, "no memory");
        }
        mc_min_cut_solve(&s, there);
        mc_min_cut_free(&s);
        for (unsigned way = 0; way <= 1u << THINGS; way++) { /* the last one is what was found */
            int64_t cost = 0;
            bool found = way == 1u << THINGS;
            for (int i = 0; i < THINGS; i++) {
                cost += (found ? there[i] : way >> i & 1) ? second[i] : first[i];
            }
            for (int k = 0; k < PAIRS; k++) {
                const bool x = found ? there[a[k]] : way >> a[k] & 1,
                           y = found ? there[b[k]] : way >> b[k] & 1;
                cost += x != y ? apart[k] : 0;
            }
            least = found ? least : MC_MIN(least, cost);
            have = cost;
        }
        CHECK(have == least, "round %d: %lld, but %lld can be had", round, (long long)have, (long long)least);
    }
}

TEST(layouts_without_memory)
{
    mc_flag_set("layout", "b01c");
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_node *n =
            g ? mc_formula(
                    g,
                    "input x float32[?, 3, 7, 8]; input w float32[8, 3, 3, 3]; input v float32[5, 8, 2, 2]; "
                    "h = pool(conv(x, w), [2, 2]); grad(sum(conv(relu(h), v)), w)")
              : NULL;
        if (n && !mc_is_error(n)) {
            const mc_status s = mc_lower_layout(
                g, 1, &n, &(struct mc_layout_costs){ .convs = &mc_conv_family, .bandwidth = 2e10 });
            CHECK(s == MC_OK || (s == MC_EMEMORY && ALLOC_FAILED), "%s", mc_last_error());
        }
        mc_graph_free(g);
    }
}
