/* job.c: one compilation: the command, a folder to do it in, the library that comes out.
 *
 * Invariant: what MC_EFILE says is of the place, so another may do; anything else worse than MC_OK is final. */
#include "device/cpu/code.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Measured with gcc 12 on one elementwise kernel: -pipe saves 2 ms, no start files and libraries 4 ms.
 * Where a symbol then turns out to be missing, the library is linked again in the usual way. */
static const char before[] = "-x c -std=gnu11 -O2 -fPIC -shared -fno-math-errno -fno-trapping-math"
                             " -fno-semantic-interposition -fno-asynchronous-unwind-tables -g0 -w -pipe"
                             " -Wno-error=implicit-function-declaration"; /* of libm's, in an op of the user's: gcc 14 would refuse them */
static const char gcc_only[] = "-ftree-vectorize -fvect-cost-model=dynamic"; /* clang vectorises at -O2 by itself */
static const char lean[] = "-nostdlib -Wl,--as-needed -lm"; /* as-needed: versioned symbols, yet cheap */
static const char usual[] = "-lm";

/* Where a library may be made, in this order, after the cache folder. */
static const struct {
    const char *variable, *path;
} places[] = {
    { "TMPDIR", NULL },
    { NULL, "/tmp" },
    { NULL, "/var/tmp" },
    { NULL, "/dev/shm" },
};

static mc_status no_good(const char *what, const char *place)
{
    return mc_fail(MC_EFILE, "cannot %s in '%s': %s", what, place, strerror(errno));
}

