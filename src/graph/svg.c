/* svg.c: a picture as one self-contained <svg> element with its own style (light and dark) and background.
 *
 * The body of a loop is drawn in the loop's box.
 *
 * Invariant: the output is well-formed XML; every text in it went through mc_str_line and mc_str_html. */
#include "graph/picture.h"

/* In pixels, for the font below.  All texts are monospaced, so their widths are known. */
static const double column = 7.25, small_column = 6.05, row = 15, margin = 16;

/* A picture and the positions of its boxes. */
struct sheet {
    const struct mc_picture *p;
    struct mc_layout l;
    struct sheet *inner;        /* by picture node: the body of a loop; p is NULL where there is none */
};

static const char style[] =
    "<style>"
    ".mcp{--g:#fcfcfb;--ink:#1f2328;--dim:#5f6872;--wire:#98a1ab;--op:#fff;--op-e:#c3c9d0;--in:#dceaff;--in-"
    "e:#3b7dd8;"
    "--sh:#dff3e4;--sh-e:#2f9e5b;--co:#f1f2f4;--co-e:#c3c9d0;--ou:#ffe9d1;--ou-e:#d97706}"
    "@media(prefers-color-scheme:dark){.mcp{--g:#16181c;--ink:#e8eaed;--dim:#9aa3ad;--wire:#6b7480;--op:#"
    "20242a;--op-e:#4a525c;"
    "--in:#17304f;--in-e:#5b9bf0;--sh:#173a28;--sh-e:#4cc27f;--co:#23272d;--co-e:#4a525c;--ou:#4a2f10;--ou-e:"
    "#f0a04b}}"
    ".mcp text{font:12px ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans "
    "Mono',monospace;fill:var(--ink);text-anchor:middle}"
    ".mcp .h{font-weight:600}.mcp .t,.mcp .n{font-size:10px;fill:var(--dim)}.mcp "
    ".l{text-anchor:start;font-size:11px}"
    ".mcp rect{stroke-width:1.2}.mcp .g{fill:var(--g)}"
    ".mcp .op{fill:var(--op);stroke:var(--op-e)}.mcp .input{fill:var(--in);stroke:var(--in-e)}"
    ".mcp .shared{fill:var(--sh);stroke:var(--sh-e)}.mcp .constant{fill:var(--co);stroke:var(--co-e)}"
    ".mcp .output{fill:var(--ou);stroke:var(--ou-e)}"
    ".mcp path{fill:none;stroke:var(--wire);stroke-width:1.2}.mcp .k{fill:var(--wire);stroke:none}"
    ".mcp .cut{stroke-dasharray:2 3}.mcp .loop{fill:var(--g)}"
    "</style>";

static double text_height(const struct mc_pictured *x, bool bare)
{
    return 12 + row * (1 + (*x->sub != '\0') + !bare);
}

static bool is_bare(const struct mc_pictured *x)
{
    return x->role == ROLE_CONSTANT && !x->node->type.rank; /* its head already shows the dtype */
}

static void sized(struct sheet *s)
{
    for (size_t i = 0; i < s->p->node.n; i++) {
        const struct mc_pictured *x = &s->p->node.at[i];
        const struct sheet *in = &s->inner[i];
        double head = column * mc_text_columns(x->head), sub = column * mc_text_columns(x->sub);
        double type = small_column *
                      (mc_text_columns(x->type) + (*x->badge ? mc_text_columns(x->badge) + 3 : 0));
        bool bare = is_bare(x);
        struct mc_box *b = &s->l.box[i];
        b->w = MC_MAX(MC_MAX(head, sub), bare ? 0 : type) + 20;
        b->h = text_height(x, bare);
        if (in->p) {
            b->w = MC_MAX(b->w, in->l.w + 2 * margin);
            b->h += in->l.h + margin + 4;
        }
    }
}

static void sheet_free(struct sheet *s)
{
    for (size_t i = 0; s->inner && i < s->p->node.n; i++) {
        if (s->inner[i].p) {
            sheet_free(&s->inner[i]);
        }
    }
    mc_free(s->inner);
    mc_layout_free(&s->l);
}

