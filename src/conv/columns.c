/* columns.c: the matrix whose columns are windows of x: a row for each channel and tap, a column for each place.
 *
 * Taps stand in w's order, so that a filter is a row of the other matrix as it lies; a flip is in that order.
 *
 * Invariant: what lies outside of x is zero when windows are gathered, and dropped when they are added. */
#include "conv/solver.h"

/* Places [u, u + n) in a row of y, and the part [lo, hi) of them at which the tap is inside of x. */
struct piece {
    int64_t n, lo, hi;
    int64_t at;             /* in x, of place lo */
    int64_t step;           /* in x, from place to place */
};

struct walk {
    const struct mc_conv_problem *p;
    int64_t a[3];           /* the tap */
    int64_t lo, hi;         /* of the last axis */
    int64_t u[3], left;     /* the next place, and how many */
};

static bool next_piece(struct walk *w, struct piece *t)
{
    const struct mc_conv_shape *s = &w->p->s;
    const int64_t *stride = w->p->at.x;
    if (w->left == 0) {
        return false;
    }
    t->n = MC_MIN(s->out[2] - w->u[2], w->left);
    const int64_t i0 = conv_at(s, 0, w->u[0], w->a[0]), i1 = conv_at(s, 1, w->u[1], w->a[1]);
    const bool in = i0 >= 0 && i0 < s->in[0] && i1 >= 0 && i1 < s->in[1];
    const int64_t lo = MC_MIN(MC_MAX(w->lo, w->u[2]), w->u[2] + t->n), hi = in ? MC_MIN(w->hi, w->u[2] + t->n) : lo;
    t->lo = lo - w->u[2];
    t->hi = MC_MAX(hi - w->u[2], t->lo);
    t->at = i0 * stride[2] + i1 * stride[3] + conv_at(s, 2, lo, w->a[2]) * stride[4];
    w->left -= t->n;
    w->u[2] += t->n;
    for (int i = 2; i > 0 && w->u[i] == s->out[i]; i--) {
        w->u[i] = 0;
        w->u[i - 1]++;
    }
    return true;
}

/* The first tap of w, at place u. */
static struct walk begin(const struct mc_conv_shape *s, int64_t u)
{
    return (struct walk){ .u = { u / (s->out[1] * s->out[2]), u / s->out[2] % s->out[1], u % s->out[2] } };
}

/* The same at tap k of w, for n places. */
static struct walk at_tap(const struct mc_conv_problem *p, const struct walk *first, const int64_t k[3], int64_t n)
{
    struct walk w = *first;
    w.p = p;
    w.left = n;
    for (int i = 0; i < 3; i++) {
        w.a[i] = conv_tap(&p->s, i, k[i]); /* its own inverse */
    }
    mc_conv_range(&p->s, 2, w.a[2], &w.lo, &w.hi);
    return w;
}

#define COLUMNS(type)                                                                                                   \
    static void gather_##type(struct walk *w, const type *x, type *restrict to)                                     \
    {                                                                                                                   \
        const int64_t step = w->p->s.stride[2] * w->p->at.x[4];                                                         \
        struct piece t;                                                                                                 \
        while (next_piece(w, &t)) {                                                                                    \
            const type *from = x + t.at - t.lo * step;                                                                  \
            for (int64_t i = 0; i < t.lo; i++) {                                                                        \
                to[i] = 0;                                                                                              \
            }                                                                                                           \
            if (step == 1) {                                                                                            \
                for (int64_t i = t.lo; i < t.hi; i++) {                                                                 \
                    to[i] = from[i];                                                                                    \
                }                                                                                                       \
            } else {                                                                                                    \
                for (int64_t i = t.lo; i < t.hi; i++) {                                                                 \
                    to[i] = from[i * step];                                                                             \
                }                                                                                                       \
            }                                                                                                           \
            for (int64_t i = t.hi; i < t.n; i++) {                                                                      \
                to[i] = 0;                                                                                              \
            }                                                                                                           \
            to += t.n;                                                                                                  \
        }                                                                                                               \
    }                                                                                                                   \
    static void add_##type(struct walk *w, type *x, const type *restrict from)                                      \
    {                                                                                                                   \
        const int64_t step = w->p->s.stride[2] * w->p->at.x[4];                                                         \
        struct piece t;                                                                                                 \
        while (next_piece(w, &t)) {                                                                                    \
            type *to = x + t.at - t.lo * step;                                                                          \
            if (step == 1) {                                                                                            \
                for (int64_t i = t.lo; i < t.hi; i++) {                                                                 \
                    to[i] += from[i];                                                                                   \
                }                                                                                                       \
            } else {                                                                                                    \
                for (int64_t i = t.lo; i < t.hi; i++) {                                                                 \
                    to[i * step] += from[i];                                                                            \
                }                                                                                                       \
            }                                                                                                           \
            from += t.n;                                                                                                \
        }                                                                                                               \
    }

COLUMNS(float)
COLUMNS(double)

static void next_tap(const struct mc_conv_shape *s, int64_t k[3])
{
    for (int i = 2; i >= 0 && ++k[i] == s->k[i]; i--) {
        k[i] = 0;
    }
}

/* One row of the matrix a tap of a channel: brought here, or added there. */
static void rows(const struct mc_conv_problem *p, char *x, int64_t channels, int64_t u, int64_t n, char *columns, bool back)
{
    const int64_t taps = conv_volume(p->s.k), size = mc_dtypes[p->dtype].size;
    const struct walk first = begin(&p->s, u);
    int64_t k[3] = { 0 };
    for (int64_t row = 0; row < channels * taps; row++) {
        struct walk w = at_tap(p, &first, k, n);
        char *from = x + row / taps * p->at.x[1] * size, *to = columns + row * n * size;
        if (p->dtype == MC_FLOAT64) {
            back ? add_double(&w, (double *)(void *)from, (double *)(void *)to)
                 : gather_double(&w, (double *)(void *)from, (double *)(void *)to);
        } else {
            back ? add_float(&w, (float *)(void *)from, (float *)(void *)to)
                 : gather_float(&w, (float *)(void *)from, (float *)(void *)to);
        }
        next_tap(&p->s, k);
    }
}

void mc_conv_gather(const struct mc_conv_problem *p, const char *x, int64_t channels, int64_t u, int64_t n, void *columns)
{
    rows(p, (char *)x, channels, u, n, columns, false);
}

void mc_conv_scatter(const struct mc_conv_problem *p, char *x, int64_t channels, int64_t u, int64_t n, const void *columns)
{
    rows(p, x, channels, u, n, (char *)columns, true);
}
