/* shared_image.c: shared by solvers with whole images in shared memory: arguments, reasons to refuse, the
 * call.
 *
 * Invariant: images are bc01, each channel without gaps; those of a block fit in shared memory. */
#include "heavy/conv/cuda/split_fp16/shared_image.h"

static const char halves[] = {
#include "heavy/conv/cuda/split_fp16/shared_image_text.h"
    , 0 };
static const char filters[] = {
#include "heavy/conv/cuda/split_fp16/shared_image_filters_text.h"
    , 0 };
static const char gathering[] = {
#include "heavy/conv/cuda/split_fp16/shared_image_forward_text.h"
    , 0 };
static const char parts[] = {
#include "heavy/conv/cuda/split_fp16/shared_image_sum_text.h"
    , 0 };
static const char weighing[] = {
#include "heavy/conv/cuda/split_fp16/shared_image_weights_text.h"
    , 0 };
static const char tapping[] = {
#include "heavy/conv/cuda/split_fp16/register_weights_text.h"
    , 0 };
static const char spreading[] = {
#include "heavy/conv/cuda/split_fp16/scatter_text.h"
    , 0 };
static const struct mc_cuda_text
    halves_text = { "heavy/conv/cuda/split_fp16/shared_image.cu", halves, NULL },
    filters_text = { "heavy/conv/cuda/split_fp16/shared_image_filters.cu", filters, &halves_text },
    parts_text = { "heavy/conv/cuda/split_fp16/shared_image_sum.cu", parts, &halves_text };
const struct mc_cuda_text
    mc_conv_shared_image_text = {
        "heavy/conv/cuda/split_fp16/shared_image_forward.cu", gathering, &filters_text
    },
    mc_conv_shared_image_weights_text = {
        "heavy/conv/cuda/split_fp16/shared_image_weights.cu", weighing, &parts_text
    },
    mc_conv_register_weights_text = {
        "heavy/conv/cuda/split_fp16/register_weights.cu", tapping, &parts_text
    },
    mc_conv_col2im_text = { "heavy/conv/cuda/split_fp16/scatter.cu", spreading, &filters_text };

enum { MOST_CHANNELS = 64, MOST_EIGHTS = 4 };

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_shared_image *h = (const struct mc_shared_image *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    struct mc_shared_image_args a = h->args;
    (void)threads;
    a.x = operand[p->s.pass == CONV_INPUTS ? CONV_Y : CONV_X];
    a.y = operand[CONV_Y];
    a.w = (const float *)operand[CONV_W] + h->w_first;
    a.to = weights ? (float *)operand[CONV_W] + h->w_first : mc_conv_cuda_result(p, operand);
    a.c0 = p->beta != 0 ? (float *)operand[CONV_C0] + (weights ? h->w_first : 0) : NULL;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a.filters = a.parts = workspace;
    a.scale = (void *)((char *)workspace + h->scale_at);
    a.fours = h->fours && mc_cuda_aligned(a.x) && (!weights || mc_cuda_aligned(a.y));
    a.split = (void *)((char *)workspace + h->split_at);
    for (size_t i = 0; i < NELEM(h->kernel) && h->kernel[i].name; i++) {
        TRY(mc_cuda_launch_dependent(mc_cuda_current(), h->kernel[i].loaded, h->kernel[i].name,
                                     &h->kernel[i].grid, &a, sizeof a));
    }
    return MC_OK;
}

/* ---- a plan ---- */

/* Blocks that a multiprocessor runs at once.  Registers are allocated to four warps at a time. */
unsigned mc_shared_image_blocks(const struct mc_shared_image *h, unsigned threads)
{
    return MC_MAX((unsigned)h->warps / 4 / ((threads + 127) / 128), 1);
}

static void filter_strides(struct mc_shared_image *h, const struct mc_conv_problem *p, bool turned)
{
    const bool back = p->s.pass == CONV_INPUTS;
    struct mc_shared_image_args *a = &h->args;
    a->ws[0] = p->at.w[back ? 1 : 0];
    a->ws[1] = p->at.w[back ? 0 : 1];
    for (int i = 0; i < 2; i++) {
        a->ws[2 + i] = turned ? -p->at.w[3 + i] : p->at.w[3 + i];
        h->w_first += turned ? (p->s.k[1 + i] - 1) * p->at.w[3 + i] : 0;
    }
}

