/* buckets.h: the part of a sort in buckets that is made for one width of keys.  The includer names U and
 * NAME.
 *
 * Invariant: elements of a bucket are those from splitter b up to splitter b + 1, in whatever order. */

/* Splitters as a heap: node i has the children 2 i and 2 i + 1; node 0 is not read. */
static void NAME(heap)(const U *splitter, U *heap)
{
    for (int level = 1; level < MC_BUCKETS; level *= 2) {
        for (int i = 0; i < level; i++) {
            heap[level + i] = splitter[(2 * i + 1) * (MC_BUCKETS / 2 / level)];
        }
    }
}

/* Splitters by a sample of runs, one of each part of the line, at places that are drawn. */
static void NAME(choose)(const struct mc_bucket_sort *s, U *heap)
{
    enum { RUNS = 128, RUN = 8, SAMPLE = RUNS * RUN, EACH = SAMPLE / MC_BUCKETS };
    U some[SAMPLE], spare[SAMPLE], splitter[MC_BUCKETS];
    uint32_t count[1 << 8];
    uint64_t state = 1;
    for (int i = 0; i < RUNS; i++) {
        const int64_t part = s->n / RUNS, starts = part - RUN + 1;
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        s->load(s->arg, i * part + (int64_t)((state >> 33) * (uint64_t)starts >> 31), RUN, 0, some + i * RUN);
    }
    const U *sorted = NAME(sorted)(some, spare, SAMPLE, s->low, count);
    for (int i = 0; i < MC_BUCKETS; i++) {
        splitter[i] = sorted[i * EACH] & (U)s->mask;
    }
    NAME(heap)(splitter, heap);
}

static void NAME(plain_classes)(const U *key, int64_t n, const U *heap, uint8_t *id)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned at = 1;
        while (at < MC_BUCKETS) {
            at = 2 * at + (key[i] >= heap[at]);
        }
        id[i] = (uint8_t)(at - MC_BUCKETS);
    }
}

static void NAME(count_part)(void *arg, int64_t part, int slot)
{
    const struct work *w = arg;
    const struct mc_bucket_sort *s = w->s;
    const int64_t to = s->n * (part + 1) / s->parts;
    uint32_t count[4][MC_BUCKETS] = { { 0 } };
    U key[CHUNK];
    (void)slot;
    for (int64_t at = s->n * part / s->parts; at < to; at += CHUNK) {
        const int64_t m = MC_MIN(to - at, (int64_t)CHUNK);
        uint8_t *id = s->id + at;
        int64_t i = 0;
        s->load(s->arg, at, m, (int)part, key);
        (NAME(classes) ? NAME(classes) : NAME(plain_classes))(key, m, (const U *)w->heap, id);
        for (; i + 4 <= m; i += 4) {
            count[0][id[i]]++;
            count[1][id[i + 1]]++;
            count[2][id[i + 2]]++;
            count[3][id[i + 3]]++;
        }
        for (; i < m; i++) {
            count[0][id[i]]++;
        }
    }
    for (int b = 0; b < MC_BUCKETS; b++) {
        s->place[part * MC_BUCKETS + b] = (int64_t)count[0][b] + count[1][b] + count[2][b] + count[3][b];
    }
}

static void NAME(move_part)(void *arg, int64_t part, int slot)
{
    const struct mc_bucket_sort *s = ((const struct work *)arg)->s;
    const int64_t to = s->n * (part + 1) / s->parts;
    U key[CHUNK], *place[MC_BUCKETS];
    (void)slot;
    for (int b = 0; b < MC_BUCKETS; b++) {
        place[b] = (U *)s->a + s->place[part * MC_BUCKETS + b];
    }
    for (int64_t at = s->n * part / s->parts; at < to; at += CHUNK) {
        const int64_t m = MC_MIN(to - at, (int64_t)CHUNK);
        const uint8_t *id = s->id + at;
        s->load(s->arg, at, m, (int)part, key);
        for (int64_t i = 0; i < m; i++) {
            *place[id[i]]++ = key[i];
        }
    }
}

static void NAME(sort_bucket)(void *arg, int64_t bucket, int slot)
{
    const struct work *w = arg;
    const struct mc_bucket_sort *s = w->s;
    const int64_t at = w->start[bucket], m = w->start[bucket + 1] - at;
    if (m) {
        void *count = (char *)s->count + (size_t)slot * mc_radix_counts(s->n);
        s->done(s->arg, at, m, slot, NAME(sorted)((U *)s->a + at, (U *)s->b + at, m, s->low, count));
    }
}
