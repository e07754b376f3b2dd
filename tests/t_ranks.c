/* t_ranks.c: ranks that work together: what they reduce, gather and send, by definition; gradients, by hand;
 * ranks that disagree, leave or do not come. Ranks are threads here; tests/ranks.py asks the same of
 * processes by MPI. */
#include "check.h"
#include "value/value.h"
#include <math.h>
#include <monochord_nn.h>
#include <monochord_ops.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5 };

/* ---- a thread for each rank ---- */

struct job {
    mc_comm *comm;
    void (*run)(struct job *j);
    const void *arg;
    mc_status status;
    char says[512];
    double number[8];
    void *data;
};

static void *thread(void *p)
{
    struct job *j = p;
    mc_clear_error();
    j->run(j);
    snprintf(j->says, sizeof j->says, "%s", mc_last_error());
    return NULL;
}

/* run by n ranks; job[i] has what rank i found.  Their communicators are freed. */
static void by_ranks(int n, void (*run)(struct job *), const void *arg, struct job *job)
{
    mc_comm *comm[MOST];
    pthread_t t[MOST];
    REQUIRE(mc_comm_local(n, comm) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < n; i++) {
        job[i] = (struct job){ .comm = comm[i], .run = run, .arg = arg, .data = job[i].data };
        REQUIRE(pthread_create(&t[i], NULL, thread, &job[i]) == 0, "no thread");
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
    }
    for (int i = 0; i < n; i++) {
        mc_comm_free(job[i].comm);
    }
}

/* ---- reductions by definition ---- */

struct plain_case { const char *op; mc_dtype d; int64_t n; };

static double value_at(int rank, int64_t i)
{
    return (double)((rank * 7 + i * 3) % 11); /* sums are exact in every dtype */
}

static double expected(const char *op, int ranks, int64_t i)
{
    double y = value_at(0, i);
    for (int r = 1; r < ranks; r++) {
        const double v = value_at(r, i);
        y = strcmp(op, "max") == 0 ? fmax(y, v) : strcmp(op, "min") == 0 ? fmin(y, v) : y + v;
    }
    return strcmp(op, "mean") == 0 ? y / ranks : y;
}

static void reduce(struct job *j)
{
    const struct plain_case *c = j->arg;
    const size_t size = mc_dtype_size(c->d);
    const int rank = mc_comm_rank(j->comm);
    char *x = calloc((size_t)c->n + 1, size);
    for (int64_t i = 0; i < c->n; i++) {
        mc_store_f64(c->d, x + (size_t)i * size, value_at(rank, i));
    }
    j->status = mc_comm_reduce(j->comm, c->op, c->d, x, c->n);
    j->data = x;
}

TEST(reductions_of_every_dtype)
{
    static const char *const ops[] = { "sum", "mean", "max", "min" };
    static const int64_t sizes[] = { 0, 1, 7, 1000, 40001 };
    for (int k = 0; k < MC_NDTYPE * 4 * 5; k++) {
        const struct plain_case c = { ops[k % 4], (mc_dtype)(k / 4 % MC_NDTYPE), sizes[k / 4 / MC_NDTYPE] };
        const int ranks = 1 + k % MOST;
        if (c.d == MC_BOOL || (k % 4 == 1 && !mc_is_float(c.d))) {
            continue;
        }
        struct job job[MOST] = { 0 };
        by_ranks(ranks, reduce, &c, job);
        for (int r = 0; r < ranks; r++) {
            int64_t wrong = -1;
            const size_t size = mc_dtype_size(c.d);
            for (int64_t i = 0; i < c.n && wrong < 0; i++) {
                const double want = expected(c.op, ranks, i),
                             is = mc_load_f64(c.d, (char *)job[r].data + (size_t)i * size);
                wrong = fabs(is - want) <= mc_dtypes[c.d].eps * fabs(want) ? -1 : i;
            }
            CHECK(job[r].status == MC_OK && wrong < 0,
                  "%s of %s, %lld elements, rank %d of %d: element %lld: %s", c.op, mc_dtype_name(c.d),
                  (long long)c.n, r, ranks, (long long)wrong, job[r].says);
            free(job[r].data);
        }
    }
}

/* ---- the order of sums ---- */

static float drawn[MOST][9000];

static void sum_drawn(struct job *j)
{
    const int64_t n = *(const int64_t *)j->arg;
    float *x = malloc(sizeof drawn[0]);
    memcpy(x, drawn[mc_comm_rank(j->comm)], (size_t)n * sizeof *x);
    j->status = mc_comm_reduce(j->comm, "sum", MC_FLOAT32, x, n);
    j->data = x;
}

