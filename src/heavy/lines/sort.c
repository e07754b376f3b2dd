/* sort.c: sort and argsort of lines by radix.
 *
 * Keys of up to 32 bits and positions share a word of 64 bits; of wider keys it has the 32 bits from the
 * highest that is not the same in all, and elements that agree in these are sorted by the whole keys
 * after. Many lines are shared by the threads; of few lines each is sorted by all threads. */
#include "heavy/lines/lines.h"
#include "device/cpu/cpu.h"

enum { CHUNK = 256, INSERTION_MOST = 48, MOST_PARTS = 16 };
enum { NARROW_DIGIT = 8, WIDE_DIGIT = 11 };
static const double SECONDS = 1e-9; /* for an element in one pass, about */

/* ---- keys ---- */

#define W 32
#define U uint32_t
#define FLOAT_DTYPE MC_FLOAT32
#define INT_DTYPE MC_INT32
#define UINT_DTYPE MC_UINT32
#include "heavy/lines/keys.h"
#undef W
#undef U
#undef FLOAT_DTYPE
#undef INT_DTYPE
#undef UINT_DTYPE
#define W 64
#define U uint64_t
#define FLOAT_DTYPE MC_FLOAT64
#define INT_DTYPE MC_INT64
#define UINT_DTYPE MC_UINT64
#include "heavy/lines/keys.h"

/* ---- radix sorts ---- */

static int radix_width(int64_t n)
{
    return n < 1 << 12 ? NARROW_DIGIT : WIDE_DIGIT;
}

static int radix_parts(int64_t n, int threads)
{
    return n < 1 << 14 ? 1 : (int)MC_MIN(threads, MOST_PARTS);
}

size_t mc_radix_counts(int64_t n, int threads)
{
    return (size_t)radix_parts(n, threads) * sizeof(uint32_t) << radix_width(n);
}

#define E uint32_t
#define KEY(e) (e)
#define NAME(x) x##_32
#include "heavy/lines/radix.h"
#undef E
#undef NAME
#define E uint64_t
#define NAME(x) x##_64
#include "heavy/lines/radix.h"
#undef E
#undef KEY
#undef NAME
#define E struct mc_pair
#define KEY(e) (e).key
#define NAME(x) x##_pair
#include "heavy/lines/radix.h"

static const struct quick { mc_quick32 *keys32; mc_quick64 *keys64; } quicks[ISA_COUNT] = {
#if defined(__x86_64__)
    [ISA_AVX512] = { mc_quick_keys32_avx512, mc_quick_keys64_avx512 },
#endif
};

static const struct quick *quick(void)
{
    return &quicks[mc_isa_runs(ISA_AVX512) ? ISA_AVX512 : ISA_PLAIN];
}

mc_quick64 *mc_quick_keys64(void)
{
    return quick()->keys64;
}

/* Vectors on one thread are faster than digits on two. */
static bool is_quick(int64_t n, int threads)
{
    return radix_parts(n, threads) <= 2;
}

uint32_t *mc_radix_keys32(uint32_t *a, uint32_t *b, int64_t n, void *count, int threads)
{
    if (is_quick(n, threads) && quick()->keys32) {
        quick()->keys32(a, b, n, n);
        return a;
    }
    return radix_32(a, b, n, 0, 32, count, threads);
}

uint64_t *mc_radix_keys64(uint64_t *a, uint64_t *b, int64_t n, int low, void *count, int threads)
{
    if (is_quick(n, threads) && quick()->keys64) {
        quick()->keys64(a, b, n, n);
        return a;
    }
    return radix_64(a, b, n, low, 64, count, threads);
}

struct mc_pair *mc_radix_pairs(struct mc_pair *a, struct mc_pair *b, int64_t n, int bits, void *count)
{
    return radix_pair(a, b, n, 0, bits, count, 1);
}

/* ---- one line ---- */

struct line {
    mc_dtype d;
    bool positions;
    const char *x;
    char *y;
    int64_t sx, sy, n;
    int threads, parts;
    void *a, *b, *count, *sorted;
    bool special[MOST_PARTS];
    uint64_t *key, all[MOST_PARTS], any[MOST_PARTS]; /* wide keys, for their order */
    struct mc_pair *pairs;      /* (2 n), then counts */
    int shift;                  /* of a wide key to its part in a word */
};

static bool is_narrow(mc_dtype d)
{
    return mc_dtypes[d].size <= sizeof(uint32_t);
}

