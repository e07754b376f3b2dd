/* t_prepared.c: filters and weights that solvers keep from call to call: the same bits as without, and never
 * those of an older value. */
#include "check.h"
#include "value/value.h"
#include <math.h>
#include <monochord.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mc_array *draw(int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    float *at = mc_array_data(a);
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        at[i] = (float)test_uniform(-1, 1);
    }
    return a;
}

/* A function of x and W, and the two values. */
struct made {
    mc_graph *g;
    mc_shared *W;
    mc_function *f;
    mc_array *x;
};

static struct made make(const char *formula, int rank, const int64_t *x, const int64_t *w,
                        const char *updates)
{
    struct made m = { .g = mc_graph_new(), .x = draw(rank, x) };
    mc_array *first = draw(rank, w);
    mc_input(m.g, "x", MC_FLOAT32, rank);
    m.W = mc_shared_new(m.g, "W", first);
    m.f = mc_compile(m.g, &(mc_spec){ .inputs = "x", .outputs = formula, .updates = updates });
    CHECK(m.f, "%s", mc_error(m.g));
    mc_array_unref(&first);
    return m;
}

static void unmake(struct made *m)
{
    mc_array_unref(&m->x);
    mc_function_free(m->f);
    mc_graph_free(m->g);
}

static mc_array *call(const struct made *m)
{
    mc_array *y = NULL;
    CHECK(mc_call(m->f, MC_IN(m->x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    return y;
}

static bool same(const mc_array *a, const mc_array *b)
{
    return a && b && mc_array_size(a) == mc_array_size(b) &&
           memcmp(a->data, b->data, (size_t)mc_array_size(a) * sizeof(float)) == 0;
}

/* The result of one more call has the bits of the first call of a new function of the same variable. */
static void check_fresh(const struct made *m, const char *formula, const char *when)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, mc_array_rank(m->x));
    mc_node *w = mc_shared_node(g, m->W);
    REQUIRE(w && mc_name(w, "W"), "%s", mc_error(g));
    struct made other = { .g = g, .W = m->W, .x = m->x };
    other.f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formula });
    REQUIRE(other.f, "%s", mc_error(g));
    mc_array *want = call(&other), *got = call(m);
    CHECK(same(got, want), "%s, %s: other bits than those of a new function", formula, when);
    mc_array_unref(&want);
    mc_array_unref(&got);
    mc_function_free(other.f);
    mc_graph_free(g);
}

static void set(mc_shared *s, uint32_t turn)
{
    mc_array *v = mc_shared_get(s);
    for (int64_t i = 0; i < mc_array_size(v); i++) {
        ((float *)mc_array_data(v))[i] += (float)((i + turn) % 7) * 0.125f;
    }
    CHECK(mc_shared_set(s, v) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&v);
}

/* ---- every solver that prepares ---- */

static const struct {
    const char *formula, *flags;
    int rank;
    int64_t x[4], w[4];
} rows[] = {
    { "dot(x, W)", "gemm.algo=packed", 2, { 40, 70 }, { 70, 90 } },
    { "dot(x, transpose(W))", "gemm.algo=packed", 2, { 40, 300 }, { 50, 300 } },
    { "dot(x, W)", "gemm.algo=packed", 2, { 33, 2100 }, { 2100, 19 } },
    { "conv(x, W, border=1, algo='implicit')", "", 4, { 2, 5, 9, 11 }, { 19, 5, 3, 3 } },
    { "conv(x, W, border=1, stride=2, algo='implicit')", "", 4, { 1, 40, 12, 13 }, { 33, 40, 3, 3 } },
    { "conv(x, W, groups=2, algo='implicit')", "", 4, { 1, 6, 9, 9 }, { 8, 3, 2, 4 } },
    { "conv(x, W, algo='implicit')", "", 4, { 3, 64, 7, 7 }, { 48, 64, 1, 1 } },
    { "maximum(conv(x, W, border=1, algo='winograd'), 0)", "", 4, { 2, 20, 13, 14 }, { 18, 20, 3, 3 } },
    { "conv(x, W, border=1, algo='winograd4')", "", 4, { 1, 33, 14, 15 }, { 40, 33, 3, 3 } },
    { "conv(x, W, border=1, groups=2, algo='winograd4')", "", 4, { 1, 12, 14, 15 }, { 10, 6, 3, 3 } },
    { "conv(x, W, border=6, algo='fft')", "", 4, { 2, 7, 20, 20 }, { 9, 7, 13, 13 } },
    { "conv(x, W, border=12, algo='fft')", "", 4, { 1, 9, 28, 28 }, { 35, 9, 25, 25 } },
    { "conv(x, W, border=1, algo='direct')", "", 4, { 1, 21, 14, 14 }, { 67, 21, 3, 3 } },
    { "maximum(conv(x, W, border=2, stride=2, groups=3, algo='direct'), 0)", "", 4, { 2, 15, 23, 19 }, { 30, 5, 5, 3 } },
    { "conv(x, W, border=1, algo='direct')", "", 4, { 1, 130, 7, 7 }, { 40, 130, 3, 3 } }, /* sums in pieces */
    /* several blocks of filters */
    { "conv(x, W, border=1, algo='winograd4')", "workspace=700K", 4, { 1, 64, 28, 28 }, { 64, 64, 3, 3 } },
    { "conv(x, W, border=6, algo='fft')", "workspace=700K", 4, { 1, 32, 28, 28 }, { 32, 32, 13, 13 } },
};

