/* monochord.c: the program monochord: one table of commands.
 *
 * Invariant: it stands on the public header alone, as any user's program does. */
#include "tool.h"
#include <monochord_nn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int command_info(int argc, char **argv);
static int command_wisdom(int argc, char **argv);
static int command_docs(int argc, char **argv);
static int command_ops(int argc, char **argv);
static int command_help(int argc, char **argv);

static const struct command commands[] = {
    { "info",   "[--flags | FILE]",     "processor, compiler, libraries found, cache; with --flags every flag; of a .npz or .safetensors file its arrays, of a bundle its functions", command_info },
    { "run",    "FILE [OPTION ...]",    "compile a text-form program, show its passes, call it", command_run, run_options },
    { "train",  "MODEL [OPTION ...]",   "train a model of layers, a line each, with checkpoints and a report", command_train, train_options },
    { "data",   "WHERE [SHEET.png]",    "describe data, and write a sheet of its pictures", command_data },
    { "predict", "FILE [OPTION ...] [PICTURE ...]", "apply a trained model to pictures, tables or data", command_predict, predict_options },
    { "build", "MODEL -o FILE [OPTION ...]", "write a model as a bundle, which loads without a compiler", command_build, build_options },
    { "export", "MODEL --c FILE.c [OPTION ...]", "write a model as a C file that needs no library", command_export, export_options },
    { "demo",   "[PAGE]",               "train LeNet on generated digits and export it as C, time the tutorial's loop against NumPy; writes report.html", command_demo },
    { "bench",  "SUITE [OPTION ...]", "run benchmarks; without SUITE list the suites", command_bench,
      "  --only TEXT          only the cases whose names contain TEXT\n"
      "  --shard SEED:COUNT   so many layers of the suite zoo, drawn by the seed, a share of each class\n"
      "  --list               only name the layers of the suite zoo\n"
      "  --json               print one object a line\n" },
    { "wisdom", "show|clear|export FILE|import FILE|picture FILE", "show, clear, export or import the results of timing on this machine", command_wisdom },
    { "ops",    "[WORD ...]",           "list the ops, or those whose name or description has each word", command_ops },
    { "docs",   "DIR",                  "write DIR/ops.md, DIR/flags.md, DIR/layers.md and DIR/api/ops-*.md from the tables", command_docs },
    { "help",   "[COMMAND]",            "this list; or one command with its options, as COMMAND --help", command_help },
};

/* ---- shared ---- */

int complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("monochord: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return 1;
}

bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

static bool has(const long *batch, int n, long value)
{
    for (int i = 0; i < n; i++) {
        if (batch[i] == value) {
            return true;
        }
    }
    return false;
}