/* s is to be freed on errors too. */
static mc_status sheet_make(struct sheet *s, const struct mc_picture *p)
{
    *s = (struct sheet){ .p = p };
    s->l.box = mc_calloc(p->node.n + 1, sizeof *s->l.box, "picture");
    s->inner = mc_calloc(p->node.n + 1, sizeof *s->inner, "picture");
    if (!s->l.box || !s->inner) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < p->node.n; i++) {
        TRY(p->node.at[i].body ? sheet_make(&s->inner[i], p->node.at[i].body) : MC_OK);
    }
    sized(s);
    return mc_layout_make(&s->l, p);
}

/* ---- wires ---- */

static void curve(struct mc_str *out, double x0, double y0, double x1, double y1)
{
    double middle = (y0 + y1) / 2;
    if (x0 - x1 < 0.5 && x1 - x0 < 0.5) {
        mc_str_addf(out, "L%.1f %.1f", x1, y1);
    } else {
        mc_str_addf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", x0, middle, x1, middle, x1, y1);
    }
}

static void wire(struct mc_str *out, const struct mc_layout *l, int from)
{
    const struct mc_box *b = &l->box[from];
    double x = b->x, y = b->y + b->h;
    mc_str_addf(out, "<path d=\"M%.1f %.1f", x, y);
    for (size_t i = (size_t)l->first_bend[from]; i < l->bend.n && l->bend.at[i].from == from; i++) {
        const struct mc_bend *n = &l->bend.at[i];
        curve(out, x, y, n->x, l->top[n->layer]);
        x = n->x;
        y = l->top[n->layer] + l->deep[n->layer];
        mc_str_addf(out, "L%.1f %.1f", x, y);
    }
    mc_str_add(out, "\"/>\n");
}

static void arrow(struct mc_str *out, const struct mc_picture *p, const struct mc_layout *l,
                  const struct mc_arrow *a)
{
    const struct mc_box *from = &l->box[a->from], *to = &l->box[a->to];
    int above = to->layer - 1 - from->layer, n = MC_MAX(p->node.at[a->to].node->nin, a->port + 1);
    double x = from->x, y = from->y + from->h, port = to->x - to->w / 2 + to->w * (a->port + 1) / (n + 1);
    if (above > 0) {
        const struct mc_bend *b = &l->bend.at[l->first_bend[a->from] + above - 1];
        x = b->x;
        y = l->top[b->layer] + l->deep[b->layer];
    }
    mc_str_addf(out, "<path d=\"M%.1f %.1f", x, y);
    curve(out, x, y, port, to->y - 5);
    mc_str_addf(out, "\"/><path class=\"k\" d=\"M%.1f %.1fl-3 -6h6z\"/>\n", port, to->y);
}

/* ---- boxes ---- */

static void text(struct mc_str *out, const char *class, double x, double y, const char *s)
{
    mc_str_addf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    mc_str_html(out, s);
    mc_str_add(out, "</text>");
}

static void draw(struct mc_str *out, const struct sheet *s);

static void box(struct mc_str *out, const struct mc_pictured *x, const struct mc_box *b,
                const struct sheet *inner)
{
    double y = b->y + row + 2;
    if (x->hidden) {
        mc_str_addf(out, "<path class=\"cut\" d=\"M%.1f %.1fv-14\"/>", b->x - b->w / 2 + 8, b->y);
    }
    mc_str_add(out, "<g><title>");
    mc_str_html(out, x->tip);
    mc_str_addf(out,
                "</title><rect class=\"%s%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "rx=\"%d\"/>",
                mc_role_name[x->role], inner->p ? " loop" : "", b->x - b->w / 2, b->y, b->w, b->h,
                x->role == ROLE_CONSTANT ? 3 : 7);
    text(out, "h", b->x, y, x->head);
    if (*x->sub) {
        text(out, "s", b->x, y += row, x->sub);
    }
    if (!is_bare(x)) {
        struct mc_str t = { 0 };
        mc_str_addf(&t, "%s%s%s", x->type, *x->badge ? " · " : "", x->badge);
        text(out, "t", b->x, y += row - 1, t.bad ? x->type : t.s);
        mc_str_free(&t);
    }
    mc_str_add(out, "</g>\n");
    if (inner->p) {
        mc_str_addf(out, "<g transform=\"translate(%.1f %.1f)\">\n", b->x - inner->l.w / 2, y + 14);
        draw(out, inner);
        mc_str_add(out, "</g>\n");
    }
}

