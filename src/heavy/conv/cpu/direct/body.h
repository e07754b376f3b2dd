/* body.h: the direct sums, compiled for each instruction set by the file that includes it. That file defines
 * TARGET, L (lanes), NV (vectors of a block), EACH(F) for 1 to NV, MATH and ADD for estimates; EACH_TALL(F)
 * for all shapes (rows, vectors) of a tall block, TALL for the two largest, TALL_ROWS and TALL_VECTORS; and
 * OWN_ADD_ROWS if it has an add_rows of its own; and
 * EVENS, LOW and HIGH, orders of the elements of two vectors: every second one of 2 * L - 1, the last L of
 * which are the second vector; alternate ones of both, of their lower and upper halves.
 *
 * A block is DIRECT_ROWS rows by NV vectors of sums in registers. Each number of w is multiplied by NV
 * vectors, each vector of x by all rows.
 *
 * Invariant: the sum of a position is added in the order of channels and taps. */
#include "heavy/conv/cpu/lanes.h"

/* Prefetches to the L2 cache, because the L1 cache is full. */
FUSED void prefetch(struct mc_direct_ahead *q)
{
    for (int i = 0; i < q->each && q->rows > 0; i++) {
        __builtin_prefetch(q->row + q->at, 0, 2);
        q->at += 64 / (int64_t)sizeof *q->row;
        if (q->at >= q->n) {
            q->at = 0;
            q->row += q->step;
            q->rows--;
        }
    }
}

FUSED void sum_of(const int rows, const int nv, const struct mc_direct_sum *s)
{
    V acc[DIRECT_ROWS][NV];
    UNROLL(4)
    for (int r = 0; r < rows; r++) {
        UNROLL(8)
        for (int v = 0; v < nv; v++) {
            acc[r][v] = (V){ 0 };
        }
    }
    const float *w = s->w;
    float *const copy = s->copy;
    struct mc_direct_ahead ahead = { 0 };
    if (s->ahead) {
        ahead = *s->ahead;
    }
    for (int64_t k = 0; k < s->channels; k++) {
        const float *x = s->x + k * s->x_step;
        for (int64_t t = 0; t < s->taps; t++, w += DIRECT_ROWS) {
            const float *at = x + s->off[t];
            V b[NV];
            if (ahead.rows > 0) {
                prefetch(&ahead);
            }
            UNROLL(8)
            for (int v = 0; v < nv; v++) {
                b[v] = load(at + v * L);
            }
            if (copy) {         /* there is time for it between the products */
                UNROLL(8)
                for (int v = 0; v < nv; v++) {
                    store(copy + k * s->copy_step + v * L, b[v]);
                }
            }
            UNROLL(4)
            for (int r = 0; r < rows; r++) {
                UNROLL(8)
                for (int v = 0; v < nv; v++) {
                    acc[r][v] += w[r] * b[v];
                }
            }
        }
    }
    if (s->ahead) {
        *s->ahead = ahead;
    }
    UNROLL(4)
    for (int r = 0; r < rows; r++) {
        UNROLL(8)
        for (int v = 0; v < nv; v++) {
            float *to = s->out + r * s->out_step + v * L;
            store(to, s->add ? load(to) + acc[r][v] : acc[r][v]);
        }
    }
}

#ifndef MC_RUNTIME
/* The same with more rows: fewer vectors of x are read.  All rows are summed, `rows` of them are stored. */
FUSED void tall_of(const int block, const int nv, const struct mc_direct_sum *s)
{
    V acc[TALL_ROWS][TALL_VECTORS];
    UNROLL(8)
    for (int r = 0; r < block; r++) {
        UNROLL(4)
        for (int v = 0; v < nv; v++) {
            acc[r][v] = (V){ 0 };
        }
    }
    const float *w = s->w;
    const int64_t far = s->far;
    for (int64_t k = 0; k < s->channels; k++) {
        const float *x = s->x + k * s->x_step;
        for (int64_t t = 0; t < s->taps; t++, w += block) {
            const float *at = x + s->off[t];
            V b[TALL_VECTORS];
            if (far) {
                __builtin_prefetch(w + far, 0, 2);
            }
            UNROLL(4)
            for (int v = 0; v < nv; v++) {
                b[v] = load(at + v * L);
            }
            UNROLL(8)
            for (int r = 0; r < block; r++) {
                UNROLL(4)
                for (int v = 0; v < nv; v++) {
                    acc[r][v] += w[r] * b[v];
                }
            }
        }
    }
    UNROLL(8)
    for (int r = 0; r < block; r++) {
        if (r >= s->rows) {
            return;
        }
        UNROLL(4)
        for (int v = 0; v < nv; v++) {
            float *to = s->out + r * s->out_step + v * L;
            store(to, s->add ? load(to) + acc[r][v] : acc[r][v]);
        }
    }
}
#endif

