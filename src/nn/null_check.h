/* null_check.h: whoever did not look whether a net or data were made learns it by an error, not by a crash. */
#ifndef MC_NN_NULL_CHECK_H
#define MC_NN_NULL_CHECK_H

#include <monochord_nn.h>
#include <stdbool.h>

/* Is p what a maker returns that failed?  Then this is an error too; what that maker said may not be the last
 * error any more. */
static inline bool mc_nn_null(const void *p, const char *what)
{
    return !p && mc_fail(MC_EARG, "there is no %s (NULL)", what) < 0;
}

#endif
