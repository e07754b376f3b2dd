/* t_function.c: compiled functions as programs use them: what goes in and comes out, updates, plans, modes,
 * and what is left of a function after something went wrong. */
#include "random_graph.h"

#include <pthread.h>
#include <string.h>

/* ---- a small language for the tests ---- */

static mc_array *ramp(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0, n = a ? mc_array_size(a) : 0; i < n; i++) {
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size, (double)(i % 50));
    }
    return a;
}

static double at(const mc_array *a, int64_t i)
{
    int64_t index[MC_MAX_RANK] = { 0 };
    for (int k = a->rank; k-- > 0;) {
        index[k] = i % a->dims[k];
        i /= a->dims[k];
    }
    return mc_array_get(a, index);
}

/* f, or the graph's mistake as a failed check. */
static mc_function *made(mc_graph *g, mc_function *f)
{
    CHECK(f != NULL, "%s", mc_error(g));
    return f;
}

static bool fine(mc_status s)
{
    return CHECK(s == MC_OK, "%s: %s", mc_status_name(s), mc_last_error());
}

static bool refused(mc_status s, mc_status want, const char *part)
{
    return CHECK(s == want && strstr(mc_last_error(), part), "%s: %s; not %s with '%s'", mc_status_name(s), mc_last_error(),
                 mc_status_name(want), part);
}

static double shared_at(mc_shared *s, int64_t i)
{
    mc_array *a = mc_shared_get(s);
    double v = a ? at(a, i) : NAN;
    mc_array_unref(&a);
    return v;
}

static mc_shared *scalar(mc_graph *g, const char *name, mc_dtype d, double v)
{
    mc_array *a = mc_array_scalar(d, v);
    mc_shared *s = mc_shared_new(g, name, a);
    mc_array_unref(&a);
    return s;
}

/* ---- in and out ---- */

