/* tensor.c: images of few channels on a GPU's tensor cores (tensor.cu), as in the first layer of a net in
 * halves, in TF32 where that is allowed, or in full float32: forward and the gradient of the filters.
 *
 * Invariant: a block's tile of x, forward with the fragments of filters, and for weights its sums, fit in
 * shared memory. */
#include "heavy/conv/cuda/small_channels/small_channels.h"

static const char cells[] = {
#include "heavy/conv/cuda/small_channels/element_text.h"
    , 0 };
static const char shared[] = {
#include "heavy/conv/cuda/small_channels/tensor_text.h"
    , 0 };
static const char forward[] = {
#include "heavy/conv/cuda/small_channels/tensor_forward_text.h"
    , 0 };
static const char weights[] = {
#include "heavy/conv/cuda/small_channels/tensor_weights_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_small_channels_cells_text = { "heavy/conv/cuda/small_channels/element.cu",
    cells, &mc_conv_small_channels_tile_text };
static const struct mc_cuda_text shared_text = { "heavy/conv/cuda/small_channels/tensor.cu", shared,
                                                 &mc_conv_small_channels_cells_text };
const struct mc_cuda_text
    mc_conv_small_channels_forward_text = {
        "heavy/conv/cuda/small_channels/tensor_forward.cu", forward, &shared_text
    },
    mc_conv_small_channels_weights_text = {
        "heavy/conv/cuda/small_channels/tensor_weights.cu", weights, &shared_text
    };

/* MOST_SUMS, LIGHT_SUMS: sums of a warp, 16 x 8 each */
enum {
    WARPS = 8,
    MOST_TAPS = 484,
    MOST_STRIDE = 4,
    MOST_EIGHTS = 12,
    MOST_ACROSS = 12,
    MOST_SUMS = 24,
    LIGHT_SUMS = 16
};
/* bytes of a block where a multiprocessor runs two blocks, or one */
enum { HALF_SHARED = 100 << 10, MOST_SHARED = 200 << 10 };

struct tensor {
    struct mc_small_channels base;
    struct mc_small_channels_tensor_args args;
    bool inside;                /* x's channels are contiguous */
    bool fours, straight;       /* y (fours) and x (straight) can be moved as words where they are aligned */
    bool dense;                 /* a tile's positions are contiguous in y */
    bool fine, pairs;           /* full float32; forward: as pairs of halves */
    int size, step;             /* bytes of an element; terms of a product */
    int pitch, left, lead;      /* cells of a line; before x's first cell; before the first window */
    int taps, eights, positions;   /* all taps; eights of filters and of positions of a warp */
    int run;                    /* contiguous elements of a lane */
    int across, sets, each;     /* weights: warps by taps, by positions; eights of taps of a warp */
    int blocks, warps;          /* of a multiprocessor; of a block */
};

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct tensor *d = (const struct tensor *)(const void *)plan;
    struct mc_small_channels_tensor_args a = d->args;
    (void)threads;
    mc_small_channels_bind(&d->base, &a.base, conv(plan->problem), operand, workspace);
    a.whole = d->fours && mc_cuda_aligned(a.base.y);
    a.straight = d->straight && mc_cuda_aligned(a.base.x);
    return mc_small_channels_run(&d->base, &a, sizeof a);
}

/* ---- tiles ---- */

/* x's first cell is aligned to 16 bytes.  Where possible eight positions use other banks than those of the
 * next line. */
static void set_line(struct tensor *d, const struct mc_conv_shape *s)
{
    const int each = 16 / d->size, mixed = d->inside ? (int)s->c : 1, pad = (int)s->pad[2] * mixed;
    const int need = (int)((s->out[2] - 1) * s->stride[2] + s->k[2]) * mixed;
    d->left = mc_small_channels_up(MC_MAX(pad, 0), each);
    d->lead = d->left - pad;
    const int unit = s->stride[2] * mixed * d->size <= 8 ? 16 : 32,
              words = (d->lead + need) * d->size / 4 + 1;
    d->pitch = (mc_small_channels_up(words - unit / 2, unit) + unit / 2) * 4 / d->size;
}

