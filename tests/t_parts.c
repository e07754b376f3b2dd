/* t_parts.c: parts of values that are set or added to, whose start is a value of the call: one plan for all
 * starts, in place where nobody needs the old value. */
#include "moves_words.h"

static struct region one_row(int64_t i)
{
    return (struct region){ 1, COLUMNS, i, 1, 0 };
}
static struct region last_row(int64_t i)
{
    return (struct region){ 1, COLUMNS, ROWS - 1 - i, 1, 0 };
}
static struct region one_element(int64_t i)
{
    return (struct region){ 1, 1, i, 1, i % 4 };
}

static const struct write {
    const char *part;           /* of s */
    struct region (*region)(int64_t i);
    const char *value;          /* v, 5 rows of 4 numbers, or a part of it */
    int64_t columns;            /* of v; 1: it is one number */
} writes[] = {
    { "s[i * 5:(i + 1) * 5]",            batch,       "v",           4 },
    { "s[i * 5:(i + 1) * 5]",            batch,       "v[0, 0]",     1 },
    { "s[i * 5:(i + 1) * 5]",            batch,       "dot(v, e)",   4 },
    { "s[i * 2:i * 2 + 5, i % 3:i % 3 + 2]", corner,  "v[:, :2]",    4 },
    { "s[i + 12:i:-3]",                  backward,    "v[:4]",       4 },
    { "s[-i - 6:-i - 1]",                from_end,    "v",           4 },
    { "s[i]",                            one_row,     "v[0]",        4 },
    { "s[-i - 1]",                       last_row,    "v[0]",        4 },
    { "s[i, i % 4]",                     one_element, "v[0, 0]",     4 },
};

/* In plain loops. */
static void write_part(const struct write *w, bool adds, double *s, const double *v, int64_t i)
{
    const struct region e = w->region(i);
    for (int64_t k = 0; k < e.rows * e.columns; k++) {
        const int64_t r = k / e.columns, c = k % e.columns;
        double *to = &s[(e.first + e.step * r) * COLUMNS + e.column + c];
        *to = (adds ? *to : 0) + (w->columns == 1 ? v[0] : v[r * COLUMNS + c]);
    }
}

static void same_table(const mc_array *a, const double *want, const char *text, int64_t call)
{
    int64_t bad = 0;
    while (bad < (int64_t)ROWS * COLUMNS && at(a, bad) == want[bad]) {
        bad++;
    }
    CHECK(bad == (int64_t)ROWS * COLUMNS, "%s, call %lld: element %lld is %g, not %g", text, (long long)call,
          (long long)bad, at(a, bad), want[bad]);
}

struct writing { mc_graph *g; mc_shared *s; mc_function *f; };

static struct writing writing(const char *updates, const char *outputs, const char *mode)
{
    struct writing w = { .g = mc_graph_new() };
    mc_array *x = table(), *e = mc_array_new(MC_FLOAT64, MC_SHAPE(COLUMNS, COLUMNS));
    for (int k = 0; k < COLUMNS; k++) {
        mc_store_f64(MC_FLOAT64, e->data + (k * COLUMNS + k) * 8, 1);
    }
    w.s = mc_shared_new(w.g, "s", x);
    mc_shared_new(w.g, "e", e);
    mc_shared_new(w.g, "z", x);
    mc_input(w.g, "i", MC_INT64, 0);
    mc_input(w.g, "v", MC_FLOAT64, 2);
    w.f = made(w.g, mc_compile(w.g, &(mc_spec){ .inputs = "i, v",
                                                .outputs = outputs,
                                                .updates = updates,
                                                .mode = mode,
                                                .on_unused = "ignore" }));
    mc_array_unref(&x);
    mc_array_unref(&e);
    return w;
}

static void free_writing(struct writing *w)
{
    mc_function_free(w->f);
    mc_graph_free(w->g);
}

static mc_array *numbers(int64_t call, double *out)
{
    mc_array *v = mc_array_new(MC_FLOAT64, MC_SHAPE(BATCH, COLUMNS));
    for (int64_t k = 0; k < BATCH * COLUMNS; k++) {
        out[k] = (double)(1000 + call * 32 + k);
        mc_store_f64(MC_FLOAT64, v->data + k * 8, out[k]);
    }
    return v;
}

