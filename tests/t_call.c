/* t_call.c: C numbers as arguments and as places for results: every type, its range, and what does not
 * compile. */
#include "function_words.h"
#include "program.h"
#include <math.h>

enum { WRONGS = 15 };

TEST(what_is_no_place_does_not_compile)
{
    for (int i = 0; i <= WRONGS; i++) {
        char command[1024];
        int status;
        snprintf(command, sizeof command,
                 "cc -std=c11 -fsyntax-only -DWRONG=%d -I'%s/../include' '%s/refused/arguments.c'", i,
                 TEST_ROOT, TEST_ROOT);
        const char *said = output_of(command, &status);
        if (status == 127) {
            SKIP("no C compiler");
        }
        CHECK((status == 0) == (i == 0), "%s:\n%s", i ? "it compiles" : "what is right does not compile",
              said);
    }
}

/* A function of no inputs whose result is the formula. */
static mc_function *giving(mc_graph *g, const char *formula)
{
    return made(g, mc_compile(g, &(mc_spec){ .outputs = formula }));
}

TEST(every_number_takes_what_it_holds_and_no_more)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        long long ll;
        unsigned long long ull;
        size_t size;
        bool b;
        float f;
        double d;
    } v;
    const struct {
        const char *name, *least, *most; /* formulas of what it just holds */
        const char *under, *over;        /* and does not; NULL: nothing is */
        mc_arg to;
        size_t size;
        uint64_t bits_least, bits_most; /* of the number */
    } rows[] = {
#define PLACE(m) MC_RES(&v.m), sizeof v.m
        { "int8_t", "-128i8", "127i16", "-129i16", "128u8", PLACE(i8), 0x80, 0x7f },
        { "uint8_t", "0i64", "255i32", "-1i8", "256i64", PLACE(u8), 0, 0xff },
        { "int16_t", "-32768i32", "32767u16", "-32769i32", "32768i64", PLACE(i16), 0x8000, 0x7fff },
        { "uint16_t", "0u8", "65535i64", "-1i64", "65536i64", PLACE(u16), 0, 0xffff },
        { "int32_t", "-2147483648i64", "2147483647u32", "-2147483649i64", "2147483648u32", PLACE(i32),
          0x80000000, 0x7fffffff },
        { "uint32_t", "0i8", "4294967295i64", "-1i32", "4294967296i64", PLACE(u32), 0, 0xffffffff },
        { "int64_t", "-9223372036854775807i64 - 1i64", "9223372036854775807u64", NULL,
          "9223372036854775808u64", PLACE(i64), UINT64_C(1) << 63, INT64_MAX },
        { "uint64_t", "0i64", "18446744073709551615u64", "-1i64", NULL, PLACE(u64), 0, UINT64_MAX },
        { "long long", "-1i8", "9223372036854775807i64", NULL, "9223372036854775808u64", PLACE(ll),
          UINT64_MAX, INT64_MAX },
        { "unsigned long long", "0i8", "18446744073709551615u64", "-1i8", NULL, PLACE(ull), 0, UINT64_MAX },
        { "size_t", "0i8", "255u8", "-1i8", NULL, PLACE(size), 0, 255 },
        { "bool", "0i64", "1i64", "-1i64", "2i64", PLACE(b), 0, 1 },
        { "float", "-340282346638528859811704183484516925440.0f64", "1.0f64", "-1e39f64", "1e39f64", PLACE(f),
          0xff7fffff, 0x3f800000 },
        { "double", "1i64", "-1e308f64", NULL, NULL, PLACE(d), UINT64_C(0x3ff0000000000000),
          UINT64_C(0xffe1ccf385ebc8a0) },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (int k = 0; k < 4; k++) {
            const char *formula = k == 0   ? rows[i].least
                                  : k == 1 ? rows[i].most
                                  : k == 2 ? rows[i].under
                                           : rows[i].over;
            if (!formula) {
                continue;
            }
            mc_graph *g = mc_graph_new();
            mc_function *f = giving(g, formula);
            memset(&v, 0x5a, sizeof v);
            mc_status s = mc_call_args(f, 0, NULL, 1, &rows[i].to);
            uint64_t bits = 0, untouched = 0;
            memcpy(&bits, &v, rows[i].size);
            memset(&untouched, 0x5a, rows[i].size);
            if (k < 2) {
                CHECK(s == MC_OK && bits == (k ? rows[i].bits_most : rows[i].bits_least),
                      "%s of %s: %#llx %s", rows[i].name, formula, (unsigned long long)bits,
                      s < 0 ? mc_last_error() : "");
            } else {
                CHECK(s == MC_ETYPE && bits == untouched && strstr(mc_last_error(), "does not fit"),
                      "%s of %s: %#llx %s", rows[i].name, formula, (unsigned long long)bits, mc_last_error());
            }
            mc_function_free(f);
            mc_graph_free(g);
        }
    }
}

