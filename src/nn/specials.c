/* specials.c: a layer turned round, and images looked at through a grid that another layer moves.
 *
 * Invariant: coordinates run from -1 to 1 over an image, from the middle of its first cell to that of its last. */
#include "nn/kind.h"

/* What another layer did, backwards: the gradient of its output by its input, given the one here. */
static void inverse(struct mc_nn_build *b)
{
    struct mc_nn_slice of = mc_nn_get(&b->set, "of");
    for (int i = 0; i < b->net->nlayer; i++) {
        mc_layer *l = b->net->layer[i];
        if (mc_nn_same(of, l->name)) {
            if (l->nin != 1) {
                mc_nn_refuse(b, "of", "'%s' has %d inputs; one is possible", l->name, l->nin);
            }
            for (int pass = 0; pass < 2 && l->nin == 1; pass++) {
                mc_nn_hole(&b->holes, pass ? "done_det" : "done", l->var[pass]);
                mc_nn_hole(&b->holes, pass ? "by_det" : "by", l->in[0]->var[pass]);
            }
            return;
        }
    }
    mc_nn_refuse(b, "of", "there is no layer '%.*s'", (int)of.n, of.s);
}

const struct mc_nn_kind mc_nn_specials[] = {
    { "inverse", "another layer backwards: unpooling, for one", 1, { { "of", NN_TEXT, NULL } }, inverse, "Lop($done, $by, $x)", "Lop($done_det, $by_det, $x)" },
    LAST_KIND,
};
