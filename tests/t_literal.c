/* t_literal.c: literals beside tensors: the dtype of the result and its values, as NumPy 2 has them. */
#include "function_words.h"

/* The formula of a tensor x of a dtype. */
static mc_array *value_of(const char *formula, mc_dtype d, int n, const void *data)
{
    mc_graph *g = mc_graph_new();
    int64_t dims[1] = { n };
    mc_array *x = mc_array_from(d, 1, dims, data), *y = NULL;
    mc_input(g, "x", d, 1);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formula }));
    if (f) {
        fine(mc_call(f, MC_IN(x), MC_OUT(&y)));
    }
    mc_function_free(f);
    mc_array_unref(&x);
    mc_graph_free(g);
    return y;
}

/* NumPy 2.4: a Python number takes the dtype of the array.  What differs is bool: the literal has int8
 * there. */
TEST(a_literal_takes_the_dtype_it_meets)
{
    static const char *const same[] = { "x + 1",        "1 - x",  "x * 100",       "x // 4",
                                        "x % 3",        "x ** 2", "maximum(x, 1)", "where(x > 1, x, 2)",
                                        "clip(x, 0, 5)" };
    mc_flag_set("floatX", "float32");
    for (mc_dtype d = MC_INT8; d < MC_NDTYPE; d++) {
        for (size_t i = 0; i < NELEM(same); i++) {
            mc_graph *g = mc_graph_new();
            mc_input(g, "x", d, 1);
            mc_node *y = mc_formula(g, same[i]);
            CHECK(!mc_is_error(y) && y->type.dtype == d, "%s of %s is %s %s", same[i], mc_dtype_name(d),
                  mc_dtype_name(y->type.dtype), mc_error(g));
            mc_graph_free(g);
        }
    }
    static const struct { const char *formula; mc_dtype d, y; } others[] = {
        { "x & 3", MC_UINT8, MC_UINT8 },    { "x & (1 | 6)", MC_UINT16, MC_UINT16 }, { "x + 300", MC_INT8, MC_INT16 },   { "x + 300", MC_UINT8, MC_INT16 },
        { "x + -1", MC_UINT8, MC_INT16 },   { "x - 1", MC_UINT64, MC_UINT64 },       { "x / 2", MC_UINT64, MC_FLOAT32 }, { "x + 0.5", MC_INT8, MC_FLOAT32 },
        { "x + 2 ** 100", MC_FLOAT16, MC_FLOAT16 }, { "x + (2 ** 64 - 1)", MC_UINT64, MC_UINT64 }, { "x + 1", MC_BOOL, MC_INT8 },
        { "x + 128 - 1", MC_INT8, MC_INT16 }, { "x * (10 // 3)", MC_UINT32, MC_UINT32 }, { "x + 10 ** 2", MC_INT8, MC_INT8 }, { "x + ~0", MC_INT8, MC_INT8 },
        { "stack([x, x])[0] + 1", MC_UINT8, MC_UINT8 }, { "concatenate([x, [7u8]]) // 2", MC_UINT8, MC_UINT8 },
    };
    for (size_t i = 0; i < NELEM(others); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", others[i].d, 1);
        mc_node *y = mc_formula(g, others[i].formula);
        CHECK(!mc_is_error(y) && y->type.dtype == others[i].y, "%s of %s is %s %s", others[i].formula,
              mc_dtype_name(others[i].d), mc_dtype_name(y->type.dtype), mc_error(g));
        mc_graph_free(g);
    }
}

struct valued { const char *formula; int64_t y[3]; };

static void check_values(mc_dtype d, int n, const void *data, const struct valued *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        mc_array *y = value_of(row[i].formula, d, n, data);
        for (int k = 0; y && k < n; k++) {
            int64_t have = mc_load_i64(y->dtype, y->data + (size_t)k * mc_dtypes[y->dtype].size);
            CHECK(have == row[i].y[k], "%s of %s, element %d: %lld, not %lld", row[i].formula,
                  mc_dtype_name(d), k, (long long)have, (long long)row[i].y[k]);
        }
        mc_array_unref(&y);
    }
}

