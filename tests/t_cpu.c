/* t_cpu.c: the processor, the team of threads, and C text made into code.
 *
 * A compiler that keeps a tally stands before the real one, so a test can say how often it ran; where
 * only the running matters, it copies a library made before. */
#include "check.h"
#include "device/cpu/code.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the processor ---- */

TEST(features_agree_with_the_compiler)
{
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
    static const int64_t sizes[] = { 0, 1, 2, 7, 8, 9, 63, 100, 999, 1000 }, grains[] = { 0, 1, 3, 8, 64, 5000 };
    for (size_t i = 0; i < NELEM(sizes); i++) {
        for (size_t g = 0; g < NELEM(grains); g++) {
            for (int threads = 1; threads <= PARTS; threads += 3) {
                struct seen s = { .n = sizes[i], .grain = MC_MAX(1, grains[g]) };
                mc_team_run(see, &s, s.n, grains[g], threads);
                int64_t most = s.n ? (s.n - 1) / s.grain + 1 : 0, longest = 0, shortest = INT64_MAX;
                CHECK(missed(&s) == 0 && !s.bad, "n %d grain %d threads %d: %d numbers wrong", (int)s.n, (int)s.grain,
                      threads, (int)missed(&s));
                CHECK(s.parts == MC_MIN(most, threads), "n %d grain %d: %d parts", (int)s.n, (int)s.grain, s.parts);
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

/* A child that does not outlive the test by much, should it hang. */
static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
    }
    return pid;
}

/* The exit code of body(), run in a child process that ends with exit(). */
static int in_child(int (*body)(void))
{
    pid_t pid = fork_child();
    if (pid == 0) {
        exit(body());
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
#if !defined(__SANITIZE_THREAD__) /* which refuses threads in the child of a process that had some */
    CHECK(in_child(run_once) == 0, "in the child");
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

/* ---- compiling: surroundings of a test ---- */

static char root[128]; /* a folder of this test, removed in the end by the process that made it */
static pid_t owner;

static void clean_up(void)
{
    char command[192];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (owner == getpid() && system(command) != 0) {
        perror(root);
    }
}

static const char *in_root(const char *name)
{
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
        chmod(path, mode);
    }
}

/* A cache of the test's own, and a compiler that writes a line to `tally` and does `then`. */
static bool begin(const char *then)
{
    char text[1024];
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/mc-test-XXXXXX", tmp && strlen(tmp) < 90 ? tmp : "/tmp");
    if (!mkdtemp(root)) {
        return false;
    }
    owner = getpid();
    atexit(clean_up);
    snprintf(text, sizeof text, "#!/bin/sh\necho \"$*\" >> %s/tally\n%s\n", root, then);
    write_text(in_root("cc.sh"), text, 0755);
    return mc_flag_set("cc", in_root("cc.sh")) == MC_OK && mc_flag_set("cache", in_root("cache")) == MC_OK;
}

/* Lines of the tally which have the word. */
static int ran(const char *word)
{
    char line[4096];
    int n = 0;
    FILE *f = fopen(in_root("tally"), "r");
    while (f && fgets(line, sizeof line, f)) {
        n += strstr(line, word) != NULL;
    }
    if (f) {
        fclose(f);
    }
    return n;
}

static int compilations(void)
{
    return ran("-x c");
}

#define NEEDS_CC()                                                                                                   \
    do {                                                                                                             \
        if (system("cc --version >/dev/null 2>&1") != 0) {                                                           \
            SKIP("no C compiler");                                                                                   \
        }                                                                                                            \
        REQUIRE(begin("exec cc \"$@\""), "no folder for the test");                                                  \
    } while (0)

static const char *text_of(int value)
{
    static char text[128];
    snprintf(text, sizeof text, "int answer(void) { return %d; }\n", value);
    return text;
}

/* What the compiled text answers; -1: it was not compiled. */
static int answer(const char *text)
{
    mc_status s = MC_EARG;
    struct mc_code *c = mc_code_load(text, NULL, &s);
    CHECK((c != NULL) == (s == MC_OK), "status %d, code %p", s, (void *)c);
    int (*f)(void) = NULL;
    if (c) {
        *(void **)&f = mc_code_symbol(c, "answer");
    }
    int value = f ? f() : -1;
    mc_code_unref(&c);
    return value;
}

static int answer_anew(const char *text) /* as a process that just started */
{
    mc_code_flush();
    return answer(text);
}

/* Files in the cache folder whose names contain the word; path gets the last one's. */
static int entries(const char *word, char path[512], int64_t *bytes)
{
    int n = 0;
    struct dirent *e;
    DIR *d = opendir(in_root("cache/kernels"));
    while (d && (e = readdir(d))) {
        struct stat st;
        if (e->d_name[0] != '.' && strstr(e->d_name, word)) {
            n++;
            if (path) {
                snprintf(path, 512, "%s/%s", in_root("cache/kernels"), e->d_name);
            }
            if (bytes && fstatat(dirfd(d), e->d_name, &st, 0) == 0) {
                *bytes += st.st_size;
            }
        }
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* ---- compiling ---- */

TEST(code_is_shared_and_kept)
{
    NEEDS_CC();
    mc_status s;
    struct mc_code *a = mc_code_load(text_of(42), NULL, &s);
    struct mc_code *b = mc_code_load(text_of(42), NULL, &s);
    struct mc_code *other = mc_code_load(text_of(42), "-DOTHER", &s);
    REQUIRE(a && b && other, "%s", mc_last_error());
    CHECK(a == b && a != other, "two texts, but %p %p %p", (void *)a, (void *)b, (void *)other);
    CHECK(!mc_code_symbol(a, "question"), "a symbol that is not there");
    mc_code_unref(&a);
    mc_code_unref(&b);
    mc_code_unref(&other);
    CHECK(!a && !b, "unref leaves the pointer");
    CHECK(answer(text_of(42)) == 42, "%s", mc_last_error());
    CHECK(compilations() == 2, "%d compilations of two texts", compilations());
    CHECK(answer_anew(text_of(42)) == 42, "%s", mc_last_error());
    struct mc_code_stats n = mc_code_stats();
    CHECK(n.compiled == 2 && n.from_memory == 2 && n.from_disk == 1, "compiled %d, from memory %d, from disk %d",
          (int)n.compiled, (int)n.from_memory, (int)n.from_disk);
    CHECK(n.cc_seconds > 0, "compilations in no time");
    CHECK(entries("", NULL, NULL) == 3, "%d files for two kernels and a version", entries("", NULL, NULL));
}

static int warm(void)
{
    double start = mc_now();
    int value = answer(text_of(5));
    double ms = 1e3 * (mc_now() - start);
    return value == 5 && mc_code_stats().from_disk == 1 && ms < 20 ? 0 : 1;
}

TEST(code_warm_start_runs_no_process)
{
    NEEDS_CC();
    REQUIRE(in_child(warm) == 1, "the first process finds it on disk");
    int before = ran("");
    CHECK(before == 2, "%d processes for a version and a kernel", before);
    CHECK(in_child(warm) == 0, "the second process does not");
    CHECK(ran("") == before, "it ran the compiler: %d", ran(""));
}

TEST(code_warm_start_is_quick)
{
    NEEDS_CC();
    double best = 1;
    for (int i = 0; i < 10; i++) {
        double start = mc_now();
        CHECK(answer_anew(text_of(6)) == 6, "%s", mc_last_error());
        best = MC_MIN(best, mc_now() - start);
    }
    CHECK(best < 1e-3, "%.3f ms to load a kernel from disk", best * 1e3);
}

TEST(code_error_has_the_compilers_text)
{
    NEEDS_CC();
    mc_status s = MC_OK;
    struct mc_code *c = mc_code_load("int f(void) { return no_such_name; }\n", "-DMARK", &s);
    CHECK(!c && s == MC_ECOMPILE && mc_last_status() == MC_ECOMPILE, "status %d", s);
    CHECK(strstr(mc_last_error(), "no_such_name"), "no word of the compiler: %s", mc_last_error());
    CHECK(strstr(mc_last_error(), "cc.sh -x c") && strstr(mc_last_error(), "-DMARK"), "no command: %s",
          mc_last_error());
    CHECK(compilations() == 1, "tried %d times", compilations());
    CHECK(entries("", NULL, NULL) == 1, "%d files left behind", entries("", NULL, NULL) - 1);
    CHECK(!mc_code_load("int f(void) { return no_such_name; }\n", "-DMARK", NULL), "works the second time");
}

TEST(code_error_is_short)
{
    NEEDS_CC();
    struct mc_str text = { 0 };
    for (int i = 0; i < 300; i++) {
        mc_str_addf(&text, "int f%d(void) { return wrong%d; }\n", i, i);
    }
    CHECK(!mc_code_load(text.s, NULL, NULL), "compiles");
    CHECK(strstr(mc_last_error(), "wrong0") && !strstr(mc_last_error(), "wrong40"), "%s", mc_last_error());
    mc_str_free(&text);
}

TEST(code_finds_the_libraries_it_needs)
{
    NEEDS_CC();
    CHECK(answer("double pow(double, double); volatile double x = 2;\n"
                 "int answer(void) { return (int)pow(x, 5); }\n") == 32,
          "%s", mc_last_error());
    CHECK(compilations() == 1, "linked %d times", compilations());
    /* a routine of the compiler's own library, which the lean link leaves out */
    CHECK(answer("volatile unsigned long long x = 6;\n"
                 "int answer(void) { return (int)((unsigned __int128)x * x / x); }\n") == 6,
          "%s", mc_last_error());
    CHECK(mc_last_status() == MC_OK, "success, but the error is %s", mc_last_error());
    int before = compilations();
    CHECK(answer("int nowhere_at_all(void); int answer(void) { return nowhere_at_all(); }\n") == -1, "works");
    CHECK(mc_last_status() == MC_ECOMPILE && strstr(mc_last_error(), "nowhere_at_all"), "%s", mc_last_error());
    CHECK(compilations() - before == 2, "linked %d times", compilations() - before);
}

TEST(code_without_compiler)
{
    mc_flag_set("cc", "/nonexistent -O9");
    CHECK(!mc_cc_present() && !mc_cc_version()[0], "version '%s'", mc_cc_version());
    mc_status s = MC_OK;
    CHECK(!mc_code_load(text_of(1), NULL, &s) && s == MC_ECOMPILE, "status %d", s);
    CHECK(strstr(mc_last_error(), "/nonexistent"), "%s", mc_last_error());
    mc_flag_set("cc", "");
    CHECK(!mc_cc_present(), "the empty compiler");
    CHECK(!mc_code_load(text_of(1), NULL, &s) && strstr(mc_last_error(), "empty"), "%s", mc_last_error());
    REQUIRE(begin("exit 3"), "no folder");
    CHECK(!mc_cc_present(), "a compiler that fails");
    CHECK(!mc_code_load(text_of(1), NULL, &s) && strstr(mc_last_error(), "code 3"), "%s", mc_last_error());
    CHECK(!mc_cc_present() && ran("") == 1, "asked %d times", ran(""));
}

TEST(code_with_arguments_in_cc)
{
    NEEDS_CC();
    CHECK(mc_cc_present() && mc_cc_version()[0], "no version");
    char cc[300];
    snprintf(cc, sizeof cc, "%s  -DVALUE=17 ", in_root("cc.sh"));
    mc_flag_set("cc", cc);
    mc_flag_set("cflags", "-DMORE=3");
    CHECK(answer("int answer(void) { return VALUE + MORE; }\n") == 20, "%s", mc_last_error());
    mc_flag_set("cflags", "-DMORE=4");
    CHECK(answer("int answer(void) { return VALUE + MORE; }\n") == 21, "%s", mc_last_error());
}

/* A host that waits for no child, blocks signals and has closed its standard files. */
static int odd_host(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN);
    close(0);
    close(1);
    close(2);
    return answer(text_of(9)) == 9 && answer("int answer(void) { return bad; }\n") == -1 ? 0 : 1;
}

TEST(code_in_an_odd_host)
{
    NEEDS_CC();
    CHECK(in_child(odd_host) == 0, "it does not compile there");
}

/* ---- several at once ---- */

static void *answer_in_thread(void *arg)
{
    char text[128];
    snprintf(text, sizeof text, "int answer(void) { return %d; }\n", *(int *)arg);
    return (void *)(intptr_t)answer(text);
}

TEST(code_one_compilation_for_many_threads)
{
    NEEDS_CC();
    int value[8];
    pthread_t thread[8];
    for (int i = 0; i < 8; i++) {
        value[i] = 100 + i % 2;
        REQUIRE(pthread_create(&thread[i], NULL, answer_in_thread, &value[i]) == 0, "no thread");
    }
    for (int i = 0; i < 8; i++) {
        void *got;
        pthread_join(thread[i], &got);
        CHECK((intptr_t)got == value[i], "%d instead of %d", (int)(intptr_t)got, value[i]);
    }
    CHECK(compilations() == 2, "%d compilations of two texts", compilations());
    CHECK(mc_code_stats().from_memory == 6, "%d shared", (int)mc_code_stats().from_memory);
}

TEST(code_errors_reach_all_who_wait)
{
    NEEDS_CC();
    int value = 0;
    pthread_t thread[4];
    mc_flag_set("cflags", "-Dreturn=wrong");
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&thread[i], NULL, answer_in_thread, &value) == 0, "no thread");
    }
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(thread[i], &got);
        CHECK((intptr_t)got == -1, "%d", (int)(intptr_t)got);
    }
}

