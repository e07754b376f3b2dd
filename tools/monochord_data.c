/* monochord_data.c: `monochord data`: what lies there, and a sheet of it.
 *
 * Invariant: what is counted and drawn is what `monochord train` would see, in its order. */
#include "train.h"
#include <stdlib.h>
#include <string.h>

enum { ACROSS = 16, MOST_DOWN = 40, MOST_LISTED = 100 };

static void list_targets(const mc_data *d, const char *part)
{
    int64_t n = mc_data_count(d);
    printf("%s: %lld examples of %lld, %d number%s to learn\n", part, (long long)n,
           (long long)mc_data_dims(d)[0], mc_data_targets(d), mc_data_targets(d) == 1 ? "" : "s");
    for (int k = 0; k < mc_data_targets(d) && k < MOST_LISTED; k++) {
        double low = mc_data_target(d, 0, k), high = low, mean = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = mc_data_target(d, i, k);
            low = v < low ? v : low;
            high = v > high ? v : high;
            mean += v / (double)n;
        }
        printf("  %-20s %12.6g to %.6g, mean %.6g\n", mc_data_class(d, k), low, high, mean);
    }
}

static void list(const mc_data *d, const char *part)
{
    int classes = mc_data_classes(d);
    if (mc_data_targets(d)) {
        list_targets(d, part);
        return;
    }
    int64_t *count = must(calloc((size_t)classes, sizeof *count));
    printf("%s: %lld examples of ", part, (long long)mc_data_count(d));
    for (int k = 0; k < mc_data_rank(d); k++) {
        printf("%s%lld", k ? "x" : "", (long long)mc_data_dims(d)[k]);
    }
    printf(", %d classes", classes);
    if (mc_data_places(d) > 1) {
        printf(", one of them for each of %lld places\n", (long long)mc_data_places(d));
        free(count);
        return;
    }
    printf("\n");
    for (int64_t i = 0; i < mc_data_count(d); i++) {
        count[mc_data_label(d, i)]++;
    }
    for (int k = 0; k < classes && k < MOST_LISTED; k++) {
        printf("  %-20s %8lld\n", mc_data_class(d, k), (long long)count[k]);
    }
    free(count);
}

/* Example i into the sheet, (rows, columns, channels) bytes, at place (down, across). */
static void place(uint8_t *sheet, const mc_data *d, int64_t i, int64_t down, int64_t across)
{
    const int64_t *dims = mc_data_dims(d);
    int64_t channels = dims[0], rows = dims[1], columns = dims[2];
    float *x = must(malloc((size_t)(channels * rows * columns) * sizeof *x));
    mc_data_example(d, i, x);
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t k = 0; k < columns * channels; k++) {
            float v = x[(k % channels * rows + y) * columns + k / channels];
            sheet[((down * rows + y) * ACROSS * columns + across * columns) * channels + k] =
                (uint8_t)(v < 0   ? 0
                          : v > 1 ? 255
                                  : v * 255 + 0.5f);
        }
    }
    free(x);
}

/* The first examples of each class, a row a class. */
static bool draw(const mc_data *d, const char *path)
{
    const int64_t *dims = mc_data_dims(d);
    int down = mc_data_classes(d) < MOST_DOWN ? mc_data_classes(d) : MOST_DOWN;
    if (mc_data_rank(d) != 3 || (dims[0] != 1 && dims[0] != 3) || mc_data_places(d) > 1) {
        return complain("the examples are not pictures of a class each, so no sheet can be written"), false;
    }
    uint8_t *sheet = must(calloc((size_t)(down * dims[1] * ACROSS * dims[2]), (size_t)dims[0]));
    int *filled = must(calloc((size_t)mc_data_classes(d), sizeof *filled));
    for (int64_t i = 0; i < mc_data_count(d); i++) {
        int k = mc_data_label(d, i);
        if (k < down && filled[k] < ACROSS) {
            place(sheet, d, i, k, filled[k]++);
        }
    }
    size_t n;
    void *png = must(mc_image_png(sheet, down * dims[1], ACROSS * dims[2], (int)dims[0], &n));
    bool good = mc_file_write(path, png, n) == MC_OK || (complain("%s", mc_last_error()), false);
    if (good) {
        printf("wrote %s\n", path);
    }
    mc_free(png);
    free(sheet);
    free(filled);
    return good;
}

int command_data(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        return complain_usage("data");
    }
    mc_data *d = mc_data_open(argv[1], MC_TRAIN), *test = d ? mc_data_open(argv[1], MC_TEST) : NULL;
    bool good = test || (complain("%s", mc_last_error()), false);
    if (good) {
        printf("%s\n", mc_data_text(d));
        list(d, "to learn from");
        list(test, "to test with");
        good = argc == 2 ||
               (mc_data_targets(d) ? !complain("the examples are not pictures, so no sheet can be written")
                                   : draw(d, argv[2]));
    }
    mc_data_free(d);
    mc_data_free(test);
    return !good;
}
