/* launch.c: the launch of a kernel at one shape.  Axes of size 1 are dropped and adjacent axes joined; the
 * remaining ones become loops of the kernel, outer loops, and work for threads.
 *
 * Invariant: the order in which numbers are added depends on the shape alone, never on the number of
 * threads. */
#include "exec/cpu/launch.h"

struct axis { int64_t size; bool reduced; int at; };

/* The stride of operand o along axis a of the space, in elements; 0 for a broadcast axis.  An axis of size 1
 * may have any stride in memory.  Its stride is given as 1, since kernels expect stride 1 of an operand that
 * varies along their innermost axis. dense: the operand is a contiguous copy. */
int64_t mc_launch_stride(const struct mc_slot *slot, const struct mc_koperand *o, int v, bool dense, int a)
{
    if (o->index) {
        return o->varies & 1u << a ? 1 : 0;
    }
    const struct mc_slot *p = &slot[v];
    if (!p->type.rank || !(o->varies & 1u << a)) {
        return 0;
    }
    if (p->type.dims[a] == 1) {
        return 1;
    }
    int64_t stride = 1;
    for (int k = p->type.rank; dense && --k > a;) {
        stride *= p->type.dims[k];
    }
    return dense ? stride : p->strides[a] / (int64_t)mc_dtypes[o->dtype].size;
}

/* ---- operands that must be copied to be contiguous ---- */

mc_status mc_dense_plan(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                        struct mc_launch *l)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_kernel *k = st->kernel;
    for (int i = 0; i < (int)k->operand.n && k->inner >= 0; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        if (o->dst || o->index || i == st->product || !(o->varies & 1u << k->inner)) {
            continue;
        }
        const struct mc_slot *at = &p->slot[st->operand[i]];
        if (at->strides[k->inner] == (int64_t)mc_dtypes[o->dtype].size || at->type.dims[k->inner] <= 1) {
            continue;
        }
        if (!l->dense) {
            l->dense = mc_alloc((k->operand.n + 1) * sizeof *l->dense, "plan");
            if (!l->dense) {
                return MC_EMEMORY;
            }
            for (size_t j = 0; j < k->operand.n; j++) {
                l->dense[j] = -1;
            }
        }
        l->dense[i] = (int64_t)l->copies;
        l->copies += (mc_slot_bytes(at) + 63) / 64 * 64;
    }
    return MC_OK;
}

mc_status mc_dense_copy(const struct mc_slot *from, char *src, char *dst)
{
    mc_array *x = mc_array_wrap(from->type.dtype, from->type.rank, from->type.dims, from->strides, src, NULL,
                                NULL);
    mc_array *y = mc_array_wrap(from->type.dtype, from->type.rank, from->type.dims, NULL, dst, NULL, NULL);
    mc_status s = x && y ? mc_array_assign(y, x) : mc_last_status();
    mc_array_unref(&x);
    mc_array_unref(&y);
    return s;
}

/* Sets base[k] to the start of operand k, and makes the contiguous copies. */
mc_status mc_bases(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_launch *l,
                   char *scratch, char **base)
{
    for (int k = 0; k < l->nop; k++) {
        base[k] = l->value[k] < 0 ? NULL : f->ptr[l->value[k]];
        if (l->dense && l->dense[k] >= 0) {
            TRY(mc_dense_copy(&p->slot[l->value[k]], base[k], scratch + l->dense[k]));
            base[k] = scratch + l->dense[k];
        }
    }
    return MC_OK;
}

/* ---- running ---- */

/* Sets p to the operands at position `at` of the outer loops. */
static void position_of(const struct mc_launch *l, char *const *base, int64_t at, char **p)
{
    memcpy(p, base, (size_t)l->nop * sizeof *p);
    for (int d = 0; d < l->nouter && at; d++) {
        int64_t i = at % l->outer[d];
        at /= l->outer[d];
        for (int k = 0; k < l->nop; k++) {
            p[k] = mc_moved(p[k], i * l->step[k * MC_MAX_RANK + d]);
        }
    }
}

static void move(const struct mc_running *r, char **p, int loop, int64_t by)
{
    for (int k = 0; k < r->l->nop; k++) {
        const struct mc_koperand *o = &r->st->kernel->operand.at[k];
        p[k] = mc_moved(p[k],
                        by * r->l->s[3 * k + loop] * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size));
    }
}