bool read_batches(const char *command, const char *text, long *batch, int most, int *n)
{
    *n = 0;
    while (text && *n < most) {
        char *end;
        batch[*n] = strtol(text, &end, 10);
        if (end == text || batch[*n] < 1 || (*end && *end != ',')) {
            break;
        }
        if (has(batch, *n, batch[*n])) {
            return complain("%s: --batch: %ld is given twice", command, batch[*n]), false;
        }
        (*n)++;
        if (!*end) {
            return true;
        }
        text = end + 1;
    }
    return complain("%s: --batch needs numbers such as 1,32, at most %d", command, most), false;
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COUNT(commands); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static void print_usage(const struct command *c, FILE *to)
{
    fprintf(to, "usage: monochord %s %s\n      %s\n%s", c->name, c->usage, c->doc,
            c->options ? c->options : "");
}

int complain_usage(const char *command)
{
    print_usage(find_command(command), stderr);
    return 1;
}

/* The option of a command that is spelt nearly so; its text names them all, as "--size NAME".  NULL: none. */
static const char *near_option(const struct command *c, const char *word)
{
    enum { MOST_OPTIONS = 32 };
    static char text[2048];
    const char *names[MOST_OPTIONS];
    size_t n = 0;
    snprintf(text, sizeof text, "%s %s", c->usage, c->options ? c->options : "");
    for (char *next = NULL, *w = strtok_r(text, " ,;[]\n", &next); w && n < MOST_OPTIONS;
         w = strtok_r(NULL, " ,;[]\n", &next)) {
        if (strncmp(w, "--", 2) == 0) {
            names[n++] = w;
        }
    }
    return mc_near_miss(word, names, n);
}

int complain_word(const char *command, const char *word)
{
    const char *near = near_option(find_command(command), word);
    return near ? complain("%s: '%s' is not understood; did you mean '%s'?", command, word, near)
                : complain("%s: '%s' is not understood; monochord help %s", command, word, command);
}

void complain_slow(const mc_function *f)
{
    static bool told;
    if (!told && *mc_function_warning(f)) {
        complain("%s", mc_function_warning(f));
        told = true;
    }
}

int complain_library(const char *what)
{
    return complain("%s: %s", what, mc_last_error());
}

void *must(void *p)
{
    if (!p) {
        complain("%s", *mc_last_error() ? mc_last_error() : "out of memory");
        exit(1);
    }
    return p;
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void text_add(struct text *t, const char *s, size_t n)
{
    if (t->n + n + 1 > t->cap) {
        t->cap = 2 * (t->n + n + 1);
        t->s = must(realloc(t->s, t->cap));
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *s = must(malloc((size_t)n + 1));
    vsnprintf(s, (size_t)n + 1, fmt, again);
    text_add(t, s, (size_t)n);
    free(s);
    va_end(again);
    va_end(ap);
}

bool text_read(struct text *t, const char *path)
{
    char block[4096];
    bool standard = strcmp(path, "-") == 0;
    FILE *from = standard ? stdin : fopen(path, "r");
    size_t n;
    text_add(t, "", 0);
    while (from && (n = fread(block, 1, sizeof block, from)) > 0) {
        text_add(t, block, n);
    }
    bool good = from && !ferror(from);
    if (!good) {
        complain("cannot read '%s': %s", path, strerror(errno));
    }
    if (from && !standard) {
        fclose(from);
    }
    return good;
}

void text_free(struct text *t)
{
    free(t->s);
    *t = (struct text){ 0 };
}

double random_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

void random_fill(mc_array *a, uint64_t *state, int64_t below)
{
    int64_t n = mc_array_size(a);
    bool whole = mc_array_dtype(a) < MC_FLOAT16;
    int64_t flat = n;
    mc_array *row = must(mc_array_reshape(a, 1, &flat)); /* a is new, so this is a view */
    for (int64_t i = 0; i < n; i++) {
        double u = random_next(state);
        switch (mc_array_dtype(a)) {
        case MC_FLOAT32: ((float *)mc_array_data(row))[i] = (float)u * 0.99999994f; break;
        case MC_FLOAT64: ((double *)mc_array_data(row))[i] = u; break;
        default: mc_array_set(row, &i, whole ? (double)(int64_t)(u * (double)below) : u);
        }
    }
    mc_array_unref(&row);
}

/* ---- timing ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double batch(bool (*once)(void *arg), void *arg, long calls)
{
    double start = seconds_now();
    for (long i = 0; i < calls; i++) {
        if (!once(arg)) {
            return -1;
        }
    }
    if (mc_synchronize() < 0) { /* calls whose results stay on a device return before it is done */
        return -1;
    }
    return (seconds_now() - start) / (double)calls;
}

/* Seconds a batch takes at least: the wait at its end takes microseconds on a GPU. */
static double grain(void)
{
    return strcmp(mc_flag_get("device"), "cpu") != 0 ? 2e-3 : 100e-6;
}

enum { LEAST = 3, FEWEST = 5, MOST = 2000, ASKED = 3 };

/* How many calls make a batch of at least a grain; negative: one failed. */
static long calls_a_batch(bool (*once)(void *arg), void *arg)
{
    double one = batch(once, arg, 1);
    long calls = 1;
    for (int i = 0; i < ASKED; i++) { /* the first calls are slower: how many are enough is asked again */
        while (one >= 0 && (double)calls * one < grain()) {
            one = batch(once, arg, calls *= 2);
        }
        one = one < 0 ? one : batch(once, arg, calls);
    }
    return one < 0 ? -1 : calls;
}

struct timing time_summary(double *of, int n)
{
    qsort(of, (size_t)n, sizeof *of, by_size);
    return (struct timing){ of[n / 2], of[0], of[n - 1], n, 0 };
}

bool time_turns(bool (*once)(void *arg), int n, void *const arg[], double seconds, struct timing t[])
{
    double sample[MOST_TURNS][MOST];
    long calls[MOST_TURNS];
    int taken = 0;
    bool good = true;
    memset(t, 0, (size_t)n * sizeof *t);
    for (int i = 0; i < n && good; i++) {
        calls[i] = calls_a_batch(once, arg[i]);
        good = calls[i] > 0;
    }
    const double start = seconds_now();
    for (double past = 0; good && taken < MOST &&
                          (taken < LEAST || past < n * seconds || (taken < FEWEST && past < 3 * n * seconds));
         past = seconds_now() - start) {
        for (int i = 0; i < n && good; i++) {
            sample[i][taken] = batch(once, arg[i], calls[i]);
            good = sample[i][taken] >= 0;
        }
        taken++;
    }
    for (int i = n; i-- > 0 && good;) { /* the first's turns are in order until the last */
        double ratio[MOST];
        for (int k = 0; k < taken; k++) {
            ratio[k] = sample[0][k] / sample[i][k];
        }
        t[i] = time_summary(sample[i], taken);
        t[i].calls = taken * calls[i];
        t[i].beside = i ? time_summary(ratio, taken).median : 0;
    }
    return good;
}

struct timing time_calls(bool (*once)(void *arg), void *arg, double seconds)
{
    struct timing t;
    time_turns(once, 1, &arg, seconds, &t);
    return t;
}

/* ---- commands ---- */

static void print_array(const char *name, const mc_array *x)
{
    printf("%-32s %-8s (", name, mc_dtype_name(mc_array_dtype(x)));
    for (int k = 0; k < mc_array_rank(x); k++) {
        printf(k ? ", %lld" : "%lld", (long long)mc_array_dims(x)[k]);
    }
    printf(mc_array_rank(x) == 1 ? ",)\n" : ")\n");
}

/* Each function with its inputs and results, then the variables of all, a line each. */
static int list_functions(const char *path)
{
    enum { MOST_FUNCTIONS = 16 };
    mc_function *f[MOST_FUNCTIONS];
    const double start = seconds_now();
    const int n = mc_bundle_load(path, MOST_FUNCTIONS, f);
    if (n < 0) {
        return complain("%s", mc_last_error());
    }
    printf("%d functions, loaded in %.3f ms\n", n, (seconds_now() - start) * 1e3);
    for (int i = 0; i < n && i < MOST_FUNCTIONS; i++) {
        printf("%s(", mc_function_name(f[i]));
        for (int k = 0; k < mc_function_ninputs(f[i]); k++) {
            printf(k ? ", %s" : "%s", mc_function_input_name(f[i], k));
        }
        printf(") ->");
        for (int k = 0; k < mc_function_noutputs(f[i]); k++) {
            const char *name = mc_function_output_name(f[i], k);
            printf(k ? ", %s" : " %s", *name ? name : "?");
        }
        printf("; %d steps\n", mc_function_nsteps(f[i]));
    }
    for (int i = 0; i < n && i < MOST_FUNCTIONS; i++) {
        for (int k = 0; k < mc_function_nshared(f[i]); k++) {
            mc_shared *s = mc_function_shared(f[i], k);
            bool seen = false;
            for (int j = 0; j < i && !seen; j++) {
                seen = mc_function_shared_named(f[j], mc_shared_name(s)) == s;
            }
            mc_array *x = seen ? NULL : mc_shared_borrow(s);
            if (x) {
                print_array(mc_shared_name(s), x);
            }
            mc_array_unref(&x);
        }
    }
    for (int i = 0; i < n && i < MOST_FUNCTIONS; i++) {
        mc_function_free(f[i]);
    }
    return 0;
}

static bool has_magic(const char *path)
{
    char magic[8] = "";
    FILE *f = fopen(path, "rb");
    const bool has = f && fread(magic, 1, sizeof magic, f) == sizeof magic &&
                     memcmp(magic, "MCBUNDLE", 8) == 0;
    if (f) {
        fclose(f);
    }
    return has;
}

/* Name, dtype and shape of each array, a line each. */
static int list_arrays(const char *path)
{
    mc_archive *a = mc_archive_open(path);
    bool good = a != NULL;
    if (!good && mc_last_status() == MC_EFILE) {
        return complain_word("info", path); /* no file, so a word that means nothing */
    }
    for (int i = 0; good && i < mc_archive_count(a); i++) {
        mc_array *x = mc_archive_load(a, mc_archive_name(a, i));
        good = x != NULL;
        if (good) {
            print_array(mc_archive_name(a, i), x);
        }
        mc_array_unref(&x);
    }
    mc_archive_close(a);
    return good ? 0 : complain("%s", mc_last_error());
}

static int command_info(int argc, char **argv)
{
    bool flags = argc == 2 && strcmp(argv[1], "--flags") == 0;
    if (argc == 2 && *argv[1] != '-') {
        return has_magic(argv[1]) ? list_functions(argv[1]) : list_arrays(argv[1]);
    }
    if (argc > 1 && !flags) {
        return complain_word("info", argv[argc - 1]);
    }
    return (flags ? mc_flags_print(stdout) : mc_info(stdout)) < 0 ? complain_library("info") : 0;
}

static int export_wisdom(const char *path)
{
    FILE *to = fopen(path, "w");
    if (!to) {
        return complain("cannot write '%s': %s", path, strerror(errno));
    }
    mc_status s = mc_wisdom_print(to);
    return fclose(to) != 0 ? complain("cannot write '%s': %s", path, strerror(errno))
           : s < 0         ? complain_library("wisdom")
                           : 0;
}

static int command_wisdom(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    mc_status s;
    if (argc == 2 && strcmp(what, "show") == 0) {
        s = mc_wisdom_print(stdout);
    } else if (argc == 2 && strcmp(what, "clear") == 0) {
        s = mc_wisdom_clear();
    } else if (argc == 3 && strcmp(what, "export") == 0) {
        return export_wisdom(argv[2]);
    } else if (argc == 3 && strcmp(what, "import") == 0) {
        s = mc_wisdom_import(argv[2]);
    } else if (argc == 3 && strcmp(what, "picture") == 0) {
        return wisdom_picture(argv[2]);
    } else {
        if (argc > 1) {
            complain("wisdom: '%s%s%s' is not understood", what, argc > 2 ? " " : "",
                     argc > 2 ? argv[2] : "");
        }
        return complain_usage("wisdom");
    }
    return s < 0 ? complain_library("wisdom") : 0;
}

static int write_manual(const char *dir, const char *name, mc_status (*print)(FILE *to))
{
    struct text path = { 0 };
    text_addf(&path, "%s/%s", dir, name);
    FILE *to = fopen(path.s, "w");
    bool good = to && print(to) >= 0;
    good = to && fclose(to) == 0 && good;
    if (good) {
        printf("wrote %s\n", path.s);
    } else {
        complain("cannot write '%s': %s", path.s, to ? mc_last_error() : strerror(errno));
    }
    text_free(&path);
    return !good;
}

/* A page for each family of ops, in a folder of their own. */
static int write_pages(const char *dir)
{
    struct text path = { 0 };
    text_addf(&path, "%s/api", dir);
    bool good = mkdir(path.s, 0777) == 0 || errno == EEXIST;
    if (!good) {
        complain("cannot make '%s': %s", path.s, strerror(errno));
    } else if (mc_ops_pages(path.s) < 0) {
        good = false;
        complain_library("docs");
    } else {
        printf("wrote %s/ops-*.md\n", path.s);
    }
    text_free(&path);
    return !good;
}

static int command_docs(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        return complain_usage("docs");
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        return complain("cannot make '%s': %s", argv[1], strerror(errno));
    }
    return write_manual(argv[1], "ops.md", mc_ops_manual) ||
           write_manual(argv[1], "flags.md", mc_flags_manual) ||
           write_manual(argv[1], "layers.md", mc_nn_manual) || write_pages(argv[1]);
}

