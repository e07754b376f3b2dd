/* t_value.c: dtypes, conversion, arrays and their views, walking, comparing, printing. */
#include "check.h"
#include "value/value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static mc_array *iota(mc_dtype d, int rank, const int64_t *dims) /* 0, 1, 2, ... in C order */
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        mc_store_i64(d, a->data + i * mc_dtypes[d].size, i);
    }
    return a;
}

static void check_text(const mc_array *a, const char *want)
{
    char *have = mc_array_text(a);
    if (CHECK(have, "%s", mc_last_error())) {
        CHECK(strcmp(have, want) == 0, "\n%s\n    and not\n%s", have, want);
    }
    mc_text_free(have);
}

/* ---- dtypes ---- */

TEST(the_table_of_dtypes_agrees_with_itself)
{
    mc_dtype found;
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        const struct mc_dtype_row *r = &mc_dtypes[d];
        CHECK(mc_dtype_parse(r->name, &found) == MC_OK && found == d, "%s", r->name);
        CHECK(strcmp(mc_dtype_name(d), r->name) == 0 && mc_dtype_size(d) == r->size, "%s", r->name);
        CHECK(r->npy[1] - '0' == r->size, "%s in a .npy file is %s", r->name, r->npy);
        CHECK(mc_is_float(d) == (r->eps > 0) && mc_is_float(d) == (r->cls == CLASS_F32 || r->cls == CLASS_F64), "%s",
              r->name);
        if (mc_is_float(d)) { /* the next number after one */
            unsigned char one[8], next[8];
            mc_store_f64(d, one, 1);
            mc_store_f64(d, next, 1 + r->eps);
            CHECK(mc_load_f64(d, next) == 1 + r->eps && mc_load_f64(d, one) == 1, "%s", r->name);
            mc_store_f64(d, next, 1 + r->eps * 0.499);
            CHECK(mc_load_f64(d, next) == 1, "%s has a number nearer to one", r->name);
        }
    }
    CHECK(mc_dtype_size((mc_dtype)99) == 0 && strcmp(mc_dtype_name((mc_dtype)99), "?") == 0, "99 is a dtype");
    CHECK(mc_dtype_parse("flaot32", &found) == MC_ETYPE, "parsed");
    CHECK(strcmp(mc_last_error(), "unknown dtype 'flaot32'; did you mean 'float32'?") == 0, "%s", mc_last_error());
    mc_flag_set("floatX", "float16");
    CHECK(mc_dtype_parse("floatX", &found) == MC_OK && found == MC_FLOAT16 && mc_dtype_floatX() == MC_FLOAT16, "%d",
          found);
    CHECK(mc_dtype_to_float(MC_INT8) == MC_FLOAT32 && mc_dtype_to_float(MC_INT64) == MC_FLOAT64, "not the float");
    CHECK(mc_dtype_to_float(MC_FLOAT16) == MC_FLOAT16 && mc_dtype_to_float(MC_BOOL) == MC_FLOAT32, "not the float");
}

/* The dtype of a sum or product: what both fit into, in either order.  The golden table is NumPy's. */
TEST(promotion)
{
    struct mc_str table = { 0 };
    for (mc_dtype a = 0; a < MC_NDTYPE; a++) {
        for (mc_dtype b = 0; b < MC_NDTYPE; b++) {
            mc_dtype c = mc_dtype_promote(a, b);
            CHECK(c == mc_dtype_promote(b, a), "%s and %s in two ways", mc_dtype_name(a), mc_dtype_name(b));
            CHECK(mc_dtype_promote(c, a) == c && mc_dtype_promote(c, b) == c, "%s does not hold both",
                  mc_dtype_name(c));
            mc_str_addf(&table, "%-8s + %-8s = %s\n", mc_dtype_name(a), mc_dtype_name(b), mc_dtype_name(c));
        }
        CHECK(mc_dtype_promote(a, a) == a, "%s", mc_dtype_name(a));
    }
    GOLDEN("promote.txt", table.s);
    mc_str_free(&table);
}

