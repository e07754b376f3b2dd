/* t_math.c: the functions of generated kernels against libm in the next wider precision, on numbers of every
 * kind; t_math_every.c has every number.
 *
 * Each text is run twice: compiled as a kernel, with the flags kernels get, and as plain C of this
 * file, which on most processors has no fused multiply-add.  Both must keep the row's bound.
 *
 * Invariant: a row without a reference here fails. */
#include "math_loops.h"

#include <stdlib.h>

/* ---- the texts as plain C: loops over mcf_exp and its like, under its name ---- */

#define PIECE(kind, id, needs, ...) __VA_ARGS__
#define UNARY(kind, id, ulp, range, needs, ...) __VA_ARGS__
#define BINARY(kind, id, ulp, needs, ...) __VA_ARGS__
#include "render/math_f64.def"
#include "render/math_f32.def"
#undef PIECE
#undef UNARY
#undef BINARY

typedef float number_f;
typedef double number_d;

#define PIECE(kind, id, needs, ...)
#define UNARY(kind, id, ulp, range, needs, ...)                                                    \
    static void plain_##kind##_##id(const void *x, const void *y, void *z, int64_t n)              \
    {                                                                                              \
        const number_##kind *a = x;                                                                \
        number_##kind *c = z;                                                                      \
        (void)y;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            c[i] = mc##kind##_##id(a[i]);                                                          \
        }                                                                                          \
    }
#define BINARY(kind, id, ulp, needs, ...)                                                          \
    static void plain_##kind##_##id(const void *x, const void *y, void *z, int64_t n)              \
    {                                                                                              \
        const number_##kind *a = x, *b = y;                                                        \
        number_##kind *c = z;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            c[i] = mc##kind##_##id(a[i], b[i]);                                                    \
        }                                                                                          \
    }
#include "render/math_f64.def"
#include "render/math_f32.def"
#undef UNARY
#undef BINARY

static const struct {
    const char *name;
    loop *run;
} plain[] = {
#define UNARY(kind, id, ulp, range, needs, ...) { "mc" #kind "_" #id, plain_##kind##_##id },
#define BINARY(kind, id, ulp, needs, ...) { "mc" #kind "_" #id, plain_##kind##_##id },
#include "render/math_f64.def"
#include "render/math_f32.def"
#undef PIECE
#undef UNARY
#undef BINARY
};

/* ---- arguments ---- */

static const double special[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, INFINITY, -INFINITY, NAN, 4.94e-324, -4.94e-324, 1e-310,
    0x1p-1022, 0x1p-149, -0x1p-149, 1e-40, -1e-40, 0x1p-126, 0x1.fffffep127, -0x1.fffffep127,
    0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, 88.72283, 88.7229, -87.4, -103.2, -103.98, -104.1,
    89.41598, 127.99999, 128, -149, -149.5, -151, 709.782, 709.79, -708.5, -745.1, -745.2, 1023.99, 1024,
    -1074.5, -1075.5, 0x1.fffffep-1, 0x1.000002p0, -0x1.fffffep-1, 0x1.6a09e6p-1, 0x1.6a09e8p-1,
    3.14159265358979, 1.5707963267949, 10.05, 10.06, 27.2, 9.01, 8388607.5, 16777217, 1e10, -1e10,
};

/* a quarter are any bits at all, the rest numbers of ordinary size; or those between lo and hi */
static double any_double(const struct ref *ref)
{
    uint64_t u = test_random();
    double x = 0;
    if (ref->hi > 0) {
        return exp(test_uniform(log(ref->lo), test_random() % 2 ? log(ref->hi) : 4));
    }
    switch (u % 4) {
    case 0:
        u = test_random();
        memcpy(&x, &u, sizeof x);
        return x;
    case 1: return test_uniform(-2, 2);
    case 2: return test_uniform(-50, 50);
    default: return test_uniform(-800, 800);
    }
}

static void test_unary_d(const struct mc_math_row *row, loop *run, int blocks, const char *how)
{
    const struct ref *ref = ref_of(row);
    struct worst w = { 0 };
    double x[BLOCK], y[BLOCK];
    for (int b = 0; b < blocks; b++) {
        for (size_t i = 0; i < BLOCK; i++) {
            x[i] = b == 0 && ref->hi <= 0 && i < NELEM(special) ? special[i] : any_double(ref);
        }
        run(x, NULL, y, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            note(&w, row, x[i], 0, y[i], beyond(row, x[i]) ? (real)NAN : ref->wide(x[i]));
        }
    }
    keeps_bound(row, &w, how);
}

