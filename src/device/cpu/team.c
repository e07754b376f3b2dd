/* team.c: the thread team.  A waiting thread spins for a while, then sleeps.
 *
 * The caller is member 0.  Each member i > 0 has one cache line for its job and a ticket, and one on which it
 * confirms the ticket when it is done.  So a hand-off moves one cache line each way.
 *
 * Invariant: only the holder of `busy` writes tickets, and it holds `busy` until every ticket is confirmed.
 * So a member sees one job at a time, and a job outlives the work on it. */
#include "device/cpu/cpu.h"
#include <limits.h>
#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
/* FUTEX_WAIT_PRIVATE and FUTEX_WAKE_PRIVATE: musl comes without Linux's headers */
enum { WAIT_HERE = 128, WAKE_HERE = 129 };
#endif

enum { LINE = 128, MEMBERS = 1024 };
/* Waking a sleeping thread takes about 40 us.  A member without a job spins somewhat longer than that.  The
 * caller waits for running work and spins longer still: if it slept, the members would be asleep again before
 * it woke, and each of a series of short jobs would pay for both wake-ups. */
static const double idle_spin = 100e-6, caller_spin = 2e-3;

struct job {
    mc_team_work *work;
    void *arg;
    int64_t n, grain;
    int parts, members; /* member i does parts i, i + members, ... */
    int cpu;            /* the processor that the caller runs on; -1: unknown */
};

/* A word that its owner waits on.  asleep: the owner sleeps in the kernel or is about to. */
struct word {
    _Atomic uint32_t ticket, asleep;
};

static struct member {
    _Alignas(LINE) struct job job; /* written before `go`, read after */
    struct word go;
    _Alignas(LINE) struct word done; /* the caller waits on it */
    pthread_t thread;
} member[MEMBERS]; /* member 0, the caller, has no thread */

static atomic_bool busy;
static _Atomic int alive = 1; /* number of members; changed only by the holder of busy */
static bool stop;             /* written under busy, read after a ticket */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- waiting ---- */

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

#ifdef __linux__

static void sleep_while(struct word *w, uint32_t ticket)
{
    syscall(SYS_futex, &w->ticket, WAIT_HERE, ticket, NULL, NULL, 0);
}

static void wake(struct word *w)
{
    syscall(SYS_futex, &w->ticket, WAKE_HERE, INT_MAX, NULL, NULL, 0);
}

#else

static pthread_mutex_t bed_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bed = PTHREAD_COND_INITIALIZER;

static void sleep_while(struct word *w, uint32_t ticket)
{
    pthread_mutex_lock(&bed_lock);
    if (atomic_load(&w->ticket) == ticket) {
        pthread_cond_wait(&bed, &bed_lock);
    }
    pthread_mutex_unlock(&bed_lock);
}

static void wake(struct word *w)
{
    (void)w;
    pthread_mutex_lock(&bed_lock);
    pthread_cond_broadcast(&bed);
    pthread_mutex_unlock(&bed_lock);
}

#endif

/* Spins for at most `seconds`, or only briefly if there are more members than processors.  True: the
 * ticket has changed. */
static bool spin_until(struct word *w, uint32_t old, double seconds)
{
    enum { ROUNDS = 64 }; /* polls between two reads of the clock */
    double until = 0;
    do {
        for (int i = 0; i < ROUNDS; i++) {
            if (atomic_load_explicit(&w->ticket, memory_order_acquire) != old) {
                return true;
            }
            pause_briefly();
        }
        double now = mc_now();
        if (until == 0) {
            bool crowded = atomic_load_explicit(&alive, memory_order_relaxed) > mc_cpu()->threads;
            until = crowded ? now : now + seconds;
        }
        if (now >= until) {
            return false;
        }
    } while (true);
}

/* Returns once the ticket differs from old.  No wake-up is lost: the stores and loads of ticket and asleep
 * are sequentially consistent, so either the owner sees the new ticket or the writer sees asleep set. */
static void wait_while(struct word *w, uint32_t old, double spin)
{
    if (spin_until(w, old, spin)) {
        return;
    }
    atomic_store(&w->asleep, 1);
    while (atomic_load(&w->ticket) == old) {
        sleep_while(w, old);
    }
    atomic_store(&w->asleep, 0);
}

static void post_job(struct word *w, uint32_t ticket)
{
    atomic_store(&w->ticket, ticket);
    if (atomic_load(&w->asleep)) {
        wake(w);
    }
}

/* ---- the work ---- */

/* The grains are divided evenly among the parts; the first parts take one more where there is a remainder. */
static void run_part(const struct job *j, int part)
{
    int64_t grains = (j->n - 1) / j->grain + 1;
    int64_t each = grains / j->parts, more = grains % j->parts;
    int64_t first = each * part + MC_MIN(part, more);
    int64_t last = first + each + (part < more);
    j->work(j->arg, first * j->grain, last == grains ? j->n : last * j->grain, part);
}

static void run_parts(const struct job *j, int first)
{
    for (int p = first; p < j->parts; p += j->members) {
        run_part(j, p);
    }
}

