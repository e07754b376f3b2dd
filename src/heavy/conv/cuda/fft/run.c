/* run.c: a call of a convolution by Fourier transforms: the largest numbers where halves are scaled, the
 * spectra of both operands, their product, and the inverse transform, for as many images at a time as the
 * workspace allows.
 *
 * Invariant: rounds of images share only the spectra of filters; spectra of weights are summed over
 * rounds. */
#include "heavy/conv/cuda/fft/fft.h"
#include "heavy/conv/cuda/fft/fft_args.h"
#include "heavy/conv/cuda/fft/fft_product_args.h"


/* the role whose spectra are conjugated; -1: none */
static const int conjugate[3] = { [CONV_FORWARD] = CONV_W, [CONV_INPUTS] = -1, [CONV_WEIGHTS] = CONV_Y };

struct call {
    const struct mc_cuda_fft *d;
    const struct mc_conv_problem *p;
    char *at[3];                /* x, w, y of these images */
    const char *c0;
    char *s[3];                 /* their spectra */
    uint32_t *peaks;            /* of both operands, those of the lower role first */
    int64_t images;
};

static int first_operand(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_INPUTS ? CONV_W : CONV_X;
}

/* Positions of tiles along an axis, the part of each that is used, and its offset in the transform. */
static void lay_out(struct mc_fft_args *t, const struct mc_conv_problem *p, const struct mc_cuda_fft *d,
                    int role, int axis)
{
    const struct mc_conv_shape *s = &p->s;
    const int i = axis - 1, n = d->n, k = (int)s->k[axis], pad = (int)s->pad[axis], each = n - k + 1;
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

static struct mc_fft_args transform(const struct call *c, int role)
{
    const struct mc_conv_problem *p = c->p;
    const struct mc_cuda_fft *d = c->d;
    const struct mc_conv_array a = mc_conv_array(p, role);
    const int r = mc_cuda_fft_in_rows(p, d, role, c->images), result = mc_conv_result(p->s.pass);
    const bool flip = role == CONV_W && p->s.flip;
    const int64_t size = mc_dtypes[p->dtype].size;
    struct mc_fft_args t = { .s = c->s[role],
                             .step = { a.stride[r], a.stride[!r] },
                             .tiles = { 1, 1 },
                             .across = (int)mc_cuda_fft_tiles(p, d, 2) };
    int64_t first = 0; /* bytes from the array to the element that is read first */
    t.conjugate = role == conjugate[p->s.pass];
    t.peaks = c->peaks + (role == result || role == first_operand(p) ? 0 : FFT_PEAKS);
    mc_cuda_fft_shape(p, d, role, c->images, &t.rows, &t.cols);
    t.ld = fft_lead(t.cols);
    if (mc_fft_of_role[role][0] == IMAGES) {
        t.tiles[r] = (int)(mc_cuda_fft_tiles(p, d, 1) * mc_cuda_fft_tiles(p, d, 2));
    }
    for (int axis = 1; axis < 3; axis++) {
        lay_out(&t, p, d, role, axis);
        t.stride[axis - 1] = flip ? -a.stride[axis + 2] : a.stride[axis + 2];
        first += flip ? (p->s.k[axis] - 1) * a.stride[axis + 2] * size : 0;
    }
    t.x = c->at[role] + first;
    if (role == result) {
        t.scale = (float)(p->alpha / ((double)d->n * d->n));
        t.beta = (float)p->beta;
        t.c0 = c->c0 ? c->c0 + first : NULL;
    }
    return t;
}

static mc_status launch(const struct call *c, int role)
{
    const bool back = role == mc_conv_result(c->p->s.pass);
    const struct mc_cuda_fft_grid *z = back ? &c->d->behind : &c->d->forth;
    const struct mc_fft_args t = transform(c, role);
    const int64_t blocks = t.rows * ((t.cols + z->tiles - 1) / z->tiles);
    const struct mc_grid g = { { (unsigned)blocks, 1, 1 }, { (unsigned)z->threads, 1, 1 }, z->shared };
    void *kernel = back ? c->d->back : c->d->spectra;
    return mc_cuda_launch(mc_cuda_current(), kernel, back ? "back" : "spectra", &g, &t, sizeof t);
}

/* Over whole operands, even if images are taken in rounds. */
static mc_status find_largest(const struct call *c, void *const *operand)
{
    const struct mc_conv_problem *p = c->p;
    const struct mc_grid g = { { FFT_PEAKS, 2, 1 }, { FFT_PEAK_THREADS, 1, 1 }, 0 };
    struct mc_extent e[5];
    struct mc_fft_peak_args a = { .to = c->peaks };
    mc_conv_extents(p, e);
    for (int role = CONV_X, i = 0; role <= CONV_Y; role++) {
        if (role != mc_conv_result(p->s.pass)) {
            a.x[i] = (char *)operand[role] - e[role].before * mc_dtypes[p->dtype].size;
            a.count[i++] = e[role].count;
        }
    }
    return mc_cuda_launch(mc_cuda_current(), c->d->peaks, "peaks", &g, &a, sizeof a);
}

struct way { int kernel, frequencies; unsigned threads; int64_t blocks; };

/* The kernel and launch for an (m, n) product at each frequency. */
static struct way pass_of(const struct mc_cuda_fft *d, int64_t m, int64_t n)
{
    const bool thin = m <= FFT_THIN;
    const bool paired = d->n == FFT_PAIRED;
    const int64_t columns = paired ? FFT_PER_BLOCK / (FFT_BESIDE / 2) : FFT_PER_BLOCK,
                  wide = (n + columns - 1) / columns;
    const int64_t rows = thin ? FFT_THIN : 2 * FFT_THIN;
    return paired ? (struct way){ thin ? 2 : 3, FFT_BESIDE, FFT_PER_BLOCK, wide * ((m + rows - 1) / rows) }
           : thin
               ? (struct way){ 1, 1, FFT_PER_BLOCK / 2, wide }
               : (struct way){ 0, 1, 128, (m + FFT_WIDE - 1) / FFT_WIDE * ((n + FFT_WIDE - 1) / FFT_WIDE) };
}

static mc_status multiply(const struct call *c, bool add)
{
    const struct mc_conv_problem *p = c->p;
    const int result = mc_conv_result(p->s.pass);
    const int one = result == CONV_X ? CONV_W : CONV_X, other = result == CONV_Y ? CONV_W : CONV_Y;
    const enum mc_fft_index m = mc_fft_of_role[result][mc_cuda_fft_in_rows(p, c->d, result, c->images)];
    const bool first = mc_fft_of_role[one][0] == m || mc_fft_of_role[one][1] == m;
    const int a = first ? one : other, b = first ? other : one;
    struct mc_fft_product_args t = { .a = c->s[a], .b = c->s[b], .c = c->s[result], .add = add };
    mc_cuda_fft_shape(p, c->d, a, c->images, &t.k, &t.m);
    mc_cuda_fft_shape(p, c->d, b, c->images, &t.k, &t.n);
    t.lda = fft_lead(t.m);
    t.ldb = t.ldc = fft_lead(t.n);
    const struct way w = pass_of(c->d, t.m, t.n);
    const struct mc_grid g = { { (unsigned)w.blocks, (unsigned)(fft_frequencies_of(c->d) / w.frequencies),
                                 1 },
                               { w.threads, 1, 1 },
                               0 };
    return mc_cuda_launch(mc_cuda_current(), c->d->product[w.kernel], mc_cuda_fft_ways[w.kernel], &g, &t,
                          sizeof t);
}

mc_status mc_cuda_fft_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_cuda_fft *d = (const struct mc_cuda_fft *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const int result = mc_conv_result(p->s.pass);
    struct call c = { .d = d, .p = p };
    const int64_t size = mc_dtypes[p->dtype].size;
    char *at = workspace;
    (void)threads;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        c.s[role] = at;
        at += mc_cuda_fft_bytes(p, d, role, d->images);
        c.at[role] = operand[role];
    }
    c.peaks = (uint32_t *)(void *)at;
    c.c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    if (d->half_spectra) {
        TRY(find_largest(&c, operand));
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