static void whole(double *want)
{
    for (int64_t k = 0; k < (int64_t)ROWS * COLUMNS; k++) {
        want[k] = element(k / COLUMNS, k % COLUMNS);
    }
}

/* Is the new value of update `u` made in the variable's own memory? */
static bool in_place(const mc_function *f, int u)
{
    return f->plans && f->plans->slot[f->code->program.update[u]].base == BASE_SHARED;
}

static void run_write(const struct write *t, bool adds, bool update, const char *mode)
{
    char text[120], line[160];
    snprintf(text, sizeof text, "%s_subtensor(%s, %s)", adds ? "inc" : "set", t->part, t->value);
    snprintf(line, sizeof line, "s = %s", text);
    struct writing w = writing(update ? line : "", update ? "" : text, mode);
    static double want[ROWS * COLUMNS];
    whole(want);
    for (int64_t k = 0; k < 12; k++) {
        const int64_t i = k * 7 % 12 + (k > 6 ? 180 : 0);
        double n[BATCH * COLUMNS];
        mc_array *v = numbers(k, n), *y = NULL;
        if (!update) {
            whole(want);
        }
        write_part(t, adds, want, n, i);
        fine(update ? mc_call(w.f, MC_IN(i, v), MC_NONE) : mc_call(w.f, MC_IN(i, v), MC_OUT(&y)));
        y = update ? mc_shared_get(w.s) : y;
        same_table(y, want, text, k);
        mc_array_unref(&y);
        mc_array_unref(&v);
    }
    CHECK(w.f->planned == 1, "%s, %s: %lld plans", text, mode, (long long)w.f->planned);
    if (update && w.f->code->backend->starts && w.f->code->mode == MODE_FAST_RUN) {
        CHECK(in_place(w.f, 0), "%s: the variable is copied", text);
    }
    free_writing(&w);
}

TEST(one_plan_for_all_starts_of_a_part_that_is_set)
{
    for (size_t k = 0; k < NELEM(writes); k++) {
        for (int adds = 0; adds < 2; adds++) {
            run_write(&writes[k], adds, true, "FAST_RUN");
            run_write(&writes[k], adds, false, "FAST_RUN");
        }
        run_write(&writes[k], false, true, "FAST_COMPILE");
    }
    run_write(&writes[0], true, true, "DEBUG");
    run_write(&writes[0], true, true, "NANGUARD");
}

/* Parts that are set and read in one call: those that are read are as before the call. */
TEST(parts_that_are_set_and_read_in_one_call)
{
    struct writing w = writing(
        "s = set_subtensor(inc_subtensor(s[i * 5:(i + 1) * 5], v)[i * 3 + 2:i * 3 + 7], "
        "s[i * 3:i * 3 + 5]); z = inc_subtensor(z[i * 4:i * 4 + 5], s[i * 2:i * 2 + 5])",
        "s[i * 5:(i + 1) * 5] * 2, sum(z[i * 4:i * 4 + 5])", "FAST_RUN");
    static double s[ROWS * COLUMNS], z[ROWS * COLUMNS], old[ROWS * COLUMNS];
    whole(s);
    whole(z);
    mc_shared *second = mc_shared_named(w.g, "z");
    for (int64_t k = 0; k < 12; k++) {
        const int64_t i = k * 7 % 12;
        double n[BATCH * COLUMNS], sum = 0;
        mc_array *v = numbers(k, n), *y[2] = { NULL };
        memcpy(old, s, sizeof s);
        fine(mc_call(w.f, MC_IN(i, v), MC_OUT(&y[0], &y[1])));
        for (int64_t e = 0; e < BATCH * COLUMNS; e++) {
            const double was = old[i * 5 * COLUMNS + e];
            sum += z[i * 4 * COLUMNS + e];
            CHECK(at(y[0], e) == 2 * was, "call %lld: %g, not %g", (long long)k, at(y[0], e), 2 * was);
            s[i * 5 * COLUMNS + e] += n[e];
        }
        CHECK(at(y[1], 0) == sum, "call %lld: %g, not %g", (long long)k, at(y[1], 0), sum);
        memcpy(s + (i * 3 + 2) * COLUMNS, old + i * 3 * COLUMNS, BATCH * COLUMNS * sizeof *s);
        for (int64_t e = 0; e < BATCH * COLUMNS; e++) {
            z[i * 4 * COLUMNS + e] += old[i * 2 * COLUMNS + e];
        }
        mc_array *now[2] = { mc_shared_get(w.s), mc_shared_get(second) };
        same_table(now[0], s, "s", k);
        same_table(now[1], z, "z", k);
        for (int j = 0; j < 2; j++) {
            mc_array_unref(&now[j]);
            mc_array_unref(&y[j]);
        }
        mc_array_unref(&v);
    }
    CHECK(w.f->planned == 1 || !moves_all(w.f), "%lld plans", (long long)w.f->planned);
    free_writing(&w);
}

