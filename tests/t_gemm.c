/* t_gemm.c: every solver and kernel of matrix products against the definition, summed here in float64
 * with the bound that any order of summation keeps.
 *
 * Operands end where a page ends that may not be touched; gaps between rows hold NaN; the workspace
 * has canaries behind it and is filled with NaN before. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "gemm/foreign.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- memory whose end is guarded ---- */

struct guarded {
    char *base, *at;
    size_t mapped;
};

static struct guarded guard(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    struct guarded g = { .mapped = whole + page };
    g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.base == MAP_FAILED) {
        abort();
    }
    mprotect(g.base + whole, page, PROT_NONE);
    g.at = g.base + whole - bytes;
    memset(g.base, 0xff, whole); /* NaN in every float dtype */
    return g;
}

static void unguard(struct guarded *g)
{
    munmap(g->base, g->mapped);
}

/* ---- cases ---- */

struct shape {
    int64_t m, n, k;
};
static const struct shape everyday[] = {
    { 1, 1, 1 },    { 0, 3, 4 },     { 3, 0, 4 },    { 3, 4, 0 },     { 2, 3, 4 },     { 7, 5, 9 },     { 8, 48, 16 },
    { 9, 49, 17 },  { 16, 10, 100 }, { 33, 10, 65 }, { 10, 33, 65 },  { 1, 100, 50 },  { 100, 1, 50 },  { 1, 1, 3000 },
    { 3, 5, 2500 }, { 16, 16, 16 },  { 64, 64, 64 }, { 65, 97, 33 },  { 130, 70, 70 }, { 5, 300, 40 },  { 300, 5, 40 },
    { 17, 15, 31 }, { 20, 24, 2100 }, { 12, 530, 9 }, { 300, 13, 520 },
    { 1, 7, 33 },   { 1, 20, 70 },
};
static const struct shape slow[] = {
    { 600, 10, 784 }, { 784, 10, 600 }, { 600, 784, 10 }, { 257, 255, 1030 }, { 2100, 50, 130 },
    { 50, 2100, 130 }, { 1, 3000, 700 }, { 3000, 1, 700 }, { 16, 16, 20000 },
};

enum { NO_C0, FULL_C0, SAME_C0, ROW_C0, COL_C0, ONE_C0, NAN_C0, NC0 }; /* SAME: C itself; NAN: beta is 0 */
static const struct variant {
    double alpha, beta;
    int c0;
    bool epilogue;
    int64_t batch, gap; /* gap: elements between rows */
    bool share_a, share_b;
} variants[] = {
    { 1,    0,    NO_C0,   false, 1, 0 },
    { 0.5,  1,    ROW_C0,  true,  1, 3 },
    { -2,   0.25, FULL_C0, false, 3, 1 },
    { 1,    1,    SAME_C0, false, 1, 5 },
    { 1,    0,    NAN_C0,  true,  2, 0 },
    { 1.5,  -1,   COL_C0,  false, 2, 2, .share_b = true },
    { 1,    2,    ONE_C0,  true,  5, 0, .share_a = true },
    { 1,    0,    NO_C0,   false, 4, 0, .share_b = true },
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

static int64_t count(const int64_t *s, int64_t batch, int64_t rows, int64_t cols)
{
    return batch && rows && cols ? (batch - 1) * s[0] + (rows - 1) * s[1] + (cols - 1) * s[2] + 1 : 0;
}

static void strides(int64_t *s, char order, int64_t rows, int64_t cols, int64_t gap, bool shared)
{
    s[1] = order == 'n' ? cols + gap : 1;
    s[2] = order == 'n' ? 1 : rows + gap;
    s[0] = shared ? 0 : (order == 'n' ? rows * s[1] : cols * s[2]) + gap;
}

static void set(const struct instance *x, char *at, const int64_t *s, int64_t rows, int64_t cols)
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

static double get(const struct instance *x, const char *at, const int64_t *s, int64_t b, int64_t i, int64_t j)
{
    return mc_load_f64(x->p.dtype, at + (b * s[0] + i * s[1] + j * s[2]) * mc_dtypes[x->p.dtype].size);
}

/* What the epilogue makes of an element: exact in every dtype but for one rounding. */
static double after(double v)
{
    return v < 0 ? 0.5 * v : v;
}

static void epilogue(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c, int64_t row)
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
static double *widened(const struct instance *x, const char *at, const int64_t *s, int64_t rows, int64_t cols)
{
    const int64_t size = mc_dtypes[x->p.dtype].size;
    double *to = malloc((size_t)(x->p.batch * rows * cols + 1) * sizeof *to);
    for (int64_t b = 0; b < x->p.batch; b++) {
        for (int64_t i = 0; i < rows; i++) {
            mc_convert(MC_FLOAT64, to + (b * rows + i) * cols, sizeof *to, x->p.dtype, at + (b * s[0] + i * s[1]) * size,
                       s[2] * size, cols);
        }
    }
    return to;
}

static void expect(struct instance *x)
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
        if (p->has_c0 && p->beta != 0) {
            c0 = p->beta * get(x, x->v.c0 == SAME_C0 ? x->c.at : x->c0.at, p->c0s, batch, i, j);
        }
        const double v = p->alpha * sum + c0;
        x->want[e] = x->v.epilogue ? after(v) : v;
        x->bound[e] = eps * ((double)(p->k + 6) * fabs(p->alpha) * size + 4 * fabs(c0)) + mc_dtypes[d].eps * fabs(v) +
                      (mc_dtypes[d].size == 2 ? 0x1p-24 : 0); /* the last: subnormal halves */
    }
    free(a);
    free(b);
}

