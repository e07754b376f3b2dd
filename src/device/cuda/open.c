/* open.c: finds and opens NVIDIA's libraries and looks up their functions.
 *
 * Invariant: a library is opened at the first mc_nv_need or mc_nv_found and stays open.  If it was not
 * found, it is searched again only after the flag cuda.path has changed. */
#include "device/cuda/cuda.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

struct mc_nv mc_nv;

/* ---- the libraries ---- */

static bool driver_version(char *out, size_t n);
static bool nvrtc_version(char *out, size_t n);
static bool blas_version(char *out, size_t n);
static bool dnn_version(char *out, size_t n);
static bool fft_version(char *out, size_t n);
static bool cublas_version(char *out, size_t n);
static bool solver_version(char *out, size_t n);
static bool nccl_version(char *out, size_t n);

static const struct library {
    const char *name;
    const char *file[3];                    /* the newest first */
    bool (*version)(char *out, size_t n);
    const char *cost;                       /* effect of its absence */
    enum mc_nv_lib before[3];               /* opened first: this library loads them by file name */
    int nbefore;
} library[NV_LIBS] = {
    [NV_DRIVER]   = { "the NVIDIA driver", { "libcuda.so.1" }, driver_version, "no GPU can be used" },
    [NV_NVRTC]    = { "NVRTC", { "libnvrtc.so.13", "libnvrtc.so.12" }, nvrtc_version,
                      "no kernel can be compiled, so nothing runs on a GPU" },
    [NV_CUBLASLT] = { "cuBLASLt", { "libcublasLt.so.13", "libcublasLt.so.12" }, blas_version,
                      "matrix products run on kernels of our own" },
    [NV_CUDNN]    = { "cuDNN", { "libcudnn.so.9" }, dnn_version,
                      "convolutions and pooling run on kernels of our own",
                      { NV_NVRTC, NV_CUBLASLT }, 2 },
    [NV_CUFFT]    = { "cuFFT", { "libcufft.so.12", "libcufft.so.11" }, fft_version,
                      "Fourier transforms run on the host" },
    [NV_CUBLAS]   = { "cuBLAS", { "libcublas.so.13", "libcublas.so.12" }, cublas_version,
                      "systems with large triangular matrices are solved on the host", { NV_CUBLASLT }, 1 },
    [NV_CUSOLVER] = { "cuSOLVER", { "libcusolver.so.12", "libcusolver.so.11" }, solver_version,
                      "large matrices are factored on the host", { NV_CUBLASLT, NV_CUBLAS }, 2 },
    [NV_NCCL]     = { "NCCL", { "libnccl.so.2" }, nccl_version, "ranks exchange data through the host" },
};

static const struct symbol {
    const char *name;
    enum mc_nv_lib lib;
    size_t at;
    bool may_lack;
} symbol[] = {
#define NV(lib, ret, name, args) { #name, lib, offsetof(struct mc_nv, name), false },
#define NV_MAY(lib, ret, name, args) { #name, lib, offsetof(struct mc_nv, name), true },
#include "device/cuda/api.def"
#undef NV
};