TEST(code_processes_race)
{
    NEEDS_CC();
    enum { PROCESSES = 6 };
    pid_t pid[PROCESSES];
    int gate[2];
    REQUIRE(pipe(gate) == 0, "no pipe");
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = fork_child();
        if (pid[i] == 0) {
            char c;
            close(gate[1]);
            ssize_t none = read(gate[0], &c, 1); /* until the parent opens the gate */
            _exit(none == 0 && answer(text_of(77)) == 77 && answer_anew(text_of(77)) == 77 ? 0 : 1);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        waitpid(pid[i], &status, 0);
        CHECK(status == 0, "process %d: status %d", i, status);
    }
    CHECK(entries(".so", NULL, NULL) == 1 && entries("tmp", NULL, NULL) == 0, "%d entries, %d left behind",
          entries(".so", NULL, NULL), entries("tmp", NULL, NULL));
    CHECK(answer(text_of(77)) == 77 && mc_code_stats().from_disk == 1, "%s", mc_last_error());
}

static void *compile_slowly(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)answer(text_of(8));
}

TEST(code_fork_while_compiling)
{
    REQUIRE(begin("sleep 0.1; exec cc \"$@\""), "no folder");
    if (!mc_cc_present()) {
        SKIP("no C compiler");
    }
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, compile_slowly, NULL) == 0, "no thread");
    usleep(50000);
    pid_t pid = fork_child();
    if (pid == 0) {
        _exit(answer("int answer(void) { return 8; }\n") == 8 ? 0 : 1); /* the parent is at the same text */
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "the child ends with status %d", status);
    void *got;
    pthread_join(thread, &got);
    CHECK((intptr_t)got == 8, "%d", (int)(intptr_t)got);
}

