/* call.h: calls any op by name, on nfirst tensors and n more. The bodies of the functions of
 * monochord_ops.h call these two; cmake/public.cmake generates them. */
#ifndef MC_CALL_H
#define MC_CALL_H

#include "op/op.h"

/* g may be NULL if a tensor is given: its graph is used. ap: the attributes that `how` describes. */
mc_node *mc_call_plain(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                       mc_node *const *more);
mc_node *mc_call_how(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                     mc_node *const *more, const char *how, va_list ap);

#endif
