/* t_npy.c: .npy and .npz: what NumPy writes is read, what is written NumPy reads, and no damage to a file
 * does harm. */
#include "array_text.h"
#include "npz_sample.h"
#include "unhex.h"
#include "value/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- bytes ---- */

static const char *scratch(void) /* a file of this test's own */
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/mc-npy-%ld", (long)getpid());
    return path;
}

static struct mc_source memory(const char *p, size_t n)
{
    return (struct mc_source){ .fd = -1, .mem = p, .size = n, .name = "mem" };
}

/* A .npy file by hand; version 0 means 1 with a damaged magic word. */
static struct mc_str npy(int version, const char *dictionary, const char *data, size_t n)
{
    struct mc_str b = { 0 };
    size_t len = strlen(dictionary);
    mc_str_addn(&b, version ? "\x93NUMPY" : "\x93NUMPX", 6);
    mc_str_addn(&b, (char[]){ (char)(version ? version : 1), 0, (char)(len & 255), (char)(len >> 8), 0, 0 },
                version == 1 || version == 0 ? 4 : 6);
    mc_str_add(&b, dictionary);
    mc_str_addn(&b, data, n);
    return b;
}

/* ---- .npy ---- */

#define DICT(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

/* int16; 12 bytes */
static const char six_le[] = "\1\0\2\0\3\0\4\0\5\0\6", six_be[] = "\0\1\0\2\0\3\0\4\0\5\0\6";

