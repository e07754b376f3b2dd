/* wire.c: numbers, texts and arrays as bytes; each function writes its value or reads it.
 *
 *   number   seven bits a byte, lowest first; bit 7: more follow; the sign is the lowest bit of the first
 *   text     its size plus one, its bytes; 0: NULL
 *   blob     its offset and size
 *   array    1, its dtype, rank, sizes, and a blob; 0: NULL */
#include "bundle/bundle.h"

/* ---- checksums ---- */

/* Adds whole blocks of MC_BUNDLE_LANES words; returns what is left of p.  No lane waits for another. */
static const char *mix(struct mc_bundle_sum *s, const char *p, size_t blocks)
{
    uint64_t lane[MC_BUNDLE_LANES], word[MC_BUNDLE_LANES];
    memcpy(lane, s->lane, sizeof lane);
    for (; blocks; blocks--, p += sizeof word) {
        memcpy(word, p, sizeof word);
        for (int i = 0; i < MC_BUNDLE_LANES; i++) { /* each of the three operations can be undone */
            const uint64_t x = lane[i] ^ word[i];
            lane[i] = (x << 29 | x >> 35) * UINT64_C(0xff51afd7ed558ccd);
        }
    }
    memcpy(s->lane, lane, sizeof lane);
    return p;
}

void mc_bundle_sum_add(struct mc_bundle_sum *s, const char *p, size_t n)
{
    const size_t have = (size_t)(s->n % sizeof s->rest), some = have ? MC_MIN(sizeof s->rest - have, n) : 0;
    s->n += n;
    if (some) {
        memcpy(s->rest + have, p, some);
        if (have + some == sizeof s->rest) {
            mix(s, s->rest, 1);
        }
        p += some;
        n -= some;
    }
    p = mix(s, p, n / sizeof s->rest);
    n %= sizeof s->rest;
    if (n) {
        memcpy(s->rest, p, n);
    }
}

uint64_t mc_bundle_sum_end(const struct mc_bundle_sum *s)
{
    uint64_t sum = s->n;
    for (int i = 0; i < MC_BUNDLE_LANES; i++) {
        sum = mc_hash_mix(sum, s->lane[i]);
    }
    return mc_hash(s->rest, (size_t)(s->n % sizeof s->rest), sum);
}

uint64_t mc_bundle_checksum(const char *p, size_t n)
{
    struct mc_bundle_sum s = { 0 };
    mc_bundle_sum_add(&s, p, n);
    return mc_bundle_sum_end(&s);
}

/* ---- failures ---- */

bool mc_wire_good(const struct mc_wire *w)
{
    return w->status >= 0 && !w->out.bad;
}

void mc_wire_fail(struct mc_wire *w, const char *why)
{
    if (mc_wire_good(w)) {
        w->status = mc_fail(MC_EFORMAT, "%s is damaged: %s", w->what, why);
    }
}

bool mc_wire_enter(struct mc_wire *w, bool loop)
{
    int *depth = loop ? &w->loops : &w->sides;
    const int most = loop ? MC_BUNDLE_LOOPS : MC_BUNDLE_SIDES;
    if (*depth == most && !w->reading && mc_wire_good(w)) {
        w->status = mc_fail(MC_EUNSUPPORTED, "%s: at most %d %s can be inside of each other", w->what, most,
                            loop ? "loops" : "ifelse");
    } else if (*depth == most) {
        mc_wire_fail(w, loop ? "too many loops are inside of each other"
                             : "too many ifelse are inside of each other");
    }
    *depth += mc_wire_good(w);
    return mc_wire_good(w);
}

void mc_wire_leave(struct mc_wire *w, bool loop)
{
    --*(loop ? &w->loops : &w->sides);
}

/* ---- bytes ---- */

void mc_wire_bytes(struct mc_wire *w, void *p, size_t n)
{
    if (!w->reading) {
        mc_str_addn(&w->out, p, n);
    } else if (!mc_wire_good(w) || (size_t)(w->end - w->at) < n) {
        mc_wire_fail(w, "its description ends too early");
        memset(p, 0, n);
    } else {
        memcpy(p, w->at, n);
        w->at += n;
    }
}

static void put(struct mc_wire *w, uint64_t v)
{
    do {
        const char byte = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        mc_str_addn(&w->out, &byte, 1);
        v >>= 7;
    } while (v);
}

static uint64_t get(struct mc_wire *w)
{
    uint64_t v = 0;
    unsigned char byte = 0x80;
    for (int shift = 0; byte & 0x80 && shift < 64; shift += 7) {
        mc_wire_bytes(w, &byte, 1);
        v |= (uint64_t)(byte & 0x7f) << shift;
    }
    return v;
}

void mc_wire_number(struct mc_wire *w, int64_t *v, int64_t least, int64_t most)
{
    if (w->reading) {
        const uint64_t u = get(w);
        *v = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
    }
    if (*v < least || *v > most) {
        mc_wire_fail(w, "a number is out of its range");
        *v = least;
    }
    if (!w->reading) {
        put(w, (uint64_t)*v << 1 ^ (uint64_t) - (int64_t)(*v < 0));
    }
}

int mc_wire_int(struct mc_wire *w, int v, int64_t least, int64_t most)
{
    int64_t n = v;
    mc_wire_number(w, &n, MC_MAX(least, INT32_MIN), MC_MIN(most, INT32_MAX));
    return (int)n;
}

bool mc_wire_bool(struct mc_wire *w, bool v)
{
    return mc_wire_int(w, v, 0, 1) != 0;
}

