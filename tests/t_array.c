/* t_array.c: arrays and their views, walking, comparing. */
#include "array_text.h"
#include "value/value.h"

#include <math.h>
#include <stdlib.h>

/* ---- making arrays ---- */

TEST(new_arrays_are_zero)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *a = mc_array_new(d, MC_SHAPE(3, 1, 4));
        REQUIRE(a, "%s", mc_last_error());
        CHECK(mc_array_size(a) == 12 && mc_array_rank(a) == 3 && mc_array_dtype(a) == d, "%lld",
              (long long)mc_array_size(a));
        CHECK(mc_array_dims(a)[2] == 4 && mc_array_strides(a)[0] == 4 * mc_dtypes[d].size, "not C order");
        CHECK(mc_array_is_contiguous(a) && mc_array_data(a) == a->data, "not contiguous");
        for (int64_t i = 0; i < 12; i++) {
            CHECK(mc_array_get(a, (int64_t[]){ i / 4, 0, i % 4 }) == 0, "element %lld", (long long)i);
        }
        mc_array_unref(&a);
        CHECK(!a, "the pointer is still there");
    }
}

/* A machine with a gigabyte, whatever the C library promises. */
static void *modest(void *arg, void *p, size_t n)
{
    (void)arg;
    if (n == 0) {
        free(p);
    }
    return n == 0 || n > 1 << 30 ? NULL : realloc(p, n);
}

TEST(impossible_arrays_are_refused)
{
    static const struct {
        mc_dtype d;
        int rank;
        int64_t dims[9];
        const char *want;
    } rows[] = {
        { (mc_dtype)99, 1, { 3 }, "99 is not a dtype" },
        { MC_INT8, 9, { 1 }, "an array cannot have 9 axes; at most 8 are possible" },
        { MC_INT8, -1, { 1 }, "an array cannot have -1 axes; at most 8 are possible" },
        { MC_INT8, 2, { 3, -1 }, "an array cannot have the shape (3, ?)" },
        { MC_INT16, 2, { INT64_MAX / 2, 2 }, "too large: the shape (4611686018427387903, 2)" },
        { MC_INT8, 3, { INT64_MAX, 3, 0 }, "too large: the shape (9223372036854775807, 3, 0)" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *a = mc_array_new(rows[i].d, rows[i].rank, rows[i].dims);
        CHECK(!a && strcmp(mc_last_error(), rows[i].want) == 0, "%s", mc_last_error());
        mc_array_unref(&a);
    }
    CHECK(!mc_array_new(MC_INT8, 2, NULL) && !mc_array_wrap(MC_INT8, MC_SHAPE(3), NULL, NULL, NULL, NULL),
          "NULL passed");
    mc_set_allocator(&(mc_allocator){ modest, NULL });
    mc_array *huge = mc_array_new(MC_INT8, MC_SHAPE(INT64_C(1) << 61));
    CHECK(!huge && mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
    mc_set_allocator(NULL);
}

static void count_release(void *arg)
{
    ++*(int *)arg;
}

TEST(borrowed_memory_is_released_with_its_last_view)
{
    int released = 0;
    float data[6] = { 0, 1, 2, 3, 4, 5 };
    mc_array *a = mc_array_wrap(MC_FLOAT32, MC_SHAPE(2, 3), NULL, data, count_release, &released);
    REQUIRE(a, "%s", mc_last_error());
    mc_array *t = mc_array_transpose(a, NULL), *s = mc_array_slice(t, 0, 2, 2, -1), *again = mc_array_ref(a);
    CHECK(mc_array_data(a) == data && again == a, "a copy was made");
    mc_array_unref(&a);
    mc_array_unref(&again);
    mc_array_unref(&t);
    CHECK(released == 0 && mc_array_get(s, (int64_t[]){ 1, 1 }) == 4, "released %d times too early",
          released);
    mc_array_unref(&s);
    CHECK(released == 1, "released %d times", released);
    CHECK(!mc_array_wrap(MC_FLOAT32, MC_SHAPE(-2), NULL, data, count_release, &released) && released == 1,
          "what was refused was released");
    a = mc_array_wrap(MC_FLOAT32, MC_SHAPE(2, 3), (int64_t[]){ 0, 4 }, data, NULL, NULL);
    CHECK(mc_array_get(a, (int64_t[]){ 1, 2 }) == 2, "strides do not count");
    mc_array_unref(&a);
    mc_array_unref(&a);
    mc_array_unref(NULL);
    CHECK(!mc_array_ref(NULL), "a reference to nothing");
}

TEST(arrays_are_made_from_data_and_numbers)
{
    int16_t data[3] = { -1, 2, 3 };
    mc_array *a = mc_array_from(MC_INT16, MC_SHAPE(3), data), *s = mc_array_scalar(MC_BFLOAT16, 1.5);
    data[0] = 7;
    CHECK(mc_array_get(a, NULL) == -1 && mc_array_get(a, (int64_t[]){ 2 }) == 3, "not the data");
    CHECK(mc_array_get(s, NULL) == 1.5 && s->rank == 0, "not the number");
    CHECK(mc_array_set(a, (int64_t[]){ 1 }, -9.9) == MC_OK && mc_array_get(a, (int64_t[]){ 1 }) == -9,
          "not set");
    CHECK(isnan(mc_array_get(a, (int64_t[]){ 3 })), "beyond the end");
    CHECK(strcmp(mc_last_error(), "mc_array_get: index 3 is out of range for axis 0 with size 3") == 0, "%s",
          mc_last_error());
    CHECK(mc_array_set(a, (int64_t[]){ -1 }, 0) == MC_EINDEX, "before the beginning");
    mc_array_unref(&a);
    mc_array_unref(&s);
    a = mc_array_new(MC_INT8, MC_SHAPE(0, 3));
    CHECK(isnan(mc_array_get(a, NULL)) && mc_array_size(a) == 0 && mc_array_is_contiguous(a),
          "an element of nothing");
    mc_array_unref(&a);
}

#if defined(MC_POISON)
TEST(fresh_memory_is_poisoned)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *a = mc_array_empty(d, MC_SHAPE(4));
        CHECK(mc_is_float(d) ? isnan(mc_array_get(a, NULL)) : mc_array_get(a, NULL) != 0, "%s",
              mc_dtype_name(d));
        mc_array_unref(&a);
    }
}
#endif

