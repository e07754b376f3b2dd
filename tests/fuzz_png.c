/* fuzz_png.c: a PNG whose check sums are right and whose head, palette and rows are anything ends in a
 * picture or in an error.  The input is columns, rows, depth, kind, interlacing, the colours of its
 * palette and where its pixels are cut into two chunks; then its palette and its rows, each with a filter
 * before it. */
#include "fuzz.h"
#include <monochord_nn.h>

enum { HEAD = 7, MOST = 60000 };
static char folder[64], path[128];

static void clean(void)
{
    unlink(path);
    rmdir(folder);
}

static void add_chunk(struct mc_str *to, const char *type, const unsigned char *data, size_t n)
{
    unsigned char word[4];
    fuzz_put_big(word, (uint32_t)n);
    mc_str_addn(to, (const char *)word, 4);
    mc_str_addn(to, type, 4);
    mc_str_addn(to, (const char *)data, n);
    fuzz_put_big(word, mc_crc32(0, to->s + to->n - n - 4, n + 4));
    mc_str_addn(to, (const char *)word, 4);
}

static uint32_t adler32(const unsigned char *p, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* The rows in one stored block: its length and the complement of that. */
static void add_rows(struct mc_str *to, const unsigned char *rows, size_t n, size_t cut)
{
    struct mc_str packed = { 0 };
    unsigned char sum[4];
    const char head[] = {
        0x78, 1, 1, (char)(n & 255), (char)(n >> 8), (char)(~n & 255), (char)(~n >> 8 & 255)
    };
    mc_str_addn(&packed, head, sizeof head);
    mc_str_addn(&packed, (const char *)rows, n);
    fuzz_put_big(sum, adler32(rows, n));
    mc_str_addn(&packed, (const char *)sum, 4);
    cut = cut < packed.n ? cut : packed.n;
    add_chunk(to, "IDAT", (const unsigned char *)packed.s, cut);
    add_chunk(to, "IDAT", (const unsigned char *)packed.s + cut, packed.n - cut);
    mc_str_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mc_str file = { 0 };
    if (n < HEAD || n > MOST) {
        return 0;
    }
    if (!*folder) {
        fuzz_folder(folder);
        snprintf(path, sizeof path, "%s/a.png", folder);
        atexit(clean);
    }
    const size_t colours = data[5] * 3u < n - HEAD ? data[5] * 3u : n - HEAD;
    mc_str_addn(&file, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(&file, "IHDR",
              (const unsigned char[]){ 0, 0, 0, data[0], 0, 0, 0, data[1], data[2], data[3], 0, 0, data[4] },
              13);
    if (colours) {
        add_chunk(&file, "PLTE", data + HEAD, colours);
    }
    add_rows(&file, data + HEAD + colours, n - HEAD - colours, data[6]);
    add_chunk(&file, "IEND", data, 0);
    if (mc_file_write(path, file.s, file.n) < 0) {
        fuzz_wrong("not written");
    }
    mc_clear_error();
    mc_array *a = mc_image_load(path);
    if (a ? mc_array_rank(a) != 3 || mc_array_dims(a)[1] != data[1] || mc_array_dims(a)[2] != data[0]
          : !*mc_last_error()) {
        fuzz_wrong("neither a picture of that size nor a message");
    }
    mc_array_unref(&a);
    mc_str_free(&file);
    return 0;
}

#if !defined(MC_LIBFUZZER)

/* 3 columns and 2 rows, grey of 2 bits, of 8, coloured, with a palette, interlaced; a filter of each kind. */
static void one(void)
{
    static const char grey2[] = { 3, 2, 2, 0, 0, 0, 9, 0, 0x6c, 2, 0x33 };
    static const char grey[] = { 3, 2, 8, 0, 0, 0, 40, 1, 5, 6, 7, 4, 1, 2, 3 };
    static const char rgb[] = { 3, 2, 8, 2, 0, 0, 8, 3, 1, 2, 3, 4, 5, 6,
                                7, 8, 9, 2, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
    static const char palette[] = { 3, 2, 1, 3, 0, 2, 3, 10, 20, 30, 40, 50, 60, 0, 0x40, 0, 0x20 };
    static const char interlaced[] = { 3, 2, 8, 0, 1, 0, 9, 0, 1, 0, 2, 0, 3, 0, 4, 5, 6 };
    fuzz_one_of((const struct mc_piece[]){ { grey2, sizeof grey2 },
                                           { grey, sizeof grey },
                                           { rgb, sizeof rgb },
                                           { palette, sizeof palette },
                                           { interlaced, sizeof interlaced } },
                5);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
