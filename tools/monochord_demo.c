/* monochord_demo.c: `monochord demo`: logistic regression on drawn digits, the loop of Theano's GPU
 * tutorial, and a page about the compiled function.
 *
 * Invariant: the data are generated, the same on every run; nothing is read but what NumPy's side prints. */
#include "tool.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, TRAIN = 6000, TEST = 1000, BATCH = 600, EPOCHS = 25 };
enum { LOOPS = 1000, LOOP_ROWS = 768, LOOP_COLUMNS = 300 }; /* 230,400 floats */

/* ---- digits: strokes between points of a 4 by 6 grid, '-' lifts the pen ---- */

static const char *const strokes[CLASSES] = {
    "bc ch ht tu us si ib", "cv", "ab bc ch hq qs sx", "ac ch hm mh hr rv vs", "cm mk kp - cx", "da ai il lr rv vs",
    "db bi iq qu uv vr rm mi", "ad dl lu", "bc ch hm mi ib - ir rv vu uq qm", "lc cb be ej jl - dl lv",
};

static void point(char c, double *x, double *y)
{
    int i = c - 'a'; /* a b c d in the top row, and so on down to x */
    *x = 0.2 + 0.2 * (i % 4);
    *y = 0.12 + 0.15 * (i / 4);
}

static double distance(double x, double y, const double *s)
{
    double dx = s[2] - s[0], dy = s[3] - s[1], len = dx * dx + dy * dy;
    double t = len > 0 ? ((x - s[0]) * dx + (y - s[1]) * dy) / len : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(x - s[0] - t * dx, y - s[1] - t * dy);
}

static void draw(float *image, int digit, uint64_t *state)
{
    double turn = (random_next(state) - 0.5) * 0.6, size = 0.7 + 0.3 * random_next(state), lean = (random_next(state) - 0.5) * 0.5;
    double right = (random_next(state) - 0.5) * 0.2, down = (random_next(state) - 0.5) * 0.2, pen = 0.03 + 0.035 * random_next(state);
    double line[16][4];
    int n = 0;
    for (const char *s = strokes[digit]; *s; s++) {
        if (*s >= 'a' && s[1] >= 'a' && n < COUNT(line)) {
            for (int k = 0; k < 2; k++) {
                double x, y;
                point(s[k], &x, &y);
                x += 0.05 * (random_next(state) - 0.5) - 0.5;
                y += 0.05 * (random_next(state) - 0.5) - 0.5;
                x += lean * y;
                line[n][2 * k] = 0.5 + right + size * (x * cos(turn) - y * sin(turn));
                line[n][2 * k + 1] = 0.5 + down + size * (x * sin(turn) + y * cos(turn));
            }
            n++;
        }
    }
    for (int i = 0; i < PIXELS; i++) {
        double near = 1, x = (i % SIDE + 0.5) / SIDE, y = (i / SIDE + 0.5) / SIDE;
        for (int k = 0; k < n; k++) {
            near = fmin(near, distance(x, y, line[k]));
        }
        double ink = fmin(1, fmax(0, (pen - near) * SIDE + 0.5)) + 0.15 * (random_next(state) - 0.5);
        image[i] = (float)fmin(1, fmax(0, ink));
    }
}

static void draw_all(int n, uint64_t seed, mc_array **x, mc_array **t)
{
    *x = must(mc_array_new(MC_FLOAT32, MC_SHAPE(n, PIXELS)));
    *t = must(mc_array_new(MC_INT32, MC_SHAPE(n)));
    for (int i = 0; i < n; i++) {
        int32_t digit = ((int32_t *)mc_array_data(*t))[i] = (int32_t)(random_next(&seed) * CLASSES);
        draw((float *)mc_array_data(*x) + (size_t)i * PIXELS, digit, &seed);
    }
}

/* ---- training ---- */

struct demo {
    mc_graph *g;
    mc_shared *w, *test_x, *test_t; /* the graph's */
    mc_function *train, *test;
    double loss[EPOCHS], error[EPOCHS], seconds;
    double ours[2], numpy[2]; /* the loop's seconds: into new arrays, into one; numpy 0: not there */
};

