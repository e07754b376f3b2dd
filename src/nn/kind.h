/* kind.h: fields and functions that the tables of layer kinds share. */
#ifndef MC_NN_KIND_H
#define MC_NN_KIND_H

#include "nn/nn.h"

#define REGULARIZABLE " trainable regularizable "
#define TRAINABLE " trainable "

#define ACT(preset) { "act", NN_CALL, preset }
#define WEIGHT { "W", NN_CALL, "glorot_uniform" }
#define BIAS { "b", NN_CALL, "0" }, { "untie", NN_BOOL, "false" }
#define LAYERS { "from", NN_LAYERS, "" }
#define END { NULL, NN_TEXT, NULL, NULL }
#define LAST_KIND { NULL, NULL, 0, { END }, NULL, NULL, NULL }

/* dense.c: fills the hole `bias` with a bias that is added to the result of `hole`: along `axis`, or along
 * all axes but `batch` if untied; empty if there is no bias. */
bool mc_nn_bias(struct mc_nn_build *b, const char *hole, int rank, int axis, int batch);
/* [-1, 0, -1, -1]: the dimshuffle that brings a parameter over the remaining axes to the input's rank. */
void mc_nn_let_order(struct mc_nn_build *b, const char *name, int rank, const bool *gone);
/* The sizes of the input's remaining axes, which must be known. */
bool mc_nn_kept_sizes(struct mc_nn_build *b, int rank, const bool *gone, int64_t *out, int *n);
/* The node of a form with the present holes, for its type. */
mc_node *mc_nn_probe(struct mc_nn_build *b, const char *form);

#endif
