/* fuzz_parse.c: whatever is written, reading it ends in a node or in a message with a caret; what is read
 * is printed so that it reads back as the same node.  With libFuzzer (-DMC_LIBFUZZER) it brings the text;
 * without, `fuzz_parse SECONDS` mixes pieces of good formulas, the same way on every run. */
#include "fuzz.h"
#include "op/op.h"

#include <stdio.h>

static const char *const declared =
    "input x float32[?, 3]; input y float32[?, 3]; input u float32[?]; input s float64; input k int64[?]; "
    "input b bool[?]; shared W float32[3, 5]; input t float64[2, 3, 4]";

static void wrong(const char *what, const char *text, const char *more)
{
    fprintf(stderr, "%s\n%s\n%s\n", what, text, more ? more : "");
    abort();
}

/* Printing and reading again; then a gradient, which walks what was built. */
static void use(mc_graph *g, mc_node *n, const char *text)
{
    char *back = mc_node_text(n);
    mc_node *again = mc_formula(g, back), *s = mc_var(g, "s");
    size_t count;
    mc_node **list = mc_graph_reach(1, &n, &count);
    bool small = count < 200 && strlen(back) < 3000,
         impure = false; /* larger ones go as statements; deep ones are refused */
    for (size_t i = 0; i < count; i++) {
        impure |= list[i]->op->flags & (OP_IMPURE | OP_RANDOM) ||
                  list[i]->op == &mc_op_error; /* two prints are two */
    }
    mc_free(list);
    bool deep = mc_is_error(again) && strstr(mc_error(g), "nested more than");
    if (small && !impure && !deep && again != n) {
        wrong("printed, it reads back as something else:", text, back);
    }
    mc_graph_clear_error(g);
    if (n->nout == 1 && n->type.rank == 0) {
        mc_grads(n, 1, &s, &again, &(mc_grad_spec){ .disconnected = MC_DISCONNECTED_ZERO });
    }
    mc_text_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_small_memory();
    char *text = malloc(n + 1);
    mc_graph *g = mc_graph_new();
    if (!text || !g) {
        exit(2);
    }
    memcpy(text, data, n);
    text[n] = 0;
    mc_formula(g, declared);
    mc_node *r = mc_formula(g, text);
    if (!r->graph || (mc_is_error(r) && (mc_graph_status(g) >= 0 || !strchr(mc_error(g), '^')))) {
        wrong("neither a node nor a message with a caret:", text, mc_error(g));
    }
    if (!mc_is_error(r) && mc_graph_status(g) == MC_OK) {
        use(g, r, text);
    }
    mc_graph_free(g);
    free(text);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static const char *const seeds[] = {
    "x + y * s - u[0] / (x // y) % s ** -2",
    "a = softmax(x @ W, axis=-1); sum(log(a), axis=[0, 1], keepdims=True)",
    "x[1:, ::-1][k] + t[0, ..., None, :2]",
    "grad(mean(sqr(tanh(x) - y)), x)",
    "set_subtensor(x[0], inc_subtensor(u[k], 1)[:3])",
    "a, c = max_and_argmax(x, axis=1); a * 2.5e-3f32 + cast(c, float32)",
    "where(b & ~b | b, u, [1, 2.5, inf])",
    "reshape(t, [4, -1], ndim=2).T.sum(axis=0)",
    "input z float32[?, 784]; shared v int8[3]; z.shape[0] + v",
    "shared v float32[3, 4] = normal(std=0.02, mean=-1, seed=7); shared n int8[2] = 3; v * n[0]",
    "shared v float64[4, 3, 2, 2] = he_uniform(relu, c01b=True); shared q float16[5, 5] = sparse(0.5); shared o float32[3, 5] = orthogonal",
    "array(float32, [2], \"0000803f00000040\") * 0x1f",
    "concatenate([x, y], axis=1) == stack([x, y])[0, 0]",
    "not (s < 1) or s >= 2 and s != 3 # comment\n",
    "item(tuple(x, y), 1) + zeros([2, 3], dtype=\"float64\") - eye(3)",
};
static const char *const words[] = {
    "(", ")", "[", "]", ",", "=", ":", "::", "...", ".", ";", "\n", "+", "-", "*", "**", "/", "//", "%", "@", "<", "<=", "==", "&", "|", "^", "~",
    "not ", " and ", " or ", "None", "True", "inf", "nan", "pi", "1", "-1", "0", "2.5", "1e400", "300u8", "9223372036854775807", "1i8", "axis=",
    "axis=0", "axis=[0, 1]", "keepdims=True", "dtype=int8", "float16", "x", "y", "u", "s", "k", "b", "W", "t", "x.T", ".shape", ".sum(", ".dtype",
    "grad(", "item(", "array(", "tuple(", "set_subtensor(", "input q float32", "shared ", "\"", "'", "\\", "#", "\xc3", "?", "$", "  ",
};

/* The text with n bytes at `at` replaced. */
static void splice(struct mc_str *text, size_t at, size_t n, const char *with, size_t nwith)
{
    struct mc_str out = { 0 };
    mc_str_addn(&out, text->s, at);
    mc_str_addn(&out, with, nwith);
    mc_str_add(&out, text->s + at + n);
    mc_str_free(text);
    *text = out;
}

static void change(struct mc_str *text)
{
    size_t at = fuzz_below(text->n + 1), n = fuzz_below(MC_MIN(text->n - at, 8) + 1);
    const char *seed = seeds[fuzz_below(NELEM(seeds))], *word = words[fuzz_below(NELEM(words))];
    size_t from = fuzz_below(strlen(seed)), some = 1 + fuzz_below(strlen(seed) - from);
    switch (fuzz_below(5)) {
    case 0: splice(text, at, n, "", 0); break;
    case 1: splice(text, at, fuzz_below(2) ? n : 0, word, strlen(word)); break;
    case 2: splice(text, at, n, seed + from, some); break;
    case 3: { /* a call of any op there is */
        char call[80];
        const struct mc_op *op = mc_op_at((int)fuzz_below((size_t)mc_op_count()));
        int m = snprintf(call, sizeof call, "%s(", op->name);
        splice(text, at, n, call, (size_t)m);
        break;
    }
    default: { /* something in brackets, closed */
        char *part = mc_strdup(text->s + at);
        splice(text, at, strlen(part), "(", 1);
        mc_str_addf(text, "%s)", part);
        mc_free(part);
    }
    }
}

static void one(void)
{
    struct mc_str text = { 0 };
    mc_str_add(&text, seeds[fuzz_below(NELEM(seeds))]);
    for (size_t k = fuzz_below(6); k > 0 && text.n < 2000; k--) {
        change(&text);
    }
    LLVMFuzzerTestOneInput((const uint8_t *)text.s, text.n);
    mc_str_free(&text);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
