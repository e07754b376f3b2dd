/* monochord_bench_transformer.c: the suite transformer: a training step of a small one: four blocks of 256,
 * four heads, four sequences of 256 words of 8192, by Adam.
 *
 * Invariant: numbers, formulas and words are those of bench/peers/transformer_torch.py, and the cost of the
 * first step is what PyTorch computes of them in float64. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, LONG = 256, WIDE = 256, HEADS = 4, WORDS = 8192, BLOCKS = 4, ROWS = 12, MOST = 64 };
static const char name[] = "4 blocks of 256, 4x256 words";
/* Of the first step, by PyTorch in float64: the cost; the norm of all gradients as one vector. */
static const double first_cost = 9.02423353559, slope_norm = 1.04290345176;
/* Three products for each weight and word, and attention's: two forward, four backward. */
#define FLOPS (3. * 2 * BATCH * LONG * (BLOCKS * (12. * WIDE * WIDE + 2. * LONG * WIDE) + (double)WIDE * WORDS))

struct parameter { const char *name; bool ones; int64_t dims[2]; }; /* sizes end at 0 */
static const struct parameter of_words[] = {
    { "E", false, { WORDS, WIDE } },
    { "P", false, { LONG, WIDE } },
}, of_block[ROWS] = {
    { "g", true,  { WIDE } },             { "b", false, { WIDE } },     { "Q", false, { WIDE, 3 * WIDE } },
    { "a", false, { 3 * WIDE } },         { "O", false, { WIDE, WIDE } }, { "o", false, { WIDE } },
    { "h", true,  { WIDE } },             { "c", false, { WIDE } },     { "U", false, { WIDE, 4 * WIDE } },
    { "u", false, { 4 * WIDE } },         { "V", false, { 4 * WIDE, WIDE } }, { "v", false, { WIDE } },
}, of_last[] = {
    { "g", true,  { WIDE } },
    { "b", false, { WIDE } },
    { "W", false, { WIDE, WORDS } },
};

/* $ is the number of the block */
static const char block[] =
    "q = dimshuffle(reshape(dot(layer_norm(x, g$, b$), Q$) + a$, [4, 256, 3, 4, 64]), [2, 0, 3, 1, 4])\n"
    "s = q[0] @ transpose(q[1], [0, 1, 3, 2]) / 8\n"
    "y = softmax(where(tri(256, dtype=bool), s, -inf), axis=-1) @ q[2]\n"
    "x = x + dot(reshape(transpose(y, [0, 2, 1, 3]), [4, 256, 256]), O$) + o$\n"
    "m = dot(layer_norm(x, h$, c$), U$) + u$\n"
    "x = x + dot(0.5 * m * (1 + erf(m / sqrt(2.0))), V$) + v$";
static const char last[] =
    "z = reshape(dot(layer_norm(x, g4, b4), W4), [1024, 8192])\n"
    "cost = mean(crossentropy_softmax_1hot(z, ravel(next)))";

struct transformer {
    struct bench_function b;
    mc_shared *of[MOST];
    mc_node *node[MOST];
    int n;
};

/* Number i of parameter k, from -0.035 to 0.035: the upper bits of a product. */
static double number(int64_t i, int k)
{
    const uint32_t bits = (uint32_t)i * 2654435761u + (uint32_t)(k + 1) * 40503u;
    return ((double)bits / 4294967296. - 0.5) * 0.07;
}

static void add(struct transformer *t, mc_dtype d, const struct parameter *p, int which)
{
    char whole[16];
    mc_array *a = must(mc_array_new(d, p->dims[1] ? 2 : 1, p->dims));
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        const double x = (p->ones ? 1 : 0) + (double)(float)number(i, t->n);
        d == MC_FLOAT64 ? (void)(((double *)mc_array_data(a))[i] = x)
                        : (void)(((float *)mc_array_data(a))[i] = (float)x);
    }
    snprintf(whole, sizeof whole, which < 0 ? "%s" : "%s%d", p->name, which);
    t->of[t->n] = mc_shared_new(t->b.g, whole, a);
    t->node[t->n] = mc_shared_node(t->b.g, t->of[t->n]);
    t->n++;
    mc_array_unref(&a);
}

static void add_block(struct transformer *t, mc_dtype d, int which)
{
    char text[sizeof block];
    for (int i = 0; i < ROWS; i++) {
        add(t, d, &of_block[i], which);
    }
    for (size_t i = 0; i < sizeof block; i++) {
        text[i] = block[i] == '$' ? (char)('0' + which) : block[i];
    }
    mc_formula(t->b.g, text);
}

/* The cost of all words. */
static mc_node *make(struct transformer *t, mc_dtype d)
{
    t->b = (struct bench_function){ .g = must(mc_graph_new()), .nin = 2 };
    mc_input(t->b.g, "words", MC_INT32, 2);
    mc_input(t->b.g, "next", MC_INT32, 2);
    for (int i = 0; i < COUNT(of_words); i++) {
        add(t, d, &of_words[i], -1);
    }
    mc_formula(t->b.g, "x = E[words] + P");
    for (int i = 0; i < BLOCKS; i++) {
        add_block(t, d, i);
    }
    for (int i = 0; i < COUNT(of_last); i++) {
        add(t, d, &of_last[i], BLOCKS);
    }
    for (int k = 0; k < 2; k++) {
        mc_array *x = must(mc_array_new(MC_INT32, MC_SHAPE(BATCH, LONG)));
        for (int64_t i = 0; i < BATCH * LONG; i++) {
            ((int32_t *)mc_array_data(x))[i] = (int32_t)(i * (k ? 6151 : 3079) % WORDS);
        }
        t->b.in[k] = bench_place(x);
    }
    return mc_formula(t->b.g, last);
}

