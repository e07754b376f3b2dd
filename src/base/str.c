/* str.c: growable text that remembers a failure.
 *
 * Invariant: once `bad` is set nothing more is added, and the text before stays whole and terminated; so a
 * printer adds without checks and its caller checks once, with mc_str_take. */
#include "base/base.h"
#include <errno.h>
#include <stdio.h>

/* Makes space for n more bytes and the terminator. */
static bool reserve(struct mc_str *b, size_t n)
{
    if (b->bad) {
        return false;
    }
    if (n < b->cap - b->n) {
        return true;
    }
    if (n > SIZE_MAX / 2 - b->n || !mc_vec_grow((void **)&b->s, &b->cap, b->n + n + 1, 1)) {
        b->bad = true;
        return false;
    }
    return true;
}

void mc_str_addn(struct mc_str *b, const char *s, size_t n)
{
    if (reserve(b, n)) {
        if (n) {
            memcpy(b->s + b->n, s, n);
        }
        b->n += n;
        b->s[b->n] = '\0';
    }
}

void mc_str_add(struct mc_str *b, const char *s)
{
    mc_str_addn(b, s, strlen(s));
}

void mc_str_addv(struct mc_str *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    if (reserve(b, 0)) {
        size_t left = b->cap - b->n;
        int n = mc_vsnprintf(b->s + b->n, left, fmt, ap);
        if (n >= 0 && (size_t)n >= left && reserve(b, (size_t)n)) {
            mc_vsnprintf(b->s + b->n, (size_t)n + 1, fmt, again);
        }
        if (n < 0 || b->bad) {
            b->bad = true;
            b->s[b->n] = '\0';
        } else {
            b->n += (size_t)n;
        }
    }
    va_end(again);
}

void mc_str_addf(struct mc_str *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mc_str_addv(b, fmt, ap);
    va_end(ap);
}

/* Refused as by Unicode: surrogates, overlong forms, code points above U+10FFFF. */
size_t mc_utf8(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    const unsigned first = n ? p[0] : 0xff;
    const size_t k = first < 0x80                    ? 1
                     : first >= 0xc2 && first < 0xe0 ? 2
                     : (first & 0xf0) == 0xe0        ? 3
                     : first >= 0xf0 && first < 0xf5 ? 4
                                                     : 0;
    for (size_t i = 1; i < k; i++) {
        if (i == n || (p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool surrogate = first == 0xed && p[1] >= 0xa0, beyond = first == 0xf4 && p[1] >= 0x90,
         overlong = (first == 0xe0 && p[1] < 0xa0) || (first == 0xf0 && p[1] < 0x90);
    return k > 1 && (surrogate || overlong || beyond) ? 0 : k;
}

/* '<' is escaped too, so that the text may be part of a script in an HTML page. */
void mc_str_json(struct mc_str *b, const char *s)
{
    mc_str_add(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            mc_str_addf(b, "\\%c", c);
        } else if (c == '\n') {
            mc_str_add(b, "\\n");
        } else if (c < 0x20 || c == '<' || c == 0x7f) {
            mc_str_addf(b, "\\u%04x", c);
        } else {
            mc_str_addn(b, s, 1);
        }
    }
    mc_str_add(b, "\"");
}

void mc_str_html(struct mc_str *b, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&': mc_str_add(b, "&amp;"); break;
        case '<': mc_str_add(b, "&lt;"); break;
        case '>': mc_str_add(b, "&gt;"); break;
        case '"': mc_str_add(b, "&quot;"); break;
        case '\'': mc_str_add(b, "&#39;"); break;
        default: mc_str_addn(b, s, 1);
        }
    }
}

char *mc_str_take(struct mc_str *b)
{
    mc_str_addn(b, "", 0); /* so that an empty text is not NULL */
    char *s = b->s;
    if (b->bad) {
        mc_free(s);
        s = NULL;
    }
    *b = (struct mc_str){ 0 };
    return s;
}

void mc_str_free(struct mc_str *b)
{
    mc_free(b->s);
    *b = (struct mc_str){ 0 };
}

mc_status mc_str_write(struct mc_str *b, FILE *to, const char *what)
{
    mc_status s = MC_OK;
    if (b->bad) {
        s = MC_EMEMORY;
    } else if (fwrite(b->s ? b->s : "", 1, b->n, to) != b->n || fflush(to) != 0) {
        s = mc_fail(MC_EFILE, "%s: cannot write: %s", what, strerror(errno));
    }
    mc_str_free(b);
    return s;
}

void mc_str_bytes(struct mc_str *b, double bytes)
{
    static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < NELEM(unit); u++) {
        bytes /= 1024;
    }
    mc_str_addf(b, "%.*f %s", u && bytes < 10 ? 1 : 0, bytes, unit[u]);
}

/* Length in bytes of the UTF-8 character at s; 0: not valid UTF-8, or U+FFFE or U+FFFF, which XML forbids. */
static size_t shown_utf8(const char *s)
{
    const size_t n = mc_utf8(s, strnlen(s, 4));
    return n == 3 && memcmp(s, "\xef\xbf", 2) == 0 && (unsigned char)s[2] >= 0xbe ? 0 : n;
}

void mc_str_line(struct mc_str *out, const char *s, int columns)
{
    size_t start = out->n, mark = out->n; /* mark: where the last column begins */
    int n = 0;
    while (*s) {
        size_t k = shown_utf8(s);
        if (n == columns) {
            if (!out->bad) {
                out->n = MC_MAX(mark, start);
                out->s[out->n] = '\0';
            }
            mc_str_add(out, "…");
            return;
        }
        mark = out->n;
        bool odd = k == 0 || (unsigned char)*s < 0x20 || *s == 0x7f;
        mc_str_addn(out, odd ? (*s == '\n' ? " " : "?") : s, odd ? 1 : k);
        s += k ? k : 1;
        n++;
    }
}