FUSED void dots_of(const int rows, const int taps, const struct mc_direct_dots *d)
{
    V acc[DIRECT_ROWS][NV];
    UNROLL(4)
    for (int r = 0; r < rows; r++) {
        UNROLL(8)
        for (int t = 0; t < taps; t++) {
            acc[r][t] = (V){ 0 };
        }
    }
    for (int64_t n = 0; n < d->images; n++) {
        const float *x = d->x + n * d->x_image, *y = d->y + n * d->y_image;
        for (int64_t j = 0; j < d->vectors * L; j += L) {
            V a[DIRECT_ROWS];
            UNROLL(4)
            for (int r = 0; r < rows; r++) {
                a[r] = load(y + r * d->y_step + j);
            }
            UNROLL(8)
            for (int t = 0; t < taps; t++) {
                const V b = load(x + d->off[t] + j);
                UNROLL(4)
                for (int r = 0; r < rows; r++) {
                    acc[r][t] += a[r] * b;
                }
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int t = 0; t < taps; t++) {
            float lane[L], *to = d->out + r * d->out_step + t;
            store(lane, acc[r][t]);
            float four[4] = { 0 };
            for (int l = 0; l < L; l += 4) {
                for (int i = 0; i < 4; i++) {
                    four[i] += lane[l + i];
                }
            }
            *to = (four[0] + four[2]) + (four[1] + four[3]);
        }
    }
}

#ifndef OWN_ADD_ROWS
static TARGET void add_rows(float *to, const float *from, int64_t step, const int64_t *off, int64_t taps,
                        int64_t n)
{
    for (int64_t t = 0; t < taps; t++, from += step) {
        int64_t i = 0;
        for (; i + L <= n; i += L) {
            store(to + off[t] + i, load(to + off[t] + i) + load(from + i));
        }
        for (; i < n; i++) {
            to[off[t] + i] += from[i];
        }
    }
}
#endif

#ifdef MC_RUNTIME /* which is small */
#define ROWS    .halve = NULL
#else
/* The last vector of a row overlaps the one before. */
static TARGET void halve(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; n >= L && i < n; i = i + L < n ? MC_MIN(i + L, n - L) : n) {
        store(to + i, __builtin_shufflevector(load(from + 2 * i), load(from + 2 * i + L - 1), EVENS));
    }
    for (; i < n; i++) {
        to[i] = from[2 * i];
    }
}

static TARGET void scale(float *to, const float *from, int64_t n, float alpha)
{
    int64_t i = 0;
    for (; n >= L && i < n; i = i + L < n ? MC_MIN(i + L, n - L) : n) {
        store(to + i, alpha * load(from + i));
    }
    for (; i < n; i++) {
        to[i] = alpha * from[i];
    }
}

static TARGET void weave(float *to, const float *even, const float *odd, int64_t n, float alpha)
{
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        const V a = alpha * load(even + i / 2) + 0, b = alpha * load(odd + i / 2) + 0;
        store(to + i, __builtin_shufflevector(a, b, LOW));
        store(to + i + L, __builtin_shufflevector(a, b, HIGH));
    }
    for (; i < n; i++) {
        to[i] = alpha * (i % 2 ? odd : even)[i / 2] + 0;
    }
}
#define ROWS    .halve = halve, .scale = scale, .weave = weave
#endif

/* One function for each number of rows and vectors, so that the compiler can unroll the loops.  They are
 * selected by `switch`, because a table of functions is relocated when the library is loaded. */
#define ONE(what, rows, n)                                                                                   \
    static TARGET __attribute__((noinline)) void what##rows##_##n(const struct mc_direct_##what *s)          \
    {                                                                                                        \
        what##_of(rows, n, s);                                                                               \
    }
#define BOTH(n)                                                                                              \
    ONE(sum, 1, n) ONE(sum, 2, n) ONE(sum, 3, n) ONE(sum, 4, n)                                              \
    ONE(dots, 1, n) ONE(dots, 2, n) ONE(dots, 3, n) ONE(dots, 4, n)
EACH(BOTH)
#define CALL(what, rows, n) case DIRECT_ROWS * n + rows: what##rows##_##n(s); break;
#define SUMS(n) CALL(sum, 1, n) CALL(sum, 2, n) CALL(sum, 3, n) CALL(sum, 4, n)
#define DOTS(n) CALL(dots, 1, n) CALL(dots, 2, n) CALL(dots, 3, n) CALL(dots, 4, n)

static void sum(const struct mc_direct_sum *s, int vectors)
{
    switch (DIRECT_ROWS * vectors + s->rows) {
        EACH(SUMS)
    default: break;
    }
}

static void dots(const struct mc_direct_dots *s)
{
    switch (DIRECT_ROWS * s->taps + s->rows) {
        EACH(DOTS)
    default: break;
    }
}

#ifndef MC_RUNTIME
#define TALL_ONE(rows, n)                                                                                    \
    static TARGET __attribute__((noinline)) void tall##rows##_##n(const struct mc_direct_sum *s)             \
    {                                                                                                        \
        tall_of(rows, n, s);                                                                                 \
    }
EACH_TALL(TALL_ONE)
#define TALL_CALL(rows, n) case 8 * rows + n: tall##rows##_##n(s); break;

static void sum_tall(const struct mc_direct_sum *s, int block, int vectors)
{
    (void)s;
    switch (8 * block + vectors) {
        EACH_TALL(TALL_CALL)
    default: break;
    }
}
#define SUM_TALL sum_tall
#else
#define SUM_TALL NULL
#endif

static const struct mc_direct_kernel kernel = { .lanes = L, .most = NV, .math = MATH, .add = ADD,
                                                .sum = sum, .dots = dots, .add_rows = add_rows,
                                                .tall = TALL, .sum_tall = SUM_TALL, ROWS };
