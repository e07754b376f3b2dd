/* monochord_predict.c: `monochord predict`: a trained model's answers to pictures and tables.
 *
 * Invariant: all that is needed is in the checkpoint: the model's text, its parameters, the names of the
 * classes, of the columns that it learned from. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEST_ANSWERS = 3 };

/* The picture as one example of the data: grey where the model wants one channel; inverted: ink is dark. */
static mc_data *as_data(const struct model *m, const char *path, bool invert)
{
    mc_layer *in = mc_net_layer(m->net, 0);
    int64_t want = mc_layer_rank(in) == 4 ? mc_layer_dims(in)[1] : 1;
    mc_array *a = mc_image_load(path);
    if (!a) {
        complain("%s", mc_last_error());
        return NULL;
    }
    int64_t have = mc_array_dims(a)[0], rows = mc_array_dims(a)[1], columns = mc_array_dims(a)[2],
            plane = rows * columns;
    int64_t channels = have == 3 && want == 1 ? 1 : have == 1 && want == 3 ? 3 : have;
    mc_array *x = must(mc_array_new(MC_UINT8, MC_SHAPE(1, channels, rows, columns))),
             *t = must(mc_array_new(MC_INT32, MC_SHAPE(1)));
    const uint8_t *from = mc_array_data(a);
    for (int64_t i = 0; i < channels * plane; i++) {
        int v = have == channels ? from[i]
                : have == 1
                    ? from[i % plane]
                    : (299 * from[i] + 587 * from[plane + i] + 114 * from[2 * plane + i] + 500) / 1000;
        ((uint8_t *)mc_array_data(x))[i] = (uint8_t)(invert ? 255 - v : v);
    }
    mc_data *d = must(mc_data_new(x, t, 1));
    mc_array_unref(&a);
    mc_array_unref(&x);
    mc_array_unref(&t);
    return d;
}

/* How answers are printed. */
struct manner { const struct words *w; bool csv; };

/* ---- answers ---- */

/* A field of a table: in quotes where it would be taken for more than one. */
static void print_field(const char *s)
{
    if (!s[strcspn(s, ",\"\n")]) {
        fputs(s, stdout);
        return;
    }
    putchar('"');
    for (; *s; s++) {
        printf(*s == '"' ? "\"\"" : "%c", *s);
    }
    putchar('"');
}

static void head(const struct model *m, const struct manner *how, bool pictures)
{
    char name[64];
    if (!how->csv) {
        return;
    }
    printf("%s%s", pictures ? "picture," : "", m->numbers ? "" : "answer,");
    for (int k = 0; k < m->classes; k++) {
        if (k) {
            putchar(',');
        }
        print_field(word_at(&how->w->classes, k, name));
    }
    putchar('\n');
}

static int likeliest(int n, const double *v)
{
    int best = 0;
    for (int k = 1; k < n; k++) {
        best = v[k] > v[best] ? k : best;
    }
    return best;
}

/* A line of a table: the answer and the probability of each class, or the numbers. */
static void tell_row(const struct model *m, const struct manner *how, const double *v)
{
    char name[64];
    if (!m->numbers) {
        print_field(word_at(&how->w->classes, likeliest(m->classes, v), name));
    }
    for (int k = 0; k < m->classes; k++) {
        printf(m->numbers && !k ? "%.9g" : ",%.9g", v[k]);
    }
    putchar('\n');
}

/* The likeliest classes, or the numbers with their names; v is used up. */
static void tell_words(const struct model *m, const struct manner *how, double *v)
{
    char name[64];
    for (int i = 0; i < m->classes && (m->numbers || i < BEST_ANSWERS); i++) {
        int best = m->numbers ? i : likeliest(m->classes, v);
        word_at(&how->w->classes, best, name);
        if (m->numbers) {
            printf("%s %s%s%.6g", i ? "," : "", name, *name ? " " : "", v[best]);
        } else {
            printf("%s %s %.2f%%", i ? "," : "", name, 100 * v[best]);
        }
        v[best] = -HUGE_VAL;
    }
    printf("\n");
}

