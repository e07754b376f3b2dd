/* c_text.c: C text, a line at a time: loops with constant bounds, braces, sums such as "i0 * 12 + i1".
 *
 * Invariant: the text is C99 and C++11. */
#include "base/base.h"
#include <inttypes.h>

void mc_c_line(struct mc_c_text *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mc_str_addf(c->out, "%*s", 4 * c->depth, "");
    mc_str_addv(c->out, fmt, ap);
    mc_str_add(c->out, "\n");
    va_end(ap);
}

void mc_c_open(struct mc_c_text *c, const char *title)
{
    mc_c_line(c, "{");
    c->depth++;
    mc_c_line(c, "/* %s */", title);
}

void mc_c_loop(struct mc_c_text *c, const char *name, int64_t from, int64_t to)
{
    mc_c_line(c, "for (int64_t %s = %" PRId64 "; %s < %" PRId64 "; %s++) {", name, from, name, to, name);
    c->depth++;
}

bool mc_c_parallel(struct mc_c_text *c, bool elements, int loops, double work, const char *clauses)
{
    enum { LEAST = 4096 };
    char nested[32] = "";
    const bool worth = loops > 0 && work >= LEAST;
    if (loops > 1) {
        mc_snprintf(nested, sizeof nested, "collapse(%d) ", loops);
    }
    if (worth) {
        /* a plain "if" would say whether there is vector code, too */
        mc_c_line(c, "%s(%sif (%sWORTH(%.0f))%s%s)", elements ? "PARALLEL_ELEMENTS" : "PARALLEL", nested,
                  elements ? "parallel: " : "", MC_MIN(work, 1e15), *clauses ? " " : "", clauses);
    }
    return worth;
}

void mc_c_close(struct mc_c_text *c, int depth)
{
    while (c->depth > depth) {
        c->depth--;
        mc_c_line(c, "}");
    }
}

void mc_c_add(struct mc_c_sum *t, const char *name, int64_t factor)
{
    const bool first = strcmp(t->s, "0") == 0;
    const size_t n = first ? 0 : strlen(t->s);
    const char *sign = factor < 0 ? (first ? "-" : " - ") : first ? "" : " + ";
    const uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
    if (factor == 0) {
        return;
    }
    if (!*name) {
        mc_snprintf(t->s + n, sizeof t->s - n, "%s%" PRIu64, sign, size);
    } else if (size == 1) {
        mc_snprintf(t->s + n, sizeof t->s - n, "%s%s", sign, name);
    } else {
        mc_snprintf(t->s + n, sizeof t->s - n, "%s%s * %" PRIu64, sign, name, size);
    }
}

void mc_c_real(struct mc_str *b, double v)
{
    char text[40];
    mc_snprintf(text, sizeof text, "%.17g", v);
    const bool number = v - v == 0;
    mc_str_add(b, v != v ? "NAN" : number ? text : v > 0 ? "HUGE_VAL" : "-HUGE_VAL");
    mc_str_add(b, number && !strpbrk(text, ".e") ? ".0" : "");
}
