/* device_array.c: arrays in memory spaces, which the host cannot address.
 *
 * Invariant: an array in a memory space is contiguous, so each operation is at most one transfer; strides and
 * dtypes are converted on the host.  What the inputs of bodies look like is not: it may be a view. */
#include "value/value.h"

static size_t bytes_of(const mc_array *a)
{
    return (size_t)mc_array_size(a) * mc_dtypes[a->dtype].size;
}

mc_status mc_array_fetch(const mc_array *a, void *host, const void *device, size_t n)
{
    const struct mc_space *s = mc_array_space(a);
    if (!s) {
        memcpy(host, device, n);
        return MC_OK;
    }
    return n ? s->get(s, host, device, n) : MC_OK;
}

mc_status mc_array_store(mc_array *a, void *device, const void *host, size_t n)
{
    const struct mc_space *s = mc_array_space(a);
    if (!s) {
        memcpy(device, host, n);
        return MC_OK;
    }
    return n ? s->put(s, device, host, n) : MC_OK;
}

/* Fetches all bytes between the lowest and the highest address of a. */
static mc_array *fetch_strided(const mc_array *a)
{
    int64_t below = 0, bytes = (int64_t)mc_dtypes[a->dtype].size;
    for (int i = 0; i < a->rank; i++) {
        const int64_t reach = (a->dims[i] - 1) * a->strides[i];
        below += reach < 0 ? -reach : 0;
        bytes += reach < 0 ? -reach : reach;
    }
    char *all = mc_alloc((size_t)bytes, "transfer");
    mc_array *view = all && mc_array_fetch(a, all, a->data - below, (size_t)bytes) == MC_OK
                         ? mc_array_wrap(a->dtype, a->rank, a->dims, a->strides, all + below, NULL, NULL)
                         : NULL,
             *r = view ? mc_array_copy(view) : NULL;
    mc_array_unref(&view);
    mc_free(all);
    return r;
}

mc_array *mc_array_on_host(const mc_array *a)
{
    if (!mc_array_space(a)) {
        return mc_array_ref(a);
    }
    if (bytes_of(a) && !mc_array_is_contiguous(a)) {
        return fetch_strided(a);
    }
    mc_array *r = mc_array_empty(a->dtype, a->rank, a->dims);
    if (r && mc_array_fetch(a, r->data, a->data, bytes_of(a)) < 0) {
        mc_array_unref(&r);
    }
    return r;
}

/* ---- assignment ---- */

static bool same_layout(const mc_array *a, const mc_array *b)
{
    return a->dtype == b->dtype && mc_array_is_contiguous(a) && mc_array_is_contiguous(b);
}

static mc_status within(mc_array *dst, const mc_array *src)
{
    const struct mc_space *s = mc_array_space(dst);
    if (dst->data == src->data || bytes_of(src) == 0) {
        return MC_OK;
    }
    return s->copy(s, dst->data, src->data, bytes_of(src));
}

static mc_status upload(mc_array *dst, const mc_array *src)
{
    mc_array *dense = same_layout(dst, src) ? mc_array_ref(src) : mc_array_cast(src, dst->dtype);
    mc_status s = dense ? mc_array_store(dst, dst->data, dense->data, bytes_of(dst)) : mc_last_status();
    mc_array_unref(&dense);
    return s;
}

static mc_status by_way_of_host(mc_array *dst, const mc_array *src)
{
    mc_array *near = mc_array_on_host(src);
    mc_status s = near ? mc_array_assign(dst, near) : mc_last_status();
    mc_array_unref(&near);
    return s;
}

mc_status mc_array_assign_device(mc_array *dst, const mc_array *src)
{
    const struct mc_space *to = mc_array_space(dst), *from = mc_array_space(src);
    if (!from) {
        return upload(dst, src);
    }
    if (to == from && same_layout(dst, src) && (dst->data == src->data || !mc_array_overlaps(dst, src))) {
        return within(dst, src);
    }
    if (!to && same_layout(dst, src)) {
        return mc_array_fetch(src, dst->data, src->data, bytes_of(src));
    }
    return by_way_of_host(dst, src);
}
