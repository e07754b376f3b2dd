/* export_formulas.h: functions of formulas beside their exported files: the bits of the library, at two
 * sizes, in every kind of file. */
#ifndef EXPORT_FORMULAS_H
#define EXPORT_FORMULAS_H

#include "export_words.h"
#include "sample.h"
#include <unistd.h>

#define NEEDS_COMPILER()                                                                                     \
    if (!mc_cc_present()) {                                                                                  \
        SKIP("no C compiler");                                                                               \
    }                                                                                                        \
    mc_flag_set("device", "cpu");                                                                            \
    mc_flag_set("portable", "True")

/* ---- a function beside its exported file ---- */

/* x and d: the same sizes, float32 and float64; v: the last of these sizes; n: a number of an int64 */
static const char *const inputs = "x, d, v";
enum { SIZES = 2, MOST = 16 };
static const char *const sizes[SIZES] = { "x[5, 3], d[5, 3], v[3]", "x[2, 3], d[2, 3], v[3]" };

static inline mc_function *compiled(mc_graph *g, const char *lines, const char *outputs, const char *updates,
                             const char *mode)
{
    mc_array *w = sample(MC_FLOAT32, 2, (int64_t[]){ 3, 3 }, -1, 1);
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "d", MC_FLOAT64, 2);
    mc_input(g, "v", MC_FLOAT32, 1);
    mc_input(g, "i", MC_INT64, 1);
    mc_shared_new(g, "W", w);
    mc_array_unref(&w);
    mc_random(g, "rng", 17);
    if (lines) {
        mc_formula(g, lines);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "f",
                                               .inputs = inputs,
                                               .outputs = outputs,
                                               .updates = updates,
                                               .mode = mode,
                                               .on_unused = "ignore" });
    CHECK(f, "%s: %s", outputs, mc_error(g));
    return f;
}

/* The text of a file in the folder; the caller frees it. */
static inline char *text_of(const char *name)
{
    char *text = NULL;
    size_t n = 0;
    CHECK(mc_file_read(in_folder(name), &text, &n) == MC_OK, "%s", mc_last_error());
    char *ended = calloc(1, n + 1);
    memcpy(ended, text ? text : "", text ? n : 0);
    mc_free(text);
    return ended;
}

/* The file, and functions that pass arrays on from a list.  Code is found in the cache by its whole text. */
static inline struct mc_code *code_around(int noutputs, const char *flags)
{
    struct mc_str text = { 0 };
    mc_status s = MC_OK;
    char all[256];
    char *file = text_of("f.c");
    mc_str_addf(&text, "%s\nvoid set(void *m) { f_init(m); }\n", file);
    free(file);
    for (int k = 0; k < SIZES; k++) {
        mc_str_addf(&text, "int call_%d(void *m, void *memory, void **p) { return f_at_%d(m, memory", k, k);
        for (int i = 0; i < 3 + noutputs; i++) {
            mc_str_addf(&text, ", p[%d]", i);
        }
        mc_str_add(&text, "); }\n");
    }
    snprintf(all, sizeof all, "-std=c99 %s -I%s", flags, in_folder(""));
    struct mc_code *code = mc_code_load(text.s, all, &s);
    CHECK(code, "%s: %s", flags, mc_last_error());
    mc_str_free(&text);
    return code;
}

typedef void setting(void *model);
typedef int calling(void *model, void *memory, void **array);

