/* t_export.c: mc_export_c: wrong calls, names, files; exported functions beside the library's.
 * tests/export.py compares whole nets and random programs. */
#include "device/device.h"
#include "exec/function.h"
#include "export_words.h"
#include <dirent.h>
#include <math.h>
#include <monochord.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

static int files(void)
{
    DIR *d = opendir(in_folder(""));
    int n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* The text of a file in the folder; the caller frees it. */
static char *text_of(const char *name)
{
    FILE *f = fopen(in_folder(name), "r");
    char *text = f ? calloc(1, 1 << 20) : NULL;
    CHECK(text && fread(text, 1, (1 << 20) - 1, f) > 0, "no file %s", name);
    if (f) {
        fclose(f);
    }
    return text;
}

/* Does the file have the words? */
static void has(const char *name, const char *words)
{
    char *text = text_of(name);
    CHECK(text && strstr(text, words), "%s has no '%s':\n%s", name, words, text ? text : "");
    free(text);
}

static void portable(void)
{
    mc_flag_set("device", "cpu");
    mc_flag_set("portable", "True");
}

static mc_array *numbers(int rank, const int64_t *dims, const float *v)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        ((float *)(void *)a->data)[i] = v[i];
    }
    return a;
}

static mc_shared *variable(mc_graph *g, const char *name, int64_t n, const float *v)
{
    mc_array *a = numbers(1, &n, v);
    mc_shared *s = mc_shared_new(g, name, a);
    mc_array_unref(&a);
    return s;
}

static void same_variable(const mc_shared *s, const float *v, const char *what)
{
    mc_array *a = mc_shared_get(s);
    CHECK(a && memcmp(a->data, v, (size_t)mc_array_size(a) * sizeof *v) == 0, "%s differs", what);
    mc_array_unref(&a);
}

#define EXPORT(path, ...)                                                                                    \
    mc_export_c(in_folder(path), (int)NELEM(((mc_export_function[]){ __VA_ARGS__ })),                         \
                (mc_export_function[]){ __VA_ARGS__ })
#define NEEDS_COMPILER()                                                                                     \
    if (!mc_cc_present()) {                                                                                  \
        SKIP("no C compiler");                                                                               \
    }                                                                                                        \
    portable()

/* ---- wrong calls ---- */

