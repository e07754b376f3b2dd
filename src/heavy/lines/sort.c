/* sort.c: sort and argsort of lines.
 *
 * Keys of up to 32 bits and positions share a word of 64 bits; of wider keys it has the 32 bits from the
 * highest that is not the same in all, and elements that agree in these are sorted by the rest after. Many
 * lines are shared by the threads; of few lines each is sorted by all threads. */
#include "heavy/lines/lines.h"
#include <math.h>

enum { CHUNK = 256, MOST_PARTS = 16 };
static const double SECONDS = 1e-9; /* for an element in one pass, about */

struct line {
    mc_dtype d;
    bool positions;
    const char *x;
    char *y;
    int64_t sx, sy, n;
    int threads, parts;
    char *a, *b, *count, *bucket; /* count: of each thread */
    bool special[MOST_PARTS];
    uint64_t all[MOST_PARTS], any[MOST_PARTS]; /* bits of wide keys that all or any have set */
    int shift;                  /* of a wide key to its part in a word */
};

static bool is_narrow(mc_dtype d)
{
    return mc_dtypes[d].size <= sizeof(uint32_t);
}

/* Are there words of the upper bits of wide keys and of positions? */
static bool has_words(const struct line *l)
{
    return l->positions && !is_narrow(l->d);
}

/* Bytes of an element in the sort. */
static int64_t element(mc_dtype d, bool positions)
{
    return !positions && is_narrow(d) ? (int64_t)sizeof(uint32_t) : (int64_t)sizeof(uint64_t);
}

/* ---- wide keys for their order ---- */

static void differ_part(void *arg, int64_t part, int slot)
{
    struct line *l = arg;
    const int64_t from = l->n * part / l->parts, to = l->n * (part + 1) / l->parts;
    uint64_t all = UINT64_MAX, any = 0;
    (void)slot;
    for (int64_t at = from; at < to; at += CHUNK) {
        const int64_t m = MC_MIN(to - at, (int64_t)CHUNK);
        uint64_t key[CHUNK];
        mc_keys_64(key, l->d, l->x + at * l->sx, l->sx, m, 0);
        for (int64_t i = 0; i < m; i++) {
            all &= key[i];
            any |= key[i];
        }
    }
    l->all[part] = all;
    l->any[part] = any;
}

static void choose_shift(struct line *l)
{
    uint64_t all = UINT64_MAX, any = 0;
    mc_team_tasks(differ_part, l, l->parts, l->parts, l->parts, (double)l->n * SECONDS);
    for (int i = 0; i < l->parts; i++) {
        all &= l->all[i];
        any |= l->any[i];
    }
    const uint64_t differ = all ^ any;
    l->shift = differ >> 32 ? 32 - __builtin_clzll(differ) : 0;
}

static uint32_t rest_of_key(const void *line, uint32_t at)
{
    const struct line *l = line;
    uint64_t key;
    mc_keys_64(&key, l->d, l->x + (int64_t)at * l->sx, l->sx, 1, 0);
    return (uint32_t)(key & ((UINT64_C(1) << l->shift) - 1));
}

/* at: where the words begin in the line; no run goes past them. */
static void sort_runs(const struct line *l, uint64_t *word, int64_t at, int64_t n, int slot)
{
    uint64_t *a = (uint64_t *)(void *)l->a + at, *b = (uint64_t *)(void *)l->b + at;
    mc_radix_runs(word, word == a ? b : a, n, rest_of_key, l,
                  l->count + (size_t)slot * mc_radix_counts(l->n));
}

/* ---- elements of the sort, and results ---- */

static void load_words(const struct line *l, int64_t at, int64_t n, uint64_t *word)
{
    if (is_narrow(l->d)) {
        uint32_t key[CHUNK];
        mc_keys_32(key, l->d, l->x + at * l->sx, l->sx, n, 0);
        for (int64_t i = 0; i < n; i++) {
            word[i] = (uint64_t)key[i] << 32 | (uint64_t)(at + i);
        }
    } else {
        mc_keys_64(word, l->d, l->x + at * l->sx, l->sx, n, 0);
        for (int64_t i = 0; i < n; i++) {
            word[i] = word[i] >> l->shift << 32 | (uint64_t)(at + i);
        }
    }
}

/* n: CHUNK at most. */
static void load(void *arg, int64_t at, int64_t n, int part, void *to)
{
    struct line *l = arg;
    const char *x = l->x + at * l->sx;
    if (l->positions) {
        load_words(l, at, n, to);
    } else if (is_narrow(l->d)) {
        l->special[part] |= mc_keys_32(to, l->d, x, l->sx, n, 0);
    } else {
        l->special[part] |= mc_keys_64(to, l->d, x, l->sx, n, 0);
    }
}

