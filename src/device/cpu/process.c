/* process.c: runs a program (the C compiler), collects its output and waits for it.
 *
 * Invariant: the wait ends when the program itself exits or its time is over.  It does not depend on the end
 * of the output, because a child process left behind could keep the pipe open for ever.  Such children are
 * killed only when the time is over. */
#include "device/cpu/code.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- command lines ---- */

bool mc_words_add(struct mc_argv *w, const char *word, size_t n)
{
    char *copy = VEC_RESERVE(*w, 2) ? mc_arena_str(&w->arena, word, n) : NULL;
    if (copy) {
        w->at[w->n++] = copy;
        w->at[w->n] = NULL;
    }
    return copy != NULL;
}

bool mc_words_split(struct mc_argv *w, const char *text)
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

void mc_words_free(struct mc_argv *w)
{
    VEC_FREE(*w);
    mc_arena_free(&w->arena);
}

/* ---- a process ---- */

struct surroundings {
    VEC(char *) at; /* borrowed, NULL at the end */
    struct mc_str tmp;
};

/* The environment of this process, with LC_ALL (English messages) and TMPDIR (temporary files) replaced. */
static bool make_environment(struct surroundings *env, const char *tmp)
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

/* Moves the file to a descriptor above 2.  In a process that closed 0, 1 and 2 a pipe could get one of them,
 * and the dup2 calls of spawn would overwrite it. */
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

static int spawn(pid_t *pid, const struct mc_argv *w, char **env, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD); /* this process may ignore it, but a compiler waits for its children */
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
    posix_spawnattr_setpgroup(&attr, 0); /* its own group, so that it can be killed with its children */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
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

/* ---- waiting ---- */

/* ENOUGH: bytes of output that are kept; LOOK: milliseconds between checks of a silent process */
enum { ENOUGH = 1 << 16, LOOK = 20 };

/* Reads once and keeps the first ENOUGH bytes or so.  False: end of the output, or an error. */
static bool read_output(int fd, struct mc_str *said)
{
    char buf[4096];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n > 0 && said->n < ENOUGH) {
        mc_str_addn(said, buf, (size_t)n);
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Waits for output for at most this long.  True: there is some, or the pipe is closed. */
static bool output_before(int fd, int milliseconds)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, milliseconds) > 0;
}

static void sleep_briefly(int64_t nanoseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)nanoseconds }, NULL);
}

/* ECHILD: this process ignores SIGCHLD, or another thread has waited for the child.  Then the exit is unknown
 * and the caller checks the compiler's output file. */
static bool has_exited(pid_t pid, struct mc_child_exit *end)
{
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        return false;
    }
    if (got < 0) {
        *end = (struct mc_child_exit){ ENDED_UNKNOWN, 0 };
    } else if (WIFSIGNALED(status)) {
        *end = (struct mc_child_exit){ ENDED_SIGNAL, WTERMSIG(status) };
    } else {
        *end = (struct mc_child_exit){ ENDED_CODE, WEXITSTATUS(status) };
    }
    return true;
}

static void end_group(pid_t pid)
{
    struct mc_child_exit any;
    if (kill(-pid, SIGKILL) < 0) {
        kill(pid, SIGKILL);
    }
    for (int i = 0; i < 100 && !has_exited(pid, &any); i++) {
        sleep_briefly(LOOK * 1000000);
    }
}

/* Reads output until the process exits or `limit` seconds (0: no limit) are over. */
static void await(pid_t pid, int fd, int64_t limit, struct mc_str *said, struct mc_child_exit *end)
{
    const double start = mc_now();
    int64_t pause = 50000; /* ns between checks once the output is closed; doubles up to LOOK */
    bool open = true;
    for (;;) {
        if (open && output_before(fd, LOOK)) {
            open = read_output(fd, said);
        } else if (!open) {
            sleep_briefly(pause);
            pause = MC_MIN(2 * pause, (int64_t)LOOK * 1000000);
        }
        if (has_exited(pid, end)) {
            break;
        }
        if (limit && mc_now() - start > (double)limit) {
            *end = (struct mc_child_exit){ ENDED_LATE, (int)limit };
            end_group(pid);
            break;
        }
    }
    for (size_t more = 0; open && more < ENOUGH && output_before(fd, 0); more += 4096) {
        open = read_output(fd, said);
    }
}

/* ---- how it ended ---- */

bool mc_ending_good(const struct mc_child_exit *e)
{
    return e->how == ENDED_UNKNOWN || (e->how == ENDED_CODE && e->number == 0);
}

const char *mc_ending_text(const struct mc_child_exit *e, char text[MC_ENDING])
{
    static const struct {
        int number;
        const char *name;
    } signals[] = {
        { SIGKILL, "SIGKILL; was memory short?" },
        { SIGSEGV, "SIGSEGV" },
        { SIGBUS, "SIGBUS" },
        { SIGABRT, "SIGABRT" },
        { SIGTERM, "SIGTERM" },
        { SIGILL, "SIGILL" },
        { SIGXCPU, "SIGXCPU" },
        { SIGINT, "SIGINT" },
    };
    const char *name = "";
    switch (e->how) {
    case ENDED_CODE: mc_snprintf(text, MC_ENDING, "ends with code %d", e->number); break;
    case ENDED_SIGNAL:
        for (size_t i = 0; i < NELEM(signals); i++) {
            name = signals[i].number == e->number ? signals[i].name : name;
        }
        mc_snprintf(text, MC_ENDING, "was ended by signal %d%s%s%s", e->number, *name ? " (" : "", name,
                    *name ? ")" : "");
        break;
    case ENDED_LATE:
        mc_snprintf(text, MC_ENDING,
                    "was still running after %d s, the limit of the flag cc.timeout, and was ended",
                    e->number);
        break;
    default: mc_snprintf(text, MC_ENDING, "ends with an unknown exit code");
    }
    return text;
}

/* ---- external ---- */

mc_status mc_cc_run(const struct mc_argv *w, int in, const char *tmp, struct mc_str *said,
                    struct mc_child_exit *end)
{
    int ends[2] = { -1, -1 };
    struct surroundings env = { 0 };
    pid_t pid = -1;
    mc_status s = MC_OK;
    if (!make_environment(&env, tmp)) {
        s = MC_EMEMORY;
        goto end;
    }
    if (!open_pipe(ends)) {
        s = mc_fail(MC_EFILE, "cannot make a pipe to '%s': %s", w->at[0], strerror(errno));
        goto end;
    }
    int err = spawn(&pid, w, env.at.at, in, ends[1]);
    if (err) {
        s = mc_fail(MC_ECOMPILE, "'%s' cannot be run: %s", w->at[0], strerror(err));
        goto end;
    }
    close(ends[1]);
    ends[1] = -1;
    await(pid, ends[0], mc_flag_int(FLAG_cc_timeout), said, end);
    if (said->bad) {
        s = MC_EMEMORY;
    }
end:
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            close(ends[i]);
        }
    }
    VEC_FREE(env.at);
    mc_str_free(&env.tmp);
    return s;
}
