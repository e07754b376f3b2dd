/* gather.c: the matrix whose columns are windows of x: a row for each channel and tap, a column for each
 * position.
 *
 * Taps are in the order of w, flip included, so that a filter is a row of the other matrix without a copy.
 * Positions are cut once into pieces of rows of y; every tap loops over the pieces.
 *
 * Invariant: elements outside of x are gathered as zero, and dropped when columns are added. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/solver.h"

enum { PIECES = 64 };           /* most pieces at a time */

/* Positions [u, u + n) of a row of y. */
struct piece {
    int64_t i0, i1;             /* indices in x of the row that tap 0 reads */
    int64_t at;                 /* offset in x of tap 0 for the first position */
    int64_t u, n, column;
};
struct tap {
    int64_t i0, i1, at;         /* distance from tap 0 */
    int64_t lo, hi;             /* positions whose last index is inside of x */
};

/* Cuts at most n positions from u on into pieces; returns how many positions it took. */
static int64_t split_pieces(const struct mc_conv_problem *p, int64_t u, int64_t n, int64_t column,
                            struct piece *t, int *pieces)
{
    const struct mc_conv_shape *s = &p->s;
    int64_t u0 = u / (s->out[1] * s->out[2]), u1 = u / s->out[2] % s->out[1], u2 = u % s->out[2], done = 0;
    for (*pieces = 0; *pieces < PIECES && done < n; ++*pieces) {
        struct piece *now = &t[*pieces];
        *now = (struct piece){ .i0 = conv_at(s, 0, u0, 0),
                               .i1 = conv_at(s, 1, u1, 0),
                               .u = u2,
                               .n = MC_MIN(s->out[2] - u2, n - done),
                               .column = column + done };
        now->at = now->i0 * p->at.x[2] + now->i1 * p->at.x[3] + conv_at(s, 2, u2, 0) * p->at.x[4];
        done += now->n;
        u2 = 0;
        u0 += u1 + 1 == s->out[1];
        u1 = u1 + 1 == s->out[1] ? 0 : u1 + 1;
    }
    return done;
}

static struct tap tap_of(const struct mc_conv_problem *p, const int64_t k[3])
{
    const struct mc_conv_shape *s = &p->s;
    int64_t a[3];
    for (int i = 0; i < 3; i++) {
        a[i] = conv_tap(s, i, k[i]); /* conv_tap is its own inverse */
    }
    struct tap t = { .i0 = a[0] * s->dilation[0], .i1 = a[1] * s->dilation[1] };
    t.at = t.i0 * p->at.x[2] + t.i1 * p->at.x[3] + a[2] * s->dilation[2] * p->at.x[4];
    mc_conv_range(s, 2, a[2], &t.lo, &t.hi);
    return t;
}

/* The positions [*lo, *hi) of the piece that read inside of x. */
static inline void inside(const struct mc_conv_shape *s, const struct piece *t, const struct tap *a,
                          int64_t *lo, int64_t *hi)
{
    const bool in = (uint64_t)(t->i0 + a->i0) < (uint64_t)s->in[0] &&
                    (uint64_t)(t->i1 + a->i1) < (uint64_t)s->in[1];
    *lo = MC_MIN(MC_MAX(a->lo - t->u, (int64_t)0), t->n);
    *hi = in ? MC_MAX(MC_MIN(a->hi - t->u, t->n), *lo) : *lo;
}

