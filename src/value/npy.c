/* npy.c: NumPy's file format for one array: a magic word, a version, a Python dictionary, the elements.
 *
 * Invariant: memory for the sizes in a header is allocated only after the file was found to be long enough,
 * so a damaged file costs no more memory than its own size. */
#include "value/value.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 6, LONGEST_HEAD = 1 << 20, ALIGN = 64 };

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
static const char native = '>';
#else
static const char native = '<';
#endif

/* ---- sources ---- */

mc_status mc_source_open(struct mc_source *s, const char *path)
{
    struct stat st;
    *s = (struct mc_source){ .fd = open(path, O_RDONLY | O_CLOEXEC), .name = path };
    if (s->fd < 0) {
        return mc_fail(MC_EFILE, "cannot open '%s': %s", path, strerror(errno));
    }
    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        mc_source_close(s);
        return mc_fail(MC_EFILE, "cannot read '%s': not a regular file", path);
    }
    s->size = (uint64_t)st.st_size;
    return MC_OK;
}

void mc_source_close(struct mc_source *s)
{
    if (!s->mem && s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

static mc_status truncated(const struct mc_source *s)
{
    return mc_fail(MC_EFORMAT, "'%s' is truncated: it has only %llu bytes", s->name,
                   (unsigned long long)s->size);
}

mc_status mc_source_read(const struct mc_source *s, uint64_t at, void *dst, size_t n)
{
    char *to = dst;
    if (at > s->size || n > s->size - at) {
        return truncated(s);
    }
    if (s->mem) {
        memcpy(to, s->mem + at, n);
        return MC_OK;
    }
    while (n > 0) {
        ssize_t got = pread(s->fd, to, MC_MIN(n, (size_t)1 << 30), (off_t)at);
        if (got < 0 && errno != EINTR) {
            return mc_fail(MC_EFILE, "cannot read '%s': %s", s->name, strerror(errno));
        }
        if (got == 0) {
            return truncated(s);
        }
        if (got > 0) {
            to += got;
            at += (uint64_t)got;
            n -= (size_t)got;
        }
    }
    return MC_OK;
}

/* ---- the dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---- */

struct head {
    mc_dtype dtype;
    bool swapped, fortran;
    int rank;
    int64_t dims[MC_MAX_RANK];
};

struct reader {
    const char *at; /* NUL-terminated */
    const char *file;
};

static mc_status damaged(const struct reader *r, const char *what)
{
    return mc_fail(MC_EFORMAT, "'%s' has a damaged .npy header: %s at '%.20s'", r->file, what, r->at);
}

static bool accept(struct reader *r, const char *word)
{
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t') {
        r->at++;
    }
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0) {
        return false;
    }
    r->at += n;
    return true;
}

/* A quoted word, shorter than cap bytes with its NUL. */
static mc_status read_word(struct reader *r, char *word, size_t cap)
{
    const char *quote = accept(r, "'") ? "'" : accept(r, "\"") ? "\"" : NULL;
    size_t n = quote ? strcspn(r->at, quote) : 0;
    if (!quote || n >= cap || r->at[n] == '\0') {
        return damaged(r, "expected a string");
    }
    memcpy(word, r->at, n);
    word[n] = '\0';
    r->at += n + 1;
    return MC_OK;
}

static mc_status read_dtype(struct reader *r, struct head *h)
{
    char word[32];
    if (accept(r, "[")) {
        return mc_fail(MC_EUNSUPPORTED, "'%s' has records as elements, not numbers", r->file);
    }
    TRY(read_word(r, word, sizeof word));
    bool ordered = *word && strchr("<>|=", *word);
    const char *type = word + ordered;
    for (int d = 0; d < MC_NDTYPE; d++) {
        if (strcmp(type, mc_dtypes[d].npy) == 0 || strcmp(type, mc_dtypes[d].name) == 0) {
            h->dtype = (mc_dtype)d;
            h->swapped = (*word == '<' || *word == '>') && *word != native;
            return MC_OK;
        }
    }
    return mc_fail(MC_EUNSUPPORTED, "'%s' has elements of type '%s', which is not supported", r->file, word);
}

