/* t_dlpack.c: arrays passed to and taken from other libraries: memory is shared, and given back once. */
#include "array_text.h"
#include "value/value.h"
#include <string.h>

/* As another library declares it. */
struct DLManagedTensor {
    struct {
        void *data;
        int32_t device[2];
        int32_t ndim;
        uint8_t code, bits;
        uint16_t lanes;
        int64_t *shape, *strides;
        uint64_t byte_offset;
    } t;
    void *ctx;
    void (*deleter)(struct DLManagedTensor *);
};

TEST(dlpack_shares_memory_both_ways)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *a = mc_array_new(d, MC_SHAPE(2, 3)), *t = mc_array_transpose(a, NULL);
        struct DLManagedTensor *m = mc_array_to_dlpack(t);
        REQUIRE(m, "%s", mc_last_error());
        CHECK(m->t.data == a->data && m->t.ndim == 2 && m->t.shape[0] == 3 && m->t.strides[0] == 1 &&
                  m->t.strides[1] == 3 && m->t.bits == 8 * mc_dtypes[d].size && m->t.lanes == 1 &&
                  m->t.device[0] == 1,
              "%s", mc_dtype_name(d));
        mc_array *b = mc_array_from_dlpack(m);
        REQUIRE(b, "%s", mc_last_error());
        CHECK(b->dtype == d && b->data == a->data && b->strides[0] == t->strides[0], "%s", mc_dtype_name(d));
        mc_array *v = mc_array_from_dlpack_versioned(mc_array_to_dlpack_versioned(b));
        CHECK(v && v->data == a->data && v->dtype == d, "%s", mc_last_error());
        mc_array_unref(&a);
        mc_array_unref(&t);
        mc_array_unref(&b);
        CHECK(mc_array_get(v, (int64_t[]){ 2, 1 }) == 0, "%s is gone",
              mc_dtype_name(d)); /* a sanitizer would know */
        mc_array_unref(&v);
    }
}

static void count_delete(struct DLManagedTensor *m)
{
    ++*(int *)m->ctx;
}

TEST(foreign_tensors_are_checked)
{
    int deleted = 0;
    float data[4] = { 0, 1, 2, 3 };
    int64_t shape[2] = { 1, 3 };
    struct DLManagedTensor m = { { data, { 1, 0 }, 2, 2, 32, 1, shape, NULL, 4 }, &deleted, count_delete };
    mc_array *a = mc_array_from_dlpack(&m);
    check_text(a, "[[1. 2. 3.]]");
    CHECK(deleted == 0, "deleted too early");
    mc_array_unref(&a);
    CHECK(deleted == 1, "deleted %d times", deleted);
    struct DLManagedTensor gpu = m, lanes = m, complex = m, many = m;
    gpu.t.device[0] = 2;
    lanes.t.lanes = 4;
    complex.t.code = 5;
    many.t.ndim = 9;
    CHECK(!mc_array_from_dlpack(&gpu) && mc_last_status() == MC_EDEVICE, "%s", mc_last_error());
    CHECK(!mc_array_from_dlpack(&lanes) && mc_last_status() == MC_EUNSUPPORTED, "%s", mc_last_error());
    CHECK(strcmp(mc_last_error(), "mc_array_from_dlpack: no dtype has code 2, 32 bits and 4 lanes") == 0,
          "%s", mc_last_error());
    CHECK(!mc_array_from_dlpack(&complex) && !mc_array_from_dlpack(&many) && !mc_array_from_dlpack(NULL),
          "passed");
    CHECK(deleted == 1, "what was refused was deleted");
    mc_array *odd = mc_array_wrap(MC_FLOAT32, MC_SHAPE(2), (int64_t[]){ 6 }, data, NULL, NULL);
    CHECK(!mc_array_to_dlpack(odd) &&
              strstr(mc_last_error(), "6 bytes, which is not a multiple of the size of float32"),
          "%s", mc_last_error());
    CHECK(!mc_array_to_dlpack(NULL), "NULL passed");
    mc_array_unref(&odd);
}

TEST(tensors_survive_every_failed_allocation)
{
    int16_t numbers[6] = { 1, 2, 3, 4, 5, 6 };
    ALLOC_FAIL_LOOP {
        mc_array *a = mc_array_from(MC_INT16, MC_SHAPE(6), numbers);
        struct DLManagedTensor *m = a ? mc_array_to_dlpack(a) : NULL;
        mc_array *b = m ? mc_array_from_dlpack(m) : NULL;
        CHECK((b != NULL) == !ALLOC_FAILED, "%s", mc_last_error());
        if (m && !b) {
            m->deleter(m);
        }
        mc_array_unref(&a);
        mc_array_unref(&b);
    }
}