/* Every half, and the middle between every two: it goes to the even one, and a nudge decides it. */
static void check_half(mc_dtype d, uint16_t (*to)(float), float (*from)(uint16_t), uint16_t inf)
{
    long wrong = 0;
    for (uint16_t h = 0; h < inf; h++) {
        double x = (double)from(h),
               y = h + 1 == inf ? 2 * x - (double)from((uint16_t)(h - 1)) : (double)from((uint16_t)(h + 1));
        double middle = (x + y) / 2;
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h), up, down, tie;
        wrong += to((float)x) != h || to((float)-x) != (h | 0x8000) || (h && !(y > x));
        if (middle <= (double)FLT_MAX) {
            wrong += to((float)middle) != even;
        }
        /* from a double, so near the middle that a float would lie on it */
        mc_store_f64(d, &tie, middle);
        mc_store_f64(d, &up, nextafter(middle, (double)INFINITY));
        mc_store_f64(d, &down, -nextafter(middle, 0));
        wrong += tie != even || up != h + 1 || down != (h | 0x8000);
        if (wrong) {
            CHECK(wrong == 0, "%s near %#x: %#x %#x %#x", mc_dtype_name(d), h, tie, up, down);
            return;
        }
    }
    CHECK(isinf(from(inf)) && to(INFINITY) == inf && to(-INFINITY) == (inf | 0x8000), "infinity");
    for (unsigned h = inf + 1u; h <= 0x7fff; h++) {
        wrong += !isnan(from((uint16_t)h)) || !isnan(from(to(from((uint16_t)h))));
    }
    CHECK(wrong == 0 && isnan(from(to(NAN))), "%ld NaNs lost", wrong);
}

TEST(float16_rounds_to_nearest_even)
{
    check_half(MC_FLOAT16, mc_f32_to_f16, mc_f16_to_f32, 0x7c00);
}

TEST(bfloat16_rounds_to_nearest_even)
{
    check_half(MC_BFLOAT16, mc_f32_to_bf16, mc_bf16_to_f32, 0x7f80);
}

/* ---- conversion ---- */

/* What an in-range value becomes, by the definition. */
static double expected(mc_dtype d, double v)
{
    switch (mc_dtypes[d].kind) {
    case KIND_BOOL: return v != 0;
    case KIND_FLOAT: return d == MC_FLOAT64 ? v : (double)(float)v;
    default: return trunc(v);
    }
}

/* Small values, which every dtype but bool holds (unsigned ones if v >= 0), in every layout. */
TEST(every_pair_of_dtypes_converts_in_every_layout)
{
    enum { N = 1100 };
    static char src[N * 24], dst[N * 24], one[8];
    for (mc_dtype s = 0; s < MC_NDTYPE; s++) {
        for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
            bool whole = !mc_is_float(s), negative = mc_dtypes[s].kind != KIND_UINT && mc_dtypes[d].kind != KIND_UINT;
            for (int layout = 0; layout < 4; layout++) {
                int64_t ss = mc_dtypes[s].size * (layout & 1 ? 3 : 1), ds = mc_dtypes[d].size * (layout & 2 ? 2 : 1);
                long wrong = 0, touched = 0;
                memset(dst, 0x55, sizeof dst);
                for (int64_t i = 0; i < N; i++) {
                    double v = (double)(i % 127) / (whole ? 1 : 4) * (negative && i % 2 ? -1 : 1);
                    mc_store_f64(s, src + i * ss, v);
                }
                mc_convert(d, dst, ds, s, src, ss, N);
                for (int64_t i = 0; i < N; i++) {
                    double v = mc_load_f64(s, src + i * ss), have = mc_load_f64(d, dst + i * ds);
                    wrong += have != expected(d, v);
                    mc_convert(d, one, 0, s, src + i * ss, 0, 1);
                    wrong += memcmp(one, dst + i * ds, mc_dtypes[d].size) != 0;
                    for (int64_t k = mc_dtypes[d].size; k < ds; k++) {
                        touched += dst[i * ds + k] != 0x55;
                    }
                }
                CHECK(wrong == 0 && touched == 0 && dst[N * ds] == 0x55,
                      "%s to %s, layout %d: %ld wrong, %ld between", mc_dtype_name(s), mc_dtype_name(d), layout,
                      wrong, touched);
            }
        }
    }
}

TEST(negative_strides_reverse)
{
    int32_t src[1000];
    float dst[1000];
    long wrong = 0;
    for (int i = 0; i < 1000; i++) {
        src[i] = i;
    }
    mc_convert(MC_FLOAT32, dst, 4, MC_INT32, src + 999, -4, 1000);
    for (int i = 0; i < 1000; i++) {
        wrong += dst[i] != (float)(999 - i);
    }
    CHECK(wrong == 0, "%ld wrong", wrong);
}

