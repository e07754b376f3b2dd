/* t_gpu_calls.c: what a call on a GPU asks of the driver: one launch of what was recorded, no wait where
 * nothing comes home, no memory where the last call's will do; and transfers, which cancel.
 *
 * Invariant: functions of the driver are counted by others put in their place in mc_nv, which pass everything
 * on. */
#include "cuda_test.h"
#include "exec/backend.h"
#include "sample.h"

#include <math.h>
#include <string.h>

static struct { int waits, launches, replays, allocations, copies, uploads, main_waits, after_mark; } asked;
static struct mc_nv real;

static int wait_for_stream(void *stream)
{
    asked.waits++;
    asked.main_waits += stream == mc_cuda_running(0)->stream;
    return real.cuStreamSynchronize(stream);
}

static int wait_for_event(void *event)
{
    asked.waits++;
    return real.cuEventSynchronize(event);
}


static int launch(const void *config, void *kernel, void **args, void **extra)
{
    asked.launches++;
    asked.after_mark++;
    return real.cuLaunchKernelEx(config, kernel, args, extra);
}

static int mark(void *event, void *stream, unsigned flags)
{
    asked.after_mark = 0;
    return real.cuEventRecordWithFlags(event, stream, flags);
}

static int replay(void *graph, void *stream)
{
    asked.replays++;
    return real.cuGraphLaunch(graph, stream);
}

static int allocate(unsigned long long *p, size_t n, void *pool, void *stream)
{
    asked.allocations++;
    return real.cuMemAllocFromPoolAsync(p, n, pool, stream);
}

static int copy(unsigned long long to, unsigned long long from, size_t n, void *stream)
{
    asked.copies++;
    return real.cuMemcpyDtoDAsync_v2(to, from, n, stream);
}

static int upload(unsigned long long to, const void *from, size_t n, void *stream)
{
    asked.uploads++;
    return real.cuMemcpyHtoDAsync_v2(to, from, n, stream);
}

static void count_what_is_asked(void)
{
    real = mc_nv;
    mc_nv.cuStreamSynchronize = wait_for_stream;
    mc_nv.cuEventSynchronize = wait_for_event;
    mc_nv.cuLaunchKernelEx = launch;
    mc_nv.cuGraphLaunch = replay;
    mc_nv.cuEventRecordWithFlags = mark;
    mc_nv.cuMemAllocFromPoolAsync = allocate;
    mc_nv.cuMemcpyDtoDAsync_v2 = copy;
    mc_nv.cuMemcpyHtoDAsync_v2 = upload;
}

static mc_function *compiled(mc_graph *g, const char *outputs, const char *updates)
{
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = outputs, .updates = updates });
    CHECK(f, "%s", mc_error(g));
    return f;
}

