/* lines.c: ops on lines along an axis on a GPU: what computes each of them, and the lines of a shape. */
#include "exec/cuda/lines.h"

static const char text[] = {
#include "exec/cuda/lines_text.h"
    , 0 };
const struct mc_cuda_text mc_lines_text = { "exec/cuda/lines.cu", text };

static const struct row { mc_lines_make *make; int kind; } rows[] = {
    [LINE_OTHER]    = { NULL },
    [LINE_SUMS]     = { mc_running_make, RUN_SUM },
    [LINE_PRODUCTS] = { mc_running_make, RUN_PRODUCT },
    [LINE_MOST]     = { mc_running_make, RUN_MOST },
    [LINE_LEAST]    = { mc_running_make, RUN_LEAST },
    [LINE_SORTED]   = { mc_order_make,   ORDER_VALUES },
    [LINE_ORDER]    = { mc_order_make,   ORDER_POSITIONS },
};

static const struct row *row_of(const struct mc_step *st)
{
    const size_t line = st->kind == STEP_HOST && st->nnode == 1 ? (size_t)st->node[0]->op->line : LINE_OTHER;
    return line < NELEM(rows) && rows[line].make ? &rows[line] : NULL;
}

bool mc_lines_can(const struct mc_step *st)
{
    return row_of(st) != NULL;
}

static void set_lines(struct mc_lines_args *l, const struct mc_slot *x, const struct mc_slot *y, int axis)
{
    const int64_t xsize = (int64_t)mc_dtypes[x->type.dtype].size,
                  ysize = (int64_t)mc_dtypes[y->type.dtype].size;
    l->lines = 1;
    l->count = x->type.dims[axis];
    l->xstep = x->strides[axis] / xsize;
    l->ystep = y->strides[axis] / ysize;
    for (int i = x->type.rank; i-- > 0;) {
        if (i != axis && x->type.dims[i] != 1) {
            l->lines *= l->size[l->axes] = x->type.dims[i];
            l->xline[l->axes] = x->strides[i] / xsize;
            l->yline[l->axes++] = y->strides[i] / ysize;
        }
    }
}

/* Nothing is left to do. */
static mc_status run_nothing(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                             char *scratch)
{
    (void)f;
    (void)p;
    (void)step;
    (void)e;
    (void)scratch;
    return MC_OK;
}

static const struct mc_exec_ops nothing_ops = { .run = run_nothing, .free = mc_exec_free };

mc_status mc_lines_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct row *row = row_of(st);
    if (!row) {
        return MC_OK;
    }
    const mc_node *n = st->node[0];
    struct mc_lines_step s = { .f = f, .p = p, .step = step, .kind = row->kind, .y = st->dst[0] };
    s.x = f->code->program.value_of[n->in[0]->id];
    const struct mc_slot *x = &p->slot[s.x], *y = &p->slot[s.y];
    int axis;
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), x->type.rank, &axis));
    s.from = x->type.dtype;
    s.to = y->type.dtype;
    set_lines(&s.l, x, y, axis);
    if (s.l.lines * s.l.count == 0) {
        struct mc_exec *e = mc_calloc(1, sizeof *e, "plan");
        if (e) {
            e->ops = &nothing_ops;
        }
        *made = e;
        return e ? MC_OK : MC_EMEMORY;
    }
    return row->make(&s, made);
}
