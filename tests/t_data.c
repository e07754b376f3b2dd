/* t_data.c: where examples come from.
 *
 * Invariant: every file that is read here is made here; a damaged one gives one error that says what is wrong
 * with it. */
#include "nn/data.h"
#include "own_folder.h"
#include <monochord_nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define fold mc_crc32                /* one number for many bytes */
#define DIGITS_CRC UINT32_C(0x65a7715e) /* of the first 500 digits of seed 1 */

static uint32_t all_of(const mc_data *d, int64_t n)
{
    uint32_t crc = 0;
    float x[4096];
    size_t size = sizeof *x;
    for (int k = 0; k < mc_data_rank(d); k++) {
        size *= (size_t)mc_data_dims(d)[k];
    }
    for (int64_t i = 0; i < n; i++) {
        int32_t t = mc_data_label(d, i);
        mc_data_example(d, i, x);
        crc = fold(fold(crc, x, size), &t, sizeof t);
    }
    return crc;
}

/* ---- digits ---- */

TEST(digits_are_the_same_bits_everywhere)
{
    mc_data *d = mc_data_digits(500, 1), *whole = mc_data_open("digits:3000", MC_TRAIN),
            *test = mc_data_open("digits:3000", MC_TEST);
    REQUIRE(d && whole && test, "%s", mc_last_error());
    CHECK(all_of(d, 500) == DIGITS_CRC, "other digits: %#x", all_of(d, 500));
    CHECK(all_of(whole, 500) == DIGITS_CRC, "the seed and a digit's number do not say all");
    CHECK(all_of(test, 500) != DIGITS_CRC, "the test set is the training set");
    CHECK(mc_data_count(whole) == 3000 && mc_data_count(test) == 500, "%lld and %lld",
          (long long)mc_data_count(whole), (long long)mc_data_count(test));
    mc_data_free(d);
    mc_data_free(whole);
    mc_data_free(test);
}

TEST(digits_are_digits)
{
    mc_data *d = mc_data_digits(2000, 7);
    int count[10] = { 0 };
    float x[28 * 28];
    REQUIRE(d, "%s", mc_last_error());
    CHECK(mc_data_classes(d) == 10 && mc_data_rank(d) == 3 && mc_data_dims(d)[0] == 1 &&
              mc_data_dims(d)[1] == 28,
          "shape");
    CHECK(strcmp(mc_data_class(d, 7), "7") == 0, "class 7 is '%s'", mc_data_class(d, 7));
    for (int64_t i = 0; i < 2000; i++) {
        float ink = 0, rim = 0;
        mc_data_example(d, i, x);
        for (int k = 0; k < 28 * 28; k++) {
            ink += x[k] > 0.5f;
            rim += x[k] > 0.5f && (k < 28 || k >= 27 * 28 || k % 28 == 0 || k % 28 == 27);
        }
        count[mc_data_label(d, i)]++;
        CHECK(ink > 20 && ink < 400, "digit %lld has %g pixels of ink", (long long)i, (double)ink);
        CHECK(rim <= 12, "digit %lld leaves the page: %g pixels", (long long)i, (double)rim);
    }
    for (int k = 0; k < 10; k++) {
        CHECK(count[k] > 140 && count[k] < 260, "%d of 2000 are a %d", count[k], k);
    }
    mc_data_free(d);
}

/* ---- files made here ---- */

static size_t idx(unsigned char *to, int rank, const int *dims, const unsigned char *data)
{
    size_t n = 1;
    memcpy(to, (unsigned char[]){ 0, 0, 8, (unsigned char)rank }, 4);
    for (int k = 0; k < rank; k++) {
        memcpy(to + 4 + 4 * k,
               (unsigned char[]){ 0, 0, (unsigned char)(dims[k] >> 8), (unsigned char)dims[k] }, 4);
        n *= (size_t)dims[k];
    }
    memcpy(to + 4 + 4 * rank, data, n);
    return n + 4 + 4 * (size_t)rank;
}

