/* flags.c: reads and sets the flags of flags.def.
 *
 * Sources, each overriding the one before: the defaults of the table; an INI file ($MONOCHORDRC, or
 * ~/.monochordrc), where `excluding` in the section [rewrite] sets rewrite.excluding; the list in the
 * environment variable MONOCHORD_FLAGS; mc_flag_set.  The first use of any flag reads the first three.
 *
 * Invariant: every stored value was accepted by mc_flag_check, and texts are never freed, so a reader needs
 * no lock and may keep a text. */
#include "base/flag.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct cell {
    _Atomic int64_t i;
    _Atomic double r;
    const char *_Atomic text;
} cells[MC_NFLAG];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    mc_status code;
    char text[2048];
} startup; /* the first mistake in the file or the environment */

/* ---- texts that are kept for the life of the process, each stored once ---- */

static struct kept {
    struct kept *next;
    char text[];
} *kept;

static const char *keep(const char *text) /* the caller holds the lock; NULL: no memory */
{
    for (const struct kept *k = kept; k; k = k->next) {
        if (strcmp(k->text, text) == 0) {
            return k->text;
        }
    }
    size_t n = strlen(text) + 1;
    struct kept *k = mc_alloc(sizeof *k + n, "flags");
    if (!k) {
        return NULL;
    }
    memcpy(k->text, text, n);
    k->next = kept;
    kept = k;
    return k->text;
}

/* the caller holds the lock; v.text is never freed */
static void store(enum mc_flag f, struct mc_flag_value v)
{
    atomic_store(&cells[f].i, v.i);
    atomic_store(&cells[f].r, v.r);
    atomic_store(&cells[f].text, v.text);
    if (f == FLAG_debug) { /* the words of debug are in the order of enum mc_channel */
        atomic_store(&mc_log_mask, (unsigned)v.i);
    }
}

/* ---- names and lists ---- */

static int find(const char *name)
{
    for (int f = 0; f < MC_NFLAG; f++) {
        if (strcmp(mc_flag_rows[f].name, name) == 0) {
            return f;
        }
    }
    const char *names[MC_NFLAG];
    for (int f = 0; f < MC_NFLAG; f++) {
        names[f] = mc_flag_rows[f].name;
    }
    const char *near = mc_near_miss(name, names, MC_NFLAG);
    mc_fail(MC_EARG, "unknown flag '%s'", name);
    if (near) {
        mc_fail(MC_EARG, "%s; did you mean '%s'?", mc_last_error(), near);
    }
    return -1;
}

static mc_status set_other(const char *name, const char *value, bool apply, bool *known);

/* A device as Theano names it becomes ours: gpu1 is cuda1. */
static const char *device_of(const char *value, char *copy, size_t n)
{
    if (strncmp(value, "gpu", 3) != 0) {
        return value;
    }
    mc_snprintf(copy, n, "cuda%s", value + 3);
    return copy;
}

static mc_status set(const char *name, const char *value, bool apply)
{
    struct mc_flag_value v;
    char copy[64];
    bool other = false;
    mc_status s = set_other(name, value, apply, &other);
    if (other) {
        return s;
    }
    int f = find(name);
    value = f == FLAG_device ? device_of(value, copy, sizeof copy) : value;
    if (f < 0) {
        return MC_EARG;
    }
    TRY(mc_flag_check((enum mc_flag)f, value, &v));
    if (apply) {
        v.text = keep(v.text);
        if (!v.text) {
            return MC_EMEMORY;
        }
        store((enum mc_flag)f, v);
    }
    return MC_OK;
}

/* ---- Theano's flags ---- */

/* Another flag's name, and values; flag NULL: it has no meaning here. */
static const struct other {
    const char *name, *flag, *also, *values[3][2];
} others[] = {
    { "dnn.conv.algo_fwd",        "conv.algo_fwd" },
    { "dnn.conv.algo_bwd",        "conv.algo_bwd_data", "conv.algo_bwd_filter" },
    { "dnn.conv.algo_bwd_data",   "conv.algo_bwd_data" },
    { "dnn.conv.algo_bwd_filter", "conv.algo_bwd_filter" },
    { "dnn.conv.precision",       "conv.precision" },
    { "optimizer",                "mode", .values = { { "fast_run", "FAST_RUN" },
                                                      { "fast_compile", "FAST_COMPILE" },
                                                      { "None", "FAST_COMPILE" } } },
    { "optimizer_including",      NULL },
    { "optimizer_excluding",      NULL },
    { "linker",                   NULL },
    { "force_device",             NULL },
    { "exception_verbosity",      NULL },
    { "dnn.conv.workmem",         NULL },
    { "lib.cnmem",                NULL },
};

