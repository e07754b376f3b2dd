/* portable.c: convolutions in every direction as portable sums (heavy/portable).
 *
 * x is copied to planes with zeros around it, one plane for each phase of the strides.  Then the positions of
 * y lie in rows of one pitch, and a tap is an offset.
 *
 *   forward   y[f] (p) = sum over c and taps of w[f, c, tap] * x[c] (p + offset of the tap)
 *   inputs    x[c] (p), for each phase of x: the same sum over f and the taps of that phase, from y with
 *             zeros around it
 * *   weights   w[f, c, tap] = sum over images and p of y[f] (p) * x[c] (p + offset of the tap)
 *
 * With a few filters the sums are made row by row of the result.  With some more a sum runs over whole rows,
 * and positions beyond the end of y's rows are not copied to the result.
 *
 * Invariant: the bits depend on the problem alone, and are those of an exported file. */
#include "heavy/conv/cpu/portable.h"

enum {
    BOX_ROWS = 3,    /* rows whose sums are made at a box of positions, at most */
    PACKED_ROWS = 8, /* rows that share a copy of the columns, at least */
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_conv_run r = mc_conv_bind(plan, operand, workspace, threads);
    void *const memory[] = { operand[CONV_X], operand[CONV_W], operand[CONV_Y], workspace };
    mc_portable_run(mc_portable_program_of(plan), memory);
    mc_conv_finish_all(&r);
    return MC_OK;
}

const char *mc_conv_portable_refuses(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64      ? "takes float32 and float64 only"
           : p->wide && p->dtype != MC_FLOAT64                   ? "sums float32 in float32"
           : p->s.unshared                                       ? "takes filters shared by all positions"
           : p->alpha != 1 || p->beta != 0 || p->act != ACT_NONE ? "computes the bare convolution only"
                                                                 : mc_conv_hollow(p);
}

double mc_conv_portable_estimate(const struct mc_problem *p, int rank)
{
    return p->options.portable ? 1e-9 * rank : 1e-6 + (19 + rank) * mc_conv_work(conv(p));
}

static double estimate(const struct mc_problem *p)
{
    return mc_conv_portable_estimate(p, 2);
}

/* ---- geometry ---- */

/* Positions from the first to the last of a box of n, in rows of the planes' pitch. */
static int64_t span(const struct mc_conv_planes *q, const int64_t n[3])
{
    return (n[0] - 1) * conv_pitch(q, 0) + (n[1] - 1) * conv_pitch(q, 1) + n[2];
}

/* Sets g[0..3] to the rows that a box of n is in the planes: elements of a row, rows of a plane, their
 * pitches. False: the box is one row. */
static bool set_rows(const struct mc_conv_planes *q, const int64_t n[3], int64_t *g)
{
    const int64_t rows[4] = { n[2], n[1], conv_pitch(q, 1), conv_pitch(q, 0) };
    memcpy(g, rows, sizeof rows);
    for (int again = 0; again < 2 && (g[1] == 1 || g[2] == g[0]); again++) {
        const int64_t merged[4] = { g[0] * g[1], again ? 1 : n[0], g[3], 0 };
        memcpy(g, merged, sizeof merged);
    }
    return g[0] != conv_volume(n);
}

/* Are boxes of n elements at these strides rows of the planes' pitch? */
bool mc_conv_portable_has_pitch(const struct mc_conv_planes *q, const int64_t *stride, const int64_t n[3])
{
    for (int a = 0; a < 3; a++) {
        if (n[a] > 1 && stride[a] != conv_pitch(q, a)) {
            return false;
        }
    }
    return true;
}

/* Memory of the workspace; image: elements for each image of a run. */
struct mc_portable_at mc_conv_portable_take(struct mc_conv_making *k, int64_t elements)
{
    const struct mc_portable_at at = { PORTABLE_WORKSPACE, k->to->workspace, elements, 0, 0 };
    k->to->workspace += elements * k->to->step;
    return at;
}

/* Copies a box of `channels` channels.  to and from: strides of the channel and three axes; first elements
 * are in the addresses. */