/* Runs chunks `from` to `to` of rows, counted along loop 1 and the outer loops. */
static void task_column_sums(struct mc_running *r, int64_t from, int64_t to, char **p)
{
    const struct mc_launch *l = r->l;
    char *base[MOST_OPERANDS + 1];
    int64_t n[4] = { l->n[0], 0, l->n[2], r->stream }, rows = l->n[1] * l->outer_total;
    for (int64_t c = from; c < to; c++) {
        mc_column_sums_bases(r, c, base);
        for (int64_t row = c * l->chunk, end = MC_MIN(row + l->chunk, rows); row < end; row += n[1]) {
            int64_t i = row % l->n[1];
            n[1] = MC_MIN(l->n[1] - i, end - row);
            position_of(l, base, row / l->n[1], p);
            move(r, p, 1, i);
            l->fn(p, l->s, n, r->err);
        }
    }
}

void mc_launch_part(struct mc_running *r, int64_t from, int64_t to, int thread)
{
    const struct mc_launch *l = r->l;
    char *const *base = r->base, *p[MOST_OPERANDS + 1];
    int64_t n[4] = { l->n[0], l->n[1], l->n[2], 0 };
    p[l->nop] = r->scratch + (size_t)thread * l->scratch;
    n[3] = r->stream;
    if (l->split == SPLIT_FULL_REDUCTION) {
        for (int64_t c = from; c < to; c++) {
            position_of(l, base, l->outer_total > 1 ? c : 0, p);
            p[l->nop] = r->scratch + (size_t)c * 16 * (size_t)r->st->kernel->nreduce;
            if (l->outer_total == 1) {
                move(r, p, 0, c * l->chunk);
                n[0] = MC_MIN(l->chunk, l->n[0] - c * l->chunk);
                n[3] = c * l->chunk;
            } else {
                n[3] = c * l->n[0] * l->n[2];
            }
            l->fn(p, l->s, n, r->err);
        }
        return;
    }
    if (l->split == SPLIT_COLUMN_SUMS) {
        task_column_sums(r, from, to, p);
        return;
    }
    int64_t first = l->split == SPLIT_OUTER ? from : 0, last = l->split == SPLIT_OUTER ? to : l->outer_total;
    for (int64_t at = first; at < last; at++) {
        position_of(l, base, at, p);
        if (l->split == SPLIT_1 || l->split == SPLIT_0) {
            int loop = l->split == SPLIT_1;
            move(r, p, loop, from);
            n[loop] = to - from;
        }
        l->fn(p, l->s, n, r->err);
    }
}

static void work(void *arg, int64_t from, int64_t to, int thread)
{
    mc_launch_part(arg, from, to, thread);
}

void mc_running_tell(struct mc_running *r, const int64_t *err)
{
    for (size_t i = 0; i < NELEM(r->err); i++) {
        if (err[i]) {
            __atomic_store_n(&r->err[i], err[i], __ATOMIC_RELAXED);
        }
    }
}

/* A failed index check is an error.  If an argument was beyond the bound of a function, the reference
 * computes the step again. */
mc_status mc_running_end(struct mc_function *f, const struct mc_shape_plan *p, int step,
                         const struct mc_running *r)
{
    if (r->err[0]) {
        return mc_fail(MC_EINDEX, "index %lld is out of range for size %lld", (long long)r->err[1],
                       (long long)r->err[2]);
    }
    return r->err[3] ? mc_reference_step(f, p, step, false) : MC_OK;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct mc_launch *l = (struct mc_launch *)e;
    char *base[MOST_OPERANDS + 1];
    struct mc_running r = { .st = &f->code->program.step.at[step],
                            .l = l,
                            .slot = p->slot,
                            .base = base,
                            .scratch = scratch + l->copies };
    bool reduces_all = l->split == SPLIT_FULL_REDUCTION;
    if (!reduces_all && (l->n[0] == 0 || l->n[1] == 0 || l->outer_total == 0) &&
        !(r.st->kernel->mode == KERNEL_ROW && l->n[1]) && r.st->kernel->mode != KERNEL_COLUMN &&
        !l->column_sums) {
        return MC_OK; /* no result has elements */
    }
    TRY(mc_bases(f, p, l, scratch, base));
    r.column_sums = r.scratch + l->scratch * (size_t)l->threads;
    r.stream = mc_launch_can_stream(l, r.st->kernel, base);
    if (l->threads <= 1 || l->units <= 1) {
        work(&r, 0, l->units, 0);
    } else {
        mc_team_run(work, &r, l->units, l->grain, l->threads);
    }
    if (reduces_all) {
        int64_t n[4] = { l->units, 1, 1, 0 };
        base[l->nop] = r.scratch;
        l->reduce_fn(base, l->s, n, r.err);
    }
    if (l->column_sums) {
        mc_column_sums_join(&r, base);
    }
    return mc_running_end(f, p, step, &r);
}

