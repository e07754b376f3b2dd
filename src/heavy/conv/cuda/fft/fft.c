/* fft.c: on a GPU, convolution by Fourier transforms of N x N (fft.cu) and a matrix product for each
 * frequency (products.cu, or products_half.cu where less than float32's precision is enough).  Transforms
 * are butterflies in float32 (fft.cu).  Where the precision of bfloat16 is enough, forward transforms are
 * matrix products (tensor.cu).
 *
 *   forward   Y = X conj(W)   summed over channels
 *   inputs    X = Y W         over filters
 *   weights   W = conj(Y) X   over images
 *
 * The solver fft transforms whole images: N reaches from the first element that a window reads to the
 * last. fft_tiling divides images into tiles that overlap by one less than the filter.  Each tile gives N
 * - k + 1 results an axis, and counts as an image in the product.
 *
 * Invariant: the choice of halves and of transforms on tensor cores depends on the problem alone. */
#include "heavy/conv/cuda/fft/fft.h"
#include "heavy/conv/cuda/fft/fft_product_args.h"
#include <math.h>

static const char address_text[] = {
#include "heavy/conv/cuda/fft/address_text.h"
    , 0 };
static const char tile_text[] = {
#include "heavy/conv/cuda/fft/tile_text.h"
    , 0 };
static const char text[] = {
#include "heavy/conv/cuda/fft/fft_text.h"
    , 0 };
static const char tensor_text[] = {
#include "heavy/conv/cuda/fft/tensor_text.h"
    , 0 };
static const char spectra_text[] = {
#include "heavy/conv/cuda/fft/spectra_text.h"
    , 0 };
static const char halves_text[] = {
#include "heavy/conv/cuda/fft/products_half_text.h"
    , 0 };
static const char products_text[] = {
#include "heavy/conv/cuda/fft/products_text.h"
    , 0 };
static const struct mc_cuda_text address = { "heavy/conv/cuda/fft/address.cu", address_text, NULL },
                                 tile = { "heavy/conv/cuda/fft/tile.cu", tile_text, &address },
                                 spectra = { "heavy/conv/cuda/fft/spectra.cu", spectra_text, NULL };
const struct mc_cuda_text mc_conv_fft_text = { "heavy/conv/cuda/fft/fft.cu", text, &tile };
const struct mc_cuda_text mc_conv_fft_tensor_text = { "heavy/conv/cuda/fft/tensor.cu", tensor_text, &address };
const struct mc_cuda_text mc_conv_fft_products_text = { "heavy/conv/cuda/fft/products.cu", products_text,
                                                        &spectra };
const struct mc_cuda_text mc_conv_fft_products_half_text = { "heavy/conv/cuda/fft/products_half.cu",
                                                             halves_text, &spectra };

static const struct mc_cuda_fft_size {
    int n, r1, r2, tiles, threads, blocks;  /* blocks: per multiprocessor, for the register limit */
    size_t shared;              /* of a block, in the layout of tile.cu */
    struct { int tiles, threads, blocks; } tensor;  /* of spectra() on tensor cores; tiles 0: none */
} sizes[] = {
    { 16,  4,  4, 16, 128, 8, 8 * (16 * 209 + 16),  { 0 }         },
    { 32,  8,  4, 8,  256, 4, 8 * (8 * 658 + 32),   { 0 }         },
    { 64,  8,  8, 4,  512, 2, 8 * (4 * 2340 + 64),  { 8, 256, 2 } },
    { 128, 16, 8, 2,  512, 1, 8 * (2 * 8772 + 128), { 4, 512, 1 } },
};
const char *const mc_cuda_fft_ways[] = { "multiply", "thin", "pairs4", "pairs8" };
/* SECTOR: bytes that memory moves at once; CACHE: bytes that every GPU caches */
enum { SECTOR = 32, CACHE = 32 << 20 };
enum { PEAK_BYTES = 2 * FFT_PEAKS * (int)sizeof(uint32_t) };
enum { TILED = 1, FINE = 2 };   /* FINE: float32 spectra even where halves are allowed */

/* ---- indices of arrays and spectra ---- */

