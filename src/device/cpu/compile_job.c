/* compile_job.c: one compilation: the command, the work folder, and the resulting library.
 *
 * Invariant: MC_EFILE may be the folder's fault, so the next folder is tried.  Any other error is final.
 * Only a library that has been loaded is put into the cache. */
#include "device/cpu/code.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Measured with gcc 12 on one elementwise kernel: -pipe saves 2 ms, linking without start files and default
 * libraries 4 ms.  If loading then reports a missing symbol, the library is linked again in the usual way.
 * -Wno-error: gcc 14 would reject undeclared functions of libm in a user's op. */
static const char before[] = "-x c -std=gnu11 -O2 -fPIC -shared -fno-math-errno -fno-trapping-math"
                             " -fno-semantic-interposition -fno-asynchronous-unwind-tables -g0 -w -pipe"
                             " -Wno-error=implicit-function-declaration";
/* clang vectorises at -O2 by itself */
static const char gcc_only[] = "-ftree-vectorize -fvect-cost-model=dynamic";
static const char clang_refuses[] = " -fno-thread-jumps";
static const char lean[] = "-nostdlib -Wl,--as-needed -lm"; /* as-needed: libm is linked only if used */
static const char usual[] = "-lm";

/* Folders that are tried in this order after the cache folder. */
static const struct {
    const char *variable, *path;
} folders[] = {
    { "TMPDIR", NULL },
    { NULL, "/tmp" },
    { NULL, "/var/tmp" },
    { NULL, "/dev/shm" },
};

static mc_status is_failure(const char *what, const char *folder)
{
    return mc_fail(MC_EFILE, "cannot %s in '%s': %s", what, folder, strerror(errno));
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
            return is_failure("write", work);
        }
        source += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return *fd < 0 ? is_failure("write", work) : MC_OK;
}

/* Did the compiler fail because of the folder? */
static bool is_folder_error(const char *said)
{
    static const char *const reason[] = { "No space left", "quota exceeded", "Read-only file system",
                                          "Permission denied", "Input/output error" };
    for (size_t i = 0; i < NELEM(reason); i++) {
        if (strstr(said, reason[i])) {
            return true;
        }
    }
    return false;
}

static mc_status refused(struct mc_job *j, const char *linking, const char *said,
                         const struct mc_child_exit *end)
{
    enum { LINES = 20 };
    char how[MC_ENDING];
    const char *stop = said;
    for (int i = 0; i < LINES && *stop; i++) {
        stop += strcspn(stop, "\n");
        stop += *stop == '\n';
    }
    const bool silent = end->how != ENDED_SIGNAL && end->how != ENDED_LATE && !*said;
    j->doubt = silent ||
               (end->how == ENDED_SIGNAL && end->number == SIGBUS); /* a full disk can look like this */
    return mc_fail(j->doubt || (end->how != ENDED_LATE && is_folder_error(said)) ? MC_EFILE : MC_ECOMPILE,
                   "the C compiler %s%s: %s - %s\n%.*s", mc_ending_text(end, how),
                   silent ? " and says nothing" : "", j->command.s, linking, (int)(stop - said), said);
}

static mc_status run_cc(struct mc_job *j, const char *linking, const char *work, int source, const char *out)
{
    struct mc_argv w = { 0 };
    struct mc_str said = { 0 };
    struct mc_child_exit end = { 0 };
    mc_status s = MC_EMEMORY;
    if (mc_words_split(&w, j->command.s) && mc_words_add(&w, "-o", 2) && mc_words_add(&w, out, strlen(out)) &&
        mc_words_add(&w, "-", 1) && mc_words_split(&w, linking)) {
        double start = mc_now();
        lseek(source, 0, SEEK_SET);
        s = mc_cc_run(&w, source, work, &said, &end);
        j->cc_seconds += mc_now() - start;
    }
    if (s == MC_OK && (!mc_ending_good(&end) || (end.how == ENDED_UNKNOWN && access(out, R_OK) < 0))) {
        s = refused(j, linking, said.s ? said.s : "", &end);
    }
    mc_str_free(&said);
    mc_words_free(&w);
    return s;
}

/* ---- what the compiler wrote ---- */

enum { LARGEST = 1 << 30 };

static mc_status not_a_library(const struct mc_job *j, const char *what)
{
    return mc_fail(MC_ECOMPILE, "the C compiler reports no failure, but %s: %s", what, j->command.s);
}

/* Opens and reads the file; fails unless it is a library. */
static mc_status open_result(const struct mc_job *j, const char *path, int *fd, char **data, size_t *n)
{
    struct stat st;
    *data = NULL;
    *fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT) {
        return not_a_library(j, "there is no file from it");
    }
    if (*fd < 0 && errno != ELOOP && errno != EMLINK) {
        return is_failure("open what the C compiler wrote", path);
    }
    if (*fd < 0 || fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (st.st_uid != geteuid() && st.st_uid != 0)) {
        return not_a_library(j, "what it wrote is no regular file of this user");
    }
    if (st.st_size > LARGEST) {
        return not_a_library(j, "what it wrote is larger than a gigabyte");
    }
    TRY(mc_fd_read(*fd, path, data, n));
    const char *flaw = mc_library_flaw(*data, *n);
    return flaw ? not_a_library(j, flaw) : MC_OK;
}

static mc_status load(struct mc_job *j, int fd, const char *path)
{
    j->library = mc_library_open(fd, path);
    j->doubt = !j->library; /* one possible cause: the folder is mounted noexec */
    return j->library ? MC_OK : MC_EFILE;
}

