/* monochord_train_report.c: a run as one page of HTML: how it learned, what it sees, what it gets wrong, how it is computed.
 *
 * Invariant: the page needs nothing but itself; pictures are PNG in it, drawings SVG, both right in light and dark. */
#include "train.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILTERS = 64, MOST_MAPS = 32, MOST_LAYERS = 12, PROFILED = 5, WIDE = 520, HIGH = 250, LEFT = 54, RIGHT = 10, TOP = 14, BOTTOM = 30 };

static const char style[] =
    "<style>.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(360px,1fr));gap:14px}"
    ".shots{display:flex;flex-wrap:wrap;gap:10px}.shots figure{margin:0;text-align:center}"
    ".shots img,.filters img{image-rendering:pixelated;display:block;border-radius:5px}"
    ".shots figcaption{font-size:13px;margin-top:3px}.shots figcaption b{color:var(--d)}"
    ".filters{display:flex;flex-wrap:wrap;gap:6px}"
    ".key{display:inline-block;width:18px;height:3px;border-radius:2px;vertical-align:middle;margin:0 6px 0 14px}"
    "table.plain{border-collapse:collapse;font-size:13.5px;width:100%}table.plain th{text-align:left;font-weight:600;color:var(--dim)}"
    "table.plain td,table.plain th{padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}"
    "table.plain td.r,table.plain th.r{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "table.plain tr:last-child td{border-bottom:0}table.plain code{overflow-wrap:anywhere}"
    "table.mat{border-collapse:separate;border-spacing:2px;font-size:13px;font-variant-numeric:tabular-nums}"
    "table.mat td,table.mat th{min-width:38px;height:30px;text-align:center;border-radius:4px;font-weight:400;color:var(--dim)}"
    "table.mat td{color:var(--ink)}table.mat td.z{color:var(--line)}table.mat td.ok{background:color-mix(in srgb,var(--c) 24%,transparent)}"
    "svg.chart text{font:12px system-ui,sans-serif;fill:var(--dim)}svg.chart{width:100%;height:auto;display:block}svg.chart .g{stroke:var(--line)}"
    "</style>\n";

static void html(struct text *t, const char *s)
{
    for (; *s; s++) {
        const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : *s == '"' ? "&quot;" : NULL;
        text_add(t, as ? as : s, as ? strlen(as) : 1);
    }
}

/* ---- tiles ---- */

