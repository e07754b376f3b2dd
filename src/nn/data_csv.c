/* data_csv.c: examples from a table as text (CSV), one a line: csv:FILE, followed by settings.
 *
 *     csv:houses.csv:target=price     a column of numbers to learn; by default the last one
 *     csv:irises.csv:label=species    a column of classes, as words or whole numbers
 *
 * Invariant: a field that is missing, or is not a number where one is expected, is an error that names the
 * file, the line and the column.  Numbers have the syntax of C in every locale. */
#include "nn/data.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

struct field { char *s; bool quoted; };
struct lines {                 /* a file, record by record */
    const char *path;
    char *text, *at, *end;
    char comma;
    int64_t line;              /* of the current record, from 1 on */
    struct field *field;
    int n, cap;
};
enum role { EXAMPLE, LABEL, TARGET, LEFT_OUT };
enum { HEADER, DELIMITER, LABELS, TARGETS, COLUMNS, IGNORE, TESTS, NSETTING };
static const char *const setting_names[NSETTING] = { "header", "delimiter", "label", "target", "columns", "ignore", "test" };
static const struct { const char *name; char sign; } delimiters[] = { { "comma", ',' }, { "semicolon", ';' }, { "tab", '\t' } };

struct csv {
    char path[MC_PATH];
    char *value[NSETTING];     /* in path; NULL: not given, "": given without a value */
    char **column;             /* names; without a header 1, 2, ... */
    int ncolumn;
    enum role *role;           /* by column */
    int *order, nexample;      /* the columns of an example, in order */
    int *answer, nanswer;      /* the columns of the label or the targets */
    float *x, *t;              /* (n, nexample) and (n, nanswer), with room for cap rows */
    char **label;              /* of each row, copied */
    int64_t n, cap;
};

/* ---- csv:FILE:setting=value ---- */

bool mc_csv_knows(const char *where)
{
    bool named = mc_path_ends(where, ".csv") || mc_path_ends(where, ".tsv");
    return strncmp(where, "csv:", 4) == 0 || strstr(where, ".csv:") || strstr(where, ".tsv:") ||
           (named && mc_path_is(where, false));
}

static int setting_of(const char *s, size_t n)
{
    int i = 0;
    while (i < NSETTING && !(strlen(setting_names[i]) == n && strncmp(setting_names[i], s, n) == 0)) {
        i++;
    }
    return i;
}

/* Settings are taken off the end, so that a path may have colons. */
static mc_status read_settings(struct csv *c, const char *where)
{
    const char *rest = strncmp(where, "csv:", 4) == 0 ? where + 4 : where;
    if (strlen(rest) >= sizeof c->path || !*rest) {
        return mc_fail(MC_EARG, *rest ? "csv: the path is too long"
                                      : "csv: no file is given; expected csv:FILE or csv:FILE:target=NAME");
    }
    mc_snprintf(c->path, sizeof c->path, "%s", rest);
    for (char *colon; (colon = strrchr(c->path, ':'));) {
        char *word = colon + 1, *equals = strchr(word, '=');
        int i = setting_of(word, equals ? (size_t)(equals - word) : strlen(word));
        if (i == NSETTING && equals && !memchr(word, '/', (size_t)(equals - word))) {
            *equals = '\0';
            const char *near = mc_near_miss(word, setting_names, NSETTING);
            return mc_fail(MC_EARG, "csv: unknown setting '%s'%s%s%s", word,
                           near ? "; did you mean '"
                                : "; expected header, delimiter, label, target, columns, ignore or test",
                           near ? near : "", near ? "'?" : "");
        }
        if (i == NSETTING) {
            break;
        }
        if (c->value[i]) {
            return mc_fail(MC_EARG, "csv: %s is given twice", setting_names[i]);
        }
        c->value[i] = equals ? equals + 1 : word + strlen(word);
        *colon = '\0';
    }
    if (c->value[LABELS] && c->value[TARGETS]) {
        return mc_fail(MC_EARG, "csv: label and target are both given; give only one of them");
    }
    if (c->value[HEADER] && strcmp(c->value[HEADER], "true") != 0 && strcmp(c->value[HEADER], "false") != 0) {
        return mc_fail(MC_EARG, "csv: header must be true or false, not '%s'", c->value[HEADER]);
    }
    return MC_OK;
}

