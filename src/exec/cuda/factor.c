/* factor.c: factorizations on a GPU: what computes them.
 *
 *   blocks    small matrices, and stacks of them: a block of threads each (heavy/factor/cuda/stack.c)
 *   threads   stacks of tiny matrices, and kinds for which blocks have no kernel: a thread each (factor.cu)
 *   library   large ones: cuSOLVER and cuBLAS, one after another (heavy/factor/cuda/cusolver.c)
 *   host      others: the solvers of the CPU; inputs and results are copied
 *
 * Invariant: a matrix that cannot be treated sets the error words of the call; the message is that of the
 * CPU. */
#include "exec/cuda/cuda.h"
#include "heavy/factor/cuda/cusolver.h"
#include "heavy/factor/cuda/factor_args.h"
#include "heavy/factor/cuda/stack.h"
#include "op/matrix/matrix.h"

enum { THREADS = 64, LEAST_BATCH = 64, MOST_ELEMENTS = 48 * 48, MOST_THREADS = 1 << 15, TINY = 4 };
/* By times of an H100 (bench/results/linalg-cuda.txt) and of another host (linalg.txt). */
enum { LEAST_ROWS = 256, LEAST_CHOLESKY = 65 };
enum { OPERANDS = FACTOR_MOST_IN + FACTOR_MOST_OUT };
struct factor {
    struct mc_exec exec;
    struct mc_factor f;
    struct mc_factor_stack_kernel stack; /* by threads or blocks; work: of each of them */
    struct mc_plan *plan;       /* on the host; or NULL */
    struct mc_cusolver *large;  /* by the libraries; or NULL */
    int value[OPERANDS];        /* by operand; -1: none, or nothing reads it */
    int64_t copy[OPERANDS];     /* offset in the scratch of a contiguous copy; -1: none is needed */
    int64_t work;               /* offset of the work */
    size_t of_work;             /* how many have work: threads or blocks */
};

static const char text[] = {
#include "exec/cuda/factor_text.h"
    , 0 };
const struct mc_cuda_text mc_factor_step_text = { "exec/cuda/factor.cu", text };

void mc_factor_source(const struct mc_factor *f, struct mc_str *defines)
{
    static const char *const operand[OPERANDS] = { "in0", "in1", "out0", "out1", "out2" };
    struct mc_factor one = *f;
    const unsigned kind = 1u << f->kind, kinds[2] = { f->dtype == MC_FLOAT64 ? 0 : kind,
                                                      f->dtype == MC_FLOAT64 ? kind : 0 };
    struct mc_str texts = { 0 };
    memset(one.in, 0, sizeof one.in);
    memset(one.out, 0, sizeof one.out);
    mc_str_add(defines, "#define int64_t i64\n#undef NULL\n#define NULL 0\n#undef NAN\n#define NAN "
                        "__longlong_as_double(0x7ff8000000000000ll)\n"
                        "#define static static __device__\n");
    mc_factor_text(&texts, kinds);
    mc_str_add(defines, texts.bad ? "" : texts.s);
    defines->bad |= texts.bad;
    mc_str_free(&texts);
    mc_str_add(defines, "#undef static\n#define CALL ");
    mc_factor_call(defines, &one, operand, "work");
    mc_str_addf(defines, "\n#define REAL %s\n", mc_dtypes[f->dtype].c);
}

/* ---- a thread or a block for each matrix ---- */

