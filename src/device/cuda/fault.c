/* fault.c: error messages for the driver's codes, with the launches that may have caused them.
 *
 * Work on a GPU fails after the call that started it has returned.  So the names of the launches since the
 * last successful synchronization are kept.
 *
 * Invariant: after an error that makes the context unusable the device is lost, and every later use of it
 * fails with that error. */
#include "device/cuda/driver.h"
#include <stdio.h>
#include <stdlib.h>

/* Errors that make the context unusable. */
static const int fatal[] = {
    NV_CUDA_ERROR_ECC_UNCORRECTABLE,    NV_CUDA_ERROR_ILLEGAL_ADDRESS,     NV_CUDA_ERROR_LAUNCH_TIMEOUT,
    NV_CUDA_ERROR_ASSERT,               NV_CUDA_ERROR_HARDWARE_STACK_ERROR, NV_CUDA_ERROR_ILLEGAL_INSTRUCTION,
    NV_CUDA_ERROR_MISALIGNED_ADDRESS,   NV_CUDA_ERROR_INVALID_ADDRESS_SPACE, NV_CUDA_ERROR_INVALID_PC,
    NV_CUDA_ERROR_LAUNCH_FAILED,
};

static bool is_fatal(int code)
{
    for (size_t i = 0; i < NELEM(fatal); i++) {
        if (fatal[i] == code) {
            return true;
        }
    }
    return false;
}

bool mc_cuda_blocking(void)
{
    static _Atomic int known; /* 0: unknown, 1: no, 2: yes */
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (!k) {
        const char *e = getenv("CUDA_LAUNCH_BLOCKING");
        k = e && strcmp(e, "1") == 0 ? 2 : 1;
        atomic_store(&known, k);
    }
    return k == 2 || mc_flag_int(FLAG_cuda_blocking);
}

/* ---- the history of launches ---- */

void mc_cuda_launched(struct mc_cuda *d, const char *name)
{
    char *slot = d->trail->name[d->trail->n++ % TRAIL];
    size_t n = MC_MIN(strlen(name), (size_t)TRAIL_NAME - 1);
    memcpy(slot, name, n);
    slot[n] = '\0';
}

/* "; launched since the last successful synchronization: a, b, and 12 before these" */
static void pending_launches(const struct mc_cuda_launch_history *t, char *out, size_t size)
{
    uint64_t shown = MC_MIN(t->n, (uint64_t)TRAIL);
    size_t n = 0;
    out[0] = '\0';
    for (uint64_t i = t->n - shown; i < t->n && n < size; i++) {
        n += (size_t)mc_snprintf(out + n, size - n, "%s%s",
                                 i == t->n - shown ? "; launched since the last successful synchronization: "
                                                   : ", ",
                                 t->name[i % TRAIL]);
    }
    if (t->n > shown && n < size) {
        mc_snprintf(out + n, size - n, ", and %llu before these", (unsigned long long)(t->n - shown));
    }
}

bool mc_cuda_lost(const struct mc_cuda *d)
{
    return d->trail->broken[0] != '\0';
}

mc_status mc_cuda_synchronized_ok(const struct mc_cuda *d)
{
    return mc_cuda_lost(d) ? mc_fail(MC_EDEVICE, "%s is lost to this process, since an earlier error: %s",
                                     d->id, d->trail->broken)
                           : MC_OK;
}

void mc_cuda_lose(struct mc_cuda *d, const char *why)
{
    char *to = d->trail->broken, text[sizeof d->trail->broken];
    mc_snprintf(text, sizeof text, "%s", why);
    if (!mc_cuda_lost(d)) {
        memcpy(to + 1, text + 1, sizeof text - 1);
        atomic_thread_fence(memory_order_release); /* another thread sees all of it, or nothing */
        to[0] = text[0];
    }
}

bool mc_cuda_works(const struct mc_cuda *d)
{
    return !d->recording && mc_nv.cuStreamQuery(d->stream) == NV_CUDA_ERROR_NOT_READY;
}

/* ---- errors ---- */

mc_status mc_cuda_check(struct mc_cuda *d, int code, const char *what, const char *name)
{
    const char *text = NULL, *word = NULL;
    char launches[TRAIL * (TRAIL_NAME + 2) + 96] = "";
    if (code == 0) {
        return MC_OK;
    }
    if (mc_nv.cuGetErrorString(code, &text) != 0 || !text) {
        text = "an error that the driver does not know";
    }
    if (mc_nv.cuGetErrorName(code, &word) != 0 || !word) {
        word = "?";
    }
    const bool lost = is_fatal(code) && !mc_cuda_lost(d);
    if (lost && !mc_cuda_blocking()) { /* if blocking, the failing call is the launch itself */
        pending_launches(d->trail, launches, sizeof launches);
    }
    mc_status s = code == NV_CUDA_ERROR_OUT_OF_MEMORY ? MC_EMEMORY : MC_EDEVICE;
    mc_fail(s, "%s: %s%s%s: %s (%s)%s", d->id, what, name ? " " : "", name ? name : "", text, word, launches);
    if (lost) {
        mc_cuda_lose(d, mc_last_error());
    }
    return s;
}