static int command_ops(int argc, char **argv)
{
    int shown = 0;
    for (int i = 0; i < mc_op_count(); i++) {
        const char *name = mc_op_name(i), *doc = mc_op_doc(i);
        bool want = doc && *doc;
        for (int k = 1; k < argc && want; k++) {
            want = strstr(name, argv[k]) || strstr(doc, argv[k]);
        }
        if (want) {
            printf("%-28s %s\n", name, doc);
            shown++;
        }
    }
    return shown ? 0
                 : complain("there is no such op: none has '%s'%s in its name or description",
                            argc > 1 ? argv[1] : "", argc > 2 ? " and the other words" : "");
}

static int no_command(const char *word)
{
    const char *names[COUNT(commands)];
    for (int i = 0; i < COUNT(commands); i++) {
        names[i] = commands[i].name;
    }
    const char *near = mc_near_miss(word, names, COUNT(commands));
    return near ? complain("there is no command '%s'; did you mean '%s'?", word, near)
                : complain("there is no command '%s'; monochord help lists them", word);
}

static int command_help(int argc, char **argv)
{
    if (argc > 1) {
        const struct command *c = find_command(argv[1]);
        return c ? print_usage(c, stdout), 0 : no_command(argv[1]);
    }
    printf("monochord %s, an optimizing compiler for tensor expressions\n\n", mc_version());
    for (int i = 0; i < COUNT(commands); i++) {
        printf("  monochord %s %s\n      %s\n", commands[i].name, commands[i].usage, commands[i].doc);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "help";
    if (strcmp(word, "--version") == 0) {
        return puts(mc_version()) < 0;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        word = "help";
    }
    const struct command *c = find_command(word);
    if (!c) {
        return no_command(word);
    }
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return print_usage(c, stdout), 0;
        }
    }
    int status = c->run(argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv);
    bool told = fflush(stdout) == 0 && !ferror(stdout); /* results that were lost are no success */
    return told ? status : complain("cannot write the output: %s", strerror(errno)) | status;
}