/* One note for each of them in a process. */
static void note(size_t i, const char *value)
{
    static atomic_bool said[NELEM(others)];
    if (!atomic_exchange(&said[i], true)) {
        mc_log_line(LOG_WARN, "the flag %s=%s is accepted and has no meaning here", others[i].name, value);
    }
}

static mc_status set_other(const char *name, const char *value, bool apply, bool *known)
{
    for (size_t i = 0; i < NELEM(others); i++) {
        const struct other *o = &others[i];
        if (strcmp(name, o->name) != 0) {
            continue;
        }
        *known = true;
        for (size_t k = 0; k < NELEM(o->values); k++) {
            value = o->values[k][0] && strcmp(value, o->values[k][0]) == 0 ? o->values[k][1] : value;
        }
        if (!o->flag) {
            note(i, value);
            return MC_OK;
        }
        TRY(set(o->flag, value, apply));
        return o->also ? set(o->also, value, apply) : MC_OK;
    }
    return MC_OK;
}

static char *trim(char *s)
{
    while (mc_is_space(*s)) {
        s++;
    }
    size_t n = strlen(s);
    while (n > 0 && mc_is_space(s[n - 1])) {
        s[--n] = '\0';
    }
    return s;
}

/* Parses name=value; changes the text. */
static mc_status set_pair(char *pair, bool apply)
{
    char *eq = strchr(pair, '=');
    if (!eq) {
        return mc_fail(MC_EARG, "flag '%s' has no value: expected name=value", trim(pair));
    }
    *eq = '\0';
    return set(trim(pair), trim(eq + 1), apply);
}

/* Parses "a=1,b=2"; empty items are allowed.  If `mistake` is NULL, the first mistake ends parsing; otherwise
 * each mistake is reported to it, and parsing continues. */
static mc_status each_pair(const char *text, bool apply, void (*mistake)(const char *where))
{
    char *copy = mc_strdup(text);
    mc_status s = copy ? MC_OK : MC_EMEMORY;
    for (char *p = copy, *next; p && (s == MC_OK || mistake); p = next) {
        next = strchr(p, ',');
        if (next) {
            *next++ = '\0';
        }
        if (*trim(p)) {
            s = set_pair(p, apply);
            if (s < 0 && mistake) {
                mistake("MONOCHORD_FLAGS");
            }
        }
    }
    mc_free(copy);
    return s;
}

/* ---- start ---- */

static void remember(const char *where)
{
    if (startup.code == MC_OK) {
        startup.code = mc_fail_again("%s: ", where);
        memcpy(startup.text, mc_last_error(), strlen(mc_last_error()) + 1);
    }
}

static void ini_line(char *line, char *section, size_t cap, const char *where)
{
    char name[256];
    size_t n = strlen(line);
    if (*line == '\0' || *line == '#' || *line == ';') {
        return;
    }
    if (*line == '[' && line[n - 1] == ']' && n - 2 < cap) {
        memcpy(section, line + 1, n - 2);
        section[n - 2] = '\0';
        if (strcmp(section, "global") == 0) {
            *section = '\0';
        }
        return;
    }
    char *eq = strchr(line, '=');
    if (!eq) {
        mc_fail(MC_EARG, "'%s' is neither [section] nor name = value", line);
        remember(where);
        return;
    }
    *eq = '\0';
    mc_snprintf(name, sizeof name, "%s%s%s", section, *section ? "." : "", trim(line));
    if (set(name, trim(eq + 1), true) < 0) {
        remember(where);
    }
}

static void read_ini(const char *path)
{
    char *text, section[128] = "", where[512];
    size_t n;
    if (mc_file_read(path, &text, &n) < 0) {
        remember("MONOCHORDRC");
        return;
    }
    int number = 1;
    for (char *p = text, *next; p; p = next, number++) {
        next = strchr(p, '\n');
        if (next) {
            *next++ = '\0';
        }
        mc_snprintf(where, sizeof where, "%s:%d", path, number);
        ini_line(trim(p), section, sizeof section, where);
    }
    mc_free(text);
}

