/* t_cuda_gemm.c: products on a GPU, every solver against the host's reference. */
#include "cuda_problems.h"
#include "heavy/gemm/cuda/split.h"
#include <math.h>
#include <stdlib.h>

static const int64_t sizes[][3] = {
    { 1, 1, 1 },     { 0, 3, 4 },    { 3, 4, 0 },      { 2, 3, 4 },     { 7, 5, 9 },      { 8, 48, 16 },    { 9, 49, 17 },
    { 33, 10, 65 },  { 1, 100, 50 }, { 100, 1, 50 },   { 1, 1, 3000 },  { 64, 64, 64 },   { 65, 97, 33 },   { 130, 70, 70 },
    { 5, 300, 40 },  { 16, 16, 16 }, { 20, 24, 2100 }, { 300, 13, 520 }, { 256, 256, 256 },
};
static const char *const orders[] = { "nn", "nt", "tn", "tt" };

static void gemm_grid(mc_dtype d)
{
    struct column_sums t[8] = { { 0 } };
    GPU_OR_SKIP();
    const size_t step = test_is_full() ? 1 : 7;
    for (size_t s = 0, turn = (size_t)d; s < NELEM(sizes); s++) {
        for (size_t o = 0; o < NELEM(orders); o++, turn++) {
            for (size_t v = turn % step; v < NELEM(products); v += step) {
                const struct mc_gemm_problem p = product(d, sizes[s][0], sizes[s][1], sizes[s][2], orders[o],
                                                         &products[v]);
                every(&p.base, t);
            }
        }
    }
    tell(t, 8);
    CHECK(served(&mc_gemm_cuda, t, &mc_gemm_cuda_plain) > 70, "our own kernel ran %d times",
          served(&mc_gemm_cuda, t, &mc_gemm_cuda_plain));
    CHECK(served(&mc_gemm_cuda, t, &mc_gemm_cuda_skinny) > 30, "few columns %d",
          served(&mc_gemm_cuda, t, &mc_gemm_cuda_skinny));
    CHECK(served(&mc_gemm_cuda, t, &mc_gemm_cuda_unfused) > 30, "with what follows apart %d",
          served(&mc_gemm_cuda, t, &mc_gemm_cuda_unfused));
    if (mc_nv_found(NV_CUBLASLT)->present) {
        CHECK(served(&mc_gemm_cuda, t, &mc_gemm_cublaslt) > 30, "cuBLASLt ran %d times",
              served(&mc_gemm_cuda, t, &mc_gemm_cublaslt));
    }
}

TEST(cuda_gemm_solvers_in_float32)
{
    gemm_grid(MC_FLOAT32);
}

TEST(cuda_gemm_solvers_in_float64)
{
    gemm_grid(MC_FLOAT64);
}

TEST(cuda_gemm_solvers_in_float16)
{
    gemm_grid(MC_FLOAT16);
}

TEST(cuda_gemm_solvers_in_bfloat16)
{
    gemm_grid(MC_BFLOAT16);
}

/* Large enough that our kernel takes its large tiles. */
TEST(cuda_gemm_large_tiles)
{
    struct column_sums t[8] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t o = 0; o < NELEM(orders); o++) {
        const struct mc_gemm_problem p = product(MC_FLOAT32, 1500, 1601, 130, orders[o], &products[o]);
        every(&p.base, t);
    }
    tell(t, 8);
}

/* Operands split and packed first: more tiles than multiprocessors, tiles that are not full, rows that are
 * read twice, lines that are not aligned. */
TEST(cuda_gemm_split_large)
{
    static const int64_t large[][3] = {
        { 256, 256, 1 }, { 1700, 2100, 70 }, { 256, 257, 9000 }, { 257, 2001, 129 }
    };
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(large); s++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            const struct product *v = &products[(3 * s + o) % NELEM(products)];
            const struct mc_gemm_problem p = product(MC_FLOAT32, large[s][0], large[s][1], large[s][2],
                                                     orders[o], v);
            if (mc_gemm_cuda_split_large.refuse(&p.base)) {
                SKIP("%s", mc_gemm_cuda_split_large.refuse(&p.base));
            }
            one(&p.base, &mc_gemm_cuda_split_large, &t);
        }
    }
    struct mc_gemm_problem p = product(MC_FLOAT32, 300, 400, 150, "nn", &products[0]);
    memcpy(p.as, (int64_t[3]){ 0, 500, 3 }, sizeof p.as);
    memcpy(p.bs, (int64_t[3]){ 0, -900, 2 }, sizeof p.bs);
    memcpy(p.cs, (int64_t[3]){ 0, 2, -700 }, sizeof p.cs);
    one(&p.base, &mc_gemm_cuda_split_large, &t);
    tell(&t, 1);
    CHECK(t.served == 1 + (int)(NELEM(large) * NELEM(orders)) && t.failed == 0, "served %d, failed %d",
          t.served, t.failed);
}

/* Few columns or rows: one row a thread and several, sums shared by blocks, neighbours of S read at once and
 * not, any strides. */
