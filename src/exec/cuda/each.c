/* each.c: ops whose elements, or lines, are computed by a thread each on a GPU (each.cu). */
#include "exec/cuda/lines.h"
#include "exec/cuda/each_args.h"

enum { THREADS = 256 };
static const char *const names[] = {
    [EACH_SEARCH] = "search", [EACH_PERMUTE] = "permute", [EACH_PICK] = "pick", [EACH_RECUR] = "recur",
};
struct mc_each {
    struct mc_exec exec;
    void *kernel, *copy;        /* copy: or NULL */
    const char *name;
    int x, v, index, y;         /* value ids; -1: none */
    struct mc_each_args args, copied;
};

static const char text[] = {
#include "exec/cuda/each_text.h"
    , 0 };
const struct mc_cuda_text mc_each_text = { "exec/cuda/each.cu", text };

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    (void)scratch;
    const struct mc_each *w = (struct mc_each *)e;
    struct mc_cuda *d = mc_cuda_of(f->code);
    const struct mc_each_args *all[] = { w->copy ? &w->copied : NULL, &w->args };
    for (int i = 0; i < 2; i++) {
        struct mc_each_args a = *(all[i] ? all[i] : all[1]);
        const struct mc_grid g = mc_cuda_grid_1d(a.n, THREADS);
        a.x = f->ptr[w->x];
        a.v = w->v >= 0 ? f->ptr[w->v] : NULL;
        a.index = w->index >= 0 ? f->ptr[w->index] : NULL;
        a.y = f->ptr[w->y];
        a.err = mc_cuda_fn_of(f)->failed;
        TRY(all[i] && a.n ? mc_cuda_launch(d, i ? w->kernel : w->copy, i ? w->name : "copy", &g, &a, sizeof a)
                          : MC_OK);
    }
    return MC_OK;
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

/* ---- a shape ---- */

/* The axes of `like` but one, or all if that is -1; strides of the values that are there. */
static void set_axes(struct mc_each_args *a, const struct mc_shape_plan *p, const struct mc_each *w, int like,
                     int but)
{
    const struct mc_type *t = &p->slot[like].type;
    const int value[4] = { w->x, w->v, w->index, w->y };
    int64_t *const stride[4] = { a->xs, a->vs, a->is, a->ys };
    a->n = 1;
    for (int i = t->rank; i-- > 0;) {
        if (i == but) {
            continue;
        }
        a->n *= a->size[a->axes] = t->dims[i];
        for (int k = 0; k < 4; k++) {
            const struct mc_slot *s = value[k] >= 0 ? &p->slot[value[k]] : NULL;
            if (s && s->type.rank == t->rank) {
                stride[k][a->axes] = s->strides[i] / (int64_t)mc_dtypes[s->type.dtype].size;
            }
        }
        a->axes++;
    }
}

static int64_t step_along(const struct mc_shape_plan *p, int v, int axis)
{
    const struct mc_slot *s = &p->slot[v];
    return s->strides[axis] / (int64_t)mc_dtypes[s->type.dtype].size;
}

static mc_status load(struct mc_each *w, const struct mc_lines_step *s, mc_dtype index)
{
    struct mc_str defines = { 0 };
    const mc_dtype d = s->from;
    const char *compared = d == MC_FLOAT64                 ? "double"
                           : mc_is_float(d)                ? "float"
                           : mc_dtypes[d].kind == KIND_INT ? "i64"
                                                           : "u64";
    const struct mc_cuda_kernel_ref kernels[] = { { &w->kernel, w->name },
                                                  { &w->copy, s->kind == EACH_PICK ? "copy" : NULL } };
    mc_cuda_types(&defines, d, false);
    mc_str_addf(&defines, "#define C %s\n#define I %s\n", compared, mc_dtypes[index].c);
    return mc_cuda_kernels(&mc_each_text, &defines, kernels, NELEM(kernels)) ? MC_OK : mc_last_status();
}

static void make_search(struct mc_each *w, const struct mc_lines_step *s, const mc_node *n)
{
    set_axes(&w->args, s->p, w, w->v, -1);
    w->args.count = s->p->slot[w->x].type.dims[0];
    w->args.xstep = step_along(s->p, w->x, 0);
    w->args.right = strcmp(n->attr[0].text, "right") == 0;
}

static void make_permute(struct mc_each *w, const struct mc_lines_step *s, int axis)
{
    set_axes(&w->args, s->p, w, w->index, -1);
    w->args.limit = s->p->slot[w->x].type.dims[axis];
    w->args.xstep = step_along(s->p, w->x, axis);
    w->args.xs[s->p->slot[w->x].type.rank - 1 - axis] = 0; /* the index says where along the axis */
    w->args.axis = -1;
}

static void make_pick(struct mc_each *w, const struct mc_lines_step *s, const mc_node *n, int axis)
{
    set_axes(&w->args, s->p, w, w->index, -1);
    w->args.limit = s->p->slot[w->x].type.dims[axis];
    w->args.ystep = step_along(s->p, w->y, axis);
    w->args.ys[s->p->slot[w->y].type.rank - 1 - axis] = 0;
    w->args.axis = axis;
    w->args.least = mc_attr_int(&n->attr[1]) != 0;
    set_axes(&w->copied, s->p, w, w->x, -1);
}

static void make_recur(struct mc_each *w, const struct mc_lines_step *s, const mc_node *n, int axis)
{
    set_axes(&w->args, s->p, w, w->x, axis);
    w->args.count = s->p->slot[w->x].type.dims[axis];
    w->args.xstep = step_along(s->p, w->x, axis);
    w->args.vstep = step_along(s->p, w->v, axis);
    w->args.ystep = step_along(s->p, w->y, axis);
    w->args.start = n->attr[1].real;
    w->args.back = mc_attr_int(&n->attr[2]) != 0;
}

mc_status mc_each_make(const struct mc_lines_step *s, struct mc_exec **made)
{
    const mc_node *n = s->f->code->program.step.at[s->step].node[0];
    struct mc_each *w = mc_calloc(1, sizeof *w, "plan");
    int axis = 0;
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_each){
        .exec = { &ops }, .name = names[s->kind], .x = s->x, .v = -1, .index = -1, .y = s->y
    };
    for (int i = 1; i < n->nin; i++) {
        const int v = s->f->code->program.value_of[n->in[i]->id];
        *(i == 2 || s->kind == EACH_PERMUTE ? &w->index : &w->v) = v;
    }
    if (s->kind != EACH_SEARCH) {
        TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), s->p->slot[w->x].type.rank, &axis));
    }
    switch (s->kind) {
    case EACH_SEARCH: make_search(w, s, n); break;
    case EACH_PERMUTE: make_permute(w, s, axis); break;
    case EACH_PICK: make_pick(w, s, n, axis); break;
    default: make_recur(w, s, n, axis); break;
    }
    w->args.number = mc_cuda_fn_number(s->f, s->step);
    return load(w, s, w->index >= 0 ? s->p->slot[w->index].type.dtype : MC_INT64);
}
