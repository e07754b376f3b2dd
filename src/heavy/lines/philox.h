/* philox.h: Philox4x32-10 in lanes of 64 bits, a block to a lane; of each lane only the low half is meant.
 * The includer names V, LANES, TARGET, its instructions and NAME.
 *
 * The even lanes have the first half of the blocks, so that unpacking puts the words in order. */
#define INLINE static inline TARGET __attribute__((always_inline))

INLINE void NAME(blocks)(uint64_t key, uint64_t step, uint64_t block, V word[2])
{
    V c0 = ADD(SET1(block), LANE_BLOCKS), c1 = SHIFT_DOWN(c0, 32), c2 = SET1(step), c3 = SHIFT_DOWN(c2, 32);
    const V m0 = SET1(UINT64_C(0xd2511f53)), m1 = SET1(UINT64_C(0xcd9e8d57));
    V k0 = SET1(key), k1 = SET1(key >> 32); /* the upper halves of lanes are not read */
    for (int round = 0; round < 10; round++) {
        const V a = MUL(m0, c0), b = MUL(m1, c2);
        c0 = XOR3(SHIFT_DOWN(b, 32), c1, k0);
        c1 = b;
        c2 = XOR3(SHIFT_DOWN(a, 32), c3, k1);
        c3 = a;
        k0 = ADD(k0, SET1(UINT64_C(0x9e3779b9)));
        k1 = ADD(k1, SET1(UINT64_C(0xbb67ae85)));
    }
    const V low = SET1(UINT32_MAX), x = OR(AND(c0, low), SHIFT_UP(c1, 32));
    const V y = OR(AND(c2, low), SHIFT_UP(c3, 32));
    word[0] = UNPACK_LOW(x, y);
    word[1] = UNPACK_HIGH(x, y);
}

/* Two floats of a lane: each half's upper 24 bits. */
INLINE void NAME(floats)(float *y, V word)
{
    STORE_FLOATS(y, MUL_FLOATS(TO_FLOATS(SHIFT_DOWN_HALVES(word, 8)), SET1_FLOATS(0x1p-24f)));
}

/* One double of a lane, of its upper 53 bits: 21 and 32 of them, each in the low digits of a constant. */
INLINE void NAME(doubles)(double *y, V word)
{
    const V low = AND(SHIFT_DOWN(word, 11), SET1(UINT32_MAX)), high = SHIFT_DOWN(word, 43);
    const D a = SUB_DOUBLES(AS_DOUBLES(OR(low, SET1(UINT64_C(0x4330000000000000)))), SET1_DOUBLES(0x1p52));
    const D b = SUB_DOUBLES(AS_DOUBLES(OR(high, SET1(UINT64_C(0x4530000000000000)))), SET1_DOUBLES(0x1p84));
    STORE_DOUBLES(y, MUL_DOUBLES(ADD_DOUBLES(a, b), SET1_DOUBLES(0x1p-53)));
}

#define DRAW(T, type, each)                                                                        \
    TARGET void NAME(mc_draw_##T)(uint64_t key, uint64_t step, uint64_t block, int64_t n, type *y) \
    {                                                                                              \
        enum { MANY = each * 2 * LANES };                                                          \
        V word[2];                                                                                 \
        for (; n > 0; n -= MANY, y += MANY, block += LANES) {                                      \
            type rest[MANY], *to = n < MANY ? rest : y;                                            \
            NAME(blocks)(key, step, block, word);                                                  \
            NAME(T)(to, word[0]);                                                                  \
            NAME(T)(to + MANY / 2, word[1]);                                                       \
            if (to == rest) {                                                                      \
                memcpy(y, rest, (size_t)n * sizeof *y);                                            \
            }                                                                                      \
        }                                                                                          \
    }
DRAW(floats, float, 2)
DRAW(doubles, double, 1)
