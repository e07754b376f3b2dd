/* Jacobians and Hessians, and products with them: against what mathematics says they are. */
#include "check.h"
#include "graph/graph.h"

#include <math.h>

#define VARIABLES                                                                                            \
    "shared x float64[4] = normal(std=1); shared v float64[4] = normal(std=1)\n"                             \
    "shared A float64[3, 4] = normal(std=1); shared X float64[2, 3] = normal(std=1)\n"                       \
    "shared Y float64[3, 5] = normal(std=1); shared u float64[3] = normal(std=1)\n"                          \
    "shared x50 float64[50] = normal(std=1); shared A50 float64[50, 50] = normal(std=1)\n"                   \
    "shared s float64 = normal(std=1); shared none float64[0]\n"

/* Statements that make `got`, and `want` without a Jacobian. */
static const char *const rows[] = {
    "got = jacobian(dot(A, x), x); want = A + 0",
    "got = jacobian(dot(A50, x50), x50); want = A50 + 0",
    "got = jacobian(dot(A, x), A); want = eye(3)[:, :, None] * x",
    "got = jacobian(dot(X, Y), X); want = eye(2)[:, None, :, None] * Y.T[:, None, :]",
    "got = jacobian(sum(X, axis=0), X); want = eye(3)[:, None, :] * ones([2, 1])",
    "got = jacobian(X.T, X); want = eye(3)[:, None, None, :] * eye(2)[:, :, None]",
    "got = jacobian(softmax(x), x); p = softmax(x); want = eye(4) * p - p[:, None] * p",
    "got = jacobian(x[::-1] * s, x); want = eye(4)[::-1] * s",
    "got = jacobian(sin(x), x); want = eye(4) * cos(x)",
    "got = jacobian(X * X * s, X); want = eye(2)[:, None, :, None] * eye(3)[:, None, :] * (2 * X * s)",
    "got = jacobian(x, x); want = eye(4)",
    "got = jacobian(x * s, s); want = x + 0",
    "got = jacobian(sum(sqr(x)), x); want = 2 * x",
    "got = jacobian(none * 2, none); want = zeros([0, 0])",
    "got = jacobian(none[::-1] * sum(x), x); want = zeros([0, 4])",
    "a, got = jacobian(dot(A, x) * 2, [x, A]); want = 2 * eye(3)[:, :, None] * x + sum(a - 2 * A)",
    /* Hessians */
    "got = hessian(dot(x50, dot(A50, x50)), x50); want = A50 + A50.T",
    "got = hessian(exp(dot(x, v)), x); want = exp(dot(x, v)) * v[:, None] * v",
    "got = hessian(sum(x ** 4), x); want = eye(4) * 12 * sqr(x)",
    "got = hessian(sum(x), x); want = zeros([4, 4])",
    "got = hessian(sum(X) ** 3, X); want = 6 * sum(X) * ones([2, 3, 2, 3])",
    "got = hessian(s ** 3, s); want = 6 * s",
    /* products, which need neither */
    "got = Rop(tanh(dot(A, x)), x, v); want = dot((1 - sqr(tanh(dot(A, x))))[:, None] * A, v)",
    "got = Lop(tanh(dot(A, x)), x, u); want = dot(u, (1 - sqr(tanh(dot(A, x))))[:, None] * A)",
    "got = Lop(grad(exp(dot(x, v)), x), x, x); want = exp(dot(x, v)) * v * dot(v, x)",
    /* derivatives of a Jacobian */
    "got = grad(sum(sqr(jacobian(dot(A, sqr(x)), x))), x); want = 8 * x * sum(sqr(A), axis=0)",
    "got = grad(sum(sqr(jacobian(sin(x), x))), x); want = -sin(2 * x)",
    "got = jacobian(jacobian(dot(A, x ** 3), x), x);"
    "want = A[:, :, None] * eye(4) * 6 * x",
    /* of loops and inside of loops */
    "y = scan(t in x, h from 0.0f64: h = 0.5 * h + t); got = jacobian(y, x); n = arange(4);"
    "want = where(n[:, None] >= n, 0.5 ** cast(n[:, None] - n, float64), 0)",
    "y = scan(t in x, h from 0.0f64: h = h * h + t; yield last h); got = hessian(y, x)[1];"
    "a = sqr(x[0]) + x[1]; d = 12 * sqr(a) + 4 * x[2]; want = [2 * x[0] * d, d, 4 * a, 0 * a]",
    "y = scan(t in x, h from 0.0f64: h = 0.5 * h + t); got = Rop(y, x, v); n = arange(4);"
    "want = dot(where(n[:, None] >= n, 0.5 ** cast(n[:, None] - n, float64), 0), v)",
    "y = scan(t in x, h from 0.0f64: h = h * h + t); got = Rop(y, x, v); h = sqr(x[0]) + x[1]; d = 2 * x[0] * v[0] + v[1];"
    "e = 2 * h * d + v[2]; want = [v[0], d, e, 2 * (sqr(h) + x[2]) * e + v[3]]",
    "y = scan(steps=3, h from x: h = tanh(dot(A.T, dot(A, h))); yield last h);"
    "got = Rop(grad(sum(y), x), x, v); want = dot(hessian(sum(y), x), v)",
    "got = scan(r in X: yield jacobian(r[::-1] * r[0], r));"
    "want = eye(3)[::-1] * X[:, :1, None] + X[:, ::-1, None] * eye(3)[0]",
};

