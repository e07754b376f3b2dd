/* memory.c: places all intermediate values of a shape plan in one arena. A value is live from the step that
 * makes it to the last step that reads it or a view of it. Blocks are placed first fit in the order of steps,
 * or largest first if that needs clearly less memory. A map kernel may write over a source whose last read it
 * is, unless the step may have to be repeated by the reference. The workspace of a step is placed in a gap
 * between the live blocks, or after the last one. Where steps may run concurrently on a GPU, freed memory is
 * not reused for some steps: a step would have to wait for the earlier user of its memory.  There, what a
 * collective reads and makes is never reused: it runs beside all steps after it.
 *
 * Invariant: two blocks that are live at the same step do not overlap. */
#include "schedule/schedule.h"
#include "exec/heavy/heavy.h"
#include <stdlib.h>

/* Steps until memory is reused where steps may run concurrently. */
enum { REUSE_DISTANCE = 8 };
/* Bytes of the arena up to which steps run concurrently if the flag says auto: its values stay in the GPU's
 * L2 cache, and many steps do not fill the GPU. */
enum { SMALL = 64 << 20 };

struct arena {
    mc_blocks *all;     /* in the order of allocation */
    VEC(int) live;      /* the live ones of these, sorted by address */
    int *of;            /* by value: its block; -1: it has none */
    bool *stays;        /* by value: its memory is not reused */
    int64_t front, top; /* front: bytes reserved at the start for the inputs that are sent to a GPU */
    int reuse_distance;          /* steps before freed memory is reused */
};

static int64_t rounded(size_t n)
{
    return (int64_t)mc_work_rounded(n);
}

static struct arena arena_of(const struct mc_function *f, struct mc_shape_plan *p)
{
    const int64_t front = f->code->backend->input_bytes ? rounded(f->code->backend->input_bytes(f)) : 0;
    return (
        struct arena){ .all = &p->block, .front = front, .top = front, .reuse_distance = p->reuse_distance };
}

static void free_block(struct arena *a, int step)
{
    size_t k = 0;
    for (size_t i = 0; i < a->live.n; i++) {
        if (a->all->at[a->live.at[i]].last >= step) {
            a->live.at[k++] = a->live.at[i];
        }
    }
    a->live.n = k;
}

/* The lowest gap between live blocks that is large enough; *before: number of live blocks before it. */
static int64_t find_gap(const struct arena *a, int64_t size, size_t *before)
{
    int64_t at = a->front;
    size_t i = 0;
    for (; i < a->live.n; i++) {
        const struct mc_block *b = &a->all->at[a->live.at[i]];
        if (b->at - at >= size) {
            break;
        }
        at = MC_MAX(at, b->at + b->size);
    }
    *before = i;
    return at;
}

/* The last step at which a block is live if step `last` is the last one to read its value. */
static int bytes_live(const struct arena *a, int last)
{
    return last < INT32_MAX - a->reuse_distance ? last + a->reuse_distance : last;
}

static bool block_begins(struct arena *a, size_t i, int block)
{
    if (!VEC_PUSH(a->live, block)) {
        return false;
    }
    memmove(&a->live.at[i + 1], &a->live.at[i], (a->live.n - 1 - i) * sizeof *a->live.at);
    a->live.at[i] = block;
    return true;
}

/* Allocates a block. Returns its number, or a negative number if out of memory. */
static int allocate_gap(struct arena *a, int64_t size, int step, int last)
{
    size_t i;
    const struct mc_block b = { find_gap(a, size, &i), size, step, bytes_live(a, last) };
    if (!VEC_PUSH(*a->all, b) || !block_begins(a, i, (int)a->all->n - 1)) {
        return -1;
    }
    a->top = MC_MAX(a->top, b.at + size);
    return (int)a->all->n - 1;
}

