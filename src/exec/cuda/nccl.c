/* nccl.c: ranks that have a GPU each, and NCCL between the GPUs.  What the host sends is carried by the
 * engine of the communicator that they were before.
 *
 * A rank that has left leaves the GPUs of the others waiting within a collective, and their hosts for the
 * GPUs.  So a thread looks whether one has left: if the GPU then goes on working, it ends the collective, and
 * the GPU counts as lost, as what it holds is half reduced.
 *
 * Invariant: all ranks enqueue the same collectives in the same order, each on its GPU's stream. */
#include "comm/comm.h"
#include "exec/cuda/cuda.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { NCCL_UINT8 = 1, NO_TYPE = -1 };
static const int reductions[RANKS_N] = { [RANKS_SUM] = 0, [RANKS_MEAN] = 4, [RANKS_MAX] = 2, [RANKS_MIN] = 3 };
static const int types[MC_NDTYPE] = {
    [MC_BOOL] = NO_TYPE,  [MC_INT8] = 0,   [MC_INT16] = NO_TYPE,  [MC_INT32] = 2,  [MC_INT64] = 4,
    [MC_UINT8] = 1,       [MC_UINT16] = NO_TYPE, [MC_UINT32] = 3, [MC_UINT64] = 5, [MC_FLOAT16] = 6,
    [MC_BFLOAT16] = 9,    [MC_FLOAT32] = 7, [MC_FLOAT64] = 8,
};

struct gpus {
    mc_comm *host;              /* the same ranks; held */
    struct mc_cuda *device;
    void *nccl;                 /* ncclComm_t; NULL: a single rank, or aborted */
    pthread_t watch;
    bool watched;
    _Atomic bool ends;          /* the watch is to end */
};

static struct gpus *gpus_of(const mc_comm *c)
{
    return c->own;
}

/* ---- the host's side ---- */

static mc_status gather(mc_comm *c, const void *x, size_t bytes, void *y)
{
    mc_comm *host = gpus_of(c)->host;
    return host->engine->gather(host, x, bytes, y);
}

static mc_status exchange(mc_comm *c, const char *x, const size_t *x_at, char *y, const size_t *y_at)
{
    mc_comm *host = gpus_of(c)->host;
    return host->engine->exchange(host, x, x_at, y, y_at);
}

/* ---- the end ---- */

struct ending { void *nccl, *context; };

static void *abort_one(void *of)
{
    const struct ending e = *(struct ending *)of;
    mc_free(of);
    if (mc_nv.cuCtxPushCurrent_v2(e.context) == 0) {
        mc_nv.ncclCommAbort(e.nccl);
        mc_nv.cuCtxPopCurrent_v2(&(void *){ NULL });
    }
    return NULL;
}

/* Collectives end at once, but the call returns when no captured function has one any more: functions may
 * outlive the communicator, so a thread of its own waits for that. */
static void abort_nccl(struct gpus *g)
{
    struct ending *e = g->nccl ? mc_calloc(1, sizeof *e, "comm") : NULL;
    pthread_t waits;
    if (e) {
        *e = (struct ending){ g->nccl, g->device->context };
        if (pthread_create(&waits, NULL, abort_one, e) == 0) {
            pthread_detach(waits);
        } else {
            mc_free(e);
        }
    }
    g->nccl = NULL;
}

static void destroy_nccl(struct gpus *g)
{
    if (g->nccl && mc_cuda_enter(g->device) == MC_OK) {
        mc_nv.ncclCommDestroy(g->nccl);
        mc_cuda_leave(g->device);
    }
    g->nccl = NULL;
}

/* ---- the watch ---- */

enum { LOOK_MS = 20, PATIENCE_S = 5 };

static void abort_stuck(mc_comm *c, int rank)
{
    struct gpus *g = gpus_of(c);
    mc_comm_left(rank);
    mc_cuda_lose(g->device, mc_last_error());
    c->broken = MC_EDEVICE;
    abort_nccl(g);
}

/* The thread that waits for the GPU holds its lock, so this one enters the context by itself. */
static void *watch(void *of)
{
    mc_comm *c = of;
    struct gpus *g = gpus_of(c);
    const struct timespec nap = { 0, LOOK_MS * 1000000L };
    double since = 0; /* a rank has left, and the GPU works; 0: not so */
    if (mc_nv.cuCtxPushCurrent_v2(g->device->context) != 0) {
        return NULL;
    }
    while (!atomic_load(&g->ends) && g->nccl) {
        nanosleep(&nap, NULL);
        const int left = g->host->engine->left(g->host);
        const bool stuck = left >= 0 && mc_cuda_works(g->device);
        since = !stuck ? 0 : since > 0 ? since : mc_now();
        if (stuck && mc_now() - since > PATIENCE_S) {
            abort_stuck(c, left);
        }
    }
    mc_nv.cuCtxPopCurrent_v2(&(void *){ NULL });
    return NULL;
}

