/* cuda_whole.c: float32 convolutions of small images on tensor cores, as pairs of halves, by blocks that keep whole images in
 * shared memory (whole.cu): the inner layers of nets for small pictures, whose windows overlap many times.
 *
 *   forward   y = windows of x times filters
 *   inputs    x = windows of y times filters turned round, with stride 1
 *   weights   w = y' times x as each tap sees it
 *
 * Invariant: images lie as bc01, each channel without gaps; those of a block fit in shared memory. */
#include "conv/cuda.h"

static const char text[] = {
#include "conv/whole_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_whole_text = { "conv/whole.cu", text };

enum { TILE = 32, WARPS = 8, MOST_WARPS = 16, UNITS = 2, MOST_CHANNELS = 64, STEPS = 4, SLOTS = 3, MOST_SHARED = 220 << 10 };

struct args {
    const void *x, *y, *w;
    void *to;
    const void *c0, *bias;
    void *filters, *scale, *parts, *cut;
    int64_t xs, ys, ts[2], ws[4];
    int n, channels, results, chunks, in[2], out[2], pad[2], stride[2], dilation[2], k[2];
    int images, down, right, tiles, steps, blocks, per_set, fours;
    float alpha, beta;
};
struct whole {
    struct mc_plan base;
    void *main, *first, *last;  /* gather after pack; weights after cut, then add */
    struct mc_grid grid, first_grid, last_grid;
    struct args args;
    int cc, fb;                 /* channels, and filters of y, that are taken at once */
    int64_t w_first;            /* elements from w to the tap that is read first */
    size_t scale_at, cut_at;    /* in the workspace */
    bool fours;
};

static int up(int64_t n, int unit)
{
    return (int)((n + unit - 1) / unit * unit);
}

/* ---- a call ---- */

static bool aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct whole *d = (const struct whole *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    struct mc_cuda *gpu = mc_cuda_current();
    struct args a = d->args;
    (void)threads;
    a.x = operand[p->s.pass == CONV_INPUTS ? CONV_Y : CONV_X];
    a.y = operand[CONV_Y];
    a.w = (const float *)operand[CONV_W] + d->w_first;
    a.to = weights ? (float *)operand[CONV_W] + d->w_first : mc_conv_cuda_result(p, operand);
    a.c0 = p->beta != 0 ? (float *)operand[CONV_C0] + (weights ? d->w_first : 0) : NULL;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a.filters = a.parts = workspace;
    a.scale = (char *)workspace + d->scale_at;
    a.fours = d->fours && aligned(a.x) && (!weights || aligned(a.y));
    a.cut = (char *)workspace + d->cut_at;
    TRY(mc_cuda_launch(gpu, d->first, weights ? "cut" : "pack", &d->first_grid, &a, sizeof a));
    TRY(mc_cuda_launch(gpu, d->main, weights ? "weights" : "gather", &d->grid, &a, sizeof a));
    return weights ? mc_cuda_launch(gpu, d->last, "add", &d->last_grid, &a, sizeof a) : MC_OK;
}

/* ---- a plan ---- */

static void filter_strides(struct whole *d, const struct mc_conv_problem *p)
{
    const bool back = p->s.pass == CONV_INPUTS;
    struct args *a = &d->args;
    a->ws[0] = p->at.w[back ? 1 : 0];
    a->ws[1] = p->at.w[back ? 0 : 1];
    for (int i = 0; i < 2; i++) {
        const bool turned = p->s.flip != back;
        a->ws[2 + i] = turned ? -p->at.w[3 + i] : p->at.w[3 + i];
        d->w_first += turned ? (p->s.k[1 + i] - 1) * p->at.w[3 + i] : 0;
    }
}

static void shape(struct whole *d, const struct mc_conv_problem *p)
{
    const bool back = p->s.pass == CONV_INPUTS, weights = p->s.pass == CONV_WEIGHTS;
    const struct mc_conv_shape *s = &p->s;
    struct args *a = &d->args;
    const int64_t *const to = back ? p->at.x : p->at.y;
    *a = (struct args){ .n = (int)s->n, .channels = (int)(back ? s->f : s->c), .results = (int)(back ? s->c : s->f), .xs = back ? p->at.y[0] : p->at.x[0],
                        .ys = p->at.y[0], .ts = { to[0], to[1] }, .images = 1, .alpha = (float)p->alpha, .beta = (float)p->beta };
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)(back ? s->out[1 + i] : s->in[1 + i]);
        a->out[i] = (int)(back ? s->in[1 + i] : s->out[1 + i]);
        a->k[i] = (int)s->k[1 + i];
        a->stride[i] = (int)s->stride[1 + i];
        a->dilation[i] = (int)s->dilation[1 + i];
        a->pad[i] = (int)(back ? (s->k[1 + i] - 1) * s->dilation[1 + i] - s->pad[1 + i] : s->pad[1 + i]);
    }
    filter_strides(d, p);
    a->chunks = (a->channels + MOST_CHANNELS - 1) / MOST_CHANNELS;
    d->cc = up((a->channels + a->chunks - 1) / a->chunks, 16);
    a->chunks = (a->channels + d->cc - 1) / d->cc;
    d->fb = a->results > TILE ? 2 * TILE : TILE;
    const int places = a->in[0] * a->in[1], outs = a->out[0] * a->out[1];
    d->fours = a->xs % 4 == 0 && (places % 4 == 0 || a->channels % 4 == 0) &&
               (!weights || (a->ys % 4 == 0 && (outs % 4 == 0 || a->results % 4 == 0)));
}

