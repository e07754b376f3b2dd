/* run.c: one call. Blocks of operands are transformed and multiplied frequency by frequency, and the sums are
 * transformed back when a block of the result is complete.
 *
 *   forward   y[u] = sum over a of x[u - pad + a] * w[a]                     x by the conjugate of w
 *   inputs    x[i] = sum over a of y[i - (k - 1 - pad) + a] * w[k - 1 - a]   y by the conjugate of w reversed
 *   weights   w[a] = sum over u of x[u - pad + a] * y[u]                     x by the conjugate of y
 *
 * A tile reads `size` elements. The last (k - 1) * dilation of its results have wrapped around and are
 * dropped.
 *
 * Invariant: an operand's block is transformed again only if another one has replaced it. */
#include "heavy/conv/cpu/fft/plan.h"

/* ---- windows ---- */

static int clamp(int64_t v, int64_t most)
{
    return (int)MC_MAX(MC_MIN(v, most), (int64_t)0);
}

/* The elements [lo, hi) of a tile of `size` elements from `from` on that exist in x or y. */
static void clip_window(int64_t from, int64_t extent, int64_t size, int *lo, int *hi)
{
    *lo = clamp(-from, size);
    *hi = clamp(extent - from, size);
}

/* How many elements before the tile's own its window begins (0 unless the operand is read as whole tiles),
 * and the window's size. */
static void window_of_tile(const struct mc_fft_call *x, int axis, int64_t *before, int64_t *size)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t wide = (s->k[axis] - 1) * s->dilation[axis];
    const bool whole = x->role != mc_conv_result(s->pass) && (s->pass != CONV_WEIGHTS || x->role == CONV_X);
    *before = !whole ? 0 : s->pass == CONV_INPUTS ? wide - s->pad[axis] : s->pad[axis];
    *size = whole ? x->d->size : x->d->step[axis - 1];
}

/* Offset of the window of tile m, channel c (counted over groups) of x or y. box: its image, channel, first
 * row and column. */
static int64_t tile_window(const struct mc_fft_call *x, int64_t m, int64_t c, struct mc_fft_lane *lane,
                           int64_t box[4])
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *stride = x->role == CONV_X ? x->r.p->at.x : x->r.p->at.y;
    const int64_t *extent = x->role == CONV_X ? s->in : s->out, *tiles = x->d->tiles;
    const int64_t tile = m % (tiles[0] * tiles[1]), n = m / (tiles[0] * tiles[1]);
    const int64_t position[2] = { tile / tiles[1] * x->d->step[0], tile % tiles[1] * x->d->step[1] };
    int64_t before[2], size[2];
    for (int i = 0; i < 2; i++) {
        window_of_tile(x, 1 + i, &before[i], &size[i]);
    }
    clip_window(position[0] - before[0], extent[1], size[0], &lane->top, &lane->bottom);
    clip_window(position[1] - before[1], extent[2], size[1], &lane->left, &lane->right);
    box[0] = n, box[1] = c, box[2] = position[0], box[3] = position[1];
    return n * stride[0] + c * stride[1] + (position[0] - before[0]) * stride[3] +
           (position[1] - before[1]) * stride[4];
}

static bool is_reversed(const struct mc_conv_shape *s)
{
    return s->flip != (s->pass == CONV_INPUTS);
}

static int64_t filter_window(const struct mc_fft_call *x, int64_t c, int64_t f, struct mc_fft_lane *lane,
                             int64_t box[4])
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *stride = x->r.p->at.w;
    lane->top = lane->left = 0;
    box[0] = f, box[1] = c, box[2] = box[3] = 0;
    lane->bottom = (int)s->k[1];
    lane->right = (int)s->k[2];
    return f * stride[0] + c * stride[1] +
           (is_reversed(s) ? (s->k[1] - 1) * stride[3] + (s->k[2] - 1) * stride[4] : 0);
}

