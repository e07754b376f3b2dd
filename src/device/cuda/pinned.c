/* pinned.c: arrays in pinned memory, for results that are copied to the host.
 *
 * Pinning costs more than a copy, so freed blocks are kept for reuse.  The total is limited.
 *
 * Invariant: a block is in the list of unused blocks, or belongs to exactly one array's storage. */
#include "device/cuda/driver.h"

enum { LEAST = 32 << 10 };
static const size_t most = (size_t)256 << 20; /* limit of all pinned bytes */

struct block {
    struct block *next;
    void *data;
    size_t bytes;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *unused; /* newest first */
static size_t pinned;

static size_t rounded(size_t n)
{
    size_t r = LEAST;
    while (r < n) {
        r += r / 2 / LEAST * LEAST + LEAST;
    }
    return r;
}

/* Called when the block's storage is freed. */
static void release_block(void *arg)
{
    struct block *h = arg;
    pthread_mutex_lock(&lock);
    h->next = unused;
    unused = h;
    pthread_mutex_unlock(&lock);
}

static struct block *reuse_block(size_t bytes)
{
    struct block *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct block **h = &unused; *h; h = &(*h)->next) {
        if ((*h)->bytes == bytes) {
            found = *h;
            *h = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Pins a new block.  NULL: the limit is reached, or pinning failed; the caller does without. */
static struct block *alloc_pinned(struct mc_cuda *d, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool fits = pinned + bytes <= most;
    pinned += fits ? bytes : 0;
    pthread_mutex_unlock(&lock);
    struct block *h = fits ? mc_calloc(1, sizeof *h, "results") : NULL;
    if (h && mc_cuda_enter(d) == MC_OK) {
        h->bytes = bytes;
        h->data = mc_nv.cuMemHostAlloc(&h->data, bytes, NV_CU_MEMHOSTALLOC_PORTABLE) == 0 ? h->data : NULL;
        mc_cuda_leave(d);
    }
    if (fits && (!h || !h->data)) {
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
    struct block *h = reuse_block(rounded(bytes));
    h = h ? h : alloc_pinned(d, rounded(bytes));
    mc_array *a = h ? mc_array_wrap(t, rank, dims, NULL, h->data, release_block, h) : NULL;
    if (h && !a) {
        release_block(h);
    }
    return a;
}