/* Bytes of an element in the sort. */
static int64_t element(mc_dtype d, bool positions)
{
    return !positions && is_narrow(d) ? (int64_t)sizeof(uint32_t) : (int64_t)sizeof(uint64_t);
}

/* Words of narrow keys and positions; of wide ones first the keys themselves, and what all or any have
 * set. */
static void begin_order(const struct line *l, int64_t from, int64_t to, uint64_t *all, uint64_t *any)
{
    for (int64_t at = from; at < to; at += CHUNK) {
        const int64_t m = MC_MIN(to - at, (int64_t)CHUNK);
        if (is_narrow(l->d)) {
            uint32_t key[CHUNK];
            uint64_t *word = (uint64_t *)l->a + at;
            mc_keys_32(key, l->d, l->x + at * l->sx, l->sx, m, 0);
            for (int64_t i = 0; i < m; i++) {
                word[i] = (uint64_t)key[i] << 32 | (uint64_t)(at + i);
            }
        } else {
            mc_keys_64(l->key + at, l->d, l->x + at * l->sx, l->sx, m, 0);
            for (int64_t i = at; i < at + m; i++) {
                *all &= l->key[i];
                *any |= l->key[i];
            }
        }
    }
}

static void begin_part(void *arg, int64_t part, int slot)
{
    struct line *l = arg;
    const int64_t from = l->n * part / l->parts, to = l->n * (part + 1) / l->parts;
    (void)slot;
    if (l->positions) {
        l->all[part] = UINT64_MAX;
        l->any[part] = 0;
        begin_order(l, from, to, &l->all[part], &l->any[part]);
    } else if (is_narrow(l->d)) {
        l->special[part] = mc_keys_32((uint32_t *)l->a + from, l->d, l->x + from * l->sx, l->sx, to - from,
                                      0);
    } else {
        l->special[part] = mc_keys_64((uint64_t *)l->a + from, l->d, l->x + from * l->sx, l->sx, to - from,
                                      0);
    }
}

static void end_part(void *arg, int64_t part, int slot)
{
    const struct line *l = arg;
    const int64_t from = l->n * part / l->parts, to = l->n * (part + 1) / l->parts;
    char *y = l->y + from * l->sy;
    (void)slot;
    if (!l->positions && is_narrow(l->d)) {
        values_32(y, l->sy, l->d, (uint32_t *)l->sorted + from, to - from);
    } else if (!l->positions) {
        values_64(y, l->sy, l->d, (uint64_t *)l->sorted + from, to - from);
    }
    for (int64_t i = from; l->positions && i < to; i++) {
        const int64_t at = (int64_t)(uint32_t)((const uint64_t *)l->sorted)[i];
        memcpy(l->y + i * l->sy, &at, sizeof at);
    }
}

/* Zeros get their signs, and NaNs their bits, in the order of x. */
static void restore(const struct line *l)
{
    const size_t size = mc_dtypes[l->d].size;
    int64_t zero = 0, nan = l->n;
    for (int64_t i = 0; i < l->n; i++) {
        const double v = mc_load_f64(l->d, l->x + i * l->sx);
        zero += v < 0;
        nan -= v != v;
    }
    for (int64_t i = 0; i < l->n; i++) {
        const char *from = l->x + i * l->sx;
        const double v = mc_load_f64(l->d, from);
        if (v != v || (v >= 0 && v <= 0)) {
            memcpy(l->y + (v != v ? nan++ : zero++) * l->sy, from, size);
        }
    }
}

/* ---- wide keys ---- */

static void word_part(void *arg, int64_t part, int slot)
{
    const struct line *l = arg;
    (void)slot;
    for (int64_t i = l->n * part / l->parts; i < l->n * (part + 1) / l->parts; i++) {
        ((uint64_t *)l->a)[i] = (l->key[i] >> l->shift & UINT32_MAX) << 32 | (uint64_t)i;
    }
}

/* Sorts n words, which agree in their upper halves, by the keys of their positions. */
static void sort_run(const struct line *l, uint64_t *word, int64_t n)
{
    struct mc_pair *a = l->pairs, *b = a + n;
    for (int64_t i = 0; i < n; i++) {
        a[i] = (struct mc_pair){ l->key[(uint32_t)word[i]], (uint32_t)word[i] };
    }
    a = mc_radix_pairs(a, b, n, 64, l->pairs + 2 * l->n);
    for (int64_t i = 0; i < n; i++) {
        word[i] = (word[i] & UINT64_MAX << 32) | (uint64_t)a[i].at;
    }
}

