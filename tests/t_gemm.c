/* t_gemm.c: every solver and kernel of matrix products on a grid of shapes, orders, dtypes and ways to
 * call. */
#include "gemm_cases.h"

/* ---- cases ---- */

static const struct shape everyday[] = {
    { 1, 1, 1 },    { 0, 3, 4 },     { 3, 0, 4 },    { 3, 4, 0 },     { 2, 3, 4 },     { 7, 5, 9 },     { 8, 48, 16 },
    { 9, 49, 17 },  { 16, 10, 100 }, { 33, 10, 65 }, { 10, 33, 65 },  { 1, 100, 50 },  { 100, 1, 50 },  { 1, 1, 3000 },
    { 3, 5, 2500 }, { 16, 16, 16 },  { 64, 64, 64 }, { 65, 97, 33 },  { 130, 70, 70 }, { 5, 300, 40 },  { 300, 5, 40 },
    { 17, 15, 31 }, { 20, 24, 2100 }, { 12, 530, 9 }, { 300, 13, 520 },
    { 1, 7, 33 },   { 1, 20, 70 },   { 33, 49, 80 }, { 19, 53, 100 },  { 26, 196, 77 },
};
static const struct shape slow[] = {
    { 600, 10, 784 }, { 784, 10, 600 }, { 600, 784, 10 }, { 257, 255, 1030 }, { 2100, 50, 130 },
    { 50, 2100, 130 }, { 1, 3000, 700 }, { 3000, 1, 700 }, { 16, 16, 20000 },
};

static const struct variant variants[] = {
    { 1,    0,    NO_C0,   false, 1, 0 },
    { 0.5,  1,    ROW_C0,  true,  1, 3 },
    { -2,   0.25, FULL_C0, false, 3, 1 },
    { 1,    1,    SAME_C0, false, 1, 5 },
    { 1,    0,    NAN_C0,  true,  2, 0 },
    { 1.5,  -1,   COL_C0,  false, 2, 2, .share_b = true },
    { 1,    2,    ONE_C0,  true,  5, 0, .share_a = true },
    { 1,    0,    NO_C0,   false, 4, 0, .share_b = true },
};

/* ---- running ---- */

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

/* Only the first and the last column of A are not zero, so C is known without the reference.  It is so large,
 * with so many sums, that it takes several blocks, deep ranges and ranges of each. */
static void many_ranges(mc_dtype d, struct shape s)
{
    const int64_t size = mc_dtypes[d].size;
    char *a = mc_calloc((size_t)(s.m * s.k), (size_t)size, "test"),
         *b = mc_calloc((size_t)(s.k * s.n), (size_t)size, "test"),
         *c = mc_calloc((size_t)(s.m * s.n), (size_t)size, "test");
    const struct mc_gemm_problem p = { .base = { .family = &mc_gemm_family,
                                                 .options = mc_plan_options_of(NULL) },
                                       .dtype = d,
                                       .batch = 1,
                                       .m = s.m,
                                       .n = s.n,
                                       .k = s.k,
                                       .alpha = 1,
                                       .as = { 0, s.k, 1 },
                                       .bs = { 0, s.n, 1 },
                                       .cs = { 0, s.n, 1 } };
    for (int64_t i = 0; i < s.m; i++) {
        mc_store_f64(d, a + i * s.k * size, (double)(i % 7));
        mc_store_f64(d, a + (i * s.k + s.k - 1) * size, (double)(i % 3));
    }
    for (int64_t i = 0; i < s.k * s.n; i++) {
        mc_store_f64(d, b + i * size, (double)(i % 11));
    }
    struct mc_plan *plan = mc_plan_with(&p.base, &mc_gemm_packed);
    void *work = plan ? mc_alloc_pages(plan->workspace, "test") : NULL,
         *operand[MC_PLAN_OPERANDS] = { a, b, c };
    int64_t wrong = 0;
    CHECK(plan && work && plan->run(plan, operand, work, 0) == MC_OK, "m%d", (int)s.m);
    for (int64_t i = 0; i < s.m; i++) {
        for (int64_t j = 0; j < s.n; j++) {
            const double want = (double)(i % 7 * (j % 11) + i % 3 * (((s.k - 1) * s.n + j) % 11)),
                         have = mc_load_f64(d, c + (i * s.n + j) * size);
            wrong += have < want || have > want;
        }
    }
    CHECK(wrong == 0, "m%d n%d k%d: %d elements", (int)s.m, (int)s.n, (int)s.k, (int)wrong);
    mc_plan_free(plan);
    mc_free_pages(work);
    mc_free(a);
    mc_free(b);
    mc_free(c);
}

