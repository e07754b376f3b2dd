/* fuzz_data.c: whatever is in the files, reading examples ends in sound data or in an error.  With libFuzzer
 * (-DMC_LIBFUZZER) the first byte says which file it is, the others are the file; without, `fuzz_data
 * SECONDS` changes good files at random, the same way on every run, and mends their check sums, so that what
 * lies behind them is read.
 *
 * Invariant: one folder, gone at the end; beside the file that is changed lie good ones. */
#define FUZZ_MENDS 1 /* the first byte says which file */
#include "fuzz.h"
#include <monochord_nn.h>

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXAMPLES = 3, ROWS = 5, COLUMNS = 4, RECORD = 3073 };
struct file {
    const char *name, *open; /* in the folder */
    unsigned char bytes[3 * RECORD];
    size_t n;
};
static struct file files[] = {
    { "a/train-images-idx3-ubyte", "a" },    { "a/train-labels-idx1-ubyte", "a" }, { "g/train-images-idx3-ubyte.gz", "g" },
    { "g/train-labels-idx1-ubyte", "g" },    { "c/train.bin", "c" },               { "n.npz", "n.npz" },
    { "p/x/1.png", "p" },                    { "p/y/1.png", "p" },                 { "m/x/1.ppm", "m" },
    { "m/y/1.pgm", "m" },                    { "t.csv", "t.csv" },                 { "u.csv", "u.csv:target" },
};
static const char *const folders[] = { "a", "g", "c", "p", "p/x", "p/y", "m", "m/x", "m/y" };
static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t n)
{
    FILE *to = fopen(in_folder(name), "wb");
    if (!to || fwrite(data, 1, n, to) != n || fclose(to) != 0) {
        perror(name);
        exit(2);
    }
}

/* ---- good files ---- */

static void add(struct file *f, const void *data, size_t n)
{
    memcpy(f->bytes + f->n, data, n);
    f->n += n;
}

static void make_idx(struct file *f, int rank)
{
    const unsigned char head[] = { 0, 0, 8,      (unsigned char)rank, 0, 0, 0, EXAMPLES, 0, 0, 0, ROWS, 0,
                                   0, 0, COLUMNS };
    add(f, head, 4 + 4 * (size_t)rank);
    for (int i = 0; i < (rank == 1 ? EXAMPLES : EXAMPLES * ROWS * COLUMNS); i++) {
        f->bytes[f->n++] = (unsigned char)(i % 10);
    }
}

/* Packed as it is: one block that is stored. */
static void make_gzip(struct file *f)
{
    unsigned char in[256];
    size_t n = f->n;
    uint32_t crc = mc_crc32(0, f->bytes, n);
    memcpy(in, f->bytes, n);
    f->n = 0;
    add(f,
        (const unsigned char[]){ 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, (unsigned char)n, 0,
                                 (unsigned char)~n, 0xff },
        15);
    add(f, in, n);
    add(f, &crc, 4);
    add(f, &(uint32_t){ (uint32_t)n }, 4);
}

static void make_npz(struct file *f)
{
    size_t n;
    char *data;
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(10, 3)), *y = mc_array_new(MC_INT16, MC_SHAPE(10));
    if (mc_archive_save(in_folder("n.npz"), NULL, 2, (const char *[]){ "x", "y" },
                        (const mc_array *[]){ x, y }) < 0 ||
        mc_file_read(in_folder("n.npz"), &data, &n) < 0) {
        fputs(mc_last_error(), stderr);
        exit(2);
    }
    add(f, data, n);
    mc_free(data);
    mc_array_unref(&x);
    mc_array_unref(&y);
}

static void make_png(struct file *f, int channels)
{
    uint8_t pixels[ROWS * COLUMNS * 3];
    size_t n;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * 37);
    }
    void *png = mc_image_png(pixels, ROWS, COLUMNS, channels, &n);
    if (!png) {
        exit(2);
    }
    add(f, png, n);
    mc_free(png);
}

