/* quick.h: quicksort of unsigned keys in vectors, short ranges by a bitonic network.  The includer names U
 * (the key), V (a vector), LANES, NAME, TARGET and the instructions.
 *
 * Invariant: equal keys are the same bits, so the order of equal ones is not seen. */

enum { NAME(REGISTERS) = 16, NAME(MOST) = NAME(REGISTERS) * LANES };
enum { NAME(FEW) = 16 * NAME(MOST), NAME(HEAP) = MC_BUCKETS / LANES };

#define INLINE TARGET static inline __attribute__((always_inline))

/* Lane l gets the lesser of l and l ^ by, or the greater where l has the bit `high`. */
INLINE V NAME(exchange)(V v, int by, int high)
{
    const V s = PERMUTE(XOR(LANE_NUMBERS, SET1(by)), v);
    const unsigned mask = high == 1 ? 0xaaaa : high == 2 ? 0xcccc : high == 4 ? 0xf0f0 : 0xff00;
    return MASK_MAX(MIN(v, s), (MASK)mask, v, s);
}

/* The stages of a network are calls with constants, not loops: registers cannot be indexed by a variable. */
INLINE void NAME(exchange_all)(V *v, int registers, int by, int high)
{
#pragma GCC unroll 16
    for (int i = 0; i < registers; i++) {
        v[i] = NAME(exchange)(v[i], by, high);
    }
}

/* Exchanges by `from`, half of it, and so on to 1. */
INLINE void NAME(exchange_from)(V *v, int registers, int from)
{
    if (from >= 4) {
        NAME(exchange_all)(v, registers, 4, 4);
    }
    if (from >= 2) {
        NAME(exchange_all)(v, registers, 2, 2);
    }
    if (from >= 1) {
        NAME(exchange_all)(v, registers, 1, 1);
    }
}

INLINE void NAME(sort_lanes)(V *v, int registers)
{
    NAME(exchange_all)(v, registers, 1, 1);
    NAME(exchange_all)(v, registers, 3, 2);
    NAME(exchange_from)(v, registers, 1);
    NAME(exchange_all)(v, registers, 7, 4);
    NAME(exchange_from)(v, registers, 2);
    if (LANES == 16) {
        NAME(exchange_all)(v, registers, 15, 8);
        NAME(exchange_from)(v, registers, 4);
    }
}

/* Puts the lesser of registers i and i ^ by into that whose bit `high` is not set, the greater into the
 * other. */
INLINE void NAME(halve)(V *v, int registers, int by, int high)
{
#pragma GCC unroll 16
    for (int i = 0; i < registers; i++) {
        if (!(i & high)) {
            const V a = v[i], b = v[i ^ by];
            v[i] = MIN(a, b);
            v[i ^ by] = MAX(a, b);
        }
    }
}

