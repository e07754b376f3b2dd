/* size.h: the sizes of a node in terms of sizes of its inputs. */
#ifndef MC_SIZE_H
#define MC_SIZE_H

#include "op/op.h"

/* of n's result `item` along the axis; NULL: the op does not tell */
mc_node *mc_lifted_size(mc_node *n, int item, int axis);
/* the size s, lifted through ops as far towards the inputs as possible */
mc_node *mc_source_of_size(mc_node *s);

#endif
