/* memory.c: stream-ordered allocation of the device's memory.
 *
 * The driver's pool keeps freed memory until the process ends, so the steady state needs no new memory.
 * The pool's unused memory is released only when an allocation fails.  Memory that NCCL maps for the GPUs of
 * other ranks is its own, and goes back to it at once.
 *
 * The driver takes microseconds for each block.  A function whose results are new arrays frees one in each
 * call that is as large as the next one: the blocks freed last are kept here.  All work is ordered by the one
 * stream, as it is for blocks of the pool.
 *
 * Invariant: the table holds exactly the allocated blocks, each with its purpose.  A block that is freed
 * during capture is parked until its end, because the captured graph must not contain the release. */
#include "device/cuda/driver.h"

enum { BUCKETS = 1024, GRAIN = 256, NAME = 40, HOLDERS = 4, MOST_KEPT = 32, MOST_KEPT_BYTES = 64 << 20 };

struct block {
    struct block *next;
    unsigned long long at;
    size_t bytes;
    bool shared;                /* NCCL's, which GPUs of other ranks can map */
    char what[NAME];
};

struct mc_cuda_pool {
    void *pool;                 /* CUmemoryPool; NULL: the driver has none for this GPU */
    size_t held;
    struct block *table[BUCKETS];
    struct block *parked;
    struct block *kept;         /* freed blocks, the last one first */
    int nkept;
    size_t kept_bytes;
};

mc_status mc_cuda_pool_new(struct mc_cuda *d)
{
    int pools = 0, device = 0;
    uint64_t keep = UINT64_MAX;
    d->pool = mc_calloc(1, sizeof *d->pool, "devices");
    if (!d->pool) {
        return MC_EMEMORY;
    }
    TRY(mc_cuda_check(d, mc_nv.cuDeviceGet(&device, d->device.number), "start", NULL));
    mc_nv.cuDeviceGetAttribute(&pools, NV_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
    if (!pools) {
        return MC_OK;
    }
    TRY(mc_cuda_check(d, mc_nv.cuDeviceGetDefaultMemPool(&d->pool->pool, device), "start its memory pool",
                      NULL));
    return mc_cuda_check(
        d, mc_nv.cuMemPoolSetAttribute(d->pool->pool, NV_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
        "start its memory pool", NULL);
}

/* ---- the table ---- */

static struct block **slot_of(struct mc_cuda_pool *p, unsigned long long at)
{
    struct block **b = &p->table[at / GRAIN % BUCKETS];
    while (*b && (*b)->at != at) {
        b = &(*b)->next;
    }
    return b;
}

/* ---- out of memory ---- */

static void bytes_text(struct mc_str *out, size_t n)
{
    if (n < 1u << 20) {
        mc_str_addf(out, "%zu bytes", n);
    } else {
        mc_str_addf(out, "%.1f MiB", (double)n / (1 << 20));
    }
}

struct holder {
    char what[NAME];
    size_t bytes;
    int blocks;
};

/* The at most HOLDERS purposes with most bytes, largest first; purposes beyond the first 64 are not
 * counted. */
static size_t list_holders(const struct mc_cuda_pool *p, struct holder *top)
{
    struct holder all[64];
    size_t n = 0, taken = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct block *b = p->table[i]; b; b = b->next) {
            size_t k = 0;
            while (k < n && strcmp(all[k].what, b->what) != 0) {
                k++;
            }
            if (k == NELEM(all)) {
                continue;
            }
            if (k == n) {
                memcpy(all[n].what, b->what, NAME);
                all[n].bytes = 0;
                all[n++].blocks = 0;
            }
            all[k].bytes += b->bytes;
            all[k].blocks++;
        }
    }
    for (; taken < HOLDERS && taken < n; taken++) {
        size_t best = taken;
        for (size_t k = taken + 1; k < n; k++) {
            best = all[k].bytes > all[best].bytes ? k : best;
        }
        top[taken] = all[best];
        all[best] = all[taken];
    }
    return taken;
}