/* What this file says is of the processor: nothing is prepared on the tests' own device. */
#define ON_PROCESSOR() mc_flag_set("device", "cpu")

TEST(prepared_operands_give_the_same_bits)
{
    ON_PROCESSOR();
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_flags_parse("gemm.algo=auto,workspace=1G");
        REQUIRE(mc_flags_parse(rows[i].flags) == MC_OK, "%s", mc_last_error());
        struct made m = make(rows[i].formula, rows[i].rank, rows[i].x, rows[i].w, NULL);
        mc_array *first = call(&m);
        const size_t before = mc_function_memory(m.f);
        mc_array *second = call(&m);
        CHECK(mc_function_memory(m.f) > before, "row %zu, %s: nothing is prepared", i, rows[i].formula);
        mc_array *third = call(&m);
        CHECK(same(first, second) && same(first, third), "row %zu, %s: other bits", i, rows[i].formula);
        set(m.W, (uint32_t)i);
        for (int turn = 0; turn < 3; turn++) {
            check_fresh(&m, rows[i].formula, "after a new value");
        }
        mc_array_unref(&first);
        mc_array_unref(&second);
        mc_array_unref(&third);
        unmake(&m);
    }
}

/* ---- who changes a variable ---- */

static const char conv[] = "conv(x, W, border=1, algo='winograd4')";
static const int64_t images[4] = { 1, 8, 10, 10 }, filters[4] = { 12, 8, 3, 3 };

static size_t memory_after_calls(const struct made *m, int calls)
{
    for (int i = 0; i < calls; i++) {
        mc_array *y = call(m);
        mc_array_unref(&y);
    }
    return mc_function_memory(m->f);
}