void *mc_wire_list(struct mc_wire *w, void *p, int64_t n, size_t size)
{
    if (!w->reading) {
        return p;
    }
    size_t bytes = 0;
    if (!mc_wire_good(w)) {
        return NULL;
    }
    if (n > w->end - w->at || !mc_mul_size((size_t)n + 1, size, &bytes)) { /* each item has a byte at least */
        mc_wire_fail(w, "a list is longer than the file");
        return NULL;
    }
    void *list = mc_arena_alloc(w->arena, bytes);
    w->status = list ? w->status : MC_EMEMORY;
    return list;
}

void mc_wire_text(struct mc_wire *w, const char **s)
{
    int64_t n = w->reading || !*s ? 0 : (int64_t)strlen(*s) + 1;
    mc_wire_number(w, &n, 0, INT64_MAX - 1);
    if (!w->reading) {
        mc_str_addn(&w->out, *s, n ? (size_t)n - 1 : 0);
        return;
    }
    *s = NULL;
    if (n && n - 1 > w->end - w->at) {
        mc_wire_fail(w, "a text is longer than the file");
    }
    if (n && mc_wire_good(w)) {
        if (memchr(w->at, '\0', (size_t)n - 1)) {
            mc_wire_fail(w, "a text has a zero byte");
            return;
        }
        *s = mc_arena_str(w->arena, w->at, (size_t)n - 1);
        w->status = *s ? w->status : MC_EMEMORY;
        w->at += n - 1;
    }
}

/* ---- blobs ---- */

static bool add_blob(struct mc_wire *w, const char *p, size_t n)
{
    static const char zeros[MC_BUNDLE_ALIGN];
    const size_t padding = (MC_BUNDLE_ALIGN - n % MC_BUNDLE_ALIGN) % MC_BUNDLE_ALIGN;
    const struct mc_piece data = { p, n }, end = { zeros, padding };
    w->blobs += n + padding;
    return VEC_PUSH(w->blob, data) && VEC_PUSH(w->blob, end);
}

void mc_wire_blob(struct mc_wire *w, const char **p, size_t *n)
{
    int64_t at = (int64_t)w->blobs, size = w->reading ? 0 : (int64_t)*n;
    mc_wire_number(w, &at, 0, INT64_MAX);
    mc_wire_number(w, &size, 0, INT64_MAX);
    if (w->reading) {
        if (at % MC_BUNDLE_ALIGN || (uint64_t)at > w->blobs || (uint64_t)size > w->blobs - (uint64_t)at) {
            mc_wire_fail(w, "a part lies beyond its end");
            at = size = 0;
        }
        *p = w->memory + at;
        *n = (size_t)size;
    } else if (!add_blob(w, *p, *n)) {
        w->status = MC_EMEMORY;
    }
}

void mc_wire_type(struct mc_wire *w, struct mc_type *t)
{
    t->dtype = (mc_dtype)mc_wire_int(w, (int)t->dtype, 0, MC_NDTYPE - 1);
    t->rank = mc_wire_int(w, t->rank, 0, MC_MAX_RANK);
    for (int i = 0; i < t->rank; i++) {
        mc_wire_number(w, &t->dims[i], -1, INT64_MAX);
    }
}

/* Elements in C order that stay where they are until the file is written. */
static mc_array *dense(const mc_array *a)
{
    mc_array *host = mc_array_on_host(a);
    if (host && !mc_array_is_contiguous(host)) {
        mc_array *copy = mc_array_copy(host);
        mc_array_unref(&host);
        host = copy;
    }
    return host;
}

static void write_array(struct mc_wire *w, const mc_array *a)
{
    struct mc_type t = mc_type_make(a->dtype, a->rank, a->dims);
    mc_array *own = mc_wire_good(w) ? dense(a) : NULL;
    if (!own || !VEC_PUSH(w->kept, own)) {
        w->status = w->status < 0 ? w->status : own ? MC_EMEMORY : mc_last_status();
        mc_array_unref(&own);
        return;
    }
    const char *data = own->data;
    size_t bytes = (size_t)mc_array_size(own) * mc_dtypes[own->dtype].size;
    mc_wire_type(w, &t);
    mc_wire_blob(w, &data, &bytes);
}

static mc_array *read_array(struct mc_wire *w)
{
    struct mc_type t = { 0 };
    const char *data;
    size_t bytes, want = 0;
    mc_wire_type(w, &t);
    mc_wire_blob(w, &data, &bytes);
    const int64_t count = mc_dims_count(t.rank, t.dims);
    if (mc_wire_good(w) &&
        (count < 0 || !mc_mul_size((size_t)count, mc_dtypes[t.dtype].size, &want) || want != bytes)) {
        mc_wire_fail(w, "an array has other sizes than its elements");
    }
    if (!mc_wire_good(w)) {
        return NULL;
    }
    mc_array *a = mc_array_wrap(t.dtype, t.rank, t.dims, NULL, (void *)data, w->release, w->arg);
    if (a) {
        w->retain(w->arg);
    } else {
        w->status = mc_last_status();
    }
    return a;
}

void mc_wire_array(struct mc_wire *w, mc_array **a)
{
    const bool given = mc_wire_bool(w, !w->reading && *a);
    if (w->reading) {
        *a = given ? read_array(w) : NULL;
    } else if (given) {
        write_array(w, *a);
    }
}

void mc_wire_free(struct mc_wire *w)
{
    for (size_t i = 0; i < w->kept.n; i++) {
        mc_array_unref(&w->kept.at[i]);
    }
    VEC_FREE(w->kept);
    VEC_FREE(w->blob);
    mc_str_free(&w->out);
}