bool mc_conv_portable_copy(struct mc_conv_making *k, struct mc_portable_at to, const int64_t *to_stride,
                 struct mc_portable_at from, const int64_t *from_stride, int64_t channels, const int64_t n[3])
{
    if (n[0] <= 0 || n[1] <= 0 || n[2] <= 0) {
        return true;
    }
    struct mc_portable_call *c = mc_portable_add(k->to, PORTABLE_COPY, 0);
    if (c) {
        const int64_t g[12] = { channels,       n[0],           n[1],           n[2],
                                to_stride[0],   to_stride[1],   to_stride[2],   to_stride[3],
                                from_stride[0], from_stride[1], from_stride[2], from_stride[3] };
        memcpy(c->g, g, sizeof g);
        c->to = to;
        c->from = from;
    }
    return c != NULL;
}

/* ---- x as planes, for FORWARD and WEIGHTS ---- */

/* Does the phase of an axis have taps? */
static bool has_taps(const struct mc_conv_shape *s, int axis, int64_t phase)
{
    for (int64_t a = 0; a < s->k[axis]; a++) {
        if (a * s->dilation[axis] % s->stride[axis] == phase) {
            return true;
        }
    }
    return false;
}

/* Copies the elements of x that lie in one phase to its plane. */
static bool copy_phase(struct mc_conv_making *k, const struct mc_conv_planes *q, const int64_t phase[3],
                       int64_t plane)
{
    const struct mc_conv_shape *s = &k->p->s;
    const int64_t *xs = k->p->at.x;
    struct mc_portable_at to = q->at, from = conv_operand(CONV_X, xs[0], k->c * xs[1]);
    int64_t n[3], ts[4] = { q->channel }, fs[4] = { xs[1] };
    to.first += plane * q->size[0] * q->size[1] * q->size[2];
    for (int a = 0; a < 3; a++) { /* index i of x is at (i + pad - phase) / stride */
        const int64_t lo = MC_MAX(conv_ceil(s->pad[a] - phase[a], s->stride[a]), 0);
        const int64_t hi = MC_MIN(conv_ceil(s->in[a] + s->pad[a] - phase[a], s->stride[a]), q->size[a]);
        n[a] = hi - lo;
        to.first += lo * conv_pitch(q, a);
        from.first += (lo * s->stride[a] + phase[a] - s->pad[a]) * xs[2 + a];
        ts[1 + a] = conv_pitch(q, a);
        fs[1 + a] = s->stride[a] * xs[2 + a];
    }
    return mc_conv_portable_copy(k, to, ts, from, fs, k->c, n);
}

/* The planes of x, and the offset of each tap. */
bool mc_conv_portable_planes(struct mc_conv_making *k, struct mc_conv_planes *q, int64_t *tap)
{
    const struct mc_conv_shape *s = &k->p->s;
    const int64_t *xs = k->p->at.x, *st = s->stride;
    const int64_t phases = st[0] * st[1] * st[2];
    bool plain = phases == 1;
    for (int a = 0; a < 3; a++) {
        const int64_t need = (s->out[a] - 1) * st[a] + (s->k[a] - 1) * s->dilation[a] + 1;
        q->size[a] = (need + st[a] - 1) / st[a];
        plain &= s->pad[a] == 0 && need <= s->in[a];
    }
    struct mc_conv_planes same = { conv_operand(CONV_X, xs[0], k->c * xs[1]),
                                   { s->in[0], s->in[1], s->in[2] },
                                   xs[1] };
    if (plain && mc_conv_portable_has_pitch(&same, xs + 2, s->in)) {
        *q = same; /* x itself */
    } else {
        q->channel = phases * q->size[0] * q->size[1] * q->size[2];
        q->at = mc_conv_portable_take(k, k->c * q->channel);
        k->to->zeros = k->to->workspace;
        int64_t phase[3], plane = 0;
        for (phase[0] = 0; phase[0] < st[0]; phase[0]++) {
            for (phase[1] = 0; phase[1] < st[1]; phase[1]++) {
                for (phase[2] = 0; phase[2] < st[2]; phase[2]++, plane++) {
                    if (has_taps(s, 0, phase[0]) && has_taps(s, 1, phase[1]) && has_taps(s, 2, phase[2]) &&
                        !copy_phase(k, q, phase, plane)) {
                        return false;
                    }
                }
            }
        }
    }
    int64_t a[3];
    for (a[0] = 0; a[0] < s->k[0]; a[0]++) {
        for (a[1] = 0; a[1] < s->k[1]; a[1]++) {
            for (a[2] = 0; a[2] < s->k[2]; a[2]++) {
                int64_t plane = 0, offset = 0;
                for (int i = 0; i < 3; i++) {
                    const int64_t at = a[i] * s->dilation[i];
                    plane = plane * st[i] + at % st[i];
                    offset += at / st[i] * conv_pitch(q, i);
                }
                *tap++ = plane * q->size[0] * q->size[1] * q->size[2] + offset;
            }
        }
    }
    return true;
}