/* The epilogue of a product on a finished tile.  The product operand is the tile itself. */
void mc_launch_tile(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c,
                    int64_t row_stride)
{
    struct mc_running *r = arg;
    const struct mc_launch *l = r->l;
    const struct mc_step *st = r->st;
    char *p[MOST_OPERANDS + 1];
    int64_t s[3 * MOST_OPERANDS], count[4] = { n, m, 1, 0 };
    (void)batch;
    memcpy(p, r->base, (size_t)l->nop * sizeof *p);
    p[l->nop] = NULL;
    for (int k = 0; k < l->nop; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        int64_t row = l->step[k * MC_MAX_RANK], col = l->step[k * MC_MAX_RANK + 1]; /* strides in elements */
        bool tile = k == st->product ||
                    (o->dst && l->value[k] >= 0 && st->product >= 0 && r->base[k] == r->base[st->product]);
        if (tile) {
            p[k] = c;
            row = row_stride;
            col = 1;
        } else {
            p[k] = mc_moved(p[k], (i * row + j * col) * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size));
        }
        s[3 * k] = col;
        s[3 * k + 1] = row;
        s[3 * k + 2] = 0;
    }
    int64_t err[4] = { 0 };
    l->fn(p, s, count, err);
    mc_running_tell(r, err);
}

/* ---- planning ---- */

static bool can_collapse(const struct mc_launch *l, const int64_t *stride, const struct axis *outer,
                         const struct axis *inner)
{
    if (outer->reduced != inner->reduced) {
        return false;
    }
    for (int i = 0; i < l->nop; i++) {
        if (stride[i * MC_MAX_RANK + outer->at] != stride[i * MC_MAX_RANK + inner->at] * inner->size) {
            return false;
        }
    }
    return true;
}

static void assign_loop(struct mc_launch *l, int loop, const struct axis *a, const int64_t *stride)
{
    l->n[loop] = a->size;
    for (int i = 0; i < l->nop; i++) {
        l->s[3 * i + loop] = stride[i * MC_MAX_RANK + a->at];
    }
}

static void assign_outer_loop(const struct mc_step *st, struct mc_launch *l, const struct axis *a,
                              const int64_t *stride)
{
    for (int i = 0; i < l->nop; i++) {
        const struct mc_koperand *o = &st->kernel->operand.at[i];
        l->step[i * MC_MAX_RANK + l->nouter] = stride[i * MC_MAX_RANK + a->at] *
                                               (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size);
    }
    l->outer[l->nouter++] = a->size;
    l->outer_total *= a->size;
}

/* Assigns the axes, outermost first in a[], to loops.  False: there are more reduced axes than the kernel has
 * loops. */
static bool assign_loops(const struct mc_step *st, struct mc_launch *l, const struct axis *a, int na,
                         const int64_t *stride)
{
    static const int reduced_loops[][2] = { [KERNEL_MAP] = { -1, -1 },
                                            [KERNEL_ROW] = { 0, 2 },
                                            [KERNEL_COLUMN] = { 1, 2 },
                                            [KERNEL_FULL_REDUCTION] = { 0, 2 } };
    static const int kept_loops[][2] = { [KERNEL_MAP] = { 0, 1 },
                                         [KERNEL_ROW] = { 1, -1 },
                                         [KERNEL_COLUMN] = { 0, -1 },
                                         [KERNEL_FULL_REDUCTION] = { -1, -1 } };
    enum mc_kernel_mode mode = st->kernel->mode;
    int nr = 0, nk = 0;
    for (int i = na; i-- > 0;) {
        int loop = a[i].reduced ? (nr < 2 ? reduced_loops[mode][nr++] : -1)
                                : (nk < 2 ? kept_loops[mode][nk++] : -1);
        if (loop >= 0) {
            assign_loop(l, loop, &a[i], stride);
        } else if (a[i].reduced && mode != KERNEL_FULL_REDUCTION) {
            return false;
        } else {
            assign_outer_loop(st, l, &a[i], stride);
        }
    }
    return true;
}

