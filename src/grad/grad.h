/* grad.h: gradients.  A gradient adds nodes to the graph; nothing is special about them afterwards. */
#ifndef MC_GRAD_H
#define MC_GRAD_H

#include "op/op.h"

/* mc_grads of the public header is the whole service; formulas reach it through mc_grad_hook. */
void mc_grad_install(void); /* sets mc_grad_hook; runs by itself when the library is loaded */

#endif
