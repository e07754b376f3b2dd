/* json.c: JSON text (RFC 8259), read by code that knows what may come next.
 *
 * Only what has a use is here: objects, arrays, strings and whole numbers.  Only the calls of its reader
 * follow the nesting of a text, so no text makes the stack grow.
 *
 * Invariant: a reader never looks at or beyond end; after a mistake `at` is where the mistake is. */
#include "base/base.h"

enum { EXCERPT = 20 };

mc_status mc_json_wrong(const struct mc_json *j, const char *what)
{
    char text[EXCERPT + 1];
    size_t n = 0;
    for (; n < EXCERPT && j->at + n < j->end; n++) {
        const char c = j->at[n];
        text[n] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    text[n] = '\0';
    return mc_fail(MC_EFORMAT, "%s: %s at '%s'", j->what, what, text);
}

static void skip_space(struct mc_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) {
        j->at++;
    }
}

static bool accept(struct mc_json *j, char c)
{
    skip_space(j);
    if (j->at == j->end || *j->at != c) {
        return false;
    }
    j->at++;
    return true;
}

mc_status mc_json_end(struct mc_json *j)
{
    skip_space(j);
    return j->at == j->end ? MC_OK : mc_json_wrong(j, "more than one value");
}

/* ---- numbers ---- */

mc_status mc_json_count(struct mc_json *j, uint64_t *v)
{
    uint64_t n = 0;
    skip_space(j);
    const char *digit = j->at;
    for (; digit < j->end && *digit >= '0' && *digit <= '9'; digit++) {
        const unsigned d = (unsigned)(*digit - '0');
        if (n > (UINT64_MAX - d) / 10) {
            return mc_json_wrong(j, "a number out of range");
        }
        n = 10 * n + d;
    }
    if (digit == j->at || (*j->at == '0' && digit - j->at > 1) ||
        (digit < j->end && memchr(".eE", *digit, 3))) {
        return mc_json_wrong(j, "no whole number from 0 on");
    }
    j->at = digit;
    *v = n;
    return MC_OK;
}

/* ---- strings ---- */

static bool read_hex4(struct mc_json *j, uint32_t *v)
{
    *v = 0;
    if (j->end - j->at < 4) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *d = memchr(digits, j->at[i], sizeof digits - 1);
        if (!d) {
            return false;
        }
        const uint32_t k = (uint32_t)(d - digits);
        *v = *v << 4 | (k < 16 ? k : k - 6);
    }
    j->at += 4;
    return true;
}

/* What follows \u: a character, or the first half of a surrogate pair and its second. */
static bool read_unicode(struct mc_json *j, uint32_t *c)
{
    uint32_t low;
    if (!read_hex4(j, c) || (*c & 0xfc00) == 0xdc00) {
        return false;
    }
    if ((*c & 0xfc00) != 0xd800) {
        return true;
    }
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') {
        return false;
    }
    j->at += 2;
    if (!read_hex4(j, &low) || (low & 0xfc00) != 0xdc00) {
        return false;
    }
    *c = 0x10000 + ((*c & 0x3ff) << 10 | (low & 0x3ff));
    return true;
}

static void add_utf8(struct mc_str *out, uint32_t c)
{
    const char tail[] = { (char)(0x80 | (c >> 12 & 0x3f)), (char)(0x80 | (c >> 6 & 0x3f)),
                          (char)(0x80 | (c & 0x3f)) };
    const int n = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes after the first */
    static const unsigned mark[] = { 0, 0xc0, 0xe0, 0xf0 };
    mc_str_addn(out, (char[]){ (char)(mark[n] | c >> 6 * n) }, 1);
    mc_str_addn(out, tail + 3 - n, (size_t)n);
}

/* The character that an escape stands for; at its backslash. */
static mc_status read_escape(struct mc_json *j, struct mc_str *out)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const struct mc_json start = *j;
    uint32_t c = 0;
    const char *name = j->end - j->at > 1 ? memchr(names, j->at[1], sizeof names - 1) : NULL;
    if (name) {
        c = (uint32_t)means[name - names];
        j->at += 2;
    } else if (j->end - j->at > 1 && j->at[1] == 'u') {
        j->at += 2;
        if (!read_unicode(j, &c)) {
            return mc_json_wrong(&start, "no character");
        }
        if (c == 0) {
            return mc_json_wrong(&start, "a NUL in a string");
        }
    } else {
        return mc_json_wrong(&start, "no escape");
    }
    add_utf8(out, c);
    return MC_OK;
}

mc_status mc_json_string(struct mc_json *j, struct mc_str *out)
{
    out->n = 0;
    mc_str_add(out, "");
    if (!accept(j, '"')) {
        return mc_json_wrong(j, "no string");
    }
    while (j->at < j->end && *j->at != '"') {
        const size_t n = mc_utf8(j->at, (size_t)(j->end - j->at));
        if (*j->at == '\\') {
            TRY(read_escape(j, out));
        } else if (n == 0 || (unsigned char)*j->at < 0x20) {
            return mc_json_wrong(j, n ? "a control character in a string" : "no UTF-8");
        } else {
            mc_str_addn(out, j->at, n);
            j->at += n;
        }
    }
    if (!accept(j, '"')) {
        return mc_json_wrong(j, "a string without an end");
    }
    return out->bad ? MC_EMEMORY : MC_OK;
}

/* ---- objects and arrays ---- */

/* Is there one more item before `close`?  A comma is before each but the first. */
static mc_status next(struct mc_json *j, char close, bool first, bool *more)
{
    *more = !accept(j, close);
    return !*more || first || accept(j, ',') ? MC_OK : mc_json_wrong(j, "no comma");
}

mc_status mc_json_array(struct mc_json *j, mc_status (*item)(struct mc_json *j, void *arg), void *arg)
{
    bool more = accept(j, '['), first = true;
    mc_status s = more ? MC_OK : mc_json_wrong(j, "no array");
    for (; s == MC_OK && (s = next(j, ']', first, &more)) == MC_OK && more; first = false) {
        s = item(j, arg);
    }
    return s;
}

mc_status mc_json_object(struct mc_json *j, mc_status (*value)(struct mc_json *j, const char *key, void *arg),
                         void *arg)
{
    struct mc_str key = { 0 };
    bool more = accept(j, '{'), first = true;
    mc_status s = more ? MC_OK : mc_json_wrong(j, "no object");
    for (; s == MC_OK && (s = next(j, '}', first, &more)) == MC_OK && more; first = false) {
        s = mc_json_string(j, &key);
        s = s < 0 || accept(j, ':') ? s : mc_json_wrong(j, "no colon");
        s = s < 0 ? s : value(j, key.s, arg);
    }
    mc_str_free(&key);
    return s;
}