/* ((0 + 1) + (2 + 3)) + 4, for arrays that go to every rank and for those in slices. */
TEST(sums_are_added_in_one_order)
{
    for (int r = 0; r < MOST; r++) {
        for (int i = 0; i < 9000; i++) {
            drawn[r][i] = (float)test_uniform(-1, 1) * (i % 3 ? 1.f : 1e6f);
        }
    }
    for (int k = 0; k < 2; k++) {
        const int64_t n = k ? 9000 : 100;
        struct job job[MOST] = { 0 };
        int64_t wrong = 0;
        by_ranks(MOST, sum_drawn, &n, job);
        for (int64_t i = 0; i < n; i++) {
            const float a = drawn[0][i] + drawn[1][i], b = drawn[2][i] + drawn[3][i], c = a + b,
                        sum = c + drawn[4][i];
            for (int r = 0; r < MOST; r++) {
                wrong += ((float *)job[r].data)[i] != sum;
            }
        }
        CHECK(wrong == 0, "%lld sums of %lld elements in another order", (long long)wrong, (long long)n);
        for (int r = 0; r < MOST; r++) {
            free(job[r].data);
        }
    }
}

static void send_from_2(struct job *j)
{
    int32_t x[5000];
    for (int i = 0; i < 5000; i++) {
        x[i] = mc_comm_rank(j->comm) * 10000 + i;
    }
    j->status = mc_comm_broadcast(j->comm, 2, MC_INT32, x, 5000);
    for (int i = 0; i < 5000; i++) {
        j->number[0] += x[i] != 20000 + i;
    }
}

TEST(one_rank_sends_to_all)
{
    struct job job[MOST] = { 0 };
    by_ranks(4, send_from_2, NULL, job);
    for (int r = 0; r < 4; r++) {
        CHECK(job[r].status == MC_OK && job[r].number[0] == 0, "rank %d: %g wrong, %s", r, job[r].number[0],
              job[r].says);
    }
}

/* ---- in formulas ---- */

struct formula_case {
    const char *text;   /* of x = [r, 10 r, 100 r + 1] in rank r */
    bool grad;          /* its gradient by x is asked for */
    double want[3][3];  /* by rank; unused ones are 0 */
};

static void formula(struct job *j)
{
    const struct formula_case *c = j->arg;
    const int r = mc_comm_rank(j->comm);
    const double x[3] = { r, 10.0 * r, 100.0 * r + 1 };
    mc_graph *g = mc_graph_new();
    mc_array *in = mc_array_from(MC_FLOAT64, MC_SHAPE(3), x), *out = NULL;
    j->status = mc_graph_ranks(g, "all", j->comm);
    mc_node *v = mc_input(g, "x", MC_FLOAT64, 1), *y = mc_formula(g, c->text);
    y = c->grad ? mc_grad(y, v) : y;
    mc_function *f = mc_compile(
        g, &(mc_spec){ .input = &v, .ninput = 1, .output = &y, .noutput = 1, .on_unused = "ignore" });
    j->status = f ? mc_call(f, MC_IN(in), MC_OUT(&out)) : mc_last_status();
    for (int64_t i = 0; out && i < mc_array_size(out) && i < 3; i++) {
        const size_t size = mc_dtype_size(mc_array_dtype(out));
        j->number[i] = mc_load_f64(mc_array_dtype(out), (const char *)mc_array_data(out) + (size_t)i * size);
    }
    j->number[3] = out ? (double)mc_array_size(out) : -1;
    mc_array_unref(&in), mc_array_unref(&out);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(ranks_in_formulas)
{
    static const struct formula_case cases[] = {
        { "all_reduce(x)", false, { { 3, 30, 303 }, { 3, 30, 303 }, { 3, 30, 303 } } },
        { "all_reduce(x + 0, op='mean', group='all')", false, { { 1, 10, 101 }, { 1, 10, 101 }, { 1, 10, 101 } } },
        { "all_reduce(x, op='max')", false, { { 2, 20, 201 }, { 2, 20, 201 }, { 2, 20, 201 } } },
        { "all_reduce(x[::-1], op='min') * 2", false, { { 2, 0, 0 }, { 2, 0, 0 }, { 2, 0, 0 } } },
        { "broadcast(x, root=1)", false, { { 1, 10, 101 }, { 1, 10, 101 }, { 1, 10, 101 } } },
        { "all_gather(x)[3:6]", false, { { 1, 10, 101 }, { 1, 10, 101 }, { 1, 10, 101 } } },
        { "reduce_scatter(x)", false, { { 3 }, { 30 }, { 303 } } },
        { "reduce_scatter(x, op='mean') + 0 * all_gather(x)[:1]", false, { { 1 }, { 10 }, { 101 } } },
        { "rank_of() + x * 0", false, { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 2 } } },
        /* of the sum of the costs of all ranks */
        { "sum(all_reduce(x) ** 2)", true, { { 18, 180, 1818 }, { 18, 180, 1818 }, { 18, 180, 1818 } } },
        { "sum(x * all_reduce(x, op='mean'))", true, { { 2, 20, 202 }, { 2, 20, 202 }, { 2, 20, 202 } } },
        { "sum(all_reduce(x, op='max') * [1., 2, 3])", true, { { 0, 0, 0 }, { 0, 0, 0 }, { 3, 6, 9 } } },
        { "sum(all_reduce(x * 0, op='min') * [3., 6, 9])", true, { { 0 } } },
        { "sum(broadcast(x, root=1) * x)", true, { { 1, 10, 101 }, { 4, 40, 404 }, { 1, 10, 101 } } },
        { "sum(all_gather(x) ** 2)", true, { { 0, 0, 6 }, { 6, 60, 606 }, { 12, 120, 1206 } } },
        { "sum(reduce_scatter(x) ** 2)", true, { { 6, 60, 606 }, { 6, 60, 606 }, { 6, 60, 606 } } },
        { "sum(reduce_scatter(x, op='mean') ** 2)", true, { { 2. / 3, 20. / 3, 202. / 3 }, { 2. / 3, 20. / 3, 202. / 3 }, { 2. / 3, 20. / 3, 202. / 3 } } },
    };
    for (size_t k = 0; k < NELEM(cases); k++) {
        struct job job[MOST] = { 0 };
        by_ranks(3, formula, &cases[k], job);
        for (int r = 0; r < 3; r++) {
            CHECK(job[r].status == MC_OK, "%s, rank %d: %s", cases[k].text, r, job[r].says);
            for (int i = 0; i < 3 && job[r].status == MC_OK; i++) {
                CHECK(fabs(job[r].number[i] - cases[k].want[r][i]) <= 1e-12 * fabs(cases[k].want[r][i]),
                      "%s%s, rank %d, element %d: %.17g, and not %.17g", cases[k].grad ? "gradient of " : "",
                      cases[k].text, r, i, job[r].number[i], cases[k].want[r][i]);
            }
        }
    }
}

