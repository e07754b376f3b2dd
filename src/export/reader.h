/* reader.h: reads the variables of an exported file from a .safetensors file in memory: the length of the
 * header in eight bytes, the header, which is JSON, and the elements, little-endian:
 *
 *     {"W": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"format": "pt"}}
 *
 * It is part of exported files, so it is C99 that compiles as C++ too, and allocates nothing.
 *
 * Invariant: no byte outside of the file is read, and nothing is set unless all of the header is right. */

/* A variable: what the file must say of it, and its place in the structure. */
struct safetensors_variable {
    const char *name, *dtype;
    int rank;
    uint64_t dims[8];
    size_t at, bytes, element;
};

/* JSON text that is left to read. */
struct safetensors_text {
    const unsigned char *at, *end;
};

static void json_space(struct safetensors_text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r')) {
        t->at++;
    }
}

/* Skips white space, and c if it is next.  Returns whether it was. */
static int json_has(struct safetensors_text *t, unsigned char c)
{
    json_space(t);
    const int has = t->at < t->end && *t->at == c;
    t->at += has;
    return has;
}

/* Reads four hexadecimal digits; 0: there are none, or they are 0. */
static unsigned json_unit(struct safetensors_text *t)
{
    unsigned unit = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned c = t->at < t->end ? *t->at++ : 0, low = c | 32;
        if ((c < '0' || c > '9') && (low < 'a' || low > 'f')) {
            return 0;
        }
        unit = unit * 16 + (c <= '9' ? c - '0' : low - 'a' + 10);
    }
    return unit;
}

/* Reads a character of a string, after its quote, as bytes of UTF-8.  Returns their number; 0: the string
 * ends; -1: it is damaged. */
static int json_character(struct safetensors_text *t, unsigned char to[4])
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const unsigned char c = t->at < t->end ? *t->at++ : 0;
    if (c == '"') {
        return 0;
    }
    to[0] = c;
    if (c != '\\') {
        return c < ' ' ? -1 : 1;
    }
    const unsigned char kind = t->at < t->end ? *t->at++ : 0;
    const char *escape = kind ? strchr(escapes, kind) : NULL;
    if (escape) {
        to[0] = (unsigned char)meant[escape - escapes];
        return 1;
    }
    unsigned code = kind == 'u' ? json_unit(t) : 0;
    if (code >= 0xd800 && code < 0xdc00 && t->end - t->at >= 6 && t->at[0] == '\\' && t->at[1] == 'u') {
        t->at += 2;
        const unsigned low = json_unit(t);
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0;
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
        return -1;
    }
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6) {
        to[i] = (unsigned char)(0x80 | (code & 0x3f));
    }
    to[0] = (unsigned char)(n == 1 ? code : (0xf00u >> n & 0xf0u) | code);
    return n;
}

/* Reads a string.  Returns whether it is `want`; -1: it is damaged. */
static int json_string(struct safetensors_text *t, const char *want)
{
    unsigned char c[4];
    int same = 1, n = json_has(t, '"') ? json_character(t, c) : -1;
    for (; n > 0; n = json_character(t, c)) {
        same = same && strncmp(want, (const char *)c, (size_t)n) == 0;
        want += same ? n : 0;
    }
    return n < 0 ? -1 : same && !*want;
}

/* Reads a number from 0 on.  Returns 0 if there is none. */
static int json_count(struct safetensors_text *t, uint64_t *count)
{
    json_space(t);
    const unsigned char *const first = t->at;
    *count = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        if (*count > (UINT64_MAX - 9) / 10) {
            return 0;
        }
        *count = *count * 10 + (uint64_t)(*t->at - '0');
    }
    return t->at > first && (*first != '0' || t->at == first + 1);
}

/* Skips a value of any kind; words are not checked.  Returns 0 if it is damaged, or deeper than 16 levels. */
static int json_skip(struct safetensors_text *t, int depth)
{
    const int object = json_has(t, '{'), array = !object && json_has(t, '[');
    const unsigned char close = object ? '}' : ']';
    if (object || array) {
        int good = depth < 16;
        int done = json_has(t, close);
        while (good && !done) {
            good = (!object || (json_string(t, "") >= 0 && json_has(t, ':'))) && json_skip(t, depth + 1);
            done = json_has(t, close);
            good = good && (done || json_has(t, ','));
        }
        return good;
    }
    if (t->at < t->end && *t->at == '"') {
        return json_string(t, "") >= 0;
    }
    const unsigned char *const first = t->at; /* a word: a number, true, false, null */
    while (t->at < t->end && *t->at > ' ' && !strchr(",]}:[{\"", *t->at)) {
        t->at++;
    }
    return t->at > first;
}

