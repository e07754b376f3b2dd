/* image.c: reads pictures from files: PNG of every kind, binary PPM and PGM; writes PNG.
 *
 * Invariant: a size in a file is checked against the number of bytes before it is used; a file that is
 * damaged or truncated anywhere is an error. The result is bytes (1 or 3, rows, columns); transparency is
 * ignored. */
#include "nn/data.h"

enum { MOST = 65536 }; /* rows or columns */

struct bytes {
    const unsigned char *p;
    size_t n;
};

static mc_status truncated(void) { return mc_fail(MC_EFORMAT, "the picture is truncated"); }
static mc_status damaged(const char *what) { return mc_fail(MC_EFORMAT, "the picture is damaged: %s", what); }

static uint32_t big(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

/* ---- PNG ---- */

static const unsigned char signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };

struct png {
    int64_t rows, columns;
    int depth, kind, interlaced, channels; /* channels: in the file */
    unsigned char palette[256][3];
    int colours;
    char *packed;                          /* the IDAT chunks, joined */
    size_t npacked;
};

/* Channels by kind; depths as bits of a set. */
static const struct {
    int channels, depths;
} png_kinds[7] = {
    [0] = { 1, 1 | 2 | 4 | 8 | 16 },       /* grey */
    [2] = { 3, 8 | 16 },                   /* red, green, blue */
    [3] = { 1, 1 | 2 | 4 | 8 },            /* an index in the palette */
    [4] = { 2, 8 | 16 },                   /* grey, transparency */
    [6] = { 4, 8 | 16 },
};

/* The pixels of a pass: start (x, y) and steps. Pass 0 is for a picture that is not interlaced. */
static const struct pass {
    int x, y, dx, dy;
} passes[8] = { { 0, 0, 1, 1 }, { 0, 0, 8, 8 }, { 4, 0, 8, 8 }, { 0, 4, 4, 8 }, { 2, 0, 4, 4 }, { 0, 2, 2, 4 }, { 1, 0, 2, 2 }, { 0, 1, 1, 2 } };

static int64_t pass_columns(const struct png *g, const struct pass *p)
{
    return (g->columns - p->x + p->dx - 1) / p->dx;
}
static int64_t pass_rows(const struct png *g, const struct pass *p)
{
    return (g->rows - p->y + p->dy - 1) / p->dy;
}
static int64_t row_bytes(const struct png *g, int64_t columns)
{
    return (columns * g->channels * g->depth + 7) / 8;
}

static mc_status read_head(struct png *g, struct bytes c)
{
    if (c.n != 13) {
        return damaged("invalid header");
    }
    g->columns = big(c.p);
    g->rows = big(c.p + 4);
    g->depth = c.p[8];
    g->kind = c.p[9];
    g->interlaced = c.p[12];
    g->channels = g->kind < 7 ? png_kinds[g->kind].channels : 0;
    bool depth_fits = g->channels && (g->depth & (g->depth - 1)) == 0 &&
                      (g->depth & png_kinds[g->kind].depths);
    if (g->rows < 1 || g->columns < 1 || g->rows > MOST || g->columns > MOST || !depth_fits || c.p[10] ||
        c.p[11] || g->interlaced > 1) {
        return damaged("invalid header");
    }
    return MC_OK;
}

static mc_status read_chunk(struct png *g, const unsigned char *type, struct bytes c)
{
    if (memcmp(type, "IHDR", 4) == 0) {
        return g->rows ? damaged("two headers") : read_head(g, c);
    }
    if (!g->rows) {
        return damaged("no header");
    }
    if (memcmp(type, "PLTE", 4) == 0) {
        if (c.n % 3 || c.n > sizeof g->palette) {
            return damaged("invalid palette");
        }
        memcpy(g->palette, c.p, c.n);
        g->colours = (int)(c.n / 3);
    } else if (memcmp(type, "IDAT", 4) == 0) {
        memcpy(g->packed + g->npacked, c.p, c.n);
        g->npacked += c.n;
    } else if (!(type[0] & 32)) {
        return damaged("an unknown type of chunk");
    }
    return MC_OK;
}

