/* staging.c: copies between the host and the device.
 *
 * Full speed needs pinned memory, so large transfers go through two pinned chunks: while one is transferred,
 * the CPU fills or empties the other.  Pinning the chunks takes as long as the driver's plain copy of several
 * megabytes, so they are made only after that many bytes were copied plainly.
 *
 * Invariant: the host touches a chunk only after the event recorded after its last use has completed. */
#include "device/cuda/driver.h"

enum { CHUNKS = 2 };
static const size_t whole = 4 << 20;  /* bytes of a chunk */
static const size_t least = 256 << 10; /* starting a smaller piece costs more than the overlap saves */
static const size_t straight = 64 << 10; /* the driver copies up to this size at the call itself */
static const size_t patience = 8 << 20; /* bytes copied plainly before the chunks are made */
static const size_t fewest = 256 << 10; /* a transfer counts as at least this many bytes of `patience` */

struct mc_cuda_staging_buffer {
    char *chunk[CHUNKS];
    void *used[CHUNKS];         /* events */
};

static void stage_free(struct mc_cuda_staging_buffer *s)
{
    for (int i = 0; s && i < CHUNKS; i++) {
        if (s->used[i]) {
            mc_nv.cuEventDestroy_v2(s->used[i]);
        }
        if (s->chunk[i]) {
            mc_nv.cuMemFreeHost(s->chunk[i]);
        }
    }
    mc_free(s);
}

static struct mc_cuda_staging_buffer *stage_of(struct mc_cuda *d)
{
    static const char what[] = "allocating pinned memory for transfers";
    if (d->stage) {
        return d->stage;
    }
    struct mc_cuda_staging_buffer *s = mc_calloc(1, sizeof *s, "devices");
    for (int i = 0; s && i < CHUNKS; i++) {
        void *p = NULL;
        int code = mc_nv.cuMemHostAlloc(&p, whole, NV_CU_MEMHOSTALLOC_PORTABLE);
        s->chunk[i] = code ? NULL : p;
        code = code ? code : mc_nv.cuEventCreate(&s->used[i], NV_CU_EVENT_DISABLE_TIMING);
        if (mc_cuda_check(d, code, what, NULL) < 0) {
            stage_free(s);
            return NULL;
        }
    }
    return d->stage = s;
}

static unsigned long long device_address(const void *p)
{
    return (unsigned long long)(uintptr_t)p;
}

/* A piece is a quarter of the transfer, between `least` and a chunk.  The copies of the first and of the last
 * piece do not overlap with a transfer. */
static size_t piece_of(size_t n)
{
    return MC_MIN(MC_MAX(n / 4, least), whole);
}

/* Is this transfer left to the driver?  Counts its bytes if so. */
static bool plainly(struct mc_cuda *d, size_t n, size_t always)
{
    bool plain = n <= always || (!d->stage && d->plain + n <= patience);
    d->plain += plain && n > always ? MC_MAX(n, fewest) : 0;
    return plain;
}

/* ---- to the device ---- */

static mc_status put_pieces(struct mc_cuda *d, char *device, const char *host, size_t n)
{
    struct mc_cuda_staging_buffer *s = stage_of(d);
    const size_t piece = piece_of(n);
    if (!s) {
        return mc_last_status();
    }
    for (int i = 0; n > 0; i = (i + 1) % CHUNKS) {
        size_t k = MC_MIN(n, piece);
        TRY(mc_cuda_check(d, mc_nv.cuEventSynchronize(s->used[i]), "sending", NULL));
        memcpy(s->chunk[i], host, k);
        TRY(mc_cuda_check(d, mc_nv.cuMemcpyHtoDAsync_v2(device_address(device), s->chunk[i], k, d->stream),
                          "sending", NULL));
        TRY(mc_cuda_check(d, mc_nv.cuEventRecord(s->used[i], d->stream), "sending", NULL));
        device += k;
        host += k;
        n -= k;
    }
    return MC_OK;
}

