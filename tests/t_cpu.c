/* t_cpu.c: the processor and the team of threads. */
#include "device/cpu/code.h"
#include "forked.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- the processor ---- */

TEST(features_agree_with_the_compiler)
{
    mc_flag_set("cpu.isa", "native");
    const struct mc_cpu *c = mc_cpu();
    CHECK(c->threads >= 1, "%d threads", c->threads);
    CHECK(c->l1d >= 4096 && c->l2 >= c->l1d, "caches of %zu and %zu bytes", c->l1d, c->l2);
    CHECK(c->brand[0] != '\0', "no brand");
#if defined(__x86_64__)
    __builtin_cpu_init();
    CHECK(c->avx2 == !!__builtin_cpu_supports("avx2"), "avx2 %d", c->avx2);
    CHECK(c->fma == !!__builtin_cpu_supports("fma"), "fma %d", c->fma);
    CHECK(c->avx512f == !!__builtin_cpu_supports("avx512f"), "avx512f %d", c->avx512f);
    CHECK(c->avx512vl == !!__builtin_cpu_supports("avx512vl"), "avx512vl %d", c->avx512vl);
    CHECK(c->avx512bw == !!__builtin_cpu_supports("avx512bw"), "avx512bw %d", c->avx512bw);
    CHECK(c->avx512dq == !!__builtin_cpu_supports("avx512dq"), "avx512dq %d", c->avx512dq);
    CHECK(c->avx2 == !!strstr(mc_cpu_flags(), "-mavx2"), "flags '%s'", mc_cpu_flags());
    CHECK(c->avx512f == !!strstr(mc_cpu_flags(), "-mprefer-vector-width=512"), "flags '%s'", mc_cpu_flags());
#endif
}

/* Each word of cpu.isa leaves out what the ones before it have, for hand-written kernels and for the compiler
 * alike. */
TEST(features_are_limited_by_a_flag)
{
    static const struct {
        const char *word;
        bool avx512, avx2;
    } rows[] = { { "native", true, true },
                 { "avx512", true, true },
                 { "avx2", false, true },
                 { "sse2", false, false },
                 { "neon", false, false } };
    mc_flag_set("cpu.isa", "native");
    const struct mc_cpu all = *mc_cpu();
    const uint64_t hash = mc_cpu_hash();
    for (size_t i = 0; i < NELEM(rows); i++) {
        REQUIRE(mc_flag_set("cpu.isa", rows[i].word) == MC_OK, "%s", mc_last_error());
        const struct mc_cpu *c = mc_cpu();
        const char *word = rows[i].word, *flags = mc_cpu_flags();
        CHECK(c->avx512f == (all.avx512f && rows[i].avx512) &&
                  c->avx512bf16 == (all.avx512bf16 && rows[i].avx512),
              "%s: AVX-512", word);
        CHECK(c->avx2 == (all.avx2 && rows[i].avx2) && c->fma == (all.fma && rows[i].avx2), "%s: AVX2", word);
        CHECK(!!strstr(flags, "512") == c->avx512f && !!strstr(flags, "-mavx2") == c->avx2, "%s: flags '%s'",
              word, flags);
        CHECK(rows[i].avx2 || !*flags, "%s: flags '%s'", word, flags);
        CHECK(mc_isa_runs(ISA_AVX2) == (c->avx2 && c->fma) && (rows[i].avx512 || !mc_isa_runs(ISA_AVX512)),
              "%s: kernels", word);
        CHECK(c->l2 == all.l2 && c->threads == all.threads && mc_cpu_hash() == hash,
              "%s: the processor is another", word);
    }
    CHECK(mc_flag_set("cpu.isa", "avx") == MC_EARG && strstr(mc_last_error(), "avx2"), "%s", mc_last_error());
}

TEST(threads_follow_the_affinity)
{
    cpu_set_t one;
    REQUIRE(sched_getaffinity(0, sizeof one, &one) == 0, "%s", strerror(errno));
    size_t first = 0;
    while (!CPU_ISSET(first, &one)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0, "%s", strerror(errno));
    CHECK(mc_cpu()->threads == 1, "%d threads on one processor", mc_cpu()->threads);
    CHECK(mc_team_size() == 1, "a team of %d", mc_team_size());
    mc_flag_set("threads", "3");
    CHECK(mc_team_size() == 3, "a team of %d, though the flag says 3", mc_team_size());
}

/* ---- the team ---- */

enum { NUMBERS = 1000, PARTS = 16 };

struct seen {
    _Atomic int times[NUMBERS];
    _Atomic int64_t from[PARTS], to[PARTS];
    _Atomic int parts, bad;
    int64_t grain, n;
};

static void see(void *arg, int64_t from, int64_t to, int thread)
{
    struct seen *s = arg;
    s->parts++;
    s->bad += thread < 0 || thread >= PARTS || from >= to || to > s->n || from % s->grain ||
              (to % s->grain && to != s->n);
    if (!s->bad) {
        s->from[thread] = from;
        s->to[thread] = to;
        for (int64_t i = from; i < to; i++) {
            s->times[i]++;
        }
    }
}

static void see_nested(void *arg, int64_t from, int64_t to, int thread)
{
    struct seen *const *s = arg;
    (void)to, (void)thread;
    mc_team_run(see, s[from], s[from]->n, s[from]->grain, 4);
}

