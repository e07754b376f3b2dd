/* hand.c: loops written by hand for this kind of machine, as a peer: what a careful person reaches.
 *
 *     hand SUITE        prints result objects as `monochord bench SUITE --json` does
 *
 * exp: n = round(x / ln 2), r = x - n ln 2 in two steps, a polynomial of degree 5, then times 2 to the n; with
 * AVX-512, sixteen floats at a time, by two threads that spin between calls.  For finite x only.
 * Prints nothing for other suites and on processors without AVX-512. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>

enum { N = 230400, THREADS = 2, SAMPLES = 2000, BATCH = 8 };

static float *src, *dst;
static _Atomic long round_, done;

__attribute__((target("avx512f"))) static void exp_part(float *to, const float *from, int n)
{
    const __m512 log2e = _mm512_set1_ps(1.44269504f), high = _mm512_set1_ps(0.693359375f), low = _mm512_set1_ps(-2.12194440e-4f);
    const __m512 c2 = _mm512_set1_ps(0.499992311f), c3 = _mm512_set1_ps(0.166671142f), c4 = _mm512_set1_ps(0.0418901145f);
    const __m512 c5 = _mm512_set1_ps(0.00831252523f), one = _mm512_set1_ps(1);
    for (int i = 0; i < n; i += 16) {
        __m512 x = _mm512_loadu_ps(from + i);
        __m512 k = _mm512_roundscale_ps(_mm512_mul_ps(x, log2e), _MM_FROUND_TO_NEAREST_INT);
        __m512 r = _mm512_fnmadd_ps(k, low, _mm512_fnmadd_ps(k, high, x));
        __m512 p = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(c5, r, c4), r, c3), r, c2);
        p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, _mm512_add_ps(r, one));
        _mm512_storeu_ps(to + i, _mm512_scalef_ps(p, k));
    }
}

static void part(int thread)
{
    int from = N / 16 * thread / THREADS * 16, to = N / 16 * (thread + 1) / THREADS * 16;
    exp_part(dst + from, src + from, to - from);
}

static void *work(void *arg)
{
    int thread = *(int *)arg;
    for (long seen = 0, now;; seen = now) {
        while ((now = atomic_load(&round_)) == seen) {
        }
        if (now < 0) {
            return NULL;
        }
        part(thread);
        atomic_fetch_add(&done, 1);
    }
}

static void once(void)
{
    atomic_store(&done, 0);
    atomic_fetch_add(&round_, 1);
    part(0);
    while (atomic_load(&done) < THREADS - 1) {
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static double ms[SAMPLES];
    static int number[THREADS];
    pthread_t thread[THREADS];
    double wrong = 0, all = 0;
    if (argc != 2 || strcmp(argv[1], "exp") != 0 || !__builtin_cpu_supports("avx512f")) {
        return 0;
    }
    src = aligned_alloc(1 << 21, 1 << 21);
    dst = aligned_alloc(1 << 21, 1 << 21);
    if (!src || !dst) {
        return 1;
    }
    for (int i = 0; i < N; i++) {
        src[i] = (float)rand() / (float)RAND_MAX;
    }
    for (int i = 1; i < THREADS; i++) {
        number[i] = i;
        if (pthread_create(&thread[i], NULL, work, &number[i]) != 0) {
            return 1;
        }
    }
    for (int i = -100; i < SAMPLES; i++) {
        double start = now();
        for (int k = 0; k < BATCH; k++) {
            once();
        }
        ms[i < 0 ? 0 : i] = (now() - start) * 1e3 / BATCH;
    }
    atomic_store(&round_, -1);
    for (int i = 1; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < N; i++) {
        double want = exp(src[i]);
        wrong += (dst[i] - want) * (dst[i] - want);
        all += want * want;
    }
    qsort(ms, SAMPLES, sizeof *ms, by_size);
    printf("{\"suite\": \"exp\", \"case\": \"exp 230400\", \"pass\": \"\", \"device\": \"cpu\", \"dtype\": \"float32\", \"algo\": \"avx512\", "
           "\"ms\": %.6g, \"ms_min\": %.6g, \"ms_max\": %.6g, \"gflops\": 0, \"gbs\": %.5g, \"rel_err\": %.3g}\n",
           ms[SAMPLES / 2], ms[0], ms[SAMPLES - 1], 8e-6 * N / ms[SAMPLES / 2], sqrt(wrong / all));
    return 0;
}
#else
int main(void) { return 0; }
#endif
