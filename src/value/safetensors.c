/* safetensors.c: Hugging Face's file of tensors: the length of the header in eight bytes, the header, which
 * is JSON, and the elements in C order, little-endian:
 *
 *     {"__metadata__": {"format": "pt"}, "W": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
 *
 * Invariant: every byte behind the header belongs to just one tensor, and a tensor has the bytes that its
 * shape needs.  The format says so and reading checks it, so a file never costs more memory than it has
 * bytes. */
#include "value/archive.h"
#include <stdlib.h>

enum { LENGTH = 8, LONGEST_HEADER = 100000000 }; /* the format's own limit */
static const char metadata[] = "__metadata__";

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { SWAPPED = true };
#else
enum { SWAPPED = false };
#endif

/* ---- the header ---- */

struct header {
    mc_archive *file;
    uint64_t data_bytes;        /* bytes behind it */
    struct mc_dict names; /* of all entries so far */
    struct mc_str text;   /* a value that is a string */
};

/* One tensor while it is being read. */
struct entry {
    struct header *header;
    const char *name;
    unsigned seen; /* a bit for each key */
    uint64_t offset[2];
    int noffset;
    struct mc_member m;
};

static mc_status read_dtype(struct mc_json *j, struct entry *e)
{
    struct mc_str *text = &e->header->text;
    TRY(mc_json_string(j, text));
    for (int d = 0; d < MC_NDTYPE; d++) {
        if (strcmp(text->s, mc_dtypes[d].tensors) == 0) {
            e->m.tensor.dtype = (mc_dtype)d;
            return MC_OK;
        }
    }
    return mc_fail(MC_EUNSUPPORTED, "'%s' of '%s' has elements of type '%s', which is not supported", e->name,
                   e->header->file->source.name, text->s);
}

static mc_status read_size(struct mc_json *j, void *arg)
{
    struct entry *e = arg;
    uint64_t n;
    if (e->m.tensor.rank == MC_MAX_RANK) {
        return mc_fail(MC_EUNSUPPORTED, "'%s' of '%s' has more than %d axes", e->name,
                       e->header->file->source.name, MC_MAX_RANK);
    }
    const struct mc_json start = *j;
    TRY(mc_json_count(j, &n));
    if (n > INT64_MAX) {
        return mc_json_wrong(&start, "a size out of range");
    }
    e->m.tensor.dims[e->m.tensor.rank++] = (int64_t)n;
    return MC_OK;
}

static mc_status read_shape(struct mc_json *j, struct entry *e)
{
    return mc_json_array(j, read_size, e);
}

static mc_status read_offset(struct mc_json *j, void *arg)
{
    struct entry *e = arg;
    return e->noffset == 2 ? mc_json_wrong(j, "a third offset") : mc_json_count(j, &e->offset[e->noffset++]);
}

static mc_status read_offsets(struct mc_json *j, struct entry *e)
{
    TRY(mc_json_array(j, read_offset, e));
    return e->noffset == 2 ? MC_OK : mc_json_wrong(j, "fewer than two offsets");
}

static const struct {
    const char *key;
    mc_status (*read)(struct mc_json *, struct entry *);
} keys[] = { { "dtype", read_dtype }, { "shape", read_shape }, { "data_offsets", read_offsets } };

static mc_status read_property(struct mc_json *j, const char *key, void *arg)
{
    struct entry *e = arg;
    for (size_t k = 0; k < NELEM(keys); k++) {
        if (strcmp(key, keys[k].key) == 0 && !(e->seen >> k & 1)) {
            e->seen |= 1u << k;
            return keys[k].read(j, e);
        }
    }
    return mc_archive_damaged(e->header->file, "'%s' has the key '%s', which is unknown or repeated", e->name,
                              key);
}

/* Do shape and offsets agree with each other and with the size of the file? */
static mc_status check_entry(const struct entry *e)
{
    const uint64_t data_bytes = e->header->data_bytes;
    const mc_archive *a = e->header->file;
    const struct mc_member *m = &e->m;
    const int64_t n = mc_dims_count(m->tensor.rank, m->tensor.dims);
    int64_t bytes;
    if (n < 0 || !mc_mul_i64(n, mc_dtypes[m->tensor.dtype].size, &bytes)) {
        return mc_archive_damaged(a, "the shape of '%s' is too large", e->name);
    }
    if (e->offset[0] > e->offset[1] || e->offset[1] > data_bytes) {
        return mc_archive_damaged(a, "'%s' is outside the data: bytes %llu to %llu of %llu", e->name,
                                  (unsigned long long)e->offset[0], (unsigned long long)e->offset[1],
                                  (unsigned long long)data_bytes);
    }
    if (m->size != (uint64_t)bytes) {
        return mc_archive_damaged(a, "'%s' has %llu bytes, but its shape needs %llu", e->name,
                                  (unsigned long long)m->size, (unsigned long long)bytes);
    }
    return MC_OK;
}