static struct instance make(mc_dtype d, struct shape s, const char *order, struct variant v)
{
    struct instance x = { .v = v };
    struct mc_gemm_problem *p = &x.p;
    const size_t size = mc_dtypes[d].size;
    *p = (struct mc_gemm_problem){ .base.family = &mc_gemm_family, .dtype = d, .batch = v.batch, .m = s.m, .n = s.n,
                                   .k = s.k, .alpha = v.alpha, .beta = v.beta, .has_c0 = v.c0 != NO_C0,
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

static void unmake(struct instance *x)
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
static bool run(struct instance *x, const struct mc_plan *plan, int threads)
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
static void judge(const struct instance *x, const struct mc_plan *plan, const char *kernel)
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
          (long long)wrong, (long long)first, got, x->want[first < 0 ? 0 : first], x->bound[first < 0 ? 0 : first]);
    CHECK(missed == 0, "%s %s: the epilogue met %lld elements not once", text.s, kernel, (long long)missed);
    CHECK(memcmp(gaps, x->start, (size_t)(x->c_count * size)) == 0, "%s %s: wrote between rows of C", text.s, kernel);
    free(gaps);
    mc_str_free(&text);
}

static void try_solver(struct instance *x, const struct mc_solver *s, const char *kernel)
{
    if (s->refuse && s->refuse(&x->p.base)) {
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

static const char *const kernels[] = { "avx512", "avx2", "plain" };
static const char *const orders[] = { "nn", "nt", "tn", "tt" };
static const mc_dtype types[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16, MC_BFLOAT16 };

static void try_all(struct instance *x)
{
    int kernel = 0;
    for (size_t k = 0; k < NELEM(kernels); k++) { /* those without kernels are tried once */
        if (mc_isa_only(kernels[k])) {
            for (const struct mc_solver *const *s = mc_gemm_solvers; *s; s++) {
                const bool ours = *s != &mc_gemm_reference && *s != &mc_gemm_onednn && *s != &mc_gemm_blas;
                if (ours || kernel == 0) {
                    try_solver(x, *s, kernels[k]);
                }
            }
            kernel++;
        }
    }
    mc_isa_only(NULL);
}

/* Libraries, if any, are tried too; but not under a sanitizer, which misjudges their threads. */
static void allow_libraries(void)
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

static void grid(const struct shape *shapes, size_t n, size_t step)
{
    allow_libraries();
    for (size_t s = 0; s < n; s++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            for (size_t t = 0; t < NELEM(types); t++) {
                if (step > 1 && mc_dtypes[types[t]].size == 2 && (s + o + t) % 3) {
                    continue; /* one kernel serves all dtypes but float64; halves differ in packing alone */
                }
                for (size_t v = (s + o + t) % step; v < NELEM(variants); v += step) {
                    struct instance x = make(types[t], shapes[s], orders[o], variants[v]);
                    try_all(&x);
                    unmake(&x);
                }
            }
        }
    }
}

TEST(gemm_grid)
{
    grid(everyday, NELEM(everyday), test_is_full() ? 1 : 3);
}

TEST_FULL(gemm_grid_large)
{
    grid(slow, NELEM(slow), 4);
}

/* Results beyond the caches are stored past them, where rows are whole lines. */
TEST(gemm_streams_large_results)
{
    static const struct shape shapes[] = { { 2890, 2912, 3 }, { 2890, 2913, 2 } };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        struct instance x = make(MC_FLOAT32, shapes[i], "nn", variants[0]);
        const bool beyond = (double)x.c_count * 4 > (double)mc_cpu()->shared;
        CHECK(mc_gemm_streams(&x.p) == (beyond && mc_gemm_kernel(MC_FLOAT32)->drain), "m%d", (int)x.p.m);
        try_solver(&x, &mc_gemm_direct, "best");
        try_solver(&x, &mc_gemm_packed, "best");
        unmake(&x);
    }
}