/* ---- ranks that do not fit together ---- */

static void different_sizes(struct job *j)
{
    float x[20] = { 0 };
    j->status = mc_comm_reduce(j->comm, "sum", MC_FLOAT32, x, mc_comm_rank(j->comm) == 2 ? 12 : 10);
    j->number[0] = mc_comm_reduce(j->comm, "max", MC_FLOAT32, x, 20); /* they are still at the same place */
}

TEST(ranks_that_disagree_are_told)
{
    struct job job[MOST] = { 0 };
    by_ranks(4, different_sizes, NULL, job);
    for (int r = 0; r < 4; r++) {
        CHECK(job[r].status == MC_ECHECK &&
                  strstr(job[r].says, "rank 0 is at comm_reduce (sum) of 10 float32, rank 2 at comm_reduce "
                                      "(sum) of 12 float32"),
              "rank %d: %s", r, job[r].says);
        CHECK(job[r].number[0] == MC_OK, "rank %d cannot go on", r);
    }
}

static void leaves(struct job *j)
{
    double x = 1;
    j->status = mc_comm_reduce(j->comm, "sum", MC_FLOAT64, &x, 1);
    if (mc_comm_rank(j->comm) == 1) {
        mc_comm_free(j->comm);
        j->comm = NULL;
    } else {
        j->status = mc_comm_reduce(j->comm, "sum", MC_FLOAT64, &x, 1);
        j->number[0] = mc_comm_reduce(j->comm, "sum", MC_FLOAT64, &x, 1);
    }
}

TEST(a_rank_that_leaves_ends_the_others)
{
    struct job job[MOST] = { 0 };
    by_ranks(3, leaves, NULL, job);
    for (int r = 0; r < 3; r += 2) {
        CHECK(job[r].status == MC_EDEVICE && job[r].number[0] == MC_EDEVICE &&
                  strstr(job[r].says, "lost each other"),
              "rank %d: %d, %s", r, (int)job[r].status, job[r].says);
    }
}

static void comes_not(struct job *j)
{
    double x = 1;
    j->status = mc_comm_rank(j->comm) == 1 ? MC_OK : mc_comm_reduce(j->comm, "sum", MC_FLOAT64, &x, 1);
}

TEST(a_rank_that_does_not_come_is_named)
{
    struct job job[MOST] = { 0 };
    mc_flag_set("comm.timeout", "1");
    by_ranks(2, comes_not, NULL, job);
    CHECK(job[0].status == MC_EDEVICE && strstr(job[0].says, "rank 1 did not come within 1 s"), "%s",
          job[0].says);
}

