/* t_ops_join.c: tensors side by side and taken apart, against loops over their elements. */
#include "op_fixture.h"
#include "exec/function.h"
#include "schedule/schedule.h"

/* The reference: y[..., at + i, ...] = part[..., i, ...] for one part after the other. */
static mc_array *joined(int n, mc_array *const *part, int axis, mc_dtype d)
{
    int64_t dims[MC_MAX_RANK], base = 0;
    memcpy(dims, part[0]->dims, sizeof dims);
    for (int i = 1; i < n; i++) {
        dims[axis] += part[i]->dims[axis];
    }
    mc_array *y = mc_array_new(d, part[0]->rank, dims);
    for (int i = 0; i < n; base += part[i++]->dims[axis]) {
        int64_t at[MC_MAX_RANK] = { 0 }, to[MC_MAX_RANK];
        while (mc_array_size(part[i])) {
            memcpy(to, at, sizeof to);
            to[axis] += base;
            mc_array_set(y, to, mc_array_get(part[i], at));
            if (!next_index(part[i]->rank, part[i]->dims, at)) {
                break;
            }
        }
    }
    return y;
}

TEST(join_along_every_axis)
{
    static const char *const names[4] = { "a", "b", "c", "d" };
    for (int t = 0; t < 200; t++) {
        int rank = 1 + t % 4, n = 1 + (int)(test_random() % 4), axis = (int)(test_random() % (uint64_t)rank);
        int64_t dims[4];
        mc_array *part[4];
        mc_dtype d = MC_BOOL;
        struct leaf leaf[4];
        char text[64] = "join(";
        for (int k = 0; k < rank; k++) {
            dims[k] = (int64_t)(test_random() % 4);
        }
        for (int i = 0; i < n; i++) {
            mc_dtype own = test_random() % 3 ? MC_FLOAT32 : (mc_dtype)(test_random() % MC_NDTYPE);
            dims[axis] = (int64_t)(test_random() % 4);
            part[i] = sample(own, rank, dims, 0, 9);
            d = i ? mc_dtype_promote(d, own) : own;
            leaf[i] = (struct leaf){ names[i], part[i], (unsigned)test_random(), false };
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s, ", names[i]);
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "axis=%d)",
                 test_random() % 2 ? axis : axis - rank);
        mc_array *y = run(n, leaf, text), *want = joined(n, part, axis, d);
        check_same(y, want, text);
        mc_array_unref(&y);
        mc_array_unref(&want);
        for (int i = 0; i < n; i++) {
            mc_array_unref(&part[i]);
        }
    }
}

TEST(stack_of_numbers_and_tensors)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *s = sample(d, 0, NULL, 1, 9), *m = sample(d, 2, (int64_t[]){ 2, 3 }, 1, 9);
        struct leaf leaf[] = { { "s", s, 0, false }, { "m", m, 0, false } };
        mc_array *v = run(2, leaf, "stack(s, s)"), *mixed = run(2, leaf, "[s, 1]"),
                 *t = run(2, leaf, "stack([m, m, m], axis=1)");
        if (CHECK(v && mixed && t, "%s", mc_last_error())) {
            CHECK(v->dtype == d && v->rank == 1 && v->dims[0] == 2 &&
                      mc_array_get(v, (int64_t[]){ 1 }) == mc_array_get(s, NULL),
                  "two");
            CHECK(mixed->dtype == (mc_is_float(d) ? d
                                   : d == MC_BOOL ? MC_INT8
                                                  : d) &&
                      mc_array_get(mixed, (int64_t[]){ 1 }) == 1,
                  "%s with a literal is %s", mc_dtype_name(d), mc_dtype_name(mixed->dtype));
            CHECK(t->rank == 3 && t->dims[0] == 2 && t->dims[1] == 3 && t->dims[2] == 3, "rank %d", t->rank);
            CHECK(mc_array_get(t, (int64_t[]){ 1, 2, 0 }) == mc_array_get(m, (int64_t[]){ 1, 0 }), "stacked");
        }
        mc_array *all[] = { s, m, v, mixed, t };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
    }
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 3]; input s float32");
    CHECK(mc_is_const(mc_formula(g, "[2, size(x, 1)]")), "a stack of what is known is known");
    mc_node *y = mc_formula(g, "reshape(alloc(s, [12]), [size(x, 0), size(x, 1), 1])");
    CHECK(y->type.dims[1] == 3 && y->type.dims[2] == 1, "what is known of a shape is known of the result: %s",
          mc_error(g));
    mc_graph_free(g);
}

