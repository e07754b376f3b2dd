/* t_bands.c: loops whose rows are divided into bands, one a thread: which bodies are, and that each row has
 * the bits that it has where one thread runs all rows. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "schedule/schedule.h"

#include <math.h>

enum { ARRAYS = 6, RESULTS = 4, THREADS = 4, LEAST = 8 };

struct sizes {
    int64_t steps, rows, hidden;
};

static mc_array *numbers(int rank, const int64_t *dims, uint32_t seed)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)mc_array_data(a))[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
    return a;
}

static void make_inputs(const struct sizes *n, mc_array *in[ARRAYS])
{
    in[0] = numbers(MC_SHAPE(n->steps, n->rows, 2 * n->hidden), 1);
    in[1] = numbers(MC_SHAPE(n->rows, n->hidden), 2);
    in[2] = numbers(MC_SHAPE(n->rows, n->hidden), 3);
    in[3] = numbers(MC_SHAPE(n->hidden, 2 * n->hidden), 4);
    in[4] = numbers(MC_SHAPE(n->hidden), 5);
    in[5] = numbers(MC_SHAPE(n->steps, n->rows), 6);
}

static void drop(mc_array **a, int n)
{
    for (int i = 0; i < n; i++) {
        mc_array_unref(&a[i]);
    }
}

/* The text with the number of columns in place of H, and twice that in place of G. */
static void with_sizes(char *to, size_t most, const char *text, int64_t hidden)
{
    size_t n = 0;
    for (; *text && n + 20 < most; text++) {
        if (*text == 'H' || *text == 'G') { /* no name and no op has them */
            n += (size_t)snprintf(to + n, most - n, "%lld", (long long)(*text == 'H' ? hidden : 2 * hidden));
        } else {
            to[n++] = *text;
        }
    }
    to[n] = 0;
}

/* by number; not every y depends on all of them */
#define COST "sum(y * y) + sum(x) + sum(U) + sum(h)"
static const char *const outputs[] = {
    [1] = "y", [2] = "y, z", [RESULTS] = "y, grad(" COST ", x), grad(" COST ", U), grad(" COST ", h)"
};

static mc_function *compiled(const char *text, int64_t hidden, int results, int threads)
{
    char line[1000];
    mc_graph *g = mc_graph_new();
    with_sizes(line, sizeof line,
               "input x float32[?, ?, G]; input h float32[?, H]; input m float32[?, H]; "
               "input U float32[H, G]; input b float32[H]; input s float32[?, ?]",
               hidden);
    mc_formula(g, line);
    with_sizes(line, sizeof line, text, hidden);
    mc_formula(g, line);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, h, m, U, b, s",
                                               .outputs = outputs[results],
                                               .threads = threads,
                                               .on_unused = "ignore" });
    CHECK(f, "%s: %s", text, mc_error(g));
    mc_graph_free(g);
    return f;
}

static mc_status call(mc_function *f, const struct sizes *n, int results, mc_array *r[RESULTS])
{
    mc_array *in[ARRAYS];
    memset(r, 0, RESULTS * sizeof r[0]);
    make_inputs(n, in);
    const mc_status s = mc_call(
        f, MC_IN(in[0], in[1], in[2], in[3], in[4], in[5]), results,
        (mc_arg[]){ mc_arg_slot(&r[0]), mc_arg_slot(&r[1]), mc_arg_slot(&r[2]), mc_arg_slot(&r[3]) });
    drop(in, ARRAYS);
    return s;
}

/* The bands of each loop of the newest plan: the fewest and the most. */
static void bands_of(const mc_function *f, int *fewest, int *most)
{
    *fewest = 1000;
    *most = 0;
    for (int i = 0; mc_newest_plan(f) && i < f->code->nstep; i++) {
        struct mc_loop_planned loop;
        if (mc_loop_planned(f, mc_newest_plan(f), i, &loop)) {
            *fewest = MC_MIN(*fewest, loop.bands);
            *most = MC_MAX(*most, loop.bands);
        }
    }
}

#define LSTM                                                                                            \
    "y = scan(p in x, c from m, h from h: p = dot(h, U) + p; i = sigmoid(p[:, :H]); f = tanh(p[:, H:]); " \
    "c = f * c + i * tanh(c + b); h = i * tanh(c); yield h)"
#define MGU                                                                                               \
    "y = scan(p in x, h from h: f = sigmoid(p[:, :H] + dot(h, U[:, :H])); "                              \
    "n = tanh(p[:, H:] + dot(f * h, U[:, H:])); h = (1 - f) * h + f * n; yield h)"