TEST(gemm_of_many_ranges)
{
    many_ranges(MC_FLOAT32, (struct shape){ 2890, 2912, 1100 }); /* beyond the caches */
    many_ranges(MC_FLOAT32, (struct shape){ 2100, 50, 9000 });
    many_ranges(MC_FLOAT16, (struct shape){ 2100, 50, 9000 });
    many_ranges(MC_FLOAT64, (struct shape){ 50, 2100, 5000 });
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

/* In the Frobenius norm.  Sums of 1024 products, added one by one, lose 6e-7, all 9000 in one go 1.8e-6. */
static double lost(const struct instance *x)
{
    double wrong = 0, all = 0;
    for (int64_t e = 0; e < x->p.m * x->p.n; e++) {
        const double have = get(x, x->c.at, x->p.cs, 0, e / x->p.n, e % x->p.n);
        wrong += (have - x->want[e]) * (have - x->want[e]);
        all += x->want[e] * x->want[e];
    }
    return sqrt(wrong / all);
}

TEST(gemm_long_sums_are_precise)
{
    static const struct mc_solver *const solvers[] = { &mc_gemm_direct, &mc_gemm_packed, &mc_gemm_splitk,
                                                       &mc_gemm_tall };
    for (size_t o = 0; o < NELEM(orders); o++) {
        struct instance x = make(MC_FLOAT32, (struct shape){ 40, 56, 9000 }, orders[o], variants[0]);
        plan_as_flags(&x.p.base);
        for (size_t i = 0; i < NELEM(solvers) * NELEM(kernels); i++) {
            const struct mc_solver *s = solvers[i % NELEM(solvers)];
            const char *kernel = kernels[i / NELEM(solvers)];
            if (mc_isa_only(kernel) && !mc_plan_declines(&x.p.base, s)) {
                struct mc_plan *plan = mc_plan_with(&x.p.base, s);
                CHECK(plan && run(&x, plan, 1) && lost(&x) < 6.5e-7, "%s, %s, %s: %g", s->name, orders[o],
                      kernel, lost(&x));
                mc_plan_free(plan);
            }
        }
        unmake(&x);
    }
    mc_isa_only(NULL);
}

/* Sums of parts and chunks, in either order of rows and columns, with C0 and without, on every kernel. */
TEST(gemm_of_long_sums_in_order)
{
    static const struct shape shapes[] = { { 3, 17, 1024 },   { 96, 16, 4099 }, { 24, 144, 5000 },
                                           { 16, 100, 2177 }, { 50, 48, 1100 }, { 1, 1, 3000 },
                                           { 7, 130, 8192 } };
    int taken = 0;
    if (mc_gemm_tall.missing) {
        SKIP("it is in libmonochord alone");
    }
    for (size_t i = 0; i < NELEM(shapes) * NELEM(variants); i++) {
        struct instance x = make(MC_FLOAT32, shapes[i % NELEM(shapes)], "tn", variants[i / NELEM(shapes)]);
        plan_as_flags(&x.p.base);
        for (size_t k = 0; k < NELEM(kernels); k++) {
            if (mc_isa_only(kernels[k]) && !mc_gemm_tall.refuse(&x.p.base)) {
                struct mc_plan *plan = mc_plan_with(&x.p.base, &mc_gemm_tall);
                CHECK(plan && run(&x, plan, 1) && lost(&x) < 3e-6, "shape %zu, %s: %g", i, kernels[k],
                      lost(&x));
                mc_plan_free(plan);
                taken++;
            }
        }
        unmake(&x);
    }
    mc_isa_only(NULL);
    CHECK(taken >= 14, "it took %d", taken);
}

/* A few columns beyond whole vectors, which `direct` computes as dot products: every number of them, at
 * random sizes, in batches and with C0. */
TEST(gemm_of_a_few_columns_beyond_vectors)
{
    allow_libraries();
    for (int rest = 0; rest < 8; rest++) {
        const struct shape s = { (int64_t)test_uniform(9, 60), 16 * (int64_t)test_uniform(1, 6) + rest,
                                 (int64_t)test_uniform(64, 400) };
        for (size_t o = 0; o < 2; o++) {
            for (size_t v = 0; v < NELEM(variants); v++) {
                struct instance x = make(o ? MC_FLOAT64 : MC_FLOAT32, s, "nn", variants[v]);
                try_all(&x);
                unmake(&x);
            }
        }
    }
}

/* So many rows of B that `direct` prefetches them. */
TEST(gemm_of_prefetched_rows)
{
    static const mc_dtype floats[] = { MC_FLOAT32, MC_FLOAT64 };
    for (size_t t = 0; t < NELEM(floats); t++) {
        for (size_t v = 0; v < 3; v++) {
            struct instance x = make(floats[t], (struct shape){ 19, 601, 700 }, "nn", variants[v]);
            try_all(&x);
            unmake(&x);
        }
    }
}

/* A NaN or an infinity in A shows in its row of C and nowhere else. */
TEST(gemm_nan_stays_in_its_row)
{
    static const struct shape shapes[] = { { 20, 10, 40 }, { 10, 70, 40 }, { 70, 70, 40 }, { 21, 49, 90 } };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        struct instance x = make(MC_FLOAT32, shapes[i], "nn", variants[0]);
        ((float *)(void *)x.a.at)[3 * shapes[i].k + 7] = NAN;
        for (const struct mc_solver *const *s = mc_gemm_solvers; *s; s++) {
            if (mc_plan_declines(&x.p.base, *s)) {
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
    static const struct shape shapes[] = {
        { 65, 97, 300 },  { 300, 10, 200 }, { 200, 10, 300 }, { 10, 500, 100 },
        { 150, 200, 90 }, { 20, 24, 2100 }, { 1, 700, 400 },
        { 24, 1100, 260 }, /* B is larger than half of L2, A is small */
    };
    static const char *const counts[] = { "1", "2", "3", "8" };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            const struct variant v = { 1, 1, ROW_C0, true, 1 + (int64_t)(i + o) % 2 * 3, 0 };
            struct instance x = make(o == 1   ? MC_FLOAT64
                                     : o == 3 ? MC_FLOAT16
                                              : MC_FLOAT32,
                                     shapes[i], orders[o], v);
            const size_t bytes = (size_t)x.c_count * mc_dtypes[x.p.dtype].size;
            char *one = malloc(bytes);
            for (const struct mc_solver *const *s = mc_gemm_solvers; *s; s++) {
                if (mc_plan_declines(&x.p.base, *s)) {
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
                    CHECK(memcmp(one, x.c.at, bytes) == 0, "%s %s, %s threads", (*s)->name, orders[o],
                          counts[t]);
                    run(&x, plan, 2);
                    CHECK(memcmp(one, x.c.at, bytes) == 0, "%s %s, planned for %s threads, 2 run", (*s)->name,
                          orders[o], counts[t]);
                    mc_plan_free(plan);
                }
            }
            free(one);
            unmake(&x);
        }
    }
}

/* ---- solvers that were measured elsewhere ---- */

/* A bundle may name a library that is not here: another solver is taken, without an error. */
TEST(gemm_by_a_library_that_is_missing)
{
    static const char *const names[] = { "onednn", "blas", "packed" };
    struct instance x = make(MC_FLOAT32, (struct shape){ 9, 49, 17 }, "nn", variants[0]);
    struct mc_str key = { 0 };
    mc_flags_parse("plan=estimate,onednn=none,blas=none");
    plan_as_flags(&x.p.base);
    mc_gemm_key(&x.p.base, &key);
    for (size_t i = 0; i < NELEM(names); i++) {
        const bool here = strcmp(names[i], "packed") == 0;
        struct mc_chosen_solver one = { key.s, names[i], 1e-9 };
        const struct mc_chosen chosen = { &one, 1 };
        struct mc_plan_options options = mc_plan_options_of(NULL);
        options.chosen = &chosen;
        struct mc_plan *plan = mc_gemm_plan(&x.p, &options);
        REQUIRE(plan, "%s: %s", names[i], mc_last_error());
        CHECK(plan->measured == here && (strcmp(plan->solver->name, names[i]) == 0) == here, "%s: %s",
              names[i], plan->solver->name);
        CHECK(run(&x, plan, 2), "%s writes beyond its workspace", plan->solver->name);
        judge(&x, plan, names[i]);
        mc_plan_free(plan);
    }
    mc_str_free(&key);
    unmake(&x);
}
