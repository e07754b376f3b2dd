/* tcp.c: ranks that find each other by the environment, as torchrun sets it: RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT.  Each is connected with each.
 *
 * Invariant: a message is its number of bytes and the bytes; a rank that expects fewer drops the rest, so
 * that ranks that disagree stay in step until they have compared what they said. */
#include "comm/comm.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0x4d434331, MOST_RANKS = 1024 };
struct flow {                   /* messages to and from one rank; the head is the number of bytes */
    const char *from;
    char *to;
    size_t out, in;             /* bytes to send, and those that are expected */
    size_t sent, got;           /* heads included */
    uint64_t out_head, in_head;
};
struct tcp {
    struct flow *flow;          /* by rank */
    struct pollfd *poll;
    int fd[];                   /* by rank; -1: this one, or not connected */
};

/* ---- messages ---- */

static mc_status late(int rank)
{
    return mc_fail(MC_EDEVICE, "rank %d did not come within %lld s (flag comm.timeout)", rank,
                   (long long)mc_flag_int(FLAG_comm_timeout));
}

static bool sends(const struct flow *w)
{
    return w->sent < sizeof w->out_head + w->out;
}

static bool receives(const struct flow *w)
{
    return w->got < sizeof w->in_head || w->got - sizeof w->in_head < w->in_head;
}

/* False: the rank has left. */
static bool send_some(struct flow *w, int fd)
{
    const size_t head = sizeof w->out_head;
    const bool first = w->sent < head;
    const char *at = first ? (const char *)&w->out_head + w->sent : w->from + (w->sent - head);
    const ssize_t n = send(fd, at, first ? head - w->sent : head + w->out - w->sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    w->sent += n > 0 ? (size_t)n : 0;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool receive_some(struct flow *w, int fd)
{
    char dropped[4096];
    const size_t head = sizeof w->in_head;
    size_t most = head - w->got;
    char *at = (char *)&w->in_head + w->got;
    if (w->got >= head) {
        const size_t seen = w->got - head;
        const bool kept = seen < w->in;
        at = kept ? w->to + seen : dropped;
        most = MC_MIN(w->in_head - seen, kept ? w->in - seen : sizeof dropped);
    }
    const ssize_t n = recv(fd, at, most, MSG_DONTWAIT);
    w->got += n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Which flows are not at their end?  The number of them, with their events set; *who: the first that is
 * awaited. */
static int unfinished(mc_comm *c, int *who)
{
    struct tcp *t = c->own;
    int n = 0;
    *who = -1;
    for (int i = 0; i < c->size; i++) {
        struct flow *w = &t->flow[i];
        const bool out = i != c->rank && sends(w), in = i != c->rank && receives(w);
        t->poll[i] = (struct pollfd){ .fd = out || in ? t->fd[i] : -1,
                                      .events = (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0)) };
        *who = *who < 0 && in ? i : *who;
        n += out || in;
    }
    return n;
}

static mc_status one_turn(mc_comm *c)
{
    struct tcp *t = c->own;
    for (int i = 0; i < c->size; i++) {
        struct flow *w = &t->flow[i];
        const int now = t->poll[i].fd < 0 ? 0 : t->poll[i].revents;
        if (((now & (POLLIN | POLLHUP | POLLERR)) && receives(w) && !receive_some(w, t->fd[i])) ||
            ((now & POLLOUT) && sends(w) && !send_some(w, t->fd[i]))) {
            return mc_comm_left(i);
        }
        if ((now & (POLLHUP | POLLERR)) && !receives(w) && sends(w)) {
            return mc_comm_left(i);
        }
    }
    return MC_OK;
}

/* All flows to their end. */
static mc_status move(mc_comm *c)
{
    struct tcp *t = c->own;
    const double until = mc_now() + (double)mc_flag_int(FLAG_comm_timeout);
    mc_status s = MC_OK;
    for (int i = 0; i < c->size; i++) {
        t->flow[i].sent = t->flow[i].got = 0;
        t->flow[i].out_head = t->flow[i].out;
    }
    for (int who; s == MC_OK && unfinished(c, &who);) {
        const double left_s = until - mc_now();
        if (left_s <= 0) {
            return late(who < 0 ? c->rank : who);
        }
        const int n = poll(t->poll, (nfds_t)c->size, (int)MC_MIN(left_s * 1e3 + 1, 1e6));
        s = n > 0 ? one_turn(c) : s;
    }
    return s;
}

static mc_status gather(mc_comm *c, const void *x, size_t bytes, void *y)
{
    struct tcp *t = c->own;
    for (int i = 0; i < c->size; i++) {
        t->flow[i] = (struct flow){
            .from = x, .to = (char *)y + (size_t)i * bytes, .out = bytes, .in = bytes
        };
    }
    const mc_status s = move(c);
    if (s == MC_OK && bytes) {
        memcpy((char *)y + (size_t)c->rank * bytes, x, bytes);
    }
    return s;
}

static mc_status exchange(mc_comm *c, const char *x, const size_t *x_at, char *y, const size_t *y_at)
{
    struct tcp *t = c->own;
    for (int i = 0; i < c->size; i++) {
        t->flow[i] = (struct flow){ .from = x ? x + x_at[i] : NULL,
                                    .to = y ? y + y_at[i] : NULL,
                                    .out = x_at[i + 1] - x_at[i],
                                    .in = y_at[i + 1] - y_at[i] };
    }
    const struct flow own = t->flow[c->rank];
    const mc_status s = move(c);
    if (s == MC_OK && own.out) {
        memmove(own.to, own.from, MC_MIN(own.out, own.in));
    }
    return s;
}

/* ---- the end ---- */

static void hang_up(mc_comm *c)
{
    struct tcp *t = c->own;
    for (int i = 0; i < c->size; i++) {
        if (t->fd[i] >= 0) {
            shutdown(t->fd[i], SHUT_RDWR);
        }
    }
}

/* Nothing is read, as another thread may be at it. */
static int gone(mc_comm *c)
{
    const struct tcp *t = c->own;
    for (int i = 0; i < c->size; i++) {
        char seen;
        const ssize_t n = t->fd[i] < 0 ? 1 : recv(t->fd[i], &seen, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            return i;
        }
    }
    return -1;
}

static void leave(mc_comm *c)
{
    struct tcp *t = c->own;
    for (int i = 0; i < c->size; i++) {
        if (t->fd[i] >= 0) {
            close(t->fd[i]);
        }
    }
    mc_free(t->flow);
    mc_free(t->poll);
    mc_free(t);
    mc_free(c);
}

static const struct mc_comm_engine engine = {
    .name = "tcp", .gather = gather, .exchange = exchange, .close = leave, .abort = hang_up, .left = gone,
};

/* ---- finding each other ---- */

struct hello { uint32_t magic; int32_t rank, size; uint32_t address, port; }; /* where the rank listens */

static mc_status refused(const char *what)
{
    return mc_fail(MC_EDEVICE, "ranks: %s: %s", what, strerror(errno));
}

/* Waits until the socket can be read; false: not in time. */
static bool comes(int fd, double until)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    const double ms = (until - mc_now()) * 1e3;
    return ms > 0 && poll(&p, 1, (int)MC_MIN(ms + 1, 1e6)) > 0;
}

static bool receive_all(int fd, void *to, size_t n, double until)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = comes(fd, until) ? recv(fd, (char *)to + at, n - at, 0) : 0;
        if (got <= 0) {
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

static bool send_all(int fd, const void *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t sent = send(fd, (const char *)from + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        at += (size_t)sent;
    }
    return true;
}

static void prepare(int fd)
{
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* A socket that listens; port 0: any, and *port is set to it. */
static int listens(uint32_t *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)*port) };
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, MOST_RANKS) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