/* Offsets of the taps in w, in the same order. */
void mc_conv_portable_taps(const struct mc_conv_problem *p, int64_t *tap)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t *ws = p->at.w;
    int64_t a[3];
    for (a[0] = 0; a[0] < s->k[0]; a[0]++) {
        for (a[1] = 0; a[1] < s->k[1]; a[1]++) {
            for (a[2] = 0; a[2] < s->k[2]; a[2]++) {
                *tap++ = conv_tap(s, 0, a[0]) * ws[2] + conv_tap(s, 1, a[1]) * ws[3] +
                         conv_tap(s, 2, a[2]) * ws[4];
            }
        }
    }
}

/* ---- the directions ---- */

/* The sums of a few rows at a box of n, whose rows are contiguous in y. */
static bool box_sums(struct mc_conv_making *k, const struct mc_conv_planes *q, const int64_t n[3],
                     int64_t taps, const int64_t *offset, int64_t f, int64_t c, const int64_t ws[2],
                     struct mc_portable_at y, const int64_t *ys)
{
    struct mc_portable_call *call = mc_portable_add(k->to, PORTABLE_BOX, (int)(2 * taps));
    if (!call) {
        return false;
    }
    const int64_t g[14] = { f,     c,          taps,        n[0],        n[1],  n[2],  ws[0],
                            ws[1], q->channel, conv_pitch(q, 1), conv_pitch(q, 0), ys[0], ys[2], ys[1] };
    memcpy(call->g, g, sizeof g);
    if (taps) {
        memcpy(call->offset, offset, (size_t)(2 * taps) * sizeof *offset);
    }
    call->from = q->at;
    call->with = conv_operand(CONV_W, 0, k->f * k->p->at.w[0]);
    call->to = y;
    return true;
}

/* Sums over `c` channels and taps for `f` rows at the positions of a box of n in the planes, copied to
 * strides ys of y.  offset: of the taps in w, then in the planes; ws: strides of w along rows and
 * channels. */
static bool sums(struct mc_conv_making *k, const struct mc_conv_planes *q, const int64_t n[3], int64_t taps,
                 const int64_t *offset, int64_t f, int64_t c, const int64_t ws[2], struct mc_portable_at y,
                 const int64_t *ys)
{
    if (f <= BOX_ROWS && (ys[3] == 1 || n[2] == 1)) {
        return box_sums(k, q, n, taps, offset, f, c, ws, y, ys);
    }
    const struct mc_conv_planes dense = { y, { n[0], n[1], n[2] }, 0 };
    int64_t rows[4];
    /* few rows of w: positions beyond the ends of rows cost less than a copy of the others */
    const bool one = !set_rows(q, n, rows), packs = f >= PACKED_ROWS && (!one || (f >= 32 && c * taps >= 64));
    const struct mc_conv_planes *to_planes = packs ? &dense : q;
    const int64_t positions = span(to_planes, n);
    const bool direct = positions == conv_volume(n) && mc_conv_portable_has_pitch(to_planes, ys + 1, n);
    const int64_t yf = direct ? ys[0] : positions, before = k->to->workspace;
    const struct mc_portable_at to = direct ? y : mc_conv_portable_take(k, f * positions);
    struct mc_portable_call *call = mc_portable_add(k->to, PORTABLE_COLUMNS, (int)(2 * taps));
    if (!call) {
        return false;
    }
    if (!packs) { /* in place: no rows */
        memset(rows, 0, sizeof rows);
    }
    const int64_t g[12] = { f,          c,  taps,    positions, ws[0],   ws[1],
                            q->channel, yf, rows[0], rows[1],   rows[2], rows[3] };
    memcpy(call->g, g, sizeof g);
    if (taps) {
        memcpy(call->offset, offset, (size_t)(2 * taps) * sizeof *offset);
    }
    call->from = q->at;
    call->with = conv_operand(CONV_W, 0, k->f * k->p->at.w[0]);
    call->to = to;
    mc_portable_panel(k->to, call);
    const int64_t fs[4] = { yf, conv_pitch(to_planes, 0), conv_pitch(to_planes, 1), 1 };
    const bool ok = direct || mc_conv_portable_copy(k, y, ys, to, fs, f, n);
    k->most = MC_MAX(k->most, k->to->workspace);
    k->to->workspace = before; /* the sums of another phase use the same memory */
    return ok;
}

