/* kernel_body.h: the loops of kernel.h over the registers that the including file defines:
 *
 *   TARGET, NAME(x), T, V, I, M, L     function attribute; name of a function; element; vectors of L
 *                                      elements, of L integers, of L comparison results
 *   LOAD STORE SET1 ADD MUL            on V
 *   BEATS(v, m)                        true if v is larger than m, or v is NaN and m is not
 *   EQUAL(v, m)                        M: equal, and neither is NaN
 *   PICK(k, a, b) PICKI(k, a, b)       a where k is true, else b
 *   SETI STORE8 STORE32 LOAD8 LOAD32   I: broadcast; converted to and from uint8 and int32; I has | and &
 *   IS(i, j)                           M: equal integers
 *   EVEN(p)                            p[0], p[2], ... p[2 L - 2], without reading beyond
 *   BOTH(p, a, b)                      p[2 i] = a[i], p[2 i + 1] = b[i]
 *
 *   BITS                               optional: 1 if there are bits (kernel.h), and put knows them
 *   ONE_FORM                           optional: max and sum have one loop for all windows
 *   MAX_BLOCK TIES_BLOCK               optional: functions of kernel.h, and PUT_BLOCK
 *
 * If the last windows do not fill a vector, some windows before them are computed again with them. With fewer
 * windows than a vector they are done one by one. Kernels that add to memory take each window once. */
#ifndef FUSED
#define FUSED static inline TARGET __attribute__((always_inline))
#endif

#define LOADS(p, s) ((s) == 2 ? EVEN(p) : LOAD(p))
#define XROW(r, i, k) ((T *)(void *)((r)->x[i] + (k) * (r)->x_band))
#define KROW(r, i, b) ((const T *)(const void *)((r)->k[i] + (b) * (r)->k_band))
#define YROW(r, k) ((T *)(void *)((char *)(r)->y + (k) * (r)->y_band))
#define KEYS(r, k) ((r)->key ? (char *)(r)->key + (k) * (r)->key_band : NULL)

FUSED void NAME(max_at)(const struct mc_pool_row *r, int64_t band, int64_t j, int w, int s, bool marks)
{
    T *y = YROW(r, band) + j;
    char *key = KEYS(r, band);
    V best;
    I at = SETI(0);
    int from = 0;
    if (r->more) {
        best = LOAD(y);
        at = !marks ? at : r->wide ? LOAD32((int32_t *)(void *)key + j) : LOAD8((uint8_t *)key + j);
    } else {
        best = LOADS(XROW(r, 0, band) + j * s, s);
        at = SETI(r->mark[0]);
        from = 1;
    }
    for (int i = 0; i < r->nrow; i++) {
        const T *x = XROW(r, i, band) + j * s;
        for (int b = from; b < w; b++) {
            const V v = LOADS(x + b, s);
            const M k = BEATS(v, best);
            best = PICK(k, v, best);
            if (marks) {
                at = PICKI(k, SETI(r->mark[i] + b), at);
            }
        }
        from = 0;
    }
    STORE(y, best);
    if (marks && r->wide) {
        STORE32((int32_t *)(void *)key + j, at);
    } else if (marks) {
        STORE8((uint8_t *)key + j, at);
    }
}

FUSED void NAME(max_row)(const struct mc_pool_row *r, int w, int s, bool marks)
{
    for (int64_t band = 0; band < r->bands; band++) {
        int64_t j = 0;
        for (; j + L <= r->n; j += L) {
            NAME(max_at)(r, band, j, w, s, marks);
        }
        if (j < r->n && r->n >= L) {
            /* repeating a maximum with its own result changes nothing */
            NAME(max_at)(r, band, r->n - L, w, s, marks);
        } else if (j < r->n) {
            mc_pool_max_slow(r, band, j, sizeof(T) == 8);
        }
    }
}

#ifndef BITS
#define BITS 0
#endif
#if BITS && !defined(MC_RUNTIME)
static TARGET void NAME(bits)(const struct mc_pool_row *r)
{
    const int s = (int)r->s;
    if (r->n < L || s > 2) {
        mc_pool_bits_slow(r);
        return;
    }
    for (int64_t band = 0; band < r->bands; band++) {
        for (int64_t j = 0; j < r->n; j += L) {
            const int64_t k = MC_MIN(j, r->n - L);
            const V best = LOAD(YROW(r, band) + k);
            I at = SETI(0);
            for (int i = 0; i < r->nrow * r->w; i++) {
                const T *x = XROW(r, i / r->w, band) + k * s + i % r->w;
                at = PICKI(EQUAL(LOADS(x, s), best), at | SETI(1 << (r->mark[i / r->w] + i % r->w)), at);
            }
            STORE8((uint8_t *)KEYS(r, band) + k, at);
        }
    }
}
#define BITS_OF NAME(bits)
#else
#define BITS_OF NULL
#endif