TEST(hstack_vstack_concatenate)
{
    mc_array *a = sample(MC_FLOAT32, 2, (int64_t[]){ 2, 3 }, -1, 1),
             *b = sample(MC_FLOAT32, 2, (int64_t[]){ 2, 3 }, -1, 1);
    struct leaf leaf[] = { { "a", a, 0, false }, { "b", b, 0, false } };
    static const char *const same[][2] = {
        { "horizontal_stack(a, b)", "join(a, b, axis=1)" }, { "vertical_stack(a, b)", "join(a, b)" },
        { "concatenate([a, b], axis=-1)", "join(a, b, axis=1)" },
    };
    for (size_t i = 0; i < NELEM(same); i++) {
        struct world w = world_new(2, leaf, same[i][0]);
        CHECK(w.y == mc_formula(w.g, same[i][1]) && !mc_is_error(w.y), "%s: %s", same[i][0], mc_error(w.g));
        mc_graph_free(w.g);
    }
    mc_array_unref(&a);
    mc_array_unref(&b);
}

TEST(split_gives_the_parts)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *x = sample(d, 2, (int64_t[]){ 3, 6 }, 0, 9);
        struct leaf leaf[] = { { "x", x, d % 4, false } };
        static const int64_t size[3] = { 1, 0, 5 };
        mc_array *part[3], *want;
        for (int i = 0; i < 3; i++) {
            char text[64];
            snprintf(text, sizeof text, "split(x, [1, 0, 5], axis=-1)[%d]", i);
            part[i] = run(1, leaf, text);
            CHECK(part[i] && part[i]->dims[1] == size[i], "%s: %s", text, mc_last_error());
        }
        if (part[0] && part[1] && part[2]) {
            want = joined(3, part, 1, d);
            check_same(want, x, "the parts side by side");
            mc_array_unref(&want);
        }
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&part[i]);
        }
        mc_array_unref(&x);
    }
}

TEST(roll_moves_the_end_to_the_front)
{
    for (int t = 0; t < 120; t++) {
        mc_dtype d = (mc_dtype)(t % MC_NDTYPE);
        int64_t dims[2] = { (int64_t)(test_random() % 4), 1 + (int64_t)(test_random() % 4) },
                shift = (int64_t)(test_random() % 13) - 6;
        int axis = (int)(test_random() % 3) - 1; /* -1: flattened */
        mc_array *x = sample(d, 2, dims, 0, 9), *s = mc_array_scalar(MC_INT32, (double)shift),
                 *want = mc_array_new(d, 2, dims);
        struct leaf leaf[] = { { "x", x, (unsigned)test_random(), false }, { "s", s, 0, t % 2 == 0 } };
        int64_t at[2] = { 0 }, n = axis < 0 ? mc_array_size(x) : dims[axis];
        while (mc_array_size(x)) {
            int64_t to[2] = { at[0], at[1] }, k = axis < 0 ? at[0] * dims[1] + at[1] : at[axis];
            k = ((k + shift) % n + n) % n;
            if (axis < 0) {
                to[0] = k / dims[1];
                to[1] = k % dims[1];
            } else {
                to[axis] = k;
            }
            mc_array_set(want, to, mc_array_get(x, at));
            if (!next_index(2, dims, at)) {
                break;
            }
        }
        const char *text = axis < 0 ? "roll(x, s)" : axis ? "roll(x, s, axis=1)" : "roll(x, s, axis=0)";
        mc_array *y = run(2, leaf, text);
        check_same(y, want, text);
        mc_array *all[] = { x, s, want, y };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
    }
}

