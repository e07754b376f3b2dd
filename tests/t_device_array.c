/* t_device_array.c: arrays in memory that the host cannot touch, without a GPU: a space whose addresses lie
 * in a mapping that may not be read or written, so whoever goes past the hooks crashes. */
#include "check.h"
#include "value/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };

static struct fake {
    struct mc_space space;
    char *wall;                 /* the addresses that arrays have; PROT_NONE */
    char *bytes;                /* what is behind them */
    size_t used;
    int puts, gets, copies, releases;
    bool fail;
} fake;

static char *behind(const void *p)
{
    return fake.bytes + ((const char *)p - fake.wall);
}

static mc_status broken(void)
{
    return mc_fail(MC_EDEVICE, "fake0: broken");
}

static mc_status put(const struct mc_space *s, void *there, const void *here, size_t n)
{
    fake.puts++;
    memcpy(behind(there), here, n);
    return s->device == &fake && !fake.fail ? MC_OK : broken();
}

static mc_status get(const struct mc_space *s, void *here, const void *there, size_t n)
{
    fake.gets++;
    memcpy(here, behind(there), n);
    return s->device == &fake && !fake.fail ? MC_OK : broken();
}

static mc_status copy(const struct mc_space *s, void *to, const void *from, size_t n)
{
    fake.copies++;
    memcpy(behind(to), behind(from), n);
    return s->device == &fake && !fake.fail ? MC_OK : broken();
}

static void release(const struct mc_space *s, void *p)
{
    (void)s;
    (void)p;
    fake.releases++;
}

static void build_wall(void)
{
    if (!fake.wall) {
        fake.wall = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fake.bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fake.space = (struct mc_space){ "fake0", &fake, put, get, copy, release };
    }
}

static mc_array *far_empty(mc_dtype d, int rank, const int64_t *dims)
{
    build_wall();
    char *at = fake.wall + fake.used;
    size_t n = (size_t)mc_dims_count(rank, dims) * mc_dtype_size(d);
    mc_array *a = fake.used + n <= ROOM ? mc_array_on_device(&fake.space, d, rank, dims, at) : NULL;
    fake.used += a ? (n + 63) / 64 * 64 : 0;
    return a;
}

static mc_array *iota(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        mc_store_i64(d, a->data + i * mc_dtypes[d].size, i);
    }
    return a;
}

static mc_array *far_iota(mc_dtype d, int rank, const int64_t *dims)
{
    mc_array *host = iota(d, rank, dims), *a = far_empty(d, rank, dims);
    if (!host || !a || mc_array_assign(a, host) < 0) {
        mc_array_unref(&a);
    }
    mc_array_unref(&host);
    return a;
}

TEST(a_far_array_goes_out_and_comes_home_in_every_dtype)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *host = iota(d, MC_SHAPE(3, 5)), *a = far_empty(d, MC_SHAPE(3, 5));
        REQUIRE(host && a, "%s", mc_last_error());
        int puts = fake.puts, gets = fake.gets;
        CHECK(mc_array_assign(a, host) == MC_OK && fake.puts == puts + 1, "%s in %d puts", mc_dtype_name(d),
              fake.puts - puts);
        mc_array *home = mc_array_on_host(a), *again = mc_array_copy(a);
        CHECK(home && home != a && mc_array_same_bits(home, host), "%s came home otherwise",
              mc_dtype_name(d));
        CHECK(again && mc_array_same_bits(again, host) && fake.gets == gets + 2, "%d gets", fake.gets - gets);
        CHECK(strcmp(mc_array_device(a), "fake0") == 0 && strcmp(mc_array_device(home), "cpu") == 0, "%s, %s",
              mc_array_device(a), mc_array_device(home));
        mc_array *same = mc_array_on_host(host);
        CHECK(same == host, "a host's array was copied");
        mc_array_unref(&same);
        mc_array_unref(&again);
        mc_array_unref(&home);
        mc_array_unref(&host);
        mc_array_unref(&a);
    }
    CHECK(fake.releases == MC_NDTYPE, "%d released", fake.releases);
}