/* ---- the folder ---- */

static void truncate_it(const char *path)
{
    CHECK(truncate(path, 5000) == 0, "%s", strerror(errno));
}

static void empty_it(const char *path)
{
    CHECK(truncate(path, 0) == 0, "%s", strerror(errno));
}

static void change_a_byte(const char *path)
{
    char c = 0;
    int fd = open(path, O_RDWR);
    bool done = fd >= 0 && pread(fd, &c, 1, 4700) == 1 && (c ^= 1, pwrite(fd, &c, 1, 4700) == 1);
    CHECK(done && close(fd) == 0, "%s", strerror(errno));
}

static void lengthen_it(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, "more", 4) == 4 && close(fd) == 0, "%s", strerror(errno));
}

static void replace_with_another(const char *path)
{
    char other[512] = "", keep[512] = "";
    snprintf(keep, sizeof keep, "%s.aside", path);
    REQUIRE(rename(path, keep) == 0, "%s", strerror(errno));
    REQUIRE(answer_anew(text_of(1001)) == 1001, "%s", mc_last_error());
    unlink(keep);
    REQUIRE(entries(".so", other, NULL) == 1, "%d entries", entries(".so", NULL, NULL));
    CHECK(rename(other, path) == 0, "%s", strerror(errno));
}

static void seal_nonsense(const char *path)
{
    struct mc_key key;
    const char *name = strrchr(path, '/') + 1;
    unsigned long long at[2];
    REQUIRE(sscanf(name, "%16llx%16llx", &at[0], &at[1]) == 2, "name %s", name);
    key.at[0] = at[0], key.at[1] = at[1];
    mc_cache_put(key, ".so", "this is no library", 18);
}

