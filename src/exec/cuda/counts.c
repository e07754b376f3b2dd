/* counts.c: what a GPU's memory space gives to functions on the host whose sizes depend on data: the largest
 * of whole numbers there, and how often each occurs (counts.cu).  The numbers are not copied to the host.
 *
 * Invariant: the result is that of the reference, since integers are added. */
#include "exec/cuda/counts_args.h"
#include "exec/cuda/cuda.h"

enum { THREADS = 256, ELEMENTS = 4 * THREADS, BLOCKS = 1056 };

static const char text[] = {
#include "exec/cuda/counts_text.h"
    , 0 };
enum which { LARGEST, COUNTS, NKERNEL };
static const char *const kernel_name[NKERNEL] = { [LARGEST] = "largest", [COUNTS] = "counts" };
const struct mc_cuda_text mc_counts_text = { "exec/cuda/counts.cu", text };

/* A kernel of the text, looked up once for each device: that takes longer than the kernel.  The device is
 * entered, so no other thread is here for it. */
static void *kernel_of(struct mc_cuda *d, enum which which)
{
    static void *known[MC_CUDA_MOST][NKERNEL];
    void **k = &known[d->device.number][which];
    *k = *k ? *k : mc_cuda_kernel(&mc_counts_text, "", kernel_name[which]);
    return *k;
}

/* Clears nwords at `at`, launches the kernel and copies them to the host. */
static mc_status launch(struct mc_cuda *d, enum which which, const struct mc_counts_args *a, uint64_t *at,
                        size_t nwords, void *host)
{
    const int64_t blocks = MC_MAX(MC_MIN((a->n + ELEMENTS - 1) / ELEMENTS, (int64_t)BLOCKS), (int64_t)1);
    const struct mc_grid g = { { (unsigned)blocks, 1, 1 }, { THREADS, 1, 1 }, 0 };
    void *kernel = kernel_of(d, which);
    TRY(kernel ? MC_OK : mc_last_status());
    TRY(mc_cuda_clear(d, at, nwords * sizeof *at));
    TRY(mc_cuda_launch(d, kernel, kernel_name[which], &g, a, sizeof *a));
    return mc_cuda_copy_to_host(d, host, at, nwords * sizeof *at);
}

/* The same with words of their own. */
static mc_status run(struct mc_cuda *d, enum which which, struct mc_counts_args a, size_t nwords, void *host)
{
    TRY(mc_cuda_enter(d));
    uint64_t *at = mc_cuda_alloc(d, nwords * sizeof *at, "counts");
    a.to = a.found = at;
    const mc_status s = at ? launch(d, which, &a, at, nwords, host) : mc_last_status();
    mc_cuda_free(d, at);
    mc_cuda_leave(d);
    return s;
}

static mc_status largest(const struct mc_space *space, const int64_t *x, int64_t n, int64_t *most,
                         bool *negative)
{
    uint64_t found[2] = { 0, 0 };
    TRY(run(space->device, LARGEST, (struct mc_counts_args){ .x = x, .n = n }, NELEM(found), found));
    *most = (int64_t)found[0] - 1;
    *negative = found[1] != 0;
    return MC_OK;
}

static mc_status counts(const struct mc_space *space, const int64_t *x, int64_t n, int64_t weight,
                        int64_t bins, int64_t *host)
{
    const struct mc_counts_args a = { .x = x, .n = n, .bins = bins, .weight = (uint64_t)weight };
    return bins ? run(space->device, COUNTS, a, (size_t)bins, host) : MC_OK;
}

void mc_cuda_space_counts(struct mc_cuda *d)
{
    d->space.largest = largest;
    d->space.counts = counts;
}
