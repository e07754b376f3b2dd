/* random.c */
#include "op/op.h"
const struct mc_op mc_ops_random[1] = { { 0 } };
const int mc_nops_random = 0;
