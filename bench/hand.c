/* hand.c: loops written by hand for this kind of machine, as a peer: what a careful person reaches.
 *
 *     hand SUITE        prints result objects as `monochord bench SUITE --json` does
 *
 * exp: n = round(x / ln 2), r = x - n ln 2 in two steps, a polynomial of degree 5, then times 2 to the n; with
 * AVX-512, sixteen floats at a time, by two threads that spin between calls.  For finite x only.
 * few: as many multiply-adds as a case's definition has, in registers and of nothing: the peak.
 * recurrent: the steps of the scan of elements, each a loop over two arrays, on one thread.
 * Prints nothing for other suites and on processors without AVX-512. */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>

enum { N = 230400, THREADS = 2, SAMPLES = 2000, BATCH = 8, FEW_SAMPLES = 100, SUMS = 12 };
enum { MASSES = 256, STEPS = 10000 };

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

/* Vectors of multiply-adds in a dozen sums, none of which waits for another. */
#define EACH_SUM(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
__attribute__((target("avx512f"))) static void multiply_add(float *to, const float *from, long n)
{
    const __m512 a = _mm512_loadu_ps(from), b = _mm512_set1_ps(0.5f);
    __m512 all = a;
#define SUM(i) __m512 sum##i = _mm512_loadu_ps(from + 16 * i);
    EACH_SUM(SUM)
#undef SUM
    for (long k = 0; k < n; k += SUMS) {
#define SUM(i) sum##i = _mm512_fmadd_ps(sum##i, b, a);
        EACH_SUM(SUM)
#undef SUM
        __asm__ volatile("");
    }
#define SUM(i) all = _mm512_add_ps(all, sum##i);
    EACH_SUM(SUM)
#undef SUM
    _mm512_storeu_ps(to, all);
}

static long vectors; /* of multiply-adds in all; 0: exp */

static void part(int thread)
{
    int from = N / 16 * thread / THREADS * 16, to = N / 16 * (thread + 1) / THREADS * 16;
    if (vectors) {
        multiply_add(dst + 1024 * thread, src, vectors / THREADS);
    } else {
        exp_part(dst + from, src + from, to - from);
    }
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

/* Milliseconds of a call, in order; samples of so many calls. */
static void measure(double *ms, int samples, int batch)
{
    for (int i = -samples / 20; i < samples; i++) {
        double start = now();
        for (int k = 0; k < batch; k++) {
            once();
        }
        ms[i < 0 ? 0 : i] = (now() - start) * 1e3 / batch;
    }
    qsort(ms, (size_t)samples, sizeof *ms, by_size);
}

static void report(const char *suite, const char *name, const char *pass, const double *ms, int samples, double gflop, double gb, const char *error)
{
    const double median = ms[samples / 2];
    printf("{\"suite\": \"%s\", \"case\": \"%s\", \"pass\": \"%s\", \"device\": \"cpu\", \"dtype\": \"float32\", \"algo\": \"avx512\", "
           "\"ms\": %.6g, \"ms_min\": %.6g, \"ms_max\": %.6g, \"gflops\": %.5g, \"gbs\": %.5g, \"rel_err\": %s}\n",
           suite, name, pass, median, ms[0], ms[samples - 1], 1e3 * gflop / median, 1e3 * gb / median, error);
}

static void exp_case(double *ms)
{
    double wrong = 0, all = 0;
    char error[32];
    measure(ms, SAMPLES, BATCH);
    for (int i = 0; i < N; i++) {
        double want = exp(src[i]);
        wrong += (dst[i] - want) * (dst[i] - want);
        all += want * want;
    }
    snprintf(error, sizeof error, "%.3g", sqrt(wrong / all));
    report("exp", "exp 230400", "", ms, SAMPLES, 0, 8e-9 * N, error);
}

/* The gradients with respect to inputs of tools/monochord_bench_conv.c. */
static void few_cases(double *ms)
{
    static const struct { const char *name; long images, channels, filters, taps, places; } cases[] = {
        { "LeNet 1 b500",  500, 1, 32, 5 * 5,   24 * 24   },
        { "VGG 1.1 b4",    4,   3, 64, 3 * 3,   224 * 224 },
        { "ResNet 7x7 b4", 4,   3, 64, 7 * 7,   112 * 112 },
        { "L1 b16",        16,  3, 96, 11 * 11, 118 * 118 },
    };
    const char *only = getenv("BENCH_ONLY");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char both[64];
        snprintf(both, sizeof both, "%s inputs", cases[i].name);
        if (only && !strstr(both, only)) {
            continue;
        }
        vectors = cases[i].images * cases[i].channels * cases[i].filters * cases[i].taps * cases[i].places / 16;
        measure(ms, FEW_SAMPLES, 1);
        report("few", cases[i].name, "inputs", ms, FEW_SAMPLES, 32e-9 * (double)vectors, 0, "null");
    }
}

/* 10,000 steps of a spring for each of 256 masses. */
__attribute__((target("avx512f"), noinline)) static void spring_step(float *restrict at,
                                                                    float *restrict speed)
{
    for (int i = 0; i < MASSES; i++) {
        speed[i] -= 0.01f * at[i];
        at[i] += 0.01f * speed[i];
    }
}

static void spring_case(double *ms)
{
    static float at[MASSES], speed[MASSES];
    const char *only = getenv("BENCH_ONLY");
    if (only && !strstr("spring, 10,000 steps", only)) {
        return;
    }
    for (int sample = -5; sample < FEW_SAMPLES; sample++) {
        memcpy(at, src, sizeof at);
        memcpy(speed, src + MASSES, sizeof speed);
        const double start = now();
        for (int t = 0; t < STEPS; t++) {
            spring_step(at, speed);
        }
        ms[sample < 0 ? 0 : sample] = (now() - start) * 1e3;
    }
    qsort(ms, FEW_SAMPLES, sizeof *ms, by_size);
    report("recurrent", "spring, 10,000 steps", "fwd", ms, FEW_SAMPLES, 4e-9 * MASSES * STEPS, 0, "null");
}

int main(int argc, char **argv)
{
    static double ms[SAMPLES];
    static int number[THREADS];
    pthread_t thread[THREADS];
    static const struct { const char *suite; void (*run)(double *ms); } suites[] = {
        { "exp", exp_case }, { "few", few_cases }, { "recurrent", spring_case }
    };
    void (*run)(double *ms) = NULL;
    for (size_t i = 0; argc == 2 && i < sizeof suites / sizeof *suites; i++) {
        run = strcmp(argv[1], suites[i].suite) == 0 ? suites[i].run : run;
    }
    if (!run || !__builtin_cpu_supports("avx512f")) {
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
    run(ms);
    atomic_store(&round_, -1);
    for (int i = 1; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
#else
int main(void) { return 0; }
#endif
