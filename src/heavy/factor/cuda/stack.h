/* stack.h: small matrices on a GPU by kernels of this library, a block of threads for each matrix; one launch
 * is the whole stack.
 *
 * Invariant: a matrix that cannot be treated sets the error words as cusolver.h says. */
#ifndef MC_FACTOR_STACK_H
#define MC_FACTOR_STACK_H

#include "heavy/cuda/cuda.h"
#include "heavy/factor/factor.h"

/* A launch, whose only argument is struct mc_factor_args. */
struct mc_factor_stack_kernel {
    const struct mc_cuda_text *text;
    const char *name;
    void *kernel;
    struct mc_grid grid;
    size_t work;                /* bytes of scratch of a block */
};
/* Fills k without the kernel, for a GPU that has `shared` bytes a block and that many multiprocessors; adds
 * the defines of its text.  false: no kernel takes such matrices. */
bool mc_factor_stack_of(const struct mc_factor *f, size_t shared, int processors,
                        struct mc_factor_stack_kernel *k, struct mc_str *defines);
/* The same for the entered device, with the kernel. */
mc_status mc_factor_stack_new(const struct mc_factor *f, struct mc_factor_stack_kernel *k);
/* Does a kernel take them, and is that the fastest way on the entered device?  host: the host may compute
 * them */
bool mc_factor_stack_takes(const struct mc_factor *f);
bool mc_factor_stack_wins(const struct mc_factor *f, bool host);

#endif
