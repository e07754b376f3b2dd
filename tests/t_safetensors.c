/* t_safetensors.c: .safetensors files: what others write is read, what is written others read, and no header
 * does harm.  JSON texts by themselves. */
#include "array_text.h"
#include "own_folder.h"
#include "program.h"
#include "safetensors_sample.h"
#include "unhex.h"
#include "value/value.h"

#include <stdlib.h>

static struct mc_source memory(const char *p, size_t n)
{
    return (struct mc_source){ .fd = -1, .mem = p, .size = n, .name = "mem" };
}

/* ---- JSON ---- */

static mc_status one_string(const char *text, size_t n, struct mc_str *out)
{
    struct mc_json j = { text, text + n, "text" };
    mc_status s = mc_json_string(&j, out);
    return s < 0 ? s : mc_json_end(&j);
}

TEST(strings_are_read)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "\"\"", "" },
        { " \t\r\n\"ab\" ", "ab" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
        { "\"\\u0041\\u00fC\\u20ac\\ud834\\udd1e\"", "A\xc3\xbc\xe2\x82\xac\xf0\x9d\x84\x9e" },
        { "\"\xc3\xbc\xf4\x8f\xbf\xbf\"", "\xc3\xbc\xf4\x8f\xbf\xbf" },
    };
    struct mc_str out = { 0 };
    for (size_t i = 0; i < NELEM(rows); i++) {
        CHECK(one_string(rows[i].text, strlen(rows[i].text), &out) == MC_OK &&
                  strcmp(out.s, rows[i].want) == 0,
              "row %zu: '%s', %s", i, out.s, mc_last_error());
    }
    mc_str_free(&out);
}

TEST(wrong_strings_are_refused)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "", "no string" },
        { "a", "no string" },
        { "\"a", "a string without an end" },
        { "\"a\" b", "more than one value" },
        { "\"\\", "no escape" },
        { "\"\\x\"", "no escape" },
        { "\"\\u12g4\"", "no character" },
        { "\"\\u12", "no character" },
        { "\"\\ud834\"", "no character" },
        { "\"\\ud834\\u0041\"", "no character" },
        { "\"\\ud834x\"", "no character" },
        { "\"\\udd1e\"", "no character" },
        { "\"\\u0000\"", "a NUL in a string" },
        { "\"\n\"", "a control character in a string" },
        { "\"\xc3\"", "no UTF-8" },
        { "\"\xc0\xaf\"", "no UTF-8" },
        { "\"\xed\xa0\x80\"", "no UTF-8" },
        { "\"\xf4\x90\x80\x80\"", "no UTF-8" },
        { "\"\xff\"", "no UTF-8" },
    };
    struct mc_str out = { 0 };
    for (size_t i = 0; i < NELEM(rows); i++) {
        char want[80];
        snprintf(want, sizeof want, "text: %s at '", rows[i].want);
        CHECK(one_string(rows[i].text, strlen(rows[i].text), &out) == MC_EFORMAT &&
                  strncmp(mc_last_error(), want, strlen(want)) == 0,
              "row %zu: %s", i, mc_last_error());
    }
    mc_str_free(&out);
}

TEST(counts_are_read)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t want;
    } rows[] = {
        { "0", true, 0 },    { " 18446744073709551615", true, UINT64_MAX },
        { "42", true, 42 },  { "18446744073709551616", false, 0 },
        { "-1", false, 0 },  { "99999999999999999999999", false, 0 },
        { "01", false, 0 },  { "1.0", false, 0 },
        { "1e3", false, 0 }, { "", false, 0 },
        { "NaN", false, 0 }, { "+1", false, 0 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_json j = { rows[i].text, rows[i].text + strlen(rows[i].text), "text" };
        uint64_t v = 0;
        bool good = mc_json_count(&j, &v) == MC_OK;
        CHECK(good == rows[i].good && v == rows[i].want, "'%s': %llu", rows[i].text, (unsigned long long)v);
    }
}

/* ---- reading ---- */

