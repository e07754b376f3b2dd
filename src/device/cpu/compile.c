/* compile.c: C text to a loaded library.
 *
 * A text is looked for among the loaded, then in the folder of compiled kernels, then compiled.  It is
 * compiled in a folder of its own, made in the first of a few places that will have it.
 *
 * Invariant: one struct mc_code a key, in the table from before its compilation starts; so of those who
 * ask for one text at the same time one compiles it and the others wait, while other texts go ahead. */
#include "device/cpu/code.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- how the compiler is called ---- */

/* Measured with gcc 12 on one elementwise kernel: -pipe saves 2 ms, no start files and libraries 4 ms.
 * Where a symbol then turns out to be missing, the library is linked again in the usual way. */
static const char before[] = "-x c -std=gnu11 -O2 -fPIC -shared -fno-math-errno -fno-trapping-math"
                             " -fno-semantic-interposition -fno-asynchronous-unwind-tables -g0 -w -pipe";
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

/* ---- the table ---- */

enum state { BUSY, READY, FAILED };

struct mc_code {
    struct mc_code *next;
    struct mc_key key;
    void *library;
    char *why; /* it failed; NULL: for want of memory */
    mc_status status;
    enum state state;
    int refs;
    uint64_t released; /* when the last reference went */
};

enum { BUCKETS = 256, IDLE = 64 }; /* libraries that nobody holds, kept for who asks again */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct mc_code *table[BUCKETS];
static struct mc_code_stats stats;
static uint64_t releases;
static int idle;

static struct mc_code **slot_of(struct mc_key key)
{
    struct mc_code **c = &table[key.at[0] % BUCKETS];
    while (*c && memcmp(&(*c)->key, &key, sizeof key) != 0) {
        c = &(*c)->next;
    }
    return c;
}

static void take_out(struct mc_code *c)
{
    struct mc_code **slot = slot_of(c->key);
    if (*slot == c) {
        *slot = c->next;
    }
}

static void destroy(struct mc_code *c)
{
    if (c->library) {
        dlclose(c->library);
    }
    mc_free(c->why);
    mc_free(c);
}

/* The idle one that was released first. */
static struct mc_code *oldest_idle(void)
{
    struct mc_code *oldest = NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct mc_code *c = table[i]; c; c = c->next) {
            if (c->refs == 0 && (!oldest || c->released < oldest->released)) {
                oldest = c;
            }
        }
    }
    return oldest;
}

static void keep_idle(int most)
{
    while (idle > most) {
        struct mc_code *c = oldest_idle();
        take_out(c);
        destroy(c);
        idle--;
    }
}

/* ---- across fork: whoever was compiling is not in the child ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct mc_code **c = &table[i]; *c;) {
            if ((*c)->state == BUSY) {
                *c = (*c)->next;
            } else {
                c = &(*c)->next;
            }
        }
    }
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- one compilation ---- */

struct job {
    const char *source;
    struct mc_str command; /* the flag cc, and all flags but those of the linker and for the output */
    struct mc_key key;
    void *library;
    double cc_seconds;
};

/* MC_EFILE: not in this place, another may do; anything else worse than MC_OK is final. */
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

static mc_status refused(const struct job *j, const char *linking, const char *said, int code)
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

static mc_status run_cc(struct job *j, const char *linking, const char *work, int source, const char *out)
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

static mc_status load(struct job *j, const char *path)
{
    j->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!j->library) {
        const char *why = dlerror();
        return mc_fail(MC_EFILE, "a compiled kernel cannot be loaded: %s", why ? why : path);
    }
    return MC_OK;
}

/* Makes out of the source; gives it the name `final` and a seal, if there is a cache; loads it. */
static mc_status make(struct job *j, const char *linking, const char *work, int source, const char *final)
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
static mc_status make_in(struct job *j, char *work, const char *final)
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

static mc_status make_in_cache(struct job *j)
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

static mc_status make_in_place(struct job *j, size_t i)
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