static mc_status read_order(struct reader *r, struct head *h)
{
    h->fortran = accept(r, "True");
    return h->fortran || accept(r, "False") ? MC_OK : damaged(r, "expected True or False");
}

static mc_status read_shape(struct reader *r, struct head *h)
{
    if (!accept(r, "(")) {
        return damaged(r, "expected a shape");
    }
    while (!accept(r, ")")) {
        char *end;
        if (*r->at < '0' || *r->at > '9') {
            return damaged(r, "expected a number");
        }
        if (h->rank == MC_MAX_RANK) {
            return mc_fail(MC_EUNSUPPORTED, "'%s' has an array with more than %d axes", r->file, MC_MAX_RANK);
        }
        errno = 0;
        h->dims[h->rank++] = strtoll(r->at, &end, 10);
        if (errno) {
            return damaged(r, "the number is too large");
        }
        r->at = end + (*end == 'L'); /* Python 2 wrote 3L */
        if (!accept(r, ",") && *r->at != ')') {
            return damaged(r, "expected a comma");
        }
    }
    return MC_OK;
}

static const struct {
    const char *key;
    mc_status (*read)(struct reader *, struct head *);
} keys[] = { { "descr", read_dtype }, { "fortran_order", read_order }, { "shape", read_shape } };

static mc_status read_entry(struct reader *r, struct head *h, unsigned *seen)
{
    char word[32];
    TRY(read_word(r, word, sizeof word));
    if (!accept(r, ":")) {
        return damaged(r, "expected a colon");
    }
    for (size_t k = 0; k < NELEM(keys); k++) {
        if (strcmp(word, keys[k].key) == 0 && !(*seen >> k & 1)) {
            *seen |= 1u << k;
            (void)accept(r, ""); /* skip blanks */
            return keys[k].read(r, h);
        }
    }
    return damaged(r, "an unknown or repeated key");
}

static mc_status read_dictionary(struct reader *r, struct head *h)
{
    unsigned seen = 0;
    *h = (struct head){ 0 };
    if (!accept(r, "{")) {
        return damaged(r, "expected a dictionary");
    }
    while (!accept(r, "}")) {
        TRY(read_entry(r, h, &seen));
        if (!accept(r, ",") && *r->at != '}') {
            return damaged(r, "expected a comma");
        }
    }
    return seen == (1u << NELEM(keys)) - 1 ? MC_OK : damaged(r, "a missing key");
}

/* ---- the head ---- */

/* The length of the header has two bytes in version 1.0, four in the others. */
static mc_status read_head(const struct mc_source *s, struct head *h, uint64_t *data)
{
    unsigned char fixed[12] = { 0 };
    TRY(mc_source_read(s, 0, fixed, MAGIC + 2));
    if (memcmp(fixed, "\x93NUMPY", MAGIC) != 0) {
        return mc_fail(MC_EFORMAT, "'%s' is not a .npy file", s->name);
    }
    int version = fixed[MAGIC];
    if (version < 1 || version > 3 || fixed[MAGIC + 1] != 0) {
        return mc_fail(MC_EUNSUPPORTED, "'%s' has .npy version %d.%d; expected 1.0, 2.0 or 3.0", s->name,
                       version, fixed[MAGIC + 1]);
    }
    size_t fix = version == 1 ? 10 : 12;
    TRY(mc_source_read(s, 0, fixed, fix));
    size_t n = (size_t)fixed[8] | (size_t)fixed[9] << 8 | (size_t)fixed[10] << 16 | (size_t)fixed[11] << 24;
    if (n > s->size - fix || n > LONGEST_HEAD) {
        return mc_fail(MC_EFORMAT, "'%s' has a damaged .npy header: %zu bytes long", s->name, n);
    }
    char *text = mc_alloc(n + 1, "files");
    if (!text) {
        return MC_EMEMORY;
    }
    text[n] = '\0';
    mc_status status = mc_source_read(s, fix, text, n);
    if (status == MC_OK) {
        status = read_dictionary(&(struct reader){ text, s->name }, h);
    }
    mc_free(text);
    *data = fix + n;
    return status;
}

/* ---- elements ---- */