/* Rows of y that are a block.  Rows of whole vectors need no copy of the positions; 1x1 taps have one row of
 * positions, and blocks are parts of it that stay in the caches for an epilogue.  0: there are no blocks. */
static int64_t rows_of_block(const struct mc_conv_making *k, const struct mc_conv_planes *q,
                             const int64_t *ys)
{
    enum { VECTOR = 16, LEAST = 192, CACHED = 16384, SUM = 256 };
    enum { STRIP = 48, FULL = 44 }; /* of AVX-512: the last strip, of 17 to 64 columns, should be wide, too */
    const struct mc_conv_shape *s = &k->p->s;
    const int64_t *n = s->out, taps = conv_volume(s->k), row = n[2];
    int64_t rows[4];
    const bool one = !set_rows(q, n, rows);
    if (n[0] > 1 || n[1] == 1 || k->f < PACKED_ROWS || ys[3] != 1) {
        return 0;
    }
    if (!one) {
        return row % VECTOR == 0 && row >= 2 * VECTOR && k->c * taps <= SUM;
    }
    int64_t most = n[1];
    for (int64_t blocks = 2; blocks <= n[1] && ys[2] == row; blocks++) {
        const int64_t positions = n[1] / blocks * row, last = (positions - VECTOR - 1) % STRIP + VECTOR + 1;
        if (n[1] % blocks == 0 && positions >= LEAST && last >= FULL && most * row * k->f > CACHED) {
            most = n[1] / blocks;
        }
    }
    return most < n[1] ? most : 0;
}

/* Sums in blocks of `rows` rows.  One row is read in place. */
static bool block_sums(struct mc_conv_making *k, const struct mc_conv_planes *q, int64_t rows,
                       const int64_t *offset, struct mc_portable_at y, const int64_t *ys)
{
    const struct mc_conv_problem *p = k->p;
    const int64_t taps = conv_volume(p->s.k), *ws = p->at.w, positions = rows * p->s.out[2];
    struct mc_portable_call *call = mc_portable_add(k->to, PORTABLE_COLUMNS, (int)(2 * taps));
    if (!call) {
        return false;
    }
    const bool packs = rows > 1 && k->f >= 32 && k->c * taps >= 64;
    const int64_t g[12] = { k->f,       k->c,  taps,                  positions, ws[0], ws[1],
                            q->channel, ys[0], packs ? positions : 0, 1,         0,     0 };
    memcpy(call->g, g, sizeof g);
    memcpy(call->offset, offset, (size_t)(2 * taps) * sizeof *offset);
    call->from = q->at;
    call->from.block = rows * conv_pitch(q, 1);
    call->with = conv_operand(CONV_W, 0, k->f * ws[0]);
    call->to = y;
    call->to.block = rows * ys[2];
    call->blocked = true;
    k->to->blocks = p->s.out[1] / rows;
    mc_portable_panel(k->to, call);
    return true;
}

static bool forward(struct mc_conv_making *k)
{
    const struct mc_conv_problem *p = k->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t taps = conv_volume(s->k), *ws = p->at.w, *ys = p->at.y;
    struct mc_conv_planes q;
    int64_t *offset = mc_calloc((size_t)(2 * taps), sizeof *offset, "plans");
    bool ok = offset && mc_conv_portable_planes(k, &q, offset + taps);
    if (ok) {
        mc_conv_portable_taps(p, offset);
        const struct mc_portable_at y = conv_operand(CONV_Y, ys[0], k->f * ys[1]);
        const int64_t rows = rows_of_block(k, &q, ys + 1);
        ok = rows ? block_sums(k, &q, rows, offset, y, ys + 1)
                  : sums(k, &q, s->out, taps, offset, k->f, k->c, ws, y, ys + 1);
    }
    mc_free(offset);
    return ok;
}

/* One phase of x: the indices i with (i + pad) % stride == phase, at (i + pad) / stride in [lo, lo + n). */
struct phase {
    int64_t phase[3], lo[3], n[3];
};

