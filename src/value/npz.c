/* npz.c: reads NumPy's file of several arrays, which is a zip file of .npy files.
 *
 * The central directory is checked against the size of the file, a member against its checksum.
 *
 * Invariant: a member is read only within the bytes that the directory gives it. */
#include "value/archive.h"
#include "value/zip.h"

/* ---- finding the directory ---- */

struct directory {
    uint64_t at, size, count;
};

/* Finds the last end record whose comment ends where the file ends. */
static mc_status find_end(const mc_archive *z, uint64_t *at)
{
    uint64_t size = z->source.size, span = MC_MIN(size, (uint64_t)END_SIZE + LONGEST_COMMENT);
    unsigned char *last_bytes = mc_alloc((size_t)span, "files");
    mc_status s = last_bytes ? mc_source_read(&z->source, size - span, last_bytes, (size_t)span) : MC_EMEMORY;
    uint64_t i = s == MC_OK ? span : 0;
    bool found = false;
    while (!found && i > 0) {
        i--;
        found = span - i >= END_SIZE && mc_little(last_bytes + i, 4) == END &&
                mc_little(last_bytes + i + 20, 2) == span - i - END_SIZE;
    }
    *at = size - span + i;
    mc_free(last_bytes);
    if (s == MC_OK && !found) {
        s = mc_fail(MC_EFORMAT, "'%s' is not a .npz file or is truncated", z->source.name);
    }
    return s;
}

static mc_status find_directory(const mc_archive *z, struct directory *d)
{
    unsigned char end[END64_SIZE];
    uint64_t at = 0;
    TRY(find_end(z, &at));
    TRY(mc_source_read(&z->source, at, end, END_SIZE));
    *d = (struct directory){ .at = mc_little(end + 16, 4),
                             .size = mc_little(end + 12, 4),
                             .count = mc_little(end + 10, 2) };
    if (d->at == FULL32 || d->size == FULL32 || d->count == 0xffff) {
        if (at < LOCATOR64_SIZE) {
            return mc_archive_damaged(z, "no zip64 record");
        }
        TRY(mc_source_read(&z->source, at - LOCATOR64_SIZE, end, LOCATOR64_SIZE));
        if (mc_little(end, 4) == LOCATOR64) {
            TRY(mc_source_read(&z->source, mc_little(end + 8, 8), end, END64_SIZE));
            if (mc_little(end, 4) != END64) {
                return mc_archive_damaged(z, "no zip64 record");
            }
            *d = (struct directory){ .at = mc_little(end + 48, 8),
                                     .size = mc_little(end + 40, 8),
                                     .count = mc_little(end + 32, 8) };
        }
    }
    if (d->at > at || d->size > at - d->at || d->count > d->size / CENTRAL_SIZE) {
        return mc_archive_damaged(z, "the directory is outside the file");
    }
    return MC_OK;
}

/* ---- reading the directory ---- */

/* Sizes that do not fit into 32 bits are in an extra field: only those, in this order. */
static bool read_extra64(struct mc_member *m, const unsigned char *p, uint64_t n)
{
    uint64_t *want[] = { &m->size, &m->zip.packed, &m->at };
    while (n >= 4) {
        uint64_t id = mc_little(p, 2), len = mc_little(p + 2, 2);
        p += 4;
        n -= 4;
        if (len > n) {
            return false;
        }
        for (size_t i = 0; id == EXTRA64 && i < NELEM(want); i++) {
            if (*want[i] == FULL32) {
                if (len < 8) {
                    return false;
                }
                *want[i] = mc_little(p, 8);
                p += 8;
                n -= 8;
                len -= 8;
            }
        }
        p += len;
        n -= len;
    }
    return true;
}