/* ---- views ---- */

/* A random chain of slices, transpositions and reshapes against the same done to a list of numbers: element
 * i of the view, in C order, must be what picking by hand gives. */
TEST(random_views_show_the_right_elements)
{
    for (int round = 0; round < 300; round++) {
        int64_t dims[3], want[512];
        int64_t n = 1;
        for (int i = 0; i < 3; i++) {
            n *= dims[i] = 1 + (int64_t)(test_random() % 6);
        }
        mc_array *a = iota(MC_INT32, 3, dims);
        for (int64_t i = 0; i < n; i++) {
            want[i] = i;
        }
        for (int step = 0; step < 4; step++) {
            int64_t picked[512], m = 0;
            mc_array *b = NULL;
            if (test_random() % 3 == 0) { /* a transposition of the last two axes */
                int axes[3] = { 0, 2, 1 };
                b = mc_array_transpose(a, axes);
                for (int64_t i = 0; i < a->dims[0]; i++) {
                    for (int64_t k = 0; k < a->dims[2]; k++) {
                        for (int64_t j = 0; j < a->dims[1]; j++) {
                            picked[m++] = want[(i * a->dims[1] + j) * a->dims[2] + k];
                        }
                    }
                }
            } else if (test_random() % 2) { /* every second, backwards, of the middle axis */
                int64_t count = (a->dims[1] + 1) / 2;
                b = mc_array_slice(a, 1, a->dims[1] - 1, count, -2);
                for (int64_t i = 0; i < a->dims[0]; i++) {
                    for (int64_t j = 0; j < count; j++) {
                        for (int64_t k = 0; k < a->dims[2]; k++) {
                            picked[m++] = want[(i * a->dims[1] + a->dims[1] - 1 - 2 * j) * a->dims[2] + k];
                        }
                    }
                }
            } else { /* the first two axes as one, and one of length one */
                b = mc_array_reshape(a, 3, (int64_t[]){ -1, 1, a->dims[2] });
                m = mc_array_size(a);
                memcpy(picked, want, sizeof want);
            }
            REQUIRE(b, "%s", mc_last_error());
            mc_array_unref(&a);
            a = b;
            memcpy(want, picked, (size_t)m * sizeof *want);
            int64_t wrong = 0, at = 0;
            for (int64_t i = 0; i < a->dims[0]; i++) {
                for (int64_t j = 0; j < a->dims[1]; j++) {
                    for (int64_t k = 0; k < a->dims[2]; k++) {
                        wrong += mc_array_get(a, (int64_t[]){ i, j, k }) != (double)want[at++];
                    }
                }
            }
            mc_array *copy = mc_array_copy(a);
            CHECK(at == m && wrong == 0, "round %d, step %d: %lld of %lld wrong", round, step,
                  (long long)wrong, (long long)m);
            CHECK(copy && mc_array_is_contiguous(copy) && mc_array_same_bits(a, copy), "the copy differs");
            mc_array_unref(&copy);
        }
        mc_array_unref(&a);
    }
}

