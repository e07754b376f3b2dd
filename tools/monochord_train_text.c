/* monochord_train_text.c: text that a model of characters writes as it learns: each character is drawn from
 * the network's result, at a temperature, and becomes the last one of the window that is read next.
 *
 * Invariant: what is drawn follows from the seed and the epoch; the run itself draws nothing from it. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHARACTERS = 240 };

/* A number from 0 to 1. */
static double draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/* A class of n, with probabilities p to the power of 1 / temperature. */
static int pick(const double *p, int n, double temperature, uint64_t *state)
{
    double all = 0, most = 0;
    for (int k = 0; k < n; k++) {
        most = fmax(most, p[k]);
    }
    for (int k = 0; k < n; k++) {
        all += pow(p[k] / most, 1 / temperature);
    }
    double left = draw(state) * all;
    int k = 0;
    while (k < n - 1 && (left -= pow(p[k] / most, 1 / temperature)) > 0) {
        k++;
    }
    return k;
}

/* The character of a class; names have \n, \t and the like for what cannot be printed. */
static void add_character(struct text *t, const char *name)
{
    const bool escape = name[0] == '\\' && name[1];
    text_addf(t, "%s", !escape ? name : name[1] == 'n' ? "\n" : name[1] == 't' ? "\t" : "?");
}

/* The window, shifted by one; false: complained. */
static bool read_on(struct run *r, mc_array *window, int64_t length, double *p)
{
    mc_array *in = model_input(&r->m, window), *out = NULL;
    const bool good = mc_call(r->speak, MC_IN(in), MC_OUT(&out)) == MC_OK ||
                      (complain_library("sample"), false);
    for (int64_t k = 0; good && k < r->m.classes; k++) {
        p[k] = mc_array_get(out, (const int64_t[]){ 0, k });
    }
    mc_array_unref(&in);
    mc_array_unref(&out);
    float *x = mc_array_data(window);
    memmove(x, x + 1, (size_t)(length - 1) * sizeof *x);
    return good;
}

bool sample_text(struct run *r, struct text *out)
{
    const int64_t length = mc_data_dims(r->train)[0];
    const int classes = mc_data_classes(r->train);
    mc_array *window = must(mc_array_new(MC_FLOAT32, MC_SHAPE(1, length)));
    double *p = must(calloc((size_t)r->m.classes, sizeof *p));
    float *x = mc_array_data(window);
    uint64_t state = (uint64_t)r->o.seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)r->p.epoch;
    const int64_t begin = (int64_t)(draw(&state) * (double)mc_data_count(r->held));
    r->speak = r->speak ? r->speak : mc_net_predictor(r->m.net);
    bool good = r->speak || (complain_library("sample"), false);
    mc_data_example(r->held, begin, x);
    for (int i = 0; i < CHARACTERS && good; i++) {
        good = read_on(r, window, length, p);
        const int k = good ? pick(p, classes, r->o.temperature, &state) : 0;
        x[length - 1] = (float)k;
        add_character(out, good ? mc_data_class(r->train, k) : "");
    }
    mc_array_unref(&window);
    free(p);
    return good;
}

bool show_sample(struct run *r)
{
    struct text t = { 0 };
    const bool good = r->o.quiet || !is_text(r->o.data) || !(r->o.temperature > 0) || sample_text(r, &t);
    if (t.n) {
        printf("        ");
        for (const char *c = t.s; *c; c++) {
            printf(*c == '\n' ? "\n        " : "%c", *c);
        }
        printf("\n");
        fflush(stdout);
    }
    text_free(&t);
    return good;
}