TEST(prepared_filters_follow_other_functions)
{
    ON_PROCESSOR();
    struct made m = make(conv, 4, images, filters, NULL);
    const size_t least = memory_after_calls(&m, 1), most = memory_after_calls(&m, 2);
    CHECK(most > least, "nothing is prepared");
    mc_function *change = mc_compile(m.g, &(mc_spec){ .updates = "W = W * 1.25 - 0.5" });
    REQUIRE(change, "%s", mc_error(m.g));
    for (int i = 0; i < 3; i++) {
        CHECK(mc_call(change, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
        for (int k = 0; k <= i; k++) {
            check_fresh(&m, conv, "after an update");
        }
    }
    CHECK(mc_call(change, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
    CHECK(memory_after_calls(&m, 1) == least, "one call of a new value keeps it prepared");
    mc_function_free(change);
    unmake(&m);
}

TEST(functions_that_update_a_variable_prepare_nothing)
{
    ON_PROCESSOR();
    struct made m = make(conv, 4, images, filters, "W = W * 0.5");
    const size_t before = memory_after_calls(&m, 1);
    CHECK(memory_after_calls(&m, 3) == before, "prepared, though each call changes it");
    check_fresh(&m, conv, "after four updates");
    unmake(&m);
}

TEST(prepared_filters_follow_files_and_new_sizes)
{
    ON_PROCESSOR();
    char path[] = "/tmp/t_prepared-XXXXXX.npz";
    const int fd = mkstemps(path, 4);
    REQUIRE(fd >= 0, "no temporary file");
    close(fd);
    struct made m = make(conv, 4, images, filters, NULL);
    CHECK(mc_graph_save_shared(m.g, path) == MC_OK, "%s", mc_last_error());
    mc_array *first = call(&m);
    set(m.W, 3);
    memory_after_calls(&m, 2);
    CHECK(mc_graph_load_shared(m.g, path) == MC_OK, "%s", mc_last_error());
    mc_array *again = call(&m), *more = call(&m);
    CHECK(same(first, again) && same(first, more), "the file's value is not used");
    remove(path);
    mc_array_unref(&m.x);
    m.x = draw(4, (int64_t[]){ 2, 8, 17, 5 }); /* another plan of the same function */
    memory_after_calls(&m, 2);
    set(m.W, 4);
    check_fresh(&m, conv, "at other sizes");
    mc_array_unref(&first);
    mc_array_unref(&again);
    mc_array_unref(&more);
    unmake(&m);
}

/* Who borrowed the memory may write to it at any time. */
TEST(borrowed_variables_are_read_anew)
{
    ON_PROCESSOR();
    struct made m = make(conv, 4, images, filters, NULL);
    memory_after_calls(&m, 3);
    mc_array *inside = mc_shared_borrow(m.W);
    const size_t before = memory_after_calls(&m, 2);
    float *at = mc_array_data(inside);
    for (int i = 0; i < 3; i++) {
        at[i] += 1;
        check_fresh(&m, conv, "after a write into borrowed memory");
    }
    CHECK(memory_after_calls(&m, 2) == before, "prepared, though its memory is borrowed");
    mc_array_unref(&inside);
    unmake(&m);
}

TEST(constants_are_prepared)
{
    ON_PROCESSOR();
    mc_graph *g = mc_graph_new();
    struct made m = { .g = g, .x = draw(4, images) };
    mc_array *w = draw(4, filters);
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 4);
    REQUIRE(x && mc_name(mc_constant(g, w), "W"), "%s", mc_error(g));
    m.f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = conv });
    REQUIRE(m.f, "%s", mc_error(g));
    mc_array *first = call(&m);
    const size_t before = mc_function_memory(m.f);
    mc_array *second = call(&m), *third = call(&m);
    CHECK(mc_function_memory(m.f) > before, "nothing is prepared");
    CHECK(same(first, second) && same(first, third), "other bits");
    mc_array_unref(&first);
    mc_array_unref(&second);
    mc_array_unref(&third);
    mc_array_unref(&w);
    unmake(&m);
}

/* ---- memory ---- */

static size_t most_bytes = SIZE_MAX;
static int refused;

static void *limited(void *arg, void *p, size_t n)
{
    (void)arg;
    if (n == 0) {
        free(p);
        return NULL;
    }
    refused += n > most_bytes;
    return n > most_bytes ? NULL : realloc(p, n);
}

TEST(without_memory_nothing_is_prepared)
{
    ON_PROCESSOR();
    mc_set_allocator(&(mc_allocator){ limited, NULL });
    struct made m = make(conv, 4, images, (int64_t[]){ 64, 8, 3, 3 }, NULL);
    mc_array *first = call(&m), *y = mc_array_copy(first);
    const size_t before = mc_function_memory(m.f), prepared = 64 * 8 * 36 * sizeof(float);
    most_bytes = prepared - 1;
    for (int i = 0; i < 2; i++) {
        CHECK(mc_call(m.f, MC_IN(m.x), MC_OUT(&y)) == MC_OK && same(first, y), "%s", mc_last_error());
    }
    CHECK(refused > 0 && mc_function_memory(m.f) == before, "%d allocations were refused", refused);
    most_bytes = SIZE_MAX;
    CHECK(mc_call(m.f, MC_IN(m.x), MC_OUT(&y)) == MC_OK && same(first, y), "%s", mc_last_error());
    CHECK(mc_function_memory(m.f) >= before + prepared, "not prepared once there is memory");
    mc_array_unref(&first);
    mc_array_unref(&y);
    unmake(&m);
}
