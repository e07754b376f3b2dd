/* backends.c: the table of backends, and functions that call all of them. */
#include "exec/backend.h"

enum { MOST = 16 };
static const struct mc_backend *rows[MOST] = { &mc_backend_cpu, &mc_backend_cuda };
static int nrow = 2;

void mc_backend_add(const struct mc_backend *b)
{
    if (nrow < MOST) {
        rows[nrow++] = b;
    }
}

const struct mc_backend *mc_backend_of(const char *device)
{
    for (int i = nrow; i-- > 0;) {
        const size_t n = strlen(rows[i]->name);
        if (strncmp(device, rows[i]->name, n) != 0) {
            continue;
        }
        const char *rest = device + n;
        rest += rows[i]->numbered ? strspn(rest, "0123456789") : 0;
        if (*rest == '\0') {
            return rows[i];
        }
    }
    mc_device_unknown(device);
    return NULL;
}

mc_array *mc_array_to(const mc_array *a, const char *device)
{
    if (!a || !device) {
        mc_fail(MC_EARG, "mc_array_to: no %s", a ? "device" : "array");
        return NULL;
    }
    const struct mc_backend *b = mc_backend_of(device);
    if (!b) {
        mc_fail_again("mc_array_to: ");
        return NULL;
    }
    struct mc_device *d = b->start(device);
    if (!d || !d->space) {
        return d ? mc_array_on_host(a) : NULL;
    }
    if (mc_array_space(a) == d->space) {
        return mc_array_ref(a);
    }
    mc_array *r = d->ops->array(d, a->dtype, a->rank, a->dims);
    if (r && mc_array_assign(r, a) < 0) {
        mc_array_unref(&r);
    }
    return r;
}

mc_status mc_synchronize(void)
{
    mc_status s = MC_OK;
    for (int i = 0; i < nrow; i++) {
        mc_status t = rows[i]->synchronize ? rows[i]->synchronize() : MC_OK;
        s = s < 0 ? s : t;
    }
    return s;
}

void mc_backends_describe(struct mc_str *out)
{
    for (int i = 0; i < nrow; i++) {
        if (rows[i]->describe) {
            rows[i]->describe(out);
        }
    }
}

int mc_backends_have(const char *library)
{
    int has = -1;
    for (int i = 0; i < nrow && has < 0; i++) {
        has = rows[i]->has ? rows[i]->has(library) : -1;
    }
    return has;
}
