/* archive.h: files of named arrays: shared by the formats and archive.c, which has their table. */
#ifndef MC_ARCHIVE_H
#define MC_ARCHIVE_H

#include "value/value.h"

struct mc_member { /* one array of a file */
    char *name;
    uint64_t at, size; /* its bytes; in .npz: where its header is, and its uncompressed size */
    union {
        struct {
            uint64_t packed;
            uint32_t crc;
            int method;
            bool encrypted;
        } zip;
        struct {
            mc_dtype dtype;
            int rank;
            int64_t dims[MC_MAX_RANK];
        } tensor;
    };
};

struct mc_archive { /* a file that is open for reading */
    const struct mc_format *format;
    struct mc_source source;
    char *path; /* what source.name points at */
    VEC(struct mc_member) members;
};

enum { MC_FORMAT_HEAD = 9 }; /* bytes that are enough to recognise a format */
struct mc_format {
    const char *ending;
    /* Has a file this format if it begins with these n bytes?  n: MC_FORMAT_HEAD, or less if the file is
     * shorter. */
    bool (*knows)(const unsigned char *head, size_t n);
    mc_status (*read)(mc_archive *a); /* fills members */
    mc_array *(*load)(const mc_archive *a, const struct mc_member *m);
    /* Names are unique, arrays contiguous and in the host's memory. */
    mc_status (*save)(const char *path, int n, const char *const *names, mc_array *const *arrays);
};
extern const struct mc_format mc_npz, mc_safetensors;

static inline uint64_t mc_little(const unsigned char *p, int n) /* a number of n bytes, little-endian */
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

/* ---- archive.c, for formats ---- */
/* Adds m; its name is the first n bytes of `name`. */
mc_status mc_archive_add(mc_archive *a, const char *name, size_t n, struct mc_member m);
/* "'PATH' is a damaged .npz file: " and the rest: MC_EFORMAT */
mc_status mc_archive_damaged(const mc_archive *a, const char *fmt, ...) MC_PRINTF(2, 3);

/* ---- npz_save.c ---- */
mc_status mc_npz_save(const char *path, int n, const char *const *names, mc_array *const *arrays);

#endif
