/* run.h: how tests are run: each in a process of its own, several at a time. */
#ifndef RUN_H
#define RUN_H

#include "check.h"

struct counts {                 /* what a running test says; in memory that its process shares with ours */
    _Atomic long checks, failed;
    _Atomic bool skipped;
    _Atomic long failing;       /* the allocation that fails in this run of an ALLOC_FAIL_LOOP */
    char reason[256];
};
extern struct counts *now;      /* of the test that runs in this process */

enum { MOST_JOBS = 256 };
struct run_options {
    int jobs;                   /* tests at a time; more than one: what each says is printed when it ends */
    bool no_fork, times;
    unsigned timeout;           /* seconds for a test */
    void (*seed)(const char *name); /* of its random numbers, in the process that runs it */
};
struct run_counts { long passed, failed, skipped; };
/* False: nothing could be run. */
bool run_tests(const struct test *const *test, size_t n, const struct run_options *o, struct run_counts *r);
const char *test_module(const struct test *t);  /* "t_gemm.c" */

#endif