/* Addresses of the operands; copies of those that are not contiguous are made. */
static mc_status addresses(struct mc_function *f, const struct mc_shape_plan *p, const struct factor *x,
                           char *scratch, char **at)
{
    for (int r = 0; r < OPERANDS; r++) {
        const int v = x->value[r];
        at[r] = x->copy[r] >= 0 ? scratch + x->copy[r] : v >= 0 ? f->ptr[v] : NULL;
        if (r < FACTOR_MOST_IN && x->copy[r] >= 0) {
            TRY(mc_cuda_fn_copy(f, &p->slot[v], f->ptr[v], at[r]));
        }
    }
    return MC_OK;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct factor *x = (const struct factor *)(const void *)e;
    struct mc_factor_args a = { .batch = x->f.batch, .stride = (int64_t)x->stack.work };
    const size_t size = mc_dtypes[x->f.dtype].size;
    char *at[OPERANDS];
    TRY(addresses(f, p, x, scratch, at));
    for (int r = 0; r < FACTOR_MOST_IN; r++) {
        a.in[r] = at[r];
        a.in_bytes[r] = at[r] ? x->f.in[r] * (int64_t)size : 0;
    }
    for (int i = 0; i < FACTOR_MOST_OUT; i++) {
        a.out[i] = at[FACTOR_OUT + i];
        a.out_bytes[i] = at[FACTOR_OUT + i] ? x->f.out[i] * (int64_t)x->f.out_size[i] : 0;
    }
    for (int i = 0; i < FACTOR_SIZES; i++) {
        a.sizes[i] = x->f.g[i];
    }
    a.work = scratch + x->work;
    a.err = mc_cuda_fn_of(f)->failed;
    a.number = mc_cuda_fn_number(f, step);
    return mc_cuda_launch(mc_cuda_of(f->code), x->stack.kernel, x->stack.name, &x->stack.grid, &a, sizeof a);
}

/* ---- by the libraries ---- */

static mc_status run_large(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                           char *scratch)
{
    const struct factor *x = (const struct factor *)(const void *)e;
    char *at[OPERANDS];
    TRY(addresses(f, p, x, scratch, at));
    return mc_cusolver_run(x->large, at, scratch + x->work, mc_cuda_fn_of(f)->failed,
                           mc_cuda_fn_number(f, step));
}

/* ---- on the host ---- */

static mc_status run_on_host(struct mc_function *f, const struct mc_shape_plan *p, int step,
                             struct mc_exec *e, char *scratch)
{
    const struct factor *x = (const struct factor *)(const void *)e;
    const mc_node *n = f->code->program.step.at[step].node[0];
    mc_array *a[OPERANDS] = { NULL };
    void *operand[MC_PLAN_OPERANDS] = { NULL }, *work = mc_alloc_pages(x->plan->workspace + 64, "factor");
    mc_status s = work ? MC_OK : mc_last_status();
    (void)scratch;
    for (int i = 0; i < n->nin && s == MC_OK; i++) {
        mc_array *fetched = mc_remote_fetch(f, p, x->value[i]);
        a[i] = fetched ? mc_array_copy(fetched) : NULL; /* contiguous */
        mc_array_unref(&fetched);
        s = a[i] ? MC_OK : mc_last_status();
    }
    for (int i = 0; i < n->nout && s == MC_OK; i++) {
        const int v = x->value[FACTOR_OUT + i];
        const int64_t count = x->f.batch * x->f.out[i];
        const struct mc_type *t = v >= 0 ? &p->slot[v].type : NULL;
        const mc_dtype d = x->f.out_size[i] == mc_dtypes[x->f.dtype].size ? x->f.dtype : MC_INT64;
        a[FACTOR_OUT + i] = t ? mc_array_new(t->dtype, t->rank, t->dims) : mc_array_new(d, 1, &count);
        s = a[FACTOR_OUT + i] ? MC_OK : mc_last_status();
    }
    for (int r = 0; r < OPERANDS; r++) {
        operand[r] = a[r] ? a[r]->data : NULL;
    }
    s = s < 0 ? s : x->plan->run(x->plan, operand, work, f->threads);
    for (int i = 0; i < n->nout && s == MC_OK; i++) {
        const int v = x->value[FACTOR_OUT + i];
        s = v >= 0 ? mc_remote_store(f, p, v, a[FACTOR_OUT + i]) : MC_OK;
    }
    for (int r = 0; r < OPERANDS; r++) {
        mc_array_unref(&a[r]);
    }
    mc_free_pages(work);
    return s;
}