/* gzip with a name, its data stored. */
static size_t gzip(unsigned char *to, const unsigned char *from, size_t n)
{
    static const unsigned char head[] = { 0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3, 'x', 0 };
    uint32_t tail[2] = { mc_crc32(0, from, n), (uint32_t)n };
    memcpy(to, head, sizeof head);
    memcpy(to + 12,
           (unsigned char[]){ 1, (unsigned char)n, (unsigned char)(n >> 8), (unsigned char)~n,
                              (unsigned char)(~n >> 8) },
           5);
    memcpy(to + 17, from, n);
    for (int i = 0; i < 8; i++) {
        to[17 + n + (size_t)i] = (unsigned char)(tail[i / 4] >> 8 * (i % 4));
    }
    return n + 25;
}

static unsigned char pixels[4096], file[8192], packed[8192];
static size_t nfile, npacked;

static void some_pixels(void)
{
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (unsigned char)(i * 37 + i / 7);
    }
}

static void put_mnist(const char *dir, int n, bool gz)
{
    static const char *const names[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" };
    static const unsigned char labels[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4 };
    char name[128];
    some_pixels();
    for (int i = 0; i < 4; i++) {
        nfile = i % 2 ? idx(file, 1, (int[]){ n }, labels) : idx(file, 3, (int[]){ n, 5, 4 }, pixels);
        npacked = gzip(packed, file, nfile);
        snprintf(name, sizeof name, "%s/%s%s", dir, names[i], gz ? ".gz" : "");
        put_file(name, gz ? packed : file, gz ? npacked : nfile);
    }
}

TEST(idx_plain_packed_and_single)
{
    put_mnist("plain", 20, false);
    put_mnist("packed", 20, true);
    mc_data *plain = mc_data_open(in_folder("plain"), MC_TRAIN),
            *packed_one = mc_data_open(in_folder("packed"), MC_TEST);
    mc_data *file_one = mc_data_open(in_folder("plain/train-images-idx3-ubyte"), MC_TRAIN);
    mc_data *held = mc_data_open(in_folder("packed/train-images-idx3-ubyte.gz"), MC_TEST);
    REQUIRE(plain && packed_one && file_one && held, "%s", mc_last_error());
    CHECK(mc_data_count(plain) == 20 && mc_data_dims(plain)[0] == 1 && mc_data_dims(plain)[1] == 5 &&
              mc_data_dims(plain)[2] == 4,
          "shape");
    CHECK(mc_data_classes(plain) == 10 && mc_data_label(plain, 5) == 9, "labels");
    CHECK(all_of(plain, 20) == all_of(packed_one, 20), "packed differs");
    CHECK(mc_data_count(file_one) == 18 && mc_data_count(held) == 2, "held out %lld of 20",
          (long long)mc_data_count(held));
    CHECK(mc_data_label(held, 0) == 3 && mc_data_label(held, 1) == 4 && mc_data_label(file_one, 9) == 5,
          "every tenth is held out");
    float x[20];
    mc_data_example(plain, 1, x);
    CHECK(x[0] == (float)pixels[20] / 255.0f, "pixel %g", (double)x[0]);
    mc_data_free(plain), mc_data_free(packed_one), mc_data_free(file_one), mc_data_free(held);
    drop_folder();
}

TEST(cifar_of_both_kinds)
{
    static unsigned char record[2 * 3074];
    record[0] = 7, record[1] = 200, record[3073] = 2;
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "ten/data_batch_%d.bin", i);
        put_file(name, record, 2 * 3073);
    }
    put_file("ten/test_batch.bin", record, 3073);
    put_file("ten/batches.meta.txt", "plane\ncar\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n", 51);
    mc_data *d = mc_data_open(in_folder("ten"), MC_TRAIN), *t = mc_data_open(in_folder("ten"), MC_TEST);
    REQUIRE(d && t, "%s", mc_last_error());
    CHECK(mc_data_count(d) == 10 && mc_data_count(t) == 1 && mc_data_label(d, 0) == 7 &&
              mc_data_label(d, 9) == 2,
          "labels");
    CHECK(strcmp(mc_data_class(d, 7), "horse") == 0 && strcmp(mc_data_class(d, 9), "truck") == 0, "names");
    float x[3072];
    mc_data_example(d, 0, x);
    CHECK(x[0] == 200 / 255.0f && mc_data_dims(d)[0] == 3 && mc_data_dims(d)[1] == 32, "pixels");
    mc_data_free(d), mc_data_free(t);
    memset(record, 0, sizeof record);
    record[1] = 99, record[3074] = 3, record[3075] = 42;
    put_file("hundred/train.bin", record, 2 * 3074);
    d = mc_data_open(in_folder("hundred"), MC_TRAIN);
    REQUIRE(d, "%s", mc_last_error());
    CHECK(mc_data_classes(d) == 100 && mc_data_label(d, 0) == 99 && mc_data_label(d, 1) == 42,
          "the fine label counts");
    mc_data_free(d);
    drop_folder();
}

