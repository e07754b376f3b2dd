/* t_recompute.c: what kernels compute again instead of reading it: which values are kept, and that nothing
 * else changes. For src/lower/recompute.c. */
#include "agree.h"
#include "sample.h"

/* Does a step of f keep what an op of that name makes? */
static bool keeps(const mc_function *f, const char *op)
{
    const struct mc_program *p = &f->code->program;
    for (size_t i = 0; i < p->value.n; i++) {
        if (p->value.at[i].kind == VALUE_TEMP && strcmp(p->value.at[i].node->op->name, op) == 0) {
            return true;
        }
    }
    return false;
}

static const struct { const char *formula, *op; bool kept; } cases[] = {
    /* a product stands between those who make and those who read */
    { "t = tanh(x); p = dot(t, w); tuple(p, (1 - sqr(t)) * dot(p, w))",             "sub",  false },
    { "t = tanh(x); p = dot(t, w); tuple(p, (1 - sqr(t)) * dot(p, w))",             "sqr",  false },
    { "t = tanh(x); p = dot(t, w); tuple(p, (1 - sqr(t)) * dot(p, w))",             "tanh", true },  /* costly, and the product reads it */
    { "t = exp(x); p = dot(t * y, w); t * dot(p, w)",                               "exp",  true },  /* costly */
    { "s = sgn(x); p = dot(tanh(x) * s, w); s * dot(p, w)",                         "sgn",  false }, /* of an argument */
    { "s = sgn(x); p = dot(tanh(x) * s, w); tuple(s, s * dot(p, w))",               "sgn",  true },  /* asked for */
    { "s = sgn(x); p = dot(s, w); s * dot(p, w)",                                   "sgn",  true },  /* a product reads it */
    { "s = x * y; p = dot(tanh(s), w); s - dot(p, w)",                              "mul",  true },  /* two to read, or one */
    { "s = x * y; p = dot(tanh(s), w); s - dot(p, w) * y",                          "mul",  false }, /* one of the two is read anyway */
    { "s = x * b; p = dot(tanh(s), w); s - dot(p, w)",                              "mul",  false }, /* b is small */
    { "s = dot(x, w) + b; p = dot(tanh(s), w); s - dot(p, w)",                      "add",  true },  /* a product is finished in place */
    { "s = cast_to(x > y, dtype='float32'); p = dot(x * s, w); q = dot(y * s, w); tuple(p, q, s * x * dot(p, w))", "cast", false },
    { "s = max(x, axis=1, keepdims=True); d = x - s; p = dot(exp(d), w); d * dot(p, w)", "sub", false }, /* s is small: it is kept */
    { "m = dot(x, w); s = mean(m, axis=1, keepdims=True); d = m - s; p = dot(exp(d), w); d * dot(p, w)", "sub", false }, /* a sum follows: m stays */
    { "m = dot(x, w); d = m - mean(m, axis=1, keepdims=True); s = sgn(d + y); p = dot(tanh(d) * s, w); s * (d + y) * dot(p, w)", "sgn", false }, /* d reads m again, so s may */
    { "s = max(x, axis=1, keepdims=True); d = x - s; p = dot(exp(d), w); tuple(s, d * dot(p, w))", "sub", false },
    { "s = dot(x, w) + b; p = dot(maximum(s, 0), w); sgn(s) * dot(p, w)",           "sgn",  false }, /* a byte stands for it */
    { "s = dot(x, w) + b; p = dot(maximum(s, 0), w); sgn(s) * dot(p, w)",           "cast", true },
    { "s = dot(x, w) + b; p = dot(tanh(s), w); cast_to(s > 0.5, dtype='float32') * dot(p, w)", "gt", true }, /* and here it is there */
    { "s = dot(x, w) + b; p = dot(tanh(s), w); cast_to(s > 0.5, dtype='float32') * dot(p, w)", "cast", false },
    { "s = dot(x, w) + b; p = dot(tanh(s), sgn(s).T); sgn(s).T * dot(p.T, p)[:17, :]", "sgn", true }, /* a product reads it */
};

