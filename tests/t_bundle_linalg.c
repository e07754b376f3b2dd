/* t_bundle_linalg.c: functions with factorizations beside what is loaded from their files, bit for bit. */
#include "bundle_formulas.h"

TEST(factorizations_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x",
          .lines = "a = dot(x.T, x) + cast(eye(size(x, 1)), x.dtype)",
          .outputs =
              "cholesky(a), solve(a, x.T), matrix_inverse(a), det(a), qr(x)[1], eigh(a)[1], svd(x)[0]" },
        { .inputs = "x",
          .outputs = "svdvals(x), lu(x)[0], lu_factor(x)[1], pinv(x), expm(dot(x.T, x) / 100)" },
        { .inputs = "x",
          .lines = "l = cholesky(dot(W, W.T) + cast(eye(3), W.dtype))\ncost = sum(log(diag(l))) + "
                   "sum(sqr(solve_triangular(l, "
                   "W, lower=True)))",
          .outputs = "cost",
          .updates = "W = W - 0.01 * grad(cost, W)" });
}
