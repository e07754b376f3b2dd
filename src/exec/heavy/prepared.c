/* prepared.c: operands that stay the same, and what solver plans keep of them: filters and weights in the
 * order in which a solver reads them.
 *
 * In the body of a loop they are prepared before its first step (schedule/loop.c).  From call to call a
 * shared variable that the function itself does not update stays the same until its version changes, and
 * constants do for good.  A value is prepared when a second call reads it: functions that are called once,
 * or after each update of the variable, neither spend the memory nor write it.
 *
 * Invariant: a call holds the locks of its shared variables, so that no version changes while it runs. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"

static const struct mc_value *root_of(const struct mc_function *f, int v)
{
    return &f->code->program.value.at[mc_value_root(&f->code->program, v)];
}

static bool updates(const struct mc_function *f, const struct mc_shared *s)
{
    for (int i = 0; i < f->code->program.nupdate; i++) {
        if (f->target[i] == s) {
            return true;
        }
    }
    return false;
}

bool mc_heavy_stays(const struct mc_function *f, int v)
{
    const struct mc_value *root = root_of(f, v);
    if (f->code->device->space) {
        return false;
    }
    if (f->is_body) {
        return root->kind == VALUE_CONST || (root->kind == VALUE_INPUT && root->input >= f->first_constant);
    }
    return !f->code->program.dynamic &&
           (root->kind == VALUE_CONST || (root->kind == VALUE_SHARED && !updates(f, root->node->shared)));
}

void mc_heavy_keep(const struct mc_function *f, struct mc_heavy *h, int v)
{
    h->kept.calls = !f->is_body && h->plan->prepare;
    h->kept.of = root_of(f, v)->node->shared;
}

static void drop(struct mc_heavy *h)
{
    mc_free_pages(h->prepared);
    h->prepared = NULL;
}

bool mc_heavy_is_due(struct mc_heavy *h)
{
    struct mc_kept *k = &h->kept;
    const uint64_t version = k->of ? k->of->version : 0;
    const void *at = k->of ? k->of->value->data : NULL;
    if (k->of && k->of->lent) {
        drop(h);
        return false;
    }
    if (!k->seen || k->version != version || k->at != at) {
        drop(h);
        *k = (struct mc_kept){ k->of, true, true, at, version };
        return false;
    }
    if (h->prepared) {
        return false;
    }
    h->prepared = mc_alloc_pages(h->plan->prepared, "prepared");
    return h->prepared != NULL;
}

size_t mc_prepared_memory(const struct mc_function *f, const struct mc_shape_plan *p)
{
    size_t bytes = 0;
    for (int i = 0; i < f->code->nstep; i++) {
        const struct mc_heavy *h = p->step[i].heavy;
        bytes += h && h->kept.calls && h->prepared ? h->plan->prepared : 0;
    }
    return bytes;
}