/* Halves of an image's chunk of channels; images, before they are cut, lie where filters come after. */
static size_t gather_bytes(const struct whole *d)
{
    const struct args *a = &d->args;
    const size_t places = (size_t)a->images * (size_t)(a->in[0] * a->in[1]), cc = (size_t)d->cc, ring = (size_t)(SLOTS * STEPS * a->right) * 128 * 16;
    return (places + 1) * (cc + 8) * 2 * sizeof(uint16_t) + (size_t)a->steps * 16 + 256 + MC_MAX(ring, places * cc * sizeof(float));
}

static void plan_gather(struct whole *d)
{
    struct args *a = &d->args;
    const int outs = a->out[0] * a->out[1], columns = up(a->results, TILE) / TILE, processors = mc_cuda_current() ? MC_MAX(mc_cuda_current()->processors, 1) : 100;
    a->steps = up(a->k[0] * a->k[1] * (d->cc / 16), STEPS);
    a->right = MC_MIN(columns, MC_MAX(MOST_WARPS / MC_MAX(up(outs, TILE) / TILE, 1), 1));
    a->images = MC_MAX(MC_MIN(MC_MIN(WARPS * TILE / (outs * a->right), (a->n + processors - 1) / processors), a->n), 1);
    a->down = up(a->images * outs, TILE) / TILE;
    const int across = (columns + a->right - 1) / a->right;
    a->tiles = across * a->right * TILE / 8;   /* every warp has filters to read */
    d->grid = (struct mc_grid){ { (unsigned)((a->n + a->images - 1) / a->images), (unsigned)across, 1 }, { (unsigned)(32 * a->down * a->right), 1, 1 },
                                gather_bytes(d) };
    d->first_grid = (struct mc_grid){ { (unsigned)a->tiles * 8, 1, 1 }, { 256, 1, 1 }, 0 };
    d->scale_at = (size_t)(a->chunks * a->steps) * (size_t)a->tiles * 32 * 16;
    d->base.workspace = d->scale_at + (size_t)a->tiles * 8 * sizeof(float);
}

static void plan_weights(struct whole *d)
{
    struct args *a = &d->args;
    const int taps = a->k[0] * a->k[1], c16 = d->cc / 16, down = d->fb / TILE, most = MC_MAX(10 / down * UNITS / c16, 1), f_blocks = (a->results + d->fb - 1) / d->fb;
    const int sets = (taps + most - 1) / most, processors = mc_cuda_current() ? MC_MAX(mc_cuda_current()->processors, 1) : 100;
    a->per_set = (taps + sets - 1) / sets;
    const int jobs = (taps + a->per_set - 1) / a->per_set * a->chunks * f_blocks, lines = up((int64_t)a->out[0] * a->out[1], 16);
    const int64_t weights = (int64_t)taps * a->results * a->channels;
    const size_t x = (size_t)(2 * a->in[0] * a->in[1] * (d->cc + 8)) * sizeof(uint16_t), y = (size_t)(2 * d->fb * (lines + 8)) * sizeof(uint16_t);
    a->blocks = MC_MIN(a->n, MC_MAX(processors / jobs, 1));
    d->grid = (struct mc_grid){ { (unsigned)a->blocks, (unsigned)jobs, 1 }, { (unsigned)(32 * down * ((a->per_set * c16 + UNITS - 1) / UNITS)), 1, 1 },
                                2 * (x + y) + (size_t)(d->cc + 8) * sizeof(uint16_t) + (size_t)lines * 16 };
    d->first_grid = (struct mc_grid){ { (unsigned)a->n, (unsigned)(a->chunks + f_blocks), 1 }, { 256, 1, 1 }, MC_MAX(x, y) };
    d->last_grid = (struct mc_grid){ { (unsigned)((weights + 31) / 32), 1, 1 }, { 256, 1, 1 }, 0 };
    d->cut_at = ((size_t)(a->blocks * weights) * sizeof(float) + 255) / 256 * 256;
    d->scale_at = d->cut_at + (size_t)a->n * ((size_t)a->chunks * x + (size_t)f_blocks * y);
    d->base.workspace = d->scale_at + (size_t)(a->n * (a->chunks + f_blocks)) * sizeof(float);
}