static struct phase phase_of(const struct mc_conv_shape *s, int64_t i0, int64_t i1, int64_t i2)
{
    struct phase h = { { i0, i1, i2 }, { 0 }, { 0 } };
    for (int a = 0; a < 3; a++) {
        h.lo[a] = conv_ceil(s->pad[a] - h.phase[a], s->stride[a]);
        h.n[a] = conv_ceil(s->in[a] + s->pad[a] - h.phase[a], s->stride[a]) - h.lo[a];
    }
    return h;
}

/* The sums of one phase.  y: y with zeros around it, first at index `first` of each axis. */
static bool phase_sums(struct mc_conv_making *k, const struct mc_conv_planes *y, const int64_t first[3],
                       const struct phase *h)
{
    const struct mc_conv_problem *p = k->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t *ws = p->at.w, *xs = p->at.x, taps = conv_volume(s->k);
    if (h->n[0] <= 0 || h->n[1] <= 0 || h->n[2] <= 0) {
        return true;
    }
    int64_t a[3], count = 0, *offset = mc_calloc((size_t)(2 * taps), sizeof *offset, "plans");
    if (!offset) {
        return false;
    }
    for (a[0] = 0; a[0] < s->k[0]; a[0]++) {
        for (a[1] = 0; a[1] < s->k[1]; a[1]++) {
            for (a[2] = 0; a[2] < s->k[2]; a[2]++) {
                int64_t in_w = 0, in_y = 0;
                bool here = true;
                for (int i = 0; i < 3; i++) {
                    const int64_t at = a[i] * s->dilation[i];
                    here &= at % s->stride[i] == h->phase[i];
                    in_y += (h->lo[i] - (at - h->phase[i]) / s->stride[i] - first[i]) * conv_pitch(y, i);
                    in_w += conv_tap(s, i, a[i]) * ws[2 + i];
                }
                if (here) {
                    offset[count] = in_w;
                    offset[taps + count++] = in_y;
                }
            }
        }
    }
    for (int64_t i = 0; i < count; i++) {
        offset[count + i] = offset[taps + i];
    }
    struct mc_portable_at x = conv_operand(CONV_X, xs[0], k->c * xs[1]);
    int64_t ts[4] = { xs[1] };
    for (int i = 0; i < 3; i++) {
        x.first += (h->lo[i] * s->stride[i] + h->phase[i] - s->pad[i]) * xs[2 + i];
        ts[1 + i] = s->stride[i] * xs[2 + i];
    }
    const bool ok = sums(k, y, h->n, count, offset, k->c, k->f, (const int64_t[2]){ ws[1], ws[0] }, x, ts);
    mc_free(offset);
    return ok;
}

static bool inputs(struct mc_conv_making *k)
{
    const struct mc_conv_problem *p = k->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t *ys = p->at.y;
    int64_t first[3], last[3];
    for (int a = 0; a < 3; a++) { /* the indices of y that some phase and tap read */
        first[a] = INT64_MAX, last[a] = INT64_MIN;
        for (int64_t t = 0; t < s->k[a]; t++) {
            const int64_t at = t * s->dilation[a], phase = at % s->stride[a], back = at / s->stride[a];
            const int64_t lo = conv_ceil(s->pad[a] - phase, s->stride[a]),
                          hi = conv_ceil(s->in[a] + s->pad[a] - phase, s->stride[a]);
            if (hi > lo) {
                first[a] = MC_MIN(first[a], lo - back);
                last[a] = MC_MAX(last[a], hi - 1 - back);
            }
        }
        if (first[a] > last[a]) {
            first[a] = last[a] = 0;
        }
    }
    struct mc_conv_planes y = { conv_operand(CONV_Y, ys[0], k->f * ys[1]),
                                { s->out[0], s->out[1], s->out[2] },
                                ys[1] };
    bool same = mc_conv_portable_has_pitch(&y, ys + 2, s->out);
    for (int a = 0; a < 3; a++) {
        same &= first[a] >= 0 && last[a] < s->out[a];
    }
    bool ok = true;
    if (same) {
        first[0] = first[1] = first[2] = 0;
    } else {
        struct mc_portable_at to, from = y.at;
        int64_t n[3];
        for (int a = 0; a < 3; a++) {
            y.size[a] = last[a] - first[a] + 1;
        }
        y.channel = conv_volume(y.size);
        to = y.at = mc_conv_portable_take(k, k->f * y.channel);
        k->to->zeros = k->to->workspace;
        for (int a = 0; a < 3; a++) {
            const int64_t lo = MC_MAX(first[a], 0), hi = MC_MIN(last[a] + 1, s->out[a]);
            n[a] = hi - lo;
            to.first += (lo - first[a]) * conv_pitch(&y, a);
            from.first += lo * ys[2 + a];
        }
        const int64_t ts[4] = { y.channel, conv_pitch(&y, 0), conv_pitch(&y, 1), 1 };
        ok = mc_conv_portable_copy(k, to, ts, from, ys + 1, k->f, n);
    }
    for (int64_t i0 = 0; i0 < s->stride[0] && ok; i0++) {
        for (int64_t i1 = 0; i1 < s->stride[1] && ok; i1++) {
            for (int64_t i2 = 0; i2 < s->stride[2] && ok; i2++) {
                const struct phase h = phase_of(s, i0, i1, i2);
                ok = phase_sums(k, &y, first, &h);
            }
        }
    }
    return ok;
}

