/* reference.c: the definition of a convolution. Every faster solver is tested against it.
 *
 * It computes a row of the result at a time, in pieces of at most ROW elements. Each direction loads the
 * matching rows of its two operands.
 *
 * Invariant: every element of the result is one float64 sum in the order of the definition, rounded once. */
#include "heavy/conv/solver.h"

enum { ROW = 128 };

struct row {
    const struct mc_conv_run *r;
    double acc[ROW], x[ROW], w[ROW], y[ROW];
    int64_t at[5];          /* index in the result; [4] is the first element of the row */
    int64_t position[3];       /* position of y; for unshared weights [2] is the first one of the row */
    int64_t n;
};

static const void *element(const struct row *t, int role, int64_t offset)
{
    return t->r->at[role] + offset * t->r->size;
}

static void load(const struct row *t, int role, double *to, int64_t offset, int64_t stride, int64_t n)
{
    mc_convert(MC_FLOAT64, to, sizeof *to, t->r->p->dtype, element(t, role, offset), stride * t->r->size, n);
}

/* Offset in w of tap a of filter f for channel c of its group and, if unshared, for position u. */
static int64_t in_w(const struct mc_conv_problem *p, int64_t f, int64_t c, const int64_t a[3],
                    const int64_t u[3])
{
    int64_t at = f * p->at.w[0] + c * p->at.w[1];
    for (int i = 0; i < 3; i++) {
        at += conv_tap(&p->s, i, a[i]) * p->at.w[2 + i] + (p->s.unshared ? u[i] * p->at.w[5 + i] : 0);
    }
    return at;
}

static int64_t in_xy(const int64_t stride[5], int64_t n, int64_t c, int64_t i0, int64_t i1, int64_t i2)
{
    return n * stride[0] + c * stride[1] + i0 * stride[2] + i1 * stride[3] + i2 * stride[4];
}

/* Weights for a run of positions: one number for all, or one a position. */
static void load_w(struct row *t, int64_t at, int64_t n)
{
    const bool shared = !t->r->p->s.unshared;
    load(t, CONV_W, t->w, at, t->r->p->at.w[7], shared ? 1 : n);
    for (int64_t i = 1; shared && i < n; i++) {
        t->w[i] = t->w[0];
    }
}

static void store(struct row *t, int64_t at, int64_t stride)
{
    const struct mc_conv_run *r = t->r;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t byte = (at + i * stride) * r->size;
        double v = r->p->alpha * t->acc[i];
        if (r->c0) {
            v += r->p->beta * mc_load_f64(r->p->dtype, r->c0 + byte);
        }
        mc_store_f64(r->p->dtype, r->result + byte, v);
    }
}

static bool next_tap(const struct mc_conv_shape *s, int64_t a[3])
{
    for (int i = 2; i >= 0; i--) {
        if (++a[i] < s->k[i]) {
            return true;
        }
        a[i] = 0;
    }
    return false;
}

static bool inside(int64_t i, int64_t n)
{
    return i >= 0 && i < n;
}

/* ---- forward: at[] = n, f, u ---- */

static void forward_tap(struct row *t, int64_t c, const int64_t a[3])
{
    const struct mc_conv_problem *p = t->r->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t f = t->at[1], cg = s->c / s->groups, g = f / (s->f / s->groups);
    const int64_t i0 = conv_at(s, 0, t->at[2], a[0]), i1 = conv_at(s, 1, t->at[3], a[1]);
    int64_t lo, hi;
    mc_conv_range(s, 2, a[2], &lo, &hi);
    lo = MC_MAX(lo, t->at[4]);
    hi = MC_MIN(hi, t->at[4] + t->n);
    if (lo >= hi || !inside(i0, s->in[0]) || !inside(i1, s->in[1])) {
        return;
    }
    const int64_t position[3] = { t->at[2], t->at[3], lo },
                  at = in_xy(p->at.x, t->at[0], g * cg + c, i0, i1, conv_at(s, 2, lo, a[2]));
    load(t, CONV_X, t->x, at, s->stride[2] * p->at.x[4], hi - lo);
    load_w(t, in_w(p, f, c, a, position), hi - lo);
    for (int64_t i = 0; i < hi - lo; i++) {
        t->acc[lo - t->at[4] + i] += t->x[i] * t->w[i];
    }
}

