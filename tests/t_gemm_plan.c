/* t_gemm_plan.c: how matrix products are planned: words, estimates, libraries, reasons, workspace. */
#include "gemm_cases.h"
#include <time.h>

/* ---- planning ---- */

static struct mc_gemm_problem dense(int64_t m, int64_t n, int64_t k)
{
    return (struct mc_gemm_problem){ .base = { &mc_gemm_family, mc_plan_options_of(NULL) },
                                     .dtype = MC_FLOAT32,
                                     .batch = 1,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .as = { 0, k, 1 },
                                     .bs = { 0, n, 1 },
                                     .cs = { 0, n, 1 },
                                     .alpha = 1 };
}

TEST(gemm_word_says_what_matters)
{
    static const struct {
        const char *word;
        struct variant v;
        const char *order;
    } rows[] = {
        { "gemm f32 nn m6n7k8", { 1, 0, NO_C0, false, 1, 0 }, "nn" },
        { "gemm f32 tn m6n7k8 lda8 ldb9 ldc9 c0 row", { 1, 1, ROW_C0, false, 1, 2 }, "tn" },
        { "gemm f32 nt m6n7k8 b3 sharedb e", { 1, 0, NO_C0, true, 3, 0, .share_b = true }, "nt" },
        { "gemm f32 tt m6n7k8 c0 col", { 1, 1, COL_C0, false, 1, 0 }, "tt" },
        { "gemm f32 nn m6n7k8", { 1, 0, NAN_C0, false, 1, 0 }, "nn" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct instance x = make(MC_FLOAT32, (struct shape){ 6, 7, 8 }, rows[i].order, rows[i].v);
        struct mc_str word = { 0 };
        mc_gemm_family.key(&x.p.base, &word);
        CHECK(strcmp(word.s, rows[i].word) == 0, "'%s', not '%s'", word.s, rows[i].word);
        mc_str_free(&word);
        unmake(&x);
    }
}

/* What was fastest when timed at each level; the caches are those of processors that are around. */
static void check_choices(const char *level, const struct mc_cpu *caches)
{
    static const struct {
        struct shape s;
        const char *vectors, *plain; /* the solver where there are AVX2 or AVX-512, and where not */
        bool stays, turned;          /* B is packed once for many products; its rows have stride 1 */
    } rows[] = {
        { { 8, 32, 32 }, "direct", "direct" },
        { { 32, 32, 32 }, "direct", "direct" },
        { { 600, 10, 784 }, "thin", "thin" },
        { { 784, 10, 600 }, "thin", "thin" },
        { { 1, 4096, 4096 }, "thin", "thin" },
        { { 4096, 1, 4096 }, "thin", "thin" },
        { { 1536, 1536, 1536 }, "packed", "packed" }, /* rows of B map to few sets of L2 */
        { { 2048, 2048, 2048 }, "packed", "packed" },
        { { 32, 32, 100000 }, "splitk", "splitk" },
        { { 4096, 16, 4096 }, "direct", "thin" },
        { { 16, 4096, 4096 }, "thin", "thin" },
        { { 64, 64, 1024 }, "direct", "direct" },
        { { 5, 5, 0 }, "reference", "reference" },
        { { 128, 4096, 1024 }, "packed", "packed", true },
        { { 32, 1024, 4096 }, "packed", "packed", true },
        { { 32, 256, 256 }, "packed", "packed", true, true },
        { { 64, 250, 500 }, "packed", "packed", true, true },
    };
    const bool plain = strcmp(mc_gemm_kernel(MC_FLOAT32)->name, "plain") == 0;
    for (size_t i = 0; i < NELEM(rows); i++) {
        const char *want = plain ? rows[i].plain : rows[i].vectors;
        struct mc_gemm_problem p = dense(rows[i].s.m, rows[i].s.n, rows[i].s.k);
        p.b_stays = rows[i].stays;
        p.bs[1] = rows[i].turned ? 1 : p.bs[1];
        p.bs[2] = rows[i].turned ? p.k : p.bs[2];
        struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
        REQUIRE(plan, "%s", mc_last_error());
        CHECK(strcmp(plan->solver->name, want) == 0, "%s, second cache %zu KiB: m%d n%d k%d: %s, not %s",
              level, caches->l2 >> 10, (int)p.m, (int)p.n, (int)p.k, plan->solver->name, want);
        mc_plan_free(plan);
    }
}

TEST(gemm_estimates_choose_sensibly)
{
    static const char *const levels[] = { "native", "avx2", "sse2" };
    static const struct mc_cpu caches[] = {
        { .l1d = 32 << 10, .l2 = 512 << 10, .l3 = 32 << 20, .shared = 32 << 20 },   /* Zen 2, Zen 3 */
        { .l1d = 32 << 10, .l2 = 1 << 20, .l3 = 16 << 20, .shared = 16 << 20 },     /* Zen 4, Skylake's servers */
        { .l1d = 48 << 10, .l2 = 2 << 20, .l3 = 32 << 20, .shared = 260 << 20 },    /* Sapphire Rapids */
        { .l1d = 64 << 10, .l2 = 1 << 20, .l3 = 32 << 20, .shared = 32 << 20 },     /* Neoverse */
        { .l1d = 32 << 10, .l2 = 256 << 10, .l3 = 8 << 20, .shared = 8 << 20 },     /* Haswell */
    };
    mc_flags_parse("onednn=none,blas=none,cache_size=0");
    for (size_t i = 0; i < NELEM(levels); i++) {
        mc_flag_set("cpu.isa", levels[i]);
        struct mc_cpu *cpu = (struct mc_cpu *)mc_cpu(); /* of this process, which is the test's alone */
        const struct mc_cpu here = *cpu;
        check_choices(levels[i], &here);
        for (size_t j = 0; j < NELEM(caches); j++) {
            cpu->l1d = caches[j].l1d, cpu->l2 = caches[j].l2, cpu->l3 = caches[j].l3,
            cpu->shared = caches[j].shared;
            check_choices(levels[i], &caches[j]);
        }
        *cpu = here;
    }
}

static const char *chosen(int64_t n)
{
    const struct mc_gemm_problem p = dense(n, n, n);
    struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
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
    CHECK(strcmp(chosen(1536), mc_gemm_onednn_library() ? "onednn" : "packed") == 0, "%s, at half our time",
          chosen(1536));
    CHECK(strcmp(chosen(100), "direct") == 0, "%s, for a small product", chosen(100));
    mc_flag_set("onednn", "none");
    CHECK(strcmp(chosen(1536), "packed") == 0, "%s, where there is none", chosen(1536));
    mc_flag_set("onednn", "auto");
    remember("onednn", "onednn", 0.95e-3);
    CHECK(strcmp(chosen(1536), "packed") == 0, "%s, for a gain of a twentieth", chosen(1536));
}

/* A library copies B in each call, also one that packed has packed once for all calls.  Without AVX2 the
 * products take so long that the copy does not matter. */
TEST(gemm_libraries_copy_what_stays)
{
    if (!mc_cpu()->avx2) {
        SKIP("no AVX2");
    }
    mc_flags_parse("threads=2,cache_size=0,plan=estimate,blas=none");
    remember("own", "direct", 1e-3);
    remember("onednn", "onednn", 0.8e-3);
    for (int stays = 0; stays < 2; stays++) {
        struct mc_gemm_problem p = dense(32, 4096, 1024);
        p.b_stays = stays;
        struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
        REQUIRE(plan, "%s", mc_last_error());
        const bool library = strcmp(plan->solver->name, "onednn") == 0;
        CHECK(library == (!stays && mc_gemm_onednn_library()), "%s%s", plan->solver->name,
              stays ? ", B stays" : "");
        mc_plan_free(plan);
    }
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
        { "gemm.algo=cublaslt", { 100, 100, 100 }, "gemm has no solver 'cublaslt'; there are: auto direct" },
        { "gemm.algo=thin", { 100, 100, 100 }, "solver thin, which was asked for, takes at most 16 rows" },
        { "gemm.algo=packed,workspace=1k", { 100, 100, 100 }, "bytes of workspace, the flag allows 1024" },
        { "gemm.algo=onednn,onednn=none", { 100, 100, 100 }, "finds no library" },
        { "gemm.algo=blas,blas=none,threads=2", { 100, 100, 100 }, "finds no library" },
        { "gemm.algo=auto,workspace=1G", { -1, 100, 100 }, "sizes batch 1, m -1" },
        { "gemm.algo=auto", { INT64_C(1) << 40, INT64_C(1) << 40, 1 }, "cannot be" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_flags_parse(rows[i].flags);
        const struct mc_gemm_problem p = dense(rows[i].s.m, rows[i].s.n, rows[i].s.k);
        struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
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
    struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
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
    struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
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
        snprintf(command, sizeof command,
                 "OMP_WAIT_POLICY=active '%s' t_gemm/gemm_library_leaves > /dev/null", self);
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
    static const struct shape shapes[] = {
        { 30, 40, 50 }, { 600, 10, 80 }, { 10, 600, 80 }, { 8, 8, 4000 }, { 0, 4, 4 }
    };
    allow_libraries();
    mc_flags_parse("check=3,plan=exhaustive,cache=/nonexistent/folder,cache_size=0");
    for (size_t i = 0; i < NELEM(shapes); i++) {
        const struct mc_gemm_problem p = dense(shapes[i].m, shapes[i].n, shapes[i].k);
        struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
        CHECK(plan && plan->measured, "%s", plan ? "not measured" : mc_last_error());
        mc_plan_free(plan);
    }
}

TEST(gemm_survives_failing_allocations)
{
    static const struct shape shapes[] = {
        { 30, 40, 50 }, { 100, 10, 80 }, { 200, 300, 400 }, { 8, 8, 5000 }
    };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        const struct mc_gemm_problem p = dense(shapes[i].m, shapes[i].n, shapes[i].k);
        ALLOC_FAIL_LOOP {
            struct mc_plan *plan = mc_gemm_plan(&p, AS_FLAGS(NULL));
            CHECK(plan || ALLOC_FAILED, "no plan, yet memory: %s", mc_last_error());
            CHECK(plan || mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
            mc_plan_free(plan);
        }
    }
}
