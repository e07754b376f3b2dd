/* cc.c: the C compiler as a process: is there one, which, and how it is run.
 *
 * Invariant: a compiler is asked for its version once a process, and, where there is a cache folder,
 * once for each state (path, size, time) of its file: a warm start runs no process at all. */
#include "device/cpu/code.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- command lines ---- */

bool mc_words_add(struct mc_words *w, const char *word, size_t n)
{
    char *copy = VEC_RESERVE(*w, 2) ? mc_arena_str(&w->arena, word, n) : NULL;
    if (copy) {
        w->at[w->n++] = copy;
        w->at[w->n] = NULL;
    }
    return copy != NULL;
}

bool mc_words_split(struct mc_words *w, const char *text)
{
    static const char blank[] = " \t\n";
    bool good = true;
    for (text += strspn(text, blank); good && *text; text += strspn(text, blank)) {
        size_t n = strcspn(text, blank);
        good = mc_words_add(w, text, n);
        text += n;
    }
    return good;
}

void mc_words_free(struct mc_words *w)
{
    VEC_FREE(*w);
    mc_arena_free(&w->arena);
}

/* ---- a process ---- */

struct surroundings {
    VEC(char *) at; /* borrowed, NULL at the end */
    struct mc_str tmp;
};

/* Those of this process, but for two: messages in English, and where the compiler's own files go. */
static bool surround(struct surroundings *env, const char *tmp)
{
    static char english[] = "LC_ALL=C";
    bool good = VEC_PUSH(env->at, english);
    if (tmp) {
        mc_str_addf(&env->tmp, "TMPDIR=%s", tmp);
        good = good && !env->tmp.bad && VEC_PUSH(env->at, env->tmp.s);
    }
    for (char **e = environ; good && e && *e; e++) {
        bool ours = strncmp(*e, "LC_ALL=", 7) == 0 || (tmp && strncmp(*e, "TMPDIR=", 7) == 0);
        good = ours || VEC_PUSH(env->at, *e);
    }
    return good && VEC_PUSH(env->at, NULL);
}

/* The same file under a number that no dup2 to 0, 1 or 2 can hit, as when a daemon closed those. */
static int above_standard(int fd)
{
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return high;
}

static bool open_pipe(int end[2])
{
    if (pipe2(end, O_CLOEXEC) < 0) {
        return false;
    }
    end[0] = above_standard(end[0]);
    end[1] = above_standard(end[1]);
    return end[0] >= 0 && end[1] >= 0;
}

static int spawn(pid_t *pid, const struct mc_words *w, char **env, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD); /* a compiler waits for its children, whatever we do */
    sigaddset(&usual, SIGPIPE);
    int err = posix_spawn_file_actions_init(&files);
    if (err) {
        return err;
    }
    err = posix_spawnattr_init(&attr);
    if (err) {
        goto no_attr;
    }
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &usual);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    err = in >= 0 ? posix_spawn_file_actions_adddup2(&files, in, 0)
                  : posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    err = err ? err : posix_spawn_file_actions_adddup2(&files, out, 1);
    err = err ? err : posix_spawn_file_actions_adddup2(&files, out, 2);
    err = err ? err : posix_spawnp(pid, w->at[0], &files, &attr, w->at, env);
    posix_spawnattr_destroy(&attr);
no_attr:
    posix_spawn_file_actions_destroy(&files);
    return err;
}

/* Reads to the end, keeping the beginning. */
static void read_output(int fd, struct mc_str *said)
{
    enum { ENOUGH = 1 << 16 };
    char buf[4096];
    for (;;) {
        ssize_t n = read(fd, buf, sizeof buf);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return;
        }
        if (n > 0 && said->n < ENOUGH) {
            mc_str_addn(said, buf, (size_t)n);
        }
    }
}

/* ECHILD: the program ignores SIGCHLD or another of its threads waits for any child; then what the
 * compiler left behind has to tell how it went. */
static int exit_code(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return 0;
        }
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

