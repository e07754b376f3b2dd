/* ctc.c: ctc_loss on a GPU: its costs, their gradient, the Hessian times a direction, by ctc.cu.
 *
 * Invariant: a label or length that is none sets the error words of the call; the message is that of the
 * CPU. */
#include "op/ctc.h"
#include "exec/cuda/ctc_args.h"
#include "exec/cuda/cuda.h"

enum { MOST_BLOCKS = 512, LEAST_THREADS = 64, MOST_THREADS = 256 };
struct ctc_step {
    struct mc_exec exec;
    void *kernel;
    unsigned blocks, threads;
    int x, v, labels, lengths, y; /* value ids */
    struct mc_ctc_args args;
};

static const char text[] = {
#include "exec/cuda/ctc_text.h"
    , 0
};
const struct mc_cuda_text mc_ctc_step_text = { "exec/cuda/ctc.cu", text };

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    const struct ctc_step *w = (const struct ctc_step *)(const void *)e;
    struct mc_ctc_args a = w->args;
    const struct mc_grid g = { { w->blocks, 1, 1 }, { w->threads, 1, 1 }, 0 };
    a.x = f->ptr[w->x];
    a.v = f->ptr[w->v];
    a.labels = f->ptr[w->labels];
    a.lengths = f->ptr[w->lengths];
    a.y = f->ptr[w->y];
    a.work = scratch;
    a.err = mc_cuda_fn_of(f)->failed;
    a.number = mc_cuda_fn_number(f, step);
    return w->blocks ? mc_cuda_launch(mc_cuda_of(f->code), w->kernel, "ctc", &g, &a, sizeof a) : MC_OK;
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

bool mc_cuda_ctc_can(const struct mc_step *st, bool *checks)
{
    const bool can = st->kind == STEP_HOST && st->nnode == 1 && mc_ctc_kind(st->node[0]->op) >= 0;
    *checks |= can;
    return can;
}

static void strides_of(const struct mc_slot *at, int64_t *to)
{
    for (int i = 0; i < at->type.rank; i++) {
        to[i] = at->strides[i];
    }
}

static void describe(const struct mc_function *f, const struct mc_shape_plan *p, const mc_node *n,
                     struct ctc_step *w)
{
    const int *of = f->code->program.value_of;
    struct mc_ctc_args *a = &w->args;
    w->x = of[n->in[0]->id];
    w->labels = of[n->in[1]->id];
    w->lengths = of[n->in[2]->id];
    w->v = of[n->in[n->nin > 3 ? 3 : 0]->id];
    w->y = of[n->id];
    strides_of(&p->slot[w->x], a->x_strides);
    strides_of(&p->slot[w->v], a->v_strides);
    strides_of(&p->slot[w->y], a->y_strides);
    strides_of(&p->slot[w->labels], a->label_strides);
    strides_of(&p->slot[w->lengths], &a->length_stride);
    const int64_t *dims = p->slot[w->x].type.dims;
    a->examples = dims[0];
    a->rows = dims[1];
    a->classes = dims[2];
    a->most = p->slot[w->labels].type.dims[1];
    a->zero_infinity = mc_ctc_kind(n->op) == 0 && mc_attr_int(&n->attr[0]) != 0;
    w->threads = LEAST_THREADS;
    while (w->threads < MOST_THREADS && w->threads < 2 * a->most + 1) {
        w->threads *= 2;
    }
    w->blocks = (unsigned)MC_MIN(a->examples, (int64_t)MOST_BLOCKS);
}

void mc_ctc_source(int kind, mc_dtype d, mc_dtype label, mc_dtype length, struct mc_str *defines)
{
    mc_cuda_types(defines, d, true);
    mc_str_addf(defines, "#define KIND %d\n#define LABEL %s\n#define LENGTH %s\n", kind, mc_dtypes[label].c,
                mc_dtypes[length].c);
}

static mc_status load(const struct mc_shape_plan *p, int kind, struct ctc_step *w)
{
    struct mc_str defines = { 0 };
    const struct mc_cuda_kernel_ref kernel = { &w->kernel, "ctc" };
    mc_ctc_source(kind, p->slot[w->x].type.dtype, p->slot[w->labels].type.dtype,
                  p->slot[w->lengths].type.dtype, &defines);
    return mc_cuda_kernels(&mc_ctc_step_text, &defines, &kernel, 1) ? MC_OK : mc_last_status();
}

mc_status mc_cuda_ctc_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    size_t each = 0, bytes = 0;
    bool checks = false;
    if (!mc_cuda_ctc_can(st, &checks)) {
        return MC_OK;
    }
    struct ctc_step *w = mc_calloc(1, sizeof *w, "plan");
    if (!w) {
        return MC_EMEMORY;
    }
    const int kind = mc_ctc_kind(st->node[0]->op);
    *made = &w->exec;
    w->exec.ops = &ops;
    describe(f, p, st->node[0], w);
    if (w->args.classes < 1) {
        return mc_fail(MC_ESHAPE, "ctc_loss: there are no classes; class 0 is the blank");
    }
    TRY(mc_ctc_work(kind, w->args.rows, w->args.most, &each));
    if (!mc_mul_size(each, w->blocks, &bytes)) {
        return mc_fail(MC_EMEMORY, "ctc_loss: too many steps and labels");
    }
    w->args.stride = (int64_t)each;
    p->step[step].workspace = MC_MAX(p->step[step].workspace, bytes);
    return load(p, kind, w);
}