static void forward_row(struct row *t)
{
    const struct mc_conv_shape *s = &t->r->p->s;
    for (int64_t c = 0; c < s->c / s->groups && conv_volume(s->k); c++) {
        int64_t a[3] = { 0 };
        do {
            forward_tap(t, c, a);
        } while (next_tap(s, a));
    }
}

/* ---- inputs: at[] = n, c, i ---- */

/* The position whose tap a reads element i of x, or -1. */
static int64_t position_of(const struct mc_conv_shape *s, int axis, int64_t i, int64_t a)
{
    const int64_t far = i + s->pad[axis] - a * s->dilation[axis];
    return far >= 0 && far % s->stride[axis] == 0 && far / s->stride[axis] < s->out[axis]
               ? far / s->stride[axis]
               : -1;
}

static void inputs_tap(struct row *t, int64_t f, const int64_t a[3])
{
    const struct mc_conv_problem *p = t->r->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t step = s->stride[2], first = conv_at(s, 2, 0, a[2]), cg = s->c / s->groups;
    const int64_t u0 = position_of(s, 0, t->at[2], a[0]), u1 = position_of(s, 1, t->at[3], a[1]);
    const int64_t lo = MC_MAX(conv_ceil(t->at[4] - first, step), (int64_t)0);
    const int64_t hi = MC_MIN(conv_ceil(t->at[4] + t->n - first, step), s->out[2]);
    if (lo >= hi || u0 < 0 || u1 < 0) {
        return;
    }
    const int64_t position[3] = { u0, u1, lo };
    load(t, CONV_Y, t->y, in_xy(p->at.y, t->at[0], f, u0, u1, lo), p->at.y[4], hi - lo);
    load_w(t, in_w(p, f, t->at[1] % cg, a, position), hi - lo);
    double *acc = t->acc + (first + lo * step - t->at[4]); /* first may be negative */
    for (int64_t i = 0; i < hi - lo; i++) {
        acc[i * step] += t->y[i] * t->w[i];
    }
}

static void inputs_row(struct row *t)
{
    const struct mc_conv_shape *s = &t->r->p->s;
    const int64_t fg = s->f / s->groups, g = t->at[1] / (s->c / s->groups);
    for (int64_t f = g * fg; f < (g + 1) * fg && conv_volume(s->k); f++) {
        int64_t a[3] = { 0 };
        do {
            inputs_tap(t, f, a);
        } while (next_tap(s, a));
    }
}

/* ---- weights: at[] = f, c, a ---- */

/* Adds the products at positions [lo, hi) of one row of y; at most ROW of them. */
static void weights_positions(struct row *t, int64_t n, const int64_t u[2], int64_t lo, int64_t hi,
                              double *sum)
{
    const struct mc_conv_problem *p = t->r->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t f = t->at[0], c = f / (s->f / s->groups) * (s->c / s->groups) + t->at[1];
    const int64_t i0 = conv_at(s, 0, u[0], t->at[2]), i1 = conv_at(s, 1, u[1], t->at[3]);
    if (lo >= hi || !inside(i0, s->in[0]) || !inside(i1, s->in[1])) {
        return;
    }
    load(t, CONV_X, t->x, in_xy(p->at.x, n, c, i0, i1, conv_at(s, 2, lo, t->at[4])),
         s->stride[2] * p->at.x[4], hi - lo);
    load(t, CONV_Y, t->y, in_xy(p->at.y, n, f, u[0], u[1], lo), p->at.y[4], hi - lo);
    for (int64_t i = 0; i < hi - lo; i++) {
        sum[s->unshared ? i : 0] += t->x[i] * t->y[i];
    }
}