mc_status mc_cuda_copy_to_device(struct mc_cuda *d, void *device, const void *host, size_t n)
{
    TRY(mc_cuda_enter(d));
    mc_status s = MC_OK;
    if (d->recording) {
        s = mc_fail(MC_EDEVICE, "%s: a copy from the host cannot be recorded", d->id);
    } else if (n && plainly(d, n, straight)) {
        s = mc_cuda_check(d, mc_nv.cuMemcpyHtoDAsync_v2(device_address(device), host, n, d->stream),
                          "sending", NULL);
        s = s == MC_OK && n > straight ? mc_cuda_wait(d)
                                       : s; /* wait: pinned memory is read after the call returns */
    } else if (n) {
        s = put_pieces(d, device, host, n);
    }
    mc_cuda_leave(d);
    return s;
}

/* ---- to the host ---- */

static mc_status ask(struct mc_cuda *d, struct mc_cuda_staging_buffer *s, int i, const char *device, size_t k)
{
    TRY(mc_cuda_check(d, mc_nv.cuMemcpyDtoHAsync_v2(s->chunk[i], device_address(device), k, d->stream),
                      "fetching", NULL));
    return mc_cuda_check(d, mc_nv.cuEventRecord(s->used[i], d->stream), "fetching", NULL);
}

/* The copy of the next piece is started before the wait for the current one. */
static mc_status get_pieces(struct mc_cuda *d, char *host, const char *device, size_t n)
{
    struct mc_cuda_staging_buffer *s = stage_of(d);
    const size_t piece = piece_of(n);
    if (!s) {
        return mc_last_status();
    }
    TRY(ask(d, s, 0, device, MC_MIN(n, piece)));
    for (size_t at = 0, i = 0; at < n; at += piece, i = 1 - i) {
        size_t next = at + piece;
        if (next < n) {
            TRY(ask(d, s, (int)(1 - i), device + next, MC_MIN(n - next, piece)));
        }
        TRY(mc_cuda_check(d, mc_nv.cuEventSynchronize(s->used[i]), "fetching", NULL));
        TRY(mc_cuda_synchronized_ok(d));
        memcpy(host + at, s->chunk[i], MC_MIN(n - at, piece));
    }
    d->trail->n = 0;
    return MC_OK;
}

mc_status mc_cuda_copy_to_host(struct mc_cuda *d, void *host, const void *device, size_t n)
{
    TRY(mc_cuda_enter(d));
    mc_status s = MC_OK;
    if (d->recording) {
        s = mc_fail(MC_EDEVICE, "%s: a copy to the host cannot be recorded", d->id);
    } else if (n && plainly(d, n, 0)) {
        s = mc_cuda_check(d, mc_nv.cuMemcpyDtoHAsync_v2(host, device_address(device), n, d->stream),
                          "fetching", NULL);
        s = s < 0 ? s : mc_cuda_wait(d);
    } else if (n) {
        s = get_pieces(d, host, device, n);
    }
    mc_cuda_leave(d);
    return s;
}

/* ---- within the device ---- */

mc_status mc_cuda_copy(struct mc_cuda *d, void *to, const void *from, size_t n)
{
    TRY(mc_cuda_enter(d));
    mc_status s = n ? mc_cuda_check(
                          d,
                          mc_nv.cuMemcpyDtoDAsync_v2(device_address(to), device_address(from), n, d->stream),
                          "copying", NULL)
                    : MC_OK;
    mc_cuda_leave(d);
    return s;
}

mc_status mc_cuda_clear(struct mc_cuda *d, void *p, size_t n)
{
    TRY(mc_cuda_enter(d));
    mc_status s = n ? mc_cuda_check(d, mc_nv.cuMemsetD8Async(device_address(p), 0, n, d->stream), "clearing",
                                    NULL)
                    : MC_OK;
    mc_cuda_leave(d);
    return s;
}

mc_status mc_cuda_get_pinned(struct mc_cuda *d, void *host, const void *device, size_t n)
{
    TRY(mc_cuda_enter(d));
    mc_status s = d->recording ? mc_fail(MC_EDEVICE, "%s: a copy to the host cannot be recorded", d->id)
                               : MC_OK;
    s = s < 0 ? s
              : mc_cuda_check(d, mc_nv.cuMemcpyDtoHAsync_v2(host, device_address(device), n, d->stream),
                              "fetching", NULL);
    s = s < 0 ? s : mc_cuda_wait(d);
    mc_cuda_leave(d);
    return s;
}