int mc_fft_lanes(const struct mc_fft_call *x, int64_t i, int64_t j, struct mc_fft_window *w, int64_t box[4])
{
    const struct fft *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const struct spectra *sp = &d->s[x->role];
    const bool result = x->role == mc_conv_result(s->pass), filter = x->role == CONV_W;
    const int64_t *stride = x->role == CONV_X ? x->r.p->at.x : x->r.p->at.y;
    const int count = (int)MC_MIN(x->n[sp->lane] - j, (int64_t)d->kernel->lanes);
    const int64_t sign = is_reversed(s) ? -1 : 1;
    w->rs = filter ? sign * x->r.p->at.w[3] : stride[3];
    w->cs = filter ? sign * x->r.p->at.w[4] : stride[4];
    w->dr = filter ? (int)s->dilation[1] : 1;
    w->dc = filter ? (int)s->dilation[2] : 1;
    const int64_t next = filter ? x->r.p->at.w[sp->lane == C]
                                : stride[1]; /* from a channel's window to the next one's */
    int64_t e = 0;
    for (int l = 0; l < d->kernel->lanes; l++) {
        struct mc_fft_lane *lane = &w->lane[l];
        int64_t index[NLETTER] = { 0 }, own[4];
        *lane = (struct mc_fft_lane){ 0 };
        if (l >= count) {
            continue;
        }
        if (l > 0 && sp->lane != M) {
            *lane = w->lane[0];
            e += next;
        } else {
            index[sp->row] = x->at[sp->row] + i;
            index[sp->lane] = x->at[sp->lane] + j + l;
            const int64_t c = x->group * d->all[C] + index[C], f = x->group * d->all[F] + index[F];
            e = filter ? filter_window(x, index[C], f, lane, own)
                       : tile_window(x, index[M], x->role == CONV_X ? c : f, lane, own);
            memcpy(box, own, l == 0 ? sizeof own : 0);
        }
        lane->at = (float *)(void *)x->r.at[x->role] + e;
        lane->add = !result   ? NULL
                    : x->more ? lane->at
                    : x->r.c0 ? (const float *)(const void *)x->r.c0 + e
                              : NULL;
    }
    return count;
}

/* ---- tasks ---- */

static void forward_task(void *arg, int64_t task, int slot)
{
    const struct mc_fft_call *x = arg;
    const struct fft *d = x->d;
    const struct spectra *s = &d->s[x->role];
    const int64_t groups = fft_lanes_of(x, s), i = task / groups, j = task % groups * d->kernel->lanes;
    const enum mc_conv_pass pass = x->r.p->s.pass;
    struct mc_fft_window w;
    int64_t box[4];
    mc_fft_lanes(x, i, j, &w, box);
    if (d->which < 0) {
        const bool narrow = pass == CONV_WEIGHTS && x->role == CONV_Y;
        const int role = x->role == CONV_W ? WINOGRAD_FILTER : narrow ? WINOGRAD_NARROW : WINOGRAD_WHOLE;
        d->kernel->winograd_forward[fft_winograd(d)](&w, role, fft_place(x, x->role, i, j), s->step);
        return;
    }
    d->kernel->forward[d->which](&w, x->role == (pass == CONV_WEIGHTS ? CONV_Y : CONV_W), s->far,
                                 fft_slot(x, slot), fft_place(x, x->role, i, j), s->step, s->width);
}

void mc_fft_finish(const struct mc_fft_call *x, const struct mc_fft_window *w, int count, int64_t j,
                   const int64_t box[4])
{
    const struct spectra *s = &x->d->s[x->role];
    const bool filter = x->role == CONV_W;
    int64_t at[5] = { box[0], box[1], 0, box[2], box[3] };
    int64_t size[5] = { 1, 1, 1, w->lane[0].bottom, w->lane[0].right };
    if (!x->r.epilogue || !x->done) {
        return;
    }
    if (s->lane != M) {
        size[filter && s->lane == F ? 0 : 1] = count;
        conv_finish(&x->r, at, size);
        return;
    }
    for (int l = 0; l < count; l++) {
        struct mc_fft_lane lane;
        int64_t own[4];
        tile_window(x, x->at[M] + j + l, box[1], &lane, own);
        at[0] = own[0], at[3] = own[2], at[4] = own[3];
        size[3] = lane.bottom, size[4] = lane.right;
        conv_finish(&x->r, at, size);
    }
}