TEST(what_is_wrong_with_ranks_is_said)
{
    static const struct { const char *formula, *says; } wrong[] = {
        { "all_reduce(x, op='avg')", "all_reduce: 'avg' is none of sum, mean, max, min" },
        { "all_reduce(x, group='other')", "all_reduce: the graph has no group 'other'; mc_graph_ranks names the ranks of a communicator" },
        { "all_reduce(cast(x, int32), op='mean')", "all_reduce: the mean of int32; only floats have one" },
        { "all_reduce(x > 0)", "all_reduce: the sum of bool; max says whether any is true" },
        { "broadcast(x, root=2)", "broadcast: there is no rank 2" },
        { "broadcast(x, root=-1)", "broadcast: there is no rank -1" },
        { "reduce_scatter([1., 2, 3])", "3 rows do not divide among 2 ranks" },
        { "all_gather(sum(x))", "x is a scalar; the ranks' parts lie along the first axis" },
        { "grad(sum(reduce_scatter(x[:2], op='max')), x)", "reduce_scatter of a max has no gradient" },
    };
    mc_comm *comm[2];
    REQUIRE(mc_comm_local(2, comm) == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(wrong); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT64, 1);
        CHECK(mc_graph_ranks(g, "all", comm[0]) == MC_OK, "%s", mc_last_error());
        mc_formula(g, wrong[i].formula);
        CHECK(mc_error(g) && strstr(mc_error(g), wrong[i].says), "%s: %s", wrong[i].formula, mc_error(g));
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    double x = 1;
    CHECK(mc_graph_ranks(g, "", comm[0]) == MC_EARG && mc_graph_ranks(g, "a", NULL) == MC_EARG,
          "a group without a name or ranks");
    CHECK(mc_graph_ranks(g, "a", comm[0]) == MC_OK && mc_graph_ranks(g, "a", comm[1]) == MC_EARG,
          "a name twice");
    CHECK(mc_comm_local(0, comm) == MC_EARG && mc_comm_open("smoke") == NULL &&
              strstr(mc_last_error(), "local, mpi"),
          "%s", mc_last_error());
    CHECK(mc_comm_reduce(comm[0], "mean", MC_INT32, &x, 1) == MC_ETYPE &&
              mc_comm_reduce(NULL, "sum", MC_FLOAT64, &x, 1) == MC_EARG &&
              mc_comm_broadcast(comm[0], 2, MC_FLOAT64, &x, 1) == MC_EARG &&
              mc_comm_reduce(comm[0], "sum", MC_FLOAT64, NULL, 1) == MC_EARG,
          "wrong calls pass");
    mc_graph_free(g);
    mc_comm_free(comm[0]);
    mc_comm_free(comm[1]);
}

/* Without a group, a rank is alone. */
TEST(a_rank_alone)
{
    struct job j = { 0 };
    double x = 3;
    mc_graph *g = mc_graph_new();
    mc_node *y = mc_formula(g, "sum(all_reduce([1., 2])) + sum(all_gather([3.])) + sum(reduce_scatter([4., "
                               "5])) + sum(broadcast([6.])) + rank_of()");
    mc_function *f = mc_compile(g, &(mc_spec){ .output = &y, .noutput = 1 });
    CHECK(f && mc_call(f, MC_NONE, MC_OUT(&j.number[0])) == MC_OK && j.number[0] == 21, "%g, %s", j.number[0],
          mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
    mc_comm *one = mc_comm_open(NULL);
    CHECK(one && mc_comm_size(one) == 1 && mc_comm_rank(one) == 0 &&
              mc_comm_reduce(one, "mean", MC_FLOAT64, &x, 1) == MC_OK && x == 3,
          "%s", mc_last_error());
    mc_comm_free(one);
}

/* ---- a net that learns ---- */

static const char model[] =
    "input 1x6x6\nconv 4 3x3 rectify pad=1\nbatch_norm\npool 2x2\ndropout 0.3\ndense 5 tanh\n"
    "dense 3 softmax\npenalty l2 0.001\n";
struct learning { int64_t parts, examples[3]; const char *rule; bool shard; };

static uint32_t bits_of(uint32_t bits, mc_array *w)
{
    bits = w ? mc_crc32(bits, mc_array_data(w), (size_t)mc_array_size(w) * mc_dtype_size(mc_array_dtype(w)))
             : 0;
    mc_array_unref(&w);
    return bits;
}

/* All that a checkpoint has: names, shapes and values. */
static uint32_t bits_of_states(mc_learner *r, uint32_t bits)
{
    mc_param p;
    for (int i = 0; r && (p = mc_learner_state_like(r, i)).name; i++) {
        mc_array *w = mc_learner_state(r, i), *like = mc_shared_get(p.shared);
        const bool fits = w && like && mc_array_rank(w) == mc_array_rank(like) &&
                          mc_array_size(w) == mc_array_size(like);
        /* their order is that of the ranks' memory: names tell them apart */
        bits += bits_of(mc_crc32(0, p.name, strlen(p.name)), w) * fits;
        mc_array_unref(&like);
    }
    return bits;
}

/* The bits of all parameters, states and sums after three batches. */
static void learn(struct job *j)
{
    const struct learning *l = j->arg;
    uint32_t bits = 0;
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    char text[400];
    snprintf(text, sizeof text, "%srule %s\n", model, l->rule);
    j->status = mc_net_read(net, "ranks", text);
    mc_learner *r = j->status == MC_OK
                        ? (l->shard ? mc_learner_sharded : mc_learner_new)(net, j->comm, 8, l->parts)
                        : NULL;
    j->status = r ? MC_OK : mc_last_status();
    for (int b = 0; b < 3 && j->status == MC_OK; b++) {
        const int64_t n = l->examples[b];
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(n, 1, 6, 6)),
                 *t = mc_array_new(MC_INT32, MC_SHAPE(n));
        for (int64_t i = 0; i < n * 36; i++) {
            ((float *)mc_array_data(x))[i] = (float)((i * 7919 + b * 31) % 1000) / 1000 - 0.5f;
        }
        for (int64_t i = 0; i < n; i++) {
            ((int32_t *)mc_array_data(t))[i] = (int32_t)((i + b) % 3);
        }
        j->status = mc_learner_step(r, x, t);
        mc_array_unref(&x), mc_array_unref(&t);
    }
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        bits = bits_of(bits, mc_shared_get(mc_net_param(net, NULL, i).shared));
    }
    bits = bits_of_states(r, bits);
    int64_t whole = 0;
    j->number[3] = (double)mc_learner_bytes(r, &whole);
    j->number[4] = (double)whole;
    for (int i = 0; r && i < mc_function_nsteps(mc_learner_part(r)); i++) {
        j->number[5] += mc_function_step(mc_learner_part(r), i).flops;
    }
    if (j->status == MC_OK) {
        j->status = mc_net_sums(net, &j->number[1]);
    }
    j->number[0] = bits;
    mc_learner_free(r);
    mc_net_free(net);
    mc_graph_free(g);
}