/* Small integers have exact sums: every solver must find them to the bit. */
TEST(gemm_integers_are_exact)
{
    const struct shape s = { 70, 40, 300 };
    struct instance x = make(MC_FLOAT32, s, "nn", variants[0]);
    for (int64_t i = 0; i < s.m * s.k; i++) {
        ((float *)(void *)x.a.at)[i] = (float)(int)(test_uniform(-8, 8));
    }
    for (int64_t i = 0; i < s.k * s.n; i++) {
        ((float *)(void *)x.b.at)[i] = (float)(int)(test_uniform(-8, 8));
    }
    expect(&x);
    for (int64_t i = 0; i < s.m * s.n; i++) {
        x.bound[i] = 0;
    }
    try_all(&x);
    unmake(&x);
}

/* A NaN or an infinity in A shows in its row of C and nowhere else. */
TEST(gemm_nan_stays_in_its_row)
{
    static const struct shape shapes[] = { { 20, 10, 40 }, { 10, 70, 40 }, { 70, 70, 40 } };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        struct instance x = make(MC_FLOAT32, shapes[i], "nn", variants[0]);
        ((float *)(void *)x.a.at)[3 * shapes[i].k + 7] = NAN;
        for (const struct mc_solver *const *s = mc_gemm_solvers; *s; s++) {
            if ((*s)->refuse && (*s)->refuse(&x.p.base)) {
                continue;
            }
            struct mc_plan *plan = mc_plan_with(&x.p.base, *s);
            REQUIRE(plan, "%s", mc_last_error());
            run(&x, plan, 0);
            int64_t bad = 0;
            for (int64_t e = 0; e < shapes[i].m * shapes[i].n; e++) {
                bad += isnan(((float *)(void *)x.c.at)[e]) != (e / shapes[i].n == 3);
            }
            CHECK(bad == 0, "%s: %lld elements", (*s)->name, (long long)bad);
            mc_plan_free(plan);
        }
        unmake(&x);
    }
}

/* ---- threads ---- */

