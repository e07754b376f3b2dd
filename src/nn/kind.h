/* kind.h: what the tables of kinds share: their fields, written once. */
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

/* dense.c: a bias along `axis` of what the hole `hole` computes (of all but `batch` where untied): the hole
 * bias, which fits there; empty where there is none. */
bool mc_nn_bias(struct mc_nn_build *b, const char *hole, int rank, int axis, int batch);
/* [-1, 0, -1, -1]: how a parameter of the axes that stay lies in the input's rank. */
void mc_nn_let_order(struct mc_nn_build *b, const char *name, int rank, const bool *gone);
/* The sizes of the input's axes that stay, all known. */
bool mc_nn_kept_sizes(struct mc_nn_build *b, int rank, const bool *gone, int64_t *out, int *n);
/* The type of a form as it is filled now. */
mc_node *mc_nn_probe(struct mc_nn_build *b, const char *form);

#endif