TEST(inputs_by_name_and_by_node)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = mc_input(g, "y", MC_FLOAT32, 0), *z = mc_formula(g, "x * 10 + y");
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "y", .input = &x, .ninput = 1, .outputs = "x + y", .output = &z, .noutput = 1 }));
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(3)), *p = NULL, *q = NULL;
    (void)y;
    if (fine(mc_call(f, MC_IN(2.5, a), MC_OUT(&p, &q)))) {
        CHECK(at(p, 2) == 4.5 && at(q, 2) == 22.5, "%g %g", at(p, 2), at(q, 2));
    }
    mc_array_unref(&p);
    mc_array_unref(&q);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(inputs_have_defaults)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_input(g, "lr", MC_FLOAT32, 0);
    mc_input(g, "v", MC_FLOAT64, 1);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "step", .inputs = "x, lr=0.5, v", .outputs = "x * lr + sum(v)" }));
    double y = 0;
    refused(mc_call(f, MC_IN(3.0), MC_OUT(&y)), MC_EARG, "input 2 ('v') is missing");
    mc_array *v = ramp(MC_FLOAT64, MC_SHAPE(3));
    fine(mc_function_set(f, "v", mc_arg_array(v)));
    mc_array_set(v, (int64_t[]){ 0 }, 100); /* it was copied */
    CHECK(mc_call(f, MC_IN(3.0), MC_OUT(&y)) == MC_OK && y == 4.5, "%g %s", y, mc_last_error());
    CHECK(mc_call(f, MC_IN(3.0, 2.0), MC_OUT(&y)) == MC_OK && y == 9, "%g", y);
    fine(mc_function_set(f, "lr", mc_arg_real(10)));
    CHECK(mc_call(f, MC_IN(3.0), MC_OUT(&y)) == MC_OK && y == 33, "%g", y);
    mc_arg some[3] = { mc_arg_real(1), mc_arg_none(NULL), mc_arg_array(v) };
    CHECK(mc_call_args(f, 3, some, MC_OUT(&y)) == MC_OK && y == 113, "%g", y);
    refused(mc_function_set(f, "rate", mc_arg_real(1)), MC_EARG, "rate");
    refused(mc_function_set(f, "v", mc_arg_real(1)), MC_ESHAPE, "'v'");
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(numbers_go_in_and_out)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "i", MC_INT32, 0);
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "i, x", .outputs = "i * 2, x + i, i > 3, x * 2" }));
    int32_t a = 0;
    float b = 0;
    int64_t c = 7;
    double d = 0;
    fine(mc_call(f, MC_IN(4, 0.5f), MC_OUT(&a, &b, &c, &d)));
    CHECK(a == 8 && b == 4.5f && c == 1 && d == 1, "%d %g %lld %g", a, (double)b, (long long)c, d);
    fine(mc_call(f, MC_IN(4.0, 1), MC_OUT(NULL, &b)));
    CHECK(b == 5, "%g", (double)b);
    refused(mc_call(f, MC_IN(4.5, 1), MC_OUT(&a)), MC_ETYPE, "'i'");
    refused(mc_call(f, MC_IN(4, 1, 5), MC_OUT(&a)), MC_EARG, "3 inputs are given, it has 2");
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(outputs_go_where_they_are_wanted)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = "x.T + 1, borrow(tanh(x)), x" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(3, 4)), *y = NULL, *t = NULL, *same = NULL;
    fine(mc_call(f, MC_IN(x), MC_OUT(&y, &t, &same)));
    CHECK(at(y, 1) == 5 && fabs(at(t, 1) - tanh(1)) < 1e-6, "%g %g", at(y, 1), at(t, 1));
    CHECK(same && same->data != x->data && at(same, 11) == 11, "an output that is an input is an array of its own");
    void *before = mc_array_data(y);
    mc_array_set(x, (int64_t[]){ 0, 1 }, 7);
    fine(mc_call(f, MC_IN(x), MC_OUT(&y)));
    CHECK(mc_array_data(y) == before && at(y, 3) == 8, "the array given is the array used: %g", at(y, 3));
    mc_array *turned = mc_array_transpose(same, NULL); /* not contiguous */
    fine(mc_call(f, MC_IN(x), MC_OUT(&turned)));
    CHECK(at(turned, 3) == 8 && at(same, 1) == 8, "%g %g", at(turned, 3), at(same, 1));
    mc_array *wide = mc_array_new(MC_FLOAT64, MC_SHAPE(4, 3)), *narrow = mc_array_new(MC_FLOAT16, MC_SHAPE(4, 3)), *wrong = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 4));
    fine(mc_call(f, MC_IN(x), MC_OUT(&wide)));
    CHECK(at(wide, 3) == 8, "%g", at(wide, 3));
    refused(mc_call(f, MC_IN(x), MC_OUT(&narrow)), MC_ETYPE, "output 0");
    refused(mc_call(f, MC_IN(x), MC_OUT(&wrong)), MC_ESHAPE, "output 0 has shape (4, 3)");
    double number = 0;
    refused(mc_call(f, MC_IN(x), MC_OUT(&number)), MC_ESHAPE, "12 elements");
    mc_array_unref(&y);
    mc_array_unref(&t);
    mc_array_unref(&same);
    mc_array_unref(&turned);
    mc_array_unref(&wide);
    mc_array_unref(&narrow);
    mc_array_unref(&wrong);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(outputs_may_overlap_inputs)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + x.T + sum(x, axis=0), x * 2" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5, 5)), *copy = mc_array_copy(x), *want[2] = { NULL, NULL }, *two = NULL;
    fine(mc_call(f, MC_IN(copy), MC_OUT(&want[0], &want[1])));
    mc_array *into = mc_array_ref(x);
    fine(mc_call(f, MC_IN(x), MC_OUT(&into, &two)));
    CHECK(mc_array_same_bits(into, want[0]) && mc_array_same_bits(two, want[1]), "written over its own input");
    mc_array *both = mc_array_ref(copy), *again = mc_array_ref(copy); /* one array for two results: the last one is in it */
    fine(mc_call(f, MC_IN(copy), MC_OUT(&both, &again)));
    CHECK(mc_array_same_bits(copy, want[1]), "two results in one array");
    mc_array_unref(&both);
    mc_array_unref(&again);
    mc_array_unref(&into);
    mc_array_unref(&two);
    mc_array_unref(&want[0]);
    mc_array_unref(&want[1]);
    mc_array_unref(&copy);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(outputs_of_shared_variables_are_the_old_values)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(4));
    mc_shared *W = mc_shared_new(g, "W", v);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "W, W[::-1], W * 2", .updates = "W = W + 1" }));
    mc_array *a = NULL, *b = NULL, *c = NULL;
    fine(mc_call(f, MC_NONE, MC_OUT(&a, &b, &c)));
    CHECK(at(a, 3) == 3 && at(b, 0) == 3 && at(c, 3) == 6 && shared_at(W, 3) == 4, "%g %g %g %g", at(a, 3), at(b, 0), at(c, 3), shared_at(W, 3));
    mc_array *inside = mc_shared_borrow(W), *into = mc_array_ref(inside); /* the variable's own memory as an output */
    fine(mc_call(f, MC_NONE, MC_OUT(NULL, NULL, &into)));
    mc_array_unref(&into);
    mc_array_unref(&inside);
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_array_unref(&c);
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- updates ---- */

