/* nccl.cpp: the part of NCCL that this library calls, between threads or processes of this machine.
 *
 * Ranks meet in a file that all have mapped: each writes a piece of its data, all wait for each other, and each
 * reads what it needs.  What is added is added in another order from piece to piece, and a mean is one of
 * numbers that were divided first, as NCCL may do.  Results that are registered on one rank alone are an
 * error here, where NCCL would wait for ever. */
#define FAKE_GPU
#include "fake.h"
#include <algorithm>
#include <atomic>
#include <map>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 16, PIECE = 1 << 18, FAILED = 2, LEFT = 6 };
struct region {
    std::atomic<int> here, turn, gone, registered[RANKS];
    char data[RANKS][PIECE];
};
struct id {
    char bytes[128];
};
struct communicator {
    region *shared;
    int rank, size;
    std::atomic<bool> aborted;
    std::atomic<int> captured;
    std::map<const char *, size_t> registered; /* bytes by start */
};
/* What is enqueued or captured has one. */
struct held {
    communicator *c;
    held(communicator *c) : c(c) { c->captured++; }
    held(const held &h) : c(h.c) { c->captured++; }
    ~held() { c->captured--; }
};
std::atomic<int> fake_waiting; /* collectives that are not at their end */

static std::mutex registering;
static bool is_registered(const communicator *c, const void *p)
{
    std::lock_guard<std::mutex> hold(registering);
    auto after = c->registered.upper_bound((const char *)p);
    return after != c->registered.begin() && (--after, (const char *)p < after->first + after->second);
}

/* False: a rank has left. */
static bool meet(communicator *c)
{
    region *s = c->shared;
    const int turn = s->turn;
    if (++s->here == c->size) {
        s->here = 0;
        s->turn++;
        return true;
    }
    while (s->turn == turn && !s->gone && !c->aborted)
        usleep(20);
    return s->turn != turn;
}