/* Connected, or -1; tried again until then, as the other may start later. */
static int calls(uint32_t address, uint32_t port, double until)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr.s_addr = address };
    const struct timespec pause = { 0, 20000000 };
    do {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) {
            prepare(fd);
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        }
        nanosleep(&pause, NULL);
    } while (mc_now() < until);
    return -1;
}

/* n ranks that call; said[i] is what rank i says of itself. */
static mc_status answer(mc_comm *c, int listener, int n, struct hello *said, double until)
{
    struct tcp *t = c->own;
    while (n) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        struct hello h = { 0 };
        const int fd = comes(listener, until) ? accept(listener, (struct sockaddr *)&from, &size) : -1;
        if (fd < 0) {
            int who = 0;
            while (who < c->size - 1 && (who == c->rank || t->fd[who] >= 0)) {
                who++;
            }
            return late(who);
        }
        prepare(fd);
        if (!receive_all(fd, &h, sizeof h, until) || h.magic != MAGIC) {
            close(fd); /* someone else */
            continue;
        }
        if (h.size != c->size || h.rank < 0 || h.rank >= c->size || h.rank == c->rank || t->fd[h.rank] >= 0) {
            close(fd);
            return h.size != c->size
                       ? mc_fail(MC_ECHECK, "ranks disagree: rank %d is one of %d, rank %d one of %d",
                                 c->rank, c->size, (int)h.rank, (int)h.size)
                       : mc_fail(MC_ECHECK, "ranks disagree: there are two ranks %d", (int)h.rank);
        }
        h.address = from.sin_addr.s_addr;
        t->fd[h.rank] = fd;
        said[h.rank] = h;
        n--;
    }
    return MC_OK;
}