static const struct body {
    const char *text;
    bool bands, gradients;
} bodies[] = {
    { LSTM, true, true },
    { MGU, true, true },
    { "y = scan(p in x[:, :, :H], h from h: h = tanh(p + dot(h, U[:, H:]) + b); yield h)", true, true },
    { "y = scan(p in x, h from h: h = tanh(p[:, :H] + dot(h, transpose(U[:, :H]))); yield last h)", true, false },
    /* along the other axis */
    { "y = scan(p in x, h from h: h = softmax(p[:, :H] + dot(h, U[:, H:])); yield h)", true, false },
    { "y = scan(p in x, h from h: h = h - mean(h, axis=1, keepdims=True) + dot(p, transpose(U)); yield max(h, axis=1))",
      true, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H])[:, ::-1] + p[:, :H]); yield h)", true, false },
    /* constants and sequences with rows and without; what is no state but collected */
    { "y = scan(p in x, h from h: h = tanh(m * dot(h, U[:, :H]) + p[:, H:]); yield h)", true, false },
    { "y = scan(p in x, q in s, h from h: h = tanh(expand_dims(q, 1) * dot(h, U[:, :H]) + b); yield h * 2)", true, false },
    { "y = scan(p in x, h from h[:, ::-1]: t = dot(h, U); h = tanh(t[:, :H]); yield concatenate([t, p], axis=1))",
      false, false }, /* a copy, by the host */
    { "y = scan(p in x, h from h[:, ::-1]: t = dot(h, U); h = tanh(t[:, :H]); yield t * 2)", true, false },
    /* rows meet */
    { "y = scan(p in x, h from h: h = tanh(dot(h[::-1], U[:, :H])); yield h)", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H]) - mean(h, axis=0)); yield h)", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H]) - max(h, axis=0)); yield h)", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(dot(h, transpose(h)), h)); yield h)", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H])); yield sum(h, axis=0))", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H])); yield sum(h))", false, false },
    { "y = scan(p in x, h from h, v from U: h = tanh(dot(h, v[:, :H])); v = v * 0.5; yield h)", false, false },
    /* numbers of the rows, of all rows, and of the steps */
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H]) * cast(size(h, 0), dtype='float32')); yield h)", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H]) + cast(expand_dims(arange(size(h, 0)), 1), dtype='float32')); yield h)", false, false },
    { "y = scan(p in x, h from h: h = tanh(dot(h, U[:, :H])); yield h; halt max(h) > 100)", false, false },
    { "y = scan(p in x, t from b[0], h from h: t, h = t + 1, tanh(dot(h, U[:, :H]) * t); yield h)", false, false },
    { "y = scan(p in x, h from h: h = sin(dot(h, U[:, :H])); yield h)", false, false },
};

static const struct sizes sizes[] = { { 60, 33, 50 }, { 40, 64, 49 }, { 150, 16, 24 }, { 30, 35, 130 } };

TEST(which_bodies_have_bands)
{
    const struct sizes n = { 40, 50, 64 };
    for (size_t i = 0; i < NELEM(bodies); i++) {
        const int results = bodies[i].gradients ? RESULTS : 1;
        mc_function *f = compiled(bodies[i].text, n.hidden, results, THREADS);
        mc_array *r[RESULTS] = { 0 };
        int fewest, most;
        if (f && CHECK(call(f, &n, results, r) == MC_OK, "%s: %s", bodies[i].text, mc_last_error())) {
            bands_of(f, &fewest, &most);
            CHECK(fewest == most && most == (bodies[i].bands ? THREADS : 0), "%s: %d to %d bands",
                  bodies[i].text, fewest, most);
        }
        drop(r, RESULTS);
        mc_function_free(f);
    }
}

TEST(bands_have_the_bits_of_one_thread)
{
    int divided = 0;
    for (size_t i = 0; i < NELEM(bodies) * NELEM(sizes); i++) {
        const struct body *b = &bodies[i / NELEM(sizes)];
        const struct sizes *n = &sizes[i % NELEM(sizes)];
        if (!b->bands) {
            continue;
        }
        const int results = b->gradients ? RESULTS : 1;
        mc_array *one[RESULTS] = { 0 }, *r[RESULTS] = { 0 };
        for (int threads = 1; threads <= THREADS; threads++) {
            mc_function *f = compiled(b->text, n->hidden, results, threads);
            mc_array **to = threads == 1 ? one : r;
            int fewest, most;
            REQUIRE(f, "%s", b->text);
            REQUIRE(call(f, n, results, to) == MC_OK, "%s: %s", b->text, mc_last_error());
            bands_of(f, &fewest, &most);
            const int64_t want = MC_MIN(n->rows / LEAST, (int64_t)threads);
            CHECK(most == 0 || most == want, "%s: rows %lld: %d bands on %d threads", b->text,
                  (long long)n->rows, most, threads);
            divided += most > 1;
            for (int k = 0; k < RESULTS && to == r; k++) {
                CHECK(!one[k] == !r[k] && (!r[k] || mc_array_same_bits(one[k], r[k])),
                      "%s: rows %lld, columns %lld, threads %d: result %d has other bits", b->text,
                      (long long)n->rows, (long long)n->hidden, threads, k);
            }
            drop(r, RESULTS);
            mc_function_free(f);
        }
        drop(one, RESULTS);
    }
    CHECK(divided >= 60, "%d functions had bands", divided);
}