TEST(gpu_calls_ask_for_no_more_than_they_need)
{
    static const struct { const char *outputs, *updates; bool fresh; int waits; } rows[] = {
        { "borrow(gpu_from_host(softmax(x)))", NULL,                 false, 0 },
        { "gpu_from_host(softmax(x))",         NULL,                 true,  0 },
        { NULL,                                "w = w + sum(x)",     false, 0 },
        { "softmax(x)",                        NULL,                 true,  1 },
        { "sum(x), borrow(gpu_from_host(x * 2))", "w = w * 2",       false, 1 },
    };
    ON_GPU();
    count_what_is_asked();
    mc_array *host = sample(MC_FLOAT32, 2, (int64_t[]){ 64, 96 }, -1, 1), *x = mc_array_to(host, "cuda"),
             *zero = mc_array_scalar(MC_FLOAT32, 0);
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_shared_new(g, "w", zero);
        mc_function *f = compiled(g, rows[i].outputs, rows[i].updates);
        mc_array *y[2] = { NULL };
        const int nout = f ? mc_function_noutputs(f) : 0;
        mc_status s = f ? MC_OK : MC_EARG;
        for (int call = 0; call < 8 && s == MC_OK; call++) {
            if (call == 4) { /* recorded by now */
                memset(&asked, 0, sizeof asked);
            }
            for (int k = 0; rows[i].fresh && k < nout; k++) {
                mc_array_unref(&y[k]);
            }
            s = nout == 2 ? mc_call(f, MC_IN(x), MC_OUT(&y[0], &y[1]))
                : nout    ? mc_call(f, MC_IN(x), MC_OUT(&y[0]))
                          : mc_call(f, MC_IN(x), MC_NONE);
        }
        CHECK(s == MC_OK, "%s", mc_last_error());
        const char *what = rows[i].outputs ? rows[i].outputs : rows[i].updates;
        CHECK(asked.waits == 4 * rows[i].waits, "%s: 4 calls waited %d times", what, asked.waits);
        CHECK(asked.replays == 4 && asked.launches == 0,
              "%s: 4 calls replayed %d times and launched %d kernels", what, asked.replays, asked.launches);
        CHECK(asked.allocations == 0, "%s: 4 calls asked for memory %d times", what, asked.allocations);
        mc_array_unref(&y[0]);
        mc_array_unref(&y[1]);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&host);
    mc_array_unref(&x);
    mc_array_unref(&zero);
}

/* A step given the number of its batch: the number only says where the slices begin, so it is not uploaded,
 * and one launch copies both slices.  The updates of all parameters are one launch more; where steps run
 * beside each other, two, as all but one can be made before the last step. */
static void by_number(const char *beside, int launches)
{
    enum { BATCH = 8, BATCHES = 5, CALLS = 7, LAST = 4 };
    mc_flag_set("cuda.beside", beside);
    mc_graph *g = mc_graph_new();
    mc_array *images = sample(MC_FLOAT32, 2, (int64_t[]){ BATCH * BATCHES, 12 }, -1, 1),
             *targets = sample(MC_FLOAT32, 2, (int64_t[]){ BATCH * BATCHES, 5 }, -1, 1),
             *w = sample(MC_FLOAT32, 2, (int64_t[]){ 12, 7 }, -1, 1),
             *v = sample(MC_FLOAT32, 2, (int64_t[]){ 7, 5 }, -1, 1),
             *u = sample(MC_FLOAT32, 2, (int64_t[]){ 5, 5 }, -1, 1);
    mc_shared_new(g, "X", images);
    mc_shared_new(g, "T", targets);
    mc_shared_new(g, "w", w);
    mc_shared_new(g, "v", v);
    mc_shared_new(g, "u", u);
    mc_formula(g, "input i int64[]; x = X[i * 8:(i + 1) * 8]; t = T[i * 8:(i + 1) * 8];"
                  "cost = sum(sqr(dot(dot(dot(x, w), v), u) - t))");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "i",
                       .updates = "w = w - 0.001 * grad(cost, w); v = v - "
                                  "0.001 * grad(cost, v); u = u - 0.001 * grad(cost, u)" });
    REQUIRE(f, "%s", mc_error(g));
    for (int call = 0; call < CALLS; call++) {
        if (call == CALLS - LAST) {
            memset(&asked, 0, sizeof asked);
        }
        int64_t i = call % BATCHES;
        CHECK(mc_call(f, MC_IN(i), MC_NONE) == MC_OK, "%s", mc_last_error());
    }
    CHECK(asked.replays == LAST && asked.launches == LAST && !asked.copies && !asked.uploads,
          "%d calls: %d replays, %d launches, %d copies, %d uploads", LAST, asked.replays, asked.launches,
          asked.copies, asked.uploads);
    int made = 0;
    for (size_t i = 0; i < f->code->program.step.n; i++) {
        const struct mc_step *st = &f->code->program.step.at[i];
        const bool update = st->ndst == 1 && mc_is_in_place(f, f->plans, 0) && st->kind == STEP_KERNEL &&
                            f->plans->slot[st->dst[0]].base == BASE_SHARED;
        made += update && f->plans->step[i].exec;
    }
    CHECK(made == launches, "%s: %d steps make 3 updates, not %d", beside, made, launches);
    mc_function_free(f);
    mc_graph_free(g);
    mc_array *all[] = { images, targets, w, v, u };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
}

