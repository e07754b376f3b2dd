/* t_ranks.c: ranks that work together: what they reduce, gather and send, by definition; gradients, by hand;
 * ranks that disagree, leave or do not come. Ranks are threads here; tests/ranks.py asks the same of
 * processes by MPI. */
#include "ranks.h"
#include "value/value.h"
#include <math.h>
#include <monochord_nn.h>
#include <monochord_ops.h>
#include <stdlib.h>
#include <string.h>

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

/* Loaded elsewhere, a rank would be alone without a word. */
TEST(functions_of_ranks_are_not_written)
{
    static const char *const formulas[] = { "all_reduce(x) + 1",
                                            "scan(v in x, y from 0.0: y = y + all_reduce(v))",
                                            "ifelse(sum(x) > 0, all_gather(x), x)" };
    mc_flag_set("device", "cpu"); /* the tests' own device has no bundles */
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_comm *comm[2];
        mc_graph *g = mc_graph_new();
        REQUIRE(mc_comm_local(2, comm) == MC_OK && mc_graph_ranks(g, "all", comm[0]) == MC_OK, "%s",
                mc_last_error());
        mc_node *x = mc_input(g, "x", MC_FLOAT64, 1), *y = mc_formula(g, formulas[i]);
        mc_function *f = mc_compile(g, &(mc_spec){ .input = &x, .ninput = 1, .output = &y, .noutput = 1 });
        REQUIRE(f, "%s: %s", formulas[i], mc_error(g));
        CHECK(mc_function_save(f, "/nowhere/ranks.mcb") == MC_EUNSUPPORTED &&
                  strstr(mc_last_error(), "ranks work together in it"),
              "%s: %s", formulas[i], mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
        mc_comm_free(comm[0]);
        mc_comm_free(comm[1]);
    }
}

/* Ranks that are alone, in a graph without ranks or in a group of one, have nothing to reduce. */
TEST(a_rank_that_is_alone_computes_no_collective)
{
    static const char text[] =
        "all_reduce(x, op='mean') * 2 + broadcast(x) + all_gather(x) - reduce_scatter(x)";
    for (int named = 0; named < 2; named++) {
        mc_comm *one = mc_comm_open(NULL);
        mc_graph *g = mc_graph_new();
        REQUIRE(one && (!named || mc_graph_ranks(g, "all", one) == MC_OK), "%s", mc_last_error());
        mc_node *x = mc_input(g, "x", MC_FLOAT64, 1), *y = mc_formula(g, text);
        mc_function *f = mc_compile(g, &(mc_spec){ .input = &x, .ninput = 1, .output = &y, .noutput = 1 });
        REQUIRE(f, "%s", mc_error(g));
        const char *left = mc_function_graph_text(f);
        CHECK(!strstr(left, "all_reduce") && !strstr(left, "broadcast") && !strstr(left, "_ranks"), "%s",
              left);
        mc_function_free(f);
        mc_graph_free(g);
        mc_comm_free(one);
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
