/* monochord_train_draw.c: curves as SVG, and bytes as pictures in a page.
 *
 * Invariant: what is drawn is right in a reader's light and dark, and asks for nothing that is not in it. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 520, HIGH = 260, LEFT = 54, RIGHT = 10, TOP = 30, BOTTOM = 30 };

/* A chart is right by itself, in a reader's light or dark, and in a page. */
static const char chart_style[] =
    "<style>svg.chart{width:100%;max-width:640px;height:auto;display:block;margin:0 auto}svg.chart "
    "text{font:12px system-ui,sans-serif;fill:#5f6872}svg.chart .t{font-size:13px;fill:#1f2328}"
    "svg.chart .g{stroke:#dfe3e8}svg.chart .a{stroke:#3b7dd8}svg.chart .d{stroke:#d97706}svg.chart "
    "circle.a{fill:#3b7dd8}svg.chart circle.d{fill:#d97706}"
    "@media(prefers-color-scheme:dark){svg.chart text{fill:#9aa3ad}svg.chart .t{fill:#e8eaed}svg.chart "
    ".g{stroke:#2b3038}svg.chart .a{stroke:#5b9bf0}"
    "svg.chart .d{stroke:#f0a04b}svg.chart circle.a{fill:#5b9bf0}svg.chart circle.d{fill:#f0a04b}}"
    "@media(max-width:480px){svg.chart text,svg.chart .t{font-size:16px}}</style>";

/* ---- curves ---- */

struct curve {
    size_t field;       /* of struct epoch */
    const char *class;  /* in chart_style */
};

static double at_epoch(const struct progress *p, const struct curve *c, int i)
{
    double v;
    memcpy(&v, (const char *)&p->history[i] + c->field, sizeof v);
    return v;
}

static double x_of(const struct progress *p, int i)
{
    return LEFT + (p->nhistory > 1 ? (double)(WIDE - LEFT - RIGHT) * i / (p->nhistory - 1) : 0);
}

static double y_of(double v, double low, double high)
{
    return TOP + (HIGH - TOP - BOTTOM) * (1 - (log10(v) - low) / (high - low));
}

static const double steps[] = { 1, 2, 5 }; /* lines stand at these times powers of ten */

/* The line at or above v, or below. */
static double round_to(double v, bool up)
{
    double power = pow(10, floor(log10(v))), at = power;
    for (int k = 0; k < COUNT(steps); k++) {
        at = steps[k] * power <= v * (1 + 1e-9) ? steps[k] * power : at;
    }
    return !up || at >= v ? at : at >= 5 * power ? 10 * power : at >= 2 * power ? 5 * power : 2 * power;
}

/* Two curves over the epochs, up by factors.  scale: 100 for percent. */
static void chart(struct text *t, const struct progress *p, const struct curve c[2], const char *title,
                  double scale, const char *unit)
{
    double least = 1e300, most = 0;
    for (int i = 0; i < p->nhistory; i++) {
        for (int k = 0; k < 2; k++) {
            double v = at_epoch(p, &c[k], i) * scale;
            least = v > 0 && v < least ? v : least;
            most = v > most ? v : most;
        }
    }
    most = most > 0 ? most : 1e-6;
    double low = log10(round_to(fmin(least, most), false)), high = log10(round_to(most, true) * 1.05);
    text_addf(t,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" "
              "aria-label=\"%s\">%s\n"
              "<text x=\"%d\" y=\"13\" class=\"t\">%s</text>\n",
              WIDE, HIGH, title, chart_style, LEFT, title);
    static const char *const keys[] = { "training", "test" };
    for (int k = 0; k < 2; k++) {
        int x = WIDE - RIGHT - 166 + 100 * k;
        text_addf(t,
                  "<line x1=\"%d\" x2=\"%d\" y1=\"9\" y2=\"9\" stroke-width=\"3\" class=\"%s\"/><text "
                  "x=\"%d\" y=\"13\">%s</text>\n",
                  x, x + 18, c[k].class, x + 24, keys[k]);
    }
    bool fine = high - low < 3.2;
    for (int e = (int)floor(low); e <= (int)ceil(high); e++) {
        for (int k = 0; k < COUNT(steps); k += fine ? 1 : COUNT(steps)) {
            double v = steps[k] * pow(10, e);
            if (log10(v) >= low - 1e-9 && log10(v) <= high) {
                text_addf(t,
                          "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" "
                          "y=\"%.1f\" text-anchor=\"end\">%g%s</text>\n",
                          LEFT, WIDE - RIGHT, y_of(v, low, high), y_of(v, low, high), LEFT - 8,
                          y_of(v, low, high) + 4, v, unit);
            }
        }
    }
    int every = p->nhistory > 12 ? (p->nhistory + 9) / 10 : 1;
    for (int i = 0; i < p->nhistory; i += every) {
        text_addf(t, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x_of(p, i), HIGH - 8,
                  i + 1);
    }
    for (int k = 0; k < 2; k++) {
        text_addf(t,
                  "<polyline fill=\"none\" class=\"%s\" stroke-width=\"2.5\" stroke-linejoin=\"round\" "
                  "stroke-linecap=\"round\" points=\"",
                  c[k].class);
        for (int i = 0; i < p->nhistory; i++) {
            double v = at_epoch(p, &c[k], i) * scale;
            text_addf(t, "%.1f,%.1f ", x_of(p, i), y_of(v > 0 ? v : pow(10, low), low, high));
        }
        text_addf(t, "\"/>\n");
        for (int i = 0; i < p->nhistory; i++) {
            double v = at_epoch(p, &c[k], i) * scale;
            text_addf(t,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"%s\"><title>epoch %d: "
                      "%.4g%s</title></circle>\n",
                      x_of(p, i), y_of(v > 0 ? v : pow(10, low), low, high), c[k].class, i + 1, v, unit);
        }
    }
    text_addf(t, "</svg>\n");
}

