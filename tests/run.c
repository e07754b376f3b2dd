/* run.c: one child process a test, several side by side if asked; what a child counts lies in memory that
 * both see, so nothing is lost when it dies.
 *
 * Invariant: what a test says stands together, whoever runs beside it. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct counts *now;

struct job {
    const struct test *test;    /* NULL: free */
    pid_t pid;
    double start, cpu;          /* cpu: seconds of it and its children on processors; 0 without a fork */
    FILE *said;                 /* NULL: it says it itself */
    struct counts *counts;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const char *test_module(const struct test *t)
{
    const char *slash = strrchr(t->file, '/');
    return slash ? slash + 1 : t->file;
}

/* How the child ended; NULL if it just did. */
static const char *ended(int status, unsigned timeout)
{
    static char text[64];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return NULL;
    }
    if (WIFEXITED(status)) {
        snprintf(text, sizeof text, "exit code %d", WEXITSTATUS(status));
    } else if (WTERMSIG(status) == SIGALRM) {
        snprintf(text, sizeof text, "still running after %u s", timeout);
    } else {
        snprintf(text, sizeof text, "%s", strsignal(WTERMSIG(status)));
    }
    return text;
}

static void verdict(const struct job *j, const struct run_options *o, struct run_counts *r)
{
    const struct test *t = j->test;
    struct counts *c = j->counts;
    if (c->failed) {
        printf("FAILED %s %s: %ld of %ld checks\n", test_module(t), t->name, (long)c->failed,
               (long)c->checks);
    } else if (c->skipped) {
        printf("skipped %s %s: %s\n", test_module(t), t->name, c->reason);
    } else if (!c->checks) {
        c->failed++;
        printf("FAILED %s %s: it checks nothing\n", test_module(t), t->name);
    }
    if (o->times) {
        printf("%8.3f s, cpu %8.3f  %-16s %s, %ld checks\n", seconds() - j->start, j->cpu, test_module(t),
               t->name, (long)c->checks);
    }
    r->failed += c->failed > 0;
    r->skipped += !c->failed && c->skipped;
    r->passed += !c->failed && !c->skipped;
}

static void pass_on(FILE *said)
{
    char part[4096];
    size_t n;
    rewind(said);
    while ((n = fread(part, 1, sizeof part, said)) > 0) {
        fwrite(part, 1, n, stdout);
    }
    fclose(said);
}

/* A job whose child is gone; how: NULL, it just ended. */
static void end(struct job *j, const char *how, const struct run_options *o, struct run_counts *r)
{
    if (j->said) {
        pass_on(j->said);
    }
    if (how) {
        j->counts->failed++;
        printf("%s: %s: %s\n", j->test->file, j->test->name, how);
        if (j->counts->failing) {
            printf("    while allocation %ld failed\n", (long)j->counts->failing);
        }
    }
    verdict(j, o, r);
    j->test = NULL;
    j->said = NULL;
}

static double of_processors(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1e-6;
}

static void wait_for_one(struct job *jobs, const struct run_options *o, struct run_counts *r)
{
    int status = 0;
    struct rusage used = { 0 };
    const pid_t pid = wait4(-1, &status, 0, &used);
    for (int i = 0; i < o->jobs; i++) {
        if (jobs[i].test && (jobs[i].pid == pid || pid < 0)) {
            jobs[i].cpu = of_processors(&used);
            end(&jobs[i], pid < 0 ? "was lost" : ended(status, o->timeout), o, r);
            return;
        }
    }
}

static void start(struct job *j, const struct test *t, const struct run_options *o, struct run_counts *r)
{
    j->test = t;
    j->start = seconds();
    j->cpu = 0;
    memset(j->counts, 0, sizeof *j->counts);
    now = j->counts;
    if (o->no_fork) {
        o->seed(t->name);
        t->run();
        end(j, NULL, o, r);
        return;
    }
    j->said = o->jobs > 1 ? tmpfile() : NULL;
    fflush(NULL);
    j->pid = fork();
    if (j->pid == 0) {
        if (j->said &&
            (dup2(fileno(j->said), STDOUT_FILENO) < 0 || dup2(fileno(j->said), STDERR_FILENO) < 0)) {
            exit(1);
        }
        alarm(o->timeout);
        o->seed(t->name);
        t->run();
        exit(0); /* not _exit: leak checkers report at exit */
    }
    if (j->pid < 0) {
        end(j, "could not be started", o, r);
    }
}

static struct job *free_one(struct job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        if (!jobs[i].test) {
            return &jobs[i];
        }
    }
    return NULL;
}

static bool any_runs(const struct job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        if (jobs[i].test) {
            return true;
        }
    }
    return false;
}

bool run_tests(const struct test *const *test, size_t n, const struct run_options *o, struct run_counts *r)
{
    struct job jobs[MOST_JOBS] = { 0 };
    struct counts *counts = mmap(NULL, MOST_JOBS * sizeof *counts, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) {
        perror("mmap");
        return false;
    }
    for (int i = 0; i < o->jobs; i++) {
        jobs[i].counts = &counts[i];
    }
    for (size_t i = 0; i < n; i++) {
        struct job *j;
        while (!(j = free_one(jobs, o->jobs))) {
            wait_for_one(jobs, o, r);
        }
        start(j, test[i], o, r);
    }
    while (any_runs(jobs, o->jobs)) {
        wait_for_one(jobs, o, r);
    }
    return true;
}