static void free_exec(struct mc_exec *e)
{
    mc_launch_free((struct mc_launch *)e);
}

const struct mc_exec_ops mc_launch_exec = { .run = run, .free = free_exec };

struct mc_launch *mc_launch_of(struct mc_exec *e)
{
    return e && e->ops == &mc_launch_exec ? (struct mc_launch *)e : NULL;
}

struct mc_launch *mc_launch_new(const struct mc_function *f, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const int nop = (int)st->kernel->operand.n;
    struct mc_launch *l = mc_alloc(sizeof *l, "plan");
    if (!l) {
        return NULL;
    }
    *l = (struct mc_launch){ .exec = { &mc_launch_exec },
                             .fn = f->code->fn[step],
                             .reduce_fn = f->code->reduce_fn[step],
                             .nop = nop,
                             .n = { 1, 1, 1, 0 },
                             .outer_total = 1 };
    l->value = mc_calloc((size_t)nop + 1, sizeof *l->value, "plan");
    l->s = mc_calloc((size_t)nop * 3 + 1, sizeof *l->s, "plan");
    l->step = mc_calloc((size_t)nop * MC_MAX_RANK + 1, sizeof *l->step, "plan");
    if (!l->value || !l->s || !l->step) {
        mc_launch_free(l);
        return NULL;
    }
    for (int i = 0; i < nop; i++) {
        l->value[i] = st->kernel->operand.at[i].index ? -1 : st->operand[i];
    }
    return l;
}

void mc_launch_free(struct mc_launch *l)
{
    if (l) {
        mc_free(l->value);
        mc_free(l->s);
        mc_free(l->step);
        mc_free(l->dense);
        mc_free(l);
    }
}

mc_status mc_launch_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_kernel *k = st->kernel;
    int nop = (int)k->operand.n, na = 0;
    struct axis axis[MC_MAX_RANK];
    double elements = 1;
    int64_t *stride = mc_calloc((size_t)nop * MC_MAX_RANK + 1, sizeof *stride, "plan");
    struct mc_launch *l = stride ? mc_launch_new(f, step) : NULL;
    mc_status s = l ? mc_dense_plan(f, p, step, l) : MC_EMEMORY;
    if (s < 0) {
        mc_free(stride);
        mc_launch_free(l);
        return s;
    }
    for (int a = 0; a < k->rank; a++) {
        if (!(k->varies & 1u << a)) {
            continue;
        }
        int64_t size = p->step[step].space[a];
        elements *= (double)size;
        if (size == 1 && a != k->inner) {
            continue;
        }
        struct axis x = { size, (k->reduced & 1u << a) != 0, a };
        for (int i = 0; i < nop; i++) {
            stride[i * MC_MAX_RANK + a] = mc_launch_stride(p->slot, &k->operand.at[i], l->value[i],
                                                           l->dense && l->dense[i] >= 0, a);
        }
        if (na && can_collapse(l, stride, &axis[na - 1], &x)) {
            x.size *= axis[na - 1].size;
            na--;
        }
        axis[na++] = x;
    }
    const bool fits = assign_loops(st, l, axis, na, stride);
    for (int i = 0; i < nop; i++) {
        l->bytes += l->value[i] < 0 ? 0 : (double)mc_slot_bytes(&p->slot[l->value[i]]);
    }
    mc_free(stride);
    p->step[step].flops += elements * k->flops;
    p->step[step].bytes += l->bytes;
    mc_launch_split(f, st, l, elements);
    mc_column_sums_plan(st, p, l);
    l->stream = mc_launch_streams(p, st, l);
    l->scratch = k->mode == KERNEL_FULL_REDUCTION ? (size_t)l->units * 16 * (size_t)k->nreduce
                                                  : mc_kernel_row_bytes(k, l->n[0] * l->n[2]);
    l->scratch = (l->scratch + 127) / 128 * 128;
    const size_t need = l->copies +
                        (k->mode == KERNEL_FULL_REDUCTION ? l->scratch : l->scratch * (size_t)l->threads) +
                        l->column_sums * (size_t)l->units;
    p->step[step].workspace = MC_MAX(p->step[step].workspace, need);
    if (fits) {
        *exec = &l->exec;
    } else {
        mc_launch_free(l);
    }
    return MC_OK;
}
