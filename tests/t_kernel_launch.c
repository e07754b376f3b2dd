/* t_kernel_launch.c: kernels printed for one launch against the functions for any shape, bit for bit; C text
 * that is indented. */
#include "agree.h"
#include "sample.h"
#include "exec/cpu/launch.h"

#include <math.h>
#include <string.h>

/* ---- one launch as a block ---- */

enum { CHUNKS = 3, FIRST = 5 };

static const char *const formulas[] = {
    "x * 2 + v", "tanh(x.T) + 1", "sum(x, axis=1)", "softmax(x)", "layer_norm(x)", "argmax(x, axis=1)",
    "mean(x)", "argmin(x)", "max(x) - min(x)", "sum(x, axis=0)", "argmax(x, axis=0)", "logsoftmax(x, axis=0)",
    "sum(softmax(x) * x, axis=0)", "sum(sin(x) * x, axis=1)", "sum(cos(x), axis=0)", "arange(n) + 1",
    "prod(1 + x * 1e-3, axis=1)", "v[t] * 2", "sum(x[::-1, ::2], axis=[0, 1])", "sum(tan(x))",
    "sum(dimshuffle(x, order=[0, -1, 1]) * v, axis=[0, 2])",
};

/* The memory of one kernel's operands, row buffers and accumulators; twice, for two runs. */
struct memory {
    char *p[2][MOST_OPERANDS + 1];
    size_t bytes[MOST_OPERANDS + 1], first[MOST_OPERANDS + 1]; /* first: bytes before the operand's address */
    int n;
};

/* The elements that a launch reads, from the first to the last; first: how many lie before its address. */
static int64_t extent(const struct mc_launch *l, const struct mc_koperand *o, int i, int64_t *first)
{
    int64_t last = 0;
    *first = 0;
    for (int loop = 0; loop < 3 && !o->index; loop++) {
        const int64_t step = (l->n[loop] - 1) * l->s[3 * i + loop];
        *(step < 0 ? first : &last) += step < 0 ? -step : step;
    }
    return *first + MC_MAX(last, 0) + 1;
}

static void fill(struct memory *m, const struct mc_kernel *k, const struct mc_launch *l)
{
    m->n = (int)k->operand.n + 1;
    for (int i = 0; i < m->n; i++) {
        const struct mc_koperand *o = i < m->n - 1 ? &k->operand.at[i] : NULL;
        const size_t size = o ? mc_dtypes[o->dtype].size : 1;
        int64_t first = 0;
        m->bytes[i] = o ? (size_t)extent(l, o, i, &first) * size + 64
                        : mc_kernel_row_bytes(k, l->n[0] * l->n[2]) + 16 * CHUNKS * (size_t)k->nreduce + 64;
        m->p[0][i] = calloc(1, m->bytes[i]);
        m->p[1][i] = calloc(1, m->bytes[i]);
        m->first[i] = (size_t)first * size;
        for (size_t at = 0; o && at + size <= m->bytes[i]; at += size) {
            const double v = test_uniform(-2, 2);
            mc_store_f64(o->dtype, m->p[0][i] + at, mc_is_float(o->dtype) ? v : floor(fabs(v)));
        }
        memcpy(m->p[1][i], m->p[0][i], m->bytes[i]);
    }
}

static void drop_memory(struct memory *m)
{
    for (int i = 0; i < m->n; i++) {
        free(m->p[0][i]);
        free(m->p[1][i]);
    }
}

/* The counts of one call of the kernel's function. */
static void counts(const struct mc_kernel *k, const struct mc_launch *l, int64_t n[4])
{
    memcpy(n, l->n, 4 * sizeof *n);
    n[0] = k->mode == KERNEL_FULL_REDUCTION ? MC_MIN(l->chunk, n[0]) : n[0];
    n[3] = k->mode == KERNEL_FULL_REDUCTION ? FIRST : 0;
}

static struct mc_launch *launch_of(const mc_function *f, size_t step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_exec *e = f->plans->step[step].exec;
    return st->kind == STEP_KERNEL && f->code->fn[step] && e && e != &mc_exec_reference
               ? (struct mc_launch *)e
               : NULL;
}

/* "void launch3(char *const *q, i64 *err) { ... }" and, for a fold, join3; as_names: what may differ from
 * chunk to chunk are variables. */