static void make(void)
{
    fuzz_folder(folder);
    for (size_t i = 0; i < NELEM(folders); i++) {
        mkdir(in_folder(folders[i]), 0700);
    }
    make_idx(&files[0], 3), make_idx(&files[1], 1), make_idx(&files[2], 3), make_idx(&files[3], 1);
    make_gzip(&files[2]);
    memset(files[4].bytes, 7, files[4].n = 2 * (RECORD + 1));
    make_npz(&files[5]);
    make_png(&files[6], 3), make_png(&files[7], 3);
    add(&files[8],
        "P6\n# words\n4 5\n255\n"
        "012345678901234567890123456789012345678901234567890123456789",
        19 + 60);
    add(&files[9],
        "P5 4 5 255\n"
        "01234567890123456789",
        11 + 20);
    for (int i = 10; i < 12; i++) {
        add(&files[i], "a,\"b\",c d\r\n", 12);
        for (int k = 0; k < 12; k++) {
            add(&files[i], i == 10 ? "1,-2.5e1,x\n\n" : "1 ,\"2\", 0.3\n", 12 + (i == 11));
        }
    }
    for (size_t i = 0; i < NELEM(files); i++) {
        write_file(files[i].name, files[i].bytes, files[i].n);
    }
}

static void clean(void)
{
    for (size_t i = 0; i < NELEM(files); i++) {
        unlink(in_folder(files[i].name));
    }
    for (size_t i = NELEM(folders); i-- > 0;) {
        rmdir(in_folder(folders[i]));
    }
    rmdir(folder);
}

/* ---- reading ---- */

static void wrong(const char *what)
{
    fprintf(stderr, "%s, %s\n", what, mc_last_error());
    abort();
}

/* All that a training asks of data. */
static void use(mc_data *d)
{
    int64_t n = mc_data_count(d), size = 1;
    for (int k = 0; k < mc_data_rank(d); k++) {
        size *= mc_data_dims(d)[k];
    }
    float *x = malloc((size_t)size * sizeof *x + 1);
    if (!x || n < 1 || (mc_data_classes(d) < 1) == (mc_data_targets(d) < 1)) {
        wrong("data without examples, or with neither or both of classes and targets");
    }
    for (int k = 0; k < mc_data_targets(d); k++) {
        if (!mc_data_class(d, k) || !isfinite(mc_data_target(d, n - 1, k))) {
            wrong("a target without a name, or not finite");
        }
    }
    for (int64_t i = 0; i < n; i++) {
        mc_data_example(d, i, x);
        if (mc_data_targets(d)) {
            continue;
        }
        if (mc_data_label(d, i) < 0 || mc_data_label(d, i) >= mc_data_classes(d) ||
            !mc_data_class(d, mc_data_label(d, i))) {
            wrong("a label that is no class");
        }
    }
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!*folder) {
        make();
        atexit(clean);
    }
    if (n == 0) {
        return 0;
    }
    const struct file *f = &files[data[0] % NELEM(files)];
    write_file(f->name, data + 1, n - 1);
    for (int part = MC_TRAIN; part <= MC_TEST; part++) {
        mc_fail(MC_OK, "%s", "");
        mc_data *d = mc_data_open(in_folder(f->open), (enum mc_part)part);
        if (d) {
            use(d);
        } else if (!*mc_last_error()) {
            wrong("neither data nor a message");
        }
        mc_data_free(d);
    }
    write_file(f->name, f->bytes, f->n);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static void one(void)
{
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0); /* makes the files */
    size_t which = fuzz_below(NELEM(files)), n = files[which].n;
    unsigned char *changed = fuzz_changed(files[which].bytes, &n), *data = malloc(n + 1);
    if (!data) {
        exit(2);
    }
    if (fuzz_below(4)) {
        fuzz_mend(changed, n);
    }
    data[0] = (unsigned char)which;
    memcpy(data + 1, changed, n);
    LLVMFuzzerTestOneInput(data, n + 1);
    free(changed);
    free(data);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
