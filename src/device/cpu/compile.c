/* compile.c: C text to a loaded library.
 *
 * A text is looked up among the loaded libraries, then in the folder of compiled kernels, and is compiled
 * (compile_job.c) only if neither has it.
 *
 * Invariant: there is one struct mc_code for each key, and it is in the table before its compilation starts.
 * So of several threads that request one text, one compiles it and the others wait.  Different texts compile
 * at the same time. */
#include "device/cpu/code.h"
#include <dlfcn.h>
#include <stdlib.h>

/* ---- the table ---- */

enum state { BUSY, READY, FAILED };

struct mc_code {
    struct mc_code *next;
    struct mc_key key;
    void *library;
    char *why; /* the error if it failed; NULL: out of memory */
    mc_status status;
    enum state state;
    int refs;
    uint64_t released; /* value of `releases` when the last reference was dropped */
};

enum { BUCKETS = 256, IDLE = 64 }; /* IDLE: libraries without references that stay loaded for reuse */

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

static void table_remove(struct mc_code *c)
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

/* The library without references that was released first. */
static struct mc_code *least_recently_used(void)
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
        struct mc_code *c = least_recently_used();
        table_remove(c);
        destroy(c);
        idle--;
    }
}

/* ---- fork: the child lacks the threads that were compiling, so it drops their entries ---- */

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

/* ---- lookup ---- */

/* Under the lock: drops one reference.  An entry that failed is freed with its last reference. */
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

/* Loads the image, or finds or compiles the source. */
static mc_status obtain(struct mc_job *j, bool *found)
{
    if (j->image) {
        *found = true;
        j->library = mc_library_load(j->image, j->size);
        return j->library ? MC_OK : mc_last_status();
    }
    *found = mc_job_from_cache(j);
    return *found ? MC_OK : mc_job_compile(j);
}

/* Called under the lock; releases the lock while it compiles. */
static mc_status find_or_compile(struct mc_code *c, struct mc_job *j)
{
    bool found;
    pthread_mutex_unlock(&lock);
    mc_status s = obtain(j, &found);
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
        table_remove(c);
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
    return mc_fail(c->status, "%s",
                   c->why ? c->why : "out of memory while another thread compiled the same kernel");
}

/* Under the lock.  NULL: out of memory. */
static struct mc_code *table_insert(struct mc_key key)
{
    struct mc_code *c = mc_calloc(1, sizeof *c, "kernels");
    if (c) {
        *c = (struct mc_code){ .key = key, .state = BUSY, .refs = 1 };
        *slot_of(key) = c;
    }
    return c;
}

static mc_status lookup_or_wait(struct mc_job *j, struct mc_code **out)
{
    struct mc_code *c = *slot_of(j->key);
    mc_status s;
    if (c) {
        idle -= c->refs == 0;
        c->refs++;
        s = await(c);
    } else {
        c = table_insert(j->key);
        s = c ? find_or_compile(c, j) : MC_EMEMORY;
    }
    if (s < 0 && c) {
        release(c);
        c = NULL;
    }
    *out = c;
    return s;
}

static mc_status find(struct mc_job *j, struct mc_code **c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    mc_status s = lookup_or_wait(j, c);
    pthread_mutex_unlock(&lock);
    return s;
}

struct mc_code *mc_code_open(const char *image, size_t size, mc_status *status)
{
    const uint64_t hash[] = { mc_hash(image, size, 0), mc_hash(image, size, 1) };
    struct mc_job j = { .image = image, .size = size, .key = { { hash[0], hash[1] } } };
    struct mc_code *c = NULL;
    *status = find(&j, &c);
    return c;
}

mc_status mc_code_image(const char *source, const char *flags, const char *level, struct mc_str *image)
{
    struct mc_str cpu = { 0 };
    struct mc_job j = { .wanted = image };
    const bool known = mc_cpu_level(level, &cpu);
    mc_status s = cpu.bad ? MC_EMEMORY
                  : known
                      ? MC_OK
                      : mc_fail(MC_EARG, "there is no instruction set '%s' on this kind of processor", level);
    s = s < 0 ? s : mc_job_describe(&j, source, flags, cpu.s ? cpu.s : "");
    if (s == MC_OK && !mc_job_from_cache(&j)) {
        s = mc_job_compile(&j);
    }
    if (j.library) {
        dlclose(j.library);
    }
    mc_str_free(&j.command);
    mc_str_free(&cpu);
    return s == MC_OK && image->bad ? MC_EMEMORY : s;
}

struct mc_code *mc_code_load(const char *source, const char *flags, mc_status *status)
{
    struct mc_job j = { 0 };
    struct mc_code *c = NULL;
    bool clean = mc_last_status() == MC_OK;
    mc_status s = mc_job_describe(&j, source, flags, mc_cpu_flags());
    s = s < 0 ? s : find(&j, &c);
    mc_str_free(&j.command);
    if (s == MC_OK && clean) {
        mc_clear_error(); /* set by a folder that failed before another one succeeded */
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

mc_status mc_code_lacks(const struct mc_code *c, const char *name)
{
    mc_cache_drop(c->key, ".so");
    return mc_fail(MC_ECOMPILE,
                   "the C compiler reports no failure, but the library it wrote lacks the function '%s'",
                   name);
}

void *mc_code_function(const struct mc_code *c, const char *name)
{
    void *fn = mc_code_symbol(c, name);
    if (!fn) {
        mc_code_lacks(c, name);
    }
    return fn;
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