static void inverse_task(void *arg, int64_t task, int slot)
{
    const struct mc_fft_call *x = arg;
    const struct fft *d = x->d;
    const struct spectra *s = &d->s[x->role];
    const int64_t groups = fft_lanes_of(x, s), i = task / groups, j = task % groups * d->kernel->lanes;
    struct mc_fft_window w;
    int64_t box[4];
    const int count = mc_fft_lanes(x, i, j, &w, box);
    const float beta = x->more ? 1 : (float)x->r.p->beta;
    if (d->which < 0) {
        d->kernel->winograd_inverse[fft_winograd(d)](fft_spectra(x, x->role) + i * s->next + j, s->step,
                                                     x->role == CONV_W ? WINOGRAD_FILTER : WINOGRAD_NARROW,
                                                     (float)x->r.p->alpha, beta, &w);
        mc_fft_finish(x, &w, count, j, box);
        return;
    }
    d->kernel->inverse[d->which](fft_spectra(x, x->role) + i * s->next + j, s->step, s->width, fft_scale(x),
                                 beta, fft_slot(x, slot), &w);
    mc_fft_finish(x, &w, count, j, box);
}

/* Winograd's sums over tiles are done in shorter pieces, because its transforms amplify their errors. */
static int64_t depth_of_piece(const struct mc_fft_call *x)
{
    return x->d->which < 0 && x->d->summed == M ? 32 : 64;
}

/* Frequencies of one task. */
static int64_t frequencies_of_task(const struct fft *d)
{
    return d->which < 0 ? 1 : 4;
}

struct mc_fft_product mc_fft_product_of(const struct mc_fft_call *x)
{
    const struct fft *d = x->d;
    const struct spectra *a = &d->s[d->a], *b = &d->s[d->b], *c = &d->s[d->c];
    return (struct mc_fft_product){
        .rows = x->n[d->rows],
        .columns = fft_lanes_of(x, c) * d->kernel->lanes,
        .depth = x->n[d->summed],
        .piece = depth_of_piece(x),
        .add = x->add,
        .a_row = a->row == d->rows ? a->next : 1,
        .a_depth = a->row == d->rows ? 1 : a->next,
        .a_im = a->width,
        .b_depth = b->next,
        .b_im = b->width,
        .b_panel = b->panel,
        .c_row = c->next,
        .c_im = c->width,
    };
}

static void product_task(void *arg, int64_t task, int slot)
{
    const struct mc_fft_call *x = arg;
    const struct fft *d = x->d;
    const struct spectra *a = &d->s[d->a], *b = &d->s[d->b], *c = &d->s[d->c];
    const int64_t stop = MC_MIN((task + 1) * frequencies_of_task(d), d->frequencies);
    struct mc_fft_product p = mc_fft_product_of(x);
    (void)slot;
    for (int64_t i = task * frequencies_of_task(d); i < stop; i++) {
        const int64_t next = d->ahead && i + 1 < d->frequencies;
        p.a_ahead = next * a->step, p.b_ahead = next * b->step, p.c_ahead = next * c->step;
        p.a = fft_spectra(x, d->a) + i * a->step;
        p.b = fft_spectra(x, d->b) + i * b->step;
        p.c = fft_spectra(x, d->c) + i * c->step;
        (d->which < 0 ? d->kernel->real_product : d->kernel->product)(&p);
    }
}

/* ---- blocks ---- */

static void transform(struct mc_fft_call *x, int role, mc_team_task *task, double seconds)
{
    const struct spectra *s = &x->d->s[role];
    x->role = role;
    mc_team_tasks(task, x, x->n[s->row] * fft_lanes_of(x, s), x->d->slots, x->r.threads, seconds);
}