#ifdef __linux__

/* The affinity mask of the process when this library was loaded.  A solver library may bind the thread that
 * loads it to one processor (OpenMP does if configured so), and threads created later would inherit that. */
static cpu_set_t at_start;
static bool start_known;

__attribute__((constructor)) static void look_where(void)
{
    start_known = sched_getaffinity(0, sizeof at_start, &at_start) == 0;
}

static int this_cpu(void)
{
    return sched_getcpu();
}

/* The kernel may place a new or woken member on the processor of its caller; then, at every job, each would
 * wait for the other to sleep.  So that processor is excluded from the member's affinity mask. */
static void exclude_core(pthread_t member_thread, int cpu)
{
    cpu_set_t others = at_start;
    if (start_known && cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_CLR((size_t)cpu, &others);
        if (CPU_COUNT(&others) > 0) {
            pthread_setaffinity_np(member_thread, sizeof others, &others);
        }
    }
}

static void leave_core(int cpu)
{
    if (this_cpu() == cpu) {
        exclude_core(pthread_self(), cpu);
    }
}

#else

static int this_cpu(void)
{
    return -1;
}

static void exclude_core(pthread_t member_thread, int cpu)
{
    (void)member_thread;
    (void)cpu;
}

static void leave_core(int cpu)
{
    (void)cpu;
}

#endif

static void *member_main(void *arg)
{
    struct member *m = arg;
    uint32_t ticket = 0;
    for (;;) {
        wait_while(&m->go, ticket, idle_spin);
        ticket = atomic_load_explicit(&m->go.ticket, memory_order_acquire);
        if (stop) {
            return NULL;
        }
        leave_core(m->job.cpu);
        run_parts(&m->job, (int)(m - member));
        post_job(&m->done, ticket);
    }
}

/* ---- the team ---- */

/* In a forked child only the thread that called fork exists. */
static void forget(void)
{
    int n = atomic_load(&alive);
    for (int i = 1; i < n; i++) {
        memset(&member[i], 0, sizeof member[i]);
    }
    atomic_store(&alive, 1);
    atomic_store(&busy, false);
}

static void on_fork(void)
{
    pthread_atfork(NULL, NULL, forget);
}

/* Creates threads until the team has `want` members or the system refuses one. */
static void grow(int want)
{
    int have = atomic_load_explicit(&alive, memory_order_relaxed);
    if (have >= want) {
        return;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_once(&once, on_fork);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* members inherit this: they take no signals */
    while (have < want && pthread_create(&member[have].thread, NULL, member_main, &member[have]) == 0) {
#ifdef __linux__
        pthread_setname_np(member[have].thread, "monochord");
#endif
        if (want <= mc_cpu()->threads) {
            exclude_core(member[have].thread, this_cpu());
        }
        atomic_store_explicit(&alive, ++have, memory_order_relaxed);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Leaves busy set, so a later caller, such as another destructor, runs its work alone. */
__attribute__((destructor)) static void disband(void)
{
    if (atomic_exchange(&busy, true)) {
        return; /* the program exits during a job; the system ends the threads */
    }
    stop = true;
    for (int i = 1; i < atomic_load(&alive); i++) {
        post_job(&member[i].go, atomic_load(&member[i].go.ticket) + 1);
        pthread_join(member[i].thread, NULL);
    }
    atomic_store(&alive, 1);
}

static void run_parallel(const struct job *j)
{
    for (int i = 1; i < j->members; i++) {
        uint32_t ticket = atomic_load_explicit(&member[i].go.ticket, memory_order_relaxed) + 1;
        member[i].job = *j;
        post_job(&member[i].go, ticket);
    }
    run_parts(j, 0);
    for (int i = 1; i < j->members; i++) {
        uint32_t ticket = atomic_load_explicit(&member[i].go.ticket, memory_order_relaxed);
        wait_while(&member[i].done, ticket - 1, caller_spin);
    }
}

int mc_team_size(void)
{
    int n = (int)mc_flag_int(FLAG_threads);
    return MC_MIN(n > 0 ? n : mc_cpu()->threads, MEMBERS);
}

void mc_team_run(mc_team_work *work, void *arg, int64_t n, int64_t grain, int threads)
{
    if (n <= 0) {
        return;
    }
    struct job j = { work, arg, n, MC_MAX(grain, 1), 1, 1, -1 };
    j.parts = (int)MC_MIN((n - 1) / j.grain + 1, threads > 0 ? threads : mc_team_size());
    if (j.parts > 1 && !atomic_exchange_explicit(&busy, true, memory_order_acquire)) {
        grow(MC_MIN(j.parts, MEMBERS));
        j.members = MC_MIN(j.parts, atomic_load_explicit(&alive, memory_order_relaxed));
        j.cpu = this_cpu();
        run_parallel(&j);
        atomic_store_explicit(&busy, false, memory_order_release);
    } else {
        run_parts(&j, 0); /* alone: the same parts in sequence */
    }
}
