/* team.c: threads that spin a little, then sleep.
 *
 * The caller is member 0; member i > 0 has a line of its own on which its share of the work and a
 * ticket are put, and a line on which it answers with the same ticket.  So a hand-off moves one line
 * each way.
 *
 * Invariant: only the holder of `busy` writes tickets, and it keeps `busy` until every ticket it gave
 * is answered; so a member sees one job at a time, and a job outlives all who work on it. */
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
/* A sleeper costs its waker some 40 us.  A member between jobs spins little longer than that.  The caller
 * waits for work that is under way, so it spins longer: if it slept too, the member would have fallen asleep
 * again by the time the caller is awake, and short jobs one after another would all pay for both. */
static const double idle_spin = 100e-6, caller_spin = 2e-3;

struct job {
    mc_team_work *work;
    void *arg;
    int64_t n, grain;
    int parts, members; /* member i does parts i, i + members, ... */
    int cpu;            /* the caller's; -1: not known */
};

/* A word that its owner waits on.  asleep: the owner is in the kernel, or on its way there. */
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
static _Atomic int alive = 1; /* members there are; changed by the holder of busy */
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

/* Spinning pays only while every member can have a processor. */
static bool spin_until(struct word *w, uint32_t old, double seconds)
{
    enum { ROUNDS = 64 }; /* between two looks at the clock */
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

/* Returns once the ticket is another than old.  Either the owner sees the new ticket or the one who
 * writes it sees the owner asleep: both orders are of sequentially consistent operations. */
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

/* Part p takes its share of the grains; the first parts take one more where they do not come out even. */
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

/* Where this process may run, as it was when the library was loaded.  A library of solvers may bind the
 * thread that loads it to one processor (OpenMP does, if so told), and threads made later would inherit
 * that. */
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

/* On a busy machine the one who is woken may be put where its waker runs; then each would wait for the other
 * to sleep, at every job.  So it goes elsewhere, and stays away from there. */
static void unpin(int cpu, const cpu_set_t *all)
{
    cpu_set_t others = *all;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) > 0) {
        sched_setaffinity(0, sizeof others, &others);
    }
}

static void pin_to_core(int cpu)
{
    if (cpu >= 0 && cpu < CPU_SETSIZE && this_cpu() == cpu && start_known) {
        unpin(cpu, &at_start);
    }
}

#else

static int this_cpu(void)
{
    return -1;
}

static void stay_apart(int cpu)
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
        pin_to_core(m->job.cpu);
        run_parts(&m->job, (int)(m - member));
        post_job(&m->done, ticket);
    }
}

/* ---- the team ---- */

/* The child of a fork has the caller's thread only. */
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

/* Makes the team `want` strong, or as strong as the system lets it be. */
static void grow(int want)
{
    int have = atomic_load_explicit(&alive, memory_order_relaxed);
    if (have >= want) {
        return;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_once(&once, on_fork);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    while (have < want && pthread_create(&member[have].thread, NULL, member_main, &member[have]) == 0) {
#ifdef __linux__
        pthread_setname_np(member[have].thread, "monochord");
#endif
        atomic_store_explicit(&alive, ++have, memory_order_relaxed);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Leaves busy set: whoever still calls, as other destructors may, works alone. */
__attribute__((destructor)) static void disband(void)
{
    if (atomic_exchange(&busy, true)) {
        return; /* the program ends in the middle of a job; the system ends the threads */
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
        run_parts(&j, 0); /* alone: the same parts, one after another */
    }
}
