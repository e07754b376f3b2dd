/* first.c: the positions of the first k elements of a line in rising or falling order.
 *
 * Each part of a line keeps candidates: those whose key is below the k-th of its best so far. Invariant: a
 * part sees its elements in their order, so of equal ones the first are kept. */
#include "heavy/lines/lines.h"

enum { CHUNK = 256, LEAST_CAPACITY = 256, FEW = 32, MOST_PARTS = 16, PART_LEAST = 1 << 14, SHORT = 1 << 17 };
enum { LITTLE = 4 }; /* so few are found sooner one by one */
static const double SECONDS = 5e-10;

struct first {
    mc_dtype d;
    bool narrow;
    uint64_t flip;
    const char *x;
    char *y;
    int64_t sx, sy, n, k, capacity;
    int parts;
    struct mc_line_set set;
    char *scratch;
    struct mc_pair *best[MOST_PARTS]; /* (capacity): a part's candidates, and as much for sorting them */
    int64_t many[MOST_PARTS];
};

static int parts_of(int64_t n, int64_t k, int within)
{
    return n < PART_LEAST || k * 8 > n ? 1 : MC_MIN(within, (int)MOST_PARTS);
}

static int64_t capacity_of(int64_t n, int64_t k, int parts)
{
    return MC_MIN(MC_MAX(MC_MAX(2 * k, k * parts), (int64_t)LEAST_CAPACITY), n);
}

static size_t count_bytes(int64_t capacity)
{
    return (mc_radix_counts(capacity, 1) + 63) / 64 * 64;
}

static size_t part_bytes(int64_t capacity)
{
    return 2 * (size_t)capacity * sizeof(struct mc_pair) + count_bytes(capacity);
}

/* Room for words of a key and a position of a whole line of short keys, and as much for sorting them. */
static size_t slot_bytes(const struct first *f)
{
    const size_t words = f->n <= SHORT ? 2 * (size_t)f->n * sizeof(uint64_t) : 0;
    return MC_MAX(part_bytes(f->capacity) * (size_t)f->parts, (words + 63) / 64 * 64);
}

static void set_sizes(struct first *f, const mc_node *n, int64_t count, int within)
{
    f->n = count;
    f->k = mc_attr_int(&n->attr[1]);
    f->parts = parts_of(count, f->k, within);
    f->capacity = capacity_of(count, f->k, f->parts);
}

size_t mc_first_scratch(const mc_node *n, const struct mc_type *in, int threads)
{
    const struct mc_line_set s = mc_line_set_of(n, in, threads);
    struct first f;
    set_sizes(&f, n, s.count, s.within);
    return f.k ? slot_bytes(&f) * (size_t)s.slots : SIZE_MAX;
}

/* Sorts n candidates at `best`, in place. */
static void sort_candidates(struct mc_pair *best, int64_t n, int64_t capacity, int bits)
{
    struct mc_pair *other = best + capacity, *sorted = mc_radix_pairs(best, other, n, bits, other + capacity);
    if (sorted != best) {
        memcpy(best, sorted, (size_t)n * sizeof *best);
    }
}

/* Keys of a chunk, as 64 bits whatever the dtype; the least of them. */
static uint64_t chunk_keys(const struct first *f, int64_t at, int64_t m, uint64_t *key)
{
    uint64_t least = UINT64_MAX;
    if (f->narrow) {
        uint32_t some[CHUNK], low = UINT32_MAX;
        mc_keys_32(some, f->d, f->x + at * f->sx, f->sx, m, (uint32_t)f->flip);
        for (int64_t i = 0; i < m; i++) {
            low = MC_MIN(low, some[i]);
        }
        for (int64_t i = 0; i < m; i++) {
            key[i] = some[i];
        }
        least = low;
    } else {
        mc_keys_64(key, f->d, f->x + at * f->sx, f->sx, m, f->flip);
        for (int64_t i = 0; i < m; i++) {
            least = MC_MIN(least, key[i]);
        }
    }
    return least;
}

/* Puts e into its place among `many` sorted candidates, of which k stay; behind those that equal it. */
static int64_t insert(struct mc_pair *best, int64_t many, int64_t k, struct mc_pair e)
{
    int64_t at = many < k ? many : k - 1;
    for (; at > 0 && best[at - 1].key > e.key; at--) {
        best[at] = best[at - 1];
    }
    best[at] = e;
    return MC_MIN(many + 1, k);
}

