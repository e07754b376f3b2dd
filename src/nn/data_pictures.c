/* data_pictures.c: examples from a folder that has a folder of pictures (PNG, PPM, PGM) for each class.
 *
 * Invariant: classes and pictures are sorted by name, so every machine reads the same data; all pictures have
 * the size of the first. */
#include "nn/data.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

struct list {
    char **at;
    size_t n, cap;
};

static const char *const kinds[] = { ".png", ".ppm", ".pgm", ".pnm", ".PNG", ".PPM", ".PGM" };

static bool is_picture(const char *path)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (mc_path_ends(path, kinds[i])) {
            return mc_path_is(path, false);
        }
    }
    return false;
}

static bool is_folder(const char *path) { return mc_path_is(path, true); }

static void list_free(struct list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        mc_free(l->at[i]);
    }
    mc_free(l->at);
    *l = (struct list){ 0 };
}

static mc_status list_add(struct list *l, const char *name)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        char **at = mc_realloc(l->at, cap * sizeof *at, "data");
        if (!at) {
            return MC_EMEMORY;
        }
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n] = mc_strdup(name);
    return l->at[l->n] ? (l->n++, MC_OK) : MC_EMEMORY;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the names in a folder that `want` accepts, sorted, without those that begin with a dot. */
static mc_status list_folder(struct list *l, const char *folder, bool (*want)(const char *path))
{
    char path[MC_PATH];
    DIR *dir = opendir(folder);
    mc_status s = dir ? MC_OK : mc_fail(MC_EFILE, "cannot read '%s': %s", folder, strerror(errno));
    for (struct dirent *e; s == MC_OK && (e = readdir(dir));) {
        if (e->d_name[0] != '.' && want(mc_path_join(path, folder, e->d_name))) {
            s = list_add(l, e->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (l->n > 1) {
        qsort(l->at, l->n, sizeof *l->at, by_name);
    }
    return s;
}

bool mc_pictures_knows(const char *where) { return mc_path_is(where, true); }

/* Lists the path and the label of each picture of each class. */
static mc_status find(const char *where, const struct list *class, struct list *paths, mc_array **labels)
{
    char folder[MC_PATH], path[MC_PATH];
    int32_t *label = NULL;
    size_t capacity = 0;
    mc_status s = MC_OK;
    for (size_t k = 0; k < class->n && s == MC_OK; k++) {
        struct list one = { 0 };
        s = list_folder(&one, mc_path_join(folder, where, class->at[k]), is_picture);
        for (size_t i = 0; i < one.n && s == MC_OK; i++) {
            s = list_add(paths, mc_path_join(path, folder, one.at[i]));
        }
        if (s == MC_OK && paths->n > capacity) {
            int32_t *more = mc_realloc(label, (capacity = 2 * paths->n) * sizeof *label, "data");
            label = more ? more : label;
            s = more ? MC_OK : MC_EMEMORY;
        }
        for (size_t i = paths->n - one.n; i < paths->n && s == MC_OK; i++) {
            label[i] = (int32_t)k;
        }
        list_free(&one);
    }
    if (s == MC_OK && paths->n == 0) {
        s = mc_fail(MC_EFORMAT, "'%s' has no folders with pictures (.png, .ppm, .pgm) in them", where);
    }
    if (s == MC_OK) {
        *labels = mc_array_from(MC_INT32, MC_SHAPE((int64_t)paths->n), label);
        s = *labels ? MC_OK : mc_last_status();
    }
    mc_free(label);
    return s;
}

/* Reads a picture into its place in the array, which is made for the first one. */
static mc_status read_picture(struct mc_example_set *out, const struct list *paths, size_t i)
{
    mc_array *a = mc_image_load(paths->at[i]);
    if (!a) {
        return mc_last_status();
    }
    const int64_t *have = mc_array_dims(a), *want = have;
    size_t size = (size_t)mc_array_size(a);
    mc_status s = MC_OK;
    if (!out->x) {
        out->x = mc_array_new(MC_UINT8, MC_SHAPE((int64_t)paths->n, have[0], have[1], have[2]));
        s = out->x ? MC_OK : mc_last_status();
    } else {
        want = mc_array_dims(out->x) + 1;
    }
    if (memcmp(have, want, 3 * sizeof *have) != 0) {
        s = mc_fail(MC_ESHAPE, "'%s' is %lldx%lldx%lld (channels, rows, columns), but '%s' is %lldx%lldx%lld",
                    paths->at[i], (long long)have[0], (long long)have[1], (long long)have[2], paths->at[0],
                    (long long)want[0], (long long)want[1], (long long)want[2]);
    }
    if (s == MC_OK) {
        memcpy((uint8_t *)mc_array_data(out->x) + i * size, mc_array_data(a), size);
    }
    mc_array_unref(&a);
    return s;
}

mc_status mc_pictures_read(const char *where, enum mc_part part, struct mc_example_set *out)
{
    static const char *const parts[] = { "train", "test" };
    char folder[MC_PATH], path[MC_PATH];
    struct list class = { 0 }, paths = { 0 };
    bool parted = mc_path_is(mc_path_join(path, where, parts[MC_TRAIN]), true) &&
                  mc_path_is(mc_path_join(path, where, parts[MC_TEST]), true);
    out->text = "pictures from folders";
    out->whole = !parted;
    /* both parts have the classes of the training part */
    mc_status s = list_folder(&class, parted ? mc_path_join(folder, where, parts[MC_TRAIN]) : where,
                              is_folder);
    if (s == MC_OK && parted) {
        mc_path_join(folder, where, parts[part]);
        for (size_t k = 0; k < class.n && s == MC_OK; k++) {
            s = is_folder(mc_path_join(path, folder, class.at[k]))
                    ? MC_OK
                    : mc_fail(MC_EFORMAT, "'%s' has no folder %s, which '%s/%s' has", folder, class.at[k],
                              where, parts[MC_TRAIN]);
        }
    }
    s = s < 0 ? s : find(parted ? folder : where, &class, &paths, &out->t);
    for (size_t i = 0; i < paths.n && s == MC_OK; i++) {
        s = read_picture(out, &paths, i);
    }
    s = s < 0 ? s : mc_example_set_names(out, (int)class.n);
    for (size_t k = 0; k < class.n && s == MC_OK; k++) {
        out->name[k] = class.at[k];
        class.at[k] = NULL;
    }
    list_free(&class);
    list_free(&paths);
    return s;
}
