/* all.h: all texts of this folder for one type of element, and TABLE(s), their functions by kind.  The
 * includer defines what rows.h says; NAME(x) is x_f32 or x_f64; OWN_ROWS: it has the functions of rows.h
 * itself. */
#ifndef OWN_ROWS
#include "op/matrix/rows.h"
#endif
#include "op/matrix/dense.h"
#include "op/matrix/cholesky.h"
#include "op/matrix/triangular.h"
#include "op/matrix/lu.h"
#include "op/matrix/qr.h"
#include "op/matrix/eigh.h"
#include "op/matrix/svd.h"
#include "op/matrix/eig.h"

#define RUN(kind, call)                                                                                         \
    TARGET static int64_t NAME(run_##kind)(const int64_t *g, const void *const *in, void *const *out, void *work) \
    {                                                                                                           \
        return call;                                                                                            \
    }
RUN(cholesky, NAME(cholesky)(g, in[0], out[0], work))
RUN(triangular, NAME(triangular)(g, in[0], in[1], out[0], work))
RUN(lu, NAME(lu)(g, in[0], out[0], out[1], out[2], work))
RUN(solve, NAME(solve)(g, in[0], in[1], out[0], work))
RUN(inverse, NAME(solve)(g, in[0], NULL, out[0], work))
RUN(qr, NAME(qr)(g, in[0], out[0], out[1], work))
RUN(r, NAME(qr)(g, in[0], NULL, out[0], work))
RUN(eigh, NAME(eigh)(g, in[0], out[0], out[1], work))
RUN(eigvalsh, NAME(eigh)(g, in[0], out[0], NULL, work))
RUN(svd, NAME(svd)(g, in[0], out[0], out[1], out[2], work))
RUN(svdvals, NAME(svd)(g, in[0], NULL, out[0], NULL, work))
RUN(eig, NAME(eig)(g, in[0], out[0], out[1], work))
RUN(eigvals, NAME(eig)(g, in[0], out[0], NULL, work))
#undef RUN

#ifndef TABLE
#define TABLE(s)                                                                                                \
    {                                                                                                           \
        [FACTOR_CHOLESKY] = run_cholesky_##s, [FACTOR_TRIANGULAR] = run_triangular_##s, [FACTOR_LU] = run_lu_##s, \
        [FACTOR_SOLVE] = run_solve_##s, [FACTOR_INVERSE] = run_inverse_##s, [FACTOR_QR] = run_qr_##s,           \
        [FACTOR_R] = run_r_##s, [FACTOR_EIGH] = run_eigh_##s, [FACTOR_EIGVALSH] = run_eigvalsh_##s,             \
        [FACTOR_SVD] = run_svd_##s, [FACTOR_SVDVALS] = run_svdvals_##s, [FACTOR_EIG] = run_eig_##s,             \
        [FACTOR_EIGVALS] = run_eigvals_##s                                                                      \
    }
#endif
