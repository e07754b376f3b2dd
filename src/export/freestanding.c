/* freestanding.c: exported files that need no C library but memcpy and memset: float32 alone, no vectors.
 *
 * Invariant: each function of the table gives the bits of the C library's. */
#include "export/exporting.h"
#include <string.h>

/* ---- what a step may contain ---- */

/* Functions of the C library that the text of a step may call by these names, or as __builtin_NAME, and that
 * the file does not have. */
static const char *const missing[] = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "fma", "fmax", "fmin", "fmod", "fmodf", "hypot", "ldexp",
    "lgamma", "lgamma_r", "lgammaf_r", "log", "log10", "log1p", "log2", "nearbyint", "pow", "powf",
    "remainder", "rint", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
};

/* The first of them that the text calls outside of comments; NULL: none. */
static const char *called(const char *text)
{
    static const char builtin[] = "__builtin_";
    for (const char *at = text; *at; at++) {
        const char *name = at, *end = at[0] == '/' && at[1] == '*' ? strstr(at, "*/") : NULL;
        at = end ? end : at;
        if (*at != '(') {
            continue;
        }
        while (name > text && mc_export_is_letter(name[-1])) {
            name--;
        }
        if (strncmp(name, builtin, sizeof builtin - 1) == 0) {
            name += sizeof builtin - 1;
        }
        for (size_t i = 0; i < NELEM(missing); i++) {
            if (strlen(missing[i]) == (size_t)(at - name) &&
                strncmp(missing[i], name, (size_t)(at - name)) == 0) {
                return missing[i];
            }
        }
    }
    return NULL;
}

static mc_status refuse_dtype(mc_dtype d)
{
    return mc_is_float(d) && d != MC_FLOAT32
               ? mc_fail(MC_EUNSUPPORTED, "a freestanding file computes in float32 alone, not in %s",
                         mc_dtype_name(d))
               : MC_OK;
}

static mc_status refuse_text(const char *text)
{
    const char *name = text ? called(text) : NULL;
    return name ? mc_fail(MC_EUNSUPPORTED, "a freestanding file has no %s()", name) : MC_OK;
}

/* The functions that the kernel calls. */
static mc_status check_kernel(const struct mc_export_one *x, const struct mc_kernel *k)
{
    for (size_t i = 0; i < k->val.n; i++) {
        TRY(refuse_dtype(k->val.at[i].dtype));
    }
    struct mc_kernel own = *k, *one = &own;
    struct mc_str text = { 0 };
    own.exact = own.lanes = true;
    own.wide = false;
    mc_render_functions(&text, x->to->dialect, 1, &one);
    const mc_status s = text.bad ? MC_EMEMORY : refuse_text(text.s);
    mc_str_free(&text);
    return s;
}

mc_status mc_export_check_freestanding(const struct mc_export_one *x, int step, const char *text)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    for (int i = 0; i < st->ndst; i++) {
        TRY(refuse_dtype(x->p->slot[st->dst[i]].type.dtype));
    }
    for (int i = 0; st->heavy && i < st->heavy->nin; i++) {
        TRY(refuse_dtype(x->p->slot[mc_heavy_source(x->f, st->heavy, i)].type.dtype));
    }
    TRY(st->kernel ? check_kernel(x, st->kernel) : MC_OK);
    return refuse_text(text);
}

/* ---- what stands in place of headers ---- */