TEST(tile_and_repeat)
{
    static const struct { const char *text; int rank; int64_t dims[3]; bool tile; int64_t reps[3]; } rows[] = {
        { "tile(x, [2, 3])", 2, { 4, 9 }, true, { 1, 1 } },   { "tile(x, 2)", 2, { 2, 6 }, true, { 1, 1 } },
        { "tile(x, [2, 1, 3])", 3, { 2, 2, 9 }, true, { 0 } }, { "tile(x, [0, 1])", 2, { 0, 3 }, true, { 0 } },
        { "repeat(x, 2, axis=0)", 2, { 4, 3 }, false, { 2, 1 } }, { "repeat(x, n, axis=-1)", 2, { 2, 9 }, false, { 1, 3 } },
        { "repeat(x, 0, axis=1)", 2, { 2, 0 }, false, { 1, 1 } },
    };
    for (size_t r = 0; r < NELEM(rows); r++) {
        for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
            mc_array *x = sample(d, 2, (int64_t[]){ 2, 3 }, 0, 9), *n = mc_array_scalar(MC_INT64, 3);
            mc_array *want = mc_array_new(d, rows[r].rank, rows[r].dims);
            struct leaf leaf[] = { { "x", x, d % 4, false }, { "n", n, 0, false } };
            int64_t at[3] = { 0 };
            while (mc_array_size(want)) {
                const int64_t *end = at + rows[r].rank - 2;
                int64_t from[2] = { rows[r].tile ? end[0] % 2 : end[0] / rows[r].reps[0],
                                    rows[r].tile ? end[1] % 3 : end[1] / rows[r].reps[1] };
                mc_array_set(want, at, mc_array_get(x, from));
                if (!next_index(rows[r].rank, rows[r].dims, at)) {
                    break;
                }
            }
            mc_array *y = run(2, leaf, rows[r].text);
            check_same(y, want, rows[r].text);
            mc_array *all[] = { x, n, want, y };
            for (size_t i = 0; i < NELEM(all); i++) {
                mc_array_unref(&all[i]);
            }
        }
    }
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 2, 3 }, 0, 9);
    struct leaf leaf[] = { { "x", x, 0, false } };
    mc_array *y = run(1, leaf, "repeat(x, 2)");
    CHECK(y && y->rank == 1 && y->dims[0] == 12 &&
              mc_array_get(y, (int64_t[]){ 9 }) == mc_array_get(x, (int64_t[]){ 1, 1 }),
          "%s", mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_graph *g = mc_graph_new();
    mc_node *t = mc_formula(g, "input r float32[1, ?]; tile(r, [1, 3])");
    CHECK(t->type.dims[0] == 1, "an axis that is not tiled still broadcasts: %s", mc_error(g));
    mc_graph_free(g);
}

