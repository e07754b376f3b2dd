/* replay.c: captures work as a CUDA graph and replays it.  A graph may have a mark, an event that each replay
 * records: the host fetches what is ready by then while the rest of the graph runs.  The copies are made on a
 * stream of their own, which waits for the event.
 *
 * Invariant: the thread that begins a capture ends it, and the device stays entered between.  So no other
 * thread's work is captured. */
#include "device/cuda/driver.h"
#include <stdio.h>
#include <string.h>

enum { MARK_AFTER = 32 };
struct graph {
    void *exec;                 /* CUgraphExec */
    void *mark;                 /* CUevent; NULL: it has no mark */
    char name[TRAIL_NAME];      /* for error messages: "a recording of 12: k1 to k9" */
};

mc_status mc_cuda_capture_begin(struct mc_cuda *d)
{
    TRY(mc_cuda_enter(d));
    mc_status s = d->recording ? mc_fail(MC_EDEVICE, "%s: work is being recorded already", d->id)
                               : mc_cuda_wait(d);
    if (s == MC_OK) { /* mc_cuda_wait has emptied the history, so it will name what is captured */
        s = mc_cuda_check(d, mc_nv.cuStreamBeginCapture_v2(d->stream, NV_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                          "recording", NULL);
    }
    if (s < 0) {
        mc_cuda_leave(d);
        return s;
    }
    d->recording = true;
    d->branches = false;
    d->mark = NULL;
    return MC_OK;
}

/* The name of a replay in error messages: its first and last kernels. */
static void name_graph(const struct mc_cuda *d, char *out)
{
    const struct mc_cuda_launch_history *t = d->trail;
    const uint64_t n = t->n;
    const char *last = n ? t->name[(t->n - 1) % TRAIL] : "none";
    if (n < 2 || n > TRAIL) {
        mc_snprintf(out, TRAIL_NAME, "a recording of %llu, the last %.12s", (unsigned long long)n, last);
    } else {
        mc_snprintf(out, TRAIL_NAME, "a recording of %llu: %.12s to %.12s", (unsigned long long)n, t->name[0],
                    last);
    }
}

static mc_status instantiate(struct mc_cuda *d, void *recorded, struct graph *g)
{
    name_graph(d, g->name);
    TRY(mc_cuda_check(d, mc_nv.cuGraphInstantiateWithFlags(&g->exec, recorded, 0), "preparing", g->name));
    mc_status s = mc_cuda_check(d, mc_nv.cuGraphUpload(g->exec, d->stream), "preparing", g->name);
    if (s < 0) {
        mc_nv.cuGraphExecDestroy(g->exec);
    }
    return s;
}

static mc_status end(struct mc_cuda *d, struct graph **out)
{
    void *recorded = NULL;
    TRY(mc_cuda_check(d, mc_nv.cuStreamEndCapture(d->stream, &recorded), "recording", NULL));
    struct graph *g = mc_calloc(1, sizeof *g, "plans");
    mc_status s = g ? instantiate(d, recorded, g) : MC_EMEMORY;
    mc_nv.cuGraphDestroy(recorded);
    if (s < 0) {
        mc_free(g);
        return s;
    }
    *out = g;
    return MC_OK;
}

mc_status mc_cuda_capture_end(struct mc_cuda *d, void **graph)
{
    struct graph *g = NULL;
    *graph = NULL;
    mc_status s = end(d, &g);
    if (g) {
        g->mark = d->mark;
    } else if (d->mark) {
        mc_nv.cuEventDestroy_v2(d->mark);
    }
    d->mark = NULL;
    d->recording = false;
    d->trail->n = 0; /* the captured kernels were not launched */
    mc_cuda_free_parked(d);
    *graph = g;
    mc_cuda_leave(d);
    return s;
}

/* ---- dependencies ---- */

bool mc_cuda_can_fork_capture(void)
{
    return mc_nv.cuStreamGetCaptureInfo_v3 && mc_nv.cuStreamUpdateCaptureDependencies_v2;
}

mc_status mc_cuda_capture_set_dependencies(struct mc_cuda *d, void **node, int n)
{
    d->branches = n != 1;
    return mc_cuda_check(d,
                         mc_nv.cuStreamUpdateCaptureDependencies_v2(d->stream, node, NULL, (size_t)n,
                                                                    NV_CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                         "recording", NULL);
}

mc_status mc_cuda_capture_get_dependencies(struct mc_cuda *d, int most, void **node, int *n)
{
    int status;
    size_t count = 0;
    void *const *last = NULL;
    const void *edges = NULL;
    TRY(mc_cuda_check(d,
                      mc_nv.cuStreamGetCaptureInfo_v3(d->stream, &status, NULL, NULL, &last, &edges, &count),
                      "recording", NULL));
    for (size_t i = 0; i < count && i < (size_t)most; i++) {
        node[i] = last[i];
    }
    *n = (int)count;
    return MC_OK;
}

/* ---- marks ---- */

bool mc_cuda_can_mark_capture(void)
{
    return mc_nv.cuEventRecordWithFlags && mc_cuda_can_fork_capture();
}

mc_status mc_cuda_capture_mark(struct mc_cuda *d)
{
    void *after[MARK_AFTER];
    int n = 0;
    TRY(mc_cuda_capture_get_dependencies(d, MARK_AFTER, after, &n));
    if (n > MARK_AFTER) {
        return MC_OK; /* no mark */
    }
    TRY(mc_cuda_check(d, mc_nv.cuEventCreate(&d->mark, NV_CU_EVENT_DISABLE_TIMING), "making an event", NULL));
    TRY(mc_cuda_check(d, mc_nv.cuEventRecordWithFlags(d->mark, d->stream, NV_CU_EVENT_RECORD_EXTERNAL),
                      "recording", NULL));
    return mc_cuda_capture_set_dependencies(d, after, n);
}

bool mc_cuda_graph_has_mark(const void *graph)
{
    const struct graph *g = graph;
    return g && g->mark;
}

/* Makes the stream and the page. */
static mc_status make_fetch_stream(struct mc_cuda *d)
{
    TRY(d->fetch_stream ? MC_OK
                        : mc_cuda_check(d, mc_nv.cuStreamCreate(&d->fetch_stream, NV_CU_STREAM_NON_BLOCKING),
                                        "making a stream", NULL));
    return d->page
               ? MC_OK
               : mc_cuda_check(d, mc_nv.cuMemHostAlloc(&d->page, MC_CUDA_PAGE, NV_CU_MEMHOSTALLOC_PORTABLE),
                               "pinning memory", NULL);
}

static mc_status fetch(struct mc_cuda *d, const struct graph *g, int n, const struct mc_cuda_fetch *at)
{
    char *page = d->page;
    TRY(mc_cuda_check(d, mc_nv.cuStreamWaitEvent(d->fetch_stream, g->mark, 0), "fetching", g->name));
    for (int i = 0; i < n; i++) {
        void *to = at[i].pinned ? at[i].host : page;
        page += at[i].pinned ? 0 : at[i].bytes;
        TRY(mc_cuda_check(d,
                          mc_nv.cuMemcpyDtoHAsync_v2(to, (uintptr_t)at[i].from, at[i].bytes, d->fetch_stream),
                          "fetching", g->name));
    }
    TRY(mc_cuda_check(d, mc_nv.cuStreamSynchronize(d->fetch_stream), "fetching", g->name));
    TRY(mc_cuda_synchronized_ok(d));
    page = d->page;
    for (int i = 0; i < n; i++) {
        if (!at[i].pinned) {
            memcpy(at[i].host, page, at[i].bytes);
            page += at[i].bytes;
        }
    }
    return MC_OK;
}

mc_status mc_cuda_fetch_at_mark(struct mc_cuda *d, const void *graph, int n, const struct mc_cuda_fetch *at)
{
    TRY(mc_cuda_enter(d));
    mc_status s = make_fetch_stream(d);
    s = s < 0 ? s : fetch(d, graph, n, at);
    mc_cuda_leave(d);
    return s;
}

/* ---- replay ---- */

mc_status mc_cuda_replay(struct mc_cuda *d, void *graph)
{
    const struct graph *g = graph;
    TRY(mc_cuda_enter(d));
    mc_cuda_launched(d, g->name);
    mc_status s = mc_cuda_check(d, mc_nv.cuGraphLaunch(g->exec, d->stream), "launch of", g->name);
    if (s == MC_OK && mc_cuda_blocking()) {
        s = mc_cuda_check(d, mc_nv.cuStreamSynchronize(d->stream), "launch of", g->name);
    }
    mc_cuda_leave(d);
    return s;
}

void mc_cuda_graph_free(struct mc_cuda *d, void *graph)
{
    struct graph *g = graph;
    if (!g) {
        return;
    }
    if (mc_cuda_usable(d) && mc_cuda_enter(d) == MC_OK) {
        mc_nv.cuGraphExecDestroy(g->exec);
        if (g->mark) {
            mc_nv.cuEventDestroy_v2(g->mark);
        }
        mc_cuda_leave(d);
    }
    mc_free(g);
}