#ifndef MC_RUNTIME
/* The value of which the step sets a part, if no step reads it later and its memory may be written to; -1. */
static int dying_whole(const struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_program *pr = &f->code->program;
    const mc_node *n = pr->step.at[step].node[0];
    const int x = pr->value_of[n->in[0]->id], y = pr->value_of[n->in[1]->id];
    return x >= 0 && y >= 0 && pr->value.at[x].kind == VALUE_TEMP && pr->value.at[x].view_of < 0 &&
                   pr->value.at[x].last <= step && p->slot[x].base == BASE_ARENA && !p->slot[x].inside &&
                   mc_value_root(pr, y) != x && f->code->mode != MODE_DEBUG
               ? x
               : -1;
}

#endif
/* A source of the step whose memory the result v may take over: this step is the last to read it, it has the
 * same size and layout, and is read element by element. The product that an epilogue reads has no last step.
 * -1: none. */
static int dying_source(const struct mc_function *f, const struct mc_shape_plan *p, const struct arena *a,
                        int step, int v)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_step *st = &pr->step.at[step];
#ifndef MC_RUNTIME
    if (f->code->backend->starts && mc_step_sets_part(st)) {
        return dying_whole(f, p, step);
    }
#endif
    if (!st->kernel || st->kernel->mode != KERNEL_MAP || st->kernel->bounded || f->code->mode == MODE_DEBUG ||
        !mc_step_compiled(f, step)) {
        return -1;
    }
    for (size_t i = 0; i < st->kernel->operand.n; i++) {
        const struct mc_koperand *o = &st->kernel->operand.at[i];
        int src = o->dst || o->index ? -1 : st->operand[i];
        if (src < 0 || pr->value.at[src].kind != VALUE_TEMP || pr->value.at[src].last > step ||
            p->slot[src].base != BASE_ARENA || mc_heavy_reads(f, st, src) ||
            mc_dtypes[o->dtype].size != mc_dtypes[p->slot[v].type.dtype].size ||
            o->varies != st->kernel->varies ||
            !mc_dims_equal(p->slot[src].type.rank, p->slot[src].type.dims, p->slot[v].type.rank,
                           p->slot[v].type.dims)) {
            continue;
        }
        bool alone = true; /* the kernel reads no other view of it, and no other result took it over */
        for (size_t k = 0; k < st->kernel->operand.n; k++) {
            int other = st->kernel->operand.at[k].index ? -1 : st->operand[k];
            if (k != i && other >= 0 &&
                (mc_value_root(pr, other) == src ||
                 (other != v && a->of[other] == a->of[src] && st->kernel->operand.at[k].dst))) {
                alone = false;
            }
        }
        if (alone) {
            return src;
        }
    }
    return -1;
}

/* The output in whose own memory v is made directly, or -1.  v must be exactly one output, not a borrowed
 * one, and no update; and no view of v may be an output. */
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

/* Has value v memory already, which one of its parts needed before? */
static bool placed(const struct mc_shape_plan *p, const struct arena *a, int v)
{
    return a->of[v] >= 0 || p->slot[v].base == BASE_OUTPUT;
}

/* Places result v. heavy: a solver's result, which must not overwrite a source, since the epilogue still
 * reads the sources. */
