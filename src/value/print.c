/* print.c: arrays as text, in NumPy's layout: aligned columns; floats with at most eight digits after the
 * point, but no more than needed to distinguish them; above a thousand elements the middle is left out.
 *
 * Invariant: three passes visit the same elements, those that are shown: the first finds the range (and so
 * the notation), the second the widths, the third writes. */
#include "value/value.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { THRESHOLD = 1000, EDGE = 3, PRECISION = 8, WIDTH = 75, WORD = 64 };

/* ---- digits ---- */

struct digits { /* d[0].d[1]d[2]... times 10^exp, no trailing zeros but n >= 1 */
    bool minus;
    int n, exp;
    char d[32];
};

/* Parses the output of printf's %e. */
static struct digits read_e(const char *text)
{
    struct digits r = { .minus = *text == '-' };
    const char *p = text + r.minus;
    for (; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') {
            r.d[r.n++] = *p;
        }
    }
    r.exp = atoi(p + 1);
    while (r.n > 1 && r.d[r.n - 1] == '0') {
        r.n--;
    }
    return r;
}

static double rounded(mc_dtype d, double v)
{
    uint64_t box;
    mc_store_f64(d, &box, v);
    return mc_load_f64(d, &box);
}

/* The fewest digits that read back as v in its dtype. */
static struct digits shortest(mc_dtype d, double v)
{
    char text[WORD];
    for (int p = 0; p < 17; p++) {
        mc_snprintf(text, sizeof text, "%.*e", p, v);
        double back = d == MC_FLOAT32 ? (double)mc_strtof(text, NULL) : rounded(d, mc_strtod(text, NULL));
        if (back == v) {
            break;
        }
    }
    return read_e(text);
}

/* v with n digits after the first, even if fewer would distinguish it. */
static struct digits exactly(double v, int n)
{
    char text[WORD];
    mc_snprintf(text, sizeof text, "%.*e", n, v);
    return read_e(text);
}

/* The fewest digits, with at most `most` after the first. */
static struct digits at_most(mc_dtype d, double v, int most)
{
    struct digits r = shortest(d, v);
    return r.n - 1 > most ? exactly(v, MC_MAX(most, 0)) : r;
}

/* "12.5": at least `frac` digits after the point. */
static void add_positional(struct mc_str *out, const struct digits *g, int frac)
{
    int whole = MC_MAX(g->exp, 0) + 1, shift = MC_MIN(g->exp, 0);
    int last = MC_MAX(g->n - 1 - g->exp, frac) + whole;
    mc_str_add(out, g->minus ? "-" : "");
    for (int i = 0; i < last; i++) { /* position 0 is the first digit of the whole part */
        int k = i + shift;
        char c = k >= 0 && k < g->n ? g->d[k] : '0';
        mc_str_addn(out, i == whole ? "." : "", i == whole);
        mc_str_addn(out, &c, 1);
    }
    mc_str_add(out, last <= whole ? "." : "");
}

/* "1.25e+03": at least `frac` digits after the point, and `exp` in the exponent.  `point`: write the point
 * even if no digits follow. */
static void add_scientific(struct mc_str *out, const struct digits *g, bool point, int frac, int exp)
{
    mc_str_addf(out, "%s%c%s%.*s", g->minus ? "-" : "", g->d[0], point || g->n > 1 ? "." : "", g->n - 1,
                g->d + 1);
    for (int i = g->n - 1; i < frac; i++) {
        mc_str_add(out, "0");
    }
    mc_str_addf(out, "e%c%0*d", g->exp < 0 ? '-' : '+', exp, abs(g->exp));
}

/* ---- the elements that are shown ---- */

struct printer {
    const mc_array *a;
    struct mc_str *out;
    bool summary;
    bool special, minus_inf, any; /* a NaN or infinity; -inf; a finite nonzero value */
    double least, most;           /* of the nonzero magnitudes */
    bool scientific;
    int left, right, exp;         /* widths: before the point, after it, of the exponent */
    int line;                     /* characters in this line so far */
};

static bool hides(const struct printer *p, int axis)
{
    return p->summary && p->a->dims[axis] > 2 * EDGE;
}

static void each_shown(struct printer *p, const char *at, int axis,
                       void (*see)(struct printer *, const char *))
{
    if (axis == p->a->rank) {
        see(p, at);
        return;
    }
    int64_t n = p->a->dims[axis];
    for (int64_t i = 0; i < n; i++) {
        if (i == EDGE && hides(p, axis)) {
            i = n - EDGE;
        }
        each_shown(p, at + i * p->a->strides[axis], axis + 1, see);
    }
}

