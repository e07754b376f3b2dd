/* rules_conv.c: convolutions. A filter that an index reverses along its taps becomes an unreversed filter and
 * the opposite `flip` attribute, which costs nothing. The same holds for a reversed gradient of filters.
 *
 * Views need no rule: the strides of the operands are part of a solver's problem. */
#include "op/conv_node.h"
#include "rewrite/rewrite.h"

/* Does the index reverse every tap axis and take every other axis whole? */
static bool turns(const mc_node *n, const struct mc_conv_form *f)
{
    unsigned taps = 0;
    for (int i = 2; i < 5; i++) {
        taps |= f->w[i] >= 0 ? 1u << f->w[i] : 0;
    }
    for (int i = 0; i < n->in[0]->type.rank; i++) {
        const int64_t *s = &n->attr[0].ints[i * SPEC_N], step = taps >> i & 1 ? -1 : 1;
        if (s[SPEC_INDEX] || s[SPEC_START_KIND] || s[SPEC_STOP_KIND] || s[SPEC_STEP_KIND] != BOUND_CONST ||
            s[SPEC_STEP] != step) {
            return false;
        }
    }
    return true;
}

static mc_node *other_way(const mc_node *n, mc_node *const *in)
{
    struct mc_attr attr[CONV_NATTR];
    int64_t flip = !mc_attr_int(&n->attr[CONV_FLIP]);
    memcpy(attr, n->attr, sizeof attr);
    attr[CONV_FLIP].ints = &flip;
    return mc_node_make(n->graph, n->op, n->nin, in, attr);
}

static mc_node *of_turned_filters(const struct mc_match *m)
{
    const mc_node *n = m->root;
    const int at = mc_conv_operand[mc_conv_pass_of(n->op)][CONV_W];
    struct mc_conv_form f;
    mc_node *in[3];
    mc_conv_form_of(n, &f);
    if (n->in[at]->op->form != FORM_SUBTENSOR || !turns(n->in[at], &f)) {
        return NULL;
    }
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[at] = n->in[at]->in[0];
    return other_way(n, in);
}

static mc_node *turned_gradient(const struct mc_match *m)
{
    const mc_node *n = m->root->in[0];
    struct mc_conv_form f;
    if (mc_conv_pass_of(n->op) != CONV_WEIGHTS || !mc_used_once(m, n)) {
        return NULL;
    }
    mc_conv_form_of(n, &f);
    return turns(m->root, &f) ? other_way(n, n->in) : NULL;
}

#define IMAGE   "reshape(x, [1, 1, 4, 5])"
#define FILTERS "reshape(y[:3, :2], [1, 1, 3, 2])[:, :, ::-1, ::-1]"
static const struct mc_rule rows[] = {
    { .op = "conv", .make = of_turned_filters, .promise = ROUND, .name = "conv by turned filters",
      .sample = "conv(" IMAGE ", " FILTERS "); conv(" IMAGE ", " FILTERS ", flip=False, border=1); "
                "conv(reshape(x, [1, 4, 5, 1]), reshape(y[:3, :2], [1, 3, 2, 1])[:, ::-1, ::-1], layout='b01c')" },
    { .op = "conv_inputs", .make = of_turned_filters, .promise = ROUND, .name = "conv_inputs by turned filters",
      .sample = "conv_inputs(" FILTERS ", " IMAGE ")" },
    { .op = "subtensor", .make = turned_gradient, .promise = ROUND, .name = "turned conv_weights",
      .sample = "conv_weights(" IMAGE ", reshape(y[:2, :2], [1, 1, 2, 2]))[:, :, ::-1, ::-1]" },
};
const struct mc_rule_table mc_rules_conv = { rows, (int)NELEM(rows) };
