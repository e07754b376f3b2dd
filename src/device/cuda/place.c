/* place.c: arrays brought to a device, or home.
 *
 * Invariant: an array that is where it is wanted is not copied. */
#include "device/cuda/cuda.h"

static mc_array *to_gpu(const mc_array *a, int ordinal)
{
    struct mc_cuda *d = mc_cuda_start(ordinal);
    if (!d) {
        return NULL;
    }
    if (mc_array_space(a) == &d->space) {
        return mc_array_ref(a);
    }
    mc_array *r = mc_cuda_array(d, a->dtype, a->rank, a->dims);
    if (r && mc_array_assign(r, a) < 0) {
        mc_array_unref(&r);
    }
    return r;
}

mc_array *mc_array_to(const mc_array *a, const char *device)
{
    int ordinal;
    if (!a || !device) {
        mc_fail(MC_EARG, "mc_array_to: no %s", a ? "device" : "array");
        return NULL;
    }
    if (mc_cuda_parse(device, &ordinal) < 0) {
        mc_fail_again("mc_array_to: ");
        return NULL;
    }
    return ordinal < 0 ? mc_array_near(a) : to_gpu(a, ordinal);
}
