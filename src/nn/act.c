/* act.c: nonlinearities: those of the table, by their usual names in networks, and every op of one tensor.
 *
 * Invariant: a form contains $x once, so that a long formula stays readable inside it. */
#include "nn/nn.h"

static const struct act {
    const char *name;
    struct mc_nn_field field[3];
    const char *form;
} acts[] = {
    /* name                  settings                                                            formula */
    { "linear", { { NULL } }, "$x" },
    { "identity", { { NULL } }, "$x" },
    { "none", { { NULL } }, "$x" },
    { "rectify", { { NULL } }, "relu($x)" },
    { "relu6", { { NULL } }, "clip($x, 0, 6)" },
    { "leaky_rectify", { { "alpha", NN_REAL, "0.01" } }, "relu($x, alpha=$alpha)" },
    { "very_leaky_rectify", { { NULL } }, "relu($x, alpha=0.3333333333333333)" },
    { "scaled_tanh",
      { { "scale_in", NN_REAL, "1" }, { "scale_out", NN_REAL, "1" } },
      "tanh(($x) * $scale_in) * $scale_out" },
    { "elu", { { "alpha", NN_REAL, "1" } }, "elu($x, alpha=$alpha)" },
    { "selu",
      { { "scale", NN_REAL, "1.0507009873554805" }, { "scale_neg", NN_REAL, "1.6732632423543772" } },
      "elu($x, alpha=$scale_neg) * $scale" },
    { NULL, { { NULL } }, NULL },
};

static bool is_op(struct mc_nn_slice name)
{
    for (int i = 0; i < mc_op_count(); i++) {
        if (mc_nn_same(name, mc_op_name(i))) {
            return true;
        }
    }
    return false;
}

/* Ops of one tensor that are often used as nonlinearities. */
static const char *const usual[] = { "tanh", "sigmoid", "relu", "softmax", "softplus", "softsign", "hard_sigmoid" };

bool mc_nn_is_act(struct mc_nn_slice name)
{
    bool found = false;
    for (const struct act *a = acts; a->name && !found; a++) {
        found = mc_nn_same(name, a->name);
    }
    for (int i = 0; i < COUNT(usual) && !found; i++) {
        found = mc_nn_same(name, usual[i]);
    }
    return found;
}

static struct mc_nn_hint near_act(struct mc_nn_slice name)
{
    struct mc_nn_hint hint = mc_nn_near_row(name, acts, sizeof *acts);
    return *hint.text ? hint : mc_nn_near(name, usual, COUNT(usual));
}

static bool from_table(struct mc_nn_text *out, const struct mc_nn_line *line, const struct act *a,
                       struct mc_nn_slice args, const char *inner)
{
    struct mc_nn_settings s;
    struct mc_nn_holes h = { .n = 0 };
    struct mc_nn_text value[COUNT(a->field)] = { { 0 } };
    bool good = mc_nn_read(&s, line, args.s, args.s + args.n, ',', a->field, a->name);
    mc_nn_hole(&h, "x", inner);
    for (int i = 0; good && a->field[i].name; i++) {
        mc_nn_addn(&value[i], s.value[i].s, s.value[i].n);
        good = !value[i].bad;
        mc_nn_hole(&h, a->field[i].name, value[i].s);
    }
    good = good && mc_nn_fill(out, a->form, &h);
    for (int i = 0; i < COUNT(value); i++) {
        mc_nn_free(&value[i]);
    }
    return good;
}

bool mc_nn_act(struct mc_nn_text *out, const struct mc_nn_line *line, struct mc_nn_slice call,
               const char *inner)
{
    struct mc_nn_slice args, name = mc_nn_call(call, &args);
    for (const struct act *a = acts; a->name; a++) {
        if (mc_nn_same(name, a->name)) {
            return from_table(out, line, a, args, inner);
        }
    }
    if (!is_op(name)) {
        return mc_nn_wrong(line, name.s, MC_EARG, "there is no nonlinearity '%.*s'%s", (int)name.n, name.s,
                           near_act(name).text);
    }
    mc_nn_addf(out, "%.*s(%s%s%.*s)", (int)name.n, name.s, inner, args.n ? ", " : "", (int)args.n, args.s);
    return true;
}

void mc_nn_manual_acts(struct mc_nn_text *t)
{
    mc_nn_manual_head(t, "Nonlinearities", "formula");
    for (const struct act *a = acts; a->name; a++) {
        mc_nn_manual_row(t, a->name, a->field, a->form, true);
    }
    mc_nn_add(t, "\nEvery op of one tensor can be used too, with its settings in brackets: `tanh`, "
                 "`softplus`, `relu(alpha=0.1)`.\n");
}