/* The old value that another update takes, or that is a result, is not written over. */
TEST(a_variable_whose_old_value_is_kept_is_not_set_in_place)
{
    struct writing w = writing("s = set_subtensor(s[i], v[0]); z = s", "s", "FAST_RUN");
    static double s[ROWS * COLUMNS], old[ROWS * COLUMNS];
    whole(s);
    mc_shared *second = mc_shared_named(w.g, "z");
    for (int64_t k = 0; k < 6; k++) {
        double n[BATCH * COLUMNS];
        mc_array *v = numbers(k, n), *y = NULL;
        memcpy(old, s, sizeof s);
        memcpy(s + k * 9 * COLUMNS, n, COLUMNS * sizeof *s);
        fine(mc_call(w.f, MC_IN(k * 9, v), MC_OUT(&y)));
        same_table(y, old, "the result", k);
        mc_array *now[2] = { mc_shared_get(w.s), mc_shared_get(second) };
        same_table(now[0], s, "s", k);
        same_table(now[1], old, "z", k);
        mc_array_unref(&now[0]);
        mc_array_unref(&now[1]);
        mc_array_unref(&y);
        mc_array_unref(&v);
    }
    free_writing(&w);
}

/* Where a part is clipped its size is another: a plan for each size, which the other calls keep. */
TEST(clipped_parts_have_plans_of_their_own)
{
    struct writing w = writing("s = inc_subtensor(s[i * 5 + 2:i * 5 + 7], v[0, 0])", "", "FAST_RUN");
    static const int64_t order[] = { 3, 199, 4, 200, 0, 199, 300, 198, -1, 3 };
    static double want[ROWS * COLUMNS];
    whole(want);
    for (size_t k = 0; k < NELEM(order); k++) {
        double n[BATCH * COLUMNS];
        mc_array *v = numbers((int64_t)k, n);
        int64_t from = order[k] * 5 + 2, to = from + 5; /* Python's: -3:2 is 997:2, which is empty */
        from = from < 0 ? from + ROWS : from;
        for (int64_t e = from * COLUMNS; e < (to < ROWS ? to : ROWS) * COLUMNS; e++) {
            want[e] += n[0];
        }
        fine(mc_call(w.f, MC_IN(order[k], v), MC_NONE));
        mc_array *now = mc_shared_get(w.s);
        same_table(now, want, "clipped", order[k]);
        mc_array_unref(&now);
        mc_array_unref(&v);
    }
    CHECK(w.f->planned == (w.f->code->backend->starts ? 3 : 1), "%lld plans", (long long)w.f->planned);
    free_writing(&w);
}

