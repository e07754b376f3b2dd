/* t_transformer.c: training steps of a small transformer: embedding, layer norm, attention with a mask, gelu,
 * Adam.  Losses are PyTorch's, in float64, of the same weights. */
#include "grid_text.h"

#include <math.h>
#include <monochord_nn.h>
#include <stdio.h>
#include <string.h>

enum { B = 2, T = 8, C = 16, H = 2, V = 11, L = 2, HD = C / H, STEPS = 5, MOST = 64 };

static const double losses[STEPS] = { 2.36595687972, 2.07931102207, 1.84327852701, 1.66383332202, 1.55859661892 };

struct model {
    mc_graph *g;
    mc_shared *of[MOST];
    int n;
};

/* Element i of the k-th one is ((i * (2k + 3)) % 19 - 9) / 50, plus `more`. */
static void parameter(struct model *m, mc_dtype d, const char *name, int layer, double more, int rank,
                      const int64_t *dims)
{
    char whole[16];
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0, n = mc_array_size(a); i < n; i++) {
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size,
                     (double)(i * (2 * m->n + 3) % 19 - 9) * .02 + more);
    }
    snprintf(whole, sizeof whole, layer < 0 ? "%s" : "%s%d", name, layer);
    m->of[m->n++] = mc_shared_new(m->g, whole, a);
    mc_array_unref(&a);
}

static void add_layer(struct model *m, mc_dtype d, int l)
{
    static const struct { const char *name; double more; int rank; int64_t dims[2]; } rows[] = {
        { "g", 1, 1, { C } },             { "b", 0, 1, { C } },        { "p", 1, 1, { C } },      { "q", 0, 1, { C } },
        { "Qkv", 0, 2, { C, 3 * C } },    { "O", 0, 2, { C, C } },     { "W", 0, 2, { C, 4 * C } }, { "c", 0, 1, { 4 * C } },
        { "U", 0, 2, { 4 * C, C } },      { "e", 0, 1, { C } },
    };
    static const char text[] = "n = layer_norm(h, g@, b@); qkv = dimshuffle(reshape(dot(n, Qkv@), [2, 8, 3, "
                               "2, 8]), [2, 0, 3, 1, 4])\n"
                               "query = reshape(qkv[0], [4, 8, 8]); key = reshape(qkv[1], [4, 8, 8]); value "
                               "= reshape(qkv[2], [4, 8, 8])\n"
                               "s = batched_dot(query, dimshuffle(key, [0, 2, 1])) / 2.8284271247461903\n"
                               "a = softmax(where(tri(t, dtype=bool), s, -inf))\n"
                               "h = h + dot(reshape(dimshuffle(reshape(batched_dot(a, value), [2, 2, t, 8]), "
                               "[0, 2, 1, 3]), [2, t, 16]), O@)\n"
                               "m = dot(layer_norm(h, p@, q@), W@) + c@; m = 0.5 * m * (1 + erf(m * "
                               "0.7071067811865476)); h = h + dot(m, U@) + e@";
    char formula[sizeof text];
    for (size_t i = 0; i < NELEM(rows); i++) {
        parameter(m, d, rows[i].name, l, rows[i].more, rows[i].rank, rows[i].dims);
    }
    for (size_t i = 0; i < sizeof text; i++) {
        formula[i] = text[i] == '@' ? (char)('0' + l) : text[i];
    }
    CHECK(!mc_is_error(mc_formula(m->g, formula)), "%s", mc_error(m->g));
}

/* One step of Adam; its result is the cost before it. */
static mc_function *trainer(struct model *m, mc_net *net, mc_dtype d)
{
    mc_input(m->g, "words", MC_INT32, 2);
    mc_input(m->g, "next", MC_INT32, 2);
    parameter(m, d, "E", -1, 0, MC_SHAPE(V, C));
    parameter(m, d, "Pos", -1, 0, MC_SHAPE(T, C));
    mc_formula(m->g, "t = words.shape[1]; h = E[words] + Pos[:t]");
    for (int l = 0; l < L; l++) {
        add_layer(m, d, l);
    }
    parameter(m, d, "Last", -1, 0, MC_SHAPE(C, V));
    mc_node *cost = mc_formula(
        m->g, "mean(crossentropy_softmax_1hot(reshape(dot(layer_norm(h), Last), [-1, 11]), ravel(next)))");
    CHECK(!mc_is_error(cost), "%s", mc_error(m->g));
    mc_updates u = mc_updates_of(net, cost, m->n, m->of, NULL, "adam rate=0.003");
    return mc_compile(m->g, &(mc_spec){ .inputs = "words, next",
                                        .output = &cost,
                                        .noutput = 1,
                                        .update_of = u.of,
                                        .update = u.to,
                                        .nupdate = u.n });
}

static void losses_of(mc_dtype d, double tol)
{
    mc_flag_set("floatX", mc_dtype_name(d));
    struct model m = { .g = mc_graph_new() };
    mc_net *net = mc_net_new(m.g, NULL, 1);
    mc_function *f = trainer(&m, net, d);
    int32_t word[B * T], next[B * T];
    for (int b = 0; b < B; b++) {
        for (int i = 0; i < T; i++) {
            word[b * T + i] = (i * 5 + b * 3) % V;
            next[b * T + i] = (i * 7 + b * 2 + 1) % V;
        }
    }
    mc_array *x = mc_array_from(MC_INT32, MC_SHAPE(B, T), word),
             *y = mc_array_from(MC_INT32, MC_SHAPE(B, T), next);
    CHECK(f, "%s", mc_error(m.g));
    for (int i = 0; i < STEPS && f; i++) {
        double cost = NAN;
        mc_status s = mc_call(f, MC_IN(x, y), MC_OUT(&cost));
        CHECK(s == MC_OK && fabs(cost - losses[i]) < tol, "%s, step %d: %.9g, not %.9g: %s", mc_dtype_name(d),
              i, cost, losses[i], mc_last_error());
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    if (f && nvrtc_here() && d == MC_FLOAT32) {
        compiles(f, "a transformer");
    }
    mc_function_free(f);
    mc_net_free(net);
    mc_graph_free(m.g);
}

TEST(a_transformer_learns_as_elsewhere)
{
    losses_of(MC_FLOAT64, 1e-9);
    losses_of(MC_FLOAT32, 2e-3);
}