/* ---- records ---- */

static mc_status find_delimiter(struct lines *l, const char *given)
{
    int count[COUNT(delimiters)] = { 0 };
    bool quoted = false;
    for (size_t i = 0; given && i < COUNT(delimiters); i++) {
        if (strcmp(given, delimiters[i].name) == 0) {
            l->comma = delimiters[i].sign;
            return MC_OK;
        }
    }
    if (given) {
        return mc_fail(MC_EARG, "csv: delimiter must be comma, semicolon or tab, not '%s'", given);
    }
    for (const char *s = l->at; s < l->end && *s != '\n'; s++) {
        quoted ^= *s == '"';
        for (size_t i = 0; i < COUNT(delimiters) && !quoted; i++) {
            count[i] += *s == delimiters[i].sign;
        }
    }
    /* Numbers may have decimal commas, so a comma is the last choice. */
    l->comma = count[2] ? '\t' : count[1] ? ';' : ',';
    return MC_OK;
}

static mc_status open_lines(struct lines *l, const char *path, const char *delimiter)
{
    size_t n = 0;
    *l = (struct lines){ .path = path };
    mc_status s = mc_file_unpacked(path, &l->text, &n);
    if (s < 0) {
        return s;
    }
    l->at = l->text +
            (n >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0); /* the byte order mark of UTF-8 */
    l->end = l->text + n;
    return find_delimiter(l, delimiter);
}

static void close_lines(struct lines *l)
{
    mc_free(l->text);
    mc_free(l->field);
    *l = (struct lines){ 0 };
}

static bool is_space(char c, char comma) { return (c == ' ' || c == '\t' || c == '\r') && c != comma; }

/* Reads a field, without its quotes. *last: it is the last one of the record. */
static mc_status next_field(struct lines *l, struct field *f, bool *last)
{
    while (l->at < l->end && is_space(*l->at, l->comma)) {
        l->at++;
    }
    char *to = f->s = l->at;
    f->quoted = l->at < l->end && *l->at == '"';
    if (f->quoted) {
        for (l->at++;
             l->at < l->end && *l->at != '\n' && (*l->at != '"' || (l->at + 1 < l->end && l->at[1] == '"'));
             l->at++) {
            *to++ = *l->at;
            l->at += *l->at == '"';
        }
        if (l->at == l->end || *l->at != '"') {
            return mc_fail(MC_EFORMAT, "line %lld, column %d: a quote is not closed on its line",
                           (long long)l->line, l->n + 1);
        }
        l->at++;
    } else {
        while (l->at < l->end && *l->at != '\n' && *l->at != l->comma) {
            to = ++l->at;
        }
    }
    while (l->at < l->end && is_space(*l->at, l->comma)) {
        l->at++;
    }
    if (l->at < l->end && *l->at != '\n' && *l->at != l->comma) {
        return mc_fail(MC_EFORMAT, "line %lld, column %d: unexpected text after a closing quote",
                       (long long)l->line, l->n + 1);
    }
    while (!f->quoted && to > f->s && is_space(to[-1], l->comma)) {
        to--;
    }
    *last = l->at == l->end || *l->at == '\n';
    l->at += l->at < l->end;
    *to = '\0'; /* at the end of the file this is its final NUL */
    return MC_OK;
}

