/* radix.h: a stable sort of elements by an unsigned key, one digit at a time from the lowest.  The includer
 * names E (the element), KEY(e) and NAME.
 *
 * Invariant: threads share each pass by ranges of the source, in whose order they write, so the result
 * does not depend on their number. */

struct NAME(pass) {
    const E *src;
    E *dst;
    int64_t n;
    int shift, parts, width;
    uint32_t *count;            /* (parts, 1 << width) */
};

static void NAME(count_part)(void *arg, int64_t part, int slot)
{
    const struct NAME(pass) *p = arg;
    const int64_t to = p->n * (part + 1) / p->parts;
    const uint32_t mask = (UINT32_C(1) << p->width) - 1;
    uint32_t *count = p->count + (part << p->width);
    (void)slot;
    memset(count, 0, sizeof *count << p->width);
    for (int64_t i = p->n * part / p->parts; i < to; i++) {
        count[(uint32_t)(KEY(p->src[i]) >> p->shift) & mask]++;
    }
}

static void NAME(move_part)(void *arg, int64_t part, int slot)
{
    const struct NAME(pass) *p = arg;
    const int64_t to = p->n * (part + 1) / p->parts;
    const uint32_t mask = (UINT32_C(1) << p->width) - 1;
    uint32_t *place = p->count + (part << p->width);
    (void)slot;
    for (int64_t i = p->n * part / p->parts; i < to; i++) {
        const E e = p->src[i];
        p->dst[place[(uint32_t)(KEY(e) >> p->shift) & mask]++] = e;
    }
}

/* Counts become places: of a digit, those of the first part come first.  False: all elements share it. */
static bool NAME(places)(const struct NAME(pass) *p)
{
    uint32_t at = 0;
    for (int64_t d = 0; d < INT64_C(1) << p->width; d++) {
        const uint32_t before = at;
        for (int part = 0; part < p->parts; part++) {
            uint32_t *count = p->count + ((int64_t)part << p->width) + d, c = *count;
            *count = at;
            at += c;
        }
        if (at - before == p->n) {
            return false;
        }
    }
    return true;
}

static void NAME(insert)(E *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const E e = a[i];
        int64_t k = i;
        for (; k > 0 && KEY(a[k - 1]) > KEY(e); k--) {
            a[k] = a[k - 1];
        }
        a[k] = e;
    }
}

/* By the bits from `low` to `high`. */
static E *NAME(radix)(E *a, E *b, int64_t n, int low, int high, uint32_t *count, int threads)
{
    struct NAME(pass) p = { .n = n, .count = count, .width = radix_width(n), .parts = radix_parts(n, threads) };
    if (n <= INSERTION_MOST) {
        NAME(insert)(a, n);
        return a;
    }
    for (p.shift = low; p.shift < high; p.shift += p.width) {
        p.src = a;
        p.dst = b;
        mc_team_tasks(NAME(count_part), &p, p.parts, p.parts, p.parts, (double)n * SECONDS);
        if (NAME(places)(&p)) {
            mc_team_tasks(NAME(move_part), &p, p.parts, p.parts, p.parts, (double)n * SECONDS);
            E *t = a;
            a = b;
            b = t;
        }
    }
    return a;
}
