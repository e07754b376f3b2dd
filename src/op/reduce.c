/* reduce.c */
#include "op/op.h"
const struct mc_op mc_ops_reduce[1] = { { 0 } };
const int mc_nops_reduce = 0;
