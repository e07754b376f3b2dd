/* t_batches.c: batches of examples, shuffled and changed on a thread beside, or by a formula where the
 * examples stay on a device.
 *
 * Invariant: what a batch holds follows from seed, epoch and number, whoever makes it. */
#include "nn/data.h"
#include "check.h"
#include <monochord_nn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define fold mc_crc32                /* one number for many bytes */
enum { CHANGE = 2 };                 /* the stream of changes, as data_batches.c numbers it */

static uint32_t epoch_crc(mc_batches *b, uint32_t *each)
{
    const mc_array *x, *t;
    uint32_t crc = 0;
    for (int i = 0; mc_batches_next(b, &x, &t) == 1; i++) {
        mc_array *hx = mc_array_to(x, "cpu"),
                 *ht = mc_array_to(t, "cpu"); /* themselves, unless they stay on a GPU */
        crc = fold(crc, mc_array_data(hx), (size_t)mc_array_size(hx) * sizeof(float));
        crc = fold(crc, mc_array_data(ht), (size_t)mc_array_size(ht) * sizeof(int32_t));
        if (each) {
            each[i] = fold(0, mc_array_data(hx), (size_t)mc_array_size(hx) * sizeof(float));
        }
        mc_array_unref(&hx), mc_array_unref(&ht);
        if (test_random() % 4 == 0) {
            usleep((useconds_t)(test_random() % 2000));
        }
    }
    return crc;
}

TEST(batches_follow_from_seed_epoch_and_number)
{
    static const char *const ways[] = { NULL, "shift=2", "shift=3 flip=true", "crop=24 flip",
                                        "shift=1 crop=20x16 flip=false" };
    mc_data *d = mc_data_digits(230, 3);
    REQUIRE(d, "%s", mc_last_error());
    for (size_t w = 0; w < COUNT(ways); w++) {
        mc_batch_spec spec = { .size = 50, .shuffle = 1, .seed = 9, .augment = ways[w] };
        mc_batches *a = mc_batches_new(d, &spec), *b = mc_batches_new(d, &spec);
        spec.seed = 10;
        mc_batches *c = mc_batches_new(d, &spec);
        spec.seed = 9, spec.resident = 1; /* on a GPU: from there; otherwise nothing else */
        mc_batches *e = mc_batches_new(d, &spec);
        REQUIRE(e && a && b && c, "%s", mc_last_error());
        uint32_t each[5], again[5], first = epoch_crc(a, each), other = epoch_crc(c, NULL);
        CHECK(mc_batches_count(a) == 5, "%lld batches", (long long)mc_batches_count(a));
        const mc_array *x, *t;
        mc_batches_next(b, &x, &t); /* left in the middle, and begun anew */
        mc_batches_start(b, 0, 0);
        CHECK(epoch_crc(b, NULL) == first && other != first, "%s: another epoch 0", ways[w]);
        mc_batches_start(a, 1, 0);
        CHECK(epoch_crc(a, NULL) != first, "%s: epoch 1 is epoch 0", ways[w]);
        for (int i = 0; i < 2; i++) {
            mc_batches_start(i ? e : a, 0, 3);
            epoch_crc(i ? e : a, again);
            CHECK(again[0] == each[3] && again[1] == each[4], "%s: from batch 3 on", ways[w]);
        }
        mc_batches_start(e, 0, 0);
        CHECK(epoch_crc(e, NULL) == first, "%s: data that stay are others", ways[w]);
        mc_batches_free(a), mc_batches_free(b), mc_batches_free(c), mc_batches_free(e);
    }
    mc_data_free(d);
}

/* Data that stay are changed by a formula; here it runs on the processor. */
TEST(a_formula_changes_pictures_as_the_loop_does)
{
    static const struct { int rank; int64_t dims[4]; const char *augment; } cases[] = {
        { 4, { 40, 1, 28, 28 }, NULL },
        { 4, { 40, 3, 12, 9 },  "shift=2" },
        { 4, { 40, 3, 12, 9 },  "shift=3 flip" },
        { 4, { 40, 2, 9, 12 },  "crop=7 flip=true" },
        { 3, { 40, 8, 7 },      "shift=1 crop=5x6" },
        { 3, { 40, 8, 7 },      "shift=9" },
        { 2, { 40, 5 },         "" },
        { 4, { 40, 3, 1, 1 },   "flip" },
    };
    for (size_t c = 0; c < 4 * COUNT(cases); c++) {
        const char *augment = cases[c / 4].augment;
        mc_array *x = mc_array_new(c % 2 ? MC_UINT8 : MC_FLOAT32, cases[c / 4].rank, cases[c / 4].dims),
                 *t = mc_array_new(MC_INT32, MC_SHAPE(40));
        for (int64_t i = 0; i < mc_array_size(x); i++) {
            c % 2 ? (void)(((uint8_t *)mc_array_data(x))[i] = (uint8_t)test_random())
                  : (void)(((float *)mc_array_data(x))[i] = (float)test_random());
        }
        memset(mc_array_data(t), 0, 40 * sizeof(int32_t));
        mc_data *d = mc_data_new(x, t, 0);
        struct mc_augment a;
        mc_batches *b = mc_batches_new(
            d, &(mc_batch_spec){ .size = 40, .shuffle = c / 2 % 2 == 1, .seed = 5, .augment = augment });
        REQUIRE(b && mc_augment_make(augment, c / 2 % 2 == 1, cases[c / 4].rank - 1, cases[c / 4].dims + 1,
                                     &a) == MC_OK,
                "%s", mc_last_error());
        struct mc_resident *r = mc_resident_new(d, &a);
        const mc_array *want, *labels, *have;
        int32_t order[40];
        mc_batches_start(b, 3, 0);
        REQUIRE(r && mc_batches_next(b, &want, &labels) == 1, "%s", mc_last_error());
        for (int i = 0; i < 40; i++) {
            order[i] = (int32_t)mc_batches_example(b, i);
        }
        REQUIRE(mc_resident_start(r, order, 40, mc_augment_random_key(5 + CHANGE, 3)) == MC_OK &&
                    mc_resident_batch(r, 0, 40, 40, &have, &labels) == MC_OK,
                "%s", mc_last_error());
        mc_array *home = mc_array_to(have, "cpu");
        CHECK(mc_array_size(home) == mc_array_size(want) &&
                  memcmp(mc_array_data(home), mc_array_data(want),
                         (size_t)mc_array_size(want) * sizeof(float)) == 0,
              "'%s' of case %zu: other pictures", augment ? augment : "", c);
        mc_array_unref(&x), mc_array_unref(&t), mc_array_unref(&home);
        mc_resident_free(r);
        mc_batches_free(b);
        mc_data_free(d);
    }
}

