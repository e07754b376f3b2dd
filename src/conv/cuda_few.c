/* cuda_few.c: images of few channels on a GPU (few.cu): the first layer of a net, forward and the gradient of its filters.
 *
 * Bound by memory: y is written, or read, once; what takes longer there is the number of taps.
 *
 * Invariant: filters, and a tile's lines of x, fit in shared memory. */
#include "conv/cuda.h"

static const char tile[] = {
#include "conv/few_tile_text.h"
    , 0 };
static const char lines[] = {
#include "conv/few_lines_text.h"
    , 0 };
static const char text[] = {
#include "conv/few_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_few_tile_text = { "conv/few_tile.cu", tile, NULL }, mc_conv_few_lines_text = { "conv/few_lines.cu", lines, &mc_conv_few_tile_text },
                          mc_conv_few_text = { "conv/few.cu", text, &mc_conv_few_lines_text };

enum { P = 4, WARPS = 8, MOST_CHANNELS = 4, MOST_TAPS = 49, MOST_WIDTH = 11, MOST_STRIDE = 2 };
enum { MOST_SHARED = 80 << 10, MOST_SUMS = 100 };  /* bytes of a block; registers of a thread */

struct args {
    const void *x;
    void *w, *y;
    const void *c0, *bias;
    void *parts;
    int64_t xs[4], ws[4], ys[4];
    int n, f, in[2], out[2], pad[2];
    int images, rows, across, pitch, down, tiles, lines, blocks, filters, whole;
    float alpha, beta;
};
struct few {
    struct mc_plan base;
    void *kernel, *add;
    struct mc_grid grid, add_grid;
    struct args args;
    int64_t w_first;            /* elements from w to the tap that is read first */
    bool beside;                /* y's filters lie side by side */
    bool fours;                 /* y's lines, or such filters, can be taken by fours */
    int q, taps;                /* filters of a thread; weights: lines of taps */
};

/* ---- a call ---- */

static bool aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct few *d = (const struct few *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    struct args a = d->args;
    (void)threads;
    a.x = operand[CONV_X];
    a.w = (float *)operand[CONV_W] + d->w_first;
    a.y = operand[CONV_Y];
    a.c0 = p->beta != 0 ? (float *)operand[CONV_C0] + (weights ? d->w_first : 0) : NULL;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a.parts = workspace;
    a.whole = d->fours && aligned(a.y);
    TRY(mc_cuda_follow(mc_cuda_current(), d->kernel, weights ? "weights" : "forward", &d->grid, &a, sizeof a));
    return weights ? mc_cuda_follow(mc_cuda_current(), d->add, "add", &d->add_grid, &a, sizeof a) : MC_OK;
}

/* ---- a plan ---- */

static int up(int64_t n, int unit)
{
    return (int)((n + unit - 1) / unit * unit);
}

static void copy4(int64_t to[4], const int64_t *a, const int64_t *b)    /* two outer strides, two inner ones */
{
    to[0] = a[0];
    to[1] = a[1];
    to[2] = b[0];
    to[3] = b[1];
}

int64_t mc_few_strides(const struct mc_conv_problem *p, int64_t xs[4], int64_t ws[4], int64_t ys[4])
{
    int64_t first = 0;
    copy4(xs, p->at.x, p->at.x + 3);
    copy4(ws, p->at.w, p->at.w + 3);
    copy4(ys, p->at.y, p->at.y + 3);
    for (int i = 1; i < 3 && p->s.flip; i++) {
        first += (p->s.k[i] - 1) * p->at.w[2 + i];
        ws[1 + i] = -ws[1 + i];
    }
    return first;
}

/* A line begins in a bank of its own for as many threads as read at once. */
static int pitch_of(const struct mc_conv_shape *s, int across)
{
    const int sh = (int)s->stride[1], sw = (int)s->stride[2];
    int unit = ((across - 1) * P * sw + up((P - 1) * sw + s->k[2], 4)) / 4;
    for (int tries = 0; tries < 8 && (unit * sh - across * sw) % 8 != 0; tries++) {
        unit++;
    }
    return unit * 4;
}

static size_t tile_bytes(const struct few *d, const struct mc_conv_shape *s)
{
    return (size_t)(d->args.images * (int)s->c * d->args.lines * d->args.pitch) * sizeof(float);
}

/* Lines of x for so many of y, whose last set of taps may reach beyond the last tap. */
static int lines_of(const struct few *d, const struct mc_conv_shape *s, int rows)
{
    return (rows - 1) * (int)s->stride[1] + up(s->k[1], d->taps);
}

/* Cuts y in tiles: rows, of about so many groups of places and no more bytes than that. */
static void cut(struct few *d, const struct mc_conv_shape *s, int groups, size_t bytes)
{
    struct args *a = &d->args;
    a->images = 1;
    a->across = up(s->out[2], P) / P;
    a->pitch = pitch_of(s, a->across);
    a->rows = (int)MC_MIN(s->out[1], (int64_t)MC_MAX(groups / a->across, 1));
    for (a->lines = lines_of(d, s, a->rows); a->rows > 1 && tile_bytes(d, s) > bytes; a->lines = lines_of(d, s, a->rows)) {
        a->rows--;
    }
    a->down = (int)conv_ceil(s->out[1], a->rows);
    a->rows = (int)conv_ceil(s->out[1], a->down);
    a->lines = lines_of(d, s, a->rows);
    while (a->down == 1 && d->taps > 1 && 2 * a->images * a->rows * a->across <= groups && a->images < s->n && 2 * tile_bytes(d, s) <= bytes) {
        a->images *= 2;
    }
    a->tiles = (int)(conv_ceil(s->n, a->images) * a->down);
}

bool mc_few_beside(const struct mc_conv_problem *p)
{
    return p->at.y[1] == 1 && p->at.y[4] != 1;
}

static void shape(struct few *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct args *a = &d->args;
    *a = (struct args){ .n = (int)s->n, .f = (int)s->f, .alpha = (float)p->alpha, .beta = (float)p->beta };
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)s->in[i + 1];
        a->out[i] = (int)s->out[i + 1];
        a->pad[i] = (int)s->pad[i + 1];
    }
    d->w_first = mc_few_strides(p, a->xs, a->ws, a->ys);
    d->beside = mc_few_beside(p);
    d->fours = (d->beside ? a->f : a->out[1]) % P == 0 && a->ys[0] % P == 0 && a->ys[d->beside ? 3 : 1] % P == 0 && a->ys[2] % P == 0;
    if (s->pass == CONV_FORWARD) {
        d->q = 8;
        d->taps = 1;
        a->filters = up(s->f, d->q) + 4;
        cut(d, s, 192, MOST_SHARED / 2);
    } else {
        d->taps = (int)MC_MIN(s->k[1], MC_MAX((int64_t)MOST_SUMS / 4 / s->k[2], (int64_t)1));
        d->q = 8 * d->taps * s->k[2] <= MOST_SUMS ? 8 : 4;
        cut(d, s, 512, MOST_SHARED / 2);
    }
}