static bool compile(struct demo *d)
{
    mc_array *x, *t, *test_x, *test_t;
    draw_all(TRAIN, 1, &x, &t);
    draw_all(TEST, 2, &test_x, &test_t);
    mc_graph *g = d->g = must(mc_graph_new());
    mc_shared_new(g, "digits", x);
    mc_shared_new(g, "labels", t);
    d->test_x = mc_shared_new(g, "test_digits", test_x);
    d->test_t = mc_shared_new(g, "test_labels", test_t);
    mc_array_unref(&x), mc_array_unref(&t), mc_array_unref(&test_x), mc_array_unref(&test_t);
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "t", MC_INT32, 1);
    mc_input(g, "i", MC_INT64, 0);
    d->w = mc_shared_zeros(g, "W", MC_FLOAT32, MC_SHAPE(PIXELS, CLASSES));
    mc_shared_zeros(g, "b", MC_FLOAT32, MC_SHAPE(CLASSES));
    mc_formula(g, "h = dot(x, W) + b");
    mc_formula(g, "cost = mean(crossentropy_softmax_1hot(h, t))");
    mc_formula(g, "error = mean(neq(argmax(h, axis=1), t))");
    d->train = mc_compile(g, &(mc_spec){
        .name    = "logistic regression",
        .inputs  = "i",
        .outputs = "cost",
        .updates = "W = W - 0.3 * grad(cost, W); b = b - 0.3 * grad(cost, b)",
        .givens  = "x = digits[i*600:(i+1)*600]; t = labels[i*600:(i+1)*600]",
        .profile = 1,
    });
    d->test = mc_compile(g, &(mc_spec){ .name = "test", .outputs = "error", .givens = "x = test_digits; t = test_labels" });
    if (!d->train || !d->test) {
        complain("demo: %s", *mc_error(g) ? mc_error(g) : mc_last_error());
    }
    return d->train && d->test;
}

static bool epoch(struct demo *d, int k)
{
    double start = seconds_now(), cost = 0, sum = 0;
    for (int64_t i = 0; i < TRAIN / BATCH; i++) {
        if (mc_call(d->train, MC_IN(i), MC_OUT(&cost)) < 0) {
            return false;
        }
        sum += cost;
    }
    double took = seconds_now() - start;
    if (mc_call(d->test, MC_NONE, MC_OUT(&d->error[k])) < 0) {
        return false;
    }
    d->seconds += took;
    d->loss[k] = sum / (TRAIN / BATCH);
    int bar = (int)(d->error[k] * 120 + 0.5);
    printf("  %3d   %.4f      %5.1f%%   %7.2f ms   %8.0f   %.*s\n", k + 1, d->loss[k], 100 * d->error[k], took * 1e3, TRAIN / took,
           bar > 60 ? 60 : bar, "############################################################");
    fflush(stdout);
    return true;
}

static bool train(struct demo *d)
{
    double start = seconds_now();
    printf("Logistic regression: %d drawn digits of %d x %d pixels, batches of %d, %d to test with\n", TRAIN, SIDE, SIDE, BATCH, TEST);
    if (!compile(d)) {
        return false;
    }
    mc_compile_info info = mc_function_compile_info(d->train);
    printf("drawn and compiled in %.2f s: %zu nodes became %zu, and %d steps\n\n", seconds_now() - start, info.nodes_before,
           info.nodes_after, mc_function_nsteps(d->train));
    printf("epoch     loss  test error       time  examples/s   error\n");
    for (int k = 0; k < EPOCHS; k++) {
        if (!epoch(d, k)) {
            complain_library("demo");
            return false;
        }
    }
    printf("\n");
    return true;
}

/* ---- the tutorial's loop: exp of 230,400 floats, a thousand times ---- */

static double loop(mc_function *f, bool fresh)
{
    mc_array *y = NULL;
    double start = 0;
    for (int i = -10; i < LOOPS; i++) {
        start = i ? start : seconds_now();
        if (mc_call(f, MC_NONE, MC_OUT(&y)) < 0) {
            complain_library("demo");
            break;
        }
        if (fresh) {
            mc_array_unref(&y);
        }
    }
    double took = seconds_now() - start;
    mc_array_unref(&y);
    return took;
}

static const char numpy_side[] =
    "python3 -c \"\n"
    "import time, numpy\n"
    "x = numpy.random.rand(768, 300).astype('float32'); y = numpy.empty_like(x)\n"
    "def loop(f):\n"
    "    for i in range(10): f()\n"
    "    t = time.perf_counter()\n"
    "    for i in range(1000): f()\n"
    "    return time.perf_counter() - t\n"
    "print(loop(lambda: numpy.exp(x)), loop(lambda: numpy.exp(x, out=y)), numpy.__version__)\" 2>/dev/null";