/* planes of x that a tile keeps for an image */
static int planes_of(const struct tensor *d, const struct mc_conv_shape *s)
{
    return (int)((d->inside ? 1 : s->c) * s->k[0]);
}

static size_t tile_bytes(const struct tensor *d, const struct mc_conv_shape *s)
{
    return (size_t)d->args.images * (size_t)(planes_of(d, s) * d->args.lines * d->pitch * d->size);
}

/* The work of a tile, in about as many instructions of a warp: to load it, and to multiply. */
static double tile_work(const struct tensor *d, const struct mc_conv_shape *s)
{
    const struct mc_small_channels_tensor_args *a = &d->args;
    const int positions = a->images * a->rows * a->base.out[1], lane = d->step / 4;
    const double lines = mc_small_channels_up((int64_t)a->images * a->lines * planes_of(d, s), d->warps) /
                         d->warps;
    const double bring = lines * (10 + (d->straight ? 8 + 1.0 * d->size : 8.0 * d->size) *
                                           mc_small_channels_up(d->pitch * d->size, 512) / 512);
    if (s->pass == CONV_FORWARD) {
        const double steps = mc_small_channels_up(d->taps, d->step) / d->step,
                     step = 1.5 * lane * d->positions + d->eights * (1 + d->positions / 2);
        return (d->pairs ? 400 : 100) + bring +
               mc_small_channels_up(positions, d->warps * 8 * d->positions) / (d->warps * 8 * d->positions) *
                   (20 * d->positions + steps * step + 4 * d->positions * d->eights);
    }
    return 100 + bring +
           mc_small_channels_up(positions, d->sets * d->step) / (d->sets * d->step) *
               (40 + 6.0 * d->eights + d->each * (1.5 * lane + d->eights / 2));
}

static void set_rows(struct tensor *d, const struct mc_conv_shape *s, int images, int rows)
{
    struct mc_small_channels_tensor_args *a = &d->args;
    a->images = images;
    a->rows = rows;
    a->lines = (rows - 1) * (int)s->stride[1] + (int)s->k[1];
    a->down = (int)conv_ceil(s->out[1], rows);
    a->tiles = (int)(conv_ceil(a->base.n, images) * a->down);
}

static double all_work(const struct tensor *d, const struct mc_conv_shape *s)
{
    const double first = (double)tile_bytes(d, s) / 32; /* loading the first tile, which overlaps nothing */
    return first + (double)conv_ceil(d->args.tiles, mc_cuda_multiprocessors() * d->blocks) * tile_work(d, s);
}

/* Rows of an image, or whole images: the least work for the busiest multiprocessor, at most `bytes` bytes. */
static void choose_tiling(struct tensor *d, const struct mc_conv_shape *s, size_t bytes)
{
    struct mc_small_channels_tensor_args *a = &d->args;
    int rows = 1, images = 1;
    set_rows(d, s, 1, 1);
    double best = all_work(d, s);
    for (int64_t unit = 2; unit < s->out[1] + 16; unit++) {
        const bool whole = unit >= s->out[1];
        const int many = whole ? 1 << (unit - s->out[1]) : 1;
        if (many > a->base.n) {
            break;
        }
        set_rows(d, s, many, (int)MC_MIN(unit, s->out[1]));
        if (tile_bytes(d, s) > bytes) {
            break;
        }
        if (all_work(d, s) < best) {
            best = all_work(d, s);
            rows = a->rows;
            images = a->images;
        }
    }
    set_rows(d, s, images, rows);
}

/* ---- a plan ---- */

/* The number of parts, out of n choices, with the least padding; of equal ones the last choice. */
static int parts_of(int64_t count, int unit, const int *parts, int n)
{
    int best = parts[0];
    for (int i = 1; i < n; i++) {
        if (mc_small_channels_up(count, parts[i] * unit) <= mc_small_channels_up(count, best * unit)) {
            best = parts[i];
        }
    }
    return best;
}

