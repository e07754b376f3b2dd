/* text.c: growing text whose failure is sticky, and forms with holes.
 *
 * Invariant: a form without $$ that was filled without failure contains no '$'. */
#include "nn/nn.h"
#include <stdio.h>

void mc_nn_addn(struct mc_nn_text *t, const char *s, size_t n)
{
    if (!t->bad && t->n + n + 1 > t->cap) {
        size_t cap = (t->n + n + 1) * 2;
        char *p = mc_realloc(t->s, cap, "nets");
        t->bad = !p;
        t->s = p ? p : t->s;
        t->cap = p ? cap : t->cap;
    }
    if (!t->bad) {
        memcpy(t->s + t->n, s, n);
        t->n += n;
        t->s[t->n] = '\0';
    }
}

void mc_nn_add(struct mc_nn_text *t, const char *s)
{
    mc_nn_addn(t, s, strlen(s));
}

void mc_nn_addv(struct mc_nn_text *t, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    va_copy(again, ap);
    int n = mc_vsnprintf(small, sizeof small, fmt, ap);
    if (n >= (int)sizeof small) {
        char *big = mc_alloc((size_t)n + 1, "nets");
        t->bad |= !big;
        if (big) {
            mc_vsnprintf(big, (size_t)n + 1, fmt, again);
            mc_nn_addn(t, big, (size_t)n);
            mc_free(big);
        }
    } else if (n >= 0) {
        mc_nn_addn(t, small, (size_t)n);
    }
    va_end(again);
}

void mc_nn_addf(struct mc_nn_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mc_nn_addv(t, fmt, ap);
    va_end(ap);
}

void mc_nn_free(struct mc_nn_text *t)
{
    mc_free(t->s);
    *t = (struct mc_nn_text){ 0 };
}

/* ---- holes ---- */

void mc_nn_hole(struct mc_nn_holes *h, const char *name, const char *text)
{
    int i = 0;
    while (i < h->n && strcmp(h->at[i].name, name) != 0) {
        i++;
    }
    if (i < COUNT(h->at)) {
        h->at[i] = (struct mc_nn_hole){ name, text };
        h->n += i == h->n;
    }
}

static const char *hole_text(const struct mc_nn_holes *h, const char *name, size_t n)
{
    for (int i = 0; i < h->n; i++) {
        if (strlen(h->at[i].name) == n && memcmp(h->at[i].name, name, n) == 0) {
            return h->at[i].text;
        }
    }
    return NULL;
}

/* A character of a name, in any locale. */
bool mc_nn_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(const char *s)
{
    size_t n = 0;
    while (mc_nn_is_letter(s[n])) {
        n++;
    }
    return n;
}

/* Fills the form up to `end`; *empty: one of its holes is empty. */
static bool fill(struct mc_nn_text *out, const char *form, const char *end, const struct mc_nn_holes *h,
                 bool *empty)
{
    while (form < end) {
        size_t n = 1;
        if (*form == '{') {
            const char *close = memchr(form, '}', (size_t)(end - form));
            size_t before = out->n;
            bool without = false;
            if (!close || !fill(out, form + 1, close, h, &without)) {
                return false;
            }
            if (without && out->s) {
                out->s[out->n = before] = '\0';
            }
            n = (size_t)(close - form) + 1;
        } else if (*form == '$' && form[1] == '$') {
            mc_nn_add(out, "$");
            n = 2;
        } else if (*form == '$' && form[1] == '_') {
            mc_nn_add(out, h->own);
            n = 1;
        } else if (*form == '$') {
            n += name_length(form + 1);
            const char *text = hole_text(h, form + 1, n - 1);
            *empty |= text && !*text;
            if (!text || !fill(out, text, text + strlen(text), h, empty)) {
                return false;
            }
        } else {
            while (form + n < end && form[n] != '$' && form[n] != '{') {
                n++;
            }
            mc_nn_addn(out, form, n);
        }
        form += n;
    }
    return true;
}

bool mc_nn_fill(struct mc_nn_text *out, const char *form, const struct mc_nn_holes *holes)
{
    bool empty = false;
    mc_nn_addn(out, "", 0);
    return fill(out, form, form + strlen(form), holes, &empty);
}
