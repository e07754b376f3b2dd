/* t_export_options.c: exports whose solvers are timed, and freestanding ones. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "own_folder.h"
#include "plan/plan.h"
#include <monochord.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEEDS_COMPILER()                                                                                     \
    if (!mc_cc_present()) {                                                                                  \
        SKIP("no C compiler");                                                                               \
    }

static char *file_text(const char *name)
{
    char *text = NULL;
    size_t n;
    CHECK(mc_file_read(in_folder(name), &text, &n) == MC_OK, "%s", mc_last_error());
    return text;
}

static mc_status export_as(const mc_export_function *f, const char *name, int measure, int freestanding)
{
    return mc_export(&(mc_export_spec){ .path = in_folder(name),
                                        .nfunction = 1,
                                        .function = f,
                                        .measure = measure,
                                        .freestanding = freestanding });
}

static mc_array *random_array(int rank, const int64_t *dims, uint32_t seed)
{
    mc_array *a = mc_array_new(MC_FLOAT32, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)(void *)a->data)[i] = (float)(int32_t)seed * 0x1p-31f;
    }
    return a;
}

/* ---- timed solvers ---- */

/* Makes wisdom say that `solver` was the fastest for problems whose key has the word.  Returns how many. */
static int prefer(const char *word, const char *solver)
{
    int n = 0;
    FILE *to = fopen(in_folder("wisdom"), "w");
    CHECK(to && mc_wisdom_print(to) == MC_OK, "%s", mc_last_error());
    fclose(to);
    char *text = file_text("wisdom");
    for (char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char key[512]; /* of a line: key, solver, seconds */
        snprintf(key, sizeof key, "%.*s", (int)strcspn(line, "\n"), line);
        for (int i = 0; i < 2; i++) {
            char *last = strrchr(key, ' ');
            *(last ? last : key) = '\0';
        }
        if (strstr(key, word) && strstr(key, " portable")) {
            mc_wisdom_put(key, solver, 1e-9);
            n++;
        }
    }
    mc_free(text);
    return n;
}

static bool calls(const char *name, const char *function)
{
    char *text = file_text(name), call[64];
    snprintf(call, sizeof call, "%s_f32(g", function);
    const bool found = text && strstr(text, call);
    mc_free(text);
    return found;
}

/* The gradients of a convolution, exported by the solvers that wisdom names, have the bits of the library. */
static void has_bits(mc_function *f, const mc_array *x, const char *name)
{
    mc_status s;
    char *text = file_text(name), flags[300];
    mc_array *want = NULL;
    snprintf(flags, sizeof flags, "-std=c99 -I%s", in_folder(""));
    struct mc_code *code = text ? mc_code_load(text, flags, &s) : NULL;
    void *at = code ? mc_code_function(code, "f_run") : NULL,
         *init = code ? mc_code_function(code, "f_init") : NULL;
    int (*run)(void *, void *, const float *, float *) = NULL;
    void (*set)(void *) = NULL;
    memcpy(&run, &at, sizeof run);
    memcpy(&set, &init, sizeof set);
    CHECK(run && set, "%s", mc_last_error());
    float *model = malloc(16 * 4 * 4 * 4 * sizeof *model), *y = malloc(16 * 4 * 4 * 4 * sizeof *y);
    CHECK(mc_call(f, MC_IN((mc_array *)x), MC_OUT(&want)) == MC_OK, "%s", mc_last_error());
    if (run && set && want && model && y) {
        set(model);
        CHECK(run(model, NULL, (const float *)(const void *)x->data, y) == 0, "it fails");
        mc_array *plain = mc_array_copy(want);
        CHECK(memcmp(plain->data, y, 16 * 4 * 4 * 4 * sizeof *y) == 0, "%s: other bits", name);
        mc_array_unref(&plain);
    }
    free(model);
    free(y);
    mc_array_unref(&want);
    mc_code_unref(&code);
    mc_free(text);
}