INLINE void NAME(halve_from)(V *v, int registers, int from)
{
    if (from >= 8) {
        NAME(halve)(v, registers, 8, 8);
    }
    if (from >= 4) {
        NAME(halve)(v, registers, 4, 4);
    }
    if (from >= 2) {
        NAME(halve)(v, registers, 2, 2);
    }
    if (from >= 1) {
        NAME(halve)(v, registers, 1, 1);
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

INLINE void NAME(merge_columns)(V *v, int registers, int k)
{
    NAME(flip_lanes)(v, registers, k - 1, k / 2);
    NAME(exchange_from)(v, registers, k / 4);
    NAME(halve_from)(v, registers, registers / 2);
}

/* The order of the result is first by lane, then by register: most exchanges are of whole registers. */
INLINE void NAME(sort_columns)(V *v, int registers)
{
    NAME(halve)(v, registers, 1, 1);
    if (registers >= 4) {
        NAME(halve)(v, registers, 3, 2);
        NAME(halve_from)(v, registers, 1);
    }
    if (registers >= 8) {
        NAME(halve)(v, registers, 7, 4);
        NAME(halve_from)(v, registers, 2);
    }
    if (registers >= 16) {
        NAME(halve)(v, registers, 15, 8);
        NAME(halve_from)(v, registers, 4);
    }
    NAME(merge_columns)(v, registers, 2);
    NAME(merge_columns)(v, registers, 4);
    NAME(merge_columns)(v, registers, 8);
    if (LANES == 16) {
        NAME(merge_columns)(v, registers, 16);
    }
}

/* Register by register what was lane by lane.  A step takes the lower halves of two registers in turn, then
 * the upper ones: the bits of an element's place, register before lane, rotate by one. */
INLINE void NAME(turn_once)(V *v, int registers)
{
    const V low = INTERLEAVE, high = XOR(low, SET1(LANES / 2));
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

INLINE void NAME(turn)(V *v, int registers)
{
    NAME(turn_once)(v, registers);
    if (registers >= 4) {
        NAME(turn_once)(v, registers);
    }
    if (registers >= 8) {
        NAME(turn_once)(v, registers);
    }
    if (registers >= 16) {
        NAME(turn_once)(v, registers);
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
    return FIRST(PERMUTE(SET1(LANES / 2), v));
}

/* The same of a short range, by the middle ones of three registers' keys, one register of each third. */
TARGET static U NAME(middle_of_few)(const U *a, int64_t n, uint64_t *state)
{
    const int64_t third = n / 3;
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const U *at = a + (int64_t)((*state >> 33) * (uint64_t)(third - LANES + 1) >> 31);
    const V x = LOAD(at), y = LOAD(at + third), z = LOAD(at + 2 * third);
    V v = MAX(MIN(x, y), MIN(MAX(x, y), z));
    NAME(sort_lanes)(&v, 1);
    return FIRST(PERMUTE(SET1(LANES / 2), v));
}

/* The first k of n in place, sorted. */
TARGET static void NAME(quick)(U *a, U *spare, int64_t n, int64_t k, uint64_t *state)
{
    while (n > NAME(MOST) && k > 0) {
        const U pivot = n < NAME(FEW) ? NAME(middle_of_few)(a, n, state) : NAME(middle)(a, n, state);
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

/* ---- buckets: each level of the heap is looked up in registers ---- */

TARGET static void NAME(classes)(const U *key, int64_t n, const U *heap, uint8_t *id)
{
    const V one = SET1(1);
    V node[NAME(HEAP)];
    for (int i = 0; i < NAME(HEAP); i++) {
        node[i] = LOAD(heap + i * LANES);
    }
#pragma GCC unroll 2
    for (int64_t i = 0; i < n; i += LANES) {
        const MASK some = NAME(mask)(n - i);
        const V k = LOAD_SOME(one, some, key + i);
        V at = one;
#pragma GCC unroll 6
        for (int level = 1; level < MC_BUCKETS; level *= 2) {
            const V twice = ADD(at, at);
            at = MASK_ADD(twice, NOT_LESS(k, NAME(look_up)(node, at, level)), twice, one);
        }
        if (n - i >= LANES) {
            STORE_BYTES(id + i, TO_BYTES(XOR(at, SET1(MC_BUCKETS))));
        } else {
            uint8_t last[16];
            STORE_BYTES(last, TO_BYTES(XOR(at, SET1(MC_BUCKETS))));
            memcpy(id + i, last, (size_t)(n - i));
        }
    }
}

/* ---- keys up to a limit ---- */

struct NAME(found) { U *to; uint32_t *position; int64_t count; };

INLINE void NAME(append)(struct NAME(found) *f, V k, MASK found, POSITIONS where)
{
    STORE(f->to + f->count, COMPRESS(found, k));
    STORE_POSITIONS(f->position + f->count, COMPRESS_POSITIONS(found, where));
    f->count += __builtin_popcount(found);
}

TARGET static int64_t NAME(below)(const U *key, int64_t n, U most, uint32_t at, U *to, uint32_t *position)
{
    const V limit = SET1(most);
    struct NAME(found) f = { to, position, 0 };
    POSITIONS where = FIRST_POSITIONS(at);
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) { /* a branch for four registers is predicted better */
        MASK found[4];
        V k[4];
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) {
            k[r] = LOAD(key + i + r * LANES);
            found[r] = NOT_LESS(limit, k[r]);
        }
        if (found[0] | found[1] | found[2] | found[3]) {
            POSITIONS p = where;
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++) {
                NAME(append)(&f, k[r], found[r], p);
                p = NEXT_POSITIONS(p, LANES);
            }
        }
        where = NEXT_POSITIONS(where, 4 * LANES);
    }
    for (; i < n; i += LANES) {
        const MASK some = NAME(mask)(n - i);
        const V k = LOAD_SOME(limit, some, key + i);
        NAME(append)(&f, k, (MASK)(some & NOT_LESS(limit, k)), where);
        where = NEXT_POSITIONS(where, LANES);
    }
    return f.count;
}
#undef INLINE