TEST(gemm_threads_do_not_change_bits)
{
    static const struct shape shapes[] = { { 65, 97, 300 }, { 300, 10, 200 }, { 200, 10, 300 }, { 10, 500, 100 },
                                           { 150, 200, 90 }, { 20, 24, 2100 }, { 1, 700, 400 } };
    static const char *const counts[] = { "1", "2", "3", "8" };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            const struct variant v = { 1, 1, ROW_C0, true, 1 + (int64_t)(i + o) % 2 * 3, 0 };
            struct instance x = make(o == 1 ? MC_FLOAT64 : o == 3 ? MC_FLOAT16 : MC_FLOAT32, shapes[i], orders[o], v);
            const size_t bytes = (size_t)x.c_count * mc_dtypes[x.p.dtype].size;
            char *one = malloc(bytes);
            for (const struct mc_solver *const *s = mc_gemm_solvers; *s; s++) {
                if ((*s)->refuse && (*s)->refuse(&x.p.base)) {
                    continue;
                }
                for (size_t t = 0; t < NELEM(counts); t++) {
                    mc_flag_set("threads", counts[t]);
                    struct mc_plan *plan = mc_plan_with(&x.p.base, *s);
                    REQUIRE(plan, "%s", mc_last_error());
                    run(&x, plan, 0);
                    if (t == 0) {
                        memcpy(one, x.c.at, bytes);
                    }
                    CHECK(memcmp(one, x.c.at, bytes) == 0, "%s %s, %s threads", (*s)->name, orders[o], counts[t]);
                    run(&x, plan, 2);
                    CHECK(memcmp(one, x.c.at, bytes) == 0, "%s %s, planned for %s threads, 2 run", (*s)->name, orders[o],
                          counts[t]);
                    mc_plan_free(plan);
                }
            }
            free(one);
            unmake(&x);
        }
    }
}

/* ---- planning ---- */

static struct mc_gemm_problem dense(int64_t m, int64_t n, int64_t k)
{
    return (struct mc_gemm_problem){ .base.family = &mc_gemm_family, .dtype = MC_FLOAT32, .batch = 1, .m = m, .n = n,
                                     .k = k, .as = { 0, k, 1 }, .bs = { 0, n, 1 }, .cs = { 0, n, 1 }, .alpha = 1 };
}

TEST(gemm_word_says_what_matters)
{
    static const struct {
        const char *word;
        struct variant v;
        const char *order;
    } rows[] = {
        { "gemm f32 nn m6n7k8",                          { 1, 0, NO_C0, false, 1, 0 },                  "nn" },
        { "gemm f32 tn m6n7k8 lda8 ldb9 ldc9 c0 row",    { 1, 1, ROW_C0, false, 1, 2 },                 "tn" },
        { "gemm f32 nt m6n7k8 b3 sharedb e",             { 1, 0, NO_C0, true, 3, 0, .share_b = true },  "nt" },
        { "gemm f32 tt m6n7k8 c0 col",                   { 1, 1, COL_C0, false, 1, 0 },                 "tt" },
        { "gemm f32 nn m6n7k8",                          { 1, 0, NAN_C0, false, 1, 0 },                 "nn" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct instance x = make(MC_FLOAT32, (struct shape){ 6, 7, 8 }, rows[i].order, rows[i].v);
        struct mc_str word = { 0 };
        mc_gemm_family.word(&x.p.base, &word);
        CHECK(strcmp(word.s, rows[i].word) == 0, "'%s', not '%s'", word.s, rows[i].word);
        mc_str_free(&word);
        unmake(&x);
    }
}

TEST(gemm_estimates_choose_sensibly)
{
    static const struct {
        struct shape s;
        const char *solver;
    } rows[] = {
        { { 8, 32, 32 },       "direct"    },
        { { 32, 32, 32 },      "direct"    },
        { { 600, 10, 784 },    "thin"      },
        { { 784, 10, 600 },    "thin"      },
        { { 1, 4096, 4096 },   "thin"      },
        { { 4096, 1, 4096 },   "thin"      },
        { { 2048, 2048, 2048 }, "packed"   },
        { { 32, 32, 100000 },  "splitk"    },
        { { 4096, 16, 4096 },  "direct"    },
        { { 16, 4096, 4096 },  "thin"      },
        { { 64, 64, 1024 },    "direct"    },
        { { 5, 5, 0 },         "reference" },
    };
    mc_flags_parse("onednn=none,blas=none");
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_gemm_problem p = dense(rows[i].s.m, rows[i].s.n, rows[i].s.k);
        struct mc_plan *plan = mc_gemm_plan(&p);
        REQUIRE(plan, "%s", mc_last_error());
        CHECK(strcmp(plan->solver->name, rows[i].solver) == 0, "m%d n%d k%d: %s, not %s", (int)p.m, (int)p.n, (int)p.k,
              plan->solver->name, rows[i].solver);
        mc_plan_free(plan);
    }
}

