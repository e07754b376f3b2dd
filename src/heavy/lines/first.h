/* first.h: the first of an order, for one width of keys.  The includer names W (bits), U and NAME.
 *
 * Invariant: candidates with equal keys stand in the order of their positions. */

static int64_t NAME(plain_below)(const U *key, int64_t n, U most, uint32_t at, U *to, uint32_t *position)
{
    int64_t count = 0;
    U least = (U)-1;
    for (int64_t i = 0; i < n; i++) {
        least = MC_MIN(least, key[i]);
    }
    for (int64_t i = 0; i < n && least <= most; i++) {
        to[count] = key[i];
        position[count] = at + (uint32_t)i;
        count += key[i] <= most;
    }
    return count;
}

static void NAME(load)(const struct first *f, int64_t at, int64_t n, U *key)
{
    NAME(keys)(key, f->d, f->x + at * f->sx, f->sx, n, (U)f->flip);
}

/* The rank, among sampled keys, of a limit up to which there are probably some more than k keys; -1: so many
 * samples give none. */
static int64_t NAME(rank)(const struct first *f, int64_t samples)
{
    const double hits = (double)(samples * f->k) / (double)f->n;
    const int64_t rank = (int64_t)(hits + 3 * sqrt(hits) + 3);
    return f->n < 2 * samples || rank >= samples / 2 ? -1 : rank;
}

/* That limit, or the largest key.  Samples are short runs, one of each part of the line. */
static U NAME(limit)(const struct first *f)
{
    enum { RUN = 8, RUNS = 128, SAMPLE = RUN * RUNS };
    const int64_t rank = NAME(rank)(f, SAMPLE), part = f->n / RUNS;
    int64_t at[RUNS];
    U some[SAMPLE], spare[SAMPLE];
    uint32_t count[1 << 8];
    uint64_t state = 1;
    for (int i = 0; i < RUNS && rank >= 0; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at[i] = i * part + (int64_t)((state >> 33) * (uint64_t)(part - RUN + 1) >> 31);
        __builtin_prefetch(f->x + at[i] * f->sx);
    }
    for (int i = 0; i < RUNS && rank >= 0; i++) {
        NAME(load)(f, at[i], RUN, some + i * RUN);
    }
    return rank >= 0 ? NAME(sorted)(some, spare, SAMPLE, 0, count)[rank] : (U)-1;
}

/* Of a short line, whose keys are at hand: the samples are single ones. */
static U NAME(short_limit)(const struct first *f, const U *key)
{
    enum { SAMPLE = 128 };
    const int64_t rank = NAME(rank)(f, SAMPLE), part = f->n / SAMPLE;
    U some[SAMPLE], spare[SAMPLE];
    uint32_t count[1 << 8];
    uint64_t state = 1;
    for (int i = 0; i < SAMPLE && rank >= 0; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        some[i] = key[i * part + (int64_t)((state >> 33) * (uint64_t)part >> 31)];
    }
    return rank >= 0 ? NAME(sorted)(some, spare, SAMPLE, 0, count)[rank] : (U)-1;
}

static int64_t NAME(append)(struct candidates *c, const U *key, int64_t n, U most, int64_t at)
{
    U *to = (U *)c->key + c->many;
    return NAME(below) ? NAME(below)(key, n, most, (uint32_t)at, to, c->at + c->many)
                       : NAME(plain_below)(key, n, most, (uint32_t)at, to, c->at + c->many);
}

struct NAME(keys_above) { const U *key; U least, rest; };

static uint32_t NAME(rest_of_key)(const void *keys, uint32_t at)
{
    const struct NAME(keys_above) *k = keys;
    return (uint32_t)((k->key[at] - k->least) & k->rest);
}