static mc_status compile(struct job *j)
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
static bool from_cache(struct job *j)
{
    struct mc_str path = { 0 };
    bool loaded = mc_cache_find(j->key, ".so", &path, NULL) && load(j, path.s) == MC_OK;
    if (!loaded && path.n && !path.bad) {
        unlink(path.s);
    }
    mc_str_free(&path);
    return loaded;
}

/* ---- asking ---- */

static mc_status describe(struct job *j, const char *source, const char *flags)
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

/* Under the lock: gives one reference back.  Nothing is kept of what failed. */
static void release(struct mc_code *c)
{
    if (--c->refs > 0) {
        return;
    }
    if (c->state == FAILED) {
        destroy(c);
        return;
    }
    c->released = ++releases;
    idle++;
    keep_idle(IDLE);
}

/* Under the lock, which it leaves while it works. */
static mc_status bring(struct mc_code *c, struct job *j)
{
    pthread_mutex_unlock(&lock);
    bool found = from_cache(j);
    mc_status s = found ? MC_OK : compile(j);
    char *why = s < 0 && s != MC_EMEMORY ? mc_strdup(mc_last_error()) : NULL;
    pthread_mutex_lock(&lock);
    stats.from_disk += found;
    stats.compiled += !found && s == MC_OK;
    stats.cc_seconds += j->cc_seconds;
    c->library = j->library;
    c->why = why;
    c->status = s;
    c->state = s == MC_OK ? READY : FAILED;
    if (c->state == FAILED) {
        take_out(c);
    }
    pthread_cond_broadcast(&changed);
    return s;
}

static mc_status await(struct mc_code *c)
{
    while (c->state == BUSY) {
        pthread_cond_wait(&changed, &lock);
    }
    if (c->state == READY) {
        stats.from_memory++;
        return MC_OK;
    }
    return mc_fail(c->status, "%s", c->why ? c->why : "out of memory while another thread compiled the same kernel");
}

/* Under the lock.  NULL: no memory. */
static struct mc_code *enter(struct mc_key key)
{
    struct mc_code *c = mc_calloc(1, sizeof *c, "kernels");
    if (c) {
        *c = (struct mc_code){ .key = key, .state = BUSY, .refs = 1 };
        *slot_of(key) = c;
    }
    return c;
}

static mc_status obtain(struct job *j, struct mc_code **out)
{
    struct mc_code *c = *slot_of(j->key);
    mc_status s;
    if (c) {
        idle -= c->refs == 0;
        c->refs++;
        s = await(c);
    } else {
        c = enter(j->key);
        s = c ? bring(c, j) : MC_EMEMORY;
    }
    if (s < 0 && c) {
        release(c);
        c = NULL;
    }
    *out = c;
    return s;
}

struct mc_code *mc_code_load(const char *source, const char *flags, mc_status *status)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct job j = { 0 };
    struct mc_code *c = NULL;
    bool clean = mc_last_status() == MC_OK;
    pthread_once(&once, watch_forks);
    mc_status s = describe(&j, source, flags);
    if (s == MC_OK) {
        pthread_mutex_lock(&lock);
        s = obtain(&j, &c);
        pthread_mutex_unlock(&lock);
    }
    mc_str_free(&j.command);
    if (s == MC_OK && clean) {
        mc_clear_error(); /* of a place that would not do, when another did */
    }
    if (status) {
        *status = s;
    }
    return c;
}

void *mc_code_symbol(const struct mc_code *c, const char *name)
{
    return dlsym(c->library, name);
}

void mc_code_unref(struct mc_code **c)
{
    if (*c) {
        pthread_mutex_lock(&lock);
        release(*c);
        pthread_mutex_unlock(&lock);
        *c = NULL;
    }
}

void mc_code_flush(void)
{
    pthread_mutex_lock(&lock);
    keep_idle(0);
    pthread_mutex_unlock(&lock);
}

struct mc_code_stats mc_code_stats(void)
{
    pthread_mutex_lock(&lock);
    struct mc_code_stats now = stats;
    pthread_mutex_unlock(&lock);
    return now;
}