static size_t fragment_bytes(const struct tensor *d)
{
    const size_t steps = (size_t)(mc_small_channels_up(d->taps, d->step) / d->step);
    return steps * (size_t)d->eights * 32 * (d->pairs ? 16 : 8) + steps * (size_t)d->step * 4;
}

static size_t sum_bytes(const struct tensor *d)
{
    return (size_t)(d->eights * 8) * (size_t)(d->across * d->each * 8) * sizeof(float);
}

/* Can y be moved in runs of so many elements? */
static bool runs(const struct tensor *d, const struct mc_conv_problem *p, int run)
{
    const struct mc_small_channels_tensor_args *a = &d->args;
    if (p->s.out[0] > 1 && a->base.deep[2] % run != 0) {
        return false;
    }
    if (d->base.nhwc) {
        return a->base.f % run == 0 && a->base.ys[0] % run == 0 && a->base.ys[2] % run == 0 &&
               a->base.ys[3] % run == 0;
    }
    const bool lines = a->base.out[1] % run == 0 && a->base.ys[2] % run == 0;
    const bool planes = a->base.ys[2] == a->base.out[1] && p->s.out[1] * p->s.out[2] % run == 0 &&
                        a->rows * a->base.out[1] % run == 0;
    return p->at.y[4] == 1 && a->base.ys[0] % run == 0 && a->base.ys[1] % run == 0 && (lines || planes);
}

/* The longest run that y allows; else the one that keeps a lane's neighbours contiguous. */
static void choose_run(struct tensor *d, const struct mc_conv_problem *p)
{
    const bool back = p->s.pass == CONV_WEIGHTS;
    const int least = back && !d->base.nhwc ? d->step / 4 : 2;
    d->run = back && !d->base.nhwc ? least : 16 / d->size;
    while (d->run > least && (!runs(d, p, d->run) || (back && d->eights % d->run != 0))) {
        d->run /= 2;
    }
    d->fours = runs(d, p, d->run);
}

static const int eights[][3] = { { 4, 8, 12 }, { 4, 6, 8 } }; /* with PAIRS a warp has registers for fewer */

/* The work of a multiprocessor with these blocks, warps and, at most, eights[n - 1] eights of filters. */
static double work_forward(struct tensor *d, const struct mc_conv_shape *s, int blocks, int n)
{
    const size_t bytes = blocks == 2 ? HALF_SHARED : MOST_SHARED;
    d->blocks = blocks;
    d->warps = 2 * WARPS / blocks;
    do {
        d->eights = parts_of(s->f, 8, eights[d->pairs], n--);
    } while (n > 0 && fragment_bytes(d) > bytes * 3 / 4);
    choose_tiling(d, s, fragment_bytes(d) < bytes * 3 / 4 ? bytes - fragment_bytes(d) : 0);
    return all_work(d, s) * (double)conv_ceil(s->f, 8 * d->eights);
}

/* Two blocks of a multiprocessor, or one with twice the warps where taps are many. */
static void shape_forward(struct tensor *d, const struct mc_conv_problem *p)
{
    d->positions = 4;
    if (work_forward(d, &p->s, 1, NELEM(eights[0])) * 1.1 > work_forward(d, &p->s, 2, NELEM(eights[0])) &&
        tile_bytes(d, &p->s) + fragment_bytes(d) <= HALF_SHARED) {
        return;
    }
    work_forward(d, &p->s, 1, NELEM(eights[0]));
}

