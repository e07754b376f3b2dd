/* t_array_print.c: arrays as text, which is NumPy's. */
#include "array_text.h"
#include "value/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