TEST(reshaping_copies_only_if_it_must)
{
    static const struct {
        int rank;
        int64_t dims[4];
        bool view;
    } of_columns[] = {
        /* the middle four columns of a matrix with 6 rows and 8 columns */
        { 3, { 2, 3, 4 }, true }, { 4, { 6, 2, 1, 2 }, true }, { 3, { 6, -1, 1 }, true },
        { 2, { 24, 1 }, false },  { 2, { 4, 6 }, false },      { 1, { 24 }, false },
    };
    mc_array *a = iota(MC_INT16, MC_SHAPE(6, 8)), *s = mc_array_slice(a, 1, 2, 4, 1);
    for (size_t i = 0; i < NELEM(of_columns); i++) {
        mc_array *r = mc_array_reshape(s, of_columns[i].rank, of_columns[i].dims);
        REQUIRE(r, "%s", mc_last_error());
        CHECK((r->storage == a->storage) == of_columns[i].view, "row %zu: a view or a copy", i);
        mc_array *flat = mc_array_reshape(r, MC_SHAPE(24));
        for (int64_t k = 0; k < 24; k++) {
            CHECK(mc_array_get(flat, &k) == (double)(k / 4 * 8 + 2 + k % 4), "row %zu, element %lld", i,
                  (long long)k);
        }
        mc_array_unref(&flat);
        mc_array_unref(&r);
    }
    mc_array *all = mc_array_reshape(a, MC_SHAPE(2, -1, 4)), *one = mc_array_slice(a, 0, 2, 1, 1),
             *scalar = mc_array_slice(one, 1, 3, 1, INT64_MAX), *none = mc_array_reshape(scalar, MC_NOSHAPE);
    CHECK(all && all->dims[1] == 6 && all->storage == a->storage, "%s", mc_last_error());
    CHECK(none && none->rank == 0 && mc_array_get(none, NULL) == 19, "%s", mc_last_error());
    mc_array_unref(&all);
    mc_array_unref(&one);
    mc_array_unref(&scalar);
    mc_array_unref(&none);
    mc_array_unref(&s);
    mc_array_unref(&a);
}

TEST(wrong_views_are_refused)
{
    mc_array *a = iota(MC_INT16, MC_SHAPE(4, 6)), *e = mc_array_new(MC_INT8, MC_SHAPE(0, 3)), *r;
    static const struct {
        int axis;
        int64_t start, count, step;
        const char *want;
    } slices[] = {
        { 2, 0, 1, 1, "mc_array_slice: axis 2 is out of range for an array with 2 axes" },
        { -1, 0, 1, 1, "mc_array_slice: axis -1 is out of range for an array with 2 axes" },
        { 1, 4, 3, 1, "mc_array_slice: 3 elements from 4 in steps of 1 do not lie in an axis of length 6" },
        { 1, 2, 4, -1, "mc_array_slice: 4 elements from 2 in steps of -1 do not lie in an axis of length 6" },
        { 1, 0, 2, INT64_MAX,
          "mc_array_slice: 2 elements from 0 in steps of 9223372036854775807 do not lie in an axis of length "
          "6" },
        { 1, 0, 2, 0, "mc_array_slice: 2 elements from 0 in steps of 0 do not lie in an axis of length 6" },
        { 1, 6, 1, 1, "mc_array_slice: 1 elements from 6 in steps of 1 do not lie in an axis of length 6" },
        { 1, -1, 1, 1, "mc_array_slice: 1 elements from -1 in steps of 1 do not lie in an axis of length 6" },
    };
    for (size_t i = 0; i < NELEM(slices); i++) {
        r = mc_array_slice(a, slices[i].axis, slices[i].start, slices[i].count, slices[i].step);
        CHECK(!r && strcmp(mc_last_error(), slices[i].want) == 0, "%s", mc_last_error());
    }
    static const struct {
        int rank;
        int64_t dims[9];
        const char *want;
    } shapes[] = {
        { 1, { 23 }, "mc_array_reshape: cannot reshape (4, 6) to (23,)" },
        { 2, { -1, 7 }, "mc_array_reshape: cannot reshape (4, 6) to (?, 7)" },
        { 2, { -1, -1 }, "mc_array_reshape: cannot reshape (4, 6) to (?, ?)" },
        { 2, { -1, 0 }, "mc_array_reshape: cannot reshape (4, 6) to (?, 0)" },
        { 2, { INT64_MAX, 4 }, "mc_array_reshape: cannot reshape (4, 6) to (9223372036854775807, 4)" },
        { 9, { 24 }, "mc_array_reshape: an array cannot have 9 axes; at most 8 are possible" },
    };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        r = mc_array_reshape(a, shapes[i].rank, shapes[i].dims);
        CHECK(!r && strcmp(mc_last_error(), shapes[i].want) == 0, "%s", mc_last_error());
    }
    r = mc_array_reshape(e, MC_SHAPE(-1, 0));
    CHECK(!r && strcmp(mc_last_error(), "mc_array_reshape: cannot reshape (0, 3) to (?, 0)") == 0, "%s",
          mc_last_error());
    r = mc_array_reshape(e, MC_SHAPE(5, -1));
    CHECK(r && r->dims[1] == 0, "%s", mc_last_error());
    mc_array_unref(&r);
    CHECK(!mc_array_transpose(a, (int[]){ 0, 0 }) && !mc_array_transpose(a, (int[]){ 0, 2 }),
          "no permutation");
    CHECK(!mc_array_slice(NULL, 0, 0, 0, 1) && !mc_array_transpose(NULL, NULL) &&
              !mc_array_reshape(NULL, 0, NULL) && !mc_array_copy(NULL) && !mc_array_cast(NULL, MC_INT8) &&
              !mc_array_text(NULL),
          "NULL passed");
    CHECK(!mc_array_cast(a, (mc_dtype)50) && strcmp(mc_last_error(), "50 is not a dtype") == 0, "%s",
          mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&e);
}

