/* cuda_fft.c: on a GPU, convolution by Fourier transforms of N x N (fft.cu) and a product of matrices for each frequency
 * (fft_products.cu, or fft_halves.cu where fewer bits than float32's are enough).
 *
 *   forward   Y = X conj(W)   summed over channels
 *   inputs    X = Y W         over filters
 *   weights   W = conj(Y) X   over images
 *
 * fft transforms whole images: N reaches from the first element a window touches to the last.  fft_tiling cuts the images
 * into tiles that overlap by a filter less one: each gives N - k + 1 results an axis, and is one more image to the product.
 * What is summed over stands in rows of the spectra; of the other two, the longer one in columns of the result.
 *
 * Invariant: rounds of images share nothing but the spectra of filters; those of weights add up over rounds. */
#include "conv/cuda.h"
#include <math.h>

static const char tile_text[] = {
#include "conv/fft_tile_text.h"
    , 0 };
static const char text[] = {
#include "conv/fft_text.h"
    , 0 };
static const char halves_text[] = {
#include "conv/fft_halves_text.h"
    , 0 };
static const char products_text[] = {
#include "conv/fft_products_text.h"
    , 0 };
static const struct mc_cuda_text tile = { "conv/fft_tile.cu", tile_text, NULL };
const struct mc_cuda_text mc_conv_fft_text = { "conv/fft.cu", text, &tile };
const struct mc_cuda_text mc_conv_fft_products_text = { "conv/fft_products.cu", products_text, NULL };
const struct mc_cuda_text mc_conv_fft_halves_text = { "conv/fft_halves.cu", halves_text, NULL };

static const struct size { int n, r1, r2, tiles, threads; size_t shared; } sizes[] = { /* shared as fft.cu lays tiles out */
    { 16,  4,  4, 16, 128, 8 * (16 * 209 + 16) + 16 * 24  },
    { 32,  8,  4, 8,  256, 8 * (8 * 658 + 32) + 8 * 24    },
    { 64,  8,  8, 4,  512, 8 * (4 * 2340 + 64) + 4 * 24   },
    { 128, 16, 8, 2,  512, 8 * (2 * 8772 + 128) + 2 * 24  },
};
enum { THIN = 4, WIDE = 64, PER_BLOCK = 128 };   /* of fft_products.cu */
enum { PAIRED = 128 };                           /* the size whose frequencies stand in pairs */
enum { SECTOR = 32, CACHE = 32 << 20 };          /* bytes that memory moves at once, and that a GPU keeps at least */
enum { PEAKS = 256, PEAK_THREADS = 512, PEAK_BYTES = 2 * PEAKS * (int)sizeof(uint32_t) };   /* PEAKS: of one operand */

struct transform {              /* args of fft.cu */
    char *x;
    const char *c0;
    void *s;
    int64_t rows, cols, ld, step[2];
    int tiles[2], across, first[2], every[2], extent[2], from[2], size[2];
    int64_t stride[2];
    float scale, beta;
    int conjugate;
    const uint32_t *peaks;
};
struct peaks {                  /* of its kernel that looks for the largest numbers */
    const void *x[2];
    int64_t count[2];
    uint32_t *to;
};
struct product {                /* of fft_products.cu */
    const void *a, *b;
    void *c;
    int64_t m, n, k, lda, ldb, ldc;
    int add;
};
enum { TILED = 1, FINE = 2 };   /* kinds: tiles; float32's spectra whatever is allowed */
struct fft {
    struct mc_plan base;
    struct size size;
    bool tiled, halves;         /* halves: spectra of operands are kept in them */
    int64_t images;             /* at a time */
    void *peaks, *spectra, *back, *product[4];  /* of ways[] */
};

static const struct fft *fft(const struct mc_plan *p)
{
    return (const struct fft *)(const void *)p;
}

/* ---- which index stands where ---- */

enum index { IMAGES, CHANNELS, FILTERS };
static const enum index of_role[3][2] = {
    [CONV_X] = { IMAGES, CHANNELS }, [CONV_W] = { FILTERS, CHANNELS }, [CONV_Y] = { IMAGES, FILTERS },
};
static const enum index summed[3] = { [CONV_FORWARD] = CHANNELS, [CONV_INPUTS] = FILTERS, [CONV_WEIGHTS] = IMAGES };
static const int conjugate[3] = { [CONV_FORWARD] = CONV_W, [CONV_INPUTS] = -1, [CONV_WEIGHTS] = CONV_Y };  /* a role; -1: none */