TEST(updates_are_made_from_old_values)
{
    mc_graph *g = mc_graph_new();
    mc_shared *a = scalar(g, "a", MC_FLOAT32, 1), *b = scalar(g, "b", MC_FLOAT32, 2), *c = scalar(g, "c", MC_FLOAT64, 3);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "a + b", .updates = "a = b; b = a; c = c + a" }));
    double y = 0;
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_NONE, MC_OUT(&y)));
        CHECK(y == 3, "%g", y);
    }
    CHECK(shared_at(a, 0) == 2 && shared_at(b, 0) == 1 && shared_at(c, 0) == 3 + 1 + 2 + 1, "%g %g %g", shared_at(a, 0), shared_at(b, 0), shared_at(c, 0));
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(updates_of_arrays_swap_and_turn)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(6, 6)), *turned = mc_array_transpose(v, NULL), *want = mc_array_copy(turned);
    mc_shared *W = mc_shared_new(g, "W", v), *V = mc_shared_new(g, "V", want);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "W = V; V = W" }));
    fine(mc_call(f, MC_NONE, MC_NONE));
    mc_array *w = mc_shared_get(W), *u = mc_shared_get(V);
    CHECK(mc_array_same_bits(w, want) && mc_array_same_bits(u, v), "swapped");
    mc_array_unref(&w);
    mc_array_unref(&u);
    mc_function *t = made(g, mc_compile(g, &(mc_spec){ .updates = "W = W.T; V = V[::-1] + W" }));
    fine(mc_call(t, MC_NONE, MC_NONE));
    w = mc_shared_get(W);
    u = mc_shared_get(V);
    CHECK(mc_array_same_bits(w, v), "turned in place");
    CHECK(at(u, 0) == 30 + 0 && at(u, 35) == 5 + 35, "%g %g", at(u, 0), at(u, 35));
    mc_array_unref(&w);
    mc_array_unref(&u);
    mc_array_unref(&v);
    mc_array_unref(&turned);
    mc_array_unref(&want);
    mc_function_free(f);
    mc_function_free(t);
    mc_graph_free(g);
}

TEST(two_updates_with_one_value)
{
    mc_graph *g = mc_graph_new();
    mc_shared *a = scalar(g, "a", MC_FLOAT32, 1), *b = scalar(g, "b", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "a + b", .updates = "a = a + b; b = a + b" }));
    float y = 0;
    fine(mc_call(f, MC_NONE, MC_OUT(&y)));
    fine(mc_call(f, MC_NONE, MC_OUT(&y)));
    CHECK(y == 6 && shared_at(a, 0) == 6 && shared_at(b, 0) == 6, "%g %g %g", (double)y, shared_at(a, 0), shared_at(b, 0));
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(updates_may_change_sizes_that_are_not_promised)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(1, 3));
    mc_shared *W = mc_shared_sized(g, "W", v, (int64_t[]){ -1, 3 });
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "grow", .inputs = "x", .outputs = "sum(W)", .updates = "W = join([W, x], axis=0)" }));
    double y = 0;
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_IN(v), MC_OUT(&y)));
        CHECK(y == 3 * (i + 1), "%g", y);
    }
    mc_array *now = mc_shared_get(W);
    CHECK(now->dims[0] == 4 && now->dims[1] == 3, "(%lld, %lld)", (long long)now->dims[0], (long long)now->dims[1]);
    mc_array_unref(&now);
    mc_array *five = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 3)), *wrong = mc_array_new(MC_FLOAT32, MC_SHAPE(5, 4));
    fine(mc_shared_set(W, five));
    refused(mc_shared_set(W, wrong), MC_ESHAPE, "W");
    CHECK(mc_call(f, MC_IN(v), MC_OUT(&y)) == MC_OK && y == 0, "%g", y);
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .name = "h", .inputs = "x", .updates = "W = x" }));
    refused(mc_call(h, MC_IN(wrong), MC_NONE), MC_ESHAPE, "the update of W has size 4 on axis 1, not 3");
    now = mc_shared_get(W);
    CHECK(now->dims[0] == 6, "%lld", (long long)now->dims[0]);
    mc_array_unref(&now);
    mc_array_unref(&v);
    mc_array_unref(&five);
    mc_array_unref(&wrong);
    mc_function_free(f);
    mc_function_free(h);
    mc_graph_free(g);
}