TEST(what_mathematics_says)
{
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < NELEM(rows); i++) {
        const char *text = rows[i], *mode = modes[i % NELEM(modes)];
        mc_graph *g = mc_graph_new();
        mc_array *r[2] = { 0 };
        mc_formula(g, VARIABLES);
        CHECK(!mc_is_error(mc_formula(g, text)), "%s\n%s", text, mc_error(g));
        mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "got, want", .mode = mode });
        const bool ran = f && mc_call(f, MC_NONE, MC_OUT(&r[0], &r[1])) == MC_OK;
        if (CHECK(ran, "%s\n%s", text, mc_last_error()) &&
            CHECK(mc_dims_equal(r[0]->rank, r[0]->dims, r[1]->rank, r[1]->dims), "%s: other sizes", text)) {
            for (int64_t k = 0; k < mc_array_size(r[0]); k++) {
                const double a = ((double *)(void *)r[0]->data)[k], b = ((double *)(void *)r[1]->data)[k];
                CHECK(fabs(a - b) <= 1e-11 * fmax(1, fabs(b)), "%s\nelement %lld is %.17g, not %.17g", text,
                      (long long)k, a, b);
            }
        }
        mc_array_unref(&r[0]);
        mc_array_unref(&r[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

static int loops_in(mc_node *n)
{
    size_t count = 0;
    int loops = 0;
    mc_node **list = mc_graph_reach(1, &n, &count);
    for (size_t i = 0; i < count; i++) {
        loops += list[i]->op->form == FORM_LOOP;
    }
    mc_free(list);
    return loops;
}

TEST(elementwise_functions_need_no_loop)
{
    static const struct { const char *y; int loops; } cases[] = {
        { "exp(x) * v + s", 0 }, { "x * sum(v)", 0 }, { "x * sum(x)", 1 }, { "dot(A, x)", 1 }, { "sum(sqr(x))", 0 },
    };
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, VARIABLES);
        mc_node *j = mc_jacobian(mc_formula(g, cases[i].y), mc_var(g, "x"));
        CHECK(!mc_is_error(j), "%s: %s", cases[i].y, mc_error(g));
        CHECK(loops_in(j) == cases[i].loops, "%s: %d loops", cases[i].y, loops_in(j));
        mc_graph_free(g);
    }
}

TEST(refused_with_the_reason)
{
    static const char *const wrong[][2] = {
        { "jacobian(x)", "jacobian takes what is differentiated and the variables" },
        { "hessian(sum(x), x, x)", "hessian takes a cost and the variables" },
        { "jacobian(sum(v), x)", "does not depend on x" },
        { "jacobian(cast(x, int64), x)", "only floats have gradients" },
        { "hessian(x, x)", "the cost must be a float scalar" },
        { "jacobian(reshape(X, [1, 1, 1, 2, 3, 1, 1]), X)", "it would have 9 axes" },
    };
    for (size_t i = 0; i < NELEM(wrong); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, VARIABLES);
        CHECK(mc_is_error(mc_formula(g, wrong[i][0])) && strstr(mc_error(g), wrong[i][1]), "%s: %s",
              wrong[i][0], mc_error(g));
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input_sized(g, "x", MC_FLOAT64, 1, (int64_t[]){ -1 });
    CHECK(mc_is_error(mc_jacobian(NULL, x)) && strstr(mc_error(g), "is missing"), "%s", mc_error(g));
    CHECK(mc_jacobian(NULL, NULL) == NULL, "a node of no graph");
    mc_graph_free(g);
}
