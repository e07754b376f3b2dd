/* gemm_cases.h: instances of matrix products, run and judged against the definition, summed here in float64
 * with the bound that any order of summation keeps.
 *
 * Operands end where a page ends that may not be touched; gaps between rows hold NaN; the workspace
 * has canaries behind it and is filled with NaN before. */
#ifndef GEMM_CASES_H
#define GEMM_CASES_H

#include "check.h"
#include "device/cpu/cpu.h"
#include "heavy/gemm/cpu/library.h"
#include "guarded.h"
#include "plan_options.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- cases ---- */

struct shape {
    int64_t m, n, k;
};
enum { NO_C0, FULL_C0, SAME_C0, ROW_C0, COL_C0, ONE_C0, NAN_C0, NC0 }; /* SAME: C itself; NAN: beta is 0 */
struct variant {
    double alpha, beta;
    int c0;
    bool epilogue;
    int64_t batch, gap; /* gap: elements between rows */
    bool share_a, share_b;
};

struct instance {
    struct mc_gemm_problem p;
    struct variant v;
    struct guarded a, b, c, c0;
    int64_t c_count;
    char *start;            /* what C holds before */
    double *want, *bound;   /* (batch, m, n) */
    unsigned char *seen;    /* by the epilogue */
};

static inline int64_t count(const int64_t *s, int64_t batch, int64_t rows, int64_t cols)
{
    return batch && rows && cols ? (batch - 1) * s[0] + (rows - 1) * s[1] + (cols - 1) * s[2] + 1 : 0;
}

static inline void strides(int64_t *s, char order, int64_t rows, int64_t cols, int64_t gap, bool shared)
{
    s[1] = order == 'n' ? cols + gap : 1;
    s[2] = order == 'n' ? 1 : rows + gap;
    s[0] = shared ? 0 : (order == 'n' ? rows * s[1] : cols * s[2]) + gap;
}

static inline void set(const struct instance *x, char *at, const int64_t *s, int64_t rows, int64_t cols)
{
    for (int64_t b = 0; b < x->p.batch; b++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < cols; j++) {
                mc_store_f64(x->p.dtype, at + (b * s[0] + i * s[1] + j * s[2]) * mc_dtypes[x->p.dtype].size,
                             test_uniform(-1, 1));
            }
        }
    }
}

static inline double get(const struct instance *x, const char *at, const int64_t *s, int64_t b, int64_t i,
                         int64_t j)
{
    return mc_load_f64(x->p.dtype, at + (b * s[0] + i * s[1] + j * s[2]) * mc_dtypes[x->p.dtype].size);
}

/* What the epilogue makes of an element: exact in every dtype but for one rounding. */
static inline double after(double v)
{
    return v < 0 ? 0.5 * v : v;
}

static inline void epilogue(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c,
                            int64_t row)
{
    struct instance *x = arg;
    const mc_dtype d = x->p.dtype;
    for (int64_t y = 0; y < m; y++) {
        for (int64_t z = 0; z < n; z++) {
            char *at = (char *)c + (y * row + z) * mc_dtypes[d].size;
            mc_store_f64(d, at, after(mc_load_f64(d, at)));
            x->seen[(batch * x->p.m + i + y) * x->p.n + j + z]++;
        }
    }
}

/* An operand as a dense (batch, rows, cols) of float64. */
static inline double *widened(const struct instance *x, const char *at, const int64_t *s, int64_t rows,
                              int64_t cols)
{
    const int64_t size = mc_dtypes[x->p.dtype].size;
    double *to = malloc((size_t)(x->p.batch * rows * cols + 1) * sizeof *to);
    for (int64_t b = 0; b < x->p.batch; b++) {
        for (int64_t i = 0; i < rows; i++) {
            mc_convert(MC_FLOAT64, to + (b * rows + i) * cols, sizeof *to, x->p.dtype,
                       at + (b * s[0] + i * s[1]) * size, s[2] * size, cols);
        }
    }
    return to;
}