#define COLUMNS(type)                                                                                        \
    static void gather_##type(const struct mc_conv_problem *p, const struct piece *t, int pieces,            \
                              const struct tap *a, const type *x, type *restrict row)                        \
    {                                                                                                        \
        const int64_t step = p->s.stride[2] * p->at.x[4];                                                    \
        for (const struct piece *end = t + pieces; t < end; t++) {                                           \
            int64_t lo, hi;                                                                                  \
            inside(&p->s, t, a, &lo, &hi);                                                                   \
            const type *from = x + (lo < hi ? t->at + a->at : 0);                                            \
            type *to = row + t->column;                                                                      \
            for (int64_t i = 0; i < lo; i++) {                                                               \
                to[i] = 0;                                                                                   \
            }                                                                                                \
            if (step == 1) {                                                                                 \
                for (int64_t i = lo; i < hi; i++) {                                                          \
                    to[i] = from[i];                                                                         \
                }                                                                                            \
            } else if (step == 2) {                                                                          \
                for (int64_t i = lo; i < hi; i++) {                                                          \
                    to[i] = from[2 * i];                                                                     \
                }                                                                                            \
            } else {                                                                                         \
                for (int64_t i = lo; i < hi; i++) {                                                          \
                    to[i] = from[i * step];                                                                  \
                }                                                                                            \
            }                                                                                                \
            for (int64_t i = hi; i < t->n; i++) {                                                            \
                to[i] = 0;                                                                                   \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void add_##type(const struct mc_conv_problem *p, const struct piece *t, int pieces,               \
                           const struct tap *a, type *x, const type *restrict row)                           \
    {                                                                                                        \
        const int64_t step = p->s.stride[2] * p->at.x[4];                                                    \
        for (const struct piece *end = t + pieces; t < end; t++) {                                           \
            int64_t lo, hi;                                                                                  \
            inside(&p->s, t, a, &lo, &hi);                                                                   \
            type *to = x + (lo < hi ? t->at + a->at : 0);                                                    \
            const type *from = row + t->column;                                                              \
            if (step == 1) {                                                                                 \
                for (int64_t i = lo; i < hi; i++) {                                                          \
                    to[i] += from[i];                                                                        \
                }                                                                                            \
            } else {                                                                                         \
                for (int64_t i = lo; i < hi; i++) {                                                          \
                    to[i * step] += from[i];                                                                 \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

COLUMNS(float)
COLUMNS(double)

static void next_tap(const struct mc_conv_shape *s, int64_t k[3])
{
    for (int i = 2; i >= 0 && ++k[i] == s->k[i]; i--) {
        k[i] = 0;
    }
}

/* Gathers, or adds back, some pieces of every row of the matrix. */
static void rows(const struct mc_conv_problem *p, char *x, int64_t channels, const struct piece *t,
                 int pieces, int64_t n, char *columns, bool back)
{
    const int64_t taps = conv_volume(p->s.k), size = mc_dtypes[p->dtype].size;
    int64_t k[3] = { 0 };
    for (int64_t row = 0; row < channels * taps; row++) {
        const struct tap a = tap_of(p, k);
        char *from = x + row / taps * p->at.x[1] * size, *to = columns + row * n * size;
        if (p->dtype == MC_FLOAT64) {
            back ? add_double(p, t, pieces, &a, (double *)(void *)from, (double *)(void *)to)
                 : gather_double(p, t, pieces, &a, (double *)(void *)from, (double *)(void *)to);
        } else {
            back ? add_float(p, t, pieces, &a, (float *)(void *)from, (float *)(void *)to)
                 : gather_float(p, t, pieces, &a, (float *)(void *)from, (float *)(void *)to);
        }
        next_tap(&p->s, k);
    }
}

static void all_rows(const struct mc_conv_problem *p, char *x, int64_t channels, int64_t u, int64_t n,
                     char *columns, bool back)
{
    struct piece t[PIECES];
    int pieces;
    for (int64_t done = 0; done < n;) {
        const int64_t more = split_pieces(p, u + done, n - done, done, t, &pieces);
        rows(p, x, channels, t, pieces, n, columns, back);
        done += more;
    }
}

void mc_conv_gather(const struct mc_conv_problem *p, const char *x, int64_t channels, int64_t u, int64_t n,
                    void *columns)
{
    all_rows(p, (char *)x, channels, u, n, columns, false);
}

void mc_conv_scatter(const struct mc_conv_problem *p, char *x, int64_t channels, int64_t u, int64_t n,
                     const void *columns)
{
    all_rows(p, x, channels, u, n, (char *)columns, true);
}
