/* t_ranks_gpu.c: ranks with a GPU each, as threads of this process: what NCCL reduces, gathers and sends, by
 * definition, at the first call and in captures; sums in the fixed tree; ranks that disagree. */
#include "gpu_words.h"
#include <math.h>
#include <monochord_nn.h>
#include <pthread.h>

enum { MOST = 2, CALLS = 4, LONG = 70001 };

struct job {
    mc_comm *host, *comm;
    int rank;
    void (*run)(struct job *j);
    const char *device;
    char says[512], wrong[512];
    size_t number;
    int64_t parts;
    double found[2];
};
static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER; /* the flag device is the process's */

static void *thread(void *p)
{
    struct job *j = p;
    char device[16];
    mc_clear_error();
    snprintf(device, sizeof device, "cuda%d", j->rank);
    j->comm = mc_comm_gpu(j->host, device);
    if (j->comm) {
        j->run(j);
    }
    snprintf(j->says, sizeof j->says, "%s", mc_last_error());
    return NULL;
}

static void by_gpus(int n, void (*run)(struct job *), struct job *job)
{
    mc_comm *host[MOST];
    pthread_t t[MOST];
    REQUIRE(mc_comm_local(n, host) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < n; i++) {
        job[i] = (struct job){ .host = host[i], .rank = i, .run = run };
        REQUIRE(pthread_create(&t[i], NULL, thread, &job[i]) == 0, "no thread");
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
        REQUIRE(job[i].comm, "rank %d: %s", i, job[i].says);
    }
    for (int i = 0; i < n; i++) {
        mc_comm_free(job[i].comm);
        mc_comm_free(host[i]);
    }
}

static mc_function *compiled_there(struct job *j, mc_graph *g, const mc_spec *spec)
{
    pthread_mutex_lock(&compiling);
    mc_flag_set("device", j->rank ? "cuda1" : "cuda0");
    mc_function *f = mc_compile(g, spec);
    pthread_mutex_unlock(&compiling);
    return f;
}

#define ON_GPUS()                              \
    ON_GPU();                                  \
    if (mc_cuda_count() < MOST) {              \
        SKIP("one GPU");                       \
    }                                          \
    if (!mc_nv_found(NV_NCCL)->present) {      \
        SKIP("no NCCL");                       \
    }

/* ---- formulas of x = 1 + (7 rank + 3 i) % 11 in element i ---- */

struct formula_case {
    const char *text;
    mc_dtype d;
    char how;                   /* + sum, / mean, < least, > largest, r what rank 1 has, a all */
    int64_t n;
};

static double value_at(int rank, int64_t i)
{
    return 1 + (double)((rank * 7 + i * 3) % 11);
}

static double expected(char how, int64_t i, int64_t n)
{
    const double a = value_at(0, i), b = value_at(1, i);
    return how == '+'   ? a + b
           : how == '/' ? (a + b) / 2
           : how == '<' ? fmin(a, b)
           : how == '>' ? fmax(a, b)
           : how == 'r' ? b
                        : value_at(i >= n, i % n);
}

/* Calls f with n elements: step by step, then captured and replayed.  false: wrong, and what in j->wrong */
static bool calls(struct job *j, const struct formula_case *c, mc_function *f, int64_t n)
{
    mc_array *x = mc_array_new(c->d, 1, &n), *y = NULL;
    const size_t size = mc_dtype_size(c->d);
    int failed = 0, wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        mc_store_f64(c->d, (char *)mc_array_data(x) + (size_t)i * size, value_at(j->rank, i));
    }
    for (int call = 0; call < CALLS; call++) {
        mc_array_unref(&y);
        failed += !f || mc_call(f, MC_IN(x), MC_OUT(&y)) != MC_OK;
    }
    const int64_t found = y ? mc_array_size(y) : 0, from = found < n ? j->rank * found : 0;
    for (int64_t i = 0; i < found; i++) {
        wrong += mc_load_f64(c->d, (const char *)mc_array_data(y) + (size_t)i * size) !=
                 expected(c->how, i + from, n);
    }
    snprintf(j->wrong, sizeof j->wrong, "%s of %lld %s: %d calls failed, %d of %lld elements are wrong: %s",
             c->text, (long long)n, mc_dtype_name(c->d), failed, wrong, (long long)found, mc_last_error());
    mc_array_unref(&y);
    mc_array_unref(&x);
    return !failed && !wrong && found > 0;
}