/* A later step fails: nothing has changed. */
TEST(updates_are_all_or_none)
{
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t m = 0; m < NELEM(modes); m++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "i", MC_INT64, 1);
        mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(4)), *out = mc_array_new(MC_FLOAT32, MC_SHAPE(4));
        mc_shared *a = mc_shared_new(g, "a", v), *b = mc_shared_new(g, "b", v), *n = scalar(g, "n", MC_INT32, 0);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .mode = modes[m], .inputs = "i", .outputs = "a * 2, sum(b[i])",
                                                           .updates = "a = a + 1; b = b * 2 + sum(a[i]); n = n + 1" }));
        mc_array *good = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 3, -4 }), *bad = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 3, 4 });
        double s = 0, number = 0;
        fine(mc_call(f, MC_IN(good), MC_OUT(&out, &s)));
        CHECK(s == 3 && shared_at(a, 3) == 4 && shared_at(b, 1) == 5 && shared_at(n, 0) == 1, "%s: %g %g %g", modes[m], s, shared_at(a, 3), shared_at(b, 1));
        refused(mc_call(f, MC_IN(bad), MC_OUT(&out, &s)), MC_EINDEX, "4");
        CHECK(shared_at(a, 3) == 4 && shared_at(b, 1) == 5 && shared_at(n, 0) == 1, "%s: %g %g %g", modes[m], shared_at(a, 3), shared_at(b, 1), shared_at(n, 0));
        refused(mc_call(f, MC_IN(good), MC_OUT(&number)), MC_ESHAPE, "4 elements"); /* seen when results are handed over */
        CHECK(shared_at(n, 0) == 1, "%g", shared_at(n, 0));
        fine(mc_call(f, MC_IN(good), MC_OUT(&out, &s)));
        CHECK(shared_at(n, 0) == 2, "%g", shared_at(n, 0));
        mc_array_unref(&good);
        mc_array_unref(&bad);
        mc_array_unref(&out);
        mc_array_unref(&v);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(default_updates_are_made_unless_told_otherwise)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = scalar(g, "n", MC_INT64, 0), *m = scalar(g, "m", MC_INT64, 10);
    fine(mc_shared_default_update(g, n, mc_formula(g, "n + m")));
    fine(mc_shared_default_update(g, m, mc_formula(g, "m + 1")));
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "n" }));
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .outputs = "n", .no_default_updates = 1 }));
    mc_function *own = made(g, mc_compile(g, &(mc_spec){ .outputs = "n", .updates = "n = n * 0" }));
    int64_t y = 0;
    fine(mc_call(f, MC_NONE, MC_OUT(&y)));
    CHECK(y == 0 && shared_at(n, 0) == 10 && shared_at(m, 0) == 11, "%lld %g %g", (long long)y, shared_at(n, 0), shared_at(m, 0));
    fine(mc_call(h, MC_NONE, MC_OUT(&y)));
    CHECK(y == 10 && shared_at(n, 0) == 10, "%lld", (long long)y);
    fine(mc_call(own, MC_NONE, MC_OUT(&y)));
    CHECK(y == 10 && shared_at(n, 0) == 0 && shared_at(m, 0) == 11, "%lld %g", (long long)y, shared_at(n, 0));
    mc_function_free(f);
    mc_function_free(h);
    mc_function_free(own);
    mc_graph_free(g);
}

TEST(givens_stand_in_for_inputs)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT64, MC_SHAPE(20, 3));
    mc_shared_new(g, "data", v);
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "i", MC_INT32, 0);
    mc_formula(g, "y = sum(x * x)");
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "i", .outputs = "y, x", .givens = "x = data[i*4:(i+1)*4]" }));
    for (int i = 0; i < 5; i++) {
        double y = 0, want = 0;
        mc_array *x = NULL;
        fine(mc_call(f, MC_IN(i), MC_OUT(&y, &x)));
        for (int k = 12 * i; k < 12 * i + 12; k++) {
            want += at(v, k) * at(v, k);
        }
        CHECK(y == want && x->dims[0] == 4 && x->dtype == MC_FLOAT32 && at(x, 0) == at(v, 12 * i), "%g, not %g", y, want);
        mc_array_unref(&x);
    }
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(shared_variables_set_between_calls)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(3)), *w = mc_array_new(MC_FLOAT32, MC_SHAPE(3)), *long_ = ramp(MC_FLOAT32, MC_SHAPE(7));
    mc_shared *W = mc_shared_sized(g, "W", v, NULL);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "sum(W * W), W.shape[0]" }));
    double y = 0;
    int64_t n = 0;
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 5 && n == 3, "%g", y);
    fine(mc_shared_set(W, w));
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 0 && n == 3, "%g", y);
    fine(mc_shared_set(W, long_));
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 91 && n == 7, "%g", y);
    mc_array *inside = mc_shared_borrow(W);
    mc_array_set(inside, (int64_t[]){ 0 }, 10);
    CHECK(mc_call(f, MC_NONE, MC_OUT(&y, &n)) == MC_OK && y == 191, "%g", y);
    mc_array_unref(&inside);
    mc_array_unref(&v);
    mc_array_unref(&w);
    mc_array_unref(&long_);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- more than one function, more than one thread ---- */

static void *call_often(void *f)
{
    for (int i = 0; i < 500; i++) {
        if (mc_call((mc_function *)f, MC_NONE, MC_NONE) < 0) {
            return "failed";
        }
    }
    return NULL;
}

TEST(two_threads_share_a_variable)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = scalar(g, "n", MC_INT64, 0), *m = scalar(g, "m", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "n = n + 1; m = m - n" }));
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .updates = "m = m + n; n = n + 2" }));
    mc_graph_free(g); /* the functions keep what they need */
    n = mc_shared_ref(f->shared[0]->name[0] == 'n' ? f->shared[0] : f->shared[1]);
    pthread_t t;
    pthread_create(&t, NULL, call_often, f);
    void *mine = call_often(h), *his = NULL;
    pthread_join(t, &his);
    CHECK(!mine && !his && shared_at(n, 0) == 1500, "%g", shared_at(n, 0));
    (void)m;
    mc_shared_unref(&n);
    mc_function_free(f);
    mc_function_free(h);
}

