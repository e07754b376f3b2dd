/* row_axes.c: is the body of a loop row-wise (band.h), and along which axis are the rows of each value?
 *
 * Rows begin at axis 0 of the states, and of the sequences' elements of that size.  A constant has rows if a
 * map combines it with rows along an axis of that size.  Each step hands them on, or mixes them.
 *
 * Invariant: what is not known to keep rows separate is said to mix them. */
#include "exec/heavy/heavy.h"
#include "schedule/band.h"

enum { NO_ROWS = -1, MIXED = -2 };

struct finder {
    const struct mc_band *all;
    const struct mc_program *pr;
    const struct mc_slot *slot;
    int64_t rows;
    int *axis;
    bool *cut;                  /* by input: a constant that has rows */
    bool again;                 /* another constant has */
};

/* ---- views ---- */

/* Bytes from the first element to the lowest one and behind the highest one, without those along axis a. */
static void spread_of(const struct mc_slot *at, int a, int64_t spread[2])
{
    spread[0] = 0;
    spread[1] = (int64_t)mc_dtypes[at->type.dtype].size;
    for (int i = 0; i < at->type.rank; i++) {
        const int64_t by = i == a ? 0 : (at->type.dims[i] - 1) * at->strides[i];
        spread[by > 0] += by;
    }
}

/* Rows that do not overlap in memory are found by their distance: a view has them along an axis of the same
 * size and stride if all else of it lies in the first row. */
static int view_axis(const struct mc_slot *from, const struct mc_slot *to, int a)
{
    const int64_t rows = from->type.dims[a], stride = from->strides[a];
    int64_t spread[2];
    if (to->own) { /* a reshape, which keeps the order of elements */
        return a == 0 && to->type.rank > 0 && to->type.dims[0] == rows ? 0 : MIXED;
    }
    spread_of(from, a, spread);
    bool found = spread[0] == 0 && spread[1] <= stride;
    int b = 0;
    while (found && b < to->type.rank && !(to->type.dims[b] == rows && to->strides[b] == stride)) {
        b++;
    }
    if (!found || b == to->type.rank) {
        return MIXED;
    }
    const int64_t first = to->offset - from->offset;
    spread_of(to, b, spread);
    return first + spread[0] >= 0 && first + spread[1] <= stride ? b : MIXED;
}

/* ---- steps ---- */

/* The constant that v is, if it can have rows along the axis: then all is looked at once more. */
static bool cut_constant(struct finder *d, int v, int axis)
{
    const struct mc_value *x = &d->pr->value.at[v];
    const struct mc_loop *l = d->all->l;
    if (x->kind != VALUE_INPUT || x->input < l->nsequence + l->nstate || axis != 0 || d->cut[x->input] ||
        l->body->key[x->input]) {
        return false;
    }
    d->cut[x->input] = d->again = true;
    return true;
}

/* The axis of a kernel's space that the rows are along. */
static int kernel_axis(const struct finder *d, const struct mc_step *st)
{
    int a = NO_ROWS;
    for (size_t k = 0; k < st->kernel->operand.n; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        const int of = o->dst || o->index ? NO_ROWS : d->axis[st->operand[k]];
        a = of == NO_ROWS || of == a ? a : a == NO_ROWS ? of : MIXED;
    }
    return a;
}

static bool kernel(struct finder *d, const struct mc_step *st)
{
    const struct mc_kernel *k = st->kernel;
    const int a = kernel_axis(d, st);
    const unsigned bit = a < 0 ? 0 : 1u << a;
    bool good = a != MIXED && !mc_kernel_checks(k) && !k->bounded && !(k->reduced & bit);
    for (size_t i = 0; i < k->operand.n && good; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        const int v = st->operand[i];
        if (o->dst) {
            const bool varies = (k->val.at[o->val].varies & bit) != 0;
            d->axis[v] = varies ? a : NO_ROWS;
            good = !o->column_sums && (!varies || d->slot[v].type.dims[a] == d->rows);
        } else if (o->varies & bit) {
            good = !o->index && (d->axis[v] == a || cut_constant(d, v, a));
        }
    }
    return good;
}

