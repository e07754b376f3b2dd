/* monochord_train_fit.c: numbers that were learned, in a page: how well they are met, true against predicted,
 * the largest errors.
 *
 * Invariant: only the test set is looked at. */
#include "train.h"
#include <math.h>
#include <stdlib.h>

enum { WIDE = 360, HIGH = 340, LEFT = 62, RIGHT = 12, TOP = 30, BOTTOM = 44 };
enum { MOST_CHARTS = 4, MOST_POINTS = 2000, MOST_ROWS = 20, WORST = 10, TICKS = 4 };

static const char style[] =
    "<style>svg.fit{width:100%;height:auto;display:block;max-width:520px}svg.fit text{font:12px "
    "system-ui,sans-serif;fill:var(--dim)}svg.fit .t{font-size:13px;fill:var(--ink)}"
    "svg.fit .g{stroke:var(--line)}svg.fit .one{stroke:var(--d);stroke-width:1.5;stroke-dasharray:5 "
    "4}svg.fit circle{fill:var(--a);fill-opacity:.55}</style>\n";

static void table(struct text *t, const struct run *r, const struct findings *f)
{
    text_addf(
        t,
        "<p class=\"dim small\">For each number that the network gives: R², the share of the variance that "
        "it explains (100%% is perfect, 0%% as good as always saying the "
        "mean), the mean of the absolute error and the largest one, in the units of the data.</p>\n<div "
        "class=\"card\"><table class=\"plain\"><tr><th>number</th>"
        "<th class=\"r\">R²</th><th class=\"r\">mean |error|</th><th class=\"r\">largest</th></tr>\n");
    for (int k = 0; k < f->classes && k < MOST_ROWS; k++) {
        struct fit fit = fit_of(f, k);
        text_addf(t, "<tr><td>");
        html_add(t, mc_data_class(r->held, k));
        text_addf(t, isfinite(fit.r2) ? "</td><td class=\"r\">%.2f%%</td>" : "</td><td class=\"r\">–</td>",
                  100 * fit.r2);
        text_addf(t, "<td class=\"r\">%.4g</td><td class=\"r\">%.4g</td></tr>\n", fit.mean_error,
                  fit.worst_error);
    }
    text_addf(t, "</table></div>\n");
}

/* The next of 1, 2, 5 times a power of ten. */
static double tick_of(double v)
{
    double power = pow(10, floor(log10(v)));
    return v > 5 * power ? 10 * power : v > 2 * power ? 5 * power : v > power ? 2 * power : power;
}

/* True to the right, predicted upwards, on the same scale. */
static void scatter(struct text *t, const struct run *r, const struct findings *f, int k)
{
    struct fit fit = fit_of(f, k);
    double room = fit.most > fit.least ? 0.04 * (fit.most - fit.least) : 1, low = fit.least - room,
           high = fit.most + room;
    double across = (WIDE - LEFT - RIGHT) / (high - low), up = (HIGH - TOP - BOTTOM) / (high - low);
    int64_t every = (f->n + MOST_POINTS - 1) / MOST_POINTS;
    text_addf(t,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fit\" viewBox=\"0 0 %d %d\" role=\"img\" "
              "aria-label=\"predicted against true\">\n<text class=\"t\" x=\"%d\" y=\"16\">",
              WIDE, HIGH, LEFT);
    html_add(t, mc_data_class(r->held, k));
    text_addf(t, "</text>\n");
    double tick = tick_of((high - low) / TICKS);
    for (double i = ceil(low / tick); i <= floor(high / tick); i++) {
        double v = i * tick, x = LEFT + across * (v - low), y = HIGH - BOTTOM - up * (v - low);
        text_addf(t,
                  "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                  "text-anchor=\"end\">%g</text>"
                  "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                  LEFT, WIDE - RIGHT, y, y, LEFT - 6, y + 4, v, x, HIGH - BOTTOM + 16, v);
    }
    text_addf(
        t,
        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">true</text><text transform=\"translate(13 %.1f) "
        "rotate(-90)\" text-anchor=\"middle\">predicted</text>\n",
        LEFT + (WIDE - LEFT - RIGHT) / 2.0, HIGH - 8, TOP + (HIGH - TOP - BOTTOM) / 2.0);
    text_addf(t, "<line class=\"one\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, HIGH - BOTTOM,
              WIDE - RIGHT, TOP);
    for (int64_t i = 0; i < f->n; i += every) {
        double truth = f->truth[i * f->classes + k], guess = f->guess[i * f->classes + k];
        text_addf(
            t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>true %.5g, predicted %.5g</title></circle>\n",
            LEFT + across * (truth - low), HIGH - BOTTOM - up * (guess - low), truth, guess);
    }
    text_addf(t, "</svg>\n");
}

struct miss { int64_t i; double by; };

static int by_size(const void *a, const void *b)
{
    const struct miss *x = a, *y = b;
    return x->by > y->by ? -1 : x->by < y->by ? 1 : (x->i > y->i) - (x->i < y->i);
}

/* Of the first number. */
static void worst(struct text *t, const struct run *r, const struct findings *f)
{
    struct miss *m = must(malloc((size_t)f->n * sizeof *m));
    for (int64_t i = 0; i < f->n; i++) {
        m[i] = (struct miss){ i, fabs(f->truth[i * f->classes] - f->guess[i * f->classes]) };
    }
    qsort(m, (size_t)f->n, sizeof *m, by_size);
    text_addf(t,
              "<h2>The largest errors</h2>\n<p class=\"dim small\">The examples of the test set whose <b>");
    html_add(t, mc_data_class(r->held, 0));
    text_addf(t, "</b> was predicted worst, by their index in the test set.</p>\n<div class=\"card\"><table "
                 "class=\"plain\"><tr><th class=\"r\">example</th><th class=\"r\">true</th>"
                 "<th class=\"r\">predicted</th><th class=\"r\">error</th></tr>\n");
    for (int64_t i = 0; i < f->n && i < WORST; i++) {
        double truth = f->truth[m[i].i * f->classes], guess = f->guess[m[i].i * f->classes];
        text_addf(t,
                  "<tr><td class=\"r\">%lld</td><td class=\"r\">%.5g</td><td class=\"r\">%.5g</td><td "
                  "class=\"r\">%+.4g</td></tr>\n",
                  (long long)m[i].i + 1, truth, guess, guess - truth);
    }
    text_addf(t, "</table></div>\n");
    free(m);
}

void draw_fits(struct text *t, const struct run *r, const struct findings *f)
{
    int charts = f->classes < MOST_CHARTS ? f->classes : MOST_CHARTS;
    text_addf(t, "%s<h2>True and predicted</h2>\n", style);
    table(t, r, f);
    text_addf(
        t,
        "<p class=\"dim small\">A point for each example of the test set%s: what is true to the right, what "
        "was predicted upwards. On the dashed line both are the same.</p>\n"
        "<div class=\"two\">\n",
        f->n > MOST_POINTS ? ", as many as there is room for" : "");
    for (int k = 0; k < charts; k++) {
        text_addf(t, "<div class=\"card\">");
        scatter(t, r, f, k);
        text_addf(t, "</div>\n");
    }
    text_addf(t, "</div>\n");
    worst(t, r, f);
}
