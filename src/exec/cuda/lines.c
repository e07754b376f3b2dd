/* lines.c: ops on lines along an axis on a GPU: what computes each of them, and the lines of a shape. */
#include "exec/cuda/lines.h"

static const char text[] = {
#include "exec/cuda/lines_text.h"
    , 0 };
const struct mc_cuda_text mc_lines_text = { "exec/cuda/lines.cu", text };
static const char keys[] = {
#include "exec/cuda/keys_text.h"
    , 0 };
const struct mc_cuda_text mc_keys_text = { "exec/cuda/keys.cu", keys, &mc_lines_text };

void mc_keys_define(struct mc_str *defines, mc_dtype d, bool falling)
{
    static const char *const bits[] = {
        [1] = "unsigned char", [2] = "unsigned short", [4] = "unsigned", [8] = "u64"
    };
    static const char *const infinity[MC_NDTYPE] = { [MC_FLOAT16]  = "0x7c00",
                                                     [MC_BFLOAT16] = "0x7f80",
                                                     [MC_FLOAT32]  = "0x7f800000",
                                                     [MC_FLOAT64]  = "0x7ff0000000000000ull" };
    mc_cuda_types(defines, d, false);
    mc_str_addf(defines, "#define U %s\n#define INFINITE %s\n#define SIGNED %d\n#define FLIP %d\n",
                bits[mc_dtypes[d].size], mc_is_float(d) ? infinity[d] : "0", mc_dtypes[d].kind == KIND_INT,
                falling);
}

/* ---- the table ---- */

static const struct row {
    mc_lines_make *make;
    int kind;
    bool checks;                /* checks indices */
} rows[LINE_KINDS] = {
    [LINE_OTHER]    = { NULL },
    [LINE_SUMS]     = { mc_running_make, RUN_SUM },
    [LINE_PRODUCTS] = { mc_running_make, RUN_PRODUCT },
    [LINE_MOST]     = { mc_running_make, RUN_MOST },
    [LINE_LEAST]    = { mc_running_make, RUN_LEAST },
    [LINE_SORTED]   = { mc_order_make,   ORDER_VALUES },
    [LINE_ORDER]    = { mc_order_make,   ORDER_POSITIONS },
    [LINE_FIRST]    = { mc_order_make,   ORDER_FIRST },
    [LINE_LAST]     = { mc_order_make,   ORDER_LAST },
    [LINE_SEARCH]   = { mc_each_make,    EACH_SEARCH },
    [LINE_PERMUTED] = { mc_each_make,    EACH_PERMUTE, true },
    [LINE_PICKED]   = { mc_each_make,    EACH_PICK,    true },
    [LINE_RECURS]   = { mc_each_make,    EACH_RECUR },
};

static const struct row *row_of(const struct mc_step *st)
{
    const size_t line = st->kind == STEP_HOST && st->nnode == 1 ? (size_t)st->node[0]->op->line : LINE_OTHER;
    return rows[line].make ? &rows[line] : NULL;
}

bool mc_lines_can(const struct mc_step *st, bool *checks)
{
    const struct row *row = row_of(st);
    *checks |= row && row->checks;
    return row != NULL;
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
static mc_status run_nothing(struct mc_function *f, const struct mc_shape_plan *p, int step,
                             struct mc_exec *e, char *scratch)
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
    s.from = x->type.dtype;
    s.to = y->type.dtype;
    if (row->make == mc_each_make) {
        return row->make(&s, made);
    }
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), x->type.rank, &axis));
    set_lines(&s.l, x, y, axis);
    s.keep = y->type.dims[axis];
    if (s.l.lines * s.l.count * s.keep == 0) {
        struct mc_exec *e = mc_calloc(1, sizeof *e, "plan");
        if (e) {
            e->ops = &nothing_ops;
        }
        *made = e;
        return e ? MC_OK : MC_EMEMORY;
    }
    return row->make(&s, made);
}