static mc_status place_result(struct mc_function *f, struct mc_shape_plan *p, struct arena *a, int step,
                              int v, bool heavy)
{
    const struct mc_program *pr = &f->code->program;
    struct mc_slot *slot = &p->slot[v];
    if (slot->inside) { /* the first part allocates the memory of the join */
        const int whole = slot->inside - 1;
        TRY(placed(p, a, whole) ? MC_OK : place_result(f, p, a, step, whole, false));
        slot->base = p->slot[whole].base;
        slot->index = p->slot[whole].index;
        slot->loose = p->slot[whole].loose;
        slot->offset = slot->part;
        a->of[v] = a->of[whole];
        return MC_OK;
    }
    if (placed(p, a, v)) {
        return MC_OK;
    }
    const int out = pr->value.at[v].is_output ? direct_output(f, pr, v) : -1;
    if (out >= 0 && (f->is_body || !f->code->device->space || f->output[out].on_device)) {
        slot->base = BASE_OUTPUT;
        slot->index = out;
        slot->loose = f->is_body &&
                      mc_slot_bytes(slot) % MC_ALIGNED; /* it begins at a multiple of its bytes */
        return MC_OK;
    }
#ifndef MC_RUNTIME
    const int shared = heavy ? -1 : mc_update_aliases(f, p, step, v);
    if (shared >= 0) {
        slot->base = BASE_SHARED;
        slot->index = shared;
        return MC_OK;
    }
#endif
    int last = a->stays[v] ? INT32_MAX : MC_MAX(pr->value.at[v].last, step),
        src = heavy ? -1 : dying_source(f, p, a, step, v);
    slot->base = BASE_ARENA;
    if (src >= 0) {
        a->of[v] = a->of[src];
        a->all->at[a->of[v]].last = bytes_live(a, last);
        return MC_OK;
    }
    if (f->code->mode == MODE_DEBUG) {
        last = 0x7fffffff; /* nothing is freed, so that each step can be repeated */
    }
    a->of[v] = allocate_gap(a, rounded(mc_slot_bytes(slot)), step, last);
    return a->of[v] < 0 ? MC_EMEMORY : MC_OK;
}

/* A view gets the base of its root. Its offset was relative to the root. */
static void place_view(const struct mc_program *pr, struct mc_shape_plan *p, const struct mc_step *st)
{
    struct mc_slot *to = &p->slot[st->dst[0]];
    const int root = mc_memory_of(pr, p, st->src[0]);
    if (to->base != BASE_FIXED) {
        to->base = p->slot[root].base;
        to->index = p->slot[root].index;
        to->loose |= p->slot[root].loose;
        to->offset += p->slot[root].offset;
    }
}

/* Places the results of a step. */
static mc_status place_results(struct mc_function *f, struct mc_shape_plan *p, struct arena *a, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    mc_status s = MC_OK;
    if (st->kind == STEP_PLAN_TIME || st->kind == STEP_TYPE ||
        (st->kind == STEP_VIEW && !p->slot[st->dst[0]].own)) {
        return MC_OK;
    }
    if (mc_heavy_is_skipped(&p->step[step])) {
        for (int k = 0; k < st->ndst; k++) {
            p->slot[st->dst[k]].base = BASE_TYPE;
        }
        return MC_OK;
    }
    const int product = st->heavy && st->kernel ? st->operand[st->product] : -1;
    const bool fused = p->step[step].heavy && p->step[step].heavy->epilogue.by_solver;
    if (fused) {
        p->slot[product].base = BASE_TYPE;
    } else if (product >= 0) { /* placed first: the epilogue may write over it */
        s = place_result(f, p, a, step, product, true);
    }
    for (int k = 0; k < st->ndst && s == MC_OK; k++) {
        s = st->dst[k] == product ? s : place_result(f, p, a, step, st->dst[k], fused);
    }
    return s;
}

/* Places what is copied before all steps: its memory is live from the first one on. */
static mc_status place_ahead(struct mc_function *f, struct mc_shape_plan *p, struct arena *a)
{
    for (int i = 0; p->moves && i < (int)f->code->program.step.n; i++) {
        const int v = mc_step_is_ahead(p, i) ? f->code->program.step.at[i].dst[0] : -1;
        TRY(v >= 0 ? place_result(f, p, a, i, v, false) : MC_OK);
        if (v >= 0 && a->of[v] >= 0) {
            a->all->at[a->of[v]].first = 0;
        }
    }
    return MC_OK;
}

/* ---- the largest first ---- */

/* the most blocks for which this is tried: its time is quadratic */
enum { MANY = 2000 };
static const double clearly = 0.95; /* largest first is used if it needs less than this part of first fit */

static int by_size(const void *a_, const void *b_)
{
    const struct mc_block *a = *(const struct mc_block *const *)a_, *b = *(const struct mc_block *const *)b_;
    return a->size != b->size     ? (a->size > b->size ? -1 : 1)
           : a->first != b->first ? a->first - b->first
           : a < b                ? -1
                                  : a > b;
}