static void put_a_folder_there(const char *path)
{
    CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0, "%s", strerror(errno));
}

static const struct damage {
    const char *name;
    void (*damage)(const char *path);
    bool mended;
} damages[] = {
    { "truncated",       truncate_it,          true  },
    { "empty",           empty_it,             true  },
    { "a changed byte",  change_a_byte,        true  },
    { "too long",        lengthen_it,          true  },
    { "another's",       replace_with_another, true  },
    { "sealed nonsense", seal_nonsense,        true  },
    { "a folder",        put_a_folder_there,   false },
};

TEST(cache_mends_damage)
{
    NEEDS_CC();
    REQUIRE(answer(text_of(1000)) == 1000, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(damages); i++) {
        char path[512] = "";
        REQUIRE(entries(".so", path, NULL) == 1, "%s: %d entries", damages[i].name, entries(".so", NULL, NULL));
        damages[i].damage(path);
        int before = compilations();
        CHECK(answer_anew(text_of(1000)) == 1000, "%s: %s", damages[i].name, mc_last_error());
        CHECK(compilations() == before + 1, "%s: %d compilations", damages[i].name, compilations() - before);
        if (damages[i].mended) {
            CHECK(answer_anew(text_of(1000)) == 1000 && compilations() == before + 1, "%s: not mended",
                  damages[i].name);
        }
    }
}