mc_status mc_cc_run(const struct mc_words *w, int in, const char *tmp, struct mc_str *said, int *code)
{
    int end[2] = { -1, -1 };
    struct surroundings env = { 0 };
    pid_t pid = -1;
    mc_status s = MC_OK;
    if (!surround(&env, tmp)) {
        s = MC_EMEMORY;
        goto end;
    }
    if (!open_pipe(end)) {
        s = mc_fail(MC_EFILE, "cannot make a pipe to '%s': %s", w->at[0], strerror(errno));
        goto end;
    }
    int err = spawn(&pid, w, env.at.at, in, end[1]);
    if (err) {
        s = mc_fail(MC_ECOMPILE, "'%s' cannot be run: %s", w->at[0], strerror(err));
        goto end;
    }
    close(end[1]);
    end[1] = -1;
    read_output(end[0], said);
    *code = exit_code(pid);
    if (said->bad) {
        s = MC_EMEMORY;
    }
end:
    for (int i = 0; i < 2; i++) {
        if (end[i] >= 0) {
            close(end[i]);
        }
    }
    VEC_FREE(env.at);
    mc_str_free(&env.tmp);
    return s;
}

/* ---- which compiler ---- */

static struct mc_compiler *_Atomic known; /* newest first; only ever added to */

/* Where PATH has the program; its path is added to *out. */
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

/* Key of the state of every program named in the flag: "ccache gcc" has two.  *found: the first is there. */
static mc_status stamp(const char *flag, const struct mc_words *w, struct mc_key *key, bool *found)
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
    snprintf(c->version, sizeof c->version, "%.*s", (int)strcspn(said, "\n"), said);
    c->works = c->version[0] != '\0';
}

static mc_status ask_version(struct mc_compiler *c, struct mc_words *w)
{
    struct mc_str said = { 0 };
    int code = 0;
    mc_status s = mc_words_add(w, "--version", 9) ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        s = mc_cc_run(w, -1, NULL, &said, &code);
    }
    if (s == MC_OK && code == 0 && said.n) {
        set_version(c, said.s);
    }
    if (s == MC_OK && !c->works) {
        snprintf(c->why, sizeof c->why, "'%s --version' ends with code %d", c->flag, code);
    } else if (s == MC_ECOMPILE) {
        snprintf(c->why, sizeof c->why, "%s", mc_last_error());
        s = MC_OK;
    }
    mc_str_free(&said);
    return s;
}

static mc_status identify(struct mc_compiler *c, struct mc_words *w)
{
    struct mc_str note = { 0 };
    struct mc_key key;
    bool found;
    TRY(stamp(c->flag, w, &key, &found));
    if (!found) {
        snprintf(c->why, sizeof c->why, "there is no program '%s'", w->at[0]);
        return MC_OK;
    }
    if (mc_cache_find(key, ".cc", NULL, &note)) {
        set_version(c, note.s);
        mc_str_free(&note);
        return MC_OK;
    }
    TRY(ask_version(c, w));
    if (c->works) {
        mc_cache_put(key, ".cc", c->version, strlen(c->version));
    }
    return MC_OK;
}

/* Fills in what can be known of c; an error only for want of memory or of files. */
static mc_status probe(struct mc_compiler *c)
{
    struct mc_words w = { 0 };
    mc_status s = MC_OK;
    if (!mc_words_split(&w, c->flag)) {
        s = MC_EMEMORY;
    } else if (w.n == 0) {
        snprintf(c->why, sizeof c->why, "the flag 'cc' is empty");
    } else {
        s = identify(c, &w);
    }
    mc_words_free(&w);
    return s;
}

static const struct mc_compiler *recall(const char *flag)
{
    const struct mc_compiler *c = atomic_load(&known);
    while (c && c->flag != flag) { /* flags keep each text once */
        c = c->next;
    }
    return c;
}

const struct mc_compiler *mc_compiler(void)
{
    const char *flag = mc_flag_text(FLAG_cc);
    const struct mc_compiler *old = recall(flag);
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
    c->next = atomic_load(&known);
    while (!atomic_compare_exchange_weak(&known, &c->next, c)) {
    } /* two threads may both have asked; the twin stays, unused and harmless */
    return c;
}

bool mc_cc_present(void)
{
    const struct mc_compiler *c = mc_compiler();
    return c && c->works;
}

const char *mc_cc_version(void)
{
    const struct mc_compiler *c = mc_compiler();
    return c ? c->version : "";
}
