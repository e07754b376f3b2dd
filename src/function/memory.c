/* memory.c: one arena for all intermediates of a plan.  A value lives from the step that makes it to the
 * last that reads it, through views too; first fit into the gaps.  Work that only maps may write over a
 * source that dies with it, unless the reference may have to do it again.  What a step needs while it runs
 * lies in the gaps there are then, or behind the last value alive.
 *
 * Invariant: two blocks that are alive at one step lie apart. */
#include "function/far.h"
#include <stdlib.h>

enum { ALIGN = 64 };

struct arena {
    mc_blocks live;     /* sorted by address */
    mc_blocks *all;     /* those that are alive no more */
    int64_t top;
};

static int64_t rounded(size_t n)
{
    return (int64_t)((n + ALIGN - 1) / ALIGN * ALIGN);
}

static bool give_back(struct arena *a, int step)
{
    size_t k = 0;
    bool good = true;
    for (size_t i = 0; i < a->live.n; i++) {
        if (a->live.at[i].last >= step) {
            a->live.at[k++] = a->live.at[i];
        } else {
            good = VEC_PUSH(*a->all, a->live.at[i]) && good;
        }
    }
    a->live.n = k;
    return good;
}

/* The lowest gap that is large enough among blocks sorted by address; *before: how many of them lie in front of it. */
static int64_t gap(const mc_blocks *b, int64_t size, size_t *before)
{
    int64_t at = 0;
    size_t i = 0;
    for (; i < b->n && b->at[i].at - at < size; i++) {
        at = MC_MAX(at, b->at[i].at + b->at[i].size);
    }
    *before = i;
    return at;
}

static bool insert(mc_blocks *to, size_t i, struct mc_block b)
{
    if (!VEC_PUSH(*to, b)) {
        return false;
    }
    memmove(&to->at[i + 1], &to->at[i], (to->n - 1 - i) * sizeof b);
    to->at[i] = b;
    return true;
}

static int64_t take(struct arena *a, int64_t size, int step, int last)
{
    size_t i;
    const int64_t at = gap(&a->live, size, &i);
    if (!insert(&a->live, i, (struct mc_block){ at, size, step, last })) {
        return -1;
    }
    a->top = MC_MAX(a->top, at + size);
    return at;
}

static int root_of(const struct mc_program *p, int v)
{
    while (p->value.at[v].view_of >= 0) {
        v = p->value.at[v].view_of;
    }
    return v;
}

/* Does the heavy work that a kernel finishes read v?  It does while blocks are finished. */
static bool heavy_reads(const struct mc_function *f, const struct mc_step *st, int v)
{
    bool reads = false;
    for (int i = 0; st->heavy && i < st->heavy->nin; i++) {
        reads |= root_of(&f->code->program, mc_heavy_source(f, st->heavy, i)) == v;
    }
    return reads;
}

/* A source of step s whose memory result v may take over: dies here, same size and layout, read element by element. */
static int dying_source(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    if (!st->kernel || st->kernel->mode != KERNEL_MAP || st->kernel->bounded || f->code->mode == MODE_DEBUG || !mc_step_compiled(f, step)) {
        return -1;
    }
    for (size_t i = 0; i < st->kernel->operand.n; i++) {
        const struct mc_koperand *o = &st->kernel->operand.at[i];
        int src = o->dst || o->index ? -1 : st->operand[i];
        if (src < 0 || pr->value.at[src].kind != VALUE_TEMP || pr->value.at[src].last != step || p->place[src].base != BASE_ARENA ||
            heavy_reads(f, st, src) || mc_dtypes[o->dtype].size != mc_dtypes[p->place[v].type.dtype].size || o->varies != st->kernel->varies ||
            !mc_dims_equal(p->place[src].type.rank, p->place[src].type.dims, p->place[v].type.rank, p->place[v].type.dims)) {
            continue;
        }
        bool alone = true; /* no other view of it in this kernel, and not taken over already */
        for (size_t k = 0; k < st->kernel->operand.n; k++) {
            int other = st->kernel->operand.at[k].index ? -1 : st->operand[k];
            if (k != i && other >= 0 && (root_of(pr, other) == src || (other != v && p->place[other].base == BASE_ARENA &&
                                                                         p->place[other].offset == p->place[src].offset &&
                                                                         st->kernel->operand.at[k].dst))) {
                alone = false;
            }
        }
        if (alone) {
            return src;
        }
    }
    return -1;
}

/* Results the caller wants fresh are made where he wants them, when nothing else needs their memory. */
static int direct_output(const struct mc_function *f, const struct mc_program *pr, int v)
{
    int found = -1;
    for (int i = 0; i < pr->noutput; i++) {
        if (pr->output[i] == v) {
            if (found >= 0 || f->output[i].borrow) {
                return -1;
            }
            found = i;
        }
    }
    for (int i = 0; i < pr->nupdate; i++) {
        if (pr->update[i] == v) {
            return -1;
        }
    }
    for (size_t k = 0; k < pr->value.n; k++) {
        if (pr->value.at[k].view_of == v && pr->value.at[k].is_output) {
            return -1;
        }
    }
    return found;
}

