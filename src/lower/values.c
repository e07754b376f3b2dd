/* values.c: what stages after lowering ask about the values of a program.
 *
 * Invariant: nothing here depends on the passes that made the program, so a program that was loaded from a
 * file is read by the same functions. */
#include "lower/lower.h"

bool mc_counts(const mc_node *n)
{
    double start = 1, step = 0;
    return n->op->form == FORM_ARANGE && n->nin == 3 && n->type.dtype == MC_INT64 &&
           mc_const_number(n->in[0], &start) && start == 0 && mc_const_number(n->in[2], &step) && step == 1;
}

int mc_position_axis(const mc_node *n)
{
    if (mc_counts(n)) {
        return 0;
    }
    if (n->op->form == FORM_DIMSHUFFLE && mc_counts(n->in[0])) {
        for (int i = 0; i < n->attr[0].n; i++) {
            if (n->attr[0].ints[i] == 0) {
                return i;
            }
        }
    }
    return -1;
}

int mc_value_root(const struct mc_program *p, int v)
{
    while (p->value.at[v].view_of >= 0) {
        v = p->value.at[v].view_of;
    }
    return v;
}

static bool known_at_plan_time(const struct mc_program *p, const mc_node *x)
{
    const struct mc_value *v = p->value_of[x->id] < 0 ? NULL : &p->value.at[p->value_of[x->id]];
    return mc_is_const(x) || (v && v->kind == VALUE_INPUT && p->key_input[v->input]) ||
           (v && v->step >= 0 && p->step.at[v->step].kind == STEP_PLAN_TIME);
}

bool mc_part_is_known(const struct mc_program *p, const struct mc_step *st)
{
    bool known = true;
    for (int i = 2; i < st->node[0]->nin; i++) {
        known = known && known_at_plan_time(p, st->node[0]->in[i]);
    }
    return known;
}

void mc_program_free(struct mc_program *p)
{
    for (size_t i = 0; i < p->step.n; i++) {
        mc_kernel_free(p->step.at[i].kernel);
    }
    VEC_FREE(p->step);
    VEC_FREE(p->value);
    mc_free(p->value_of);
    mc_arena_free(&p->arena);
    *p = (struct mc_program){ 0 };
}
