/* data_text.c: a text as data: text:FILE, in UTF-8.  An example is a window of `length` characters, its class
 * is the character that follows.  Characters are numbers, in the order of their code points; a new example
 * begins every `step` characters.
 *
 * Invariant: the answers of the test set are the characters of the last tenth of the text, and none of them
 * is an answer of the training set. */
#include "nn/data.h"
#include <stdlib.h>

enum { MOST_CODE = 0x110000, TEST_PART = 10, PRESET_LENGTH = 40, PRESET_STEP = 1 };
static const struct setting { const char *name; int64_t preset; } settings[] = { { "length", PRESET_LENGTH }, { "step", PRESET_STEP } };

bool mc_text_knows(const char *where)
{
    return strncmp(where, "text:", 5) == 0;
}

static mc_status read_setting(char *word, int64_t value[COUNT(settings)])
{
    const char *names[COUNT(settings)], *equals = strchr(word, '=');
    const size_t n = equals ? (size_t)(equals - word) : strlen(word);
    char *end = NULL;
    size_t i = 0;
    for (size_t k = 0; k < COUNT(settings); k++) {
        names[k] = settings[k].name;
    }
    while (i < COUNT(settings) && !(strlen(names[i]) == n && strncmp(names[i], word, n) == 0)) {
        i++;
    }
    word[n] = '\0';
    if (i == COUNT(settings)) {
        const char *near = mc_near_miss(word, names, COUNT(settings));
        return mc_fail(MC_EARG, "text: unknown setting '%s'%s%s%s", word,
                       near ? "; did you mean '" : "; expected length or step", near ? near : "",
                       near ? "'?" : "");
    }
    value[i] = equals ? strtoll(equals + 1, &end, 10) : 0;
    if (!equals || end == equals + 1 || *end || value[i] < 1 || value[i] > INT32_MAX) {
        return mc_fail(MC_EARG, "text: %s takes a whole number of at least 1, not '%s'", names[i],
                       equals ? equals + 1 : "");
    }
    return MC_OK;
}

/* Settings are taken off the end, so that a path may have colons. */
static mc_status read_where(const char *where, char path[MC_PATH], int64_t value[COUNT(settings)])
{
    const char *rest = where + 5;
    if (!*rest || strlen(rest) >= MC_PATH) {
        return mc_fail(MC_EARG, *rest ? "text: the path is too long"
                                      : "text: no file is given; expected text:FILE or text:FILE:length=40");
    }
    mc_snprintf(path, MC_PATH, "%s", rest);
    for (char *colon; (colon = strrchr(path, ':')) && strchr(colon, '=') && !strchr(colon, '/');) {
        *colon = '\0';
        mc_status s = read_setting(colon + 1, value);
        if (s < 0) {
            return s;
        }
    }
    return MC_OK;
}

/* ---- characters ---- */

/* The code point at p and its bytes; 0 bytes: this is no UTF-8. */
static size_t decode(const unsigned char *p, size_t left, int32_t *code)
{
    const size_t n = *p < 0x80                 ? 1
                     : *p >= 0xc2 && *p < 0xe0 ? 2
                     : *p >= 0xe0 && *p < 0xf0 ? 3
                     : *p >= 0xf0 && *p < 0xf5 ? 4
                                               : 0;
    static const int32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (n == 0 || n > left) {
        return 0;
    }
    *code = n == 1 ? *p : *p & (0x7f >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (p[i] & 0x3f);
    }
    return *code >= least[n] && *code < MOST_CODE && (*code < 0xd800 || *code > 0xdfff) ? n : 0;
}