static void tile(struct text *t, const char *what, const char *fmt, ...) TOOL_PRINTF(3, 4);
static void tile(struct text *t, const char *what, const char *fmt, ...)
{
    char value[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    text_addf(t, "<div><b>%s</b><span>%s</span></div>\n", value, what);
}

static void tiles(struct text *t, const struct run *r, const struct findings *f)
{
    double seconds = 0;
    int n = r->p.nhistory;
    for (int i = 0; i < n; i++) {
        seconds += r->p.history[i].seconds;
    }
    text_addf(t, "<div class=\"tiles\">\n");
    tile(t, "of the test set wrong", "%.2f%%", 100 * f->error);
    tile(t, "epochs", "%d", n);
    if (seconds > 0) {
        tile(t, "of training", seconds < 100 ? "%.1f s" : "%.0f s", seconds);
        tile(t, "examples a second", "%.0f", (double)mc_data_count(r->train) * n / seconds);
    }
    tile(t, "examples to learn from", "%lld", (long long)mc_data_count(r->train));
    tile(t, "parameters", "%lld", (long long)mc_net_count(r->m.net, "trainable"));
    text_addf(t, "</div>\n");
}

/* ---- curves ---- */

struct curve {
    size_t field;       /* of struct epoch */
    const char *colour;
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
static void chart(struct text *t, const struct progress *p, const struct curve c[2], const char *title, double scale, const char *unit)
{
    double least = 1e300, most = 1e-300;
    for (int i = 0; i < p->nhistory; i++) {
        for (int k = 0; k < 2; k++) {
            double v = at_epoch(p, &c[k], i) * scale;
            least = v > 0 && v < least ? v : least;
            most = v > most ? v : most;
        }
    }
    most = fmax(most, 1e-6);
    double low = log10(round_to(fmin(least, most), false)), high = log10(round_to(most, true) * 1.05);
    text_addf(t, "<div class=\"card\"><p class=\"small\">%s<span class=\"key\" style=\"background:var(--d)\"></span>test"
              "<span class=\"key\" style=\"background:var(--a)\"></span>training</p>\n<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
              title, WIDE, HIGH, title);
    bool fine = high - low < 2.2;
    for (int e = (int)floor(low); e <= (int)ceil(high); e++) {
        for (int k = 0; k < COUNT(steps); k += fine ? 1 : COUNT(steps)) {
            double v = steps[k] * pow(10, e);
            if (log10(v) >= low - 1e-9 && log10(v) <= high) {
                text_addf(t, "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g%s</text>\n", LEFT,
                          WIDE - RIGHT, y_of(v, low, high), y_of(v, low, high), LEFT - 8, y_of(v, low, high) + 4, v, unit);
            }
        }
    }
    int every = p->nhistory > 12 ? (p->nhistory + 9) / 10 : 1;
    for (int i = 0; i < p->nhistory; i += every) {
        text_addf(t, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x_of(p, i), HIGH - 8, i + 1);
    }
    for (int k = 0; k < 2; k++) {
        text_addf(t, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" stroke-linejoin=\"round\" stroke-linecap=\"round\" points=\"", c[k].colour);
        for (int i = 0; i < p->nhistory; i++) {
            double v = at_epoch(p, &c[k], i) * scale;
            text_addf(t, "%.1f,%.1f ", x_of(p, i), y_of(v > 0 ? v : pow(10, low), low, high));
        }
        text_addf(t, "\"/>\n");
        for (int i = 0; i < p->nhistory; i++) {
            double v = at_epoch(p, &c[k], i) * scale;
            text_addf(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>epoch %d: %.4g%s</title></circle>\n", x_of(p, i),
                      y_of(v > 0 ? v : pow(10, low), low, high), c[k].colour, i + 1, v, unit);
        }
    }
    text_addf(t, "</svg></div>\n");
}

static void curves(struct text *t, const struct run *r)
{
    static const struct curve error[] = { { offsetof(struct epoch, error), "var(--a)" }, { offsetof(struct epoch, test_error), "var(--d)" } };
    static const struct curve loss[] = { { offsetof(struct epoch, loss), "var(--a)" }, { offsetof(struct epoch, test_loss), "var(--d)" } };
    text_addf(t, "<h2>Learning</h2>\n<div class=\"two\">\n");
    chart(t, &r->p, error, "Wrong, by epoch", 100, "%");
    chart(t, &r->p, loss, "Loss, by epoch", 1, "");
    text_addf(t, "</div>\n<p class=\"dim small\">The training figures are means over an epoch while the parameters still change, those of the test set are "
                 "taken at its end, without dropout.</p>\n");
}

/* ---- pictures ---- */

static void base64(struct text *t, const unsigned char *s, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)s[i] << 16 | (i + 1 < n ? (unsigned)s[i + 1] << 8 : 0) | (i + 2 < n ? s[i + 2] : 0);
        char four[4] = { digit[v >> 18], digit[v >> 12 & 63], i + 1 < n ? digit[v >> 6 & 63] : '=', i + 2 < n ? digit[v & 63] : '=' };
        text_add(t, four, 4);
    }
}

static void picture(struct text *t, const uint8_t *v, int64_t rows, int64_t columns, int channels, int wide, const char *says)
{
    size_t n;
    void *png = must(mc_image_png(v, rows, columns, channels, &n));
    text_addf(t, "<img width=\"%d\" height=\"%lld\" alt=\"%s\" title=\"%s\" src=\"data:image/png;base64,", wide, (long long)(wide * rows / columns), says, says);
    base64(t, png, n);
    text_addf(t, "\"/>");
    mc_free(png);
}

static uint8_t byte_of(double v) { return (uint8_t)(v <= 0 ? 0 : v >= 1 ? 255 : v * 255 + 0.5); }