TEST(export_wrong_calls)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_formula(g, "x = x");
    mc_graph_clear_error(g);
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input_sized(g, "z", MC_FLOAT32, 2, (int64_t[]){ 3, -1 });
    mc_input(g, "n", MC_INT64, 0);
    mc_input(g, "h", MC_FLOAT16, 2);
    mc_input(g, "s", MC_FLOAT32, 0);
    mc_array *two = numbers(1, (int64_t[]){ 2 }, (float[]){ 1, 2 });
    mc_shared_sized(g, "grows", two, (int64_t[]){ -1 });
    mc_array_unref(&two);
    mc_input_sized(g, "w", MC_FLOAT32, 6, (int64_t[]){ 2, 5, 5, 3, 3, 3 });
    static const struct {
        const char *inputs, *outputs, *updates, *path, *name, *shapes, *message;
        int n;
    } rows[] = {
        { "x", "x + 1", NULL, "a.c", "run", "x[2, 3]",
          "needs functions and the name of a file that ends in .c", 0 },
        { "x", "x + 1", NULL, "a.h", "run", "x[2, 3]",
          "needs functions and the name of a file that ends in .c", 1 },
        { "x", "x + 1", NULL, ".c", "run", "x[2, 3]",
          "needs functions and the name of a file that ends in .c", 1 },
        { "x", "x + 1", NULL, "a\"b.c", "run", "x[2, 3]", "'a\"b.h' cannot stand in an #include", 1 },
        { "x", "x + 1", NULL, "a.c", NULL, "x[2, 3]", "function 0 is missing, or its name is", 1 },
        { "x", "x + 1", NULL, "a.c", "", "x[2, 3]", "function 0 is missing, or its name is", 1 },
        { "x", "x + 1", NULL, "a.c", "my run", "x[2, 3]", "'my run' cannot be part of a C function's name",
          1 },
        { "x", "x + 1", NULL, "a.c", "1st", "x[2, 3]", "'1st' cannot be part of a C function's name", 1 },
        { "x", "x + 1", NULL, "a.c", "init", "x[2, 3]", "the file has another function named a_init", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[2, 3]", "the file has another function named a_run", 2 },
        { "x", "x + 1", NULL, "own.c", "memory", "x[2, 3]", "the file has another function named own_memory",
          1 },
        { "x", "x + 1", NULL, "a.c", "isa", "x[2, 3]", "the file has another function named a_isa", 1 },
        { "x", "x + 1", NULL, "none/a.c", "run", "x[2, 3]", "none/a.h", 1 },
        { "x", "x + 1", NULL, "a.c", "run", NULL,
          "the size of input 'x' on axis 0 is open; name it, as in \"x[32, 784]\"", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "", "the size of input 'x' on axis 0 is open", 1 },
        { "z", "z + 1", NULL, "a.c", "run", "", "the size of input 'z' on axis 1 is open", 1 },
        { "z", "z + 1", NULL, "a.c", "run", "z[4, 2]", "input 'z' has size 3 on axis 0, not 4", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "y[4, 2]", "f has no input 'y', which the sizes 'y[4, 2]' name",
          1 },
        { "x", "x + 1", NULL, "a.c", "run", "x(4, 2)", "f has no input 'x(4', which the sizes 'x(4, 2)' name",
          1 },
        { "x", "x + 1", NULL, "a.c", "run", "x", "sizes are written x[32, 784], t[32], not 'x'", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[4]", "input 'x' has 2 axes; its sizes in 'x[4]' are others",
          1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[4, 2, 1]", "input 'x' has 2 axes", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[4, -2]", "input 'x' has 2 axes", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[4, n]", "input 'x' has 2 axes", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[4, 2", "input 'x' has 2 axes", 1 },
        { "x", "x + 1", NULL, "a.c", "run", "x[4000000000000, 4000000000000]", "too large", 1 },
        { "s", "s + 1", NULL, "a.c", "run", "s[2]", "2]", 1 },
        { "x", "nonzero(x)", NULL, "a.c", "run", "x[2, 3]",
          "sizes of f depend on data; give the sizes as constants", 1 },
        { "x, n", "alloc(1.0, n) + x[0, 0]", NULL, "a.c", "run", "x[2, 3]",
          "sizes of f depend on the contents of input 'n'", 1 },
        { "x", "print_(x, message='x') * 2", NULL, "a.c", "run", "x[2, 3]", "print_", 1 },
        { "h", "dot(h, transpose(h))", NULL, "a.c", "run", "h[2, 3]",
          "f: products and convolutions are exported in float32 and float64, not in float16\n    in dot(",
          1 },
        { "x", "x + 1", "grows = concatenate(grows, grows, axis=0)", "a.c", "run", "x[2, 3]",
          "f changes the size of the variable 'grows'", 1 },
        { "x, w", "conv(reshape(x, [1, 3, 5, 5]), w, border='same', unshared=True)", NULL, "a.c", "run",
          "x[15, 5]",
          "f: a convolution with a filter for each position (local) is not exported\n    in conv(", 1 },
    };
    in_folder("");
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_function *f = mc_compile(g, &(mc_spec){ .name = "f",
                                                   .inputs = rows[i].inputs,
                                                   .outputs = rows[i].outputs,
                                                   .updates = rows[i].updates });
        CHECK(f, "%s: %s", rows[i].outputs, mc_error(g));
        mc_graph_clear_error(g);
        const mc_export_function one = { f, rows[i].name, rows[i].shapes };
        const mc_status s = mc_export_c(in_folder(rows[i].path), rows[i].n,
                                        (mc_export_function[]){ one, one });
        CHECK(!f || (s < 0 && strstr(mc_last_error(), rows[i].message)), "row %d: status %d, '%s', not '%s'",
              (int)i, (int)s, mc_last_error(), rows[i].message);
        CHECK(files() == 0, "row %d: a file is written", (int)i);
        mc_function_free(f);
    }
    CHECK(EXPORT("a.c", { NULL, "run", "" }) == MC_EARG && strstr(mc_last_error(), "function 0 is missing"),
          "%s", mc_last_error());
    CHECK(mc_export_c(NULL, 1, &(mc_export_function){ NULL, "run", "" }) == MC_EARG, "%s", mc_last_error());
    CHECK(mc_export_c("a.c", 1, NULL) == MC_EARG, "%s", mc_last_error());
    mc_graph_free(g);
    drop_folder();
}

