/* data_digits.c: generated pictures of handwritten digits: curves through points that are jittered, slanted,
 * scaled and moved at random, drawn by a pen of random width, with noise.
 *
 * Invariant: all arithmetic is on integers, so every machine draws the same bits, and picture i depends only
 * on the seed and i. */
#include "nn/data.h"
#include <stdlib.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, TRAIN = 60000, TEST = 10000 };
enum { UNIT = 256 }; /* parts of a pixel; the origin is the centre of the picture */
/* most points of a digit; line segments between two points; most segments of a digit */
enum { POINTS = 24, SEGMENTS = 4, LINES = POINTS * SEGMENTS };

/* Curves through points x,y from 0 to 100. A repeated point is a corner; a semicolon separates curves. */
static const struct glyph {
    int digit;
    const char *path;
} glyphs[] = {
    { 0, "52,8 30,20 22,50 32,82 52,92 70,80 78,50 70,20 50,8" },
    { 0, "60,10 36,16 24,46 30,78 50,92 72,76 76,44 66,16 48,12" },
    { 1, "50,8 50,36 50,64 50,92" },
    { 1, "34,26 52,8 52,8 51,40 50,92" },
    { 1, "36,24 52,8 52,8 52,92 52,92 ; 34,92 70,92" },
    { 2, "26,28 36,10 60,10 72,28 60,52 26,90 26,90 76,90" },
    { 2, "28,24 44,8 66,16 68,36 48,66 30,86 24,78 38,76 54,88 76,86" },
    { 3, "28,18 46,8 68,16 66,36 46,46 46,46 70,56 72,78 50,92 26,82" },
    { 3, "28,10 70,10 70,10 46,42 46,42 68,50 74,72 54,92 26,84" },
    { 4, "60,8 22,62 22,62 80,62 ; 62,36 62,92" },
    { 4, "32,10 28,48 30,54 70,52 ; 70,10 66,50 66,92" },
    { 5, "72,10 34,10 34,10 30,44 30,44 54,38 74,58 66,84 44,92 24,82" },
    { 5, "36,12 32,46 32,46 58,42 72,62 60,88 26,86 ; 36,12 74,8" },
    { 6, "66,10 40,28 26,60 34,86 54,92 72,76 66,56 46,52 28,68" },
    { 6, "58,8 34,36 28,70 44,92 68,84 70,62 52,54 32,66" },
    { 7, "24,12 76,12 76,12 56,50 44,92" },
    { 7, "24,14 74,10 74,10 52,52 42,92 ; 36,52 68,50" },
    { 8, "66,20 48,8 30,20 36,38 62,56 72,76 50,92 28,76 38,54 62,38 68,22" },
    { 8, "50,48 32,34 34,14 52,8 68,18 64,38 50,48 30,64 32,86 52,92 72,82 68,62 50,48" },
    { 9, "70,32 56,48 34,42 30,22 46,8 66,14 72,32 68,62 56,92" },
    { 9, "68,16 46,8 28,24 36,46 58,44 70,20 70,20 70,56 68,92" },
};

struct point {
    int32_t x, y; /* UNITs from the centre */
};

struct drawing {
    struct point from[LINES], to[LINES];
    int n;
};

/* A random number from -most to most: the sum of two uniform ones. */
static int32_t jitter(struct mc_augment_random *d, int32_t most)
{
    return (int32_t)(mc_augment_random_below(d, most + 1) + mc_augment_random_below(d, most + 1)) - most;
}

static int32_t between(struct mc_augment_random *d, int32_t least, int32_t most)
{
    return least + (int32_t)mc_augment_random_below(d, most - least + 1);
}

/* How the points of one picture are transformed: a matrix in units of 1/1024, and an offset. */
struct transform {
    int32_t xx, xy, yx, yy, right, down;
};

static struct transform transform_of(struct mc_augment_random *d)
{
    int32_t size = between(d, 800, 1080), wide = size * between(d, 780, 1100) / 1024;
    return (struct transform){ wide, jitter(d, 500),      jitter(d, 300),
                               size, jitter(d, 3 * UNIT), jitter(d, 3 * UNIT) };
}

