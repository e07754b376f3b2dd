/* cudnn.c: convolutions by cuDNN's backend: every pass; its heuristics, and all of its engines and knobs
 * (search.c).
 *
 * Invariant: the plan can be captured, and runs for pointers of any alignment. */
#include "heavy/conv/cuda/cuda.h"

struct dnn {
    struct mc_plan base;
    struct mc_dnn graph, loose_graph;
    struct mc_dnn_ready use, loose;    /* loose: for pointers that are aligned to an element only */
    struct mc_cuda_copy *c0;
};

static struct dnn *dnn(const struct mc_plan *p)
{
    return (struct dnn *)(void *)(uintptr_t)p;
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct dnn *d = dnn(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    uintptr_t low = (uintptr_t)workspace;
    void *result = mc_conv_cuda_result(p, operand);
    (void)threads;
    for (int i = CONV_X; i <= CONV_Y; i++) {
        low |= (uintptr_t)operand[i];
    }
    low |= mc_dnn_fused(p) && p->beta != 0 ? (uintptr_t)operand[CONV_C0] : 0;
    low |= p->has_bias ? (uintptr_t)operand[CONV_BIAS] : 0;
    if (d->c0 && operand[CONV_C0] != result) {
        TRY(mc_cuda_copy_run(d->c0, result, operand[CONV_C0]));
    }
    return mc_dnn_execute(low % MC_CUDA_ALIGNED && d->loose.plan ? &d->loose : &d->use, p, operand,
                          workspace);
}

/* ---- a plan ---- */

static void destroy(struct mc_plan *plan)
{
    struct dnn *d = dnn(plan);
    mc_dnn_forget(&d->use);
    mc_dnn_forget(&d->loose);
    mc_dnn_free(&d->graph);
    mc_dnn_free(&d->loose_graph);
    mc_cuda_copy_free(d->c0);
}

static void choose_loose(struct dnn *d, const struct mc_conv_problem *p)
{
    void *graph = mc_dnn_graph(&d->loose_graph, mc_dnn_handle(), p, mc_dtypes[p->dtype].size);
    if (graph) {
        mc_dnn_choose_like(p, graph, &d->use, &d->loose);
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct dnn *d = mc_calloc(1, sizeof *d, "plans");
    if (!d || !mc_dnn_handle()) {
        mc_free(d);
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = destroy;
    void *graph = mc_dnn_graph(&d->graph, mc_dnn_handle(), p, MC_CUDA_ALIGNED);
    bool ok = graph && mc_dnn_choose(p, graph, &d->use);
    if (ok && p->beta != 0 && !mc_dnn_fused(p)) {
        d->c0 = mc_conv_cuda_c0_copy(p);
        ok = d->c0 != NULL;
    }
    if (!ok) {
        if (mc_last_status() >= 0) {
            mc_fail(MC_EUNSUPPORTED, graph ? "conv: cuDNN has no engine for this problem"
                                           : "conv: cuDNN has no graph for this problem");
        }
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    choose_loose(d, p);
    d->base.workspace = MC_MAX(d->use.workspace, d->loose.workspace);
    return &d->base;
}

static const char *refuse(const struct mc_problem *p)
{
    const char *no = mc_dnn_refuse(conv(p));
    return no                                           ? no
           : mc_flag_int(FLAG_dnn_enabled) == DNN_NEVER ? "is switched off by the flag dnn.enabled"
           : !mc_nv_found(NV_CUDNN)->present            ? "finds no library"
                                                        : NULL;
}

enum { TILE = 64, THICK = 32 };

/* The part of the units' speed that few channels reach.  Tensor cores sum over channels first: 3 channels
 * of bfloat16 ran at 23 TFLOP/s on an H200, 3 of TF32 at 17.  Gradients have a column for each channel:
 * that of 64 filters of 12 channels took over a millisecond instead of 0.29.  Groups of
 * 4 to 32 channels, 3 x 3 on an H100, reached 0.05 to 0.22 of the peak forward in float32, and in bfloat16 17
 * and 31 TFLOP/s with 4 and 24. */
static double thick(const struct mc_conv_problem *p)
{
    const double of_group = (double)p->s.c / (double)p->s.groups;
    if (p->s.groups > 1 && !p->tf32 && p->dtype != MC_FLOAT64) {
        return p->dtype == MC_FLOAT32 ? MC_MIN(of_group / (3 * THICK), 0.3)
                                      : MC_MIN(0.03 + of_group / 800, 1);
    }
    const bool matters = p->tf32 || mc_dtypes[p->dtype].size == 2 || p->s.pass != CONV_FORWARD;
    /* for halves the same number of bytes */
    const double enough = mc_dtypes[p->dtype].size == 2 ? 2 * THICK : THICK;
    return matters && p->s.groups == 1 ? MC_MIN((double)p->s.c / enough, 1) : 1;
}

/* Engines on tensor cores need NHWC; other layouts are copied on the way: 14 to 36 us for 13 to 31 MB. */
static double transpose_seconds(const struct mc_conv_problem *p)
{
    const bool cores = p->tf32 || mc_dtypes[p->dtype].size == 2,
               innermost = p->at.x[1] == 1 && p->at.y[1] == 1;
    return cores && !innermost ? mc_cuda_seconds(p->dtype, false, 0, 2 * mc_conv_bytes(p), 1) : 0;
}

/* The time of implicit products.  A gradient of images tests every tap at every position of x, and few
 * tiles keep few multiprocessors busy: 224 x 224 taps for 3 x 3 positions take 16 to 41 ms on an H200, at
 * 0.7 GFLOP.  With NHWC and 64 or more channels bfloat16 reaches 0.52 to 0.73 of the peak, TF32 0.6 to
 * 0.83, and 0.3 to 0.4 in gradients of filters. */
static double implicit(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const struct mc_cuda *d = mc_cuda_current();
    const double positions = (double)conv_volume(s->out),
                 seen = s->pass == CONV_INPUTS ? MC_MAX((double)conv_volume(s->in) / positions, 1) : 1;
    const double walked = mc_conv_flops(p) * MC_MAX(seen / (double)conv_volume(s->stride), 1);
    const int64_t rows = s->n * conv_volume(s->pass == CONV_INPUTS ? s->in : s->out),
                  cols = s->pass == CONV_INPUTS ? s->c : s->f;
    const double tiles = (double)(conv_ceil(rows, TILE) * conv_ceil(cols, TILE));
    const double busy = s->pass == CONV_WEIGHTS || !d ? 1
                                                      : MC_MIN(4 * tiles / d->processors, 1); /* split-K */
    return transpose_seconds(p) +
           mc_cuda_seconds(p->dtype, p->tf32, walked, mc_conv_bytes(p), thick(p) * busy * 0.6);
}

/* cuDNN has transforms too, even if its heuristics do not name them: the estimate of fft, and 10 percent.
 * A fused epilogue may have to be compiled in every process, by engines about which nothing is known; so
 * it counts more than a separate kernel, and only timing can select it. */
static double estimate(const struct mc_problem *p)
{
    const struct mc_solver *fft = &mc_conv_cuda_fft;
    return 2e-6 + (fft->refuse(p) ? implicit(conv(p)) : MC_MIN(implicit(conv(p)), 1.1 * fft->estimate(p))) +
           (mc_dnn_fused(conv(p)) ? 1.1 * mc_conv_cuda_epilogue_seconds(conv(p)) : 0);
}

const struct mc_solver mc_conv_cudnn = { .name = "cudnn", .refuse = refuse, .estimate = estimate,
                                         .plan = plan, .doubted = true };