static void print_launch(struct mc_str *out, const mc_function *f, size_t step, bool as_names)
{
    const struct mc_kernel *k = f->code->program.step.at[step].kernel;
    const struct mc_launch *l = launch_of(f, step);
    char name[MOST_OPERANDS + 1][32];
    const char *base[MOST_OPERANDS + 1];
    int64_t n[4], chunks[4] = { CHUNKS, 1, 1, 0 };
    counts(k, l, n);
    for (size_t i = 0; i <= k->operand.n; i++) {
        const bool index = i < k->operand.n && k->operand.at[i].index;
        snprintf(name[i], sizeof name[i], index ? "%d + %zu" : "q_[%d + %zu]", index ? 40 : 0, i);
        base[i] = name[i];
    }
    struct mc_kernel_launch at = { .s = l->s, .n = n, .base = base };
    as_names &= k->mode == KERNEL_FULL_REDUCTION;
    mc_str_addf(out, "void launch%zu(char *const *q_, i64 *err)\n", step);
    if (as_names) {
        mc_str_addf(out, "{\nconst i64 count_ = %lld, first_ = %lld;\n", (long long)n[0], (long long)n[3]);
        at.count = "count_";
        at.first = "first_";
    }
    mc_render_launch(out, &mc_dialect_c, k, &at);
    mc_str_add(out, as_names ? "}\n" : "");
    if (k->mode == KERNEL_FULL_REDUCTION) {
        at = (struct mc_kernel_launch){ .s = l->s, .n = chunks, .base = base };
        mc_str_addf(out, "void join%zu(char *const *q_, i64 *err)\n", step);
        mc_render_launch_join(out, &mc_dialect_c, k, &at);
    }
}

typedef void block_fn(char *const *q, int64_t *err);

static block_fn *block_of(struct mc_code *lib, const char *what, size_t step)
{
    char name[40];
    block_fn *fn = NULL;
    snprintf(name, sizeof name, "%s%zu", what, step);
    void *at = mc_code_symbol(lib, name);
    memcpy(&fn, &at, sizeof fn);
    return fn;
}

static void compare_step(const mc_function *f, struct mc_code *lib, size_t step, const char *what)
{
    const struct mc_kernel *k = f->code->program.step.at[step].kernel;
    const struct mc_launch *l = launch_of(f, step);
    const size_t last = k->operand.n;
    struct memory m;
    int64_t n[4], err[2][4] = { { 0 } };
    counts(k, l, n);
    fill(&m, k, l);
    block_fn *launch = block_of(lib, "launch", step), *join = block_of(lib, "join", step);
    REQUIRE(launch && (k->mode != KERNEL_FULL_REDUCTION || join), "%s: no block", what);
    char *q[2][MOST_OPERANDS + 1];
    for (int run = 0; run < 2; run++) {
        memcpy(q[run], m.p[run], sizeof q[run]);
        for (size_t i = 0; i < last; i++) {
            uintptr_t position = 40 + i;
            q[run][i] = k->operand.at[i].index ? (char *)position : q[run][i] + m.first[i];
        }
        for (int c = 0; c < (k->mode == KERNEL_FULL_REDUCTION ? CHUNKS : 1); c++) {
            q[run][last] = m.p[run][last] + c * 16 * k->nreduce;
            if (run == 0) {
                l->fn(q[run], l->s, n, err[run]);
            } else {
                launch(q[run], err[run]);
            }
        }
        q[run][last] = m.p[run][last];
        if (k->mode == KERNEL_FULL_REDUCTION && run == 0) {
            l->reduce_fn(q[run], l->s, (int64_t[]){ CHUNKS, 1, 1, 0 }, err[run]);
        } else if (k->mode == KERNEL_FULL_REDUCTION) {
            join(q[run], err[run]);
        }
    }
    for (int i = 0; i < m.n; i++) {
        CHECK(memcmp(m.p[0][i], m.p[1][i], m.bytes[i]) == 0, "%s, operand %d of %d differs", what, i,
              m.n - 1);
    }
    CHECK(memcmp(err[0], err[1], sizeof err[0]) == 0, "%s: err differs", what);
    drop_memory(&m);
}