static void shape_weights(struct tensor *d, const struct mc_conv_problem *p)
{
    static const int sixteens[] = { 1, 2, 3, 4 };
    const int columns = mc_small_channels_up(d->taps, 8) / 8;
    d->eights = 2 * parts_of(p->s.f, 16, sixteens, NELEM(sixteens));
    d->across = mc_small_channels_up(columns, MOST_SUMS * 2 / d->eights) / (MOST_SUMS * 2 / d->eights);
    while (MOST_ACROSS % d->across != 0) {
        d->across++;
    }
    d->each = mc_small_channels_up(columns, d->across) / d->across;
    const bool light = d->eights / 2 * d->each <= LIGHT_SUMS && d->across <= WARPS &&
                       sum_bytes(d) <= HALF_SHARED;
    d->sets = MC_MAX((light ? WARPS : MOST_ACROSS) / d->across, 1);
    d->blocks = light ? 2 : 1;
    choose_tiling(d, &p->s, d->blocks == 2 ? HALF_SHARED : MOST_SHARED);
}

/* Do x's lines begin at multiples of 16 bytes, with all their cells contiguous? */
static bool straight(const struct tensor *d, const struct mc_conv_problem *p)
{
    const int each = 16 / d->size, mixed = d->inside ? (int)p->s.c : 1;
    const int64_t *const at = d->args.base.xs;
    return at[3] == mixed && (p->s.in[0] == 1 || d->args.base.deep[0] % each == 0) && at[0] % each == 0 &&
           at[2] % each == 0 && (d->inside || at[1] % each == 0);
}

/* Does a plane of y begin where the one before it ends? */
static bool dense_planes(const struct mc_small_channels_tensor_args *a, int64_t depth)
{
    const int64_t plane = a->base.out[0] * a->base.ys[2];
    return a->base.ys[0] == depth * plane && (depth == 1 || a->base.deep[2] == plane);
}

static void shape(struct tensor *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_small_channels_tensor_args *a = &d->args;
    mc_small_channels_shape(&d->base, &a->base, p);
    d->size = (int)mc_dtypes[p->dtype].size;
    d->inside = s->c > 1 && p->at.x[1] == 1;
    d->fine = p->dtype == MC_FLOAT32 && !p->tf32;
    d->pairs = d->fine && s->pass == CONV_FORWARD;
    d->step = d->pairs ? 16 : 32 / d->size;
    d->taps = (int)(s->c * s->k[0] * s->k[1] * s->k[2]);
    d->warps = WARPS;
    d->straight = straight(d, p);
    set_line(d, s);
    if (s->pass == CONV_FORWARD) {
        shape_forward(d, p);
    } else {
        shape_weights(d, p);
    }
    choose_run(d, p);
    d->dense = a->base.ys[2] == a->base.out[1] * a->base.ys[3] &&
               (a->images == 1 || dense_planes(a, s->out[0]));
}

static void grids(struct tensor *d, const struct mc_conv_shape *s)
{
    struct mc_small_channels_tensor_args *a = &d->args;
    const size_t beyond = (size_t)((s->stride[1] + 1) * d->pitch *
                                   d->size); /* a lane's last positions may be outside */
    const unsigned across = (unsigned)conv_ceil(s->f, 8 * d->eights),
                   blocks = (unsigned)MC_MIN(a->tiles, mc_cuda_multiprocessors() * d->blocks);
    if (s->pass == CONV_FORWARD) {
        d->base.grid = (struct mc_grid){ { blocks, across, 1 },
                                         { (unsigned)(32 * d->warps), 1, 1 },
                                         fragment_bytes(d) + tile_bytes(d, s) + beyond };
        return;
    }
    a->blocks = (int)blocks;
    d->base.grid = (struct mc_grid){ { blocks, across, 1 },
                                     { (unsigned)(32 * d->across * d->sets), 1, 1 },
                                     MC_MAX(sum_bytes(d), tile_bytes(d, s) + beyond) };
    mc_small_channels_parts(&d->base, s, a->blocks);
}

