/* t_scan_values.c: loops whose numbers are known from elsewhere. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "graph/graph.h"

#include <math.h>

/* The results of a program in the text form whose inputs are scalars named n, or none. */
static void run_text(const char *text, const char *outputs, long n, int nout, mc_array **r,
                     const char *excluding)
{
    mc_graph *g = mc_graph_new();
    CHECK(!mc_is_error(mc_formula(g, text)), "%s", mc_error(g));
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = mc_dict_get(&g->names, "n") ? "n" : NULL,
                                               .outputs = outputs,
                                               .excluding = excluding });
    if (CHECK(f, "%s", mc_last_error())) {
        mc_arg in = mc_arg_int(n), out[8];
        for (int i = 0; i < nout; i++) {
            out[i] = mc_arg_slot(&r[i]);
        }
        CHECK(mc_call_args(f, mc_dict_get(&g->names, "n") ? 1 : 0, &in, nout, out) == MC_OK, "%s",
              mc_last_error());
    }
    mc_function_free(f);
    mc_graph_free(g);
}

static double at(const mc_array *a, int64_t i)
{
    return a ? mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size) : NAN;
}

static void drop(int n, mc_array **r)
{
    for (int i = 0; i < n; i++) {
        mc_array_unref(&r[i]);
    }
}

TEST(fibonacci_numbers)
{
    mc_array *r[2] = { 0 };
    run_text(
        "input n int64\ny, z = scan(steps=n, a from 0i64, b from 1i64: a, b = b, a + b; yield a, last b)",
        "y, z", 50, 2, r, NULL);
    REQUIRE(r[0] && mc_array_size(r[0]) == 50, "not 50 numbers");
    CHECK(at(r[0], 0) == 1 && at(r[0], 9) == 55 && at(r[0], 49) == 12586269025.0, "other numbers: %.0f",
          at(r[0], 49));
    CHECK(at(r[1], 0) == 20365011074.0, "the last is %.0f", at(r[1], 0));
    drop(2, r);
}

/* Newton's method for a square root, ended by its own condition. */
TEST(a_loop_ends_when_its_condition_holds)
{
    static const char *const ways[] = { NULL, "loops", "fusion" };
    for (size_t i = 0; i < NELEM(ways); i++) {
        mc_array *r[3] = { 0 };
        run_text("input n int64\n"
                 "x, count, end = scan(steps=n, x from 2.0f64: y = (x + 2 / x) / 2; d = abs(y - x); x = y;"
                 "                     yield x, count, last x; until d < 1e-9)",
                 "x, count, end", 100, 3, r, ways[i]);
        REQUIRE(r[0] && r[1] && r[2], "no results");
        CHECK(at(r[1], 0) == 5 && mc_array_size(r[0]) == 5, "%.0f steps, %lld values", at(r[1], 0),
              (long long)mc_array_size(r[0]));
        CHECK(fabs(at(r[2], 0) - sqrt(2)) < 1e-15 && at(r[0], 4) == at(r[2], 0), "not the root: %.17g",
              at(r[2], 0));
        drop(3, r);
    }
}

/* Rows by a number that steps change: 1, 0, 1, 0. */
TEST(rows_that_steps_choose)
{
    static const char *const ways[] = { NULL, "loops", "fusion" };
    static const struct { const char *row; double want[4]; } rows[] = {
        { "sum(E[k])", { 12, 3, 12, 3 } },        { "E[k, k]", { 4, 0, 4, 0 } },
        { "E[-1 - k, 2]", { 8, 11, 8, 11 } },     { "sum(E[k][1:][::-1])", { 9, 3, 9, 3 } },
        { "E[k][k]", { 4, 0, 4, 0 } },            { "sum(E[:, k])", { 22, 18, 22, 18 } },
        { "sum(E[1:, k][:k + 1])", { 11, 3, 11, 3 } },
    };
    for (size_t i = 0; i < NELEM(rows) * NELEM(ways); i++) {
        char text[300];
        mc_array *r[1] = { 0 };
        snprintf(text, sizeof text,
                 "input n int64\nE = reshape(cast(arange(12), 'float64'), [4, 3])\n"
                 "y = scan(steps=n, k from 1i64: t = %s; k = (k * 3 + 1) %% 2; yield t)",
                 rows[i / NELEM(ways)].row);
        run_text(text, "y", 4, 1, r, ways[i % NELEM(ways)]);
        REQUIRE(r[0] && mc_array_size(r[0]) == 4, "%s: no values", text);
        for (int k = 0; k < 4; k++) {
            CHECK(at(r[0], k) == rows[i / NELEM(ways)].want[k], "%s: step %d has %g", text, k, at(r[0], k));
        }
        drop(1, r);
    }
}

