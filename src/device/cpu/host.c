/* host.c: the CPU as a device. */
#include "device/device.h"

static mc_status enter(struct mc_device *d)
{
    (void)d;
    return MC_OK;
}

static void leave(struct mc_device *d)
{
    (void)d;
}

static void *alloc(struct mc_device *d, size_t bytes, const char *what)
{
    (void)d;
    return mc_alloc_pages(bytes, what);
}

static void release(struct mc_device *d, void *p)
{
    (void)d;
    mc_free_pages(p);
}

static mc_array *array(struct mc_device *d, mc_dtype t, int rank, const int64_t *dims)
{
    (void)d;
    return mc_array_empty(t, rank, dims);
}

static const struct mc_device_ops ops = {
    .enter = enter, .leave = leave, .alloc = alloc, .free = release, .array = array,
};

mc_status mc_device_unknown(const char *name)
{
    return mc_fail(
        MC_EARG, "there is no device '%s': it is cpu, cuda, or cuda with a GPU's number, as in cuda1", name);
}

struct mc_device mc_host = { .name = "cpu", .number = -1, .ops = &ops };
