/* loop.c: bodies of loops on a GPU.  Their steps are launched, or captured, as a part of the call.
 *
 * Invariant: all checks of indices of a call set the same error words, those of the function that is
 * called. */
#include "exec/cuda/cuda.h"

static void adopt(struct mc_function *body, int step)
{
    struct mc_cuda_fn_function *own = mc_cuda_fn_of(body);
    mc_cuda_fn_unwatch(body);
    own->is_body = true;
    own->step = step;
    for (int i = 0; body->loop && i < (int)body->code->program.step.n; i++) {
        if (body->loop[i]) {
            adopt(body->loop[i], step);
        }
    }
    for (int i = 0; body->branch && i < (int)body->code->program.step.n; i++) {
        for (int side = 0; side < 2 && body->branch[i][side]; side++) {
            adopt(body->branch[i][side], step);
        }
    }
}

mc_status mc_cuda_fn_bodies(struct mc_function *f)
{
    struct mc_cuda_fn_function *own = mc_cuda_fn_of(f);
    own->checks = mc_cuda_fn_code(f)->checks;
    for (int i = 0; f->loop && i < (int)f->code->program.step.n; i++) {
        if (f->loop[i]) {
            adopt(f->loop[i], i);
            own->checks |= mc_cuda_fn_of(f->loop[i])->checks;
        }
    }
    for (int i = 0; f->branch && i < (int)f->code->program.step.n; i++) {
        for (int side = 0; side < 2 && f->branch[i][side]; side++) {
            adopt(f->branch[i][side], i);
            own->checks |= mc_cuda_fn_of(f->branch[i][side])->checks;
        }
    }
    if (own->checks) {
        mc_cuda_fn_watch(f);
    }
    return MC_OK;
}

void mc_cuda_fn_body(const struct mc_function *f, struct mc_function *body)
{
    mc_cuda_fn_of(body)->failed = mc_cuda_fn_of(f)->failed;
}

mc_status mc_cuda_fn_zero(struct mc_function *f, char *at, size_t bytes)
{
    return mc_cuda_clear(mc_cuda_of(f->code), at, bytes);
}