TEST(any_number_of_ranks_learns_the_same_bits)
{
    static const char adam[] = "adam rate=0.01";
    static const struct learning cases[] = {
        { 4, { 8, 8, 8 }, adam }, { 4, { 8, 7, 3 }, adam }, { 8, { 8, 1, 5 }, "momentum base=adagrad(rate=0.1)" }
    };
    mc_flag_set("floatX", "float32");
    mc_flag_set("profile", "True");
    CHECK(mc_flag_set("deterministic", "True") == MC_OK, "%s", mc_last_error());
    for (size_t k = 0; k < NELEM(cases); k++) {
        struct job alone = { 0 };
        for (int i = 0; i < 6; i++) {
            const int ranks = 1 << i % 3;
            struct learning one = cases[k];
            struct job job[MOST] = { 0 };
            double flops = 0;
            one.shard = i >= 3;
            by_ranks(ranks, learn, &one, job);
            alone = i ? alone : job[0];
            for (int r = 0; r < ranks; r++) {
                CHECK(job[r].status == MC_OK, "rank %d of %d: %s", r, ranks, job[r].says);
                CHECK(memcmp(alone.number, job[r].number, 3 * sizeof *alone.number) == 0,
                      "case %zu%s, rank %d of %d: %.0f, cost %.17g; alone %.0f, cost %.17g", k,
                      one.shard ? ", divided" : "", r, ranks, job[r].number[0], job[r].number[1],
                      alone.number[0], alone.number[1]);
                /* a rank has the rate, the step's number and the random stream whole; divided states are padded */
                CHECK(job[r].number[4] == alone.number[3] &&
                          fabs(job[r].number[3] - alone.number[3] / (one.shard ? ranks : 1)) <= 32 &&
                          job[r].number[3] > 0,
                      "case %zu, rank %d of %d: %.0f bytes of %.0f, alone %.0f", k, r, ranks,
                      job[r].number[3], job[r].number[4], alone.number[3]);
                flops += job[r].number[5];
            }
            CHECK(flops == alone.number[5] && flops > 0 &&
                      (cases[k].examples[1] < 8 || job[0].number[5] == flops / ranks),
                  "case %zu: %g FLOPs of %d ranks, %g of one alone", k, flops, ranks, alone.number[5]);
        }
        CHECK(alone.number[1] > 0, "case %zu: the cost is %g", k, alone.number[1]);
    }
    mc_flag_set("profile", "False");
}

/* ---- states that go from one number of ranks to another ---- */

struct moved { int n; char name[24][64]; mc_array *value[24]; };

static void step_once(struct job *j, mc_learner *r)
{
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(8, 5)), *t = mc_array_new(MC_INT32, MC_SHAPE(8));
    for (int i = 0; i < 40; i++) {
        ((float *)mc_array_data(x))[i] = (float)(i * 29 % 37) / 37 - 0.5f;
        ((int32_t *)mc_array_data(t))[i / 5] = i / 5 % 3;
    }
    j->status = mc_learner_step(r, x, t);
    mc_array_unref(&x), mc_array_unref(&t);
}

