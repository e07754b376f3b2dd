/* t_bundle_ctc.c: functions with ctc_loss beside what is loaded from their files, bit for bit. */
#include "bundle_formulas.h"

TEST(ctc_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x",
          .lines = "a = dimshuffle(stack(x, x * 2, 1 - x), [1, 0, 2])\n"
                   "k = sum(ctc_loss(a, [[1, 2], [-1, 1], [-1, -1]], zero_infinity=True))",
          .outputs =
              "ctc_loss(a, [[1, 1], [2, 1], [2, -1]], [1, 2, 0]), grad(k, x), grad(sum(sqr(grad(k, x))), "
              "x)" },
        { .inputs = "x",
          .lines = "k = sum(ctc_loss((x[:, :3] * sum(W))[:, None, :], [[1]], zero_infinity=True))",
          .outputs = "k",
          .updates = "W = W - 0.01 * grad(k, W)" });
}
