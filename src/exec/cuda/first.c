/* first.c: the first positions in the order of long lines on a GPU (first.cu). */
#include "exec/cuda/lines.h"
#include "exec/cuda/first_args.h"

enum { THREADS = 256, ORDER_THREADS = 512, BLOCKS = 528, ELEMENTS = 8192 };
/* for a bound: the elements of a block, at most so many blocks of a line, a group for each lane of a warp */
enum { BOUND_ELEMENTS = 512, BOUND_BLOCKS = 256, GROUPS = 32 };
enum { LOWEST, BELOW, COUNT, COLLECT, IN_ORDER, KERNELS };
static const char *const names[KERNELS] = { "lowest", "below", "count_", "collect", "in_order" };
struct mc_first {
    struct mc_exec exec;
    void *kernel[KERNELS];
    int x, y;   /* value ids */
    int rounds; /* of the exact way: bits of a key, and of a position */
    struct mc_first_args args;
};

static const char text[] = {
#include "exec/cuda/first_text.h"
    , 0
};
const struct mc_cuda_text mc_first_text = { "exec/cuda/first.cu", text, &mc_keys_text };

/* ---- running ---- */

static size_t cleared_bytes(const struct mc_first_args *a)
{
    return (size_t)a->l.lines * (sizeof *a->state + (sizeof(unsigned) << FIRST_BITS));
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    const struct mc_first *w = (struct mc_first *)e;
    struct mc_cuda *d = mc_cuda_of(f->code);
    struct mc_first_args a = w->args;
    const int64_t blocks = MC_MIN((a.l.count + ELEMENTS - 1) / ELEMENTS,
                                  MC_MAX(BLOCKS / a.l.lines, (int64_t)1));
    const struct mc_grid all = { { (unsigned)blocks, (unsigned)a.l.lines, 1 }, { THREADS, 1, 1 }, 0 },
                         bound = { { (unsigned)a.groups / GROUPS, (unsigned)a.l.lines, 1 },
                                   { THREADS, 1, 1 },
                                   0 },
                         line = { { (unsigned)a.l.lines, 1, 1 }, { ORDER_THREADS, 1, 1 }, 0 };
    a.x = f->ptr[w->x];
    a.y = (int64_t *)(void *)f->ptr[w->y];
    a.state = (struct mc_first_state *)(void *)scratch;
    a.count = (unsigned *)(void *)(a.state + a.l.lines);
    a.list = (uint64_t *)(void *)(scratch + cleared_bytes(&a));
    a.least = a.list + a.l.lines * a.capacity;
    a.places = (unsigned *)(void *)(a.least + a.l.lines * a.groups);
    TRY(mc_cuda_clear(d, scratch, cleared_bytes(&a)));
    for (int k = LOWEST; k <= BELOW && a.groups; k++) {
        TRY(mc_cuda_launch(d, w->kernel[k], names[k], &bound, &a, sizeof a));
    }
    for (a.round = 0; a.round < w->rounds; a.round++) {
        TRY(mc_cuda_launch(d, w->kernel[COUNT], names[COUNT], &all, &a, sizeof a));
    }
    TRY(mc_cuda_launch(d, w->kernel[COLLECT], names[COLLECT], &all, &a, sizeof a));
    return mc_cuda_launch(d, w->kernel[IN_ORDER], names[IN_ORDER], &line, &a, sizeof a);
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

/* With groups twice as many as elements are kept, those up to the bound are about 1.4 times as many. */
static void set_capacity(struct mc_first_args *a)
{
    const int64_t blocks = MC_MIN(a->l.count / BOUND_ELEMENTS, (int64_t)BOUND_BLOCKS);
    a->groups = blocks * GROUPS >= 2 * a->keep ? (int)blocks * GROUPS : 0;
    a->capacity = a->groups ? (int)MC_MIN(2 * a->keep + 256, (int64_t)FIRST_LISTED) : (int)a->keep;
}

static int rounds_of(int bits)
{
    return (bits + FIRST_BITS - 1) / FIRST_BITS;
}

mc_status mc_first_make(const struct mc_lines_step *s, struct mc_exec **made)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref kernels[KERNELS];
    if (s->keep > FIRST_MOST || s->l.lines > UINT16_MAX || s->l.count > UINT32_MAX) {
        return MC_OK;
    }
    struct mc_first *w = mc_calloc(1, sizeof *w, "plan");
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_first){ .exec = { &ops }, .x = s->x, .y = s->y, .args = { .l = s->l, .keep = s->keep } };
    w->rounds = rounds_of(8 * (int)mc_dtypes[s->from].size) + rounds_of(32);
    set_capacity(&w->args);
    mc_lines_workspace(s, cleared_bytes(&w->args) +
                              (size_t)s->l.lines * ((size_t)w->args.capacity * sizeof(uint64_t) +
                                                    (size_t)w->args.groups * sizeof(uint64_t) +
                                                    (size_t)w->args.capacity * sizeof(unsigned)));
    mc_keys_define(&defines, s->from, s->kind == ORDER_LAST);
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){ &w->kernel[i], names[i] };
    }
    return mc_cuda_kernels(&mc_first_text, &defines, kernels, KERNELS) ? MC_OK : mc_last_status();
}