/* Printed by NumPy 2.4. */
TEST(integers_beside_literals)
{
    static const uint8_t bytes[3] = { 250, 255, 3 };
    static const struct valued of_bytes[] = {
        { "x + 1", { 251, 0, 4 } }, { "x + 6", { 0, 5, 9 } }, { "x * 2", { 244, 254, 6 } }, { "x - 4", { 246, 251, 255 } }, { "4 - x", { 10, 5, 1 } },
        { "x // 4", { 62, 63, 0 } }, { "x ** 2", { 36, 1, 9 } }, { "x < 300", { 1, 1, 1 } }, { "x == 300", { 0, 0, 0 } }, { "x > -1", { 1, 1, 1 } },
        { "3 < x < 255", { 1, 0, 0 } }, { "3 <= x <= 250", { 1, 0, 1 } },
    };
    check_values(MC_UINT8, 3, bytes, of_bytes, NELEM(of_bytes));
    static const uint64_t wide[3] = { 0, 5, UINT64_MAX };
    static const struct valued of_wide[] = {
        { "x + 1", { 1, 6, 0 } }, { "x // 4", { 0, 1, 4611686018427387903 } }, { "x % 10", { 0, 5, 5 } }, { "x * 3", { 0, 15, -3 } },
        { "x > -1", { 1, 1, 1 } }, { "x < -1", { 0, 0, 0 } }, { "x == -1", { 0, 0, 0 } }, { "x != -1", { 1, 1, 1 } }, { "-1 < x", { 1, 1, 1 } },
        { "-1 >= x", { 0, 0, 0 } }, { "x <= 2 ** 63", { 1, 1, 0 } }, { "x + (2 ** 64 - 1)", { -1, 4, -2 } }, { "x >= 18446744073709551615", { 0, 0, 1 } },
    };
    check_values(MC_UINT64, 3, wide, of_wide, NELEM(of_wide));
    static const int64_t ends[3] = { INT64_MIN, 0, INT64_MAX };
    static const struct valued of_ends[] = {
        { "x < 2 ** 63", { 1, 1, 1 } }, { "x >= 2 ** 63", { 0, 0, 0 } }, { "2 ** 63 > x", { 1, 1, 1 } }, { "2 ** 63 < x", { 0, 0, 0 } },
        { "x == 2 ** 63", { 0, 0, 0 } }, { "x != 2 ** 63", { 1, 1, 1 } }, { "x < 2 ** 100", { 1, 1, 1 } }, { "x == -(2 ** 63)", { 1, 0, 0 } },
    };
    check_values(MC_INT64, 3, ends, of_ends, NELEM(of_ends));
    static const int32_t near[3] = { 16777216, 16777217,
                                     16777218 }; /* float32 does not tell the first two apart */
    static const struct valued of_near[] = {
        { "x > 16777216.5", { 0, 1, 1 } }, { "x <= 16777217.0", { 1, 1, 0 } }, { "16777217.0 == x", { 0, 1, 0 } },
    };
    mc_flag_set("floatX", "float32");
    check_values(MC_INT32, 3, near, of_near, NELEM(of_near));
}

/* 0 < x < 1 is no comparison of a truth value with 1. */
TEST(chained_comparisons_are_conjunctions)
{
    static const double x[3] = { -1, .5, 2 };
    static const struct valued rows[] = {
        { "0 < x < 1", { 0, 1, 0 } }, { "1 > x > -2", { 1, 1, 0 } }, { "0 < x < 3 != x", { 0, 1, 1 } }, { "(0 < x) < 1", { 1, 0, 0 } },
        { "x == x < 1", { 1, 1, 0 } }, { "-1 <= x <= 2 and not 0 < x < 1", { 1, 0, 1 } },
    };
    check_values(MC_FLOAT64, 3, x, rows, NELEM(rows));
}
