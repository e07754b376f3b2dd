/* wisdom.c: the results of timing, kept on disk: the fastest solver for a key.
 *
 *     monochord wisdom 1 0.1.0 5f1c...          format, version, processor
 *     gemm f32 nn m64n64k64 t2 s0badcafe packed 3.1e-06     key, solver, seconds
 *     end 1 77aa...                             number of lines above, hash of the text above
 *
 * If the flag cpu.isa is lower than native, its value is put before the key: "avx2 gemm f32 ...".
 *
 * Invariant: a file is used as a whole or ignored.  The first line must be what this build writes on this
 * processor, and the last line must agree with the lines above it.  The file is written only by a process
 * that holds the lock on wisdom.lock, and never loses keys.  Only a regular file is read or replaced; no
 * link is followed. */
#include "plan/plan.h"
#include "device/cpu/cpu.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct line {
    char *key; /* names the problem, and where it was timed */
    char solver[64];
    double seconds;
    bool own; /* timed by this process, not read from a file */
};
typedef VEC(struct line) lines; /* sorted by key */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lines known;
static char *known_path; /* the file that `known` was read from; NULL: none yet */

/* ---- lines ---- */

static size_t find(const lines *l, const char *key, bool *found)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        const int order = strcmp(l->at[mid].key, key);
        if (order == 0) {
            *found = true;
            return mid;
        }
        lo = order < 0 ? mid + 1 : lo;
        hi = order < 0 ? hi : mid;
    }
    *found = false;
    return lo;
}

static bool insert(lines *l, const char *key, const char *solver, double seconds, bool own)
{
    bool found;
    const size_t at = find(l, key, &found);
    if (!found) {
        char *copy = mc_strdup(key);
        if (!copy || !VEC_RESERVE(*l, 1)) {
            mc_free(copy);
            return false;
        }
        memmove(l->at + at + 1, l->at + at, (l->n - at) * sizeof l->at[0]);
        l->at[at].key = copy;
        l->n++;
    }
    mc_snprintf(l->at[at].solver, sizeof l->at[at].solver, "%s", solver);
    l->at[at].seconds = seconds;
    l->at[at].own = own;
    return true;
}

static void drop(lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        mc_free(l->at[i].key);
    }
    VEC_FREE(*l);
}

/* Adds lines of `from` to `to`: those whose key is new, and, if `newer`, those that are not `own` in `to`. */
static bool merge(lines *to, const lines *from, bool newer)
{
    for (size_t i = 0; i < from->n; i++) {
        bool found;
        const size_t at = find(to, from->at[i].key, &found);
        if ((!found || (newer && !to->at[at].own)) &&
            !insert(to, from->at[i].key, from->at[i].solver, from->at[i].seconds, false)) {
            return false;
        }
    }
    return true;
}

/* ---- text ---- */

static void print_header(struct mc_str *out)
{
    mc_str_addf(out, "monochord wisdom 1 %s %016" PRIx64 "\n", MC_VERSION, mc_cpu_hash());
}

static void print_all(const lines *l, struct mc_str *out)
{
    print_header(out);
    for (size_t i = 0; i < l->n; i++) {
        mc_str_addf(out, "%s %s %.4e\n", l->at[i].key, l->at[i].solver, l->at[i].seconds);
    }
    mc_str_addf(out, "end %zu %016" PRIx64 "\n", l->n, out->s ? mc_hash(out->s, out->n, 0) : 0);
}

/* Parses "KEY SOLVER SECONDS", where the key has blanks; changes the line. */
static bool parse_line(char *s, lines *l)
{
    char *end, *seconds = strrchr(s, ' ');
    if (!seconds || seconds == s) {
        return false;
    }
    *seconds++ = '\0';
    char *solver = strrchr(s, ' ');
    if (!solver || solver == s) {
        return false;
    }
    *solver++ = '\0';
    const double t = mc_strtod(seconds, &end);
    if (end == seconds || *end || !(t >= 0) || !*solver || strlen(solver) >= sizeof l->at->solver) {
        return false;
    }
    return insert(l, s, solver, t, false);
}

/* The start of the last line, if that agrees with the text before it; else NULL. */
static char *write_footer(char *text, size_t n, size_t *count)
{
    char *at = text + n - 1, want[64]; /* the newline of the last line */
    if (*at != '\n') {
        return NULL;
    }
    while (at > text && at[-1] != '\n') {
        at--;
    }
    if (strncmp(at, "end ", 4) != 0) {
        return NULL;
    }
    *count = (size_t)strtoull(at + 4, NULL, 10);
    mc_snprintf(want, sizeof want, "end %zu %016" PRIx64 "\n", *count, mc_hash(text, (size_t)(at - text), 0));
    return strcmp(at, want) == 0 ? at : NULL;
}

