/* cc.c: finds the C compiler and its version.
 *
 * Invariant: a compiler is run with --version once a process.  With a cache folder it is run only once for
 * each state (path, size, time) of its file, so a warm start runs no process.  The last version is also
 * recorded by the text of the flag cc: when the compiler has been removed, its cached kernels are still
 * found. */
#include "device/cpu/code.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct mc_compiler *_Atomic known; /* newest first; the list only grows */

/* Searches PATH for the program and appends its path to *out. */
static bool locate(const char *word, struct mc_str *out, struct stat *st)
{
    const char *path = getenv("PATH");
    size_t start = out->n;
    for (path = strchr(word, '/') ? "" : path ? path : "/bin:/usr/bin";; path++) {
        size_t n = strcspn(path, ":");
        out->n = start;
        if (n) {
            mc_str_addn(out, path, n);
            mc_str_add(out, "/");
        }
        mc_str_add(out, word);
        if (out->bad) {
            return false;
        }
        const char *file = out->s + start;
        if (access(file, X_OK) == 0 && stat(file, st) == 0 && S_ISREG(st->st_mode)) {
            return true;
        }
        path += n;
        if (!*path) {
            return false;
        }
    }
}

/* Key of the state of every program named in the flag: "ccache gcc" has two.  *found: the first one
 * exists. */
static mc_status stamp(const char *flag, const struct mc_argv *w, struct mc_key *key, bool *found)
{
    struct mc_str b = { 0 };
    *found = false;
    mc_str_add(&b, flag);
    for (size_t i = 0; i < w->n; i++) {
        struct stat st;
        mc_str_add(&b, "\n");
        if (w->at[i][0] != '-' && locate(w->at[i], &b, &st)) {
            mc_str_addf(&b, " %llu %lld %lld.%09ld", (unsigned long long)st.st_ino, (long long)st.st_size,
                        (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
            *found = *found || i == 0;
        }
    }
    mc_status s = b.bad ? MC_EMEMORY : MC_OK;
    if (s == MC_OK) {
        *key = mc_key(&(const char *){ b.s }, 1);
    }
    mc_str_free(&b);
    return s;
}

static void set_version(struct mc_compiler *c, const char *said)
{
    mc_snprintf(c->version, sizeof c->version, "%.*s", (int)strcspn(said, "\n"), said);
}

static mc_status ask_version(struct mc_compiler *c, struct mc_argv *w)
{
    struct mc_str said = { 0 };
    struct mc_child_exit end = { 0 };
    char how[MC_ENDING] = "";
    mc_status s = mc_words_add(w, "--version", 9) ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        s = mc_cc_run(w, -1, NULL, &said, &end);
    }
    if (s == MC_OK && mc_ending_good(&end) && said.n) {
        set_version(c, said.s);
        c->works = c->version[0] != '\0';
    }
    if (s == MC_OK && !c->works) {
        mc_snprintf(c->why, sizeof c->why, "'%.100s --version' %s%s", c->flag, mc_ending_text(&end, how),
                    said.n ? "" : " and says nothing");
    } else if (s == MC_ECOMPILE) {
        mc_snprintf(c->why, sizeof c->why, "%s", mc_last_error());
        s = MC_OK;
    }
    mc_str_free(&said);
    return s;
}

/* ---- the last version that worked ---- */

static const char last[] = ".last";

static struct mc_key last_key(const char *flag)
{
    return mc_key((const char *const[]){ "the last compiler", flag }, 2);
}

static void remember(const struct mc_compiler *c)
{
    struct mc_str note = { 0 };
    struct mc_key key = last_key(c->flag);
    if (!mc_cache_find(key, last, &note, NULL) || strcmp(note.s, c->version) != 0) {
        mc_cache_put(key, last, c->version, strlen(c->version));
    }
    mc_str_free(&note);
}

/* Sets the version that was recorded when the flag's compiler last worked. */
static void recollect(struct mc_compiler *c)
{
    struct mc_str note = { 0 };
    if (mc_cache_find(last_key(c->flag), last, &note, NULL)) {
        set_version(c, note.s);
    }
    mc_str_free(&note);
}

static mc_status identify(struct mc_compiler *c, struct mc_argv *w)
{
    struct mc_str note = { 0 };
    struct mc_key key;
    bool found;
    TRY(stamp(c->flag, w, &key, &found));
    if (!found) {
        mc_snprintf(c->why, sizeof c->why, "there is no program '%s'", w->at[0]);
    } else if (mc_cache_find(key, ".cc", &note, NULL)) {
        set_version(c, note.s);
        c->works = c->version[0] != '\0';
        mc_str_free(&note);
    } else {
        TRY(ask_version(c, w));
        if (c->works) {
            mc_cache_put(key, ".cc", c->version, strlen(c->version));
        }
    }
    if (c->works) {
        remember(c);
    } else {
        recollect(c);
    }
    return MC_OK;
}

/* Fills in c.  A compiler that does not work is no error; lack of memory or of files is. */
static mc_status probe(struct mc_compiler *c)
{
    struct mc_argv w = { 0 };
    mc_status s = MC_OK;
    if (!mc_words_split(&w, c->flag)) {
        s = MC_EMEMORY;
    } else if (w.n == 0) {
        mc_snprintf(c->why, sizeof c->why, "the flag 'cc' is empty");
    } else {
        s = identify(c, &w);
    }
    mc_words_free(&w);
    return s;
}

static const struct mc_compiler *asked_before(const char *flag)
{
    const struct mc_compiler *c = atomic_load(&known);
    while (c && c->flag != flag) { /* flag texts are interned: equal texts have equal addresses */
        c = c->next;
    }
    return c;
}

const struct mc_compiler *mc_compiler(void)
{
    const char *flag = mc_flag_text(FLAG_cc);
    const struct mc_compiler *old = asked_before(flag);
    if (old) {
        return old;
    }
    struct mc_compiler *c = mc_calloc(1, sizeof *c, "compilers");
    if (!c) {
        return NULL;
    }
    c->flag = flag;
    if (probe(c) < 0) {
        mc_free(c);
        return NULL;
    }
    if (!c->works) {
        mc_snprintf(
            c->advice, sizeof c->advice,
            "%s; install a C compiler (Debian and Ubuntu: apt-get install gcc), or name one by the flag cc",
            c->why);
    }
    c->next = atomic_load(&known);
    while (!atomic_compare_exchange_weak(&known, &c->next, c)) {
    } /* another thread may have added a duplicate, which is harmless */
    return c;
}

bool mc_cc_present(void)
{
    const struct mc_compiler *c = mc_compiler();
    return c && c->works;
}

bool mc_cc_known(void)
{
    const struct mc_compiler *c = mc_compiler();
    return c && c->version[0];
}

const char *mc_cc_missing(void)
{
    const struct mc_compiler *c = mc_compiler();
    return c ? c->advice : "";
}

const char *mc_cc_version(void)
{
    const struct mc_compiler *c = mc_compiler();
    return c && c->works ? c->version : "";
}