/* Rank 0 tells all where they are; the rank with the higher number calls. */
static mc_status meet_all(mc_comm *c, uint32_t master, uint32_t port, int listener, struct hello *all,
                          double until)
{
    struct tcp *t = c->own;
    const size_t bytes = (size_t)c->size * sizeof *all;
    mc_status s = MC_OK;
    if (c->rank == 0) {
        s = answer(c, listener, c->size - 1, all, until);
        for (int i = 1; i < c->size && s == MC_OK; i++) {
            s = send_all(t->fd[i], all, bytes) ? MC_OK : mc_comm_left(i);
        }
        return s;
    }
    for (int i = 0; i < c->rank && s == MC_OK; i++) {
        t->fd[i] = i ? calls(all[i].address, all[i].port, until) : calls(master, port, until);
        s = t->fd[i] < 0 ? late(i) : send_all(t->fd[i], &all[c->rank], sizeof *all) ? MC_OK : mc_comm_left(i);
        s = s == MC_OK && i == 0 && !receive_all(t->fd[0], all, bytes, until) ? mc_comm_left(0) : s;
    }
    return s == MC_OK ? answer(c, listener, c->size - 1 - c->rank, all, until) : s;
}

static mc_status number(const char *name, int least, int most, int *out)
{
    char *end = NULL;
    const char *said = getenv(name);
    const long n = said ? strtol(said, &end, 10) : -1;
    if (!said || end == said || *end || n < least || n > most) {
        return mc_fail(MC_EARG, "ranks by tcp: %s is %s%s%s; it is to be %d to %d, as torchrun sets it", name,
                       said ? "'" : "not set", said ? said : "", said ? "'" : "", least, most);
    }
    *out = (int)n;
    return MC_OK;
}

static mc_status address_of(const char *host, uint32_t *to)
{
    const struct addrinfo want = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    const int e = getaddrinfo(host, NULL, &want, &found);
    if (e) {
        return mc_fail(MC_EDEVICE, "ranks by tcp: MASTER_ADDR '%s': %s", host, gai_strerror(e));
    }
    *to = ((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr.s_addr;
    freeaddrinfo(found);
    return MC_OK;
}

static mc_status connect_all(mc_comm *c, uint32_t master, int port)
{
    const double until = mc_now() + (double)mc_flag_int(FLAG_comm_timeout);
    uint32_t own = c->rank ? 0 : (uint32_t)port;
    struct hello *all = mc_calloc((size_t)c->size, sizeof *all, "comm");
    const int listener = all ? listens(&own) : -1;
    mc_status s = !all ? MC_EMEMORY : listener < 0 ? refused("listening on MASTER_PORT") : MC_OK;
    if (s == MC_OK) {
        all[c->rank] = (struct hello){ MAGIC, c->rank, c->size, 0, own };
        s = meet_all(c, master, (uint32_t)port, listener, all, until);
    }
    if (listener >= 0) {
        close(listener);
    }
    mc_free(all);
    return s;
}

/* torchrun's agent may listen on MASTER_PORT itself. */
static int free_port(int port)
{
    const char *taken = getenv("TORCHELASTIC_USE_AGENT_STORE");
    return taken && strcmp(taken, "True") == 0 ? port % 65535 + 1 : port;
}

mc_comm *mc_comm_tcp(void)
{
    int rank, size, port;
    uint32_t master = 0;
    const char *host = getenv("MASTER_ADDR");
    if (number("WORLD_SIZE", 1, MOST_RANKS, &size) < 0 || number("RANK", 0, size - 1, &rank) < 0 ||
        number("MASTER_PORT", 1, 65535, &port) < 0 ||
        (host ? address_of(host, &master) : mc_fail(MC_EARG, "ranks by tcp: MASTER_ADDR is not set")) < 0) {
        return NULL;
    }
    struct tcp *t = mc_calloc(1, sizeof *t + (size_t)size * sizeof *t->fd, "comm");
    if (t) {
        t->flow = mc_calloc((size_t)size, sizeof *t->flow, "comm");
        t->poll = mc_calloc((size_t)size, sizeof *t->poll, "comm");
    }
    mc_comm *c = t && t->flow && t->poll ? mc_comm_make(&engine, rank, size, t) : NULL;
    if (!c) {
        mc_free(t ? t->flow : NULL);
        mc_free(t ? t->poll : NULL);
        mc_free(t);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        t->fd[i] = -1;
    }
    if (connect_all(c, master, free_port(port)) < 0) {
        leave(c);
        return NULL;
    }
    return c;
}
