/* joint.c: independent maps on a GPU: those whose kernels are equal, whatever their axes, are one launch, or
 * a few if they are many.
 *
 * Invariant: the lists are filled by the shape alone; a call sets the addresses. */
#include "exec/cuda/grid.h"
#include "exec/kernels.h"

/* ---- before a shape is known ---- */

static bool can_share(const struct mc_kernel *k)
{
    enum { LEAST = 4 };
    return mc_kernel_flat(k) && mc_grid_list_most(k->operand.n) >= LEAST;
}

/* By step: the step whose NAME_many it can use; -1: none.  Marks the kernels that have one. */
mc_status mc_grid_find_many(struct mc_program *p, const int *first, int *many)
{
    int *run = mc_alloc((p->step.n + 1) * sizeof *run, "compile");
    if (!run) {
        return MC_EMEMORY;
    }
    mc_joint_candidates(p, run);
    for (int i = 0; i < (int)p->step.n; i++) {
        many[i] = -1;
        for (int j = 0; j < i && run[i] >= 0 && many[i] < 0; j++) { /* a kernel that has one already */
            const bool has = many[j] == j && mc_kernel_alike(p->step.at[j].kernel, p->step.at[i].kernel);
            many[i] = has && can_share(p->step.at[i].kernel) ? j : -1;
        }
        for (int j = MC_MAX(run[i], 0); j < i && run[i] >= 0 && many[i] < 0; j++) {
            if (run[j] == run[i] && can_share(p->step.at[i].kernel) &&
                mc_kernel_alike(p->step.at[j].kernel, p->step.at[i].kernel)) {
                many[i] = many[j] = many[first[j]] = first[j];
                p->step.at[first[j]].kernel->many = true;
            }
        }
    }
    mc_free(run);
    return MC_OK;
}

/* ---- running ---- */

struct part {                   /* one launch */
    int first, n;               /* its members */
    bool shared;                /* by NAME_many; else the one member's own launch */
    bool held;                  /* does nothing after a failed check */
    struct mc_grid grid;
    void *args;
};
struct joint {
    struct mc_exec exec;
    VEC(struct part) part;
    int n, *step;               /* members, part by part */
    struct mc_exec **member;
};

static mc_status run_shared(struct mc_function *f, const struct joint *b, const struct part *part)
{
    const int step = b->step[part->first];
    const struct mc_kernel *k = f->code->program.step.at[step].kernel;
    const size_t operands = k->operand.n;
    const struct mc_grid_list list = mc_grid_list(part->args, operands);
    void *const failed = mc_cuda_fn_of(f)->failed;
    *list.err = (uint64_t)(uintptr_t)failed;
    *list.held = part->held && failed;
    for (int m = 0; m < part->n; m++) {
        const int *value = mc_grid_launch_of(b->member[part->first + m])->value;
        for (size_t i = 0; i < operands; i++) {
            list.p[(size_t)m * operands + i] = (uint64_t)(uintptr_t)f->ptr[value[i]];
        }
    }
    return mc_cuda_launch_dependent(mc_cuda_of(f->code), mc_cuda_fn_code(f)->grid[step].many, k->name,
                                    &part->grid, part->args, mc_grid_list_size(operands));
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct joint *b = (struct joint *)e;
    (void)step;
    for (size_t i = 0; i < b->part.n; i++) {
        const struct part *part = &b->part.at[i];
        struct mc_exec *alone = b->member[part->first];
        TRY(part->shared ? run_shared(f, b, part)
                         : alone->ops->run(f, p, b->step[part->first], alone, scratch));
    }
    return MC_OK;
}

