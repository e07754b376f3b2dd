/* t_math_table.c: prints docs/math.md: time and error of the functions of kernels, and of libmvec's,
 * SLEEF's and libm's where they are installed.
 *
 *     MATH_TABLE=docs/math.md build/monochord_tests --tier full math_table
 *
 * A time is the least of many, the four taking turns: what else the machine does only adds to it.
 *
 * Invariant: the four run over the same numbers, in loops that differ in what they call alone. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "math_ref.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { OURS, MVEC, SLEEF, LIBM, NPEER, SMALL = 4096, LARGE = 230400, TURNS = 15 };

typedef void loop(const void *x, const void *y, void *z, int64_t n, void *callee);

struct peer {
    loop *run;
    void *callee;
    double small, large, ulp; /* ns an element, ns an element, largest error */
};

struct numbers {
    void *x, *y, *z; /* LARGE of the row's type */
};

/* the ordinary arguments that are timed; errors are taken over all */
static const struct domain {
    const char *name;
    double lo, hi, lo2, hi2;
} domains[] = {
    { "log", 0.01, 100, 0, 0 },    { "log2", 0.01, 100, 0, 0 },     { "log10", 0.01, 100, 0, 0 },
    { "log1p", -0.9, 10, 0, 0 },   { "asin", -1, 1, 0, 0 },         { "acos", -1, 1, 0, 0 },
    { "acosh", 1, 100, 0, 0 },     { "atanh", -0.99, 0.99, 0, 0 },  { "sin", -40, 40, 0, 0 },
    { "cos", -40, 40, 0, 0 },      { "tan", -40, 40, 0, 0 },        { "psi", 0.1, 20, 0, 0 },
    { "tri_gamma", 0.1, 20, 0, 0 }, { "lgamma", 0.1, 20, 0, 0 },    { "pow", 0.01, 10, -8, 8 },
    { "", -4, 4, -4, 4 }, /* any other */
};

static const struct domain *domain_of(const struct mc_math_row *row)
{
    const struct domain *d = domains;
    while (*d->name && strcmp(d->name, row->name + 4) != 0) {
        d++;
    }
    return d;
}

static double get(const struct mc_math_row *row, const void *v, int64_t i)
{
    return row->dtype == MC_FLOAT64 ? ((const double *)v)[i] : (double)((const float *)v)[i];
}

static void set(const struct mc_math_row *row, void *v, int64_t i, double x)
{
    if (row->dtype == MC_FLOAT64) {
        ((double *)v)[i] = x;
    } else {
        ((float *)v)[i] = (float)x;
    }
}

static void ordinary(const struct mc_math_row *row, const struct numbers *v)
{
    const struct domain *d = domain_of(row);
    for (int64_t i = 0; i < LARGE; i++) {
        set(row, v->x, i, test_uniform(d->lo, d->hi));
        set(row, v->y, i, test_uniform(d->lo2, d->hi2));
    }
}

/* bit patterns at random */
static void any(const struct mc_math_row *row, const struct numbers *v)
{
    for (int64_t i = 0; i < LARGE; i++) {
        uint64_t u = test_random();
        memcpy((char *)v->x + i * (row->dtype == MC_FLOAT64 ? 8 : 4), &u, row->dtype == MC_FLOAT64 ? 8 : 4);
        if (beyond(row, get(row, v->x, i)) || isnan(get(row, v->x, i))) {
            set(row, v->x, i, 1);
        }
    }
}

/* ---- the loops: over our text, over a function of vectors, over a function of one number ---- */

