/* epilogue.c: the epilogue of a product or a convolution as a separate kernel on a solver's result.
 *
 * Invariant: an element is read and written by one thread, so c0 may alias y. */
#include "heavy/cuda/cuda.h"
#include "heavy/cuda/epilogue_args.h"
#include "value/value.h"

static const char text[] = {
#include "heavy/cuda/epilogue_text.h"
    , 0 };
const struct mc_cuda_text mc_cuda_epilogue_text = { "heavy/cuda/epilogue.cu", text };

enum { WORD = 16 };             /* bytes that a thread of the vector form moves */
struct form { void *kernel; struct mc_grid grid; struct mc_cuda_epilogue_args args; };
struct mc_cuda_epilogue {
    struct form plain, vector;  /* vector.kernel: NULL if elements are not contiguous in words */
};

/* Do y and c0 consist of contiguous groups of `many` elements, at offsets that are multiples of `many`? */
static bool in_words(const struct mc_cuda_axes *a, bool has_c0, int64_t many)
{
    bool so = many > 1 && a->size[a->rank - 1] % many == 0;
    for (int z = 0; z <= (int)has_c0; z++) {
        so = so && a->stride[z][a->rank - 1] == 1;
        for (int i = 0; i < a->rank - 1; i++) {
            so = so && a->stride[z][i] % many == 0;
        }
    }
    return so;
}

static bool load(struct form *f, const struct mc_cuda_epilogue_args *all, int rank, int64_t many,
                 const char *defines)
{
    f->args = *all;
    f->args.size[rank - 1] /= many;
    f->args.count /= many;
    f->grid = mc_cuda_grid_1d(f->args.count, 256);
    f->kernel = mc_cuda_kernel(&mc_cuda_epilogue_text, defines, many > 1 ? "epilogue_v" : "epilogue");
    return f->kernel != NULL;
}

struct mc_cuda_epilogue *mc_cuda_epilogue_new(const struct mc_cuda_epilogue_of *q)
{
    const bool has_c0 = q->beta != 0;
    struct mc_cuda_epilogue_args all = { .count = 1, .beta = q->beta };
    struct mc_str defines = { 0 };
    struct mc_cuda_epilogue *t = mc_calloc(1, sizeof *t, "plans");
    for (int i = 0; i < q->rank; i++) {
        all.count *= all.size[i] = q->size[i];
        all.ys[i] = q->y[i];
        all.c0s[i] = has_c0 ? q->c0[i] : q->y[i];
        all.bs[i] = q->has_bias ? q->bias[i] : q->y[i];
    }
    struct mc_cuda_axes axes = { q->rank, 3, all.size, { all.ys, all.c0s, all.bs } };
    if (!t || all.count == 0) {
        return t;
    }
    mc_cuda_axes_collapse(&axes);
    mc_cuda_types(&defines, q->dtype, false);
    mc_cuda_index(&defines, all.count);
    mc_str_addf(&defines, "#define RANK %d\n#define HAS_C0 %d\n#define HAS_BIAS %d\n#define ACT %d\n",
                axes.rank, has_c0, q->has_bias, (int)q->act);
    const int64_t many = WORD / mc_dtypes[q->dtype].size;
    const bool ok = !defines.bad && load(&t->plain, &all, axes.rank, 1, defines.s) &&
                    (!in_words(&axes, has_c0, many) || load(&t->vector, &all, axes.rank, many, defines.s));
    mc_str_free(&defines);
    if (!ok) {
        mc_free(t);
        return NULL;
    }
    return t;
}

mc_status mc_cuda_epilogue_run(const struct mc_cuda_epilogue *t, void *y, const void *c0, const void *bias)
{
    const bool aligned = ((uintptr_t)y | (uintptr_t)c0) % WORD == 0;
    const struct form *f = t->vector.kernel && aligned ? &t->vector : &t->plain;
    struct mc_cuda_epilogue_args args = f->args;
    args.y = y;
    args.c0 = c0;
    args.bias = bias;
    return f->kernel ? mc_cuda_launch_dependent(mc_cuda_current(), f->kernel, "epilogue", &f->grid, &args,
                                                sizeof args)
                     : MC_OK;
}

void mc_cuda_epilogue_free(struct mc_cuda_epilogue *t)
{
    mc_free(t);
}

static void unfused_destroy(struct mc_plan *plan)
{
    mc_cuda_epilogue_free(((struct mc_cuda_unfused *)(void *)plan)->epilogue);
}

struct mc_plan_options mc_cuda_unfused_options(const struct mc_problem *p)
{
    struct mc_plan_options o = p->options;
    o.depth = 0;
    return o;
}

struct mc_plan *mc_cuda_unfused_plan(const struct mc_problem *bare, const struct mc_cuda_epilogue_of *q,
                                   mc_status (*run)(const struct mc_plan *p, void *const *operand,
                                                    void *workspace, int threads))
{
    struct mc_cuda_unfused *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = unfused_destroy;
    d->epilogue = mc_cuda_epilogue_new(q);
    d->base.child[0] = d->epilogue ? mc_plan_make(bare) : NULL;
    if (!d->base.child[0]) {
        mc_cuda_epilogue_free(d->epilogue);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->base.child[0]->workspace;
    return &d->base;
}