/* every stride-th bit pattern, and the special values */
static void test_unary_f(const struct mc_math_row *row, loop *run, uint32_t stride, const char *how)
{
    const struct ref *ref = ref_of(row);
    struct worst w = { 0 };
    float x[BLOCK], y[BLOCK];
    uint64_t bits = test_random() % stride;
    for (bool first = true; bits >> 32 == 0; first = false) {
        int n = 0;
        for (size_t i = 0; first && i < NELEM(special); i++) {
            x[n++] = (float)special[i];
        }
        for (; n < BLOCK && bits >> 32 == 0; n++, bits += stride) {
            uint32_t u = (uint32_t)bits;
            memcpy(&x[n], &u, sizeof u);
        }
        run(x, NULL, y, n);
        for (int i = 0; i < n; i++) {
            if (ref->lo32 <= 0 || (double)x[i] >= ref->lo32) {
                double xd = (double)x[i];
                double r = ref->narrow ? ref->narrow(xd) : (double)ref->wide(xd);
                note_f(&w, row, x[i], y[i], beyond(row, xd) ? (double)NAN : r);
            }
        }
    }
    keeps_bound(row, &w, how);
}

/* every pair of special values, then pairs whose power is seldom out of range */
static void test_binary(const struct mc_math_row *row, loop *run, int blocks, const char *how)
{
    const struct ref *ref = ref_of(row);
    bool wide = row->dtype == MC_FLOAT64;
    struct worst w = { 0 };
    double x[BLOCK], y[BLOCK], z[BLOCK];
    float xf[BLOCK], yf[BLOCK], zf[BLOCK];
    size_t pairs = NELEM(special) * NELEM(special), k = 0;
    for (int b = 0; b < blocks || k < pairs; b++) {
        for (int i = 0; i < BLOCK; i++, k++) {
            double s = test_uniform(-1, 1) * (test_random() % 3 ? 2 : 40);
            x[i] = k < pairs ? special[k / NELEM(special)] : exp(s);
            y[i] = k < pairs           ? special[k % NELEM(special)]
                   : test_random() % 2 ? test_uniform(-4, 4)
                                       : test_uniform(-1, 1) * (wide ? 740 : 100) / s;
            xf[i] = (float)x[i];
            yf[i] = (float)y[i];
        }
        run(wide ? (void *)x : xf, wide ? (void *)y : yf, wide ? (void *)z : zf, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            real a = wide ? (real)x[i] : (real)xf[i];
            real c = wide ? (real)y[i] : (real)yf[i];
            note(&w, row, a, c, wide ? (real)z[i] : (real)zf[i], ref->wide2(a, c));
        }
    }
    keeps_bound(row, &w, how);
}

static void test_row(const struct mc_math_row *row, loop *run, int effort, const char *how)
{
    if (!CHECK(ref_of(row) && run, "%s %s: no reference, or none to run", row->name, how)) {
        return;
    }
    if (row->arity == 2) {
        test_binary(row, run, 16 * effort, how);
    } else if (row->dtype == MC_FLOAT64) {
        test_unary_d(row, run, 8 * effort, how);
    } else {
        test_unary_f(row, run, 32749u / (uint32_t)effort, how); /* a prime over a power of two */
    }
}

/* ---- tests ---- */

TEST(math_rows_need_rows_above_them)
{
    for (size_t i = 0; i < mc_nmath; i++) {
        const struct mc_math_row *r = &mc_math_rows[i];
        CHECK(row_named(r->name) == r, "%s stands twice", r->name);
        CHECK(strstr(r->text, r->name), "the text of %s defines something else", r->name);
        CHECK(!r->arity || r->ulp > 0, "%s has no bound", r->name);
        char needs[256], *state = NULL;
        snprintf(needs, sizeof needs, "%s", r->needs);
        for (char *w = strtok_r(needs, " ", &state); w; w = strtok_r(NULL, " ", &state)) {
            const struct mc_math_row *n = row_named(w);
            CHECK(n && n < r, "%s needs %s, which does not stand above it", r->name, w);
        }
    }
}

TEST(math_text_is_printed_once)
{
    struct mc_str s = { 0 };
    uint64_t have[MC_MATH_WORDS] = { 0 };
    mc_math_add(&s, have, "tanh", MC_FLOAT32);
    size_t n = s.n;
    CHECK(strstr(s.s, mc_math_text("tanh", MC_FLOAT32)), "no tanh in %s", s.s);
    mc_math_add(&s, have, "tanh", MC_FLOAT32);
    mc_math_add(&s, have, "tanh", MC_FLOAT16);
    CHECK(s.n == n, "printed twice: %s", s.s + n);
    mc_math_add(&s, have, "rint", MC_FLOAT32);
    mc_math_add(&s, have, "rint", MC_FLOAT64);
    CHECK(strcmp(s.s + n, "#define mcf_rint __builtin_rintf\n#define mcd_rint __builtin_rint\n") == 0, "%s",
          s.s + n);
    CHECK(!mc_math_text("rint", MC_FLOAT32) && !mc_math_text("asinh", MC_FLOAT64),
          "a text where libm's is used");
    mc_str_free(&s);
}

TEST(math_text_without_memory)
{
    ALLOC_FAIL_LOOP {
        char *text = unit();
        CHECK(text || ALLOC_FAILED, "no text, yet memory: %s", mc_last_error());
        mc_free(text);
    }
}