/* Reads the next record and skips empty lines. 1: a record; 0: the file has ended; else an error. */
static int next_record(struct lines *l)
{
    bool last = false;
    for (l->line++; l->at < l->end; l->line++) {
        const char *s = l->at;
        while (s < l->end && is_space(*s, l->comma)) {
            s++;
        }
        if (s < l->end && *s != '\n') {
            break;
        }
        l->at += s - l->at + (s < l->end);
    }
    if (l->at >= l->end) {
        return 0;
    }
    for (l->n = 0; !last; l->n++) {
        if (l->n == l->cap) {
            int cap = l->cap ? 2 * l->cap : 32;
            struct field *more = mc_realloc(l->field, (size_t)cap * sizeof *more, "data");
            if (!more) {
                return MC_EMEMORY;
            }
            l->field = more;
            l->cap = cap;
        }
        mc_status s = next_field(l, &l->field[l->n], &last);
        if (s < 0) {
            return s;
        }
    }
    return 1;
}

static bool is_number(const struct field *f, double *v)
{
    char *end;
    *v = mc_strtod(f->s, &end);
    return *f->s && end > f->s && !*end;
}

/* ---- columns ---- */

/* Is the first line a header? By default it is one if none of its fields is empty or a number. */
static bool is_header(const struct csv *c, const struct lines *l)
{
    double v;
    bool names = true;
    for (int i = 0; i < l->n; i++) {
        names &= *l->field[i].s && !is_number(&l->field[i], &v);
    }
    return c->value[HEADER] ? strcmp(c->value[HEADER], "true") == 0 : names;
}

