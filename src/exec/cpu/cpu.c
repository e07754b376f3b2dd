/* cpu.c: the backend of the CPU: kernels as C, values in the host's memory. */
#include "heavy/conv/conv.h"
#include "exec/backend.h"
#include "exec/cpu/launch.h"
#include "heavy/gemm/gemm.h"
#include "heavy/norm/norm.h"
#include "heavy/pool/pool.h"
#include "heavy/conv_pool/conv_pool.h"

static struct mc_device *start(const char *device)
{
    (void)device;
    return &mc_host;
}

static bool compiled(const struct mc_function *f, int step)
{
    return f->code->fn[step] != NULL;
}

/* ---- a shape ---- */

static mc_status plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_step_plan *sp = &p->step[step];
    const bool compiled_kernel = st->kernel && f->code->fn[step];
    switch (st->kind) {
    case STEP_PLAN_TIME:
    case STEP_TYPE: break;
    case STEP_VIEW: sp->exec = p->slot[st->dst[0]].own ? mc_copied_view(f, p, step) : NULL; break;
    case STEP_KERNEL:
        TRY(compiled_kernel ? mc_launch_plan(f, p, step, &sp->exec) : MC_OK);
        sp->exec = sp->exec ? sp->exec : &mc_exec_reference;
        break;
    case STEP_HEAVY:
        sp->exec = compiled_kernel || !st->kernel ? mc_heavy_exec(sp) : &mc_exec_reference;
        break;
    case STEP_HOST:
        TRY(mc_factor_step_plan(f, p, step, &sp->exec));
        TRY(sp->exec ? MC_OK : mc_line_step_plan(f, p, step, &sp->exec));
        sp->exec = sp->exec ? sp->exec : &mc_exec_reference;
        break;
    }
    return MC_OK;
}

/* ---- running ---- */

static char *address(const struct mc_function *f, const struct mc_shape_plan *p, size_t v)
{
    const struct mc_slot *at = &p->slot[v];
    char *base = NULL;
    switch (at->base) {
    case BASE_ARENA: base = f->arena; break;
    case BASE_INPUT: base = f->arg[at->index]->data; break;
    case BASE_SHARED: base = f->shared[at->index]->value->data; break;
    case BASE_OUTPUT: base = f->result[at->index]->data; break;
    case BASE_FIXED: base = at->fixed->data; break;
    case BASE_NONE:
    case BASE_TYPE: break;
    }
    return base ? base + at->offset : NULL;
}

static mc_status timed_step(struct mc_function *f, const struct mc_shape_plan *p, int step, double *seconds)
{
    const double start = seconds ? mc_now() : 0;
    mc_status s = mc_step_run(f, p, step);
    if (seconds) {
        *seconds += mc_now() - start;
    }
    return s;
}

/* ---- values ---- */

static mc_array *view(struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    const struct mc_slot *at = &p->slot[value];
    return mc_array_wrap(at->type.dtype, at->type.rank, at->type.dims, at->strides, f->ptr[value], NULL,
                         NULL);
}

static mc_status store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a)
{
    mc_array *to = mc_value_array(f, p, value);
    mc_status s = to ? mc_array_assign(to, a) : mc_last_status();
    mc_array_unref(&to);
    return s;
}

static mc_status copy(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst)
{
    (void)f;
    return mc_dense_copy(from, (char *)src, dst);
}

static mc_status zero(struct mc_function *f, char *at, size_t bytes)
{
    (void)f;
    if (bytes) {
        memset(at, 0, bytes);
    }
    return MC_OK;
}

static mc_array *keep(struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    mc_array *a = mc_value_array(f, p, value), *own = a ? mc_array_copy(a) : NULL;
    mc_array_unref(&a);
    return own;
}

/* A view of the arena.  The last call's view is reused if the caller has released it and it still fits. */
static mc_array *lend(struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    int v = f->code->program.output[i];
    const struct mc_slot *at = &p->slot[v];
    mc_array *old = f->borrowed[i];
    if (!old || atomic_load(&old->refs) != 1 || old->data != f->ptr[v] ||
        !mc_dims_equal(old->rank, old->dims, at->type.rank, at->type.dims) ||
        memcmp(old->strides, at->strides, (size_t)old->rank * sizeof *old->strides) != 0) {
        mc_array_unref(&f->borrowed[i]);
        f->borrowed[i] = mc_value_array(f, p, v);
    }
    return mc_array_ref(f->borrowed[i]);
}

static mc_status make(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out)
{
    return p->slot[f->code->program.output[i]].base == BASE_OUTPUT ? mc_result_array(f, p, i, out) : MC_OK;
}

static mc_status take(struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    const int v = f->code->program.output[i];
    if (!f->result[i]) {
        const bool lent = f->output[i].borrow && p->slot[v].base == BASE_ARENA && !mc_flag_int(FLAG_allow_gc);
        f->result[i] = lent ? lend(f, p, i) : keep(f, p, v);
    }
    return f->result[i] ? MC_OK : mc_last_status();
}

static const struct mc_backend *itself(void)
{
    return &mc_backend_cpu;
}

/* A failed check ends its step with an error, so error_wait and error_seen are not needed. */
const struct mc_backend mc_backend_cpu = {
    .name = "cpu", .start = start, .describe = mc_cpu_describe, .has = mc_cpu_has_library,
    .fuses = FUSE_COLUMN_SUMS, .epilogues = EPILOGUE_BLOCKS, .grows = itself,
    .may_compile = mc_cc_known, .has_compiler = mc_cc_present, .compiler_missing = mc_cc_missing,
    .language = "C", .lead = "\nvoid k", .head = "\nvoid %s(", .elsewhere = "",
    .product = mc_gemm_plan, .conv = mc_conv_plan, .pool = mc_pool_plan, .norm = mc_norm_plan,
    .pooled = mc_pooled_plan,
    .layouts = { .convs = &mc_conv_family, .bandwidth = 2e10 }, .tie_bits = true,
    .kernels = mc_compile_kernels, .drop_kernels = mc_drop_kernels, .compiled = compiled,
    .plan = plan, .joint = mc_launch_joint, .address = address, .step = timed_step,
    .fetch = view, .store = store, .copy = copy, .zero = zero, .copy_on_device = keep,
#ifndef MC_RUNTIME
    .repeats = mc_launch_repeats,
    .repeat = mc_launch_repeat,
    .bands = mc_launch_bands,
    .each = mc_launch_each,
#endif
    .result_make = make, .result_take = take,
};
