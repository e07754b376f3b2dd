/* factor.h: factorizations of stacks of matrices (op/matrix/matrix.h) as a family of solvers.
 *
 *   direct    the texts of op/matrix over the widest vectors of this processor; threads share the stack
 *   blocked   the same on blocks, and products of matrices by the kernels of src/heavy/gemm between them
 *   lapack    a LAPACK library, opened at run time
 *   reference the texts as they stand
 *
 * Operands are dense: operand[0], [1] are the inputs, operand[FACTOR_OUT + i] the results. */
#ifndef MC_FACTOR_H
#define MC_FACTOR_H

#include "op/matrix/matrix.h"
#include "plan/plan.h"

struct mc_factor_problem {
    struct mc_problem base;
    struct mc_factor f;
};
enum { FACTOR_OUT = FACTOR_MOST_IN };
extern const struct mc_family mc_factor_family;
/* Copies f and calls the planner. */
struct mc_plan *mc_factor_plan(const struct mc_factor *f, const struct mc_plan_options *o);

#endif