const enum mc_fft_index mc_fft_of_role[3][2] = {
    [CONV_X] = { IMAGES, CHANNELS }, [CONV_W] = { FILTERS, CHANNELS }, [CONV_Y] = { IMAGES, FILTERS },
};
const enum mc_fft_index mc_fft_summed[3] = { [CONV_FORWARD] = CHANNELS, [CONV_INPUTS] = FILTERS,
                                             [CONV_WEIGHTS] = IMAGES };

int64_t mc_cuda_fft_tiles(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int axis)
{
    const int64_t each = d->n - p->s.k[axis] + 1,
                  all = p->s.pass == CONV_INPUTS ? p->s.in[axis] : p->s.out[axis];
    return d->tiled ? (all + each - 1) / each : 1;
}

int64_t mc_cuda_fft_count(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, enum mc_fft_index i,
                          int64_t images)
{
    return i == IMAGES     ? images * mc_cuda_fft_tiles(p, d, 1) * mc_cuda_fft_tiles(p, d, 2)
           : i == CHANNELS ? p->s.c
                           : p->s.f;
}

int mc_cuda_fft_in_rows(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role,
                        int64_t images)
{
    const enum mc_fft_index *i = mc_fft_of_role[role];
    return role != mc_conv_result(p->s.pass)
               ? i[1] == mc_fft_summed[p->s.pass]
               : mc_cuda_fft_count(p, d, i[1], images) < mc_cuda_fft_count(p, d, i[0], images);
}

void mc_cuda_fft_shape(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role, int64_t images,
                       int64_t *rows, int64_t *cols)
{
    const int r = mc_cuda_fft_in_rows(p, d, role, images);
    *rows = mc_cuda_fft_count(p, d, mc_fft_of_role[role][r], images);
    *cols = mc_cuda_fft_count(p, d, mc_fft_of_role[role][!r], images);
}

/* Of one number of a role's spectra. */
static size_t number_bytes(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role)
{
    return 2 * (d->half_spectra && role != mc_conv_result(p->s.pass) ? sizeof(uint16_t) : sizeof(float));
}

size_t mc_cuda_fft_bytes(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int role,
                         int64_t images)
{
    int64_t rows, cols;
    mc_cuda_fft_shape(p, d, role, images, &rows, &cols);
    return mc_work_rounded((size_t)(fft_frequencies_of(d) * rows * fft_lead(cols)) *
                           number_bytes(p, d, role));
}

static size_t workspace_needed(const struct mc_conv_problem *p, const struct mc_cuda_fft *d, int64_t images)
{
    return (d->half_spectra ? PEAK_BYTES : 0) + mc_cuda_fft_bytes(p, d, CONV_X, images) +
           mc_cuda_fft_bytes(p, d, CONV_W, images) + mc_cuda_fft_bytes(p, d, CONV_Y, images);
}

/* Are halves precise enough, and are the operands without gaps, so that a search for the largest number
 * reads no other memory? */
static bool half_spectra(const struct mc_conv_problem *p)
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

/* ---- a plan ---- */

static int64_t images_per_round(const struct mc_conv_problem *p, const struct mc_cuda_fft *d)
{
    int64_t images = p->s.n;
    while (images > 1 && workspace_needed(p, d, images) > p->base.options.workspace) {
        images = (images + 1) / 2;
    }
    return images;
}

/* The bytes that memory moves for one element of an array: a whole sector if neighbours in a line are
 * apart in memory and the array is too large for the cache. */
static double bytes_per_element(const struct mc_conv_array *a, const struct mc_conv_problem *p)
{
    const double size = mc_dtypes[p->dtype].size;
    return a->stride[a->rank - 1] == 1 || (double)mc_conv_count(a) * size < CACHE ? size : SECTOR;
}

/* Transforms move images and spectra once, the product moves its three spectra.  Each is bound by memory
 * or by arithmetic. */
