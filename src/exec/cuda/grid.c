/* grid.c: a kernel at one shape on a GPU: selects the kernel entry, fills its struct of arguments except for
 * addresses, launches it.
 *
 * Invariant: an entry is used only if the layout of all operands is what it reads. */
#include "exec/cuda/grid.h"
#include "exec/cpu/launch.h"

/* The entry that keeps rows in registers at this shape, and the blocks for each row; fn is NULL: there is
 * none. */
struct row_form { void *fn; struct mc_grid_row row; unsigned blocks; };

static struct row_form row_form_of(const struct mc_kernel *k, const struct mc_grid_kernel *g,
                                   const struct mc_axes *s, const struct mc_grid_launch *l,
                                   const struct mc_slot *slot, unsigned most)
{
    const struct { void *fn; struct mc_grid_row row; unsigned least, most; } forms[] = {
        { g->row_cluster, mc_grid_row_cluster(k), 2, most }, { g->row, mc_grid_row(k), 1, 1 },
        { g->row_scalar, mc_grid_row_scalar(k), 1, 1 },
    };
    for (size_t i = 0; i < NELEM(forms) && k->mode != KERNEL_MAP; i++) {
        const unsigned n = forms[i].fn
                               ? mc_grid_threads_keeps_rows(k, s, l, slot, forms[i].row, forms[i].most)
                               : 0;
        if (n >= forms[i].least) {
            return (struct row_form){ forms[i].fn, forms[i].row, n };
        }
    }
    return (struct row_form){ 0 };
}

static mc_status fill_args(const struct mc_function *f, const struct mc_shape_plan *p,
                           struct mc_grid_launch *l,
                           const struct mc_step *st, const struct mc_axes *s, const struct mc_grid_kernel *g)
{
    const struct mc_kernel *k = st->kernel;
    struct mc_grid_args a = mc_grid_args(l->args, k->operand.n);
    bool map = k->mode == KERNEL_MAP;
    const struct row_form row = row_form_of(k, g, s, l, p->slot, mc_cuda_of(f->code)->together);
    const bool column = !map && !row.fn && g->column && mc_grid_threads_keeps_columns(k, s, l, p->slot);
    int first = map || column ? 0 : s->n[0], of = column ? mc_grid_column(k) : mc_grid_vector(k);
    const bool by_elements = !row.fn && !column && g->few_elements && s->count[1] <= GRID_FEW_MOST;
    int v = column ? of
            : !by_elements && !row.fn && s->n[!map] > 0 && g->vector &&
                    mc_axes_dense(k, s, l, p->slot, first, of)
                ? of
                : 1;
    memset(a.head, 0, sizeof *a.head);
    a.head->flat = map && s->n[0] == 1 && mc_axes_dense(k, s, l, p->slot, 0, v);
    for (int x = 0; x < s->n[0] + s->n[1]; x++) {
        a.head->size[x] = (uint32_t)(s->axis[x].size / (x == first ? v : 1));
        mc_axes_divide(a.head, x);
        for (size_t i = 0; i < k->operand.n; i++) {
            a.step[i][x] = s->stride[i][s->axis[x].at] * (x == first ? v : 1);
        }
    }
    a.head->near = mc_axes_fit_int32(k, s);
    a.head->number = (uint32_t)mc_cuda_fn_number(f, (int)(st - f->code->program.step.at));
    a.head->axes[0] = (uint32_t)s->n[0];
    a.head->axes[1] = (uint32_t)MC_MAX(
        s->n[1], 1); /* without a reduced axis, one of step 0; steps after the last axis are 0 too */
    if (!map && (s->count[0] > INT32_MAX || s->count[1] > INT32_MAX)) {
        return mc_fail(MC_EUNSUPPORTED, "%s: a reduction over more than 2^31 elements", f->name);
    }
    l->fn = by_elements ? g->few_elements : v > 1 ? g->vector : g->plain;
    if (map) {
        mc_grid_threads_map(k, l, a.head, s, s->count[0] / v);
    } else {
        l->pieces = 1;
        a.head->count[0] = (uint32_t)(s->count[0] / (column ? v : 1));
        a.head->count[1] = (uint32_t)(s->count[1] / (column ? 1 : v));
        if (column) {
            l->fn = g->column;
            mc_grid_threads_columns(k, l, a.head);
        } else if (row.fn) {
            l->fn = row.fn;
            mc_grid_threads_rows(k, l, a.head, row.row, row.blocks);
        } else {
            mc_grid_threads_points(k, l, a.head, v);
        }
    }
    if (mc_grid_column_sums(k)) {
        mc_grid_threads_column_sums(k, l, a.head);
        l->column_sums = g->column_sums;
    }
    return MC_OK;
}

/* ---- before a shape is known ---- */

unsigned mc_grid_excluded_forms(const struct mc_step *st)
{
    const struct mc_kernel *k = st->kernel;
    const int64_t length = mc_static_length(st);
    const struct mc_grid_row row = mc_grid_row(k), together = mc_grid_row_cluster(k),
                             single = mc_grid_row_scalar(k);
    if (length < 0) {
        return 0;
    }
    const bool by_elements = length <= GRID_FEW_MOST && mc_grid_can_split(k);
    return (length % mc_grid_vector(k) || by_elements ? GRID_VECTOR : 0) |
           (by_elements ? GRID_PLAIN : GRID_FEW_ELEMENTS) |
           (row.vector && (length % row.vector || !mc_grid_threads_keeps(row, length, 1)) ? GRID_ROW : 0) |
           (together.vector && (length % together.vector || !mc_grid_threads_shares(k, together, length))
                ? GRID_CLUSTER
                : 0) |
           (single.vector && !mc_grid_threads_keeps(single, length, 1) ? GRID_ROW_SCALAR : 0);
}