static void release(struct mc_exec *e)
{
    struct factor *x = (struct factor *)(void *)e;
    mc_plan_free(x->plan);
    mc_cusolver_free(x->large);
    mc_free(x);
}

static const struct mc_exec_ops ops = { .run = run, .free = release },
                                large_ops = { .run = run_large, .free = release, .eager = true },
                                host_ops = { .run = run_on_host, .free = release, .host = true };

/* ---- a shape ---- */

static bool has_memory(const struct mc_slot *at)
{
    return at->base != BASE_NONE && at->base != BASE_TYPE;
}

/* Offsets in the scratch: copies of what is not contiguous, results that nothing reads, work. */
static bool place(const struct mc_shape_plan *p, const mc_node *n, struct factor *x, size_t *bytes)
{
    for (int r = 0; r < OPERANDS; r++) {
        const int v = x->value[r], i = r - FACTOR_OUT;
        if (v >= 0 && r < FACTOR_OUT && !mc_slot_contiguous(&p->slot[v])) {
            x->copy[r] = (int64_t)*bytes;
            *bytes += mc_work_rounded(mc_slot_bytes(&p->slot[v]));
        }
        if (v >= 0 && r >= FACTOR_OUT && !mc_slot_contiguous(&p->slot[v])) {
            return false;
        }
        if (v < 0 && i >= 0 && i < n->nout) {
            x->copy[r] = (int64_t)*bytes;
            *bytes += mc_work_rounded((size_t)(x->f.batch * x->f.out[i]) * x->f.out_size[i]);
        }
    }
    x->work = (int64_t)*bytes;
    *bytes += x->large ? mc_cusolver_scratch(x->large) : x->stack.work * x->of_work;
    return true;
}

static mc_status load_threads(struct factor *x)
{
    struct mc_str defines = { 0 };
    const struct mc_cuda_kernel_ref kernel = { &x->stack.kernel, "factor" };
    const int64_t blocks = (MC_MIN(x->f.batch, (int64_t)MOST_THREADS) + THREADS - 1) / THREADS;
    x->stack = (struct mc_factor_stack_kernel){ .name = "factor",
                                                .grid = { { (unsigned)blocks, 1, 1 }, { THREADS, 1, 1 }, 0 },
                                                .work = mc_factor_work(&x->f) / 16 * 16 + 16 };
    x->of_work = (size_t)blocks * THREADS;
    mc_factor_source(&x->f, &defines);
    return mc_cuda_kernels(&mc_factor_step_text, &defines, &kernel, 1) ? MC_OK : mc_last_status();
}

static mc_status load_blocks(struct factor *x)
{
    TRY(mc_factor_stack_new(&x->f, &x->stack));
    x->of_work = x->stack.grid.blocks[0];
    return MC_OK;
}

static mc_status load_library(struct factor *x)
{
    x->large = mc_cusolver_new(&x->f);
    x->exec.ops = &large_ops;
    return x->large ? MC_OK : mc_last_status();
}

/* Where the host is forbidden (the flag cuda.host), matrices of any size stay on the GPU if anything there
 * takes them.  NULL: nothing does. */
typedef mc_status loader(struct factor *x);
static loader *way(const struct factor *x)
{
    const struct mc_factor *f = &x->f;
    const int64_t rows = f->nin > 1 ? f->g[0] : MC_MAX(f->g[0], f->g[1]);
    const char *wanted = mc_flag_text(FLAG_cuda_factor);
    const int64_t least = f->kind == FACTOR_CHOLESKY ? LEAST_CHOLESKY : LEAST_ROWS;
    const bool takes = mc_factor_stack_takes(f), library = !mc_cusolver_refuse(f),
               host = mc_flag_int(FLAG_cuda_host) != 0,
               small = f->batch >= LEAST_BATCH && f->in[0] > 0 && f->in[0] <= MOST_ELEMENTS &&
                       f->out[0] <= MOST_ELEMENTS;
    if (strcmp(wanted, "host") == 0) {
        return NULL;
    }
    if (strcmp(wanted, "library") == 0 && library) {
        return load_library;
    }
    if (small && (!takes || rows <= TINY) && strcmp(wanted, "blocks") != 0) {
        return load_threads;
    }
    if (takes && (strcmp(wanted, "blocks") == 0 || mc_factor_stack_wins(f, host))) {
        return load_blocks;
    }
    if (library && (!host || rows >= least)) {
        return load_library;
    }
    return takes && !host ? load_blocks : NULL;
}

