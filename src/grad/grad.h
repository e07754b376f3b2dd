/* grad.h: gradients.  A gradient adds nodes to the graph; nothing is special about them afterwards. */
#ifndef MC_GRAD_H
#define MC_GRAD_H

#include "op/op.h"

/* mc_grads of the public header is the whole service, also to formulas; this is within the folder.
 * ZERO stands for a gradient that is connected, but zero: it costs no nodes. */
extern mc_node mc_grad_zero_mark;
#define ZERO (&mc_grad_zero_mark)
/* What n sends to its input k, given its results' gradients; NULL: disconnected.  `none`: all that arrived
 * is zero, so only the connection matters. */
mc_node *mc_grad_send(mc_node *n, int k, mc_node *const *g, bool none);
/* The graph remembers what was sent, by node, gradient and input; under this number of an input, the stable
 * form of a cost. */
enum { SENT_COST = 255 };
mc_node *mc_grad_zeros(mc_node *like);
/* The input of g that is not 0, if g is where(c, u, 0) or where(c, 0, u); else 0.  within: g with c in place
 * of it. */
enum { MC_GRAD_LEVELS = 4 };    /* of such conditions inside each other that are looked at */
int mc_grad_branch(const mc_node *g);
mc_node *mc_grad_within(mc_node *g, int branch, mc_node *c);
/* c in x's dtype, and with x's promises of size 1: without them sums with it would not broadcast. */
mc_node *mc_grad_fit(mc_node *c, mc_node *x);
/* stable.c: *cost becomes the equal node that its gradients by wrt are taken of. */
mc_status mc_grad_stable(mc_graph *g, int n, mc_node *const *wrt, const mc_grad_spec *spec, mc_node **cost);
/* grad.c: link[i] is not NULL if gradients pass from c to wrt[i]. */
mc_status mc_grad_links(mc_node *c, const mc_grad_spec *spec, int n, mc_node *const *wrt, mc_node **link);
/* second_order.c: *grad, which may become an equal node, is a gradient of these; does one of them depend on wrt,
 * perhaps through a gradient whose formula does not? */
mc_status mc_grad_remember(mc_graph *g, mc_node **grad, int n, mc_node *const *of);
mc_status mc_grad_depends(int n, mc_node *const *known, const mc_grad_spec *spec, mc_node *wrt,
                          bool *depends);
/* all there, and of g */
mc_status mc_grad_check(mc_graph *g, const char *what, int n, mc_node *const *nodes);

#endif
