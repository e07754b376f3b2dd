/* lex.c: tokens of the text form.  Only the first mistake is reported: after it every token is the end of the
 * text, so that the parser returns without further checks. */
#include "graph/parse.h"
#include <stdlib.h>

static bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void fail(struct parser *p, size_t at, mc_status code, const char *fmt, va_list ap)
{
    if (!p->failed) {
        struct mc_str text = { 0 };
        mc_str_addv(&text, fmt, ap);
        p->location.at = at;
        mc_node_fail(p->g, text.bad ? MC_EMEMORY : code, "%s", text.bad ? "out of memory" : text.s);
        mc_str_free(&text);
        p->failed = true;
    }
    p->tok = (struct tok){ .kind = T_END, .at = p->at };
}

void mc_parse_fail(struct parser *p, size_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(p, at, MC_ESYNTAX, fmt, ap);
    va_end(ap);
}

void mc_parse_refuse(struct parser *p, size_t at, mc_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(p, at, code, fmt, ap);
    va_end(ap);
}

void mc_parse_memory(struct parser *p)
{
    if (!p->failed) {
        mc_node_fail(p->g, MC_EMEMORY, "out of memory");
        p->failed = true;
    }
    p->tok = (struct tok){ .kind = T_END, .at = p->at };
}

void mc_parse_begin(struct parser *p, mc_graph *g, const char *text, const struct mc_bind *bind, int nbind)
{
    *p = (struct parser){
        .g = g, .text = text, .bind = bind, .nbind = nbind, .location = { text, 0 }, .outer = g->location
    };
    if (!p->outer) { /* messages show the user's formula, not a formula that it expands to */
        g->location = &p->location;
    }
    mc_parse_next(p);
}

void mc_parse_end(struct parser *p)
{
    p->g->location = p->outer;
}

static const char *const operators[] = { "**", "//", "<=", ">=", "==", "!=", "...", "->" };

void mc_parse_next(struct parser *p)
{
    const char *s = p->text;
    if (p->failed) {
        return;
    }
    for (;;) { /* skip blanks and comments; a line end is a token unless brackets are open */
        if (s[p->at] == '#') {
            while (s[p->at] && s[p->at] != '\n') {
                p->at++;
            }
        } else if (s[p->at] == ' ' || s[p->at] == '\t' || s[p->at] == '\r' ||
                   (s[p->at] == '\n' && p->brackets > 0)) {
            p->at++;
        } else if (s[p->at] == '\\' && s[p->at + 1] == '\n') {
            p->at += 2;
        } else {
            break;
        }
    }
    size_t from = p->at, i = from;
    p->tok = (struct tok){ .kind = T_END, .at = from };
    if (!s[i]) {
        return;
    }
    if (is_alpha(s[i])) {
        while (is_alpha(s[i]) || is_digit(s[i])) {
            i++;
        }
        p->tok.kind = T_NAME;
    } else if (is_digit(s[i]) || (s[i] == '.' && is_digit(s[i + 1]))) {
        p->tok.kind = T_NUMBER;
        bool hex = s[i] == '0' && (s[i + 1] == 'x' || s[i + 1] == 'X');
        while (is_alpha(s[i]) || is_digit(s[i]) || (s[i] == '.' && s[i + 1] != '.') ||
               ((s[i] == '+' || s[i] == '-') && !hex && (s[i - 1] == 'e' || s[i - 1] == 'E') && i > from) ||
               ((s[i] == '+' || s[i] == '-') && hex && (s[i - 1] == 'p' || s[i - 1] == 'P'))) {
            i++;
        }
    } else if (s[i] == '"' || s[i] == '\'') {
        p->tok.kind = T_STRING;
        char quote = s[i++];
        while (s[i] && s[i] != quote && s[i] != '\n') {
            i += s[i] == '\\' && s[i + 1] ? 2 : 1;
        }
        if (s[i] != quote) {
            mc_parse_fail(p, from, "the string has no closing quote");
            return;
        }
        i++;
    } else {
        p->tok.kind = T_OP;
        size_t n = 1;
        for (size_t k = 0; k < NELEM(operators); k++) {
            if (strncmp(s + i, operators[k], strlen(operators[k])) == 0) {
                n = strlen(operators[k]);
                break;
            }
        }
        if (n == 1 && !strchr("+-*/%@<>=&|^~()[]{},:;.!?\n", s[i])) {
            mc_parse_fail(p, from, "unexpected character '%.*s'", (unsigned char)s[i] < 0x80 ? 1 : 4, s + i);
            return;
        }
        memcpy(p->tok.op, s + i, n);
        i += n;
        if (n == 1 && strchr("([", p->tok.op[0])) {
            p->brackets++;
        }
        if (n == 1 && strchr(")]", p->tok.op[0])) {
            p->brackets--;
        }
    }
    p->tok.n = i - from;
    p->at = i;
}

bool mc_parse_is(const struct parser *p, const char *op)
{
    return p->tok.kind == T_OP && strcmp(p->tok.op, op) == 0;
}

bool mc_parse_take(struct parser *p, const char *op)
{
    if (!mc_parse_is(p, op)) {
        return false;
    }
    mc_parse_next(p);
    return true;
}