static void release(struct mc_exec *e)
{
    struct joint *b = (struct joint *)e;
    for (size_t i = 0; i < b->part.n; i++) {
        mc_free(b->part.at[i].args);
    }
    for (int i = 0; i < b->n; i++) {
        b->member[i]->ops->free(b->member[i]);
    }
    VEC_FREE(b->part);
    mc_free(b->step);
    mc_free(b->member);
    mc_free(b);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

const int *mc_grid_joint_steps(const struct mc_exec *e, int *n)
{
    const struct joint *b = e && e->ops == &ops ? (const struct joint *)e : NULL;
    *n = b ? b->n : 0;
    return b ? b->step : NULL;
}

/* ---- planning ---- */

/* Is the launch one of contiguous arrays, which NAME_many can do?  *wide: in vectors. */
static bool is_flat(const struct mc_function *f, int step, const struct mc_exec *e, bool *wide)
{
    const struct mc_grid_kernel *k = &mc_cuda_fn_code(f)->grid[step];
    const struct mc_grid_launch *l = mc_grid_launch_of(e);
    const size_t operands = f->code->program.step.at[step].kernel->operand.n;
    *wide = l && k->vector && l->fn == k->vector;
    return l && k->many && l->pieces == 1 && mc_grid_args(l->args, operands).head->flat;
}

/* Adds the last n members as a part. */
static mc_status add_part(struct joint *b, const struct mc_function *f, int n)
{
    struct part part = { .first = b->n - n, .n = n, .shared = n > 1 };
    unsigned blocks = 0;
    if (part.shared) {
        const size_t operands = f->code->program.step.at[b->step[part.first]].kernel->operand.n;
        part.args = mc_calloc(1, mc_grid_list_size(operands), "plan");
        if (!part.args) {
            return MC_EMEMORY;
        }
        const struct mc_grid_list list = mc_grid_list(part.args, operands);
        *list.n = (uint32_t)n;
        for (int m = 0; m < n; m++) {
            bool wide;
            const int step = b->step[part.first + m];
            const struct mc_grid_launch *l = mc_grid_launch_of(b->member[part.first + m]);
            is_flat(f, step, &l->exec, &wide);
            const int v = wide ? mc_grid_vector(f->code->program.step.at[step].kernel) : 1;
            const unsigned each = GRID_LIST_ELEMENTS / (unsigned)v;
            *list.wide += wide;
            list.first[m] = blocks;
            list.count[m] = mc_grid_args(l->args, operands).head->count[0];
            blocks += (list.count[m] + each - 1) / each;
            part.held |= l->skip_after_error;
        }
        part.grid = (struct mc_grid){ { blocks, 1, 1 }, { GRID_LIST_THREADS, 1, 1 }, 0 };
    }
    if (!VEC_PUSH(b->part, part)) {
        mc_free(part.args);
        return MC_EMEMORY;
    }
    return MC_OK;
}

/* Adds all of the n steps from step[i] on that can share a launch with it, or step[i] alone. */
static mc_status add_alike(struct joint *b, const struct mc_function *f, const struct mc_shape_plan *p,
                           const int *step, int n, int i, bool *taken)
{
    const struct mc_grid_kernel *grid = mc_cuda_fn_code(f)->grid;
    const int most = (int)mc_grid_list_most(f->code->program.step.at[step[i]].kernel->operand.n);
    bool wide;
    const bool flat = is_flat(f, step[i], p->step[step[i]].exec, &wide);
    int open = 0;
    for (int pass = 0; pass < 2; pass++) { /* those in vectors first */
        for (int j = i; j < (flat ? n : i + 1); j++) {
            const bool same = !flat || (!taken[j] && grid[step[j]].many == grid[step[i]].many &&
                                        is_flat(f, step[j], p->step[step[j]].exec, &wide) && wide == !pass);
            if (!same || taken[j]) {
                continue;
            }
            taken[j] = true;
            b->step[b->n] = step[j];
            b->member[b->n++] = p->step[step[j]].exec;
            if (++open == most) {
                TRY(add_part(b, f, open));
                open = 0;
            }
        }
    }
    return open ? add_part(b, f, open) : MC_OK;
}

/* It takes the place of its members' executors. */
static void install(struct joint *b, struct mc_shape_plan *p, const int *step, int n)
{
    struct mc_step_plan *all = &p->step[step[0]];
    for (int i = 1; i < n; i++) {
        struct mc_step_plan *one = &p->step[step[i]];
        all->flops += one->flops;
        all->bytes += one->bytes;
        one->flops = one->bytes = 0;
        one->exec = NULL;
    }
    all->exec = &b->exec;
}

mc_status mc_grid_joint(struct mc_function *f, struct mc_shape_plan *p, const int *step, int n)
{
    struct joint *b = mc_calloc(1, sizeof *b, "plan");
    bool *taken = mc_calloc((size_t)n, sizeof *taken, "plan");
    mc_status s = b && taken && (b->step = mc_calloc((size_t)n, sizeof *b->step, "plan")) &&
                          (b->member = mc_calloc((size_t)n, sizeof(struct mc_exec *), "plan"))
                      ? MC_OK
                      : MC_EMEMORY;
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = taken[i] ? MC_OK : add_alike(b, f, p, step, n, i, taken);
    }
    mc_free(taken);
    if (s == MC_OK && (int)b->part.n < n) {
        b->exec.ops = &ops;
        install(b, p, step, n);
        return MC_OK;
    }
    if (b) {
        b->n = 0; /* the members stay where they are */
        release(&b->exec);
    }
    return s;
}
