/* keys.h: keys of one width and back.  The includer names W (bits), U, FLOAT (the float of W bits) and the
 * dtypes FLOAT_DTYPE, INT_DTYPE and UINT_DTYPE of W bits.
 *
 * Invariant: NaN has the largest key, all zeros have one. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define SIGN ((U)1 << (W - 1))

static mc_dtype JOIN(work_, W)(mc_dtype d)
{
    return mc_is_float(d) ? FLOAT_DTYPE : mc_dtypes[d].kind == KIND_UINT ? UINT_DTYPE : INT_DTYPE;
}

bool JOIN(mc_keys_, W)(U *key, mc_dtype d, const char *x, int64_t step, int64_t n, U flip)
{
    const mc_dtype work = JOIN(work_, W)(d);
    const U infinity = (U)(W == 32 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000));
    U special = 0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t m = MC_MIN(n - at, (int64_t)CHUNK);
        U *k = key + at;
        mc_convert(work, k, sizeof *k, d, x + at * step, step, m);
        if (work == FLOAT_DTYPE) {
            for (int64_t i = 0; i < m; i++) {
                const U u = k[i], big = u & ~SIGN, all = (U)0 - (U)(u >> (W - 1));
                const U nan = (U)0 - (U)(big > infinity), zero = (U)0 - (U)(big == 0);
                special |= nan | (zero & u);
                k[i] = ((((u ^ (all | SIGN)) & ~zero) | (SIGN & zero)) | nan) ^ flip;
            }
        } else {
            const U by = (work == INT_DTYPE ? SIGN : 0) ^ flip;
            for (int64_t i = 0; i < m; i++) {
                k[i] ^= by;
            }
        }
    }
    return special != 0;
}

/* From sorted keys, which are destroyed, to elements. */
static void JOIN(values_, W)(char *y, int64_t step, mc_dtype d, U *key, int64_t n)
{
    const mc_dtype work = JOIN(work_, W)(d);
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t m = MC_MIN(n - at, (int64_t)CHUNK);
        U *k = key + at;
        for (int64_t i = 0; i < m && work == FLOAT_DTYPE; i++) {
            k[i] ^= ((U)(k[i] >> (W - 1)) - 1) | SIGN;
        }
        for (int64_t i = 0; i < m && work == INT_DTYPE; i++) {
            k[i] ^= SIGN;
        }
        mc_convert(d, y + at * step, step, work, k, sizeof *k, m);
    }
}
#undef SIGN
