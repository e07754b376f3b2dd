/* info.c: what the library found on this machine, and what compiling a function took.
 *
 * Invariant: asking changes nothing but this: the compiler is tried once and libraries are opened. */
#include "base/flag.h"
#include "device/cuda/cuda.h"
#include "function/function.h"
#include "gemm/foreign.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>

/* ---- a function ---- */

int mc_function_ninputs(const mc_function *f)
{
    return f ? f->code->program.ninput : 0;
}

int mc_function_noutputs(const mc_function *f)
{
    return f ? f->code->program.noutput : 0;
}

mc_compile_info mc_function_compile_info(const mc_function *f)
{
    mc_compile_info info = { 0 };
    if (f) {
        info = (mc_compile_info){ f->code->compile_seconds, f->code->rewrite_seconds, f->code->cc_seconds, f->code->nodes_before,
                                  f->code->nodes_after, f->plan_seconds };
    }
    return info;
}

/* ---- the machine ---- */

static void size_text(struct mc_str *out, double bytes)
{
    static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < NELEM(unit); u++) {
        bytes /= 1024;
    }
    mc_str_addf(out, "%.*f %s", u && bytes < 10 ? 1 : 0, bytes, unit[u]);
}

static void processor(struct mc_str *out)
{
    const struct mc_cpu *cpu = mc_cpu();
    const struct { const char *name; bool has; } feature[] = {
        { "avx2", cpu->avx2 },         { "fma", cpu->fma },           { "f16c", cpu->f16c },         { "avx512f", cpu->avx512f },
        { "avx512vl", cpu->avx512vl }, { "avx512bw", cpu->avx512bw }, { "avx512dq", cpu->avx512dq }, { "avx512bf16", cpu->avx512bf16 },
    };
    mc_str_addf(out, "processor   %s\nfeatures   ", *cpu->brand ? cpu->brand : "unknown");
    for (size_t i = 0; i < NELEM(feature); i++) {
        mc_str_addf(out, "%s%s", feature[i].has ? " " : "", feature[i].has ? feature[i].name : "");
    }
    mc_str_addf(out, "\nthreads     %d of %d\ncaches      ", mc_team_size(), cpu->threads);
    size_text(out, (double)cpu->l1d);
    mc_str_add(out, ", ");
    size_text(out, (double)cpu->l2);
    mc_str_add(out, ", ");
    size_text(out, (double)cpu->l3);
    mc_str_add(out, "\n");
}

static void compiler(struct mc_str *out)
{
    mc_str_addf(out, "compiler    %s\n", mc_cc_present() ? mc_cc_version()
                : mc_cc_known() ? "none: kernels that are in the cache run, and the reference loops" : "none: the reference loops run");
    if (*mc_cc_missing()) {
        mc_str_addf(out, "            %s\n", mc_cc_missing());
    }
    mc_str_addf(out, "            %s\n", mc_cpu_flags());
}

/* Bytes and number of files of a folder; the folders in it are passed over. */
static double folder_bytes(const char *path, int *files)
{
    double bytes = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        struct mc_str name = { 0 };
        mc_str_addf(&name, "%s/%s", path, e->d_name);
        if (!name.bad && stat(name.s, &st) == 0 && S_ISREG(st.st_mode)) {
            bytes += (double)st.st_size;
            ++*files;
        }
        mc_str_free(&name);
    }
    if (d) {
        closedir(d);
    }
    return bytes;
}

static void cache(struct mc_str *out)
{
    const char *dir = mc_cache_dir();
    struct mc_str kernels = { 0 };
    int files = 0;
    mc_str_addf(&kernels, "%s/kernels", dir);
    mc_str_addf(out, "cache       %s", *dir ? dir : "none");
    if (*dir && !kernels.bad) {
        mc_str_add(out, ": ");
        size_text(out, folder_bytes(kernels.s, &files));
        mc_str_addf(out, " in %d files, at most ", files);
        size_text(out, (double)mc_flag_int(FLAG_cache_size));
    }
    mc_str_addf(out, "%s%s\n", *mc_cache_refused() ? ", for it would not be safe: " : "", mc_cache_refused());
    mc_str_free(&kernels);
}

/* POSIX lets a pointer from dlsym be a function's; C has no cast that says so. */
static bool find(void *handle, const char *name, void *function)
{
    void *at = dlsym(handle, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}

static void onednn_version(struct mc_str *out, void *handle)
{
    const struct { int major, minor, patch; } *(*version)(void);
    if (find(handle, "dnnl_version", (void *)&version)) {
        mc_str_addf(out, " %d.%d.%d", version()->major, version()->minor, version()->patch);
    }
}

static void blas_version(struct mc_str *out, void *handle)
{
    char *(*config)(void);
    void (*mkl)(char *text, int n);
    char text[200] = "";
    if (find(handle, "openblas_get_config", (void *)&config)) {
        mc_str_addf(out, " %s", config());
    } else if (find(handle, "mkl_get_version_string", (void *)&mkl)) {
        mkl(text, (int)sizeof text - 1);
        mc_str_addf(out, " %s", text);
    }
}

static void library(struct mc_str *out, const char *title, enum mc_flag flag, void *handle, const char *symbol,
                    void (*version)(struct mc_str *out, void *handle))
{
    mc_str_addf(out, "%-11s", title);
    if (!handle) {
        mc_str_addf(out, " none%s\n", strcmp(mc_flag_text(flag), "none") == 0 ? ", as its flag says" : " found");
        return;
    }
    version(out, handle);
    const char *file = mc_library_file(dlsym(handle, symbol));
    mc_str_addf(out, "%s%s\n", *file ? " at " : "", file);
}

static void changed_flags(struct mc_str *out)
{
    bool any = false;
    mc_str_add(out, "flags      ");
    for (int f = 0; f < MC_NFLAG; f++) {
        const char *now = mc_flag_text((enum mc_flag)f);
        if (strcmp(now, mc_flag_rows[f].dflt) != 0) {
            mc_str_addf(out, " %s=%s", mc_flag_rows[f].name, now);
            any = true;
        }
    }
    mc_str_add(out, any ? "\n" : " all at their defaults\n");
}

mc_status mc_info(FILE *to)
{
    struct mc_str out = { 0 };
    TRY(mc_flags_status());
    mc_str_addf(&out, "monochord   %s, %d ops\n", MC_VERSION, mc_op_count());
    processor(&out);
    compiler(&out);
    cache(&out);
    library(&out, "oneDNN", FLAG_onednn, mc_gemm_onednn_library(), "dnnl_sgemm", onednn_version);
    library(&out, "BLAS", FLAG_blas, mc_gemm_blas_library(), "sgemm_", blas_version);
    mc_cuda_report(&out);
    changed_flags(&out);
    mc_status s = out.bad ? MC_EMEMORY : fwrite(out.s, 1, out.n, to) == out.n ? MC_OK : mc_fail(MC_EFILE, "info: cannot write: %s", strerror(errno));
    mc_str_free(&out);
    return s;
}