/* __builtin_ functions that are instructions where there are any, else calls of the C library. */
static const char functions[] =
    "/* Freestanding: of the C library, memcpy and memset alone. */\n"
    "#ifdef __GNUC__\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n#endif\n"
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
    "void *memcpy(void *to, const void *from, size_t n);\n"
    "void *memset(void *to, int byte, size_t n);\n"
    "#ifdef __cplusplus\n}\n#endif\n"
    "#define NAN       __builtin_nanf(\"\")\n#define HUGE_VALF __builtin_inff()\n"
    "typedef union { float f; uint32_t u; } float_bits;\n"
    "typedef union { double f; uint64_t u; } double_bits;\n"
    "static inline float free_truncf(float x)\n{\n"
    "    float_bits v;\n"
    "    v.f = x;\n"
    "    const int e = (int)(v.u >> 23 & 255) - 127;\n"
    "    v.u &= e < 0 ? 0x80000000u : e < 23 ? ~(0x7fffffu >> e) : ~0u;\n"
    "    return v.f;\n}\n"
    "static inline float free_floorf(float x)\n{\n"
    "    const float t = free_truncf(x);\n    return t > x ? t - 1 : t;\n}\n"
    "static inline float free_ceilf(float x)\n{\n"
    "    const float t = free_truncf(x);\n"
    "    return t < x ? __builtin_copysignf(t + 1, x) : t;\n}\n"
    "static inline float free_rintf(float x)\n{\n"
    "    const float t = free_truncf(x), rest = __builtin_fabsf(x - t);\n"
    "    const int odd = __builtin_fabsf(t) < 16777216.0f && ((int32_t)t & 1);\n"
    "    const float more = rest > 0.5f || (rest >= 0.5f && odd) ? 1.0f : 0.0f;\n"
    "    return __builtin_copysignf(__builtin_fabsf(t) + more, x);\n}\n"
    /* without an instruction: a bit at a time; the root of 2^e m, 2^24 <= m < 2^26, has 24 bits and a rest */
    "static inline float free_sqrtf(float x)\n{\n"
    "#if defined(__SSE__) && defined(__GNUC__)\n"
    "    float y;\n    __asm__(\"sqrtss %1, %0\" : \"=x\"(y) : \"x\"(x));\n    return y;\n"
    "#elif defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__aarch64__) && defined(__GNUC__)\n"
    "    float y;\n    __asm__(\"vsqrt.f32 %0, %1\" : \"=t\"(y) : \"t\"(x));\n    return y;\n"
    "#elif defined(__aarch64__) && defined(__GNUC__)\n"
    "    float y;\n    __asm__(\"fsqrt %s0, %s1\" : \"=w\"(y) : \"w\"(x));\n    return y;\n"
    "#else\n"
    "    float_bits v;\n"
    "    v.f = x;\n"
    "    if (v.u - 1 >= 0x7f7fffffu) { /* 0, -0, negative, infinite, NaN */\n"
    "        return x == 0 || x != x || x > 0 ? x : NAN;\n    }\n"
    "    int e = (int)(v.u >> 23);\n"
    "    uint64_t m = v.u & 0x7fffffu, root = 0;\n"
    "    for (m |= e ? 0x800000u : 0, e += !e; m < 0x800000u; e--) {\n        m <<= 1;\n    }\n"
    "    e -= 127;\n"
    "    m <<= 25 + (e & 1);\n"
    "    for (uint64_t bit = (uint64_t)1 << 25; bit; bit >>= 1) {\n"
    "        root += (root + bit) * (root + bit) <= m ? bit : 0;\n    }\n"
    "    root = (root + (root & 1)) >> 1; /* the last bit is that of a half: no root is exactly there */\n"
    "    v.u = (uint32_t)((uint64_t)((e - (e & 1)) / 2 + 126) << 23) + (uint32_t)root;\n"
    "    return v.f;\n"
    "#endif\n}\n"
    /* the sum of the exact product and c in double, rounded to odd, so that float rounds once */
    "static inline float free_fmaf(float a, float b, float c)\n{\n"
    "#if defined(__FMA__) || defined(FP_FAST_FMAF) || defined(__aarch64__)\n"
    "    return __builtin_fmaf(a, b, c);\n"
    "#else\n"
    "    const double p = (double)a * b, s = p + c, t = s - p, rest = (p - (s - t)) + (c - t);\n"
    "    double_bits v;\n"
    "    v.f = s;\n"
    "    if (rest - rest == 0 && rest != 0 && s - s == 0 && !(v.u & 1)) {\n"
    "        v.u += (rest > 0) == (s > 0) ? 1 : (uint64_t)-1;\n    }\n"
    "    return (float)v.f;\n"
    "#endif\n}\n"
    "#define fmaf(a, b, c) free_fmaf(a, b, c)\n#define fma(a, b, c)  __builtin_fma(a, b, c)\n\n";

/* The same names with "__builtin_", which the text has. */
static const char *const defined_names[] = { "truncf", "floorf", "ceilf", "rintf", "sqrtf", "fmaf" };

void mc_export_freestanding_head(struct mc_str *out)
{
    mc_str_add(out, functions);
}

/* Calls the file's own functions. */
mc_status mc_export_freestanding_calls(struct mc_str *text, size_t from)
{
    static const char builtin[] = "__builtin_";
    struct mc_str made = { 0 };
    mc_str_addn(&made, text->s, from);
    for (const char *at = text->s + from; *at;) {
        const char *next = strstr(at, builtin);
        size_t n = next ? (size_t)(next - at) : strlen(at);
        bool own = false;
        mc_str_addn(&made, at, n);
        at += n;
        for (size_t i = 0; next && i < NELEM(defined_names) && !own; i++) {
            const size_t length = strlen(defined_names[i]);
            const char *name = at + sizeof builtin - 1;
            own = strncmp(name, defined_names[i], length) == 0 && !mc_export_is_letter(name[length]);
        }
        if (next) {
            mc_str_add(&made, own ? "free_" : builtin);
            at += sizeof builtin - 1;
        }
    }
    const bool bad = made.bad;
    mc_str_free(text);
    *text = made;
    return bad ? MC_EMEMORY : MC_OK;
}