/* Host strided, host of another dtype, far, far of another dtype: each to each. */
TEST(assignment_works_between_here_and_there)
{
    mc_array *plain = iota(MC_FLOAT32, MC_SHAPE(4, 6)), *wide = iota(MC_INT64, MC_SHAPE(4, 6));
    mc_array *turned = iota(MC_FLOAT32, MC_SHAPE(6, 4)), *strided = mc_array_transpose(turned, NULL);
    mc_array *there = far_iota(MC_FLOAT32, MC_SHAPE(4, 6)), *narrow = far_iota(MC_INT8, MC_SHAPE(4, 6));
    mc_array *all[] = { plain, wide, strided, there, narrow };
    for (size_t i = 0; i < NELEM(all); i++) {
        for (size_t j = 0; j < NELEM(all); j++) {
            mc_array *want = mc_array_copy(all[j]);
            CHECK(mc_array_assign(all[i], all[j]) == MC_OK, "%zu from %zu: %s", i, j, mc_last_error());
            CHECK(want && mc_array_differs(all[i], want, 0, 0) == -1, "%zu from %zu differs", i, j);
            mc_array_unref(&want);
        }
    }
    int copies = fake.copies, gets = fake.gets;
    mc_array *second = far_empty(MC_FLOAT32, MC_SHAPE(4, 6));
    CHECK(mc_array_assign(second, there) == MC_OK && fake.copies == copies + 1 && fake.gets == gets,
          "not by a copy there");
    CHECK(mc_array_assign(there, there) == MC_OK && fake.copies == copies + 1, "onto itself by a copy");
    mc_array *wrong = far_empty(MC_FLOAT32, MC_SHAPE(6, 4));
    CHECK(mc_array_assign(wrong, plain) == MC_ESHAPE, "%s", mc_last_error());
    mc_array_unref(&wrong);
    mc_array_unref(&second);
    mc_array_unref(&turned);
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
}

/* The two halves share memory: what is read must not have been written before. */
TEST(gpu_arrays_that_overlap_are_assigned_as_if_they_did_not)
{
    mc_array *a = far_iota(MC_INT32, MC_SHAPE(10)), *low = mc_array_slice(a, 0, 0, 8, 1),
             *high = mc_array_slice(a, 0, 2, 8, 1);
    REQUIRE(a && low && high, "%s", mc_last_error());
    CHECK(mc_array_assign(high, low) == MC_OK, "%s", mc_last_error());
    for (int64_t i = 0; i < 8; i++) {
        CHECK(mc_array_get(high, &i) == (double)i, "element %d is %g", (int)i, mc_array_get(high, &i));
    }
    mc_array_unref(&high);
    mc_array_unref(&low);
    mc_array_unref(&a);
}

TEST(all_that_reads_elements_reads_far_ones)
{
    char path[] = "/tmp/mc_cuda_fn_XXXXXX";
    int fd = mkstemp(path);
    mc_array *host = iota(MC_FLOAT32, MC_SHAPE(2, 3)), *a = far_iota(MC_FLOAT32, MC_SHAPE(2, 3));
    REQUIRE(fd >= 0 && host && a, "%s", mc_last_error());
    close(fd);
    char *want = mc_array_text(host), *have = mc_array_text(a);
    CHECK(want && have && strcmp(want, have) == 0, "%s", have ? have : mc_last_error());
    mc_text_free(want);
    mc_text_free(have);

    CHECK(mc_array_get(a, (int64_t[]){ 1, 1 }) == 4, "%g", mc_array_get(a, (int64_t[]){ 1, 1 }));
    CHECK(mc_array_set(a, (int64_t[]){ 1, 1 }, 9) == MC_OK && mc_array_get(a, (int64_t[]){ 1, 1 }) == 9,
          "not set");
    CHECK(mc_array_differs(a, host, 0, 0) == 4 && !mc_array_same_bits(host, a), "the change is not seen");
    CHECK(mc_array_set(a, (int64_t[]){ 1, 1 }, 4) == MC_OK && mc_array_same_bits(host, a), "not what it was");

    mc_array *cast = mc_array_cast(a, MC_INT16), *flat = mc_array_reshape(a, MC_SHAPE(6));
    CHECK(cast && strcmp(mc_array_device(cast), "cpu") == 0 && mc_array_differs(cast, host, 0, 0) == -1,
          "cast");
    CHECK(flat && strcmp(mc_array_device(flat), "fake0") == 0 && mc_array_get(flat, (int64_t[]){ 5 }) == 5,
          "reshaped");

    CHECK(mc_npy_save(path, a) == MC_OK, "%s", mc_last_error());
    mc_array *back = mc_npy_load(path);
    CHECK(back && mc_array_same_bits(back, host), "saved otherwise");
    mc_array_unref(&back);
    CHECK(mc_archive_save(path, NULL, 1, (const char *[]){ "a" }, (const mc_array *[]){ a }) == MC_OK, "%s",
          mc_last_error());
    mc_archive *z = mc_archive_open(path);
    back = z ? mc_archive_load(z, "a") : NULL;
    CHECK(back && mc_array_same_bits(back, host), "saved otherwise");
    mc_archive_close(z);
    unlink(path);
    mc_array_unref(&back);

    struct DLManagedTensor *t = mc_array_to_dlpack(a);
    back = t ? mc_array_from_dlpack(t) : NULL;
    CHECK(back && mc_array_same_bits(back, host), "through DLPack otherwise");
    mc_array_unref(&back);
    mc_array_unref(&flat);
    mc_array_unref(&cast);
    mc_array_unref(&a);
    mc_array_unref(&host);
}