static double seconds(const struct mc_conv_problem *p, const struct mc_cuda_fft *d)
{
    double all = 0;
    int64_t rows, cols, size[3];
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        mc_cuda_fft_shape(p, d, role, p->s.n, &rows, &cols);
        const double cells = (double)fft_frequencies_of(d) * (double)rows * (double)fft_lead(cols);
        const double moved = (double)number_bytes(p, d, role) * cells +
                             (double)mc_conv_count(&a) * bytes_per_element(&a, p);
        all += mc_cuda_seconds(MC_FLOAT32, false, 10 * cells * log2(d->n), moved,
                               d->tensor && role != mc_conv_result(p->s.pass) ? 0.5 : 0.25);
    }
    for (int i = IMAGES; i <= FILTERS; i++) {
        const int64_t n = mc_cuda_fft_count(p, d, (enum mc_fft_index)i, p->s.n);
        size[i] = i == (int)mc_fft_summed[p->s.pass] || n <= FFT_THIN
                      ? n
                      : (n + FFT_WIDE - 1) / FFT_WIDE * FFT_WIDE;
    }
    const double flops = 8.0 * (double)fft_frequencies_of(d) * (double)size[0] * (double)size[1] *
                         (double)size[2];
    const double part = d->n == FFT_PAIRED ? 0.2 : d->half_spectra ? 3 : 0.9; /* of float32's peak */
    return all + mc_cuda_seconds(MC_FLOAT32, false, flops, (double)workspace_needed(p, d, p->s.n), part);
}

/* Shared memory of tensor-core kernels: a table of roots, and tiles in the layout of tensor.cu. */
static size_t tensor_shared(int n, int tiles)
{
    return 4 * (size_t)n * (size_t)n +
           4 * (size_t)tiles * ((size_t)n / 2 * ((size_t)n + 8) + (n == FFT_PAIRED ? 8 : 4));
}

static struct mc_cuda_fft of_size(const struct mc_cuda_fft_size *z, const struct mc_conv_problem *p, int kind)
{
    struct mc_cuda_fft d = {
        .size = z, .n = z->n, .tiled = kind & TILED, .half_spectra = !(kind & FINE) && half_spectra(p)
    };
    const int tiles = z->tensor.tiles, threads = z->tensor.threads;
    d.tensor = d.half_spectra && p->dtype == MC_BFLOAT16 && tiles > 0;
    d.forth = d.behind = (struct mc_cuda_fft_grid){ z->tiles, z->threads, z->shared };
    if (d.tensor) {
        d.forth = (struct mc_cuda_fft_grid){ tiles, threads, tensor_shared(z->n, tiles) };
    }
    return d;
}

/* Selects the fastest size for p; false: none is large enough. */
static bool choose(const struct mc_conv_problem *p, int kind, struct mc_cuda_fft *best)
{
    const bool tiled = kind & TILED;
    const struct mc_cuda *gpu = mc_cuda_current();
    double least = 0;
    for (size_t i = 0; i < NELEM(sizes); i++) {
        const struct mc_cuda_fft d = of_size(&sizes[i], p, kind);
        bool fits = !gpu || MC_MAX(d.forth.shared, d.behind.shared) <= gpu->shared;
        for (int axis = 1; axis < 3; axis++) {
            const int64_t touched = MC_MAX(p->s.out[axis] + p->s.k[axis] - 1, p->s.in[axis] + p->s.pad[axis]);
            fits = fits && d.n >= (tiled ? p->s.k[axis] : touched);
        }
        fits = fits && (!tiled || mc_cuda_fft_tiles(p, &d, 1) * mc_cuda_fft_tiles(p, &d, 2) >
                                      1); /* one tile is the whole image */
        const double t = fits ? seconds(p, &d) : 0;
        if (fits && (least == 0 || t < least)) {
            least = t;
            *best = d;
        }
    }
    return least > 0;
}