/* On the GPU; *bytes: of the scratch.  *can: false: nothing there can. */
static mc_status plan_on_device(const struct mc_shape_plan *p, const mc_node *n, struct factor *x,
                                size_t *bytes, bool *can)
{
    loader *const load = way(x);
    *can = load != NULL;
    TRY(load ? load(x) : MC_OK);
    *can = *can && place(p, n, x, bytes);
    return MC_OK;
}

bool mc_cuda_factor_can(const struct mc_step *st, bool *checks)
{
    const bool can = st->kind == STEP_HOST && st->nnode == 1 &&
                     mc_factor_kind_of(st->node[0]->op) != FACTOR_NKIND;
    *checks |= can;
    return can;
}

/* The problem of a step, and where its operands lie. */
static mc_status describe(const struct mc_function *f, const struct mc_shape_plan *p,
                          const struct mc_step *st, struct factor *x)
{
    const mc_node *n = st->node[0];
    struct mc_type type[FACTOR_MOST_IN];
    for (int r = 0; r < OPERANDS; r++) {
        x->value[r] = -1;
        x->copy[r] = -1;
    }
    for (int i = 0; i < n->nin; i++) {
        x->value[i] = f->code->program.value_of[n->in[i]->id];
        type[i] = p->slot[x->value[i]].type;
    }
    for (int i = 0; i < n->nout; i++) {
        const int v = n->nout == 1 ? f->code->program.value_of[n->id] : st->dst[st->ndst - n->nout + i];
        x->value[FACTOR_OUT + i] = v >= 0 && has_memory(&p->slot[v]) ? v : -1;
    }
    return mc_factor_of(n, type, &x->f);
}

mc_status mc_cuda_factor_plan(struct mc_function *f, struct mc_shape_plan *p, int step, bool host,
                              struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    bool checks = false;
    if (!mc_cuda_factor_can(st, &checks)) {
        return MC_OK;
    }
    struct factor *x = mc_calloc(1, sizeof *x, "plan");
    size_t bytes = 0;
    bool can = true;
    if (!x) {
        return MC_EMEMORY;
    }
    x->exec.ops = host ? &host_ops : &ops;
    mc_status s = describe(f, p, st, x);
    if (s == MC_OK && host) {
        x->plan = mc_factor_plan(&x->f, &p->options);
        s = x->plan ? MC_OK : mc_last_status();
    } else if (s == MC_OK) {
        s = plan_on_device(p, st->node[0], x, &bytes, &can);
        p->step[step].workspace = MC_MAX(p->step[step].workspace, can ? bytes : 0);
    }
    if (s < 0 || !can) {
        release(&x->exec);
        return s;
    }
    *made = &x->exec;
    return MC_OK;
}

mc_status mc_cuda_factor_error(const struct mc_exec *e, const int64_t *err)
{
    const struct factor *x = e && (e->ops == &ops || e->ops == &large_ops)
                                 ? (const struct factor *)(const void *)e
                                 : NULL;
    double pivot;
    float narrow;
    memcpy(&pivot, &err[4], sizeof pivot);
    narrow = (float)pivot;
    return x ? mc_factor_failed(&x->f, err[1], err[2],
                                x->f.dtype == MC_FLOAT64 ? (const void *)&pivot : (const void *)&narrow)
             : mc_fail(MC_ECHECK, "matrix %lld of a stack cannot be treated", (long long)err[1]);
}
