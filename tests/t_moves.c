/* t_moves.c: slices whose start is a value of the call: the plan moves, and is not made again. */
#include "moves_words.h"

static const struct row {
    const char *formula;
    struct region (*region)(int64_t i);
    int plans;
} rows[] = {
    { "x[i * 5:(i + 1) * 5] * 2",                            batch,    1 },
    { "dot(x[i * 5:(i + 1) * 5], w)",                        batch,    1 },
    { "dot(x.T[:, i * 5:(i + 1) * 5].T, w)",                 batch,    1 },
    { "reshape(x[i * 5:(i + 1) * 5], [20]).reshape([5, 4]) * 2", batch, 1 },
    { "x[i * 2:i * 2 + 5, i % 3:i % 3 + 2] * 2",             corner,   1 },
    { "x[i + 12:i:-3] * 2",                                  backward, 1 },
    { "x[-i - 6:-i - 1] * 2",                                from_end, 1 },
    { "x[i * 4:i * 4 + 8][i % 3:i % 3 + 2] * 2",             inner,    1 },
};

static void check_region(const struct row *r, const mc_array *y, int64_t i)
{
    const struct region e = r->region(i);
    CHECK(y->dims[0] == e.rows && y->dims[1] == e.columns, "%s, %lld: (%lld, %lld)", r->formula, (long long)i,
          (long long)y->dims[0], (long long)y->dims[1]);
    for (int64_t k = 0; k < e.rows * e.columns; k++) {
        const double want = 2 * element(e.first + e.step * (k / e.columns), e.column + k % e.columns);
        CHECK(at(y, k) == want, "%s, %lld: element %lld is %g, not %g", r->formula, (long long)i,
              (long long)k, at(y, k), want);
    }
}

static mc_function *compiled(mc_graph *g, const struct row *r, bool shared, const char *mode)
{
    mc_array *x = table();
    mc_array *w = mc_array_new(MC_FLOAT64, MC_SHAPE(COLUMNS, COLUMNS));
    for (int k = 0; k < COLUMNS; k++) {
        mc_store_f64(MC_FLOAT64, w->data + (k * COLUMNS + k) * 8, 2);
    }
    if (shared) {
        mc_shared_new(g, "x", x);
    } else {
        mc_input(g, "x", MC_FLOAT64, 2);
    }
    mc_shared_new(g, "w", w);
    mc_input(g, "i", MC_INT64, 0);
    mc_array_unref(&x);
    mc_array_unref(&w);
    return made(
        g, mc_compile(g, &(mc_spec){ .inputs = shared ? "i" : "i, x", .outputs = r->formula, .mode = mode }));
}

static void run_row(const struct row *r, bool shared, const char *mode)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, r, shared, mode);
    mc_array *x = table();
    for (int64_t k = 0; k < 200; k++) {
        const int64_t i = k * 7 % 200;
        mc_array *y = NULL;
        fine(shared ? mc_call(f, MC_IN(i), MC_OUT(&y)) : mc_call(f, MC_IN(i, x), MC_OUT(&y)));
        check_region(r, y, i);
        mc_array_unref(&y);
    }
    CHECK(f->planned == r->plans, "%s, %s, %s: %lld plans", r->formula, shared ? "shared" : "input", mode,
          (long long)f->planned);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(one_plan_for_all_starts_of_a_slice)
{
    for (size_t k = 0; k < NELEM(rows); k++) {
        run_row(&rows[k], true, "FAST_RUN");
        run_row(&rows[k], false, "FAST_RUN");
        run_row(&rows[k], true, "FAST_COMPILE");
    }
    run_row(&rows[0], true, "DEBUG");
}

/* Where a slice is clipped the size is another: a plan of its own, which does not spoil the first. */
TEST(clipped_slices_have_plans_of_their_own)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, &rows[0], true, "FAST_RUN");
    static const int64_t order[] = { 3, 199, 200, 4, 1000, 0, 200, 198 };
    for (size_t k = 0; k < NELEM(order); k++) {
        mc_array *y = NULL;
        fine(mc_call(f, MC_IN(order[k]), MC_OUT(&y)));
        check_region(&rows[0], y, order[k]);
        mc_array_unref(&y);
    }
    CHECK(f->planned == 2, "%lld plans", (long long)f->planned);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A value that determines a size as well, or on which the result depends in another way. */
