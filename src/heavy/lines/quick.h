/* quick.h: quicksort of unsigned keys in vectors, short ranges by a bitonic network.  The includer names U
 * (the key), V (a vector), LANES, NAME, TARGET and the instructions.
 *
 * Invariant: equal keys are the same bits, so the order of equal ones is not seen. */

enum { NAME(REGISTERS) = 16, NAME(MOST) = NAME(REGISTERS) * LANES };

#define INLINE TARGET static inline __attribute__((always_inline))

/* Lane l gets the lesser of l and l ^ by, or the greater where l has the bit `high`. */
INLINE V NAME(exchange)(V v, int by, int high)
{
    const V s = PERMUTE(XOR(LANE_NUMBERS, SET1(by)), v);
    const unsigned mask = high == 1 ? 0xaaaa : high == 2 ? 0xcccc : high == 4 ? 0xf0f0 : 0xff00;
    return MASK_MAX(MIN(v, s), (MASK)mask, v, s);
}

INLINE void NAME(sort_lanes)(V *v, int registers)
{
#pragma GCC unroll 4
    for (int k = 2; k <= LANES; k *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < registers; i++) {
            v[i] = NAME(exchange)(v[i], k - 1, k / 2);
        }
#pragma GCC unroll 4
        for (int by = k / 4; by > 0; by /= 2) {
#pragma GCC unroll 16
            for (int i = 0; i < registers; i++) {
                v[i] = NAME(exchange)(v[i], by, by);
            }
        }
    }
}

INLINE void NAME(halve_registers)(V *v, int registers, int from)
{
#pragma GCC unroll 4
    for (int by = from; by > 0; by /= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < registers; i++) {
            if (!(i & by)) {
                const V a = v[i], b = v[i + by];
                v[i] = MIN(a, b);
                v[i + by] = MAX(a, b);
            }
        }
    }
}

/* Pairs register i in lane l with the last but i in lane l ^ by. */
INLINE void NAME(flip_lanes)(V *v, int registers, int by, int high)
{
    const MASK mask = (MASK)(high == 1 ? 0xaaaa : high == 2 ? 0xcccc : high == 4 ? 0xf0f0 : 0xff00);
    const V index = XOR(LANE_NUMBERS, SET1(by));
#pragma GCC unroll 8
    for (int i = 0; i < registers / 2; i++) {
        const int k = registers - 1 - i;
        const V a = v[i], b = v[k], sa = PERMUTE(index, a), sb = PERMUTE(index, b);
        v[i] = MASK_MAX(MIN(a, sb), mask, a, sb);
        v[k] = MASK_MAX(MIN(b, sa), mask, b, sa);
    }
}

/* The order of the result is first by lane, then by register: most exchanges are of whole registers. */
INLINE void NAME(sort_columns)(V *v, int registers)
{
#pragma GCC unroll 4
    for (int k = 2; k <= registers; k *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < registers; i++) {
            if ((i & (k - 1)) < k / 2) {
                const V a = v[i], b = v[i ^ (k - 1)];
                v[i] = MIN(a, b);
                v[i ^ (k - 1)] = MAX(a, b);
            }
        }
        NAME(halve_registers)(v, registers, k / 4);
    }
#pragma GCC unroll 4
    for (int k = 2; k <= LANES; k *= 2) {
        NAME(flip_lanes)(v, registers, k - 1, k / 2);
#pragma GCC unroll 4
        for (int by = k / 4; by > 0; by /= 2) {
#pragma GCC unroll 16
            for (int i = 0; i < registers; i++) {
                v[i] = NAME(exchange)(v[i], by, by);
            }
        }
        NAME(halve_registers)(v, registers, registers / 2);
    }
}

/* Register by register what was lane by lane.  A step takes the lower halves of two registers in turn, then
 * the upper ones: the bits of an element's place, register before lane, rotate by one. */
