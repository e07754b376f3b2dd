/* repeat.c: all steps of a loop whose body is one map.  Where no element of a state is read but to make that
 * element anew, the states are updated in place, and each thread runs all steps of its part of the elements,
 * a block that fits the L1 cache at a time.  Other small maps run once a step, by turns from one buffer of a
 * state to the other.
 *
 * Invariant: the elements are those that the map run once a step computes, bit for bit. */
#include "exec/backend.h"
#include "exec/cpu/launch.h"

struct repeat {
    struct mc_running *r;
    const struct mc_repeat *how;
    bool inner;                 /* the steps are the kernel's loop 1 */
    int64_t block;              /* elements at a time */
    int64_t s[3 * MOST_OPERANDS], move[MOST_OPERANDS];
    bool turns[MOST_OPERANDS];
};

/* ---- which bodies ---- */

static int operand_of_state(const struct mc_launch *l, const struct mc_kernel *k, const int *state, int i)
{
    int at = l->nop;
    while (at-- > 0 && !(k->operand.at[at].dst && l->value[at] >= 0 && state[l->value[at]] == i)) {
    }
    return at;
}

/* Do operands a and b of the launch have the same element at each point, and another one at each other
 * point? */
static bool pointwise(const struct mc_launch *l, const struct mc_kernel *k, int a, int b)
{
    bool same = k->operand.at[a].dtype == k->operand.at[b].dtype;
    for (int i = 0; i < 3; i++) {
        const int64_t by = l->s[3 * a + i];
        same &= l->n[i] == 1 || (by != 0 && by == l->s[3 * b + i]);
    }
    for (int d = 0; d < l->nouter; d++) {
        const int64_t by = l->step[a * MC_MAX_RANK + d];
        same &= by != 0 && by == l->step[b * MC_MAX_RANK + d];
    }
    return same;
}

enum mc_repeats mc_launch_repeats(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                                  const int *state)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    if (st->kind != STEP_KERNEL || !mc_is_launch(p->step[step].exec) || st->kernel->mode != KERNEL_MAP ||
        mc_kernel_checks(st->kernel)) {
        return REPEATS_NOT;
    }
    const struct mc_launch *l = (const struct mc_launch *)p->step[step].exec;
    /* a map without elements may have operands that are nowhere */
    bool in_place = true, some = l->units > 0 && l->outer_total > 0;
    for (int i = 0; i < 3; i++) {
        some = some && l->n[i] > 0;
    }
    for (int k = 0; k < l->nop; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        const int v = l->value[k], i = v < 0 ? 0 : state[v];
        if (i) {
            const int made = operand_of_state(l, st->kernel, state, i);
            in_place &= made >= 0 && p->slot[v].offset == 0 && pointwise(l, st->kernel, k, made);
        }
        in_place &= !o->dst || v < 0 || st->kernel->val.at[o->val].element || l->units == 1;
    }
    return l->dense || !some ? REPEATS_NOT
           : in_place        ? REPEATS_IN_PLACE
           : l->threads <= 1 ? REPEATS_BY_TURNS
                             : REPEATS_NOT;
}

/* ---- running ---- */

/* All steps of elements [from, to), as loop 1 of the kernel. */
static void inner_steps(const struct repeat *x, int64_t from, int64_t to, int64_t *err)
{
    const struct mc_launch *l = x->r->l;
    char *p[MOST_OPERANDS + 1];
    p[l->nop] = NULL;
    for (int64_t at = from; at < to; at += x->block) {
        const int64_t n[4] = { MC_MIN(x->block, to - at), x->how->times, 1, 0 };
        for (int k = 0; k < l->nop; k++) {
            const struct mc_koperand *o = &x->r->st->kernel->operand.at[k];
            p[k] = mc_moved(x->r->base[k],
                            at * l->s[3 * k] * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size));
        }
        l->fn(p, x->s, n, err);
    }
}

static void work(void *arg, int64_t from, int64_t to, int thread)
{
    const struct repeat *x = arg;
    const int nop = x->r->l->nop;
    char *base[MOST_OPERANDS + 1];
    struct mc_running mine = *x->r;
    mine.base = base;
    memset(mine.err, 0, sizeof mine.err);
    if (x->inner) {
        inner_steps(x, from, to, mine.err);
    } else {
        memcpy(base, x->r->base, (size_t)nop * sizeof *base);
        for (int64_t t = 0; t < x->how->times; t++) {
            mc_launch_part(&mine, from, to, thread);
            for (int k = 0; k < nop; k++) {
                base[k] = mc_moved(base[k], x->turns[k] && t & 1 ? -x->move[k] : x->move[k]);
            }
        }
    }
    mc_running_tell(x->r, mine.err);
}

/* May the steps be loop 1?  The kernel reads what does not vary along loop 0 before its loops. */
static bool inside(const struct repeat *x)
{
    const struct mc_launch *l = x->r->l;
    const struct mc_kernel *kernel = x->r->st->kernel;
    bool can = l->n[1] == 1 && l->n[2] == 1 && l->outer_total == 1 && kernel->inner >= 0;
    for (int k = 0; k < l->nop; k++) {
        const struct mc_koperand *o = &kernel->operand.at[k];
        const bool element = o->dst ? kernel->val.at[o->val].element : o->varies != 0;
        can &= !x->turns[k] && (x->move[k] == 0 || element) &&
               x->move[k] % (int64_t)mc_dtypes[o->dtype].size == 0;
    }
    return can;
}

/* Elements of a block: all operands of it take half of the L1 cache. */
static int64_t block_of(const struct mc_launch *l)
{
    enum { UNIT = 64, WIDEST = 8 };
    const int64_t most = (int64_t)mc_cpu()->l1d / 2 / (WIDEST * MC_MAX(l->nop, 1));
    return MC_MAX(most / UNIT, 1) * UNIT;
}

mc_status mc_launch_repeat(struct mc_function *f, const struct mc_shape_plan *p, int step,
                           const struct mc_repeat *how, bool *beyond)
{
    static const double WORTH = 20000; /* ns of a thread */
    const struct mc_launch *l = (const struct mc_launch *)p->step[step].exec;
    char *base[MOST_OPERANDS + 1];
    struct mc_running r = { .st = &f->code->program.step.at[step],
                            .l = l,
                            .slot = p->slot,
                            .base = base,
                            .scratch = f->arena + p->step[step].workspace_at };
    struct repeat x = { .r = &r, .how = how, .block = block_of(l) };
    TRY(mc_bases(f, p, l, NULL, base));
    for (int k = 0; k < l->nop; k++) {
        const int v = l->value[k];
        x.move[k] = v < 0 ? 0 : how->move[v];
        x.turns[k] = v >= 0 && how->turns && how->turns[v];
    }
    x.inner = inside(&x);
    for (int k = 0; k < l->nop; k++) {
        x.s[3 * k] = l->s[3 * k];
        x.s[3 * k + 1] = x.move[k] / (int64_t)mc_dtypes[r.st->kernel->operand.at[k].dtype].size;
    }
    const int threads = how->turns || l->units == 1 || l->ns * (double)how->times < 2 * WORTH ? 1
                                                                                              : f->threads;
    if (threads > 1) {
        mc_team_run(work, &x, l->units, l->grain, threads);
    } else {
        work(&x, 0, l->units, 0);
    }
    *beyond = r.err[3] != 0;
    return MC_OK;
}
