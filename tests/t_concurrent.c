/* t_concurrent.c: recorded steps that know nothing of each other, done at the same time (flag cuda.beside).
 * tests/fake_gpu does what is recorded in the order that is least like the recording's, as far as its edges
 * allow.
 *
 * Invariant: the order never shows in a bit. */
#include "agree.h"
#include "cuda_test.h"
#include "exec/heavy/heavy.h"
#include <monochord_nn.h>
#include <math.h>
#include <string.h>

static const char model[] =
    "input 2x9x9\nconv 6 3x3 tanh\npool 2x2\nconv 5 2x2 rectify pad=1\nbatch_norm\nbranch = conv 4 1x1 "
    "linear\nglobal_pool\n"
    "dense 7 tanh from=branch\nconcat dense1 global_pool1\ndense 3 softmax\nrule adam rate=0.01\n";

static mc_array *images(void)
{
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(12, 2, 9, 9));
    for (int i = 0; i < 12 * 2 * 81; i++) {
        ((float *)mc_array_data(x))[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    }
    return x;
}

static mc_array *labels(void)
{
    mc_array *t = mc_array_new(MC_INT32, MC_SHAPE(12));
    for (int i = 0; i < 12; i++) {
        ((int32_t *)mc_array_data(t))[i] = i % 3;
    }
    return t;
}

/* Of all parameters after six steps, the last four of which are replayed; what each step said, too. */
static uint32_t bits(const char *beside)
{
    uint32_t all = 0;
    mc_flag_set("floatX", "float32");
    mc_flag_set("cuda.beside", beside);
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_array *x = images(), *t = labels();
    CHECK(mc_net_read(net, "beside", model) == MC_OK, "%s", mc_error(g));
    mc_function *f = mc_net_trainer(net);
    for (int i = 0; i < 6; i++) {
        float said[2] = { 0 };
        CHECK(f && mc_call(f, MC_IN(x, t), MC_OUT(&said[0], &said[1])) == MC_OK, "%s", mc_last_error());
        all = mc_crc32(all, said, sizeof said);
    }
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        mc_array *w = mc_shared_get(mc_net_param(net, NULL, i).shared);
        all = w ? mc_crc32(all, mc_array_data(w), (size_t)mc_array_size(w) * sizeof(float)) : 0;
        mc_array_unref(&w);
    }
    mc_array_unref(&x), mc_array_unref(&t);
    mc_function_free(f);
    mc_net_free(net);
    mc_graph_free(g);
    return all;
}

TEST(gpu_steps_beside_each_other_give_the_same_bits)
{
    ON_GPU();
    uint32_t in_line = bits("False"), beside = bits("True");
    CHECK(in_line == beside, "%08x in line, %08x beside each other", in_line, beside);
}

/* Results that are made early and told late, in place, by way of views, of nothing. */
TEST(gpu_formulas_beside_each_other)
{
    ON_GPU();
    static const char *const outputs[] = {
        "dot(x, x), dot(x, x.T), sum(x), max(x)",
        "exp(x)[::2], cumsum(x, axis=0), exp(x).T + 1, sort(x, axis=1)",
        "sum(exp(dot(x, x)) * 2, axis=0), sum(tanh(dot(x.T, x)), axis=1), x[:0], set_subtensor(x[1:3], 0)",
    };
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(40, 40));
    for (int i = 0; i < 1600; i++) {
        ((float *)mc_array_data(x))[i] = (float)(i * 7919 % 1600) / 1600 - 0.5f;
    }
    for (int k = 0; k < (int)(sizeof outputs / sizeof *outputs); k++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_array *y[2][4] = { { 0 } };
        for (int way = 0; way < 2; way++) {
            mc_flag_set("cuda.beside", way ? "True" : "False");
            mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = outputs[k] });
            REQUIRE(f, "%s", mc_error(g));
            for (int i = 0; i < 4; i++) {
                REQUIRE(mc_call(f, MC_IN(x), MC_OUT(&y[way][0], &y[way][1], &y[way][2], &y[way][3])) == MC_OK,
                        "%s", mc_last_error());
            }
            mc_function_free(f);
        }
        for (int i = 0; i < 4; i++) {
            mc_array *a = mc_array_copy(y[0][i]), *b = mc_array_copy(y[1][i]);
            CHECK(mc_array_size(a) == mc_array_size(b) &&
                      memcmp(mc_array_data(a), mc_array_data(b),
                             (size_t)mc_array_size(a) * mc_dtype_size(mc_array_dtype(a))) == 0,
                  "%s: result %d", outputs[k], i);
            mc_array_unref(&a), mc_array_unref(&b), mc_array_unref(&y[0][i]), mc_array_unref(&y[1][i]);
        }
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}