static char *loops(const struct mc_math_row *row, int bytes)
{
    static const struct {
        const char *name, *type;
    } kinds[] = { { "ours", "T" }, { "vector", "V" }, { "scalar", "T" } };
    struct mc_str s = { 0 };
    uint64_t have[MC_MATH_WORDS] = { 0 };
    bool two = row->arity == 2;
    mc_math_add(&s, have, row->name + 4, row->dtype);
    mc_str_addf(&s, "typedef %s T;\ntypedef T V __attribute__((vector_size(%d)));\n",
                row->dtype == MC_FLOAT64 ? "double" : "float", bytes);
    for (size_t k = 0; k < NELEM(kinds); k++) {
        const char *t = kinds[k].type;
        mc_str_addf(&s, "void %s(const %s *x, const %s *y, %s *z, long long n, %s (*f)(%s%s%s))\n{\n",
                    kinds[k].name, t, t, t, t, t, two ? ", " : "", two ? t : "");
        mc_str_addf(&s, "    n /= (long long)(sizeof(%s) / sizeof(T));\n#pragma GCC ivdep\n", t);
        mc_str_addf(&s, "    for (long long i = 0; i < n; i++) { z[i] = %s(x[i]%s); }\n}\n",
                    k ? "f" : row->name, two ? ", y[i]" : "");
    }
    return mc_str_take(&s);
}

/* their names: _ZGVeN16v_expf, Sleef_expf16_u10, expf */
static void *callee(void *lib, const struct mc_math_row *row, int bytes, int peer)
{
    bool wide = row->dtype == MC_FLOAT64, two = row->arity == 2;
    int lanes = bytes / (wide ? 8 : 4);
    const char *f = row->name + 4, *tail = wide ? "" : "f";
    char name[96];
    if (!lib) {
        return NULL;
    }
    if (peer == LIBM) {
        snprintf(name, sizeof name, "%s%s", f, tail);
    } else if (peer == MVEC) {
        snprintf(name, sizeof name, "_ZGV%cN%dv%s_%s%s", bytes == 64 ? 'e' : 'd', lanes, two ? "v" : "", f,
                 tail);
    } else {
        snprintf(name, sizeof name, "Sleef_%s%c%d_u10", f, wide ? 'd' : 'f', lanes);
        void *p = dlsym(lib, name);
        if (p) {
            return p;
        }
        snprintf(name, sizeof name, "Sleef_%s%c%d_u15", f, wide ? 'd' : 'f', lanes);
    }
    return dlsym(lib, name);
}

/* ---- measuring ---- */

static double time_once(const struct peer *p, const struct numbers *v, int64_t n)
{
    int64_t calls = 1 + 500000 / n;
    double start = mc_now();
    for (int64_t i = 0; i < calls; i++) {
        p->run(v->x, v->y, v->z, n, p->callee);
    }
    return (mc_now() - start) * 1e9 / (double)(calls * n);
}

static void time_all(struct peer *peers, const struct numbers *v)
{
    for (int turn = 0; turn < TURNS; turn++) {
        for (struct peer *p = peers; p < peers + NPEER; p++) {
            if (p->run) {
                double small = time_once(p, v, SMALL), large = time_once(p, v, LARGE);
                p->small = turn ? fmin(p->small, small) : small;
                p->large = turn ? fmin(p->large, large) : large;
            }
        }
    }
}

static void judge(struct peer *p, const struct mc_math_row *row, const struct numbers *v,
                  const struct ref *ref)
{
    p->run(v->x, v->y, v->z, LARGE, p->callee);
    for (int64_t i = 0; i < LARGE; i++) {
        double x = get(row, v->x, i), y = get(row, v->y, i);
        bool wide = row->dtype == MC_FLOAT64;
        if ((wide && ref->hi > 0 && !(x >= ref->lo && x <= ref->hi)) ||
            (!wide && ref->lo32 > 0 && !(x >= ref->lo32))) {
            continue;
        }
        real r = ref->wide2 ? ref->wide2(x, y) : wide || !ref->narrow ? ref->wide(x) : (real)ref->narrow(x);
        double u = ulps_of(row, (real)get(row, v->z, i), r);
        p->ulp = fmax(p->ulp, u);
    }
}

/* ---- the table ---- */

static void print_row(FILE *to, const struct mc_math_row *row, const struct peer *peers)
{
    fprintf(to, "| %s |", row->name + 4);
    for (const struct peer *p = peers; p < peers + NPEER; p++) {
        if (p->run) {
            fprintf(to, p->ulp < 1000 ? " %.3f | %.3f | %.2f |" : " %.3f | %.3f | > 1000 |", p->small,
                    p->large, p->ulp);
        } else {
            fputs(" | | |", to);
        }
    }
    fputs("\n", to);
    fflush(to);
}