static mc_status out_of_memory_error(struct mc_cuda *d, size_t bytes, const char *what)
{
    struct mc_str text = { 0 };
    struct holder top[HOLDERS];
    size_t left = 0, all = 0, cap = (size_t)mc_flag_int(FLAG_cuda_memory);
    mc_nv.cuMemGetInfo_v2(&left, &all);
    mc_str_addf(&text, "out of memory on %s: ", d->id);
    bytes_text(&text, bytes);
    mc_str_addf(&text, " asked for %s, ", what);
    bytes_text(&text, left);
    mc_str_add(&text, " free of ");
    bytes_text(&text, all);
    if (cap) {
        mc_str_add(&text, ", where the flag cuda.memory allows ");
        bytes_text(&text, cap);
    }
    mc_str_add(&text, "; this process holds ");
    bytes_text(&text, d->pool->held);
    size_t n = list_holders(d->pool, top);
    for (size_t i = 0; i < n; i++) {
        mc_str_add(&text, i ? ", " : ": ");
        bytes_text(&text, top[i].bytes);
        mc_str_addf(&text, " for %s in %d block%s", top[i].what, top[i].blocks,
                    top[i].blocks == 1 ? "" : "s");
    }
    mc_status s = text.bad ? MC_EMEMORY : mc_fail(MC_EMEMORY, "%s", text.s);
    mc_str_free(&text);
    return s;
}

/* ---- allocate and free ---- */

/* NCCL has one code for all errors of the driver. */
static int table_insert(struct mc_cuda *d, size_t n, bool shared, unsigned long long *at)
{
    void *p = NULL;
    if (shared) {
        const bool failed = mc_nv.ncclMemAlloc(&p, n) != 0;
        *at = (unsigned long long)(uintptr_t)p;
        return failed ? NV_CUDA_ERROR_OUT_OF_MEMORY : 0;
    }
    return d->pool->pool ? mc_nv.cuMemAllocFromPoolAsync(at, n, d->pool->pool, d->stream)
                         : mc_nv.cuMemAlloc_v2(at, n);
}

static void return_block(struct mc_cuda *d, struct block *b)
{
    if (b->shared) {
        mc_cuda_wait(d);
        mc_nv.ncclMemFree((void *)(uintptr_t)b->at);
    } else if (d->pool->pool) {
        mc_nv.cuMemFreeAsync(b->at, d->stream);
    } else {
        mc_nv.cuMemFree_v2(b->at);
    }
    mc_free(b);
}

/* A kept block of that size; NULL: there is none. */
static struct block *take_kept(struct mc_cuda_pool *p, size_t n)
{
    struct block **b = &p->kept, *found;
    while (*b && (*b)->bytes != n) {
        b = &(*b)->next;
    }
    found = *b;
    if (found) {
        *b = found->next;
        p->nkept--;
        p->kept_bytes -= n;
    }
    return found;
}

/* Gives blocks back to the driver, those that were freed first before others, until few enough are kept. */
static void return_kept(struct mc_cuda *d, int most, size_t bytes)
{
    struct mc_cuda_pool *p = d->pool;
    while (p->nkept > most || p->kept_bytes > bytes) {
        struct block **b = &p->kept;
        while ((*b)->next) {
            b = &(*b)->next;
        }
        p->nkept--;
        p->kept_bytes -= (*b)->bytes;
        return_block(d, *b);
        *b = NULL;
    }
}

static void keep(struct mc_cuda *d, struct block *b)
{
    struct mc_cuda_pool *p = d->pool;
    b->next = p->kept;
    p->kept = b;
    p->nkept++;
    p->kept_bytes += b->bytes;
    return_kept(d, MOST_KEPT, MOST_KEPT_BYTES);
}

void mc_cuda_pool_free(struct mc_cuda *d)
{
    if (d->pool) {
        return_kept(d, 0, 0);
    }
    mc_free(d->pool);
    d->pool = NULL;
}

/* Does the flag cuda.memory forbid n bytes more? */
static bool is_beyond(const struct mc_cuda *d, size_t n)
{
    const size_t most = (size_t)mc_flag_int(FLAG_cuda_memory);
    return most && (n > most || d->pool->held > most - n);
}

