/* monochord_train_options.c: the words behind `monochord train MODEL`.
 *
 * Invariant: lines that go to the model are memory of the options; all else points into the command line. */
#include "train.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char train_options[] =
    "  MODEL            a file with a layer a line, or lenet, mlp, ...: docs/networks.md\n"
    "  --data WHERE     MNIST, CIFAR, .npz, .safetensors, folders of pictures; digits or digits:N, generated (the "
    "default);\n"
    "                   text:FILE, the characters of a text: docs/networks.md\n"
    "  --temperature T  of the text that is written after each epoch where the data is a text; 0: none (0.8)\n"
    "  --epochs N       the number of epochs, instead of the model's\n"
    "  --batch N        the batch size, instead of the model's\n"
    "  --line TEXT      one more line for the model: \"rule adam rate=0.001\"\n"
    "  --seed N         the seed of initial values, order and augmentation (1)\n"
    "  --save FILE      the checkpoint, saved after each epoch and on Ctrl-C: MODEL.npz, or a name that ends in "
    ".safetensors\n"
    "  --every SECONDS  also save a checkpoint that often; 0: after each batch (60)\n"
    "  --new            start over although there is a checkpoint\n"
    "  --resume         continue from the checkpoint, with the same results as without an interruption\n"
    "  --resume auto    the same if there is a checkpoint, else start\n"
    "  --report FILE    the report; none: no report (report.html)\n"
    "  --curve FILE     the learning curve alone, as SVG\n"
    "  --devices LIST   train on several GPUs: cuda0,cuda1: docs/ranks.md\n"
    "  --ranks HOW      train on the ranks that mpirun (mpi) or torchrun (tcp) starts: docs/ranks.md\n"
    "  --ranks mpi:N    start mpirun with N ranks; if one dies, go on from the checkpoint with those that are left\n"
    "  --parts N        divide each batch into N parts, the same for any number of ranks (one a rank; 8 with "
    "deterministic=strict)\n"
    "  --shard optimizer  divide the states of the update rule among the ranks: less memory, the same results\n"
    "  --quiet          print only errors\n";

static bool whole(const char *option, const char *word, long least, long *out)
{
    char *end = NULL;
    errno = 0;
    *out = word ? strtol(word, &end, 10) : 0;
    if (!word || *end || end == word || errno || *out < least) {
        return complain("%s needs a whole number of at least %ld, not '%s'", option, least, word ? word : ""),
               false;
    }
    return true;
}

/* A number from 0. */
static bool number(const char *option, const char *word, double *out)
{
    char *end = NULL;
    *out = mc_strtod(word, &end);
    return (end != word && !*end && *out >= 0 && *out < 1e6) ||
           (complain("%s needs a number of at least 0, not '%s'", option, word), false);
}

static bool add_line(struct options *o, char *line)
{
    if (o->nlines == COUNT(o->lines)) {
        free(line);
        return complain("more than %d lines", COUNT(o->lines)), false;
    }
    o->lines[o->nlines++] = line;
    return true;
}

/* A number that becomes a line of the model: --epochs 3. */
static bool number_line(struct options *o, const char *option, const char *word)
{
    struct text t = { 0 };
    long n;
    if (!whole(option, word, 1, &n)) {
        return false;
    }
    text_addf(&t, "%s %ld", option + 2, n);
    return add_line(o, t.s);
}

/* models/lenet.txt is saved as lenet.npz here. */
static char *preset_save(const char *model)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model, *dot = strrchr(name, '.');
    struct text t = { 0 };
    text_addf(&t, "%.*s.npz", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
    return t.s;
}

bool options_read(struct options *o, int argc, char **argv)
{
    *o = (struct options){
        .data = "digits", .report = "report.html", .seed = 1, .seconds = 60, .temperature = 0.8
    };
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        static const char *const take[] = { "--data", "--epochs", "--batch",  "--line", "--seed",
                                            "--save", "--every",  "--report", "--curve", "--temperature",
                                            "--ranks", "--parts", "--devices", "--shard" };
        int with = 0;
        for (int k = 0; k < COUNT(take); k++) {
            with |= strcmp(a, take[k]) == 0;
        }
        if (with && !value) {
            return complain("%s needs a value", a), false;
        }
        i += with;
        bool ok = true;
        if (strcmp(a, "--data") == 0) {
            o->data = value;
        } else if (strcmp(a, "--save") == 0) {
            o->save = value;
        } else if (strcmp(a, "--report") == 0) {
            o->report = strcmp(value, "none") ? value : NULL;
        } else if (strcmp(a, "--curve") == 0) {
            o->curve = value;
        } else if (strcmp(a, "--epochs") == 0 || strcmp(a, "--batch") == 0) {
            ok = number_line(o, a, value);
        } else if (strcmp(a, "--line") == 0) {
            ok = add_line(o, must(strdup(value)));
        } else if (strcmp(a, "--seed") == 0) {
            ok = whole(a, value, 0, &o->seed);
        } else if (strcmp(a, "--every") == 0) {
            ok = whole(a, value, 0, &o->seconds);
        } else if (strcmp(a, "--temperature") == 0) {
            ok = number(a, value, &o->temperature);
        } else if (strcmp(a, "--ranks") == 0) {
            o->ranks = value;
        } else if (strcmp(a, "--devices") == 0) {
            o->devices = value;
        } else if (strcmp(a, "--parts") == 0) {
            ok = whole(a, value, 1, &o->parts);
        } else if (strcmp(a, "--shard") == 0) {
            ok = o->shard = strcmp(value, "optimizer") == 0 ||
                            !complain("--shard '%s': only 'optimizer' can be divided among ranks", value);
        } else if (strcmp(a, "--new") == 0) {
            o->anew = true;
        } else if (strcmp(a, "--resume") == 0) {
            o->resume = true;
            o->maybe = value && strcmp(value, "auto") == 0;
            i += o->maybe;
        } else if (strcmp(a, "--quiet") == 0) {
            o->quiet = true;
        } else if (*a == '-' || o->model) {
            ok = !complain_word("train", a);
        } else {
            o->model = a;
        }
        if (!ok) {
            return false;
        }
    }
    if (!o->model) {
        return !complain_usage("train");
    }
    if (o->resume && o->anew) {
        return complain("--resume and --new are both given; give only one of them"), false;
    }
    if (!devices_good(o->devices)) {
        return false;
    }
    if (o->ranks && strncmp(o->ranks, "mpi:", strlen("mpi:")) == 0 && !elastic_ranks(o->ranks)) {
        return complain("--ranks %s: the number of ranks is a whole number from 1 to %d", o->ranks,
                        MOST_RANKS),
               false;
    }
    if (!o->save) {
        o->save = o->preset = preset_save(o->model);
    }
    return true;
}

void options_free(struct options *o)
{
    for (int i = 0; i < o->nlines; i++) {
        free((char *)o->lines[i]);
    }
    free(o->preset);
}
