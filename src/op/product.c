/* product.c */
#include "op/op.h"
const struct mc_op mc_ops_product[1] = { { 0 } };
const int mc_nops_product = 0;
