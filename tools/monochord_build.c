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
    "  --gpu LIST   functions for a GPU instead, compiled for these: sm_90,sm_80; native, the one of this machine\n"
    "  --batch N,N  with these numbers of examples solvers are measured, and the fastest ones are in the bundle;\n"
    "               on a GPU the bundle has kernels for these numbers (without --batch for 1)\n"
    "  --train      a training step too\n"
    "monochord predict FILE and mc_bundle_load take it, without a compiler.\n";

/* What the options ask for. */
struct build {
    const char *path, *isa, *gpu;
    long batch[MOST_BATCHES];
    int n;
    bool train;
};

/* Zeros of the dtype and the sizes of a node, for n examples. */
static mc_array *zeros(const mc_node *node, int rank, const int64_t *sizes, int64_t n)
{
    int64_t dims[MC_MAX_RANK];
    memcpy(dims, sizes, (size_t)rank * sizeof *dims);
    dims[0] = n;
    return must(mc_array_new(mc_node_dtype(node), rank, dims));
}

/* Calls a function with n examples, so that its solvers are measured, and its kernels known.  It makes no
 * updates. */
static bool call_once(struct model *m, mc_function *f, int64_t n)
{
    mc_layer *in = mc_net_layer(m->net, 0);
    const mc_node *target = mc_net_target(m->net);
    mc_function *quiet = must(mc_function_copy(f, 0));
    mc_array *x = zeros(mc_layer_node(in, 0), mc_layer_rank(in), mc_layer_dims(in), n),
             *t = zeros(target, mc_node_rank(target), mc_node_dims(target), n), *y = NULL;
    const mc_arg args[] = { mc_arg_array(x), mc_arg_array(t) }, out = mc_arg_slot(&y);
    const bool good = mc_call_args(quiet, mc_function_ninputs(f), args, 1, &out) == MC_OK ||
                      (complain_library("build"), false);
    mc_array_unref(&x);
    mc_array_unref(&t);
    mc_array_unref(&y);
    mc_function_free(quiet);
    return good;
}

/* The predictor at each number of examples; for a GPU, whose bundles have the kernels of calls, all functions. */
static bool call_all(struct model *m, const struct build *b, mc_function **f)
{
    bool good = true;
    for (int i = 0; i < (b->n || !b->gpu ? b->n : 1) && good; i++) {
        for (int k = 0; k < (b->gpu ? FUNCTIONS : 1) && good; k++) {
            good = !f[k] || call_once(m, f[k], b->n ? b->batch[i] : 1);
        }
    }
    return good;
}

static bool write_bundle(struct model *m, const struct words *w, const struct build *b)
{
    const bool train = b->train;
    mc_function *f[FUNCTIONS] = { mc_net_predictor(m->net), mc_net_tester(m->net),
                                  train ? mc_net_trainer(m->net) : NULL };
    bool good = (f[PREDICTOR] && f[TESTER] && (f[TRAINER] || !train)) || (complain_library("build"), false);
    good = good && call_all(m, b, f);
    const mc_bundle_note note[] = { { "model", m->text.s },
                                    { "classes", w->classes.s ? w->classes.s : "" },
                                    { "columns", w->columns.s ? w->columns.s : "" },
                                    { "data", w->data.s ? w->data.s : "" } };
    good = good && (mc_bundle_save(&(mc_bundle_spec){ .path = b->path,
                                                      .nfunction = train ? FUNCTIONS : TRAINER,
                                                      .function = f,
                                                      .isa = b->isa,
                                                      .gpu = b->gpu,
                                                      .nnote = COUNT(note),
                                                      .note = note }) == MC_OK ||
                    (complain_library("build"), false));
    for (int i = 0; i < FUNCTIONS; i++) {
        mc_function_free(f[i]);
    }
    return good;
}

/* A GPU that the flags name stays. */
static bool build_device(const char *gpu)
{
    const char *device = mc_flag_get("device");
    return (gpu && strncmp(device, "cuda", 4) == 0) || mc_flag_set("device", gpu ? "cuda" : "cpu") == MC_OK ||
           (complain_library("build"), false);
}

int command_build(int argc, char **argv)
{
    struct model m = { 0 };
    struct words w = { 0 };
    struct build b = { 0 };
    const char *name = NULL;
    bool good = true;
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--train") == 0) {
            b.train = true;
        } else if (strcmp(argv[i], "-o") == 0) {
            b.path = argv[++i];
            good = b.path || !complain("-o needs the name of a file");
        } else if (strcmp(argv[i], "--isa") == 0) {
            b.isa = argv[++i];
            good = b.isa || !complain("--isa needs a list such as avx512,avx2");
        } else if (strcmp(argv[i], "--gpu") == 0) {
            b.gpu = argv[++i];
            good = b.gpu || !complain("--gpu needs a list such as sm_90,sm_80, or native");
        } else if (strcmp(argv[i], "--batch") == 0) {
            good = read_batches("build", argv[++i], b.batch, MOST_BATCHES, &b.n);
        } else if (argv[i][0] == '-' || name) {
            good = !complain_word("build", argv[i]);
        } else {
            name = argv[i];
        }
    }
    good = good && ((name && b.path) || !complain_usage("build"));
    good = good && train_floats() && build_device(b.gpu);
    good = good && (b.n == 0 || mc_flag_set("plan", "measure") == MC_OK);
    good = good && (is_checkpoint(name) ? checkpoint_model(&m, name, &w)
                                        : model_find(&m.text, name) && model_make(&m, name, 1, NULL, 0));
    good = good && write_bundle(&m, &w, &b);
    if (good) {
        printf("wrote %s\n", b.path);
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
