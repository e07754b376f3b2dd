/* level_generic.c: factorizations in vectors of 16 bytes, which the compiler lowers to any processor. */
#define LEVEL 128
#define LEVEL_TABLE mc_factor_generic
#include "heavy/factor/cpu/level.h"