/* A ring of rows, and one of slices: where they go on is a shared variable, which the call changes. */
TEST(rings_whose_place_is_a_shared_variable)
{
    enum { RING = 12 };
    mc_graph *g = mc_graph_new();
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(RING, COLUMNS)),
             *z = mc_array_new(MC_FLOAT64, MC_SHAPE(RING));
    mc_shared *ring = mc_shared_new(g, "x", x), *sums = mc_shared_new(g, "z", z);
    scalar(g, "place", MC_INT64, 0);
    mc_input(g, "v", MC_FLOAT64, 1);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "v",
                                     .updates = "x = set_subtensor(x[place], v); "
                                                "z = inc_subtensor(z[place:place + 3], v[:1][0]); "
                                                "place = (place + 1) % 12" }));
    double want[RING][COLUMNS] = { { 0 } }, sum[RING] = { 0 };
    for (int64_t k = 0; k < 30; k++) {
        mc_array *v = mc_array_new(MC_FLOAT64, MC_SHAPE(COLUMNS));
        for (int64_t c = 0; c < COLUMNS; c++) {
            want[k % RING][c] = (double)(k * 10 + c);
            mc_store_f64(MC_FLOAT64, v->data + c * 8, want[k % RING][c]);
        }
        for (int64_t e = k % RING; e < k % RING + 3 && e < RING; e++) {
            sum[e] += (double)(k * 10);
        }
        fine(mc_call(f, MC_IN(v), MC_NONE));
        for (int64_t e = 0; e < RING * COLUMNS; e++) {
            CHECK(shared_at(ring, e) == want[e / COLUMNS][e % COLUMNS], "call %lld: element %lld is %g",
                  (long long)k, (long long)e, shared_at(ring, e));
        }
        for (int64_t e = 0; e < RING; e++) {
            CHECK(shared_at(sums, e) == sum[e], "call %lld: sum %lld is %g, not %g", (long long)k,
                  (long long)e, shared_at(sums, e), sum[e]);
        }
        mc_array_unref(&v);
    }
    CHECK(f->planned == 1, "%lld plans", (long long)f->planned);
    for (int i = 0; i < f->code->nstep; i++) {
        CHECK(!f->code->backend->starts || !f->plans->step[i].exec || !f->plans->step[i].exec->ops->host,
              "step %d runs on the host", i);
    }
    mc_array_unref(&x);
    mc_array_unref(&z);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A place in a shared variable: out of range, a value that does not fit, a step of 0. */
TEST(a_failed_call_sets_no_part_at_a_place_of_the_device)
{
    static const struct {
        const char *part;
        int64_t place;
        mc_status status;
        const char *message;
    } some[] = {
        { "s[place]", ROWS, MC_EINDEX, "index 1000 is out of range for axis 0 with size 1000" },
        { "s[place]", -1001, MC_EINDEX, "index -1001 is out of range" },
        { "s[0, place]", 4, MC_EINDEX, "index 4 is out of range for axis 1 with size 4" },
        { "s[place:place + 5]", ROWS - 3, MC_ESHAPE, "" },
        { "s[place:place + 10:place]", 0, MC_EINDEX, "the step of the slice is 0" },
    };
    static const char *const value[] = { "v[0]", "v[0]", "v[0, 0]", "v", "v[:1]" };
    for (size_t k = 0; k < NELEM(some); k++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = table();
        mc_shared *s = mc_shared_new(g, "s", x), *place = scalar(g, "place", MC_INT64, 1);
        mc_input(g, "v", MC_FLOAT64, 2);
        char line[120];
        snprintf(line, sizeof line, "s = set_subtensor(%s, %s)", some[k].part, value[k]);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "v", .updates = line }));
        static double want[ROWS * COLUMNS];
        whole(want);
        for (int64_t call = 0; call < 6; call++) {
            double n[BATCH * COLUMNS];
            mc_array *v = numbers(call, n), *where = mc_array_scalar(MC_INT64, 0), *now = NULL;
            mc_store_i64(MC_INT64, where->data, some[k].place);
            fine(mc_shared_set(place, where));
            mc_status st = mc_call(f, MC_IN(v), MC_NONE);
            st = st == MC_OK ? mc_synchronize() : st;
            refused(st, some[k].status, some[k].message);
            now = mc_shared_get(s);
            same_table(now, want, line, call);
            mc_array_unref(&now);
            mc_array_unref(&where);
            mc_array_unref(&v);
        }
        mc_array_unref(&x);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* The same in the body of a loop, where the place is another at each step. */