/* Even one that is whole: whether it is depends on the data. */
TEST(integers_take_no_floats)
{
    static const char *const formulas[] = { "2.5f32", "2.0f64", "cast(2.0f32, float16)", "nan" };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_graph *g = mc_graph_new();
        mc_shared_zeros(g, "n", MC_INT64, MC_NOSHAPE);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = formulas[i], .updates = "n = n + 1" }));
        int64_t whole = 7;
        uint8_t small = 7;
        bool b = true;
        refused(mc_call(f, MC_NONE, MC_OUT(&whole)), MC_ETYPE, "int64 cannot hold");
        refused(mc_call(f, MC_NONE, MC_OUT(&small)), MC_ETYPE, "uint8 cannot hold");
        refused(mc_call(f, MC_NONE, MC_OUT(&b)), MC_ETYPE, "bool cannot hold");
        CHECK(whole == 7 && small == 7 && b, "written to");
        mc_array *n = mc_shared_get(mc_shared_named(g, "n"));
        CHECK(mc_array_get(n, NULL) == 0, "updated by a call that failed");
        mc_array_unref(&n);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(a_result_out_of_range_leaves_all_as_it_was)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_INT64, 0);
    mc_shared_zeros(g, "n", MC_INT64, MC_NOSHAPE);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x, x + 1", .updates = "n = n + 1" }));
    int64_t a = 7;
    int8_t b = 7;
    refused(mc_call(f, MC_IN(127), MC_OUT(&a, &b)), MC_ETYPE,
            "output 1 is 128, which does not fit into the given int8");
    mc_array *n = mc_shared_get(mc_shared_named(g, "n"));
    CHECK(a == 7 && b == 7, "%d %d", (int)a, (int)b);
    CHECK(strcmp(mc_flag_get("device"), "cpu") != 0 || mc_array_get(n, NULL) == 0,
          "updated by a call that failed");
    fine(mc_call(f, MC_IN(-129), MC_OUT(NULL, &b)));
    CHECK(b == -128, "%d", b);
    mc_array_unref(&n);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(addresses_without_a_type_are_refused)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x=2", .outputs = "x * 2" }));
    float y = 0, *nowhere = NULL;
    void *p = &y;
    refused(mc_call(f, MC_IN(1), MC_OUT(p)), MC_EARG, "output 0 is a void *");
    refused(mc_call(f, MC_IN(p), MC_OUT(&y)), MC_EARG, "input 0 ('x') is given as a void *");
    refused(mc_call_args(f, 0, NULL, 1, &(mc_arg){ .kind = 2 }), MC_EARG, "a value, not an address");
    fine(mc_call(f, MC_IN(NULL), MC_OUT(&y)));
    CHECK(y == 4, "%g", (double)y);
    fine(mc_call(f, MC_NONE, MC_OUT(nowhere)));
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(arguments_out_of_range_are_refused)
{
    static const struct {
        mc_dtype to;
        mc_arg v;
        bool held;
    } rows[] = {
        { MC_UINT64, { 2, MC_UINT64, { .integer = -1 } }, true }, /* 2^64 - 1 */
        { MC_INT64, { 2, MC_UINT64, { .integer = -1 } }, false },
        { MC_UINT64, { 2, MC_INT64, { .integer = -1 } }, false },
        { MC_INT64, { 1, MC_FLOAT64, { .real = 0x1p63 } }, false },
        { MC_INT64, { 1, MC_FLOAT64, { .real = -0x1p63 } }, true },
        { MC_UINT64, { 1, MC_FLOAT64, { .real = 0x1p63 } }, true },
        { MC_UINT64, { 1, MC_FLOAT64, { .real = 0x1p64 } }, false },
        { MC_UINT8, { 1, MC_FLOAT64, { .real = -1 } }, false },
        { MC_INT32, { 1, MC_FLOAT64, { .real = 1e300 } }, false },
        { MC_INT32, { 1, MC_FLOAT64, { .real = INFINITY } }, false },
        { MC_FLOAT32, { 1, MC_FLOAT64, { .real = 1e39 } }, false },
        { MC_FLOAT32, { 1, MC_FLOAT64, { .real = INFINITY } }, true },
        { MC_FLOAT16, { 1, MC_FLOAT64, { .real = 65504 } }, true },
        { MC_FLOAT16, { 2, MC_INT64, { .integer = 65536 } }, false },
        { MC_BOOL, { 2, MC_INT64, { .integer = 2 } }, false },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", rows[i].to, 0);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x" }));
        mc_array *y = NULL;
        mc_status s = mc_call_args(f, 1, &rows[i].v, 1, (mc_arg[]){ mc_arg_slot(&y) });
        CHECK(rows[i].held ? s == MC_OK : s == MC_ETYPE && strstr(mc_last_error(), "does not hold"),
              "row %d: %s %s", (int)i, mc_status_name(s), mc_last_error());
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