static void choose_part(void *arg, int64_t part, int slot)
{
    struct first *f = arg;
    const int64_t to = f->n * (part + 1) / f->parts;
    struct mc_pair *best = f->best[part];
    int64_t many = 0;
    uint64_t below = UINT64_MAX, key[CHUNK];
    bool full = false; /* k candidates are known; others must be below */
    const bool few = f->k <= FEW;
    const int bits = f->narrow ? 32 : 64;
    (void)slot;
    for (int64_t at = f->n * part / f->parts; at < to; at += CHUNK) {
        const int64_t m = MC_MIN(to - at, (int64_t)CHUNK);
        if (chunk_keys(f, at, m, key) >= below && full) {
            continue;
        }
        for (int64_t i = 0; i < m; i++) {
            if (full && key[i] >= below) {
                continue;
            }
            if (few) {
                many = insert(best, many, f->k, (struct mc_pair){ key[i], at + i });
            } else {
                best[many++] = (struct mc_pair){ key[i], at + i };
            }
            if (!few && many == f->capacity) {
                sort_candidates(best, many, f->capacity, bits);
                many = MC_MIN(many, f->k);
                full = true;
                below = best[many - 1].key;
            } else if (few && many == f->k) {
                full = true;
                below = best[many - 1].key;
            }
        }
    }
    if (!few) {
        sort_candidates(best, many, f->capacity, bits);
    }
    f->many[part] = MC_MIN(many, f->k);
}

/* Short lines of short keys: the first of all words, by vectors. */
static void choose_words(const struct first *f, uint64_t *word, mc_quick64 *quick)
{
    for (int64_t at = 0; at < f->n; at += CHUNK) {
        const int64_t m = MC_MIN(f->n - at, (int64_t)CHUNK);
        uint32_t key[CHUNK];
        mc_keys_32(key, f->d, f->x + at * f->sx, f->sx, m, (uint32_t)f->flip);
        for (int64_t i = 0; i < m; i++) {
            word[at + i] = (uint64_t)key[i] << 32 | (uint64_t)(at + i);
        }
    }
    quick(word, word + f->n, f->n, f->k);
    for (int64_t i = 0; i < f->k; i++) {
        const int64_t at = (int64_t)(uint32_t)word[i];
        memcpy(f->y + i * f->sy, &at, sizeof at);
    }
}

static void one_line(void *arg, int64_t line, int slot)
{
    struct first f = *(const struct first *)arg;
    const size_t bytes = part_bytes(f.capacity);
    char *scratch = f.scratch + (size_t)slot * slot_bytes(&f);
    mc_quick64 *quick = f.narrow && f.n <= SHORT && f.k > LITTLE ? mc_quick_keys64() : NULL;
    f.x += mc_line_offset(&f.set, 0, line);
    f.y += mc_line_offset(&f.set, 1, line);
    if (quick) {
        choose_words(&f, (uint64_t *)(void *)scratch, quick);
        return;
    }
    for (int i = 0; i < f.parts; i++) {
        f.best[i] = (struct mc_pair *)(void *)(scratch + (size_t)i * bytes);
    }
    mc_team_tasks(choose_part, &f, f.parts, f.parts, f.parts, (double)f.n * SECONDS);
    int64_t many = f.many[0];
    for (int i = 1; i < f.parts; i++) {
        memcpy(f.best[0] + many, f.best[i], (size_t)f.many[i] * sizeof **f.best);
        many += f.many[i];
    }
    if (f.parts > 1) {
        sort_candidates(f.best[0], many, f.capacity, f.narrow ? 32 : 64);
    }
    for (int64_t i = 0; i < f.k; i++) {
        memcpy(f.y + i * f.sy, &f.best[0][i].at, sizeof(int64_t));
    }
}

mc_status mc_first_run(const struct mc_line_work *w)
{
    const mc_array *x = w->in[0], *y = w->out[0];
    struct first f = { .d = x->dtype, .narrow = mc_dtypes[x->dtype].size <= sizeof(uint32_t),
                       .flip = w->node->op->line == LINE_LAST ? UINT64_MAX : 0, .x = x->data, .y = y->data,
                       .set = mc_lines_at(w->node, x, y, w->threads), .scratch = w->scratch };
    f.sx = f.set.step[0];
    f.sy = f.set.step[1];
    set_sizes(&f, w->node, f.set.count, f.set.within);
    mc_line_each(&f.set, one_line, &f, SECONDS);
    return MC_OK;
}
