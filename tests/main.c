/* main.c: runs the tests.  One child process a test; what the child counts lies in memory that both
 * see, so nothing is lost when it dies.  The closing line counts tests: "N passed, N failed". */
#include "check.h"

#include <monochord.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN = 10 }; /* failed checks printed of one test; the rest are only counted */

static struct test *first, **tail = &first;

static struct options {
    const char *filter[16];
    int nfilter;
    bool full, list, no_fork, times;
    uint64_t seed;
    unsigned timeout;
} opt = { .seed = 1, .timeout = 300 };

static struct counts {
    _Atomic long checks, failed;
    _Atomic bool skipped;
    _Atomic long failing; /* the allocation that fails in this run of an ALLOC_FAIL_LOOP */
    char reason[256];
} *now; /* of the running test */

void test_add(struct test *t)
{
    *tail = t;
    tail = &t->next;
}

bool test_is_full(void)
{
    return opt.full;
}

/* ---- checks ---- */

void check_passed(void)
{
    now->checks++;
}

void check_failed(const char *cond, const char *file, int line, const char *fmt, ...)
{
    now->checks++;
    if (now->failed++ < SHOWN) {
        va_list ap;
        va_start(ap, fmt);
        printf("%s:%d: not so: %s\n    ", file, line, cond);
        vprintf(fmt, ap);
        printf("\n");
        fflush(stdout); /* said even if the test crashes next */
        va_end(ap);
    }
}

void check_skipped(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(now->reason, sizeof now->reason, fmt, ap);
    va_end(ap);
    now->skipped = true;
}

/* ---- random numbers: splitmix64 ---- */

static uint64_t random_state;

uint64_t test_random(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double test_uniform(double lo, double hi)
{
    return lo + (hi - lo) * (double)(test_random() >> 11) * 0x1p-53;
}

static void seed_for(const char *name)
{
    random_state = opt.seed;
    for (const char *c = name; *c; c++) {
        random_state = test_random() ^ (uint64_t)*c;
    }
}

/* ---- golden text ---- */

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    char *text = NULL;
    size_t n = 0, got;
    do {
        char *more = realloc(text, n + 4097);
        if (!more) {
            break;
        }
        text = more;
        got = fread(text + n, 1, 4096, f);
        n += got;
        text[n] = 0;
    } while (got);
    fclose(f);
    return text;
}

static bool bless(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    bool good = f && fputs(text, f) >= 0;
    return f && fclose(f) == 0 && good;
}

bool check_golden(const char *name, const char *text, const char *file, int line)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s", TEST_ROOT, name);
    if (getenv("MC_BLESS")) {
        bool written = bless(path, text);
        written ? check_passed() : check_failed("golden file written", file, line, "%s", path);
        return written;
    }
    char *want = read_all(path);
    if (!want) {
        check_failed("golden file read", file, line, "%s: run `make bless`", path);
        return false;
    }
    const char *a = want, *b = text;
    int at = 1;
    size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
    while (na == nb && !memcmp(a, b, na) && a[na] == b[nb] && a[na]) {
        a += na + 1, b += nb + 1, at++;
        na = strcspn(a, "\n"), nb = strcspn(b, "\n");
    }
    bool same = !strcmp(a, b);
    if (!same) {
        check_failed("text is the golden text", file, line, "golden/%s:%d\n    want %.*s\n    have %.*s", name, at,
                     (int)na, a, (int)nb, b);
    } else {
        check_passed();
    }
    free(want);
    return same;
}

/* ---- allocations that fail ---- */

static _Atomic long alloc_count, alloc_target, alloc_live;

static void *counting_realloc(void *arg, void *p, size_t n)
{
    (void)arg;
    if (n == 0) {
        alloc_live -= p != NULL;
        free(p);
        return NULL;
    }
    if (++alloc_count == alloc_target) {
        return NULL;
    }
    void *q = realloc(p, n);
    alloc_live += q && !p;
    return q;
}

bool fail_happened(void)
{
    return alloc_target && alloc_count >= alloc_target;
}

/* Phase 0 meets every allocation for the first time, those of caches included; in phase 1 nothing
 * is new any more, so what is held after a run must be what was held before it. */
bool fail_next(struct fail_loop *l)
{
    static const mc_allocator counting = { counting_realloc, NULL };
    enum { TOO_MANY = 1000000 };

    if (!l->started) {
        l->started = true;
        mc_set_allocator(&counting);
    } else {
        bool leaked = l->phase == 1 && alloc_live > l->live;
        if (leaked) {
            check_failed("memory given back", l->file, l->line, "allocation %ld failed: %ld more held after than before",
                         l->n, (long)alloc_live - l->live);
        }
        if (!fail_happened() || leaked || l->n == TOO_MANY) {
            if (!leaked && l->n < TOO_MANY) {
                check_passed();
            }
            if (l->phase == 1 || l->n == TOO_MANY) {
                alloc_target = now->failing = 0;
                mc_set_allocator(NULL);
                return false;
            }
            l->phase = 1;
            l->n = 0;
        }
    }
    l->n++;
    l->live = alloc_live;
    alloc_count = 0;
    alloc_target = now->failing = l->n;
    return true;
}

