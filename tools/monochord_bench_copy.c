/* monochord_bench_copy.c: how fast this machine copies: what elementwise kernels are measured against.
 *
 * Threads are made once a measurement and spin between copies, so that a copy is a copy and no start of
 * threads.  Invariant: the calling thread copies the first part. */
#include "bench.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MOST_THREADS = 64, LINE = 64 };

struct copier {
    char *dst;
    const char *src;
    size_t n;
    int threads;
    void (*copy)(char *dst, const char *src, size_t n);
    _Atomic long round, done; /* round: of the copy that is to be made; -1: leave */
};
struct worker {
    struct copier *c;
    int number;
    pthread_t thread;
};

static void copy_plain(char *dst, const char *src, size_t n)
{
    memcpy(dst, src, n);
}

#if defined(__x86_64__)
/* dst and n are multiples of a line: stores go past the caches. */
__attribute__((target("avx2"))) static void copy_streaming(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += LINE) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 32));
        _mm256_stream_si256((__m256i *)(void *)(dst + i), a);
        _mm256_stream_si256((__m256i *)(void *)(dst + i + 32), b);
    }
    _mm_sfence();
}

bool copy_can_stream(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static void copy_streaming(char *dst, const char *src, size_t n)
{
    memcpy(dst, src, n);
}

bool copy_can_stream(void)
{
    return false;
}
#endif

static void copy_part(struct copier *c, int number)
{
    size_t lines = c->n / LINE, from = lines * (size_t)number / (size_t)c->threads * LINE;
    size_t to = lines * (size_t)(number + 1) / (size_t)c->threads * LINE;
    c->copy(c->dst + from, c->src + from, to - from);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (long seen = 0, now;;) {
        while ((now = atomic_load(&w->c->round)) == seen) {
        }
        if (now < 0) {
            return NULL;
        }
        seen = now;
        copy_part(w->c, w->number);
        atomic_fetch_add(&w->c->done, 1);
    }
}

static bool copy_once(void *arg)
{
    struct copier *c = arg;
    atomic_store(&c->done, 0);
    atomic_fetch_add(&c->round, 1);
    copy_part(c, 0);
    while (atomic_load(&c->done) < c->threads - 1) {
    }
    return true;
}

struct timing copy_time(char *dst, const char *src, size_t n, int threads, bool streaming, double seconds)
{
    struct worker w[MOST_THREADS];
    int started = 1;
    bool aligned = (uintptr_t)dst % LINE == 0;
    struct copier c = {
        .dst = dst, .src = src, .n = n, .copy = streaming && aligned ? copy_streaming : copy_plain
    };
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    for (; started < threads; started++) {
        w[started] = (struct worker){ .c = &c, .number = started };
        if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0) {
            break;
        }
    }
    c.threads = started;
    struct timing t = time_calls(copy_once, &c, seconds);
    atomic_store(&c.round, -1);
    for (int i = 1; i < started; i++) {
        pthread_join(w[i].thread, NULL);
    }
    return t;
}