/* Places each block into the lowest gap between the blocks placed before it that are live with it. */
static bool largest_first(mc_blocks *all, int64_t front, int64_t *top)
{
    struct mc_block **order = mc_alloc((all->n + 1) * sizeof *order, "plan");
    mc_blocks placed = { 0 }; /* sorted by address */
    bool good = order != NULL;
    *top = front;
    for (size_t i = 0; i < all->n && good; i++) {
        order[i] = &all->at[i];
    }
    if (good) {
        qsort(order, all->n, sizeof(struct mc_block *), by_size);
    }
    for (size_t i = 0; i < all->n && good; i++) {
        struct mc_block *b = order[i];
        int64_t at = front;
        for (size_t k = 0; k < placed.n && placed.at[k].at - at < b->size; k++) {
            const struct mc_block *o = &placed.at[k];
            at = o->first <= b->last && b->first <= o->last ? MC_MAX(at, o->at + o->size) : at;
        }
        b->at = at;
        *top = MC_MAX(*top, at + b->size);
        good = VEC_PUSH(placed, *b);
        for (size_t k = placed.n - 1; good && k > 0 && placed.at[k - 1].at > at; k--) {
            placed.at[k] = placed.at[k - 1];
            placed.at[k - 1] = *b;
        }
    }
    VEC_FREE(placed);
    mc_free(order);
    return good;
}

/* Switches to largest first if that needs clearly less. False: out of memory. */
static bool choose_packing(struct arena *a)
{
    mc_blocks other = { 0 };
    int64_t top = a->top;
    bool good = a->all->n == 0 || VEC_RESERVE(other, a->all->n);
    if (good && a->all->n > 0) {
        memcpy(other.at, a->all->at, a->all->n * sizeof *other.at);
        other.n = a->all->n;
        good = largest_first(&other, a->front, &top);
    }
    if (good && (double)top < clearly * (double)a->top) {
        memcpy(a->all->at, other.at, other.n * sizeof *other.at);
        a->top = top;
    }
    VEC_FREE(other);
    return good;
}

static void assign_offsets(const struct mc_program *pr, struct mc_shape_plan *p, const struct arena *a)
{
    for (size_t v = 0; v < pr->value.n; v++) {
        const struct mc_slot *at = &p->slot[v];
        p->slot[v].offset = a->of[v] >= 0 ? a->all->at[a->of[v]].at + at->part : at->offset;
    }
    for (size_t i = 0; i < pr->step.n; i++) {
        if (pr->step.at[i].kind == STEP_VIEW && !p->slot[pr->step.at[i].dst[0]].own) {
            place_view(pr, p, &pr->step.at[i]);
        }
    }
}

/* What collectives of a device read and make. */
static void find_stays(const struct mc_function *f, bool *stays)
{
    const struct mc_program *pr = &f->code->program;
    for (size_t i = 0; f->code->device->space && i < pr->step.n; i++) {
        const struct mc_step *st = &pr->step.at[i];
        if (st->nnode == 1 && st->node[0]->op->form == FORM_RANKS) {
            for (int k = 0; k < st->nsrc; k++) {
                stays[mc_value_root(pr, st->src[k])] = true;
            }
            for (int k = 0; k < st->ndst; k++) {
                stays[st->dst[k]] = true;
            }
        }
    }
}

static mc_status place(struct mc_function *f, struct mc_shape_plan *p, int reuse_distance)
{
    const struct mc_program *pr = &f->code->program;
    p->reuse_distance = reuse_distance;
    p->block.n = 0;
    struct arena a = arena_of(f, p);
    a.of = mc_alloc((pr->value.n + 1) * sizeof *a.of, "plan");
    a.stays = mc_calloc(pr->value.n + 1, sizeof *a.stays, "plan");
    mc_status s = a.of && a.stays ? MC_OK : MC_EMEMORY;
    if (s == MC_OK) {
        find_stays(f, a.stays);
    }
    for (size_t v = 0; v < pr->value.n && s == MC_OK; v++) {
        a.of[v] = -1;
    }
    s = s < 0 ? s : place_ahead(f, p, &a);
    for (size_t i = 0; i < pr->step.n && s == MC_OK; i++) {
        free_block(&a, (int)i);
        s = place_results(f, p, &a, (int)i);
    }
    if (s == MC_OK && p->block.n <= MANY) {
        s = choose_packing(&a) ? MC_OK : MC_EMEMORY;
    }
    if (s == MC_OK) {
        assign_offsets(pr, p, &a);
    }
    p->arena = p->memory = (size_t)a.top;
    mc_free(a.of);
    mc_free(a.stays);
    VEC_FREE(a.live);
    return s;
}