bool mc_parse_word(const struct parser *p, const char *word)
{
    return p->tok.kind == T_NAME && p->tok.n == strlen(word) &&
           strncmp(p->text + p->tok.at, word, p->tok.n) == 0;
}

void mc_parse_expect(struct parser *p, const char *op)
{
    if (!mc_parse_take(p, op)) {
        if (p->tok.kind == T_END || mc_parse_is(p, "\n")) {
            mc_parse_fail(p, p->tok.at, "expected '%s', but the formula ends", op);
        } else {
            mc_parse_fail(p, p->tok.at, "expected '%s', not '%.*s'", op, (int)p->tok.n, p->text + p->tok.at);
        }
    }
}

void mc_parse_separator(struct parser *p, const char *close)
{
    if (mc_parse_is(p, close) || mc_parse_take(p, ",")) {
        return;
    }
    if (p->tok.kind == T_END || mc_parse_is(p, "\n")) {
        mc_parse_fail(p, p->tok.at, "expected ',' or '%s', but the formula ends", close);
    } else {
        mc_parse_fail(p, p->tok.at, "expected ',' or '%s', not '%.*s'", close, (int)p->tok.n,
                      p->text + p->tok.at);
    }
}

char *mc_parse_copy(struct parser *p, const struct tok *t)
{
    char *s = mc_arena_str(&p->g->arena, p->text + t->at, t->n);
    if (!s) {
        mc_parse_memory(p);
    }
    return s;
}

static const struct { const char *suffix; mc_dtype dtype; } suffixes[] = {
    { "bf16", MC_BFLOAT16 }, { "f16", MC_FLOAT16 }, { "f32", MC_FLOAT32 }, { "f64", MC_FLOAT64 },
    { "u8", MC_UINT8 }, { "u16", MC_UINT16 }, { "u32", MC_UINT32 }, { "u64", MC_UINT64 },
    { "i8", MC_INT8 }, { "i16", MC_INT16 }, { "i32", MC_INT32 }, { "i64", MC_INT64 },
};

struct val mc_parse_number(struct parser *p)
{
    struct val v = { .kind = V_INT, .dtype = -1, .at = p->tok.at };
    char word[64];
    struct tok t = p->tok;
    if (t.n >= sizeof word) {
        mc_parse_fail(p, t.at, "the number is too long");
        return v;
    }
    memcpy(word, p->text + t.at, t.n);
    word[t.n] = 0;
    mc_parse_next(p);

    bool hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
    for (size_t k = 0; k < NELEM(suffixes); k++) {
        size_t n = strlen(suffixes[k].suffix);
        if (t.n > n && strcmp(word + t.n - n, suffixes[k].suffix) == 0 &&
            !(hex && strchr("bf", suffixes[k].suffix[0]))) {
            v.dtype = (int)suffixes[k].dtype;
            word[t.n - n] = 0;
            break;
        }
    }
    char *end;
    if (!hex && strpbrk(word, ".eE")) {
        v.kind = V_REAL;
        v.real = mc_strtod(word, &end);
    } else {
        unsigned long long u = strtoull(word, &end, hex ? 16 : 10);
        struct whole w;
        const bool read = !*end && end != word && mc_bigint_read(word + (hex ? 2 : 0), hex ? 16 : 10, &w),
                   wide = read && w.n > 2;
        v.i = (int64_t)u;
        v.real = (double)u;
        if (wide && v.dtype >= 0 && !mc_is_float((mc_dtype)v.dtype)) {
            mc_parse_fail(p, t.at, "%s does not fit into %s", word, mc_dtype_name((mc_dtype)v.dtype));
        } else if (v.dtype >= 0 && mc_is_float((mc_dtype)v.dtype)) {
            v.kind = V_REAL;
            v.real = wide ? mc_bigint_real(&w) : v.real;
        } else if (v.dtype >= 0 && v.dtype != MC_UINT64) { /* 128i8 is allowed: a minus may precede it */
            int bits = 8 * (int)mc_dtypes[v.dtype].size;
            uint64_t most = mc_dtypes[v.dtype].kind == KIND_UINT ? (UINT64_C(1) << bits) - 1
                                                                 : UINT64_C(1) << (bits - 1);
            if (u > most) {
                mc_parse_fail(p, t.at, "%s does not fit into %s", word, mc_dtype_name((mc_dtype)v.dtype));
            }
        } else if (read && v.dtype < 0 && u > INT64_MAX) {
            v = mc_val_of_bigint(p, &w, t.at);
        }
    }
    if (*end || end == word) {
        mc_parse_fail(p, t.at, "'%.*s' is not a number", (int)t.n, p->text + t.at);
    }
    return v;
}

struct val mc_parse_string(struct parser *p)
{
    struct val v = { .kind = V_TEXT, .at = p->tok.at, .dtype = -1 };
    char *s = mc_arena_str(&p->g->arena, p->text + p->tok.at + 1, p->tok.n - 2), *to = s;
    if (!s) {
        mc_parse_memory(p);
        return v;
    }
    for (char *from = s; *from; from++) {
        if (*from == '\\' && from[1]) {
            from++;
            *to++ = *from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    v.text = s;
    mc_parse_next(p);
    return v;
}