/* An example (channels, rows, columns); its numbers are stretched to black and white. */
static void example(struct text *t, const mc_data *d, int64_t i, int wide, const char *says)
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
        v[k] = byte_of((x[k % channels * plane + k / channels] - low) / (high - low));
    }
    picture(t, v, dims[1], dims[2], channels, wide, says);
    free(x);
    free(v);
}

static bool are_pictures(const mc_data *d)
{
    return mc_data_rank(d) == 3 && (mc_data_dims(d)[0] == 1 || mc_data_dims(d)[0] == 3);
}

static void mistakes(struct text *t, const struct run *r, const struct findings *f)
{
    text_addf(t, "<h2>The worst mistakes</h2>\n<div class=\"card\">");
    if (f->nworst == 0) {
        text_addf(t, "<p>There are none: every example of the test set is answered rightly.</p></div>\n");
        return;
    }
    text_addf(t, "<p class=\"dim small\">What was answered wrongly with the most confidence: the label, and in orange the answer.</p><div class=\"shots\">\n");
    for (int i = 0; i < f->nworst; i++) {
        const struct mistake *m = &f->worst[i];
        text_addf(t, "<figure>");
        example(t, r->held, m->example, 72, "");
        text_addf(t, "<figcaption>");
        html(t, mc_data_class(r->held, m->label));
        text_addf(t, " → <b>");
        html(t, mc_data_class(r->held, m->answer));
        text_addf(t, "</b> <span class=\"dim\">%.0f%%</span></figcaption></figure>\n", 100 * m->sure);
    }
    text_addf(t, "</div></div>\n");
}

static void confusion(struct text *t, const struct run *r, const struct findings *f)
{
    enum { MOST = 40 };
    int n = mc_data_classes(r->held) < f->classes ? mc_data_classes(r->held) : f->classes;
    int64_t most = 1;
    if (n > MOST) {
        return;
    }
    for (int i = 0; i < n * f->classes; i++) {
        most = i / f->classes != i % f->classes && f->confusion[i] > most ? f->confusion[i] : most;
    }
    text_addf(t, "<h2>Labels and answers</h2>\n<div class=\"card\"><p class=\"dim small\">A row for each class, a column for each answer.</p><table class=\"mat\"><tr><th></th>");
    for (int k = 0; k < n; k++) {
        text_addf(t, "<th>");
        html(t, mc_data_class(r->held, k));
        text_addf(t, "</th>");
    }
    text_addf(t, "</tr>\n");
    for (int i = 0; i < n; i++) {
        text_addf(t, "<tr><th>");
        html(t, mc_data_class(r->held, i));
        text_addf(t, "</th>");
        for (int k = 0; k < n; k++) {
            int64_t v = f->confusion[i * f->classes + k];
            if (i == k) {
                text_addf(t, "<td class=\"ok\">%lld</td>", (long long)v);
            } else if (v) {
                text_addf(t, "<td style=\"background:color-mix(in srgb,var(--d) %.0f%%,transparent)\">%lld</td>", 15 + 60.0 * (double)v / (double)most, (long long)v);
            } else {
                text_addf(t, "<td class=\"z\">·</td>");
            }
        }
        text_addf(t, "</tr>\n");
    }
    text_addf(t, "</table></div>\n");
}

/* ---- filters ---- */

/* Below zero blue, zero white, above orange; or the three channels as colours. */
static void filter(struct text *t, const float *w, int64_t channels, int64_t rows, int64_t columns, float most, const char *says)
{
    int64_t plane = rows * columns;
    uint8_t *v = must(malloc((size_t)plane * 3));
    for (int64_t i = 0; i < plane; i++) {
        if (channels == 3) {
            for (int c = 0; c < 3; c++) {
                v[3 * i + c] = byte_of(0.5 + 0.5 * w[c * plane + i] / most);
            }
        } else {
            double x = w[i] / most, up = fmax(x, 0), down = fmax(-x, 0);
            v[3 * i] = byte_of(0.98 - 0.1 * up - 0.77 * down);
            v[3 * i + 1] = byte_of(0.98 - 0.53 * up - 0.5 * down);
            v[3 * i + 2] = byte_of(0.98 - 0.96 * up - 0.13 * down);
        }
    }
    picture(t, v, rows, columns, 3, 52, says);
    free(v);
}