static int no_version_note(void)
{
    return mc_cc_present() && mc_cc_version()[0] ? 0 : 1;
}

TEST(cache_version_note_damaged)
{
    NEEDS_CC();
    char path[512];
    CHECK(in_child(no_version_note) == 0 && in_child(no_version_note) == 0, "no compiler");
    REQUIRE(ran("--version") == 1 && entries(".cc", path, NULL) == 1, "asked %d times", ran("--version"));
    lengthen_it(path);
    CHECK(in_child(no_version_note) == 0 && ran("--version") == 2, "asked %d times", ran("--version"));
    write_text(in_root("cc.sh"), "#!/bin/sh\necho another 2.0\n", 0755); /* another compiler under its name */
    CHECK(mc_cc_present() && strcmp(mc_cc_version(), "another 2.0") == 0, "version '%s'", mc_cc_version());
}

TEST(cache_in_impossible_folders)
{
    NEEDS_CC();
    char path[300];
    snprintf(path, sizeof path, "%s/beneath/a/file", in_root("cc.sh"));
    mc_flag_set("cache", path);
    CHECK(mc_cache_dir()[0] == '\0', "a cache in '%s'", mc_cache_dir());
    CHECK(answer(text_of(3)) == 3, "%s", mc_last_error());
    CHECK(mc_last_status() == MC_OK, "success, but the error is %s", mc_last_error());
    mc_flag_set("cache", in_root("cache"));
    mc_flag_set("cache_size", "0");
    CHECK(mc_cache_dir()[0] == '\0', "a cache of no size in '%s'", mc_cache_dir());
    CHECK(answer(text_of(4)) == 4 && entries("", NULL, NULL) == 0, "%s", mc_last_error());
}

TEST(cache_default_folder)
{
    REQUIRE(begin("exit 1"), "no folder");
    mc_flag_set("cache", "");
    setenv("XDG_CACHE_HOME", in_root("xdg"), 1);
    CHECK(strcmp(mc_cache_dir(), in_root("xdg/monochord")) == 0, "'%s'", mc_cache_dir());
}

TEST(cache_read_only)
{
    NEEDS_CC();
    REQUIRE(answer(text_of(10)) == 10, "%s", mc_last_error());
    chmod(root, 0755);
    chmod(in_root("tally"), 0666);
    REQUIRE(chmod(in_root("cache/kernels"), 0555) == 0, "%s", strerror(errno));
    if (geteuid() == 0 && seteuid(65534) < 0) { /* nobody: root could write there all the same */
        SKIP("cannot stop being root");
    }
    CHECK(answer_anew(text_of(10)) == 10 && compilations() == 1, "an entry cannot be read: %s", mc_last_error());
    CHECK(answer(text_of(11)) == 11, "%s", mc_last_error());
    CHECK(answer_anew(text_of(11)) == 11 && compilations() == 3, "%d compilations", compilations());
    if (getuid() == 0) {
        CHECK(seteuid(0) == 0, "%s", strerror(errno));
    }
    chmod(in_root("cache/kernels"), 0755);
}

