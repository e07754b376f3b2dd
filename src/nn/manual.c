/* manual.c: prints docs/layers.md from the tables by which lines are read. */
#include "nn/nn.h"

static void kinds(struct mc_nn_text *t)
{
    static const char *const title[] = { "Data and products", "Convolutions", "Pooling", "Several layers as one", "Random while training",
                                         "Normalisation, biases, slopes", "Shapes", "Others", "cuda-convnet and Nervana", "Recurrent" };
    for (int i = 0; mc_nn_kinds[i]; i++) {
        mc_nn_manual_head(t, title[i], "what it is");
        for (const struct mc_nn_kind *k = mc_nn_kinds[i]; k->name; k++) {
            mc_nn_manual_row(t, k->name, k->field, k->doc, false);
        }
    }
}

mc_status mc_nn_manual(FILE *to)
{
    struct mc_nn_text t = { 0 };
    mc_nn_add(&t,
              "# Layers, rules, losses\n\nWritten by `make docs` from the tables in `src/nn`. A line of a "
              "model is a name from this page and its settings, by position or by name; a setting with "
              "`=` has the shown value by default. How lines make a model: `docs/networks.md`.\n");
    mc_nn_manual_settings(&t);
    kinds(&t);
    mc_nn_manual_acts(&t);
    mc_nn_manual_inits(&t);
    mc_nn_manual_rules(&t);
    mc_nn_manual_losses(&t);
    mc_nn_manual_schedules(&t);
    mc_status s = t.bad ? MC_EMEMORY : fputs(t.s, to) < 0 ? mc_fail(MC_EFILE, "manual: cannot write") : MC_OK;
    mc_nn_free(&t);
    return s;
}