void mc_swap_bytes(char *p, int64_t n, int size)
{
    for (int64_t i = 0; i < n; i++, p += size) {
        for (int a = 0, b = size - 1; a < b; a++, b--) {
            char c = p[a];
            p[a] = p[b];
            p[b] = c;
        }
    }
}

/* Reads the elements as they are in the file, then converts them: to this machine's byte order, bools to 0 or
 * 1, Fortran order to C order. */
static mc_array *read_elements(const struct mc_source *s, const struct head *h, uint64_t at)
{
    int64_t n = mc_dims_count(h->rank, h->dims), bytes, dims[MC_MAX_RANK];
    if (n < 0 || !mc_mul_i64(n, mc_dtypes[h->dtype].size, &bytes) || (uint64_t)bytes > s->size - at) {
        truncated(s);
        return NULL;
    }
    for (int i = 0; i < h->rank; i++) {
        dims[i] = h->dims[h->fortran ? h->rank - 1 - i : i];
    }
    mc_array *a = mc_array_empty(h->dtype, h->rank, dims);
    if (!a || mc_source_read(s, at, a->data, (size_t)bytes) < 0) {
        mc_array_unref(&a);
        return NULL;
    }
    if (h->swapped) {
        mc_swap_bytes(a->data, n, mc_dtypes[h->dtype].size);
    }
    for (int64_t i = 0; h->dtype == MC_BOOL && i < n; i++) {
        a->data[i] = a->data[i] != 0;
    }
    if (h->fortran) {
        mc_array *t = mc_array_transpose(a, NULL), *copy = t ? mc_array_copy(t) : NULL;
        mc_array_unref(&t);
        mc_array_unref(&a);
        a = copy;
    }
    return a;
}

mc_array *mc_npy_read(const struct mc_source *s)
{
    struct head h;
    uint64_t at = 0;
    return read_head(s, &h, &at) < 0 ? NULL : read_elements(s, &h, at);
}

mc_array *mc_npy_load(const char *path)
{
    struct mc_source s;
    if (!path) {
        mc_fail(MC_EARG, "mc_npy_load: the path is NULL");
        return NULL;
    }
    if (mc_source_open(&s, path) < 0) {
        return NULL;
    }
    mc_array *a = mc_npy_read(&s);
    mc_source_close(&s);
    return a;
}

/* ---- writing ---- */

mc_status mc_npy_head(struct mc_str *out, const mc_array *a)
{
    struct mc_str d = { 0 };
    char order = mc_dtypes[a->dtype].size == 1 ? '|' : native;
    mc_str_addf(&d, "{'descr': '%c%s', 'fortran_order': False, 'shape': ", order, mc_dtypes[a->dtype].npy);
    mc_dims_text(&d, a->rank, a->dims);
    mc_str_add(&d, ", }");
    while ((10 + d.n + 1) % ALIGN && !d.bad) {
        mc_str_add(&d, " ");
    }
    mc_str_add(&d, "\n");
    mc_str_addn(out, "\x93NUMPY\x01\x00", MAGIC + 2);
    mc_str_addn(out, (char[]){ (char)(d.n & 0xff), (char)(d.n >> 8) }, 2);
    mc_str_addn(out, d.s ? d.s : "", d.n);
    out->bad |= d.bad;
    mc_str_free(&d);
    return out->bad ? MC_EMEMORY : MC_OK;
}

mc_status mc_npy_save(const char *path, const mc_array *a)
{
    struct mc_str head = { 0 };
    if (!path || !a) {
        return mc_fail(MC_EARG, "mc_npy_save: the %s is NULL", path ? "array" : "path");
    }
    mc_array *flat = mc_array_is_contiguous(a) ? mc_array_on_host(a) : mc_array_copy(a);
    mc_status s = flat ? mc_npy_head(&head, flat) : mc_last_status();
    if (s == MC_OK) {
        size_t bytes = (size_t)mc_array_size(flat) * mc_dtypes[flat->dtype].size;
        s = mc_file_write_pieces(path, (struct mc_piece[]){ { head.s, head.n }, { flat->data, bytes } }, 2);
    }
    mc_str_free(&head);
    mc_array_unref(&flat);
    return s;
}