TEST(math_in_plain_c)
{
    size_t k = 0;
    for (size_t i = 0; i < mc_nmath; i++) {
        if (mc_math_rows[i].arity) {
            test_row(&mc_math_rows[i], plain[k++].run, test_is_full() ? 16 : 1, "as plain C");
        }
    }
    CHECK(k == NELEM(plain), "%zu of %zu loops", k, NELEM(plain));
}

TEST(math_in_kernels)
{
    if (!mc_cc_present()) {
        SKIP("no C compiler");
    }
    struct mc_code *code = kernel_code("");
    for (size_t i = 0; code && i < mc_nmath; i++) {
        if (mc_math_rows[i].arity) {
            test_row(&mc_math_rows[i], loop_of(code, &mc_math_rows[i]), 8, "in a kernel");
        }
    }
    mc_code_unref(&code);
}

/* The loop over each function is one of vectors, without a call; lgamma alone is libm's. */
TEST(math_becomes_vectors)
{
    if (!mc_cc_present() || !mc_cpu()->avx2) {
        SKIP("no C compiler, or no AVX2");
    }
    char path[] = "/tmp/t_math_XXXXXX.c", line[4096];
    int fd = mkstemps(path, 2);
    REQUIRE(fd >= 0, "no temporary file");
    char *text = unit();
    FILE *f = fdopen(fd, "w");
    fputs(text, f);
    fclose(f);
    mc_free(text);
    snprintf(line, sizeof line, "%s -std=gnu11 -O3 -fno-math-errno -fno-trapping-math -w -S -o - %s %s",
             mc_flag_text(FLAG_cc), mc_cpu_flags(), path);
    FILE *assembly = popen(line, "r");
    const struct mc_math_row *row = NULL;
    bool vectors = false, calls = false;
    int seen = 0;
    while (assembly && fgets(line, sizeof line, assembly)) {
        if (strncmp(line, "run_", 4) == 0 && strchr(line, ':')) {
            *strchr(line, ':') = '\0';
            row = row_named(line + 4);
            vectors = calls = false;
        }
        vectors |= strstr(line, "%ymm") || strstr(line, "%zmm");
        calls |= strstr(line, "\tcall") != NULL;
        if (row && strstr(line, "\t.size\trun_")) {
            bool libm = strstr(row->name, "lgamma");
            CHECK(libm ? calls : vectors && !calls, "%s: %s, %s", row->name,
                  vectors ? "vectors" : "no vectors", calls ? "calls" : "no calls");
            row = NULL;
            seen++;
        }
    }
    CHECK(assembly && pclose(assembly) == 0, "the compiler failed");
    CHECK(seen == (int)NELEM(plain), "%d of %zu loops in the assembly", seen, NELEM(plain));
    remove(path);
}

TEST(math_on_vectors)
{
    if (!vectors_run()) {
        SKIP("no C compiler or no AVX-512");
    }
    struct mc_code *code = vector_code("");
    for (int i = 0; code && i < mc_nwide; i++) {
        const struct mc_math_row *row = vector_row(mc_vector_kernel_functions_known[i].name);
        if (row) { /* the others are single instructions */
            test_row(row, vector_loop(code, mc_vector_kernel_functions_known[i].name),
                     test_is_full() ? 16 : 1, "on vectors");
        }
    }
    mc_code_unref(&code);
}

/* Kernels that are exact compute the same bits over vectors as one number at a time: x == max(x) may need
 * both. */
TEST(math_on_vectors_has_the_bits_of_plain_kernels)
{
    if (!vectors_run()) {
        SKIP("no C compiler or no AVX-512");
    }
    struct mc_code *scalars = kernel_code(mc_dialect_c.exact), *vectors = vector_code(mc_dialect_c.exact);
    float x[BLOCK], y[BLOCK], z[BLOCK];
    for (int i = 0; scalars && vectors && i < mc_nwide; i++) {
        const struct mc_vector_kernel_function *f = &mc_vector_kernel_functions_known[i];
        const struct mc_math_row *row = vector_row(f->name);
        int apart = 0;
        float at = 0;
        for (int turn = 0; row && turn < 64; turn++) {
            for (int k = 0; k < BLOCK; k++) {
                const uint32_t bits = (uint32_t)test_random();
                x[k] = (float)test_uniform(-1, 1) * ldexpf(1, (int)(test_random() % 12) - 5);
                if (turn % 4 == 0) {
                    memcpy(&x[k], &bits, sizeof x[k]);
                }
            }
            loop_of(scalars, row)(x, x, y, BLOCK);
            vector_loop(vectors, f->name)(x, x, z, BLOCK);
            for (int k = 0; k < BLOCK; k++) {
                if (memcmp(&y[k], &z[k], sizeof y[k]) != 0 && !(isnan(y[k]) && isnan(z[k]))) {
                    apart++;
                    at = x[k];
                }
            }
        }
        if (row) {
            CHECK(f->differs == (apart > 0), "%s: %d of %d numbers differ, such as that of %a", f->name,
                  apart, 64 * BLOCK, (double)at);
        }
    }
    mc_code_unref(&scalars);
    mc_code_unref(&vectors);
}
