/* text.c: the text of an exported file around its steps: types, kernels, the text of vectors and of sums; the
 * choice among instruction sets.
 *
 * A file for several instruction sets has its steps once.  It includes itself with NAME_LEVEL defined, which
 * leaves its second part, for each of them; the functions of the header call the widest that runs.
 *
 * Invariant: kernels and their functions, sums and steps have the same text at every level. */
#include "export/exporting.h"
#include "op/matrix/matrix.h"

/* Level of vectors, by the compiler's flags; %s_PLAIN switches extensions off. */
static const char by_flags[] =
    "#if defined(%s_PLAIN) || !defined(__GNUC__)%s\n#define %s 0\n"
    "#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)\n"
    "#define %s 512\n#elif defined(__AVX2__) && defined(__FMA__)\n#define %s 256\n#else\n#define %s 128\n#endif\n";

static const char warnings[] =
    /* kernels name all of their operands and indices, used or not, and compare what a formula compares */
    "#ifdef __GNUC__\n"
    "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
    "#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
    "#pragma GCC diagnostic ignored \"-Wtype-limits\"\n"
    "#endif\n"
    /* g++ takes what its headers leave undefined for a mistake */
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "#pragma GCC diagnostic ignored \"-Waggressive-loop-optimizations\"\n"
    "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n#endif\n";

static const char parallel_work[] =
    "#ifndef %s_PARALLEL_WORK /* with OpenMP: the multiply-adds for which a loop is shared by threads */\n"
    "#define %s_PARALLEL_WORK 262144\n#endif\n#define PARALLEL_WORK %s_PARALLEL_WORK\n";

static const char intrinsics[] =
    "#if %s > 128 || (%s == 128 && defined(__FMA__))%s\n#include <immintrin.h>\n"
    "#elif %s == 128 && defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n";

/* ---- several levels ---- */

/* COMPILED is what the flags give; CHOICE is the widest level that a call may choose; 0: there is no
 * choice. */
static const char choice[] = "#if defined(__x86_64__) && COMPILED > 0\n#define CHOICE %d\n"
                             "#else\n#define CHOICE 0\n#endif\n";

static const char paste[] =
    "\n/* The steps follow once for each instruction set: this file includes itself. Names in AT_LEVEL differ. */\n"
    "#define PASTE_LEVEL_(name, level) name##_##level\n"
    "#define PASTE_LEVEL(name, level) PASTE_LEVEL_(name, level)\n"
    "#define AT_LEVEL(name) PASTE_LEVEL(name, LEVEL)\n";

static const char chosen[] = "\n/* The widest level that the processor has. */\n"
                             "static int chosen_level(void)\n{\n"
                             "    int level = COMPILED;\n"
                             "#if CHOICE > COMPILED\n"
                             "    __builtin_cpu_init();\n"
                             "    if (CHOICE >= 256 && level < 256 && __builtin_cpu_supports(\"avx2\") &&\n"
                             "            __builtin_cpu_supports(\"fma\")) {\n"
                             "        level = 256;\n"
                             "    }\n"
                             "    if (CHOICE >= 512 && level == 256 && __builtin_cpu_supports(\"avx512f\") &&\n"
                             "            __builtin_cpu_supports(\"avx512dq\") &&\n"
                             "            __builtin_cpu_supports(\"avx512bw\") &&\n"
                             "            __builtin_cpu_supports(\"avx512vl\")) {\n"
                             "        level = 512;\n"
                             "    }\n"
                             "#endif\n"
                             "    return level;\n"
                             "}\n\n"
                             "const char *%s_isa(void)\n{\n"
                             "    const int level = chosen_level();\n"
                             "    return level == 512   ? \"avx512\"\n"
                             "           : level == 256 ? \"avx2\"\n"
                             "           : level == 128 ? \"generic\"\n"
                             "                          : \"plain\";\n"
                             "}\n\n";

/* The steps at one level, and AT_512(name, other): the name at that level, if it is chosen. */
static void add_level(struct mc_str *out, const struct mc_export_file *f, const char *macro, int level)
{
    mc_str_addf(out,
                "#if CHOICE >= %d && COMPILED < %d\n#define %s_LEVEL %d\n#include \"%s.c\"\n#undef %s_LEVEL\n"
                "#define AT_%d(name, other) (chosen_level() == %d ? name##_%d : other)\n"
                "#else\n#define AT_%d(name, other) other\n#endif\n",
                level, level, macro, level, f->file, macro, level, level, level, level);
}

static void add_levels(struct mc_str *out, const struct mc_export_file *f, const char *macro)
{
    mc_str_add(out, paste);
    mc_portable_rename(out);
    add_level(out, f, macro, 512);
    add_level(out, f, macro, 256);
    mc_str_addf(out, "#define %s_LEVEL COMPILED\n#include \"%s.c\"\n#undef %s_LEVEL\n", macro, f->file,
                macro);
    mc_str_add(out, "#define CHOSEN(name) AT_512(name, AT_256(name, PASTE_LEVEL(name, COMPILED)))\n");
    mc_str_addf(out, chosen, f->name);
    mc_export_code(out, f->entry.s ? f->entry.s : "");
    mc_str_addf(out, "\n#else /* %s_LEVEL: the steps at that level */\n\n#define LEVEL %s_LEVEL\n", macro,
                macro);
}

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

mc_status mc_export_head(struct mc_str *out, const struct mc_export_file *f, const char *macro)
{
    const size_t n = f->kernel.n;
    const char *level = f->widest ? "COMPILED" : "LEVEL", *also = f->widest ? " || CHOICE > 0" : "";
    struct mc_str functions = { 0 };
    struct mc_kernel **k = mc_calloc(n + 1, sizeof *k, "export");
    if (!k) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        k[i] = &f->kernel.at[i];
    }
    mc_str_add(out, f->dialect->exact);
    mc_str_addf(out, by_flags, macro, f->freestanding ? " || 1 /* freestanding */" : "", level, level, level,
                level);
    if (f->widest) {
        mc_str_addf(out, choice, f->widest);
    }
    mc_str_add(out, warnings);
    mc_str_addf(out, parallel_work, macro, macro, macro);
    mc_str_addf(out, intrinsics, level, level, also, level);
    mc_portable_text(out);
    mc_str_add(out, next_step);
    mc_factor_text(out, f->factors);
    if (f->ctc) {
        mc_export_ctc_text(out);
    }
    mc_render_functions(&functions, f->dialect, (int)n, k);
    mc_export_code(out, functions.s ? functions.s : "");
    mc_free(k);
    const bool bad = out->bad || functions.bad;
    mc_str_free(&functions);
    return bad ? MC_EMEMORY : MC_OK;
}

void mc_export_functions(struct mc_str *out, const struct mc_export_file *f, const char *macro)
{
    if (f->widest) {
        add_levels(out, f, macro);
    }
    mc_portable_level_text(out, f->f32, f->f64, f->finishes);
    mc_export_code(out, f->code.s ? f->code.s : "");
    if (f->widest) {
        mc_portable_undefine(out);
        mc_str_add(out, "#undef LEVEL\n#endif\n");
    }
}
