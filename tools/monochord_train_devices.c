/* monochord_train_devices.c: --devices cuda0,cuda1: which rank has which GPU.
 *
 * Invariant: a process is started before any GPU is touched, as CUDA does not survive a fork. */
#include "train.h"
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };
/* seconds after the end of this rank in which the others must end, too */
static const double patience = 20;
static pid_t child[MOST];
static int children;

struct list { char text[1024]; const char *name[MOST]; int n; };

/* "cuda" is cuda0.  -1: no GPU has such a name */
static long ordinal_of(const char *name)
{
    char *end = NULL;
    const bool gpu = strncmp(name, "cuda", 4) == 0;
    const long n = gpu && name[4] ? strtol(name + 4, &end, 10) : 0;
    return gpu && (!end || !*end) && n >= 0 && n < 1000 && !strpbrk(name, "+- ") ? n : -1;
}

static bool read_list(const char *said, struct list *l)
{
    if (snprintf(l->text, sizeof l->text, "%s", said) >= (int)sizeof l->text) {
        return complain("--devices: more than %d devices", MOST), false;
    }
    for (char *at = l->text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next) {
            *next++ = '\0';
        }
        if (l->n == MOST) {
            return complain("--devices: more than %d devices", MOST), false;
        }
        l->name[l->n++] = at;
    }
    for (int i = 0; i < l->n; i++) {
        const bool alone = l->n == 1 && strcmp(l->name[i], "cpu") == 0;
        if (!alone && ordinal_of(l->name[i]) < 0) {
            return complain("--devices %s: '%s' is no GPU; expected a list such as cuda0,cuda1", said,
                            l->name[i]),
                   false;
        }
        for (int k = 0; k < i; k++) {
            if (ordinal_of(l->name[i]) == ordinal_of(l->name[k])) {
                return complain("--devices %s: cuda%ld is there twice; a rank needs a GPU of its own", said,
                                ordinal_of(l->name[i])),
                       false;
            }
        }
    }
    return true;
}

/* This rank's number among those of its host; -1: nobody said. */
static int local_rank(void)
{
    static const char *const names[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                         "SLURM_LOCALID" };
    for (int i = 0; i < COUNT(names); i++) {
        const char *said = getenv(names[i]);
        if (said) {
            return atoi(said);
        }
    }
    return -1;
}

bool free_port(char out[16])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
                      getsockname(fd, (struct sockaddr *)&at, &n) == 0;
    if (fd >= 0) {
        close(fd);
    }
    snprintf(out, 16, "%d", (int)ntohs(at.sin_port));
    return good || !complain("no port of this machine is free");
}

static void set_number(const char *name, int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    setenv(name, text, 1);
}

/* The ranks 1, 2, ... as processes; in each of them, and in this one, which rank it is.  -1: complained. */
static int start_others(int n)
{
    char port[16];
    if (!free_port(port)) {
        return -1;
    }
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port, 1);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    set_number("WORLD_SIZE", n);
    fflush(NULL);
    int rank = 0;
    for (int i = 1; i < n && !rank; i++) {
        const pid_t p = fork();
        if (p < 0) {
            return complain("--devices: cannot start a process"), -1;
        }
        rank = p ? 0 : i;
        child[i - 1] = p;
        children = p ? i : 0;
    }
    set_number("RANK", rank);
    return rank;
}

bool devices_good(const char *said)
{
    struct list l = { .n = 0 };
    return !said || read_list(said, &l);
}

bool ranks_devices(struct options *o)
{
    struct list l = { .n = 0 };
    if (!o->devices) {
        return true;
    }
    if (!read_list(o->devices, &l)) {
        return false;
    }
    int which = o->ranks ? local_rank() : 0;
    if (o->ranks && (which < 0 || which >= l.n)) {
        return complain(
                   which < 0
                       ? "--devices %s: nothing says which of the ranks of this host this one is (LOCAL_RANK)"
                       : "--devices %s: there is no device for each rank of this host",
                   o->devices),
               false;
    }
    if (!o->ranks && l.n > 1) {
        which = start_others(l.n);
        o->ranks = "tcp";
    }
    return which >= 0 &&
           (mc_flag_set("device", l.name[which]) == MC_OK || (complain_library("--devices"), false));
}

void ranks_wait(void)
{
    const struct timespec pause = { 0, 10000000 };
    const double until = seconds_now() + patience;
    for (int i = 0; i < children; i++) {
        while (waitpid(child[i], NULL, WNOHANG) == 0) {
            nanosleep(&pause, NULL);
            if (seconds_now() > until) {
                kill(child[i], SIGKILL);
            }
        }
    }
    children = 0;
}