static void put_npz(const char *name, const char *x_name, const char *t_name, mc_array *x, mc_array *t)
{
    CHECK(mc_archive_save(in_folder(name), NULL, 2, (const char *const[]){ x_name, t_name },
                          (const mc_array *const[]){ x, t }) == MC_OK,
          "%s", mc_last_error());
    mc_array_unref(&x), mc_array_unref(&t);
}

TEST(npz_with_numbers_or_pictures)
{
    int64_t many[12] = { 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2 };
    double v[12][2] = { { 0.5, -1 }, { 2, 3 } };
    some_pixels();
    put_npz("a.npz", "x_train", "y_train", mc_array_from(MC_UINT8, MC_SHAPE(3, 2, 2), pixels),
            mc_array_from(MC_INT64, MC_SHAPE(3), many));
    put_npz("b.npz", "x", "y", mc_array_from(MC_FLOAT64, MC_SHAPE(12, 2), v),
            mc_array_from(MC_INT64, MC_SHAPE(12), many));
    put_npz("c.npz", "x", "y", mc_array_from(MC_UINT8, MC_SHAPE(12, 2, 4, 3), pixels),
            mc_array_from(MC_INT64, MC_SHAPE(12), many));
    mc_data *a = mc_data_open(in_folder("a.npz"), MC_TRAIN), *b = mc_data_open(in_folder("b.npz"), MC_TRAIN);
    mc_data *last = mc_data_open(in_folder("c.npz"), MC_TRAIN);
    REQUIRE(a && b && last, "%s", mc_last_error());
    float turned[24];
    mc_data_example(last, 1, turned);
    CHECK(mc_data_dims(last)[0] == 3 && mc_data_dims(last)[1] == 2 && mc_data_dims(last)[2] == 4 &&
              turned[8 + 5] == (float)pixels[24 + 5 * 3 + 1] / 255.0f,
          "channels last are turned");
    mc_data_free(last);
    CHECK(mc_data_rank(a) == 3 && mc_data_dims(a)[0] == 1 && mc_data_classes(a) == 3, "pictures");
    float x[4];
    mc_data_example(b, 1, x);
    CHECK(mc_data_count(b) == 11 && mc_data_rank(b) == 1 && x[0] == 2 && x[1] == 3,
          "numbers stay as they are");
    CHECK(!mc_data_open(in_folder("a.npz"), MC_TEST) &&
              strstr(mc_last_error(), "has neither x_test and y_test nor x and y"),
          "%s", mc_last_error());
    mc_data_free(a), mc_data_free(b);
    drop_folder();
}

