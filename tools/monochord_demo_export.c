/* monochord_demo_export.c: the end of `monochord demo`: its LeNet as C that needs no library, compiled with
 * cc, beside the library's own function on the same digits.
 *
 * Invariant: both sides are timed alike: all digits a few times, the least time counts. */
#include "train.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 5, PIXELS = 28 * 28, CLASSES = 10, MOST_CALLS = 64 };

/* The program around the exported file.  It reads pictures from standard input and writes the probabilities
 * of the classes to standard output; its time goes to standard error. */
static const char main_text[] =
    "#include \"lenet.h\"\n"
    "#include <stdio.h>\n"
    "#include <time.h>\n"
    "\n"
    "static struct lenet model;\n"
    "static float x[N * 784], p[N * 10];\n"
    "\n"
    "int main(void)\n"
    "{\n"
    "    double least = 1e9;\n"
    "    if (fread(x, sizeof x, 1, stdin) != 1) {\n"
    "        return 1;\n"
    "    }\n"
    "    lenet_init(&model);\n"
    "    for (int k = 0; k < ROUNDS; k++) {\n"
    "        struct timespec from, to;\n"
    "        clock_gettime(CLOCK_MONOTONIC, &from);\n"
    "        for (int i = 0; i < N; i += BATCH) {\n"
    "            lenet_predict(&model, NULL, x + i * 784, p + i * 10);\n"
    "        }\n"
    "        clock_gettime(CLOCK_MONOTONIC, &to);\n"
    "        double took = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);\n"
    "        least = took < least ? took : least;\n"
    "    }\n"
    "    fprintf(stderr, \"%.9f\\n\", least);\n"
    "    return fwrite(p, sizeof p, 1, stdout) != 1;\n"
    "}\n";

static const char *const files[] = { "lenet.c", "lenet.h", "main.c", "lenet", "x", "p", "seconds" };

struct work {
    struct model m;
    mc_function *predict;
    int64_t batch;
    int calls;
    mc_array *x[MOST_CALLS], *p[MOST_CALLS]; /* (batch, 1, 28, 28); (batch, 10), made by the library */
    char folder[96];
};

static struct text path_of(const struct work *w, const char *name)
{
    struct text t = { 0 };
    text_addf(&t, "%s/%s", w->folder, name);
    return t;
}

/* Whole batches of the test set. */
static bool read_digits(struct work *w, const char *where)
{
    const mc_array *x, *t;
    mc_data *d = mc_data_open(where, MC_TEST);
    w->batch = mc_net_training(w->m.net)->batch;
    mc_batches *b = d ? mc_batches_new(d, &(mc_batch_spec){ .size = w->batch }) : NULL;
    while (b && w->calls < MOST_CALLS && mc_batches_next(b, &x, &t) == 1 && mc_array_dims(x)[0] == w->batch) {
        mc_array *in = model_input(&w->m, x);
        w->x[w->calls++] = must(mc_array_copy(in));
        mc_array_unref(&in);
    }
    mc_batches_free(b);
    mc_data_free(d);
    return w->calls || (complain_library("demo"), false);
}

/* The library's time; below 0: complained. */
static double library_seconds(struct work *w, const char *threads)
{
    double least = INFINITY;
    mc_flag_set("threads", threads);
    for (int k = 0; k < ROUNDS; k++) {
        double start = seconds_now();
        for (int i = 0; i < w->calls; i++) {
            if (mc_call(w->predict, MC_IN(w->x[i]), MC_OUT(&w->p[i])) < 0) {
                return complain_library("demo"), -1;
            }
        }
        least = fmin(least, seconds_now() - start);
    }
    return least;
}

static bool write_file(const struct work *w, const char *name, const void *from, size_t n, const char *mode)
{
    struct text path = path_of(w, name);
    FILE *to = fopen(path.s, mode);
    bool good = to && fwrite(from, 1, n, to) == n;
    good = to && fclose(to) == 0 && good;
    if (!good) {
        complain("cannot write '%s': %s", path.s, strerror(errno));
    }
    text_free(&path);
    return good;
}

/* The folder's files.  False: complained. */
static bool write_files(struct work *w)
{
    struct text c = path_of(w, "lenet.c"), sizes = { 0 };
    text_addf(&sizes, "%s[%lld, 1, 28, 28]", mc_layer_name(mc_net_layer(w->m.net, 0)), (long long)w->batch);
    bool good = mc_export_c(c.s, 1, &(mc_export_function){ w->predict, "predict", sizes.s }) == MC_OK ||
                (complain_library("demo"), false);
    good = good && write_file(w, "main.c", main_text, strlen(main_text), "w");
    for (int i = 0; i < w->calls && good; i++) {
        good = write_file(w, "x", mc_array_data(w->x[i]), (size_t)w->batch * PIXELS * sizeof(float), "a");
    }
    text_free(&c);
    text_free(&sizes);
    return good;
}

