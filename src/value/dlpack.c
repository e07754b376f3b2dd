/* dlpack.c: exchanges arrays with other libraries of the same process, without a copy.
 *
 * The structs are those of the DLPack specification.  Version 1 moved the tensor to the end and put a version
 * and flags before it.
 *
 * Invariant: the holder of a managed tensor owns one reference to its memory, and drops it by calling the
 * deleter once. */
#include "value/value.h"

enum { DEVICE_CPU = 1, DEVICE_CUDA_HOST = 3, MAJOR = 1, MINOR = 0 };

struct tensor { /* DLTensor */
    void *data;
    int32_t device, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *dims;
    int64_t *strides; /* in elements; NULL: C order */
    uint64_t offset;  /* bytes */
};

struct DLManagedTensor {
    struct tensor t;
    void *owner;
    void (*deleter)(struct DLManagedTensor *);
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *owner;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    struct tensor t;
};

/* ---- export ---- */

struct export { /* the managed tensor is the first member */
    union {
        struct DLManagedTensor v0;
        struct DLManagedTensorVersioned v1;
    } u;
    mc_array *array;
    int64_t strides[MC_MAX_RANK];
};

static void export_free(struct export *e)
{
    mc_array_unref(&e->array);
    mc_free(e);
}

static void delete_v0(struct DLManagedTensor *m)
{
    export_free(m->owner);
}

static void delete_v1(struct DLManagedTensorVersioned *m)
{
    export_free(m->owner);
}

static struct export *export_new(const mc_array *a, struct tensor *t)
{
    if (!a) {
        mc_fail(MC_EARG, "mc_array_to_dlpack: the array is NULL");
        return NULL;
    }
    const struct mc_dtype_row *row = &mc_dtypes[a->dtype];
    struct export *e = mc_calloc(1, sizeof *e, "arrays");
    if (!e) {
        return NULL;
    }
    for (int i = 0; i < a->rank; i++) {
        if (a->strides[i] % row->size != 0) {
            mc_fail(MC_EUNSUPPORTED,
                    "mc_array_to_dlpack: the stride of axis %d is %lld bytes, which is not a multiple of the "
                    "size of %s",
                    i, (long long)a->strides[i], row->name);
            mc_free(e);
            return NULL;
        }
        e->strides[i] = a->strides[i] / row->size;
    }
    /* an array in a memory space is copied to the host, with the same strides */
    e->array = mc_array_on_host(a);
    if (!e->array) {
        mc_free(e);
        return NULL;
    }
    *t = (struct tensor){ .data = e->array->data,
                          .device = DEVICE_CPU,
                          .rank = a->rank,
                          .code = row->dl_code,
                          .bits = (uint8_t)(row->size * 8),
                          .lanes = 1,
                          .dims = e->array->dims,
                          .strides = e->strides };
    return e;
}

struct DLManagedTensor *mc_array_to_dlpack(const mc_array *a)
{
    struct tensor t;
    struct export *e = export_new(a, &t);
    if (!e) {
        return NULL;
    }
    e->u.v0 = (struct DLManagedTensor){ .t = t, .owner = e, .deleter = delete_v0 };
    return &e->u.v0;
}

struct DLManagedTensorVersioned *mc_array_to_dlpack_versioned(const mc_array *a)
{
    struct tensor t;
    struct export *e = export_new(a, &t);
    if (!e) {
        return NULL;
    }
    e->u.v1 = (struct DLManagedTensorVersioned){
        .major = MAJOR, .minor = MINOR, .owner = e, .deleter = delete_v1, .t = t
    };
    return &e->u.v1;
}

/* ---- import ---- */

static void release_v0(void *arg)
{
    struct DLManagedTensor *m = arg;
    if (m->deleter) {
        m->deleter(m);
    }
}

static void release_v1(void *arg)
{
    struct DLManagedTensorVersioned *m = arg;
    if (m->deleter) {
        m->deleter(m);
    }
}

static mc_status find_dtype(const struct tensor *t, mc_dtype *out)
{
    for (int d = 0; d < MC_NDTYPE; d++) {
        if (t->lanes == 1 && mc_dtypes[d].dl_code == t->code && mc_dtypes[d].size * 8 == t->bits) {
            *out = (mc_dtype)d;
            return MC_OK;
        }
    }
    return mc_fail(MC_EUNSUPPORTED, "mc_array_from_dlpack: no dtype has code %d, %d bits and %d lanes",
                   t->code, t->bits, t->lanes);
}

static mc_array *import(const struct tensor *t, void (*release)(void *), void *arg)
{
    mc_dtype d = MC_NDTYPE;
    int64_t strides[MC_MAX_RANK];
    if (t->device != DEVICE_CPU && t->device != DEVICE_CUDA_HOST) {
        mc_fail(MC_EDEVICE, "mc_array_from_dlpack: the memory belongs to device type %d, not to the host",
                t->device);
        return NULL;
    }
    if (t->rank < 0 || t->rank > MC_MAX_RANK || (t->rank > 0 && !t->dims)) {
        mc_fail(MC_ESHAPE, "mc_array_from_dlpack: the tensor has %d axes; at most %d are possible", t->rank,
                MC_MAX_RANK);
        return NULL;
    }
    if (find_dtype(t, &d) < 0) {
        return NULL;
    }
    for (int i = 0; t->strides && i < t->rank; i++) {
        if (!mc_mul_i64(t->strides[i], mc_dtypes[d].size, &strides[i])) {
            mc_fail(MC_ESHAPE, "mc_array_from_dlpack: a stride is too large");
            return NULL;
        }
    }
    char *data = t->data ? (char *)t->data + t->offset : NULL;
    return mc_array_wrap(d, t->rank, t->dims, t->strides ? strides : NULL, data, release, arg);
}

mc_array *mc_array_from_dlpack(struct DLManagedTensor *t)
{
    if (!t) {
        mc_fail(MC_EARG, "mc_array_from_dlpack: the tensor is NULL");
        return NULL;
    }
    return import(&t->t, release_v0, t);
}

mc_array *mc_array_from_dlpack_versioned(struct DLManagedTensorVersioned *t)
{
    if (!t) {
        mc_fail(MC_EARG, "mc_array_from_dlpack_versioned: the tensor is NULL");
        return NULL;
    }
    if (t->major != MAJOR) {
        mc_fail(MC_EUNSUPPORTED, "mc_array_from_dlpack_versioned: version %u is not supported; expected %d",
                t->major, MAJOR);
        return NULL;
    }
    return import(&t->t, release_v1, t);
}
