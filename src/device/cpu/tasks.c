/* tasks.c: distributes tasks over the thread team, usually more tasks than threads.
 *
 * Invariant: a task may run on any thread and in any order; each runs once. */
#include "device/cpu/cpu.h"

/* Each member has a range of the tasks.  The range is the same on every call, so its data may still be in the
 * member's caches.  A member that has finished its range takes tasks from the other ranges. */
enum { RANGES = 64 };
struct tasks {
    mc_team_task *one;
    void *arg;
    int64_t n, ranges;
    struct {
        _Alignas(64) _Atomic int64_t next;
    } at[RANGES];
};

static void take(void *arg, int64_t from, int64_t to, int thread)
{
    struct tasks *t = arg;
    (void)to;
    (void)thread;
    for (int64_t i = 0; i < t->ranges; i++) {
        const int64_t range = (from + i) % t->ranges, stop = t->n * (range + 1) / t->ranges;
        for (;;) {
            const int64_t task = atomic_fetch_add_explicit(&t->at[range].next, 1, memory_order_relaxed);
            if (task >= stop) {
                break;
            }
            t->one(t->arg, task, (int)from);
        }
    }
}

void mc_team_tasks(mc_team_task *one, void *arg, int64_t n, int slots, int threads, double seconds)
{
    const int64_t members = MC_MIN(n, MC_MIN((int64_t)slots, (int64_t)threads));
    if (members <= 1 || seconds < MC_TEAM_WORTH) {
        for (int64_t task = 0; task < n; task++) {
            one(arg, task, 0);
        }
        return;
    }
    struct tasks t = { .one = one, .arg = arg, .n = n, .ranges = MC_MIN(members, (int64_t)RANGES) };
    for (int64_t i = 0; i < t.ranges; i++) {
        atomic_init(&t.at[i].next, n * i / t.ranges);
    }
    mc_team_run(take, &t, members, 1, (int)members);
}
