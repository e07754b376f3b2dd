/* start.c: finds, starts and enters GPUs.
 *
 * A started device is kept until the process ends.  It uses the GPU's primary context, as other libraries in
 * the process do.
 *
 * Invariant: a device belongs to the process that started it.  CUDA does not survive a fork, so in a child
 * every use of a GPU is an error, and nothing that the parent holds is touched. */
#include "device/cuda/driver.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* clusters: compute capability TOGETHER_SM and later has them, of up to TOGETHER blocks */
enum { GPUS = MC_CUDA_MOST, NESTED = 16, TOGETHER_SM = 90, TOGETHER = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `started` and `driver_pid` */
static struct mc_cuda *started[GPUS];
static long driver_pid; /* the process that initialised the driver; 0: none yet */
static _Atomic bool forked; /* this process is a fork of driver_pid */

/* ---- the driver ---- */

static mc_status no_fork(const char *what, long pid)
{
    return mc_fail(
        MC_EDEVICE,
        "%s was started by process %ld, of which this one is a fork, and CUDA does not survive a fork: "
        "fork before the GPU is first used, or start a new program",
        what, pid);
}

static void in_child(void)
{
    atomic_store(&forked, driver_pid != 0);
    pthread_mutex_init(&lock, NULL); /* the thread that may have held it does not exist here */
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static mc_status driver_error(const char *what, int code)
{
    const char *text = NULL;
    mc_nv.cuGetErrorString(code, &text);
    return mc_fail(MC_EDEVICE, "the NVIDIA driver: %s: %s", what,
                   text ? text : "an error that it does not know");
}

static mc_status start_driver(int *count) /* under the lock */
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int version = 0, code;
    *count = 0;
    pthread_once(&once, watch_forks);
    if (atomic_load(&forked)) {
        return no_fork("CUDA", driver_pid);
    }
    TRY(mc_nv_need(NV_DRIVER));
    if (mc_nv.cuDriverGetVersion(&version) == 0 && version < NV_OLDEST_DRIVER) {
        return mc_fail(
            MC_EDEVICE, "the NVIDIA driver is too old: it speaks CUDA %d.%d, and %d.%d is needed at least",
            version / 1000, version % 1000 / 10, NV_OLDEST_DRIVER / 1000, NV_OLDEST_DRIVER % 1000 / 10);
    }
    code = driver_pid ? 0 : mc_nv.cuInit(0);
    if (code == NV_CUDA_ERROR_NO_DEVICE) {
        return MC_OK;
    }
    if (code != 0) {
        return driver_error("cuInit", code);
    }
    driver_pid = (long)getpid();
    code = mc_nv.cuDeviceGetCount(count);
    return code ? driver_error("counting GPUs", code) : MC_OK;
}

int mc_cuda_count(void)
{
    int n;
    const bool clean = mc_last_status() == MC_OK;
    pthread_mutex_lock(&lock);
    mc_status s = start_driver(&n);
    pthread_mutex_unlock(&lock);
    if (s < 0 && clean) {
        mc_clear_error();
    }
    return s < 0 ? 0 : n;
}

/* ---- names ---- */

mc_status mc_cuda_parse(const char *device, int *ordinal)
{
    *ordinal = -1;
    if (strcmp(device, "cpu") == 0) {
        return MC_OK;
    }
    if (strncmp(device, "cuda", 4) == 0) {
        const char *digits = device + 4;
        size_t n = strspn(digits, "0123456789");
        if (digits[n] == '\0' && n <= 3) {
            *ordinal = atoi(digits); /* no digits: 0 */
            return MC_OK;
        }
    }
    return mc_device_unknown(device);
}

/* ---- one GPU ---- */

static int attribute(int device, int which)
{
    int value = 0;
    return mc_nv.cuDeviceGetAttribute(&value, which, device) == 0 ? value : 0;
}

/* under the lock */
static mc_status read_properties(int ordinal, int *device, struct mc_cuda_properties *out)
{
    int count;
    TRY(start_driver(&count));
    if (ordinal < 0 || ordinal >= MC_MIN(count, (int)GPUS)) {
        return count ? mc_fail(MC_EDEVICE, "there is no cuda%d: this machine has %d GPU%s, cuda0%s", ordinal,
                               count, count == 1 ? "" : "s", count == 1 ? "" : " and on")
                     : mc_fail(MC_EDEVICE, "there is no cuda%d: the NVIDIA driver finds no GPU", ordinal);
    }
    *out = (struct mc_cuda_properties){ .name = "" };
    int code = mc_nv.cuDeviceGet(device, ordinal);
    code = code ? code : mc_nv.cuDeviceGetName(out->name, (int)sizeof out->name, *device);
    code = code ? code : mc_nv.cuDeviceTotalMem_v2(&out->memory, *device);
    if (code) {
        return driver_error("asking a GPU for its name and memory", code);
    }
    out->sm = attribute(*device, NV_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
              attribute(*device, NV_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    out->processors = attribute(*device, NV_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return MC_OK;
}

mc_status mc_cuda_properties(int ordinal, struct mc_cuda_properties *out)
{
    int device;
    pthread_mutex_lock(&lock);
    mc_status s = read_properties(ordinal, &device, out);
    pthread_mutex_unlock(&lock);
    return s;
}

static mc_status space_put(const struct mc_space *s, void *dev, const void *host, size_t n)
{
    return mc_cuda_copy_to_device(s->device, dev, host, n);
}

static mc_status space_get(const struct mc_space *s, void *host, const void *dev, size_t n)
{
    return mc_cuda_copy_to_host(s->device, host, dev, n);
}

static mc_status space_copy(const struct mc_space *s, void *to, const void *from, size_t n)
{
    return mc_cuda_copy(s->device, to, from, n);
}

static void space_release(const struct mc_space *s, void *p)
{
    mc_cuda_free(s->device, p);
}

static mc_status device_enter(struct mc_device *d)
{
    return mc_cuda_enter((struct mc_cuda *)d);
}

static void device_leave(struct mc_device *d)
{
    mc_cuda_leave((struct mc_cuda *)d);
}

static void *device_alloc(struct mc_device *d, size_t bytes, const char *what)
{
    return mc_cuda_alloc((struct mc_cuda *)d, bytes, what);
}

static void device_free(struct mc_device *d, void *p)
{
    mc_cuda_free((struct mc_cuda *)d, p);
}

static mc_array *device_array(struct mc_device *d, mc_dtype t, int rank, const int64_t *dims)
{
    return mc_cuda_array((struct mc_cuda *)d, t, rank, dims);
}

static const struct mc_device_ops device_ops = {
    .enter = device_enter, .leave = device_leave, .alloc = device_alloc, .free = device_free,
    .array = device_array,
};

static void make_lock(pthread_mutex_t *m)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(m, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

/* Makes the stream and the pool.  The device's context is current. */
static mc_status init_device(struct mc_cuda *d)
{
    TRY(mc_cuda_check(d, mc_nv.cuStreamCreate(&d->stream, NV_CU_STREAM_NON_BLOCKING), "making a stream",
                      NULL));
    return mc_cuda_pool_new(d);
}

static mc_status start(struct mc_cuda *d, int device)
{
    TRY(mc_cuda_check(d, mc_nv.cuDevicePrimaryCtxRetain(&d->context, device), "start", NULL));
    mc_status s = mc_cuda_check(d, mc_nv.cuCtxPushCurrent_v2(d->context), "start", NULL);
    if (s == MC_OK) {
        s = init_device(d);
        if (s < 0) {
            mc_cuda_pool_free(d);
            if (d->stream) {
                mc_nv.cuStreamDestroy_v2(d->stream);
            }
        }
        mc_nv.cuCtxPopCurrent_v2(&(void *){ NULL });
    }
    if (s < 0) {
        mc_nv.cuDevicePrimaryCtxRelease_v2(device);
    }
    return s;
}

static struct mc_cuda *make(int ordinal, int device, const struct mc_cuda_properties *f)
{
    struct mc_cuda *d = mc_calloc(1, sizeof *d, "devices");
    struct mc_cuda_launch_history *trail = d ? mc_calloc(1, sizeof *trail, "devices") : NULL;
    if (!trail) {
        mc_free(d);
        return NULL;
    }
    *d = (struct mc_cuda){ .sm = f->sm, .processors = f->processors, .trail = trail, .pid = (long)getpid() };
    d->shared = (size_t)attribute(device, NV_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    d->cooperative = attribute(device, NV_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) > 0;
    d->together = f->sm >= TOGETHER_SM ? TOGETHER : 1;
    d->space = (struct mc_space){
        .name = d->id,
        .device = d,
        .put = space_put,
        .get = space_get,
        .copy = space_copy,
        .release = space_release,
    };
    d->device = (struct mc_device){ d->id, ordinal, f->memory, &d->space, &device_ops };
    mc_snprintf(d->id, sizeof d->id, "cuda%d", ordinal);
    memcpy(d->name, f->name, sizeof d->name);
    make_lock(&d->lock);
    if (start(d, device) < 0) {
        pthread_mutex_destroy(&d->lock);
        mc_free(trail);
        mc_free(d);
        return NULL;
    }
    return d;
}

static struct mc_cuda *find_or_start(int ordinal) /* under the lock */
{
    struct mc_cuda_properties f;
    int device;
    if (atomic_load(&forked)) {
        no_fork("CUDA", driver_pid);
        return NULL;
    }
    if (ordinal >= 0 && ordinal < GPUS && started[ordinal]) {
        return started[ordinal];
    }
    if (read_properties(ordinal, &device, &f) < 0) {
        return NULL;
    }
    if (f.sm < NV_OLDEST_SM) {
        mc_fail(MC_EDEVICE,
                "cuda%d, %s, is too old: its compute capability is %d.%d, and %d.%d is needed at least",
                ordinal, f.name, f.sm / 10, f.sm % 10, NV_OLDEST_SM / 10, NV_OLDEST_SM % 10);
        return NULL;
    }
    return started[ordinal] = make(ordinal, device, &f);
}

struct mc_cuda *mc_cuda_running(int ordinal)
{
    pthread_mutex_lock(&lock);
    struct mc_cuda *d = ordinal >= 0 && ordinal < GPUS ? started[ordinal] : NULL;
    pthread_mutex_unlock(&lock);
    return d;
}

struct mc_cuda *mc_cuda_start(int ordinal)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the driver's threads inherit it: no signals */
    pthread_mutex_lock(&lock);
    struct mc_cuda *d = find_or_start(ordinal);
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return d;
}

/* ---- entering ---- */

static _Thread_local struct {
    struct mc_cuda *at[NESTED];
    int n;
} inside;

struct mc_cuda *mc_cuda_current(void)
{
    return inside.n ? inside.at[inside.n - 1] : NULL;
}

bool mc_cuda_usable(const struct mc_cuda *d)
{
    return !atomic_load_explicit(&forked, memory_order_relaxed) && !mc_cuda_lost(d);
}

mc_status mc_cuda_enter(struct mc_cuda *d)
{
    if (atomic_load_explicit(&forked, memory_order_relaxed)) {
        return no_fork(d->id, d->pid);
    }
    if (inside.n == NESTED) {
        return mc_fail(MC_EDEVICE, "%s is entered more than %d times over", d->id, NESTED);
    }
    pthread_mutex_lock(&d->lock);
    mc_status s = mc_cuda_synchronized_ok(d);
    if (s == MC_OK && mc_cuda_current() != d) {
        s = mc_cuda_check(d, mc_nv.cuCtxPushCurrent_v2(d->context), "entering it", NULL);
    }
    if (s < 0) {
        pthread_mutex_unlock(&d->lock);
        return s;
    }
    inside.at[inside.n++] = d;
    return MC_OK;
}

void mc_cuda_leave(struct mc_cuda *d)
{
    inside.n--;
    if (mc_cuda_current() != d) {
        mc_nv.cuCtxPopCurrent_v2(&(void *){ NULL });
    }
    pthread_mutex_unlock(&d->lock);
}

mc_status mc_cuda_wait(struct mc_cuda *d)
{
    TRY(mc_cuda_enter(d));
    mc_status s = d->recording
                      ? mc_fail(MC_EDEVICE, "%s: cannot wait while work is being recorded", d->id)
                      : mc_cuda_check(d, mc_nv.cuStreamSynchronize(d->stream), "waiting for results", NULL);
    s = s == MC_OK ? mc_cuda_synchronized_ok(d) : s; /* lost meanwhile, by what another thread saw */
    if (s == MC_OK) {
        d->trail->n = 0;
    }
    mc_cuda_leave(d);
    return s;
}
