/* grad.h: gradients.  A gradient adds nodes to the graph; nothing is special about them afterwards. */
#ifndef MC_GRAD_H
#define MC_GRAD_H

#include "op/op.h"

/* The public function mc_grads is the whole service, also for formulas; the declarations below are for
 * this folder. ZERO stands for a gradient that is connected but zero; it costs no nodes. */
extern mc_node mc_grad_zero_mark;
#define ZERO (&mc_grad_zero_mark)
/* The contribution of n to the gradient of its input k, given the gradients of its results; NULL:
 * disconnected. `none`: all of these are zero, so only the connection matters. */
mc_node *mc_grad_send(mc_node *n, int k, mc_node *const *g, bool none);
/* The graph caches contributions by node, gradient and input. This number in place of an input is the key
 * of the stable form of a cost. */
enum { SENT_COST = 255 };
mc_node *mc_grad_zeros(mc_node *like);
/* branch: if g is where(c, u, 0) or where(c, 0, u), the index of u among its inputs; else 0. within: g
 * with c in place of u. */
enum { MC_GRAD_LEVELS = 4 };    /* the greatest depth of nested conditions that is entered */
int mc_grad_branch(const mc_node *g);
mc_node *mc_grad_within(mc_node *g, int branch, mc_node *c);
/* c in the dtype of x and with its promises of size 1, without which sums with it would not broadcast. */
mc_node *mc_grad_fit(mc_node *c, mc_node *x);
/* stable.c: replaces *cost by its stable form, of which the gradients by wrt are taken. */
mc_status mc_grad_stable(mc_graph *g, int n, mc_node *const *wrt, const mc_grad_spec *spec, mc_node **cost);
/* grad.c: link[i] is not NULL if gradients pass from c to wrt[i]. */
mc_status mc_grad_links(mc_node *c, const mc_grad_spec *spec, int n, mc_node *const *wrt, mc_node **link);
/* second_order.c: remember records that *grad is a gradient of the nodes `of`; *grad may be replaced by an
 * equal node. depends: does a known node depend on wrt, if only through a gradient whose formula does not? */
mc_status mc_grad_remember(mc_graph *g, mc_node **grad, int n, mc_node *const *of);
mc_status mc_grad_depends(int n, mc_node *const *known, const mc_grad_spec *spec, mc_node *wrt,
                          bool *depends);
/* Checks that all nodes exist and belong to g. */
mc_status mc_grad_check(mc_graph *g, const char *what, int n, mc_node *const *nodes);

#endif