TEST(gpu_steps_by_number_of_the_batch)
{
    ON_GPU();
    count_what_is_asked();
    by_number("False", 1);
    by_number("auto", 2);
}

enum { ROWS = 24, WIDE = 12, OUT = 5 };

/* A step of descent on the sum of tanh(x w)^2 of the rows that `row` names, in doubles; returns the sum of
 * before. */
static double descend(const mc_array *x, const int64_t *row, double w[WIDE][OUT])
{
    double cost = 0, change[WIDE][OUT] = { { 0 } };
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < OUT; k++) {
            double z = 0;
            for (int j = 0; j < WIDE; j++) {
                z += mc_array_get(x, (int64_t[]){ row[i], j }) * w[j][k];
            }
            const double t = tanh(z);
            cost += t * t;
            for (int j = 0; j < WIDE; j++) {
                change[j][k] += mc_array_get(x, (int64_t[]){ row[i], j }) * 2 * t * (1 - t * t);
            }
        }
    }
    for (int j = 0; j < WIDE; j++) {
        for (int k = 0; k < OUT; k++) {
            w[j][k] -= 0.01 * change[j][k];
        }
    }
    return cost;
}

/* A training step's cost is on the host before the gradients are made: the call waits for the mark alone.  A
 * bad index is an error of its own call, which updates nothing. */
TEST(gpu_results_arrive_before_later_steps)
{
    enum { CALLS = 9, BAD = 6 };
    ON_GPU();
    count_what_is_asked();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ ROWS + 3, WIDE }, -1, 1),
             *w = sample(MC_FLOAT32, 2, (int64_t[]){ WIDE, OUT }, -1, 1),
             *rows = mc_array_empty(MC_INT64, 1, (int64_t[]){ ROWS });
    double want[WIDE][OUT];
    for (int i = 0; i < WIDE * OUT; i++) {
        want[i / OUT][i % OUT] = mc_array_get(w, (int64_t[]){ i / OUT, i % OUT });
    }
    mc_graph *g = mc_graph_new();
    mc_shared_new(g, "X", x);
    const mc_shared *v = mc_shared_new(g, "w", w);
    mc_formula(g, "input i int64[?]; cost = sum(sqr(tanh(dot(X[i], w))))");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "i", .outputs = "cost", .updates = "w = w - 0.01 * grad(cost, w)" });
    REQUIRE(f && rows, "%s", mc_error(g));
    int64_t *row = (void *)rows->data;
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < ROWS; i++) {
            row[i] = (i * 7 + call) % (ROWS + 3);
        }
        double cost = 0;
        if (call == 4) { /* recorded by now */
            memset(&asked, 0, sizeof asked);
        }
        if (call == BAD) {
            row[3] = ROWS + 3;
            CHECK(mc_call(f, MC_IN(rows), MC_OUT(&cost)) == MC_EINDEX, "a bad index is no error");
            CHECK(strstr(mc_last_error(), "index 27 is out of range"), "%s", mc_last_error());
            continue;
        }
        CHECK(mc_call(f, MC_IN(rows), MC_OUT(&cost)) == MC_OK, "%s", mc_last_error());
        const double expected = descend(x, row, want);
        CHECK(fabs(cost - expected) < 1e-4 * expected, "call %d: cost %g, not %g", call, cost, expected);
        CHECK(call != 5 || (asked.waits == 2 && asked.main_waits == 0 && asked.replays == 2),
              "2 calls waited %d times, %d of them for all work", asked.waits, asked.main_waits);
    }
    mc_array *at_last = mc_shared_get(v);
    for (int i = 0; i < WIDE * OUT && at_last; i++) {
        const double got = mc_array_get(at_last, (int64_t[]){ i / OUT, i % OUT });
        CHECK(fabs(got - want[i / OUT][i % OUT]) < 1e-4, "w[%d] is %g, not %g", i, got,
              want[i / OUT][i % OUT]);
    }
    CHECK(at_last, "%s", mc_last_error());
    mc_array *all[] = { x, w, rows, at_last };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* Steps that launch nothing, such as views, do not delay the mark: all of the gradient comes after it. */