static size_t filter_bytes(const struct few *d, const struct mc_conv_shape *s)
{
    return (size_t)(s->c * s->k[1] * s->k[2] * d->args.filters) * sizeof(float);
}

static void grids(struct few *d, const struct mc_conv_shape *s)
{
    struct args *a = &d->args;
    const int64_t processors = mc_cuda_current() ? MC_MAX(mc_cuda_current()->processors, 1) : 100, weights = s->f * s->c * s->k[1] * s->k[2];
    if (s->pass == CONV_FORWARD) {
        const int64_t spread = MC_MIN(conv_ceil(s->f, d->q), MC_MAX(2 * processors / a->tiles, (int64_t)1));
        d->grid = (struct mc_grid){ { (unsigned)a->tiles, (unsigned)spread, 1 }, { (unsigned)MC_MIN(up(a->rows * a->across, 32), 256), 1, 1 },
                                    filter_bytes(d, s) + tile_bytes(d, s) };
        return;
    }
    const int64_t jobs = conv_ceil(s->f, d->q) * s->c * conv_ceil(s->k[1], d->taps), blocks = conv_ceil(jobs, WARPS);
    a->blocks = (int)MC_MIN((int64_t)a->tiles, MC_MAX(processors / blocks, (int64_t)1));
    d->grid = (struct mc_grid){ { (unsigned)a->blocks, (unsigned)blocks, 1 }, { 32 * WARPS, 1, 1 }, 2 * tile_bytes(d, s) };
    d->add_grid = (struct mc_grid){ { (unsigned)conv_ceil(weights, 32), 1, 1 }, { 256, 1, 1 }, 0 };
    d->base.workspace = (size_t)(a->blocks * weights) * sizeof(float);
}

