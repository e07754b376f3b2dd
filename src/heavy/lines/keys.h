/* keys.h: keys of one width and back, at one level of instructions.  The includer names W (bits), U, FLOAT
 * (the type), FLOAT_DTYPE, INT_DTYPE and UINT_DTYPE of W bits, LEVEL and TARGET.
 *
 * Invariant: NaN has the largest key, all zeros have one. */
#define JOIN__(a, b, c) a##b##_##c
#define JOIN_(a, b, c) JOIN__(a, b, c)
#define JOIN(a, b) JOIN_(a, b, LEVEL)
#define SIGN ((U)1 << (W - 1))

TARGET static inline mc_dtype JOIN(work_, W)(mc_dtype d)
{
    return mc_is_float(d) ? FLOAT_DTYPE : mc_dtypes[d].kind == KIND_UINT ? UINT_DTYPE : INT_DTYPE;
}

TARGET static U JOIN(float_keys_, W)(U *restrict key, const U *restrict x, int64_t n, U flip)
{
    const U infinity = (U)(W == 32 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000));
    U special = 0;
    for (int64_t i = 0; i < n; i++) {
        const U u = x[i], big = u & ~SIGN, all = (U)0 - (U)(u >> (W - 1));
        const U nan = (U)0 - (U)(big > infinity), zero = (U)0 - (U)(big == 0);
        special |= nan | (zero & u);
        key[i] = ((((u ^ (all | SIGN)) & ~zero) | (SIGN & zero)) | nan) ^ flip;
    }
    return special;
}

TARGET static void JOIN(whole_keys_, W)(U *restrict key, const U *restrict x, int64_t n, U by)
{
    for (int64_t i = 0; i < n; i++) {
        key[i] = x[i] ^ by;
    }
}

TARGET static bool JOIN(keys_, W)(U *key, mc_dtype d, const char *x, int64_t step, int64_t n, U flip)
{
    const mc_dtype work = JOIN(work_, W)(d);
    const bool dense = d == work && step == (int64_t)sizeof(U);
    U special = 0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t m = MC_MIN(n - at, (int64_t)CHUNK);
        U some[CHUNK];
        const U *from = some;
        if (dense) {
            from = (const U *)(const void *)x + at;
        } else {
            mc_convert(work, some, sizeof *some, d, x + at * step, step, m);
        }
        if (work == FLOAT_DTYPE) {
            special |= JOIN(float_keys_, W)(key + at, from, m, flip);
        } else {
            JOIN(whole_keys_, W)(key + at, from, m, (work == INT_DTYPE ? SIGN : 0) ^ flip);
        }
    }
    return special != 0;
}

TARGET static void JOIN(float_values_, W)(U *restrict to, const U *restrict key, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = key[i] ^ (((U)(key[i] >> (W - 1)) - 1) | SIGN);
    }
}

TARGET static void JOIN(values_, W)(char *y, int64_t step, mc_dtype d, const U *key, int64_t n)
{
    const mc_dtype work = JOIN(work_, W)(d);
    const bool dense = d == work && step == (int64_t)sizeof(U);
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t m = MC_MIN(n - at, (int64_t)CHUNK);
        U some[CHUNK], *to = dense ? (U *)(void *)y + at : some;
        if (work == FLOAT_DTYPE) {
            JOIN(float_values_, W)(to, key + at, m);
        } else {
            JOIN(whole_keys_, W)(to, key + at, m, work == INT_DTYPE ? SIGN : 0);
        }
        if (!dense) {
            mc_convert(d, y + at * step, step, work, some, sizeof *some, m);
        }
    }
}
#undef JOIN
#undef JOIN_
#undef JOIN__
#undef SIGN
