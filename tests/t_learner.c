/* t_learner.c: nets that learn on many ranks: the same bits for any number of them, with whole and with
 * divided states; ranks that would learn something else; learners that cannot be made.  tests/ranks.py asks
 * the same of processes by MPI. */
#include "ranks.h"
#include "value/value.h"
#include <math.h>
#include <monochord_nn.h>
#include <monochord_ops.h>
#include <stdlib.h>
#include <string.h>

/* ---- a net that learns ---- */

static const char model[] =
    "input 1x6x6\nconv 4 3x3 rectify pad=1\nbatch_norm\npool 2x2\ndropout 0.3\ndense 5 tanh\n"
    "dense 3 softmax\npenalty l2 0.001\n";
/* of which one parameter has a bucket of its own */
static const char wide[] =
    "input 1x6x6\ndense 240000 tanh W=normal(0.01)\ndense 3 softmax W=normal(0.01)\npenalty l2 0.01\n";
struct learning { int64_t parts, examples[3]; const char *rule; bool shard; const char *model; };

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

/* Of a parameter: a sum in which each element has its own weight. */
static double weighed(mc_array *w)
{
    double sum = 0;
    for (int64_t i = 0; w && mc_array_dtype(w) == MC_FLOAT32 && i < mc_array_size(w); i++) {
        sum += (double)(i % 7 + 1) * ((const float *)mc_array_data(w))[i];
    }
    mc_array_unref(&w);
    return sum;
}

/* The bits of all parameters, states and sums after three batches. */
static void learn(struct job *j)
{
    const struct learning *l = j->arg;
    uint32_t bits = 0;
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    char text[400];
    snprintf(text, sizeof text, "%srule %s\n", l->model ? l->model : model, l->rule);
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
        j->number[6] += weighed(mc_shared_get(mc_net_param(net, NULL, i).shared));
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
                /* a rank has the rate, the step's number and the random stream whole; shares are padded */
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

/* Whole batches are one function then, short ones several; the tree of as many parts is the witness. */
TEST(a_part_a_rank_makes_the_step_of_the_tree)
{
    static const char *const rules[] = { "adam rate=0.01", "momentum rate=0.1 clip=2" };
    mc_flag_set("floatX", "float32");
    for (int k = 0; k < 12; k++) {
        const int ranks = 1 << k % 3;
        const struct learning tree = { ranks, { 8, k % 2 ? 5 : 8, k % 2 ? 8 : 1 }, rules[k / 6], k / 3 == 1 },
                              one = { 0, { 8, tree.examples[1], tree.examples[2] }, tree.rule, tree.shard };
        struct job job[2][MOST] = { { { 0 } } };
        by_ranks(ranks, learn, &tree, job[0]);
        by_ranks(ranks, learn, &one, job[1]);
        for (int r = 0; r < ranks; r++) {
            const double *a = job[0][r].number, *b = job[1][r].number;
            CHECK(job[0][r].status == MC_OK && job[1][r].status == MC_OK, "%s %s", job[0][r].says,
                  job[1][r].says);
            CHECK(b[0] == job[1][0].number[0], "case %d: ranks 0 and %d have other bits", k, r);
            CHECK(a[1] > 0 && fabs(a[1] - b[1]) < 2e-6 * a[1] && fabs(a[2] - b[2]) < 1e-5 &&
                      fabs(a[6] - b[6]) < 1e-4,
                  "case %d, rank %d of %d: cost %.9g and %.9g, wrong %g and %g, parameters %.9g and %.9g", k,
                  r, ranks, a[1], b[1], a[2], b[2], a[6], b[6]);
        }
    }
}

/* The cost has the penalty, which each step of the rule makes smaller by 1%. */
TEST(the_penalty_of_a_large_parameter_is_learned)
{
    static const struct learning tree = { 2, { 8, 8, 8 }, "sgd rate=0.5", .model = wide },
                                 one = { 0, { 8, 8, 8 }, "sgd rate=0.5", .model = wide };
    mc_flag_set("floatX", "float32");
    struct job job[2][MOST] = { { { 0 } } };
    by_ranks(2, learn, &tree, job[0]);
    by_ranks(2, learn, &one, job[1]);
    for (int r = 0; r < 2; r++) {
        const double *a = job[0][r].number, *b = job[1][r].number;
        CHECK(job[0][r].status == MC_OK && job[1][r].status == MC_OK, "%s %s", job[0][r].says,
              job[1][r].says);
        CHECK(a[1] > 0 && fabs(a[1] - b[1]) < 2e-6 * a[1], "rank %d: cost %.9g and %.9g", r, a[1], b[1]);
    }
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
