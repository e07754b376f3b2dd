/* call.h: what the functions of monochord_ops.h have in common: any op by name, on nfirst tensors and n more.
 * The build makes their bodies, which are calls of these two: cmake/public.cmake. */
#ifndef MC_CALL_H
#define MC_CALL_H

#include "op/op.h"

/* g may be NULL if a tensor is given: its graph is the one.  ap: the arguments of how. */
mc_node *mc_call_plain(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                       mc_node *const *more);
mc_node *mc_call_how(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                     mc_node *const *more, const char *how, va_list ap);

#endif