/* A step, all that is learned to `arg` or from it, another step; number[0]: the bits then. */
static void move(struct job *j)
{
    struct moved *m = (struct moved *)(uintptr_t)j->arg;
    const bool load = m->n > 0, first = mc_comm_rank(j->comm) == 0;
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, load ? 2 : 1);
    j->status = mc_net_read(net, "moved", "input 5\ndense 7 tanh\ndense 3 softmax\nrule adam rate=0.1\n");
    mc_learner *r = mc_learner_sharded(net, j->comm, 8, 4);
    mc_param p;
    double ready = 1;
    int n = 0;
    REQUIRE(r, "%s", mc_last_error());
    if (!load) {
        step_once(j, r);
    }
    mc_comm_reduce(j->comm, "min", MC_FLOAT64, &ready, 1); /* all have seen whether there is something */
    for (int i = 0; (p = mc_net_param(net, NULL, i)).name; i++, n++) {
        if (load) {
            mc_shared_set(p.shared, m->value[n]);
        } else if (first) {
            snprintf(m->name[n], sizeof m->name[n], "%s", p.name);
            mc_array *now = mc_shared_get(p.shared);
            m->value[n] = mc_array_copy(now);
            mc_array_unref(&now);
        }
    }
    for (int i = 0; (p = mc_learner_state_like(r, i)).name; i++, n++) {
        mc_array *whole = load ? NULL : mc_learner_state(r, i);
        for (int k = 0; load && k < m->n; k++) {
            if (strcmp(m->name[k], p.name) == 0) {
                CHECK(mc_learner_set_state(r, p.name, m->value[k]) == MC_OK, "%s", mc_last_error());
            }
        }
        if (!load && first) {
            snprintf(m->name[n], sizeof m->name[n], "%s", p.name);
            m->value[n] = mc_array_copy(whole);
        }
        mc_array_unref(&whole);
    }
    step_once(j, r);
    uint32_t bits = 0;
    for (int i = 0; (p = mc_net_param(net, NULL, i)).name; i++) {
        bits = bits_of(bits, mc_shared_get(p.shared));
    }
    j->number[0] = bits_of_states(r, bits);
    mc_comm_reduce(j->comm, "min", MC_FLOAT64, &ready, 1);
    m->n = first ? n : m->n;
    mc_learner_free(r);
    mc_net_free(net);
    mc_graph_free(g);
}

TEST(states_go_on_with_another_number_of_ranks)
{
    static const int ranks[] = { 2, 1, 4 };
    mc_flag_set("floatX", "float32");
    struct moved *m = calloc(1, sizeof *m);
    double first = 0;
    for (size_t k = 0; k < NELEM(ranks); k++) {
        struct job job[MOST] = { 0 };
        by_ranks(ranks[k], move, m, job);
        first = k ? first : job[0].number[0];
        for (int r = 0; r < ranks[k]; r++) {
            CHECK(job[r].status == MC_OK && job[r].number[0] == first,
                  "rank %d of %d: %.0f, and not %.0f: %s", r, ranks[k], job[r].number[0], first, job[r].says);
        }
    }
    CHECK(m->n == 4 + 8 + 3, "%d parameters and states", m->n);
    for (int i = 0; i < m->n; i++) {
        mc_array_unref(&m->value[i]);
    }
    free(m);
}

/* ---- ranks that are about to run something else ---- */

struct odd { int rank; const char *text[2]; int64_t batch[2]; bool shard; const char *says; };

static void odd_one(struct job *j)
{
    const struct odd *o = j->arg;
    const bool odd = mc_comm_rank(j->comm) == o->rank;
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    j->status = mc_net_read(net, "odd", o->text[odd]);
    mc_learner *r = j->status == MC_OK ? (odd && o->shard ? mc_learner_sharded
                                                          : mc_learner_new)(net, j->comm, o->batch[odd], 4)
                                       : NULL;
    REQUIRE(r, "%s", mc_last_error());
    step_once(j, r);
    mc_learner_free(r);
    mc_net_free(net);
    mc_graph_free(g);
}

TEST(ranks_that_would_learn_something_else_are_told)
{
#define NET(units, end) "input 5\ndense " units " tanh\ndense 3 softmax\n" end
    static const struct odd cases[] = {
        { 1, { NET("7", ""), NET("7", "") }, { 8, 12 }, false,
          "rank 0 has 'parts 4 of a batch of 8', rank 1 has 'parts 4 of a batch of 12'" },
        { 2, { NET("7", ""), NET("7", "") }, { 8, 8 }, true,
          "rank 0 has 'states whole on each rank', rank 2 has 'states divided among ranks'" },
        { 1, { NET("7", ""), NET("7", "rule adam\n") }, { 8, 8 }, false,
          "rank 0 has 'rule sgd 0.01', rank 1 has 'rule adam'" },
        { 2, { NET("7", ""), NET("9", "") }, { 8, 8 }, false,
          "rank 0 has 'parameter dense1_W float32 5x7', rank 2 has 'parameter dense1_W float32 5x9'" },
        { 0, { NET("7", ""), NET("9", "") }, { 8, 8 }, false,
          "rank 0 has 'parameter dense1_W float32 5x9', rank 1 has 'parameter dense1_W float32 5x7'" },
        { 2, { NET("7", "penalty l2 0.1\n"), NET("7", "penalty l1 0.1\n") }, { 8, 8 }, false, "rank 2 has '" },
        { 9, { NET("7", ""), NULL }, { 8, 8 }, false, NULL },
    };
    mc_flag_set("floatX", "float32");
    for (size_t k = 0; k < NELEM(cases); k++) {
        struct job job[MOST] = { 0 };
        by_ranks(4, odd_one, &cases[k], job);
        for (int r = 0; r < 4; r++) {
            CHECK(job[r].status == (cases[k].says ? MC_ECHECK : MC_OK) &&
                      (!cases[k].says || strstr(job[r].says, cases[k].says)),
                  "case %zu, rank %d: %d, %s", k, r, (int)job[r].status, job[r].says);
        }
    }
}