TEST(one_function_from_two_threads)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = mc_shared_ref(scalar(g, "n", MC_INT64, 0));
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "n = n + 1" }));
    mc_graph_free(g);
    pthread_t t;
    pthread_create(&t, NULL, call_often, f);
    call_often(f);
    pthread_join(t, NULL);
    CHECK(shared_at(n, 0) == 1000, "%g", shared_at(n, 0));
    mc_shared_unref(&n);
    mc_function_free(f);
}

TEST(copies_share_kernels_but_not_memory)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_input(g, "k", MC_FLOAT32, 0);
    mc_shared *n = scalar(g, "n", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x, k=2", .outputs = "borrow(x * k + n)", .updates = "n = n + 1" }));
    mc_function *looks = mc_function_copy(f, 0), *works = mc_function_copy(f, 1);
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5)), *y = NULL, *z = NULL;
    fine(mc_call(looks, MC_IN(x), MC_OUT(&y)));
    CHECK(shared_at(n, 0) == 0 && at(y, 4) == 8, "%g", at(y, 4));
    fine(mc_call(works, MC_IN(x), MC_OUT(&z)));
    CHECK(shared_at(n, 0) == 1 && at(y, 4) == 8 && mc_array_data(y) != mc_array_data(z), "%g", shared_at(n, 0));
    fine(mc_function_set(works, "k", mc_arg_real(5)));
    mc_array_unref(&y);
    mc_array_unref(&z);
    fine(mc_call(looks, MC_IN(x), MC_OUT(&y)));
    CHECK(at(y, 4) == 9, "%g", at(y, 4));
    mc_function_free(f);
    CHECK(strcmp(mc_function_source(looks), mc_function_source(works)) == 0, "one source");
    fine(mc_call(works, MC_IN(x), MC_OUT(&z)));
    CHECK(at(z, 4) == 21, "%g", at(z, 4));
    mc_array_unref(&y);
    mc_array_unref(&z);
    mc_array_unref(&x);
    mc_function_free(looks);
    mc_function_free(works);
    mc_graph_free(g);
}

/* ---- plans ---- */

TEST(shapes_that_come_back_find_their_plan)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(dot(x, x.T))" }));
    mc_array *x[3] = { ramp(MC_FLOAT32, MC_SHAPE(3, 4)), ramp(MC_FLOAT32, MC_SHAPE(5, 2)), ramp(MC_FLOAT32, MC_SHAPE(4, 3)) }, *y = NULL;
    x[2] = (mc_array_unref(&x[2]), mc_array_transpose(x[0], NULL));
    for (int i = 0; i < 30; i++) {
        fine(mc_call(f, MC_IN(x[i % 3]), MC_OUT(&y)));
        mc_array_unref(&y);
    }
    CHECK(f->planned == 3 && f->nplans == 3, "planned %lld times, %d kept", (long long)f->planned, f->nplans);
    for (int i = 0; i < 200; i++) { /* more shapes than plans are kept */
        mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(1 + i, 2));
        fine(mc_call(f, MC_IN(a), MC_OUT(&y)));
        mc_array_unref(&y);
        mc_array_unref(&a);
    }
    CHECK(f->nplans <= 64, "%d plans are kept", f->nplans);
    fine(mc_call(f, MC_IN(x[0]), MC_OUT(&y)));
    CHECK(fabs(at(y, 0) + at(y, 1) + at(y, 2) - 1) < 1e-6, "%g", at(y, 0));
    mc_array_unref(&y);
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&x[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(sizes_that_only_running_tells)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_shared *n = scalar(g, "n", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x[x > 2] * 2, nonzero(x), sum(x[x > 2]), x[x > 2].shape[0]",
                                                       .updates = "n = n + x[x > 2].shape[0]" }));
    for (int k = 1; k < 8; k++) {
        mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(k)), *y = NULL, *z = NULL;
        double s = 0, want = 0;
        int64_t count = -1;
        fine(mc_call(f, MC_IN(x), MC_OUT(&y, &z, &s, &count)));
        for (int i = 3; i < k; i++) {
            want += i;
        }
        CHECK(y && y->dims[0] == MC_MAX(k - 3, 0) && z->dims[0] == k - 1 && s == want && count == MC_MAX(k - 3, 0), "of %d: %lld, %g, %lld", k,
              y ? (long long)y->dims[0] : -1, s, (long long)count);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&z);
    }
    CHECK(shared_at(n, 0) == 10, "%g", shared_at(n, 0));
    mc_function_free(f);
    mc_graph_free(g);
}