TEST(mistakes_in_joining)
{
    static const char *const rows[][2] = {
        { "join(x, y)", "join: sizes 3 and 4 differ on axis 1 (argument 2)  [x: float32[?, 3], y: float32[?, 4]]" },
        { "join(x, v)", "join: argument 2 has rank 1, argument 1 has rank 2" },
        { "join(s, s)", "join: scalars have no axis to join along; use stack" },
        { "join(x, x, axis=2)", "join: axis 2 is out of range for rank 2" },
        { "join([])", "join: no tensors are given" },
        { "stack(x, v)", "stack: argument 2 has rank 1, argument 1 has rank 2" },
        { "stack(x, y)", "sizes 3 and 4 differ on axis 2" },
        { "stack(s, s, axis=1)", "stack: axis 1 is out of range for rank 1" },
        { "split(x, [1, 1], axis=1)", "split: the sizes add up to 2, but axis 1 has size 3" },
        { "split(x, [1, -1])", "split: -1 is not a valid size" },
        { "split(x, [])", "split: expected 1 to 16 parts, got 0" },
        { "split(x, [1], axis=5)", "split: axis 5 is out of range for rank 2" },
        { "roll(x, 0.5)", "roll: the shift must be an integer scalar" },
        { "roll(x, 1, axis=3)", "roll: axis 3 is out of range for rank 2" },
        { "repeat(x, -1)", "repeat: the counts must be nonnegative integers, a scalar or a vector" },
        { "tile(x, [-1])", "tile: the number of repeats, -1, is negative" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?, 3]; input y float32[?, 4]; input v float32[?]; input s float32");
        mc_formula(g, rows[i][0]);
        CHECK(strstr(mc_error(g), rows[i][1]), "%s says %s", rows[i][0], mc_error(g));
        mc_graph_free(g);
    }
    /* every argument is looked at while running, not the first alone */
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)), *b = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 4));
    struct leaf leaf[] = { { "a", a, 0, false }, { "b", b, 0, false } };
    CHECK(!run(2, leaf, "join(a, a, b)") &&
              strstr(mc_last_error(), "join: sizes 3 and 4 differ on axis 1 (argument 3)"),
          "%s", mc_last_error());
    CHECK(!run(2, leaf, "split(a, [1, 1], axis=1)[0]") &&
              strstr(mc_last_error(), "specify_shape: axis 1 has size 3, not 2"),
          "%s", mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&b);
}

TEST(gradients_of_joining)
{
    static const char *const rows[] = {
        "join(x, y)", "join(x, 2 * x, y, axis=1)", "stack(sum(x), 3, sum(y) * sum(x))", "stack(x, y, axis=2)", "split(x, [1, 2])[1]",
        "join(split(x, [1, 1, 1])[2], y)", "roll(x, 2)", "roll(x, i, axis=1)", "tile(x, [2, 1, 2])", "repeat(x, 2, axis=1)", "repeat(x, i)",
        "sum(tile(x, 3), axis=0) * join(y, y, y, axis=1)[0]", "horizontal_stack(x, y) * 2",
    };
    mc_array *x = sample(MC_FLOAT64, 2, (int64_t[]){ 3, 4 }, -1, 1),
             *y = sample(MC_FLOAT64, 2, (int64_t[]){ 3, 4 }, -1, 1);
    mc_array *i = mc_array_scalar(MC_INT64, 3);
    for (size_t r = 0; r < NELEM(rows); r++) {
        struct leaf leaf[] = { { "x", x, (unsigned)test_random(), false },
                               { "y", y, (unsigned)test_random(), false },
                               { "i", i, 0, true } };
        check_slopes(3, leaf, rows[r]);
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_array_unref(&i);
}

/* Kernels may write parts where the join wants them: neighbours along an axis before axes of promised size 1
 * are no neighbours there. */
TEST(kernels_make_parts_of_joins)
{
    for (int t = 0; t < 8 * 3; t++) {
        const int promised = t % 8, axis = t / 8;
        int64_t dims[3];
        mc_array *part[2], *twice[2], *out = NULL;
        char text[200] = "";
        for (int i = 0; i < 2; i++) {
            char *at = text + strlen(text);
            at += sprintf(at, "input %c float32[", "xy"[i]);
            for (int k = 0; k < 3; k++) {
                dims[k] = promised >> k & 1 ? 1 : 3;
                at += sprintf(at, k ? ", %s" : "%s", promised >> k & 1 ? "1" : "?");
            }
            sprintf(at, "]\n");
            part[i] = sample(MC_FLOAT32, 3, dims, -1, 1);
            twice[i] = mc_array_copy(part[i]);
            for (int64_t k = 0; k < mc_array_size(twice[i]); k++) {
                ((float *)twice[i]->data)[k] *= 2;
            }
        }
        sprintf(text + strlen(text), "z = join(x * 2, y + y, axis=%d)", axis);
        mc_graph *g = mc_graph_new();
        CHECK(!mc_is_error(mc_formula(g, text)), "%s", mc_error(g));
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = "z" });
        mc_array *want = joined(2, twice, axis, MC_FLOAT32);
        CHECK(f && mc_call(f, MC_IN(part[0], part[1]), MC_OUT(&out)) == MC_OK, "%s", mc_last_error());
        CHECK(out && mc_array_differs(out, want, 0, 0) < 0, "%s: other numbers", text);
        mc_function_free(f);
        mc_graph_free(g);
        mc_array_unref(&want);
        mc_array_unref(&out);
        for (int i = 0; i < 2; i++) {
            mc_array_unref(&part[i]);
            mc_array_unref(&twice[i]);
        }
    }
}