/* ---- numbers ---- */
struct half {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};
static float wide(half h)
{
    const int e = h.bits >> 10 & 31, m = h.bits & 1023;
    const float f = e == 31 ? (m ? NAN : INFINITY) : e ? ldexpf((float)(m + 1024), e - 25) : ldexpf((float)m, -24);
    return h.bits & 0x8000 ? -f : f;
}
static float wide(bf16 b)
{
    const uint32_t bits = (uint32_t)b.bits << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
template <class T> static T wide(T x) { return x; }
static void narrow(half *to, float f)
{
    const uint16_t sign = signbit(f) ? 0x8000 : 0;
    f = fabsf(f);
    if (!(f <= INFINITY)) {
        to->bits = sign | 0x7e00;
        return;
    }
    int e = 0;
    frexpf(f, &e);
    e = std::max(e, -13); /* a step is 2^(e - 11) */
    const float steps = f < INFINITY ? nearbyintf(ldexpf(f, 11 - e)) : 0;
    const float value = ldexpf(steps, e - 11);
    if (f == INFINITY || value >= 65536.f) {
        to->bits = sign | 0x7c00;
    } else {
        frexpf(value, &e);
        to->bits = sign | (value < ldexpf(1, -14) ? (uint16_t)ldexpf(value, 24) : (uint16_t)((e + 14) << 10 | ((int)ldexpf(value, 11 - e) & 1023)));
    }
}
static void narrow(bf16 *to, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    to->bits = f != f ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <class T> static void narrow(T *to, T x) { *to = x; }

template <class T> static T both(T a, T b, int op)
{
    return op == 2 ? std::max(a, b) : op == 3 ? std::min(a, b) : (T)(a + b);
}
static float both(float a, float b, int op) { return op == 2 ? fmaxf(a, b) : op == 3 ? fminf(a, b) : a + b; }
static double both(double a, double b, int op) { return op == 2 ? fmax(a, b) : op == 3 ? fmin(a, b) : a + b; }

template <class T> static void reduce(const communicator *c, size_t n, int op, size_t piece, void *to)
{
    for (size_t i = 0; i < n; i++) {
        const auto of = [&](size_t r) {
            const auto x = wide(((const T *)c->shared->data[(r + piece) % c->size])[i]);
            return op == 4 ? (decltype(x))(x / c->size) : x;
        };
        auto sum = of(0);
        for (int r = 1; r < c->size; r++)
            sum = both(sum, of(r), op);
        narrow((T *)to + i, sum);
    }
}
static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
static void reduce(const communicator *c, size_t n, int type, int op, size_t piece, void *to)
{
    switch (type) {
    case 0: return reduce<int8_t>(c, n, op, piece, to);
    case 1: return reduce<uint8_t>(c, n, op, piece, to);
    case 2: return reduce<int32_t>(c, n, op, piece, to);
    case 3: return reduce<uint32_t>(c, n, op, piece, to);
    case 4: return reduce<int64_t>(c, n, op, piece, to);
    case 5: return reduce<uint64_t>(c, n, op, piece, to);
    case 6: return reduce<half>(c, n, op, piece, to);
    case 7: return reduce<float>(c, n, op, piece, to);
    case 8: return reduce<double>(c, n, op, piece, to);
    default: return reduce<bf16>(c, n, op, piece, to);
    }
}

/* ---- collectives ---- */

/* take(piece, at, bytes) reads what the ranks that give have written.  The others may use the GPU meanwhile. */
template <class F> static int by_pieces(communicator *c, const void *from, const void *to, size_t bytes, bool gives, F take)
{
    fake_lock.unlock();
    fake_waiting++;
    c->shared->registered[c->rank] = is_registered(c, to);
    bool good = meet(c), same = true;
    for (int r = 0; r < c->size; r++)
        same = same && c->shared->registered[r] == c->shared->registered[c->rank];
    good = good && meet(c);
    if (!same)
        fprintf(stderr, "fake NCCL: the result is registered on some ranks only\n");
    good = good && same;
    size_t piece = 0;
    for (size_t at = 0; at < bytes && good; at += PIECE, piece++) {
        const size_t n = std::min(bytes - at, (size_t)PIECE);
        if (gives)
            memcpy(c->shared->data[c->rank], (const char *)from + at, n);
        good = meet(c);
        if (good)
            take(piece, at, n);
        good = good && meet(c);
    }
    fake_waiting--;
    fake_lock.lock();
    return good || c->aborted ? 0 : 719; /* what is aborted ends without an error */
}

static int traced(const char *what, size_t n)
{
    if (getenv("FAKE_TRACE"))
        fprintf(stderr, "%s %zu\n", what, n);
    return 0;
}

extern "C" {
int ncclGetVersion(int *v) { return *v = 22800, 0; }
const char *ncclGetErrorString(int code) { return code == LEFT ? "a rank has left" : "an error"; }
int ncclGetUniqueId(id *to)
{
    snprintf(to->bytes, sizeof to->bytes, "/dev/shm/fake_ncclXXXXXX");
    const int fd = mkstemp(to->bytes);
    const bool good = fd >= 0 && ftruncate(fd, sizeof(region)) == 0;
    close(fd);
    return good ? 0 : FAILED;
}
int ncclCommInitRank(void **to, int size, id of, int rank)
{
    const int fd = open(of.bytes, O_RDWR);
    void *at = fd < 0 || size > RANKS ? MAP_FAILED : mmap(NULL, sizeof(region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return FAILED;
    communicator *c = new communicator{ (region *)at, rank, size, { false }, { 0 }, {} };
    *to = c;
    const bool good = meet(c);
    if (!rank)
        unlink(of.bytes);
    return good ? 0 : LEFT;
}
int ncclCommDestroy(void *comm)
{
    communicator *c = (communicator *)comm;
    munmap(c->shared, sizeof(region));
    delete c;
    return 0;
}
/* Another thread may be in one of its collectives.  NCCL waits for the end of all graphs that have one. */
int ncclCommAbort(void *comm)
{
    communicator *c = (communicator *)comm;
    c->aborted = true;
    c->shared->gone = 1;
    while (c->captured > 0)
        usleep(1000);
    return 0;
}
int cuMemAlloc_v2(unsigned long long *p, size_t n);
int cuMemFree_v2(unsigned long long p);
int ncclMemAlloc(void **p, size_t n)
{
    unsigned long long at = 0;
    const int code = cuMemAlloc_v2(&at, n);
    traced("ncclMemAlloc", n);
    *p = (void *)at;
    return code ? 1 : 0;
}
int ncclMemFree(void *p)
{
    traced("ncclMemFree", 0);
    return cuMemFree_v2((unsigned long long)p) ? 1 : 0;
}
int ncclCommRegister(void *comm, void *p, size_t n, void **handle)
{
    std::lock_guard<std::mutex> hold(registering);
    ((communicator *)comm)->registered[(const char *)p] = n;
    traced("ncclCommRegister", n);
    *handle = p;
    return 0;
}
int ncclCommDeregister(void *comm, void *handle)
{
    std::lock_guard<std::mutex> hold(registering);
    traced("ncclCommDeregister", 0);
    return ((communicator *)comm)->registered.erase((const char *)handle) ? 0 : FAILED;
}
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *)
{
    communicator *c = (communicator *)comm;
    const held h(c);
    traced("ncclAllReduce", n);
    return fake_enqueue([=] {
        (void)h;
        return by_pieces(c, from, to, n * sizes[type], true, [&](size_t piece, size_t at, size_t bytes) {
            reduce(c, bytes / sizes[type], type, op, piece, (char *)to + at);
        });
    });
}
int ncclReduceScatter(const void *from, void *to, size_t each, int type, int op, void *comm, void *)
{
    communicator *c = (communicator *)comm;
    const held h(c);
    traced("ncclReduceScatter", each);
    return fake_enqueue([=] {
        (void)h;
        int code = 0;
        for (int b = 0; b < c->size && !code; b++)
            code = by_pieces(c, (const char *)from + b * each * sizes[type], to, each * sizes[type], true, [&](size_t piece, size_t at, size_t bytes) {
                if (b == c->rank)
                    reduce(c, bytes / sizes[type], type, op, piece, (char *)to + at);
            });
        return code;
    });
}
int ncclAllGather(const void *from, void *to, size_t each, int type, void *comm, void *)
{
    communicator *c = (communicator *)comm;
    const held h(c);
    traced("ncclAllGather", each);
    return fake_enqueue([=] {
        (void)h;
        return by_pieces(c, from, to, each * sizes[type], true, [&](size_t, size_t at, size_t bytes) {
            for (int r = 0; r < c->size; r++)
                memcpy((char *)to + r * each * sizes[type] + at, c->shared->data[r], bytes);
        });
    });
}
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *)
{
    communicator *c = (communicator *)comm;
    const held h(c);
    traced("ncclBroadcast", n);
    return fake_enqueue([=] {
        (void)h;
        return by_pieces(c, from, to, n * sizes[type], c->rank == root, [&](size_t, size_t at, size_t bytes) {
            memcpy((char *)to + at, c->shared->data[root], bytes);
        });
    });
}
}
