/* t_ops_effect.c: ops that hand on their input and speak to gradients or to the world. */
#include "sample.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TEST(effects_hand_on_their_input)
{
    static const char *const rows[] = { "consider_constant(x)", "undefined_grad(x)", "grad_clip(x, -1, 1)", "grad_scale(x, 0.5)",
                                        "assert_(x)", "assert_(x, x == x, True, msg=\"never\")" };
    int64_t dims[3] = { 2, 3, 2 }, none[2] = { 0, 3 };
    for (size_t k = 0; k < NELEM(rows); k++) {
        for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
            mc_array *x = sample(d, 3, dims, 0, 5), *y = run1(rows[k], x, 2), *e = sample(d, 2, none, 0, 1),
                     *z = run1(rows[k], e, 0);
            CHECK(y && mc_array_same_bits(x, y), "%s of %s: %s", rows[k], mc_dtype_name(d), mc_last_error());
            CHECK(z && mc_dims_equal(z->rank, z->dims, 2, none), "%s of nothing: %s", rows[k],
                  mc_last_error());
            mc_array_unref(&x);
            mc_array_unref(&y);
            mc_array_unref(&e);
            mc_array_unref(&z);
        }
    }
}

TEST(effects_on_gradients)
{
    static const struct { const char *text; double want[3]; } rows[] = {
        { "grad(sum(sqr(x)), x)", { -4, 1, 6 } },
        { "grad(sum(sqr(grad_clip(x, -2, 5))), x)", { -2, 1, 5 } },
        { "grad(sum(sqr(grad_scale(x, -0.5))), x)", { 2, -.5, -3 } },
        { "grad(sum(x * consider_constant(x)), x)", { -2, .5, 3 } },
        { "grad(sum(sqr(assert_(x, x > -5))), x)", { -4, 1, 6 } },
    };
    double v[3] = { -2, .5, 3 };
    for (mc_dtype d = MC_FLOAT32; d <= MC_FLOAT64; d++) {
        mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(3), v), *x = mc_array_cast(a, d);
        for (size_t k = 0; k < NELEM(rows); k++) {
            mc_array *y = run1(rows[k].text, x, 0);
            for (int64_t i = 0; i < 3; i++) {
                CHECK(y && y->dtype == d && mc_array_get(y, &i) == rows[k].want[i], "%s[%lld] is %g: %s",
                      rows[k].text, (long long)i, y ? mc_array_get(y, &i) : 0., mc_last_error());
            }
            mc_array_unref(&y);
        }
        mc_array_unref(&a);
        mc_array_unref(&x);
    }
    const char *said = complaint("grad(sum(consider_constant(x)), x)", MC_FLOAT32, 1);
    CHECK(*said, "a constant has a gradient");
    said = complaint("grad(sum(x * undefined_grad(sqr(x))), x)", MC_FLOAT32, 1);
    CHECK(strstr(said, "undefined_grad"), "what has no gradient is named: %s", said);
}

TEST(assertions_that_do_not_hold)
{
    static const struct { const char *text, *says; } rows[] = {
        { "assert_(x, x < 3)", "assert_: condition 1 does not hold" },
        { "assert_(x, x < 9, all(x > 2), x)", "assert_: condition 2 does not hold" },
        { "assert_(x, x < 3, msg=\"x must be small\")", "assert_: x must be small" },
        { "assert_(x, x)", "assert_: condition 1 does not hold" },
    };
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(4), ((float[]){ 1, 2, 3, 0 }));
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *y = run1(rows[k].text, x, 0);
        CHECK(!y && mc_last_status() == MC_ECHECK && strstr(mc_last_error(), rows[k].says), "%s says '%s'",
              rows[k].text, mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}

/* Two prints are two prints, though they look the same. */
TEST(prints_are_not_shared)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    CHECK(mc_formula(g, "print_(x, \"a\")") != mc_formula(g, "print_(x, \"a\")"), "one print for two");
    CHECK(mc_formula(g, "grad_scale(x, 2)") == mc_formula(g, "grad_scale(x, 2)"), "two scales for one");
    mc_graph_free(g);
}

TEST(print_writes_a_line)
{
    char path[] = "/tmp/monochord_print_XXXXXX", text[200] = { 0 };
    int fd = mkstemp(path), out = dup(STDOUT_FILENO);
    REQUIRE(fd >= 0 && out >= 0, "no file");
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(3), ((float[]){ 1, 2, 3 }));
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    mc_array *y = run1("print_(print_(x, \"x is\") + 1)", x, 0),
             *dx = run1("grad(sum(x * print_(x)), x)", x, 0);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    CHECK(y && mc_array_get(y, NULL) == 2 && dx && mc_array_get(dx, NULL) == 2, "%s", mc_last_error());
    CHECK(pread(fd, text, sizeof text - 1, 0) > 0 &&
              strcmp(text, "x is [1. 2. 3.]\n[2. 3. 4.]\n[1. 2. 3.]\n") == 0,
          "printed '%s'", text);
    close(fd);
    close(out);
    unlink(path);
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_array_unref(&dx);
}

TEST(effects_without_memory)
{
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3));
    mc_op_count(); /* the table of ops is there */
    ALLOC_FAIL_LOOP {
        mc_array *y = run1("grad(sum(sqr(grad_clip(assert_(x, x < 1), -1, 1))), x)", x, 0);
        CHECK(y || ALLOC_FAILED, "no result, yet memory: %s", mc_last_error());
        mc_array_unref(&y);
    }
    mc_array_unref(&x);
}