/* A chunk consists of its length, its type, its bytes and a checksum of type and bytes. */
static mc_status read_chunks(struct png *g, struct bytes in)
{
    for (size_t at = sizeof signature;;) {
        if (in.n - at < 12 || big(in.p + at) > in.n - at - 12) {
            return truncated();
        }
        size_t n = big(in.p + at);
        const unsigned char *type = in.p + at + 4;
        if (mc_crc32(0, type, n + 4) != big(type + 4 + n)) {
            return damaged("wrong checksum");
        }
        if (memcmp(type, "IEND", 4) == 0) {
            return g->npacked ? MC_OK : damaged("no pixels");
        }
        mc_status s = read_chunk(g, type, (struct bytes){ type + 4, n });
        if (s < 0) {
            return s;
        }
        at += n + 12;
    }
}

/* The Paeth predictor: the one of left, above and corner that is nearest to left + above - corner. */
static int paeth(int left, int above, int corner)
{
    int p = left + above - corner, a = p > left ? p - left : left - p, b = p > above ? p - above : above - p;
    int c = p > corner ? p - corner : corner - p;
    return a <= b && a <= c ? left : b <= c ? above : corner;
}

/* Undoes a row's filter in place. above: the row before, NULL for the first; step: bytes of a pixel. */
static mc_status unfilter(int filter, unsigned char *row, const unsigned char *above, int64_t n, int step)
{
    if (filter > 4) {
        return damaged("unknown filter");
    }
    for (int64_t i = 0; i < n; i++) {
        int left = i >= step ? row[i - step] : 0, up = above ? above[i] : 0,
            corner = above && i >= step ? above[i - step] : 0;
        int guess[5] = { 0, left, up, (left + up) / 2, paeth(left, up, corner) };
        row[i] = (unsigned char)(row[i] + guess[filter]);
    }
    return MC_OK;
}

/* Sample i of a row, scaled to a byte; an index of a palette is not scaled. */
static int sample(const struct png *g, const unsigned char *row, int64_t i)
{
    if (g->depth >= 8) {
        return row[i * g->depth / 8];
    }
    int v = row[i * g->depth / 8] >> (8 - g->depth - (int)(i * g->depth % 8)) & ((1 << g->depth) - 1);
    return g->kind == 3 ? v : v * 255 / ((1 << g->depth) - 1);
}

static mc_status put_pixel(const struct png *g, const unsigned char *row, int64_t i, uint8_t *out, int64_t at)
{
    int64_t plane = g->rows * g->columns;
    if (g->kind == 3) {
        int v = sample(g, row, i);
        if (v >= g->colours) {
            return damaged("a colour that is not in the palette");
        }
        for (int c = 0; c < 3; c++) {
            out[c * plane + at] = g->palette[v][c];
        }
        return MC_OK;
    }
    for (int c = 0; c < (g->channels < 3 ? 1 : 3); c++) {
        out[c * plane + at] = (uint8_t)sample(g, row, i * g->channels + c);
    }
    return MC_OK;
}

