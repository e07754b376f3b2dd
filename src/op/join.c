/* join.c */
#include "op/op.h"
const struct mc_op mc_ops_join[1] = { { 0 } };
const int mc_nops_join = 0;
