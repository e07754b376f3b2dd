/* npz_save.c: writes NumPy's file of several arrays.
 *
 * Invariant: members are stored plain, in the order given and without a date, so equal arrays give
 * equal files; fields of 64 bits are written only where a value does not fit into the plain field. */
#include "value/archive.h"
#include "value/zip.h"

static void add_number(struct mc_str *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) {
        mc_str_addn(b, (char[]){ (char)(v >> 8 * i & 0xff) }, 1);
    }
}

/* A member while it is written. */
struct draft {
    const mc_array *array;
    struct mc_str front; /* local header and head of the .npy file */
    const char *name;
    uint64_t at, size;
    uint32_t crc;
};

static bool is_big(uint64_t v)
{
    return v >= FULL32;
}

static uint64_t low(uint64_t v)
{
    return is_big(v) ? FULL32 : v;
}

/* The fields that both headers of a member have, from "version needed" on. */
static void add_shared(struct mc_str *b, const struct draft *d, size_t extra)
{
    bool ascii = true;
    for (const char *c = d->name; *c; c++) {
        ascii &= (unsigned char)*c < 0x80;
    }
    add_number(b, VERSION64, 2);
    add_number(b, ascii ? 0 : UTF8, 2);
    add_number(b, STORED, 2);
    add_number(b, 0, 2);    /* midnight */
    add_number(b, 0x21, 2); /* the earliest date of a zip file: 1 January 1980 */
    add_number(b, d->crc, 4);
    add_number(b, low(d->size), 4);
    add_number(b, low(d->size), 4);
    add_number(b, strlen(d->name) + strlen(".npy"), 2);
    add_number(b, extra, 2);
}

static void add_local(struct mc_str *b, const struct draft *d)
{
    size_t extra = is_big(d->size) ? 20 : 0;
    add_number(b, LOCAL, 4);
    add_shared(b, d, extra);
    mc_str_addf(b, "%s.npy", d->name);
    if (extra) {
        add_number(b, EXTRA64, 2);
        add_number(b, 16, 2);
        add_number(b, d->size, 8);
        add_number(b, d->size, 8);
    }
}

static void add_central(struct mc_str *b, const struct draft *d)
{
    size_t sizes = is_big(d->size) ? 16 : 0, offset = is_big(d->at) ? 8 : 0;
    size_t extra = sizes + offset ? 4 + sizes + offset : 0;
    add_number(b, CENTRAL, 4);
    add_number(b, VERSION64, 2);
    add_shared(b, d, extra);
    add_number(b, 0, 2); /* comment */
    add_number(b, 0, 2); /* disk */
    add_number(b, 0, 2); /* kind of text */
    add_number(b, 0, 4); /* permissions */
    add_number(b, low(d->at), 4);
    mc_str_addf(b, "%s.npy", d->name);
    if (extra) {
        add_number(b, EXTRA64, 2);
        add_number(b, extra - 4, 2);
        add_number(b, d->size, sizes ? 8 : 0);
        add_number(b, d->size, sizes ? 8 : 0);
        add_number(b, d->at, offset ? 8 : 0);
    }
}

static void add_end(struct mc_str *b, uint64_t count, uint64_t at, uint64_t size)
{
    if (is_big(at) || is_big(size) || count >= 0xffff) {
        add_number(b, END64, 4);
        add_number(b, END64_SIZE - 12, 8);
        add_number(b, VERSION64, 2);
        add_number(b, VERSION64, 2);
        add_number(b, 0, 8); /* disks */
        add_number(b, count, 8);
        add_number(b, count, 8);
        add_number(b, size, 8);
        add_number(b, at, 8);
        add_number(b, LOCATOR64, 4);
        add_number(b, 0, 4);
        add_number(b, at + size, 8);
        add_number(b, 1, 4);
    }
    add_number(b, END, 4);
    add_number(b, 0, 4); /* disks */
    add_number(b, MC_MIN(count, (uint64_t)0xffff), 2);
    add_number(b, MC_MIN(count, (uint64_t)0xffff), 2);
    add_number(b, low(size), 4);
    add_number(b, low(at), 4);
    add_number(b, 0, 2); /* comment */
}

static size_t data_bytes(const struct draft *d)
{
    return (size_t)mc_array_size(d->array) * mc_dtypes[d->array->dtype].size;
}

static mc_status make_draft(struct draft *d, const char *name, const mc_array *a, uint64_t at)
{
    struct mc_str head = { 0 };
    if (strlen(name) > LONGEST_NAME) {
        return mc_fail(MC_EARG, "a name of %zu bytes is too long for a .npz file", strlen(name));
    }
    d->name = name;
    d->at = at;
    d->array = a;
    if (mc_npy_head(&head, a) < 0) {
        mc_str_free(&head);
        return MC_EMEMORY;
    }
    d->size = head.n + data_bytes(d);
    d->crc = mc_crc32(mc_crc32(0, head.s, head.n), a->data, data_bytes(d));
    add_local(&d->front, d);
    mc_str_addn(&d->front, head.s, head.n);
    mc_str_free(&head);
    return d->front.bad ? MC_EMEMORY : MC_OK;
}

static mc_status write_drafts(const char *path, struct draft *draft, size_t n, uint64_t at)
{
    struct mc_str directory = { 0 };
    size_t bytes;
    if (!mc_mul_size(2 * n + 1, sizeof(struct mc_piece), &bytes)) {
        return mc_fail_memory(SIZE_MAX, "files");
    }
    struct mc_piece *piece = mc_alloc(bytes, "files");
    for (size_t i = 0; i < n; i++) {
        add_central(&directory, &draft[i]);
    }
    add_end(&directory, n, at, directory.n);
    mc_status s = piece && !directory.bad ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        piece[2 * i] = (struct mc_piece){ draft[i].front.s, draft[i].front.n };
        piece[2 * i + 1] = (struct mc_piece){ draft[i].array->data, data_bytes(&draft[i]) };
    }
    if (s == MC_OK) {
        piece[2 * n] = (struct mc_piece){ directory.s, directory.n };
        s = mc_file_write_pieces(path, piece, 2 * n + 1);
    }
    mc_str_free(&directory);
    mc_free(piece);
    return s;
}

mc_status mc_npz_save(const char *path, int n, const char *const *names, mc_array *const *arrays)
{
    uint64_t at = 0;
    struct draft *draft = mc_calloc((size_t)n, sizeof *draft, "files");
    mc_status s = draft ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = make_draft(&draft[i], names[i], arrays[i], at);
        at += s == MC_OK ? draft[i].front.n + data_bytes(&draft[i]) : 0;
    }
    if (s == MC_OK) {
        s = write_drafts(path, draft, (size_t)n, at);
    }
    for (int i = 0; draft && i < n; i++) {
        mc_str_free(&draft[i].front);
    }
    mc_free(draft);
    return s;
}