/* Reads one entry from p, which has n bytes; *used: the length of the entry. */
static mc_status read_member(mc_archive *z, const unsigned char *p, uint64_t n, uint64_t *used)
{
    if (n < CENTRAL_SIZE || mc_little(p, 4) != CENTRAL) {
        return mc_archive_damaged(z, "invalid directory");
    }
    uint64_t name = mc_little(p + 28, 2), extra = mc_little(p + 30, 2), comment = mc_little(p + 32, 2);
    struct mc_member m = { .at = mc_little(p + 42, 4),
                           .size = mc_little(p + 24, 4),
                           .zip = { .packed = mc_little(p + 20, 4),
                                    .crc = (uint32_t)mc_little(p + 16, 4),
                                    .method = (int)mc_little(p + 10, 2),
                                    .encrypted = mc_little(p + 8, 2) & ENCRYPTED } };
    *used = CENTRAL_SIZE + name + extra + comment;
    if (*used > n || memchr(p + CENTRAL_SIZE, 0, (size_t)name) ||
        !read_extra64(&m, p + CENTRAL_SIZE + name, extra)) {
        return mc_archive_damaged(z, "invalid directory");
    }
    if (m.at > z->source.size || m.zip.packed > z->source.size - m.at) {
        return mc_archive_damaged(z, "a member is outside the file");
    }
    if (name >= 4 && memcmp(p + CENTRAL_SIZE + name - 4, ".npy", 4) == 0) {
        name -= 4;
    }
    return mc_archive_add(z, (const char *)p + CENTRAL_SIZE, (size_t)name, m);
}

static mc_status read_directory(mc_archive *z)
{
    struct directory d;
    uint64_t used = 0, at = 0;
    TRY(find_directory(z, &d));
    unsigned char *text = mc_alloc((size_t)d.size, "files");
    mc_status s = text ? mc_source_read(&z->source, d.at, text, (size_t)d.size) : MC_EMEMORY;
    for (uint64_t i = 0; s == MC_OK && i < d.count; i++, at += used) {
        s = read_member(z, text + at, d.size - at, &used);
    }
    mc_free(text);
    return s;
}

/* ---- members ---- */

/* The packed bytes are after a local header, whose name and extra field may differ in length from those in
 * the directory. */
static mc_status read_packed(const mc_archive *z, const struct mc_member *m, void *dst)
{
    unsigned char local[LOCAL_SIZE];
    TRY(mc_source_read(&z->source, m->at, local, LOCAL_SIZE));
    if (mc_little(local, 4) != LOCAL) {
        return mc_archive_damaged(z, "a member has no header");
    }
    uint64_t at = m->at + LOCAL_SIZE + mc_little(local + 26, 2) + mc_little(local + 28, 2);
    return mc_source_read(&z->source, at, dst, (size_t)m->zip.packed);
}

/* The .npy file, of m->size bytes.  Deflate compresses by at most a factor of 1032, so a larger size is wrong
 * and is not allocated. */
static mc_status unpack(const mc_archive *z, const struct mc_member *m, char **out)
{
    *out = NULL;
    if (m->zip.encrypted || (m->zip.method != STORED && m->zip.method != DEFLATED)) {
        return mc_fail(MC_EUNSUPPORTED, "'%s' of '%s' is %s, which is not supported", m->name, z->source.name,
                       m->zip.encrypted ? "encrypted" : "compressed by a method other than deflate");
    }
    if (m->zip.method == STORED ? m->size != m->zip.packed : m->size / 1032 > m->zip.packed) {
        return mc_archive_damaged(z, "wrong size");
    }
    char *packed = mc_alloc_pages((size_t)m->zip.packed, "files"), *text = packed;
    mc_status s = packed ? read_packed(z, m, packed) : MC_EMEMORY;
    if (s == MC_OK && m->zip.method == DEFLATED) {
        text = mc_alloc_pages((size_t)m->size, "files");
        s = text ? mc_inflate(text, (size_t)m->size, packed, (size_t)m->zip.packed) : MC_EMEMORY;
        mc_free_pages(packed);
    }
    if (s == MC_OK && mc_crc32(0, text, (size_t)m->size) != m->zip.crc) {
        s = mc_archive_damaged(z, "wrong checksum");
    }
    if (s < 0) {
        mc_free_pages(text);
        return s;
    }
    *out = text;
    return MC_OK;
}

static mc_array *load(const mc_archive *z, const struct mc_member *m)
{
    char *text, label[512]; /* messages put it in quotes */
    if (unpack(z, m, &text) < 0) {
        return NULL;
    }
    mc_snprintf(label, sizeof label, "%s' of '%s", m->name, z->source.name);
    mc_array *a = mc_npy_read(&(struct mc_source){ .fd = -1, .mem = text, .size = m->size, .name = label });
    mc_free_pages(text);
    return a;
}

/* A beginning of the mark, so that a file that is cut short there is called that. */
static bool knows(const unsigned char *head, size_t n)
{
    return memcmp(head, "PK", MC_MIN(n, (size_t)2)) == 0;
}

const struct mc_format mc_npz = { ".npz", knows, read_directory, load, mc_npz_save };
