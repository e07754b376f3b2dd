/* cusolver.h: factorizations of large matrices on a GPU by cuSOLVER and cuBLAS.
 *
 * Invariant: a matrix that cannot be treated sets the error words as a kernel of factor.cu does; `bad` and
 * pivot are those of the reference (op/matrix/matrix.h). */
#ifndef MC_FACTOR_CUSOLVER_H
#define MC_FACTOR_CUSOLVER_H

#include "heavy/cuda/cuda.h"
#include "heavy/factor/factor.h"

struct mc_cusolver;
/* Why the libraries do not compute it; NULL: they do. */
const char *mc_cusolver_refuse(const struct mc_factor *f);
/* The device is entered.  NULL: error set. */
struct mc_cusolver *mc_cusolver_new(const struct mc_factor *f);
size_t mc_cusolver_scratch(const struct mc_cusolver *x); /* bytes of a run */
/* operand: dense, as for a plan of mc_factor_family; a result that is not wanted has memory too.  It may wait
 * for the device, and cannot be captured.  err: error words; number: the step in them */
mc_status mc_cusolver_run(const struct mc_cusolver *x, char *const *operand, char *scratch, int64_t *err,
                          int64_t number);
void mc_cusolver_free(struct mc_cusolver *x);
extern const struct mc_cuda_text mc_factor_large_text;

#endif