INLINE void NAME(turn)(V *v, int registers)
{
    const V low = INTERLEAVE, high = XOR(low, SET1(LANES / 2));
#pragma GCC unroll 4
    for (int k = 1; k < registers; k *= 2) {
        V w[NAME(REGISTERS)];
#pragma GCC unroll 8
        for (int i = 0; i < registers / 2; i++) {
            w[2 * i] = TAKE(v[i], low, v[i + registers / 2]);
            w[2 * i + 1] = TAKE(v[i], high, v[i + registers / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < registers; i++) {
            v[i] = w[i];
        }
    }
}

INLINE void NAME(sort_registers)(V *v, int registers)
{
    if (registers == 1) {
        NAME(sort_lanes)(v, registers);
    } else {
        NAME(sort_columns)(v, registers);
        NAME(turn)(v, registers);
    }
}

/* The first `left` lanes. */
static inline MASK NAME(mask)(int64_t left)
{
    const unsigned all = (1u << LANES) - 1u;
    return (MASK)(left >= LANES ? all : left <= 0 ? 0u : (1u << left) - 1u);
}

/* n of at most registers * LANES keys. */
INLINE void NAME(sort_few)(U *a, int64_t n, int registers)
{
    V v[NAME(REGISTERS)];
#pragma GCC unroll 16
    for (int i = 0; i < registers; i++) {
        v[i] = LOAD_SOME(SET1(-1), NAME(mask)(n - i * LANES), a + i * LANES);
    }
    NAME(sort_registers)(v, registers);
#pragma GCC unroll 16
    for (int i = 0; i < registers; i++) {
        STORE_SOME(a + i * LANES, NAME(mask)(n - i * LANES), v[i]);
    }
}

/* Puts keys below the pivot before the others; how many are. */
TARGET static int64_t NAME(split)(U *a, U *spare, int64_t n, U pivot)
{
    const V p = SET1(pivot);
    int64_t low = 0, high = 0, i = 0;
    for (; i + LANES <= n; i += LANES) { /* low <= i: the store covers only keys that have been loaded */
        const V v = LOAD(a + i);
        const MASK below = LESS(v, p);
        const int m = __builtin_popcount(below);
        STORE(a + low, COMPRESS(below, v));
        STORE(spare + high, COMPRESS((MASK)~below, v));
        low += m;
        high += LANES - m;
    }
    if (i < n) {
        const MASK all = NAME(mask)(n - i);
        const V v = LOAD_SOME(p, all, a + i);
        const MASK below = LESS(v, p);
        const int m = __builtin_popcount(below);
        STORE_SOME(a + low, NAME(mask)(m), COMPRESS(below, v));
        STORE_SOME(spare + high, NAME(mask)(n - i - m), COMPRESS((MASK)(all & ~below), v));
        low += m;
        high += n - i - m;
    }
    memcpy(a + low, spare, (size_t)high * sizeof *a);
    return low;
}

/* The middle of LANES keys, one of each part of the range, at places drawn from *state. */
TARGET static U NAME(middle)(const U *a, int64_t n, uint64_t *state)
{
    const int64_t part = n / LANES;
    U some[LANES];
    V v;
    for (int i = 0; i < LANES; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        some[i] = a[i * part + (int64_t)((*state >> 33) * (uint64_t)part >> 31)];
    }
    v = LOAD(some);
    NAME(sort_lanes)(&v, 1);
    STORE(some, v);
    return some[LANES / 2];
}

/* The first k of n in place, sorted. */
TARGET static void NAME(quick)(U *a, U *spare, int64_t n, int64_t k, uint64_t *state)
{
    while (n > NAME(MOST) && k > 0) {
        const U pivot = NAME(middle)(a, n, state);
        int64_t low = NAME(split)(a, spare, n, pivot);
        if (low == 0) { /* the pivot is the least: what equals it is in place */
            low = pivot + 1 ? NAME(split)(a, spare, n, pivot + 1) : n;
            a += low;
            n -= low;
            k -= low;
        } else if (low >= k) {
            n = low;
        } else if (low < n - low) {
            NAME(quick)(a, spare, low, low, state);
            a += low;
            n -= low;
            k -= low;
        } else {
            NAME(quick)(a + low, spare, n - low, k - low, state);
            n = low;
            k = low;
        }
    }
    if (k <= 0) {
        return;
    }
    if (n > 8 * LANES) {
        NAME(sort_few)(a, n, 16);
    } else if (n > 4 * LANES) {
        NAME(sort_few)(a, n, 8);
    } else if (n > 2 * LANES) {
        NAME(sort_few)(a, n, 4);
    } else if (n > LANES) {
        NAME(sort_few)(a, n, 2);
    } else if (n > 1) {
        NAME(sort_few)(a, n, 1);
    }
}
#undef INLINE
