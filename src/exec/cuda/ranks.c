/* ranks.c: ops in which ranks work together, on their GPUs: one collective of NCCL on the stream, or the
 * data of all ranks and a kernel that reduces them in the fixed tree.
 *
 * Invariant: before the first time at a shape the ranks compare what they are about to do, and after it they
 * wait: no kernel is loaded while a collective waits for a rank that loads its own. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/ranks_args.h"
#include "op/collective.h"

struct ranks_step {
    struct mc_exec exec;
    struct mc_collective of;
    const char *name;
    mc_dtype dtype;
    int in, out;                /* value ids */
    bool dense;                 /* the source is contiguous */
    int64_t n, each;            /* elements of the source; of what NCCL counts: the source or the result */
    size_t bytes;               /* of the source */
    void *fold;                 /* reduces what was gathered; NULL: NCCL does */
    bool met;
};

static const char text[] = {
#include "exec/cuda/ranks_text.h"
    , 0
};
const struct mc_cuda_text mc_ranks_step_text = { "exec/cuda/ranks.cu", text };

/* ---- a call ---- */

static mc_status run_folded(const struct ranks_step *x, struct mc_cuda *d, const char *from, char *to,
                            char *all)
{
    mc_comm *c = x->of.comm;
    const int64_t at = x->of.kind == RANKS_SCATTER ? c->rank * x->each : 0;
    const struct mc_ranks_args a = { .from = all + at * mc_dtypes[x->dtype].size,
                                     .to = (void *)to,
                                     .count = x->each,
                                     .stride = x->n,
                                     .ranks = c->size };
    const struct mc_grid g = mc_cuda_grid_1d(a.count, 256);
    TRY(mc_comm_device_gather(c, from, all, x->bytes));
    return x->each ? mc_cuda_launch(d, x->fold, "fold", &g, &a, sizeof a) : MC_OK;
}