static mc_status read_remark(struct mc_json *j, const char *key, void *arg)
{
    (void)key;
    return mc_json_string(j, &((struct header *)arg)->text);
}

static mc_status read_entry(struct mc_json *j, const char *name, void *arg)
{
    struct header *h = arg;
    struct entry e = { .header = h, .name = name };
    if (mc_dict_get(&h->names, name)) {
        return mc_archive_damaged(h->file, "the name '%s' is used twice", name);
    }
    if (!mc_dict_put(&h->names, name, h)) {
        return MC_EMEMORY;
    }
    if (strcmp(name, metadata) == 0) {
        return mc_json_object(j, read_remark, h);
    }
    TRY(mc_json_object(j, read_property, &e));
    if (e.seen != (1u << NELEM(keys)) - 1) {
        return mc_archive_damaged(h->file, "'%s' lacks dtype, shape or data_offsets", name);
    }
    e.m.at = e.offset[0];
    e.m.size = e.offset[1] - e.offset[0];
    TRY(check_entry(&e));
    return mc_archive_add(h->file, name, strlen(name), e.m);
}

static int by_offset(const void *a, const void *b)
{
    const struct mc_member *x = *(const struct mc_member *const *)a, *y = *(const struct mc_member *const *)b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->size > y->size) - (x->size < y->size);
}

/* Every byte belongs to just one tensor. */
static mc_status check_layout(const mc_archive *a, uint64_t data_bytes)
{
    const size_t n = a->members.n;
    const struct mc_member **order = mc_calloc(n + 1, sizeof *order, "files");
    mc_status s = order ? MC_OK : MC_EMEMORY;
    uint64_t end = 0;
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        order[i] = &a->members.at[i];
    }
    if (s == MC_OK) {
        qsort(order, n, sizeof *order, by_offset);
    }
    for (size_t i = 0; i <= n && s == MC_OK; i++) {
        const uint64_t at = i < n ? order[i]->at : data_bytes;
        if (at < end) {
            s = mc_archive_damaged(a, "'%s' and '%s' overlap", order[i - 1]->name, order[i]->name);
        } else if (at > end) {
            s = mc_archive_damaged(a, "bytes %llu to %llu belong to no tensor", (unsigned long long)end,
                                   (unsigned long long)at);
        }
        end = at + (i < n ? order[i]->size : 0);
    }
    mc_free(order);
    return s;
}

static mc_status read_text(struct header *h, const char *text, size_t n)
{
    mc_archive *a = h->file;
    struct mc_str what = { 0 };
    mc_str_addf(&what, "'%s' is a damaged .safetensors file", a->source.name);
    struct mc_json j = { text, text + n, what.s };
    mc_status s = what.bad ? MC_EMEMORY : mc_json_object(&j, read_entry, h);
    s = s < 0 ? s : mc_json_end(&j);
    s = s < 0 ? s : check_layout(a, h->data_bytes);
    for (size_t i = 0; i < a->members.n; i++) {
        a->members.at[i].at += LENGTH + n;
    }
    mc_str_free(&what);
    return s;
}

static mc_status read_header(mc_archive *a)
{
    unsigned char length[LENGTH];
    TRY(mc_source_read(&a->source, 0, length, LENGTH));
    const uint64_t n = mc_little(length, LENGTH);
    if (n > LONGEST_HEADER || n > a->source.size - LENGTH) {
        return mc_archive_damaged(a, "a header of %llu bytes in a file of %llu; at most %d are allowed",
                                  (unsigned long long)n, (unsigned long long)a->source.size, LONGEST_HEADER);
    }
    struct header h = { .file = a, .data_bytes = a->source.size - LENGTH - n };
    char *text = mc_alloc((size_t)n, "files");
    mc_status s = text ? mc_source_read(&a->source, LENGTH, text, (size_t)n) : MC_EMEMORY;
    s = s < 0 ? s : read_text(&h, text, (size_t)n);
    mc_dict_free(&h.names);
    mc_str_free(&h.text);
    mc_free(text);
    return s;
}

static mc_array *load(const mc_archive *a, const struct mc_member *m)
{
    const mc_dtype d = m->tensor.dtype;
    mc_array *x = mc_array_empty(d, m->tensor.rank, m->tensor.dims);
    if (!x || mc_source_read(&a->source, m->at, x->data, (size_t)m->size) < 0) {
        mc_array_unref(&x);
        return NULL;
    }
    for (uint64_t i = 0; d == MC_BOOL && i < m->size; i++) {
        x->data[i] = x->data[i] != 0;
    }
    if (SWAPPED) {
        mc_swap_bytes(x->data, mc_array_size(x), mc_dtypes[d].size);
    }
    return x;
}

