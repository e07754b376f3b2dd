/* t_value.c: dtypes: their table, promotion, conversion. */
#include "check.h"
#include "value/value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- dtypes ---- */

TEST(the_table_of_dtypes_agrees_with_itself)
{
    mc_dtype found;
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        const struct mc_dtype_row *r = &mc_dtypes[d];
        CHECK(mc_dtype_parse(r->name, &found) == MC_OK && found == d, "%s", r->name);
        CHECK(strcmp(mc_dtype_name(d), r->name) == 0 && mc_dtype_size(d) == r->size, "%s", r->name);
        CHECK(r->npy[1] - '0' == r->size, "%s in a .npy file is %s", r->name, r->npy);
        CHECK(mc_is_float(d) == (r->eps > 0) &&
                  mc_is_float(d) == (r->cls == CLASS_F32 || r->cls == CLASS_F64),
              "%s", r->name);
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
    CHECK(strcmp(mc_last_error(), "unknown dtype 'flaot32'; did you mean 'float32'?") == 0, "%s",
          mc_last_error());
    mc_flag_set("floatX", "float16");
    CHECK(mc_dtype_parse("floatX", &found) == MC_OK && found == MC_FLOAT16 && mc_dtype_floatX() == MC_FLOAT16,
          "%d", found);
    CHECK(mc_dtype_to_float(MC_INT8) == MC_FLOAT32 && mc_dtype_to_float(MC_INT64) == MC_FLOAT64,
          "not the float");
    CHECK(mc_dtype_to_float(MC_FLOAT16) == MC_FLOAT16 && mc_dtype_to_float(MC_BOOL) == MC_FLOAT32,
          "not the float");
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
            bool whole = !mc_is_float(s),
                 negative = mc_dtypes[s].kind != KIND_UINT && mc_dtypes[d].kind != KIND_UINT;
            for (int layout = 0; layout < 4; layout++) {
                int64_t ss = mc_dtypes[s].size * (layout & 1 ? 3 : 1),
                        ds = mc_dtypes[d].size * (layout & 2 ? 2 : 1);
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
                      "%s to %s, layout %d: %ld wrong, %ld between", mc_dtype_name(s), mc_dtype_name(d),
                      layout, wrong, touched);
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
        { NAN, MC_INT32, 0 },
        { INFINITY, MC_INT32, INT32_MAX },
        { 3e9, MC_INT32, INT32_MAX },
        { -2147483648.9, MC_INT32, INT32_MIN },
        { 2147483647.9, MC_INT32, INT32_MAX },
        { NAN, MC_INT64, 0 },
        { 1e300, MC_INT64, 0x1p63 },
        { NAN, MC_INT8, 0 },
        { 300, MC_INT8, 127 },
        { -1, MC_UINT8, 0 },
        { -1, MC_UINT32, 0 },
        { 4e9, MC_UINT32, 4e9 },
        { -1, MC_UINT64, 0 },
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
    CHECK(mc_load_f64(MC_UINT64, &big) == 0x1p64 && mc_load_i64(MC_UINT64, &big) == -1,
          "the greatest uint64");
    int64_t least = INT64_MIN, odd = (INT64_C(1) << 53) + 1;
    unsigned char p[8];
    mc_store_i64(MC_INT32, p, odd);
    CHECK(mc_load_i64(MC_INT32, p) == 1, "integers wrap");
    mc_store_i64(MC_UINT64, p, least);
    CHECK(mc_load_f64(MC_UINT64, p) == 0x1p63, "integers wrap");
}
