/* null_check.h: a NULL net or data, from a constructor that failed, gives an error and not a crash. */
#ifndef MC_NN_NULL_CHECK_H
#define MC_NN_NULL_CHECK_H

#include <monochord_nn.h>
#include <stdbool.h>

/* Is p NULL? Then sets an error: that of the constructor may no longer be the last one. */
static inline bool mc_nn_null(const void *p, const char *what)
{
    return !p && mc_fail(MC_EARG, "the %s is NULL", what) < 0;
}

#endif
