/* number.c: converts between numbers and text, in the C locale whatever the locale of the program is.
 *
 * Invariant: no other code of the library calls printf, scanf, strtod or ctype functions; scripts/symbols.sh
 * checks this. */
#include "base/base.h"
#include <locale.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain; /* never freed */

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Sets this thread's locale to C and returns the previous one, for leave.  If there was no memory for the C
 * locale, nothing changes. */
static locale_t enter(void)
{
    pthread_once(&once, make_plain);
    return plain ? uselocale(plain) : (locale_t)0;
}

static void leave(locale_t before)
{
    if (before) {
        uselocale(before);
    }
}

double mc_strtod(const char *s, char **end)
{
    const locale_t before = enter();
    const double v = strtod(s, end);
    leave(before);
    return v;
}

float mc_strtof(const char *s, char **end)
{
    const locale_t before = enter();
    const float v = strtof(s, end);
    leave(before);
    return v;
}

int mc_vsnprintf(char *text, size_t n, const char *fmt, va_list ap)
{
    const locale_t before = enter();
    const int length = vsnprintf(text, n, fmt, ap);
    leave(before);
    return length;
}

int mc_snprintf(char *text, size_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int length = mc_vsnprintf(text, n, fmt, ap);
    va_end(ap);
    return length;
}

int mc_vfprintf(FILE *to, const char *fmt, va_list ap)
{
    const locale_t before = enter();
    const int length = vfprintf(to, fmt, ap);
    leave(before);
    return length;
}

int mc_fprintf(FILE *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int length = mc_vfprintf(to, fmt, ap);
    va_end(ap);
    return length;
}

bool mc_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

bool mc_same_word(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}