static void define(struct mc_str *defines, const struct tensor *d, const struct mc_conv_problem *p)
{
    mc_cuda_types(defines, p->dtype, false);
    mc_small_channels_defines(defines, &d->base, p);
    mc_str_addf(defines,
                "#define OH %d\n#define OW %d\n#define PITCH %d\n#define LEFT %d\n#define LEAD %d\n#define "
                "MANY %d\n#define DENSE %d\n#define STRAIGHT %d\n",
                d->args.base.out[0], d->args.base.out[1], d->pitch, d->left, d->lead, d->args.images > 1,
                d->dense, d->straight);
    mc_str_addf(defines, "#define INSIDE %d\n#define BLOCKS %d\n", d->inside, d->blocks);
    if (d->base.pass == CONV_WEIGHTS) {
        mc_str_addf(defines,
                    "#define S16 %d\n#define EK %d\n#define ACROSS %d\n#define DOWN %d\n#define U "
                    "%d\n#define WHOLE %s\n",
                    d->eights / 2, d->each, d->across, d->sets, d->run, d->fours ? "true" : "false");
    } else {
        mc_str_addf(defines, "#define FE %d\n#define PE %d\n#define G %d\n#define WARPS %d\n", d->eights,
                    d->positions, d->run / 2, d->warps);
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_str defines = { 0 };
    struct tensor d = { .size = 0 };
    shape(&d, p);
    grids(&d, &p->s);
    d.base.base.run = run;
    define(&defines, &d, p);
    return mc_small_channels_plan(&d.base, sizeof d,
                                  d.base.pass == CONV_WEIGHTS ? &mc_conv_small_channels_weights_text
                                                              : &mc_conv_small_channels_forward_text,
                                  &defines);
}

/* ---- limits and estimate ---- */

static bool fits(const struct mc_conv_problem *p)
{
    struct tensor d = { .size = 0 };
    shape(&d, p);
    grids(&d, &p->s);
    return d.base.grid.shared <= (mc_cuda_current() ? mc_cuda_current()->shared : MOST_SHARED);
}

static bool small(const struct mc_conv_problem *p)
{
    return p->s.stride[1] <= MOST_STRIDE && p->s.stride[2] <= MOST_STRIDE &&
           p->s.c * p->s.k[0] * p->s.k[1] * p->s.k[2] <= MOST_TAPS;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype == MC_FLOAT64        ? "takes halves and float32"
           : p->s.pass == CONV_INPUTS    ? "computes forward and gradients of filters"
           : mc_small_channels_refuse(p) ? mc_small_channels_refuse(p)
           : !small(p)                   ? "takes small filters, strides up to 4"
           : !fits(p)                    ? "cannot keep lines this long in shared memory"
                                         : mc_cuda_needs_sm80();
}

/* Fitted to 47 passes on an H200, of 1 to 4 channels and 9 to 484 taps. work: a unit of a block's work, where
 * a multiprocessor runs one block; single: an element of y that is moved alone, for each warp that has
 * other taps; part: bytes of partial sums that are written and added, a second. */
static const double launch_seconds = 3e-6, work_seconds = 5e-9, single_seconds = 1.2e-12, part_bytes = 0.4e12;

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct tensor d = { .size = 0 };
    shape(&d, p);
    grids(&d, &p->s);
    const double fine = d.fine ? 3 : 1;
    const double work = all_work(&d, &p->s) * fine * d.blocks *
                        (p->s.pass == CONV_FORWARD ? d.warps / WARPS : 1) * d.base.grid.blocks[1],
                 positions = (double)(d.args.base.n * p->s.f * p->s.out[1] * p->s.out[2]);
    const double single_elements = d.fours ? 0 : positions * MC_MAX(d.across, 1);
    return MC_MAX(mc_conv_cuda_seconds(p, 1), launch_seconds + work * work_seconds +
                                                  single_elements * single_seconds +
                                                  (double)d.base.base.workspace / part_bytes);
}

const struct mc_solver mc_conv_cuda_small_channels_tensor = { .name = "few_tensor", .refuse = refuse,
                                                              .estimate = estimate, .plan = plan };