static mc_status allocate(struct mc_cuda *d, size_t n, const char *what, bool shared, unsigned long long *at)
{
    if (d->recording) {
        return mc_fail(MC_EDEVICE, "%s: memory for %s is asked for while work is being recorded", d->id,
                       what);
    }
    if (is_beyond(d, n)) {
        return out_of_memory_error(d, n, what);
    }
    int code = table_insert(d, n, shared, at);
    if (code == NV_CUDA_ERROR_OUT_OF_MEMORY) { /* release unused memory, retry */
        return_kept(d, 0, 0);
        TRY(mc_cuda_wait(d));
        if (d->pool->pool) {
            mc_nv.cuMemPoolTrimTo(d->pool->pool, 0);
        }
        code = table_insert(d, n, shared, at);
    }
    return code == NV_CUDA_ERROR_OUT_OF_MEMORY ? out_of_memory_error(d, n, what)
                                               : mc_cuda_check(d, code, "allocating memory for", what);
}

static void *alloc_entered(struct mc_cuda *d, size_t bytes, const char *what, bool shared)
{
    if (bytes > SIZE_MAX - GRAIN) {
        out_of_memory_error(d, bytes, what);
        return NULL;
    }
    const size_t n = MC_MAX((bytes + GRAIN - 1) / GRAIN * GRAIN, (size_t)GRAIN);
    struct block *b = shared || d->recording || is_beyond(d, n) ? NULL : take_kept(d->pool, n);
    const unsigned long long at = b ? b->at : 0;
    b = b ? b : mc_alloc(sizeof *b, "devices");
    if (!b) {
        return NULL;
    }
    *b = (struct block){ .at = at, .bytes = n, .shared = shared };
    memcpy(b->what, what, MC_MIN(strlen(what), (size_t)NAME - 1));
    if (!at && allocate(d, n, what, shared, &b->at) < 0) {
        mc_free(b);
        return NULL;
    }
    struct block **slot = slot_of(d->pool, b->at);
    b->next = *slot;
    *slot = b;
    d->pool->held += n;
    return (void *)(uintptr_t)b->at;
}

static void *alloc(struct mc_cuda *d, size_t bytes, const char *what, bool shared)
{
    if (mc_cuda_enter(d) < 0) {
        return NULL;
    }
    void *p = alloc_entered(d, bytes, what, shared);
    mc_cuda_leave(d);
    return p;
}

void *mc_cuda_alloc(struct mc_cuda *d, size_t bytes, const char *what)
{
    return alloc(d, bytes, what, false);
}

void *mc_cuda_alloc_shared(struct mc_cuda *d, size_t bytes, const char *what)
{
    return alloc(d, bytes, what, true);
}

/* Does nothing on a lost device or in a forked child. */
void mc_cuda_free(struct mc_cuda *d, void *p)
{
    if (!p || !mc_cuda_usable(d) || mc_cuda_enter(d) < 0) {
        return;
    }
    struct block **slot = slot_of(d->pool, (unsigned long long)(uintptr_t)p), *b = *slot;
    if (b) {
        *slot = b->next;
        d->pool->held -= b->bytes;
        if (d->recording) {
            b->next = d->pool->parked;
            d->pool->parked = b;
        } else if (b->shared) {
            return_block(d, b);
        } else {
            keep(d, b);
        }
    }
    mc_cuda_leave(d);
}

void mc_cuda_free_parked(struct mc_cuda *d)
{
    while (d->pool->parked) {
        struct block *b = d->pool->parked;
        d->pool->parked = b->next;
        return_block(d, b);
    }
}

size_t mc_cuda_held(const struct mc_cuda *d)
{
    return d->pool->held;
}

mc_array *mc_cuda_array(struct mc_cuda *d, mc_dtype t, int rank, const int64_t *dims)
{
    int64_t n = mc_dims_count(rank, dims);
    size_t bytes = 0;
    if (n < 0 || !mc_mul_size((size_t)n, mc_dtype_size(t), &bytes)) {
        mc_fail(MC_ESHAPE, "%s: an array of a size too large to count", d->id);
        return NULL;
    }
    void *p = mc_cuda_alloc(d, bytes, "arrays");
    mc_array *a = p ? mc_array_on_device(&d->space, t, rank, dims, p) : NULL;
    if (!a) {
        mc_cuda_free(d, p);
    }
    return a;
}
