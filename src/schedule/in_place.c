/* in_place.c: in-place updates on a GPU: the new value of a shared variable is written over the old one. This
 * saves a second copy of all weights and the pass that copies them.  Where a part of a variable is set or
 * added to, only that part is written.
 *
 * Invariant: after the step that writes the new value, no step reads the old one, and no step may fail,
 * since a failed call makes no update. If an earlier step failed, the kernel does not write (`held` of
 * mc_grid_head). Where steps may run concurrently, such a kernel waits for all checks
 * (exec/cuda/capture.c), and parts are not set in place. */
#include "schedule/schedule.h"
#include "exec/heavy/heavy.h"

static int only_update(const struct mc_program *pr, int v)
{
    int found = -1;
    for (int i = 0; i < pr->nupdate; i++) {
        if (pr->update[i] == v) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    return found;
}

/* The value that the update replaces; -1: the program does not read it. */
static int old_value(const struct mc_function *f, int update)
{
    const struct mc_program *pr = &f->code->program;
    int found = -1;
    for (int v = 0; v < (int)pr->value.n && found < 0; v++) {
        found = pr->value.at[v].kind == VALUE_SHARED && pr->value.at[v].node->shared == f->target[update]
                    ? v
                    : -1;
    }
    return found;
}

static bool is_output(const struct mc_program *pr, const struct mc_shape_plan *p, int v)
{
    bool yes = false;
    for (int i = 0; i < pr->noutput; i++) {
        yes |= mc_memory_of(pr, p, pr->output[i]) == v;
    }
    return yes;
}

/* The last step that reads the memory of v, which results and updates do after all steps.  The solver of a
 * step may do the step before, too. */
static int last_read(const struct mc_program *pr, const struct mc_shape_plan *p, int v)
{
    int last = is_output(pr, p, v) ? INT32_MAX : -1;
    for (int i = 0; i < pr->nupdate; i++) {
        last = mc_memory_of(pr, p, pr->update[i]) == v ? INT32_MAX : last;
    }
    for (int i = 0; i < (int)pr->step.n; i++) {
        for (int k = i; k >= 0; k = pr->step.at[k].before) {
            for (int j = 0; j < pr->step.at[k].nsrc; j++) {
                last = mc_memory_of(pr, p, pr->step.at[k].src[j]) == v ? MC_MAX(last, i) : last;
            }
        }
    }
    return last;
}

/* Does the step read the old value only at the element that it writes? */
static bool reads_own_element(const struct mc_function *f, const struct mc_step *st, int old)
{
    const struct mc_program *pr = &f->code->program;
    bool own = !mc_heavy_reads(f, st, old);
    for (size_t k = 0; k < st->kernel->operand.n && own; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        const int v = o->index || o->dst ? -1 : st->operand[k];
        own = v < 0 || mc_value_root(pr, v) != old || (v == old && o->varies == st->kernel->varies);
    }
    return own;
}

/* Does the step set or add to a part of `old`, of which it reads nothing else? */
static bool sets_part(const struct mc_function *f, const struct mc_shape_plan *p, int step, int old)
{
    const struct mc_program *pr = &f->code->program;
    const mc_node *n = pr->step.at[step].node[0];
    const int y = pr->value_of[n->in[1]->id];
    bool stored = true; /* so it is no step for the reference, which does not know of failed checks */
    for (int i = 1; i < n->nin && (i < 2 || !mc_part_is_known(pr, &pr->step.at[step])); i++) {
        const int v = pr->value_of[n->in[i]->id];
        stored = stored && v >= 0 && p->slot[v].base != BASE_NONE && p->slot[v].base != BASE_TYPE;
    }
    return stored && pr->value_of[n->in[0]->id] == old && mc_memory_of(pr, p, y) != old;
}

int mc_update_aliases(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    const bool may = f->code->backend->in_place && f->code->mode == MODE_FAST_RUN && !pr->dynamic &&
                     !f->skip_updates && !(p->concurrent && mc_step_sets_part(st));
    const int update = may ? only_update(pr, v) : -1;
    const bool maps = st->kernel && st->kernel->mode == KERNEL_MAP;
    const int fails = maps ? step : step + 1; /* what sets a part fails before it writes */
    if (update < 0 || !(maps || mc_step_sets_part(st)) || fails <= pr->last_check || is_output(pr, p, v)) {
        return -1;
    }
    const int old = old_value(f, update), last = old < 0 ? -1 : last_read(pr, p, old);
    const struct mc_slot *to = old < 0 ? NULL : &p->slot[old], *from = &p->slot[v];
    if (!to || to->base != BASE_SHARED || to->type.dtype != from->type.dtype || !mc_slot_contiguous(to) ||
        !mc_dims_equal(to->type.rank, to->type.dims, from->type.rank, from->type.dims) || last > step ||
        (maps ? last == step && !reads_own_element(f, st, old) : !sets_part(f, p, step, old))) {
        return -1;
    }
    return to->index;
}

/* Copies inputs that share memory with an updated variable: an input has the value from the start of the
 * call. */
mc_status mc_inputs_unalias(struct mc_function *f)
{
    for (int i = 0; i < f->code->program.ninput; i++) {
        bool meets = false;
        for (int u = 0;
             u < f->code->program.nupdate && !meets && mc_array_space(f->arg[i]) == f->code->device->space;
             u++) {
            meets = mc_array_overlaps(f->arg[i], f->target[u]->value);
        }
        if (meets) {
            mc_array *copy = mc_array_copy(f->arg[i]);
            if (!copy) {
                return mc_last_status();
            }
            mc_array_unref(&f->arg[i]);
            f->arg[i] = copy;
        }
    }
    return MC_OK;
}
