/* depthwise.c: convolutions with as many groups as channels, whose matrix products would be too small.
 *
 * A plane of x is copied with its border. In the copy, elements of one phase of the stride are adjacent, so
 * that every tap of a row of y reads a contiguous row. Forward adds all taps in registers. Inputs adds rows
 * into such a plane and copies it back. Weights takes dot products of rows.
 *
 * Invariant: the copy covers all windows and has a vector to spare at its end. */
#include "heavy/conv/cpu/depthwise.h"

enum { LINE = 64, TAPS = 1024 };
struct depth {
    struct mc_plan base;
    /* extent of the windows along each axis; [2]: of one phase of it */
    int64_t span[3];
    int64_t row; /* floats from row to row of the copy; the phases of a row follow one another */
    int64_t taps;
    int slots;
    size_t plane_bytes, row_bytes, sum_bytes, taps_bytes, slot_bytes;
};
struct call {
    const struct depth *d;
    struct mc_conv_run r;
    const struct mc_depthwise_rows *rows;
};
/* One thread's part of the workspace. */
struct scratch {
    float *plane, *row;
    float *sum;                 /* (taps, lanes) */
    struct mc_depthwise_taps taps;
};

static struct scratch thread_scratch(const struct call *x, int slot)
{
    char *at = x->r.workspace + (size_t)slot * x->d->slot_bytes;
    struct scratch k = { .plane = (float *)(void *)at };
    k.row = (float *)(void *)(at + x->d->plane_bytes);
    k.sum = (float *)(void *)(at + x->d->plane_bytes + x->d->row_bytes);
    at += x->d->plane_bytes + x->d->row_bytes + x->d->sum_bytes;
    k.taps.at = (int64_t *)(void *)at;
    k.taps.w = (float *)(void *)(at + x->d->taps_bytes / 3 * 2);
    return k;
}

/* ---- the plane ---- */

/* The index in a row of the copy of element i of the last axis, counted from the first window. */
static int64_t in_row(const struct call *x, int64_t i)
{
    const int64_t step = x->r.p->s.stride[2];
    return i % step * x->d->span[2] + i / step;
}

/* The rows of the copy. */
#define EACH_ROW(x, i0, i1)                                                                                  \
    for (int64_t i0 = 0; i0 < (x)->d->span[0]; i0++)                                                         \
        for (int64_t i1 = 0; i1 < (x)->d->span[1]; i1++)

/* Sets *at to the offset in x of row (i0, i1) of the copy. False: the row is border. */
static bool row_of(const struct call *x, int64_t n, int64_t c, int64_t i0, int64_t i1, int64_t *at)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *t = x->r.p->at.x, j0 = i0 - s->pad[0], j1 = i1 - s->pad[1];
    *at = n * t[0] + c * t[1] + j0 * t[2] + j1 * t[3];
    return j0 >= 0 && j0 < s->in[0] && j1 >= 0 && j1 < s->in[1];
}

/* The elements [lo, hi) of x's last axis that windows read. */
static void reachable_rows(const struct call *x, int64_t *lo, int64_t *hi)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t span = conv_at(s, 2, s->out[2] - 1, s->k[2] - 1) + 1; /* one past the last element read */
    *lo = MC_MAX(-s->pad[2], (int64_t)0);
    *hi = MC_MAX(MC_MIN(span, s->in[2]), *lo);
}

static void copy_in(const struct call *x, struct scratch *k, int64_t n, int64_t c)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const float *from = (const float *)(const void *)x->r.at[CONV_X];
    const int64_t step = x->r.p->at.x[4];
    int64_t lo, hi, at;
    reachable_rows(x, &lo, &hi);
    memset(k->plane, 0, x->d->plane_bytes);
    EACH_ROW(x, i0, i1)
    {
        float *to = k->plane + (i0 * x->d->span[1] + i1) * x->d->row;
        if (row_of(x, n, c, i0, i1, &at)) {
            for (int64_t i = lo; i < hi; i++) {
                to[s->stride[2] == 1 ? i + s->pad[2] : in_row(x, i + s->pad[2])] = from[at + i * step];
            }
        }
    }
}

/* Sets x of one image and channel to alpha * plane + beta * c0. The plane's part is 0 where no window
 * reads. */
static void copy_out(const struct call *x, struct scratch *k, int64_t n, int64_t c)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    float *to = (float *)(void *)x->r.result;
    const float alpha = (float)x->r.p->alpha;
    const int64_t step = x->r.p->at.x[4], box[5] = { 1, 1, s->in[0], s->in[1], s->in[2] };
    int64_t lo, hi, at;
    reachable_rows(x, &lo, &hi);
    mc_conv_start(&x->r, (int64_t[]){ n, c, 0, 0, 0 }, box);
    EACH_ROW(x, i0, i1)
    {
        const float *from = k->plane + (i0 * x->d->span[1] + i1) * x->d->row;
        if (row_of(x, n, c, i0, i1, &at)) {
            for (int64_t i = lo; i < hi; i++) {
                to[at + i * step] += alpha *
                                     from[s->stride[2] == 1 ? i + s->pad[2] : in_row(x, i + s->pad[2])];
            }
        }
    }
    conv_finish(&x->r, (int64_t[]){ n, c, 0, 0, 0 }, box);
}