static void order_wide(struct line *l)
{
    uint64_t all = UINT64_MAX, any = 0;
    for (int i = 0; i < l->parts; i++) {
        all &= l->all[i];
        any |= l->any[i];
    }
    const uint64_t differ = all ^ any;
    l->shift = differ >> 32 ? 32 - __builtin_clzll(differ) : 0;
    mc_team_tasks(word_part, l, l->parts, l->parts, l->parts, (double)l->n * SECONDS);
    uint64_t *const word = mc_radix_keys64(l->a, l->b, l->n, 32, l->count, l->threads);
    l->sorted = word;
    for (int64_t i = 0, end; l->shift > 0 && i < l->n; i = end) {
        for (end = i + 1; end < l->n && word[end] >> 32 == word[i] >> 32;) {
            end++;
        }
        if (end > i + 1) {
            sort_run(l, word + i, end - i);
        }
    }
}

static void sort_line(struct line *l)
{
    bool special = false;
    l->parts = radix_parts(l->n, l->threads);
    mc_team_tasks(begin_part, l, l->parts, l->parts, l->parts, (double)l->n * SECONDS);
    if (l->positions) {
        if (is_narrow(l->d)) {
            l->sorted = mc_radix_keys64(l->a, l->b, l->n, 32, l->count, l->threads);
        } else {
            order_wide(l);
        }
    } else {
        l->sorted = is_narrow(l->d) ? (void *)mc_radix_keys32(l->a, l->b, l->n, l->count, l->threads)
                                    : (void *)mc_radix_keys64(l->a, l->b, l->n, 0, l->count, l->threads);
    }
    mc_team_tasks(end_part, l, l->parts, l->parts, l->parts, (double)l->n * SECONDS);
    for (int i = 0; i < l->parts && !l->positions; i++) {
        special |= l->special[i];
    }
    if (special) {
        restore(l);
    }
}

/* ---- all lines ---- */

static size_t part_bytes(mc_dtype d, bool positions, int64_t n)
{
    return ((size_t)(n * element(d, positions)) + 63) / 64 * 64;
}

static size_t count_bytes(int64_t n, int threads)
{
    return (mc_radix_counts(n, threads) + 63) / 64 * 64;
}

/* Two copies to sort and the counts; for wide keys with positions the keys, and pairs of a run with their own
 * counts. */
static size_t line_bytes(mc_dtype d, bool positions, int64_t n, int threads)
{
    const size_t run = 2 * (size_t)n * sizeof(struct mc_pair) + count_bytes(n, 1);
    return 2 * part_bytes(d, positions, n) + count_bytes(n, threads) +
           (positions && !is_narrow(d) ? part_bytes(d, true, n) + run : 0);
}

struct work { struct line line; struct mc_line_set set; char *scratch; };

size_t mc_sort_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    const struct mc_line_set s = mc_line_set_of(n, in, threads);
    return line_bytes(in[0].dtype, n->op->line == LINE_ORDER, s.count, s.within) * (size_t)s.slots;
}

static void one_line(void *arg, int64_t at, int slot)
{
    const struct work *w = arg;
    struct line l = w->line;
    const size_t bytes = line_bytes(l.d, l.positions, l.n, l.threads);
    const size_t part = part_bytes(l.d, l.positions, l.n);
    char *scratch = w->scratch + (size_t)slot * bytes;
    l.x += mc_line_offset(&w->set, 0, at);
    l.y += mc_line_offset(&w->set, 1, at);
    l.a = scratch;
    l.b = scratch + part;
    l.count = scratch + 2 * part;
    l.key = (uint64_t *)(void *)(scratch + 2 * part + count_bytes(l.n, l.threads));
    l.pairs = (struct mc_pair *)(void *)((char *)l.key + part);
    sort_line(&l);
}

mc_status mc_sort_run(const struct mc_line_work *w)
{
    const mc_array *x = w->in[0], *y = w->out[0];
    struct work k = { .set = mc_lines_at(w->node, x, y, w->threads), .scratch = w->scratch };
    k.line = (struct line){ .d = x->dtype,
                            .positions = w->node->op->line == LINE_ORDER,
                            .x = x->data,
                            .y = y->data,
                            .sx = k.set.step[0],
                            .sy = k.set.step[1],
                            .n = k.set.count,
                            .threads = k.set.within };
    mc_line_each(&k.set, one_line, &k, 8 * SECONDS);
    return MC_OK;
}