TEST(gpu_views_do_not_delay_results)
{
    enum { CALLS = 4 };
    ON_GPU();
    count_what_is_asked();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ ROWS, WIDE }, -1, 1),
             *w = sample(MC_FLOAT32, 2, (int64_t[]){ WIDE, 6 }, -1, 1),
             *v = sample(MC_FLOAT32, 2, (int64_t[]){ 6, OUT }, -1, 1),
             *rows = mc_array_empty(MC_INT64, 1, (int64_t[]){ ROWS });
    memset(rows->data, 0, ROWS * sizeof(int64_t));
    mc_graph *g = mc_graph_new();
    mc_shared_new(g, "X", x);
    mc_shared_new(g, "w", w);
    mc_shared_new(g, "v", v);
    mc_formula(g, "input i int64[?]; h = reshape(tanh(dot(X[i], w)), [8, 3, 6]);"
                  "cost = sum(sqr(dot(reshape(max(h, 1), [8, 6]), v)))");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "i",
                                               .outputs = "cost",
                                               .updates = "w = w - 0.01 * grad(cost, w); v = v - 0.01 * "
                                                          "grad(cost, v)" });
    REQUIRE(f && rows, "%s", mc_error(g));
    int launches = 0, after = 0;
    for (int call = 0; call < CALLS; call++) {
        double cost = 0;
        memset(&asked, 0, sizeof asked);
        CHECK(mc_call(f, MC_IN(rows), MC_OUT(&cost)) == MC_OK, "%s", mc_last_error());
        if (asked.launches > launches) {
            launches = asked.launches;
            after = asked.after_mark;
        }
    }
    CHECK(after >= 7, "of %d kernels %d follow the mark", launches, after);
    mc_array *all[] = { x, w, v, rows };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* Results are written where they stay.  Addresses that come again are recorded once; for others results are
 * copied, or kernels are launched one by one. */
