/* rules_join.c: joins: as few joins of as few parts as possible. */
#include "rewrite/rewrite.h"

enum { MOST_PARTS = 256 };

/* Nested joins are flattened, empty parts are dropped, and a join of stacks of scalars becomes one stack. */
static mc_node *join(const struct mc_match *m)
{
    mc_node *n = m->root, *part_of[MOST_PARTS];
    int64_t axis = mc_attr_int(&n->attr[0]);
    int count = 0, stacks = 0;
    bool changed = false;
    for (int i = 0; i < n->nin; i++) {
        mc_node *x = n->in[i];
        bool inner = x->op->form == FORM_JOIN && mc_attr_int(&x->attr[0]) == axis && mc_used_once(m, x);
        if (count + (inner ? x->nin : 1) > MOST_PARTS) {
            return NULL;
        }
        bool empty = x->type.dims[axis] == 0 && n->nin > 1;
        changed |= inner || empty;
        for (int k = 0; k < (inner ? x->nin : !empty); k++) {
            part_of[count++] = inner ? x->in[k] : x;
        }
    }
    for (int i = 0; i < count; i++) {
        stacks += part_of[i]->op->form == FORM_STACK;
    }
    if (count == 0 || (!changed && count > 1 && stacks < count)) {
        return NULL;
    }
    if (stacks < count || n->type.rank != 1) {
        return count == 1 ? part_of[0] : changed ? mc_node_make(m->g, n->op, count, part_of, n->attr) : NULL;
    }
    mc_node *number[MOST_PARTS];
    int numbers = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < part_of[i]->nin; k++) {
            if (numbers == MOST_PARTS) {
                return NULL;
            }
            number[numbers++] = part_of[i]->in[k];
        }
    }
    return mc_call_op(m->g, "stack", numbers, number, NULL);
}

static const struct mc_rule rows[] = {
    { .op = "join", .make = join, .promise = EXACT, .name = "join",
      .sample = "join([join([x, y]), x]); join([stack([x[0, 0], 2.0f64]), stack([y[0, 0]])]); join([alloc(1.0f64, [0, 5]), x])" },
};
const struct mc_rule_table mc_rules_join = { rows, (int)NELEM(rows) };