static void measure(FILE *to, const struct mc_math_row *row, void *const lib[NPEER], int bytes,
                    const struct numbers *v)
{
    mc_status status = MC_OK;
    char *text = loops(row, bytes);
    struct mc_code *code = mc_code_load(text, mc_cpu_flags(), &status);
    mc_free(text);
    REQUIRE(code, "%s: %s", row->name, mc_last_error());
    static const char *const kind[NPEER] = { "ours", "vector", "vector", "scalar" };
    struct peer peers[NPEER] = { 0 };
    for (int k = 0; k < NPEER; k++) {
        peers[k].callee = k == OURS ? NULL : callee(lib[k], row, bytes, k);
        if (k == OURS || peers[k].callee) {
            peers[k].run = (loop *)(uintptr_t)mc_code_symbol(code, kind[k]);
        }
    }
    ordinary(row, v);
    time_all(peers, v);
    for (int round = 0; round < (row->dtype == MC_FLOAT64 ? 2 : 8); round++) {
        if (row->arity == 1 && round % 2 == 0) {
            any(row, v);
        } else {
            ordinary(row, v);
        }
        for (int k = 0; k < NPEER; k++) {
            if (peers[k].run) {
                judge(&peers[k], row, v, ref_of(row));
            }
        }
    }
    CHECK(peers[OURS].ulp <= row->ulp, "%s: %.3f ulp, allowed %.1f", row->name, peers[OURS].ulp, row->ulp);
    print_row(to, row, peers);
    mc_code_unref(&code);
}

static void print_table(FILE *to, mc_dtype d, void *const lib[NPEER], int bytes, const struct numbers *v)
{
    fprintf(to,
            "\n## %s\n\n"
            "| function | ours L1 | L2 | ulp | libmvec L1 | L2 | ulp | SLEEF L1 | L2 | ulp | libm L1 | L2 | "
            "ulp |\n"
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            mc_dtype_name(d));
    for (size_t i = 0; i < mc_nmath; i++) {
        if (mc_math_rows[i].arity && mc_math_rows[i].dtype == d) {
            measure(to, &mc_math_rows[i], lib, bytes, v);
        }
    }
}

TEST_FULL(math_table)
{
    if (!mc_cc_present() || !mc_cpu()->avx2) {
        SKIP("no C compiler, or no AVX2");
    }
    int bytes = mc_cpu()->avx512f ? 64 : 32;
    void *const lib[NPEER] = { NULL, dlopen("libmvec.so.1", RTLD_NOW), dlopen("libsleef.so.3", RTLD_NOW),
                               dlopen("libm.so.6", RTLD_NOW) };
    struct numbers v = { mc_alloc_pages(LARGE * 8, "test"), mc_alloc_pages(LARGE * 8, "test"),
                         mc_alloc_pages(LARGE * 8, "test") };
    REQUIRE(v.x && v.y && v.z, "%s", mc_last_error());
    const char *path = getenv("MATH_TABLE");
    FILE *to = path ? fopen(path, "w") : stdout;
    REQUIRE(to, "%s cannot be written", path);
    fprintf(
        to,
        "# The functions of kernels\n\n"
        "Printed by `MATH_TABLE=docs/math.md build/monochord_tests --tier full math_table`\n"
        "on %s, %s, vectors of %d bits, one thread.\n\n"
        "Times are ns an element, the least of %d turns, taken on a machine that others used as well:\n"
        "L1 over %d elements of ordinary size, L2 over %d. ulp is the largest error seen over random bit\n"
        "patterns and ordinary arguments, against libm in a wider precision (of sin, cos and tan below "
        "2^45,\n"
        "beyond which kernels leave it to the reference). The error of SLEEF is that of its u10 functions. "
        "lgamma is libm's.\n",
        mc_cpu()->brand, mc_cc_version(), 8 * bytes, TURNS, SMALL, LARGE);
    print_table(to, MC_FLOAT32, lib, bytes, &v);
    print_table(to, MC_FLOAT64, lib, bytes, &v);
    if (path) {
        CHECK(fclose(to) == 0, "%s is not written", path);
    }
    mc_free_pages(v.x);
    mc_free_pages(v.y);
    mc_free_pages(v.z);
}
