/* monochord_train_see.c: what a network has learned to see, as pictures in a page: its first filters, and one
 * example on its way through the layers.
 *
 * Invariant: nothing here changes a parameter; a network that has no such thing leaves that part out. */
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILTERS = 64, MOST_MAPS = 32, MOST_LAYERS = 12 };

/* ---- filters ---- */

/* Below zero blue, zero white, above orange; or the three channels as colours.  turned: the convolution turns
 * its filters about, so what it looks for is the filter from its end to its begin. */
static void filter(struct text *t, const float *from, bool turned, int64_t channels, int64_t rows,
                   int64_t columns, float most, const char *says)
{
    int64_t plane = rows * columns;
    float *w = must(malloc((size_t)(channels * plane) * sizeof *w));
    for (int64_t i = 0; i < channels * plane; i++) {
        w[i] = from[turned ? i - i % plane + plane - 1 - i % plane : i];
    }
    uint8_t *v = must(malloc((size_t)plane * 3));
    for (int64_t i = 0; i < plane; i++) {
        if (channels == 3) {
            for (int c = 0; c < 3; c++) {
                v[3 * i + c] = draw_byte(0.5 + 0.5 * w[c * plane + i] / most);
            }
        } else {
            double x = w[i] / most, up = fmax(x, 0), down = fmax(-x, 0);
            v[3 * i] = draw_byte(0.98 - 0.1 * up - 0.77 * down);
            v[3 * i + 1] = draw_byte(0.98 - 0.53 * up - 0.5 * down);
            v[3 * i + 2] = draw_byte(0.98 - 0.96 * up - 0.13 * down);
        }
    }
    draw_picture(t, v, rows, columns, 3, 52, says);
    free(w);
    free(v);
}

/* The first with filters, of rank 4, or with a column for each unit, of rank 2. */
static mc_param first_weights(const struct run *r)
{
    mc_param p;
    for (int i = 0; (p = mc_net_param(r->m.net, "trainable", i)).name; i++) {
        int rank = mc_node_rank(mc_shared_node(r->m.g, p.shared));
        if (rank == 4 || rank == 2) {
            break;
        }
    }
    return p;
}

void draw_filters(struct text *t, const struct run *r)
{
    mc_param p = first_weights(r);
    mc_array *got = p.name && draw_can(r->train) ? mc_shared_get(p.shared) : NULL,
             *all = got ? mc_array_cast(got, MC_FLOAT32) : NULL;
    const int64_t *image = mc_batches_dims(r->batches);
    if (all && mc_array_rank(all) == 2 &&
        mc_array_dims(all)[0] == image[0] * image[1] * image[2]) { /* a column is what one unit looks for */
        mc_array *turned = mc_array_transpose(all, NULL), *flat = turned ? mc_array_copy(turned) : NULL;
        mc_array_unref(&turned);
        mc_array_unref(&all);
        all = flat ? mc_array_reshape(flat, MC_SHAPE(mc_array_dims(flat)[0], image[0], image[1], image[2]))
                   : NULL;
        mc_array_unref(&flat);
    }
    mc_array_unref(&got);
    if (!all || mc_array_rank(all) != 4 || mc_array_dims(all)[2] < 2) {
        mc_array_unref(&all);
        return;
    }
    const int64_t *d = mc_array_dims(all);
    const float *w = mc_array_data(all);
    int64_t size = d[1] * d[2] * d[3], n = d[0] < MOST_FILTERS ? d[0] : MOST_FILTERS;
    bool turned = strcmp(mc_layer_kind(p.layer), "conv") == 0 &&
                  !strstr(mc_layer_text(p.layer, MC_TRAINING), "flip=False");
    text_addf(t,
              "<h2>Filters of the first layer</h2>\n<div class=\"card\"><p class=\"dim small\">%s of the "
              "%lld filters of <code>%s</code>, %lldx%lld each%s.</p><div class=\"filters\">\n",
              n == d[0] ? "All" : "The first", (long long)d[0], p.name, (long long)d[2], (long long)d[3],
              d[1] == 3 ? ", its channels as colours"
                        : ": orange for positive weights, blue for negative ones");
    for (int64_t k = 0; k < n; k++) {
        float most = 1e-9f;
        for (int64_t i = 0; i < size; i++) {
            most = fmaxf(most, fabsf(w[k * size + i]));
        }
        char says[32];
        snprintf(says, sizeof says, "filter %lld", (long long)k);
        filter(t, w + k * size, turned, d[1], d[2], d[3], most, says);
    }
    text_addf(t, "</div></div>\n");
    mc_array_unref(&all);
}