/* The function's memory grows, and what was captured before is not right any more. */
static bool formula(struct job *j, const struct formula_case *c)
{
    mc_graph *g = mc_graph_new();
    mc_node *in = mc_graph_ranks(g, "all", j->comm) == MC_OK ? mc_input(g, "x", c->d, 1) : NULL,
            *out = in ? mc_formula(g, c->text) : NULL;
    mc_function *f = compiled_there(j, g,
                                    &(mc_spec){ .input = &in, .ninput = 1, .output = &out, .noutput = 1 });
    bool right = calls(j, c, f, c->n) && calls(j, c, f, 40 * c->n) && calls(j, c, f, c->n);
    for (int i = 0; f && i < mc_function_nsteps(f); i++) {
        if (*mc_function_step(f, i).reason) {
            snprintf(j->wrong, sizeof j->wrong, "%s: step %d is on the host", c->text, i);
            right = false;
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
    return right;
}

static const struct formula_case formulas[] = {
    { "all_reduce(x)",                        MC_FLOAT32,  '+', LONG },
    { "all_reduce(x, order='any')",           MC_FLOAT64,  '+', LONG },
    { "all_reduce(x)",                        MC_FLOAT16,  '+', 33 },
    { "all_reduce(x)",                        MC_BFLOAT16, '+', 33 },
    { "all_reduce(x)",                        MC_INT64,    '+', 1 },
    { "all_reduce(x)",                        MC_INT16,    '+', 300 },
    { "all_reduce(x)",                        MC_UINT8,    '+', 300 },
    { "all_reduce(x, op='mean')",             MC_FLOAT32,  '/', LONG },
    { "all_reduce(x, op='mean', order='any')", MC_FLOAT32, '/', 100 },
    { "all_reduce(x, op='mean')",             MC_BFLOAT16, '/', 100 },
    { "all_reduce(x, op='min')",              MC_FLOAT32,  '<', LONG },
    { "all_reduce(x, op='max')",              MC_INT32,    '>', 100 },
    { "all_reduce(x, op='max')",              MC_INT8,     '>', 100 },
    { "all_reduce(x[::-1])[::-1]",            MC_FLOAT32,  '+', 1000 },
    { "broadcast(x, root=1)",                 MC_FLOAT32,  'r', LONG },
    { "broadcast(x, root=1)",                 MC_INT16,    'r', 5 },
    { "all_gather(x)",                        MC_FLOAT16,  'a', 1001 },
    { "reduce_scatter(x)",                    MC_FLOAT32,  '+', 2 * LONG },
    { "reduce_scatter(x, op='max')",          MC_FLOAT64,  '>', 2002 },
    { "reduce_scatter(x, op='mean', order='any')", MC_FLOAT32, '/', 2000 },
};

static void all_formulas(struct job *j)
{
    size_t k = 0;
    while (k < NELEM(formulas) && formula(j, &formulas[k])) {
        k++;
    }
    j->number = k;
}

TEST(gpus_exchange_data)
{
    ON_GPUS();
    struct job job[MOST];
    by_gpus(MOST, all_formulas, job);
    for (int r = 0; r < MOST; r++) {
        CHECK(job[r].number == NELEM(formulas), "rank %d: %s", r, job[r].wrong);
    }
}

/* A NaN is the maximum of all it is compared with, also on a GPU. */
static void of_nan(struct job *j)
{
    const float x[2] = { j->rank ? NAN : 1, 2 };
    mc_graph *g = mc_graph_new();
    mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(2), x), *out = NULL;
    mc_node *in = mc_graph_ranks(g, "all", j->comm) == MC_OK ? mc_input(g, "x", MC_FLOAT32, 1) : NULL,
            *y = in ? mc_formula(g, "all_reduce(x, op='max')") : NULL;
    mc_function *f = y ? compiled_there(j, g,
                                        &(mc_spec){ .input = &in, .ninput = 1, .output = &y, .noutput = 1 })
                       : NULL;
    j->number = f && mc_call(f, MC_IN(a), MC_OUT(&out)) == MC_OK &&
                isnan(((const float *)mc_array_data(out))[0]) && ((const float *)mc_array_data(out))[1] == 2;
    mc_array_unref(&out);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(gpus_keep_a_nan)
{
    ON_GPUS();
    struct job job[MOST];
    by_gpus(MOST, of_nan, job);
    CHECK(job[0].number && job[1].number, "%s %s", job[0].says, job[1].says);
}

/* Rank 1 is at another size. */
static void other_size(struct job *j)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(3 + j->rank)), *out = NULL;
    memset(mc_array_data(x), 0, sizeof(float) * 3);
    mc_node *in = mc_graph_ranks(g, "all", j->comm) == MC_OK ? mc_input(g, "x", MC_FLOAT32, 1) : NULL,
            *y = in ? mc_formula(g, "all_reduce(x)") : NULL;
    mc_function *f = y ? compiled_there(j, g,
                                        &(mc_spec){ .input = &in, .ninput = 1, .output = &y, .noutput = 1 })
                       : NULL;
    j->number = f && mc_call(f, MC_IN(x), MC_OUT(&out)) == MC_ECHECK;
    mc_array_unref(&out);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(gpus_that_disagree_are_told)
{
    ON_GPUS();
    struct job job[MOST];
    by_gpus(MOST, other_size, job);
    for (int r = 0; r < MOST; r++) {
        CHECK(
            job[r].number &&
                strstr(job[r].says,
                       "rank 0 is at all_reduce (sum) of 3 float32, rank 1 at all_reduce (sum) of 4 float32"),
            "rank %d: %s", r, job[r].says);
    }
}

/* ---- a net that learns ---- */

enum { STEPS = 5, BATCH = 8, WIDE = 36 };

/* What the parameters and the costs are after five steps.  Batches are whole: a learner compiles what shorter
 * ones need when the first comes, for the device of the flag, which these ranks share. */
static bool learned(mc_comm *comm, int64_t parts, const char *device, double found[2])
{
    static const char model[] = "input 1x6x6\nconv 4 3x3 rectify pad=1\nbatch_norm\npool 2x2\n"
                                "dropout 0.3\ndense 5 tanh\ndense 3 softmax\nrule momentum rate=0.1\n";
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    double sums[2] = { 0 };
    pthread_mutex_lock(&compiling);
    mc_flag_set("device", device);
    mc_learner *r = mc_net_read(net, "ranks", model) < 0 ? NULL : mc_learner_new(net, comm, BATCH, parts);
    pthread_mutex_unlock(&compiling);
    bool good = r != NULL;
    for (int b = 0; b < STEPS && good; b++) {
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(BATCH, 1, 6, 6)),
                 *t = mc_array_new(MC_INT32, MC_SHAPE(BATCH));
        for (int64_t i = 0; i < BATCH * WIDE; i++) {
            ((float *)mc_array_data(x))[i] = (float)((i * 7919 + b * 31) % 1000) / 1000 - 0.5f;
        }
        for (int64_t i = 0; i < BATCH; i++) {
            ((int32_t *)mc_array_data(t))[i] = (int32_t)((i + b) % 3);
        }
        good = mc_learner_step(r, x, t) == MC_OK;
        mc_array_unref(&x);
        mc_array_unref(&t);
    }
    found[0] = 0;
    for (int i = 0; good && mc_net_param(net, NULL, i).name; i++) {
        mc_array *w = mc_shared_get(mc_net_param(net, NULL, i).shared);
        for (int64_t e = 0; e < mc_array_size(w) && mc_array_dtype(w) == MC_FLOAT32; e++) {
            found[0] += (double)(e % 7 + 1) * ((const float *)mc_array_data(w))[e];
        }
        mc_array_unref(&w);
    }
    good = good && mc_net_sums(net, sums) == MC_OK;
    found[1] = sums[0];
    mc_learner_free(r);
    mc_net_free(net);
    mc_graph_free(g);
    return good;
}

