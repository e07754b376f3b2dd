/* text.c: what an exported file has before its steps: types, the text of vectors and of sums, the kernels.
 *
 * Invariant: the text depends on the kernels and on the types of the sums, and on nothing else of the
 * functions. */
#include "export/exporting.h"

/* Level of vectors, by the compiler's flags; %s_PLAIN switches extensions off. */
static const char levels[] =
    "#if defined(%s_PLAIN) || !defined(__GNUC__)\n#define LEVEL 0\n"
    "#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)\n"
    "#define LEVEL 512\n#elif defined(__AVX2__) && defined(__FMA__)\n#define LEVEL 256\n#else\n#define LEVEL "
    "128\n#endif\n"
    /* kernels name all of their operands and indices, used or not, and compare what a formula compares */
    "#ifdef __GNUC__\n"
    "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
    "#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
    "#pragma GCC diagnostic ignored \"-Wtype-limits\"\n"
    "#endif\n"
    "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC diagnostic ignored "
    "\"-Waggressive-loop-optimizations\"\n#endif\n"
    "#ifndef %s_PARALLEL_WORK /* with OpenMP: the multiply-adds for which a loop is shared by threads */\n"
    "#define %s_PARALLEL_WORK 262144\n#endif\n#define PARALLEL_WORK %s_PARALLEL_WORK\n"
    "#if LEVEL > 128 || (LEVEL == 128 && defined(__FMA__))\n#include <immintrin.h>\n#elif LEVEL == 128 && defined(__aarch64__)\n#include "
    "<arm_neon.h>\n#endif\n";

/* The memory of a step is the next one's for other types: compilers may not move accesses from one to the
 * other. */
static const char next_step[] = "#ifdef __GNUC__\n"
                                "#define NEXT_STEP __asm__ volatile(\"\" ::: \"memory\")\n"
                                "#else\n#define NEXT_STEP (void)0\n#endif\n";

/* Hexadecimal floating constants are not C++11: the same numbers as decimals. */
static size_t add_decimal(struct mc_str *out, const char *at)
{
    const size_t n = 2 + strspn(at + 2, "0123456789abcdefABCDEF.");
    if (at[n] != 'p' && at[n] != 'P') {
        mc_str_addn(out, at, n);
        return n;
    }
    const size_t sign = at[n + 1] == '-' || at[n + 1] == '+',
                 all = n + 1 + sign + strspn(at + n + 1 + sign, "0123456789");
    char number[64] = { 0 }, text[40];
    memcpy(number, at, MC_MIN(all, sizeof number - 1));
    const bool single = at[all] == 'f';
    mc_snprintf(text, sizeof text, single ? "%.9g" : "%.17g", mc_strtod(number, NULL));
    mc_str_addf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    return all;
}

void mc_export_code(struct mc_str *out, const char *text)
{
    struct mc_str decimal = { 0 };
    for (const char *at = text; *at;) {
        const bool starts = at[0] == '0' && at[1] == 'x' && (at == text || !mc_export_is_letter(at[-1]));
        const size_t n = starts ? add_decimal(&decimal, at) : 1;
        if (!starts) {
            mc_str_addn(&decimal, at, 1);
        }
        at += n;
    }
    mc_indent(out, decimal.s ? decimal.s : "");
    out->bad |= decimal.bad;
    mc_str_free(&decimal);
}

mc_status mc_export_text(struct mc_str *out, const struct mc_export_file *f, const char *macro)
{
    const size_t n = f->kernel.n;
    struct mc_str functions = { 0 };
    struct mc_kernel **k = mc_calloc(n + 1, sizeof *k, "export");
    if (!k) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        k[i] = &f->kernel.at[i];
    }
    mc_str_add(out, f->dialect->exact);
    mc_str_addf(out, levels, macro, macro, macro, macro);
    mc_portable_text(out, f->f32, f->f64);
    mc_str_add(out, next_step);
    mc_render_functions(&functions, f->dialect, (int)n, k);
    mc_export_code(out, functions.s ? functions.s : "");
    mc_free(k);
    const bool bad = out->bad || functions.bad;
    mc_str_free(&functions);
    return bad ? MC_EMEMORY : MC_OK;
}