static void start(void)
{
    char path[1024], before[2048];
    mc_status code = mc_last_status();
    memcpy(before, mc_last_error(), strlen(mc_last_error()) + 1);
    pthread_mutex_lock(&lock);
    for (int f = 0; f < MC_NFLAG; f++) {
        struct mc_flag_value v;
        if (mc_flag_check((enum mc_flag)f, mc_flag_rows[f].dflt, &v) < 0) {
            remember("flags.def");
        }
        store((enum mc_flag)f, v);
    }
    const char *rc = getenv("MONOCHORDRC"), *home = getenv("HOME"), *env = getenv("MONOCHORD_FLAGS");
    if (rc && *rc) {
        read_ini(rc);
    } else if (home && mc_snprintf(path, sizeof path, "%s/.monochordrc", home) < (int)sizeof path &&
               access(path, R_OK) == 0) {
        read_ini(path);
    }
    if (env && each_pair(env, true, remember) == MC_EMEMORY) {
        remember("MONOCHORD_FLAGS");
    }
    pthread_mutex_unlock(&lock);
    if (code == MC_OK) {
        mc_clear_error();
    } else {
        mc_fail(code, "%s", before);
    }
}

static const struct cell *cell(enum mc_flag f)
{
    pthread_once(&once, start);
    return &cells[f];
}

/* ---- public functions ---- */

mc_status mc_flags_status(void)
{
    pthread_once(&once, start);
    return startup.code == MC_OK ? MC_OK : mc_fail(startup.code, "%s", startup.text);
}

int64_t mc_flag_int(enum mc_flag f)
{
    return atomic_load_explicit(&cell(f)->i, memory_order_relaxed);
}

double mc_flag_real(enum mc_flag f)
{
    return atomic_load_explicit(&cell(f)->r, memory_order_relaxed);
}

const char *mc_flag_text(enum mc_flag f)
{
    return atomic_load_explicit(&cell(f)->text, memory_order_acquire);
}

mc_status mc_flag_set(const char *name, const char *value)
{
    if (!name || !value) {
        return mc_fail(MC_EARG, "mc_flag_set: a name and a value are needed");
    }
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    mc_status s = set(name, value, true);
    pthread_mutex_unlock(&lock);
    return s;
}

/* Sets all of the list or, after a mistake, none of it. */
mc_status mc_flags_parse(const char *text)
{
    if (!text) {
        return mc_fail(MC_EARG, "mc_flags_parse: no text");
    }
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    mc_status s = each_pair(text, false, NULL);
    if (s == MC_OK) {
        s = each_pair(text, true, NULL);
    }
    pthread_mutex_unlock(&lock);
    return s;
}

const char *mc_flag_get(const char *name)
{
    if (!name) {
        mc_fail(MC_EARG, "mc_flag_get: no name");
        return NULL;
    }
    int f = find(name);
    return f < 0 ? NULL : mc_flag_text((enum mc_flag)f);
}

/* Prints text in lines of at most `width` characters, indented by four. */
static void print_wrapped(FILE *to, const char *text, size_t width)
{
    while (*text) {
        size_t n = strlen(text);
        if (n > width) {
            for (n = width; n > 0 && text[n] != ' '; n--) {
            }
            n = n ? n : strcspn(text, " ");
        }
        mc_fprintf(to, "    %.*s\n", (int)n, text);
        text += n;
        text += *text == ' ';
    }
}

mc_status mc_flags_print(FILE *to)
{
    for (int f = 0; f < MC_NFLAG; f++) {
        const struct mc_flag_row *r = &mc_flag_rows[f];
        const char *now = mc_flag_text((enum mc_flag)f);
        mc_fprintf(to, "%s = %s", r->name, now);
        if (strcmp(now, r->dflt) != 0) {
            mc_fprintf(to, "  (default: %s)", r->dflt);
        }
        fputc('\n', to);
        if (r->doc) {
            print_wrapped(to, r->doc, 76);
        }
        if (*r->values) {
            mc_fprintf(to, "    %s\n", r->values);
        }
    }
    return ferror(to) ? mc_fail(MC_EFILE, "cannot write the flags: %s", strerror(errno)) : MC_OK;
}