TEST(what_cannot_be_done_there_says_so)
{
    mc_array *a = far_iota(MC_FLOAT32, MC_SHAPE(4, 6)), *host = iota(MC_FLOAT32, MC_SHAPE(4, 6));
    REQUIRE(a && host, "%s", mc_last_error());
    CHECK(!mc_array_data(a), "the host has its address");
    CHECK(strcmp(mc_last_error(),
                 "mc_array_data: the array is on fake0; mc_array_to(a, \"cpu\") brings it to the host") == 0,
          "%s", mc_last_error());
    CHECK(!mc_array_transpose(a, NULL) && mc_last_status() == MC_EUNSUPPORTED &&
              strstr(mc_last_error(), "mc_array_transpose: arrays on fake0 "),
          "%s", mc_last_error());
    CHECK(!mc_array_slice(a, 1, 0, 2, 1) && strstr(mc_last_error(), "mc_array_slice: arrays on fake0 "), "%s",
          mc_last_error());
    mc_array *rows = mc_array_slice(a, 0, 1, 2, 1);
    CHECK(rows && mc_array_get(rows, NULL) == 6, "rows behind one another are no view");
    mc_array_unref(&rows);

    fake.fail = true;
    CHECK(!mc_array_copy(a) && strcmp(mc_last_error(), "fake0: broken") == 0, "%s", mc_last_error());
    CHECK(!mc_array_text(a) && isnan(mc_array_get(a, NULL)) && !mc_array_same_bits(a, host),
          "read from a broken device");
    CHECK(mc_array_differs(a, host, 0, 0) == 0, "what cannot be fetched is said to be equal");
    CHECK(mc_array_assign(host, a) == MC_EDEVICE && mc_array_assign(a, host) == MC_EDEVICE, "assigned");
    CHECK(mc_array_set(a, NULL, 1) == MC_EDEVICE && mc_npy_save("/tmp/never", a) == MC_EDEVICE, "set, saved");
    CHECK(mc_archive_save("/tmp/never", NULL, 1, (const char *[]){ "a" }, (const mc_array *[]){ a }) ==
              MC_EDEVICE,
          "saved");
    CHECK(!mc_array_to_dlpack(a) && mc_last_status() == MC_EDEVICE, "given out");
    fake.fail = false;
    mc_array_unref(&host);
    mc_array_unref(&a);
}

TEST(gpu_arrays_survive_want_of_memory)
{
    mc_array *a = far_iota(MC_FLOAT32, MC_SHAPE(2, 3)), *host = iota(MC_INT32, MC_SHAPE(2, 3));
    const size_t mark = fake.used;
    ALLOC_FAIL_LOOP {
        fake.used = mark;
        mc_array *b = far_empty(MC_FLOAT32, MC_SHAPE(2, 3)), *c = mc_array_on_host(a);
        char *text = b ? mc_array_text(a) : NULL;
        CHECK(!b || mc_array_assign(b, host) == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        CHECK((b && c && text) || ALLOC_FAILED, "no array, yet memory: %s", mc_last_error());
        mc_text_free(text);
        mc_array_unref(&c);
        mc_array_unref(&b);
    }
    mc_array_unref(&host);
    mc_array_unref(&a);
}

TEST(devices_by_name)
{
    mc_array *a = iota(MC_FLOAT32, MC_SHAPE(3)), *same = mc_array_to(a, "cpu");
    mc_array *far = far_iota(MC_FLOAT32, MC_SHAPE(3)), *home = mc_array_to(far, "cpu");
    CHECK(same == a, "an array that is home was copied");
    CHECK(home && strcmp(mc_array_device(home), "cpu") == 0 && mc_array_same_bits(home, a), "not home");
    CHECK(!mc_array_to(a, "gpu0") && mc_last_status() == MC_EARG, "%s", mc_last_error());
    CHECK(strcmp(mc_last_error(),
                 "mc_array_to: there is no device 'gpu0': it is cpu, cuda, or cuda with a GPU's number, "
                 "as in cuda1") == 0,
          "%s", mc_last_error());
    CHECK(!mc_array_to(NULL, "cpu") && strcmp(mc_last_error(), "mc_array_to: no array") == 0, "%s",
          mc_last_error());
    mc_array_unref(&same);
    mc_array_unref(&a);
    mc_array_unref(&home);
    mc_array_unref(&far);
}
