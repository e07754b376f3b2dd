/* t_png.c: pictures read from PNG and PGM, and PNG written. */
#include "nn/data.h"
#include "own_folder.h"
#include "png_samples.h"
#include <monochord_nn.h>
#include <string.h>

TEST(png_of_every_kind)
{
    for (size_t i = 0; i < COUNT(png_samples); i++) {
        const struct png_sample *s = &png_samples[i];
        put_file("one.png", s->data, s->n);
        mc_array *a = mc_image_load(in_folder("one.png"));
        if (!CHECK(a, "%s: %s", s->name, mc_last_error())) {
            continue;
        }
        CHECK(mc_array_dims(a)[0] == s->channels && mc_array_dims(a)[1] == s->rows &&
                  mc_array_dims(a)[2] == s->columns,
              "%s: shape", s->name);
        uint32_t crc = mc_crc32(0, mc_array_data(a), (size_t)mc_array_size(a));
        CHECK(crc == s->crc, "%s: pixels %#x", s->name, crc);
        mc_array_unref(&a);
    }
    drop_folder();
}

TEST(png_written_is_read)
{
    unsigned char pixels[1800];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (unsigned char)test_random();
    }
    for (int channels = 1; channels <= 3; channels += 2) {
        size_t n;
        void *png = mc_image_png(pixels, 20, 30, channels, &n);
        put_file("w.png", png, n);
        mc_free(png);
        mc_array *a = mc_image_load(in_folder("w.png"));
        REQUIRE(a, "%s", mc_last_error());
        const uint8_t *v = mc_array_data(a);
        int differ = 0;
        for (int i = 0; i < 600 * channels; i++) {
            differ += v[i % channels * 600 + i / channels] != pixels[i];
        }
        CHECK(differ == 0, "%d pixels differ", differ);
        mc_array_unref(&a);
    }
    drop_folder();
}

TEST(damaged_pictures_are_noticed)
{
    unsigned char file[sizeof png_samples[0].data];
    for (size_t i = 0; i < COUNT(png_samples); i++) {
        const struct png_sample *s = &png_samples[i];
        for (size_t k = 0; k < s->n; k++) {
            memcpy(file, s->data, s->n);
            put_file("cut.png", file, k);
            CHECK(!mc_image_load(in_folder("cut.png")), "%s cut to %zu of %zu bytes was read", s->name, k,
                  s->n);
            file[k] ^= (unsigned char)(1 + test_random() % 255);
            put_file("bad.png", file, s->n);
            CHECK(!mc_image_load(in_folder("bad.png")), "%s with byte %zu changed was read", s->name, k);
        }
    }
    static const char ppm[] = "P5\n# x\n3 2\n65535\n123456789012";
    for (size_t k = 0; k < sizeof ppm - 1; k++) {
        put_file("cut.pgm", ppm, k);
        CHECK(!mc_image_load(in_folder("cut.pgm")), "PGM cut to %zu bytes was read", k);
    }
    drop_folder();
}