TEST(what_numpy_writes_is_read)
{
    static const struct {
        int version;
        const char *dictionary, *data;
        size_t n;
        const char *want;
    } rows[] = {
        { 1, DICT("<i2", "False", "(2, 3)"), six_le, 12, "[[1 2 3]\n [4 5 6]]" },
        { 2, DICT("<i2", "False", "(2, 3)"), six_le, 12, "[[1 2 3]\n [4 5 6]]" },
        { 3, DICT("<i2", "False", "(2, 3)"), six_le, 12, "[[1 2 3]\n [4 5 6]]" },
        { 1, DICT(">i2", "False", "(6,)"), six_be, 12, "[1 2 3 4 5 6]" },
        { 1, DICT("<i2", "True", "(2, 3)"), six_le, 12, "[[1 3 5]\n [2 4 6]]" },
        { 1, DICT(">u2", "True", "(3, 2)"), six_be, 12, "[[1 4]\n [2 5]\n [3 6]]" },
        { 1, DICT("|u1", "False", "(3,)"), "\1\2\377", 3, "[  1   2 255]" },
        { 1, DICT("|b1", "False", "(3,)"), "\0\1\7", 3, "[False  True  True]" },
        { 1, DICT(">f4", "False", "()"), "\x3f\xc0\0\0", 4, "1.5" },
        { 1, DICT("<f8", "False", "()"), "\0\0\0\0\0\0\xf8\x3f", 8, "1.5" },
        { 1, DICT(">f8", "False", "(1,)"), "\x3f\xf8\0\0\0\0\0\0", 8, "[1.5]" },
        { 1, DICT("<f2", "False", "(1,)"), "\0\x3e", 2, "[1.5]" },
        { 1, DICT("<V2", "False", "(1,)"), "\xc0\x3f", 2, "[1.5]" },
        { 1, DICT("bfloat16", "False", "(1,)"), "\xc0\x3f", 2, "[1.5]" },
        { 1, DICT("<i4", "False", "(0, 3)"), "", 0, "[]" },
        { 1, DICT("<i2", "False", "(2L, 3L)"), six_le, 12, "[[1 2 3]\n [4 5 6]]" },
        { 1, "{\"shape\":(2,),\"descr\":\"<i2\",\"fortran_order\":False}", six_le, 12, "[1 2]" },
        { 1, "{ 'shape' : ( 2 , ) , 'descr' : '<i2' , 'fortran_order' : False , }  \n", six_le, 12, "[1 2]" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str b = npy(rows[i].version, rows[i].dictionary, rows[i].data, rows[i].n);
        struct mc_source s = memory(b.s, b.n);
        mc_array *a = mc_npy_read(&s);
        check_text(a, rows[i].want);
        CHECK(!a || mc_array_is_contiguous(a), "row %zu is not in C order", i);
        mc_array_unref(&a);
        mc_str_free(&b);
    }
}

TEST(damaged_files_are_refused)
{
    static const struct {
        int version;
        const char *dictionary;
        mc_status status;
        const char *want;
    } rows[] = {
        { 0, DICT("<i2", "False", "(6,)"), MC_EFORMAT, "'mem' is not a .npy file" },
        { 4, DICT("<i2", "False", "(6,)"), MC_EUNSUPPORTED,
          "'mem' has .npy version 4.0; expected 1.0, 2.0 or 3.0" },
        { 1, DICT("<i2", "False", "(7,)"), MC_EFORMAT, "'mem' is truncated: it has only 80 bytes" },
        { 1, DICT("<c8", "False", "(6,)"), MC_EUNSUPPORTED,
          "'mem' has elements of type '<c8', which is not supported" },
        { 1, DICT("", "False", "(6,)"), MC_EUNSUPPORTED,
          "'mem' has elements of type '', which is not supported" },
        { 1, DICT("<", "False", "(6,)"), MC_EUNSUPPORTED,
          "'mem' has elements of type '<', which is not supported" },
        { 1, DICT("<i2", "Maybe", "(6,)"), MC_EFORMAT,
          "'mem' has a damaged .npy header: expected True or False at 'Maybe, 'shape': (6,)'" },
        { 1, DICT("<i2", "False", "(-6,)"), MC_EFORMAT,
          "'mem' has a damaged .npy header: expected a number at '-6,), }\n'" },
        { 1, DICT("<i2", "False", "(2 3)"), MC_EFORMAT,
          "'mem' has a damaged .npy header: expected a comma at '3), }\n'" },
        { 1, DICT("<i2", "False", "6"), MC_EFORMAT,
          "'mem' has a damaged .npy header: expected a shape at '6, }\n'" },
        { 1, DICT("<i2", "False", "(6,"), MC_EFORMAT,
          "'mem' has a damaged .npy header: expected a number at ', }\n'" },
        { 1, DICT("<i2", "False", "(99999999999999999999,)"), MC_EFORMAT,
          "'mem' has a damaged .npy header: the number is too large at '99999999999999999999'" },
        { 1, DICT("<i2", "False", "(4611686018427387904,2)"), MC_EFORMAT,
          "'mem' is truncated: it has only 99 bytes" },
        { 1, DICT("<i2", "False", "(4611686018427387904,4611686018427387904,0)"), MC_ESHAPE,
          "too large: the shape (4611686018427387904, 4611686018427387904, 0)" },
        { 1, DICT("<i2", "False", "(1,1,1,1,1,1,1,1,6)"), MC_EUNSUPPORTED,
          "'mem' has an array with more than 8 axes" },
        { 1, "{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (6,), }", MC_EUNSUPPORTED,
          "'mem' has records as elements, not numbers" },
        { 1, "{'descr': '<i2', 'shape': (6,), }", MC_EFORMAT,
          "'mem' has a damaged .npy header: a missing key at ''" },
        { 1, "{'descr': '<i2', 'descr': '<i2', }", MC_EFORMAT,
          "'mem' has a damaged .npy header: an unknown or repeated key at ' '<i2', }'" },
        { 1, "{'colour': 3}", MC_EFORMAT,
          "'mem' has a damaged .npy header: an unknown or repeated key at ' 3}'" },
        { 1, "{'descr", MC_EFORMAT, "'mem' has a damaged .npy header: expected a string at 'descr'" },
        { 1, "{'descr' '<i2'}", MC_EFORMAT, "'mem' has a damaged .npy header: expected a colon at ''<i2'}'" },
        { 1, "", MC_EFORMAT, "'mem' has a damaged .npy header: expected a dictionary at ''" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str b = npy(rows[i].version, rows[i].dictionary, six_le, 12);
        struct mc_source s = memory(b.s, b.n);
        mc_array *a = mc_npy_read(&s);
        CHECK(!a && mc_last_status() == rows[i].status, "row %zu: %s", i, mc_status_name(mc_last_status()));
        CHECK(strcmp(mc_last_error(), rows[i].want) == 0, "row %zu:\n%s\n    and not\n%s", i, mc_last_error(),
              rows[i].want);
        mc_array_unref(&a);
        mc_str_free(&b);
    }
    struct mc_str b = npy(2, DICT("<i2", "False", "(6,)"), six_le, 12);
    b.s[11] = 1; /* a header of 16 MiB and more */
    struct mc_source s = memory(b.s, b.n);
    CHECK(!mc_npy_read(&s) && strstr(mc_last_error(), "16777274 bytes long"), "%s", mc_last_error());
    mc_str_free(&b);
}

/* Each beginning is copied to memory of just its size, so that a sanitizer sees a read beyond it. */
TEST(a_npy_file_cut_anywhere_is_refused)
{
    for (int version = 1; version <= 3; version++) {
        struct mc_str b = npy(version, DICT("<i2", "True", "(2, 3)"), six_le, 12);
        for (size_t n = 0; n < b.n; n++) {
            char *part = mc_alloc(n, "tests");
            memcpy(part, b.s, n);
            struct mc_source s = memory(part, n);
            mc_clear_error();
            mc_array *a = mc_npy_read(&s);
            CHECK(!a && mc_last_status() == MC_EFORMAT, "%zu of %zu bytes: %s", n, b.n, mc_last_error());
            mc_array_unref(&a);
            mc_free(part);
        }
        mc_str_free(&b);
    }
}

TEST(arrays_survive_a_file)
{
    for (mc_dtype d = 0; d < MC_NDTYPE; d++) {
        mc_array *all[] = { mc_array_new(d, MC_SHAPE(3, 4, 5)), NULL, mc_array_scalar(d, 1),
                            mc_array_new(d, MC_SHAPE(0)), NULL };
        for (int64_t i = 0; i < 60; i++) {
            mc_store_i64(d, all[0]->data + i * mc_dtypes[d].size, i);
        }
        all[1] = mc_array_transpose(all[0], NULL);
        all[4] = mc_array_slice(all[0], 1, 3, 2, -2);
        for (size_t i = 0; i < NELEM(all); i++) {
            CHECK(mc_npy_save(scratch(), all[i]) == MC_OK, "%s", mc_last_error());
            mc_array *b = mc_npy_load(scratch());
            CHECK(b && mc_array_same_bits(all[i], b), "%s, array %zu: %s", mc_dtype_name(d), i,
                  mc_last_error());
            mc_array_unref(&b);
            mc_array_unref(&all[i]);
        }
    }
    struct mc_str head = { 0 };
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(600));
    CHECK(mc_npy_head(&head, a) == MC_OK && head.n % 64 == 0 && head.s[head.n - 1] == '\n', "%zu bytes",
          head.n);
    CHECK(memcmp(head.s, "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (600,), } ",
                 70) == 0,
          "%s", head.s + 10);
    mc_str_free(&head);
    mc_array_unref(&a);
    unlink(scratch());
}

TEST(files_that_are_not_there_are_told)
{
    mc_array *a = mc_array_scalar(MC_INT8, 1);
    CHECK(!mc_npy_load("/nowhere/x.npy") && mc_last_status() == MC_EFILE, "%s", mc_last_error());
    CHECK(strcmp(mc_last_error(), "cannot open '/nowhere/x.npy': No such file or directory") == 0, "%s",
          mc_last_error());
    CHECK(!mc_archive_open("/nowhere/x.npz") && mc_last_status() == MC_EFILE, "%s", mc_last_error());
    CHECK(!mc_npy_load("/tmp") && strcmp(mc_last_error(), "cannot read '/tmp': not a regular file") == 0,
          "%s", mc_last_error());
    CHECK(mc_npy_save("/nowhere/x.npy", a) == MC_EFILE, "saved into no folder");
    CHECK(!mc_npy_load(NULL) && !mc_archive_open(NULL) && mc_npy_save(NULL, a) == MC_EARG &&
              mc_npy_save("/nowhere/x", NULL) == MC_EARG && !mc_archive_load(NULL, "x"),
          "NULL passed");
    mc_archive_close(NULL);
    mc_array_unref(&a);
}

/* ---- .npz ---- */

static struct mc_str saved_npz(void) /* {x: int16 [[1 2 3] [-4 500 6]], yy: 2.5}, stored */
{
    struct mc_str b = { 0 };
    mc_array *x = mc_array_from(MC_INT16, MC_SHAPE(2, 3), (int16_t[]){ 1, 2, 3, -4, 500, 6 }),
             *y = mc_array_scalar(MC_FLOAT64, 2.5);
    CHECK(mc_archive_save(scratch(), NULL, 2, (const char *[]){ "x", "yy" }, (const mc_array *[]){ x, y }) ==
              MC_OK,
          "%s", mc_last_error());
    CHECK(mc_file_read(scratch(), &b.s, &b.n) == MC_OK, "%s", mc_last_error());
    unlink(scratch());
    mc_array_unref(&x);
    mc_array_unref(&y);
    return b;
}

static void check_npz(const char *p, size_t n)
{
    mc_archive *z = mc_archive_read(memory(p, n));
    REQUIRE(z, "%s", mc_last_error());
    CHECK(mc_archive_count(z) == 2 && strcmp(mc_archive_name(z, 0), "x") == 0 &&
              strcmp(mc_archive_name(z, 1), "yy") == 0,
          "not the names");
    CHECK(!mc_archive_name(z, 2) && !mc_archive_name(z, -1), "a name too many");
    mc_array *x = mc_archive_load(z, "x"), *y = mc_archive_load(z, "yy");
    check_text(x, "[[  1   2   3]\n [ -4 500   6]]");
    check_text(y, "2.5");
    CHECK(!mc_archive_load(z, "yx") && mc_last_status() == MC_EARG, "%s", mc_last_error());
    CHECK(strcmp(mc_last_error(), "'mem' has no array 'yx'; did you mean 'yy'?") == 0, "%s", mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_archive_close(z);
}

/* The directory of a file of ours, told again with all its numbers in 64 bits. */
static struct mc_str as_zip64(struct mc_str b)
{
    struct mc_str out = { 0 };
    size_t end = b.n - 22, first, at = 0;
    uint32_t start;
    memcpy(&start, b.s + end + 16, 4);
    mc_str_addn(&out, b.s, start);
    for (size_t p = first = start; p < end; p += at) {
        uint32_t size, where;
        memcpy(&size, b.s + p + 24, 4);
        memcpy(&where, b.s + p + 42, 4);
        size_t name = (unsigned char)b.s[p + 28];
        uint64_t numbers[] = { size, size, where };
        mc_str_addn(&out, b.s + p, 20);
        mc_str_addn(&out, "\377\377\377\377\377\377\377\377", 8);
        mc_str_addn(&out, (char[]){ (char)name, 0, 33, 0 }, 4); /* 5 bytes of another extra field go first */
        mc_str_addn(&out, b.s + p + 32, 10);
        mc_str_addn(&out, "\377\377\377\377", 4);
        mc_str_addn(&out, b.s + p + 46, name);
        mc_str_addn(&out, "\7\0\1\0x\1\0\30\0", 9);
        mc_str_addn(&out, (char *)numbers, 24);
        at = 46 + name;
    }
    uint64_t size = out.n - first, where = first, record = out.n, two = 2;
    mc_str_addn(&out, "PK\6\6\54\0\0\0\0\0\0\0\55\0\55\0\0\0\0\0\0\0\0\0", 24);
    mc_str_addn(&out, (char *)&two, 8);
    mc_str_addn(&out, (char *)&two, 8);
    mc_str_addn(&out, (char *)&size, 8);
    mc_str_addn(&out, (char *)&where, 8);
    mc_str_addn(&out, "PK\6\7\0\0\0\0", 8);
    mc_str_addn(&out, (char *)&record, 8);
    mc_str_addn(&out, "\1\0\0\0", 4);
    mc_str_addn(&out, "PK\5\6\0\0\0\0\377\377\377\377\377\377\377\377\377\377\377\377\0\0", 22);
    return out;
}

TEST(npz_files_are_read)
{
    struct mc_str stored = saved_npz(), packed = unhex(npz_sample), big = as_zip64(stored);
    check_npz(stored.s, stored.n);
    check_npz(packed.s, packed.n);
    check_npz(big.s, big.n);
    stored.s[stored.n - 2] = 3; /* a comment */
    mc_str_addn(&stored, "hey", 3);
    stored.cap = 0;
    check_npz(stored.s, stored.n);
    mc_str_free(&stored);
    mc_str_free(&packed);
    mc_str_free(&big);
}

TEST(wrong_npz_files_are_not_written)
{
    mc_array *a = mc_array_scalar(MC_INT8, 1);
    const mc_array *two[] = { a, a }, *none[] = { a, NULL };
    CHECK(mc_archive_save(scratch(), NULL, 2, (const char *[]){ "a", "a" }, two) == MC_EARG, "saved");
    CHECK(strcmp(mc_last_error(), "mc_archive_save: the name 'a' is used twice") == 0, "%s", mc_last_error());
    CHECK(mc_archive_save(scratch(), NULL, 2, (const char *[]){ "a", "b" }, none) == MC_EARG, "saved");
    CHECK(mc_archive_save(scratch(), NULL, 1, NULL, two) == MC_EARG &&
              mc_archive_save(NULL, NULL, 0, NULL, NULL) == MC_EARG,
          "saved");
    CHECK(access(scratch(), F_OK) != 0, "a file is there");
    CHECK(mc_archive_save(scratch(), NULL, 0, NULL, NULL) == MC_OK, "%s", mc_last_error());
    mc_archive *z = mc_archive_open(scratch());
    CHECK(z && mc_archive_count(z) == 0, "%s", mc_last_error());
    mc_archive_close(z);
    unlink(scratch());
    mc_array_unref(&a);
}

/* Opens, and loads x; true if that gave x as it was.  Anything but that and an error is a failed check. */
static bool still_x(const char *p, size_t n, const mc_array *x, const char *what, size_t where)
{
    char *copy = mc_alloc(n, "tests");
    memcpy(copy, p, n);
    mc_clear_error();
    mc_archive *z = mc_archive_read(memory(copy, n));
    mc_array *a = z ? mc_archive_load(z, "x") : NULL;
    bool same = a && mc_array_same_bits(a, x);
    CHECK(a ? same : *mc_last_error() != '\0', "%s %zu: another array, or no message", what, where);
    mc_array_unref(&a);
    mc_archive_close(z);
    mc_free(copy);
    return same;
}

static void damage(struct mc_str b, long most)
{
    mc_array *x = mc_array_from(MC_INT16, MC_SHAPE(2, 3), (int16_t[]){ 1, 2, 3, -4, 500, 6 });
    long survived = 0;
    for (size_t n = 0; n < b.n; n++) {
        CHECK(!still_x(b.s, n, x, "cut to", n), "a file cut to %zu of %zu bytes was read", n, b.n);
    }
    for (size_t bit = 0; bit < 8 * b.n; bit++) { /* dates, permissions and the like may change */
        b.s[bit / 8] ^= (char)(1 << bit % 8);
        survived += still_x(b.s, b.n, x, "changed bit", bit);
        b.s[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK(survived < most, "%ld of %zu changes were not noticed", survived, 8 * b.n);
    mc_array_unref(&x);
}

TEST(damage_to_a_npz_file_is_noticed)
{
    struct mc_str stored = saved_npz(), packed = unhex(npz_sample), big = as_zip64(stored);
    damage(stored, (long)stored.n * 5);
    damage(packed, (long)packed.n * 6);
    damage(big, (long)big.n * 6);
    stored.cap = 0;
    mc_str_free(&stored);
    mc_str_free(&packed);
    mc_str_free(&big);
}

/* ---- every allocation may fail ---- */

TEST(files_survive_every_failed_allocation)
{
    struct mc_str packed = unhex(npz_sample), fortran = npy(1, DICT(">i2", "True", "(2, 3)"), six_be, 12);
    ALLOC_FAIL_LOOP {
        mc_clear_error();
        struct mc_source s = memory(fortran.s, fortran.n);
        mc_array *a = mc_npy_read(&s), *t = a ? mc_array_transpose(a, NULL) : NULL, *b = NULL, *c = NULL,
                 *d = NULL;
        mc_archive *z = NULL, *p = NULL;
        if (t && mc_npy_save(scratch(), t) == MC_OK && (b = mc_npy_load(scratch())) &&
            mc_archive_save(scratch(), NULL, 2, (const char *[]){ "t", "b" }, (const mc_array *[]){ t, b }) ==
                MC_OK &&
            (z = mc_archive_open(scratch())) && (c = mc_archive_load(z, "t")) &&
            (p = mc_archive_read(memory(packed.s, packed.n)))) {
            d = mc_archive_load(p, "x");
        }
        CHECK((d != NULL) == !ALLOC_FAILED, "%s", mc_last_error());
        CHECK(d || mc_last_status() == MC_EMEMORY, "%s", mc_last_error());
        mc_archive_close(z);
        mc_archive_close(p);
        mc_array *all[] = { a, t, b, c, d };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
    }
    unlink(scratch());
    mc_str_free(&packed);
    mc_str_free(&fortran);
}
