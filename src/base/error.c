/* error.c: every failure is reported here.
 *
 * Invariant: nothing here allocates, so running out of memory can be reported.  The text is a fixed buffer
 * for each thread.  A message is formatted in another buffer first, so it may contain the previous one. */
#include "base/base.h"
#include <stdio.h>

enum { TEXT = 2048 };

static _Thread_local char text[TEXT];
static _Thread_local mc_status status;

static const char names[][12] = {
    [-MC_OK]          = "ok",
    [-MC_EARG]        = "argument",
    [-MC_ESYNTAX]     = "syntax",
    [-MC_ETYPE]       = "type",
    [-MC_ESHAPE]      = "shape",
    [-MC_EINDEX]      = "index",
    [-MC_EGRAD]       = "gradient",
    [-MC_EMEMORY]     = "memory",
    [-MC_EFILE]       = "file",
    [-MC_EFORMAT]     = "format",
    [-MC_EDEVICE]     = "device",
    [-MC_ECOMPILE]    = "compile",
    [-MC_ECHECK]      = "check",
    [-MC_EUNSUPPORTED] = "unsupported",
    [-MC_EINTERNAL]   = "internal",
};

const char *mc_version(void)
{
    return MC_VERSION;
}

const char *mc_status_name(mc_status s)
{
    int i = -(int)s;
    return i >= 0 && i < (int)NELEM(names) ? names[i] : "unknown";
}

const char *mc_last_error(void)
{
    return text;
}

mc_status mc_last_status(void)
{
    return status;
}

void mc_clear_error(void)
{
    text[0] = '\0';
    status = MC_OK;
}

/* Formats into buf (TEXT bytes); a text that is cut off ends in "...". */
static void format(char *buf, const char *fmt, va_list ap)
{
    if (mc_vsnprintf(buf, TEXT, fmt, ap) >= TEXT) {
        memcpy(buf + TEXT - 4, "...", 4);
    }
}

mc_status mc_failv(mc_status code, const char *fmt, va_list ap)
{
    char buf[TEXT];
    format(buf, fmt, ap);
    memcpy(text, buf, strlen(buf) + 1);
    status = code;
    return code;
}

mc_status mc_fail(mc_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mc_failv(code, fmt, ap);
    va_end(ap);
    return code;
}

mc_status mc_fail_memory(size_t bytes, const char *tag)
{
    if (bytes == SIZE_MAX) {
        return mc_fail(MC_EMEMORY, "out of memory: a size too large to count, for %s", tag);
    }
    return mc_fail(MC_EMEMORY, "out of memory: %zu bytes for %s", bytes, tag);
}

mc_status mc_fail_again(const char *prefix_fmt, ...)
{
    char prefix[TEXT];
    va_list ap;
    va_start(ap, prefix_fmt);
    format(prefix, prefix_fmt, ap);
    va_end(ap);
    return mc_fail(status, "%s%s", prefix, text);
}

/* ---- near misses ---- */

enum { WORD = 48 };

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* Least number of insertions, deletions, replacements and swaps of neighbours, ignoring case. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[3][WORD + 1];
    for (size_t j = 0; j <= nb; j++) {
        row[0][j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = MC_MIN(MC_MIN(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2])) {
                now[j] = MC_MIN(now[j], before[j - 2] + 1);
            }
        }
    }
    return row[na % 3][nb];
}

const char *mc_near_miss(const char *word, const char *const *list, size_t n)
{
    const char *best = NULL;
    size_t nw = strlen(word);
    size_t limit = 1 + nw / 4; /* a longer word may have more mistakes */
    for (size_t i = 0; i < n && nw <= WORD; i++) {
        size_t nl = strlen(list[i]);
        size_t d = nl <= WORD ? distance(word, nw, list[i], nl) : WORD;
        if (d <= limit && d < MC_MIN(nw, nl)) {
            best = list[i];
            limit = d ? d - 1 : 0;
            if (d == 0) {
                break;
            }
        }
    }
    return best;
}
