/* data_cifar.c: CIFAR-10 and CIFAR-100 in their binary form: records of a label (in CIFAR-100 a coarse one
 * before it) and 3 x 32 x 32 bytes.
 *
 * Invariant: a file is whole records; its kind follows from the name. */
#include "nn/data.h"
#include <errno.h>
#include <stdio.h>

enum { PIXELS = 3 * 32 * 32, FILES = 5 };

static const struct kind {
    const char *file[2][FILES]; /* by part */
    int labels, classes;        /* labels: bytes before the pixels; the last one is the class */
    const char *names, *text;
} kinds[] = {
    { { { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
          "data_batch_5.bin" },
        { "test_batch.bin" } },
      1,
      10,
      "batches.meta.txt",
      "pictures of CIFAR-10" },
    { { { "train.bin" }, { "test.bin" } }, 2, 100, "fine_label_names.txt", "pictures of CIFAR-100" },
};

static const struct kind *kind_of(const char *where)
{
    char path[MC_PATH];
    for (size_t i = 0; i < COUNT(kinds); i++) {
        for (int part = 0; part < 2; part++) {
            if (mc_path_is(mc_path_join(path, where, kinds[i].file[part][0]), false)) {
                return &kinds[i];
            }
        }
    }
    return NULL;
}

bool mc_cifar_knows(const char *where) { return kind_of(where) != NULL; }

/* Reads names of classes, one a line. Classes without a name are shown as numbers. */
static mc_status read_names(const char *where, const struct kind *k, struct mc_example_set *out)
{
    char path[MC_PATH], *data, *at;
    size_t n;
    if (!mc_path_is(mc_path_join(path, where, k->names), false)) {
        return MC_OK;
    }
    mc_status s = mc_file_read(path, &data, &n);
    s = s < 0 ? s : mc_example_set_names(out, k->classes);
    at = data;
    for (int i = 0; i < k->classes && s == MC_OK && *at; i++) {
        size_t len = strcspn(at, "\r\n"), skip = len + strspn(at + len, "\r\n");
        at[len] = at[len] ? '\0' : at[len];
        s = len == 0 || (out->name[i] = mc_strdup(at)) ? MC_OK : MC_EMEMORY;
        at += skip;
    }
    mc_free(data);
    return s;
}

static mc_status read_records(const char *path, const struct kind *k, uint8_t *x, int32_t *t, int64_t n)
{
    char *data;
    size_t size, record = (size_t)(k->labels + PIXELS);
    mc_status s = mc_file_read(path, &data, &size);
    if (s == MC_OK && size != (size_t)n * record) {
        s = mc_fail(MC_EFILE, "'%s' changed while it was read", path);
    }
    for (int64_t i = 0; i < n && s == MC_OK; i++) {
        const char *from = data + (size_t)i * record;
        t[i] = (unsigned char)from[k->labels - 1];
        memcpy(x + i * PIXELS, from + k->labels, PIXELS);
    }
    mc_free(data);
    return s;
}

/* The number of records in a file; -1: an error. */
static int64_t records(const char *path, const struct kind *k)
{
    int64_t record = k->labels + PIXELS, size = -1;
    FILE *f = fopen(path, "rb");
    if (f && fseek(f, 0, SEEK_END) == 0) {
        size = ftell(f);
    }
    if (f) {
        fclose(f);
    }
    if (size < 0) {
        mc_fail(MC_EFILE, "cannot read '%s': %s", path, strerror(errno));
        return -1;
    }
    if (size % record) {
        mc_fail(
            MC_EFORMAT,
            "'%s' is truncated or not a CIFAR file: %lld bytes are not a multiple of the record size, %lld",
            path, (long long)size, (long long)record);
        return -1;
    }
    return size / record;
}

mc_status mc_cifar_read(const char *where, enum mc_part part, struct mc_example_set *out)
{
    const struct kind *k = kind_of(where);
    char path[MC_PATH];
    int64_t count[FILES] = { 0 }, n = 0;
    for (int i = 0; i < FILES && k->file[part][i]; i++) {
        count[i] = records(mc_path_join(path, where, k->file[part][i]), k);
        if (count[i] < 0) {
            return mc_last_status();
        }
        n += count[i];
    }
    out->text = k->text;
    out->classes = k->classes;
    mc_status s = read_names(where, k, out);
    out->x = s == MC_OK ? mc_array_new(MC_UINT8, MC_SHAPE(n, 3, 32, 32)) : NULL;
    out->t = out->x ? mc_array_new(MC_INT32, MC_SHAPE(n)) : NULL;
    s = out->t ? s : mc_last_status();
    n = 0;
    for (int i = 0; i < FILES && k->file[part][i] && s == MC_OK; i++) {
        s = read_records(mc_path_join(path, where, k->file[part][i]), k,
                         (uint8_t *)mc_array_data(out->x) + n * PIXELS, (int32_t *)mc_array_data(out->t) + n,
                         count[i]);
        n += count[i];
    }
    return s;
}