/* The header begins with a brace.  The three bytes before it are the upper bytes of its length: zero, which
 * they are in no text. */
static bool knows(const unsigned char *head, size_t n)
{
    return n == MC_FORMAT_HEAD && head[LENGTH] == '{' && mc_little(head + 5, 3) == 0;
}

/* ---- writing ---- */

static size_t bytes_of(const mc_array *a)
{
    return (size_t)mc_array_size(a) * mc_dtypes[a->dtype].size;
}

static mc_status check_name(const char *name)
{
    for (const char *s = name; *s;) {
        const size_t n = mc_utf8(s, strnlen(s, 4));
        if (n == 0) {
            return mc_fail(MC_EARG, "the name '%s' is not valid UTF-8, which a .safetensors file needs",
                           name);
        }
        s += n;
    }
    return strcmp(name, metadata) ? MC_OK
                                  : mc_fail(MC_EARG, "a .safetensors file has no array '%s'", metadata);
}

static void add_entry(struct mc_str *h, const char *name, const mc_array *a, size_t at)
{
    mc_str_add(h, ",");
    mc_str_json(h, name);
    mc_str_addf(h, ":{\"dtype\":\"%s\",\"shape\":[", mc_dtypes[a->dtype].tensors);
    for (int i = 0; i < a->rank; i++) {
        mc_str_addf(h, i ? ",%lld" : "%lld", (long long)a->dims[i]);
    }
    mc_str_addf(h, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes_of(a));
}

/* PyTorch's readers require the metadata "format". */
static mc_status make_header(struct mc_str *h, int n, const char *const *names, mc_array *const *arrays,
                             const size_t *at)
{
    mc_str_addf(h, "{\"%s\":{\"format\":\"pt\"}", metadata);
    for (int i = 0; i < n; i++) {
        TRY(check_name(names[i]));
        add_entry(h, names[i], arrays[i], at[i]);
    }
    mc_str_add(h, "}");
    while (h->n % LENGTH && !h->bad) {
        mc_str_add(h, " ");
    }
    return h->bad                  ? MC_EMEMORY
           : h->n > LONGEST_HEADER ? mc_fail(MC_EARG,
                                             "%zu bytes of names and shapes are too many for a .safetensors "
                                             "file; at most %d are allowed",
                                             h->n, LONGEST_HEADER)
                                   : MC_OK;
}

/* The elements in the byte order of the file: a itself, or a copy. */
static mc_array *in_order(mc_array *a)
{
    mc_array *x = SWAPPED ? mc_array_copy(a) : mc_array_ref(a);
    if (SWAPPED && x) {
        mc_swap_bytes(x->data, mc_array_size(x), mc_dtypes[x->dtype].size);
    }
    return x;
}

/* Tensors are written in the order of falling element size.  So each is aligned, although the format allows
 * no padding between them. */
static mc_status write_file(const char *path, int n, const char *const *names, mc_array *const *arrays,
                            mc_array **data, size_t *at, struct mc_piece *piece)
{
    struct mc_str header = { 0 };
    unsigned char length[LENGTH];
    size_t end = 0, k = 2;
    for (int size = 8; size > 0; size /= 2) {
        for (int i = 0; i < n; i++) {
            if (mc_dtypes[arrays[i]->dtype].size == size) {
                data[i] = in_order(arrays[i]);
                if (!data[i]) {
                    return mc_last_status();
                }
                piece[k++] = (struct mc_piece){ data[i]->data, bytes_of(data[i]) };
                at[i] = end;
                end += bytes_of(data[i]);
            }
        }
    }
    mc_status s = make_header(&header, n, names, arrays, at);
    for (int i = 0; i < LENGTH; i++) {
        length[i] = (unsigned char)((uint64_t)header.n >> 8 * i & 0xff);
    }
    piece[0] = (struct mc_piece){ length, LENGTH };
    piece[1] = (struct mc_piece){ header.s, header.n };
    s = s < 0 ? s : mc_file_write_pieces(path, piece, k);
    mc_str_free(&header);
    return s;
}

static mc_status save(const char *path, int n, const char *const *names, mc_array *const *arrays)
{
    mc_array **data = mc_calloc((size_t)n + 1, sizeof(mc_array *), "files");
    size_t *at = mc_calloc((size_t)n + 1, sizeof *at, "files");
    struct mc_piece *piece = mc_calloc((size_t)n + 2, sizeof *piece, "files");
    mc_status s = data && at && piece ? write_file(path, n, names, arrays, data, at, piece) : MC_EMEMORY;
    for (int i = 0; data && i < n; i++) {
        mc_array_unref(&data[i]);
    }
    mc_free(data);
    mc_free(at);
    mc_free(piece);
    return s;
}

const struct mc_format mc_safetensors = { ".safetensors", knows, read_header, load, save };
