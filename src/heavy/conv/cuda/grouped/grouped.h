/* grouped.h: shared by the solvers for groups of several channels: grouped.c, grouped_tensor.c. */
#ifndef MC_CONV_CUDA_GROUPED_H
#define MC_CONV_CUDA_GROUPED_H

#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/grouped/grouped_args.h"

/* Everything but tiles and addresses.  Returns the elements from w to the tap that is read first. */
int64_t mc_grouped_shape(struct mc_grouped_args *a, const struct mc_conv_problem *p);
void mc_grouped_bind(struct mc_grouped_args *a, const struct mc_conv_problem *p, int64_t w_first,
                     void *const *operand);
/* Do x, y and c0 lie at multiples of so many bytes? */
bool mc_grouped_aligned(const struct mc_grouped_args *a, const struct mc_conv_problem *p, uintptr_t unit);

#endif
