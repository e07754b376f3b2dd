/* plan.c: the shape, the plan and the call of all solvers for images of few channels. */
#include "heavy/conv/cuda/small_channels/small_channels.h"

/* ---- a shape ---- */

/* two outer strides, two inner ones */
static void copy4(int64_t to[4], const int64_t *a, const int64_t *b)
{
    to[0] = a[0];
    to[1] = a[1];
    to[2] = b[0];
    to[3] = b[1];
}

void mc_small_channels_shape(struct mc_small_channels *d, struct mc_small_channels_args *a,
                             const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    *a = (struct mc_small_channels_args){ .n = (int)(s->n * (s->pass == CONV_INPUTS ? s->in[0] : s->out[0])),
                                          .f = (int)s->f,
                                          .deep = { p->at.x[2], p->at.w[2], p->at.y[2] },
                                          .alpha = (float)p->alpha,
                                          .beta = (float)p->beta };
    *d = (struct mc_small_channels){ .pass = s->pass, .nhwc = p->at.y[1] == 1 && p->at.y[4] != 1 };
    copy4(a->xs, p->at.x, p->at.x + 3);
    copy4(a->ws, p->at.w, p->at.w + 3);
    copy4(a->ys, p->at.y, p->at.y + 3);
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)s->in[i + 1];
        a->out[i] = (int)s->out[i + 1];
        a->pad[i] = (int)s->pad[i + 1];
    }
    for (int i = 0; i < 3 && s->flip; i++) {
        int64_t *const stride = i == 0 ? &a->deep[1] : &a->ws[1 + i];
        d->w_first += (s->k[i] - 1) * *stride;
        *stride = -*stride;
    }
}

void mc_small_channels_parts(struct mc_small_channels *d, const struct mc_conv_shape *s, int blocks)
{
    const int64_t weights = s->f * s->c * s->k[0] * s->k[1] * s->k[2];
    d->then_grid = (struct mc_grid){ { (unsigned)conv_ceil(weights, 32), 1, 1 }, { 256, 1, 1 }, 0 };
    d->base.workspace = (size_t)(blocks * weights) * sizeof(float);
}

/* ---- a plan ---- */

static const char *const names[][2] = {
    [CONV_FORWARD] = { "forward", NULL     },
    [CONV_INPUTS]  = { "filters", "inputs" },
    [CONV_WEIGHTS] = { "weights", "add"    },
};

void mc_small_channels_defines(struct mc_str *defines, const struct mc_small_channels *d,
                               const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    mc_str_addf(defines, "#define KD %d\n#define SD %d\n#define PD (%d)\n#define ID %d\n#define OD %d\n",
                (int)s->k[0], (int)s->stride[0], (int)s->pad[0], (int)s->in[0], (int)s->out[0]);
    const int64_t *const w = p->at.w, *const k = s->k;
    const bool dense = !s->flip && w[4] == 1 && w[3] == k[2] && w[2] == k[1] * k[2] &&
                       w[1] == k[0] * k[1] * k[2];
    mc_str_addf(defines, "#define TAPS_DENSE %d\n", dense);
    const bool fine = p->dtype == MC_FLOAT32 && !p->tf32;
    mc_str_addf(defines, "#define FINE %d\n#define PAIRS %d\n", fine, fine && d->pass == CONV_FORWARD);
    mc_str_addf(defines, "#define C %d\n#define KH %d\n#define KW %d\n#define SH %d\n#define SW %d\n",
                (int)s->c, (int)s->k[1], (int)s->k[2], (int)s->stride[1], (int)s->stride[2]);
    mc_str_addf(defines, "#define BESIDE %d\n#define HAS_C0 %d\n#define HAS_BIAS %d\n#define ACT %d\n",
                d->nhwc, p->beta != 0, p->has_bias, (int)p->act);
}

struct mc_plan *mc_small_channels_plan(const struct mc_small_channels *d, size_t size,
                                       const struct mc_cuda_text *text, struct mc_str *defines)
{
    struct mc_small_channels *made = mc_alloc(size, "plans");
    if (!made) {
        mc_str_free(defines);
        return NULL;
    }
    memcpy(made, d, size);
    const struct mc_cuda_kernel_ref kernels[] = { { &made->kernel, names[d->pass][0] },
                                                  { &made->then, names[d->pass][1] } };
    if (!mc_cuda_kernels(text, defines, kernels, NELEM(kernels))) {
        mc_free(made);
        return NULL;
    }
    return &made->base;
}

/* ---- a call ---- */

void mc_small_channels_bind(const struct mc_small_channels *d, struct mc_small_channels_args *a,
                            const struct mc_conv_problem *p, void *const *operand, void *workspace)
{
    const int64_t first = d->w_first * mc_dtypes[p->dtype].size;
    a->x = operand[CONV_X];
    a->w = (char *)operand[CONV_W] + first;
    a->y = operand[CONV_Y];
    a->c0 = p->beta != 0 ? (char *)operand[CONV_C0] + (d->pass == CONV_WEIGHTS ? first : 0) : NULL;
    a->bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a->workspace = workspace;
}

mc_status mc_small_channels_run(const struct mc_small_channels *d, const void *args, size_t size)
{
    TRY(mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, names[d->pass][0], &d->grid, args, size));
    return d->then ? mc_cuda_launch_dependent(mc_cuda_current(), d->then, names[d->pass][1], &d->then_grid,
                                              args, size)
                   : MC_OK;
}

/* ---- limits ---- */

enum { MOST_CHANNELS = 4 };

/* Positions and cells are counted in ints. */
static bool counted(const struct mc_conv_problem *p)
{
    const int64_t most = INT32_MAX / 64;
    const int64_t images = p->s.n * MC_MAX(p->s.in[0], p->s.out[0]);
    bool ok = p->s.n < most && p->s.in[0] < 8192 && p->s.out[0] < 8192 && images < most && p->s.f < 4096 &&
              images * p->s.out[1] < most;
    for (int i = 0; i < 3; i++) {
        ok = ok && p->s.in[i] < 8192 && p->s.out[i] < 8192 && p->s.pad[i] < 4096 && p->s.pad[i] > -4096;
    }
    return ok;
}

const char *mc_small_channels_refuse(const struct mc_conv_problem *p)
{
    return mc_conv_hollow(p)                  ? mc_conv_hollow(p)
           : p->wide                          ? "sums in float32, and conv.precision asks for float64"
           : p->s.unshared || p->s.groups > 1 ? "takes one group, and one filter for all positions"
           : p->s.c > MOST_CHANNELS           ? "takes up to four channels"
           : !counted(p)                      ? "does not take images this large"
           : p->s.dilation[0] != 1 || p->s.dilation[1] != 1 || p->s.dilation[2] != 1 ? "takes no dilation"
           : p->at.y[4] != 1 && p->at.y[1] != 1 && p->s.out[2] > 1
               ? "requires contiguous lines or filters of y"
               : NULL;
}