static const char *chosen(int64_t n)
{
    const struct mc_gemm_problem p = dense(n, n, n);
    struct mc_plan *plan = mc_gemm_plan(&p);
    const char *name = plan ? plan->solver->name : mc_last_error();
    mc_plan_free(plan);
    return name;
}

static void remember(const char *who, const char *solver, double seconds)
{
    char word[96];
    snprintf(word, sizeof word, "rate gemm f32 nn m768n768k768 t%d %s", mc_team_size(), who);
    mc_wisdom_put(word, solver, seconds);
}

/* What stands for all large products decides for them under plan=estimate, and for no others. */
TEST(gemm_libraries_serve_where_they_gained)
{
    mc_flags_parse("threads=2,cache_size=0,plan=estimate");
    remember("own", "direct", 1e-3);
    remember("onednn", "onednn", 0.5e-3);
    remember("blas", "blas", 2e-3);
    CHECK(strcmp(chosen(1000), mc_gemm_onednn_library() ? "onednn" : "direct") == 0, "%s, at half our time", chosen(1000));
    CHECK(strcmp(chosen(100), "direct") == 0, "%s, for a small product", chosen(100));
    mc_flag_set("onednn", "none");
    CHECK(strcmp(chosen(1000), "direct") == 0, "%s, where there is none", chosen(1000));
    mc_flag_set("onednn", "auto");
    remember("onednn", "onednn", 0.95e-3);
    CHECK(strcmp(chosen(1000), "direct") == 0, "%s, for a gain of a twentieth", chosen(1000));
}

/* Where nothing is known, the first large product has a library timed, and the second asks what was found. */
TEST(gemm_times_a_library_once)
{
    char word[96], solver[64];
    char dir[] = "/tmp/monochord-gemm-XXXXXX";
    double first, again;
    REQUIRE(mkdtemp(dir), "no folder");
    mc_flag_set("cache", dir);
    allow_libraries();
    mc_flags_parse("threads=2,plan=estimate,blas=none");
    snprintf(word, sizeof word, "rate gemm f32 nn m768n768k768 t%d onednn", mc_team_size());
    chosen(100);
    CHECK(!mc_wisdom_find(word, solver, &first), "a small product had %s timed", solver);
    chosen(600);
    const bool found = mc_wisdom_find(word, solver, &first);
    CHECK(found == (mc_gemm_onednn_library() != NULL), "%s", found ? "timed what is not there" : "not timed");
    chosen(700);
    CHECK(!found || (mc_wisdom_find(word, solver, &again) && again == first), "timed again");
    mc_wisdom_clear();
    rmdir(mc_cache_dir());
    rmdir(dir);
}