/* Mounts in a name space of the test's own. */
static bool own_mounts(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

TEST(cache_disk_full)
{
    NEEDS_CC();
    mkdir(in_root("cache"), 0777);
    if (!own_mounts() || mount("none", in_root("cache"), "tmpfs", 0, "size=8k") < 0) {
        SKIP("cannot mount a small disk");
    }
    CHECK(answer(text_of(12)) == 12, "%s", mc_last_error());
    CHECK(entries(".so", NULL, NULL) == 0 && entries("tmp", NULL, NULL) == 0, "something is left on the full disk");
    CHECK(umount2(in_root("cache"), MNT_DETACH) == 0, "%s", strerror(errno));
}

TEST(cache_nothing_can_be_written)
{
    NEEDS_CC();
    mc_flag_set("cc", "cc");
    REQUIRE(mc_cc_present(), "no compiler");
    unsetenv("TMPDIR");
    if (!own_mounts() || mount("none", in_root("cache"), "tmpfs", MS_RDONLY, NULL) < 0 ||
        mount("none", "/var/tmp", "tmpfs", MS_RDONLY, NULL) < 0 ||
        mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) < 0 ||
        mount("none", "/tmp", "tmpfs", MS_RDONLY, NULL) < 0) {
        SKIP("cannot mount read-only disks");
    }
    mc_status s = MC_OK;
    CHECK(!mc_code_load(text_of(13), NULL, &s) && s == MC_ECOMPILE, "status %d", s);
    CHECK(strstr(mc_last_error(), "no folder") && strstr(mc_last_error(), "Read-only"), "%s", mc_last_error());
    umount2("/tmp", MNT_DETACH);
    umount2(in_root("cache"), MNT_DETACH);
    CHECK(answer(text_of(13)) == 13, "after it is writable again: %s", mc_last_error());
}

/* ---- its size; with a compiler that copies ---- */

/* Makes the library made.so with a real compiler, then a compiler that hands it out for any text. */
static bool begin_copying(void)
{
    char command[600];
    if (!begin("case $1 in --version) echo copy 1.0; exit;; esac\n"
               "while [ \"$1\" != -o ]; do shift; done\nexec cp $(dirname $0)/made.so $2")) {
        return false;
    }
    snprintf(command, sizeof command, "echo 'int answer(void) { return 1; }' | cc -shared -fPIC -x c - -o %s",
             in_root("made.so"));
    return system(command) == 0;
}

TEST(code_idle_is_bounded)
{
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    mc_flag_set("cache_size", "0");
    for (int i = 0; i < 70; i++) {
        REQUIRE(answer(text_of(i)) == 1, "%s", mc_last_error());
    }
    answer(text_of(69));
    answer(text_of(6));
    CHECK(compilations() == 70, "%d compilations: the 64 released last are not kept", compilations());
    answer(text_of(0));
    CHECK(compilations() == 71, "%d compilations: all are kept for ever", compilations());
}

TEST(cache_is_bounded)
{
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    struct stat st;
    REQUIRE(stat(in_root("made.so"), &st) == 0, "no library");
    int64_t cap = 6 * st.st_size, bytes;
    char size[32];
    snprintf(size, sizeof size, "%lld", (long long)cap);
    mc_flag_set("cache_size", size);
    for (int i = 0; i < 25; i++) {
        CHECK(answer(text_of(i)) == 1, "%s", mc_last_error());
        bytes = 0;
        entries("", NULL, &bytes);
        CHECK(bytes <= cap, "%d bytes after %d kernels", (int)bytes, i + 1);
    }
    CHECK(bytes > cap / 2 - st.st_size, "only %d bytes are kept", (int)bytes);
    int before = compilations();
    CHECK(answer_anew(text_of(24)) == 1 && compilations() == before, "the newest was removed");
    CHECK(answer_anew(text_of(0)) == 1 && compilations() == before + 1, "the oldest was kept");
}