/* Row i of p; false: told. */
static bool tell(const struct model *m, const struct manner *how, const char *what, const mc_array *p,
                 int64_t i, bool picture)
{
    double *v = must(malloc((size_t)m->classes * sizeof *v));
    bool good = true;
    for (int64_t k = 0; k < m->classes; k++) {
        v[k] = mc_array_get(p, (int64_t[]){ i, k });
        good = good && isfinite(v[k]);
    }
    if (!good) {
        complain("%s: the model's answer is not finite", what);
    } else if (how->csv) {
        if (picture) {
            print_field(what);
            putchar(',');
        }
        tell_row(m, how, v);
    } else {
        printf("%s:", what);
        tell_words(m, how, v);
    }
    free(v);
    return good;
}

/* All of d, in its order. */
static bool answer(struct model *m, mc_function *f, mc_data *d, const char *what, bool picture,
                   const struct manner *how)
{
    enum { AT_ONCE = 256 };
    const mc_array *x, *t;
    mc_batches *b = d ? must(mc_batches_new(
                            d,
                            &(mc_batch_spec){ .size = AT_ONCE, .augment = mc_net_training(m->net)->augment }))
                      : NULL;
    bool good = b && model_takes(m, d, mc_batches_dims(b), what);
    int more = 0;
    int64_t row = 0;
    while (good && (more = mc_batches_next(b, &x, &t)) == 1) {
        mc_array *p = NULL, *in = model_input(m, x);
        good = mc_call(f, MC_IN(in), MC_OUT(&p)) == MC_OK || (complain_library(what), false);
        for (int64_t i = 0; i < mc_array_dims(x)[0] && good; i++) {
            struct text place = { 0 };
            text_addf(&place, picture ? "%s" : "%s, row %lld", what, (long long)++row);
            good = tell(m, how, place.s, p, i, picture);
            text_free(&place);
        }
        mc_array_unref(&p);
        mc_array_unref(&in);
    }
    mc_batches_free(b);
    mc_data_free(d);
    return good && (more == 0 || (complain_library(what), false));
}

/* ---- tables ---- */

/* The columns that the model has learned from, by their names; all, if it knows none.  NULL: complained. */
static mc_data *as_table(const struct words *w, const char *path)
{
    struct text where = { 0 };
    bool good = true;
    text_addf(&where, "%s%s:label=none:test=none", strncmp(path, "csv:", 4) == 0 ? "" : "csv:", path);
    for (const char *s = w->columns.s, *begin = s; s && *s && good; s += strcspn(s, "\n") + 1) {
        int n = (int)strcspn(s, "\n");
        good = !memchr(s, ',', (size_t)n) && !memchr(s, ':', (size_t)n);
        if (!good) {
            complain("%s: column '%.*s' cannot be named here: it has a comma or a colon in it", path, n, s);
        }
        text_addf(&where, s == begin ? ":columns=%.*s" : ",%.*s", n, s);
    }
    mc_data *d = good ? mc_data_open(where.s, MC_TRAIN) : NULL;
    if (good && !d) {
        complain("%s", mc_last_error());
    }
    text_free(&where);
    return d;
}

/* Does a table or a text name its classes as the model does?  Numbers would be another class's. */
static bool same_classes(const struct words *w, const mc_data *d, const char *where)
{
    char name[64];
    for (int k = 0; k < mc_data_classes(d) && (mc_data_column(d, 0) || is_text(where)); k++) {
        if (strncmp(word_at(&w->classes, k, name), mc_data_class(d, k), sizeof name - 1) != 0) {
            return complain(
                       "%s: class %d is '%s', but the model's is '%s'; the test set has all of its classes",
                       where, k + 1, mc_data_class(d, k), name),
                   false;
        }
    }
    return true;
}