/* Element k of the classes of example i is (i * 5 + k) % 3. */
TEST(npz_with_a_class_for_each_place)
{
    int64_t of[12 * 8];
    for (int i = 0; i < 12 * 8; i++) {
        of[i] = (i / 8 * 5 + i % 8) % 3;
    }
    some_pixels();
    put_npz("p.npz", "x", "t", mc_array_from(MC_UINT8, MC_SHAPE(12, 2, 4, 3), pixels),
            mc_array_from(MC_INT64, MC_SHAPE(12, 2, 4), of));
    for (int part = 0; part < 2; part++) {
        mc_data *d = mc_data_open(in_folder("p.npz"), part ? MC_TEST : MC_TRAIN);
        REQUIRE(d, "%s", mc_last_error());
        CHECK(mc_data_places(d) == 8 && mc_data_classes(d) == 3 && mc_data_label(d, 0) == -1, "%lld places",
              (long long)mc_data_places(d));
        mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 4, .shuffle = 1, .seed = 5 });
        const mc_array *x, *t;
        int64_t seen = 0;
        while (b && mc_batches_next(b, &x, &t) == 1) {
            REQUIRE(mc_array_rank(t) == 3 && mc_array_dims(t)[1] == 2 && mc_array_dims(t)[2] == 4,
                    "its shape");
            for (int64_t k = 0; k < mc_array_size(t); k++) {
                /* example 9 is the one to test with */
                const int64_t at = mc_batches_example(b, k / 8), i = part ? 9 : at + (at > 8);
                seen += ((const int32_t *)mc_array_data(t))[k] == (i * 5 + k % 8) % 3;
            }
        }
        CHECK(seen == (part ? 8 : 11 * 8), "%lld classes are right", (long long)seen);
        mc_batches_free(b);
        CHECK(!mc_batches_new(d, &(mc_batch_spec){ .size = 4, .shuffle = 1, .augment = "flip=true" }) &&
                  strstr(mc_last_error(), "cannot be augmented"),
              "%s", mc_last_error());
        mc_data_free(d);
    }
    drop_folder();
}

/* ---- pictures ---- */

static void put_png(const char *name, int rows, int columns, int channels, int from)
{
    size_t n;
    some_pixels();
    void *png = mc_image_png(pixels + from, rows, columns, channels, &n);
    put_file(name, png, n);
    mc_free(png);
}

TEST(folders_of_pictures)
{
    put_png("all/cat/b.png", 3, 4, 3, 5);
    put_png("all/cat/a.png", 3, 4, 3, 9);
    put_file("all/ant/z.ppm", "P6 # a remark\n4 3\n255\n012345678901234567890123456789012345", 22 + 36);
    put_file("all/ant/.hidden.png", "", 0);
    put_file("all/ant/readme.txt", "no picture", 10);
    for (int i = 0; i < 8; i++) {
        char name[64];
        snprintf(name, sizeof name, "all/dog/%d.png", i);
        put_png(name, 3, 4, 3, 11 + i);
    }
    mc_data *d = mc_data_open(in_folder("all"), MC_TRAIN), *t = mc_data_open(in_folder("all"), MC_TEST);
    REQUIRE(d && t, "%s", mc_last_error());
    CHECK(mc_data_count(d) == 10 && mc_data_count(t) == 1 && mc_data_classes(d) == 3, "%lld",
          (long long)mc_data_count(d));
    CHECK(strcmp(mc_data_class(d, 0), "ant") == 0 && mc_data_label(d, 0) == 0 && mc_data_label(d, 1) == 1 &&
              mc_data_label(d, 3) == 2,
          "in order");
    float x[36];
    mc_data_example(d, 1, x);
    CHECK(x[0] == (float)pixels[9] / 255.0f && x[12] == (float)pixels[10] / 255.0f,
          "a.png comes before b.png, its planes apart");
    mc_data_example(d, 0, x);
    CHECK(x[0] == '0' / 255.0f && x[12] == '1' / 255.0f, "ppm");
    mc_data_free(d), mc_data_free(t);
    drop_folder();
}

/* ---- what is wrong is said ---- */

