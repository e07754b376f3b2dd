/* markup.h: is this text well-formed XML (or HTML that is well-formed but for its void elements)?
 *
 * Checked: every element is closed by its own name and in order, attributes are quoted and none twice, '&'
 * begins one of the five entities or a number, no '<' stands in an attribute, no control character stands
 * anywhere, one root. */
#ifndef MARKUP_H
#define MARKUP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKUP_DEEP = 256 };
struct markup { const char *s; char why[160]; };

static inline bool markup_says(struct markup *m, const char *why)
{
    snprintf(m->why, sizeof m->why, "%s at \"%.60s\"", why, m->s);
    return false;
}

static inline size_t markup_name(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:");
}

static inline bool markup_entity(struct markup *m)
{
    static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(m->s, known[i], strlen(known[i])) == 0) {
            m->s += strlen(known[i]);
            return true;
        }
    }
    return markup_says(m, "unknown entity");
}

/* Text until one of `end`, entities checked. */
static inline bool markup_text(struct markup *m, const char *end)
{
    while (*m->s && !strchr(end, *m->s)) {
        if (*m->s == '&') {
            if (!markup_entity(m)) {
                return false;
            }
            continue;
        }
        if (*m->s == '<' || ((unsigned char)*m->s < 0x20 && *m->s != '\n' && *m->s != '\t')) {
            return markup_says(m, "stray character");
        }
        m->s++;
    }
    return true;
}

static inline bool markup_attributes(struct markup *m)
{
    const char *seen[32];
    size_t len[32], n = 0;
    while (m->s += strspn(m->s, " \n"), *m->s && *m->s != '>' && *m->s != '/') {
        size_t k = markup_name(m->s);
        for (size_t i = 0; i < n; i++) {
            if (len[i] == k && strncmp(seen[i], m->s, k) == 0) {
                return markup_says(m, "attribute given twice");
            }
        }
        if (!k || m->s[k] != '=' || m->s[k + 1] != '"' || n == 32) {
            return markup_says(m, "bad attribute");
        }
        seen[n] = m->s;
        len[n++] = k;
        m->s += k + 2;
        if (!markup_text(m, "\"") || *m->s++ != '"') {
            return *m->why ? false : markup_says(m, "attribute without end");
        }
    }
    return true;
}

static inline bool markup_good(struct markup *m, const char *text, bool html)
{
    static const char *const nothing_inside[] = { "meta", "br", "hr", "link" };
    const char *open[MARKUP_DEEP];
    size_t len[MARKUP_DEEP], deep = 0, roots = 0;
    *m = (struct markup){ .s = text };
    if (html && strncmp(text, "<!DOCTYPE html>", 15) == 0) {
        m->s += 15;
    }
    while (*m->s) {
        if (*m->s != '<') {
            const char *from = m->s;
            if (!markup_text(m, "<")) {
                return false;
            }
            if (!deep && strspn(from, " \n") < (size_t)(m->s - from)) {
                return markup_says(m, "text outside the root");
            }
            continue;
        }
        bool closes = m->s[1] == '/';
        m->s += closes ? 2 : 1;
        const char *name = m->s;
        size_t k = markup_name(name);
        m->s += k;
        if (!k) {
            return markup_says(m, "element without a name");
        }
        if (closes) {
            if (*m->s++ != '>' || !deep || len[deep - 1] != k || strncmp(open[deep - 1], name, k) != 0) {
                m->s = name;
                return markup_says(m, "closes what is not open");
            }
            deep--;
            continue;
        }
        roots += !deep;
        if (!markup_attributes(m)) {
            return false;
        }
        bool empty = *m->s == '/';
        m->s += empty;
        if (*m->s++ != '>') {
            return markup_says(m, "element without end");
        }
        for (size_t i = 0; html && i < sizeof nothing_inside / sizeof *nothing_inside; i++) {
            empty |= strlen(nothing_inside[i]) == k && strncmp(nothing_inside[i], name, k) == 0;
        }
        if (!empty && deep == MARKUP_DEEP) {
            return markup_says(m, "too deep");
        }
        if (!empty) {
            open[deep] = name;
            len[deep++] = k;
        }
    }
    if (deep || roots != 1) {
        return markup_says(m, deep ? "elements left open" : "not one root");
    }
    return true;
}

/* How often `word` stands in `text`. */
static inline int markup_count(const char *text, const char *word)
{
    int n = 0;
    for (const char *s = text; (s = strstr(s, word)); s += strlen(word)) {
        n++;
    }
    return n;
}

/* All that print(what, to) writes; the caller frees it. */
#define MARKUP_WRITTEN(status, to, call)                                                           \
    __extension__({                                                                                \
        char *text_ = NULL;                                                                        \
        size_t n_ = 0;                                                                             \
        FILE *to = open_memstream(&text_, &n_);                                                    \
        (status) = (call);                                                                         \
        fclose(to);                                                                                \
        text_;                                                                                     \
    })

#endif
