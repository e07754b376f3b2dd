/* monochord_read.c: reads the programs of `monochord run`: what mc_formula reads, and two kinds of statement
 * more:
 *
 *     input x float32[?, 784]; input t int32[?]
 *     shared W float32[784, 10]
 *     p = softmax(dot(x, W))
 *     cost = mean(crossentropy(p, t))
 *     output cost, borrow(p)
 *     update W = W - 0.1 * grad(cost, W)
 *
 * Invariant: output and update statements are blanked out, not cut out, of the text that mc_formula
 * reads, so the lines it speaks of are the file's. */
#include "run.h"
#include <stdlib.h>
#include <string.h>

/* The end of the statement that begins at s: a line end or ';' outside brackets, texts and comments. */
static size_t statement(const char *s)
{
    int depth = 0;
    size_t i = 0;
    for (; s[i]; i++) {
        if (s[i] == '#') {
            i += strcspn(s + i, "\n");
        } else if (s[i] == '"' || s[i] == '\'') {
            char quote = s[i++];
            while (s[i] && s[i] != quote && s[i] != '\n') {
                i += s[i] == '\\' && s[i + 1] ? 2 : 1;
            }
        } else if (s[i] == '\\' && s[i + 1] == '\n') {
            i++;
            continue;
        }
        depth += (s[i] == '(' || s[i] == '[') - (s[i] == ')' || s[i] == ']');
        if (!s[i] || s[i] == ';' || (s[i] == '\n' && depth <= 0)) {
            break;
        }
    }
    return i;
}

/* Comments become blanks; quotes hide them. */
static void blank_comments(char *s)
{
    for (char quote = 0; *s; s++) {
        if (quote) {
            s += *s == '\\' && s[1];
            quote = *s == quote || *s == '\n' ? '\0' : quote;
        } else if (*s == '"' || *s == '\'') {
            quote = *s;
        } else if (*s == '#') {
            size_t n = strcspn(s, "\n");
            memset(s, ' ', n);
            s += n - 1;
        }
    }
}

/* Nothing but blanks, line ends and comments? */
static bool says_nothing(const char *s)
{
    while (*(s += strspn(s, " \t\r\n;")) == '#') {
        s += strcspn(s, "\n");
    }
    return !*s;
}

bool word_is(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static size_t word_length(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
}

static bool add_input(struct program *p, const char *s)
{
    s += strspn(s, " \t");
    size_t n = word_length(s);
    if (p->ninput == MOST_INPUTS) {
        complain("%s: more than %d inputs", p->path, MOST_INPUTS);
        return false;
    }
    if (n) {
        p->input[p->ninput] = must(calloc(n + 1, 1));
        memcpy(p->input[p->ninput++], s, n);
        text_addf(&p->inputs, "%s%.*s", p->inputs.n ? ", " : "", (int)n, s);
    }
    return true;
}

static bool split_statements(struct program *p)
{
    char *s = p->formulas.s;
    for (size_t at = 0, n; s[at]; at += n + (s[at + n] != '\0')) {
        n = statement(s + at);
        char *from = s + at + strspn(s + at, " \t\r");
        size_t word = word_length(from), left = n - (size_t)(from - (s + at)),
               rest = word + strspn(from + word, " \t");
        bool assigned = from[rest] == '=' && from[rest + 1] != '='; /* a variable of that name */
        bool output = word_is(from, word, "output") && !assigned,
             update = word_is(from, word, "update") && !assigned;
        if (word_is(from, word, "input") && !add_input(p, from + word)) {
            return false;
        }
        if (output || update) {
            struct text *to = output ? &p->outputs : &p->updates;
            const size_t before = to->n;
            text_addf(to, "%s%.*s", !to->n ? "" : output ? ", " : "; ", (int)(left - word), from + word);
            blank_comments(to->s + before); /* one would hide what is added behind it */
            for (size_t i = 0; i < left; i++) {
                from[i] = from[i] == '\n' ? '\n' : ' ';
            }
        }
    }
    return true;
}

static bool some_results(const struct program *p)
{
    return p->outputs.n || p->updates.n ||
           !complain("%s: nothing to compute: write 'output NAME, ...' or 'update NAME = ...'", p->path);
}

static bool good_graph(const struct program *p)
{
    if (*mc_error(p->g)) {
        complain("%s: %s", p->path, mc_error(p->g));
    }
    return !*mc_error(p->g);
}

/* The nodes that a list of outputs or updates names: for pictures and for the graph as it was written. */
static bool add_results(struct program *p, char *s, char separator)
{
    while (s && *s) {
        size_t n = 0;
        for (int depth = 0; s[n] && (depth || s[n] != separator); n++) {
            depth += (s[n] == '(' || s[n] == '[') - (s[n] == ')' || s[n] == ']');
        }
        char *one = must(calloc(n + 1, 1)), *from = one;
        memcpy(one, s, n);
        from += strspn(from, " \t\n");
        if (separator == ';') {
            from = strchr(from, '=') ? strchr(from, '=') + 1 : from;
        } else if (strncmp(from, "borrow(", 7) == 0) {
            from += 6;
        }
        bool blank = !from[strspn(from, " \t\n")];
        if (!blank && p->nresult < MOST_OUTPUTS) {
            p->result[p->nresult++] = (mc_formula)(p->g, from);
        }
        free(one);
        s += n + (s[n] != '\0');
    }
    return good_graph(p);
}

bool read_program(struct program *p)
{
    p->g = must(mc_graph_new());
    mc_here(NULL, 0); /* the place of a mistake is in the file, not here */
    if (!text_read(&p->formulas, p->path) || !split_statements(p)) {
        return false;
    }
    if (!says_nothing(p->formulas.s)) {
        (mc_formula)(p->g, p->formulas.s);
    }
    return good_graph(p) && some_results(p) && add_results(p, p->outputs.s, ',') &&
           (p->nnamed = p->nresult, true) && add_results(p, p->updates.s, ';');
}