static int64_t tiles(const struct mc_conv_problem *p, const struct fft *d, int axis)
{
    const int64_t each = d->size.n - p->s.k[axis] + 1, all = p->s.pass == CONV_INPUTS ? p->s.in[axis] : p->s.out[axis];
    return d->tiled ? (all + each - 1) / each : 1;
}

static int64_t count(const struct mc_conv_problem *p, const struct fft *d, enum index i, int64_t images)
{
    return i == IMAGES ? images * tiles(p, d, 1) * tiles(p, d, 2) : i == CHANNELS ? p->s.c : p->s.f;
}

static int64_t frequencies(const struct fft *d)
{
    return (int64_t)d->size.n * (d->size.n / 2 + 1);
}

/* Which of a role's two indices stands in rows of its spectra, the other one in columns. */
static int in_rows(const struct mc_conv_problem *p, const struct fft *d, int role, int64_t images)
{
    const enum index *i = of_role[role];
    return role != mc_conv_result(p->s.pass) ? i[1] == summed[p->s.pass]
                                             : count(p, d, i[1], images) < count(p, d, i[0], images);
}

static void shape(const struct mc_conv_problem *p, const struct fft *d, int role, int64_t images, int64_t *rows, int64_t *cols)
{
    const int r = in_rows(p, d, role, images);
    *rows = count(p, d, of_role[role][r], images);
    *cols = count(p, d, of_role[role][!r], images);
}

static int64_t lead(int64_t cols)
{
    return (cols + 3) / 4 * 4;
}

/* Of one number of its spectra. */
static size_t number(const struct mc_conv_problem *p, const struct fft *d, int role)
{
    return 2 * (d->halves && role != mc_conv_result(p->s.pass) ? sizeof(uint16_t) : sizeof(float));
}

static size_t bytes(const struct mc_conv_problem *p, const struct fft *d, int role, int64_t images)
{
    int64_t rows, cols;
    shape(p, d, role, images, &rows, &cols);
    return ((size_t)(frequencies(d) * rows * lead(cols)) * number(p, d, role) + 255) / 256 * 256;
}

static size_t room(const struct mc_conv_problem *p, const struct fft *d, int64_t images)
{
    return (d->halves ? PEAK_BYTES : 0) + bytes(p, d, CONV_X, images) + bytes(p, d, CONV_W, images) + bytes(p, d, CONV_Y, images);
}

/* Are halves enough, and can the largest number be found without looking at what lies in gaps? */
static bool halves(const struct mc_conv_problem *p)
{
    struct mc_extent e[5];
    mc_conv_extents(p, e);
    bool ok = p->tf32 || mc_dtypes[p->dtype].size == 2;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        ok = ok && (role == mc_conv_result(p->s.pass) || e[role].count == mc_conv_count(&a));
    }
    return ok;
}

/* ---- a call ---- */

struct call {
    const struct fft *d;
    const struct mc_conv_problem *p;
    char *at[3];                /* x, w, y of these images */
    const char *c0;
    char *s[3];                 /* their spectra */
    uint32_t *peaks;            /* of both operands, the first role's first */
    int64_t images;
};

static int first_operand(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_INPUTS ? CONV_W : CONV_X;
}

/* Where tiles of an axis begin, how much of each counts, and from where in the transform. */
static void lay(struct transform *t, const struct mc_conv_problem *p, const struct fft *d, int role, int axis)
{
    const struct mc_conv_shape *s = &p->s;
    const int i = axis - 1, n = d->size.n, k = (int)s->k[axis], pad = (int)s->pad[axis], each = n - k + 1;
    const int in = (int)s->in[axis], out = (int)s->out[axis];
    const bool inputs = s->pass == CONV_INPUTS;
    t->every[i] = d->tiled && role != CONV_W ? each : 0;
    if (role == CONV_W) {
        t->extent[i] = t->size[i] = k;
    } else if (role == CONV_X) {
        t->size[i] = in;
        t->first[i] = inputs ? 0 : -pad;
        t->extent[i] = d->tiled ? (inputs ? each : n) : inputs ? in : out + k - 1;
        t->from[i] = !inputs ? 0 : d->tiled ? k - 1 : pad;
    } else {
        t->size[i] = out;
        t->first[i] = inputs && d->tiled ? pad - (k - 1) : 0;
        t->extent[i] = d->tiled ? (inputs ? n : each) : out;
    }
}

