/* compiler.c: the version of NVRTC and its architectures, from a note on disk if there is a valid one.
 *
 * Opening NVRTC takes longer than loading all kernels of a function.  So its version and architectures are
 * noted in the folder of compiled kernels, with the search paths as key.  A process that finds all its
 * kernels there never opens NVRTC.
 *
 * Invariant: a note is valid while NVRTC's file has the same path, inode, size and time. */
#include "device/cuda/driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char suffix[] = ".cc";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `known` and `flag` */
static struct mc_cuda_compiler known;
static const char *flag; /* cuda.path when `known` was set; NULL: it is not set */

static struct mc_key key_of_machine(void)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    const char *part[] = { "which nvrtc", mc_flag_text(FLAG_cuda_path), path ? path : "" };
    return mc_key(part, NELEM(part));
}

/* Inode, size and time of the file as text; false: there is no such file. */
static bool stamp(const char *file, char *out, size_t n)
{
    struct stat st;
    return stat(file, &st) == 0 &&
           mc_snprintf(out, n, "%llu.%lld.%lld.%09ld", (unsigned long long)st.st_ino, (long long)st.st_size,
                       (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec) > 0;
}

/* ---- the note: stamp, version, architectures; then the file ---- */

static bool read_note(const char *text, struct mc_cuda_compiler *c)
{
    char was[96], is[96];
    int at = 0, step;
    if (sscanf(text, "%95s %31s %d%n", was, c->version, &c->n, &at) != 3 || c->n < 1 ||
        c->n > (int)NELEM(c->sm)) {
        return false;
    }
    for (int i = 0; i < c->n; i++, at += step) {
        if (sscanf(text + at, "%d%n", &c->sm[i], &step) != 1) {
            return false;
        }
    }
    return text[at] == ' ' && stamp(text + at + 1, is, sizeof is) && strcmp(was, is) == 0;
}

static bool from_note(struct mc_cuda_compiler *c)
{
    struct mc_str text = { 0 };
    bool good = mc_cache_find(key_of_machine(), suffix, &text, NULL) && read_note(text.s, c);
    mc_str_free(&text);
    return good;
}

static void put_note(const struct mc_cuda_compiler *c, const char *file)
{
    struct mc_str text = { 0 };
    char is[96];
    if (!stamp(file, is, sizeof is)) {
        return;
    }
    mc_str_addf(&text, "%s %s %d", is, c->version, c->n);
    for (int i = 0; i < c->n; i++) {
        mc_str_addf(&text, " %d", c->sm[i]);
    }
    mc_str_addf(&text, " %s", file);
    if (!text.bad) {
        mc_cache_put(key_of_machine(), suffix, text.s, text.n);
    }
    mc_str_free(&text);
}

/* ---- opening NVRTC ---- */

static mc_status ask(struct mc_cuda_compiler *c)
{
    TRY(mc_nv_need(NV_NVRTC));
    const struct mc_nv_found *f = mc_nv_found(NV_NVRTC);
    if (mc_nv.nvrtcGetNumSupportedArchs(&c->n) != 0 || c->n < 1 || c->n > (int)NELEM(c->sm) ||
        mc_nv.nvrtcGetSupportedArchs(c->sm) != 0) {
        return mc_fail(MC_EDEVICE, "NVRTC does not say which architectures it knows");
    }
    mc_snprintf(c->version, sizeof c->version, "%s", f->version);
    put_note(c, f->file);
    return MC_OK;
}

mc_status mc_cuda_compiler(struct mc_cuda_compiler *out)
{
    const char *now = mc_flag_text(FLAG_cuda_path); /* interned: equal texts, equal addresses */
    mc_status s = MC_OK;
    pthread_mutex_lock(&lock);
    if (flag != now) {
        s = !mc_nv_opened(NV_NVRTC) && from_note(&known) ? MC_OK : ask(&known);
        flag = s == MC_OK ? now : NULL;
    }
    *out = known;
    pthread_mutex_unlock(&lock);
    return s;
}