static const struct curve errors[] = { { offsetof(struct epoch, error), "a" }, { offsetof(struct epoch, test_error), "d" } };
static const struct curve losses[] = { { offsetof(struct epoch, loss), "a" }, { offsetof(struct epoch, test_loss), "d" } };

void draw_curves(struct text *t, const struct run *r)
{
    text_addf(t, "<h2>Learning</h2>\n<div class=\"two\">\n<div class=\"card\">");
    if (r->m.errors) {
        chart(t, &r->p, errors, "Wrong, by epoch", 100, "%");
        text_addf(t, "</div>\n<div class=\"card\">");
    }
    chart(t, &r->p, losses, "Loss, by epoch", 1, "");
    text_addf(t, "</div></div>\n<p class=\"dim small\">The training figures are means over an epoch while "
                 "the parameters still change, those of the test set are "
                 "taken at its end, without dropout.</p>\n");
}

bool curve_write(const struct run *r)
{
    struct text t = { 0 };
    if (r->m.errors) {
        chart(&t, &r->p, errors, "Wrong, by epoch", 100, "%");
    } else {
        chart(&t, &r->p, losses, "Loss, by epoch", 1, "");
    }
    bool good = mc_file_write(r->o.curve, t.s, t.n) == MC_OK || (complain("%s", mc_last_error()), false);
    text_free(&t);
    return good;
}

/* ---- pictures ---- */

static void base64(struct text *t, const unsigned char *s, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)s[i] << 16 | (i + 1 < n ? (unsigned)s[i + 1] << 8 : 0) |
                     (i + 2 < n ? s[i + 2] : 0);
        char four[4] = { digit[v >> 18], digit[v >> 12 & 63], i + 1 < n ? digit[v >> 6 & 63] : '=',
                         i + 2 < n ? digit[v & 63] : '=' };
        text_add(t, four, 4);
    }
}

void draw_picture(struct text *t, const uint8_t *v, int64_t rows, int64_t columns, int channels, int wide,
                  const char *says)
{
    size_t n;
    void *png = must(mc_image_png(v, rows, columns, channels, &n));
    text_addf(t, "<img width=\"%d\" height=\"%lld\" alt=\"%s\" title=\"%s\" src=\"data:image/png;base64,",
              wide, (long long)(wide * rows / columns), says, says);
    base64(t, png, n);
    text_addf(t, "\"/>");
    mc_free(png);
}

/* An example (channels, rows, columns); its numbers are stretched to black and white. */
void draw_example(struct text *t, const mc_data *d, int64_t i, int wide, const char *says)
{
    const int64_t *dims = mc_data_dims(d);
    int64_t plane = dims[1] * dims[2], n = dims[0] * plane;
    int channels = dims[0] == 3 ? 3 : 1;
    float *x = must(malloc((size_t)n * sizeof *x)), low = 0, high = 1e-6f;
    uint8_t *v = must(malloc((size_t)(plane * channels)));
    mc_data_example(d, i, x);
    for (int64_t k = 0; k < n; k++) {
        low = fminf(low, x[k]);
        high = fmaxf(high, x[k]);
    }
    for (int64_t k = 0; k < plane * channels; k++) {
        v[k] = draw_byte((x[k % channels * plane + k / channels] - low) / (high - low));
    }
    draw_picture(t, v, dims[1], dims[2], channels, wide, says);
    free(x);
    free(v);
}

bool draw_can(const mc_data *d)
{
    return mc_data_rank(d) == 3 && (mc_data_dims(d)[0] == 1 || mc_data_dims(d)[0] == 3);
}