TEST(gpu_results_are_made_in_their_arrays)
{
    enum { CALLS = 40, LAST = 4 };
    static const struct { const char *way; int keeps, inputs, replays, copies; bool given; } rows[] = {
        { "the result before is released",         1,     1,     LAST, 0,    false },
        { "two results are kept",                  2,     1,     LAST, 0,    false },
        { "all results are kept",                  CALLS, 1,     LAST, LAST, false },
        { "the caller's array",                    1,     1,     LAST, 0,    true },
        { "two arrays of the caller's in turn",    2,     1,     LAST, 0,    true },
        { "three inputs in turn",                  1,     3,     LAST, 0,    true },
        { "other inputs in each call",             1,     CALLS, 0,    0,    true },
        { "other inputs and all results are kept", CALLS, CALLS, 0,    0,    false },
    };
    ON_GPU();
    count_what_is_asked();
    mc_array *x[CALLS];
    for (int i = 0; i < CALLS; i++) {
        mc_array *host = sample(MC_FLOAT32, 2, (int64_t[]){ 64, 96 }, -1, 1);
        x[i] = mc_array_to(host, "cuda");
        REQUIRE(x[i], "%s", mc_last_error());
        mc_array_unref(&host);
    }
    for (size_t r = 0; r < NELEM(rows); r++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = compiled(g, "gpu_from_host(x * 2)", NULL);
        mc_array *y[CALLS] = { NULL };
        for (int call = 0; call < CALLS && f; call++) {
            const mc_array *in = x[call % rows[r].inputs];
            mc_array **at = &y[call % rows[r].keeps];
            if (call == CALLS - LAST) {
                memset(&asked, 0, sizeof asked);
            }
            if (!rows[r].given) {
                mc_array_unref(at);
            }
            CHECK(mc_call(f, MC_IN(in), MC_OUT(at)) == MC_OK, "%s: %s", rows[r].way, mc_last_error());
        }
        CHECK(asked.replays == rows[r].replays && asked.launches == LAST - rows[r].replays,
              "%s: %d replays, %d launches", rows[r].way, asked.replays, asked.launches);
        CHECK(asked.copies == rows[r].copies, "%s: %d copies", rows[r].way, asked.copies);
        for (int i = 0; i < rows[r].keeps && f; i++) { /* the call before the last that wrote to it */
            const int call = CALLS - 1 - (CALLS - 1 - i) % rows[r].keeps;
            const mc_array *in = x[call % rows[r].inputs];
            bool right = y[i] != NULL;
            for (int64_t k = 0; k < 96 && right; k += 5) {
                const int64_t at[] = { k % 64, k };
                right = mc_array_get(y[i], at) == 2 * mc_array_get(in, at);
            }
            CHECK(right, "%s: result %d is wrong", rows[r].way, i);
            mc_array_unref(&y[i]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
    for (int i = 0; i < CALLS; i++) {
        mc_array_unref(&x[i]);
    }
}

/* allow_gc: is a function's memory given back behind each call? */
TEST(gpu_arenas_are_kept_or_not)
{
    size_t held[2] = { 0 };
    ON_GPU();
    mc_array *host = sample(MC_FLOAT32, 2, (int64_t[]){ 64, 96 }, -1, 1), *x = mc_array_to(host, "cuda");
    for (int gc = 0; gc < 2; gc++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        REQUIRE(mc_flag_set("allow_gc", gc ? "True" : "False") == MC_OK, "%s", mc_last_error());
        mc_function *f = compiled(g, "sum(dot(x, x.T))", NULL);
        const size_t before = mc_cuda_held(mc_cuda_running(0));
        double first = 0, sum = 0;
        for (int call = 0; call < 4; call++) {
            CHECK(f && mc_call(f, MC_IN(x), MC_OUT(call ? &sum : &first)) == MC_OK, "%s", mc_last_error());
            CHECK(!call || sum == first, "call %d: %g, then %g", call, first, sum);
        }
        held[gc] = mc_cuda_held(mc_cuda_running(0)) - before;
        mc_function_free(f);
        mc_graph_free(g);
    }
    CHECK(held[0] >= 64 * 64 * 4 && held[1] < held[0], "%zu bytes are kept, and %zu with allow_gc", held[0],
          held[1]);
    mc_flag_set("allow_gc", "False");
    mc_array_unref(&x);
    mc_array_unref(&host);
}

TEST(gpu_transfers_cancel)
{
    static const struct { const char *output, *lies; } rows[] = {
        { "exp(x)", "cpu" },                                       { "gpu_from_host(exp(x))", "cuda0" },
        { "host_from_gpu(gpu_from_host(exp(x)))", "cpu" },         { "gpu_from_host(host_from_gpu(exp(x)))", "cuda0" },
        { "exp(host_from_gpu(gpu_from_host(x)))", "cpu" },         { "gpu_from_host(exp(gpu_from_host(x)))", "cuda0" },
    };
    ON_GPU();
    mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 5, 7 }, -1, 1);
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *y = NULL;
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = compiled(g, rows[i].output, NULL);
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].output, mc_last_error());
        CHECK(y && strcmp(mc_array_device(y), rows[i].lies) == 0, "%s lies on %s", rows[i].output,
              y ? mc_array_device(y) : "nothing");
        CHECK(f && mc_function_nsteps(f) == 1, "%s: %d steps", rows[i].output, f ? mc_function_nsteps(f) : 0);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}