/* Compiles and runs the program in the folder.  Its time, and that of compiling; below 0: complained. */
static double exported_seconds(const struct work *w, double *compiling)
{
    struct text command = { 0 }, seconds = path_of(w, "seconds"), said = { 0 };
    text_addf(&command,
              "cd '%s' && cc -std=gnu99 -O3 -march=native -DN=%lld -DBATCH=%lld -DROUNDS=%d main.c lenet.c "
              "-lm -o lenet",
              w->folder, (long long)w->calls * w->batch, (long long)w->batch, ROUNDS);
    double start = seconds_now(), took = -1;
    const bool compiled = system(command.s) == 0;
    *compiling = seconds_now() - start;
    command.n = 0;
    text_addf(&command, "cd '%s' && ./lenet <x >p 2>seconds", w->folder);
    if (!compiled) {
        complain("demo: cc does not compile the exported file");
    } else if (system(command.s) != 0 || !text_read(&said, seconds.s) || sscanf(said.s, "%lf", &took) != 1) {
        complain("demo: the exported program does not run");
    }
    text_free(&command);
    text_free(&seconds);
    text_free(&said);
    return took;
}

static int likeliest(const float *p)
{
    int best = 0;
    for (int k = 1; k < CLASSES; k++) {
        best = p[k] > p[best] ? k : best;
    }
    return best;
}

/* Digits that the program answers otherwise than the library, and how far a probability is off; below 0:
 * complained. */
static int64_t other_answers(const struct work *w, double *off)
{
    struct text path = path_of(w, "p");
    FILE *from = fopen(path.s, "rb");
    int64_t other = 0;
    *off = 0;
    for (int i = 0; i < w->calls && other >= 0; i++) {
        const float *want = mc_array_data(w->p[i]);
        for (int64_t k = 0; k < w->batch; k++, want += CLASSES) {
            float have[CLASSES];
            if (!from || fread(have, sizeof have, 1, from) != 1) {
                complain("demo: cannot read the answers of the exported program");
                other = -1;
                break;
            }
            other += likeliest(have) != likeliest(want);
            for (int j = 0; j < CLASSES; j++) {
                *off = fmax(*off, fabs((double)have[j] - (double)want[j]));
            }
        }
    }
    if (from) {
        fclose(from);
    }
    text_free(&path);
    return other;
}

static double file_size(const struct work *w, const char *name)
{
    struct text path = path_of(w, name);
    struct stat st;
    const double n = stat(path.s, &st) == 0 ? (double)st.st_size : 0;
    text_free(&path);
    return n;
}

static bool compare(struct work *w)
{
    double compiling = 0, off = 0, exported = exported_seconds(w, &compiling);
    char threads[32];
    snprintf(threads, sizeof threads, "%s", mc_flag_get("threads"));
    double alone = exported < 0 ? -1 : library_seconds(w, "1"),
           all = alone < 0 ? -1 : library_seconds(w, threads);
    int64_t other = all < 0 ? -1 : other_answers(w, &off);
    if (other < 0) {
        return false;
    }
    printf("  lenet.c, %.1f MB with the parameters, compiled by cc in %.1f s\n",
           file_size(w, "lenet.c") / 1e6, compiling);
    printf("  %lld test digits, %lld a call: ", (long long)w->calls * w->batch, (long long)w->batch);
    if (other) {
        printf("%lld answers differ from the library's\n", (long long)other);
    } else {
        printf("the same answers as the library's, probabilities within %.0e\n", off);
    }
    printf("  %-29s %.3f s\n", "lenet.c, one thread", exported);
    printf("  %-29s %.3f s\n", "the library, one thread", alone);
    printf("  %-29s %.3f s\n",
           strcmp(threads, "0") ? "the library, flag threads" : "the library, all processors", all);
    return true;
}

bool demo_export(const char *checkpoint, const char *data)
{
    struct work w = { 0 };
    struct words words = { 0 };
    const char *tmp = getenv("TMPDIR");
    printf("\nThe same network as a C file that needs no library\n");
    fflush(stdout);
    if (system("command -v cc >/dev/null 2>&1") != 0) {
        printf("  (there is no C compiler 'cc' here to compile it)\n");
        return true;
    }
    snprintf(w.folder, sizeof w.folder, "%s/monochord-XXXXXX",
             tmp && *tmp && strlen(tmp) < 64 && !strchr(tmp, '\'') ? tmp : "/tmp");
    if (!mkdtemp(w.folder)) {
        return complain("cannot make '%s': %s", w.folder, strerror(errno)), false;
    }
    mc_flag_set("device", "cpu"); /* where exported files run */
    bool good = checkpoint_model(&w.m, checkpoint, &words);
    w.predict = good ? mc_net_predictor(w.m.net) : NULL;
    good = w.predict || (good && (complain_library("demo"), false));
    good = good && read_digits(&w, data) && write_files(&w) && compare(&w);
    for (int i = 0; i < COUNT(files); i++) {
        struct text path = path_of(&w, files[i]);
        unlink(path.s);
        text_free(&path);
    }
    rmdir(w.folder);
    for (int i = 0; i < w.calls; i++) {
        mc_array_unref(&w.x[i]);
        mc_array_unref(&w.p[i]);
    }
    mc_function_free(w.predict);
    model_free(&w.m);
    text_free(&words.classes);
    text_free(&words.columns);
    text_free(&words.data);
    return good;
}
