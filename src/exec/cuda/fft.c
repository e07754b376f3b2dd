/* fft.c: Fourier transforms of real tensors on a GPU, by cuFFT, in the dtype of the tensor.
 *
 * cuFFT's plan is a part of the shape plan, and its memory one of the call's: plans of shapes that are
 * dropped are freed, and nothing else is kept.
 *
 * Invariant: the input is not changed: transforms back read a copy, which they overwrite. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/fft_args.h"

enum { R2C = 0x2a, C2R = 0x2c, D2Z = 0x6a, Z2D = 0x6c, MOST_AXES = 3 };
struct fft {
    struct mc_exec exec;
    mc_dtype dtype;
    bool back, made;
    int in, out;                /* value ids */
    int rank, n[MOST_AXES], plan, batch;
    int64_t half, inner[2], work_at; /* offset of cuFFT's memory in the scratch, behind copies of the input */
    size_t bytes;               /* of the input */
    void *spectrum;
};

static const char text[] = {
#include "exec/cuda/fft_text.h"
    , 0 };
const struct mc_cuda_text mc_fft_step_text = { "exec/cuda/fft.cu", text };

static mc_status failed(const char *what, int code)
{
    return code ? mc_fail(MC_EUNSUPPORTED, "fft: %s failed with status %d", what, code) : MC_OK;
}

/* ---- a call ---- */

static mc_status clean(const struct fft *x, struct mc_cuda *d, const void *from, void *to)
{
    const struct mc_fft_args a = { .from = from,
                                   .to = to,
                                   .count = x->batch * x->inner[0] * x->inner[1] * x->half,
                                   .half = x->half,
                                   .last = x->n[x->rank - 1],
                                   .inner = { x->inner[0], x->inner[1] } };
    const struct mc_grid g = mc_cuda_grid_1d(a.count, 256);
    return mc_cuda_launch(d, x->spectrum, "spectrum", &g, &a, sizeof a);
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct fft *x = (const struct fft *)(const void *)e;
    const struct mc_slot *from = &p->slot[x->in];
    struct mc_cuda *d = mc_cuda_of(f->code);
    const bool dense = mc_slot_contiguous(from), wide = x->dtype == MC_FLOAT64;
    char *in = f->ptr[x->in], *copy = scratch, *out = f->ptr[x->out];
    (void)step;
    if (!dense || (!x->back && !mc_cuda_aligned(in))) {
        TRY(mc_cuda_fn_copy(f, from, in, copy));
        in = copy;
    }
    if (x->back) {
        char *to = in == copy ? copy + mc_work_rounded(x->bytes) : copy;
        TRY(clean(x, d, in, to));
        in = to;
    }
    TRY(failed("cufftSetWorkArea", mc_nv.cufftSetWorkArea(x->plan, scratch + x->work_at)));
    return failed("cuFFT", x->back ? (wide ? mc_nv.cufftExecZ2D : mc_nv.cufftExecC2R)(x->plan, in, out)
                                   : (wide ? mc_nv.cufftExecD2Z : mc_nv.cufftExecR2C)(x->plan, in, out));
}

static void release(struct mc_exec *e)
{
    struct fft *x = (struct fft *)(void *)e;
    if (x->made) {
        mc_nv.cufftDestroy(x->plan);
    }
    mc_free(x);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

/* ---- a shape ---- */

bool mc_cuda_fft_can(const struct mc_step *st)
{
    const mc_node *n = st->kind == STEP_HOST && st->nnode == 1 ? st->node[0] : NULL;
    return n && (strcmp(n->op->name, "fft_forward") == 0 || strcmp(n->op->name, "fft_backward") == 0) &&
           (n->type.dtype == MC_FLOAT32 || n->type.dtype == MC_FLOAT64) && mc_nv_found(NV_CUFFT)->present;
}

/* The sizes; false: cuFFT, or its numbers of 32 bits, do not do. */
static bool describe(struct fft *x, const struct mc_type *spectrum, const struct mc_type *real)
{
    const int64_t limit = (int64_t)1 << 30, all = mc_dims_count(real->rank, real->dims),
                  pairs = mc_dims_count(spectrum->rank, spectrum->dims);
    x->rank = real->rank - 1;
    x->half = spectrum->dims[x->rank];
    x->inner[0] = x->inner[1] = 1;
    x->batch = (int)MC_MIN(real->dims[0], limit);
    for (int i = 0; i < x->rank; i++) {
        x->n[i] = (int)MC_MIN(real->dims[i + 1], limit);
        if (i < x->rank - 1) {
            x->inner[i] = real->dims[i + 1];
        }
    }
    return all > 0 && all < limit && pairs > 0 && pairs < limit && x->half == real->dims[x->rank] / 2 + 1;
}

static mc_status make(struct fft *x, struct mc_cuda *d, size_t *work)
{
    const int type = x->dtype == MC_FLOAT64 ? (x->back ? Z2D : D2Z) : (x->back ? C2R : R2C);
    TRY(failed("cufftCreate", mc_nv.cufftCreate(&x->plan)));
    x->made = true;
    TRY(failed("cufftSetAutoAllocation", mc_nv.cufftSetAutoAllocation(x->plan, 0)));
    TRY(failed("cufftMakePlanMany", mc_nv.cufftMakePlanMany(x->plan, x->rank, x->n, NULL, 1, 0, NULL, 1, 0,
                                                            type, x->batch, work)));
    return failed("cufftSetStream", mc_nv.cufftSetStream(x->plan, d->stream));
}

static mc_status load(struct fft *x)
{
    struct mc_str defines = { 0 };
    const struct mc_cuda_kernel_ref kernel = { &x->spectrum, "spectrum" };
    mc_cuda_types(&defines, x->dtype, false);
    return mc_cuda_kernels(&mc_fft_step_text, &defines, &kernel, 1) ? MC_OK : mc_last_status();
}

mc_status mc_cuda_fft_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    if (!mc_cuda_fft_can(st)) {
        return MC_OK;
    }
    const mc_node *n = st->node[0];
    struct fft *x = mc_calloc(1, sizeof *x, "plan");
    size_t work = 0, bytes;
    if (!x) {
        return MC_EMEMORY;
    }
    x->exec.ops = &ops;
    x->dtype = n->type.dtype;
    x->back = strcmp(n->op->name, "fft_backward") == 0;
    x->in = f->code->program.value_of[n->in[0]->id];
    x->out = f->code->program.value_of[n->id];
    const struct mc_slot *in = &p->slot[x->in], *out = &p->slot[x->out];
    if (!describe(x, x->back ? &in->type : &out->type, x->back ? &out->type : &in->type) ||
        !mc_slot_contiguous(out)) {
        release(&x->exec);
        return MC_OK;
    }
    mc_status s = make(x, mc_cuda_of(f->code), &work);
    s = s < 0 || !x->back ? s : load(x);
    if (s < 0) {
        release(&x->exec);
        return s;
    }
    x->bytes = (size_t)mc_dims_count(in->type.rank, in->type.dims) * mc_dtypes[x->dtype].size;
    bytes = mc_work_rounded(x->bytes) * (x->back && !mc_slot_contiguous(in) ? 2 : 1);
    x->work_at = (int64_t)bytes;
    work = MC_MAX(work, 256); /* an empty area where the result begins would be its own: cuFFT refuses it */
    p->step[step].workspace = MC_MAX(p->step[step].workspace, bytes + work);
    *made = &x->exec;
    return MC_OK;
}
