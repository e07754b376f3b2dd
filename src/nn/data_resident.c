/* data_resident.c: resident data. They are sent to the GPU once; there they are put into the order of an
 * epoch, augmented, and copied to batches.
 *
 * Invariant: a batch has the same bits as the thread of data_batches.c would have made. Its arrays have the
 * same addresses at every call, so that a captured call can be replayed. */
#include "nn/data.h"

/* of all examples as floats; two copies exist while an epoch begins */
static const int64_t most_bytes = INT64_C(1) << 30;

struct mc_resident {
    mc_graph *g;
    /* from the numbers of examples to the augmented examples and their labels */
    mc_function *order;
    mc_array *all_x, *all_t;               /* of the epoch, in its order; memory of that function */
    mc_array *x, *t, *part_x, *part_t;     /* a batch; a view of it for a shorter one */
};

bool mc_resident_fits(const mc_data *d, const struct mc_augment *a)
{
    int64_t size = mc_data_count(d);
    for (int k = 0; k < a->rank; k++) {
        size *= a->dims[k];
    }
    return strncmp(mc_flag_get("device"), "cpu", 3) != 0 && size <= most_bytes / (int64_t)sizeof(float);
}

static mc_status begin(struct mc_resident *r, const mc_data *d, const struct mc_augment *a)
{
    const mc_array *x, *t;
    mc_data_arrays(d, &x, &t);
    r->g = mc_graph_new();
    if (!r->g) {
        return mc_last_status();
    }
    mc_shared_new(r->g, "data", x);
    mc_shared_new(r->g, "labels", t);
    mc_input(r->g, "order", MC_INT32, 1);
    mc_input(r->g, "key", MC_UINT64, 0);
    mc_augment_formula(a, r->g);
    r->order = mc_compile(
        r->g, &(mc_spec){ .name = "data",
                          .inputs = "order, key",
                          .on_unused = "ignore",
                          .outputs = "borrow(gpu_from_host(x)), borrow(gpu_from_host(labels[order]))" });
    return r->order ? MC_OK : mc_last_status();
}

struct mc_resident *mc_resident_new(const mc_data *d, const struct mc_augment *a)
{
    struct mc_resident *r = mc_calloc(1, sizeof *r, "data");
    if (r && begin(r, d, a) < 0) {
        mc_resident_free(r);
        return NULL;
    }
    return r;
}

void mc_resident_free(struct mc_resident *r)
{
    if (r) {
        mc_array **const all[] = { &r->all_x, &r->all_t, &r->x, &r->t, &r->part_x, &r->part_t };
        for (size_t i = 0; i < COUNT(all); i++) {
            mc_array_unref(all[i]);
        }
        mc_function_free(r->order);
        mc_graph_free(r->g);
        mc_free(r);
    }
}

mc_status mc_resident_start(struct mc_resident *r, const int32_t *order, int64_t n, uint64_t key)
{
    mc_array *numbers = mc_array_from(MC_INT32, MC_SHAPE(n), order),
             *one = mc_array_from(MC_UINT64, 0, NULL, &key);
    mc_array_unref(&r->all_x);
    mc_array_unref(&r->all_t);
    mc_status s = numbers && one ? mc_call(r->order, MC_IN(numbers, one), MC_OUT(&r->all_x, &r->all_t))
                                 : mc_last_status();
    mc_array_unref(&numbers);
    mc_array_unref(&one);
    return s;
}

/* Copies examples `at` to at + n to a batch of `size`, which is made at the first call. */
static mc_status put(mc_array **batch, mc_array **part, const mc_array *all, int64_t at, int64_t n,
                     int64_t size)
{
    mc_array *from = mc_array_slice(all, 0, at, n, 1);
    if (!*batch) {
        mc_array *view = mc_array_slice(all, 0, 0, size, 1), *host = view ? mc_array_copy(view) : NULL;
        *batch = host ? mc_array_to(host, mc_array_device(all)) : NULL;
        mc_array_unref(&view);
        mc_array_unref(&host);
    }
    mc_array_unref(part);
    *part = *batch ? mc_array_slice(*batch, 0, 0, n, 1) : NULL;
    mc_status s = from && *part ? mc_array_assign(*part, from) : mc_last_status();
    mc_array_unref(&from);
    return s;
}

mc_status mc_resident_batch(struct mc_resident *r, int64_t at, int64_t n, int64_t size, const mc_array **x,
                            const mc_array **t)
{
    mc_status s = put(&r->x, &r->part_x, r->all_x, at, n, size);
    s = s < 0 ? s : put(&r->t, &r->part_t, r->all_t, at, n, size);
    *x = r->part_x;
    *t = r->part_t;
    return s;
}