/* Compiles the source and loads the library.  If keep, puts it into the cache afterwards. */
static mc_status make(struct mc_job *j, const char *linking, const char *work, int source, bool keep)
{
    struct mc_str out = { 0 };
    char *data = NULL;
    size_t n = 0;
    int fd = -1;
    mc_str_addf(&out, "%s/kernel.so", work);
    mc_status s = out.bad ? MC_EMEMORY : run_cc(j, linking, work, source, out.s);
    s = s < 0 ? s : open_result(j, out.s, &fd, &data, &n);
    s = s < 0 ? s : load(j, fd, out.s);
    if (s == MC_OK && keep) {
        mc_cache_put(j->key, ".so", data, n);
    }
    if (s == MC_OK && j->wanted) {
        mc_str_addn(j->wanted, data, n);
    }
    if (fd >= 0) {
        close(fd);
    }
    mc_free(data);
    mc_str_free(&out);
    return s;
}

static bool symbol_missing(mc_status s)
{
    return s < 0 &&
           (strstr(mc_last_error(), "undefined symbol") || strstr(mc_last_error(), "symbol not found"));
}

/* work: the template for mkdtemp, in the folder to try. */
static mc_status compile_in_folder(struct mc_job *j, char *work, bool keep)
{
    int source = -1;
    if (!mkdtemp(work)) {
        return is_failure("make a folder", work);
    }
    mc_status s = write_source(work, j->source, &source);
    if (s == MC_OK) {
        s = make(j, lean, work, source, keep);
        if (symbol_missing(s)) {
            s = make(j, usual, work, source, keep);
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
    struct mc_str work = { 0 };
    mc_status s = MC_EFILE;
    if (mc_cache_folder(&work)) {
        mc_str_add(&work, "/tmp-XXXXXX");
        s = work.bad ? MC_EMEMORY : compile_in_folder(j, work.s, true);
    } else if (work.bad) {
        s = MC_EMEMORY;
    }
    mc_str_free(&work);
    return s;
}

static mc_status make_in_place(struct mc_job *j, size_t i)
{
    struct mc_str work = { 0 };
    const char *path = folders[i].variable ? getenv(folders[i].variable) : folders[i].path;
    if (!path || !path[0]) {
        return MC_EFILE;
    }
    mc_str_addf(&work, "%s/monochord-XXXXXX", path);
    mc_status s = work.bad ? MC_EMEMORY : compile_in_folder(j, work.s, false);
    mc_str_free(&work);
    return s;
}

/* Compiles in the first folder where that succeeds.  *doubtful becomes the message of the first failure that
 * may not be the folder's fault. */
static mc_status compile_in_any_folder(struct mc_job *j, char **doubtful)
{
    mc_status s = make_in_cache(j);
    for (size_t i = 0; i < NELEM(folders) && s == MC_EFILE; i++) {
        if (j->doubt && !*doubtful) {
            *doubtful = mc_strdup(mc_last_error());
        }
        j->doubt = false;
        s = make_in_place(j, i);
    }
    return s;
}

mc_status mc_job_compile(struct mc_job *j)
{
    const struct mc_compiler *cc = mc_compiler();
    if (!cc) {
        return mc_last_status();
    }
    if (!cc->works) {
        return mc_fail(MC_ECOMPILE, "no C compiler: %s; the flag 'cc' names one", cc->why);
    }
    char *doubtful = NULL;
    mc_status s = compile_in_any_folder(j, &doubtful);
    if (s == MC_EFILE && (doubtful || j->doubt)) {
        s = mc_fail(MC_ECOMPILE, "%s", doubtful ? doubtful : mc_last_error());
    } else if (s == MC_EFILE) {
        s = mc_fail(MC_ECOMPILE, "there is no folder to compile a kernel in; the last one tried: %s",
                    mc_last_error());
    }
    mc_free(doubtful);
    if (s == MC_OK) {
        LOG(LOG_KERNEL, "compiled %zu bytes of C in %.1f ms", strlen(j->source), j->cc_seconds * 1e3);
    }
    return s;
}

/* A sealed file that does not load was made for another system: it is dropped and compiled again. */
bool mc_job_from_cache(struct mc_job *j)
{
    struct mc_str path = { 0 }, content = { 0 };
    int fd = -1;
    if (!mc_cache_find(j->key, ".so", &content, &fd)) {
        return false;
    }
    bool loaded = mc_cache_path(j->key, ".so", &path) && !mc_library_flaw(content.s, content.n) &&
                  load(j, fd, path.s) == MC_OK;
    if (!loaded && !path.bad) {
        mc_cache_drop(j->key, ".so");
    }
    if (loaded && j->wanted) {
        mc_str_addn(j->wanted, content.s, content.n);
    }
    close(fd);
    mc_str_free(&content);
    mc_str_free(&path);
    return loaded;
}

mc_status mc_job_describe(struct mc_job *j, const char *source, const char *flags, const char *cpu)
{
    const struct mc_compiler *cc = mc_compiler();
    if (!cc) {
        return mc_last_status();
    }
    if (!cc->version[0]) {
        return mc_fail(MC_ECOMPILE, "no C compiler: %s; the flag 'cc' names one", cc->why);
    }
    j->source = source;
    const bool clang = strstr(cc->version, "clang");
    flags = flags ? flags : "";
    const char *word = clang ? strstr(flags, clang_refuses) : NULL;
    mc_str_addf(&j->command, "%s %s %s %s %s ", cc->flag, before, clang ? "" : gcc_only, cpu,
                mc_flag_text(FLAG_cflags));
    mc_str_addn(&j->command, flags, word ? (size_t)(word - flags) : strlen(flags));
    mc_str_add(&j->command, word ? word + strlen(clang_refuses) : "");
    if (j->command.bad) {
        return MC_EMEMORY;
    }
    const char *const part[] = { source, j->command.s, lean, cc->version, MC_VERSION };
    j->key = mc_key(part, NELEM(part));
    return MC_OK;
}