/* Without it a rank that dies leaves this one waiting, so nothing else depends on it. */
static void begin_watch(mc_comm *c)
{
    struct gpus *g = gpus_of(c);
    sigset_t all, before;
    if (g->nccl && g->host->engine->left) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* the watch inherits this: it takes no signals */
        g->watched = pthread_create(&g->watch, NULL, watch, c) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

static void end_watch(struct gpus *g)
{
    atomic_store(&g->ends, true);
    if (g->watched) {
        pthread_join(g->watch, NULL);
    }
    g->watched = false;
}

static void leave(mc_comm *c)
{
    struct gpus *g = gpus_of(c);
    end_watch(g);
    (c->broken ? abort_nccl : destroy_nccl)(g);
    mc_comm_drop(g->host);
    mc_free(g);
    mc_free(c);
}

static void abort_all(mc_comm *c)
{
    struct gpus *g = gpus_of(c);
    end_watch(g);
    abort_nccl(g);
    mc_comm_abort(g->host);
}

static const struct mc_comm_engine engine = { .name = "nccl", .gather = gather, .exchange = exchange, .close = leave, .abort = abort_all };

/* ---- on the GPU ---- */

static mc_status done(const char *what, int code)
{
    return code ? mc_fail(MC_EDEVICE, "%s: NCCL: %s", what, mc_nv.ncclGetErrorString(code)) : MC_OK;
}

/* Enqueued on a communicator that is gone, work would never end. */
static mc_status usable(const mc_comm *c, const char *what)
{
    return c->broken || !gpus_of(c)->nccl
               ? mc_fail(MC_EDEVICE, "%s: the ranks have lost each other in an earlier call", what)
               : MC_OK;
}

struct mc_cuda *mc_comm_device(const mc_comm *c)
{
    return c->engine == &engine ? gpus_of(c)->device : NULL;
}

/* Two numbers have the same sum in either order, so two ranks need no tree.  NCCL's maximum drops a NaN, and
 * its mean may divide before it adds. */
bool mc_comm_device_reduces(const mc_comm *c, enum mc_ranks_op how, mc_dtype d, bool any_order)
{
    return types[d] != NO_TYPE && (how == RANKS_MEAN  ? any_order
                                   : how == RANKS_SUM ? any_order || !mc_is_float(d) || c->size <= 2
                                                      : !mc_is_float(d));
}

mc_status mc_comm_device_reduce(mc_comm *c, enum mc_ranks_op how, mc_dtype d, const void *x, void *y,
                                int64_t n)
{
    const struct gpus *g = gpus_of(c);
    TRY(usable(c, "all_reduce"));
    return n ? done("all_reduce", mc_nv.ncclAllReduce(x, y, (size_t)n, types[d], reductions[how], g->nccl,
                                                      g->device->stream))
             : MC_OK;
}

mc_status mc_comm_device_scatter(mc_comm *c, enum mc_ranks_op how, mc_dtype d, const void *x, void *y,
                                 int64_t n)
{
    const struct gpus *g = gpus_of(c);
    TRY(usable(c, "reduce_scatter"));
    return n ? done("reduce_scatter", mc_nv.ncclReduceScatter(x, y, (size_t)n, types[d], reductions[how],
                                                              g->nccl, g->device->stream))
             : MC_OK;
}

mc_status mc_comm_device_gather(mc_comm *c, const void *x, void *y, size_t bytes)
{
    const struct gpus *g = gpus_of(c);
    TRY(usable(c, "all_gather"));
    return bytes
               ? done("all_gather", mc_nv.ncclAllGather(x, y, bytes, NCCL_UINT8, g->nccl, g->device->stream))
               : MC_OK;
}

mc_status mc_comm_device_broadcast(mc_comm *c, int root, const void *x, void *y, size_t bytes)
{
    const struct gpus *g = gpus_of(c);
    TRY(usable(c, "broadcast"));
    return bytes ? done("broadcast",
                        mc_nv.ncclBroadcast(x, y, bytes, NCCL_UINT8, root, g->nccl, g->device->stream))
                 : MC_OK;
}

/* ---- memory that NCCL uses in place ---- */

bool mc_comm_device_shares(const mc_comm *c)
{
    return c->engine == &engine && gpus_of(c)->nccl && mc_nv.ncclMemAlloc && mc_nv.ncclMemFree &&
           mc_nv.ncclCommRegister && mc_nv.ncclCommDeregister;
}

mc_status mc_comm_device_register(const mc_comm *c, void *p, size_t bytes, void **handle)
{
    const struct gpus *g = gpus_of(c);
    TRY(usable(c, "memory of a function"));
    TRY(mc_cuda_enter(g->device));
    const mc_status s = done("memory of a function", mc_nv.ncclCommRegister(g->nccl, p, bytes, handle));
    mc_cuda_leave(g->device);
    return s;
}

void mc_comm_device_forget(const mc_comm *c, void *handle)
{
    const struct gpus *g = gpus_of(c);
    if (handle && g->nccl && mc_cuda_enter(g->device) == MC_OK) {
        mc_nv.ncclCommDeregister(g->nccl, handle);
        mc_cuda_leave(g->device);
    }
}

/* ---- making one ---- */

/* What a rank says of itself, equal in no two ranks of one host. */
struct place { char host[64], wrong[256]; int32_t ordinal; };

static mc_status need_nccl(void)
{
    const struct mc_nv_found *f = mc_nv_found(NV_NCCL);
    return f->present ? MC_OK
                      : mc_fail(MC_EDEVICE,
                                "NCCL is needed: %s; install it (PyPI: nvidia-nccl-cu13, Debian: libnccl2), "
                                "name its folder (flag cuda.path), or exchange data through the host (flag "
                                "comm.nccl=False)",
                                f->why);
}

/* Has each rank a GPU, and each its own?  All ranks find and say the same.  d: NULL after an error. */
static mc_status places_differ(mc_comm *c, const struct mc_cuda *d)
{
    struct place mine = { .ordinal = d ? d->device.number : -1 },
                 *all = mc_calloc((size_t)c->size, sizeof *all, "comm");
    gethostname(mine.host, sizeof mine.host - 1);
    mc_snprintf(mine.wrong, sizeof mine.wrong, "%s", d ? "" : mc_last_error());
    mc_status s = all ? c->engine->gather(c, &mine, sizeof mine, all) : MC_EMEMORY;
    for (int i = 0; i < c->size && s == MC_OK; i++) {
        s = all[i].wrong[0] ? mc_fail(MC_EDEVICE, "%s", all[i].wrong) : MC_OK;
        for (int k = 0; k < i && s == MC_OK; k++) {
            s = all[i].ordinal != all[k].ordinal || strcmp(all[i].host, all[k].host) != 0
                    ? MC_OK
                    : mc_fail(MC_EARG, "ranks %d and %d have the same GPU, cuda%d", k, i,
                              (int)all[i].ordinal);
        }
    }
    mc_free(all);
    return s;
}

/* Between GPUs of one process NCCL would read the buffers of the peer, whose pool only the peer's GPU may
 * use. */
static void use_own_buffers(void)
{
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0);
}