/* ---- running ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *module(const struct test *t)
{
    const char *slash = strrchr(t->file, '/');
    return slash ? slash + 1 : t->file;
}

static bool wanted(const struct test *t)
{
    char name[256];
    snprintf(name, sizeof name, "%.*s/%s", (int)strcspn(module(t), "."), module(t), t->name);
    bool named = opt.nfilter == 0;
    for (int i = 0; i < opt.nfilter; i++) {
        named = named || strstr(name, opt.filter[i]);
    }
    return named && (opt.full || !t->full || opt.nfilter);
}

/* How the child ended; NULL if it just did. */
static const char *ended(int status)
{
    static char text[64];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return NULL;
    }
    if (WIFEXITED(status)) {
        snprintf(text, sizeof text, "exit code %d", WEXITSTATUS(status));
    } else if (WTERMSIG(status) == SIGALRM) {
        snprintf(text, sizeof text, "still running after %u s", opt.timeout);
    } else {
        snprintf(text, sizeof text, "%s", strsignal(WTERMSIG(status)));
    }
    return text;
}

static void run_child(const struct test *t)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(opt.timeout);
        t->run();
        exit(0); /* not _exit: leak checkers report at exit */
    }
    int status = 0;
    const char *how = pid < 0 || waitpid(pid, &status, 0) < 0 ? "could not be started" : ended(status);
    if (how) {
        now->failed++;
        printf("%s: %s: %s\n", t->file, t->name, how);
        if (now->failing) {
            printf("    while allocation %ld failed\n", (long)now->failing);
        }
    }
}

static void run(const struct test *t)
{
    memset(now, 0, sizeof *now);
    seed_for(t->name);
    double start = seconds();
    if (opt.no_fork) {
        t->run();
    } else {
        run_child(t);
    }
    if (now->failed) {
        printf("FAILED %s %s: %ld of %ld checks\n", module(t), t->name, (long)now->failed, (long)now->checks);
    } else if (now->skipped) {
        printf("skipped %s %s: %s\n", module(t), t->name, now->reason);
    } else if (!now->checks) {
        now->failed++;
        printf("FAILED %s %s: it checks nothing\n", module(t), t->name);
    }
    if (opt.times) {
        printf("%8.3f s  %-16s %s, %ld checks\n", seconds() - start, module(t), t->name, (long)now->checks);
    }
}

static const char usage[] =
    "monochord_tests [options] [NAME ...]   runs the tests whose module/name contains a NAME\n"
    "  --tier everyday|full   without or with the slow ones (a NAME finds those too)\n"
    "  --seed N               of the tests' random numbers\n"
    "  --times                what each test took\n"
    "  --timeout N            seconds that one test may take\n"
    "  --no-fork              all in this process, for a debugger\n"
    "  --list                 the names only\n";

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(a, "--list")) {
            opt.list = true;
        } else if (!strcmp(a, "--times")) {
            opt.times = true;
        } else if (!strcmp(a, "--no-fork")) {
            opt.no_fork = true;
        } else if (!strcmp(a, "--tier") && value && (!strcmp(value, "full") || !strcmp(value, "everyday"))) {
            opt.full = !strcmp(value, "full"), i++;
        } else if (!strcmp(a, "--seed") && value) {
            opt.seed = strtoull(value, NULL, 0), i++;
        } else if (!strcmp(a, "--timeout") && value) {
            opt.timeout = (unsigned)strtoul(value, NULL, 0), i++;
        } else if (a[0] != '-' && opt.nfilter < (int)(sizeof opt.filter / sizeof *opt.filter)) {
            opt.filter[opt.nfilter++] = a;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (now == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    long passed = 0, failed = 0, skipped = 0;
    if (!opt.list) {
        printf("seed %llu, tier %s\n", (unsigned long long)opt.seed, opt.full ? "full" : "everyday");
    }
    for (const struct test *t = first; t; t = t->next) {
        if (!wanted(t)) {
            continue;
        }
        if (opt.list) {
            printf("%-16s %s%s\n", module(t), t->name, t->full ? "  (full)" : "");
            continue;
        }
        run(t);
        failed += now->failed > 0;
        skipped += !now->failed && now->skipped;
        passed += !now->failed && !now->skipped;
    }
    if (opt.list) {
        return 0;
    }
    printf("%ld passed, %ld failed", passed, failed);
    if (skipped) {
        printf(", %ld skipped", skipped);
    }
    printf("\n");
    return failed > 0;
}