TEST(export_writes_both_files_or_none)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1" });
    REQUIRE(f, "%s", mc_error(g));
    mkdir(in_folder("a.c"), 0777);
    CHECK(EXPORT("a.c", { f, "run", "x[3]" }) < 0 && files() == 1, "%s", mc_last_error());
    mkdir(in_folder("b.h"), 0777);
    CHECK(EXPORT("b.c", { f, "run", "x[3]" }) < 0 && files() == 2, "%s", mc_last_error());
    CHECK(EXPORT("my-net.1.c", { f, "run", "x[3]" }) == MC_OK && files() == 4, "%s", mc_last_error());
    has("my-net.1.h", "my_net_1_run");
    compiles("my-net.1.c");
    if (geteuid() != 0) {
        chmod(in_folder(""), 0555);
        CHECK(EXPORT("c.c", { f, "run", "x[3]" }) < 0 && files() == 4, "%s", mc_last_error());
        chmod(in_folder(""), 0777);
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(export_of_a_function_on_a_device_is_refused)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = "x + 1" });
    REQUIRE(f, "%s", mc_error(g));
    struct mc_device other = *f->code->device, *const host = f->code->device;
    f->code->device = &other;
    CHECK(EXPORT("a.c", { f, "run", "x[3]" }) == MC_EUNSUPPORTED &&
              strstr(mc_last_error(), "f was compiled for a GPU; compile it with device=cpu"),
          "%s", mc_last_error());
    CHECK(files() == 0, "a file is written");
    f->code->device = host;
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- names ---- */

/* Names that are words of C, macros, equal when written as identifiers, or none. */
/* The header has the words, of a function with these inputs and outputs of x and y. */
static void declares(const char *inputs, const char *outputs, const char *words)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[2]; input y float32[2]");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = inputs, .outputs = outputs });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(EXPORT("o.c", { f, "f", NULL }) == MC_OK, "%s", mc_last_error());
    has("o.h", words);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(export_outputs_without_names)
{
    NEEDS_COMPILER();
    declares("x", "x + 1, x * 2", "const float *x, float *y, float *y_2);");
    declares("x, y", "x + y, x - y", "const float *x, const float *y, float *y_2, float *y_3);");
    drop_folder();
}