TEST(gpu_a_recording_without_memory)
{
    ON_GPU();
    mc_flag_set("cuda.beside", "True");
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "dot(x, x), sum(exp(x)), max(x)" });
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(8, 8));
    REQUIRE(f && x, "%s", mc_last_error());
    memset(mc_array_data(x), 0, 64 * sizeof(float));
    ALLOC_FAIL_LOOP {
        mc_function *copy = mc_function_copy(f, true);
        mc_array *y[3] = { 0 };
        mc_status s = copy ? MC_OK : MC_EMEMORY;
        for (int i = 0; i < 3 && s == MC_OK; i++) {
            s = mc_call(copy, MC_IN(x), MC_OUT(&y[0], &y[1], &y[2]));
        }
        CHECK(s == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&y[0]), mc_array_unref(&y[1]), mc_array_unref(&y[2]);
        mc_function_free(copy);
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* With cuda.beside=auto functions of little memory run their steps beside each other; large ones, and those
 * that set parts of variables, do not.  What fits only in order is placed a second time, views of results
 * included. */
TEST(gpu_steps_beside_each_other_by_themselves)
{
    static const struct { const char *formula, *update; int64_t side; enum mc_concurrent way; } rows[] = {
        { "sum(exp(dot(x, x))[1:, ::2]), max(x)",         NULL,                          40,   CONCURRENT_IF_SMALL },
        { "sum(y.T[1:, ::2]), max(y)",                    NULL,                          3000, CONCURRENT_NEVER    },
        { "sum(x)",                                       "w = set_subtensor(w[1:2], 1)", 40,   CONCURRENT_NEVER    },
        { "sum(x)",                                       "w = w * 2",                   40,   CONCURRENT_IF_SMALL },
    };
    ON_GPU();
    mc_flag_set("cuda.beside", "auto");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t n = rows[i].side;
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(n, n)), *w = mc_array_new(MC_FLOAT32, MC_SHAPE(4)),
                 *y[2] = { NULL };
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_shared_new(g, "w", w);
        mc_formula(g, "y = cumsum(exp(x), axis=0)");
        for (int64_t k = 0; k < n * n; k++) {
            ((float *)mc_array_data(x))[k] = k / n == k % n ? 0.5f : 0;
        }
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = rows[i].formula, .updates = rows[i].update });
        REQUIRE(f, "%s", mc_error(g));
        for (int call = 0; call < 3; call++) {
            CHECK((rows[i].update ? mc_call(f, MC_IN(x), MC_OUT(&y[0]))
                                  : mc_call(f, MC_IN(x), MC_OUT(&y[0], &y[1]))) == MC_OK,
                  "%s", mc_last_error());
        }
        CHECK(f->plans && f->plans->concurrent == rows[i].way, "%s, %lld: %d", rows[i].formula, (long long)n,
              f->plans ? (int)f->plans->concurrent : -1);
        if (i == 1) { /* y[r][c] is r + 1, and exp(0.5) - 1 more from the diagonal on */
            const double lines = (double)(n / 2) * (double)(n / 2 - 1), more = exp(0.5) - 1;
            const double want = (double)(n - 1) * (lines + (double)(n / 2)) + more * lines;
            const double got = mc_array_get(y[0], NULL), largest = mc_array_get(y[1], NULL);
            CHECK(fabs(got - want) < 1e-4 * want && fabs(largest - (double)n - more) < 0.1,
                  "%g, not %g; %g, not %g", got, want, largest, (double)n + more);
        }
        mc_array *all[] = { x, w, y[0], y[1] };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            mc_array_unref(&all[k]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Where the workspace of the last product began. */
static uintptr_t began;
static mc_status (*run_of_product)(const struct mc_plan *, void *const *, void *, int);

static mc_status note_workspace(const struct mc_plan *p, void *const *operand, void *workspace, int threads)
{
    began = (uintptr_t)workspace;
    return run_of_product(p, operand, workspace, threads);
}

/* Copies of operands lie before the workspace in the same scratch memory.  cuBLASLt refuses a workspace that
 * begins at any other address than a multiple of 256. */
TEST(gpu_workspaces_begin_at_multiples_of_256)
{
    ON_GPU();
    for (int64_t n = 5; n < 30; n += 6) {
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(n, n)), *y = NULL;
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = mc_compile(g,
                                    &(mc_spec){ .inputs = "x", .outputs = "dot(x[::2, ::2], x[::2, ::2])" });
        REQUIRE(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s", f ? mc_last_error() : mc_error(g));
        for (size_t i = 0; i < f->code->program.step.n; i++) {
            struct mc_heavy *h = f->plans->step[i].heavy;
            if (h && h->plan) {
                CHECK(h->copy[0] >= 0 && h->copy[1] >= 0, "not copied");
                run_of_product = h->plan->run;
                h->plan->run = note_workspace;
            }
        }
        began = 1;
        CHECK(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK && began % 256 == 0, "%lld: %p", (long long)n,
              (void *)began);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
