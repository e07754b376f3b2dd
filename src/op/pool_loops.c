/* pool_loops.c: the reference loops of pooling, window by window and cell by cell.
 *
 * Invariant: cells are visited in scan order. Sums are float64 (int64 for integers) and are rounded once. */
#include "op/pool.h"

/* The pooled axes at one point of the other axes; offsets are bytes from there. */
struct plane {
    const struct mc_pool_shape *s;
    mc_dtype d;
    char *x, *y, *key;
    int64_t xs[3], ys[3], ks[3]; /* strides of the slots */
    double *sums;                /* SPREAD: (in), the sums that become dx */
};
struct window { int64_t first[3], lo[3], hi[3], cells, count; }; /* cells: unclipped */

static struct window window_at(const struct mc_pool_shape *s, const int64_t u[3])
{
    struct window w = { .cells = 1, .count = 1 };
    for (int i = 0; i < 3; i++) {
        w.first[i] = u[i] * s->stride[i] - s->pad[i];
        w.lo[i] = MC_MAX(w.first[i], 0);
        w.hi[i] = MC_MIN(w.first[i] + s->w[i], s->in[i]);
        w.cells *= s->w[i];
        w.count *= w.hi[i] - w.lo[i];
    }
    return w;
}

#define EACH_CELL(w, a, b, c)                                                                      \
    for (int64_t a = (w)->lo[0]; a < (w)->hi[0]; a++)                                              \
        for (int64_t b = (w)->lo[1]; b < (w)->hi[1]; b++)                                          \
            for (int64_t c = (w)->lo[2]; c < (w)->hi[2]; c++)

static char *cell(char *base, const int64_t strides[3], int64_t a, int64_t b, int64_t c)
{
    return base + a * strides[0] + b * strides[1] + c * strides[2];
}

/* Is *p larger than the largest so far? A NaN is larger than any number, but not than another NaN. */
static bool is_more(mc_dtype d, const void *p, const void *most)
{
    if (mc_is_float(d)) {
        double v = mc_load_f64(d, p), m = mc_load_f64(d, most);
        return m == m && !(v <= m);
    }
    int64_t v = mc_load_i64(d, p), m = mc_load_i64(d, most);
    return mc_dtypes[d].cls == CLASS_U64 ? (uint64_t)v > (uint64_t)m : v > m;
}

static bool is_equal(mc_dtype d, const void *p, const void *q)
{
    double v = mc_load_f64(d, p), m = mc_load_f64(d, q);
    return mc_is_float(d) ? v >= m && v <= m : mc_load_i64(d, p) == mc_load_i64(d, q);
}

/* The number of a cell in the unclipped window. */
static int64_t number_of(const struct plane *p, const struct window *w, int64_t a, int64_t b, int64_t c)
{
    return ((a - w->first[0]) * p->s->w[1] + b - w->first[1]) * p->s->w[2] + c - w->first[2];
}

/* The first maximum of a window, and its number in the unclipped window. */
static const char *largest(const struct plane *p, const struct window *w, char *from,
                           const int64_t strides[3], int64_t *at)
{
    const char *most = NULL;
    EACH_CELL(w, a, b, c)
    {
        const char *v = cell(from, strides, a, b, c);
        if (!most || is_more(p->d, v, most)) {
            most = v;
            *at = number_of(p, w, a, b, c);
        }
    }
    return most;
}

static double share(const struct mc_pool_shape *s, const struct window *w)
{
    return s->mode == POOL_AVERAGE_INC && s->whole                      ? (double)w->cells
           : s->mode == POOL_AVERAGE_INC || s->mode == POOL_AVERAGE_EXC ? (double)w->count
                                                                        : 1;
}

/* Bit i: cell i equals the maximum. */
static int64_t equal_cells(const struct plane *p, const struct window *w, const char *most)
{
    int64_t bits = 0;
    EACH_CELL(w, a, b, c)
    {
        bits |= (int64_t)is_equal(p->d, cell(p->x, p->xs, a, b, c), most)
                << (number_of(p, w, a, b, c) & (POOL_BITS - 1));
    }
    return bits;
}

static void forward(const struct plane *p, const struct window *w, char *y, char *key)
{
    double sum = 0;
    int64_t whole = 0, at = 0;
    if (p->s->mode == POOL_MAX) {
        memcpy(y, largest(p, w, p->x, p->xs, &at), mc_dtypes[p->d].size);
        if (key) {
            mc_store_i64(p->s->mark, key, p->s->key == POOL_KEY_BITS ? equal_cells(p, w, y) : at);
        }
        return;
    }
    EACH_CELL(w, a, b, c)
    {
        const char *v = cell(p->x, p->xs, a, b, c);
        sum += mc_is_float(p->d) ? mc_load_f64(p->d, v) : 0;
        whole += mc_is_float(p->d) ? 0 : mc_load_i64(p->d, v);
    }
    if (mc_is_float(p->d)) {
        mc_store_f64(p->d, y, sum / share(p->s, w));
    } else {
        mc_store_i64(p->d, y, whole / (int64_t)share(p->s, w));
    }
}

/* The cell that a mark names. A mark that is no cell of the window names the first cell of the window. */
static void find_mark(const struct plane *p, const struct window *w, const char *key, int64_t at[3])
{
    int64_t mark = mc_load_i64(p->s->mark, key);
    at[2] = w->first[2] + mark % p->s->w[2];
    at[1] = w->first[1] + mark / p->s->w[2] % p->s->w[1];
    at[0] = w->first[0] + mark / p->s->w[2] / p->s->w[1];
    for (int i = 0; i < 3; i++) {
        at[i] = at[i] < w->lo[i] || at[i] >= w->hi[i] ? w->lo[i] : at[i];
    }
}