void mc_shared_image_shape(struct mc_shared_image *h, const struct mc_conv_problem *p, bool from_y,
                           bool turned)
{
    const bool weights = p->s.pass == CONV_WEIGHTS;
    const struct mc_conv_shape *s = &p->s;
    struct mc_shared_image_args *a = &h->args;
    const int64_t *const to = from_y ? p->at.x : p->at.y;
    *h = (struct mc_shared_image){ .work = 1,
                                   .args = { .n = (int)s->n,
                                             .channels = (int)(from_y ? s->f : s->c),
                                             .results = (int)(from_y ? s->c : s->f),
                                             .xs = from_y ? p->at.y[0] : p->at.x[0],
                                             .ys = p->at.y[0],
                                             .ts = { to[0], to[1] },
                                             .images = 1,
                                             .alpha = (float)p->alpha,
                                             .beta = (float)p->beta } };
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)(from_y ? s->out[1 + i] : s->in[1 + i]);
        a->out[i] = (int)(from_y ? s->in[1 + i] : s->out[1 + i]);
        a->k[i] = (int)s->k[1 + i];
        a->stride[i] = (int)s->stride[1 + i];
        a->dilation[i] = (int)s->dilation[1 + i];
        a->pad[i] = (int)s->pad[1 + i];
    }
    filter_strides(h, p, turned);
    mc_shared_image_chunks(h, MOST_CHANNELS, 16);
    h->fb = a->results > SHARED_IMAGE_TILE ? 2 * SHARED_IMAGE_TILE : SHARED_IMAGE_TILE;
    const int positions = a->in[0] * a->in[1], outs = a->out[0] * a->out[1];
    h->fours = a->xs % 4 == 0 && (positions % 4 == 0 || a->channels % 4 == 0) &&
               (!weights || (a->ys % 4 == 0 && (outs % 4 == 0 || a->results % 4 == 0)));
}

void mc_shared_image_chunks(struct mc_shared_image *h, int most, int unit)
{
    const int channels = h->args.channels, chunks = (channels + most - 1) / most;
    h->cc = mc_shared_image_up((channels + chunks - 1) / chunks, unit);
    h->args.chunks = (channels + h->cc - 1) / h->cc;
}

int mc_shared_image_columns(struct mc_shared_image *h)
{
    const int eights = (h->args.results + 7) / 8, columns = (eights + MOST_EIGHTS - 1) / MOST_EIGHTS;
    h->nt = (eights + columns - 1) / columns;
    return columns;
}

void mc_shared_image_filters(struct mc_shared_image *h, int steps, int across)
{
    struct mc_shared_image_args *a = &h->args;
    a->steps = steps;
    a->tiles = across * a->right * h->nt; /* every warp has filters to read */
    h->kernel[0] = (struct mc_shared_image_kernel){ "pack",
                                                    { { (unsigned)a->tiles * 8, 1, 1 }, { 256, 1, 1 }, 0 },
                                                    NULL };
    h->scale_at = (size_t)(a->chunks * a->steps) * (size_t)a->tiles * 32 * 16;
    h->base.workspace = h->scale_at + (size_t)a->tiles * 8 * sizeof(float);
}

/* The sizes that register_weights.cu is compiled for in addition. */
static void define_sizes(struct mc_str *defines, const struct mc_shared_image *h)
{
    const struct mc_shared_image_args *a = &h->args;
    mc_str_addf(
        defines,
        "#define IN0 %d\n#define IN1 %d\n#define OUT0 %d\n#define OUT1 %d\n#define K0 %d\n#define K1 %d\n",
        a->in[0], a->in[1], a->out[0], a->out[1], a->k[0], a->k[1]);
    mc_str_addf(defines, "#define KS %d\n#define SET %d\n#define FULL %d\n", h->ks, a->per_set,
                a->channels % h->cc == 0 && a->results % h->fb == 0);
}

