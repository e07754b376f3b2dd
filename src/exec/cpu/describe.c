/* describe.c: the text of mc_info about the CPU, the compiler and the libraries that were found, and
 * mc_has for these libraries. */
#include "exec/cpu/launch.h"
#include "heavy/gemm/cpu/library.h"
#include <dlfcn.h>

static void processor(struct mc_str *out)
{
    const struct mc_cpu *cpu = mc_cpu();
    const struct { const char *name; bool has; } feature[] = {
        { "avx2", cpu->avx2 },         { "fma", cpu->fma },           { "f16c", cpu->f16c },
        { "avx512f", cpu->avx512f },
        { "avx512vl", cpu->avx512vl }, { "avx512bw", cpu->avx512bw }, { "avx512dq", cpu->avx512dq },
        { "avx512bf16", cpu->avx512bf16 },
    };
    mc_str_addf(out, "processor   %s\nfeatures   ", *cpu->brand ? cpu->brand : "unknown");
    for (size_t i = 0; i < NELEM(feature); i++) {
        mc_str_addf(out, "%s%s", feature[i].has ? " " : "", feature[i].has ? feature[i].name : "");
    }
    mc_str_addf(out, "\nthreads     %d of %d\ncaches      ", mc_team_size(), cpu->threads);
    mc_str_bytes(out, (double)cpu->l1d);
    mc_str_add(out, ", ");
    mc_str_bytes(out, (double)cpu->l2);
    mc_str_add(out, ", ");
    mc_str_bytes(out, (double)cpu->l3);
    mc_str_add(out, "\n");
}

static void compiler(struct mc_str *out)
{
    mc_str_addf(out, "compiler    %s\n",
                mc_cc_present() ? mc_cc_version()
                : mc_cc_known() ? "none: kernels that are in the cache run, and the reference loops"
                                : "none: the reference loops run");
    if (*mc_cc_missing()) {
        mc_str_addf(out, "            %s\n", mc_cc_missing());
    }
    mc_str_addf(out, "            %s\n", mc_cpu_flags());
}

/* POSIX lets a pointer from dlsym be a function's; C has no cast for it. */
static bool find(void *handle, const char *name, void *function)
{
    void *at = dlsym(handle, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}

static void onednn_version(struct mc_str *out, void *handle)
{
    const struct {
        int major, minor, patch;
    } * (*version)(void);
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

static void library(struct mc_str *out, const char *title, enum mc_flag flag, void *handle,
                    const char *symbol, void (*version)(struct mc_str *out, void *handle))
{
    mc_str_addf(out, "%-11s", title);
    if (!handle) {
        mc_str_addf(out, " none%s\n",
                    strcmp(mc_flag_text(flag), "none") == 0 ? ", as its flag says" : " found");
        return;
    }
    version(out, handle);
    const char *file = mc_library_file(dlsym(handle, symbol));
    mc_str_addf(out, "%s%s\n", *file ? " at " : "", file);
}

void mc_cpu_describe(struct mc_str *out)
{
    processor(out);
    compiler(out);
    library(out, "oneDNN", FLAG_onednn, mc_gemm_onednn_library(), "dnnl_sgemm", onednn_version);
    library(out, "BLAS", FLAG_blas, mc_gemm_blas_library(), "sgemm_", blas_version);
}

int mc_cpu_has_library(const char *library)
{
    static const struct {
        const char *name;
        void *(*open)(void); /* NULL: never used */
    } rows[] = {
        { "onednn", mc_gemm_onednn_library },
        { "blas", mc_gemm_blas_library },
        { "lapack", mc_factor_lapack_library },
        { "openmp", NULL },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        if (strcmp(rows[i].name, library) == 0) {
            return rows[i].open && rows[i].open() != NULL;
        }
    }
    return -1;
}