/* The first parameter of rank 4 that sees the data itself; a net without one has weights of rank 2 to show. */
static mc_param first_weights(const struct run *r)
{
    mc_param p;
    for (int i = 0; (p = mc_net_param(r->m.net, "trainable", i)).name; i++) {
        int rank = mc_node_rank(mc_shared_node(r->m.g, p.shared));
        if (rank == 4 || rank == 2) {
            break;
        }
    }
    return p;
}

static void filters(struct text *t, const struct run *r)
{
    mc_param p = first_weights(r);
    mc_array *got = p.name && are_pictures(r->train) ? mc_shared_get(p.shared) : NULL, *all = got ? mc_array_cast(got, MC_FLOAT32) : NULL;
    const int64_t *image = mc_batches_dims(r->batches);
    if (all && mc_array_rank(all) == 2 && mc_array_dims(all)[0] == image[0] * image[1] * image[2]) { /* a column is what one unit looks for */
        mc_array *turned = mc_array_transpose(all, NULL), *flat = turned ? mc_array_copy(turned) : NULL;
        mc_array_unref(&turned);
        mc_array_unref(&all);
        all = flat ? mc_array_reshape(flat, MC_SHAPE(mc_array_dims(flat)[0], image[0], image[1], image[2])) : NULL;
        mc_array_unref(&flat);
    }
    mc_array_unref(&got);
    if (!all || mc_array_rank(all) != 4 || mc_array_dims(all)[2] < 2) {
        mc_array_unref(&all);
        return;
    }
    const int64_t *d = mc_array_dims(all);
    const float *w = mc_array_data(all);
    int64_t size = d[1] * d[2] * d[3], n = d[0] < MOST_FILTERS ? d[0] : MOST_FILTERS;
    text_addf(t, "<h2>What the first layer looks for</h2>\n<div class=\"card\"><p class=\"dim small\">%s of the %lld filters of <code>%s</code>, %lldx%lld each%s.</p><div class=\"filters\">\n",
              n == d[0] ? "All" : "The first", (long long)d[0], p.name, (long long)d[2], (long long)d[3],
              d[1] == 3 ? ", its channels as colours" : ": orange speaks for ink in that place, blue against it");
    for (int64_t k = 0; k < n; k++) {
        float most = 1e-9f;
        for (int64_t i = 0; i < size; i++) {
            most = fmaxf(most, fabsf(w[k * size + i]));
        }
        char says[32];
        snprintf(says, sizeof says, "filter %lld", (long long)k);
        filter(t, w + k * size, d[1], d[2], d[3], most, says);
    }
    text_addf(t, "</div></div>\n");
    mc_array_unref(&all);
}

/* ---- one example on its way through the layers ---- */

