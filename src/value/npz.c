/* npz.c: reads NumPy's file of several arrays, which is a zip file of .npy files.
 *
 * The central directory is checked against the size of the file, a member against its checksum.
 *
 * Invariant: a member is read only within the bytes that the directory gives it. */
#include "value/zip.h"

struct member {
    char *name; /* without ".npy" */
    uint64_t at, packed, size;
    uint32_t crc;
    int method;
    bool encrypted;
};

struct mc_npz {
    struct mc_source source;
    char *path; /* source.name points to it */
    VEC(struct member) members;
};

static uint64_t number(const unsigned char *p, int n) /* little-endian */
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

static mc_status damaged(const mc_npz *z, const char *what)
{
    return mc_fail(MC_EFORMAT, "'%s' is a damaged .npz file: %s", z->source.name, what);
}

/* ---- finding the directory ---- */

struct directory {
    uint64_t at, size, count;
};

/* Finds the last end record whose comment ends where the file ends. */
static mc_status find_end(const mc_npz *z, uint64_t *at)
{
    uint64_t size = z->source.size, span = MC_MIN(size, (uint64_t)END_SIZE + LONGEST_COMMENT);
    unsigned char *tail = mc_alloc((size_t)span, "files");
    mc_status s = tail ? mc_source_read(&z->source, size - span, tail, (size_t)span) : MC_EMEMORY;
    uint64_t i = s == MC_OK ? span : 0;
    bool found = false;
    while (!found && i > 0) {
        i--;
        found = span - i >= END_SIZE && number(tail + i, 4) == END &&
                number(tail + i + 20, 2) == span - i - END_SIZE;
    }
    *at = size - span + i;
    mc_free(tail);
    if (s == MC_OK && !found) {
        s = mc_fail(MC_EFORMAT, "'%s' is not a .npz file, or it is cut short", z->source.name);
    }
    return s;
}

static mc_status find_directory(const mc_npz *z, struct directory *d)
{
    unsigned char end[END64_SIZE];
    uint64_t at = 0;
    TRY(find_end(z, &at));
    TRY(mc_source_read(&z->source, at, end, END_SIZE));
    *d = (struct directory){ .at = number(end + 16, 4),
                             .size = number(end + 12, 4),
                             .count = number(end + 10, 2) };
    if (d->at == FULL32 || d->size == FULL32 || d->count == 0xffff) {
        if (at < LOCATOR64_SIZE) {
            return damaged(z, "no zip64 record");
        }
        TRY(mc_source_read(&z->source, at - LOCATOR64_SIZE, end, LOCATOR64_SIZE));
        if (number(end, 4) == LOCATOR64) {
            TRY(mc_source_read(&z->source, number(end + 8, 8), end, END64_SIZE));
            if (number(end, 4) != END64) {
                return damaged(z, "no zip64 record");
            }
            *d = (struct directory){ .at = number(end + 48, 8),
                                     .size = number(end + 40, 8),
                                     .count = number(end + 32, 8) };
        }
    }
    if (d->at > at || d->size > at - d->at || d->count > d->size / CENTRAL_SIZE) {
        return damaged(z, "its directory is outside of the file");
    }
    return MC_OK;
}

/* ---- reading the directory ---- */