/* All kernels of f, at the shape that it was called with last. */
static void compare_launches(const mc_function *f, bool as_names, const char *what)
{
    struct mc_str raw = { 0 }, text = { 0 };
    struct mc_kernel *k[256];
    int n = 0;
    mc_status s;
    const size_t steps = MC_MIN(f->code->program.step.n, NELEM(k));
    for (size_t i = 0; i < steps; i++) {
        if (launch_of(f, i)) {
            k[n++] = f->code->program.step.at[i].kernel;
        }
    }
    REQUIRE(n > 0, "%s: no kernels", what);
    mc_render_functions(&raw, &mc_dialect_c, n, k);
    for (size_t i = 0; i < steps; i++) {
        if (launch_of(f, i)) {
            print_launch(&raw, f, i, as_names);
        }
    }
    mc_indent(&text, raw.s);
    struct mc_code *lib = mc_code_load(text.s, MC_KERNEL_FLAGS, &s);
    CHECK(lib, "%s: %s", what, mc_last_error());
    for (size_t i = 0; i < steps && lib; i++) {
        if (launch_of(f, i)) {
            char which[300];
            snprintf(which, sizeof which, "%s, %s", what, mc_step_text(f->code, (int)i));
            compare_step(f, lib, i, which);
        }
    }
    mc_code_unref(&lib);
    mc_str_free(&raw);
    mc_str_free(&text);
}

static void launches(mc_dtype d, size_t from, size_t to)
{
    static const int64_t shapes[][2] = { { 5, 7 },     { 3, 100 }, { 1, 16 },   { 700, 1 },
                                         { 4, 12288 }, { 9, 513 }, { 2, 1024 }, { 3, 4099 } };
    if (!mc_cc_present()) {
        SKIP("no C compiler");
    }
    mc_flag_set("device", "cpu");
    mc_flag_set("portable", "True");
    for (size_t k = from; k < MC_MIN(to, NELEM(shapes)); k++) {
        struct agree a = { 0 };
        mc_array *have[AGREE_MOST] = { NULL };
        char what[80];
        agree_input(&a, "x", sample(d, 2, shapes[k], -2, 2), 0);
        agree_input(&a, "v", sample(d, 1, &shapes[k][1], -2, 2), 0);
        agree_input(&a, "t", sample(MC_INT64, MC_SHAPE(19), 0, 0), 0);
        agree_input(&a, "n", sample(MC_INT64, MC_NOSHAPE, 9, 9), 0);
        for (size_t i = 0; i < NELEM(formulas); i++) {
            CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
        }
        mc_function *f = agree_compile(&a, NULL, 1);
        snprintf(what, sizeof what, "%s (%lld, %lld)", mc_dtype_name(d), (long long)shapes[k][0],
                 (long long)shapes[k][1]);
        if (CHECK(f && agree_call(&a, f, have) == MC_OK, "%s: %s%s", what, mc_error(a.g), mc_last_error())) {
            compare_launches(f, k % 2, what);
        }
        drop(have, a.nout);
        mc_function_free(f);
        agree_free(&a);
    }
    mc_flag_set("portable", "False");
}

TEST(a_kernel_printed_for_one_launch_has_the_same_bits)
{
    launches(MC_FLOAT32, 0, 5);
}

TEST(a_kernel_printed_for_one_long_launch_has_the_same_bits)
{
    launches(MC_FLOAT32, 5, 8);
}

TEST_FULL(kernels_of_other_dtypes_printed_for_one_launch_have_the_same_bits)
{
    launches(MC_FLOAT64, 0, 8);
    launches(MC_BFLOAT16, 0, 8);
}

/* Numbers stand for arguments, and loops of one iteration are not printed. */
TEST(a_launch_prints_numbers)
{
    static const struct { const char *text; bool there; } texts[] = {
        { "for (i64 i1 = 0; i1 < 3; i1++) {", true }, { "i2", false },           { "n[", false },
        { "(const float *)x_ + i1 * 100;", true },    { "s[", false },           { "p[", false },
        { "g < 96; g += 16", true },                  { "j = 96 + i;", true },   { "i < 4;", true },
    };
    static const int64_t dims[] = { 3, 100 };
    struct agree a = { 0 };
    mc_array *have[1] = { NULL };
    struct mc_str out = { 0 };
    mc_flag_set("device", "cpu");
    mc_flag_set("portable", "True");
    agree_input(&a, "x", sample(MC_FLOAT32, 2, dims, -2, 2), 0);
    agree_output(&a, "sum(x, axis=1)");
    mc_function *f = agree_compile(&a, NULL, 1);
    REQUIRE(f && agree_call(&a, f, have) == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < f->code->program.step.n; i++) {
        if (launch_of(f, i)) {
            const char *const base[] = { "x_", "y_", "rows_" };
            const struct mc_launch *l = launch_of(f, i);
            mc_render_launch(&out, &mc_dialect_c, f->code->program.step.at[i].kernel,
                             &(struct mc_kernel_launch){ .s = l->s, .n = l->n, .base = base });
        }
    }
    for (size_t i = 0; i < NELEM(texts) && out.s; i++) {
        CHECK(!!strstr(out.s, texts[i].text) == texts[i].there, "'%s' in\n%s", texts[i].text, out.s);
    }
    mc_flag_set("portable", "False");
    mc_str_free(&out);
    drop(have, 1);
    mc_function_free(f);
    agree_free(&a);
}

