/* rows_args.h: constants of the kernels that build on rows.cu. */
#ifndef MC_CONV_CUDA_SMALL_CHANNELS_ROWS_ARGS_H
#define MC_CONV_CUDA_SMALL_CHANNELS_ROWS_ARGS_H

enum { ROWS_P = 4, ROWS_WARPS = 8 };    /* positions of a thread; warps of a block for weights */

#endif