/* ---- the whole ---- */

static bool evaluate(struct model *m, const char *place, const struct words *w)
{
    char *where = model_data(m, place);
    mc_data *d = mc_data_open(where, MC_TEST);
    const mc_training *t = mc_net_training(m->net);
    mc_batches *b = d ? mc_batches_new(d, &(mc_batch_spec){ .size = t->batch, .augment = t->augment }) : NULL;
    struct findings f = { 0 };
    bool good = b && model_fits(m, d, mc_batches_dims(b), where);
    if (!b) {
        complain("%s", mc_last_error());
    }
    good = good && (m->numbers || same_classes(w, d, where));
    findings_make(&f, m);
    good = good && test_run(m, b, &f);
    if (good) {
        (m->numbers ? show_fits : show_confusion)(&f, d);
        printf("\n%lld examples: ", (long long)mc_data_count(d));
        show_result(&f, m, where);
        printf("\n");
    }
    free(where);
    findings_free(&f);
    mc_batches_free(b);
    mc_data_free(d);
    return good;
}

const char predict_options[] =
    "  FILE          what monochord train saved, or what monochord build made of it\n"
    "  --data WHERE  the errors on all of its test set\n"
    "  --csv         answers as a table: the numbers, or the answer and the probability of each class\n"
    "  --invert      pictures have dark ink on a light ground\n"
    "  PICTURE       PNG, PPM or PGM\n"
    "  TABLE         FILE.csv, FILE.tsv or csv:FILE: an answer for each line\n";

int command_predict(int argc, char **argv)
{
    struct model m = { 0 };
    struct words w = { 0 };
    struct manner how = { &w, false };
    const char *where = NULL, *file = NULL;
    bool invert = false, good = true;
    int inputs = 0, tables = 0;
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--invert") == 0) {
            invert = true;
        } else if (strcmp(argv[i], "--csv") == 0) {
            how.csv = true;
        } else if (strcmp(argv[i], "--data") == 0) {
            where = argv[++i];
            good = where || !complain("--data needs a value");
        } else if (argv[i][0] == '-') {
            good = !complain_word("predict", argv[i]);
        } else if (!file) {
            file = argv[i];
        } else {
            tables += is_table(argv[i]);
            argv[inputs++] = argv[i]; /* before all that is still to be read */
        }
    }
    if (good && !(file && (inputs || where))) {
        good = !(file ? complain("predict: no input is given; name pictures, tables or --data WHERE")
                      : complain_usage("predict"));
    }
    good = good &&
           (!how.csv || tables == 0 || tables == inputs ||
            !complain("predict: --csv: pictures and tables have different columns; give only one kind"));
    mc_function *f = NULL;
    const bool bundle = good && is_bundle(file);
    good = good && train_floats() &&
           (bundle ? bundle_model(&m, file, &w, &f) : checkpoint_model(&m, file, &w));
    if (good && inputs && m.places > 1) {
        good = !complain("predict: the model answers with a class for each of %lld places, which are not "
                         "printed; --data tests it, and mc_net_predictor gives them",
                         (long long)m.places);
    }
    f = good && inputs && !f ? mc_net_predictor(m.net) : f;
    if (good && inputs && !f) {
        good = !complain_library("cannot compile the prediction");
    }
    complain_slow(f);
    bool able = good;
    if (able && inputs) {
        head(&m, &how, !tables);
    }
    for (int i = 0; i < inputs && able; i++) { /* what is wrong with one is told, the others are answered */
        bool table = is_table(argv[i]);
        mc_data *d = table ? as_table(&w, argv[i]) : as_data(&m, argv[i], invert);
        good = d && answer(&m, f, d, argv[i], !table, &how) && good;
    }
    good = able && (!where || evaluate(&m, where, &w)) && good;
    mc_function_free(f);
    model_free(&m);
    words_free(&w);
    return !good;
}
