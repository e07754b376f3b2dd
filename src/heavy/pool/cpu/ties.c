/* ties.c: gradients of maxima that every equal cell of a window receives, where windows do not overlap and
 * columns are contiguous.
 *
 * Invariant: a window that has a NaN passes nothing on. */
#include "heavy/pool/solver.h"

struct ties {
    struct mc_pool_planes planes;
    struct mc_pool_span whole; /* of pooled axis 2 */
    const struct mc_pool_kernel *kernel;
    struct mc_pool_span rows;  /* of pooled axis 1, where rows of windows are taken together */
    bool covers, quick;        /* each cell is in a window; kernels take the windows along axis 2 */
};

/* Window j: cells [lo, hi) of each row. */
#define WINDOW(T, name)                                                                                       \
    static void window_##name(const struct mc_pool_row *r, int64_t j, int64_t lo, int64_t hi)                 \
    {                                                                                                         \
        T best = ((const T *)(const void *)r->k[0])[lo];                                                      \
        for (int i = 0; i < r->nrow; i++) {                                                                   \
            const T *k = (const T *)(const void *)r->k[i];                                                    \
            for (int64_t a = lo; a < hi; a++) {                                                               \
                best = !(k[a] <= best) && best == best ? k[a] : best;                                         \
            }                                                                                                 \
        }                                                                                                     \
        for (int i = 0; i < r->nrow; i++) {                                                                   \
            const T *k = (const T *)(const void *)r->k[i];                                                    \
            for (int64_t a = lo; a < hi; a++) {                                                               \
                ((T *)(void *)r->x[i])[a] = k[a] == best ? ((const T *)r->y)[j] : 0;                          \
            }                                                                                                 \
        }                                                                                                     \
    }
WINDOW(float, f32)
WINDOW(double, f64)

/* Windows inside the image, of all bands of r; first: cell of the first window. */
static void inside(const struct ties *t, struct mc_pool_row *r, int64_t from, int64_t first, int64_t size)
{
    void *const y = r->y;
    r->n = t->whole.to - from;
    r->y = (char *)y + from * size;
    for (int i = 0; i < r->nrow; i++) {
        r->x[i] += first * size;
        r->k[i] += first * size;
    }
    mc_pool_ties_of(t->kernel, r);
    for (int i = 0; i < r->nrow; i++) {
        r->x[i] -= first * size;
        r->k[i] -= first * size;
    }
    r->y = y;
}

/* One row of windows. */
static void row(const struct ties *t, const struct mc_pool_shape *s, struct mc_pool_row *r, int64_t size)
{
    for (int64_t j = 0; j < s->out[2]; j++) {
        const struct mc_pool_clip c = pool_clip(s, 2, j);
        if (t->quick && j == t->whole.from && t->whole.to > j) {
            inside(t, r, j, c.lo, size);
            j = t->whole.to - 1;
        } else {
            (size == 4 ? window_f32 : window_f64)(r, j, c.lo, c.hi);
        }
    }
}

static void clear(const struct mc_pool_plane *at, const struct mc_pool_shape *s, const int64_t *xs,
                  int64_t size)
{
    for (int64_t a = 0; a < s->in[0]; a++) {
        for (int64_t b = 0; b < s->in[1]; b++) {
            memset(at->at[POOL_X] + (a * xs[0] + b * xs[1]) * size, 0, (size_t)(s->in[2] * size));
        }
    }
}

static void work(const struct mc_plan *plan, const struct mc_pool_plane *at)
{
    const struct ties *t = (const struct ties *)(const void *)plan;
    const struct mc_pool_shape *s = &pooling(plan->problem)->s;
    const struct mc_pool_grid *g = at->g;
    const int64_t *xs = g->slot[POOL_X], *ks = g->slot[POOL_KEY], *ys = g->slot[POOL_Y];
    const int64_t size = mc_dtypes[pooling(plan->problem)->dtype].size;
    struct mc_pool_row r; /* not cleared, because most of its rows are unused */
    if (!t->covers) {
        clear(at, s, xs, size);
    }
    r.s = r.w = 2;
    r.key = NULL;
    r.bits = false;
    r.x_band = s->stride[1] * xs[1] * size;
    r.y_band = ys[1] * size;
    r.k_band = s->stride[1] * ks[1] * size;
    for (int64_t u = 0; u < s->out[0] * s->out[1]; u += r.bands) {
        const int64_t u0 = u / s->out[1], u1 = u % s->out[1];
        r.bands = u1 == t->rows.from && t->rows.to > u1 ? t->rows.to - u1 : 1;
        const struct mc_pool_clip c0 = pool_clip(s, 0, u0), c1 = pool_clip(s, 1, u1);
        r.nrow = 0;
        for (int64_t a = c0.lo; a < c0.hi; a++) {
            for (int64_t b = c1.lo; b < c1.hi; b++) {
                r.x[r.nrow] = at->at[POOL_X] + (a * xs[0] + b * xs[1]) * size;
                r.k[r.nrow++] = at->at[POOL_KEY] + (a * ks[0] + b * ks[1]) * size;
            }
        }
        r.y = at->at[POOL_Y] + (u0 * ys[0] + u1 * ys[1]) * size;
        r.bands *= at->planes;
        row(t, s, &r, size);
    }
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    const struct mc_pool_shape *s = &p->s;
    if (p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64) {
        return "takes float32 and float64 only";
    }
    if (s->pass != POOL_SPREAD || s->mode != POOL_MAX || s->key != POOL_KEY_X) {
        return "takes gradients of maxima that ties share only";
    }
    for (int i = 0; i < 3; i++) {
        if (s->w[i] > s->stride[i]) {
            return "needs windows that do not overlap";
        }
    }
    return s->w[0] * s->w[1] > POOL_ROWS ? "needs small windows" : mc_pool_hollow_columns(p);
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + 2 * mc_pool_seconds(pooling(p));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const struct mc_pool_problem *q = pooling(p);
    struct ties *t = mc_pool_planes(sizeof *t, q, work);
    if (!t) {
        return NULL;
    }
    t->whole = mc_pool_windows_inside(&q->s, 2);
    t->quick = q->s.w[2] == 2 && q->s.stride[2] == 2;
    if (t->quick && t->whole.from == 0 && t->whole.to == q->s.out[2]) {
        t->rows = mc_pool_windows_inside(&q->s, 1);
    }
    t->kernel = mc_pool_kernel(q->dtype == MC_FLOAT64, t->whole.to - t->whole.from);
    t->covers = true;
    for (int i = 0; i < 3; i++) {
        t->covers &= q->s.stride[i] == q->s.w[i] && q->s.out[i] * q->s.w[i] - q->s.pad[i] >= q->s.in[i] &&
                     q->s.pad[i] >= 0;
    }
    t->planes.joint = t->covers && t->rows.to - t->rows.from == q->s.out[1] &&
                      mc_pool_planes_follow(&t->planes, q);
    return &t->planes.base;
}

const struct mc_solver mc_pool_ties = {
    .name = "ties", .refuse = refuse, .estimate = estimate, .plan = plan,
};