/* The maps of one layer, (1, channels, rows, columns): each from its least, black, to its largest. */
static void maps(struct text *t, const char *name, const mc_array *a)
{
    const int64_t *d = mc_array_dims(a);
    int64_t plane = d[2] * d[3], n = d[1] < MOST_MAPS ? d[1] : MOST_MAPS;
    mc_array *cast = must(mc_array_cast(a, MC_FLOAT32)), *whole = must(mc_array_copy(cast));
    uint8_t *v = must(malloc((size_t)plane));
    text_addf(t, "<p class=\"small\"><code>%s</code> <span class=\"dim\">%lld maps of %lldx%lld%s</span></p><div class=\"filters\">\n", name, (long long)d[1],
              (long long)d[2], (long long)d[3], n < d[1] ? ", the first of them" : "");
    for (int64_t c = 0; c < n; c++) {
        const float *x = (const float *)mc_array_data(whole) + c * plane;
        float low = x[0], high = x[0];
        for (int64_t i = 0; i < plane; i++) {
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
        for (int64_t i = 0; i < plane; i++) {
            v[i] = byte_of(high > low ? (x[i] - low) / (high - low) : 0);
        }
        picture(t, v, d[2], d[3], 1, 38, "");
    }
    text_addf(t, "</div>\n");
    free(v);
    mc_array_unref(&cast);
    mc_array_unref(&whole);
}

static void way(struct text *t, const struct run *r)
{
    mc_node *in = mc_layer_node(mc_net_layer(r->m.net, 0), MC_TRAINING), *out[MOST_LAYERS];
    const mc_layer *of[MOST_LAYERS];
    const mc_array *x, *label;
    int n = 0;
    for (int i = 1; i < mc_net_nlayers(r->m.net) && n < MOST_LAYERS; i++) {
        const mc_layer *l = mc_net_layer(r->m.net, i);
        if (mc_layer_rank(l) == 4 && mc_layer_dims(l)[2] * mc_layer_dims(l)[3] > 1) {
            of[n] = l;
            out[n++] = mc_layer_node(l, MC_DETERMINISTIC);
        }
    }
    mc_function *f = n ? mc_compile(r->m.g, &(mc_spec){ .name = "layers", .input = &in, .ninput = 1, .output = out, .noutput = n }) : NULL;
    mc_batches_start(r->test_batches, 0, 0);
    if (f && mc_batches_next(r->test_batches, &x, &label) == 1) {
        mc_array *got[MOST_LAYERS] = { NULL }, *one = must(mc_array_slice(x, 0, 0, 1, 1)), *shaped = model_input(&r->m, one);
        mc_arg result[MOST_LAYERS], given = mc_arg_array(shaped);
        for (int i = 0; i < n; i++) {
            result[i] = mc_arg_slot(&got[i]);
        }
        if (mc_call_args(f, 1, &given, n, result) == MC_OK) {
            text_addf(t, "<h2>One example on its way</h2>\n<div class=\"card\"><p class=\"small dim\">The first example of the test set, and what each layer makes of it.</p>"
                      "<div class=\"filters\">");
            example(t, r->held, mc_batches_example(r->test_batches, 0), 84, "");
            text_addf(t, "</div>\n");
            for (int i = 0; i < n; i++) {
                maps(t, mc_layer_name(of[i]), got[i]);
            }
            text_addf(t, "</div>\n");
        }
        for (int i = 0; i < n; i++) {
            mc_array_unref(&got[i]);
        }
        mc_array_unref(&shaped);
        mc_array_unref(&one);
    }
    mc_function_free(f);
}

/* ---- the model, and how it is computed ---- */

static void layers(struct text *t, const struct run *r)
{
    text_addf(t, "<h2>The model</h2>\n<div class=\"card\"><table class=\"plain\"><tr><th>layer</th><th class=\"r\">gives</th><th>its formula</th></tr>\n");
    for (int i = 0; i < mc_net_nlayers(r->m.net); i++) {
        const mc_layer *l = mc_net_layer(r->m.net, i);
        text_addf(t, "<tr><td>");
        html(t, mc_layer_name(l));
        text_addf(t, "</td><td class=\"r\">");
        for (int k = 1; k < mc_layer_rank(l); k++) {
            text_addf(t, "%s%lld", k > 1 ? "x" : "", (long long)mc_layer_dims(l)[k]);
        }
        text_addf(t, "</td><td><code>");
        html(t, mc_layer_text(l, MC_TRAINING));
        text_addf(t, "</code></td></tr>\n");
    }
    text_addf(t, "</table></div>\n");
}

/* The training function once more, each step of it timed. */
static mc_function *profiled(struct run *r)
{
    mc_node *cost = mc_net_cost(r->m.net, MC_TRAINING), *in[] = { mc_layer_node(mc_net_layer(r->m.net, 0), MC_TRAINING), mc_net_target(r->m.net) };
    mc_updates u = mc_net_updates(r->m.net, cost, NULL);
    const mc_array *x, *t;
    mc_function *f = mc_compile(r->m.g, &(mc_spec){ .name = "train", .input = in, .ninput = 2, .output = &cost, .noutput = 1, .update_of = u.of,
                                                    .update = u.to, .nupdate = u.n, .profile = 1 });
    mc_batches_start(r->batches, 0, 0);
    for (int i = 0; f && i < PROFILED && mc_batches_next(r->batches, &x, &t) == 1; i++) {
        mc_array *shaped = model_input(&r->m, x);
        double c;
        mc_status s = mc_call(f, MC_IN(shaped, t), MC_OUT(&c));
        mc_array_unref(&shaped);
        if (s < 0) {
            mc_function_free(f);
            f = NULL;
        }
    }
    return f;
}

static bool is_convolution(const mc_step_info *s)
{
    return strncmp(s->kind, "conv", 4) == 0;
}

/* What a step's formula begins with, and what that is; the longer names first. */
static const struct {
    const char *begin, *what;
} directions[] = { { "conv_inputs", "gradient of its inputs" }, { "conv_weights", "gradient of its weights" }, { "conv", "forward" } };

static void convolution(struct text *t, const char *formula)
{
    enum { MOST = 150 };
    int k = 0, n = (int)strlen(formula);
    char cut[MOST + 1];
    while (k + 1 < COUNT(directions) && strncmp(formula, directions[k].begin, strlen(directions[k].begin)) != 0) {
        k++;
    }
    snprintf(cut, sizeof cut, "%s", formula);
    text_addf(t, "<td>%s</td><td><code>", directions[k].what);
    html(t, cut);
    text_addf(t, "%s</code></td>", n > MOST ? "…" : "");
}

static void plans(struct text *t, const mc_function *f)
{
    double all = 0;
    int n = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        mc_step_info s = mc_function_step(f, i);
        all += s.seconds;
        n += is_convolution(&s);
    }
    if (!n) {
        return;
    }
    text_addf(t, "<h2>How its convolutions are computed</h2>\n<div class=\"card\"><table class=\"plain\"><tr><th>step</th><th>pass</th><th>its formula</th><th>solver</th>"
              "<th class=\"r\">a call</th><th class=\"r\">share</th><th class=\"r\">GFLOP/s</th></tr>\n");
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        mc_step_info s = mc_function_step(f, i);
        if (is_convolution(&s)) {
            text_addf(t, "<tr><td>%d</td>", i);
            convolution(t, s.text);
            text_addf(t, "<td>");
            html(t, s.solver ? s.solver : "");
            text_addf(t, "</td><td class=\"r\">%.2f ms</td><td class=\"r\">%.0f%%</td><td class=\"r\">%.0f</td></tr>\n",
                      s.calls ? 1e3 * s.seconds / (double)s.calls : 0, all > 0 ? 100 * s.seconds / all : 0, s.seconds > 0 ? s.flops / s.seconds * 1e-9 : 0);
        }
    }
    text_addf(t, "</table></div>\n");
}