static bool load(struct few *d, const struct mc_conv_problem *p)
{
    struct mc_str defines = { 0 };
    const struct mc_conv_shape *s = &p->s;
    const bool weights = s->pass == CONV_WEIGHTS;
    mc_str_addf(&defines, "#define PASS %d\n#define C %d\n#define KH %d\n#define KW %d\n#define SH %d\n#define SW %d\n#define Q %d\n#define TA %d\n"
                "#define BESIDE %d\n#define HAS_C0 %d\n#define HAS_BIAS %d\n#define ACT %d\n", (int)s->pass, (int)s->c, (int)s->k[1], (int)s->k[2], (int)s->stride[1],
                (int)s->stride[2], d->q, d->taps, d->beside, p->beta != 0, p->has_bias, (int)p->act);
    const struct mc_cuda_named kernels[] = { { &d->kernel, weights ? "weights" : "forward" }, { &d->add, weights ? "add" : NULL } };
    return mc_cuda_kernels(&mc_conv_few_text, &defines, kernels, NELEM(kernels));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct few *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    shape(d, p);
    grids(d, &p->s);
    if (!load(d, p)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

/* ---- what it takes ---- */

static bool fits(const struct mc_conv_problem *p)
{
    struct few d = { .q = 0 };
    shape(&d, p);
    return (p->s.pass == CONV_FORWARD ? filter_bytes(&d, &p->s) : tile_bytes(&d, &p->s)) + tile_bytes(&d, &p->s) <= MOST_SHARED;
}

static bool small(const struct mc_conv_problem *p)
{
    return p->s.stride[1] <= MOST_STRIDE && p->s.stride[2] <= MOST_STRIDE && p->s.k[2] <= MOST_WIDTH && p->s.k[1] * p->s.k[2] <= MOST_TAPS;
}

/* Places and cells are counted in ints. */
static bool counted(const struct mc_conv_problem *p)
{
    const int64_t most = INT32_MAX / 64;
    bool ok = p->s.n < most && p->s.f < 4096 && p->s.n * p->s.out[1] < most;
    for (int i = 1; i < 3; i++) {
        ok = ok && p->s.in[i] < 8192 && p->s.out[i] < 8192 && p->s.pad[i] < 4096 && p->s.pad[i] > -4096;
    }
    return ok;
}

const char *mc_few_refuse(const struct mc_conv_problem *p)
{
    return mc_conv_hollow(p)                  ? mc_conv_hollow(p)
           : p->wide                          ? "sums in float32, and conv.precision asks for float64"
           : p->s.pass == CONV_INPUTS         ? "goes forward, and back to filters"
           : p->s.unshared || p->s.groups > 1 ? "has the same filters everywhere and all channels for each"
           : p->s.c > MOST_CHANNELS           ? "takes up to four channels"
           : p->s.in[0] != 1 || p->s.k[0] != 1 || p->s.out[0] != 1 || p->s.pad[0] != 0 ? "takes images in one or two dimensions"
           : !counted(p)                      ? "takes no such large images"
           : p->s.dilation[1] != 1 || p->s.dilation[2] != 1 ? "takes no dilation"
           : p->at.y[4] != 1 && p->at.y[1] != 1 && p->s.out[2] > 1 ? "wants lines or filters of y side by side"
                                                                   : NULL;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32 ? "multiplies float32"
           : mc_few_refuse(p)     ? mc_few_refuse(p)
           : !small(p)            ? "takes small filters, strides up to 2"
           : !fits(p)             ? "has no room for such lines in shared memory"
                                  : mc_cuda_too_old();
}

static double estimate(const struct mc_problem *p)
{
    return mc_conv_cuda_seconds(conv(p), 0.5);
}

const struct mc_solver mc_conv_cuda_few = { .name = "few", .refuse = refuse, .estimate = estimate, .plan = plan };
