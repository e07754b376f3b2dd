/* fuzz_repair.h: check sums that fit changed bytes, so that what lies behind them is read: of the chunks of a
 * PNG, of gzip, of the members of a zip file.  A fuzzer that defines FUZZ_MENDS, the bytes before the file in
 * its input, has three of four mended. */
#ifndef FUZZ_REPAIR_H
#define FUZZ_REPAIR_H

#include <monochord.h>

#include <stdlib.h>
#include <string.h>

static inline uint32_t fuzz_big(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t fuzz_little(const unsigned char *p, int n)
{
    uint32_t v = 0;
    while (n-- > 0) {
        v = v << 8 | p[n];
    }
    return v;
}

static inline void fuzz_put_big(unsigned char *p, uint32_t v)
{
    for (int k = 0; k < 4; k++) {
        p[k] = (unsigned char)(v >> (24 - 8 * k));
    }
}

static inline void fuzz_put_little(unsigned char *p, uint32_t v)
{
    for (int k = 0; k < 4; k++) {
        p[k] = (unsigned char)(v >> 8 * k);
    }
}

static inline void fuzz_mend_png(unsigned char *p, size_t n)
{
    for (size_t at = 8; at + 12 <= n && fuzz_big(p + at) <= n - at - 12; at += 12 + fuzz_big(p + at)) {
        fuzz_put_big(p + at + 8 + fuzz_big(p + at), mc_crc32(0, p + at + 4, 4 + fuzz_big(p + at)));
    }
}

/* One stored block, as fuzz_data makes it. */
static inline void fuzz_mend_gzip(unsigned char *p, size_t n)
{
    if (n > 23 && p[3] == 0) {
        fuzz_put_little(p + n - 8, mc_crc32(0, p + 15, n - 23));
    }
}

/* The entry at p of a zip file's directory. */
static inline void fuzz_mend_member(const unsigned char *file, size_t n, unsigned char *p)
{
    enum { MOST = 1 << 20 };
    const uint32_t packed = fuzz_little(p + 20, 4), size = fuzz_little(p + 24, 4),
                   at = fuzz_little(p + 42, 4);
    const size_t from = n > 30 && at <= n - 30
                            ? at + 30 + fuzz_little(file + at + 26, 2) + fuzz_little(file + at + 28, 2)
                            : n;
    void *out = NULL;
    if (from > n || packed > n - from) {
        return;
    }
    if (fuzz_little(p + 10, 2) == 0) {
        fuzz_put_little(p + 16, mc_crc32(0, file + from, packed));
    } else if (size <= MOST && (out = malloc(size + 1)) &&
               mc_inflate(out, size, file + from, packed) == MC_OK) {
        fuzz_put_little(p + 16, mc_crc32(0, out, size));
    }
    free(out);
}

static inline void fuzz_mend(unsigned char *p, size_t n)
{
    if (n > 12 && memcmp(p, "\x89PNG", 4) == 0) {
        fuzz_mend_png(p, n);
    } else if (n > 4 && p[0] == 0x1f && p[1] == 0x8b) {
        fuzz_mend_gzip(p, n);
    }
    for (size_t i = 0; i + 46 <= n; i++) {
        if (memcmp(p + i, "PK\1\2", 4) == 0) {
            fuzz_mend_member(p, n, p + i);
        }
    }
}

#if defined(MC_LIBFUZZER) && defined(FUZZ_MENDS)

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
    n = LLVMFuzzerMutate(data, n, most);
    if (seed % 4 && n > FUZZ_MENDS) {
        fuzz_mend(data + FUZZ_MENDS, n - FUZZ_MENDS);
    }
    return n;
}

#endif
#endif
