/* stride_one.c: gradients of sums and means with stride 1.
 *
 * A cell's gradient is the sum over all windows that contain it, and those are adjacent. So it is again a sum
 * over a window, of the gradient of y padded with zeros.
 *
 * Invariant: the padded gradient has been multiplied by each window's scale, so from there on cut and uncut
 * windows are treated alike. */
#include "heavy/pool/solver.h"

enum { MOST_BYTES = 1 << 20 }; /* of a padded plane, which must stay in the L2 cache */
struct slide {
    struct mc_pool_planes planes;
    int64_t size[3], at[3];         /* of the padded plane: its sizes, and the index of window 0 */
    struct mc_pool_span whole;      /* of pooled axis 2 */
    const struct mc_pool_kernel *kernel;
};

static void padded(const struct mc_pool_shape *s, int64_t size[3], int64_t at[3])
{
    for (int i = 0; i < 3; i++) {
        size[i] = s->in[i] + s->w[i] - 1;
        at[i] = s->w[i] - 1 - s->pad[i];
    }
}

static double padded_bytes(const struct mc_pool_problem *p)
{
    int64_t size[3], at[3];
    padded(&p->s, size, at);
    return (double)size[0] * (double)size[1] * (double)size[2] * mc_dtypes[p->dtype].size;
}

/* ---- a plane ---- */

/* z[j] += y[j] * scale of a window that has `cells` cells along the other two axes. */
static void share_row(const struct slide *p, const struct mc_pool_shape *s, char *y, char *z, int64_t cells,
                      int size)
{
    struct mc_pool_row r; /* not cleared, because most of its rows are unused */
    r.n = p->whole.to - p->whole.from;
    r.nrow = r.w = 1;
    r.s = r.bands = 1;
    r.x[0] = z + p->whole.from * size;
    r.y = y + p->whole.from * size;
    r.scale = pool_scale(s, cells * s->w[2]);
    p->kernel->share(&r);
    for (int64_t j = p->whole.from > 0 ? 0 : p->whole.to; j < s->out[2];
         j = j + 1 == p->whole.from ? p->whole.to : j + 1) {
        const struct mc_pool_clip clip = pool_clip(s, 2, j);
        r.n = 1;
        r.x[0] = z + j * size;
        r.y = y + j * size;
        r.scale = pool_scale(s, cells * (clip.hi - clip.lo));
        p->kernel->share(&r);
    }
}

static void work(const struct mc_plan *plan, const struct mc_pool_plane *at)
{
    const struct slide *p = (const struct slide *)(const void *)plan;
    const struct mc_pool_shape *s = &pooling(plan->problem)->s;
    const int64_t *xs = p->planes.grid.slot[POOL_X], *ys = p->planes.grid.slot[POOL_Y], *n = p->size;
    const int size = mc_dtypes[pooling(plan->problem)->dtype].size;
    char *z = at->scratch;
    memset(z, 0, p->planes.bytes);
    for (int64_t u0 = 0; u0 < s->out[0]; u0++) {
        for (int64_t u1 = 0; u1 < s->out[1]; u1++) {
            const struct mc_pool_clip a = pool_clip(s, 0, u0), b = pool_clip(s, 1, u1);
            share_row(p, s, at->at[POOL_Y] + (u0 * ys[0] + u1 * ys[1]) * size,
                      z + (((p->at[0] + u0) * n[1] + p->at[1] + u1) * n[2] + p->at[2]) * size,
                      (a.hi - a.lo) * (b.hi - b.lo), size);
        }
    }
    struct mc_pool_row r = { .n = s->in[2],
                             .s = 1,
                             .bands = s->in[1],
                             .x_band = n[2] * size,
                             .y_band = xs[1] * size,
                             .w = (int)s->w[2],
                             .scale = 1 };
    for (int64_t k = 0; k < s->in[0]; k++) {
        r.nrow = 0;
        for (int64_t a = 0; a < s->w[0]; a++) {
            for (int64_t b = 0; b < s->w[1]; b++) {
                r.x[r.nrow++] = z + ((k + a) * n[1] + b) * n[2] * size;
            }
        }
        r.y = at->at[POOL_X] + k * xs[0] * size;
        p->kernel->sum(&r);
    }
}

/* ---- the solver ---- */

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    const struct mc_pool_shape *s = &p->s;
    if (p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64) {
        return "takes float32 and float64 only";
    }
    if (s->pass != POOL_SPREAD || s->mode == POOL_MAX) {
        return "takes gradients of sums and means only";
    }
    for (int i = 0; i < 3; i++) {
        if (s->stride[i] != 1 || s->pad[i] >= s->w[i]) {
            return "needs stride 1 and borders smaller than the window";
        }
    }
    if (s->w[0] * s->w[1] > POOL_ROWS || padded_bytes(p) > MOST_BYTES) {
        return "needs small windows and planes";
    }
    return mc_pool_hollow_columns(p);
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    return 1e-6 + mc_pool_seconds(p) * (1 + 0.03 * (double)(p->s.w[0] * p->s.w[1] * p->s.w[2]));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const struct mc_pool_problem *q = pooling(p);
    struct slide *r = mc_pool_planes(sizeof *r, q, work);
    if (!r) {
        return NULL;
    }
    padded(&q->s, r->size, r->at);
    r->whole = mc_pool_windows_inside(&q->s, 2);
    r->kernel = mc_pool_kernel(q->dtype == MC_FLOAT64, q->s.in[2]);
    mc_pool_scratch(&r->planes, (size_t)padded_bytes(q));
    return &r->planes.base;
}

const struct mc_solver mc_pool_slide = {
    .name = "slide", .refuse = refuse, .estimate = estimate, .plan = plan,
};