static int64_t missed(const struct seen *s)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < NUMBERS; i++) {
        wrong += s->times[i] != (i < s->n);
    }
    return wrong;
}

TEST(team_covers_each_number_once)
{
    static const int64_t sizes[] = { 0, 1, 2, 7, 8, 9, 63, 100, 999, 1000 },
                         grains[] = { 0, 1, 3, 8, 64, 5000 };
    for (size_t i = 0; i < NELEM(sizes); i++) {
        for (size_t g = 0; g < NELEM(grains); g++) {
            for (int threads = 1; threads <= PARTS; threads += 3) {
                struct seen s = { .n = sizes[i], .grain = MC_MAX(1, grains[g]) };
                mc_team_run(see, &s, s.n, grains[g], threads);
                int64_t most = s.n ? (s.n - 1) / s.grain + 1 : 0, longest = 0, shortest = INT64_MAX;
                CHECK(missed(&s) == 0 && !s.bad, "n %d grain %d threads %d: %d numbers wrong", (int)s.n,
                      (int)s.grain, threads, (int)missed(&s));
                CHECK(s.parts == MC_MIN(most, threads), "n %d grain %d: %d parts", (int)s.n, (int)s.grain,
                      s.parts);
                for (int p = 0; p < s.parts; p++) {
                    longest = MC_MAX(longest, s.to[p] - s.from[p]);
                    shortest = MC_MIN(shortest, s.to[p] - s.from[p]);
                }
                CHECK(s.parts == 0 || longest - shortest < 2 * s.grain, "parts of %d to %d", (int)shortest,
                      (int)longest);
            }
        }
    }
}

TEST(team_nested_splits_the_same)
{
    struct seen outer = { .n = 777, .grain = 5 }, a = outer, b = outer;
    mc_team_run(see, &outer, outer.n, outer.grain, 4);
    mc_team_run(see_nested, (struct seen *[]){ &a, &b }, 2, 1, 2);
    CHECK(missed(&a) == 0 && missed(&b) == 0, "%d and %d wrong", (int)missed(&a), (int)missed(&b));
    CHECK(memcmp(a.from, outer.from, sizeof a.from) == 0 && memcmp(b.to, outer.to, sizeof b.to) == 0,
          "another split when nested");
}

static void *run_often(void *arg)
{
    (void)arg;
    int64_t wrong = 0;
    for (int i = 0; i < 300; i++) {
        struct seen s = { .n = 200 + i, .grain = 1 + i % 7 };
        mc_team_run(see, &s, s.n, s.grain, 1 + i % 5);
        wrong += missed(&s) + s.bad;
        if (i % 50 == 0) {
            usleep(500); /* long enough for members to fall asleep */
        }
    }
    return (void *)(intptr_t)wrong;
}

TEST(team_serves_many_callers)
{
    pthread_t thread[6];
    for (size_t i = 0; i < NELEM(thread); i++) {
        REQUIRE(pthread_create(&thread[i], NULL, run_often, NULL) == 0, "no thread");
    }
    for (size_t i = 0; i < NELEM(thread); i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        CHECK(!wrong, "%d numbers wrong in thread %zu", (int)(intptr_t)wrong, i);
    }
}

static int run_once(void)
{
    struct seen s = { .n = 100, .grain = 1 };
    mc_team_run(see, &s, s.n, s.grain, 4);
    return missed(&s) || s.bad;
}

TEST(team_survives_fork)
{
    CHECK(run_once() == 0, "before the fork");
/* which refuses threads in the child of a process that had some, as qemu does */
#if !defined(__SANITIZE_THREAD__)
    if (!getenv("TEST_QEMU")) {
        CHECK(in_child(run_once) == 0, "in the child");
    }
#endif
    CHECK(run_once() == 0, "after the fork");
}

static int run_and_leave_busy(void)
{
    run_once();
    usleep(1000); /* the members sleep when exit() disbands them */
    return 7;
}

TEST(team_ends_with_the_process)
{
    CHECK(in_child(run_and_leave_busy) == 7, "a process with a sleeping team does not end well");
}

#ifdef __linux__

static struct { size_t bound; int others; } masks = { .others = -1 };

static void note_mask(void *arg, int64_t from, int64_t to, int thread)
{
    cpu_set_t set;
    (void)arg, (void)from, (void)to;
    if (thread > 0 && sched_getaffinity(0, sizeof set, &set) == 0) {
        masks.others = CPU_COUNT(&set) - (CPU_ISSET(masks.bound, &set) != 0);
    }
}

/* A caller that is bound to one processor does not take its team along. */
TEST(a_bound_caller_leaves_its_team_free)
{
    cpu_set_t all, one;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0, "no mask");
    if (CPU_COUNT(&all) < 2) {
        SKIP("one processor");
    }
    while (!CPU_ISSET(masks.bound, &all)) {
        masks.bound++;
    }
    CPU_ZERO(&one);
    CPU_SET(masks.bound, &one);
    sched_setaffinity(0, sizeof one, &one);
    mc_team_run(note_mask, NULL, 2, 1, 2);
    sched_setaffinity(0, sizeof all, &all);
    CHECK(masks.others != 0, "a member may run on its caller's processor alone");
}
#endif