static mc_status write_source(const char *work, const char *source, int *fd)
{
    struct mc_str path = { 0 };
    mc_str_addf(&path, "%s/kernel.c", work);
    if (path.bad) {
        mc_str_free(&path);
        return MC_EMEMORY;
    }
    *fd = open(path.s, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    mc_str_free(&path);
    for (size_t n = strlen(source); *fd >= 0 && n > 0;) {
        ssize_t put = write(*fd, source, n);
        if (put < 0 && errno != EINTR) {
            return no_good("write", work);
        }
        source += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return *fd < 0 ? no_good("write", work) : MC_OK;
}

/* Did the compiler fail for a reason that lies in the place? */
static bool place_at_fault(const char *said)
{
    static const char *const reason[] = { "No space left", "quota exceeded", "Read-only file system",
                                          "Permission denied", "Input/output error" };
    for (size_t i = 0; i < NELEM(reason); i++) {
        if (strstr(said, reason[i])) {
            return true;
        }
    }
    return said[0] == '\0';
}

static mc_status refused(const struct mc_job *j, const char *linking, const char *said, int code)
{
    enum { LINES = 20 };
    const char *end = said;
    for (int i = 0; i < LINES && *end; i++) {
        end += strcspn(end, "\n");
        end += *end == '\n';
    }
    return mc_fail(place_at_fault(said) ? MC_EFILE : MC_ECOMPILE, "the C compiler ends with code %d: %s - %s\n%.*s",
                   code, j->command.s, linking, (int)(end - said), said);
}

static mc_status run_cc(struct mc_job *j, const char *linking, const char *work, int source, const char *out)
{
    struct mc_words w = { 0 };
    struct mc_str said = { 0 };
    int code = 0;
    mc_status s = MC_EMEMORY;
    if (mc_words_split(&w, j->command.s) && mc_words_add(&w, "-o", 2) && mc_words_add(&w, out, strlen(out)) &&
        mc_words_add(&w, "-", 1) && mc_words_split(&w, linking)) {
        double start = mc_now();
        lseek(source, 0, SEEK_SET);
        s = mc_cc_run(&w, source, work, &said, &code);
        j->cc_seconds += mc_now() - start;
    }
    if (s == MC_OK && (code != 0 || access(out, R_OK) < 0)) {
        s = refused(j, linking, said.s ? said.s : "", code);
    }
    mc_str_free(&said);
    mc_words_free(&w);
    return s;
}

static mc_status load(struct mc_job *j, const char *path)
{
    j->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!j->library) {
        const char *why = dlerror();
        return mc_fail(MC_EFILE, "a compiled kernel cannot be loaded: %s", why ? why : path);
    }
    return MC_OK;
}

/* Makes out of the source; gives it the name `final` and a seal, if there is a cache; loads it. */
static mc_status make(struct mc_job *j, const char *linking, const char *work, int source, const char *final)
{
    struct mc_str out = { 0 };
    mc_str_addf(&out, "%s/kernel.so", work);
    mc_status s = out.bad ? MC_EMEMORY : run_cc(j, linking, work, source, out.s);
    if (s == MC_OK) {
        size_t kept = final ? mc_cache_adopt(j->key, out.s, final) : 0;
        s = load(j, kept ? final : out.s);
        if (kept && s < 0) {
            unlink(final);
        } else if (kept) {
            mc_cache_sweep(kept);
        }
    }
    mc_str_free(&out);
    return s;
}

static bool symbol_missing(mc_status s)
{
    return s < 0 && strstr(mc_last_error(), "undefined symbol");
}

/* work: ends in XXXXXX, in the folder that is to be tried. */
static mc_status make_in(struct mc_job *j, char *work, const char *final)
{
    int source = -1;
    if (!mkdtemp(work)) {
        return no_good("make a folder", work);
    }
    mc_status s = write_source(work, j->source, &source);
    if (s == MC_OK) {
        s = make(j, lean, work, source, final);
        if (symbol_missing(s)) {
            s = make(j, usual, work, source, final);
            s = symbol_missing(s) ? mc_fail(MC_ECOMPILE, "%s", mc_last_error()) : s;
        }
    }
    if (source >= 0) {
        close(source);
    }
    mc_folder_remove(work);
    return s;
}

static mc_status make_in_cache(struct mc_job *j)
{
    struct mc_str work = { 0 }, final = { 0 };
    mc_status s = MC_EFILE;
    if (mc_cache_folder(&work)) {
        mc_str_add(&work, "/tmp-XXXXXX");
        s = mc_cache_path(j->key, ".so", &final) && !work.bad ? make_in(j, work.s, final.s) : MC_EMEMORY;
    } else if (work.bad) {
        s = MC_EMEMORY;
    }
    mc_str_free(&work);
    mc_str_free(&final);
    return s;
}

static mc_status make_in_place(struct mc_job *j, size_t i)
{
    struct mc_str work = { 0 };
    const char *path = places[i].variable ? getenv(places[i].variable) : places[i].path;
    if (!path || !path[0]) {
        return MC_EFILE;
    }
    mc_str_addf(&work, "%s/monochord-XXXXXX", path);
    mc_status s = work.bad ? MC_EMEMORY : make_in(j, work.s, NULL);
    mc_str_free(&work);
    return s;
}

mc_status mc_job_compile(struct mc_job *j)
{
    mc_status s = make_in_cache(j);
    for (size_t i = 0; i < NELEM(places) && s == MC_EFILE; i++) {
        s = make_in_place(j, i);
    }
    if (s == MC_EFILE) {
        return mc_fail(MC_ECOMPILE, "there is no folder to compile a kernel in; the last one tried: %s",
                       mc_last_error());
    }
    if (s == MC_OK) {
        LOG(LOG_KERNEL, "compiled %zu bytes of C in %.1f ms", strlen(j->source), j->cc_seconds * 1e3);
    }
    return s;
}

/* A sealed file that does not load was made for another system: it goes, and is made again. */
bool mc_job_from_cache(struct mc_job *j)
{
    struct mc_str path = { 0 };
    bool loaded = mc_cache_find(j->key, ".so", &path, NULL) && load(j, path.s) == MC_OK;
    if (!loaded && path.n && !path.bad) {
        unlink(path.s);
    }
    mc_str_free(&path);
    return loaded;
}

mc_status mc_job_describe(struct mc_job *j, const char *source, const char *flags)
{
    const struct mc_compiler *cc = mc_compiler();
    if (!cc) {
        return mc_last_status();
    }
    if (!cc->works) {
        return mc_fail(MC_ECOMPILE, "no C compiler: %s; the flag 'cc' names one", cc->why);
    }
    j->source = source;
    mc_str_addf(&j->command, "%s %s %s %s %s %s", cc->flag, before, strstr(cc->version, "clang") ? "" : gcc_only, mc_cpu_flags(),
                mc_flag_text(FLAG_cflags), flags ? flags : "");
    if (j->command.bad) {
        return MC_EMEMORY;
    }
    const char *const part[] = { source, j->command.s, lean, cc->version, MC_VERSION };
    j->key = mc_key(part, NELEM(part));
    return MC_OK;
}