static TARGET void NAME(max)(const struct mc_pool_row *r)
{
    const bool marks = r->key != NULL && !r->bits;
#ifdef ONE_FORM
    if (r->s == 1 || r->s == 2) {
        NAME(max_row)(r, r->w, (int)r->s, marks);
#else
    if (r->s == 2 && r->w == 2) {
        marks ? NAME(max_row)(r, 2, 2, true) : NAME(max_row)(r, 2, 2, false);
    } else if (r->s == 2 && r->w == 3) {
        marks ? NAME(max_row)(r, 3, 2, true) : NAME(max_row)(r, 3, 2, false);
    } else if (r->s == 2) {
        NAME(max_row)(r, r->w, 2, marks);
    } else if (r->s == 1) {
        marks ? NAME(max_row)(r, r->w, 1, true) : NAME(max_row)(r, r->w, 1, false);
#endif
    } else {
        for (int64_t band = 0; band < r->bands; band++) {
            mc_pool_max_slow(r, band, 0, sizeof(T) == 8);
        }
    }
}

FUSED void NAME(sum_at)(const struct mc_pool_row *r, int64_t band, int64_t j, int w, int s)
{
    V sum = r->more ? LOAD(YROW(r, band) + j) : SET1(0);
    for (int i = 0; i < r->nrow; i++) {
        for (int b = 0; b < w; b++) {
            const V v = LOADS(XROW(r, i, band) + j * s + b, s);
            sum = ADD(sum, v);
        }
    }
    STORE(YROW(r, band) + j, MUL(sum, SET1((T)r->scale)));
}

FUSED void NAME(sum_row)(const struct mc_pool_row *r, int w, int s)
{
    for (int64_t band = 0; band < r->bands; band++) {
        int64_t j = 0;
        for (; j + L <= r->n; j += L) {
            NAME(sum_at)(r, band, j, w, s);
        }
        if (j < r->n && r->n >= L && !r->more) {
            NAME(sum_at)(r, band, r->n - L, w, s);
        } else if (j < r->n) {
            mc_pool_sum_slow(r, band, j, sizeof(T) == 8);
        }
    }
}

static TARGET void NAME(sum)(const struct mc_pool_row *r)
{
#ifdef ONE_FORM
    if (r->s == 1 || r->s == 2) {
        NAME(sum_row)(r, r->w, (int)r->s);
#else
    if (r->s == 2 && r->w == 2) {
        NAME(sum_row)(r, 2, 2);
    } else if (r->s == 2) {
        NAME(sum_row)(r, r->w, 2);
    } else if (r->s == 1 && r->w == 3) {
        NAME(sum_row)(r, 3, 1);
    } else if (r->s == 1) {
        NAME(sum_row)(r, r->w, 1);
#endif
    } else {
        for (int64_t band = 0; band < r->bands; band++) {
            mc_pool_sum_slow(r, band, 0, sizeof(T) == 8);
        }
    }
}

static TARGET void NAME(put)(const struct mc_pool_row *r)
{
    const V zero = SET1(0);
    for (int64_t band = 0; band < r->bands; band++) {
        const uint8_t *key = (const uint8_t *)KEYS(r, band);
        const T *y = YROW(r, band);
        int64_t j = 0;
        for (bool last = false; j < r->n && r->n >= L && !last; j += L) {
            last = j + L > r->n;
            j = last ? r->n - L : j;
            const V g = LOAD(y + j);
            const I k = LOAD8(key + j);
            for (int i = 0; i < r->nrow; i++) {
                const bool bits = BITS && r->bits;
                const I first = SETI(bits ? 1 << r->mark[i] : r->mark[i]),
                        next = SETI(bits ? 2 << r->mark[i] : r->mark[i] + 1);
                I a = k, b = k;
                if (bits) {
                    a = k & first;
                    b = k & next;
                }
                BOTH(XROW(r, i, band) + 2 * j, PICK(IS(a, first), g, zero), PICK(IS(b, next), g, zero));
            }
        }
        for (; j < r->n; j++) {
            for (int i = 0; i < r->nrow; i++) {
                T *x = XROW(r, i, band) + 2 * j;
                const bool bits = BITS && r->bits;
                x[0] = (bits ? key[j] >> r->mark[i] & 1 : key[j] == r->mark[i]) ? y[j] : 0;
                x[1] = (bits ? key[j] >> r->mark[i] & 2 : key[j] == r->mark[i] + 1) ? y[j] : 0;
            }
        }
    }
}

FUSED void NAME(ties_at)(const struct mc_pool_row *r, int64_t band, int64_t j)
{
    const V zero = SET1(0), g = LOAD(YROW(r, band) + j);
    V best = EVEN(KROW(r, 0, band) + 2 * j);
    for (int i = 0; i < 2 * r->nrow; i++) {
        const V v = EVEN(KROW(r, i / 2, band) + 2 * j + i % 2);
        best = PICK(BEATS(v, best), v, best);
    }
    for (int i = 0; i < r->nrow; i++) {
        const T *k = KROW(r, i, band) + 2 * j;
        BOTH(XROW(r, i, band) + 2 * j, PICK(EQUAL(EVEN(k), best), g, zero),
             PICK(EQUAL(EVEN(k + 1), best), g, zero));
    }
}

static TARGET void NAME(ties)(const struct mc_pool_row *r)
{
    for (int64_t band = 0; band < r->bands; band++) {
        for (int64_t j = 0; j < r->n && r->n >= L; j += L) {
            NAME(ties_at)(r, band, MC_MIN(j, r->n - L));
        }
        for (int64_t j = r->n >= L ? r->n : 0; j < r->n; j++) {
            T best = KROW(r, 0, band)[2 * j];
            for (int i = 0; i < 2 * r->nrow; i++) {
                const T v = KROW(r, i / 2, band)[2 * j + i % 2];
                best = !(v <= best) && best == best ? v : best;
            }
            for (int i = 0; i < 2 * r->nrow; i++) {
                const T v = KROW(r, i / 2, band)[2 * j + i % 2];
                XROW(r, i / 2, band)[2 * j + i % 2] = v == best ? YROW(r, band)[j] : 0;
            }
        }
    }
}

static TARGET void NAME(send)(const struct mc_pool_row *r)
{
    const V zero = SET1(0);
    const T *y = r->y;
    for (int i = 0; i < r->nrow; i++) {
        T *x = (T *)(void *)r->x[i];
        const I mark = SETI(r->mark[i]);
        int64_t j = 0;
        for (; j + L <= r->n; j += L) {
            const I k = r->wide ? LOAD32((const int32_t *)r->key + j) : LOAD8((const uint8_t *)r->key + j);
            STORE(x + j, ADD(LOAD(x + j), PICK(IS(k, mark), LOAD(y + j), zero)));
        }
        for (; j < r->n; j++) {
            const int32_t k = r->wide ? ((const int32_t *)r->key)[j] : ((const uint8_t *)r->key)[j];
            x[j] += k == r->mark[i] ? y[j] : 0;
        }
    }
}

static TARGET void NAME(share)(const struct mc_pool_row *r)
{
    const T *y = r->y;
    const T scale = (T)r->scale;
    for (int i = 0; i < r->nrow; i++) {
        T *x = (T *)(void *)r->x[i];
        int64_t j = 0;
        for (; j + L <= r->n; j += L) {
            STORE(x + j, ADD(LOAD(x + j), MUL(LOAD(y + j), SET1(scale))));
        }
        for (; j < r->n; j++) {
            x[j] += y[j] * scale;
        }
    }
}

static const struct mc_pool_kernel NAME(kernel) = {
    .name = ISA, .lanes = L, .max = NAME(max), .bits = BITS_OF, .sum = NAME(sum), .put = NAME(put), .ties = NAME(ties),
    .send = NAME(send), .share = NAME(share),
#ifdef MAX_BLOCK
    .max_block = MAX_BLOCK, .ties_block = TIES_BLOCK, .put_block = PUT_BLOCK,
#endif
};
#undef LOADS
#undef BITS
#undef BITS_OF
#undef XROW
#undef KROW
#undef YROW
#undef KEYS
#undef NAME
#undef T
#undef V
#undef I
#undef M
#undef L
#undef LOAD
#undef STORE
#undef SET1
#undef ADD
#undef MUL
#undef BEATS
#undef EQUAL
#undef PICK
#undef PICKI
#undef SETI
#undef STORE8
#undef STORE32
#undef LOAD8
#undef LOAD32
#undef IS
#undef EVEN
#undef BOTH