static struct transform transform(const struct call *c, int role)
{
    const struct mc_conv_problem *p = c->p;
    const struct fft *d = c->d;
    const struct mc_conv_array a = mc_conv_array(p, role);
    const int r = in_rows(p, d, role, c->images), result = mc_conv_result(p->s.pass);
    const bool flip = role == CONV_W && p->s.flip;
    const int64_t size = mc_dtypes[p->dtype].size;
    struct transform t = { .x = c->at[role], .s = c->s[role], .step = { a.stride[r], a.stride[!r] }, .tiles = { 1, 1 },
                           .across = (int)tiles(p, d, 2) };
    t.conjugate = role == conjugate[p->s.pass];
    t.peaks = c->peaks + (role == result || role == first_operand(p) ? 0 : PEAKS);
    shape(p, d, role, c->images, &t.rows, &t.cols);
    t.ld = lead(t.cols);
    if (of_role[role][0] == IMAGES) {
        t.tiles[r] = (int)(tiles(p, d, 1) * tiles(p, d, 2));
    }
    for (int axis = 1; axis < 3; axis++) {
        lay(&t, p, d, role, axis);
        t.stride[axis - 1] = flip ? -a.stride[axis + 2] : a.stride[axis + 2];
        t.x += flip ? (p->s.k[axis] - 1) * a.stride[axis + 2] * size : 0;
    }
    if (role == result) {
        t.scale = (float)(p->alpha / ((double)d->size.n * d->size.n));
        t.beta = (float)p->beta;
        t.c0 = c->c0 ? c->c0 + (t.x - c->at[role]) : NULL;
    }
    return t;
}

static mc_status launch(const struct call *c, int role)
{
    const struct size *z = &c->d->size;
    const bool back = role == mc_conv_result(c->p->s.pass);
    const struct transform t = transform(c, role);
    const int64_t blocks = t.rows * ((t.cols + z->tiles - 1) / z->tiles);
    const struct mc_grid g = { { (unsigned)blocks, 1, 1 }, { (unsigned)z->threads, 1, 1 }, z->shared };
    void *kernel = back ? c->d->back : c->d->spectra;
    return mc_cuda_launch(mc_cuda_current(), kernel, back ? "back" : "spectra", &g, &t, sizeof t);
}

/* Of whole operands, whatever rounds they are taken in. */
static mc_status find_peaks(const struct call *c, void *const *operand)
{
    const struct mc_conv_problem *p = c->p;
    const struct mc_grid g = { { PEAKS, 2, 1 }, { PEAK_THREADS, 1, 1 }, 0 };
    struct mc_extent e[5];
    struct peaks a = { .to = c->peaks };
    mc_conv_extents(p, e);
    for (int role = CONV_X, i = 0; role <= CONV_Y; role++) {
        if (role != mc_conv_result(p->s.pass)) {
            a.x[i] = (char *)operand[role] - e[role].before * mc_dtypes[p->dtype].size;
            a.count[i++] = e[role].count;
        }
    }
    return mc_cuda_launch(mc_cuda_current(), c->d->peaks, "peaks", &g, &a, sizeof a);
}

static const char *const ways[] = { "multiply", "thin", "pairs4", "pairs8" };
enum { FIRST_PAIRED = 2 };
struct way { int kernel, frequencies; unsigned threads; int64_t blocks; };

/* How an (m, n) product for each frequency is launched. */
static struct way way_of(const struct fft *d, int64_t m, int64_t n)
{
    const bool thin = m <= THIN;
    const int64_t wide = (n + PER_BLOCK - 1) / PER_BLOCK, rows = thin ? THIN : 2 * THIN;
    return d->size.n == PAIRED ? (struct way){ thin ? 2 : 3, 2, PER_BLOCK, wide * ((m + rows - 1) / rows) }
           : thin              ? (struct way){ 1, 1, PER_BLOCK / 2, wide }
                               : (struct way){ 0, 1, 128, (m + WIDE - 1) / WIDE * ((n + WIDE - 1) / WIDE) };
}