static bool sets_parts(const struct mc_program *pr)
{
    bool so = false;
    for (size_t i = 0; i < pr->step.n && !so; i++) {
        so = mc_step_sets_part(&pr->step.at[i]);
    }
    return so;
}

/* Steps run concurrently if their values still fit when memory is reused later.  If the flag says auto, they
 * do so only if that is little memory and no part of a variable is set, which is done in place only in
 * order. */
mc_status mc_plan_memory(struct mc_function *f, struct mc_shape_plan *p)
{
    enum mc_concurrent (*const asked)(void) = f->code->backend->concurrent;
    const enum mc_concurrent way = asked ? asked() : CONCURRENT_NEVER;
    const size_t most = way == CONCURRENT_ALWAYS ? f->code->device->memory / 4 : SMALL,
                 slots = f->code->program.value.n * sizeof *p->slot;
    const bool may = way == CONCURRENT_ALWAYS ||
                     (way == CONCURRENT_IF_SMALL && !sets_parts(&f->code->program));
    p->concurrent = may ? way : CONCURRENT_NEVER;
    struct mc_slot *before = may ? mc_alloc(slots + 1, "plan") : NULL; /* the slots that are not placed yet */
    mc_status s = may && !before ? MC_EMEMORY : MC_OK;
    if (before) {
        memcpy(before, p->slot, slots);
        s = place(f, p, REUSE_DISTANCE);
    }
    if (s == MC_OK && (!may || p->arena > most)) {
        p->concurrent = CONCURRENT_NEVER;
        if (before) {
            memcpy(p->slot, before, slots);
        }
        s = place(f, p, 0);
    }
    mc_free(before);
    return s;
}

/* ---- workspaces ---- */

/* Updates the live blocks to those of the first n that are live at the step or within `reuse_distance` steps
 * of it. *next: the first block that has not begun by then. False: out of memory. */
static bool update_live(struct arena *a, int step, size_t n, size_t *next)
{
    free_block(a, step);
    for (; *next < n && a->all->at[*next].first <= step + a->reuse_distance; ++*next) {
        size_t k = 0;
        while (k < a->live.n && a->all->at[a->live.at[k]].at < a->all->at[*next].at) {
            k++;
        }
        if (a->all->at[*next].last >= step && !block_begins(a, k, (int)*next)) {
            return false;
        }
    }
    return true;
}

mc_status mc_plan_workspaces(const struct mc_function *f, struct mc_shape_plan *p)
{
    struct arena a = arena_of(f, p);
    const size_t values = p->block.n;
    size_t next = 0, before;
    bool good = true;
    for (int i = 0; i < (int)f->code->program.step.n && good; i++) {
        struct mc_step_plan *sp = &p->step[i];
        good = update_live(&a, i, values, &next);
        sp->workspace_at = (size_t)find_gap(&a, rounded(sp->workspace), &before);
        p->memory = MC_MAX(p->memory, sp->workspace_at + sp->workspace);
        if (good && a.reuse_distance && sp->workspace) {
            good = VEC_PUSH(p->block, ((struct mc_block){ (int64_t)sp->workspace_at, rounded(sp->workspace),
                                                          i, bytes_live(&a, i) })) &&
                   block_begins(&a, before, (int)p->block.n - 1);
        }
    }
    VEC_FREE(a.live);
    VEC_FREE(p->block);
    return good ? MC_OK : MC_EMEMORY;
}