/* Words whose lower halves number the first k candidates in their order. */
static const uint64_t *NAME(order)(struct candidates *c, int64_t k)
{
    const U *key = c->key;
    const int64_t n = c->many;
    U least = (U)-1, most = 0;
    uint64_t *word = c->word;
    for (int64_t i = 0; i < n; i++) {
        least = MC_MIN(least, key[i]);
        most = MC_MAX(most, key[i]);
    }
    const uint64_t range = (uint64_t)(most - least);
    const int shift = range >> 32 ? 32 - __builtin_clzll(range) : 0;
    for (int64_t i = 0; i < n; i++) {
        word[i] = (uint64_t)(U)(key[i] - least) >> shift << 32 | (uint64_t)i;
    }
    if (!shift && mc_quick()->keys64) {
        mc_quick()->keys64(word, word + n, n, k);
        return word;
    }
    word = mc_radix_keys64(word, word + n, n, 32, c->count);
    if (shift) {
        const struct NAME(keys_above) keys = { key, least, (U)((UINT64_C(1) << shift) - 1) };
        uint64_t *spare = word == c->word ? c->word + n : c->word;
        mc_radix_runs(word, spare, n, NAME(rest_of_key), &keys, c->count);
    }
    return word;
}

/* Keeps the first k.  The limit below which others must be is returned in *most. False: there are none. */
static bool NAME(tighten)(struct candidates *c, int64_t k, U *most)
{
    const uint64_t *word = NAME(order)(c, k);
    U *key = c->key, *kept = (U *)(void *)(c->word + 2 * c->many);
    uint32_t *at = (uint32_t *)(void *)(kept + k);
    for (int64_t i = 0; i < k; i++) {
        kept[i] = key[(uint32_t)word[i]];
        at[i] = c->at[(uint32_t)word[i]];
    }
    memcpy(key, kept, (size_t)k * sizeof *key);
    memcpy(c->at, at, (size_t)k * sizeof *at);
    c->many = k;
    *most = (U)(key[k - 1] - 1);
    return key[k - 1] > 0;
}

static void NAME(gather_part)(void *arg, int64_t part, int slot)
{
    struct first *f = arg;
    struct candidates *c = &f->part[part];
    const int64_t from = f->n * part / f->parts, to = f->n * (part + 1) / f->parts;
    U key[CHUNK], most = (U)f->limit;
    (void)slot;
    c->many = 0;
    for (int64_t at = from; at < to; at += CHUNK) {
        const int64_t m = MC_MIN(to - at, (int64_t)CHUNK);
        if (c->many + m > f->most && !NAME(tighten)(c, f->k, &most)) {
            break;
        }
        NAME(load)(f, at, m, key);
        c->many += NAME(append)(c, key, m, most, at);
    }
}

/* Candidates of all parts, in the first one. */
static void NAME(gather)(struct first *f)
{
    struct candidates *c = f->part;
    mc_team_tasks(NAME(gather_part), f, f->parts, f->parts, f->parts, (double)f->n * SECONDS);
    for (int i = 1; i < f->parts; i++) {
        memcpy((U *)c->key + c->many, f->part[i].key, (size_t)f->part[i].many * sizeof(U));
        memcpy(c->at + c->many, f->part[i].at, (size_t)f->part[i].many * sizeof *c->at);
        c->many += f->part[i].many;
    }
}

/* The keys are where the words will be. */
static void NAME(gather_short)(struct first *f)
{
    struct candidates *c = f->part;
    U *key = (U *)(void *)c->word;
    NAME(load)(f, 0, f->n, key);
    const U most = NAME(short_limit)(f, key);
    c->many = 0;
    c->many = NAME(append)(c, key, f->n, most, 0);
    if (c->many < f->k) { /* the sample was not like the rest */
        c->many = 0;
        c->many = NAME(append)(c, key, f->n, (U)-1, 0);
    }
}

static const uint64_t *NAME(choose)(struct first *f)
{
    if (f->n <= SHORT) {
        NAME(gather_short)(f);
        return NAME(order)(f->part, f->k);
    }
    f->limit = NAME(limit)(f);
    NAME(gather)(f);
    if (f->part->many < f->k) {
        f->limit = (U)-1;
        NAME(gather)(f);
    }
    return NAME(order)(f->part, f->k);
}