static mc_status connect_gpus(mc_comm *c, struct mc_cuda *d, void **nccl)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mc_nccl_id id = { { 0 } };
    pthread_once(&once, use_own_buffers);
    const mc_status made = c->rank ? MC_OK : done("start", mc_nv.ncclGetUniqueId(&id));
    TRY(mc_comm_broadcast_to(c, "comm_gpu", 0, MC_UINT8, &id, (int64_t)sizeof id));
    TRY(made);
    TRY(mc_cuda_enter(d));
    const mc_status s = done("start", mc_nv.ncclCommInitRank(nccl, c->size, id, c->rank));
    mc_cuda_leave(d);
    return s;
}

mc_comm *mc_comm_gpu(mc_comm *c, const char *device)
{
    int ordinal = -1;
    if (!c || !device) {
        mc_fail(MC_EARG, "comm_gpu: the %s is missing", c ? "device" : "communicator");
        return NULL;
    }
    if (!mc_flag_int(FLAG_comm_nccl)) {
        return mc_comm_ref(c);
    }
    mc_status s = mc_cuda_parse(device, &ordinal);
    s = s == MC_OK && ordinal < 0 ? mc_fail(MC_EARG, "comm_gpu: '%s' is no GPU", device) : s;
    s = s == MC_OK ? need_nccl() : s;
    struct mc_cuda *d = s == MC_OK ? mc_cuda_start(ordinal) : NULL;
    const mc_status met = places_differ(c, d);
    struct gpus *g = d && met == MC_OK ? mc_calloc(1, sizeof *g, "comm") : NULL;
    if (!g || connect_gpus(c, d, &g->nccl) < 0) {
        mc_free(g);
        return NULL;
    }
    g->host = mc_comm_ref(c);
    g->device = d;
    mc_comm *gpus = mc_comm_make(&engine, c->rank, c->size, g);
    if (!gpus) {
        abort_nccl(g);
        mc_comm_drop(c);
        mc_free(g);
        return NULL;
    }
    begin_watch(gpus);
    return gpus;
}
