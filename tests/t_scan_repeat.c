/* t_scan_repeat.c: loops whose body is one map, all of whose steps a backend may run at once: they have the
 * bits of the same loop run step by step, which is how a loop is run whose steps are timed. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "graph/graph.h"

#include <math.h>

enum { STEPS = 9, RESULTS = 3 };

struct variant { mc_function *f; mc_array *r[RESULTS]; };

static mc_array *numbers(mc_dtype d, int rank, const int64_t *dims, double from)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        const double v = from + 0.37 * (double)(i * 7 % 11) - 1.5;
        d == MC_FLOAT32 ? (void)(((float *)mc_array_data(a))[i] = (float)v)
                        : (void)(((double *)mc_array_data(a))[i] = v);
    }
    return a;
}

static bool same_bytes(const mc_array *a, const mc_array *b)
{
    return a && b && a->dtype == b->dtype && mc_dims_equal(a->rank, a->dims, b->rank, b->dims) &&
           memcmp(a->data, b->data, (size_t)mc_array_size(a) * mc_dtypes[a->dtype].size) == 0;
}

static void drop(struct variant *v)
{
    for (int i = 0; i < RESULTS; i++) {
        mc_array_unref(&v->r[i]);
    }
}

static void compile(struct variant *v, const char *text, mc_dtype d, int profile)
{
    char line[600];
    const char *t = mc_dtypes[d].name;
    mc_graph *g = mc_graph_new();
    snprintf(line, sizeof line, "input x %s[?]; input s %s[?, ?]; input m %s[3, ?]; input b %s[?]\n%s", t, t,
             t, t, text);
    CHECK(!mc_is_error(mc_formula(g, line)), "%s: %s", text, mc_error(g));
    v->f = mc_compile(
        g, &(mc_spec){
               .inputs = "x, s, m, b", .outputs = "y, z, w", .profile = profile, .on_unused = "ignore" });
    CHECK(v->f, "%s: %s", text, mc_last_error());
    mc_graph_free(g);
}

/* Calls it with x (n), s (STEPS, n), m (3, n) and b (n). */
static void call(struct variant *v, const char *text, mc_dtype d, int64_t n, double from)
{
    mc_array *in[4] = { numbers(d, 1, &n, from), numbers(d, 2, (int64_t[]){ STEPS, n }, from / 2),
                        numbers(d, 2, (int64_t[]){ 3, n }, from / 3), numbers(d, 1, &n, 0.25) };
    drop(v);
    CHECK(!v->f ||
              mc_call(v->f, MC_IN(in[0], in[1], in[2], in[3]), MC_OUT(&v->r[0], &v->r[1], &v->r[2])) == MC_OK,
          "%s: %s", text, mc_last_error());
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&in[i]);
    }
}

static const char *const bodies[] = {
    /* in place: states that are kept or not, elements, constants, what is collected */
    "y, z, w = scan(steps=9, a from x, v from b: u = v - 0.01 * a; a, v = a + 0.01 * u, u; yield last a, v, a)",
    "y, z, w = scan(e in s, a from x: q = a * 0.5 + e; a = q + b; yield last a, a, q * 2)",
    "y, z, w = scan(e in s[::-1], a from x: a = maximum(a, e) * b; yield last a, a, e + a)",
    "y, z, w = scan(e in s, a from m: a = a * e + b; yield last a, a, a - 1)",
    "y, z, w = scan(e in s, a from transpose(m): a = a * 0.5 + 1; yield last a, a, expand_dims(e, 1) * a)",
    /* numbers that all elements share, of the step and of the states */
    "y, z, w = scan(t in s[:, 0], a from x: a = a + t * b; yield last a, a, a * t)",
    "y, z, w = scan(steps=9, t from b[0], a from x: t, a = t + 1, a * 0.5 + t; yield last a, last t, a)",
    /* states whose elements meet others: by turns */
    "y, z, w = scan(steps=9, a from x: a = a[::-1] * 0.5 + b; yield last a, a, a + 1)",
    "y, z, w = scan(steps=9, a from m, v from x: q = v + a[0]; a, v = a[::-1] * 0.5, q; yield last a, v, a)",
    "y, z, w = scan(steps=9, a from m: a = a[[2, 0, 1]] + b; yield last a, a, sum(a))",
    "y, z, w = scan(steps=9, a from m: a = a[::-1] * 0.5 + b; yield last a, a, a + 1)",
    "y, z, w = scan(e in s, a from m, v from m: a, v = v * 0.5 + a[1], a + e; yield last a, v, last v)",
    "y, z, w = scan(e in s, a from m, v from m: a, v = v * 0.5 + a[1], a + e; yield last a, last v, a + v)",
    /* numbers alone; one step; functions that are accurate below a bound */
    "y, z, w = scan(steps=9, a from x[0], v from b[0]: a, v = a + v, v * 0.5; yield last a, v, a)",
    "y, z, w = scan(steps=1, a from x: a = a * 2; yield last a, a, a + b)",
    "y, z, w = scan(steps=2, a from x: a = a * 2; yield last a, a, a + b)",
    "y, z, w = scan(e in s, a from x: a = sin(a * 300) + e; yield last a, a, a + b)",
    "y, z, w = scan(e in s, a from x: a = tanh(a + e); yield last a, a, exp(a) + b)",
};