TEST(other_uses_of_the_start_are_seen)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = table();
    mc_shared_new(g, "x", x);
    mc_input(g, "i", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "i",
                                                       .outputs = "sum(x[i:i + 5]) + sum(arange(i)), "
                                                                  "x[i:i + 5] * i, i + 1" }));
    for (int64_t k = 0; k < 30; k++) {
        const int64_t i = k * 7 % 10;
        mc_array *y[3] = { NULL };
        double sum = (double)(i * (i - 1) / 2);
        for (int64_t e = 0; e < 5 * COLUMNS; e++) {
            sum += element(i + e / COLUMNS, e % COLUMNS);
        }
        fine(mc_call(f, MC_IN(i), MC_OUT(&y[0], &y[1], &y[2])));
        CHECK(at(y[0], 0) == sum, "%lld: %g, not %g", (long long)i, at(y[0], 0), sum);
        CHECK(at(y[1], 6) == (double)i * element(i + 1, 2), "%lld: %g", (long long)i, at(y[1], 6));
        CHECK(at(y[2], 0) == (double)(i + 1), "%lld: %g", (long long)i, at(y[2], 0));
        for (int j = 0; j < 3; j++) {
            mc_array_unref(&y[j]);
        }
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* An index that is out of range fails as in a first call, and the plan is as good as before. */
TEST(a_plan_that_cannot_move_is_left_as_it_was)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = table(), *y = NULL;
    mc_shared_new(g, "x", x);
    mc_input(g, "i", MC_INT64, 0);
    mc_function *f = made(g,
                          mc_compile(g, &(mc_spec){ .inputs = "i", .outputs = "x[i:i + 5] * 2 + x[i * 3]" }));
    for (int64_t k = 0; k < 20; k++) {
        const int64_t i = k % 2 ? ROWS / 2 + k : k;
        const mc_status s = mc_call(f, MC_IN(i), MC_OUT(&y));
        if (i * 3 >= ROWS) {
            CHECK(s == MC_EINDEX && strstr(mc_last_error(), "out of range"), "%s", mc_last_error());
            continue;
        }
        fine(s);
        CHECK(at(y, 5) == 2 * element(i + 1, 1) + element(3 * i, 1), "%lld: %g", (long long)i, at(y, 5));
        mc_array_unref(&y);
    }
    CHECK(f->planned == 1, "%lld plans", (long long)f->planned);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- values that follow from the start and are read as data, too ---- */

TEST(values_of_plan_time_are_renewed_when_the_plan_moves)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = table();
    mc_shared_new(g, "x", x);
    mc_input(g, "i", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "i",
                                                       .outputs = "x[i * 5:(i + 1) * 5] * "
                                                                  "reshape(cast(i * 5, float64), [1, 1]), "
                                                                  "reshape(i * 5, [1]), i * 5" }));
    for (int64_t k = 0; k < 20; k++) {
        const int64_t i = k * 7 % 20;
        mc_array *y[3] = { NULL };
        fine(mc_call(f, MC_IN(i), MC_OUT(&y[0], &y[1], &y[2])));
        for (int64_t e = 0; e < BATCH * COLUMNS; e++) {
            const double want = (double)(i * 5) * element(i * BATCH + e / COLUMNS, e % COLUMNS);
            CHECK(at(y[0], e) == want, "%lld: %g, not %g", (long long)i, at(y[0], e), want);
        }
        CHECK(at(y[1], 0) == (double)(i * 5), "%lld: %g", (long long)i, at(y[1], 0));
        CHECK(at(y[2], 0) == (double)(i * 5), "%lld: %g", (long long)i, at(y[2], 0));
        for (int j = 0; j < 3; j++) {
            mc_array_unref(&y[j]);
        }
    }
    CHECK(f->planned == 1, "%lld plans", (long long)f->planned);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- slices of what other steps compute ---- */

