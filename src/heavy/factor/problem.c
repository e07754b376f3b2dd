/* problem.c: factor problems: their keys, costs and operands, and the comparison of results.
 *
 *     factor f64 cholesky m64n64 b8
 *
 * Invariant: problems with equal keys differ only in addresses. */
#include "heavy/factor/solver.h"
#include <inttypes.h>
#include <math.h>

void mc_factor_key(const struct mc_problem *p, struct mc_str *out)
{
    const struct mc_factor *f = factoring(p);
    mc_str_addf(out, "factor %s %s", f->dtype == MC_FLOAT64 ? "f64" : "f32", f->op);
    for (int i = 0; i < FACTOR_SIZES; i++) {
        mc_str_addf(out, "%s%" PRId64, i ? "," : " ", f->g[i]);
    }
    mc_str_addf(out, " b%" PRId64, f->batch);
}

/* Multiplications and additions, of the usual algorithms. */
double mc_factor_flops(const struct mc_factor *f)
{
    const double m = (double)f->g[0], n = (double)f->g[1], least = MC_MIN(m, n), most = MC_MAX(m, n);
    static const double cube[FACTOR_NKIND] = {
        [FACTOR_CHOLESKY] = 1. / 3, [FACTOR_INVERSE] = 8. / 3, [FACTOR_EIGH] = 9,  [FACTOR_EIGVALSH] = 4. / 3,
        [FACTOR_EIG] = 25,          [FACTOR_EIGVALS] = 25,
    };
    double flops = cube[f->kind] * m * m * m;
    switch (f->kind) {
    case FACTOR_TRIANGULAR: flops = m * m * n; break;
    case FACTOR_SOLVE: flops = m * m * m * 2 / 3 + 2 * m * m * n; break;
    case FACTOR_LU: flops = 2 * least * least * (most - least / 3); break;
    case FACTOR_QR: flops = 4 * least * least * (most - least / 3); break;
    case FACTOR_R: flops = 2 * least * least * (most - least / 3); break;
    case FACTOR_SVD: flops = 4 * most * least * least + 16 * least * least * least; break;
    case FACTOR_SVDVALS: flops = 4 * most * least * least; break;
    default: break;
    }
    return flops * (double)f->batch;
}

size_t mc_factor_operand(const struct mc_factor *f, int r, size_t *size)
{
    const int i = r < FACTOR_OUT ? r : r - FACTOR_OUT;
    const bool is = r < FACTOR_OUT ? i < f->nin : i < f->nout;
    *size = r < FACTOR_OUT ? mc_dtypes[f->dtype].size : f->out_size[i];
    return is ? (size_t)((r < FACTOR_OUT ? f->in[i] : f->out[i]) * f->batch) : 0;
}

/* The matrices to time and compare with are well conditioned, so results differ by little; but orders of
 * rows and vectors may be others that are as good. */
mc_status mc_factor_compare(const struct mc_factor *f, const struct mc_plan *plan, void *const *got,
                            void *const *want)
{
    static const unsigned char unique[FACTOR_NKIND] = {   /* bit i: result i is compared */
        [FACTOR_CHOLESKY] = 1, [FACTOR_TRIANGULAR] = 1, [FACTOR_LU] = 5,   [FACTOR_SOLVE] = 1,
            [FACTOR_INVERSE] = 1,
        [FACTOR_QR] = 3,       [FACTOR_R] = 1,          [FACTOR_EIGH] = 1, [FACTOR_EIGVALSH] = 1,
            [FACTOR_SVD] = 2,
        [FACTOR_SVDVALS] = 1,  [FACTOR_EIG] = 1,        [FACTOR_EIGVALS] = 1,
    };
    const double eps = f->dtype == MC_FLOAT64 ? 0x1p-52 : 0x1p-23,
                 may = eps * 64 * (double)(f->g[0] + f->g[1] + 8);
    for (int i = 0; i < f->nout; i++) {
        size_t size;
        const int r = FACTOR_OUT + i;
        const size_t count = unique[f->kind] >> i & 1 ? mc_factor_operand(f, r, &size) : 0;
        double most = 1;
        for (size_t k = 0; k < count; k++) {
            most = MC_MAX(most, fabs(mc_load_f64(f->dtype, (const char *)want[r] + k * size)));
        }
        for (size_t k = 0; k < count; k++) {
            const double a = mc_load_f64(f->dtype, (const char *)got[r] + k * size),
                         b = mc_load_f64(f->dtype, (const char *)want[r] + k * size);
            if (!(fabs(a - b) <= may * most)) {
                struct mc_str text = { 0 };
                mc_plan_text(plan, &text);
                mc_fail(MC_ECHECK, "%s: element %zu of result %d is %.9g, the reference has %.9g",
                        text.s ? text.s : "factor", k, i, a, b);
                mc_str_free(&text);
                return MC_ECHECK;
            }
        }
    }
    return MC_OK;
}
