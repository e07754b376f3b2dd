/* info.c: describes the machine as the library sees it, and the compilation of a function.
 *
 * The only side effects: the compiler is tried once, and libraries are opened. */
#include "base/flag.h"
#include "device/cache.h"
#include "exec/backend.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

/* ---- a function ---- */

mc_compile_info mc_function_compile_info(const mc_function *f)
{
    mc_compile_info info = { 0 };
    if (f) {
        info = (mc_compile_info){ f->code->compile_seconds, f->code->rewrite_seconds, f->code->cc_seconds,
                                  f->code->nodes_before,    f->code->nodes_after,     f->plan_seconds };
    }
    return info;
}

/* ---- the machine ---- */

/* Bytes and number of the files in a folder, without its subfolders. */
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
        mc_str_bytes(out, folder_bytes(kernels.s, &files));
        mc_str_addf(out, " in %d files, at most ", files);
        mc_str_bytes(out, (double)mc_flag_int(FLAG_cache_size));
    }
    mc_str_addf(out, "%s%s\n", *mc_cache_refused() ? ", for it would not be safe: " : "", mc_cache_refused());
    mc_str_free(&kernels);
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
    mc_backends_describe(&out);
    cache(&out);
    changed_flags(&out);
    mc_status s = out.bad ? MC_EMEMORY
                  : fwrite(out.s, 1, out.n, to) == out.n
                      ? MC_OK
                      : mc_fail(MC_EFILE, "info: cannot write: %s", strerror(errno));
    mc_str_free(&out);
    return s;
}

int mc_has(const char *library)
{
    const int has = library ? mc_backends_have(library) : -1;
    return has >= 0
               ? has
               : mc_fail(MC_EARG,
                         "has: there is no library '%s'; there are cuda, nvrtc, cublaslt, cublas, cudnn, "
                         "cufft, cusolver, nccl, onednn, blas, lapack and openmp",
                         library ? library : "NULL");
}