TEST(an_epoch_has_each_example_once)
{
    mc_data *d = mc_data_digits(101, 3);
    for (int shuffle = 0; shuffle < 2 && d; shuffle++) {
        mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 10, .shuffle = shuffle });
        const mc_array *x, *t;
        int seen[101] = { 0 }, moved = 0;
        int64_t all = 0;
        float want[784];
        REQUIRE(b, "%s", mc_last_error());
        while (mc_batches_next(b, &x, &t) == 1) {
            for (int64_t k = 0; k < mc_array_size(t); k++, all++) {
                int64_t i = mc_batches_example(b, k);
                seen[i]++;
                moved += i != all;
                mc_data_example(d, i, want);
                CHECK(memcmp(want, (float *)mc_array_data(x) + k * 784, sizeof want) == 0 &&
                          ((int32_t *)mc_array_data(t))[k] == mc_data_label(d, i),
                      "place %lld does not hold example %lld", (long long)all, (long long)i);
            }
        }
        for (int i = 0; i < 101; i++) {
            CHECK(seen[i] == 1, "example %d comes %d times", i, seen[i]);
        }
        CHECK(shuffle ? moved > 90 : moved == 0, "%d of 101 moved", moved);
        mc_batches_free(b);
    }
    mc_data_free(d);
}

TEST(a_moved_picture_is_moved)
{
    float v[2][3][4];
    int64_t label[2] = { 0, 1 };
    for (int i = 0; i < 24; i++) {
        ((float *)v)[i] = (float)(i + 1);
    }
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 1, 3, 4), v),
             *t = mc_array_from(MC_INT64, MC_SHAPE(2), label);
    mc_data *d = mc_data_new(x, t, 0);
    mc_array_unref(&x), mc_array_unref(&t);
    mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 2, .shuffle = 1, .augment = "shift=1 flip" });
    REQUIRE(d && b, "%s", mc_last_error());
    bool met[3][3][2] = { { { false } } };
    for (int64_t epoch = 0; epoch < 200; epoch++) {
        const mc_array *bx, *bt;
        mc_batches_start(b, epoch, 0);
        REQUIRE(mc_batches_next(b, &bx, &bt) == 1, "no batch");
        for (int k = 0; k < 2; k++) {
            const float *have = (const float *)mc_array_data(bx) + 12 * k;
            int64_t e = mc_batches_example(b, k);
            int fits = 0;
            for (int way = 0; way < 18; way++) { /* all moves; exactly one explains what is there */
                int dy = way / 6 - 1, dx = way / 2 % 3 - 1, flip = way % 2, same = 1;
                for (int i = 0; i < 12; i++) {
                    int y = i / 4 + dy, x2 = (flip ? 3 - i % 4 : i % 4) + dx;
                    float want = y >= 0 && y < 3 && x2 >= 0 && x2 < 4 ? v[e][y][x2] : 0;
                    same &= want == have[i];
                }
                fits += same;
                met[dy + 1][dx + 1][flip] |= same;
            }
            CHECK(fits == 1, "%d moves explain a picture", fits);
        }
    }
    for (int i = 0; i < 18; i++) {
        CHECK(((bool *)met)[i], "move %d never comes", i);
    }
    mc_batches_free(b);
    mc_data_free(d);
}

TEST(wrong_batches_are_refused)
{
    mc_data *d = mc_data_digits(10, 1);
    static const struct {
        mc_batch_spec spec;
        const char *says;
    } rows[] = {
        { { .size = 0 }, "the batch size must be at least 1, not 0" },
        { { .size = 5, .augment = "turn=3" }, "unknown augmentation 'turn=3'" },
        { { .size = 5, .augment = "shift=-1" }, "unknown augmentation" },
        { { .size = 5, .augment = "shift=2x" }, "unknown augmentation" },
        { { .size = 5, .augment = "crop=29" }, "crop=29 is larger than the pictures, 28" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        mc_batches *b = mc_batches_new(d, &rows[i].spec);
        CHECK(!b && strstr(mc_last_error(), rows[i].says), "%s: %s", rows[i].says, mc_last_error());
        mc_batches_free(b);
    }
    mc_data_free(d);
}