TEST(export_measured)
{
    NEEDS_COMPILER();
    mc_flag_set("device", "cpu");
    mc_flag_set("threads", "1");
    mc_flag_set("cache", in_folder("cache"));
    CHECK(mc_wisdom_clear() == MC_OK, "%s", mc_last_error());
    mc_graph *g = mc_graph_new();
    mc_array *w = random_array(4, (int64_t[]){ 16, 4, 4, 4 }, 1),
             *x = random_array(4, (int64_t[]){ 40, 4, 9, 9 }, 2);
    mc_shared *v = mc_shared_new(g, "w", w);
    mc_formula(g, "input x float32[?, 4, 9, 9]");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .name = "run", .inputs = "x", .outputs = "grad(sum(sqr(conv(x, w))), w)" });
    REQUIRE(f && v, "%s", mc_error(g));
    const mc_export_function one = { f, "run", "x[40, 4, 9, 9]" };
    CHECK(export_as(&one, "f.c", 0, 0) == MC_OK, "%s", mc_last_error());
    CHECK(calls("f.c", "outer") && !calls("f.c", "dots"), "not the solver with the lowest estimate");
    CHECK(prefer("conv f32 weights", "portable") == 0, "solvers were timed");
    CHECK(export_as(&one, "f.c", 1, 0) == MC_OK, "%s", mc_last_error());
    CHECK(calls("f.c", "outer") != calls("f.c", "dots"), "no solver of weights");
    CHECK(prefer("conv f32 weights", "portable") == 1, "no solvers were timed");
    CHECK(export_as(&one, "f.c", 1, 0) == MC_OK, "%s", mc_last_error());
    CHECK(calls("f.c", "dots") && !calls("f.c", "outer"), "wisdom is not followed");
    mc_flag_set("portable", "True");
    mc_flag_set("plan", "measure");
    has_bits(f, x, "f.c");
    mc_flag_set("portable", "False");
    mc_flag_set("plan", "estimate");
    CHECK(prefer("conv f32 weights", "portable_outer") == 1, "no wisdom");
    CHECK(export_as(&one, "f.c", 1, 0) == MC_OK && calls("f.c", "outer"), "wisdom is not followed");
    CHECK(export_as(&one, "f.c", 0, 0) == MC_OK && calls("f.c", "outer"), "%s", mc_last_error());
    mc_array_unref(&w);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
    CHECK(mc_wisdom_clear() == MC_OK, "%s", mc_last_error());
    drop_folder();
}

/* ---- freestanding ---- */

/* Runs a command of the shell in the folder. */
static void shell(const char *fmt, ...)
{
    char command[1600], all[1800];
    va_list args;
    va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    snprintf(all, sizeof all, "cd '%s' && { %s; } >&2", in_folder(""), command);
    CHECK(system(all) == 0, "%s", command);
}

static bool has_program(const char *name)
{
    char command[100];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
    return system(command) == 0;
}

