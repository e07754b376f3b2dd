/* monochord_train_report.c: a run as one page of HTML: how it learned, what it sees, what it gets wrong, how
 * it is computed.
 *
 * Invariant: the page needs nothing but itself; what it draws comes from monochord_train_draw.c and
 * monochord_train_see.c. */
#include "train.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILED = 5 }; /* steps that are timed */

static const char style[] =
    "<style>.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(360px,100%),1fr));gap:14px}"
    ".shots{display:flex;flex-wrap:wrap;gap:10px}.shots figure{margin:0;text-align:center}"
    ".shots img,.filters img{image-rendering:pixelated;display:block;border-radius:5px}"
    ".shots figcaption{font-size:13px;margin-top:3px}.shots figcaption b{color:var(--d)}"
    ".filters{display:flex;flex-wrap:wrap;gap:6px}"
    "table.plain{border-collapse:collapse;font-size:13.5px;width:100%}table.plain "
    "th{text-align:left;font-weight:600;color:var(--dim)}"
    "table.plain td,table.plain th{padding:4px 10px 4px 0;border-bottom:1px solid "
    "var(--line);vertical-align:top}"
    "table.plain td.r,table.plain th.r{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "table.plain tr:last-child td{border-bottom:0}table.plain "
    "code{overflow-wrap:anywhere;display:block;min-width:12em}.card{overflow-x:auto}"
    "@media(min-width:640px){table.plain td:first-child{white-space:nowrap}}"
    "table.mat{border-collapse:separate;border-spacing:2px;font-size:13px;font-variant-numeric:tabular-nums}"
    "table.mat td,table.mat "
    "th{min-width:clamp(22px,6.4vw,38px);height:30px;text-align:center;border-radius:4px;font-weight:400;"
    "color:var(--dim)}"
    "table.mat td{color:var(--ink);padding:0}table.mat .e{padding-left:12px;white-space:nowrap}table.mat "
    "td.z{color:var(--line)}table.mat td.ok{background:color-mix(in srgb,var(--c) 24%,transparent)}"
    "@media(max-width:480px){table.mat{font-size:11px;border-spacing:1px}table.mat .e{padding-left:3px}}"
    "</style>\n";

