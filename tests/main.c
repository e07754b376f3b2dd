/* main.c: what a test may say, and which tests are run (run.c).  The closing line counts tests: "N passed, N
 * failed". */
#include "run.h"

#include <monochord.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 10 }; /* failed checks printed of one test; the rest are only counted */

static struct test *first, **tail = &first;

static struct options {
    const char *filter[512];
    int nfilter;
    bool full, everyday, list; /* everyday: said, so that a name finds no slow test */
    uint64_t seed;
    struct run_options run;
} opt = { .seed = 1, .run = { .jobs = 1, .timeout = 300 } };

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
        check_failed("text is the golden text", file, line, "golden/%s:%d\n    want %.*s\n    have %.*s",
                     name, at, (int)na, a, (int)nb, b);
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
 * is new any more, so what is held after a run must be what was held before it.  A cache that is made
 * after so many calls may still come, and another thread may keep something: what leaks, leaks each of
 * TRIES times. */
bool fail_next(struct fail_loop *l)
{
    static const mc_allocator counting = { counting_realloc, NULL };
    enum { TOO_MANY = 1000000, TRIES = 8 };

    if (!l->started) {
        l->started = true;
        mc_flag_get("device"); /* what the environment says is read once, before allocations fail */
        mc_set_allocator(&counting);
    } else {
        bool more = l->phase == 1 && alloc_live > l->live, leaked = more && l->again == TRIES - 1;
        l->again = more && !leaked ? l->again + 1 : 0; /* the same once more */
        if (leaked) {
            check_failed("memory given back", l->file, l->line,
                         "allocation %ld failed: %ld more held after than before", l->n,
                         (long)alloc_live - l->live);
        }
        if (!l->again && (!fail_happened() || leaked || l->n == TOO_MANY)) {
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
    l->n += !l->again;
    l->live = alloc_live;
    alloc_count = 0;
    alloc_target = now->failing = l->n;
    return true;
}

/* ---- which are run ---- */

static bool wanted(const struct test *t)
{
    char name[256];
    snprintf(name, sizeof name, "%.*s/%s", (int)strcspn(test_module(t), "."), test_module(t), t->name);
    bool named = opt.nfilter == 0;
    for (int i = 0; i < opt.nfilter; i++) {
        named = named || strstr(name, opt.filter[i]);
    }
    return named && (opt.full || !t->full || (opt.nfilter && !opt.everyday));
}

/* The wanted ones into list, which may be NULL; how many there are. */
static size_t collect(const struct test **list)
{
    size_t n = 0;
    for (const struct test *t = first; t; t = t->next) {
        if (wanted(t)) {
            if (list) {
                list[n] = t;
            }
            n++;
        }
    }
    return n;
}

static const char usage[] =
    "monochord_tests [options] [NAME ...]   runs the tests whose module/name contains a NAME\n"
    "  --tier everyday|full   without or with the slow ones (a NAME finds those too where neither is said)\n"
    "  --seed N               of the tests' random numbers\n"
    "  --times                what each test took, and of processors\n"
    "  --timeout N            seconds that one test may take\n"
    "  --jobs N               so many tests at a time\n"
    "  --no-fork              all in this process, for a debugger\n"
    "  --list                 the names only\n";

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(a, "--list")) {
            opt.list = true;
        } else if (!strcmp(a, "--times")) {
            opt.run.times = true;
        } else if (!strcmp(a, "--no-fork")) {
            opt.run.no_fork = true;
        } else if (!strcmp(a, "--tier") && value && (!strcmp(value, "full") || !strcmp(value, "everyday"))) {
            opt.full = !strcmp(value, "full"), opt.everyday = !opt.full, i++;
        } else if (!strcmp(a, "--seed") && value) {
            opt.seed = strtoull(value, NULL, 0), i++;
        } else if (!strcmp(a, "--timeout") && value) {
            opt.run.timeout = (unsigned)strtoul(value, NULL, 0), i++;
        } else if (!strcmp(a, "--jobs") && value && atoi(value) > 0) {
            opt.run.jobs = atoi(value) < MOST_JOBS ? atoi(value) : MOST_JOBS, i++;
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
    const size_t n = collect(NULL);
    const struct test **list = calloc(n + 1, sizeof *list);
    struct run_counts r = { 0 };
    if (!list) {
        return 2;
    }
    collect(list);
    for (size_t i = 0; opt.list && i < n; i++) {
        printf("%-16s %s%s\n", test_module(list[i]), list[i]->name, list[i]->full ? "  (full)" : "");
    }
    if (!opt.list) {
        printf("seed %llu, tier %s\n", (unsigned long long)opt.seed, opt.full ? "full" : "everyday");
        opt.run.seed = seed_for;
        opt.run.jobs = opt.run.no_fork ? 1 : opt.run.jobs;
        if (!run_tests(list, n, &opt.run, &r)) {
            return 2;
        }
        printf("%ld passed, %ld failed", r.passed, r.failed);
        if (r.skipped) {
            printf(", %ld skipped", r.skipped);
        }
        printf("\n");
    }
    free(list);
    return r.failed > 0;
}
