/* code.c: CUDA C text to kernels: NVRTC makes machine code for the GPU's own architecture, which is kept
 * in the folder of compiled kernels; the driver loads it.
 *
 * Invariant: one struct mc_cuda_code a device and key, counted; loading a text twice costs a look-up. */
#include "device/cache.h"
#include "device/cuda/driver.h"
#include <stdio.h>

enum { OPTIONS = 32, LOG_LINES = 24 };

static const char suffix[] = ".cubin";
static const char file_name[] = "kernel.cu"; /* what the compiler's messages call the text */

struct mc_cuda_code {
    struct mc_cuda_code *next;
    struct mc_cuda *device;
    struct mc_key key;
    void *module;
    int refs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and the counts */
static struct mc_cuda_code *loaded;
static struct mc_cuda_code_stats stats;

struct mc_cuda_code_stats mc_cuda_code_stats(void)
{
    pthread_mutex_lock(&lock);
    struct mc_cuda_code_stats s = stats;
    pthread_mutex_unlock(&lock);
    return s;
}

/* ---- what NVRTC is asked ---- */

struct job {
    const char *source;
    char arch[40];              /* "--gpu-architecture=sm_90" */
    bool portable;              /* NVRTC does not know the GPU: it gives PTX, which the driver finishes */
    char *words;                /* the user's options, cut up */
    const char *option[OPTIONS];
    int n;
    struct mc_key key;
};

static mc_status pick_arch(struct job *j, int sm)
{
    int known[64], n = 0, best = 0;
    if (mc_nv.nvrtcGetNumSupportedArchs(&n) != 0 || n < 1 || n > (int)NELEM(known) ||
        mc_nv.nvrtcGetSupportedArchs(known) != 0) {
        return mc_fail(MC_EDEVICE, "NVRTC does not say which architectures it knows");
    }
    for (int i = 0; i < n; i++) {
        best = known[i] <= sm && known[i] > best ? known[i] : best;
    }
    if (!best) {
        return mc_fail(MC_EDEVICE, "NVRTC %s compiles nothing for GPUs as old as compute capability %d.%d; its oldest is %d.%d",
                       mc_nv_found(NV_NVRTC)->version, sm / 10, sm % 10, known[0] / 10, known[0] % 10);
    }
    j->portable = best != sm;
    snprintf(j->arch, sizeof j->arch, "--gpu-architecture=%s_%d", j->portable ? "compute" : "sm", best);
    return MC_OK;
}

static mc_status split_options(struct job *j, const char *options)
{
    static const char blank[] = " \t\n";
    j->option[j->n++] = j->arch;
    j->option[j->n++] = "--std=c++17";
    j->words = mc_strdup(options ? options : "");
    if (!j->words) {
        return MC_EMEMORY;
    }
    for (char *w = j->words + strspn(j->words, blank); *w; w += strspn(w, blank)) {
        if (j->n == OPTIONS) {
            return mc_fail(MC_EARG, "more than %d options for NVRTC: %s", OPTIONS - 2, options);
        }
        j->option[j->n++] = w;
        w += strcspn(w, blank);
        if (*w) {
            *w++ = '\0';
        }
    }
    return MC_OK;
}

static mc_status job_begin(struct job *j, const char *source, const char *options, int sm)
{
    *j = (struct job){ .source = source };
    TRY(mc_nv_need(NV_NVRTC));
    TRY(pick_arch(j, sm));
    TRY(split_options(j, options));
    const char *part[] = { "cuda", mc_nv_found(NV_NVRTC)->version, j->arch, options ? options : "", source };
    j->key = mc_key(part, NELEM(part));
    return MC_OK;
}

/* ---- compiling ---- */

static mc_status nvrtc_error(const char *what, int code)
{
    return mc_fail(MC_ECOMPILE, "NVRTC: %s: %s", what, mc_nv.nvrtcGetErrorString(code));
}

/* The first lines of what the compiler says; it quotes the text's lines itself. */
static mc_status refused(void *program, int code)
{
    size_t n = 0, shown = 0;
    char *log = NULL;
    if (mc_nv.nvrtcGetProgramLogSize(program, &n) != 0 || n < 2) {
        return nvrtc_error("compiling", code);
    }
    log = mc_calloc(1, n + 1, "kernels");
    if (!log) {
        return MC_EMEMORY;
    }
    mc_nv.nvrtcGetProgramLog(program, log);
    for (int i = 0; i < LOG_LINES && log[shown]; i++) {
        shown += strcspn(log + shown, "\n");
        shown += log[shown] == '\n';
    }
    mc_status s = mc_fail(MC_ECOMPILE, "the CUDA compiler refuses a kernel's text\n%.*s", (int)shown, log);
    mc_free(log);
    return s;
}

static mc_status take_image(const struct job *j, void *program, struct mc_str *image)
{
    size_t n = 0;
    int code = j->portable ? mc_nv.nvrtcGetPTXSize(program, &n) : mc_nv.nvrtcGetCUBINSize(program, &n);
    if (code || n == 0) {
        return nvrtc_error("reading the machine code", code);
    }
    if (!mc_vec_grow((void **)&image->s, &image->cap, n + 1, 1)) {
        return MC_EMEMORY;
    }
    code = j->portable ? mc_nv.nvrtcGetPTX(program, image->s) : mc_nv.nvrtcGetCUBIN(program, image->s);
    if (code) {
        return nvrtc_error("reading the machine code", code);
    }
    image->n = n;
    image->s[n] = '\0';
    return MC_OK;
}

static mc_status compile(const struct job *j, struct mc_str *image)
{
    void *program = NULL;
    const double start = mc_now();
    int code = mc_nv.nvrtcCreateProgram(&program, j->source, file_name, 0, NULL, NULL);
    if (code) {
        return nvrtc_error("taking the text", code);
    }
    code = mc_nv.nvrtcCompileProgram(program, j->n, j->option);
    mc_status s = code ? refused(program, code) : take_image(j, program, image);
    mc_nv.nvrtcDestroyProgram(&program);
    if (s == MC_OK) {
        mc_cache_put(j->key, suffix, image->s, image->n);
        pthread_mutex_lock(&lock);
        stats.compiled++;
        stats.seconds += mc_now() - start;
        pthread_mutex_unlock(&lock);
    }
    return s;
}

static mc_status image_of(const struct job *j, struct mc_str *image)
{
    struct mc_str path = { 0 };
    const bool found = mc_cache_find(j->key, suffix, &path, image);
    mc_str_free(&path);
    if (found) {
        pthread_mutex_lock(&lock);
        stats.from_disk++;
        pthread_mutex_unlock(&lock);
        return MC_OK;
    }
    mc_str_free(image);
    *image = (struct mc_str){ 0 };
    return compile(j, image);
}

mc_status mc_cuda_try(const char *source, const char *options, int sm, size_t *bytes)
{
    struct job j;
    struct mc_str image = { 0 };
    mc_status s = job_begin(&j, source, options, sm);
    if (s == MC_OK) {
        s = image_of(&j, &image);
    }
    *bytes = s == MC_OK ? image.n : 0;
    mc_str_free(&image);
    mc_free(j.words);
    return s;
}

/* ---- loading ---- */

static mc_status explain(struct mc_cuda *d, int code)
{
    mc_status s = mc_cuda_check(d, code, "loading kernels", NULL);
    if (code == NV_CUDA_ERROR_UNSUPPORTED_PTX_VERSION || code == NV_CUDA_ERROR_NO_BINARY_FOR_GPU ||
        code == NV_CUDA_ERROR_INVALID_IMAGE) {
        s = mc_fail_again("NVRTC %s compiled for a driver that speaks %s: ", mc_nv_found(NV_NVRTC)->version,
                          mc_nv_found(NV_DRIVER)->version);
    }
    return s;
}

static struct mc_cuda_code *find_loaded(const struct mc_cuda *d, struct mc_key key) /* under the lock; one more owner */
{
    struct mc_cuda_code *c = loaded;
    while (c && (c->device != d || memcmp(&c->key, &key, sizeof key) != 0)) {
        c = c->next;
    }
    if (c) {
        c->refs++;
        stats.from_memory++;
    }
    return c;
}

static struct mc_cuda_code *load(struct mc_cuda *d, const struct job *j) /* entered: one loads at a time */
{
    struct mc_str image = { 0 };
    pthread_mutex_lock(&lock);
    struct mc_cuda_code *c = find_loaded(d, j->key);
    pthread_mutex_unlock(&lock);
    if (c || image_of(j, &image) < 0) {
        mc_str_free(&image);
        return c;
    }
    c = mc_calloc(1, sizeof *c, "kernels");
    if (c) {
        *c = (struct mc_cuda_code){ .device = d, .key = j->key, .refs = 1 };
        if (explain(d, mc_nv.cuModuleLoadData(&c->module, image.s)) < 0) {
            mc_free(c);
            c = NULL;
        }
    }
    if (c) {
        pthread_mutex_lock(&lock);
        c->next = loaded;
        loaded = c;
        pthread_mutex_unlock(&lock);
    }
    mc_str_free(&image);
    return c;
}

struct mc_cuda_code *mc_cuda_code_load(struct mc_cuda *d, const char *source, const char *options)
{
    struct job j;
    struct mc_cuda_code *c = NULL;
    if (job_begin(&j, source, options, d->sm) == MC_OK && mc_cuda_enter(d) == MC_OK) {
        c = load(d, &j);
        mc_cuda_leave(d);
    }
    mc_free(j.words);
    return c;
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
            mc_nv.cuStreamSynchronize(c->device->stream); /* its kernels may still be at work */
            mc_nv.cuModuleUnload(c->module);
            mc_cuda_leave(c->device);
        }
        mc_free(c);
    }
}
