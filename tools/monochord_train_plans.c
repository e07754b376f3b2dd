/* monochord_train_plans.c: in a page, how each convolution of a function is computed: of which layer, by
 * which solver, how fast.
 *
 * Invariant: layers are found by the names of their weights in what a step says of itself; where no such name
 * stands, none is said. */
#include "train.h"
#include <ctype.h>
#include <string.h>

static bool is_convolution(const mc_step_info *s)
{
    return strncmp(s->kind, "conv", 4) == 0;
}

/* What a step's formula begins with, and what that is; the longer names first.  weights: which argument they
 * are. */
static const struct direction {
    const char *begin, *what;
    int weights;
} directions[] = { { "conv_inputs", "gradient of its inputs", 0 }, { "conv_weights", "gradient of its weights", -1 }, { "conv", "forward", 1 } };

static const struct direction *direction_of(const char *formula)
{
    int k = 0;
    while (k + 1 < COUNT(directions) &&
           strncmp(formula, directions[k].begin, strlen(directions[k].begin)) != 0) {
        k++;
    }
    return &directions[k];
}

enum { MOST_ARGUMENTS = 12 };

/* f(a, g(b, c)): its arguments, each from at[i] to end[i]. */
struct call {
    int n;
    const char *at[MOST_ARGUMENTS], *end[MOST_ARGUMENTS], *after;
};

static struct call call_of(const char *formula)
{
    struct call c = { 0 };
    const char *s = formula + strcspn(formula, "("), *from = s + (*s != '\0');
    for (int depth = 0; *s; s++) {
        depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
        if (((*s == ',' && depth == 1) || depth == 0) && c.n < MOST_ARGUMENTS) {
            c.at[c.n] = from + strspn(from, " ");
            c.end[c.n++] = s;
            from = s + 1;
        }
        if (depth == 0) {
            break;
        }
    }
    c.after = s;
    return c;
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Where the word stands in a text, not as a part of another; NULL: nowhere. */
static const char *word_in(const char *text, const char *word)
{
    size_t n = strlen(word);
    const char *at = text;
    while ((at = strstr(at, word)) && (is_name(at[n]) || (at > text && is_name(at[-1])))) {
        at += n;
    }
    return at;
}

/* The layer whose weights a convolution reads, or, where what follows it in the step makes their new values,
 * writes; NULL: that is not told. */
static const char *layer_of(const struct run *r, const struct direction *d, const struct call *c)
{
    mc_param p;
    const char *first = NULL, *name = NULL;
    for (int i = 0; (p = mc_net_param(r->m.net, "trainable", i)).name; i++) {
        bool reads = d->weights >= 0 && d->weights < c->n &&
                     (size_t)(c->end[d->weights] - c->at[d->weights]) == strlen(p.name);
        const char *at = d->weights < 0 ? word_in(c->after, p.name)
                         : reads && strncmp(c->at[d->weights], p.name, strlen(p.name)) == 0 ? c->after
                                                                                            : NULL;
        if (at && p.layer && (!first || at < first)) {
            first = at;
            name = mc_layer_name(p.layer);
        }
    }
    return name;
}

/* Its formula with long arguments left out. */
static void short_formula(struct text *t, const char *formula, const struct call *c)
{
    enum { LONG = 32 };
    struct text s = { 0 };
    text_addf(&s, "%.*s(", (int)strcspn(formula, "("), formula);
    for (int i = 0; i < c->n; i++) {
        int n = (int)(c->end[i] - c->at[i]);
        text_addf(&s, "%s%.*s", i ? ", " : "", n > LONG ? (int)strlen("…") : n, n > LONG ? "…" : c->at[i]);
    }
    html_add(t, s.s);
    text_addf(t, ")");
    text_free(&s);
}

static void convolution(struct text *t, const struct run *r, const mc_step_info *s, int step, double all)
{
    const struct direction *d = direction_of(s->text);
    struct call c = call_of(s->text);
    const char *layer = layer_of(r, d, &c);
    text_addf(t, "<tr><td>");
    html_add(t, layer ? layer : "");
    text_addf(t, "</td><td>%s</td><td>", d->what);
    html_add(t, s->solver ? s->solver : "");
    text_addf(t,
              "</td><td class=\"r\">%.2f ms</td><td class=\"r\">%.0f%%</td><td class=\"r\">%.0f</td><td "
              "class=\"r\">%d</td><td><code>",
              s->calls ? 1e3 * s->seconds / (double)s->calls : 0, all > 0 ? 100 * s->seconds / all : 0,
              s->seconds > 0 ? s->flops / s->seconds * 1e-9 : 0, step);
    short_formula(t, s->text, &c);
    text_addf(t, "</code></td></tr>\n");
}

void plans_add(struct text *t, const struct run *r, const mc_function *f)
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
    text_addf(t, "<h2>How its convolutions are computed</h2>\n<div class=\"card\"><table "
                 "class=\"plain\"><tr><th>layer</th><th>pass</th><th>solver</th>"
                 "<th class=\"r\">a call</th><th class=\"r\">share</th><th class=\"r\">GFLOP/s</th><th "
                 "class=\"r\">step</th><th>its formula</th></tr>\n");
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        mc_step_info s = mc_function_step(f, i);
        if (is_convolution(&s)) {
            convolution(t, r, &s, i, all);
        }
    }
    text_addf(t, "</table></div>\n");
}