TEST(loops_with_rows_are_compiled)
{
    mc_flag_set("device", "cpu"); /* the tests' own device compiles nothing */
    mc_graph *g = mc_graph_new();
    mc_formula(
        g, "input E float32[?, 3]; y = scan(steps=5, k from 1i64: t = E[k]; k = (k + 1) % 2; yield sum(t))");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "E", .outputs = "y" });
    REQUIRE(f, "%s", mc_error(g));
    int found = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        found += strcmp(mc_function_step(f, i).kind, "loop") == 0;
    }
    CHECK(found == 1 || !mc_cc_present(), "%d loops are compiled", found);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(no_steps)
{
    mc_array *r[3] = { 0 };
    run_text("input n int64\n"
             "x, y, z = scan(steps=n, x from [1.0f64, 2.0f64]: x = x * 2; yield x, last x, sum(x))",
             "x, y, z", 0, 3, r, NULL);
    REQUIRE(r[0] && r[1] && r[2], "no results");
    CHECK(r[0]->rank == 2 && r[0]->dims[0] == 0 && r[0]->dims[1] == 2 && r[2]->dims[0] == 0, "other shapes");
    CHECK(at(r[1], 0) == 1 && at(r[1], 1) == 2, "the state is not the initial one");
    drop(3, r);
}

/* With all of w above all of x, the gradient is 2 w in each of 3 steps, and 2 n (3 + 2 + 1) from the
 * states. */
TEST(the_gradient_of_a_choice_between_sizes_that_nobody_knows)
{
    mc_array *r[1] = { 0 };
    run_text("input n int64\nw = alloc(2.0f64, [2, 1, n])\n"
             "a, b = scan(x in alloc(1.0f64, [3, 1, n]), h from alloc(0.5f64, [2, 1, n]):"
             " t = where(w > x, w, x); h = h + sum(t); yield t, h)\n"
             "d = grad(sum(sqr(a)) + sum(b), w)",
             "d", 4, 1, r, NULL);
    REQUIRE(r[0] && mc_array_size(r[0]) == 8, "no gradient of 8 elements");
    for (int i = 0; i < 8; i++) {
        CHECK(at(r[0], i) == 12 + 12 * 4, "element %d is %g", i, at(r[0], i));
    }
    drop(1, r);
}

/* 1 + 2 + ... + k for k = 1 ... n, by a loop in a loop. */
TEST(a_loop_in_a_loop)
{
    mc_array *r[1] = { 0 };
    run_text("input n int64\n"
             "y = scan(k in arange(n): s = scan(steps=k + 1, i from 0i64, s from 0i64: i = i + 1; s = s + i; "
             "yield last s); yield s)",
             "y", 6, 1, r, NULL);
    for (int k = 0; k < 6 && r[0]; k++) {
        CHECK(at(r[0], k) == (k + 1) * (k + 2) / 2, "%d: %.0f", k, at(r[0], k));
    }
    drop(1, r);
}

/* The draws of a loop are the numbers that one draw of all steps gives; a draw before it is the same in every
 * step. */
TEST(random_numbers_in_a_loop)
{
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    mc_random(g, "rng", 7);
    mc_random(h, "rng", 7);
    mc_array *r[3] = { 0 };
    mc_formula(g, "input x float32[?, 2]\nonce = uniform(rng, [2], stream=3)\n"
                  "y, z = scan(a in x: u = uniform(rng, shape(a), stream=5); yield a + u, a + once)");
    mc_formula(h, "input x float32[?, 2]\ny = x + uniform(rng, shape(x), stream=5)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y, z" }),
                *e = mc_compile(h, &(mc_spec){ .inputs = "x", .outputs = "y" });
    REQUIRE(f && e, "%s", mc_last_error());
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 2));
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&r[0], &r[1])) == MC_OK && mc_call(e, MC_IN(x), MC_OUT(&r[2])) == MC_OK,
          "%s", mc_last_error());
    REQUIRE(r[0] && r[1] && r[2], "no results");
    CHECK(mc_array_same_bits(r[0], r[2]), "other numbers than of one draw");
    CHECK(at(r[0], 0) != at(r[0], 2), "equal numbers in two steps");
    for (int i = 2; i < 8; i++) {
        CHECK(at(r[1], i) == at(r[1], i - 2), "the draw before the loop changes");
    }
    drop(3, r);
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(e);
    mc_graph_free(g), mc_graph_free(h);
}