/* NULL, or what is wrong with the text.  Changes the text. */
static const char *parse(char *text, size_t n, lines *l)
{
    struct mc_str header = { 0 };
    const char *wrong = NULL;
    size_t count = 0;
    print_header(&header);
    if (header.bad) {
        wrong = "does not fit in memory";
    } else if (n <= header.n || memcmp(text, "monochord wisdom 1 ", 19) != 0) {
        wrong = "is not wisdom";
    } else if (memcmp(text, header.s, header.n) != 0) {
        wrong = "was made by another version or on another processor";
    }
    char *at = text + header.n, *stop = wrong ? NULL : write_footer(text, n, &count);
    mc_str_free(&header);
    while (stop && at < stop) {
        char *eol = memchr(at, '\n', (size_t)(stop - at));
        *eol = '\0';
        if (!parse_line(at, l)) {
            stop = NULL;
        }
        at = eol + 1;
    }
    if (!wrong && (!stop || count != l->n)) {
        wrong = "is damaged";
    }
    return wrong;
}

/* ---- the file ---- */

static bool file_name(struct mc_str *path)
{
    const char *dir = mc_cache_dir();
    if (*dir) {
        mc_str_addf(path, "%s/wisdom.txt", dir);
    }
    return *dir && !path->bad;
}

/* Opens a regular file, else returns -1: opening a FIFO would wait for its other end, and a link may lead
 * anywhere. */
static int open_regular(const char *path, int flags)
{
    struct stat st;
    const int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

static bool read_text(const char *path, struct mc_str *text)
{
    char part[8192];
    ssize_t got = -1;
    const int fd = open_regular(path, O_RDONLY);
    while (fd >= 0 && (got = read(fd, part, sizeof part)) > 0) {
        mc_str_addn(text, part, (size_t)got);
    }
    if (fd >= 0) {
        close(fd);
    }
    return got == 0 && text->n > 0 && !text->bad;
}

/* A file that is missing, damaged or foreign is ignored; that is no error. */
static bool read_file(const char *path, lines *l)
{
    struct mc_str text = { 0 };
    const bool got = read_text(path, &text);
    const char *wrong = got ? parse(text.s, text.n, l) : NULL;
    mc_str_free(&text);
    if (wrong) {
        LOG(LOG_PLAN, "wisdom in %s is ignored: it %s", path, wrong);
        drop(l);
    }
    return got && !wrong;
}

/* Reads the file again if the flag for the cache folder has changed.  Without memory for its name, the old
 * wisdom stays. */
static void load(void)
{
    struct mc_str path = { 0 };
    const char *now = file_name(&path) ? path.s : "";
    if (!path.bad && (!known_path || strcmp(known_path, now) != 0)) {
        drop(&known);
        mc_free(known_path);
        known_path = mc_strdup(now);
        if (*now) {
            read_file(now, &known);
        }
    }
    mc_str_free(&path);
}

/* ---- writing, one process at a time ---- */

/* Locks the folder of the file; closing the descriptor unlocks it.  -1: it cannot be locked, and nothing
 * may be written. */
static int take_lock(void)
{
    enum { TRIES = 1000 }; /* ten seconds: a process that holds the lock longer was stopped */
    struct mc_str name = { 0 };
    mc_str_addf(&name, "%.*slock", (int)(strlen(known_path) - strlen("txt")), known_path);
    int fd = name.bad ? -1 : open_regular(name.s, O_RDWR | O_CREAT);
    for (int i = 0;
         fd >= 0 && fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET }) != 0;
         i++) {
        if ((errno != EACCES && errno != EAGAIN && errno != EINTR) || i == TRIES) {
            LOG(LOG_PLAN, "wisdom is not written: cannot lock %s", name.s);
            close(fd);
            fd = -1;
        } else {
            nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        }
    }
    mc_str_free(&name);
    return fd;
}

/* Removes files that killed writers have left: "wisdom.txt.PID-N.tmp".  While this process holds the lock, no
 * other writes. */