/* Loads the kernels of one text.  The tensor-core text has forward transforms only. */
static bool load_transforms(struct mc_cuda_fft *d, mc_dtype dtype, bool tensor)
{
    const struct mc_cuda_fft_size *z = d->size;
    const struct mc_cuda_kernel_ref kernels[] = { { &d->spectra, "spectra" },
                                                  { &d->back, "back" },
                                                  { &d->peaks, d->half_spectra ? "peaks" : NULL } };
    const size_t from = d->tensor && !tensor, to = tensor ? 1 : NELEM(kernels);
    struct mc_str defines = { 0 };
    mc_cuda_types(&defines, dtype, false);
    mc_str_addf(
        &defines,
        "#define N %d\n#define R1 %d\n#define R2 %d\n#define G %d\n#define THREADS %d\n#define BLOCKS %d\n",
        z->n, z->r1, z->r2, z->tiles, tensor ? z->tensor.threads : z->threads,
        tensor ? z->tensor.blocks : z->blocks);
    mc_str_addf(&defines, "#define BESIDE %d\n#define HALVES %d\n#define PEAKS %d\n",
                z->n == FFT_PAIRED ? FFT_BESIDE : 1, d->half_spectra, FFT_PEAKS);
    return mc_cuda_kernels(tensor ? &mc_conv_fft_tensor_text : &mc_conv_fft_text, &defines, kernels + from,
                           to - from);
}

static bool load_products(struct mc_cuda_fft *d)
{
    const struct mc_cuda_text *t = d->half_spectra ? &mc_conv_fft_products_half_text
                                                   : &mc_conv_fft_products_text;
    struct mc_cuda_kernel_ref kernels[NELEM(mc_cuda_fft_ways)];
    struct mc_str defines = { 0 };
    for (int i = 0; i < (int)NELEM(mc_cuda_fft_ways); i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){
            &d->product[i], (d->n == FFT_PAIRED) == (i >= FFT_FIRST_PAIRED) ? mc_cuda_fft_ways[i] : NULL
        };
    }
    mc_str_addf(&defines, "#define BESIDE %d\n#define HALVES %d\n", FFT_BESIDE, d->half_spectra);
    return mc_cuda_kernels(t, &defines, kernels, NELEM(kernels));
}

static struct mc_plan *make(const struct mc_conv_problem *p, int kind)
{
    struct mc_cuda_fft *d = mc_calloc(1, sizeof *d, "plans");
    if (!d || !choose(p, kind, d) || !load_transforms(d, p->dtype, false) ||
        (d->tensor && !load_transforms(d, p->dtype, true)) || !load_products(d)) {
        mc_free(d);
        return NULL;
    }
    d->base.run = mc_cuda_fft_run;
    d->images = images_per_round(p, d);
    d->base.workspace = workspace_needed(p, d, d->images);
    return &d->base;
}

static const char *refuse(const struct mc_conv_problem *p, int kind)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_cuda_fft d;
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->dtype == MC_FLOAT64 || p->wide || s->unshared || s->groups != 1) {
        return s->unshared      ? "has one filter for all positions"
               : s->groups != 1 ? "takes one group"
                                : "sums in float32";
    }
    for (int i = 0; i < 3; i++) {
        if (s->stride[i] != 1 || s->dilation[i] != 1 || s->pad[i] < 0) {
            return "takes stride 1, dilation 1 and no negative pads";
        }
    }
    return s->in[0] != 1 || s->out[0] != 1 || s->k[0] != 1 || s->pad[0] != 0 ? "takes two spatial axes"
           : p->has_bias || p->act != ACT_NONE                               ? "fuses nothing"
           : kind & FINE && !half_spectra(p) ? "is the same as fft where halves are not allowed"
           : choose(p, kind, &d)             ? NULL
           : kind & TILED                    ? "would make one tile"
                                             : "transforms no more than 128 x 128";
}

static double estimate(const struct mc_conv_problem *p, int kind)
{
    struct mc_cuda_fft d;
    return choose(p, kind, &d) ? seconds(p, &d) : 1e30;
}

#define FFT(name_, kind)                                                                                     \
    static const char *refuse_##name_(const struct mc_problem *p) { return refuse(conv(p), kind); }          \
    static double estimate_##name_(const struct mc_problem *p) { return estimate(conv(p), kind); }           \
    static struct mc_plan *plan_##name_(const struct mc_problem *p) { return make(conv(p), kind); }          \
    const struct mc_solver mc_conv_cuda_##name_ = {                                                          \
        .name = #name_, .refuse = refuse_##name_, .estimate = estimate_##name_, .plan = plan_##name_,        \
        .finer = (kind) & FINE,                                                                              \
    };
FFT(fft, 0)
FFT(fft_tiling, TILED)
FFT(fft_fine, FINE)