static void lay_out(struct whole *d, const struct mc_conv_problem *p)
{
    shape(d, p);
    if (p->s.pass == CONV_WEIGHTS) {
        plan_weights(d);
    } else {
        plan_gather(d);
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    struct mc_str defines = { 0 };
    struct whole *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    lay_out(d, p);
    const unsigned fours = (d->grid.threads[0] + 127) / 128;    /* registers are given out to four warps at a time: 128 to each thread of 16 */
    mc_str_addf(&defines, "#define PASS %d\n#define CC %d\n#define FB %d\n#define UNITS %d\n#define ACT %d\n#define THREADS %u\n#define BLOCKS %u\n",
                (int)p->s.pass, d->cc, d->fb, (int)UNITS, (int)p->act, d->grid.threads[0], MC_MAX(MOST_WARPS / 4 / fours, 1));
    d->main = defines.bad ? NULL : mc_cuda_kernel(&mc_conv_whole_text, defines.s, weights ? "weights" : "gather");
    d->first = d->main ? mc_cuda_kernel(&mc_conv_whole_text, defines.s, weights ? "cut" : "pack") : NULL;
    d->last = d->first && weights ? mc_cuda_kernel(&mc_conv_whole_text, defines.s, "add") : NULL;
    mc_str_free(&defines);
    if (!d->first || (weights && !d->last)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

/* ---- what it takes ---- */

static bool dense_places(const int64_t at[5], const int64_t size[3])
{
    return at[4] == 1 && (size[1] == 1 || at[3] == size[2]);
}

static bool lies_well(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return dense_places(p->at.x, s->in) && dense_places(p->at.y, s->out) &&
           (s->pass == CONV_INPUTS || s->c == 1 || p->at.x[1] == s->in[1] * s->in[2]) && (s->pass == CONV_FORWARD || s->f == 1 || p->at.y[1] == s->out[1] * s->out[2]);
}

static bool small(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct whole d = { .cc = 0 };
    bool ok = s->n < INT32_MAX / 1024 && s->c <= 4096 && s->f <= 4096;
    for (int i = 1; i < 3; i++) {
        ok = ok && s->in[i] <= 64 && s->out[i] <= 64 && s->k[i] <= 16 && s->dilation[i] <= 8 && s->stride[i] <= 8 && s->pad[i] >= 0 && s->pad[i] <= 64 &&
             (s->pass != CONV_INPUTS || (s->k[i] - 1) * s->dilation[i] >= s->pad[i]);
    }
    if (!ok) {
        return false;
    }
    lay_out(&d, p);
    const int64_t processors = mc_cuda_current() ? mc_cuda_current()->processors : 100;
    return d.grid.shared <= MOST_SHARED && d.grid.threads[0] <= 32 * MOST_WARPS && d.grid.blocks[1] <= 4 * processors && d.first_grid.shared <= MOST_SHARED;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32                     ? "multiplies float32"
           : mc_conv_hollow(p)                        ? mc_conv_hollow(p)
           : p->wide                                  ? "sums in float32, and conv.precision asks for float64"
           : p->s.unshared || p->s.groups > 1         ? "has the same filters everywhere and all channels for each"
           : p->s.in[0] != 1 || p->s.k[0] != 1 || p->s.out[0] != 1 || p->s.pad[0] != 0 ? "takes images in one or two dimensions"
           : p->s.pass == CONV_INPUTS && (p->s.stride[1] != 1 || p->s.stride[2] != 1) ? "goes back with stride 1 alone"
           : !lies_well(p)                            ? "wants images as bc01, without gaps"
           : !small(p)                                ? "takes small images, a block's in shared memory"
                                                      : mc_cuda_too_old();
}

/* Three multiplications of halves for each, by instructions that reach half of the tensor cores' speed; what meets zeros, too.
 * The gradient of filters cuts images first, and adds up parts at last. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct whole d = { .cc = 0 };
    lay_out(&d, p);
    const struct args *a = &d.args;
    const double terms = (double)up(a->out[0] * a->out[1], 16) * up(a->results, TILE) * d.cc * a->chunks * a->k[0] * a->k[1];
    return (p->s.pass == CONV_WEIGHTS ? 25e-6 : 10e-6) + mc_cuda_seconds(MC_FLOAT16, false, 6.0 * (double)a->n * terms, mc_conv_bytes(p), 0.3);
}

const struct mc_solver mc_conv_cuda_whole = { .name = "whole", .refuse = refuse, .estimate = estimate, .plan = plan };
