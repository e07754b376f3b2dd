/* problem.c: matrix products: the key of a problem, and how far its results may differ from the reference.
 *
 *     gemm f32 nt m600n10k784 b4 c0 row e
 *
 * Invariant: problems with equal keys differ only in addresses and in the values of alpha and beta. */
#include "heavy/gemm/solver.h"
#include <inttypes.h>
#include <math.h>

static const char short_name[MC_NDTYPE][5] = {
    [MC_INT8] = "i8", [MC_INT16] = "i16", [MC_INT32] = "i32", [MC_INT64] = "i64", [MC_UINT8] = "u8",
    [MC_UINT16] = "u16",
    [MC_UINT32] = "u32", [MC_UINT64] = "u64", [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16",
    [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};

/* ---- key ---- */

char mc_gemm_order(const int64_t *s, int64_t rows, int64_t cols)
{
    return s[2] == 1 || cols == 1 ? 'n' : s[1] == 1 || rows == 1 ? 't' : 'x';
}

/* Strides other than those of a contiguous matrix are part of the key, because speed depends on them. */
static void lead(struct mc_str *out, const char *name, const int64_t *s, int64_t rows, int64_t cols)
{
    const bool t = mc_gemm_order(s, rows, cols) == 't';
    if (mc_gemm_order(s, rows, cols) == 'x') {
        mc_str_addf(out, " %s%" PRId64 ",%" PRId64, name, s[1], s[2]);
        return;
    }
    const int64_t far = t ? s[2] : s[1], dense = t ? rows : cols, count = t ? cols : rows;
    if (count > 1 && far != dense) {
        mc_str_addf(out, " %s%" PRId64, name, far);
    }
}

void mc_gemm_key(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_gemm_problem *p = gemm(p_);
    mc_str_addf(out, "gemm %s %c%c m%" PRId64 "n%" PRId64 "k%" PRId64, short_name[p->dtype],
                mc_gemm_order(p->as, p->m, p->k), mc_gemm_order(p->bs, p->k, p->n), p->m, p->n, p->k);
    lead(out, "lda", p->as, p->m, p->k);
    lead(out, "ldb", p->bs, p->k, p->n);
    lead(out, "ldc", p->cs, p->m, p->n);
    if (p->batch != 1) {
        mc_str_addf(out, " b%" PRId64 "%s%s", p->batch, p->as[0] ? "" : " shareda",
                    p->bs[0] ? "" : " sharedb");
    }
    if (p->beta != 0) {
        const bool row = p->c0s[1] == 0, col = p->c0s[2] == 0;
        mc_str_add(out, row && col    ? " c0 one"
                        : row         ? " c0 row"
                        : col         ? " c0 col"
                        : p->residual ? " c0 apart"
                                      : " c0");
    }
    if (p->has_epilogue) {
        mc_str_add(out, " e");
    }
    mc_str_add(out, mc_act_names[p->act]);
    mc_str_add(out, p->tf32 ? " tf32" : "");
    mc_str_add(out, p->b_stays ? " stays" : "");
}

/* ---- verification ---- */

/* A sum of k products of numbers in [-1, 1) is about sqrt(k) in size.  The error of any order of summation is
 * below eps * k.  Halves add one rounding of the result. */
static double allowed(const struct mc_gemm_problem *p)
{
    const double eps = mc_dtypes[p->dtype].cls == CLASS_F64 ? 0x1p-52 : p->tf32 ? 0x1p-10 : 0x1p-23;
    if (!mc_is_float(p->dtype)) {
        return 0;
    }
    const double k = (double)p->k, size = fabs(p->alpha) * sqrt(k + 1) * 3 + fabs(p->beta);
    return 4 * eps * (fabs(p->alpha) * (k + 4) + fabs(p->beta)) + mc_dtypes[p->dtype].eps * size;
}

mc_status mc_gemm_compare(const struct mc_gemm_problem *p, const struct mc_plan *plan, const void *got,
                          const void *want)
{
    const int64_t size = mc_dtypes[p->dtype].size;
    const double most = allowed(p);
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = (b * p->cs[0] + i * p->cs[1] + j * p->cs[2]) * size;
                const double x = mc_load_f64(p->dtype, (const char *)got + at);
                const double y = mc_load_f64(p->dtype, (const char *)want + at);
                if (!(fabs(x - y) <= most)) {
                    struct mc_str text = { 0 };
                    mc_plan_text(plan, &text);
                    mc_fail(MC_ECHECK,
                            "%s: element [%" PRId64 ", %" PRId64 ", %" PRId64
                            "] is %.9g, the reference has %.9g",
                            text.s ? text.s : "gemm", b, i, j, x, y);
                    mc_str_free(&text);
                    return MC_ECHECK;
                }
            }
        }
    }
    return MC_OK;
}

/* If the matrices A of the batch adjoin in memory (as do C and C0) and B is shared, the batch is one
 * product. */
void mc_gemm_stack(struct mc_gemm_problem *p)
{
    const bool c0 = p->beta == 0 || p->c0s[0] == p->m * p->c0s[1];
    if (p->batch > 1 && !p->has_epilogue && p->bs[0] == 0 && p->as[0] == p->m * p->as[1] &&
        p->cs[0] == p->m * p->cs[1] && c0) {
        p->m *= p->batch;
        p->batch = 1;
    }
}

bool mc_gemm_possible(const struct mc_gemm_problem *p)
{
    int64_t count;
    if (p->batch < 0 || p->m < 0 || p->n < 0 || p->k < 0 || !mc_mul_i64(p->batch, p->m, &count) ||
        !mc_mul_i64(count, p->n, &count) || !mc_mul_i64(p->m, p->k, &count) ||
        !mc_mul_i64(p->k, p->n, &count)) {
        mc_fail(MC_ESHAPE,
                "gemm: sizes batch %" PRId64 ", m %" PRId64 ", n %" PRId64 ", k %" PRId64 " cannot be",
                p->batch, p->m, p->n, p->k);
        return false;
    }
    return true;
}
