/* sort.c */
#include "op/op.h"
const struct mc_op mc_ops_sort[1] = { { 0 } };
const int mc_nops_sort = 0;
