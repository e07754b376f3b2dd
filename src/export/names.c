/* names.c: names of an exported file: its prefix, functions, parameters, members, and texts in comments.
 *
 * Invariant: no name is a word of C or C++, or a macro of the file or of the headers that it includes, and no
 * two names of one scope are equal. */
#include "export/exporting.h"
#include "op/matrix/matrix.h"

static const char *const reserved[] = {
    /* C99 and C++11 */
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "char16_t", "char32_t", "class", "compl", "const", "const_cast", "constexpr", "continue",
    "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export",
    "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "register", "reinterpret_cast", "restrict", "return", "short", "signed", "sizeof",
    "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
    /* types, functions and tables of the file, parameters that each function has */
    "json_character", "json_count", "json_counts", "json_has", "json_skip", "json_space", "json_string",
    "json_unit", "read_entry", "read_header", "read_safetensors", "safetensors_text", "safetensors_variable",
    "variables",
    "arena", "chosen_level", "failed", "in", "int16_t", "int32_t", "int64_t", "int8_t", "memory", "model",
    "double_bits", "float_bits", "fma", "fmaf", "out", "own_memory", "size_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "uintptr_t",
    /* macros: of the file, of headers, of compilers in their own dialect of C */
    "ALONE", "AT_256", "AT_512", "AT_LEVEL", "CHOICE", "CHOSEN", "COMPILED", "FETCH", "FORCE_INLINE",
    "HUGE_VAL",
    "HUGE_VALF", "HUGE_VALL", "INDEPENDENT", "INFINITY", "INLINE", "IN_REGISTER", "LANES", "LEVEL", "NAN",
    "NAME", "NAME_", "NEXT_STEP", "NULL", "PANEL", "PARALLEL", "PARALLEL_ELEMENTS", "PARALLEL_WORK",
    "PASTE_LEVEL", "PRAGMA", "R", "S", "SHARED_LOOP", "SIXTEEN_LANES", "TARGET", "UNROLL", "V", "WIDTH",
    "WORTH", "errno", "i386", "linux", "math_errhandling", "unix",
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

bool mc_export_is_letter(char c)
{
    return is_digit(c) || is_upper(c) || is_lower(c) || c == '_';
}

bool mc_export_is_reserved(const char *s)
{
    bool found = false;
    for (size_t i = 0; i < NELEM(reserved) && !found; i++) {
        found = strcmp(s, reserved[i]) == 0;
    }
    /* M_PI, FP_NAN, INT8_MAX, _Bool, __LINE__ */
    return found || mc_portable_is_name(s) || mc_factor_is_name(s) || strncmp(s, "M_", 2) == 0 ||
           strncmp(s, "ctc_", 4) == 0 || strncmp(s, "FP_", 3) == 0 || strncmp(s, "INT", 3) == 0 ||
           strncmp(s, "UINT", 4) == 0 || (s[0] == '_' && (s[1] == '_' || is_upper(s[1])));
}

char *mc_export_identifier(const char *s, bool upper)
{
    struct mc_str text = { 0 };
    if (!*s || is_digit(*s)) {
        mc_str_add(&text, "v");
    }
    for (; *s; s++) {
        const char letter = (char)(!mc_export_is_letter(*s) ? '_'
                                   : upper && is_lower(*s)  ? *s - 'a' + 'A'
                                                            : *s);
        mc_str_addn(&text, &letter, 1);
    }
    if (!upper && text.s && text.s[0] == '_' && mc_export_is_reserved(text.s)) {
        struct mc_str longer = { 0 };
        mc_str_addf(&longer, "v%s", text.s);
        mc_str_free(&text);
        text = longer;
    } else if (!upper && text.s && mc_export_is_reserved(text.s)) {
        mc_str_add(&text, "_");
    }
    return mc_str_take(&text);
}

bool mc_export_is_identifier(const char *s)
{
    bool good = s && *s && !is_digit(*s);
    for (; good && *s; s++) {
        good = mc_export_is_letter(*s);
    }
    return good;
}

void mc_export_comment(struct mc_str *out, const char *text)
{
    for (; *text; text++) {
        const bool ends = (text[0] == '*' && text[1] == '/') || (text[0] == '/' && text[1] == '*');
        mc_str_addn(out, *text == '\\' && text[1] == '\n' ? "/" : text, 1);
        mc_str_add(out, ends ? " " : "");
    }
}

const char *mc_export_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- members ---- */

/* A name that no other member has. */
static char *member_name(const struct mc_export_file *to, const struct mc_shared *s)
{
    char *plain = mc_export_identifier(s->name ? s->name : "", false);
    struct mc_str text = { 0 };
    mc_str_add(&text, plain ? plain : "");
    text.bad |= !plain;
    mc_free(plain);
    const size_t n = text.n;
    for (int k = 2, taken = 1; taken && !text.bad;) {
        taken = strcmp(text.s, to->name) == 0; /* in C++ a member may not have its structure's name */
        for (size_t i = 0; i < to->shared.n && !taken; i++) {
            taken = strcmp(to->shared.at[i].name, text.s) == 0;
        }
        if (taken) {
            text.n = n;
            text.s[n] = '\0';
            mc_str_addf(&text, "_%d", k++);
        }
    }
    return mc_str_take(&text);
}

static mc_status add_shared(struct mc_export_file *to, struct mc_shared *s)
{
    for (size_t k = 0; k < to->shared.n; k++) {
        if (to->shared.at[k].shared == s) {
            return MC_OK;
        }
    }
    struct mc_export_shared one = { s, member_name(to, s) };
    if (!one.name || !VEC_PUSH(to->shared, one)) {
        mc_free(one.name);
        return MC_EMEMORY;
    }
    return MC_OK;
}

mc_status mc_export_add_shared(struct mc_export_file *to, struct mc_function *f)
{
    const struct mc_program *p = &f->code->program;
    for (size_t v = 0; v < p->value.n; v++) {
        if (p->value.at[v].kind == VALUE_SHARED) {
            TRY(add_shared(to, p->value.at[v].node->shared));
        }
    }
    for (int i = 0; i < p->nupdate; i++) {
        TRY(add_shared(to, f->target[i]));
    }
    return MC_OK;
}

const char *mc_export_member(const struct mc_export_one *x, int shared)
{
    for (size_t i = 0; i < x->to->shared.n; i++) {
        if (x->to->shared.at[i].shared == x->f->shared[shared]) {
            return x->to->shared.at[i].name;
        }
    }
    return "";
}

/* ---- parameters ---- */

/* Would the name hide one that the function's text uses, or is it an earlier parameter's? */
static bool is_taken(const struct mc_export_one *x, int i, const char *name)
{
    const size_t n = strlen(x->name);
    bool taken = (strncmp(name, x->name, n) == 0 &&
                  (strncmp(name + n, "_step", 5) == 0 || strncmp(name + n, "_call", 5) == 0)) ||
                 strncmp(name, "constant", 8) == 0;
    for (int k = 0; k < i && !taken; k++) {
        taken = strcmp(name, x->parameter[k]) == 0;
    }
    return taken;
}

/* The nth input or output has no name: it is x or y, or y_2 and so on. */
static void name_unnamed(struct mc_export_one *x, int i, const char *letter, int n)
{
    do {
        x->parameter[i] = mc_export_format(x, n > 1 ? "%s_%d" : "%s", letter, n);
        n++;
    } while (is_taken(x, i, x->parameter[i]) && !x->to->code.bad);
}

mc_status mc_export_name_parameters(struct mc_export_one *x)
{
    const int nin = x->f->code->program.ninput, n = nin + x->f->code->program.noutput;
    x->parameter = mc_arena_alloc(&x->names, (size_t)(n + 1) * sizeof *x->parameter);
    for (int i = 0; i < n && x->parameter; i++) {
        const char *const given = i < nin                   ? x->f->input[i].name
                                  : x->f->code->output_name ? x->f->code->output_name[i - nin]
                                                            : NULL;
        if (!given || !*given) {
            name_unnamed(x, i, i < nin ? "x" : "y", i < nin ? i + 1 : i - nin + 1);
            continue;
        }
        char *plain = mc_export_identifier(given, false);
        if (!plain) {
            return MC_EMEMORY;
        }
        const char *const name = mc_export_format(x, "%s", plain);
        x->parameter[i] = name;
        mc_free(plain);
        for (int k = i; is_taken(x, i, x->parameter[i]) && !x->to->code.bad; k++) {
            x->parameter[i] = mc_export_format(x, "p_%s_%d", name, k);
        }
    }
    return x->parameter && !x->to->code.bad ? MC_OK : MC_EMEMORY;
}