/* Sizes from inputs' values, from variables, from masks, from what was computed: by plan, or while running. */
TEST(sizes_from_anywhere)
{
    static const char *const formulas[] = {
        "x[i[1]:]", "x[i[0]:i[1]] * 2", "arange(i[1])", "x[sum(i):]", "x[W[1]:]", "arange(W[1])", "zeros([W[0], k])", "x[max(W):, k]",
        "reshape(x, [W[1] * k, -1])", "x[i[1]]", "x[:, W[1] - 1]", "arange(sum(cast(v, 'int64')))", "x[x[:, 0] > 3]", "x[x > 3][k:]",
        "sum(x[nonzero(x[:, 0])], axis=0)", "x[nonzero(v)[0]:]", "zeros(shape(x[x > 3])) + 1", "x[shape(x[x > 3])[0] - 5:]",
        "tanh(x)[i[1]:][::-1] + 1", "eye(W[1])", "join([x[x > 3], v], axis=0)", "softmax(x[x[:, 0] > 3])", "dot(x[x[:, 0] > 3], x.T)",
        "tanh(dot(x[x[:, 0] > 3], x.T) + 1)", "cumsum(v)[W[1]:]", "x[k:][k:]", "x[:k, k - 1]", "arange(k, k * 3, k)",
        "inc_subtensor(x[i[1]:], 1)", "set_subtensor(x[W[1]], 5)", "grad(sum(x[i[1]:] ** 2), x)", "grad(sum(x[x > 3] ** 2), x)",
        "grad(sum(x[W] ** 2), x)", "zeros_like(x[W[1]:])", "tile(x, [2, 2])[W[1]:]", "x[-k:]", "x[::-k]", "x[W][i]",
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };
    for (size_t r = 0; r < NELEM(formulas) * 2; r++) {
        struct agree a = { .g = mc_graph_new() };
        mc_array *w = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 1, 2 });
        mc_shared_sized(a.g, "W", w, NULL);
        agree_input(&a, "x", ramp(MC_FLOAT32, MC_SHAPE(5, 3)), 0);
        agree_input(&a, "i", mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 1, 3 }), 0);
        agree_input(&a, "k", mc_array_scalar(MC_INT64, 2), 0);
        agree_input(&a, "v", mc_array_from(MC_FLOAT32, MC_SHAPE(4), (float[]){ 0, 3, 0, 1 }), 0);
        agree_output(&a, formulas[r / 2]);
        const char *wrong = agree_in(&a, modes[r % 2], 2);
        CHECK(!wrong, "%s: %s", formulas[r / 2], wrong);
        mc_array_unref(&w);
        agree_free(&a);
    }
}

TEST(many_slices_of_many_kernels)
{
    struct agree a = { 0 };
    agree_input(&a, "x", ramp(MC_FLOAT32, MC_SHAPE(6)), 0);
    for (int i = 0; i < 80; i++) {
        char text[80];
        snprintf(text, sizeof text, "split(tanh(x + %d), [%d, %d, %d])[%d]", i, i % 3, 3 - i % 3, 3, i % 3);
        CHECK(!mc_is_error(agree_output(&a, text)), "%s", mc_error(a.g));
    }
    const char *wrong = agree_in(&a, "FAST_COMPILE", 1);
    CHECK(!wrong, "%s", wrong);
    agree_free(&a);
}

TEST(slices_and_ranges_with_bounds_from_inputs)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "i", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x, i", .outputs = "x[i*3:(i+1)*3], sum(x[i:] + 1), arange(i), x[i], x[::i-3, 1], sum(arange(i * 2) * 2)" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(8, 2));
    for (int i = 0; i < 3; i++) {
        mc_array *a = NULL, *r = NULL, *row = NULL, *col = NULL;
        double s = 0, want = 0, twice = 0;
        fine(mc_call(f, MC_IN(x, i), MC_OUT(&a, &s, &r, &row, &col, &twice)));
        for (int k = 2 * i; k < 16; k++) {
            want += k + 1;
        }
        CHECK(a && a->dims[0] == MC_MIN(3, 8 - 3 * i) && at(a, 0) == 6 * i && s == want && r->dims[0] == i && at(row, 1) == 2 * i + 1 &&
                  at(col, 0) == 15 && col->dims[0] == (7 + 3 - i) / (3 - i) && twice == 2 * i * (2 * i - 1),
              "%d: %g %g %g", i, s, want, twice);
        mc_array_unref(&a);
        mc_array_unref(&r);
        mc_array_unref(&row);
        mc_array_unref(&col);
    }
    refused(mc_call(f, MC_IN(x, 9), MC_NONE), MC_EINDEX, "9");
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- modes ---- */