TEST(all_steps_at_once_have_the_bits_of_single_steps)
{
    static const int64_t sizes[] = { 1, 7, 64, 333, 5000, 40000 };
    static const double from[] = { 0, 1e30 };
    for (size_t i = 0; i < NELEM(bodies) * 2; i++) {
        const char *text = bodies[i / 2];
        const mc_dtype d = i % 2 ? MC_FLOAT64 : MC_FLOAT32;
        struct variant at_once = { 0 }, single = { 0 };
        compile(&at_once, text, d, 0);
        compile(&single, text, d, 1);
        for (size_t k = 0; k < NELEM(sizes) * NELEM(from); k++) {
            call(&at_once, text, d, sizes[k / 2], from[k % 2]);
            call(&single, text, d, sizes[k / 2], from[k % 2]);
            for (int r = 0; r < RESULTS; r++) {
                CHECK(same_bytes(at_once.r[r], single.r[r]), "%s: %s, n = %lld, from %g: result %d differs",
                      text, mc_dtypes[d].name, (long long)sizes[k / 2], from[k % 2], r);
            }
        }
        drop(&at_once);
        drop(&single);
        mc_function_free(at_once.f);
        mc_function_free(single.f);
    }
}

/* Elements that reach beyond the bound of the compiled sine in the middle of the loop. */
TEST(arguments_beyond_a_bound_in_a_later_step)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g,
               "input x float64[?]; y, z = scan(steps=40, a from x: q = sin(a); a = a * 8; yield q, last a)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y, z" });
    REQUIRE(f, "%s", mc_error(g));
    double x[50];
    for (int i = 0; i < 50; i++) {
        x[i] = 0.1 * i;
    }
    mc_array *in = mc_array_new(MC_FLOAT64, MC_SHAPE(50)), *y = NULL, *z = NULL;
    REQUIRE(in, "%s", mc_last_error());
    memcpy(mc_array_data(in), x, sizeof x);
    REQUIRE(mc_call(f, MC_IN(in), MC_OUT(&y, &z)) == MC_OK, "%s", mc_last_error());
    for (int t = 0; t < 40; t++) {
        for (int i = 0; i < 50; i++) {
            const double want = sin(ldexp(x[i], 3 * t)), have = ((double *)mc_array_data(y))[t * 50 + i];
            CHECK(fabs(have - want) <= 1e-15, "step %d, element %d: %.17g and not %.17g", t, i, have, want);
        }
    }
    for (int i = 0; i < 50; i++) {
        CHECK(((double *)mc_array_data(z))[i] == ldexp(x[i], 120), "the last state of element %d", i);
    }
    mc_array_unref(&in);
    mc_array_unref(&y);
    mc_array_unref(&z);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A constant of the loop that has no element either is not read. */
TEST(all_steps_of_no_elements)
{
    mc_graph *g = mc_graph_new();
    CHECK(!mc_is_error(mc_formula(g, "input q float64[3, ?]; input h float64[1, ?]\n"
                                     "r = scan(a in q[::-1], b from h: b = tanh(b - a); yield last b)\n"
                                     "d = grad(sum(sqr(r)), h)\ne = grad(sum(d), q)")),
          "%s", mc_error(g));
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "q, h", .outputs = "d, e" });
    mc_array *q = mc_array_new(MC_FLOAT64, 2, (int64_t[]){ 3, 0 }),
             *h = mc_array_new(MC_FLOAT64, 2, (int64_t[]){ 1, 0 }), *d = NULL, *e = NULL;
    CHECK(f && mc_call(f, MC_IN(q, h), MC_OUT(&d, &e)) == MC_OK, "%s", mc_last_error());
    CHECK(d && e && mc_array_size(d) == 0 && mc_array_size(e) == 0 && e->dims[0] == 3, "shapes");
    mc_array_unref(&q);
    mc_array_unref(&h);
    mc_array_unref(&d);
    mc_array_unref(&e);
    mc_function_free(f);
    mc_graph_free(g);
}
