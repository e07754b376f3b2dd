/* flag_value.c: the table of flags, and how their texts are parsed.
 *
 * Invariant: a value that mc_flag_check accepts needs no further check; if it refuses one, the error lists
 * the allowed texts. */
#include "base/flag.h"
#include <errno.h>
#include <stdlib.h>

const struct mc_flag_row mc_flag_rows[MC_NFLAG] = {
#define FLAG(id, name, kind, dflt, values, doc) [FLAG_##id] = { name, dflt, kind, values, MANUAL(doc) },
#include "base/flags.def"
#undef FLAG
};

static const struct {
    const char *word;
    bool value;
} bools[] = { { "True", true }, { "False", false }, { "true", true },  { "false", false }, { "1", true },
              { "0", false },   { "yes", true },    { "no", false },   { "on", true },     { "off", false } };

static mc_status bad(const struct mc_flag_row *r, const char *text)
{
    static const char *const what[] = { [BOOL] = "True or False", [INT] = "a number in ",
                                        [REAL] = "a number",      [BYTES] = "a size such as 64k, 2M or 1G",
                                        [WORD] = "one of ",       [WORDS] = "words joined by ':' of " };
    return mc_fail(MC_EARG, "flag '%s' cannot be '%s': it takes %s%s", r->name, text, what[r->kind],
                   r->values);
}

/* The i-th word of "a|b|c", which has n bytes; NULL: there is none. */
static const char *word_at(const char *values, int i, size_t *n)
{
    for (; i > 0; i--) {
        values = strchr(values, '|');
        if (!values) {
            return NULL;
        }
        values++;
    }
    *n = strcspn(values, "|");
    return values;
}

static int word_index(const char *values, const char *text, size_t n)
{
    size_t m;
    const char *w;
    for (int i = 0; (w = word_at(values, i, &m)); i++) {
        if (m == n && memcmp(w, text, n) == 0) {
            return i;
        }
    }
    return -1;
}

static mc_status unknown_word(const struct mc_flag_row *r, const char *text, size_t n)
{
    char copy[256], word[64];
    const char *list[16], *w;
    size_t used = 0, m, count = 0;
    if (n >= sizeof word) {
        return bad(r, text);
    }
    memcpy(word, text, n);
    word[n] = '\0';
    for (int i = 0; (w = word_at(r->values, i, &m)) && used + m < sizeof copy && count < NELEM(list); i++) {
        list[count++] = memcpy(copy + used, w, m);
        copy[used + m] = '\0';
        used += m + 1;
    }
    bad(r, text);
    const char *near = mc_near_miss(word, list, count);
    return near ? mc_fail(MC_EARG, "%s; did you mean '%s'?", mc_last_error(), near) : MC_EARG;
}

static bool is_bool(const char *text, struct mc_flag_value *v)
{
    for (size_t i = 0; i < NELEM(bools); i++) {
        if (strcmp(text, bools[i].word) == 0) {
            v->i = bools[i].value;
            v->text = v->i ? "True" : "False";
            return true;
        }
    }
    return false;
}

static mc_status parse_bool(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    return is_bool(text, v) ? MC_OK : bad(r, text);
}

static bool parse_i64(const char *text, char **end, int64_t *out)
{
    errno = 0;
    *out = strtoll(text, end, 10);
    return errno == 0 && *end > text && !mc_is_space(*text);
}

static mc_status parse_int(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    char *end;
    int64_t least = INT64_MIN, most = INT64_MAX;
    if (*r->values) {
        parse_i64(r->values, &end, &least);
        parse_i64(end + strlen(".."), &end, &most);
    }
    if (!parse_i64(text, &end, &v->i) || *end || v->i < least || v->i > most) {
        return bad(r, text);
    }
    return MC_OK;
}

static mc_status parse_bytes(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    static const char units[] = "kMGT";
    char *end;
    if (!parse_i64(text, &end, &v->i) || v->i < 0) {
        return bad(r, text);
    }
    const char *unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
    if (unit) {
        int shift = 10 * (int)(unit - units + 1);
        if (v->i > INT64_MAX >> shift) {
            return bad(r, text);
        }
        v->i <<= shift;
        end++;
    }
    return *end ? bad(r, text) : MC_OK;
}

static mc_status parse_real(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    char *end;
    v->r = mc_strtod(text, &end);
    return end == text || *end || v->r != v->r ? bad(r, text) : MC_OK;
}

/* Values that begin with False|True take all that a BOOL takes: its value is the index of the word. */
static mc_status parse_word(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    if (strncmp(r->values, "False|True", strlen("False|True")) == 0 && is_bool(text, v)) {
        return MC_OK;
    }
    v->i = word_index(r->values, text, strlen(text));
    return v->i < 0 ? unknown_word(r, text, strlen(text)) : MC_OK;
}

static mc_status parse_words(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ":");
        int i = word_index(r->values, p, n);
        if (i < 0) {
            return unknown_word(r, p, n);
        }
        v->i |= INT64_C(1) << i;
        p += n + (p[n] == ':');
    }
    return MC_OK;
}

mc_flag_names *mc_flag_names_of[MC_NFLAG];

static mc_status parse_text(const struct mc_flag_row *r, const char *text, struct mc_flag_value *v)
{
    enum { MOST = 128 };
    mc_flag_names *names_of = mc_flag_names_of[r - mc_flag_rows];
    const char *names[MOST];
    const size_t n = names_of ? names_of(names, MOST) : 0;
    struct mc_str all = { 0 };
    (void)v;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], text) == 0) {
            mc_str_free(&all);
            return MC_OK;
        }
        mc_str_addf(&all, i ? ", %s" : "%s", names[i]);
    }
    const char *near = n ? mc_near_miss(text, names, n) : NULL;
    mc_status s = !n ? MC_OK
                  : near
                      ? mc_fail(MC_EARG, "flag '%s' cannot be '%s'; did you mean '%s'?", r->name, text, near)
                      : mc_fail(MC_EARG, "flag '%s' cannot be '%s': it takes one of %s", r->name, text,
                                all.s ? all.s : "");
    mc_str_free(&all);
    return s;
}

mc_status mc_flag_check(enum mc_flag f, const char *text, struct mc_flag_value *v)
{
    static mc_status (*const parse[])(const struct mc_flag_row *, const char *, struct mc_flag_value *) = {
        [BOOL] = parse_bool, [INT] = parse_int,     [REAL] = parse_real, [BYTES] = parse_bytes,
        [WORD] = parse_word, [WORDS] = parse_words, [TEXT] = parse_text,
    };
    *v = (struct mc_flag_value){ .text = text };
    TRY(parse[mc_flag_rows[f].kind](&mc_flag_rows[f], text, v));
    if (mc_flag_rows[f].kind != REAL) {
        v->r = (double)v->i;
    }
    return MC_OK;
}