/* Subfolders that are searched in a folder of the flag cuda.path. */
static const char *const corner[] = { "", "/lib", "/lib64", "/*/lib", "/nvidia/*/lib" };
/* Folders of installers that the loader does not search; tried last. */
static const char *const usual[] = { "/usr/local/cuda/lib64", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib" };

/* ---- versions ---- */

static bool driver_version(char *out, size_t n)
{
    int v;
    if (mc_nv.cuDriverGetVersion(&v) != 0) {
        return false;
    }
    return mc_snprintf(out, n, "CUDA %d.%d", v / 1000, v % 1000 / 10) > 0;
}

static bool nvrtc_version(char *out, size_t n)
{
    int major, minor;
    return mc_nv.nvrtcVersion(&major, &minor) == 0 && mc_snprintf(out, n, "%d.%d", major, minor) > 0;
}

static bool blas_version(char *out, size_t n)
{
    const int v = (int)mc_nv.cublasLtGetVersion();
    return mc_snprintf(out, n, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100) > 0;
}

static bool dnn_version(char *out, size_t n)
{
    const int v = (int)mc_nv.cudnnGetVersion();
    return mc_snprintf(out, n, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100) > 0;
}

static bool fft_version(char *out, size_t n)
{
    int v;
    return mc_nv.cufftGetVersion(&v) == 0 &&
           mc_snprintf(out, n, "%d.%d.%d", v / 1000, v / 100 % 10, v % 100) > 0;
}

/* get: a library's function of its version's parts */
static bool version_of(int (*get)(int which, int *value), char *out, size_t n)
{
    int part[3];
    for (int i = 0; i < 3; i++) {
        if (get(i, &part[i]) != 0) {
            return false;
        }
    }
    return mc_snprintf(out, n, "%d.%d.%d", part[0], part[1], part[2]) > 0;
}

static bool cublas_version(char *out, size_t n)
{
    return version_of(mc_nv.cublasGetProperty, out, n);
}

static bool solver_version(char *out, size_t n)
{
    return version_of(mc_nv.cusolverGetProperty, out, n);
}

static bool nccl_version(char *out, size_t n)
{
    int v;
    return mc_nv.ncclGetVersion(&v) == 0 &&
           mc_snprintf(out, n, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100) > 0;
}

/* ---- finding a file ---- */

static struct state {
    struct mc_nv_found found;
    const char *flag;                       /* cuda.path at the last search */
    void *handle;
} state[NV_LIBS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Keeps the loader's message unless the file does not exist. */
static bool try_file(struct state *s, const char *path)
{
    s->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *said = s->handle ? NULL : dlerror();
    if (said && !strstr(said, "No such file or directory")) {
        mc_snprintf(s->found.why, sizeof s->found.why, "%s", said);
    }
    return s->handle != NULL;
}

static bool try_pattern(struct state *s, const char *folder, size_t n, const char *part, const char *file)
{
    char pattern[512];
    glob_t g;
    bool found = false;
    if ((size_t)mc_snprintf(pattern, sizeof pattern, "%.*s%s/%s", (int)n, folder, part, file) >=
            sizeof pattern ||
        glob(pattern, 0, NULL, &g) != 0) {
        return false;
    }
    for (size_t i = 0; i < g.gl_pathc && !found; i++) {
        found = try_file(s, g.gl_pathv[i]);
    }
    globfree(&g);
    return found;
}

static bool try_folders(struct state *s, const char *folders, const char *file)
{
    for (const char *f = folders; *f;) {
        size_t n = strcspn(f, ":");
        for (size_t i = 0; n && i < NELEM(corner); i++) {
            if (try_pattern(s, f, n, corner[i], file)) {
                return true;
            }
        }
        f += n + (f[n] == ':');
    }
    return false;
}

static bool find_file(struct state *s, const struct library *l)
{
    for (size_t i = 0; i < NELEM(l->file) && l->file[i]; i++) {
        if (try_folders(s, s->flag, l->file[i]) || try_file(s, l->file[i])) {
            return true;
        }
        for (size_t k = 0; k < NELEM(usual); k++) {
            if (try_pattern(s, usual[k], strlen(usual[k]), "", l->file[i])) {
                return true;
            }
        }
    }
    if (!s->found.why[0]) {
        mc_snprintf(s->found.why, sizeof s->found.why, "%s%s%s was not found", l->file[0],
                    l->file[1] ? " or " : "", l->file[1] ? l->file[1] : "");
    }
    return false;
}

/* ---- opening ---- */

/* memcpy: POSIX allows dlsym to return a function as void *, but ISO C has no cast for it. */
static bool take_symbols(struct state *s, enum mc_nv_lib lib)
{
    Dl_info where;
    for (size_t i = 0; i < NELEM(symbol); i++) {
        if (symbol[i].lib != lib) {
            continue;
        }
        void *at = dlsym(s->handle, symbol[i].name);
        memcpy((char *)&mc_nv + symbol[i].at, &at, sizeof at);
        if (!at && symbol[i].may_lack) {
            continue;
        }
        if (!at) {
            mc_snprintf(s->found.why, sizeof s->found.why, "it has no %s: it is too old", symbol[i].name);
            return false;
        }
        if (!s->found.file[0] && dladdr(at, &where) && where.dli_fname) {
            mc_snprintf(s->found.file, sizeof s->found.file, "%s", where.dli_fname);
        }
    }
    return true;
}

/* NVRTC loads its library of built-in functions by file name, and the loader may not search NVRTC's own
 * folder.  If that library is already open, the name suffices. */
static bool open_builtins(struct state *s)
{
    char path[320];
    const char *slash = strrchr(s->found.file, '/');
    const int folder = slash ? (int)(slash - s->found.file) + 1 : 0;
    mc_snprintf(path, sizeof path, "%.*slibnvrtc-builtins.so.%s", folder, s->found.file, s->found.version);
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL) || dlopen(path + folder, RTLD_NOW | RTLD_LOCAL)) {
        return true;
    }
    mc_snprintf(s->found.why, sizeof s->found.why, "its %s was not found beside it", path + folder);
    return false;
}

static void open_library(enum mc_nv_lib lib) /* under the lock */
{
    struct state *s = &state[lib];
    const struct library *l = &library[lib];
    const char *flag = mc_flag_text(FLAG_cuda_path);
    if (s->found.present || (s->found.tried && s->flag == flag)) { /* flag texts are interned */
        return;
    }
    *s = (struct state){ .found = { .name = l->name, .cost = l->cost, .tried = true }, .flag = flag };
    for (int i = 0; i < l->nbefore; i++) {
        open_library(l->before[i]);
    }
    const double start = mc_now();
    if (!find_file(s, l)) {
        return;
    }
    if (take_symbols(s, lib)) {
        s->found.present = l->version(s->found.version, sizeof s->found.version);
        if (!s->found.present) {
            mc_snprintf(s->found.why, sizeof s->found.why, "it does not report its version");
        }
        s->found.present = s->found.present && (lib != NV_NVRTC || open_builtins(s));
    }
    if (s->found.present) {
        s->found.why[0] = '\0';
        LOG(LOG_TIME, "%s opened in %.3f ms", l->name, (mc_now() - start) * 1e3);
    } else {
        dlclose(s->handle);
        s->handle = NULL;
    }
}

const struct mc_nv_found *mc_nv_found(enum mc_nv_lib lib)
{
    pthread_mutex_lock(&lock);
    open_library(lib);
    pthread_mutex_unlock(&lock);
    return &state[lib].found;
}

bool mc_nv_opened(enum mc_nv_lib lib)
{
    pthread_mutex_lock(&lock);
    bool tried = state[lib].found.tried;
    pthread_mutex_unlock(&lock);
    return tried;
}

mc_status mc_nv_need(enum mc_nv_lib lib)
{
    const struct mc_nv_found *f = mc_nv_found(lib);
    return f->present ? MC_OK : mc_fail(MC_EDEVICE, "%s is needed: %s", f->name, f->why);
}
