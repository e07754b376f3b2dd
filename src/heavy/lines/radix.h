/* radix.h: a stable sort of unsigned numbers, one digit at a time from the lowest.  The includer
 * names E (the element) and NAME. */

/* Counts become places.  False: all elements share the digit. */
static bool NAME(places)(const E *src, int64_t n, int shift, int width, uint32_t *count)
{
    const uint32_t mask = (UINT32_C(1) << width) - 1;
    uint32_t at = 0;
    memset(count, 0, sizeof *count << width);
    for (int64_t i = 0; i < n; i++) {
        count[(uint32_t)(src[i] >> shift) & mask]++;
    }
    for (int64_t d = 0; d <= mask; d++) {
        const uint32_t c = count[d];
        if (c == n) {
            return false;
        }
        count[d] = at;
        at += c;
    }
    return true;
}

static void NAME(move)(const E *src, E *dst, int64_t n, int shift, int width, uint32_t *place)
{
    const uint32_t mask = (UINT32_C(1) << width) - 1;
    for (int64_t i = 0; i < n; i++) {
        const E e = src[i];
        dst[place[(uint32_t)(e >> shift) & mask]++] = e;
    }
}

static void NAME(insert)(E *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const E e = a[i];
        int64_t k = i;
        for (; k > 0 && a[k - 1] > e; k--) {
            a[k] = a[k - 1];
        }
        a[k] = e;
    }
}

/* By the bits from `low` to `high`. */
static E *NAME(radix)(E *a, E *b, int64_t n, int low, int high, uint32_t *count)
{
    const int width = radix_width(n);
    if (n <= INSERTION_MOST) {
        NAME(insert)(a, n);
        return a;
    }
    for (int shift = low; shift < high; shift += width) {
        if (NAME(places)(a, n, shift, width, count)) {
            NAME(move)(a, b, n, shift, width, count);
            E *t = a;
            a = b;
            b = t;
        }
    }
    return a;
}
