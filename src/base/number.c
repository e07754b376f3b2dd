/* number.c: numbers as text and text as numbers, in the C locale whatever the program's locale is.
 *
 * Invariant: the rest of the library calls no printf, scanf, strtod or ctype function; scripts/symbols.sh
 * checks that. */
#include "base/base.h"
#include <locale.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain; /* lives as long as the process */

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* This thread's locale becomes C's; the one before it, for leave.  Where there is no memory for one, it
 * stays. */
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