TEST(export_names)
{
    NEEDS_COMPILER();
    static const char *const names[] = { "int",  "class", "a.b",  "a_b",      "NAN",    "in",        "out",  "model", "memory",  "run_step0", "constant1", "R",
                                         "TARGET", "linux", "_Bool", "int32_t", "own_memory", "failed", "y_0", "weights é */ /* \\", "" };
    mc_graph *g = mc_graph_new();
    mc_node *in[NELEM(names)], *out[NELEM(names)];
    mc_label(g, "a label /* */ with \\\n two lines");
    for (size_t i = 0; i < NELEM(names); i++) {
        in[i] = mc_input_sized(g, names[i], MC_FLOAT32, 1, (int64_t[]){ 2 });
        if (mc_is_error(in[i])) { /* no name of an input, yet one of a variable */
            mc_graph_clear_error(g);
            in[i] = mc_input_sized(g, NULL, MC_FLOAT32, 1, (int64_t[]){ 2 });
            mc_graph_clear_error(g);
        }
    }
    mc_graph *h = mc_graph_new();
    mc_shared *s[NELEM(names)];
    mc_node *sum = mc_number(h, MC_FLOAT32, 0.0);
    for (size_t i = 0; i < NELEM(names); i++) {
        s[i] = variable(h, names[i], 2, (float[]){ (float)i, 1 });
        mc_graph_clear_error(h);
        sum = s[i] ? mc_add(sum, mc_shared_node(h, s[i])) : sum;
    }
    int n = 0;
    for (size_t i = 0; i < NELEM(names); i++) {
        if (in[i] && !mc_is_error(in[i])) {
            in[n] = in[i];
            out[n] = mc_mul(in[i], mc_number(g, MC_FLOAT32, 2.0));
            n++;
        }
    }
    CHECK(n >= 10, "%d names of inputs", n);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .name = "all */ names", .input = in, .ninput = n, .output = out, .noutput = n });
    mc_function *v = mc_compile(h, &(mc_spec){ .name = "variables", .output = &sum, .noutput = 1 });
    REQUIRE(f && v, "%s %s", mc_error(g), mc_error(h));
    CHECK(EXPORT("int.c", { f, "run", NULL }, { v, "variables", NULL }) == MC_OK, "%s", mc_last_error());
    compiles("int.c");
    CHECK(EXPORT("a_b.c", { v, "class", NULL }) == MC_OK, "%s", mc_last_error()); /* a member has that name */
    compiles("a_b.c");
    CHECK(EXPORT("1.c", { v, "x", NULL }) == MC_OK, "%s", mc_last_error());
    compiles("1.c");
    mc_function_free(f);
    mc_function_free(v);
    mc_graph_free(g);
    mc_graph_free(h);
    drop_folder();
}

/* ---- what functions do ---- */

struct pair { float a[3], b[3]; };
typedef void init_function(struct pair *m);

/* Two functions change the same variables; one of them exchanges these, and returns them as they were. */
TEST(export_updates)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_shared *a = variable(g, "a", 3, (float[]){ 1, 2, 3 }),
              *b = variable(g, "b", 3, (float[]){ -1, 0, 1e-40f });
    mc_function *swap = mc_compile(
        g, &(mc_spec){ .name = "swap", .outputs = "a, b, old = a", .updates = "a = b; b = a" });
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *add = mc_compile(
        g, &(mc_spec){ .name = "add", .inputs = "x", .outputs = "sum(a)", .updates = "a = a + x" });
    REQUIRE(swap && add, "%s", mc_error(g));
    CHECK(EXPORT("pair.c", { swap, "swap", NULL }, { add, "add", "x[3]" }, { add, "add_one", "x[1]" }) < 0 &&
              strstr(mc_last_error(), "pair") == NULL,
          "sizes that do not fit are exported");
    CHECK(EXPORT("pair.c", { swap, "swap", NULL }, { add, "add", "x[3]" }) == MC_OK, "%s", mc_last_error());
    compiles("pair.c");
    has("pair.h", "float a[3]; /* float32(3,) */");
    struct mc_code *code = code_of("pair.c");
    typedef int swap_function(struct pair * m, void *memory, float *a, float *b, float *old);
    typedef int add_function(struct pair * m, void *memory, const float *x, float *sum);
    swap_function *do_swap = (swap_function *)function_of(code, "pair_swap");
    add_function *do_add = (add_function *)function_of(code, "pair_add");
    init_function *init = (init_function *)function_of(code, "pair_init");
    REQUIRE(do_swap && do_add && init, "no functions");
    struct pair m;
    init(&m);
    mc_array *x = numbers(1, (int64_t[]){ 3 }, (float[]){ 0.1f, 0.2f, 0.3f });
    for (int k = 0; k < 3; k++) {
        float r[3][3], sum, wanted = 0;
        mc_array *y[3] = { NULL };
        CHECK(mc_call(swap, MC_NONE, MC_OUT(&y[0], &y[1], &y[2])) == MC_OK, "%s", mc_last_error());
        CHECK(do_swap(&m, NULL, r[0], r[1], r[2]) == 0, "swap fails");
        for (int i = 0; i < 3; i++) {
            CHECK(y[i] && memcmp(y[i]->data, r[i], sizeof r[i]) == 0, "call %d: result %d differs", k, i);
            mc_array_unref(&y[i]);
        }
        CHECK(mc_call(add, MC_IN(x), MC_OUT(&wanted)) == MC_OK, "%s", mc_last_error());
        CHECK(do_add(&m, NULL, (const float *)(void *)x->data, &sum) == 0, "add fails");
        CHECK(memcmp(&sum, &wanted, sizeof sum) == 0, "call %d: %g, not %g", k, (double)sum, (double)wanted);
        same_variable(a, m.a, "a");
        same_variable(b, m.b, "b");
    }
    mc_array_unref(&x);
    mc_code_unref(&code);
    mc_function_free(swap);
    mc_function_free(add);
    mc_graph_free(g);
    drop_folder();
}