TEST(conversions_without_an_answer_are_defined)
{
    static const struct {
        double from;
        mc_dtype to;
        double want;
    } rows[] = {
        { NAN, MC_INT32, INT32_MIN },
        { INFINITY, MC_INT32, INT32_MIN },
        { 3e9, MC_INT32, INT32_MIN },
        { -2147483648.9, MC_INT32, INT32_MIN },
        { 2147483647.9, MC_INT32, INT32_MAX },
        { NAN, MC_INT64, -0x1p63 },
        { 1e300, MC_INT64, -0x1p63 },
        { NAN, MC_INT8, 0 },
        { 300, MC_INT8, 44 },
        { -1, MC_UINT8, 255 },
        { -1, MC_UINT32, 4294967295.0 },
        { 4e9, MC_UINT32, 4e9 },
        { -1, MC_UINT64, 0x1p64 },
        { 0x1p63, MC_UINT64, 0x1p63 },
        { 1e19, MC_UINT64, 1e19 },
        { 0.5, MC_BOOL, 1 },
        { NAN, MC_BOOL, 1 },
        { -0.0, MC_BOOL, 0 },
        { 70000, MC_FLOAT16, INFINITY },
        { 1e300, MC_FLOAT32, INFINITY },
        { -1e300, MC_BFLOAT16, -INFINITY },
        { 1e-300, MC_FLOAT32, 0 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        unsigned char p[8];
        mc_store_f64(rows[i].to, p, rows[i].from);
        double have = mc_load_f64(rows[i].to, p);
        CHECK(have == rows[i].want, "%g as %s is %g", rows[i].from, mc_dtype_name(rows[i].to), have);
    }
    uint64_t big = UINT64_MAX;
    CHECK(mc_load_f64(MC_UINT64, &big) == 0x1p64 && mc_load_i64(MC_UINT64, &big) == -1, "the greatest uint64");
    int64_t least = INT64_MIN, odd = (INT64_C(1) << 53) + 1;
    unsigned char p[8];
    mc_store_i64(MC_INT32, p, odd);
    CHECK(mc_load_i64(MC_INT32, p) == 1, "integers wrap");
    mc_store_i64(MC_UINT64, p, least);
    CHECK(mc_load_f64(MC_UINT64, p) == 0x1p63, "integers wrap");
}

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
        { MC_INT8, 9, { 1 }, "an array cannot have 9 axes: at most 8" },
        { MC_INT8, -1, { 1 }, "an array cannot have -1 axes: at most 8" },
        { MC_INT8, 2, { 3, -1 }, "an array cannot have the shape (3, ?)" },
        { MC_INT16, 2, { INT64_MAX / 2, 2 }, "too large to count: the shape (4611686018427387903, 2)" },
        { MC_INT8, 3, { INT64_MAX, 3, 0 }, "too large to count: the shape (9223372036854775807, 3, 0)" },
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
    CHECK(released == 0 && mc_array_get(s, (int64_t[]){ 1, 1 }) == 4, "released %d times too early", released);
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
    CHECK(mc_array_set(a, (int64_t[]){ 1 }, -9.9) == MC_OK && mc_array_get(a, (int64_t[]){ 1 }) == -9, "not set");
    CHECK(isnan(mc_array_get(a, (int64_t[]){ 3 })), "beyond the end");
    CHECK(strcmp(mc_last_error(), "mc_array_get: index 3 in axis 0 of length 3") == 0, "%s", mc_last_error());
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
        CHECK(mc_is_float(d) ? isnan(mc_array_get(a, NULL)) : mc_array_get(a, NULL) != 0, "%s", mc_dtype_name(d));
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
            CHECK(at == m && wrong == 0, "round %d, step %d: %lld of %lld wrong", round, step, (long long)wrong,
                  (long long)m);
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
        { 2, 0, 1, 1, "mc_array_slice: axis 2 of an array with 2 axes" },
        { -1, 0, 1, 1, "mc_array_slice: axis -1 of an array with 2 axes" },
        { 1, 4, 3, 1, "mc_array_slice: 3 elements from 4 in steps of 1 do not lie in an axis of length 6" },
        { 1, 2, 4, -1, "mc_array_slice: 4 elements from 2 in steps of -1 do not lie in an axis of length 6" },
        { 1, 0, 2, INT64_MAX,
          "mc_array_slice: 2 elements from 0 in steps of 9223372036854775807 do not lie in an axis of length 6" },
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
        { 1, { 23 }, "mc_array_reshape: cannot go from (4, 6) to (23,)" },
        { 2, { -1, 7 }, "mc_array_reshape: cannot go from (4, 6) to (?, 7)" },
        { 2, { -1, -1 }, "mc_array_reshape: cannot go from (4, 6) to (?, ?)" },
        { 2, { -1, 0 }, "mc_array_reshape: cannot go from (4, 6) to (?, 0)" },
        { 2, { INT64_MAX, 4 }, "mc_array_reshape: cannot go from (4, 6) to (9223372036854775807, 4)" },
        { 9, { 24 }, "mc_array_reshape: an array cannot have 9 axes: at most 8" },
    };
    for (size_t i = 0; i < NELEM(shapes); i++) {
        r = mc_array_reshape(a, shapes[i].rank, shapes[i].dims);
        CHECK(!r && strcmp(mc_last_error(), shapes[i].want) == 0, "%s", mc_last_error());
    }
    r = mc_array_reshape(e, MC_SHAPE(-1, 0));
    CHECK(!r && strcmp(mc_last_error(), "mc_array_reshape: cannot go from (0, 3) to (?, 0)") == 0, "%s",
          mc_last_error());
    r = mc_array_reshape(e, MC_SHAPE(5, -1));
    CHECK(r && r->dims[1] == 0, "%s", mc_last_error());
    mc_array_unref(&r);
    CHECK(!mc_array_transpose(a, (int[]){ 0, 0 }) && !mc_array_transpose(a, (int[]){ 0, 2 }), "no permutation");
    CHECK(!mc_array_slice(NULL, 0, 0, 0, 1) && !mc_array_transpose(NULL, NULL) && !mc_array_reshape(NULL, 0, NULL) &&
              !mc_array_copy(NULL) && !mc_array_cast(NULL, MC_INT8) && !mc_array_text(NULL),
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
    CHECK(strcmp(mc_last_error(), "mc_array_assign: cannot go from shape (10,) to (9,)") == 0, "%s", mc_last_error());
    CHECK(mc_array_assign(NULL, a) == MC_EARG && mc_array_assign(a, NULL) == MC_EARG, "NULL passed");
    mc_array *left = mc_array_slice(a, 0, 0, 5, 1), *right = mc_array_slice(a, 0, 9, 5, -1),
             *none = mc_array_slice(a, 0, 3, 0, 1);
    CHECK(!mc_array_overlaps(left, right) && mc_array_overlaps(right, a) && !mc_array_overlaps(none, a), "overlap");
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
    CHECK(mc_walk_begin(&w, 3, a->dims, 3, 1, &a->data, (const int64_t *[]){ a->strides }) && !mc_walk_next(&w),
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
    mc_array *a = iota(MC_FLOAT32, MC_SHAPE(3, 200)), *b = mc_array_cast(a, MC_FLOAT64), *c = mc_array_copy(a);
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
    CHECK(mc_array_differs(a, b, 1, 1e9) == 201 && mc_array_differs(b, b, 0, 0) == -1, "infinity equals only itself");
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

TEST(shapes_are_counted_and_printed)
{
    struct mc_str s = { 0 };
    mc_dims_text(&s, 3, (int64_t[]){ 600, -1, 10 });
    mc_dims_text(&s, 1, (int64_t[]){ 5 });
    mc_dims_text(&s, 0, NULL);
    CHECK(strcmp(s.s, "(600, ?, 10)(5,)()") == 0, "%s", s.s);
    mc_str_free(&s);
    CHECK(mc_dims_count(0, NULL) == 1 && mc_dims_count(2, (int64_t[]){ 3, 4 }) == 12, "count");
    CHECK(mc_dims_count(2, (int64_t[]){ INT64_MAX, 2 }) == -1 &&
              mc_dims_count(3, (int64_t[]){ INT64_MAX, 2, 0 }) == 0,
          "count");
    CHECK(mc_dims_count(2, (int64_t[]){ 0, -1 }) == -1, "a negative size");
}

/* ---- printing: the texts are NumPy's ---- */

TEST(arrays_print_as_in_numpy)
{
    static const struct {
        mc_dtype d;
        int rank;
        int64_t dims[3];
        double values[9];
        const char *want;
    } rows[] = {
        { MC_FLOAT64, 0, { 0 }, { 1.5 }, "1.5" },
        { MC_FLOAT64, 0, { 0 }, { 1e22 }, "1e+22" },
        { MC_FLOAT32, 0, { 0 }, { 0.1 }, "0.1" },
        { MC_FLOAT32, 0, { 0 }, { 14074672 }, "1.4074672e+07" },
        { MC_BOOL, 0, { 0 }, { 1 }, "True" },
        { MC_INT8, 0, { 0 }, { -128 }, "-128" },
        { MC_INT32, 1, { 3 }, { 1, -20, 300 }, "[  1 -20 300]" },
        { MC_BOOL, 2, { 2, 2 }, { 1, 0, 0, 1 }, "[[ True False]\n [False  True]]" },
        { MC_FLOAT32, 1, { 4 }, { 1, 2.5, -3, 0 }, "[ 1.   2.5 -3.   0. ]" },
        { MC_FLOAT64, 1, { 3 }, { 1.0 / 3, 10, 2 }, "[ 0.33333333 10.          2.        ]" },
        { MC_FLOAT64, 1, { 3 }, { 1e-5, 1, 1234 }, "[1.000e-05 1.000e+00 1.234e+03]" },
        { MC_FLOAT64, 1, { 2 }, { 1e10, -1e300 }, "[ 1.e+010 -1.e+300]" },
        { MC_FLOAT64, 1, { 4 }, { NAN, INFINITY, -INFINITY, 1.5 }, "[ nan  inf -inf  1.5]" },
        { MC_FLOAT64, 1, { 2 }, { NAN, NAN }, "[nan nan]" },
        { MC_FLOAT16, 1, { 2 }, { 0.1, 3 }, "[0.1 3. ]" },
        { MC_BFLOAT16, 1, { 2 }, { 0.1, 256 }, "[1.00e-01 2.56e+02]" },
        { MC_FLOAT64, 2, { 0, 3 }, { 0 }, "[]" },
        { MC_INT16, 3, { 2, 2, 1 }, { 1, 2, 3, 4 }, "[[[1]\n  [2]]\n\n [[3]\n  [4]]]" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *f = mc_array_from(MC_FLOAT64, rows[i].rank, rows[i].dims, rows[i].values),
                 *a = mc_array_cast(f, rows[i].d);
        check_text(a, rows[i].want);
        mc_array_unref(&f);
        mc_array_unref(&a);
    }
    mc_array *u = mc_array_from(MC_UINT64, MC_SHAPE(2), (uint64_t[]){ UINT64_MAX, 1 });
    check_text(u, "[18446744073709551615                    1]");
    mc_array_unref(&u);
}

TEST(long_arrays_wrap_and_are_shortened)
{
    struct mc_str all = { 0 };
    mc_array *arrays[] = { iota(MC_INT32, MC_SHAPE(40)), iota(MC_FLOAT32, MC_SHAPE(1001)),
                           iota(MC_INT64, MC_SHAPE(30, 50)),
                           iota(MC_INT8, MC_SHAPE(2, 600, 2)), iota(MC_INT32, MC_SHAPE(2, 8, 2, 40)),
                           iota(MC_FLOAT64, MC_SHAPE(3, 12)) };
    for (size_t i = 0; i < NELEM(arrays); i++) {
        char *text = mc_array_text(arrays[i]);
        mc_str_addf(&all, "%s\n", text ? text : mc_last_error());
        mc_text_free(text);
        mc_array_unref(&arrays[i]);
    }
    GOLDEN("array_print.txt", all.s);
    mc_str_free(&all);
}

TEST(printing_to_a_file_ends_the_line)
{
    char *text = NULL;
    size_t n = 0;
    mc_array *a = iota(MC_INT8, MC_SHAPE(3));
    FILE *to = open_memstream(&text, &n);
    CHECK(mc_array_print(a, to) == MC_OK, "%s", mc_last_error());
    fclose(to);
    CHECK(strcmp(text, "[0 1 2]\n") == 0, "%s", text);
    free(text);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        setvbuf(full, NULL, _IONBF, 0);
        CHECK(mc_array_print(a, full) == MC_EFILE, "a full disk is not told");
        fclose(full);
    }
    mc_array_unref(&a);
}

/* ---- every allocation may fail ---- */

TEST(arrays_survive_every_failed_allocation)
{
    ALLOC_FAIL_LOOP {
        mc_clear_error();
        mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 6));
        mc_array *t = a ? mc_array_transpose(a, NULL) : NULL, *r = t ? mc_array_reshape(t, MC_SHAPE(-1)) : NULL;
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
        mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 6)), *r = a ? mc_array_reshape(a, MC_SHAPE(5)) : NULL;
        CHECK(!r && mc_last_status() == (ALLOC_FAILED ? MC_EMEMORY : MC_ESHAPE), "%s", mc_last_error());
        mc_array_unref(&a);
    }
}
