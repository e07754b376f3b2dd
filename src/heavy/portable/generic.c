/* generic.c: portable sums in vectors of 16 bytes, which the compiler lowers to any processor. */
#define LEVEL 128
#define LEVEL_TABLE mc_portable_generic
#include "heavy/portable/level.h"
