/* t_masks.c: masks have the sizes of what they mask; an indexed part is updated in the tensor that was
 * indexed. */
#include "function_words.h"

static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };

/* What NumPy refuses with an IndexError is refused: while building where sizes are known, otherwise when
 * called. */
TEST(masks_of_the_wrong_size)
{
    static const struct { const char *declared, *text; int64_t x[2]; int64_t keep; const char *says; } rows[] = {
        { "input x float32[?, ?]; input k bool[?]", "x[k]", { 3, 2 }, 2, "the mask has size 2, but the axis has size 3" },
        { "input x float32[?, ?]; input k bool[?]", "x[k]", { 3, 2 }, 4, "the mask has size 4, but the axis has size 3" },
        { "input x float32[3, ?]; input k bool[?]", "x[:, k]", { 3, 4 }, 3, "the mask has size 3, but the axis has size 4" },
        { "input x float32[?, ?]; input k bool[2]", "set_subtensor(x[k], 0)", { 3, 4 }, 2, "the mask has size 2, but the axis has size 3" },
        { "input x float32[?, ?]; input k bool[?]", "inc_subtensor(x[:, k], 1)", { 3, 4 }, 5, "the mask has size 5, but the axis has size 4" },
    };
    for (size_t i = 0; i < 2 * NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, rows[i / 2].declared);
        mc_function *f = made(
            g,
            mc_compile(g, &(mc_spec){ .inputs = "x, k", .outputs = rows[i / 2].text, .mode = modes[i % 2] }));
        mc_array *x = ramp(MC_FLOAT32, 2, rows[i / 2].x), *k = mc_array_new(MC_BOOL, 1, &rows[i / 2].keep),
                 *y = NULL;
        CHECK(f && mc_call(f, MC_IN(x, k), MC_OUT(&y)) < 0 && strstr(mc_last_error(), rows[i / 2].says),
              "%s of %s in %s: %s", rows[i / 2].text, rows[i / 2].declared, modes[i % 2], mc_last_error());
        mc_array_unref(&x);
        mc_array_unref(&k);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    static const char *const known[][2] = {
        { "x[k]", "the mask has size 2, but axis 0 has size 3" },
        { "x[:, [True, False]]", "the mask has size 2, but axis 1 has size 4" },
        { "x[x[:, :3] > 0]", "the mask has size 3, but axis 1 has size 4" },
        { "x[[True, False, True, False]]", "the mask has size 4, but axis 0 has size 3" },
    };
    for (size_t i = 0; i < NELEM(known); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[3, 4]; input k bool[2]");
        CHECK(mc_is_error(mc_formula(g, known[i][0])) && mc_graph_status(g) == MC_ESHAPE &&
                  strstr(mc_error(g), known[i][1]),
              "%s says %s", known[i][0], mc_error(g));
        mc_graph_free(g);
    }
}