static struct point transformed(const struct transform *h, int32_t x, int32_t y, struct mc_augment_random *d)
{
    enum { SCALE = 56 }; /* 100 of the path's numbers are 22 pixels, so one is 56 UNITs */
    int32_t u = (x - 50) * SCALE + jitter(d, 2 * UNIT), v = (y - 50) * SCALE + jitter(d, 2 * UNIT);
    return (struct point){ (h->xx * u - h->xy * v) / 1024 + h->right,
                           (h->yx * u + h->yy * v) / 1024 + h->down };
}

/* The Catmull-Rom spline between b and c at t = k/SEGMENTS; a and e are their neighbours:
 * (2b + (c - a) t + (2a - 5b + 4c - e) t^2 + (3b - a - 3c + e) t^3) / 2. */
static int32_t curve(int32_t a, int32_t b, int32_t c, int32_t e, int32_t k)
{
    int32_t cubic = (3 * b - a - 3 * c + e) * k, square = (2 * a - 5 * b + 4 * c - e) * SEGMENTS;
    return (2 * b * SEGMENTS * SEGMENTS * SEGMENTS +
            ((cubic + square) * k + (c - a) * SEGMENTS * SEGMENTS) * k) /
           (2 * SEGMENTS * SEGMENTS * SEGMENTS);
}

static void stroke(struct drawing *w, const struct point *p, int n)
{
    for (int i = 0; i + 1 < n; i++) {
        const struct point *a = p + (i ? i - 1 : 0), *b = p + i, *c = p + i + 1,
                           *e = p + (i + 2 < n ? i + 2 : n - 1);
        struct point at = *b;
        for (int k = 1; k <= SEGMENTS && w->n < LINES; k++) {
            struct point next = { curve(a->x, b->x, c->x, e->x, k), curve(a->y, b->y, c->y, e->y, k) };
            w->from[w->n] = at;
            w->to[w->n++] = at = next;
        }
    }
}

static void draw_glyph(struct drawing *w, const char *path, struct mc_augment_random *d)
{
    struct transform h = transform_of(d);
    struct point p[POINTS];
    int n = 0, last_x = -1, last_y = -1;
    w->n = 0;
    for (char *at = (char *)path; *at;) {
        at += strspn(at, " ");
        if (*at == ';') {
            stroke(w, p, n);
            n = 0;
            at++;
            continue;
        }
        int x = (int)strtol(at, &at, 10), y = (int)strtol(at + 1, &at, 10); /* + 1: the comma */
        if (n > 0 && x == last_x && y == last_y && n < POINTS) {
            p[n] = p[n - 1]; /* a corner: the same point with the same jitter */
            n++;
        } else if (n < POINTS) {
            p[n++] = transformed(&h, x, y, d);
        }
        last_x = x;
        last_y = y;
    }
    stroke(w, p, n);
}

/* The square of the distance from (x, y) to the segment from a to b, in UNITs. */
static int64_t distance(int32_t x, int32_t y, struct point a, struct point b)
{
    int64_t dx = b.x - a.x, dy = b.y - a.y, px = x - a.x, py = y - a.y, dot = px * dx + py * dy,
            len = dx * dx + dy * dy;
    if (dot <= 0 || len == 0) {
        return px * px + py * py;
    }
    if (dot >= len) {
        return (px - dx) * (px - dx) + (py - dy) * (py - dy);
    }
    int64_t across = px * dy - py * dx; /* twice the triangle's area */
    return across * across / len;
}

static int pixel_of(int32_t v) /* the pixel that contains v, limited to the picture */
{
    int32_t i = (v + SIDE * UNIT / 2) / UNIT;
    return i < 0 ? 0 : i >= SIDE ? SIDE - 1 : i;
}

/* Draws the segments. Ink falls from full to none over one pixel at the edge of the pen, linearly in the
 * square of the distance. */