/* Sums of rows so far: row r of the slice is that of x up to row first + step * r. */
TEST(slices_of_computed_values_move)
{
    static const struct row some[] = {
        { "cumsum(x, axis=0)[i * 5:(i + 1) * 5] * 2",                            batch,    1 },
        { "cumsum(x, axis=0)[i * 2:i * 2 + 5, i % 3:i % 3 + 2] * 2",             corner,   1 },
        { "cumsum(x, axis=0)[i + 12:i:-3] * 2",                                  backward, 1 },
        { "cumsum(x, axis=0)[-i - 6:-i - 1] * 2",                                from_end, 1 },
        { "cumsum(x, axis=0)[i * 4:i * 4 + 8][i % 3:i % 3 + 2] * 2",             inner,    1 },
        { "dot(cumsum(x, axis=0).T[:, i * 5:(i + 1) * 5].T, w)",                 batch,    1 },
    };
    static double sums[ROWS][COLUMNS];
    for (int64_t k = 0; k < (int64_t)ROWS * COLUMNS; k++) {
        const int64_t r = k / COLUMNS, c = k % COLUMNS;
        sums[r][c] = element(r, c) + (r ? sums[r - 1][c] : 0);
    }
    for (size_t n = 0; n < NELEM(some); n++) {
        mc_graph *g = mc_graph_new();
        mc_function *f = compiled(g, &some[n], true, "FAST_RUN");
        for (int64_t k = 0; k < 30; k++) {
            const int64_t i = k * 7 % 30;
            const struct region e = some[n].region(i);
            mc_array *y = NULL;
            fine(mc_call(f, MC_IN(i), MC_OUT(&y)));
            for (int64_t m = 0; m < e.rows * e.columns; m++) {
                const double want = 2 * sums[e.first + e.step * (m / e.columns)][e.column + m % e.columns];
                CHECK(at(y, m) == want, "%s, %lld: element %lld is %g, not %g", some[n].formula, (long long)i,
                      (long long)m, at(y, m), want);
            }
            mc_array_unref(&y);
        }
        CHECK(f->planned == some[n].plans || !moves_all(f), "%s: %lld plans", some[n].formula,
              (long long)f->planned);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Training: gradients and updates over minibatches of shared data, of which a part is set as well. */
TEST(updates_at_a_start_that_moves)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = table(), *none = mc_array_new(MC_FLOAT64, MC_SHAPE(ROWS)), *y = NULL;
    mc_shared_new(g, "x", x);
    mc_shared *s = mc_shared_new(g, "s", none);
    mc_input(g, "i", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){
                                               .inputs = "i",
                                               .outputs = "sum(grad(sum(sqr(x[i * 5:(i + 1) * 5])), x))",
                                               .updates = "s = set_subtensor(s[i * 5:(i + 1) * 5], "
                                                          "sum(x[i * 5:(i + 1) * 5], axis=1))",
                                           }));
    for (int64_t i = 0; i < ROWS / BATCH; i++) {
        double sum = 0;
        for (int64_t e = 0; e < BATCH * COLUMNS; e++) {
            sum += 2 * element(i * BATCH + e / COLUMNS, e % COLUMNS);
        }
        fine(mc_call(f, MC_IN(i), MC_OUT(&y)));
        CHECK(at(y, 0) == sum, "%lld: %g, not %g", (long long)i, at(y, 0), sum);
        mc_array_unref(&y);
    }
    mc_array *sums = mc_shared_get(s);
    for (int64_t r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int64_t c = 0; c < COLUMNS; c++) {
            sum += element(r, c);
        }
        CHECK(at(sums, r) == sum, "row %lld: %g, not %g", (long long)r, at(sums, r), sum);
    }
    CHECK(f->planned == 1 || !moves_all(f), "%lld plans", (long long)f->planned);
    mc_array_unref(&sums);
    mc_array_unref(&x);
    mc_array_unref(&none);
    mc_function_free(f);
    mc_graph_free(g);
}
