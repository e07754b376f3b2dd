/* none.h: whoever did not look whether a net or data were made learns it by an error, not by a crash. */
#ifndef MC_NN_NONE_H
#define MC_NN_NONE_H

#include <monochord_nn.h>
#include <stdbool.h>

/* Is p what a maker returns that failed?  Then this is an error too, with what that maker said. */
static inline bool mc_nn_none(const void *p, const char *what)
{
    return !p && mc_fail(MC_EARG, "there is no %s%s%s", what, *mc_last_error() ? ": " : "", mc_last_error()) < 0;
}

#endif