/* The character as a name that is printable: a control character is written as in C. */
static char *name_of(int32_t c)
{
    char s[8] = "";
    if (c == '\n' || c == '\t' || c == '\r') {
        mc_snprintf(s, sizeof s, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    } else if (c < 0x20 || c == 0x7f) {
        mc_snprintf(s, sizeof s, "\\x%02x", (unsigned)c);
    } else if (c < 0x80) {
        s[0] = (char)c;
    } else {
        const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        s[0] = (char)((0xff00 >> (more + 1) & 0xff) | c >> 6 * more);
        for (int i = 1; i <= more; i++) {
            s[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
        }
    }
    char *copy = mc_alloc(strlen(s) + 1, "data");
    if (copy) {
        memcpy(copy, s, strlen(s) + 1);
    }
    return copy;
}

/* The characters of the bytes as code points; *n: how many. */
static mc_status decode_all(const char *path, const char *bytes, size_t size, int32_t *code, int64_t *n)
{
    size_t at = 0;
    for (*n = 0; at < size; ++*n) {
        const size_t k = decode((const unsigned char *)bytes + at, size - at, &code[*n]);
        if (k == 0) {
            return mc_fail(MC_EFORMAT, "'%s': byte %zu is not UTF-8", path, at + 1);
        }
        at += k;
    }
    return MC_OK;
}

/* Code points become classes; the names are those of the classes. */
static mc_status classify(int32_t *code, int64_t n, struct mc_example_set *out)
{
    int32_t *class_of = mc_calloc(MOST_CODE, sizeof *class_of, "data");
    int classes = 0;
    mc_status s = class_of ? MC_OK : MC_EMEMORY;
    for (int64_t i = 0; i < n && class_of; i++) {
        classes += class_of[code[i]] == 0;
        class_of[code[i]] = 1;
    }
    out->name = s < 0 ? NULL : mc_calloc((size_t)classes, sizeof *out->name, "data");
    out->classes = out->name ? classes : 0;
    s = s < 0 || out->name ? s : MC_EMEMORY;
    for (int32_t c = 0, k = 0; s == MC_OK && k < classes; c++) {
        if (class_of[c]) {
            class_of[c] = k;
            out->name[k] = name_of(c);
            s = out->name[k++] ? MC_OK : MC_EMEMORY;
        }
    }
    for (int64_t i = 0; i < n && s == MC_OK; i++) {
        code[i] = class_of[code[i]];
    }
    mc_free(class_of);
    return s;
}

/* ---- windows ---- */

static mc_status windows(const int32_t *c, int64_t n, const int64_t value[COUNT(settings)], enum mc_part part,
                         struct mc_example_set *out)
{
    const int64_t length = value[0], step = value[1], answers = n - length,
                  ntest = answers / TEST_PART ? answers / TEST_PART : 1,
                  from = part == MC_TEST ? n - ntest : length, to = part == MC_TEST ? n : n - ntest,
                  count = (to - from + step - 1) / step;
    out->x = mc_array_new(MC_FLOAT32, MC_SHAPE(count, length));
    out->t = mc_array_new(MC_INT32, MC_SHAPE(count));
    if (!out->x || !out->t) {
        return mc_last_status();
    }
    float *x = mc_array_data(out->x);
    int32_t *t = mc_array_data(out->t);
    for (int64_t i = 0; i < count; i++) {
        const int64_t answer = from + i * step;
        t[i] = c[answer];
        for (int64_t k = 0; k < length; k++) {
            *x++ = (float)c[answer - length + k];
        }
    }
    return MC_OK;
}

mc_status mc_text_read(const char *where, enum mc_part part, struct mc_example_set *out)
{
    char path[MC_PATH], *bytes = NULL;
    int64_t value[COUNT(settings)], n = 0;
    size_t size = 0;
    for (size_t i = 0; i < COUNT(settings); i++) {
        value[i] = settings[i].preset;
    }
    mc_status s = read_where(where, path, value);
    s = s < 0 ? s : mc_file_unpacked(path, &bytes, &size);
    int32_t *code = s < 0 ? NULL : mc_alloc((size + 1) * sizeof *code, "data");
    s = s < 0 || code ? s : MC_EMEMORY;
    s = s < 0 ? s : decode_all(path, bytes, size, code, &n);
    if (s == MC_OK && n < value[0] + 2) {
        s = n == 0 ? mc_fail(MC_EFORMAT, "'%s': the file is empty", path)
                   : mc_fail(MC_EFORMAT,
                             "'%s': the text has %lld characters; windows of length=%lld need at least %lld",
                             path, (long long)n, (long long)value[0], (long long)value[0] + 2);
    }
    s = s < 0 ? s : classify(code, n, out);
    s = s < 0 ? s : windows(code, n, value, part, out);
    out->text = "characters of a text";
    mc_free(bytes);
    mc_free(code);
    return s;
}
