/* index.c: x[...]. */
#include "op/op.h"

static mc_node *along(mc_node *x, int axis, mc_node *start, mc_node *stop, bool pick)
{
    int64_t spec[MC_MAX_RANK * SPEC_N] = { 0 };
    mc_node *in[3] = { x };
    int nin = 1;
    if (mc_is_error(x) || (start && mc_is_error(start)) || (stop && mc_is_error(stop))) {
        return x->graph->error;
    }
    for (int i = 0; i < x->type.rank; i++) {
        spec[i * SPEC_N + SPEC_STEP_KIND] = BOUND_CONST;
        spec[i * SPEC_N + SPEC_STEP] = 1;
    }
    int64_t *s = &spec[axis * SPEC_N];
    s[SPEC_INDEX] = pick;
    if (start) {
        s[SPEC_START_KIND] = BOUND_INPUT;
        s[SPEC_START] = nin;
        in[nin++] = start;
    }
    if (stop) {
        s[SPEC_STOP_KIND] = BOUND_INPUT;
        s[SPEC_STOP] = nin;
        in[nin++] = stop;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = spec };
    return mc_apply(x->graph, mc_op_find("subtensor"), nin, in, &a);
}

mc_node *mc_part(mc_node *x, int axis, mc_node *start, mc_node *stop)
{
    return along(x, axis, start, stop, false);
}

mc_node *mc_pick(mc_node *x, int axis, mc_node *i)
{
    return along(x, axis, i, NULL, true);
}
const struct mc_op mc_ops_index[1] = { { 0 } };
const int mc_nops_index = 0;
