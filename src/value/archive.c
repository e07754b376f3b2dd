/* archive.c: files of named arrays, in any of the formats of the table.
 *
 * The ending of a file's name selects the format to write; its first bytes select the format to read.
 *
 * Invariant: the directory of an open file has been checked; an array is checked when it is loaded. */
#include "value/archive.h"

static const struct mc_format *const formats[] = { /* the first is for names with no ending of the table */
    &mc_npz,
    &mc_safetensors,
};

/* ---- for formats ---- */

mc_status mc_archive_damaged(const mc_archive *a, const char *fmt, ...)
{
    struct mc_str what = { 0 };
    va_list ap;
    va_start(ap, fmt);
    mc_str_addv(&what, fmt, ap);
    va_end(ap);
    mc_status s = what.bad ? MC_EMEMORY
                           : mc_fail(MC_EFORMAT, "'%s' is a damaged %s file: %s", a->source.name,
                                     a->format->ending, what.s);
    mc_str_free(&what);
    return s;
}

mc_status mc_archive_add(mc_archive *a, const char *name, size_t n, struct mc_member m)
{
    m.name = mc_alloc(n + 1, "files");
    if (!m.name) {
        return MC_EMEMORY;
    }
    memcpy(m.name, name, n);
    m.name[n] = '\0';
    if (!VEC_PUSH(a->members, m)) {
        mc_free(m.name);
        return MC_EMEMORY;
    }
    return MC_OK;
}

/* ---- reading ---- */

static mc_status find_format(mc_archive *a)
{
    unsigned char head[MC_FORMAT_HEAD];
    const size_t n = (size_t)MC_MIN(a->source.size, (uint64_t)sizeof head);
    TRY(mc_source_read(&a->source, 0, head, n));
    for (size_t i = 0; i < NELEM(formats) && !a->format; i++) {
        a->format = formats[i]->knows(head, n) ? formats[i] : NULL;
    }
    if (a->format) {
        return MC_OK;
    }
    struct mc_str endings = { 0 };
    for (size_t i = 0; i < NELEM(formats); i++) {
        mc_str_addf(&endings, "%s%s", i ? ", " : "", formats[i]->ending);
    }
    mc_status s = endings.bad
                      ? MC_EMEMORY
                      : mc_fail(MC_EUNSUPPORTED, "'%s' is not a file of arrays in a known format (%s)",
                                a->source.name, endings.s);
    mc_str_free(&endings);
    return s;
}

mc_archive *mc_archive_read(struct mc_source s)
{
    mc_archive *a = mc_calloc(1, sizeof *a, "files");
    if (!a) {
        mc_source_close(&s);
        return NULL;
    }
    a->source = s;
    a->path = mc_strdup(s.name);
    a->source.name = a->path;
    if (!a->path || find_format(a) < 0 || a->format->read(a) < 0) {
        mc_archive_close(a);
        return NULL;
    }
    return a;
}

mc_archive *mc_archive_open(const char *path)
{
    struct mc_source s;
    if (!path) {
        mc_fail(MC_EARG, "mc_archive_open: the path is NULL");
        return NULL;
    }
    return mc_source_open(&s, path) < 0 ? NULL : mc_archive_read(s);
}

void mc_archive_close(mc_archive *a)
{
    if (!a) {
        return;
    }
    for (size_t i = 0; i < a->members.n; i++) {
        mc_free(a->members.at[i].name);
    }
    VEC_FREE(a->members);
    mc_source_close(&a->source);
    mc_free(a->path);
    mc_free(a);
}

int mc_archive_count(const mc_archive *a)
{
    return a ? (int)MC_MIN(a->members.n, (size_t)INT32_MAX) : 0;
}

const char *mc_archive_name(const mc_archive *a, int i)
{
    return i >= 0 && i < mc_archive_count(a) ? a->members.at[i].name : NULL;
}

/* Of members with equal names the last counts, as in any zip file that was appended to. */
static const struct mc_member *find(const mc_archive *a, const char *name)
{
    for (size_t i = a->members.n; i-- > 0;) {
        if (strcmp(a->members.at[i].name, name) == 0) {
            return &a->members.at[i];
        }
    }
    return NULL;
}

int mc_archive_has(const mc_archive *a, const char *name)
{
    return a && name && find(a, name);
}

static void fail_missing(const mc_archive *a, const char *name)
{
    const char *list[64], *near;
    size_t n = MC_MIN(a->members.n, NELEM(list));
    for (size_t i = 0; i < n; i++) {
        list[i] = a->members.at[i].name;
    }
    near = mc_near_miss(name, list, n);
    mc_fail(MC_EARG, "'%s' has no array '%s'", a->source.name, name);
    if (near) {
        mc_fail(MC_EARG, "%s; did you mean '%s'?", mc_last_error(), near);
    }
}

mc_array *mc_archive_load(mc_archive *a, const char *name)
{
    if (!a || !name) {
        mc_fail(MC_EARG, "mc_archive_load: the %s is NULL", a ? "name" : "file");
        return NULL;
    }
    const struct mc_member *m = find(a, name);
    if (!m) {
        fail_missing(a, name);
        return NULL;
    }
    return a->format->load(a, m);
}

/* ---- writing ---- */

static const struct mc_format *format_of(const char *path)
{
    const size_t n = strlen(path);
    for (size_t i = 0; i < NELEM(formats); i++) {
        const size_t k = strlen(formats[i]->ending);
        if (n >= k && strcmp(path + n - k, formats[i]->ending) == 0) {
            return formats[i];
        }
    }
    return formats[0];
}

static mc_status check_names(int n, const char *const *names, const mc_array *const *arrays)
{
    struct mc_dict seen = { 0 };
    mc_status s = MC_OK;
    for (int i = 0; i < n && s == MC_OK; i++) {
        if (!names[i] || !arrays[i]) {
            s = mc_fail(MC_EARG, "mc_archive_save: item %d has no %s", i, names[i] ? "array" : "name");
        } else if (mc_dict_get(&seen, names[i])) {
            s = mc_fail(MC_EARG, "mc_archive_save: the name '%s' is used twice", names[i]);
        } else if (!mc_dict_put(&seen, names[i], &seen)) {
            s = MC_EMEMORY;
        }
    }
    mc_dict_free(&seen);
    return s;
}

mc_status mc_archive_save(const char *path, const char *as, int n, const char *const *names,
                          const mc_array *const *arrays)
{
    if (!path || n < 0 || (n > 0 && (!names || !arrays))) {
        return mc_fail(MC_EARG, "mc_archive_save: the %s is NULL", path ? "arrays" : "path");
    }
    TRY(check_names(n, names, arrays));
    mc_array **flat = mc_calloc((size_t)n, sizeof(mc_array *), "files");
    mc_status s = flat ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < n && s == MC_OK; i++) {
        flat[i] = mc_array_is_contiguous(arrays[i]) ? mc_array_on_host(arrays[i]) : mc_array_copy(arrays[i]);
        s = flat[i] ? MC_OK : mc_last_status();
    }
    s = s < 0 ? s : format_of(as ? as : path)->save(path, n, names, flat);
    for (int i = 0; flat && i < n; i++) {
        mc_array_unref(&flat[i]);
    }
    mc_free(flat);
    return s;
}
