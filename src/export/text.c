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
    /* kernels name all of their operands and indices, used or not */
    "#ifdef __GNUC__\n#pragma GCC diagnostic ignored \"-Wunused-variable\"\n#pragma GCC diagnostic ignored "
    "\"-Wunused-function\"\n#endif\n"
    "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC diagnostic ignored "
    "\"-Waggressive-loop-optimizations\"\n#endif\n"
    "#if LEVEL > 128\n#include <immintrin.h>\n#elif LEVEL == 128 && defined(__aarch64__)\n#include "
    "<arm_neon.h>\n#endif\n";

struct mc_dialect mc_export_dialect(void)
{
    struct mc_dialect d = mc_dialect_c;
    d.reduce_loop = "";
    return d;
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
    mc_str_addf(out, levels, macro);
    mc_portable_text(out, f->f32, f->f64);
    mc_render_functions(&functions, f->dialect, (int)n, k);
    mc_indent(out, functions.s ? functions.s : "");
    mc_free(k);
    const bool bad = out->bad || functions.bad;
    mc_str_free(&functions);
    return bad ? MC_EMEMORY : MC_OK;
}
