/* monochord_train_net.c: in a page, a network as a picture: a box for each layer, with what it gives and how
 * many parameters it has, and lines to the layers that read it.
 *
 * Invariant: a layer stands below all that it reads; lines that pass by layers run beside them, in lanes. */
#include "train.h"
#include <stdlib.h>
#include <string.h>

enum { WIDE = 300, HIGH = 48, GAP = 22, MARGIN = 4, LANE = 14, MOST_LANES = 12 };

static const char style[] =
    "<style>svg.net{display:block;margin:0 auto;max-width:100%;height:auto}svg.net "
    "rect{fill:var(--soft);stroke:var(--bar)}"
    "svg.net rect.in{fill:none}svg.net path{fill:none;stroke:var(--dim);stroke-width:1.4}svg.net "
    "path.k{fill:var(--dim);stroke:none}"
    "svg.net text{font:14px system-ui,sans-serif;fill:var(--ink)}svg.net .n{font-weight:600}svg.net "
    ".s{font-size:12.5px;fill:var(--dim)}</style>\n";

static int number_of(const struct run *r, const mc_layer *l)
{
    int i = 0;
    while (mc_net_layer(r->m.net, i) != l) {
        i++;
    }
    return i;
}

static double top_of(int i) { return MARGIN + (double)i * (HIGH + GAP); }

/* The way from one layer to another that is not the next: out to a lane at the right, down, and back. */
static void lane(struct text *t, int from, int to, int number)
{
    double y0 = top_of(from) + HIGH * 0.7, y1 = top_of(to) + HIGH * 0.3, x = MARGIN + WIDE,
           out = x + 8 + LANE * (number + 1);
    text_addf(
        t,
        "<path d=\"M%.0f %.1fH%.0fQ%.0f %.1f %.0f %.1fV%.1fQ%.0f %.1f %.0f %.1fH%.0f\"/><path class=\"k\" "
        "d=\"M%.0f %.1fl7 -4v8z\"/>\n",
        x, y0, out - 8, out, y0, out, y0 + 8, y1 - 8, out, y1, out - 8, y1, x + 6, x, y1);
}

/* Which lanes are taken, and how far down. */
static int free_lane(int until[MOST_LANES], int from, int to)
{
    int k = 0;
    while (k + 1 < MOST_LANES && until[k] > from) {
        k++;
    }
    until[k] = to;
    return k;
}

static int64_t parameters(const struct run *r, const mc_layer *l)
{
    int64_t all = 0;
    mc_param p;
    for (int i = 0; (p = mc_net_param(r->m.net, "trainable", i)).name; i++) {
        int64_t one = p.layer == l;
        mc_node *n = mc_shared_node(r->m.g, p.shared);
        for (int k = 0; k < mc_node_rank(n); k++) {
            one *= mc_node_dims(n)[k];
        }
        all += one;
    }
    return all;
}

void layer_gives(struct text *t, const mc_layer *l)
{
    for (int k = 1; k < mc_layer_rank(l); k++) {
        int64_t d = mc_layer_dims(l)[k];
        text_addf(t, d < 0 ? "%s?" : "%s%lld", k > 1 ? "×" : "", (long long)d);
    }
    if (mc_layer_rank(l) <= 1) {
        text_addf(t, "a number");
    }
}

static void box(struct text *t, const struct run *r, int i)
{
    const mc_layer *l = mc_net_layer(r->m.net, i);
    double y = top_of(i);
    int64_t n = parameters(r, l);
    text_addf(t,
              "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"8\"/><text class=\"n\" "
              "x=\"%d\" y=\"%.1f\">",
              mc_layer_ninputs(l) ? "l" : "in", MARGIN, y, WIDE, HIGH, MARGIN + 12, y + 20);
    html_add(t, mc_layer_name(l));
    text_addf(t, "</text><text class=\"s\" x=\"%d\" y=\"%.1f\">", MARGIN + 12, y + 38);
    html_add(t, mc_layer_kind(l));
    text_addf(t, "</text><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", MARGIN + WIDE - 12, y + 20);
    layer_gives(t, l);
    text_addf(t, "</text><text class=\"s\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", MARGIN + WIDE - 12,
              y + 38);
    if (n) {
        text_count(t, (double)n);
        text_addf(t, " parameter%s", n == 1 ? "" : "s");
    }
    text_addf(t, "</text>\n");
}

void draw_network(struct text *t, const struct run *r)
{
    int n = mc_net_nlayers(r->m.net), until[MOST_LANES] = { 0 }, lanes = 0;
    struct text lines = { 0 };
    for (int i = 0; i < n; i++) {
        const mc_layer *l = mc_net_layer(r->m.net, i);
        for (int k = 0; k < mc_layer_ninputs(l); k++) {
            int from = number_of(r, mc_layer_input(l, k));
            if (from + 1 == i) {
                double y = top_of(from) + HIGH;
                text_addf(&lines, "<path d=\"M%d %.1fv%d\"/><path class=\"k\" d=\"M%d %.1fl-4 -7h8z\"/>\n",
                          MARGIN + WIDE / 2, y, GAP - 5, MARGIN + WIDE / 2, y + GAP);
            } else {
                int at = free_lane(until, from, i);
                lanes = at + 1 > lanes ? at + 1 : lanes;
                lane(&lines, from, i, at);
            }
        }
    }
    int wide = 2 * MARGIN + WIDE + (lanes ? 12 + LANE * lanes : 0);
    double high = top_of(n) - GAP + MARGIN;
    text_addf(t,
              "%s<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"net\" width=\"%d\" height=\"%.0f\" "
              "viewBox=\"0 0 "
              "%d %.0f\" role=\"img\" aria-label=\"the layers\">\n%s",
              style, wide, high, wide, high, lines.s ? lines.s : "");
    for (int i = 0; i < n; i++) {
        box(t, r, i);
    }
    text_addf(t, "</svg>\n");
    text_free(&lines);
}
