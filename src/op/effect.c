/* effect.c */
#include "op/op.h"
const struct mc_op mc_ops_effect[1] = { { 0 } };
const int mc_nops_effect = 0;