/* ---- random bodies ---- */

struct drawn {
    char text[4000];
    int names;                  /* r0, r1, ...: values of `rows` rows and H columns */
};

static void term(struct drawn *d, char *to, size_t most, int deep)
{
    static const char *const forms[] = {
        "(%s + %s)", "(%s * %s * 0.5)", "tanh(%s - %s)", "maximum(%s, %s)", "(m * %s - %s)",
        "(dot(%s, U[:, :H]) * 0.1 - %s)", "dot(%s, transpose(U[:, H:]) * 0.1) * tanh(%s)",
        "softmax(%s + %s)", "(%s * b + %s[:, ::-1])", "(%s - mean(%s, axis=1, keepdims=True))",
        "transpose(transpose(%s) * 0.5 + transpose(%s))", "where(%s > 0, %s, 0.25)",
        "tanh(dot(concatenate([%s, %s], axis=1), transpose(U)))",
        "reshape(reshape(%s * 0.5, [-1, 2, H // 2]) + reshape(%s, [-1, 2, H // 2]), [-1, H])",
        /* rows meet */
        "tanh(%s - max(%s, axis=0))", "(%s[::-1] - %s)", "tanh(dot(dot(%s, transpose(%s)), h) * 0.01)",
        "(%s * cast(size(%s, 0), dtype='float32') * 0.01)"
    };
    const size_t n = NELEM(forms) - (test_random() % 8 ? 4 : 0);
    char a[600], b[600];
    for (int i = 0; i < 2; i++) {
        if (deep > 0 && test_random() % 3 == 0) {
            term(d, i ? b : a, sizeof a, deep - 1);
        } else {
            snprintf(i ? b : a, sizeof a, "r%d", (int)(test_random() % (uint64_t)d->names));
        }
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(to, most, forms[test_random() % n], a, b);
#pragma GCC diagnostic pop
}

static void draw_body(struct drawn *d)
{
    static const char *const yields[] = { "h, c", "last h, c * 2", "max(h, axis=1), last c", "c * r0, r1" };
    char one[1300];
    const int lines = 1 + (int)(test_random() % 3);
    d->names = 4;
    snprintf(d->text, sizeof d->text,
             "y, z = scan(p in x, q in s, h from h, c from m: r0 = h; r1 = p[:, :H]; r2 = c; "
             "r3 = p[:, H:] * expand_dims(q, 1)");
    for (int i = 0; i < lines; i++) {
        const size_t at = strlen(d->text);
        term(d, one, sizeof one, 2);
        snprintf(d->text + at, sizeof d->text - at, "; r%d = %s", d->names, one);
        d->names++;
    }
    const size_t at = strlen(d->text);
    term(d, one, sizeof one, 1);
    snprintf(d->text + at, sizeof d->text - at, "; h, c = tanh(r%d), tanh(%s); yield %s)", d->names - 1, one,
             yields[test_random() % NELEM(yields)]);
}

TEST(random_bodies_have_the_bits_of_one_thread)
{
    int divided = 0, drawn = test_is_full() ? 150 : 24;
    for (int i = 0; i < drawn; i++) {
        struct drawn d;
        draw_body(&d);
        const struct sizes n = { 50, 16 + (int64_t)(test_random() % 50),
                                 2 * (3 + (int64_t)(test_random() % 40)) };
        const int results = i % 4 ? 2 : RESULTS; /* gradients of some */
        mc_array *one[RESULTS] = { 0 }, *r[RESULTS] = { 0 };
        int fewest, most;
        mc_function *f = compiled(d.text, n.hidden, results, 1);
        REQUIRE(f, "%s", d.text);
        CHECK(call(f, &n, results, one) == MC_OK, "%s: %s", d.text, mc_last_error());
        mc_function_free(f);
        f = compiled(d.text, n.hidden, results, 2 + i % 3);
        REQUIRE(f, "%s", d.text);
        CHECK(call(f, &n, results, r) == MC_OK, "%s: %s", d.text, mc_last_error());
        bands_of(f, &fewest, &most);
        divided += most > 1;
        for (int k = 0; k < results; k++) {
            CHECK(one[k] && r[k] && mc_array_same_bits(one[k], r[k]),
                  "result %d, rows %lld, columns %lld, threads %d, bands %d: %s", k, (long long)n.rows,
                  (long long)n.hidden, 2 + i % 3, most, d.text);
        }
        drop(one, RESULTS);
        drop(r, RESULTS);
        mc_function_free(f);
    }
    CHECK(divided >= drawn / 4, "%d of %d have bands", divided, drawn);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The minimal gated unit in plain loops, in float64. */
TEST(a_gated_unit_in_bands_has_the_values_of_plain_loops)
{
    const struct sizes n = { 20, 37, 40 };
    mc_function *f = compiled(MGU, n.hidden, 1, 3);
    mc_array *r[RESULTS] = { 0 }, *in[ARRAYS];
    double h[40], next[40], gate[40];
    int fewest, most;
    REQUIRE(f, "no function");
    REQUIRE(call(f, &n, 1, r) == MC_OK, "%s", mc_last_error());
    bands_of(f, &fewest, &most);
    CHECK(most == 3, "%d bands", most);
    make_inputs(&n, in);
    const float *x = mc_array_data(in[0]), *h0 = mc_array_data(in[1]), *u = mc_array_data(in[3]),
                *y = mc_array_data(r[0]);
    double off = 0;
    for (int64_t row = 0; row < n.rows; row++) {
        for (int64_t j = 0; j < n.hidden; j++) {
            h[j] = h0[row * n.hidden + j];
        }
        for (int64_t t = 0; t < n.steps; t++) {
            const float *p = x + (t * n.rows + row) * 2 * n.hidden;
            for (int64_t j = 0; j < n.hidden; j++) {
                double sum = p[j];
                for (int64_t k = 0; k < n.hidden; k++) {
                    sum += h[k] * u[k * 2 * n.hidden + j];
                }
                gate[j] = sigmoid(sum);
            }
            for (int64_t j = 0; j < n.hidden; j++) {
                double sum = p[n.hidden + j];
                for (int64_t k = 0; k < n.hidden; k++) {
                    sum += gate[k] * h[k] * u[k * 2 * n.hidden + n.hidden + j];
                }
                next[j] = (1 - gate[j]) * h[j] + gate[j] * tanh(sum);
            }
            memcpy(h, next, sizeof h);
            for (int64_t j = 0; j < n.hidden; j++) {
                off = fmax(off, fabs(y[(t * n.rows + row) * n.hidden + j] - h[j]));
            }
        }
    }
    CHECK(off < 1e-4, "off by %g", off);
    drop(in, ARRAYS);
    drop(r, RESULTS);
    mc_function_free(f);
}

/* A function that is called at other sizes has another plan, with other bands or none. */
TEST(sizes_change_from_call_to_call)
{
    static const int64_t rows[] = { 40, 1, 17, 40, 15, 16, 129 };
    mc_function *f = compiled(LSTM, 48, RESULTS, 4), *one = compiled(LSTM, 48, RESULTS, 1);
    REQUIRE(f && one, "no function");
    for (size_t i = 0; i < NELEM(rows); i++) {
        const struct sizes n = { 30, rows[i], 48 };
        mc_array *r[RESULTS], *want[RESULTS];
        CHECK(call(f, &n, RESULTS, r) == MC_OK && call(one, &n, RESULTS, want) == MC_OK, "%s",
              mc_last_error());
        for (int k = 0; k < RESULTS; k++) {
            CHECK(r[k] && want[k] && mc_array_same_bits(r[k], want[k]), "rows %lld: result %d",
                  (long long)n.rows, k);
        }
        drop(r, RESULTS);
        drop(want, RESULTS);
    }
    mc_function_free(f);
    mc_function_free(one);
}

TEST(a_plan_with_bands_without_memory_is_an_error)
{
    const struct sizes n = { 40, 33, 40 };
    mc_array *in[ARRAYS];
    mc_function *f = compiled(MGU, n.hidden, 1, 2);
    REQUIRE(f, "no function");
    make_inputs(&n, in);
    ALLOC_FAIL_LOOP {
        mc_function *copy = mc_function_copy(f, 0);
        mc_array *r = NULL;
        const mc_status s = copy ? mc_call(copy, MC_IN(in[0], in[1], in[2], in[3], in[4], in[5]), MC_OUT(&r))
                                 : MC_EMEMORY;
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s", mc_last_error());
        mc_array_unref(&r);
        mc_function_free(copy);
    }
    drop(in, ARRAYS);
    mc_function_free(f);
}