TEST(what_others_write_is_read)
{
    static const struct {
        const char *name;
        mc_dtype dtype;
        const char *want;
    } rows[] = {
        { "a.weight", MC_FLOAT32, "[[ 1.  -2.   3.5]\n [ 0.   5.   6. ]]" },
        { "d", MC_FLOAT64, "2.5" },
        { "h", MC_FLOAT16, "[ 1.5 -2. ]" },
        { "bf", MC_BFLOAT16, "[1.5]" },
        { "i8", MC_INT8, "[ 1 -2  3]" },
        { "i16", MC_INT16, "[-300    4]" },
        { "i32", MC_INT32, "[[-70000      5]]" },
        { "i64", MC_INT64, "[-1099511627776]" },
        { "u8", MC_UINT8, "[  0 255]" },
        { "u16", MC_UINT16, "[65535]" },
        { "u32", MC_UINT32, "[4294967295]" },
        { "u64", MC_UINT64, "[9223372036854775808]" },
        { "b", MC_BOOL, "[False  True  True]" },
        { "empty", MC_FLOAT32, "[]" },
        { "\xc3\xbc \"\\/\n\xf0\x9d\x84\x9e", MC_UINT8, "[9]" },
    };
    struct mc_str b = unhex(safetensors_sample);
    mc_archive *a = mc_archive_read(memory(b.s, b.n));
    REQUIRE(a && mc_archive_count(a) == (int)NELEM(rows), "%s", mc_last_error());
    for (size_t i = 0; i < NELEM(rows); i++) {
        CHECK(strcmp(mc_archive_name(a, (int)i), rows[i].name) == 0, "%s", mc_archive_name(a, (int)i));
        mc_array *x = mc_archive_load(a, rows[i].name);
        check_text(x, rows[i].want);
        CHECK(x && mc_array_dtype(x) == rows[i].dtype, "%s: %s", rows[i].name, mc_last_error());
        mc_array_unref(&x);
    }
    CHECK(mc_archive_has(a, "d") && !mc_archive_has(a, "D") && !mc_archive_has(a, "__metadata__"), "names");
    mc_archive_close(a);
    mc_str_free(&b);
}

/* A file by hand: the header, then `data` zeros; length 0: that of the header. */
static struct mc_str file(const char *header, uint64_t length, size_t data)
{
    struct mc_str b = { 0 };
    length = length ? length : strlen(header);
    for (int i = 0; i < 8; i++) {
        mc_str_addn(&b, (char[]){ (char)(length >> 8 * i) }, 1);
    }
    mc_str_add(&b, header);
    for (size_t i = 0; i < data; i++) {
        mc_str_addn(&b, "", 1);
    }
    return b;
}

#define W(dtype, shape, at, to) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #at "," #to "]}"
#define DAMAGED "'mem' is a damaged .safetensors file: "

