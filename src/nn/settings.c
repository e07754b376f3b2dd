/* settings.c: splits a line into words, and reads the words as settings of the fields of a table's row.
 *
 * Invariant: a value is a slice of its line (or the field's preset), so an error can point at it. */
#include "nn/nn.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool mc_nn_same(struct mc_nn_slice a, const char *b)
{
    return strlen(b) == a.n && (a.n == 0 || memcmp(a.s, b, a.n) == 0);
}

/* ---- errors ---- */

bool mc_nn_wrong(const struct mc_nn_line *line, const char *at, mc_status code, const char *fmt, ...)
{
    struct mc_nn_text t = { 0 };
    va_list ap;
    va_start(ap, fmt);
    if (line->file) {
        mc_nn_addf(&t, "%s:%d: ", line->file, line->number);
    }
    mc_nn_addv(&t, fmt, ap);
    va_end(ap);
    at = at >= line->text && at <= line->end ? at : line->text;
    mc_nn_addf(&t, "\n    %.*s\n    ", (int)(line->end - line->text), line->text);
    for (const char *c = line->text; c < at; c++) {
        mc_nn_add(&t, *c == '\t' ? "\t" : ((unsigned char)*c & 0xc0) == 0x80 ? "" : " ");
    }
    mc_nn_add(&t, "^");
    mc_mistake(line->g, t.bad ? MC_EMEMORY : code, "%s", t.bad ? "out of memory" : t.s);
    mc_nn_free(&t);
    return false;
}

/* Finds names of which the word is a part or that are a part of it: maxpool and pool, crossentropy and
 * categorical_crossentropy. The longest shared part wins. */
static const char *near_part(const char *word, const char *const *names, int n)
{
    enum { LEAST = 4 };
    const char *best = NULL;
    size_t shared = LEAST - 1, length = strlen(word);
    for (int i = 0; i < n; i++) {
        size_t m = strlen(names[i]), part = m < length ? m : length;
        if (part > shared && (strstr(word, names[i]) || strstr(names[i], word))) {
            best = names[i];
            shared = part;
        }
    }
    return best;
}

struct mc_nn_hint mc_nn_near(struct mc_nn_slice word, const char *const *names, int n)
{
    struct mc_nn_hint hint = { "" };
    char copy[64];
    mc_snprintf(copy, sizeof copy, "%.*s", (int)word.n, word.s);
    const char *near = mc_near_miss(copy, names, (size_t)n);
    near = near ? near : near_part(copy, names, n);
    if (near) {
        mc_snprintf(hint.text, sizeof hint.text, "; did you mean '%s'?", near);
    }
    return hint;
}

struct mc_nn_hint mc_nn_near_row(struct mc_nn_slice word, const void *table, size_t size)
{
    const char *names[64];
    int n = 0;
    for (const char *row = table; n < COUNT(names); row += size) {
        memcpy(&names[n], row, sizeof names[n]);
        if (!names[n++]) {
            n--;
            break;
        }
    }
    return mc_nn_near(word, names, n);
}

/* ---- words ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(const struct mc_nn_line *line, const char **at, const char *end, char separator,
                      struct mc_nn_slice *name, struct mc_nn_slice *text)
{
    const char *c = *at;
    while (c < end && (is_space(*c) || *c == separator)) {
        c++;
    }
    const char *from = c, *equals = NULL, *quote = NULL;
    int depth = 0;
    for (; c < end && (depth || quote || !(is_space(*c) || *c == separator)); c++) {
        if (quote) {
            quote = *c == *quote ? NULL : quote;
        } else if (*c == '\'' || *c == '"') {
            quote = c;
        } else if (*c == '=' && !depth && !equals && c > from && c[1] != '=') {
            equals = c;
        } else {
            depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
        }
    }
    *at = c;
    if (quote || depth > 0) {
        *at = end;
        mc_nn_wrong(line, quote ? quote : from, MC_ESYNTAX,
                    quote ? "the quote is not closed" : "a bracket in the word is not closed");
        *name = (struct mc_nn_slice){ NULL, 0 }; /* an error: no word */
        *text = *name;
        return true;
    }
    *name = (struct mc_nn_slice){ from, equals ? (size_t)(equals - from) : 0 };
    from = equals ? equals + 1 : from;
    bool quoted = c - from >= 2 && (*from == '\'' || *from == '"') && c[-1] == *from;
    *text = (struct mc_nn_slice){ from + quoted, (size_t)(c - from) - 2 * quoted };
    return c > from || equals;
}

