/* math_loops.h: loops over the functions of generated kernels, one number or a vector at a time, and how far
 * off they are.
 *
 * Invariant: what is compiled here is the text that kernels get, with the flags that kernels get. */
#ifndef MATH_LOOPS_H
#define MATH_LOOPS_H

#include "check.h"
#include "device/cpu/cpu.h"
#include "math_ref.h"
#include "render/print.h"

#include <stdio.h>

enum { BLOCK = 1024 }; /* numbers at a time */

typedef void loop(const void *x, const void *y, void *z, int64_t n);

/* ---- errors ---- */

struct worst {
    double ulp;
    real x, x2, y, r;
};

static inline void note(struct worst *w, const struct mc_math_row *row, real x, real x2, real y, real r)
{
    bool zero = row->dtype == MC_FLOAT64 ? (double)r == 0 : (float)r == 0;
    double u = zero && !signbit(y) != !signbit(r) ? INFINITY : ulps_of(row, y, r);
    if (u > w->ulp) {
        *w = (struct worst){ u, x, x2, y, r };
    }
}

/* the same of float32, against a double: what is rounded right, most of all, needs no long double */
static inline void note_f(struct worst *w, const struct mc_math_row *row, float x, float y, double r)
{
    float right = (float)r;
    uint32_t a = 0, b = 0;
    memcpy(&a, &y, sizeof a);
    memcpy(&b, &right, sizeof b);
    if (a != b && !(isnan(y) && isnan(r))) {
        note(w, row, (real)x, 0, (real)y, r);
    }
}

static inline bool keeps_bound(const struct mc_math_row *row, const struct worst *w, const char *how)
{
    return CHECK(w->ulp <= row->ulp, "%s %s: %.3f ulp, allowed %.1f: of %La, %La it gave %La instead of %La",
                 row->name, how, w->ulp, row->ulp, w->x, w->x2, w->y, w->r);
}

static inline const struct mc_math_row *row_named(const char *name)
{
    for (size_t i = 0; i < mc_nmath; i++) {
        if (strcmp(mc_math_rows[i].name, name) == 0) {
            return &mc_math_rows[i];
        }
    }
    return NULL;
}

/* ---- the texts as kernels ---- */

static inline void add_loop(struct mc_str *s, const struct mc_math_row *row)
{
    const char *t = row->dtype == MC_FLOAT64 ? "double" : "float";
    mc_str_addf(s,
                "void run_%s(const void *x, const void *y, void *z, long long n)\n{\n"
                "    const %s *a = x, *b = y;\n    %s *c = z;\n#pragma GCC ivdep\n"
                "    for (long long i = 0; i < n; i++) { c[i] = %s(a[i]%s); }\n}\n",
                row->name, t, t, row->name, row->arity == 2 ? ", b[i]" : "");
}

/* one unit with every function and a loop over each */
static inline char *unit(void)
{
    struct mc_str s = { 0 };
    uint64_t have[MC_MATH_WORDS] = { 0 };
    for (size_t i = 0; i < mc_nmath; i++) {
        if (mc_math_rows[i].arity) {
            mc_math_add(&s, have, mc_math_rows[i].name + 4, mc_math_rows[i].dtype);
            add_loop(&s, &mc_math_rows[i]);
        }
    }
    return mc_str_take(&s);
}

static inline loop *loop_of(const struct mc_code *code, const struct mc_math_row *row)
{
    char name[64];
    snprintf(name, sizeof name, "run_%s", row->name);
    return (loop *)(uintptr_t)mc_code_symbol(code, name);
}

/* HEAD and TEXT, compiled as kernels are; NULL after a failed check. */
static inline struct mc_code *code_of(const char *head, const char *text)
{
    mc_status status = MC_OK;
    struct mc_str s = { 0 };
    mc_str_addf(&s, "%s%s", head, text);
    struct mc_code *code = mc_code_load(s.s, mc_cpu_flags(), &status);
    mc_str_free(&s);
    CHECK(code, "%s", mc_last_error());
    return code;
}

/* All functions as kernels print them, behind HEAD. */
static inline struct mc_code *kernel_code(const char *head)
{
    char *text = unit();
    struct mc_code *code = code_of(head, text);
    mc_free(text);
    return code;
}

/* ---- the same functions over whole vectors ---- */

static inline const struct mc_math_row *vector_row(const char *name)
{
    char c[64];
    snprintf(c, sizeof c, "mcf_%s", name);
    return row_named(c);
}

/* "run_exp" and its kin over vectors, behind HEAD */
static inline struct mc_code *vector_code(const char *head)
{
    struct mc_str s = { 0 };
    mc_str_add(&s, "typedef long long i64;\n");
    mc_str_add(&s, mc_vector_kernel_text);
    for (int i = 0; i < mc_nwide; i++) {
        if (vector_row(mc_vector_kernel_functions_known[i].name)) {
            mc_str_addf(&s,
                        "void run_%s(const float *x, const void *y, float *z, i64 n)\n{ (void)y; for (i64 i "
                        "= 0; i < n; i += 16) {\n"
                        "  vm m = n - i < 16 ? (vm)((1u << (n - i)) - 1) : (vm)-1; v_store(z + i, "
                        "v_%s(v_load(x + i, m)), m); } }\n",
                        mc_vector_kernel_functions_known[i].name, mc_vector_kernel_functions_known[i].name);
        }
    }
    struct mc_code *code = code_of(head, s.s);
    mc_str_free(&s);
    return code;
}

static inline loop *vector_loop(const struct mc_code *code, const char *name)
{
    char run[64];
    snprintf(run, sizeof run, "run_%s", name);
    return (loop *)(uintptr_t)mc_code_symbol(code, run);
}

static inline bool vectors_run(void)
{
    return mc_cc_present() && mc_cpu()->avx512dq;
}

#endif