TEST(wrong_headers_are_refused)
{
    static const struct {
        const char *header;
        uint64_t length;
        size_t data;
        mc_status status;
        const char *want;
    } rows[] = {
        { "{}", 3, 0, MC_EFORMAT,
          DAMAGED "a header of 3 bytes in a file of 10; at most 100000000 are allowed" },
        { "{}", 100000001, 0, MC_EFORMAT,
          DAMAGED "a header of 100000001 bytes in a file of 10; at most 100000000 are allowed" },
        { "{}", UINT64_MAX, 0, MC_EUNSUPPORTED,
          "'mem' is not a file of arrays in a known format (.npz, .safetensors)" },
        { "[]", 0, 0, MC_EUNSUPPORTED,
          "'mem' is not a file of arrays in a known format (.npz, .safetensors)" },
        { "{}", 0, 1, MC_EFORMAT, DAMAGED "bytes 0 to 1 belong to no tensor" },
        { "{}x", 0, 0, MC_EFORMAT, DAMAGED "more than one value at 'x'" },
        { "{", 0, 0, MC_EFORMAT, DAMAGED "no string at ''" },
        { "{\"W\"}", 0, 0, MC_EFORMAT, DAMAGED "no colon at '}'" },
        { "{\"W\":3}", 0, 0, MC_EFORMAT, DAMAGED "no object at '3}'" },
        { "{\"W\":[[[[[[[[[[[[", 0, 0, MC_EFORMAT, DAMAGED "no object at '[[[[[[[[[[[['" },
        { "{\"W\":{}}", 0, 0, MC_EFORMAT, DAMAGED "'W' lacks dtype, shape or data_offsets" },
        { "{\"W\":" W("F32", "[2]", 0, 8) "}", 0, 8, MC_OK, "" },
        { "{\"W\":" W("F32", "[2]", 0, 8) "} \t\r\n", 0, 8, MC_OK, "" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",}", 0, 8, MC_EFORMAT, DAMAGED "no string at '}'" },
        { "{\"W\":" W("F32", "[2]", 0, 8) "\"V\":" W("F32", "[2]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "no comma at '\"V\":{\"dtype\":\"F32\",\"'" },
        { "{\"W\":" W("F32", "[2,]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "no whole number from 0 on at '],\"data_offsets\":[0,'" },
        { "{\"W\":" W("F32", "[-2]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "no whole number from 0 on at '-2],\"data_offsets\":['" },
        { "{\"W\":" W("F32", "[2e0]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "no whole number from 0 on at '2e0],\"data_offsets\":'" },
        { "{\"W\":" W("F32", "[9223372036854775808]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "a size out of range at '9223372036854775808]'" },
        { "{\"W\":" W("F32", "[99999999999999999999]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "a number out of range at '99999999999999999999'" },
        { "{\"W\":" W("F32", "[4611686018427387904,4]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "the shape of 'W' is too large" },
        { "{\"W\":" W("F64", "[4611686018427387904]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "the shape of 'W' is too large" },
        { "{\"W\":" W("F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}", 0, 8, MC_EUNSUPPORTED,
          "'W' of 'mem' has more than 8 axes" },
        { "{\"W\":" W("C64", "[1]", 0, 8) "}", 0, 8, MC_EUNSUPPORTED,
          "'W' of 'mem' has elements of type 'C64', which is not supported" },
        { "{\"W\":" W("F32", "[3]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' has 8 bytes, but its shape needs 12" },
        { "{\"W\":" W("F32", "[2]", 8, 0) "}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' is outside the data: bytes 8 to 0 of 8" },
        { "{\"W\":" W("F32", "[3]", 0, 12) "}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' is outside the data: bytes 0 to 12 of 8" },
        { "{\"W\":" W("F32", "[2]", 4, 12) "}", 0, 12, MC_EFORMAT,
          DAMAGED "bytes 0 to 4 belong to no tensor" },
        { "{\"W\":" W("F32", "[2]", 0, 8) "}", 0, 9, MC_EFORMAT, DAMAGED "bytes 8 to 9 belong to no tensor" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",\"V\":" W("F32", "[2]", 12, 20) "}", 0, 20, MC_EFORMAT,
          DAMAGED "bytes 8 to 12 belong to no tensor" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",\"V\":" W("F32", "[2]", 4, 12) "}", 0, 12, MC_EFORMAT,
          DAMAGED "'W' and 'V' overlap" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",\"V\":" W("F32", "[2]", 0, 8) "}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' and 'V' overlap" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",\"V\":" W("F32", "[0]", 4, 4) "}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' and 'V' overlap" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",\"V\":" W("F32", "[0]", 8, 8) "}", 0, 8, MC_OK, "" },
        { "{\"W\":" W("F32", "[2]", 0, 8) ",\"\\u0057\":" W("F32", "[2]", 8, 16) "}", 0, 16, MC_EFORMAT,
          DAMAGED "the name 'W' is used twice" },
        { "{\"W\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' has the key 'dtype', which is unknown or repeated" },
        { "{\"W\":{\"colour\":3}}", 0, 8, MC_EFORMAT,
          DAMAGED "'W' has the key 'colour', which is unknown or repeated" },
        { "{\"W\":{\"data_offsets\":[0]}}", 0, 8, MC_EFORMAT, DAMAGED "fewer than two offsets at '}}'" },
        { "{\"W\":{\"data_offsets\":[0,8,9]}}", 0, 8, MC_EFORMAT, DAMAGED "a third offset at '9]}}'" },
        { "{\"__metadata__\":{\"a\":\"b\"}}", 0, 0, MC_OK, "" },
        { "{\"__metadata__\":{\"a\":3}}", 0, 0, MC_EFORMAT, DAMAGED "no string at '3}}'" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, 0, MC_EFORMAT,
          DAMAGED "the name '__metadata__' is used twice" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str b = file(rows[i].header, rows[i].length, rows[i].data);
        mc_clear_error();
        mc_archive *a = mc_archive_read(memory(b.s, b.n));
        CHECK(!a == (rows[i].status < 0) && mc_last_status() == rows[i].status &&
                  strcmp(mc_last_error(), rows[i].want) == 0,
              "row %zu:\n%s\n    and not\n%s", i, mc_last_error(), rows[i].want);
        mc_archive_close(a);
        mc_str_free(&b);
    }
}

/* Each beginning, and each file with one bit changed, lies in memory of just its size. */
TEST(damage_is_noticed_or_does_no_harm)
{
    struct mc_str b = unhex(safetensors_sample);
    for (size_t n = 0; n < b.n + 8 * b.n; n++) {
        const size_t size = n < b.n ? n : b.n, bit = n - b.n;
        char *copy = mc_alloc(size, "tests");
        memcpy(copy, b.s, size);
        if (n >= b.n) {
            copy[bit / 8] ^= (char)(1 << bit % 8);
        }
        mc_clear_error();
        mc_archive *a = mc_archive_read(memory(copy, size));
        CHECK(n >= b.n ? a || *mc_last_error() : !a && *mc_last_error(), "case %zu", n);
        for (int i = 0; i < mc_archive_count(a); i++) {
            mc_array *x = mc_archive_load(a, mc_archive_name(a, i));
            CHECK(x, "case %zu: %s", n, mc_last_error());
            mc_array_unref(&x);
        }
        mc_archive_close(a);
        mc_free(copy);
    }
    mc_str_free(&b);
}

/* ---- writing ---- */

TEST(what_is_written_others_read)
{
    int status;
    mc_array *a = mc_array_from(MC_INT16, MC_SHAPE(2, 3), (int16_t[]){ 1, 2, 3, -4, 500, 6 }),
             *t = mc_array_transpose(a, NULL), *d = mc_array_scalar(MC_FLOAT64, 2.5),
             *b = mc_array_from(MC_BOOL, MC_SHAPE(3), (uint8_t[]){ 1, 0, 1 }),
             *none = mc_array_new(MC_FLOAT32, MC_SHAPE(0, 4));
    const mc_array *all[] = { b, t, d, none };
    CHECK(mc_archive_save(in_folder("w.safetensors"), NULL, 4,
                          (const char *[]){ "b", "t<\xc3\xbc>\"\n", "d", "none" }, all) == MC_OK,
          "%s", mc_last_error());
    mc_archive *z = mc_archive_open(in_folder("w.safetensors"));
    CHECK(z && strcmp(mc_archive_name(z, 1), "t<\xc3\xbc>\"\n") == 0, "%s", mc_last_error());
    for (int i = 0; z && i < 4; i++) {
        mc_array *x = mc_archive_load(z, mc_archive_name(z, i));
        CHECK(x && mc_array_same_bits(x, all[i]), "array %d: %s", i, mc_last_error());
        mc_array_unref(&x);
    }
    mc_archive_close(z);
    output_of("python3 -c pass", &status);
    if (status == 0) {
        char command[1024];
        snprintf(command, sizeof command, "python3 " TEST_ROOT "/safetensors.py read %s",
                 in_folder("w.safetensors"));
        const char *said = output_of(command, &status);
        CHECK(strcmp(said, "b BOOL [3] 010001\nt<\\xfc>\"\\n I16 [3, 2] 0100fcff0200f40103000600\n"
                           "d F64 [] 0000000000000440\nnone F32 [0, 4] \n") == 0,
              "%s", said);
    }
    mc_array *made[] = { a, t, d, b, none };
    for (size_t i = 0; i < NELEM(made); i++) {
        mc_array_unref(&made[i]);
    }
}

TEST(the_ending_says_the_format)
{
    static const struct {
        const char *name, *as, *begin;
    } rows[] = { { "a.safetensors", NULL, "@" },
                 { "a.npz", NULL, "PK" },
                 { "a", NULL, "PK" },
                 { "a.new", ".safetensors", "@" },
                 { "a.safetensors", "b.npz", "PK" } };
    mc_array *a = mc_array_scalar(MC_INT8, 7);
    for (size_t i = 0; i < NELEM(rows); i++) {
        char *text = NULL;
        size_t n;
        CHECK(mc_archive_save(in_folder(rows[i].name), rows[i].as, 1, (const char *[]){ "x" },
                              (const mc_array *[]){ a }) == MC_OK &&
                  mc_file_read(in_folder(rows[i].name), &text, &n) == MC_OK,
              "%s", mc_last_error());
        CHECK(text && (*rows[i].begin == '@' ? text[8] == '{' : memcmp(text, "PK", 2) == 0), "row %zu", i);
        mc_free(text);
        mc_archive *z = mc_archive_open(in_folder(rows[i].name));
        mc_array *x = mc_archive_load(z, "x");
        CHECK(x && mc_array_same_bits(x, a), "row %zu: %s", i, mc_last_error());
        mc_array_unref(&x);
        mc_archive_close(z);
    }
    static const char *const bad[] = { "\xff", "__metadata__" };
    for (size_t i = 0; i < NELEM(bad); i++) {
        CHECK(mc_archive_save(in_folder("b.safetensors"), NULL, 1, &bad[i], (const mc_array *[]){ a }) ==
                  MC_EARG,
              "saved");
        CHECK(access(in_folder("b.safetensors"), F_OK) != 0, "a file is there");
    }
    mc_array_unref(&a);
}

TEST(tensors_survive_every_failed_allocation)
{
    struct mc_str b = unhex(safetensors_sample);
    ALLOC_FAIL_LOOP {
        mc_clear_error();
        mc_archive *z = NULL, *p = mc_archive_read(memory(b.s, b.n));
        mc_array *x = p ? mc_archive_load(p, "a.weight") : NULL, *t = x ? mc_array_transpose(x, NULL) : NULL,
                 *y = NULL;
        if (t &&
            mc_archive_save(in_folder("f.safetensors"), NULL, 2, (const char *[]){ "t", "x" },
                            (const mc_array *[]){ t, x }) == MC_OK &&
            (z = mc_archive_open(in_folder("f.safetensors")))) {
            y = mc_archive_load(z, "t");
        }
        CHECK((y != NULL) == !ALLOC_FAILED, "%s", mc_last_error());
        CHECK(y || mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
        mc_archive_close(z);
        mc_archive_close(p);
        mc_array_unref(&x);
        mc_array_unref(&t);
        mc_array_unref(&y);
    }
    mc_str_free(&b);
}