static void ink(uint8_t *page, const struct drawing *w, int32_t pen)
{
    int64_t inner = pen - UNIT / 2, outer = pen + UNIT / 2, full = inner > 0 ? inner * inner : 0,
            none = outer * outer;
    for (int i = 0; i < w->n; i++) {
        struct point a = w->from[i], b = w->to[i];
        int left = pixel_of((a.x < b.x ? a.x : b.x) - (int32_t)outer),
            right = pixel_of((a.x > b.x ? a.x : b.x) + (int32_t)outer);
        int top = pixel_of((a.y < b.y ? a.y : b.y) - (int32_t)outer),
            bottom = pixel_of((a.y > b.y ? a.y : b.y) + (int32_t)outer);
        for (int y = top; y <= bottom; y++) {
            for (int x = left; x <= right; x++) {
                int64_t far = distance((x * 2 + 1 - SIDE) * UNIT / 2, (y * 2 + 1 - SIDE) * UNIT / 2, a, b);
                int v = far <= full ? 255 : far >= none ? 0 : (int)(255 * (none - far) / (none - full));
                uint8_t *at = page + y * SIDE + x;
                *at = (uint8_t)(v > *at ? v : *at);
            }
        }
    }
}

/* Adds noise to all pixels, to eight from each random number. */
static void add_noise(uint8_t *page, int most, struct mc_augment_random *d)
{
    for (int i = 0; i < PIXELS; i += 8) {
        uint64_t bits = mc_augment_random_next(d);
        for (int k = 0; k < 8; k++, bits >>= 8) {
            int v = page[i + k], g = (int)(bits & 255) * most / 256;
            page[i + k] = (uint8_t)(v > 127 ? v - g : v + g);
        }
    }
}

static void draw(uint8_t *page, int digit, struct mc_augment_random *d)
{
    struct drawing w;
    int first = 0, n = 0;
    for (int i = 0; i < (int)COUNT(glyphs); i++) {
        first = glyphs[i].digit < digit ? i + 1 : first;
        n += glyphs[i].digit == digit;
    }
    draw_glyph(&w, glyphs[first + (int)mc_augment_random_below(d, n)].path, d);
    ink(page, &w, between(d, UNIT * 6 / 10, UNIT * 18 / 10));
    add_noise(page, between(d, 0, 60), d);
}

static mc_status draw_all(int64_t n, uint64_t seed, struct mc_example_set *out)
{
    out->text = "generated digits";
    out->classes = CLASSES;
    if (n < 1) {
        return mc_fail(MC_EARG, "the number of digits must be at least 1, not %lld", (long long)n);
    }
    out->x = mc_array_new(MC_UINT8, MC_SHAPE(n, 1, SIDE, SIDE));
    out->t = out->x ? mc_array_new(MC_INT32, MC_SHAPE(n)) : NULL;
    for (int64_t i = 0; i < n && out->t; i++) {
        struct mc_augment_random d = mc_augment_random_of(seed, (uint64_t)i, 0);
        int32_t digit = ((int32_t *)mc_array_data(out->t))[i] = (int32_t)mc_augment_random_below(&d, CLASSES);
        draw((uint8_t *)mc_array_data(out->x) + i * PIXELS, digit, &d);
    }
    return out->t ? MC_OK : mc_last_status();
}

mc_data *mc_data_digits(int64_t n, uint64_t seed)
{
    struct mc_example_set r = { 0 };
    if (draw_all(n, seed, &r) < 0) {
        mc_example_set_free(&r);
        return NULL;
    }
    return mc_data_finish(&r, MC_TRAIN);
}

/* digits, or digits:N */
bool mc_digits_knows(const char *where)
{
    return strncmp(where, "digits", 6) == 0 && (where[6] == '\0' || where[6] == ':');
}

mc_status mc_digits_read(const char *where, enum mc_part part, struct mc_example_set *out)
{
    int64_t n = part == MC_TRAIN ? TRAIN : TEST;
    if (where[6] == ':') {
        char *end;
        long long count = strtoll(where + 7, &end, 10);
        if (*end || end == where + 7 || count < 1 || count > 100000000) {
            return mc_fail(MC_EARG, "'%s': digits:N needs a whole number from 1 to 100000000", where);
        }
        n = part == MC_TRAIN ? count : (count * TEST + TRAIN - 1) / TRAIN;
    }
    return draw_all(n, part == MC_TRAIN ? 1 : 2, out);
}
