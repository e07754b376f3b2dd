/* nvrtc.c: CUDA C text to machine code for one architecture: of a bundle, from the folder of compiled
 * kernels, or by NVRTC.
 *
 * Invariant: no GPU is needed or entered here, so several threads may compile texts at the same time. */
#include "device/cuda/driver.h"
#include <stdio.h>

enum { LOG_LINES = 24 };

static const char suffix[] = ".cubin";
static const char file_name[] = "kernel.cu"; /* the name of the text in the compiler's messages */

static const char arch_option[] = "--gpu-architecture=";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects stats */
static struct mc_cuda_code_stats stats;

/* ---- architecture and options ---- */

static mc_status pick_arch(struct mc_cuda_job *j, const struct mc_cuda_compiler *c, int sm)
{
    int best = 0;
    for (int i = 0; i < c->n; i++) {
        best = c->sm[i] <= sm && c->sm[i] > best ? c->sm[i] : best;
    }
    if (!best) {
        return mc_fail(
            MC_EDEVICE,
            "NVRTC %s compiles nothing for GPUs as old as compute capability %d.%d; its oldest is %d.%d",
            c->version, sm / 10, sm % 10, c->sm[0] / 10, c->sm[0] % 10);
    }
    j->portable = best != sm;
    mc_snprintf(j->arch, sizeof j->arch, "%s%s_%d%s", arch_option, j->portable ? "compute" : "sm", best,
                best == 90 && !j->portable ? "a" : ""); /* sm_90a: instructions that only Hopper has */
    return MC_OK;
}

const char *mc_cuda_job_arch(const struct mc_cuda_job *j)
{
    return j->arch + sizeof arch_option - 1;
}

/* A first line "// --option" of the text adds that option. */
static mc_status split_options(struct mc_cuda_job *j, const char *source, const char *options)
{
    static const char blank[] = " \t\n";
    const bool asks = strncmp(source, "// --", 5) == 0;
    j->option[j->n++] = j->arch;
    j->option[j->n++] = "--std=c++17";
    struct mc_str words = { 0 };
    mc_str_addf(&words, "%s %.*s", options ? options : "", asks ? (int)strcspn(source + 3, "\n") : 0,
                asks ? source + 3 : "");
    j->words = words.s;
    if (words.bad || !j->words) {
        return MC_EMEMORY;
    }
    for (char *w = j->words + strspn(j->words, blank); *w; w += strspn(w, blank)) {
        if (j->n == NV_OPTIONS) {
            return mc_fail(MC_EARG, "more than %d options for NVRTC: %s", NV_OPTIONS - 2, options);
        }
        j->option[j->n++] = w;
        w += strcspn(w, blank);
        if (*w) {
            *w++ = '\0';
        }
    }
    return MC_OK;
}

static bool bundled_image(struct mc_cuda_job *j, const char *options, int sm)
{
    char arch[MC_IMAGE_ARCH];
    j->bundled = mc_image_find(mc_image_text(j->source, options), mc_cuda_arch_rank, sm, &j->image, arch);
    if (j->bundled) {
        mc_snprintf(j->arch, sizeof j->arch, "%s%.*s", arch_option,
                    (int)(sizeof j->arch - sizeof arch_option), arch);
        const char *part[] = { "bundle", j->arch, options ? options : "", j->source };
        j->key = mc_key(part, NELEM(part));
    }
    return j->bundled;
}

mc_status mc_cuda_job_begin(struct mc_cuda_job *j, const char *source, const char *options, int sm)
{
    *j = (struct mc_cuda_job){ .source = source };
    struct mc_cuda_compiler c;
    if (bundled_image(j, options, sm)) {
        return mc_cuda_image_check(&j->image);
    }
    const mc_status s = mc_cuda_compiler(&c);
    if (s < 0) {
        return mc_images_published() ? mc_fail_again("no bundle that is loaded has this kernel for sm_%d (a "
                                                     "function is called at each size before it is saved): ",
                                                     sm)
                                     : s;
    }
    TRY(pick_arch(j, &c, sm));
    TRY(split_options(j, source, options));
    const char *part[] = { "cuda", c.version, j->arch, options ? options : "", source };
    j->key = mc_key(part, NELEM(part));
    return MC_OK;
}