/* x is 0 1 2 / 3 4 5 / 6 7 8 throughout, u is 10 20 30; values by NumPy. */
TEST(parts_with_new_axes)
{
    static const struct { const char *text; int rank; int64_t dims[4]; double y[27]; } rows[] = {
        { "inc_subtensor(x[[0, 1], None], u)", 2, { 3, 3 }, { 10, 21, 32, 13, 24, 35, 6, 7, 8 } },
        { "set_subtensor(x[[0, 1], None], u)", 2, { 3, 3 }, { 10, 20, 30, 10, 20, 30, 6, 7, 8 } },
        { "inc_subtensor(x[None, [2, 2]], u)", 2, { 3, 3 }, { 0, 1, 2, 3, 4, 5, 26, 47, 68 } },
        { "inc_subtensor(x[1:, None], u)", 2, { 3, 3 }, { 0, 1, 2, 13, 24, 35, 16, 27, 38 } },
        { "set_subtensor(x[0, :, None], 7)", 2, { 3, 3 }, { 7, 7, 7, 3, 4, 5, 6, 7, 8 } },
        { "inc_subtensor(x[:, None, [0, 2]], u[:2])", 2, { 3, 3 }, { 10, 1, 22, 13, 4, 25, 16, 7, 28 } },
        { "inc_subtensor(x[[0, 1], None, [2, 0]], expand_dims(u[:2], 1))", 2, { 3, 3 }, { 0, 1, 12, 23, 4, 5, 6, 7, 8 } },
        { "set_subtensor(x[1:, :2].T, [[50f32, 51f32], [52f32, 53f32]])", 2, { 3, 3 }, { 0, 1, 2, 50, 52, 5, 51, 53, 8 } },
        { "set_subtensor(x[0:2][1], 7)", 2, { 2, 3 }, { 0, 1, 2, 7, 7, 7 } }, /* x[0:2] with a part set, as t = x[0:2] would be */
        { "set_subtensor(x[1:][:, 1:], 7)", 2, { 2, 3 }, { 3, 7, 7, 6, 7, 7 } },
        { "set_subtensor(x[::2][::-1][0], u)", 2, { 2, 3 }, { 10, 20, 30, 0, 1, 2 } },
        { "inc_subtensor(x[[2, 0]][:], u)", 2, { 2, 3 }, { 16, 27, 38, 10, 21, 32 } },
        { "inc_subtensor(x[[2, 0]][0], u)", 2, { 2, 3 }, { 16, 27, 38, 0, 1, 2 } },
        { "inc_subtensor(x[:, None], u)", 2, { 3, 3 }, { 10, 21, 32, 13, 24, 35, 16, 27, 38 } },
        { "inc_subtensor(x.T[:], u)", 2, { 3, 3 }, { 10, 23, 36, 11, 24, 37, 12, 25, 38 } },
        { "inc_subtensor(x[0:1][:], u)", 2, { 1, 3 }, { 10, 21, 32 } },
        { "set_subtensor(x[1:, [0, 2]], 7)", 2, { 3, 3 }, { 0, 1, 2, 7, 4, 7, 7, 7, 7 } },
        { "set_subtensor(x[1:][:, [0, 2]], 7)", 2, { 2, 3 }, { 7, 4, 7, 7, 7, 7 } },
        { "inc_subtensor(expand_dims(x, 1)[[0, 1]], u)", 3, { 3, 1, 3 }, { 10, 21, 32, 13, 24, 35, 6, 7, 8 } },
        { "x[[0, 1], None]", 3, { 2, 1, 3 }, { 0, 1, 2, 3, 4, 5 } },
        { "x[[0, 1], None, [2, 0]]", 2, { 2, 1 }, { 2, 3 } },
        { "x[None, :, [[0], [1]]]", 4, { 1, 3, 2, 1 }, { 0, 1, 3, 4, 6, 7 } },
        { "x[:, [2, 0], None]", 3, { 3, 2, 1 }, { 2, 0, 5, 3, 8, 6 } },
        { "t[:, [1, 0], None, [0, 2]]", 3, { 2, 3, 1 }, { 3, 12, 21, 2, 11, 20 } },
        { "t[[1, 0], :, None, [0, 2]]", 3, { 2, 3, 1 }, { 9, 12, 15, 2, 5, 8 } },
        { "t[0, None, :, [2, 1]]", 3, { 2, 1, 3 }, { 2, 5, 8, 1, 4, 7 } },
    };
    for (size_t i = 0; i < 2 * NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?, 3]; input u float32[3]; input t float32[3, 3, 3]");
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x, u, t",
                                                           .outputs = rows[i / 2].text,
                                                           .mode = modes[i % 2],
                                                           .on_unused = "ignore" }));
        mc_array *x = ramp(MC_FLOAT32, 2, (int64_t[]){ 3, 3 }),
                 *t = ramp(MC_FLOAT32, 3, (int64_t[]){ 3, 3, 3 }), *y = NULL;
        mc_array *u = mc_array_from(MC_FLOAT32, 1, (int64_t[]){ 3 }, (float[]){ 10, 20, 30 });
        if (f && fine(mc_call(f, MC_IN(x, u, t), MC_OUT(&y)))) {
            CHECK(mc_dims_equal(y->rank, y->dims, rows[i / 2].rank, rows[i / 2].dims), "%s has another shape",
                  rows[i / 2].text);
            for (int64_t k = 0; k < mc_array_size(y); k++) {
                CHECK(at(y, k) == rows[i / 2].y[k], "%s, element %d: %g, not %g", rows[i / 2].text, (int)k,
                      at(y, k), rows[i / 2].y[k]);
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&u);
        mc_array_unref(&t);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