TEST(cheap_values_are_computed_again)
{
    for (size_t i = 0; i < NELEM(cases); i++) {
        for (int sized = 0; sized < 2; sized++) {
            struct agree a = { .scale = 400 };
            unsigned known = sized ? ~0u : 0;
            agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(19, 17), -1, 1), known);
            agree_input(&a, "y", sample(MC_FLOAT32, MC_SHAPE(19, 17), -1, 1), known);
            agree_input(&a, "w", sample(MC_FLOAT32, MC_SHAPE(17, 17), -1, 1), known);
            agree_input(&a, "b", sample(MC_FLOAT32, MC_SHAPE(17), .5, 1), known);
            mc_node *n = mc_formula(a.g, cases[i].formula);
            REQUIRE(!mc_is_error(n), "%s", mc_error(a.g));
            for (int k = 0; k < n->nout; k++) {
                a.out[a.nout++] = n->nout > 1 ? mc_item(n, k) : n;
            }
            mc_function *f = agree_compile(&a, "FAST_RUN", 1);
            REQUIRE(f, "%s", mc_error(a.g));
            CHECK(keeps(f, cases[i].op) == cases[i].kept, "%s: %s is%s kept", cases[i].formula, cases[i].op,
                  cases[i].kept ? " not" : "");
            mc_function_free(f);
            agree(&a, cases[i].formula);
        }
    }
}

/* A sign that a byte stood for is the sign still, and none that of what is no number. */
TEST(signs_are_kept_in_a_byte)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16 };
    for (size_t d = 0; d < NELEM(dtypes); d++) {
        struct agree a = { .scale = 400 };
        mc_array *b = sample(MC_FLOAT64, MC_SHAPE(17), -1, 1);
        ((double *)mc_array_data(b))[3] = NAN;
        agree_input(&a, "x", sample(dtypes[d], MC_SHAPE(19, 17), -1, 1), 0);
        agree_input(&a, "w", sample(dtypes[d], MC_SHAPE(17, 17), -1, 1), 0);
        agree_input(&a, "b", mc_array_cast(b, dtypes[d]), 0);
        mc_array_unref(&b);
        agree_output(
            &a, "s = dot(x, w) + b; p = dot(where(isnan(s), 0, maximum(s, 0)), w); sgn(s) * (1 + sqr(p))");
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        REQUIRE(f, "%s", mc_error(a.g));
        CHECK(keeps(f, "cast") && !keeps(f, "sgn"), "%s", mc_dtypes[dtypes[d]].name);
        mc_function_free(f);
        agree(&a, mc_dtypes[dtypes[d]].name);
    }
}

/* Without fusion each node is its own kernel, and stays it. */
TEST(nothing_is_computed_again_without_fusion)
{
    struct agree a = { 0 };
    agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(5, 4), -1, 1), 0);
    agree_output(&a, "sum(1 - sqr(tanh(x)))");
    mc_function *f = agree_compile(&a, "FAST_COMPILE", 1);
    REQUIRE(f, "%s", mc_error(a.g));
    CHECK(keeps(f, "sqr") && keeps(f, "sub"), "a node has no memory of its own");
    mc_function_free(f);
    agree_free(&a);
}

/* What is small goes into the kernel of the sum that it stands beside. */
TEST(small_work_beside_a_sum_is_no_kernel)
{
    static const struct { const char *formula; int kernels; } small[] = {
        { "b * 0.9 + (b - sum(x, axis=0) * 0.1)",                                                    1 },
        { "v = b * 0.9 + (b - sum(x, axis=0) * 0.1); tuple(v, v - b)",                               1 },
        { "softmax(x + where(b < 0, b + 1, b) * 2)",                                                 1 },
        { "mean(crossentropy_1hot(softmax(x), t))",                                                       2 },
    };
    for (size_t i = 0; i < NELEM(small); i++) {
        struct agree a = { .scale = 400 };
        int kernels = 0;
        agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(19, 17), -1, 1), 0);
        agree_input(&a, "b", sample(MC_FLOAT32, MC_SHAPE(17), -1, 1), 0);
        agree_input(&a, "t", sample(MC_INT32, MC_SHAPE(19), -17, 16), 0);
        mc_node *n = mc_formula(a.g, small[i].formula);
        REQUIRE(!mc_is_error(n), "%s", mc_error(a.g));
        for (int k = 0; k < n->nout; k++) {
            a.out[a.nout++] = n->nout > 1 ? mc_item(n, k) : n;
        }
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        REQUIRE(f, "%s", mc_error(a.g));
        for (int k = 0; k < mc_function_nsteps(f); k++) {
            kernels += strcmp(mc_function_step(f, k).kind, "kernel") == 0;
        }
        CHECK(kernels == small[i].kernels, "%s: %d kernels", small[i].formula, kernels);
        mc_function_free(f);
        agree(&a, small[i].formula);
    }
}