/* (wrong problem or flags, part of the message) */
TEST(gemm_says_why_not)
{
    static const struct {
        const char *flags;
        struct shape s;
        const char *part;
    } rows[] = {
        { "gemm.algo=nonsense",               { 100, 100, 100 }, "gemm has no solver 'nonsense'; there are: auto direct" },
        { "gemm.algo=thin",                   { 100, 100, 100 }, "solver thin, which was asked for, takes at most 16 rows" },
        { "gemm.algo=packed,workspace=1k",    { 100, 100, 100 }, "bytes of workspace, the flag allows 1024" },
        { "gemm.algo=onednn,onednn=none",     { 100, 100, 100 }, "finds no library" },
        { "gemm.algo=blas,blas=none,threads=2", { 100, 100, 100 }, "finds no library" },
        { "gemm.algo=auto,workspace=1G",      { -1, 100, 100 },  "sizes batch 1, m -1" },
        { "gemm.algo=auto",                   { INT64_C(1) << 40, INT64_C(1) << 40, 1 }, "cannot be" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_flags_parse(rows[i].flags);
        const struct mc_gemm_problem p = dense(rows[i].s.m, rows[i].s.n, rows[i].s.k);
        struct mc_plan *plan = mc_gemm_plan(&p);
        CHECK(!plan && strstr(mc_last_error(), rows[i].part), "%s: %s", rows[i].flags,
              plan ? plan->solver->name : mc_last_error());
        mc_plan_free(plan);
    }
}

TEST(gemm_keeps_to_the_workspace_cap)
{
#ifdef __SANITIZE_ADDRESS__
    mc_flag_set("onednn", "none"); /* the leak checker of gcc 12 dies of the threads it leaves behind */
#endif
    struct mc_gemm_problem p = dense(200, 2000, 200);
    mc_flag_set("workspace", "0");
    struct mc_plan *plan = mc_gemm_plan(&p);
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(plan->workspace == 0, "%s takes %zu", plan->solver->name, plan->workspace);
    mc_plan_free(plan);
}

TEST(gemm_batches_of_one_b_are_stacked)
{
    struct mc_gemm_problem p = dense(20, 30, 40);
    p.batch = 7;
    p.as[0] = p.m * p.k;
    p.cs[0] = p.m * p.n;
    struct mc_plan *plan = mc_gemm_plan(&p);
    REQUIRE(plan, "%s", mc_last_error());
    CHECK(((const struct mc_gemm_problem *)(const void *)plan->problem)->m == 140, "not stacked");
    mc_plan_free(plan);
}

/* Where its threads are told to stay awake, in a process of its own: the library reads that once. */
TEST(gemm_library_leaves_no_thread_awake)
{
    enum { SIZE = 256, PAUSE_US = 200000 };
    const char *policy = getenv("OMP_WAIT_POLICY");
    char self[512], command[700];
#ifdef __SANITIZE_ADDRESS__
    SKIP("the leak checker stumbles over the library's threads");
#endif
    if (!mc_gemm_onednn_library() || mc_team_size() < 2) {
        SKIP("no oneDNN, or one processor");
    }
    if (!policy || strcmp(policy, "active") != 0) {
        const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        REQUIRE(n > 0, "no path of this program");
        self[n] = '\0';
        snprintf(command, sizeof command, "OMP_WAIT_POLICY=active '%s' t_gemm/gemm_library_leaves > /dev/null", self);
        CHECK(system(command) == 0, "a thread stays awake: %s", command);
        return;
    }
    const struct mc_gemm_problem p = dense(SIZE, SIZE, SIZE);
    struct mc_plan *plan = mc_plan_with(&p.base, &mc_gemm_onednn);
    void *operand[8];
    REQUIRE(plan && p.base.family->operands(&p.base, operand) >= 0, "%s", mc_last_error());
    CHECK(plan->run(plan, operand, NULL, 2) >= 0, "%s", mc_last_error());
    const clock_t before = clock();
    usleep(PAUSE_US);
    const double busy = (double)(clock() - before) / CLOCKS_PER_SEC;
    CHECK(busy < 0.5e-6 * PAUSE_US, "%g s of work while nothing was asked", busy);
    p.base.family->discard(&p.base, operand);
    mc_plan_free(plan);
}

TEST(gemm_verifies_plans)
{
    static const struct shape shapes[] = { { 30, 40, 50 }, { 600, 10, 80 }, { 10, 600, 80 }, { 8, 8, 4000 }, { 0, 4, 4 } };
    allow_libraries();
    mc_flags_parse("check=3,plan=exhaustive,cache=/nonexistent/folder,cache_size=0");
    for (size_t i = 0; i < NELEM(shapes); i++) {
        const struct mc_gemm_problem p = dense(shapes[i].m, shapes[i].n, shapes[i].k);
        struct mc_plan *plan = mc_gemm_plan(&p);
        CHECK(plan && plan->measured, "%s", plan ? "not measured" : mc_last_error());
        mc_plan_free(plan);
    }
}

TEST(gemm_survives_failing_allocations)
{
    static const struct shape shapes[] = { { 30, 40, 50 }, { 100, 10, 80 }, { 200, 300, 400 }, { 8, 8, 5000 } };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        const struct mc_gemm_problem p = dense(shapes[i].m, shapes[i].n, shapes[i].k);
        ALLOC_FAIL_LOOP {
            struct mc_plan *plan = mc_gemm_plan(&p);
            CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
            CHECK(plan || mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
            mc_plan_free(plan);
        }
    }
}