TEST(cuda_gemm_few_columns)
{
    static const int64_t thin[][3] = {
        { 500, 10, 500 }, { 10, 500, 500 },  { 2000, 16, 70 }, { 3, 4, 20000 },
        { 5000, 1, 33 },  { 16, 1500, 300 }, { 7, 2, 9 },      { 1, 130, 9000 }
    };
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(thin); s++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            const struct product *v = &products[(3 * s + o) % NELEM(products)];
            struct mc_gemm_problem p = product(floats[(s + o) % NELEM(floats)], thin[s][0], thin[s][1],
                                               thin[s][2], orders[o], v);
            one(&p.base, &mc_gemm_cuda_skinny, &t);
            if (v->batch == 1 && o == s % NELEM(orders)) {
                memcpy(p.as, (int64_t[3]){ 0, 3 * thin[s][2] + 1, 3 }, sizeof p.as);
                memcpy(p.bs, (int64_t[3]){ 0, -2 * thin[s][1], 2 }, sizeof p.bs);
                one(&p.base, &mc_gemm_cuda_skinny, &t);
            }
        }
    }
    tell(&t, 1);
    CHECK(t.served > (int)(NELEM(thin) * NELEM(orders)) && t.failed == 0, "served %d, failed %d", t.served,
          t.failed);
}

/* Small matrices on tensor cores: sums shared by blocks, tiles that are not full, every order, lines that
 * cannot be read by fours; what is no number comes out as float32 has it. */
TEST(cuda_gemm_cut_tiles)
{
    static const int64_t small[][3] = { { 64, 64, 64 },  { 1, 1, 1 },     { 100, 130, 200 },
                                        { 65, 10, 333 }, { 7, 70, 1000 }, { 200, 120, 140 } };
    struct column_sums t = { 0 };
    GPU_OR_SKIP();
    for (size_t s = 0; s < NELEM(small); s++) {
        for (size_t o = 0; o < NELEM(orders); o++) {
            const struct mc_gemm_problem p = product(MC_FLOAT32, small[s][0], small[s][1], small[s][2],
                                                     orders[o], &products[(s + o) % NELEM(products)]);
            one(&p.base, &mc_gemm_cuda_split_inline, &t);
        }
    }
    tell(&t, 1);
    CHECK(t.served == (int)(NELEM(small) * NELEM(orders)) && t.failed == 0, "served %d, failed %d", t.served,
          t.failed);
}

static void infinities(const struct mc_solver *s)
{
    enum { M = 270, N = 266, K = 130 };
    const struct mc_gemm_problem p = product(MC_FLOAT32, M, N, K, "nn", &products[0]);
    if (s->refuse(&p.base)) {
        SKIP("%s", s->refuse(&p.base));
    }
    struct mc_plan *plan = mc_plan_with(&p.base, s);
    REQUIRE(plan, "%s", mc_last_error());
    static float a[M * K], b[K * N], c[M * N];
    void *operand[8];
    for (int i = 0; i < M * K; i++) {
        a[i] = 1.0f / (float)(1 + i % 17);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(i % 13) - 6.5f;
    }
    a[3 * K + 5] = INFINITY;
    b[70 * N + 7] = NAN;
    b[2 * N + 9] = -INFINITY;
    struct mc_extent e[4];
    mc_gemm_extents(&p, e);
    struct mc_cuda *d = mc_cuda_current();
    REQUIRE(mc_cuda_operands(e, 4, operand) >= 0, "%s", mc_last_error());
    void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
    CHECK(mc_cuda_copy_to_device(d, operand[GEMM_A], a, sizeof a) >= 0 &&
              mc_cuda_copy_to_device(d, operand[GEMM_B], b, sizeof b) >= 0 &&
              plan->run(plan, operand, work, 0) >= 0 &&
              mc_cuda_copy_to_host(d, c, operand[GEMM_C], sizeof c) >= 0,
          "%s", mc_last_error());
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double want = 0;
            for (int k = 0; k < K; k++) {
                want += (double)a[i * K + k] * b[k * N + j];
            }
            const double got = c[i * N + j], off = got - want;
            CHECK(isnan(want)   ? isnan(got)
                  : isinf(want) ? isinf(got) && (got > 0) == (want > 0)
                                : off < 1e-4 && off > -1e-4,
                  "(%d, %d): %g, not %g", i, j, got, want);
        }
    }
    mc_site_cuda.give(work);
    mc_cuda_discard(e, 4, operand);
    mc_plan_free(plan);
}

TEST(cuda_gemm_cut_infinities)
{
    GPU_OR_SKIP();
    infinities(&mc_gemm_cuda_split_inline);
}

TEST(cuda_gemm_split_infinities)
{
    GPU_OR_SKIP();
    infinities(&mc_gemm_cuda_split);
}

TEST(cuda_gemm_split_large_infinities)
{
    GPU_OR_SKIP();
    infinities(&mc_gemm_cuda_split_large);
}

/* Strides that no library takes, backwards and with gaps in both directions; integers that stay within
 * int16. */
