/* stream.c: stores that pass the caches by.  A result too large to stay in cache need not be read from
 * memory before it is written: two streams instead of three. */
#include "device/cpu/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static void stream512(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        _mm512_stream_si512((void *)(dst + i), _mm512_loadu_si512(src + i));
    }
}

__attribute__((target("avx2"))) static void stream256(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += 32) {
        _mm256_stream_si256((__m256i *)(void *)(dst + i), _mm256_loadu_si256((const __m256i *)(const void *)(src + i)));
    }
}

bool mc_stream_present(void)
{
    return mc_cpu()->avx2;
}

void mc_stream_copy(char *dst, const char *src, size_t n)
{
    size_t head = MC_MIN((64 - (uintptr_t)dst % 64) % 64, n), body = (n - head) / 64 * 64;
    memcpy(dst, src, head);
    if (mc_cpu()->avx512f) {
        stream512(dst + head, src + head, body);
    } else {
        stream256(dst + head, src + head, body);
    }
    memcpy(dst + head + body, src + head + body, n - head - body);
}

void mc_stream_end(void)
{
    _mm_sfence();
}
#else
bool mc_stream_present(void)
{
    return false;
}

void mc_stream_copy(char *dst, const char *src, size_t n)
{
    memcpy(dst, src, n);
}

void mc_stream_end(void)
{
}
#endif
