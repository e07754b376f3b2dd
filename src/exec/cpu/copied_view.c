/* copied_view.c: a reshape whose input has strides that its result cannot have: a copy, by all threads.
 *
 * Invariant: the result is contiguous, and a thread copies a range of one axis of the input, from all axes
 * before it. */
#include "exec/backend.h"
#include "exec/cpu/launch.h"
#include <stdatomic.h>

struct copy {
    const struct mc_slot *from;
    char *src, *dst;
    int axis;                   /* which threads divide */
    int64_t before, behind;     /* elements of the axes before it; bytes of one place of it */
    atomic_int status;
};

/* Bytes from the start of the input to place `at` of the axes before `axis`, counted in row-major order. */
static int64_t offset_of(const struct mc_slot *from, int axis, int64_t at)
{
    int64_t bytes = 0;
    for (int i = axis; i-- > 0; at /= from->type.dims[i]) {
        bytes += at % from->type.dims[i] * from->strides[i];
    }
    return bytes;
}

static void copy_range(void *arg, int64_t first, int64_t last, int thread)
{
    struct copy *c = arg;
    struct mc_slot part = *c->from;
    const int64_t size = part.type.dims[c->axis];
    (void)thread;
    part.type.dims[c->axis] = last - first;
    for (int i = 0; i < c->axis; i++) {
        part.type.dims[i] = 1;
    }
    for (int64_t k = 0; k < c->before && first < last; k++) {
        char *src = c->src + offset_of(c->from, c->axis, k) + first * part.strides[c->axis];
        const mc_status s = mc_dense_copy(&part, src, c->dst + (k * size + first) * c->behind);
        if (s < 0) {
            atomic_store(&c->status, s);
        }
    }
}

/* The first axis that has a place for each thread; else the longest. */
static int divided_axis(const struct mc_type *t, int threads)
{
    int axis = 0;
    for (int i = 0; i < t->rank && t->dims[axis] < threads; i++) {
        axis = t->dims[i] > t->dims[axis] ? i : axis;
    }
    return axis;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct mc_program *program = &f->code->program;
    const struct mc_step *st = &program->step.at[step];
    const int v = program->value_of[st->node[0]->in[0]->id];
    struct copy c = { .from = &p->slot[v], .src = f->ptr[v], .dst = f->ptr[st->dst[0]] };
    const struct mc_type *t = &c.from->type;
    const size_t element = mc_dtypes[t->dtype].size;
    const double bytes = 2. * (double)element * (double)mc_dims_count(t->rank, t->dims);
    const int threads = mc_launch_threads(f, 0, bytes);
    (void)e;
    (void)scratch;
    c.axis = divided_axis(t, threads);
    c.before = mc_dims_count(c.axis, t->dims);
    c.behind = mc_dims_count(t->rank - c.axis - 1, t->dims + c.axis + 1) * (int64_t)element;
    if (bytes > 0) {
        mc_team_run(copy_range, &c, t->dims[c.axis], 1, threads);
    }
    const mc_status s = (mc_status)atomic_load(&c.status);
    return s < 0 ? mc_fail(s, "reshape: out of memory") : s;
}

static const struct mc_exec_ops ops = { .run = run };
static struct mc_exec copied_view = { &ops };

struct mc_exec *mc_copied_view(const struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const mc_node *n = st->node[0];
    const int v = n->nin ? f->code->program.value_of[n->in[0]->id] : -1;
    const bool plain = st->nnode == 1 && n->op->form == FORM_RESHAPE && v >= 0 &&
                       p->slot[v].base != BASE_NONE && p->slot[v].base != BASE_TYPE &&
                       p->slot[v].type.rank > 0 && mc_position_axis(n->in[0]) < 0 &&
                       mc_slot_contiguous(&p->slot[st->dst[0]]);
    return plain ? &copied_view : &mc_exec_reference;
}
