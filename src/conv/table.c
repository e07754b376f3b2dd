/* table.c: the solvers of convolutions; a new one is a file and a row.
 *
 * Invariant: the last takes every problem. */
#include "conv/solver.h"

const struct mc_solver *const mc_conv_solvers[] = {
    &mc_conv_one,       /* filters of one tap are matrices */
    &mc_conv_fft,       /* spectra of tiles, multiplied */
    &mc_conv_winograd,  /* the same with tiles of 4 and fewer products for 3 by 3 taps */
    &mc_conv_winograd4, /* tiles of 6: fewer still, and a digit less */
    &mc_conv_depth,     /* as many groups as channels */
    &mc_conv_direct,    /* tap by tap, over padded planes */
    &mc_conv_spread,    /* places of y over the taps of x, for inputs */
    &mc_conv_im2col,    /* windows as columns of a matrix product */
    &mc_conv_exchange,  /* taps and places change places: forward by the weights pass, and back */
    &mc_conv_exchange_full, /* forward by the inputs pass, and back */
    &mc_conv_onednn,    /* a library, where there is one */
    &mc_conv_onednn_winograd,
    &mc_conv_relayout,  /* what the others decline for layout or dtype: copied for them */
    &mc_conv_reference, /* any, slowly */
    NULL,
};