/* Results that are inputs, views, constants, variables or each other; scalars, of which one has a default;
 * arrays without elements. */
TEST(export_results)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "s", MC_FLOAT32, 0);
    mc_input(g, "n", MC_INT64, 0);
    variable(g, "w", 3, (float[]){ 1, 2, 3 });
    mc_function *f = mc_compile(
        g,
        &(mc_spec){
            .name = "f",
            .inputs = "x, n, s=0.5",
            .outputs = "x, transpose(x), x[::-1, 1:], w, w, x * s, n + 1, [1.5, 2.5], sum(x), s, x[0:0]" });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(EXPORT("f.c", { f, "three", "x[3, 2]" }, { f, "none", "x[0, 2]" }) == MC_OK, "%s", mc_last_error());
    compiles("f.c");
    struct mc_code *code = code_of("f.c");
    typedef int f_function(void *m, void *memory, const float *x, int64_t n, float s, float *r0, float *r1,
                           float *r2, float *r3, float *r4, float *r5, int64_t *r6, void *r7, float *r8,
                           float *r9, float *r10);
    f_function *run[2] = { (f_function *)function_of(code, "f_three"),
                           (f_function *)function_of(code, "f_none") };
    typedef void f_init(void *m);
    f_init *init = (f_init *)function_of(code, "f_init");
    REQUIRE(run[0] && run[1] && init, "no functions");
    for (int k = 0; k < 2; k++) {
        float m[3];
        double r[11][8];
        mc_array *y[11] = { NULL },
                 *x = numbers(2, (int64_t[]){ k ? 0 : 3, 2 }, (float[]){ 1, 2, 3, 4, 5, 6 });
        init(m);
        memset(r, 0x7f, sizeof r);
        CHECK(mc_call(f, MC_IN(x, 7),
                      MC_OUT(&y[0], &y[1], &y[2], &y[3], &y[4], &y[5], &y[6], &y[7], &y[8], &y[9], &y[10])) ==
                  MC_OK,
              "%s", mc_last_error());
        CHECK(run[k](m, NULL, (const float *)(void *)x->data, 7, 0.5f, (float *)r[0], (float *)r[1],
                     (float *)r[2], (float *)r[3], (float *)r[4], (float *)r[5], (int64_t *)(void *)r[6],
                     r[7], (float *)r[8], (float *)r[9], (float *)r[10]) == 0,
              "it fails");
        for (int i = 0; i < 11; i++) {
            mc_array *plain = y[i] ? mc_array_copy(y[i]) : NULL;
            const size_t bytes = plain ? (size_t)mc_array_size(plain) * mc_dtypes[plain->dtype].size : 0;
            CHECK(plain && memcmp(plain->data, r[i], bytes) == 0, "result %d of call %d differs", i, k);
            CHECK(((unsigned char *)r[i])[bytes] == 0x7f, "result %d of call %d: written past its end", i, k);
            mc_array_unref(&plain);
            mc_array_unref(&y[i]);
        }
        mc_array_unref(&x);
    }
    mc_code_unref(&code);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* Convolutions that add their bias and cut below 0 themselves: NaN, infinity, and numbers that cancel. */
