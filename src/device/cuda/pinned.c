/* pinned.c: arrays in pinned memory of the host, for results that come home: the device writes them itself.
 *
 * Pinning costs more than a copy, so blocks that are let go are kept and used again; only so much is pinned
 * at all.
 *
 * Invariant: a block is in the list of free ones, or under exactly one array's storage. */
#include "device/cuda/driver.h"

enum { LEAST = 32 << 10 };
static const size_t most = (size_t)256 << 20; /* bytes pinned in all */

struct home {
    struct home *next;
    void *data;
    size_t bytes;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct home *unused; /* newest first */
static size_t pinned;

static size_t rounded(size_t n)
{
    size_t r = LEAST;
    while (r < n) {
        r += r / 2 / LEAST * LEAST + LEAST;
    }
    return r;
}

/* The block goes back to the list; the last array that lay in it is gone. */
static void release_block(void *arg)
{
    struct home *h = arg;
    pthread_mutex_lock(&lock);
    h->next = unused;
    unused = h;
    pthread_mutex_unlock(&lock);
}

static struct home *reuse_block(size_t bytes)
{
    struct home *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct home **h = &unused; *h; h = &(*h)->next) {
        if ((*h)->bytes == bytes) {
            found = *h;
            *h = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Pinned anew; NULL: there is enough, or no more to be had, which is no error. */
static struct home *alloc_pinned(struct mc_cuda *d, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool room = pinned + bytes <= most;
    pinned += room ? bytes : 0;
    pthread_mutex_unlock(&lock);
    struct home *h = room ? mc_calloc(1, sizeof *h, "results") : NULL;
    if (h && mc_cuda_enter(d) == MC_OK) {
        h->bytes = bytes;
        h->data = mc_nv.cuMemHostAlloc(&h->data, bytes, NV_CU_MEMHOSTALLOC_PORTABLE) == 0 ? h->data : NULL;
        mc_cuda_leave(d);
    }
    if (room && (!h || !h->data)) {
        mc_free(h);
        h = NULL;
        pthread_mutex_lock(&lock);
        pinned -= bytes;
        pthread_mutex_unlock(&lock);
    }
    return h;
}

mc_array *mc_cuda_pinned_array(struct mc_cuda *d, mc_dtype t, int rank, const int64_t *dims)
{
    int64_t count = mc_dims_count(rank, dims);
    size_t bytes = count > 0 && (uint64_t)count < most ? (size_t)count * mc_dtypes[t].size : 0;
    if (bytes < LEAST || bytes > most / 4 || d->recording) {
        return NULL;
    }
    struct home *h = reuse_block(rounded(bytes));
    h = h ? h : alloc_pinned(d, rounded(bytes));
    mc_array *a = h ? mc_array_wrap(t, rank, dims, NULL, h->data, release_block, h) : NULL;
    if (h && !a) {
        release_block(h);
    }
    return a;
}