/* The offset of a tap in the plane for position 0, and in w. */
static int64_t plane_at(const struct call *x, int64_t tap)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t a0 = tap / (s->k[1] * s->k[2]), a1 = tap / s->k[2] % s->k[1], a2 = tap % s->k[2];
    return (a0 * s->dilation[0] * x->d->span[1] + a1 * s->dilation[1]) * x->d->row +
           in_row(x, a2 * s->dilation[2]);
}

static int64_t w_at(const struct call *x, int64_t f, int64_t tap)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t a[3] = { tap / (s->k[1] * s->k[2]), tap / s->k[2] % s->k[1], tap % s->k[2] },
                  *t = x->r.p->at.w;
    return f * t[0] + conv_tap(s, 0, a[0]) * t[2] + conv_tap(s, 1, a[1]) * t[3] + conv_tap(s, 2, a[2]) * t[4];
}

static void load_taps(const struct call *x, struct scratch *k, int64_t f)
{
    const float *w = (const float *)(const void *)x->r.at[CONV_W];
    k->taps.n = x->d->taps;
    for (int64_t tap = 0; tap < k->taps.n; tap++) {
        k->taps.at[tap] = plane_at(x, tap);
        k->taps.w[tap] = x->r.p->s.pass == CONV_WEIGHTS ? 0 : w[w_at(x, f, tap)];
    }
}

/* The offset of a row of y in y, and of its windows in the plane. */
static int64_t y_at(const struct call *x, int64_t n, int64_t f, int64_t row)
{
    const int64_t *t = x->r.p->at.y, *out = x->r.p->s.out;
    return n * t[0] + f * t[1] + row / out[1] * t[2] + row % out[1] * t[3];
}

static int64_t window_at(const struct call *x, int64_t row)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    return (row / s->out[1] * s->stride[0] * x->d->span[1] + row % s->out[1] * s->stride[1]) * x->d->row;
}

/* Copies a row of y to a contiguous buffer. The buffer's elements after the row are not changed. */
static void y_row(const struct call *x, struct scratch *k, int64_t at)
{
    const float *y = (const float *)(const void *)x->r.at[CONV_Y] + at;
    const int64_t step = x->r.p->at.y[4];
    if (step == 1) {
        memcpy(k->row, y, (size_t)x->r.p->s.out[2] * sizeof *y);
        return;
    }
    for (int64_t i = 0; i < x->r.p->s.out[2]; i++) {
        k->row[i] = y[i * step];
    }
}

/* ---- passes ---- */

static void forward_row(const struct call *x, struct scratch *k, int64_t at, int64_t row)
{
    const int64_t n = x->r.p->s.out[2], step = x->r.p->at.y[4];
    const float alpha = (float)x->r.p->alpha, beta = (float)x->r.p->beta;
    const float *c0 = (const float *)(const void *)x->r.c0;
    float *y = (float *)(void *)x->r.result + at;
    x->rows->forward(k->row, k->plane + window_at(x, row), &k->taps, n);
    for (int64_t i = 0; i < n; i++) {
        y[i * step] = alpha * k->row[i] + (c0 ? beta * c0[at + i * step] : 0);
    }
}

static void xy_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t n = task / s->c, c = task % s->c, each = s->f / s->c, rows = s->out[0] * s->out[1];
    struct scratch k = thread_scratch(x, slot);
    if (s->pass == CONV_FORWARD) {
        copy_in(x, &k, n, c);
    } else {
        memset(k.plane, 0, x->d->plane_bytes);
    }
    for (int64_t f = c * each; f < (c + 1) * each; f++) {
        load_taps(x, &k, f);
        for (int64_t row = 0; row < rows; row++) {
            if (s->pass == CONV_FORWARD) {
                forward_row(x, &k, y_at(x, n, f, row), row);
                continue;
            }
            y_row(x, &k, y_at(x, n, f, row));
            for (int64_t tap = 0; tap < k.taps.n; tap++) {
                x->rows->add(k.plane + window_at(x, row) + k.taps.at[tap], k.row, k.taps.w[tap], s->out[2]);
            }
        }
    }
    if (s->pass == CONV_INPUTS) {
        copy_out(x, &k, n, c);
    } else {
        conv_finish(&x->r, (int64_t[]){ n, c * each, 0, 0, 0 },
                    (int64_t[]){ 1, each, s->out[0], s->out[1], s->out[2] });
    }
}

/* One filter. Sums of an image are in float32, one for each lane; those of the images are added in order in
 * float64. */