TEST(wrong_data_says_what_is_wrong)
{
    static unsigned char record[3074];
    static const unsigned char labels[4] = { 1, 2, 3, 250 };
    record[0] = 10;
    some_pixels();
    put_file("cut/train-images-idx3-ubyte", file, idx(file, 3, (int[]){ 4, 5, 4 }, pixels) - 1);
    put_file("cut/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 4 }, labels));
    put_file("long/train-images-idx3-ubyte", file, idx(file, 3, (int[]){ 4, 5, 4 }, pixels) + 3);
    put_file("long/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 4 }, labels));
    put_file("other/train-images-idx3-ubyte", "\0\0\15\3abcdefgh", 12);
    put_file("other/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 4 }, labels));
    put_file("huge/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 4 }, labels));
    put_file("sum/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 4 }, labels));
    put_file("few/train-images-idx3-ubyte", file, idx(file, 3, (int[]){ 3, 5, 4 }, pixels));
    put_file("few/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 4 }, labels));
    put_file("none/train-images-idx3-ubyte", file, idx(file, 3, (int[]){ 0, 5, 4 }, pixels));
    put_file("none/train-labels-idx1-ubyte", packed, idx(packed, 1, (int[]){ 0 }, labels));
    put_file("alone/train-images-idx3-ubyte", file, idx(file, 3, (int[]){ 4, 5, 4 }, pixels));
    put_file("huge/train-images-idx3-ubyte", "\0\0\10\3\377\377\377\377\377\377\377\377\377\377\377\377", 16);
    npacked = gzip(packed, file, 96);
    packed[60] ^= 1;
    put_file("sum/train-images-idx3-ubyte.gz", packed, npacked);
    put_file("c1/data_batch_1.bin", record, 3073), put_file("c1/data_batch_2.bin", record, 0),
        put_file("c1/data_batch_3.bin", record, 0);
    put_file("c1/data_batch_4.bin", record, 0), put_file("c1/data_batch_5.bin", record, 0);
    put_file("c2/data_batch_1.bin", record, 3072);
    put_file("c3/test.bin", record, 0);
    put_png("sizes/a/1.png", 3, 4, 3, 0), put_png("sizes/b/1.png", 4, 4, 3, 0);
    put_png("grey/a/1.png", 3, 4, 3, 0), put_png("grey/b/1.png", 3, 4, 1, 0);
    put_file("empty/a/readme", "", 0);
    put_file("text/a/1.png", "not a picture", 13);
    put_png("parts/train/a/1.png", 3, 4, 3, 0), put_file("parts/test/b/readme", "", 0);
    put_file("x.txt", "hello", 5);
    put_npz("neg.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)),
            mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 0, -1 }));
    put_npz("wide.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)),
            mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 0, INT64_C(1) << 32 }));
    put_npz("real.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)),
            mc_array_new(MC_FLOAT32, MC_SHAPE(2)));
    put_npz("hot.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)),
            mc_array_new(MC_INT32, MC_SHAPE(2, 5)));
    put_npz("flat.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(2)), mc_array_new(MC_INT32, MC_SHAPE(2)));
    put_npz("zero.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(0, 3)),
            mc_array_new(MC_INT32, MC_SHAPE(0)));
    put_npz("tiny.npz", "x", "y", mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)),
            mc_array_new(MC_INT32, MC_SHAPE(2)));
    put_file("bad.npz", "PK\3\4 and then nothing", 21);
    static const struct {
        const char *where;
        enum mc_part part;
        const char *says;
    } rows[] = {
        { "cut", MC_TRAIN, "train-images-idx3-ubyte' is truncated: it ends after 95 bytes" },
        { "long", MC_TRAIN, "is damaged: it has 3 bytes more than its sizes need" },
        { "other", MC_TRAIN, "is not an IDX file of bytes: it begins with 00 00 0d 03" },
        { "few", MC_TRAIN, "there are 3 examples, but 4 labels" },
        { "none", MC_TRAIN, "there are no examples" },
        { "alone", MC_TRAIN, "has no labels: there is no file train-labels-idx1-ubyte beside it" },
        { "alone", MC_TEST, "has no file t10k-images-idx3-ubyte" },
        { "huge", MC_TRAIN, "is truncated" },
        { "sum", MC_TRAIN, "is a damaged gzip file: wrong checksum" },
        { "c1", MC_TRAIN, "the label of example 0 is 10, but classes are 0 to 9" },
        { "c2", MC_TRAIN, "3072 bytes are not a multiple of the record size, 3073" },
        { "c3", MC_TEST, "there are no examples" },
        { "c3", MC_TRAIN, "c3/train.bin': No such file" },
        { "sizes", MC_TRAIN, "is 3x4x4 (channels, rows, columns), but" },
        { "grey", MC_TRAIN, "is 1x3x4 (channels, rows, columns), but" },
        { "empty", MC_TRAIN, "has no folders with pictures" },
        { "text", MC_TRAIN, "1.png': the file is neither PNG nor a binary PPM or PGM" },
        { "parts", MC_TEST, "has no folder a, which" },
        { "x.txt", MC_TRAIN, "is not in a known format of data" },
        { "missing", MC_TRAIN, "there is no file '" },
        { "neg.npz", MC_TRAIN, "the label of example 1 is -1, but classes are 0 to" },
        { "wide.npz", MC_TRAIN, "the label of example 1 is 4294967296" },
        { "real.npz", MC_TRAIN, "labels must be whole numbers, not float32" },
        { "hot.npz", MC_TRAIN, "labels must be one whole number for each example, not 5" },
        { "flat.npz", MC_TRAIN, "must be an array of rank 2 or more" },
        { "zero.npz", MC_TRAIN, "there are no examples" },
        { "tiny.npz", MC_TEST, "2 examples are too few to hold some out" },
        { "bad.npz", MC_TRAIN, "bad.npz" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        mc_data *d = mc_data_open(in_folder(rows[i].where), rows[i].part);
        CHECK(!d && strstr(mc_last_error(), rows[i].says), "%s: %s", rows[i].where,
              d ? "was read" : mc_last_error());
        mc_data_free(d);
    }
    static const char *const words[] = { "digits:", "digits:0", "digits:1x", "digits:-3" };
    for (size_t i = 0; i < COUNT(words); i++) {
        CHECK(!mc_data_open(words[i], MC_TRAIN) && strstr(mc_last_error(), "needs a whole number"), "%s: %s",
              words[i], mc_last_error());
    }
    drop_folder();
}

/* Cut off anywhere, or with any byte changed: an error, or a picture where the byte did not matter; nothing
 * else. */
TEST(damaged_idx_is_noticed)
{
    put_mnist("whole", 4, true);
    nfile = idx(file, 3, (int[]){ 4, 5, 4 }, pixels);
    npacked = gzip(packed, file, nfile);
    for (size_t k = 0; k < npacked; k++) {
        put_file("whole/train-images-idx3-ubyte.gz", packed, k);
        mc_data *d = mc_data_open(in_folder("whole"), MC_TRAIN);
        CHECK(!d, "IDX packed and cut to %zu of %zu bytes was read", k, npacked);
        mc_data_free(d);
    }
    drop_folder();
}

TEST(data_without_memory_is_one_error)
{
    put_mnist("m", 4, true);
    put_png("p/a/1.png", 3, 4, 3, 0), put_png("p/b/1.png", 3, 4, 3, 0);
    ALLOC_FAIL_LOOP {
        static const char *const where[] = { "digits:4", "m", "p" };
        for (size_t i = 0; i < COUNT(where); i++) {
            mc_data *d = mc_data_open(strcmp(where[i], "digits:4") ? in_folder(where[i]) : where[i],
                                      MC_TRAIN);
            CHECK(d || ALLOC_FAILED || i == 2, "no data, yet memory: %s", mc_last_error());
            mc_batches *b = d ? mc_batches_new(
                                    d, &(mc_batch_spec){ .size = 3, .shuffle = 1, .augment = "shift=1" })
                              : NULL;
            const mc_array *x, *t;
            int got = 1;
            while (b && got == 1) {
                got = mc_batches_next(b, &x, &t);
            }
            CHECK(!d || ALLOC_FAILED || got == 0, "no batch, yet memory: %s", mc_last_error());
            mc_batches_free(b);
            mc_data_free(d);
        }
    }
    drop_folder();
}
