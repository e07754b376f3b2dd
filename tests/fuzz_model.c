/* fuzz_model.c: whatever is written, reading it as a model ends in a net or in a message with the line and a
 * caret.  With libFuzzer (-DMC_LIBFUZZER) it brings the text; without, `fuzz_model SECONDS` mixes words of
 * good lines, the same way on every run. */
#include "fuzz.h"
#include <monochord_nn.h>

#include <stdio.h>

static void wrong(const char *what, const char *text, const char *more)
{
    fprintf(stderr, "%s\n%s\n%s\n", what, text, more ? more : "");
    abort();
}

/* What a training asks of a net: its table, formulas, cost and updates. */
static void use(mc_net *net, const char *text)
{
    mc_graph *g = mc_net_graph(net);
    for (int i = 0; i < mc_net_nlayers(net); i++) {
        const mc_layer *l = mc_net_layer(net, i);
        if (!mc_layer_node(l, MC_TRAINING) || !mc_layer_node(l, MC_DETERMINISTIC) ||
            !*mc_layer_text(l, MC_TRAINING)) {
            wrong("a layer that is none:", text, mc_layer_name(l));
        }
    }
    mc_node *cost = mc_net_cost(net, MC_TRAINING);
    mc_updates u = mc_graph_status(g) == MC_OK ? mc_net_updates(net, cost, NULL)
                                               : (mc_updates){ NULL, NULL, 0 };
    if (!cost || (u.n && !u.to[u.n - 1]) || (mc_graph_status(g) < 0 && !*mc_error(g))) {
        wrong("neither a cost nor a message:", text, mc_error(g));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_small_memory();
    char *text = malloc(n + 1);
    mc_graph *g = mc_graph_new();
    mc_net *net = g ? mc_net_new(g, NULL, 1) : NULL;
    if (!text || !net) {
        exit(2);
    }
    memcpy(text, data, n);
    text[n] = 0;
    mc_status s = mc_net_read(net, "fuzz", text);
    bool said = strncmp(mc_error(g), "fuzz:", 5) == 0 &&
                (strchr(mc_error(g), '^') || strstr(mc_error(g), "the model has no layers"));
    if (s < 0 ? !said && !strstr(mc_error(g), "memory") : mc_graph_status(g) < 0) {
        wrong("neither a net nor a message with its line:", text, mc_error(g));
    }
    if (s == MC_OK) {
        use(net, text);
    }
    mc_net_free(net);
    mc_graph_free(g);
    free(text);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static const char *const seeds[] = {
    "input 1x8x8\nconv 4 3x3 tanh\npool 2x2\ndense 5 tanh\ndense 3 softmax\nbatch 10\nepochs 2\nrule momentum rate=0.05 momentum=0.9\nschedule linear to=0.05\n",
    "input 3x8x8\nconv 8 3x3 rectify pad=same stride=2 W=he_normal(relu)\nbatch_norm rectify\ndropout 0.5\nglobal_pool\ndense 3 softmax\npenalty l2 0.001\n",
    "input 3x6x6\na = conv 4 3x3 linear pad=1 b=none\nb = conv 4 1x1 linear from=x\nsum a b act=rectify\nconcat sum1 conv1\ndense 2 softmax\n",
    "input 20\ndense 5 leaky_rectify(0.2) W=normal(0.1)\nnoise 0.1\ndense 1 sigmoid\nloss binary_crossentropy\nrule adam rate=0.002 max_norm=3 clip=10\nschedule cosine warmup=2\n",
    "input 8\nexpression 'concatenate([$x, sqr($x)], axis=1)'\nreshape [0],4,4\nslice 0 axis=1\npad 1\ndense 3 softmax # words\naugment shift=2 flip=true crop=24x24\npatience 5\n",
    "input 3x9x9\nconv_cc 16 3 tanh\npool_cc 2\nlrn 5\nprelu\nfeature_pool 2\nnervana_conv 8 3 border_mode=same\nlocal 4 3x3\ndense 3 softmax\nrule nesterov rate=0.01 base=rmsprop(rho=0.8)\n",
    "input 2x4x6x6\nconv 3 2x3x3 tanh pad=1\npool 2x2x2 mean\ndeconv 2 2x2x2\ninverse of=pool1\nupscale 2\nnin 4\nmaxout 2\ndense 3 softmax\n",
};
static const char *const words[] = {
    "0", "1", "-1", "2", "3x3", "5x5x5", "1000000", "99999999999999999999", "0.5", "-0.5", "1e400", "nan", "true", "false", "none", "auto", "same", "full", "valid",
    "stride=", "pad=1", "from=x", "from=conv1", "act=", "axis=1", "W=", "b=none", "conv", "pool", "dense", "sum", "x", "y =", "=", "(", ")", "'", "\"", "#", "\n", "$x",
    "?", ",", "rule", "loss", "penalty", "schedule", "batch", "input", "input 4", "softmax", "relu(alpha=0.1)", "\xc3", "\t", "\r", "%s",
};

/* One line of a seed is changed: a word of it put elsewhere, left out, or another put in. */
static size_t change(char *text, size_t n, size_t room)
{
    const char *seed = seeds[fuzz_below(NELEM(seeds))], *word = words[fuzz_below(NELEM(words))];
    size_t at = fuzz_below(n + 1),
           gone = fuzz_below(2) ? strcspn(text + at, " \n=") : fuzz_below(n - at + 1) % 4,
           long_ = strlen(word);
    if (fuzz_below(4) == 0) { /* a line of another model */
        size_t from = fuzz_below(strlen(seed));
        word = seed + from;
        long_ = strcspn(word, "\n") + 1;
        long_ = long_ > strlen(word) ? strlen(word) : long_;
    }
    if (n - gone + long_ >= room) {
        return n;
    }
    memmove(text + at + long_, text + at + gone, n - at - gone + 1);
    memcpy(text + at, word, long_);
    return n - gone + long_;
}

static void one(void)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", seeds[fuzz_below(NELEM(seeds))]);
    size_t n = strlen(text);
    for (size_t k = fuzz_below(5); k > 0; k--) {
        n = change(text, n, sizeof text);
    }
    LLVMFuzzerTestOneInput((const uint8_t *)text, n);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
