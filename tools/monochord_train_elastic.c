/* monochord_train_elastic.c: `--ranks mpi:N`: mpirun is started from here, and again with the ranks that are
 * left when one has died.
 *
 * Invariant: each start but the first goes on from the checkpoint, if there is one; a run that ends by an
 * error of its own, or is told to end, is not started again. */
#include "train.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILLED = 128 };          /* and the signal: how mpirun says that a rank was ended by one */

static const double look_again = 0.05, patience = 5;    /* seconds */
static volatile sig_atomic_t child, told;

static void pass_on(int sig)
{
    told = sig;
    if (child > 0) {
        kill((pid_t)child, sig);
    }
}

int elastic_ranks(const char *ranks)
{
    char *end;
    const long n = ranks && strncmp(ranks, "mpi:", 4) == 0 ? strtol(ranks + 4, &end, 10) : 0;
    return n > 0 && n <= MOST_RANKS && !*end ? (int)n : 0;
}

/* The words of this run with --ranks mpi for mpi:N; after the first start `--resume auto` for --new. */
static char **words_of(int argc, char **argv, const char *self, int n, bool again)
{
    static char count[16];
    char **w = must(calloc((size_t)argc + 8, sizeof *w));
    int k = 0;
    snprintf(count, sizeof count, "%d", n);
    const char *const head[] = { "mpirun", "-n", count, self, "train" };
    for (int i = 0; i < COUNT(head); i++) {
        w[k++] = (char *)(uintptr_t)head[i];
    }
    bool resumes = false;
    for (int i = 1; i < argc; i++) {
        const bool ranks = strcmp(argv[i - 1], "--ranks") == 0, anew = strcmp(argv[i], "--new") == 0;
        resumes |= strcmp(argv[i], "--resume") == 0;
        if (!again || !anew) {
            w[k++] = ranks ? "mpi" : argv[i];
        }
    }
    if (again && !resumes) {
        w[k++] = "--resume";
        w[k++] = "auto";
    }
    return w;
}

/* Is there a process that `parent` started and that has not ended?  True where the system does not tell. */
static bool has_children(pid_t parent)
{
    char path[64], list[4096], state = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(list, 1, sizeof list - 1, f) : 0;
    if (!f) {
        return true;
    }
    fclose(f);
    list[n] = '\0';
    char *at = list;
    for (long pid; (pid = strtol(at, &at, 10)) > 0;) {
        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        f = fopen(path, "r");
        const bool told_state = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
        if (f) {
            fclose(f);
        }
        if (told_state && state != 'Z') {
            return true;
        }
    }
    return false;
}

/* Waits for mpirun.  Open MPI's may lock itself up while it ends, after a rank was killed that had not yet
 * begun: once it has had ranks, and has none any more for `patience`, it is ended. */
static int await(pid_t pid)
{
    const struct timespec nap = { 0, (long)(look_again * 1e9) };
    int status = 0;
    bool began = false;
    double last = seconds_now();
    for (pid_t got; (got = waitpid(pid, &status, WNOHANG)) != pid;) {
        if (got < 0 && errno != EINTR) {
            break;
        }
        const bool runs = has_children(pid);
        began |= runs;
        last = runs || !began ? seconds_now() : last;
        if (seconds_now() - last > patience) {
            kill(pid, SIGKILL);
        }
        nanosleep(&nap, NULL);
    }
    return status;
}

/* The exit status of mpirun, as a shell has it; -1: complained. */
static int start(char **words)
{
    int ends[2], error = 0, status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return complain("--ranks: %s", strerror(errno)), -1;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        execvp(words[0], words);
        error = errno;
        _exit(write(ends[1], &error, sizeof error) == sizeof error ? 127 : 126);
    }
    child = pid;
    close(ends[1]);
    const bool failed = pid < 0 || read(ends[0], &error, sizeof error) == sizeof error;
    close(ends[0]);
    status = pid > 0 ? await(pid) : 0;
    child = 0;
    if (failed) {
        return complain("cannot start mpirun: %s; Debian: openmpi-bin", strerror(pid < 0 ? errno : error)),
               -1;
    }
    return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The most ranks below n among which the parts divide. */
static int fewer(const struct options *o, int n)
{
    const long parts = o->parts ? o->parts : ranks_strict() ? STRICT_PARTS : 0;
    do {
        n--;
    } while (n > 0 && parts && parts % n);
    return n;
}

int elastic_train(const struct options *o, int argc, char **argv)
{
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const struct sigaction a = { .sa_handler = pass_on };
    int n = elastic_ranks(o->ranks), status = 0;
    if (length < 0) {
        return complain("--ranks: cannot find this program: %s", strerror(errno)), 1;
    }
    self[length] = '\0';
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    for (bool again = false;; again = true) {
        char **words = words_of(argc, argv, self, n, again);
        status = start(words);
        free(words);
        const int left = fewer(o, n);
        if (status <= KILLED || told || left < 1) {
            return status < 0 ? 1 : status;
        }
        complain("a rank was ended by signal %d; going on with %d of %d ranks", status - KILLED, left, n);
        n = left;
    }
}
