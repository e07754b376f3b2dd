/* fuzz.h: what the fuzzers share where no libFuzzer brings the bytes: numbers that are the same on every run, bytes
 * changed in a few places.
 *
 * Invariant: changed bytes lie in exactly as much memory as they need, so that a sanitizer sees a read past them. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline size_t fuzz_below(size_t n) /* xorshift */
{
    static uint64_t state = 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

/* A copy, changed in up to six places, and sometimes cut short; to free. */
static inline unsigned char *fuzz_changed(const void *from, size_t *n)
{
    static const unsigned char liked[] = { 0, 1, 2, 0x7f, 0x80, 0xff, '(', ')', '\'', ',', '9', 'P' };
    *n = fuzz_below(8) ? *n : fuzz_below(*n + 1);
    unsigned char *data = malloc(*n ? *n : 1);
    if (!data) {
        exit(2);
    }
    memcpy(data, from, *n);
    for (size_t k = 1 + fuzz_below(6); *n > 0 && k > 0; k--) {
        size_t at = fuzz_below(*n);
        switch (fuzz_below(3)) {
        case 0: data[at] ^= (unsigned char)(1u << fuzz_below(8)); break;
        case 1: data[at] = liked[fuzz_below(sizeof liked)]; break;
        default: data[at] = (unsigned char)fuzz_below(256);
        }
    }
    return data;
}

#endif