/* ---- one example on its way through the layers ---- */

/* The maps of one layer, (1, channels, rows, columns): each from its least, black, to its largest. */
static void maps(struct text *t, const char *name, const mc_array *a)
{
    const int64_t *d = mc_array_dims(a);
    int64_t plane = d[2] * d[3], n = d[1] < MOST_MAPS ? d[1] : MOST_MAPS;
    mc_array *cast = must(mc_array_cast(a, MC_FLOAT32)), *whole = must(mc_array_copy(cast));
    uint8_t *v = must(malloc((size_t)plane));
    text_addf(t,
              "<p class=\"small\"><code>%s</code> <span class=\"dim\">%lld maps of "
              "%lldx%lld%s</span></p><div class=\"filters\">\n",
              name, (long long)d[1], (long long)d[2], (long long)d[3], n < d[1] ? ", the first of them" : "");
    for (int64_t c = 0; c < n; c++) {
        const float *x = (const float *)mc_array_data(whole) + c * plane;
        float low = x[0], high = x[0];
        for (int64_t i = 0; i < plane; i++) {
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
        for (int64_t i = 0; i < plane; i++) {
            v[i] = draw_byte(high > low ? (x[i] - low) / (high - low) : 0);
        }
        draw_picture(t, v, d[2], d[3], 1, 38, "");
    }
    text_addf(t, "</div>\n");
    free(v);
    mc_array_unref(&cast);
    mc_array_unref(&whole);
}

void draw_way(struct text *t, const struct run *r)
{
    mc_node *in = mc_layer_node(mc_net_layer(r->m.net, 0), MC_TRAINING), *out[MOST_LAYERS];
    const mc_layer *of[MOST_LAYERS];
    const mc_array *x, *label;
    int n = 0;
    for (int i = 1; i < mc_net_nlayers(r->m.net) && n < MOST_LAYERS; i++) {
        const mc_layer *l = mc_net_layer(r->m.net, i);
        if (mc_layer_rank(l) == 4 && mc_layer_dims(l)[2] * mc_layer_dims(l)[3] > 1) {
            of[n] = l;
            out[n++] = mc_layer_node(l, MC_DETERMINISTIC);
        }
    }
    mc_function *f =
        n ? mc_compile(r->m.g,
                       &(mc_spec){ .name = "layers", .input = &in, .ninput = 1, .output = out, .noutput = n })
          : NULL;
    mc_batches_start(r->test_batches, 0, 0);
    if (f && mc_batches_next(r->test_batches, &x, &label) == 1) {
        mc_array *got[MOST_LAYERS] = { NULL }, *one = must(mc_array_slice(x, 0, 0, 1, 1)),
                 *shaped = model_input(&r->m, one);
        mc_arg result[MOST_LAYERS], given = mc_arg_array(shaped);
        for (int i = 0; i < n; i++) {
            result[i] = mc_arg_slot(&got[i]);
        }
        if (mc_call_args(f, 1, &given, n, result) == MC_OK) {
            text_addf(t, "<h2>One example through the layers</h2>\n<div class=\"card\"><p class=\"small "
                         "dim\">The first example of the test set, and the result of each layer.</p><div "
                         "class=\"filters\">");
            draw_example(t, r->held, mc_batches_example(r->test_batches, 0), 84, "");
            text_addf(t, "</div>\n");
            for (int i = 0; i < n; i++) {
                maps(t, mc_layer_name(of[i]), got[i]);
            }
            text_addf(t, "</div>\n");
        }
        for (int i = 0; i < n; i++) {
            mc_array_unref(&got[i]);
        }
        mc_array_unref(&shaped);
        mc_array_unref(&one);
    }
    mc_function_free(f);
}