static inline void expect(struct instance *x)
{
    const struct mc_gemm_problem *p = &x->p;
    const mc_dtype d = p->dtype;
    const double eps = mc_dtypes[d].cls == CLASS_F64 ? 0x1p-52 : 0x1p-23;
    double *a = widened(x, x->a.at, p->as, p->m, p->k), *b = widened(x, x->b.at, p->bs, p->k, p->n);
    for (int64_t e = 0; e < p->batch * p->m * p->n; e++) {
        const int64_t batch = e / (p->m * p->n), i = e / p->n % p->m, j = e % p->n;
        const double *row = a + (batch * p->m + i) * p->k, *col = b + batch * p->k * p->n + j;
        double sum = 0, size = 0, c0 = 0;
        for (int64_t k = 0; k < p->k; k++) {
            const double t = row[k] * col[k * p->n];
            sum += t;
            size += fabs(t);
        }
        if (p->beta != 0) {
            c0 = p->beta * get(x, x->v.c0 == SAME_C0 ? x->c.at : x->c0.at, p->c0s, batch, i, j);
        }
        const double v = p->alpha * sum + c0;
        x->want[e] = x->v.epilogue ? after(v) : v;
        x->bound[e] = eps * ((double)(p->k + 6) * fabs(p->alpha) * size + 4 * fabs(c0)) +
                      mc_dtypes[d].eps * fabs(v) +
                      (mc_dtypes[d].size == 2 ? 0x1p-24 : 0); /* the last: subnormal halves */
    }
    free(a);
    free(b);
}

static inline struct instance make(mc_dtype d, struct shape s, const char *order, struct variant v)
{
    struct instance x = { .v = v };
    struct mc_gemm_problem *p = &x.p;
    const size_t size = mc_dtypes[d].size;
    *p = (struct mc_gemm_problem){ .base = { &mc_gemm_family, mc_plan_options_of(NULL) },
                                   .dtype = d,
                                   .batch = v.batch,
                                   .m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .alpha = v.alpha,
                                   .beta = v.c0 == NO_C0 ? 0 : v.beta,
                                   .has_epilogue = v.epilogue };
    strides(p->as, order[0], s.m, s.k, v.gap, v.share_a);
    strides(p->bs, order[1], s.k, s.n, v.gap, v.share_b);
    strides(p->cs, 'n', s.m, s.n, v.gap, false);
    strides(p->c0s, 'n', s.m, s.n, v.c0 == SAME_C0 ? v.gap : 1, false);
    if (v.c0 == ROW_C0 || v.c0 == COL_C0 || v.c0 == ONE_C0) {
        p->c0s[0] = 0;
        p->c0s[1] = v.c0 == COL_C0;
        p->c0s[2] = v.c0 == ROW_C0;
    }
    x.c_count = count(p->cs, v.batch, s.m, s.n);
    x.a = guard((size_t)count(p->as, v.batch, s.m, s.k) * size);
    x.b = guard((size_t)count(p->bs, v.batch, s.k, s.n) * size);
    x.c = guard((size_t)x.c_count * size);
    x.c0 = guard((size_t)count(p->c0s, v.batch, s.m, s.n) * size);
    set(&x, x.a.at, p->as, s.m, s.k);
    set(&x, x.b.at, p->bs, s.k, s.n);
    if (v.c0 == SAME_C0) {
        set(&x, x.c.at, p->cs, s.m, s.n);
    } else if (v.c0 != NAN_C0) {
        set(&x, x.c0.at, p->c0s, s.m, s.n);
    }
    const size_t n = (size_t)(v.batch * s.m * s.n) + 1;
    x.want = malloc(n * sizeof(double));
    x.bound = malloc(n * sizeof(double));
    x.seen = calloc(n, 1);
    x.start = malloc((size_t)x.c_count * size + 1);
    memcpy(x.start, x.c.at, (size_t)x.c_count * size);
    expect(&x);
    return x;
}

