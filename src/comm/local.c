/* local.c: ranks that are threads of this process.
 *
 * Each rank shows where its bytes lie; all meet; each copies what is for it; all meet again. */
#include "comm/comm.h"
#include <errno.h>
#include <time.h>

struct place { const char *x; size_t bytes; const size_t *at; bool here, left; };
struct local {
    _Atomic int refs;
    int size, here;
    uint64_t turn;              /* meetings so far */
    bool lost;                  /* a rank has left or did not come */
    pthread_mutex_t lock;
    pthread_cond_t met;
    struct place place[];       /* by rank */
};

/* The first rank that has left, or is not here; -1: none. */
static int absent(const struct local *l, bool left)
{
    for (int i = 0; i < l->size; i++) {
        if (left ? l->place[i].left : !l->place[i].here) {
            return i;
        }
    }
    return -1;
}

/* Waits for a meeting after `turn`; the lock is held.  False: one of the ranks will not come. */
static bool wait_for(struct local *l, uint64_t turn, const struct timespec *until)
{
    int e = 0;
    while (l->turn == turn && !l->lost && e != ETIMEDOUT) {
        e = pthread_cond_timedwait(&l->met, &l->lock, until);
    }
    return l->turn != turn;
}

static mc_status meet(mc_comm *c)
{
    struct local *l = c->own;
    struct timespec until;
    mc_status s = MC_OK;
    const int64_t seconds = mc_flag_int(FLAG_comm_timeout);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&l->lock);
    const uint64_t turn = l->turn;
    l->place[c->rank].here = true;
    if (++l->here == l->size) {
        l->here = 0;
        l->turn++;
        for (int i = 0; i < l->size; i++) {
            l->place[i].here = false;
        }
        pthread_cond_broadcast(&l->met);
    } else if (!wait_for(l, turn, &until)) {
        const int gone = absent(l, true), late = absent(l, false);
        s = gone >= 0 ? mc_fail(MC_EDEVICE, "rank %d has left: the others cannot go on without it", gone)
                      : mc_fail(MC_EDEVICE, "rank %d did not come within %lld s (flag comm.timeout)", late,
                                (long long)seconds);
        l->lost = true;
        pthread_cond_broadcast(&l->met);
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

static mc_status show(mc_comm *c, const void *x, size_t bytes, const size_t *at)
{
    struct local *l = c->own;
    l->place[c->rank].bytes = bytes;
    l->place[c->rank].x = x;
    l->place[c->rank].at = at;
    return meet(c);
}

static mc_status gather(mc_comm *c, const void *x, size_t bytes, void *y)
{
    struct local *l = c->own;
    mc_status s = show(c, x, bytes, NULL);
    for (int i = 0; i < c->size && s == MC_OK && bytes; i++) {
        /* those that disagree may have less */
        if (l->place[i].bytes) {
            memcpy((char *)y + (size_t)i * bytes, l->place[i].x, MC_MIN(bytes, l->place[i].bytes));
        }
    }
    return s == MC_OK ? meet(c) : s;
}

static mc_status exchange(mc_comm *c, const char *x, const size_t *x_at, char *y, const size_t *y_at)
{
    struct local *l = c->own;
    mc_status s = show(c, x, 0, x_at);
    for (int i = 0; i < c->size && s == MC_OK; i++) {
        const struct place *p = &l->place[i];
        const size_t n = p->at[c->rank + 1] - p->at[c->rank];
        if (n) {
            memmove(y + y_at[i], p->x + p->at[c->rank], n);
        }
    }
    return s == MC_OK ? meet(c) : s;
}

static void drop(struct local *l)
{
    if (atomic_fetch_sub(&l->refs, 1) == 1) {
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->met);
        mc_free(l);
    }
}

/* Those that wait, or will, are told. */
static void gone(mc_comm *c)
{
    struct local *l = c->own;
    pthread_mutex_lock(&l->lock);
    l->place[c->rank].left = l->lost = true;
    pthread_cond_broadcast(&l->met);
    pthread_mutex_unlock(&l->lock);
}

static void leave(mc_comm *c)
{
    gone(c);
    drop(c->own);
    mc_free(c);
}

static const struct mc_comm_engine engine = { .name = "local", .gather = gather, .exchange = exchange, .close = leave, .abort = gone };

mc_status mc_comm_local(int n, mc_comm **out)
{
    if (n < 1 || n > 1024 || !out) {
        return mc_fail(MC_EARG,
                       !out ? "comm_local: out is missing" : "comm_local: %d ranks; expected 1 to 1024", n);
    }
    struct local *l = mc_calloc(1, sizeof *l + (size_t)n * sizeof *l->place, "comm");
    if (!l) {
        return MC_EMEMORY;
    }
    l->refs = 1;
    l->size = n;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->met, NULL);
    int made = 0;
    for (; made < n && (out[made] = mc_comm_make(&engine, made, n, l)); made++) {
        atomic_fetch_add(&l->refs, 1);
    }
    const mc_status s = made == n ? MC_OK : mc_last_status();
    for (int i = 0; i < made && s < 0; i++) {
        mc_comm_free(out[i]);
        out[i] = NULL;
    }
    drop(l);
    return s;
}