TEST(export_finished_sums)
{
    NEEDS_COMPILER();
    static const struct { const char *formula; bool finishes; } rows[] = {
        { "conv(maximum(conv(x, W) + b, 0), one, groups=3)", true },
        { "conv(where(conv(x, W) + b > 0, conv(x, W) + b, 0), one, groups=3)", false }, /* NaN becomes 0 */
        { "conv(conv(x, W) + b, one, groups=3)", true },
        { "conv(maximum(conv(x, W), 0), one, groups=3)", true },
        { "conv(maximum(conv(x, W[:2, :1], groups=2) + b[:, :2], 0), one[:2], groups=2)", true },
        { "maximum(conv(x, W) + b, 0)", false }, /* the function's result is not where the sums are */
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        enum { ROW = 67, N = 2 * 3 * ROW };
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[1, 2, 3, ?]; input W float32[3, 2, 1, 1]; input b float32[1, 3, 1, "
                      "1]; one = [[[[1f32]]], [[[1f32]]], [[[1f32]]]]");
        mc_function *f = mc_compile(
            g, &(mc_spec){
                   .name = "f", .inputs = "x, W, b", .outputs = rows[k].formula, .on_unused = "ignore" });
        REQUIRE(f, "%s", mc_error(g));
        CHECK(EXPORT("f.c", { f, "one", "x[1, 2, 3, 67], W[3, 2, 1, 1], b[1, 3, 1, 1]" }) == MC_OK, "%s",
              mc_last_error());
        compiles("f.c");
        char *text = text_of("f.c");
        CHECK(strstr(text, rows[k].finishes ? "FINISHES = 1" : "FINISHES = 0"), "%s", rows[k].formula);
        free(text);
        struct mc_code *code = code_of("f.c");
        typedef int f_function(void *m, void *memory, const float *x, const float *W, const float *b,
                               float *y);
        f_function *run = (f_function *)function_of(code, "f_one");
        float x[N], r[3 * 3 * ROW];
        for (int i = 0; i < N; i++) {
            x[i] = i % 11 == 0 ? NAN : i % 13 == 0 ? INFINITY : i % 17 == 0 ? -0.0f : (float)(i % 7 - 3);
        }
        mc_array *a[3] = { numbers(4, (int64_t[]){ 1, 2, 3, ROW }, x),
                           numbers(4, (int64_t[]){ 3, 2, 1, 1 }, (float[]){ 1, -1, 0, 2, -0.5f, 1 }),
                           numbers(4, (int64_t[]){ 1, 3, 1, 1 }, (float[]){ -0.0f, 1, -2 }) },
                 *y = NULL;
        REQUIRE(run, "no function");
        CHECK(mc_call(f, MC_IN(a[0], a[1], a[2]), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
        CHECK(run(NULL, NULL, x, (const float *)(void *)a[1]->data, (const float *)(void *)a[2]->data, r) ==
                  0,
              "it fails");
        for (int64_t i = 0; y && i < mc_array_size(y); i++) {
            const float want = ((const float *)(void *)y->data)[i];
            CHECK(isnan(want) ? isnan(r[i]) : memcmp(&want, &r[i], sizeof want) == 0,
                  "%s: element %d is %g, not %g", rows[k].formula, (int)i, (double)r[i], (double)want);
        }
        mc_array_unref(&y);
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&a[i]);
        }
        mc_code_unref(&code);
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

/* A bad index: the call fails and no variable has changed. */
TEST(export_bad_index)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    variable(g, "w", 3, (float[]){ 1, 2, 3 });
    mc_input(g, "i", MC_INT32, 1);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .name = "f", .inputs = "i", .outputs = "w[i]", .updates = "w = w * 2" });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(EXPORT("f.c", { f, "run", "i[2]" }) == MC_OK, "%s", mc_last_error());
    compiles("f.c");
    struct mc_code *code = code_of("f.c");
    typedef int f_function(float *m, void *memory, const int32_t *i, float *y);
    typedef void f_init(float *m);
    f_function *run = (f_function *)function_of(code, "f_run");
    f_init *init = (f_init *)function_of(code, "f_init");
    REQUIRE(run && init, "no functions");
    float m[3], y[2];
    init(m);
    CHECK(run(m, NULL, (int32_t[]){ 0, 3 }, y) == 1 && m[0] == 1 && m[2] == 3, "index 3 is read");
    CHECK(run(m, NULL, (int32_t[]){ 0, -1 }, y) == 0 && y[1] == 3 && m[2] == 6, "index -1 is not the last");
    mc_code_unref(&code);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- memory ---- */