TEST(cuda_gemm_any_strides_and_integers)
{
    static const mc_dtype all[] = { MC_INT32, MC_INT64, MC_FLOAT32, MC_FLOAT64, MC_INT16 };
    struct column_sums t[8] = { { 0 } };
    GPU_OR_SKIP();
    for (size_t d = 0; d < NELEM(all); d++) {
        struct mc_gemm_problem p = product(all[d], 37, 41, 50, "nn", &products[0]);
        every(&p.base, t);
        memcpy(p.as, (int64_t[3]){ 0, 301, 3 }, sizeof p.as);
        memcpy(p.bs, (int64_t[3]){ 0, -90, 2 }, sizeof p.bs);
        memcpy(p.cs, (int64_t[3]){ 0, 2, -100 }, sizeof p.cs);
        one(&p.base, &mc_gemm_cuda_plain, &t[7]);
    }
    tell(t, 8);
    CHECK(t[7].served == NELEM(all), "our own kernel ran %d times", t[7].served);
}

/* The largest error of a solver, in units of float32's rounding of sqrt(k): what sums of that many products
 * come to. */
static double error_of(const struct mc_gemm_problem *p, const struct mc_solver *s, void *const *host,
                       const float *truth)
{
    struct mc_extent e[4];
    void *there[8];
    double worst = -1;
    mc_gemm_extents(p, e);
    struct mc_plan *plan = s->refuse && s->refuse(&p->base) ? NULL : mc_plan_with(&p->base, s);
    if (!plan || mc_cuda_operands(e, 4, there) < 0) {
        mc_plan_free(plan);
        return -1;
    }
    struct mc_cuda *d = mc_cuda_current();
    float *got = malloc((size_t)e[GEMM_C].count * sizeof *got);
    void *work = plan->workspace ? mc_site_cuda.take(plan->workspace) : NULL;
    CHECK(mc_cuda_copy_to_device(d, there[GEMM_A], host[GEMM_A], (size_t)e[GEMM_A].count * sizeof(float)) >=
                  0 &&
              mc_cuda_copy_to_device(d, there[GEMM_B], host[GEMM_B],
                                     (size_t)e[GEMM_B].count * sizeof(float)) >= 0 &&
              plan->run(plan, there, work, 0) >= 0 &&
              mc_cuda_copy_to_host(d, got, there[GEMM_C], (size_t)e[GEMM_C].count * sizeof *got) >= 0,
          "%s: %s", s->name, mc_last_error());
    for (int64_t i = 0; i < e[GEMM_C].count; i++) {
        const double off = got[i] - truth[i];
        worst = MC_MAX(worst, off < 0 ? -off : off);
    }
    free(got);
    mc_site_cuda.give(work);
    mc_cuda_discard(e, 4, there);
    mc_plan_free(plan);
    return worst / (0x1p-24 * sqrt((double)p->k));
}

TEST(cuda_products_are_as_exact_as_float32)
{
    static const int64_t ks[] = { 8, 64, 1024, 8192 };
    GPU_OR_SKIP();
    for (size_t i = 0; i < NELEM(ks); i++) {
        const struct mc_gemm_problem p = product(MC_FLOAT32, 256, 256, ks[i], "nn", &products[0]);
        struct mc_gemm_problem near = p;
        void *host[8];
        near.base.family = &mc_gemm_family;
        struct mc_plan *truth = mc_plan_with(&near.base, &mc_gemm_reference);
        REQUIRE(truth && mc_gemm_family.operands(&near.base, host) >= 0 &&
                    truth->run(truth, host, NULL, 0) >= 0,
                "%s", mc_last_error());
        const double plain = error_of(&p, &mc_gemm_cuda_plain, host, host[GEMM_C]);
        const double library = error_of(&p, &mc_gemm_cublaslt, host, host[GEMM_C]);
        const double split = mc_gemm_cuda_split.refuse(&p.base)
                                 ? 0
                                 : error_of(&p, &mc_gemm_cuda_split, host, host[GEMM_C]);
        const double large = mc_gemm_cuda_split_large.refuse(&p.base)
                                 ? 0
                                 : error_of(&p, &mc_gemm_cuda_split_large, host, host[GEMM_C]);
        const double cut = error_of(&p, &mc_gemm_cuda_split_inline, host, host[GEMM_C]);
        const double most = 8 + sqrt((double)ks[i]);
        CHECK(split >= 0 && split <= 2 * plain + 2,
              "k %lld: in units of rounding, split operands are off by %.2f, our plain kernel by %.2f",
              (long long)ks[i], split, plain);
        CHECK(large >= 0 && large <= 2 * plain + 2,
              "k %lld: in units of rounding, split operands in large tiles are off by %.2f, our plain kernel "
              "by %.2f",
              (long long)ks[i], large, plain);
        CHECK(cut >= 0 && cut <= 2 * plain + 2,
              "k %lld: in units of rounding, tiles cut in halves are off by %.2f, our plain kernel by %.2f",
              (long long)ks[i], cut, plain);
        CHECK(plain >= 0 && plain <= most && library <= most,
              "k %lld: in units of rounding, our own kernel is off by %.2f, cuBLASLt by %.2f",
              (long long)ks[i], plain, library);
        mc_gemm_family.discard(&near.base, host);
        mc_plan_free(truth);
    }
}
