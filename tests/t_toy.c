/* t_toy.c: a device of the tests alone, which shows that a backend needs no change of another file: memory
 * that the host must not touch, kernels by the C dialect, heavy work by the processor's solvers.
 *
 * `make test-toy` runs the suite on it.  Its memory is one range of addresses.  The range is protected except
 * while a step or a transfer runs: host code that reads a value there is ended by SIGSEGV. */
#include "check.h"
#include "heavy/conv/conv.h"
#include "exec/heavy/heavy.h"
#include "exec/remote.h"
#include "heavy/gemm/gemm.h"
#include "heavy/norm/norm.h"
#include "heavy/pool/pool.h"
#include "heavy/conv_pool/conv_pool.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory ---- */

enum { LINE = 256, MOST_BLOCKS = 1 << 16 };
#define RANGE ((size_t)16 << 30)

/* in order, without gaps, up to `end` */
static struct block { size_t at, size; bool used; } block[MOST_BLOCKS];
static int nblock;
static size_t end;
static char *range;
static int open_by;             /* how many use it now */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void protect(int how)
{
    if (range && end) {
        mprotect(range, (end + 4095) / 4096 * 4096, how);
    }
}

static void open_memory(void)
{
    pthread_mutex_lock(&lock);
    if (open_by++ == 0) {
        protect(PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
}

static void close_memory(void)
{
    pthread_mutex_lock(&lock);
    if (--open_by == 0) {
        protect(PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
}

/* The first gap that is large enough, or the end. */
static struct block *room(size_t n)
{
    for (int i = 0; i < nblock; i++) {
        if (!block[i].used && block[i].size >= n) {
            return &block[i];
        }
    }
    if (nblock == MOST_BLOCKS || end + n > RANGE) {
        return NULL;
    }
    block[nblock] = (struct block){ end, n, false };
    end += n;
    return &block[nblock++];
}

static void *toy_alloc(struct mc_device *d, size_t bytes, const char *what)
{
    const size_t n = bytes / LINE * LINE + LINE;
    struct block *b = NULL;
    pthread_mutex_lock(&lock);
    range = range ? range : mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        range = NULL;
    }
    if (range && bytes < RANGE && (b = room(n))) {
        if (b->size > n && nblock < MOST_BLOCKS) { /* the rest is a gap of its own */
            memmove(b + 2, b + 1, (size_t)(&block[nblock] - (b + 1)) * sizeof *b);
            b[1] = (struct block){ b->at + n, b->size - n, false };
            b->size = n;
            nblock++;
        }
        b->used = true;
        if (open_by) {
            protect(PROT_READ | PROT_WRITE);
        }
    }
    char *p = b ? range + b->at : NULL;
    pthread_mutex_unlock(&lock);
    if (!p) {
        mc_fail(MC_EMEMORY, "%s: no %zu bytes for %s", d->name, bytes, what);
    }
    return p;
}

static void toy_free(struct mc_device *d, void *p)
{
    (void)d;
    pthread_mutex_lock(&lock);
    for (int i = 0; p && i < nblock; i++) {
        if (range + block[i].at == (char *)p) {
            block[i].used = false;
            for (int k = MC_MAX(i - 1, 0); k + 1 < nblock && k <= i;) { /* gaps beside each other are one */
                if (block[k].used || block[k + 1].used) {
                    k++;
                    continue;
                }
                block[k].size += block[k + 1].size;
                memmove(&block[k + 1], &block[k + 2], (size_t)(nblock - k - 2) * sizeof *block);
                nblock--;
            }
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static mc_status move(void *to, const void *from, size_t n)
{
    open_memory();
    memmove(to, from, n);
    close_memory();
    return MC_OK;
}

static mc_status put(const struct mc_space *s, void *there, const void *here, size_t n)
{
    (void)s;
    return move(there, here, n);
}
static mc_status get(const struct mc_space *s, void *here, const void *there, size_t n)
{
    (void)s;
    return move(here, there, n);
}
static mc_status copy_there(const struct mc_space *s, void *to, const void *from, size_t n)
{
    (void)s;
    return move(to, from, n);
}
static void release(const struct mc_space *s, void *p)
{
    toy_free(s->device, p);
}

static mc_status enter(struct mc_device *d)
{
    (void)d;
    return MC_OK;
}
static void leave(struct mc_device *d)
{
    (void)d;
}

static mc_array *toy_array(struct mc_device *d, mc_dtype t, int rank, const int64_t *dims)
{
    size_t bytes = 0;
    void *p = mc_mul_size((size_t)mc_dims_count(rank, dims), mc_dtype_size(t), &bytes)
                  ? toy_alloc(d, bytes, "an array")
                  : NULL;
    mc_array *a = p ? mc_array_on_device(d->space, t, rank, dims, p) : NULL;
    if (!a) {
        toy_free(d, p);
    }
    return a;
}

static struct mc_device toy;
static const struct mc_space space = { .name = "toy", .device = &toy, .put = put, .get = get, .copy = copy_there, .release = release };
static const struct mc_device_ops device_ops = { .enter = enter, .leave = leave, .alloc = toy_alloc, .free = toy_free, .array = toy_array };
static struct mc_device toy = { .name = "toy", .number = -1, .space = &space, .ops = &device_ops };

/* ---- steps ---- */

struct within {                 /* an executor of the processor, run while the memory is open */
    struct mc_exec exec;
    struct mc_exec *inner;
};

static mc_status within_run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                            char *scratch)
{
    struct mc_exec *inner = ((struct within *)e)->inner;
    open_memory();
    mc_status s = inner->ops->run(f, p, step, inner, scratch);
    close_memory();
    return s;
}

static void within_free(struct mc_exec *e)
{
    struct mc_exec *inner = ((struct within *)e)->inner;
    if (inner->ops->free) {
        inner->ops->free(inner);
    }
    mc_free(e);
}

static const struct mc_exec_ops within_ops = { .run = within_run, .free = within_free };

static mc_status wrap(struct mc_exec *inner, struct mc_exec **made)
{
    struct within *w = inner ? mc_calloc(1, sizeof *w, "plan") : NULL;
    if (inner && !w) {
        if (inner->ops->free) {
            inner->ops->free(inner);
        }
        return MC_EMEMORY;
    }
    if (w) {
        *w = (struct within){ { &within_ops }, inner };
    }
    *made = w ? &w->exec : NULL;
    return MC_OK;
}

static bool compiled(const struct mc_function *f, int step) { return f->code->fn[step] != NULL; }

static mc_status plan_kernel(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    struct mc_exec *launch = NULL;
    TRY(compiled(f, step) ? mc_launch_plan(f, p, step, &launch) : MC_OK);
    return wrap(launch, made);
}

static mc_status plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_step_plan *sp = &p->step[step];
    switch (st->kind) {
    case STEP_PLAN_TIME:
    case STEP_TYPE: break;
    case STEP_VIEW: sp->exec = p->slot[st->dst[0]].own ? &mc_exec_reference : NULL; break;
    case STEP_KERNEL:
        TRY(plan_kernel(f, p, step, &sp->exec));
        sp->exec = sp->exec ? sp->exec : &mc_exec_reference;
        break;
    case STEP_HEAVY:
        if (!st->kernel) {
            return wrap(&sp->heavy->exec, &sp->exec);
        }
        TRY(plan_kernel(f, p, step, &sp->epilogue));
        sp->exec = &mc_exec_reference;
        return sp->epilogue ? wrap(&sp->heavy->exec, &sp->exec) : MC_OK;
    case STEP_HOST: sp->exec = &mc_exec_reference; break;
    }
    return MC_OK;
}

static mc_status timed(struct mc_function *f, const struct mc_shape_plan *p, int step, double *seconds)
{
    const double start = mc_now();
    mc_status s = mc_step_run(f, p, step);
    if (seconds) {
        *seconds += mc_now() - start;
    }
    return s;
}

/* ---- the backend ---- */

static struct mc_device *start(const char *device) { (void)device; return &toy; }
static const struct mc_backend *grows(void) { return &mc_backend_cpu; }
static mc_status begin(struct mc_function *f, struct mc_shape_plan *p)
{
    return mc_remote_upload_inputs(f, p);
}

static mc_status copy(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst)
{
    (void)f;
    open_memory();
    mc_status s = mc_dense_copy(from, (char *)src, dst);
    close_memory();
    return s;
}

static const struct mc_backend backend = {
    .name = "toy", .start = start,
    .fuses = FUSE_COLUMN_SUMS, .grows = grows, .may_compile = mc_cc_known, .has_compiler = mc_cc_present, .compiler_missing = mc_cc_missing, .dense_inputs = true,
    .language = "C", .lead = "\nvoid k", .head = "\nvoid %s(", .elsewhere = "",
    .product = mc_gemm_plan, .conv = mc_conv_plan, .pool = mc_pool_plan, .norm = mc_norm_plan, .pooled = mc_pooled_plan,
    .layouts = { .convs = &mc_conv_family, .bandwidth = 2e10 },
    .kernels = mc_compile_kernels, .drop_kernels = mc_drop_kernels, .compiled = compiled, .plan = plan,
    .input_bytes = mc_remote_inputs, .shape = mc_remote_plan, .shape_free = mc_remote_forget, .address = mc_remote_address,
    .begin = begin, .step = timed, .fetch = mc_remote_fetch, .store = mc_remote_store, .copy = copy,
    .copy_on_device = mc_remote_copy_on_device, .result_make = mc_remote_result_make, .result_take = mc_remote_result_take,
};

__attribute__((constructor)) static void add(void)
{
    mc_backend_add(&backend);
    if (getenv("TEST_TOY")) {
        mc_flag_set("device", "toy");
    }
}

/* ---- tests ---- */

/* A step of logistic regression by hand: p = 1 / (1 + exp(0)) = 1/2 for each example, so W becomes -lr * x'
 * (p - t). */
TEST(toy_device_trains_in_its_own_memory)
{
    mc_graph *g = mc_graph_new();
    mc_flag_set("device", "toy");
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "t", MC_FLOAT32, 2);
    mc_shared *w = mc_shared_zeros(g, "W", MC_FLOAT32, MC_SHAPE(3, 1));
    mc_formula(g, "p = sigmoid(dot(x, W)); cost = sum(binary_crossentropy(p, t))");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, t", .outputs = "cost, p", .updates = "W = W - 0.5 * grad(cost, W)" });
    mc_flag_set("device", "cpu");
    const float x[] = { 1, 2, 3, -4, 5, -6 }, t[] = { 1, 0 };
    mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 3), x),
             *b = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 1), t), *p = NULL;
    float cost = 0;
    if (CHECK(f, "%s", mc_error(g)) &&
        CHECK(mc_call(f, MC_IN(a, b), MC_OUT(&cost, &p)) == MC_OK, "%s", mc_last_error())) {
        CHECK(fabsf(cost - 1.3862944f) < 1e-6f, "the cost is %g", (double)cost);
        CHECK(mc_array_get(p, (int64_t[]){ 1, 0 }) == 0.5, "p is %g", mc_array_get(p, (int64_t[]){ 1, 0 }));
        mc_array *now = mc_shared_get(w);
        const double want[] = { 0.5 * (0.5 * 1 - 0.5 * -4), 0.5 * (0.5 * 2 - 0.5 * 5),
                                0.5 * (0.5 * 3 - 0.5 * -6) };
        for (int i = 0; i < 3 && now; i++) {
            const double is = mc_array_get(now, (int64_t[]){ i, 0 });
            CHECK(fabs(is - want[i]) < 1e-6, "W[%d] is %g, not %g", i, is, want[i]);
        }
        mc_array_unref(&now);
    }
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_array_unref(&p);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(toy_memory_ends_who_reads_it)
{
    char *p = toy_alloc(&toy, 1000, "a test");
    if (!CHECK(p, "%s", mc_last_error())) {
        return;
    }
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)p);
    }
    int how = 0;
    CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV,
          "the child ended with %d", how);
    toy_free(&toy, p);
}