/* heavy: what a product makes, before its finisher has read anything: it writes over no source. */
static mc_status place_result(struct mc_function *f, struct mc_shape_plan *p, struct arena *a, int step, int v, bool heavy)
{
    const struct mc_program *pr = &f->code->program;
    struct mc_spot *place = &p->place[v];
    int out = pr->value.at[v].is_output && !f->code->cuda ? direct_output(f, pr, v) : -1;
    if (out >= 0) {
        place->base = BASE_OUTPUT;
        place->index = out;
        return MC_OK;
    }
    int last = MC_MAX(pr->value.at[v].last, step), src = heavy ? -1 : dying_source(f, p, step, v);
    place->base = BASE_ARENA;
    if (src >= 0) {
        place->offset = p->place[src].offset;
        for (size_t i = 0; i < a->live.n; i++) {
            if (a->live.at[i].at == place->offset) {
                a->live.at[i].last = last;
            }
        }
        return MC_OK;
    }
    if (f->code->mode == MODE_DEBUG) {
        last = 0x7fffffff; /* everything stays, so that each step can be computed again */
    }
    place->offset = take(a, rounded(mc_spot_bytes(place)), step, last);
    return place->offset < 0 ? MC_EMEMORY : MC_OK;
}

/* Views follow their root, whose place is known by now; until here their offsets count from it. */
static void place_view(const struct mc_program *pr, struct mc_shape_plan *p, const struct mc_step *st)
{
    struct mc_spot *to = &p->place[st->dst[0]];
    int root = st->src[0];
    while (pr->value.at[root].view_of >= 0 && !p->place[root].own) {
        root = pr->value.at[root].view_of;
    }
    if (to->base != BASE_FIXED) {
        to->base = p->place[root].base;
        to->index = p->place[root].index;
        to->offset += p->place[root].offset;
    }
}

mc_status mc_plan_memory(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    struct arena a = { .all = &p->block };
    const int64_t inputs = f->code->cuda ? rounded(mc_far_inputs(f)) : 0;
    mc_status s = !inputs || take(&a, inputs, 0, 0x7fffffff) >= 0 ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < pr->step.n && s == MC_OK; i++) {
        const struct mc_step *st = &pr->step.at[i];
        s = give_back(&a, (int)i) ? s : MC_EMEMORY;
        if (st->kind == STEP_EARLY || st->kind == STEP_TYPE) {
            continue;
        }
        if (st->kind == STEP_VIEW) {
            if (p->place[st->dst[0]].own) {
                s = place_result(f, p, &a, (int)i, st->dst[0], false);
            } else {
                place_view(pr, p, st);
            }
            continue;
        }
        if (st->heavy && st->kernel) { /* the product first: its finisher may write over it */
            s = place_result(f, p, &a, (int)i, st->operand[st->product], true);
        }
        for (int k = 0; k < st->ndst && s == MC_OK; k++) {
            if (!(st->heavy && st->kernel && st->dst[k] == st->operand[st->product])) {
                s = place_result(f, p, &a, (int)i, st->dst[k], false);
            }
        }
    }
    for (size_t i = 0; i < a.live.n; i++) {
        s = VEC_PUSH(p->block, a.live.at[i]) ? s : MC_EMEMORY;
    }
    p->arena = p->memory = (size_t)a.top;
    VEC_FREE(a.live);
    return s;
}

/* ---- workspaces ---- */

static int by_first(const void *a_, const void *b_)
{
    const struct mc_block *a = a_, *b = b_;
    return a->first != b->first ? a->first - b->first : a->at < b->at ? -1 : a->at > b->at;
}

/* The blocks alive at a step; *next: those that began before it have been here. */
static bool alive(mc_blocks *live, const mc_blocks *all, int step, size_t *next)
{
    size_t k = 0;
    for (size_t i = 0; i < live->n; i++) {
        if (live->at[i].last >= step) {
            live->at[k++] = live->at[i];
        }
    }
    live->n = k;
    for (; *next < all->n && all->at[*next].first <= step; ++*next) {
        for (k = 0; k < live->n && live->at[k].at < all->at[*next].at;) {
            k++;
        }
        if (all->at[*next].last >= step && !insert(live, k, all->at[*next])) {
            return false;
        }
    }
    return true;
}

mc_status mc_plan_workspaces(const struct mc_function *f, struct mc_shape_plan *p)
{
    mc_blocks live = { 0 };
    size_t next = 0, before;
    bool good = true;
    if (p->block.n) {
        qsort(p->block.at, p->block.n, sizeof *p->block.at, by_first);
    }
    for (int i = 0; i < (int)f->code->program.step.n && good; i++) {
        struct mc_step_plan *sp = &p->step[i];
        good = alive(&live, &p->block, i, &next);
        sp->workspace_at = (size_t)gap(&live, rounded(sp->workspace), &before);
        p->memory = MC_MAX(p->memory, sp->workspace_at + sp->workspace);
    }
    VEC_FREE(live);
    VEC_FREE(p->block);
    return good ? MC_OK : MC_EMEMORY;
}
