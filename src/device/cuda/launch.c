/* launch.c: launches kernels on the device's stream and measures times there.
 *
 * Invariant: a launch only enqueues, and can be captured.  It waits only if mc_cuda_blocking, for exact
 * errors. */
#include "device/cuda/driver.h"

enum { PARAM_END = 0, PARAM_POINTER = 1, PARAM_SIZE = 2 }; /* the driver's tags in the list `extra` */
enum { FOLLOWS_SM = 90 };
static const size_t given = 48 << 10; /* shared memory that needs no cuFuncSetAttribute */

/* CUlaunchAttribute and CUlaunchConfig, as the ABI has them. */
struct attribute {
    int id;
    char pad[4];
    union { int value; unsigned blocks[3]; char bytes[64]; } u;
};
struct config {
    unsigned blocks[3], threads[3], shared;
    void *stream;
    const struct attribute *attribute;
    unsigned attributes;
};
_Static_assert(sizeof(struct attribute) == 72 && offsetof(struct attribute, u) == 8,
               "tests/nv_abi.cpp says the same of cuda.h");
_Static_assert(sizeof(struct config) == 56 && offsetof(struct config, stream) == 32 &&
                   offsetof(struct config, attribute) == 40,
               "and of this");

static mc_status enqueue(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs, bool follows)
{
    follows = follows && d->sm >= FOLLOWS_SM && !d->branches; /* it needs exactly one predecessor */
    d->branches = false;
    struct attribute with[3];
    unsigned n = 0;
    if (follows) {
        with[n++] = (struct attribute){ .id = NV_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                        .u.value = 1 };
    }
    if (g->together > 1) {
        with[n++] = (struct attribute){ .id = NV_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                        .u.blocks = { 1, g->together, 1 } };
    }
    if (g->all_at_once) {
        with[n++] = (struct attribute){ .id = NV_CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .u.value = 1 };
    }
    const bool by_address = g->maps || g->all_at_once; /* a capture takes a cooperative launch only so */
    void *aligned[] = { (void *)(uintptr_t)args },
         *extra[] = { (void *)PARAM_POINTER, (void *)(uintptr_t)args, (void *)PARAM_SIZE, &nargs,
                      (void *)PARAM_END };
    const struct config c = { .blocks = { g->blocks[0], g->blocks[1], g->blocks[2] },
                              .threads = { g->threads[0], g->threads[1], g->threads[2] },
                              .shared = (unsigned)g->shared,
                              .stream = d->stream,
                              .attribute = with,
                              .attributes = n };
    if (g->shared > d->shared) {
        return mc_fail(MC_EDEVICE,
                       "%s: launch of %s: a block asks for %zu bytes of shared memory, and %zu is the most",
                       d->id, name, g->shared, d->shared);
    }
    if (g->shared > given) {
        TRY(mc_cuda_check(d,
                          mc_nv.cuFuncSetAttribute(kernel, NV_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   (int)g->shared),
                          "shared memory of", name));
    }
    mc_cuda_launched(d, name);
    d->branches = g->all_at_once; /* in a capture no launch may overlap such a one */
    return mc_cuda_check(
        d,
        mc_nv.cuLaunchKernelEx(&c, kernel, by_address ? aligned : NULL, nargs && !by_address ? extra : NULL),
        "launch of", name);
}

static bool hollow(const struct mc_grid *g)
{
    return !g->blocks[0] || !g->blocks[1] || !g->blocks[2];
}

static mc_status launch(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                        const void *args, size_t nargs, bool follows)
{
    if (hollow(g)) {
        return MC_OK;
    }
    TRY(mc_cuda_enter(d));
    mc_status s = enqueue(d, kernel, name, g, args, nargs, follows);
    if (s == MC_OK && !d->recording && mc_cuda_blocking()) {
        s = mc_cuda_check(d, mc_nv.cuStreamSynchronize(d->stream), "launch of", name);
    }
    mc_cuda_leave(d);
    return s;
}

mc_status mc_cuda_launch(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs)
{
    return launch(d, kernel, name, g, args, nargs, false);
}

mc_status mc_cuda_launch_dependent(struct mc_cuda *d, void *kernel, const char *name, const struct mc_grid *g,
                         const void *args, size_t nargs)
{
    return launch(d, kernel, name, g, args, nargs, true);
}

/* ---- times ---- */

void *mc_cuda_event_record(struct mc_cuda *d)
{
    void *event = NULL;
    if (mc_cuda_enter(d) < 0) {
        return NULL;
    }
    if (mc_cuda_check(d, mc_nv.cuEventCreate(&event, 0), "making an event", NULL) < 0) {
        event = NULL;
    } else if (mc_cuda_check(d, mc_nv.cuEventRecord(event, d->stream), "recording an event", NULL) < 0) {
        mc_nv.cuEventDestroy_v2(event);
        event = NULL;
    }
    mc_cuda_leave(d);
    return event;
}

double mc_cuda_event_seconds(struct mc_cuda *d, void *from, void *to)
{
    float ms = -1;
    if (mc_cuda_enter(d) < 0) {
        return -1;
    }
    if (from && to &&
        (mc_cuda_check(d, mc_nv.cuEventSynchronize(to), "waiting for an event", NULL) < 0 ||
         mc_cuda_check(d, mc_nv.cuEventElapsedTime(&ms, from, to), "reading the time", NULL) < 0)) {
        ms = -1;
    }
    if (from) {
        mc_nv.cuEventDestroy_v2(from);
    }
    if (to) {
        mc_nv.cuEventDestroy_v2(to);
    }
    mc_cuda_leave(d);
    return ms < 0 ? -1 : (double)ms * 1e-3;
}