/* ---- formats ---- */

static void see_range(struct printer *p, const char *at)
{
    double v = mc_load_f64(p->a->dtype, at), m = fabs(v);
    if (!isfinite(v)) {
        p->special = true;
        p->minus_inf |= v < 0;
    } else if (m > 0) {
        p->least = p->any ? fmin(p->least, m) : m;
        p->most = p->any ? fmax(p->most, m) : m;
        p->any = true;
    }
}

static struct digits digits_of(const struct printer *p, double v)
{
    struct digits g = at_most(p->a->dtype, v, PRECISION);
    return p->scientific ? g : at_most(p->a->dtype, v, PRECISION + g.exp);
}

static void see_width(struct printer *p, const char *at)
{
    double v = mc_load_f64(p->a->dtype, at);
    if (!isfinite(v)) {
        return;
    }
    struct digits g = digits_of(p, v);
    int frac = p->scientific ? g.n - 1 : g.n - 1 - g.exp;
    p->left = MC_MAX(p->left, (p->scientific ? 1 : MC_MAX(g.exp, 0) + 1) + g.minus);
    p->right = MC_MAX(p->right, frac);
    p->exp = MC_MAX(p->exp, abs(g.exp) >= 100 ? 3 : 2);
}

/* The magnitude from which scientific notation is used, because whole numbers would show digits that the
 * dtype does not have: 1e3 for float16, 1e6 for float32, `cap` for float64.  bfloat16, which NumPy does not
 * have, uses the limit of float32, which is more readable. */
static double plain_limit(mc_dtype d, double cap)
{
    double digits = floor(-log10(mc_dtypes[d == MC_BFLOAT16 ? MC_FLOAT32 : d].eps));
    return digits < 8 ? pow(10, digits) : cap;
}

/* Limits are rounded to the dtype, as the values compared with them were. */
static void choose_float_format(struct printer *p)
{
    mc_dtype d = p->a->dtype;
    each_shown(p, p->a->data, 0, see_range);
    p->scientific = p->any && (p->most >= plain_limit(d, 1e8) || p->least < rounded(d, 1e-4) ||
                               rounded(d, p->most / p->least) > 1000);
    each_shown(p, p->a->data, 0, see_width);
    if (p->special) {
        int right = p->right + 1 + (p->scientific ? p->exp + 2 : 0);
        p->left = MC_MAX(p->left, 3 + p->minus_inf - right);
    }
}

static void add_integer(struct mc_str *out, mc_dtype d, const char *at)
{
    int64_t v = mc_load_i64(d, at);
    if (d == MC_UINT64) {
        mc_str_addf(out, "%llu", (unsigned long long)v);
    } else {
        mc_str_addf(out, "%lld", (long long)v);
    }
}

static void see_integer(struct printer *p, const char *at)
{
    size_t n = p->out->n;
    add_integer(p->out, p->a->dtype, at);
    if (!p->out->bad) {
        p->left = MC_MAX(p->left, (int)(p->out->n - n));
        p->out->n = n;
    }
}

static void choose_format(struct printer *p)
{
    if (mc_is_float(p->a->dtype)) {
        choose_float_format(p);
    } else if (mc_is_int(p->a->dtype)) {
        each_shown(p, p->a->data, 0, see_integer);
    } else {
        p->left = 5;
    }
}

