/* data_file.c: paths, and files that may be compressed by gzip.
 *
 * Invariant: no memory is allocated for more bytes than deflate can make from the compressed ones, whatever
 * size a gzip file claims. */
#include "nn/data.h"
#include <stdio.h>
#include <sys/stat.h>

enum { GZIP_HEAD = 10, GZIP_TAIL = 8, LARGEST_RATIO = 1032 };
/* flags of the fields between header and data */
enum { GZIP_CHECK = 2, GZIP_EXTRA = 4, GZIP_NAME = 8, GZIP_REMARK = 16 };

char *mc_path_join(char path[MC_PATH], const char *folder, const char *name)
{
    mc_snprintf(path, MC_PATH, "%s/%s", folder, name);
    return path;
}

bool mc_path_is(const char *path, bool folder)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) == folder;
}

bool mc_path_ends(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

/* The offset of the compressed data; more than n if the header is truncated. */
static size_t gzip_body(const unsigned char *p, size_t n)
{
    size_t at = GZIP_HEAD;
    unsigned flags = p[3];
    if (flags & GZIP_EXTRA) {
        at += at + 2 <= n ? 2u + p[at] + 256u * p[at + 1] : n;
    }
    for (unsigned f = GZIP_NAME; f <= GZIP_REMARK; f *= 2) {
        while (flags & f && at < n && p[at]) {
            at++;
        }
        at += flags & f ? 1 : 0;
    }
    return at + (flags & GZIP_CHECK ? 2 : 0);
}

static uint32_t little(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

mc_status mc_file_unpacked(const char *path, char **data, size_t *n)
{
    mc_status s = mc_file_read(path, data, n);
    const unsigned char *p = (const unsigned char *)*data;
    if (s < 0 || *n < 2 || p[0] != 0x1f || p[1] != 0x8b) {
        return s;
    }
    size_t body = *n >= GZIP_HEAD + GZIP_TAIL && p[2] == 8 ? gzip_body(p, *n) : *n;
    size_t packed = body + GZIP_TAIL <= *n ? *n - body - GZIP_TAIL : 0,
           size = packed ? little(p + *n - 4) : 0;
    char *out = NULL;
    if (packed == 0 || size / LARGEST_RATIO > packed) {
        s = mc_fail(MC_EFORMAT, "'%s' is a damaged or truncated gzip file", path);
    } else if (!(out = mc_alloc(size + 1, "data"))) {
        s = MC_EMEMORY;
    } else if (mc_inflate(out, size, p + body, packed) < 0) {
        s = mc_fail_again("'%s': ", path);
    } else if (mc_crc32(0, out, size) != little(p + *n - 8)) {
        s = mc_fail(MC_EFORMAT, "'%s' is a damaged gzip file: wrong checksum", path);
    }
    mc_free(*data);
    *data = out;
    *n = size;
    if (s < 0) {
        mc_free(out);
        *data = NULL;
    } else {
        out[size] = '\0';
    }
    return s;
}