static mc_status multiply(const struct call *c, bool add)
{
    const struct mc_conv_problem *p = c->p;
    const int result = mc_conv_result(p->s.pass);
    const int one = result == CONV_X ? CONV_W : CONV_X, other = result == CONV_Y ? CONV_W : CONV_Y;
    const enum index m = of_role[result][in_rows(p, c->d, result, c->images)];
    const bool first = of_role[one][0] == m || of_role[one][1] == m;
    const int a = first ? one : other, b = first ? other : one;
    struct product t = { .a = c->s[a], .b = c->s[b], .c = c->s[result], .add = add };
    shape(p, c->d, a, c->images, &t.k, &t.m);
    shape(p, c->d, b, c->images, &t.k, &t.n);
    t.lda = lead(t.m);
    t.ldb = t.ldc = lead(t.n);
    const struct way w = way_of(c->d, t.m, t.n);
    const struct mc_grid g = { { (unsigned)w.blocks, (unsigned)(frequencies(c->d) / w.frequencies), 1 }, { w.threads, 1, 1 }, 0 };
    return mc_cuda_launch(mc_cuda_current(), c->d->product[w.kernel], ways[w.kernel], &g, &t, sizeof t);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct fft *d = fft(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    const int result = mc_conv_result(p->s.pass);
    struct call c = { .d = d, .p = p };
    const int64_t size = mc_dtypes[p->dtype].size;
    char *at = workspace;
    (void)threads;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        c.s[role] = at;
        at += bytes(p, d, role, d->images);
        c.at[role] = operand[role];
    }
    c.peaks = (uint32_t *)(void *)at;
    c.c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    if (d->halves) {
        TRY(find_peaks(&c, operand));
    }
    for (int64_t n = 0; n < p->s.n; n += d->images) {
        c.images = MC_MIN(d->images, p->s.n - n);
        for (int role = CONV_X; role <= CONV_Y; role++) {
            if (role != result && (role != CONV_W || n == 0)) {
                TRY(launch(&c, role));
            }
        }
        TRY(multiply(&c, result == CONV_W && n > 0));
        if (result != CONV_W || n + d->images >= p->s.n) {
            TRY(launch(&c, result));
        }
        c.at[CONV_X] += c.images * p->at.x[0] * size;
        c.at[CONV_Y] += c.images * p->at.y[0] * size;
        c.c0 += c.c0 && result != CONV_W ? c.images * (result == CONV_X ? p->at.x[0] : p->at.y[0]) * size : 0;
    }
    return MC_OK;
}

/* ---- a plan ---- */

static int64_t at_a_time(const struct mc_conv_problem *p, const struct fft *d)
{
    int64_t images = p->s.n;
    while (images > 1 && room(p, d, images) > mc_plan_cap(&mc_site_cuda)) {
        images = (images + 1) / 2;
    }
    return images;
}

/* What memory moves for one number of an array: all of a sector where its neighbours are not the next of a row and the array
 * is too large to stay in the cache until they are asked for. */
static double moved_for_one(const struct mc_conv_array *a, const struct mc_conv_problem *p)
{
    const double size = mc_dtypes[p->dtype].size;
    return a->stride[a->rank - 1] == 1 || (double)mc_conv_count(a) * size < CACHE ? size : SECTOR;
}

/* Transforms move images and spectra once, the product its three spectra; each is bound by memory or by arithmetic. */
static double seconds(const struct mc_conv_problem *p, const struct fft *d)
{
    double all = 0;
    int64_t rows, cols, size[3];
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        shape(p, d, role, p->s.n, &rows, &cols);
        const double cells = (double)frequencies(d) * (double)rows * (double)lead(cols);
        const double moved = (double)number(p, d, role) * cells + (double)mc_conv_count(&a) * moved_for_one(&a, p);
        all += mc_cuda_seconds(MC_FLOAT32, false, 10 * cells * log2(d->size.n), moved, 0.25);
    }
    for (int i = IMAGES; i <= FILTERS; i++) {
        const int64_t n = count(p, d, (enum index)i, p->s.n);
        size[i] = i == (int)summed[p->s.pass] || n <= THIN ? n : (n + WIDE - 1) / WIDE * WIDE;
    }
    const double flops = 8.0 * (double)frequencies(d) * (double)size[0] * (double)size[1] * (double)size[2];
    const double part = d->size.n == PAIRED ? 0.2 : d->halves ? 3 : 0.9;   /* of float32's units */
    return all + mc_cuda_seconds(MC_FLOAT32, false, flops, (double)room(p, d, p->s.n), part);
}