static void make_older(const char *path, time_t seconds)
{
    struct timespec when[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };
    CHECK(utimensat(AT_FDCWD, path, when, 0) == 0, "%s: %s", path, strerror(errno));
}

TEST(cache_use_is_noted_daily)
{
    static const struct {
        time_t age;
        bool noted;
    } ages[] = { { 2 * 86400, true }, { 3600, false } };
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(ages); i++) {
        char path[512];
        struct stat st = { 0 };
        REQUIRE(answer_anew(text_of(0)) == 1 && entries(".so", path, NULL) == 1, "%s", mc_last_error());
        make_older(path, ages[i].age);
        CHECK(answer_anew(text_of(0)) == 1 && stat(path, &st) == 0, "%s", mc_last_error());
        bool noted = time(NULL) - st.st_mtime < 1000;
        CHECK(noted == ages[i].noted, "of an age of %ld s, %s", (long)ages[i].age, noted ? "noted" : "not noted");
    }
}

static const struct left {
    const char *name;
    bool folder;
    time_t age;
    bool stays;
} things[] = {
    { "tmp-killed",    true,  7200, false },
    { "tmp-at-work",   true,  600,  true  },
    { "x.cc.1-2.tmp",  false, 7200, false },
    { "y.cc.1-2.tmp",  false, 600,  true  },
    { "someones.text", false, 7200, true  },
};

TEST(cache_removes_what_the_killed_left)
{
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    mkdir(in_root("cache"), 0777);
    mkdir(in_root("cache/kernels"), 0777);
    for (size_t i = 0; i < NELEM(things); i++) {
        char path[512], inside[600];
        snprintf(path, sizeof path, "%s/%s", in_root("cache/kernels"), things[i].name);
        snprintf(inside, sizeof inside, "%s/kernel.so", path);
        if (things[i].folder) {
            mkdir(path, 0777);
        }
        write_text(things[i].folder ? inside : path, "something", 0644);
        make_older(path, things[i].age);
    }
    REQUIRE(answer(text_of(0)) == 1, "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(things); i++) {
        bool there = entries(things[i].name, NULL, NULL) == 1;
        CHECK(there == things[i].stays, "%s %s", things[i].name, there ? "is still there" : "is gone");
    }
}

static int compile_and_be_killed(void)
{
    mc_cc_present();
    pid_t self = getpid();
    if (fork() == 0) {
        usleep(50000);
        kill(self, SIGKILL);
        _exit(0);
    }
    return answer(text_of(0));
}

TEST(cache_survives_kill)
{
    REQUIRE(begin("case $1 in --version) echo slow; exit;; esac; sleep 0.2; exec cc \"$@\""), "no folder");
    CHECK(in_child(compile_and_be_killed) == 128 + SIGKILL, "it was not killed");
    CHECK(entries("tmp-", NULL, NULL) == 1 && entries(".so", NULL, NULL) == 0, "%d at work",
          entries("tmp-", NULL, NULL));
    usleep(300000); /* let the orphaned compiler end before the folder goes */
    if (system("cc --version >/dev/null 2>&1") == 0) {
        CHECK(answer(text_of(21)) == 21, "%s", mc_last_error());
    }
}

/* ---- allocations that fail ---- */

TEST(code_allocation_failures)
{
    static const char *const sizes[] = { "1M", "0" };
    if (!begin_copying()) {
        SKIP("no C compiler");
    }
    for (size_t i = 0; i < NELEM(sizes); i++) {
        mc_flag_set("cache_size", sizes[i]);
        int n = 0;
        ALLOC_FAIL_LOOP {
            mc_status s = MC_OK, again = MC_OK;
            mc_clear_error();
            struct mc_code *c = mc_code_load(text_of(n++), NULL, &s);
            CHECK(c ? s == MC_OK : s == MC_EMEMORY && ALLOC_FAILED, "status %d: %s", s, mc_last_error());
            struct mc_code *d = mc_code_load(text_of(0), NULL, &again);
            CHECK(d ? again == MC_OK : again == MC_EMEMORY && ALLOC_FAILED, "status %d: %s", again, mc_last_error());
            mc_code_unref(&c);
            mc_code_unref(&d);
            mc_code_flush();
        }
        CHECK(mc_cc_present(), "a compiler is forgotten after memory ran out");
    }
}

#ifdef __linux__
#include <sched.h>

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