/* Convolutions, products, pooling and functions of elements: what the file needs, and its bits. */
TEST(export_freestanding)
{
    static const char main_c[] =
        "#include \"f.h\"\n#include \"g.h\"\n#include <stdio.h>\n#include <string.h>\n"
        "static struct f f;\nstatic struct g g;\n"
        "int main(void)\n{\n"
        "    static float x[2 * 3 * 12 * 12], a[2 * 5], b[2 * 5];\n"
        "    unsigned s = 1;\n"
        "    for (int i = 0; i < 864; i++) {\n"
        "        s = s * 1664525u + 1013904223u;\n"
        "        x[i] = (float)(int)s * (float)1e-9;\n    }\n"
        "    f_init(&f), g_init(&g);\n"
        "    if (f_run(&f, NULL, x, a) || g_run(&g, NULL, x, b)) {\n        return 1;\n    }\n"
        "    return memcmp(a, b, sizeof a) ? 2 : a[0] == 0 ? 3 : 0;\n}\n";
    NEEDS_COMPILER();
    mc_flag_set("device", "cpu");
    mc_graph *g = mc_graph_new();
    mc_array *w = random_array(4, (int64_t[]){ 8, 3, 3, 3 }, 1),
             *v = random_array(2, (int64_t[]){ 200, 5 }, 3);
    mc_shared *one = mc_shared_new(g, "w", w), *two = mc_shared_new(g, "v", v);
    mc_formula(g, "input x float32[2, 3, 12, 12]; h = tanh(item(pool_max(conv(x, w), [2, 2], [2, 2], [0, 0], "
                  "axis=[2, 3]), 0))");
    mc_formula(g, "y = sqrt(exp(dot(reshape(h, [2, 200]), v))) + floor(h[0, 0, 0, 0] * 3) + trunc(v[0]) + "
                  "arcsinh(v[1]) + erfc(v[2]) + round(v[3] * 9) + ceil(v[4] * 5)");
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "run", .inputs = "x", .outputs = "y" });
    REQUIRE(f && one && two, "%s", mc_error(g));
    const mc_export_function e = { f, "run", NULL };
    CHECK(export_as(&e, "f.c", 0, 1) == MC_OK, "%s", mc_last_error());
    CHECK(export_as(&e, "g.c", 0, 0) == MC_OK, "%s", mc_last_error());
    put_file("main.c", main_c, sizeof main_c - 1);
    static const char *const compilers[] = { "gcc -std=c99", "clang -std=c99", "g++ -x c++ -std=c++11" };
    for (size_t i = 0; i < NELEM(compilers); i++) {
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(compilers[i], " "), compilers[i]);
        if (!has_program(word) || !has_program("nm")) {
            continue;
        }
        for (int k = 0; k < 2; k++) {
            shell("%s -ffreestanding -nostdlib -Wall -Wextra -Wpedantic -Werror %s -c f.c -o f.o",
                  compilers[i], k ? "-O2" : "-O0");
            shell("! nm -u f.o | grep -v ' memcpy$\\| memset$' | grep .");
        }
        if (strcmp(word, "g++") != 0) {
            shell("%s -O2 main.c f.o -DG_PLAIN g.c -o both -lm && ./both", compilers[i]);
        }
    }
    mc_array_unref(&w);
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- memory ---- */

/* Panels on the stacks of threads: whole vectors are copied to them.  12 x 9 positions, 64 channels and two
 * taps fill one to its end. */
TEST(export_panels_of_threads)
{
    static const char main_c[] =
        "#include \"f.h\"\nstatic struct f f;\nstatic float x[64 * 12 * 10], y[8 * 12 * 9];\n"
        "int main(void)\n{\n    f_init(&f);\n    return f_run(&f, 0, x, y);\n}\n";
    static const char cc[] = "gcc -std=c99 -O1 -fopenmp -fsanitize=address";
    NEEDS_COMPILER();
    put_file("try.c", "int main(void) { return 0; }\n", 29);
    char command[700];
    snprintf(command, sizeof command, "cd '%s' && %s try.c -o try 2>/dev/null && ./try 2>/dev/null",
             in_folder(""), cc);
    if (system(command) != 0) {
        drop_folder();
        SKIP("no gcc with OpenMP and AddressSanitizer");
    }
    mc_flag_set("device", "cpu");
    mc_graph *g = mc_graph_new();
    mc_array *w = random_array(4, (int64_t[]){ 8, 64, 1, 2 }, 1);
    mc_shared *v = mc_shared_new(g, "w", w);
    mc_formula(g, "input x float32[1, 64, 12, 10]");
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "run", .inputs = "x", .outputs = "conv(x, w)" });
    REQUIRE(f && v, "%s", mc_error(g));
    const mc_export_function e = { f, "run", NULL };
    CHECK(export_as(&e, "f.c", 0, 0) == MC_OK, "%s", mc_last_error());
    put_file("main.c", main_c, sizeof main_c - 1);
    shell("%s -march=native -DF_PARALLEL_WORK=0 main.c f.c -o f -lm && ASAN_OPTIONS=detect_leaks=0 "
          "OMP_NUM_THREADS=2 ./f",
          cc);
    mc_array_unref(&w);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* The functions that stand in place of the C library's, with and without instructions for them. */