static bool tutorial(struct demo *d)
{
    mc_graph *g = must(mc_graph_new());
    mc_array *x = must(mc_array_new(MC_FLOAT32, MC_SHAPE(LOOP_ROWS, LOOP_COLUMNS)));
    uint64_t state = 22;
    random_fill(x, &state, 1);
    mc_shared_new(g, "x", x);
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "exp", .outputs = "exp(x)" });
    mc_array_unref(&x);
    bool good = f != NULL;
    if (good) {
        printf("The GPU tutorial's loop: exp of 230,400 floats, %d calls\n", LOOPS);
        d->ours[0] = loop(f, true);
        d->ours[1] = loop(f, false);
    } else {
        complain("demo: %s", mc_error(g));
    }
    FILE *peer = good ? popen(numpy_side, "r") : NULL;
    char version[32] = "";
    bool numpy = peer && fscanf(peer, "%lf %lf %31s", &d->numpy[0], &d->numpy[1], version) == 3;
    if (peer) {
        pclose(peer);
    }
    static const char *const what[] = { "into new arrays", "into one array" };
    for (int i = 0; i < 2 && good; i++) {
        printf("  %-16s monochord %.3f s", what[i], d->ours[i]);
        if (numpy) {
            printf("   NumPy %s %.3f s   %.1f times as fast", version, d->numpy[i], d->numpy[i] / d->ours[i]);
        } else {
            d->numpy[i] = 0;
        }
        printf("\n");
    }
    if (good && !numpy) {
        printf("  (python3 with NumPy is not here to compare with)\n");
    }
    mc_function_free(f);
    mc_graph_free(g);
    return good;
}

/* ---- the page ---- */

/* One curve over the epochs, its axis from 0. */
static void curve(struct text *t, const char *what, const double *v, double scale, const char *unit, const char *colour)
{
    double w = 500, h = 190, left = 46, top = 30, bottom = 26, most = 0;
    for (int i = 0; i < EPOCHS; i++) {
        most = fmax(most, v[i] * scale);
    }
    double step = pow(10, floor(log10(fmax(most, 1e-9)))); /* 1, 2 or 5 times a power of ten */
    step *= most / step < 2 ? 0.5 : most / step < 5 ? 1 : 2;
    most = step * ceil(most / step);
    text_addf(t, "<svg viewBox=\"0 0 %.0f %.0f\" class=\"mem\" role=\"img\"><text x=\"%.0f\" y=\"14\" style=\"font-size:13px\">%s</text>\n", w, h, left, what);
    for (double y = 0; y < most + step / 2; y += step) {
        double at = h - bottom - (h - bottom - top) * y / most;
        text_addf(t, "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g%s</text>\n", left, w - 8,
                  at, at, left - 6, at + 4, y, unit);
    }
    text_addf(t, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\" points=\"", colour);
    for (int i = 0; i < EPOCHS; i++) {
        text_addf(t, "%.1f,%.1f ", left + (w - 8 - left) * i / (EPOCHS - 1), h - bottom - (h - bottom - top) * v[i] * scale / most);
    }
    text_addf(t, "\"/>\n");
    for (int i = 0; i < EPOCHS; i += 6) {
        text_addf(t, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%d</text>", left + (w - 8 - left) * i / (EPOCHS - 1), h - 8, i + 1);
    }
    text_addf(t, "</svg>\n");
}

static void base64(struct text *t, const unsigned char *s, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)s[i] << 16 | (i + 1 < n ? (unsigned)s[i + 1] << 8 : 0) | (i + 2 < n ? s[i + 2] : 0);
        char four[4] = { digit[v >> 18], digit[v >> 12 & 63], i + 1 < n ? digit[v >> 6 & 63] : '=', i + 2 < n ? digit[v & 63] : '=' };
        text_add(t, four, 4);
    }
}

/* A bitmap of SIDE x SIDE numbers between -1 (blue), 0 (white) and 1 (orange); `ink`: black on white instead. */
static void image(struct text *t, const float *v, size_t stride, float scale, bool ink)
{
    enum { HEAD = 54, ROW = SIDE * 3, ALL = HEAD + ROW * SIDE }; /* ROW is a multiple of 4, as the format asks */
    unsigned char bmp[ALL] = { 'B', 'M', ALL & 255, ALL >> 8, 0, 0, 0, 0, 0, 0, HEAD, 0, 0, 0, 40, 0, 0, 0, SIDE, 0, 0, 0, SIDE, 0, 0, 0, 1, 0, 24 };
    for (int i = 0; i < PIXELS; i++) {
        float x = fmaxf(-1, fminf(1, v[(size_t)i * stride] / scale)), up = fmaxf(x, 0), down = fmaxf(-x, 0);
        unsigned char *at = bmp + HEAD + (SIDE - 1 - i / SIDE) * ROW + i % SIDE * 3; /* the last row first, blue green red */
        at[0] = (unsigned char)(ink ? 255 - 222 * x : 255 - 249 * up - 40 * down);
        at[1] = (unsigned char)(ink ? 255 - 224 * x : 255 - 136 * up - 130 * down);
        at[2] = (unsigned char)(ink ? 255 - 228 * x : 255 - 38 * up - 196 * down);
    }
    text_addf(t, "<img width=\"84\" height=\"84\" style=\"image-rendering:pixelated;border-radius:6px\" alt=\"\" src=\"data:image/bmp;base64,");
    base64(t, bmp, sizeof bmp);
    text_addf(t, "\"/>\n");
}

