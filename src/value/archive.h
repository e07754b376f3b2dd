/* archive.h: a file of named arrays: what its formats and archive.c, which has their table, share. */
#ifndef MC_ARCHIVE_H
#define MC_ARCHIVE_H

#include "value/value.h"

struct mc_member { /* one array of a file */
    char *name;
    uint64_t at, size; /* its bytes; of .npz: where its header is, and its size when unpacked */
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

enum { MC_FORMAT_HEAD = 9 }; /* as many bytes tell the formats apart */
struct mc_format {
    const char *ending;
    /* Does a file that begins with these n bytes, MC_FORMAT_HEAD or all that it has, have this format? */
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
/* m under the first n bytes of name */
mc_status mc_archive_add(mc_archive *a, const char *name, size_t n, struct mc_member m);
/* "'PATH' is a damaged .npz file: " and the rest: MC_EFORMAT */
mc_status mc_archive_damaged(const mc_archive *a, const char *fmt, ...) MC_PRINTF(2, 3);

/* ---- npz_save.c ---- */
mc_status mc_npz_save(const char *path, int n, const char *const *names, mc_array *const *arrays);

#endif