struct mc_plan *mc_shared_image_plan(mc_shared_image_lay_out *lay_out, const struct mc_conv_problem *p,
                               const struct mc_cuda_text *t)
{
    struct mc_shared_image *h = mc_calloc(1, sizeof *h, "plans");
    struct mc_cuda_kernel_ref kernels[NELEM(h->kernel)];
    struct mc_str defines = { 0 };
    if (!h) {
        return NULL;
    }
    lay_out(h, p);
    h->base.run = run;
    const unsigned threads = h->kernel[h->work].grid.threads[0];
    mc_str_addf(&defines,
                "#define CC %d\n#define FB %d\n#define NT %d\n#define EDGES %d\n#define ACT %d\n#define "
                "THREADS %u\n#define "
                "BLOCKS %u\n",
                h->cc, h->fb, MC_MAX(h->nt, 1), (int)h->edges, (int)p->act, threads,
                mc_shared_image_blocks(h, threads));
    if (h->ks) {
        define_sizes(&defines, h);
    }
    for (size_t i = 0; i < NELEM(kernels); i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){ &h->kernel[i].loaded, h->kernel[i].name };
    }
    if (!mc_cuda_kernels(t, &defines, kernels, NELEM(kernels))) {
        mc_free(h);
        return NULL;
    }
    return &h->base;
}

/* ---- limits and estimate ---- */

static bool dense_positions(const int64_t at[5], const int64_t size[3])
{
    return at[4] == 1 && (size[1] == 1 || at[3] == size[2]);
}

static bool is_dense_bc01(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return dense_positions(p->at.x, s->in) && dense_positions(p->at.y, s->out) &&
           (s->pass == CONV_INPUTS || s->c == 1 || p->at.x[1] == s->in[1] * s->in[2]) &&
           (s->pass == CONV_FORWARD || s->f == 1 || p->at.y[1] == s->out[1] * s->out[2]);
}

static bool small(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    bool ok = s->n < INT32_MAX / 1024 && s->c <= 4096 && s->f <= 4096;
    for (int i = 1; i < 3; i++) {
        ok = ok && s->in[i] <= 64 && s->out[i] <= 64 && s->k[i] <= 16 && s->dilation[i] <= 8 &&
             s->stride[i] <= 8 && s->pad[i] >= 0 && s->pad[i] <= 64;
    }
    return ok;
}

const char *mc_shared_image_fit(mc_shared_image_lay_out *lay_out, const struct mc_conv_problem *p)
{
    struct mc_shared_image h;
    lay_out(&h, p);
    const struct mc_grid *g = &h.kernel[h.work].grid;
    bool ok = g->blocks[1] <= 4 * (unsigned)mc_cuda_multiprocessors() &&
              g->threads[0] <= 32 * (unsigned)h.warps;
    for (size_t i = 0; i < NELEM(h.kernel); i++) {
        ok = ok && h.kernel[i].grid.shared <= SHARED_IMAGE_MOST_SHARED;
    }
    return ok ? NULL : "takes small images, which fit in shared memory";
}

double mc_shared_image_seconds(const struct mc_shared_image *h, const struct mc_conv_problem *p,
                               int positions, int results, double share)
{
    const struct mc_shared_image_args *a = &h->args;
    const double terms = (double)positions * results * h->cc * a->chunks * a->k[0] * a->k[1];
    return mc_cuda_seconds(MC_FLOAT16, false, 6.0 * (double)a->n * terms, mc_conv_bytes(p), share);
}

const char *mc_shared_image_refuse(const struct mc_conv_problem *p)
{
    return p->dtype != MC_FLOAT32             ? "takes float32 only"
           : mc_conv_hollow(p)                ? mc_conv_hollow(p)
           : p->wide                          ? "sums in float32, and conv.precision asks for float64"
           : p->s.unshared || p->s.groups > 1 ? "takes one group, and one filter for all positions"
           : p->s.in[0] != 1 || p->s.k[0] != 1 || p->s.out[0] != 1 || p->s.pad[0] != 0
               ? "takes one or two spatial axes"
           : !is_dense_bc01(p) ? "requires images as bc01 without gaps"
           : !small(p)         ? "takes small images, which fit in shared memory"
                               : mc_cuda_needs_sm80();
}
