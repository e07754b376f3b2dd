/* level.h: the texts of op/matrix for both element types at one LEVEL of vectors, as a table.  The includer
 * names it LEVEL_TABLE. */
#include "heavy/factor/solver.h"
#include <math.h>
#include <string.h>
#if LEVEL > 128 || defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include "heavy/portable/vectors.h"

#define OWN_ROWS
#define R float
#define NAME(x) x##_f32
#include "heavy/factor/cpu/rows.h"
#include "op/matrix/all.h"
#include "heavy/factor/cpu/lanes.h"
#include "heavy/factor/cpu/reduce.h"
#include "heavy/factor/cpu/sweeps.h"
#undef R
#undef NAME
#define R double
#define NAME(x) x##_f64
#include "heavy/factor/cpu/rows.h"
#include "op/matrix/all.h"
#include "heavy/factor/cpu/lanes.h"
#include "heavy/factor/cpu/reduce.h"
#include "heavy/factor/cpu/sweeps.h"

#define FOR_ANY(S)                                                                                       \
    static int64_t any_cholesky_##S(void *a, int64_t lda, int64_t n)                                     \
    {                                                                                                    \
        return cholesky_rows_##S(a, lda, n);                                                             \
    }                                                                                                    \
    static int64_t any_triangular_##S(const void *t, int64_t ldt, void *x, int64_t ldx, int64_t n,       \
                                      int64_t k, int trans, int lower, int unit)                         \
    {                                                                                                    \
        return triangular_rows_##S(t, ldt, x, ldx, n, k, trans, lower, unit);                            \
    }                                                                                                    \
    static int64_t any_lu_##S(void *a, int64_t lda, int64_t m, int64_t n, void *rows,                    \
                              int64_t width, int64_t *order)                                             \
    {                                                                                                    \
        return lu_rows_##S(a, lda, m, n, rows, width, order);                                            \
    }                                                                                                    \
    static void any_qr_##S(void *a, int64_t lda, int64_t m, int64_t n, void *t, void *work)              \
    {                                                                                                    \
        qr_rows_##S(a, lda, m, n, t, work);                                                              \
    }                                                                                                    \
    static void any_transposed_##S(void *y, int64_t ldy, const void *x, int64_t ldx, int64_t m, int64_t n) \
    {                                                                                                    \
        transposed_##S(y, ldy, x, ldx, m, n);                                                            \
    }                                                                                                    \
    static void any_point_up_##S(void *x, int64_t stride, int64_t n, void *y, int64_t ny)                \
    {                                                                                                    \
        point_up_##S(x, stride, n, y, ny);                                                               \
    }
FOR_ANY(f32)
FOR_ANY(f64)
#define BOTH(name) { any_##name##_f32, any_##name##_f64 }
static const struct mc_factor_level table = {
    .run = { TABLE(f32), TABLE(f64) }, .cholesky = BOTH(cholesky), .triangular = BOTH(triangular),
        .lu = BOTH(lu),
    .qr = BOTH(qr), .transposed = BOTH(transposed), .point_up = BOTH(point_up),
    .width = { WIDTH_f32, WIDTH_f64 },
    .lanes = { [0][FACTOR_CHOLESKY] = cholesky_lanes_f32, [1][FACTOR_CHOLESKY] = cholesky_lanes_f64,
               [0][FACTOR_SOLVE] = solve_lanes_f32, [1][FACTOR_SOLVE] = solve_lanes_f64 },
    .block_t = { block_t_f32, block_t_f64 },
    .read = { read_matrix_f32, read_matrix_f64 }, .reduce = { reduce_all_f32, reduce_all_f64 },
    .iterate = { iterate_sweeps_f32, iterate_sweeps_f64 }, .finish = { finish_all_f32, finish_all_f64 },
};
const struct mc_factor_level *const LEVEL_TABLE = &table;