bool mc_nn_next_word(const struct mc_nn_line *line, const char **at, char separator, struct mc_nn_slice *name,
                     struct mc_nn_slice *text)
{
    return next_word(line, at, line->end, separator, name, text);
}

/* ---- values by type ---- */

static const double most_whole = 0x1p53; /* up to here a double holds every integer */

static bool number(struct mc_nn_slice v, bool whole, double *out)
{
    char copy[64], *end;
    if (!v.n || v.n >= sizeof copy) {
        return false;
    }
    memcpy(copy, v.s, v.n);
    copy[v.n] = '\0';
    *out = whole ? (double)strtoll(copy, &end, 10) : mc_strtod(copy, &end);
    return !*end && end != copy && !(whole && (*out > most_whole || *out < -most_whole));
}

/* range: "[0, 1)"; [ and ] include the end, ( and ) exclude it; NULL: all numbers but NaN. */
static bool lies_in(double d, const char *range)
{
    if (!range) {
        return !isnan(d);
    }
    char *end;
    double low = mc_strtod(range + 1, &end), high = mc_strtod(end + 1, &end);
    return (*range == '[' ? d >= low : d > low) && (*end == ']' ? d <= high : d < high);
}

int mc_nn_list(struct mc_nn_slice v, int64_t *out, int most)
{
    int n = 0;
    const char *c = v.s, *end = v.s + v.n;
    if (v.n >= 2 && *c == '[' && end[-1] == ']') {
        c++;
        end--;
    }
    while (c < end) {
        const char *from = c;
        double d = -1;
        while (c < end && *c != 'x' && *c != ',') {
            c++;
        }
        while (from < c && is_space(*from)) {
            from++;
        }
        struct mc_nn_slice one = { from, (size_t)(c - from) };
        if (n == most || !(mc_nn_same(one, "?") || number(one, true, &d)) || c + 1 == end) {
            return -1;
        }
        out[n++] = (int64_t)d;
        c += c < end;
    }
    return n ? n : -1;
}

static bool one_of(struct mc_nn_slice v, const char *words)
{
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, "|");
        if (n == v.n && memcmp(w, v.s, n) == 0) {
            return true;
        }
        w += n + (w[n] == '|');
    }
    return false;
}

struct mc_nn_slice mc_nn_call(struct mc_nn_slice call, struct mc_nn_slice *args)
{
    const char *open = memchr(call.s, '(', call.n);
    *args = (struct mc_nn_slice){ call.s + call.n, 0 };
    if (!open || call.s[call.n - 1] != ')') {
        return call;
    }
    *args = (struct mc_nn_slice){ open + 1, call.n - (size_t)(open + 1 - call.s) - 1 };
    return (struct mc_nn_slice){ call.s, (size_t)(open - call.s) };
}

static const char *const expected[] = {
    [NN_INT] = "a whole number", [NN_COUNT] = "a whole number of at least 1", [NN_REAL] = "a number", [NN_BOOL] = "true or false", [NN_SIZES] = "sizes, as in 5x5",
    [NN_AXES] = "axes, as in 0,2,3", [NN_WORD] = "one of ", [NN_CALL] = "a name", [NN_TEXT] = "a text", [NN_LAYERS] = "names of layers",
    [NN_SIDE] = "a name",
};

/* The text between the description of the type above and the field's `words`, if both are printed. */
static const char *const before_words[] = { [NN_REAL] = " in ", [NN_SIZES] = " or ", [NN_WORD] = "", [NN_LAYERS] = NULL };

static bool fits(const struct mc_nn_field *f, struct mc_nn_slice v)
{
    int64_t list[NN_MOST_AXES];
    double d;
    switch (f->type) {
    case NN_INT: return number(v, true, &d);
    case NN_COUNT: return number(v, true, &d) && d >= 1;
    case NN_REAL: return number(v, false, &d) && lies_in(d, f->words);
    case NN_BOOL: return one_of(v, "true|false|True|False|1|0");
    case NN_SIZES: return (f->words && one_of(v, f->words)) || mc_nn_list(v, list, NN_MOST_AXES) > 0;
    case NN_AXES: return one_of(v, f->words ? f->words : "auto") || mc_nn_list(v, list, NN_MOST_AXES) > 0;
    case NN_WORD: return one_of(v, f->words);
    case NN_CALL:
    case NN_SIDE: return v.n && (mc_nn_is_letter(*v.s) || *v.s == '-' || *v.s == '.');
    default: return v.n > 0;
    }
}