static inline void unmake(struct instance *x)
{
    unguard(&x->a);
    unguard(&x->b);
    unguard(&x->c);
    unguard(&x->c0);
    free(x->want);
    free(x->bound);
    free(x->seen);
    free(x->start);
}

/* ---- running ---- */

enum { CANARY = 256 };

/* Runs the plan on C as it was in the beginning; false when the workspace was overrun. */
static inline bool run(struct instance *x, const struct mc_plan *plan, int threads)
{
    const size_t size = mc_dtypes[x->p.dtype].size;
    void *operand[8] = { x->a.at, x->b.at, x->c.at, x->v.c0 == SAME_C0 ? x->c.at : x->c0.at };
    mc_gemm_epilogue *f = epilogue;
    memcpy(&operand[GEMM_EPILOGUE], &f, sizeof f);
    operand[GEMM_EPILOGUE_ARG] = x;
    memcpy(x->c.at, x->start, (size_t)x->c_count * size);
    memset(x->seen, 0, (size_t)(x->p.batch * x->p.m * x->p.n) + 1);
    unsigned char *work = aligned_alloc(64, (plan->workspace + CANARY + 63) / 64 * 64);
    memset(work, 0xff, plan->workspace + CANARY);
    const mc_status s = plan->run(plan, operand, work, threads);
    bool whole = true;
    for (size_t i = 0; i < CANARY; i++) {
        whole &= work[plan->workspace + i] == 0xff;
    }
    free(work);
    CHECK(s == MC_OK, "%s", mc_last_error());
    return whole;
}

/* Is every element right, every gap as before, and was every element finished once? */
static inline void judge(const struct instance *x, const struct mc_plan *plan, const char *kernel)
{
    const struct mc_gemm_problem *p = &x->p;
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_str text = { 0 };
    mc_plan_text(plan, &text);
    char *gaps = malloc((size_t)(x->c_count * size) + 1);
    memcpy(gaps, x->c.at, (size_t)(x->c_count * size));
    int64_t wrong = 0, missed = 0, first = -1;
    double got = 0;
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = (b * p->m + i) * p->n + j, c = b * p->cs[0] + i * p->cs[1] + j;
                const double v = mc_load_f64(p->dtype, x->c.at + c * size);
                if (!(fabs(v - x->want[at]) <= x->bound[at])) {
                    got = wrong ? got : v;
                    first = wrong ? first : at;
                    wrong++;
                }
                missed += p->has_epilogue && x->seen[at] != 1;
                memcpy(gaps + c * size, x->start + c * size, (size_t)size);
            }
        }
    }
    CHECK(wrong == 0, "%s %s: %lld wrong, the first at %lld: %.9g, not %.9g within %.3g", text.s, kernel,
          (long long)wrong, (long long)first, got, x->want[first < 0 ? 0 : first],
          x->bound[first < 0 ? 0 : first]);
    CHECK(missed == 0, "%s %s: the epilogue met %lld elements not once", text.s, kernel, (long long)missed);
    CHECK(memcmp(gaps, x->start, (size_t)(x->c_count * size)) == 0, "%s %s: wrote between rows of C", text.s,
          kernel);
    free(gaps);
    mc_str_free(&text);
}

static inline void try_solver(struct instance *x, const struct mc_solver *s, const char *kernel)
{
    plan_as_flags(&x->p.base);
    if (mc_plan_declines(&x->p.base, s)) {
        return;
    }
    struct mc_plan *plan = mc_plan_with(&x->p.base, s);
    if (!CHECK(plan, "%s: %s", s->name, mc_last_error())) {
        return;
    }
    CHECK(run(x, plan, 2), "%s writes beyond its workspace of %zu", s->name, plan->workspace);
    judge(x, plan, kernel);
    mc_plan_free(plan);
}

/* Libraries, if any, are tried too; but not under a sanitizer, which misjudges their threads. */
static inline void allow_libraries(void)
{
    mc_flag_set("plan", "measure");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    mc_flags_parse("onednn=none,blas=none");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    mc_flags_parse("onednn=none,blas=none");
#endif
#endif
}

#endif