/* The fastest size for p; false: none is large enough. */
static bool choose(const struct mc_conv_problem *p, int kind, struct fft *best)
{
    const bool tiled = kind & TILED;
    const struct mc_cuda *gpu = mc_cuda_current();
    double least = 0;
    for (size_t i = 0; i < NELEM(sizes); i++) {
        struct fft d = { .size = sizes[i], .tiled = tiled, .halves = !(kind & FINE) && halves(p) };
        bool fits = !gpu || sizes[i].shared <= gpu->shared;
        for (int axis = 1; axis < 3; axis++) {
            const int64_t touched = MC_MAX(p->s.out[axis] + p->s.k[axis] - 1, p->s.in[axis] + p->s.pad[axis]);
            fits = fits && d.size.n >= (tiled ? p->s.k[axis] : touched);
        }
        fits = fits && (!tiled || tiles(p, &d, 1) * tiles(p, &d, 2) > 1); /* one tile is the whole image */
        const double t = fits ? seconds(p, &d) : 0;
        if (fits && (least == 0 || t < least)) {
            least = t;
            *best = d;
        }
    }
    return least > 0;
}

static bool load(struct fft *d, const struct mc_conv_problem *p)
{
    const struct size *z = &d->size;
    const struct mc_cuda_text *products = d->halves ? &mc_conv_fft_halves_text : &mc_conv_fft_products_text;
    const bool pairs = z->n == PAIRED;
    struct mc_str defines = { 0 }, none = { 0 };
    mc_cuda_types(&defines, p->dtype, false);
    mc_str_addf(&defines, "#define N %d\n#define R1 %d\n#define R2 %d\n#define G %d\n#define THREADS %d\n#define PAIRS %d\n#define HALVES %d\n#define PEAKS %d\n",
                z->n, z->r1, z->r2, z->tiles, z->threads, pairs, d->halves, PEAKS);
    const struct mc_cuda_named transforms[] = { { &d->spectra, "spectra" }, { &d->back, "back" }, { &d->peaks, d->halves ? "peaks" : NULL } };
    struct mc_cuda_named kernels[NELEM(ways)];
    for (int i = 0; i < (int)NELEM(ways); i++) {
        kernels[i] = (struct mc_cuda_named){ &d->product[i], pairs == (i >= FIRST_PAIRED) ? ways[i] : NULL };
    }
    return mc_cuda_kernels(&mc_conv_fft_text, &defines, transforms, NELEM(transforms)) && mc_cuda_kernels(products, &none, kernels, NELEM(kernels));
}

static struct mc_plan *make(const struct mc_conv_problem *p, int kind)
{
    struct fft *d = mc_calloc(1, sizeof *d, "plans");
    if (!d || !choose(p, kind, d) || !load(d, p)) {
        mc_free(d);
        return NULL;
    }
    d->base.run = run;
    d->images = at_a_time(p, d);
    d->base.workspace = room(p, d, d->images);
    return &d->base;
}

static const char *refuse(const struct mc_conv_problem *p, int kind)
{
    const struct mc_conv_shape *s = &p->s;
    struct fft d;
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->dtype == MC_FLOAT64 || p->wide || s->unshared || s->groups != 1) {
        return s->unshared ? "has one filter for all places" : s->groups != 1 ? "takes one group" : "sums in float32";
    }
    for (int i = 0; i < 3; i++) {
        if (s->stride[i] != 1 || s->dilation[i] != 1 || s->pad[i] < 0) {
            return "takes stride 1, dilation 1 and no negative pads";
        }
    }
    return s->in[0] != 1 || s->out[0] != 1 || s->k[0] != 1 || s->pad[0] != 0 ? "takes two axes"
           : p->has_bias || p->act != ACT_NONE                               ? "fuses nothing"
           : kind & FINE && !halves(p)                                       ? "is fft, where float32 is asked"
           : choose(p, kind, &d)                                             ? NULL
           : kind & TILED                                                    ? "would make one tile"
                                                                             : "transforms no more than 128 x 128";
}

static double estimate(const struct mc_conv_problem *p, int kind)
{
    struct fft d;
    return choose(p, kind, &d) ? seconds(p, &d) : 1e30;
}

#define FFT(name_, kind)                                                                                              \
    static const char *refuse_##name_(const struct mc_problem *p) { return refuse(conv(p), kind); }                   \
    static double estimate_##name_(const struct mc_problem *p) { return estimate(conv(p), kind); }                    \
    static struct mc_plan *plan_##name_(const struct mc_problem *p) { return make(conv(p), kind); }                   \
    const struct mc_solver mc_conv_cuda_##name_ = {                                                                   \
        .name = #name_, .refuse = refuse_##name_, .estimate = estimate_##name_, .plan = plan_##name_, .finer = (kind) & FINE, \
    };
FFT(fft, 0)
FFT(fft_tiling, TILED)
FFT(fft_fine, FINE)