static void weights_task(void *arg, int64_t f, int slot)
{
    const struct call *x = arg;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t c = f / (s->f / s->c), rows = s->out[0] * s->out[1];
    struct scratch k = thread_scratch(x, slot);
    double sum[TAPS] = { 0 };
    load_taps(x, &k, f);
    memset(k.row, 0, x->d->row_bytes);
    for (int64_t n = 0; n < s->n; n++) {
        copy_in(x, &k, n, c);
        memset(k.sum, 0, x->d->sum_bytes);
        for (int64_t row = 0; row < rows; row++) {
            y_row(x, &k, y_at(x, n, f, row));
            x->rows->weights(k.sum, k.plane + window_at(x, row), k.row, &k.taps, s->out[2]);
        }
        for (int64_t i = 0; i < x->d->taps * DEPTH_LANES; i++) {
            sum[i / DEPTH_LANES] += (double)k.sum[i];
        }
    }
    for (int64_t tap = 0; tap < x->d->taps; tap++) {
        const int64_t at = w_at(x, f, tap);
        const double c0 = x->r.c0 ? x->r.p->beta * (double)((const float *)(const void *)x->r.c0)[at] : 0;
        ((float *)(void *)x->r.result)[at] = (float)(x->r.p->alpha * sum[tap] + c0);
    }
    conv_finish(&x->r, (int64_t[]){ f, 0, 0, 0, 0 }, (int64_t[]){ 1, 1, s->k[0], s->k[1], s->k[2] });
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct depth *d = (const struct depth *)(const void *)plan;
    struct call x = { d, mc_conv_bind(plan, operand, workspace, threads), mc_depthwise_rows() };
    const struct mc_conv_shape *s = &x.r.p->s;
    if (s->pass == CONV_WEIGHTS) {
        mc_team_tasks(weights_task, &x, s->f, d->slots, x.r.threads, mc_conv_work(x.r.p));
    } else {
        mc_team_tasks(xy_task, &x, s->n * s->c, d->slots, x.r.threads, mc_conv_work(x.r.p));
    }
    return MC_OK;
}

/* ---- planning ---- */

static size_t lines(int64_t n, size_t size)
{
    return ((size_t)n * size + LINE - 1) / LINE * LINE;
}

/* Returns the bytes of one thread. */
static size_t measure(const struct mc_conv_problem *p, struct depth *d)
{
    const struct mc_conv_shape *s = &p->s;
    for (int i = 0; i < 3; i++) {
        d->span[i] = (s->out[i] - 1) * s->stride[i] + (s->k[i] - 1) * s->dilation[i] + 1;
    }
    d->span[2] = conv_ceil(d->span[2], s->stride[2]);
    d->row = d->span[2] * s->stride[2];
    d->taps = conv_volume(s->k);
    d->plane_bytes = lines(d->span[0] * d->span[1] * d->row + 2 * DEPTH_LANES, sizeof(float));
    d->row_bytes = lines(s->out[2] + DEPTH_LANES, sizeof(float));
    d->sum_bytes = s->pass == CONV_WEIGHTS ? lines(d->taps * DEPTH_LANES, sizeof(float)) : 0;
    d->taps_bytes = lines(d->taps, sizeof(int64_t) + sizeof(float));
    d->taps_bytes = (d->taps_bytes + 3 * LINE - 1) / (3 * LINE) * (3 * LINE);
    d->slot_bytes = d->plane_bytes + d->row_bytes + d->sum_bytes + d->taps_bytes;
    return d->slot_bytes;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    struct depth *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    const size_t cap = p_->options.workspace, one = measure(conv(p_), d);
    d->base.run = run;
    d->slots = (int)MC_MAX(MC_MIN((size_t)mc_team_size(), cap / one), (size_t)1);
    d->base.workspace = (size_t)d->slots * one;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->s.groups != p->s.c || p->s.unshared) {
        return "takes as many groups as channels";
    }
    if (p->dtype != MC_FLOAT32 || p->wide) {
        return "takes float32, summed in float32";
    }
    return conv_volume(p->s.k) > TAPS ? "takes at most 1024 taps" : NULL;
}

/* The measured fractions of the peak, and one pass over the plane. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct depth d = { 0 };
    measure(p, &d);
    const double row = (double)conv_ceil(p->s.out[2], DEPTH_LANES) * DEPTH_LANES / (double)p->s.out[2];
    const double planes = (double)p->s.n * (double)(p->s.pass == CONV_WEIGHTS ? p->s.f : p->s.c);
    const double math = row * mc_conv_flops(p) /
                        (p->s.pass == CONV_FORWARD   ? 0.4
                         : p->s.pass == CONV_WEIGHTS ? 0.3
                                                     : 0.15) /
                        mc_conv_peak(p);
    const double seconds = math + planes * (double)d.plane_bytes * 0.05e-9 + mc_conv_copy(mc_conv_bytes(p));
    return 1e-6 + seconds / mc_conv_threads(seconds, planes);
}

const struct mc_solver mc_conv_depth = {
    .name = "depth", .refuse = refuse, .estimate = estimate, .plan = plan,
};
