/* index.c */
#include "op/op.h"
const struct mc_op mc_ops_index[1] = { { 0 } };
const int mc_nops_index = 0;
