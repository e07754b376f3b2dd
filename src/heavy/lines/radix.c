/* radix.c: sorts of keys on one thread, by digits or in vectors. */
#include "heavy/lines/lines.h"

enum { INSERTION_MOST = 48, NARROW_DIGIT = 8, WIDE_DIGIT = 11 };

static int radix_width(int64_t n)
{
    return n < 1 << 12 ? NARROW_DIGIT : WIDE_DIGIT;
}

size_t mc_radix_counts(int64_t n)
{
    return sizeof(uint32_t) << radix_width(n);
}

#define E uint32_t
#define NAME(x) x##_32
#include "heavy/lines/radix.h"
#undef E
#undef NAME
#define E uint64_t
#define NAME(x) x##_64
#include "heavy/lines/radix.h"
const struct mc_quick *mc_quick(void)
{
    static const struct mc_quick none;
#if defined(__x86_64__)
    if (mc_isa_runs(ISA_AVX512)) {
        return &mc_quick_avx512;
    }
#endif
    return &none;
}

uint32_t *mc_radix_keys32(uint32_t *a, uint32_t *b, int64_t n, void *count)
{
    if (mc_quick()->keys32) {
        mc_quick()->keys32(a, b, n, n);
        return a;
    }
    return radix_32(a, b, n, 0, 32, count);
}

uint64_t *mc_radix_keys64(uint64_t *a, uint64_t *b, int64_t n, int low, void *count)
{
    if (mc_quick()->keys64) {
        mc_quick()->keys64(a, b, n, n);
        return a;
    }
    return radix_64(a, b, n, low, 64, count);
}

/* Sorts n words by what the elements at their lower halves have beside the upper halves. */
static void sort_run(uint64_t *word, uint64_t *spare, int64_t n, mc_rest_of_key *rest, const void *arg,
                     void *count)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t at = (uint32_t)word[i];
        word[i] = (uint64_t)rest(arg, at) << 32 | at;
    }
    const uint64_t *sorted = mc_radix_keys64(word, spare, n, 32, count);
    if (sorted != word) {
        memcpy(word, sorted, (size_t)n * sizeof *word);
    }
}

void mc_radix_runs(uint64_t *word, uint64_t *spare, int64_t n, mc_rest_of_key *rest, const void *arg,
                   void *count)
{
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && word[end] >> 32 == word[i] >> 32;) {
            end++;
        }
        if (end > i + 1) {
            sort_run(word + i, spare + i, end - i, rest, arg, count);
        }
    }
}