TEST(nanguard_names_the_step)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_shared *n = scalar(g, "n", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .mode = "NANGUARD", .outputs = "sum(log(x))", .updates = "n = n + 1" }));
    mc_array *good = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, 2 }), *bad = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, -2 }),
             *zero = mc_array_new(MC_FLOAT32, MC_SHAPE(2));
    double y = 0;
    CHECK(mc_call(f, MC_IN(good), MC_OUT(&y)) == MC_OK && fabs(y - log(2)) < 1e-6, "%g", y);
    refused(mc_call(f, MC_IN(bad), MC_OUT(&y)), MC_ECHECK, "log(x)");
    refused(mc_call(f, MC_IN(zero), MC_OUT(&y)), MC_ECHECK, "infinity");
    CHECK(shared_at(n, 0) == 1, "%g", shared_at(n, 0));
    mc_array_unref(&good);
    mc_array_unref(&bad);
    mc_array_unref(&zero);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(fast_compile_needs_no_compiler)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    fine(mc_flag_set("cc", "/nonexistent"));
    static const char *const modes[] = { "FAST_COMPILE", "FAST_RUN", "DEBUG", "NANGUARD" };
    for (size_t m = 0; m < NELEM(modes); m++) {
        struct agree a = { 0 };
        agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(4, 6), -2, 2), 0);
        agree_output(&a, "softmax(dot(x, x.T) + 1)");
        agree_output(&a, "sum(tanh(x)[::-1], axis=0) + arange(6)");
        agree_output(&a, "tanh(dot(x.T, x) * 2)");
        const char *wrong = agree_in(&a, modes[m], 2);
        CHECK(!wrong, "%s", wrong);
        agree_free(&a);
    }
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "exp(x)" }));
    CHECK(strstr(mc_function_step(f, 0).reason, "compiler"), "'%s'", mc_function_step(f, 0).reason);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(unused_inputs_are_refused_or_not)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_input(g, "y", MC_FLOAT32, 0);
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = "x + 1" }) && strstr(mc_error(g), "'y'"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    static const char *const words[] = { "warn", "ignore" };
    for (int i = 0; i < 2; i++) {
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "y, x", .outputs = "x + 1", .on_unused = words[i] }));
        double v = 0;
        CHECK(mc_call(f, MC_IN(5, 2), MC_OUT(&v)) == MC_OK && v == 3, "%g", v);
        mc_function_free(f);
    }
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1", .on_unused = "shout" }) && strstr(mc_error(g), "shout"), "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(memory_is_given_back_after_calls_if_asked)
{
    fine(mc_flag_set("allow_gc", "True"));
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "borrow(dot(x, x) + 1), sort(tanh(x), axis=0) * 2" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5, 5)), *y = NULL, *z = NULL;
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_IN(x), MC_OUT(&y, &z)));
        CHECK(at(y, 0) == 151, "%g", at(y, 0)); /* a borrowed result stays until the next call */
        mc_array_unref(&y);
        mc_array_unref(&z);
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- large graphs ---- */

static double chain(int n)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = x, *one = mc_number(g, MC_FLOAT32, 1), *half = mc_number(g, MC_FLOAT32, 0.5);
    for (int i = 0; i < n; i++) {
        y = i % 2 ? mc_mul(mc_add(y, x), half) : mc_tanh(mc_add(y, one));
    }
    double start = mc_now();
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .output = &y, .noutput = 1, .mode = "FAST_COMPILE" }));
    double took = mc_now() - start;
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(3)), *r = NULL;
    if (fine(mc_call(f, MC_IN(a), MC_OUT(&r)))) {
        CHECK(isfinite(at(r, 2)) && at(r, 2) != 0, "%g", at(r, 2));
    }
    mc_array_unref(&a);
    mc_array_unref(&r);
    mc_function_free(f);
    mc_graph_free(g);
    return took;
}

TEST(a_chain_of_100000_nodes_compiles_in_linear_time)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    double few = chain(20000), many = chain(80000);
    CHECK(many < 10 * few + 0.2, "20,000 steps took %.2f s, 80,000 %.2f s", few, many);
}