TEST(export_freestanding_functions)
{
    static const char main_c[] =
        "#include <math.h>\n#include <stdio.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
        "static float root(float x) { return sqrtf(x); }\nstatic float real_fma(float a, float b, float c) { "
        "return fmaf(a, b, c); }\n"
        "#undef NAN\n#undef HUGE_VALF\n#include \"f.c\"\n"
        "static uint32_t state = 7;\n"
        "static float draw(void)\n{\n    float_bits v;\n"
        "    state = state * 1664525u + 1013904223u;\n    v.u = state >> 8 ^ state << 9;\n"
        "    if (state >> 28 == 0) {\n        v.u = (v.u & 0x80000000u) | (v.u >> 3 & 3) << 23;\n    }\n"
        "    if (state >> 28 == 1) {\n        v.f = (float)(int32_t)(state >> 7 & 255) * 0.5f - 64;\n    }\n"
        "    return v.f;\n}\n"
        "static void same(const char *what, float x, float have, float want)\n{\n"
        "    float_bits a, b;\n    a.f = have, b.f = want;\n"
        "    if (a.u != b.u && !(have != have && want != want)) {\n"
        "        printf(\"%s of %a: %a, not %a\\n\", what, (double)x, (double)have, (double)want);\n        "
        "exit(1);\n    }\n}\n"
        "int main(void)\n{\n"
        "    for (int i = 0; i < 1000000; i++) {\n"
        "        const float x = draw(), y = draw(), z = i % 3 ? draw() : -x * y;\n"
        "        same(\"trunc\", x, free_truncf(x), truncf(x));\n        same(\"floor\", x, free_floorf(x), "
        "floorf(x));\n"
        "        same(\"ceil\", x, free_ceilf(x), ceilf(x));\n        same(\"rint\", x, free_rintf(x), "
        "rintf(x));\n"
        "        same(\"sqrt\", x, free_sqrtf(x), root(x));\n"
        "        same(\"fma\", x, free_fmaf(x, y, z), real_fma(x, y, z));\n    }\n    return 0;\n}\n";
    NEEDS_COMPILER();
    mc_flag_set("device", "cpu");
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[3]");
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "run", .inputs = "x", .outputs = "x + 1" });
    REQUIRE(f, "%s", mc_error(g));
    const mc_export_function e = { f, "run", NULL };
    CHECK(export_as(&e, "f.c", 0, 1) == MC_OK, "%s", mc_last_error());
    put_file("main.c", main_c, sizeof main_c - 1);
    shell("cc -O1 -w main.c -o with -lm && ./with");
    shell("cc -O1 -w -U__SSE__ -U__ARM_FP -U__aarch64__ -U__FMA__ -UFP_FAST_FMAF main.c -o without -lm && "
          "./without");
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(export_freestanding_refuses)
{
    static const struct {
        const char *input, *formula, *says;
    } rows[] = {
        { "x float64[3]", "x + 1", "float32 alone, not in float64" },
        { "x float32[3]", "cast(cast(x, 'float64') * 3.5, 'float32')", "float32 alone, not in float64" },
        { "x float16[3]", "x * 2", "float32 alone, not in float16" },
        { "x float64[3, 3]", "dot(x, x)", "float32 alone, not in float64" },
        { "x float32[3]", "gammaln(x)", "has no lgammaf_r()" },
        { "x float32[3]", "sin(x)", "has no fma()" },
    };
    mc_flag_set("device", "cpu");
    for (size_t i = 0; i < NELEM(rows); i++) {
        char input[64];
        mc_graph *g = mc_graph_new();
        snprintf(input, sizeof input, "input %s", rows[i].input);
        mc_formula(g, input);
        mc_function *f = mc_compile(g,
                                    &(mc_spec){ .name = "run", .inputs = "x", .outputs = rows[i].formula });
        CHECK(f, "%s", mc_error(g));
        const mc_export_function e = { f, "run", NULL };
        if (f) {
            const mc_status s = export_as(&e, "f.c", 0, 1);
            CHECK(s == MC_EUNSUPPORTED && strstr(mc_last_error(), rows[i].says), "%s: %s", rows[i].formula,
                  s == MC_OK ? "exported" : mc_last_error());
            CHECK(strstr(mc_last_error(), "    in "), "no formula: %s", mc_last_error());
            CHECK(access(in_folder("f.c"), F_OK) != 0, "%s: written", rows[i].formula);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[3]");
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "run", .inputs = "x", .outputs = "x + 1" });
    const mc_export_function e = { f, "run", NULL };
    CHECK(mc_export(&(mc_export_spec){
              .path = in_folder("f.c"), .nfunction = 1, .function = &e, .isa = "all", .freestanding = 1 }) ==
                  MC_EARG &&
              strstr(mc_last_error(), "leave isa out"),
          "%s", mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}
