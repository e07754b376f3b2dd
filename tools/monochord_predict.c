/* monochord_predict.c: `monochord predict`: a trained model's answers.
 *
 * Invariant: all that is needed is in the checkpoint: the model's text, its parameters, the names of the
 * classes. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEST_ANSWERS = 3 };

/* One of the names, a line each. */
static const char *class_name(const struct text *classes, int k, char out[64])
{
    const char *at = classes->s;
    for (; k > 0 && *at; k--) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    snprintf(out, 64, "%.*s", (int)strcspn(at, "\n"), at);
    return out;
}

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

/* The likeliest of n; v is used up. */
static void tell(const char *path, int n, double *v, const struct text *classes)
{
    printf("%s:", path);
    for (int i = 0; i < BEST_ANSWERS && i < n; i++) {
        char name[64];
        int best = 0;
        for (int k = 1; k < n; k++) {
            best = v[k] > v[best] ? k : best;
        }
        printf("%s %s %.2f%%", i ? "," : "", class_name(classes, best, name), 100 * v[best]);
        v[best] = -HUGE_VAL;
    }
    printf("\n");
}

static bool answer(struct model *m, mc_function *f, const char *path, bool invert, const struct text *classes)
{
    const mc_array *x, *t;
    mc_data *d = as_data(m, path, invert);
    mc_batches *b = d ? must(mc_batches_new(
                            d, &(mc_batch_spec){ .size = 1, .augment = mc_net_training(m->net)->augment }))
                      : NULL;
    bool good = b && model_fits(m, d, mc_batches_dims(b), path) && mc_batches_next(b, &x, &t) == 1;
    mc_array *p = NULL, *in = good ? model_input(m, x) : NULL;
    if (good && mc_call(f, MC_IN(in), MC_OUT(&p)) < 0) {
        complain_library(path);
        good = false;
    }
    if (good) {
        double *v = must(malloc((size_t)m->classes * sizeof *v));
        for (int64_t k = 0; k < m->classes; k++) {
            v[k] = mc_array_get(p, (int64_t[]){ 0, k });
            good = good && isfinite(v[k]);
        }
        if (!good) {
            complain("%s: the model's answer is not finite", path);
        } else {
            tell(path, m->classes, v, classes);
        }
        free(v);
    }
    mc_array_unref(&p);
    mc_array_unref(&in);
    mc_batches_free(b);
    mc_data_free(d);
    return good;
}

static bool evaluate(struct model *m, const char *where)
{
    mc_data *d = mc_data_open(where, MC_TEST);
    const mc_training *t = mc_net_training(m->net);
    mc_batches *b = d ? mc_batches_new(d, &(mc_batch_spec){ .size = t->batch, .augment = t->augment }) : NULL;
    struct findings f = { 0 };
    bool good = b && model_fits(m, d, mc_batches_dims(b), where);
    if (!b) {
        complain("%s", mc_last_error());
    }
    findings_make(&f, m->classes);
    good = good && test_run(m, b, &f);
    if (good) {
        show_confusion(&f, d);
        printf("\n%lld examples: error %.2f%%, loss %.4f\n", (long long)mc_data_count(d), 100 * f.error,
               f.loss);
    }
    findings_free(&f);
    mc_batches_free(b);
    mc_data_free(d);
    return good;
}

const char predict_options[] =
    "  FILE.npz      what monochord train saved\n"
    "  --data WHERE  the errors on all of its test set\n"
    "  --invert      pictures have dark ink on a light ground\n"
    "  PICTURE       PNG, PPM or PGM\n";

int command_predict(int argc, char **argv)
{
    struct model m = { 0 };
    struct text classes = { 0 }, data = { 0 };
    const char *where = NULL, *file = NULL;
    bool invert = false, good = true;
    int pictures = 0;
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--invert") == 0) {
            invert = true;
        } else if (strcmp(argv[i], "--data") == 0) {
            where = argv[++i];
            good = where || !complain("--data needs a value");
        } else if (argv[i][0] == '-') {
            good = !complain_word("predict", argv[i]);
        } else if (!file) {
            file = argv[i];
        } else {
            argv[pictures++] = argv[i]; /* before all that is still to be read */
        }
    }
    if (good && !(file && (pictures || where))) {
        good = !(file ? complain("predict: nothing to look at: name pictures, or --data WHERE")
                      : complain_usage("predict"));
    }
    good = good && train_floats() && checkpoint_model(&m, file, &classes, &data);
    mc_function *f = good && pictures ? mc_net_predictor(m.net) : NULL;
    if (good && pictures && !f) {
        good = !complain_library("cannot compile the prediction");
    }
    bool able = good;
    for (int i = 0; i < pictures && able; i++) { /* what is wrong with one is told, the others are answered */
        good = answer(&m, f, argv[i], invert, &classes) && good;
    }
    good = able && (!where || evaluate(&m, where)) && good;
    mc_function_free(f);
    model_free(&m);
    text_free(&classes);
    text_free(&data);
    return !good;
}