static mc_status put_pass(const struct png *g, const struct pass *p, unsigned char **from, uint8_t *out)
{
    int64_t columns = pass_columns(g, p), rows = pass_rows(g, p), n = row_bytes(g, columns);
    int step = g->channels * g->depth / 8 > 1 ? g->channels * g->depth / 8 : 1;
    mc_status s = MC_OK;
    for (int64_t y = 0; y < rows && columns > 0 && s == MC_OK; y++) {
        unsigned char *row = *from + 1;
        s = unfilter(**from, row, y ? row - n - 1 : NULL, n, step);
        for (int64_t x = 0; x < columns && s == MC_OK; x++) {
            s = put_pixel(g, row, x, out, (p->y + y * p->dy) * g->columns + p->x + x * p->dx);
        }
        *from += n + 1;
    }
    return s;
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

/* Decodes the rows of all passes, each of which begins with its filter. */
static mc_status unpack(const struct png *g, unsigned char **rows, int first, int last)
{
    size_t n = 0, left = g->npacked;
    const unsigned char *p = (const unsigned char *)g->packed;
    for (int i = first; i <= last; i++) {
        int64_t columns = pass_columns(g, &passes[i]);
        n += columns > 0 ? (size_t)(pass_rows(g, &passes[i]) * (row_bytes(g, columns) + 1)) : 0;
    }
    if (left < 7 || (p[0] & 15) != 8 || (p[0] * 256 + p[1]) % 31 || (p[1] & 32) || n / 1032 > left) {
        return damaged("invalid compressed data");
    }
    *rows = mc_alloc(n, "data");
    mc_status s = *rows ? mc_inflate(*rows, n, p + 2, left - 6) : MC_EMEMORY;
    return s == MC_OK && adler32(*rows, n) != big(p + left - 4) ? damaged("wrong checksum") : s;
}

static mc_array *read_png(struct bytes in)
{
    struct png g = { 0 };
    unsigned char *rows = NULL;
    mc_array *out = NULL;
    g.packed = mc_alloc(in.n, "data");
    mc_status s = g.packed ? read_chunks(&g, in) : MC_EMEMORY;
    int first = g.interlaced ? 1 : 0, last = g.interlaced ? 7 : 0;
    s = s < 0 ? s : unpack(&g, &rows, first, last);
    if (s == MC_OK) {
        out = mc_array_new(MC_UINT8, MC_SHAPE(g.kind & 2 ? 3 : 1, g.rows, g.columns));
        s = out ? MC_OK : mc_last_status();
    }
    unsigned char *at = rows;
    for (int i = first; i <= last && s == MC_OK; i++) {
        s = put_pass(&g, &passes[i], &at, mc_array_data(out));
    }
    if (s < 0) {
        mc_array_unref(&out);
    }
    mc_free(rows);
    mc_free(g.packed);
    return out;
}

/* ---- PPM and PGM: P6 or P5, columns, rows, the largest value, one blank, the bytes ---- */

/* The next number after blanks and comments; -1: none. */
static int64_t number(struct bytes in, size_t *at)
{
    int64_t v = -1;
    bool remark = false;
    for (; *at < in.n && (remark || in.p[*at] == '#' || (in.p[*at] && strchr(" \t\r\n\f", in.p[*at])));
         (*at)++) {
        remark = in.p[*at] == '#' || (remark && in.p[*at] != '\n');
    }
    for (; *at < in.n && in.p[*at] >= '0' && in.p[*at] <= '9' && v < MOST; (*at)++) {
        v = (v < 0 ? 0 : v * 10) + in.p[*at] - '0';
    }
    return v;
}

static mc_array *read_pnm(struct bytes in)
{
    size_t at = 2;
    int64_t channels = in.p[1] == '6' ? 3 : 1, columns = number(in, &at), rows = number(in, &at),
            most = number(in, &at);
    if (at >= in.n) {
        return truncated(), NULL;
    }
    if (columns < 1 || rows < 1 || columns > MOST || rows > MOST || most < 1 || most > 65535) {
        return damaged("invalid header"), NULL;
    }
    int wide = most > 255 ? 2 : 1;
    int64_t pixels = rows * columns;
    if ((int64_t)(in.n - at - 1) < pixels * channels * wide) {
        return truncated(), NULL;
    }
    mc_array *out = mc_array_new(MC_UINT8, MC_SHAPE(channels, rows, columns));
    const unsigned char *from = in.p + at + 1;
    for (int64_t i = 0; i < pixels && out; i++) {
        for (int64_t c = 0; c < channels; c++, from += wide) {
            int64_t v = wide == 2 ? from[0] * 256 + from[1] : from[0];
            ((uint8_t *)mc_array_data(out))[c * pixels + i] = (uint8_t)(v >= most ? 255 : v * 255 / most);
        }
    }
    return out;
}

/* ---- both ---- */

mc_array *mc_image_load(const char *path)
{
    char *data = NULL;
    size_t n = 0;
    mc_array *out = NULL;
    if (mc_file_read(path, &data, &n) < 0) {
        return NULL;
    }
    struct bytes in = { (const unsigned char *)data, n };
    bool png = n >= 1 && memcmp(data, signature, n < sizeof signature ? n : sizeof signature) == 0;
    if (png && n >= sizeof signature) {
        out = read_png(in);
    } else if (n >= 2 && in.p[0] == 'P' && (in.p[1] == '5' || in.p[1] == '6')) {
        out = read_pnm(in);
    } else if (png || n < 2) {
        truncated();
    } else {
        mc_fail(MC_EFORMAT, "the file is neither PNG nor a binary PPM or PGM");
    }
    if (!out) {
        mc_fail_again("'%s': ", path);
    }
    mc_free(data);
    return out;
}

/* ---- writing a PNG, uncompressed ---- */

static unsigned char *put_big(unsigned char *to, uint32_t v)
{
    for (int k = 24; k >= 0; k -= 8) {
        *to++ = (unsigned char)(v >> k);
    }
    return to;
}

/* Completes the chunk whose length is stored at `from` and whose bytes end at `to`. */
static unsigned char *end_chunk(unsigned char *from, unsigned char *to)
{
    put_big(from, (uint32_t)(to - from - 8));
    return put_big(to, mc_crc32(0, from + 4, (size_t)(to - from - 4)));
}

static unsigned char *begin_chunk(unsigned char *to, const char *type)
{
    memcpy(to + 4, type, 4);
    return to + 8;
}

/* Deflate's stored blocks: at most 65535 bytes each, preceded by the length and its complement. */
static unsigned char *put_stored(unsigned char *to, const unsigned char *from, size_t n)
{
    do {
        size_t now = n < 65535 ? n : 65535;
        n -= now;
        unsigned char head[5] = { n == 0, (unsigned char)now, (unsigned char)(now >> 8), (unsigned char)~now,
                                  (unsigned char)(~now >> 8) };
        memcpy(to, head, sizeof head);
        memcpy(to + sizeof head, from, now);
        to += sizeof head + now;
        from += now;
    } while (n);
    return to;
}

void *mc_image_png(const uint8_t *v, int64_t rows, int64_t columns, int channels, size_t *n)
{
    size_t width = (size_t)columns * (size_t)channels, all = (size_t)rows * (width + 1);
    unsigned char *raw = mc_alloc(all, "data"), *out = mc_alloc(all + all / 65535 * 5 + 128, "data"),
                  *at = out;
    if (!raw || !out) {
        mc_free(raw);
        mc_free(out);
        return NULL;
    }
    for (int64_t y = 0; y < rows; y++) {
        raw[(size_t)y * (width + 1)] = 0; /* no filter */
        memcpy(raw + (size_t)y * (width + 1) + 1, v + (size_t)y * width, width);
    }
    memcpy(at, signature, sizeof signature);
    unsigned char *from = at += sizeof signature;
    at = put_big(put_big(begin_chunk(at, "IHDR"), (uint32_t)columns), (uint32_t)rows);
    memcpy(at, (unsigned char[]){ 8, channels == 3 ? 2 : 0, 0, 0, 0 }, 5);
    from = end_chunk(from, at + 5);
    at = begin_chunk(from, "IDAT");
    *at++ = 0x78;
    *at++ = 0x01;
    from = end_chunk(from, put_big(put_stored(at, raw, all), adler32(raw, all)));
    at = end_chunk(from, begin_chunk(from, "IEND"));
    mc_free(raw);
    *n = (size_t)(at - out);
    return out;
}