static void pictures(struct text *t, const struct demo *d)
{
    mc_array *all[] = { mc_shared_borrow(d->test_x), mc_shared_borrow(d->w), mc_shared_borrow(d->test_t) };
    const float *x = mc_array_data(must(all[0])), *w = mc_array_data(must(all[1]));
    const int32_t *label = mc_array_data(must(all[2]));
    float most = 1e-6f;
    for (int i = 0; i < PIXELS * CLASSES; i++) {
        most = fmaxf(most, fabsf(w[i]));
    }
    static const char row[] = "<div style=\"display:grid;grid-template-columns:repeat(10,84px);gap:8px;margin:6px 0 14px\">\n";
    text_addf(t, "<h2>What it saw and what it learned</h2>\n<div class=\"card\"><p class=\"dim small\">One test digit of each class.</p>\n%s", row);
    for (int k = 0; k < CLASSES; k++) {
        int i = 0;
        while (i < TEST - 1 && label[i] != k) {
            i++;
        }
        image(t, x + (size_t)i * PIXELS, 1, 1, true);
    }
    text_addf(t, "</div><p class=\"dim small\">The weights of W, a column for each class: orange speaks for it, blue against.</p>\n%s", row);
    for (int k = 0; k < CLASSES; k++) {
        image(t, w + k, CLASSES, most, false);
    }
    text_addf(t, "</div></div>\n");
    for (int i = 0; i < COUNT(all); i++) {
        mc_array_unref(&all[i]);
    }
}

static void beside_numpy(struct text *t, double seconds)
{
    if (seconds > 0) {
        text_addf(t, " (NumPy %.3f s)", seconds);
    }
}

static bool write_page(const struct demo *d, const char *path)
{
    struct text t = { 0 };
    text_addf(&t, "<h2>Learning</h2>\n<div class=\"card\"><p>%d epochs over %d digits in batches of %d took %.0f ms: %.0f examples a second.</p>\n"
              "<div style=\"display:grid;grid-template-columns:1fr 1fr;gap:12px\">\n", EPOCHS, TRAIN, BATCH, d->seconds * 1e3, TRAIN * EPOCHS / d->seconds);
    curve(&t, "loss by epoch", d->loss, 1, "", "var(--a)");
    curve(&t, "test error by epoch", d->error, 100, "%", "var(--d)");
    text_addf(&t, "</div></div>\n");
    pictures(&t, d);
    text_addf(&t, "<h2>exp of 230,400 floats, %d calls</h2>\n<div class=\"card\"><p>Into new arrays: %.3f s", LOOPS, d->ours[0]);
    beside_numpy(&t, d->numpy[0]);
    text_addf(&t, ". Into one array: %.3f s", d->ours[1]);
    beside_numpy(&t, d->numpy[1]);
    text_addf(&t, ".</p></div>\n<h2>The training function</h2>\n");
    FILE *to = fopen(path, "w");
    mc_status s = to ? mc_function_report_with(d->train, to, "Monochord: logistic regression", t.s) : MC_EFILE;
    bool good = to && fclose(to) == 0 && s == MC_OK;
    if (good) {
        char *full = realpath(path, NULL);
        printf("\nThe page with graph, kernels, times and pictures: %s\n", full ? full : path);
        free(full);
    } else {
        complain("cannot write '%s': %s", path, to && s < 0 ? mc_last_error() : strerror(errno));
    }
    text_free(&t);
    return good;
}

int command_demo(int argc, char **argv)
{
    struct demo d = { 0 };
    if (argc > 2) {
        return complain("usage: monochord demo [PAGE]");
    }
    bool good = train(&d) && tutorial(&d) && write_page(&d, argc == 2 ? argv[1] : "demo.html");
    mc_function_free(d.train);
    mc_function_free(d.test);
    mc_graph_free(d.g);
    return !good;
}