TEST(parts_that_steps_of_a_loop_set)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "h", MC_FLOAT64, 1);
    mc_input(g, "t", MC_INT64, 1);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "h, t",
                                     .outputs = "scan(k in t, s from h: s = "
                                                "inc_subtensor(s[k:k + 2], s[0] * 0 + k))[-1]" }));
    static const int64_t places[] = { 3, 0, 8, 9, 3 };
    double want[10] = { 0 };
    mc_array *h = mc_array_new(MC_FLOAT64, MC_SHAPE(10)), *t = mc_array_new(MC_INT64, MC_SHAPE(5));
    for (int k = 0; k < 5; k++) {
        mc_store_i64(MC_INT64, t->data + k * 8, places[k]);
        for (int64_t e = places[k]; e < places[k] + 2 && e < 10; e++) {
            want[e] += (double)places[k];
        }
    }
    for (int call = 0; call < 4; call++) {
        mc_array *y = NULL;
        fine(mc_call(f, MC_IN(h, t), MC_OUT(&y)));
        for (int64_t e = 0; e < 10; e++) {
            CHECK(at(y, e) == want[e], "call %d: element %lld is %g, not %g", call, (long long)e, at(y, e),
                  want[e]);
        }
        mc_array_unref(&y);
    }
    mc_array_unref(&h);
    mc_array_unref(&t);
    mc_function_free(f);
    mc_graph_free(g);
}

/* A value whose axis happens to have size 1 does not fill a part: only a size that was promised does. */
TEST(a_value_of_size_one_fills_no_part_by_chance)
{
    static const char *const part[] = { "s[i * 5:(i + 1) * 5]", "s[5:10]" };
    for (size_t k = 0; k < NELEM(part); k++) {
        char line[80];
        snprintf(line, sizeof line, "s = set_subtensor(%s, v)", part[k]);
        struct writing w = writing(line, "", "FAST_RUN");
        mc_array *v = mc_array_new(MC_FLOAT64, MC_SHAPE(1, COLUMNS));
        for (int64_t i = 0; i < 3; i++) {
            refused(mc_call(w.f, MC_IN(i, v), MC_NONE), MC_ESHAPE, "declare the size 1 to broadcast it");
        }
        mc_array_unref(&v);
        free_writing(&w);
    }
}

/* A call that fails sets nothing: a place that is out of range, and an index that a step finds to be. */
TEST(a_failed_call_sets_no_part)
{
    mc_graph *g = mc_graph_new();
    mc_array *x = table();
    mc_shared *s = mc_shared_new(g, "s", x);
    mc_input(g, "i", MC_INT64, 0);
    mc_input(g, "k", MC_INT64, 1);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "i, k",
                                                       .updates = "s = set_subtensor(s[i], "
                                                                  "sum(s[k], axis=0))" }));
    static double want[ROWS * COLUMNS];
    whole(want);
    for (int64_t call = 0; call < 12; call++) {
        const int64_t i = call % 3 == 1 ? ROWS + call : call * 5;
        mc_array *k = mc_array_new(MC_INT64, MC_SHAPE(2)), *now = NULL;
        const int64_t bad = call % 3 == 2 ? ROWS : call;
        mc_store_f64(MC_INT64, k->data, (double)call + 1);
        mc_store_f64(MC_INT64, k->data + 8, (double)bad);
        mc_status st = mc_call(f, MC_IN(i, k), MC_NONE);
        st = st == MC_OK ? mc_synchronize() : st;
        if (call % 3) {
            refused(st, MC_EINDEX, "out of range");
        } else {
            fine(st);
            for (int64_t c = 0; c < COLUMNS; c++) {
                want[i * COLUMNS + c] = want[(call + 1) * COLUMNS + c] + want[bad * COLUMNS + c];
            }
        }
        now = mc_shared_get(s);
        same_table(now, want, "after a failure", call);
        mc_array_unref(&now);
        mc_array_unref(&k);
    }
    CHECK(!f->code->backend->starts || in_place(f, 0), "the variable is copied");
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}
