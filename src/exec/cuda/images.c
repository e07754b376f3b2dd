/* images.c: the machine code of a function's kernels, for bundles: of its own kernels, of what its calls so
 * far have planned, and of the bundle that it is from.
 *
 * Invariant: the codes of solvers and of steps are never freed, so they are compiled for other GPUs without a
 * lock. */
#include "exec/cuda/cuda.h"

static bool add(mc_code_list *list, void *code)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i] == code) {
            return true;
        }
    }
    return VEC_PUSH(*list, code);
}

mc_status mc_cuda_fn_note(struct mc_code_unit *u, const struct mc_plan *p)
{
    struct mc_cuda_fn_code *own = u->own;
    bool good = true;
    for (size_t i = 0; p && i < p->code.n; i++) {
        good = good && add(&own->code, p->code.at[i]);
    }
    return good ? MC_OK : MC_EMEMORY;
}

/* Of the function and its bodies.  requires: the device entered */
static bool collect(const struct mc_function *f, mc_code_list *list)
{
    const struct mc_cuda_fn_code *own = mc_cuda_fn_code(f);
    bool good = true;
    for (int i = 0; i < MC_CUDA_TEXTS; i++) {
        good = good && (!own->text[i] || add(list, own->text[i]));
    }
    for (size_t i = 0; i < own->code.n; i++) {
        good = good && add(list, own->code.at[i]);
    }
    for (int i = 0; f->loop && i < (int)f->code->program.step.n; i++) {
        good = good && (!f->loop[i] || collect(f->loop[i], list));
    }
    for (int i = 0; f->branch && i < (int)f->code->program.step.n; i++) {
        for (int side = 0; side < 2 && f->branch[i][side]; side++) {
            good = good && collect(f->branch[i][side], list);
        }
    }
    return good;
}

/* Images of the function's bundle that are of texts which this process has not needed. */
static mc_status add_old(const struct mc_images *from, struct mc_images *list)
{
    for (size_t i = 0; from && i < from->image.n; i++) {
        const struct mc_image *image = &from->image.at[i];
        if (!mc_images_have(list, image->text, image->arch) && !VEC_PUSH(list->image, *image)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

mc_status mc_cuda_fn_images(struct mc_function *f, const char *archs, struct mc_images *list)
{
    struct mc_cuda *d = mc_cuda_of(f->code);
    mc_code_list code = { 0 };
    mc_status s = mc_cuda_enter(d);
    if (s == MC_OK) {
        s = collect(f, &code) ? MC_OK : MC_EMEMORY;
        mc_cuda_leave(d);
    }
    struct mc_cuda_input *in = s == MC_OK ? mc_alloc((code.n + 1) * sizeof *in, "bundle") : NULL;
    for (size_t i = 0; in && i < code.n; i++) {
        in[i] = mc_cuda_code_input(code.at[i]);
    }
    s = s < 0 ? s : in ? mc_cuda_images(d->sm, code.n, in, archs, list) : MC_EMEMORY;
    mc_free(in);
    VEC_FREE(code);
    return s < 0 ? s : add_old(f->code->images, list);
}