void html_add(struct text *t, const char *s)
{
    for (; *s; s++) {
        const char *as = *s == '<'   ? "&lt;"
                         : *s == '>' ? "&gt;"
                         : *s == '&' ? "&amp;"
                         : *s == '"' ? "&quot;"
                                     : NULL;
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

void text_count(struct text *t, double value)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%.0f", value);
    for (int i = 0; i < n; i++) {
        text_addf(t, "%c%s", digits[i], i + 1 < n && (n - 1 - i) % 3 == 0 ? "," : "");
    }
}

static void tile_whole(struct text *t, const char *what, double value)
{
    struct text number = { 0 };
    text_count(&number, value);
    tile(t, what, "%s", number.s);
    text_free(&number);
}

static void tiles(struct text *t, const struct run *r, const struct findings *f)
{
    double seconds = 0;
    int n = r->p.nhistory;
    for (int i = 0; i < n; i++) {
        seconds += r->p.history[i].seconds;
    }
    text_addf(t, "<div class=\"tiles\">\n");
    if (r->m.errors) {
        tile(t, "of the test set wrong", "%.2f%%", 100 * f->error);
    }
    if (r->m.numbers && f->classes == 1) {
        struct fit fit = fit_of(f, 0);
        tile(t, "of the variance explained (R²)", fit.r2 > -10 ? "%.1f%%" : "none", 100 * fit.r2);
        tile(t, "mean absolute error", "%.4g", fit.mean_error);
    }
    if (is_text(r->o.data)) {
        tile(t, "perplexity of a character of the test set", "%.3f", exp(f->loss));
        tile(t, "bits a character", "%.3f", f->loss / log(2));
    }
    tile(t, "epochs", "%d", n);
    if (seconds > 0) {
        tile(t, "of training", seconds < 100 ? "%.1f s" : "%.0f s", seconds);
        tile_whole(t, "examples a second", (double)mc_data_count(r->train) * n / seconds);
    }
    tile_whole(t, "training examples", (double)mc_data_count(r->train));
    tile_whole(t, "parameters", (double)mc_net_count(r->m.net, "trainable"));
    text_addf(t, "</div>\n");
}

static void mistakes(struct text *t, const struct run *r, const struct findings *f)
{
    text_addf(t, "<h2>The worst mistakes</h2>\n<div class=\"card\">");
    if (f->nworst == 0) {
        text_addf(t, "<p>There are none: every example of the test set is answered correctly.</p></div>\n");
        return;
    }
    text_addf(t, "<p class=\"dim small\">The wrong answers with the highest confidence: the label, and in "
                 "orange the answer.</p><div class=\"shots\">\n");
    for (int i = 0; i < f->nworst; i++) {
        const struct mistake *m = &f->worst[i];
        text_addf(t, "<figure>");
        draw_example(t, r->held, m->example, 72, "");
        text_addf(t, "<figcaption>");
        html_add(t, mc_data_class(r->held, m->label));
        text_addf(t, " → <b>");
        html_add(t, mc_data_class(r->held, m->answer));
        text_addf(t, "</b> <span class=\"dim\">%.0f%%</span></figcaption></figure>\n", 100 * m->sure);
    }
    text_addf(t, "</div></div>\n");
}

static void confusion(struct text *t, const struct run *r, const struct findings *f)
{
    enum { MOST = 40 };
    int n = mc_data_classes(r->held) < f->classes ? mc_data_classes(r->held) : f->classes;
    int64_t most = 1;
    if (n > MOST || !f->confusion) {
        return;
    }
    for (int i = 0; i < n * f->classes; i++) {
        most = i / f->classes != i % f->classes && f->confusion[i] > most ? f->confusion[i] : most;
    }
    text_addf(t, "<h2>Labels and answers</h2>\n<div class=\"card\"><p class=\"dim small\">The number of "
                 "examples of the test set by class (rows) and answer (columns). Correct answers are on the "
                 "diagonal.</p><table class=\"mat\"><tr><th></th>");
    for (int k = 0; k < n; k++) {
        text_addf(t, "<th>");
        html_add(t, mc_data_class(r->held, k));
        text_addf(t, "</th>");
    }
    text_addf(t, "<th class=\"e\">wrong</th></tr>\n");
    for (int i = 0; i < n; i++) {
        int64_t of_class = 0;
        text_addf(t, "<tr><th>");
        html_add(t, mc_data_class(r->held, i));
        text_addf(t, "</th>");
        for (int k = 0; k < f->classes; k++) {
            of_class += f->confusion[i * f->classes + k];
        }
        for (int k = 0; k < n; k++) {
            int64_t v = f->confusion[i * f->classes + k];
            if (i == k) {
                text_addf(t, "<td class=\"ok\">%lld</td>", (long long)v);
            } else if (v) {
                text_addf(t,
                          "<td style=\"background:color-mix(in srgb,var(--d) %.0f%%,transparent)\">%lld</td>",
                          15 + 60.0 * (double)v / (double)most, (long long)v);
            } else {
                text_addf(t, "<td class=\"z\">·</td>");
            }
        }
        if (of_class) {
            text_addf(t, "<th class=\"e\">%.1f%%</th>",
                      100.0 * (double)(of_class - f->confusion[i * f->classes + i]) / (double)of_class);
        }
        text_addf(t, "</tr>\n");
    }
    text_addf(t, "</table></div>\n");
}

/* ---- the model, and how it is computed ---- */

static void layers(struct text *t, const struct run *r)
{
    text_addf(t, "<h2>The network</h2>\n<p class=\"dim small\">Its layers, from the input at the top to the "
                 "answer at the bottom: the name and kind of each, the sizes of its result for one example, "
                 "and the number of its parameters.</p>\n<div class=\"card\">");
    draw_network(t, r);
    text_addf(t, "</div>\n<details><summary>Show the formula of each layer</summary>\n<div "
                 "class=\"card\"><table class=\"plain\"><tr><th>layer</th><th>formula</th></tr>\n");
    for (int i = 0; i < mc_net_nlayers(r->m.net); i++) {
        const mc_layer *l = mc_net_layer(r->m.net, i);
        text_addf(t, "<tr><td>");
        html_add(t, mc_layer_name(l));
        text_addf(t, "</td><td><code>");
        html_add(t, mc_layer_text(l, MC_TRAINING));
        text_addf(t, "</code></td></tr>\n");
    }
    text_addf(t, "</table></div></details>\n");
}

/* Of the batch, as many examples as this rank has of one. */
static mc_array *own_share(const struct run *r, const mc_array *a)
{
    const int64_t n = mc_array_dims(a)[0], ranks = r->comm ? mc_comm_size(r->comm) : 1;
    return mc_array_slice(a, 0, 0, (n + ranks - 1) / ranks, 1);
}

/* The training function once more, each step of it timed, on this rank's share.  Divided states are not made
 * whole for that: it takes a rule that has none. */
static mc_function *profiled(struct run *r)
{
    mc_node *cost = mc_net_cost(r->m.net, MC_TRAINING),
            *in[] = { mc_layer_node(mc_net_layer(r->m.net, 0), MC_TRAINING), mc_net_target(r->m.net) };
    mc_updates u = mc_net_updates(r->m.net, cost, r->o.shard ? "sgd" : NULL);
    const mc_array *x, *t;
    mc_function *f = mc_compile(r->m.g, &(mc_spec){ .name = "train",
                                                    .input = in,
                                                    .ninput = 2,
                                                    .output = &cost,
                                                    .noutput = 1,
                                                    .update_of = u.of,
                                                    .update = u.to,
                                                    .nupdate = u.n,
                                                    .profile = 1 });
    mc_batches_start(r->batches, 0, 0);
    for (int i = 0; f && i < PROFILED && mc_batches_next(r->batches, &x, &t) == 1; i++) {
        mc_array *shaped = model_input(&r->m, x), *own = shaped ? own_share(r, shaped) : NULL,
                 *targets = own ? own_share(r, t) : NULL;
        double c;
        mc_status s = targets ? mc_call(f, MC_IN(own, targets), MC_OUT(&c)) : mc_last_status();
        mc_array_unref(&shaped);
        mc_array_unref(&own);
        mc_array_unref(&targets);
        if (s < 0) {
            mc_function_free(f);
            f = NULL;
        }
    }
    return f;
}

/* ---- the page ---- */

/* The page appears whole or not at all. */
static bool page_write(const char *path, const mc_function *step, const char *title, const char *extra_html)
{
    char *page = NULL;
    size_t n = 0;
    FILE *to = must(open_memstream(&page, &n));
    bool good = mc_function_report_with(step, to, title, extra_html) == MC_OK;
    good = (fclose(to) == 0 || (mc_fail(MC_EMEMORY, "out of memory"), false)) && good &&
           mc_file_write(path, page, n) == MC_OK;
    free(page);
    return good;
}

/* What was learned from what, and how. */
static void lead(struct text *t, const struct run *r)
{
    const mc_training *how = mc_net_training(r->m.net);
    text_addf(t, "<p>Learned from ");
    html_add(t, mc_data_text(r->train));
    text_addf(t, ", in batches of %lld, by <code>", (long long)how->batch);
    html_add(t, how->rule);
    text_addf(t, "</code>, on %s.</p>\n", mc_flag_get("device"));
}

/* What the model writes. */
static bool written(struct text *t, struct run *r)
{
    struct text sample = { 0 };
    const bool good = !is_text(r->o.data) || !(r->o.temperature > 0) || sample_text(r, &sample);
    if (sample.n) {
        text_addf(
            t,
            "<h2>What it writes</h2>\n<p class=\"dim small\">It has read the characters before a place in "
            "the test set, and goes on by itself, at temperature %g.</p>\n<div class=\"card\"><pre>",
            r->o.temperature);
        html_add(t, sample.s);
        text_addf(t, "</pre></div>\n");
    }
    text_free(&sample);
    return good;
}

bool report_write(struct run *r, const struct findings *f, const char *extra_html)
{
    struct text t = { 0 }, title = { 0 };
    text_addf(&t, "%s", style);
    text_addf(&title, "%s", r->o.model);
    lead(&t, r);
    tiles(&t, r, f);
    if (r->p.nhistory) {
        draw_curves(&t, r);
    }
    bool wrote = written(&t, r);
    draw_filters(&t, r);
    if (draw_can(r->held)) {
        draw_way(&t, r);
    }
    if (draw_can(r->held) && !r->m.numbers && f->confusion) {
        mistakes(&t, r, f);
    }
    (r->m.numbers ? draw_fits : confusion)(&t, r, f);
    layers(&t, r);
    mc_function *step = profiled(r); /* changes parameters, so it comes after all that shows them */
    if (step) {
        plans_add(&t, step);
    }
    text_addf(&t,
              "%s<h2>A training step</h2>\n<p class=\"dim small\">How the machine computes one step of the "
              "training, on %s. What follows was measured in a few "
              "steps after the training.</p>\n",
              extra_html ? extra_html : "", r->comm ? "one rank's share of a batch" : "one batch");
    bool good = wrote && step && page_write(r->o.report, step, title.s, t.s);
    if (good && !r->o.quiet) {
        char *full = realpath(r->o.report, NULL);
        printf("the report: %s\n", full ? full : r->o.report);
        free(full);
    } else if (!good) {
        complain("cannot write the report: %s", mc_last_error());
    }
    mc_function_free(step);
    text_free(&t);
    text_free(&title);
    return good;
}