/* One weight, or the unshared weights of one row of positions. */
static void weights_row(struct row *t)
{
    const struct mc_conv_shape *s = &t->r->p->s;
    int64_t lo, hi;
    mc_conv_range(s, 2, t->at[4], &lo, &hi);
    for (int64_t n = 0; n < s->n; n++) {
        if (s->unshared) {
            const int64_t from = MC_MAX(lo, t->position[2]);
            weights_positions(t, n, t->position, from, MC_MIN(hi, t->position[2] + t->n),
                              t->acc + from - t->position[2]);
            continue;
        }
        for (int64_t u0 = 0; u0 < s->out[0]; u0++) {
            for (int64_t u1 = 0; u1 < s->out[1]; u1++) {
                for (int64_t u = lo; u < hi; u += ROW) {
                    weights_positions(t, n, (int64_t[]){ u0, u1 }, u, MC_MIN(u + ROW, hi), t->acc);
                }
            }
        }
    }
}

/* ---- tasks: one index of the first two axes of the result ---- */

static void xy_task(struct row *t, const struct mc_conv_array *a, void (*row)(struct row *t))
{
    for (t->at[2] = 0; t->at[2] < a->size[2]; t->at[2]++) {
        for (t->at[3] = 0; t->at[3] < a->size[3]; t->at[3]++) {
            for (t->at[4] = 0; t->at[4] < a->size[4]; t->at[4] += ROW) {
                t->n = MC_MIN(a->size[4] - t->at[4], (int64_t)ROW);
                memset(t->acc, 0, sizeof t->acc);
                row(t);
                store(t, in_xy(a->stride, t->at[0], t->at[1], t->at[2], t->at[3], t->at[4]), a->stride[4]);
            }
        }
    }
}

static void weight_at(struct row *t)
{
    const struct mc_conv_problem *p = t->r->p;
    const int64_t one[3] = { 1, 1, 1 }, *size = p->s.unshared ? p->s.out : one;
    for (t->position[0] = 0; t->position[0] < size[0]; t->position[0]++) {
        for (t->position[1] = 0; t->position[1] < size[1]; t->position[1]++) {
            for (t->position[2] = 0; t->position[2] < size[2]; t->position[2] += ROW) {
                t->n = MC_MIN(size[2] - t->position[2], (int64_t)ROW);
                memset(t->acc, 0, sizeof t->acc);
                weights_row(t);
                store(t, in_w(p, t->at[0], t->at[1], t->at + 2, t->position), p->at.w[7]);
            }
        }
    }
}

static void task(void *arg, int64_t i, int slot)
{
    const struct mc_conv_run *r = arg;
    const enum mc_conv_pass pass = r->p->s.pass;
    const struct mc_conv_array a = mc_conv_array(r->p, mc_conv_result(pass));
    struct row t = { .r = r, .at = { i / a.size[1], i % a.size[1] } };
    (void)slot;
    if (pass == CONV_WEIGHTS) {
        do {
            weight_at(&t);
        } while (next_tap(&r->p->s, t.at + 2));
    } else {
        xy_task(&t, &a, pass == CONV_FORWARD ? forward_row : inputs_row);
    }
    conv_finish(r, (int64_t[]){ i / a.size[1], i % a.size[1], 0, 0, 0 },
                (int64_t[]){ 1, 1, a.size[2], a.size[3], a.size[4] });
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_conv_run r = mc_conv_bind(plan, operand, workspace, threads);
    const struct mc_conv_array a = mc_conv_array(r.p, mc_conv_result(r.p->s.pass));
    if (mc_conv_count(&a) > 0) {
        mc_team_tasks(task, (void *)&r, a.size[0] * a.size[1], r.threads, r.threads, 10 * mc_conv_work(r.p));
    }
    return MC_OK;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double terms = mc_conv_flops(p) / 2, rows = terms / (double)MC_MAX(p->s.out[2], (int64_t)1);
    const double seconds = 1e-7 + 1.3e-9 * terms + 30e-9 * rows + 3 * mc_conv_copy(mc_conv_bytes(p));
    return seconds / mc_conv_threads(seconds, 64);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    (void)p;
    return mc_plan_bare(run);
}

const struct mc_solver mc_conv_reference = { .name = "reference", .portable = MC_PORTABLE, .estimate = estimate, .plan = plan };