TEST(export_without_memory)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 4);
    mc_input(g, "k", MC_FLOAT32, 4);
    mc_input(g, "i", MC_INT32, 1);
    variable(g, "w.1", 3, (float[]){ 1, 2, 3 });
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, k, i",
                       .outputs = "max_pool(tanh(conv(x, k)), 2), w.1[i], cumsum(i), [1.5, 2.5]",
                       .updates = "w.1 = w.1 + sum(x)" });
    if (!f) { /* a name with a point is written otherwise in formulas */
        mc_graph_clear_error(g);
        f = mc_compile(g, &(mc_spec){ .inputs = "x, k, i",
                                      .outputs = "pool(tanh(conv(x, k)), [2, 2]), cumsum(i), [1.5, 2.5]" });
    }
    REQUIRE(f, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        const mc_status s = EXPORT("f.c", { f, "run", "x[2, 3, 9, 9], k[4, 3, 2, 2], i[5]" });
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "status %d: %s", (int)s, mc_last_error());
        CHECK(s == MC_OK ? files() == 2 : files() == 0, "%d files after status %d", files(), (int)s);
        remove(in_folder("f.c"));
        remove(in_folder("f.h"));
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

static mc_array *random_matrix(mc_dtype d, int64_t rows, int64_t columns)
{
    mc_array *a = mc_array_new(d, 2, (int64_t[]){ rows, columns });
    for (int64_t i = 0; a && i < rows * columns; i++) {
        mc_store_f64(d, a->data + i * mc_dtypes[d].size, test_uniform(-1, 1));
    }
    return a;
}

/* Code for several instruction sets, compiled without any of them: the words; what a call chooses, and its
 * bits; names that are macros of such a file. */
TEST(export_isa)
{
    NEEDS_COMPILER();
    mc_flag_set("cpu.isa", "native");
    mc_graph *g = mc_graph_new();
    variable(g, "zero_f32", 3, (const float[]){ 1, 2, 3 });
    variable(g, "CHOSEN", 3, (const float[]){ 1, 2, 3 });
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "columns_f32", MC_FLOAT32, 2);
    mc_input(g, "d", MC_FLOAT64, 2);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .name = "f",
                       .inputs = "x, columns_f32, d",
                       .outputs = "dot(x, columns_f32) + zero_f32 * CHOSEN, ROWS = dot(d, transpose(d))" });
    REQUIRE(f, "%s", mc_error(g));
    const mc_export_function one = { f, "run", "x[5, 70], columns_f32[70, 3], d[4, 9]" };
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("f.c"));
    mc_export_spec spec = { .path = path, .nfunction = 1, .function = &one, .isa = "sse2" };
    CHECK(mc_export(&spec) == MC_EARG && strstr(mc_last_error(), "isa is avx2, avx512 or all, not 'sse2'") &&
              files() == 0,
          "%s", mc_last_error());
    static const char *const words[] = { "all", "avx2", "avx512" };
#if defined(__x86_64__)
    const bool x86 = true;
#else
    const bool x86 = false;
