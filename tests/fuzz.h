/* fuzz.h: what the fuzzers share where no libFuzzer brings the bytes: a main that replays files or changes
 * good inputs, numbers that are the same on every run, bytes changed in a few places.
 *
 * Invariant: the bytes lie in exactly as much memory as they need, so that a sanitizer sees a read past
 * them. */
#ifndef FUZZ_H
#define FUZZ_H

#include "base/base.h"
#include "fuzz_repair.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A folder in memory, where it can be: what is read from files is written there. */
static inline void fuzz_folder(char folder[64])
{
    snprintf(folder, 64, "%s/mc-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) {
        exit(2);
    }
}

/* No block is larger than this: a size of a million units ends in the message that there is no memory. */
static inline void *fuzz_small(void *arg, void *p, size_t n)
{
    (void)arg;
    if (n == 0) {
        free(p);
        return NULL;
    }
    return n > 4 << 20 ? NULL : realloc(p, n);
}

static inline void fuzz_small_memory(void)
{
    static bool begun;
    if (!begun) {
        mc_set_allocator(&(mc_allocator){ .realloc = fuzz_small });
        begun = true;
    }
}

static inline void fuzz_wrong(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, mc_last_error());
    abort();
}

/* A file, or every file of a folder; how many. */
static inline long fuzz_replay(const char *path)
{
    long n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char inner[4096];
        bool fits = snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) < (int)sizeof inner;
        n += *e->d_name == '.' || !fits ? 0 : fuzz_replay(inner);
    }
    if (d) {
        closedir(d);
        return n;
    }
    char *text;
    size_t size;
    if (mc_file_read(path, &text, &size) < 0) {
        fuzz_wrong("not read");
    }
    unsigned char *exact = malloc(size ? size : 1);
    if (!exact) {
        exit(2);
    }
    memcpy(exact, text, size);
    mc_free(text);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

/* `fuzz_x FILE...` replays files and folders; `fuzz_x SECONDS` runs `one`, which makes an input and tries
 * it. */
static inline int fuzz_main(int argc, char **argv, void (*one)(void))
{
    struct stat st;
    long runs = 0;
    if (argc > 1 && stat(argv[1], &st) == 0) {
        for (int i = 1; i < argc; i++) {
            runs += fuzz_replay(argv[i]);
        }
    } else {
        const double end = mc_now() + (argc > 1 ? atof(argv[1]) : 5);
        for (; mc_now() < end; runs++) {
            one();
        }
    }
    printf("%ld inputs\n", runs);
    return runs ? 0 : 1;
}

/* Most fuzzers have good inputs and change their bytes; three of four get check sums that fit. */
static inline void fuzz_one_of(const struct mc_piece *seed, size_t n)
{
    const struct mc_piece *p = &seed[fuzz_below(n)];
    size_t size = p->n;
    unsigned char *data = fuzz_changed(p->data, &size);
    if (fuzz_below(4)) {
        fuzz_mend(data, size);
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

#endif