static bool is_slim(const struct fft *d, int role)
{
    return d->slim && role == CONV_W;
}

/* Transforms an operand's block unless the workspace has it already. */
static void load_block(struct mc_fft_call *x, int role, int64_t loaded[4], double seconds)
{
    const struct spectra *s = &x->d->s[role];
    const bool slim = is_slim(x->d, role);
    if (role == CONV_W && x->r.prepared) {
        return;
    }
    const int64_t now[4] = { x->group, slim ? 0 : x->at[s->row], slim ? 0 : x->at[s->lane], 1 };
    if (memcmp(now, loaded, sizeof now) == 0) {
        return;
    }
    memcpy(loaded, now, sizeof now);
    if (slim) {
        mc_fft_slim_rows(x, seconds);
    } else {
        transform(x, role, forward_task, seconds);
    }
}

static void multiply(struct mc_fft_call *x, double seconds)
{
    if (x->d->slim) {
        mc_fft_slim_products(x, seconds);
    } else {
        mc_team_tasks(product_task, x, conv_ceil(x->d->frequencies, frequencies_of_task(x->d)), x->d->slots,
                      x->r.threads, seconds);
    }
}

/* Block `at` of that letter is the one in work. */
static void set_block(struct mc_fft_call *x, int letter, int64_t at)
{
    const struct fft *d = x->d;
    x->at[letter] = at * d->block[letter];
    x->n[letter] = MC_MIN(d->block[letter], d->all[letter] - x->at[letter]);
}

size_t mc_fft_prepared(const struct fft *d, int64_t groups)
{
    return (size_t)(groups * conv_ceil(d->all[C], d->block[C]) * conv_ceil(d->all[F], d->block[F])) *
           d->s[CONV_W].bytes;
}

void mc_fft_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                    int threads)
{
    const struct fft *d = (const struct fft *)(const void *)plan;
    struct mc_fft_call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const int64_t c = conv_ceil(d->all[C], d->block[C]), f = conv_ceil(d->all[F], d->block[F]),
                  all = x.r.p->s.groups * c * f;
    x.r.prepared = prepared;
    for (int64_t b = 0; b < all; b++) {
        x.group = b / f / c;
        set_block(&x, C, b / f % c);
        set_block(&x, F, b % f);
        transform(&x, CONV_W, forward_task, mc_conv_work(x.r.p) / (double)all);
    }
}

mc_status mc_fft_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct fft *d = (const struct fft *)(const void *)plan;
    struct mc_fft_call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    int64_t blocks[NLETTER], all = x.r.p->s.groups, a_loaded[4] = { 0 }, b_loaded[4] = { 0 };
    for (int i = 0; i < NLETTER; i++) {
        blocks[i] = conv_ceil(d->all[d->order[i]], d->block[d->order[i]]);
        all *= blocks[i];
    }
    const double seconds = mc_conv_work(x.r.p) / (double)all;
    for (int64_t b = 0; b < all; b++) {
        const int64_t at[NLETTER] = { b / blocks[2] / blocks[1] % blocks[0], b / blocks[2] % blocks[1],
                                      b % blocks[2] };
        x.group = b / blocks[2] / blocks[1] / blocks[0];
        for (int i = 0; i < NLETTER; i++) {
            set_block(&x, d->order[i], at[i]);
        }
        const bool last = x.at[d->summed] + x.n[d->summed] == d->all[d->summed];
        x.add = !d->partial && x.at[d->summed] > 0;
        x.more = d->partial && x.at[d->summed] > 0;
        x.done = last;
        load_block(&x, d->a, a_loaded, seconds);
        load_block(&x, d->b, b_loaded, seconds);
        multiply(&x, seconds);
        if (!is_slim(d, d->c) && (d->partial || last)) {
            transform(&x, d->c, inverse_task, seconds);
        } else if (is_slim(d, d->c) && (b + 1) % (blocks[0] * blocks[1] * blocks[2]) == 0) {
            mc_fft_slim_back(&x, seconds);
        }
    }
    return MC_OK;
}