/* Sizes that do not fit into 32 bits are in an extra field: only those, in this order. */
static bool read_extra64(struct member *m, const unsigned char *p, uint64_t n)
{
    uint64_t *want[] = { &m->size, &m->packed, &m->at };
    while (n >= 4) {
        uint64_t id = number(p, 2), len = number(p + 2, 2);
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
                *want[i] = number(p, 8);
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
static mc_status read_member(mc_npz *z, const unsigned char *p, uint64_t n, uint64_t *used)
{
    if (n < CENTRAL_SIZE || number(p, 4) != CENTRAL) {
        return damaged(z, "its directory");
    }
    uint64_t name = number(p + 28, 2), extra = number(p + 30, 2), comment = number(p + 32, 2);
    struct member m = { .at = number(p + 42, 4), .packed = number(p + 20, 4), .size = number(p + 24, 4),
                        .crc = (uint32_t)number(p + 16, 4), .method = (int)number(p + 10, 2),
                        .encrypted = number(p + 8, 2) & ENCRYPTED };
    *used = CENTRAL_SIZE + name + extra + comment;
    if (*used > n || memchr(p + CENTRAL_SIZE, 0, (size_t)name) ||
        !read_extra64(&m, p + CENTRAL_SIZE + name, extra)) {
        return damaged(z, "its directory");
    }
    if (m.at > z->source.size || m.packed > z->source.size - m.at) {
        return damaged(z, "a member is outside of the file");
    }
    if (name >= 4 && memcmp(p + CENTRAL_SIZE + name - 4, ".npy", 4) == 0) {
        name -= 4;
    }
    m.name = mc_alloc((size_t)name + 1, "files");
    if (!m.name) {
        return MC_EMEMORY;
    }
    memcpy(m.name, p + CENTRAL_SIZE, (size_t)name);
    m.name[name] = '\0';
    if (!VEC_PUSH(z->members, m)) {
        mc_free(m.name);
        return MC_EMEMORY;
    }
    return MC_OK;
}

static mc_status read_directory(mc_npz *z)
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
static mc_status read_packed(const mc_npz *z, const struct member *m, void *dst)
{
    unsigned char local[LOCAL_SIZE];
    TRY(mc_source_read(&z->source, m->at, local, LOCAL_SIZE));
    if (number(local, 4) != LOCAL) {
        return damaged(z, "a member without its header");
    }
    uint64_t at = m->at + LOCAL_SIZE + number(local + 26, 2) + number(local + 28, 2);
    return mc_source_read(&z->source, at, dst, (size_t)m->packed);
}

/* The .npy file, of m->size bytes.  Deflate compresses by at most a factor of 1032, so a larger size is wrong
 * and is not allocated. */
static mc_status unpack(const mc_npz *z, const struct member *m, char **out)
{
    *out = NULL;
    if (m->encrypted || (m->method != STORED && m->method != DEFLATED)) {
        return mc_fail(MC_EUNSUPPORTED, "'%s' of '%s' is %s, which is not supported", m->name, z->source.name,
                       m->encrypted ? "encrypted" : "compressed in another way than deflate");
    }
    if (m->method == STORED ? m->size != m->packed : m->size / 1032 > m->packed) {
        return damaged(z, "a size is wrong");
    }
    char *packed = mc_alloc_pages((size_t)m->packed, "files"), *text = packed;
    mc_status s = packed ? read_packed(z, m, packed) : MC_EMEMORY;
    if (s == MC_OK && m->method == DEFLATED) {
        text = mc_alloc_pages((size_t)m->size, "files");
        s = text ? mc_inflate(text, (size_t)m->size, packed, (size_t)m->packed) : MC_EMEMORY;
        mc_free_pages(packed);
    }
    if (s == MC_OK && mc_crc32(0, text, (size_t)m->size) != m->crc) {
        s = damaged(z, "a checksum differs");
    }
    if (s < 0) {
        mc_free_pages(text);
        return s;
    }
    *out = text;
    return MC_OK;
}

mc_npz *mc_npz_read(struct mc_source s)
{
    mc_npz *z = mc_calloc(1, sizeof *z, "files");
    if (!z) {
        mc_source_close(&s);
        return NULL;
    }
    z->source = s;
    z->path = mc_strdup(s.name);
    z->source.name = z->path;
    if (!z->path || read_directory(z) < 0) {
        mc_npz_close(z);
        return NULL;
    }
    return z;
}

mc_npz *mc_npz_open(const char *path)
{
    struct mc_source s;
    if (!path) {
        mc_fail(MC_EARG, "mc_npz_open: no path");
        return NULL;
    }
    return mc_source_open(&s, path) < 0 ? NULL : mc_npz_read(s);
}

void mc_npz_close(mc_npz *z)
{
    if (!z) {
        return;
    }
    for (size_t i = 0; i < z->members.n; i++) {
        mc_free(z->members.at[i].name);
    }
    VEC_FREE(z->members);
    mc_source_close(&z->source);
    mc_free(z->path);
    mc_free(z);
}

int mc_npz_count(const mc_npz *z)
{
    return z ? (int)MC_MIN(z->members.n, (size_t)INT32_MAX) : 0;
}

const char *mc_npz_name(const mc_npz *z, int i)
{
    return i >= 0 && i < mc_npz_count(z) ? z->members.at[i].name : NULL;
}

/* Of members with equal names the last one counts, as in any zip file that was appended to. */
static const struct member *find(const mc_npz *z, const char *name)
{
    for (size_t i = z->members.n; i-- > 0;) {
        if (strcmp(z->members.at[i].name, name) == 0) {
            return &z->members.at[i];
        }
    }
    return NULL;
}

static void fail_missing(const mc_npz *z, const char *name)
{
    const char *list[64], *near;
    size_t n = MC_MIN(z->members.n, NELEM(list));
    for (size_t i = 0; i < n; i++) {
        list[i] = z->members.at[i].name;
    }
    near = mc_near_miss(name, list, n);
    mc_fail(MC_EARG, "'%s' has no array '%s'", z->source.name, name);
    if (near) {
        mc_fail(MC_EARG, "%s; did you mean '%s'?", mc_last_error(), near);
    }
}

mc_array *mc_npz_load(mc_npz *z, const char *name)
{
    char *text;
    if (!z || !name) {
        mc_fail(MC_EARG, "mc_npz_load: no %s", z ? "name" : "file");
        return NULL;
    }
    const struct member *m = find(z, name);
    if (!m) {
        fail_missing(z, name);
        return NULL;
    }
    if (unpack(z, m, &text) < 0) {
        return NULL;
    }
    char label[512]; /* messages quote it */
    mc_snprintf(label, sizeof label, "%s' of '%s", name, z->source.name);
    mc_array *a = mc_npy_read(&(struct mc_source){ .fd = -1, .mem = text, .size = m->size, .name = label });
    mc_free_pages(text);
    return a;
}
