/* pool_kind.h: what pooling computes, for C and for kernels' texts. */
#ifndef MC_OP_POOL_KIND_H
#define MC_OP_POOL_KIND_H

enum mc_pool_mode { POOL_MAX, POOL_SUM, POOL_AVERAGE_INC, POOL_AVERAGE_EXC };
/* the third array: none; marks, shaped as y; x; or bits, shaped as y, which say for each cell of a window
 * whether it equals the maximum */
enum mc_pool_key { POOL_KEY_NONE, POOL_KEY_MARKS, POOL_KEY_X, POOL_KEY_BITS };
enum { POOL_BITS = 8 }; /* the most cells of a window that has bits */

#endif