static void learn_as_one(struct job *j)
{
    j->number = learned(j->comm, j->parts, j->rank ? "cuda1" : "cuda0", j->found);
}

static void learn_in_parts(struct job *j)
{
    j->parts = 2;
    learn_as_one(j);
}

TEST(gpus_learn_what_two_parts_on_a_processor_do)
{
    ON_GPUS();
    struct job job[MOST];
    double want[2];
    mc_flag_set("floatX", "float32");
    REQUIRE(learned(NULL, 2, "cpu", want), "%s", mc_last_error());
    for (int parts = 0; parts < 2; parts++) {
        by_gpus(MOST, parts ? learn_in_parts : learn_as_one, job);
        for (int r = 0; r < MOST; r++) {
            CHECK(job[r].number == 1 && fabs(job[r].found[0] - want[0]) < 2e-3 &&
                      fabs(job[r].found[1] - want[1]) < 1e-3 && want[1] > 0,
                  "rank %d: parameters %.9g, cost %.9g; two parts: %.9g, %.9g: %s", r, job[r].found[0],
                  job[r].found[1], want[0], want[1], job[r].says);
            CHECK(job[r].found[0] == job[0].found[0], "ranks 0 and %d have other parameters", r);
        }
    }
}

/* ---- what is wrong is said ---- */

static void *same_gpu(void *p)
{
    struct job *j = p;
    mc_clear_error();
    mc_comm *c = mc_comm_gpu(j->host, j->device);
    snprintf(j->says, sizeof j->says, "%s", c ? "" : mc_last_error());
    mc_comm_free(c);
    return NULL;
}

TEST(gpus_that_ranks_cannot_have)
{
    ON_GPUS();
    static const struct { const char *device[2], *says; } cases[] = {
        { { "cuda0", "cuda0" }, "ranks 0 and 1 have the same GPU, cuda0" },
        { { "cuda0", "cpu" },   "comm_gpu: 'cpu' is no GPU" },
        { { "cuda0", "gpu1" },  "gpu1" },
        { { "cuda99", "cuda1" }, "there is no cuda99" },
    };
    for (size_t k = 0; k < NELEM(cases); k++) {
        mc_comm *host[2];
        pthread_t t;
        REQUIRE(mc_comm_local(2, host) == MC_OK, "%s", mc_last_error());
        struct job job[2] = { { .host = host[0], .device = cases[k].device[0] },
                              { .host = host[1], .device = cases[k].device[1] } };
        REQUIRE(pthread_create(&t, NULL, same_gpu, &job[1]) == 0, "no thread");
        same_gpu(&job[0]);
        pthread_join(t, NULL);
        for (int r = 0; r < 2; r++) {
            CHECK(strstr(job[r].says, cases[k].says), "%s, %s: rank %d says %s", cases[k].device[0],
                  cases[k].device[1], r, job[r].says);
            mc_comm_free(host[r]);
        }
    }
    CHECK(!mc_comm_gpu(NULL, "cuda0") && strstr(mc_last_error(), "communicator is missing"), "%s",
          mc_last_error());
}
