/* code.c: CUDA C text to kernels on a GPU: nvrtc.c makes the machine code, the driver loads it.
 *
 * Invariant: one counted struct mc_cuda_code for each device and key; loading a text again is a look-up. */
#include "device/cuda/driver.h"

struct mc_cuda_code {
    struct mc_cuda_code *next;
    struct mc_cuda *device;
    struct mc_key key;
    void *module;
    char *source, *options;     /* what it was compiled from */
    int refs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `loaded`, `found` and refs */
static struct mc_cuda_code *loaded;
static int64_t found;

struct mc_cuda_code_stats mc_cuda_code_stats(void)
{
    struct mc_cuda_code_stats s = mc_cuda_compiled();
    pthread_mutex_lock(&lock);
    s.from_memory = found;
    pthread_mutex_unlock(&lock);
    return s;
}

/* ---- loading ---- */

static mc_status explain(struct mc_cuda *d, const struct mc_cuda_job *j, int code)
{
    mc_status s = mc_cuda_check(d, code, "loading kernels", NULL);
    if (j->bundled && code) {
        s = mc_fail_again("machine code of a bundle, for %s, and a driver that speaks %s: ",
                          mc_cuda_job_arch(j), mc_nv_found(NV_DRIVER)->version);
    } else if (code == NV_CUDA_ERROR_UNSUPPORTED_PTX_VERSION || code == NV_CUDA_ERROR_NO_BINARY_FOR_GPU ||
               code == NV_CUDA_ERROR_INVALID_IMAGE) {
        s = mc_fail_again("NVRTC %s compiled for a driver that speaks %s: ", mc_nv_found(NV_NVRTC)->version,
                          mc_nv_found(NV_DRIVER)->version);
    }
    return s;
}

/* Under the lock.  Adds a reference. */
static struct mc_cuda_code *find_loaded(const struct mc_cuda *d, struct mc_key key)
{
    struct mc_cuda_code *c = loaded;
    while (c && (c->device != d || memcmp(&c->key, &key, sizeof key) != 0)) {
        c = c->next;
    }
    if (c) {
        c->refs++;
        found++;
    }
    return c;
}

static void destroy(struct mc_cuda_code *c)
{
    mc_free(c->source);
    mc_free(c->options);
    mc_free(c);
}

static struct mc_cuda_code *load(struct mc_cuda *d, const struct mc_cuda_job *j, const char *options)
{
    struct mc_cuda_code *c = mc_calloc(1, sizeof *c, "kernels");
    if (!c) {
        return NULL;
    }
    *c = (struct mc_cuda_code){ .device = d, .key = j->key, .refs = 1 };
    c->source = mc_strdup(j->source);
    c->options = mc_strdup(options ? options : "");
    if (!c->source || !c->options || explain(d, j, mc_nv.cuModuleLoadData(&c->module, j->image.s)) < 0) {
        destroy(c);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    c->next = loaded;
    loaded = c;
    pthread_mutex_unlock(&lock);
    return c;
}

/* Finds the loaded ones, makes the machine code of the others at once, then loads those.  The device is
 * entered, so one thread loads at a time. */
static mc_status load_all(struct mc_cuda *d, int n, struct mc_cuda_job *j, const char *options,
                          struct mc_cuda_code **out)
{
    struct mc_cuda_job *missing[MC_CUDA_TEXTS];
    int left = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++) {
        out[i] = find_loaded(d, j[i].key);
        if (!out[i]) {
            missing[left++] = &j[i];
        }
    }
    pthread_mutex_unlock(&lock);
    const double start = mc_now();
    TRY(mc_cuda_job_images(missing, left));
    const double images = mc_now();
    for (int i = 0; i < n; i++) {
        out[i] = out[i] ? out[i] : load(d, &j[i], options);
        if (!out[i]) {
            return mc_last_status();
        }
    }
    LOG(LOG_TIME, "%d texts of kernels: machine code in %.3f ms, loaded in %.3f ms", left,
        (images - start) * 1e3, (mc_now() - images) * 1e3);
    return MC_OK;
}

mc_status mc_cuda_code_load_all(struct mc_cuda *d, int n, const char *const *source, const char *options,
                                struct mc_cuda_code **out)
{
    struct mc_cuda_job j[MC_CUDA_TEXTS] = { 0 };
    mc_status s = MC_OK;
    for (int i = 0; i < n; i++) {
        out[i] = NULL;
        s = s < 0 ? s : mc_cuda_job_begin(&j[i], source[i], options, d->sm);
    }
    s = s < 0 ? s : mc_cuda_enter(d);
    if (s == MC_OK) {
        s = load_all(d, n, j, options, out);
        mc_cuda_leave(d);
    }
    for (int i = 0; i < n; i++) {
        mc_cuda_job_free(&j[i]);
        if (s < 0) {
            mc_cuda_code_free(out[i]);
            out[i] = NULL;
        }
    }
    return s;
}

struct mc_cuda_code *mc_cuda_code_load(struct mc_cuda *d, const char *source, const char *options)
{
    struct mc_cuda_code *c = NULL;
    mc_cuda_code_load_all(d, 1, &source, options, &c);
    return c;
}

struct mc_cuda_input mc_cuda_code_input(const struct mc_cuda_code *c)
{
    return (struct mc_cuda_input){ c->source, c->options };
}

void *mc_cuda_code_kernel(struct mc_cuda_code *c, const char *name)
{
    void *kernel = NULL;
    if (mc_cuda_enter(c->device) < 0) {
        return NULL;
    }
    if (mc_nv.cuModuleGetFunction(&kernel, c->module, name) != 0) {
        kernel = NULL;
    }
    mc_cuda_leave(c->device);
    return kernel;
}

void mc_cuda_code_free(struct mc_cuda_code *c)
{
    if (!c) {
        return;
    }
    pthread_mutex_lock(&lock);
    const bool last = --c->refs == 0;
    struct mc_cuda_code **at = &loaded;
    while (last && *at != c) {
        at = &(*at)->next;
    }
    if (last) {
        *at = c->next;
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        if (mc_cuda_usable(c->device) && mc_cuda_enter(c->device) == MC_OK) {
            mc_nv.cuStreamSynchronize(c->device->stream); /* its kernels may still be running */
            mc_nv.cuModuleUnload(c->module);
            mc_cuda_leave(c->device);
        }
        destroy(c);
    }
}