static void remove_temporary_files(void)
{
    const char *slash = strrchr(known_path, '/'), *base = slash + 1;
    struct mc_str folder = { 0 };
    mc_str_addn(&folder, known_path, (size_t)(slash - known_path));
    DIR *d = folder.bad ? NULL : opendir(folder.s);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        const size_t n = strlen(e->d_name), m = strlen(base);
        if (n > m + 5 && strncmp(e->d_name, base, m) == 0 && e->d_name[m] == '.' &&
            strcmp(e->d_name + n - 4, ".tmp") == 0) {
            unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    if (d) {
        closedir(d);
    }
    mc_str_free(&folder);
}

/* Other processes may have written the file since it was read.  Their lines are kept, except for keys that
 * this process has timed. */
static mc_status write_known(void)
{
    lines theirs = { 0 };
    struct mc_str text = { 0 };
    struct stat st;
    mc_status s = MC_OK;
    if (lstat(known_path, &st) == 0 && !S_ISREG(st.st_mode)) {
        LOG(LOG_PLAN, "wisdom is not written: %s is not a regular file", known_path);
        return mc_fail(MC_EFILE, "cannot write '%s': it is not a regular file", known_path);
    }
    if (read_file(known_path, &theirs) && !merge(&known, &theirs, true)) {
        s = MC_EMEMORY;
    }
    print_all(&known, &text);
    if (text.bad) {
        s = MC_EMEMORY;
    }
    if (s >= 0) {
        s = mc_file_write(known_path, text.s, text.n);
    }
    mc_str_free(&text);
    drop(&theirs);
    return s;
}

/* The key for the present value of cpu.isa: another solver may be fastest with other instructions.  NULL: no
 * memory. */
static const char *key_prefix(const char *key, struct mc_str *out)
{
    if (mc_flag_int(FLAG_isa) == 0) {
        return key;
    }
    mc_str_addf(out, "%s %s", mc_flag_text(FLAG_isa), key);
    return out->bad ? NULL : out->s;
}

static mc_status save(void)
{
    if (!known_path || !*known_path) {
        return MC_OK;
    }
    const int held = take_lock();
    if (held < 0) {
        return mc_fail(MC_EFILE, "cannot write '%s': its folder cannot be locked", known_path);
    }
    remove_temporary_files();
    mc_status s = write_known();
    close(held);
    return s;
}

/* ---- external ---- */

bool mc_wisdom_find(const char *key, char solver[64], double *seconds)
{
    struct mc_str full = { 0 };
    bool found = false;
    if ((key = key_prefix(key, &full))) {
        pthread_mutex_lock(&lock);
        load();
        const size_t at = find(&known, key, &found);
        if (found) {
            memcpy(solver, known.at[at].solver, sizeof known.at[at].solver);
            *seconds = known.at[at].seconds;
        }
        pthread_mutex_unlock(&lock);
    }
    mc_str_free(&full);
    return found;
}

void mc_wisdom_put(const char *key, const char *solver, double seconds)
{
    struct mc_str full = { 0 };
    if (strchr(key, '\n') || strpbrk(solver, " \n")) {
        return; /* could not be parsed */
    }
    if ((key = key_prefix(key, &full))) {
        pthread_mutex_lock(&lock);
        load();
        if (insert(&known, key, solver, seconds, true)) {
            save(); /* if the folder cannot be written, the next process times again */
        }
        pthread_mutex_unlock(&lock);
    }
    mc_str_free(&full);
}

mc_status mc_wisdom_print(FILE *to)
{
    struct mc_str text = { 0 };
    pthread_mutex_lock(&lock);
    load();
    print_all(&known, &text);
    pthread_mutex_unlock(&lock);
    mc_status s = MC_EMEMORY;
    if (!text.bad) {
        s = fwrite(text.s, 1, text.n, to) == text.n ? MC_OK : mc_fail(MC_EFILE, "cannot write wisdom");
    }
    mc_str_free(&text);
    return s;
}

mc_status mc_wisdom_import(const char *path)
{
    lines theirs = { 0 };
    char *text = NULL;
    size_t n = 0;
    TRY(mc_file_read(path, &text, &n));
    const char *wrong = parse(text, n, &theirs);
    mc_free(text);
    mc_status s = MC_OK;
    if (wrong) {
        s = mc_fail(MC_EFORMAT, "wisdom in '%s' %s", path, wrong);
    } else {
        pthread_mutex_lock(&lock);
        load();
        s = merge(&known, &theirs, false) ? save() : MC_EMEMORY;
        pthread_mutex_unlock(&lock);
    }
    drop(&theirs);
    return s;
}

mc_status mc_wisdom_clear(void)
{
    pthread_mutex_lock(&lock);
    load();
    drop(&known);
    mc_status s = MC_OK;
    if (known_path && *known_path && access(known_path, F_OK) == 0 && remove(known_path) != 0) {
        s = mc_fail(MC_EFILE, "cannot remove '%s'", known_path);
    }
    pthread_mutex_unlock(&lock);
    return s;
}