static void scatter(const struct plane *p, const struct window *w, const char *y, const char *key)
{
    const int64_t *n = p->s->in;
    const double g = mc_load_f64(p->d, y);
    int64_t at[3], number;
    if (p->s->key == POOL_KEY_MARKS) {
        find_mark(p, w, key, at);
        p->sums[(at[0] * n[1] + at[1]) * n[2] + at[2]] += g;
        return;
    }
    const char *most = p->s->key == POOL_KEY_X ? largest(p, w, p->key, p->ks, &number) : NULL;
    const int64_t bits = p->s->key == POOL_KEY_BITS ? mc_load_i64(p->s->mark, key) : -1;
    EACH_CELL(w, a, b, c)
    {
        if (bits >= 0 ? bits >> (number_of(p, w, a, b, c) & (POOL_BITS - 1)) & 1
                      : !most || is_equal(p->d, cell(p->key, p->ks, a, b, c), most)) {
            p->sums[(a * n[1] + b) * n[2] + c] += g / share(p->s, w);
        }
    }
}

static void gather(const struct plane *p, const struct window *w, char *y, const char *key)
{
    int64_t at[3], number;
    double sum = 0;
    if (p->s->key == POOL_KEY_MARKS) {
        find_mark(p, w, key, at);
        memcpy(y, cell(p->x, p->xs, at[0], at[1], at[2]), mc_dtypes[p->d].size);
        return;
    }
    const char *most = largest(p, w, p->key, p->ks, &number);
    EACH_CELL(w, a, b, c)
    {
        sum += is_equal(p->d, cell(p->key, p->ks, a, b, c), most)
                   ? mc_load_f64(p->d, cell(p->x, p->xs, a, b, c))
                   : 0;
    }
    mc_store_f64(p->d, y, sum);
}

static void store_sums(const struct plane *p)
{
    const double *from = p->sums;
    const int64_t *n = p->s->in;
    for (int64_t a = 0; a < n[0]; a++) {
        for (int64_t b = 0; b < n[1]; b++, from += n[2]) {
            mc_convert(p->d, cell(p->x, p->xs, a, b, 0), p->xs[2], MC_FLOAT64, from, sizeof *from, n[2]);
        }
    }
}

static void each_window(const struct plane *p)
{
    const struct mc_pool_shape *s = p->s;
    int64_t u[3];
    if (p->sums) {
        memset(p->sums, 0, (size_t)(s->in[0] * s->in[1] * s->in[2]) * sizeof *p->sums);
    }
    for (u[0] = 0; u[0] < s->out[0]; u[0]++) {
        for (u[1] = 0; u[1] < s->out[1]; u[1]++) {
            for (u[2] = 0; u[2] < s->out[2]; u[2]++) {
                const struct window w = window_at(s, u);
                char *y = cell(p->y, p->ys, u[0], u[1], u[2]);
                char *key = p->key && mc_pool_key_like_y(s) ? cell(p->key, p->ks, u[0], u[1], u[2]) : NULL;
                if (s->pass == POOL_FORWARD) {
                    forward(p, &w, y, key);
                } else if (s->pass == POOL_SPREAD) {
                    scatter(p, &w, y, key);
                } else {
                    gather(p, &w, y, key);
                }
            }
        }
    }
    if (p->sums) {
        store_sums(p);
    }
}

mc_status mc_pool_loops(const struct mc_pool_shape *s, const struct mc_pool_arrays *a)
{
    struct plane p = { .s = s, .d = a->dtype };
    int64_t dims[MC_MAX_RANK], strides[POOL_NARRAY][MC_MAX_RANK], *const own[] = { p.xs, p.ys, p.ks };
    int rank = 0;
    for (int i = 0; i < s->rank; i++) {
        bool pooled = i == s->axis[0] || i == s->axis[1] || i == s->axis[2];
        for (int r = 0; r < POOL_NARRAY && !pooled; r++) {
            strides[r][rank] = a->at[r] && a->strides[r] ? a->strides[r][i] : 0;
        }
        dims[rank] = s->dims[i];
        rank += !pooled;
    }
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < POOL_NARRAY; r++) {
            own[r][i] = s->axis[i] >= 0 && a->at[r] && a->strides[r] ? a->strides[r][s->axis[i]] : 0;
        }
    }
    struct mc_walk w;
    if (!mc_walk_begin(&w, rank, dims, 0, POOL_NARRAY, a->at,
                       (const int64_t *[]){ strides[POOL_X], strides[POOL_Y], strides[POOL_KEY] })) {
        return MC_OK;
    }
    if (s->pass == POOL_SPREAD) {
        int64_t cells = mc_dims_count(3, s->in);
        p.sums = cells < 0 ? NULL : mc_alloc((size_t)cells * sizeof *p.sums + 1, "pool");
        if (!p.sums) {
            return MC_EMEMORY;
        }
    }
    do {
        p.x = w.p[POOL_X];
        p.y = w.p[POOL_Y];
        p.key = a->at[POOL_KEY] ? w.p[POOL_KEY] : NULL;
        each_window(&p);
    } while (mc_walk_next(&w));
    mc_free(p.sums);
    return MC_OK;
}
