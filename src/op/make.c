/* make.c */
#include "op/op.h"
const struct mc_op mc_ops_make[1] = { { 0 } };
const int mc_nops_make = 0;