static mc_function *compile(struct transformer *t, mc_node *const *out, int nout, const mc_updates *u)
{
    t->b.nout = nout;
    return mc_compile(t->b.g, &(mc_spec){ .inputs = "words, next",
                                          .output = out,
                                          .noutput = nout,
                                          .update_of = u ? u->of : NULL,
                                          .update = u ? u->to : NULL,
                                          .nupdate = u ? u->n : 0 });
}

/* ---- the error: all gradients as one vector, relative to those in float64 ---- */

struct slopes { double *of; int64_t n; double cost; };

static bool add_slopes(struct slopes *s, const mc_array *a)
{
    mc_array *near = mc_array_to(a, "cpu"), *wide = near ? mc_array_cast(near, MC_FLOAT64) : NULL;
    const int64_t n = wide ? mc_array_size(wide) : 0;
    s->of = must(realloc(s->of, (size_t)(s->n + n) * sizeof *s->of));
    memcpy(s->of + s->n, wide ? mc_array_data(wide) : s->of, (size_t)n * sizeof *s->of);
    s->n += n;
    mc_array_unref(&near);
    mc_array_unref(&wide);
    return n > 0;
}

static bool slopes_in(mc_dtype d, struct slopes *s)
{
    struct transformer t = { .n = 0 };
    mc_node *out[MOST + 1] = { make(&t, d) };
    mc_array *made[MOST + 1] = { NULL };
    mc_arg in[2], arg[MOST + 1];
    bool good = mc_grads(out[0], t.n, t.node, out + 1, NULL) == MC_OK &&
                (t.b.f = compile(&t, out, t.n + 1, NULL));
    for (int i = 0; i <= t.n; i++) {
        in[i < 2 ? i : 1] = mc_arg_array(t.b.in[i < 2 ? i : 1]);
        arg[i] = mc_arg_slot(&made[i]);
    }
    good = good && mc_call(t.b.f, 2, in, t.n + 1, arg) >= 0;
    for (int i = 1; i <= t.n && good; i++) {
        good = add_slopes(s, made[i]);
    }
    mc_array *cost = good ? mc_array_to(made[0], "cpu") : NULL;
    s->cost = cost ? mc_array_get(cost, NULL) : NAN;
    mc_array_unref(&cost);
    for (int i = 0; i <= t.n; i++) {
        mc_array_unref(&made[i]);
    }
    t.b.nout = 0;
    bench_free(&t.b);
    return good;
}

/* Is this what PyTorch computes, and how far are float32's gradients from it? */
static bool error_of(double *error)
{
    struct slopes want = { NULL, 0, 0 }, have = { NULL, 0, 0 };
    double wrong = 0, all = 0;
    mc_flag_set("floatX", "float64");
    bool good = slopes_in(MC_FLOAT64, &want);
    mc_flag_set("floatX", "float32");
    good = good && slopes_in(MC_FLOAT32, &have) && have.n == want.n;
    for (int64_t i = 0; i < want.n && good; i++) {
        wrong += (have.of[i] - want.of[i]) * (have.of[i] - want.of[i]);
        all += want.of[i] * want.of[i];
    }
    if (good && (fabs(want.cost - first_cost) > 1e-9 || fabs(sqrt(all) - slope_norm) > 1e-9)) {
        good = mc_fail(MC_ECHECK, "the cost is %.12g and the gradients' norm %.12g, not as PyTorch has them",
                       want.cost, sqrt(all)) == MC_OK;
    }
    *error = good ? sqrt(wrong / all) : -1;
    free(want.of);
    free(have.of);
    return good;
}

/* ---- the suite ---- */

bool bench_transformer(const char *suite)
{
    struct transformer t = { .n = 0 };
    struct result r = { suite, name, "train", "float32", "", .error = -1 };
    if (!bench_wanted(name, "train")) {
        return true;
    }
    mc_flag_set("plan", "measure");
    bool good = error_of(&r.error);
    mc_node *cost = good ? make(&t, MC_FLOAT32) : NULL;
    const mc_updates u = good ? mc_rule_updates(t.b.g, NULL, "adam rate=0.001", cost, t.n, t.of, NULL)
                              : (mc_updates){ 0 };
    good = u.n && (t.b.f = compile(&t, &cost, 1, &u)) &&
           (r.time = time_calls(bench_call, &t.b, 2 * bench_seconds())).calls > 0;
    r.flops = FLOPS;
    good ? bench_report(&r) : (void)bench_fail(name);
    if (good && strcmp(mc_flag_get("profile"), "True") == 0) {
        mc_function_profile(t.b.f, stderr);
    }
    bench_free(&t.b);
    return good;
}
