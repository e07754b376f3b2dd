/* monochord_export.c: `monochord export`: a model's functions as one C file. */
#include "train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCHES = 8 };

const char export_options[] =
    "  MODEL         what monochord train saved, as lenet.npz; or a model without training: a file of layers, or lenet, mlp, ...\n"
    "  --c FILE.c    the file to write; its header FILE.h is written beside it\n"
    "  --batch N,N   how many examples a call takes, 1 by default; a function for each number, as FILE_predict_32\n"
    "  --train       a training step too, FILE_train, for the last number of --batch\n"
    "  --isa all     code for AVX2 and AVX-512 too, among which a call chooses for the processor; avx2: up to AVX2\n"
    "  --freestanding  a file that needs no C library but memcpy and memset: float32 alone, no vectors\n"
    "  --measure     times what can do a step, and takes what is fastest on this machine\n"
    "  --parameters FILE  the parameters in this file, which FILE_load reads, not in the C file\n"
    "The file needs libc and libm alone: cc -O3 -march=native -c FILE.c; with -fopenmp calls use several threads\n";

/* Appends "x[32, 784]", a node's name and sizes, with `batch` for its first axis. */
static void add_sizes(struct text *out, const char *name, int rank, const int64_t *dims, long batch)
{
    text_addf(out, "%s%s[", out->n ? ", " : "", name);
    for (int a = 0; a < rank; a++) {
        text_addf(out, a ? ", %lld" : "%lld", a ? (long long)dims[a] : (long long)batch);
    }
    text_addf(out, "]");
}

/* Writes the functions.  False: complained. */
static bool write_functions(struct model *m, mc_export_spec *to, const long *batch, int n, bool train)
{
    mc_export_function f[MOST_BATCHES + 1];
    struct text sizes[MOST_BATCHES + 1] = { { 0 } }, name[MOST_BATCHES] = { { 0 } };
    mc_layer *in = mc_net_layer(m->net, 0);
    const char *input = mc_layer_name(in);
    mc_function *predict = mc_net_predictor(m->net), *step = train ? mc_net_trainer(m->net) : NULL;
    bool good = (predict && (step || !train)) || (complain_library("export"), false);
    for (int i = 0; i < n && good; i++) {
        text_addf(&name[i], n > 1 ? "predict_%ld" : "predict", batch[i]);
        add_sizes(&sizes[i], input, mc_layer_rank(in), mc_layer_dims(in), batch[i]);
        f[i] = (mc_export_function){ predict, name[i].s, sizes[i].s };
    }
    if (train && good) {
        mc_node *t = mc_net_target(m->net);
        add_sizes(&sizes[n], input, mc_layer_rank(in), mc_layer_dims(in), batch[n - 1]);
        add_sizes(&sizes[n], mc_node_name(t), mc_node_rank(t), mc_node_dims(t), batch[n - 1]);
        f[n] = (mc_export_function){ step, "train", sizes[n].s };
    }
    to->nfunction = n + train;
    to->function = f;
    good = good && (mc_export(to) == MC_OK || (complain_library("export"), false));
    to->function = NULL;
    for (int i = 0; i <= n; i++) {
        text_free(&sizes[i]);
    }
    for (int i = 0; i < n; i++) {
        text_free(&name[i]);
    }
    mc_function_free(predict);
    mc_function_free(step);
    return good;
}

int command_export(int argc, char **argv)
{
    struct model m = { 0 };
    struct words w = { 0 };
    mc_export_spec to = { 0 };
    const char *name = NULL;
    long batch[MOST_BATCHES] = { 1 };
    int n = 1;
    bool train = false, good = true;
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--train") == 0) {
            train = true;
        } else if (strcmp(argv[i], "--freestanding") == 0) {
            to.freestanding = 1;
        } else if (strcmp(argv[i], "--measure") == 0) {
            to.measure = 1;
        } else if (strcmp(argv[i], "--c") == 0) {
            to.path = argv[++i];
            good = to.path || !complain("--c needs the name of a file");
        } else if (strcmp(argv[i], "--parameters") == 0) {
            to.parameters = argv[++i];
            good = to.parameters || !complain("--parameters needs the name of a file");
        } else if (strcmp(argv[i], "--isa") == 0) {
            to.isa = argv[++i];
            good = to.isa || !complain("--isa needs a word: avx2, avx512 or all");
        } else if (strcmp(argv[i], "--batch") == 0) {
            good = read_batches("export", argv[++i], batch, MOST_BATCHES, &n);
        } else if (argv[i][0] == '-' || name) {
            good = !complain_word("export", argv[i]);
        } else {
            name = argv[i];
        }
    }
    good = good && ((name && to.path) || !complain_usage("export"));
    good = good && (ends_in(to.path, ".c") ||
                    !complain("--c needs the name of a file that ends in .c, not '%s'", to.path));
    good = good && train_floats() && mc_flag_set("device", "cpu") == MC_OK; /* where exported files run */
    good = good && (is_checkpoint(name) ? checkpoint_model(&m, name, &w)
                                        : model_find(&m.text, name) && model_make(&m, name, 1, NULL, 0));
    good = good && write_functions(&m, &to, batch, n, train);
    if (good) {
        printf("wrote %s and its header; compile with: cc -O3%s -c %s\n", to.path,
               to.isa ? "" : " -march=native", to.path);
    }
    model_free(&m);
    words_free(&w);
    return !good;
}