static void store_positions(const struct line *l, char *y, const uint64_t *word, int64_t n)
{
    if (l->sy == sizeof(int64_t)) {
        uint64_t *to = (uint64_t *)(void *)y;
        for (int64_t i = 0; i < n; i++) {
            to[i] = word[i] & UINT32_MAX;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t position = (int64_t)(uint32_t)word[i];
        memcpy(y + i * l->sy, &position, sizeof position);
    }
}

static void done(void *arg, int64_t at, int64_t n, int slot, void *sorted)
{
    const struct line *l = arg;
    char *y = l->y + at * l->sy;
    if (l->positions) {
        if (l->shift > 0) {
            sort_runs(l, sorted, at, n, slot);
        }
        store_positions(l, y, sorted, n);
    } else if (is_narrow(l->d)) {
        mc_values_32(y, l->sy, l->d, sorted, n);
    } else {
        mc_values_64(y, l->sy, l->d, sorted, n);
    }
}

/* The first of n sorted elements that is not below `limit`; NaN is last. */
static int64_t first_from(const struct line *l, double limit)
{
    int64_t low = 0, high = l->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (mc_load_f64(l->d, l->y + middle * l->sy) < limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int64_t first_nan(const struct line *l)
{
    const int64_t end = first_from(l, INFINITY);
    int64_t i = end;
    for (double v; i < l->n && (v = mc_load_f64(l->d, l->y + i * l->sy), !(v != v));) {
        i++;
    }
    return i;
}

/* Zeros get their signs, and NaNs their bits, in the order of x. */
static void restore(const struct line *l)
{
    const size_t size = mc_dtypes[l->d].size;
    int64_t zero = first_from(l, 0), nan = first_nan(l);
    for (int64_t i = 0; i < l->n; i++) {
        const char *from = l->x + i * l->sx;
        const double v = mc_load_f64(l->d, from);
        if (v != v || (v >= 0 && v <= 0)) {
            memcpy(l->y + (v != v ? nan++ : zero++) * l->sy, from, size);
        }
    }
}

/* ---- one line ---- */

static void sort_whole(struct line *l)
{
    const bool wide = element(l->d, l->positions) == sizeof(uint64_t);
    for (int64_t at = 0; at < l->n; at += CHUNK) {
        load(l, at, MC_MIN(l->n - at, (int64_t)CHUNK), 0, l->a + at * element(l->d, l->positions));
    }
    if (wide) {
        uint64_t *a = (uint64_t *)(void *)l->a, *b = (uint64_t *)(void *)l->b;
        done(l, 0, l->n, 0, mc_radix_keys64(a, b, l->n, l->positions ? 32 : 0, l->count));
    } else {
        uint32_t *a = (uint32_t *)(void *)l->a, *b = (uint32_t *)(void *)l->b;
        done(l, 0, l->n, 0, mc_radix_keys32(a, b, l->n, l->count));
    }
}

static void sort_line(struct line *l)
{
    bool special = false;
    l->parts = l->n < 1 << 14 ? 1 : MC_MIN(l->threads, (int)MOST_PARTS);
    if (has_words(l)) {
        choose_shift(l);
    }
    if (mc_buckets_pay(l->n, l->threads)) {
        struct mc_bucket_sort s = { .n = l->n,
                                    .threads = l->threads,
                                    .wide = element(l->d, l->positions) == sizeof(uint64_t),
                                    .low = l->positions ? 32 : 0,
                                    .mask = l->shift > 0 ? UINT64_MAX << 32 : UINT64_MAX,
                                    .load = load,
                                    .done = done,
                                    .arg = l,
                                    .a = l->a,
                                    .b = l->b };
        mc_bucket_run(&s, l->bucket);
    } else {
        sort_whole(l);
    }
    for (int i = 0; i < l->parts && !l->positions; i++) {
        special |= l->special[i];
    }
    if (special) {
        restore(l);
    }
}

/* ---- all lines ---- */

/* Assigns the scratch: two copies to sort, the counts, what buckets need.  Its bytes. */
static size_t lay_out(struct line *l, char *scratch)
{
    const size_t copy = (size_t)(l->n * element(l->d, l->positions)), count = mc_radix_counts(l->n);
    size_t at = 0;
    l->a = mc_line_take(scratch, &at, copy);
    l->b = mc_line_take(scratch, &at, copy);
    l->count = mc_line_take(scratch, &at, (size_t)l->threads * count);
    if (mc_buckets_pay(l->n, l->threads)) {
        l->bucket = mc_line_take(scratch, &at, mc_bucket_bytes(l->n, l->threads));
    }
    return at;
}

struct work { struct line line; struct mc_line_set set; char *scratch; };

size_t mc_sort_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    const struct mc_line_set s = mc_line_set_of(n, in, threads);
    struct line l = {
        .d = in[0].dtype, .positions = n->op->line == LINE_ORDER, .n = s.count, .threads = s.within
    };
    return lay_out(&l, NULL) * (size_t)s.slots;
}

static void one_line(void *arg, int64_t at, int slot)
{
    const struct work *w = arg;
    struct line l = w->line;
    lay_out(&l, w->scratch + (size_t)slot * lay_out(&l, NULL));
    l.x += mc_line_offset(&w->set, 0, at);
    l.y += mc_line_offset(&w->set, 1, at);
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