/* ---- the page ---- */

bool report_write(struct run *r, const struct findings *f, const char *extra_html)
{
    struct text t = { 0 }, title = { 0 };
    text_addf(&t, "%s", style);
    text_addf(&title, "Monochord: %s", r->o.model);
    tiles(&t, r, f);
    if (r->p.nhistory) {
        curves(&t, r);
    }
    filters(&t, r);
    if (are_pictures(r->held)) {
        way(&t, r);
        mistakes(&t, r, f);
    }
    confusion(&t, r, f);
    layers(&t, r);
    mc_function *step = profiled(r); /* changes parameters, so it comes after all that shows them */
    if (step) {
        plans(&t, step);
    }
    text_addf(&t, "%s<h2>The training function</h2>\n", extra_html ? extra_html : "");
    FILE *to = step ? fopen(r->o.report, "w") : NULL;
    mc_status s = to ? mc_function_report_with(step, to, title.s, t.s) : MC_EFILE;
    bool good = to && fclose(to) == 0 && s == MC_OK;
    if (good && !r->o.quiet) {
        char *full = realpath(r->o.report, NULL);
        printf("the report: %s\n", full ? full : r->o.report);
        free(full);
    } else if (!good) {
        complain("cannot write the report '%s': %s", r->o.report, !step || (to && s < 0) ? mc_last_error() : strerror(errno));
    }
    mc_function_free(step);
    text_free(&t);
    text_free(&title);
    return good;
}