/* ---- running ---- */

static mc_status run_chunks(struct mc_cuda *d, const struct mc_grid_launch *l, struct mc_grid_args a,
                            const struct mc_kernel *k)
{
    uint32_t whole = l->pieces > 1 ? a.head->size[l->outer] : 0, count = a.head->count[0];
    mc_status s = MC_OK;
    for (int64_t i = 0; i < l->pieces && s == MC_OK; i++) {
        if (l->pieces > 1) {
            int64_t n = MC_MIN(l->piece, (int64_t)whole - i * l->piece);
            a.head->count[0] = (uint32_t)((int64_t)count / l->piece * n);
            for (size_t o = 0; o < k->operand.n && i; o++) {
                a.p[o] += (uint64_t)(a.step[o][l->outer] * l->piece);
            }
        }
        s = mc_cuda_launch_dependent(d, l->fn, k->name, &l->grid, l->args, l->nargs);
    }
    a.head->count[0] = count;
    return s;
}

static mc_status run_stages(struct mc_cuda *d, const struct mc_grid_launch *l, struct mc_grid_head *h,
                            const struct mc_kernel *k)
{
    struct mc_grid grid = l->grid;
    mc_status s = MC_OK;
    for (h->first = 0; h->first < l->stages && s == MC_OK; h->first++) {
        s = l->stages > 1 && mc_grid_centred_sums(k, (int)h->first)
                ? MC_OK
                : mc_cuda_launch_dependent(d, l->fn, k->name, &grid, l->args, l->nargs);
    }
    grid.blocks[1] = 1;
    s = s < 0 || !l->ends ? s : mc_cuda_launch_dependent(d, l->fn, k->name, &grid, l->args, l->nargs);
    return s < 0 || !l->column_sums ? s
                                    : mc_cuda_launch_dependent(d, l->column_sums, k->name,
                                                               &l->column_sums_grid, l->args, l->nargs);
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_grid_launch *l = (struct mc_grid_launch *)e;
    struct mc_grid_args a = mc_grid_args(l->args, st->kernel->operand.n);
    struct mc_cuda *d = mc_cuda_of(f->code);
    for (size_t i = 0; i < st->kernel->operand.n; i++) {
        a.p[i] = l->value[i] < 0 ? 0 : (uint64_t)(uintptr_t)f->ptr[l->value[i]];
    }
    a.head->err = (uint64_t)(uintptr_t)mc_cuda_fn_of(f)->failed;
    a.head->scratch = (uint64_t)(uintptr_t)scratch;
    a.head->held = l->skip_after_error && mc_cuda_fn_of(f)->failed;
    if (!a.head->count[0] && !a.head->teams) {
        return MC_OK; /* no result has elements; sums of nothing are zeros */
    }
    return !l->stages ? run_chunks(d, l, a, st->kernel) : run_stages(d, l, a.head, st->kernel);
}

static void release(struct mc_exec *e)
{
    struct mc_grid_launch *l = (struct mc_grid_launch *)e;
    mc_free(l->args);
    mc_free(l->value);
    mc_free(l);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

const struct mc_grid_launch *mc_grid_launch_of(const struct mc_exec *e)
{
    return e && e->ops == &ops ? (const struct mc_grid_launch *)e : NULL;
}

/* ---- planning ---- */

mc_status mc_grid_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_kernel *k = st->kernel;
    size_t nop = k->operand.n;
    struct mc_grid_launch *l = mc_calloc(1, sizeof *l, "plan");
    struct mc_axes *s = mc_calloc(1, sizeof *s, "plan");
    *made = l ? &l->exec : NULL;
    mc_status status = l && s ? MC_OK : MC_EMEMORY;
    if (l) {
        l->exec.ops = &ops;
        l->nargs = mc_grid_args_size(nop);
        l->args = mc_calloc(1, l->nargs, "plan");
        l->value = mc_calloc(nop + 1, sizeof *l->value, "plan");
        status = l->args && l->value ? status : MC_EMEMORY;
    }
    double elements = 1;
    for (int a = 0; a < k->rank && status == MC_OK; a++) {
        elements *= k->varies & 1u << a ? (double)p->step[step].space[a] : 1;
        for (size_t i = 0; i < nop; i++) {
            const struct mc_koperand *o = &k->operand.at[i];
            l->value[i] = o->index ? -1 : st->operand[i];
            s->stride[i][a] = mc_launch_stride(p->slot, o, l->value[i], false, a) *
                              (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size);
        }
    }
    if (status == MC_OK) {
        for (size_t i = 0; i < nop; i++) {
            l->value[i] = k->operand.at[i].index ? -1 : st->operand[i];
            l->skip_after_error |= k->operand.at[i].dst && l->value[i] >= 0 &&
                                   p->slot[l->value[i]].base == BASE_SHARED;
            p->step[step].bytes += l->value[i] < 0 ? 0 : (double)mc_slot_bytes(&p->slot[l->value[i]]);
        }
        mc_axes_collapse(s, k, p->step[step].space, false);
        mc_axes_collapse(s, k, p->step[step].space, true);
        p->step[step].flops += elements * k->flops;
        status = fill_args(f, p, l, st, s, &mc_cuda_fn_code(f)->grid[step]);
        p->step[step].workspace = MC_MAX(p->step[step].workspace, l->scratch);
    }
    mc_free(s);
    return status;
}