TEST(assigning_casts_and_survives_overlap)
{
    mc_array *a = iota(MC_INT32, MC_SHAPE(10)), *from = mc_array_slice(a, 0, 0, 9, 1),
             *to = mc_array_slice(a, 0, 1, 9, 1);
    CHECK(mc_array_overlaps(from, to) && mc_array_assign(to, from) == MC_OK, "%s", mc_last_error());
    check_text(a, "[0 0 1 2 3 4 5 6 7 8]");
    mc_array *back = mc_array_slice(a, 0, 9, 10, -1), *f = mc_array_new(MC_FLOAT32, MC_SHAPE(10));
    CHECK(mc_array_assign(a, back) == MC_OK && mc_array_assign(f, a) == MC_OK, "%s", mc_last_error());
    check_text(f, "[8. 7. 6. 5. 4. 3. 2. 1. 0. 0.]");
    CHECK(!mc_array_overlaps(a, f), "different memory overlaps");
    CHECK(mc_array_assign(from, a) == MC_ESHAPE, "shapes differ");
    CHECK(strcmp(mc_last_error(), "mc_array_assign: cannot assign shape (10,) to (9,)") == 0, "%s",
          mc_last_error());
    CHECK(mc_array_assign(NULL, a) == MC_EARG && mc_array_assign(a, NULL) == MC_EARG, "NULL passed");
    mc_array *left = mc_array_slice(a, 0, 0, 5, 1), *right = mc_array_slice(a, 0, 9, 5, -1),
             *none = mc_array_slice(a, 0, 3, 0, 1);
    CHECK(!mc_array_overlaps(left, right) && mc_array_overlaps(right, a) && !mc_array_overlaps(none, a),
          "overlap");
    mc_array *all[] = { a, from, to, back, f, left, right, none };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
}

/* ---- walking and comparing ---- */

TEST(a_walk_visits_rows_in_order)
{
    mc_array *a = iota(MC_INT32, MC_SHAPE(2, 3, 4)), *t = mc_array_transpose(a, (int[]){ 1, 0, 2 });
    struct mc_walk w;
    int rows = 0;
    REQUIRE(mc_walk_begin(&w, 3, t->dims, 1, 2, (char *[]){ t->data, t->data },
                          (const int64_t *[]){ t->strides, t->strides }),
            "nothing to visit");
    do {
        int32_t *p = (int32_t *)(void *)w.p[1];
        CHECK(w.p[0] == w.p[1] && *p == rows % 2 * 12 + rows / 2 * 4, "row %d begins with %d", rows, *p);
        rows++;
    } while (mc_walk_next(&w));
    CHECK(rows == 6, "%d rows", rows);
    CHECK(mc_walk_begin(&w, 3, a->dims, 3, 1, &a->data, (const int64_t *[]){ a->strides }) &&
              !mc_walk_next(&w),
          "one row");
    CHECK(mc_walk_begin(&w, 0, NULL, 1, 1, &a->data, (const int64_t *[]){ a->strides }) && !mc_walk_next(&w),
          "a scalar");
    CHECK(!mc_walk_begin(&w, 2, (int64_t[]){ 3, 0 }, 1, 1, &a->data, (const int64_t *[]){ a->strides }),
          "an empty row");
    mc_array_unref(&t);
    mc_array_unref(&a);
}

