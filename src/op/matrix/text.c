/* text.c: the texts of this folder that an exported file contains, and the names in them. */
#include "op/matrix/matrix.h"
#include <ctype.h>

static const char rows[] = {
#include "op/matrix/rows_text.h"
    , 0
};
static const char dense[] = {
#include "op/matrix/dense_text.h"
    , 0
};
static const char cholesky[] = {
#include "op/matrix/cholesky_text.h"
    , 0
};
static const char triangular[] = {
#include "op/matrix/triangular_text.h"
    , 0
};
static const char lu[] = {
#include "op/matrix/lu_text.h"
    , 0
};
static const char qr[] = {
#include "op/matrix/qr_text.h"
    , 0
};
static const char eigh[] = {
#include "op/matrix/eigh_text.h"
    , 0
};
static const char svd[] = {
#include "op/matrix/svd_text.h"
    , 0
};
static const char eig[] = {
#include "op/matrix/eig_text.h"
    , 0
};

#define SOLVES    (1u << FACTOR_SOLVE | 1u << FACTOR_INVERSE)
#define QR        (1u << FACTOR_QR | 1u << FACTOR_R)
#define SYMMETRIC (1u << FACTOR_EIGH | 1u << FACTOR_EIGVALSH)
#define SINGULAR  (1u << FACTOR_SVD | 1u << FACTOR_SVDVALS)
#define ANY       (1u << FACTOR_EIG | 1u << FACTOR_EIGVALS)
/* In the order in which they need each other; kinds: what needs the text. */
static const struct { const char *text; unsigned kinds; } texts[] = {
    { rows,       ~0u },
    { dense,      ~0u },
    { cholesky,   1u << FACTOR_CHOLESKY },
    { triangular, 1u << FACTOR_TRIANGULAR | 1u << FACTOR_LU | SOLVES },
    { lu,         1u << FACTOR_LU | SOLVES },
    { qr,         QR | SYMMETRIC | SINGULAR | ANY },
    { eigh,       SYMMETRIC | SINGULAR | ANY },
    { svd,        SINGULAR },
    { eig,        ANY },
};

void mc_factor_text(struct mc_str *out, const unsigned kinds[2])
{
    static const char *const types[] = { "float", "double" }, *const suffixes[] = { "f32", "f64" };
    for (int d = 0; d < 2; d++) {
        if (!kinds[d]) {
            continue;
        }
        mc_str_addf(out, "#define R %s\n#define NAME(x) x##_%s\n#define TARGET\n", types[d], suffixes[d]);
        for (size_t i = 0; i < NELEM(texts); i++) {
            const char *end = strstr(texts[i].text, "*/\n"); /* of the comment at its head */
            mc_str_add(out, texts[i].kinds & kinds[d] && end ? end + 3 : "");
        }
        mc_str_add(out, "#undef R\n#undef NAME\n#undef TARGET\n");
    }
}

bool mc_factor_is_name(const char *name)
{
    const char *suffix = strrchr(name, '_');
    char call[64];
    bool found = false;
    if (!suffix || (strcmp(suffix, "_f32") != 0 && strcmp(suffix, "_f64") != 0) ||
        suffix - name >= (ptrdiff_t)sizeof call - 8) {
        return false;
    }
    mc_snprintf(call, sizeof call, "NAME(%.*s)(", (int)(suffix - name), name);
    for (size_t i = 0; i < NELEM(texts); i++) {
        found |= strstr(texts[i].text, call) != NULL;
    }
    return found;
}

/* The function of each kind, and which operands it is given: inputs a and b, results x, y, z; "0": none. */
static const struct { const char *name, *operands; } calls[FACTOR_NKIND] = {
    [FACTOR_CHOLESKY] = { "cholesky", "ax" },  [FACTOR_TRIANGULAR] = { "triangular", "abx" },
        [FACTOR_LU] = { "lu", "axyz" },
    [FACTOR_SOLVE] = { "solve", "abx" },       [FACTOR_INVERSE] = { "solve", "a0x" },
                [FACTOR_QR] = { "qr", "axy" },
    [FACTOR_R] = { "qr", "a0x" },              [FACTOR_EIGH] = { "eigh", "axy" },
                    [FACTOR_EIGVALSH] = { "eigh", "ax0" },
    [FACTOR_SVD] = { "svd", "axyz" },          [FACTOR_SVDVALS] = { "svd", "a0x0" },
                 [FACTOR_EIG] = { "eig", "axy" },
    [FACTOR_EIGVALS] = { "eig", "ax0" },
};

void mc_factor_call(struct mc_str *out, const struct mc_factor *f, const char *const *operand,
                    const char *work)
{
    const char *type = f->dtype == MC_FLOAT64 ? "double" : "float";
    mc_str_addf(out, "%s_%s(sizes, ", calls[f->kind].name, f->dtype == MC_FLOAT64 ? "f64" : "f32");
    for (const char *at = calls[f->kind].operands; *at; at++) {
        const bool result = *at >= 'x';
        const int i = *at - (result ? 'x' : 'a'), r = result ? FACTOR_MOST_IN + i : i;
        if (*at == '0') {
            mc_str_add(out, "NULL, ");
            continue;
        }
        mc_str_addf(out, "(%s%s *)(%s) + i * %lld, ", result ? "" : "const ",
                    result && f->kind == FACTOR_LU && i == 1 ? "int64_t" : type, operand[r],
                    (long long)(result ? f->out[i] : f->in[i]));
    }
    mc_str_addf(out, "(%s *)(%s))", type, work);
}