static void lines(struct job *j)
{
    const char *const *text = j->arg;
    j->status = mc_comm_agree(j->comm, text[mc_comm_rank(j->comm)]);
}

TEST(texts_are_compared_line_by_line)
{
    char long_line[400], cut_line[300];
    memset(long_line, 'a', sizeof long_line - 1), long_line[sizeof long_line - 1] = '\0';
    snprintf(cut_line, sizeof cut_line, "rank 1 has '%.160s...'", long_line);
    const struct { const char *text[3], *says; } cases[] = {
        { { "a\nb\n", "a\nb\n", "a\nb\n" }, NULL },
        { { "", "", "" }, NULL },
        { { "a\nb\n", "a\nb\n", "a\nc\n" }, "rank 0 has 'b', rank 2 has 'c'" },
        { { "a\nb", "a\n", "a\nb" }, "rank 0 has 'b', rank 1 has nothing there" },
        { { "a", "ab", "a" }, "rank 0 has 'a', rank 1 has 'ab'" },
        { { "a\n", "a\nb\n", "c\n" }, "rank 0 has nothing there, rank 1 has 'b'" },
        { { "b", long_line, "b" }, cut_line },
    };
    for (size_t k = 0; k < NELEM(cases); k++) {
        struct job job[MOST] = { 0 };
        by_ranks(3, lines, cases[k].text, job);
        for (int r = 0; r < 3; r++) {
            CHECK(job[r].status == (cases[k].says ? MC_ECHECK : MC_OK) &&
                      (!cases[k].says || strstr(job[r].says, cases[k].says)),
                  "case %zu, rank %d: %d, %s", k, r, (int)job[r].status, job[r].says);
        }
    }
    mc_comm *one = mc_comm_open(NULL);
    CHECK(mc_comm_agree(one, NULL) == MC_EARG && mc_comm_agree(NULL, "") == MC_EARG &&
              mc_comm_agree(one, "x") == MC_OK && mc_learner_agree(NULL, "") == MC_EARG,
          "wrong calls pass, or a rank differs from itself");
    mc_comm_free(one);
}

TEST(states_that_cannot_be_divided)
{
    static const char *const rules[] = { "sgd clip=1", "adam max_norm=2" };
    for (size_t i = 0; i < NELEM(rules); i++) {
        char text[200];
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        snprintf(text, sizeof text, "input 5\ndense 3 softmax\nrule %s\n", rules[i]);
        CHECK(mc_net_read(net, "wrong", text) == MC_OK, "%s", mc_error(g));
        mc_learner *r = mc_learner_sharded(net, NULL, 4, 2);
        CHECK(!r && strstr(mc_last_error(), "cannot be divided among ranks") &&
                  strstr(mc_last_error(), i ? "max_norm needs whole" : "clip needs whole"),
              "%s: %s", rules[i], mc_last_error());
        mc_learner_free(r);
        mc_net_free(net);
        mc_graph_free(g);
    }
}