static mc_status name_columns(struct csv *c, const struct lines *l, bool header)
{
    c->column = mc_calloc((size_t)l->n, sizeof *c->column, "data");
    c->role = mc_calloc((size_t)l->n, sizeof *c->role, "data");
    c->order = mc_calloc((size_t)l->n, sizeof *c->order, "data");
    c->answer = mc_calloc((size_t)l->n, sizeof *c->answer, "data");
    c->ncolumn = c->column ? l->n : 0;
    if (!c->column || !c->role || !c->order || !c->answer) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < l->n; i++) {
        char number[16];
        mc_snprintf(number, sizeof number, "%d", i + 1);
        c->column[i] = mc_strdup(header && *l->field[i].s ? l->field[i].s : number);
        if (!c->column[i]) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

/* The index of the column with that name, or else that number; -1: an error. */
static int find_column(const struct csv *c, const char *s, size_t n, const char *setting)
{
    int at = 0;
    for (int i = 0; i < c->ncolumn; i++) {
        if (strlen(c->column[i]) == n && strncmp(c->column[i], s, n) == 0) {
            return i;
        }
    }
    for (size_t k = 0; k < n && at >= 0; k++) {
        at = s[k] >= '0' && s[k] <= '9' && at < 1000000 ? at * 10 + (s[k] - '0') : -1;
    }
    if (n == 0 || at < 1 || at > c->ncolumn) {
        char word[64];
        mc_snprintf(word, sizeof word, "%.*s", (int)(n < 60 ? n : 60), s);
        const char *near = mc_near_miss(word, (const char *const *)c->column, (size_t)c->ncolumn);
        mc_fail(MC_EARG, "%s: there is no column '%s' among %d%s%s%s", setting, word, c->ncolumn,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return -1;
    }
    return at - 1;
}

/* Gives a role to the columns that a setting lists, and appends them to `to` unless it is NULL. */
static mc_status give_role(struct csv *c, const char *list, const char *setting, enum role role, int *to,
                           int *n)
{
    for (const char *s = list; *s;) {
        size_t k = strcspn(s, ",");
        int i = find_column(c, s, k, setting);
        if (i < 0) {
            return MC_EARG;
        }
        if (c->role[i] != LEFT_OUT || role == LEFT_OUT) {
            c->role[i] = role;
        }
        if (to && *n < c->ncolumn) {
            to[(*n)++] = i;
        }
        s += k + (s[k] == ',');
    }
    return MC_OK;
}

static mc_status give_roles(struct csv *c)
{
    const char *label = c->value[LABELS], *target = c->value[TARGETS], *given = label ? label : target;
    bool none = label && strcmp(label, "none") == 0;
    if (given && *given && !none) {
        mc_status s = give_role(c, given, label ? "label" : "target", label ? LABEL : TARGET, c->answer,
                                &c->nanswer);
        if (s < 0) {
            return s;
        }
    } else if (!none) {
        c->role[c->ncolumn - 1] = target ? TARGET : LABEL;
        c->answer[c->nanswer++] = c->ncolumn - 1;
    }
    if (label && c->nanswer > 1) {
        return mc_fail(MC_EARG, "label: expected one column, got %d", c->nanswer);
    }
    if (c->value[IGNORE]) {
        mc_status s = give_role(c, c->value[IGNORE], "ignore", LEFT_OUT, NULL, NULL);
        if (s < 0) {
            return s;
        }
    }
    if (c->value[COLUMNS]) {
        mc_status s = give_role(c, c->value[COLUMNS], "columns", EXAMPLE, c->order, &c->nexample);
        for (int i = 0; i < c->nexample && s == MC_OK; i++) {
            for (int k = 0; k < c->nanswer; k++) {
                s = c->order[i] == c->answer[k]
                        ? mc_fail(MC_EARG, "columns: '%s' is already the label or a target",
                                  c->column[c->order[i]])
                        : s;
            }
        }
        if (s < 0) {
            return s;
        }
    } else {
        for (int i = 0; i < c->ncolumn; i++) {
            if (c->role[i] == EXAMPLE) {
                c->order[c->nexample++] = i;
            }
        }
    }
    return c->nexample ? MC_OK : mc_fail(MC_EFORMAT, "there is no input column; is the delimiter right?");
}

/* ---- values ---- */

static mc_status bad_field(const struct csv *c, const struct lines *l, int i, const char *what,
                           const char *text)
{
    char number[16];
    mc_snprintf(number, sizeof number, "%d", i + 1);
    bool named = strcmp(number, c->column[i]) != 0;
    return mc_fail(MC_EFORMAT, "line %lld, column %d%s%s%s: %s%.40s%s", (long long)l->line, i + 1,
                   named ? " (" : "", named ? c->column[i] : "", named ? ")" : "", text ? "'" : "",
                   text ? text : what, text ? what : "");
}

static mc_status number(const struct csv *c, const struct lines *l, int i, float *to)
{
    double v;
    const struct field *f = &l->field[i];
    if (!*f->s) {
        return bad_field(c, l, i, "the field is empty", NULL);
    }
    if (!is_number(f, &v)) {
        return bad_field(c, l, i, "' is not a number", f->s);
    }
    if (!isfinite(v) || fabs(v) > (double)FLT_MAX) {
        return bad_field(c, l, i, isfinite(v) ? "' is too large" : "' is not finite", f->s);
    }
    *to = (float)v;
    return MC_OK;
}

static mc_status reserve(struct csv *c)
{
    if (c->n < c->cap) {
        return MC_OK;
    }
    int64_t cap = c->cap ? 2 * c->cap : 256;
    float *x = mc_realloc(c->x, (size_t)(cap * c->nexample) * sizeof *x, "data");
    c->x = x ? x : c->x;
    float *t = x ? mc_realloc(c->t, (size_t)(cap * (c->nanswer + 1)) * sizeof *t, "data") : NULL;
    c->t = t ? t : c->t;
    char **label = t ? mc_realloc(c->label, (size_t)cap * sizeof *label, "data") : NULL;
    c->label = label ? label : c->label;
    c->cap = label ? cap : c->cap;
    return label ? MC_OK : MC_EMEMORY;
}

static mc_status record(struct csv *c, const struct lines *l)
{
    if (l->n != c->ncolumn) {
        return mc_fail(MC_EFORMAT, "line %lld has %d field%s, but the first line has %d", (long long)l->line,
                       l->n, l->n == 1 ? "" : "s", c->ncolumn);
    }
    mc_status s = reserve(c);
    for (int k = 0; k < c->nexample && s == MC_OK; k++) {
        s = number(c, l, c->order[k], &c->x[c->n * c->nexample + k]);
    }
    bool label = c->nanswer && c->role[c->answer[0]] == LABEL;
    for (int k = 0; k < c->nanswer && s == MC_OK && !label; k++) {
        s = number(c, l, c->answer[k], &c->t[c->n * c->nanswer + k]);
    }
    if (s == MC_OK && label && !*l->field[c->answer[0]].s) {
        s = bad_field(c, l, c->answer[0], "the label is missing", NULL);
    }
    if (s == MC_OK) {
        c->label[c->n] = label ? mc_strdup(l->field[c->answer[0]].s) : NULL;
        s = label && !c->label[c->n] ? MC_EMEMORY : MC_OK;
        c->n += s == MC_OK;
    }
    return s;
}

static mc_status read_file(struct csv *c, const char *path)
{
    struct lines l;
    mc_status s = open_lines(&l, path, c->value[DELIMITER]);
    int more = s < 0 ? s : next_record(&l);
    if (more == 1) {
        bool header = is_header(c, &l);
        s = name_columns(c, &l, header);
        s = s < 0 ? s : give_roles(c);
        more = s < 0 ? s : header ? next_record(&l) : 1;
    }
    for (; more == 1 && s == MC_OK; more = s < 0 ? s : next_record(&l)) {
        s = record(c, &l);
    }
    s = more < 0 ? (mc_status)more : s;
    if (s == MC_OK && c->n == 0) {
        s = mc_fail(MC_EFORMAT, "there are no examples");
    }
    close_lines(&l);
    return s == MC_EFORMAT || s == MC_EARG ? mc_fail_again("%s: ", path) : s;
}

/* ---- labels ---- */

/* Numbers come before words; numbers are ordered by value, words by their bytes. */
static int by_label(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    double u, v;
    bool un = is_number(&(struct field){ (char *)x, false }, &u),
         vn = is_number(&(struct field){ (char *)y, false }, &v);
    return un != vn ? vn - un : un && (u < v || u > v) ? (u > v) - (u < v) : strcmp(x, y);
}

static mc_status find_classes(struct mc_example_set *out, const struct csv *c)
{
    char **sorted = mc_alloc((size_t)c->n * sizeof *sorted, "data");
    int64_t n = 0;
    double v;
    if (!sorted) {
        return MC_EMEMORY;
    }
    memcpy(sorted, c->label, (size_t)c->n * sizeof *sorted);
    qsort(sorted, (size_t)c->n, sizeof *sorted, by_label);
    mc_status s = MC_OK;
    for (int64_t i = 0; i < c->n; i++) {
        if (s == MC_OK && is_number(&(struct field){ sorted[i], false }, &v) &&
            (v < floor(v) || v > floor(v))) {
            s = mc_fail(
                MC_EFORMAT,
                "%s: column '%s' has numbers such as %s, which cannot be labels; to learn numbers use "
                ":target=%s and a loss such as squared_error",
                c->path, c->column[c->answer[0]], sorted[i], c->column[c->answer[0]]);
        }
        if (n == 0 || strcmp(sorted[n - 1], sorted[i]) != 0) {
            sorted[n++] = sorted[i];
        }
    }
    out->name = s < 0 ? NULL : mc_calloc((size_t)n, sizeof *out->name, "data");
    out->classes = out->name ? (int)n : 0;
    s = s < 0 || out->name ? s : MC_EMEMORY;
    for (int64_t i = 0; i < n && s == MC_OK; i++) {
        out->name[i] = mc_strdup(sorted[i]);
        s = out->name[i] ? MC_OK : MC_EMEMORY;
    }
    mc_free(sorted);
    return s;
}

static mc_status number_labels(struct mc_example_set *out, const struct csv *c, const char *path)
{
    int64_t *t = mc_array_data(out->t);
    for (int64_t i = 0; i < c->n; i++) {
        char **at = bsearch(&c->label[i], out->name, (size_t)out->classes, sizeof *out->name, by_label);
        if (!at) {
            return mc_fail(MC_EFORMAT, "%s: the label '%s' is not among those of %s", path, c->label[i],
                           c->path);
        }
        t[i] = at - out->name;
    }
    return MC_OK;
}

/* ---- the reader ---- */

static void forget(struct csv *c)
{
    for (int i = 0; i < c->ncolumn; i++) {
        mc_free(c->column[i]);
    }
    for (int64_t i = 0; i < c->n; i++) {
        mc_free(c->label[i]);
    }
    mc_free(c->column);
    mc_free(c->role);
    mc_free(c->order);
    mc_free(c->answer);
    mc_free(c->x);
    mc_free(c->t);
    mc_free(c->label);
    c->column = NULL, c->role = NULL, c->order = c->answer = NULL, c->x = c->t = NULL, c->label = NULL;
    c->ncolumn = c->nexample = c->nanswer = 0;
    c->n = c->cap = 0;
}

static mc_status name_list(char ***to, const struct csv *c, const int *at, int n)
{
    *to = mc_calloc((size_t)n, sizeof **to, "data");
    for (int i = 0; *to && i < n; i++) {
        (*to)[i] = mc_strdup(c->column[at[i]]);
        if (!(*to)[i]) {
            return MC_EMEMORY;
        }
    }
    return *to ? MC_OK : MC_EMEMORY;
}

static mc_status hand_over(struct csv *c, const char *path, struct mc_example_set *out)
{
    bool targets = c->nanswer && c->role[c->answer[0]] == TARGET;
    out->x = mc_array_from(MC_FLOAT32, MC_SHAPE(c->n, c->nexample), c->x);
    out->t = !out->x   ? NULL
             : targets ? mc_array_from(MC_FLOAT32, MC_SHAPE(c->n, c->nanswer), c->t)
                       : mc_array_new(MC_INT64, MC_SHAPE(c->n));
    if (!out->t) {
        return mc_last_status();
    }
    out->ncolumn = c->nexample;
    mc_status s = name_list(&out->column, c, c->order, c->nexample);
    if (s == MC_OK && targets) {
        out->targets = c->nanswer;
        s = name_list(&out->name, c, c->answer, c->nanswer);
    } else if (s == MC_OK && c->nanswer) {
        s = number_labels(out, c, path);
    } else if (s == MC_OK) {
        memset(mc_array_data(out->t), 0, (size_t)c->n * sizeof(int64_t));
        out->classes = 1;
    }
    return s;
}

mc_status mc_csv_read(const char *where, enum mc_part part, struct mc_example_set *out)
{
    struct csv *c = mc_calloc(1, sizeof *c, "data");
    mc_status s = c ? read_settings(c, where) : MC_EMEMORY;
    const char *tests = s == MC_OK ? c->value[TESTS] : NULL;
    bool none = tests && strcmp(tests, "none") == 0, separate = part == MC_TEST && tests && !none;
    s = none && part == MC_TEST
            ? mc_fail(MC_EARG, "%s: test=none: there are no examples to test with", c->path)
            : s;
    out->text = "rows of a table";
    out->whole = !tests;
    s = s < 0 ? s : read_file(c, c->path);
    if (s == MC_OK && c->nanswer && c->role[c->answer[0]] == LABEL) {
        s = find_classes(out, c); /* of the training file; a test file has the same */
    }
    if (s == MC_OK && separate) {
        forget(c);
        s = read_file(c, tests);
    }
    s = s < 0 ? s : hand_over(c, separate ? tests : c->path, out);
    if (c) {
        forget(c);
    }
    mc_free(c);
    return s;
}