static void draw(struct mc_str *out, const struct sheet *s)
{
    const struct mc_picture *p = s->p;
    for (size_t i = 0; i < p->node.n; i++) {
        if (s->l.first_bend[i] >= 0) {
            wire(out, &s->l, (int)i);
        }
    }
    for (size_t i = 0; i < p->arrow.n; i++) {
        arrow(out, p, &s->l, &p->arrow.at[i]);
    }
    for (size_t i = 0; i < p->node.n; i++) {
        box(out, &p->node.at[i], &s->l.box[i], &s->inner[i]);
    }
}

/* ---- the legend, and the number of nodes left out ---- */

static bool has_role(const struct mc_picture *p, enum mc_role role)
{
    bool any = false;
    for (size_t i = 0; i < p->node.n && !any; i++) {
        const struct mc_pictured *x = &p->node.at[i];
        any = x->role == role || (x->body && has_role(x->body, role));
    }
    return any;
}

static double legend(struct mc_str *out, const struct mc_picture *p)
{
    static const enum mc_role order[] = { ROLE_INPUT, ROLE_SHARED, ROLE_CONSTANT, ROLE_OP, ROLE_OUTPUT };
    double x = 0;
    for (size_t k = 0; k < NELEM(order); k++) {
        if (has_role(p, order[k])) {
            mc_str_addf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"0\" width=\"12\" height=\"12\" rx=\"3\"/>",
                        mc_role_name[order[k]], x);
            text(out, "l", x + 18, 10, mc_role_name[order[k]]);
            x += 18 + 6.7 * (double)strlen(mc_role_name[order[k]]) + 18;
        }
    }
    if (p->total > PICTURE_MOST) {
        struct mc_str said = { 0 };
        mc_str_addf(&said, "%d of %zu nodes: those nearest the outputs", PICTURE_MOST, p->total);
        text(out, "l n", 0, 30, said.bad ? "" : said.s);
        x = MC_MAX(x, 6.7 * (double)said.n);
        mc_str_free(&said);
    }
    return x;
}

mc_status mc_svg_add(struct mc_str *out, const struct mc_picture *p)
{
    struct sheet sheet;
    struct mc_str key = { 0 };
    mc_status s = sheet_make(&sheet, p);
    if (s == MC_OK) {
        const struct mc_layout *l = &sheet.l;
        double head = p->total > PICTURE_MOST ? 52 : 32, w = MC_MAX(legend(&key, p), l->w) + 2 * margin,
               h = head + l->h + 2 * margin;
        double shift = margin + (w - 2 * margin - l->w) / 2;
        mc_str_addf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mcp\" width=\"%.0f\" height=\"%.0f\" "
                    "viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n",
                    w, h, w, h);
        mc_str_add(out, style);
        mc_str_addf(out, "\n<rect class=\"g\" width=\"%.0f\" height=\"%.0f\" rx=\"8\"/>\n", w, h);
        mc_str_addf(out, "<g transform=\"translate(%.1f %.1f)\">%s</g>\n", margin, margin,
                    key.bad ? "" : key.s);
        mc_str_addf(out, "<g transform=\"translate(%.1f %.1f)\">\n", shift, margin + head);
        draw(out, &sheet);
        mc_str_add(out, "</g>\n</svg>\n");
        s = out->bad || key.bad ? MC_EMEMORY : MC_OK;
    }
    mc_str_free(&key);
    sheet_free(&sheet);
    return s;
}

mc_status mc_graph_svg(const mc_graph *g, int n, mc_node *const *outputs, FILE *to)
{
    struct mc_picture p;
    struct mc_str out = { 0 };
    (void)g;
    TRY(mc_picture_make(&p, n, outputs, NULL));
    mc_status s = mc_svg_add(&out, &p);
    mc_picture_free(&p);
    if (s < 0) {
        mc_str_free(&out);
        return s;
    }
    return mc_str_write(&out, to, "graph");
}