/* Two calls of both at each size.  The function's variable has the same values again afterwards. */
static inline void same_calls(mc_function *f, struct mc_code *code, const char *what)
{
    any_function *set = function_of(code, "set");
    const int n = mc_function_noutputs(f);
    mc_shared *w = mc_function_nshared(f) ? mc_function_shared(f, 0) : NULL;
    mc_array *before = w ? mc_shared_get(w) : NULL;
    float *model = calloc(64, sizeof *model);
    ((setting *)set)(model);
    for (int k = 0; k < 2 * SIZES; k++) {
        char name[16];
        const int64_t rows = k % SIZES ? 2 : 5;
        mc_array *in[3] = { sample(MC_FLOAT32, 2, (int64_t[]){ rows, 3 }, -1, 1),
                            sample(MC_FLOAT64, 2, (int64_t[]){ rows, 3 }, -1, 1),
                            sample(MC_FLOAT32, 1, (int64_t[]){ 3 }, -1, 1) };
        mc_array *out[MOST] = { 0 }, *own[3], *now[MOST];
        mc_arg to[MOST];
        void *p[3 + MOST];
        for (int i = 0; i < n; i++) {
            to[i] = mc_arg_slot(&out[i]);
        }
        snprintf(name, sizeof name, "call_%d", k % SIZES);
        mc_arg from[3];
        for (int i = 0; i < 3; i++) { /* contiguous: the order of a sum may depend on strides */
            own[i] = mc_array_copy(in[i]);
            from[i] = mc_arg_array(own[i]);
            p[i] = own[i]->data;
        }
        CHECK(mc_call_args(f, 3, from, n, to) == MC_OK, "%s: %s", what, mc_last_error());
        for (int i = 0; i < n && out[i]; i++) {
            now[i] = mc_array_new(out[i]->dtype, out[i]->rank, out[i]->dims);
            memset(now[i]->data, 0x5a, (size_t)mc_array_size(now[i]) * mc_dtypes[now[i]->dtype].size);
            p[3 + i] = now[i]->data;
        }
        any_function *at = function_of(code, name);
        CHECK(at && ((calling *)at)(model, NULL, p) == 0, "%s: an error", what);
        for (int i = 0; i < n && out[i]; i++) {
            CHECK(mc_array_same_bits(out[i], now[i]), "%s: result %d differs at size %d", what, i, k % SIZES);
            mc_array_unref(&out[i]), mc_array_unref(&now[i]);
        }
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&in[i]), mc_array_unref(&own[i]);
        }
        mc_array *value = w ? mc_shared_get(w) : NULL;
        CHECK(!w || memcmp(model, value->data, (size_t)mc_array_size(value) * mc_dtypes[value->dtype].size) ==
                        0,
              "%s: the variable differs", what);
        mc_array_unref(&value);
    }
    CHECK(!w || mc_shared_set(w, before) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&before);
    free(model);
}

static inline bool exported(mc_function *f, const char *isa, bool freestanding)
{
    mc_export_function at[SIZES] = { { f, "at_0", sizes[0] }, { f, "at_1", sizes[1] } };
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("f.c"));
    const mc_export_spec spec = {
        .path = path, .nfunction = SIZES, .function = at, .isa = isa, .freestanding = freestanding
    };
    return CHECK(mc_export(&spec) == MC_OK, "%s", mc_last_error());
}

struct row {
    const char *lines, *outputs, *updates, *mode;
    bool hosted;                /* no freestanding file can have it */
};

static inline void same_as_library(const struct row *row)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, row->lines, row->outputs, row->updates, row->mode);
    if (f && exported(f, NULL, false)) {
        struct mc_code *code = code_around(mc_function_noutputs(f), "");
        same_calls(f, code, row->outputs);
        mc_code_unref(&code);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

#define SAME_AS_LIBRARY(...)                                                                                 \
    NEEDS_COMPILER();                                                                                        \
    const struct row rows[] = { __VA_ARGS__ };                                                               \
    for (size_t i = 0; i < NELEM(rows); i++) {                                                               \
        same_as_library(&rows[i]);                                                                           \
    }                                                                                                        \
    drop_folder()

/* Every kind of file: the same bits; and no warnings. */
static inline void same_in_every_kind(const struct row *row)
{
    mc_flag_set("cpu.isa", "native");
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, row->lines, row->outputs, row->updates, row->mode);
    static const struct { const char *isa, *flags; bool freestanding; } rows[] = {
        { NULL, "-O3", false }, { NULL, "-DF_PLAIN", false }, { "all", "", false }, { "avx2", "-O1", false },
        { NULL, "-fopenmp -DF_PARALLEL_WORK=0", false }, { NULL, "-O2 -ffreestanding", true },
    };
    for (size_t i = 0; f && i < NELEM(rows); i++) {
        if (rows[i].freestanding && row->hosted) {
            continue;
        }
        if (exported(f, rows[i].isa, rows[i].freestanding)) {
            struct mc_code *code = code_around(mc_function_noutputs(f), rows[i].flags);
            same_calls(f, code, rows[i].flags);
            mc_code_unref(&code);
        }
        if (i == 0 || rows[i].isa || rows[i].freestanding) { /* a text of its own */
            compiles("f.c");
        }
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* Exporting ends in an error or in a file, whichever allocation fails. */
static inline void exported_without_memory(const char *outputs)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, outputs, NULL, NULL);
    mc_export_function at = { f, "run", sizes[0] };
    REQUIRE(f, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        const mc_status s = mc_export_c(in_folder("f.c"), 1, &at);
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "status %d: %s", (int)s, mc_last_error());
        CHECK((s == MC_OK) == (access(in_folder("f.c"), F_OK) == 0), "a file after status %d", (int)s);
        remove(in_folder("f.c"));
        remove(in_folder("f.h"));
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

#endif
