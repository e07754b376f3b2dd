/* indent.c: C text with one statement a line, indented by the depth of its braces.
 *
 * Invariant: only white space between tokens changes.  Strings, comments and lines of the preprocessor are
 * copied as they are. */
#include "render/kernel.h"

enum { WIDTH = 100, STEP = 4 };

struct indenting {
    struct mc_str *out;
    struct mc_str line;         /* the statement so far, without its indentation */
    const char *at;             /* the rest of the text */
    int depth;                  /* of braces */
    int parens, group;          /* of parentheses; of braces in an initializer or a type */
    bool blank;                 /* an empty line goes before the next statement */
};

/* The length of a string, a comment or one character at s. */
static size_t token(const char *s)
{
    if (*s == '"' || *s == '\'') {
        size_t n = 1;
        while (s[n] && s[n] != *s) {
            n += s[n] == '\\' && s[n + 1] ? 2 : 1;
        }
        return s[n] ? n + 1 : n;
    }
    if (strncmp(s, "//", 2) == 0) {
        return strcspn(s, "\n");
    }
    if (strncmp(s, "/*", 2) == 0) {
        const char *end = strstr(s + 2, "*/");
        return end ? (size_t)(end + 2 - s) : strlen(s);
    }
    return 1;
}

static size_t preprocessor_line(const char *s)
{
    size_t n = strcspn(s, "\n");
    while (n && s[n] == '\n' && s[n - 1] == '\\') {
        n += 1 + strcspn(s + n + 1, "\n");
    }
    return n;
}

/* Where to break a line that is too long: at the last space outside of strings, of those with the fewest open
 * parentheses. 0: nowhere. */
static size_t break_at(const char *s, size_t most)
{
    size_t best = 0;
    int depth = 0, least = 0;
    for (size_t i = 0, n; s[i] && i <= most; i += n) {
        n = token(s + i);
        if (strncmp(s + i, "//", 2) == 0) {
            break;
        }
        depth += s[i] == '(' || s[i] == '[' || s[i] == '{';
        depth -= s[i] == ')' || s[i] == ']' || s[i] == '}';
        if (s[i] == ' ' && i > most / 2 && (!best || depth <= least)) {
            best = i;
            least = depth;
        }
    }
    return best;
}

static void put_spaces(struct mc_str *out, int n)
{
    mc_str_addf(out, "%*s", n, "");
}

/* Ends the statement. */
static void end_line(struct indenting *t)
{
    size_t n = t->line.n;
    while (n && t->line.s[n - 1] == ' ') {
        n--;
    }
    if (!n) {
        return;
    }
    t->line.s[n] = '\0';
    mc_str_add(t->out, t->blank && t->out->n ? "\n" : "");
    t->blank = false;
    const char *s = t->line.s;
    int by = STEP * t->depth;
    put_spaces(t->out, by);
    for (size_t cut; strlen(s) + (size_t)by > WIDTH && !strchr(s, '\n') &&
                     (cut = break_at(s, by < WIDTH ? (size_t)(WIDTH - by) : 1)) > 0;
         s += cut + 1) {
        mc_str_addn(t->out, s, cut);
        mc_str_add(t->out, "\n");
        by = STEP * (t->depth + 2);
        put_spaces(t->out, by);
    }
    mc_str_addf(t->out, "%s\n", s);
    t->line.n = 0;
    t->line.s[0] = '\0';
}

/* A comment on the same line stays there. */
static void end_statement(struct indenting *t)
{
    const char *s = t->at + strspn(t->at, " \t");
    if (s[0] == '/' && (s[1] == '/' || s[1] == '*')) {
        const size_t n = token(s);
        mc_str_add(&t->line, " ");
        mc_str_addn(&t->line, s, n);
        t->at = s + n;
    }
    end_line(t);
}

static bool starts_with(const struct mc_str *line, const char *word)
{
    const size_t n = strlen(word);
    return line->n >= n && strncmp(line->s, word, n) == 0 &&
           (line->n == n || strchr(" ({", line->s[n]) != NULL);
}

static bool starts_with_any(const struct mc_str *line, const char *const *words, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        found |= starts_with(line, words[i]);
    }
    return found;
}

