/* ranks.h: ranks for tests: threads of this process.
 *
 * Invariant: by_ranks returns when all have ended, and frees their communicators. */
#ifndef TEST_RANKS_H
#define TEST_RANKS_H

#include "base/base.h"
#include "check.h"
#include <monochord.h>
#include <pthread.h>
#include <stdio.h>

enum { MOST = 5 };

/* ---- a thread for each rank ---- */

struct job {
    mc_comm *comm;
    void (*run)(struct job *j);
    const void *arg;
    mc_status status;
    char says[512];
    double number[8];
    void *data;
};

static inline void *thread(void *p)
{
    struct job *j = p;
    mc_clear_error();
    j->run(j);
    snprintf(j->says, sizeof j->says, "%s", mc_last_error());
    return NULL;
}

/* run by n ranks; job[i] has what rank i found.  Their communicators are freed. */
static inline void by_ranks(int n, void (*run)(struct job *), const void *arg, struct job *job)
{
    mc_comm *comm[MOST];
    pthread_t t[MOST];
    REQUIRE(mc_comm_local(n, comm) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < n; i++) {
        job[i] = (struct job){ .comm = comm[i], .run = run, .arg = arg, .data = job[i].data };
        REQUIRE(pthread_create(&t[i], NULL, thread, &job[i]) == 0, "no thread");
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
    }
    for (int i = 0; i < n; i++) {
        mc_comm_free(job[i].comm);
    }
}

#endif