static bool weights(struct mc_conv_making *k)
{
    const struct mc_conv_problem *p = k->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t taps = conv_volume(s->k), *ws = p->at.w, *ys = p->at.y;
    const int64_t positions = conv_volume(s->out);
    k->to->step = MC_MAX(MC_MIN(s->n, (CONV_CHAIN + positions - 1) / positions), 1);
    struct mc_conv_planes q;
    int64_t *offset = mc_calloc((size_t)(2 * taps), sizeof *offset, "plans");
    bool ok = offset && mc_conv_portable_planes(k, &q, offset);
    if (ok) {
        const struct mc_portable_at from = conv_operand(CONV_Y, ys[0], k->f * ys[1]);
        const struct mc_conv_planes dense = { from, { s->out[0], s->out[1], s->out[2] }, 0 };
        const bool same = mc_conv_portable_has_pitch(&dense, ys + 2, s->out) && k->to->step == 1;
        const int64_t yf = same ? ys[1] : k->to->step * positions;
        struct mc_portable_at y = from;
        int64_t rows[4];
        const bool one = !set_rows(&q, s->out, rows) && k->to->step == 1;
        if (!same) { /* filter by filter, the images of a run one after the other */
            const int64_t ts[4] = { yf, conv_pitch(&dense, 0), conv_pitch(&dense, 1), 1 };
            y = mc_conv_portable_take(k, k->f * positions);
            y.image = positions;
            ok = mc_conv_portable_copy(k, y, ts, from, ys + 1, k->f, s->out);
        }
        mc_conv_portable_taps(p, offset + taps);
        struct mc_portable_call *c = ok ? mc_portable_add(k->to, PORTABLE_DOTS, (int)(2 * taps)) : NULL;
        ok = c != NULL;
        if (ok) {
            const int64_t g[14] = { k->f,      k->c,  taps,  1,     positions,           yf,      q.at.image,
                                    q.channel, ws[0], ws[1], one ? 0 : rows[0], rows[1], rows[2], rows[3] };
            memcpy(c->g, g, sizeof g);
            memcpy(c->offset, offset, (size_t)(2 * taps) * sizeof *offset);
            c->from = y;
            c->with = q.at;
            c->to = conv_operand(CONV_W, 0, k->f * ws[0]);
            mc_portable_panel(k->to, c);
        }
    }
    mc_free(offset);
    return ok;
}

struct mc_plan *mc_conv_portable_plan(const struct mc_problem *p_, bool (*make)(struct mc_conv_making *k))
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_portable_plan *made = mc_portable_plan(run);
    if (!made) {
        return NULL;
    }
    struct mc_conv_making k = { p, &made->program, p->s.c / p->s.groups, p->s.f / p->s.groups, 0 };
    made->program.dtype = p->dtype;
    made->program.groups = p->s.groups;
    made->program.images = p->s.n;
    const bool ok = make(&k);
    made->program.workspace = MC_MAX(made->program.workspace, k.most);
    return mc_portable_finish(made, ok);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    static bool (*const by_pass[])(struct mc_conv_making *) = {
        [CONV_FORWARD] = forward,
        [CONV_INPUTS] = inputs,
        [CONV_WEIGHTS] = weights,
    };
    return mc_conv_portable_plan(p, by_pass[conv(p)->s.pass]);
}

const struct mc_solver mc_conv_portable = {
    .name = "portable",
    .portable = true,
    .refuse = mc_conv_portable_refuses,
    .estimate = estimate,
    .plan = plan,
};