static mc_status collective(const struct ranks_step *x, const char *from, char *to)
{
    mc_comm *c = x->of.comm;
    switch (x->of.kind) {
    case RANKS_REDUCE: return mc_comm_device_reduce(c, x->of.how, x->dtype, from, to, x->each);
    case RANKS_SCATTER: return mc_comm_device_scatter(c, x->of.how, x->dtype, from, to, x->each);
    case RANKS_GATHER: return mc_comm_device_gather(c, from, to, x->bytes);
    case RANKS_BROADCAST: return mc_comm_device_broadcast(c, x->of.root, from, to, x->bytes);
    }
    return MC_OK;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    struct ranks_step *x = (struct ranks_step *)(void *)e;
    struct mc_cuda *d = mc_cuda_of(f->code);
    const bool first = !x->met;
    char *from = f->ptr[x->in];
    (void)step;
    if (first) {
        TRY(mc_comm_meet(x->of.comm, x->name,
                         x->of.kind == RANKS_REDUCE || x->of.kind == RANKS_SCATTER ? (int)x->of.how : -1,
                         x->dtype, x->of.root, x->n));
        x->met = true;
    }
    if (!x->dense) {
        TRY(mc_cuda_fn_copy(f, &p->slot[x->in], from, scratch));
        from = scratch;
        scratch += mc_work_rounded(x->bytes);
    }
    TRY(x->fold ? run_folded(x, d, from, f->ptr[x->out], scratch) : collective(x, from, f->ptr[x->out]));
    return first && !d->recording ? mc_cuda_wait(d) : MC_OK;
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

bool mc_cuda_is_ranks(const struct mc_exec *e)
{
    return e && e->ops == &ops;
}

/* ---- a shape ---- */

static bool describe(const struct mc_step *st, const struct mc_cuda *d, struct mc_collective *out)
{
    return st->kind == STEP_HOST && st->nnode == 1 && mc_collective_of(st->node[0], out) &&
           mc_comm_device(out->comm) == d;
}

mc_comm *mc_cuda_ranks_of(const struct mc_step *st, const struct mc_cuda *d)
{
    struct mc_collective of;
    return describe(st, d, &of) ? of.comm : NULL;
}

/* ---- the function's memory ---- */

/* NCCL reads and writes what is registered without copies of its own.  All ranks must do the same, so only
 * the program, the flags and NCCL's version decide. */
static bool in_place(const struct mc_function *f)
{
    const mc_comm *c = mc_cuda_fn_code(f)->comm;
    return c && mc_comm_device_shares(c) && !mc_flag_int(FLAG_allow_gc);
}

char *mc_cuda_fn_arena(struct mc_function *f, size_t bytes)
{
    struct mc_cuda *d = mc_cuda_of(f->code);
    if (!in_place(f)) {
        return mc_cuda_alloc(d, bytes, f->name);
    }
    char *p = mc_cuda_alloc_shared(d, bytes, f->name);
    if (p && mc_comm_device_register(mc_cuda_fn_code(f)->comm, p, bytes, &mc_cuda_fn_of(f)->registered) < 0) {
        mc_cuda_free(d, p);
        p = NULL;
    }
    return p;
}

/* The next memory may have the same address, though other memory of the ranks belongs to it then. */
void mc_cuda_fn_arena_free(struct mc_function *f)
{
    struct mc_cuda_fn_function *own = mc_cuda_fn_of(f);
    if (own && own->registered) {
        for (struct mc_shape_plan *p = f->plans; p; p = p->next) {
            if (p->own) {
                mc_cuda_fn_captures_free(f, p->own);
            }
        }
        mc_comm_device_forget(mc_cuda_fn_code(f)->comm, own->registered);
        own->registered = NULL;
    }
    mc_cuda_free(mc_cuda_of(f->code), f->arena);
}

/* Sums of whole numbers may wrap. */
static const char *added_as(mc_dtype d, enum mc_ranks_op how)
{
    return mc_is_float(d)                                      ? d == MC_FLOAT64 ? "double" : "float"
           : how == RANKS_SUM || mc_dtypes[d].kind != KIND_INT ? "u64"
                                                               : "i64";
}

static mc_status load(struct ranks_step *x)
{
    struct mc_str defines = { 0 };
    const struct mc_cuda_kernel_ref kernel = { &x->fold, "fold" };
    mc_str_addf(&defines, "#define T %s\n#define A %s\n#define WAY %d\n", mc_dtypes[x->dtype].c,
                added_as(x->dtype, x->of.how), (int)x->of.how);
    return mc_cuda_kernels(&mc_ranks_step_text, &defines, &kernel, 1) ? MC_OK : mc_last_status();
}

mc_status mc_cuda_ranks_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    struct mc_collective of;
    const struct mc_step *st = &f->code->program.step.at[step];
    if (!describe(st, mc_cuda_of(f->code), &of)) {
        return MC_OK;
    }
    const mc_node *n = st->node[0];
    const int *value_of = f->code->program.value_of;
    const struct mc_slot *in = &p->slot[value_of[n->in[0]->id]], *out = &p->slot[value_of[n->id]];
    if (!mc_slot_contiguous(out)) {
        return MC_OK;
    }
    struct ranks_step *x = mc_calloc(1, sizeof *x, "plan");
    if (!x) {
        return MC_EMEMORY;
    }
    const bool reduces = of.kind == RANKS_REDUCE || of.kind == RANKS_SCATTER;
    *x = (struct ranks_step){ .exec.ops = &ops,
                              .of = of,
                              .name = n->op->name,
                              .dtype = in->type.dtype,
                              .in = value_of[n->in[0]->id],
                              .out = value_of[n->id],
                              .dense = mc_slot_contiguous(in),
                              .n = mc_dims_count(in->type.rank, in->type.dims),
                              .each = mc_dims_count(out->type.rank, out->type.dims) };
    *made = &x->exec;
    x->bytes = (size_t)x->n * mc_dtypes[x->dtype].size;
    if (reduces && !mc_comm_device_reduces(of.comm, of.how, x->dtype, of.any_order)) {
        TRY(load(x));
    }
    const size_t need = (x->dense ? 0 : mc_work_rounded(x->bytes)) +
                        (x->fold ? x->bytes * (size_t)of.comm->size : 0);
    p->step[step].workspace = MC_MAX(p->step[step].workspace, need);
    return MC_OK;
}
