/* pool_kind.h: what pooling computes, for C and for kernels' texts. */
#ifndef MC_OP_POOL_KIND_H
#define MC_OP_POOL_KIND_H

enum mc_pool_mode { POOL_MAX, POOL_SUM, POOL_AVERAGE_INC, POOL_AVERAGE_EXC };
/* the third array: none; marks, shaped as y; or x */
enum mc_pool_key { POOL_KEY_NONE, POOL_KEY_MARKS, POOL_KEY_X };

#endif
