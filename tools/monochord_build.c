/* monochord_build.c: `monochord build`: a model's functions as a bundle, and a bundle's as a model's.
 *
 * Invariant: the functions of such a bundle are, in this order: the predictor, the tester, with --train the
 * trainer.  Its texts are what a checkpoint has beside its arrays. */
#include "train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREDICTOR, TESTER, TRAINER, FUNCTIONS, MOST_BATCHES = 8 };

const char build_options[] =
    "  MODEL        what monochord train saved, as lenet.npz; or a model without training: a file of layers, or lenet, mlp, ...\n"
    "  -o FILE      the bundle to write, as lenet.mcf\n"
    "  --isa LIST   instruction sets to compile for, the best first: avx512,avx2,sse2; native, what this processor has, by default\n"
    "  --batch N,N  with these numbers of examples solvers are measured, and the fastest ones are in the bundle\n"
    "  --train      a training step too\n"
    "monochord predict FILE and mc_bundle_load take it, without a compiler.\n";

/* Calls the predictor with n examples, so that its solvers are measured. */
static bool measure(struct model *m, mc_function *predict, int64_t n)
{
    int64_t dims[MC_MAX_RANK];
    mc_layer *in = mc_net_layer(m->net, 0);
    const int rank = mc_layer_rank(in);
    memcpy(dims, mc_layer_dims(in), (size_t)rank * sizeof *dims);
    dims[0] = n;
    mc_array *x = must(mc_array_new(mc_node_dtype(mc_layer_node(in, 0)), rank, dims)), *y = NULL;
    const bool good = mc_call(predict, MC_IN(x), MC_OUT(&y)) == MC_OK || (complain_library("build"), false);
    mc_array_unref(&x);
    mc_array_unref(&y);
    return good;
}

static bool write_bundle(struct model *m, const struct words *w, const char *path, const char *isa,
                         const long *batch, int n, bool train)
{
    mc_function *f[FUNCTIONS] = { mc_net_predictor(m->net), mc_net_tester(m->net),
                                  train ? mc_net_trainer(m->net) : NULL };
    bool good = (f[PREDICTOR] && f[TESTER] && (f[TRAINER] || !train)) || (complain_library("build"), false);
    for (int i = 0; i < n && good; i++) {
        good = measure(m, f[PREDICTOR], batch[i]);
    }
    const mc_bundle_note note[] = { { "model", m->text.s },
                                    { "classes", w->classes.s ? w->classes.s : "" },
                                    { "columns", w->columns.s ? w->columns.s : "" },
                                    { "data", w->data.s ? w->data.s : "" } };
    good = good && (mc_bundle_save(&(mc_bundle_spec){ .path = path,
                                                      .nfunction = train ? FUNCTIONS : TRAINER,
                                                      .function = f,
                                                      .isa = isa,
                                                      .nnote = COUNT(note),
                                                      .note = note }) == MC_OK ||
                    (complain_library("build"), false));
    for (int i = 0; i < FUNCTIONS; i++) {
        mc_function_free(f[i]);
    }
    return good;
}

int command_build(int argc, char **argv)
{
    struct model m = { 0 };
    struct words w = { 0 };
    const char *path = NULL, *name = NULL, *isa = NULL;
    long batch[MOST_BATCHES] = { 0 };
    int n = 0;
    bool train = false, good = true;
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--train") == 0) {
            train = true;
        } else if (strcmp(argv[i], "-o") == 0) {
            path = argv[++i];
            good = path || !complain("-o needs the name of a file");
        } else if (strcmp(argv[i], "--isa") == 0) {
            isa = argv[++i];
            good = isa || !complain("--isa needs a list such as avx512,avx2");
        } else if (strcmp(argv[i], "--batch") == 0) {
            good = read_batches("build", argv[++i], batch, MOST_BATCHES, &n);
        } else if (argv[i][0] == '-' || name) {
            good = !complain_word("build", argv[i]);
        } else {
            name = argv[i];
        }
    }
    good = good && ((name && path) || !complain_usage("build"));
    good = good && train_floats() && mc_flag_set("device", "cpu") == MC_OK;
    good = good && (n == 0 || mc_flag_set("plan", "measure") == MC_OK);
    good = good && (is_checkpoint(name) ? checkpoint_model(&m, name, &w)
                                        : model_find(&m.text, name) && model_make(&m, name, 1, NULL, 0));
    good = good && write_bundle(&m, &w, path, isa, batch, n, train);
    if (good) {
        printf("wrote %s\n", path);
    }
    model_free(&m);
    words_free(&w);
    return !good;
}

/* ---- the way back ---- */

bool is_bundle(const char *path)
{
    char *text = mc_bundle_text(path, "model");
    mc_text_free(text);
    return text;
}

static void take_text(struct text *out, const char *path, const char *key)
{
    char *text = mc_bundle_text(path, key);
    if (text) {
        text_addf(out, "%s", text);
    }
    mc_text_free(text);
}

bool bundle_model(struct model *m, const char *path, struct words *w, mc_function **predictor)
{
    mc_function *f[TRAINER];
    take_text(&m->text, path, "model");
    take_text(&w->classes, path, "classes");
    take_text(&w->columns, path, "columns");
    take_text(&w->data, path, "data");
    if (mc_bundle_load(path, TRAINER, f) < TRAINER) {
        return complain("%s", mc_last_error()), false;
    }
    *predictor = f[PREDICTOR];
    m->test = f[TESTER];
    return model_make(m, path, 1, NULL, 0);
}