/* The rows are those of the left operand, whose right one is the same for all of them. */
static bool product(struct finder *d, const struct mc_step *st)
{
    const struct mc_function *f = d->all->body;
    const struct mc_heavy *h = d->all->plan->step[st - d->pr->step.at].heavy;
    if (st->heavy->op->solvers != SOLVERS_GEMM || !h || h->idle || !h->plan) {
        return false;
    }
    const int a = mc_heavy_source(f, st->heavy, 0), b = mc_heavy_source(f, st->heavy, 1),
              rank = d->slot[a].type.rank;
    d->axis[mc_heavy_result(st, 0)] = d->axis[a];
    return d->axis[b] == NO_ROWS && (d->axis[a] == NO_ROWS || d->axis[a] == rank - 2);
}

/* A join that its parts are made in. */
static bool join(struct finder *d, const struct mc_step *st)
{
    const mc_node *n = st->node[0];
    const int a = d->axis[st->src[0]];
    bool good = st->nnode == 1 && n->op->form == FORM_JOIN && a >= 0;
    for (int i = 0; i < st->nsrc && good; i++) {
        good = d->axis[st->src[i]] == a;
    }
    d->axis[st->dst[0]] = a;
    return good && d->slot[st->dst[0]].type.dims[a] == d->rows;
}

static bool step(struct finder *d, int i)
{
    const struct mc_step *st = &d->pr->step.at[i];
    const struct mc_step_plan *sp = &d->all->plan->step[i];
    switch (st->kind) {
    case STEP_KERNEL: return kernel(d, st);
    case STEP_HEAVY: return product(d, st) && (!st->kernel || kernel(d, st));
    case STEP_HOST: return !sp->exec && !sp->epilogue && join(d, st);
    case STEP_VIEW:
        if (d->axis[st->src[0]] >= 0) {
            d->axis[st->dst[0]] = view_axis(&d->slot[st->src[0]], &d->slot[st->dst[0]], d->axis[st->src[0]]);
        }
        return d->axis[st->dst[0]] != MIXED;
    case STEP_PLAN_TIME:
    case STEP_TYPE: break;
    }
    return true;
}

/* ---- the body ---- */

static int input_axis(const struct finder *d, int v)
{
    const struct mc_loop *l = d->all->l;
    const struct mc_type *t = &d->slot[v].type;
    const int i = d->pr->value.at[v].input;
    const bool fits = t->rank > 0 && t->dims[0] == d->rows,
               state = i >= l->nsequence && i < l->nsequence + l->nstate;
    return fits && (i < l->nsequence || state || d->cut[i]) ? 0 : state ? MIXED : NO_ROWS;
}

/* Once through all steps. */
static bool look(struct finder *d)
{
    bool good = true;
    d->again = false;
    for (size_t v = 0; v < d->pr->value.n && good; v++) {
        d->axis[v] = d->pr->value.at[v].kind == VALUE_INPUT ? input_axis(d, (int)v) : NO_ROWS;
        good = d->axis[v] != MIXED;
    }
    for (int i = 0; i < (int)d->pr->step.n && good; i++) {
        good = step(d, i);
    }
    for (int j = 0; j < d->pr->noutput && good; j++) {
        good = d->axis[d->pr->output[j]] == 0;
    }
    return good;
}

mc_status mc_row_axes(const struct mc_band *all, int *axis, bool *is)
{
    const struct mc_loop *l = all->l;
    struct finder d = { .all = all, .pr = &all->body->code->program, .slot = all->plan->slot, .axis = axis };
    *is = false;
    if (l->nstate == 0 || l->until || d.pr->noutput == 0 || d.pr->dynamic ||
        d.slot[d.pr->output[0]].type.rank == 0) {
        return MC_OK;
    }
    d.rows = d.slot[d.pr->output[0]].type.dims[0];
    d.cut = mc_calloc((size_t)l->body->nin + 1, sizeof *d.cut, "loop");
    if (!d.cut) {
        return MC_EMEMORY;
    }
    do {
        *is = d.rows > 1 && look(&d);
    } while (d.again);
    mc_free(d.cut);
    return MC_OK;
}