/* ---- compiling ---- */

static mc_status nvrtc_error(const char *what, int code)
{
    return mc_fail(MC_ECOMPILE, "NVRTC: %s: %s", what, mc_nv.nvrtcGetErrorString(code));
}

/* An error with the first lines of the compiler's log, which quotes the source. */
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

static mc_status take_image(struct mc_cuda_job *j, void *program)
{
    struct mc_str *image = &j->image;
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

static mc_status compile(struct mc_cuda_job *j)
{
    void *program = NULL;
    TRY(mc_nv_need(NV_NVRTC));
    const double start = mc_now();
    int code = mc_nv.nvrtcCreateProgram(&program, j->source, file_name, 0, NULL, NULL);
    if (code) {
        return nvrtc_error("taking the text", code);
    }
    code = mc_nv.nvrtcCompileProgram(program, j->n, j->option);
    mc_status s = code ? refused(program, code) : take_image(j, program);
    mc_nv.nvrtcDestroyProgram(&program);
    if (s == MC_OK) {
        mc_cache_put(j->key, suffix, j->image.s, j->image.n);
        pthread_mutex_lock(&lock);
        stats.compiled++;
        stats.seconds += mc_now() - start;
        pthread_mutex_unlock(&lock);
    }
    return s;
}

mc_status mc_cuda_job_image(struct mc_cuda_job *j)
{
    if (j->bundled) {
        pthread_mutex_lock(&lock);
        stats.from_bundle++;
        pthread_mutex_unlock(&lock);
        return MC_OK;
    }
    if (mc_cache_find(j->key, suffix, &j->image, NULL)) {
        pthread_mutex_lock(&lock);
        stats.from_disk++;
        pthread_mutex_unlock(&lock);
        return MC_OK;
    }
    mc_str_free(&j->image);
    return compile(j);
}

void mc_cuda_job_free(struct mc_cuda_job *j)
{
    mc_str_free(&j->image);
    mc_free(j->words);
}

mc_status mc_cuda_compile_only(const char *source, const char *options, int sm, size_t *bytes)
{
    struct mc_cuda_job j;
    mc_status s = mc_cuda_job_begin(&j, source, options, sm);
    s = s < 0 ? s : mc_cuda_job_image(&j);
    *bytes = s == MC_OK ? j.image.n : 0;
    mc_cuda_job_free(&j);
    return s;
}

/* ---- several at once ---- */

static void *work(void *arg)
{
    struct mc_cuda_job *j = arg;
    j->status = mc_cuda_job_image(j);
    mc_snprintf(j->why, sizeof j->why, "%s",
                j->status < 0 ? mc_last_error() : ""); /* the last error is per thread */
    return NULL;
}

mc_status mc_cuda_job_images(struct mc_cuda_job **job, int n)
{
    pthread_t thread[MC_CUDA_TEXTS];
    bool started[MC_CUDA_TEXTS] = { false };
    mc_status s = MC_OK;
    for (int i = 0; i < n; i++) {
        started[i] = i < n - 1 && pthread_create(&thread[i], NULL, work, job[i]) == 0;
        if (!started[i]) {
            work(job[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        if (started[i]) {
            pthread_join(thread[i], NULL);
        }
        if (job[i]->status < 0 && s == MC_OK) {
            s = job[i]->status == MC_EMEMORY ? mc_fail_memory(0, "kernels")
                                             : mc_fail(job[i]->status, "%s", job[i]->why);
        }
    }
    return s;
}

struct mc_cuda_code_stats mc_cuda_compiled(void)
{
    pthread_mutex_lock(&lock);
    struct mc_cuda_code_stats s = stats;
    pthread_mutex_unlock(&lock);
    return s;
}