TEST(arrays_compare)
{
    mc_array *a = iota(MC_FLOAT32, MC_SHAPE(3, 200)), *b = mc_array_cast(a, MC_FLOAT64),
             *c = mc_array_copy(a);
    mc_array *t = mc_array_transpose(a, NULL);
    CHECK(mc_array_differs(a, b, 0, 0) == -1 && mc_array_same_bits(a, c) && !mc_array_same_bits(a, b),
          "equal arrays differ");
    CHECK(mc_array_differs(a, t, 0, 0) == 0 && !mc_array_same_bits(a, t), "shapes do not count");
    mc_array_set(c, (int64_t[]){ 2, 150 }, 550.01);
    CHECK(mc_array_differs(a, c, 0, 0) == 550, "at %lld", (long long)mc_array_differs(a, c, 0, 0));
    CHECK(mc_array_differs(a, c, 1e-4, 0) == -1 && mc_array_differs(a, c, 0, 0.02) == -1, "no tolerance");
    CHECK(mc_array_differs(a, c, 1e-6, 1e-3) == 550 && !mc_array_same_bits(a, c), "too much tolerance");
    mc_array_set(b, (int64_t[]){ 1, 1 }, NAN);
    CHECK(mc_array_differs(a, b, 1, 1e9) == 201 && mc_array_differs(b, b, 0, 0) == -1, "NaN equals only NaN");
    mc_array_set(b, (int64_t[]){ 1, 1 }, INFINITY);
    CHECK(mc_array_differs(a, b, 1, 1e9) == 201 && mc_array_differs(b, b, 0, 0) == -1,
          "infinity equals only itself");
    mc_array *i = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ INT64_C(1) << 60, 5 });
    mc_array *j = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ (INT64_C(1) << 60) + 1, 5 });
    CHECK(mc_array_differs(i, j, 0, 0) == 0, "large integers look equal");
    mc_array *zero = mc_array_scalar(MC_FLOAT32, 0), *minus = mc_array_scalar(MC_FLOAT32, -0.0);
    CHECK(mc_array_differs(zero, minus, 0, 0) == -1 && !mc_array_same_bits(zero, minus), "-0");
    mc_array *all[] = { a, b, c, t, i, j, zero, minus };
    for (size_t k = 0; k < NELEM(all); k++) {
        mc_array_unref(&all[k]);
    }
}

/* ---- every allocation may fail ---- */

TEST(arrays_survive_every_failed_allocation)
{
    ALLOC_FAIL_LOOP {
        mc_clear_error();
        mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 6));
        mc_array *t = a ? mc_array_transpose(a, NULL) : NULL,
                 *r = t ? mc_array_reshape(t, MC_SHAPE(-1)) : NULL;
        mc_array *c = r ? mc_array_cast(r, MC_INT16) : NULL, *s = c ? mc_array_slice(c, 0, 5, 3, -2) : NULL;
        mc_array *b = s ? mc_array_slice(c, 0, 3, 3, -1) : NULL;
        char *text = b && mc_array_assign(b, s) == MC_OK ? mc_array_text(a) : NULL;
        CHECK((text != NULL) == !ALLOC_FAILED, "%s", mc_last_error());
        CHECK(text || mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
        mc_text_free(text);
        mc_array_unref(&a);
        mc_array_unref(&t);
        mc_array_unref(&r);
        mc_array_unref(&c);
        mc_array_unref(&s);
        mc_array_unref(&b);
    }
    ALLOC_FAIL_LOOP { /* an error whose text needs memory */
        mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 6)),
                 *r = a ? mc_array_reshape(a, MC_SHAPE(5)) : NULL;
        CHECK(!r && mc_last_status() == (ALLOC_FAILED ? MC_EMEMORY : MC_ESHAPE), "%s", mc_last_error());
        mc_array_unref(&a);
    }
}
