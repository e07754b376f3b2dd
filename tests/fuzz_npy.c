/* fuzz_npy.c: whatever the bytes, reading them as .npy, .npz or compressed data ends in an array or an
 * error.  With libFuzzer (-DMC_LIBFUZZER) it brings the bytes; without, `fuzz_npy SECONDS` changes good
 * files at random, the same way on every run. */
#define FUZZ_MENDS 0
#include "fuzz.h"
#include "value/value.h"

#include <stdio.h>

/* Uses an array as a program would: its text touches its elements. */
static void use(mc_array *a)
{
    mc_text_free(a ? mc_array_text(a) : NULL);
    mc_array_unref(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char out[1000];
    struct mc_source s = { .fd = -1, .mem = (const char *)data, .size = n, .name = "fuzz" };
    mc_inflate(out, sizeof out, data, n);
    if (n == 0) {
        return 0;
    }
    use(mc_npy_read(&s));
    mc_archive *z = mc_archive_read(s);
    for (int i = 0; z && i < mc_archive_count(z) && i < 20; i++) {
        use(mc_archive_load(z, mc_archive_name(z, i)));
    }
    mc_archive_close(z);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static struct mc_str npy_file(void)
{
    struct mc_str b = { 0 };
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 5));
    if (!a || mc_npy_head(&b, a) < 0) {
        fputs(mc_last_error(), stderr);
        exit(2);
    }
    mc_str_addn(&b, a->data, 60);
    mc_array_unref(&a);
    return b;
}

static struct mc_str npz_file(void)
{
    char path[64];
    struct mc_str b = { 0 };
    snprintf(path, sizeof path, "/tmp/mc-fuzz-%.0f.npz", mc_now() * 1e9);
    mc_array *a = mc_array_new(MC_INT8, MC_SHAPE(7));
    if (!a ||
        mc_archive_save(path, NULL, 2, (const char *[]){ "a", "bc" }, (const mc_array *[]){ a, a }) < 0 ||
        mc_file_read(path, &b.s, &b.n) < 0) {
        fputs(mc_last_error(), stderr);
        exit(2);
    }
    remove(path);
    mc_array_unref(&a);
    return b;
}

/* Three kinds of blocks: plain, with the fixed codes, with codes of its own. */
static const unsigned char plain[] = { 1, 5, 0, 0xfa, 0xff, 'h', 'e', 'l', 'l', 'o' },
                           fixed[] = { 0x4b, 0x4c, 0x4c, 0x4a, 0x4e, 0x49, 0x4d, 0x4b, 0x4c, 0x44, 0xa2, 0x00 },
                           dynamic[] = { 0x4d, 0x8a, 0x81, 0x0d, 0x00, 0x20, 0x0c, 0xc2, 0x6e, 0xa5, 0xfd, 0xff,
                                         0x07, 0xa3, 0x46, 0x19, 0x61, 0xa4, 0x64, 0x24, 0x09, 0xd7, 0x6c, 0x94,
                                         0xd7, 0xcd, 0x17, 0x3d, 0x8b, 0x9c, 0x97, 0x32, 0x87, 0x14, 0x70, 0xc6,
                                         0x02 };

static void one(void)
{
    static struct mc_str npy, npz;
    if (!npy.n) {
        npy = npy_file();
        npz = npz_file();
    }
    fuzz_one_of((const struct mc_piece[]){ { npy.s, npy.n },
                                           { npz.s, npz.n },
                                           { plain, sizeof plain },
                                           { fixed, sizeof fixed },
                                           { dynamic, sizeof dynamic } },
                5);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