/* One part is what mc_net_learner makes of a batch, but for the rounding of the mean. */
TEST(one_part_is_the_learner)
{
    static const char plain[] =
        "input 5\ndense 7 tanh\nbatch_norm\ndense 3 softmax\nrule momentum rate=0.1\n";
    mc_array *w[2][8] = { { NULL } };
    double sums[2][2] = { { 0 } };
    int n = 0;
    mc_flag_set("floatX", "float32");
    for (int k = 0; k < 2; k++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(6, 5)), *t = mc_array_new(MC_INT32, MC_SHAPE(6));
        for (int i = 0; i < 30; i++) {
            ((float *)mc_array_data(x))[i] = (float)(i * 17 % 13) / 13 - 0.5f;
            ((int32_t *)mc_array_data(t))[i / 5] = i / 5 % 3;
        }
        REQUIRE(mc_net_read(net, "one", plain) == MC_OK, "%s", mc_error(g));
        mc_learner *r = k ? mc_learner_new(net, NULL, 6, 1) : NULL;
        mc_function *f = k ? NULL : mc_net_learner(net);
        for (int i = 0; i < 3; i++) {
            CHECK((k ? mc_learner_step(r, x, t) : mc_call(f, MC_IN(x, t), MC_NONE)) == MC_OK, "%s",
                  mc_last_error());
        }
        CHECK(mc_net_sums(net, sums[k]) == MC_OK, "%s", mc_last_error());
        for (n = 0; n < 8 && mc_net_param(net, NULL, n).name; n++) {
            w[k][n] = mc_shared_get(mc_net_param(net, NULL, n).shared);
        }
        mc_array_unref(&x), mc_array_unref(&t);
        mc_function_free(f);
        mc_learner_free(r);
        mc_net_free(net);
        mc_graph_free(g);
    }
    CHECK(n >= 6 && fabs(sums[0][0] - sums[1][0]) < 1e-5 * sums[0][0] && sums[0][1] == sums[1][1],
          "%d parameters, sums %g %g and %g %g", n, sums[0][0], sums[0][1], sums[1][0], sums[1][1]);
    for (int i = 0; i < n; i++) {
        double most = 0;
        for (int64_t e = 0; e < mc_array_size(w[0][i]) && mc_array_dtype(w[0][i]) == MC_FLOAT32; e++) {
            most = fmax(most, fabs(((const float *)mc_array_data(w[0][i]))[e] -
                                   (double)((const float *)mc_array_data(w[1][i]))[e]));
        }
        CHECK(most < 2e-6, "parameter %d differs by %g", i, most);
        mc_array_unref(&w[0][i]), mc_array_unref(&w[1][i]);
    }
}

TEST(learners_that_cannot_be_made)
{
    static const struct { int64_t batch, parts; const char *says; } wrong[] = {
        { 8, 3, "3 parts of a batch do not divide among 2 ranks" },
        { 4, 6, "6 parts are more than the 4 examples of a batch" },
        { 0, 2, "2 parts of 0 examples" },
    };
    mc_comm *comm[2];
    REQUIRE(mc_comm_local(2, comm) == MC_OK, "%s", mc_last_error());
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    CHECK(mc_net_read(net, "wrong", "input 5\ndense 3 softmax\n") == MC_OK, "%s", mc_error(g));
    for (size_t i = 0; i < NELEM(wrong); i++) {
        mc_learner *r = mc_learner_new(net, comm[0], wrong[i].batch, wrong[i].parts);
        CHECK(!r && strstr(mc_last_error(), wrong[i].says), "%s", mc_last_error());
        mc_learner_free(r);
    }
    CHECK(mc_learner_step(NULL, NULL, NULL) == MC_EARG, "no learner learns");
    mc_net_free(net);
    mc_graph_free(g);
    mc_comm_free(comm[0]);
    mc_comm_free(comm[1]);
}

/* Loaded elsewhere, a rank would be alone without a word. */
TEST(functions_of_ranks_are_not_written)
{
    static const char *const formulas[] = { "all_reduce(x) + 1",
                                            "scan(v in x, y from 0.0: y = y + all_reduce(v))",
                                            "ifelse(sum(x) > 0, all_gather(x), x)" };
    mc_flag_set("device", "cpu"); /* the tests' own device has no bundles */
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *x = mc_input(g, "x", MC_FLOAT64, 1), *y = mc_formula(g, formulas[i]);
        mc_function *f = mc_compile(g, &(mc_spec){ .input = &x, .ninput = 1, .output = &y, .noutput = 1 });
        REQUIRE(f, "%s: %s", formulas[i], mc_error(g));
        CHECK(mc_function_save(f, "/nowhere/ranks.mcb") == MC_EUNSUPPORTED &&
                  strstr(mc_last_error(), "ranks work together in it"),
              "%s: %s", formulas[i], mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(ranks_without_memory)
{
    ALLOC_FAIL_LOOP {
        mc_comm *comm[3];
        const mc_status s = mc_comm_local(3, comm);
        CHECK(s == MC_OK || ALLOC_FAILED, "no ranks, yet memory: %s", mc_last_error());
        for (int i = 0; i < 3 && s == MC_OK; i++) {
            mc_comm_free(comm[i]);
        }
        mc_comm *one = s == MC_OK ? mc_comm_open("local") : NULL;
        float *x = one ? calloc(20000, sizeof *x) : NULL;
        CHECK(!x ||
                  (mc_comm_reduce(one, "sum", MC_FLOAT32, x, 20000) == MC_OK &&
                   mc_comm_reduce(one, "sum", MC_FLOAT16, x, 20) == MC_OK &&
                   mc_comm_broadcast(one, 0, MC_FLOAT32, x, 20000) == MC_OK) ||
                  ALLOC_FAILED,
              "no sums, yet memory: %s", mc_last_error());
        free(x);
        mc_comm_free(one);
    }
}