/* Parts that two joins and a result share: each has its own, and kernels store them all. */
TEST(parts_of_two_joins_are_stored_twice)
{
    const int64_t dims[2] = { 5, 7 };
    for (int axis = 0; axis < 2; axis++) {
        mc_array *x = sample(MC_FLOAT32, 2, dims, -1, 1), *y = sample(MC_FLOAT32, 2, dims, -1, 1), *part[3],
                 *out[3] = { NULL }, *of[2] = { x, y };
        char outputs[120];
        for (int i = 0; i < 3; i++) { /* 2 x, 3 y, and the first again */
            part[i] = mc_array_copy(of[i % 2]);
            for (int64_t k = 0; k < mc_array_size(part[i]); k++) {
                ((float *)part[i]->data)[k] *= i % 2 ? 3 : 2;
            }
        }
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[?, ?]\ninput y float32[?, ?]\na = x * 2\nb = y * 3");
        snprintf(outputs, sizeof outputs, "join(a, b, axis=%d), join(a, b, a, axis=%d), a", axis, axis);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = outputs });
        CHECK(f && mc_call(f, MC_IN(x, y), MC_OUT(&out[0], &out[1], &out[2])) == MC_OK, "%s",
              mc_last_error());
        for (int i = 0; i < 2 && f; i++) {
            mc_array *want = joined(2 + i, part, axis, MC_FLOAT32);
            CHECK(out[i] && mc_array_differs(out[i], want, 0, 0) < 0, "axis %d: join %d has other numbers",
                  axis, i);
            mc_array_unref(&want);
        }
        CHECK(out[2] && mc_array_differs(out[2], part[0], 0, 0) < 0, "the part has other numbers");
        int joins = 0;
        for (int i = 0; f && i < mc_function_nsteps(f); i++) {
            const bool join = strncmp(mc_function_step(f, i).text, "join(", 5) == 0;
            joins += join;
            CHECK(!join || f->code->mode != MODE_FAST_RUN || mc_join_is_made(f, f->plans, i),
                  "axis %d: step %d copies", axis, i);
        }
        CHECK(!f || joins == 2, "there are %d joins", joins);
        mc_function_free(f);
        mc_graph_free(g);
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&part[i]);
            mc_array_unref(&out[i]);
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
    }
}

TEST(joining_without_memory)
{
    mc_array *a = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 4 }, -1, 1), *out = NULL;
    static const char *const rows[] = { "join(x, x, axis=1)", "roll(x, 1)", "tile(x, [2, 2])", "stack(sum(x), 1)",
                                        "split(x, [1, 2])[1]" };
    for (size_t r = 0; r < NELEM(rows); r++) {
        ALLOC_FAIL_LOOP {
            mc_graph *g = mc_graph_new();
            if (g) {
                mc_node *x = mc_input(g, "x", MC_FLOAT32, 2), *y = mc_formula(g, rows[r]);
                mc_status s = mc_is_error(y) ? mc_graph_status(g) : mc_eval(1, &x, &a, 1, &y, &out);
                CHECK(s == MC_OK || ALLOC_FAILED, "%s failed with memory: %s", rows[r], mc_last_error());
                mc_array_unref(&out);
            }
            mc_graph_free(g);
        }
    }
    mc_array_unref(&a);
}