/* Reads an array of n counts that are `want`, or of any, which are set. */
static int json_counts(struct safetensors_text *t, int n, const uint64_t *want, uint64_t *set)
{
    uint64_t count;
    int good = json_has(t, '[');
    for (int i = 0; i < n && good; i++) {
        good = (i == 0 || json_has(t, ',')) && json_count(t, &count) && (!want || count == want[i]);
        if (good && set) {
            set[i] = count;
        }
    }
    return good && json_has(t, ']');
}

/* Reads what the file says of a variable, in a file with `size` bytes behind the header.  Returns whether it
 * is right; sets where its bytes begin. */
static int read_entry(struct safetensors_text *t, const struct safetensors_variable *v, uint64_t size,
                      uint64_t *begin)
{
    uint64_t offset[2] = { 0, 0 };
    int good = json_has(t, '{'), dtype = 0, shape = 0, offsets = 0, done = json_has(t, '}');
    while (good && !done) {
        struct safetensors_text key = *t, other = *t;
        const int is_dtype = json_string(&key, "dtype") == 1, is_shape = json_string(&other, "shape") == 1;
        const int is_offsets = json_string(t, "data_offsets");
        good = is_offsets >= 0 && json_has(t, ':');
        if (is_dtype) {
            good = good && !dtype++ && json_string(t, v->dtype) == 1;
        } else if (is_shape) {
            good = good && !shape++ && json_counts(t, v->rank, v->dims, NULL);
        } else if (is_offsets) {
            good = good && !offsets++ && json_counts(t, 2, NULL, offset);
        } else {
            good = good && json_skip(t, 0);
        }
        done = json_has(t, '}');
        good = good && (done || json_has(t, ','));
    }
    *begin = offset[0];
    return good && dtype && shape && offsets && offset[0] <= offset[1] && offset[1] <= size &&
           offset[1] - offset[0] == v->bytes;
}

/* Reads the header.  begin: of each of the n variables, where its bytes begin behind the header.  Returns the
 * bytes before the first tensor; 0: the file is damaged, or has not all variables. */
static size_t read_header(const unsigned char *file, size_t size, const struct safetensors_variable *v,
                          int n, uint64_t *begin)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0 && size >= 8; i--) {
        length = length << 8 | file[i];
    }
    if (size < 8 || length > size - 8) {
        return 0;
    }
    struct safetensors_text t = { file + 8, file + 8 + (size_t)length };
    int good = json_has(&t, '{'), done = json_has(&t, '}'), found = 0;
    for (int i = 0; i < n; i++) {
        begin[i] = UINT64_MAX;
    }
    while (good && !done) {
        const struct safetensors_text name = t;
        int i = 0;
        good = json_string(&t, "") >= 0 && json_has(&t, ':');
        for (; i < n; i++) {
            struct safetensors_text again = name;
            if (good && json_string(&again, v[i].name) == 1) {
                break;
            }
        }
        if (i == n) { /* another tensor, or __metadata__ */
            good = good && json_skip(&t, 0);
        } else {
            good = good && begin[i] == UINT64_MAX && read_entry(&t, &v[i], size - 8 - length, &begin[i]);
            found++;
        }
        done = json_has(&t, '}');
        good = good && (done || json_has(&t, ','));
    }
    json_space(&t);
    return good && t.at == t.end && found == n ? 8 + (size_t)length : 0;
}

/* Sets all n variables, or none.  Returns 0, or 1 if the file is damaged or has not all of them. */
static int read_safetensors(void *model, const void *bytes, size_t size,
                            const struct safetensors_variable *v, int n, uint64_t *begin)
{
    const unsigned char *const file = (const unsigned char *)bytes;
    const size_t header = read_header(file, size, v, n, begin);
    const uint16_t one = 1;
    unsigned char low;
    memcpy(&low, &one, 1);
    for (int i = 0; i < n && header; i++) {
        const unsigned char *from = file + header + (size_t)begin[i];
        unsigned char *to = (unsigned char *)model + v[i].at;
        memcpy(to, from, v[i].bytes);
        for (size_t k = 0; k < v[i].bytes && (!low || v[i].dtype[0] == 'B'); k++) {
            if (!low) { /* this machine has the high byte first */
                to[k] = from[k / v[i].element * v[i].element + (v[i].element - 1 - k % v[i].element)];
            }
            to[k] = v[i].dtype[1] == 'O' ? to[k] != 0 : to[k]; /* BOOL */
        }
    }
    return header == 0;
}