TEST_FULL(a_long_chain_becomes_kernels)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = x;
    for (int i = 0; i < 3000; i++) {
        y = mc_add(mc_tanh(y), x);
    }
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(9)), *want = NULL, *have = NULL;
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .output = &y, .noutput = 1 }));
    fine(mc_eval(1, &x, &a, 1, &y, &want));
    if (fine(mc_call(f, MC_IN(a), MC_OUT(&have)))) {
        CHECK(mc_array_differs(have, want, 1e-4, 1e-4) < 0, "%g", at(have, 3));
    }
    CHECK(mc_function_nsteps(f) < 200, "%d steps", mc_function_nsteps(f));
    mc_array_unref(&a);
    mc_array_unref(&want);
    mc_array_unref(&have);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(a_sum_of_200_operands)
{
    mc_graph *g = mc_graph_new();
    mc_node *in[200], *y = NULL;
    mc_arg args[200];
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(10)), *r = NULL;
    for (int i = 0; i < 200; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        in[i] = mc_input(g, name, MC_FLOAT32, 1);
        y = y ? mc_add(y, in[i]) : in[i];
        args[i] = mc_arg_array(a);
    }
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .input = in, .ninput = 200, .output = &y, .noutput = 1 }));
    mc_arg out = mc_arg_slot(&r);
    fine(mc_call_args(f, 200, args, 1, &out));
    CHECK(r && at(r, 9) == 1800, "%g", r ? at(r, 9) : 0);
    mc_array_unref(&r);
    mc_function_free(f);
    y = mc_op(g, "join", 200, in, "axis=0"); /* more operands than any fixed list holds */
    f = made(g, mc_compile(g, &(mc_spec){ .input = in, .ninput = 200, .outputs = "0 * 1", .output = &y, .noutput = 1 }));
    out = mc_arg_slot(&r);
    fine(mc_call_args(f, 200, args, 2, (mc_arg[]){ mc_arg_none(NULL), out }));
    CHECK(r && r->dims[0] == 2000 && at(r, 1999) == 9, "%lld", r ? (long long)r->dims[0] : 0);
    mc_array_unref(&r);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- graphs and functions live apart ---- */

TEST(functions_outlive_their_graph)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(3, 3)), *y = NULL;
    mc_shared_new(g, "W", v);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "dot(x, W) + 1", .updates = "W = W * 2" }));
    mc_function *d = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "tanh(dot(x, W))", .mode = "DEBUG" }));
    mc_graph_free(g);
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_IN(v), MC_OUT(&y)));
        CHECK(at(y, 0) == 15 * (1 << i) + 1, "%g", at(y, 0));
        mc_array_unref(&y);
        fine(mc_call(d, MC_IN(v), MC_OUT(&y)));
        mc_array_unref(&y);
    }
    mc_array_unref(&v);
    mc_function_free(f);
    mc_function_free(d);
}

TEST(one_graph_makes_many_functions)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_formula(g, "y = tanh(x)");
    double v = 0;
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(2));
    for (int i = 0; i < 20; i++) {
        char text[40];
        snprintf(text, sizeof text, "sum(y) + %d", i);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = text, .mode = i % 2 ? "FAST_COMPILE" : NULL }));
        CHECK(mc_call(f, MC_IN(a), MC_OUT(&v)) == MC_OK && fabs(v - i - tanh(1)) < 1e-6, "%g", v);
        mc_function_free(f);
    }
    mc_array_unref(&a);
    mc_graph_free(g);
}

/* ---- memory runs out ---- */

TEST(every_failed_allocation_of_a_training_step_is_one_clean_error)
{
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(4, 3)), *t = mc_array_from(MC_INT32, MC_SHAPE(4), (int32_t[]){ 0, 1, 1, 0 });
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_function *f = NULL;
        double cost = 0;
        if (g) {
            mc_input(g, "x", MC_FLOAT32, 2);
            mc_input(g, "t", MC_INT32, 1);
            mc_shared_zeros(g, "W", MC_FLOAT32, MC_SHAPE(3, 2));
            mc_formula(g, "p = softmax(dot(x, W))");
            mc_formula(g, "cost = mean(crossentropy_1hot(p, t))");
            f = mc_compile(g, &(mc_spec){ .inputs = "x, t", .outputs = "cost", .updates = "W = W - 0.1 * grad(cost, W)" });
        }
        CHECK(f || ALLOC_FAILED, "no function, yet memory: %s", g ? mc_error(g) : mc_last_error());
        CHECK(f || !g || *mc_error(g), "no function and no word");
        for (int turn = 0, failures = 0; f && turn < 3; turn++) { /* a call that found no memory may be made again */
            mc_status s = mc_call(f, MC_IN(x, t), MC_OUT(&cost));
            CHECK(s == MC_OK || (ALLOC_FAILED && failures++ == 0 && s == MC_EMEMORY), "call %d: %s: %s", turn, mc_status_name(s), mc_last_error());
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
    mc_array_unref(&t);
}

TEST(every_failed_allocation_of_a_dynamic_call_is_one_clean_error)
{
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(9));
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_array *y = NULL;
        mc_function *f = NULL;
        if (g) {
            mc_input(g, "x", MC_FLOAT32, 1);
            f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "tanh(x[x > 3]) * 2, sum(sort(x))", .mode = "FAST_COMPILE" });
        }
        CHECK(f || ALLOC_FAILED, "no function, yet memory: %s", g ? mc_error(g) : mc_last_error());
        mc_status s = f ? mc_call(f, MC_IN(x), MC_OUT(&y)) : MC_EMEMORY;
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        mc_function *copy = f ? mc_function_copy(f, 1) : NULL;
        CHECK(copy || ALLOC_FAILED, "no copy, yet memory");
        mc_array_unref(&y);
        mc_function_free(copy);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}