/* One element, with spaces before it, and spaces after it for digits that only other elements have. */
static void add_word(const struct printer *p, struct mc_str *out, const char *at)
{
    mc_dtype d = p->a->dtype;
    struct mc_str word = { 0 };
    int edge = 0, width = p->left;
    double v = mc_load_f64(d, at);
    if (mc_is_float(d)) {
        width += p->right + 1 + (p->scientific ? p->exp + 2 : 0);
    }
    if (d == MC_BOOL) {
        mc_str_add(&word, *at ? "True" : "False");
    } else if (mc_is_int(d)) {
        add_integer(&word, d, at);
    } else if (!isfinite(v)) {
        mc_str_add(&word, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    } else if (p->scientific) {
        struct digits g = exactly(v, p->right);
        add_scientific(&word, &g, true, p->right, p->exp);
    } else {
        struct digits g = digits_of(p, v);
        add_positional(&word, &g, 0);
        edge = p->right - MC_MAX(g.n - 1 - g.exp, 0);
    }
    mc_str_addf(out, "%*s%*s", width - edge, word.s ? word.s : "", edge, "");
    out->bad |= word.bad;
    mc_str_free(&word);
}

/* ---- layout ---- */

static void new_line(struct printer *p)
{
    while (p->out->n > 0 && p->out->s[p->out->n - 1] == ' ') {
        p->out->n--;
    }
    mc_str_addf(p->out, "\n%*s", p->a->rank, "");
    p->line = p->a->rank;
}

/* Adds a word and a space, on a new line if the word does not fit here and a new line has more room. */
static void add_item(struct printer *p, const struct mc_str *word, bool last)
{
    if (p->line + (int)word->n > WIDTH - p->a->rank && p->line > p->a->rank) {
        new_line(p);
    }
    mc_str_addn(p->out, word->s ? word->s : "", word->n);
    mc_str_add(p->out, last ? "" : " ");
    p->line += (int)word->n + 1;
}

static void print_row(struct printer *p, const char *at)
{
    int axis = p->a->rank - 1;
    int64_t n = p->a->dims[axis];
    struct mc_str word = { 0 };
    p->line = p->a->rank;
    for (int64_t i = 0; i < n; i++) {
        if (i == EDGE && hides(p, axis)) {
            word.n = 0;
            mc_str_add(&word, "...");
            add_item(p, &word, false);
            i = n - EDGE;
        }
        word.n = 0;
        add_word(p, &word, at + i * p->a->strides[axis]);
        add_item(p, &word, i == n - 1);
    }
    p->out->bad |= word.bad;
    mc_str_free(&word);
}

static void print_axis(struct printer *p, const char *at, int axis)
{
    static const char newlines[] = "\n\n\n\n\n\n\n\n";
    int64_t n = p->a->dims[axis];
    size_t gap = (size_t)(p->a->rank - axis - 1);
    mc_str_add(p->out, "[");
    if (gap == 0) {
        print_row(p, at);
    }
    for (int64_t i = 0; i < n && gap; i++) {
        if (i == EDGE && hides(p, axis)) {
            mc_str_addf(p->out, "%*s...", axis + 1, "");
            mc_str_addn(p->out, newlines, gap);
            i = n - EDGE;
        }
        mc_str_addf(p->out, "%*s", i ? axis + 1 : 0, "");
        print_axis(p, at + i * p->a->strides[axis], axis + 1);
        mc_str_addn(p->out, newlines, i < n - 1 ? gap : 0);
    }
    mc_str_add(p->out, "]");
}

/* A scalar is printed with all its digits. */
static void print_scalar(struct mc_str *out, const mc_array *a)
{
    double v = mc_load_f64(a->dtype, a->data);
    if (a->dtype == MC_BOOL) {
        mc_str_add(out, *a->data ? "True" : "False");
    } else if (mc_is_int(a->dtype)) {
        add_integer(out, a->dtype, a->data);
    } else if (!isfinite(v)) {
        mc_str_add(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    } else {
        struct digits g = shortest(a->dtype, v);
        if (v != 0 && (fabs(v) < rounded(a->dtype, 1e-4) || fabs(v) >= plain_limit(a->dtype, 1e16))) {
            add_scientific(out, &g, false, 0, 2);
        } else {
            add_positional(out, &g, 1);
        }
    }
}

static void print(struct mc_str *out, const mc_array *a)
{
    int64_t n = mc_array_size(a);
    if (n == 0) {
        mc_str_add(out, "[]");
    } else if (a->rank == 0) {
        print_scalar(out, a);
    } else {
        struct printer p = { .a = a, .out = out, .summary = n > THRESHOLD };
        choose_format(&p);
        print_axis(&p, a->data, 0);
    }
}

char *mc_array_text(const mc_array *a)
{
    struct mc_str out = { 0 };
    if (!a) {
        mc_fail(MC_EARG, "mc_array_text: the array is NULL");
        return NULL;
    }
    mc_array *near = mc_array_on_host(a);
    if (!near) {
        return NULL;
    }
    print(&out, near);
    mc_array_unref(&near);
    return mc_str_take(&out);
}

mc_status mc_array_print(const mc_array *a, FILE *to)
{
    char *text = mc_array_text(a);
    if (!text) {
        return mc_last_status();
    }
    bool written = fputs(text, to) >= 0 && fputc('\n', to) >= 0;
    mc_text_free(text);
    return written ? MC_OK : mc_fail(MC_EFILE, "mc_array_print: %s", strerror(errno));
}