/* ---- fields ---- */

static int find(const struct mc_nn_field *fields, struct mc_nn_slice name)
{
    for (int i = 0; fields[i].name; i++) {
        if (mc_nn_same(name, fields[i].name)) {
            return i;
        }
    }
    return -1;
}

static bool set(struct mc_nn_settings *s, int i, struct mc_nn_slice v, const char *what)
{
    const struct mc_nn_field *f = &s->field[i];
    if (s->given[i]) {
        return mc_nn_wrong(s->line, v.s, MC_EARG, "%s: '%s' is given twice", what, f->name);
    }
    if (!fits(f, v)) {
        const char *then = f->words ? before_words[f->type] : NULL;
        return mc_nn_wrong(s->line, v.s, MC_EARG, "%s: %s takes %s%s%s, not '%.*s'", what, f->name,
                           expected[f->type], then ? then : "", then ? f->words : "", (int)v.n, v.s);
    }
    s->value[i] = v;
    s->given[i] = true;
    return true;
}

/* A word without a name is given to the first field that has no value yet and accepts it. */
static bool set_next(struct mc_nn_settings *s, struct mc_nn_slice v, int *next, const char *what)
{
    if (s->field[0].name && s->field[0].type == NN_LAYERS && *next == 0) {
        if (s->nloose < COUNT(s->loose)) {
            s->loose[s->nloose++] = v;
            return true;
        }
        return mc_nn_wrong(s->line, v.s, MC_EARG, "%s: more than %d layers", what, COUNT(s->loose));
    }
    while (s->field[*next].name && s->given[*next]) {
        ++*next;
    }
    if (!s->field[*next].name) {
        return mc_nn_wrong(s->line, v.s, MC_EARG, "%s has too many settings: '%.*s' is one too many", what,
                           (int)v.n, v.s);
    }
    return set(s, (*next)++, v, what);
}

bool mc_nn_read(struct mc_nn_settings *s, const struct mc_nn_line *line, const char *at, const char *end,
                char separator, const struct mc_nn_field *fields, const char *what)
{
    struct mc_nn_slice name, text;
    int next = 0;
    *s = (struct mc_nn_settings){ .line = line, .field = fields };
    while (next_word(line, &at, end, separator, &name, &text)) {
        if (!text.s) {
            return false;
        }
        int i = name.n ? find(fields, name) : -1;
        if (name.n && i < 0) {
            return mc_nn_wrong(line, name.s, MC_EARG, "%s has no setting '%.*s'%s", what, (int)name.n, name.s,
                               mc_nn_near_row(name, fields, sizeof *fields).text);
        }
        if (!(name.n ? set(s, i, text, what) : set_next(s, text, &next, what))) {
            return false;
        }
    }
    for (int i = 0; fields[i].name; i++) {
        if (!s->given[i] && !fields[i].preset) {
            return mc_nn_wrong(line, end, MC_EARG, "%s needs %s: %s%s", what, fields[i].name,
                               expected[fields[i].type], fields[i].type == NN_WORD ? fields[i].words : "");
        }
        if (!s->given[i]) {
            s->value[i] = (struct mc_nn_slice){ fields[i].preset, strlen(fields[i].preset) };
        }
    }
    return true;
}

int mc_nn_field(const struct mc_nn_settings *s, const char *name)
{
    return find(s->field, (struct mc_nn_slice){ name, strlen(name) });
}

struct mc_nn_slice mc_nn_get(const struct mc_nn_settings *s, const char *name)
{
    return s->value[mc_nn_field(s, name)];
}

bool mc_nn_is(const struct mc_nn_settings *s, const char *name, const char *word)
{
    return mc_nn_same(mc_nn_get(s, name), word);
}

double mc_nn_real(const struct mc_nn_settings *s, const char *name)
{
    double d = 0;
    number(mc_nn_get(s, name), false, &d);
    return d;
}

int64_t mc_nn_int(const struct mc_nn_settings *s, const char *name)
{
    return (int64_t)mc_nn_real(s, name);
}

bool mc_nn_bool(const struct mc_nn_settings *s, const char *name)
{
    return one_of(mc_nn_get(s, name), "true|True|1");
}