/* Is a brace after this an initializer's or a type's? */
static bool opens_group(const struct indenting *t)
{
    static const char *const types[] = { "union", "struct", "enum" };
    const struct mc_str *l = &t->line;
    size_t n = l->n;
    while (n && l->s[n - 1] == ' ') {
        n--;
    }
    if (t->group || t->parens || (n && strchr("=,(", l->s[n - 1]))) {
        return true;
    }
    size_t from = n; /* "union {", "struct tag {": the last word, or the one before */
    for (int words = 0; words < 2 && from; words++) {
        while (from && l->s[from - 1] == ' ') {
            from--;
        }
        const size_t end = from;
        while (from && l->s[from - 1] != ' ' && !strchr("();{}", l->s[from - 1])) {
            from--;
        }
        for (size_t i = 0; i < NELEM(types); i++) {
            if (end - from == strlen(types[i]) && strncmp(l->s + from, types[i], end - from) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void open_brace(struct indenting *t)
{
    static const char *const inside[] = { "for", "if", "while", "switch", "else", "do", "} else" };
    if (opens_group(t)) {
        t->group++;
        mc_str_add(&t->line, "{");
        return;
    }
    if (t->depth == 0 && t->line.n && !starts_with_any(&t->line, inside, NELEM(inside))) {
        end_line(t); /* the body of a function */
    }
    mc_str_add(&t->line, "{");
    end_statement(t);
    t->depth++;
}

static void close_brace(struct indenting *t)
{
    if (t->group) {
        t->group--;
        mc_str_add(&t->line, "}");
        return;
    }
    end_line(t);
    t->blank = false;
    t->depth -= t->depth > 0;
    mc_str_add(&t->line, "}");
    const char *next = t->at + strspn(t->at, " \t\n");
    const bool goes_on = strncmp(next, "else", 4) == 0 && strchr(" \t\n{", next[4]);
    if (goes_on) {
        mc_str_add(&t->line, " ");
        t->at = next;
    } else if (*next != ';') {
        end_statement(t);
    }
}

/* White space: one space, or none at the start of a statement; an empty line between statements. */
static void space(struct indenting *t)
{
    const size_t n = strspn(t->at, " \t\n");
    int lines = 0;
    for (size_t i = 0; i < n; i++) {
        lines += t->at[i] == '\n';
    }
    t->at += n;
    if (!t->line.n) {
        t->blank |= lines > 1;
    } else if (lines && !t->parens &&
               (starts_with(&t->line, "_Pragma") || starts_with(&t->line, "INDEPENDENT") ||
                starts_with(&t->line, "PARALLEL") || starts_with(&t->line, "PARALLEL_ELEMENTS"))) {
        end_line(t);
    } else if (t->line.s[t->line.n - 1] != ' ') {
        mc_str_add(&t->line, " ");
    }
}

static void comment_alone(struct indenting *t, size_t n)
{
    mc_str_addn(&t->line, t->at, n);
    t->at += n;
    if (t->at[strspn(t->at, " \t")] == '\n' || !*t->at) {
        end_line(t);
    }
}

static void put_one(struct indenting *t)
{
    const char c = *t->at;
    const size_t n = token(t->at);
    const bool statement = !t->parens && !t->group;
    if (strchr(" \t\n", c)) {
        space(t);
    } else if (c == '#' && !t->line.n) {
        const size_t whole = preprocessor_line(t->at);
        mc_str_add(t->out, t->blank && t->out->n ? "\n" : "");
        t->blank = false;
        mc_str_addn(t->out, t->at, whole);
        mc_str_add(t->out, "\n");
        t->at += whole;
    } else if (strncmp(t->at, "//", 2) == 0) {
        mc_str_addn(&t->line, t->at, n);
        t->at += n;
        end_line(t);
    } else if (c == '/' && n > 1 && !t->line.n) {
        comment_alone(t, n);
    } else if (c == '{' || c == '}') {
        t->at++;
        (c == '{' ? open_brace : close_brace)(t);
    } else {
        mc_str_addn(&t->line, t->at, n);
        t->at += n;
        t->parens += c == '(';
        t->parens -= c == ')' && t->parens > 0;
        if (c == ';' && statement) {
            end_statement(t);
        }
    }
}

void mc_indent(struct mc_str *out, const char *text)
{
    struct indenting t = { .out = out, .at = text };
    while (*t.at && !t.line.bad && !out->bad) {
        put_one(&t);
    }
    out->bad |= t.line.bad;
    if (!out->bad) {
        end_line(&t);
    }
    mc_str_free(&t.line);
}
