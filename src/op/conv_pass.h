/* conv_pass.h: the directions of a convolution, for C and for kernels' texts. */
#ifndef MC_OP_CONV_PASS_H
#define MC_OP_CONV_PASS_H

enum mc_conv_pass { CONV_FORWARD, CONV_INPUTS, CONV_WEIGHTS };

#endif
