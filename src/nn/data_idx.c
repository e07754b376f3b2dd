/* data_idx.c: IDX, the format of MNIST and similar sets: two zero bytes, 8 for unsigned bytes, the rank, the
 * sizes as big-endian numbers, the bytes.  Pictures and labels are two files, which gzip may have compressed.
 *
 * Invariant: the number of bytes after the header is exactly what the sizes say. */
#include "nn/data.h"
#include <stdio.h>

/* The names of the pairs in a folder. Some copies have a dot instead of the last hyphen. */
static const struct {
    const char *x, *t;
} pairs[][2] = {
    { { "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
      { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" } },
    { { "train-images.idx3-ubyte", "train-labels.idx1-ubyte" },
      { "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte" } },
};

static bool find(char path[MC_PATH], const char *folder, const char *name)
{
    char packed[MC_PATH];
    mc_snprintf(packed, sizeof packed, "%s.gz", name);
    return mc_path_is(mc_path_join(path, folder, name), false) ||
           mc_path_is(mc_path_join(path, folder, packed), false);
}

bool mc_idx_knows(const char *where)
{
    char path[MC_PATH];
    for (size_t i = 0; i < COUNT(pairs); i++) {
        if (find(path, where, pairs[i][MC_TRAIN].x)) {
            return true;
        }
    }
    return mc_path_is(where, false) && strstr(where, "idx");
}

static mc_array *read_one(const char *path)
{
    char *data = NULL;
    size_t n = 0;
    mc_array *a = NULL;
    if (mc_file_unpacked(path, &data, &n) < 0) {
        return NULL;
    }
    const unsigned char *p = (const unsigned char *)data;
    int rank = n >= 4 && p[0] == 0 && p[1] == 0 && p[2] == 8 && p[3] <= 4 ? p[3] : 0;
    int64_t dims[4], left = (int64_t)n - 4 - 4 * rank, want = 1;
    for (int k = 0; k < rank && left >= 0; k++) {
        dims[k] = (int64_t)p[4 + 4 * k] << 24 | (int64_t)p[5 + 4 * k] << 16 | (int64_t)p[6 + 4 * k] << 8 |
                  (int64_t)p[7 + 4 * k];
        want = want > left ? want
                           : want * dims[k]; /* a product beyond `left` is too large, unless a size is 0 */
    }
    for (int k = 0; k < rank && left >= 0; k++) {
        want = dims[k] ? want : 0;
    }
    if (n >= 4 && rank == 0) {
        mc_fail(MC_EFORMAT, "'%s' is not an IDX file of bytes: it begins with %02x %02x %02x %02x", path,
                p[0], p[1], p[2], p[3]);
    } else if (n < 4 || left < 0 || left < want) {
        mc_fail(MC_EFORMAT, "'%s' is truncated: it ends after %zu bytes", path, n);
    } else if (left > want) {
        mc_fail(MC_EFORMAT, "'%s' is damaged: it has %lld bytes more than its sizes need", path,
                (long long)(left - want));
    } else {
        a = mc_array_from(MC_UINT8, rank, dims, p + 4 + 4 * rank);
    }
    mc_free(data);
    return a;
}

/* Adds an axis for a single channel: (n, rows, columns) becomes (n, 1, rows, columns). */
static mc_array *with_channel(mc_array *a)
{
    if (!a || mc_array_rank(a) != 3) {
        return a;
    }
    const int64_t *d = mc_array_dims(a);
    mc_array *b = mc_array_reshape(a, MC_SHAPE(d[0], 1, d[1], d[2]));
    mc_array_unref(&a);
    return b;
}

/* The name of the file of labels for a file of pictures: images becomes labels, idx3 becomes idx1. */
static bool labels_path(char path[MC_PATH], const char *where)
{
    static const char *const from[] = { "images", "idx3" }, *const to[] = { "labels", "idx1" };
    mc_snprintf(path, MC_PATH, "%s", where);
    for (size_t i = 0; i < COUNT(from); i++) {
        char *last = strrchr(path, '/'), *at = strstr(last ? last : path, from[i]);
        if (at) {
            memcpy(at, to[i], strlen(to[i])); /* both have the same length */
        }
    }
    return strcmp(path, where) != 0;
}

mc_status mc_idx_read(const char *where, enum mc_part part, struct mc_example_set *out)
{
    char x[MC_PATH], t[MC_PATH];
    bool found = false;
    out->text = "pictures from IDX files";
    for (size_t i = 0; i < COUNT(pairs) && !found; i++) {
        found = find(x, where, pairs[i][part].x);
        if (found && !find(t, where, pairs[i][part].t)) {
            return mc_fail(MC_EFILE, "'%s' has no labels: there is no file %s beside it", x,
                           pairs[i][part].t);
        }
    }
    if (!found && mc_path_is(where, true)) {
        return mc_fail(MC_EFILE, "'%s' has no file %s", where, pairs[0][part].x);
    }
    if (!found) {
        mc_snprintf(x, sizeof x, "%s", where);
        out->whole = true;
        if (!labels_path(t, where)) {
            return mc_fail(MC_EFILE,
                           "the name '%s' does not contain images, so the file of its labels is not known",
                           where);
        }
    }
    out->x = with_channel(read_one(x));
    out->t = out->x ? read_one(t) : NULL;
    return out->x && out->t ? MC_OK : mc_last_status();
}
