/* first.c: the first positions in the order of long lines on a GPU (first.cu). */
#include "exec/cuda/lines.h"
#include "exec/cuda/first_args.h"

enum { THREADS = 256, BLOCKS = 528, ELEMENTS = 8192, WIDEST = 4 };
enum { COUNT, COLLECT, IN_ORDER, KERNELS };
static const char *const names[KERNELS] = { "count_", "collect", "in_order" };
struct mc_first {
    struct mc_exec exec;
    void *kernel[KERNELS];
    int x, y;                   /* value ids */
    struct mc_first_args args;
};

static const char text[] = {
#include "exec/cuda/first_text.h"
    , 0 };
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
                         line = { { (unsigned)a.l.lines, 1, 1 }, { THREADS, 1, 1 }, 0 };
    a.x = f->ptr[w->x];
    a.y = (int64_t *)(void *)f->ptr[w->y];
    a.state = (struct mc_first_state *)(void *)scratch;
    a.count = (unsigned *)(void *)(a.state + a.l.lines);
    a.list = (uint64_t *)(void *)(scratch + cleared_bytes(&a));
    TRY(mc_cuda_clear(d, scratch, cleared_bytes(&a)));
    for (a.round = 0; a.round < FIRST_ROUNDS; a.round++) {
        TRY(mc_cuda_launch(d, w->kernel[COUNT], names[COUNT], &all, &a, sizeof a));
    }
    TRY(mc_cuda_launch(d, w->kernel[COLLECT], names[COLLECT], &all, &a, sizeof a));
    return mc_cuda_launch(d, w->kernel[IN_ORDER], names[IN_ORDER], &line, &a, sizeof a);
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

mc_status mc_first_make(const struct mc_lines_step *s, struct mc_exec **made)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref kernels[KERNELS];
    if (s->keep > FIRST_MOST || mc_dtypes[s->from].size > WIDEST || s->l.lines > UINT16_MAX ||
        s->l.count > UINT32_MAX) {
        return MC_OK;
    }
    struct mc_first *w = mc_calloc(1, sizeof *w, "plan");
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_first){ .exec = { &ops }, .x = s->x, .y = s->y, .args = { .l = s->l, .keep = s->keep } };
    mc_lines_workspace(s, cleared_bytes(&w->args) + (size_t)(s->l.lines * s->keep) * sizeof(uint64_t));
    mc_keys_define(&defines, s->from, s->kind == ORDER_LAST);
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){ &w->kernel[i], names[i] };
    }
    return mc_cuda_kernels(&mc_first_text, &defines, kernels, KERNELS) ? MC_OK : mc_last_status();
}