#endif
    for (size_t i = 0; i < NELEM(words); i++) {
        spec.isa = words[i];
        CHECK(mc_export(&spec) == MC_OK, "%s: %s", words[i], mc_last_error());
        has("f.h", "const char *f_isa(void);");
        compiles("f.c");
        struct mc_code *code = code_with("f.c", x86 ? "-mno-avx" : "");
        typedef int f_function(void *m, void *memory, const float *x, const float *v, const double *d,
                               float *y, double *z);
        typedef void f_init(void *m);
        typedef const char *f_isa(void);
        f_function *run = (f_function *)function_of(code, "f_run");
        f_init *init = (f_init *)function_of(code, "f_init");
        f_isa *isa = (f_isa *)function_of(code, "f_isa");
        REQUIRE(run && init && isa, "no functions");
        const char *chosen = i != 1 && mc_isa_runs(ISA_AVX512) ? "avx512"
                             : mc_isa_runs(ISA_AVX2)           ? "avx2"
                                                               : "generic";
        CHECK(strcmp(isa(), chosen) == 0, "isa %s chooses %s, not %s", words[i], isa(), chosen);
        float m[6], y[15];
        double z[16];
        init(m);
        mc_array *x = random_matrix(MC_FLOAT32, 5, 70), *v = random_matrix(MC_FLOAT32, 70, 3),
                 *d = random_matrix(MC_FLOAT64, 4, 9), *want[2] = { NULL };
        CHECK(run(m, NULL, mc_array_data(x), mc_array_data(v), mc_array_data(d), y, z) == 0, "run fails");
        CHECK(mc_call(f, MC_IN(x, v, d), MC_OUT(&want[0], &want[1])) == MC_OK, "%s", mc_last_error());
        CHECK(want[0] && memcmp(want[0]->data, y, sizeof y) == 0, "%s: the product in float32 differs",
              words[i]);
        CHECK(want[1] && memcmp(want[1]->data, z, sizeof z) == 0, "%s: the product in float64 differs",
              words[i]);
        mc_array_unref(&want[0]), mc_array_unref(&want[1]);
        mc_array_unref(&x), mc_array_unref(&v), mc_array_unref(&d);
        mc_code_unref(&code);
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* The parameters in a file: it is loaded in place of the initial values. */
TEST(export_parameters_in_a_file)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    variable(g, "W", 3, (const float[]){ 1.5f, -2, 0.25f });
    variable(g, "b", 2, (const float[]){ 7, 8 });
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y = sum(W) * x + sum(b)" });
    char bin[256];
    snprintf(bin, sizeof bin, "%s", in_folder("detached.bin"));
    const mc_export_function one = { f, "run", NULL };
    const mc_export_spec spec = { in_folder("detached.c"), 1, &one, bin };
    CHECK(mc_export(&spec) == MC_OK, "%s", mc_last_error());
    has("detached.h", "int detached_load(struct detached *model, const void *bytes, size_t size);");
    has("detached.h", "const struct detached *model");
    compiles("detached.c");
    char *bytes = NULL;
    size_t n = 0;
    CHECK(mc_file_read(bin, &bytes, &n) == MC_OK && n == 5 * sizeof(float), "%zu bytes", n);
    struct mc_code *code = code_of("detached.c");
    any_function *load = function_of(code, "detached_load"), *run = function_of(code, "detached_run");
    float model[16] = { 0 }, y = 0;
    if (load && run && n == 5 * sizeof(float)) {
        CHECK(((int (*)(void *, const void *, size_t))load)(model, bytes, n - 1) == 1,
              "a wrong size is taken");
        CHECK(((int (*)(void *, const void *, size_t))load)(model, bytes, n) == 0, "the bytes are not taken");
        ((int (*)(const void *, void *, float, float *))run)(model, NULL, 2, &y);
        CHECK(y == 14.5f, "y is %g", (double)y); /* -0.25 * 2 + 15 */
    }
    mc_code_unref(&code);
    mc_free(bytes);
    CHECK(mc_export(NULL) == MC_EARG, "%s", mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
}

/* If the C file cannot be written, neither the header nor the parameters stay. */
TEST(export_leaves_nothing_of_three_files)
{
    portable();
    mc_graph *g = mc_graph_new();
    variable(g, "W", 3, (const float[]){ 1, 2, 3 });
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "sum(W)" });
    char bin[256];
    snprintf(bin, sizeof bin, "%s", in_folder("taken.bin"));
    const mc_export_function one = { f, "run", NULL };
    const mc_export_spec spec = { in_folder("taken.c"), 1, &one, bin };
    CHECK(mkdir(spec.path, 0700) == 0, "no folder %s", spec.path);
    const int before = files();
    CHECK(mc_export(&spec) == MC_EFILE, "a folder is written over: %s", mc_last_error());
    CHECK(files() == before, "%d files, not %d", files(), before);
    rmdir(spec.path);
    mc_function_free(f);
    mc_graph_free(g);
}