/* ---- indentation ---- */

TEST(text_is_indented_by_braces)
{
    static const struct { const char *text, *want; } rows[] = {
        { "", "" },
        { "a = 1; b = 2;", "a = 1;\nb = 2;\n" },
        { "for (int i = 0; i < 3; i++) { a(); b(); }", "for (int i = 0; i < 3; i++) {\n    a();\n    b();\n}\n" },
        { "void f(void)\n{\nif (x) { a; } else { b; }\nc;\n}\n",
          "void f(void)\n{\n    if (x) {\n        a;\n    } else {\n        b;\n    }\n    c;\n}\n" },
        { "static int f(int a) { return a; }", "static int f(int a)\n{\n    return a;\n}\n" },
        { "union { float f; int i; } v = { x }; return v.i;", "union { float f; int i; } v = { x };\nreturn v.i;\n" },
        { "struct t { int a; }; int b[] = { 1, 2 };", "struct t { int a; };\nint b[] = { 1, 2 };\n" },
        { "f((struct t){ 1; });", "f((struct t){ 1; });\n" },
        { "s = \"a; { b\"; c = ';'; d = '\\''; e;", "s = \"a; { b\";\nc = ';';\nd = '\\'';\ne;\n" },
        { "#define A(x) { x; \\\n  y; }\n{ a;\n#if B\nb;\n#endif\n}",
          "#define A(x) { x; \\\n  y; }\n{\n    a;\n#if B\n    b;\n#endif\n}\n" },
        { "a; /* why; */ b; // c; d\ne;", "a; /* why; */\nb; // c; d\ne;\n" },
        { "/* what { */\na;\n\n\nb;", "/* what { */\na;\n\nb;\n" },
        { "_Pragma(\"omp simd\")\nfor (;;) { a; }", "_Pragma(\"omp simd\")\nfor (;;) {\n    a;\n}\n" },
        { "{ { a; } }", "{\n    {\n        a;\n    }\n}\n" },
        { "a  =\n  b;", "a = b;\n" },
        { "int value = first_function(first_argument, second_argument) + second_function(third_argument, fourth);",
          "int value = first_function(first_argument, second_argument) +\n"
          "        second_function(third_argument, fourth);\n" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str once = { 0 }, twice = { 0 };
        mc_indent(&once, rows[i].text);
        CHECK(strcmp(once.s ? once.s : "", rows[i].want) == 0, "'%s' becomes\n%s", rows[i].text, once.s);
        mc_indent(&twice, once.s ? once.s : "");
        CHECK(strcmp(twice.s ? twice.s : "", rows[i].want) == 0, "again '%s' becomes\n%s", rows[i].text,
              twice.s);
        mc_str_free(&once);
        mc_str_free(&twice);
    }
}

/* Constant bounds are compared in fewer instructions than others: the numbers are those of the definition, in
 * whole vectors and at the end of a row. */
TEST(kernel_clips_by_constants)
{
    enum { N = 16 * 3 + 7 };
    static const struct {
        const char *formula;
        float low, high;
    } rows[] = {
        { "y = clip(x, 0, 6)", 0, 6 },
        { "y = clip(x, -1.5, -1.5)", -1.5f, -1.5f },
        { "y = clip(x, 6, 0)", 6, 0 },
    };
    static const float numbers[] = {
        NAN, INFINITY, -INFINITY, 6, 6.0000005f, -1.5f, 1e-45f, -3, 3, -0.f, 0.f
    };
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(N));
    float *from = mc_array_data(x);
    for (int k = 0; k < N; k++) {
        from[k] = numbers[k % (int)NELEM(numbers)];
    }
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_formula(g, rows[i].formula);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
        mc_array *y = NULL;
        REQUIRE(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].formula, mc_last_error());
        for (int k = 0; k < N; k++) {
            const float a = from[k], low = rows[i].low, high = rows[i].high,
                        have = ((float *)mc_array_data(y))[k],
                        want = a < low    ? low
                               : a > high ? high
                                          : a;
            CHECK(isnan(want) ? isnan(have) : have >= want && have <= want, "%s of %g is %g, not %g",
                  rows[i].formula, (double)a, (double)have, (double)want);
        }
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}
